//! Figures of nodes, and of operators.

use super::report::{Figures, NodeFigures, OperatorFigures};
use onnxref::{NodeInfo, Tensor, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

/// A node with its figures over all runs.
pub(super) struct Node {
    /// The node with the subgraph that it is in.
    parent: Option<usize>,
    place: Place,
    calls: u64,
    /// With the nodes of its subgraphs.
    time: Duration,
    own: Duration,
    macs: u64,
    bytes: u64,
}

/// An owned copy of a [`NodeInfo`].
#[derive(PartialEq, Eq)]
pub(super) struct Place {
    index: usize,
    name: String,
    operator: String,
    domain: String,
    version: i64,
    function: Option<String>,
}

/// The operator of a node, or all those that it stands for.
pub(super) fn operator(info: NodeInfo<'_>) -> Cow<'_, str> {
    match info.parts().len() {
        0 => info.operator.into(),
        _ => info.parts().map(|part| part.operator).collect::<Vec<_>>().join(" + ").into(),
    }
}

impl Node {
    pub(super) fn new(info: NodeInfo<'_>, parent: Option<usize>) -> Node {
        let place = Place {
            index: info.index,
            name: info.name.to_string(),
            operator: operator(info).into_owned(),
            domain: info.domain.to_string(),
            version: info.version,
            function: info.function.map(str::to_string),
        };
        Node { parent, place, calls: 0, time: Duration::ZERO, own: Duration::ZERO, macs: 0, bytes: 0 }
    }

    /// Whether it is this one, at the same position of a graph.
    pub(super) fn is(&self, info: NodeInfo<'_>) -> bool {
        let Place { name, operator, domain, function, .. } = &self.place;
        let own = self::operator(info);
        (&**name, &**operator, &**domain, function.as_deref()) == (info.name, &*own, info.domain, info.function)
    }

    /// Counts a call.
    pub(super) fn count(&mut self, time: Duration, own: Duration, macs: u64, bytes: u64) {
        self.calls += 1;
        self.time += time;
        self.own += own;
        self.macs = self.macs.saturating_add(macs);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Figures of nodes over a number of runs.
#[derive(Default)]
pub(super) struct Tally {
    /// In the order of their first starts.
    pub(super) nodes: Vec<Node>,
    pub(super) runs: u64,
}

impl Tally {
    /// The figures of a run for each node, in the order of their first starts.
    pub(super) fn nodes(&self) -> Vec<NodeFigures> {
        let own = self.own();
        let figures = |node: &Node| NodeFigures {
            name: node.place.name.clone(),
            index: node.place.index,
            operator: node.place.operator.clone(),
            domain: node.place.domain.clone(),
            version: node.place.version,
            function: node.place.function.clone(),
            parent: node.parent,
            figures: self.figures(node, own),
        };
        self.nodes.iter().map(figures).collect()
    }

    /// The figures of a run for each operator, those with most time first.
    pub(super) fn operators(&self) -> Vec<OperatorFigures> {
        let (own, mut places, mut operators) = (self.own(), HashMap::new(), Vec::<OperatorFigures>::new());
        for node in &self.nodes {
            let Place { operator, domain, .. } = &node.place;
            let place = *places.entry((domain, operator)).or_insert(operators.len());
            let figures = self.figures(node, own);
            match operators.get_mut(place) {
                Some(sum) => sum.figures.add(&figures),
                None => operators.push(OperatorFigures { operator: operator.clone(), domain: domain.clone(), figures }),
            }
        }
        operators.sort_by(|a, b| b.figures.own_seconds.total_cmp(&a.figures.own_seconds));
        operators
    }

    /// Time of all nodes.
    fn own(&self) -> Duration {
        self.nodes.iter().map(|node| node.own).sum()
    }

    /// The figures of one run.
    fn figures(&self, node: &Node, own: Duration) -> Figures {
        let runs = self.runs.max(1);
        Figures {
            calls: node.calls / runs,
            seconds: node.time.as_secs_f64() / runs as f64,
            own_seconds: node.own.as_secs_f64() / runs as f64,
            share: if own.is_zero() { 0.0 } else { node.own.as_secs_f64() / own.as_secs_f64() },
            macs: node.macs / runs,
            bytes: node.bytes / runs,
        }
    }
}

/// The bytes of a value's elements; of strings, those of their text.
pub(super) fn bytes(value: &Value) -> u64 {
    let tensor = |tensor: &Tensor| match tensor.strings() {
        Ok(strings) => strings.map(|text| text.len() as u64).sum(),
        Err(_) => tensor.bytes().len() as u64,
    };
    match value {
        Value::Tensor(value) => tensor(value),
        Value::Sequence(sequence) => sequence.values().iter().map(bytes).sum(),
        Value::Optional(optional) => optional.get().map_or(0, bytes),
        Value::Map(map) => tensor(map.keys()) + map.values().iter().map(bytes).sum::<u64>(),
        _ => 0,
    }
}
