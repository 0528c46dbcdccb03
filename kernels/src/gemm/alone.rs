//! Convolutions of each channel on its own: a product of one row has nothing to share, so windows aren't packed.
//!
//! A sum runs in the order of a product: from 0 on, tap by tap, with one fused step each, also in padding. So the bits are
//! those of [`Product`](super::Product), as long as there are not more taps than a [`BLOCK`].

use super::direct::Direct;
use super::epilogue::{PART, Step};
use super::place::{Extent, Place};
use super::windows::Line;
use super::{BLOCK, Batch};
use crate::cpu::for_each_level;
use crate::number::Float;
use crate::windows::Axis;
use crate::{Resources, Stopped, parallel, volume};
use bytemuck::{cast_slice, cast_slice_mut};
use std::any::TypeId;

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
    /// What becomes of sums then, as in a product of `of_each` rows for each image and channel.
    pub epilogue: &'a [&'a dyn Step<T>],
}

/// The sums of a filter.
struct Plane<'a, T> {
    /// Its number: of all images.
    number: usize,
    image: &'a [T],
    weights: &'a [T],
    bias: Option<T>,
}

impl<T: Float> Alone<'_, T> {
    /// Whether sums are those of a product.
    pub fn suits(axes: &[Axis]) -> bool {
        !axes.is_empty() && volume(1, axes.iter().map(|axis| &axis.kernel)) <= BLOCK && axes.iter().all(Axis::fits)
    }

    /// Whether windows of float32 have a loop of their own, which needs no blocks of channels to be fast.
    pub fn is_direct(axes: &[Axis]) -> bool {
        Direct::of(axes).is_some()
    }

    /// Writes `[images, channels, filters of each, positions..]`.
    pub fn run(&self, out: &mut [T], resources: Resources<'_>) -> Result<(), Stopped> {
        let Some((inner, outer)) = self.axes.split_last().filter(|_| Self::suits(self.axes)) else {
            return Err(Stopped::Misfit);
        };
        let rows = volume(1, outer.iter().map(|axis| &axis.output)).max(1);
        let taps = volume(1, self.axes.iter().map(|axis| &axis.kernel));
        let (row, size) = (inner.output.saturating_mul(size_of::<T>()), size_of::<T>());
        let batch = self.batch(out.len(), rows.saturating_mul(inner.output))?;
        let is_f32 = TypeId::of::<T>() == TypeId::of::<f32>();
        if let Some(sums) = Direct::of(self.axes).filter(|_| is_f32) {
            let [rows, columns] = self.axes else { return Err(Stopped::Misfit) };
            return parallel::split_by(cast_slice_mut(out), row, taps, resources, |first, out| {
                let (mut at, mut out) = (first, cast_slice_mut::<u8, T>(out));
                while !out.is_empty() {
                    let plane = self.plane(at / rows.output, taps)?;
                    let start = at % rows.output;
                    let end = rows.output.min(start + out.len() / columns.output);
                    let (own, rest) = out.split_at_mut((end - start) * columns.output);
                    let direct = Direct {
                        rows,
                        columns,
                        plane: cast_slice(plane.image),
                        filter: cast_slice(plane.weights),
                        bias: plane.bias.map(bytemuck::cast),
                    };
                    if !direct.run(sums, start..end, cast_slice_mut(own)) {
                        return Err(Stopped::Misfit);
                    }
                    self.finish(&plane, start * columns.output, &batch, own);
                    (at, out) = (at + end - start, rest);
                }
                Ok(())
            });
        }
        parallel::pieces(cast_slice_mut(out), size, row, taps, resources, |number, start, out| {
            let (plane, row) = (self.plane(number / rows, taps)?, number % rows);
            let (first, out) = (start / size, cast_slice_mut(out));
            sum_row::<T>(inner, Line::new(outer, 0, row), plane.image, plane.weights, plane.bias, first, out);
            self.finish(&plane, row * inner.output + first, &batch, out);
            Ok(())
        })
    }

    /// The dimensions of the output before those of a plane, if the steps of the epilogue fit them.
    fn batch(&self, len: usize, positions: usize) -> Result<[Batch; 2], Stopped> {
        let planes = volume(positions, [&self.channels, &self.of_each]);
        let images = len.checked_div(planes).unwrap_or(0);
        let batch = [images, self.channels].map(|size| Batch { size, a: 0, b: 0 });
        let output = Extent { m: self.of_each, n: positions, batch: &batch };
        match len == 0 || self.epilogue.iter().all(|step| step.fits(&output)) {
            true => Ok(batch),
            false => Err(Stopped::Misfit),
        }
    }

    /// What the plane of the output with a number is made of.
    fn plane(&self, number: usize, taps: usize) -> Result<Plane<'_, T>, Stopped> {
        let size = volume(1, self.axes.iter().map(|axis| &axis.input));
        let filter = number.checked_rem(self.channels * self.of_each).ok_or(Stopped::Misfit)?;
        let image = number / self.of_each;
        Ok(Plane {
            number,
            image: self.images.get(image * size..(image + 1) * size).ok_or(Stopped::Misfit)?,
            weights: self.filters.get(filter * taps..(filter + 1) * taps).ok_or(Stopped::Misfit)?,
            bias: match self.bias {
                Some(bias) => Some(*bias.get(filter).ok_or(Stopped::Misfit)?),
                None => None,
            },
        })
    }

    /// Applies the epilogue to the sums of a plane from a position on.
    fn finish(&self, plane: &Plane<'_, T>, position: usize, batch: &[Batch], sums: &mut [T]) {
        if self.epilogue.is_empty() {
            return;
        }
        let (matrix, row) = (plane.number / self.of_each, plane.number % self.of_each);
        for (at, part) in sums.chunks_mut(PART).enumerate() {
            let place = Place { matrix, row, column: position + at * PART, down: false, batch };
            self.epilogue.iter().for_each(|step| step.apply(&place, part));
        }
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
        // A residual, and a function.
        let residual = samples::<f32>(images * channels * of_each * n, 4);
        let strides = Strides { row: n, column: 1, batch: &[channels * of_each * n, of_each * n] };
        let residual = Scaled { alpha: 1.0, beta: 1.0, c: Some(Broadcast { elements: &residual[..], strides }) };
        let double = |sums: &mut [f32]| sums.iter_mut().for_each(|sum| *sum *= 2.0);
        let epilogue: &[&dyn Step<f32>] = &[&addend, &residual, &double];
        let product = Product::<f32> { m: of_each, k, n, a, b, batch: &batch, epilogue };
        let mut want = vec![0f32; images * channels * of_each * n];
        super::super::tests::run(product, &mut want).unwrap();
        at_each_level(|| {
            for threads in [1, 3] {
                let mut out = vec![1f32; want.len()];
                let (bias, epilogue) = (Some(&bias[..]), &epilogue[1..]);
                Alone { axes, images: &pixels, channels, filters: &filters, of_each, bias, epilogue }
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

    /// Small squares, with fewer and more columns than a vector has, and fewer and more rows than are computed together.
    #[test]
    fn squares_as_products() {
        on_threads(3, || {
            for (kernel, stride) in [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1), (7, 2), (9, 1)] {
                for (height, width) in [(1, 1), (2, 7), (7, 14), (9, 16), (5, 33), (0, 3), (3, 0)] {
                    for pads in [(0, 1), (1, 1), (kernel - 1, kernel + 3)] {
                        let axes = [axis(height, kernel, stride, 1, pads), axis(width, kernel, stride, 1, pads)];
                        check(&axes, 2, 2, 2);
                    }
                }
            }
            // Larger than a part of a thread.
            for stride in [1, 2] {
                check(&[axis(sized(70, 9), 5, stride, 1, (2, 2)), axis(sized(131, 40), 5, stride, 1, (2, 2))], 1, 2, 1);
            }
        });
    }

    #[test]
    fn what_does_not_suit() {
        assert!(!Alone::<f32>::suits(&[]));
        assert!(!Alone::<f32>::suits(&[axis(500, BLOCK + 1, 1, 1, (0, 0))]));
        let axes = [axis(3, 2, 1, 1, (0, 0))];
        let (images, filters) = (&[1f32; 3], &[1.0; 2]);
        let alone = Alone { axes: &axes, images, channels: 1, filters, of_each: 1, bias: None, epilogue: &[] };
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
