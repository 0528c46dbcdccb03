//! Values and errors as JSON for the page.

use onnxref::{DType, Error, Missing, Remedy, Scalar, Tensor, Value, ValueType, quote};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value as Json, json};
use std::fmt::{self, Display};

/// Longer tensors are given as a text that is cut in the middle.
const MAX_VALUES: usize = 256;

/// Maximum number of faults and of missing operators that are shown.
const MAX_FAULTS: usize = 100;

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

/// `{"error": {"kind": .., "message": .., "count": N, "causes": [..], "needs": ..}}`
pub(crate) fn error(error: &Error) -> Json {
    let cause = |cause: &Error| {
        let allow = match cause.remedy() {
            Some(Remedy::Allow(name)) => Some(name),
            _ => None,
        };
        json!({ "kind": cause.kind().to_string(), "message": Explained(cause).to_string(), "allow": allow })
    };
    let needs = error.needs().map(|needs| {
        let missing = |missing: &Missing| {
            let first = &missing.first;
            let first = first.node.clone().or_else(|| first.node_index.map(|index| format!("#{index}")));
            json!({
                "operator": missing.to_string(), "nodes": missing.nodes, "reason": missing.reason, "first": first,
            })
        };
        json!({
            "text": needs.to_string(),
            "missing": needs.missing.iter().take(MAX_FAULTS).map(missing).collect::<Vec<_>>(),
        })
    });
    json!({ "error": {
        "kind": error.kind().to_string(),
        "message": Explained(error).to_string(),
        "count": error.fault_count(),
        "causes": error.causes().iter().take(MAX_FAULTS).map(cause).collect::<Vec<_>>(),
        "needs": needs,
    } })
}

/// As [`error`], for an error of the page.
pub(crate) fn plain(message: &str) -> Json {
    json!({ "error": {
        "kind": "input", "message": message, "count": 1, "causes": [{ "kind": "input", "message": message }],
    } })
}

/// As [`plain`], for values that inputs can't take: `"faults": [{"input": .., "message": ..}]`.
pub(crate) fn refused(faults: Vec<(String, String)>) -> Json {
    let message = faults.iter().map(|(input, why)| format!("input {}: {why}", quote(input)));
    let Json::Object(mut answer) = plain(&message.collect::<Vec<_>>().join("; ")) else { return Json::Null };
    let faults = faults.into_iter().map(|(input, why)| json!({ "input": input, "message": why }));
    answer.insert("faults".to_string(), faults.collect());
    Json::Object(answer)
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

/// A name as it is, or quoted if it has characters that could change how the text around it is shown.
pub(crate) fn safe(name: &str) -> String {
    let quoted = quote(name);
    if quoted.len() == name.len() + 2 { name.to_string() } else { quoted }
}

/// The NumPy name of an element type, or the standard's if NumPy has none.
pub(crate) fn dtype_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Float => "float32",
        DType::Double => "float64",
        other => other.name(),
    }
}

/// A type as the standard writes it, with the names of [`dtype_name`].
pub(crate) fn type_name(value_type: &ValueType) -> String {
    match value_type {
        ValueType::Tensor(dtype) => dtype_name(*dtype).to_string(),
        ValueType::Sequence(element) => format!("seq({})", type_name(element)),
        ValueType::Optional(element) => format!("optional({})", type_name(element)),
        ValueType::Map(key, element) => format!("map({},{})", dtype_name(*key), type_name(element)),
        other => other.to_string(),
    }
}
