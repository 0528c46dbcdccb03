//! Softmax and its relatives. They subtract the greatest element first, which changes nothing but keeps exponentials
//! finite. Exponentials are added up as [`super::reductions`] says.

use super::fold::{PARTIALS, folded, join};
use super::reduce::between_looks;
use super::sums::{Partial, Total};
use super::walk::one_by_one;
use super::{Floating, Fold, MapOne, Measure, Number};
use crate::cpu::for_each_level;
use crate::functions::{exp, log};
use crate::{Stop, Stopped};

one_by_one! {
    Softmax: Floating;
    LogSoftmax: Floating;
}

/// `exp(x) / sum of exp(lane)`
#[derive(Debug)]
pub struct Softmax;

impl<T: Floating> MapOne<T> for Softmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let Greatest(max) = folded(&Peak, lane, stop)?;
        let scale = T::nearest(1.0 / exponentials(lane, max, to, stop)?);
        for at in between_looks(lane.len(), stop) {
            for to in to.get_mut(at?).unwrap_or(&mut []) {
                *to = *to * scale;
            }
        }
        Ok(())
    }
}

/// `log(exp(x) / sum of exp(lane))`
#[derive(Debug)]
pub struct LogSoftmax;

impl<T: Floating> MapOne<T> for LogSoftmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let Greatest(max) = folded(&Peak, lane, stop)?;
        let log_sum = log(folded(&SumExp { max }, lane, stop)?.value());
        for at in between_looks(lane.len(), stop) {
            let at = at?;
            let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
            for (to, &x) in to.iter_mut().zip(lane) {
                *to = T::nearest(x.precise() - max.precise() - log_sum);
            }
        }
        Ok(())
    }
}

/// `log(sum of exp(lane))`, in double precision
#[derive(Debug)]
pub struct LogSumExp;

impl Measure<f64> for LogSumExp {
    type Value = f64;

    fn each(&self, len: usize, lanes: &[f64], logs: &mut [f64], stop: Option<&Stop>) -> Result<(), Stopped> {
        log_sums(len, lanes, logs, stop)
    }
}

for_each_level! {
    fn log_sums<>(len: usize, lanes: &[f64], logs: &mut [f64], stop: Option<&Stop>) -> Result<(), Stopped> = log_sums_body;
}

#[inline(always)]
fn log_sums_body(len: usize, lanes: &[f64], logs: &mut [f64], stop: Option<&Stop>) -> Result<(), Stopped> {
    for (k, log_sum) in logs.iter_mut().enumerate() {
        let lane = lanes.get(k * len..(k + 1) * len).unwrap_or(&[]);
        let Greatest(max) = folded(&Peak, lane, stop)?;
        let max = if max.is_finite() { max } else { 0.0 };
        *log_sum = log(folded(&SumExp { max }, lane, stop)?.value()) + max;
    }
    Ok(())
}

/// The greatest element, whether there is NaN or not: that shows in the sum.
struct Peak;

#[derive(Clone, Copy)]
struct Greatest<T>(T);

impl<T: Floating> Partial for Greatest<T> {
    const START: Self = Greatest(T::LEAST);

    #[inline(always)]
    fn join(self, other: Self) -> Self {
        if self.0 > other.0 { self } else { other }
    }
}

impl<T: Floating> Fold<T> for Peak {
    type Partial = Greatest<T>;

    #[inline(always)]
    fn add(&self, peak: Greatest<T>, element: T) -> Greatest<T> {
        peak.join(Greatest(element))
    }
}

/// The sum of `exp(x - max)`.
struct SumExp<T> {
    max: T,
}

impl<T: Floating> Fold<T> for SumExp<T> {
    type Partial = T::Sum;

    #[inline(always)]
    fn counts(&self, element: T) -> T {
        exp(element - self.max)
    }
    #[inline(always)]
    fn add(&self, sum: T::Sum, element: T) -> T::Sum {
        sum.add(element.precise())
    }
}

/// Fills `to` with `exp(x - max)`, and returns the sum, as [`SumExp`] does.
#[inline(always)]
fn exponentials<T: Floating>(lane: &[T], max: T, to: &mut [T], stop: Option<&Stop>) -> Result<f64, Stopped> {
    let mut partials = [T::Sum::START; PARTIALS];
    for at in between_looks(lane.len(), stop) {
        let at = at?;
        let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
        let ((blocks, rest), (to, to_rest)) = (lane.as_chunks::<PARTIALS>(), to.as_chunks_mut::<PARTIALS>());
        let (mut padded, mut results) = ([-T::INFINITY; PARTIALS], [<T as Number>::ZERO; PARTIALS]);
        padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let (padded, results) = (std::slice::from_mut(&mut padded), std::slice::from_mut(&mut results));
        // A copy stays in registers.
        let mut values = partials;
        for (blocks, to) in [(blocks, to), (if rest.is_empty() { &[] } else { padded }, &mut *results)] {
            for (block, to) in blocks.iter().zip(to) {
                // Two loops: one would be as narrow as its widest type.
                for (to, &x) in to.iter_mut().zip(block) {
                    *to = exp(x - max);
                }
                for (value, to) in values.iter_mut().zip(to) {
                    *value = value.add(to.precise());
                }
            }
        }
        partials = values;
        to_rest.iter_mut().zip(results.as_flattened()).for_each(|(to, result)| *to = *result);
    }
    Ok(join(partials).value())
}
