//! Windows of each channel on its own.

#![allow(unsafe_code)] // rows of one output are written by several threads

use super::super::block::Out;
use super::band::{COLUMNS, PART};
use super::line::{Line, span, width};
use super::{CHANNELS, Tail, len_of};
use crate::windows::Axis;
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Steps that are worth a thread that is ready, and waking one.
const WORTH: (usize, usize) = (1 << 16, 1 << 18);

/// Elements of lines that are copied together: about a quarter of a usual second cache.
const ELEMENTS: usize = 1 << 16;

/// Windows of images `[images, blocks, rows, columns, 16]`.
#[derive(Debug, Clone, Copy)]
pub struct Each<'a> {
    /// Rows and columns.
    pub axes: &'a [Axis; 2],
    pub images: &'a [f32],
    pub channels: usize,
}

/// What some rows of the output see.
pub(super) struct Seen<'a> {
    /// The number of the block in its image.
    pub(super) block: usize,
    /// What the first place sees, and what follows. The next place sees what is a block of channels further on, and the
    /// next row what is so many elements further on.
    pub(super) from: &'a [f32],
    pub(super) row: usize,
    /// Where each tap is.
    pub(super) offsets: &'a [u32],
    /// Places of a row.
    pub(super) count: usize,
}

/// Computes places of some rows of the output.
pub(super) type Rows<'a> = dyn Fn(&Seen<'_>, &mut [f32]) -> Result<(), Stopped> + Sync + 'a;

impl<'a> Each<'a> {
    /// Divides the work on so many images among threads.
    pub fn plan(self, images: usize, resources: Resources<'_>) -> Result<Planned<'a>, Stopped> {
        let [rows, columns] = self.axes;
        if !self.axes.iter().all(Axis::fits) || self.axes.iter().any(|axis| axis.kernel == 0) {
            return Err(Stopped::Misfit);
        }
        let sizes = self.axes.iter().map(|axis| axis.kernel.saturating_mul(axis.output));
        let work = sizes.fold(self.channels.saturating_mul(images), usize::saturating_mul);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        let count = columns.output.clamp(1, COLUMNS);
        let width = width(columns, count);
        let line = width.saturating_mul(columns.stride).saturating_mul(CHANNELS);
        // Rows that are finished together follow each other in the output.
        let lines = (ELEMENTS / line.max(1)).saturating_sub(span(rows, 1));
        let most = if count < columns.output { 1 } else { lines / rows.stride + 1 };
        let together = rows.output.clamp(1, most);
        // Lines before the first row of a part are copied again.
        let blocks = images.saturating_mul(self.channels.div_ceil(CHANNELS)).max(1);
        let parts = if threads > 1 { (4 * threads).div_ceil(blocks) } else { 1 };
        let high = rows.output.div_ceil(parts).max(1);
        Ok(Planned { each: self, images, width, line, count, together, high, threads })
    }
}

/// Windows that are divided among threads.
///
/// The lines of an image that some rows of the output see are copied, with what is around them: they stay near the
/// processor, and no window sees an end.
#[derive(Debug, Clone)]
pub struct Planned<'a> {
    pub(super) each: Each<'a>,
    images: usize,
    /// Columns of each remainder in the widest part of a line, and its elements.
    width: usize,
    line: usize,
    /// Places of a row, rows that are computed together, and those of a task.
    count: usize,
    together: usize,
    high: usize,
    threads: usize,
}

impl Planned<'_> {
    pub(super) fn taps(&self) -> usize {
        self.each.axes.iter().map(|axis| axis.kernel).fold(1, usize::saturating_mul)
    }

    /// Elements of the lines of a thread.
    fn room(&self) -> usize {
        let [rows, _] = self.each.axes;
        span(rows, self.together).saturating_mul(self.line)
    }

    /// Elements of scratch memory.
    pub fn scratch(&self) -> usize {
        self.room().saturating_mul(self.threads).saturating_add(self.taps()).saturating_add(CHANNELS)
    }

    /// Calls `compute` with some rows of `[images, blocks, rows, columns, 16]`, or with parts of one, and then `tail`.
    pub(super) fn run(
        &self,
        outside: f32,
        out: &mut [f32],
        scratch: &mut [f32],
        resources: Resources<'_>,
        tail: Option<&Tail<'_>>,
        compute: &Rows<'_>,
    ) -> Result<(), Stopped> {
        let Planned { each: Each { axes: [rows, columns], images, channels }, width, line, high, count, .. } = *self;
        let (plane, blocks) = (len_of(1, rows.output.saturating_mul(columns.output)), channels.div_ceil(CHANNELS));
        let (all, size) = (self.images.saturating_mul(blocks), len_of(1, rows.input.saturating_mul(columns.input)));
        let fits = out.len() == all.saturating_mul(plane)
            && images.len() == all.saturating_mul(size)
            && scratch.len() >= self.scratch();
        if !fits {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() {
            return Ok(());
        }
        let (offsets, rooms) = scratch.split_at_mut(self.taps());
        let offsets: &mut [u32] = cast_slice_mut(offsets);
        let taps = (0..rows.kernel).flat_map(|row| (0..columns.kernel).map(move |column| (row, column)));
        for (to, (row, column)) in offsets.iter_mut().zip(taps) {
            let column = column * columns.dilation;
            let column = column % columns.stride * width + column / columns.stride;
            let at = row * rows.dilation * line + column * CHANNELS;
            *to = u32::try_from(at).map_err(|_| Stopped::Misfit)?;
        }
        // Vectors that lie in one line of the cache are read faster.
        let aligned = rooms.as_ptr().align_offset(CHANNELS * size_of::<f32>()).min(CHANNELS);
        let rooms = rooms.split_at_mut(aligned).1.chunks_exact_mut(self.room()).take(self.threads).collect();
        let (down, across) = (rows.output.div_ceil(high), columns.output.div_ceil(count));
        let (offsets, to) = (&*offsets, Out::of(out));
        parallel::tasks(all * down * across, rooms, resources.stop, |room, at| {
            let (block, part) = (at / (down * across), at % (down * across));
            let (mut start, first) = (part / across * high, part % across * count);
            let (end, count) = (rows.output.min(start + high), count.min(columns.output - first));
            let image = images.get(block * size..(block + 1) * size).ok_or(Stopped::Misfit)?;
            let own = Line::new(columns, first, width, CHANNELS);
            let mut lines =
                Lines { rows, line: own, len: line, input: columns.input * CHANNELS, image, outside, room, seen: 0..0 };
            let (mut lookout, row, len) = (resources.lookout(), rows.stride * line, count * CHANNELS);
            // What follows the sums is worth a call, and finds them where they were left.
            let most = (PART / len).clamp(1, self.together);
            while start < end {
                let next = end.min(start + self.together);
                lines.turn_to(start, next, &mut lookout)?;
                for own in (start..next).step_by(most) {
                    let len = len * most.min(next - own);
                    lookout.after(offsets.len() * len)?;
                    let place = block * plane + (own * columns.output + first) * CHANNELS;
                    // SAFETY: neighbours in the output, which are this task's. Memory may hold anything.
                    let out = unsafe { std::slice::from_raw_parts_mut(to.at(place), len) };
                    let from = lines.room.get((own - start) * row..).ok_or(Stopped::Misfit)?;
                    compute(&Seen { block: block % blocks, from, row, offsets, count }, out)?;
                    tail.iter().for_each(|tail| tail(place, out));
                }
                start = next;
            }
            Ok(())
        })
    }
}

/// Lines of a block of an image that rows of the output see, with what is around them.
struct Lines<'a> {
    rows: &'a Axis,
    line: Line,
    /// Elements of it, and of a line of the image.
    len: usize,
    input: usize,
    image: &'a [f32],
    outside: f32,
    room: &'a mut [f32],
    /// The numbers of the lines that are there, from where padding begins.
    seen: Range<usize>,
}

impl Lines<'_> {
    /// Has what these rows of the output see: lines that others saw are kept.
    fn turn_to(&mut self, start: usize, next: usize, lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let Lines { rows, len, input, .. } = *self;
        let first = start * rows.stride;
        let seen = first..first + span(rows, next - start);
        let kept = seen.start.max(self.seen.start)..seen.end.min(self.seen.end).max(seen.start);
        if !kept.is_empty() {
            let from = (kept.start - self.seen.start) * len..(kept.end - self.seen.start) * len;
            self.room.copy_within(from, (kept.start - seen.start) * len);
        }
        let missing = if kept.is_empty() { seen.clone() } else { kept.end..seen.end };
        // Around a line nothing changes.
        let there = self.seen.len();
        for number in missing {
            lookout.after(len * size_of::<f32>())?;
            let at = number - seen.start;
            let Some(to) = self.room.get_mut(at * len..(at + 1) * len) else { return Err(Stopped::Misfit) };
            let row = number.checked_sub(rows.pad).filter(|row| *row < rows.input);
            match row.and_then(|row| self.image.get(row * input..(row + 1) * input)) {
                Some(from) => self.line.copy(from, self.outside, at < there, to),
                None => to.fill(self.outside),
            }
        }
        self.seen = seen;
        Ok(())
    }
}
