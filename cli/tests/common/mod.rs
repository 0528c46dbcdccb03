//! Runs the program, and makes models for it.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses some of it

use onnxref::DType;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The program's output and exit code.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn onnxref<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_onnxref")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Ran {
    /// The last line on standard output.
    pub(crate) fn last(&self) -> &str {
        self.out.lines().last().unwrap_or("")
    }
}

/// A folder with `model.onnx`.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new(model: &[u8]) -> Bench {
        let bench = Bench { folder: TempDir::new().unwrap() };
        fs::write(bench.path("model.onnx"), model).unwrap();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        onnxref([&["run", &self.text("model.onnx")], arguments].concat())
    }

    /// The names of the files beside the model.
    pub(crate) fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "model.onnx").collect();
        names.sort();
        names
    }
}

pub(crate) fn feed(name: &str, value: impl AsRef<Path>) -> String {
    format!("{name}={}", value.as_ref().to_str().unwrap())
}

#[track_caller]
pub(crate) fn check(ran: Ran, code: i32, out: &str, err: &str) {
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(code), out, err));
}

/// A file or folder of the official data.
pub(crate) fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../onnx-test-data").join(path)
}

/// A model `y = Gather(data, indices)` that declares the element type of its inputs only.
pub(crate) fn gather(dtype: DType) -> Vec<u8> {
    model(&node("Gather", &["data", "indices"], "y"), &[("data", Some(dtype)), ("indices", Some(DType::Int64))], 13)
}

/// A model of nodes, with inputs and an output `y`.
pub(crate) fn model(nodes: &[u8], inputs: &[(&str, Option<DType>)], opset: u64) -> Vec<u8> {
    let mut graph = [nodes, &bytes(2, b"graph")].concat();
    for (name, dtype) in inputs {
        // Without an element type nothing is said about the input.
        let dtype = dtype.map(|dtype| bytes(2, &bytes(1, &number(1, dtype.code() as u64)))).unwrap_or_default();
        graph.extend(bytes(11, &[bytes(1, name.as_bytes()), dtype].concat()));
    }
    graph.extend(bytes(12, &bytes(1, b"y")));
    [number(1, 8), bytes(7, &graph), bytes(8, &[bytes(1, b""), number(2, opset)].concat())].concat()
}

/// A node of a graph.
pub(crate) fn node(operator: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let inputs = inputs.iter().flat_map(|name| bytes(1, name.as_bytes()));
    bytes(1, &inputs.chain(bytes(2, output.as_bytes())).chain(bytes(4, operator.as_bytes())).collect::<Vec<_>>())
}

/// A protobuf field of bytes, text or a message.
pub(crate) fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A protobuf field of a number.
pub(crate) fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
