//! Windows of bytes in blocks beside sums by the definition.

use super::super::tests::axis;
use super::super::{CHANNELS, from_blocks, len_of, to_blocks};
use super::{Bytes, Kind, Requantize, pack_bytes, packed_bytes};
use crate::Resources;
use crate::testing::{at_each_level, sized};
use crate::windows::Axis;

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

    fn run(&self, kind: Kind<'_>, x: &[u8], filters: usize, tail: bool) -> Vec<Vec<u8>> {
        let Case { images, channels, axes, .. } = self;
        let (input, positions) = (self.sizes(|axis| axis.input), self.sizes(|axis| axis.output));
        let in_blocks = blocks(x, *images, *channels, input);
        let flip = |_: usize, part: &mut [u8]| part.iter_mut().for_each(|byte| *byte = !*byte);
        let each = |threads: usize| {
            let resources = Resources { threads, stop: None };
            let bytes = Bytes {
                axes,
                images: &in_blocks,
                channels: *channels,
                kind,
                tail: if tail { Some(&flip) } else { None },
            };
            let plan = bytes.plan(*images, resources).unwrap();
            let mut out = vec![7; images * len_of(filters, positions)];
            plan.run(&mut out, &mut vec![u32::MAX; plan.scratch()], resources).unwrap();
            let mut planes = vec![9; images * filters * positions];
            from_blocks(&out, filters, positions, &mut planes, resources).unwrap();
            planes
        };
        [1, 3].map(each).into()
    }

    fn check(&self, own: bool, flip: u8, (outside, zero, least): (u8, u8, u8)) {
        let Case { images, channels, axes, .. } = self;
        let filters = if own { *channels } else { self.filters };
        let of_each = if own { 1 } else { *channels };
        let (taps, input) = (self.sizes(|axis| axis.kernel), self.sizes(|axis| axis.input));
        let positions = self.sizes(|axis| axis.output);
        let (x, w) = (random(images * channels * input, 1), random(filters * of_each * taps, 2));
        let many = flip == 0;
        let count = if many { filters } else { 1 };
        let bias: Vec<i32> = random(count, 3).into_iter().map(|byte| 40 * (i32::from(byte) - 128)).collect();
        let scale = 0.5 / (taps * of_each) as f32 / 64.0;
        let factors: Vec<f32> = random(count, 4).into_iter().map(|byte| f32::from(byte) * scale / 128.0).collect();
        let mut want = Vec::new();
        for (image, filter) in (0..*images).flat_map(|image| (0..filters).map(move |filter| (image, filter))) {
            let first = if own { filter } else { 0 };
            for at in 0..positions {
                let mut sum = if many { bias[filter] } else { bias[0] };
                for channel in 0..of_each {
                    let plane = &x[(image * channels + first + channel) * input..][..input];
                    for (tap, seen) in self.window(plane, at).into_iter().enumerate() {
                        let weight = (w[(filter * of_each + channel) * taps + tap] ^ flip) as i8;
                        let seen = i32::from(seen.unwrap_or(outside)) - i32::from(outside);
                        sum += seen * i32::from(weight);
                    }
                }
                let scaled = sum as f32 * if many { factors[filter] } else { factors[0] };
                want.push((scaled.round_ties_even() + f32::from(zero)).clamp(least.into(), 255.0) as u8);
            }
        }
        let resources = Resources { threads: 1, stop: None };
        let mut weights = vec![u32::MAX; packed_bytes(filters, of_each, taps)];
        pack_bytes(&w, (filters, of_each), own, flip, &mut weights, resources).unwrap();
        let requantize = Requantize { weights: &weights, outside, bias: Some(&bias), factors: &factors, zero, least };
        let kind = if own { Kind::Own(requantize) } else { Kind::All(filters, requantize) };
        for out in self.run(kind, &x, filters, false) {
            assert_eq!(out, want, "{channels} to {filters}, {axes:?}, {own}, {flip}");
        }
        let want: Vec<u8> = want.into_iter().map(|byte| !byte).collect();
        for out in self.run(kind, &x, filters, true) {
            assert_eq!(out, want, "{channels} to {filters}, {axes:?}, {own}, {flip}, and a tail");
        }
    }

    fn check_greatest(&self) {
        let (input, positions) = (self.sizes(|axis| axis.input), self.sizes(|axis| axis.output));
        let x = random(self.images * self.channels * input, 1);
        let planes = x.chunks(input.max(1)).filter(|_| input > 0);
        let greatest = |plane: &[u8], at: usize| self.window(plane, at).into_iter().flatten().max().unwrap_or(0);
        let want: Vec<u8> =
            planes.flat_map(|plane| (0..positions).map(|at| greatest(plane, at)).collect::<Vec<_>>()).collect();
        for out in self.run(Kind::Greatest, &x, self.channels, false) {
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
        (1, 100, 50, square(5, 3, 1, 1)),
        (1, 6, 64, square(19, 7, 2, 3)),
        (1, 5, 1, square(6, 5, 1, 2)),
        (1, 70, 48, square(14, 1, 1, 0)),
        (2, 32, 32, square(4, 3, 1, 0)),
        (0, 4, 4, square(4, 1, 1, 0)),
        (1, 4, 4, square(2, 3, 1, 0)),
        (1, 3, 5, [axis(6, 3, 2, 2, [2, 0]), axis(11, 2, 3, 3, [0, 4])]),
        (1, 2, 3, [axis(1, 1, 1, 1, [3, 3]), axis(2, 1, 5, 1, [9, 9])]),
        (1, 2, 18, [axis(3, 3, 1, 1, [1, 1]), axis(500, 3, 1, 1, [1, 1])]),
        (1, 600, 440, square(2, 1, 1, 0)),
    ]
    .into_iter()
    .map(|(images, channels, filters, axes)| Case { images, channels, filters, axes })
    .collect();
    cases.truncate(sized(cases.len(), 2));
    cases
}

#[test]
fn sums_of_bytes() {
    at_each_level(|| {
        for case in cases() {
            case.check(false, 0, (0, 0, 0));
            case.check(false, 0x80, (131, 77, 90));
        }
    });
}

#[test]
fn sums_of_bytes_of_channels_alone() {
    at_each_level(|| {
        for case in cases() {
            case.check(true, 0, (200, 128, 0));
            case.check(true, 0x80, (0, 3, 3));
        }
    });
}

#[test]
fn greatest_bytes_of_windows() {
    at_each_level(|| cases().iter().for_each(Case::check_greatest));
}
