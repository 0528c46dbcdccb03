//! Weighted sums along a row of the input, one for each column of the output.

use super::grid::NOTHING;
use super::listed::{LANES, add_tap};
use super::{Rows, Sample, Span};
use crate::cpu::{for_avx2, for_each_level};
use crate::gemm::blocks::CHANNELS;
use crate::{Lookout, Stopped};

/// Columns of the output that are computed together.
pub(super) const BLOCK: usize = 256;

/// Taps of a position between two looks at the request to stop.
const PART: usize = 16 << 10;

/// Rows that are kept: rows of the output that follow each other mostly see the same ones.
const KEPT: usize = 8;

/// What columns of the output see of rows of the input.
pub(super) struct Columns<'a> {
    rows: &'a Rows<'a>,
    start: usize,
    pub(super) count: usize,
    few: Few,
    /// The numbers of the rows whose sums are kept, and the place of the next one.
    numbers: [Option<usize>; KEPT],
    sums: [[f64; BLOCK]; KEPT],
    next: usize,
}

impl<'a> Columns<'a> {
    #[inline(always)]
    pub(super) fn new(rows: &'a Rows<'a>) -> Columns<'a> {
        let taps = if rows.sees_few() { rows.most } else { 0 };
        let few = Few { elements: vec![[0; BLOCK]; taps], weights: vec![[0.0; BLOCK]; taps] };
        Columns { rows, start: 0, count: 0, few, numbers: [None; KEPT], sums: [[0.0; BLOCK]; KEPT], next: 0 }
    }

    /// Has these columns.
    pub(super) fn turn_to(&mut self, start: usize, count: usize) {
        (self.start, self.count, self.numbers) = (start, count, [None; KEPT]);
        if self.rows.sees_few() {
            self.few.fill(self.rows, start, count);
        }
    }

    /// The sums of a row.
    pub(super) fn of<T: Sample>(
        &mut self,
        row: usize,
        elements: &[T],
        lookout: &mut Lookout<'_>,
    ) -> Result<&[f64], Stopped> {
        let kept = self.numbers.iter().position(|number| *number == Some(row));
        let at = kept.unwrap_or(self.next);
        let (Some(sums), Some(number)) = (self.sums.get_mut(at), self.numbers.get_mut(at)) else {
            return Err(Stopped::Misfit);
        };
        let sums = sums.get_mut(..self.count).ok_or(Stopped::Misfit)?;
        if kept.is_some() {
            return Ok(sums);
        }
        *number = Some(row);
        self.next = (at + 1) % KEPT;
        let Rows { spans, weights, most, inner, .. } = *self.rows;
        if self.rows.sees_few() {
            sum_few(&self.few, elements, sums);
            return Ok(sums);
        }
        sums.fill(0.0);
        let spans = spans.get(self.start / inner..).unwrap_or(&[]);
        for part in (0..most).step_by(PART) {
            match inner {
                1 => add_elements(elements, spans, weights, part, sums),
                // Columns start with a block.
                CHANNELS => add_blocks(elements, spans, weights, part, sums),
                _ => add_entries(elements, spans, weights, (inner, self.start % inner), part, sums),
            }
            lookout.after(size_of::<T>().saturating_mul(self.count).saturating_mul(PART.min(most - part)))?;
        }
        Ok(sums)
    }
}

/// Neighbours of columns that see few, at most.
pub(super) const FEW: usize = 8;

/// The elements that columns see, tap by tap, and their weights. Columns that see fewer than others see none at the last taps.
struct Few {
    elements: Vec<[usize; BLOCK]>,
    weights: Vec<[f64; BLOCK]>,
}

impl Few {
    fn fill(&mut self, rows: &Rows<'_>, start: usize, count: usize) {
        let spans = rows.spans.get(start..).unwrap_or(&[]).iter().take(count);
        for (tap, (elements, weights)) in self.elements.iter_mut().zip(&mut self.weights).enumerate() {
            for ((span, element), weight) in spans.clone().zip(elements).zip(weights) {
                let own = rows.weights.get(span.start + tap).filter(|_| tap < span.count);
                (*element, *weight) = own.map_or(NOTHING, |own| (span.first + tap, *own));
            }
        }
    }
}

for_avx2! {
    /// The sums of columns that see few neighbours.
    fn sum_few<T: Sample>(few: &Few, elements: &[T], sums: &mut [f64]) -> () = sum_few_plainly;
}

#[inline(always)]
fn sum_few_plainly<T: Sample>(few: &Few, elements: &[T], sums: &mut [f64]) {
    let (elements, sums) = (elements.as_chunks::<1>().0, sums.as_chunks_mut::<1>().0);
    let (lanes, last) = sums.as_chunks_mut::<LANES>();
    for (k, sums) in lanes.iter_mut().enumerate() {
        *sums = sums_of(few, elements, k);
    }
    if !last.is_empty() {
        last.iter_mut().zip(sums_of(few, elements, lanes.len())).for_each(|(to, sum)| *to = sum);
    }
}

/// The sums of columns that are computed together.
#[inline(always)]
fn sums_of<T: Sample>(few: &Few, elements: &[[T; 1]], k: usize) -> [[f64; 1]; LANES] {
    let mut sums = [[0.0]; LANES];
    for (places, weights) in few.elements.iter().zip(&few.weights) {
        let (places, weights) = (places.as_chunks::<LANES>().0.get(k), weights.as_chunks::<LANES>().0.get(k));
        let (Some(places), Some(weights)) = (places, weights) else { break };
        add_tap(&mut sums, elements, places, weights);
    }
    sums
}

/// The elements and the weights of a span, from the tap `part` on and at most [`PART`].
#[inline(always)]
fn part_of<'a, T>(
    elements: &'a [T],
    span: &Span,
    weights: &'a [f64],
    inner: usize,
    part: usize,
) -> (&'a [T], &'a [f64]) {
    let count = span.count.saturating_sub(part).min(PART);
    let (first, start) = ((span.first + part) * inner, span.start + part);
    let elements = elements.get(first..first + count * inner).unwrap_or(&[]);
    (elements, weights.get(start..start + count).unwrap_or(&[]))
}

for_each_level! {
    /// `sums[k] += weights of span k * elements`
    fn add_elements<T: Sample>(
        elements: &[T], spans: &[Span], weights: &[f64], part: usize, sums: &mut [f64]
    ) -> () = add_elements_plainly;
}

#[inline(always)]
fn add_elements_plainly<T: Sample>(elements: &[T], spans: &[Span], weights: &[f64], part: usize, sums: &mut [f64]) {
    for (sum, span) in sums.iter_mut().zip(spans) {
        let (elements, weights) = part_of(elements, span, weights, 1, part);
        for (element, own) in elements.iter().zip(weights) {
            *sum += own * element.to_f64();
        }
    }
}

for_each_level! {
    /// As [`add_elements`], of blocks of channels.
    fn add_blocks<T: Sample>(
        elements: &[T], spans: &[Span], weights: &[f64], part: usize, sums: &mut [f64]
    ) -> () = add_blocks_plainly;
}

#[inline(always)]
fn add_blocks_plainly<T: Sample>(elements: &[T], spans: &[Span], weights: &[f64], part: usize, sums: &mut [f64]) {
    for (sums, span) in sums.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(spans) {
        let (elements, weights) = part_of(elements, span, weights, CHANNELS, part);
        // A copy stays in registers.
        let mut own = *sums;
        for (block, weight) in elements.as_chunks::<CHANNELS>().0.iter().zip(weights) {
            // Otherwise vectors would be made of the same channel of several blocks.
            for (sum, element) in own.iter_mut().zip(std::hint::black_box(block)) {
                *sum += weight * element.to_f64();
            }
        }
        *sums = own;
    }
}

for_each_level! {
    /// As [`add_elements`], of entries of `inner` elements, of the first of which some are skipped.
    fn add_entries<T: Sample>(
        elements: &[T], spans: &[Span], weights: &[f64], inner: (usize, usize), part: usize, sums: &mut [f64]
    ) -> () = add_entries_plainly;
}

#[inline(always)]
fn add_entries_plainly<T: Sample>(
    elements: &[T],
    spans: &[Span],
    weights: &[f64],
    (inner, mut skipped): (usize, usize),
    part: usize,
    mut sums: &mut [f64],
) {
    for span in spans {
        if sums.is_empty() {
            break;
        }
        let count = (inner - skipped).min(sums.len());
        let (now, rest) = std::mem::take(&mut sums).split_at_mut(count);
        let (elements, weights) = part_of(elements, span, weights, inner, part);
        for (entry, own) in elements.chunks_exact(inner).zip(weights) {
            for (sum, element) in now.iter_mut().zip(entry.get(skipped..).unwrap_or(&[])) {
                *sum += own * element.to_f64();
            }
        }
        (sums, skipped) = (rest, 0);
    }
}
