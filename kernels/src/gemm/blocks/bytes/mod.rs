//! Windows of images of bytes in blocks of channels: `[images, blocks, rows, columns, 16]`.
//!
//! Bytes in blocks are unsigned: those of int8 are moved by 128, and so are their zero points. Four channels of a place are
//! neighbours, which is what processors multiply at once. Sums wrap, so they are exact modulo 2^32 in any order. What is in
//! the channels beyond the last one meets weights of 0.

#![allow(unsafe_code)] // parts of one output are written by several threads, and tiles through pointers

mod lengths;
mod quantize;
mod settle;
#[cfg(test)]
mod tests;
mod tile;

use self::lengths::Lengths;
use self::quantize::{Doubts, Limits, Numbers};
use self::settle::{Dequantized, Places, Settler, roundings, settler, slack, slope};
use self::tile::{Four, Loops, Own, Tile, loops};
use super::super::block::Out;
use super::band::{Band, Grid, Source};
use super::dense::tiles;
use super::{CHANNELS, READ, len_of};
use crate::cpu::for_each_level;
use crate::windows::Axis;
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::{cast_slice, cast_slice_mut};
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

/// `round((sum - outside * weights) * scales + bias / scale of the output) + zero`, at least `least`.
#[derive(Clone, Copy)]
pub struct Requantize<'a> {
    /// As [`FilterBytes::pack`] packs them.
    pub weights: &'a [u32],
    /// The zero point of the images, which is around them.
    pub outside: u8,
    /// Of the images, and of the output.
    pub scales: [f32; 2],
    /// Of the weights: one for each filter, or one for all.
    pub of_filters: &'a [f32],
    /// As many numbers. What becomes of them and of scales must be finite.
    pub bias: Option<&'a [f32]>,
    pub zero: u8,
    pub least: u8,
    /// Whether the bytes are those that the sums of floats give, `round((sum + bias) / scale of the output) + zero`: images and
    /// weights become floats first, and are summed in the order of a [product](super::super). Else they are nearly
    /// those.
    pub as_floats: bool,
}

/// Filters of int8.
#[derive(Clone, Copy)]
pub struct FilterBytes<'a> {
    pub bytes: &'a [u8],
    /// Filters, channels of each (1 if it sees the channel of its own), and taps.
    pub sizes: [usize; 3],
    pub own: bool,
    /// Whether the filters are the last axis, not the first one.
    pub turned: bool,
    /// What each byte is combined with first.
    pub flip: u8,
}

impl FilterBytes<'_> {
    /// Numbers of packed filters.
    pub fn packed(&self) -> usize {
        let [filters, channels, taps] = self.sizes;
        len_of(filters, channels.div_ceil(SOME).saturating_mul(taps).saturating_add(ROWS))
    }

    /// Packs the filters for this processor.
    pub fn pack(&self, out: &mut [u32], resources: Resources<'_>) -> Result<(), Stopped> {
        let FilterBytes { bytes, sizes: [filters, channels, taps], own, turned, flip } = *self;
        let (steps, terms) = (channels.div_ceil(SOME) * taps, channels * taps);
        if bytes.len() != filters * terms {
            return Err(Stopped::Misfit);
        }
        let [next, apart] = if turned { [1, filters] } else { [terms, 1] };
        let mut lookout = resources.lookout();
        let (mut out, mut first) = (out.get_mut(..self.packed()).ok_or(Stopped::Misfit)?, 0);
        while !out.is_empty() {
            let two = filters - first > CHANNELS;
            let width = if own { loops::<Own>(false).filters } else { loops::<Four>(two).filters };
            let (group, rest) = out.split_at_mut((width * (steps + ROWS)).min(out.len()));
            group.fill(0);
            for lane in 0..width.min(filters - first) {
                lookout.after(2 * terms)?;
                let row = bytes.get((first + lane) * next..).unwrap_or(&[]).iter().step_by(apart);
                let (mut sum, mut squares, mut sizes) = (0u32, 0f64, 0f64);
                for (at, byte) in row.take(terms).enumerate() {
                    let (channel, tap, byte) = (at / taps, at % taps, byte ^ flip);
                    sum = sum.wrapping_add(byte as i8 as u32);
                    let rounded = roundings(at, terms) as f64 * f64::from(byte as i8);
                    (squares, sizes) = (squares + rounded * rounded, sizes + rounded.abs());
                    let step = channel / SOME * taps + tap;
                    if let Some(quad) = group.get_mut(step * width + lane) {
                        *quad |= u32::from(byte) << (8 * (channel % SOME));
                    }
                }
                let length = if own { sizes } else { squares.sqrt() };
                for (row, number) in [sum, (length as f32).to_bits()].into_iter().enumerate() {
                    group.get_mut((steps + row) * width + lane).into_iter().for_each(|to| *to = number);
                }
            }
            (out, first) = (rest, first + width);
        }
        Ok(())
    }
}

/// Rows after the steps of packed filters: sums of weights, and the lengths that [`slope`] reads.
const ROWS: usize = 2;

/// Windows that are divided among threads.
pub struct BytesPlan<'a> {
    bytes: Bytes<'a>,
    grid: Grid,
    /// For two blocks of filters, if there are such loops, and for one.
    loops: [Loops; 2],
    settler: Settler,
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
        let (filters, steps, loops, settler) = match self.kind {
            Kind::All(filters, _) => {
                let steps = self.channels.div_ceil(SOME).saturating_mul(taps);
                (filters, steps, [loops::<Four>(true), loops::<Four>(false)], settler::<Four>())
            }
            Kind::Own(_) | Kind::Greatest => (self.channels, taps, [loops::<Own>(false); 2], settler::<Own>()),
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
        Ok(BytesPlan { bytes: self, grid, loops, settler, filters, steps, images, threads, parts, groups })
    }
}

/// Numbers for each filter: as [`Numbers`] has them, then the scales of weights, and a bias.
const TABLES: usize = 7;

/// Where they are.
struct Filters<'a> {
    biases: &'a [u32],
    factors: &'a [f32],
    addends: &'a [f32],
    slopes: &'a [f32],
    slacks: &'a [f32],
    scales: &'a [f32],
    bias: &'a [f32],
}

impl<'a> Filters<'a> {
    /// In a room for so many filters, which are those of whole blocks.
    fn of(room: &'a [u32], count: usize) -> Filters<'a> {
        let table = |at: usize| room.get(at * count..(at + 1) * count).unwrap_or(&[]);
        let floats = |at: usize| cast_slice(table(at));
        Filters {
            biases: table(0),
            factors: floats(1),
            addends: floats(2),
            slopes: floats(3),
            slacks: floats(4),
            scales: floats(5),
            bias: floats(6),
        }
    }

    fn numbers(&self) -> Numbers {
        Numbers {
            biases: self.biases.as_ptr(),
            factors: self.factors.as_ptr(),
            addends: self.addends.as_ptr(),
            slopes: self.slopes.as_ptr(),
            slacks: self.slacks.as_ptr(),
        }
    }
}

impl BytesPlan<'_> {
    fn tables(&self) -> usize {
        self.steps.saturating_add(len_of(self.filters, TABLES))
    }

    /// Numbers of scratch memory.
    pub fn scratch(&self) -> usize {
        self.tables().saturating_add(self.room().saturating_mul(self.threads))
    }

    /// Those of a thread.
    fn room(&self) -> usize {
        self.grid.room().div_ceil(size_of::<u32>()).saturating_add(self.lengths())
    }

    /// Those of them for [`Lengths`].
    fn lengths(&self) -> usize {
        if self.requantize().is_some_and(|own| own.as_floats) { Lengths::room(&self.grid) } else { 0 }
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
            let counts = [own.of_filters.len(), own.bias.map_or(1, <[f32]>::len)];
            own.weights.len() == len_of(*filters, steps + ROWS)
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
        self.fill(numbers);
        let (offsets, own) = (&*offsets, Filters::of(numbers, len_of(*filters, 1)));
        let (bands, to) = (grid.bands(), Out::of(out));
        let outside = self.requantize().map_or(0, |own| own.outside);
        let dequantized = self.dequantized();
        let rooms = match self.room() {
            0 => (0..self.threads).map(|_| Default::default()).collect(),
            room => rooms.chunks_exact_mut(room).take(self.threads).collect::<Vec<&mut [u32]>>(),
        };
        parallel::tasks(self.parts * images * bands, rooms, resources.stop, |room, at| {
            let (part, at) = (at / (images * bands), at % (images * bands));
            let (image, band) = (at / bands, grid.band(at % bands));
            let groups = part * self.groups / self.parts..(part + 1) * self.groups / self.parts;
            let mut lookout = resources.lookout();
            let (lengths, room) = room.split_at_mut(self.lengths());
            let seen = band.fill(&Source::Blocks(bytes.images), image, outside, cast_slice_mut(room), &mut lookout)?;
            let lengths = match self.requantize().filter(|own| own.as_floats) {
                Some(_) => Some(self.measure(&band, seen, offsets, cast_slice_mut(lengths), &mut lookout)?),
                None => None,
            };
            let task = Task { image, band, seen, offsets, filters: &own, dequantized: &dequantized, lengths };
            self.task(&task, groups, to, &mut lookout)
        })
    }

    /// What each byte of the images is.
    fn dequantized(&self) -> [f32; 256] {
        let (outside, scale) = self.requantize().map_or((0, 0.0), |own| (own.outside, own.scales[0]));
        std::array::from_fn(|byte| (byte as f32 - f32::from(outside)) * scale)
    }

    /// The lengths of what the places of a band see.
    fn measure<'s>(
        &self,
        band: &Band<'_>,
        seen: &[u8],
        offsets: &[u32],
        room: &'s mut [f32],
        lookout: &mut Lookout<'_>,
    ) -> Result<Lengths<'s>, Stopped> {
        let outside = self.requantize().map_or(0, |own| own.outside);
        match self.bytes.kind {
            Kind::All(..) => {
                let taps = self.bytes.axes.iter().map(|axis| axis.kernel).product::<usize>();
                Lengths::of(band, (seen, self.grid.block()), offsets.get(..taps).unwrap_or(&[]), outside, room, lookout)
            }
            // One for all: no byte is further from the zero point.
            _ => Ok(Lengths::all(band, outside.max(255 - outside).into(), room)),
        }
    }

    /// Writes the numbers of each filter.
    fn fill(&self, room: &mut [u32]) {
        let Some(own) = self.requantize() else { return };
        let (filters, group, count) = (self.filters, self.loops[0].filters, len_of(self.filters, 1));
        for filter in 0..filters {
            let first = filter / group * group;
            let width = if filters - first > CHANNELS { self.loops[0] } else { self.loops[1] }.filters;
            let packed = own.weights.get(first * (self.steps + ROWS) + self.steps * width + filter - first..);
            let row = |at: usize| packed.and_then(|rows| rows.get(at * width)).copied().unwrap_or(0);
            let of = |all: &[f32]| all.get(filter).or(all.first()).copied().unwrap_or(0.0);
            let (scale, bias, [images, out]) = (of(own.of_filters), own.bias.map_or(0.0, of), own.scales);
            let factor = (f64::from(scale) * f64::from(images) / f64::from(out)) as f32;
            let addend = (f64::from(bias) / f64::from(out)) as f32;
            let floats = [factor, addend, slope(factor, f32::from_bits(row(1))), slack(addend), scale, bias];
            let less = row(0).wrapping_mul(own.outside.into()).wrapping_neg();
            for (table, number) in [less].into_iter().chain(floats.map(f32::to_bits)).enumerate() {
                room.get_mut(table * count + filter).into_iter().for_each(|to| *to = number);
            }
        }
        let behind = room.chunks_exact_mut(count.max(1)).filter_map(|table| table.get_mut(filters..));
        behind.for_each(|table| table.fill(0));
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
        let mut doubts = Doubts::new();
        for group in groups {
            let first = group * two.filters;
            let loops = if filters - first > CHANNELS { *two } else { *one };
            let start = (task.image * filters.div_ceil(CHANNELS) + first / CHANNELS) * positions;
            let block = if matches!(bytes.kind, Kind::All(..)) { 0 } else { first / CHANNELS * self.grid.block() };
            let weights = match self.requantize() {
                Some(own) => {
                    let at = first * (steps + ROWS);
                    Some(own.weights.get(at..at + loops.filters * steps).ok_or(Stopped::Misfit)?)
                }
                None => None,
            };
            let group = Group { loops, weights, first, start, positions, block };
            for rows in band.parts() {
                doubts.clear();
                for row in rows.clone() {
                    lookout.after(steps * loops.filters * band.columns.len() / SOME)?;
                    self.row(task, &group, (&rows, row), &mut doubts, out)?;
                }
                if !doubts.is_empty() {
                    self.settle(task, &group, &rows, &doubts, (out, &mut *lookout))?;
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

    /// Computes the places of a row, one of a part.
    fn row(
        &self,
        task: &Task<'_>,
        group: &Group<'_>,
        (rows, row): (&Range<usize>, usize),
        doubts: &mut Doubts,
        out: Out<u8>,
    ) -> Result<(), Stopped> {
        let (Task { band, seen, .. }, sums) = (task, group.loops.sums);
        let (Some(own), Some(weights)) = (self.requantize(), group.weights) else {
            let from = seen.get(group.block + band.place(row, band.columns.start)..).ok_or(Stopped::Misfit)?;
            let place = group.start + band.number(row, band.columns.start);
            // SAFETY: the places of the row are this task's. Memory may hold anything.
            let to = unsafe { std::slice::from_raw_parts_mut(out.at(place * CHANNELS), band.columns.len() * CHANNELS) };
            greatest(from, task.offsets, to);
            return Ok(());
        };
        let before = (row - rows.start) * band.columns.len();
        for tile in tiles(band.columns.clone(), sums.len()) {
            let Some(sums) = sums.get(tile.len() - 1) else { continue };
            let (place, first) = (group.start + band.number(row, tile.start), before + tile.start - band.columns.start);
            let lengths = match &task.lengths {
                Some(lengths) => {
                    lengths.row(row).get(tile.start - band.columns.start..).ok_or(Stopped::Misfit)?.as_ptr()
                }
                None => std::ptr::null(),
            };
            // SAFETY: offsets are those of the band, from whose places on they are in what is seen; weights and numbers are
            // those of the group, there is a length for each place, and the places of the output are this task's. Places of a
            // part that have doubts are no more than fit.
            unsafe {
                sums(&Tile {
                    image: seen.as_ptr().add(group.block + band.place(row, tile.start)),
                    offsets: task.offsets.as_ptr(),
                    weights: weights.as_ptr(),
                    steps: self.steps,
                    numbers: task.filters.numbers().from(group.first),
                    limits: limits(own),
                    out: out.at(place * CHANNELS),
                    out_block: group.positions * CHANNELS,
                    lengths,
                    doubts: &mut *doubts,
                    first,
                });
            }
        }
        Ok(())
    }

    /// Makes bytes of a part that are in doubt those of floats.
    fn settle(
        &self,
        task: &Task<'_>,
        group: &Group<'_>,
        rows: &Range<usize>,
        doubts: &Doubts,
        (out, lookout): (Out<u8>, &mut Lookout<'_>),
    ) -> Result<(), Stopped> {
        let (Task { band, seen, filters, .. }, Settler { lanes, settle }) = (task, self.settler);
        let (Some(own), Some(weights)) = (self.requantize(), group.weights) else { return Ok(()) };
        let columns = band.columns.len().max(1);
        let places = |place: usize| band.place(rows.start + place / columns, band.columns.start + place % columns);
        let (first, channels) = (band.number(rows.start, band.columns.start), self.channels());
        for vector in 0..group.loops.filters / lanes {
            let lane = vector * lanes;
            let filter = group.first + lane;
            lookout.after(doubts.of(vector).count() * self.steps * lanes * SOME)?;
            // SAFETY: as for tiles: the vector is one of the group's.
            unsafe {
                let of = Places {
                    image: seen.as_ptr().add(group.block),
                    places: &places,
                    offsets: task.offsets.as_ptr(),
                    weights: weights.as_ptr().add(lane),
                    stride: group.loops.filters,
                    lane: lane % CHANNELS,
                    steps: self.steps,
                    taps: self.steps / channels.div_ceil(SOME),
                    channels,
                    dequantized: Dequantized { outside: own.outside, scale: own.scales[0], all: task.dequantized },
                    scales: filters.scales.as_ptr().add(filter),
                    biases: filters.bias.as_ptr().add(filter),
                    by: own.scales[1],
                    numbers: filters.numbers().from(filter),
                    limits: limits(own),
                    out: out.at((group.start + lane / CHANNELS * group.positions + first) * CHANNELS + lane % CHANNELS),
                };
                settle(&of, doubts, vector);
            }
        }
        Ok(())
    }

    /// Channels that a filter sees.
    fn channels(&self) -> usize {
        if matches!(self.bytes.kind, Kind::All(..)) { self.bytes.channels } else { 1 }
    }
}

fn limits(own: &Requantize<'_>) -> Limits {
    Limits { zero: own.zero.into(), least: own.least.into() }
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
    filters: &'a Filters<'a>,
    dequantized: &'a [f32; 256],
    /// If bytes are to be those of floats.
    lengths: Option<Lengths<'a>>,
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
