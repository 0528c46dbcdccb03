//! CastMap: the values of a map as a tensor, in the order of its keys.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_CastMap.html>

use super::missing;
use crate::ops::prelude::*;

pub(super) const CAST_MAP: Implementation = missing("CastMap", infer);

/// The text doesn't say what rank the tensor has.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.choice("map_form", &[("DENSE", ()), ("SPARSE", ())])?;
    let types = [("TO_FLOAT", DType::Float), ("TO_STRING", DType::String), ("TO_INT64", DType::Int64)];
    facts.give_type(0, facts.choice("cast_to", &types)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, string};

    #[test]
    fn types() {
        let name = "ai.onnx.ml.CastMap";
        infer(name, 1, [], ["-"]).has_type("float32");
        infer(name, 1, [string("cast_to", "TO_INT64")], ["-"]).has_type("int64");
        infer(name, 1, [string("cast_to", "INT64")], ["-"])
            .fails("cast_to is \"INT64\": allowed TO_FLOAT, TO_STRING, TO_INT64");
        infer(name, 1, [string("map_form", "THIN")], ["-"]).fails("map_form is \"THIN\": allowed DENSE, SPARSE");
    }
}
