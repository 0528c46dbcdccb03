//! Numbers that kernels compute with. Floats round once an operation, integers wrap, and nothing traps.

use bytemuck::Pod;
use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// `f32` or `f64`. float16 and bfloat16 are widened to `f32` ([`half`](super::half)).
pub trait Float:
    Pod
    + PartialOrd
    + Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    const INFINITY: Self;
    const NAN: Self;

    /// The nearest number.
    fn of(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round_ties_even(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn is_nan(self) -> bool;
    /// The remainder of a division that rounds toward 0: it has the sign of `self`.
    fn remainder(self, divisor: Self) -> Self;

    /// The greater one; NaN if one is NaN.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    /// The lesser one; NaN if one is NaN.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }
}

/// An integer of 8 to 64 bits. Operations wrap.
pub trait Int: Pod + Ord + Debug + Send + Sync {
    const ZERO: Self;
    const ONE: Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Rounds toward 0; 0 for the divisor 0.
    fn over(self, divisor: Self) -> Self;
    /// The remainder of [`Int::over`]: it has the sign of `self`; 0 for the divisor 0.
    fn remainder(self, divisor: Self) -> Self;
    fn negated(self) -> Self;
    /// The distance from 0; the least signed number stays.
    fn magnitude(self) -> Self;
    /// The bits moved toward the sign; 0 if by fewer than 0 places, or by all.
    fn left(self, places: Self) -> Self;
    /// The bits moved away from the sign, copies of which follow; all are copies if by fewer than 0 places, or by all.
    fn right(self, places: Self) -> Self;
    fn to_i128(self) -> i128;
    /// The lowest bits.
    fn wrapped(value: i128) -> Self;
}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl Float for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $type::INFINITY;
            const NAN: Self = $type::NAN;

            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $type::mul_add(self, a, b)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $type::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $type::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $type::ceil(self)
            }
            #[inline(always)]
            fn round_ties_even(self) -> Self {
                $type::round_ties_even(self)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $type::copysign(self, sign)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $type::is_nan(self)
            }
            #[inline(always)]
            fn remainder(self, divisor: Self) -> Self {
                self % divisor
            }
        }
    )*};
}

floats!(f32, f64);

macro_rules! ints {
    ($magnitude:expr; $($type:ident),*) => {$(
        impl Int for $type {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn over(self, divisor: Self) -> Self {
                if divisor == 0 { 0 } else { self.wrapping_div(divisor) }
            }
            #[inline(always)]
            fn remainder(self, divisor: Self) -> Self {
                if divisor == 0 { 0 } else { self.wrapping_rem(divisor) }
            }
            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                let magnitude: fn($type) -> $type = $magnitude;
                magnitude(self)
            }
            #[inline(always)]
            fn left(self, places: Self) -> Self {
                u32::try_from(places).ok().and_then(|places| self.checked_shl(places)).unwrap_or(0)
            }
            #[inline(always)]
            fn right(self, places: Self) -> Self {
                let places = u32::try_from(places).ok().filter(|places| *places < $type::BITS);
                // One place twice: by all places at once is not a shift.
                places.map_or((self >> ($type::BITS - 1)) >> 1, |places| self >> places)
            }
            #[inline(always)]
            fn to_i128(self) -> i128 {
                self.into()
            }
            #[inline(always)]
            fn wrapped(value: i128) -> Self {
                value as $type
            }
        }
    )*};
}

ints!(|x| x.wrapping_abs(); i8, i16, i32, i64);
ints!(|x| x; u8, u16, u32, u64);
