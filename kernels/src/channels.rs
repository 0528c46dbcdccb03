//! Tensors of channels: what happens to an element depends on its channel, or on the channels near it. Computed in f64 and
//! rounded once.

use super::cpu::for_each_level;
use super::functions::pow;
use super::gemm::blocks::CHANNELS;
use super::half::Half;
use super::lanes::Stored;
use super::{Lookout, Resources, Stopped, parallel};
use std::iter;

/// A mean, a factor and a bias for each channel: `(x - mean) * factor + bias`.
#[derive(Debug, Clone, Copy)]
pub struct Channels<'a> {
    pub means: &'a [f64],
    pub factors: &'a [f64],
    pub biases: &'a [f64],
    /// Elements of a channel that are neighbours. After those of the last channel come those of the first again.
    pub run: usize,
}

/// Elements that are computed at a time.
const BLOCK: usize = 256;

/// Elements that stay in registers meanwhile, and of a few.
const HELD: usize = 64;
const FEW: usize = 16;

/// Fills `out` with the elements of `data`, each shifted and scaled as its channel says.
pub fn scale<S: Stored<f64>>(
    data: &[S],
    channels: Channels<'_>,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let Channels { means, factors, biases, run } = channels;
    let size = size_of::<S>();
    if means.len() != factors.len() || means.len() != biases.len() || means.is_empty() && !out.is_empty() {
        return Err(Stopped::Misfit);
    }
    // If there are few elements until the first channel comes again, the numbers of each are repeated.
    let (period, mut repeated) = (means.len().saturating_mul(run).max(1), [[0f64; 2 * HELD]; 3]);
    let count = HELD.next_multiple_of(period);
    let lists = if period < HELD {
        for (to, from) in repeated.iter_mut().zip([means, factors, biases]) {
            let each = from.iter().flat_map(|number| iter::repeat_n(*number, run)).cycle();
            to.iter_mut().zip(each).for_each(|(to, number)| *to = number);
        }
        Some(repeated.each_ref().map(|list| &list[..]))
    } else {
        Some([means, factors, biases]).filter(|_| run == 1)
    };
    let unit = if lists.is_some() { count } else { run };
    let out = bytemuck::cast_slice_mut(out);
    parallel::pieces(out, size, size.saturating_mul(unit), 1, resources, |number, before, out| {
        let (first, out) = (before / size, bytemuck::cast_slice_mut::<u8, S>(out));
        let data = data.get(number * unit + first..).and_then(|data| data.get(..out.len()));
        let data = data.ok_or(Stopped::Misfit)?;
        if let Some(lists) = lists {
            let [means, factors, biases] = lists.map(|list| list.get(first..first + out.len()).unwrap_or(&[]));
            scale_each::<S>(data, [means, factors, biases], out);
            return Ok(());
        }
        let channel = number % means.len();
        let [Some(mean), Some(factor), Some(bias)] = [means, factors, biases].map(|list| list.get(channel)) else {
            return Err(Stopped::Misfit);
        };
        scale_run::<S>(data, *mean, *factor, *bias, out);
        Ok(())
    })
}

for_each_level! {
    fn scale_run<S: Stored<f64>>(data: &[S], mean: f64, factor: f64, bias: f64, out: &mut [S]) -> () = scale_run_body::<S>;
}

#[inline(always)]
fn scale_run_body<S: Stored<f64>>(data: &[S], mean: f64, factor: f64, bias: f64, out: &mut [S]) {
    let ((blocks, rest), (outs, rest_out)) = (data.as_chunks::<HELD>(), out.as_chunks_mut::<HELD>());
    for (from, to) in blocks.iter().zip(outs) {
        scale_some::<S, HELD>(from, [&[mean; HELD], &[factor; HELD], &[bias; HELD]], to);
    }
    let ((blocks, rest), (outs, rest_out)) = (rest.as_chunks::<FEW>(), rest_out.as_chunks_mut::<FEW>());
    let numbers = [&[mean; FEW], &[factor; FEW], &[bias; FEW]];
    for (from, to) in blocks.iter().zip(outs) {
        scale_some::<S, FEW>(from, numbers, to);
    }
    scale_some::<S, FEW>(rest, numbers, rest_out);
}

for_each_level! {
    /// Each element by the numbers at its place.
    fn scale_each<S: Stored<f64>>(data: &[S], numbers: [&[f64]; 3], out: &mut [S]) -> () = scale_each_body::<S>;
}

#[inline(always)]
fn scale_each_body<S: Stored<f64>>(data: &[S], numbers: [&[f64]; 3], out: &mut [S]) {
    let ((blocks, rest), (outs, rest_out)) = (data.as_chunks::<FEW>(), out.as_chunks_mut::<FEW>());
    let [(means, mean), (factors, factor), (biases, bias)] = numbers.map(|list| list.as_chunks::<FEW>());
    for ((from, to), ((means, factors), biases)) in blocks.iter().zip(outs).zip(means.iter().zip(factors).zip(biases)) {
        scale_some::<S, FEW>(from, [means, factors, biases], to);
    }
    let mut last = [[0f64; FEW]; 3];
    for (to, list) in last.iter_mut().zip([mean, factor, bias]) {
        to.iter_mut().zip(list).for_each(|(to, number)| *to = *number);
    }
    scale_some::<S, FEW>(rest, last.each_ref(), rest_out);
}

/// Of at most `N` elements.
#[inline(always)]
fn scale_some<S: Stored<f64>, const N: usize>(from: &[S], [means, factors, biases]: [&[f64; N]; 3], to: &mut [S]) {
    let mut numbers = [0f64; N];
    S::load(from, &mut numbers);
    for (number, ((mean, factor), bias)) in numbers.iter_mut().zip(means.iter().zip(factors).zip(biases)) {
        *number = (*number - mean) * factor + bias;
    }
    S::store(&numbers, to);
}

/// As [`scale`], of images in [blocks](crate::gemm::blocks) of channels: there are numbers for all channels of a block. Without
/// `data`, the images are in `out`. Of those of a `half`, what is computed is rounded once, to these.
pub fn scale_blocks(
    data: Option<&[f32]>,
    channels: Channels<'_>,
    half: Option<Half>,
    out: &mut [f32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let Channels { means, factors, biases, run } = channels;
    let unit = size_of::<[f32; CHANNELS]>();
    let (data, out) = (data.map(|data| data.as_chunks().0), bytemuck::cast_slice_mut(out));
    let [means, factors, biases] = [means, factors, biases].map(|list| list.as_chunks().0);
    parallel::pieces(out, unit, unit.saturating_mul(run), 1, resources, |number, before, out| {
        let block = number % means.len().max(1);
        let numbers = [means.get(block), factors.get(block), biases.get(block)];
        let [Some(mean), Some(factor), Some(bias)] = numbers else { return Err(Stopped::Misfit) };
        let start = number * run + before / unit;
        let out = bytemuck::cast_slice_mut::<u8, f32>(out).as_chunks_mut().0;
        let data = match data {
            Some(data) => Some(data.get(start..start + out.len()).ok_or(Stopped::Misfit)?),
            None => None,
        };
        scale_places(data, [mean, factor, bias], half, out);
        half.iter().for_each(|half| half.round(out.as_flattened_mut()));
        Ok(())
    })
}

type Place = [f32; CHANNELS];

for_each_level! {
    fn scale_places<>(
        data: Option<&[Place]>, numbers: [&[f64; CHANNELS]; 3], half: Option<Half>, out: &mut [Place]
    ) -> () = scale_places_body;
}

#[inline(always)]
fn scale_places_body(
    data: Option<&[Place]>,
    [mean, factor, bias]: [&[f64; CHANNELS]; 3],
    half: Option<Half>,
    out: &mut [Place],
) {
    // Copies stay in registers.
    let numbers = [*mean, *factor, *bias];
    match data {
        Some(data) => {
            for (to, from) in out.iter_mut().zip(data) {
                *to = scale_place(from, &numbers, half);
            }
        }
        None => {
            for place in out {
                *place = scale_place(place, &numbers, half);
            }
        }
    }
}

#[inline(always)]
fn scale_place(from: &Place, [mean, factor, bias]: &[[f64; CHANNELS]; 3], half: Option<Half>) -> Place {
    // Otherwise vectors would be made of the same channel of several places.
    let mut numbers = std::hint::black_box(from).map(f64::from);
    for (x, ((mean, factor), bias)) in numbers.iter_mut().zip(mean.iter().zip(factor).zip(bias)) {
        *x = (*x - mean) * factor + bias;
    }
    match half {
        None => numbers.map(|x| x as f32),
        Some(Half::F16) => numbers.map(|x| Half::F16.odd(x)),
        Some(Half::Bf16) => numbers.map(|x| Half::Bf16.odd(x)),
    }
}

/// `factors[c] = factors[c] / sqrt(variances[c] + epsilon)`
pub fn divide_by_deviation(
    factors: &mut [f64],
    variances: &[f64],
    epsilon: f64,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    for (factors, variances) in factors.chunks_mut(BLOCK).zip(variances.chunks(BLOCK)) {
        lookout.after(2 * size_of_val(variances))?;
        for (factor, variance) in factors.iter_mut().zip(variances) {
            *factor /= (variance + epsilon).sqrt();
        }
    }
    Ok(())
}

/// `running[c] = running[c] * momentum + current[c] * (1 - momentum)`
pub fn mix(running: &mut [f64], current: &[f64], momentum: f64, lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
    for (running, current) in running.chunks_mut(BLOCK).zip(current.chunks(BLOCK)) {
        lookout.after(2 * size_of_val(current))?;
        for (running, current) in running.iter_mut().zip(current) {
            *running = *running * momentum + current * (1.0 - momentum);
        }
    }
    Ok(())
}

/// The elements as numbers.
pub fn load<S: Stored<f64>>(from: &[S], to: &mut [f64], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
    from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)).try_for_each(|(from, to)| {
        S::load(from, to);
        lookout.after(size_of_val(to))
    })
}

/// The nearest elements of numbers.
pub fn store<S: Stored<f64>>(from: &[f64], to: &mut [S], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
    from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)).try_for_each(|(from, to)| {
        S::store(from, to);
        lookout.after(size_of_val(from))
    })
}

/// Local response normalization: `x / (bias + alpha * sum of squares)^beta`, with the squares of the channels near `x`.
#[derive(Debug, Clone, Copy)]
pub struct Response {
    /// The sum is over this number of channels before, and after.
    pub before: usize,
    pub after: usize,
    pub alpha: f64,
    pub beta: f64,
    pub bias: f64,
}

/// Fills `out` with the elements of `data`, which has planes of `channels` channels of `run` elements, each divided by the
/// response of the channels near its own.
pub fn respond<S: Stored<f64>>(
    how: Response,
    data: &[S],
    [channels, run]: [usize; 2],
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let size = size_of::<S>();
    let most = how.before.saturating_add(how.after).saturating_add(1).min(channels);
    let cost = most.saturating_add(8);
    parallel::pieces(
        bytemuck::cast_slice_mut(out),
        size,
        size.saturating_mul(run),
        cost,
        resources,
        |number, before, out| {
            let (plane, channel) = (number / channels * channels, number % channels);
            let near =
                channel.saturating_sub(how.before)..channels.min(channel.saturating_add(how.after).saturating_add(1));
            let mut lookout = resources.lookout();
            for (k, out) in bytemuck::cast_slice_mut::<u8, S>(out).chunks_mut(BLOCK).enumerate() {
                let (start, mut sums) = (before / size + k * BLOCK, [0f64; BLOCK]);
                let row = |channel: usize| {
                    let first = (plane + channel) * run + start;
                    data.get(first..first + out.len()).ok_or(Stopped::Misfit)
                };
                for channel in near.clone() {
                    lookout.after(size_of_val(out))?;
                    add_squares::<S>(row(channel)?, &mut sums);
                }
                divide::<S>(how, row(channel)?, &sums, out);
            }
            Ok(())
        },
    )
}

for_each_level! {
    fn add_squares<S: Stored<f64>>(row: &[S], sums: &mut [f64; BLOCK]) -> () = add_squares_body::<S>;
}

#[inline(always)]
fn add_squares_body<S: Stored<f64>>(row: &[S], sums: &mut [f64; BLOCK]) {
    let mut numbers = [0f64; BLOCK];
    S::load(row, &mut numbers);
    for (sum, number) in sums.iter_mut().zip(numbers).take(row.len()) {
        *sum += number * number;
    }
}

for_each_level! {
    fn divide<S: Stored<f64>>(how: Response, row: &[S], sums: &[f64; BLOCK], out: &mut [S]) -> () = divide_body::<S>;
}

#[inline(always)]
fn divide_body<S: Stored<f64>>(how: Response, row: &[S], sums: &[f64; BLOCK], out: &mut [S]) {
    let mut numbers = [0f64; BLOCK];
    S::load(row, &mut numbers);
    for (number, sum) in numbers.iter_mut().zip(sums).take(row.len()) {
        *number /= pow(how.bias + how.alpha * sum, how.beta);
    }
    S::store(&numbers, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::blocks::{from_blocks, len_of, to_blocks};
    use crate::testing::{ASKED, assert_asks, at_each_level, on_threads};
    use crate::{Stop, Stopped};
    use half::bf16;

    const ALONE: Resources<'_> = Resources { threads: 1, stop: None };

    #[test]
    fn each_channel_by_its_own_numbers() {
        for run in [1, 7, 30, 300] {
            let data: Vec<f32> = (0..2 * 3 * run).map(|k| k as f32 / 3.0).collect();
            let (means, factors, biases) = ([1.0, 0.1, -2.0], [2.0, 1.0 / 3.0, 0.7], [0.0, 1.0, 1e-3]);
            let channels = Channels { means: &means, factors: &factors, biases: &biases, run };
            let wide =
                |x: f32, k: usize| (f64::from(x) - means[k / run % 3]) * factors[k / run % 3] + biases[k / run % 3];
            let want: Vec<f32> = data.iter().enumerate().map(|(k, x)| wide(*x, k) as f32).collect();
            let check = |resources: Resources<'_>| {
                let mut out = vec![0f32; data.len()];
                scale(&data, channels, &mut out, resources).unwrap();
                assert_eq!(out, want);
            };
            at_each_level(|| check(ALONE));
            on_threads(3, || check(Resources { threads: 3, stop: Some(&Stop::default()) }));
            let halves: Vec<bf16> = data.iter().map(|x| bf16::from_f32(*x)).collect();
            let mut out = vec![bf16::ZERO; data.len()];
            scale(&halves, channels, &mut out, ALONE).unwrap();
            let want = halves.iter().enumerate().map(|(k, x)| bf16::from_f64(wide(x.to_f32(), k)));
            assert!(out.iter().copied().eq(want));
            // Three channels of a block, and what is behind them.
            let [means, factors, biases] = [means, factors, biases].map(|list| {
                let mut all = [0.0; CHANNELS];
                all[..3].copy_from_slice(&list);
                all
            });
            let channels = Channels { means: &means, factors: &factors, biases: &biases, run };
            let mut blocks = vec![f32::NAN; 2 * len_of(3, run)];
            to_blocks(&data, 3, run, &mut blocks, ALONE).unwrap();
            let check = |resources: Resources<'_>| {
                let (mut scaled, mut out) = (vec![f32::NAN; blocks.len()], vec![0f32; data.len()]);
                for half in [None, Some(Half::Bf16)] {
                    scale_blocks(Some(&blocks), channels, half, &mut scaled, resources).unwrap();
                    from_blocks(&scaled, 3, run, &mut out, ALONE).unwrap();
                    let want = data.iter().enumerate().map(|(k, x)| match half {
                        None => wide(*x, k) as f32,
                        Some(_) => bf16::from_f64(wide(*x, k)).to_f32(),
                    });
                    assert!(out.iter().copied().eq(want), "{half:?}");
                    // Where they are.
                    let mut own = blocks.clone();
                    scale_blocks(None, channels, half, &mut own, resources).unwrap();
                    let [own, scaled] = [&own, &scaled].map(|all| bytemuck::cast_slice::<f32, u32>(all));
                    assert!(own == scaled, "{half:?}");
                }
            };
            at_each_level(|| check(ALONE));
            on_threads(3, || check(Resources { threads: 3, stop: None }));
        }
        let none = Channels { means: &[], factors: &[], biases: &[], run: 1 };
        assert_eq!(scale(&[1f32], none, &mut [0.0], ALONE), Err(Stopped::Misfit));
        assert_eq!(scale::<f32>(&[], none, &mut [], ALONE), Ok(()));
        assert_eq!(scale_blocks(Some(&[1.0; CHANNELS]), none, None, &mut [0.0; CHANNELS], ALONE), Err(Stopped::Misfit));
    }

    #[test]
    fn channels_near_others() {
        for (channels, run, before, after) in [(1, 1, 0, 0), (5, 3, 1, 2), (4, 300, 9, usize::MAX), (3, 2, 0, 1)] {
            let how = Response { before, after, alpha: 0.1, beta: 0.75, bias: 1.5 };
            let data: Vec<f32> = (0..2 * channels * run).map(|k| (k % 17) as f32 - 5.0).collect();
            let response = |k: usize| {
                let (plane, channel, at) = (k / run / channels, k / run % channels, k % run);
                let near = (0..channels).filter(|c| c + before >= channel && *c <= channel.saturating_add(after));
                let squares = near.map(|c| f64::from(data[(plane * channels + c) * run + at]).powi(2)).sum::<f64>();
                (f64::from(data[k]) / (1.5 + 0.1 * squares).powf(0.75)) as f32
            };
            let want: Vec<f32> = (0..data.len()).map(response).collect();
            let check = |resources: Resources<'_>| {
                let mut out = vec![0f32; data.len()];
                respond(how, &data, [channels, run], &mut out, resources).unwrap();
                assert!(out.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-7 * b.abs()), "{out:?} {want:?}");
            };
            at_each_level(|| check(ALONE));
            on_threads(3, || check(Resources { threads: 3, stop: Some(&Stop::default()) }));
        }
    }

    #[test]
    fn they_ask_whether_to_stop() {
        let (stop, data, mut out) = (Stop::default(), vec![1u8; ASKED], vec![0u8; ASKED]);
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let numbers: &[f32] = bytemuck::cast_slice(&data);
        let channels = Channels { means: &[0.0], factors: &[1.0], biases: &[0.0], run: 1 << 20 };
        assert_asks("scale", &mut out, |out| scale(numbers, channels, bytemuck::cast_slice_mut(out), resources));
        let how = Response { before: 0, after: 0, alpha: 0.0, beta: 1.0, bias: 1.0 };
        assert_asks("respond", &mut out, |out| {
            respond(how, numbers, [2, 1 << 20], bytemuck::cast_slice_mut(out), resources)
        });
    }
}
