//! Normalizer: rows divided by their greatest element or their norm.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_Normalizer.html>

use super::missing;
use crate::ops::prelude::*;

pub(super) const NORMALIZER: Implementation = missing("Normalizer", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.choice("norm", &[("MAX", ()), ("L1", ()), ("L2", ())])?;
    facts.ranked(0, 1..=2)?;
    facts.give_shape_of(0, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, string};

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.Normalizer";
        infer(name, 1, [], ["int64[N, 3]"]).gives("[N, 3]");
        infer(name, 1, [], ["int64[N, 3, 1]"]).fails("allowed ranks 1 to 2");
        infer(name, 1, [string("norm", "L3")], ["int64"]).fails("norm is \"L3\": allowed MAX, L1, L2");
    }
}
