//! FeatureVectorizer: the features of several tensors, one after the other.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_FeatureVectorizer.html>

use super::missing;
use crate::ops::prelude::*;

pub(super) const FEATURE_VECTORIZER: Implementation = missing("FeatureVectorizer", infer);

/// A list counts as one row. Where `inputdimensions` has other numbers of features than the inputs, it isn't certain which
/// of them count.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let given = facts.optional("inputdimensions", Node::ints)?;
    let (mut rows, mut columns) = (Dim::Unknown, Dim::Fixed(0));
    for k in 0..facts.input_count() {
        let (own, features) = match facts.ranked(k, 1..=2)? {
            Some([features]) => (Dim::Fixed(1), features),
            Some([rows, features]) => (rows.clone(), features),
            _ => (Dim::Unknown, &Dim::Unknown),
        };
        rows = rows.both(&own).ok_or_else(|| {
            Error::input(format!("input {k} has {own} rows, and others have {rows}: they must be equal")).axis(0)
        })?;
        let certain = given.is_none_or(|given| given.get(k).copied() == features.fixed());
        columns = if certain { columns.plus(features) } else { Dim::Unknown };
    }
    facts.give(0, [rows, columns]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints};

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.FeatureVectorizer";
        infer(name, 1, [], ["float[N, 3]", "float[N, 2]"]).gives("[N, 5]");
        infer(name, 1, [], ["int64[3]", "int64[1, C]"]).gives("[1, C + 3]");
        infer(name, 1, [ints("inputdimensions", &[3, 2])], ["float[N, 3]", "float[?, 2]"]).gives("[N, 5]");
        infer(name, 1, [ints("inputdimensions", &[3, 1])], ["float[N, 3]", "float[?, 2]"]).gives("[N, ?]");
        infer(name, 1, [], ["float[2, 3]", "float"]).gives("[2, ?]");
    }

    #[test]
    fn faults() {
        let name = "ai.onnx.ml.FeatureVectorizer";
        infer(name, 1, [], ["float[2, 3]", "float[3]"])
            .fails("input 1 has 1 rows, and others have 2: they must be equal");
        infer(name, 1, [], ["float[2, 3, 1]"]).fails("allowed ranks 1 to 2");
    }
}
