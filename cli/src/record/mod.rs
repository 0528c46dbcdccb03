//! `onnxref run --record`: what a run takes and gives, as a test case; of the whole model or of each of its nodes.

mod nodes;

pub(crate) use nodes::Nodes;

use crate::bounded::{self, Unwritten};
use crate::corpus::folder::NewFolder;
use crate::failure::Failure;
use crate::options::{is_standard_input, shown, standard_input};
use crate::path::Trips;
use crate::proto::ModelProto;
use crate::{messages, print, report};
use onnxref::bytes::Bytes;
use onnxref::document::Document;
use onnxref::inspect::Inspection;
use onnxref::{Error, Kind, LoadOptions, Model, NodeInfo, Outputs, Value, quote};
use onnxref_view::counted;
use prost::Message;
use std::path::Path;

/// An ONNX model whose tensors are all in its file.
pub(crate) struct Whole {
    pub(crate) proto: ModelProto,
    /// The .onnx file.
    bytes: Bytes,
    pub(crate) found: Inspection,
}

impl Whole {
    /// Reads a model with the options, for what is asked by `flag`.
    pub(crate) fn read(path: &Path, options: &LoadOptions, flag: &str) -> Result<Whole, Failure> {
        let options = options.clone().optimize(false);
        let (bytes, found) = if is_standard_input(path) {
            let bytes = standard_input()?;
            (bytes.clone(), options.inspect_bytes(bytes))
        } else {
            let bytes =
                std::fs::read(path).map_err(|error| Failure::run(bounded::error(&path.to_string_lossy(), error)))?;
            (bytes.into(), options.inspect(path))
        };
        let found = found.map_err(Failure::run)?;
        let (mut proto, mut bytes) = decode(path, bytes, &options).ok_or_else(|| {
            Failure::usage(format!("{flag} needs a model in an .onnx file: this one is in another format"))
        })?;
        if proto.graph.is_none() {
            return Err(Failure::usage(format!("{flag}: the model has no graph")));
        }
        let embedded = embedded(path, bytes.clone(), &options).map_err(|error| report::load(&shown(path), error))?;
        if let Some(embedded) = embedded {
            proto = ModelProto::decode(embedded.clone()).map_err(|why| Failure::usage(format!("{flag}: {why}")))?;
            bytes = embedded;
        }
        Ok(Whole { proto, bytes, found })
    }
}

/// A model, and its bytes in an .onnx file: that of a text is made.
fn decode(path: &Path, bytes: Bytes, options: &LoadOptions) -> Option<(ModelProto, Bytes)> {
    if let Ok(proto) = ModelProto::decode(bytes.clone()) {
        return Some((proto, bytes));
    }
    let bytes = document(path, bytes, options).and_then(|document| document.to_bytes()).ok()?;
    Some((ModelProto::decode(bytes.clone()).ok()?, bytes))
}

/// A model of a path, whose file has these bytes.
fn document(path: &Path, bytes: Bytes, options: &LoadOptions) -> onnxref::Result<Document> {
    match is_standard_input(path) {
        true => Document::from_bytes_with(bytes, options),
        false => Document::read_with(path, options),
    }
}

/// The model's file with the tensors of other files in it, also those of bodies, attributes and functions. `None` if no tensor
/// is in another file.
fn embedded(path: &Path, bytes: Bytes, options: &LoadOptions) -> onnxref::Result<Option<Bytes>> {
    let mut document = document(path, bytes, options)?;
    if document.external_files()?.is_empty() {
        return Ok(None);
    }
    document.embed()?;
    document.to_bytes().map(Some)
}

/// The files of a model in a case: `model.onnx`, which has all tensors, or `model.xml` and `model.bin` of an OpenVINO IR.
pub(crate) fn files(path: &Path, options: &LoadOptions, model: &Model) -> Result<Vec<(String, Bytes)>, Failure> {
    let read = |path: &Path| {
        let failed = |error| Failure::run(bounded::error(&path.to_string_lossy(), error));
        std::fs::read(path).map(Bytes::from).map_err(failed)
    };
    let bytes = if is_standard_input(path) { standard_input()? } else { read(path)? };
    // No .onnx file begins as XML does: its first byte would end a group. The text form may.
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii_start();
    if !start.starts_with(b"<") || decode(path, bytes.clone(), options).is_some() {
        return Ok(vec![("model.onnx".to_string(), Whole::read(path, options, "--record")?.bytes)]);
    }
    let mut files = vec![("model.xml".to_string(), bytes)];
    if !model.external_files().is_empty() {
        files.push(("model.bin".to_string(), read(&path.with_extension("bin"))?));
    }
    Ok(files)
}

/// What is recorded of a run.
pub(crate) enum Record<'a> {
    None,
    /// The whole model, with its files.
    Whole(NewFolder<'a>, Vec<(String, Bytes)>),
    Nodes(Box<Nodes<'a>>),
    /// It failed.
    Failed(Failure),
}

impl Record<'_> {
    /// Takes the values of a node.
    pub(crate) fn add(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> onnxref::Result<()> {
        let Record::Nodes(nodes) = self else { return Ok(()) };
        nodes.add(node, trips, outputs).map_err(|failure| {
            *self = Record::Failed(failure);
            Error::new(Kind::Cancelled, "recording failed")
        })
    }

    /// Why recording ended the run.
    pub(crate) fn failed(&mut self) -> Option<Failure> {
        match std::mem::replace(self, Record::None) {
            Record::Failed(failure) => Some(failure),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Ends a run that succeeded.
    pub(crate) fn end(self, model: &Model, inputs: &[(&str, Value)], outputs: &Outputs) -> Result<(), Failure> {
        match self {
            Record::None => Ok(()),
            Record::Failed(failure) => Err(failure),
            Record::Whole(folder, files) => {
                whole(&folder, &files, model, inputs, outputs)?;
                folder.finish()
            }
            Record::Nodes(nodes) => {
                let written = nodes.end()?;
                print::note(&format!("{} recorded", counted(written.cases, "node")));
                Ok(())
            }
        }
    }
}

/// Writes a case of the whole model, as a folder: the model's files, `test_data_set_0/input_0.pb`, ..
fn whole(
    folder: &NewFolder<'_>,
    files: &[(String, Bytes)],
    model: &Model,
    inputs: &[(&str, Value)],
    outputs: &Outputs,
) -> Result<(), Failure> {
    files.iter().try_for_each(|(name, bytes)| folder.file(name, bytes))?;
    for (name, value) in inputs {
        let position = model.inputs().position(|info| info.name == *name).unwrap_or(0);
        let bytes = messages::encoded(name, value).map_err(|why| unwritten(name, why))?;
        folder.file(&set("input", position), &bytes)?;
    }
    for (k, (name, value)) in outputs.iter().enumerate() {
        folder.file(&set("output", k), &messages::encoded(name, value).map_err(|why| unwritten(name, why))?)?;
    }
    Ok(())
}

/// The path of a value's file in a case.
pub(crate) fn set(kind: &str, position: usize) -> String {
    format!("test_data_set_0/{kind}_{position}.pb")
}

/// A value that no .pb file can hold.
pub(crate) fn unwritten(name: &str, why: Unwritten) -> Failure {
    why.failure(name, |why| format!("--record: value {}: {why}", quote(name)))
}
