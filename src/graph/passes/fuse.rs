//! One node in the place of several, which it keeps: they run if it doesn't fit, and errors and watches know them.

use super::PassContext;
use crate::error::Result;
use crate::graph::NODE_BYTES;
use crate::graph::draft::{By, Draft, DraftBody, DraftInput, DraftNode, Entry, Id, Ids, new_entry};
use crate::graph::feeds::ValueInfo;
use crate::limits::Budget;
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

/// Puts operators in the place of nodes of a draft; no node is in two of them.
pub(super) fn fuse(draft: &mut Draft, fusions: Vec<Fusion>, context: &PassContext<'_>) -> Result<()> {
    let mut nodes: Vec<Option<DraftNode>> = std::mem::take(&mut draft.nodes).into_iter().map(Some).collect();
    for Fusion { nodes: places, inputs, operator } in fusions {
        let parts = places.iter().filter_map(|at| nodes.get_mut(*at)?.take()).collect();
        let whole = whole(parts, &inputs, operator, draft, context.loading.budget)?;
        if let Some(place) = places.last().and_then(|at| nodes.get_mut(*at)) {
            *place = whole;
        }
    }
    draft.nodes = nodes.into_iter().flatten().collect();
    Ok(())
}

/// The node in the place of `nodes`, of which the last one's outputs are needed.
fn whole(
    nodes: Vec<DraftNode>,
    inputs: &[Id],
    operator: Box<dyn Fused>,
    outer: &Draft,
    budget: &Budget,
) -> Result<Option<DraftNode>> {
    let Draft { entries, scopes, .. } = outer;
    let Some(last) = nodes.last() else { return Ok(None) };
    budget.take(NODE_BYTES as u64)?;
    let mut whole = DraftNode::new(
        last.place.clone(),
        last.resolved.clone(),
        Vec::new(),
        inputs.iter().copied().map(Some).collect(),
        last.outputs.clone(),
    );
    whole.known.clone_from(&last.known);
    whole.operator = Some(Made::Fused(operator));

    let mut inner = Inner { draft: Draft { scopes: scopes.clone(), ..Draft::default() }, ids: SmallVec::new() };
    budget.take(size_of_val(&**scopes) as u64)?;
    for (k, id) in inputs.iter().enumerate() {
        let (id, name) = inner.value(*id, By::Input(k as u32), entries, budget)?;
        let info = ValueInfo { name, value_type: None, shape: None };
        inner.draft.inputs.push(DraftInput { info, id, default: None });
    }
    let outputs = last.outputs.clone();
    for mut node in nodes {
        let mut own = |ids: &Ids| -> Result<Ids> {
            let own = |id: &Option<Id>| id.map(|id| inner.own(id, entries, budget)).transpose();
            ids.iter().map(own).collect()
        };
        (node.inputs, node.outputs) = (own(&node.inputs)?, own(&node.outputs)?);
        inner.draft.nodes.push(node);
    }
    for id in outputs.iter().flatten() {
        let id = inner.own(*id, entries, budget)?;
        inner.draft.outputs.push((ValueInfo { name: String::new(), value_type: None, shape: None }, id));
    }
    let (attribute, captured, hidden) = Default::default();
    whole.bodies.push(DraftBody { attribute, draft: inner.draft, captured, hidden });
    Ok(Some(whole))
}

/// The draft of the nodes, whose values have ids of their own.
struct Inner {
    draft: Draft,
    ids: SmallVec<[(Id, Id); 16]>,
}

impl Inner {
    fn own(&mut self, id: Id, entries: &[Entry], budget: &Budget) -> Result<Id> {
        match self.ids.iter().find(|(outer, _)| *outer == id) {
            Some((_, own)) => Ok(*own),
            None => {
                let by = entries.get(id.at()).map_or(By::Nothing, |entry| entry.by);
                Ok(self.value(id, by, entries, budget)?.0)
            }
        }
    }

    /// A value of the outer draft: its id here, and its name.
    fn value(&mut self, id: Id, by: By, entries: &[Entry], budget: &Budget) -> Result<(Id, String)> {
        let Some(outer) = entries.get(id.at()) else { return Ok((id, String::new())) };
        let own = new_entry(&mut self.draft.entries, outer.name.clone(), outer.scope, budget)?;
        if let Some(entry) = self.draft.entries.get_mut(own.at()) {
            entry.by = by;
            entry.fact = Fact::of(outer.fact.value_type.clone(), None);
        }
        self.ids.push((id, own));
        Ok((own, outer.name.to_string()))
    }
}
