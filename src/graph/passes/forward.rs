//! Bypasses nodes that return an input unchanged: their readers read that input instead.

use super::PassContext;
use crate::error::Result;
use crate::graph::draft::{Draft, Id};
use std::collections::HashMap;

pub(super) fn forward(draft: &mut Draft, _: &PassContext<'_>) -> Result<()> {
    let mut instead: HashMap<Id, Id> = HashMap::new();
    for node in &mut draft.nodes {
        let captured = node.bodies.iter_mut().flat_map(|body| &mut body.captured);
        for id in node.inputs.iter_mut().flatten().chain(captured) {
            *id = instead.get(id).copied().unwrap_or(*id);
        }
        let from = node.operator.as_ref().and_then(|operator| operator.plain()?.forwards());
        let from = from.and_then(|k| node.inputs.get(k).copied().flatten());
        if let (Some(from), Some(Some(to))) = (from, node.outputs.first()) {
            // The node does the type check at run time.
            if !node.open {
                instead.insert(*to, from);
            }
        }
    }
    for (_, id) in &mut draft.outputs {
        *id = instead.get(id).copied().unwrap_or(*id);
    }
    Ok(())
}
