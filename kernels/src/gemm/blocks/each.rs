//! Windows of each channel on its own.

#![allow(unsafe_code)] // rows of one output are written by several threads

use super::super::block::Out;
use super::band::{COLUMNS, PLACES};
use super::line::{Line, span, width};
use super::lines::{Block, Images, Lines};
use super::{CHANNELS, len_of};
use crate::windows::Axis;
use crate::{Resources, Stopped, parallel};
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
    /// Rows and columns.
    pub axes: &'a [Axis; 2],
    pub images: Images<'a>,
    pub channels: usize,
}

/// What some rows of the output see.
pub(super) struct Seen<'a> {
    /// The number of the block in its image.
    pub(super) block: usize,
    /// The row and the column of the first place, and the number of its first element in the output.
    pub(super) at: [usize; 2],
    pub(super) place: usize,
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
        let lines = (elements / line.max(1)).saturating_sub(span(rows, 1));
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

    /// Elements of the lines of a thread, and of a line that it computes.
    fn rooms(&self) -> [usize; 2] {
        let [rows, columns] = self.each.axes;
        let own = if self.each.images.steps() > 0 { len_of(1, columns.input) } else { 0 };
        [span(rows, self.together).saturating_mul(self.line), own]
    }

    /// Elements of scratch memory.
    pub fn scratch(&self) -> usize {
        let [lines, own] = self.rooms();
        let each = lines.saturating_add(own).saturating_mul(self.threads);
        each.saturating_add(self.taps()).saturating_add(self.each.images.steps()).saturating_add(CHANNELS)
    }

    /// Calls `compute` with some rows of `[images, blocks, rows, columns, 16]`, or with parts of one.
    pub(super) fn run(
        &self,
        outside: f32,
        out: &mut [f32],
        scratch: &mut [f32],
        resources: Resources<'_>,
        compute: &Rows<'_>,
    ) -> Result<(), Stopped> {
        let Planned { each: Each { axes: [rows, columns], images, channels }, width, line, high, count, .. } = *self;
        let (plane, blocks) = (len_of(1, rows.output.saturating_mul(columns.output)), channels.div_ceil(CHANNELS));
        let (all, places) = (self.images.saturating_mul(blocks), rows.input.saturating_mul(columns.input));
        let fits = out.len() == all.saturating_mul(plane)
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
        let taps = (0..rows.kernel).flat_map(|row| (0..columns.kernel).map(move |column| (row, column)));
        for (to, (row, column)) in offsets.iter_mut().zip(taps) {
            let column = column * columns.dilation;
            let column = column % columns.stride * width + column / columns.stride;
            let at = row * rows.dilation * line + column * CHANNELS;
            *to = u32::try_from(at).map_err(|_| Stopped::Misfit)?;
        }
        // Vectors that lie in one line of the cache are read faster.
        let aligned = rooms.as_ptr().align_offset(CHANNELS * size_of::<f32>()).min(CHANNELS);
        let [room, own] = self.rooms();
        let rooms = rooms.split_at_mut(aligned).1.chunks_exact_mut(room + own).take(self.threads);
        // With what is around lines there: of which first column, and of how many.
        let rooms = rooms.map(|memory| (memory, (0, 0))).collect();
        let (down, across) = (rows.output.div_ceil(high), columns.output.div_ceil(count));
        let (offsets, steps, to) = (&*offsets, &*steps, Out::of(out));
        parallel::tasks(all * down * across, rooms, resources.stop, |(memory, around), at| {
            let (block, part) = (at / (down * across), at % (down * across));
            let (mut start, first) = (part / across * high, part % across * count);
            let (end, count) = (rows.output.min(start + high), count.min(columns.output - first));
            let (room, own) = memory.split_at_mut(room);
            let mut lines = Lines {
                rows,
                columns,
                line: Line::new(columns, first, width, CHANNELS),
                len: line,
                images,
                offsets: steps,
                block: Block { number: block, of: blocks },
                outside,
                room,
                own,
                seen: 0..0,
                around: if around.0 == first { around.1 } else { 0 },
            };
            let (mut lookout, row, len) = (resources.lookout(), rows.stride * line, count * CHANNELS);
            // What follows the sums is worth a call, and finds them where they were left.
            let most = (PLACES * CHANNELS / len).clamp(1, self.together);
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
                    compute(&Seen { block: block % blocks, at: [own, first], place, from, row, offsets, count }, out)?;
                }
                start = next;
            }
            // The next image has the same around its lines.
            *around = (first, lines.around);
            Ok(())
        })
    }
}
