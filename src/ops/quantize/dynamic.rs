//! DynamicQuantizeLinear: floats as uint8, with the scale and the zero point that fit them.
//! <https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html>

use crate::ops::prelude::*;

pub(super) const DYNAMIC_QUANTIZE_LINEAR: Implementation =
    Implementation { domain: "", name: "DynamicQuantizeLinear", versions: &[11], make: Make::Expand(expand) };

/// `y_scale = (max(0, x..) - min(0, x..)) / 255`, `y_zero_point = round(clip(0 - min(0, x..) / y_scale))`,
/// `y = saturate(round(x / y_scale) + y_zero_point)`
///
/// The function body of the standard, in its steps of float32. If all elements are 0 so is the scale, as the text says,
/// and with it the zero point and the output.
fn expand(_: &Node<'_>, body: &mut Body<'_>) -> Result<()> {
    let x = BodyValue::Input(0);
    let all = || [("keepdims", Attribute::Int(0))];
    let (least, most) = (body.constant(Tensor::scalar(0f32))?, body.constant(Tensor::scalar(255f32))?);
    let x_least = body.node("ReduceMin", 11, all(), [x])?;
    let x_least = body.node("Min", 8, [], [x_least, least])?;
    let x_most = body.node("ReduceMax", 11, all(), [x])?;
    let x_most = body.node("Max", 8, [], [x_most, least])?;
    let range = body.node("Sub", 7, [], [x_most, x_least])?;
    let scale = body.node("Div", 7, [], [range, most])?;
    let scaled = body.node("Div", 7, [], [x_least, scale])?;
    let zero = body.node("Sub", 7, [], [least, scaled])?;
    let zero = body.node("Clip", 11, [], [zero, least, most])?;
    let zero = body.node("Round", 11, [], [zero])?;
    let zero = body.node("Cast", 9, [("to", Attribute::Int(DType::Uint8.code().into()))], [zero])?;
    let y = body.node("QuantizeLinear", 10, [], [x, scale, zero])?;
    body.output(y)?;
    body.output(scale)?;
    body.output(zero)
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
    }
}
