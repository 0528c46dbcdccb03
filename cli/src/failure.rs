//! Why the program ends with another code than 0.

use onnxref::{Error, quote};

/// A comparison failed.
pub(crate) const FAILED: u8 = 1;
/// The command line is wrong, or a file that it names can't be used. clap ends with this code too.
pub(crate) const USAGE: u8 = 2;
/// A model or an archive can't be loaded, or needs what is not implemented.
pub(crate) const LOAD: u8 = 3;
/// The model refuses what it is fed, or its outputs can't be written.
pub(crate) const RUN: u8 = 4;
/// Nothing, or not enough, was tested.
pub(crate) const NOTHING: u8 = 5;

/// A list of faults is cut to this many lines.
const MAX_LINES: usize = 20;

/// What to say on standard error, and the code to end with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into() }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure::new(USAGE, text)
    }

    /// The faults of a model, each on a line, equal ones of several nodes once.
    pub(crate) fn load(model: &str, error: &Error) -> Failure {
        let mut faults: Vec<Fault> = Vec::new();
        for cause in error.causes() {
            let reason = reason(cause);
            match faults.iter_mut().find(|fault| fault.reason == reason) {
                Some(fault) => fault.nodes += 1,
                None => faults.push(Fault { reason, first: cause, nodes: 1 }),
            }
        }
        if let [fault] = faults.as_slice() {
            return Failure::new(LOAD, fault.to_string());
        }
        let mut text = format!("{model} has {} faults:", faults.len());
        for fault in faults.iter().take(MAX_LINES) {
            text += &format!("\n  {fault}");
        }
        if let Some(more @ 1..) = faults.len().checked_sub(MAX_LINES) {
            text += &format!("\n  and {more} more");
        }
        Failure::new(LOAD, text)
    }
}

/// What is wrong, without the node where it is.
pub(crate) fn reason(error: &Error) -> String {
    let text = error.to_string();
    let stripped = node(error).and_then(|node| text.strip_prefix(&node)?.split_once(": "));
    stripped.map_or_else(|| text.clone(), |(_, message)| message.to_string())
}

/// The node where an error is, as its text begins: `node "x"`, `node #3`.
fn node(error: &Error) -> Option<String> {
    let place = error.place();
    let index = place.node_index?;
    let name = place.node.as_deref().filter(|name| !name.is_empty());
    Some(name.map_or_else(|| format!("node #{index}"), |name| format!("node {}", quote(name))))
}

struct Fault<'a> {
    reason: String,
    first: &'a Error,
    nodes: usize,
}

impl std::fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.nodes, node(self.first)) {
            (2.., Some(first)) => write!(f, "{} ({} nodes, first: {first})", self.reason, self.nodes),
            (2.., None) => write!(f, "{} ({} times)", self.reason, self.nodes),
            _ => write!(f, "{}", self.first),
        }
    }
}
