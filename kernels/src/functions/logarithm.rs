//! Functions of log(x).

use super::exponential::{LIFT, RAISE};
use super::{Real, ends, least, near_zero, ordered, polynomial, sum};

#[inline(always)]
pub fn log<T: Real>(x: T) -> T {
    let subnormal = x < T::MIN_POSITIVE;
    let (m, k) = (if subnormal { x * T::of(RAISE) } else { x }).parts();
    let k = if subnormal { k - T::of(LIFT) } else { k };
    let f = m - T::ONE;
    ends(x, T::ZERO, together(f, (f * f).mul_add(polynomial(f, T::LOG), k * T::LN_2_REST), k))
}

/// log(1 + x)
#[inline(always)]
pub(super) fn log1p<T: Real>(x: T) -> T {
    let (high, low) = ordered(x, T::ONE);
    let y = ends(x, -T::ONE, of_sum(high, low, T::ZERO));
    // Keeps -0.
    if x == T::ZERO { x } else { y }
}

/// log(1 + e^x)
#[inline(always)]
pub fn softplus<T: Real>(x: T) -> T {
    let x = x.to_f64();
    let small = log1p(super::exp(-x.abs()));
    T::of(if x > 0.0 { x + small } else { small })
}

#[inline(always)]
pub fn asinh<T: Real>(x: T) -> T {
    let a = x.to_f64().abs();
    let large = a > LARGE;
    let square = a * a;
    let (v, error) = ordered(square, 1.0);
    let (root, low) = square_root(v, error + a.mul_add(a, -square));
    let (high, error) = sum(root, a);
    let y = of_sum(if large { a } else { high }, if large { 0.0 } else { error + low }, if large { 1.0 } else { 0.0 });
    let y = if a < 0.5 { near_zero(a, ASINH) } else { y };
    let y = if a < f64::INFINITY { y } else { a };
    T::of(y.copysign(x.to_f64()))
}

#[inline(always)]
pub fn acosh<T: Real>(x: T) -> T {
    let x = x.to_f64();
    // Up to 2: 1 + t + sqrt(2t + t^2).
    let near = x < 2.0;
    let t = x - 1.0;
    let square = if near { t * t } else { x * x };
    let error = if near { t.mul_add(t, -square) } else { x.mul_add(x, -square) };
    let (v, more) = if near { sum(t + t, square) } else { sum(square, -1.0) };
    let (root, low) = square_root(v, more + error);
    let (high, error) = ordered(if near { t } else { x }, root);
    let (whole, more) = ordered(high, 1.0);
    let (high, low) = if near { (whole, more + (error + low)) } else { (high, error + low) };
    let large = x > LARGE;
    let y = of_sum(if large { x } else { high }, if large { 0.0 } else { low }, if large { 1.0 } else { 0.0 });
    let y = if x < f64::INFINITY { y } else { x };
    T::of(if x < 1.0 {
        f64::NAN
    } else if x == 1.0 {
        0.0
    } else {
        y
    })
}

#[inline(always)]
pub fn atanh<T: Real>(x: T) -> T {
    let a = x.to_f64().abs();
    let divisor = 1.0 - a;
    let (dividend, error) = sum(1.0, a);
    let quotient = dividend / divisor;
    let low = (quotient.mul_add(-divisor, dividend) + error) / divisor;
    let y = 0.5 * of_sum(quotient, low, 0.0);
    let y = if a < 0.5 { near_zero(a, ATANH) } else { y };
    let y = if a == 1.0 { f64::INFINITY } else { y };
    T::of((if a <= 1.0 { y } else { f64::NAN }).copysign(x.to_f64()))
}

/// log(high + low) + more * ln 2, of a normal number `high` and its error.
#[inline(always)]
fn of_sum<T: Real>(high: T, low: T, more: T) -> T {
    let (m, k) = high.parts();
    let f = m - T::ONE;
    // log'(m) = 1 / m. `low` doesn't count where k is limited.
    let low = low * (T::BIASED - least(k, T::of(100.0))).power_of_two() / m;
    let k = k + more;
    together(f, (f * f).mul_add(polynomial(f, T::LOG), k.mul_add(T::LN_2_REST, low)), k)
}

/// k * [`Real::LN_2_SHORT`] + f + rest: the product is exact, and so is the error of its sum with f.
#[inline(always)]
fn together<T: Real>(f: T, rest: T, k: T) -> T {
    let high = k.mul_add(T::LN_2_SHORT, f);
    let low = f - k.mul_add(-T::LN_2_SHORT, high);
    high + (low + rest)
}

/// sqrt(high + low), in two parts.
#[inline(always)]
fn square_root(high: f64, low: f64) -> (f64, f64) {
    let root = high.sqrt();
    (root, (root.mul_add(-root, high) + low) / (root + root))
}

/// Adding 1 to the square of a larger number changes nothing, and the square may be infinite.
const LARGE: f64 = 1e20;
// (asinh(x) - x) / x^3 in x^2, x <= 1/2: error 2^-60.4.
const ASINH: &[f64] = &[
    -0.1666666666666661,
    0.07499999999984393,
    -0.04464285712779956,
    0.030381943714740876,
    -0.022372138312685974,
    0.01735238619755242,
    -0.013960224198041656,
    0.011512927895054788,
    -0.009533886824480005,
    0.0074648679672924476,
    -0.004746317480640746,
    0.0017172351629917114,
];
// (atanh(x) - x) / x^3 in x^2, x <= 1/2: error 2^-60.9.
const ATANH: &[f64] = &[
    0.3333333333333328,
    0.20000000000018456,
    0.14285714283408416,
    0.11111111256740108,
    0.09090903643539387,
    0.07692439297180344,
    0.06664504821471007,
    0.059072375459732,
    0.050594608181708134,
    0.0594888774989066,
    -0.005062211653327433,
    0.17430480808040139,
    -0.19525363431294812,
    0.24060500007473914,
];
