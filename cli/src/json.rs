//! JSON on standard output.

use crate::bounded::Unwritten;
use crate::failure::{Failure, explain};
use crate::print::{self, Stdout};
use onnxref::Cancel;
use onnxref_view::error::Fault;
use serde::Serialize;
use std::io::{self, Write};

/// Prints a document on one line.
pub(crate) fn line(document: &impl Serialize) -> Result<(), Failure> {
    line_until(document, &Cancel::new())
}

/// As [`line`], until the time is up.
pub(crate) fn line_until(document: &impl Serialize, cancel: &Cancel) -> Result<(), Failure> {
    let written = print::document(cancel, |to| {
        serde_json::to_writer(&mut *to, document).map_err(io::Error::from)?;
        Ok(to.write_all(b"\n")?)
    });
    written.map_err(|why| match why {
        Unwritten::Failed(error) => Failure::stdout(error),
        Unwritten::Unfit(why) => Failure::usage(why),
    })
}

/// Prints `{"error": ..}`: see [`Fault`].
pub(crate) fn error(failure: &Failure) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        error: Fault<'a>,
    }
    let mut text = serde_json::to_string(&Document { error: fault(failure) })?;
    if print::in_a_line() {
        // That of a document which has no end.
        text.insert(0, '\n');
    }
    writeln!(Stdout, "{text}")
}

/// A failure as data.
pub(crate) fn fault(failure: &Failure) -> Fault<'_> {
    match &failure.error {
        Some(error) => Fault::new(error, &failure.message, explain),
        None => Fault::other(failure.kind, &failure.message),
    }
}
