//! A model without the shapes that it declares, and without sizes, as `tools/export_shapes.py` removes them.

use crate::common::proto::tensor_shape_proto::dimension;
use crate::common::proto::type_proto::Value;
use crate::common::proto::{GraphProto, ModelProto, NodeProto, TensorShapeProto, TypeProto, ValueInfoProto};
use std::collections::HashSet;

/// Removes all `value_info`, the shapes of the graphs' outputs, and those of the inputs of subgraphs. The inputs of the
/// main graph keep theirs.
pub(crate) fn strip(model: &mut ModelProto) {
    for function in &mut model.functions {
        function.value_info.clear();
        strip_bodies(&mut function.node);
    }
    model.graph.iter_mut().for_each(strip_graph);
}

fn strip_graph(graph: &mut GraphProto) {
    graph.value_info.clear();
    graph.output.iter_mut().for_each(strip_shape);
    strip_bodies(&mut graph.node);
}

fn strip_bodies(nodes: &mut [NodeProto]) {
    for attribute in nodes.iter_mut().flat_map(|node| &mut node.attribute) {
        for body in attribute.g.iter_mut().map(|body| &mut **body).chain(&mut attribute.graphs) {
            strip_graph(body);
            body.input.iter_mut().for_each(strip_shape);
        }
    }
}

fn strip_shape(info: &mut ValueInfoProto) {
    if let Some(shape) = info.r#type.as_mut().and_then(shape) {
        *shape = None;
    }
}

/// Puts symbols in place of the sizes of the inputs: `d16` for 16. A size of 1 stays.
pub(crate) fn open(graph: &mut GraphProto) {
    let constant: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name()).collect();
    let inputs = graph.input.iter_mut().filter(|info| !constant.contains(info.name.as_deref().unwrap_or_default()));
    for dim in inputs.filter_map(|info| shape(info.r#type.as_mut()?)?.as_mut()).flat_map(|shape| &mut shape.dim) {
        if let Some(dimension::Value::DimValue(size @ 2..)) = dim.value {
            dim.value = Some(dimension::Value::DimParam(format!("d{size}")));
        }
    }
}

/// The shape of the tensors in a type.
pub(crate) fn shape(of: &mut TypeProto) -> Option<&mut Option<TensorShapeProto>> {
    match of.value.as_mut()? {
        Value::TensorType(tensor) => Some(&mut tensor.shape),
        Value::SparseTensorType(tensor) => Some(&mut tensor.shape),
        Value::SequenceType(sequence) => shape(sequence.elem_type.as_mut()?),
        Value::OptionalType(optional) => shape(optional.elem_type.as_mut()?),
        Value::MapType(map) => shape(map.value_type.as_mut()?),
        Value::OpaqueType(_) => None,
    }
}
