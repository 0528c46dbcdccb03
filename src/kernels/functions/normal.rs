//! The normal distribution.

use super::{Real, exp, least, polynomial};

/// The share of the standard normal distribution below x: (1 + erf(x / sqrt(2))) / 2, also where it is small.
#[inline(always)]
pub(crate) fn normal<T: Real>(x: T) -> T {
    let (a, half, center) = (least(x.abs(), T::of(40.0)), T::of(0.5), T::of(4.0));
    // e^(-a^2 / 2), and what the rounded square lacks.
    let square = a * a;
    let low = a.mul_add(a, -square);
    let e = exp(-half * square);
    let e = (-half * low).mul_add(e, e);
    let inverse = T::ONE / (a + center);
    let u = (a - center) * inverse;
    let p = if size_of::<T>() == 4 { polynomial(u, &SHORT.map(T::of)) } else { polynomial(u, &LONG.map(T::of)) };
    let tail = e * (inverse * p);
    if x > T::ZERO { T::ONE - tail } else { tail }
}

// normal(-a) * (a + 4) * e^(a^2 / 2) in (a - 4) / (a + 4), a >= 0. Errors 2^-28.6, 2^-57.4.
const SHORT: [f64; 12] = [
    0.755285131,
    -0.607896631,
    0.387137394,
    -0.18652216,
    0.0603966483,
    -0.00753771716,
    -0.00347995464,
    0.00162204011,
    0.000133653387,
    -0.000215573776,
    -1.7310823e-6,
    2.11829843e-5,
];
const LONG: [f64; 26] = [
    0.7552851304157515,
    -0.6078966419718921,
    0.3871374007422149,
    -0.18652185795965484,
    0.06039657489091787,
    -0.00754018896682524,
    -0.0034796923670479736,
    0.001630818459394586,
    0.00013334430941183253,
    -0.0002310949532401944,
    -1.9082463514145713e-06,
    3.514479478753355e-05,
    7.166587641195121e-07,
    -5.920586519556891e-06,
    -6.298367338492369e-07,
    1.0225604158296038e-06,
    2.7246296951145873e-07,
    -1.5650236461993106e-07,
    -8.686647015997893e-08,
    1.4630727405651175e-08,
    2.1427603843452355e-08,
    1.4329918401088613e-09,
    -3.73064508186837e-09,
    -8.546521899880147e-10,
    3.403312308649495e-10,
    1.175478991480774e-10,
];
