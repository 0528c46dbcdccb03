//! Attributes as people read them: what matters first, types by name, and which say what is so anyway.

use crate::names::dtype_name;
use crate::picture::{MAX_ELEMENTS, attribute_text};
use onnxref::DType;
use onnxref::inspect::NodeDetails;
use onnxref::schema::{self, Attribute, AttributeKind, Schema};

/// What most people look for first.
const FIRST: [&str; 9] = ["to", "axis", "axes", "perm", "kernel_shape", "strides", "pads", "dilations", "equation"];

/// Attributes of the standard whose integer is an element type.
const TYPES: [&str; 7] =
    ["to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision", "precision"];

/// An attribute of a node.
#[derive(Debug, Clone)]
pub struct Given<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: &'a Attribute,
    /// The value as a short text; an element type by its name.
    pub text: String,
    /// Whether the node would do the same without it.
    pub is_default: bool,
}

/// The attributes of a node, what matters first.
pub fn of(node: &NodeDetails) -> Vec<Given<'_>> {
    let schema = node.version.and_then(|version| schema::resolve(&node.domain, &node.operator, version).ok());
    sorted(schema.as_ref(), &node.attributes)
}

fn sorted<'a>(schema: Option<&Schema>, attributes: &'a [(String, Attribute)]) -> Vec<Given<'a>> {
    let given = |(name, value): &'_ (String, Attribute)| (text(schema, name, value), is_default(schema, name, value));
    let mut list: Vec<Given<'_>> = attributes
        .iter()
        .map(|attribute| {
            let (text, is_default) = given(attribute);
            Given { name: &attribute.0, value: &attribute.1, text, is_default }
        })
        .collect();
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    // Long lists, as those of trees, say little.
    let is_long = |value: &Attribute| match value {
        Attribute::Ints(list) => list.len() > MAX_ELEMENTS,
        Attribute::Floats(list) => list.len() > MAX_ELEMENTS,
        Attribute::Strings(list) => list.len() > MAX_ELEMENTS,
        _ => false,
    };
    list.sort_by_key(|given| (given.is_default, rank(given.name), is_long(given.value)));
    list
}

fn text(schema: Option<&Schema>, name: &str, value: &Attribute) -> String {
    let of_type = schema.is_some() && TYPES.contains(&name);
    match value {
        Attribute::Int(code) if of_type => {
            let dtype = i32::try_from(*code).ok().and_then(DType::from_code);
            dtype.map_or_else(|| code.to_string(), |dtype| dtype_name(dtype).to_string())
        }
        value => attribute_text(value),
    }
}

/// Whether an attribute has the default of its schema, or what the standard's text says if none is given.
fn is_default(schema: Option<&Schema>, name: &str, value: &Attribute) -> bool {
    let Some(own) = schema.and_then(|schema| schema.attributes.iter().find(|own| own.name == name)) else {
        return false;
    };
    if own.default.is_some() || own.required || own.kind != AttributeKind::Ints {
        return own.default.as_ref() == Some(value);
    }
    // The sizes of windows have defaults that depend on the rank.
    let all = |wanted: i64| matches!(value, Attribute::Ints(list) if list.iter().all(|size| *size == wanted));
    match name {
        "strides" | "dilations" => all(1),
        "pads" => all(0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(operator: &str, attributes: &[(&str, Attribute)]) -> Vec<(String, bool)> {
        let schema = schema::resolve("", operator, 21).unwrap();
        let one = |(name, value): &(&str, Attribute)| {
            (format!("{name} = {}", text(Some(&schema), name, value)), is_default(Some(&schema), name, value))
        };
        attributes.iter().map(one).collect()
    }

    #[test]
    fn types_have_names() {
        assert_eq!(shown("Cast", &[("to", Attribute::Int(1))]), [("to = float32".to_string(), false)]);
        assert_eq!(shown("Cast", &[("to", Attribute::Int(99))])[0].0, "to = 99");
        assert_eq!(shown("Cast", &[("saturate", Attribute::Int(1))]), [("saturate = 1".to_string(), true)]);
        assert_eq!(shown("Gather", &[("axis", Attribute::Int(1))]), [("axis = 1".to_string(), false)]);
    }

    #[test]
    fn what_matters_comes_first() {
        let ints = |len: usize| Attribute::Ints(vec![2; len]);
        let given = [
            ("nodes_treeids".to_string(), ints(9)),
            ("group".to_string(), Attribute::Int(1)),
            ("n_targets".to_string(), Attribute::Int(3)),
            ("strides".to_string(), ints(2)),
        ];
        let schema = schema::resolve("", "Conv", 21).unwrap();
        let names: Vec<&str> = sorted(Some(&schema), &given).iter().map(|given| given.name).collect();
        assert_eq!(names, ["strides", "n_targets", "nodes_treeids", "group"]);
    }

    #[test]
    fn defaults_are_known() {
        let text = |text: &str| Attribute::String(text.to_string());
        let ints = |list: &[i64]| Attribute::Ints(list.to_vec());
        let of = |attributes: &[(&str, Attribute)]| {
            shown("Conv", attributes).into_iter().map(|(_, is_default)| is_default).collect::<Vec<_>>()
        };
        assert_eq!(of(&[("auto_pad", text("NOTSET")), ("auto_pad", text("VALID"))]), [true, false]);
        assert_eq!(of(&[("group", Attribute::Int(1)), ("group", Attribute::Int(2))]), [true, false]);
        assert_eq!(of(&[("strides", ints(&[1, 1])), ("strides", ints(&[2, 1]))]), [true, false]);
        assert_eq!(of(&[("pads", ints(&[0, 0])), ("kernel_shape", ints(&[1, 1]))]), [true, false]);
    }
}
