//! Places of the output, and what is broadcast to them: zero points of operands, and operands of the epilogue.

use super::Batch;
use super::epilogue::PART;

/// The output as the caller sees it. Products may be computed with rows of several matrices together, or transposed.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'a> {
    pub m: usize,
    pub n: usize,
    pub batch: &'a [Batch],
}

/// An element of the output, and the direction of those that follow it in a part.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The matrix, counted through the batch.
    pub matrix: usize,
    pub row: usize,
    pub column: usize,
    /// The part runs through rows: the output has a single column.
    pub(super) down: bool,
    pub(super) batch: &'a [Batch],
}

/// How far elements are apart that belong to rows, columns and matrices of the output. A distance of 0 repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strides<'a> {
    pub row: usize,
    pub column: usize,
    /// For each dimension of the batch; none if all matrices share the elements.
    pub batch: &'a [usize],
}

impl Strides<'_> {
    /// One element for all.
    pub const ONE: Strides<'static> = Strides { row: 0, column: 0, batch: &[] };
    /// One for each row.
    pub const ROWS: Strides<'static> = Strides { row: 1, column: 0, batch: &[] };
    /// One for each column.
    pub const COLUMNS: Strides<'static> = Strides { row: 0, column: 1, batch: &[] };

    /// Where the element of a place is.
    pub(super) fn at(&self, place: &Place<'_>) -> usize {
        let (mut at, mut rest) = (place.row * self.row + place.column * self.column, place.matrix);
        for (batch, stride) in place.batch.iter().zip(self.batch).rev() {
            at += rest % batch.size * stride;
            rest /= batch.size;
        }
        at
    }

    /// Whether each place of an output that isn't empty has one of `len` elements.
    pub(super) fn fits(&self, output: &Extent<'_>, len: usize) -> bool {
        let last = |count: usize, stride: usize| count.checked_sub(1)?.checked_mul(stride);
        let mut ends = [last(output.m, self.row), last(output.n, self.column)]
            .into_iter()
            .chain(output.batch.iter().zip(self.batch).map(|(batch, stride)| last(batch.size, *stride)));
        let end = ends.try_fold(0usize, |sum, end| sum.checked_add(end?));
        (self.batch.is_empty() || self.batch.len() == output.batch.len()) && end.is_some_and(|end| end < len)
    }
}

/// Elements that are broadcast to the output.
#[derive(Debug, Clone, Copy)]
pub struct Broadcast<'a, S> {
    pub elements: &'a [S],
    pub strides: Strides<'a>,
}

impl<'a, S: Copy> Broadcast<'a, S> {
    pub(super) fn fits(&self, output: &Extent<'_>) -> bool {
        self.strides.fits(output, self.elements.len())
    }

    /// The element of all places of a part, if they share one.
    pub(super) fn only(&self, place: &Place<'_>) -> Option<S> {
        let stride = if place.down { self.strides.row } else { self.strides.column };
        if stride == 0 { self.elements.get(self.strides.at(place)).copied() } else { None }
    }

    /// The elements for the first `len` places of a part, if they are neighbours.
    pub(super) fn neighbours(&self, place: &Place<'_>, len: usize) -> Option<&'a [S]> {
        let stride = if place.down { self.strides.row } else { self.strides.column };
        let at = self.strides.at(place);
        if stride == 1 { self.elements.get(at..at + len) } else { None }
    }

    /// The elements for the first `len` places of a part, in the `room` if they are no neighbours.
    pub(super) fn part<'r>(&self, place: &Place<'_>, len: usize, room: &'r mut [S; PART]) -> &'r [S]
    where
        'a: 'r,
    {
        let from = self.elements.get(self.strides.at(place)..).unwrap_or(&[]);
        let stride = if place.down { self.strides.row } else { self.strides.column };
        match (stride, from) {
            (1, _) => return from.get(..len).unwrap_or(from),
            (0, [first, ..]) => room.iter_mut().take(len).for_each(|to| *to = *first),
            _ => room.iter_mut().take(len).zip(from.iter().step_by(stride.max(1))).for_each(|(to, from)| *to = *from),
        }
        room.get(..len).unwrap_or(room)
    }
}
