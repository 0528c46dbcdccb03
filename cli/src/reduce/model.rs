//! Models that are parts of another one.

use crate::messages;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use crate::record::{Whole, reads};
use onnxref::inspect::{Inspection, ValueDetails};
use onnxref::{Dim, Value};
use std::collections::{HashMap, HashSet};

/// A model that is tried, with a value for each of its inputs, as far as they are known.
#[derive(Clone)]
pub(super) struct Attempt {
    pub(super) model: ModelProto,
    pub(super) inputs: Vec<(String, Value)>,
}

impl Attempt {
    pub(super) fn graph(&self) -> Option<&GraphProto> {
        self.model.graph.as_ref()
    }

    pub(super) fn nodes(&self) -> usize {
        self.graph().map_or(0, |graph| graph.node.len())
    }
}

/// The model to be reduced.
pub(super) struct Source {
    /// Without its graph.
    model: ModelProto,
    graph: GraphProto,
    /// What each node and its subgraphs read.
    reads: Vec<Vec<String>>,
    /// The values of a run, and how they are declared.
    values: HashMap<String, Value>,
    types: HashMap<String, ValueInfoProto>,
}

impl Source {
    pub(super) fn new(whole: Whole, values: HashMap<String, Value>) -> Source {
        let Whole { proto: mut model, found, .. } = whole;
        let graph = model.graph.take().unwrap_or_default();
        let reads = graph.node.iter().map(reads).collect();
        let mut types = declared(&found);
        types.extend(values.iter().map(|(name, value)| (name.clone(), messages::declared(name, value))));
        // What the model says of its own inputs and outputs stays.
        types.extend(graph.input.iter().chain(&graph.output).map(|info| (info.name().to_string(), info.clone())));
        Source { model, graph, reads, values, types }
    }

    pub(super) fn node_count(&self) -> usize {
        self.graph.node.len()
    }

    pub(super) fn outputs(&self) -> Vec<String> {
        self.graph.output.iter().map(|info| info.name().to_string()).collect()
    }

    /// The model of some nodes. What they read from others becomes an input; what no other one reads, an output, and so do
    /// those of the model's outputs that are wanted. `None` if a type isn't known, or nothing is computed.
    pub(super) fn part(&self, kept: &[bool], outputs: &HashSet<String>) -> Option<Attempt> {
        let nodes: Vec<(&NodeProto, &Vec<String>)> = self
            .graph
            .node
            .iter()
            .zip(&self.reads)
            .zip(kept)
            .filter(|(_, kept)| **kept)
            .map(|(node, _)| node)
            .collect();
        let given: HashSet<&str> = nodes.iter().flat_map(|(node, _)| &node.output).map(String::as_str).collect();
        let read: HashSet<&str> = nodes.iter().flat_map(|(_, reads)| *reads).map(String::as_str).collect();
        let sparse = |name: &str| {
            let named = |tensor: &&crate::proto::SparseTensorProto| {
                tensor.values.as_ref().is_some_and(|values| values.name() == name)
            };
            self.graph.sparse_initializer.iter().find(named)
        };
        let mut graph = GraphProto { name: self.graph.name.clone(), ..GraphProto::default() };
        graph.initializer =
            self.graph.initializer.iter().filter(|tensor| read.contains(tensor.name())).cloned().collect();
        graph.sparse_initializer = read.iter().filter_map(|name| sparse(name)).cloned().collect();
        let constants: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name()).collect();
        let (mut inputs, mut seen) = (Vec::new(), HashSet::new());
        // The model's own inputs in their order, then cut values in theirs.
        let own = self.graph.input.iter().map(|info| info.name());
        let cut = nodes.iter().flat_map(|(_, reads)| *reads).map(String::as_str);
        for name in own.filter(|name| read.contains(name)).chain(cut) {
            let is_own = self.graph.input.iter().any(|info| info.name() == name);
            let constant = (constants.contains(name) && !is_own) || sparse(name).is_some();
            if given.contains(name) || constant || !seen.insert(name) {
                continue;
            }
            graph.input.push(self.types.get(name)?.clone());
            inputs.extend(self.values.get(name).map(|value| (name.to_string(), value.clone())));
        }
        let mut named: HashSet<&str> = HashSet::new();
        let wanted = |name: &&str| !name.is_empty() && (!read.contains(name) || outputs.contains(*name));
        for name in nodes.iter().flat_map(|(node, _)| &node.output).map(String::as_str).filter(wanted) {
            if named.insert(name) {
                let unknown = || ValueInfoProto { name: Some(name.to_string()), ..ValueInfoProto::default() };
                graph.output.push(self.types.get(name).cloned().unwrap_or_else(unknown));
            }
        }
        if graph.output.is_empty() {
            return None;
        }
        graph.node = nodes.into_iter().map(|(node, _)| node.clone()).collect();
        let mut model = self.model.clone();
        model.functions = self.functions(&graph.node);
        model.graph = Some(graph);
        Some(Attempt { model, inputs })
    }

    /// The functions that nodes call, also in others and in subgraphs.
    fn functions(&self, nodes: &[NodeProto]) -> Vec<crate::proto::FunctionProto> {
        let (mut found, mut open): (HashSet<usize>, Vec<&NodeProto>) = (HashSet::new(), nodes.iter().collect());
        while let Some(node) = open.pop() {
            open.extend(messages::bodies(node).flat_map(|body| &body.node));
            let called = self.model.functions.iter().position(|function| {
                let same = function.domain() == node.domain() && function.overload() == node.overload();
                same && function.name() == node.op_type()
            });
            if let Some(k) = called.filter(|k| found.insert(*k)) {
                open.extend(self.model.functions.get(k).into_iter().flat_map(|function| &function.node));
            }
        }
        let called = self.model.functions.iter().enumerate().filter(|(k, _)| found.contains(k));
        called.map(|(_, function)| function.clone()).collect()
    }
}

/// The values of the model's graph whose types are known.
fn declared(found: &Inspection) -> HashMap<String, ValueInfoProto> {
    let dim = |dim: &Dim| {
        let value = match dim {
            Dim::Fixed(size) => Some(dimension::Value::DimValue(i64::try_from(*size).unwrap_or(i64::MAX))),
            Dim::Symbol(name) => Some(dimension::Value::DimParam(name.clone())),
            _ => None,
        };
        Dimension { value, ..Dimension::default() }
    };
    let info = |value: &ValueDetails| {
        let dims = value.shape.as_ref().map(|dims| dims.iter().map(dim).collect());
        let of = messages::type_of(value.value_type.as_ref()?, dims);
        Some(ValueInfoProto { name: Some(value.name.clone()), r#type: Some(of), ..ValueInfoProto::default() })
    };
    let values = found.graph.values.iter().filter(|value| value.scope.is_none());
    values.filter_map(|value| Some((value.name.clone(), info(value)?))).collect()
}
