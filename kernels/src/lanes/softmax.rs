//! Softmax and its relatives. They subtract the greatest element first, which changes nothing but keeps exponentials
//! finite. Exponentials are added up as [`super::reductions`] says.

use super::fold::{ABREAST, LoopsOfRows, Rows, fold_lanes, fold_rows};
use super::reduce::{BETWEEN_LOOKS, Parts, TOGETHER, between_looks, looking_every};
use super::reductions::Added;
use super::short::SHORT;
use super::sums::{Pair, Partial, Total};
use super::walk::{GROUP, map_each};
use super::{Floating, Fold, Map, MapSome, Measure, Number};
use crate::cpu::for_each_level;
use crate::functions::{exp, exp_below_all, exp_below_in_place, exp_in_place, log};
use crate::lookout::look;
use crate::permute::turn;
use crate::{Lookout, Stop, Stopped};
use std::marker::PhantomData;

macro_rules! maps {
    ($($map:ident: $is_log:literal;)*) => {$(
        impl<T: Floating> Map<T> for $map {
            fn each(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
                map_each::<Self, T>(self, len, lanes, to, stop)
            }

            fn across(
                &self,
                abreast: usize,
                len: usize,
                lanes: &[T],
                to: &mut [T],
                stop: Option<&Stop>,
            ) -> Option<Result<(), Stopped>> {
                (abreast >= GROUP).then(|| softmax_rows::<T>($is_log, abreast, len, lanes, to, stop))
            }
        }
    )*};
}

maps! {
    Softmax: false;
    LogSoftmax: true;
}

/// `exp(x) / sum of exp(lane)`
#[derive(Debug)]
pub struct Softmax;

impl<T: Floating> MapSome<T> for Softmax {
    #[inline(always)]
    fn map(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        if let Some(shares) = T::shares::<false>(len) {
            shares(len, Some(lanes), to);
            return Ok(());
        }
        let peaks = peaks::<T, TOGETHER>(len, lanes, stop)?;
        exponentials(len, lanes, to, &peaks, stop)?;
        shares(len, to, stop)
    }
}

impl Softmax {
    /// At most [`TOGETHER`] lanes become their own softmax.
    #[inline(always)]
    pub(crate) fn in_place<T: Floating>(len: usize, lanes: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        if let Some(shares) = T::shares::<false>(len) {
            shares(len, None, lanes);
            return Ok(());
        }
        let peaks = peaks::<T, TOGETHER>(len, lanes, stop)?;
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

/// The sum of each of at most [`TOGETHER`] lanes.
#[inline(always)]
fn sums<T: Floating>(len: usize, lanes: &[T], stop: Option<&Stop>) -> Result<[f64; TOGETHER], Stopped> {
    let all: [T::Sum; TOGETHER] = fold_lanes(&Added::<T::Sum>(PhantomData), len, lanes, stop)?;
    let mut sums = [0.0; TOGETHER];
    for (to, sum) in sums.iter_mut().zip(&all) {
        *to = Total::<f64>::value(*sum);
    }
    Ok(sums)
}

/// Divides the elements of each lane by their sum.
#[inline(always)]
fn shares<T: Floating>(len: usize, lanes: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
    let (sums, mut scales) = (sums(len, lanes, stop)?, [<T as Number>::ZERO; TOGETHER]);
    for (scale, sum) in scales.iter_mut().zip(&sums) {
        *scale = T::nearest(1.0 / sum);
    }
    for (&scale, lane) in scales.iter().zip(lanes.chunks_exact_mut(len)) {
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
        if let Some(logarithms) = T::shares::<true>(len) {
            logarithms(len, Some(lanes), to);
            return Ok(());
        }
        let peaks = peaks::<T, TOGETHER>(len, lanes, stop)?;
        exponentials(len, lanes, to, &peaks, stop)?;
        let mut logs = sums(len, to, stop)?;
        for sum in &mut logs {
            *sum = log(*sum);
        }
        for (((&log_sum, max), lane), to) in
            logs.iter().zip(peaks).zip(lanes.chunks_exact(len)).zip(to.chunks_exact_mut(len))
        {
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

for_each_level! {
    /// Softmax or its logarithm, of lanes that are side by side.
    fn softmax_rows<T: Floating>(log: bool, abreast: usize, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>
        = softmax_rows_body::<T>;
}

#[inline(always)]
fn softmax_rows_body<T: Floating>(
    is_log: bool,
    abreast: usize,
    len: usize,
    lanes: &[T],
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    for (lanes, to) in lanes.chunks_exact(abreast * len).zip(to.chunks_exact_mut(abreast * len)) {
        for first in (0..abreast).step_by(ABREAST) {
            if first > 0 {
                look(stop)?;
            }
            let width = ABREAST.min(abreast - first);
            let elements = lanes.get(first..).unwrap_or(&[]);
            let rows = Rows { elements, step: abreast, count: len, width };
            let peaks = fold_rows(&Peak, rows, stop)?;
            for at in row_parts(len, stop) {
                for start in at?.map(|row| row * abreast + first) {
                    let (from, to) = (lanes.get(start..).unwrap_or(&[]), to.get_mut(start..start + width));
                    let to = to.ok_or(Stopped::Misfit)?;
                    for ((to, &x), Greatest(peak)) in to.iter_mut().zip(from).zip(&peaks) {
                        *to = x - *peak;
                    }
                    exp_in_place(to);
                }
            }
            let elements = to.get(first..).unwrap_or(&[]);
            let sums = fold_rows(&Added::<T::Sum>(PhantomData), Rows { elements, ..rows }, stop)?;
            let mut ends = [0.0; ABREAST];
            for (end, sum) in ends.iter_mut().zip(&sums) {
                let sum = Total::<f64>::value(*sum);
                *end = if is_log { log(sum) } else { T::nearest(1.0 / sum).precise() };
            }
            for at in row_parts(len, stop) {
                for start in at?.map(|row| row * abreast + first) {
                    let (from, to) = (lanes.get(start..).unwrap_or(&[]), to.get_mut(start..start + width));
                    let to = to.ok_or(Stopped::Misfit)?;
                    if is_log {
                        for (((to, x), Greatest(peak)), log_sum) in to.iter_mut().zip(from).zip(&peaks).zip(&ends) {
                            *to = T::nearest(x.precise() - peak.precise() - log_sum);
                        }
                    } else {
                        for (to, scale) in to.iter_mut().zip(&ends) {
                            *to = *to * T::nearest(*scale);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// The ranges of rows of [`ABREAST`] elements between looks whether to stop.
#[inline(always)]
fn row_parts(len: usize, stop: Option<&Stop>) -> Parts<'_> {
    looking_every(BETWEEN_LOOKS / ABREAST, len, stop)
}

/// The greatest element of each of at most `LANES` lanes. Lanes without elements have the least one.
#[inline(always)]
fn peaks<T: Floating, const LANES: usize>(len: usize, lanes: &[T], stop: Option<&Stop>) -> Result<[T; LANES], Stopped> {
    let peaks: [Greatest<T>; LANES] = fold_lanes(&Peak, len, lanes, stop)?;
    let mut greatest = [T::LEAST; LANES];
    for (greatest, Greatest(peak)) in greatest.iter_mut().zip(peaks) {
        *greatest = peak;
    }
    Ok(greatest)
}

/// `log(sum of exp(lane))`, in double precision
#[derive(Debug)]
pub struct LogSumExp {
    /// Sums have twice the bits of an `f64`, for results of as many.
    pub wide: bool,
}

impl Measure<f64> for LogSumExp {
    type Value = f64;

    fn each(&self, len: usize, lanes: &[f64], logs: &mut [f64], stop: Option<&Stop>) -> Result<(), Stopped> {
        if self.wide { log_sums::<Pair>(len, lanes, logs, stop) } else { log_sums::<f64>(len, lanes, logs, stop) }
    }
}

fn log_sums<P: Total<f64>>(len: usize, lanes: &[f64], logs: &mut [f64], stop: Option<&Stop>) -> Result<(), Stopped> {
    if !(1..=SHORT).contains(&len) {
        return log_sums_of_any::<P>(len, lanes, logs, stop);
    }
    let mut some = lanes.chunks(TOGETHER * len).zip(logs.chunks_mut(TOGETHER));
    some.try_for_each(|(lanes, logs)| log_sums_of_short::<P>(len, lanes, logs, stop))
}

for_each_level! {
    /// Of lanes one by one.
    fn log_sums_of_any<P: Total<f64>>(len: usize, lanes: &[f64], logs: &mut [f64], stop: Option<&Stop>) -> Result<(), Stopped>
        = log_sums_of_any_body::<P>;
}

#[inline(always)]
fn log_sums_of_any_body<P: Total<f64>>(
    len: usize,
    lanes: &[f64],
    logs: &mut [f64],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    for (k, log_sum) in logs.iter_mut().enumerate() {
        let lane = lanes.get(k * len..(k + 1) * len).unwrap_or(&[]);
        let [max] = peaks(len, lane, stop)?;
        let max = if max.is_finite() { max } else { 0.0 };
        let [sum] = fold_lanes(&SumExp { max, sum: PhantomData::<P> }, len, lane, stop)?;
        *log_sum = log(sum.value()) + max;
    }
    Ok(())
}

/// Of at most [`TOGETHER`] lanes of at most [`SHORT`] elements, which are brought side by side.
fn log_sums_of_short<P: Total<f64>>(
    len: usize,
    lanes: &[f64],
    logs: &mut [f64],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (mut elements, mut peaks, mut sums) =
        ([0.0; SHORT * TOGETHER], [Greatest::START; TOGETHER], [P::START; TOGETHER]);
    turn(lanes, len, &mut elements, TOGETHER, len, logs.len(), &mut Lookout::new(stop))?;
    Peak.values_of_rows(&mut peaks, Rows::dense(&elements, len, TOGETHER));
    let peaks = peaks.map(|Greatest(max): Greatest<f64>| if max.is_finite() { max } else { 0.0 });
    exp_below(elements.get_mut(..len * TOGETHER).unwrap_or(&mut []), &peaks);
    Added::<P>(PhantomData).values_of_rows(&mut sums, Rows::dense(&elements, len, TOGETHER));
    logarithms(&sums, &peaks, logs);
    Ok(())
}

for_each_level! {
    /// The exponentials of rows, less what is given for each column.
    fn exp_below<>(rows: &mut [f64], less: &[f64; TOGETHER]) -> () = exp_below_body;
}

#[inline(always)]
fn exp_below_body(rows: &mut [f64], less: &[f64; TOGETHER]) {
    for row in rows.as_chunks_mut::<TOGETHER>().0 {
        for (x, less) in row.iter_mut().zip(less) {
            *x = exp(*x - less);
        }
    }
}

for_each_level! {
    /// The logarithms of sums, and what is added to each.
    fn logarithms<P: Total<f64>>(sums: &[P], more: &[f64], logs: &mut [f64]) -> () = logarithms_body::<P>;
}

#[inline(always)]
fn logarithms_body<P: Total<f64>>(sums: &[P], more: &[f64], logs: &mut [f64]) {
    for ((to, sum), more) in logs.iter_mut().zip(sums).zip(more) {
        *to = log(sum.value()) + more;
    }
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
struct SumExp<P> {
    max: f64,
    sum: PhantomData<P>,
}

impl<P: Total<f64>> Fold<f64> for SumExp<P> {
    type Partial = P;

    #[inline(always)]
    fn counts(&self, element: f64) -> f64 {
        exp(element - self.max)
    }
    #[inline(always)]
    fn add(&self, sum: P, element: f64) -> P {
        sum.add(element)
    }
}
