//! Convolutions in which each filter sees all channels.

#![allow(unsafe_code)] // parts of one output are written by several threads, and tiles through pointers

use super::super::BLOCK;
use super::super::block::Out;
use super::band::{Band, Grid, PLACES, Source};
use super::tile::{Loops, One, Tile, loops};
use super::{CHANNELS, READ, Tail, len_of};
use crate::windows::Axis;
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Multiplications that are worth a thread that is ready, and waking one.
const WORTH: (usize, usize) = (1 << 17, 1 << 19);

/// Elements of filters from which on threads share filters rather than places: each reads only its own.
const MANY_WEIGHTS: usize = 1 << 17;

/// Images `[images, channels, rows, columns]` and filters `[filters, channels, rows, columns]`.
#[derive(Clone, Copy)]
pub struct Dense<'a> {
    /// Rows and columns.
    pub axes: &'a [Axis; 2],
    pub images: Source<'a>,
    pub channels: usize,
    pub filters: usize,
    /// The filters, as [`pack`] packs them.
    pub weights: &'a [f32],
    /// A number for each filter, which is added last.
    pub bias: Option<&'a [f32]>,
    pub tail: Option<&'a Tail<'a>>,
}

/// Packs filters, whose elements are the bytes of float32, for this processor: as many elements as an [image](len_of) has of
/// as many channels, with a place for each step of a sum.
pub fn pack(bytes: &[u8], filters: usize, out: &mut [f32], resources: Resources<'_>) -> Result<(), Stopped> {
    pack_by(width, bytes, filters, out, resources)
}

/// As [`pack`], each block of filters alone.
pub fn pack_each(bytes: &[u8], filters: usize, out: &mut [f32], resources: Resources<'_>) -> Result<(), Stopped> {
    pack_by(|_| CHANNELS, bytes, filters, out, resources)
}

fn pack_by(
    width: impl Fn(usize) -> usize,
    bytes: &[u8],
    filters: usize,
    out: &mut [f32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let steps = bytes.len() / size_of::<f32>() / filters.max(1);
    let mut lookout = resources.lookout();
    let rows: Vec<&[u8]> = bytes.chunks_exact(size_of::<f32>() * steps.max(1)).collect();
    let (mut out, mut first) = (out.get_mut(..len_of(filters, steps)).ok_or(Stopped::Misfit)?, 0);
    while !out.is_empty() {
        let width = width(filters - first);
        let (group, rest) = out.split_at_mut((width * steps).min(out.len()));
        for (step, group) in group.chunks_exact_mut(width).enumerate() {
            lookout.after(4 * size_of_val(group))?;
            for (lane, to) in group.iter_mut().enumerate() {
                let row = rows.get(first + lane).and_then(|row| row.as_chunks::<4>().0.get(step));
                *to = row.map_or(0.0, |bytes| f32::from_ne_bytes(*bytes));
            }
        }
        (out, first) = (rest, first + width);
    }
    Ok(())
}

/// The filters of the next group, if so many are left.
fn width(left: usize) -> usize {
    loops::<One<1>>(left > CHANNELS).filters
}

/// A convolution that is divided among threads.
pub struct DensePlan<'a> {
    dense: Dense<'a>,
    grid: Grid,
    /// For two blocks of filters, if there are such loops, and for one.
    loops: [Loops; 2],
    /// Steps of a sum.
    steps: usize,
    images: usize,
    threads: usize,
    /// Parts of the filters, each a number of groups.
    parts: usize,
    groups: usize,
    /// Elements of the scratch memory before what threads have of their own.
    rooms: usize,
}

impl<'a> Dense<'a> {
    /// Divides the work on so many images among threads.
    pub fn plan(self, images: usize, resources: Resources<'_>) -> Result<DensePlan<'a>, Stopped> {
        let steps = self.axes.iter().map(|axis| axis.kernel).fold(self.channels, usize::saturating_mul);
        let positions = self.axes.iter().map(|axis| axis.output).fold(1, usize::saturating_mul);
        let work =
            steps.saturating_mul(positions.saturating_add(READ)).saturating_mul(self.filters).saturating_mul(images);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        let loops = [true, false].map(|two| match self.images {
            Source::Planes(_) => loops::<One<1>>(two),
            Source::Blocks(_) => loops::<One<CHANNELS>>(two),
        });
        let [two, _] = loops;
        let groups = self.filters.div_ceil(two.filters);
        let by_filters = steps.saturating_mul(self.filters) >= MANY_WEIGHTS && images < threads;
        let parts = if by_filters { threads.min(groups).max(1) } else { 1 };
        let bands = if parts > 1 { 1 } else { threads };
        let grid = Grid::of(self.axes, self.channels, &self.images, bands).ok_or(Stopped::Misfit)?;
        let rooms = steps.saturating_add(len_of(self.filters, 2));
        Ok(DensePlan { dense: self, grid, loops, steps, images, threads, parts, groups, rooms })
    }
}

impl DensePlan<'_> {
    /// Elements of scratch memory.
    pub fn scratch(&self) -> usize {
        self.rooms.saturating_add(self.grid.room().saturating_mul(self.threads))
    }

    /// Writes `[images, blocks of filters, rows, columns, 16]`.
    pub fn run(&self, out: &mut [f32], scratch: &mut [f32], resources: Resources<'_>) -> Result<(), Stopped> {
        let DensePlan { dense, grid, steps, images, .. } = self;
        let [rows, columns] = dense.axes;
        let each = len_of(dense.filters, rows.output.saturating_mul(columns.output));
        let fits = out.len() == images.saturating_mul(each)
            && dense.images.len() == images.saturating_mul(grid.image())
            && dense.weights.len() == len_of(dense.filters, *steps)
            && dense.bias.is_none_or(|bias| bias.len() == dense.filters)
            && scratch.len() >= self.scratch();
        if !fits {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() {
            return Ok(());
        }
        let (tables, rooms) = scratch.split_at_mut(self.rooms);
        let (offsets, biases) = tables.split_at_mut(*steps);
        let offsets: &mut [u32] = cast_slice_mut(offsets);
        grid.offsets(1, offsets, &mut resources.lookout())?;
        biases.fill(0.0);
        biases.iter_mut().zip(dense.bias.unwrap_or(&[])).for_each(|(to, from)| *to = *from);
        let (offsets, biases, bands, to) = (&*offsets, &*biases, grid.bands(), Out::of(out));
        parallel::tasks(self.parts * images * bands, grid.rooms(rooms, self.threads), resources.stop, |room, at| {
            let (part, at) = (at / (images * bands), at % (images * bands));
            let (image, band) = (at / bands, grid.band(at % bands));
            let groups = part * self.groups / self.parts..(part + 1) * self.groups / self.parts;
            let mut lookout = resources.lookout();
            let seen = band.fill(&dense.images, image, 0.0, room, &mut lookout)?;
            self.task(&Task { image, band, seen, offsets, biases }, groups, to, &mut lookout)
        })
    }

    /// Computes the sums of groups of filters at the places of a band.
    fn task(
        &self,
        task: &Task<'_>,
        groups: Range<usize>,
        out: Out<f32>,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (DensePlan { dense, loops: [two, one], .. }, band) = (self, &task.band);
        let positions = dense.axes.iter().map(|axis| axis.output).product::<usize>();
        for group in groups {
            let first = group * two.filters;
            let loops = if dense.filters - first > CHANNELS { *two } else { *one };
            let start = (task.image * dense.filters.div_ceil(CHANNELS) + first / CHANNELS) * positions;
            let group = Group {
                loops,
                weights: dense
                    .weights
                    .get(first * self.steps..(first + loops.filters) * self.steps)
                    .ok_or(Stopped::Misfit)?,
                bias: task.biases.get(first..first + loops.filters).ok_or(Stopped::Misfit)?,
                start,
                positions,
            };
            let parts = self.steps.div_ceil(BLOCK).max(1);
            for part in 0..parts {
                let steps = part * BLOCK..self.steps.min((part + 1) * BLOCK);
                for rows in band.parts(PLACES) {
                    for row in rows.clone() {
                        lookout.after(steps.len() * loops.filters * band.columns.len() / 8)?;
                        self.row(task, &group, steps.clone(), row, out);
                    }
                    if let Some(tail) = dense.tail.filter(|_| part + 1 == parts) {
                        for block in 0..loops.filters / CHANNELS {
                            let first = start + block * positions + band.number(rows.start, band.columns.start);
                            let len = rows.len() * band.columns.len() * CHANNELS;
                            // SAFETY: neighbours in the output, which are this task's, and initialised by now.
                            let sums = unsafe { std::slice::from_raw_parts_mut(out.at(first * CHANNELS), len) };
                            tail(first * CHANNELS, sums);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds some steps to the sums of a group at the places of a row.
    fn row(&self, task: &Task<'_>, group: &Group<'_>, steps: Range<usize>, row: usize, out: Out<f32>) {
        let Task { band, seen, .. } = task;
        let Loops { filters, sums } = group.loops;
        let is_last = steps.end == self.steps;
        for tile in tiles(band.columns.clone(), sums.len()) {
            let Some(sums) = sums.get(tile.len() - 1) else { continue };
            let place = group.start + band.number(row, tile.start);
            // SAFETY: offsets are those of the band, from whose places on they are in what is seen; weights and biases are
            // those of the group, and the places of the output are this task's.
            unsafe {
                sums(&Tile {
                    image: seen.as_ptr().add(band.place(row, tile.start)),
                    offsets: task.offsets.as_ptr().add(steps.start),
                    weights: group.weights.as_ptr().add(steps.start * filters),
                    steps: steps.len(),
                    first: steps.start == 0,
                    bias: if is_last && self.dense.bias.is_some() { group.bias.as_ptr() } else { std::ptr::null() },
                    out: out.at(place * CHANNELS),
                    out_block: group.positions * CHANNELS,
                });
            }
        }
    }
}

/// Filters that are computed together.
struct Group<'a> {
    loops: Loops,
    weights: &'a [f32],
    bias: &'a [f32],
    /// The number of the first place of their first block, and the places of a block.
    start: usize,
    positions: usize,
}

/// Places of an image, and what is needed there.
struct Task<'a> {
    image: usize,
    band: Band<'a>,
    seen: &'a [f32],
    offsets: &'a [u32],
    biases: &'a [f32],
}

/// Divides neighbours into tiles of nearly the same size, at most `most`.
pub(super) fn tiles(all: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let (len, count) = (all.len(), all.len().div_ceil(most.max(1)));
    let start = move |at: usize| all.start + at * (len / count) + at.min(len % count);
    (0..count).map(move |at| start(at)..start(at + 1))
}
