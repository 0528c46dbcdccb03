//! GatherElements: an index for each element of the output.

use super::elements::Word;
use super::narrow::{BLOCK, narrow};
use super::{Bounds, Index};
use crate::positions::{self, Dim, Dims, Rows};
use crate::{Resources, Stopped, parallel, volume};

/// The shapes and the axis of a GatherElements.
#[derive(Debug, Clone, Copy)]
pub struct Grid<'a> {
    /// The shape of `data`.
    pub data: &'a [usize],
    /// The shape of `indices` and of the output.
    pub indices: &'a [usize],
    /// The axis that the indices refer to.
    pub axis: usize,
}

/// Minimum length of a row that is worth a block.
const SHORT: usize = 32;

/// How a row of indices reads `data`: `data[base + entry * stride + k * step]`.
#[derive(Debug, Clone, Copy)]
struct Row {
    base: usize,
    stride: usize,
    step: usize,
}

/// The dimensions of the indices, with the steps of `data`: 0 along the axis.
fn dims(grid: &Grid<'_>) -> Dims<1> {
    let (mut dims, mut stride) = (Dims::new(), 1usize);
    for (d, (&held, &size)) in grid.data.iter().zip(grid.indices).enumerate().rev() {
        positions::add(&mut dims, size, [if d == grid.axis { 0 } else { stride }]);
        stride = stride.saturating_mul(held);
    }
    dims
}

/// `out[i, j, k] = data[i, indices[i, j, k], k]`
pub(super) fn gather<T: Word, I: Index>(
    data: &[u8],
    grid: &Grid<'_>,
    indices: &[I],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    let axis = Bounds { size: grid.data.get(grid.axis).copied().unwrap_or(0), negative: true };
    let stride = volume(1, grid.data.iter().skip(grid.axis + 1));
    let dims = dims(grid);
    let Dim { size, steps: [step] } = positions::innermost(&dims);
    parallel::split(out, size_of::<T>(), resources, |first, out| {
        let indices = indices.get(first..).ok_or(Stopped::OutOfRange)?;
        let walk = Rows::new(&dims, first);
        let at = |base| Row { base, stride, step };
        if size < SHORT {
            return each_row::<T, I>(walk, indices, out, |base, indices, out| {
                one_by_one::<T, I>(data, axis, at(base), indices, out)
            });
        }
        let mut entries = [0; BLOCK];
        each_row::<T, I>(walk, indices, out, |base, indices, out| {
            one_row::<T, I>(data, axis, at(base), indices, out, &mut entries)
        })
    })
}

/// Calls `copy` for each row, or the part of it in `out`, with its start in `data`.
#[inline(always)]
fn each_row<T: Word, I: Index>(
    mut walk: Rows<'_, 1>,
    mut indices: &[I],
    mut out: &mut [u8],
    mut copy: impl FnMut(usize, &[I], &mut [u8]) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    while out.len() >= size_of::<T>() {
        let ([base], left) = walk.next();
        let count = left.min(out.len() / size_of::<T>());
        let (now, rest) = out.split_at_mut(count * size_of::<T>());
        let (some, others) = indices.split_at_checked(count).ok_or(Stopped::OutOfRange)?;
        copy(base, some, now)?;
        (indices, out) = (others, rest);
    }
    Ok(())
}

fn one_row<T: Word, I: Index>(
    data: &[u8],
    axis: Bounds,
    row: Row,
    indices: &[I],
    out: &mut [u8],
    entries: &mut [u32; BLOCK],
) -> Result<(), Stopped> {
    let bytes = size_of::<T>();
    let Row { base, stride, step } = row;
    // The last element that can be read.
    let along = axis.size.saturating_sub(1).saturating_mul(stride);
    let reach = base.saturating_add(along).saturating_add(indices.len().saturating_sub(1) * step);
    if indices.len() < SHORT
        || axis.size > u32::MAX as usize
        || reach.saturating_add(1).saturating_mul(bytes) > data.len()
    {
        return one_by_one::<T, I>(data, axis, row, indices, out);
    }
    for (block, (indices, out)) in indices.chunks(BLOCK).zip(out.chunks_mut(BLOCK * bytes)).enumerate() {
        narrow(indices, axis, entries)?;
        let (Some(entries), true) = (entries.get(..indices.len()), out.len() == indices.len() * bytes) else {
            return Err(Stopped::OutOfRange);
        };
        let (from, to) = (data.as_ptr().cast::<T>(), out.as_mut_ptr().cast::<T>());
        let first = base + block * BLOCK * step;
        // SAFETY: `narrow` checked that each entry is on the axis, so the element is at most the one at `reach`,
        // which is in `data`; `k` is in `out`. Words are plain bits at any address.
        #[allow(unsafe_code)]
        unsafe {
            if (stride, step) == (1, 0) {
                for (k, &entry) in entries.iter().enumerate() {
                    to.add(k).write_unaligned(from.add(first + entry as usize).read_unaligned());
                }
            } else {
                for (k, &entry) in entries.iter().enumerate() {
                    to.add(k).write_unaligned(from.add(first + entry as usize * stride + k * step).read_unaligned());
                }
            }
        }
    }
    Ok(())
}

/// The plain loop, as a reference for tests and benchmarks.
#[inline(always)]
fn one_by_one<T: Word, I: Index>(
    data: &[u8],
    axis: Bounds,
    row: Row,
    indices: &[I],
    out: &mut [u8],
) -> Result<(), Stopped> {
    let bytes = size_of::<T>();
    for (k, (&index, out)) in indices.iter().zip(out.chunks_exact_mut(bytes)).enumerate() {
        let entry = axis.entry(index).ok_or(Stopped::OutOfRange)?;
        let at = (row.base + entry * row.stride + k * row.step) * bytes;
        let element = data.get(at..at + bytes).ok_or(Stopped::OutOfRange)?;
        out.copy_from_slice(element);
    }
    Ok(())
}
