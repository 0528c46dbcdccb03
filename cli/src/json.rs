//! JSON on standard output.

use crate::failure::{Failure, LOAD, USAGE, explain};
use crate::print::Stdout;
use onnxref_view::error::Fault;
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// Prints a document on one line.
pub(crate) fn line(document: &impl Serialize) -> Result<(), Failure> {
    write(document).map_err(Failure::stdout)
}

fn write(document: &impl Serialize) -> io::Result<()> {
    let mut out = BufWriter::new(Stdout);
    serde_json::to_writer(&mut out, document)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Prints `{"error": ..}`: see [`Fault`].
pub(crate) fn error(failure: &Failure) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        error: Fault<'a>,
    }
    write(&Document { error: fault(failure) })
}

/// A failure as data.
pub(crate) fn fault(failure: &Failure) -> Fault<'_> {
    match &failure.error {
        Some(error) => Fault::new(error, &failure.message, explain),
        None => Fault::other(own_kind(failure.code), &failure.message),
    }
}

/// The kind of an error that the program finds itself.
fn own_kind(code: u8) -> &'static str {
    match code {
        USAGE => "usage",
        LOAD => "model",
        _ => "io",
    }
}
