//! LabelEncoder: other values for those that a table has.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_LabelEncoder.html>

use super::attributes::{equally_many, only};
use super::missing;
use crate::ops::prelude::*;

pub(super) const LABEL_ENCODER: Implementation = missing("LabelEncoder", infer);

/// In version 1 the table has the strings of integers, from 0 on, and is read in both directions.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.give_shape_of(0, 0);
    let from = facts.input_type(0).and_then(ValueType::dtype);
    if facts.version() < 2 {
        if let Some(from) = from {
            facts.give_type(0, if from == DType::String { DType::Int64 } else { DType::String });
        }
        return Ok(());
    }
    let [(keys, key), (values, value)] = [side(facts, "keys")?, side(facts, "values")?];
    if let Some(from) = from.filter(|from| *from != key) {
        return Err(Error::model(format!("{keys} holds {key}, but \"X\" is {from}")).attribute(keys));
    }
    facts.check_output_type(values, value)?;
    facts.give_type(0, value);
    equally_many(facts, &[keys, values])
}

/// The list on one side of the table, and its type. Tensors came with version 4.
fn side(facts: &Inference<'_>, of: &str) -> Result<(&'static str, DType)> {
    let lists = match of {
        "keys" => ["keys_floats", "keys_int64s", "keys_strings", "keys_tensor"],
        _ => ["values_floats", "values_int64s", "values_strings", "values_tensor"],
    };
    let known = if facts.version() < 4 { 3 } else { 4 };
    let (name, _) = only(facts, lists.get(..known).unwrap_or(&lists))?;
    let dtype = match facts.attribute(name) {
        Some(Attribute::Tensor(tensor)) => tensor.dtype(),
        Some(Attribute::Floats(_)) => DType::Float,
        Some(Attribute::Ints(_)) => DType::Int64,
        _ => DType::String,
    };
    Ok((name, dtype))
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, ints, strings};
    use crate::tensor::Tensor;

    const NAME: &str = "ai.onnx.ml.LabelEncoder";

    #[test]
    fn shapes_and_types() {
        infer(NAME, 1, [], ["string[N, 3]"]).gives("[N, 3]");
        infer(NAME, 1, [], ["string[N, 3]"]).has_type("int64");
        infer(NAME, 1, [], ["int64[N, 3]"]).has_type("string");
        infer(NAME, 2, [strings("keys_strings", &["a"]), ints("values_int64s", &[1])], ["string[N]"]).has_type("int64");
        let tensor = |name: &'static str| (name, Attribute::Tensor(Tensor::from_elements(&[1], vec![1i16]).unwrap()));
        infer(NAME, 4, [tensor("keys_tensor"), tensor("values_tensor")], ["int16[N]"]).has_type("int16");
        infer(NAME, 4, [ints("keys_int64s", &[1]), tensor("values_tensor")], ["int64[N]"]).gives("[N]");
    }

    #[test]
    fn faults() {
        let keys = || ints("keys_int64s", &[1]);
        infer(NAME, 2, [keys(), ints("values_int64s", &[1])], ["string[N]"])
            .fails("keys_int64s holds int64, but \"X\" is string");
        infer(NAME, 2, [keys(), ints("values_int64s", &[1, 2])], ["int64[N]"])
            .fails("values_int64s has 2 entries, and keys_int64s has 1: they must be equally many");
        infer(NAME, 2, [keys()], ["int64"])
            .fails("neither values_floats, values_int64s nor values_strings is given: one is needed");
        infer(NAME, 4, [keys(), strings("keys_strings", &["a"])], ["int64"])
            .fails("keys_int64s and keys_strings are both given: allowed is one");
        let halves = Attribute::Tensor(Tensor::from_elements(&[1], vec![true]).unwrap());
        infer(NAME, 4, [keys(), ("values_tensor", halves)], ["int64"]).fails("values_tensor asks for bool: allowed");
    }
}
