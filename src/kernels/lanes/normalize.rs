//! Normalization of lanes whose elements are neighbours, then a scale and a bias for their elements.

use super::reduce::{BLOCK, sum};
use super::{Floating, Number, Stored};
use crate::kernels::cpu::for_each_level;
use crate::kernels::{Resources, Stopped, parallel};

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

/// The mean and the divisor of a lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statistics<T> {
    pub(crate) mean: T,
    pub(crate) divisor: T,
}

impl Normalize {
    #[inline(always)]
    fn statistics<S: Stored<T>, T: Floating>(self, lane: &[S]) -> Statistics<T> {
        let mean = if self.center { sum(lane, |x: T| x).over(lane.len()) } else { <T as Number>::ZERO };
        let deviation = sum(lane, |x: T| (x - mean) * (x - mean));
        let divisor = (deviation.over(lane.len()) + T::of(self.epsilon.into())).root();
        Statistics { mean, divisor }
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
        normalize_part::<S, R, T>(how, data, len, first, finish, width, out);
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
        statistics_part::<S, O, T>(how, pick, data, len, first, bytemuck::cast_slice_mut(out));
        Ok(())
    })
}

/// `scale[k] * x + bias[k]`; each is for `run` neighbours, and after the last comes the first again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Affine<'a, V> {
    pub(crate) scale: &'a [V],
    pub(crate) bias: Option<&'a [V]>,
    pub(crate) run: usize,
}

impl<'a, V: Send + Sync> Affine<'a, V> {
    /// As [`Finish`]. Operations are rounded to `V` one by one, as `Mul` and `Add` do.
    pub(crate) fn finish<R: Stored<T>, T: Number>(self) -> impl Fn(usize, &[R], &mut [u8]) + Sync + 'a
    where
        V: Stored<T>,
    {
        move |first, elements, out| affine_part::<R, V, T>(self, first, elements, bytemuck::cast_slice_mut(out))
    }
}

for_each_level! {
    fn normalize_part<S: Stored<T>, R: Stored<T>, T: Floating>(how: Normalize, data: &[S], len: usize, first: usize, finish: &Finish<'_, R>, width: usize, out: &mut [u8]) -> ()
        = normalize_body::<S, R, T>;
}

for_each_level! {
    fn statistics_part<S: Stored<T>, O: Stored<T>, T: Floating>(how: Normalize, pick: fn(Statistics<T>) -> T, data: &[S], len: usize, first: usize, out: &mut [O]) -> ()
        = statistics_body::<S, O, T>;
}

for_each_level! {
    fn affine_part<R: Stored<T>, V: Stored<T>, T: Number>(affine: Affine<'_, V>, first: usize, elements: &[R], out: &mut [V]) -> ()
        = affine_body::<R, V, T>;
}

#[inline(always)]
fn normalize_body<S: Stored<T>, R: Stored<T>, T: Floating>(
    how: Normalize,
    data: &[S],
    len: usize,
    first: usize,
    finish: &Finish<'_, R>,
    width: usize,
    out: &mut [u8],
) {
    let (mut block, mut rounded) = ([<T as Number>::ZERO; BLOCK], [R::zeroed(); BLOCK]);
    let lanes = data.get(first * len..).unwrap_or(&[]).chunks_exact(len);
    for (k, (lane, out)) in lanes.zip(out.chunks_exact_mut(len * width)).enumerate() {
        let Statistics { mean, divisor } = how.statistics::<S, T>(lane);
        let inverse = <T as Number>::ONE / divisor;
        for (b, (lane, out)) in lane.chunks(BLOCK).zip(out.chunks_mut(BLOCK * width)).enumerate() {
            let block = block.get_mut(..lane.len()).unwrap_or(&mut []);
            S::load(lane, block);
            if how.center {
                block.iter_mut().for_each(|x| *x = (*x - mean) * inverse);
            } else {
                block.iter_mut().for_each(|x| *x = *x / divisor);
            }
            R::store(block, &mut rounded);
            let at = (first + k) * len + b * BLOCK;
            finish(at, rounded.get(..lane.len()).unwrap_or(&[]), out);
        }
    }
}

#[inline(always)]
fn statistics_body<S: Stored<T>, O: Stored<T>, T: Floating>(
    how: Normalize,
    pick: fn(Statistics<T>) -> T,
    data: &[S],
    len: usize,
    first: usize,
    out: &mut [O],
) {
    let mut rest = data.get(first * len..).unwrap_or(&[]);
    for out in out.chunks_exact_mut(1) {
        let lane;
        (lane, rest) = rest.split_at(len.min(rest.len()));
        O::store(&[pick(how.statistics::<S, T>(lane))], out);
    }
}

#[inline(always)]
fn affine_body<R: Stored<T>, V: Stored<T>, T: Number>(
    affine: Affine<'_, V>,
    first: usize,
    mut elements: &[R],
    mut out: &mut [V],
) {
    let Affine { scale, bias, run } = affine;
    let mut at = first;
    while !out.is_empty() {
        let (k, within) = (at / run % scale.len(), at % run);
        let count = if run == 1 { scale.len() - k } else { run - within }.min(out.len());
        let (now, rest) = elements.split_at(count.min(elements.len()));
        let (to, out_rest) = out.split_at_mut(count);
        let range = k..k + if run == 1 { count } else { 1 };
        let scale = scale.get(range.clone()).unwrap_or(&[]);
        affine_run::<R, V, T>(now, scale, bias.and_then(|bias| bias.get(range)), to);
        (elements, out, at) = (rest, out_rest, at + count);
    }
}

/// A scale and a bias for each element, or one for all.
#[inline(always)]
fn affine_run<R: Stored<T>, V: Stored<T>, T: Number>(elements: &[R], scale: &[V], bias: Option<&[V]>, out: &mut [V]) {
    let mut block = [T::ZERO; BLOCK];
    let block = block.get_mut(..out.len()).unwrap_or(&mut []);
    R::load(elements, block);
    combine(block, scale, T::times);
    V::store(block, out);
    if let Some(bias) = bias {
        V::load(out, block);
        combine(block, bias, T::plus);
        V::store(block, out);
    }
}

/// Combines each element with its own of `by`, or with the only one.
#[inline(always)]
fn combine<V: Stored<T>, T: Number>(block: &mut [T], by: &[V], with: impl Fn(T, T) -> T) {
    let mut others = [T::ZERO; BLOCK];
    match by {
        [only] => {
            V::load(&[*only], &mut others);
            let [other, ..] = others;
            block.iter_mut().for_each(|x| *x = with(*x, other));
        }
        _ => {
            let others = match V::direct(by) {
                Some(others) => others,
                None => {
                    V::load(by, &mut others);
                    &others
                }
            };
            block.iter_mut().zip(others).for_each(|(x, &other)| *x = with(*x, other));
        }
    }
}
