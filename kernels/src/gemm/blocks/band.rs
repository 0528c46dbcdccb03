//! The part of an image that some places of the output see, with zeros around it.

use super::super::BLOCK;
use super::CHANNELS;
use super::dense::tiles;
use super::line::{self, Line, rests, span};
use crate::windows::Axis;
use crate::{Lookout, Stopped};
use bytemuck::Pod;
use smallvec::SmallVec;
use std::ops::Range;

/// How images are stored.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a, T = f32> {
    /// `[images, channels, slices, rows, columns]`
    Planes(&'a [T]),
    /// `[images, blocks, slices, rows, columns, 16]`
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
    pub(super) fn from(&self, channel: usize, axes: &[Axis; 3]) -> Result<Source<'a, T>, Stopped> {
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
pub(super) const ELEMENTS: usize = 1 << 16;
const MANY: usize = 7 << 19;

/// Places along a row that are worth a band in any case.
const SHORT: usize = 24;

/// Places that are finished together, if they are floats: half of a usual first cache.
pub(super) const PLACES: usize = 1 << 7;

/// Slices, rows and columns of the taps of a window.
pub(super) type Sight = [Range<usize>; 3];

/// Whether places of a row see no padding along the slices and the rows, and the taps there that they see.
pub(super) struct Across {
    is_inside: bool,
    taps: [Range<usize>; 2],
}

/// How places of the output are divided into bands, and how a band is stored. The rows of all slices have numbers.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    axes: [Axis; 3],
    /// Planes of a slice: channels, or blocks of them.
    planes: usize,
    channels: usize,
    /// Elements from a column of a plane to the next: 1, or the channels of a block.
    distance: usize,
    /// Places of the output in a band.
    slices: usize,
    rows: usize,
    columns: usize,
    /// The image is read where it is.
    in_place: bool,
    /// No place reads slices or rows in padding.
    without_rows: bool,
    /// The slices, rows and columns of the output whose places see no padding.
    inside: [Range<usize>; 3],
    /// Slices in a band, rows of each, and the columns of a row that have the same rest, divided by the stride.
    depth: usize,
    height: usize,
    width: usize,
}

impl Grid {
    /// For a multiple of `threads` bands of nearly the same size, if there are so many slices or rows, or one row is long: each
    /// sees about so many `elements`. None if places can't be counted. There are so many rooms for bands.
    pub(super) fn of<T>(
        axes: &[Axis; 3],
        channels: usize,
        images: &Source<'_, T>,
        elements: usize,
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
        let [mut slices, mut rows, mut columns] = *axes;
        // Where windows show single places along an axis, it and the next are one.
        let one = |axis: &Axis| (axis.kernel, axis.stride, axis.pad) == (1, 1, 0) && axis.input == axis.output;
        if one(&rows) && one(&columns) {
            let all = rows.output.checked_mul(columns.output)?;
            (columns.input, columns.output) = (all, all);
            (rows.input, rows.output) = (1, 1);
            if one(&slices) {
                let all = slices.output.checked_mul(all)?;
                (columns.input, columns.output) = (all, all);
                (slices.input, slices.output) = (1, 1);
            }
        }
        let end = |axis: &Axis| (axis.output.max(1) - 1) * axis.stride + (axis.kernel - 1) * axis.dilation;
        let inside = |axis: &Axis| axis.pad == 0 && end(axis) < axis.input;
        let axes = [slices, rows, columns];
        let in_place = columns.stride == 1 && axes.iter().all(inside);
        // Threads share slices, rows, or the places of the only one.
        let threads = threads.max(1);
        let [of_slices, of_rows, along] = match () {
            () if slices.output > 1 && slices.output.is_multiple_of(threads) => [threads, 1, 1],
            () if rows.output > 1 => [1, threads, 1],
            () => [1, 1, threads],
        };
        // What a part of a sum sees is near; of several slices, that may be some of the channels.
        let taps = axes.iter().map(|axis| axis.kernel).fold(1, usize::saturating_mul);
        let seen = (BLOCK / taps + 1).div_ceil(distance) + usize::from(distance > 1);
        let many = MANY / rooms.max(1);
        let near = match slices.output > 1 {
            true => (elements / seen.clamp(1, planes.max(1))).saturating_mul(planes).min(many).max(elements),
            false => elements,
        };
        // Where places see others along the slices alone, there are several in a band.
        let most = match slices.output > 1 && rows.output == 1 {
            true => near / planes.saturating_mul(distance).max(1) / (2 * span(&slices, 1)),
            false => COLUMNS,
        };
        let across = columns.output.div_ceil(most.clamp(SHORT, COLUMNS)).next_multiple_of(along);
        let wide = columns.output.div_ceil(across.max(1));
        let width = line::width(&columns, wide);
        let line = width.checked_mul(columns.stride)?.checked_mul(planes)?.checked_mul(distance)?;
        // So many places along an axis, in a multiple of some parts, that what they see is near; if not even one place is, several
        // save reading the filters again.
        let evenly = |axis: &Axis, most: usize, parts: usize| {
            let count = axis.output.div_ceil(most.clamp(1, axis.output.max(1))).next_multiple_of(parts);
            axis.output.div_ceil(count.max(1)).max(1)
        };
        let part = |axis: &Axis, of_one: usize, parts: usize| {
            let around = (axis.kernel - 1) * axis.dilation / axis.stride;
            let [few, many] = [near, many].map(|room| (room / of_one.max(1) / axis.stride).saturating_sub(around));
            evenly(axis, if few > 0 { few } else { many }, parts)
        };
        // Neighbours share what they see: a band sees about as many slices as rows.
        let more = (near / line.max(1)).isqrt().saturating_sub(span(&slices, 1));
        let deep = evenly(&slices, more / slices.stride + 1, of_slices);
        let high = part(&rows, line.checked_mul(span(&slices, deep))?, of_rows);
        let height = span(&rows, high);
        let plane = line.checked_mul(height)?;
        let deep = if high < rows.output { deep } else { part(&slices, plane, of_slices) };
        let depth = span(&slices, deep);
        plane.checked_mul(depth)?;
        let inside = axes.each_ref().map(|axis| axis.inside(&(0..axis.output)));
        Some(Grid {
            axes,
            inside,
            planes,
            channels,
            distance,
            slices: deep,
            rows: high,
            columns: wide.max(1),
            in_place,
            without_rows: false,
            depth,
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
        let [_, _, columns] = &self.axes;
        let places = self.depth * self.height * self.width * columns.stride;
        if self.in_place { 0 } else { self.planes * self.distance * places }
    }

    /// Places of a block of channels that a band sees, and more.
    pub(super) fn seen(&self) -> usize {
        self.block() / self.distance
    }

    /// Whether a band sees more than is kept near.
    pub(super) fn is_far(&self) -> bool {
        let seen = if self.in_place { self.most().saturating_mul(self.planes * self.distance) } else { self.room() };
        seen > ELEMENTS
    }

    /// Places of the output in a band, at most.
    pub(super) fn most(&self) -> usize {
        self.slices.saturating_mul(self.rows).saturating_mul(self.columns)
    }

    /// The memory of each thread.
    pub(super) fn rooms<'a, T>(&self, scratch: &'a mut [T], threads: usize) -> Vec<&'a mut [T]> {
        match self.room() {
            0 => (0..threads).map(|_| Default::default()).collect(),
            room => scratch.chunks_exact_mut(room).take(threads).collect(),
        }
    }

    /// Bands along the slices, the rows and the columns.
    fn counts(&self) -> [usize; 3] {
        let [slices, rows, columns] = &self.axes;
        [slices.output.div_ceil(self.slices), rows.output.div_ceil(self.rows), columns.output.div_ceil(self.columns)]
    }

    pub(super) fn bands(&self) -> usize {
        self.counts().into_iter().product()
    }

    /// Elements before the first channel of a block, where they are read.
    pub(super) fn plane_of(&self, channel: usize) -> usize {
        channel / self.distance * self.block()
    }

    /// The number of a channel in its block.
    pub(super) fn lane_of(&self, channel: usize) -> usize {
        channel % self.distance
    }

    /// Elements from a block of channels to the next, where they are read.
    pub(super) fn block(&self) -> usize {
        let [_, slice, _] = self.strides();
        let [slices, ..] = &self.axes;
        slice * if self.in_place { slices.input } else { self.depth }
    }

    /// Elements from a row and from a slice to the next, and from a remainder of columns to the next, where they are read.
    fn strides(&self) -> [usize; 3] {
        let [_, rows, columns] = &self.axes;
        match self.in_place {
            true => [columns.input * self.distance, rows.input * columns.input * self.distance, 0],
            false => {
                let (part, row) = (self.width * self.distance, self.width * self.distance * columns.stride);
                [row, row * self.height, part]
            }
        }
    }

    /// The slice of a row, and its number there.
    #[inline(always)]
    fn in_slice(&self, row: usize) -> (usize, usize) {
        let [slices, rows, _] = &self.axes;
        if slices.output <= 1 { (0, row) } else { (row / rows.output.max(1), row % rows.output.max(1)) }
    }

    /// What the places of a row see along the other axes.
    pub(super) fn across(&self, row: usize) -> Across {
        let ([slices, rows, _], (slice, row)) = (&self.axes, self.in_slice(row));
        let [deep, down, _] = &self.inside;
        Across { is_inside: deep.contains(&slice) && down.contains(&row), taps: [slices.taps(slice), rows.taps(row)] }
    }

    /// Whether these places of a row see no padding.
    #[inline(always)]
    pub(super) fn is_inside(&self, across: &Across, places: &Range<usize>) -> bool {
        let [_, _, columns] = &self.inside;
        across.is_inside && columns.start <= places.start && places.end <= columns.end
    }

    /// The taps that some of the places of a row see, rather than what is around an image.
    pub(super) fn sight(&self, across: &Across, places: &Range<usize>) -> Sight {
        let ([_, _, columns], [deep, down]) = (&self.axes, &across.taps);
        let (first, last) = (columns.taps(places.start), columns.taps(places.end.max(1) - 1));
        [deep.clone(), down.clone(), last.start..first.end.max(last.start)]
    }

    /// The same, where no place reads slices or rows in padding: they may be anything.
    pub(super) fn without_rows_in_padding(self) -> Grid {
        Grid { without_rows: true, ..self }
    }

    /// The same, where what bands see is copied even if it could be read in place.
    pub(super) fn copied(self) -> Grid {
        Grid { in_place: false, ..self }
    }

    /// Slices, rows and columns of a window.
    pub(super) fn kernel(&self) -> [usize; 3] {
        self.axes.each_ref().map(|axis| axis.kernel)
    }

    /// The sights of all rows of tiles of at most so many places, those of whole windows only if `whole`; none if they are many.
    pub(super) fn sights(&self, most: [usize; 2], whole: bool) -> SmallVec<[Sight; 4]> {
        /// Each has a table. Along an axis there are three, if windows are small.
        const MANY: usize = 27;
        let [slices, rows, columns] = &self.axes;
        if self.inside == self.axes.each_ref().map(|axis| 0..axis.output) && !whole {
            return SmallVec::new();
        }
        let (mut across, mut sights): (SmallVec<[Range<usize>; 8]>, SmallVec<[Sight; 4]>) = Default::default();
        let first = self.across(0);
        for start in (0..columns.output).step_by(self.columns) {
            let band = start..columns.output.min(start + self.columns);
            for places in most.into_iter().flat_map(|most| tiles(band.clone(), most)) {
                let [_, _, seen] = self.sight(&first, &places);
                if !across.contains(&seen) {
                    across.push(seen);
                }
            }
        }
        let all = self.kernel().map(|taps| 0..taps);
        for (deep, down) in changes(slices).flat_map(|deep| changes(rows).map(move |down| (deep.clone(), down))) {
            for sight in across.iter().map(|across| [deep.clone(), down.clone(), across.clone()]) {
                if (whole || sight != all) && !sights.contains(&sight) {
                    sights.push(sight);
                }
            }
            if sights.len() > MANY {
                return SmallVec::new();
            }
        }
        sights
    }

    /// Where each step is seen from a place: by channels, of which every `some` are one, then slices, rows and columns.
    pub(super) fn offsets(&self, some: usize, to: &mut [u32], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let [slices, rows, columns] = &self.axes;
        let [row, slice, part] = self.strides();
        let all = |axis: &Axis| 0..axis.kernel;
        let tap = |d: usize, r: usize, c: usize| {
            let column = c * columns.dilation;
            d * slices.dilation * slice
                + r * rows.dilation * row
                + column % columns.stride * part
                + column / columns.stride * self.distance
        };
        let count = self.kernel().into_iter().product::<usize>().max(1);
        let (first, others) = to.split_at_mut(count.min(to.len()));
        let mut places = first.iter_mut();
        for (d, r) in all(slices).flat_map(|d| all(rows).map(move |r| (d, r))) {
            for (c, to) in all(columns).zip(&mut places) {
                *to = u32::try_from(tap(d, r, c)).map_err(|_| Stopped::Misfit)?;
            }
        }
        // Those of another channel are as far from each other. The first one begins at 0.
        let most = first.iter().copied().max().unwrap_or(0);
        for (channel, to) in (0..self.channels).step_by(some).skip(1).zip(others.chunks_exact_mut(count)) {
            lookout.after(size_of_val(to))?;
            let start = u32::try_from(self.plane_of(channel) + self.lane_of(channel)).ok();
            let start = start.filter(|start| start.checked_add(most).is_some()).ok_or(Stopped::Misfit)?;
            to.iter_mut().zip(&*first).for_each(|(to, tap)| *to = start + *tap);
        }
        Ok(())
    }

    pub(super) fn band(&self, at: usize) -> Band<'_> {
        let [slices, rows, columns] = &self.axes;
        let [_, down, across] = self.counts().map(|count| count.max(1));
        let part = |at: usize, size: usize, end: usize| at * size..end.min((at + 1) * size);
        Band {
            grid: self,
            slices: part(at / across / down, self.slices, slices.output),
            rows: part(at / across % down, self.rows, rows.output),
            columns: part(at % across, self.columns, columns.output),
        }
    }
}

/// The taps that positions see along an axis, without those that are the same as the ones before.
fn changes(axis: &Axis) -> impl Iterator<Item = Range<usize>> {
    let taps = |at: usize| axis.taps(at);
    (0..axis.output).filter(move |at| *at == 0 || taps(*at) != taps(at - 1)).map(taps)
}

/// Some slices, rows and columns of the output.
#[derive(Debug, Clone)]
pub(super) struct Band<'a> {
    grid: &'a Grid,
    pub(super) slices: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

impl Band<'_> {
    /// The numbers of the rows, in parts of so many places that follow each other in the output: what is done with their sums is
    /// worth a call.
    pub(super) fn parts(&self, places: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let [_, rows, columns] = &self.grid.axes;
        let most = if self.columns.len() == columns.output { places / self.columns.len().max(1) } else { 1 };
        let (most, own, all) = (most.max(1), self.rows.clone(), rows.output);
        let of_slice = move |slice: usize| {
            let Range { start, end } = slice * all + own.start..slice * all + own.end;
            (start..end).step_by(most).map(move |row| row..end.min(row + most))
        };
        self.slices.clone().flat_map(of_slice)
    }

    /// The number of the first tile of a row among those of the band, and how many these are: of so many places at most.
    pub(super) fn among(&self, row: usize, most: usize) -> (usize, usize) {
        let across = self.columns.len().div_ceil(most);
        let (slice, row) = self.grid.in_slice(row);
        let own = (slice - self.slices.start) * self.rows.len() + row - self.rows.start;
        (own * across, self.slices.len() * self.rows.len() * across)
    }

    /// The number of a place in a plane of the output.
    pub(super) fn number(&self, row: usize, column: usize) -> usize {
        let [_, _, columns] = &self.grid.axes;
        row * columns.output + column
    }

    /// Where the window of a place of the output begins in what is seen.
    pub(super) fn place(&self, row: usize, column: usize) -> usize {
        self.line(row) + self.column(column)
    }

    /// How far apart the windows of neighbours in a column of the output begin.
    pub(super) fn down(&self) -> usize {
        let ([_, rows, _], [of_row, ..]) = (&self.grid.axes, self.grid.strides());
        rows.stride * of_row
    }

    /// Where it begins in a row of what is seen.
    pub(super) fn column(&self, column: usize) -> usize {
        // Those that are not next to each other in place are copied by their remainders.
        let first = if self.grid.in_place { 0 } else { self.columns.start };
        (column - first) * self.grid.distance
    }

    /// Where the first row that the places of a row see begins.
    pub(super) fn line(&self, row: usize) -> usize {
        let ([slices, ..], [_, of_slice, _]) = (&self.grid.axes, self.grid.strides());
        let (slice, row) = self.grid.in_slice(row);
        let first = if self.grid.in_place { (0, 0) } else { (self.slices.start, self.rows.start) };
        (slice - first.0) * slices.stride * of_slice + (row - first.1) * self.down()
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
        let Grid { axes: [slices, rows, columns], distance, depth, height, width, .. } = *self.grid;
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
        // Where something `at` so many places along an axis is in the image.
        let place = |axis: &Axis, first: usize, at: usize| {
            (first * axis.stride + at).checked_sub(axis.pad).filter(|place| *place < axis.input)
        };
        let (seen_slices, seen_rows) = (rests(&slices, depth), rests(&rows, height));
        let of_row = width * columns.stride * distance;
        let planes = elements.chunks_exact((slices.input * rows.input * line).max(1));
        for (plane, room) in planes.zip(room.chunks_exact_mut(depth * height * of_row)) {
            for (deep, room) in room.chunks_exact_mut(height * of_row).enumerate() {
                if seen_slices.get(deep % slices.stride) != Some(&true) {
                    continue;
                }
                let slice = place(&slices, self.slices.start, deep);
                for (at, room) in room.chunks_exact_mut(of_row).enumerate() {
                    if seen_rows.get(at % rows.stride) != Some(&true) {
                        continue;
                    }
                    lookout.after(size_of_val(room))?;
                    let row = slice.zip(place(&rows, self.rows.start, at)).map(|(slice, row)| slice * rows.input + row);
                    match row.and_then(|row| plane.get(row * line..(row + 1) * line)) {
                        Some(from) => own.copy(from, outside, false, room),
                        None if self.grid.without_rows => {}
                        None => room.fill(outside),
                    }
                }
            }
        }
        Ok(room)
    }
}
