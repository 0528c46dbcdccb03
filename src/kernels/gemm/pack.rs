//! Operands in the order in which products read them.
//!
//! A panel holds some columns of `b` (or rows of `a`), step of `k` by step: `panel[p, j]`. It has no padding: a narrow
//! last panel has shorter steps, so a packed matrix is as large as it was.

use super::View;
use super::number::{Number, Operand};
use crate::kernels::{Resources, Stopped, parallel};

/// Maximum number of columns of a tile.
pub(super) const MOST_WIDE: usize = 32;

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

/// Steps of a panel between two checks whether to stop.
const BETWEEN_LOOKS: usize = 1 << 15;

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
                let (columns, start) = (to.len() / k, (first + at) * width * b.column);
                for (part, to) in to.chunks_mut(BETWEEN_LOOKS * columns).enumerate() {
                    if part > 0 {
                        parallel::look(resources.stop)?;
                    }
                    panel(b.elements, start + part * BETWEEN_LOOKS * b.row, (b.row, b.column), columns, to);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

impl<'a, T: Number> Packed<'a, T> {
    /// What [`pack`] wrote.
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
    let mut line = [<S::Sum as Number>::ZERO; STEPS];
    for (at, to) in to.chunks_mut(STEPS * lanes).enumerate() {
        let (from, steps) = (&elements[start + at * STEPS * step..], to.len() / lanes);
        let done = if step == 1 && steps == STEPS { fours(from, lane, lanes, to) } else { 0 };
        for j in done..lanes {
            let (from, line) = (&from[j * lane..], &mut line[..steps]);
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

/// Steps that are packed at once: as many elements as a cache line has.
const STEPS: usize = 16;

/// Transposes [`STEPS`] steps of each lane: `to[p, j] = from[p + j * lane]`, four lanes at once. Returns the number of
/// lanes that are done: none if that isn't possible for the type.
#[allow(clippy::indexing_slicing)] // as the caller of `panel` promises
fn fours<S: Operand>(from: &[S], lane: usize, lanes: usize, to: &mut [S::Sum]) -> usize {
    if !S::IN_PLACE || size_of::<S>() != 4 {
        return 0;
    }
    let (from, to) = (bytemuck::cast_slice::<S, u32>(from), bytemuck::cast_slice_mut::<S::Sum, u32>(to));
    let done = lanes / 4 * 4;
    for j in (0..done).step_by(4) {
        let columns: [&[[u32; 4]]; 4] = std::array::from_fn(|c| from[(j + c) * lane..][..STEPS].as_chunks().0);
        for (at, to) in to.chunks_exact_mut(4 * lanes).enumerate() {
            for (row, to) in transposed(columns.map(|column| column[at])).iter().zip(to.chunks_exact_mut(lanes)) {
                to[j..j + 4].copy_from_slice(row);
            }
        }
    }
    done
}

#[inline(always)]
fn transposed(rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        let [a, b, c, d] = rows.map(bytemuck::cast::<[u32; 4], __m128i>);
        // SAFETY: each x86-64 has SSE2.
        #[allow(unsafe_code, unused_unsafe)]
        let turned = unsafe {
            let (low, low_2) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
            let (high, high_2) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
            [
                _mm_unpacklo_epi64(low, low_2),
                _mm_unpackhi_epi64(low, low_2),
                _mm_unpacklo_epi64(high, high_2),
                _mm_unpackhi_epi64(high, high_2),
            ]
        };
        turned.map(bytemuck::cast::<__m128i, [u32; 4]>)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::array::from_fn(|j| rows.map(|row| row[j]))
    }
}
