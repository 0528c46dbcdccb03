//! Operators as JSON.

use super::{Operator, Version, types};
use onnxref::schema::{Arity, AttributeSchema, Parameter};
use onnxref_view::differences::{self, Row};
use onnxref_view::type_name;
use serde::Serialize;
use serde_json::Value;

/// `{"operators": [..]}`
#[derive(Serialize)]
pub(super) struct Document<'a> {
    operators: Vec<OperatorDocument<'a>>,
}

#[derive(Serialize)]
struct OperatorDocument<'a> {
    /// Empty for ai.onnx, as in models.
    domain: &'a str,
    name: &'a str,
    summary: Option<&'a str>,
    url: String,
    /// The greatest errors in float32 and in float64, in units of the last place.
    ulp: Option<&'a str>,
    versions: Vec<VersionDocument<'a>>,
    /// Where engines differ.
    differences: Vec<Row>,
}

#[derive(Serialize)]
struct VersionDocument<'a> {
    version: i64,
    runs: bool,
    removed: bool,
    replaced_by: Option<&'a str>,
    change: Option<&'a str>,
    inputs: Vec<ParameterDocument<'a>>,
    outputs: Vec<ParameterDocument<'a>>,
    attributes: Vec<AttributeDocument<'a>>,
    /// A command for the root of the repository.
    example: Option<String>,
}

#[derive(Serialize)]
struct ParameterDocument<'a> {
    name: &'a str,
    /// one, optional or variadic
    arity: &'static str,
    /// The least number of values.
    min: usize,
    variable: Option<&'a str>,
    types: Vec<String>,
}

#[derive(Serialize)]
struct AttributeDocument<'a> {
    name: &'a str,
    kind: &'static str,
    required: bool,
    default: Option<Value>,
}

pub(super) fn all(operators: &[Operator]) -> Document<'_> {
    Document { operators: operators.iter().map(operator).collect() }
}

fn operator(operator: &Operator) -> OperatorDocument<'_> {
    OperatorDocument {
        domain: operator.domain,
        name: operator.name,
        summary: operator.about().sentence(),
        url: operator.link(),
        ulp: operator.about().ulp(),
        versions: operator.listed().map(|of| version(operator, of)).collect(),
        differences: differences::of(operator.name),
    }
}

fn version<'a>(operator: &Operator, version: &'a Version) -> VersionDocument<'a> {
    let schema = &version.schema;
    VersionDocument {
        version: schema.since_version,
        runs: version.runs,
        removed: version.removed,
        replaced_by: schema.deprecated.as_deref().filter(|by| version.removed && !by.is_empty()),
        change: version.change.as_deref(),
        inputs: schema.inputs.iter().map(parameter).collect(),
        outputs: schema.outputs.iter().map(parameter).collect(),
        attributes: schema.attributes.iter().map(attribute).collect(),
        example: operator.example(version).filter(|(of, _)| *of == schema.since_version).map(|(_, command)| command),
    }
}

fn parameter(parameter: &Parameter) -> ParameterDocument<'_> {
    let (arity, min) = match parameter.arity {
        Arity::Optional => ("optional", 0),
        Arity::Variadic(min) => ("variadic", min),
        _ => ("one", 1),
    };
    let types = parameter.types.iter().map(|of| type_name(&of)).collect();
    ParameterDocument { name: &parameter.name, arity, min, variable: parameter.variable.as_deref(), types }
}

fn attribute(attribute: &AttributeSchema) -> AttributeDocument<'_> {
    AttributeDocument {
        name: &attribute.name,
        kind: attribute.kind.name(),
        required: attribute.required,
        default: attribute.default.as_ref().map(types::value),
    }
}
