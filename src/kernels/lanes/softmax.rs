//! Softmax and its relatives. They subtract the greatest element first, which changes nothing but keeps exponentials
//! finite. Exponentials are added up as [`super::reductions`] says.

use super::reduce::{PARTIALS, between_looks, join, value};
use super::sums::Total;
use super::{Floating, Map, Measure, Number, Reduction};
use crate::kernels::functions::{exp, log};
use crate::kernels::{Stop, Stopped};

/// `exp(x) / sum of exp(lane)`
#[derive(Debug)]
pub(crate) struct Softmax;

impl<T: Floating> Map<T> for Softmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let max = T::nearest(value(&Peak, lane, stop)?);
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
pub(crate) struct LogSoftmax;

impl<T: Floating> Map<T> for LogSoftmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let max = T::nearest(value(&Peak, lane, stop)?);
        let log_sum = log(value(&SumExp { max }, lane, stop)?);
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
pub(crate) struct LogSumExp;

impl Measure<f64> for LogSumExp {
    type Value = f64;

    #[inline(always)]
    fn of(&self, lane: &[f64], stop: Option<&Stop>) -> Result<f64, Stopped> {
        let max = value(&Peak, lane, stop)?;
        let max = if max.is_finite() { max } else { 0.0 };
        Ok(log(value(&SumExp { max }, lane, stop)?) + max)
    }
}

/// The greatest element, whether there is NaN or not: that shows in the sum.
struct Peak;

impl<T: Floating> Reduction<T> for Peak {
    type Partial = T;
    const START: T = T::LEAST;

    #[inline(always)]
    fn add(&self, a: T, b: T) -> T {
        if a > b { a } else { b }
    }
    #[inline(always)]
    fn join(a: T, b: T) -> T {
        if a > b { a } else { b }
    }
    #[inline(always)]
    fn end(value: T, _: usize) -> f64 {
        value.precise()
    }
}

/// The sum of `exp(x - max)`.
struct SumExp<T> {
    max: T,
}

impl<T: Floating> Reduction<T> for SumExp<T> {
    type Partial = T::Sum;
    const START: T::Sum = T::Sum::NOTHING;
    const EMPTY: T::Sum = T::Sum::ZERO;

    #[inline(always)]
    fn counts(&self, element: T) -> T {
        exp(element - self.max)
    }
    #[inline(always)]
    fn add(&self, sum: T::Sum, element: T) -> T::Sum {
        sum.add(element.precise())
    }
    #[inline(always)]
    fn join(a: T::Sum, b: T::Sum) -> T::Sum {
        a.join(b)
    }
    #[inline(always)]
    fn end(sum: T::Sum, _: usize) -> f64 {
        sum.value()
    }
}

/// Fills `to` with `exp(x - max)`, and returns the sum, as [`SumExp`] does.
#[inline(always)]
fn exponentials<T: Floating>(lane: &[T], max: T, to: &mut [T], stop: Option<&Stop>) -> Result<f64, Stopped> {
    let mut partials = [T::Sum::NOTHING; PARTIALS];
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
    Ok(join::<SumExp<T>, T>(partials).value())
}
