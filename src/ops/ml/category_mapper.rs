//! CategoryMapper: integers for strings, or strings for integers.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_CategoryMapper.html>

use super::attributes::equally_many;
use super::missing;
use crate::ops::prelude::*;

pub(super) const CATEGORY_MAPPER: Implementation = missing("CategoryMapper", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    equally_many(facts, &["cats_int64s", "cats_strings"])?;
    facts.give_shape_of(0, 0);
    if let Some(from) = facts.input_type(0) {
        facts.give_type(0, if *from == DType::String.into() { DType::Int64 } else { DType::String });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, strings};

    #[test]
    fn shapes_and_types() {
        let name = "ai.onnx.ml.CategoryMapper";
        let cats = [ints("cats_int64s", &[1, 2]), strings("cats_strings", &["a", "b"])];
        infer(name, 1, cats.clone(), ["string[N, 3]"]).gives("[N, 3]");
        infer(name, 1, cats.clone(), ["string[N, 3]"]).has_type("int64");
        infer(name, 1, cats, ["int64[N, 3]"]).has_type("string");
        infer(name, 1, [ints("cats_int64s", &[1, 2]), strings("cats_strings", &["a"])], ["string"])
            .fails("cats_strings has 1 entries, and cats_int64s has 2: they must be equally many");
    }
}
