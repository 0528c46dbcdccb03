//! What the cases of an operator version are to show.

use onnxref::ValueType;
use onnxref::schema::{Parameter, Schema};
use onnxref_view::type_name;

/// What a case shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Goal {
    /// A type variable, or a parameter of several types, is of a type.
    Type(String, ValueType),
    Feature(Feature),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Feature {
    /// Declared shapes have symbols for sizes.
    OpenShapes,
    /// All inputs but the first are initializers.
    ConstantInputs,
    /// What is optional is omitted.
    OnlyRequired,
    /// What is optional is given.
    AllGiven,
    /// NaN, infinities, -0, subnormal numbers, the ends of integers.
    EdgeValues,
    /// An input without elements.
    Empty,
    /// The first input has rank 0.
    Scalar,
}

impl Feature {
    const ALL: [(Feature, &'static str); 7] = [
        (Feature::OpenShapes, "open-shapes"),
        (Feature::ConstantInputs, "constant-inputs"),
        (Feature::OnlyRequired, "only-required"),
        (Feature::AllGiven, "all-given"),
        (Feature::EdgeValues, "edge-values"),
        (Feature::Empty, "empty"),
        (Feature::Scalar, "scalar"),
    ];

    pub(super) fn name(self) -> &'static str {
        Feature::ALL.iter().find(|(feature, _)| *feature == self).map_or("", |(_, name)| name)
    }
}

impl Goal {
    /// The name of the case: `T-float32`, `open-shapes`.
    pub(super) fn name(&self) -> String {
        match self {
            Goal::Type(name, value_type) => {
                let tidy = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
                format!("{name}-{}", type_name(value_type))
                    .chars()
                    .map(|c| if c == '-' { c } else { tidy(c) })
                    .collect()
            }
            Goal::Feature(feature) => feature.name().to_string(),
        }
    }

    pub(super) fn is(&self, feature: Feature) -> bool {
        *self == Goal::Feature(feature)
    }
}

/// By what a parameter's type is known: its variable, else its own name.
pub(super) fn type_key(parameter: &Parameter) -> &str {
    parameter.variable.as_deref().unwrap_or(&parameter.name)
}

/// The goals of an operator version: the first type, features, then all other types.
pub(super) fn goals(schema: &Schema) -> Vec<Goal> {
    let mut goals: Vec<Goal> = Vec::new();
    for parameter in schema.inputs.iter().chain(&schema.outputs) {
        let key = type_key(parameter);
        if !goals.iter().any(|goal| matches!(goal, Goal::Type(known, _) if known == key)) {
            goals.extend(parameter.types.iter().map(|value_type| Goal::Type(key.to_string(), value_type)));
        }
    }
    let features = Feature::ALL.iter().filter(|(feature, _)| applies(schema, *feature));
    let after = goals.len().min(1);
    goals.splice(after..after, features.map(|(feature, _)| Goal::Feature(*feature)));
    goals
}

/// Whether an operator version may have a feature.
fn applies(schema: &Schema, feature: Feature) -> bool {
    use onnxref::schema::Arity;
    let is_optional = |parameter: &Parameter| parameter.arity == Arity::Optional;
    let optional = schema.inputs.iter().any(is_optional) || schema.attributes.iter().any(|formal| !formal.required);
    match feature {
        Feature::OnlyRequired | Feature::AllGiven => optional,
        Feature::ConstantInputs => schema.inputs.len() > 1,
        Feature::OpenShapes | Feature::EdgeValues | Feature::Empty | Feature::Scalar => !schema.inputs.is_empty(),
    }
}
