//! Standard output and standard error.

use onnxref::{Outputs, Value, quote};
use std::io::{self, Write};

/// Standard output, which a reader such as `head` may close early: what follows is then lost, quietly.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(io::stdout().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(io::stdout().flush(), ())
    }
}

fn unless_closed<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(otherwise),
        result => result,
    }
}

/// A line for each output: name, element type, shape, values cut in the middle.
pub(crate) fn table(outputs: &Outputs) -> io::Result<()> {
    let row = |(name, value): (&str, &Value)| match value.tensor() {
        Ok(tensor) => {
            [plain(name), tensor.dtype().to_string(), format!("{:?}", tensor.shape()), tensor.values().to_string()]
        }
        // The text of other values begins with their type.
        Err(_) => [plain(name), value.to_string(), String::new(), String::new()],
    };
    let rows: Vec<[String; 4]> = outputs.iter().map(row).collect();
    let width = |column: fn(&[String; 4]) -> &str| rows.iter().map(|r| column(r).chars().count()).max().unwrap_or(0);
    let (names, types, shapes) = (width(|[name, ..]| name), width(|[_, dtype, ..]| dtype), width(|[_, _, s, _]| s));
    let mut out = Stdout;
    for [name, dtype, shape, values] in &rows {
        writeln!(out, "{name:names$}  {dtype:types$}  {shape:shapes$}  {values}")?;
    }
    out.flush()
}

/// A name without quotes where that is safe to show.
fn plain(name: &str) -> String {
    let quoted = quote(name);
    if quoted.len() == name.len() + 2 && !name.contains(' ') { name.to_string() } else { quoted }
}

/// A path, whole, with the characters escaped that could change how the line is shown.
pub(crate) fn path(text: &str) -> String {
    let escape = |c: char| {
        let quoted = quote(&c.to_string());
        quoted.get(1..quoted.len() - 1).unwrap_or("").to_string()
    };
    text.chars().map(escape).collect()
}

pub(crate) fn note(text: &str) {
    to_stderr("note", text);
}

pub(crate) fn error(text: &str) {
    to_stderr("error", text);
}

fn to_stderr(what: &str, text: &str) {
    // Nobody is left to tell that standard error is closed.
    let _ = writeln!(io::stderr(), "{what}: {text}");
}
