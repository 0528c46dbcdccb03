//! Errors of the library as exceptions of Python, whose classes are in `onnxref/_errors.py`.

use onnxref::{Error, Kind, Remedy};
use onnxref_view::error::{Cause, Fault};
use pyo3::intern;
use pyo3::prelude::*;
use serde::Serialize;
use std::error::Error as _;
use std::io::{self, ErrorKind::NotFound};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What `_errors.py` makes an exception of.
#[derive(Serialize)]
struct Document<'a> {
    error: Cause<'a>,
    fault: Fault<'a>,
    remedy: Option<String>,
    /// A file isn't there.
    not_found: bool,
    /// The number of the system's error, of a file that can't be written.
    unwritten: Option<i32>,
}

/// The exception for an error.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    made(py, error, None)
}

/// The exception for an error of a model that can't be saved.
pub(crate) fn unsaved(py: Python<'_>, error: &Error, path: &Path) -> PyErr {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let raised = made(py, error, source.map(|source| source.raw_os_error().unwrap_or_default()));
    // Exceptions of other kinds have no place for it.
    if source.is_some() {
        let _ = raised.value(py).setattr(intern!(py, "filename"), path.to_string_lossy());
    }
    raised
}

fn made(py: Python<'_>, error: &Error, unwritten: Option<i32>) -> PyErr {
    let document = Document {
        error: Cause::new(error, explain(error)),
        fault: Fault::new(error, explain(error), explain),
        remedy: error.remedy().map(remedy),
        not_found: error.source().and_then(|source| source.downcast_ref()).map(io::Error::kind) == Some(NotFound),
        unwritten,
    };
    let make = || {
        let text = serde_json::to_string(&document).unwrap_or_default();
        py.import(intern!(py, "onnxref._errors"))?.getattr(intern!(py, "of"))?.call1((text,))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// The exception for what Python's caller did wrong.
pub(crate) fn input(py: Python<'_>, message: String) -> PyErr {
    raised(py, &Error::input(message))
}

/// What `work` returns. A panic is an exception too.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        let error = Error::new(Kind::Internal, format!("{text}: this is a bug in onnxref, please report it"));
        Python::attach(|py| raised(py, &error))
    })
}

/// An error's text, with what resolves it in Python.
fn explain(error: &Error) -> String {
    let remedy =
        error.remedy().map(|it| format!(" ({} {})", remedy(it), if raises(it) { "raises it" } else { "accepts it" }));
    format!("{error:#}{}", remedy.unwrap_or_default())
}

fn raises(remedy: Remedy) -> bool {
    matches!(remedy, Remedy::RaiseLimit(_))
}

/// The option of `InferenceSession` that resolves an error.
fn remedy(remedy: Remedy) -> String {
    match remedy {
        Remedy::RaiseLimit(name) => format!("limits={{\"{name}\": N}}"),
        Remedy::Allow(name) => format!("allow=[\"{name}\"]"),
        Remedy::ExternalRoot => "external_roots=[FOLDER]".to_string(),
        Remedy::HardLinks => "hard_links=True".to_string(),
        Remedy::ExternalData => "a path in the place of bytes, or external_data={LOCATION: BYTES},".to_string(),
        other => other.to_string(),
    }
}
