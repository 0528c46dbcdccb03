//! Options of sessions and runs.

use crate::crossing::{Change, Handle, In, Out, Raw, Result, Space, Text, entries, other_entries, releases};
use crate::environment::{Environment, thread_count};
use crate::failure::Failure;
use onnxref::{Cancel, Limits, LoadOptions, Model, quote};
use ort_sys::{OrtRunOptions, OrtSessionOptions};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Options of a session. What changes only speed and memory use in onnxruntime is accepted; what changes results is either
/// done or refused.
#[derive(Clone)]
pub(crate) struct SessionOptions {
    threads: Option<usize>,
    /// The number of threads is the environment's.
    shared_threads: bool,
    optimize: bool,
    memory_pattern: bool,
    /// An `ExecutionMode`, which changes nothing.
    mode: i32,
    dimensions: Vec<(String, usize)>,
    entries: BTreeMap<String, String>,
    external: Vec<(String, onnxref::bytes::Bytes)>,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            threads: None,
            shared_threads: false,
            optimize: true,
            memory_pattern: true,
            mode: 0,
            dimensions: Vec::new(),
            entries: BTreeMap::new(),
            external: Vec::new(),
        }
    }
}

/// What follows `onnxref.` in entries of ours.
const OWN: &str = "limit.NAME, allow.NAME, external_root, fast_math, hard_links, untrusted";

/// The limits for models of strangers.
const UNTRUSTED: &str = "onnxref.untrusted";

impl SessionOptions {
    /// The entries of the configuration.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&String, &String)> {
        self.entries.iter()
    }

    /// The options with which a model is loaded.
    pub(crate) fn loading(&self, environment: &Environment) -> Result<LoadOptions> {
        let mut options = Model::options().optimize(self.optimize);
        let threads = if self.shared_threads { environment.threads } else { self.threads };
        if let Some(threads) = threads {
            options = options.threads(threads);
        }
        for (name, size) in &self.dimensions {
            options = options.dimension(name.clone(), *size);
        }
        for (name, content) in &self.external {
            options = options.external_data(name.clone(), content.clone());
        }
        if self.entries.get(UNTRUSTED).is_some_and(|value| value == "1") {
            options = options.limits(Limits::untrusted());
        }
        // Single limits come after that.
        for (key, value) in &self.entries {
            options = entry(options, key, value)?;
        }
        Ok(options)
    }
}

/// A number that the API has a name for.
fn known(what: &str, number: i32, all: &[i32]) -> Result<i32> {
    if all.contains(&number) {
        return Ok(number);
    }
    let all: Vec<String> = all.iter().map(i32::to_string).collect();
    Err(Failure::argument(format!("{number} is not {what}: allowed {}", all.join(", "))))
}

/// The severity from which on messages are logged; -1 is that of the environment, or of the session.
fn severity(level: i32) -> Result<i32> {
    known("a severity of messages", level, &[-1, 0, 1, 2, 3, 4])
}

/// The longest key of an entry, in bytes.
const MOST_OF_A_KEY: usize = 1024;

fn check_key(key: &str) -> Result<()> {
    match key.len() {
        1..=MOST_OF_A_KEY => Ok(()),
        len => Err(Failure::argument(format!("the key of a config entry has 1 to {MOST_OF_A_KEY} bytes, not {len}"))),
    }
}

/// The effect of an entry of the configuration. Those of onnxruntime that aren't here change nothing but speed and memory.
fn entry(options: LoadOptions, key: &str, value: &str) -> Result<LoadOptions> {
    let wrong = |why: &str| Failure::argument(format!("the config entry {}: {} {why}", quote(key), quote(value)));
    let switch = || match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(wrong("is neither 0 nor 1")),
    };
    match key {
        "session.set_denormal_as_zero" if switch()? => {
            Err(wrong("is not implemented: onnxref computes with subnormal numbers"))
        }
        "session.load_model_format" if value == "ORT" => Err(wrong("is not implemented: onnxref reads ONNX only")),
        "session.model_external_initializers_file_folder_path" | "onnxref.external_root" => {
            Ok(options.external_root(value))
        }
        "onnxref.fast_math" => Ok(options.fast_math(switch()?)),
        UNTRUSTED => switch().map(|_| options),
        "onnxref.hard_links" => Ok(options.hard_links(switch()?)),
        _ => {
            let Some(own) = key.strip_prefix("onnxref.") else { return Ok(options) };
            let mut done = Err(wrong(&format!("sets nothing: what follows \"onnxref.\" is one of {OWN}")));
            let options = if let Some(name) = own.strip_prefix("limit.") {
                let number = value.parse().map_err(|_| wrong("is not a number"))?;
                options.change_limits(|limits| done = limits.set(name, number).map_err(Failure::from))
            } else if let Some(name) = own.strip_prefix("allow.") {
                let wanted = switch()?;
                options.compatibility(|all| done = if wanted { all.allow(name).map_err(Failure::from) } else { Ok(()) })
            } else {
                options
            };
            done.map(|()| options)
        }
    }
}

/// Options of a run, which another thread may end.
#[derive(Default)]
pub(crate) struct RunOptions {
    tag: Mutex<CString>,
    entries: Mutex<BTreeMap<String, CString>>,
    verbosity: AtomicI32,
    severity: AtomicI32,
    ended: Arc<AtomicBool>,
}

impl RunOptions {
    /// What ends the run.
    pub(crate) fn cancel(&self) -> Cancel {
        let ended = Arc::clone(&self.ended);
        Cancel::when(move || ended.load(Ordering::Relaxed))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle for OrtSessionOptions {
    type Value = SessionOptions;
}

impl Handle for OrtRunOptions {
    type Value = RunOptions;
}

releases!(ReleaseSessionOptions: OrtSessionOptions, ReleaseRunOptions: OrtRunOptions);

type Options = Change<OrtSessionOptions>;

entries! {
    fn CreateSessionOptions(out: Out<*mut OrtSessionOptions>) {
        out.give(SessionOptions::default());
        Ok(())
    }

    fn CloneSessionOptions(options: In<OrtSessionOptions>, out: Out<*mut OrtSessionOptions>) {
        out.give((*options).clone());
        Ok(())
    }

    fn SetIntraOpNumThreads(options: Options, threads: i32) {
        options.threads = thread_count(threads)?;
        Ok(())
    }

    /// Nodes run one after the other.
    fn SetInterOpNumThreads(options: Options, threads: i32) {
        thread_count(threads).map(drop)
    }

    fn DisablePerSessionThreads(options: Options) {
        options.shared_threads = true;
        Ok(())
    }

    /// Nodes run one after the other in any.
    fn SetSessionExecutionMode(options: Options, mode: i32) {
        options.mode = known("an execution mode", mode, &[0, 1])?;
        Ok(())
    }

    fn GetSessionExecutionMode(options: In<OrtSessionOptions>, out: Out<i32>) {
        out.set(options.mode);
        Ok(())
    }

    /// Any level gives the same bits.
    fn SetSessionGraphOptimizationLevel(options: Options, level: i32) {
        options.optimize = known("a level of optimization", level, &[0, 1, 2, 3, 99])? != 0;
        Ok(())
    }

    /// onnxref always does.
    fn SetDeterministicCompute(options: Options, on: bool) {
        Ok(())
    }

    fn EnableMemPattern(options: Options) {
        options.memory_pattern = true;
        Ok(())
    }

    fn DisableMemPattern(options: Options) {
        options.memory_pattern = false;
        Ok(())
    }

    fn GetMemPatternEnabled(options: In<OrtSessionOptions>, out: Out<i32>) {
        out.set(i32::from(options.memory_pattern));
        Ok(())
    }

    fn EnableCpuMemArena(options: Options) {
        Ok(())
    }

    fn DisableCpuMemArena(options: Options) {
        Ok(())
    }

    fn DisableProfiling(options: Options) {
        Ok(())
    }

    fn SetSessionLogId(options: Options, id: Text) {
        Ok(())
    }

    fn SetSessionLogVerbosityLevel(options: Options, level: i32) {
        Ok(())
    }

    fn SetSessionLogSeverityLevel(options: Options, level: i32) {
        severity(level).map(drop)
    }

    fn SetUserLoggingFunction(options: Options, logger: Raw<ort_sys::OrtLoggingFunction>, context: Space) {
        Ok(())
    }

    fn AddFreeDimensionOverrideByName(options: Options, name: Text, size: i64) {
        let known = usize::try_from(size).map_err(|_| Failure::argument(format!("{size} is not a size")))?;
        options.dimensions.push((name, known));
        Ok(())
    }

    fn AddSessionConfigEntry(options: Options, key: Text, value: Text) {
        check_key(&key)?;
        // What is wrong with it is said here already.
        let _ = entry(Model::options(), &key, &value)?;
        options.entries.insert(key, value);
        Ok(())
    }

    fn HasSessionConfigEntry(options: In<OrtSessionOptions>, key: Text, out: Out<i32>) {
        out.set(i32::from(options.entries.contains_key(&key)));
        Ok(())
    }

    /// The value of an entry, in a buffer of `size` bytes; without a buffer, the bytes that it takes.
    fn GetSessionConfigEntry(options: In<OrtSessionOptions>, key: Text, value: Raw<*mut c_char>, size: Out<usize>) {
        let Some(text) = options.entries.get(&key) else {
            return Err(Failure::argument(format!("there is no config entry {}", quote(&key))));
        };
        size.write_text(text, value)
    }

    /// Contents of files beside a model that comes from memory.
    fn AddExternalInitializersFromMemory(
        options: Options, names: Raw<*const *const ort_sys::os_char>, contents: Raw<*const *mut c_char>,
        sizes: Raw<*const usize>, count: usize,
    ) lists(names[count], contents[count], sizes[count]) {
        for (name, content) in names.paths()?.into_iter().zip(contents.contents(&sizes)?) {
            let name = name.to_string_lossy().into_owned();
            options.external.push((name, onnxref::bytes::Bytes::copy_from_slice(&content)));
        }
        Ok(())
    }

    fn CreateRunOptions(out: Out<*mut OrtRunOptions>) {
        let severity = AtomicI32::new(-1);
        out.give(RunOptions { severity, ..RunOptions::default() });
        Ok(())
    }

    fn RunOptionsSetRunLogVerbosityLevel(options: Change<OrtRunOptions>, level: i32) {
        options.verbosity.store(level, Ordering::Relaxed);
        Ok(())
    }

    fn RunOptionsSetRunLogSeverityLevel(options: Change<OrtRunOptions>, level: i32) {
        options.severity.store(severity(level)?, Ordering::Relaxed);
        Ok(())
    }

    fn RunOptionsGetRunLogVerbosityLevel(options: In<OrtRunOptions>, out: Out<i32>) {
        out.set(options.verbosity.load(Ordering::Relaxed));
        Ok(())
    }

    fn RunOptionsGetRunLogSeverityLevel(options: In<OrtRunOptions>, out: Out<i32>) {
        out.set(options.severity.load(Ordering::Relaxed));
        Ok(())
    }

    fn RunOptionsSetRunTag(options: Change<OrtRunOptions>, tag: Text) {
        *locked(&options.tag) = CString::new(tag).unwrap_or_default();
        Ok(())
    }

    fn RunOptionsGetRunTag(options: In<OrtRunOptions>, out: Out<*const c_char>) {
        out.set(locked(&options.tag).as_ptr());
        Ok(())
    }

    fn RunOptionsSetTerminate(options: Change<OrtRunOptions>) {
        options.ended.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn RunOptionsUnsetTerminate(options: Change<OrtRunOptions>) {
        options.ended.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn RunOptionsDisableProfiling(options: Change<OrtRunOptions>) {
        Ok(())
    }

    fn AddRunConfigEntry(options: Change<OrtRunOptions>, key: Text, value: Text) {
        check_key(&key)?;
        locked(&options.entries).insert(key, CString::new(value).unwrap_or_default());
        Ok(())
    }
}

other_entries! {
    fn GetRunConfigEntry(options: In<OrtRunOptions>, key: Text) -> *const c_char, std::ptr::null(), {
        locked(&options.entries).get(&key).map_or(std::ptr::null(), |value| value.as_ptr())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Environment, SessionOptions};

    /// What is set reaches the library.
    #[test]
    fn loading() {
        let shown = |options: &SessionOptions| {
            let text = format!("{:?}", options.loading(&Environment { threads: Some(7) }).unwrap());
            let field = |name: &str| {
                let (_, rest) = text.split_once(&format!(" {name}: ")).unwrap();
                rest.split([',', '}']).next().unwrap().trim().to_string()
            };
            [field("threads"), field("optimize"), field("fast_math"), field("dimensions")]
        };
        let mut options = SessionOptions::default();
        assert_eq!(shown(&options), ["None", "true", "false", "[]"]);
        options.threads = Some(3);
        options.optimize = false;
        options.entries.insert("onnxref.fast_math".to_string(), "1".to_string());
        options.entries.insert("session.intra_op.allow_spinning".to_string(), "0".to_string());
        assert_eq!(shown(&options), ["Some(3)", "false", "true", "[]"]);
        options.shared_threads = true;
        assert_eq!(shown(&options), ["Some(7)", "false", "true", "[]"]);
    }
}
