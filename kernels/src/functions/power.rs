//! Powers: of any two numbers, and of the exponents 3 and 0.5.

use super::activation::brief_exp;
use super::exponential::{LIFT, RAISE, of_sum};
use super::{Real, is_short, polynomial, sum};

/// x^y with the special cases of C's `pow`, in `f64` for either type.
#[inline(always)]
pub fn pow<T: Real>(x: T, y: T) -> T {
    let (x, y) = (x.to_f64(), y.to_f64());
    let a = x.abs();
    let power = if is_short::<T>() {
        brief_exp(brief_log(a) * y)
    } else {
        let (high, low) = log(a);
        // The exponent, in two parts. Beyond these limits it doesn't count.
        let product = high * y;
        let rest = low.mul_add(y, high.mul_add(y, -product));
        of_sum(product, if product.abs() < 800.0 { rest } else { 0.0 })
    };
    let power = if a == 1.0 { 1.0 } else { power };
    let integer = y.trunc() == y;
    let odd = integer && (0.5 * y).trunc() != 0.5 * y;
    let power = if odd { power.copysign(x) } else { power };
    let power = if x < 0.0 && !integer && a < f64::INFINITY { f64::NAN } else { power };
    let power = if x.is_nan() || y.is_nan() { x + y } else { power };
    T::of(if x == 1.0 || y == 0.0 { 1.0 } else { power })
}

/// x^3, as good as rounded once.
#[inline(always)]
pub fn cube<T: Real>(x: T) -> T {
    let square = x * x;
    let cube = square * x;
    let lost = x.mul_add(x, -square).mul_add(x, square.mul_add(x, -cube));
    // Beyond what a finite cube can have lost, so that an infinite one doesn't become NaN.
    let most = T::ONE / T::MIN_POSITIVE;
    let lost = if lost < most { lost } else { most };
    let lost = if lost > -most { lost } else { -most };
    // 0 would lose its sign.
    (cube + lost).copysign(x)
}

/// x^0.5, rounded once. It differs from the square root of -0 and of -infinity.
#[inline(always)]
pub fn root<T: Real>(x: T) -> T {
    let root = if x < T::ZERO { T::NAN } else { (x + T::ZERO).sqrt() };
    if x == -T::INFINITY { T::INFINITY } else { root }
}

/// log(x) to some 45 bits. x is 0 or infinite, or a normal number that isn't negative.
#[inline(always)]
fn brief_log(x: f64) -> f64 {
    let (m, k) = x.parts();
    // log(m) = 2 atanh(s)
    let f = m - 1.0;
    let s = f / (f + 2.0);
    let square = s * s;
    let half = (s * square).mul_add(polynomial(square, BRIEF), s);
    let y = k.mul_add(f64::LN_2, half + half);
    let y = if x == 0.0 { -f64::INFINITY } else { y };
    if x < f64::INFINITY { y } else { x }
}

/// log(x) to some 70 bits, in two parts. x isn't negative.
#[inline(always)]
fn log(x: f64) -> (f64, f64) {
    let subnormal = x < f64::MIN_POSITIVE;
    let (m, k) = (if subnormal { x * RAISE } else { x }).parts();
    let k = if subnormal { k - LIFT } else { k };
    // log(m) = 2 atanh(s) = 2 (s + s^3 / 3 + s^5 P(s^2)), all but the last in two parts.
    let f = m - 1.0;
    let (divisor, error) = sum(2.0, f);
    let s = f / divisor;
    let s_low = (s.mul_add(-divisor, f) - s * error) / divisor;
    let square = s * s;
    let square_low = s.mul_add(s, -square) + 2.0 * s * s_low;
    let cube = s * square;
    let cube_low = s.mul_add(square, -cube) + s.mul_add(square_low, s_low * square);
    let third = cube * THIRD;
    let third_low = cube.mul_add(THIRD, -third) + cube.mul_add(THIRD_LOW, cube_low * THIRD);
    let (high, low) = sum(s, third);
    let low = low + (s_low + (cube * square).mul_add(polynomial(square, TAIL), third_low));
    let (high, error) = sum(k * f64::LN_2_SHORT, 2.0 * high);
    let (high, low) = sum(high, error + low.mul_add(2.0, k * f64::LN_2_REST));
    let end = if x == 0.0 { -f64::INFINITY } else { f64::INFINITY };
    if x > 0.0 && x < f64::INFINITY { (high, low) } else { (end, 0.0) }
}

const THIRD: f64 = 1.0 / 3.0;
/// 1/3 - [`THIRD`]
const THIRD_LOW: f64 = 1.850371707708594e-17;
// (atanh(s) - s - s^3 / 3) / s^5 in s^2, s <= 0.1716: error 2^-73.5.
const TAIL: &[f64] = &[
    0.1999999999999999,
    0.14285714285721907,
    0.11111111108899603,
    0.09090909421357399,
    0.07692279258317206,
    0.06668130604845408,
    0.05837922045954204,
    0.0599062960424825,
];
// (atanh(s) - s) / s^3 in s^2, s <= 0.1716: error 2^-44.9, of atanh(s) / s.
const BRIEF: &[f64] =
    &[0.3333333333790954, 0.1999999780784209, 0.14286054911049925, 0.11088080123159508, 0.09792286436247553];
