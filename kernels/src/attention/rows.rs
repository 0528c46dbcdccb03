//! The steps on the rows of a block, one for each query: scale, bias, softmax, and what ends its output.

use super::{Attention, Bias, Out, Scale, Stage};
use crate::cpu::for_each_level;
use crate::functions::tanh_in_place;
use crate::gemm;
use crate::lanes::{Floating, Softmax, Stored};
use crate::lookout::look;
use crate::number::Float;
use crate::{Stop, Stopped};
use std::ops::Range;

/// Queries that are computed together. They share a head of keys.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) batch: usize,
    pub(super) head: usize,
    /// The queries, counted through the heads of the group.
    pub(super) rows: Range<usize>,
    /// The keys whose scores are computed: all that any of the queries sees.
    pub(super) columns: Range<usize>,
}

/// Columns start at a block of a product, and end at one of the partial sums of [`Softmax`], so that the sums of a row don't
/// depend on the block.
const STARTS: usize = gemm::BLOCK;
const ENDS: usize = 32;

impl Block {
    /// All keys count as seen if their scores are kept before it matters.
    pub(super) fn new<T>(
        attention: &Attention<'_, T>,
        batch: usize,
        head: usize,
        rows: Range<usize>,
        kept: Option<Stage>,
    ) -> Block {
        let all = attention.sizes.keys;
        let seen = rows.clone().map(|row| attention.seen(batch, row % attention.sizes.queries));
        let columns = match kept {
            Some(Stage::Scores | Stage::Capped) => 0..all,
            _ => seen
                .filter(|keys| !keys.is_empty())
                .fold(all..0, |columns, keys| columns.start.min(keys.start)..columns.end.max(keys.end)),
        };
        let end = columns.end.next_multiple_of(ENDS).min(all);
        let columns = (columns.start / STARTS * STARTS).min(end)..end;
        Block { batch, head, rows, columns }
    }

    /// The head of queries of a row, and the number of its query there.
    fn place<T>(&self, attention: &Attention<'_, T>, row: usize) -> (usize, usize) {
        let sizes = &attention.sizes;
        (self.head * sizes.group + row / sizes.queries, row % sizes.queries)
    }
}

impl<T> Attention<'_, T> {
    /// The keys that a query sees, but for those that the bias excludes.
    fn seen(&self, batch: usize, query: usize) -> Range<usize> {
        let keys = self.sight.keys(&self.sizes, batch, query);
        keys.start..keys.end.min(self.bias.as_ref().map_or(usize::MAX, |bias| bias.columns))
    }
}

impl<T: Floating> Attention<'_, T> {
    /// Fills `to` with the queries of a block.
    pub(super) fn scaled_queries(&self, block: &Block, to: &mut [T]) -> Result<(), Stopped> {
        let size = self.sizes.size;
        for (row, to) in block.rows.clone().zip(to.chunks_exact_mut(size.max(1))) {
            let (head, query) = block.place(self, row);
            let from = self.q.from(block.batch, head, query).get(..size).ok_or(Stopped::Misfit)?;
            to.copy_from_slice(from);
            let factor = self.written.map_or(Some(self.scale), |written| written.factors[0]);
            factor.into_iter().for_each(|factor| multiply(to, factor));
        }
        Ok(())
    }
}

impl<T: Floating> Bias<'_, T> {
    /// The bias of a key, in the row that starts at the first of `row`.
    #[inline(always)]
    fn of(row: &[T], column: usize, key: usize) -> T {
        row.get(column * key).copied().unwrap_or(T::LEAST)
    }
}

for_each_level! {
    /// Multiplies numbers by a factor.
    pub(super) fn multiply<T: Floating>(numbers: &mut [T], factor: T) -> () = multiply_body::<T>;
}

#[inline(always)]
fn multiply_body<T: Floating>(numbers: &mut [T], factor: T) {
    numbers.iter_mut().for_each(|number| *number = *number * factor);
}

for_each_level! {
    /// Makes weights of the scores of a block, and writes the scores after a stage to the rows of `kept`.
    pub(super) fn weigh<T: Floating>(attention: &Attention<'_, T>, block: &Block, scores: &mut [T], kept: Option<(Stage, Out<T>)>, stop: Option<&Stop>) -> Result<(), Stopped>
        = weigh_body::<T>;
}

#[inline(always)]
fn weigh_body<T: Floating>(
    attention: &Attention<'_, T>,
    block: &Block,
    scores: &mut [T],
    kept: Option<(Stage, Out<T>)>,
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (sizes, n) = (&attention.sizes, block.columns.len());
    let rows = (SOME / n.max(1)).clamp(1, TOGETHER);
    let mut rest = scores;
    for first in block.rows.clone().step_by(rows) {
        let count = rows.min(block.rows.end - first);
        let (scores, others) = std::mem::take(&mut rest).split_at_mut_checked(count * n).ok_or(Stopped::Misfit)?;
        rest = others;
        let keep = |row: usize, stage: Stage, scores: &[T], outside: T| -> Result<(), Stopped> {
            let Some((_, out)) = kept.filter(|(wanted, _)| *wanted == stage) else { return Ok(()) };
            let ((head, query), heads) = (block.place(attention, row), sizes.heads * sizes.group);
            let at = ((block.batch * heads + head) * sizes.queries + query) * sizes.keys;
            // SAFETY: the row of this query, and no other block has it.
            #[allow(unsafe_code)]
            let to = unsafe { out.row(at, sizes.keys) }?;
            to.fill(outside);
            to.get_mut(block.columns.clone()).ok_or(Stopped::Misfit)?.copy_from_slice(scores);
            Ok(())
        };
        let zero = T::of(0.0);
        // Rows without a key that counts.
        let mut none = [false; TOGETHER];
        for (at, none) in none.iter_mut().enumerate().take(count) {
            let (row, scores) = (first + at, scores.get_mut(at * n..(at + 1) * n).ok_or(Stopped::Misfit)?);
            keep(row, Stage::Scores, scores, T::LEAST)?;
            match &attention.written {
                Some(written) => scaled(written.scale, scores),
                None if attention.softcap != zero => {
                    let cap = attention.softcap;
                    scores.iter_mut().for_each(|score| *score = *score / cap);
                    tanh_in_place(scores);
                    scores.iter_mut().for_each(|score| *score = cap * *score);
                }
                None => {}
            }
            keep(row, Stage::Capped, scores, T::LEAST)?;
            *none = !biased(attention, block, block.place(attention, row), scores)?;
            keep(row, Stage::Biased, scores, T::LEAST)?;
        }
        attention.round.into_iter().for_each(|round| round(scores));
        Softmax::in_place(n.max(1), scores, stop)?;
        attention.round.into_iter().for_each(|round| round(scores));
        if let Some(nan) = attention.written.as_ref().and_then(|written| written.nan) {
            scores.iter_mut().for_each(|weight| *weight = if Float::is_nan(*weight) { nan } else { *weight });
        }
        for (at, none) in none.into_iter().enumerate().take(count) {
            let scores = scores.get_mut(at * n..(at + 1) * n).ok_or(Stopped::Misfit)?;
            if none {
                scores.fill(zero);
            }
            keep(first + at, Stage::Weights, scores, zero)?;
        }
    }
    Ok(())
}

/// Maximum number of rows that go through the softmax together, and of their scores, if it isn't one row.
const TOGETHER: usize = 16;
const SOME: usize = 1 << 11;

#[inline(always)]
fn scaled<T: Floating>(scale: Option<Scale<T>>, scores: &mut [T]) {
    match scale {
        Some(Scale::Times(factor)) => scores.iter_mut().for_each(|score| *score = *score * factor),
        Some(Scale::By(divisor)) => scores.iter_mut().for_each(|score| *score = *score / divisor),
        None => {}
    }
}

/// Adds the bias to the scores of a row: -inf for a key that doesn't count. Whether any does.
#[inline(always)]
fn biased<T: Floating>(
    attention: &Attention<'_, T>,
    block: &Block,
    (head, query): (usize, usize),
    scores: &mut [T],
) -> Result<bool, Stopped> {
    if attention.written.is_some() {
        if let Some(bias) = &attention.bias {
            let row = bias.rows.from(block.batch, head, query);
            let add = |(score, bias): (&mut T, &T)| *score = *score + *bias;
            match bias.column {
                0 => scores.iter_mut().zip(std::iter::repeat(row.first().ok_or(Stopped::Misfit)?)).for_each(add),
                _ => scores.iter_mut().zip(row.get(..block.columns.len()).ok_or(Stopped::Misfit)?).for_each(add),
            }
        }
        return Ok(true);
    }
    let keys = attention.seen(block.batch, query);
    let first = block.columns.start;
    let (start, end) = (keys.start.saturating_sub(first).min(scores.len()), keys.end.saturating_sub(first));
    let end = end.clamp(start, scores.len());
    scores.get_mut(..start).ok_or(Stopped::Misfit)?.fill(T::LEAST);
    scores.get_mut(end..).ok_or(Stopped::Misfit)?.fill(T::LEAST);
    let seen = scores.get_mut(start..end).ok_or(Stopped::Misfit)?;
    let Some(bias) = attention.bias.as_ref().filter(|_| !seen.is_empty()) else { return Ok(!seen.is_empty()) };
    let row = bias.rows.from(block.batch, head, query);
    let mut most = T::LEAST;
    let mut add = |score: &mut T, bias: T| {
        *score = if bias == T::LEAST { bias } else { *score + bias };
        // A NaN counts.
        most = if bias == T::LEAST { most } else { T::GREATEST };
    };
    if bias.column == 1 {
        let row = row.get(first + start..first + end).ok_or(Stopped::Misfit)?;
        seen.iter_mut().zip(row).for_each(|(score, bias)| add(score, *bias));
    } else {
        let bias = Bias::of(row, 0, 0);
        seen.iter_mut().for_each(|score| add(score, bias));
    }
    Ok(most > T::LEAST)
}

for_each_level! {
    /// Writes the outputs of a block. A value that isn't finite is computed again without the keys that don't count.
    pub(super) fn finish<T: Floating>(attention: &Attention<'_, T>, block: &Block, weights: &[T], outputs: &mut [T], out: Out<T>, stop: Option<&Stop>) -> Result<(), Stopped>
        = finish_body::<T>;
}

#[inline(always)]
fn finish_body<T: Floating>(
    attention: &Attention<'_, T>,
    block: &Block,
    weights: &[T],
    outputs: &mut [T],
    out: Out<T>,
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (size, n) = (attention.sizes.value_size, block.columns.len());
    for (at, (row, own)) in block.rows.clone().zip(outputs.chunks_exact_mut(size.max(1))).enumerate() {
        let (head, query) = block.place(attention, row);
        let finite = || own.iter().fold(true, |finite, y| finite & (Float::abs(*y) < T::GREATEST));
        if attention.written.is_none() && !finite() {
            let weights = weights.get(at * n..(at + 1) * n).ok_or(Stopped::Misfit)?;
            again(attention, block, (head, query), weights, own, stop)?;
        }
        // SAFETY: the row of this query, and no other block has it.
        #[allow(unsafe_code)]
        let to = unsafe { out.row(attention.out.at(block.batch, head, query), size) }?;
        to.copy_from_slice(own);
    }
    Ok(())
}

/// The output of a query, key by key.
#[inline(always)]
fn again<T: Floating>(
    attention: &Attention<'_, T>,
    block: &Block,
    (head, query): (usize, usize),
    weights: &[T],
    out: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    const PART: usize = 64;
    let (seen, first) = (attention.seen(block.batch, query), block.columns.start);
    let counts = |key: usize| {
        let excluded =
            |bias: &Bias<'_, T>| Bias::of(bias.rows.from(block.batch, head, query), bias.column, key) == T::LEAST;
        seen.contains(&key) && !attention.bias.as_ref().is_some_and(excluded)
    };
    for (part, out) in out.chunks_mut(PART).enumerate() {
        // The sums of the product: a block of keys after the other.
        out.fill(T::of(0.0));
        for (at, weights) in weights.chunks(gemm::BLOCK).enumerate() {
            look(stop)?;
            let mut sums = [T::of(0.0); PART];
            for (key, weight) in (first + at * gemm::BLOCK..).zip(weights).filter(|(key, _)| counts(*key)) {
                let value = attention.v.from(block.batch, block.head, key);
                let value = value.get(part * PART..part * PART + out.len()).ok_or(Stopped::Misfit)?;
                sums.iter_mut().zip(value).for_each(|(sum, value)| *sum = weight.mul_add(*value, *sum));
            }
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = if at == 0 { sum } else { *out + sum });
        }
    }
    Ok(())
}

for_each_level! {
    /// Rounds numbers to elements of `S`.
    pub(super) fn rounded<S: Stored<T>, T: Floating>(numbers: &mut [T]) -> () = rounded_body::<S, T>;
}

#[inline(always)]
fn rounded_body<S: Stored<T>, T: Floating>(numbers: &mut [T]) {
    let mut elements = [S::zeroed(); 64];
    for numbers in numbers.chunks_mut(elements.len()) {
        S::store(numbers, &mut elements);
        S::load(&elements, numbers);
    }
}
