//! Sums over a model's nodes, by operator.

use crate::names::plain;
use onnxref::Value;
use onnxref::inspect::{Fate, GraphDetails, NodeDetails, Origin, ValueDetails};
use serde::Serialize;
use std::collections::BTreeMap;

/// Sums over a model's nodes, those of subgraphs included. A node of a subgraph counts once, however often it runs.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Totals {
    /// The number of nodes.
    pub nodes: usize,
    /// Nodes that run, or would if the model had no faults.
    pub running: usize,
    /// Nodes whose operators can't run here.
    pub missing: usize,
    /// Nodes that are computed at load.
    pub computed: usize,
    /// Nodes that return an input unchanged, and aren't run.
    pub forwarded: usize,
    /// Nodes whose outputs nobody reads, and that aren't run.
    pub unread: usize,
    /// The number of nodes that run as parts of later ones.
    pub fused: usize,
    /// Multiply-accumulate operations of the nodes that aren't computed at load, as far as they are known.
    pub macs: u64,
    /// The number of nodes whose multiply-accumulate operations are not known.
    pub macs_unknown: usize,
    /// The number of initializers.
    pub parameters: usize,
    /// The number of their elements.
    pub parameter_elements: u64,
    /// The number of their bytes.
    pub parameter_bytes: u64,
    /// The number of initializers whose data can't be read.
    pub parameters_unread: usize,
    /// By operator, the most frequent first.
    pub operators: Vec<OperatorTotal>,
}

/// Sums over the nodes of one operator version.
#[derive(Debug, Clone, Serialize)]
pub struct OperatorTotal {
    /// The operator's domain; empty for `ai.onnx`.
    pub domain: String,
    /// Its name.
    pub operator: String,
    /// The version that applies, if the operator is known.
    pub version: Option<i64>,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes that run, or would if the model had no faults.
    pub running: usize,
    /// The number of nodes that can't run here.
    pub missing: usize,
    /// Multiply-accumulate operations of the nodes that aren't computed at load, as far as they are known.
    pub macs: u64,
    /// The number of nodes whose multiply-accumulate operations are not known.
    pub macs_unknown: usize,
    /// Bytes of the outputs of the nodes that run, as far as they are known.
    pub bytes: u64,
    /// The number of outputs of unknown size.
    pub bytes_unknown: usize,
}

impl Totals {
    /// Sums over a graph.
    pub fn new(graph: &GraphDetails) -> Totals {
        let (mut totals, mut operators) = (Totals::default(), BTreeMap::new());
        totals.add(graph, &mut operators);
        totals.operators = operators.into_values().collect();
        totals.operators.sort_by_key(|of| std::cmp::Reverse(of.nodes));
        totals
    }

    fn add<'a>(&mut self, graph: &'a GraphDetails, operators: &mut BTreeMap<Key<'a>, OperatorTotal>) {
        for value in graph.values.iter().filter(|value| value.origin == Origin::Initializer) {
            self.parameters += 1;
            // Of data that can't be read, the size is declared.
            let declared = || (value.elements().unwrap_or(0), value.bytes().unwrap_or(0));
            let size = value.constant.as_ref().map(|constant| (elements(constant), bytes(constant)));
            let (elements, bytes) = size.unwrap_or_else(declared);
            self.parameter_elements = self.parameter_elements.saturating_add(elements);
            self.parameter_bytes = self.parameter_bytes.saturating_add(bytes);
            self.parameters_unread += usize::from(value.constant.is_none());
        }
        for node in &graph.nodes {
            self.nodes += 1;
            *match node.fate {
                Fate::Missing => &mut self.missing,
                Fate::Computed => &mut self.computed,
                Fate::Forwarded => &mut self.forwarded,
                Fate::Unread => &mut self.unread,
                Fate::Fused => &mut self.fused,
                _ => &mut self.running,
            } += 1;
            let key = (node.operator.as_str(), node.domain.as_str(), node.version);
            let total = operators.entry(key).or_insert_with(|| OperatorTotal::new(node));
            total.add(graph, node);
            if node.fate != Fate::Computed {
                self.macs = self.macs.saturating_add(node.macs.unwrap_or(0));
                self.macs_unknown += usize::from(node.macs.is_none());
            }
            node.bodies.iter().for_each(|(_, body)| self.add(body, operators));
        }
    }
}

type Key<'a> = (&'a str, &'a str, Option<i64>);

impl OperatorTotal {
    fn new(node: &NodeDetails) -> OperatorTotal {
        let (domain, operator, version) = (node.domain.clone(), node.operator.clone(), node.version);
        let (nodes, running, missing, macs, macs_unknown, bytes, bytes_unknown) = Default::default();
        OperatorTotal { domain, operator, version, nodes, running, missing, macs, macs_unknown, bytes, bytes_unknown }
    }

    fn add(&mut self, graph: &GraphDetails, node: &NodeDetails) {
        self.nodes += 1;
        self.running += usize::from(matches!(node.fate, Fate::Runs | Fate::Fused));
        self.missing += usize::from(node.fate == Fate::Missing);
        if node.fate != Fate::Computed {
            self.macs = self.macs.saturating_add(node.macs.unwrap_or(0));
            self.macs_unknown += usize::from(node.macs.is_none());
        }
        if matches!(node.fate, Fate::Runs | Fate::Missing) {
            for value in node.outputs.iter().flatten().filter_map(|at| graph.values.get(*at)) {
                match value.bytes() {
                    Some(bytes) => self.bytes = self.bytes.saturating_add(bytes),
                    None => self.bytes_unknown += 1,
                }
            }
        }
    }

    /// The operator with its domain, unless that is `ai.onnx`, and its version: `com.example.Scale-1`.
    pub fn label(&self) -> String {
        label(&self.domain, &self.operator, self.version)
    }
}

/// An operator with its domain, unless that is `ai.onnx`, and its version: `com.example.Scale-1`.
pub fn label(domain: &str, operator: &str, version: Option<i64>) -> String {
    let domain = if domain.is_empty() { String::new() } else { format!("{}.", plain(domain)) };
    let version = version.map(|version| format!("-{version}")).unwrap_or_default();
    format!("{domain}{}{version}", plain(operator))
}

/// A word for what becomes of a node.
pub fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Missing => "missing",
        Fate::Computed => "computed",
        Fate::Forwarded => "forwarded",
        Fate::Unread => "unread",
        Fate::Fused => "fused",
        _ => "runs",
    }
}

/// A word for where a value comes from.
pub(crate) fn origin(value: &ValueDetails) -> &'static str {
    match value.origin {
        Origin::Input => "input",
        Origin::Initializer => "initializer",
        Origin::Node(_) => "node",
        _ => "nothing",
    }
}

/// The bytes of the tensors of a value: of strings, those of the text.
pub fn bytes(value: &Value) -> u64 {
    match value {
        Value::Tensor(tensor) => match tensor.strings() {
            Ok(strings) => strings.map(|text| text.len() as u64).sum(),
            Err(_) => tensor.bytes().len() as u64,
        },
        Value::Sequence(sequence) => sequence.values().iter().map(bytes).sum(),
        Value::Optional(optional) => optional.get().map_or(0, bytes),
        _ => 0,
    }
}

fn elements(value: &Value) -> u64 {
    value.tensor().map_or(0, |tensor| tensor.len() as u64)
}
