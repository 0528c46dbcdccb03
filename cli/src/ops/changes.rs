//! What a version of an operator changed, as far as the schemas show it.

use super::types;
use onnxref::ValueType;
use onnxref::schema::{Arity, AttributeSchema, Parameter, Schema};

/// The differences between two consecutive versions, each in a few words.
pub(super) fn between(old: &Schema, new: &Schema) -> Vec<String> {
    if new.deprecated.is_some() && old.deprecated.is_none() {
        let by = new.deprecated.as_deref().filter(|by| !by.is_empty());
        return vec![by.map_or("removed".to_string(), |by| format!("removed, replaced by {by}"))];
    }
    let mut changes = moved(old, new);
    changes.extend(parameters("input", &old.inputs, &new.inputs, old, new));
    changes.extend(parameters("output", &old.outputs, &new.outputs, old, new));
    changes.extend(attributes(old, new));
    changes.extend(type_sets(old, new));
    changes
}

/// Attributes that became inputs, and the other way round.
fn moved(old: &Schema, new: &Schema) -> Vec<String> {
    let to_input = new.inputs.iter().map(|p| &p.name).filter(|name| is_moved(name, old, new)).cloned().collect();
    let to_attribute = old.inputs.iter().map(|p| &p.name).filter(|name| is_moved(name, new, old)).cloned().collect();
    [(to_input, "an input", "inputs"), (to_attribute, "an attribute", "attributes")]
        .into_iter()
        .filter_map(|(names, one, many): (Vec<String>, &str, &str)| match names.as_slice() {
            [] => None,
            [name] => Some(format!("{name} becomes {one}")),
            names => Some(format!("{} become {many}", names.join(", "))),
        })
        .collect()
}

/// Whether an attribute of one schema is an input of the other.
fn is_moved(name: &str, old: &Schema, new: &Schema) -> bool {
    // k becomes K.
    let has = |schema: &Schema| schema.inputs.iter().any(|input| input.name.eq_ignore_ascii_case(name));
    has(new) && !has(old) && old.attributes.iter().any(|attribute| attribute.name.eq_ignore_ascii_case(name))
}

fn has(parameters: &[Parameter], name: &str) -> bool {
    parameters.iter().any(|parameter| parameter.name == name)
}

/// New, removed and renamed inputs or outputs, and those whose number of values changed.
fn parameters(what: &str, old: &[Parameter], new: &[Parameter], before: &Schema, after: &Schema) -> Vec<String> {
    let added: Vec<&Parameter> =
        new.iter().filter(|p| old_of(p, old, new).is_none() && !is_moved(&p.name, before, after)).collect();
    let kept: Vec<(&Parameter, &Parameter)> = new.iter().filter_map(|p| Some((old_of(p, old, new)?, p))).collect();
    let removed: Vec<&str> = old
        .iter()
        .filter(|p| !kept.iter().any(|(before, _)| before.name == p.name) && !is_moved(&p.name, after, before))
        .map(|p| p.name.as_str())
        .collect();
    let (optional, required): (Vec<&Parameter>, Vec<&Parameter>) =
        added.into_iter().partition(|p| p.arity != Arity::One);
    let names = |list: &[&Parameter]| list.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
    let mut changes = Vec::new();
    changes.extend(counted(what, &names(&required)).map(|text| format!("new {text}")));
    changes.extend(counted(what, &names(&optional)).map(|text| format!("new optional {text}")));
    changes.extend(counted(what, &removed).map(|text| format!("{text} removed")));
    for (before, after) in kept {
        if before.name != after.name {
            changes.push(format!("{what} {} is called {}", before.name, after.name));
        }
        let number = |arity| match arity {
            Arity::One => "required".to_string(),
            Arity::Optional => "optional".to_string(),
            Arity::Variadic(least) => format!("variadic, {least} or more values"),
            _ => "another number of values".to_string(),
        };
        if before.arity != after.arity {
            changes.push(format!("{what} {} becomes {}", after.name, number(after.arity)));
        }
    }
    changes
}

/// The old version of a parameter: that of its name, or the one at its place in a list of the same length if neither list
/// has the other's name.
fn old_of<'a>(parameter: &Parameter, old: &'a [Parameter], new: &[Parameter]) -> Option<&'a Parameter> {
    let same = old.iter().find(|p| p.name == parameter.name);
    let at_place = || {
        let place = new.iter().position(|p| p.name == parameter.name)?;
        old.get(place).filter(|p| {
            old.len() == new.len() && !has(new, &p.name) && p.variable.is_some() == parameter.variable.is_some()
        })
    };
    same.or_else(at_place)
}

/// New and removed attributes, and those whose kind, duty or default changed.
fn attributes(old: &Schema, new: &Schema) -> Vec<String> {
    let find = |list: &'_ [AttributeSchema], name: &str| list.iter().position(|attribute| attribute.name == name);
    let added: Vec<&str> = new
        .attributes
        .iter()
        .map(|attribute| attribute.name.as_str())
        .filter(|name| find(&old.attributes, name).is_none() && !is_moved(name, new, old))
        .collect();
    let removed: Vec<&str> = old
        .attributes
        .iter()
        .map(|attribute| attribute.name.as_str())
        .filter(|name| find(&new.attributes, name).is_none() && !is_moved(name, old, new))
        .collect();
    let mut changes = Vec::new();
    changes.extend(counted("attribute", &added).map(|text| format!("new {text}")));
    changes.extend(counted("attribute", &removed).map(|text| format!("{text} removed")));
    for after in &new.attributes {
        let Some(before) = old.attributes.iter().find(|before| before.name == after.name) else { continue };
        let name = &after.name;
        if before.kind != after.kind {
            changes.push(format!("{name} is {} instead of {}", after.kind.name(), before.kind.name()));
        }
        match (before.required, after.required) {
            (false, true) => changes.push(format!("{name} must be given")),
            (true, false) => changes.push(format!("{name} may be left out")),
            _ => {}
        }
        let default =
            |attribute: &AttributeSchema| attribute.default.as_ref().map(|value| types::value(value).to_string());
        match (default(before), default(after)) {
            (Some(before_value), Some(value)) if before.kind == after.kind && before_value != value => {
                changes.push(format!("{name} is {value} by default instead of {before_value}"));
            }
            (None, Some(after)) => changes.push(format!("{name} is {after} by default")),
            (Some(before), None) if !after.required => changes.push(format!("{name} has no default, was {before}")),
            _ => {}
        }
    }
    changes
}

/// `attributes a, b`; `None` without names.
fn counted(what: &str, names: &[impl AsRef<str>]) -> Option<String> {
    let list = names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    let plural = if names.len() == 1 { "" } else { "s" };
    (!names.is_empty()).then(|| format!("{what}{plural} {list}"))
}

/// Types added and removed: `+bfloat16 for data`.
fn type_sets(old: &Schema, new: &Schema) -> Vec<String> {
    // Parameters of one variable have the same types: the first stands for all.
    let mut seen: Vec<&str> = Vec::new();
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut untouched = false;
    let sides = [(&old.inputs, &new.inputs), (&old.outputs, &new.outputs)];
    for (list, before, after) in
        sides.into_iter().flat_map(|(old, new)| new.iter().map(move |p| (new, old_of(p, old, new), p)))
    {
        let variable = after.variable.as_deref();
        if variable.is_some_and(|variable| seen.contains(&variable)) {
            continue;
        }
        seen.extend(variable);
        let same = list.iter().filter(|p| p.name == after.name || (variable.is_some() && p.variable == after.variable));
        let names = same.map(|p| p.name.as_str());
        match before.map(|before| difference(before, after)) {
            Some(text) if !text.is_empty() => match groups.iter_mut().find(|(other, _)| *other == text) {
                Some((_, known)) => known.extend(names),
                None => groups.push((text, names.collect())),
            },
            _ => untouched = true,
        }
    }
    let all = !untouched && groups.len() == 1;
    let of = |names: &[&str]| names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    let more = |names: &[&str]| if names.len() > MAX_NAMES { ", .." } else { "" };
    let text = |(text, names): &(String, Vec<&str>)| format!("{text} for {}{}", of(names), more(names));
    groups.iter().map(|group| if all { group.0.clone() } else { text(group) }).collect()
}

/// Maximum number of parameters that a change of types names.
const MAX_NAMES: usize = 4;

fn difference(old: &Parameter, new: &Parameter) -> String {
    let only = |of: &Parameter, than: &Parameter| -> Vec<ValueType> {
        of.types.iter().filter(|value_type| !than.types.contains(value_type)).collect()
    };
    let text =
        |sign: &str, types: Vec<ValueType>| (!types.is_empty()).then(|| format!("{sign}{}", types::some(&types)));
    let both = [text("+", only(new, old)), text("-", only(old, new))];
    both.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[&str]) {
        let parse = |text: &str| Schema::parse(text).unwrap();
        assert_eq!(between(&parse(old), &parse(new)), expected);
    }

    #[test]
    fn what_the_schemas_show() {
        let old =
            "A 1\n  (x: T, n: I) -> (y: T)\n  axes: INTS\n  mode: STRING = \"a\"\n  k: INT\n  T: float\n  I: int64";
        check(
            old,
            "A 2\n  (x: T, axes?: I, z?: I) -> (y: T)\n  mode: STRING = \"b\"\n  p: INT required\n  T: float bfloat16\n  I: int64",
            &[
                "axes becomes an input",
                "new optional input z",
                "input n removed",
                "new attribute p",
                "attribute k removed",
                "mode is \"b\" by default instead of \"a\"",
                "+bfloat16 for x",
            ],
        );
        check("A 1\n  (x: T) -> (y: T)\n  T: float", "A 2\n  (x: T) -> (y: T)\n  T: double", &["+float64 -float32"]);
        check(
            "A 1\n  (x: T) -> (y: T)\n  T: float",
            "A 2\n  (x?: T) -> (z: T)\n  T: float",
            &["input x becomes optional", "output y is called z"],
        );
        check("A 1\n  (x: float) -> ()", "A 2 deprecated B\n  (x: float) -> ()", &["removed, replaced by B"]);
        check(old, old, &[]);
    }
}
