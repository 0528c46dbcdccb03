//! Softmax and its relatives. They subtract the greatest element first, which changes nothing but keeps exponentials
//! finite.

use super::reduce::{PARTIALS, join, value};
use super::{Floating, Map, Measure, Number, Reduction, Sum};
use crate::kernels::functions::{exp, log};
use crate::kernels::half::Half;

/// `exp(x) / sum of exp(lane)`
#[derive(Debug)]
pub(crate) struct Softmax;

impl<T: Floating> Map<T> for Softmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T]) {
        let max = value(&Peak, lane);
        let scale = <T as Number>::ONE / exponentials(lane, max, to);
        for to in to {
            *to = *to * scale;
        }
    }
}

/// As [`Softmax`], each step rounded to 16 bits.
#[derive(Debug)]
pub(crate) struct RoundedSoftmax(pub(crate) Half);

impl Map<f32> for RoundedSoftmax {
    #[inline(always)]
    fn map(&self, lane: &[f32], to: &mut [f32]) {
        let max: f32 = value(&Peak, lane);
        for (to, &x) in to.iter_mut().zip(lane) {
            *to = x - max;
        }
        self.0.round(to);
        for to in &mut *to {
            *to = exp(*to);
        }
        self.0.round(to);
        let mut total: [f32; 1] = [value(&Sum, &*to)];
        self.0.round(&mut total);
        let [total] = total;
        for to in to {
            *to /= total;
        }
    }
}

/// `log(exp(x) / sum of exp(lane))`
#[derive(Debug)]
pub(crate) struct LogSoftmax;

impl<T: Floating> Map<T> for LogSoftmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T]) {
        let max = value(&Peak, lane);
        let log_sum = log(value(&SumExp { max }, lane));
        for (to, &x) in to.iter_mut().zip(lane) {
            *to = x - max - log_sum;
        }
    }
}

/// `log(sum of exp(lane))`, in double precision
#[derive(Debug)]
pub(crate) struct LogSumExp;

impl Measure<f64> for LogSumExp {
    type Value = f64;

    #[inline(always)]
    fn of(&self, lane: &[f64]) -> f64 {
        let max: f64 = value(&Peak, lane);
        let max = if max.is_finite() { max } else { 0.0 };
        log(value(&SumExp { max }, lane)) + max
    }
}

/// The greatest element, whether there is NaN or not: that shows in the sum.
struct Peak;

impl<T: Floating> Reduction<T> for Peak {
    const START: T = T::LEAST;

    #[inline(always)]
    fn join(a: T, b: T) -> T {
        if a > b { a } else { b }
    }
}

/// The sum of `exp(x - max)`.
struct SumExp<T> {
    max: T,
}

impl<T: Floating> Reduction<T> for SumExp<T> {
    const START: T = T::NOTHING;
    const EMPTY: T = <T as Number>::ZERO;

    #[inline(always)]
    fn counts(&self, element: T) -> T {
        exp(element - self.max)
    }
    #[inline(always)]
    fn join(a: T, b: T) -> T {
        a + b
    }
}

/// Fills `to` with `exp(x - max)`, and returns the sum, as [`SumExp`] does.
#[inline(always)]
fn exponentials<T: Floating>(lane: &[T], max: T, to: &mut [T]) -> T {
    let mut partials = [T::NOTHING; PARTIALS];
    let ((blocks, rest), (to, to_rest)) = (lane.as_chunks::<PARTIALS>(), to.as_chunks_mut::<PARTIALS>());
    let (mut padded, mut results) = ([-T::INFINITY; PARTIALS], [T::NOTHING; PARTIALS]);
    padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let (padded, results) = (std::slice::from_mut(&mut padded), std::slice::from_mut(&mut results));
    for (blocks, to) in [(blocks, to), (if rest.is_empty() { &[] } else { padded }, &mut *results)] {
        for (block, to) in blocks.iter().zip(to) {
            for ((partial, to), &x) in partials.iter_mut().zip(to).zip(block) {
                *to = exp(x - max);
                *partial = *partial + *to;
            }
        }
    }
    to_rest.iter_mut().zip(results.as_flattened()).for_each(|(to, result)| *to = *result);
    join::<Sum, T>(partials)
}
