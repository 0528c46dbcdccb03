//! Softmax and its relatives. They subtract the greatest element first, which changes nothing but keeps exponentials
//! finite.

use super::reduce::{PARTIALS, join, value};
use super::{Floating, Map, Max, Measure, Number, Reduction, Sum};
use crate::kernels::functions::{exp, log};
use crate::kernels::half::Half;

/// `exp(x) / sum of exp(lane)`
#[derive(Debug)]
pub(crate) struct Softmax;

impl<T: Floating> Map<T> for Softmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T]) {
        let max = value(&Max, lane);
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
        let max: f32 = value(&Max, lane);
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
        let max = value(&Max, lane);
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
        let max: f64 = value(&Max, lane);
        let max = if max.is_finite() { max } else { 0.0 };
        log(value(&SumExp { max }, lane)) + max
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
    fn neutral(&self) -> T {
        -T::INFINITY
    }
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
    let mut padded = [-T::INFINITY; PARTIALS];
    for (block, to) in lane.chunks(PARTIALS).zip(to.chunks_mut(PARTIALS)) {
        let block = match block.first_chunk() {
            Some(block) => block,
            None => {
                padded.iter_mut().zip(block).for_each(|(to, from)| *to = *from);
                &padded
            }
        };
        let mut results = [T::NOTHING; PARTIALS];
        for ((result, partial), &x) in results.iter_mut().zip(&mut partials).zip(block) {
            *result = exp(x - max);
            *partial = *partial + *result;
        }
        match to.first_chunk_mut() {
            Some(to) => *to = results,
            None => to.iter_mut().zip(results).for_each(|(to, result)| *to = result),
        }
    }
    join::<Sum, T>(partials)
}
