//! Numbers to integers and bool.

use super::{Exact, Rounding, map};
use crate::cpu::for_each_level;
use crate::format::Format;
use bytemuck::{Pod, cast_slice_mut};
use std::ops::RangeInclusive;

/// Elements of `to`, an integer type: modulo 2^bits, floats after truncation.
pub(super) fn store(numbers: Exact<'_>, to: Format, rounding: Rounding, out: &mut [u8]) {
    let signed = matches!(to, Format::Signed(_));
    match (signed, to.size()) {
        _ if rounding.clamp && to.bits() == 4 && matches!(numbers, Exact::F32(_) | Exact::F64(_)) => {
            clamp(numbers, if signed { -8..=7 } else { 0..=15 }, out);
        }
        (true, 1) => each::<i8>(numbers, out),
        (true, 2) => each::<i16>(numbers, out),
        (true, 4) => each::<i32>(numbers, out),
        (true, _) => each::<i64>(numbers, out),
        (false, 1) => each::<u8>(numbers, out),
        (false, 2) => each::<u16>(numbers, out),
        (false, 4) => each::<u32>(numbers, out),
        (false, _) => each::<u64>(numbers, out),
    }
    cut(to, out);
}

/// 0 for NaN.
fn clamp(floats: Exact<'_>, range: RangeInclusive<i8>, out: &mut [u8]) {
    let byte = |integer: i8| integer.clamp(*range.start(), *range.end()).cast_unsigned();
    match floats {
        Exact::F32(numbers) => map(numbers, out, |number| byte(number as i8)),
        Exact::F64(numbers) => map(numbers, out, |number| byte(number as i8)),
        _ => {}
    }
}

/// Makes elements of a type below 8 bits of their lowest bits. Other types have no unused bits.
pub fn cut(format: Format, elements: &mut [u8]) {
    let Some(unused @ 1..) = 8usize.checked_sub(format.bits()) else { return };
    let signed = matches!(format, Format::Signed(_));
    for byte in elements {
        let high = *byte << unused;
        *byte = if signed { (high.cast_signed() >> unused).cast_unsigned() } else { high >> unused };
    }
}

/// 1 for what is not 0, NaN included.
pub(super) fn store_truth(numbers: Exact<'_>, out: &mut [u8]) {
    match numbers {
        Exact::F32(numbers) => map(numbers, out, |number| u8::from(number != 0.0)),
        Exact::F64(numbers) => map(numbers, out, |number| u8::from(number != 0.0)),
        Exact::I32(numbers) => map(numbers, out, |number| u8::from(number != 0)),
        Exact::I64(numbers) => map(numbers, out, |number| u8::from(number != 0)),
        Exact::U32(numbers) => map(numbers, out, |number| u8::from(number != 0)),
        Exact::U64(numbers) => map(numbers, out, |number| u8::from(number != 0)),
    }
}

fn each<T: Wrapping>(numbers: Exact<'_>, out: &mut [u8]) {
    let out = cast_slice_mut::<u8, T>(out);
    match numbers {
        Exact::F32(numbers) => truncate(numbers, out),
        Exact::F64(numbers) => truncate(numbers, out),
        Exact::I32(numbers) => map(numbers, out, T::of_i32),
        Exact::I64(numbers) => map(numbers, out, T::of_i64),
        Exact::U32(numbers) => map(numbers, out, |number| T::of_i64(number.into())),
        Exact::U64(numbers) => map(numbers, out, |number| T::of_i64(number.cast_signed())),
    }
}

/// Blocks of small numbers, which is most of them, need no care for the others.
fn truncate<F: Real, T: Wrapping>(numbers: &[F], out: &mut [T]) {
    if size_of::<T>() <= 4 && all_below(numbers, F::TWO_TO_31) {
        map(numbers, out, |number| {
            // SAFETY: it is between -2^31 and 2^31, both excluded.
            #[allow(unsafe_code)]
            T::of_i32(unsafe { number.to_i32() })
        });
    } else if all_below(numbers, F::TWO_TO_63) {
        map(numbers, out, |number| {
            // SAFETY: it is between -2^63 and 2^63, both excluded.
            #[allow(unsafe_code)]
            T::of_i64(unsafe { number.to_i64() })
        });
    } else {
        map(numbers, out, |number| T::of_i64(wrapped(number.to_f64())));
    }
}

/// The integer toward 0, modulo 2^64; 0 for NaN and the infinities.
#[inline]
pub fn wrapped(number: f64) -> i64 {
    const MANTISSA: u32 = 52;
    if number.abs() < f64::TWO_TO_63 {
        return number as i64;
    }
    let bits = number.to_bits();
    let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
    // The bias of the exponent, which counts from the top of the mantissa. It is beyond 64 for what is not finite.
    let shift = (bits >> MANTISSA & 0x7ff) as u32 - 1023 - MANTISSA;
    let magnitude = mantissa.checked_shl(shift).unwrap_or(0).cast_signed();
    if number < 0.0 { magnitude.wrapping_neg() } else { magnitude }
}

for_each_level! {
    /// Whether all magnitudes are below a limit. NaN is not.
    fn all_below<F: Real>(numbers: &[F], limit: F) -> bool = all_below_plainly;
}

#[inline(always)]
fn all_below_plainly<F: Real>(numbers: &[F], limit: F) -> bool {
    numbers.iter().fold(true, |all, number| all & number.is_below(limit))
}

trait Real: Pod {
    const TWO_TO_31: Self;
    const TWO_TO_63: Self;
    fn is_below(self, limit: Self) -> bool;
    fn to_f64(self) -> f64;

    /// Cuts off the fraction. A conversion that saturates is several times slower.
    ///
    /// # Safety
    /// The magnitude is below 2^31.
    #[allow(unsafe_code)]
    unsafe fn to_i32(self) -> i32;

    /// Cuts off the fraction.
    ///
    /// # Safety
    /// The magnitude is below 2^63.
    #[allow(unsafe_code)]
    unsafe fn to_i64(self) -> i64;
}

macro_rules! reals {
    ($($type:ident),*) => {$(
        impl Real for $type {
            const TWO_TO_31: Self = (1u64 << 31) as $type;
            const TWO_TO_63: Self = (1u64 << 63) as $type;
            #[inline(always)]
            fn is_below(self, limit: Self) -> bool {
                self.abs() < limit
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            #[allow(unsafe_code)]
            unsafe fn to_i32(self) -> i32 {
                // SAFETY: the caller promises that it fits.
                unsafe { self.to_int_unchecked() }
            }
            #[inline(always)]
            #[allow(unsafe_code)]
            unsafe fn to_i64(self) -> i64 {
                // SAFETY: the caller promises that it fits.
                unsafe { self.to_int_unchecked() }
            }
        }
    )*};
}

reals!(f32, f64);

/// An integer type that others convert to by their lowest bits.
trait Wrapping: Pod {
    fn of_i32(number: i32) -> Self;
    fn of_i64(number: i64) -> Self;
}

macro_rules! wrapping {
    ($($type:ident),*) => {$(
        impl Wrapping for $type {
            #[inline(always)]
            fn of_i32(number: i32) -> Self {
                number as $type
            }
            #[inline(always)]
            fn of_i64(number: i64) -> Self {
                number as $type
            }
        }
    )*};
}

wrapping!(i8, i16, i32, i64, u8, u16, u32, u64);
