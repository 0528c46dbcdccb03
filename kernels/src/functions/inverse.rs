//! Inverse trigonometric functions, in `f64` for either type.

use super::{Real, is_short, polynomial, sum};
use std::f64::consts::{FRAC_PI_2, PI};

#[inline(always)]
pub fn asin<T: Real>(x: T) -> T {
    let a = x.to_f64().abs();
    let small = a <= 0.5;
    let (square, series) = series::<T>(a, small);
    let (root, rest) = complement::<T>(square, series);
    let (high, low) = sum(FRAC_PI_2, -2.0 * root);
    let large = high + (low + (0.5 * PI_LOW - 2.0 * rest));
    let y = if small { (a * square).mul_add(series, a) } else { large };
    T::of(y.copysign(x.to_f64()))
}

#[inline(always)]
pub fn acos<T: Real>(x: T) -> T {
    let x = x.to_f64();
    let a = x.abs();
    let (square, series) = series::<T>(a, a <= 0.5);
    let (high, low) = sum(FRAC_PI_2, -x);
    let middle = high + (low + (x * square).mul_add(-series, 0.5 * PI_LOW));
    let (root, rest) = complement::<T>(square, series);
    let (high, low) = sum(PI, -2.0 * root);
    let left = high + (low + (PI_LOW - 2.0 * rest));
    let right = 2.0 * (root + rest);
    T::of(if x < -0.5 {
        left
    } else if x > 0.5 {
        right
    } else {
        middle
    })
}

/// The square of `a`, or that of the sine of half the angle whose cosine it is; and the series of this square.
#[inline(always)]
fn series<T: Real>(a: f64, small: bool) -> (f64, f64) {
    let square = if small { a * a } else { 0.5 - 0.5 * a };
    (square, polynomial(square, if is_short::<T>() { ASIN_SHORT } else { ASIN }))
}

/// asin(sqrt(square)) = root + rest, for (1 - a) / 2, a in [1/2, 1], and its series. NaN beyond 1.
#[inline(always)]
fn complement<T: Real>(square: f64, series: f64) -> (f64, f64) {
    let root = square.sqrt();
    // What the root lacks: `f32` doesn't need it.
    let low = match is_short::<T>() {
        true => 0.0,
        false => root.mul_add(-root, square) / (root + root + f64::MIN_POSITIVE),
    };
    (root, (root * square).mul_add(series, low))
}

#[inline(always)]
pub fn atan<T: Real>(x: T) -> T {
    let a = x.to_f64().abs();
    let a = if a > 1e300 { 1e300 } else { a };
    let inverse = 1.0 / a;
    let large = a > 1.0;
    let t = if large { inverse } else { a };
    let square = t * t;
    let rest = t * square * polynomial(square, if is_short::<T>() { ATAN_SHORT } else { ATAN });
    // What `t` lacks of the inverse.
    let low = if is_short::<T>() { 0.0 } else { inverse.mul_add(-a, 1.0) * inverse / (1.0 + square) };
    let (high, error) = sum(FRAC_PI_2, -t);
    let y = if large { high + (error + (0.5 * PI_LOW - (rest + low))) } else { t + rest };
    T::of(y.copysign(x.to_f64()))
}

/// pi - [`PI`]
const PI_LOW: f64 = 1.2246467991473532e-16;
// (asin(x) - x) / x^3 in x^2, x <= 1/2: error 2^-59.9.
const ASIN: &[f64] = &[
    0.1666666666666676,
    0.07499999999970837,
    0.04464285717460841,
    0.030381942706832844,
    0.02237221503943136,
    0.01735161070703461,
    0.013980840134874993,
    0.011398723281869192,
    0.010781458254367614,
    0.003701343989639263,
    0.02172093323049393,
    -0.02101969980427811,
    0.032642451779553945,
];
// Error 2^-33.9.
const ASIN_SHORT: &[f64] = &[
    0.16666666686085643,
    0.07499992404401838,
    0.04464766388813485,
    0.030269138728589183,
    0.023611817008891752,
    0.010574415516912909,
    0.030974540371355073,
];
// (atan(x) - x) / x^3 in x^2, x <= 1: error 2^-55.4.
const ATAN: &[f64] = &[
    -0.33333333333333065,
    0.19999999999951032,
    -0.14285714282552664,
    0.11111111006409888,
    -0.09090906992645321,
    0.07692279723357226,
    -0.0666640314069698,
    0.05880522500958255,
    -0.05253495392751138,
    0.047222449356919785,
    -0.04218979266636268,
    0.03663789113321459,
    -0.02989754865087765,
    0.0219771648074357,
    -0.013893367441452023,
    0.007191438981751252,
    -0.0028823236135107236,
    0.0008304089855227845,
    -0.000151963773195906,
    1.3205391030875995e-05,
];
// Error 2^-33.9.
const ATAN_SHORT: &[f64] = &[
    -0.3333333332694414,
    0.19999998154086215,
    -0.14285624891483525,
    0.11109392308322223,
    -0.09073553118976409,
    0.0758665283364667,
    -0.06246315194128317,
    0.047294798621813336,
    -0.02991311194551696,
    0.014072923344697239,
    -0.0042216579909296476,
    0.0005930437556365282,
];
