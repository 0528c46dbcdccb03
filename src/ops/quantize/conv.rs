//! QLinearConv: a convolution of quantized images, quantized again.
//! <https://onnx.ai/onnx/operators/onnx__QLinearConv.html>

use crate::ops::prelude::*;

pub(super) const QLINEAR_CONV: Implementation = Implementation::missing("", "QLinearConv", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.one_for_each(4, (3, 0))?;
    facts.one_for_each(5, (3, 0))?;
    Filters::of(facts, [0, 3], Some(8))?.give(facts)
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints};

    #[test]
    fn shapes() {
        let (x, scale, zero) = ("uint8[N, 3, 7, W]", "float[]", "uint8[]");
        infer(
            "QLinearConv",
            10,
            [],
            [x, scale, zero, "int8[8, 3, 3, 3]", "float[8]", "int8[8]", scale, zero, "int32[8]"],
        )
        .gives("[N, 8, 5, W - 2]");
        infer(
            "QLinearConv",
            10,
            [ints("strides", &[2, 2])],
            [x, scale, zero, "int8[M, 3, 1, 1]", scale, "int8[]", scale, zero],
        )
        .gives("[N, M, 4, floor((W - 1)/2) + 1]");
    }

    #[test]
    fn faults() {
        let (x, w, scale, zero) = ("uint8[N, 3, 7, 7]", "int8[8, 3, 3, 3]", "float[]", "uint8[]");
        infer("QLinearConv", 10, [], [x, scale, zero, w, "float[3]", "int8[3]", scale, zero])
            .fails("dimension 0 of \"w\" of shape [8, 3, 3, 3] is 8, and dimension 0 of \"w_scale\" of shape [3] is 3");
        infer("QLinearConv", 10, [], [x, scale, zero, w, scale, "int8[]", scale, zero, "int32[7]"])
            .fails("dimension 0 of \"B\" of shape [7] is 7");
    }
}
