//! Activations made of exponentials. Those of `f32` are computed in `f64`, where nothing they need overflows or is
//! subnormal, and rounded once: at most 0.51 ulp. In `f64` they have the bounds given here.

use super::exponential::{expm1, logistic};
use super::{Real, exp, greatest, is_short, least, polynomial};
use crate::cpu::for_each_level;

/// max(0, x): -0 stays.
#[inline(always)]
pub fn relu<T: Real>(x: T) -> T {
    if x < T::ZERO { T::ZERO } else { x }
}

/// The sixth of a number that isn't subnormal, rounded once: a third is never near the middle of two numbers, so that a factor
/// in two parts tells which is nearer.
#[inline(always)]
pub(crate) fn sixth<T: Real>() -> (T, T) {
    const SIXTH: (f64, f64) = (0.16666666666666666, 9.25185853854297e-18);
    let high = T::of(SIXTH.0);
    (high, T::of(SIXTH.0 - high.to_f64() + SIXTH.1))
}

/// x * max(0, min(1, x / 6 + 1/2)). At most 2 ulp.
#[inline(always)]
pub fn hard_swish<T: Real>(x: T) -> T {
    // Near -3 the sum is exact, and x / 6 wouldn't be.
    let (sum, (high, low)) = ((x + T::of(3.0)).smaller(T::of(6.0)).larger(T::ZERO), sixth::<T>());
    x * sum.mul_add(high, sum * low)
}

/// x / (1 + e^-(alpha * x)). At most 2 ulp in `f64`.
#[inline(always)]
pub fn swish<T: Real>(x: T, alpha: f32) -> T {
    let (x, alpha) = (x.to_f64(), f64::from(alpha));
    let gate = x * alpha;
    T::of(if is_short::<T>() { x / (1.0 + brief_exp(-gate)) } else { gated(x, gate, x.mul_add(alpha, -gate)) })
}

/// a / (1 + e^-(alpha * a)) * b. At most 3 ulp in `f64`, where the quotient is a normal number.
#[inline(always)]
pub fn swiglu<T: Real>(a: T, b: T, alpha: f32) -> T {
    if is_short::<T>() {
        let (a, b) = (a.to_f64(), b.to_f64());
        T::of(a * b / (1.0 + brief_exp(-a * f64::from(alpha))))
    } else {
        swish(a, alpha) * b
    }
}

/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))). At most 2 ulp in `f64`.
#[inline(always)]
pub fn gelu_tanh<T: Real>(x: T) -> T {
    // sqrt(8 / pi) and 0.044715 in two parts: (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)).
    const FACTOR: (f64, f64) = (1.5957691216057308, -9.96930880911092e-17);
    const CUBE: (f64, f64) = (0.044715, 2.1960211427085595e-18);
    let x = x.to_f64();
    let square = x * x;
    let sum = square.mul_add(CUBE.0, 1.0);
    let line = x * FACTOR.0;
    let gate = line * sum;
    T::of(if is_short::<T>() {
        x / (1.0 + brief_exp(-gate))
    } else {
        let square_low = x.mul_add(x, -square);
        let sum_low = square.mul_add(CUBE.0, 1.0 - sum) + square_low.mul_add(CUBE.0, square * CUBE.1);
        let line_low = x.mul_add(FACTOR.0, -line) + x * FACTOR.1;
        gated(x, gate, line.mul_add(sum, -gate) + line.mul_add(sum_low, line_low * sum))
    })
}

/// x * tanh(log(1 + e^x)). At most 4 ulp in `f64`.
#[inline(always)]
pub fn mish<T: Real>(x: T) -> T {
    // ((1 + e)^2 - 1) / ((1 + e)^2 + 1), e = e^x. It is 1 long before 40, and e long before -40.
    let bounded = least(x, T::of(40.0));
    if is_short::<T>() {
        let (s, p) = reduced(greatest(bounded, T::of(-709.0)).to_f64());
        let e = s.mul_add(p, s);
        let n = e * (e + 2.0);
        T::of(x.to_f64() * n / (n + 2.0))
    } else {
        // Its square root isn't subnormal.
        let small = x < T::of(-40.0);
        let e = exp(if small { T::of(0.5) * bounded } else { bounded });
        let n = e * (e + T::of(2.0));
        if small { x * e * e } else { x * (n / (n + T::of(2.0))) }
    }
}

/// alpha * (e^(x / alpha) - 1). At most 3 ulp in `f64`, where the exponential is finite.
#[inline(always)]
pub fn scaled_celu<T: Real>(x: T, alpha: f32) -> T {
    let (wide, alpha) = (x.to_f64(), f64::from(alpha));
    let quotient = wide / alpha;
    if is_short::<T>() {
        T::of(alpha * brief_expm1(quotient))
    } else {
        // The quotient may be subnormal where x isn't.
        if quotient.abs() < 1e-300 { x } else { T::of(alpha * expm1(quotient)) }
    }
}

/// x, and factor * x below 0.
#[inline(always)]
pub fn leaky<T: Real>(x: T, factor: T) -> T {
    if x < T::ZERO { factor * x } else { x }
}

for_each_level! {
    /// [`leaky`] of each number of a slice. The factor is in a register: in memory, it would be read where it is needed.
    pub fn leaky_all<T: Real>(numbers: &[T], factor: T, out: &mut [T]) -> () = leaky_all_body::<T>;
}

#[inline(always)]
fn leaky_all_body<T: Real>(numbers: &[T], factor: T, out: &mut [T]) {
    for (to, x) in out.iter_mut().zip(numbers) {
        *to = leaky(*x, factor);
    }
}

/// x / (1 + e^-(gate + low)) in `f64`.
#[inline(always)]
fn gated(x: f64, gate: f64, low: f64) -> f64 {
    // What may be subnormal is kept larger until the last product. Below -900 that is 0, as x can't be large enough.
    let tiny = gate < f64::EXP_NORMAL;
    let low = if gate.abs() < 1000.0 { low } else { 0.0 };
    let (y, s) = logistic(greatest(least(gate, f64::SATURATED), -900.0), low, tiny, 700.0);
    let y = x * y * s;
    let y = if tiny { y * LOWER } else { y };
    if gate < -900.0 { x * 0.0 } else { y }
}

/// e^x to 2^-31.
#[inline(always)]
pub(super) fn brief_exp(x: f64) -> f64 {
    let (s, p) = reduced(greatest(least(x, 710.0), -709.0));
    s * (1.0 + p)
}

/// e^x - 1 to 2^-31.
#[inline(always)]
fn brief_expm1(x: f64) -> f64 {
    let (s, p) = reduced(greatest(least(x, 709.0), -709.0));
    s.mul_add(p, s - 1.0).copysign(x)
}

/// (s, p): e^x = s * (1 + p), s a power of two, 0, or infinite.
#[inline(always)]
fn reduced(x: f64) -> (f64, f64) {
    let shifted = x.mul_add(f64::LOG2_E, f64::BIASED);
    let n = shifted - f64::BIASED;
    let r = n.mul_add(-f64::LN_2, x);
    (shifted.power_of_two(), (r * r).mul_add(polynomial(r, BRIEF), r))
}

/// 2^-700
const LOWER: f64 = f64::from_bits((1023 - 700) << 52);
// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2: error 2^-32.0, of (e^r - 1) / r.
const BRIEF: &[f64] = &[
    0.5000000046497858,
    0.16666666816845532,
    0.04166635430662223,
    0.008333273097630536,
    0.0013941037460727442,
    0.00019914146929179218,
];
