//! Provides the lines of an image that windows of one channel see: copied with padding around them, or computed.

#![allow(unsafe_code)] // tiles through pointers

use super::super::BLOCK;
use super::dense::tiles;
use super::finish::Activation;
use super::line::{Line, span};
use super::tile::{Loops, Next, One, Tile, loops, pointers};
use super::{CHANNELS, len_of, of_block};
use crate::windows::Axis;
use crate::{Lookout, Stopped};
use std::ops::Range;

/// Images `[images, blocks, slices, rows, columns, 16]`.
#[derive(Clone, Copy)]
pub enum Images<'a> {
    Stored(&'a [f32]),
    /// They are computed line by line, as windows need them.
    Products(&'a Products<'a>),
}

/// What follows the sums of a line: a function of neighbours.
pub type LineTail<'a> = dyn Fn(&mut [f32]) + Sync + 'a;

/// Convolutions of single places: images in blocks become others of the same size.
#[derive(Clone, Copy)]
pub struct Products<'a> {
    pub images: &'a [f32],
    pub channels: usize,
    /// The filters, as [`pack_each`](super::pack_each) packs them.
    pub weights: &'a [f32],
    /// A number for each filter, which is added last.
    pub bias: Option<&'a [f32]>,
    pub activation: Activation,
    pub tail: Option<&'a LineTail<'a>>,
}

impl Images<'_> {
    /// Steps of the sums that an element takes.
    pub(super) fn steps(&self) -> usize {
        match self {
            Images::Stored(_) => 0,
            Images::Products(products) => products.channels,
        }
    }

    /// Whether there are so many images, of so many channels and places.
    pub(super) fn are(&self, images: usize, channels: usize, places: usize) -> bool {
        match self {
            Images::Stored(elements) => elements.len() == images.saturating_mul(len_of(channels, places)),
            Images::Products(Products { images: elements, channels: steps, weights, bias, .. }) => {
                elements.len() == images.saturating_mul(len_of(*steps, places))
                    && weights.len() == len_of(channels, *steps)
                    && bias.is_none_or(|bias| bias.len() == channels)
            }
        }
    }

    /// Where each step of a sum is seen from a place.
    pub(super) fn offsets(&self, places: usize, to: &mut [u32]) -> Result<(), Stopped> {
        let steps = to.iter_mut().take(self.steps()).enumerate();
        for (channel, to) in steps {
            let at = channel / CHANNELS * places * CHANNELS + channel % CHANNELS;
            *to = u32::try_from(at).map_err(|_| Stopped::Misfit)?;
        }
        Ok(())
    }
}

/// A block of an image: its number among those of all images, and how many an image has.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) number: usize,
    pub(super) of: usize,
}

/// Lines of a block of an image that rows of a slice of the output see, with what is around them: those of each tap along the
/// slices follow each other.
pub(super) struct Lines<'a> {
    pub(super) axes: &'a [Axis; 3],
    pub(super) slice: usize,
    pub(super) line: Line,
    /// Elements of a line.
    pub(super) len: usize,
    pub(super) images: Images<'a>,
    pub(super) offsets: &'a [u32],
    pub(super) block: Block,
    pub(super) outside: f32,
    /// The numbers of the lines that are there, from where padding begins.
    pub(super) seen: Range<usize>,
    /// How many lines have what is around them, whatever they are.
    pub(super) around: usize,
}

impl Lines<'_> {
    /// Has what these rows of the output see: lines that others saw are kept. There is memory for so many elements of each tap along
    /// the slices, and for a line of the image that is computed.
    pub(super) fn turn_to(
        &mut self,
        own_rows: Range<usize>,
        (room, of_slice, own): (&mut [f32], usize, &mut [f32]),
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let Lines { axes: [slices, rows, _], len, .. } = *self;
        let first = own_rows.start * rows.stride;
        let seen = first..first + span(rows, own_rows.len());
        let kept = seen.start.max(self.seen.start)..seen.end.min(self.seen.end).max(seen.start);
        let missing = if kept.is_empty() { seen.clone() } else { kept.end..seen.end };
        for (tap, room) in (0..slices.kernel).zip(room.chunks_exact_mut(of_slice.max(1))) {
            let slice = (self.slice * slices.stride + tap * slices.dilation).checked_sub(slices.pad);
            let slice = slice.filter(|slice| *slice < slices.input);
            if !kept.is_empty() {
                let from = (kept.start - self.seen.start) * len..(kept.end - self.seen.start) * len;
                room.copy_within(from, (kept.start - seen.start) * len);
            }
            for number in missing.clone() {
                lookout.after(len * size_of::<f32>())?;
                let at = number - seen.start;
                let to = room.get_mut(at * len..(at + 1) * len).ok_or(Stopped::Misfit)?;
                match slice.zip(number.checked_sub(rows.pad).filter(|row| *row < rows.input)) {
                    Some((slice, row)) => self.read(slice * rows.input + row, at < self.around, (to, own), lookout)?,
                    None => to.fill(self.outside),
                }
            }
        }
        self.around = self.around.max(seen.len());
        self.seen = seen;
        Ok(())
    }

    /// Has a row of the image as a line; `kept` if what is around it is there already.
    fn read(
        &self,
        row: usize,
        kept: bool,
        (to, own): (&mut [f32], &mut [f32]),
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let [slices, rows, columns] = self.axes;
        let (places, width) = (slices.input * rows.input * columns.input, columns.input * CHANNELS);
        let products = match self.images {
            Images::Stored(images) => {
                let start = self.block.number * len_of(1, places) + row * width;
                self.line.copy(images.get(start..start + width).ok_or(Stopped::Misfit)?, self.outside, kept, to);
                return Ok(());
            }
            Images::Products(products) => products,
        };
        let Block { number, of } = self.block;
        lookout.after(products.channels * width * size_of::<f32>() / 8)?;
        let image = len_of(products.channels, places);
        let seen = products.images.get(number / of * image..(number / of + 1) * image).ok_or(Stopped::Misfit)?;
        let seen = seen.get(row * width..).ok_or(Stopped::Misfit)?;
        match self.line.whole(width) {
            Some(inside) => {
                if !kept {
                    self.line.surround(self.outside, to);
                }
                let to = to.get_mut(inside).ok_or(Stopped::Misfit)?;
                products.line(seen, number % of, self.offsets, to)
            }
            None => {
                let own = own.get_mut(..width).ok_or(Stopped::Misfit)?;
                products.line(seen, number % of, self.offsets, own)?;
                self.line.copy(own, self.outside, kept, to);
                Ok(())
            }
        }
    }
}

impl Products<'_> {
    /// The sums of a block of filters at neighbours, of which the first sees what `seen` begins with.
    fn line(&self, seen: &[f32], block: usize, offsets: &[u32], out: &mut [f32]) -> Result<(), Stopped> {
        let (steps, count) = (self.channels, out.len() / CHANNELS);
        let weights = self.weights.get(block * CHANNELS * steps..(block + 1) * CHANNELS * steps);
        let (weights, offsets) = (weights.ok_or(Stopped::Misfit)?, offsets.get(..steps).ok_or(Stopped::Misfit)?);
        let last = offsets.last().map_or(0, |last| *last as usize + 1);
        if seen.len() < (count.max(1) - 1) * CHANNELS + last {
            return Err(Stopped::Misfit);
        }
        let bias = of_block(self.bias, 0.0, block);
        let Loops { sums, .. } = loops::<One<CHANNELS>>(false);
        for start in (0..steps.max(1)).step_by(BLOCK) {
            let some = steps.min(start + BLOCK) - start;
            let is_last = start + some == steps;
            for tile in tiles(0..count, sums.len()) {
                let Some(sums) = sums.get(tile.len() - 1) else { continue };
                // SAFETY: offsets grow, and the last place sees the last of them; weights are those of the block, and the
                // output has the places.
                unsafe {
                    sums(&Tile {
                        image: [seen.as_ptr().add(tile.start * CHANNELS); 2],
                        offsets: [offsets.as_ptr().add(start); 2],
                        weights: weights.as_ptr().add(start * CHANNELS),
                        steps: some,
                        next: Next::none(weights.as_ptr()),
                        first: start == 0,
                        bias: if is_last && self.bias.is_some() { bias.as_ptr() } else { std::ptr::null() },
                        scaled: pointers(None),
                        beside: std::ptr::null(),
                        activation: if is_last { self.activation } else { Activation::None },
                        out: out.as_mut_ptr().add(tile.start * CHANNELS),
                        out_block: 0,
                    });
                }
            }
        }
        self.activation.follow(out);
        self.tail.iter().for_each(|tail| tail(out));
        Ok(())
    }
}
