//! Blocks of indices, checked and narrowed before anything is copied by them.

use super::{Bounds, Index};
use crate::Stopped;
use crate::cpu::for_each_level;

/// Number of indices that are checked and narrowed at a time; they fit the first-level cache.
pub(super) const BLOCK: usize = 512;

for_each_level! {
    /// Checks up to [`BLOCK`] indices and narrows them, without a branch for each.
    pub(super) fn narrow<I: Index>(indices: &[I], axis: Bounds, entries: &mut [u32; BLOCK]) -> Result<(), Stopped>
        = narrow_body::<I>;
}

#[inline(always)]
fn narrow_body<I: Index>(indices: &[I], axis: Bounds, entries: &mut [u32; BLOCK]) -> Result<(), Stopped> {
    let last = (axis.size as i64).wrapping_sub(1);
    let mut bad = 0;
    for (entry, &index) in entries.iter_mut().zip(indices) {
        let wrapped = axis.wrapped(index);
        // The sign bit is set if the index is below 0 or beyond the last entry.
        bad |= wrapped | last.wrapping_sub(wrapped);
        *entry = wrapped as u32;
    }
    if bad >= 0 { Ok(()) } else { Err(Stopped::OutOfRange) }
}
