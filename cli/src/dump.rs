//! A folder with the values of a run: `index.json`, and a file for each value. `recorded` reads it.

use crate::bounded::{self, Unwritten};
use crate::failure::Failure;
use crate::path::{Trips, ValuePath};
use crate::{file_name, interrupt, npy, output, print};
use onnxref::{Cancel, Error, Kind, NodeInfo, Result, Value};
use onnxref_view::type_name;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// The name of the list of values.
pub(crate) const INDEX: &str = "index.json";

/// Maximum number of characters of a value's name in the name of its file.
const MAX_NAME: usize = 60;

/// Writes values to a folder as nodes give them. The values of a run that fails stay: each file is complete, and so is the
/// list of them, which says why the run ended.
pub(crate) struct Dump<'a> {
    folder: &'a Path,
    cancel: &'a Cancel,
    index: List,
    /// The number of values.
    count: usize,
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
    pub(crate) fn new(folder: &'a Path, cancel: &'a Cancel) -> std::result::Result<Dump<'a>, Failure> {
        let wrong = |why: String| Failure::usage(format!("--dump {}: {why}", print::path(&folder.to_string_lossy())));
        let full = |e| Failure::run(bounded::error(&folder.join(INDEX).to_string_lossy(), e));
        let unmade = |e: io::Error| match e.kind() {
            io::ErrorKind::AlreadyExists if folder.is_dir() => wrong(format!("it has a dump already: {INDEX}")),
            io::ErrorKind::AlreadyExists => wrong("it is not a folder".to_string()),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => full(e),
            _ => wrong(e.to_string()),
        };
        std::fs::create_dir_all(folder).map_err(unmade)?;
        let path = folder.join(INDEX);
        let file = File::create_new(&path).map_err(unmade)?;
        // Without room for the list there is no dump.
        let index = List::new(file).inspect_err(|_| _ = std::fs::remove_file(&path)).map_err(full)?;
        Ok(Dump { folder, cancel, index, count: 0 })
    }

    /// Writes the values of a node: tensors that NumPy has as .npy, all others as .pb.
    pub(crate) fn add(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> Result<()> {
        for (k, (name, value)) in outputs.iter().enumerate() {
            let npy = value.tensor().ok().and_then(|tensor| npy::Outgoing::new(tensor, self.cancel).ok());
            let ending = if npy.is_some() { "npy" } else { "pb" };
            let file = format!("{:05}-{}.{ending}", self.count, cut(&file_name::escaped(name)));
            let path = self.folder.join(&file);
            let failed = |why| match why {
                Unwritten::Unfit(why) => Error::new(Kind::Unsupported, format!("{}: {why}", shown(&path))),
                Unwritten::Failed(error) => bounded::error(&path.to_string_lossy(), error),
            };
            let written = output::file(&path, self.cancel, |to| match npy {
                Some(npy) => Ok(npy.write(to)?),
                None => output::write_proto(name, value, to),
            });
            written.map_err(failed)?;
            let entry = Entry {
                path: trips.path(node, k, name)?,
                file,
                value_type: value.value_type().map(|of| type_name(&of)).unwrap_or_default(),
                shape: value.tensor().ok().map(|tensor| tensor.shape().to_vec()),
                node_index: node.index,
                node: node.name.to_string(),
                operator: node.operator.to_string(),
                depth: trips.depth(),
            };
            self.index.add(self.count == 0, &entry).map_err(|error| {
                // The folder has no value that isn't listed.
                let _ = std::fs::remove_file(&path);
                bounded::error(&self.folder.join(INDEX).to_string_lossy(), error)
            })?;
            self.count += 1;
        }
        Ok(())
    }

    /// Says in the list why the run ended, if that wasn't at its last node. Returns the number of values.
    pub(crate) fn end(mut self, why: Option<&str>) -> std::result::Result<usize, Failure> {
        let path = self.folder.join(INDEX);
        let ended = self.index.end(why).map_err(|error| bounded::error(&path.to_string_lossy(), error));
        ended.map(|()| self.count).map_err(Failure::run)
    }
}

/// The list of values on its way to its file. The file is complete at any time, however the program ends: each write puts
/// a value and the end of the list in the place of the last end.
struct List {
    file: File,
    /// Where the end begins.
    at: u64,
    /// Bytes of the file.
    len: u64,
}

/// The end of the list while the run goes on.
const RUNNING: &str = "\n],\n\"complete\": false,\n\"ended\": \"it was interrupted\"}";

impl List {
    fn new(file: File) -> io::Result<List> {
        let mut list = List { file, at: 0, len: 0 };
        list.put("{\"values\": [", RUNNING)?;
        Ok(list)
    }

    fn add(&mut self, first: bool, entry: &Entry) -> io::Result<()> {
        let comma = if first { "" } else { "," };
        let more = format!("{comma}\n{}", serde_json::to_string(entry)?);
        bounded::count(more.len())?;
        self.put(&more, RUNNING)
    }

    fn end(&mut self, why: Option<&str>) -> io::Result<()> {
        let why = why.map(serde_json::to_string).transpose()?;
        let ended = why.map_or("true".to_string(), |why| format!("false,\n\"ended\": {why}"));
        self.put("", &format!("\n],\n\"complete\": {ended}}}"))
    }

    fn put(&mut self, more: &str, end: &str) -> io::Result<()> {
        let bytes = (more.len() + end.len() + 1) as u64;
        // A shorter end leaves nothing of the last one.
        let padding = " ".repeat(usize::try_from(self.len.saturating_sub(self.at + bytes)).unwrap_or(0));
        let text = format!("{more}{end}{padding}\n");
        interrupt::commit(|_| {
            self.write(&text).inspect_err(|_| {
                // This was there before, so there is room for it.
                let _ = self.write(RUNNING).and_then(|()| self.file.set_len(self.at + RUNNING.len() as u64));
            })
        })?;
        self.len = self.at + text.len() as u64;
        self.at += more.len() as u64;
        Ok(())
    }

    fn write(&self, text: &str) -> io::Result<()> {
        (&self.file).seek(SeekFrom::Start(self.at))?;
        (&self.file).write_all(text.as_bytes())
    }
}

/// The start of a file's name: no part of an escaped byte.
fn cut(file: &str) -> &str {
    let Some(start) = file.get(..MAX_NAME) else { return file };
    start.rfind('%').filter(|at| at + 3 > MAX_NAME).and_then(|at| start.get(..at)).unwrap_or(start)
}

fn shown(path: &Path) -> String {
    print::path(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;
    use onnxref::Tensor;

    fn model() -> onnxref::Model {
        onnxref::Model::load("../onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx").unwrap()
    }

    #[test]
    fn a_dump_reads_back() {
        let (folder, model, cancel) = (tempfile::tempdir().unwrap(), model(), Cancel::new());
        let node = model.nodes().next().unwrap();
        let mut dump = Dump::new(folder.path(), &cancel).unwrap();
        let [x, bf] = [Value::from(Tensor::scalar(1f32)), Tensor::scalar(onnxref::half::bf16::ONE).into()];
        dump.add(node, &Trips::default(), &[("a/b", &x), ("a b", &bf)]).unwrap();
        assert_eq!(dump.end(None).unwrap(), 2);
        let recorded = Recorded::open(folder.path(), &onnxref::Limits::default()).unwrap();
        let [slash, blank, other] = ["a/b", "a b", "c"].map(|name| recorded.get(&ValuePath::outermost(name), None));
        assert_eq!((slash, blank, other, recorded.len()), (Some(Ok(x)), Some(Ok(bf)), None, 2));
        assert!(Dump::new(folder.path(), &cancel).is_err());
    }

    /// The list is complete after each value, and at the end, whatever the lengths of its ends.
    #[test]
    fn the_list_is_complete_at_any_time() {
        let (folder, model, cancel) = (tempfile::tempdir().unwrap(), model(), Cancel::new());
        let node = model.nodes().next().unwrap();
        let list = || -> serde_json::Value {
            serde_json::from_slice(&std::fs::read(folder.path().join(INDEX)).unwrap()).unwrap()
        };
        let mut dump = Dump::new(folder.path(), &cancel).unwrap();
        let x = Value::from(Tensor::scalar(1f32));
        for count in 0..3 {
            assert_eq!(list()["values"].as_array().unwrap().len(), count);
            assert_eq!((&list()["complete"], &list()["ended"]), (&false.into(), &"it was interrupted".into()));
            dump.add(node, &Trips::default(), &[("\u{1b}/..", &x)]).unwrap();
        }
        assert_eq!(list()["values"][2]["file"], "00002-%1B%2F...npy");
        for why in [Some("a long reason for the end of the run"), Some("short"), None] {
            dump.index.end(why).unwrap();
            assert_eq!((list()["complete"].as_bool(), list()["ended"].as_str()), (Some(why.is_none()), why));
        }
        // Where there is no room, it is as before.
        dump.index.file = File::open(folder.path().join(INDEX)).unwrap();
        assert!(dump.add(node, &Trips::default(), &[("y", &x)]).is_err());
        assert_eq!(list()["values"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn long_names_are_cut_between_bytes() {
        let slashes = file_name::escaped(&"/".repeat(30));
        assert_eq!(cut(&slashes), &slashes[..60]);
        assert_eq!(cut(&format!("a{slashes}")), format!("a{}", &slashes[..57]));
        assert_eq!((cut("abc"), cut(&"x".repeat(61))), ("abc", &*"x".repeat(60)));
    }
}
