//! The nodes that lead to a value.

use crate::failure::Failure;
use crate::options::Loading;
use onnxref::inspect::{GraphDetails, NodeDetails};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The graph of the model whose values were compared.
pub(super) struct Lineage {
    graph: GraphDetails,
    /// The place of the node that gives a value; the first one if several calls of a function have the name.
    places: HashMap<String, usize>,
}

impl Lineage {
    /// Reads the graph.
    pub(super) fn of(loading: &Loading, path: &Path, optimize: bool) -> Result<Lineage, Failure> {
        let graph = loading.inspect_as(path, |options| options.optimize(optimize))?.graph;
        let mut lineage = Lineage { graph, places: HashMap::new() };
        for (place, node) in lineage.graph.nodes.iter().enumerate() {
            for value in names(&lineage.graph, &node.outputs) {
                lineage.places.entry(value.to_string()).or_insert(place);
            }
        }
        Ok(lineage)
    }

    /// The names of the values that a node reads.
    pub(super) fn inputs<'a>(&'a self, node: &'a NodeDetails) -> impl Iterator<Item = &'a str> {
        names(&self.graph, &node.inputs)
    }

    /// The names of the values that a node gives.
    pub(super) fn outputs<'a>(&'a self, node: &'a NodeDetails) -> impl Iterator<Item = &'a str> {
        names(&self.graph, &node.outputs)
    }

    /// The nodes between a value and those values before it that are known to be equal, in the order they run. The node
    /// of the value itself is the last one.
    pub(super) fn before(&self, value: &str, equal: &HashMap<String, bool>) -> Vec<&NodeDetails> {
        let mut places = BTreeSet::new();
        let mut open: Vec<usize> = self.places.get(value).copied().into_iter().collect();
        while let Some(at) = open.pop() {
            let Some(node) = self.graph.nodes.get(at).filter(|_| places.insert(at)) else { continue };
            let unknown = self.inputs(node).filter(|name| equal.get(*name) != Some(&true));
            open.extend(unknown.filter_map(|name| self.places.get(name)));
        }
        places.into_iter().filter_map(|at| self.graph.nodes.get(at)).collect()
    }
}

/// The names of values.
fn names<'a>(graph: &'a GraphDetails, places: &'a [Option<usize>]) -> impl Iterator<Item = &'a str> {
    places.iter().flatten().filter_map(|at| graph.values.get(*at)).map(|value| value.name.as_str())
}
