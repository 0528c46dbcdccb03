//! Normalization of lanes whose elements are neighbours.
//!
//! Mean and variance are rounded once ([`super::reductions`]), and the mean has twice the digits of its type. So a normalized
//! element is within 3 ulp of the exact one in f32 and 4 ulp in f64, however far the lane is from 0.

use super::elements::Moments;
use super::fold::{PARTIALS, add_lane, fold_lane, join_each};
use super::reduce::{BETWEEN_LOOKS, BLOCK, TOGETHER, between_looks, value};
use super::reductions::{Added, Squared};
use super::stored::{Elements, Storage};
use super::sums::{Exact, Partial, Total};
use super::{Floating, Fold, Mean, Measure, Number, Reduction, Stored};
use crate::cpu::for_each_level;
use crate::{Resources, Stop, Stopped, lookout, parallel};
use bytemuck::Zeroable;
use std::marker::PhantomData;

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
#[derive(Debug, Clone, Copy, Zeroable)]
struct Statistics<T> {
    mean: T,
    /// What rounding took from the mean.
    rest: T,
    divisor: T,
    inverse: T,
}

impl Normalize {
    /// The statistics of at most [`TOGETHER`] lanes of `len` elements, one behind the other.
    fn all_statistics<T: Floating>(
        self,
        len: usize,
        lanes: Elements<'_, T>,
        all: &mut [Statistics<T>],
        stop: Option<&Stop>,
    ) -> Result<(), Stopped> {
        if let Some(lanes) = lanes.direct() {
            let Some(moments) = T::moments(len) else { return statistics_of(self, len, lanes, all, stop) };
            let mut own = [(<T as Number>::ZERO, 0.0, 0.0); TOGETHER];
            let own = own.get_mut(..all.len()).ok_or(Stopped::Misfit)?;
            moments(self.center, len, lanes, own);
            for ((mean, rest, variance), statistics) in own.iter().zip(all) {
                *statistics = self.statistics_by(*mean, *rest, *variance);
            }
            return Ok(());
        }
        for (k, statistics) in all.iter_mut().enumerate() {
            *statistics = self.statistics(len, lanes.range(k * len..(k + 1) * len), stop)?;
        }
        Ok(())
    }

    fn statistics<T: Floating>(
        self,
        len: usize,
        lane: Elements<'_, T>,
        stop: Option<&Stop>,
    ) -> Result<Statistics<T>, Stopped> {
        let (mean, rest, variance) = self.moments(len, lane, stop)?;
        Ok(self.statistics_by(mean, rest, variance))
    }

    /// The mean of a lane, what rounding took from it, and the variance.
    pub(super) fn moments<T: Floating>(
        self,
        len: usize,
        lane: Elements<'_, T>,
        stop: Option<&Stop>,
    ) -> Result<Moments<T>, Stopped> {
        let (mut mean, mut rest) = (<T as Number>::ZERO, 0.0);
        if self.center {
            let precise = value(&Mean, len, lane, stop)?;
            mean = T::nearest(precise);
            rest = match is_precise::<T>() {
                true => value(&Deviation::<T, false> { from: mean, rest }, len, lane, stop)?,
                false => precise - mean.precise(),
            };
        }
        Ok((mean, rest, value(&Deviation::<T, true> { from: mean, rest }, len, lane, stop)?))
    }

    #[inline(always)]
    fn statistics_by<T: Floating>(self, mean: T, rest: f64, variance: f64) -> Statistics<T> {
        let divisor = (variance + f64::from(self.epsilon)).sqrt();
        Statistics { mean, rest: T::nearest(rest), divisor: T::nearest(divisor), inverse: T::nearest(1.0 / divisor) }
    }
}

/// Whether a mean is as wide as its elements: what it doesn't hold is the mean of the differences from it.
#[inline(always)]
fn is_precise<T>() -> bool {
    size_of::<T>() == size_of::<f64>()
}

for_each_level! {
    /// As [`Normalize::statistics`], of at most [`TOGETHER`] lanes.
    fn statistics_of<T: Floating>(how: Normalize, len: usize, lanes: &[T], all: &mut [Statistics<T>], stop: Option<&Stop>) -> Result<(), Stopped>
        = statistics_of_body::<T>;
}

#[inline(always)]
fn statistics_of_body<T: Floating>(
    how: Normalize,
    len: usize,
    lanes: &[T],
    all: &mut [Statistics<T>],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (mut means, mut rests) = ([<T as Number>::ZERO; TOGETHER], [0.0; TOGETHER]);
    let mut sums = [[T::Exact::START; PARTIALS]; TOGETHER];
    let sums = sums.get_mut(..all.len()).ok_or(Stopped::Misfit)?;
    if how.center {
        for (sums, lane) in sums.iter_mut().zip(lanes.chunks_exact(len)) {
            fold_lane(&Reduction::<T>::fold(&Mean), sums, lane, stop)?;
        }
        join_each(sums);
        for (([sum, ..], mean), rest) in sums.iter().zip(&mut means).zip(&mut rests) {
            let precise = sum.over(len);
            *mean = T::nearest(precise);
            *rest = precise - mean.precise();
        }
        if is_precise::<T>() {
            for ((sums, lane), from) in sums.iter_mut().zip(lanes.chunks_exact(len)).zip(means) {
                fold_differences::<T, _>(&Added(PhantomData), sums, lane, (from, 0.0), stop)?;
            }
            join_each(sums);
            for ([sum, ..], rest) in sums.iter().zip(&mut rests) {
                *rest = sum.over(len);
            }
        }
    }
    for (((sums, lane), from), rest) in sums.iter_mut().zip(lanes.chunks_exact(len)).zip(means).zip(rests) {
        fold_differences::<T, _>(&Squared(PhantomData), sums, lane, (from, rest), stop)?;
    }
    join_each(sums);
    for ((([sum, ..], mean), rest), statistics) in sums.iter().zip(means).zip(rests).zip(all) {
        *statistics = how.statistics_by(mean, rest, sum.over(len));
    }
    Ok(())
}

/// The mean of a lane, and its variance: the mean of squared differences from the mean.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    Mean,
    Variance,
}

/// The sums of differences from a mean, as [`Deviation`] adds them. In a loop of their own they are vectors, whatever is added of them.
#[inline(always)]
fn fold_differences<T: Floating, F: Fold<f64, Partial = T::Exact>>(
    fold: &F,
    sums: &mut [T::Exact; PARTIALS],
    lane: &[T],
    (from, rest): (T, f64),
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    *sums = [T::Exact::START; PARTIALS];
    for at in between_looks(lane.len(), stop) {
        let (blocks, left) = lane.get(at?).unwrap_or(&[]).as_chunks::<PARTIALS>();
        // A copy stays in registers.
        let mut values = *sums;
        for block in blocks {
            let mut differences = [0.0; PARTIALS];
            for (difference, x) in differences.iter_mut().zip(block) {
                *difference = x.precise() - from.precise() - rest;
            }
            for (value, &difference) in values.iter_mut().zip(&differences) {
                *value = fold.add(*value, difference);
            }
        }
        *sums = values;
        let mut differences = [0.0; PARTIALS];
        for (difference, x) in differences.iter_mut().zip(left) {
            *difference = x.precise() - from.precise() - rest;
        }
        add_lane(fold, sums, differences.get(..left.len()).unwrap_or(&[]));
    }
    Ok(())
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

/// Elements of lanes whose statistics are computed together, unless a single lane has more: they stay in the nearest cache.
const STATISTICS: usize = 1 << 12;

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
    // The statistics of some lanes together, so that none waits for its own; then the elements of short lanes together.
    let group = (STATISTICS / len).clamp(1, TOGETHER);
    let some = (BLOCK / len).clamp(1, group);
    let mut all = [Statistics::<T>::zeroed(); TOGETHER];
    for (k, out) in out.chunks_mut(group * len * width).enumerate() {
        let all = all.get_mut(..out.len() / (len * width)).unwrap_or(&mut []);
        let lanes = data.range(k * group * len..(k * group + all.len()) * len);
        how.all_statistics(len, lanes, all, stop)?;
        for (j, (all, out)) in all.chunks(some).zip(out.chunks_mut(some * len * width)).enumerate() {
            for (b, out) in out.chunks_mut(BLOCK * width).enumerate() {
                if b > 0 && (b * BLOCK).is_multiple_of(BETWEEN_LOOKS) {
                    lookout::look(stop)?;
                }
                let (at, count) = (j * some * len + b * BLOCK, out.len() / width);
                let rounded = rounded.get_mut(..count * to.size).unwrap_or(&mut []);
                let part = lanes.range(at..at + count);
                let part = match part.direct() {
                    Some(part) => part,
                    None => {
                        part.load(&mut block);
                        block.get(..count).unwrap_or(&[])
                    }
                };
                match to.direct_mut(rounded) {
                    Some(to) => apply(how, all, len, part, to),
                    None => {
                        apply(how, all, len, part, &mut results);
                        to.store(&results, rounded);
                    }
                }
                finish((first + k * group) * len + at, rounded, out);
            }
        }
    }
    Ok(())
}

/// `normalized * scale + bias`, with one of each for each element of a lane: as [`normalize`] with an
/// [`Affine`](super::Affine), in one go.
pub fn normalize_scaled<T: Floating>(
    how: Normalize,
    data: &[T],
    scales: &[T],
    biases: &[T],
    out: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let len = scales.len();
    let out = bytemuck::cast_slice_mut(out);
    if out.is_empty() {
        return Ok(());
    }
    parallel::split(out, size_of_val(scales), resources, |first, out| {
        let out: &mut [T] = bytemuck::cast_slice_mut(out);
        let data = data.get(first * len..).unwrap_or(&[]);
        let group = (STATISTICS / len).clamp(1, TOGETHER);
        let mut all = [Statistics::<T>::zeroed(); TOGETHER];
        for (lanes, out) in data.chunks(group * len).zip(out.chunks_mut(group * len)) {
            let all = all.get_mut(..out.len() / len).unwrap_or(&mut []);
            how.all_statistics(len, Elements::of::<T>(lanes), all, resources.stop)?;
            for ((statistics, lane), out) in all.iter().zip(lanes.chunks_exact(len)).zip(out.chunks_exact_mut(len)) {
                for at in between_looks(len, resources.stop) {
                    let at = at?;
                    let [lane, scales, biases] = [lane, scales, biases].map(|of| of.get(at.clone()).unwrap_or(&[]));
                    apply_scaled(how, statistics, (lane, scales, biases), out.get_mut(at).unwrap_or(&mut []));
                }
            }
        }
        Ok(())
    })
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

for_each_level! {
    /// Normalizes lanes of `len` elements, or a part of one.
    fn apply<T: Floating>(how: Normalize, all: &[Statistics<T>], len: usize, lanes: &[T], to: &mut [T]) -> () = apply_body::<T>;
}

#[inline(always)]
fn apply_body<T: Floating>(how: Normalize, all: &[Statistics<T>], len: usize, lanes: &[T], to: &mut [T]) {
    for ((statistics, lane), to) in all.iter().zip(lanes.chunks(len)).zip(to.chunks_mut(len)) {
        let Statistics { mean, rest, divisor, inverse } = *statistics;
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
}

for_each_level! {
    /// As [`apply`], and then `* scale + bias`, of a part of a lane.
    fn apply_scaled<T: Floating>(how: Normalize, statistics: &Statistics<T>, from: (&[T], &[T], &[T]), to: &mut [T]) -> ()
        = apply_scaled_body::<T>;
}

#[inline(always)]
fn apply_scaled_body<T: Floating>(
    how: Normalize,
    statistics: &Statistics<T>,
    (lane, scales, biases): (&[T], &[T], &[T]),
    to: &mut [T],
) {
    let Statistics { mean, rest, divisor, inverse } = *statistics;
    let numbers = to.iter_mut().zip(lane).zip(scales.iter().zip(biases));
    if how.center {
        for ((to, &x), (&scale, &bias)) in numbers {
            *to = (x - mean - rest) * inverse * scale + bias;
        }
    } else {
        for ((to, &x), (&scale, &bias)) in numbers {
            *to = x / divisor * scale + bias;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Affine, Spread};
    use super::*;
    use crate::testing::{at_each_level, sized};

    fn check<T: Floating>() {
        for len in [1, 7, 31, 32, 33, 64, 200, sized(9000, 300)] {
            // Far from 0, so that what rounding takes from a mean counts.
            let number = |k: usize| T::of(30_000.0 + ((k * 7919) % 1009) as f64 / 64_000.0);
            let data: Vec<T> = (0..TOGETHER * len).map(number).collect();
            let zeros = vec![T::of(-0.0); len];
            for (data, count, center) in
                [(&data, 1, true), (&data, 3, true), (&data, TOGETHER, true), (&data, 5, false), (&zeros, 1, true)]
            {
                let how = Normalize { center, epsilon: 1e-5 };
                let mut all = [Statistics::<T>::zeroed(); TOGETHER];
                how.all_statistics(len, Elements::of(&data[..count * len]), &mut all[..count], None).unwrap();
                for (k, got) in all[..count].iter().enumerate() {
                    let lane = Elements::<T>::of(&data[k * len..(k + 1) * len]);
                    let want = how.statistics(len, lane, None).unwrap();
                    assert_eq!(format!("{got:?}"), format!("{want:?}"), "lane {k} of {count}, {len} elements");
                }
            }
        }
    }

    #[test]
    fn lanes_together_have_the_statistics_of_each() {
        at_each_level(|| {
            check::<f32>();
            check::<f64>();
        });
    }

    /// Elements and values of a group of short lanes are those of their lane.
    #[test]
    fn short_lanes_are_normalized_as_alone() {
        let how = Normalize { center: true, epsilon: 1e-5 };
        for len in [1, 3, 31, 64, 170, 256, 257, 512, 513] {
            let data: Vec<f32> = (0..37 * len).map(|k| ((k * 7919) % 1009) as f32 * 0.01).collect();
            let scale: Vec<f32> = (0..len).map(|k| k as f32 * 0.1 + 1.0).collect();
            let spread = |run| Spread { values: if run == 1 { &scale[..] } else { &scale[..1] }, run };
            at_each_level(|| {
                for affine in [(1, len), (len, 1)].map(|(a, b)| Affine { scale: spread(a), bias: Some(spread(b)) }) {
                    let finish = affine.finish::<f32, f32>();
                    let run = |data: &[f32]| {
                        let mut out = vec![0u8; data.len() * 4];
                        let resources = Resources { threads: 1, stop: None };
                        normalize::<f32, f32, f32>(how, data, len, &finish, 4, &mut out, resources).unwrap();
                        out
                    };
                    let alone: Vec<u8> = data.chunks(len).flat_map(run).collect();
                    assert_eq!(run(&data), alone, "{len}");
                }
            });
        }
    }

    /// As with a scale and a bias afterwards, of lanes on both sides of what is computed together.
    #[test]
    fn lanes_are_normalized_and_scaled_in_one_go() {
        let resources = Resources { threads: 1, stop: None };
        for len in [1, 3, 31, 64, 170, 513, sized(5000, 600)] {
            let data: Vec<f32> = (0..19 * len).map(|k| ((k * 7919) % 1009) as f32 * 0.01).collect();
            let [scales, biases] =
                [3, 5].map(|of| (0..len).map(|k| (k * of % 7) as f32 * 0.1 - 0.2).collect::<Vec<_>>());
            let spread = |values| Spread { values, run: 1 };
            let finish = Affine { scale: spread(&scales[..]), bias: Some(spread(&biases)) }.finish::<f32, f32>();
            at_each_level(|| {
                for center in [true, false] {
                    let how = Normalize { center, epsilon: 1e-5 };
                    let (mut want, mut got) = (vec![0u8; data.len() * 4], vec![7.0f32; data.len()]);
                    normalize::<f32, f32, f32>(how, &data, len, &finish, 4, &mut want, resources).unwrap();
                    normalize_scaled(how, &data, &scales, &biases, &mut got, resources).unwrap();
                    assert_eq!(bytemuck::cast_slice::<f32, u8>(&got), want, "{len}, {center}");
                }
            });
        }
    }
}
