//! The numbers of products: what they sum in, and what operands and outputs hold.

use super::tile::Kernel;
use crate::half::Half;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use std::fmt::Debug;

/// A type in which products are summed.
pub trait Number: Pod + Send + Sync + Debug {
    const ZERO: Self;

    /// `self * by + plus`: rounded once, or wrapping.
    fn mul_add(self, by: Self, plus: Self) -> Self;
    /// The sum: rounded, or wrapping.
    fn add(self, other: Self) -> Self;
    /// The difference: rounded, or wrapping.
    fn sub(self, other: Self) -> Self;

    /// The kernel for this processor.
    fn kernel() -> Kernel<Self>;

    /// The kernel for [`quads`](super::quads), if these are summed in this type.
    fn quads() -> Option<Kernel<Self>>;
}

/// An element type of operands and outputs.
pub trait Operand: Pod + Send + Sync + Debug {
    /// The type of sums. A product may have operands and an output of any types with the same one.
    ///
    /// float16 and bfloat16 are widened to f32, and sums rounded once. Signed integers wrap as unsigned ones do; those of
    /// 8 bits are summed in 32.
    type Sum: Number;

    /// Whether elements are stored as sums are.
    const IN_PLACE: bool;

    /// For integers of 8 bits, whether they are signed.
    const BYTES: Option<bool> = None;

    /// Writes the values of elements, which may stand at any address.
    fn widen(elements: &[u8], sums: &mut [Self::Sum]);
    /// Writes the nearest values of `sums`; integers of 8 bits are the lowest bits.
    fn narrow(sums: &[Self::Sum], elements: &mut [Self]);

    /// `alpha * sum + beta * c` (without `c`: `alpha * sum`). Floats are rounded after each of the three operations.
    /// Integers wrap if both factors are integers; for other factors the value is rounded toward 0, and the nearest
    /// number is taken if it is out of range.
    fn scale(sum: Self::Sum, alpha: f32, c: Option<(Self, f32)>) -> Self::Sum;
}

macro_rules! floats {
    ($($type:ident)*) => {$(
        impl Operand for $type {
            type Sum = $type;

            const IN_PLACE: bool = true;

            #[inline(always)]
            fn widen(elements: &[u8], sums: &mut [$type]) {
                cast_slice_mut::<$type, u8>(sums).copy_from_slice(elements);
            }
            #[inline(always)]
            fn narrow(sums: &[$type], elements: &mut [$type]) {
                elements.copy_from_slice(sums);
            }
            #[inline(always)]
            fn scale(sum: $type, alpha: f32, c: Option<($type, f32)>) -> $type {
                let product = $type::from(alpha) * sum;
                c.map_or(product, |(c, beta)| product + $type::from(beta) * c)
            }
        }
    )*};
}

floats!(f32 f64);

macro_rules! halves {
    ($($type:ident as $half:ident)*) => {$(
        impl Operand for $type {
            type Sum = f32;

            const IN_PLACE: bool = false;

            fn widen(elements: &[u8], sums: &mut [f32]) {
                match bytemuck::try_cast_slice(elements) {
                    Ok(elements) => Half::$half.widen(elements, sums),
                    Err(_) => {
                        let mut aligned = [0u16; 64];
                        for (from, to) in elements.chunks(size_of_val(&aligned)).zip(sums.chunks_mut(aligned.len())) {
                            let aligned = aligned.get_mut(..to.len()).unwrap_or(&mut []);
                            cast_slice_mut::<u16, u8>(aligned).copy_from_slice(from);
                            Half::$half.widen(aligned, to);
                        }
                    }
                }
            }
            fn narrow(sums: &[f32], elements: &mut [$type]) {
                Half::$half.narrow(sums, cast_slice_mut(elements));
            }
            #[inline(always)]
            fn scale(sum: f32, alpha: f32, c: Option<($type, f32)>) -> f32 {
                f32::scale(sum, alpha, c.map(|(c, beta)| (c.to_f32(), beta)))
            }
        }
    )*};
}

halves!(f16 as F16 bf16 as Bf16);

macro_rules! integers {
    ($($type:ident as $sum:ident)*) => {$(
        impl Operand for $type {
            type Sum = $sum;

            const IN_PLACE: bool = true;

            #[inline(always)]
            fn widen(elements: &[u8], sums: &mut [$sum]) {
                cast_slice_mut::<$sum, u8>(sums).copy_from_slice(elements);
            }
            #[inline(always)]
            fn narrow(sums: &[$sum], elements: &mut [$type]) {
                elements.copy_from_slice(cast_slice(sums));
            }
            #[inline(always)]
            fn scale(sum: $sum, alpha: f32, c: Option<($type, f32)>) -> $sum {
                let (c, beta) = c.unwrap_or((0, 0.0));
                match (whole(alpha), whole(beta)) {
                    (Some(alpha), Some(beta)) => {
                        (alpha as $sum).wrapping_mul(sum).wrapping_add((beta as $sum).wrapping_mul(c as $sum))
                    }
                    _ => (f64::from(alpha) * (sum as $type) as f64 + f64::from(beta) * c as f64) as $type as $sum,
                }
            }
        }
    )*};
}

integers!(i32 as u32 u32 as u32 i64 as u64 u64 as u64);

macro_rules! bytes {
    ($($type:ident)*) => {$(
        impl Operand for $type {
            type Sum = u32;

            const IN_PLACE: bool = false;
            const BYTES: Option<bool> = Some($type::MIN != 0);

            #[inline(always)]
            fn widen(elements: &[u8], sums: &mut [u32]) {
                for (sum, element) in sums.iter_mut().zip(elements) {
                    *sum = *element as $type as u32;
                }
            }
            #[inline(always)]
            fn narrow(sums: &[u32], elements: &mut [$type]) {
                for (element, sum) in elements.iter_mut().zip(sums) {
                    *element = *sum as $type;
                }
            }
            #[inline(always)]
            fn scale(sum: u32, alpha: f32, c: Option<($type, f32)>) -> u32 {
                i32::scale(sum, alpha, c.map(|(c, beta)| (i32::from(c), beta)))
            }
        }
    )*};
}

bytes!(u8 i8);

/// The factor as an integer, if it is one.
#[inline(always)]
fn whole(factor: f32) -> Option<i64> {
    (factor.trunc() == factor && factor.abs() < (1u64 << 63) as f32).then_some(factor as i64)
}
