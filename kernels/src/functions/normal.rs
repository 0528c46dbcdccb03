//! The normal distribution.

use super::exponential::{LIFT, LOWER, SHIFT, beyond, eighths, rest, scale};
use super::pieces::SHARE;
use super::wide::Wide;
use super::{Curve, Real, least, polynomial};

#[derive(Clone, Copy)]
pub(super) struct Gelu;

impl Curve for Gelu {
    #[inline(always)]
    fn singles<V: Wide>(self, x: V) -> V {
        // y = a * share(-a) = a * (value + d * slope) * e^(-a^2 / 2), in two parts. The result is x - y, or -y. y is 0 from the
        // end of the pieces on. What may be subnormal is kept larger until the last product.
        let a = x.abs().least(V::all(SHARE.end));
        let (value, d, slope) = SHARE.at(a);
        let share = d.mul_add(slope, value);
        let share_low = d.mul_add(slope, value.minus(share));
        let high = a.times(share);
        let low = a.mul_add(share_low, a.mul_add(share, high.negated()));
        let half = a.times(V::all(-0.5));
        let square = half.times(a);
        let (shifted, r) = eighths(square, SHIFT + 8.0 * LIFT as f32);
        let p = beyond(r.plus(half.mul_add(a, square.negated())), shifted);
        let y = high.plus(high.mul_add(p, low)).times(scale(shifted)).times(V::all(LOWER as f32));
        let zero = V::all(0.0);
        x.mul_add(zero.below(x, V::all(1.0), zero), y.negated())
    }

    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        // From there on y is 0. What may be subnormal is kept larger until the last product.
        let lift = f64::BIASED + LIFT;
        // y = a * share(-a) = a * w * P * e^(-a^2 / 2), w = 1 / (a + 4), each in two parts. The result is x - y, or -y.
        let a = least(x.abs(), END);
        let divisor = a + 4.0;
        let w = 1.0 / divisor;
        let wrong = w.mul_add(-(a - (divisor - 4.0)), w.mul_add(-divisor, 1.0));
        let u = w.mul_add(-8.0, 1.0);
        let others = u.mul_add(polynomial(u, OTHERS), SECOND);
        let p = u.mul_add(others, FIRST);
        let p_low = u.mul_add(others, FIRST - p);
        let q = w * p;
        let q_low = w.mul_add(p_low, w.mul_add(p, -q));
        let high = a * q;
        let low = a.mul_add(q_low, a.mul_add(q, -high));
        // What the error of w does to the share, nearly: (9.2 w + 0.775) times that, both relative.
        let slope = w.mul_add(9.2, 0.775);
        // e^(-a^2 / 2) = s * (1 + e)
        let half = -0.5 * a;
        let power = half * a;
        let shifted = power.mul_add(f64::LOG2_E, lift);
        let n = shifted - lift;
        let r = n.mul_add(-f64::LN_2, power);
        let rest = rest(r, n, slope.mul_add(wrong, half.mul_add(a, -power)));
        let y = (high + high.mul_add(r, high.mul_add(rest, low))) * shifted.power_of_two() * LOWER;
        x.mul_add(if x > 0.0 { 1.0 } else { 0.0 }, -y)
    }
}

/// Greater numbers have no share of the normal distribution beyond them, in `f64`.
const END: f64 = 38.6;
// share(-a) * (a + 4) * e^(a^2 / 2) in 1 - 8 / (a + 4), a in [0, [`END`]]: error 2^-57.4.
const FIRST: f64 = 0.7552851304157515;
const SECOND: f64 = -0.6078966419718921;
const OTHERS: &[f64] = &[
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
