//! Normalization of lanes whose elements are neighbours, then a scale and a bias for their elements.
//!
//! Mean and variance are rounded once ([`super::reductions`]), and the mean has twice the digits of its type. So a normalized
//! element is within 3 ulp of the exact one in f32 and 4 ulp in f64, however far the lane is from 0.

use super::reduce::{BETWEEN_LOOKS, BLOCK, value_of};
use super::sums::{Exact, Total};
use super::{Floating, Mean, Number, Reduction, Stored};
use crate::kernels::cpu::for_each_level;
use crate::kernels::{Resources, Stop, Stopped, parallel};

/// How lanes are normalized: `(x - mean) / sqrt(variance + epsilon)`, or `x / sqrt(mean of squares + epsilon)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Normalize {
    /// The mean is subtracted; otherwise it counts as 0.
    pub(crate) center: bool,
    pub(crate) epsilon: f32,
}

/// What makes an output of the normalized elements. Its first argument is the number of the first of them; the
/// outputs are bytes.
pub(crate) type Finish<'a, R> = dyn Fn(usize, &[R], &mut [u8]) + Sync + 'a;

/// The mean and the divisor of a lane, whose inverse is rounded from the exact one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statistics<T> {
    pub(crate) mean: T,
    /// What rounding took from the mean.
    rest: T,
    divisor: T,
    pub(crate) inverse: T,
}

impl Normalize {
    fn statistics<S: Stored<T>, T: Floating>(self, lane: &[S], stop: Option<&Stop>) -> Result<Statistics<T>, Stopped> {
        let (mut mean, mut rest) = (<T as Number>::ZERO, 0.0);
        if self.center {
            let precise = value_of(&Mean, lane, stop)?;
            mean = T::nearest(precise);
            // What f64 doesn't hold is the mean of the differences.
            let is_precise = size_of::<T>() == size_of::<f64>();
            rest = match is_precise {
                true => value_of(&Deviation::<T, false> { from: mean, rest }, lane, stop)?,
                false => precise - mean.precise(),
            };
        }
        let variance = value_of(&Deviation::<T, true> { from: mean, rest }, lane, stop)?;
        let divisor = (variance + f64::from(self.epsilon)).sqrt();
        Ok(Statistics {
            mean,
            rest: T::nearest(rest),
            divisor: T::nearest(divisor),
            inverse: T::nearest(1.0 / divisor),
        })
    }
}

/// The mean of differences from `from + rest`, or of their squares.
struct Deviation<T, const SQUARED: bool> {
    from: T,
    rest: f64,
}

impl<T: Floating, const SQUARED: bool> Reduction<T> for Deviation<T, SQUARED> {
    type Partial = T::Exact;
    const START: T::Exact = T::Exact::NOTHING;

    #[inline(always)]
    fn add(&self, sum: T::Exact, element: T) -> T::Exact {
        let difference = element.precise() - self.from.precise() - self.rest;
        if SQUARED { sum.add_square(difference) } else { sum.add(difference) }
    }
    #[inline(always)]
    fn join(a: T::Exact, b: T::Exact) -> T::Exact {
        a.join(b)
    }
    #[inline(always)]
    fn end(sum: T::Exact, len: usize) -> f64 {
        sum.over(len)
    }
}

/// Normalizes lanes of `len` elements with the precision of `T`, rounds the elements to `R`, and fills `out` with what
/// `finish` makes of them; `width` is the number of bytes of an output's element.
pub(crate) fn normalize<S: Stored<T>, R: Stored<T>, T: Floating>(
    how: Normalize,
    data: &[S],
    len: usize,
    finish: &Finish<'_, R>,
    width: usize,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    parallel::split(out, len * width, resources, |first, out| {
        let (mut block, mut results) = ([<T as Number>::ZERO; BLOCK], [<T as Number>::ZERO; BLOCK]);
        let mut rounded = [R::zeroed(); BLOCK];
        let lanes = data.get(first * len..).unwrap_or(&[]).chunks_exact(len);
        for (k, (lane, out)) in lanes.zip(out.chunks_exact_mut(len * width)).enumerate() {
            let statistics = how.statistics::<S, T>(lane, resources.stop)?;
            for (b, (lane, out)) in lane.chunks(BLOCK).zip(out.chunks_mut(BLOCK * width)).enumerate() {
                if b > 0 && (b * BLOCK).is_multiple_of(BETWEEN_LOOKS) {
                    parallel::look(resources.stop)?;
                }
                let rounded = rounded.get_mut(..lane.len()).unwrap_or(&mut []);
                let lane = match S::direct(lane) {
                    Some(lane) => lane,
                    None => {
                        S::load(lane, &mut block);
                        &block
                    }
                };
                match R::direct_mut(rounded) {
                    Some(to) => apply(how, statistics, lane, to),
                    None => {
                        apply(how, statistics, lane, &mut results);
                        R::store(&results, rounded);
                    }
                }
                finish((first + k) * len + b * BLOCK, rounded, out);
            }
        }
        Ok(())
    })
}

/// Writes a statistic of each lane to `out`.
pub(crate) fn statistics<S: Stored<T>, O: Stored<T>, T: Floating>(
    how: Normalize,
    pick: fn(Statistics<T>) -> T,
    data: &[S],
    len: usize,
    out: &mut [O],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    parallel::split_by(bytemuck::cast_slice_mut::<O, u8>(out), size_of::<O>(), len, resources, |first, out| {
        let mut rest = data.get(first * len..).unwrap_or(&[]);
        for out in bytemuck::cast_slice_mut::<u8, O>(out).chunks_exact_mut(1) {
            let lane;
            (lane, rest) = rest.split_at(len.min(rest.len()));
            O::store(&[pick(how.statistics::<S, T>(lane, resources.stop)?)], out);
        }
        Ok(())
    })
}

/// `scale * x + bias`
#[derive(Debug, Clone, Copy)]
pub(crate) struct Affine<'a, V> {
    pub(crate) scale: Spread<'a, V>,
    pub(crate) bias: Option<Spread<'a, V>>,
}

/// A value for each element: each is for `run` neighbours, and after the last comes the first again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread<'a, V> {
    pub(crate) values: &'a [V],
    pub(crate) run: usize,
}

impl<'a, V> Affine<'a, V> {
    /// As [`Finish`]. Operations are rounded to `V` one by one, as `Mul` and `Add` do.
    pub(crate) fn finish<R: Stored<T>, T: Number>(self) -> impl Fn(usize, &[R], &mut [u8]) + Sync + 'a
    where
        V: Stored<T>,
    {
        move |first, elements, out| affine_part::<R, V, T>(self, first, elements, bytemuck::cast_slice_mut(out))
    }
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

fn affine_part<R: Stored<T>, V: Stored<T>, T: Number>(
    affine: Affine<'_, V>,
    mut first: usize,
    elements: &[R],
    out: &mut [V],
) {
    if let (Some(elements), Some(out)) = (R::direct(elements), V::direct_mut(out)) {
        out.copy_from_slice(elements);
        affine.scale.combine(first, out, scale);
        if let Some(bias) = affine.bias {
            bias.combine(first, out, shift);
        }
        return;
    }
    let mut block = [T::ZERO; BLOCK];
    for (elements, out) in elements.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let block = block.get_mut(..out.len()).unwrap_or(&mut []);
        R::load(elements, block);
        affine.scale.combine(first, block, scale);
        if let Some(bias) = affine.bias {
            V::store(block, out);
            V::load(out, block);
            bias.combine(first, block, shift);
        }
        V::store(block, out);
        first += out.len();
    }
}

impl<V> Spread<'_, V> {
    /// Combines elements, of which the first has the number `first`, with their values.
    fn combine<T: Number>(self, first: usize, mut elements: &mut [T], with: fn(&mut [T], &[T]))
    where
        V: Stored<T>,
    {
        let mut converted = [T::ZERO; BLOCK];
        let mut at = first;
        while !elements.is_empty() {
            let (k, left) = (at / self.run % self.values.len(), self.run - at % self.run);
            let count = if self.run == 1 { self.values.len() - k } else { left }.min(elements.len());
            let (now, rest) = elements.split_at_mut(count);
            let values = self.values.get(k..k + if self.run == 1 { count } else { 1 }).unwrap_or(&[]);
            match V::direct(values) {
                Some(values) => with(now, values),
                None => {
                    V::load(values, &mut converted);
                    with(now, converted.get(..values.len()).unwrap_or(&[]));
                }
            }
            (elements, at) = (rest, at + count);
        }
    }
}
