//! The lengths of what places see: square roots of the sums of squares.

use super::super::CHANNELS;
use super::super::band::{Band, Grid};
use crate::cpu::for_each_level;
use crate::{Lookout, Stopped};

/// Places whose squares are summed abreast: a line of the cache. And those between two looks whether to stop.
const ABREAST: usize = 4;
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
        outside: u8,
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
        for (at, squares) in squares.chunks_mut(PART).enumerate() {
            lookout.after(squares.len() * CHANNELS * blocks.len())?;
            sum_squares(&blocks, at * PART, outside.into(), squares);
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

    /// Those of a row.
    pub(super) fn row(&self, row: usize) -> &[f32] {
        let start = (row - self.first) * self.columns;
        self.all.get(start..start + self.columns).unwrap_or(&[])
    }
}

for_each_level! {
    fn sum_squares<>(blocks: &[&[u8]], first: usize, outside: i32, squares: &mut [f32]) -> () = sum_squares_body;
}

#[inline(always)]
fn sum_squares_body(blocks: &[&[u8]], first: usize, outside: i32, squares: &mut [f32]) {
    let (abreast, rest) = squares.as_chunks_mut::<ABREAST>();
    let done = first + ABREAST * abreast.len();
    for (at, squares) in abreast.iter_mut().enumerate() {
        *squares = squares_of(blocks, first + at * ABREAST, outside);
    }
    for (at, square) in rest.iter_mut().enumerate() {
        [*square] = squares_of(blocks, done + at, outside);
    }
}

/// Blocks whose squares are summed as integers, which are in no order: fewer than 2^16 squares of less than 2^16.
const EXACT: usize = 1 << 11;

/// The sums of squares of neighbours, from one on.
#[inline(always)]
fn squares_of<const N: usize>(blocks: &[&[u8]], first: usize, outside: i32) -> [f32; N] {
    let mut squares = [0.0; N];
    for blocks in blocks.chunks(EXACT) {
        let mut sums = [[0; CHANNELS]; N];
        for block in blocks {
            let seen = block.get(first * CHANNELS..).unwrap_or(&[]);
            let Some(seen) = seen.as_chunks::<CHANNELS>().0.first_chunk::<N>() else { continue };
            for (sums, seen) in sums.iter_mut().zip(seen) {
                for (sum, byte) in sums.iter_mut().zip(seen) {
                    let apart = i32::from(*byte) - outside;
                    *sum += (apart * apart) as u32;
                }
            }
        }
        for (square, sums) in squares.iter_mut().zip(&mut sums) {
            for half in [8, 4, 2, 1] {
                let (low, high) = sums.split_at_mut(half);
                for (low, high) in low.iter_mut().zip(high) {
                    *low += *high;
                }
            }
            let [all, ..] = *sums;
            *square += all as f32;
        }
    }
    squares
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
