//! Imputer: elements of one value replaced by others.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_Imputer.html>

use super::attributes::{one_or_each, only};
use super::missing;
use crate::ops::prelude::*;

pub(super) const IMPUTER: Implementation = missing("Imputer", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let (name, _) = only(facts, &["imputed_value_floats", "imputed_value_int64s"])?;
    if let Some(input) = facts.input_type(0)
        && matches!(input.dtype(), Some(DType::Float | DType::Double)) != (name == "imputed_value_floats")
    {
        return Err(Error::model(format!("{name} is given, but \"X\" is {input}")).attribute(name));
    }
    one_or_each(facts, name)?;
    facts.give_shape_of(0, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints};

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.Imputer";
        infer(name, 1, [ints("imputed_value_int64s", &[1, 2, 3])], ["int64[N, 3]"]).gives("[N, 3]");
        infer(name, 1, [ints("imputed_value_int64s", &[1])], ["int32[N, C]"]).gives("[N, C]");
    }

    #[test]
    fn faults() {
        let name = "ai.onnx.ml.Imputer";
        infer(name, 1, [ints("imputed_value_int64s", &[1, 2])], ["int64[N, 3]"])
            .fails("imputed_value_int64s has 2 entries, but \"X\" has 3 features: allowed 1, 3");
        infer(name, 1, [ints("imputed_value_int64s", &[1])], ["float[N, 3]"])
            .fails("imputed_value_int64s is given, but \"X\" is float32");
        infer(name, 1, [], ["float[N, 3]"]).fails("neither imputed_value_floats nor imputed_value_int64s is given");
    }
}
