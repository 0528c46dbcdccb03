//! Convolutions of each channel on its own: a product of one row has nothing to share, so windows aren't packed.
//!
//! A sum runs in the order of a product: from 0 on, tap by tap, with one fused step each, also in padding. So the bits are
//! those of [`Product`](super::Product), as long as there are not more taps than a [`BLOCK`].

use super::BLOCK;
use super::windows::Line;
use crate::cpu::for_each_level;
use crate::number::Float;
use crate::windows::Axis;
use crate::{Resources, Stopped, parallel, volume};
use bytemuck::cast_slice_mut;

/// Images whose channels meet filters of their own.
#[derive(Debug, Clone, Copy)]
pub struct Alone<'a, T> {
    pub axes: &'a [Axis],
    /// `[images, channels, spatial dimensions..]`
    pub images: &'a [T],
    pub channels: usize,
    /// `[channels, filters of each, taps]`
    pub filters: &'a [T],
    pub of_each: usize,
    /// A number for each filter, which is added last.
    pub bias: Option<&'a [T]>,
}

impl<T: Float> Alone<'_, T> {
    /// Whether sums are those of a product.
    pub fn suits(axes: &[Axis]) -> bool {
        !axes.is_empty() && volume(1, axes.iter().map(|axis| &axis.kernel)) <= BLOCK && axes.iter().all(Axis::fits)
    }

    /// Writes `[images, channels, filters of each, positions..]`.
    pub fn run(&self, out: &mut [T], resources: Resources<'_>) -> Result<(), Stopped> {
        let Some((inner, outer)) = self.axes.split_last().filter(|_| Self::suits(self.axes)) else {
            return Err(Stopped::Misfit);
        };
        let rows = volume(1, outer.iter().map(|axis| &axis.output));
        let taps = volume(1, self.axes.iter().map(|axis| &axis.kernel));
        let size = volume(1, self.axes.iter().map(|axis| &axis.input));
        let row = inner.output.saturating_mul(size_of::<T>());
        parallel::pieces(cast_slice_mut(out), size_of::<T>(), row, taps, resources, |number, start, out| {
            let (plane, row) = (number / rows.max(1), number % rows.max(1));
            let filter = plane.checked_rem(self.channels * self.of_each).ok_or(Stopped::Misfit)?;
            let (image, weights) = (plane / self.of_each, filter * taps..(filter + 1) * taps);
            let image = self.images.get(image * size..(image + 1) * size).ok_or(Stopped::Misfit)?;
            let weights = self.filters.get(weights).ok_or(Stopped::Misfit)?;
            let bias = match self.bias {
                Some(bias) => Some(*bias.get(filter).ok_or(Stopped::Misfit)?),
                None => None,
            };
            let first = start / size_of::<T>();
            sum_row::<T>(inner, Line::new(outer, 0, row), image, weights, bias, first, cast_slice_mut(out));
            Ok(())
        })
    }
}

for_each_level! {
    fn sum_row<T: Float>(
        inner: &Axis,
        line: Line<'_>,
        image: &[T],
        weights: &[T],
        bias: Option<T>,
        first: usize,
        sums: &mut [T],
    ) -> () = sum_row_body::<T>;
}

/// The sums from the position `first` on; `line` is that of the first tap.
#[inline(always)]
fn sum_row_body<T: Float>(
    inner: &Axis,
    mut line: Line<'_>,
    image: &[T],
    weights: &[T],
    bias: Option<T>,
    first: usize,
    sums: &mut [T],
) {
    sums.fill(T::ZERO);
    let end = first + sums.len();
    for weights in weights.chunks_exact(inner.kernel.max(1)) {
        let from = match line.in_image() {
            Some(line) => image.get(line * inner.input..(line + 1) * inner.input).unwrap_or(&[]),
            None => &[],
        };
        for (tap, weight) in weights.iter().enumerate() {
            let low = inner.first_at(inner.pad, tap).clamp(first, end);
            let high = if from.is_empty() { low } else { inner.first_at(inner.pad + inner.input, tap).clamp(low, end) };
            let (before, rest) = sums.split_at_mut(low - first);
            let (inside, after) = rest.split_at_mut(high - low);
            if !inside.is_empty() {
                let at = low * inner.stride + tap * inner.dilation - inner.pad;
                add_products(inside, from.get(at..).unwrap_or(&[]), *weight, inner.stride);
            }
            add_zeros(before, *weight);
            add_zeros(after, *weight);
        }
        line.next();
    }
    if let Some(bias) = bias {
        for sum in sums {
            *sum = *sum + bias;
        }
    }
}

#[inline(always)]
fn add_products<T: Float>(sums: &mut [T], from: &[T], weight: T, stride: usize) {
    match stride {
        1 => {
            for (sum, element) in sums.iter_mut().zip(from) {
                *sum = weight.mul_add(*element, *sum);
            }
        }
        2 => {
            let (pairs, rest) = from.as_chunks::<2>();
            let (sums, last) = sums.split_at_mut(pairs.len().min(sums.len()));
            for (sum, [element, _]) in sums.iter_mut().zip(pairs) {
                *sum = weight.mul_add(*element, *sum);
            }
            for (sum, element) in last.iter_mut().zip(rest) {
                *sum = weight.mul_add(*element, *sum);
            }
        }
        _ => {
            for (sum, element) in sums.iter_mut().zip(from.iter().step_by(stride)) {
                *sum = weight.mul_add(*element, *sum);
            }
        }
    }
}

#[inline(always)]
fn add_zeros<T: Float>(sums: &mut [T], weight: T) {
    for sum in sums {
        *sum = weight.mul_add(T::ZERO, *sum);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::samples;
    use super::super::{Batch, Broadcast, Left, Product, Right, Scaled, Strides, View, Windows};
    use super::*;
    use crate::testing::{at_each_level, on_threads, sized};

    fn axis(input: usize, kernel: usize, stride: usize, dilation: usize, pads: (usize, usize)) -> Axis {
        let reach = (kernel - 1) * dilation + 1;
        let output = (input + pads.0 + pads.1).checked_sub(reach).map_or(0, |rest| rest / stride + 1);
        Axis { input, kernel, stride, dilation, pad: pads.0, output }
    }

    /// The bits of a product.
    fn check(axes: &[Axis], images: usize, channels: usize, of_each: usize) {
        let (k, n, size): (usize, usize, usize) = (
            axes.iter().map(|axis| axis.kernel).product(),
            axes.iter().map(|axis| axis.output).product(),
            axes.iter().map(|axis| axis.input).product(),
        );
        let mut pixels = samples::<f32>(images * channels * size, 1);
        let mut filters = samples::<f32>(channels * of_each * k, 2);
        // What is no number shows whether padding is read.
        if let ([first, ..], [.., last]) = (&mut *pixels, &mut *filters) {
            (*first, *last) = (f32::INFINITY, f32::NEG_INFINITY);
        }
        let bias = samples::<f32>(channels * of_each, 3);
        let batch =
            [Batch { size: images, a: 0, b: channels * size }, Batch { size: channels, a: of_each * k, b: size }];
        let by_filter = Strides { row: 1, column: 0, batch: &[0, of_each] };
        let addend = Scaled { alpha: 1.0, beta: 1.0, c: Some(Broadcast { elements: &bias[..], strides: by_filter }) };
        let (a, b) = (Left::View(View::rows(&filters, k)), Right::Windows(Windows::new(&pixels, 1, axes, 0.0)));
        let product = Product::<f32> { m: of_each, k, n, a, b, batch: &batch, epilogue: &[&addend] };
        let mut want = vec![0f32; images * channels * of_each * n];
        super::super::tests::run(product, &mut want).unwrap();
        at_each_level(|| {
            for threads in [1, 3] {
                let mut out = vec![1f32; want.len()];
                Alone { axes, images: &pixels, channels, filters: &filters, of_each, bias: Some(&bias) }
                    .run(&mut out, Resources { threads, stop: None })
                    .unwrap();
                let bits = |numbers: &[f32]| {
                    numbers.iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>()
                };
                assert_eq!(bits(&out), bits(&want), "{axes:?}");
            }
        });
    }

    #[test]
    fn as_products() {
        on_threads(3, || {
            check(&[axis(9, 3, 1, 1, (1, 1))], 2, 3, 2);
            check(&[axis(9, 3, 2, 1, (1, 1)), axis(10, 3, 2, 1, (1, 1))], 2, 3, 1);
            check(&[axis(9, 3, 1, 2, (2, 1)), axis(10, 2, 3, 1, (0, 1))], 1, 2, 3);
            check(&[axis(3, 2, 1, 1, (0, 0)), axis(4, 3, 1, 1, (3, 3)), axis(5, 2, 2, 2, (1, 2))], 2, 2, 1);
            check(&[axis(0, 2, 1, 1, (3, 2))], 1, 2, 1);
            check(&[axis(2, 5, 1, 1, (0, 0))], 1, 2, 1);
            check(&[axis(sized(100_000, 300), BLOCK, 1, 1, (7, 9))], 1, 2, 1);
            check(&[axis(sized(200, 20), 3, 1, 1, (1, 1)); 2], 1, sized(8, 2), 1);
        });
    }

    #[test]
    fn what_does_not_suit() {
        assert!(!Alone::<f32>::suits(&[]));
        assert!(!Alone::<f32>::suits(&[axis(500, BLOCK + 1, 1, 1, (0, 0))]));
        let axes = [axis(3, 2, 1, 1, (0, 0))];
        let alone = Alone { axes: &axes, images: &[1f32; 3], channels: 1, filters: &[1.0; 2], of_each: 1, bias: None };
        let one = Resources { threads: 1, stop: None };
        let mut out = [0f32; 2];
        assert_eq!(alone.run(&mut out, one), Ok(()));
        assert_eq!(out, [2.0, 2.0]);
        assert_eq!(alone.run(&mut [0f32; 4], one), Err(Stopped::Misfit));
        assert_eq!(Alone { filters: &[1.0], ..alone }.run(&mut out, one), Err(Stopped::Misfit));
        assert_eq!(Alone { channels: 0, ..alone }.run(&mut out, one), Err(Stopped::Misfit));
        assert_eq!(Alone { bias: Some(&[]), ..alone }.run(&mut out, one), Err(Stopped::Misfit));
    }
}
