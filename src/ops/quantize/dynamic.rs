//! DynamicQuantizeLinear: floats as uint8, with the scale and the zero point that fit them.
//! <https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html>

use crate::ops::prelude::*;

pub(super) const DYNAMIC_QUANTIZE_LINEAR: Implementation = Implementation::missing("", "DynamicQuantizeLinear", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.give_shape_of(0, 0);
    facts.give(1, []);
    facts.give(2, []);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        infer("DynamicQuantizeLinear", 11, [], ["float[N, 3]"]).gives_all(["[N, 3]", "[]", "[]"]);
        infer("DynamicQuantizeLinear", 11, [], ["float"]).gives_all(["", "[]", "[]"]);
    }
}
