//! Functions of e^x.

use super::{Real, greatest, least, near_zero, polynomial, sum};

/// e^r - 1 = r + the result, where `r` is x - n * [`Real::LN_2`], which is exact, and stands for x + low - n ln 2.
#[inline(always)]
pub(super) fn rest<T: Real>(r: T, n: T, low: T) -> T {
    let low = n.mul_add(-T::LN_2_LOW, low);
    let sum = r + low;
    (sum * sum).mul_add(polynomial(sum, T::EXP), low)
}

#[inline(always)]
pub fn exp<T: Real>(x: T) -> T {
    of_sum(x, T::ZERO)
}

/// [`exp`] of some numbers. If all are ordinary, as they mostly are, it takes half of the steps.
#[inline(always)]
pub fn exp_some<T: Real, const N: usize>(mut x: [T; N]) -> [T; N] {
    let mut ordinary = true;
    for x in &x {
        ordinary &= x.abs() <= -T::EXP_NORMAL;
    }
    if ordinary {
        for x in &mut x {
            let (y, shifted) = reduced(*x, T::ZERO);
            *x = y.times_power(shifted);
        }
    } else {
        for x in &mut x {
            *x = exp(*x);
        }
    }
    x
}

/// (y, s): e^(x + low) = y * 2^n, y from 0.7 to 1.5, and s is [`Real::BIASED`]` + n - 1`.
#[inline(always)]
fn reduced<T: Real>(x: T, low: T) -> (T, T) {
    let shift = T::BIASED - T::ONE;
    let shifted = x.mul_add(T::LOG2_E, shift);
    let n = shifted - shift;
    let r = n.mul_add(-T::LN_2, x);
    let (high, error) = sum(T::ONE, r);
    (high + (error + rest(r, n, low)), shifted)
}

/// e^(x + low), |low| at most a unit in the last place of x.
#[inline(always)]
pub(super) fn of_sum<T: Real>(x: T, low: T) -> T {
    // 2y * 2^(n - 1): 2^n may be too large, 2^(n - 1) never is.
    let (y, shifted) = reduced(greatest(least(x, T::EXP_MAX), T::EXP_MIN), low);
    // What may be subnormal is rounded once, by the last product.
    let tiny = x < T::EXP_NORMAL;
    let y = (y + y) * (if tiny { shifted + T::of(LIFT) } else { shifted }).power_of_two();
    if tiny { y * T::of(LOWER) } else { y }
}

/// e^x - 1
#[inline(always)]
pub(super) fn expm1<T: Real>(x: T) -> T {
    let (high, low) = half_expm1(x);
    let half = high + low;
    // The half of a subnormal number isn't exact.
    if x.abs() < T::MIN_POSITIVE + T::MIN_POSITIVE { x } else { half + half }
}

/// x, and factor * (e^x - 1) below 0: at most 2 ulp.
#[inline(always)]
pub fn elu<T: Real>(x: T, factor: f64) -> T {
    let (high, low) = half_expm1(x);
    let near = T::of(factor);
    let lost = T::of(factor - near.to_f64());
    let lost = if lost.abs() < T::INFINITY { lost } else { T::ZERO };
    let half = near.mul_add(high, near.mul_add(low, lost * high));
    let y = if x.abs() < T::MIN_POSITIVE + T::MIN_POSITIVE { near * x } else { half + half };
    if x < T::ZERO { y } else { x }
}

/// (high, low): (e^x - 1) / 2, |low| not greater than |high|. If x is subnormal it isn't exact.
#[inline(always)]
fn half_expm1<T: Real>(x: T) -> (T, T) {
    let shift = T::BIASED - T::ONE;
    let bounded = greatest(least(x, T::EXP_MAX), -T::SATURATED - T::ONE);
    let shifted = bounded.mul_add(T::LOG2_E, shift);
    let n = shifted - shift;
    let r = n.mul_add(-T::LN_2, bounded);
    // e^x / 2 - 1 / 2, s = 2^(n - 1)
    let s = shifted.power_of_two();
    let (small, large) = if s < T::of(0.5) { (s, -T::of(0.5)) } else { (-T::of(0.5), s) };
    let (whole, lost) = sum(large, small);
    let (high, low) = sum(whole, s * r);
    (high, s.mul_add(rest(r, n, T::ZERO), low) + lost)
}

/// (e^x + sign * e^-x) / 2, x not negative.
#[inline(always)]
fn halves(x: f64, sign: f64) -> f64 {
    let bounded = least(x, 711.0);
    let shifted = bounded.mul_add(f64::LOG2_E, f64::BIASED);
    let n = shifted - f64::BIASED;
    let r = n.mul_add(-f64::LN_2, bounded);
    let (high, low) = sum(1.0, r);
    let (high, low) = sum(high, low + rest(r, n, 0.0));
    // 2^-n, which doesn't count any more when it is limited.
    let s = (f64::BIASED - least(n, 1000.0)).power_of_two();
    let y = high + (s * s / high).mul_add(sign, low);
    y * (shifted - 2.0).power_of_two() * 2.0
}

#[inline(always)]
pub fn sinh<T: Real>(x: T) -> T {
    let a = x.to_f64().abs();
    let y = if a < 1.0 { near_zero(a, SINH) } else { halves(a, -1.0) };
    T::of(y.copysign(x.to_f64()))
}

#[inline(always)]
pub fn cosh<T: Real>(x: T) -> T {
    T::of(halves(x.to_f64().abs(), 1.0))
}

/// 1 / (1 + e^-x)
#[inline(always)]
pub fn sigmoid<T: Real>(x: T) -> T {
    // As in `exp`.
    let tiny = x < T::EXP_NORMAL;
    let (y, s) = logistic(greatest(least(x, T::SATURATED), T::EXP_MIN), T::ZERO, tiny, LIFT);
    let y = y * s;
    if tiny { y * T::of(LOWER) } else { y }
}

/// [`sigmoid`] of some numbers. If all are ordinary, as they mostly are, it takes fewer steps.
#[inline(always)]
pub fn sigmoid_some<T: Real, const N: usize>(mut x: [T; N]) -> [T; N] {
    let mut ordinary = true;
    for x in &x {
        ordinary &= x.abs() <= T::SATURATED;
    }
    if ordinary {
        for x in &mut x {
            let (y, s) = logistic(*x, T::ZERO, false, LIFT);
            *x = y * s;
        }
    } else {
        for x in &mut x {
            *x = sigmoid(*x);
        }
    }
    x
}

/// (y, s): 1 / (1 + e^-(x + low)) = y * s, s a power of two. If the result is tiny s is 2^`lift` times as large, and e^-x
/// so large that the 1 doesn't count. x is at most [`Real::SATURATED`].
#[inline(always)]
pub(super) fn logistic<T: Real>(x: T, low: T, tiny: bool, lift: f64) -> (T, T) {
    // With e^-x = (1 + p) / s it is s / (s + 1 + p).
    let shifted = x.mul_add(T::LOG2_E, T::BIASED);
    let n = T::BIASED - shifted;
    let r = n.mul_add(-T::LN_2, -x);
    let s = (if tiny { shifted + T::of(lift) } else { shifted }).power_of_two();
    let (whole, lost) = sum(T::ONE, if tiny { T::ZERO } else { s });
    let (divisor, error) = sum(whole, r);
    let (divisor, error) = sum(divisor, (error + lost) + rest(r, n, -low));
    let inverse = T::ONE / divisor;
    let wrong = inverse.mul_add(-error, inverse.mul_add(-divisor, T::ONE));
    (wrong.mul_add(inverse, inverse), s)
}

#[inline(always)]
pub fn tanh<T: Real>(x: T) -> T {
    // With e^2|x| = (1 + p) / s it is (1 - s + p) / (1 + s + p). s is a power of 2.
    let twice = least(x.abs() + x.abs(), T::SATURATED);
    let shifted = twice.mul_add(-T::LOG2_E, T::BIASED);
    let n = T::BIASED - shifted;
    let s = shifted.power_of_two();
    let r = n.mul_add(-T::LN_2, twice);
    let rest = rest(r, n, T::ZERO);
    let (below, above) = (T::ONE - s, T::ONE + s);
    // What these two lack when s is small. The quotient is nearly 1 then.
    let lost = (above - below) - (s + s);
    let (dividend, error) = sum(below, r);
    let (dividend, dividend_error) = sum(dividend, (error + lost) + rest);
    let (divisor, error) = sum(above, r);
    let (divisor, divisor_error) = sum(divisor, error + rest);
    let inverse = T::ONE / divisor;
    let quotient = dividend * inverse;
    let wrong = quotient.mul_add(-divisor, dividend) + quotient.mul_add(-divisor_error, dividend_error);
    wrong.mul_add(inverse, quotient).copysign(x)
}

/// Numbers that may become subnormal are kept larger by 2^[`LIFT`].
pub(super) const LIFT: f64 = 64.0;
/// 2^-[`LIFT`]
pub(super) const LOWER: f64 = 1.0 / (1u128 << 64) as f64;
// (sinh(x) - x) / x^3 in x^2, x <= 1: error 2^-62.9.
const SINH: &[f64] = &[
    0.16666666666666666,
    0.008333333333333571,
    0.0001984126984106378,
    2.75573193086752e-06,
    2.5052089780535345e-08,
    1.606128939394127e-10,
    7.506646805933584e-13,
    6.384219503822483e-15,
];
