//! The nodes that lead to a value.

use crate::failure::Failure;
use crate::options::Loading;
use onnxref::LoadOptions;
use onnxref::inspect::{GraphDetails, NodeDetails, Origin};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The graph of the model whose values were compared.
pub(super) struct Lineage(GraphDetails);

impl Lineage {
    pub(super) fn of(
        loading: &Loading,
        path: &Path,
        change: impl FnOnce(LoadOptions) -> LoadOptions,
    ) -> Result<Lineage, Failure> {
        loading.inspect_as(path, change).map(|inspection| Lineage(inspection.graph))
    }

    /// The node that gives a value.
    pub(super) fn node(&self, value: &str) -> Option<&NodeDetails> {
        self.0.nodes.get(self.place(value)?)
    }

    fn place(&self, value: &str) -> Option<usize> {
        let named = self.0.values.iter().filter(|details| details.name == value);
        named.filter_map(|details| if let Origin::Node(at) = details.origin { Some(at) } else { None }).next()
    }

    /// The names of the values that a node reads.
    pub(super) fn inputs<'a>(&'a self, node: &'a NodeDetails) -> impl Iterator<Item = &'a str> {
        node.inputs.iter().flatten().filter_map(|at| self.0.values.get(*at)).map(|value| value.name.as_str())
    }

    /// The nodes between a value and those values before it that are known to be equal, in the order they run. The node
    /// of the value itself is the last one.
    pub(super) fn before(&self, value: &str, equal: &HashMap<String, bool>) -> Vec<&NodeDetails> {
        let mut places = BTreeSet::new();
        let mut open: Vec<usize> = self.place(value).into_iter().collect();
        while let Some(at) = open.pop() {
            let Some(node) = self.0.nodes.get(at).filter(|_| places.insert(at)) else { continue };
            let unknown = self.inputs(node).filter(|name| equal.get(*name) != Some(&true));
            open.extend(unknown.filter_map(|name| self.place(name)));
        }
        places.into_iter().filter_map(|at| self.0.nodes.get(at)).collect()
    }

    /// The names of the values that a node gives.
    pub(super) fn outputs<'a>(&'a self, node: &'a NodeDetails) -> impl Iterator<Item = &'a str> {
        node.outputs.iter().flatten().filter_map(|at| self.0.values.get(*at)).map(|value| value.name.as_str())
    }
}
