//! Failures of the program, with their exit codes.

use crate::bounded::{self, OUTPUT_BYTES};
use crate::print::path;
use onnxref::{Error, Kind, Remedy};
use onnxref_view::grouped;
use std::io;

/// A comparison failed.
pub(crate) const FAILED: u8 = 1;
/// The command line must change: a flag, an input of the wrong name, type or shape, a file that can't be used. clap uses
/// this code too.
pub(crate) const USAGE: u8 = 2;
/// A model or an archive can't be loaded, or a model needs something that is not implemented.
pub(crate) const LOAD: u8 = 3;
/// The run failed, or the system failed to write its output.
pub(crate) const RUN: u8 = 4;
/// Nothing, or not enough, was tested.
pub(crate) const NOTHING: u8 = 5;

/// The message for standard error, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// What it is in JSON, unless it is the library's error.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    /// Lines below the message.
    pub(crate) details: Vec<String>,
    /// The library's error, if it is one.
    pub(crate) error: Option<Error>,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Failure {
        let kind = match code {
            FAILED => "differs",
            USAGE => "usage",
            LOAD => "model",
            NOTHING => "nothing",
            _ => "io",
        };
        Failure { code, kind, message: message.into(), details: Vec::new(), error: None }
    }

    /// An archive or a folder can't be read.
    pub(crate) fn unreadable(message: impl Into<String>) -> Failure {
        Failure { kind: "io", ..Failure::new(LOAD, message) }
    }

    /// A library's error of what can't be loaded, with its text.
    pub(crate) fn load(error: Error) -> Failure {
        let failure = Failure::new(LOAD, format!("{error:#}"));
        Failure { error: Some(error), ..failure }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(USAGE, message)
    }

    /// A file or folder can't be made. Unless the disk is full, another place is needed.
    pub(crate) fn unmade(place: &str, error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::run(bounded::error(place, error)),
            _ => Failure::usage(format!("{}: {error}", path(place))),
        }
    }

    /// A run failed, or it didn't start: then what is fed isn't what the model takes.
    pub(crate) fn run(error: Error) -> Failure {
        let fed = error.kind() == Kind::Input && error.place().node_index.is_none();
        let failure = Failure::new(if fed { USAGE } else { RUN }, explain(&error));
        Failure { error: Some(error), ..failure }
    }

    /// Standard output can't be written.
    pub(crate) fn stdout(error: io::Error) -> Failure {
        Failure::run(bounded::error("standard output", error))
    }

    /// The message and the lines below it.
    pub(crate) fn text(&self) -> String {
        let colon = if self.details.is_empty() { "" } else { ":" };
        let details = self.details.iter().map(|line| format!("\n  {line}"));
        format!("{}{colon}{}", self.message, details.collect::<String>())
    }
}

/// An error's text, with the flag that resolves it.
pub(crate) fn explain(error: &Error) -> String {
    format!("{error:#}{}", flag(error))
}

/// The text of what takes too many bytes, with the flag that allows it.
pub(crate) fn exceeded(what: &str, bytes: u64, name: &str, limit: u64) -> String {
    format!("{what} {} bytes: the limit is {} (--limit {name}=N raises it)", grouped(bytes), grouped(limit))
}

/// The flag that resolves an error: ` (--hard-links accepts it)`, or nothing.
pub(crate) fn flag(error: &Error) -> String {
    match error.remedy() {
        Some(Remedy::RaiseLimit(name)) => format!(" (--limit {name}=N raises it)"),
        Some(Remedy::Allow(name)) => format!(" (--allow {} accepts it)", name.replace('_', "-")),
        Some(Remedy::ExternalRoot) => " (--external-root DIR allows links into DIR)".to_string(),
        None if error.place().limit == Some(OUTPUT_BYTES) => format!(" (--limit {OUTPUT_BYTES}=N raises it)"),
        Some(Remedy::HardLinks) => " (--hard-links accepts it)".to_string(),
        // Nothing else cancels a run here.
        _ if error.kind() == Kind::Cancelled => ": --timeout gives it more time".to_string(),
        _ => String::new(),
    }
}
