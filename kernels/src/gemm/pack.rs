//! Operands in the order in which products read them.
//!
//! A panel holds some lanes, which are columns of `b` or rows of `a`, step of `k` by step: `panel[p, j]`. It has no
//! padding: a narrow panel has shorter steps, so a packed matrix is as large as it was.

use super::number::{Number, Operand};
use super::operand::View;
use super::place::{Extent, Place};
use super::quads;
use super::{Batch, plan::Tiles};
use crate::cpu::LINE;
use crate::permute::matrix;
use crate::{Lookout, Resources, Stopped, lookout, parallel};
use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// Maximum number of lanes of a panel.
pub(super) const MOST_LANES: usize = 32;

/// The side of a product on which an operand stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

impl Side {
    /// Maximum number of lanes of a panel for this processor.
    fn lanes<T: Number>(self, quads: bool) -> usize {
        let kernel = if quads { T::quads() } else { None }.unwrap_or_else(T::kernel);
        match self {
            Side::Left => kernel.height,
            Side::Right => kernel.width,
        }
    }
}

/// A matrix (or several, one after the other) in panels. Made by [`pack`].
///
/// Columns of `b` fill one panel after the other. Rows of `a` are divided as tiles of the output are, as even as can be.
/// Bytes are packed as [`quads`].
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a, T> {
    side: Side,
    pub(super) elements: &'a [T],
    /// Maximum number of lanes of a panel.
    pub(super) lanes: usize,
    pub(super) quads: bool,
}

/// Elements of memory that [`pack`] needs for `count` elements: some more, as panels start at a cache line.
pub fn packed_len<T>(count: usize) -> usize {
    count.saturating_add(LINE / size_of::<T>().max(1))
}

/// As [`packed_len`], for `count` matrices of so many rows and columns of elements of the type `S`.
pub fn packed_len_of<S: Operand>(side: Side, count: usize, (rows, columns): (usize, usize)) -> usize {
    let (k, lanes) = if side == Side::Left { (columns, rows) } else { (rows, columns) };
    let depth = if S::BYTES.is_some() { quads::depth(k) } else { k };
    packed_len::<S::Sum>(count.saturating_mul(depth.saturating_mul(lanes)))
}

/// Steps of a panel between two checks whether to stop.
const BETWEEN_LOOKS: usize = 1 << 15;

/// The part of `elements` that starts at a cache line.
pub(super) fn line_start<T>(elements: &[T]) -> usize {
    elements.as_ptr().align_offset(LINE).min(elements.len())
}

/// Packs `count` matrices of so many rows and columns, which are `stride` elements apart, into `to`.
///
/// Zero points are subtracted. They belong to the rows of a left operand or the columns of a right one, and their batch
/// is that of the matrices: a single dimension.
pub fn pack<T: Number>(
    side: Side,
    matrix: View<'_, T>,
    (count, stride): (usize, usize),
    (rows, columns): (usize, usize),
    to: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (k, own) = if side == Side::Left { (columns, rows) } else { (rows, columns) };
    let bytes = matrix.elements.bytes();
    let (depth, steps) = if bytes.is_some() { (quads::depth(k), k.div_ceil(quads::SIZE)) } else { (k, k) };
    let (start, size) = (line_start(to), depth.saturating_mul(own));
    let to = to.get_mut(start..).and_then(|to| to.get_mut(..size.checked_mul(count)?)).ok_or(Stopped::Misfit)?;
    if to.is_empty() {
        return Ok(());
    }
    let batch = [Batch { size: count, a: stride, b: stride }];
    let (m, n) = if side == Side::Left { (rows, 1) } else { (1, columns) };
    if matrix.zero.is_some_and(|zero| !zero.fits(&Extent { m, n, batch: &batch })) {
        return Err(Stopped::Misfit);
    }
    for (at, to) in to.chunks_exact_mut(size).enumerate() {
        let start = at.checked_mul(stride).ok_or(Stopped::Misfit)?;
        if k > 0 {
            matrix.check(start, rows, columns)?;
        }
        let lanes = Vector { side, matrix, start, number: at, batch: &batch, first: 0 };
        let most = side.lanes::<T>(bytes.is_some());
        let (to, rest) = to.split_at_mut(steps * own);
        let (sums, rest) = rest.split_at_mut(own.min(rest.len()));
        let (zeros, few) = rest.split_at_mut(own.min(rest.len()));
        if let Some(signed) = bytes {
            sums.fill(T::ZERO);
            quads::zeros(matrix.zero, (side, signed), |lane| lanes.place(lane), zeros);
        }
        if side == Side::Right {
            lanes.pack(most, k, to, sums, resources)?;
            say_few(to, (most, steps), few, resources)?;
            continue;
        }
        let tiles = Tiles::new(rows, most);
        let first = tiles.start(tiles.higher);
        let (higher, others) = to.split_at_mut(first * steps);
        let (higher_sums, other_sums) = sums.split_at_mut(first.min(sums.len()));
        lanes.pack(tiles.height + 1, k, higher, higher_sums, resources)?;
        Vector { first, ..lanes }.pack(tiles.height, k, others, other_sums, resources)?;
    }
    Ok(())
}

/// Says of which steps of panels of quads, as wide as they can be, bytes are few, if there is room for it.
fn say_few<T: Number>(
    panels: &mut [T],
    (lanes, steps): (usize, usize),
    to: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if to.is_empty() {
        return Ok(());
    }
    let (size, room) = (lanes * steps, lanes * quads::depth_of_few(steps));
    let whole = panels.len() / size;
    let both = [(panels, size), (to, room)].map(|(all, size)| cast_slice_mut(all.split_at_mut(whole * size).0));
    let units = [size, room].map(|unit| unit * size_of::<T>());
    parallel::split_two(both, units, 1, resources, |_, [panels, to]| {
        for (panel, to) in panels.chunks_exact(units[0]).zip(to.chunks_exact_mut(units[1])) {
            lookout::look(resources.stop)?;
            quads::say_few(cast_slice(panel), lanes, to);
        }
        Ok(())
    })
}

/// The lanes of a matrix, from the `first` on.
struct Vector<'a, T> {
    side: Side,
    matrix: View<'a, T>,
    /// Its first element, and its number.
    start: usize,
    number: usize,
    batch: &'a [Batch],
    first: usize,
}

impl<T: Number> Vector<'_, T> {
    /// Fills `to` with panels of `most` lanes of `k` elements each. To the sums of lanes of bytes it adds theirs.
    fn pack(
        &self,
        most: usize,
        k: usize,
        to: &mut [T],
        sums: &mut [T],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let View { elements, row, column, zero } = self.matrix;
        let (step, lane) = if self.side == Side::Left { (column, row) } else { (row, column) };
        let is_bytes = elements.bytes().is_some();
        let of_step = if is_bytes { quads::SIZE } else { 1 };
        let steps = k.div_ceil(of_step);
        if to.is_empty() {
            return Ok(());
        }
        let units = [most * steps, most].map(|unit| unit * size_of::<T>());
        parallel::split_two([cast_slice_mut(to), cast_slice_mut(sums)], units, 1, resources, |from, [to, sums]| {
            let mut sums = cast_slice_mut::<u8, T>(sums).chunks_mut(most);
            for (at, to) in cast_slice_mut::<u8, T>(to).chunks_mut(most * steps).enumerate() {
                let sums = sums.next().unwrap_or_default();
                let (lanes, first) = (to.len() / steps, self.first + (from + at) * most);
                let start = self.start + first * lane;
                for (part, to) in to.chunks_mut(BETWEEN_LOOKS * lanes).enumerate() {
                    if part > 0 {
                        lookout::look(resources.stop)?;
                    }
                    let done = part * BETWEEN_LOOKS * of_step;
                    let start = start + done * step;
                    if is_bytes {
                        elements.quads(self.side, start, (step, lane), (k - done, lanes), to);
                        quads::add_sums(self.side, cast_slice(to), cast_slice_mut(sums));
                        continue;
                    }
                    elements.panel(start, (step, lane), lanes, to);
                    if let Some(zero) = zero {
                        zero.subtract(lanes, |lane| self.place(first + lane), to);
                    }
                }
            }
            Ok(())
        })
    }

    /// A place of the output to which a lane belongs.
    fn place(&self, lane: usize) -> Place<'_> {
        let (row, column) = if self.side == Side::Left { (lane, 0) } else { (0, lane) };
        Place { matrix: self.number, row, column, down: false, batch: self.batch }
    }
}

impl<'a, T: Number> Packed<'a, T> {
    /// What [`pack`] wrote for a side.
    pub fn new(side: Side, elements: &'a [T]) -> Packed<'a, T> {
        Packed::with(side, elements, false)
    }

    /// As [`Packed::new`], where elements of the type `S` were packed.
    pub fn of<S: Operand<Sum = T>>(side: Side, elements: &'a [T]) -> Packed<'a, T> {
        Packed::with(side, elements, S::BYTES.is_some())
    }

    fn with(side: Side, elements: &'a [T], quads: bool) -> Packed<'a, T> {
        let elements = elements.get(line_start(elements)..).unwrap_or(&[]);
        Packed { side, elements, lanes: side.lanes::<T>(quads), quads }
    }

    /// The columns of a matrix of `k` rows from `first` on, which is a multiple of 32. A product may have fewer of them,
    /// if this is a multiple of 32 too.
    pub fn columns_from(self, first: usize, k: usize) -> Packed<'a, T> {
        debug_assert!(first.is_multiple_of(MOST_LANES) && MOST_LANES.is_multiple_of(self.lanes));
        self.after(first.saturating_mul(k))
    }

    /// What follows so many elements, those of whole matrices.
    pub fn after(self, elements: usize) -> Packed<'a, T> {
        Packed { elements: self.elements.get(elements..).unwrap_or(&[]), ..self }
    }

    /// Fails unless it was packed for this side and processor, and there are so many lanes of a depth from an element on.
    pub(super) fn check(&self, side: Side, from: usize, depth: usize, lanes: usize) -> Result<(), Stopped> {
        let end = depth.checked_mul(lanes).and_then(|size| from.checked_add(size));
        let is_divided = side == Side::Right || self.lanes == side.lanes::<T>(self.quads);
        let fits = self.side == side && is_divided && end.is_some_and(|end| end <= self.elements.len());
        if fits { Ok(()) } else { Err(Stopped::Misfit) }
    }
}

/// `to[p, j] = elements[start + p * step + j * lane]` for `j < lanes`, as many steps as `to` has. The elements may stand at
/// any address.
///
/// All these places are within `elements`.
#[allow(clippy::indexing_slicing)] // as the caller promises
pub(super) fn panel<S: Operand>(
    elements: &[u8],
    start: usize,
    (step, lane): (usize, usize),
    lanes: usize,
    to: &mut [S::Sum],
) {
    let from = |at: usize, count: usize| &elements[at * size_of::<S>()..][..count * size_of::<S>()];
    if lane == 1 {
        for (p, to) in to.chunks_exact_mut(lanes).enumerate() {
            S::widen(from(start + p * step, lanes), to);
        }
        return;
    }
    if step == 1 && S::IN_PLACE {
        return turned(&elements[start * size_of::<S>()..], lane * size_of::<S>(), lanes, to);
    }
    let mut line = [<S::Sum as Number>::ZERO; STEPS];
    for (at, to) in to.chunks_mut(STEPS * lanes).enumerate() {
        let (start, steps) = (start + at * STEPS * step, to.len() / lanes);
        for j in 0..lanes {
            let (start, line) = (start + j * lane, &mut line[..steps]);
            if step == 1 {
                S::widen(from(start, steps), line);
            } else {
                for (p, to) in line.iter_mut().enumerate() {
                    S::widen(from(start + p * step, 1), std::slice::from_mut(to));
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

/// Transposes lanes that are `lane` bytes from each other: `to[p, j]` is the element p of lane j. All of them are within `from`.
pub(super) fn turned<T: Pod>(from: &[u8], lane: usize, lanes: usize, to: &mut [T]) {
    let (row, steps) = (lanes * size_of::<T>(), to.len() / lanes);
    if steps > 0 {
        let done = matrix::<T>(from, lane, cast_slice_mut(to), row, steps, lanes, &mut Lookout::new(None));
        debug_assert!(done.is_ok(), "lanes are beyond their elements");
    }
}
