//! DynamicQuantizeLinear: floats as uint8, with the scale and the zero point that fit them.
//! <https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html>

use crate::ops::prelude::*;
use kernels::quantize::{Quantize, Scales, Spread, extremes, quantize};

pub(super) const DYNAMIC_QUANTIZE_LINEAR: Implementation =
    Implementation::run("DynamicQuantizeLinear", &[11], |_| Ok(Box::new(DynamicQuantizeLinear)));

/// `y_scale = (max(0, x..) - min(0, x..)) / 255`, `y_zero_point = round(clip(0 - min(0, x..) / y_scale))`,
/// `y = saturate(round(x / y_scale) + y_zero_point)`
///
/// In float32, step by step as the function body of the standard. If all elements are 0 so is the scale, as the text says,
/// and with it the zero point and the output; as if one is NaN, but for the scale, which is NaN then.
#[derive(Debug)]
struct DynamicQuantizeLinear;

impl Operator for DynamicQuantizeLinear {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        call.charge(x.len() as u64)?;
        let [least, most] = extremes(x.as_slice()?, call.resources())?;
        let scale = (most - least) / 255.0;
        let zero = (0.0 - least / scale).clamp(0.0, 255.0).round_ties_even() as u8;
        let mut y = call.output_of(DType::Uint8, Shape::from_slice(x.shape()))?;
        let scales = Scales { spread: Spread::All, scales: &[scale], zeros: Some(&[f32::from(zero)]) };
        let work = Quantize { from: DType::Float.format(), to: DType::Uint8.format(), half: None, saturate: true };
        quantize(work, scales, x.aligned_bytes(), y.bytes_mut(), call.resources())?;
        let (mut y_scale, mut y_zero) = (call.output::<f32>(&[])?, call.output::<u8>(&[])?);
        y_scale.elements_mut()?.fill(scale);
        y_zero.elements_mut()?.fill(zero);
        Ok([y.finish().into(), y_scale.finish().into(), y_zero.finish().into()].into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        facts.give(1, []);
        facts.give(2, []);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{run, tensor};

    #[test]
    fn the_range_has_0() {
        let x = tensor(&[2, 3], [0f32, 2.0, -3.0, -2.5, 1.34, 0.5]);
        let want =
            [tensor(&[2, 3], [153u8, 255, 0, 26, 221, 179]), tensor(&[], [0.019607844f32]), tensor(&[], [153u8])];
        run("DynamicQuantizeLinear", 11, [], [&x]).gives_all(want);
        let want = [tensor(&[2], [1u8, 255]), tensor(&[], [1f32]), tensor(&[], [0u8])];
        run("DynamicQuantizeLinear", 28, [], [&tensor(&[2], [1f32, 255.0])]).gives_all(want);
        let want = [tensor(&[2], [0u8, 254]), tensor(&[], [1f32]), tensor(&[], [255u8])];
        run("DynamicQuantizeLinear", 11, [], [&tensor(&[2], [-255f32, -1.0])]).gives_all(want);
    }

    #[test]
    fn without_a_range() {
        for shape in [[3], [0]] {
            let (x, y) = (tensor(&shape, vec![0f32; shape[0]]), tensor(&shape, vec![0u8; shape[0]]));
            run("DynamicQuantizeLinear", 11, [], [&x]).gives_all([y, tensor(&[], [0f32]), tensor(&[], [0u8])]);
        }
        let x = tensor(&[3], [1.0, f32::NAN, -2.0]);
        let want = [tensor(&[3], [0u8; 3]), tensor(&[], [f32::NAN]), tensor(&[], [0u8])];
        run("DynamicQuantizeLinear", 11, [], [&x]).gives_all(want);
    }
}
