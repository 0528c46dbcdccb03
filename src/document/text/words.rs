//! Names, strings and numbers as text.

use super::cursor::Cursor;
use super::{WRAPPERS, element_code};
use crate::document::Fields;
use crate::dtype::DType;
use crate::error::{Error, Result};
use kernels::number::Float;

/// The name of an element type.
pub(super) fn element(code: i32) -> Result<&'static str> {
    let dtype = DType::from_code(code).ok_or_else(|| inexpressible(&format!("the element type {code}")))?;
    Ok(dtype.name())
}

/// The error for what the syntax has no words for.
pub(super) fn inexpressible(what: &str) -> Error {
    Error::unsupported(format!("the text form can't express {what}: write an .onnx file"))
}

/// Fails if a message has fields that this version doesn't know.
pub(super) fn known(fields: &Fields, what: &str) -> Result<()> {
    let Some(number) = fields.numbers().next() else { return Ok(()) };
    Err(match (what, number) {
        ("the model", 20) => inexpressible("training_info"),
        ("the model", 26) => inexpressible("the configurations of devices"),
        ("a node", 10) => inexpressible("the device configurations of a node"),
        _ => inexpressible(&format!("field {number} of {what}")),
    })
}

pub(super) fn is_identifier(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(is_part) && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !is_keyword(text)
}

/// Whether a word would be read as a type or a number.
fn is_keyword(text: &str) -> bool {
    let number = ["nan", "inf", "infinity"].iter().any(|word| text.eq_ignore_ascii_case(word));
    number || WRAPPERS.contains(&text) || element_code(text).is_some()
}

/// A name, in quotes unless it is an identifier.
pub(super) fn name(text: &str) -> String {
    if is_identifier(text) { text.to_string() } else { string(text) }
}

/// The name of a body, which matters to nobody, as an identifier: that is all that the syntax has.
pub(super) fn identifier(text: &str) -> String {
    if is_identifier(text) {
        return text.to_string();
    }
    let kept: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("_{kept}")
}

/// A string in quotes.
pub(super) fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The shortest number that is read as the same one. If `nan` and `-nan` mean other bits, a note before it has them.
pub(super) fn float<T: Bits>(value: T) -> String {
    if !value.is_nan() {
        return format!("{value:?}");
    }
    let word = if is_negative(value) { "-nan" } else { "nan" };
    match value.bits() {
        bits if bits == T::NAN.copysign(value).bits() => word.to_string(),
        bits => format!("\n   #: {bits:#x}\n   {word}"),
    }
}

/// The number that a word means. If a note is before it, that has the bits of a NaN.
pub(super) fn noted<T: Bits>(value: T, note: Option<Cursor<'_>>) -> Result<T> {
    let Some(mut note) = note else { return Ok(value) };
    let bits = note.next().strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let same = |noted: &T| value.is_nan() && noted.is_nan() && is_negative(value) == is_negative(*noted);
    let noted = bits.and_then(T::of_bits).filter(same);
    noted.ok_or_else(|| note.error(&format!("expected the bits of a NaN with the sign of {}", float(value))))
}

/// Floats that are written as numbers.
pub(super) trait Bits: Float {
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Option<Self>;
}

impl Bits for f32 {
    fn bits(self) -> u64 {
        self.to_bits().into()
    }

    fn of_bits(bits: u64) -> Option<f32> {
        u32::try_from(bits).ok().map(f32::from_bits)
    }
}

impl Bits for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }

    fn of_bits(bits: u64) -> Option<f64> {
        Some(f64::from_bits(bits))
    }
}

fn is_negative<T: Float>(value: T) -> bool {
    T::ONE.copysign(value) < T::ZERO
}
