//! Operands in the order in which products read them.
//!
//! A panel holds some columns of `b` (or rows of `a`), step of `k` by step: `panel[p, j]`. It has no padding: a narrow
//! last panel has shorter steps, so a packed matrix is as large as it was.

use super::number::{Number, Operand};
use super::plan::MOST_WIDE;
use super::{View, tile};
use crate::kernels::{Resources, Stopped, parallel};

/// A matrix `b` (or several, one after the other) in panels. Made by [`pack`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed<'a, T> {
    pub(super) elements: &'a [T],
    /// Columns of a panel; the last one may have fewer.
    pub(super) width: usize,
}

/// Elements of memory that [`pack`] needs for `count` elements: some more, as panels start at a cache line.
pub(crate) fn packed_len<T>(count: usize) -> usize {
    count.saturating_add(LINE / size_of::<T>().max(1))
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// The part of `elements` that starts at a cache line.
pub(super) fn line_start<T>(elements: &[T]) -> usize {
    elements.as_ptr().align_offset(LINE).min(elements.len())
}

/// Packs `count` matrices of `k` rows and `n` columns, which are `stride` elements apart, into `to`.
pub(crate) fn pack<S: Operand>(
    b: View<'_, S>,
    (count, stride): (usize, usize),
    (k, n): (usize, usize),
    to: &mut [S::Sum],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let start = line_start(to);
    let (width, size) = (S::Sum::kernel().width, k.saturating_mul(n));
    let to = to.get_mut(start..).and_then(|to| to.get_mut(..size.checked_mul(count)?)).ok_or(Stopped::Misfit)?;
    if to.is_empty() {
        return Ok(());
    }
    for (at, to) in to.chunks_exact_mut(size).enumerate() {
        let b = b.from(at * stride).ok_or(Stopped::Misfit)?;
        b.check(k, n)?;
        let unit = width * k * size_of::<S::Sum>();
        parallel::split(bytemuck::cast_slice_mut(to), unit, resources, |first, to| {
            for (at, to) in bytemuck::cast_slice_mut::<u8, S::Sum>(to).chunks_mut(width * k).enumerate() {
                let columns = to.len() / k;
                panel(b.elements, (first + at) * width * b.column, (b.row, b.column), columns, to);
            }
            Ok(())
        })?;
    }
    Ok(())
}

impl<'a, T: Number> Packed<'a, T> {
    /// What [`pack`] wrote. `None` if it is less than a matrix of `k` rows and `n` columns.
    pub(crate) fn new(elements: &'a [T]) -> Packed<'a, T> {
        let start = line_start(elements);
        Packed { elements: elements.get(start..).unwrap_or(&[]), width: T::kernel().width }
    }

    /// The columns of a matrix of `k` rows from `first` on, which is a multiple of 32. A product may have fewer of them,
    /// if this is a multiple of 32 too.
    pub(crate) fn columns_from(self, first: usize, k: usize) -> Packed<'a, T> {
        debug_assert!(first.is_multiple_of(MOST_WIDE) && MOST_WIDE.is_multiple_of(self.width));
        Packed { elements: self.elements.get(first.saturating_mul(k)..).unwrap_or(&[]), ..self }
    }
}

/// `to[p, j] = elements[start + p * step + j * lane]` for `j < lanes`, as many steps as `to` has.
///
/// All these places are within `elements`.
#[allow(clippy::indexing_slicing)] // as the caller promises
pub(super) fn panel<S: Operand>(
    elements: &[S],
    start: usize,
    (step, lane): (usize, usize),
    lanes: usize,
    to: &mut [S::Sum],
) {
    if lane == 1 {
        for (p, to) in to.chunks_exact_mut(lanes).enumerate() {
            S::widen(&elements[start + p * step..][..lanes], to);
        }
        return;
    }
    // A few steps at once: as many as are in a cache line.
    const STEPS: usize = 16;
    let mut line = [<S::Sum as Number>::ZERO; STEPS];
    for (at, to) in to.chunks_mut(STEPS * lanes).enumerate() {
        let steps = to.len() / lanes;
        for j in 0..lanes {
            let from = &elements[start + at * STEPS * step + j * lane..];
            let line = &mut line[..steps];
            if step == 1 {
                S::widen(&from[..steps], line);
            } else {
                for (p, to) in line.iter_mut().enumerate() {
                    S::widen(&from[p * step..][..1], std::slice::from_mut(to));
                }
            }
            for (to, from) in to[j..].iter_mut().step_by(lanes).zip(line) {
                *to = *from;
            }
        }
    }
}
