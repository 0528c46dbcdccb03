//! A model that is open, and where its nodes and values are.
//!
//! A node or a value of the model's graph is known by its place; of a subgraph, by the places of the node and of the
//! subgraph before it: `4.0.2` is at place 2 in the first subgraph of the node at place 4.

use onnxref::inspect::{GraphDetails, Inspection, NodeDetails, ValueDetails};
use onnxref::{Error, Model, Value};
use onnxref_view::totals::label;

/// A model with what was found in it. It may have faults, and not run.
pub(crate) struct Opened {
    pub(crate) found: Inspection,
    pub(crate) model: Option<Model>,
    /// The inputs and the outputs of the last run, by name.
    pub(crate) inputs: Vec<(String, Value)>,
    pub(crate) outputs: Vec<(String, Value)>,
}

impl Opened {
    /// The graph and its subgraphs, each with the prefix of the places in it.
    pub(crate) fn graphs(&self) -> Vec<(String, &GraphDetails)> {
        let (mut open, mut graphs) = (vec![(String::new(), &self.found.graph)], Vec::new());
        while let Some((prefix, graph)) = open.pop() {
            for (at, node) in graph.nodes.iter().enumerate() {
                for (k, (_, body)) in node.bodies.iter().enumerate() {
                    open.push((format!("{prefix}{at}.{k}."), body));
                }
            }
            graphs.push((prefix, graph));
        }
        graphs
    }

    /// The graph of a place, its prefix, and the place in it.
    pub(crate) fn locate(&self, place: &str) -> Option<(&GraphDetails, String, usize)> {
        let (mut graph, mut steps) = (&self.found.graph, place.split('.').map(str::parse::<usize>));
        let mut next = || steps.next()?.ok();
        let mut prefix = String::new();
        loop {
            let at = next()?;
            let Some(body) = next() else { return Some((graph, prefix, at)) };
            prefix += &format!("{at}.{body}.");
            graph = &graph.nodes.get(at)?.bodies.get(body)?.1;
        }
    }

    /// The place of the node that an error is about. Errors don't tell one subgraph from another.
    pub(crate) fn blamed(&self, error: &Error) -> Option<String> {
        let place = error.place();
        let is_it = |node: &NodeDetails| {
            Some(node.index) == place.node_index
                && node.function == place.function
                && Some(&node.operator) == place.operator.as_ref()
                && (place.node.is_none() || Some(&node.name) == place.node.as_ref())
        };
        place.node_index?;
        self.graphs()
            .iter()
            .find_map(|(prefix, graph)| graph.nodes.iter().position(is_it).map(|at| format!("{prefix}{at}")))
    }
}

/// The values that a node reads, also in its subgraphs.
pub(crate) fn reads(node: &NodeDetails) -> impl Iterator<Item = usize> {
    let captured = node.bodies.iter().flat_map(|(_, body)| body.captured.iter().map(|(_, outer)| outer));
    node.inputs.iter().flatten().chain(captured).copied()
}

/// The operator with its version, and the node's name.
pub(crate) fn title(node: &NodeDetails) -> String {
    let operator = label(&node.domain, &node.operator, node.version);
    if node.name.is_empty() { operator } else { format!("{operator} {}", crate::print::safe(&node.name)) }
}

/// Whether a value has an element that isn't a number, if that is known.
pub(crate) fn constant_nan(value: &ValueDetails) -> bool {
    let nan = |value: &Value| onnxref_view::statistics::Statistics::of(value, &onnxref::Cancel::new()).ok()??.nan;
    value.constant.as_ref().and_then(nan).is_some_and(|nan| nan > 0)
}
