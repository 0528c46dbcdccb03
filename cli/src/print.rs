//! Standard output and standard error.

use onnxref::{DType, Outputs, Value, ValueType, quote};
use std::io::{self, Write};

/// Maximum number of elements shown of a sequence or a map.
const MAX_VALUES: usize = 8;

/// Standard output. A reader such as `head` may close it early: the rest is then silently dropped.
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

/// A header, and a line for each output: name, type, shape, values cut in the middle.
pub(crate) fn table(outputs: &Outputs) -> io::Result<()> {
    let row = |(name, value): (&str, &Value)| {
        let shape = value.tensor().map(|tensor| format!("{:?}", tensor.shape())).unwrap_or_default();
        [plain(name), value.value_type().map_or("?".to_string(), |of| type_name(&of)), shape, values(value)]
    };
    let header = ["output", "type", "shape", "values"].map(str::to_string);
    let rows: Vec<[String; 4]> = std::iter::once(header).chain(outputs.iter().map(row)).collect();
    let width = |column: fn(&[String; 4]) -> &str| rows.iter().map(|r| column(r).chars().count()).max().unwrap_or(0);
    let (names, types, shapes) = (width(|[name, ..]| name), width(|[_, dtype, ..]| dtype), width(|[_, _, s, _]| s));
    let mut out = Stdout;
    for [name, dtype, shape, values] in &rows {
        writeln!(out, "{name:names$}  {dtype:types$}  {shape:shapes$}  {values}")?;
    }
    out.flush()
}

/// The elements of a value without their types.
fn values(value: &Value) -> String {
    let list = |values: &mut dyn Iterator<Item = String>| {
        let shown: Vec<String> = (&mut *values).take(MAX_VALUES).collect();
        let more = if values.next().is_some() { ", …" } else { "" };
        shown.join(", ") + more
    };
    match value {
        Value::Tensor(tensor) => tensor.values().to_string(),
        Value::Sequence(sequence) => format!("[{}]", list(&mut sequence.values().iter().map(values))),
        Value::Optional(optional) => optional.get().map_or("none".to_string(), values),
        Value::Map(map) => {
            let entries = map.keys().scalars().zip(map.values());
            format!("{{{}}}", list(&mut entries.map(|(key, value)| format!("{key}: {}", values(value)))))
        }
        other => other.to_string(),
    }
}

/// The NumPy name of an element type, or the standard's if NumPy has none.
pub(crate) fn dtype_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Float => "float32",
        DType::Double => "float64",
        other => other.name(),
    }
}

/// A type as the standard writes it, with the names of [`dtype_name`].
pub(crate) fn type_name(value_type: &ValueType) -> String {
    match value_type {
        ValueType::Tensor(dtype) => dtype_name(*dtype).to_string(),
        ValueType::Sequence(element) => format!("seq({})", type_name(element)),
        ValueType::Optional(element) => format!("optional({})", type_name(element)),
        ValueType::Map(key, element) => format!("map({},{})", dtype_name(*key), type_name(element)),
        other => other.to_string(),
    }
}

/// A number with a comma before every three digits.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let comma = |k: usize| if k > 0 && (digits.len() - k).is_multiple_of(3) { "," } else { "" };
    digits.chars().enumerate().map(|(k, digit)| format!("{}{digit}", comma(k))).collect()
}

/// A name, without quotes if that is safe to show.
fn plain(name: &str) -> String {
    let quoted = quote(name);
    if quoted.len() == name.len() + 2 && !name.contains(' ') { name.to_string() } else { quoted }
}

/// A full path, with characters escaped that could change how the line is shown.
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
    // If standard error is closed, nobody can be told.
    let _ = writeln!(io::stderr(), "{what}: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::{Optional, Sequence, Tensor};

    #[test]
    fn values_that_are_not_tensors() {
        let float = ValueType::from(DType::Float);
        let tensor = |shape: &[usize]| {
            Value::from(Tensor::new(DType::Float, shape, vec![0; 4 * shape.iter().product::<usize>()]).unwrap())
        };
        let sequence = Value::from(Sequence::new(float.clone(), vec![tensor(&[2]), tensor(&[])]).unwrap());
        assert_eq!(
            (type_name(&sequence.value_type().unwrap()), values(&sequence)),
            ("seq(float32)".into(), "[[0, 0], 0]".into())
        );
        let long = Value::from(Sequence::new(float.clone(), vec![tensor(&[]); 9]).unwrap());
        assert_eq!(values(&long), "[0, 0, 0, 0, 0, 0, 0, 0, …]");
        let map = ValueType::Map(DType::Int64, Box::new(ValueType::from(DType::Double).sequence().optional()));
        assert_eq!(type_name(&map), "map(int64,optional(seq(float64)))");
        assert_eq!(values(&Value::from(Optional::none(float))), "none");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
