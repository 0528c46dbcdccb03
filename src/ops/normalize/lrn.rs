//! LRN: entries divided by a power of the squares of channels near theirs.
//! <https://onnx.ai/onnx/operators/onnx__LRN.html>

use crate::ops::prelude::*;

pub(super) const LRN: Implementation = Implementation::missing("", "LRN", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    windows::one_or_more(facts, "size")?;
    facts.ranked(0, 2..)?;
    facts.give_shape_of(0, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes() {
        infer("LRN", 1, [int("size", 3)], ["float[N, C, 5]"]).gives("[N, C, 5]");
        infer("LRN", 13, [int("size", 3)], ["float"]).gives("");
        infer("LRN", 13, [int("size", 0)], ["float[N, C]"]).fails("size is 0: it must be at least 1");
        infer("LRN", 13, [int("size", 1)], ["float[N]"]).fails("allowed ranks from 2 on");
    }
}
