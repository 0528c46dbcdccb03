//! Steps of epilogues that scale sums by row or column: of floats, and of quantized products.

use super::epilogue::{PART, Step};
use super::number::{Number, Operand};
use super::place::{Broadcast, Extent, Place};
use crate::cpu::for_each_level;
use crate::number::Float;
use crate::quantize::{Precision, rounded};
use bytemuck::cast_slice_mut;

/// `sum * factor`: a scale for each row or column.
#[derive(Debug, Clone, Copy)]
pub struct Factors<'a, T>(pub Broadcast<'a, T>);

impl<T: Float + Number> Step<T> for Factors<'_, T> {
    fn fits(&self, output: &Extent<'_>) -> bool {
        self.0.fits(output)
    }

    fn apply(&self, place: &Place<'_>, sums: &mut [T]) {
        multiply::<T>(sums, self.0.part(place, sums.len(), &mut [T::zeroed(); PART]));
    }
}

for_each_level! {
    fn multiply<T: Float>(sums: &mut [T], factors: &[T]) -> () = multiply_body::<T>;
}

#[inline(always)]
fn multiply_body<T: Float>(sums: &mut [T], factors: &[T]) {
    for (sum, factor) in sums.iter_mut().zip(factors) {
        *sum = *sum * *factor;
    }
}

/// Sums of integers become float32, times a scale for each row or column, and then what other steps make of these: their bits
/// are written.
#[derive(Debug, Clone, Copy)]
pub struct OfIntegers<'a> {
    pub scales: Broadcast<'a, f32>,
    pub then: &'a [&'a dyn Step<f32>],
}

impl Step<u32> for OfIntegers<'_> {
    fn fits(&self, output: &Extent<'_>) -> bool {
        self.scales.fits(output) && self.then.iter().all(|step| step.fits(output))
    }

    fn apply(&self, place: &Place<'_>, sums: &mut [u32]) {
        of_integers(sums, self.scales.part(place, sums.len(), &mut [0.0; PART]));
        self.then.iter().for_each(|step| step.apply(place, cast_slice_mut(sums)));
    }
}

for_each_level! {
    fn of_integers<>(sums: &mut [u32], scales: &[f32]) -> () = of_integers_body;
}

#[inline(always)]
fn of_integers_body(sums: &mut [u32], scales: &[f32]) {
    for (sum, scale) in sums.iter_mut().zip(scales) {
        *sum = (sum.cast_signed() as f32 * scale).to_bits();
    }
}

/// Floats that are integers become these, by whose bits they are written, and then what other steps make of them.
#[derive(Debug, Clone, Copy)]
pub struct ToIntegers<'a>(pub &'a [&'a dyn Step<u32>]);

impl Step<f32> for ToIntegers<'_> {
    fn fits(&self, output: &Extent<'_>) -> bool {
        self.0.iter().all(|step| step.fits(output))
    }

    fn apply(&self, place: &Place<'_>, sums: &mut [f32]) {
        to_integers(sums);
        self.0.iter().for_each(|step| step.apply(place, cast_slice_mut(sums)));
    }
}

for_each_level! {
    fn to_integers<>(sums: &mut [f32]) -> () = to_integers_body;
}

#[inline(always)]
fn to_integers_body(sums: &mut [f32]) {
    for sum in sums {
        *sum = f32::from_bits((*sum as i32).cast_unsigned());
    }
}

/// Sums of integers become integers of the type `S`, which the output must have:
/// `round(sum * scales[0] * scales[1]) + zero_point`, where ties are rounded to even. The nearest number is taken if it is
/// out of range.
///
/// Scales are those of both operands over that of the output: for example one for each row, and one for each column. All
/// is computed in their type `F`, in this order.
#[derive(Debug, Clone, Copy)]
pub struct Requantized<'a, S, F> {
    pub scales: [Broadcast<'a, F>; 2],
    pub zero_point: Broadcast<'a, S>,
}

/// An integer of 8 bits.
pub trait Quantized: Operand<Sum = u32> + Into<f64> {
    const LEAST: f64;
    const MOST: f64;
}

impl Quantized for u8 {
    const LEAST: f64 = 0.0;
    const MOST: f64 = 255.0;
}

impl Quantized for i8 {
    const LEAST: f64 = -128.0;
    const MOST: f64 = 127.0;
}

impl<S: Quantized, F: Precision> Step<u32> for Requantized<'_, S, F> {
    fn fits(&self, output: &Extent<'_>) -> bool {
        self.scales.iter().all(|scales| scales.fits(output)) && self.zero_point.fits(output)
    }

    fn apply(&self, place: &Place<'_>, sums: &mut [u32]) {
        let [one, other] = &self.scales;
        let only = [one.only(place), other.only(place)];
        if let ([Some(one), Some(other)], Some(zero_point)) = (only, self.zero_point.only(place)) {
            return requantize_all::<S, F>(sums, [one, other], zero_point);
        }
        let (mut rooms, mut room) = ([[F::ZERO; PART]; 2], [S::zeroed(); PART]);
        let [one_room, other_room] = &mut rooms;
        let scales = [one.part(place, sums.len(), one_room), other.part(place, sums.len(), other_room)];
        requantize::<S, F>(sums, scales, self.zero_point.part(place, sums.len(), &mut room));
    }
}

for_each_level! {
    fn requantize<S: Quantized, F: Precision>(sums: &mut [u32], scales: [&[F]; 2], zero_points: &[S]) -> () = requantize_body::<S, F>;
}

#[inline(always)]
fn requantize_body<S: Quantized, F: Precision>(sums: &mut [u32], [one, other]: [&[F]; 2], zero_points: &[S]) {
    for (((sum, one), other), zero_point) in sums.iter_mut().zip(one).zip(other).zip(zero_points) {
        *sum = requantized::<S, F>(*sum, [*one, *other], *zero_point);
    }
}

for_each_level! {
    fn requantize_all<S: Quantized, F: Precision>(sums: &mut [u32], scales: [F; 2], zero_point: S) -> () = requantize_all_body::<S, F>;
}

#[inline(always)]
fn requantize_all_body<S: Quantized, F: Precision>(sums: &mut [u32], scales: [F; 2], zero_point: S) {
    for sum in sums {
        *sum = requantized::<S, F>(*sum, scales, zero_point);
    }
}

#[inline(always)]
fn requantized<S: Quantized, F: Precision>(sum: u32, [one, other]: [F; 2], zero_point: S) -> u32 {
    let scaled = F::of_integer(sum as i32) * one * other;
    rounded(scaled, F::of(zero_point.into()), F::of(S::LEAST), F::of(S::MOST)).into()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Sample, one, product, run, samples, sum};
    use super::super::{Batch, Left, Product, Right, Scaled, Strides, View};
    use super::*;
    use crate::Resources;
    use crate::testing::at_each_level;
    use crate::testing::sized;

    #[test]
    fn factors_of_rows_and_columns() {
        let (a, b) = (samples::<f32>(3 * 5, 1), samples::<f32>(5 * 600, 2));
        let factors = samples::<f32>(600, 3);
        for (n, strides) in [(600, Strides::COLUMNS), (600, Strides::ROWS), (1, Strides::ROWS), (4, Strides::ONE)] {
            at_each_level(|| {
                let factor = Factors(Broadcast { elements: &factors[..], strides });
                let mut out = vec![0.0; 3 * n];
                run(Product { epilogue: &[&factor], ..product(3, 5, n, &a, &b) }, &mut out).unwrap();
                for (at, out) in out.into_iter().enumerate() {
                    let (i, j) = (at / n, at % n);
                    let factor = factors[i * strides.row + j * strides.column];
                    assert_eq!(out, sum(5, |p| (a[i * 5 + p], b[p * n + j])) * factor);
                }
            });
        }
    }

    fn requantized<S: Sample + Quantized, F: Precision>(sum: i32, scales: [F; 2], zero_point: S) -> f64 {
        let mut sums = [sum as u32];
        let (scales, zero) = (scales.map(|scale| [scale]), [zero_point]);
        let scales = scales.each_ref().map(|scale| Broadcast { elements: &scale[..], strides: Strides::ONE });
        let step = Requantized { scales, zero_point: Broadcast { elements: &zero, strides: Strides::ONE } };
        let place = Place { matrix: 0, row: 0, column: 0, down: false, batch: &[] };
        step.apply(&place, &mut sums);
        let mut element = [S::zeroed()];
        S::narrow(&sums, &mut element);
        element[0].into()
    }

    #[test]
    fn requantized_numbers() {
        at_each_level(|| {
            // Ties to even, before the zero point.
            assert_eq!([1, 3, 5, -1, -3].map(|sum| requantized(sum, [0.5, 1.0], 3u8)), [3.0, 5.0, 5.0, 3.0, 1.0]);
            assert_eq!([1, 3, 5, -1, -3].map(|sum| requantized(sum, [0.25, 2.0], -1i8)), [-1.0, 1.0, 1.0, -1.0, -3.0]);
            // Out of range.
            assert_eq!(requantized(300, [1.0, 1.0], 0u8), 255.0);
            assert_eq!(requantized(-1, [1.0, 1.0], 0u8), 0.0);
            assert_eq!(requantized(i32::MAX, [1e30, 1e300], 5i8), 127.0);
            assert_eq!(requantized(i32::MIN, [1.0, 1.0], 127i8), -128.0);
            assert_eq!(requantized(-300, [1.0, 1.0], 255u8), 0.0);
            // All bits of a sum count.
            assert_eq!(requantized(16_777_217, [1.0 / 16_777_216.0, 0.5], 0u8), 1.0);
            // In float32 it is rounded first.
            assert_eq!(requantized(16_777_217, [1f32 / 16_777_216.0, 0.5], 0u8), 0.0);
            assert_eq!([1, 3, 5, -1, -3].map(|sum| requantized(sum, [0.5f32, 1.0], 3u8)), [3.0, 5.0, 5.0, 3.0, 1.0]);
            assert_eq!(requantized(i32::MIN, [1e30f32, 1e30], 5i8), -128.0);
        });
    }

    /// A quantized product as operators have it: a bias for each column or row, scales, zero points of all kinds.
    fn check_quantized<A: Sample<Sum = u32>, B: Sample<Sum = u32>, O: Sample + Quantized>(
        m: usize,
        k: usize,
        n: usize,
    ) {
        let (a, b) = (samples::<A>(2 * m * k, 1), samples::<B>(k * n, 2));
        let bias: Vec<i32> = samples::<i32>(m.max(n), 3).iter().map(|x| x >> 18).collect();
        let scales: Vec<f64> = samples::<f64>(2 * m.max(n), 4).iter().map(|x| (x.abs() + 0.1) / 1e3).collect();
        let zero = samples::<O>(2 * m, 5);
        let by_rows = Strides { row: 1, column: 0, batch: &[m] };
        for strides in [Strides::COLUMNS, Strides::ROWS] {
            let c = Some(Broadcast { elements: &bias[..], strides });
            let scales_of = |strides| Broadcast { elements: &scales[..], strides };
            let zero_point = Broadcast { elements: &zero[..], strides: by_rows };
            let last = Requantized { scales: [scales_of(by_rows), scales_of(strides)], zero_point };
            let first = Scaled { alpha: 1.0, beta: 1.0, c };
            let want: Vec<f64> = (0..2 * m * n)
                .map(|at| {
                    let (matrix, i, j) = (at / (m * n), at / n % m, at % n);
                    let total = sum(k, |p| (one(a[matrix * m * k + i * k + p]), one(b[p * n + j]))) as i32;
                    let total = f64::from(total + bias[i * strides.row + j * strides.column]);
                    let scaled = total * scales[matrix * m + i] * scales[i * strides.row + j * strides.column];
                    (scaled.round_ties_even() + zero[matrix * m + i].into()).clamp(O::LEAST, O::MOST)
                })
                .collect();
            at_each_level(|| {
                for threads in [1, 3] {
                    let (a, b) = (Left::View(View::rows(&a, k)), Right::View(View::rows(&b, n)));
                    let batch = [Batch { size: 2, a: m * k, b: 0 }];
                    let product = Product::<O> { m, k, n, a, b, batch: &batch, epilogue: &[&first, &last] };
                    let resources = Resources { threads, stop: None };
                    let plan = product.plan(resources);
                    let mut out = vec![O::zeroed(); 2 * m * n];
                    plan.run(&mut out, &mut vec![0; plan.scratch()], resources).unwrap();
                    assert!(
                        out.iter().map(|out| (*out).into()).eq(want.iter().copied()),
                        "{m} x {k} x {n}, {strides:?}"
                    );
                }
            });
        }
    }

    /// Integers of both signs and of all sizes, as floats and back: rows longer than any vector, and the rest.
    #[test]
    fn integers_and_floats() {
        let integer = |at: u32| (at.wrapping_mul(0x9e37_79b1) as i32) >> (at % 32);
        let sums: Vec<u32> = (0..sized(200, 20)).map(|at| integer(at).cast_unsigned()).collect();
        let scales: Vec<f32> = (0..sums.len()).map(|at| (at as f32 - 90.0) / 7.0).collect();
        let place = Place { matrix: 0, row: 0, column: 0, down: false, batch: &[] };
        let half = |part: &mut [f32]| part.iter_mut().for_each(|sum| *sum *= 0.5);
        let twice = |part: &mut [u32]| part.iter_mut().for_each(|sum| *sum = sum.wrapping_mul(2));
        at_each_level(|| {
            for strides in [Strides::COLUMNS, Strides::ONE] {
                let (mut out, scales) = (sums.clone(), Broadcast { elements: &scales[..], strides });
                OfIntegers { scales, then: &[&half] }.apply(&place, &mut out);
                for (at, (out, sum)) in out.iter().zip(&sums).enumerate() {
                    let scale = scales.elements[if strides.column > 0 { at } else { 0 }];
                    assert_eq!(f32::from_bits(*out), sum.cast_signed() as f32 * scale * 0.5);
                }
            }
            let mut floats: Vec<f32> = sums.iter().map(|sum| (sum.cast_signed() >> 8) as f32).collect();
            ToIntegers(&[&twice]).apply(&place, &mut floats);
            let want = sums.iter().map(|sum| (sum.cast_signed() >> 8).wrapping_mul(2).cast_unsigned());
            assert!(floats.iter().map(|float| float.to_bits()).eq(want));
        });
    }

    #[test]
    fn quantized_products() {
        for (m, k, n) in sized(&[(3, 5, 4), (1, 7, 900), (300, 4, 1), (30, 500, 70)][..], &[(3, 5, 4)]) {
            check_quantized::<u8, i8, u8>(*m, *k, *n);
            check_quantized::<i8, i8, i8>(*m, *k, *n);
            check_quantized::<u8, u8, i8>(*m, *k, *n);
        }
    }
}
