//! Kernels on lanes against a plain loop: at each processor level, with one thread and more, of lanes that are
//! contiguous, side by side, and in runs.

use super::pick::{Pick, Scratch, pick};
use super::sums::Partial;
use super::*;
use crate::exact::{self, Exact, Rounded, ulps};
use crate::functions::{exp, log};
use crate::number::Float;
use crate::testing::at_each_level;
use crate::testing::{on_threads, sized};
use crate::{Resources, Stop, Stopped};
use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use proptest::prelude::*;

const ALONE: Resources<'_> = Resources { threads: 1, stop: None };

/// The elements of each lane, in order.
fn lanes_of<T: Copy>(data: &[T], shape: &[usize], along: &[bool]) -> Vec<Vec<T>> {
    let kept = |axis: usize| if along[axis] { 1 } else { shape[axis] };
    let mut lanes = vec![Vec::new(); (0..shape.len()).map(kept).product()];
    for (k, &element) in data.iter().enumerate() {
        let position = crate::position_of(k, shape);
        lanes[position.iter().enumerate().fold(0, |lane, (axis, at)| lane * kept(axis) + at % kept(axis))]
            .push(element);
    }
    lanes
}

/// The definition: 32 partial values, joined as a tree.
fn plain<R: Reduction<T>, T: Number>(reduction: &R, lane: &[T]) -> T::Precise {
    let fold = reduction.fold();
    let mut partials = vec![reduce::PartialOf::<R, T>::START; 32];
    for (k, &element) in lane.iter().enumerate() {
        partials[k % 32] = fold.add(partials[k % 32], fold.counts(element));
    }
    while partials.len() > 1 {
        let high = partials.split_off(partials.len() / 2);
        partials.iter_mut().zip(high).for_each(|(low, high)| *low = low.join(high));
    }
    reduction.end(partials[0], lane.len())
}

/// The index of the first of the greatest elements.
fn first_greatest(lane: &[f32]) -> i64 {
    (1..lane.len()).fold(0, |best, k| if lane[k] > lane[best] { k } else { best }) as i64
}

fn bits<T: bytemuck::Pod>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Checks all kernels on the lanes of a tensor.
fn check(shape: &[usize], along: &[bool]) {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|k| ((k * 7919) % 1009) as f32 * 0.37 - 100.0).collect();
    let lanes = Lanes::new(shape, |axis| along[axis]);
    let want = lanes_of(&data, shape, along);
    assert_eq!((lanes.count, lanes.len), (want.len(), want[0].len()));
    for threads in [1, 3] {
        let resources = Resources { threads, stop: None };
        let work = || {
            check_reduction(&Sum, &data, &lanes, &want, resources);
            check_reduction(&<f32 as Ordered<f32>>::extreme::<false>(), &data, &lanes, &want, resources);
            check_reduction(&L2, &data, &lanes, &want, resources);
            check_reduction(&Prod, &data, &lanes, &want, resources);
            // What is left of these depends on the order.
            let far = |(k, x): (usize, &f32)| [2f32.powi(80), *x, -2f32.powi(80)].get(k * k % 7).map_or(*x, |far| *far);
            let far: Vec<f32> = data.iter().enumerate().map(far).collect();
            check_reduction(&Sum, &far, &lanes, &lanes_of(&far, shape, along), resources);
            let ints: Vec<i32> = data.iter().map(|x| (*x as i32).wrapping_mul(30_000_000)).collect();
            check_reduction(&Mean, &ints, &lanes, &lanes_of(&ints, shape, along), resources);
            let halves: Vec<f16> = data.iter().map(|x| f16::from_f32(*x)).collect();
            let floats: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
            let mut out = vec![f16::ZERO; lanes.count];
            reduce::<_, f16, f32>(&Sum, &halves, &lanes, &mut out, resources).unwrap();
            let sums = lanes_of(&floats, shape, along)
                .iter()
                .map(|lane| f16::from_f32(crate::half::odd(plain(&Sum, lane))))
                .collect::<Vec<_>>();
            assert_eq!(bits(&out), bits(&sums), "{shape:?} {along:?}");

            check_picks(&data, shape, along, &lanes, resources);
            check_picks(&halves, shape, along, &lanes, resources);
            let mut scratch = vec![0f32; lanes.scratch_to_measure::<f32, f32>(threads)];
            let mut out = vec![0i64; lanes.count];
            let index = IndexOf { last: false, extreme: <f32 as Ordered<f32>>::extreme::<false>() };
            measure(&index, &data, &lanes, &mut scratch, &mut out, resources).unwrap();
            assert_eq!(out, want.iter().map(|lane| first_greatest(lane)).collect::<Vec<_>>(), "{shape:?} {along:?}");

            check_map(&Softmax, &data, &lanes, shape, along, resources);
            check_map(&LogSoftmax, &data, &lanes, shape, along, resources);
            for (exclusive, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
                let cumulate = Cumulate { exclusive, reverse, reduction: Sum };
                check_map(&cumulate, &data, &lanes, shape, along, resources);
            }
            let mut scratch = vec![0f32; lanes.scratch_to_map::<f16, f32>(threads)];
            let mut out = vec![f16::ZERO; count];
            map(&Hardmax, &halves, &lanes, &mut scratch, &mut out, resources).unwrap();
            assert_eq!(out.iter().filter(|x| **x == f16::ONE).count(), lanes.count);
        };
        if threads == 1 { at_each_level(work) } else { on_threads(3, work) }
    }
}

/// The elements that are not less than `least`, the last ones first, and their indices.
struct LastOf {
    least: f32,
}

impl Pick<f32> for LastOf {
    type Value = f32;
    type Beside = i64;

    fn of(&self, lane: &[f32], values: &mut [f32], places: &mut [i64], _: Option<&Stop>) -> Result<(), Stopped> {
        last_of(self.least, lane, values, places);
        Ok(())
    }
}

crate::cpu::for_each_level! {
    fn last_of<>(least: f32, lane: &[f32], values: &mut [f32], places: &mut [i64]) -> () = last_of_body;
}

#[inline(always)]
fn last_of_body(least: f32, lane: &[f32], values: &mut [f32], places: &mut [i64]) {
    let mut k = 0;
    for (at, x) in lane.iter().enumerate().rev() {
        if *x >= least && k < values.len() {
            (values[k], places[k]) = (x.mul_add(3.0, 0.1), at as i64);
            k += 1;
        }
    }
    values[k..].fill(0.0);
    places[k..].fill(-1);
}

/// The mean of a lane and the number of its elements, without a second list.
struct MeanAndLen;

impl Pick<f32> for MeanAndLen {
    type Value = f64;
    type Beside = ();

    fn of(&self, lane: &[f32], values: &mut [f64], none: &mut [()], stop: Option<&Stop>) -> Result<(), Stopped> {
        assert!(none.is_empty());
        let mut mean = [0.0];
        reduce::values::<Mean, f32>(&Mean, lane.len(), lane, &mut mean, stop)?;
        values.copy_from_slice(&[mean[0], lane.len() as f64]);
        Ok(())
    }
}

/// Where lanes have their results: `count` along the outermost of their axes.
fn results_of<T: Copy>(data: &[T], shape: &[usize], along: &[bool], count: usize) -> Vec<Vec<T>> {
    let mut shape = shape.to_vec();
    let outermost = along.iter().position(|along| *along);
    shape.iter_mut().zip(along).for_each(|(size, along)| *size = if *along { 1 } else { *size });
    match outermost {
        Some(axis) => shape[axis] = count,
        // Lanes of one element: the last axis of all.
        None => shape.push(count),
    }
    let mut along = along.to_vec();
    along.resize(shape.len(), true);
    lanes_of(data, &shape, &along)
}

fn check_picks<S: Stored<f32> + Copy + PartialEq + std::fmt::Debug>(
    data: &[S],
    shape: &[usize],
    along: &[bool],
    lanes: &Lanes,
    resources: Resources<'_>,
) {
    let mut numbers = vec![0f32; data.len()];
    S::load(data, &mut numbers);
    for count in [1, 2, 5] {
        let (collected, results) = lanes.scratch_to_pick::<S, f32>(count, resources.threads);
        let (mut own, mut values, mut places) = (vec![0f32; collected], vec![0f32; results], vec![0i64; results]);
        let mut outs = (vec![S::zeroed(); count * lanes.count], vec![0i64; count * lanes.count]);
        let scratch = Scratch { lanes: &mut own, values: &mut values, beside: &mut places };
        let last_of = LastOf { least: -50.0 };
        pick(&last_of, data, lanes, count, scratch, (&mut outs.0, &mut outs.1), resources).unwrap();
        let got = results_of(&outs.0, shape, along, count).into_iter().zip(results_of(&outs.1, shape, along, count));
        for (lane, (got, got_places)) in lanes_of(&numbers, shape, along).iter().zip(got) {
            let (mut want, mut places, mut stored) = (vec![0f32; count], vec![0; count], vec![S::zeroed(); count]);
            last_of_body(last_of.least, lane, &mut want, &mut places);
            S::store(&want, &mut stored);
            assert_eq!((got, got_places), (stored, places), "{count} of {shape:?} {along:?}");
        }
    }
    let (collected, results) = lanes.scratch_to_pick::<S, f32>(2, resources.threads);
    let (mut own, mut values, mut out) = (vec![0f32; collected], vec![0f64; results], vec![0f32; 2 * lanes.count]);
    let scratch = Scratch { lanes: &mut own, values: &mut values, beside: &mut [] };
    pick(&MeanAndLen, data, lanes, 2, scratch, (&mut out, &mut [] as &mut [()]), resources).unwrap();
    for (lane, got) in lanes_of(&numbers, shape, along).iter().zip(results_of(&out, shape, along, 2)) {
        assert_eq!(got, [plain(&Mean, lane) as f32, lane.len() as f32], "{shape:?} {along:?}");
    }
}

fn check_reduction<R: Reduction<T> + Sync, T: Number>(
    reduction: &R,
    data: &[T],
    lanes: &Lanes,
    want: &[Vec<T>],
    resources: Resources<'_>,
) {
    let mut out = vec![T::ZERO; lanes.count];
    reduce(reduction, data, lanes, &mut out, resources).unwrap();
    let want: Vec<T> = want.iter().map(|lane| T::nearest(plain(reduction, lane))).collect();
    assert_eq!(bits(&out), bits(&want), "{lanes:?}");
}

fn check_map(
    function: &(impl Map<f32> + MapSome<f32>),
    data: &[f32],
    lanes: &Lanes,
    shape: &[usize],
    along: &[bool],
    resources: Resources<'_>,
) {
    let mut scratch = vec![0f32; lanes.scratch_to_map::<f32, f32>(resources.threads)];
    let mut out = vec![0.0; data.len()];
    map(function, data, lanes, &mut scratch, &mut out, resources).unwrap();
    for (lane, got) in lanes_of(data, shape, along).iter().zip(lanes_of(&out, shape, along)) {
        let mut want = vec![0.0; lane.len()];
        function.map(lane.len(), lane, &mut want, None).unwrap();
        assert_eq!(bits(&got), bits(&want), "{shape:?} {along:?}");
    }
}

/// Work is never divided into parts that are narrower than vectors, but where threads would have none.
#[test]
fn lanes_side_by_side_stay_together() {
    let unit = |shape: &[usize], along: usize, threads| Lanes::new(shape, |axis| axis == along).unit(threads);
    assert_eq!([1, 2, 3].map(|threads| unit(&[12_544, 32], 0, threads)), [32, 16, 16]);
    assert_eq!([1, 2, 64].map(|threads| unit(&[9, 1000], 0, threads)), [64, 64, 16]);
    assert_eq!([unit(&[2, 12_544, 16], 1, 2), unit(&[7, 3], 0, 1), unit(&[7, 3], 1, 1)], [16, 3, 1]);
}

#[test]
fn lanes_of_all_kinds() {
    let cases: &[(&[usize], &[bool])] = &[
        (&[], &[]),
        (&[5], &[true]),
        (&[5], &[false]),
        (&[3, 70], &[false, true]),
        (&[70, 3], &[true, false]),
        (&[33, 20], &[true, false]),
        (&[2, 40, 3], &[false, true, false]),
        (&[3, 4, 40], &[true, false, true]),
        (&[3, 4, 5, 6], &[true, false, true, false]),
        (&[3, 4, 5, 6], &[false, true, false, true]),
        (&[2, 1, 17, 1], &[true, true, false, true]),
        (&[1, 66, 2], &[false, true, true]),
    ];
    for (shape, along) in cases.iter().take(sized(12, 6)) {
        check(shape, along);
    }
}

/// Rows of a few whole vectors, which are near each other: images in blocks of channels.
#[test]
fn lanes_in_rows_that_are_near() {
    let cases: &[(&[usize], &[bool])] = &[
        (&[3, 50, 2, 16], &[true, false, true, false]),
        (&[2, 17, 17, 16], &[false, true, true, false]),
        (&[31, 16], &[true, false]),
        (&[521, 48], &[true, false]),
        (&[290, 64], &[true, false]),
        (&[2, 3, 100, 32], &[true, false, true, false]),
        (&[3, 49, 80], &[false, true, false]),
        (&[256, 16], &[true, false]),
    ];
    for (shape, along) in cases.iter().take(sized(8, 1)) {
        check(shape, along);
    }
}

/// Enough for several threads.
#[test]
#[cfg_attr(miri, ignore)]
fn lanes_for_several_threads() {
    check(&[40, 1030], &[false, true]);
    // What one thread has isn't a multiple of the lanes that are taken together.
    check(&[40, 1000], &[false, true]);
    check(&[30, 7, 201], &[false, true, false]);
    check(&[97, 420], &[true, false]);
    check(&[300, 270], &[true, false]);
    // Runs that are added where they stand, and what is left of them.
    check(&[3, 5, 700], &[true, false, true]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sized(60, 2)))]
    #[test]
    fn lanes_of_random_shapes(dims in prop::collection::vec((1usize..9, any::<bool>()), 0..5), long in 1usize..80, at in 0usize..5) {
        let (mut shape, along): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        if let Some(dim) = shape.get_mut(at) {
            *dim = long;
        }
        if shape.iter().product::<usize>() < 4000 {
            check(&shape, &along);
        }
    }
}

/// Each lane alone has the bits that it has among others, whatever its neighbours are.
#[test]
fn sums_of_any_length() {
    at_each_level(|| {
        for len in 0..sized(140, 40) {
            let data: Vec<f32> = (0..len).map(|k| 1.0 / (k as f32 + 0.3)).collect();
            let mut out = [0.0];
            reduce::<_, f32, f32>(&Sum, &data, &Lanes::new(&[len], |_| true), &mut out, ALONE).unwrap();
            let want = if len == 0 { 0.0 } else { plain(&Sum, &data) as f32 };
            assert_eq!(out[0].to_bits(), want.to_bits(), "{len}");
        }
    });
}

#[test]
fn softmax_adds_up_to_one() {
    for len in [1, 31, 32, 33, 1000] {
        let data: Vec<f64> = (0..len).map(|k| (k as f64 * 1.7) % 11.0).collect();
        let mut out = vec![0.0; len];
        map::<_, f64, f64>(&Softmax, &data, &Lanes::new(&[len], |_| true), &mut [], &mut out, ALONE).unwrap();
        assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        let (most, least) = (data[0].exp() / data.iter().map(|x| x.exp()).sum::<f64>(), out[0]);
        assert!((most / least - 1.0).abs() < 1e-14, "{most} {least}");
        let mut logs = vec![0.0; len];
        map::<_, f64, f64>(&LogSoftmax, &data, &Lanes::new(&[len], |_| true), &mut [], &mut logs, ALONE).unwrap();
        assert!(logs.iter().zip(&out).all(|(log, y)| (log.exp() / y - 1.0).abs() < 1e-13));
    }
}

/// Of lanes of any length, what each step gives by itself.
#[test]
fn softmax_has_the_same_bits_everywhere() {
    let long: &[usize] = sized(&[255, 256, 1000, 4095, 4096, 4097, 5000], &[70]);
    for len in (1..sized(140, 3)).chain(long.iter().copied()) {
        // The greatest number differs; one lane has -inf alone, one NaN, one infinity, and two have numbers far from it.
        let count = if len < 20 { 41 } else { 6 };
        let mut data: Vec<f32> = (0..count * len).map(|k| ((k * 7919 + len) % 4001) as f32 * 0.0025 - 3.0).collect();
        data[..len].fill(f32::NEG_INFINITY);
        data[len + len / 2] = f32::NAN;
        data[3 * len - 1] = f32::INFINITY;
        data[3 * len + len / 3] = -100.0;
        data[5 * len - 1] = f32::NEG_INFINITY;
        data[(count - 1) * len] = 9.0;
        let (want, logarithms): (Vec<u32>, Vec<u32>) = data
            .chunks(len)
            .flat_map(|lane| {
                let peak = lane.iter().fold(f32::NEG_INFINITY, |peak, x| peak.max(*x));
                let exponentials: Vec<f32> = lane.iter().map(|x| exp(x - peak)).collect();
                let mut sums = [0.0; 32];
                for (k, x) in exponentials.iter().enumerate() {
                    sums[k % 32] += f64::from(*x);
                }
                for half in [16, 8, 4, 2, 1] {
                    for k in 0..half {
                        sums[k] += sums[k + half];
                    }
                }
                let (scale, log) = ((1.0 / sums[0]) as f32, log(sums[0]));
                exponentials.into_iter().zip(lane).map(move |(share, x)| {
                    let lowered = f64::from(*x) - f64::from(peak) - log;
                    (known(share * scale), known(lowered as f32))
                })
            })
            .unzip();
        at_each_level(|| {
            let mut out = vec![0.0; data.len()];
            let lanes = Lanes::new(&[count, len], |axis| axis == 1);
            map::<_, f32, f32>(&Softmax, &data, &lanes, &mut [], &mut out, ALONE).unwrap();
            assert_eq!(out.iter().copied().map(known).collect::<Vec<u32>>(), want, "{len}");
            map::<_, f32, f32>(&LogSoftmax, &data, &lanes, &mut [], &mut out, ALONE).unwrap();
            assert_eq!(out.into_iter().map(known).collect::<Vec<u32>>(), logarithms, "{len} logarithms");
            let mut lanes = data.clone();
            lanes.chunks_mut(3 * len).for_each(|lanes| Softmax::in_place(len, lanes, None).unwrap());
            assert_eq!(lanes.into_iter().map(known).collect::<Vec<u32>>(), want, "{len} in place");
        });
    }
}

/// Any NaN is the same.
fn known(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

#[test]
fn normalized_lanes_have_the_same_bits_everywhere() {
    let (count, len) = sized((300, 700), (2, 40));
    let data: Vec<f32> = (0..count * len).map(|k| ((k * 7919) % 1009) as f32 * 0.01).collect();
    let scale: Vec<f32> = (0..len).map(|k| k as f32 * 0.1).collect();
    let affine =
        Affine { scale: Spread { values: &scale, run: 1 }, bias: Some(Spread { values: &scale[..1], run: len }) };
    let how = Normalize { center: true, epsilon: 1e-5 };
    let mut seen: Option<Vec<u8>> = None;
    let mut run = |threads| {
        let mut out = vec![0u8; data.len() * 4];
        let finish = affine.finish::<f32, f32>();
        normalize::<f32, f32, f32>(how, &data, len, &finish, 4, &mut out, Resources { threads, stop: None }).unwrap();
        assert_eq!(seen.get_or_insert(out.clone()), &out);
    };
    at_each_level(|| run(1));
    on_threads(2, || run(2));
    let out: Vec<f32> = bytemuck::pod_collect_to_vec(&seen.unwrap());
    let lane = &data[len..2 * len];
    let mean = lane.iter().map(|x| f64::from(*x)).sum::<f64>() / len as f64;
    let variance = lane.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / len as f64;
    for k in 0..len {
        let want = (f64::from(lane[k]) - mean) / (variance + 1e-5).sqrt() * f64::from(scale[k]);
        assert!((f64::from(out[len + k]) - want).abs() < 1e-4, "{k}");
    }
}

#[test]
fn a_cancelled_kernel_stops() {
    let stop = Stop::default();
    stop.stop();
    let resources = Resources { threads: 1, stop: Some(&stop) };
    let shape = [2, 1 << 20, 1];
    let data = vec![0f32; 2 << 20];
    let lanes = Lanes::new(&shape, |axis| axis == 1);
    assert_eq!(reduce::<_, f32, f32>(&Sum, &data, &lanes, &mut [0.0; 2], resources), Err(Stopped::Cancelled));
    assert_eq!(
        map::<_, f32, f32>(&Softmax, &data, &lanes, &mut [], &mut vec![0f32; 2 << 20], resources),
        Err(Stopped::Cancelled)
    );
}

/// The distances of a reduction's results from the exact ones, in units of the last place of `S`: the greatest.
fn worst<R, S, T>(lane: &[S], reduction: &R, exact: &Exact) -> f64
where
    R: Reduction<T> + Sync,
    S: Stored<T> + Stored<T::Precise> + Rounded,
    T: Number,
{
    let mut out = [S::zeroed()];
    reduce::<R, S, T>(reduction, lane, &Lanes::new(&[lane.len()], |_| true), &mut out, ALONE).unwrap();
    let alone = ulps(out[0], exact);
    // Side by side with itself.
    let twice: Vec<S> = lane.iter().flat_map(|x| [*x, *x]).collect();
    let mut both = [S::zeroed(); 2];
    reduce::<R, S, T>(reduction, &twice, &Lanes::new(&[lane.len(), 2], |axis| axis == 0), &mut both, ALONE).unwrap();
    assert_eq!((bits(&both[..1]), bits(&both[1..])), (bits(&out), bits(&out)));
    alone
}

/// Each reduction of floats against exact arithmetic: within 0.501 ulp if nothing cancels.
fn check_accuracy<S: Stored<T> + Stored<f64> + Rounded, T: Floating>(name: &str, lane: &[S]) {
    let of = |x: S| -> f64 { x.into() };
    let count = Exact::of(lane.len() as f64);
    let (sum, squares) = (exact::sum(lane.iter().copied()), exact::sum_of_squares(lane.iter().copied()));
    let magnitudes = exact::sum(lane.iter().map(|x| of(*x).abs()));
    let product = exact::product(lane.iter().copied());
    for (reduction, worst) in [
        ("sum", worst::<_, S, T>(lane, &Sum, &sum)),
        ("mean", worst::<_, S, T>(lane, &Mean, &sum.over(&count))),
        ("sum of squares", worst::<_, S, T>(lane, &SumSquare, &squares)),
        ("L1", worst::<_, S, T>(lane, &L1, &magnitudes)),
        ("L2", worst::<_, S, T>(lane, &L2, &squares.sqrt())),
        ("product", worst::<_, S, T>(lane, &Prod, &product)),
    ] {
        assert!(worst <= 0.501, "{reduction} of {} {name}: {worst} ulp", lane.len());
    }
    // These logarithms of f64 may be off by a unit themselves, ours by two.
    let bound = if size_of::<S>() == size_of::<f64>() { 3.5 } else { 0.501 };
    // That of 0 is infinite.
    let logarithm =
        if sum.is_zero() { 0.0 } else { worst::<_, S, T>(lane, &LogSum, &Exact::of(sum.nearest::<f64>().ln())) };
    assert!(logarithm <= bound, "logarithm of the sum of {} {name}: {logarithm} ulp", lane.len());
    let most = lane.iter().map(|x| of(*x)).fold(f64::MIN, f64::max);
    let exponentials = exact::sum(lane.iter().map(|x| (of(*x) - most).exp())).nearest::<f64>();
    let (mut out, mut scratch) = ([S::zeroed()], vec![0f64; lane.len()]);
    let lanes = Lanes::new(&[lane.len()], |_| true);
    let log_sum = LogSumExp { wide: size_of::<S>() == 8 };
    measure::<_, S, S, f64>(&log_sum, lane, &lanes, &mut scratch, &mut out, ALONE).unwrap();
    let log_sum_exp = ulps(out[0], &Exact::of(exponentials.ln() + most));
    assert!(log_sum_exp <= bound, "logarithm of the sum of exponentials of {} {name}: {log_sum_exp} ulp", lane.len());
}

/// As numbers of 16 bits, also where rounding to float32 first would end in the middle between two of them.
#[test]
fn numbers_of_16_bits_in_float32_are_rounded_once() {
    let between =
        (0..300u16).map(|code| (f16::from_bits(code * 97).to_f64() + f16::from_bits(code * 97 + 1).to_f64()) / 2.0);
    let numbers: Vec<f64> =
        between.flat_map(|x| [x.next_down(), x, x.next_up(), -x]).chain([f64::NAN, 1e300]).collect();
    at_each_level(|| {
        let mut wide = vec![Halved::<false>::zeroed(); numbers.len()];
        let (mut narrow, mut back) = (vec![f16::ZERO; numbers.len()], vec![0f64; numbers.len()]);
        Halved::store(&numbers, &mut wide);
        f16::store(&numbers, &mut narrow);
        Halved::load(&wide, &mut back);
        for (x, (got, want)) in numbers.iter().zip(back.iter().zip(&narrow)) {
            assert!(*got == want.to_f64() || x.is_nan() && got.is_nan(), "{x:e}: {got}");
        }
    });
}

#[test]
fn reductions_are_rounded_once() {
    for len in sized(&[1, 2, 31, 33, 1000, 100_000][..], &[33]) {
        let number = |k: usize| ((k * 7919 % 1009) as f64 + 0.25) / 1009.0;
        type Make<'a> = &'a dyn Fn(usize) -> f64;
        let lanes: [(&str, Make<'_>); 4] = [
            ("far from 0", &|k| 10_000.0 + number(k)),
            ("tenths", &|_| 0.1),
            ("small and large", &|k| number(k) * [1e-4, 1.0, 100.0][k % 3]),
            ("large and small factors", &|k| if k % 2 == 0 { 3e4 } else { 1.0 / 3e4 }),
        ];
        for (name, make) in lanes {
            let lane: Vec<f64> = (0..*len).map(make).collect();
            check_accuracy::<f64, f64>(name, &lane);
            check_accuracy::<f32, f32>(name, &lane.iter().map(|x| *x as f32).collect::<Vec<_>>());
            check_accuracy::<f16, f32>(name, &lane.iter().map(|x| f16::from_f64(*x)).collect::<Vec<_>>());
            check_accuracy::<bf16, f32>(name, &lane.iter().map(|x| bf16::from_f64(*x)).collect::<Vec<_>>());
        }
    }
}

/// What cancels is there again, and factors of any size have a product.
#[test]
fn sums_that_cancel_and_products_that_overflow_on_the_way() {
    let sum = |lane: &[f64]| plain::<Sum, f64>(&Sum, lane);
    assert_eq!(sum(&[1e200, 1.0, -1e200]), 1.0);
    assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
    assert!(sum(&[f64::INFINITY, 1.0, f64::NEG_INFINITY]).is_nan());
    assert_eq!(plain::<Sum, f32>(&Sum, &[1e12, 1.0, -1e12]), 1.0);
    let product = |lane: &[f64]| plain::<Prod, f64>(&Prod, lane);
    let many: Vec<f64> = (0..4000).map(|k| if k % 2 == 0 { 1e300 } else { 1e-300 }).collect();
    assert!(ulps(product(&many), &exact::product(many.iter().copied())) <= 0.5);
    assert_eq!(product(&[1e300, 1e300, 1e-300, 1e-300, 0.0]), 0.0);
    assert_eq!(product(&[-1e300, 1e300]), f64::NEG_INFINITY);
    assert_eq!(product(&[-0.0, 5.0]).to_bits(), (-0.0f64).to_bits());
    assert!(product(&[0.0, f64::INFINITY]).is_nan() && product(&[f64::NAN, 0.0]).is_nan());
    assert_eq!(product(&[f64::NEG_INFINITY, 5e-324]), f64::NEG_INFINITY);
    for lane in [&[5e-324, 2f64.powi(1000)][..], &[1e-200, 1e-110], &[1.1; 8000], &[-1e-320, 3.0, 7e-10, 1e12]] {
        assert!(ulps(product(lane), &exact::product(lane.iter().copied())) <= 0.51, "{lane:?}");
    }
}

/// Sums up to each element, each rounded once.
#[test]
fn cumulative_sums_are_rounded_once() {
    let data: Vec<f32> = (0..sized(5000, 40)).map(|k| ((k * 7919 % 1009) as f32 - 300.0) * 0.37).collect();
    let cumulate = Cumulate { exclusive: false, reverse: false, reduction: Sum };
    let mut out = vec![0f32; data.len()];
    map::<_, f32, f32>(&cumulate, &data, &Lanes::new(&[data.len()], |_| true), &mut [], &mut out, ALONE).unwrap();
    for k in (0..data.len()).step_by(97) {
        assert!(ulps(out[k], &exact::sum(data[..=k].iter().copied())) <= 0.501, "{k}");
    }
}

/// Softmax of 16 bits: nearly always the nearest, and many equal elements have a weight.
#[test]
fn softmax_of_halves_is_rounded_once() {
    let mut out = vec![f16::ZERO; 65_536];
    let zeros = vec![f16::ZERO; 65_536];
    let lanes = Lanes::new(&[zeros.len()], |_| true);
    let mut scratch = vec![0f32; lanes.scratch_to_map::<f16, f32>(1)];
    map::<_, f16, f32>(&Softmax, &zeros, &lanes, &mut scratch, &mut out, ALONE).unwrap();
    assert!(out.iter().all(|y| *y == f16::from_f64(1.0 / 65_536.0)));
    let lane: Vec<bf16> = (0..256).map(|k| bf16::from_f32(((k * 37) % 101) as f32 * 0.07 - 3.0)).collect();
    let mut out = vec![bf16::ZERO; lane.len()];
    let lanes = Lanes::new(&[lane.len()], |_| true);
    map::<_, bf16, f32>(&Softmax, &lane, &lanes, &mut scratch, &mut out, ALONE).unwrap();
    let total: f64 = lane.iter().map(|x| x.to_f64().exp()).sum();
    let wrong = out.iter().zip(&lane).filter(|(y, x)| **y != bf16::from_f64(x.to_f64().exp() / total)).count();
    assert!(wrong <= 1, "{wrong}");
}

/// Far from 0 the mean needs more digits than its type has.
#[test]
fn lanes_far_from_0_are_normalized() {
    fn worst<T: Floating + Rounded>(offset: f64) -> f64 {
        let len = sized(100_000, 500);
        let lane: Vec<T> = (0..len).map(|k| Float::of(offset + (k * 7919 % 1009) as f64 / 1009.0)).collect();
        let count = Exact::of(len as f64);
        let mean = exact::sum(lane.iter().copied()).over(&count);
        let differences: Vec<Exact> = lane.iter().map(|x| Exact::of(*x).minus(&mean)).collect();
        let about: Vec<f64> = differences.iter().map(Exact::nearest).collect();
        let variance = exact::sum_of_squares(about).over(&count);
        let divisor = variance.plus(&Exact::of(1e-5f32)).sqrt();
        let how = Normalize { center: true, epsilon: 1e-5 };
        let mut out = vec![0u8; len * size_of::<T>()];
        let finish = |_: usize, from: &[u8], out: &mut [u8]| out.copy_from_slice(from);
        normalize::<T, T, T>(how, &lane, len, &finish, size_of::<T>(), &mut out, ALONE).unwrap();
        let out: &[T] = bytemuck::cast_slice(&out);
        let distances = out.iter().zip(&differences).step_by(101);
        distances.map(|(y, difference)| ulps(*y, &difference.over(&divisor))).fold(0.0, f64::max)
    }
    for offset in [0.0, 10_000.0] {
        let (single, double) = (worst::<f32>(offset), worst::<f64>(offset));
        assert!(single <= 3.0 && double <= 4.0, "{offset}: {single} {double} ulp");
    }
}

/// Few different numbers, so that many are equal; zeros of both signs, and NaN in one lane of five.
fn ties(lane: usize, len: usize) -> Vec<f32> {
    let number = |k: usize| match (k * 7919 + lane * 104_729) % 1009 {
        0..400 => 0.0,
        400..800 => -0.0,
        at if lane % 5 == 4 && at > 1000 => f32::NAN,
        at => -((at % 3) as f32),
    };
    (0..len).map(number).collect()
}

/// Blocks of a lane may be joined first: of equals the last counts, in the order of a tree of 32 partial values.
#[test]
fn extremes_are_those_of_partial_values() {
    for len in [1, 31, 32, 33, 127, 128, 129, 500, sized(9000, 600)] {
        let lanes: Vec<Vec<f32>> = (0..21).map(|lane| ties(lane, len)).collect();
        let join = |a: f32, b: f32| if a.is_nan() || a > b { a } else { b };
        let want = lanes.iter().map(|lane| {
            let mut partials = [f32::NEG_INFINITY; 32];
            lane.iter().enumerate().for_each(|(i, x)| partials[i % 32] = join(partials[i % 32], *x));
            for width in [16, 8, 4, 2, 1] {
                (0..width).for_each(|i| partials[i] = join(partials[i], partials[i + width]));
            }
            partials[0]
        });
        let (want, data) = (want.collect::<Vec<_>>(), lanes.concat());
        at_each_level(|| {
            let mut got = vec![7.0; 21];
            let extreme = <f32 as Ordered<f32>>::extreme::<false>();
            reduce(&extreme, &data, &Lanes::new(&[21, len], |axis| axis == 1), &mut got, ALONE).unwrap();
            for (got, want) in got.iter().zip(&want) {
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{len}: {got} {want}");
            }
        });
    }
}

/// The places of the greatest or least elements of some lanes.
fn places<const LEAST: bool>(lanes: &[Vec<f32>], last: bool) -> Vec<i64> {
    let beyond = |a: f32, b: f32| if LEAST { a < b } else { a > b };
    let place = |lane: &Vec<f32>| {
        let extreme = lane.iter().copied().reduce(|a, b| if a.is_nan() || beyond(a, b) { a } else { b }).unwrap();
        let is_it = |x: &f32| *x == extreme || x.is_nan() && extreme.is_nan();
        (if last { lane.iter().rposition(is_it) } else { lane.iter().position(is_it) }).unwrap() as i64
    };
    lanes.iter().map(place).collect()
}

/// Finds the places in lanes one behind the other and side by side, in two blocks.
fn check_places<const LEAST: bool>(lanes: &[Vec<f32>], len: usize, last: bool) {
    let (count, want) = (lanes.len(), places::<LEAST>(lanes, last));
    let behind = lanes.concat();
    let beside: Vec<f32> = (0..len).flat_map(|at| lanes.iter().map(move |lane| lane[at])).collect();
    let twice = [beside.as_slice(), &beside].concat();
    let index = IndexOf { last, extreme: <f32 as Ordered<f32>>::extreme::<LEAST>() };
    at_each_level(|| {
        let mut got = vec![-1i64; count];
        let all = Lanes::new(&[count, len], |axis| axis == 1);
        measure::<_, f32, i64, f32>(&index, &behind, &all, &mut [], &mut got, ALONE).unwrap();
        assert_eq!(got, want, "{count} of {len}");
        let mut got = vec![-1i64; 2 * count];
        let all = Lanes::new(&[2, len, count], |axis| axis == 1);
        measure::<_, f32, i64, f32>(&index, &twice, &all, &mut vec![0.0; 16 * len], &mut got, ALONE).unwrap();
        assert_eq!(got, [want.as_slice(), &want].concat(), "{count} of {len} side by side");
    });
}

/// What is computed of each lane along the middle axis, and of each on its own.
fn check_short(shape: [usize; 3], resources: Resources<'_>) {
    fn each<S: Pod>(data: &[S], [_, len, abreast]: [usize; 3], mut of: impl FnMut(&[S], &Lanes) -> Vec<S>) -> Vec<S> {
        let mut out = Vec::new();
        for block in data.chunks(len * abreast) {
            let lane = |at: usize| block.iter().skip(at).step_by(abreast).copied().collect::<Vec<S>>();
            let results: Vec<Vec<S>> = (0..abreast).map(|at| of(&lane(at), &Lanes::new(&[len], |_| true))).collect();
            out.extend((0..results[0].len()).flat_map(|k| results.iter().map(move |result| result[k])));
        }
        out
    }
    fn same<S: Pod + std::fmt::Debug>(got: &[S], want: &[S], what: &str) {
        assert!(bytemuck::cast_slice::<S, u8>(got) == bytemuck::cast_slice::<S, u8>(want), "{what}: {got:?} {want:?}");
    }
    let lanes = Lanes::new(&shape, |axis| axis == 1);
    let data: Vec<f32> = (0..shape.iter().product()).map(|k: usize| ((k * 7919) % 1013) as f32 / 7.0 - 50.0).collect();
    let halves: Vec<bf16> = data.iter().map(|x| bf16::from_f32(*x)).collect();
    macro_rules! reduced {
        ($data:expr, $of:ty: $($reduction:expr),*) => {$(
            let of = |data: &[$of], lanes: &Lanes, resources| {
                let mut out = vec![<$of>::zeroed(); lanes.count];
                reduce::<_, $of, f32>(&$reduction, data, lanes, &mut out, resources).unwrap();
                out
            };
            let want = each($data, shape, |lane, lanes| of(lane, lanes, ALONE));
            same(&of($data, &lanes, resources), &want, &format!("{shape:?} {:?}", $reduction));
        )*};
    }
    reduced!(&data, f32: Sum, Prod, LogSum, <f32 as Ordered<f32>>::extreme::<true>());
    reduced!(&halves, bf16: Sum, Prod, LogSum, <f32 as Ordered<f32>>::extreme::<true>());
    macro_rules! mapped {
        ($data:expr, $of:ty: $($map:expr),*) => {$(
            let of = |data: &[$of], lanes: &Lanes, resources| {
                let mut scratch = vec![0f32; lanes.scratch_to_map::<$of, f32>(3)];
                let mut out = vec![<$of>::zeroed(); data.len()];
                map::<_, $of, f32>(&$map, data, lanes, &mut scratch, &mut out, resources).unwrap();
                out
            };
            let want = each($data, shape, |lane, lanes| of(lane, lanes, ALONE));
            same(&of($data, &lanes, resources), &want, &format!("{shape:?} {:?}", $map));
        )*};
    }
    let cumulate = || Cumulate { reduction: Sum, exclusive: true, reverse: true };
    mapped!(&data, f32: Softmax, LpNormalize { first: false }, cumulate());
    mapped!(&halves, bf16: Softmax, LpNormalize { first: false }, cumulate());
    macro_rules! measured {
        ($($measure:expr, $wide:ty => $to:ty;)*) => {$(
            let of = |data: &[f32], lanes: &Lanes, resources| {
                let mut scratch = vec![<$wide as Number>::ZERO; lanes.scratch_to_measure::<f32, $wide>(3)];
                let mut out = vec![<$to>::zeroed(); lanes.count];
                measure::<_, f32, $to, $wide>(&$measure, data, lanes, &mut scratch, &mut out, resources).unwrap();
                out.iter().map(|x| *x as f32).collect::<Vec<f32>>()
            };
            let want = each(&data, shape, |lane, lanes| of(lane, lanes, ALONE));
            same(&of(&data, &lanes, resources), &want, &format!("{shape:?} {:?}", $measure));
        )*};
    }
    measured! {
        LogSumExp { wide: false }, f64 => f32;
        IndexOf { last: true, extreme: <f32 as Ordered<f32>>::extreme::<false>() }, f32 => i64;
    }
}

#[test]
fn short_lanes_have_the_bits_of_those_alone() {
    for &abreast in sized(&[1, 2, 3, 4, 5, 8, 31, 33][..], &[1, 2]) {
        for &len in sized(&[1, 2, 5, 20, 32, 33][..], &[5]) {
            let shape = [sized(150usize, 70).div_ceil(abreast), len, abreast];
            check_short(shape, ALONE);
            on_threads(3, || check_short(shape, Resources { threads: 3, stop: None }));
        }
    }
    at_each_level(|| check_short([sized(40, 22), 5, 3], ALONE));
}

#[test]
fn no_places() {
    let index = IndexOf { last: false, extreme: <f32 as Ordered<f32>>::extreme::<false>() };
    for shape in [[2, 3, 0], [0, 3, 2]] {
        let lanes = Lanes::new(&shape, |axis| axis == 1);
        let outcome = measure::<_, f32, i64, f32>(&index, &[], &lanes, &mut [], &mut [], ALONE);
        assert_eq!(outcome, Ok(()), "{shape:?}");
    }
}

#[test]
fn places_of_extremes() {
    let sizes = [
        (21, 1),
        (21, 32),
        (21, 33),
        (21, 64),
        (21, 65),
        (21, 127),
        (9, 128),
        (21, 129),
        (sized(100, 9), 300),
        (21, sized(9000, 600)),
    ];
    for (count, len) in sizes.into_iter().chain([(sized(1300, 40), 9)]) {
        let equal: Vec<Vec<f32>> = (0..count).map(|lane| ties(lane, len)).collect();
        let different =
            |lane: usize| (0..len).map(|k| ((k * 7919 + lane * 104_729) % 10_007) as f32 - 5000.5).collect();
        let different: Vec<Vec<f32>> = (0..count).map(different).collect();
        for last in [false, true] {
            for lanes in [&equal, &different] {
                check_places::<false>(lanes, len, last);
                check_places::<true>(lanes, len, last);
            }
        }
    }
}

/// Of bytes and long integers, the greatest and the least, where all are equal but one.
#[test]
fn places_among_integers() {
    fn check<S: Ordered<T> + std::fmt::Debug, T: Number>(base: S, other: S, is_greater: bool) {
        for (len, at) in [(40, 39), (200, 0), (200, 77), (200, 199), (sized(3000, 300), 290)] {
            let mut lane = vec![base; len];
            lane[at] = other;
            let lanes = Lanes::new(&[1, len], |axis| axis == 1);
            for last in [false, true] {
                let end = if last { len - 1 - usize::from(at == len - 1) } else { usize::from(at == 0) };
                let place = |greatest: bool| if greatest == is_greater { at } else { end } as i64;
                let (mut greatest, mut least) = ([-1i64], [-1i64]);
                let extreme = S::extreme::<false>();
                let mut scratch = vec![T::ZERO; len];
                measure(&IndexOf { last, extreme }, &lane, &lanes, &mut scratch, &mut greatest, ALONE).unwrap();
                let extreme = S::extreme::<true>();
                measure(&IndexOf { last, extreme }, &lane, &lanes, &mut scratch, &mut least, ALONE).unwrap();
                assert_eq!(
                    (greatest, least),
                    ([place(true)], [place(false)]),
                    "{base:?} and {other:?} at {at} of {len}"
                );
            }
        }
    }
    at_each_level(|| {
        check::<u8, u8>(3, 200, true);
        check::<i8, u8>(3, -100, false);
        check::<u64, i64>(3, u64::MAX, true);
        check::<i64, i64>(i64::MAX, i64::MIN, false);
    });
}
