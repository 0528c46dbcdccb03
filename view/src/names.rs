//! How types, names and numbers are written.

use onnxref::{DType, ValueType, quote};

/// The NumPy name of an element type, or the standard's if NumPy has none.
pub fn dtype_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Float => "float32",
        DType::Double => "float64",
        other => other.name(),
    }
}

/// The least and the greatest value of an integer type; `None` for other types.
pub fn bounds_of(dtype: DType) -> Option<(i128, i128)> {
    use DType::{Int2, Int4, Int8, Int16, Int32, Int64, Uint2, Uint4, Uint8, Uint16, Uint32, Uint64};
    let bits = dtype.bits();
    match dtype {
        Int2 | Int4 | Int8 | Int16 | Int32 | Int64 => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        Uint2 | Uint4 | Uint8 | Uint16 | Uint32 | Uint64 => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}

/// A type as the standard writes it, with the names of [`dtype_name`].
pub fn type_name(value_type: &ValueType) -> String {
    value_type.to_string()
}

/// A number with a comma before every three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let comma = |k: usize| if k > 0 && (digits.len() - k).is_multiple_of(3) { "," } else { "" };
    digits.chars().enumerate().map(|(k, digit)| format!("{}{digit}", comma(k))).collect()
}

/// A count of things: `1 node`, `1,234 nodes`.
pub fn counted(count: usize, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {thing}{s}", grouped(count as u64))
}

/// A name, without quotes if that is safe to show.
pub fn plain(name: &str) -> String {
    let quoted = quote(name);
    if quoted.len() == name.len() + 2 && !name.contains(' ') { name.to_string() } else { quoted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 1000].map(|count| counted(count, "node")), ["0 nodes", "1 node", "1,000 nodes"]);
    }

    #[test]
    fn types_have_the_names_of_numpy() {
        let map = ValueType::Map(DType::Int64, Box::new(ValueType::from(DType::Double).sequence().optional()));
        assert_eq!(type_name(&map), "map(int64,optional(seq(float64)))");
    }
}
