//! Binarizer: 1 for elements above a threshold, 0 for others.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_Binarizer.html>

use super::entry;
use crate::ops::prelude::*;

pub(super) const BINARIZER: Implementation =
    entry("Binarizer", &[1], |node| Ok(Box::new(Binarizer { threshold: node.float("threshold")? })));

/// `Y = 1 if X > threshold, 0 otherwise`, also for NaN
#[derive(Debug)]
struct Binarizer {
    threshold: f32,
}

impl Operator for Binarizer {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let dtype = call.tensor(0)?.dtype();
        let row = number_row(dtype.format()).ok_or_else(|| Error::bug(&format!("a threshold for {dtype}")))?;
        let limit = Above { threshold: self.threshold, greatest: whole(self.threshold) };
        Ok(call.rowwise([Held::Input(0)], Align::Last, dtype, &|inputs, out| row(&limit, inputs, out))?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

/// Whether numbers are above a threshold.
struct Above {
    threshold: f32,
    /// The greatest integer that isn't above it.
    greatest: i128,
}

/// The greatest integer that isn't above a threshold; it saturates. None is above NaN.
fn whole(threshold: f32) -> i128 {
    if threshold.is_nan() { i128::MAX } else { threshold.floor() as i128 }
}

impl Floats<1> for Above {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        if x > T::of(self.threshold.into()) { T::ONE } else { T::ZERO }
    }
}

impl Ints<1> for Above {
    #[inline(always)]
    fn int<T: Int>(&self, [x]: [T; 1]) -> T {
        if x.to_i128() > self.greatest { T::ONE } else { T::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{float, infer, run, tensor};

    #[test]
    fn thresholds() {
        let name = "ai.onnx.ml.Binarizer";
        let x = tensor(&[4], [1.5f32, 1.0, -2.0, f32::NAN]);
        run(name, 1, [float("threshold", 1.0)], [&x]).gives(tensor(&[4], [1f32, 0.0, 0.0, 0.0]));
        run(name, 1, [float("threshold", -1.5)], [&tensor(&[3], [-1i64, -2, i64::MAX])])
            .gives(tensor(&[3], [1i64, 0, 1]));
        run(name, 1, [float("threshold", f32::NAN)], [&tensor(&[1], [5i32])]).gives(tensor(&[1], [0i32]));
        run(name, 1, [float("threshold", f32::NEG_INFINITY)], [&tensor(&[1], [i32::MIN])]).gives(tensor(&[1], [1i32]));
    }

    #[test]
    fn shapes() {
        infer("ai.onnx.ml.Binarizer", 1, [], ["float[N, 3]"]).gives("[N, 3]");
    }
}
