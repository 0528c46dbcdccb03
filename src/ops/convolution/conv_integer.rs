//! ConvInteger: a convolution of small integers, each less its zero point, added up in int32.
//! <https://onnx.ai/onnx/operators/onnx__ConvInteger.html>

use crate::ops::prelude::*;

pub(super) const CONV_INTEGER: Implementation = Implementation::missing("", "ConvInteger", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.one_for_each(3, (1, 0))?;
    Filters::of(facts, [0, 1], None)?.give(facts)
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints};

    #[test]
    fn shapes() {
        let (x, w) = ("uint8[N, 1, 3, W]", "uint8[M, 1, 2, 2]");
        infer("ConvInteger", 10, [], [x, w, "uint8[]"]).gives("[N, M, 2, W - 1]");
        infer("ConvInteger", 10, [ints("pads", &[1, 1, 1, 1])], [x, w, "-", "uint8[M]"]).gives("[N, M, 4, W + 1]");
        infer("ConvInteger", 10, [], [x, "int8[4, 1, 2, 2]", "uint8[1]", "int8[1]"]).gives("[N, 4, 2, W - 1]");
    }

    #[test]
    fn faults() {
        let x = "uint8[N, 1, 3, 3]";
        infer("ConvInteger", 10, [], [x, "int8[4, 1, 2, 2]", "-", "int8[3]"]).fails(
            "dimension 0 of \"w\" of shape [4, 1, 2, 2] is 4, and dimension 0 of \"w_zero_point\" of shape [3] is 3",
        );
        infer("ConvInteger", 10, [], [x, "int8[4, 2, 2, 2]"])
            .fails("\"x\" has 1 channels, but the filters of 1 groups have 2 each");
    }
}
