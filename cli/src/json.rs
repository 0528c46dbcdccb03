//! JSON on standard output.

use crate::failure::{Failure, explain};
use crate::print::{self, Stdout};
use onnxref::Cancel;
use onnxref_view::error::Fault;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Prints a document on one line.
pub(crate) fn line(document: &impl Serialize) -> Result<(), Failure> {
    line_until(document, &Cancel::new())
}

/// As [`line`], until the time is up.
pub(crate) fn line_until(document: &impl Serialize, cancel: &Cancel) -> Result<(), Failure> {
    let written = print::document(cancel, |to| {
        document.serialize(&mut Serializer::with_formatter(&mut *to, Escaping)).map_err(io::Error::from)?;
        Ok(to.write_all(b"\n")?)
    });
    written.map_err(|why| why.failure("standard output", |why| why))
}

/// Prints `{"error": ..}`: see [`Fault`].
pub(crate) fn error(failure: &Failure) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        error: Fault<'a>,
    }
    let mut text = Vec::new();
    if print::in_a_line() {
        // That of a document which has no end.
        text.push(b'\n');
    }
    Document { error: fault(failure) }.serialize(&mut Serializer::with_formatter(&mut text, Escaping))?;
    text.push(b'\n');
    Stdout.write_all(&text)
}

/// Escapes what a terminal would act on or not show, where texts are those of a model.
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        let shows = |c: char| c.escape_debug().len() == 1 || matches!(c, '"' | '\'' | '\\');
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| !shows(*c)) {
            let (before, after) = rest.split_at(at);
            to.write_all(before.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(to, "\\u{unit:04x}")?;
            }
            rest = after.get(c.len_utf8()..).unwrap_or_default();
        }
        to.write_all(rest.as_bytes())
    }
}

/// A failure as data.
pub(crate) fn fault(failure: &Failure) -> Fault<'_> {
    match &failure.error {
        Some(error) => Fault::new(error, &failure.message, explain),
        None => Fault::other(failure.kind, &failure.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Control characters, marks that turn the text around, and what isn't seen; letters and quotes stay as JSON has them.
    #[test]
    fn a_terminal_acts_on_nothing() {
        let text = "a\u{9b}31m\u{7f}\u{202e}\u{200b}\u{e0001}é\"'\\\n\u{1b}";
        let mut written = Vec::new();
        text.serialize(&mut Serializer::with_formatter(&mut written, Escaping)).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written, r#""a\u009b31m\u007f\u202e\u200b\udb40\udc01é\"'\\\n\u001b""#);
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    }
}
