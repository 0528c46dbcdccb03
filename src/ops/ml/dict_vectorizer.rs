//! DictVectorizer: the values of a map at the places of their keys in a vocabulary, zeros at others.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_DictVectorizer.html>

use super::attributes::only;
use super::missing;
use crate::ops::prelude::*;

pub(super) const DICT_VECTORIZER: Implementation = missing("DictVectorizer", infer);

/// The output is a list, as the text has it. Some engines make a row of it.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let (name, count) = only(facts, &["int64_vocabulary", "string_vocabulary"])?;
    facts.give(0, [Dim::Fixed(count)]);
    if let Some(ValueType::Map(key, value)) = facts.input_type(0) {
        if (*key == DType::String) != (name == "string_vocabulary") {
            let text = format!("{name} is given, but the keys of \"X\" are {key}");
            return Err(Error::model(text).attribute(name));
        }
        facts.give_type(0, (**value).clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, strings};

    #[test]
    fn shapes_and_types() {
        let name = "ai.onnx.ml.DictVectorizer";
        infer(name, 1, [strings("string_vocabulary", &["a", "b"])], ["map(string,int64)"]).gives("[2]");
        infer(name, 1, [strings("string_vocabulary", &["a", "b"])], ["map(string,int64)"]).has_type("int64");
        infer(name, 1, [ints("int64_vocabulary", &[5, 6])], ["map(int64,double)"]).has_type("float64");
    }

    #[test]
    fn faults() {
        let name = "ai.onnx.ml.DictVectorizer";
        infer(name, 1, [], ["map(int64,float)"])
            .fails("neither int64_vocabulary nor string_vocabulary is given: one is needed");
        let both = [ints("int64_vocabulary", &[5]), strings("string_vocabulary", &["a"])];
        infer(name, 1, both, ["-"]).fails("int64_vocabulary and string_vocabulary are both given: allowed is one");
        infer(name, 1, [ints("int64_vocabulary", &[5])], ["map(string,float)"])
            .fails("int64_vocabulary is given, but the keys of \"X\" are string");
    }
}
