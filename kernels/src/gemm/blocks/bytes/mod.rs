//! Windows of images of bytes in blocks of channels: `[images, blocks, rows, columns, 16]`.
//!
//! Bytes in blocks are unsigned: those of int8 are moved by 128, and so are their zero points. Four channels of a place are
//! neighbours, which is what processors multiply at once. Sums wrap, so they are exact modulo 2^32 in any order. What is in
//! the channels beyond the last one meets weights of 0.

#![allow(unsafe_code)] // parts of one output are written by several threads, and tiles through pointers

mod filters;
mod lengths;
mod matrix;
mod quantize;
mod settle;
#[cfg(test)]
mod tests;
mod tile;

pub use self::filters::{FilterBytes, Scales, Scaling};

use self::filters::{SOME, Steps, loops_of_groups};
use self::lengths::Lengths;
use self::matrix::Rows;
use self::quantize::{Numbers, PLACES};
use self::settle::{Common, Open};
use self::tile::{Loops, Own, Room, Tile, loops};
use super::super::block::Out;
use super::band::{Band, ELEMENTS, Grid, Source};
use super::dense::tiles;
use super::groups::{HALF, are_quarters, begin_late, first_channels, have_blocks, share_blocks};
use super::{CHANNELS, READ, len_of};
use crate::cpu::{LINE, for_each_level};
use crate::windows::Axis;
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Multiplications that are worth a thread that is ready, and waking one.
const WORTH: (usize, usize) = (1 << 19, 1 << 21);

/// Weights from which on threads share filters rather than places: each reads only its own.
const MANY_WEIGHTS: usize = 1 << 18;

/// Bytes that a band sees, about, and those of its rows, if sums are those of matrices.
const NEAR: usize = ELEMENTS * size_of::<f32>();
const ROWS: usize = 4 * NEAR;

/// Terms of which each counts as one that is furthest from the zero point: bytes are seldom in doubt then.
const FEW: usize = 32;

/// Bytes that wait for what follows sums, about: the nearest cache still has them, and many doubts are settled together.
const WAITING: usize = 1 << 15;

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
    /// Of sums of all channels: each is one of its group alone, and groups [have](super::have_blocks) whole blocks or
    /// [share](super::share_blocks) them.
    pub groups: usize,
    pub kind: Kind<'a>,
    pub tail: Option<&'a ByteTail<'a>>,
}

/// What is computed of windows.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// Sums of all channels, or of those of a group, for so many filters.
    All(usize, Requantize<'a>),
    /// Sums of the channel of the filter's own number.
    Own(Requantize<'a>),
    /// The greatest byte of each channel. Padding is 0.
    Greatest,
}

/// Sums that become bytes.
#[derive(Clone, Copy)]
pub struct Requantize<'a> {
    /// As [`FilterBytes::pack`] packs them, with the same scaling.
    pub weights: &'a [u32],
    pub scaling: Scaling<'a>,
}

/// Windows that are divided among threads.
pub struct BytesPlan<'a> {
    bytes: Bytes<'a>,
    grid: Grid,
    /// For two blocks of filters, if there are such loops, and for one.
    loops: [Loops; 2],
    filters: usize,
    steps: Steps,
    /// Offsets before those of a group that begins in the middle of a block, if one does.
    late: Option<usize>,
    images: usize,
    threads: usize,
    /// Parts of the filters, each a number of groups.
    parts: usize,
    groups: usize,
}

impl<'a> Bytes<'a> {
    /// Channels of a group.
    fn of_each(&self) -> usize {
        self.channels / self.groups.max(1)
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).fold(1, usize::saturating_mul)
    }

    /// Whether each filter sees a quarter of a block.
    fn are_quarters(&self) -> bool {
        matches!(self.kind, Kind::All(filters, _) if are_quarters(self.channels, filters, self.groups))
    }

    /// Divides the work on so many images among threads.
    pub fn plan(self, images: usize, resources: Resources<'_>) -> Result<BytesPlan<'a>, Stopped> {
        let taps = self.taps();
        let (filters, steps, loops) = match self.kind {
            Kind::All(filters, own) => {
                let steps = Steps::of([filters, self.of_each(), taps], self.groups, false, own.scaling.is_of_floats());
                (filters, steps, loops_of_groups(self.channels, filters, self.groups))
            }
            Kind::Own(_) | Kind::Greatest => {
                let as_floats = matches!(self.kind, Kind::Own(own) if own.scaling.is_of_floats());
                let steps = Steps::of([self.channels, 1, taps], 1, true, as_floats);
                let loops = match self.kind {
                    Kind::Own(own) => own.scaling.own_loops(),
                    _ => loops::<Own>(false),
                };
                (self.channels, steps, [loops; 2])
            }
        };
        let positions = self.axes.iter().map(|axis| axis.output).fold(1, usize::saturating_mul);
        let weights = steps.count.saturating_mul(SOME).saturating_mul(filters);
        let work = weights.saturating_mul(positions.saturating_add(READ)).saturating_mul(images);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        let groups = filters.div_ceil(loops[0].filters);
        let by_filters = weights >= MANY_WEIGHTS && images < threads;
        let parts = if by_filters { threads.min(groups).max(1) } else { 1 };
        let bands = if parts > 1 { 1 } else { threads };
        let source = Source::Blocks(self.images);
        // As many bytes as those of floats. Rows of matrices are taken for what is seen, as they take more.
        let near = if steps.flat { (ROWS / taps).min(NEAR) } else { NEAR };
        let grid = Grid::of(&Axis::of_slice(*self.axes), self.channels, &source, near, bands, threads)
            .ok_or(Stopped::Misfit)?;
        let begin_late = begin_late(self.channels, filters, self.groups);
        let late = begin_late.then(|| taps.saturating_mul(HALF / SOME));
        Ok(BytesPlan { bytes: self, grid, loops, filters, steps, late, images, threads, parts, groups })
    }
}

impl BytesPlan<'_> {
    fn tables(&self) -> usize {
        // The offsets of steps are made of those of quads, which are no more; of rows, those of taps alone are needed.
        let (count, late) = (self.steps.count, self.late.unwrap_or(0));
        let taps = if self.steps.flat { self.bytes.taps() } else { 0 };
        count.saturating_mul(if self.late.is_some() { 3 } else { 2 }).saturating_add(late.max(taps))
    }

    /// Numbers of scratch memory.
    pub fn scratch(&self) -> usize {
        self.tables().saturating_add(self.room().saturating_mul(self.threads))
    }

    /// Those of a thread.
    fn room(&self) -> usize {
        let others = self.lengths().saturating_add(self.rows());
        self.grid.room().div_ceil(size_of::<u32>()).saturating_add(others)
    }

    /// Those of them for [`Rows`].
    fn rows(&self) -> usize {
        if self.steps.flat {
            Rows::room(&self.grid, self.bytes.channels, self.bytes.taps()).div_ceil(size_of::<u32>())
        } else {
            0
        }
    }

    /// Those of them for [`Lengths`].
    fn lengths(&self) -> usize {
        if self.requantize().is_some_and(|own| own.scaling.is_of_floats()) { Lengths::room(&self.grid) } else { 0 }
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
        let fits = |own: &Requantize<'_>| own.weights.len() == len_of(*filters, steps.count + steps.rows());
        let fits = out.len() == images.saturating_mul(each)
            && bytes.images.len() == images.saturating_mul(grid.image())
            && self.requantize().is_none_or(fits)
            && (have_blocks(bytes.channels, *filters, bytes.groups)
                || share_blocks(bytes.channels, *filters, bytes.groups))
            && scratch.len() >= self.scratch();
        if !fits {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() {
            return Ok(());
        }
        let (tables, rooms) = scratch.split_at_mut(self.tables());
        let (early, rest) = tables.split_at_mut(steps.count);
        let (late, of_quads) = rest.split_at_mut(if self.late.is_some() { steps.count } else { 0 });
        let some = if matches!(bytes.kind, Kind::All(..)) { SOME } else { CHANNELS };
        let of_quads = if self.steps.flat { of_quads.get_mut(..bytes.taps()).unwrap_or(&mut []) } else { of_quads };
        grid.offsets(some, of_quads, &mut resources.lookout())?;
        if self.steps.flat {
            early.iter_mut().zip((0..).step_by(SOME)).for_each(|(to, offset)| *to = offset);
        } else {
            steps.spread(of_quads, early);
            steps.spread(of_quads.get(self.late.unwrap_or(0)..).unwrap_or(&[]), late);
        }
        let (offsets, bands, to): ([&[u32]; 2], _, _) = ([early, late], grid.bands(), Out::of(out));
        let taps = of_quads.get(..bytes.taps()).unwrap_or(&[]);
        let outside = self.requantize().map_or(0, |own| own.scaling.outside);
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
            let (rows, room) = room.split_at_mut(self.rows());
            let seen = band.fill(&Source::Blocks(bytes.images), image, outside, cast_slice_mut(room), &mut lookout)?;
            let lengths = match self.requantize().filter(|own| own.scaling.is_of_floats()) {
                Some(_) => Some(self.measure(&band, seen, taps, cast_slice_mut(lengths), &mut lookout)?),
                None => None,
            };
            let rows = match self.steps.flat {
                true => {
                    let (seen, taps) = ((seen, grid.block()), (bytes.channels, taps));
                    Some(Rows::write(&band, seen, taps, cast_slice_mut(rows), &mut lookout)?)
                }
                false => None,
            };
            let task = Task { image, band, seen, offsets, lengths, rows };
            self.task(&task, groups, to, &mut lookout)
        })
    }

    /// The lengths of what the places of a band see.
    fn measure<'s>(
        &self,
        band: &Band<'_>,
        seen: &[u8],
        taps: &[u32],
        room: &'s mut [f32],
        lookout: &mut Lookout<'_>,
    ) -> Result<Lengths<'s>, Stopped> {
        let outside = self.requantize().map_or(0, |own| own.scaling.outside);
        let (terms, furthest) = (self.bytes.of_each() * taps.len(), outside.max(255 - outside).into());
        match self.bytes.kind {
            Kind::All(..) if terms > FEW && self.bytes.groups <= 1 => {
                let seen = (seen, self.grid.block());
                Lengths::of(band, seen, taps, (self.bytes.channels, outside, self.loops[0].squares), room, lookout)
            }
            // No byte is further from the zero point: of few, that is near enough. Each group would have its own.
            Kind::All(..) => Ok(Lengths::all(band, furthest * (terms as f32).sqrt(), room)),
            _ => Ok(Lengths::all(band, furthest, room)),
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
        let (mut room, mut waiting) = (Room::new(), Waiting::default());
        for group in groups {
            let first = group * two.filters;
            let loops = if filters - first > CHANNELS { *two } else { *one };
            let start = (task.image * filters.div_ceil(CHANNELS) + first / CHANNELS) * positions;
            let channels = match bytes.kind {
                Kind::All(..) => first_channels(bytes.channels, *filters, bytes.groups, first),
                _ => [first; 2],
            };
            let halves = channels.map(|channel| (self.grid.plane_of(channel), self.grid.lane_of(channel) > 0));
            let rows = steps.count + steps.rows();
            let weights = match self.requantize() {
                Some(own) => {
                    Some(own.weights.get(first * rows..(first + loops.filters) * rows).ok_or(Stopped::Misfit)?)
                }
                None => None,
            };
            let group = Group { loops, weights, start, positions, halves };
            for rows in band.parts(PLACES) {
                if task.rows.is_some() {
                    lookout.after(steps.count * loops.filters * rows.len() * band.columns.len() / SOME)?;
                    self.matrices(task, &group, &rows, &mut room, out)?;
                } else {
                    for row in rows.clone() {
                        lookout.after(steps.count * loops.filters * band.columns.len() / SOME)?;
                        self.row(task, &group, (&rows, row), &mut room, out)?;
                    }
                }
                self.open(task, &group, &rows, (&mut room, &mut waiting), (out, &mut *lookout))?;
                if bytes.tail.is_some() {
                    let len = rows.len() * band.columns.len() * CHANNELS;
                    for block in 0..loops.filters.div_ceil(CHANNELS) {
                        let first = start + block * positions + band.number(rows.start, band.columns.start);
                        waiting.parts.push(first * CHANNELS..first * CHANNELS + len);
                        waiting.bytes += len;
                    }
                    if waiting.bytes >= WAITING {
                        self.finish(task, &mut waiting, (out, &mut *lookout))?;
                    }
                }
            }
        }
        self.finish(task, &mut waiting, (out, lookout))
    }

    /// Settles what is in doubt, and does what follows the sums.
    fn finish(
        &self,
        task: &Task<'_>,
        waiting: &mut Waiting,
        (out, lookout): (Out<u8>, &mut Lookout<'_>),
    ) -> Result<(), Stopped> {
        self.settle(task, waiting, lookout)?;
        waiting.bytes = 0;
        for part in waiting.parts.drain(..) {
            let Some(tail) = self.bytes.tail else { continue };
            // SAFETY: neighbours in the output, which are this task's, and initialised by now.
            tail(part.start, unsafe { std::slice::from_raw_parts_mut(out.at(part.start), part.len()) });
        }
        Ok(())
    }

    /// Computes the places of a row, one of a part.
    fn row(
        &self,
        task: &Task<'_>,
        group: &Group<'_>,
        (rows, row): (&Range<usize>, usize),
        room: &mut Room,
        out: Out<u8>,
    ) -> Result<(), Stopped> {
        let (Task { band, seen, .. }, loops) = (task, group.loops);
        let (Some(own), Some(weights)) = (self.requantize(), group.weights) else {
            let [(block, _), _] = group.halves;
            let from = seen.get(block + band.place(row, band.columns.start)..).ok_or(Stopped::Misfit)?;
            let place = group.start + band.number(row, band.columns.start);
            // SAFETY: the places of the row are this task's. Memory may hold anything.
            let to = unsafe { std::slice::from_raw_parts_mut(out.at(place * CHANNELS), band.columns.len() * CHANNELS) };
            greatest(from, task.offsets[0], to);
            return Ok(());
        };
        let before = (row - rows.start) * band.columns.len();
        let most = loops.most(&self.steps);
        let (tiles_before, count) = band.among(row, most);
        let mut number = tiles_before;
        for together in tiles(band.columns.clone(), loops.together(&self.steps)) {
            let start = together.start;
            let (place, first) = (group.start + band.number(row, start), before + start - band.columns.start);
            let lengths = match &task.lengths {
                Some(lengths) => lengths.from(row).get(start - band.columns.start..).ok_or(Stopped::Misfit)?.as_ptr(),
                None => std::ptr::null(),
            };
            // SAFETY: offsets are those of the band, from whose places on they are in what is seen; weights and numbers are
            // those of the group, there is a length for each place, and the places of the output are this task's. Places of a
            // part that have doubts are no more than fit.
            unsafe {
                let mut tile = Tile {
                    image: group.halves.map(|(block, _)| seen.as_ptr().add(block + band.place(row, start))),
                    offsets: group.halves.map(|(_, late)| of_half(task.offsets, late).as_ptr()),
                    lengths,
                    first,
                    ..self.tile((own, group, weights), count, out.at(place * CHANNELS))
                };
                let (image, next) = (tile.image, tile.next);
                for places in tiles(together.clone(), most) {
                    tile.at = places.start - start;
                    tile.image = image.map(|image| image.add(tile.at * CHANNELS));
                    tile.next = next.wrapping_add(number * self.steps.count * tile.pace);
                    loops.run(places.len(), &tile, room);
                    number += 1;
                }
                (loops.store)(&tile, together.len(), room);
            }
        }
        Ok(())
    }

    /// Computes the places of a part by matrices.
    fn matrices(
        &self,
        task: &Task<'_>,
        group: &Group<'_>,
        rows: &Range<usize>,
        room: &mut Room,
        out: Out<u8>,
    ) -> Result<(), Stopped> {
        let (Task { band, .. }, loops) = (task, group.loops);
        let (own, weights) = self.requantize().zip(group.weights).ok_or(Stopped::Misfit)?;
        let (seen, matrices) = task.rows.as_ref().zip(loops.matrices).ok_or(Stopped::Misfit)?;
        let number = |row: usize| (row - band.rows.start) * band.columns.len();
        let places = number(rows.start)..number(rows.end);
        let pairs = |places: usize| places.div_ceil(2 * matrix::MOST);
        let lengths = task.lengths.as_ref().map_or(std::ptr::null(), |lengths| lengths.from(rows.start).as_ptr());
        // SAFETY: rows, weights and numbers are those of the places and of the group; there is a length for each place, and the
        // places of the output are this task's. Places of a part that have doubts are no more than fit.
        unsafe {
            let to = out.at((group.start + band.number(rows.start, band.columns.start)) * CHANNELS);
            let mut tile = Tile { lengths, ..self.tile((own, group, weights), pairs(number(band.rows.end)), to) };
            tile.next = tile.next.wrapping_add(pairs(places.start) * self.steps.count * tile.pace);
            matrices(&tile, seen, places, room);
        }
        Ok(())
    }

    /// What is the same for all tiles of a group, from a place of the output on. Each of the `count` tiles of the band fetches
    /// some of what the next group reads: its weights follow.
    fn tile(
        &self,
        (own, group, weights): (&Requantize<'_>, &Group<'_>, &[u32]),
        count: usize,
        out: *mut u8,
    ) -> Tile<'_> {
        let filters = group.loops.filters;
        Tile {
            image: [std::ptr::null(); 2],
            offsets: [std::ptr::null(); 2],
            weights: weights.as_ptr(),
            steps: self.steps.count,
            next: weights.as_ptr_range().end.cast(),
            pace: (filters * size_of::<u32>()).div_ceil(count.max(1)).min(LINE),
            checks: &self.steps.checks,
            numbers: self.numbers(group, weights, 0),
            zero: own.scaling.zero.into(),
            out,
            out_block: group.positions * CHANNELS,
            lengths: std::ptr::null(),
            filters,
            first: 0,
            at: 0,
        }
    }

    /// Takes the doubts of a part, and settles those that fill a vector.
    fn open(
        &self,
        task: &Task<'_>,
        group: &Group<'_>,
        rows: &Range<usize>,
        (room, waiting): (&mut Room, &mut Waiting),
        (out, lookout): (Out<u8>, &mut Lookout<'_>),
    ) -> Result<(), Stopped> {
        let Task { band, seen, .. } = task;
        let (Some(weights), loops) = (group.weights, &group.loops) else { return Ok(()) };
        if waiting.apart != loops.filters {
            self.settle(task, waiting, lookout)?;
            waiting.apart = loops.filters;
        }
        let (most, columns) = (2 * loops.lanes, band.columns.len().max(1));
        waiting.open.reserve(most - waiting.open.len());
        let (first, vectors) = (band.number(rows.start, band.columns.start), loops.filters / loops.lanes);
        // The rows of a part are of one slice.
        let image = band.place(rows.start, band.columns.start);
        for [vector, lane] in room.doubts.take(rows.len() * columns * vectors) {
            let (place, filter) = (vector / vectors, vector % vectors * loops.lanes + lane);
            let (lane, block) = (filter % CHANNELS, filter / CHANNELS);
            let from = image + place / columns * band.down() + place % columns * CHANNELS;
            let (first_seen, late) = of_half(group.halves, lane >= HALF);
            let own = match self.bytes.kind {
                Kind::Own(_) => lane,
                _ if self.bytes.are_quarters() => lane / SOME * SOME,
                _ => 0,
            };
            let to = (group.start + block * group.positions + first + place) * CHANNELS + lane;
            // SAFETY: doubts are about bytes of the part.
            let (image, out) = unsafe {
                let image = match &task.rows {
                    Some(seen) => seen.from((rows.start - band.rows.start) * columns + place),
                    None => seen.as_ptr().add(first_seen + from + own),
                };
                (image, out.at(to))
            };
            waiting.open.push(Open { image, late, weights: weights.as_ptr(), filter, out });
            if waiting.open.len() == most {
                self.settle(task, waiting, lookout)?;
            }
        }
        Ok(())
    }

    /// Makes bytes that are in doubt those of floats.
    fn settle(&self, task: &Task<'_>, waiting: &mut Waiting, lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let (Some(own), false) = (self.requantize(), waiting.open.is_empty()) else { return Ok(()) };
        let (Scaling { outside, scales, zero, .. }, [Loops { lanes, settle, .. }, _]) = (own.scaling, self.loops);
        let Scales::Floats { images: scale, out: by, .. } = scales else { return Ok(()) };
        lookout.after(self.steps.count * 2 * lanes * SOME)?;
        let of = Common { steps: &self.steps, offsets: task.offsets, apart: waiting.apart, outside, scale, by, zero };
        // SAFETY: as for tiles, of whose filters, places and bytes these are. They are no more than two vectors have lanes.
        unsafe { settle(&of, &waiting.open) };
        waiting.open.clear();
        Ok(())
    }

    /// The numbers of the filters of a group, from one on.
    fn numbers(&self, group: &Group<'_>, weights: &[u32], lane: usize) -> Numbers {
        let apart = group.loops.filters;
        Numbers { first: weights.as_ptr().wrapping_add(self.steps.count * apart + lane), apart }
    }
}

/// What the first half of a block has, or the second one.
#[inline(always)]
fn of_half<T>([first, second]: [T; 2], is_second: bool) -> T {
    if is_second { second } else { first }
}

/// Filters that are computed together.
struct Group<'a> {
    loops: Loops,
    /// The weights, and the numbers that follow them.
    weights: Option<&'a [u32]>,
    /// The number of the first place of their first block, and the places of a block.
    start: usize,
    positions: usize,
    /// Where the blocks are that have the first channels which the halves of theirs see, and whether these are in the middle of
    /// one.
    halves: [(usize, bool); 2],
}

/// Bytes of a task that are in doubt, fewer than are settled together, and parts of the output that wait for what follows sums.
#[derive(Default)]
struct Waiting {
    open: Vec<Open>,
    /// How far apart the weights of their filters are.
    apart: usize,
    parts: Vec<Range<usize>>,
    bytes: usize,
}

/// Places of an image, and what is needed there.
struct Task<'a> {
    image: usize,
    band: Band<'a>,
    seen: &'a [u8],
    /// Of what begins with a block, and in the middle of one.
    offsets: [&'a [u32]; 2],
    /// If bytes are to be those of floats.
    lengths: Option<Lengths<'a>>,
    /// If sums are those of matrices.
    rows: Option<Rows<'a>>,
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
