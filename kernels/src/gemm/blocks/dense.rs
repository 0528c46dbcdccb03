//! Convolutions in which each filter sees all channels, or those of its group.

#![allow(unsafe_code)] // parts of one output are written by several threads, and tiles through pointers

use super::super::BLOCK;
use super::super::block::Out;
use super::band::{Band, ELEMENTS, Grid, PLACES, Source};
use super::finish::{Activation, Finish, Scale, scale};
use super::groups::{HALF, are_quarters, begin_late, first_channels, has_pairs, have_blocks, share_blocks};
use super::picks::{Picks, whole_sums};
use super::tile::{Halves, Loops, Next, One, Quarters, Step, Tile, loops, pointers};
use super::{CHANNELS, READ, Tail, has_minus_zero, len_of};
use crate::windows::Axis;
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Multiplications that are worth a thread that is ready, and waking one.
const WORTH: (usize, usize) = (1 << 17, 1 << 19);

/// Elements of filters from which on threads share filters rather than places: each reads only its own.
const MANY_WEIGHTS: usize = 1 << 17;

/// Steps of a sum from which on it pays to pick those that see the image, and sums.
const WORTH_PICKING: (usize, usize) = (1 << 7, 1 << 13);

/// Images `[images, channels, slices, rows, columns]` and filters `[filters, channels of a group, slices, rows, columns]`.
#[derive(Clone, Copy)]
pub struct Dense<'a> {
    /// Slices, rows and columns.
    pub axes: &'a [Axis; 3],
    pub images: Source<'a>,
    pub channels: usize,
    pub filters: usize,
    /// They [have](have_blocks) whole blocks; or [share](share_blocks) them, and images are in blocks.
    pub groups: usize,
    /// The filters, as [`pack`] packs them.
    pub weights: &'a [f32],
    /// Whether no weight is infinite or NaN: what is around images changes nothing then.
    pub finite: bool,
    /// A number for each filter, which is added last.
    pub bias: Option<&'a [f32]>,
    pub scale: Scale<'a>,
    pub finish: Finish<'a>,
    pub tail: Option<&'a Tail<'a>>,
}

/// Packs filters of groups, whose elements are the bytes of float32, for this processor: as many elements as an
/// [image](len_of) has of as many channels, with a place for each step of a sum.
pub fn pack(
    bytes: &[u8],
    filters: usize,
    groups: usize,
    out: &mut [f32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let two = has_pairs(filters, groups);
    pack_by(|left| loops::<One<1>>(two && left > CHANNELS).filters, bytes, filters, out, resources)
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

/// A convolution that is divided among threads.
pub struct DensePlan<'a> {
    dense: Dense<'a>,
    grid: Grid,
    /// For two blocks of filters, if there are such loops, for one, and for one whose halves are of different groups: those that
    /// take all steps, and that pick them.
    loops: [[Loops; 2]; 3],
    /// Steps of a sum, and those from which on a group takes them that begins in the middle of a block, if one does.
    steps: usize,
    late: Option<usize>,
    images: usize,
    threads: usize,
    /// Parts of the filters, each a number of groups.
    parts: usize,
    groups: usize,
    /// What places take if it isn't all steps.
    picks: Option<Picks>,
    /// Elements of the scratch memory before what threads have of their own.
    rooms: usize,
}

impl<'a> Dense<'a> {
    /// Channels of a group.
    fn of_each(&self) -> usize {
        self.channels / self.groups.max(1)
    }

    /// Divides the work on so many images among threads.
    pub fn plan(self, images: usize, resources: Resources<'_>) -> Result<DensePlan<'a>, Stopped> {
        let channels = self.of_each();
        let steps = self.axes.iter().map(|axis| axis.kernel).fold(channels, usize::saturating_mul);
        let positions = self.axes.iter().map(|axis| axis.output).fold(1, usize::saturating_mul);
        let work =
            steps.saturating_mul(positions.saturating_add(READ)).saturating_mul(self.filters).saturating_mul(images);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        let two = has_pairs(self.filters, self.groups);
        let quarters = are_quarters(self.channels, self.filters, self.groups);
        let [two, one] = [two, false].map(|two| match self.images {
            _ if quarters => [loops::<Quarters>(false); 2],
            Source::Planes(_) => [loops::<One<1>>(two), loops::<One<1, true>>(two)],
            Source::Blocks(_) => [loops::<One<CHANNELS>>(two), loops::<One<CHANNELS, true>>(two)],
        });
        let loops = [two, one, [loops::<Halves<false>>(false), loops::<Halves<true>>(false)]];
        let [[two, _], [one, _], _] = loops;
        let groups = self.filters.div_ceil(two.filters);
        let by_filters = steps.saturating_mul(self.filters) >= MANY_WEIGHTS && images < threads;
        let parts = if by_filters { threads.min(groups).max(1) } else { 1 };
        let bands = if parts > 1 { 1 } else { threads };
        let grid = |axes: &[Axis; 3]| Grid::of(axes, self.channels, &self.images, ELEMENTS, bands, threads);
        // Quarters have no loops that pick.
        let worth = self.finite
            && !quarters
            && steps >= WORTH_PICKING.0
            && self.filters.saturating_mul(positions) >= WORTH_PICKING.1;
        let most = [two, one].map(|loops| loops.sums.len());
        let picks = if worth { Picks::of(self.axes, channels, most, grid) } else { None };
        let (grid, picks) = match picks {
            Some((grid, picks)) => (grid, Some(picks)),
            None => (grid(self.axes).ok_or(Stopped::Misfit)?, None),
        };
        let begin_late = begin_late(self.channels, self.filters, self.groups);
        let late = begin_late.then(|| grid.kernel().into_iter().fold(HALF, usize::saturating_mul));
        let tables = if late.is_some() { 2 } else { 1 };
        let picked = picks.as_ref().map_or(0, Picks::len).saturating_mul(2 * tables);
        let tables = picked.saturating_add(steps).saturating_add(late.unwrap_or(0));
        let numbers = if self.scale.all().is_some() { 3 } else { 1 };
        let rooms = tables.saturating_add(len_of(self.filters, 2).saturating_mul(numbers));
        Ok(DensePlan { dense: self, grid, loops, steps, late, images, threads, parts, groups, picks, rooms })
    }
}

impl DensePlan<'_> {
    /// Elements of scratch memory.
    pub fn scratch(&self) -> usize {
        self.rooms.saturating_add(self.grid.room().saturating_mul(self.threads))
    }

    /// Writes `[images, blocks of filters, slices, rows, columns, 16]`.
    pub fn run(&self, out: &mut [f32], scratch: &mut [f32], resources: Resources<'_>) -> Result<(), Stopped> {
        let DensePlan { dense, grid, steps, images, .. } = self;
        let positions = dense.axes.iter().map(|axis| axis.output).fold(1, usize::saturating_mul);
        let each = len_of(dense.filters, positions);
        let fits = out.len() == images.saturating_mul(each)
            && dense.images.len() == images.saturating_mul(grid.image())
            && dense.weights.len() == len_of(dense.filters, *steps)
            && (have_blocks(dense.channels, dense.filters, dense.groups)
                || (share_blocks(dense.channels, dense.filters, dense.groups)
                    && matches!(dense.images, Source::Blocks(_))))
            && dense.bias.is_none_or(|bias| bias.len() == dense.filters)
            && dense.scale.fits(dense.filters)
            && dense.finish.fits(out.len())
            && scratch.len() >= self.scratch();
        if !fits {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() {
            return Ok(());
        }
        let (tables, rooms) = scratch.split_at_mut(self.rooms);
        let late = self.late.unwrap_or(0);
        let (offsets, rest) = tables.split_at_mut(steps + late);
        let len = self.picks.as_ref().map_or(0, Picks::len);
        let (picked, rest) = rest.split_at_mut(2 * len);
        let (picked_late, numbers) = rest.split_at_mut(if self.late.is_some() { 2 * len } else { 0 });
        let offsets: &mut [u32] = cast_slice_mut(offsets);
        let mut lookout = resources.lookout();
        grid.offsets(1, offsets, &mut lookout)?;
        let offsets = [0, late].map(|first| offsets.get(first..).unwrap_or_default());
        let mut picked: [&mut [Step]; 2] = [cast_slice_mut(picked), cast_slice_mut(picked_late)];
        if let Some(picks) = &self.picks {
            for (offsets, picked) in offsets.iter().zip(&mut picked) {
                picks.fill(grid, offsets, picked, &mut lookout)?;
            }
        }
        // For as many filters as are computed together.
        let mut numbers = numbers.chunks_exact_mut(len_of(dense.filters, 2));
        let mut of_filters = |own: Option<&[f32]>, other: f32| -> &[f32] {
            let to = numbers.next().unwrap_or_default();
            to.fill(other);
            to.iter_mut().zip(own.unwrap_or(&[])).for_each(|(to, from)| *to = *from);
            to
        };
        let biases = of_filters(dense.bias, 0.0);
        let scaled = dense.scale.all().map(|all| all.map(|(own, other)| of_filters(own, other)));
        let [first, second] = picked;
        let tables = [(offsets[0], &*first), (offsets[1], &*second)];
        let (bands, to) = (grid.bands(), Out::of(out));
        parallel::tasks(self.parts * images * bands, grid.rooms(rooms, self.threads), resources.stop, |room, at| {
            let (part, at) = (at / (images * bands), at % (images * bands));
            let (image, band) = (at / bands, grid.band(at % bands));
            let groups = part * self.groups / self.parts..(part + 1) * self.groups / self.parts;
            let mut lookout = resources.lookout();
            let seen = band.fill(&dense.images, image, 0.0, room, &mut lookout)?;
            self.task(&Task { image, band, seen, tables, biases, scaled }, groups, to, &mut lookout)
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
        let (DensePlan { dense, grid, loops: [two @ [widest, _], one, halves], .. }, band) = (self, &task.band);
        let positions = dense.axes.iter().map(|axis| axis.output).product::<usize>();
        let (count, parts, [early, late]) = (groups.len(), self.steps.div_ceil(BLOCK).max(1), task.tables);
        // What is seen may be far: then all groups see some steps of it before any sees the next.
        let turns = parts > 1 && count > 1 && grid.is_far();
        for at in 0..count * parts {
            let (group, part) = if turns { (at % count, at / count) } else { (at / parts, at % parts) };
            let first = (groups.start + group) * widest.filters;
            let channels @ [channel, other] = first_channels(dense.channels, dense.filters, dense.groups, first);
            let [loops, picking] = match dense.filters - first > CHANNELS {
                _ if other != channel => *halves,
                true => *two,
                false => *one,
            };
            let start = (task.image * dense.filters.div_ceil(CHANNELS) + first / CHANNELS) * positions;
            let sees = |channel: usize| task.seen.get(grid.plane_of(channel)..).map(<[f32]>::as_ptr);
            let group = Group {
                loops,
                picking,
                channels,
                seen: [sees(channel).ok_or(Stopped::Misfit)?, sees(other).ok_or(Stopped::Misfit)?],
                tables: channels.map(|channel| if grid.lane_of(channel) > 0 { late } else { early }),
                weights: dense
                    .weights
                    .get(first * self.steps..(first + loops.filters) * self.steps)
                    .ok_or(Stopped::Misfit)?,
                bias: task.biases.get(first..first + loops.filters).ok_or(Stopped::Misfit)?,
                scaled: match task.scaled {
                    Some(all) => {
                        let [factors, addends] = all.map(|numbers| numbers.get(first..first + loops.filters));
                        Some([factors.ok_or(Stopped::Misfit)?, addends.ok_or(Stopped::Misfit)?])
                    }
                    None => None,
                },
                start,
                positions,
            };
            let steps = part * BLOCK..self.steps.min((part + 1) * BLOCK);
            let next = if turns { self.steps + steps.start } else { steps.end };
            for rows in band.parts(PLACES) {
                // The first row last: where it leaves out taps, weights would not be read for the first time as they follow
                // each other.
                for row in (rows.start + 1..rows.end).chain([rows.start]) {
                    lookout.after(steps.len() * loops.filters * band.columns.len() / 8)?;
                    self.row(task, &group, (steps.clone(), next), row, out, lookout)?;
                }
                if part + 1 < parts || !(dense.finish.activation.is_late() || dense.tail.is_some()) {
                    continue;
                }
                for block in 0..loops.filters / CHANNELS {
                    let first = start + block * positions + band.number(rows.start, band.columns.start);
                    let len = rows.len() * band.columns.len() * CHANNELS;
                    // SAFETY: neighbours in the output, which are this task's, and initialised by now.
                    let sums = unsafe { std::slice::from_raw_parts_mut(out.at(first * CHANNELS), len) };
                    dense.finish.activation.follow(sums);
                    dense.tail.iter().for_each(|tail| tail(first * CHANNELS, sums));
                }
            }
        }
        Ok(())
    }

    /// Adds some steps to the sums of a group at the places of a row. The weights of a step, counted from the group's first one,
    /// are read next.
    fn row(
        &self,
        task: &Task<'_>,
        group: &Group<'_>,
        (steps, next): (Range<usize>, usize),
        row: usize,
        out: Out<f32>,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (Task { band, .. }, Dense { finish, bias, .. }) = (task, self.dense);
        let is_last = steps.end == self.steps;
        // Each tile of the band fetches some of what the next part reads.
        let (filters, most) = (group.loops.filters, group.loops.sums.len());
        let (before, count) = band.among(row, most);
        let next = Next::among(count, filters, group.weights.as_ptr().wrapping_add(next * filters));
        let share = filters * steps.len() / count.max(1);
        let (seen, line) = (self.grid.across(row), band.line(row));
        let (place, first) = ((group.start + band.number(row, band.columns.start)) * CHANNELS, band.columns.start);
        let of_row = Tile {
            image: group.seen,
            offsets: group.tables.map(|(offsets, _)| offsets.as_ptr().wrapping_add(steps.start)),
            weights: group.weights.as_ptr().wrapping_add(steps.start * filters),
            steps: steps.len(),
            next,
            first: steps.start == 0,
            bias: if is_last && bias.is_some() { group.bias.as_ptr() } else { std::ptr::null() },
            scaled: pointers(group.scaled.filter(|_| is_last)),
            beside: std::ptr::null(),
            activation: if is_last { finish.activation } else { Activation::None },
            out: std::ptr::null_mut(),
            out_block: group.positions * CHANNELS,
        };
        for (at, places) in tiles(band.columns.clone(), most).enumerate() {
            let picked = match &self.picks {
                Some(picks) => picks.at(&self.grid, group.tables[0].1, (&seen, &places), &steps)?,
                None => None,
            };
            let loops = if picked.is_some() { group.picking } else { group.loops };
            let Some(sums) = loops.sums.get(places.len() - 1) else { continue };
            let place = place + (places.start - first) * CHANNELS;
            // SAFETY: offsets are those of the band, from whose places on they are in what is seen; weights and biases are
            // those of the group, as what scales sums, and the places of the output are this task's. What is beside it has as many.
            unsafe {
                let mut tile = Tile {
                    image: of_row.image.map(|image| image.add(line + band.column(places.start))),
                    next: next.from((before + at) * share),
                    out: out.at(place),
                    ..of_row
                };
                match (&picked, finish.beside.filter(|_| is_last)) {
                    // Sums that leave out steps are seen before they are finished.
                    (Some(some), _) => {
                        tile.offsets = group.tables.map(|(_, picked)| picked.as_ptr().add(some.start).cast());
                        (tile.weights, tile.steps) = (group.weights.as_ptr(), some.len());
                        (tile.scaled, tile.activation) = (pointers(None), Activation::None);
                    }
                    (None, Some(beside)) => tile.beside = beside.as_ptr().add(place),
                    (None, None) => {}
                }
                sums(&tile);
            }
            if is_last && picked.is_some() {
                self.mend(task, group, row, places, out, lookout)?;
            }
        }
        Ok(())
    }

    /// Computes places of a row again, all steps of them, if that may give another sum, and finishes their sums.
    fn mend(
        &self,
        task: &Task<'_>,
        group: &Group<'_>,
        row: usize,
        places: Range<usize>,
        out: Out<f32>,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (Task { image, band, .. }, Dense { axes, images, finish, .. }) = (task, &self.dense);
        let (filters, [_, rows, columns]) = (group.loops.filters, axes);
        let image = images.image(*image, self.grid.image())?;
        let of_channel = |channel| {
            let lane = self.grid.lane_of(channel);
            image.from(channel - lane, axes).map(|image| (image, lane))
        };
        let [first, second] = group.channels.map(of_channel);
        let seen = [first?, second?];
        for (block, bias) in group.bias.chunks_exact(CHANNELS).enumerate() {
            let first = group.start + block * group.positions + band.number(row, places.start);
            // SAFETY: neighbours in the output, which are this task's, and initialised by now.
            let sums = unsafe { std::slice::from_raw_parts_mut(out.at(first * CHANNELS), places.len() * CHANNELS) };
            if has_minus_zero(sums) {
                for (column, to) in places.clone().zip(sums.chunks_exact_mut(CHANNELS)) {
                    lookout.after(self.steps * filters)?;
                    let number = band.number(row, column);
                    let line = number / columns.output;
                    let place = [line / rows.output, line % rows.output, number % columns.output];
                    let halves = to.chunks_exact_mut(HALF).zip(bias.chunks_exact(HALF)).zip(seen);
                    for (half, ((to, bias), seen)) in halves.enumerate() {
                        let whole = whole_sums(axes, seen, place, group.weights, filters);
                        let own = whole.get(block * CHANNELS + half * HALF..).unwrap_or(&[]);
                        for ((to, sum), bias) in to.iter_mut().zip(own).zip(bias) {
                            *to = if self.dense.bias.is_some() { sum + bias } else { *sum };
                        }
                    }
                }
            }
            if let Some(scaled) = group.scaled {
                scale(sums, scaled.map(|numbers| numbers.get(block * CHANNELS..).unwrap_or_default()));
            }
            finish.apply(first * CHANNELS, sums)?;
        }
        Ok(())
    }
}

/// Filters that are computed together.
struct Group<'a> {
    loops: Loops,
    picking: Loops,
    /// The first channels that the halves of a block see, what is seen from their blocks on, and the tables of where.
    channels: [usize; 2],
    seen: [*const f32; 2],
    tables: [Table<'a>; 2],
    weights: &'a [f32],
    bias: &'a [f32],
    scaled: Option<[&'a [f32]; 2]>,
    /// The number of the first place of their first block, and the places of a block.
    start: usize,
    positions: usize,
}

/// Where all steps are seen, and those that are picked.
type Table<'a> = (&'a [u32], &'a [Step]);

/// Places of an image, and what is needed there.
struct Task<'a> {
    image: usize,
    band: Band<'a>,
    seen: &'a [f32],
    /// For groups that begin with a block, and in the middle of one.
    tables: [Table<'a>; 2],
    biases: &'a [f32],
    scaled: Option<[&'a [f32]; 2]>,
}

/// Divides neighbours into tiles of nearly the same size, at most `most`.
pub(super) fn tiles(all: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = all.len().div_ceil(most.max(1));
    let (len, longer) = (all.len() / count.max(1), all.len() % count.max(1));
    let start = move |at: usize| all.start + at * len + at.min(longer);
    (0..count).map(move |at| start(at)..start(at + 1))
}
