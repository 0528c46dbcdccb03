//! Hand-made models for tests: the bytes of an `.onnx` file from nodes, inputs and tensors.

#![allow(dead_code, unreachable_pub)] // each test binary uses some of it
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod archive;
pub mod differences;
pub mod plain;

use onnxref::{DType, Dim, Error, Inputs, LoadOptions, Model, Tensor, ValueType};
use prost::Message;
use proto::attribute_proto::AttributeType;
use proto::tensor_shape_proto::{Dimension, dimension};
use proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};

/// The messages of the ONNX format: what no helper below makes is made of these.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
#[rustfmt::skip] // as the generator writes it
#[path = "../../src/onnx/proto.rs"]
pub mod proto;

/// An attribute of kind INT.
pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, AttributeType::Int) }
}

/// An attribute of kind FLOAT.
pub fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, AttributeType::Float) }
}

/// An attribute of kind STRING.
pub fn string(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.to_string().into()), ..attribute(name, AttributeType::String) }
}

/// An attribute of kind INTS.
pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::Ints) }
}

/// An attribute of kind TENSOR.
pub fn tensor(name: &str, value: &Tensor) -> AttributeProto {
    AttributeProto { t: Some(Box::new(initializer("", value))), ..attribute(name, AttributeType::Tensor) }
}

/// An attribute with a name and a kind, and no value yet.
pub fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind.into()), ..Default::default() }
}

/// A node without a name, of the standard's own domain: `NodeProto { domain: .., ..node(..) }` for others.
pub fn node(op_type: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        op_type: Some(op_type.into()),
        input: inputs.iter().map(|name| name.to_string()).collect(),
        output: outputs.iter().map(|name| name.to_string()).collect(),
        attribute: attributes,
        ..Default::default()
    }
}

/// An input or output with an element type; without a shape where `dims` is `None`.
pub fn value(name: &str, dtype: DType, dims: Option<&[Dim]>) -> ValueInfoProto {
    let dim = |dim: &Dim| Dimension {
        value: match dim {
            Dim::Fixed(size) => Some(dimension::Value::DimValue(i64::try_from(*size).unwrap())),
            Dim::Symbol(name) => Some(dimension::Value::DimParam(name.clone())),
            _ => None,
        },
        denotation: None,
    };
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(dtype.code()), shape };
    let r#type = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(r#type), ..Default::default() }
}

/// An input or output of any type, without shapes.
pub fn typed(name: &str, value_type: &ValueType) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), r#type: Some(type_of(value_type)), ..Default::default() }
}

/// The message of a type.
pub fn type_of(value_type: &ValueType) -> TypeProto {
    let inner = |value_type: &ValueType| Some(Box::new(type_of(value_type)));
    let value = match value_type {
        ValueType::Tensor(dtype) => {
            type_proto::Value::TensorType(type_proto::Tensor { elem_type: Some(dtype.code()), shape: None })
        }
        ValueType::Sequence(element) => {
            type_proto::Value::SequenceType(Box::new(type_proto::Sequence { elem_type: inner(element) }))
        }
        ValueType::Optional(element) => {
            type_proto::Value::OptionalType(Box::new(type_proto::Optional { elem_type: inner(element) }))
        }
        ValueType::Map(key, value) => type_proto::Value::MapType(Box::new(type_proto::Map {
            key_type: Some(key.code()),
            value_type: inner(value),
        })),
        other => panic!("a type of another kind: {other}"),
    };
    TypeProto { value: Some(value), denotation: None }
}

/// A constant: `raw_data`, or `string_data` for strings. Not for types of less than 8 bits, which are packed.
pub fn initializer(name: &str, tensor: &Tensor) -> TensorProto {
    let dims = tensor.shape().iter().map(|&dim| i64::try_from(dim).unwrap()).collect();
    let mut proto =
        TensorProto { name: Some(name.into()), data_type: Some(tensor.dtype().code()), dims, ..Default::default() };
    match tensor.strings() {
        Ok(strings) => proto.string_data = strings.map(|s| s.to_string().into()).collect(),
        Err(_) => {
            assert_eq!(tensor.dtype().bits(), tensor.dtype().size() * 8, "packed in raw data: {}", tensor.dtype());
            proto.raw_data = Some(tensor.bytes().to_vec().into());
        }
    }
    proto
}

/// The bytes of a model that imports one opset of the standard's own domain (none below IR version 3).
pub fn model(opset: i64, ir_version: i64, graph: GraphProto) -> Vec<u8> {
    let opset = OperatorSetIdProto { domain: None, version: Some(opset) };
    let model = ModelProto {
        ir_version: Some(ir_version),
        graph: Some(graph),
        opset_import: if ir_version < 3 { vec![] } else { vec![opset] },
        ..Default::default()
    };
    model.encode_to_vec()
}

/// The bytes of a model of one node named "node", whose inputs are all fed and whose output is "output".
/// Element types are declared, shapes aren't.
pub fn one_node(
    op_type: &str,
    opset: i64,
    attributes: Vec<AttributeProto>,
    inputs: &[(&str, &Tensor)],
    output: DType,
) -> Vec<u8> {
    model(opset, 8, one_node_graph(op_type, attributes, inputs, output))
}

/// The graph of [`one_node`], to be changed before it becomes a model.
pub fn one_node_graph(
    op_type: &str,
    attributes: Vec<AttributeProto>,
    inputs: &[(&str, &Tensor)],
    output: DType,
) -> GraphProto {
    let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    GraphProto {
        name: Some("graph".into()),
        node: vec![NodeProto { name: Some("node".into()), ..node(op_type, &names, &["output"], attributes) }],
        input: inputs.iter().map(|(name, tensor)| value(name, tensor.dtype(), None)).collect(),
        output: vec![value("output", output, None)],
        ..Default::default()
    }
}

/// Makes an input of a graph a constant.
pub fn fix(graph: &mut GraphProto, input: &str, tensor: &Tensor) {
    graph.input.retain(|info| info.name.as_deref() != Some(input));
    graph.initializer.push(initializer(input, tensor));
}

/// What a node gives: its model is built, loaded and run. The output has the element type of the first input.
pub fn run_one(
    op_type: &str,
    opset: i64,
    attributes: Vec<AttributeProto>,
    inputs: &[(&str, &Tensor)],
) -> Result<Tensor, Error> {
    run_one_with(&Model::options(), op_type, opset, attributes, inputs)
}

/// As [`run_one`], with options for loading.
pub fn run_one_with(
    options: &LoadOptions,
    op_type: &str,
    opset: i64,
    attributes: Vec<AttributeProto>,
    inputs: &[(&str, &Tensor)],
) -> Result<Tensor, Error> {
    let output = inputs.first().map_or(DType::Float, |(_, tensor)| tensor.dtype());
    let bytes = one_node(op_type, opset, attributes, inputs, output);
    let feeds: Inputs<'_> = inputs.iter().copied().collect();
    first_output(&options.from_bytes(bytes)?, feeds)
}

/// Runs a model and takes its first output.
pub fn first_output(model: &Model, feeds: Inputs<'_>) -> Result<Tensor, Error> {
    let outputs = model.run(feeds)?;
    outputs.into_iter().next().expect("an output").1.into_tensor()
}
