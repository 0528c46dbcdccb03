//! A node's inputs and outputs against its operator's schema.

use crate::dtype::DType;
use crate::error::{Error, Result, quote};
use crate::schema::{Arity, Parameter, Schema};
use smallvec::SmallVec;

/// What is known of a node's values.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// The element type of each output, where it follows from the inputs.
    pub(super) outputs: SmallVec<[Option<DType>; 1]>,
    /// The type of some input isn't known yet.
    pub(super) open: bool,
}

/// Checks the number of inputs and outputs. A value that is left out has an empty name: `false` here.
pub(super) fn check_arity(schema: &Schema, inputs: &[bool], outputs: &[bool]) -> Result<()> {
    arity("input", &schema.inputs, inputs)?;
    arity("output", &schema.outputs, outputs)
}

fn arity(what: &str, formal: &[Parameter], given: &[bool]) -> Result<()> {
    let variadic = formal.last().is_some_and(|last| matches!(last.arity, Arity::Variadic(_)));
    if given.len() > formal.len() && !variadic {
        return Err(wrong_count(what, formal, given.len()));
    }
    for (k, parameter) in formal.iter().enumerate() {
        let missing = match parameter.arity {
            Arity::Optional => false,
            Arity::One => !given.get(k).copied().unwrap_or(false),
            Arity::Variadic(least) => {
                let rest = given.get(k..).unwrap_or(&[]);
                rest.len() < least || rest.contains(&false)
            }
        };
        if missing && given.len() < formal.len() {
            return Err(wrong_count(what, formal, given.len()));
        }
        if missing {
            return Err(Error::model(format!("{what} {k}, {}, is left out, and is required", quote(&parameter.name)))
                .at(|place| place.value_name = Some(parameter.name.clone())));
        }
    }
    Ok(())
}

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
    Error::model(format!("{given} {what}{s} given: the operator has ({})", names.join(", "))).at(|place| {
        place.value = Some(given as i128);
    })
}

/// Checks the inputs' element types: the outer `None` is an input left out, the inner one a type that isn't known.
pub(super) fn check(schema: &Schema, inputs: &[Option<Option<DType>>], outputs: usize) -> Result<Types> {
    let mut bound: SmallVec<[(&str, DType, &str); 4]> = SmallVec::new();
    let mut types = Types::default();
    for (k, dtype) in inputs.iter().enumerate() {
        let (Some(dtype), Some(parameter)) = (dtype, schema.input(k)) else { continue };
        let Some(dtype) = *dtype else {
            types.open = true;
            continue;
        };
        if !parameter.types.contains(dtype) {
            let text = format!("{} has element type {dtype}: allowed {}", quote(&parameter.name), parameter.types);
            return Err(wrong_type(text, parameter));
        }
        let Some(variable) = parameter.variable.as_deref() else { continue };
        match bound.iter().find(|(name, ..)| *name == variable) {
            None => bound.push((variable, dtype, &parameter.name)),
            Some((_, other, _)) if *other == dtype => {}
            Some((_, other, by)) => {
                let name = quote(&parameter.name);
                let text = format!("{name} has element type {dtype} and {} has {other}: they must be equal", quote(by));
                return Err(wrong_type(text, parameter));
            }
        }
    }
    types.outputs = (0..outputs)
        .map(|k| {
            let parameter = schema.output(k)?;
            let variable = parameter.variable.as_deref().unwrap_or("");
            let bound = bound.iter().find(|(name, ..)| *name == variable).map(|(_, dtype, _)| *dtype);
            bound.or_else(|| parameter.types.only())
        })
        .collect();
    Ok(types)
}

fn wrong_type(text: String, parameter: &Parameter) -> Error {
    Error::model(text).at(|place| place.value_name = Some(parameter.name.clone()))
}
