//! A model without the shapes that it declares, as `tools/export_shapes.py` removes them.

use crate::common::proto::type_proto::Value;
use crate::common::proto::{GraphProto, ModelProto, NodeProto, TensorShapeProto, TypeProto, ValueInfoProto};

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
