//! Functions of e^x.

use super::{Real, greatest, least, polynomial, sum};

/// e^x = (high + low) * 2^n, with `high` near [sqrt(1/2), sqrt(2)]: x is not beyond the range of exp.
#[inline(always)]
pub(super) fn split<T: Real>(x: T) -> (T, T, T) {
    let (r, rest, n) = reduced(x);
    let (high, low) = sum(T::ONE, r);
    (high, low + rest, n)
}

/// x = n ln 2 + r, e^r - 1 = r + rest. `r` is exact, and `rest` has what it lacks of x.
#[inline(always)]
fn reduced<T: Real>(x: T) -> (T, T, T) {
    let n = x.mul_add(T::LOG2_E, T::SHIFT) - T::SHIFT;
    let r = n.mul_add(-T::LN_2, x);
    let low = n * -T::LN_2_LOW;
    let sum = r + low;
    let rest = (sum * sum).mul_add(polynomial(sum, T::EXP), low);
    (r, rest, n)
}

#[inline(always)]
pub(crate) fn exp<T: Real>(x: T) -> T {
    let (high, low, n) = split(greatest(x, T::EXP_MIN));
    // What may be subnormal is rounded by one product at the end.
    let tiny = x < T::EXP_NORMAL;
    let n = if tiny { n + T::NORMALIZER_LOG } else { n };
    let factor = if tiny { T::ONE / T::NORMALIZER } else { T::ONE };
    let y = (high + low).scaled(n) * factor;
    // NaN remains.
    if x <= T::EXP_MAX { y } else { x + T::INFINITY }
}

/// 1 / (1 + e^-x), also where it is subnormal.
#[inline(always)]
pub(crate) fn sigmoid<T: Real>(x: T) -> T {
    // e^-x = e * 2^n: the result is s / (s + e), s = 2^-n.
    let x = greatest(least(x, T::SATURATED), T::EXP_MIN);
    let (high, low, n) = split(-x);
    let tiny = x < T::EXP_NORMAL;
    let s = T::ONE.scaled(if tiny { T::NORMALIZER_LOG - n } else { -n });
    // Where it is tiny it doesn't count.
    let addend = if tiny { T::ZERO } else { s };
    let (divisor, error) = sum(greatest(addend, high), least(addend, high));
    let quotient = T::ONE / divisor;
    let wrong = (-(error + low)).mul_add(quotient, (-divisor).mul_add(quotient, T::ONE));
    let factor = if tiny { T::ONE / T::NORMALIZER } else { T::ONE };
    wrong.mul_add(quotient, quotient) * s * factor
}

#[inline(always)]
pub(crate) fn tanh<T: Real>(x: T) -> T {
    // With e^2|x| = (1 + p) * 2^n and s = 2^-n it is (1 - s + p) / (1 + s + p).
    let twice = least(x.abs() + x.abs(), T::SATURATED);
    let (r, rest, n) = reduced(twice);
    let s = T::ONE.scaled(-n);
    let (dividend, error) = sum(T::ONE - s, r);
    let dividend_error = error + rest;
    let (divisor, error) = sum(T::ONE + s, r);
    let (divisor, divisor_error) = sum(divisor, error + rest);
    let inverse = T::ONE / divisor;
    let quotient = dividend * inverse;
    let wrong = quotient.mul_add(-divisor, dividend) + quotient.mul_add(-divisor_error, dividend_error);
    wrong.mul_add(inverse, quotient).copysign(x)
}
