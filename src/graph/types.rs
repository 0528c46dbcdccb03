//! Checks a node's inputs and outputs against its operator's schema.

use crate::error::{Error, Result, quote};
use crate::schema::{Arity, Parameter, Schema};
use crate::value::ValueType;
use smallvec::SmallVec;

/// The known types of a node's values.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// The type of each output, if it follows from the inputs.
    pub(super) outputs: SmallVec<[Option<ValueType>; 1]>,
    /// The type of some input isn't known yet.
    pub(super) open: bool,
}

/// Checks the number of inputs and outputs; `false` stands for an omitted one.
pub(crate) fn check_arity(
    schema: &Schema,
    inputs: impl ExactSizeIterator<Item = bool> + Clone,
    outputs: impl ExactSizeIterator<Item = bool> + Clone,
) -> Result<()> {
    arity("input", &schema.inputs, inputs)?;
    arity("output", &schema.outputs, outputs)
}

fn arity(what: &str, formal: &[Parameter], given: impl ExactSizeIterator<Item = bool> + Clone) -> Result<()> {
    let count = given.len();
    let variadic = formal.last().is_some_and(|last| matches!(last.arity, Arity::Variadic(_)));
    if count > formal.len() && !variadic {
        return Err(wrong_count(what, formal, count));
    }
    for (k, parameter) in formal.iter().enumerate() {
        let (least, most) = match parameter.arity {
            Arity::Optional => continue,
            Arity::One => (1, 1),
            Arity::Variadic(least) => (least, usize::MAX),
        };
        if count.saturating_sub(k) < least {
            return Err(wrong_count(what, formal, count));
        }
        if let Some(blank) = given.clone().skip(k).take(most).position(|there| !there) {
            let text = format!("{what} {}, {}, is left out, but required", k + blank, quote(&parameter.name));
            return Err(Error::model(text).parameter(&parameter.name));
        }
    }
    Ok(())
}

#[cold]
fn wrong_count(what: &str, formal: &[Parameter], given: usize) -> Error {
    let names: Vec<String> = formal
        .iter()
        .map(|p| match p.arity {
            Arity::One => p.name.clone(),
            Arity::Optional => format!("{}?", p.name),
            Arity::Variadic(_) => format!("{}...", p.name),
        })
        .collect();
    let s = if given == 1 { "" } else { "s" };
    Error::model(format!("{given} {what}{s} given: the operator has ({})", names.join(", "))).value(given as i128)
}

/// Checks the inputs' types: the outer `None` is an omitted input, the inner one an unknown type.
pub(crate) fn check(
    schema: &Schema,
    inputs: impl Iterator<Item = Option<Option<ValueType>>>,
    outputs: usize,
) -> Result<Types> {
    let mut bound: SmallVec<[(&str, ValueType, &str); 4]> = SmallVec::new();
    let mut types = Types::default();
    for (k, value_type) in inputs.enumerate() {
        let (Some(value_type), Some(parameter)) = (value_type, schema.input(k)) else { continue };
        let Some(value_type) = value_type else {
            types.open = true;
            continue;
        };
        if !parameter.types.contains(&value_type) {
            let what = what(&value_type);
            let text = format!("{} has {what} {value_type}: allowed {}", quote(&parameter.name), parameter.types);
            return Err(Error::model(text).parameter(&parameter.name));
        }
        let Some(variable) = parameter.variable.as_deref() else { continue };
        match bound.iter().find(|(name, ..)| *name == variable) {
            None => bound.push((variable, value_type, &parameter.name)),
            Some((_, other, _)) if *other == value_type => {}
            Some((_, other, by)) => {
                let (name, what) = (quote(&parameter.name), what(&value_type));
                let text = format!("{name} has {what} {value_type} and {} has {other}: they must be equal", quote(by));
                return Err(Error::model(text).parameter(&parameter.name));
            }
        }
    }
    let type_of = |k| {
        let parameter = schema.output(k)?;
        let bound =
            parameter.variable.as_deref().and_then(|variable| bound.iter().find(|(name, ..)| *name == variable));
        bound.map(|(_, value_type, _)| value_type.clone()).or_else(|| parameter.types.only())
    };
    types.outputs = (0..outputs).map(type_of).collect();
    Ok(types)
}

/// What errors call a type.
pub(super) fn what(value_type: &ValueType) -> &'static str {
    if value_type.dtype().is_some() { "element type" } else { "type" }
}

#[cfg(test)]
mod tests {
    use super::check_arity;
    use crate::registry::Registry;

    /// What is missing at the end is a matter of the count, what is blank of its place.
    #[test]
    fn blank_inputs_are_named() {
        let refused = |operator: &str, inputs: &[bool]| {
            let resolved = Registry::default().resolve("", operator, 11).unwrap();
            check_arity(&resolved.schema, inputs.iter().copied(), [true].into_iter()).unwrap_err().to_string()
        };
        assert_eq!(refused("Resize", &[true, false, true]), "input 1, \"roi\", is left out, but required");
        assert_eq!(refused("Resize", &[true, true]), "2 inputs given: the operator has (X, roi, scales, sizes?)");
        assert_eq!(refused("Concat", &[true, true, false]), "input 2, \"inputs\", is left out, but required");
        assert_eq!(refused("Concat", &[]), "0 inputs given: the operator has (inputs...)");
        // Those of a Loop may be none.
        let resolved = Registry::default().resolve("", "Loop", 11).unwrap();
        assert!(check_arity(&resolved.schema, [true].into_iter(), [true].into_iter()).is_ok());
    }
}
