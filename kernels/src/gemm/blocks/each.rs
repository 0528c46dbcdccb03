//! Windows of each channel on its own.

#![allow(unsafe_code)] // rows of one output are written by several threads

use super::super::block::Out;
use super::band::{Grid, Source};
use super::{CHANNELS, Tail, len_of};
use crate::windows::Axis;
use crate::{Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;

/// Steps that are worth a thread that is ready, and waking one.
const WORTH: (usize, usize) = (1 << 16, 1 << 18);

/// Windows of images `[images, blocks, rows, columns, 16]`.
#[derive(Debug, Clone, Copy)]
pub struct Each<'a> {
    /// Rows and columns.
    pub axes: &'a [Axis; 2],
    pub images: &'a [f32],
    pub channels: usize,
}

/// What some places of a row of the output see.
pub(super) struct Seen<'a> {
    /// The number of the block in its image.
    pub(super) block: usize,
    /// What the first place sees, and what follows. Each next place sees what is a block of channels further on.
    pub(super) from: &'a [f32],
    /// Where each tap is.
    pub(super) offsets: &'a [u32],
}

/// Computes places of a row of the output.
pub(super) type Row<'a> = dyn Fn(&Seen<'_>, &mut [f32]) -> Result<(), Stopped> + Sync + 'a;

impl<'a> Each<'a> {
    /// Divides the work on so many images among threads.
    pub fn plan(self, images: usize, resources: Resources<'_>) -> Result<Planned<'a>, Stopped> {
        let sizes = self.axes.iter().map(|axis| axis.kernel.saturating_mul(axis.output));
        let work = sizes.fold(self.channels.saturating_mul(images), usize::saturating_mul);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        Ok(Planned { each: self, images, grid: Grid::of_each(self.axes).ok_or(Stopped::Misfit)?, threads })
    }
}

/// Windows that are divided among threads.
#[derive(Debug, Clone)]
pub struct Planned<'a> {
    pub(super) each: Each<'a>,
    images: usize,
    grid: Grid,
    threads: usize,
}

impl Planned<'_> {
    pub(super) fn taps(&self) -> usize {
        self.each.axes.iter().map(|axis| axis.kernel).fold(1, usize::saturating_mul)
    }

    /// Elements of scratch memory.
    pub fn scratch(&self) -> usize {
        self.taps().saturating_add(self.grid.room().saturating_mul(self.threads))
    }

    /// Calls `row` with each row of `[images, blocks, rows, columns, 16]`, or with parts of it, and then `tail` with some.
    pub(super) fn run(
        &self,
        outside: f32,
        out: &mut [f32],
        scratch: &mut [f32],
        resources: Resources<'_>,
        tail: Option<&Tail<'_>>,
        row: &Row<'_>,
    ) -> Result<(), Stopped> {
        let Planned { each: Each { axes: [rows, columns], images, channels }, grid, threads, .. } = self;
        let (taps, blocks) = (self.taps(), channels.div_ceil(CHANNELS));
        let plane = len_of(1, rows.output.saturating_mul(columns.output));
        let count = self.images.saturating_mul(blocks);
        let fits = out.len() == count.saturating_mul(plane)
            && images.len() == count.saturating_mul(grid.image())
            && scratch.len() >= self.scratch();
        if !fits {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() {
            return Ok(());
        }
        let mut lookout = resources.lookout();
        let (offsets, rooms) = scratch.split_at_mut(taps);
        let offsets: &mut [u32] = cast_slice_mut(offsets);
        grid.offsets(1, offsets, &mut lookout)?;
        let (offsets, bands) = (&*offsets, grid.bands());
        let rooms = grid.rooms(rooms, *threads);
        let to = Out::of(out);
        parallel::tasks(count * bands, rooms, resources.stop, |room, at| {
            let (block, band) = (at / bands, grid.band(at % bands));
            let mut lookout = resources.lookout();
            let seen = band.fill(&Source::Blocks(images), block, outside, room, &mut lookout)?;
            for rows in band.parts() {
                for own in rows.clone() {
                    lookout.after(taps * band.columns.len() * CHANNELS)?;
                    let first = block * plane + band.number(own, band.columns.start) * CHANNELS;
                    let from = seen.get(band.place(own, band.columns.start)..).ok_or(Stopped::Misfit)?;
                    // SAFETY: a part of the output that is this task's. Memory may hold anything.
                    let out = unsafe { std::slice::from_raw_parts_mut(to.at(first), band.columns.len() * CHANNELS) };
                    row(&Seen { block: block % blocks, from, offsets }, out)?;
                }
                if let Some(tail) = tail {
                    let first = block * plane + band.number(rows.start, band.columns.start) * CHANNELS;
                    let len = rows.len() * band.columns.len() * CHANNELS;
                    // SAFETY: as above: neighbours in the output.
                    tail(first, unsafe { std::slice::from_raw_parts_mut(to.at(first), len) });
                }
            }
            Ok(())
        })
    }
}
