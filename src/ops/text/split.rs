//! StringSplit: the parts of strings between delimiters, and their numbers.
//! <https://onnx.ai/onnx/operators/onnx__StringSplit.html>

use crate::ops::prelude::*;

pub(super) const STRING_SPLIT: Implementation = Implementation::missing("", "StringSplit", infer);

/// Only the run knows how many parts the string with the most of them has.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    if let Some(dims) = facts.dims(0) {
        facts.give(0, [dims, &[Dim::Unknown]].concat());
        facts.give(1, dims);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        infer("StringSplit", 20, [], ["string[N, 3]"]).gives_all(["[N, 3, ?]", "[N, 3]"]);
        infer("StringSplit", 20, [], ["string[]"]).gives_all(["[?]", "[]"]);
        infer("StringSplit", 20, [], ["string"]).gives_all(["", ""]);
    }
}
