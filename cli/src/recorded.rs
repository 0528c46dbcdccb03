//! The values that a model should give: a folder that `--dump` wrote, or what another program wrote.

use crate::dump::INDEX;
use crate::failure::Failure;
use crate::path::{Step, ValuePath};
use crate::{file_name, npy, npz, print};
use onnxref::{Limits, Tensor, Value, ValueType, quote};
use onnxref_view::plain;
use serde::Deserialize;
use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Values that were written by a run, or by another program: read when they are asked for.
pub(crate) struct Recorded {
    folder: PathBuf,
    values: HashMap<ValuePath, Source>,
}

/// Where a recorded value is.
enum Source {
    /// A file of the folder.
    File(String),
    /// An entry of a .npz file.
    Entry(Tensor),
}

/// What is read of an index. Everything else in it is for people.
#[derive(Deserialize)]
struct Listing {
    values: Vec<Listed>,
    /// Why the run that wrote it ended before its last node.
    ended: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    file: String,
    #[serde(default)]
    path: Vec<Step>,
    #[serde(default)]
    depth: usize,
}

/// What an index needs.
const EXAMPLE: &str = r#"{"values": [{"name": "/lm/Add_output_0", "file": "0.npy"}]}"#;

impl Recorded {
    /// A .npz file, by the names of its entries; a folder that `--dump` wrote, or any with an index.json; or one of .npy
    /// and .pb files named after their values.
    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<Recorded, Failure> {
        let read = if path.is_dir() { listed(path) } else { entries(path, limits) };
        let wrong = |why: String| Failure::usage(format!("{}: {why}", print::path(&path.to_string_lossy())));
        let values = read.map_err(wrong)?;
        if values.is_empty() {
            return Err(wrong("it has no values: no index.json, .npy or .pb files".to_string()));
        }
        Ok(Recorded { folder: path.to_path_buf(), values })
    }

    /// A value, of this type if it isn't a tensor; or why it can't be read.
    pub(crate) fn get(&self, path: &ValuePath, value_type: Option<&ValueType>) -> Option<Result<Value, String>> {
        let file = match self.values.get(path)? {
            Source::Entry(tensor) => return Some(Ok(tensor.clone().into())),
            Source::File(file) => file,
        };
        let read = || {
            let bytes = std::fs::read(self.folder.join(file)).map_err(|e| e.to_string())?;
            match value_type {
                _ if file.ends_with(".npy") => npy::read(bytes).map(Value::from),
                Some(of) if of.dtype().is_none() => Value::from_proto_bytes(bytes, of).map_err(|e| format!("{e:#}")),
                _ => Tensor::from_proto_bytes(bytes).map(Value::from).map_err(|e| format!("{e:#}")),
            }
        };
        Some(read().map_err(|why| format!("{}: {why}", plain(file))))
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// The values of a folder.
fn listed(folder: &Path) -> Result<HashMap<ValuePath, Source>, String> {
    let mut values = HashMap::new();
    let text = match std::fs::read(folder.join(INDEX)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())? {
                let file = entry.map_err(|e| e.to_string())?.file_name().to_string_lossy().into_owned();
                if let Some((name, "npy" | "pb")) = file.rsplit_once('.') {
                    values.insert(ValuePath::outermost(&file_name::unescaped(name)), Source::File(file));
                }
            }
            return Ok(values);
        }
        Err(error) => return Err(format!("{INDEX}: {error}")),
    };
    let wrong = |why: String| format!("{INDEX}: {why}; each value needs a name and a file: {EXAMPLE}");
    let listing: Listing = serde_json::from_slice(&text).map_err(|e| wrong(print::text(&e.to_string())))?;
    if let Some(why) = &listing.ended {
        let folder = print::path(&folder.to_string_lossy());
        print::note(&format!("{folder}: the dump is not complete: {}", print::text(why)));
    }
    for Listed { name, file, path, depth } in listing.values {
        // Earlier versions listed values of subgraphs without their paths.
        if depth > 0 && path.is_empty() {
            continue;
        }
        let path = ValuePath { name, path };
        let within = Path::new(&file).components().all(|part| matches!(part, Component::Normal(_)));
        if !within || !(file.ends_with(".npy") || file.ends_with(".pb")) {
            return Err(wrong(format!(
                "{} is {}, which is not a .npy or .pb file of the folder",
                path.text(),
                quote(&file)
            )));
        }
        let text = path.text();
        if values.insert(path, Source::File(file)).is_some() {
            return Err(format!("{INDEX}: {text} is listed twice: only \"path\" tells values of one name apart"));
        }
    }
    Ok(values)
}

/// The values of a .npz file.
fn entries(path: &Path, limits: &Limits) -> Result<HashMap<ValuePath, Source>, String> {
    let mut values = HashMap::new();
    for (name, tensor) in npz::read(&std::fs::read(path).map_err(|e| e.to_string())?, limits)? {
        if values.insert(ValuePath::outermost(&name), Source::Entry(tensor)).is_some() {
            return Err(format!("it has two entries {}", quote(&name)));
        }
    }
    Ok(values)
}
