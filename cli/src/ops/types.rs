//! Sets of types and values of attributes, in few words.

use onnxref::schema::Attribute;
use onnxref::{DType, TypeSet, ValueType};
use onnxref_view::{dtype_name, type_name};

/// The order in which families of element types are listed.
const FAMILIES: [&str; 10] =
    ["float", "bfloat", "float8", "float6", "float4", "int", "uint", "bool", "string", "complex"];

/// The types of a set: `int32/64, seq(string)`, `any type but float4e2m1`.
pub(super) fn of_set(set: &TypeSet) -> String {
    of(&set.iter().collect::<Vec<_>>())
}

/// As [`of_set`], for a list.
fn of(types: &[ValueType]) -> String {
    parts(types, elements, |name, inner| format!("{name}({})", of(inner)))
}

/// Some types among others: `bfloat16, seq of 16 types`.
pub(super) fn some(types: &[ValueType]) -> String {
    parts(types, families, |name, inner| match inner.len() {
        1..=MAX_INNER => format!("{name}({})", some(inner)),
        count => format!("{name} of {count} types"),
    })
}

/// Maximum number of types that [`some`] lists in a sequence or an optional.
const MAX_INNER: usize = 4;

/// Tensors, maps, sequences and optionals.
fn parts(
    types: &[ValueType],
    elements: impl Fn(&[DType]) -> String,
    wrapped: impl Fn(&str, &[ValueType]) -> String,
) -> String {
    let tensors: Vec<DType> = types.iter().filter_map(ValueType::dtype).collect();
    let mut parts: Vec<String> = (!tensors.is_empty()).then(|| elements(&tensors)).into_iter().collect();
    parts.extend(types.iter().filter(|of| matches!(of, ValueType::Map(..))).map(type_name));
    let (mut sequences, mut optionals) = (Vec::new(), Vec::new());
    for value_type in types {
        match value_type {
            ValueType::Sequence(element) => sequences.push((**element).clone()),
            ValueType::Optional(element) => optionals.push((**element).clone()),
            _ => {}
        }
    }
    let inner = [("seq", sequences), ("optional", optionals)];
    parts.extend(inner.iter().filter(|(_, inner)| !inner.is_empty()).map(|(name, inner)| wrapped(name, inner)));
    parts.join(", ")
}

/// Element types, or those that are missing if that is shorter.
fn elements(types: &[DType]) -> String {
    let missing: Vec<DType> = DType::all().filter(|dtype| !types.contains(dtype)).collect();
    if missing.is_empty() {
        return "any type".to_string();
    }
    let (listed, but) = (families(types), format!("any type but {}", families(&missing)));
    if but.len() < listed.len() { but } else { listed }
}

/// `float16/32, int8, bool`: each family once.
fn families(types: &[DType]) -> String {
    let mut members: Vec<(usize, &str, usize, &str)> = types.iter().map(|dtype| member(*dtype)).collect();
    members.sort_unstable();
    let mut text = String::new();
    let mut last = "";
    for (_, family, _, rest) in members {
        let separator = if family == last {
            "/"
        } else if text.is_empty() {
            ""
        } else {
            ", "
        };
        let stem = if family == last { "" } else { family };
        text.extend([separator, stem, rest]);
        last = family;
    }
    text
}

/// The place of a type's family, its name, the number of bits, what follows the family's name.
fn member(dtype: DType) -> (usize, &'static str, usize, &'static str) {
    let name = dtype_name(dtype);
    // float64 is not of the family of float6e2m3.
    let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_family = |family: &str| {
        let rest = name.strip_prefix(family);
        rest.is_some_and(|rest| !(digit(rest) && family.ends_with(|c: char| c.is_ascii_digit())))
    };
    let known = FAMILIES.iter().enumerate().filter(|(_, family)| is_family(family));
    let (place, family) = known.max_by_key(|(_, family)| family.len()).unwrap_or((FAMILIES.len(), &""));
    (place, family, dtype.bits(), name.strip_prefix(family).unwrap_or(name))
}

/// An attribute's value as JSON would have it.
pub(super) fn value(value: &Attribute) -> serde_json::Value {
    match value {
        Attribute::Int(int) => (*int).into(),
        Attribute::Float(float) => number(*float),
        Attribute::String(text) => text.clone().into(),
        Attribute::Ints(ints) => ints.clone().into(),
        Attribute::Floats(floats) => floats.iter().map(|float| number(*float)).collect(),
        Attribute::Strings(texts) => texts.clone().into(),
        other => format!("{other:?}").into(),
    }
}

/// With the digits of the `f32`, not those of the `f64` nearest to it.
fn number(float: f32) -> serde_json::Value {
    serde_json::from_str(&format!("{float:?}")).unwrap_or_else(|_| float.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::schema::Schema;

    #[track_caller]
    fn check(types: &str, expected: &str) {
        let schema = Schema::parse(&format!("A 1\n  (x: T) -> (y: T)\n  T: {types}")).unwrap();
        assert_eq!(of_set(&schema.inputs[0].types), expected);
    }

    #[test]
    fn few_words() {
        check("int64 int32", "int32/64");
        check("@all bfloat16", "float16/32/64, bfloat16, int8/16/32/64, uint8/16/32/64, bool, string, complex64/128");
        check("@ir13", "any type but float6e2m3/e3m2");
        check("@ir14", "any type");
        check("float8e5m2 float8e4m3fn", "float8e4m3fn/e5m2");
        check(
            "seq(@floats) seq(@ints) optional(seq(float))",
            "seq(float16/32/64, int8/16/32/64), optional(seq(float32))",
        );
        check("float map(int64,double)", "float32, map(int64,float64)");
    }

    #[test]
    fn defaults_keep_their_digits() {
        assert_eq!(value(&Attribute::Float(0.1)).to_string(), "0.1");
        assert_eq!(value(&Attribute::Strings(vec!["a".into()])).to_string(), "[\"a\"]");
    }
}
