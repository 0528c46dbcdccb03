//! Cases: the input, the expected error, and checks that apply to every case.

use crate::memory::{Peak, peak_of};
use bytes::Bytes;
use onnxref::{Error, Inputs, Kind, Limits, LoadOptions, Model, Outputs, Place, Tensor, Value};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing here takes a tenth of this. Work that never ends is found by it; nothing else is measured by the clock.
const FOREVER: Duration = Duration::from_secs(30);

/// The stack on which each case is tried again.
pub(crate) const SMALL_STACK: usize = 256 << 10;

/// The stack that any call runs on: without optimisation, products and 33 levels of a text take more than the small one.
pub(crate) const STACK: usize = if cfg!(debug_assertions) { 4 * SMALL_STACK } else { SMALL_STACK };

/// What a run may take beside its tensors: places of values, the texts of an error.
pub(crate) const BESIDE: u64 = 64 << 10;

/// What comes in.
#[derive(Debug, Clone)]
pub(crate) enum Door {
    Model(Bytes),
    File(PathBuf),
    /// A tensor alone.
    Tensor(Bytes),
}

/// A part of an error's place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum At {
    /// No place at all.
    Nowhere,
    Node(usize),
    Operator(String),
    Version(i64),
    Name(String),
    Attribute(String),
    Axis(i64),
    Size(usize),
    Value(i128),
    Position(Vec<usize>),
    Limit(&'static str),
}

impl At {
    fn is(&self, place: &Place) -> bool {
        match self {
            At::Nowhere => *place == Place::default(),
            At::Node(index) => place.node_index == Some(*index),
            At::Operator(name) => place.operator.as_ref() == Some(name),
            At::Version(version) => place.version == Some(*version),
            At::Name(name) => place.value_name.as_ref().or(place.parameter.as_ref()) == Some(name),
            At::Attribute(name) => place.attribute.as_ref() == Some(name),
            At::Axis(axis) => place.axis == Some(*axis),
            At::Size(size) => place.size == Some(*size),
            At::Value(value) => place.value == Some(*value),
            At::Position(position) => place.position.as_ref() == Some(position),
            At::Limit(limit) => place.limit == Some(*limit),
        }
    }
}

/// Something that is refused.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    category: &'static str,
    name: String,
    door: Door,
    options: LoadOptions,
    limits: Limits,
    /// Bytes of external data that are read until the fault is found.
    reads: u64,
    /// The model loads, and a run with these is refused.
    feeds: Option<Vec<(&'static str, Value)>>,
    /// What a run may take beside `run_bytes`.
    scratch: u64,
    kind: Kind,
    at: Vec<At>,
    text: String,
}

impl Case {
    /// A case that is refused as an error of a kind with `text` in it.
    pub(crate) fn new(
        category: &'static str,
        name: impl Display,
        door: impl Into<Door>,
        kind: Kind,
        text: impl Display,
    ) -> Case {
        let (name, text) = (name.to_string(), text.to_string());
        let (options, limits, at) = (Model::options(), Limits::default(), Vec::new());
        Case { category, name, door: door.into(), options, limits, reads: 0, feeds: None, scratch: 0, kind, at, text }
    }

    pub(crate) fn at(mut self, at: impl IntoIterator<Item = At>) -> Case {
        self.at.extend(at);
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Case {
        change(&mut self.limits);
        self
    }

    pub(crate) fn options(mut self, options: LoadOptions) -> Case {
        self.options = options;
        self
    }

    pub(crate) fn reads(mut self, bytes: u64) -> Case {
        self.reads = bytes;
        self
    }

    /// The fault is in what is fed, or is found by a run.
    pub(crate) fn fed<V: Into<Value>>(mut self, feeds: impl IntoIterator<Item = (&'static str, V)>) -> Case {
        self.feeds = Some(feeds.into_iter().map(|(name, value)| (name, value.into())).collect());
        self
    }

    pub(crate) fn scratch(mut self, bytes: u64) -> Case {
        self.scratch = bytes;
        self
    }

    /// What comes of it, and what it took; the time of the call that refused it.
    fn attempt(&self) -> Attempt {
        let options = self.options.clone().limits(self.limits.clone());
        let start = Instant::now();
        let (loaded, load) = peak_of(|| match &self.door {
            Door::Model(bytes) => options.from_bytes(bytes.clone()).map(Some),
            Door::File(path) => options.load(path).map(Some),
            Door::Tensor(bytes) => Tensor::from_proto_bytes(bytes.clone()).map(|_| None),
        });
        let took = start.elapsed();
        let (model, feeds) = match (loaded, &self.feeds) {
            (Ok(Some(model)), Some(feeds)) => (model, feeds),
            (loaded, _) => {
                let result = loaded.map(drop);
                return Attempt { result, early: self.feeds.is_some(), load, run: Peak::default(), took };
            }
        };
        let start = Instant::now();
        let (result, run) = peak_of(|| model.run(feeds.iter().map(|(name, value)| (*name, value.clone())).collect()));
        Attempt { result: result.map(drop), early: false, load, run, took: start.elapsed() }
    }

    /// How an inspection of the model differs from the attempt to load it: it has the same error, or ends at a limit.
    fn inspection(&self, attempt: &Attempt) -> Vec<String> {
        let Door::Model(bytes) = &self.door else { return Vec::new() };
        let options = self.options.clone().limits(self.limits.clone());
        let (inspected, peak) = peak_of(|| options.inspect_bytes(bytes.clone()));
        let mut lines = Vec::new();
        let error = match inspected {
            Ok(found) => found.error,
            Err(error) => Some(error),
        };
        let at_a_limit = error.as_ref().is_some_and(|error| error.kind() == Kind::Limit);
        let refused = attempt.result.as_ref().err().filter(|_| self.feeds.is_none() || attempt.early);
        let [own, of_load] = [error.as_ref(), refused].map(|error| error.map(ToString::to_string));
        if own != of_load && !at_a_limit {
            lines.push(format!("an inspection says {own:?}, and not {of_load:?}"));
        }
        let Limits { load_bytes, load_bytes_per_byte, .. } = self.limits;
        let size = bytes.len() as u64;
        let promised = load_bytes.saturating_add(load_bytes_per_byte.saturating_mul(2 * size + self.reads));
        let taken = peak.bytes + size;
        if taken > promised.max(size + BESIDE) {
            lines.push(format!("an inspection takes {taken} bytes, and {promised} are promised"));
        }
        lines
    }

    /// How an attempt differs from what should be.
    fn differences(&self, attempt: &Attempt) -> Vec<String> {
        let mut lines = Vec::new();
        let Err(error) = &attempt.result else { return vec!["is no error".to_string()] };
        if attempt.early {
            lines.push(format!("is refused before the run: {error}"));
        }
        if error.kind() != self.kind {
            lines.push(format!("is of kind {}, and not {}: {error}", error.kind(), self.kind));
        }
        if !error.to_string().contains(&self.text) {
            lines.push(format!("says {error}\n    and not {}", self.text));
        }
        for at in self.at.iter().filter(|at| !at.is(error.place())) {
            lines.push(format!("is not at {at:?}, but at {:?}", shown(error.place())));
        }
        lines.extend(text_faults(error));
        let size = match &self.door {
            Door::Model(bytes) | Door::Tensor(bytes) => bytes.len() as u64,
            Door::File(path) => match path.metadata() {
                Ok(data) if data.is_file() && data.len() <= self.limits.file_bytes => data.len(),
                _ => 0,
            },
        };
        // What was read into memory by the caller counts as well.
        let own = if matches!(self.door, Door::File(_)) { 0 } else { size };
        let Limits { load_bytes, load_bytes_per_byte, run_bytes, .. } = self.limits;
        let promised = load_bytes.saturating_add(load_bytes_per_byte * (size + self.reads));
        let taken = attempt.load.bytes + own;
        // The bytes are there before anything can be refused, and an error takes some.
        if taken > promised.max(own + BESIDE) {
            lines.push(format!("takes {taken} bytes to load, and {promised} are promised"));
        }
        let promised = run_bytes.saturating_add(self.scratch + BESIDE);
        if attempt.run.bytes > promised {
            lines.push(format!("takes {} bytes to run, and {promised} are promised", attempt.run.bytes));
        }
        lines
    }
}

impl From<Vec<u8>> for Door {
    fn from(bytes: Vec<u8>) -> Door {
        Door::Model(bytes.into())
    }
}

impl From<&Path> for Door {
    fn from(path: &Path) -> Door {
        Door::File(path.into())
    }
}

struct Attempt {
    result: Result<(), Error>,
    /// The model should have loaded and didn't.
    early: bool,
    load: Peak,
    run: Peak,
    took: Duration,
}

impl Attempt {
    /// All that an error says.
    fn text(&self) -> String {
        let Err(error) = &self.result else { return "no error".to_string() };
        let causes: Vec<String> = error.causes().iter().map(|e| format!("{e:?} {:?}", e.place())).collect();
        format!("{error:?} {:?} {causes:?}", error.place())
    }
}

/// A place without the names that are as long as a screen.
fn shown(place: &Place) -> String {
    format!("{place:?}").chars().take(400).collect()
}

/// Text that could be taken for something else, or floods a screen.
pub(crate) fn text_faults(error: &Error) -> Vec<String> {
    let mut faults = Vec::new();
    for error in [error].into_iter().chain(error.causes()) {
        let text = error.to_string();
        if text.len() > 4096 + 1536 {
            faults.push(format!("has a text of {} bytes", text.len()));
        }
        if text.lines().count() > 3 {
            faults.push(format!("has a text of {} lines", text.lines().count()));
        }
        if let Some(c) = text.chars().find(|&c| c != '\n' && crate::names::is_dangerous(c)) {
            faults.push(format!("has {c:?} in its text: {text:?}"));
        }
    }
    faults.truncate(3);
    faults
}

/// Does some work on a thread of its own, which is named after it: a stack that overflows says whose it is.
/// `Err`: it panicked, or did not come to an end.
pub(crate) fn on_thread<T: Send + 'static>(
    name: &str,
    stack: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (send, receive) = mpsc::channel();
    let name: String = name.chars().filter(|c| *c != '\0').take(200).collect();
    let thread = thread::Builder::new().name(name).stack_size(stack).spawn(move || {
        let _ = send.send(work());
    });
    let thread = thread.unwrap();
    match receive.recv_timeout(FOREVER) {
        Ok(result) => {
            thread.join().unwrap();
            Ok(result)
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("panics".to_string()),
        Err(mpsc::RecvTimeoutError::Timeout) => Err("does not come to an end".to_string()),
    }
}

/// Every case is refused as it says: with the stack that threads have and again with a small one, each time with the
/// same text; and each time a good model runs afterwards as if nothing had been.
pub(crate) fn check(cases: impl IntoIterator<Item = Case>) {
    let mut wrong = Vec::new();
    for case in cases {
        let case = Arc::new(case);
        let title = format!("{}: {}", case.category, case.name);
        let mut lines = Vec::new();
        let mut texts = Vec::new();
        for (stack, small) in [(2 << 20, ""), (SMALL_STACK, "on a small stack it ")] {
            let attempted = case.clone();
            match on_thread(&title, stack, move || {
                let attempt = attempted.attempt();
                let mut differences = attempted.differences(&attempt);
                if stack == SMALL_STACK {
                    differences.extend(attempted.inspection(&attempt));
                }
                (differences, attempt)
            }) {
                Ok((differences, attempt)) => {
                    lines.extend(differences);
                    texts.push(attempt.text());
                    note(&case, &attempt);
                }
                Err(fate) => lines.push(format!("{small}{fate}")),
            }
            GOOD.runs();
        }
        GOOD.loads();
        if let [first, second] = texts.as_slice()
            && first != second
        {
            lines.push(format!("says another thing the second time:\n    {first}\n    {second}"));
        }
        lines.dedup();
        if !lines.is_empty() {
            wrong.push(format!("{title}\n  {}", lines.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// What was seen in a category.
#[derive(Default)]
struct Seen {
    cases: usize,
    /// Bytes taken for each byte that came in, of inputs of at least 64 KiB.
    worst: f64,
    worst_name: String,
    most: u64,
    slowest: Duration,
    slowest_name: String,
}

static SEEN: Mutex<BTreeMap<&'static str, Seen>> = Mutex::new(BTreeMap::new());

fn note(case: &Case, attempt: &Attempt) {
    let len = match &case.door {
        Door::Model(bytes) | Door::Tensor(bytes) => bytes.len() as u64,
        Door::File(_) => 0,
    };
    let mut seen = SEEN.lock().unwrap();
    let seen = seen.entry(case.category).or_default();
    seen.cases += 1;
    seen.most = seen.most.max(attempt.load.bytes);
    let ratio = attempt.load.bytes as f64 / len as f64;
    if len >= 64 << 10 && ratio > seen.worst {
        (seen.worst, seen.worst_name) = (ratio, case.name.clone());
    }
    if attempt.took > seen.slowest {
        (seen.slowest, seen.slowest_name) = (attempt.took, case.name.clone());
    }
}

/// Prints what was seen in a category: for whoever asks with `--nocapture`.
pub(crate) fn report(category: &'static str) {
    let seen = SEEN.lock().unwrap();
    let Some(Seen { cases, worst, worst_name, most, slowest, slowest_name }) = seen.get(category) else { return };
    println!(
        "{category:<14} {:>4} cases; most memory {most} B; worst {worst:.2} B for a byte ({worst_name:.60}); slowest {:.3} ms \
         ({slowest_name:.60})",
        cases / 2,
        slowest.as_secs_f64() * 1e3,
    );
}

/// A model that is right, and what it gives.
pub(crate) struct Good {
    bytes: Bytes,
    model: Model,
    feeds: Vec<(&'static str, Tensor)>,
    outputs: Vec<Tensor>,
}

pub(crate) static GOOD: LazyLock<Good> = LazyLock::new(Good::new);

impl Good {
    fn new() -> Good {
        let bytes = Bytes::from(crate::graphs::good_bytes());
        let model = Model::from_bytes(bytes.clone()).unwrap();
        let feeds = crate::graphs::good_feeds();
        let outputs = crate::graphs::good_outputs();
        Good { bytes, model, feeds, outputs }
    }

    fn inputs(&self) -> Inputs<'_> {
        self.feeds.iter().map(|(name, tensor)| (*name, tensor)).collect()
    }

    /// It still gives what it gave.
    pub(crate) fn runs(&self) {
        self.gives(&self.model);
    }

    /// It loads again, and gives the same.
    pub(crate) fn loads(&self) {
        self.gives(&Model::from_bytes(self.bytes.clone()).unwrap());
    }

    fn gives(&self, model: &Model) {
        let outputs: Outputs = model.run(self.inputs()).unwrap();
        let given: Vec<&Tensor> = outputs.iter().map(|(_, value)| value.tensor().unwrap()).collect();
        assert_eq!(given, self.outputs.iter().collect::<Vec<_>>());
    }
}
