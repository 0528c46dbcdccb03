//! Elements between those of a tensor: each position of the output reads neighbours along each axis, with weights.
//!
//! What a position reads along an axis is computed once ([`Span`]). Rows of the input become sums with the weights of the
//! last axis, and a row of the output is the weighted sum of these: in f64, in the order of the elements, rounded once.

mod affine;
mod columns;
mod grid;
mod listed;
mod nearest;
mod taps;

pub use affine::affine;
pub use grid::{Grid, Padding, sample, sample_nearest};
pub use nearest::nearest;
pub use taps::{Filter, Span, Window};

use super::cpu::for_each_level;
use super::half::odd;
use super::{Resources, Stopped, parallel, volume};
use bytemuck::{Pod, Zeroable};
use columns::{BLOCK, Columns, FEW};
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

    /// Whether columns see few neighbours.
    fn sees_few(&self) -> bool {
        self.inner == 1 && self.most <= FEW
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
            // A division takes as long as a small row.
            let (own, more) = if rest < size { (rest, 0) } else { (rest % size, rest / size) };
            let (at, weights) = axis.taps(own)?;
            rest = more;
            first += at * stride;
            if !matches!(weights, [1.0]) {
                sides.push((weights, stride));
            }
            stride *= axis.input();
        }
        Some(first)
    }

    /// The rows of the output behind one that read the same, nothing but a row of the input.
    fn same(&self, row: usize) -> usize {
        let Some(Axis::Taps { spans, .. }) = self.outer.last() else { return 0 };
        let own = row % spans.len().max(1);
        let is_same = |pair: &&[Span]| matches!(pair, [one, next] if one.first == next.first && next.count == 1);
        spans.get(own..).unwrap_or(&[]).windows(2).take_while(is_same).count()
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
    if out.is_empty() {
        return Ok(());
    }
    parallel::split_by(bytemuck::cast_slice_mut(out), size, taps, resources, |first, out| {
        let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let (len, end, mut lookout) = (rows.output().max(1), first + out.len(), resources.lookout());
        let mut columns = Columns::new(&rows);
        let (mut sides, mut sums) = (Sides::new(), [0.0; BLOCK]);
        let numbers = first / len..end.div_ceil(len);
        // Of a single row, those columns that are in this part.
        let all = if numbers.len() == 1 { first % len / BLOCK * BLOCK..first % len + out.len() } else { 0..len };
        for start in all.step_by(BLOCK) {
            columns.turn_to(start, BLOCK.min(len - start));
            for row in numbers.clone() {
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
            let len = weights.len();
            let (own, more) = if rest < len { (rest, 0) } else { (rest % len, rest / len) };
            row += own * stride;
            weight *= weights.get(own).copied().unwrap_or(0.0);
            rest = more;
        }
        work(row, weight)?;
    }
    Ok(())
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

#[cfg(test)]
mod tests;
