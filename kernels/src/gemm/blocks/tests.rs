//! Convolutions in blocks beside those of planes, bit by bit.

use super::super::tests::samples;
use super::super::{Alone, Batch, Broadcast, Left, Product, Right, Scaled, Strides, View, Windows};
use super::band::{ELEMENTS, Grid};
use super::{
    Activation, CHANNELS, Dense, Each, Finish, Images, Own, Products, Scale, Source, from_blocks, gate, greatest,
    len_of, mean, pack, pack_each, share_blocks, to_blocks,
};
use crate::functions;
use crate::lanes::{Mean, Ordered};
use crate::number::Float;
use crate::pool::{Pooling, Reduced, pool};
use crate::testing::{at_each_level, sized};
use crate::windows::Axis;
use crate::{Resources, Stopped};

pub(super) fn axis(input: usize, kernel: usize, stride: usize, dilation: usize, pads: [usize; 2]) -> Axis {
    let seen = (input + pads[0] + pads[1]).saturating_sub((kernel - 1) * dilation);
    Axis { input, output: if seen == 0 { 0 } else { (seen - 1) / stride + 1 }, kernel, stride, dilation, pad: pads[0] }
}

fn blocks(planes: &[f32], channels: usize, positions: usize) -> Vec<f32> {
    let images = planes.len() / (channels * positions).max(1);
    let mut out = vec![f32::NAN; images * len_of(channels, positions)];
    to_blocks(planes, channels, positions, &mut out, Resources { threads: 1, stop: None }).unwrap();
    out
}

/// The filled up channels hold anything.
fn spoiled(mut blocks: Vec<f32>, channels: usize, positions: usize) -> Vec<f32> {
    let all = channels.div_ceil(CHANNELS) * CHANNELS;
    for (at, number) in blocks.iter_mut().enumerate() {
        let block = at / (positions * CHANNELS) % (all / CHANNELS);
        if block * CHANNELS + at % CHANNELS >= channels {
            *number = f32::NAN;
        }
    }
    blocks
}

fn planes(blocks: &[f32], channels: usize, positions: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; blocks.len() / len_of(channels, positions).max(1) * channels * positions];
    from_blocks(blocks, channels, positions, &mut out, Resources { threads: 2, stop: None }).unwrap();
    out
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

fn tail(_: usize, sums: &mut [f32]) {
    sums.iter_mut().for_each(|sum| *sum = sum.max(0.25));
}

/// What finishes sums, with elements beside them or without.
fn finishes(beside: &[f32]) -> impl Iterator<Item = Finish<'_>> {
    let activations = [
        Activation::None,
        Activation::Relu,
        Activation::Within { low: 0.0, high: 6.0 },
        Activation::Within { low: -0.5, high: f32::INFINITY },
        Activation::HardSwish,
        Activation::Gated,
    ];
    let of = move |activation| [None, Some(beside)].map(|beside| Finish { beside, activation });
    activations.into_iter().flat_map(of)
}

/// Sums of so many filters that were finished as they were computed, beside what their definitions say of sums as they are:
/// each case tries every third of what finishes them, from one on that differs among cases, with factors and addends or
/// without.
fn check_finishes(len: usize, filters: usize, run: &dyn Fn(Scale<'_>, Finish<'_>) -> Vec<f32>, case: &Case) {
    let mut beside = samples::<f32>(len, 7);
    beside.iter_mut().step_by(11).for_each(|number| *number = -0.0);
    beside.iter_mut().step_by(13).for_each(|number| *number = f32::NAN);
    beside.iter_mut().step_by(17).for_each(|number| *number = f32::INFINITY);
    let [factors, addends] = [8, 9].map(|seed| samples::<f32>(filters, seed));
    let plain = run(Scale::default(), Finish::default());
    for (at, finish) in finishes(&beside).enumerate().skip((case.channels + case.filters) % 3).step_by(3) {
        let scale = Scale {
            factors: Some(&factors[..]).filter(|_| at % 4 < 2),
            addends: Some(&addends[..]).filter(|_| at % 4 > 0),
        };
        let want = plain.iter().zip(&beside).enumerate().map(|(at, (sum, beside))| {
            let block = at / (CHANNELS * case.positions()) % filters.div_ceil(CHANNELS);
            let of = |numbers: Option<&[f32]>| numbers?.get(block * CHANNELS + at % CHANNELS).copied();
            let scaled = of(scale.factors).map_or(*sum, |factor| sum * factor);
            let scaled = of(scale.addends).map_or(scaled, |addend| scaled + addend);
            let x = if finish.beside.is_some() { scaled + beside } else { scaled };
            match finish.activation {
                Activation::None => x,
                Activation::Relu => {
                    if x < 0.0 {
                        0.0
                    } else {
                        x
                    }
                }
                Activation::Within { low, high } => x.larger(low).smaller(high),
                Activation::HardSwish => x * ((x + 3.0) / 6.0).smaller(1.0).larger(0.0),
                Activation::Gated => functions::gated(x),
            }
        });
        for (at, (out, want)) in run(scale, finish).into_iter().zip(want).enumerate() {
            let same = out.to_bits() == want.to_bits() || (out.is_nan() && want.is_nan());
            assert!(same, "{:?} of {} at {at}: {out} {want}, {:?}", finish.activation, plain[at], case.axes);
        }
    }
}

struct Case {
    images: usize,
    channels: usize,
    filters: usize,
    axes: [Axis; 3],
}

impl Case {
    fn input(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    fn positions(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    fn steps(&self) -> usize {
        self.channels * self.taps()
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    fn check_dense(&self) {
        let x = samples::<f32>(self.images * self.channels * self.input(), 1);
        let w = samples::<f32>(self.filters * self.steps(), 2);
        self.check_dense_of([&x, &w, &samples::<f32>(self.filters, 3)], true, Some(&tail));
    }

    /// At each level, images, filters and a bias: a tail, and what finishes sums beside, or neither. NaN counts as NaN.
    fn check_dense_of(&self, [x, w, bias]: [&[f32]; 3], finite: bool, tail: Option<&super::Tail<'_>>) {
        let bits =
            |numbers: &[f32]| bits(&numbers.iter().map(|x| if x.is_nan() { f32::NAN } else { *x }).collect::<Vec<_>>());
        let Case { images, channels, filters, axes } = self;
        let (k, n) = (self.steps(), self.positions());
        let batch = [Batch { size: *images, a: 0, b: channels * self.input() }];
        let row = Strides { row: 1, column: 0, batch: &[0] };
        let added = Scaled { alpha: 1.0, beta: 1.0, c: Some(Broadcast { elements: bias, strides: row }) };
        let last = |part: &mut [f32]| tail.into_iter().for_each(|tail| tail(0, part));
        let product = Product::<f32> {
            m: *filters,
            k,
            n,
            a: Left::View(View::rows(w, k)),
            b: Right::Windows(Windows::new(x, *channels, axes, 0f32)),
            batch: &batch,
            epilogue: &[&added, &last],
        };
        let resources = Resources { threads: 1, stop: None };
        let plan = product.plan(resources);
        let mut want = vec![0.0; images * filters * n];
        plan.run(&mut want, &mut vec![0.0; plan.scratch()], resources).unwrap();
        at_each_level(|| {
            let mut packed = vec![f32::NAN; len_of(*filters, k)];
            pack(bytemuck::cast_slice(w), *filters, 1, &mut packed, resources).unwrap();
            let in_blocks = spoiled(blocks(x, *channels, self.input()), *channels, self.input());
            for source in [Source::Planes(x), Source::Blocks(&in_blocks)] {
                for threads in [1, 3] {
                    let resources = Resources { threads, stop: None };
                    let dense = Dense {
                        axes,
                        images: source,
                        channels: *channels,
                        filters: *filters,
                        groups: 1,
                        weights: &packed,
                        finite,
                        bias: Some(bias),
                        scale: Scale::default(),
                        finish: Finish::default(),
                        tail,
                    };
                    let plan = dense.plan(*images, resources).unwrap();
                    let mut out = vec![f32::NAN; images * len_of(*filters, n)];
                    plan.run(&mut out, &mut vec![f32::NAN; plan.scratch()], resources).unwrap();
                    assert_eq!(bits(&planes(&out, *filters, n)), bits(&want), "{channels} to {filters}, {axes:?}");
                    let run = |scale: Scale<'_>, finish: Finish<'_>| {
                        let plan = Dense { scale, finish, tail: None, ..dense }.plan(*images, resources).unwrap();
                        let mut out = vec![f32::NAN; out.len()];
                        plan.run(&mut out, &mut vec![f32::NAN; plan.scratch()], resources).unwrap();
                        out
                    };
                    if tail.is_some() && threads > 1 && matches!(source, Source::Blocks(_)) {
                        check_finishes(out.len(), *filters, &run, self);
                    }
                }
            }
        });
    }

    fn check_own(&self) {
        let Case { images, channels, axes, .. } = self;
        let (taps, n) = (self.taps(), self.positions());
        let (x, w) = (samples::<f32>(images * channels * self.input(), 1), samples::<f32>(channels * taps, 2));
        let (bias, resources) = (samples::<f32>(*channels, 3), Resources { threads: 1, stop: None });
        let last = |part: &mut [f32]| tail(0, part);
        let mut want = vec![0.0; images * channels * n];
        let alone = Alone {
            axes,
            images: &x,
            channels: *channels,
            filters: &w,
            of_each: 1,
            bias: Some(&bias),
            epilogue: &[&last],
        };
        alone.run(&mut want, resources).unwrap();
        let (weights, in_blocks) = (blocks(&w, *channels, taps), blocks(&x, *channels, self.input()));
        let in_blocks = spoiled(in_blocks, *channels, self.input());
        at_each_level(|| {
            for threads in [1, 3] {
                let resources = Resources { threads, stop: None };
                let each = Each { axes, images: Images::Stored(&in_blocks), channels: *channels }
                    .plan(*images, resources)
                    .unwrap();
                let own = Own {
                    each: &each,
                    weights: &weights,
                    bias: Some(&bias),
                    scale: Scale::default(),
                    finish: Finish::default(),
                    tail: Some(&tail),
                };
                let mut out = vec![f32::NAN; images * len_of(*channels, n)];
                own.run(&mut out, &mut vec![f32::NAN; each.scratch()], resources).unwrap();
                assert_eq!(bits(&planes(&out, *channels, n)), bits(&want), "{channels}, {axes:?}");
                let run = |scale: Scale<'_>, finish: Finish<'_>| {
                    let mut out = vec![f32::NAN; out.len()];
                    let own = Own { scale, finish, tail: None, ..own };
                    own.run(&mut out, &mut vec![f32::NAN; each.scratch()], resources).unwrap();
                    out
                };
                if threads > 1 {
                    check_finishes(out.len(), *channels, &run, self);
                }
            }
        });
    }

    /// Windows of images that are computed line by line, beside those of images that are stored.
    fn check_products(&self) {
        let Case { images, channels, filters, axes } = self;
        let (taps, n) = (self.taps(), self.positions());
        let (x, w) = (samples::<f32>(images * channels * self.input(), 1), samples::<f32>(filters * channels, 2));
        let (bias, own_w) = (samples::<f32>(*filters, 3), samples::<f32>(filters * taps, 4));
        let in_blocks = spoiled(blocks(&x, *channels, self.input()), *channels, self.input());
        let single = self.axes.map(|Axis { input, .. }| axis(input, 1, 1, 1, [0; 2]));
        let resources = Resources { threads: 1, stop: None };
        let [mut packed, mut each] = [(); 2].map(|()| vec![f32::NAN; len_of(*filters, *channels)]);
        pack(bytemuck::cast_slice(&w), *filters, 1, &mut packed, resources).unwrap();
        pack_each(bytemuck::cast_slice(&w), *filters, &mut each, resources).unwrap();
        let source = Source::Blocks(&in_blocks[..]);
        let (bias, tail) = (Some(&bias[..]), Some(&tail as &super::Tail<'_>));
        let dense = Dense {
            axes: &single,
            images: source,
            channels: *channels,
            filters: *filters,
            groups: 1,
            weights: &packed,
            finite: true,
            bias,
            scale: Scale::default(),
            finish: Finish::default(),
            tail,
        };
        let plan = dense.plan(*images, resources).unwrap();
        let mut stored = vec![f32::NAN; images * len_of(*filters, self.input())];
        plan.run(&mut stored, &mut vec![f32::NAN; plan.scratch()], resources).unwrap();
        let last = |part: &mut [f32]| self::tail(0, part);
        let products = Products {
            images: &in_blocks,
            channels: *channels,
            weights: &each,
            bias,
            activation: Activation::None,
            tail: Some(&last),
        };
        let weights = blocks(&own_w, *filters, taps);
        let run = |from: Images<'_>, threads| {
            let resources = Resources { threads, stop: None };
            let each = Each { axes, images: from, channels: *filters }.plan(*images, resources).unwrap();
            let own =
                Own { each: &each, weights: &weights, bias, scale: Scale::default(), finish: Finish::default(), tail };
            let mut out = vec![f32::NAN; images * len_of(*filters, n)];
            own.run(&mut out, &mut vec![f32::NAN; each.scratch()], resources).unwrap();
            bits(&planes(&out, *filters, n))
        };
        let want = run(Images::Stored(&stored), 1);
        for threads in [1, 3] {
            assert_eq!(run(Images::Products(&products), threads), want, "{channels} to {filters}, {axes:?}");
        }
        for Finish { activation, .. } in finishes(&[]).skip(6).step_by(4) {
            let plan =
                Dense { finish: Finish { beside: None, activation }, tail: None, ..dense }.plan(*images, resources);
            let (plan, mut stored) = (plan.unwrap(), vec![f32::NAN; stored.len()]);
            plan.run(&mut stored, &mut vec![f32::NAN; plan.scratch()], resources).unwrap();
            let products = Products { activation, tail: None, ..products };
            assert_eq!(
                run(Images::Products(&products), 1),
                run(Images::Stored(&stored), 1),
                "{activation:?}, {axes:?}"
            );
        }
    }

    /// With a NaN here and there, or numbers alone.
    fn check_greatest(&self, has_nan: bool) {
        let Case { images, channels, axes, .. } = self;
        let mut x = samples::<f32>(images * channels * self.input(), 1);
        for (at, x) in x.iter_mut().enumerate() {
            match at % 13 {
                0 if has_nan => *x = f32::NAN,
                1 | 2 => *x = 0.0,
                3 | 4 => *x = -0.0,
                5 | 6 => *x = f32::NEG_INFINITY,
                _ => {}
            }
        }
        let resources = Resources { threads: 1, stop: None };
        let windows = crate::windows::Windows::new(*axes);
        let pooling = Pooling { windows: &windows, counted: &windows, column_major: false };
        let extreme = <f32 as Ordered<f32>>::extreme::<false>();
        let mut want = vec![0.0; images * channels * self.positions()];
        pool::<_, f32, f32>(&Reduced(extreme), &x, pooling, &mut want, &mut [], resources).unwrap();
        let in_blocks = spoiled(blocks(&x, *channels, self.input()), *channels, self.input());
        for threads in [1, 3] {
            let resources = Resources { threads, stop: None };
            let each = Each { axes, images: Images::Stored(&in_blocks), channels: *channels }
                .plan(*images, resources)
                .unwrap();
            let mut out = vec![0.0; images * len_of(*channels, self.positions())];
            greatest(&each, &extreme, &mut out, &mut vec![0.0; each.scratch()], resources).unwrap();
            assert_eq!(bits(&planes(&out, *channels, self.positions())), bits(&want), "{channels}, {axes:?}");
        }
    }

    /// Means, where padding counts up to one entry behind the image, and where it doesn't.
    fn check_mean(&self) {
        let Case { images, channels, axes, .. } = self;
        let mut x = samples::<f32>(images * channels * self.input(), 1);
        x.iter_mut().step_by(5).for_each(|x| *x = -0.0);
        let counted = axes.map(|axis| Axis { input: axis.pad + axis.input + 1, pad: 0, ..axis });
        let in_blocks = spoiled(blocks(&x, *channels, self.input()), *channels, self.input());
        for counted in [counted, *axes] {
            let (windows, counting) = (crate::windows::Windows::new(*axes), crate::windows::Windows::new(counted));
            let pooling = Pooling { windows: &windows, counted: &counting, column_major: false };
            let mut want = vec![0.0; images * channels * self.positions()];
            let resources = Resources { threads: 1, stop: None };
            pool::<_, f32, f32>(&Reduced(Mean), &x, pooling, &mut want, &mut [], resources).unwrap();
            let counts = counted.map(|axis| (0..axis.output).map(|at| axis.taps(at).len()).collect::<Vec<_>>());
            for threads in [1, 3] {
                let resources = Resources { threads, stop: None };
                let each = Each { axes, images: Images::Stored(&in_blocks), channels: *channels }
                    .plan(*images, resources)
                    .unwrap();
                let mut out = vec![0.0; images * len_of(*channels, self.positions())];
                let counts = counts.each_ref().map(|counts| &counts[..]);
                mean(&each, None, counts, &mut out, &mut vec![0.0; each.scratch()], resources).unwrap();
                assert_eq!(bits(&planes(&out, *channels, self.positions())), bits(&want), "{channels}, {axes:?}");
            }
        }
    }
}

/// Sizes with tails, padding on all sides, strides, dilations, sums of several blocks, and wide images.
fn cases() -> Vec<Case> {
    let case = |images, channels, filters, rows: Axis, columns: Axis| Case {
        images,
        channels,
        filters,
        axes: Axis::of_slice([rows, columns]),
    };
    let square = |input, kernel, stride, pad| {
        [axis(input, kernel, stride, 1, [pad; 2]), axis(input, kernel, stride, 1, [pad; 2])]
    };
    let mut cases = Vec::new();
    for (images, channels, filters, [rows, columns]) in [
        (1, 3, 20, square(9, 3, 2, 1)),
        (2, 17, 33, square(7, 3, 1, 1)),
        (1, 16, 16, square(15, 1, 1, 0)),
        (1, 40, 24, square(9, 1, 2, 0)),
        (1, 100, 50, square(5, 3, 1, 1)),
        (1, 6, 64, square(19, 7, 2, 3)),
        (1, 5, 1, square(6, 5, 1, 2)),
        (1, 400, 48, square(4, 1, 1, 0)),
        (1, 64, 48, square(14, 1, 1, 0)),
        (1, 32, 32, square(4, 3, 1, 0)),
        (0, 4, 4, square(4, 1, 1, 0)),
        (1, 4, 4, square(2, 3, 1, 0)),
    ] {
        cases.push(case(images, channels, filters, rows, columns));
    }
    cases.push(case(1, 3, 5, axis(6, 3, 2, 2, [2, 0]), axis(11, 2, 3, 3, [0, 4])));
    cases.push(case(1, 2, 3, axis(1, 1, 1, 1, [3, 3]), axis(2, 1, 5, 1, [9, 9])));
    cases.push(case(1, 2, 18, axis(3, 3, 1, 1, [1, 1]), axis(500, 3, 1, 1, [1, 1])));
    cases.push(case(1, 2, 18, axis(30, 1, 1, 1, [0, 0]), axis(21, 1, 1, 1, [0, 0])));
    cases.truncate(sized(cases.len(), 2));
    cases
}

/// Sums that are many and long enough for taps in padding to be left out: of square windows, and far ones.
fn far_cases() -> Vec<Case> {
    let near = axis(14, 3, 1, 1, [1, 1]);
    let far = |size, dilation| axis(size, 3, 1, dilation, [dilation; 2]);
    let all = [
        (43, 42, [near, near]),
        (15, 24, [far(20, 12), far(19, 24)]),
        (15, 28, [far(16, 30), far(20, 7)]),
        (16, 40, [far(13, 13), far(16, 20)]),
        (10, 24, [axis(20, 5, 2, 3, [6, 6]), far(38, 12)]),
    ];
    let all = all.map(|(channels, filters, axes)| (channels, filters, Axis::of_slice(axes)));
    let deep = (6, 56, [axis(3, 3, 1, 2, [2, 2]), axis(7, 3, 1, 1, [1, 1]), axis(7, 3, 1, 1, [1, 1])]);
    let cases = all.into_iter().chain([deep]);
    let cases = cases.map(|(channels, filters, axes)| Case { images: 1, channels, filters, axes });
    cases.take(sized(6, 0)).collect()
}

/// Images of several slices: few and many of them, in place, read apart, in padding, and in bands of each form.
fn deep_cases() -> Vec<Case> {
    let small = |input| axis(input, 3, 1, 1, [1; 2]);
    let single = |input| axis(input, 1, 1, 1, [0; 2]);
    let all = [
        (1, 2, 5, [axis(1, 3, 1, 1, [3, 3]), axis(2, 1, 1, 1, [1, 1]), small(3)]),
        (2, 3, 20, [axis(5, 3, 2, 1, [1, 0]), axis(9, 3, 2, 1, [1, 1]), axis(8, 5, 3, 1, [2, 2])]),
        (1, 17, 18, [small(6), small(2), small(3)]),
        (1, 16, 16, [axis(7, 2, 2, 3, [0, 0]), axis(6, 3, 1, 1, [0, 0]), axis(7, 3, 1, 2, [0, 0])]),
        (1, 40, 24, [single(3), single(5), single(6)]),
        (1, 40, 24, [small(3), single(5), single(6)]),
        (1, 33, 16, [single(4), axis(9, 1, 2, 1, [0, 0]), small(6)]),
        (1, 3, 4, [small(2), small(3), small(230)]),
        (0, 4, 4, [small(2), small(2), small(2)]),
    ];
    let cases = all.map(|(images, channels, filters, axes)| Case { images, channels, filters, axes });
    cases.into_iter().take(sized(9, 1)).collect()
}

/// The places of windows of one element are one long row, which threads share in equal parts; other images are shared by rows.
#[test]
fn threads_share_places_evenly() {
    let bands = |size, kernel, threads| {
        let axes = [axis(size, kernel, 1, 1, [kernel / 2; 2]); 2];
        let grid =
            Grid::of::<f32>(&Axis::of_slice(axes), 16, &Source::Blocks(&[]), ELEMENTS, threads, threads).unwrap();
        let places = (0..grid.bands()).map(|at| grid.band(at)).map(|band| band.rows.len() * band.columns.len());
        places.collect::<Vec<_>>()
    };
    assert_eq!(bands(14, 1, 1), [196]);
    assert_eq!(bands(14, 1, 2), [98; 2]);
    assert_eq!(bands(28, 1, 3), [131, 131, 131, 131, 131, 129]);
    assert_eq!(bands(14, 3, 2), [98; 2]);
}

#[test]
fn convolutions_of_blocks_are_those_of_planes() {
    cases().iter().for_each(Case::check_dense);
}

#[test]
fn several_slices() {
    deep_cases().iter().for_each(Case::check_dense);
}

/// Bands have about as many slices as rows; threads share slices, if they are as many for each, or rows.
#[test]
fn slices_of_a_band() {
    let rows = |[slices, size]: [usize; 2], channels, threads| {
        let axes = [axis(slices, 3, 1, 1, [1; 2]), axis(size, 3, 1, 1, [1; 2]), axis(size, 3, 1, 1, [1; 2])];
        let grid = Grid::of::<f32>(&axes, channels, &Source::Blocks(&[]), ELEMENTS, threads, threads).unwrap();
        (0..grid.bands()).map(|at| grid.band(at)).map(|band| [band.slices, band.rows]).collect::<Vec<_>>()
    };
    assert_eq!(rows([4, 6], 16, 1), [[0..4, 0..6]]);
    assert_eq!(rows([4, 6], 16, 2), [[0..2, 0..6], [2..4, 0..6]]);
    assert_eq!(rows([3, 6], 16, 2), [[0..3, 0..3], [0..3, 3..6]]);
    let [first, .., last] = &rows([6, 40], 32, 1)[..] else { panic!("there are several bands") };
    assert_eq!([first, last], [&[0..3, 0..7], &[3..6, 35..40]]);
}

/// All filters see some steps of images that are far before any sees the next.
#[test]
fn images_that_are_far() {
    let case = Case { images: 1, channels: 450, filters: 70, axes: Axis::of_slice([axis(13, 1, 1, 1, [0; 2]); 2]) };
    assert!(Grid::of::<f32>(&case.axes, case.channels, &Source::Planes(&[]), ELEMENTS, 1, 1).unwrap().is_far());
    if !cfg!(miri) {
        case.check_dense();
    }
}

#[test]
fn taps_in_padding() {
    for case in far_cases() {
        case.check_dense();
        let (pixels, weights) = (case.images * case.channels * case.input(), case.filters * case.steps());
        // What is left of products too small for any number is -0, unless 0 is added.
        let tiny: Vec<f32> = samples::<f32>(weights, 2).iter().map(|w| w * 1e-30).collect();
        let (x, bias) = (vec![1e-30; pixels], vec![-0.0; case.filters]);
        case.check_dense_of([&x, &tiny, &bias], true, None);
        if case.channels > 20 {
            continue;
        }
        // Infinity is NaN in padding.
        let infinite: Vec<f32> = (0..weights).map(|k| if k % 101 == 0 { f32::INFINITY } else { 1.0 }).collect();
        case.check_dense_of([&samples::<f32>(pixels, 1), &infinite, &bias], false, None);
    }
}

/// Groups together give what each gives by itself.
#[test]
fn groups_of_blocks_and_parts() {
    let few = [axis(7, 3, 1, 1, [1, 1]), axis(10, 3, 2, 1, [1, 0])];
    // So much that single channels would leave out the taps in padding.
    let many = [axis(12, 5, 1, 1, [2, 2]), axis(14, 7, 1, 1, [3, 3])];
    let cases = [
        (3, 8, 8),
        (7, 4, 4),
        (2, 16, 16),
        (3, 16, 48),
        (2, 32, 64),
        (2, 48, 96),
        (4, 8, 8),
        (5, 24, 24),
        (3, 8, 40),
        (4, 24, 16),
        (3, 40, 64),
        (4, 32, 8),
    ];
    let cases = cases
        .map(|case| (few, case))
        .into_iter()
        .chain([(8, 8, 8), (16, 4, 4), (3, 24, 24), (3, 8, 64)].map(|case| (many, case)));
    let cases: Vec<_> = cases.take(sized(16, 2)).collect();
    at_each_level(|| {
        for (axes, (groups, of_each, filters)) in &cases {
            let (groups, of_each, filters) = (*groups, *of_each, *filters);
            let all = |of: fn(&Axis) -> usize| axes.iter().map(of).product::<usize>();
            let (input, n, taps) = (all(|axis| axis.input), all(|axis| axis.output), all(|axis| axis.kernel));
            let (channels, k) = (groups * of_each, of_each * taps);
            let tail = |_: usize, sums: &mut [f32]| sums.iter_mut().for_each(|sum| *sum = sum.max(-0.25));
            let run = |x: &[f32], w: &[f32], bias: &[f32], groups, in_blocks| {
                let (channels, filters) = (groups * of_each, groups * filters);
                let resources = Resources { threads: 2, stop: None };
                let mut weights = vec![f32::NAN; len_of(filters, k)];
                pack(bytemuck::cast_slice(w), filters, groups, &mut weights, resources).unwrap();
                let stored = spoiled(blocks(x, channels, input), channels, input);
                let images = if in_blocks { Source::Blocks(&stored[..]) } else { Source::Planes(x) };
                let (bias, tail, weights) = (Some(bias), Some(&tail as &super::Tail<'_>), &weights[..]);
                let dense = Dense {
                    axes: &Axis::of_slice(*axes),
                    images,
                    channels,
                    filters,
                    groups,
                    weights,
                    finite: true,
                    bias,
                    scale: Scale::default(),
                    finish: Finish::default(),
                    tail,
                };
                let images = x.len() / (channels * input);
                let plan = dense.plan(images, resources).unwrap();
                let mut out = vec![f32::NAN; images * len_of(filters, n)];
                plan.run(&mut out, &mut vec![f32::NAN; plan.scratch()], resources).unwrap();
                bits(&planes(&out, filters, n))
            };
            let x = samples::<f32>(2 * channels * input, 1);
            let (w, bias) = (samples::<f32>(groups * filters * k, 2), samples::<f32>(groups * filters, 3));
            let tiny = |all: &[f32]| all.iter().map(|x| x * 1e-30).collect::<Vec<_>>();
            let shared = share_blocks(groups * of_each, groups * filters, groups);
            let layouts = [true, false].into_iter().take(if shared { 1 } else { 2 });
            // What is left of products too small for any number is -0, unless 0 is added.
            let small = (tiny(&x), tiny(&w), vec![-0.0; bias.len()]);
            for (x, w, bias) in [(x, w, bias), small] {
                let apart: Vec<u32> = (0..2 * groups)
                    .flat_map(|at| {
                        let (own, group) = (at * of_each * input, at % groups);
                        let (w, bias) = (&w[group * filters * k..], &bias[group * filters..]);
                        run(&x[own..own + of_each * input], &w[..filters * k], &bias[..filters], 1, true)
                    })
                    .collect();
                for in_blocks in layouts.clone() {
                    assert!(run(&x, &w, &bias, groups, in_blocks) == apart, "{groups} of {of_each} to {filters}");
                }
            }
        }
    });
}

#[test]
fn channels_alone() {
    cases().iter().chain(&deep_cases()).for_each(Case::check_own);
}

#[test]
fn channels_alone_of_products() {
    at_each_level(|| cases().iter().chain(&deep_cases()).for_each(Case::check_products));
}

#[test]
fn greatest_of_windows() {
    at_each_level(|| {
        for case in cases().iter().chain(&deep_cases()) {
            case.check_greatest(true);
            case.check_greatest(false);
        }
    });
}

#[test]
fn means_of_windows() {
    at_each_level(|| cases().iter().chain(&deep_cases()).for_each(Case::check_mean));
}

#[test]
fn there_and_back() {
    for (images, channels, positions) in [(1, 1, 1), (2, 17, 35), (3, 32, 16), (1, 5, 0), (0, 5, 4), (1, 0, 4)] {
        let x = samples::<f32>(images * channels * positions, 5);
        assert_eq!(planes(&blocks(&x, channels, positions), channels, positions), x);
    }
}

#[test]
fn gates() {
    for (images, channels, positions) in
        [(1, 16, 49), (2, 40, 7), (3, 5, 1), (2, 33, sized(2000, 3)), (0, 5, 4), (1, 5, 0)]
    {
        let x = samples::<f32>(images * channels * positions, 1);
        let in_blocks = spoiled(blocks(&x, channels, positions), channels, positions);
        for of_each in [true, false] {
            let numbers = samples::<f32>(if of_each { images * channels } else { channels }, 2);
            let number = |at: usize| numbers[if of_each { at / positions } else { at / positions % channels }];
            let want: Vec<f32> = x.iter().enumerate().map(|(at, x)| x * number(at)).collect();
            at_each_level(|| {
                for threads in [1, 3] {
                    let resources = Resources { threads, stop: None };
                    let (mut there, mut out) = (in_blocks.clone(), vec![f32::NAN; in_blocks.len()]);
                    gate(None, &numbers, channels, positions, &mut there, resources).unwrap();
                    gate(Some(&in_blocks), &numbers, channels, positions, &mut out, resources).unwrap();
                    assert_eq!(planes(&there, channels, positions), want);
                    assert_eq!(planes(&out, channels, positions), want);
                }
            });
        }
    }
    let resources = Resources { threads: 1, stop: None };
    assert_eq!(gate(None, &[1.0; 3], 2, 1, &mut [0.0; 16], resources), Err(Stopped::Misfit));
}
