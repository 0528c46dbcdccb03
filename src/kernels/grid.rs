//! GatherElements: an index for each element of the output.

use super::elements::Word;
use super::narrow::{BLOCK, narrow};
use super::{Bounds, Index, Means, parallel, volume};
use smallvec::SmallVec;

/// What a GatherElements walks over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid<'a> {
    /// The shape of `data`.
    pub(crate) data: &'a [usize],
    /// The shape of `indices` and of the output.
    pub(crate) indices: &'a [usize],
    /// The axis that the indices are for.
    pub(crate) axis: usize,
}

/// Rows of fewer indices are not worth a block.
const SHORT: usize = 32;

/// How a row of indices reads `data`: `data[base + entry * stride + k * step]`.
#[derive(Debug, Clone, Copy)]
struct Row {
    base: usize,
    stride: usize,
    step: usize,
}

/// A dimension of the indices as loops see it.
#[derive(Debug, Clone, Copy)]
struct Dim {
    size: usize,
    /// Elements of `data` between neighbours; 0 along the axis.
    step: usize,
}

/// The dimensions of the indices, the innermost first. Those with one position are left out, and neighbours through
/// which `data` steps evenly are one.
fn dims(grid: &Grid<'_>) -> SmallVec<[Dim; 4]> {
    let mut dims: SmallVec<[Dim; 4]> = SmallVec::new();
    let mut stride = 1usize;
    for (d, (&held, &size)) in grid.data.iter().zip(grid.indices).enumerate().rev() {
        let step = if d == grid.axis { 0 } else { stride };
        stride = stride.saturating_mul(held);
        match dims.last_mut() {
            _ if size == 1 => {}
            Some(inner) if step == inner.size.saturating_mul(inner.step) => inner.size *= size,
            _ => dims.push(Dim { size, step }),
        }
    }
    dims
}

/// `out[i, j, k] = data[i, indices[i, j, k], k]`
pub(super) fn gather<T: Word, I: Index>(
    data: &[u8],
    grid: &Grid<'_>,
    indices: &[I],
    out: &mut [u8],
    means: Means<'_>,
) -> bool {
    if out.is_empty() {
        return true;
    }
    let axis = Bounds { size: grid.data.get(grid.axis).copied().unwrap_or(0), negative: true };
    let stride = volume(1, grid.data.iter().skip(grid.axis + 1));
    let dims = dims(grid);
    let (row, outer) = dims.split_first().unwrap_or((&Dim { size: 1, step: 0 }, &[]));
    let Dim { size: row, step } = *row;
    if outer.is_empty() {
        return parallel::split(out, size_of::<T>(), means, |first, out| {
            let Some(indices) = indices.get(first..first + out.len() / size_of::<T>()) else { return false };
            one_row::<T, I>(data, axis, Row { base: first * step, stride, step }, indices, out, &mut [0; BLOCK])
        });
    }
    parallel::split(out, row * size_of::<T>(), means, |first, out| {
        // What is captured is no constant.
        let bytes = size_of::<T>();
        let Some(indices) = indices.get(first * row..) else { return false };
        let mut walk = Walk::new(outer, first);
        if row < SHORT {
            return indices.chunks_exact(row).zip(out.chunks_exact_mut(row * bytes)).all(|(indices, out)| {
                one_by_one::<T, I>(data, axis, Row { base: walk.next(), stride, step }, indices, out)
            });
        }
        let mut entries = [0; BLOCK];
        indices.chunks_exact(row).zip(out.chunks_exact_mut(row * bytes)).all(|(indices, out)| {
            let base = walk.next();
            one_row::<T, I>(data, axis, Row { base, stride, step }, indices, out, &mut entries)
        })
    })
}

fn one_row<T: Word, I: Index>(
    data: &[u8],
    axis: Bounds,
    row: Row,
    indices: &[I],
    out: &mut [u8],
    entries: &mut [u32; BLOCK],
) -> bool {
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
        if !narrow(indices, axis, entries) {
            return false;
        }
        let (Some(entries), true) = (entries.get(..indices.len()), out.len() == indices.len() * bytes) else {
            return false;
        };
        let (from, to) = (data.as_ptr().cast::<T>(), out.as_mut_ptr().cast::<T>());
        let first = base + block * BLOCK * step;
        // SAFETY: `narrow` checked that each entry is on the axis, so that the element is at most the one at `reach`,
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
    true
}

/// The plain loop: what the other is measured and tested against.
#[inline(always)]
fn one_by_one<T: Word, I: Index>(data: &[u8], axis: Bounds, row: Row, indices: &[I], out: &mut [u8]) -> bool {
    let bytes = size_of::<T>();
    for (k, (&index, out)) in indices.iter().zip(out.chunks_exact_mut(bytes)).enumerate() {
        let Some(entry) = axis.entry(index) else { return false };
        let at = (row.base + entry * row.stride + k * row.step) * bytes;
        let Some(element) = data.get(at..at + bytes) else { return false };
        out.copy_from_slice(element);
    }
    true
}

/// For one row of indices after the other: where it starts in `data`, with the coordinate along the axis as 0.
struct Walk<'a> {
    outer: &'a [Dim],
    position: SmallVec<[usize; 4]>,
    base: usize,
}

impl<'a> Walk<'a> {
    /// From the row `first` on.
    fn new(outer: &'a [Dim], first: usize) -> Walk<'a> {
        let (mut rest, mut base) = (first, 0);
        let mut position = SmallVec::from_elem(0, outer.len());
        for (at, dim) in position.iter_mut().zip(outer).take_while(|_| first > 0) {
            (*at, rest) = (rest % dim.size, rest / dim.size);
            base += *at * dim.step;
        }
        Walk { outer, position, base }
    }

    fn next(&mut self) -> usize {
        let base = self.base;
        for (at, dim) in self.position.iter_mut().zip(self.outer) {
            *at += 1;
            self.base += dim.step;
            if *at < dim.size {
                break;
            }
            self.base -= dim.size * dim.step;
            *at = 0;
        }
        base
    }
}
