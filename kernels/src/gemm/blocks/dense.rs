//! Convolutions in which each filter sees all channels.

#![allow(unsafe_code)] // parts of one output are written by several threads, and tiles through pointers

use super::super::BLOCK;
use super::super::block::Out;
use super::band::{Band, Grid, Source};
use super::tile::{Loops, One, Tile, loops};
use super::{CHANNELS, Tail, len_of};
use crate::windows::Axis;
use crate::{Resources, Stopped, parallel};
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

/// Elements of so many packed filters of so many steps.
pub fn packed_len(filters: usize, steps: usize) -> usize {
    len_of(filters, steps)
}

/// Packs filters, whose elements are the bytes of float32, for this processor.
pub fn pack(bytes: &[u8], filters: usize, out: &mut [f32], resources: Resources<'_>) -> Result<(), Stopped> {
    let steps = bytes.len() / size_of::<f32>() / filters.max(1);
    let mut lookout = resources.lookout();
    let rows: Vec<&[u8]> = bytes.chunks_exact(size_of::<f32>() * steps.max(1)).collect();
    let (mut out, mut first) = (out.get_mut(..packed_len(filters, steps)).ok_or(Stopped::Misfit)?, 0);
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

/// What a convolution is divided into.
struct Plan {
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
    /// Places of the scratch memory.
    bias: usize,
    rooms: usize,
}

impl Dense<'_> {
    fn plan(&self, images: usize, resources: Resources<'_>) -> Result<Plan, Stopped> {
        let steps = self.axes.iter().map(|axis| axis.kernel).fold(self.channels, usize::saturating_mul);
        let positions = self.axes.iter().map(|axis| axis.output).fold(1, usize::saturating_mul);
        let work = steps.saturating_mul(positions).saturating_mul(self.filters).saturating_mul(images);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        let loops = [true, false].map(|two| match self.images {
            Source::Planes(_) => loops::<One<1>>(two),
            Source::Blocks(_) => loops::<One<CHANNELS>>(two),
        });
        let groups = self.filters.div_ceil(loops[0].filters);
        let by_filters = steps.saturating_mul(self.filters) >= MANY_WEIGHTS && images < threads;
        let parts = if by_filters { threads.min(groups).max(1) } else { 1 };
        let grid = Grid::of(self.axes, self.channels, &self.images, if parts > 1 { 1 } else { threads })
            .ok_or(Stopped::Misfit)?;
        let bias = steps;
        let rooms = bias.saturating_add(len_of(self.filters, 2));
        Ok(Plan { grid, loops, steps, images, threads, parts, groups, bias, rooms })
    }

    /// Elements of scratch memory for so many images.
    pub fn scratch(&self, images: usize, resources: Resources<'_>) -> usize {
        self.plan(images, resources)
            .map_or(0, |plan| plan.rooms.saturating_add(plan.grid.room().saturating_mul(plan.threads)))
    }

    /// Writes `[images, blocks of filters, rows, columns, 16]`.
    pub fn run(&self, out: &mut [f32], scratch: &mut [f32], resources: Resources<'_>) -> Result<(), Stopped> {
        let [rows, columns] = self.axes;
        let each = len_of(self.filters, rows.output.saturating_mul(columns.output));
        if out.is_empty() || each == 0 {
            return Ok(());
        }
        let plan = self.plan(out.len() / each, resources)?;
        let fits = out.len() == plan.images * each
            && self.images.len() == plan.images.saturating_mul(plan.grid.image())
            && self.weights.len() == packed_len(self.filters, plan.steps)
            && self.bias.is_none_or(|bias| bias.len() == self.filters)
            && scratch.len() >= plan.rooms + plan.grid.room() * plan.threads;
        if !fits {
            return Err(Stopped::Misfit);
        }
        let (tables, rooms) = scratch.split_at_mut(plan.rooms);
        let (offsets, biases) = tables.split_at_mut(plan.bias);
        let offsets: &mut [u32] = cast_slice_mut(offsets);
        plan.grid.offsets(offsets)?;
        biases.fill(0.0);
        biases.iter_mut().zip(self.bias.unwrap_or(&[])).for_each(|(to, from)| *to = *from);
        let (offsets, biases, bands) = (&*offsets, &*biases, plan.grid.bands());
        let rooms = plan.grid.rooms(rooms, plan.threads);
        let to = Out::of(out);
        parallel::tasks(plan.parts * plan.images * bands, rooms, resources.stop, |room, at| {
            let (part, at) = (at / (plan.images * bands), at % (plan.images * bands));
            let (image, band) = (at / bands, at % bands);
            let groups = part * plan.groups / plan.parts..(part + 1) * plan.groups / plan.parts;
            let band = plan.grid.band(band);
            let seen = band.fill(&self.images, image, 0.0, room)?;
            let task = Task { plan: &plan, image, band, seen, offsets, biases };
            self.task(&task, groups, to, resources)
        })
    }

    /// Computes the sums of groups of filters at the places of a band.
    fn task(
        &self,
        task: &Task<'_>,
        groups: Range<usize>,
        out: Out<f32>,
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let Task { plan, band, .. } = task;
        let ([two, one], mut lookout) = (plan.loops, resources.lookout());
        let positions = self.axes.iter().map(|axis| axis.output).product::<usize>();
        for group in groups {
            let first = group * two.filters;
            let loops = if self.filters - first > CHANNELS { two } else { one };
            let start = (task.image * self.filters.div_ceil(CHANNELS) + first / CHANNELS) * positions;
            let group = Group {
                loops,
                weights: self
                    .weights
                    .get(first * plan.steps..(first + loops.filters) * plan.steps)
                    .ok_or(Stopped::Misfit)?,
                bias: task.biases.get(first..first + loops.filters).ok_or(Stopped::Misfit)?,
                start,
                positions,
            };
            let parts = plan.steps.div_ceil(BLOCK).max(1);
            for part in 0..parts {
                let steps = part * BLOCK..plan.steps.min((part + 1) * BLOCK);
                for rows in band.parts() {
                    for row in rows.clone() {
                        lookout.after(steps.len() * loops.filters * band.columns.len() / 8)?;
                        self.row(task, &group, steps.clone(), row, out);
                    }
                    if let Some(tail) = self.tail.filter(|_| part + 1 == parts) {
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
        let Task { plan, band, seen, .. } = task;
        let Loops { filters, sums } = group.loops;
        let is_last = steps.end == plan.steps;
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
                    bias: if is_last && self.bias.is_some() { group.bias.as_ptr() } else { std::ptr::null() },
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
    plan: &'a Plan,
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
