//! Softmax and its relatives. They subtract the greatest element first, which changes nothing but keeps exponentials
//! finite.

use super::reduce::{PARTIALS, join, sum, value};
use super::{Floating, Map, Max, Measure, Number, Sum};
use crate::kernels::functions::{exp, log};
use crate::kernels::half::Half;

/// `exp(x) / sum of exp(lane)`
#[derive(Debug)]
pub(crate) struct Softmax;

impl<T: Floating> Map<T> for Softmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T]) {
        let max = value::<Max, T>(lane);
        let scale = <T as Number>::ONE / exponentials(lane, max, to);
        to.iter_mut().for_each(|to| *to = *to * scale);
    }
}

/// As [`Softmax`], each step rounded to 16 bits.
#[derive(Debug)]
pub(crate) struct RoundedSoftmax(pub(crate) Half);

impl Map<f32> for RoundedSoftmax {
    #[inline(always)]
    fn map(&self, lane: &[f32], to: &mut [f32]) {
        let max = value::<Max, f32>(lane);
        to.iter_mut().zip(lane).for_each(|(to, &x)| *to = x - max);
        self.0.round(to);
        to.iter_mut().for_each(|to| *to = exp(*to));
        self.0.round(to);
        let mut total = [value::<Sum, f32>(to)];
        self.0.round(&mut total);
        let [total] = total;
        to.iter_mut().for_each(|to| *to /= total);
    }
}

/// `log(exp(x) / sum of exp(lane))`
#[derive(Debug)]
pub(crate) struct LogSoftmax;

impl<T: Floating> Map<T> for LogSoftmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T]) {
        let max = value::<Max, T>(lane);
        let log_sum = log(sum(lane, |x: T| exp(x - max)));
        to.iter_mut().zip(lane).for_each(|(to, &x)| *to = x - max - log_sum);
    }
}

/// `log(sum of exp(lane))`, in double precision
#[derive(Debug)]
pub(crate) struct LogSumExp;

impl Measure<f64> for LogSumExp {
    type Value = f64;

    #[inline(always)]
    fn of(&self, lane: &[f64]) -> f64 {
        let max = value::<Max, f64>(lane);
        let shift = if max.is_finite() { max } else { 0.0 };
        log(sum(lane, |x: f64| exp(x - shift))) + shift
    }
}

/// Fills `to` with `exp(x - max)`, and returns their sum.
#[inline(always)]
fn exponentials<T: Floating>(lane: &[T], max: T, to: &mut [T]) -> T {
    let mut partials = [T::NOTHING; PARTIALS];
    let mut add = |lane: &[T], to: &mut [T]| {
        for ((&x, to), partial) in lane.iter().zip(to).zip(&mut partials) {
            *to = exp(x - max);
            *partial = *partial + *to;
        }
    };
    let ((blocks, rest), (to_blocks, to_rest)) = (lane.as_chunks::<PARTIALS>(), to.as_chunks_mut::<PARTIALS>());
    blocks.iter().zip(to_blocks).for_each(|(block, to)| add(block, to));
    add(rest, to_rest);
    join(partials, T::plus)
}
