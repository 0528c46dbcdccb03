//! Elements between those of a tensor: each position of the output reads neighbours along each axis, with weights.
//!
//! What a position reads along an axis is computed once ([`Span`]). Rows of the input become sums with the weights of the
//! last axis, and a row of the output is the weighted sum of these: in f64, in the order of the elements, rounded once.

mod grid;
mod taps;

pub use grid::{Grid, Padding, affine, sample, sample_nearest};
pub use taps::{Filter, Span, Window};

use super::cpu::for_each_level;
use super::half::odd;
use super::{Lookout, Resources, Stopped, parallel, volume};
use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use smallvec::SmallVec;

/// An element type of numbers.
pub trait Sample: Pod + Send + Sync {
    fn to_f64(self) -> f64;
    /// The nearest element, ties to even; integers saturate.
    fn of_f64(value: f64) -> Self;
}

macro_rules! samples {
    ($($type:ident: $to:expr, $of:expr;)*) => {$(
        impl Sample for $type {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                let to: fn($type) -> f64 = $to;
                to(self)
            }
            #[inline(always)]
            fn of_f64(value: f64) -> Self {
                let of: fn(f64) -> $type = $of;
                of(value)
            }
        }
    )*};
}

samples! {
    f32: f64::from, |value| value as f32;
    f64: |value| value, |value| value;
    f16: f64::from, |value| f16::from_f32(odd(value));
    bf16: f64::from, |value| bf16::from_f32(odd(value));
}

macro_rules! integers {
    ($($type:ident),*) => {
        samples! { $($type: |value| value as f64, |value| value.round_ties_even() as $type;)* }
    };
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

/// The byte of a bool.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub struct Truth(u8);

samples! {
    Truth: |truth| truth.0.into(), |value| Truth(u8::from(value > 0.5));
}

/// An axis of the output.
#[derive(Debug, Clone, Copy)]
pub enum Axis<'a> {
    /// The same as in the input, of this size.
    Whole(usize),
    /// One that has a span for each position, of an axis of the input of this size.
    Taps { input: usize, spans: &'a [Span], weights: &'a [f64] },
}

impl<'a> Axis<'a> {
    fn input(&self) -> usize {
        match self {
            Axis::Whole(size) | Axis::Taps { input: size, .. } => *size,
        }
    }

    fn output(&self) -> usize {
        match self {
            Axis::Whole(size) => *size,
            Axis::Taps { spans, .. } => spans.len(),
        }
    }

    /// Elements that a position reads, at most.
    fn most(&self) -> usize {
        match self {
            Axis::Whole(_) => 1,
            Axis::Taps { spans, .. } => spans.iter().map(|span| span.count).max().unwrap_or(0),
        }
    }

    /// The first element that a position reads, and the weights of those from there on; `None` if it is outside.
    fn taps(&self, at: usize) -> Option<(usize, &'a [f64])> {
        match self {
            Axis::Whole(_) => Some((at, &[1.0])),
            Axis::Taps { spans, weights, .. } => {
                let Span { first, start, count } = spans.get(at)?;
                (*count > 0).then_some((*first, weights.get(*start..start + count).unwrap_or(&[])))
            }
        }
    }
}

/// The axes up to the last that isn't whole, and the elements of an entry of that.
struct Rows<'a> {
    outer: &'a [Axis<'a>],
    spans: &'a [Span],
    weights: &'a [f64],
    /// Elements of the longest span, and whether some positions are outside.
    most: usize,
    has_outside: bool,
    /// Elements of a row of the input.
    input: usize,
    inner: usize,
}

/// Weights of neighbours along axes, and the distance between these.
type Sides<'a> = SmallVec<[(&'a [f64], usize); 6]>;

impl<'a> Rows<'a> {
    fn of(axes: &'a [Axis<'a>]) -> Rows<'a> {
        let last = axes.iter().rposition(|axis| matches!(axis, Axis::Taps { .. })).unwrap_or(0);
        let (outer, rest) = axes.split_at(last);
        let inner = volume(1, rest.iter().skip(1).map(Axis::input).collect::<SmallVec<[usize; 6]>>().iter());
        let (input, spans, weights) = match rest.first() {
            Some(Axis::Taps { input, spans, weights }) => (*input, *spans, *weights),
            _ => (0, &[][..], &[][..]),
        };
        let most = rest.first().map_or(0, Axis::most);
        let has_outside = spans.iter().any(|span| span.count == 0);
        Rows { outer, spans, weights, most, has_outside, input: input.saturating_mul(inner), inner }
    }

    /// Whether columns see two neighbours at most.
    fn in_pairs(&self) -> bool {
        self.inner == 1 && self.most <= 2
    }

    /// Elements of a row of the output.
    fn output(&self) -> usize {
        self.spans.len().saturating_mul(self.inner)
    }

    /// What a row of the output reads along each outer axis: the first row of the input, and for each axis the weights and
    /// the rows between neighbours, the last one first. `None` if it is outside.
    fn sides(&self, row: usize, sides: &mut Sides<'a>) -> Option<usize> {
        let (mut first, mut stride, mut rest) = (0, 1, row);
        sides.clear();
        for axis in self.outer.iter().rev() {
            let size = axis.output().max(1);
            let (at, weights) = axis.taps(rest % size)?;
            rest /= size;
            first += at * stride;
            if !matches!(weights, [1.0]) {
                sides.push((weights, stride));
            }
            stride *= axis.input();
        }
        Some(first)
    }

    /// Replaces the elements that are outside, from the element `at` of a row on.
    fn put_outside<T: Pod>(&self, outside: &[T], at: usize, out: &mut [T]) {
        if !self.has_outside {
            return;
        }
        let mut skipped = at % self.inner;
        let (mut rest, mut at) = (out, at / self.inner);
        while !rest.is_empty() {
            let count = (self.inner - skipped).min(rest.len());
            let (now, others) = std::mem::take(&mut rest).split_at_mut(count);
            if self.spans.get(at).is_none_or(|span| span.count == 0) {
                fill(outside, skipped, now);
            }
            (rest, at, skipped) = (others, at + 1, 0);
        }
    }
}

/// Fills `out` with `pattern` again and again, from its element `at` on.
fn fill<T: Pod>(pattern: &[T], at: usize, out: &mut [T]) {
    let skipped = at.checked_rem(pattern.len()).unwrap_or(0);
    out.iter_mut().zip(pattern.iter().cycle().skip(skipped)).for_each(|(to, element)| *to = *element);
}

/// Columns of the output that are computed together.
const BLOCK: usize = 256;

/// Taps of a position between two looks at the request to stop.
const PART: usize = 16 << 10;

/// Weighted sums of neighbours. Positions outside are `outside`, again and again: a complex number has two elements.
pub fn resample<T: Sample>(
    data: &[T],
    axes: &[Axis<'_>],
    outside: &[T],
    out: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (rows, size) = (Rows::of(axes), size_of::<T>());
    let taps = axes.iter().map(Axis::most).fold(1, usize::saturating_mul);
    parallel::split_by(bytemuck::cast_slice_mut(out), size, taps, resources, |first, out| {
        let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let (len, end, mut lookout) = (rows.output().max(1), first + out.len(), resources.lookout());
        let (mut columns, mut sides, mut sums) = (Columns::new(&rows), Sides::new(), [0.0; BLOCK]);
        for start in (0..len).step_by(BLOCK) {
            columns.turn_to(start, BLOCK.min(len - start));
            for row in first / len..end.div_ceil(len) {
                // Those that are in this part.
                let (from, to) = ((row * len + start).max(first), (row * len + start + columns.count).min(end));
                let Some(out) = out.get_mut(from - first..to.saturating_sub(first)) else { continue };
                let at = from - row * len;
                let Some(nearest) = rows.sides(row, &mut sides) else {
                    fill(outside, at, out);
                    continue;
                };
                let sums = sums.get_mut(..columns.count).ok_or(Stopped::Misfit)?;
                sums.fill(0.0);
                each_row(nearest, &sides, &mut |row, weight| {
                    let elements = data.get(row * rows.input..(row + 1) * rows.input).ok_or(Stopped::Misfit)?;
                    add(weight, columns.of(row, elements, &mut lookout)?, sums);
                    lookout.after(size * columns.count)
                })?;
                store(sums.get(at - start..).unwrap_or(&[]), out);
                rows.put_outside(outside, at, out);
            }
        }
        Ok(())
    })
}

/// Calls `work` with each row that is read, in order, and its weight.
fn each_row(
    first: usize,
    sides: &Sides<'_>,
    work: &mut dyn FnMut(usize, f64) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    let count = sides.iter().fold(1, |count: usize, (weights, _)| count.saturating_mul(weights.len()));
    for number in 0..count {
        let (mut row, mut weight, mut rest) = (first, 1.0, number);
        for (weights, stride) in sides {
            row += rest % weights.len() * stride;
            weight *= weights.get(rest % weights.len()).copied().unwrap_or(0.0);
            rest /= weights.len();
        }
        work(row, weight)?;
    }
    Ok(())
}

/// Rows that are kept: rows of the output that follow each other mostly see the same ones.
const KEPT: usize = 8;

/// What columns of the output see of rows of the input.
struct Columns<'a> {
    rows: &'a Rows<'a>,
    start: usize,
    count: usize,
    pairs: Pairs,
    /// The numbers of the rows whose sums are kept, and the place of the next one.
    numbers: [Option<usize>; KEPT],
    sums: [[f64; BLOCK]; KEPT],
    next: usize,
}

impl<'a> Columns<'a> {
    #[inline(always)]
    fn new(rows: &'a Rows<'a>) -> Columns<'a> {
        let pairs = Pairs { elements: [[0; 2]; BLOCK], weights: [[0.0; BLOCK]; 2] };
        Columns { rows, start: 0, count: 0, pairs, numbers: [None; KEPT], sums: [[0.0; BLOCK]; KEPT], next: 0 }
    }

    /// Has these columns.
    fn turn_to(&mut self, start: usize, count: usize) {
        (self.start, self.count, self.numbers) = (start, count, [None; KEPT]);
        if self.rows.in_pairs() {
            self.pairs.fill(self.rows, start, count);
        }
    }

    /// The sums of a row.
    fn of<T: Sample>(&mut self, row: usize, elements: &[T], lookout: &mut Lookout<'_>) -> Result<&[f64], Stopped> {
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
        if self.rows.in_pairs() {
            sum_pairs(&self.pairs, elements, sums);
            return Ok(sums);
        }
        sums.fill(0.0);
        let spans = spans.get(self.start / inner..).unwrap_or(&[]);
        for part in (0..most).step_by(PART) {
            match inner {
                1 => add_elements(elements, spans, weights, part, sums),
                _ => add_entries(elements, spans, weights, (inner, self.start % inner), part, sums),
            }
            lookout.after(size_of::<T>().saturating_mul(self.count).saturating_mul(PART.min(most - part)))?;
        }
        Ok(sums)
    }
}

/// The elements of columns that see two neighbours at most, and their weights: of one alone the second weighs 0.
struct Pairs {
    elements: [[usize; 2]; BLOCK],
    weights: [[f64; BLOCK]; 2],
}

impl Pairs {
    fn fill(&mut self, rows: &Rows<'_>, start: usize, count: usize) {
        let Pairs { elements, weights: [first, second] } = self;
        let spans = rows.spans.get(start..).unwrap_or(&[]).iter().take(count);
        for (((span, elements), first), second) in spans.zip(elements).zip(first).zip(second) {
            (*elements, *first, *second) = match rows.weights.get(span.start..span.start + span.count) {
                Some([one]) => ([span.first; 2], *one, 0.0),
                Some([one, other]) => ([span.first, span.first + 1], *one, *other),
                _ => ([0; 2], 0.0, 0.0),
            };
        }
    }
}

for_each_level! {
    /// The sums of pairs.
    fn sum_pairs<T: Sample>(pairs: &Pairs, elements: &[T], sums: &mut [f64]) -> () = sum_pairs_plainly;
}

#[inline(always)]
fn sum_pairs_plainly<T: Sample>(pairs: &Pairs, elements: &[T], sums: &mut [f64]) {
    let Pairs { elements: places, weights: [first, second] } = pairs;
    for (((sum, [one, other]), first), second) in sums.iter_mut().zip(places).zip(first).zip(second) {
        let (Some(one), Some(other)) = (elements.get(*one), elements.get(*other)) else { break };
        let (one, other) = (first * one.to_f64(), second * other.to_f64());
        // An element whose weight is 0 may be infinite.
        *sum = if *second == 0.0 { one } else { one + other };
    }
}

for_each_level! {
    /// `sums[k] += weight * row[k]`
    fn add<>(weight: f64, row: &[f64], sums: &mut [f64]) -> () = add_plainly;
}

#[inline(always)]
fn add_plainly(weight: f64, row: &[f64], sums: &mut [f64]) {
    for (sum, element) in sums.iter_mut().zip(row) {
        *sum += weight * element;
    }
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

for_each_level! {
    /// Rounds sums to elements.
    fn store<T: Sample>(sums: &[f64], out: &mut [T]) -> () = store_plainly;
}

#[inline(always)]
fn store_plainly<T: Sample>(sums: &[f64], out: &mut [T]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = T::of_f64(*sum);
    }
}

/// The first element of each span, elements of `element` bytes. Those outside have the bytes `outside`.
pub fn nearest(
    data: &[u8],
    element: usize,
    axes: &[Axis<'_>],
    outside: &[u8],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    match element {
        1 => nearest_of::<u8>(data, axes, outside, out, resources),
        2 => nearest_of::<u16>(data, axes, outside, out, resources),
        4 => nearest_of::<u32>(data, axes, outside, out, resources),
        // A complex64 has the alignment of its parts.
        8 => nearest_of::<[u32; 2]>(data, axes, outside, out, resources),
        _ => nearest_of::<[u64; 2]>(data, axes, outside, out, resources),
    }
}

fn nearest_of<T: Pod + Sync>(
    data: &[u8],
    axes: &[Axis<'_>],
    outside: &[u8],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (rows, size) = (Rows::of(axes), size_of::<T>());
    let outside: T = bytemuck::try_pod_read_unaligned(outside).map_err(|_| Stopped::Misfit)?;
    parallel::split_by(out, size, 2, resources, |first, out| {
        let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let (len, mut sides, mut before) = (rows.output().max(1), Sides::new(), None);
        let (mut at, mut done) = (first % len, 0);
        while done < out.len() {
            let count = (len - at).min(out.len() - done);
            let (others, now) = out.split_at_mut(done);
            let now = now.get_mut(..count).ok_or(Stopped::Misfit)?;
            let nearest = rows.sides((first + done) / len, &mut sides);
            // Rows that follow each other may be the same.
            let same = others.len().checked_sub(len).filter(|_| nearest.is_some() && nearest == before);
            match (nearest, same.and_then(|start| others.get(start + at..start + at + count))) {
                (_, Some(same)) => now.copy_from_slice(same),
                (Some(row), None) => {
                    let from = row * rows.input * size..(row + 1) * rows.input * size;
                    pick(&rows, data.get(from).ok_or(Stopped::Misfit)?, at, now);
                    rows.put_outside(&[outside], at, now);
                }
                (None, None) => now.fill(outside),
            }
            before = nearest;
            (done, at) = (done + count, 0);
        }
        Ok(())
    })
}

/// Copies the entries of a row, at any address, from the element `at` of the output's row on.
fn pick<T: Pod>(rows: &Rows<'_>, row: &[u8], at: usize, mut out: &mut [T]) {
    let (inner, mut skipped, size) = (rows.inner, at % rows.inner, size_of::<T>());
    let spans = rows.spans.get(at / inner..).unwrap_or(&[]);
    if inner == 1 {
        for (out, span) in out.iter_mut().zip(spans) {
            let element = row.get(span.first * size..(span.first + 1) * size);
            element.into_iter().for_each(|element| *out = bytemuck::pod_read_unaligned(element));
        }
        return;
    }
    for span in spans {
        if out.is_empty() {
            break;
        }
        let count = (inner - skipped).min(out.len());
        let (now, rest) = std::mem::take(&mut out).split_at_mut(count);
        let from = (span.first * inner + skipped) * size;
        let entry = row.get(from..from + size_of_val(now));
        entry.into_iter().for_each(|entry| bytemuck::cast_slice_mut(now).copy_from_slice(entry));
        (out, skipped) = (rest, 0);
    }
}

#[cfg(test)]
mod tests;
