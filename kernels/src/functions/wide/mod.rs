//! Vectors of `f32` for functions that look numbers up: compilers make vectors of plain code, but not of lookups, which
//! they would do one by one.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vectors;

use super::Curve;
#[cfg(target_arch = "x86_64")]
pub(crate) use vectors::x86::{exp_of_16, exp_of_32};

/// Some `f32`: as many as a vector of the processor holds, or one. Each operation is that of each number, and rounds once.
pub trait Wide: Copy {
    /// This number everywhere.
    fn all(number: f32) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, divisor: Self) -> Self;
    /// `self * by + plus`
    fn mul_add(self, by: Self, plus: Self) -> Self;
    fn negated(self) -> Self;
    fn abs(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    /// The lesser ones; NaN of `self`.
    fn least(self, bound: Self) -> Self;
    /// The greater ones; NaN of `self`.
    fn greatest(self, bound: Self) -> Self;
    /// `then` where `self` is below `bound`, else `or`.
    fn below(self, bound: Self, then: Self, or: Self) -> Self;
    /// Whether no number is further from 0 than `bound`, or NaN.
    fn within(self, bound: f32) -> bool;
    /// The entries at the last three bits of each.
    fn lookup(self, table: &[f32; 8]) -> Self;
    /// The bits of each without so many at the end.
    fn without_last(self, bits: u32) -> Self;
    /// The bits of `by` without the first 20, added to those of `self` as integers.
    fn raised(self, by: Self) -> Self;
}

/// What a function makes of numbers, as many as there are in both slices.
#[inline(always)]
pub(super) fn each(curve: impl Curve, from: &[f32], to: &mut [f32]) {
    let count = from.len().min(to.len());
    // SAFETY: both have as many numbers.
    #[allow(unsafe_code)]
    unsafe {
        at_each(curve, from.as_ptr(), to.as_mut_ptr(), count);
    }
}

/// Replaces numbers by what a function makes of them.
#[inline(always)]
pub(super) fn each_in_place(curve: impl Curve, numbers: &mut [f32]) {
    let (count, at) = (numbers.len(), numbers.as_mut_ptr());
    // SAFETY: the numbers are read and written through one pointer.
    #[allow(unsafe_code)]
    unsafe {
        at_each(curve, at, at, count);
    }
}

/// # Safety
/// `count` numbers can be read from `from` and written to `to`: the same ones, or others.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn at_each<C: Curve>(curve: C, from: *const f32, to: *mut f32, count: usize) {
    // SAFETY: the caller's; and `level` checked that the processor has these features.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match crate::cpu::level() {
            4.. => return vectors::x86::v4(curve, from, to, count),
            3 => return vectors::x86::v3(curve, from, to, count),
            _ => {}
        }
        #[cfg(target_arch = "aarch64")]
        return vectors::neon::all(curve, from, to, count);
        #[cfg(not(target_arch = "aarch64"))]
        for at in 0..count {
            to.add(at).write(of_one(curve, from.add(at).read()));
        }
    }
}

#[inline(always)]
pub(super) fn of_one(curve: impl Curve, number: f32) -> f32 {
    curve.singles(One(number)).0
}

/// A number by itself, for any processor.
#[derive(Clone, Copy)]
struct One(f32);

impl Wide for One {
    #[inline(always)]
    fn all(number: f32) -> Self {
        One(number)
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        One(self.0 + other.0)
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        One(self.0 - other.0)
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        One(self.0 * other.0)
    }
    #[inline(always)]
    fn over(self, divisor: Self) -> Self {
        One(self.0 / divisor.0)
    }
    #[inline(always)]
    fn mul_add(self, by: Self, plus: Self) -> Self {
        One(self.0.mul_add(by.0, plus.0))
    }
    #[inline(always)]
    fn negated(self) -> Self {
        One(-self.0)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        One(self.0.abs())
    }
    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        One(self.0.copysign(sign.0))
    }
    #[inline(always)]
    fn least(self, bound: Self) -> Self {
        One(super::least(self.0, bound.0))
    }
    #[inline(always)]
    fn greatest(self, bound: Self) -> Self {
        One(super::greatest(self.0, bound.0))
    }
    #[inline(always)]
    fn below(self, bound: Self, then: Self, or: Self) -> Self {
        if self.0 < bound.0 { then } else { or }
    }
    #[inline(always)]
    fn within(self, bound: f32) -> bool {
        self.0.abs() <= bound
    }
    #[inline(always)]
    fn lookup(self, table: &[f32; 8]) -> Self {
        #[allow(clippy::indexing_slicing)]
        One(table[(self.0.to_bits() & 7) as usize])
    }
    #[inline(always)]
    fn without_last(self, bits: u32) -> Self {
        One(f32::from_bits(self.0.to_bits() >> bits))
    }
    #[inline(always)]
    fn raised(self, by: Self) -> Self {
        One(f32::from_bits(self.0.to_bits().wrapping_add(by.0.to_bits() << 20)))
    }
}
