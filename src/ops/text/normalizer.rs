//! StringNormalizer: strings without stop words, in upper or lower case.
//! <https://onnx.ai/onnx/operators/onnx__StringNormalizer.html>

use crate::ops::prelude::*;

pub(super) const STRING_NORMALIZER: Implementation = Implementation::missing("", "StringNormalizer", infer);

/// A list stays as it is if nothing is removed; but an empty one becomes one of an empty string.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.flag("is_case_sensitive")?;
    facts.choice("case_change_action", &[("LOWER", ()), ("UPPER", ()), ("NONE", ())])?;
    let Some(dims) = facts.ranked(0, 1..=2)? else { return Ok(()) };
    if let [Dim::Fixed(rows), _] = dims
        && *rows != 1
    {
        let text = format!("\"X\" has shape {}: [C] or [1, C] is needed", DimsText(dims));
        return Err(Error::input(text).parameter("X").axis(0).size(*rows));
    }
    let removes = facts.attribute("stopwords").is_some() && !facts.strings("stopwords")?.is_empty();
    let left = match dims.last() {
        Some(Dim::Fixed(0)) => Dim::Fixed(1),
        Some(size @ Dim::Fixed(_)) if !removes => size.clone(),
        _ => Dim::Unknown,
    };
    facts.give(0, [vec![Dim::Fixed(1); dims.len() - 1], vec![left]].concat());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, string, strings};

    #[test]
    fn shapes() {
        let stops = [strings("stopwords", &["a"])];
        infer("StringNormalizer", 10, stops.clone(), ["string[4]"]).gives("[?]");
        infer("StringNormalizer", 10, stops.clone(), ["string[?, C]"]).gives("[1, ?]");
        infer("StringNormalizer", 10, stops, ["string"]).gives("");
        infer("StringNormalizer", 10, [], ["string[1, 4]"]).gives("[1, 4]");
        infer("StringNormalizer", 10, [], ["string[0]"]).gives("[1]");
        infer("StringNormalizer", 10, [], ["string[C]"]).gives("[?]");
    }

    #[test]
    fn faults() {
        infer("StringNormalizer", 10, [], ["string[2, C]"]).fails("\"X\" has shape [2, C]: [C] or [1, C] is needed");
        infer("StringNormalizer", 10, [], ["string[1, 1, C]"]).fails("allowed ranks 1 to 2");
        infer("StringNormalizer", 10, [string("case_change_action", "lower")], ["string[2]"])
            .fails("case_change_action is \"lower\": allowed LOWER, UPPER, NONE");
    }
}
