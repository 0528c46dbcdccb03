//! Windows that see one channel each, as those of pools and depthwise convolutions: divides them among threads, and copies
//! the lines of the image that they see.

#![allow(unsafe_code)] // rows of one output are written by several threads

use super::super::block::Out;
use super::band::{COLUMNS, PLACES};
use super::line::{Line, span, width};
use super::lines::{Block, Images, Lines};
use super::{CHANNELS, len_of};
use crate::windows::Axis;
use crate::{Resources, Stopped, parallel, volume};
use bytemuck::cast_slice_mut;

/// Steps that are worth a thread that is ready, and waking one.
const WORTH: (usize, usize) = (1 << 16, 1 << 18);

/// Elements of lines that are copied together: about a quarter of a usual second cache.
const ELEMENTS: usize = 1 << 16;

/// Elements of lines that are computed together: about a usual first cache.
const COMPUTED: usize = 1 << 13;

/// Windows of images.
#[derive(Clone, Copy)]
pub struct Each<'a> {
    /// Slices, rows and columns.
    pub axes: &'a [Axis; 3],
    pub images: Images<'a>,
    pub channels: usize,
}

/// What some rows of the output see.
pub(super) struct Seen<'a> {
    /// The number of the block in its image.
    pub(super) block: usize,
    /// The slice, the row and the column of the first place, and the number of its first element in the output.
    pub(super) at: [usize; 3],
    pub(super) place: usize,
    /// Elements from the first one that the first place sees. The next place begins a block of channels further on.
    pub(super) from: &'a [f32],
    /// Elements of `from` from a row of the output to the next.
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
        let [slices, rows, columns] = self.axes;
        if !self.axes.iter().all(Axis::fits) || self.axes.iter().any(|axis| axis.kernel == 0) {
            return Err(Stopped::Misfit);
        }
        let all = self.channels.saturating_mul(images);
        let sizes = self.axes.iter().map(|axis| axis.kernel.saturating_mul(axis.output));
        let products = self.axes.iter().map(|axis| axis.input).fold(self.images.steps(), usize::saturating_mul);
        let work = sizes.fold(1, usize::saturating_mul).saturating_add(products).saturating_mul(all);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        let count = columns.output.clamp(1, COLUMNS);
        let width = width(columns, count);
        let line = width.saturating_mul(columns.stride).saturating_mul(CHANNELS);
        // Rows that are finished together follow each other in the output.
        let elements = if self.images.steps() > 0 { COMPUTED } else { ELEMENTS };
        let lines = (elements / line.saturating_mul(slices.kernel).max(1)).saturating_sub(span(rows, 1));
        let most = if count < columns.output { 1 } else { lines / rows.stride + 1 };
        let together = rows.output.clamp(1, most);
        // Lines before the first row of a part are copied again.
        let blocks = volume(images, [&self.channels.div_ceil(CHANNELS), &slices.output]).max(1);
        let parts = if threads > 1 { (4 * threads).div_ceil(blocks) } else { 1 };
        let high = rows.output.div_ceil(parts).max(1);
        Ok(Planned { each: self, images, width, line, count, together, high, threads })
    }
}

/// Windows that are divided among threads.
///
/// The lines of an image that some rows of the output see are copied, with what is around them: they stay near the
/// processor, and no window sees an end.
#[derive(Clone)]
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

    /// Elements of the lines of a slice, of those of all slices that a thread sees, and of a line that it computes.
    fn rooms(&self) -> [usize; 3] {
        let [slices, rows, columns] = self.each.axes;
        let own = if self.each.images.steps() > 0 { len_of(1, columns.input) } else { 0 };
        let lines = span(rows, self.together).saturating_mul(self.line);
        [lines, lines.saturating_mul(slices.kernel), own]
    }

    /// Elements of scratch memory.
    pub fn scratch(&self) -> usize {
        let [_, lines, own] = self.rooms();
        let each = lines.saturating_add(own).saturating_mul(self.threads);
        each.saturating_add(self.taps()).saturating_add(self.each.images.steps()).saturating_add(CHANNELS)
    }

    /// Calls `compute` with some rows of `[images, blocks, slices, rows, columns, 16]`, or with parts of one.
    pub(super) fn run(
        &self,
        outside: f32,
        out: &mut [f32],
        scratch: &mut [f32],
        resources: Resources<'_>,
        compute: &Rows<'_>,
    ) -> Result<(), Stopped> {
        let Planned { each: Each { axes, images, channels }, width, line, high, count, .. } = *self;
        let ([slices, rows, columns], blocks) = (axes, channels.div_ceil(CHANNELS));
        let [places, positions] =
            [|axis: &Axis| axis.input, |axis: &Axis| axis.output].map(|of| volume(1, &axes.each_ref().map(of)));
        let (all, block) = (self.images.saturating_mul(blocks), len_of(1, positions));
        let fits = out.len() == all.saturating_mul(block)
            && images.are(self.images, channels, places)
            && scratch.len() >= self.scratch();
        if !fits {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() {
            return Ok(());
        }
        let (tables, rooms) = scratch.split_at_mut(self.taps() + images.steps());
        let (offsets, steps): (&mut [u32], &mut [u32]) = cast_slice_mut(tables).split_at_mut(self.taps());
        images.offsets(places, steps)?;
        let [of_slice, of_slices, own] = self.rooms();
        let mut to = offsets.iter_mut();
        for (slice, row) in (0..slices.kernel).flat_map(|slice| (0..rows.kernel).map(move |row| (slice, row))) {
            for (column, to) in (0..columns.kernel).zip(&mut to) {
                let column = column * columns.dilation;
                let column = column % columns.stride * width + column / columns.stride;
                let at = slice * of_slice + row * rows.dilation * line + column * CHANNELS;
                *to = u32::try_from(at).map_err(|_| Stopped::Misfit)?;
            }
        }
        // Vectors that lie in one line of the cache are read faster.
        let aligned = rooms.as_ptr().align_offset(CHANNELS * size_of::<f32>()).min(CHANNELS);
        let rooms = rooms.split_at_mut(aligned).1.chunks_exact_mut(of_slices + own).take(self.threads);
        // With what is around lines there: of which first column, and of how many.
        let rooms = rooms.map(|memory| (memory, (0, 0))).collect();
        let (deep, down, across) = (slices.output, rows.output.div_ceil(high), columns.output.div_ceil(count));
        let (offsets, steps, to) = (&*offsets, &*steps, Out::of(out));
        parallel::tasks(all * deep * down * across, rooms, resources.stop, |(memory, around), at| {
            let (plane, part) = (at / (down * across), at % (down * across));
            let (block_at, slice) = (plane / deep, plane % deep);
            let (mut start, first) = (part / across * high, part % across * count);
            let (end, count) = (rows.output.min(start + high), count.min(columns.output - first));
            let (room, own) = memory.split_at_mut(of_slices);
            let mut lines = Lines {
                axes,
                slice,
                line: Line::new(columns, first, width, CHANNELS),
                len: line,
                images,
                offsets: steps,
                block: Block { number: block_at, of: blocks },
                outside,
                seen: 0..0,
                around: if around.0 == first { around.1 } else { 0 },
            };
            let (mut lookout, row, len) = (resources.lookout(), rows.stride * line, count * CHANNELS);
            // What follows the sums is worth a call, and finds them where they were left.
            let most = (PLACES * CHANNELS / len).clamp(1, self.together);
            while start < end {
                let next = end.min(start + self.together);
                lines.turn_to(start..next, (room, of_slice, own), &mut lookout)?;
                for own in (start..next).step_by(most) {
                    let len = len * most.min(next - own);
                    lookout.after(offsets.len() * len)?;
                    let line = (block_at * slices.output + slice) * rows.output + own;
                    let place = (line * columns.output + first) * CHANNELS;
                    // SAFETY: neighbours in the output, which are this task's. Memory may hold anything.
                    let out = unsafe { std::slice::from_raw_parts_mut(to.at(place), len) };
                    let from = room.get((own - start) * row..).ok_or(Stopped::Misfit)?;
                    let (block, at) = (block_at % blocks, [slice, own, first]);
                    compute(&Seen { block, at, place, from, row, offsets, count }, out)?;
                }
                start = next;
            }
            // The next image has the same around its lines.
            *around = (first, lines.around);
            Ok(())
        })
    }
}
