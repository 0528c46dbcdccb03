//! Scores of classes and targets, and the labels of the classes.

use super::attributes::{list, only};
use super::numbers::{floats, rounded};
use crate::ops::prelude::*;
use kernels::scores::Transform;

pub(super) const TRANSFORMS: [(&str, Transform); 5] = [
    ("NONE", Transform::None),
    ("SOFTMAX", Transform::Softmax),
    ("LOGISTIC", Transform::Logistic),
    ("SOFTMAX_ZERO", Transform::SoftmaxZero),
    ("PROBIT", Transform::Probit),
];

/// The labels of classes.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) labels: Tensor,
}

impl Classes {
    /// Those in one of two lists.
    pub(super) fn of(node: &Node<'_>, lists: [&str; 2]) -> Result<Classes> {
        Ok(Classes { labels: list(node, only(node, &lists)?.0)? })
    }

    /// The label of the greatest score of each example, the first of equal ones; and the scores, transformed and rounded once.
    /// `scores` are doubles, one for each example and class.
    pub(super) fn outputs(&self, call: &mut Call<'_>, mut scores: NewTensor, transform: Transform) -> Result<Values> {
        let count = self.labels.len();
        let elements = scores.elements_mut::<f64>()?;
        let examples = elements.len() / count.max(1);
        let mut memory = call.kept::<i64>(examples)?;
        let (best, mut lookout) = (memory.elements_mut::<i64>()?, call.lookout());
        for (best, scores) in best.iter_mut().zip(elements.chunks_exact(count.max(1))) {
            lookout.after(size_of_val(scores))?;
            *best = first_greatest(scores.iter()) as i64;
        }
        transform.apply(elements, count, call.resources())?;
        let labels = self.picked(call, best)?;
        let mut outputs = Values::from(labels);
        outputs.extend(floats(call, scores.finish())?);
        Ok(outputs)
    }

    /// The labels at some places.
    pub(super) fn picked(&self, call: &Call<'_>, places: &[i64]) -> Result<Tensor> {
        if self.labels.dtype() == DType::String {
            let all: Vec<&str> = self.labels.strings()?.collect();
            return call.strings(
                &[places.len()],
                places.iter().map(|place| Ok(all.get(*place as usize).copied().unwrap_or(""))),
            );
        }
        let (all, mut output) = (self.labels.as_slice::<i64>()?, call.output::<i64>(&[places.len()])?);
        for (to, place) in output.elements_mut()?.iter_mut().zip(places) {
            *to = all.get(*place as usize).copied().unwrap_or(0);
        }
        Ok(output.finish())
    }
}

/// The place of the greatest element, the first of equal ones.
pub(super) fn first_greatest<T: PartialOrd>(all: impl Iterator<Item = T>) -> usize {
    let mut best: Option<(usize, T)> = None;
    for (k, element) in all.enumerate() {
        if best.as_ref().is_none_or(|(_, best)| element > *best) {
            best = Some((k, element));
        }
    }
    best.map_or(0, |(k, _)| k)
}

/// The scores of two classes, from one score of the second class: the first has its complement to 1 if it is a probability,
/// and its negative otherwise.
pub(super) fn both(call: &Call<'_>, of_second: &[f64], probable: bool) -> Result<NewTensor> {
    let mut scores = call.output_of(DType::Double, [of_second.len(), 2].as_slice().into())?;
    let mut lookout = call.lookout();
    for (to, score) in scores.elements_mut::<f64>()?.chunks_exact_mut(2).zip(of_second) {
        lookout.after(size_of::<[f64; 2]>())?;
        to.copy_from_slice(&[if probable { 1.0 - score } else { -score }, *score]);
    }
    Ok(scores)
}

/// The scores of targets, transformed and rounded once. `scores` are doubles, `targets` for each example.
pub(super) fn targets(
    call: &mut Call<'_>,
    mut scores: NewTensor,
    targets: usize,
    transform: Transform,
    to: DType,
) -> Result<Values> {
    transform.apply(scores.elements_mut()?, targets, call.resources())?;
    rounded(call, scores.finish(), to)
}
