//! Samples a tensor at the places that a grid lists (GridSample).

use super::listed::{PLACES, Sums, TAPS, write_numbers, write_pairs};
use super::{Filter, Sample};
use crate::cpu::for_avx2;
use crate::positions::Part;
use crate::{Lookout, Resources, Stopped, parallel, volume};
use bytemuck::Pod;
use smallvec::SmallVec;
use std::slice::ChunksExact;

/// What is read outside of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    Zeros,
    /// The element at the border.
    Border,
    /// Elements mirrored at the borders, again and again.
    Reflection,
}

/// Where the places of an output are in its input.
#[derive(Debug, Clone, Copy)]
pub struct Grid<'a> {
    /// The dimensions of a plane of the input; none is 0.
    pub sizes: &'a [usize],
    /// As many numbers for each place, of the last dimension first: -1 is one end of it, 1 the other.
    pub places: &'a [f64],
    /// Places of a plane.
    pub count: usize,
    /// Planes that have the same places.
    pub channels: usize,
    /// Whether the ends are the centers of the elements there; else their outer edges.
    pub corners: bool,
    pub padding: Padding,
}

/// The number of an element that is read, and its weight.
pub(super) type Tap = (usize, f64);

/// No element.
pub(super) const NOTHING: Tap = (usize::MAX, 0.0);

/// Taps along an axis, at most.
pub(super) const ALONG: usize = 4;

impl<'a> Grid<'a> {
    /// Elements of a plane of the input.
    fn plane(&self) -> usize {
        volume(1, self.sizes)
    }

    /// The numbers of the places of a plane, from one on.
    fn from(&self, plane: usize, first: usize) -> &'a [f64] {
        let first = (plane / self.channels.max(1) * self.count + first) * self.sizes.len();
        self.places.get(first..).unwrap_or(&[])
    }

    /// The first and the last coordinate that are inside.
    #[inline(always)]
    fn borders(&self, size: usize) -> (f64, f64) {
        if self.corners { (0.0, size as f64 - 1.0) } else { (-0.5, size as f64 - 0.5) }
    }

    /// Where a number of the grid is along an axis.
    #[inline(always)]
    fn place(&self, number: f64, size: usize) -> f64 {
        match self.corners {
            true => (number + 1.0) / 2.0 * (size as f64 - 1.0),
            false => ((number + 1.0) * size as f64 - 1.0) / 2.0,
        }
    }

    /// A coordinate moved inside, unless zeros are outside.
    #[inline(always)]
    fn inside(&self, place: f64, size: usize) -> f64 {
        let (low, high) = self.borders(size);
        if (low..=high).contains(&place) {
            return place;
        }
        match self.padding {
            Padding::Zeros => place,
            Padding::Border => place.clamp(0.0, size as f64 - 1.0),
            Padding::Reflection => reflected(place, low, high),
        }
    }

    /// The element at a whole coordinate.
    #[inline(always)]
    fn element(&self, at: f64, size: usize) -> Option<usize> {
        let last = size as f64 - 1.0;
        let is_inside = (0.0..=last).contains(&at);
        let moved = match self.padding {
            Padding::Reflection if !is_inside => {
                let (low, high) = self.borders(size);
                reflected(at, low, high)
            }
            _ => at,
        };
        (is_inside || self.padding != Padding::Zeros).then(|| whole(moved.max(0.0).min(last)))
    }

    /// Where along an axis elements are read for a number of the grid.
    #[inline(always)]
    pub(super) fn read_at(&self, number: f64, size: usize) -> f64 {
        self.inside(self.place(number, size), size)
    }

    /// The element so many steps from the one before a place.
    #[inline(always)]
    pub(super) fn tap(&self, filter: Filter, place: f64, step: f64, size: usize) -> Tap {
        let at = place.floor() + step;
        let weight = filter.weight(place - at);
        // An element whose weight is 0 isn't read: it may be infinite.
        self.element(at, size).filter(|_| weight != 0.0).map_or(NOTHING, |element| (element, weight))
    }

    /// The element that is the nearest to a place, halves to the even one.
    #[inline(always)]
    fn nearest(&self, numbers: &[f64]) -> Option<usize> {
        let (mut element, mut stride) = (0, 1);
        for (number, size) in numbers.iter().zip(self.sizes.iter().rev()) {
            let place = self.inside(self.place(*number, *size).round_ties_even(), *size);
            element += self.element(place.floor(), *size)? * stride;
            stride *= size;
        }
        Some(element)
    }
}

/// The steps from the element before a place to those that are read.
#[inline(always)]
pub(super) fn steps(filter: Filter) -> &'static [f64] {
    if filter == Filter::Linear { &[0.0, 1.0] } else { &[-1.0, 0.0, 1.0, 2.0] }
}

/// A whole number from 0 to that of the largest element, in steps that vectors of any processor have.
#[inline(always)]
fn whole(number: f64) -> usize {
    const LARGE: f64 = (1u64 << 52) as f64;
    ((number + LARGE).to_bits() ^ LARGE.to_bits()) as usize
}

/// A coordinate mirrored at both borders until it is between them.
#[inline(always)]
fn reflected(place: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 {
        return low;
    }
    let (beyond, start, end) = if place < low { (low - place, low, high) } else { (place - high, high, low) };
    let rest = beyond % (2.0 * range);
    let sign = (end - start) / range;
    if rest <= range { start + sign * rest } else { end - sign * (rest - range) }
}

/// `out[p, k] = weighted sum of data[p] around place k`: in f64, rounded once. Elements have `parts` numbers each.
pub fn sample<T: Sample>(
    data: &[T],
    grid: &Grid<'_>,
    filter: Filter,
    parts: usize,
    out: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (unit, plane) = (size_of::<T>() * parts, grid.plane() * parts);
    let (taps, rank) = (if filter == Filter::Linear { 2usize } else { 4 }, grid.sizes.len());
    let of_all = |each: usize| each.saturating_pow(rank.min(64) as u32);
    let (cost, is_long) = (of_all(2 * taps), of_all(taps) > TAPS);
    let image = grid.count.saturating_mul(grid.channels).saturating_mul(unit);
    let out = bytemuck::cast_slice_mut(out);
    parallel::pieces(out, unit, image, cost, resources, |number, before, out| {
        let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let (mut lookout, mut sums, first) = (resources.lookout(), Sums::new(taps, of_all(taps)), before / unit);
        if is_long {
            return alone(data, grid, filter, (number, first), parts, out, &mut lookout);
        }
        let part = Part { start: first, len: out.len() / parts, plane: grid.count };
        let mut places = part.places();
        while !places.is_empty() {
            let numbers = grid.from(number * grid.channels, places.start);
            let count = sums.fill(grid, filter, numbers, places.len(), &mut lookout)?;
            for (channel, skipped, own) in part.planes(places.start..places.start + count) {
                let plane = (number * grid.channels + channel) * plane..(number * grid.channels + channel + 1) * plane;
                let elements = data.get(plane).ok_or(Stopped::Misfit)?;
                let out = out.get_mut(own.start * parts..own.end * parts).ok_or(Stopped::Misfit)?;
                lookout.after(count * sums.each * size_of::<T>())?;
                match parts {
                    1 => write_numbers::<T>(&sums, elements, skipped, out),
                    _ => write_pairs::<T>(&sums, elements, skipped, out),
                }
            }
            places.start += count;
        }
        Ok(())
    })
}

/// As [`sample`], of the elements of an image from one on: place by place, for those with more taps than should be listed.
fn alone<T: Sample>(
    data: &[T],
    grid: &Grid<'_>,
    filter: Filter,
    (image, first): (usize, usize),
    parts: usize,
    out: &mut [T],
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let plane = grid.plane() * parts;
    for (k, out) in out.chunks_exact_mut(parts).enumerate() {
        let number = image * grid.channels + (first + k) / grid.count;
        let elements = data.get(number * plane..(number + 1) * plane).ok_or(Stopped::Misfit)?;
        let place = grid.from(number, (first + k) % grid.count).get(..grid.sizes.len()).ok_or(Stopped::Misfit)?;
        let mut sums = [0.0; 2];
        each_line(grid, &filter, place, &mut |side, base, weight| {
            for (at, own) in side {
                let element = elements.get((base + at) * parts..(base + at + 1) * parts).unwrap_or(&[]);
                for (sum, number) in sums.iter_mut().zip(element) {
                    *sum += weight * own * number.to_f64();
                }
            }
            lookout.after(size_of::<T>() * side.len())
        })?;
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::of_f64(sum));
    }
    Ok(())
}

/// What is done with a line of taps, the number of the entry before them, and their weight.
type LineWork<'a> = dyn FnMut(&[Tap], usize, f64) -> Result<(), Stopped> + 'a;

for_avx2! {
    /// Calls `work` with what is added up for a place: taps of the innermost axis, the number of the entry before all of these,
    /// and their weight.
    fn each_line<>(
        grid: &Grid<'_>, filter: &Filter, numbers: &[f64], work: &mut LineWork<'_>
    ) -> Result<(), Stopped> = each_line_plainly;
}

#[inline(always)]
fn each_line_plainly(
    grid: &Grid<'_>,
    filter: &Filter,
    numbers: &[f64],
    work: &mut LineWork<'_>,
) -> Result<(), Stopped> {
    let mut sides = SmallVec::<[SmallVec<[Tap; ALONG]>; 3]>::new();
    // A closure would not be compiled for the level.
    for (number, size) in numbers.iter().zip(grid.sizes.iter().rev()) {
        let place = grid.read_at(*number, *size);
        let side = steps(*filter).iter().map(|step| grid.tap(*filter, place, *step, *size));
        sides.push(side.filter(|tap| tap.0 != NOTHING.0).collect());
    }
    let Some((inner, outer)) = sides.split_first() else { return Ok(()) };
    if sides.iter().any(|side| side.is_empty()) {
        return Ok(());
    }
    // The taps of the outer axes, the last of which changes most slowly.
    let mut taps: SmallVec<[usize; 3]> = SmallVec::from_elem(0, outer.len());
    loop {
        let (mut base, mut stride, mut weight) = (0, grid.sizes.last().copied().unwrap_or(1), 1.0);
        for ((side, tap), size) in outer.iter().zip(&taps).zip(grid.sizes.iter().rev().skip(1)) {
            let (at, own) = side.get(*tap).copied().unwrap_or_default();
            (base, weight, stride) = (base + at * stride, weight * own, stride * size);
        }
        work(inner, base, weight)?;
        let moved = taps.iter_mut().zip(outer).any(|(tap, side)| {
            *tap = if *tap + 1 < side.len() { *tap + 1 } else { 0 };
            *tap > 0
        });
        if !moved {
            return Ok(());
        }
    }
}

/// The element nearest to each place, of `element` bytes. Zeros are zero bytes.
pub fn sample_nearest(
    data: &[u8],
    element: usize,
    grid: &Grid<'_>,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    match element {
        1 => nearest_of::<u8>(data, grid, out, resources),
        2 => nearest_of::<u16>(data, grid, out, resources),
        4 => nearest_of::<u32>(data, grid, out, resources),
        // A complex64 has the alignment of its parts.
        8 => nearest_of::<[u32; 2]>(data, grid, out, resources),
        _ => nearest_of::<[u64; 2]>(data, grid, out, resources),
    }
}

fn nearest_of<T: Pod>(data: &[u8], grid: &Grid<'_>, out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    let (size, rank) = (size_of::<T>(), grid.sizes.len());
    let plane = grid.plane() * size;
    let image = volume(size, &[grid.count, grid.channels]);
    parallel::pieces(out, size, image, 4, resources, |number, before, out| {
        let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let part = Part { start: before / size, len: out.len(), plane: grid.count };
        let (mut places, mut elements) = (part.places(), [None; PLACES]);
        while !places.is_empty() {
            let numbers = grid.from(number * grid.channels, places.start).chunks_exact(rank.max(1));
            let count = places.len().min(PLACES);
            find_nearest(grid, numbers, elements.get_mut(..count).unwrap_or(&mut []));
            for (channel, skipped, own) in part.planes(places.start..places.start + count) {
                let plane = (number * grid.channels + channel) * plane..(number * grid.channels + channel + 1) * plane;
                let plane = data.get(plane).ok_or(Stopped::Misfit)?;
                for (at, out) in elements.iter().skip(skipped).zip(out.get_mut(own).ok_or(Stopped::Misfit)?) {
                    let element = at.and_then(|at| plane.get(at * size..(at + 1) * size));
                    *out = element.map_or(T::zeroed(), bytemuck::pod_read_unaligned);
                }
            }
            places.start += count;
        }
        Ok(())
    })
}

for_avx2! {
    /// Finds the nearest element for each place.
    fn find_nearest<>(grid: &Grid<'_>, places: ChunksExact<'_, f64>, elements: &mut [Option<usize>]) -> () = find_nearest_plainly;
}

#[inline(always)]
fn find_nearest_plainly(grid: &Grid<'_>, places: ChunksExact<'_, f64>, elements: &mut [Option<usize>]) {
    for (element, numbers) in elements.iter_mut().zip(places) {
        *element = grid.nearest(numbers);
    }
}
