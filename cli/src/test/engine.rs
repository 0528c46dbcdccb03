//! Runs cases on another engine, which is a program.

use super::lines::Lines;
use super::process::Process;
use crate::failure::{Failure, RUN, USAGE};
use crate::{interrupt, print};
use clap::Args;
use onnxref::bytes::Bytes;
use onnxref::conformance::{Case, Outcome, Source, Task};
use onnxref::{Error, Kind, LoadOptions, quote};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time of a case, unless `--timeout` is given.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The exit status of an engine that doesn't support the model.
const UNSUPPORTED: i32 = 77;

/// Maximum size of an output's file: protobuf counts bytes as int32.
const MAX_FILE: u64 = i32::MAX as u64;

/// The folder of outputs.
const OUTPUTS: &str = "outputs";

/// What stands for the paths in a command.
const PLACES: [&str; 3] = ["{model}", "{inputs}", "{outputs}"];

/// The flags of another engine.
#[derive(Debug, Args)]
#[command(next_help_heading = "Another engine")]
pub(super) struct Flags {
    /// Run cases on another engine: 'CMD {model} {inputs} {outputs}'
    ///
    /// The command runs once for each case (each data set of it), without a shell. It gets the paths of the model, of a folder
    /// with input_0.pb, .., and of an empty folder, into which it writes output_0.pb, ... The exit status 0 says that the
    /// outputs are there, 77 that the engine doesn't support the model; any other one refuses the case. --timeout is 60
    /// seconds if it isn't given, and ends all that the command has started.
    #[arg(long, value_name = "CMD", conflicts_with = "engine_lines")]
    engine: Option<String>,

    /// Run cases on another engine that stays, with a line for each case
    ///
    /// A line on the engine's standard input has the three paths, with tabs between them. It answers with a line on its standard
    /// output: "ok", "unsupported WHY" or "failed WHY". --jobs processes run at the same time, and one that has ended is
    /// started again.
    #[arg(long, value_name = "CMD")]
    engine_lines: Option<String>,
}

/// Another engine.
pub(super) struct Engine {
    flag: &'static str,
    words: Vec<String>,
    timeout: Duration,
    folder: TempDir,
    /// Processes that wait for a line; `None` if each case has its own process.
    idle: Option<Mutex<Vec<Lines>>>,
    /// Why no case can run: the exit code, and the message.
    unusable: OnceLock<(u8, String)>,
}

impl Flags {
    /// The engine, if one is asked for.
    pub(super) fn engine(&self, timeout: Option<Duration>) -> Result<Option<Engine>, Failure> {
        let (flag, text) = match (&self.engine, &self.engine_lines) {
            (Some(text), _) => ("--engine", text),
            (None, Some(text)) => ("--engine-lines", text),
            (None, None) => return Ok(None),
        };
        let wrong = |why: &str| Failure::usage(format!("{flag} {}: {why}", quote(text)));
        let words = shlex::split(text).ok_or_else(|| wrong("a quote has no end"))?;
        if words.is_empty() {
            return Err(wrong("there is no command"));
        }
        let named = PLACES.iter().filter(|place| text.contains(*place)).count();
        match self.engine {
            Some(_) if named < PLACES.len() => return Err(wrong("{model}, {inputs} and {outputs} are needed")),
            None if named > 0 => return Err(wrong("it gets its paths on standard input: nothing is replaced in it")),
            _ => {}
        }
        // An interruption waits until the folder is known.
        let mut names = interrupt::temporary();
        let folder = tempfile::Builder::new().prefix("onnxref-").tempdir();
        let folder = folder.map_err(|e| Failure::run(Error::new(Kind::Io, format!("a temporary folder: {e}"))))?;
        names.push(folder.path().to_path_buf());
        drop(names);
        let idle = self.engine.is_none().then(Mutex::default);
        let timeout = timeout.unwrap_or(TIMEOUT);
        Ok(Some(Engine { flag, words, timeout, folder, idle, unusable: OnceLock::new() }))
    }
}

impl Engine {
    pub(super) fn run(&self, case: &Case, options: &LoadOptions) -> Outcome {
        case.run_on(options, |task| self.do_task(task))
    }

    /// Fails if no case can run: the command can't be started, or files can't be written for it.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.unusable.get().map_or(Ok(()), |(code, why)| Err(Failure::new(*code, format!("{}: {why}", self.flag))))
    }

    fn do_task(&self, task: &Task<'_>) -> onnxref::Result<BTreeMap<usize, Bytes>> {
        let files = Files::write(task, self.folder.path()).map_err(|e| self.not_written(&e))?;
        match &self.idle {
            None => self.start_for(&files),
            Some(idle) => self.ask(&files, idle),
        }?;
        files.outputs(task)
    }

    /// Runs the command for a case.
    fn start_for(&self, files: &Files) -> onnxref::Result<()> {
        let deadline = Instant::now() + self.timeout;
        let mut command = self.command(Some(files));
        let started = Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()));
        let mut process = started.map_err(|e| self.not_started(&e))?;
        let status = process.wait(deadline).ok_or_else(|| Error::new(Kind::Cancelled, STOPPED))?;
        match status.code() {
            Some(0) => Ok(()),
            Some(UNSUPPORTED) => Err(unsupported(&process.first_line())),
            _ => Err(ended(status, &process.last_line())),
        }
    }

    /// Asks a process that waits, or a new one.
    fn ask(&self, files: &Files, idle: &Mutex<Vec<Lines>>) -> onnxref::Result<()> {
        let idle = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = idle().pop();
        let mut lines = match waiting {
            Some(lines) => lines,
            None => Lines::start(self.command(None)).map_err(|e| self.not_started(&e))?,
        };
        let answer = lines.ask(files.line(), self.timeout)?;
        idle().push(lines);
        answer
    }

    fn command(&self, files: Option<&Files>) -> Command {
        let mut words = self.words.iter().map(|word| files.map_or(word.clone(), |files| files.replaced(word)));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    }

    fn not_started(&self, error: &io::Error) -> Error {
        let program = self.words.first().map_or("", |word| word);
        let text = format!("{} can't be started: {error}", quote(program));
        let _ = self.unusable.set((USAGE, text.clone()));
        Error::new(Kind::Io, text)
    }

    /// Without room for files, no engine is at fault.
    fn not_written(&self, error: &io::Error) -> Error {
        // `Other` are errors of ours, about one case.
        if error.kind() != io::ErrorKind::Other {
            let folder = print::path(&std::env::temp_dir().to_string_lossy());
            let text =
                format!("its files can't be written to {folder}: {error}; the variable TMPDIR names another folder");
            let _ = self.unusable.set((RUN, text));
        }
        io_error("the engine's files", error)
    }
}

/// What a case that took too long says.
pub(super) const STOPPED: &str = "the engine was stopped";

/// Error for an engine that ended otherwise than it should.
pub(super) fn ended(status: ExitStatus, line: &str) -> Error {
    let why = if line.is_empty() { String::new() } else { format!(": {}", print::path(line)) };
    // By a signal it says nothing of the model.
    let kind = if status.code().is_some() { Kind::Model } else { Kind::Io };
    Error::new(kind, format!("the engine ended with {status}{why}"))
}

/// Error for what an engine doesn't support.
pub(super) fn unsupported(why: &str) -> Error {
    let why = if why.is_empty() { "the engine doesn't say why".to_string() } else { print::path(why) };
    Error::new(Kind::Unsupported, why)
}

/// Error that an engine tells.
pub(super) fn failed(why: &str) -> Error {
    let why = if why.is_empty() { String::new() } else { format!(": {}", print::path(why)) };
    Error::new(Kind::Model, format!("the engine failed{why}"))
}

fn io_error(what: &str, error: &io::Error) -> Error {
    Error::new(Kind::Io, format!("{what}: {error}"))
}

/// The files of a case.
struct Files {
    /// The paths of the model, the inputs and the outputs.
    paths: [String; 3],
    /// Removed with this.
    folder: TempDir,
}

impl Files {
    fn write(task: &Task<'_>, within: &Path) -> io::Result<Files> {
        let folder = TempDir::new_in(std::path::absolute(within)?)?;
        let model = match task.model {
            Source::Path(path) => std::path::absolute(path)?,
            Source::Bytes(bytes) => {
                let model = folder.path().join("model.onnx");
                fs::write(&model, bytes)?;
                model
            }
            _ => return Err(io::Error::other("the model is of an unknown kind")),
        };
        let (inputs, outputs) = (folder.path().join("inputs"), folder.path().join(OUTPUTS));
        fs::create_dir(&inputs)?;
        fs::create_dir(&outputs)?;
        for (k, bytes) in &task.inputs {
            fs::write(inputs.join(format!("input_{k}.pb")), bytes)?;
        }
        let text = |path: &PathBuf| path.to_str().map(str::to_string).unwrap_or_default();
        let paths = [model, inputs, outputs].each_ref().map(text);
        match paths.iter().any(|path| path.is_empty() || path.contains(['\t', '\n', '\r'])) {
            true => Err(io::Error::other("a path is not UTF-8, or has a tab or the end of a line in it")),
            false => Ok(Files { paths, folder }),
        }
    }

    /// A word of the command with paths in place of `{model}`, ..
    fn replaced(&self, word: &str) -> String {
        PLACES.iter().zip(&self.paths).fold(word.to_string(), |word, (place, path)| word.replace(place, path))
    }

    /// What is sent to an engine that stays.
    fn line(&self) -> String {
        format!("{}\n", self.paths.join("\t"))
    }

    /// The outputs that the engine wrote.
    fn outputs(&self, task: &Task<'_>) -> onnxref::Result<BTreeMap<usize, Bytes>> {
        let mut outputs = BTreeMap::new();
        for k in &task.outputs {
            let name = format!("output_{k}.pb");
            match read(&self.folder.path().join(OUTPUTS).join(&name)) {
                Ok(bytes) => _ = outputs.insert(*k, bytes.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io_error(&format!("{name} of the engine"), &error)),
            }
        }
        Ok(outputs)
    }
}

/// Reads a file of an engine, which may be anything.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::symlink_metadata(path)?;
    if !kind.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if kind.len() > MAX_FILE {
        return Err(io::Error::other(format!("it has {} bytes: protobuf holds {MAX_FILE}", kind.len())));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}
