//! StringNormalizer: strings without stop words, in upper or lower case.
//! <https://onnx.ai/onnx/operators/onnx__StringNormalizer.html>

use super::Passing;
use crate::ops::prelude::*;
use std::collections::HashSet;

pub(super) const STRING_NORMALIZER: Implementation = Implementation::run("StringNormalizer", &[10], load);

/// `Y` has the strings of `X` that are no stop words, in their order, in another case if asked for. If none is left, it has
/// an empty string. Cases are those of Unicode: the text leaves `locale` to the environment, which would decide what a model
/// computes.
#[derive(Debug)]
struct StringNormalizer {
    stops: StopWords,
    case: Case,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Case {
    Lower,
    Upper,
    Same,
}

const CASES: [(&str, Case); 3] = [("LOWER", Case::Lower), ("UPPER", Case::Upper), ("NONE", Case::Same)];

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(StringNormalizer { stops: StopWords::of(node)?, case: node.choice("case_change_action", &CASES)? }))
}

/// The words, without differences of case unless these count.
#[derive(Debug)]
struct StopWords {
    words: HashSet<String>,
    /// The bytes of the longest word.
    longest: usize,
    cased: bool,
}

impl StopWords {
    /// Upper bound on the memory of a word beside its text: a slot in a table that grows.
    const SLOT: usize = 128;

    fn of(node: &Node<'_>) -> Result<StopWords> {
        let given = node.optional("stopwords", Node::strings)?.unwrap_or(&[]);
        // Without case a word has at most three times the bytes, in memory that doubles while it grows.
        node.bill(given.iter().map(|word| StopWords::SLOT + 9 * word.len()).sum())?;
        let cased = node.flag("is_case_sensitive")?;
        let words: HashSet<String> =
            given.iter().map(|word| if cased { word.clone() } else { caseless(word).collect() }).collect();
        Ok(StopWords { longest: words.iter().map(String::len).max().unwrap_or(0), words, cased })
    }

    /// Whether a string is a stop word. `key` is memory for its form without case.
    fn has(&self, text: &str, key: &mut String) -> bool {
        if self.cased {
            return self.words.contains(text);
        }
        key.clear();
        for letter in caseless(text) {
            if key.len() >= self.longest {
                return false;
            }
            key.push(letter);
        }
        self.words.contains(key.as_str())
    }
}

/// Texts that differ in case only have the same letters: `ß`, `ẞ` and `SS`, `k` and the Kelvin sign.
fn caseless(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase).flat_map(char::to_uppercase)
}

/// A string in another case.
fn changed(call: &Call<'_>, text: &str, case: Case) -> Result<Passing> {
    let len = |letters: usize, letter: char| letters + letter.len_utf8();
    let own = text.len();
    let bytes = match case {
        Case::Lower => text.chars().flat_map(char::to_lowercase).fold(0, len),
        Case::Upper => text.chars().flat_map(char::to_uppercase).fold(0, len),
        Case::Same => own,
    };
    // Memory for more than the text has now doubles, and is moved.
    let bytes = if bytes <= own { own } else { bytes.saturating_mul(3) };
    Passing::new(call, bytes, || match case {
        Case::Lower => text.to_lowercase(),
        Case::Upper => text.to_uppercase(),
        Case::Same => text.to_string(),
    })
}

impl Operator for StringNormalizer {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(check)?;
        let x = call.tensor(0)?;
        let (mut lookout, mut key) = (call.lookout(), String::new());
        let mut places = call.scratch::<u64>(x.len())?;
        let places = places.elements_mut::<u64>();
        let mut count = 0;
        for (k, text) in x.strings()?.enumerate() {
            call.charge(text.len() as u64)?;
            lookout.after(DType::String.size() + text.len())?;
            if !self.stops.has(text, &mut key)
                && let Some(place) = places.get_mut(count)
            {
                (*place, count) = (k as u64, count + 1);
            }
        }
        let mut shape = Shape::from_slice(x.shape());
        if let Some(last) = shape.last_mut() {
            *last = count.max(1);
        }
        let size = DType::String.size();
        let kept = places.get(..count).unwrap_or(&[]).iter();
        let kept = kept.map(|k| x.bytes().get(*k as usize * size..).and_then(|rest| rest.get(..size)).unwrap_or(&[]));
        if count == 0 {
            return Ok(call.strings(&shape, std::iter::once(Ok("")))?.into());
        }
        if self.case != Case::Same {
            return Ok(call.strings(&shape, kept.map(|view| changed(call, x.viewed(view), self.case)))?.into());
        }
        let mut output = call.output_like(x, shape)?;
        for (to, view) in output.bytes_mut().chunks_exact_mut(size).zip(kept) {
            lookout.after(size)?;
            to.copy_from_slice(view);
        }
        Ok(output.finish().into())
    }

    /// A list stays as it is if nothing is removed; but an empty one becomes one of an empty string.
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        check(facts)?;
        let Some([rows @ .., columns]) = facts.dims(0) else { return Ok(()) };
        let left = match columns {
            Dim::Fixed(0) => Dim::Fixed(1),
            Dim::Fixed(_) if self.stops.words.is_empty() => columns.clone(),
            _ => Dim::Unknown,
        };
        facts.give(0, [vec![Dim::Fixed(1); rows.len()], vec![left]].concat());
        Ok(())
    }
}

/// Fails unless the input is a list, or one row.
fn check(facts: &Inference<'_>) -> Result<()> {
    let Some(dims) = facts.ranked(0, 1..=2)? else { return Ok(()) };
    match dims {
        [Dim::Fixed(rows), _] if *rows != 1 => {
            let text = format!("\"X\" has shape {}: [C] or [1, C] is needed", DimsText(dims));
            Err(Error::input(text).parameter("X").axis(0).size(*rows))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, string, strings};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn list(strings: &[&str]) -> Value {
        Tensor::from_strings(&[strings.len()], strings).unwrap().into()
    }

    fn row(strings: &[&str]) -> Value {
        Tensor::from_strings(&[1, strings.len()], strings).unwrap().into()
    }

    fn normal<const A: usize>(attributes: [(&str, Attribute); A], given: &Value, want: &Value) {
        run("StringNormalizer", 10, attributes, [given]).gives(want);
    }

    #[test]
    fn cases() {
        let given = list(&["Straße", "ΟΔΟΣ", "İ", "", "ǆ", "ﬁn"]);
        normal([string("case_change_action", "LOWER")], &given, &list(&["straße", "οδος", "i̇", "", "ǆ", "ﬁn"]));
        normal([string("case_change_action", "UPPER")], &given, &list(&["STRASSE", "ΟΔΟΣ", "İ", "", "Ǆ", "FIN"]));
        normal([string("locale", "tr_TR"), string("case_change_action", "UPPER")], &row(&["i"]), &row(&["I"]));
        normal([], &given, &given);
        let long = "ΐ".repeat(1000);
        let want = "\u{399}\u{308}\u{301}".repeat(1000);
        normal([string("case_change_action", "UPPER")], &list(&[&long]), &list(&[&want]));
    }

    #[test]
    fn stop_words() {
        let words = || strings("stopwords", &["The", "STRASSE", "όσος", ""]);
        let given = list(&["the", "THE", "them", "th", "Straße", "ΌΣΟΣ", "", "x", "The"]);
        normal([words()], &given, &list(&["them", "th", "x"]));
        let sensitive = [words(), int("is_case_sensitive", 1)];
        normal(sensitive, &given, &list(&["the", "THE", "them", "th", "Straße", "ΌΣΟΣ", "x"]));
        let upper = [words(), string("case_change_action", "UPPER")];
        normal(upper, &row(&["the", "Them", "The"]), &row(&["THEM"]));
        normal([words()], &list(&["the", "tHe"]), &list(&[""]));
        normal([words()], &row(&["the"]), &row(&[""]));
        normal([words()], &list(&[]), &list(&[""]));
        normal([words()], &row(&[]), &row(&[""]));
        // The sign of Kelvin is a K.
        normal([strings("stopwords", &["k"])], &list(&["\u{212a}", "K", "ok"]), &list(&["ok"]));
    }

    #[test]
    fn other_shapes_are_refused() {
        let of = |shape: &[usize]| -> Value {
            Tensor::from_strings(shape, vec![""; shape.iter().product()]).unwrap().into()
        };
        run("StringNormalizer", 10, [], [&of(&[2, 1])]).fails("\"X\" has shape [2, 1]: [C] or [1, C] is needed");
        run("StringNormalizer", 10, [], [&of(&[])]).fails("\"X\" has shape [] of rank 0: allowed ranks 1 to 2");
        run("StringNormalizer", 10, [int("is_case_sensitive", 2)], [&of(&[1])])
            .fails("is_case_sensitive is 2: allowed 0, 1");
    }

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
