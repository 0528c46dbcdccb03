//! Differences of values as text and as JSON.

use crate::json::Element;
use crate::names::grouped;
use onnxref::Scalar;
use onnxref::conformance::{Difference, DifferenceKind};
use serde::Serialize;
use serde_json::Value;
use std::num::NonZeroU64;

/// What may follow the text of a difference: the distance of its first element in units in the last place.
pub fn ulps(difference: &Difference) -> String {
    let steps = difference.ulps.map(|steps| format!(", the first by {} ulp", grouped(steps.get())));
    steps.unwrap_or_default()
}

/// A difference as JSON: `{"kind": .., "path": [..], "got": .., "want": ..}`. Of elements also `"index"`,
/// `"differing"`, `"elements"`, `"greatest_error"`, `"ulps"` and `"greatest_ulps"`.
#[derive(Serialize)]
pub struct Differs<'a> {
    kind: String,
    path: &'a [usize],
    got: Value,
    want: Value,
    #[serde(flatten)]
    elements: Option<Elements<'a>>,
}

#[derive(Serialize)]
struct Elements<'a> {
    index: &'a [usize],
    differing: usize,
    elements: usize,
    greatest_error: Option<Element<'a>>,
    ulps: Option<NonZeroU64>,
    greatest_ulps: Option<NonZeroU64>,
}

impl<'a> Differs<'a> {
    /// The difference, to be serialized.
    pub fn new(difference: &'a Difference) -> Differs<'a> {
        let Difference { kind, path, got, want, .. } = difference;
        let elements = *kind == DifferenceKind::Elements;
        let value = |text: &str| {
            // The text of a number, a bool or a string is JSON, except for infinities and the like.
            let value = if elements { serde_json::from_str(text).ok() } else { None };
            value.unwrap_or_else(|| Value::String(text.to_string()))
        };
        Differs {
            kind: kind.to_string(),
            path,
            got: value(got),
            want: value(want),
            elements: elements.then(|| Elements::new(difference)),
        }
    }
}

impl<'a> Elements<'a> {
    fn new(difference: &'a Difference) -> Elements<'a> {
        let Difference { index, differing, elements, greatest_error, ulps, greatest_ulps, .. } = difference;
        let greatest_error = greatest_error.map(|error| Element(Scalar::Double(error)));
        let (differing, elements) = (*differing, *elements);
        Elements { index, differing, elements, greatest_error, ulps: *ulps, greatest_ulps: *greatest_ulps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::Tensor;
    use onnxref::conformance::Tolerance;

    fn difference(got: Tensor, want: Tensor) -> Difference {
        Tolerance::default().compare(&got.into(), &want.into()).unwrap_err()
    }

    fn json(difference: &Difference) -> String {
        serde_json::to_string(&Differs::new(difference)).unwrap()
    }

    #[test]
    fn floats() {
        let of = difference(Tensor::scalar(1.5f32), Tensor::scalar(1f32));
        assert_eq!(ulps(&of), ", the first by 4,194,304 ulp");
        let all =
            r#""index":[],"differing":1,"elements":1,"greatest_error":0.5,"ulps":4194304,"greatest_ulps":4194304"#;
        assert_eq!(json(&of), format!(r#"{{"kind":"elements","path":[],"got":1.5,"want":1,{all}}}"#));
        assert_eq!(ulps(&difference(Tensor::scalar(1i32), Tensor::scalar(2i32))), "");
        let infinite = json(&difference(Tensor::scalar(f32::NAN), Tensor::scalar(1e-20f32)));
        assert!(infinite.contains(r#""got":"NaN","want":1e-20"#), "{infinite}");
        assert!(infinite.ends_with(r#""greatest_error":"inf","ulps":null,"greatest_ulps":null}"#), "{infinite}");
    }

    #[test]
    fn others() {
        let strings = |text| Tensor::from_strings(&[], [text]).unwrap();
        assert!(json(&difference(strings("a"), strings("1"))).contains(r#""got":"a","want":"1""#));
        assert!(json(&difference(Tensor::scalar(true), Tensor::scalar(false))).contains(r#""got":true,"want":false"#));
        let types = json(&difference(Tensor::scalar(1i32), Tensor::scalar(1u8)));
        assert_eq!(types, r#"{"kind":"type","path":[],"got":"int32[]","want":"uint8[]"}"#);
    }
}
