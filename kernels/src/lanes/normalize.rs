//! Normalization of lanes whose elements are neighbours, then a scale and a bias for their elements.
//!
//! Mean and variance are rounded once ([`super::reductions`]), and the mean has twice the digits of its type. So a normalized
//! element is within 3 ulp of the exact one in f32 and 4 ulp in f64, however far the lane is from 0.

use super::reduce::{BETWEEN_LOOKS, BLOCK, value};
use super::stored::{Elements, Storage};
use super::sums::{Exact, Total};
use super::{Floating, Fold, Mean, Measure, Number, Reduction, Stored};
use crate::cpu::for_each_level;
use crate::{Resources, Stop, Stopped, parallel};

/// How lanes are normalized: `(x - mean) / sqrt(variance + epsilon)`, or `x / sqrt(mean of squares + epsilon)`.
#[derive(Debug, Clone, Copy)]
pub struct Normalize {
    /// The mean is subtracted; otherwise it counts as 0.
    pub center: bool,
    pub epsilon: f32,
}

/// What makes an output of the normalized elements. Its first argument is the number of the first of them; both are bytes.
pub(super) type Finish<'a> = dyn Fn(usize, &[u8], &mut [u8]) + Sync + 'a;

/// The mean and the divisor of a lane, whose inverse is rounded from the exact one.
#[derive(Debug, Clone, Copy)]
struct Statistics<T> {
    mean: T,
    /// What rounding took from the mean.
    rest: T,
    divisor: T,
    inverse: T,
}

impl Normalize {
    fn statistics<T: Floating>(
        self,
        len: usize,
        lane: Elements<'_, T>,
        stop: Option<&Stop>,
    ) -> Result<Statistics<T>, Stopped> {
        let (mut mean, mut rest) = (<T as Number>::ZERO, 0.0);
        if self.center {
            let precise = value(&Mean, len, lane, stop)?;
            mean = T::nearest(precise);
            // What f64 doesn't hold is the mean of the differences.
            let is_precise = size_of::<T>() == size_of::<f64>();
            rest = match is_precise {
                true => value(&Deviation::<T, false> { from: mean, rest }, len, lane, stop)?,
                false => precise - mean.precise(),
            };
        }
        let variance = value(&Deviation::<T, true> { from: mean, rest }, len, lane, stop)?;
        let divisor = (variance + f64::from(self.epsilon)).sqrt();
        Ok(Statistics {
            mean,
            rest: T::nearest(rest),
            divisor: T::nearest(divisor),
            inverse: T::nearest(1.0 / divisor),
        })
    }
}

/// The mean of a lane, and its variance: the mean of squared differences from the mean.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    Mean,
    Variance,
}

impl<T: Floating> Measure<T> for Moment {
    type Value = f64;

    fn each(&self, len: usize, lanes: &[T], values: &mut [f64], stop: Option<&Stop>) -> Result<(), Stopped> {
        for (k, to) in values.iter_mut().enumerate() {
            let lane = Elements::of::<T>(lanes.get(k * len..(k + 1) * len).unwrap_or(&[]));
            let mean = value(&Mean, len, lane, stop)?;
            *to = match self {
                Moment::Mean => mean,
                Moment::Variance => {
                    let from = T::nearest(mean);
                    value(&Deviation::<T, true> { from, rest: mean - from.precise() }, len, lane, stop)?
                }
            };
        }
        Ok(())
    }
}

/// The mean of differences from `from + rest`, or of their squares.
#[derive(Clone, Copy)]
struct Deviation<T, const SQUARED: bool> {
    from: T,
    rest: f64,
}

impl<T: Floating, const SQUARED: bool> Fold<T> for Deviation<T, SQUARED> {
    type Partial = T::Exact;

    #[inline(always)]
    fn add(&self, sum: T::Exact, element: T) -> T::Exact {
        let difference = element.precise() - self.from.precise() - self.rest;
        if SQUARED { sum.add_square(difference) } else { sum.add(difference) }
    }
}

impl<T: Floating, const SQUARED: bool> Reduction<T> for Deviation<T, SQUARED> {
    type Fold = Self;

    fn fold(&self) -> Self {
        *self
    }
    #[inline(always)]
    fn end(&self, sum: T::Exact, len: usize) -> f64 {
        sum.over(len)
    }
}

/// Normalizes lanes of `len` elements with the precision of `T`, rounds the elements to `R`, and fills `out` with what
/// `finish` makes of them; `width` is the number of bytes of an output's element.
#[inline]
pub fn normalize<S: Stored<T>, R: Stored<T>, T: Floating>(
    how: Normalize,
    data: &[S],
    len: usize,
    finish: &Finish<'_>,
    width: usize,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    normalize_by(how, Elements::of(data), len, Storage::of::<R>(), finish, width, out, resources)
}

#[expect(clippy::too_many_arguments)]
fn normalize_by<T: Floating>(
    how: Normalize,
    data: Elements<'_, T>,
    len: usize,
    to: Storage<T>,
    finish: &Finish<'_>,
    width: usize,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    parallel::split(out, len * width, resources, |first, out| {
        normalize_part::<T>(how, data.from(first * len), len, to, first, finish, width, out, resources.stop)
    })
}

/// The lanes from the one with the number `first` on, of which `data` has the elements.
#[expect(clippy::too_many_arguments)]
fn normalize_part<T: Floating>(
    how: Normalize,
    data: Elements<'_, T>,
    len: usize,
    to: Storage<T>,
    first: usize,
    finish: &Finish<'_>,
    width: usize,
    out: &mut [u8],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (mut block, mut results) = ([<T as Number>::ZERO; BLOCK], [<T as Number>::ZERO; BLOCK]);
    // Aligned for each type.
    let mut rounded = [0u64; BLOCK];
    let rounded = bytemuck::cast_slice_mut::<u64, u8>(&mut rounded);
    for (k, out) in out.chunks_exact_mut(len * width).enumerate() {
        let lane = data.range(k * len..(k + 1) * len);
        let statistics = how.statistics(len, lane, stop)?;
        for (b, out) in out.chunks_mut(BLOCK * width).enumerate() {
            if b > 0 && (b * BLOCK).is_multiple_of(BETWEEN_LOOKS) {
                parallel::look(stop)?;
            }
            let count = (len - b * BLOCK).min(BLOCK);
            let rounded = rounded.get_mut(..count * to.size).unwrap_or(&mut []);
            let lane = lane.range(b * BLOCK..b * BLOCK + count);
            let lane = match lane.direct() {
                Some(lane) => lane,
                None => {
                    lane.load(&mut block);
                    block.get(..count).unwrap_or(&[])
                }
            };
            match to.direct_mut(rounded) {
                Some(to) => apply(how, statistics, lane, to),
                None => {
                    apply(how, statistics, lane, &mut results);
                    to.store(&results, rounded);
                }
            }
            finish((first + k) * len + b * BLOCK, rounded, out);
        }
    }
    Ok(())
}

/// Writes the mean of each lane and the inverse of its divisor; either list may be empty.
#[inline]
pub fn statistics<S: Stored<T>, O: Stored<T>, T: Floating>(
    how: Normalize,
    data: &[S],
    len: usize,
    [means, inverses]: [&mut [O]; 2],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let outs = [bytemuck::cast_slice_mut(means), bytemuck::cast_slice_mut(inverses)];
    statistics_by(how, Elements::of(data), len, Storage::of::<O>(), outs, resources)
}

fn statistics_by<T: Floating>(
    how: Normalize,
    data: Elements<'_, T>,
    len: usize,
    to: Storage<T>,
    outs: [&mut [u8]; 2],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    parallel::split_two(outs, [to.size; 2], len, resources, |first, [means, inverses]| {
        for k in 0..means.len().max(inverses.len()) / to.size {
            let statistics =
                how.statistics(len, data.range((first + k) * len..(first + k + 1) * len), resources.stop)?;
            to.store(&[statistics.mean], means.get_mut(k * to.size..).unwrap_or(&mut []));
            to.store(&[statistics.inverse], inverses.get_mut(k * to.size..).unwrap_or(&mut []));
        }
        Ok(())
    })
}

/// `scale * x + bias`
#[derive(Debug, Clone, Copy)]
pub struct Affine<'a, V> {
    pub scale: Spread<'a, V>,
    pub bias: Option<Spread<'a, V>>,
}

/// A value for each element: each is for `run` neighbours, and after the last comes the first again.
#[derive(Debug, Clone, Copy)]
pub struct Spread<'a, V> {
    pub values: &'a [V],
    pub run: usize,
}

impl<'a, V> Affine<'a, V> {
    /// As [`Finish`], of elements `R`. Operations are rounded to `V` one by one, as `Mul` and `Add` do.
    #[inline]
    pub fn finish<R: Stored<T>, T: Number + 'a>(self) -> impl Fn(usize, &[u8], &mut [u8]) + Sync + 'a
    where
        V: Stored<T>,
    {
        let values = |spread: Spread<'a, V>| Values {
            values: Elements::of(spread.values),
            count: spread.values.len(),
            run: spread.run,
        };
        let (scale, bias) = (values(self.scale), self.bias.map(values));
        let (from, to) = (Storage::of::<R>(), Storage::of::<V>());
        move |first, elements, out| affine_part(scale, bias, first, Elements::in_bytes(elements, from), to, out)
    }
}

/// As [`Spread`].
#[derive(Debug, Clone, Copy)]
struct Values<'a, T> {
    values: Elements<'a, T>,
    count: usize,
    run: usize,
}

for_each_level! {
    fn apply<T: Floating>(how: Normalize, statistics: Statistics<T>, lane: &[T], to: &mut [T]) -> () = apply_body::<T>;
}

for_each_level! {
    /// Multiplies the elements by the values, or by the only one.
    fn scale<T: Number>(elements: &mut [T], values: &[T]) -> () = scale_body::<T>;
}

for_each_level! {
    /// Adds the values to the elements, or the only one.
    fn shift<T: Number>(elements: &mut [T], values: &[T]) -> () = shift_body::<T>;
}

#[inline(always)]
fn apply_body<T: Floating>(how: Normalize, statistics: Statistics<T>, lane: &[T], to: &mut [T]) {
    let Statistics { mean, rest, divisor, inverse } = statistics;
    if how.center {
        for (to, &x) in to.iter_mut().zip(lane) {
            *to = (x - mean - rest) * inverse;
        }
    } else {
        for (to, &x) in to.iter_mut().zip(lane) {
            *to = x / divisor;
        }
    }
}

#[inline(always)]
fn scale_body<T: Number>(elements: &mut [T], values: &[T]) {
    match values {
        [value] => elements.iter_mut().for_each(|x| *x = x.times(*value)),
        _ => elements.iter_mut().zip(values).for_each(|(x, value)| *x = x.times(*value)),
    }
}

#[inline(always)]
fn shift_body<T: Number>(elements: &mut [T], values: &[T]) {
    match values {
        [value] => elements.iter_mut().for_each(|x| *x = x.plus(*value)),
        _ => elements.iter_mut().zip(values).for_each(|(x, value)| *x = x.plus(*value)),
    }
}

fn affine_part<T: Number>(
    scale_by: Values<'_, T>,
    shift_by: Option<Values<'_, T>>,
    mut first: usize,
    elements: Elements<'_, T>,
    to: Storage<T>,
    out: &mut [u8],
) {
    if let Some(elements) = elements.direct()
        && let Some(out) = to.direct_mut(out)
    {
        out.copy_from_slice(elements);
        scale_by.combine(first, out, scale);
        if let Some(bias) = shift_by {
            bias.combine(first, out, shift);
        }
        return;
    }
    let mut block = [T::ZERO; BLOCK];
    for (k, out) in out.chunks_mut(BLOCK * to.size).enumerate() {
        let count = out.len() / to.size;
        let block = block.get_mut(..count).unwrap_or(&mut []);
        elements.range(k * BLOCK..k * BLOCK + count).load(block);
        scale_by.combine(first, block, scale);
        if let Some(bias) = shift_by {
            to.store(block, out);
            Elements::in_bytes(out, to).load(block);
            bias.combine(first, block, shift);
        }
        to.store(block, out);
        first += count;
    }
}

impl<T: Number> Values<'_, T> {
    /// Combines elements, of which the first has the number `first`, with their values.
    fn combine(self, first: usize, mut elements: &mut [T], with: fn(&mut [T], &[T])) {
        let (mut at, values) = (first, self.count);
        while !elements.is_empty() {
            let (k, left) = (at / self.run % values, self.run - at % self.run);
            let count = if self.run == 1 { values - k } else { left }.min(elements.len());
            let (now, rest) = elements.split_at_mut(count);
            let values = self.values.range(k..k + if self.run == 1 { count } else { 1 });
            match values.direct() {
                Some(values) => with(now, values),
                None => {
                    let mut converted = [T::ZERO; BLOCK];
                    values.load(&mut converted);
                    with(now, converted.get(..if self.run == 1 { count } else { 1 }).unwrap_or(&[]));
                }
            }
            (elements, at) = (rest, at + count);
        }
    }
}
