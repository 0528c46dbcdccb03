//! Support vector machines, as attributes have them.

use super::attributes::numbers;
use super::numbers::doubles;
use super::scores::TRANSFORMS;
use crate::ops::prelude::*;
use kernels::Lookout;
use kernels::scores::Transform;
use kernels::vectors::Likeness;

#[derive(Debug)]
pub(super) struct Machine {
    likeness: Likeness,
    /// The support vectors, or the rows of coefficients if there are none: the numbers of all of them for each feature.
    columns: Vec<f64>,
    /// The number of support vectors.
    pub(super) count: usize,
    /// Those of the support vectors.
    pub(super) coefficients: Vec<f64>,
    pub(super) rho: Vec<f64>,
    pub(super) transform: Transform,
}

pub(super) fn fault(name: &str, count: usize, needed: &str) -> Error {
    Error::model(format!("{name} has {count} entries: {needed}")).attribute(name).size(count)
}

impl Machine {
    /// With `rows` of coefficients if there are no support vectors.
    pub(super) fn of(node: &Node<'_>, count: usize, rows: usize) -> Result<Machine> {
        let params = numbers(node, "kernel_params")?;
        if !matches!(params.len(), 0 | 3) {
            return Err(fault("kernel_params", params.len(), "gamma, coef0 and degree are needed"));
        }
        let at = |k: usize| params.get(k).copied().unwrap_or(0.0);
        let (gamma, coef0, degree) = (at(0), at(1), at(2));
        let kinds = [
            ("LINEAR", Likeness::Linear),
            ("POLY", Likeness::Poly { gamma, coef0, degree }),
            ("RBF", Likeness::Rbf { gamma }),
            ("SIGMOID", Likeness::Sigmoid { gamma, coef0 }),
        ];
        let kind = node.choice("kernel_type", &kinds)?;
        let vectors = numbers(node, "support_vectors")?;
        if count > 0 && vectors.len() % count != 0 {
            return Err(fault("support_vectors", vectors.len(), &format!("they are no {count} vectors of one length")));
        }
        let coefficients = numbers(node, "coefficients")?;
        node.bill(size_of::<f64>() * if count > 0 { vectors.len() } else { coefficients.len() })?;
        let (likeness, columns) = match count {
            0 => (Likeness::Linear, columns(&coefficients, rows)),
            count => (kind, columns(&vectors, count)),
        };
        Ok(Machine {
            likeness,
            columns,
            count,
            coefficients,
            rho: numbers(node, "rho")?,
            transform: node.choice("post_transform", &TRANSFORMS)?,
        })
    }

    /// Calls `each` with the number of each example and its likeness to each vector: to the support vectors, or to the rows of
    /// coefficients if there are none.
    pub(super) fn each(
        &self,
        call: &mut Call<'_>,
        rows: usize,
        mut each: impl FnMut(usize, &[f64], &mut Lookout<'_>) -> Result<()>,
    ) -> Result<()> {
        let x = doubles(call, 0)?;
        let x = call.held(&x)?;
        let features = x.shape().last().copied().unwrap_or(0);
        let (name, count, len) = match self.count {
            0 => ("coefficients", rows, self.coefficients.len()),
            count => ("support_vectors", count, self.columns.len()),
        };
        if count.checked_mul(features) != Some(len) {
            let text =
                format!("{name} has {len} entries: {count} rows for the {features} features of \"X\" are needed");
            return Err(Error::input(text).parameter("X").size(features));
        }
        let (x, examples) = (x.as_slice::<f64>()?, count_of(call)?);
        call.charge((examples as u64).saturating_mul(len as u64))?;
        let together = (TOGETHER / count.max(1)).clamp(1, examples.max(1));
        let mut memory = call.scratch::<f64>(together.saturating_mul(count))?;
        let mut lookout = call.lookout();
        for first in (0..examples).step_by(together) {
            let now = together.min(examples - first);
            let rows = x.get(first * features..(first + now) * features).unwrap_or(&[]);
            let alike = memory.elements_mut::<f64>().get_mut(..now * count).unwrap_or(&mut []);
            self.likeness.all(rows, &self.columns, features, count, alike, call.resources())?;
            for (k, alike) in alike.chunks_exact(count.max(1)).enumerate() {
                lookout.after(size_of_val(alike))?;
                each(first + k, alike, &mut lookout)?;
            }
        }
        Ok(())
    }
}

/// The columns of some rows, one after the other.
fn columns(list: &[f64], rows: usize) -> Vec<f64> {
    let (len, mut columns) = (list.len() / rows.max(1), Vec::with_capacity(list.len()));
    columns.extend((0..len).flat_map(|k| list.iter().skip(k).step_by(len)));
    columns
}

/// The likenesses that are in memory at a time.
const TOGETHER: usize = 1 << 14;

/// The number of examples.
pub(super) fn count_of(call: &Call<'_>) -> Result<usize> {
    match *call.tensor(0)?.shape() {
        [_] => Ok(1),
        [examples, _] => Ok(examples),
        ref shape => Err(Error::input(format!("\"X\" has rank {}: allowed ranks 1 to 2", shape.len())).parameter("X")),
    }
}
