//! Scaler: features moved by offsets and multiplied by scales.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_Scaler.html>

use super::attributes::{equally_many, one_or_each};
use super::missing;
use crate::ops::prelude::*;

pub(super) const SCALER: Implementation = missing("Scaler", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    equally_many(facts, &["offset", "scale"])?;
    one_or_each(facts, "offset")?;
    one_or_each(facts, "scale")?;
    facts.give_shape_of(0, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.Scaler";
        let floats = |name: &'static str, count: usize| (name, Attribute::Floats(vec![1.0; count]));
        infer(name, 1, [floats("offset", 3), floats("scale", 3)], ["int64[N, 3]"]).gives("[N, 3]");
        infer(name, 1, [], ["float[N, 3]"]).gives("[N, 3]");
        infer(name, 1, [floats("offset", 3), floats("scale", 1)], ["float"])
            .fails("scale has 1 entries, and offset has 3: they must be equally many");
        infer(name, 1, [floats("scale", 2)], ["float[N, 3]"]).fails("scale has 2 entries, but \"X\" has 3 features");
    }
}
