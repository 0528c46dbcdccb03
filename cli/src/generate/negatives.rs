//! Nodes that must be refused: each breaks one rule.

use super::elements::integers;
use super::goals::type_key;
use super::maker::options;
use super::maker::{Given, Made};
use crate::corpus::manifest::Refusal;
use crate::messages::AttributeType;
use crate::proto::AttributeProto;
use crate::random::Random;
use onnxref::bytes::Bytes;
use onnxref::schema::{self, Arity, AttributeKind, Parameter, Schema};
use onnxref::{DType, Error, Inputs, Kind, Tensor, Value, ValueType};

/// A rule, a part of the text of its error, and how a node breaks it: `None` for a node that can't.
struct Rule(&'static str, &'static str, fn(&Schema, Made) -> Option<Made>);

const RULES: &[Rule] = &[
    Rule("too-few-inputs", "input", too_few_inputs),
    Rule("too-many-inputs", "input", too_many_inputs),
    Rule("too-many-outputs", "output", too_many_outputs),
    Rule("unknown-attribute", "attribute \"no_such_attribute\"", unknown_attribute),
    Rule("attribute-of-another-kind", "attribute", attribute_kind),
    Rule("missing-attribute", "attribute", missing_attribute),
    Rule("type-not-allowed", "has element type", type_not_allowed),
    Rule("types-differ", "they must be equal", types_differ),
    Rule("operator-of-a-later-opset", "not in opset", later_opset),
    Rule("axis-too-large", "is out of range", |_, made| axis(made, 1)),
    Rule("axis-too-small", "is out of range", |_, made| axis(made, -1)),
    Rule("index-out-of-range", "is out of range", index),
    Rule("shapes-dont-broadcast", "can't be broadcast", broadcast),
    Rule("inner-sizes-differ", "can't be multiplied", inner_sizes),
    Rule("sizes-beside-the-axis-differ", "they must be equal", sizes_beside_axis),
];

/// The rules that a node can break, with what breaks them.
pub(super) fn broken(schema: &Schema, made: &Made) -> Vec<(&'static str, &'static str, Made)> {
    let broken = |Rule(name, text, make): &Rule| Some((*name, *text, make(schema, made.clone())?));
    RULES.iter().filter_map(broken).collect()
}

/// How a model with these feeds is refused, if it is.
pub(super) fn refusal(rule: &str, model: &Bytes, feeds: Inputs<'_>) -> Option<Refusal> {
    let options = options();
    let (stage, error) = match options.from_bytes(model.clone()) {
        Err(error) => ("load", error),
        Ok(model) => ("run", model.run(feeds).err()?),
    };
    let first = |error: &Error| format!("{error:#}").lines().next().unwrap_or_default().to_string();
    let refused = matches!(error.kind(), Kind::Model | Kind::Input);
    refused.then(|| Refusal { rule: rule.to_string(), stage, kind: error.kind().to_string(), text: first(&error) })
}

/// The number of inputs that a node must have.
fn required(schema: &Schema) -> usize {
    let least = |(k, input): (usize, &Parameter)| match input.arity {
        Arity::One => k + 1,
        Arity::Variadic(least) => k + least,
        _ => 0,
    };
    schema.inputs.iter().enumerate().map(least).max().unwrap_or(0)
}

fn is_variadic(parameters: &[Parameter]) -> bool {
    parameters.last().is_some_and(|last| matches!(last.arity, Arity::Variadic(_)))
}

fn too_few_inputs(schema: &Schema, mut made: Made) -> Option<Made> {
    let removed = made.node.input.split_off(made.node.input.len().min(required(schema).checked_sub(1)?));
    let names = made.node.input.clone();
    made.inputs.retain(|given| names.contains(&given.name) || !removed.contains(&given.name));
    Some(made)
}

fn too_many_inputs(schema: &Schema, mut made: Made) -> Option<Made> {
    let first = made.node.input.first().cloned().filter(|_| !is_variadic(&schema.inputs))?;
    made.node.input.resize(schema.inputs.len(), String::new());
    made.node.input.push(first);
    Some(made)
}

fn too_many_outputs(schema: &Schema, mut made: Made) -> Option<Made> {
    if is_variadic(&schema.outputs) {
        return None;
    }
    made.node.output.resize(schema.outputs.len(), String::new());
    made.node.output.push("one_more".to_string());
    Some(made)
}

/// An attribute with an integer.
fn int(name: &str, value: i64) -> AttributeProto {
    let (name, i, kind) = (Some(name.to_string()), Some(value), Some(AttributeType::Int.into()));
    AttributeProto { name, i, r#type: kind, ..AttributeProto::default() }
}

/// An attribute with a text.
fn text(name: &str) -> AttributeProto {
    let (name, s, kind) = (Some(name.to_string()), Some("text".into()), Some(AttributeType::String.into()));
    AttributeProto { name, s, r#type: kind, ..AttributeProto::default() }
}

fn unknown_attribute(_: &Schema, mut made: Made) -> Option<Made> {
    made.node.attribute.push(int("no_such_attribute", 1));
    Some(made)
}

fn attribute_kind(schema: &Schema, mut made: Made) -> Option<Made> {
    let formal = schema.attributes.first()?;
    made.node.attribute.retain(|attribute| attribute.name() != formal.name);
    made.node.attribute.push(match formal.kind {
        AttributeKind::Int => text(&formal.name),
        _ => int(&formal.name, 1),
    });
    Some(made)
}

fn missing_attribute(schema: &Schema, mut made: Made) -> Option<Made> {
    let formal = schema.attributes.iter().find(|formal| formal.required)?;
    made.node.attribute.retain(|attribute| attribute.name() != formal.name);
    Some(made)
}

/// The formal input of a node's input.
fn formal<'a>(schema: &'a Schema, made: &Made, name: &str) -> Option<&'a Parameter> {
    let position = made.node.input.iter().position(|input| input == name)?;
    schema.inputs.get(position).or(schema.inputs.last())
}

/// Types that replace others, the first ones first.
const TYPES: [DType; 6] = [DType::String, DType::Bool, DType::Float, DType::Int64, DType::Int32, DType::Complex64];

/// Another tensor of the same shape.
fn retyped(given: &mut Given, dtype: DType) -> Option<()> {
    let shape = given.value.tensor().ok()?.shape().to_vec();
    given.value = Random::new(1).tensor(dtype, &shape, None).ok()?.into();
    Some(())
}

/// All inputs of a type variable have a type that it doesn't allow.
fn type_not_allowed(schema: &Schema, mut made: Made) -> Option<Made> {
    let is_wrong = |parameter: &Parameter, dtype: DType| !parameter.types.contains(&ValueType::Tensor(dtype));
    let name = made.inputs.iter().find(|given| given.value.tensor().is_ok())?.name.clone();
    let parameter = formal(schema, &made, &name)?;
    let dtype = TYPES.into_iter().find(|dtype| is_wrong(parameter, *dtype))?;
    let key = type_key(parameter);
    let same: Vec<bool> = made
        .inputs
        .iter()
        .map(|given| formal(schema, &made, &given.name).is_some_and(|p| type_key(p) == key))
        .collect();
    for (given, _) in made.inputs.iter_mut().zip(same).filter(|(_, same)| *same) {
        retyped(given, dtype)?;
    }
    Some(made)
}

/// Two inputs of one type variable are of two types that it allows.
fn types_differ(schema: &Schema, mut made: Made) -> Option<Made> {
    let keys: Vec<Option<(String, &Parameter)>> = made
        .inputs
        .iter()
        .map(|given| {
            let parameter = formal(schema, &made, &given.name)?;
            Some((parameter.variable.clone()?, parameter))
        })
        .collect();
    let (first, second) = (0..keys.len()).find_map(|k| {
        let own = keys.get(k)?.as_ref()?;
        let before = keys.iter().take(k).position(|key| key.as_ref().is_some_and(|key| key.0 == own.0))?;
        Some((before, k))
    })?;
    let (_, parameter) = keys.get(second)?.as_ref()?;
    let has = made.inputs.get(first)?.value.value_type()?;
    let other = parameter.types.tensors().iter().find(|dtype| ValueType::Tensor(*dtype) != has)?;
    retyped(made.inputs.get_mut(second)?, other)?;
    Some(made)
}

fn later_opset(schema: &Schema, mut made: Made) -> Option<Made> {
    let first = schema::history(&schema.domain, &schema.name).ok()?.first()?.since_version;
    made.opset = Some(first - 1).filter(|opset| *opset > 0)?;
    Some(made)
}

/// The attribute `axis` beyond any rank.
fn axis(mut made: Made, sign: i64) -> Option<Made> {
    let rank = made.inputs.first()?.value.tensor().ok()?.rank() as i64;
    let has_axis = schema_has_axis(&made);
    made.node.attribute.retain(|attribute| attribute.name() != "axis");
    made.node.attribute.push(int("axis", sign * (rank + 3)));
    has_axis.then_some(made)
}

fn schema_has_axis(made: &Made) -> bool {
    let of = schema::resolve(made.node.domain(), made.node.op_type(), made.opset);
    of.is_ok_and(|schema| {
        schema.attributes.iter().any(|formal| formal.name == "axis" && formal.kind == AttributeKind::Int)
    })
}

/// The first element of the input `indices` is beyond any axis.
fn index(_: &Schema, mut made: Made) -> Option<Made> {
    let given = made.inputs.iter_mut().find(|given| given.name == "indices")?;
    let tensor = given.value.tensor().ok().filter(|tensor| tensor.len() > 0)?;
    if !matches!(tensor.dtype(), DType::Int64 | DType::Int32) {
        return None;
    }
    let mut list = vec![0; tensor.len()];
    list.first_mut().into_iter().for_each(|index| *index = 1 << 20);
    given.value = integers(tensor.dtype(), tensor.shape(), list).ok()?.into();
    Some(made)
}

/// Operators that broadcast their first two inputs.
const BROADCAST: &[&str] = &[
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "PRelu",
    "Pow",
    "Sub",
    "Sum",
    "Where",
    "Xor",
];

/// Gives the first inputs shapes. Further ones are not given.
fn shaped(mut made: Made, shapes: &[&[usize]]) -> Option<Made> {
    if made.inputs.len() < 2 {
        let mut second = made.inputs.first()?.clone();
        second.name += "_second";
        made.node.input.push(second.name.clone());
        made.inputs.push(second);
    }
    for (given, shape) in made.inputs.iter_mut().zip(shapes) {
        given.value = zeros(given.value.tensor().ok()?.dtype(), shape)?;
    }
    Some(made)
}

fn zeros(dtype: DType, shape: &[usize]) -> Option<Value> {
    let count: usize = shape.iter().product();
    match dtype {
        DType::String => Tensor::from_strings(shape, std::iter::repeat_n("", count)).ok().map(Value::from),
        _ => Tensor::new(dtype, shape, vec![0; count * dtype.size()]).ok().map(Value::from),
    }
}

fn broadcast(schema: &Schema, made: Made) -> Option<Made> {
    let both = BROADCAST.contains(&schema.name.as_str()) && !schema.attributes.iter().any(|a| a.name == "broadcast");
    if both { shaped(made, &[&[2, 3], &[2, 4]]) } else { None }
}

fn inner_sizes(schema: &Schema, made: Made) -> Option<Made> {
    let is_product = matches!(schema.name.as_str(), "MatMul" | "MatMulInteger" | "Gemm");
    if is_product { shaped(made, &[&[2, 3], &[5, 7]]) } else { None }
}

fn sizes_beside_axis(schema: &Schema, mut made: Made) -> Option<Made> {
    if schema.name != "Concat" {
        return None;
    }
    made.node.attribute = vec![int("axis", 0)];
    shaped(made, &[&[2, 3], &[2, 4]])
}
