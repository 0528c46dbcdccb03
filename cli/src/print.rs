//! Standard output and standard error.

use crate::bounded::{Bounded, Unwritten};
use crate::output::Target;
use crate::system;
use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use onnxref::{Cancel, Value, quote};
use onnxref_view::{grouped, plain, type_name};
use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal, Seek, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of elements shown of a sequence or a map.
const MAX_VALUES: usize = 8;

/// Standard output. A reader such as `head` may close it early: the rest is then silently dropped.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(Pipe.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(Pipe.flush(), ())
    }
}

fn unless_closed<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(otherwise),
        result => result,
    }
}

/// Standard output, with the error of a reader that closed it.
struct Pipe;

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let kept = CAPTURED.with_borrow_mut(|captured| captured.as_mut().map(|text| text.extend_from_slice(bytes)));
        if kept.is_some() {
            return Ok(bytes.len());
        }
        open()?;
        let written = io::stdout().write(bytes)?;
        if let Some(last) = bytes.get(..written).and_then(<[u8]>::last) {
            IN_A_LINE.store(*last != b'\n', Ordering::Relaxed);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Fails if standard output was closed from the start.
fn open() -> io::Result<()> {
    if system::stdout_was_closed() { Err(io::Error::other("it is closed")) } else { Ok(()) }
}

/// What became of a help text on standard output, which was printed by others.
pub(crate) fn help(printed: io::Result<()>) -> io::Result<()> {
    open()?;
    unless_closed(printed, ())
}

thread_local! {
    /// What would be on standard output, while a program that this is part of wants it.
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// What `work` prints on standard output, which nobody else sees. Errors and notes are not printed.
pub(crate) fn captured<T>(work: impl FnOnce() -> T) -> (T, String) {
    CAPTURED.set(Some(Vec::new()));
    let done = work();
    (done, String::from_utf8_lossy(&CAPTURED.take().unwrap_or_default()).into_owned())
}

pub(crate) fn is_captured() -> bool {
    CAPTURED.with_borrow(Option::is_some)
}

/// Whether what is on standard output doesn't end a line.
static IN_A_LINE: AtomicBool = AtomicBool::new(false);

pub(crate) fn in_a_line() -> bool {
    IN_A_LINE.load(Ordering::Relaxed)
}

impl Seek for Pipe {
    fn seek(&mut self, _: io::SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::NotSeekable.into())
    }
}

/// Writes what may be large to standard output, until the time is up. Nothing more of it is made once the reader has
/// closed the pipe.
pub(crate) fn document(
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Target) -> Result<(), Unwritten>,
) -> Result<(), Unwritten> {
    let mut to = BufWriter::new(Bounded::new(Pipe, cancel));
    match content(&mut to).and_then(|()| Ok(to.flush()?)) {
        Err(Unwritten::Failed(error)) => Ok(unless_closed(Err(error), ())?),
        written => written,
    }
}

/// A line for each value: name, type, shape, elements cut in the middle.
pub(crate) fn values(what: &str, named: &[(&str, &Value)]) -> io::Result<()> {
    let row = |(name, value): &(&str, &Value)| {
        let shape = value.tensor().map(|tensor| format!("{:?}", tensor.shape())).unwrap_or_default();
        [plain(name), value.value_type().map_or("?".to_string(), |of| type_name(&of)), shape, elements(value)]
    };
    table([what, "type", "shape", "values"], &[], named.iter().map(row))
}

/// A header and rows in columns; those of numbers are aligned to the right.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    numbers: &[usize],
    rows: impl IntoIterator<Item = [String; N]>,
) -> io::Result<()> {
    writeln!(Stdout, "{}", lines(header, numbers, rows, terminal_width()))
}

/// The columns of the terminal, if standard output is one.
fn terminal_width() -> Option<u16> {
    let (width, _) = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten()?;
    Some(width.0)
}

/// The lines of a table. Cells are wrapped where they would be too wide together.
fn lines<const N: usize>(
    header: [&str; N],
    numbers: &[usize],
    rows: impl IntoIterator<Item = [String; N]>,
    width: Option<u16>,
) -> String {
    let mut table = Table::new();
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.load_style(presets::NOTHING).set_header(header);
    rows.into_iter().for_each(|row| _ = table.add_row(row));
    for (k, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if numbers.contains(&k) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// The elements of a value without their types.
fn elements(value: &Value) -> String {
    let list = |values: &mut dyn Iterator<Item = String>| {
        let shown: Vec<String> = (&mut *values).take(MAX_VALUES).collect();
        let more = if values.next().is_some() { ", …" } else { "" };
        shown.join(", ") + more
    };
    match value {
        Value::Tensor(tensor) => tensor.values().to_string(),
        Value::Sequence(sequence) => format!("[{}]", list(&mut sequence.values().iter().map(elements))),
        Value::Optional(optional) => optional.get().map_or("none".to_string(), elements),
        Value::Map(map) => {
            let entries = map.keys().scalars().zip(map.values());
            format!("{{{}}}", list(&mut entries.map(|(key, value)| format!("{key}: {}", elements(value)))))
        }
        other => other.to_string(),
    }
}

/// A full path, with characters escaped that could change how the line is shown.
pub(crate) fn path(text: &str) -> String {
    let escape = |c: char| {
        let quoted = quote(&c.to_string());
        quoted.get(1..quoted.len() - 1).unwrap_or("").to_string()
    };
    text.chars().map(escape).collect()
}

/// A text that may quote any part of a file, cut, and escaped as by [`path`].
pub(crate) fn text(text: &str) -> String {
    const MAX_TEXT: usize = 1000;
    let cut = path(&text.chars().take(MAX_TEXT).collect::<String>());
    if text.chars().nth(MAX_TEXT).is_some() { cut + "…" } else { cut }
}

/// Texts in one line, such as all names of a model: the first ones, and how many more there are.
pub(crate) fn listed(texts: &[String], between: &str) -> String {
    const MAX_TEXTS: usize = 20;
    let mut shown = texts.get(..MAX_TEXTS).unwrap_or(texts).join(between);
    if texts.len() > MAX_TEXTS {
        shown += &format!("{between}and {} more", grouped((texts.len() - MAX_TEXTS) as u64));
    }
    shown
}

/// Whether notes and progress are left out.
static QUIET: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

pub(crate) fn quiet() -> bool {
    QUIET.load(Ordering::Relaxed) || is_captured()
}

pub(crate) fn note(text: &str) {
    if !quiet() {
        to_stderr("note", AnsiColor::Cyan, text);
    }
}

pub(crate) fn error(text: &str) {
    if !is_captured() {
        to_stderr("error", AnsiColor::Red, text);
    }
}

fn to_stderr(what: &str, color: AnsiColor, text: &str) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    // If standard error is closed, nobody can be told.
    let _ = writeln!(anstream::stderr(), "{style}{what}:{style:#} {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::{DType, Optional, Sequence, Tensor, ValueType};

    #[test]
    fn tables_fit_the_terminal() {
        let row = || ["/lm/block/MatMul_output_0".to_string(), "12".to_string(), "a b c d e f g h i j k l".to_string()];
        let wide = lines(["value", "bytes", "text"], &[1], [row()], None);
        assert_eq!(wide.lines().count(), 2);
        assert_eq!(lines(["value", "bytes", "text"], &[1], [row()], Some(100)), wide);
        let narrow = lines(["value", "bytes", "text"], &[1], [row()], Some(40));
        assert!(narrow.lines().count() > 2 && narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        let together = |text: &str| text.split_whitespace().collect::<String>().contains("12");
        assert!(together(&narrow), "{narrow}");
    }

    #[test]
    fn values_that_are_not_tensors() {
        let float = ValueType::from(DType::Float);
        let tensor = |shape: &[usize]| {
            Value::from(Tensor::new(DType::Float, shape, vec![0; 4 * shape.iter().product::<usize>()]).unwrap())
        };
        let sequence = Value::from(Sequence::new(float.clone(), vec![tensor(&[2]), tensor(&[])]).unwrap());
        assert_eq!(
            (type_name(&sequence.value_type().unwrap()), elements(&sequence)),
            ("seq(float32)".into(), "[[0, 0], 0]".into())
        );
        let long = Value::from(Sequence::new(float.clone(), vec![tensor(&[]); 9]).unwrap());
        assert_eq!(elements(&long), "[0, 0, 0, 0, 0, 0, 0, 0, …]");
        assert_eq!(elements(&Value::from(Optional::none(float))), "none");
    }
}
