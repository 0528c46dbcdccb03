//! OneHotEncoder: for each element zeros, with a one at the place of its category.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_OneHotEncoder.html>

use super::attributes::only;
use super::missing;
use crate::ops::prelude::*;

pub(super) const ONE_HOT_ENCODER: Implementation = missing("OneHotEncoder", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let (name, categories) = only(facts, &["cats_int64s", "cats_strings"])?;
    if let Some(input) = facts.input_type(0)
        && (*input == DType::String.into()) != (name == "cats_strings")
    {
        return Err(Error::model(format!("{name} is given, but \"X\" is {input}")).attribute(name));
    }
    if let Some(dims) = facts.dims(0) {
        facts.give(0, [dims, &[Dim::Fixed(categories)]].concat());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, strings};

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.OneHotEncoder";
        infer(name, 1, [ints("cats_int64s", &[1, 2])], ["float[N, 3]"]).gives("[N, 3, 2]");
        infer(name, 1, [strings("cats_strings", &["a"])], ["string[]"]).gives("[1]");
        infer(name, 1, [strings("cats_strings", &["a"])], ["string"]).gives("");
        infer(name, 1, [ints("cats_int64s", &[1, 2])], ["string[N]"])
            .fails("cats_int64s is given, but \"X\" is string");
        infer(name, 1, [], ["float[N]"]).fails("neither cats_int64s nor cats_strings is given");
    }
}
