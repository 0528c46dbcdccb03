//! Tensors written as JSON: `3`, `[1, -1]`, `[[1.5, 2], [3, "NaN"]]`, `["a", "b"]`, `[true, false]`.

use crate::names::{bounds_of, dtype_name};
use half::{bf16, f16};
use onnxref::{DType, Scalar, Tensor, quote};
use serde_json::Value;

/// Maximum number of characters of a value in an error.
const MAX_VALUE: usize = 60;

/// Parses a literal. If no element type is declared, the literal decides: int64 if all numbers are integers, float for
/// other numbers, bool, string.
///
/// A decimal is rounded once, to the nearest value. Nothing else changes a value: an integer that is out of range or
/// that a float type can't hold exactly, a fraction for an integer type, and a number whose nearest float32 is not an 8-bit
/// float are errors.
///
/// # Errors
/// If the text is not JSON, or not a tensor of the type, with the place in it.
pub fn parse(text: &str, declared: Option<DType>) -> Result<Tensor, String> {
    tensor(&serde_json::from_str(text).map_err(|e| e.to_string())?, declared)
}

/// As [`parse`], of JSON that is read.
pub(crate) fn tensor(value: &Value, declared: Option<DType>) -> Result<Tensor, String> {
    let dtype = declared.unwrap_or_else(|| type_of(value));
    let mut literal = Literal { dtype, shape: shape_of(value, dtype), elements: Elements::new(dtype) };
    literal.fill(value, &mut Vec::new())?;
    let tensor = match literal.elements {
        Elements::Strings(strings) => Tensor::from_strings(&literal.shape, strings),
        Elements::Bytes(bytes) => Tensor::new(dtype, &literal.shape, bytes),
    };
    tensor.map_err(|e| format!("{e:#}"))
}

struct Literal {
    dtype: DType,
    shape: Vec<usize>,
    elements: Elements,
}

enum Elements {
    Bytes(Vec<u8>),
    Strings(Vec<String>),
}

impl Literal {
    /// Adds the elements of the list, or the element, at a position.
    fn fill(&mut self, value: &Value, position: &mut Vec<usize>) -> Result<(), String> {
        let Some(&size) = self.shape.get(position.len()) else {
            let added = self.elements.push(value, self.dtype);
            return added.map_err(|why| format!("{}{}{why}", show(value), at(position)));
        };
        let Value::Array(list) = value else {
            return Err(format!("{}{} should be a list of {size}, as the first one is", show(value), at(position)));
        };
        if list.len() != size {
            let (count, place) = (list.len(), at(position));
            return Err(format!(
                "the list{place} has length {count}, but the first one at this depth has length {size}"
            ));
        }
        for (k, entry) in list.iter().enumerate() {
            position.push(k);
            self.fill(entry, position)?;
            position.pop();
        }
        Ok(())
    }
}

impl Elements {
    fn new(dtype: DType) -> Elements {
        if dtype == DType::String { Elements::Strings(Vec::new()) } else { Elements::Bytes(Vec::new()) }
    }

    /// Adds an element, or says why it isn't valid: ` is out of range for ..`.
    fn push(&mut self, value: &Value, dtype: DType) -> Result<(), String> {
        match self {
            Elements::Strings(strings) => {
                let Value::String(text) = value else { return Err(" is not a string".to_string()) };
                strings.push(text.clone());
            }
            Elements::Bytes(bytes) => match (dtype, value) {
                (DType::Bool, Value::Bool(value)) => bytes.push((*value).into()),
                (DType::Bool, _) => return Err(" is not a bool: allowed true, false".to_string()),
                (DType::Complex64 | DType::Complex128, Value::Array(parts)) if is_pair(parts) => {
                    let part = if dtype == DType::Complex64 { DType::Float } else { DType::Double };
                    parts.iter().try_for_each(|value| push_float(bytes, value, part))?;
                }
                (DType::Complex64 | DType::Complex128, _) => {
                    return Err(format!(" is not a valid {dtype}: allowed [real, imaginary]"));
                }
                _ => match bounds_of(dtype) {
                    Some(range) => push_integer(bytes, value, dtype, range)?,
                    None => push_float(bytes, value, dtype)?,
                },
            },
        }
        Ok(())
    }
}

fn push_integer(bytes: &mut Vec<u8>, value: &Value, dtype: DType, (least, most): (i128, i128)) -> Result<(), String> {
    let Value::Number(number) = value else { return Err(format!(" is not a valid {dtype}: allowed integers")) };
    if !is_integer(number) {
        return Err(format!(" is not a valid {dtype}: allowed integers, without a point or an exponent"));
    }
    let integer: Option<i128> = number.as_str().parse().ok();
    let integer = integer.filter(|v| (least..=most).contains(v));
    let integer = integer.ok_or_else(|| format!(" is out of range for {dtype}: allowed {least} to {most}"))?;
    bytes.extend(integer.to_le_bytes().iter().take(dtype.size()));
    Ok(())
}

fn push_float(bytes: &mut Vec<u8>, value: &Value, dtype: DType) -> Result<(), String> {
    let text = match value {
        Value::Number(number) => number.as_str(),
        Value::String(text) if matches!(text.as_str(), "NaN" | "inf" | "-inf") => text,
        _ => {
            let name = dtype_name(dtype);
            return Err(format!(" is not a valid {name}: allowed numbers, \"NaN\", \"inf\", \"-inf\""));
        }
    };
    // Rust parses decimals to the nearest value, and the three words too.
    let double: f64 = text.parse().map_err(|_| " is not a number".to_string())?;
    let single: f32 = text.parse().map_err(|_| " is not a number".to_string())?;
    let (code, rounded): (u64, f64) = match dtype {
        DType::Float => (single.to_bits().into(), single.into()),
        DType::Double => (double.to_bits(), double),
        DType::Float16 => {
            let half = f16::from_f32(to_odd(double));
            (half.to_bits().into(), half.into())
        }
        DType::Bfloat16 => {
            let half = bf16::from_f32(to_odd(double));
            (half.to_bits().into(), half.into())
        }
        _ => {
            let wrong =
                || format!(" is not a valid {}: only values that it can hold exactly are allowed", dtype_name(dtype));
            // A value that is written with the digits that float32 needs has these.
            (small_float(single, dtype).ok_or_else(wrong)?, single.into())
        }
    };
    if let Value::Number(number) = value {
        let name = dtype_name(dtype);
        if rounded.is_infinite() {
            return Err(format!(" is out of range for {name}: write \"inf\" for infinity"));
        }
        let exact = format!("{rounded:.0}");
        if is_integer(number) && exact != text {
            return Err(format!(" is not exact as {name}: write {text}.0 to round it to {exact}"));
        }
    }
    bytes.extend(code.to_le_bytes().iter().take(dtype.size()));
    Ok(())
}

/// The number truncated to single precision, with the last bit set if that changed it (rounding to odd). A second
/// rounding, to a smaller type, then gives the same as a single one: the bit prevents false ties.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if nearest.is_infinite() || value.is_nan() || f64::from(nearest) == value {
        return nearest;
    }
    let away = f64::from(nearest).abs() > value.abs();
    f32::from_bits((nearest.to_bits() - u32::from(away)) | 1)
}

/// The code of a float type of at most 8 bits that has exactly this value.
fn small_float(value: f32, dtype: DType) -> Option<u64> {
    let codes: Vec<u8> = (0..=u8::MAX).take(1 << dtype.bits()).collect();
    let table = Tensor::new(dtype, &[codes.len()], codes).ok()?;
    let same = |scalar| match scalar {
        Scalar::Float(v) => v.is_nan() && value.is_nan() || v.to_bits() == value.to_bits(),
        _ => false,
    };
    table.scalars().position(same).map(|code| code as u64)
}

/// The lengths of the first list, of the first list in it, and so on.
fn shape_of(mut value: &Value, dtype: DType) -> Vec<usize> {
    let complex = matches!(dtype, DType::Complex64 | DType::Complex128);
    let mut shape = Vec::new();
    while let Value::Array(list) = value
        && !(complex && is_pair(list))
    {
        shape.push(list.len());
        let Some(first) = list.first() else { break };
        value = first;
    }
    shape
}

/// Whether a list is a complex number: real and imaginary part.
fn is_pair(list: &[Value]) -> bool {
    list.len() == 2 && !list.iter().any(Value::is_array)
}

fn type_of(value: &Value) -> DType {
    let leaves = leaves(value);
    if !leaves.is_empty() && leaves.iter().all(|leaf| leaf.is_boolean()) {
        DType::Bool
    } else if !leaves.is_empty() && leaves.iter().all(|leaf| leaf.is_string()) {
        DType::String
    } else if !leaves.is_empty() && leaves.iter().all(|leaf| leaf.as_number().is_some_and(is_integer)) {
        DType::Int64
    } else {
        DType::Float
    }
}

fn leaves(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

fn is_integer(number: &serde_json::Number) -> bool {
    !number.as_str().contains(['.', 'e', 'E'])
}

/// A value in an error, cut. What JSON doesn't escape, but could change how the line is shown, is escaped.
pub(crate) fn show(value: &Value) -> String {
    let text = value.to_string();
    let shown: String = text.chars().take(MAX_VALUE).map(escaped).collect();
    if text.chars().nth(MAX_VALUE).is_some() { shown + "…" } else { shown }
}

fn escaped(c: char) -> String {
    match c {
        '"' | '\\' => c.to_string(),
        _ => quote(&c.to_string()).trim_matches('"').to_string(),
    }
}

fn at(position: &[usize]) -> String {
    if position.is_empty() { String::new() } else { format!(" at {position:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Element;

    fn shown(text: &str, dtype: impl Into<Option<DType>>) -> String {
        parse(text, dtype.into()).map_or_else(|why| why, |tensor| tensor.to_string())
    }

    #[test]
    fn undeclared_types() {
        for (text, tensor) in [
            ("3", "int64[] 3"),
            ("[1, -1]", "int64[2] [1, -1]"),
            ("[[1.5, 2], [3, 4]]", "float32[2, 2] [[1.5, 2], [3, 4]]"),
            ("[1, 1e0]", "float32[2] [1, 1]"),
            (r#"[1, "NaN", "-inf"]"#, "float32[3] [1, NaN, -inf]"),
            (r#"["a", "b"]"#, r#"string[2] ["a", "b"]"#),
            ("[true, false]", "bool[2] [true, false]"),
            ("[]", "float32[0] []"),
            ("[[], []]", "float32[2, 0] []"),
            (
                "9223372036854775808",
                "9223372036854775808 is out of range for int64: allowed -9223372036854775808 to 9223372036854775807",
            ),
            ("null", "null is not a valid float32: allowed numbers, \"NaN\", \"inf\", \"-inf\""),
        ] {
            assert_eq!(shown(text, None), tensor);
        }
    }

    #[test]
    fn texts_are_escaped_and_cut() {
        let allowed = "is not a valid float32: allowed numbers, \"NaN\", \"inf\", \"-inf\"";
        assert_eq!(
            shown("\"\\u001b[31m\u{9b}\u{202e}\\\"\"", DType::Float),
            format!(r#""\u001b[31m\u{{9b}}\u{{202e}}\"" {allowed}"#)
        );
        let long = format!("\"{}\"", "x".repeat(1 << 20));
        assert_eq!(shown(&long, DType::Float), format!("\"{}… {allowed}", "x".repeat(59)));
    }

    #[test]
    fn every_declared_type() {
        for dtype in DType::all() {
            let (text, values) = match dtype {
                DType::String => (r#"["", "é"]"#, r#"["", "é"]"#),
                DType::Bool => ("[true, false]", "[true, false]"),
                DType::Complex64 | DType::Complex128 => (r#"[[1, -2.5], ["inf", 0]]"#, "[1-2.5i, inf+0i]"),
                DType::Float8e8m0 => ("[1, 0.5]", "[1, 0.5]"),
                DType::Int2 => ("[1, -2]", "[1, -2]"),
                _ => ("[1, 2]", "[1, 2]"),
            };
            assert_eq!(shown(text, dtype), format!("{dtype}[2] {values}"));
        }
    }

    #[test]
    fn extremes() {
        for dtype in DType::all() {
            let Some((least, most)) = bounds_of(dtype) else { continue };
            assert_eq!(shown(&format!("[{least},{most}]"), dtype), format!("{dtype}[2] [{least}, {most}]"));
            for out in [least - 1, most + 1] {
                let why = format!("{out} at [1] is out of range for {dtype}: allowed {least} to {most}");
                assert_eq!(shown(&format!("[0,{out}]"), dtype), why);
            }
        }
        assert_eq!(shown("3.4028235e38", DType::Float), "float32[] 3.4028235e38");
        assert_eq!(shown("65519.999", DType::Float16), "float16[] 65504");
        for (text, dtype) in [
            ("3.4028236e38", DType::Float),
            ("1e400", DType::Double),
            ("65520", DType::Float16),
            ("-1e39", DType::Bfloat16),
        ] {
            assert_eq!(
                shown(text, dtype),
                format!(
                    "{} is out of range for {}: write \"inf\" for infinity",
                    show(&serde_json::from_str(text).unwrap()),
                    dtype_name(dtype)
                )
            );
        }
    }

    #[test]
    fn decimals_are_rounded_once() {
        // Just above the tie between 1 and its upper neighbour, by less than single precision shows.
        let above = |mantissa: i32| format!("{:.20}", 1.0 + 2f64.powi(-mantissa - 1) + 2f64.powi(-40));
        assert_eq!(shown(&above(10), DType::Float16), format!("float16[] {}", 1.0 + 2f32.powi(-10)));
        assert_eq!(shown(&above(7), DType::Bfloat16), format!("bfloat16[] {}", 1.0 + 2f32.powi(-7)));
        assert_eq!(shown(&format!("{:.20}", 1.0 + 2f64.powi(-11)), DType::Float16), "float16[] 1");
        // Between two singles, nearer to the upper one; as a double it would be a tie and go to the lower one.
        let text = "1.00000005960464477540";
        assert_eq!(shown(text, DType::Float), format!("float32[] {}", 1.0 + f32::EPSILON));
        assert_eq!(shown("-0", DType::Float), "float32[] -0");
        assert_eq!(shown("1e-46", DType::Float), "float32[] 0");
        assert_eq!(shown("1.5258789e-5", DType::Float8e5m2), "float8e5m2[] 0.000015258789");
        assert_eq!(shown("5.877472e-39", DType::Float8e8m0), "float8e8m0[] 5.877472e-39");
    }

    /// Every value of a float type of at most 16 bits is read from the JSON that is written of it.
    #[test]
    fn small_floats_read_back() {
        let types: Vec<_> = DType::all().filter(|t| dtype_name(*t).contains("float") && t.bits() <= 16).collect();
        assert_eq!(types.len(), 10, "{types:?}");
        for dtype in types {
            let codes = 0..1u32 << dtype.bits();
            let bytes = codes.flat_map(|code| code.to_le_bytes().into_iter().take(dtype.size())).collect::<Vec<_>>();
            let tensor = Tensor::new(dtype, &[1 << dtype.bits()], bytes).unwrap();
            let text = serde_json::to_string(&tensor.scalars().map(Element).collect::<Vec<_>>()).unwrap();
            let again = parse(&text, Some(dtype)).unwrap();
            for (one, other) in tensor.scalars().zip(again.scalars()) {
                assert_eq!(format!("{one:?}"), format!("{other:?}"), "{dtype}");
            }
        }
    }

    #[test]
    fn integers_are_exact_or_refused() {
        let huge = "1".to_string() + &"0".repeat(23);
        for (text, dtype, why) in [
            ("16777217", DType::Float, "16777217 is not exact as float32: write 16777217.0 to round it to 16777216"),
            ("-2049", DType::Float16, "-2049 is not exact as float16: write -2049.0 to round it to -2048"),
            ("257", DType::Bfloat16, "257 is not exact as bfloat16: write 257.0 to round it to 256"),
            (
                "9007199254740993",
                DType::Double,
                "9007199254740993 is not exact as float64: write 9007199254740993.0 to round it to 9007199254740992",
            ),
            ("[[16777217, 0]]", DType::Complex64, " is not exact as float32: write 16777217.0 to"),
        ] {
            assert!(shown(text, dtype).contains(why), "{}", shown(text, dtype));
        }
        assert!(shown(&huge, DType::Double).contains("to round it to 99999999999999991611392"));
        for (text, dtype, tensor) in [
            ("[16777216, -0, 16777218, 16777217.0]", DType::Float, "float32[4] [16777216, -0, 16777218, 16777216]"),
            ("[2048, 2049.0]", DType::Float16, "float16[2] [2048, 2048]"),
            ("10000000000000000000000", DType::Double, "float64[] 1e22"),
        ] {
            assert_eq!(shown(text, dtype), tensor);
        }
    }

    #[test]
    fn what_is_refused() {
        for (text, dtype, why) in [
            (
                "[1, 2.0]",
                DType::Int64,
                "2.0 at [1] is not a valid int64: allowed integers, without a point or an exponent",
            ),
            (r#"["a"]"#, DType::Int8, r#""a" at [0] is not a valid int8: allowed integers"#),
            (
                "[[1], [2, 3]]",
                DType::Int64,
                "the list at [1] has length 2, but the first one at this depth has length 1",
            ),
            ("[[1], 2]", DType::Int64, "2 at [1] should be a list of 1, as the first one is"),
            ("[1, [2]]", DType::Int64, "[2] at [1] is not a valid int64: allowed integers"),
            ("1", DType::Bool, "1 is not a bool: allowed true, false"),
            ("1", DType::String, "1 is not a string"),
            (
                r#""Infinity""#,
                DType::Float,
                r#""Infinity" is not a valid float32: allowed numbers, "NaN", "inf", "-inf""#,
            ),
            ("[1, 2, 3]", DType::Complex64, "1 at [0] is not a valid complex64: allowed [real, imaginary]"),
            (
                "0.3",
                DType::Float8e4m3fn,
                "0.3 is not a valid float8e4m3fn: only values that it can hold exactly are allowed",
            ),
            ("0", DType::Float8e8m0, "0 is not a valid float8e8m0: only values that it can hold exactly are allowed"),
        ] {
            assert_eq!(shown(text, dtype), why);
        }
        assert!(parse(&"[".repeat(100_000), None).is_err());
    }
}
