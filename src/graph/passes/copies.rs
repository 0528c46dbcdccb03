//! Copies nodes, so that a reader has one of its own.

use super::{PassContext, Readers};
use crate::error::Result;
use crate::graph::NODE_BYTES;
use crate::graph::draft::{By, Draft, DraftNode, Entry, Id, new_entry};
use crate::graph::infer;
use crate::operator::Attribute;
use crate::value::Fact;
use std::cell::Cell;

/// Whether a DequantizeLinear node runs for one reader alone.
pub(super) fn is_own(at: usize, draft: &Draft, readers: &Readers) -> bool {
    draft
        .nodes
        .get(at)
        .is_some_and(|node| node.operator.is_some() && node.outputs.iter().flatten().all(|id| readers.count(*id) == 1))
}

/// Gives readers, of which the input `k` comes from a node that others read too or that was computed at load, a copy of it.
pub(super) fn own_sources(
    draft: &mut Draft,
    reads: Vec<(usize, usize, usize)>,
    readers: &Readers,
    context: &PassContext<'_>,
) -> Result<()> {
    let mut copies: Vec<(usize, DraftNode)> = Vec::new();
    for (reader, k, at) in reads {
        if is_own(at, draft, readers) {
            continue;
        }
        let budget = context.loading.budget;
        if budget.take(2 * NODE_BYTES as u64).is_err() {
            break;
        }
        let Some((mut copied, entry)) = copy(at, draft, context) else { continue };
        let id = new_entry(&mut draft.entries, entry.name.clone(), entry.scope, budget)?;
        if let Some(own) = draft.entries.get_mut(id.at()) {
            *own = entry;
        }
        copied.outputs = [Some(id)].into_iter().collect();
        if let Some(input) = draft.nodes.get_mut(reader).and_then(|node| node.inputs.get_mut(k)) {
            *input = Some(id);
        }
        copies.push((reader, copied));
    }
    insert(copies, draft);
    Ok(())
}

/// Puts nodes before those at places.
pub(super) fn insert(mut new: Vec<(usize, DraftNode)>, draft: &mut Draft) {
    if new.is_empty() {
        return;
    }
    new.sort_by_key(|(at, _)| *at);
    let (mut nodes, mut taken) = (std::mem::take(&mut draft.nodes).into_iter(), 0);
    draft.nodes.reserve_exact(nodes.len() + new.len());
    for (at, node) in new {
        draft.nodes.extend(nodes.by_ref().take(at - taken));
        draft.nodes.push(node);
        taken = at;
    }
    draft.nodes.extend(nodes);
}

/// A node of one output again, with the entry of that. It isn't computed at load.
pub(super) fn copy(at: usize, draft: &Draft, context: &PassContext<'_>) -> Option<(DraftNode, Entry)> {
    copy_with(draft.nodes.get(at)?.attributes.clone(), at, draft, context)
}

/// As [`copy`], with other attributes.
pub(super) fn copy_with(
    attributes: Vec<(String, Attribute)>,
    at: usize,
    draft: &Draft,
    context: &PassContext<'_>,
) -> Option<(DraftNode, Entry)> {
    let node = draft.nodes.get(at)?;
    let [Some(output)] = *node.outputs else { return None };
    let (resolved, entry, note) = (node.resolved.clone()?, draft.entries.get(output.at())?, Cell::default());
    let facts = infer::facts(node, &draft.entries);
    let view = resolved.node(&attributes, &facts, 1, &[], &note);
    let made = resolved.load(&view, context.loading.resolver).ok()?;
    let (place, inputs) = (node.place.clone(), node.inputs.clone());
    let mut copied = DraftNode::new(place, Some(resolved), attributes, inputs, Default::default());
    (copied.operator, copied.known) = (Some(made), node.known.clone());
    let fact = Fact::of(entry.fact.value_type.clone(), entry.fact.dims().map(Into::into));
    let (name, scope, by) = (entry.name.clone(), entry.scope, entry.by);
    Some((copied, Entry { name, scope, by, fact, declared: entry.declared.clone(), declared_dims: None }))
}

/// A value beside another one, which is called by its name and by what it is, if that isn't empty.
pub(super) fn beside(id: Id, what: &str, fact: Fact, draft: &mut Draft, context: &PassContext<'_>) -> Result<Id> {
    let found = draft.entries.get(id.at()).map(|entry| (&*entry.name, entry.scope, entry.by));
    let (name, scope, by) = found.unwrap_or(("", 0, By::Nothing));
    // It is no input, nor in the file.
    let by = if let By::Node { .. } = by { by } else { By::Nothing };
    let name = if what.is_empty() { name.to_string() } else { format!("{name} ({what})") };
    let id = new_entry(&mut draft.entries, name.into(), scope, context.loading.budget)?;
    if let Some(entry) = draft.entries.get_mut(id.at()) {
        (entry.by, entry.fact) = (by, fact);
    }
    Ok(id)
}
