//! Elementary functions of `f32` and `f64`, the same bits everywhere (any NaN is a NaN): std leaves the
//! precision of its own open.
//!
//! Most are plain code without branches: `mul_add`, additions, selections, and arithmetic on bits. In a loop that
//! [`for_each_level`] compiles they become vectors, and compose with whatever else is in the loop. Those that matter most
//! to networks look numbers up in small tables, which the processor holds in registers: slices (`exp_all`) take much less
//! time than their numbers one by one. No result is further than 1 ulp from the exact one in `f32` and 2 ulp in `f64`
//! (tests); activations say what they are. Special values, signs of zeros, overflow and gradual underflow are those of
//! IEEE 754 and C.
//!
//! Sources: the reductions are the usual ones (Muller, "Elementary Functions"). The polynomials are our own fits:
//! weighted least squares at 240 bits, reweighted (Lawson) until the relative error is level over the interval; then
//! each coefficient from the lowest is rounded to the type and the others are fitted again. Each says its interval and
//! the error of the function that it gives.

mod activation;
mod erf;
mod exponential;
mod inverse;
mod logarithm;
mod normal;
mod pieces;
mod power;
#[cfg(test)]
mod tests;
mod trigonometric;
mod wide;

pub(crate) use activation::sixth;
pub use activation::{gelu_tanh, hard_swish, leaky, leaky_all, mish, relu, scaled_celu, swiglu, swish};
pub use erf::{GeluOfErf, Halved, Scaled};
#[cfg(test)]
use exponential::expm1;
pub use exponential::{cosh, elu, sinh};
pub use inverse::{acos, asin, atan};
#[cfg(test)]
use logarithm::log1p;
pub use logarithm::{acosh, asinh, atanh, log, softplus};
pub use power::{cube, pow, root};
pub use trigonometric::{cos, cos_all, sin, sin_all, tan, tan_all, turns};

use super::cpu::for_each_level;
use super::number::Float;
use erf::Erf;
use exponential::{Exp, ExpBelow, Gated, Sigmoid, Tanh};
use normal::Gelu;
use wide::Wide;
#[cfg(target_arch = "x86_64")]
pub(crate) use wide::{exp_of_16, exp_of_32};

/// A function of `f32` that looks numbers up, and the same of `f64`.
pub trait Curve: Copy {
    fn singles<V: Wide>(self, x: V) -> V;
    fn double(self, x: f64) -> f64;

    /// Whether [`Curve::ordinary`] suffices.
    #[inline(always)]
    fn is_ordinary(self, _x: f64) -> bool {
        false
    }
    /// [`Curve::double`] of an ordinary number, which may take half of the steps.
    #[inline(always)]
    fn ordinary(self, x: f64) -> f64 {
        self.double(x)
    }
}

/// Defines a function of a number, of a slice, and of a slice that it replaces.
macro_rules! curves {
    ($($(#[$doc:meta])* $curve:ident: $one:ident, $all:ident, $in_place:ident;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $one<T: Real>(x: T) -> T {
            T::curve($curve, x)
        }

        #[doc = concat!("The [`", stringify!($one), "`] of each number of a slice: several at a time.")]
        #[inline(always)]
        pub fn $all<T: Real>(numbers: &[T], out: &mut [T]) {
            T::curves($curve, numbers, out);
        }

        #[doc = concat!("Replaces numbers by their [`", stringify!($one), "`]: several at a time.")]
        #[inline(always)]
        pub fn $in_place<T: Real>(numbers: &mut [T]) {
            T::curves_in_place($curve, numbers);
        }
    )*};
}

curves! {
    Exp: exp, exp_all, exp_in_place;
    /// 1 / (1 + e^-x)
    Sigmoid: sigmoid, sigmoid_all, sigmoid_in_place;
    /// x times its [`sigmoid`], rounded twice.
    Gated: gated, gated_all, gated_in_place;
    Tanh: tanh, tanh_all, tanh_in_place;
    /// 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
    Erf: erf, erf_all, erf_in_place;
    /// x times the share of the standard normal distribution below x: x / 2 * (1 + erf(x / sqrt(2))). At most 2 ulp from that,
    /// and 3 ulp in `f64`.
    Gelu: gelu, gelu_all, gelu_in_place;
}

/// [`GeluOfErf`] of a number.
#[inline(always)]
pub fn gelu_of_erf<T: Real>(x: T, steps: GeluOfErf) -> T {
    T::curve(steps, x)
}

/// [`GeluOfErf`] of each number of a slice: several at a time.
#[inline(always)]
pub fn gelu_of_erf_all<T: Real>(numbers: &[T], steps: GeluOfErf, out: &mut [T]) {
    T::curves(steps, numbers, out);
}

/// The [`exp`] of each number of a slice less another number: several at a time.
#[inline(always)]
pub fn exp_below_all<T: Real>(numbers: &[T], less: T, out: &mut [T]) {
    T::curves(ExpBelow { less: less.to_f64() }, numbers, out);
}

/// As [`exp_below_all`], of numbers that are replaced.
#[inline(always)]
pub fn exp_below_in_place<T: Real>(numbers: &mut [T], less: T) {
    T::curves_in_place(ExpBelow { less: less.to_f64() }, numbers);
}

/// `f32` or `f64`, with what the functions need to know of it.
pub trait Real: Float {
    /// Where all numbers are integers: `x + BIASED - BIASED` rounds a small x. The bias of exponents is in its low bits.
    const BIASED: Self;
    const MIN_POSITIVE: Self;
    const LOG2_E: Self;
    const LN_2: Self;
    /// ln 2 - [`Real::LN_2`].
    const LN_2_LOW: Self;
    /// ln 2 with so few bits that its product with an exponent is exact.
    const LN_2_SHORT: Self;
    /// ln 2 - [`Real::LN_2_SHORT`].
    const LN_2_REST: Self;
    /// Its exponential, and those of all greater numbers, are infinite.
    const EXP_MAX: Self;
    /// Its exponential, and those of all lesser numbers, are 0.
    const EXP_MIN: Self;
    /// Exponentials of lesser numbers may be subnormal.
    const EXP_NORMAL: Self;
    /// The logistic function is 1 from here on, and tanh from the half of it.
    const SATURATED: Self;
    /// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
    const EXP: &[Self];
    /// (sin r - r) / r^3 in r^2, |r| <= pi / 4, and (cos r - 1 + r^2 / 2) / r^4: `f64` for either type.
    const SIN: &[f64];
    const COS: &[f64];
    /// (log(1 + f) - f) / f^2 for f in [sqrt(1/2) - 1, sqrt(2) - 1].
    const LOG: &[Self];

    fn curve(curve: impl Curve, x: Self) -> Self;
    fn curves(curve: impl Curve, numbers: &[Self], out: &mut [Self]);
    fn curves_in_place(curve: impl Curve, numbers: &mut [Self]);
    /// 2^n of [`Real::BIASED`]` + n`. Anything if that is NaN.
    fn power_of_two(self) -> Self;
    /// (m, k) of the positive normal number m * 2^k, m in [sqrt(1/2), sqrt(2)).
    fn parts(self) -> (Self, Self);
}

macro_rules! reals {
    ($($type:ident: $bits:ident { $($constants:item)* })*) => {$(
        impl Real for $type {
            const BIASED: Self = 1.5 / $type::EPSILON + ($type::MAX_EXP - 1) as Self;
            const MIN_POSITIVE: Self = $type::MIN_POSITIVE;
            const LOG2_E: Self = std::$type::consts::LOG2_E;
            const LN_2: Self = std::$type::consts::LN_2;
            $($constants)*

            #[inline(always)]
            fn power_of_two(self) -> Self {
                $type::from_bits(self.to_bits() << ($type::MANTISSA_DIGITS - 1))
            }

            #[inline(always)]
            fn parts(self) -> (Self, Self) {
                const FRACTION: u32 = $type::MANTISSA_DIGITS - 1;
                const LEAST: $type = std::$type::consts::FRAC_1_SQRT_2;
                const BIAS: $type = ($type::MAX_EXP - 1) as $type;
                // 2^FRACTION: its low bits are an integer.
                const BASE: $type = 1.0 / $type::EPSILON;
                const MASK: $bits = (1 << FRACTION) - 1;
                let relative = self.to_bits().wrapping_add((1.0 as $type).to_bits() - LEAST.to_bits());
                let m = (relative & MASK).wrapping_add(LEAST.to_bits());
                let k = $type::from_bits(BASE.to_bits() | relative >> FRACTION) - (BASE + BIAS);
                ($type::from_bits(m), k)
            }
        }
    )*};
}

reals! {
    f32: u32 {
        const LN_2_LOW: Self = -1.904_654_2e-9;
        const LN_2_SHORT: Self = 0.693_145_75;
        const LN_2_REST: Self = 1.428_606_8e-6;
        const EXP_MAX: Self = 89.0;
        const EXP_MIN: Self = -104.0;
        const EXP_NORMAL: Self = -86.0;
        const SATURATED: Self = 18.5;

        #[inline(always)]
        fn curve(curve: impl Curve, x: Self) -> Self {
            wide::of_one(curve, x)
        }
        #[inline(always)]
        fn curves(curve: impl Curve, numbers: &[Self], out: &mut [Self]) {
            wide::each(curve, numbers, out);
        }
        #[inline(always)]
        fn curves_in_place(curve: impl Curve, numbers: &mut [Self]) {
            wide::each_in_place(curve, numbers);
        }

        // Error 2^-31.0, of e^r - 1.
        const EXP: &[Self] = &[0.5, 0.16666666, 0.041666485, 0.008333562, 0.0013933067, 0.00019747818];
        // Errors 2^-27.9, 2^-32.9.
        const SIN: &[f64] = &[-0.16666653797205605, 0.00833210988390887, -0.00019508408220006];
        const COS: &[f64] = &[0.04166664442286177, -0.0013887254242773044, 2.4425990145338828e-05];
        // Error 2^-30.2.
        const LOG: &[Self] = &[-0.5, 0.3333331, -0.25, 0.2000222, -0.16668431, 0.14218196, -0.12399011, 0.11890926, -0.11708397, 0.067764804];
    }
    f64: u64 {
        const LN_2_LOW: Self = 2.3190468138462996e-17;
        const LN_2_SHORT: Self = 0.693147180559663;
        const LN_2_REST: Self = 2.8235290563031577e-13;
        const EXP_MAX: Self = 710.0;
        const EXP_MIN: Self = -745.2;
        const EXP_NORMAL: Self = -707.0;
        const SATURATED: Self = 40.0;

        #[inline(always)]
        fn curve(curve: impl Curve, x: Self) -> Self {
            curve.double(x)
        }
        #[inline(always)]
        fn curves(curve: impl Curve, numbers: &[Self], out: &mut [Self]) {
            doubles(curve, Some(numbers), out);
        }
        #[inline(always)]
        fn curves_in_place(curve: impl Curve, numbers: &mut [Self]) {
            doubles(curve, None, numbers);
        }

        // Error 2^-63.8.
        const EXP: &[Self] = &[
            0.5, 0.16666666666666682, 0.04166666666666646, 0.008333333333317547, 0.0013888888889004268,
            0.00019841269895527075, 2.480158708263767e-05, 2.755723542999641e-06, 2.7557478409504076e-07,
            2.5111913308584153e-08, 2.085293163624318e-09,
        ];
        // Errors 2^-57.7, 2^-63.7.
        const SIN: &[f64] = &[
            -0.16666666666666627, 0.008333333333321069, -0.00019841269828698875, 2.7557313299027044e-06,
            -2.505069556892452e-08, 1.5893119466572175e-10,
        ];
        const COS: &[f64] = &[
            0.04166666666666658, -0.0013888888888871043, 2.480158728760642e-05, -2.7557313821156366e-07,
            2.0875652233087517e-09, -1.1356018875307474e-11,
        ];
        // Error 2^-59.3.
        const LOG: &[Self] = &[
            -0.5, 0.33333333333333454, -0.24999999999998915, 0.19999999999945844, -0.1666666666691632,
            0.14285714293865345, -0.12499999981804913, 0.11111110514938163, -0.1000000039486583, 0.09090933542112585,
            -0.08333345409682948, 0.07691713549253328, -0.07142006227488128, 0.06675165107921245, -0.0626974054551217,
            0.05817584571791477, -0.0532705441259659, 0.05417230107326928, -0.06275018554420544, 0.056934680124508204,
            -0.024246900570836682,
        ];
    }
}

/// How many `f64` are computed together.
const DOUBLES: usize = 32;

for_each_level! {
    /// What a function makes of numbers, or of those that it replaces.
    fn doubles<C: Curve>(curve: C, numbers: Option<&[f64]>, out: &mut [f64]) -> () = doubles_body::<C>;
}

#[inline(always)]
fn doubles_body<C: Curve>(curve: C, numbers: Option<&[f64]>, out: &mut [f64]) {
    let (blocks, last) = match numbers {
        Some(numbers) => numbers.as_chunks::<DOUBLES>(),
        None => (&[][..], &[][..]),
    };
    let (outs, rest) = out.as_chunks_mut::<DOUBLES>();
    for (at, out) in outs.iter_mut().enumerate() {
        // A copy may stay in registers.
        let mut block = *blocks.get(at).unwrap_or(out);
        some_doubles(curve, &mut block);
        *out = block;
    }
    for (out, x) in rest.iter_mut().zip(last) {
        *out = *x;
    }
    some_doubles(curve, rest);
}

/// Replaces numbers. If all are ordinary, as they mostly are, it takes fewer steps.
#[inline(always)]
fn some_doubles<C: Curve>(curve: C, numbers: &mut [f64]) {
    let mut ordinary = true;
    for x in &*numbers {
        ordinary &= curve.is_ordinary(*x);
    }
    if ordinary {
        for x in numbers {
            *x = curve.ordinary(*x);
        }
    } else {
        for x in numbers {
            *x = curve.double(*x);
        }
    }
}

/// Whether `f64` is wide enough for a result of `T` to be rounded once.
#[inline(always)]
fn is_short<T: Real>() -> bool {
    size_of::<T>() == 4
}

/// The polynomial with these coefficients, the lowest first. Pairs of them don't wait for each other.
#[inline(always)]
fn polynomial<T: Float>(x: T, coefficients: &[T]) -> T {
    let (square, mut sum) = (x * x, None);
    // Closures may stay calls, and a call is not compiled for the processor's level.
    for pair in coefficients.chunks(2).rev() {
        let pair = match *pair {
            [low, high] => high.mul_add(x, low),
            [low] => low,
            _ => T::ZERO,
        };
        sum = Some(match sum {
            Some(sum) => T::mul_add(sum, square, pair),
            None => pair,
        });
    }
    match sum {
        Some(sum) => sum,
        None => T::ZERO,
    }
}

/// The rounded sum and its error. |a| >= |b|, or a is 0.
#[inline(always)]
fn sum<T: Float>(a: T, b: T) -> (T, T) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// [`sum`] of the greater and the lesser one, which is -a at least.
#[inline(always)]
fn ordered<T: Float>(a: T, b: T) -> (T, T) {
    if a > b { sum(a, b) } else { sum(b, a) }
}

/// The lesser one; the first if that is NaN.
#[inline(always)]
fn least<T: Float>(x: T, bound: T) -> T {
    if x > bound { bound } else { x }
}

/// The greater one; the first if that is NaN.
#[inline(always)]
fn greatest<T: Float>(x: T, bound: T) -> T {
    if x < bound { bound } else { x }
}

/// x + x^3 P(x^2)
#[inline(always)]
fn near_zero(x: f64, coefficients: &[f64]) -> f64 {
    let square = x * x;
    (x * square).mul_add(polynomial(square, coefficients), x)
}

/// `y` between the zero of a logarithm's argument and infinity, and what is beyond.
#[inline(always)]
fn ends<T: Real>(x: T, zero: T, y: T) -> T {
    let y = if x < T::INFINITY { y } else { x };
    let y = if x < zero { T::NAN } else { y };
    if x == zero { -T::INFINITY } else { y }
}
