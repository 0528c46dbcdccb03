//! Gather kernels: copy elements by index. They know sizes in bytes, not types.
//!
//! Each checks a block of indices before it copies by them, and stops at the first block with an index out of range.
//! The operator then finds out which index it is.
//!
//! Entries of many bytes are copied one by one ([`rows`]). Single elements go through blocks of narrowed indices
//! ([`narrow`], [`elements`], [`grid`]).

mod elements;
mod grid;
mod narrow;
mod rows;

pub use grid::Grid;

use crate::{Resources, Stopped, parallel};

/// `out[o, k, ..] = data[o, indices[k], ..]`
#[derive(Debug, Clone, Copy)]
pub struct Gather<'a> {
    pub data: &'a [u8],
    pub axis: Bounds,
    /// Bytes of an entry: all dimensions after the axis.
    pub row: usize,
    pub indices: Indices<'a>,
}

impl Gather<'_> {
    /// Numbers of scratch memory that [`gather`] needs for an output of `len` bytes: indices that many rows share are
    /// checked once.
    pub fn scratch(&self, len: usize) -> usize {
        let (count, single) = (self.indices.len(), matches!(self.row, 1 | 2 | 4 | 8 | 16));
        if single && len > count.saturating_mul(self.row) { count } else { 0 }
    }
}

/// Fills all of `out`.
pub fn gather(work: Gather<'_>, out: &mut [u8], scratch: &mut [u32], resources: Resources<'_>) -> Result<(), Stopped> {
    match work.indices {
        Indices::I32(indices) => gather_by(work, indices, out, scratch, resources),
        Indices::I64(indices) => gather_by(work, indices, out, scratch, resources),
    }
}

fn gather_by<I: Index>(
    work: Gather<'_>,
    indices: &[I],
    out: &mut [u8],
    scratch: &mut [u32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let Gather { data, axis, row, .. } = work;
    if out.is_empty() {
        // Nothing is copied, but bad indices are still an error.
        for block in resources.lookout().blocks(indices) {
            if block?.iter().any(|&index| axis.entry(index).is_none()) {
                return Err(Stopped::OutOfRange);
            }
        }
        return Ok(());
    }
    match row {
        1 => elements::gather::<u8, I>(data, axis, indices, out, scratch, resources),
        2 => elements::gather::<u16, I>(data, axis, indices, out, scratch, resources),
        4 => elements::gather::<u32, I>(data, axis, indices, out, scratch, resources),
        8 => elements::gather::<u64, I>(data, axis, indices, out, scratch, resources),
        16 => elements::gather::<u128, I>(data, axis, indices, out, scratch, resources),
        _ => rows::gather(data, axis, row, indices, out, resources),
    }
}

/// As [`gather`], but an index out of range gives zeros.
pub fn gather_or_zero(work: Gather<'_>, out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    fn each<I: Index>(
        work: Gather<'_>,
        indices: &[I],
        out: &mut [u8],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let Gather { data, axis, row, .. } = work;
        if out.is_empty() {
            return Ok(());
        }
        parallel::pieces(out, 1, row, 1, resources, |k, start, out| {
            let (outer, k) = (k / indices.len(), k % indices.len());
            let entry = indices.get(k).and_then(|&index| axis.entry(index));
            let at = entry.map(|entry| (outer * axis.size + entry) * row + start);
            match at.and_then(|at| data.get(at..at + out.len())) {
                Some(from) => out.copy_from_slice(from),
                None => out.fill(0),
            }
            Ok(())
        })
    }
    match work.indices {
        Indices::I32(indices) => each(work, indices, out, resources),
        Indices::I64(indices) => each(work, indices, out, resources),
    }
}

/// `out[i, j, k] = data[i, indices[i, j, k], k]`, elements of `element` bytes
pub fn gather_elements(
    data: &[u8],
    element: usize,
    grid: &Grid<'_>,
    indices: Indices<'_>,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    macro_rules! by_size {
        ($indices:expr) => {
            match element {
                1 => grid::gather::<u8, _>(data, grid, $indices, out, resources),
                2 => grid::gather::<u16, _>(data, grid, $indices, out, resources),
                4 => grid::gather::<u32, _>(data, grid, $indices, out, resources),
                8 => grid::gather::<u64, _>(data, grid, $indices, out, resources),
                _ => grid::gather::<u128, _>(data, grid, $indices, out, resources),
            }
        };
    }
    match indices {
        Indices::I32(indices) => by_size!(indices),
        Indices::I64(indices) => by_size!(indices),
    }
}

/// Index values as the tensor holds them.
#[derive(Debug, Clone, Copy)]
pub enum Indices<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl<'a> Indices<'a> {
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn len(self) -> usize {
        match self {
            Indices::I32(indices) => indices.len(),
            Indices::I64(indices) => indices.len(),
        }
    }

    /// `n` of them from `first` on; empty if there are fewer.
    pub fn part(self, first: usize, n: usize) -> Indices<'a> {
        match self {
            Indices::I32(indices) => Indices::I32(indices.get(first..first + n).unwrap_or(&[])),
            Indices::I64(indices) => Indices::I64(indices.get(first..first + n).unwrap_or(&[])),
        }
    }
}

/// An integer type of indices.
pub trait Index: Copy + Sync {
    fn value(self) -> i64;
}

impl Index for i32 {
    #[inline(always)]
    fn value(self) -> i64 {
        self.into()
    }
}

impl Index for i64 {
    #[inline(always)]
    fn value(self) -> i64 {
        self
    }
}

/// An axis, for the loops.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Entries along the axis.
    pub size: usize,
    /// Negative indices count from the end.
    pub negative: bool,
}

impl Bounds {
    /// The entry that an index names, if it is in range.
    #[inline(always)]
    pub fn entry(self, index: impl Index) -> Option<usize> {
        let entry = self.wrapped(index);
        // A negative number is beyond any size.
        ((entry as u64) < self.size as u64).then_some(entry as usize)
    }

    /// The index counted from the start. Out of range stays out of range.
    #[inline(always)]
    fn wrapped(self, index: impl Index) -> i64 {
        let value = index.value();
        let wrap = if self.negative { self.size as i64 } else { 0 };
        // No overflow: a non-negative size is added to a negative index.
        value.wrapping_add((value >> 63) & wrap)
    }
}

#[cfg(test)]
mod tests;
