//! Functions of e^x.

use super::pieces::TANH;
use super::wide::Wide;
use super::{Curve, Real, greatest, least, near_zero, polynomial, sum};

/// e^r - 1 = r + the result, where `r` is x - n * [`Real::LN_2`], which is exact, and stands for x + low - n ln 2.
#[inline(always)]
pub(super) fn rest<T: Real>(r: T, n: T, low: T) -> T {
    let low = n.mul_add(-T::LN_2_LOW, low);
    let sum = r + low;
    (sum * sum).mul_add(polynomial(sum, T::EXP), low)
}

/// e^x
#[derive(Clone, Copy)]
pub(super) struct Exp;

impl Curve for Exp {
    #[inline(always)]
    fn singles<V: Wide>(self, x: V) -> V {
        if x.within(ORDINARY) {
            let (shifted, p) = power(x);
            let s = scale(shifted);
            return s.mul_add(p, s);
        }
        // What may be subnormal is rounded once, by the last product. 2^n may be too large, 2^(n - 1) never is.
        let bounded = x.least(V::all(f32::EXP_MAX)).greatest(V::all(f32::EXP_MIN));
        let (tiny, ordinary) = (V::all(-ORDINARY), V::all(ORDINARY));
        let lift = x.below(tiny, V::all(8.0 * LIFT as f32), x.below(ordinary, V::all(0.0), V::all(-8.0)));
        let lower = x.below(tiny, V::all(LOWER as f32), x.below(ordinary, V::all(1.0), V::all(2.0)));
        // A product with 0 is 0 at once, but processors take long for one that becomes 0 by rounding.
        let lower = x.below(V::all(f32::EXP_MIN), V::all(0.0), lower);
        let x = bounded;
        let (shifted, p) = power(x);
        let s = scale(shifted.plus(lift));
        s.mul_add(p, s).times(lower)
    }

    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        of_sum(x, 0.0)
    }

    #[inline(always)]
    fn is_ordinary(self, x: f64) -> bool {
        x.abs() <= -f64::EXP_NORMAL
    }

    #[inline(always)]
    fn ordinary(self, x: f64) -> f64 {
        // What the low bits hold beside n - 1.
        const BIAS: u64 = (f64::MAX_EXP - 2) as u64;
        let (y, shifted) = reduced(x, 0.0);
        let n = shifted.to_bits().wrapping_sub(BIAS);
        f64::from_bits(y.to_bits().wrapping_add(n << (f64::MANTISSA_DIGITS - 1)))
    }
}

/// e^(x - less)
#[derive(Clone, Copy)]
pub(super) struct ExpBelow {
    pub(super) less: f64,
}

impl Curve for ExpBelow {
    #[inline(always)]
    fn singles<V: Wide>(self, x: V) -> V {
        Exp.singles(x.minus(V::all(self.less as f32)))
    }

    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        Exp.double(x - self.less)
    }

    #[inline(always)]
    fn is_ordinary(self, x: f64) -> bool {
        Exp.is_ordinary(x - self.less)
    }

    #[inline(always)]
    fn ordinary(self, x: f64) -> f64 {
        Exp.ordinary(x - self.less)
    }
}

/// (s, p): e^x = 2^(n / 8) * (1 + p), n in the last bits of s, which is [`SHIFT`] + n. p is at most 2^-4.4.
#[inline(always)]
fn power<V: Wide>(x: V) -> (V, V) {
    let (shifted, r) = eighths(x, SHIFT);
    (shifted, beyond(r, shifted))
}

/// (s, r): x = n * ln(2) / 8 + r, n in the last bits of s, which is `shift` + n. r is at most ln(2) / 16.
#[inline(always)]
pub(super) fn eighths<V: Wide>(x: V, shift: f32) -> (V, V) {
    let shifted = x.mul_add(V::all(8.0 * f32::LOG2_E), V::all(shift));
    let n = shifted.minus(V::all(shift));
    // The first difference is exact.
    let r = n.mul_add(V::all(f32::LN_2 / -8.0), x);
    (shifted, n.mul_add(V::all(f32::LN_2_LOW / -8.0), r))
}

/// e^r - 1, and what [`scale`] lacks of 2^(n / 8).
#[inline(always)]
pub(super) fn beyond<V: Wide>(r: V, shifted: V) -> V {
    let slope = r.mul_add(r.mul_add(V::all(FOURTH), V::all(CUBE)), V::all(SQUARE));
    r.times(r).mul_add(slope, r).plus(shifted.lookup(&LOST))
}

/// 2^(n / 8), n in the last bits, without what [`LOST`] has.
#[inline(always)]
pub(super) fn scale<V: Wide>(shifted: V) -> V {
    shifted.lookup(&ROOTS).raised(shifted)
}

/// (y, s): e^(x + low) = y * 2^n, y from 0.7 to 1.5, and s is [`Real::BIASED`]` + n - 1`.
#[inline(always)]
fn reduced(x: f64, low: f64) -> (f64, f64) {
    let shift = f64::BIASED - 1.0;
    let shifted = x.mul_add(f64::LOG2_E, shift);
    let n = shifted - shift;
    let r = n.mul_add(-f64::LN_2, x);
    let (high, error) = sum(1.0, r);
    (high + (error + rest(r, n, low)), shifted)
}

/// e^(x + low), |low| at most a unit in the last place of x.
#[inline(always)]
pub(super) fn of_sum(x: f64, low: f64) -> f64 {
    // 2y * 2^(n - 1): 2^n may be too large, 2^(n - 1) never is.
    let (y, shifted) = reduced(greatest(least(x, f64::EXP_MAX), f64::EXP_MIN), low);
    // What may be subnormal is rounded once, by the last product.
    let tiny = x < f64::EXP_NORMAL;
    let y = (y + y) * (if tiny { shifted + LIFT } else { shifted }).power_of_two();
    if tiny { y * LOWER } else { y }
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
#[derive(Clone, Copy)]
pub(super) struct Sigmoid;

impl Curve for Sigmoid {
    #[inline(always)]
    fn singles<V: Wide>(self, x: V) -> V {
        if x.within(ORDINARY) {
            return inverse(x, V::all(0.0), V::all(1.0));
        }
        // As in `Exp`. The 1 doesn't count beside numbers so large.
        let x = x.least(V::all(ORDINARY)).greatest(V::all(f32::EXP_MIN));
        let tiny = V::all(-ORDINARY);
        let lift = x.below(tiny, V::all(-8.0 * LIFT as f32), V::all(0.0));
        let one = x.below(tiny, V::all(0.0), V::all(1.0));
        inverse(x, lift, one).times(x.below(tiny, V::all(LOWER as f32), V::all(1.0)))
    }

    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        // As in `Exp`.
        let tiny = x < f64::EXP_NORMAL;
        let (y, s) = logistic(greatest(least(x, f64::SATURATED), f64::EXP_MIN), 0.0, tiny, LIFT);
        let y = y * s;
        if tiny { y * LOWER } else { y }
    }

    #[inline(always)]
    fn is_ordinary(self, x: f64) -> bool {
        x.abs() <= f64::SATURATED
    }

    #[inline(always)]
    fn ordinary(self, x: f64) -> f64 {
        let (y, s) = logistic(x, 0.0, false, LIFT);
        y * s
    }
}

/// x / (1 + e^-x), rounded twice.
#[derive(Clone, Copy)]
pub(super) struct Gated;

impl Curve for Gated {
    #[inline(always)]
    fn singles<V: Wide>(self, x: V) -> V {
        x.times(Sigmoid.singles(x))
    }

    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        x * Sigmoid.double(x)
    }

    #[inline(always)]
    fn is_ordinary(self, x: f64) -> bool {
        Sigmoid.is_ordinary(x)
    }

    #[inline(always)]
    fn ordinary(self, x: f64) -> f64 {
        x * Sigmoid.ordinary(x)
    }
}

/// 1 / (one + e^-x * 2^(lift / 8))
#[inline(always)]
fn inverse<V: Wide>(x: V, lift: V, one: V) -> V {
    let (shifted, p) = power(x.negated());
    let s = scale(shifted.plus(lift));
    // one + s + s * p, of which the first sum is in two parts.
    let whole = one.plus(s);
    let lost = one.least(s).minus(whole.minus(one.greatest(s)));
    let rest = s.mul_add(p, lost);
    let inverse = V::all(1.0).over(whole.plus(rest));
    let wrong = inverse.mul_add(rest.negated(), inverse.mul_add(whole.negated(), V::all(1.0)));
    wrong.mul_add(inverse, inverse)
}

/// (y, s): 1 / (1 + e^-(x + low)) = y * s, s a power of two. If the result is tiny s is 2^`lift` times as large, and e^-x
/// so large that the 1 doesn't count. x is at most [`Real::SATURATED`].
#[inline(always)]
pub(super) fn logistic(x: f64, low: f64, tiny: bool, lift: f64) -> (f64, f64) {
    // With e^-x = (1 + p) / s it is s / (s + 1 + p).
    let shifted = x.mul_add(f64::LOG2_E, f64::BIASED);
    let n = f64::BIASED - shifted;
    let r = n.mul_add(-f64::LN_2, -x);
    let s = (if tiny { shifted + lift } else { shifted }).power_of_two();
    let (whole, lost) = sum(1.0, if tiny { 0.0 } else { s });
    let (divisor, error) = sum(whole, r);
    let (divisor, error) = sum(divisor, (error + lost) + rest(r, n, -low));
    let inverse = 1.0 / divisor;
    let wrong = inverse.mul_add(-error, inverse.mul_add(-divisor, 1.0));
    (wrong.mul_add(inverse, inverse), s)
}

#[derive(Clone, Copy)]
pub(super) struct Tanh;

impl Curve for Tanh {
    #[inline(always)]
    fn singles<V: Wide>(self, x: V) -> V {
        TANH.odd(x)
    }

    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        // With e^2|x| = (1 + p) / s it is (1 - s + p) / (1 + s + p). s is a power of 2.
        let twice = least(x.abs() + x.abs(), f64::SATURATED);
        let shifted = twice.mul_add(-f64::LOG2_E, f64::BIASED);
        let n = f64::BIASED - shifted;
        let s = shifted.power_of_two();
        let r = n.mul_add(-f64::LN_2, twice);
        let rest = rest(r, n, 0.0);
        let (below, above) = (1.0 - s, 1.0 + s);
        // What these two lack when s is small. The quotient is nearly 1 then.
        let lost = (above - below) - (s + s);
        let (dividend, error) = sum(below, r);
        let (dividend, dividend_error) = sum(dividend, (error + lost) + rest);
        let (divisor, error) = sum(above, r);
        let (divisor, divisor_error) = sum(divisor, error + rest);
        let inverse = 1.0 / divisor;
        let quotient = dividend * inverse;
        let wrong = quotient.mul_add(-divisor, dividend) + quotient.mul_add(-divisor_error, dividend_error);
        wrong.mul_add(inverse, quotient).copysign(x)
    }
}

/// Numbers that may become subnormal are kept larger by 2^[`LIFT`].
pub(super) const LIFT: f64 = 64.0;
/// 2^[`LIFT`] and 2^-[`LIFT`]
pub(super) const RAISE: f64 = (1u128 << 64) as f64;
pub(super) const LOWER: f64 = 1.0 / RAISE;
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
/// Exponentials of numbers within are normal.
const ORDINARY: f32 = -f32::EXP_NORMAL;
/// As [`Real::BIASED`], without a bias.
pub(super) const SHIFT: f32 = 1.5 / f32::EPSILON;
// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 16: error 2^-32.4, of e^r.
const SQUARE: f32 = 0.5;
const CUBE: f32 = 0.16668023;
const FOURTH: f32 = 0.04166784;
/// 2^(j / 8) without j in the bits that [`Wide::raised`] adds.
const ROOTS: [f32; 8] = {
    let mut roots =
        [1.0f32, 1.0905077, 1.1892071, 1.2968396, std::f32::consts::SQRT_2, 1.5422108, 1.6817929, 1.8340081];
    let mut j = 0;
    #[allow(clippy::indexing_slicing)]
    while j < 8 {
        roots[j] = f32::from_bits(roots[j].to_bits() - ((j as u32) << 20));
        j += 1;
    }
    roots
};
/// What 2^(j / 8) has beyond [`ROOTS`], relative.
const LOST: [f32; 8] =
    [0.0, -1.19921575e-08, 3.193418e-08, -3.099072e-08, 1.7114271e-08, 5.233334e-09, -1.4719605e-08, -6.1282597e-09];
