//! Elementary functions of `f32` and `f64`, the same bits everywhere (any NaN is a NaN): std leaves the
//! precision of its own open.
//!
//! They are plain code without branches: `mul_add`, additions, selections, and arithmetic on bits. In a loop that
//! [`for_each_level`](super::cpu::for_each_level) compiles they become vectors, and compose with whatever else is in
//! the loop. No result is further than 1 ulp from the exact one in `f32` and 2 ulp in `f64` (tests);
//! activations say what they are. Special values,
//! signs of zeros, overflow and gradual underflow are those of IEEE 754 and C.
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
mod power;
#[cfg(test)]
mod tests;
mod trigonometric;

pub use activation::{gelu_tanh, mish, scaled_celu, swiglu, swish};
pub use erf::erf;
#[cfg(test)]
use exponential::expm1;
pub use exponential::{cosh, elu, exp, exp_some, sigmoid, sigmoid_some, sinh, tanh};
pub use inverse::{acos, asin, atan};
#[cfg(test)]
use logarithm::log1p;
pub use logarithm::{acosh, asinh, atanh, log, softplus};
pub use normal::gelu;
pub use power::{cube, pow, root};
pub use trigonometric::{cos, cos_all, sin, sin_all, tan, tan_all, turns};

use super::number::Float;

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
    /// Where one polynomial for erf ends and the other begins.
    const ERF_NEAR: Self;
    /// erf is 1 from here on.
    const ERF_MAX: Self;
    /// A number between them.
    const ERF_CENTER: Self;
    /// erf(x) / x - 1 in x^2 up to [`Real::ERF_NEAR`], sqrt(erfc(x)) in x - [`Real::ERF_CENTER`] above.
    const ERF: &[(Self, Self)];
    /// Greater numbers have no share of the normal distribution beyond them.
    const NORMAL_END: f64;
    /// share(-a) * (a + 4) * e^(a^2 / 2) in [`Real::NORMAL_CENTER`] - 8 / (a + 4), a in [0, [`Real::NORMAL_END`]]: the
    /// first coefficient, and the others.
    const NORMAL: (Self, Self, &[Self]);
    const NORMAL_CENTER: Self;
    /// (y, z): share(-a) changes by nearly (y * w + z) times what w = 1 / (a + 4) does, both relative.
    const NORMAL_SLOPE: (Self, Self);

    /// 2^n of [`Real::BIASED`]` + n`. Anything if that is NaN.
    fn power_of_two(self) -> Self;
    /// The number times 2^n of [`Real::BIASED`]` + n - 1`, if that and the number itself are normal.
    fn times_power(self, shifted: Self) -> Self;
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
            fn times_power(self, shifted: Self) -> Self {
                // What the low bits hold beside n.
                const BIAS: $bits = ($type::MAX_EXP - 2) as $bits;
                let n = shifted.to_bits().wrapping_sub(BIAS);
                $type::from_bits(self.to_bits().wrapping_add(n << ($type::MANTISSA_DIGITS - 1)))
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
        // Error 2^-31.0, of e^r - 1.
        const EXP: &[Self] = &[0.5, 0.16666666, 0.041666485, 0.008333562, 0.0013933067, 0.00019747818];
        // Errors 2^-27.9, 2^-32.9.
        const SIN: &[f64] = &[-0.16666653797205605, 0.00833210988390887, -0.00019508408220006];
        const COS: &[f64] = &[0.04166664442286177, -0.0013887254242773044, 2.4425990145338828e-05];
        // Error 2^-30.2.
        const LOG: &[Self] = &[-0.5, 0.3333331, -0.25, 0.2000222, -0.16668431, 0.14218196, -0.12399011, 0.11890926, -0.11708397, 0.067764804];
        const ERF_NEAR: Self = 1.0;
        const ERF_MAX: Self = 3.95;
        const ERF_CENTER: Self = 1.25;
        // Errors 2^-30.2, 2^-30.0.
        const ERF: &[(Self, Self)] = &[(0.12837917, 0.27766863), (-0.37612632, -0.4259054), (0.112836994, 0.20574278), (-0.026861178, 0.013897453), (0.005210206, -0.04383431), (-0.00083387014, 0.0074663134), (0.0001027986, 0.005258589), (-7.004706e-06, -0.0020153252), (0.0, -0.00026769625), (0.0, 0.00029441336), (0.0, -6.485412e-05), (0.0, 4.9340497e-06)];
        const NORMAL_END: f64 = 15.0;
        // Error 2^-26.3, up to 14.75: it doesn't count beyond.
        const NORMAL: (Self, Self, &[Self]) = (0.6248205, -0.44569084, &[ 0.2685467, -0.13169917, 0.048601735, -0.010633584, -0.0006427718, 0.0015848889, -0.00015342564, -0.00014132266]);
        const NORMAL_CENTER: Self = 0.75;
        const NORMAL_SLOPE: (Self, Self) = (9.8, 0.6625);
    }
    f64: u64 {
        const LN_2_LOW: Self = 2.3190468138462996e-17;
        const LN_2_SHORT: Self = 0.693147180559663;
        const LN_2_REST: Self = 2.8235290563031577e-13;
        const EXP_MAX: Self = 710.0;
        const EXP_MIN: Self = -745.2;
        const EXP_NORMAL: Self = -707.0;
        const SATURATED: Self = 40.0;
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
        const ERF_NEAR: Self = 1.2;
        const ERF_MAX: Self = 5.95;
        const ERF_CENTER: Self = 3.5;
        // Errors 2^-56.5, 2^-58.0.
        const ERF: &[(Self, Self)] = &[
            (0.1283791670955126, 0.000862031537903158),
            (-0.3761263890318405, -0.0031318035013683026),
            (0.1128379167096753, 0.0052723132218081975),
            (-0.026866170647230396, -0.005377884295202959),
            (0.00522397764417275, 0.003616787853307423),
            (-0.0008548328030671754, -0.0015976002290219295),
            (0.00012055368215495597, 0.000393367329141414),
            (-1.492648949503453e-05, 1.0776027250628198e-05),
            (1.6476074194290055e-06, -4.977317209311635e-05),
            (-1.652973815315319e-07, 1.8081205988142368e-05),
            (1.615923190759976e-08, -1.6029317622092184e-06),
            (-1.9956872551390603e-09, -1.052115016928718e-06),
            (3.785172653829694e-10, 4.3340796797792706e-07),
            (-6.865754943656005e-11, -3.881957647955559e-08),
            (6.390092062682996e-12, -2.0102357100518983e-08),
            (0.0, 7.1676818036329305e-09),
            (0.0, -3.498376332187238e-10),
            (0.0, -3.3139542929192293e-10),
            (0.0, 8.416727551046876e-11),
            (0.0, 3.366977860656608e-13),
            (0.0, -4.609752052579383e-12),
            (0.0, 8.60971484046733e-13),
            (0.0, 1.5477181761426026e-13),
            (0.0, -5.725503426857905e-14),
            (0.0, -5.647187425946743e-15),
            (0.0, 1.591807559167928e-15),
            (0.0, 1.9603754462210129e-16),
        ];
        const NORMAL_END: f64 = 38.6;
        // Error 2^-57.4.
        const NORMAL: (Self, Self, &[Self]) = (0.7552851304157515, -0.6078966419718921, &[ 0.3871374007422149, -0.18652185795965484, 0.06039657489091787, -0.00754018896682524, -0.0034796923670479736, 0.001630818459394586, 0.00013334430941183253, -0.0002310949532401944, -1.9082463514145713e-06, 3.514479478753355e-05, 7.166587641195121e-07, -5.920586519556891e-06, -6.298367338492369e-07, 1.0225604158296038e-06, 2.7246296951145873e-07, -1.5650236461993106e-07, -8.686647015997893e-08, 1.4630727405651175e-08, 2.1427603843452355e-08, 1.4329918401088613e-09, -3.73064508186837e-09, -8.546521899880147e-10, 3.403312308649495e-10, 1.175478991480774e-10]);
        const NORMAL_CENTER: Self = 1.0;
        const NORMAL_SLOPE: (Self, Self) = (9.2, 0.775);
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
