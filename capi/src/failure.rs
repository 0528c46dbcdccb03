//! Errors as statuses.

use crate::crossing::{Handle, In, Text, other_entries, releases};
use onnxref::{Error, Kind, Remedy};
use ort_sys::{OrtErrorCode, OrtStatus, OrtStatusPtr, stub};
use std::ffi::c_char;

/// Why a function of the API failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: OrtErrorCode,
    message: String,
    /// It is about a call of the API: the text says of which function.
    call: bool,
}

impl Failure {
    pub(crate) fn new(code: OrtErrorCode, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), call: true }
    }

    /// The program has to change.
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::new(OrtErrorCode::ORT_INVALID_ARGUMENT, message)
    }

    /// onnxref doesn't have it.
    pub(crate) fn missing(message: impl Into<String>) -> Failure {
        Failure::new(OrtErrorCode::ORT_NOT_IMPLEMENTED, message)
    }

    pub(crate) fn other(message: impl Into<String>) -> Failure {
        Failure::new(OrtErrorCode::ORT_FAIL, message)
    }

    pub(crate) fn bug(message: impl Into<String>) -> Failure {
        Failure::new(OrtErrorCode::ORT_RUNTIME_EXCEPTION, message)
    }

    /// Says what it is about.
    pub(crate) fn within(self, what: &str) -> Failure {
        Failure { message: format!("{what}: {}", self.message), ..self }
    }

    /// The status that a function returns. The layout is that of the crate `ort-sys`, whose own functions make some too.
    pub(crate) fn into_status(self, function: &str) -> OrtStatusPtr {
        let function = if self.call { format!("{function}: ") } else { String::new() };
        status(self.code, &format!("{function}{}", self.message))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error.kind() {
            Kind::Io if is_not_found(&error) => OrtErrorCode::ORT_NO_SUCHFILE,
            Kind::Model if is_malformed(&error) => OrtErrorCode::ORT_INVALID_PROTOBUF,
            Kind::Model => OrtErrorCode::ORT_INVALID_GRAPH,
            Kind::Input => OrtErrorCode::ORT_INVALID_ARGUMENT,
            Kind::Unsupported => OrtErrorCode::ORT_NOT_IMPLEMENTED,
            Kind::Internal => OrtErrorCode::ORT_RUNTIME_EXCEPTION,
            _ => OrtErrorCode::ORT_FAIL,
        };
        Failure { code, message: format!("{error:#}{}", remedy(&error)), call: false }
    }
}

fn is_not_found(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::NotFound)
}

/// Whether it is the file that can't be decoded.
fn is_malformed(error: &Error) -> bool {
    format!("{error:#}").starts_with("the file is not an ONNX model")
}

/// The entry of the session's configuration that resolves an error.
fn remedy(error: &Error) -> String {
    match error.remedy() {
        Some(Remedy::RaiseLimit(name)) => format!(" (the session's config entry onnxref.limit.{name} raises it)"),
        Some(Remedy::Allow(name)) => format!(" (the session's config entry onnxref.allow.{name} accepts it)"),
        Some(Remedy::ExternalRoot) => {
            " (the session's config entry onnxref.external_root allows links into a folder)".to_string()
        }
        Some(Remedy::HardLinks) => " (the session's config entry onnxref.hard_links accepts it)".to_string(),
        Some(Remedy::ExternalData) => {
            " (load the model by its path, or call AddExternalInitializersFromFilesInMemory)".to_string()
        }
        _ => String::new(),
    }
}

impl Handle for OrtStatus {
    type Value = stub::Error;
}

releases!(ReleaseStatus: OrtStatus);

other_entries! {
    fn CreateStatus(code: i32, msg: Text) -> OrtStatusPtr, status(OrtErrorCode::ORT_FAIL, ""), {
        status(code_of(code), &msg)
    }

    fn GetErrorCode(status: In<OrtStatus>) -> OrtErrorCode, OrtErrorCode::ORT_OK, {
        status.code
    }

    fn GetErrorMessage(status: In<OrtStatus>) -> *const c_char, c"".as_ptr(), {
        status.message_ptr()
    }
}

fn status(code: OrtErrorCode, message: &str) -> OrtStatusPtr {
    stub::Error::new_sys(code, message.replace('\0', "\\0"))
}

/// The code with a number.
fn code_of(number: i32) -> OrtErrorCode {
    use OrtErrorCode::*;
    let codes = [
        ORT_OK,
        ORT_FAIL,
        ORT_INVALID_ARGUMENT,
        ORT_NO_SUCHFILE,
        ORT_NO_MODEL,
        ORT_ENGINE_ERROR,
        ORT_RUNTIME_EXCEPTION,
        ORT_INVALID_PROTOBUF,
        ORT_MODEL_LOADED,
        ORT_NOT_IMPLEMENTED,
        ORT_INVALID_GRAPH,
        ORT_EP_FAIL,
    ];
    codes.into_iter().find(|code| *code as i32 == number).unwrap_or(ORT_FAIL)
}
