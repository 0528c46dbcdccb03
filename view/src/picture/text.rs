//! Texts in pictures: short, and safe to show.

use crate::json::Element;
use crate::names::{dtype_name, type_name};
use onnxref::inspect::ValueDetails;
use onnxref::schema::Attribute;
use onnxref::{Dim, Scalar, Tensor, Value};

/// Maximum number of elements that are shown of a constant or an attribute.
pub(crate) const MAX_ELEMENTS: usize = 6;

/// A text of at most so many characters, shortened in the middle. Characters that could change how the text around them
/// is shown, or that XML doesn't allow, are replaced.
pub(super) fn short(text: &str, most: usize) -> String {
    let count = text.chars().count();
    let shown = text.chars().map(|c| if is_safe(c) { c } else { '\u{fffd}' });
    if count <= most {
        return shown.collect();
    }
    let (head, tail) = (most / 2, most.saturating_sub(most / 2 + 1));
    let start: String = shown.clone().take(head).collect();
    start + "…" + &shown.skip(count - tail).collect::<String>()
}

fn is_safe(c: char) -> bool {
    let directs = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    !(c.is_control() || directs || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

/// For XML: a text and an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' => escaped.push('\n'),
            c if is_safe(c) => escaped.push(c),
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped
}

/// About how wide a text is, in a sans-serif font of a size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'I' => 0.3,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '/' | '-' | '"' => 0.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 0.92,
        'A'..='Z' => 0.7,
        c if c.is_ascii() => 0.58,
        c if (c as u32) < 0x1100 => 0.65,
        _ => 1.0,
    };
    // Some fonts are wide.
    text.chars().map(em).sum::<f64>() * size * 1.07
}

/// A shape: `[1, N, ?]`.
pub(super) fn shape(dims: &[Dim]) -> String {
    let dim = |dim: &Dim| match dim {
        Dim::Symbol(name) => short(name, 16),
        Dim::Formula(formula) => short(&formula.to_string(), 24),
        other => other.to_string(),
    };
    let shown: Vec<String> = dims.iter().take(8).map(dim).collect();
    format!("[{}{}]", shown.join(", "), if dims.len() > 8 { ", …" } else { "" })
}

/// Type and shape of a value, as far as they are known: `float32[1, N]`.
pub(super) fn typed(value: &ValueDetails) -> String {
    let name = value.value_type.as_ref().map_or("?".to_string(), type_name);
    name + &value.shape.as_deref().map(shape).unwrap_or_default()
}

/// A constant: its elements if they are few, else type and shape.
pub(super) fn constant(value: &Value) -> String {
    match value {
        Value::Tensor(tensor) => elements(tensor),
        other => other.value_type().map_or("?".to_string(), |of| type_name(&of)),
    }
}

fn elements(tensor: &Tensor) -> String {
    if tensor.len() > MAX_ELEMENTS || tensor.rank() > 1 {
        let dims: Vec<Dim> = tensor.shape().iter().map(|size| Dim::Fixed(*size)).collect();
        return format!("{}{}", dtype_name(tensor.dtype()), shape(&dims));
    }
    let list: Vec<String> = tensor.scalars().map(|scalar| json(&Element(scalar))).collect();
    if tensor.rank() == 0 { list.join("") } else { format!("[{}]", list.join(", ")) }
}

fn json(value: &impl serde::Serialize) -> String {
    short(&serde_json::to_string(value).unwrap_or_default(), 24)
}

/// An attribute's value: a short text.
pub fn attribute(value: &Attribute) -> String {
    fn list<T>(list: &[T], show: impl Fn(&T) -> String) -> String {
        let shown: Vec<String> = list.iter().take(MAX_ELEMENTS).map(show).collect();
        format!("[{}{}]", shown.join(", "), if list.len() > MAX_ELEMENTS { ", …" } else { "" })
    }
    match value {
        Attribute::Float(value) => json(&Element(Scalar::Float(*value))),
        Attribute::Int(value) => value.to_string(),
        Attribute::String(text) => json(&short(text, 24)),
        Attribute::Tensor(tensor) | Attribute::SparseTensor(tensor) => elements(tensor),
        Attribute::Type(of) => type_name(of),
        Attribute::Floats(values) => list(values, |value| json(&Element(Scalar::Float(*value)))),
        Attribute::Ints(values) => list(values, i64::to_string),
        Attribute::Strings(texts) => list(texts, |text| json(&short(text, 24))),
        Attribute::Tensors(tensors) | Attribute::SparseTensors(tensors) => list(tensors, elements),
        Attribute::Types(types) => list(types, type_name),
        _ => "…".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short_and_safe() {
        assert_eq!(short("abcdefghij", 10), "abcdefghij");
        assert_eq!(short("abcdefghijk", 10), "abcde…hijk");
        assert_eq!(short("a\u{202e}b\u{0}\n", 9), "a\u{fffd}b\u{fffd}\u{fffd}");
        assert_eq!(escape("<a b=\"c\">&'\u{1}\u{ffff}"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{fffd}\u{fffd}");
        assert!(width("iiii", 10.0) < width("mmmm", 10.0));
    }
}
