//! Parses the format of the table.

use super::table::{STANDARD, blocks_start};
use super::{Arity, Attribute, AttributeKind, AttributeSchema, Parameter, Schema};
use crate::dtype::{DType, DTypes};
use crate::error::{Error, Result, quote};
use crate::value::{TypeSet, ValueType};

pub(super) fn schema(block: &str) -> Result<Schema> {
    let mut lines = block.lines();
    let head = lines.next().unwrap_or("");
    let mut words = head.splitn(4, ' ');
    let (Some(key), Some(version)) = (words.next(), words.next()) else { return Err(bad(head, HEAD)) };
    let (domain, name) = key.rsplit_once('.').unwrap_or(("", key));
    let domain = if domain == "ai.onnx" { "" } else { domain };
    let since_version = version.parse().ok().filter(|version| *version > 0).ok_or_else(|| bad(head, HEAD))?;
    let deprecated = match (words.next(), words.next()) {
        (None, _) => None,
        (Some("deprecated"), by) => Some(by.unwrap_or("").to_string()),
        _ => return Err(bad(head, HEAD)),
    };

    let signature = lines.next().unwrap_or("");
    let lines: Vec<&str> = lines.collect();
    let mut attributes = Vec::new();
    let mut variables = Vec::new();
    for line in lines {
        let (name, rest) = line.trim().split_once(": ").ok_or_else(|| bad(line, "expected `NAME: ..`"))?;
        let kind = rest.split(' ').next().unwrap_or("");
        match AttributeKind::from_name(kind) {
            Some(kind) => attributes.push(attribute(name, kind, rest, line)?),
            None => variables.push((name, types(rest).ok_or_else(|| bad(line, &unknown(rest)))?)),
        }
    }
    let (inputs, outputs) = signature.trim().split_once(" -> ").ok_or_else(|| bad(signature, SIGNATURE))?;
    Ok(Schema {
        domain: domain.to_string(),
        name: name.to_string(),
        since_version,
        deprecated,
        inputs: parameters(inputs, &variables).ok_or_else(|| bad(signature, SIGNATURE))?,
        outputs: parameters(outputs, &variables).ok_or_else(|| bad(signature, SIGNATURE))?,
        attributes,
    })
}

const HEAD: &str = "expected `NAME VERSION`";
const SIGNATURE: &str = "expected `(NAME: TYPE, ..) -> (NAME: TYPE, ..)`";
const ATTRIBUTE: &str = "expected `NAME: KIND`, then `required` or `= DEFAULT`";

fn bad(line: &str, why: &str) -> Error {
    Error::input(format!("the schema line {} doesn't match the schema grammar: {why}", quote(line)))
}

/// What is wrong with a list of types.
fn unknown(list: &str) -> String {
    let wrong = list.split(' ').find(|word| types(word).is_none()).unwrap_or("");
    format!("unknown type {}", quote(wrong))
}

fn attribute(name: &str, kind: AttributeKind, rest: &str, line: &str) -> Result<AttributeSchema> {
    let rest = rest.strip_prefix(kind.name()).unwrap_or(rest);
    let (required, default) = match (rest, rest.strip_prefix(" = ")) {
        ("", _) => (false, None),
        (" required", _) => (true, None),
        (_, Some(value)) => (false, Some(value_of(kind, value).ok_or_else(|| bad(line, ATTRIBUTE))?)),
        _ => return Err(bad(line, ATTRIBUTE)),
    };
    Ok(AttributeSchema { name: name.to_string(), kind, required, default })
}

fn value_of(kind: AttributeKind, text: &str) -> Option<Attribute> {
    let list =
        || text.strip_prefix('[')?.strip_suffix(']').map(|items| items.split(", ").filter(|item| !item.is_empty()));
    Some(match kind {
        AttributeKind::Int => Attribute::Int(text.parse().ok()?),
        AttributeKind::Float => Attribute::Float(text.parse().ok()?),
        AttributeKind::String => Attribute::String(string(text)?),
        AttributeKind::Ints => Attribute::Ints(list()?.map(|item| item.parse().ok()).collect::<Option<_>>()?),
        AttributeKind::Floats => Attribute::Floats(list()?.map(|item| item.parse().ok()).collect::<Option<_>>()?),
        AttributeKind::Strings => Attribute::Strings(list()?.map(string).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// A default in quotes. The standard's defaults need no escapes.
fn string(text: &str) -> Option<String> {
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains(['"', '\\'])).then(|| text.to_string())
}

fn parameters(list: &str, variables: &[(&str, TypeSet)]) -> Option<Vec<Parameter>> {
    let list = list.strip_prefix('(')?.strip_suffix(')')?;
    list.split(", ").filter(|item| !item.is_empty()).map(|item| parameter(item, variables)).collect()
}

fn parameter(item: &str, variables: &[(&str, TypeSet)]) -> Option<Parameter> {
    let (name, kind) = item.split_once(": ")?;
    let (name, arity) = match (name.strip_suffix('?'), name.strip_suffix('*'), name.strip_suffix('+')) {
        (Some(name), ..) => (name, Arity::Optional),
        (_, Some(name), _) => (name, Arity::Variadic(0)),
        (.., Some(name)) => (name, Arity::Variadic(1)),
        _ => (name, Arity::One),
    };
    let (kind, same) = kind.strip_prefix("each ").map_or((kind, true), |kind| (kind, false));
    let (variable, types) = match variables.iter().find(|(name, _)| *name == kind) {
        Some((variable, types)) => (same.then(|| variable.to_string()), types.clone()),
        None => (None, types(kind)?),
    };
    Some(Parameter { name: name.to_string(), arity, variable, types })
}

/// The types of a list such as `@floats int32 seq(@all) map(int64,float)`.
fn types(list: &str) -> Option<TypeSet> {
    let mut set = TypeSet::default();
    for word in list.split(' ') {
        match word.strip_suffix(')') {
            None => set.insert_tensors(tensors(word)?),
            Some(_) => types_of(word)?.into_iter().for_each(|value_type| set.insert(value_type)),
        }
    }
    Some(set)
}

/// The types of one word, which may nest.
fn types_of(word: &str) -> Option<Vec<ValueType>> {
    let inside = |name: &str| word.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(inner) = inside("seq") {
        return Some(types_of(inner)?.into_iter().map(ValueType::sequence).collect());
    }
    if let Some(inner) = inside("optional") {
        return Some(types_of(inner)?.into_iter().map(ValueType::optional).collect());
    }
    if let Some(inner) = inside("map") {
        let (key, value) = inner.split_once(',')?;
        let key = DType::from_name(key)?;
        return Some(types_of(value)?.into_iter().map(|value| ValueType::Map(key, Box::new(value))).collect());
    }
    Some(tensors(word)?.iter().map(ValueType::Tensor).collect())
}

/// An element type, or the set of a name.
fn tensors(word: &str) -> Option<DTypes> {
    match word.strip_prefix('@') {
        Some(name) => named_set(name),
        None => Some(DTypes::from_iter([DType::from_name(word)?])),
    }
}

/// A set defined at the top of the table; it may use those above it.
fn named_set(name: &str) -> Option<DTypes> {
    let head = STANDARD.get(..blocks_start(STANDARD))?;
    let mut words: Vec<&str> = vec![name];
    let mut set = DTypes::default();
    // Definitions from the last to the first, so that a set's parts are still to come.
    for line in head.lines().rev() {
        let Some((defined, list)) = line.strip_prefix('@').and_then(|line| line.split_once(" = ")) else { continue };
        if let Some(at) = words.iter().position(|word| *word == defined) {
            words.swap_remove(at);
            for word in list.split(' ') {
                match word.strip_prefix('@') {
                    Some(part) if words.contains(&part) => {}
                    Some(part) => words.push(part),
                    None => set = set | DTypes::from_iter([DType::from_name(word)?]),
                }
            }
        }
    }
    words.is_empty().then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_their_sizes() {
        let size = |name| named_set(name).map(|set| set.iter().count());
        assert_eq!(size("floats"), Some(3));
        assert_eq!(size("numbers"), Some(11));
        assert_eq!(size("all"), Some(15));
        assert_eq!(size("ir4"), Some(16));
        assert_eq!(size("ir14"), Some(28));
        assert_eq!(size("nothing"), None);
    }

    #[test]
    fn a_schema_of_ones_own() {
        let schema = schema("com.example.Mix 2\n  (x: T, w?: float, rest*: each U) -> (y: T)\n  mode: STRING = \"a\"\n  n: INT required\n  T: @floats\n  U: bool int8").unwrap();
        assert_eq!((schema.domain.as_str(), schema.name.as_str(), schema.since_version), ("com.example", "Mix", 2));
        assert_eq!(schema.inputs[1].arity, Arity::Optional);
        assert_eq!((schema.inputs[2].arity, &schema.inputs[2].variable), (Arity::Variadic(0), &None));
        assert_eq!(schema.outputs[0].variable.as_deref(), Some("T"));
        assert_eq!(schema.attributes[0].default, Some(Attribute::String("a".into())));
        assert!(schema.attributes[1].required);
    }

    #[test]
    fn wrong_text_is_refused_with_its_line() {
        let error = |text: &str| schema(text).unwrap_err().to_string();
        assert!(error("Mix").contains("\"Mix\""));
        assert!(error("Mix 1\n  (x: T -> (y: T)\n  T: float").contains("(x: T -> (y: T)"));
        assert!(error("Mix 1\n  (x: T) -> (y: T)\n  T: flot").contains("T: flot"));
        assert!(error("Mix 1\n  (x: T) -> (y: T)\n  a: INT = x\n  T: float").contains("a: INT = x"));
    }
}
