//! StringConcat: the strings of two tensors, one after the other.
//! <https://onnx.ai/onnx/operators/onnx__StringConcat.html>

use crate::ops::prelude::*;

pub(super) const STRING_CONCAT: Implementation =
    Implementation::missing("", "StringConcat", |facts| facts.give_broadcast(Align::Last));

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        infer("StringConcat", 20, [], ["string[N, 1]", "string[3]"]).gives("[N, 3]");
        infer("StringConcat", 20, [], ["string[2]", "string[3]"]).fails("don't broadcast");
    }
}
