//! ArrayFeatureExtractor: the entries along the last dimension that indices pick.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_ArrayFeatureExtractor.html>

use super::missing;
use crate::ops::prelude::*;

pub(super) const ARRAY_FEATURE_EXTRACTOR: Implementation = missing("ArrayFeatureExtractor", infer);

/// The text doesn't say what becomes of a list: engines make a row of it.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    if let Some([rows @ .., _]) = facts.ranked(0, 1..)?
        && !rows.is_empty()
    {
        let count = facts.dims(1).map_or(Dim::Unknown, Dim::product);
        facts.give(0, [rows, &[count]].concat());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.ArrayFeatureExtractor";
        infer(name, 1, [], ["float[N, 3]", "int64[2, 2]"]).gives("[N, 4]");
        infer(name, 1, [], ["string[2, N, 3]", "int64"]).gives("[2, N, ?]");
        infer(name, 1, [], ["float[3]", "int64[2]"]).gives("");
        infer(name, 1, [], ["float[]", "int64[2]"]).fails("allowed ranks from 1 on");
    }
}
