//! Names, strings and numbers as text.

use super::{WRAPPERS, element_code};
use crate::document::Fields;
use crate::dtype::DType;
use crate::error::{Error, Result};

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
    match fields.numbers().next() {
        Some(number) => Err(inexpressible(&format!("field {number} of {what}"))),
        None => Ok(()),
    }
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

/// The shortest number that is read as the same one.
pub(super) fn float(value: f32) -> String {
    match value.is_nan() {
        true => if value.is_sign_negative() { "-nan" } else { "nan" }.to_string(),
        false => format!("{value:?}"),
    }
}

pub(super) fn double(value: f64) -> String {
    match value.is_nan() {
        true => if value.is_sign_negative() { "-nan" } else { "nan" }.to_string(),
        false => format!("{value:?}"),
    }
}
