//! Tables of errors: how each result differs from the expected error.

use onnxref::{Error, Kind, Place};
use std::fmt::Debug;

/// How a result differs from the expected error, ignoring its place.
pub fn difference(name: &str, result: Result<impl Debug, Error>, kind: Kind, text: &str) -> Option<String> {
    compare(name, result, kind, text, None)
}

/// As [`difference`], of one cause at a place.
pub fn difference_at(
    name: &str,
    result: Result<impl Debug, Error>,
    kind: Kind,
    text: &str,
    place: &Place,
) -> Option<String> {
    compare(name, result, kind, text, Some(place))
}

/// All cases of a table are checked before it fails.
pub fn assert_as_expected(differences: impl IntoIterator<Item = Option<String>>) {
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

fn compare(
    name: &str,
    result: Result<impl Debug, Error>,
    kind: Kind,
    text: &str,
    place: Option<&Place>,
) -> Option<String> {
    let error = match result {
        Ok(value) => return Some(format!("{name}\n  is no error: {value:?}\n  and not     {text}")),
        Err(error) => error,
    };
    let mut lines = Vec::new();
    if error.kind() != kind {
        lines.push(format!("  is of kind  {}\n  and not     {kind}", error.kind()));
    }
    if error.to_string() != text {
        lines.push(format!("  says        {error}\n  and not     {text}"));
    }
    if let Some(place) = place {
        if error.place() != place {
            lines.push(format!("  is at       {:?}\n  and not     {place:?}", error.place()));
        }
        if error.causes().len() != 1 {
            lines.push(format!("  has several causes: {:?}", error.causes()));
        }
    }
    (!lines.is_empty()).then(|| format!("{name}\n{}", lines.join("\n")))
}
