//! A model's graph: read as a [`Draft`], changed by passes, planned once, run often.

mod details;
mod draft;
mod expand;
mod faults;
mod feeds;
mod frames;
mod infer;
mod macs;
mod names;
mod order;
mod passes;
mod plan;
mod run;
mod scope;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod types;
mod watch;

pub(crate) use details::Details;
pub use details::{Fate, GraphDetails, MemoryPlan, NodeDetails, Origin, ValueDetails};
pub(crate) use draft::{Draft, DraftBody, Id, Ids, NodePlace};
pub use feeds::ValueInfo;
pub use macs::macs;
pub(crate) use names::Names;
pub(crate) use run::Slots;
pub use scope::Scope;
pub(crate) use watch::Watching;
use watch::Wide;
pub use watch::{NodeInfo, Watch};

use crate::error::Result;
use crate::limits::{Budget, Limits};
use crate::operator::{Control, Fused, Operator, Resolved, Resolver, Source};
use crate::value::{Value, ValueType};
use smallvec::SmallVec;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) info: ValueInfo,
    /// For each dimension of the declared shape: the number of its symbol, if it is one.
    symbols: SmallVec<[Option<usize>; 4]>,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) info: ValueInfo,
    /// The name again: runs share it.
    pub(crate) name: Arc<str>,
    /// The declared type, if the output isn't known to have it.
    check: Option<ValueType>,
    /// As of an input.
    symbols: SmallVec<[Option<usize>; 4]>,
    source: Source,
    /// Whether no other output has the same source.
    once: bool,
}

#[derive(Debug)]
struct Node {
    place: NodePlace,
    resolved: Arc<Resolved>,
    operator: Runs,
    inputs: SmallVec<[Option<Source>; 3]>,
    outputs: SmallVec<[NodeOutput; 1]>,
    /// The scopes of the outputs that it names; empty if all are of the model's graph.
    scopes: Box<[Option<Scope>]>,
    /// Whether the node names each of the first outputs.
    wanted: u64,
    /// Slots whose values are not needed after this node.
    release: SmallVec<[u32; 2]>,
    /// The type of an input isn't known before a run: the run checks it.
    open: bool,
    wide: Option<Box<Wide>>,
}

/// What a node runs.
#[derive(Debug)]
enum Runs {
    Plain(Arc<dyn Operator>),
    Control(Box<Bodies>),
    Fused(Box<FusedNodes>),
}

/// A fused operator, and the nodes that it stands for.
#[derive(Debug)]
struct FusedNodes {
    operator: Box<dyn Fused>,
    /// Its inputs and outputs are the node's.
    nodes: Graph,
}

/// An operator with bodies, and the graphs of these.
#[derive(Debug)]
struct Bodies {
    control: Box<dyn Control>,
    bodies: Vec<Body>,
}

/// A subgraph of a node.
#[derive(Debug)]
struct Body {
    /// The attribute that it stands in.
    attribute: Box<str>,
    graph: Graph,
    /// The values that it reads from the outer graph: its last inputs.
    captured: Vec<Source>,
}

#[derive(Debug)]
struct NodeOutput {
    name: Arc<str>,
    /// Where the value goes; `None` if the node doesn't name it.
    slot: Option<u32>,
    /// The type, if known before a run; else the declared one.
    value_type: Option<ValueType>,
    /// Whether the type is only declared.
    declared: bool,
}

/// A graph of nodes in the order they run.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) inputs: Vec<Input>,
    /// The inputs' default values: the initializers of the same names.
    pub(crate) defaults: Vec<Option<Value>>,
    pub(crate) outputs: Vec<Output>,
    constants: Vec<Value>,
    /// Their names, for errors.
    constant_names: Vec<Arc<str>>,
    nodes: Vec<Node>,
    /// The number of nodes in the model.
    pub(crate) node_count: usize,
    pub(crate) notes: Vec<String>,
    slots: usize,
    symbols: usize,
    /// Inputs that can't be fed, because their initializer can't be overridden.
    pub(crate) fixed: Vec<String>,
    /// The places of the inputs and of the outputs, in the order of their names.
    inputs_by_name: Vec<usize>,
    outputs_by_name: Vec<usize>,
}

/// Memory of a node while a model is loaded, excluding lists and names.
pub(crate) const NODE_BYTES: usize = size_of::<draft::DraftNode>() + size_of::<Node>() + 64;

/// What loading a graph takes.
#[derive(Clone, Copy)]
pub(crate) struct Loading<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) budget: &'a Budget,
    /// Finds the operators of nodes that no file has.
    pub(crate) resolver: &'a dyn Resolver,
    /// Passes may change bits of sums.
    pub(crate) fast_math: bool,
}

impl Graph {
    /// Infers types, makes operators, runs the passes if enabled, and plans.
    ///
    /// # Errors
    /// All faults of the draft.
    pub(crate) fn new(mut draft: Draft, optimize: bool, loading: &Loading<'_>) -> Result<Graph> {
        let node_count = draft.node_count();
        infer::infer(&mut draft, &mut optimize.then(|| passes::Fold::new(loading)), loading)?;
        draft.note_nodes(loading.budget)?;
        if optimize {
            passes::run(&mut draft, loading)?;
        }
        Ok(plan::plan(draft, node_count))
    }

    /// The place of an input.
    pub(crate) fn input_place(&self, name: &str) -> Option<usize> {
        find_name(&self.inputs_by_name, name, |k| self.inputs.get(k).map(|input| input.info.name.as_str()))
    }

    /// The place of an output.
    pub(crate) fn output_place(&self, name: &str) -> Option<usize> {
        find_name(&self.outputs_by_name, name, |k| self.outputs.get(k).map(|output| &*output.name))
    }
}

/// The first of the places with a name; the places are sorted by name.
fn find_name<'a>(places: &[usize], name: &str, name_of: impl Fn(usize) -> Option<&'a str>) -> Option<usize> {
    let first = places.partition_point(|&k| name_of(k) < Some(name));
    places.get(first).copied().filter(|&k| name_of(k) == Some(name))
}
