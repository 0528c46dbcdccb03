//! Elements at the places that a grid lists.

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
type Tap = (usize, f64);

/// No element.
const NOTHING: Tap = (usize::MAX, 0.0);

/// Taps along an axis, at most.
const ALONG: usize = 4;

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
        if (0.0..=last).contains(&at) {
            return Some(at as usize);
        }
        match self.padding {
            Padding::Zeros => None,
            Padding::Border => Some(at.clamp(0.0, last) as usize),
            Padding::Reflection => {
                let (low, high) = self.borders(size);
                Some(reflected(at, low, high).clamp(0.0, last) as usize)
            }
        }
    }

    /// What a number of the grid reads along an axis.
    #[inline(always)]
    fn read(&self, filter: &Filter, number: f64, size: usize) -> [Tap; ALONG] {
        let place = self.inside(self.place(number, size), size);
        let floor = place.floor();
        let steps: &[f64] = if *filter == Filter::Linear { &[0.0, 1.0] } else { &[-1.0, 0.0, 1.0, 2.0] };
        let mut taps = [NOTHING; ALONG];
        for (tap, step) in taps.iter_mut().zip(steps) {
            let at = floor + step;
            let weight = filter.weight(place - at);
            // An element whose weight is 0 isn't read: it may be infinite.
            if let Some(element) = self.element(at, size).filter(|_| weight != 0.0) {
                *tap = (element, weight);
            }
        }
        taps
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

/// Places whose taps are listed together, and the taps from which on there are enough: no place has more.
const PLACES: usize = 64;
const TAPS: usize = 1 << 10;

/// Places whose sums are computed together: the last ones of a part may read beyond the list.
const LANES: usize = 8;

/// What is added up for places that follow each other.
struct Sums {
    /// Taps of a place along an axis, and in all.
    along: usize,
    each: usize,
    /// Places from a tap to the next one.
    row: usize,
    /// For each tap the numbers of elements, and their weights. Those of no element are [`NOTHING`].
    at: Vec<usize>,
    weights: Vec<f64>,
}

/// The taps of places along an axis.
struct Side {
    at: [[usize; PLACES]; ALONG],
    weights: [[f64; PLACES]; ALONG],
}

impl Side {
    const NOTHING: Side = Side { at: [[NOTHING.0; PLACES]; ALONG], weights: [[NOTHING.1; PLACES]; ALONG] };

    /// Finds the taps of places that have these numbers, along an axis whose neighbours are so far apart.
    #[inline(always)]
    fn fill(&mut self, grid: &Grid<'_>, filter: &Filter, numbers: &[f64], (axis, size, stride): (usize, usize, usize)) {
        for (k, numbers) in numbers.chunks_exact(grid.sizes.len().max(1)).enumerate() {
            let taps = grid.read(filter, numbers.get(axis).copied().unwrap_or(0.0), size);
            for ((at, weights), tap) in self.at.iter_mut().zip(&mut self.weights).zip(taps) {
                if let (Some(at), Some(weight)) = (at.get_mut(k), weights.get_mut(k)) {
                    (*at, *weight) = (if tap.0 == NOTHING.0 { tap.0 } else { tap.0 * stride }, tap.1);
                }
            }
        }
    }
}

impl Sums {
    fn new(along: usize, each: usize) -> Sums {
        let row = PLACES.min((TAPS / each).max(1)) + LANES;
        Sums { along, each, row, at: Vec::new(), weights: Vec::new() }
    }

    /// Takes the sums of some of the `most` places, which have these numbers. Returns how many they are.
    fn fill(
        &mut self,
        grid: &Grid<'_>,
        filter: Filter,
        numbers: &[f64],
        most: usize,
        lookout: &mut Lookout<'_>,
    ) -> Result<usize, Stopped> {
        let count = most.min(self.row - LANES);
        self.at.resize(self.each * self.row, NOTHING.0);
        self.weights.resize(self.each * self.row, NOTHING.1);
        list(self, grid, &filter, numbers.get(..count * grid.sizes.len()).unwrap_or(&[]));
        lookout.after(count * self.each * size_of::<Tap>())?;
        Ok(count)
    }

    /// Makes the tap `to` from the tap `from` and one along another axis.
    #[inline(always)]
    fn join(&mut self, from: usize, to: usize, at: &[usize; PLACES], weights: &[f64; PLACES]) {
        let places = |tap: usize| tap * self.row..tap * self.row + self.row - LANES;
        let (from, to) = (places(from), places(to));
        // Those that are read may be those that are written.
        let (mut before, mut before_weights) = ([0; PLACES], [0.0; PLACES]);
        copy(self.at.get(from.clone()), &mut before);
        copy(self.weights.get(from), &mut before_weights);
        let (Some(to_at), Some(to_weights)) = (self.at.get_mut(to.clone()), self.weights.get_mut(to)) else { return };
        for ((to, before), own) in to_at.iter_mut().zip(&before).zip(at) {
            *to = if *before == NOTHING.0 || *own == NOTHING.0 { NOTHING.0 } else { before.wrapping_add(*own) };
        }
        for (((to, at), before), own) in to_weights.iter_mut().zip(to_at).zip(&before_weights).zip(weights) {
            *to = if *at == NOTHING.0 { NOTHING.1 } else { before * own };
        }
    }
}

#[inline(always)]
fn copy<T: Copy>(from: Option<&[T]>, to: &mut [T; PLACES]) {
    for (to, from) in to.iter_mut().zip(from.unwrap_or(&[])) {
        *to = *from;
    }
}

for_avx2! {
    /// Lists what places read, which have these numbers.
    fn list<>(sums: &mut Sums, grid: &Grid<'_>, filter: &Filter, numbers: &[f64]) -> () = list_plainly;
}

#[inline(always)]
fn list_plainly(sums: &mut Sums, grid: &Grid<'_>, filter: &Filter, numbers: &[f64]) {
    let (along, mut inner, mut outer) = (sums.along, Side::NOTHING, Side::NOTHING);
    let (mut count, mut stride) = (1, grid.sizes.last().copied().unwrap_or(1));
    inner.fill(grid, filter, numbers, (0, stride, 1));
    sums.at.get_mut(..sums.row).unwrap_or(&mut []).fill(0);
    sums.weights.get_mut(..sums.row).unwrap_or(&mut []).fill(1.0);
    // Of the outer axes the last changes most slowly.
    for (axis, size) in grid.sizes.iter().rev().enumerate().skip(1) {
        outer.fill(grid, filter, numbers, (axis, *size, stride));
        for tap in (0..along).rev() {
            if let (Some(at), Some(weights)) = (outer.at.get(tap), outer.weights.get(tap)) {
                for from in 0..count {
                    sums.join(from, tap * count + from, at, weights);
                }
            }
        }
        (count, stride) = (count * along, stride * size);
    }
    for from in (0..count).rev() {
        for tap in (0..along).rev() {
            if let (Some(at), Some(weights)) = (inner.at.get(tap), inner.weights.get(tap)) {
                sums.join(from, from * along + tap, at, weights);
            }
        }
    }
}

for_avx2! {
    /// Writes the sums of a plane, from those of a place on. Elements have `N` numbers.
    fn write_numbers<T: Sample>(sums: &Sums, elements: &[T], skipped: usize, out: &mut [T]) -> () = write::<T, 1>;
}

for_avx2! {
    /// As [`write_numbers`], of elements of two numbers.
    fn write_pairs<T: Sample>(sums: &Sums, elements: &[T], skipped: usize, out: &mut [T]) -> () = write::<T, 2>;
}

#[inline(always)]
fn write<T: Sample, const N: usize>(sums: &Sums, elements: &[T], skipped: usize, out: &mut [T]) {
    let (elements, out) = (elements.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let (lanes, last) = out.as_chunks_mut::<LANES>();
    for (k, out) in lanes.iter_mut().enumerate() {
        *out = sums_of(sums, elements, skipped + k * LANES);
    }
    if !last.is_empty() {
        let all = sums_of(sums, elements, skipped + lanes.len() * LANES);
        last.iter_mut().zip(all).for_each(|(to, sum)| *to = sum);
    }
}

/// The sums of places that are computed together.
#[inline(always)]
fn sums_of<T: Sample, const N: usize>(sums: &Sums, elements: &[[T; N]], first: usize) -> [[T; N]; LANES] {
    let mut all = [[0.0; N]; LANES];
    for (at, weights) in sums.at.chunks_exact(sums.row).zip(sums.weights.chunks_exact(sums.row)) {
        let (at, weights) = (at.get(first..).unwrap_or(&[]), weights.get(first..).unwrap_or(&[]));
        let (Some(at), Some(weights)) = (at.first_chunk::<LANES>(), weights.first_chunk::<LANES>()) else { break };
        // Nothing weighs nothing: the sum stays what it is.
        let mut numbers = [[T::zeroed(); N]; LANES];
        for (number, at) in numbers.iter_mut().zip(at) {
            if let Some(element) = elements.get(*at) {
                *number = *element;
            }
        }
        for ((sums, numbers), weight) in all.iter_mut().zip(&numbers).zip(weights) {
            for (sum, number) in sums.iter_mut().zip(numbers) {
                *sum += weight * number.to_f64();
            }
        }
    }
    let mut rounded = [[T::zeroed(); N]; LANES];
    for (to, sums) in rounded.iter_mut().zip(&all) {
        for (to, sum) in to.iter_mut().zip(sums) {
            *to = T::of_f64(*sum);
        }
    }
    rounded
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
        let side = grid.read(filter, *number, *size);
        sides.push(side.into_iter().filter(|tap| tap.0 != NOTHING.0).collect());
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
