//! The Euclidean length of what each place sees, which bounds partial sums.

#![allow(unsafe_code)] // vectors of bytes: `Squares` says what they need

use super::super::super::vectors::Plain;
use super::super::CHANNELS;
use super::super::band::{Band, Grid};
use super::filters::QUADS;
use super::quantize::Quantize;
use crate::cpu::for_each_level;
use crate::{Lookout, Stopped};
use bytemuck::cast_slice_mut;

/// Places whose squares are summed between two looks whether to stop.
const PART: usize = 1 << 10;

/// One for each place of a band.
pub(super) struct Lengths<'a> {
    /// The first row.
    first: usize,
    columns: usize,
    all: &'a [f32],
}

impl<'a> Lengths<'a> {
    /// Numbers of memory for a band.
    pub(super) fn room(grid: &Grid) -> usize {
        grid.seen().saturating_add(grid.most())
    }

    /// The same for all.
    pub(super) fn all(band: &Band<'_>, length: f32, room: &'a mut [f32]) -> Lengths<'a> {
        let all = room.get_mut(..band.rows.len() * band.columns.len()).unwrap_or(&mut []);
        all.fill(length);
        Lengths { first: band.rows.start, columns: band.columns.len(), all }
    }

    /// Of all channels, in blocks that are so far apart, less what is outside, at taps with these offsets.
    pub(super) fn of(
        band: &Band<'_>,
        (seen, apart): (&[u8], usize),
        taps: &[u32],
        (channels, outside, squares_of): (usize, u8, Squares),
        room: &'a mut [f32],
        lookout: &mut Lookout<'_>,
    ) -> Result<Lengths<'a>, Stopped> {
        let places = band.rows.len() * band.columns.len();
        let (all, squares) = room.split_at_mut_checked(places).ok_or(Stopped::Misfit)?;
        let taps: Vec<usize> = taps.iter().map(|tap| *tap as usize / CHANNELS).collect();
        let at = |row: usize, column: usize| band.place(row, column) / CHANNELS;
        let first = at(band.rows.start, band.columns.start);
        let last = at(band.rows.end.max(1) - 1, band.columns.end.max(1) - 1) + taps.iter().max().unwrap_or(&0);
        let squares = squares.get_mut(..last + 1 - first).ok_or(Stopped::Misfit)?;
        let blocks: Vec<&[u8]> = seen.chunks(apart.max(1)).map(|b| b.get(first * CHANNELS..).unwrap_or(&[])).collect();
        let image = Image { blocks: &blocks, channels, outside };
        for (at, squares) in squares.chunks_mut(PART).enumerate() {
            lookout.after(squares.len() * CHANNELS * blocks.len())?;
            // SAFETY: the caller has found it for this processor.
            unsafe { squares_of(&image, at * PART, squares) };
        }
        for (row, all) in band.rows.clone().zip(all.chunks_exact_mut(band.columns.len().max(1))) {
            lookout.after(size_of_val(all) * taps.len())?;
            all.fill(0.0);
            let from = at(row, band.columns.start) - first;
            for tap in &taps {
                add(squares.get(from + tap..).unwrap_or(&[]), all);
            }
            all.iter_mut().for_each(|sum| *sum = sum.sqrt());
        }
        Ok(Lengths { first: band.rows.start, columns: band.columns.len(), all })
    }

    /// Those of a row, and of all that follow.
    pub(super) fn from(&self, row: usize) -> &[f32] {
        self.all.get((row - self.first) * self.columns..).unwrap_or(&[])
    }
}

/// What squares are summed of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image<'a> {
    /// From the first place on.
    pub(super) blocks: &'a [&'a [u8]],
    pub(super) channels: usize,
    pub(super) outside: u8,
}

/// Sums squares of what neighbours show, from one on, less what is outside.
///
/// # Safety
/// The processor must have what the vectors need.
pub(super) type Squares = unsafe fn(&Image<'_>, usize, &mut [f32]);

/// Blocks whose squares are summed as integers, which are in no order: fewer than 2^16 squares of less than 2^16.
const EXACT: usize = 1 << 11;

/// # Safety
/// See [`Squares`].
#[inline(always)]
pub(super) unsafe fn squares<V: Quantize>(of: &Image<'_>, first: usize, to: &mut [f32]) {
    let whole = to.len() - to.len() % (V::COUNT / QUADS);
    let (whole, rest) = to.split_at_mut(whole);
    // SAFETY: the caller's.
    unsafe {
        abreast::<V>(of, first, whole);
        abreast::<Plain<u32, QUADS>>(of, first + whole.len(), rest);
    }
}

/// Sums squares at as many places as a vector has room for, at once: with the bytes `x` less 128, which have signs,
/// `(x - z)^2 = x * (x - 128) + (128 - 2 * z) * x + z^2`.
///
/// # Safety
/// See [`Squares`].
#[inline(always)]
unsafe fn abreast<V: Quantize>(of: &Image<'_>, first: usize, to: &mut [f32]) {
    let (outside, places) = (u32::from(of.outside), V::COUNT / QUADS);
    // Of each place, the channels that the last block has.
    let (last, mut mask) = ((of.channels - 1) % CHANNELS, [0u32; CHANNELS]);
    for (at, byte) in cast_slice_mut::<u32, u8>(&mut mask).iter_mut().enumerate() {
        *byte = if at % CHANNELS <= last { 255 } else { 0 };
    }
    // SAFETY: the caller's; arrays have as many numbers as the longest vector.
    unsafe {
        let (ones, by) = (V::splat(&0x0101_0101), V::splat(&128u32.wrapping_sub(2 * outside)));
        let mask = V::load(mask.as_ptr());
        for (at, to) in to.chunks_exact_mut(places).enumerate() {
            let from = (first + at * places) * CHANNELS;
            to.fill(0.0);
            for (part, blocks) in of.blocks.chunks(EXACT).enumerate() {
                let (mut squares, mut sums) = (V::zero(), V::zero());
                let channels = (of.channels - part * EXACT * CHANNELS).min(blocks.len() * CHANNELS);
                for (number, block) in blocks.iter().enumerate() {
                    let mut quads = [0u32; CHANNELS];
                    let Some(seen) = block.get(from..from + places * CHANNELS) else { continue };
                    cast_slice_mut(&mut quads).split_at_mut(seen.len()).0.copy_from_slice(seen);
                    let mut seen = V::load(quads.as_ptr());
                    if (number + 1) * CHANNELS > channels {
                        seen = V::zero().choose(seen, mask);
                    }
                    (squares, sums) = (seen.dot(seen.flip(), squares), seen.dot(ones, sums));
                }
                let mut quads = [0; CHANNELS];
                sums.mul_add(by, squares).store(quads.as_mut_ptr());
                let all = (channels as u32).wrapping_mul(outside * outside);
                for (to, quads) in to.iter_mut().zip(quads.chunks_exact(QUADS)) {
                    *to += quads.iter().fold(all, |sum, quad| sum.wrapping_add(*quad)) as f32;
                }
            }
        }
    }
}

for_each_level! {
    fn add<>(numbers: &[f32], to: &mut [f32]) -> () = add_body;
}

#[inline(always)]
fn add_body(numbers: &[f32], to: &mut [f32]) {
    for (to, number) in to.iter_mut().zip(numbers) {
        *to += *number;
    }
}
