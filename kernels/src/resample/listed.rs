//! Lists the elements that places of a grid add up, with their weights, for many places at once.

use super::grid::{ALONG, Grid, NOTHING, Padding, Tap, steps};
use super::{Filter, Sample};
use crate::cpu::for_avx2;
use crate::{Lookout, Stopped};

/// Places whose taps are listed together, and the taps from which on there are enough: no place has more.
pub(super) const PLACES: usize = 64;
pub(super) const TAPS: usize = 1 << 10;

/// Places whose sums are computed together: the last ones of a part may read beyond the list.
pub(super) const LANES: usize = 8;

/// What is added up for places that follow each other.
pub(super) struct Sums {
    /// Taps of a place along an axis, and in all.
    along: usize,
    pub(super) each: usize,
    /// Places from a tap to the next one, and those that are listed, up to a multiple of [`LANES`].
    row: usize,
    listed: usize,
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
    fn fill(&mut self, grid: &Grid<'_>, filter: Filter, numbers: &[f64], axis: (usize, usize, usize)) {
        // What is known when this is compiled needs no branch for each place.
        match (grid.padding, filter) {
            (padding @ Padding::Zeros, Filter::Linear) => {
                self.fill_as(&Grid { padding, ..*grid }, Filter::Linear, numbers, axis)
            }
            (padding @ Padding::Border, Filter::Linear) => {
                self.fill_as(&Grid { padding, ..*grid }, Filter::Linear, numbers, axis)
            }
            _ => self.fill_as(grid, filter, numbers, axis),
        }
    }

    #[inline(always)]
    fn fill_as(
        &mut self,
        grid: &Grid<'_>,
        filter: Filter,
        numbers: &[f64],
        (axis, size, stride): (usize, usize, usize),
    ) {
        let (mut places, rank) = ([0.0; PLACES], grid.sizes.len().max(1));
        for (place, number) in places.iter_mut().zip(numbers.get(axis..).unwrap_or(&[]).iter().step_by(rank)) {
            *place = grid.read_at(*number, size);
        }
        let count = numbers.len() / rank;
        for ((at, weights), step) in self.at.iter_mut().zip(&mut self.weights).zip(steps(filter)) {
            for ((at, weight), place) in at.iter_mut().zip(weights).zip(&places).take(count) {
                let tap = grid.tap(filter, *place, *step, size);
                (*at, *weight) = (if tap.0 == NOTHING.0 { tap.0 } else { tap.0.wrapping_mul(stride) }, tap.1);
            }
        }
    }
}

impl Sums {
    pub(super) fn new(along: usize, each: usize) -> Sums {
        let row = PLACES.min((TAPS / each).max(1)) + LANES;
        Sums { along, each, row, listed: 0, at: Vec::new(), weights: Vec::new() }
    }

    /// Takes the sums of some of the `most` places, which have these numbers. Returns how many they are.
    pub(super) fn fill(
        &mut self,
        grid: &Grid<'_>,
        filter: Filter,
        numbers: &[f64],
        most: usize,
        lookout: &mut Lookout<'_>,
    ) -> Result<usize, Stopped> {
        let count = most.min(self.row - LANES);
        self.listed = count.next_multiple_of(LANES);
        self.at.resize(self.each * self.row, NOTHING.0);
        self.weights.resize(self.each * self.row, NOTHING.1);
        list(self, grid, filter, numbers.get(..count * grid.sizes.len()).unwrap_or(&[]));
        lookout.after(count * self.each * size_of::<Tap>())?;
        Ok(count)
    }

    /// Makes the tap `to` from the tap `from` and one along another axis.
    #[inline(always)]
    fn join(&mut self, from: usize, to: usize, at: &[usize; PLACES], weights: &[f64; PLACES]) {
        let places = |tap: usize| tap * self.row..tap * self.row + self.listed;
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
    fn list<>(sums: &mut Sums, grid: &Grid<'_>, filter: Filter, numbers: &[f64]) -> () = list_plainly;
}

#[inline(always)]
fn list_plainly(sums: &mut Sums, grid: &Grid<'_>, filter: Filter, numbers: &[f64]) {
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
    pub(super) fn write_numbers<T: Sample>(sums: &Sums, elements: &[T], skipped: usize, out: &mut [T]) -> () = write::<T, 1>;
}

for_avx2! {
    /// As [`write_numbers`], of elements of two numbers.
    pub(super) fn write_pairs<T: Sample>(sums: &Sums, elements: &[T], skipped: usize, out: &mut [T]) -> () = write::<T, 2>;
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
        add_tap(&mut all, elements, at, weights);
    }
    let mut rounded = [[T::zeroed(); N]; LANES];
    for (to, sums) in rounded.iter_mut().zip(&all) {
        for (to, sum) in to.iter_mut().zip(sums) {
            *to = T::of_f64(*sum);
        }
    }
    rounded
}

/// Adds to sums what an element of each place weighs. No element weighs nothing: the sum stays what it is.
#[inline(always)]
pub(super) fn add_tap<T: Sample, const N: usize>(
    sums: &mut [[f64; N]; LANES],
    elements: &[[T; N]],
    at: &[usize; LANES],
    weights: &[f64; LANES],
) {
    let mut numbers = [[T::zeroed(); N]; LANES];
    for (number, at) in numbers.iter_mut().zip(at) {
        if let Some(element) = elements.get(*at) {
            *number = *element;
        }
    }
    for ((sums, numbers), weight) in sums.iter_mut().zip(&numbers).zip(weights) {
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum += weight * number.to_f64();
        }
    }
}
