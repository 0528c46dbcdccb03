//! The nodes that lead to a value.

use crate::failure::Failure;
use crate::options::Loading;
use crate::path::ValuePath;
use onnxref::inspect::{GraphDetails, NodeDetails, Origin, ValueDetails};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// The graphs of the model whose values were compared.
pub(crate) struct Lineage {
    graphs: Vec<Graph>,
    /// The values that nodes give; those of subgraphs by their paths in the first trip.
    places: HashMap<ValuePath, Place>,
}

/// A value or a node: its graph, and its place there.
type Place = (usize, usize);

/// The model's graph, or a subgraph.
struct Graph {
    details: GraphDetails,
    /// The graph around it, and the places of its nodes: of the one in the model's graph, .., of its own one.
    outer: usize,
    around: Vec<usize>,
    /// Of values from the graph around it, their places there.
    captured: HashMap<usize, usize>,
    /// The values that the subgraphs of a node read.
    inner: HashMap<usize, Vec<usize>>,
}

impl Lineage {
    /// Reads the graph.
    pub(crate) fn of(loading: &Loading, path: &Path, optimize: bool) -> Result<Lineage, Failure> {
        let details = loading.inspect_as(path, |options| options.optimize(optimize))?.graph;
        let mut open = vec![(details, 0, Vec::new())];
        let mut lineage = Lineage { graphs: Vec::new(), places: HashMap::new() };
        while let Some((mut details, outer, around)) = open.pop() {
            let own = lineage.graphs.len();
            for (at, value) in details.values.iter().enumerate() {
                if let (Origin::Node(_), Some(path)) = (value.origin, path_of(value, [])) {
                    lineage.places.insert(path, (own, at));
                }
            }
            let mut inner: HashMap<usize, Vec<usize>> = HashMap::new();
            for (at, node) in details.nodes.iter_mut().enumerate() {
                for (_, body) in std::mem::take(&mut node.bodies) {
                    inner.entry(at).or_default().extend(body.captured.iter().map(|(_, outside)| outside));
                    open.push((body, own, [&around[..], &[at]].concat()));
                }
            }
            let captured = details.captured.iter().copied().collect();
            lineage.graphs.push(Graph { details, outer, around, captured, inner });
        }
        Ok(lineage)
    }

    /// The nodes between a value and those values before it that are known to be equal, in the order they run. The node
    /// of the value itself is the last one.
    pub(crate) fn before(&self, value: &ValuePath, equal: &HashMap<ValuePath, bool>) -> Vec<Lead<'_>> {
        let first = value.first_trips();
        let mut open: Vec<Place> = self.places.get(&first).copied().into_iter().collect();
        let (mut seen, mut nodes): (HashSet<Place>, _) = (open.iter().copied().collect(), BTreeMap::new());
        while let Some((own, at)) = open.pop() {
            let Some((graph, details)) = self.graphs.get(own).and_then(|g| Some((g, g.details.values.get(at)?))) else {
                continue;
            };
            let mut reads: Vec<Place> = Vec::new();
            match (details.origin, graph.captured.get(&at)) {
                (Origin::Node(k), _) => {
                    let Some(node) = graph.details.nodes.get(k) else { continue };
                    // A node before those that come after it, those of subgraphs in the place of their node.
                    nodes.insert([&graph.around[..], &[k]].concat(), self.lead(graph, node, value));
                    let inner = graph.inner.get(&k).into_iter().flatten();
                    reads.extend(node.inputs.iter().flatten().chain(inner).map(|at| (own, *at)));
                }
                (_, Some(outside)) => reads.push((graph.outer, *outside)),
                _ => {}
            }
            for (own, at) in reads {
                let details = self.graphs.get(own).and_then(|graph| graph.details.values.get(at));
                let path = details.and_then(|details| path_of(details, value.trips()));
                let is_equal = path.is_some_and(|path| equal.get(&path) == Some(&true));
                if !is_equal && seen.insert((own, at)) {
                    open.push((own, at));
                }
            }
        }
        nodes.into_values().collect()
    }

    /// What the node that gives a value reads, without omitted inputs.
    pub(crate) fn inputs(&self, value: &ValuePath) -> Vec<ValuePath> {
        let place = self.places.get(&value.first_trips());
        let node = place.and_then(|(own, at)| {
            let graph = self.graphs.get(*own)?;
            let Origin::Node(k) = graph.details.values.get(*at)?.origin else { return None };
            Some(self.lead(graph, graph.details.nodes.get(k)?, value))
        });
        node.map(|lead| lead.inputs).unwrap_or_default()
    }

    fn lead<'a>(&self, graph: &'a Graph, node: &'a NodeDetails, value: &ValuePath) -> Lead<'a> {
        let paths = |places: &[Option<usize>]| {
            let details = places.iter().flatten().filter_map(|at| graph.details.values.get(*at));
            details.filter_map(|details| path_of(details, value.trips())).collect()
        };
        Lead { node, inputs: paths(&node.inputs), outputs: paths(&node.outputs) }
    }
}

/// A node that leads to a value.
pub(crate) struct Lead<'a> {
    pub(crate) node: &'a NodeDetails,
    /// What it reads and gives, in the trips of the value.
    pub(crate) inputs: Vec<ValuePath>,
    pub(crate) outputs: Vec<ValuePath>,
}

/// The path of a value, with the trips of the subgraphs around it.
fn path_of(details: &ValueDetails, trips: impl IntoIterator<Item = u64>) -> Option<ValuePath> {
    ValuePath::new(&details.name, details.scope.as_ref(), trips)
}
