//! Models that are parts of another one.

use crate::path::ValuePath;
use onnxref::document::{Document, Graph, Node, Part, Size, ValueInfo};
use onnxref::inspect::Inspection;
use onnxref::{Value, quote};
use onnxref_view::counted;
use std::collections::{HashMap, HashSet};

/// A model that is tried, with a value for each of its inputs, as far as they are known.
#[derive(Clone)]
pub(super) struct Attempt {
    pub(super) model: Document,
    pub(super) inputs: Vec<(String, Value)>,
}

impl Attempt {
    /// The number of nodes, those of bodies included.
    pub(super) fn nodes(&self) -> usize {
        count(&self.model.graph)
    }
}

/// The number of nodes of a graph and its bodies.
pub(super) fn count(graph: &Graph) -> usize {
    graph.nodes.len() + graph.nodes.iter().flat_map(|node| node.bodies()).map(|body| count(body)).sum::<usize>()
}

/// What is known of the values of a model, those of bodies in their first trip.
#[derive(Default)]
pub(super) struct Known {
    pub(super) values: HashMap<ValuePath, Value>,
    pub(super) types: HashMap<ValuePath, Part<ValueInfo>>,
}

impl Known {
    /// The values of a run, and types that follow; what the model says of its own inputs and outputs stays.
    pub(super) fn new(model: &Document, found: &Inspection, values: HashMap<ValuePath, Value>) -> Known {
        let mut types = HashMap::new();
        let mut open = vec![&found.graph];
        while let Some(graph) = open.pop() {
            open.extend(graph.nodes.iter().flat_map(|node| &node.bodies).map(|(_, body)| body));
            for value in &graph.values {
                let dims: Option<Vec<Size>> = value.shape.as_ref().map(|dims| dims.iter().map(Size::from).collect());
                let path = ValuePath::new(&value.name, value.scope.as_ref(), []);
                if let (Some(value_type), Some(path)) = (&value.value_type, path) {
                    types.insert(path, ValueInfo::new(&value.name, value_type, dims.as_deref()).into());
                }
            }
        }
        let of_run = |(path, value): (&ValuePath, &Value)| Some((path.clone(), declared(&path.name, value)?));
        types.extend(values.iter().filter_map(of_run));
        let own = model.graph.inputs.iter().chain(&model.graph.outputs);
        let own = own.filter(|info| info.value_type.is_some());
        types.extend(own.map(|info| (ValuePath::outermost(&info.name), info.clone())));
        Known { values, types }
    }

    /// The values of the inputs of a model, as far as they are known.
    pub(super) fn inputs(&self, model: &Document) -> Vec<(String, Value)> {
        let value = |name: &String| Some((name.clone(), self.values.get(&ValuePath::outermost(name))?.clone()));
        model.graph.inputs.iter().filter_map(|info| value(&info.name)).collect()
    }
}

/// What a part with all nodes of a graph doesn't have.
pub(super) fn dropped(whole: &Graph, part: &Graph) -> String {
    let kept: HashSet<&str> = part.inputs.iter().map(|info| info.name.as_str()).collect();
    let inputs = whole.inputs.iter().filter(|info| !kept.contains(info.name.as_str()));
    let constants = |graph: &Graph| graph.initializers.len() + graph.sparse_initializers.len();
    let mut all: Vec<String> = inputs.map(|info| format!("input {}", quote(&info.name))).collect();
    let counts = [
        (whole.value_info.len(), "declared type", " (value_info)"),
        (constants(whole).saturating_sub(constants(part)), "initializer", ""),
        (whole.quantization_annotations.len(), "annotation", " (quantization_annotation)"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    all.extend(counts.map(|(count, what, field)| format!("{}{field}", counted(count, what))));
    // Of these it isn't known what is dropped.
    let rest = "outputs, functions, texts or metadata";
    if all.is_empty() { rest.to_string() } else { format!("{}, or {rest}", all.join(", ")) }
}

/// A value as a model declares it, with the type and the shape that it has.
pub(super) fn declared(name: &str, value: &Value) -> Option<Part<ValueInfo>> {
    let size = |size: &usize| Size::Fixed(i64::try_from(*size).unwrap_or(i64::MAX));
    let shape: Option<Vec<Size>> = value.tensor().ok().map(|tensor| tensor.shape().iter().map(size).collect());
    Some(ValueInfo::new(name, &value.value_type()?, shape.as_deref()).into())
}

/// The model to be reduced.
pub(super) struct Source<'a> {
    /// Without its graph.
    shell: Document,
    graph: Graph,
    /// What each node and its bodies read.
    reads: Vec<Vec<String>>,
    known: &'a Known,
}

impl<'a> Source<'a> {
    pub(super) fn new(mut model: Document, known: &'a Known) -> Source<'a> {
        let graph = std::mem::take(&mut *model.graph);
        let reads = graph.nodes.iter().map(|node| reads(node)).collect();
        Source { shell: model, graph, reads, known }
    }

    pub(super) fn node_count(&self) -> usize {
        self.graph.nodes.len()
    }

    pub(super) fn outputs(&self) -> Vec<String> {
        self.graph.outputs.iter().map(|info| info.name.clone()).collect()
    }

    /// The model of some nodes. What they read from others becomes an input; what no other one reads, an output, and so do
    /// those of the model's outputs that are wanted. `None` if a type isn't known, or nothing is computed.
    pub(super) fn part(&self, kept: &[bool], outputs: &HashSet<String>) -> Option<Attempt> {
        let all = self.graph.nodes.iter().zip(&self.reads).zip(kept);
        let nodes: Vec<(&Part<Node>, &Vec<String>)> = all.filter(|(_, kept)| **kept).map(|(node, _)| node).collect();
        let given: HashSet<&str> = nodes.iter().flat_map(|(node, _)| &node.outputs).map(String::as_str).collect();
        let read: HashSet<&str> = nodes.iter().flat_map(|(_, reads)| *reads).map(String::as_str).collect();
        let mut graph = Graph::new(&self.graph.name);
        let constants = self.graph.initializers.iter().filter(|tensor| read.contains(tensor.name.as_str()));
        graph.initializers = constants.cloned().collect();
        let sparse = self.graph.sparse_initializers.iter().filter(|tensor| read.contains(tensor.name()));
        graph.sparse_initializers = sparse.cloned().collect();
        let constants: HashSet<&str> = graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
        let sparse: HashSet<&str> = graph.sparse_initializers.iter().map(|tensor| tensor.name()).collect();
        let (mut inputs, mut seen) = (Vec::new(), HashSet::new());
        // The model's own inputs in their order, then cut values in theirs.
        let own = self.graph.inputs.iter().map(|info| info.name.as_str());
        let cut = nodes.iter().flat_map(|(_, reads)| *reads).map(String::as_str);
        for name in own.filter(|name| read.contains(name)).chain(cut) {
            let is_own = self.graph.inputs.iter().any(|info| info.name == name);
            let constant = (constants.contains(name) && !is_own) || sparse.contains(name);
            if given.contains(name) || constant || !seen.insert(name) {
                continue;
            }
            let path = ValuePath::outermost(name);
            graph.inputs.push(self.known.types.get(&path)?.clone());
            inputs.extend(self.known.values.get(&path).map(|value| (name.to_string(), value.clone())));
        }
        let mut named: HashSet<&str> = HashSet::new();
        let wanted = |name: &&str| !name.is_empty() && (!read.contains(name) || outputs.contains(*name));
        for name in nodes.iter().flat_map(|(node, _)| &node.outputs).map(String::as_str).filter(wanted) {
            if named.insert(name) {
                let known = self.known.types.get(&ValuePath::outermost(name));
                graph.outputs.push(known.cloned().unwrap_or_else(|| ValueInfo::untyped(name).into()));
            }
        }
        if graph.outputs.is_empty() {
            return None;
        }
        graph.nodes = nodes.into_iter().map(|(node, _)| node.clone()).collect();
        let mut model = self.shell.clone();
        model.graph = graph.into();
        model.keep_used();
        Some(Attempt { model, inputs })
    }
}

/// The values that a node and its bodies read, each once.
pub(super) fn reads(node: &Node) -> Vec<String> {
    let mut captured: Vec<&str> = node.bodies().flat_map(|body| body.captured()).collect();
    captured.sort_unstable();
    let mut reads: Vec<String> = Vec::new();
    for name in node.inputs.iter().map(String::as_str).chain(captured).filter(|name| !name.is_empty()) {
        if !reads.iter().any(|known| known == name) {
            reads.push(name.to_string());
        }
    }
    reads
}
