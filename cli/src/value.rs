//! The arguments of `-i` and `-o`: a name, `=`, and a file or a literal. Reads the files.

use crate::image::{self, Pictures};
use crate::{npy, options, print};
use onnxref::bytes::Bytes;
use onnxref::{Dim, Error, Limits, Model, Tensor, Value, ValueInfo, ValueType, quote};
use onnxref_view::document;
use std::path::Path;

/// The kinds of file that hold a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// An encoded `TensorProto`, `SequenceProto`, `OptionalProto` or `MapProto`.
    Pb,
    /// NumPy's, for tensors.
    Npy,
    Json,
    /// A picture, of any kind that is read.
    Image,
}

impl Format {
    /// The format of a file, by its name.
    pub(crate) fn of(path: &str) -> Option<Format> {
        let extension = Path::new(path).extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "pb" => Format::Pb,
            "npy" => Format::Npy,
            "json" => Format::Json,
            "png" | "jpg" | "jpeg" | "bmp" | "webp" | "tif" | "tiff" => Format::Image,
            "jp2" | "j2k" | "pbm" | "pgm" | "ppm" | "pnm" => Format::Image,
            _ => return None,
        })
    }

    /// The format of standard input, by its content.
    fn found(bytes: &[u8]) -> Format {
        if bytes.starts_with(npy::MAGIC) {
            Format::Npy
        } else if bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8\xff") || image::opens(bytes) {
            Format::Image
        } else if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
            Format::Json
        } else {
            Format::Pb
        }
    }
}

/// A text of the form `NAME=REST`.
pub(crate) enum Named<'a, 't> {
    /// The name is declared, or it is omitted and only one is declared.
    Declared(&'a ValueInfo, &'t str),
    /// The name, up to the first `=`, is not declared.
    Other(&'t str),
    /// There is no name.
    Not,
}

/// Splits `NAME=REST`. Names may have a `=` in them, so the longest declared name wins.
pub(crate) fn split<'a, 't>(text: &'t str, declared: impl ExactSizeIterator<Item = &'a ValueInfo>) -> Named<'a, 't> {
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

/// What a value is for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) value_type: Option<&'a ValueType>,
    pub(crate) shape: Option<&'a [Dim]>,
    /// How a picture is read, and what it may take.
    pub(crate) pictures: Option<(&'a Pictures, &'a Limits)>,
}

impl<'a> Wanted<'a> {
    /// A value of this type, if it is known.
    pub(crate) fn of_type(value_type: Option<&'a ValueType>) -> Wanted<'a> {
        Wanted { value_type, shape: None, pictures: None }
    }
}

/// Reads the value of a literal or a file, or of standard input for `-`; or says why it isn't valid.
pub(crate) fn value(text: &str, wanted: Wanted<'_>) -> Result<Value, String> {
    if text == "-" {
        let bytes: Bytes = options::standard_input().map_err(|failure| failure.message)?;
        let format = Format::found(&bytes);
        return decode(bytes, format, wanted, "standard input");
    }
    let Some(format) = Format::of(text) else {
        return document::parse(text, wanted.value_type).map_err(|why| {
            let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            match (json, Path::new(text).is_file()) {
                (true, _) => why,
                (_, true) => {
                    format!(
                        "{}: the file's name must end with .pb, .npy, .json, or as a picture's, such as .png",
                        print::path(text)
                    )
                }
                _ => format!(
                    "{} is neither a file (.pb, .npy, .json, or a picture such as .png) nor JSON: {why}",
                    quote(text)
                ),
            }
        });
    };
    let bytes: Bytes = std::fs::read(text).map_err(|e| format!("{}: {e}", print::path(text)))?.into();
    decode(bytes, format, wanted, &print::path(text))
}

/// The value in a file.
fn decode(bytes: Bytes, format: Format, wanted: Wanted<'_>, file: &str) -> Result<Value, String> {
    let proto = |declared| Value::from_proto_bytes(bytes.clone(), declared).map_err(|error| format!("{error:#}"));
    let (value, form) = match (format, wanted.value_type) {
        (Format::Npy, _) => (npy::read(bytes.clone()).map(Value::from), "a .npy file"),
        (Format::Json, declared) => {
            let text = std::str::from_utf8(&bytes).map_err(|e| format!("{file}: {e}"))?;
            return document::parse(text, declared).map_err(|why| format!("{file}: {why}"));
        }
        (Format::Image, declared) => {
            let Some(pictures) = wanted.pictures else { return Err(format!("{file}: a picture can't be used here")) };
            return image::read(&bytes, pictures, declared, wanted.shape)
                .map(Value::from)
                .map_err(|why| format!("{file}: {why}"));
        }
        (Format::Pb, Some(declared @ ValueType::Sequence(_))) => (proto(declared), "an encoded SequenceProto"),
        (Format::Pb, Some(declared @ ValueType::Optional(_))) => (proto(declared), "an encoded OptionalProto"),
        (Format::Pb, Some(declared @ ValueType::Map(..))) => (proto(declared), "an encoded MapProto"),
        (Format::Pb, _) => {
            let tensor = Tensor::from_proto_bytes(bytes.clone());
            (tensor.map(Value::from).map_err(|error| format!("{error:#}")), "an encoded TensorProto")
        }
    };
    // What starts as the format does is broken, not something else.
    let own = format == Format::Npy && bytes.starts_with(npy::MAGIC);
    value.map_err(|why| match guess(&bytes).filter(|_| !own) {
        Some(guess) => format!("{file}: expected {form}, but the file {guess}"),
        None => format!("{file}: {why}"),
    })
}

/// A guess at what an unexpected file is.
fn guess(bytes: &Bytes) -> Option<&'static str> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if bytes.is_empty() {
        Some("is empty")
    } else if starts(npy::MAGIC) {
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
