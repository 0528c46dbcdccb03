//! Leaves out the steps of a sum that see padding: a 0 times a finite weight changes nothing.
//!
//! Only a sum of -0 tells whether a 0 was added: a tiny negative number that was rounded, with nothing else in the sum. Such
//! sums are computed again, step by step ([`whole_sums`]).

use super::super::BLOCK;
use super::CHANNELS;
use super::band::{Across, Grid, Sight, Source};
use super::tile::Step;
use crate::cpu::for_each_level;
use crate::windows::Axis;
use crate::{Lookout, Stopped};
use smallvec::SmallVec;
use std::ops::Range;

/// The steps that places take.
pub(super) struct Picks {
    /// The taps that places see, of which there are tables: counted from the first one that any place sees.
    sights: SmallVec<[Sight; 4]>,
    /// The slice, the row and the column of that one, and how many of these a whole window has.
    first: [usize; 3],
    kernel: [usize; 3],
    /// Taps of a window, and steps of a sum.
    taps: usize,
    steps: usize,
    /// Whether no place sees some of the taps: the grid has none of these.
    cropped: bool,
}

/// Hardly any place sees padding of an image with more places along an axis.
const LONG: usize = 1 << 12;

impl Picks {
    /// The steps of places, of which at most `most` are computed together, and the grid of what they see; `None` if all of
    /// them take all steps, or if they see too many different sets of taps. `channels` are those of a sum.
    pub(super) fn of(
        axes: &[Axis; 3],
        channels: usize,
        most: [usize; 2],
        grid: impl Fn(&[Axis; 3]) -> Option<Grid>,
    ) -> Option<(Grid, Picks)> {
        if axes.iter().any(|axis| axis.output > LONG) {
            return None;
        }
        let ends = axes.each_ref().map(|axis| (axis.taps(axis.output.max(1) - 1).start, axis.taps(0).end));
        let crops = axes
            .iter()
            .zip(ends)
            .all(|(axis, (start, end))| start < end && start.saturating_mul(axis.dilation) <= axis.pad);
        let cropped = |axis: &Axis, (start, end): (usize, usize)| Axis {
            kernel: end - start,
            pad: axis.pad - start * axis.dilation,
            ..*axis
        };
        let mut seen = *axes;
        if crops {
            seen.iter_mut().zip(ends).for_each(|(axis, ends)| *axis = cropped(axis, ends));
        }
        let first = if crops { ends.map(|(start, _)| start) } else { [0; 3] };
        let (grid, cropped) = (grid(&seen)?.without_rows_in_padding(), seen != *axes);
        let sights = grid.sights(most, cropped);
        let kernel = axes.each_ref().map(|axis| axis.kernel);
        let taps = kernel.into_iter().try_fold(1usize, usize::checked_mul)?;
        let picks = Picks { sights, first, kernel, taps, steps: taps.checked_mul(channels)?, cropped };
        (!picks.sights.is_empty()).then_some((grid, picks))
    }

    /// Steps of all tables.
    pub(super) fn len(&self) -> usize {
        self.sights.len().saturating_mul(self.steps)
    }

    /// Fills the tables: the steps of all channels, whose offsets are those of the grid, at the taps of each sight.
    pub(super) fn fill(
        &self,
        grid: &Grid,
        offsets: &[u32],
        tables: &mut [Step],
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (seen, [slice, row, column]) = (grid.kernel(), self.first);
        let number = |[d, r, c]: [usize; 3], [_, rows, columns]: [usize; 3]| (d * rows + r) * columns + c;
        let of_seen = seen.into_iter().product();
        for ([deep, down, over], table) in self.sights.iter().zip(tables.chunks_exact_mut(self.steps.max(1))) {
            let mut to = table.iter_mut();
            for (channel, offsets) in (0..self.steps / self.taps.max(1)).zip(offsets.chunks_exact(of_seen)) {
                lookout.after(size_of_val(offsets))?;
                for (d, r) in deep.clone().flat_map(|d| down.clone().map(move |r| (d, r))) {
                    for c in over.clone() {
                        let own = number([slice + d, row + r, column + c], self.kernel);
                        let offset = offsets.get(number([d, r, c], seen)).ok_or(Stopped::Misfit)?;
                        *to.next().ok_or(Stopped::Misfit)? = [*offset, (channel * self.taps + own) as u32];
                    }
                }
            }
        }
        Ok(())
    }

    /// Where the tables have the steps of a part of a sum that places of a row take; `None` if they take all.
    pub(super) fn at(
        &self,
        grid: &Grid,
        tables: &[Step],
        (across, places): (&Across, &Range<usize>),
        part: &Range<usize>,
    ) -> Result<Option<Range<usize>>, Stopped> {
        if !self.cropped && grid.is_inside(across, places) {
            return Ok(None);
        }
        let sight = grid.sight(across, places);
        if !self.cropped && sight == grid.kernel().map(|taps| 0..taps) {
            return Ok(None);
        }
        let at = self.sights.iter().position(|other| *other == sight).ok_or(Stopped::Misfit)? * self.steps;
        let count = sight.iter().map(Range::len).product::<usize>() * (self.steps / self.taps.max(1));
        let table = tables.get(at..at + count).ok_or(Stopped::Misfit)?;
        let place = |step: usize| at + table.partition_point(|[_, number]| (*number as usize) < step);
        Ok(Some(place(part.start)..place(part.end)))
    }
}

/// The most filters that are computed together.
const FILTERS: usize = 2 * CHANNELS;

for_each_level! {
    /// The sums of filters at a place of an image, whose steps have as many weights each: all steps, in padding too. The first
    /// channel is that of the number in the first block, or plane.
    pub(super) fn whole_sums<>(axes: &[Axis; 3], image: (Source<'_>, usize), place: [usize; 3], weights: &[f32], filters: usize) -> [f32; FILTERS]
        = whole_sums_body;
}

#[inline(always)]
fn whole_sums_body(
    axes: &[Axis; 3],
    (image, first): (Source<'_>, usize),
    [slice, row, column]: [usize; 3],
    weights: &[f32],
    filters: usize,
) -> [f32; FILTERS] {
    let ([slices, rows, columns], [mut sums, mut all]) = (axes, [[0.0; FILTERS]; 2]);
    let place = |axis: &Axis, at: usize, tap: usize| {
        (at * axis.stride + tap * axis.dilation).checked_sub(axis.pad).filter(|place| *place < axis.input)
    };
    for (step, weights) in weights.chunks_exact(filters.clamp(1, FILTERS)).enumerate() {
        if step > 0 && step.is_multiple_of(BLOCK) {
            add(step == BLOCK, &sums, &mut all);
            sums = [0.0; FILTERS];
        }
        let taps = rows.kernel * columns.kernel;
        let (channel, tap) = (first + step / (slices.kernel * taps), step % (slices.kernel * taps));
        let of_plane = tap % taps;
        let line = place(slices, slice, tap / taps).zip(place(rows, row, of_plane / columns.kernel));
        let at = line.zip(place(columns, column, of_plane % columns.kernel));
        let element = at.and_then(|((slice, row), column)| {
            let at = (slice * rows.input + row) * columns.input + column;
            let plane = slices.input * rows.input * columns.input;
            match image {
                Source::Planes(elements) => elements.get(channel * plane + at),
                Source::Blocks(elements) => {
                    elements.get((channel / CHANNELS * plane + at) * CHANNELS + channel % CHANNELS)
                }
            }
        });
        let element = element.copied().unwrap_or(0.0);
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = weight.mul_add(element, *sum);
        }
    }
    add(weights.len() <= BLOCK * filters, &sums, &mut all);
    all
}

/// Adds the sums of a block of steps to those of the others, unless it is the first one.
#[inline(always)]
fn add(first: bool, sums: &[f32; FILTERS], all: &mut [f32; FILTERS]) {
    for (all, sum) in all.iter_mut().zip(sums) {
        *all = if first { *sum } else { *all + sum };
    }
}
