//! Binarizer: 1 for elements above a threshold, 0 for others.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_Binarizer.html>

use super::missing;
use crate::ops::prelude::*;

pub(super) const BINARIZER: Implementation = missing("Binarizer", |facts| {
    facts.give_shape_of(0, 0);
    Ok(())
});

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        infer("ai.onnx.ml.Binarizer", 1, [], ["float[N, 3]"]).gives("[N, 3]");
    }
}
