//! The normal distribution.

use super::exponential::{LIFT, LOWER, rest};
use super::{Real, least, polynomial};

/// x times the share of the standard normal distribution below x: x / 2 * (1 + erf(x / sqrt(2))). At most 2 ulp from that,
/// and 3 ulp in `f64`.
#[inline(always)]
pub fn gelu<T: Real>(x: T) -> T {
    // From there on y is 0. What may be subnormal is kept larger until the last product.
    let (end, lift) = (T::of(T::NORMAL_END), T::BIASED + T::of(LIFT));
    // y = a * share(-a) = a * w * P * e^(-a^2 / 2), w = 1 / (a + 4), each in two parts. The result is x - y, or -y.
    let a = least(x.abs(), end);
    let divisor = a + T::of(4.0);
    let w = T::ONE / divisor;
    let wrong = w.mul_add(-(a - (divisor - T::of(4.0))), w.mul_add(-divisor, T::ONE));
    let u = w.mul_add(T::of(-8.0), T::NORMAL_CENTER);
    let (first, second, others) = T::NORMAL;
    let others = u.mul_add(polynomial(u, others), second);
    let p = u.mul_add(others, first);
    let p_low = u.mul_add(others, first - p);
    let q = w * p;
    let q_low = w.mul_add(p_low, w.mul_add(p, -q));
    let high = a * q;
    let low = a.mul_add(q_low, a.mul_add(q, -high));
    // What the error of w does to the share, nearly.
    let slope = w.mul_add(T::NORMAL_SLOPE.0, T::NORMAL_SLOPE.1);
    // e^(-a^2 / 2) = s * (1 + e)
    let half = T::of(-0.5) * a;
    let power = half * a;
    let shifted = power.mul_add(T::LOG2_E, lift);
    let n = shifted - lift;
    let r = n.mul_add(-T::LN_2, power);
    let rest = rest(r, n, slope.mul_add(wrong, half.mul_add(a, -power)));
    let y = (high + high.mul_add(r, high.mul_add(rest, low))) * shifted.power_of_two() * T::of(LOWER);
    x.mul_add(if x > T::ZERO { T::ONE } else { T::ZERO }, -y)
}
