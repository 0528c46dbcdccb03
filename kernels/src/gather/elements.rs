//! Gather of single elements: the axis is the last one, or all after it have size 1.

use super::narrow::{BLOCK, narrow};
use super::{Bounds, Index, rows};
use crate::cpu::{LINE, fetch};
use crate::{Resources, Stopped, parallel};

/// Elements by size: only bits move. Reads and writes need no alignment.
pub(super) trait Word: Copy + Sync {}
impl Word for u8 {}
impl Word for u16 {}
impl Word for u32 {}
impl Word for u64 {}
impl Word for u128 {}

/// `out[o, k] = data[o, indices[k]]`
pub(super) fn gather<T: Word, I: Index>(
    data: &[u8],
    axis: Bounds,
    indices: &[I],
    out: &mut [u8],
    scratch: &mut [u32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (size, n) = (size_of::<T>(), indices.len());
    if axis.size > u32::MAX as usize {
        // Too large for the blocks below.
        return rows::gather(data, axis, size, indices, out, resources);
    }
    if out.len() == n * size {
        return parallel::split(out, size, resources, |first, out| {
            // Not `size`: a captured variable is not a constant to the compiler.
            let count = out.len() / size_of::<T>();
            let indices = indices.get(first..first + count).ok_or(Stopped::OutOfRange)?;
            checked::<T, I>(data, axis, indices, out)
        });
    }
    // Many rows share the indices: check them once.
    let entries = &*narrowed(indices, axis, scratch, resources)?;
    parallel::split(out, size, resources, |first, mut out| {
        let (mut outer, mut k) = (first / n, first % n);
        while out.len() >= size_of::<T>() {
            let count = (n - k).min(out.len() / size_of::<T>());
            let (now, rest) = out.split_at_mut(count * size_of::<T>());
            let (Some(data), Some(entries)) = (data.get(outer * axis.size * size..), entries.get(k..k + count)) else {
                return Err(Stopped::OutOfRange);
            };
            pick::<T>(data, axis.size, entries, now);
            (out, outer, k) = (rest, outer + 1, 0);
        }
        Ok(())
    })
}

/// Checks each index once and copies.
fn checked<T: Word, I: Index>(data: &[u8], axis: Bounds, indices: &[I], out: &mut [u8]) -> Result<(), Stopped> {
    let size = size_of::<T>();
    if indices.len() < 32 {
        return one_by_one(data, axis, size, indices, out);
    }
    let mut entries = [0; BLOCK];
    for (indices, out) in indices.chunks(BLOCK).zip(out.chunks_mut(BLOCK * size)) {
        narrow(indices, axis, &mut entries)?;
        // The next ones come while elements are picked, which are anywhere: processors don't expect them. A line brings the
        // one beside it.
        for next in indices.chunks(2 * LINE / size_of::<I>()) {
            fetch::<false, _>(next.as_ptr().wrapping_add(BLOCK));
        }
        let entries = entries.get(..indices.len()).ok_or(Stopped::OutOfRange)?;
        pick::<T>(data, axis.size, entries, out);
    }
    Ok(())
}

/// The plain loop, as a reference for tests and benchmarks.
#[inline(always)]
pub(super) fn one_by_one<I: Index>(
    data: &[u8],
    axis: Bounds,
    size: usize,
    indices: &[I],
    out: &mut [u8],
) -> Result<(), Stopped> {
    for (&index, out) in indices.iter().zip(out.chunks_exact_mut(size)) {
        let entry = axis.entry(index).ok_or(Stopped::OutOfRange)?;
        let element = data.get(entry * size..(entry + 1) * size).ok_or(Stopped::OutOfRange)?;
        out.copy_from_slice(element);
    }
    Ok(())
}

/// Checks and narrows all indices.
fn narrowed<'a, I: Index>(
    indices: &[I],
    axis: Bounds,
    scratch: &'a mut [u32],
    resources: Resources<'_>,
) -> Result<&'a mut [u32], Stopped> {
    let entries = scratch.get_mut(..indices.len()).ok_or(Stopped::Misfit)?;
    let (mut lookout, mut rest) = (resources.lookout(), &mut *entries);
    for block in lookout.blocks(indices) {
        let block = block?;
        let (now, others) = rest.split_at_mut_checked(block.len()).ok_or(Stopped::Misfit)?;
        for (entry, &index) in now.iter_mut().zip(block) {
            let checked = axis.entry(index).and_then(|entry| u32::try_from(entry).ok());
            *entry = checked.ok_or(Stopped::OutOfRange)?;
        }
        rest = others;
    }
    Ok(entries)
}

/// `out[k] = data[entries[k]]`. Each entry is below `size`, the number of elements of `data`.
///
/// Not compiled for higher levels: their gather instructions are slower than single loads.
#[inline]
fn pick<T: Word>(data: &[u8], size: usize, entries: &[u32], out: &mut [u8]) {
    let bytes = size_of::<T>();
    if data.len() < size * bytes || out.len() < entries.len() * bytes {
        return;
    }
    let (from, to) = (data.as_ptr().cast::<T>(), out.as_mut_ptr().cast::<T>());
    for (k, &entry) in entries.iter().enumerate() {
        debug_assert!((entry as usize) < size);
        // SAFETY: `entry < size`, as `narrow` and `narrowed` checked, and `k < entries.len()`: the lengths compared
        // above keep both in bounds. Words are plain bits at any address.
        #[allow(unsafe_code)]
        unsafe {
            to.add(k).write_unaligned(from.add(entry as usize).read_unaligned());
        }
    }
}
