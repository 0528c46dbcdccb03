//! Operands: where their elements are, of which type, and what is subtracted from them.
//!
//! The type of elements is known to functions only that make panels of them ([`ElementType`]), so that all operands with
//! the same sums are alike: they may stand on either side, and at any address.

use super::dequantized::Dequantized;
use super::number::{Number, Operand};
use super::pack::{MOST_LANES, Packed, Side, panel};
use super::place::{Extent, Place, Strides};
use super::quads;
use super::windows::{self, Windows};
use crate::Stopped;
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// The left operand.
#[derive(Debug, Clone, Copy)]
pub enum Left<'a, T> {
    View(View<'a, T>),
    /// Matrices of a batch are `m * k` elements apart.
    Packed(Packed<'a, T>),
}

/// The right operand.
#[derive(Debug, Clone, Copy)]
pub enum Right<'a, T> {
    View(View<'a, T>),
    /// Matrices of a batch are `k * n` elements apart.
    Packed(Packed<'a, T>),
    Windows(Windows<'a, T>),
    /// One matrix, which all of a batch share.
    Dequantized(Dequantized<'a>),
}

/// A matrix: elements, and how far rows and columns are apart. A distance of 0 repeats.
#[derive(Debug, Clone, Copy)]
pub struct View<'a, T> {
    pub(super) elements: Elements<'a, T>,
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) zero: Option<ZeroPoints<'a, T>>,
}

/// Elements of a type that is summed in `T`, at any address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a, T> {
    bytes: &'a [u8],
    of: ElementType<T>,
}

/// What has to be known of a type.
#[derive(Debug, Clone, Copy)]
struct ElementType<T> {
    size: usize,
    in_place: bool,
    panel: Panel<T>,
    windows: WindowsPanel<T>,
    /// For integers of 8 bits, whether they are signed.
    bytes: Option<bool>,
}

/// [`panel`] for a type.
type Panel<T> = fn(&[u8], usize, (usize, usize), usize, &mut [T]);

/// [`windows::panel`] for a type.
type WindowsPanel<T> = fn(&Windows<'_, T>, &[u8], &Range<usize>, Range<usize>, &mut [T]);

impl<'a, T: Number> Elements<'a, T> {
    pub(super) fn new<S: Operand<Sum = T>>(bytes: &'a [u8]) -> Elements<'a, T> {
        let (size, in_place) = (size_of::<S>(), S::IN_PLACE);
        Elements {
            bytes,
            of: ElementType { size, in_place, panel: panel::<S>, windows: windows::panel::<S>, bytes: S::BYTES },
        }
    }

    /// Bytes of an element.
    pub(super) fn size(&self) -> usize {
        self.of.size
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.of.size
    }

    /// Whether they are stored as sums are.
    pub(super) fn in_place(&self) -> bool {
        self.of.in_place && self.bytes.as_ptr().cast::<T>().is_aligned()
    }

    /// For integers of 8 bits, whether they are signed.
    pub(super) fn bytes(&self) -> Option<bool> {
        self.of.bytes
    }

    /// Packs bytes: see [`quads::panel`].
    pub(super) fn quads(
        &self,
        side: Side,
        start: usize,
        apart: (usize, usize),
        (count, lanes): (usize, usize),
        to: &mut [T],
    ) {
        quads::panel(self.bytes, start, apart, (count, lanes), cast_slice_mut(to));
        if let Some(signed) = self.of.bytes {
            quads::turn((side, signed), (count, lanes), cast_slice_mut(to));
        }
    }

    /// The first element, if they are stored as sums are.
    pub(super) fn start(&self) -> *const T {
        self.bytes.as_ptr().cast()
    }

    /// As [`panel`].
    pub(super) fn panel(&self, start: usize, apart: (usize, usize), lanes: usize, to: &mut [T]) {
        (self.of.panel)(self.bytes, start, apart, lanes, to);
    }

    /// As [`Windows::panel`], where these are the elements.
    pub(super) fn windows(
        &self,
        windows: &Windows<'_, T>,
        image: usize,
        steps: &Range<usize>,
        columns: Range<usize>,
        to: &mut [T],
    ) {
        (self.of.windows)(windows, self.image(image), steps, columns, to);
    }

    /// The bytes from an element on.
    pub(super) fn image(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start * self.of.size..).unwrap_or(&[])
    }
}

impl<'a, T: Number> View<'a, T> {
    /// A matrix of elements whose rows and columns are so far apart.
    pub fn new<S: Operand<Sum = T>>(elements: &'a [S], row: usize, column: usize) -> View<'a, T> {
        View::of_bytes::<S>(bytemuck::cast_slice(elements), row, column)
    }

    /// A matrix of elements of the type `S`, which may stand at any address.
    pub fn of_bytes<S: Operand<Sum = T>>(bytes: &'a [u8], row: usize, column: usize) -> View<'a, T> {
        View { elements: Elements::new::<S>(bytes), row, column, zero: None }
    }

    /// A matrix whose rows of `columns` elements follow each other.
    pub fn rows<S: Operand<Sum = T>>(elements: &'a [S], columns: usize) -> View<'a, T> {
        View::new(elements, columns, 1)
    }

    /// The matrix less its zero points.
    pub fn less(self, zero: ZeroPoints<'a, T>) -> View<'a, T> {
        View { zero: Some(zero), ..self }
    }

    /// Rows become columns.
    pub fn transposed(self) -> View<'a, T> {
        View { row: self.column, column: self.row, ..self }
    }

    /// Whether products can read it as it is.
    pub(super) fn in_place(&self) -> bool {
        self.zero.is_none() && self.elements.in_place()
    }

    /// Fails unless there are so many rows and columns, which are not 0, from an element on.
    pub(super) fn check(&self, from: usize, rows: usize, columns: usize) -> Result<(), Stopped> {
        let last = |count: usize, stride: usize| (count - 1).checked_mul(stride);
        let end = last(rows, self.row).and_then(|row| from.checked_add(row)?.checked_add(last(columns, self.column)?));
        if end.is_some_and(|end| end < self.elements.len()) { Ok(()) } else { Err(Stopped::Misfit) }
    }
}

impl<'a, T: Number> Left<'a, T> {
    /// For integers of 8 bits, whether they are signed. Those that are packed are quads, and have a sign already.
    pub(super) fn bytes(&self) -> Option<bool> {
        match self {
            Left::View(view) => view.elements.bytes(),
            Left::Packed(packed) => packed.quads.then_some(false),
        }
    }

    pub(super) fn zero(&self) -> Option<ZeroPoints<'a, T>> {
        match self {
            Left::View(view) => view.zero,
            Left::Packed(_) => None,
        }
    }
}

impl<'a, T: Number> Right<'a, T> {
    /// As [`Left::bytes`].
    pub(super) fn bytes(&self) -> Option<bool> {
        match self {
            Right::View(view) => view.elements.bytes(),
            Right::Packed(packed) => packed.quads.then_some(true),
            Right::Windows(windows) => windows.elements.bytes(),
            Right::Dequantized(_) => None,
        }
    }

    pub(super) fn zero(&self) -> Option<ZeroPoints<'a, T>> {
        match self {
            Right::View(view) => view.zero,
            Right::Packed(_) | Right::Dequantized(_) => None,
            Right::Windows(windows) => windows.zero,
        }
    }
}

/// What is subtracted from the elements of an operand: for each row of the left one, and each column of the right one.
#[derive(Debug, Clone, Copy)]
pub struct ZeroPoints<'a, T> {
    elements: Elements<'a, T>,
    pub(super) strides: Strides<'a>,
}

impl<'a, T: Number> ZeroPoints<'a, T> {
    pub fn new<S: Operand<Sum = T>>(elements: &'a [S], strides: Strides<'a>) -> ZeroPoints<'a, T> {
        ZeroPoints { elements: Elements::new::<S>(bytemuck::cast_slice(elements)), strides }
    }

    pub(super) fn fits(&self, output: &Extent<'_>) -> bool {
        self.strides.fits(output, self.elements.len())
    }

    /// Writes those of lanes, whose places are given.
    pub(super) fn write<'p>(&self, place: impl Fn(usize) -> Place<'p>, to: &mut [T]) {
        for (lane, to) in to.iter_mut().enumerate() {
            self.elements.panel(self.strides.at(&place(lane)), (0, 1), 1, std::slice::from_mut(to));
        }
    }

    /// Subtracts them from a panel of some lanes, whose places are given.
    pub(super) fn subtract<'p>(&self, lanes: usize, place: impl Fn(usize) -> Place<'p>, panel: &mut [T]) {
        let mut points = [T::ZERO; MOST_LANES];
        let points = points.get_mut(..lanes).unwrap_or(&mut []);
        self.write(place, points);
        for step in panel.chunks_exact_mut(lanes.max(1)) {
            step.iter_mut().zip(&*points).for_each(|(number, point)| *number = number.sub(*point));
        }
    }
}
