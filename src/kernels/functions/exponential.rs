//! Functions of e^x.

use super::{Real, greatest, least, polynomial, sum};

/// e^r - 1 = r + the result, where `r` is x - n * [`Real::LN_2`], which is exact, and stands for x - n ln 2.
#[inline(always)]
fn rest<T: Real>(r: T, n: T) -> T {
    let low = n * -T::LN_2_LOW;
    (r * r).mul_add(polynomial(r, T::EXP), low.mul_add(r, low))
}

#[inline(always)]
pub(crate) fn exp<T: Real>(x: T) -> T {
    // e^x = y * 2^(n - 1): 2^n may be too large, 2^(n - 1) never is.
    let shift = T::BIASED - T::ONE;
    let bounded = greatest(least(x, T::EXP_MAX), T::EXP_MIN);
    let shifted = bounded.mul_add(T::LOG2_E, shift);
    let n = shifted - shift;
    let r = n.mul_add(-T::LN_2, bounded);
    let y = (r + rest(r, n)).mul_add(T::of(2.0), T::of(2.0));
    // What may be subnormal is rounded once, by the last product.
    let tiny = x < T::EXP_NORMAL;
    let y = y * (if tiny { shifted + T::of(LIFT) } else { shifted }).power_of_two();
    if tiny { y * T::of(LOWER) } else { y }
}

/// 1 / (1 + e^-x)
#[inline(always)]
pub(crate) fn sigmoid<T: Real>(x: T) -> T {
    // With e^-x = (1 + p) / s it is s / (s + 1 + p). s is a power of 2.
    let bounded = greatest(least(x, T::SATURATED), T::EXP_MIN);
    let shifted = bounded.mul_add(T::LOG2_E, T::BIASED);
    let n = T::BIASED - shifted;
    let r = n.mul_add(-T::LN_2, -bounded);
    // As in `exp`. The lifted s doesn't count in the sum.
    let tiny = x < T::EXP_NORMAL;
    let s = (if tiny { shifted + T::of(LIFT) } else { shifted }).power_of_two();
    let (whole, lost) = sum(T::ONE, if tiny { T::ZERO } else { s });
    let (divisor, error) = sum(whole, r);
    let error = (error + lost) + rest(r, n);
    let inverse = T::ONE / divisor;
    let wrong = inverse.mul_add(-error, inverse.mul_add(-divisor, T::ONE));
    let y = wrong.mul_add(inverse, inverse) * s;
    if tiny { y * T::of(LOWER) } else { y }
}

#[inline(always)]
pub(crate) fn tanh<T: Real>(x: T) -> T {
    // With e^2|x| = (1 + p) / s it is (1 - s + p) / (1 + s + p). s is a power of 2.
    let twice = least(x.abs() + x.abs(), T::SATURATED);
    let shifted = twice.mul_add(-T::LOG2_E, T::BIASED);
    let n = T::BIASED - shifted;
    let s = shifted.power_of_two();
    let r = n.mul_add(-T::LN_2, twice);
    let rest = rest(r, n);
    let (dividend, error) = sum(T::ONE - s, r);
    let dividend_error = error + rest;
    let (divisor, error) = sum(T::ONE + s, r);
    let (divisor, divisor_error) = sum(divisor, error + rest);
    let inverse = T::ONE / divisor;
    let quotient = dividend * inverse;
    let wrong = quotient.mul_add(-divisor, dividend) + quotient.mul_add(-divisor_error, dividend_error);
    wrong.mul_add(inverse, quotient).copysign(x)
}

/// Numbers that may become subnormal are kept larger by 2^[`LIFT`].
pub(super) const LIFT: f64 = 64.0;
/// 2^-[`LIFT`]
const LOWER: f64 = 1.0 / (1u128 << 64) as f64;
