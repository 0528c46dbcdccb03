//! Functions of log(x).

use super::exponential::LIFT;
use super::{Real, polynomial};

#[inline(always)]
pub(crate) fn log<T: Real>(x: T) -> T {
    let subnormal = x < T::MIN_POSITIVE;
    let (m, k) = (if subnormal { x * T::of(RAISE) } else { x }).parts();
    let k = if subnormal { k - T::of(LIFT) } else { k };
    let f = m - T::ONE;
    let rest = (f * f).mul_add(polynomial(f, T::LOG), k * T::LN_2_REST);
    // k * LN_2_SHORT is exact, and so is `low`.
    let high = k.mul_add(T::LN_2_SHORT, f);
    let low = f - k.mul_add(-T::LN_2_SHORT, high);
    let y = high + (low + rest);
    let y = if x < T::INFINITY { y } else { x };
    let y = if x < T::ZERO { T::NAN } else { y };
    if x == T::ZERO { -T::INFINITY } else { y }
}

/// 2^[`LIFT`]
const RAISE: f64 = (1u128 << 64) as f64;
