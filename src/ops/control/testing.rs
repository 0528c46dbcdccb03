//! Models of one node with subgraphs, for the tests of this family.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::onnx::proto::attribute_proto::AttributeType;
use crate::onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TypeProto};
use crate::onnx::proto::{ValueInfoProto, type_proto};
use crate::value::Value;
use prost::Message;

/// A graph: inputs such as `x: float`, or `x` of any type; nodes such as `y, z = Split(x, sizes)`; names of outputs.
pub(super) fn graph<const N: usize>(inputs: &str, nodes: [&str; N], outputs: &str) -> GraphProto {
    let input = |text: &str| match text.split_once(": ") {
        Some((name, dtype)) => info(name, DType::all().find(|known| known.name() == dtype)),
        None => info(text, None),
    };
    GraphProto {
        name: Some("graph".into()),
        input: names(inputs).iter().map(|text| input(text)).collect(),
        node: nodes.into_iter().map(|text| node(text, vec![])).collect(),
        output: names(outputs).iter().map(|name| info(name, None)).collect(),
        ..GraphProto::default()
    }
}

fn names(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect()
}

fn info(name: &str, dtype: Option<DType>) -> ValueInfoProto {
    let tensor = |dtype: DType| type_proto::Tensor { elem_type: Some(dtype.code()), shape: None };
    let value = |dtype| TypeProto { value: Some(type_proto::Value::TensorType(tensor(dtype))), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: dtype.map(value), ..ValueInfoProto::default() }
}

/// An omitted input is `-`.
fn node(text: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    let (outputs, call) = text.split_once(" = ").unwrap();
    let (operator, inputs) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
    let given = |name: String| if name == "-" { String::new() } else { name };
    NodeProto {
        op_type: Some(operator.into()),
        input: names(inputs).into_iter().map(given).collect(),
        output: names(outputs),
        attribute,
        ..NodeProto::default()
    }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind.into()), ..AttributeProto::default() }
}

pub(super) fn body(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(Box::new(graph)), ..attribute(name, AttributeType::Graph) }
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, AttributeType::Int) }
}

pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::Ints) }
}

/// The outputs of a node such as `y = If(c)`, whose inputs are fed with what else its subgraphs read. They are the same
/// with and without optimisation.
pub(super) fn run(
    opset: i64,
    text: &str,
    attributes: Vec<AttributeProto>,
    feeds: &[(&str, &Value)],
) -> Result<Vec<Value>> {
    let mut whole = graph("", [], text.split_once(" = ").unwrap().0);
    whole.input = feeds.iter().map(|(name, value)| info(name, value.tensor().ok().map(|x| x.dtype()))).collect();
    whole.node = vec![node(text, attributes)];
    let model = ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(opset) }],
        graph: Some(whole),
        ..ModelProto::default()
    };
    let bytes = model.encode_to_vec();
    let [first, second] = [true, false].map(|optimize| {
        let feeds = feeds.iter().map(|(name, value)| (*name, (*value).clone())).collect();
        let outputs = Model::options().optimize(optimize).from_bytes(bytes.clone())?.run(feeds)?;
        Ok::<Vec<Value>, Error>(outputs.into_iter().map(|(_, value)| value).collect())
    });
    match (&first, &second) {
        (Ok(first), Ok(second)) => assert_eq!(first, second, "optimisation changes the result"),
        (first, second) => assert_eq!(format!("{first:?}"), format!("{second:?}")),
    }
    first
}
