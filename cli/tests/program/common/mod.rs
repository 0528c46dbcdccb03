//! Runs the program, and makes models for it.

mod proto;

pub(crate) use proto::*;
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

/// A picture as PNG, of samples of 8 bits: one of each pixel is gray, three are colours, four have the opacity too.
pub(crate) fn png(width: usize, samples: usize, pixels: &[u8]) -> Vec<u8> {
    use flate2::{Compression, Crc, write::ZlibEncoder};
    use std::io::Write;
    let chunk = |name: &[u8], data: &[u8]| {
        let mut sum = Crc::new();
        sum.update(name);
        sum.update(data);
        [&(data.len() as u32).to_be_bytes(), name, data, &sum.sum().to_be_bytes()].concat()
    };
    let rows = pixels.chunks(width * samples);
    let [across, down] = [width, rows.len()].map(|size| (size as u32).to_be_bytes());
    let kind = [0, 0, 0, 2, 6].get(samples).copied().unwrap();
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    rows.for_each(|row| packed.write_all(&[&[0], row].concat()).unwrap());
    let header = chunk(b"IHDR", &[across.as_slice(), &down, &[8, kind, 0, 0, 0]].concat());
    [b"\x89PNG\r\n\x1A\n", header.as_slice(), &chunk(b"IDAT", &packed.finish().unwrap()), &chunk(b"IEND", &[])].concat()
}

/// A file or folder of the official data.
pub(crate) fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../onnx-test-data").join(path)
}
