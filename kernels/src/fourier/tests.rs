use super::*;
use crate::Stop;
use crate::testing::{at_each_level, looks, on_threads, sized};

const ALONE: Resources<'static> = Resources { threads: 1, stop: None };

/// Transforms lanes of `len` samples, one behind the other, each of `given` elements.
fn transform<T: Float>(kind: Kind, given: usize, lanes: &[T], half: bool, resources: Resources<'_>) -> Vec<T> {
    let [from, to] = [kind.sides == Sides::FromReal, kind.sides == Sides::ToReal].map(|real| if real { 1 } else { 2 });
    let (count, bins) = (lanes.len() / (given * from), if half { kind.len / 2 + 1 } else { kind.len });
    let places = |step, len| Places { inner: 1, steps: [step * len, 0], step, len };
    let mut out = vec![T::NAN; count * bins * to];
    let (mut kept, mut bench) = (vec![T::NAN; kind.kept()], vec![T::NAN; kind.bench(1)]);
    let ready = Transform::new(kind, &mut kept, &mut bench, ALONE).unwrap();
    let mut benches = vec![T::NAN; kind.bench(count) * resources.threads];
    let mut from = places(from, given);
    from.len = given.min(if kind.sides == Sides::ToReal { kind.len / 2 + 1 } else { kind.len });
    ready.run(count, [&from, &places(to, bins)], lanes, &[], &mut out, &mut benches, resources).unwrap();
    out
}

/// Numbers of no pattern, between -1 and 1.
fn noise(count: usize) -> Vec<f64> {
    let number =
        |k: usize| (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_mul(0xd129_42ec);
    (0..count).map(|k| number(k) as u32 as f64 / f64::from(1u32 << 31) - 1.0).collect()
}

/// The sums as they are defined, for each lane.
fn plain(len: usize, inverse: bool, lane: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let at: Vec<u64> = (0..len as u64).collect();
    let mut turns = vec![[0.0; 2]; len];
    functions::turns(&at, len as u64, &mut turns);
    let bin = |k: usize| {
        let sum = lane.iter().enumerate().take(len).fold([0.0; 2], |sum: [f64; 2], (j, x)| {
            let [re, im] = turns[j * k % len];
            let im = if inverse { -im } else { im };
            [sum[0] + x[0] * re - x[1] * im, sum[1] + x[0] * im + x[1] * re]
        });
        sum.map(|part| if inverse { part / len as f64 } else { part })
    };
    (0..len).map(bin).collect()
}

#[track_caller]
fn assert_near(got: &[f64], want: &[f64], error: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let most = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, |a: f64, b| a.larger(b));
    assert!(most <= error, "{what}: {most}");
}

fn lengths() -> Vec<usize> {
    let more: &[usize] = sized(&[143, 169, 210, 256, 343, 509, 1009, 1024, 1155], &[17]);
    (1..=sized(66, 10)).chain(more.iter().copied()).collect()
}

/// All sides and directions beside the plain sums, with fewer elements than needed too, in groups of lanes and alone.
#[test]
fn every_length() {
    for len in lengths() {
        for given in [len, len.div_ceil(2)] {
            let what = format!("{given} of {len}");
            let (count, error) = (if len < 100 { 13 } else { 1 }, 1e-15 * len as f64);
            let lanes = noise(2 * given * count);
            for inverse in [false, true] {
                let complex = transform(Kind { sides: Sides::Complex, inverse, len }, given, &lanes, false, ALONE);
                for (got, lane) in complex.chunks_exact(2 * len).zip(lanes.chunks_exact(2 * given)) {
                    let want = plain(len, inverse, bytemuck::cast_slice(lane));
                    assert_near(got, bytemuck::cast_slice(&want), error, &what);
                    let one = transform(Kind { sides: Sides::Complex, inverse, len }, given, lane, false, ALONE);
                    assert_eq!(got, one, "{what}");
                }
                let kind = Kind { sides: Sides::FromReal, inverse, len };
                let real = transform(kind, given, &lanes, false, ALONE);
                let half = transform(kind, given, &lanes, true, ALONE);
                let halves = half.chunks_exact(2 * (len / 2 + 1));
                for ((got, half), lane) in real.chunks_exact(2 * len).zip(halves).zip(lanes.chunks_exact(given)) {
                    let pairs: Vec<_> = lane.iter().map(|x| [*x, 0.0]).collect();
                    assert_near(got, bytemuck::cast_slice(&plain(len, inverse, &pairs)), error, &what);
                    assert_eq!(got[..half.len()], *half);
                    // What must be 0 is 0, and what must be equal is equal.
                    let bins: &[[f64; 2]] = bytemuck::cast_slice(got);
                    assert_eq!(bins[0][1].to_bits(), 0, "{what}");
                    for k in 1..len {
                        assert_eq!(bins[k], [bins[len - k][0], -bins[len - k][1]], "{what}");
                    }
                    assert_eq!(transform(kind, given, lane, false, ALONE), got, "{what}");
                }
            }
        }
    }
}

/// Half of the frequencies back to samples.
#[test]
fn back_to_real() {
    for len in lengths() {
        let lanes = noise(len * 11);
        let half = transform(Kind { sides: Sides::FromReal, inverse: false, len }, len, &lanes, true, ALONE);
        let kind = Kind { sides: Sides::ToReal, inverse: true, len };
        let bins = len / 2 + 1;
        assert_near(&transform(kind, bins, &half, false, ALONE), &lanes, 1e-15 * len as f64, &len.to_string());
        // Imaginary parts that no real lane has don't count.
        let mut other = half.clone();
        for lane in other.chunks_exact_mut(2 * bins) {
            lane[1] = 7.0;
            if len % 2 == 0 {
                lane[2 * bins - 1] = f64::NAN;
            }
        }
        assert_eq!(transform(kind, bins, &other, false, ALONE), transform(kind, bins, &half, false, ALONE));
        // What is left out is 0.
        let some: Vec<f64> = half.chunks_exact(2 * bins).flat_map(|lane| [lane[0], lane[1]]).collect();
        let got = transform(kind, 1, &some, false, ALONE);
        for (got, first) in got.chunks_exact(len).zip(some.chunks_exact(2)) {
            assert_near(got, &vec![first[0] / len as f64; len], 1e-15, &len.to_string());
        }
    }
}

/// The same bits at each level, on any number of threads, and whether or not somebody may stop it.
#[test]
fn levels_and_threads() {
    for (sides, len, count) in [(Sides::Complex, 260, 37), (Sides::FromReal, 400, 41), (Sides::Complex, 509, 9)] {
        let kind = Kind { sides, inverse: false, len };
        let lanes = noise(len * count * if sides == Sides::Complex { 2 } else { 1 });
        let want = transform(kind, len, &lanes, false, ALONE);
        at_each_level(|| assert_eq!(transform(kind, len, &lanes, false, ALONE), want, "{len}"));
        let stop = Stop::default();
        for stop in [None, Some(&stop)] {
            let shared = Resources { threads: 3, stop };
            assert_eq!(on_threads(3, || transform(kind, len, &lanes, false, shared)), want, "{len}");
        }
    }
}

/// Infinite samples make infinite or NaN frequencies, but what is 0 for any real lane is 0.
#[test]
fn infinite_samples() {
    for len in [4, 6, 9, 17] {
        let mut lane = noise(len);
        lane[1] = f64::INFINITY;
        let got = transform(Kind { sides: Sides::FromReal, inverse: false, len }, len, &lane, true, ALONE);
        assert_eq!(got[1], 0.0, "{len}");
        assert!(len % 2 == 1 || got[len + 1] == 0.0, "{len}");
        assert!(!got[0].is_finite(), "{len}");
    }
}

/// As in the standard's case `dft_inverse`, where 0 has the error of float32.
#[test]
fn single_precision() {
    for len in [10, 48, 143, 509] {
        let lanes = noise(2 * len * 9);
        let single: Vec<f32> = lanes.iter().map(|x| *x as f32).collect();
        let exact: Vec<f64> = single.iter().map(|x| f64::from(*x)).collect();
        for inverse in [false, true] {
            let kind = Kind { sides: Sides::Complex, inverse, len };
            let got: Vec<f64> = transform(kind, len, &single, false, ALONE).into_iter().map(f64::from).collect();
            let error = if inverse { 2e-6 / (len as f64).sqrt() } else { 2e-6 * (len as f64).sqrt() };
            assert_near(&got, &transform(kind, len, &exact, false, ALONE), error, &len.to_string());
        }
    }
}

/// Also within one long lane, and while turns are computed.
#[test]
fn stops() {
    let stop = Stop::default();
    let resources = Resources { threads: 1, stop: Some(&stop) };
    for (sides, len) in [(Sides::Complex, 1 << 15), (Sides::FromReal, 1 << 15), (Sides::Complex, 10_007)] {
        let kind = Kind { sides, inverse: false, len };
        let places = |step| Places { inner: 1, steps: [step * len, 0], step, len };
        let [from, to] = [places(if sides == Sides::FromReal { 1 } else { 2 }), places(2)];
        let (data, mut out) = (noise(from.steps[0]), vec![0.0; 2 * len]);
        let mut run = |last| {
            let (mut kept, mut bench) = (vec![0.0; kind.kept()], vec![0.0; kind.bench(1)]);
            looks::count(last, || {
                let ready = Transform::new(kind, &mut kept, &mut bench, resources)?;
                ready.run(1, [&from, &to], &data, &[], &mut out, &mut bench, resources)
            })
        };
        let (outcome, looks) = run(usize::MAX);
        assert_eq!(outcome, Ok(()));
        assert!(looks.len() > 20, "{len}: {} looks", looks.len());
        for last in [1, 3, looks.len() / 2, looks.len()] {
            let (outcome, looks) = run(last);
            assert_eq!((outcome, looks.len()), (Err(Stopped::Cancelled), last), "{len}");
        }
    }
}
