//! What a graph holds and what was made of it, for people and tools to read.

use super::draft::{By, Draft, DraftBody, DraftNode, Entry, Id};
use super::macs::macs;
use super::passes::Fold;
use super::{Graph, Loading, Scope, infer, passes, plan};
use crate::dtype::DType;
use crate::error::{Error, Result, quote};
use crate::limits::Budget;
use crate::operator::Made;
use crate::schema::Attribute;
use crate::value::{Dim, DimsText, Value, ValueType};

/// A graph as it was read, with what follows for its values.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GraphDetails {
    /// All values; nodes refer to them by place.
    pub values: Vec<ValueDetails>,
    /// The nodes in the order they run, those of called functions included.
    pub nodes: Vec<NodeDetails>,
    /// The places of the inputs, without captured ones.
    pub inputs: Vec<usize>,
    /// The places of the outputs.
    pub outputs: Vec<usize>,
    /// Of a subgraph: the places of values that it reads from the graph around it, here and there.
    pub captured: Vec<(usize, usize)>,
}

/// A value of a graph.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ValueDetails {
    /// Its name; inside a called function that of the function.
    pub name: String,
    /// Where its name is valid; `None` for the model's graph.
    pub scope: Option<Scope>,
    /// Its type, if it is declared or follows.
    pub value_type: Option<ValueType>,
    /// The shape of a tensor, if it follows where no size is 0; else as declared.
    pub shape: Option<Vec<Dim>>,
    /// Where it comes from.
    pub origin: Origin,
    /// The value, if it is the same in every run. It shares the model's memory.
    pub constant: Option<Value>,
    /// The default of an input that need not be fed.
    pub default: Option<Value>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nothing produces it: the model is at fault.
    Nothing,
    /// An input of the graph.
    Input,
    /// An initializer.
    Initializer,
    /// The node at this place.
    Node(usize),
}

/// A node of a graph.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeDetails {
    /// Its position in its graph or function, from 0.
    pub index: usize,
    /// Its name; empty if it has none.
    pub name: String,
    /// Its operator.
    pub operator: String,
    /// The operator's domain; empty for `ai.onnx`.
    pub domain: String,
    /// The version (`since_version`) of the operator that applies, if the operator is known.
    pub version: Option<i64>,
    /// The calls of model functions around it, outermost first, as errors show them.
    pub function: Option<String>,
    /// The places of its inputs; `None` for an omitted one.
    pub inputs: Vec<Option<usize>>,
    /// The places of its outputs; `None` for one without a name.
    pub outputs: Vec<Option<usize>>,
    /// The attributes that are given, without graphs.
    pub attributes: Vec<(String, Attribute)>,
    /// Its subgraphs, by attribute.
    pub bodies: Vec<(String, GraphDetails)>,
    /// What becomes of it.
    pub fate: Fate,
    /// Multiply-accumulate operations, if the shapes that matter are known: see [`macs`].
    pub macs: Option<u64>,
}

/// What becomes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fate {
    /// It runs, or would if the model had no faults.
    Runs,
    /// Its operator is unknown, or not implemented.
    Missing,
    /// Its outputs are computed at load.
    Computed,
    /// It returns an input unchanged: its readers read that.
    Forwarded,
    /// Nobody reads its outputs.
    Unread,
    /// It runs as a part of a later node, which runs.
    Fused,
}

/// The memory that a run takes for values between nodes, without inputs and constants. Memory that nodes overwrite or
/// share makes it less, scratch memory of nodes makes it more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// The number of values that the plan keeps at the same time, at most.
    pub slots: usize,
    /// The greatest number of bytes of values of known shape that are kept at the same time.
    pub peak_bytes: u64,
    /// The place of the node where that is.
    pub peak_node: Option<usize>,
    /// The number of values whose size is not known before a run.
    pub unknown: usize,
}

/// What was found about a draft.
pub(crate) struct Details {
    pub(crate) graph: GraphDetails,
    pub(crate) memory: Option<MemoryPlan>,
    pub(crate) notes: Vec<String>,
    /// Why it can't run.
    pub(crate) error: Option<Error>,
    /// Values whose shape is not the declared one, and nodes that can only fail.
    pub(crate) mismatches: Vec<Error>,
}

impl GraphDetails {
    /// The nodes of the graph and of its subgraphs, in no order that can be relied on.
    pub fn all_nodes(&self) -> impl Iterator<Item = &NodeDetails> {
        let mut open = vec![self];
        std::iter::from_fn(move || {
            let graph = open.pop()?;
            open.extend(graph.nodes.iter().flat_map(|node| &node.bodies).map(|(_, body)| body));
            Some(&graph.nodes)
        })
        .flatten()
    }

    /// No pass drops a node.
    fn all_run(&mut self) {
        for node in &mut self.nodes {
            if matches!(node.fate, Fate::Forwarded | Fate::Unread | Fate::Fused) {
                node.fate = Fate::Runs;
            }
            node.bodies.iter_mut().for_each(|(_, body)| body.all_run());
        }
    }
}

impl ValueDetails {
    /// The size of each dimension, if all are known.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        Dim::sizes(self.shape.as_ref()?)
    }

    /// The number of elements of the tensor, if its shape is known.
    pub fn elements(&self) -> Option<u64> {
        Some(self.sizes()?.iter().fold(1, |count: u64, size| count.saturating_mul(*size as u64)))
    }

    /// The bytes of the tensor, if its shape is known. A string has none.
    pub fn bytes(&self) -> Option<u64> {
        let dtype = self.value_type.as_ref()?.dtype()?;
        let size = if dtype == DType::String { 0 } else { dtype.size() as u64 };
        Some(self.elements()?.saturating_mul(size))
    }
}

impl Graph {
    /// As [`Graph::new`], but also for a draft with faults.
    ///
    /// # Errors
    /// If the details take more memory than is left.
    pub(crate) fn details(mut draft: Draft, optimize: bool, loading: &Loading<'_>) -> Result<Details> {
        let budget = loading.budget;
        draft.faults.shapes = Some(Vec::new());
        let error = infer::infer(&mut draft, &mut optimize.then(|| Fold::new(loading)), loading).err();
        draft.note_nodes(budget)?;
        let mut mismatches = draft.faults.shapes.take().unwrap_or_default();
        find_mismatches(&draft, &mut mismatches);
        let mut graph = details(&mut draft, budget)?;
        if error.is_some() {
            graph.all_run();
            let notes = std::mem::take(&mut draft.notes);
            return Ok(Details { graph, memory: None, notes, error, mismatches });
        }
        if optimize {
            passes::run(&mut draft, loading)?;
            set_fates(&mut graph, &draft);
        } else {
            graph.all_run();
        }
        let mut memory = peak(&draft, &graph);
        let node_count = draft.node_count();
        let planned = plan::plan(draft, node_count);
        memory.slots = planned.slots;
        Ok(Details { graph, memory: Some(memory), notes: planned.notes, error, mismatches })
    }
}

fn details(draft: &mut Draft, budget: &Budget) -> Result<GraphDetails> {
    let mut graph = GraphDetails::default();
    let mut read = vec![false; draft.entries.len()];
    let mut mark = |id: Id| read.get_mut(id.at()).into_iter().for_each(|read| *read = true);
    draft.nodes.iter().flat_map(DraftNode::reads).for_each(&mut mark);
    draft.outputs.iter().for_each(|(_, id)| mark(*id));
    for entry in &draft.entries {
        let dims = entry.fact.likely_dims().or_else(|| entry.declared_dims.clone());
        let rank = dims.as_ref().map_or(0, |dims| dims.len());
        budget.take((size_of::<ValueDetails>() + entry.name.len() + 64 * rank) as u64)?;
        graph.values.push(ValueDetails {
            name: entry.name.to_string(),
            scope: Draft::scope(&draft.scopes, entry),
            value_type: entry.fact.value_type().or(entry.declared.as_ref()).cloned(),
            shape: dims.map(<[Dim]>::into_vec),
            origin: match entry.by {
                By::Nothing => Origin::Nothing,
                By::Input(_) => Origin::Input,
                By::Initializer => Origin::Initializer,
                By::Node { at, .. } => Origin::Node(at as usize),
            },
            constant: entry.fact.value().cloned(),
            default: None,
        });
    }
    for input in &draft.inputs {
        if let Some(value) = graph.values.get_mut(input.id.at()) {
            value.default.clone_from(&input.default);
        }
    }
    let places = |ids: &[Option<Id>]| ids.iter().map(|id| id.map(Id::at)).collect::<Vec<_>>();
    for node in &mut draft.nodes {
        let place = &node.place;
        let names = place.name.len() + place.operator.name.len() + place.operator.domain.len();
        let ids = node.inputs.len() + node.outputs.len();
        budget.take(
            (size_of::<NodeDetails>() + 16 * ids + names + place.function.as_ref().map_or(0, |f| f.len())) as u64,
        )?;
        let mut bodies = Vec::new();
        for DraftBody { attribute, draft, captured, .. } in &mut node.bodies {
            let mut body = details(draft, budget)?;
            let own = body.inputs.len().saturating_sub(captured.len());
            body.captured = body.inputs.split_off(own).into_iter().zip(captured.iter().map(|id| id.at())).collect();
            bodies.push((attribute.clone(), body));
        }
        let is_read = node.outputs.iter().flatten().any(|id| read.get(id.at()) == Some(&true));
        // A node with wrong attributes has no operator, but its version is known.
        let known = place.operator.version.is_some();
        let missing = node.resolved.as_ref().map_or(!known, |resolved| resolved.is_missing());
        let operator = node.operator.as_ref();
        let forwards = operator.is_some_and(|made| made.plain().is_some_and(|plain| plain.forwards().is_some()));
        let constant = |id: &Option<Id>| id.is_none_or(|id| draft.entries.get(id.at()).is_some_and(Entry::is_constant));
        let fate = match operator {
            _ if missing => Fate::Missing,
            None if node.outputs.iter().all(constant) => Fate::Computed,
            Some(_) if forwards && !node.open && is_read => Fate::Forwarded,
            _ => Fate::Unread,
        };
        let (inputs, outputs) = (places(&node.inputs), places(&node.outputs));
        let sizes = |places: &[Option<usize>]| -> Vec<Option<Vec<usize>>> {
            places.iter().map(|place| place.map_or(Some(Vec::new()), |at| graph.values.get(at)?.sizes())).collect()
        };
        let (given, made) = (sizes(&inputs), sizes(&outputs));
        let [given, made] = [&given, &made].map(|sizes| sizes.iter().map(Option::as_deref).collect::<Vec<_>>());
        graph.nodes.push(NodeDetails {
            index: place.index as usize,
            name: place.name.to_string(),
            operator: place.operator.name.to_string(),
            domain: place.operator.domain.to_string(),
            version: place.operator.version,
            function: place.function.as_deref().map(str::to_string),
            macs: macs(&place.operator.name, &given, &made),
            inputs,
            outputs,
            // Passes read them too.
            attributes: node.attributes.clone(),
            bodies,
            fate,
        });
    }
    graph.inputs = draft.inputs.iter().map(|input| input.id.at()).collect();
    graph.outputs = draft.outputs.iter().map(|(_, id)| id.at()).collect();
    Ok(graph)
}

/// The nodes that are left after the passes run; the others keep their fate.
fn set_fates(graph: &mut GraphDetails, draft: &Draft) {
    for node in &draft.nodes {
        let first = node.outputs.iter().flatten().next().and_then(|id| draft.entries.get(id.at()));
        let Some(By::Node { at, .. }) = first.map(|entry| entry.by) else { continue };
        let Some(details) = graph.nodes.get_mut(at as usize) else { continue };
        details.fate = Fate::Runs;
        if matches!(node.operator, Some(Made::Fused(_))) {
            node.bodies.iter().for_each(|body| set_fused(graph, &body.draft));
            continue;
        }
        for ((_, details), body) in details.bodies.iter_mut().zip(&node.bodies) {
            set_fates(details, &body.draft);
        }
    }
}

/// The nodes of a fused one are parts of the last.
fn set_fused(graph: &mut GraphDetails, draft: &Draft) {
    let firsts = draft.nodes.iter().rev().skip(1).filter_map(|node| node.outputs.iter().flatten().next());
    for entry in firsts.filter_map(|id| draft.entries.get(id.at())) {
        if let By::Node { at, .. } = entry.by
            && let Some(details) = graph.nodes.get_mut(at as usize)
        {
            // One that runs has a copy here.
            if details.fate != Fate::Runs {
                details.fate = Fate::Fused;
            }
        }
    }
}

/// Where the most memory is held: values live from their node to the last one that reads them.
fn peak(draft: &Draft, graph: &GraphDetails) -> MemoryPlan {
    let last = plan::last_uses(&draft.entries, &draft.nodes, &draft.outputs);
    let mut memory = MemoryPlan { slots: 0, peak_bytes: 0, peak_node: None, unknown: 0 };
    let (mut held, mut ending) = (0u64, vec![0u64; draft.nodes.len()]);
    for (at, node) in draft.nodes.iter().enumerate() {
        let mut place = None;
        for id in node.outputs.iter().flatten() {
            place = draft.entries.get(id.at()).map(|entry| entry.by);
            let bytes = match graph.values.get(id.at()) {
                Some(value) => value.bytes(),
                // A pass has made it.
                None => draft.entries.get(id.at()).and_then(|entry| entry.fact.bytes()),
            };
            let Some(bytes) = bytes else {
                memory.unknown += 1;
                continue;
            };
            held = held.saturating_add(bytes);
            let end = match last.get(id.at()) {
                Some(plan::LastUse::Node(end)) => *end,
                Some(plan::LastUse::Output) => continue,
                _ => at,
            };
            if let Some(ending) = ending.get_mut(end) {
                *ending = ending.saturating_add(bytes);
            }
        }
        if held > memory.peak_bytes {
            memory.peak_bytes = held;
            memory.peak_node = place.and_then(|by| if let By::Node { at, .. } = by { Some(at as usize) } else { None });
        }
        held = held.saturating_sub(ending.get(at).copied().unwrap_or(0));
    }
    memory
}

/// Maximum number of mismatches that are reported.
const MISMATCHES: usize = 1000;

/// Compares the shapes that follow with the declared ones.
fn find_mismatches(draft: &Draft, found: &mut Vec<Error>) {
    for node in &draft.nodes {
        for entry in node.outputs.iter().filter_map(|id| draft.entries.get((*id)?.at())) {
            if let (Some(dims), Some(declared)) = (entry.fact.dims(), entry.declared_dims.as_deref())
                && found.len() < MISMATCHES
                && !may_be(dims, declared)
            {
                let (name, dims, declared) = (quote(&entry.name), DimsText(dims), DimsText(declared));
                let text = format!("output {name} has shape {dims}, but is declared as {declared}");
                found.push(node.place.fault(&entry.name, text));
            }
        }
        node.bodies.iter().for_each(|body| find_mismatches(&body.draft, found));
    }
}

/// Whether a shape may be the declared one.
fn may_be(dims: &[Dim], declared: &[Dim]) -> bool {
    let same = |(one, other): (&Dim, &Dim)| match (one, other) {
        (Dim::Fixed(one), Dim::Fixed(other)) => one == other,
        _ => true,
    };
    dims.len() == declared.len() && dims.iter().zip(declared).all(same)
}
