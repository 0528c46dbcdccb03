//! The right operand of a convolution: what windows of an image show, without a copy of it.
//!
//! Rows run through the channels and the positions in a window, columns through the windows: the positions of the output.

#[cfg(target_arch = "x86_64")]
use super::lines::{OfLines, Panel};
use super::number::{Number, Operand};
use super::operand::{Elements, View, ZeroPoints};
use super::pack::{MOST_LANES, Side};
use super::quads;
use crate::windows::Axis;
use crate::{Stopped, volume};
use bytemuck::cast_slice_mut;
use smallvec::SmallVec;
#[cfg(target_arch = "x86_64")]
use std::any::TypeId;
use std::ops::Range;

/// Windows of an image `[channels, spatial dimensions..]`, which is dense. Images of a batch, and groups of channels, may
/// be any number of elements apart.
#[derive(Debug, Clone, Copy)]
pub struct Windows<'a, T> {
    pub(super) elements: Elements<'a, T>,
    channels: usize,
    /// The spatial dimensions, outermost first.
    axes: &'a [Axis],
    /// What windows show outside of the image.
    outside: T,
    pub(super) zero: Option<ZeroPoints<'a, T>>,
}

impl Axis {
    /// The first window whose view at a position is at `place` or after it, where the image starts at `pad`.
    pub(super) fn first_at(&self, place: usize, position: usize) -> usize {
        let distance = place.saturating_sub(position * self.dilation);
        if self.stride == 1 { distance } else { distance.div_ceil(self.stride) }
    }

    /// Whether no place overflows.
    pub fn fits(&self) -> bool {
        let last = |count: usize, distance: usize| count.saturating_sub(1).checked_mul(distance);
        let end = last(self.output, self.stride).and_then(|end| end.checked_add(last(self.kernel, self.dilation)?));
        let small = |end: Option<usize>| end.is_some_and(|end| isize::try_from(end).is_ok());
        self.stride > 0 && small(end) && small(self.pad.checked_add(self.input))
    }
}

impl<'a, T: Number> Windows<'a, T> {
    /// Windows of an image with so many channels, surrounded by elements with the value `outside`: 0, or a zero point.
    pub fn new<S: Operand<Sum = T>>(image: &'a [S], channels: usize, axes: &'a [Axis], outside: S) -> Windows<'a, T> {
        let mut number = [T::ZERO];
        S::widen(bytemuck::bytes_of(&outside), &mut number);
        let [outside] = number;
        Windows { elements: Elements::new::<S>(bytemuck::cast_slice(image)), channels, axes, outside, zero: None }
    }

    /// The windows less their zero points, also outside of the image.
    pub fn less(self, zero: ZeroPoints<'a, T>) -> Windows<'a, T> {
        Windows { zero: Some(zero), ..self }
    }

    /// The image as a matrix, if each window shows one element of each channel, in their order.
    pub(super) fn as_view(&self) -> Option<View<'a, T>> {
        let is_whole = |axis: &Axis| {
            let Axis { input, kernel, stride, pad, output, .. } = *axis;
            (kernel, pad) == (1, 0) && (input == output && stride == 1 || (input, output) == (1, 1))
        };
        let row = volume(1, self.axes.iter().map(|axis| &axis.input));
        let view = View { elements: self.elements, row, column: 1, zero: self.zero };
        self.axes.iter().all(is_whole).then_some(view)
    }

    /// Fails unless there are so many rows and columns, of an image from an element on.
    pub(super) fn check(&self, from: usize, rows: usize, columns: usize) -> Result<(), Stopped> {
        let product = |unit: usize, of: fn(&Axis) -> usize| {
            self.axes.iter().try_fold(unit, |product, axis| product.checked_mul(of(axis)))
        };
        let end = product(self.channels, |axis| axis.input).and_then(|size| from.checked_add(size));
        let fits = self.axes.iter().all(Axis::fits)
            && product(self.channels, |axis| axis.kernel) == Some(rows)
            && product(1, |axis| axis.output) == Some(columns)
            && end.is_some_and(|end| end <= self.elements.len());
        if fits { Ok(()) } else { Err(Stopped::Misfit) }
    }

    /// As [`panel`](Windows::panel), of bytes as [`quads`].
    pub(super) fn quads(&self, image: usize, steps: &Range<usize>, columns: Range<usize>, to: &mut [T]) {
        /// Steps that are done at once.
        const STEPS: usize = 72 * quads::SIZE;
        let lanes = columns.len();
        let mut room = [0u8; STEPS * MOST_LANES];
        let parts = to.chunks_mut(STEPS / quads::SIZE * lanes).zip(steps.clone().step_by(STEPS));
        for (to, first) in parts {
            let steps = first..steps.end.min(first + STEPS);
            let rows = room.get_mut(..steps.len() * lanes).unwrap_or(&mut []);
            self.bytes(image, &steps, columns.clone(), rows);
            self.quads_of(rows, (steps.len(), lanes), to);
        }
    }

    fn quads_of(&self, rows: &[u8], (count, lanes): (usize, usize), to: &mut [T]) {
        let signed = self.elements.bytes() == Some(true);
        quads::panel(rows, 0, (lanes, 1), (count, lanes), cast_slice_mut(to));
        quads::turn((Side::Right, signed), (count, lanes), cast_slice_mut(to));
    }

    /// As [`panel`](Windows::panel), of bytes as they are: a row of bytes for each step.
    fn bytes(&self, image: usize, steps: &Range<usize>, columns: Range<usize>, to: &mut [u8]) {
        // The low byte of the number is the element.
        let outside = bytemuck::bytes_of(&self.outside).first().copied().unwrap_or(0);
        #[cfg(target_arch = "x86_64")]
        if of_lines::<u8>(self.axes, self.elements.image(image), outside, (steps, &columns), to) {
            return;
        }
        // Most rows are whole, and a copy of a known size is a load and a store.
        let copy = |from: &[u8], to: &mut [u8]| match (from.first_chunk::<MOST_LANES>(), to.first_chunk_mut()) {
            (Some(from), Some(to)) => *to = *from,
            _ => from.iter().zip(to).for_each(|(from, to)| *to = *from),
        };
        show(self, outside, (self.elements.image(image), 1), copy, steps, columns, to);
    }

    /// Packs some steps of some columns, of the image that starts at an element.
    pub(super) fn panel(&self, image: usize, steps: &Range<usize>, columns: Range<usize>, to: &mut [T]) {
        self.elements.windows(self, image, steps, columns, to);
    }
}

/// The dimensions around the innermost one, at a line: one channel, and one position in each of them.
pub(super) struct Line<'a> {
    channel: usize,
    /// For each dimension, its position, and where the window starts.
    at: SmallVec<[(&'a Axis, usize, usize); 4]>,
}

impl<'a> Line<'a> {
    /// The line with a number, in the windows of a row of outputs.
    pub(super) fn new(axes: &'a [Axis], mut number: usize, mut row: usize) -> Line<'a> {
        let mut at: SmallVec<[_; 4]> = axes.iter().map(|axis| (axis, 0, 0)).collect();
        for (axis, position, start) in at.iter_mut().rev() {
            (*position, number) = (number % axis.kernel, number / axis.kernel);
            (*start, row) = (row % axis.output * axis.stride, row / axis.output);
        }
        Line { channel: number, at }
    }

    pub(super) fn next(&mut self) {
        for (axis, position, _) in self.at.iter_mut().rev() {
            *position += 1;
            if *position < axis.kernel {
                return;
            }
            *position = 0;
        }
        self.channel += 1;
    }

    /// The number of the line in the image, if it isn't outside.
    pub(super) fn in_image(&self) -> Option<usize> {
        self.at.iter().try_fold(self.channel, |line, (axis, position, start)| {
            let place = (start + position * axis.dilation).checked_sub(axis.pad)?;
            (place < axis.input).then_some(line * axis.input + place)
        })
    }
}

/// [`Windows::panel`] for a type of elements.
pub(super) fn panel<S: Operand>(
    windows: &Windows<'_, S::Sum>,
    elements: &[u8],
    steps: &Range<usize>,
    columns: Range<usize>,
    to: &mut [S::Sum],
) {
    #[cfg(target_arch = "x86_64")]
    if let (Ok(elements), Ok(to)) = (bytemuck::try_cast_slice(elements), bytemuck::try_cast_slice_mut(&mut *to))
        && TypeId::of::<S>() == TypeId::of::<f32>()
        && of_lines::<f32>(windows.axes, elements, bytemuck::cast(windows.outside), (steps, &columns), to)
    {
        return;
    }
    show(windows, windows.outside, (elements, size_of::<S>()), S::widen, steps, columns, to);
}

/// As [`show`], line by line. Returns false if there is no loop for such windows.
#[cfg(target_arch = "x86_64")]
fn of_lines<T: OfLines>(
    axes: &[Axis],
    elements: &[T],
    outside: T,
    (steps, columns): (&Range<usize>, &Range<usize>),
    to: &mut [T],
) -> bool {
    let Some((inner, outer)) = axes.split_last() else { return false };
    let of = |size: fn(&Axis) -> usize| axes.iter().map(size).product();
    let (channel, taps) = (of(|axis| axis.input), of(|axis| axis.kernel));
    let (steps, columns) = (steps.clone(), columns.clone());
    T::fill(&Panel { inner, outer, elements, channel, taps, outside, steps, columns }, to)
}

/// Writes for each step and column what the window shows: elements of a size, widened, or what is `outside`.
///
/// All places are within the elements, as [`Windows::check`] found.
#[allow(clippy::indexing_slicing)] // as the caller promises
#[inline(always)]
fn show<T: Number, P: Copy>(
    windows: &Windows<'_, T>,
    outside: P,
    (elements, size): (&[u8], usize),
    widen: impl Fn(&[u8], &mut [P]),
    steps: &Range<usize>,
    columns: Range<usize>,
    to: &mut [P],
) {
    let Some((inner, outer)) = windows.axes.split_last() else { return };
    let lanes = columns.len();
    let from = |at: usize, count: usize| &elements[at * size..][..count * size];
    let mut column = columns.start;
    while column < columns.end {
        // Columns whose windows differ in the innermost dimension only.
        let first = column % inner.output;
        let run = first..inner.output.min(first + columns.end - column);
        let mut line = Line::new(outer, steps.start / inner.kernel, column / inner.output);
        let (mut position, mut start) = (steps.start % inner.kernel, line.in_image());
        for to in to.chunks_exact_mut(lanes) {
            let to = &mut to[column - columns.start..][..run.len()];
            if let Some(line) = start {
                let low = inner.first_at(inner.pad, position).clamp(run.start, run.end);
                let high = inner.first_at(inner.pad + inner.input, position).clamp(low, run.end);
                let (before, rest) = to.split_at_mut(low - run.start);
                let (inside, after) = rest.split_at_mut(high - low);
                before.iter_mut().chain(after).for_each(|to| *to = outside);
                if !inside.is_empty() {
                    let at = line * inner.input + low * inner.stride + position * inner.dilation - inner.pad;
                    if inner.stride == 1 {
                        widen(from(at, inside.len()), inside);
                    } else {
                        for (at, to) in (at..).step_by(inner.stride).zip(inside) {
                            widen(from(at, 1), std::slice::from_mut(to));
                        }
                    }
                }
            } else {
                to.fill(outside);
            }
            position += 1;
            if position == inner.kernel {
                position = 0;
                line.next();
                start = line.in_image();
            }
        }
        column += run.len();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Sample, one, run, samples, sum, written};
    use super::super::{Batch, Broadcast, Left, Packed, Product, Requantized, Right, Scaled, Side, Strides};
    use super::super::{pack, packed_len_of};
    use super::*;
    use crate::Resources;
    use crate::testing::at_each_level;
    use crate::testing::{on_threads, sized};
    use half::f16;

    /// A convolution of a batch of images, in groups.
    #[derive(Debug)]
    struct Case {
        images: usize,
        groups: usize,
        /// Channels of the output and of the image, in a group.
        m: usize,
        channels: usize,
        axes: Vec<Axis>,
    }

    fn axis(input: usize, kernel: usize, stride: usize, dilation: usize, pad: usize, pad_after: usize) -> Axis {
        let reach = (kernel.max(1) - 1) * dilation + 1;
        let output = (input + pad + pad_after).checked_sub(reach).map_or(0, |rest| rest / stride + 1);
        Axis { input, kernel, stride, dilation, pad, output }
    }

    fn check<A: Sample<Sum = O::Sum>, B: Sample<Sum = O::Sum>, O: Sample>(case: &Case, outside: B, zero: Option<B>) {
        let Case { images, groups, m, channels, axes } = case;
        let (image_size, n): (usize, usize) =
            (axes.iter().map(|axis| axis.input).product(), axes.iter().map(|axis| axis.output).product());
        let positions: usize = axes.iter().map(|axis| axis.kernel).product();
        let k = channels * positions;
        let weights = samples::<A>(groups * m * k, 1);
        let pixels = samples::<B>(images * groups * channels * image_size, 2);
        let number = |element: B| zero.map_or(one(element), |zero| one(element).sub(one(zero)));
        let pixel = |image: usize, p: usize, j: usize| {
            let (mut position, mut output, mut at, mut unit) = (p % positions, j, 0, 1);
            for axis in axes.iter().rev() {
                let place = output % axis.output * axis.stride + position % axis.kernel * axis.dilation;
                (position, output) = (position / axis.kernel, output / axis.output);
                if place < axis.pad || place - axis.pad >= axis.input {
                    return number(outside);
                }
                at += (place - axis.pad) * unit;
                unit *= axis.input;
            }
            number(pixels[(image * channels + p / positions) * image_size + at])
        };
        let mut want = Vec::new();
        for (image, group) in (0..*images).flat_map(|image| (0..*groups).map(move |group| (image, group))) {
            for (i, j) in (0..*m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let weight = |p: usize| one(weights[(group * m + i) * k + p]);
                want.push(written::<O>(sum(k, |p| (weight(p), pixel(image * groups + group, p, j)))));
            }
        }
        let group_size = channels * image_size;
        let batch =
            [Batch { size: *images, a: 0, b: groups * group_size }, Batch { size: *groups, a: m * k, b: group_size }];
        let zero_point = zero.into_iter().collect::<Vec<_>>();
        at_each_level(|| {
            let mut windows = Windows::new(&pixels, *channels, axes, outside);
            if zero.is_some() {
                windows = windows.less(ZeroPoints::new(&zero_point, Strides::ONE));
            }
            let weights = View::rows(&weights, k);
            let mut room = vec![O::Sum::ZERO; packed_len_of::<A>(Side::Left, *groups, (*m, k))];
            let alone = Resources { threads: 1, stop: None };
            pack(Side::Left, weights, (*groups, m * k), (*m, k), &mut room, alone).unwrap();
            for a in [Left::View(weights), Left::Packed(Packed::of::<A>(Side::Left, &room))] {
                let product = Product::<O> { m: *m, k, n, a, b: Right::Windows(windows), batch: &batch, epilogue: &[] };
                for threads in if want.len() * k < 1 << 18 { 1..2 } else { 1..4 } {
                    let resources = Resources { threads, stop: None };
                    let plan = product.plan(resources);
                    let mut out = samples::<O>(want.len(), 3);
                    let mut scratch = vec![O::Sum::ZERO; plan.scratch()];
                    plan.run(&mut out, &mut scratch, resources).unwrap();
                    let wrong = out.iter().zip(&want).position(|(out, want)| out != want);
                    assert_eq!(wrong, None, "{case:?}, {threads} threads, {}", std::any::type_name::<(A, B, O)>());
                }
            }
        });
    }

    fn check_types(case: &Case) {
        check::<f32, f32, f32>(case, 0.0, None);
        check::<f16, f16, f16>(case, f16::ZERO, None);
        check::<i8, u8, i32>(case, 7, Some(7));
    }

    fn case(m: usize, channels: usize, axes: &[Axis]) -> Case {
        Case { images: 1, groups: 1, m, channels, axes: axes.to_vec() }
    }

    #[test]
    fn windows_of_each_rank() {
        check_types(&case(3, 2, &[]));
        check_types(&case(3, 2, &[axis(7, 3, 1, 1, 1, 1)]));
        check_types(&case(3, 2, &[axis(9, 3, 2, 2, 2, 1)]));
        check_types(&case(2, 3, &[axis(5, 3, 1, 1, 1, 0), axis(6, 2, 1, 1, 0, 1)]));
        check_types(&case(2, 2, &[axis(4, 2, 2, 1, 1, 1), axis(5, 3, 1, 2, 3, 2), axis(3, 1, 1, 1, 0, 0)]));
        check_types(&case(1, 1, &[axis(2, 2, 1, 1, 0, 0); 4]));
        // The image as it is, and less of it.
        check_types(&case(2, 3, &[axis(4, 1, 1, 3, 0, 0), axis(5, 1, 1, 1, 0, 0)]));
        check_types(&case(2, 3, &[axis(4, 1, 2, 1, 0, 0), axis(1, 1, 9, 1, 0, 0)]));
        check_types(&case(2, 3, &[axis(4, 1, 1, 1, 0, 0), axis(5, 1, 1, 1, 0, 2)]));
    }

    #[test]
    fn windows_of_nothing() {
        for m in [0, 1, 2] {
            check_types(&case(m, 0, &[axis(7, 3, 1, 1, 1, 1)]));
            check_types(&case(m, 2, &[axis(3, 4, 1, 1, 0, 0)]));
            check_types(&case(m, 2, &[axis(3, 0, 1, 1, 0, 0), axis(3, 2, 1, 1, 0, 0)]));
            // Padding alone.
            check_types(&case(m, 2, &[axis(0, 2, 1, 1, 3, 2), axis(2, 1, 1, 1, 0, 0)]));
            check_types(&case(m, 2, &[axis(2, 1, 1, 1, 0, 0), axis(0, 2, 1, 1, 3, 2)]));
            check_types(&case(m, 2, &[axis(3, 2, 5, 9, 40, 30)]));
        }
        let none = Case { images: 0, groups: 2, ..case(2, 3, &[axis(5, 3, 1, 1, 1, 1)]) };
        check_types(&none);
    }

    /// More steps and columns than a block has, batches, groups, and threads.
    #[test]
    fn windows_of_blocks() {
        let square =
            |size: usize, kernel: usize, stride: usize, pad: usize| [axis(size, kernel, stride, 1, pad, pad); 2];
        let cases = [
            Case { images: 2, groups: 3, ..case(2, 2, &square(6, 3, 1, 1)) },
            // 405 steps, which end in the middle of a window, and 900 columns.
            case(5, 45, &square(sized(30, 3), 3, 1, 1)),
            case(sized(30, 2), sized(90, 2), &square(sized(15, 3), 3, 2, 1)),
            case(1, 9, &square(sized(40, 4), 7, 1, 3)),
            case(5, 1, &[axis(sized(3000, 30), 50, 3, 2, 17, 60)]),
            Case { images: 2, groups: 1, ..case(300, 3, &[axis(3, 2, 1, 1, 0, 0)]) },
            // Rows of two windows with many taps.
            case(2, 1, &[axis(sized(40, 22), 20, 1, 1, 0, 0), axis(21, 20, 1, 1, 0, 0)]),
            case(2, 2, &[axis(sized(25, 9), 3, 2, 2, 3, 1), axis(sized(41, 9), 3, 2, 3, 2, 2)]),
        ];
        on_threads(3, || cases.iter().for_each(|case| check::<f32, f32, f32>(case, 0.0, None)));
        check::<u8, i8, i32>(&cases[1], 9, Some(9));
        check::<u8, i8, i32>(&cases[2], -3, Some(-3));
        check::<i8, u8, i32>(&cases[4], 200, Some(200));
        check::<u8, u8, i32>(&cases[7], 5, None);
        check::<f32, f32, f32>(&cases[0], 2.5, None);
    }

    #[test]
    fn random_windows() {
        let mut seed = 5u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..sized(150, 5) {
            let axes: Vec<Axis> = (0..random(4))
                .map(|_| {
                    let (size, kernel, stride) = (random(9), 1 + random(4), 1 + random(3));
                    axis(size, kernel, stride, 1 + random(3), random(4), random(4))
                })
                .collect();
            let (images, groups) = (1 + random(2), 1 + random(2));
            let case = Case { images, groups, m: 1 + random(4), channels: random(4), axes };
            check::<f32, f32, f32>(&case, 0.0, None);
            check::<i8, i8, i32>(&case, 5, Some(5));
        }
    }

    /// A convolution of quantized images in groups, with all that belongs to it.
    #[test]
    fn a_quantized_convolution() {
        let (images, groups, m, channels) = (2, 3, 5, 2);
        let axes = [axis(6, 3, 1, 1, 1, 1), axis(7, 2, 2, 1, 0, 1)];
        let (k, n, size) = (channels * 3 * 2, axes[0].output * axes[1].output, channels * 6 * 7);
        let (weights, pixels) = (samples::<i8>(groups * m * k, 1), samples::<u8>(images * groups * size, 2));
        let (w_zero, x_zero, y_zero) = (samples::<i8>(groups * m, 3), 131u8, 17u8);
        let bias: Vec<i32> = samples::<i32>(groups * m, 4).iter().map(|x| x >> 20).collect();
        let scales: Vec<f64> = (1..=groups * m).map(|channel| 1e-3 * channel as f64).collect();

        let by_channel = Strides { row: 1, column: 0, batch: &[0, m] };
        let addend = Broadcast { elements: &bias[..], strides: by_channel };
        let scale = Broadcast { elements: &scales[..], strides: by_channel };
        let one_for_all = Broadcast { elements: &[1.0][..], strides: Strides::ONE };
        let first = Scaled { alpha: 1.0, beta: 1.0, c: Some(addend) };
        let zero_point = Broadcast { elements: &[y_zero][..], strides: Strides::ONE };
        let last = Requantized { scales: [scale, one_for_all], zero_point };
        let w_zero_of = Strides { row: 1, column: 0, batch: &[m] };
        let matrix = View::rows(&weights, k).less(ZeroPoints::new(&w_zero, w_zero_of));
        let mut room = vec![0u32; packed_len_of::<i8>(Side::Left, groups, (m, k))];
        let alone = Resources { threads: 1, stop: None };
        pack(Side::Left, matrix, (groups, m * k), (m, k), &mut room, alone).unwrap();
        let x_zeros = [x_zero];
        let image = Windows::new(&pixels, channels, &axes, x_zero).less(ZeroPoints::new(&x_zeros, Strides::ONE));
        let batch = [Batch { size: images, a: 0, b: groups * size }, Batch { size: groups, a: m * k, b: size }];
        let a = Left::Packed(Packed::of::<i8>(Side::Left, &room));
        let product = Product::<u8> { m, k, n, a, b: Right::Windows(image), batch: &batch, epilogue: &[&first, &last] };
        let mut out = vec![0u8; images * groups * m * n];
        run(product, &mut out).unwrap();

        for (at, out) in out.into_iter().enumerate() {
            let (image, channel, y, x) =
                (at / (groups * m * n), at / n % (groups * m), at % n / axes[1].output, at % axes[1].output);
            let mut total = bias[channel];
            for (c, (ky, kx)) in (0..channels).flat_map(|c| (0..6).map(move |p| (c, (p / 2, p % 2)))) {
                let weight = weights[channel * k + c * 6 + ky * 2 + kx] as i32 - w_zero[channel] as i32;
                let (row, column) = ((y + ky).wrapping_sub(1), 2 * x + kx);
                let first = (image * groups + channel / m) * size + c * 42;
                if row < 6 && column < 7 {
                    total += weight * (pixels[first + row * 7 + column] as i32 - x_zero as i32);
                }
            }
            let want = (f64::from(total) * scales[channel]).round_ties_even() + f64::from(y_zero);
            assert_eq!(f64::from(out), want.clamp(0.0, 255.0), "image {image}, channel {channel}, {y}, {x}");
        }
    }

    #[test]
    fn windows_that_do_not_fit() {
        let pixels = [0f32; 20];
        let weights = [0f32; 16];
        let outcome = |axes: &[Axis], channels: usize, k: usize, n: usize| {
            let windows = Windows::new(&pixels, channels, axes, 0.0);
            let (a, b) = (Left::View(View::rows(&weights, k)), Right::Windows(windows));
            run(Product::<f32> { m: 1, k, n, a, b, batch: &[], epilogue: &[] }, &mut vec![0.0; n])
        };
        let good = axis(10, 3, 1, 1, 0, 0);
        assert_eq!(outcome(&[good], 2, 6, 8), Ok(()));
        assert_eq!(outcome(&[good], 3, 9, 8), Err(Stopped::Misfit));
        assert_eq!(outcome(&[good], 2, 5, 8), Err(Stopped::Misfit));
        assert_eq!(outcome(&[good], 2, 6, 7), Err(Stopped::Misfit));
        assert_eq!(outcome(&[Axis { stride: 0, ..good }], 2, 6, 8), Err(Stopped::Misfit));
        for far in [usize::MAX, usize::MAX / 2, isize::MAX as usize] {
            assert_eq!(outcome(&[Axis { stride: far, ..good }], 2, 6, 8), Err(Stopped::Misfit));
            assert_eq!(outcome(&[Axis { dilation: far, ..good }], 2, 6, 8), Err(Stopped::Misfit));
            assert_eq!(outcome(&[Axis { pad: far, ..good }], 2, 6, 8), Err(Stopped::Misfit));
        }
        // As far as can be.
        let pad = isize::MAX as usize - 10;
        assert_eq!(outcome(&[Axis { pad, ..good }], 2, 6, 8), Ok(()));
    }
}
