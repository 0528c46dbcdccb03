//! Exponential and logarithm: a stand-in that computes in `f64`.

use super::number::Float;

/// `f32` or `f64`.
pub(crate) trait Real: Float {}

impl Real for f32 {}
impl Real for f64 {}

/// The exponential of `x`.
#[inline(always)]
pub(crate) fn exp<T: Real>(x: T) -> T {
    let x = x.to_f64();
    let x = if x.is_nan() { x } else { x.clamp(-800.0, 800.0) };
    let k = (x * std::f64::consts::LOG2_E).round_ties_even();
    let r = k.mul_add(-1.908_214_929_270_587_7e-10, k.mul_add(-6.931_471_803_691_238e-1, x));
    let power = (1..=14).rev().fold(1.0, |sum, n| (sum * r / f64::from(n)) + 1.0);
    // Two factors: neither overflows.
    let (half, other) = ((k * 0.5).floor(), k - (k * 0.5).floor());
    let scale = |k: f64| f64::from_bits(((k as i64 + 1023) as u64) << 52);
    T::of(power * scale(half) * scale(other))
}

/// The natural logarithm of `x`.
#[inline(always)]
pub(crate) fn log<T: Real>(x: T) -> T {
    let x = x.to_f64();
    if x.is_nan() || x < 0.0 {
        return T::NAN;
    }
    if x == 0.0 {
        return -T::INFINITY;
    }
    if x == f64::INFINITY {
        return T::INFINITY;
    }
    let (x, shift) = if x < f64::MIN_POSITIVE { (x * 18_014_398_509_481_984.0, 54) } else { (x, 0) };
    let bits = x.to_bits();
    let (mut k, mut m) = ((bits >> 52) as i64 - 1023 - shift, f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        (k, m) = (k + 1, m * 0.5);
    }
    let s = (m - 1.0) / (m + 1.0);
    let series = (0..16).rev().fold(0.0, |sum, n| sum * s * s + 1.0 / f64::from(2 * n + 1));
    T::of(k as f64 * std::f64::consts::LN_2 + 2.0 * s * series)
}
