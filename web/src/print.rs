//! Values and errors as JSON for the page.

use onnxref::{Error, Remedy, Scalar, Tensor, Value, quote};
use onnxref_view::error::Fault;
use onnxref_view::type_name;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value as Json, json};
use std::fmt::{self, Display};

/// Longer tensors are given as a text that is cut in the middle.
const MAX_VALUES: usize = 256;

/// A value with its type: `{"type": .., "shape": .., "values": ..}`. A sequence is `{"type": .., "sequence": [..]}`, an
/// optional `{"type": .., "optional": ..}` with null for none, a map `{"type": .., "keys": .., "map": [..]}`.
pub(crate) struct Valued<'a>(pub(crate) &'a Value);

impl Serialize for Valued<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value_type = self.0.value_type().map(|value_type| type_name(&value_type));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &value_type)?;
        match self.0 {
            Value::Tensor(tensor) => {
                map.serialize_entry("shape", tensor.shape())?;
                if tensor.len() <= MAX_VALUES {
                    map.serialize_entry("values", &Values(tensor))?;
                } else {
                    map.serialize_entry("text", &tensor.values().to_string())?;
                }
            }
            Value::Sequence(sequence) => map.serialize_entry("sequence", &list(sequence.values()))?,
            Value::Optional(optional) => map.serialize_entry("optional", &optional.get().map(Valued))?,
            Value::Map(value) => {
                map.serialize_entry("keys", &Values(value.keys()))?;
                map.serialize_entry("map", &list(value.values()))?;
            }
            other => map.serialize_entry("text", &other.to_string())?,
        }
        map.end()
    }
}

fn list(values: &[Value]) -> Vec<Valued<'_>> {
    values.iter().take(MAX_VALUES).map(Valued).collect()
}

/// Elements as text, so that JavaScript rounds nothing.
struct Values<'a>(&'a Tensor);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.scalars().take(MAX_VALUES).map(|scalar| scalar.to_string()))
    }
}

/// A tensor as a literal: `[[1, 2], [3, "NaN"]]`.
pub(crate) fn literal(tensor: &Tensor) -> String {
    let elements: Vec<String> = tensor.scalars().map(element).collect();
    nested(tensor.shape(), &elements)
}

fn element(scalar: Scalar<'_>) -> String {
    match scalar {
        Scalar::String(text) => Json::from(text).to_string(),
        Scalar::Float(v) if !v.is_finite() => format!("\"{scalar}\""),
        Scalar::Double(v) if !v.is_finite() => format!("\"{scalar}\""),
        Scalar::Complex64(re, im) => format!("[{}, {}]", element(Scalar::Float(re)), element(Scalar::Float(im))),
        Scalar::Complex128(re, im) => format!("[{}, {}]", element(Scalar::Double(re)), element(Scalar::Double(im))),
        other => other.to_string(),
    }
}

/// Elements in nested lists. The rows of a matrix are on lines of their own.
pub(crate) fn nested(shape: &[usize], elements: &[String]) -> String {
    let Some((&size, rest)) = shape.split_first() else { return elements.concat() };
    let each = rest.iter().product::<usize>();
    let parts: Vec<String> =
        (0..size).map(|k| nested(rest, elements.get(k * each..(k + 1) * each).unwrap_or(&[]))).collect();
    let comma = match rest.len() {
        0 => ", ",
        1 => ",\n ",
        _ => ",\n\n ",
    };
    format!("[{}]", parts.join(comma))
}

/// `{"error": FAULT, "allow": [..], "files": BOOL}`: what went wrong, the departures from the standard that would help, and
/// whether files that belong to the model would.
pub(crate) fn error(error: &Error) -> Json {
    let explain = |error: &Error| Explained(error).to_string();
    let mut allow: Vec<&str> = Vec::new();
    for cause in error.causes() {
        if let Some(Remedy::Allow(name)) = cause.remedy()
            && !allow.contains(&name)
        {
            allow.push(name);
        }
    }
    let files = error.causes().iter().any(|cause| matches!(cause.remedy(), Some(Remedy::ExternalData)));
    json!({ "error": Fault::new(error, explain(error), explain), "allow": allow, "files": files })
}

/// An object with more fields.
pub(crate) fn with<const N: usize>(object: Json, fields: [(&str, Json); N]) -> Json {
    let Json::Object(mut object) = object else { return object };
    object.extend(fields.map(|(name, value)| (name.to_string(), value)));
    Json::Object(object)
}

/// As [`error`], for an error of the page.
pub(crate) fn plain(message: &str) -> Json {
    json!({ "error": Fault::other("input", message) })
}

/// As [`plain`], for values that inputs can't take: `"fields": [{"input": .., "message": ..}]`.
pub(crate) fn refused(fields: Vec<(String, String)>) -> Json {
    let message = fields.iter().map(|(input, why)| format!("input {}: {why}", quote(input)));
    let message = message.collect::<Vec<_>>().join("; ");
    let fields: Json = fields.into_iter().map(|(input, why)| json!({ "input": input, "message": why })).collect();
    json!({ "error": Fault::other("input", message), "fields": fields })
}

/// An error's text, with what the page's user may do.
pub(crate) struct Explained<'a>(pub(crate) &'a Error);

impl Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)?;
        match self.0.remedy() {
            Some(Remedy::RaiseLimit(name)) => write!(f, " (limit {name} of this page)"),
            Some(Remedy::ExternalData) => f.write_str(" (drop the model's other files together with it)"),
            _ => Ok(()),
        }
    }
}

/// A text with every character escaped that could change how the text around it is shown.
pub(crate) fn safe(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => c.to_string(),
        c => quote(&c.to_string()).trim_matches('"').to_string(),
    };
    text.chars().map(escape).collect()
}
