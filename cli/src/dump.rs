//! A folder with the values of a run: `index.json`, and a file for each value. `recorded` reads it.

use crate::failure::Failure;
use crate::path::{Trips, ValuePath};
use crate::{npy, output, print};
use onnxref::{Error, Kind, NodeInfo, Result, Value};
use onnxref_view::type_name;
use serde::Serialize;
use std::path::Path;

/// The name of the list of values.
pub(crate) const INDEX: &str = "index.json";

/// Maximum number of characters of a value's name in the name of its file.
const MAX_NAME: usize = 60;

/// Writes values to a folder as nodes give them.
pub(crate) struct Dump<'a> {
    folder: &'a Path,
    index: Index,
}

/// All values, in the order in which they were computed.
#[derive(Serialize)]
struct Index {
    values: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    path: ValuePath,
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
    pub(crate) fn add(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> Result<()> {
        for (k, (name, value)) in outputs.iter().enumerate() {
            let number = self.index.values.len();
            let npy = value.tensor().ok().and_then(|tensor| npy::write(tensor).ok());
            let (bytes, ending) = npy.map_or_else(|| (value.to_proto_bytes(name), "pb"), |bytes| (bytes, "npy"));
            let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
            let file = format!("{number:05}-{}.{ending}", name.chars().map(safe).take(MAX_NAME).collect::<String>());
            self.save(&file, bytes).map_err(|failure| Error::new(Kind::Io, failure.message))?;
            self.index.values.push(Entry {
                path: trips.path(node, k, name)?,
                file,
                value_type: value.value_type().map(|of| type_name(&of)).unwrap_or_default(),
                shape: value.tensor().ok().map(|tensor| tensor.shape().to_vec()),
                node_index: node.index,
                node: node.name.to_string(),
                operator: node.operator.to_string(),
                depth: trips.depth(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;
    use onnxref::Tensor;

    #[test]
    fn a_dump_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let model = onnxref::Model::load("../onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx").unwrap();
        let node = model.nodes().next().unwrap();
        let mut dump = Dump::new(folder.path()).unwrap();
        let [x, bf] = [Value::from(Tensor::scalar(1f32)), Tensor::scalar(onnxref::half::bf16::ONE).into()];
        dump.add(node, &Trips::default(), &[("a/b", &x), ("a b", &bf)]).unwrap();
        assert_eq!(dump.end().unwrap(), 2);
        let recorded = Recorded::open(folder.path()).unwrap();
        let [slash, blank, other] = ["a/b", "a b", "c"].map(|name| recorded.get(&ValuePath::outermost(name), None));
        assert_eq!((slash, blank, other, recorded.len()), (Some(Ok(x)), Some(Ok(bf)), None, 2));
        assert!(Dump::new(folder.path()).is_err());
    }
}
