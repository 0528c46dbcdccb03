//! Infers types and makes operators: node by node, each after the nodes that it reads from.

use super::Loading;
use super::draft::{By, Draft, DraftNode, Entry, Id};
use super::expand;
use super::faults::Faults;
use super::order::{Order, sort};
use super::passes::Fold;
use super::types::{self, Types};
use crate::error::{Error, Kind, Remedy, Result, quote};
use crate::operator::{BodyFacts, Expansion, Inference, Made, Make, Note, Resolver};
use crate::value::{Dim, Fact};
use smallvec::SmallVec;
use std::cell::Cell;

/// Makes the operators and infers each value's type and shape. `fold`, if there is one, computes nodes with constant
/// inputs.
///
/// # Errors
/// All faults of the draft, those of nodes in the order of the nodes.
pub(super) fn infer(draft: &mut Draft, fold: &mut Option<Fold<'_>>, loading: &Loading<'_>) -> Result<()> {
    let order = sort(draft, loading.budget)?;
    let outer = fold.as_mut().map(|fold| fold.begin(draft));
    let Draft { entries, nodes, faults, inputs, .. } = draft;
    for input in inputs {
        let Some(Entry { fact, .. }) = entries.get_mut(input.id.at()) else { continue };
        if fact.dims().is_some_and(|dims| dims.contains(&Dim::Unknown)) {
            own_sizes(fact, loading);
        }
    }
    let (mut unknown, mut expanded) = (Unknown::default(), Vec::new());
    for (at, node) in nodes.iter_mut().enumerate() {
        if order != Order::Sorted {
            unknown.find(at, node, entries, faults);
        }
        if let Some(body) = infer_node(at, node, entries, faults, fold, loading) {
            expanded.push((at, expand(at, node, body, entries, faults, fold, loading)));
        }
    }
    if let (Some(fold), Some(outer)) = (fold.as_mut(), outer) {
        fold.end(outer);
    }
    if !expanded.is_empty() {
        let mut expanded = expanded.into_iter().peekable();
        for (at, node) in std::mem::take(nodes).into_iter().enumerate() {
            match expanded.next_if(|(place, _)| *place == at) {
                Some((_, body)) => nodes.extend(body),
                None => nodes.push(node),
            }
        }
    }
    for (id, reader, error) in unknown.list {
        let error = match entries.get(id.at()).map(|entry| entry.by) {
            // The cycle is reported; nodes in it or after it have no order.
            Some(By::Node { .. }) if order == Order::Cyclic => continue,
            Some(By::Node { index, .. }) => {
                let error = error.and(&format!(" node #{index}, which comes later: nodes must be sorted"));
                error.with_remedy(Remedy::Allow("unsorted_nodes"))
            }
            _ => error.and(" nothing"),
        };
        faults.push_at(Some(reader), error);
    }
    for (info, id) in &draft.outputs {
        let Some(entry) = entries.get(id.at()) else { continue };
        let (name, known) = (quote(&info.name), entry.fact.value_type());
        match (known, &info.value_type, entry.by) {
            (_, _, By::Nothing) => {
                let text = format!("the graph's output {name} is produced by nothing");
                // Reported after the faults of nodes, which may be the cause.
                faults.push_at(Some(usize::MAX), Error::model(text).about(&info.name));
            }
            // Outputs of nodes were checked at their nodes.
            (Some(known), Some(declared), By::Input(_) | By::Initializer) if known != declared => {
                let what = types::what(known);
                let text = format!("the graph's output {name} has {what} {known}, but is declared as {declared}");
                faults.push(Error::model(text).about(&info.name));
            }
            _ => {}
        }
    }
    faults.finish()
}

/// Gives each size that isn't known a formula of its own. What takes too much memory is forgotten.
fn own_sizes(fact: &mut Fact, loading: &Loading<'_>) {
    fact.own_sizes();
    if loading.budget.take(fact.memory()).is_err() {
        *fact = Fact::of(fact.value_type.take(), None);
    }
}

/// What is known about the outputs of a node.
type Facts = SmallVec<[Fact; 1]>;

/// Infers what follows for a node. Gives the body that is to replace it, if there is one.
#[inline]
fn infer_node(
    at: usize,
    node: &mut DraftNode,
    entries: &mut [Entry],
    faults: &mut Faults,
    fold: &mut Option<Fold<'_>>,
    loading: &Loading<'_>,
) -> Option<Expansion> {
    let before = faults.count();
    let mut bodies = Vec::new();
    // The subgraphs of a node that is expanded are those of a node of its body.
    let expands = node.resolved.as_ref().is_some_and(|resolved| matches!(resolved.make, Make::Expand(_)));
    for body in node.bodies.iter_mut().filter(|_| !expands) {
        body.draft.faults.shapes = faults.shapes.take();
        let inner = body.capture(entries, loading.budget).and_then(|()| infer(&mut body.draft, fold, loading));
        faults.shapes = body.draft.faults.shapes.take();
        if let Err(error) = inner {
            faults.push_all(at, error);
        }
        for id in &body.hidden {
            let Some(entry) = entries.get(id.at()).filter(|entry| entry.by != By::Nothing) else { continue };
            let text = format!("the name {} is given twice: in its subgraph, and outside", quote(&entry.name));
            let error = node.place.fault(&entry.name, text).with_remedy(Remedy::Allow("shadowed_names"));
            faults.push_at(Some(at), error);
        }
        bodies.push(body.facts());
    }
    let inferred = match make(node, entries, &bodies, loading.resolver) {
        Ok((types, Ok(mut inferred))) => {
            (node.open, node.known) = (types.open, types.outputs);
            inferred.iter_mut().for_each(|fact| own_sizes(fact, loading));
            inferred
        }
        // The run fails too, if it comes here, and its error has the values.
        Ok((types, Err(error))) => {
            (node.open, node.known) = (types.open, types.outputs);
            faults.shape(|| node.place.locate(error.with_kind(Kind::Model)));
            Facts::new()
        }
        Err(error) => {
            faults.push_at(Some(at), node.place.locate(error));
            Facts::new()
        }
    };
    if let Some(Made::Body(body)) = node.operator.take_if(|made| matches!(made, Made::Body(_) | Made::Missing(_))) {
        return Some(body);
    }
    define_outputs(at, node, inferred, entries, faults);
    // A node at fault is not computed: its inputs may be what its operator never sees.
    if let Some(fold) = fold
        && faults.count() == before
    {
        fold.node(node, entries);
    }
    None
}

/// The nodes of a body, with what follows for them. They may have bodies themselves, as deep as operators are written.
#[cold]
fn expand(
    at: usize,
    node: &mut DraftNode,
    body: Expansion,
    entries: &mut Vec<Entry>,
    faults: &mut Faults,
    fold: &mut Option<Fold<'_>>,
    loading: &Loading<'_>,
) -> Vec<DraftNode> {
    let mut nodes = Vec::new();
    match expand::nodes(body, node, entries, loading.budget) {
        Ok(body) => {
            for mut inner in body {
                match infer_node(at, &mut inner, entries, faults, fold, loading) {
                    Some(body) => nodes.extend(expand(at, &mut inner, body, entries, faults, fold, loading)),
                    None => nodes.push(inner),
                }
            }
        }
        Err(error) => faults.push_at(Some(at), node.place.locate(error)),
    }
    nodes
}

/// Values that a node used before they were defined: the node's place, and the error if they never are.
#[derive(Default)]
struct Unknown {
    list: Vec<(Id, usize, Error)>,
    weight: usize,
}

impl Unknown {
    fn find(&mut self, at: usize, node: &DraftNode, entries: &[Entry], faults: &Faults) {
        for id in node.reads() {
            let Some(entry) = entries.get(id.at()).filter(|entry| entry.by == By::Nothing) else { continue };
            if self.weight < faults.most() {
                let error = node.place.fault(&entry.name, format!("input {} is produced by", quote(&entry.name)));
                self.weight += error.weight() + entry.name.len();
                self.list.push((id, at, error));
            }
        }
    }
}

/// What is known about the inputs of a node.
pub(super) fn facts<'a>(node: &DraftNode, entries: &'a [Entry]) -> SmallVec<[Option<&'a Fact>; 4]> {
    node.inputs.iter().map(|id| entries.get((*id)?.at()).map(|entry| &entry.fact)).collect()
}

/// Checks the node against the schema and makes its operator. Returns the types of its outputs, and what the operator
/// infers for them.
fn make(
    node: &mut DraftNode,
    entries: &[Entry],
    bodies: &[BodyFacts],
    resolver: &dyn Resolver,
) -> Result<(Types, Result<Facts>)> {
    let Some(resolved) = &node.resolved else { return Ok((Types::default(), Ok(Facts::new()))) };
    let schema = &resolved.schema;
    types::check_arity(schema, node.inputs.iter().map(Option::is_some), node.outputs.iter().map(Option::is_some))?;
    let facts = facts(node, entries);
    let given = facts.iter().map(|fact| Some(fact.as_ref()?.value_type.clone()));
    let checked = types::check(schema, given, node.outputs.len());
    let note = Cell::default();
    let view = resolved.node(&node.attributes, &facts, node.outputs.len(), bodies, &note);
    // Faults of attributes come before those of types.
    let operator = resolved.load(&view, resolver)?;
    let types = checked?;
    let mut inference = Inference::new(view);
    let inferred = operator.infer(&mut inference).map(|()| inference.finish());
    let listed = |(k, fact): (usize, &Fact)| match (schema.output(k), &fact.value_type) {
        (Some(output), Some(known)) => output.types.contains(known),
        _ => true,
    };
    let listed = inferred.iter().flatten().enumerate().all(listed);
    node.note = note.get().or((!listed).then_some(Note::OutputType));
    node.operator = Some(operator);
    Ok((types, inferred))
}

/// Defines the node's outputs, with the types that follow from its inputs and what its operator infers.
fn define_outputs(at: usize, node: &mut DraftNode, inferred: Facts, entries: &mut [Entry], faults: &mut Faults) {
    node.known.resize(node.outputs.len(), None);
    let mut inferred = inferred.into_iter();
    for (id, known) in node.outputs.iter().zip(&mut node.known) {
        let mut fact = inferred.next().unwrap_or_default();
        let Some(entry) = id.and_then(|id| entries.get_mut(id.at())) else { continue };
        if known.is_none() {
            *known = fact.value_type.take();
        }
        fact.value_type.clone_from(known);
        if let (Some(known), Some(declared)) = (&fact.value_type, &entry.declared)
            && known != declared
        {
            let (name, what) = (&entry.name, types::what(known));
            let text = format!("output {} has {what} {known}, but is declared as {declared}", quote(name));
            faults.push_at(Some(at), node.place.fault(name, text));
        }
        fact.value_type = fact.value_type.or_else(|| entry.declared.clone());
        // Nodes are fewer than the bytes of their ids.
        if let Err(error) = entry.define(By::Node { at: at as u32, index: node.place.index }, fact) {
            faults.push_at(Some(at), node.place.locate(error));
        }
    }
}
