//! Copies elements to an output whose coordinates follow those of the source axis by axis: slices, repeats, paddings.
//! They know the size of elements, not their type.

mod concat;

pub use concat::concat;

use crate::cpu::for_each_level;
use crate::{Resources, Stopped, parallel};
use bytemuck::Pod;
use smallvec::SmallVec;

/// The elements that are copied.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub data: &'a [u8],
    /// Bytes of an element.
    pub element: usize,
    /// An element for the places of [`Fill::Constant`].
    pub constant: &'a [u8],
}

/// An axis of the output.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    pub size: usize,
    /// Elements of the source between neighbours along the axis.
    pub stride: usize,
    pub map: Map,
}

/// From a coordinate `k` of the output to that of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Map {
    /// `start + k * step`
    Line { start: usize, step: isize },
    /// `start + k - before`, if that is among the `size` coordinates from `start` on; elsewhere as `fill` says.
    Padded { start: usize, size: usize, before: usize, fill: Fill },
}

/// What is around the coordinates of the source. `size` is not 0, except for `Constant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    Constant,
    /// The first or last coordinate.
    Edge,
    /// The coordinates mirrored at the first and last one, again and again.
    Reflect,
    /// The coordinates again and again.
    Wrap,
}

/// `out[k..] = data[map(k)..]`. Fills all of `out`.
pub fn copy(source: Source<'_>, axes: &[Axis], out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    if source.data.is_empty() {
        // There is nothing but padding.
        return parallel::split(out, source.element, resources, |_, out| {
            repeat(source.constant, out);
            Ok(())
        });
    }
    Plan::new(source.element, axes).copy(source, out, resources)
}

/// Neighbouring elements are moved as one unit up to this many bytes.
const MOST_UNIT: usize = 4096;

/// The axes in bytes: those of size 1 are left out, and neighbours are merged if the source has an even stride through
/// both.
#[derive(Debug)]
pub(super) struct Plan {
    /// Bytes that stay together, and that nothing divides.
    pub(super) unit: usize,
    /// The place of the first unit that a path refers to.
    pub(super) base: isize,
    /// Outermost first.
    pub(super) dims: SmallVec<[Dim; 6]>,
}

/// An axis of the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dim {
    pub(super) size: usize,
    pub(super) path: Path,
}

/// A [`Map`] in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path {
    Line { step: isize },
    Padded { size: usize, stride: isize, before: usize, fill: Fill },
}

impl Plan {
    /// The output and the source are not empty, so all products fit.
    pub(super) fn new(element: usize, axes: &[Axis]) -> Plan {
        let mut plan = Plan { unit: element, base: 0, dims: SmallVec::new() };
        for axis in axes.iter().rev() {
            let stride = (axis.stride * element) as isize;
            let (start, step) = match axis.map {
                Map::Line { start, step } => (start, step),
                Map::Padded { start, size, before: 0, .. } if size == axis.size => (start, 1),
                Map::Padded { start, size: 1, fill: Fill::Edge | Fill::Reflect | Fill::Wrap, .. } => (start, 0),
                Map::Padded { start, size, before, fill } => {
                    plan.base += start as isize * stride;
                    plan.dims.push(Dim { size: axis.size, path: Path::Padded { size, stride, before, fill } });
                    continue;
                }
            };
            plan.base += start as isize * stride;
            plan.line(axis.size, step * stride);
        }
        plan.dims.reverse();
        plan
    }

    fn line(&mut self, size: usize, step: isize) {
        let unit = self.unit * size;
        match self.dims.last_mut() {
            _ if size == 1 => {}
            None if step == self.unit as isize && unit <= MOST_UNIT => self.unit = unit,
            Some(Dim { size: inner, path: Path::Line { step: by } }) if step == *inner as isize * *by => *inner *= size,
            _ => self.dims.push(Dim { size, path: Path::Line { step } }),
        }
    }

    pub(super) fn copy(&self, source: Source<'_>, out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
        if let [outer @ .., Dim { size: rows, path: Path::Line { step } }, Dim { size, path: Path::Line { step: by } }] =
            &*self.dims
            && size * self.unit <= MOST_UNIT
        {
            // Short rows: several at once.
            let row = size * self.unit;
            return parallel::split(out, row, resources, |first, mut out| {
                let mut walk = Walk::new(outer, self.base, first / rows);
                let mut before = first % rows;
                while !out.is_empty() {
                    let (to, rest) = out.split_at_mut(((rows - before) * row).min(out.len()));
                    match walk.place() {
                        Some(place) => {
                            let at = place + before as isize * step;
                            grid(source.data, Grid { at, steps: [*step, *by], columns: *size, unit: self.unit }, to)?;
                        }
                        None => repeat(source.constant, to),
                    }
                    walk.advance();
                    (out, before) = (rest, 0);
                }
                Ok(())
            });
        }
        let whole = Dim { size: 1, path: Path::Line { step: 0 } };
        let (row, outer) = self.dims.split_last().unwrap_or((&whole, &[]));
        let runs = row.first_runs();
        parallel::split(out, self.unit, resources, |first, mut out| {
            let mut walk = Walk::new(outer, self.base, first / row.size);
            let mut before = first % row.size;
            while !out.is_empty() {
                let now = ((row.size - before) * self.unit).min(out.len());
                let (to, rest) = out.split_at_mut(now);
                match walk.place() {
                    Some(place) => self.row(source, (row, &runs), place, before, to)?,
                    None => repeat(source.constant, to),
                }
                walk.advance();
                (out, before) = (rest, 0);
            }
            Ok(())
        })
    }

    /// Fills a row from its coordinate `k` on. Its first runs are known.
    fn row(
        &self,
        source: Source<'_>,
        (row, runs): (&Dim, &[Run]),
        place: isize,
        mut k: usize,
        mut out: &mut [u8],
    ) -> Result<(), Stopped> {
        let mut known = if k == 0 { runs.iter() } else { [].iter() };
        while !out.is_empty() {
            let run = known.next().copied().unwrap_or_else(|| row.run(k));
            let (to, rest) = out.split_at_mut((run.count * self.unit).min(out.len()));
            match run.at {
                Some(at) => line(source.data, place + at, run.step, self.unit, to)?,
                None => repeat(source.constant, to),
            }
            (out, k) = (rest, k + run.count);
        }
        Ok(())
    }
}

/// Consecutive coordinates with places in the source at even distances.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The first place; `None` for the constant.
    at: Option<isize>,
    step: isize,
    count: usize,
}

impl Dim {
    /// The first runs of the axis: of most axes all, one inside and one on either side.
    fn first_runs(&self) -> SmallVec<[Run; 3]> {
        let (mut runs, mut k) = (SmallVec::new(), 0);
        while k < self.size && runs.len() < runs.inline_size() {
            let run = self.run(k);
            runs.push(run);
            k += run.count;
        }
        runs
    }

    /// The run that starts at the coordinate `k`.
    #[inline]
    fn run(&self, k: usize) -> Run {
        let left = self.size - k;
        let (size, stride, before, fill) = match self.path {
            Path::Line { step } => return Run { at: Some(k as isize * step), step, count: left },
            Path::Padded { size, stride, before, fill } => (size, stride, before, fill),
        };
        let run = |at: usize, step, count: usize| Run { at: Some(at as isize * stride), step, count: count.min(left) };
        match (fill, k.checked_sub(before)) {
            (_, Some(at)) if at < size => run(at, stride, size - at),
            (Fill::Constant, None) => Run { at: None, step: 0, count: before - k },
            (Fill::Constant, Some(_)) => Run { at: None, step: 0, count: left },
            (Fill::Edge, None) => run(0, 0, before - k),
            (Fill::Edge, Some(_)) => run(size - 1, 0, left),
            (Fill::Wrap, _) => {
                let at = (k + size - before % size) % size;
                run(at, stride, size - at)
            }
            (Fill::Reflect, _) => {
                let period = 2 * (size - 1);
                let at = (k + period - before % period) % period;
                if at < size - 1 { run(at, stride, size - 1 - at) } else { run(period - at, -stride, period - at) }
            }
        }
    }
}

/// Iterates over the coordinates of axes, with their place in the source.
pub(super) struct Walk<'a> {
    base: isize,
    /// Outermost first: the coordinate, and the place with those before it.
    at: SmallVec<[(&'a Dim, usize, Option<isize>); 6]>,
}

impl<'a> Walk<'a> {
    /// Starts at the coordinates with the row-major index `first`.
    pub(super) fn new(dims: &'a [Dim], base: isize, mut first: usize) -> Walk<'a> {
        let mut at: SmallVec<[(&Dim, usize, Option<isize>); 6]> = dims.iter().map(|dim| (dim, 0, None)).collect();
        for (dim, k, _) in at.iter_mut().rev() {
            (*k, first) = (first % dim.size, first / dim.size);
        }
        let mut walk = Walk { base, at };
        walk.update(0);
        walk
    }

    /// The place; `None` for the constant.
    #[inline]
    pub(super) fn place(&self) -> Option<isize> {
        self.at.last().map_or(Some(self.base), |(_, _, place)| *place)
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        let mut changed = self.at.len();
        for (dim, k, _) in self.at.iter_mut().rev() {
            changed -= 1;
            *k += 1;
            if *k < dim.size {
                break;
            }
            *k = 0;
        }
        self.update(changed);
    }

    /// Finds the places again from an axis on.
    #[inline]
    fn update(&mut self, changed: usize) {
        let before = changed.checked_sub(1).and_then(|d| self.at.get(d));
        let mut outer = before.map_or(Some(self.base), |(_, _, place)| *place);
        for (dim, k, place) in self.at.iter_mut().skip(changed) {
            outer = outer.and_then(|outer| Some(outer + dim.run(*k).at?));
            *place = outer;
        }
    }
}

/// Fills `out` with units at even distances.
fn line(data: &[u8], at: isize, step: isize, unit: usize, out: &mut [u8]) -> Result<(), Stopped> {
    /// Units that take less time than choosing a loop for them.
    const FEW: usize = 16;
    if step == unit as isize || out.len() == unit {
        let from = usize::try_from(at).ok().and_then(|at| data.get(at..at + out.len()));
        out.copy_from_slice(from.ok_or(Stopped::OutOfRange)?);
        return Ok(());
    }
    match unit {
        _ if out.len() > FEW * unit => {}
        1 => return few::<1>(data, at, step, out),
        2 => return few::<2>(data, at, step, out),
        4 => return few::<4>(data, at, step, out),
        8 => return few::<8>(data, at, step, out),
        16 => return few::<16>(data, at, step, out),
        _ => {}
    }
    grid(data, Grid { at, steps: [0, step], columns: out.len() / unit, unit }, out)
}

/// As [`line`], unit by unit.
fn few<const N: usize>(data: &[u8], mut at: isize, step: isize, out: &mut [u8]) -> Result<(), Stopped> {
    for to in out.as_chunks_mut::<N>().0 {
        let from = usize::try_from(at).ok().and_then(|at| data.get(at..)?.first_chunk());
        *to = *from.ok_or(Stopped::OutOfRange)?;
        at += step;
    }
    Ok(())
}

/// Units in rows and columns.
#[derive(Debug, Clone, Copy)]
struct Grid {
    /// The first one.
    at: isize,
    /// Bytes from a row to the next one, and from a column to the next one.
    steps: [isize; 2],
    columns: usize,
    unit: usize,
}

/// Fills `out` with the rows of a grid.
fn grid(data: &[u8], grid: Grid, out: &mut [u8]) -> Result<(), Stopped> {
    let Grid { at, steps: [down, right], columns, unit } = grid;
    let rows = out.len() / (columns * unit);
    // The first and the last byte that are read.
    let ends = [down * (rows as isize - 1), right * (columns as isize - 1)];
    let least = at + ends.iter().map(|end| end.min(&0)).sum::<isize>();
    let most = at + ends.iter().map(|end| end.max(&0)).sum::<isize>() + unit as isize;
    if least < 0 || most > data.len() as isize {
        return Err(Stopped::OutOfRange);
    }
    match unit {
        1 => words::<u8>(data, grid, out),
        2 => words::<u16>(data, grid, out),
        4 => words::<u32>(data, grid, out),
        8 => words::<u64>(data, grid, out),
        16 => words::<u128>(data, grid, out),
        32 => words::<[u8; 32]>(data, grid, out),
        64 => words::<[u8; 64]>(data, grid, out),
        128 => words::<[u8; 128]>(data, grid, out),
        256 => words::<[u8; 256]>(data, grid, out),
        _ => {
            for (row, to) in out.chunks_exact_mut(columns * unit).enumerate() {
                for (column, to) in to.chunks_exact_mut(unit).enumerate() {
                    let at = (at + row as isize * down + column as isize * right) as usize;
                    to.copy_from_slice(data.get(at..at + unit).ok_or(Stopped::OutOfRange)?);
                }
            }
        }
    }
    Ok(())
}

/// The caller has checked that the grid is in `data`.
fn words<T: Pod>(data: &[u8], grid: Grid, out: &mut [u8]) {
    let even = [0, size_of::<T>() as isize, -(size_of::<T>() as isize)].contains(&grid.steps[1]);
    // At higher levels, uneven steps would become gather instructions, which are slower than single loads.
    if even || size_of::<T>() > 16 { fast_words::<T>(data, grid, out) } else { words_body::<T>(data, grid, out) }
}

for_each_level! {
    fn fast_words<T: Pod>(data: &[u8], grid: Grid, out: &mut [u8]) -> () = words_body::<T>;
}

#[inline(always)]
fn words_body<T: Pod>(data: &[u8], grid: Grid, out: &mut [u8]) {
    let (unit, Grid { at, steps: [down, right], columns, .. }) = (size_of::<T>(), grid);
    for (row, to) in out.chunks_exact_mut(columns * unit).enumerate() {
        let (from, to) = (data.as_ptr().wrapping_offset(at + row as isize * down), to.as_mut_ptr());
        let each = |step: isize| {
            for column in 0..columns {
                // SAFETY: `grid` checked the places of the first and the last row and column, and the others are
                // between them; `to` has `columns` words.
                #[allow(unsafe_code)]
                unsafe {
                    let from = from.wrapping_offset(column as isize * step);
                    // Not `unit`: a captured variable is not a constant to the compiler.
                    from.copy_to_nonoverlapping(to.add(column * size_of::<T>()), size_of::<T>());
                }
            }
        };
        // A step that the compiler knows becomes vectors.
        let one = unit as isize;
        match right {
            0 => each(0),
            _ if right == one => each(one),
            _ if right == -one => each(-one),
            _ => each(right),
        }
    }
}

/// Copies each pair of `unit` bytes.
#[inline(always)]
fn each<'a>(unit: usize, pairs: impl Iterator<Item = (&'a mut [u8], &'a [u8])>) {
    #[inline(always)]
    fn fixed<'a, const N: usize>(pairs: impl Iterator<Item = (&'a mut [u8], &'a [u8])>) {
        for (to, from) in pairs {
            if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
                *to = *from;
            }
        }
    }
    match unit {
        1 => fixed::<1>(pairs),
        2 => fixed::<2>(pairs),
        4 => fixed::<4>(pairs),
        8 => fixed::<8>(pairs),
        16 => fixed::<16>(pairs),
        _ => pairs.for_each(|(to, from)| to.copy_from_slice(from)),
    }
}

/// Fills `out` with copies of `unit`.
fn repeat(unit: &[u8], out: &mut [u8]) {
    match unit.first() {
        Some(&byte) if unit.iter().all(|other| *other == byte) => out.fill(byte),
        Some(_) => each(unit.len(), out.chunks_exact_mut(unit.len()).map(|to| (to, unit))),
        None => {}
    }
}

#[cfg(test)]
pub(super) mod tests;
