//! What follows `-i` and `-o`: a name, `=`, and a file or a literal.

use crate::failure::Failure;
use crate::print;
use crate::{literal, npy};
use onnxref::{Model, Tensor, Value, ValueInfo, ValueType, quote};
use std::path::Path;

/// The kinds of file that hold a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// An encoded `TensorProto`, `SequenceProto`, `OptionalProto` or `MapProto`.
    Pb,
    /// NumPy's, for tensors.
    Npy,
}

impl Format {
    pub(crate) fn of(path: &str) -> Option<Format> {
        let extension = Path::new(path).extension()?;
        let is = |name: &str| extension.eq_ignore_ascii_case(name);
        if is("pb") { Some(Format::Pb) } else { is("npy").then_some(Format::Npy) }
    }
}

/// The name and value of an input: `NAME=VALUE`, or `VALUE` where the model has one input.
pub(crate) fn feed<'a>(text: &'a str, model: &'a Model) -> Result<(&'a str, Value), Failure> {
    let (name, text, declared) = match split(text, model.inputs()) {
        Named::Declared(info, value) => (info.name.as_str(), value, info.value_type.as_ref()),
        Named::Other(name, value) => (name, value, None),
        Named::Not => {
            let names: Vec<String> = model.inputs().map(|info| quote(&info.name)).collect();
            let takes = if names.is_empty() { "none".to_string() } else { names.join(", ") };
            let text = format!("-i {}: NAME= is missing; the model's inputs: {takes}", quote(text));
            return Err(Failure::usage(text));
        }
    };
    let value = value(text, declared).map_err(|why| Failure::usage(format!("input {}: {why}", quote(name))))?;
    Ok((name, value))
}

/// A text of the form `NAME=REST`.
pub(crate) enum Named<'a> {
    /// The name is declared, or it is left out and only one is declared.
    Declared(&'a ValueInfo, &'a str),
    /// The name, up to the first `=`, is not declared.
    Other(&'a str, &'a str),
    /// There is no name.
    Not,
}

/// Splits `NAME=REST`. Names may have a `=` in them, so the longest declared name wins.
pub(crate) fn split<'a>(text: &'a str, declared: impl ExactSizeIterator<Item = &'a ValueInfo>) -> Named<'a> {
    let declared: Vec<&ValueInfo> = declared.collect();
    let rest = |info: &&'a ValueInfo| text.strip_prefix(&info.name)?.strip_prefix('=');
    let named = declared.iter().filter_map(|info| Some((*info, rest(info)?)));
    if let Some((info, rest)) = named.max_by_key(|(info, _)| info.name.len()) {
        return Named::Declared(info, rest);
    }
    // A literal or a file may have a `=` in it too.
    let alone = |text: &str| !text.contains('=') || Path::new(text).exists() || text.starts_with(['[', '"']);
    match (declared.as_slice(), text.split_once('=')) {
        ([only], _) if alone(text) => Named::Declared(only, text),
        (_, Some((name, rest))) => Named::Other(name, rest),
        _ => Named::Not,
    }
}

fn value(text: &str, declared: Option<&ValueType>) -> Result<Value, String> {
    let Some(format) = Format::of(text) else {
        return literal::parse(text, declared.and_then(ValueType::dtype)).map(Value::from).map_err(|why| {
            let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            let hint = "neither a .pb or .npy file nor a JSON literal";
            if json { why } else { format!("{} is {hint}: {why}", quote(text)) }
        });
    };
    let bytes = std::fs::read(text).map_err(|e| format!("{}: {e}", print::path(text)))?;
    let value = match (format, declared) {
        (Format::Npy, _) => npy::read(&bytes).map(Value::from),
        (Format::Pb, Some(declared)) if declared.dtype().is_none() => {
            Value::from_proto_bytes(bytes, declared).map_err(|e| e.to_string())
        }
        (Format::Pb, _) => Tensor::from_proto_bytes(bytes).map(Value::from).map_err(|e| e.to_string()),
    };
    value.map_err(|why| format!("{}: {why}", print::path(text)))
}
