//! Puts one node in the place of several. It keeps these: they run if it doesn't fit the inputs, and errors and watches know
//! them.

use super::PassContext;
use crate::error::{Error, Result};
use crate::graph::draft::{By, Draft, DraftBody, DraftInput, DraftNode, Entry, Id, Ids, paid_entry};
use crate::graph::feeds::ValueInfo;
use crate::graph::{NODE_BYTES, Scope};
use crate::operator::{Fused, Made};
use crate::value::Fact;
use smallvec::SmallVec;

/// An operator in the place of nodes.
pub(super) struct Fusion {
    /// Their places, in order. Nobody else reads what they produce, except of the last one.
    pub(super) nodes: SmallVec<[usize; 4]>,
    /// What the operator reads.
    pub(super) inputs: SmallVec<[Id; 4]>,
    pub(super) operator: Box<dyn Fused>,
}

/// Puts operators in the place of nodes of a draft, as far as there is memory; no node is in two of them.
pub(super) fn fuse(draft: &mut Draft, mut fusions: Vec<Fusion>, context: &PassContext<'_>) -> Result<()> {
    fusions.retain(|fusion| context.loading.budget.take(fusion.cost(draft)).is_ok());
    paid(draft, fusions)
}

/// As [`fuse`], all of them, where their [cost](Fusion::cost) is paid.
pub(super) fn paid(draft: &mut Draft, fusions: Vec<Fusion>) -> Result<()> {
    if fusions.is_empty() {
        return Ok(());
    }
    // The nodes stay where they are: others beside them would be too many.
    let mut nodes: Vec<Option<DraftNode>> = std::mem::take(&mut draft.nodes).into_iter().map(Some).collect();
    fusions.into_iter().try_for_each(|fusion| fusion.apply(&mut nodes, draft))?;
    nodes.retain(Option::is_some);
    draft.nodes = nodes.into_iter().map_while(|node| node).collect();
    Ok(())
}

/// Adds to the inputs of a fusion what its nodes read besides from outside, where they run themselves.
pub(super) fn outside(nodes: &[usize], inputs: &mut SmallVec<[Id; 4]>, draft: &Draft) {
    let nodes = || nodes.iter().filter_map(|at| draft.nodes.get(*at));
    for id in nodes().flat_map(|node| node.inputs.iter().flatten()) {
        if !inputs.contains(id) && !nodes().any(|node| node.outputs.contains(&Some(*id))) {
            inputs.push(*id);
        }
    }
}

impl Fusion {
    /// The memory of the new node, and of the values inside.
    pub(super) fn cost(&self, draft: &Draft) -> u64 {
        let places = self.nodes.iter().filter_map(|at| draft.nodes.get(*at));
        let inside = places.clone().flat_map(|node| node.outputs.iter().flatten());
        let entries = inside.chain(&self.inputs).filter_map(|id| draft.entries.get(id.at()));
        let of_parts = places.flat_map(|node| &node.bodies).flat_map(|body| &body.draft.entries);
        let value = |entry: &Entry| 3 * size_of::<Entry>() + size_of::<Scope>() + 64 + entry.name.len();
        (2 * NODE_BYTES + entries.chain(of_parts).map(value).sum::<usize>()) as u64
    }

    /// Puts the operator in the place of the last node, with the others beside it.
    fn apply(self, nodes: &mut [Option<DraftNode>], outer: &Draft) -> Result<()> {
        let Some(last) = self.nodes.last().and_then(|at| nodes.get(*at)?.as_ref()) else { return Ok(()) };
        let mut whole = DraftNode::new(
            last.place.clone(),
            last.resolved.clone(),
            Vec::new(),
            self.inputs.iter().copied().map(Some).collect(),
            last.outputs.clone(),
        );
        whole.known.clone_from(&last.known);
        whole.operator = Some(Made::Fused(self.operator));

        let mut inner = Inner { outer, draft: Draft::default(), ids: SmallVec::new() };
        for (k, id) in self.inputs.iter().enumerate() {
            let (id, name) = (inner.own(*id)?, outer.entries.get(id.at()).map(|entry| entry.name.to_string()));
            if let Some(entry) = inner.draft.entries.get_mut(id.at()) {
                entry.by = By::Input(k as u32);
            }
            let info = ValueInfo { name: name.unwrap_or_default(), value_type: None, shape: None };
            inner.draft.inputs.push(DraftInput { info, id, default: None });
        }
        for mut node in self.nodes.iter().filter_map(|at| nodes.get_mut(*at)?.take()) {
            match node.bodies.pop().filter(|_| matches!(node.operator, Some(Made::Fused(_)))) {
                Some(parts) => inner.parts(&node, parts.draft)?,
                None => {
                    node.inputs = inner.all(&node.inputs)?;
                    node.outputs = inner.all(&node.outputs)?;
                    inner.draft.nodes.push(node);
                }
            }
        }
        for id in whole.outputs.iter().flatten() {
            let id = inner.own(*id)?;
            inner.draft.outputs.push((ValueInfo { name: String::new(), value_type: None, shape: None }, id));
        }
        let (attribute, captured, hidden) = Default::default();
        whole.bodies.push(DraftBody { attribute, draft: inner.draft, captured, hidden });
        if let Some(place) = self.nodes.last().and_then(|at| nodes.get_mut(*at)) {
            *place = Some(whole);
        }
        Ok(())
    }
}

/// The draft of the nodes, whose values have ids of their own.
struct Inner<'a> {
    outer: &'a Draft,
    draft: Draft,
    ids: SmallVec<[(Id, Id); 16]>,
}

impl Inner<'_> {
    fn all(&mut self, ids: &Ids) -> Result<Ids> {
        ids.iter().map(|id| id.map(|id| self.own(id)).transpose()).collect()
    }

    /// The id here of a value of the outer draft.
    fn own(&mut self, id: Id) -> Result<Id> {
        if let Some((_, own)) = self.ids.iter().find(|(outer, _)| *outer == id) {
            return Ok(*own);
        }
        let own = self.copy(id, self.outer)?;
        self.ids.push((id, own));
        Ok(own)
    }

    /// A value like one of another draft.
    fn copy(&mut self, id: Id, of: &Draft) -> Result<Id> {
        let from = of.entries.get(id.at()).ok_or_else(|| Error::bug("a fused node reads no value"))?;
        let mut place = 0;
        if let Some(scope) = Draft::scope(&of.scopes, from) {
            self.draft.scopes.push(scope);
            place = self.draft.scopes.len() as u32;
        }
        let own = paid_entry(&mut self.draft.entries, from.name.clone(), place)?;
        if let Some(entry) = self.draft.entries.get_mut(own.at()) {
            entry.by = from.by;
            entry.fact = Fact::of(from.fact.value_type.clone(), None);
        }
        Ok(own)
    }

    /// Takes the parts of a node that stood for several already.
    fn parts(&mut self, node: &DraftNode, mut parts: Draft) -> Result<()> {
        let mut known: SmallVec<[(Id, Id); 16]> = SmallVec::new();
        let inputs = parts.inputs.iter().map(|input| input.id).zip(&node.inputs);
        for (id, outer) in inputs.chain(parts.outputs.iter().map(|(_, id)| *id).zip(&node.outputs)) {
            if let Some(outer) = outer {
                known.push((id, self.own(*outer)?));
            }
        }
        for mut part in std::mem::take(&mut parts.nodes) {
            for id in part.inputs.iter_mut().chain(&mut part.outputs).flatten() {
                *id = match known.iter().find(|(inner, _)| inner == id) {
                    Some((_, own)) => *own,
                    None => {
                        let own = self.copy(*id, &parts)?;
                        known.push((*id, own));
                        own
                    }
                };
            }
            self.draft.nodes.push(part);
        }
        Ok(())
    }
}
