//! Removes nodes whose outputs are never read, except users' operators, which may have side effects.

use super::PassContext;
use crate::error::Result;
use crate::graph::draft::{Draft, Id};

pub(super) fn drop_unread(draft: &mut Draft, _: &PassContext<'_>) -> Result<()> {
    let mut read = vec![false; draft.entries.len()];
    let mark = |read: &mut [bool], id: Id| read.get_mut(id.at()).into_iter().for_each(|read| *read = true);
    draft.outputs.iter().for_each(|(_, id)| mark(&mut read, *id));
    // Readers come after the node: going backwards, all of them are known.
    let mut kept: Vec<bool> = Vec::with_capacity(draft.nodes.len());
    for node in draft.nodes.iter().rev() {
        let custom = node.resolved.as_ref().is_some_and(|resolved| resolved.is_custom());
        let is_read = node.outputs.iter().flatten().any(|id| read.get(id.at()) == Some(&true));
        let needed = node.operator.is_some() && (is_read || custom);
        if needed {
            node.reads().for_each(|id| mark(&mut read, id));
        }
        kept.push(needed);
    }
    let mut kept = kept.into_iter().rev();
    draft.nodes.retain(|_| kept.next().unwrap_or(true));
    Ok(())
}
