//! A folder with the values of a run: `index.json`, and a file for each value.

use crate::failure::Failure;
use crate::{npy, output, print};
use onnxref::{Error, Kind, NodeInfo, Result, Tensor, Value, ValueType};
use onnxref_view::type_name;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The name of the list of values.
const INDEX: &str = "index.json";

/// Maximum number of characters of a value's name in the name of its file.
const MAX_NAME: usize = 60;

/// Writes values to a folder as nodes give them.
pub(crate) struct Dump<'a> {
    folder: &'a Path,
    index: Index,
}

/// All values, in the order in which they were computed.
#[derive(Serialize, Deserialize)]
struct Index {
    values: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    name: String,
    file: String,
    #[serde(rename = "type")]
    value_type: String,
    shape: Option<Vec<usize>>,
    /// The node's place in its graph or function, its name and its operator.
    node_index: usize,
    node: String,
    operator: String,
    /// The number of nodes whose subgraphs are around it.
    depth: usize,
}

impl<'a> Dump<'a> {
    /// Makes the folder. It may exist, but without a dump in it.
    pub(crate) fn new(folder: &'a Path) -> std::result::Result<Dump<'a>, Failure> {
        let wrong = |why: String| Failure::usage(format!("--dump {}: {why}", print::path(&folder.to_string_lossy())));
        std::fs::create_dir_all(folder).map_err(|e| wrong(e.to_string()))?;
        if folder.join(INDEX).exists() {
            return Err(wrong(format!("it has a dump already: {INDEX}")));
        }
        Ok(Dump { folder, index: Index { values: Vec::new() } })
    }

    /// Writes the values of a node: tensors that NumPy has as .npy, all others as .pb.
    pub(crate) fn add(&mut self, node: NodeInfo<'_>, depth: usize, outputs: &[(&str, &Value)]) -> Result<()> {
        for (name, value) in outputs {
            let number = self.index.values.len();
            let npy = value.tensor().ok().and_then(|tensor| npy::write(tensor).ok());
            let (bytes, ending) = npy.map_or_else(|| (value.to_proto_bytes(name), "pb"), |bytes| (bytes, "npy"));
            let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
            let file = format!("{number:05}-{}.{ending}", name.chars().map(safe).take(MAX_NAME).collect::<String>());
            self.save(&file, bytes).map_err(|failure| Error::new(Kind::Io, failure.message))?;
            self.index.values.push(Entry {
                name: name.to_string(),
                file,
                value_type: value.value_type().map(|of| type_name(&of)).unwrap_or_default(),
                shape: value.tensor().ok().map(|tensor| tensor.shape().to_vec()),
                node_index: node.index,
                node: node.name.to_string(),
                operator: node.operator.to_string(),
                depth,
            });
        }
        Ok(())
    }

    /// Writes the list, which makes the dump whole. Returns the number of values.
    pub(crate) fn end(self) -> std::result::Result<usize, Failure> {
        let text = serde_json::to_vec_pretty(&self.index).map_err(|e| Failure::usage(e.to_string()))?;
        self.save(INDEX, text)?;
        Ok(self.index.values.len())
    }

    fn save(&self, file: &str, bytes: Vec<u8>) -> std::result::Result<(), Failure> {
        output::save(&[(&self.folder.join(file).to_string_lossy(), bytes)])
    }
}

/// The values of a dump, read when they are asked for.
pub(crate) struct Dumped {
    folder: PathBuf,
    files: HashMap<String, String>,
}

impl Dumped {
    /// A folder that `--dump` wrote; or one of .npy and .pb files named after their values.
    pub(crate) fn open(folder: &Path) -> std::result::Result<Dumped, Failure> {
        let wrong = |why: String| Failure::usage(format!("{}: {why}", print::path(&folder.to_string_lossy())));
        let mut files = HashMap::new();
        match std::fs::read(folder.join(INDEX)) {
            Ok(text) => {
                let index: Index = serde_json::from_slice(&text).map_err(|e| wrong(format!("{INDEX}: {e}")))?;
                let own = index.values.into_iter().filter(|entry| entry.depth == 0);
                files.extend(own.map(|entry| (entry.name, entry.file)));
            }
            Err(_) => {
                for entry in std::fs::read_dir(folder).map_err(|e| wrong(e.to_string()))? {
                    let file = entry.map_err(|e| wrong(e.to_string()))?.file_name().to_string_lossy().into_owned();
                    if let Some((name, "npy" | "pb")) = file.rsplit_once('.') {
                        files.insert(name.to_string(), file.clone());
                    }
                }
            }
        }
        if files.is_empty() {
            return Err(wrong("it has no values: no index.json, .npy or .pb files".to_string()));
        }
        Ok(Dumped { folder: folder.to_path_buf(), files })
    }

    /// A value by name, of this type if it isn't a tensor; or why it can't be read.
    pub(crate) fn get(&self, name: &str, value_type: Option<&ValueType>) -> Option<std::result::Result<Value, String>> {
        let file = self.files.get(name)?;
        let read = || {
            let bytes = std::fs::read(self.folder.join(file)).map_err(|e| e.to_string())?;
            match value_type {
                _ if file.ends_with(".npy") => npy::read(&bytes).map(Value::from),
                Some(of) if of.dtype().is_none() => Value::from_proto_bytes(bytes, of).map_err(|e| format!("{e:#}")),
                _ => Tensor::from_proto_bytes(bytes).map(Value::from).map_err(|e| format!("{e:#}")),
            }
        };
        Some(read().map_err(|why| format!("{}: {why}", print::path(file))))
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let model = onnxref::Model::load("../onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx").unwrap();
        let node = model.nodes().next().unwrap();
        let mut dump = Dump::new(folder.path()).unwrap();
        let [x, bf] = [Value::from(Tensor::scalar(1f32)), Tensor::scalar(onnxref::half::bf16::ONE).into()];
        dump.add(node, 0, &[("a/b", &x), ("a b", &bf)]).unwrap();
        assert_eq!(dump.end().unwrap(), 2);
        let dumped = Dumped::open(folder.path()).unwrap();
        assert_eq!(dumped.get("a/b", None), Some(Ok(x)));
        assert_eq!(dumped.get("a b", None), Some(Ok(bf)));
        assert_eq!((dumped.get("c", None), dumped.len()), (None, 2));
        assert!(Dump::new(folder.path()).is_err());
    }
}
