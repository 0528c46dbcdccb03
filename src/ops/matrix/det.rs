//! Det: the determinants of square matrices.
//! <https://onnx.ai/onnx/operators/onnx__Det.html>

use crate::ops::prelude::*;
use kernels::determinant::eliminate;
use std::fmt::Display;

pub(super) const DET: Implementation = Implementation::run("Det", &[11, 22], |_| Ok(Box::new(Det)));

/// `Y[..] = determinant of X[.., :, :]`, computed in f64 and rounded once. Without rows it is 1.
#[derive(Debug)]
struct Det;

impl Operator for Det {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let &[ref batch @ .., size, columns] = x.shape() else {
            let text = format!("\"X\" has shape {}: it needs at least 2 dimensions", ShapeText(x.shape()));
            return Err(Error::input(text).parameter("X"));
        };
        if size != columns {
            return Err(not_square(ShapeText(x.shape()), batch.len()));
        }
        let mut output = call.output_of(x.dtype(), Shape::from_slice(batch))?;
        call.charge((x.len() as u64).saturating_mul(size as u64))?;
        let mut room = call.scratch::<f64>(x.len())?;
        converted(x, DType::Double, cast_slice_mut(room.elements_mut::<f64>()), call.context())?;
        eliminate(room.elements_mut(), size, call.resources())?;
        let matrices: &[f64] = room.elements_mut();
        let mut lookout = call.lookout();
        by_type!(floats, x.dtype(), S as _T => {
            for (k, to) in output.elements_mut::<S>()?.iter_mut().enumerate() {
                let diagonal = matrices.get(k * size * size..).unwrap_or(&[]).iter().step_by(size + 1).take(size);
                let mut rounded = [S::default()];
                // There is no -0.
                let product = [lanes::product(diagonal.copied()) + 0.0];
                of_f64(S::DTYPE.format(), cast_slice(&product), cast_slice_mut(&mut rounded));
                [*to] = rounded;
                lookout.after(size * size_of::<f64>())?;
            }
            Ok::<_, Error>(())
        })?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some([batch @ .., rows, columns]) = facts.ranked(0, 2..)? else { return Ok(()) };
        if rows.both(columns).is_none() {
            return Err(not_square(DimsText(facts.dims(0).unwrap_or_default()), batch.len()));
        }
        facts.give(0, batch);
        Ok(())
    }
}

#[cold]
fn not_square(shape: impl Display, batch: usize) -> Error {
    let text = format!("\"X\" has shape {shape}: its matrices are not square");
    Error::input(text).parameter("X").axis(batch as i64 + 1)
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, run, tensor};
    use half::f16;

    #[test]
    fn determinants() {
        let x = [0f32, 1., 2., 3., 1., 2., 2., 4.];
        run("Det", 11, [], [&tensor(&[2, 2], &x[..4])]).gives(tensor(&[], [-2f32]));
        run("Det", 22, [], [&tensor(&[2, 1, 2, 2], x)]).gives(tensor(&[2, 1], [-2f32, 0.]));
        run("Det", 22, [], [&tensor(&[1, 1], [f16::from_f32(0.1)])]).gives(tensor(&[], [f16::from_f32(0.1)]));
        run("Det", 11, [], [&tensor(&[3, 3], [2f64, 7., 8., 0., 3., 9., 0., 0., 5.])]).gives(tensor(&[], [30f64]));
        run("Det", 11, [], [&tensor(&[2, 0, 0], Vec::<f32>::new())]).gives(tensor(&[2], [1f32, 1.]));
        for size in [3, 1 << 31, 1 << 32, 3 << 33] {
            run("Det", 11, [], [&tensor(&[0, size, size], Vec::<f32>::new())]).gives(tensor(&[0], Vec::<f32>::new()));
        }
    }

    /// The product of a diagonal may be beyond all numbers on the way.
    #[test]
    fn large_and_small_pivots() {
        for [first, last] in [[1e38f32, 1e-38], [1e-38, 1e38]] {
            let diagonal = |k: usize| match (k % 21, k < 200) {
                (0, true) => first,
                (0, false) => last,
                _ => 0.0,
            };
            let matrix = tensor(&[20, 20], (0..400).map(diagonal).collect::<Vec<f32>>());
            let mut want = 1f64;
            (0..10).for_each(|_| want *= f64::from(first) * f64::from(last));
            run("Det", 11, [], [&matrix]).gives(tensor(&[], [want as f32]));
        }
    }

    #[test]
    fn refusals() {
        run("Det", 11, [], [&tensor(&[1, 3, 4], [1f32; 12])])
            .fails("\"X\" has shape [1, 3, 4]: its matrices are not square");
        run("Det", 11, [], [&tensor(&[3], [1f32; 3])]).fails("\"X\" has shape [3]: it needs at least 2 dimensions");
    }

    #[test]
    fn shapes() {
        infer("Det", 11, [], ["float[N, 2, M, M]"]).gives("[N, 2]");
        infer("Det", 22, [], ["float[3, ?]"]).gives("[]");
        infer("Det", 22, [], ["float"]).gives("");
        infer("Det", 11, [], ["float[N, 3, 4]"]).fails("\"X\" has shape [N, 3, 4]: its matrices are not square");
        infer("Det", 11, [], ["float[3]"]).fails("\"X\" has shape [3] of rank 1: allowed ranks from 2 on");
    }
}
