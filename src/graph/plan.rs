//! From a draft to a graph: every value is an input, a constant or a slot.

use super::draft::{By, Draft, DraftBody, DraftNode, Entry, Id};
use super::feeds::ValueInfo;
use super::scope::Scope;
use super::{Bodies, Body, FusedNodes, Graph, Input, Node, NodeOutput, Output, Runs};
use crate::operator::{Made, Source};
use crate::value::{Dim, Value};
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Plans a draft that has no faults and whose operators are made.
pub(super) fn plan(draft: Draft, node_count: usize) -> Graph {
    // Bodies may nest deeply: a list has all of them, those of a draft one after the other, behind it.
    let mut drafts = vec![(draft, 0)];
    let mut at = 0;
    while let Some((draft, count)) = drafts.get_mut(at) {
        let bodies = draft.nodes.iter_mut().flat_map(|node| &mut node.bodies);
        let bodies: Vec<Draft> = bodies.map(|body| std::mem::take(&mut body.draft)).collect();
        *count = bodies.len();
        drafts.extend(bodies.into_iter().map(|body| (body, 0)));
        at += 1;
    }
    // From the last one on: of those that are planned and not yet in a node, the last ones are the draft's own.
    let mut planned = VecDeque::new();
    while let Some((draft, count)) = drafts.pop() {
        let own = planned.split_off(planned.len().saturating_sub(count));
        if drafts.is_empty() {
            return plan_one(draft, node_count, false, own);
        }
        let nodes = draft.node_count();
        planned.push_front(plan_one(draft, nodes, true, own));
    }
    Graph::default()
}

/// Plans a draft whose bodies are planned. A body has its inputs in its first slots, so that a node may take them at their
/// last use.
fn plan_one(draft: Draft, node_count: usize, body: bool, bodies: VecDeque<Graph>) -> Graph {
    let Draft { mut entries, scopes, nodes, inputs, outputs, fixed, notes, .. } = draft;
    let last_use = last_uses(&entries, &nodes, &outputs);
    let sources = vec![None; entries.len()];
    let (constants, constant_names, free) = Default::default();
    // There are no more inputs than ids, so the number fits.
    let slots = if body { inputs.len() as u32 } else { 0 };
    let mut plan = Plan { last_use, sources, scopes, constants, constant_names, slots, free, body, bodies };
    let nodes = nodes.into_iter().enumerate().filter_map(|(at, node)| plan.node(node, at, &mut entries)).collect();

    let mut symbols = SymbolNumbers::default();
    let mut defaults = Vec::with_capacity(inputs.len());
    let inputs: Vec<Input> = inputs
        .into_iter()
        .map(|input| {
            defaults.push(input.default);
            Input { symbols: symbols.of(&input.info), info: input.info }
        })
        .collect();
    let outputs: Vec<(ValueInfo, Id, Source)> =
        outputs.into_iter().map(|(info, id)| (info, id, plan.source(id, &mut entries))).collect();
    let mut times: HashMap<Source, usize> = HashMap::new();
    outputs.iter().for_each(|(_, _, source)| *times.entry(*source).or_insert(0) += 1);
    let outputs: Vec<Output> = outputs
        .into_iter()
        .map(|(mut info, id, source)| {
            let known = entries.get(id.at()).and_then(|entry| entry.fact.value_type.clone());
            let check = info.value_type.clone().filter(|_| known.is_none());
            let (name, symbols) = (info.name.as_str().into(), symbols.of(&info));
            info.value_type = info.value_type.or(known);
            Output { info, name, source, once: times.get(&source) == Some(&1), check, symbols }
        })
        .collect();
    Graph {
        inputs_by_name: sorted_places(inputs.iter().map(|input| input.info.name.as_str()).collect()),
        outputs_by_name: sorted_places(outputs.iter().map(|output| &*output.name).collect()),
        inputs,
        defaults,
        outputs,
        constants: plan.constants,
        constant_names: plan.constant_names,
        nodes,
        node_count,
        notes,
        slots: plan.slots as usize,
        symbols: symbols.0.len(),
        fixed,
    }
}

/// The last reader of a value.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum LastUse {
    Never,
    /// By the node at this place.
    Node(usize),
    /// By the caller.
    Output,
}

pub(super) fn last_uses(entries: &[Entry], nodes: &[DraftNode], outputs: &[(ValueInfo, Id)]) -> Vec<LastUse> {
    let mut last = vec![LastUse::Never; entries.len()];
    let mut mark = |id: Id, by| {
        if let Some(last) = last.get_mut(id.at()) {
            *last = by;
        }
    };
    for (at, node) in nodes.iter().enumerate() {
        node.reads().for_each(|id| mark(id, LastUse::Node(at)));
    }
    outputs.iter().for_each(|(_, id)| mark(*id, LastUse::Output));
    last
}

struct Plan {
    last_use: Vec<LastUse>,
    /// The source of each value, once it is decided.
    sources: Vec<Option<Source>>,
    scopes: Vec<Scope>,
    constants: Vec<Value>,
    constant_names: Vec<Arc<str>>,
    slots: u32,
    /// Slots that are free again.
    free: Vec<u32>,
    /// Inputs are in slots.
    body: bool,
    /// The planned bodies of the nodes.
    bodies: VecDeque<Graph>,
}

impl Plan {
    /// The source of a value. Constants are numbered on first use.
    fn source(&mut self, id: Id, entries: &mut [Entry]) -> Source {
        let Some(source) = self.sources.get_mut(id.at()) else { return Source::Constant(u32::MAX) };
        *source.get_or_insert_with(|| {
            let entry = entries.get_mut(id.at());
            match entry.as_ref().map(|entry| entry.by) {
                Some(By::Input(k)) if self.body => Source::Slot(k),
                Some(By::Input(k)) => Source::Input(k),
                _ => match entry.and_then(|entry| Some((entry.fact.take_value()?, entry.name.clone()))) {
                    Some((value, name)) => {
                        // There are no more constants than ids, so the number fits.
                        let number = self.constants.len() as u32;
                        self.constants.push(value);
                        self.constant_names.push(name);
                        Source::Constant(number)
                    }
                    None => Source::Constant(u32::MAX),
                },
            }
        })
    }

    fn node(&mut self, node: DraftNode, at: usize, entries: &mut [Entry]) -> Option<Node> {
        let DraftNode { place, resolved, inputs: ids, outputs: produced, operator, bodies, open, known, wide, .. } =
            node;
        let graphs: Vec<Graph> = bodies.iter().filter_map(|_| self.bodies.pop_front()).collect();
        let (resolved, operator) = (resolved?, operator?);
        let captured: SmallVec<[Id; 2]> = bodies.iter().flat_map(|body| &body.captured).copied().collect();
        let operator = match operator {
            Made::Plain(operator) => Runs::Plain(operator),
            Made::Rowwise(operator) => Runs::Plain(operator),
            Made::Product(operator) => Runs::Plain(operator),
            Made::Blockwise(operator) => Runs::Plain(operator),
            Made::Fused(operator) => {
                let nodes = graphs.into_iter().next()?;
                Runs::Fused(Box::new(FusedNodes { operator, nodes }))
            }
            // Its nodes have replaced it, or the model is refused.
            Made::Body(_) | Made::Missing(_) => return None,
            Made::Control(control) => {
                let body = |(DraftBody { attribute, captured, .. }, graph)| {
                    let captured = captured.into_iter().map(|id| self.source(id, entries)).collect();
                    Body { attribute: attribute.into(), graph, captured }
                };
                let bodies = bodies.into_iter().zip(graphs).map(body).collect();
                Runs::Control(Box::new(Bodies { control, bodies }))
            }
        };
        let mut inputs: SmallVec<[Option<Source>; 3]> =
            ids.iter().map(|id| id.map(|id| self.source(id, entries))).collect();
        let mut release = self.released(at, &ids, &captured);
        // The operator may take a value whose last read is here, if it reads it once.
        for (id, source) in ids.iter().zip(&mut inputs) {
            if let (Some(id), Some(Source::Slot(slot))) = (id, *source)
                && self.is_last_use(*id, at)
                && ids.iter().flatten().chain(&captured).filter(|other| *other == id).count() == 1
            {
                *source = Some(Source::Last(slot));
            }
        }
        let mut unread: SmallVec<[u32; 1]> = SmallVec::new();
        let mut outputs = SmallVec::new();
        for (id, known) in produced.iter().zip(known) {
            let slot = id.map(|_| {
                self.free.pop().unwrap_or_else(|| {
                    self.slots += 1;
                    self.slots - 1
                })
            });
            let entry = id.and_then(|id| entries.get(id.at()));
            let name = entry.map_or_else(Arc::default, |entry| entry.name.clone());
            outputs.push(match known {
                Some(known) => NodeOutput { name, slot, value_type: Some(known), declared: false },
                None => {
                    let declared = entry.and_then(|entry| entry.declared.clone());
                    NodeOutput { name, slot, value_type: declared, declared: true }
                }
            });
            let (Some(id), Some(slot)) = (*id, slot) else { continue };
            if let Some(source) = self.sources.get_mut(id.at()) {
                *source = Some(Source::Slot(slot));
            }
            // An output that is never read is dropped at once.
            if self.last_use.get(id.at()) == Some(&LastUse::Never) {
                unread.push(slot);
            }
        }
        release.extend(unread);
        self.free.extend(&release);
        let bits = produced.iter().take(64).enumerate();
        let wanted = bits.fold(0, |wanted, (k, id)| wanted | u64::from(id.is_some()) << k);
        let named = produced.iter().filter_map(|id| entries.get((*id)?.at())).filter(|entry| !entry.name.is_empty());
        let mut scopes: Vec<Option<Scope>> = named.map(|entry| Draft::scope(&self.scopes, entry)).collect();
        if scopes.iter().all(Option::is_none) {
            scopes = Vec::new();
        }
        let scopes = scopes.into_boxed_slice();
        Some(Node { place, resolved, operator, inputs, outputs, scopes, wanted, release, open, wide })
    }

    /// The slots of values that the node at a place is the last to read, as an input or in a body.
    fn released(&self, at: usize, inputs: &[Option<Id>], captured: &[Id]) -> SmallVec<[u32; 2]> {
        let mut released = SmallVec::new();
        for id in inputs.iter().flatten().chain(captured).filter(|id| self.is_last_use(**id, at)) {
            if let Some(Some(Source::Slot(slot))) = self.sources.get(id.at())
                && !released.contains(slot)
            {
                released.push(*slot);
            }
        }
        released
    }

    fn is_last_use(&self, id: Id, at: usize) -> bool {
        self.last_use.get(id.at()) == Some(&LastUse::Node(at))
    }
}

/// The numbers of the symbols in declared shapes.
#[derive(Default)]
struct SymbolNumbers(HashMap<String, usize>);

impl SymbolNumbers {
    fn of(&mut self, info: &ValueInfo) -> SmallVec<[Option<usize>; 4]> {
        let mut number = |dim: &Dim| match dim {
            Dim::Symbol(name) => {
                let next = self.0.len();
                Some(*self.0.entry(name.clone()).or_insert(next))
            }
            _ => None,
        };
        info.shape.iter().flatten().map(&mut number).collect()
    }
}

/// The places of names, sorted by name and then by place.
fn sorted_places(names: Vec<&str>) -> Vec<usize> {
    let mut places: Vec<usize> = (0..names.len()).collect();
    places.sort_by_key(|&k| names.get(k));
    places
}
