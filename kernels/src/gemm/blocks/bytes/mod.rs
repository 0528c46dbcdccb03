//! Windows of images of bytes in blocks of channels: `[images, blocks, rows, columns, 16]`.
//!
//! Bytes in blocks are unsigned: those of int8 are moved by 128, and so are their zero points. Four channels of a place are
//! neighbours, which is what processors multiply at once. Sums wrap, so they are exact modulo 2^32 in any order. What is in
//! the channels beyond the last one meets weights of 0.

#![allow(unsafe_code)] // parts of one output are written by several threads, and tiles through pointers

#[cfg(test)]
mod tests;
mod tile;

use self::tile::{Four, Loops, Own, Tile, loops};
use super::super::block::Out;
use super::band::{Band, Grid, Source};
use super::dense::tiles;
use super::{CHANNELS, READ, len_of};
use crate::cpu::for_each_level;
use crate::windows::Axis;
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Multiplications that are worth a thread that is ready, and waking one.
const WORTH: (usize, usize) = (1 << 19, 1 << 21);

/// Weights from which on threads share filters rather than places: each reads only its own.
const MANY_WEIGHTS: usize = 1 << 18;

/// Channels that are multiplied at once.
const SOME: usize = 4;

/// What follows a sum: a function of the number of the first byte in the output, and of neighbours there.
pub type ByteTail<'a> = dyn Fn(usize, &mut [u8]) + Sync + 'a;

/// Images of bytes, and what is computed of their windows.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    /// Rows and columns.
    pub axes: &'a [Axis; 2],
    /// In blocks.
    pub images: &'a [u8],
    pub channels: usize,
    pub kind: Kind<'a>,
    pub tail: Option<&'a ByteTail<'a>>,
}

/// What is computed of windows.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// Sums of all channels, for so many filters.
    All(usize, Requantize<'a>),
    /// Sums of the channel of the filter's own number.
    Own(Requantize<'a>),
    /// The greatest byte of each channel. Padding is 0.
    Greatest,
}

/// `round((sum - outside * weights + bias) * factor) + zero`, at least `least`.
#[derive(Clone, Copy)]
pub struct Requantize<'a> {
    /// As [`pack_bytes`] packs them.
    pub weights: &'a [u32],
    /// The zero point of the images, which is around them.
    pub outside: u8,
    /// A number for each filter, or one for all.
    pub bias: Option<&'a [i32]>,
    /// As many, all finite.
    pub factors: &'a [f32],
    pub zero: u8,
    pub least: u8,
}

/// Numbers that filters have, of so many channels (of their own, if each filter sees but one) and taps.
pub fn packed_bytes(filters: usize, channels: usize, taps: usize) -> usize {
    len_of(filters, channels.div_ceil(SOME).saturating_mul(taps).saturating_add(1))
}

/// Packs filters `[filters, channels, taps]` of int8 for this processor; `flip` is combined with each byte first. If each
/// filter sees the channel of its own, there is one channel.
pub fn pack_bytes(
    bytes: &[u8],
    (filters, channels): (usize, usize),
    own: bool,
    flip: u8,
    out: &mut [u32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let taps = bytes.len() / filters.saturating_mul(channels).max(1);
    let steps = channels.div_ceil(SOME) * taps;
    let mut lookout = resources.lookout();
    let (mut out, mut first) = (out.get_mut(..packed_bytes(filters, channels, taps)).ok_or(Stopped::Misfit)?, 0);
    while !out.is_empty() {
        let two = filters - first > CHANNELS;
        let width = if own { loops::<Own>(false).filters } else { loops::<Four>(two).filters };
        let (group, rest) = out.split_at_mut((width * (steps + 1)).min(out.len()));
        group.fill(0);
        for lane in 0..width.min(filters - first) {
            lookout.after(2 * channels * taps)?;
            let of = (first + lane) * channels * taps;
            let row = bytes.get(of..of + channels * taps).ok_or(Stopped::Misfit)?;
            let mut sum = 0u32;
            for (at, byte) in row.iter().enumerate() {
                let (channel, tap, byte) = (at / taps, at % taps, byte ^ flip);
                sum = sum.wrapping_add(byte as i8 as u32);
                let step = channel / SOME * taps + tap;
                if let Some(quad) = group.get_mut(step * width + lane) {
                    *quad |= u32::from(byte) << (8 * (channel % SOME));
                }
            }
            group.get_mut(steps * width + lane).into_iter().for_each(|to| *to = sum);
        }
        (out, first) = (rest, first + width);
    }
    Ok(())
}

/// Windows that are divided among threads.
pub struct BytesPlan<'a> {
    bytes: Bytes<'a>,
    grid: Grid,
    /// For two blocks of filters, if there are such loops, and for one.
    loops: [Loops; 2],
    filters: usize,
    /// Steps of a sum.
    steps: usize,
    images: usize,
    threads: usize,
    /// Parts of the filters, each a number of groups.
    parts: usize,
    groups: usize,
}

impl<'a> Bytes<'a> {
    /// Divides the work on so many images among threads.
    pub fn plan(self, images: usize, resources: Resources<'_>) -> Result<BytesPlan<'a>, Stopped> {
        let taps = self.axes.iter().map(|axis| axis.kernel).fold(1, usize::saturating_mul);
        let (filters, steps, loops) = match self.kind {
            Kind::All(filters, _) => {
                let steps = self.channels.div_ceil(SOME).saturating_mul(taps);
                (filters, steps, [loops::<Four>(true), loops::<Four>(false)])
            }
            Kind::Own(_) | Kind::Greatest => (self.channels, taps, [loops::<Own>(false); 2]),
        };
        let positions = self.axes.iter().map(|axis| axis.output).fold(1, usize::saturating_mul);
        let weights = steps.saturating_mul(SOME).saturating_mul(filters);
        let work = weights.saturating_mul(positions.saturating_add(READ)).saturating_mul(images);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        let groups = filters.div_ceil(loops[0].filters);
        let by_filters = weights >= MANY_WEIGHTS && images < threads;
        let parts = if by_filters { threads.min(groups).max(1) } else { 1 };
        let bands = if parts > 1 { 1 } else { threads };
        let source = Source::Blocks(self.images);
        let grid = Grid::of(self.axes, self.channels, &source, bands).ok_or(Stopped::Misfit)?;
        Ok(BytesPlan { bytes: self, grid, loops, filters, steps, images, threads, parts, groups })
    }
}

/// Numbers for each filter.
struct Numbers<'a> {
    bias: &'a [u32],
    factors: &'a [f32],
}

impl BytesPlan<'_> {
    fn tables(&self) -> usize {
        self.steps.saturating_add(len_of(self.filters, 2))
    }

    /// Numbers of scratch memory.
    pub fn scratch(&self) -> usize {
        self.tables().saturating_add(self.room().saturating_mul(self.threads))
    }

    /// Those of a thread.
    fn room(&self) -> usize {
        self.grid.room().div_ceil(size_of::<u32>())
    }

    fn requantize(&self) -> Option<&Requantize<'_>> {
        match &self.bytes.kind {
            Kind::All(_, own) | Kind::Own(own) => Some(own),
            Kind::Greatest => None,
        }
    }

    /// Writes `[images, blocks of filters, rows, columns, 16]`.
    pub fn run(&self, out: &mut [u8], scratch: &mut [u32], resources: Resources<'_>) -> Result<(), Stopped> {
        let BytesPlan { bytes, grid, steps, images, filters, .. } = self;
        let [rows, columns] = bytes.axes;
        let each = len_of(*filters, rows.output.saturating_mul(columns.output));
        let fits = |own: &Requantize<'_>| {
            let counts = [own.factors.len(), own.bias.map_or(1, <[i32]>::len)];
            own.weights.len() == len_of(*filters, steps + 1)
                && counts.iter().all(|count| *count == 1 || *count == *filters)
        };
        let fits = out.len() == images.saturating_mul(each)
            && bytes.images.len() == images.saturating_mul(grid.image())
            && self.requantize().is_none_or(fits)
            && scratch.len() >= self.scratch();
        if !fits {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() {
            return Ok(());
        }
        let (tables, rooms) = scratch.split_at_mut(self.tables());
        let (offsets, numbers) = tables.split_at_mut(*steps);
        let some = if matches!(bytes.kind, Kind::All(..)) { SOME } else { CHANNELS };
        grid.offsets(some, offsets, &mut resources.lookout())?;
        let (bias, factors) = numbers.split_at_mut(len_of(*filters, 1));
        let factors: &mut [f32] = cast_slice_mut(factors);
        self.fill(bias, factors);
        let numbers = Numbers { bias, factors };
        let (offsets, bands, to) = (&*offsets, grid.bands(), Out::of(out));
        let outside = self.requantize().map_or(0, |own| own.outside);
        let rooms = match self.room() {
            0 => grid.rooms(&mut [], self.threads),
            room => rooms.chunks_exact_mut(room).take(self.threads).map(cast_slice_mut).collect(),
        };
        parallel::tasks(self.parts * images * bands, rooms, resources.stop, |room, at| {
            let (part, at) = (at / (images * bands), at % (images * bands));
            let (image, band) = (at / bands, grid.band(at % bands));
            let groups = part * self.groups / self.parts..(part + 1) * self.groups / self.parts;
            let mut lookout = resources.lookout();
            let seen = band.fill(&Source::Blocks(bytes.images), image, outside, room, &mut lookout)?;
            self.task(&Task { image, band, seen, offsets, numbers: &numbers }, groups, to, &mut lookout)
        })
    }

    /// Writes what is added to the sums of each filter, and their factors.
    fn fill(&self, bias: &mut [u32], factors: &mut [f32]) {
        let Some(own) = self.requantize() else { return };
        let filters = self.filters;
        let group = self.loops[0].filters;
        for (at, (bias, factors)) in bias.chunks_mut(group).zip(factors.chunks_mut(group)).enumerate() {
            let first = at * group;
            let width = if filters - first > CHANNELS { self.loops[0] } else { self.loops[1] }.filters;
            let sums = own.weights.get(first * (self.steps + 1) + self.steps * width..).unwrap_or(&[]);
            for (lane, ((bias, factor), sum)) in bias.iter_mut().zip(factors).zip(sums).enumerate() {
                let filter = first + lane;
                let number = own.bias.map_or(0, |all| all.get(filter).or(all.first()).map_or(0, |bias| *bias as u32));
                *bias = number.wrapping_sub(sum.wrapping_mul(own.outside.into()));
                *factor = own.factors.get(filter).or(own.factors.first()).copied().unwrap_or(0.0);
            }
        }
    }

    /// Computes groups of filters at the places of a band.
    fn task(
        &self,
        task: &Task<'_>,
        groups: Range<usize>,
        out: Out<u8>,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (BytesPlan { bytes, loops: [two, one], steps, filters, .. }, band) = (self, &task.band);
        let positions = bytes.axes.iter().map(|axis| axis.output).product::<usize>();
        for group in groups {
            let first = group * two.filters;
            let loops = if filters - first > CHANNELS { *two } else { *one };
            let start = (task.image * filters.div_ceil(CHANNELS) + first / CHANNELS) * positions;
            let block = if matches!(bytes.kind, Kind::All(..)) { 0 } else { first / CHANNELS * self.grid.block() };
            let weights = match self.requantize() {
                Some(own) => {
                    let at = first * (steps + 1);
                    Some(own.weights.get(at..at + loops.filters * steps).ok_or(Stopped::Misfit)?)
                }
                None => None,
            };
            for rows in band.parts() {
                for row in rows.clone() {
                    lookout.after(steps * loops.filters * band.columns.len() / SOME)?;
                    let group = Group { loops, weights, first, start, positions, block };
                    self.row(task, &group, row, out)?;
                }
                if let Some(tail) = bytes.tail {
                    for block in 0..loops.filters.div_ceil(CHANNELS) {
                        let first = start + block * positions + band.number(rows.start, band.columns.start);
                        let len = rows.len() * band.columns.len() * CHANNELS;
                        // SAFETY: neighbours in the output, which are this task's, and initialised by now.
                        let part = unsafe { std::slice::from_raw_parts_mut(out.at(first * CHANNELS), len) };
                        tail(first * CHANNELS, part);
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes the places of a row.
    fn row(&self, task: &Task<'_>, group: &Group<'_>, row: usize, out: Out<u8>) -> Result<(), Stopped> {
        let (Task { band, seen, numbers, .. }, Loops { filters, sums }) = (task, group.loops);
        let (Some(own), Some(weights)) = (self.requantize(), group.weights) else {
            let from = seen.get(group.block + band.place(row, band.columns.start)..).ok_or(Stopped::Misfit)?;
            let place = group.start + band.number(row, band.columns.start);
            // SAFETY: the places of the row are this task's. Memory may hold anything.
            let to = unsafe { std::slice::from_raw_parts_mut(out.at(place * CHANNELS), band.columns.len() * CHANNELS) };
            greatest(from, task.offsets, to);
            return Ok(());
        };
        let range = group.first..group.first + filters;
        let bias = numbers.bias.get(range.clone()).ok_or(Stopped::Misfit)?;
        let factors = numbers.factors.get(range).ok_or(Stopped::Misfit)?;
        for tile in tiles(band.columns.clone(), sums.len()) {
            let Some(sums) = sums.get(tile.len() - 1) else { continue };
            let place = group.start + band.number(row, tile.start);
            // SAFETY: offsets are those of the band, from whose places on they are in what is seen; weights and numbers are
            // those of the group, and the places of the output are this task's.
            unsafe {
                sums(&Tile {
                    image: seen.as_ptr().add(group.block + band.place(row, tile.start)),
                    offsets: task.offsets.as_ptr(),
                    weights: weights.as_ptr(),
                    steps: self.steps,
                    bias: bias.as_ptr(),
                    factors: factors.as_ptr(),
                    zero: own.zero.into(),
                    least: own.least.into(),
                    out: out.at(place * CHANNELS),
                    out_block: group.positions * CHANNELS,
                });
            }
        }
        Ok(())
    }
}

/// Filters that are computed together.
struct Group<'a> {
    loops: Loops,
    weights: Option<&'a [u32]>,
    /// The first filter.
    first: usize,
    /// The number of the first place of their first block, and the places of a block.
    start: usize,
    positions: usize,
    /// Where the channels are that they see.
    block: usize,
}

/// Places of an image, and what is needed there.
struct Task<'a> {
    image: usize,
    band: Band<'a>,
    seen: &'a [u8],
    offsets: &'a [u32],
    numbers: &'a Numbers<'a>,
}

for_each_level! {
    fn greatest<>(from: &[u8], offsets: &[u32], out: &mut [u8]) -> () = greatest_body;
}

#[inline(always)]
fn greatest_body(from: &[u8], offsets: &[u32], out: &mut [u8]) {
    for (place, out) in out.as_chunks_mut::<CHANNELS>().0.iter_mut().enumerate() {
        *out = [0; CHANNELS];
        for offset in offsets {
            let start = place * CHANNELS + *offset as usize;
            let Some(seen) = from.get(start..).and_then(|from| from.first_chunk::<CHANNELS>()) else { continue };
            for (value, byte) in out.iter_mut().zip(seen) {
                *value = (*value).max(*byte);
            }
        }
    }
}
