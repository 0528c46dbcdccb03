//! Models being written: the messages of the ONNX format.

use crate::bounded::Unwritten;
use crate::output;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{
    GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, attribute_proto, type_proto,
};
use onnxref::bytes::Bytes;
use onnxref::{DType, Tensor, Value, ValueType};
use prost::Message;

/// The kinds of attributes.
pub(crate) use attribute_proto::AttributeType;

/// A type as a graph declares it; that of a tensor with its shape, if that is given.
pub(crate) fn type_of(value_type: &ValueType, shape: Option<Vec<Dimension>>) -> TypeProto {
    let inner = |element: &ValueType| Some(Box::new(type_of(element, None)));
    let value = match value_type {
        ValueType::Sequence(element) => {
            type_proto::Value::SequenceType(Box::new(type_proto::Sequence { elem_type: inner(element) }))
        }
        ValueType::Optional(element) => {
            type_proto::Value::OptionalType(Box::new(type_proto::Optional { elem_type: inner(element) }))
        }
        ValueType::Map(key, value) => {
            let (key_type, value_type) = (Some(key.code()), inner(value));
            type_proto::Value::MapType(Box::new(type_proto::Map { key_type, value_type }))
        }
        other => {
            let shape = shape.map(|dim| TensorShapeProto { dim });
            type_proto::Value::TensorType(type_proto::Tensor { elem_type: other.dtype().map(DType::code), shape })
        }
    };
    TypeProto { value: Some(value), denotation: None }
}

/// The dimensions of a shape.
pub(crate) fn dims(shape: &[usize]) -> Vec<Dimension> {
    let dim = |size: &usize| dimension::Value::DimValue(i64::try_from(*size).unwrap_or(i64::MAX));
    shape.iter().map(|size| Dimension { value: Some(dim(size)), ..Dimension::default() }).collect()
}

/// A named value as a graph declares it, with the type and the shape that it has.
pub(crate) fn declared(name: &str, value: &Value) -> ValueInfoProto {
    let shape = value.tensor().ok().map(|tensor| dims(tensor.shape()));
    let r#type = value.value_type().map(|value_type| type_of(&value_type, shape));
    ValueInfoProto { name: Some(name.to_string()), r#type, ..ValueInfoProto::default() }
}

/// A tensor as an initializer or an attribute has it.
pub(crate) fn tensor(name: &str, tensor: &Tensor) -> Result<TensorProto, Unwritten> {
    let bytes = encoded(name, &tensor.clone().into())?;
    TensorProto::decode(bytes).map_err(|error| Unwritten::Unfit(error.to_string()))
}

/// A value as a file of a case has it.
pub(crate) fn encoded(name: &str, value: &Value) -> Result<Bytes, Unwritten> {
    let mut bytes = Vec::new();
    output::write_proto(name, value, &mut bytes)?;
    Ok(bytes.into())
}

/// The subgraphs of a node.
pub(crate) fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.iter().map(|graph| &**graph).chain(&attribute.graphs))
}

/// The names that the subgraphs of a node read from around them, each once, in the order of their first use.
pub(crate) fn captured(node: &NodeProto) -> Vec<String> {
    let mut names = Vec::new();
    bodies(node).for_each(|body| free(body, &mut names));
    names
}

/// Adds the names that a graph doesn't define itself.
fn free(graph: &GraphProto, names: &mut Vec<String>) {
    let mut used: Vec<String> = Vec::new();
    for node in &graph.node {
        used.extend(node.input.iter().cloned().chain(captured(node)));
    }
    used.extend(graph.output.iter().filter_map(|info| info.name.clone()));
    let sparse = graph.sparse_initializer.iter().filter_map(|tensor| tensor.values.as_ref()?.name.as_deref());
    let own: std::collections::HashSet<&str> = (graph.input.iter().filter_map(|info| info.name.as_deref()))
        .chain(graph.initializer.iter().filter_map(|tensor| tensor.name.as_deref()))
        .chain(sparse)
        .chain(graph.node.iter().flat_map(|node| node.output.iter().map(String::as_str)))
        .collect();
    for name in used.into_iter().filter(|name| !name.is_empty() && !own.contains(name.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}
