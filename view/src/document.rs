//! Values of all types written as JSON: bare, or as [`Described`](crate::json::Described) writes them.

use crate::literal::{show, tensor};
use crate::names::{dtype_name, type_name};
use onnxref::{DType, Map, Optional, Sequence, Tensor, Value, ValueType, quote};
use serde_json::{Map as Object, Value as Json};

/// Parses a value. A tensor is a [literal](crate::literal) or `{"dtype": .., "shape": .., "values": [..]}`, a sequence a
/// list of values, an optional a value or null, a map an object. Each may have its type with it, as
/// [`Described`](crate::json::Described) writes it; it must then be the declared one. Without either it is a tensor.
///
/// # Errors
/// If the text is not JSON, or not a value of the type, with the place in it.
pub fn parse(text: &str, declared: Option<&ValueType>) -> Result<Value, String> {
    value(&serde_json::from_str(text).map_err(|e| e.to_string())?, declared)
}

fn value(json: &Json, declared: Option<&ValueType>) -> Result<Value, String> {
    match (declared, json) {
        (None | Some(ValueType::Tensor(_)), Json::Object(fields)) => described(fields, declared).map(Value::from),
        (None | Some(ValueType::Tensor(_)), _) => tensor(json, declared.and_then(ValueType::dtype)).map(Value::from),
        (Some(of @ ValueType::Sequence(element)), _) => {
            let Json::Array(list) = part(json, "sequence") else { return Err(wrong(json, of, "a list")) };
            let values = list.iter().enumerate().map(|(k, json)| inner(json, element, &format!("element {k}")));
            let sequence = Sequence::new((**element).clone(), values.collect::<Result<Vec<_>, _>>()?);
            sequence.map(Value::from).map_err(|e| format!("{e:#}"))
        }
        (Some(ValueType::Optional(element)), _) => Ok(match part(json, "optional") {
            Json::Null => Optional::none((**element).clone()).into(),
            some => Optional::some(value(some, Some(element))?).into(),
        }),
        (Some(of @ ValueType::Map(key, element)), _) => {
            let Json::Object(fields) = json else { return Err(wrong(json, of, "an object")) };
            let (keys, values) = match (fields.get("keys"), fields.get("map")) {
                (Some(keys), Some(Json::Array(values))) => (keys.clone(), values.iter().collect::<Vec<_>>()),
                _ => (Json::Array(fields.keys().map(|name| key_of(name, *key)).collect()), fields.values().collect()),
            };
            let keys = tensor(&keys, Some(*key)).map_err(|why| format!("the keys: {why}"))?;
            let values = values.into_iter().enumerate().map(|(k, json)| inner(json, element, &format!("value {k}")));
            let values = Sequence::new((**element).clone(), values.collect::<Result<Vec<_>, _>>()?);
            values.and_then(|values| Map::new(keys, values)).map(Value::from).map_err(|e| format!("{e:#}"))
        }
        (Some(of), _) => Err(format!("a value of type {} can't be written as JSON", type_name(of))),
    }
}

fn inner(json: &Json, of: &ValueType, place: &str) -> Result<Value, String> {
    value(json, Some(of)).map_err(|why| format!("{place}: {why}"))
}

/// The value in a field, if its type is with it; else the whole.
fn part<'a>(json: &'a Json, field: &str) -> &'a Json {
    json.as_object().filter(|fields| fields.contains_key("type")).and_then(|fields| fields.get(field)).unwrap_or(json)
}

/// The key of a map that has a name in JSON.
fn key_of(name: &str, key: DType) -> Json {
    if key == DType::String {
        return name.into();
    }
    serde_json::from_str(name).unwrap_or_else(|_| name.into())
}

fn wrong(json: &Json, of: &ValueType, want: &str) -> String {
    format!("{} is not a value of type {}: expected {want}", show(json), type_name(of))
}

/// A tensor with its type and shape.
fn described(fields: &Object<String, Json>, declared: Option<&ValueType>) -> Result<Tensor, String> {
    let (Some(Json::String(name)), Some(shape), Some(values)) =
        (fields.get("dtype"), fields.get("shape"), fields.get("values"))
    else {
        return Err("an object must have \"dtype\", \"shape\" and \"values\"".to_string());
    };
    let dtype = DType::all().find(|dtype| dtype_name(*dtype) == name || dtype.name() == name);
    let dtype = dtype.ok_or_else(|| format!("{} is not an element type", quote(name)))?;
    if let Some(declared) = declared.and_then(ValueType::dtype).filter(|declared| *declared != dtype) {
        return Err(format!("it has element type {name}, but {} is expected", dtype_name(declared)));
    }
    let dims: Option<Vec<usize>> = shape.as_array().and_then(|dims| dims.iter().map(dim).collect());
    let shape = dims.ok_or_else(|| format!("{} is not a shape: expected a list of sizes", show(shape)))?;
    let flat = tensor(values, Some(dtype))?;
    if flat.rank() != 1 {
        return Err("\"values\" must be a list of elements, in row-major order".to_string());
    }
    reshaped(flat, &shape).map_err(|e| format!("{e:#}"))
}

fn dim(json: &Json) -> Option<usize> {
    json.as_u64().and_then(|size| size.try_into().ok())
}

fn reshaped(flat: Tensor, shape: &[usize]) -> onnxref::Result<Tensor> {
    match flat.dtype() {
        DType::String => Tensor::from_strings(shape, flat.strings()?),
        dtype => Tensor::new(dtype, shape, flat.bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Described;

    #[track_caller]
    fn reads_back(text: &str, of: &ValueType) -> Value {
        let value = parse(text, Some(of)).unwrap();
        assert!(value.is_of(of), "{value}");
        let written = serde_json::to_string(&Described(&value)).unwrap();
        assert_eq!(parse(&written, Some(of)).unwrap(), value, "{written}");
        value
    }

    #[test]
    fn values_of_all_types_read_back() {
        let float = ValueType::from(DType::Float);
        let sequence = reads_back("[[1, 2.5], [], 3]", &float.clone().sequence());
        assert_eq!(sequence.sequence().unwrap().values().len(), 3);
        assert!(reads_back("null", &float.clone().optional()).optional().unwrap().get().is_none());
        assert_eq!(
            reads_back("7", &float.clone().optional()).optional().unwrap().get(),
            Some(&Tensor::scalar(7f32).into())
        );
        reads_back("[[\"a\"], [\"b\", \"c\"]]", &ValueType::from(DType::String).sequence().optional());
        for key in [DType::Int64, DType::String] {
            let map = reads_back("{\"1\": 0.5, \"-2\": [1, 2]}", &ValueType::Map(key, Box::new(float.clone())));
            assert_eq!(map.map().unwrap().keys().len(), 2);
        }
        for dtype in [DType::Float, DType::Bfloat16, DType::Int4, DType::Bool, DType::Complex64] {
            let text = match dtype {
                DType::Bool => "[[true], [false]]",
                DType::Complex64 => "[[[1, 2]], [[3, \"NaN\"]]]",
                _ => "[[1], [-2]]",
            };
            let value = parse(text, Some(&dtype.into())).unwrap();
            let written = serde_json::to_string(&Described(&value)).unwrap();
            let again = parse(&written, Some(&dtype.into())).unwrap();
            assert_eq!(again.tensor().unwrap().bytes(), value.tensor().unwrap().bytes());
            assert_eq!(again.tensor().unwrap().shape(), [2, 1]);
        }
        // Without a declared type the document says it.
        let text = "{\"dtype\": \"int8\", \"shape\": [1, 2], \"values\": [1, 2]}";
        assert_eq!(parse(text, None).unwrap(), Tensor::new(DType::Int8, &[1, 2], vec![1, 2]).unwrap().into());
    }

    #[test]
    fn what_does_not_fit() {
        let float = ValueType::from(DType::Float);
        let error = |text: &str, of: &ValueType| parse(text, Some(of)).unwrap_err();
        assert_eq!(
            error("[1, \"x\"]", &float.clone().sequence()),
            "element 1: \"x\" is not a valid float32: allowed numbers, \"NaN\", \"inf\", \"-inf\""
        );
        assert_eq!(error("3", &float.clone().sequence()), "3 is not a value of type seq(float32): expected a list");
        assert_eq!(error("{}", &float), "an object must have \"dtype\", \"shape\" and \"values\"");
        let int8 = "{\"dtype\": \"int8\", \"shape\": [3], \"values\": [1, 2]}";
        assert_eq!(error(int8, &float), "it has element type int8, but float32 is expected");
        assert!(error(int8, &DType::Int8.into()).contains("3"), "{}", error(int8, &DType::Int8.into()));
        // Texts of a file are quoted, escaped and cut.
        let described = |dtype: &str, shape: &str| {
            error(&format!("{{\"dtype\": \"{dtype}\", \"shape\": {shape}, \"values\": [1]}}"), &float)
        };
        assert_eq!(
            described("\\u001b]0;x\\u0007\u{202e}", "[1]"),
            r#""\u{1b}]0;x\u{7}\u{202e}" is not an element type"#
        );
        let long = described(&"x".repeat(1 << 20), "[1]");
        assert_eq!(long, format!("\"{}…(1048576 bytes)\" is not an element type", "x".repeat(100)));
        assert_eq!(described("float32", "[-1]"), "[-1] is not a shape: expected a list of sizes");
        let shape = format!("\"{}\"", "\u{9b}".repeat(1 << 20));
        let why = format!("\"{}… is not a shape: expected a list of sizes", "\\u{9b}".repeat(59));
        assert_eq!(described("float32", &shape), why);
        let map = ValueType::Map(DType::Int64, Box::new(float));
        assert_eq!(error("{\"x\": 1}", &map), "the keys: \"x\" at [0] is not a valid int64: allowed integers");
    }
}
