//! The numbers of products: what they sum in, and what operands and outputs hold.

use super::tile::Kernel;
use crate::kernels::half::Half;
use bytemuck::Pod;
use half::{bf16, f16};
use std::fmt::Debug;

/// A type in which products are summed.
pub(crate) trait Number: Pod + Send + Sync + Debug {
    const ZERO: Self;

    /// `self * by + plus`: rounded once, or wrapping.
    fn mul_add(self, by: Self, plus: Self) -> Self;
    /// The sum: rounded, or wrapping.
    fn add(self, other: Self) -> Self;

    /// The kernel for this processor.
    fn kernel() -> Kernel<Self>;
}

/// An element type of operands and outputs.
pub(crate) trait Operand: Pod + Send + Sync + Debug {
    /// float16 and bfloat16 are widened to f32, and sums rounded once. Signed integers wrap as unsigned ones do.
    type Sum: Number;

    /// Whether elements are stored as sums are.
    const IN_PLACE: bool;

    /// Writes the values of `elements`.
    fn widen(elements: &[Self], sums: &mut [Self::Sum]);
    /// Writes the nearest values of `sums`.
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
            fn widen(elements: &[$type], sums: &mut [$type]) {
                sums.copy_from_slice(elements);
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

            fn widen(elements: &[$type], sums: &mut [f32]) {
                Half::$half.widen(bytemuck::cast_slice(elements), sums);
            }
            fn narrow(sums: &[f32], elements: &mut [$type]) {
                Half::$half.narrow(sums, bytemuck::cast_slice_mut(elements));
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
            fn widen(elements: &[$type], sums: &mut [$sum]) {
                sums.copy_from_slice(bytemuck::cast_slice(elements));
            }
            #[inline(always)]
            fn narrow(sums: &[$sum], elements: &mut [$type]) {
                elements.copy_from_slice(bytemuck::cast_slice(sums));
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

/// The factor as an integer, if it is one.
#[inline(always)]
fn whole(factor: f32) -> Option<i64> {
    (factor.trunc() == factor && factor.abs() < (1u64 << 63) as f32).then_some(factor as i64)
}
