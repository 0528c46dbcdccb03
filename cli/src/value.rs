//! The arguments of `-i` and `-o`: a name, `=`, and a file or a literal. Reads the files.

use crate::npy;
use crate::print;
use onnxref::bytes::Bytes;
use onnxref::{Error, Model, Tensor, Value, ValueInfo, ValueType, quote};
use onnxref_view::literal;
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

/// A text of the form `NAME=REST`.
pub(crate) enum Named<'a> {
    /// The name is declared, or it is omitted and only one is declared.
    Declared(&'a ValueInfo, &'a str),
    /// The name, up to the first `=`, is not declared.
    Other(&'a str),
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
        (_, Some((name, _))) => Named::Other(name),
        _ => Named::Not,
    }
}

/// Reads the value of a literal or a file, or says why it isn't valid.
pub(crate) fn value(text: &str, declared: Option<&ValueType>) -> Result<Value, String> {
    let Some(format) = Format::of(text) else {
        return literal::parse(text, declared.and_then(ValueType::dtype)).map(Value::from).map_err(|why| {
            let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            match (json, Path::new(text).is_file()) {
                (true, _) => why,
                (_, true) => {
                    format!("{}: expected a .pb file (an encoded TensorProto) or a .npy file", print::path(text))
                }
                _ => format!("{} is neither a .pb or .npy file nor JSON: {why}", quote(text)),
            }
        });
    };
    let bytes: Bytes = std::fs::read(text).map_err(|e| format!("{}: {e}", print::path(text)))?.into();
    let proto = |declared| Value::from_proto_bytes(bytes.clone(), declared).map_err(|error| format!("{error:#}"));
    let (value, form) = match (format, declared) {
        (Format::Npy, _) => (npy::read(&bytes).map(Value::from), "a .npy file"),
        (Format::Pb, Some(declared @ ValueType::Sequence(_))) => (proto(declared), "an encoded SequenceProto"),
        (Format::Pb, Some(declared @ ValueType::Optional(_))) => (proto(declared), "an encoded OptionalProto"),
        (Format::Pb, Some(declared @ ValueType::Map(..))) => (proto(declared), "an encoded MapProto"),
        (Format::Pb, _) => {
            let tensor = Tensor::from_proto_bytes(bytes.clone());
            (tensor.map(Value::from).map_err(|error| format!("{error:#}")), "an encoded TensorProto")
        }
    };
    value.map_err(|why| match guess(&bytes) {
        Some(guess) => format!("{}: expected {form}, but the file {guess}", print::path(text)),
        None => format!("{}: {why}", print::path(text)),
    })
}

/// A guess at what an unexpected file is.
fn guess(bytes: &Bytes) -> Option<&'static str> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if bytes.is_empty() {
        Some("is empty")
    } else if starts(b"\x93NUMPY") {
        Some("seems to be a .npy file")
    } else if starts(b"PK\x03\x04") {
        Some("seems to be a zip archive, as .npz files are")
    } else if is_model(bytes) {
        Some("seems to be an ONNX model")
    } else if Tensor::from_proto_bytes(bytes.clone()).is_ok() {
        Some("seems to be an encoded TensorProto")
    } else {
        let plain = |text: &str| !text.chars().any(|c| c.is_control() && !c.is_whitespace());
        std::str::from_utf8(bytes).is_ok_and(plain).then_some("seems to be text")
    }
}

/// Whether a file can be loaded as a model, or at least has nodes.
fn is_model(bytes: &Bytes) -> bool {
    let has_nodes = |error: Error| error.causes().iter().any(|cause| cause.place().node_index.is_some());
    Model::from_bytes(bytes.clone()).map_or_else(has_nodes, |_| true)
}
