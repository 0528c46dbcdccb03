//! GatherElements: an index for each element of the output.

use super::elements::Word;
use super::narrow::{BLOCK, narrow};
use super::{Bounds, Index, Means, parallel, volume};
use crate::tensor::Shape;

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

/// How a row of indices (all along the last dimension) reads `data`: `data[base + entry * stride + k * step]`.
#[derive(Debug, Clone, Copy)]
struct Row {
    base: usize,
    stride: usize,
    step: usize,
}

/// `out[i, j, k] = data[i, indices[i, j, k], k]`
pub(super) fn gather<T: Word, I: Index>(
    data: &[u8],
    grid: &Grid<'_>,
    indices: &[I],
    out: &mut [u8],
    means: Means<'_>,
) -> bool {
    let bytes = size_of::<T>();
    let Some((&row, outer)) = grid.indices.split_last().filter(|_| !out.is_empty()) else { return true };
    let axis = Bounds { size: grid.data.get(grid.axis).copied().unwrap_or(0), negative: true };
    let stride = volume(1, grid.data.iter().skip(grid.axis + 1));
    // Along the last dimension `data` steps on too, unless that is the axis.
    let step = usize::from(grid.axis != outer.len());
    if outer.iter().all(|&dim| dim == 1) {
        return parallel::split(out, bytes, means, |first, out| {
            let Some(indices) = indices.get(first..first + out.len() / bytes) else { return false };
            one_row::<T, I>(data, axis, Row { base: first * step, stride, step }, indices, out, &mut [0; BLOCK])
        });
    }
    parallel::split(out, row * bytes, means, |first, out| {
        let Some(indices) = indices.get(first * row..) else { return false };
        let mut walk = Walk::new(grid, outer, first);
        if row < SHORT {
            return indices.chunks_exact(row).zip(out.chunks_exact_mut(row * bytes)).all(|(indices, out)| {
                one_by_one(data, axis, Row { base: walk.next(), stride, step }, bytes, indices, out)
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
        return one_by_one(data, axis, row, bytes, indices, out);
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
fn one_by_one<I: Index>(data: &[u8], axis: Bounds, row: Row, bytes: usize, indices: &[I], out: &mut [u8]) -> bool {
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
    /// The dimensions of the indices but the last.
    outer: &'a [usize],
    position: Shape,
    /// For each of them: elements in `data` between neighbours; 0 along the axis.
    strides: Shape,
}

impl<'a> Walk<'a> {
    fn new(grid: &Grid<'_>, outer: &'a [usize], first: usize) -> Walk<'a> {
        let (mut position, mut strides) = (Shape::from_elem(0, outer.len()), Shape::from_elem(0, outer.len()));
        let (mut rest, mut stride) = (first, grid.data.last().copied().unwrap_or(1));
        let dims = outer.iter().zip(grid.data).enumerate().rev();
        for ((d, (&dim, &size)), (p, s)) in dims.zip(position.iter_mut().zip(&mut strides).rev()) {
            (*p, rest) = (rest % dim.max(1), rest / dim.max(1));
            *s = if d == grid.axis { 0 } else { stride };
            stride = stride.saturating_mul(size);
        }
        Walk { outer, position, strides }
    }

    fn next(&mut self) -> usize {
        let along = self.position.iter().zip(&self.strides).map(|(p, stride)| p.saturating_mul(*stride));
        let base = along.fold(0, usize::saturating_add);
        for (p, &dim) in self.position.iter_mut().zip(self.outer).rev() {
            *p += 1;
            if *p < dim {
                break;
            }
            *p = 0;
        }
        base
    }
}
