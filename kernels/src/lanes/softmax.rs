//! Softmax and its relatives. They subtract the greatest element first, which changes nothing but keeps exponentials
//! finite. Exponentials are added up as [`super::reductions`] says.

use super::fold::{PARTIALS, fold_lane, join_each};
use super::reduce::{TOGETHER, between_looks};
use super::reductions::Added;
use super::sums::{Partial, Total};
use super::walk::some_by_some;
use super::{Floating, Fold, MapSome, Measure, Number};
use crate::cpu::for_each_level;
use crate::functions::{exp, exp_below_all, exp_below_in_place, exp_in_place, log};
use crate::{Stop, Stopped};
use std::marker::PhantomData;

some_by_some! {
    Softmax: Floating;
    LogSoftmax: Floating;
}

/// `exp(x) / sum of exp(lane)`
#[derive(Debug)]
pub struct Softmax;

impl<T: Floating> MapSome<T> for Softmax {
    #[inline(always)]
    fn map(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        if let Some(shares) = T::shares(len) {
            shares(len, Some(lanes), to);
            return Ok(());
        }
        let peaks = peaks(len, lanes, stop)?;
        exponentials(len, lanes, to, &peaks, stop)?;
        shares(len, to, stop)
    }
}

impl Softmax {
    /// At most [`TOGETHER`] lanes become their own softmax.
    #[inline(always)]
    pub(crate) fn in_place<T: Floating>(len: usize, lanes: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        if let Some(shares) = T::shares(len) {
            shares(len, None, lanes);
            return Ok(());
        }
        let peaks = peaks(len, lanes, stop)?;
        for (lane, max) in lanes.chunks_exact_mut(len).zip(peaks) {
            for at in between_looks(len, stop) {
                let lane = lane.get_mut(at?).unwrap_or(&mut []);
                if len >= LONG {
                    exp_below_in_place(lane, max);
                } else {
                    for x in lane {
                        *x = *x - max;
                    }
                }
            }
        }
        if len < LONG {
            exp_in_place(lanes);
        }
        shares(len, lanes, stop)
    }
}

/// Writes `exp(x - greatest)` of each lane, whose greatest elements are given.
#[inline(always)]
fn exponentials<T: Floating>(
    len: usize,
    lanes: &[T],
    to: &mut [T],
    peaks: &[T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    for ((lane, max), to) in lanes.chunks_exact(len).zip(peaks).zip(to.chunks_exact_mut(len)) {
        for at in between_looks(len, stop) {
            let at = at?;
            let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
            if len >= LONG {
                exp_below_all(lane, *max, to);
            } else {
                for (to, &x) in to.iter_mut().zip(lane) {
                    *to = x - *max;
                }
            }
        }
    }
    if len < LONG {
        exp_in_place(to);
    }
    Ok(())
}

/// From so many elements on the exponentials of a lane are computed by themselves; those of shorter ones wherever lanes end.
const LONG: usize = 256;

/// The sums of lanes of type `T`.
type Sums<T> = [[<T as Number>::Sum; PARTIALS]; TOGETHER];

/// Adds up each lane: its first partial value is its sum.
#[inline(always)]
fn add_up<'s, T: Floating>(
    len: usize,
    lanes: &[T],
    sums: &'s mut Sums<T>,
    stop: Option<&Stop>,
) -> Result<&'s [[T::Sum; PARTIALS]], Stopped> {
    let sums = sums.get_mut(..lanes.len() / len).ok_or(Stopped::Misfit)?;
    for (sums, lane) in sums.iter_mut().zip(lanes.chunks_exact(len)) {
        fold_lane(&Added(PhantomData), sums, lane, stop)?;
    }
    join_each(sums);
    Ok(sums)
}

/// Divides the elements of each lane by their sum.
#[inline(always)]
fn shares<T: Floating>(len: usize, lanes: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
    let mut sums = [[T::Sum::START; PARTIALS]; TOGETHER];
    let sums = add_up(len, lanes, &mut sums, stop)?;
    for ([sum, ..], lane) in sums.iter().zip(lanes.chunks_exact_mut(len)) {
        let scale = T::nearest(1.0 / sum.value());
        for at in between_looks(len, stop) {
            for x in lane.get_mut(at?).unwrap_or(&mut []) {
                *x = *x * scale;
            }
        }
    }
    Ok(())
}

/// `log(exp(x) / sum of exp(lane))`
#[derive(Debug)]
pub struct LogSoftmax;

impl<T: Floating> MapSome<T> for LogSoftmax {
    #[inline(always)]
    fn map(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let peaks = peaks(len, lanes, stop)?;
        exponentials(len, lanes, to, &peaks, stop)?;
        let mut sums = [[T::Sum::START; PARTIALS]; TOGETHER];
        let sums = add_up(len, to, &mut sums, stop)?;
        for ((([sum, ..], max), lane), to) in
            sums.iter().zip(peaks).zip(lanes.chunks_exact(len)).zip(to.chunks_exact_mut(len))
        {
            let log_sum = log(sum.value());
            for at in between_looks(len, stop) {
                let at = at?;
                let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
                for (to, &x) in to.iter_mut().zip(lane) {
                    *to = T::nearest(x.precise() - max.precise() - log_sum);
                }
            }
        }
        Ok(())
    }
}

/// The greatest element of each of at most [`TOGETHER`] lanes.
#[inline(always)]
fn peaks<T: Floating>(len: usize, lanes: &[T], stop: Option<&Stop>) -> Result<[T; TOGETHER], Stopped> {
    let mut peaks = [[Greatest::START; PARTIALS]; TOGETHER];
    // Lanes without elements have the least one.
    let len = len.max(1);
    let some = peaks.get_mut(..lanes.len() / len).ok_or(Stopped::Misfit)?;
    for (peaks, lane) in some.iter_mut().zip(lanes.chunks_exact(len)) {
        fold_lane(&Peak, peaks, lane, stop)?;
    }
    join_each(some);
    let mut greatest = [T::LEAST; TOGETHER];
    for (greatest, [Greatest(peak), ..]) in greatest.iter_mut().zip(peaks) {
        *greatest = peak;
    }
    Ok(greatest)
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
        let [max, ..] = peaks(len, lane, stop)?;
        let max = if max.is_finite() { max } else { 0.0 };
        let mut sum = [[<f64 as Number>::Sum::START; PARTIALS]];
        for sum in &mut sum {
            fold_lane(&SumExp { max }, sum, lane, stop)?;
        }
        join_each(&mut sum);
        let [[sum, ..]] = sum;
        *log_sum = log(sum.value()) + max;
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
