//! What is done to a draft before it becomes a graph. No pass changes a bit of any output.

mod drop_unread;
mod fold;
mod forward;

pub(super) use fold::Fold;

use super::draft::Draft;

/// A change to a draft whose types are known.
type Pass = fn(&mut Draft);

/// The passes after [`Fold`], in their order. (Folding is done while operators are made, so that those that read a
/// folded value know it.)
pub(super) const PASSES: &[Pass] = &[forward::forward, drop_unread::drop_unread];
