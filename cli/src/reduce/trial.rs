//! Runs the command on models, and keeps the smallest for which it fails.

use super::model::Attempt;
use crate::bounded::{self, Unwritten};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::test::process::Process;
use crate::{hash, interrupt, messages, output, print};
use onnxref::document::Document;
use onnxref::{Cancel, Inputs, Kind, LoadOptions, quote};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The name of the list of what was tried.
const TRIED: &str = "tried.jsonl";

/// The file of data that doesn't fit into a model, and the model before it is reduced, beside the models that are tried.
const DATA: &str = "model.data";
const WHOLE: &str = "whole.onnx";

/// Data that a model file holds, beside its nodes; initializers that go to the file of data otherwise.
const ONE_FILE: u64 = if cfg!(test) { 3 << 19 } else { 3 << 29 };
const LARGE: u64 = 1 << 16;

/// The exit status of a command that ran out of time, as of `timeout`.
const TIMED_OUT: i32 = 124;

/// Whether models still fail.
pub(super) struct Trial<'a> {
    pub(super) words: &'a [String],
    pub(super) expected: Option<i32>,
    pub(super) timeout: Duration,
    pub(super) out: &'a Path,
    pub(super) options: LoadOptions,
    /// Whether the model is valid, and whether it runs here: so must its parts.
    pub(super) valid: bool,
    pub(super) runs: bool,
    folder: TempDir,
    /// What is known from before, by the hash of the model and its inputs.
    known: HashMap<String, i32>,
    log: Option<PathBuf>,
    progress: Progress,
    /// How often the command ran, and how often that was known.
    pub(super) count: usize,
    pub(super) remembered: usize,
    pub(super) best: Option<Attempt>,
    /// The data beside OUT, if the model doesn't have all in its file.
    data: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    model: String,
    status: i32,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        words: &'a [String],
        (expected, timeout): (Option<i32>, Duration),
        (out, work): (&'a Path, Option<&Path>),
        options: LoadOptions,
    ) -> Result<Trial<'a>, Failure> {
        let failed = |e| Failure::unmade("there is no folder for temporary files", e);
        // An interruption waits until the folder is known.
        let mut names = interrupt::temporary();
        let folder = tempfile::Builder::new().prefix("onnxref-").tempdir().map_err(failed)?;
        names.push(folder.path().to_path_buf());
        drop(names);
        let mut known = HashMap::new();
        let log = work.map(|work| work.join(TRIED));
        if let (Some(work), Some(log)) = (work, &log) {
            let wrong = |e| Failure::unmade(&format!("--work {}", work.to_string_lossy()), e);
            fs::create_dir_all(work).map_err(wrong)?;
            let key = command_key(words);
            let text = match fs::read_to_string(log) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(wrong(error)),
            };
            if !text.is_empty() && !text.ends_with('\n') {
                OpenOptions::new().append(true).open(log).and_then(|mut log| writeln!(log)).map_err(wrong)?;
            }
            // A line may be cut.
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
            known.extend(lines.filter_map(|line| Some((line.model.strip_prefix(&key)?.to_string(), line.status))));
        }
        Ok(Trial {
            words,
            expected,
            timeout,
            out,
            options,
            valid: false,
            runs: false,
            folder,
            known,
            log,
            progress: Progress::new(),
            count: 0,
            remembered: 0,
            best: None,
            data: None,
        })
    }

    /// The model with its external data in it. If that is more than fits one file, it goes to a file beside the models
    /// that are tried.
    pub(super) fn place(
        &self,
        mut whole: Document,
        unreadable: &dyn Fn(onnxref::Error) -> Failure,
    ) -> Result<Document, Failure> {
        let mut apart = whole.clone();
        if apart.external_files().map_err(unreadable)?.is_empty() {
            return Ok(whole);
        }
        let data = apart.externalize(DATA, LARGE).map_err(unreadable)?;
        if data.size() < ONE_FILE {
            whole.embed().map_err(unreadable)?;
            return Ok(whole);
        }
        let failed = |why| unwritten("a temporary file", why);
        let place = |name: &str| self.folder.path().join(name);
        let cancel = Cancel::new();
        output::file(&place(DATA), &cancel, |to| data.write(to).map_err(Unwritten::of)).map_err(failed)?;
        output::file(&place(WHOLE), &cancel, |to| apart.write(to).map_err(Unwritten::of)).map_err(failed)?;
        Document::read_with(place(WHOLE), &self.options).map_err(unreadable)
    }

    /// Moves what is left of external data into the model, if it fits there and the command still fails.
    pub(super) fn embed(&mut self) -> Result<(), Failure> {
        let Some(mut attempt) = self.best.clone() else { return Ok(()) };
        let mut apart = attempt.model.clone();
        if apart.external_files().map_err(Failure::run)?.is_empty()
            || apart.externalize(DATA, LARGE).map_err(Failure::run)?.size() >= ONE_FILE
        {
            return Ok(());
        }
        attempt.model.embed().map_err(Failure::run)?;
        self.accept(Some(attempt), Check::Structure)?;
        Ok(())
    }

    /// The exit status of the command for a model; that of a signal as shells give it.
    pub(super) fn status(&mut self, attempt: &Attempt) -> Result<i32, Failure> {
        let bytes = attempt.model.to_bytes().map_err(Failure::run)?;
        let mut files = Vec::new();
        if self.needs_inputs() {
            for (k, info) in attempt.model.graph.inputs.iter().enumerate() {
                if let Some((name, value)) = attempt.inputs.iter().find(|(name, _)| *name == info.name) {
                    let encoded = messages::encoded(name, value).map_err(|why| unwritten(name, why))?;
                    files.push((format!("input_{k}.pb"), encoded));
                }
            }
        }
        let content: Vec<u8> = files.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes].concat()).collect();
        let key = hash::hex(&[&bytes, content.as_slice()].concat());
        if let Some(status) = self.known.get(&key) {
            self.remembered += 1;
            return Ok(*status);
        }
        self.progress.message(&format!("{} nodes, run {}", attempt.nodes(), self.count + 1));
        interrupt::point();
        let status = self.run(&bytes, &files)?;
        self.count += 1;
        if let Some(log) = &self.log {
            let line = Line { model: command_key(self.words) + &key, status };
            let written = OpenOptions::new()
                .create(true)
                .append(true)
                .open(log)
                .and_then(|mut log| writeln!(log, "{}", serde_json::to_string(&line)?));
            written.map_err(|e| Failure::run(bounded::error(&log.to_string_lossy(), e)))?;
        }
        self.known.insert(key, status);
        Ok(status)
    }

    fn run(&self, model: &[u8], files: &[(String, onnxref::bytes::Bytes)]) -> Result<i32, Failure> {
        let failed = |e| Failure::run(bounded::error(&self.folder.path().to_string_lossy(), e));
        let (path, inputs) = (self.folder.path().join("model.onnx"), self.folder.path().join("inputs"));
        fs::write(&path, model).map_err(failed)?;
        let _ = fs::remove_dir_all(&inputs);
        fs::create_dir_all(&inputs).map_err(failed)?;
        for (name, bytes) in files {
            fs::write(inputs.join(name), bytes).map_err(failed)?;
        }
        let place = |word: &String| {
            word.replace("{model}", &path.to_string_lossy()).replace("{inputs}", &inputs.to_string_lossy())
        };
        let mut words = self.words.iter().map(place);
        let Some(program) = words.next() else { return Err(Failure::usage("there is no command")) };
        let mut command = Command::new(&program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
        let started = Process::start(&mut command);
        let mut process = started.map_err(|e| Failure::usage(format!("{} can't be started: {e}", quote(&program))))?;
        Ok(process.wait(Instant::now() + self.timeout).map_or(TIMED_OUT, code))
    }

    /// Whether the command gets inputs.
    pub(super) fn needs_inputs(&self) -> bool {
        self.words.iter().any(|word| word.contains("{inputs}"))
    }

    /// Whether the command fails.
    pub(super) fn is_failure(&self, status: i32) -> bool {
        self.expected.map_or(status != 0, |expected| status == expected)
    }

    /// Tries a smaller model. If the command fails, it is the best so far, and is written.
    pub(super) fn accept(&mut self, attempt: Option<Attempt>, check: Check) -> Result<bool, Failure> {
        let Some(attempt) = attempt.filter(|attempt| self.is_fit(attempt, check)) else { return Ok(false) };
        let status = self.status(&attempt)?;
        if !self.is_failure(status) {
            return Ok(false);
        }
        self.write(&attempt)?;
        self.best = Some(attempt);
        Ok(true)
    }

    /// Writes OUT, and the data beside it that doesn't fit into the model.
    fn write(&mut self, attempt: &Attempt) -> Result<(), Failure> {
        let mut model = attempt.model.clone();
        let data = model.relocate(self.out).map_err(Failure::run)?;
        let cancel = Cancel::new();
        let place = data.as_ref().map(|data| data.place(self.out)).transpose().map_err(Failure::run)?;
        if let (Some(data), Some(place)) = (&data, &place) {
            let written = output::file(place, &cancel, |to| data.write(to).map_err(Unwritten::of));
            written.map_err(|why| unwritten(&place.to_string_lossy(), why))?;
        }
        let written = output::file(self.out, &cancel, |to| model.write_as(self.out, to).map_err(Unwritten::of));
        written.map_err(|why| unwritten(&self.out.to_string_lossy(), why))?;
        if let Some(stale) = std::mem::replace(&mut self.data, place).filter(|stale| Some(stale) != self.data.as_ref())
        {
            let _ = fs::remove_file(stale);
        }
        Ok(())
    }

    /// Whether a model is as valid as the original: another fault would hide the one that is searched for.
    fn is_fit(&self, attempt: &Attempt, check: Check) -> bool {
        if !self.valid {
            return true;
        }
        let faults = |found: &onnxref::inspect::Inspection| {
            let is_fault = |error: &onnxref::Error| error.causes().iter().any(|cause| cause.kind() == Kind::Model);
            found.error.as_ref().is_some_and(is_fault) || !found.mismatches.is_empty()
        };
        if !attempt.model.inspect(&self.options).is_ok_and(|found| !faults(&found)) {
            return false;
        }
        let run = || {
            let model = attempt.model.load(&self.options).ok()?;
            let inputs: Inputs<'_> = attempt.inputs.iter().map(|(name, value)| (name.as_str(), value)).collect();
            model.run_with(inputs, &Cancel::after(self.timeout)).ok()
        };
        check == Check::Structure || !self.runs || run().is_some()
    }
}

/// What must be as in the original.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Check {
    Structure,
    /// Values changed: it must run too.
    Run,
}

/// What distinguishes results of different commands in the same folder.
fn command_key(words: &[String]) -> String {
    format!("{} ", hash::hex(words.join("\0").as_bytes()))
}

#[cfg(unix)]
fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

#[cfg(not(unix))]
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(1)
}

fn unwritten(name: &str, why: Unwritten) -> Failure {
    why.failure(name, |why| format!("{}: {why}", print::path(name)))
}

#[cfg(all(test, unix))]
mod tests {
    use crate::{answer, output};
    use onnxref::document::{Document, Graph, Initializer, Node, ValueInfo};
    use onnxref::{Cancel, DType, Model, Tensor};
    use std::fs;
    use std::path::Path;

    /// Writes a model of two products, whose data of 2 MiB is in another file; tests count this as more than one file holds.
    fn large(folder: &Path) {
        let weights = Tensor::from_elements(&[512, 512], vec![0.25f32; 512 * 512]).unwrap();
        let graph = Graph::new("g")
            .input(ValueInfo::tensor("x", DType::Float, [1i64, 512]))
            .initializer(Initializer::new("v", &weights))
            .initializer(Initializer::new("w", &weights))
            .node(Node::new("MatMul", ["x", "v"], ["a"]))
            .node(Node::new("Tanh", ["a"], ["b"]))
            .node(Node::new("MatMul", ["b", "w"], ["y"]))
            .output(ValueInfo::untyped("y"));
        let mut model = Document::new(graph, 18);
        let data = model.externalize("weights", 1024).unwrap();
        let write = |name: &str, content: &dyn Fn(&mut dyn output::Target) -> onnxref::Result<()>| {
            output::file(&folder.join(name), &Cancel::new(), |to| content(to).map_err(super::Unwritten::of))
        };
        assert!(write("weights", &|to| data.write(to)).is_ok());
        assert!(write("model.onnx", &|to| model.write(to)).is_ok());
    }

    /// Reduces the large model; the command fails if a test of the shell on the model `$0` is true.
    fn reduced(folder: &Path, condition: &str) -> Document {
        large(folder);
        let place = |name: &str| folder.join(name).to_str().unwrap().to_string();
        let test = format!("if {condition}; then exit 1; fi");
        let (model, out) = (place("model.onnx"), place("small.onnx"));
        let words = ["onnxref", "reduce", &model, "-o", &out, "--random", "--", "sh", "-c", &test, "{model}"];
        let (code, text) = answer(&words.map(Into::into));
        assert_eq!(code, 0, "{text}");
        // Its data is where it says.
        Model::load(folder.join("small.onnx")).unwrap();
        Document::read(folder.join("small.onnx")).unwrap()
    }

    #[test]
    fn data_beyond_one_file_stays_beside_the_model() {
        let folder = tempfile::tempdir().unwrap();
        // As long as there is data beside it, which has all bytes of both weights.
        let data = "$(dirname \"$0\")/model.data";
        let small = reduced(folder.path(), &format!("grep -q model.data \"$0\" && [ $(wc -c < {data}) = 2097152 ]"));
        let files: Vec<String> = small.external_files().unwrap().into_iter().collect();
        assert_eq!((files.len(), small.graph.nodes.len()), (1, 1), "{files:?}");
        let kept = fs::read(folder.path().join(&files[0])).unwrap();
        assert!(kept == 0.25f32.to_le_bytes().repeat(512 * 512), "{} bytes", kept.len());
    }

    #[test]
    fn what_is_left_goes_into_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let small = reduced(folder.path(), "grep -q Tanh \"$0\" && grep -q MatMul \"$0\"");
        assert_eq!(small.external_files().unwrap().len(), 0);
        assert_eq!(small.graph.nodes.len(), 2);
        let mut files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["model.onnx", "small.onnx", "weights"]);
    }
}
