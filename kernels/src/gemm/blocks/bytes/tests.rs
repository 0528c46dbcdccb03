//! Windows of bytes in blocks beside sums by the definition.

use super::super::super::BLOCK;
use super::super::tests::axis;
use super::super::{CHANNELS, from_blocks, len_of, to_blocks};
use super::lengths::Image;
use super::quantize::Doubts;
use super::tile::{Four, loops};
use super::{ByteTail, Bytes, FilterBytes, Kind, Requantize, Scales, Scaling};
use crate::Resources;
use crate::testing::{at_each_level, sized};
use crate::windows::Axis;
use std::ops::Range;

fn random(count: usize, seed: u64) -> Vec<u8> {
    let mut seed = seed;
    let mut next = || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 40) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// The filled up channels hold anything.
fn blocks(planes: &[u8], images: usize, channels: usize, positions: usize) -> Vec<u8> {
    let mut out = vec![0x5a; images * len_of(channels, positions)];
    to_blocks(planes, channels, positions, &mut out, Resources { threads: 1, stop: None }).unwrap();
    for (at, byte) in out.iter_mut().enumerate() {
        let block = at / (positions * CHANNELS) % channels.div_ceil(CHANNELS);
        if block * CHANNELS + at % CHANNELS >= channels {
            *byte = 0xa5;
        }
    }
    out
}

/// What is computed, of which numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Integers,
    /// Bytes of floats, many of which are those of numbers between two.
    Ties,
    /// Bytes of floats whose sums are small beside what is summed.
    Balanced,
}

const MODES: [Mode; 3] = [Mode::Integers, Mode::Ties, Mode::Balanced];

/// Makes the second half of the channels of each `of` bytes nearly what the first half becomes.
fn balance(bytes: &mut [u8], of: usize, channels: usize, other: impl Fn(u8) -> u8) {
    for bytes in bytes.chunks_mut(of.max(1)) {
        let half = bytes.len() / channels * (channels / 2);
        let (first, second) = bytes.split_at_mut(half);
        for (at, (to, from)) in second.iter_mut().zip(first).enumerate() {
            *to = if at % 50 == 7 { *to } else { other(*from) };
        }
    }
}

struct Case {
    images: usize,
    channels: usize,
    filters: usize,
    axes: [Axis; 2],
}

impl Case {
    fn sizes(&self, of: impl Fn(&Axis) -> usize) -> usize {
        self.axes.iter().map(of).product()
    }

    /// The bytes that each tap of a window shows; none in padding.
    fn window(&self, plane: &[u8], at: usize) -> Vec<Option<u8>> {
        let [rows, columns] = &self.axes;
        let place = |axis: &Axis, at: usize, tap: usize| {
            (at * axis.stride + tap * axis.dilation).checked_sub(axis.pad).filter(|place| *place < axis.input)
        };
        let (row, column) = (at / columns.output, at % columns.output);
        let taps = (0..rows.kernel).flat_map(|r| (0..columns.kernel).map(move |c| (r, c)));
        taps.map(|(r, c)| Some(plane[place(rows, row, r)? * columns.input + place(columns, column, c)?])).collect()
    }

    fn run(&self, kind: Kind<'_>, x: &[u8], filters: usize, (tail, threads): (bool, usize)) -> Vec<u8> {
        let Case { images, channels, axes, .. } = self;
        let (input, positions) = (self.sizes(|axis| axis.input), self.sizes(|axis| axis.output));
        let in_blocks = blocks(x, *images, *channels, input);
        let flip = |_: usize, part: &mut [u8]| part.iter_mut().for_each(|byte| *byte = !*byte);
        let resources = Resources { threads, stop: None };
        let tail: Option<&ByteTail<'_>> = if tail { Some(&flip) } else { None };
        let plan = Bytes { axes, images: &in_blocks, channels: *channels, groups: 1, kind, tail }
            .plan(*images, resources)
            .unwrap();
        let mut out = vec![7; images * len_of(filters, positions)];
        plan.run(&mut out, &mut vec![u32::MAX; plan.scratch()], resources).unwrap();
        let mut planes = vec![9; images * filters * positions];
        from_blocks(&out, filters, positions, &mut planes, resources).unwrap();
        planes
    }

    /// The numbers that are multiplied for each output, in the order of the sums, less zero points.
    fn terms(&self, own: bool, outside: u8, x: &[u8], w: &[i16]) -> Vec<Vec<[i32; 2]>> {
        let Case { images, channels, .. } = self;
        let (filters, of_each) = if own { (*channels, 1) } else { (self.filters, *channels) };
        let (taps, input) = (self.sizes(|axis| axis.kernel), self.sizes(|axis| axis.input));
        let mut all = Vec::new();
        for (image, filter) in (0..*images).flat_map(|image| (0..filters).map(move |filter| (image, filter))) {
            for at in 0..self.sizes(|axis| axis.output) {
                let first = if own { filter } else { 0 };
                let terms = (0..of_each).flat_map(|channel| {
                    let plane = &x[(image * channels + first + channel) * input..][..input];
                    let seen = self.window(plane, at).into_iter().enumerate();
                    seen.map(move |(tap, seen)| {
                        let weight = w[(filter * of_each + channel) * taps + tap];
                        [i32::from(seen.unwrap_or(outside)) - i32::from(outside), i32::from(weight)]
                    })
                });
                all.push(terms.collect());
            }
        }
        all
    }

    fn check(&self, mode: Mode, own: bool, flip: u8, zeros: (u8, u8)) {
        self.check_less(mode, own, flip, zeros, &[]);
    }

    /// Of filters with zero points.
    fn check_less(&self, mode: Mode, own: bool, flip: u8, (outside, zero): (u8, u8), zeros: &[u8]) {
        let Case { images, channels, axes, .. } = self;
        let filters = if own { *channels } else { self.filters };
        let of_each = if own { 1 } else { *channels };
        let (taps, input) = (self.sizes(|axis| axis.kernel), self.sizes(|axis| axis.input));
        let positions = self.sizes(|axis| axis.output);
        let (mut x, mut w) = (random(images * channels * input, 1), random(filters * of_each * taps, 2));
        if mode == Mode::Balanced && !own {
            balance(&mut x, channels * input, *channels, |byte| byte);
            balance(&mut w, channels * taps, *channels, |byte| ((byte ^ flip) as i8).saturating_neg() as u8 ^ flip);
        }
        let zero_of = |filter: usize| zeros.get(filter).or(zeros.first()).map_or(0, |zero| (zero ^ flip) as i8);
        let less = |(at, byte): (usize, &u8)| {
            i16::from((byte ^ flip) as i8) - i16::from(zero_of(at / (of_each * taps).max(1)))
        };
        let signed: Vec<i16> = w.iter().enumerate().map(less).collect();
        let terms = self.terms(own, outside, &x, &signed);
        let many = flip == 0;
        let count = if many { filters } else { 1 };
        let of = |all: &[f32], filter: usize| if many { all[filter] } else { all[0] };
        let resources = Resources { threads: 1, stop: None };
        // The steps first, then the filters.
        let turned: Vec<u8> = (0..w.len()).map(|at| w[at % filters * of_each * taps + at / filters]).collect();
        let sizes = [filters, of_each, taps];
        let as_floats = mode != Mode::Integers;
        let spread = (taps * of_each) as f32;
        let numbers = |seed| random(count, seed).into_iter().map(f32::from);
        let (scales, of_filters): ([f32; 2], Vec<f32>) = match mode {
            Mode::Integers => {
                ([1.0, 128.0 * spread], numbers(4).map(|byte| (byte + 1.0) / (128.0 * 128.0 * spread)).collect())
            }
            // Every other sum of integers is as far from two bytes; none of these numbers is a power of two.
            Mode::Ties => (
                [0.1, 0.02 * (spread / 4.0).ceil()],
                numbers(4).map(|byte| if byte < 128.0 { 0.1 } else { 0.3 }).collect(),
            ),
            Mode::Balanced => ([0.1, 0.019], numbers(4).map(|byte| 0.1 + byte / 4096.0).collect()),
        };
        let bias: Vec<f32> = numbers(3).map(|byte| 4.0 * (byte - 128.0) * scales[1] / 16.0).collect();
        let each = (0..*images).flat_map(|_| (0..filters).flat_map(|filter| vec![filter; positions]));
        let scaled = terms.iter().zip(each).map(|(terms, filter)| {
            let (weight, bias) = (of(&of_filters, filter), of(&bias, filter));
            if as_floats {
                let sum = |part: &[[i32; 2]]| {
                    let floats = part.iter().map(|[x, w]| (*x as f32 * scales[0], *w as f32 * weight));
                    floats.fold(0f32, |sum, (x, w)| x.mul_add(w, sum))
                };
                return (terms.chunks(BLOCK).map(sum).fold(0f32, |all, sum| all + sum) + bias) / scales[1];
            }
            let sum: i32 = terms.iter().map(|[x, w]| x * w).sum();
            (sum + bias as i32) as f32 * weight
        });
        let byte = |scaled: f32| (scaled.round_ties_even() + f32::from(zero)).clamp(0.0, 255.0) as u8;
        let want: Vec<u8> = scaled.map(byte).collect();
        let integers: Vec<i32> = bias.iter().map(|bias| *bias as i32).collect();
        let scales = match as_floats {
            true => Scales::Floats { images: scales[0], weights: &of_filters, bias: Some(&bias), out: scales[1] },
            false => Scales::Integers { factors: &of_filters, bias: Some(&integers) },
        };
        let scaling = Scaling { outside, of_filters: zeros, scales, zero };
        let turned_want: Vec<u8> = want.iter().map(|byte| !byte).collect();
        at_each_level(|| {
            let [weights, again] = [(&w, false), (&turned, true)].map(|(bytes, turned)| {
                let filters = FilterBytes { bytes, sizes, own, groups: 1, turned, flip, scaling };
                let mut weights = vec![u32::MAX; filters.packed()];
                filters.pack(&mut weights, resources).unwrap();
                weights
            });
            assert_eq!(weights, again);
            let requantize = Requantize { weights: &weights, scaling };
            let kind = if own { Kind::Own(requantize) } else { Kind::All(filters, requantize) };
            for (tail, threads, want) in [(false, 1, &want), (true, 3, &turned_want)] {
                let out = self.run(kind, &x, filters, (tail, threads));
                let apart = out.iter().zip(want).filter(|(out, want)| out != want).count();
                let len = out.len();
                assert_eq!(apart, 0, "{channels} to {filters}, {axes:?}, {own}, {flip}, {mode:?}, {tail}, of {len}");
            }
        });
    }

    fn check_greatest(&self) {
        let (input, positions) = (self.sizes(|axis| axis.input), self.sizes(|axis| axis.output));
        let x = random(self.images * self.channels * input, 1);
        let planes = x.chunks(input.max(1)).filter(|_| input > 0);
        let greatest = |plane: &[u8], at: usize| self.window(plane, at).into_iter().flatten().max().unwrap_or(0);
        let want: Vec<u8> =
            planes.flat_map(|plane| (0..positions).map(|at| greatest(plane, at)).collect::<Vec<_>>()).collect();
        for threads in [1, 3] {
            let out = self.run(Kind::Greatest, &x, self.channels, (false, threads));
            assert_eq!(out, want, "{}, {:?}", self.channels, self.axes);
        }
    }
}

/// Sizes with tails, padding on all sides, strides, dilations, and wide images.
fn cases() -> Vec<Case> {
    let square = |input, kernel, stride, pad| {
        [axis(input, kernel, stride, 1, [pad; 2]), axis(input, kernel, stride, 1, [pad; 2])]
    };
    let mut cases: Vec<Case> = [
        (1, 3, 20, square(9, 3, 2, 1)),
        (2, 17, 33, square(7, 3, 1, 1)),
        (1, 16, 16, square(15, 1, 1, 0)),
        (1, 40, 24, square(9, 1, 2, 0)),
        (1, 100, 34, square(5, 3, 1, 1)),
        (1, 6, 40, square(13, 7, 2, 3)),
        (1, 5, 1, square(6, 5, 1, 2)),
        (1, 70, 48, square(14, 1, 1, 0)),
        (2, 32, 32, square(4, 3, 1, 0)),
        (0, 4, 4, square(4, 1, 1, 0)),
        (1, 4, 4, square(2, 3, 1, 0)),
        (1, 3, 5, [axis(6, 3, 2, 2, [2, 0]), axis(11, 2, 3, 3, [0, 4])]),
        (1, 2, 3, [axis(1, 1, 1, 1, [3, 3]), axis(2, 1, 5, 1, [9, 9])]),
        (1, 2, 18, [axis(3, 3, 1, 1, [1, 1]), axis(500, 3, 1, 1, [1, 1])]),
        (1, 600, 440, square(2, 1, 1, 0)),
        // As many taps as matrices take for terms, of one row, of one column and of both, far apart or not, and one more.
        (1, 40, 34, [axis(3, 3, 1, 2, [2, 2]), axis(12, 4, 2, 1, [1, 3])]),
        (2, 32, 33, [axis(2, 1, 1, 1, [0, 0]), axis(20, 7, 1, 1, [3, 3])]),
        (1, 33, 32, [axis(7, 9, 2, 1, [3, 2]), axis(3, 1, 1, 1, [1, 1])]),
        (1, 32, 32, [axis(1, 1, 1, 1, [0, 0]), axis(22, 13, 1, 2, [4, 4])]),
    ]
    .into_iter()
    .map(|(images, channels, filters, axes)| Case { images, channels, filters, axes })
    .collect();
    cases.truncate(sized(cases.len(), 2));
    cases
}

#[test]
fn sums_of_bytes() {
    for (case, mode) in cases().iter().flat_map(|case| MODES.map(|mode| (case, mode))) {
        case.check(mode, false, 0, (0, 0));
        case.check(mode, false, 0x80, (131, 77));
    }
}

#[test]
fn sums_of_bytes_of_channels_alone() {
    for (case, mode) in cases().iter().flat_map(|case| MODES.map(|mode| (case, mode))) {
        case.check(mode, true, 0, (200, 128));
        case.check(mode, true, 0x80, (0, 3));
    }
    // Zero points at the ends and near the middle, one for all or one for each.
    for (at, case) in cases().iter().enumerate() {
        let each: Vec<u8> = (0..case.channels).map(|channel| [0, 255, 127, 120, 1][(channel + at) % 5]).collect();
        for zeros in [&[0][..], &[255], &[131], &each] {
            case.check_less(Mode::Integers, true, 0x80, (7, 100), zeros);
            case.check_less(Mode::Integers, true, 0, (255, 3), zeros);
        }
    }
}

/// Pairs of weights whose products have sums at the ends of 16 bits, or just beyond: of all filters of a step, or of one of them.
#[test]
fn pairs_of_weights_near_the_ends_of_words() {
    let few = [[64, 64], [127, 1], [-64, -64], [-128, 0], [127, -128], [-1, -127], [0, 0]];
    let many = [[64, 65], [127, 2], [-64, -65], [-128, -1]];
    let (channels, filters) = (4 * CHANNELS, 20);
    let weights: Vec<i8> = (0..filters * channels / 2)
        .flat_map(|at| {
            let (filter, pair) = (at / (channels / 2), at % (channels / 2));
            let step = pair / 2;
            if step % 3 == 0 || step % 3 == 1 && filter != step { few[at % 7] } else { many[at % 4] }
        })
        .collect();
    let w: &[u8] = bytemuck::cast_slice(&weights);
    let case = Case { images: 1, channels, filters, axes: [axis(3, 1, 1, 1, [0; 2]), axis(5, 1, 1, 1, [0; 2])] };
    for byte in [255u8, 254] {
        let sums = weights.chunks(channels).map(|w| w.iter().map(|w| i32::from(*w) * i32::from(byte)).sum::<i32>());
        // Nothing is left of what is exact.
        let bias: Vec<i32> = sums.enumerate().map(|(filter, sum)| filter as i32 - sum).collect();
        let scales = Scales::Integers { factors: &[1.0], bias: Some(&bias) };
        let (resources, scaling) =
            (Resources { threads: 1, stop: None }, Scaling { outside: 0, of_filters: &[], scales, zero: 3 });
        at_each_level(|| {
            let sizes = [filters, channels, 1];
            let packing = FilterBytes { bytes: w, sizes, own: false, groups: 1, turned: false, flip: 0, scaling };
            let mut packed = vec![0; packing.packed()];
            packing.pack(&mut packed, resources).unwrap();
            let kind = Kind::All(filters, Requantize { weights: &packed, scaling });
            let want: Vec<u8> = (0..filters).flat_map(|filter| [3 + filter as u8; 15]).collect();
            assert_eq!(case.run(kind, &vec![byte; channels * 15], filters, (false, 1)), want);
        });
    }
}

#[test]
fn greatest_bytes_of_windows() {
    at_each_level(|| cases().iter().for_each(Case::check_greatest));
}

/// The magnitudes of all partial sums together are nearly what an integer of 32 bits holds, or more.
#[test]
fn bytes_of_floats_of_many_terms() {
    of_many_terms(sized(33_000, 500));
    // Modulo 2^32 these come to little.
    of_many_terms(sized(37_952, 400));
}

/// The exact sums are between two bytes but for a part of what the floats are off.
fn of_many_terms(channels: usize) {
    let filters = 20;
    let (x, w) = (vec![255u8; channels], vec![-127i8 as u8; filters * channels]);
    let (scales, of_filters) = ([0.1f32, 1e3], (0..filters).map(|at| 0.1 + at as f32 / 97.0).collect::<Vec<f32>>());
    let sums = of_filters.iter().map(|scale| {
        let (x, w) = (255.0 * scales[0], -127.0 * scale);
        let blocks = (0..channels)
            .step_by(BLOCK)
            .map(|at| (at..channels.min(at + BLOCK)).fold(0f32, |sum, _| x.mul_add(w, sum)));
        let exact = -(channels as f64) * 255.0 * 127.0 * f64::from(scales[0]) * f64::from(*scale);
        (blocks.fold(0f32, |all, sum| all + sum), exact)
    });
    let sums: Vec<(f32, f64)> = sums.collect();
    let less = |(sum, exact): &(f32, f64)| (100.5e3 - exact - 0.9 * (f64::from(*sum) - exact)) as f32;
    let bias: Vec<f32> = sums.iter().map(less).collect();
    let of_floats = |((sum, _), bias): (&(f32, f64), &f32)| ((sum + bias) / scales[1]).round_ties_even() as u8;
    let want: Vec<u8> = sums.iter().zip(&bias).map(of_floats).collect();
    let exact = |((_, exact), bias): (&(f32, f64), &f32)| ((exact + f64::from(*bias)) / 1e3).round_ties_even() as u8;
    let off = sums.iter().zip(&bias).map(exact).zip(&want).filter(|(exact, want)| exact != *want).count();
    assert!(cfg!(miri) || off > filters / 2, "{off}");
    let scales = Scales::Floats { images: scales[0], weights: &of_filters, bias: Some(&bias), out: scales[1] };
    let (resources, scaling) =
        (Resources { threads: 1, stop: None }, Scaling { outside: 0, of_filters: &[], scales, zero: 0 });
    at_each_level(|| {
        let packing = FilterBytes {
            bytes: &w,
            sizes: [filters, channels, 1],
            own: false,
            groups: 1,
            turned: false,
            flip: 0,
            scaling,
        };
        let mut weights = vec![0; packing.packed()];
        packing.pack(&mut weights, resources).unwrap();
        let case = Case { images: 1, channels, filters, axes: [axis(1, 1, 1, 1, [0; 2]), axis(1, 1, 1, 1, [0; 2])] };
        let kind = Kind::All(filters, Requantize { weights: &weights, scaling });
        assert_eq!(case.run(kind, &x, filters, (false, 1)), want);
    });
}

/// Each step is rounded in the same direction, so that sums are as far off as they get, and the exact ones are between two bytes
/// but for a part of that. What is off comes from steps, or from operands whose partial sums are small.
#[test]
fn bytes_of_floats_that_are_off() {
    let (channels, filters) = (sized(2700, 40), sized(64, 8));
    let same = (vec![201u8; channels], |filter: usize, _: usize| 30 + filter as i8);
    let pairs: Vec<u8> = (0..channels).map(|at| if at % 2 == 0 { 100 } else { 60 }).collect();
    let balanced = (pairs, |filter: usize, at: usize| {
        let number = [15, 20, 30, 60][filter % 4];
        if at.is_multiple_of(2) { number } else { (-number as i32 * 100 / 60) as i8 }
    });
    let mut off = 0;
    let mut check = |x: &[u8], w: &[i8], image: f32, (outside, zero): (u8, u8)| {
        let of_filters: Vec<f32> = (0..filters).map(|filter| 0.013 + filter as f32 / 1021.0).collect();
        let sums: Vec<[f64; 2]> = (0..filters)
            .map(|filter| {
                let terms = || {
                    x.iter()
                        .zip(&w[filter * channels..])
                        .map(|(x, w)| (i32::from(*x) - i32::from(outside), i32::from(*w)))
                };
                let whole: i32 = terms().map(|(x, w)| x * w).sum();
                let floats: Vec<_> = terms().map(|(x, w)| (x as f32 * image, w as f32 * of_filters[filter])).collect();
                let block = |part: &[(f32, f32)]| part.iter().fold(0f32, |sum, (x, w)| x.mul_add(*w, sum));
                let sum = floats.chunks(BLOCK).map(block).fold(0f32, |all, sum| all + sum);
                [sum.into(), f64::from(whole) * f64::from(image) * f64::from(of_filters[filter])]
            })
            .collect();
        let most = sums.iter().map(|[_, exact]| exact.abs()).fold(0.0, f64::max);
        let out = (most / 190.0).max(1e-3 * f64::from(image)) as f32;
        for part in [0.1, 0.5, 0.97] {
            let between = |[sum, exact]: &[f64; 2]| {
                let low = (exact / f64::from(out)).floor();
                ((low + 0.5) * f64::from(out) - exact - part * (sum - exact)) as f32
            };
            let bias: Vec<f32> = sums.iter().map(between).collect();
            let byte = |(sum, bias): (f64, &f32)| ((sum as f32 + bias) / out).round_ties_even() + f32::from(zero);
            let want: Vec<u8> = sums.iter().map(|[sum, _]| *sum).zip(&bias).map(|of| byte(of) as u8).collect();
            let exact = |([_, exact], bias): (&[f64; 2], &f32)| {
                ((exact + f64::from(*bias)) / f64::from(out)).round() + f64::from(zero)
            };
            off += sums.iter().zip(&bias).map(exact).zip(&want).filter(|(exact, want)| *exact as u8 != **want).count();
            let scales = Scales::Floats { images: image, weights: &of_filters, bias: Some(&bias), out };
            let (resources, scaling) =
                (Resources { threads: 1, stop: None }, Scaling { outside, of_filters: &[], scales, zero });
            at_each_level(|| {
                let (bytes, sizes) = (bytemuck::cast_slice(w), [filters, channels, 1]);
                let packing = FilterBytes { bytes, sizes, own: false, groups: 1, turned: false, flip: 0, scaling };
                let mut weights = vec![0; packing.packed()];
                packing.pack(&mut weights, resources).unwrap();
                let axes = [axis(1, 1, 1, 1, [0; 2]), axis(1, 1, 1, 1, [0; 2])];
                let case = Case { images: 1, channels, filters, axes };
                let kind = Kind::All(filters, Requantize { weights: &weights, scaling });
                assert_eq!(case.run(kind, x, filters, (false, 1)), *want, "{image}, {part}");
            });
        }
    };
    for at in 0..sized(24, 1) {
        let image = 0.0173 + at as f32 / 307.0;
        let weights = |of: &dyn Fn(usize, usize) -> i8| -> Vec<i8> {
            (0..filters * channels).map(|at| of(at / channels, at % channels)).collect()
        };
        check(&same.0, &weights(&same.1), image, (0, 100));
        if at % 6 == 0 {
            // The same sums below 0, of bytes that give none without their zero point.
            check(&vec![0; channels], &weights(&same.1), image, (201, 250));
        }
        check(&balanced.0, &weights(&balanced.1), image, (0, 100));
    }
    assert!(cfg!(miri) || off > 3000, "{off}");
}

/// Groups together give what each gives by itself; many sums of floats end between two bytes.
#[test]
fn groups_of_bytes() {
    let axes = [axis(7, 3, 1, 1, [1, 1]), axis(9, 3, 2, 1, [1, 0])];
    let [input, positions] =
        [|axis: &Axis| axis.input, |axis: &Axis| axis.output].map(|of| axes.iter().map(of).product());
    let whole = [(3, 16, 16), (2, 16, 48), (2, 32, 64), (2, 48, 32)];
    // Halves of blocks, an odd number of them and more than a block of a sum has, and quarters.
    let shared =
        [(4, 4, 4), (11, 4, 4), (2, 8, 8), (5, 8, 8), (3, 24, 24), (3, 40, 8), (3, 8, 32), (2, 32, 8), (4, 56, 40)];
    let cases = whole.iter().take(sized(4, 1)).chain(shared.iter().take(sized(9, 1)));
    for (groups, of_each, filters) in cases.copied() {
        let (images, taps): (usize, usize) = (2, 9);
        let x = random(images * groups * of_each * input, 1);
        let w: Vec<u8> =
            random(groups * filters * of_each * taps, 2).iter().map(|byte| (byte % 7).wrapping_sub(3)).collect();
        let of_filters: Vec<f32> = (0..groups * filters).map(|filter| 1.0 / (64 << (filter % 3)) as f32).collect();
        let [integers, floats] =
            [-300, 700].map(|bias| (0..groups * filters).map(move |filter| bias + filter as i32 % 5));
        let (integers, floats) =
            (integers.collect::<Vec<_>>(), floats.map(|bias| bias as f32 / 64.0).collect::<Vec<_>>());
        let run = |x: &[u8], some: Range<usize>, groups: usize, as_floats: bool| {
            let (channels, filters, resources) = (groups * of_each, some.len(), Resources { threads: 2, stop: None });
            let scales = match as_floats {
                true => {
                    let (weights, bias) = (&of_filters[some.clone()], Some(&floats[some.clone()]));
                    Scales::Floats { images: 0.5, weights, bias, out: 0.25 }
                }
                false => Scales::Integers { factors: &of_filters[some.clone()], bias: Some(&integers[some.clone()]) },
            };
            let scaling = Scaling { outside: 99, of_filters: &[], scales, zero: 100 };
            let bytes = &w[some.start * of_each * taps..some.end * of_each * taps];
            let sizes = [filters, of_each, taps];
            let packing = FilterBytes { bytes, sizes, own: false, groups, turned: false, flip: 0, scaling };
            let mut weights = vec![0; packing.packed()];
            packing.pack(&mut weights, resources).unwrap();
            let images = x.len() / (channels * input);
            let (stored, kind) =
                (blocks(x, images, channels, input), Kind::All(filters, Requantize { weights: &weights, scaling }));
            let bytes = Bytes { axes: &axes, images: &stored, channels, groups, kind, tail: None };
            let plan = bytes.plan(images, resources).unwrap();
            let mut out = vec![7; images * len_of(filters, positions)];
            plan.run(&mut out, &mut vec![u32::MAX; plan.scratch()], resources).unwrap();
            let mut planes = vec![9; images * filters * positions];
            from_blocks(&out, filters, positions, &mut planes, resources).unwrap();
            planes
        };
        at_each_level(|| {
            for as_floats in [false, true] {
                let each = (0..images * groups).flat_map(|at| {
                    let (own, first) = (at * of_each * input, at % groups * filters);
                    run(&x[own..own + of_each * input], first..first + filters, 1, as_floats)
                });
                let (each, all) = (each.collect::<Vec<_>>(), run(&x, 0..groups * filters, groups, as_floats));
                assert!(all == each, "{groups} of {of_each} to {filters}, {as_floats}");
                assert!(all.iter().filter(|byte| !matches!(byte, 0 | 255)).count() > all.len() / 2);
            }
        });
    }
}

/// Of the channels that there are, and no others; of more places than vectors have room for, from some place on.
#[test]
fn squares_of_what_is_seen() {
    let blocks = [1, 2].map(|seed| random(12 * CHANNELS, seed));
    let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    for (channels, outside, count) in [(1, 0, 1), (3, 255, 6), (16, 128, 9), (19, 3, 7), (32, 255, 4)] {
        let blocks = &blocks[..usize::div_ceil(channels, CHANNELS)];
        let square = |place: usize| {
            let bytes = blocks.iter().flat_map(|block| &block[(2 + place) * CHANNELS..][..CHANNELS]).take(channels);
            bytes.map(|byte| (f32::from(*byte) - f32::from(outside)).powi(2)).sum::<f32>()
        };
        let want: Vec<f32> = (0..count).map(square).collect();
        at_each_level(|| {
            let mut squares = vec![f32::NAN; count];
            // SAFETY: the loops are those of this level.
            unsafe { (loops::<Four>(true).squares)(&Image { blocks, channels, outside }, 2, &mut squares) };
            assert_eq!(squares, want, "{channels}");
        });
    }
}

/// Vectors of a part, some of whose lanes are in doubt.
#[test]
fn doubts_are_taken_once() {
    let mut doubts = Doubts::new();
    for (vector, lanes) in [(0, 0b1), (1, 0), (15, 0x8000), (16, 0), (40, 0b110), (45, 0)] {
        doubts.set(vector, lanes);
    }
    assert_eq!(doubts.take(46).collect::<Vec<_>>(), [[0, 0], [15, 15], [40, 1], [40, 2]]);
    assert_eq!(doubts.take(46).count(), 0);
}

/// Numbers of a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }

    fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())]
    }

    /// From 2^-7 on, below 1.
    fn scale(&mut self) -> f32 {
        (1.0 + self.below(1 << 20) as f32 / (1 << 20) as f32) / self.of(&[2.0, 16.0, 128.0])
    }
}

/// Of any sizes, scales and zero points, also of numbers that are few, or at an end of their range.
#[test]
fn bytes_of_floats_of_any_kind() {
    for seed in 0..sized(if cfg!(debug_assertions) { 60 } else { 400 }, 1) as u64 {
        let mut any = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let own = any.below(4) == 0;
        let most = any.of(&[6, 40, 300, 900]);
        let (channels, filters) = (1 + any.below(most), 1 + any.below(80));
        let side = |any: &mut Numbers| {
            let (kernel, dilation, pads) =
                (any.of(&[1, 2, 3, 1, 2, 3, 9]), 1 + any.below(2), [any.below(3), any.below(2)]);
            axis(1 + (kernel - 1) * dilation + any.below(5), kernel, 1 + any.below(2), dilation, pads)
        };
        let axes = [side(&mut any), side(&mut any)];
        let case = Case { images: 1, channels, filters, axes };
        let (filters, of_each) = if own { (channels, 1) } else { (filters, channels) };
        let (taps, input) = (case.sizes(|axis| axis.kernel), case.sizes(|axis| axis.input));
        let positions = case.sizes(|axis| axis.output);
        let (x_kinds, w_kinds) = (any.of(&[256, 256, 2, 20]), any.of(&[256, 256, 3]));
        let offset = any.of(&[0, 0, 100, 235]);
        let x: Vec<u8> = (0..channels * input).map(|_| (any.below(x_kinds) + offset) as u8).collect();
        let w: Vec<u8> = (0..filters * of_each * taps).map(|_| any.below(w_kinds).wrapping_mul(127) as u8).collect();
        let signed: Vec<i16> = w.iter().map(|byte| (*byte as i8).into()).collect();
        let outside = any.of(&[0, 128, 255, x.first().copied().unwrap_or(3)]);
        let terms = case.terms(own, outside, &x, &signed);
        let many = any.below(2) == 0;
        let of_filters: Vec<f32> = (0..if many { filters } else { 1 }).map(|_| any.scale()).collect();
        let of = |all: &[f32], filter: usize| if many { all[filter] } else { all[0] };
        let image_scale = any.scale();
        // Results of about a byte's range, or between two of a few.
        let greatest = terms.iter().map(|terms| terms.iter().map(|[x, w]| x * w).sum::<i32>().abs()).max().unwrap_or(0);
        let whole = 2.0 * image_scale * of_filters[0];
        let out = match any.below(3) {
            0 => whole * (greatest as f32 / 255.0).ceil().max(1.0),
            1 => whole * (greatest as f32 / 300.0 + 0.3),
            _ => any.scale() * (greatest as f32 / 100.0 + 1.0),
        };
        let bias: Option<Vec<f32>> = (any.below(2) == 0)
            .then(|| of_filters.iter().map(|_| (any.below(401) as f32 - 200.0) * any.of(&[0.5, 0.37]) * out).collect());
        let zero = any.of(&[0, 128, 255, 7]);
        let bias = bias.as_deref();
        let want: Vec<u8> = terms
            .iter()
            .enumerate()
            .map(|(at, terms)| {
                let filter = at / positions.max(1) % filters;
                let weight = of(&of_filters, filter);
                let sum = |part: &[[i32; 2]]| {
                    part.iter().fold(0f32, |sum, [x, w]| (*x as f32 * image_scale).mul_add(*w as f32 * weight, sum))
                };
                let total = terms.chunks(BLOCK).map(sum).fold(0f32, |all, sum| all + sum);
                let total = bias.map_or(total, |bias| total + of(bias, filter));
                ((total / out).round_ties_even() + f32::from(zero)).clamp(0.0, 255.0) as u8
            })
            .collect();
        let scales = Scales::Floats { images: image_scale, weights: &of_filters, bias, out };
        let scaling = Scaling { outside, of_filters: &[], scales, zero };
        at_each_level(|| {
            let sizes = [filters, of_each, taps];
            let packing = FilterBytes { bytes: &w, sizes, own, groups: 1, turned: false, flip: 0, scaling };
            let mut weights = vec![0; packing.packed()];
            packing.pack(&mut weights, Resources { threads: 1, stop: None }).unwrap();
            let requantize = Requantize { weights: &weights, scaling };
            let kind = if own { Kind::Own(requantize) } else { Kind::All(filters, requantize) };
            let threads = if seed % 2 == 0 { 1 } else { 3 };
            let out = case.run(kind, &x, filters, (false, threads));
            let apart = out.iter().zip(&want).filter(|(out, want)| out != want).count();
            assert_eq!(apart, 0, "seed {seed}: {own}, {channels} to {filters}, {axes:?}, of {}", out.len());
        });
    }
}
