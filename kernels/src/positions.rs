//! Walks through the positions of a shape in row-major order: where they are in operands whose elements stand apart.

use smallvec::SmallVec;
use std::ops::Range;

/// The position of an element in its tensor, from its row-major index.
pub fn position_of(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut position = vec![0; shape.len()];
    for (p, &dim) in position.iter_mut().zip(shape).rev() {
        *p = at.checked_rem(dim).unwrap_or(0);
        at = at.checked_div(dim).unwrap_or(0);
    }
    position
}

/// A part of planes that are one behind the other: what is found out about a place serves all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The first element, and how many there are.
    pub(super) start: usize,
    pub(super) len: usize,
    /// Elements of a plane.
    pub(super) plane: usize,
}

impl Part {
    /// Those places of a plane that the part has: a part of one plane has its own alone.
    pub(super) fn places(&self) -> Range<usize> {
        let (first, plane) = (self.start % self.plane.max(1), self.plane);
        if first + self.len <= plane { first..first + self.len } else { 0..plane }
    }

    /// The planes that have some of the places in this part: the number of each, the places before those, and where they are
    /// in the part.
    pub(super) fn planes(&self, places: Range<usize>) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
        let Part { start, len, plane } = *self;
        (start / plane.max(1)..(start + len).div_ceil(plane.max(1))).filter_map(move |number| {
            let first = number * plane + places.start;
            let own = first.max(start)..(number * plane + places.end).min(start + len);
            (!own.is_empty()).then(|| (number, own.start - first, own.start - start..own.end - start))
        })
    }
}

/// A dimension: its size, and the elements between neighbours in each of `N` operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dim<const N: usize> {
    pub(super) size: usize,
    pub(super) steps: [usize; N],
}

/// Dimensions, innermost first.
pub(super) type Dims<const N: usize> = SmallVec<[Dim<N>; 4]>;

/// Adds a dimension around others. One of size 1 is left out; where the steps of all operands are even, it is merged with
/// the one inside.
#[inline(always)]
pub(super) fn add<const N: usize>(dims: &mut Dims<N>, size: usize, steps: [usize; N]) {
    let even =
        |inner: &Dim<N>| inner.steps.iter().zip(steps).all(|(own, step)| step == inner.size.saturating_mul(*own));
    match dims.last_mut() {
        _ if size == 1 => {}
        Some(inner) if even(inner) => inner.size = inner.size.saturating_mul(size),
        _ => dims.push(Dim { size, steps }),
    }
}

/// The dimension of rows.
#[inline(always)]
pub(super) fn innermost<const N: usize>(dims: &[Dim<N>]) -> Dim<N> {
    dims.first().copied().unwrap_or(Dim { size: 1, steps: [0; N] })
}

/// The offsets of all positions, again and again.
pub(super) struct Offsets<'a, const N: usize> {
    dims: &'a [Dim<N>],
    position: SmallVec<[usize; 4]>,
    at: [usize; N],
}

impl<'a, const N: usize> Offsets<'a, N> {
    /// Starts at the position with number `first`.
    #[inline]
    pub(super) fn new(dims: &'a [Dim<N>], first: usize) -> Offsets<'a, N> {
        let mut offsets = Offsets { dims, position: SmallVec::from_elem(0, dims.len()), at: [0; N] };
        let mut rest = first;
        for (position, dim) in offsets.position.iter_mut().zip(dims).filter(|_| first > 0) {
            (*position, rest) = (rest % dim.size, rest / dim.size);
            offsets.at.iter_mut().zip(dim.steps).for_each(|(at, step)| *at += *position * step);
        }
        offsets
    }

    #[inline]
    pub(super) fn next(&mut self) -> [usize; N] {
        let next = self.at;
        for (position, dim) in self.position.iter_mut().zip(self.dims) {
            *position += 1;
            self.at.iter_mut().zip(dim.steps).for_each(|(at, step)| *at += step);
            if *position < dim.size {
                break;
            }
            self.at.iter_mut().zip(dim.steps).for_each(|(at, step)| *at -= dim.size * step);
            *position = 0;
        }
        next
    }
}

/// The rows of a shape: the positions along its innermost dimension.
pub(super) struct Rows<'a, const N: usize> {
    row: Dim<N>,
    /// Elements of the next row to skip.
    before: usize,
    starts: Offsets<'a, N>,
}

impl<'a, const N: usize> Rows<'a, N> {
    /// Starts at the position with number `first`.
    #[inline]
    pub(super) fn new(dims: &'a [Dim<N>], first: usize) -> Rows<'a, N> {
        let (row, outer) = (innermost(dims), dims.get(1..).unwrap_or(&[]));
        // A division takes as long as a small row.
        let (whole, before) = if first == 0 { (0, 0) } else { (first / row.size, first % row.size) };
        Rows { row, before, starts: Offsets::new(outer, whole) }
    }

    /// The offsets of the first element of the row, or of what remains of it, and its length.
    #[inline]
    pub(super) fn next(&mut self) -> ([usize; N], usize) {
        let before = std::mem::take(&mut self.before);
        let mut starts = self.starts.next();
        starts.iter_mut().zip(self.row.steps).for_each(|(start, step)| *start += before * step);
        (starts, self.row.size - before)
    }

    /// The elements between neighbours of a row, in each operand.
    #[inline]
    pub(super) fn steps(&self) -> [usize; N] {
        self.row.steps
    }
}
