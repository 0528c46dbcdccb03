//! The part of an image that some places of the output see, with zeros around it.

use super::CHANNELS;
use super::dense::tiles;
use super::line::{self, Line, span};
use crate::windows::Axis;
use crate::{Lookout, Stopped};
use bytemuck::Pod;
use smallvec::SmallVec;
use std::ops::Range;

/// How images are stored.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a, T = f32> {
    /// `[images, channels, rows, columns]`
    Planes(&'a [T]),
    /// `[images, blocks, rows, columns, 16]`
    Blocks(&'a [T]),
}

impl<'a, T> Source<'a, T> {
    pub(super) fn len(&self) -> usize {
        self.elements().len()
    }

    /// An image of so many elements.
    pub(super) fn image(&self, at: usize, size: usize) -> Result<Source<'a, T>, Stopped> {
        self.part(at * size..(at + 1) * size)
    }

    /// An image from the first channel of a block on.
    pub(super) fn from(&self, channel: usize, axes: &[Axis; 2]) -> Result<Source<'a, T>, Stopped> {
        self.part(axes.iter().map(|axis| axis.input).fold(channel, usize::saturating_mul)..self.len())
    }

    fn part(&self, range: Range<usize>) -> Result<Source<'a, T>, Stopped> {
        let own = self.elements().get(range).ok_or(Stopped::Misfit)?;
        Ok(match self {
            Source::Planes(_) => Source::Planes(own),
            Source::Blocks(_) => Source::Blocks(own),
        })
    }

    fn elements(&self) -> &'a [T] {
        match self {
            Source::Planes(elements) | Source::Blocks(elements) => elements,
        }
    }
}

/// Places of a band along a row, and elements of a band: about a quarter of a usual second cache. Of all bands that are in
/// memory at a time: nearly [`ROOM`](super::ROOM).
pub const COLUMNS: usize = 224;
const ELEMENTS: usize = 1 << 16;
const MANY: usize = 7 << 19;

/// Places that are finished together, if they are floats: half of a usual first cache.
pub(super) const PLACES: usize = 1 << 7;

/// Rows and columns of the taps of a window.
pub(super) type Sight = [Range<usize>; 2];

/// How places of the output are divided into bands, and how a band is stored.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    axes: [Axis; 2],
    /// Planes of an image: channels, or blocks of them.
    planes: usize,
    channels: usize,
    /// Elements from a column of a plane to the next: 1, or the channels of a block.
    distance: usize,
    /// Places of the output in a band.
    rows: usize,
    columns: usize,
    /// The image is read where it is.
    in_place: bool,
    /// No place reads rows in padding.
    without_rows: bool,
    /// The rows and columns of the output whose places see no padding.
    inside: [Range<usize>; 2],
    /// Rows of a plane in a band, and the columns of each that have the same rest, divided by the stride.
    height: usize,
    width: usize,
}

impl Grid {
    /// For a multiple of `threads` bands of nearly the same size, if there are so many rows or one is long. None if places
    /// can't be counted. There are so many rooms for bands.
    pub(super) fn of<T>(
        axes: &[Axis; 2],
        channels: usize,
        images: &Source<'_, T>,
        threads: usize,
        rooms: usize,
    ) -> Option<Grid> {
        let (planes, distance) = match images {
            Source::Planes(_) => (channels, 1),
            Source::Blocks(_) => (channels.div_ceil(CHANNELS), CHANNELS),
        };
        if !axes.iter().all(Axis::fits) || axes.iter().any(|axis| axis.kernel == 0) {
            return None;
        }
        let [mut rows, mut columns] = *axes;
        let one = |axis: &Axis| (axis.kernel, axis.stride, axis.pad) == (1, 1, 0) && axis.input == axis.output;
        if one(&rows) && one(&columns) {
            // One long row.
            let all = rows.output.checked_mul(columns.output)?;
            (columns.input, columns.output) = (all, all);
            (rows.input, rows.output) = (1, 1);
        }
        let end = |axis: &Axis| (axis.output.max(1) - 1) * axis.stride + (axis.kernel - 1) * axis.dilation;
        let inside = |axis: &Axis| axis.pad == 0 && end(axis) < axis.input;
        let in_place = columns.stride == 1 && inside(&rows) && inside(&columns);
        // Threads share rows, or the places of the only one.
        let along = if rows.output > 1 { 1 } else { threads.max(1) };
        let across = columns.output.div_ceil(COLUMNS).next_multiple_of(along);
        let wide = columns.output.div_ceil(across.max(1));
        let width = line::width(&columns, wide);
        let line = width.checked_mul(columns.stride)?.checked_mul(planes)?.checked_mul(distance)?;
        let around = (rows.kernel - 1) * rows.dilation / rows.stride;
        let [few, many] =
            [ELEMENTS, MANY / rooms.max(1)].map(|room| (room / line.max(1) / rows.stride).saturating_sub(around));
        // If not even a row is near, several save reading the filters again.
        let most = if few > 0 { few } else { many };
        let bands = rows.output.div_ceil(most.clamp(1, rows.output.max(1))).next_multiple_of(threads.max(1));
        let high = rows.output.div_ceil(bands.max(1)).max(1);
        let height = span(&rows, high);
        line.checked_mul(height)?;
        let axes = [rows, columns];
        let inside = axes.each_ref().map(|axis| axis.inside(&(0..axis.output)));
        let (rows, columns) = (high, wide.max(1));
        Some(Grid {
            axes,
            inside,
            planes,
            channels,
            distance,
            rows,
            columns,
            in_place,
            without_rows: false,
            height,
            width,
        })
    }

    /// Elements of an image.
    pub(super) fn image(&self) -> usize {
        let plane = self.axes.iter().map(|axis| axis.input).fold(self.distance, usize::saturating_mul);
        self.planes.saturating_mul(plane)
    }

    /// Elements of memory for a band.
    pub(super) fn room(&self) -> usize {
        let [_, columns] = &self.axes;
        if self.in_place { 0 } else { self.planes * self.distance * self.height * self.width * columns.stride }
    }

    /// Places of a plane that a band sees, and more.
    pub(super) fn seen(&self) -> usize {
        let [rows, columns] = &self.axes;
        match self.in_place {
            true => rows.input.saturating_mul(columns.input),
            false => self.height.saturating_mul(self.width).saturating_mul(columns.stride),
        }
    }

    /// Whether a band sees more than is kept near.
    pub(super) fn is_far(&self) -> bool {
        let seen = if self.in_place { self.most().saturating_mul(self.planes * self.distance) } else { self.room() };
        seen > ELEMENTS
    }

    /// Places of the output in a band, at most.
    pub(super) fn most(&self) -> usize {
        self.rows.saturating_mul(self.columns)
    }

    /// The memory of each thread.
    pub(super) fn rooms<'a, T>(&self, scratch: &'a mut [T], threads: usize) -> Vec<&'a mut [T]> {
        match self.room() {
            0 => (0..threads).map(|_| Default::default()).collect(),
            room => scratch.chunks_exact_mut(room).take(threads).collect(),
        }
    }

    fn counts(&self) -> [usize; 2] {
        let [rows, columns] = &self.axes;
        [rows.output.div_ceil(self.rows), columns.output.div_ceil(self.columns)]
    }

    pub(super) fn bands(&self) -> usize {
        let [rows, columns] = self.counts();
        rows * columns
    }

    /// Elements before the first channel of a block, where they are read.
    pub(super) fn plane_of(&self, channel: usize) -> usize {
        let [_, plane, _] = self.strides();
        channel / self.distance * plane
    }

    /// Elements from a block of channels to the next, where they are read.
    pub(super) fn block(&self) -> usize {
        let [_, plane, _] = self.strides();
        plane
    }

    /// Elements from a row and from a plane to the next, and from a remainder of columns to the next, where they are read.
    fn strides(&self) -> [usize; 3] {
        let [rows, columns] = &self.axes;
        match self.in_place {
            true => [columns.input * self.distance, rows.input * columns.input * self.distance, 0],
            false => {
                let (part, row) = (self.width * self.distance, self.width * self.distance * columns.stride);
                [row, row * self.height, part]
            }
        }
    }

    /// Whether these places of a row see no padding.
    #[inline(always)]
    pub(super) fn is_inside(&self, row: usize, places: &Range<usize>) -> bool {
        let [rows, columns] = &self.inside;
        rows.contains(&row) && columns.start <= places.start && places.end <= columns.end
    }

    /// The taps that some of the places of a row see, rather than what is around an image.
    pub(super) fn sight(&self, row: usize, places: &Range<usize>) -> Sight {
        let [rows, columns] = &self.axes;
        let (first, last) = (columns.taps(places.start), columns.taps(places.end.max(1) - 1));
        [rows.taps(row), last.start..first.end.max(last.start)]
    }

    /// The same, where no place reads rows in padding: they may be anything.
    pub(super) fn without_rows_in_padding(self) -> Grid {
        Grid { without_rows: true, ..self }
    }

    /// Rows and columns of a window.
    pub(super) fn kernel(&self) -> [usize; 2] {
        self.axes.each_ref().map(|axis| axis.kernel)
    }

    /// The sights of all rows of tiles of at most so many places, those of whole windows only if `whole`; none if they are many.
    pub(super) fn sights(&self, most: [usize; 2], whole: bool) -> SmallVec<[Sight; 4]> {
        /// Each has a table.
        const MANY: usize = 16;
        let [rows, columns] = &self.axes;
        let (all, [height, width]) = ([0..rows.output, 0..columns.output], self.kernel());
        if self.inside == all && !whole {
            return SmallVec::new();
        }
        let (mut across, mut sights): (SmallVec<[Range<usize>; 8]>, SmallVec<[Sight; 4]>) = Default::default();
        for start in (0..columns.output).step_by(self.columns) {
            let band = start..columns.output.min(start + self.columns);
            for places in most.into_iter().flat_map(|most| tiles(band.clone(), most)) {
                let [_, seen] = self.sight(0, &places);
                if !across.contains(&seen) {
                    across.push(seen);
                }
            }
        }
        let mut before = None;
        for down in (0..rows.output).map(|row| rows.taps(row)) {
            if before.as_ref() == Some(&down) {
                continue;
            }
            for sight in across.iter().map(|across| [down.clone(), across.clone()]) {
                if (whole || sight != [0..height, 0..width]) && !sights.contains(&sight) {
                    sights.push(sight);
                }
            }
            if sights.len() > MANY {
                return SmallVec::new();
            }
            before = Some(down);
        }
        sights
    }

    /// Where each step is seen from a place: by channels, of which every `some` are one, then rows, then columns.
    pub(super) fn offsets(&self, some: usize, to: &mut [u32], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let [rows, columns] = &self.axes;
        let [row, plane, part] = self.strides();
        let taps = (0..rows.kernel).flat_map(|r| (0..columns.kernel).map(move |c| (r, c)));
        let tap = |(r, c): (usize, usize)| {
            let column = c * columns.dilation;
            r * rows.dilation * row + column % columns.stride * part + column / columns.stride * self.distance
        };
        let mut to = to.iter_mut();
        for channel in (0..self.channels).step_by(some) {
            lookout.after(size_of::<u32>() * rows.kernel * columns.kernel)?;
            let start = channel / self.distance * plane + channel % self.distance;
            for at in taps.clone() {
                match to.next() {
                    Some(to) => *to = u32::try_from(start + tap(at)).map_err(|_| Stopped::Misfit)?,
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    pub(super) fn band(&self, at: usize) -> Band<'_> {
        let [rows, columns] = &self.axes;
        let [_, across] = self.counts();
        let part = |at: usize, size: usize, end: usize| at * size..end.min((at + 1) * size);
        let (own_rows, own_columns) = (at / across.max(1), at % across.max(1));
        Band {
            grid: self,
            rows: part(own_rows, self.rows, rows.output),
            columns: part(own_columns, self.columns, columns.output),
        }
    }
}

/// Some rows and columns of the output.
#[derive(Debug, Clone)]
pub(super) struct Band<'a> {
    grid: &'a Grid,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

impl Band<'_> {
    /// The rows, in parts of so many places that follow each other in the output: what is done with their sums is worth a call.
    pub(super) fn parts(&self, places: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let [_, columns] = &self.grid.axes;
        let most = if self.columns.len() == columns.output { places / self.columns.len().max(1) } else { 1 };
        let (most, Range { start, end }) = (most.max(1), self.rows.clone());
        (start..end).step_by(most).map(move |row| row..end.min(row + most))
    }

    /// The number of a place in a plane of the output.
    pub(super) fn number(&self, row: usize, column: usize) -> usize {
        let [_, columns] = &self.grid.axes;
        row * columns.output + column
    }

    /// Where the window of a place of the output begins in what is seen.
    pub(super) fn place(&self, row: usize, column: usize) -> usize {
        let [rows, columns] = &self.grid.axes;
        let [own, _, _] = self.grid.strides();
        match self.grid.in_place {
            true => row * rows.stride * own + column * columns.stride * self.grid.distance,
            false => (row - self.rows.start) * rows.stride * own + (column - self.columns.start) * self.grid.distance,
        }
    }

    /// What the places see of an image: in place, or copied to the `room`, with `outside` around it.
    pub(super) fn fill<'s, T: Pod>(
        &self,
        images: &Source<'s, T>,
        image: usize,
        outside: T,
        room: &'s mut [T],
        lookout: &mut Lookout<'_>,
    ) -> Result<&'s [T], Stopped> {
        let Grid { axes: [rows, columns], distance, height, width, .. } = *self.grid;
        let own = Line::new(&columns, self.columns.start, width, distance);
        let elements = images.image(image, self.grid.image())?.elements();
        if self.grid.in_place {
            return Ok(elements);
        }
        let room = room.get_mut(..self.grid.room()).ok_or(Stopped::Misfit)?;
        let line = columns.input * distance;
        if elements.is_empty() {
            room.fill(outside);
            return Ok(room);
        }
        let planes = elements.chunks_exact((rows.input * line).max(1));
        for (plane, room) in planes.zip(room.chunks_exact_mut(height * width * columns.stride * distance)) {
            for (at, room) in room.chunks_exact_mut(width * columns.stride * distance).enumerate() {
                let seen = (0..rows.kernel)
                    .any(|tap| at.checked_sub(tap * rows.dilation).is_some_and(|start| start % rows.stride == 0));
                if !seen {
                    continue;
                }
                lookout.after(size_of_val(room))?;
                let row = (self.rows.start * rows.stride + at).checked_sub(rows.pad).filter(|row| *row < rows.input);
                let from = row.and_then(|row| plane.get(row * line..(row + 1) * line));
                match from {
                    Some(from) => own.copy(from, outside, false, room),
                    None if self.grid.without_rows => {}
                    None => room.fill(outside),
                }
            }
        }
        Ok(room)
    }
}
