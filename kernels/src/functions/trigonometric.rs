//! sin, cos and tan, in `f64` for either type.
//!
//! [`sin`] is right everywhere, but reduces large arguments by a branch, which keeps a loop from becoming vectors.
//! [`sin_all`] computes a whole slice as if all arguments were small, and then the large ones again, one by one: a
//! chain of functions with it inside is two loops, best over a slice that stays in the cache.

use super::super::cpu::for_each_level;
use super::{Real, polynomial, sum};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// x = n * pi/2 + r + low; n modulo 4. |r| is at most a little more than pi/4.
#[derive(Clone, Copy)]
struct Angle {
    r: f64,
    low: f64,
    n: u64,
}

/// The reduction is right for what is less.
const NEAR: f64 = (1u64 << 30) as f64;
/// pi/2 in three parts.
const PARTS: [f64; 3] = [FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];

/// Of |x| < [`NEAR`].
#[inline(always)]
fn near<T: Real>(x: f64) -> Angle {
    // The integer is in the low bits.
    let shift = 1.5 / f64::EPSILON;
    let shifted = x.mul_add(FRAC_2_PI, shift);
    let n = shifted - shift;
    let [a, b, c] = PARTS;
    // Exact: it is less than 1, and a multiple of the last place of `a` or of x.
    let first = n.mul_add(-a, x);
    let part = n * b;
    let r = first - part;
    // `f32` doesn't need more.
    let low = if size_of::<T>() == 4 {
        0.0
    } else {
        let moved = r - first;
        let error = (first - (r - moved)) - (part + moved);
        error - n.mul_add(c, n.mul_add(b, -part))
    };
    Angle { r, low, n: shifted.to_bits() }
}

/// Of any x that isn't near (Payne, Hanek).
#[cold]
#[inline(never)]
fn far(x: f64) -> Angle {
    if !x.is_finite() {
        return Angle { r: f64::NAN, low: 0.0, n: 0 };
    }
    // |x| = integer * 2^e. Bits of 2/pi whose product with it is a multiple of 4 don't count, and neither do those
    // more than 190 bits below.
    let bits = x.abs().to_bits();
    let integer = bits & ((1 << 52) - 1) | 1 << 52;
    let first = (bits >> 52) as usize + 64 - 1075 - 2;
    let word = |i: usize| {
        let at = |i: usize| BITS.get(i).copied().map_or(0, u128::from);
        let (word, bit) = (first / 64 + i, first % 64);
        ((at(word) << 64 | at(word + 1)) << bit >> 64) as u64
    };
    let product = |word: u64| u128::from(integer) * u128::from(word);
    // The product modulo 2^192: x * 2/pi modulo 4, times 2^190.
    let low = product(word(2));
    let middle = product(word(1)) + (low >> 64);
    let high = product(word(0)) + (middle >> 64);
    let mut fraction = high << 64 | middle & u128::from(u64::MAX);
    let mut below = low as u64;
    let mut n = (fraction >> 126) as u64;
    fraction = fraction << 2 | u128::from(below >> 62);
    below <<= 2;
    // To the nearest.
    let negative = fraction >> 127 == 1;
    if negative {
        n += 1;
        (below, fraction) = (below.wrapping_neg(), !fraction + u128::from(below == 0));
    }
    let zeros = fraction.leading_zeros().min(63);
    let fraction = fraction << zeros | u128::from(below) >> (64 - zeros);
    // Two parts, of which the first has 53 bits.
    let scale = f64::from_bits(u64::from(1023 - 128 - zeros) << 52);
    let high = ((fraction >> 75) << 75) as f64 * scale;
    let low = (fraction & ((1 << 75) - 1)) as f64 * scale;
    let [a, b, _] = PARTS;
    let r = high * a;
    let low = high.mul_add(a, -r) + high.mul_add(b, low * a);
    let sign = if (x < 0.0) == negative { 1.0 } else { -1.0 };
    Angle { r: sign * r, low: sign * low, n: if x < 0.0 { n.wrapping_neg() } else { n } }
}

/// sin(r + low) = r + the result.
#[inline(always)]
fn sine<T: Real>(r: f64, low: f64) -> f64 {
    let square = r * r;
    (r * square).mul_add(polynomial(square, T::SIN), low * square.mul_add(-0.5, 1.0))
}

/// cos(r + low), in two parts.
#[inline(always)]
fn cosine<T: Real>(r: f64, low: f64) -> (f64, f64) {
    let square = r * r;
    let (high, error) = sum(1.0, -0.5 * square);
    (high, error + (square * square).mul_add(polynomial(square, T::COS), -r * low))
}

/// sin(x + turns * pi/2)
#[inline(always)]
fn turned<T: Real>(angle: Angle, turns: u64) -> f64 {
    let Angle { r, low, n } = angle;
    let n = n.wrapping_add(turns);
    let (high, rest) = cosine::<T>(r, low);
    let y = if n & 1 == 0 { r + sine::<T>(r, low) } else { high + rest };
    f64::from_bits(y.to_bits() ^ (n & 2) << 62)
}

#[inline(always)]
fn tangent<T: Real>(angle: Angle) -> f64 {
    let Angle { r, low, n } = angle;
    let sine = sum(r, sine::<T>(r, low));
    let (high, rest) = cosine::<T>(r, low);
    let cosine = sum(high, rest);
    let odd = n & 1 == 1;
    let ((dividend, dividend_low), (divisor, divisor_low)) = if odd { (cosine, sine) } else { (sine, cosine) };
    let quotient = dividend / divisor;
    let wrong = quotient.mul_add(-divisor, dividend) + quotient.mul_add(-divisor_low, dividend_low);
    let y = quotient + wrong / divisor;
    if odd { -y } else { y }
}

#[inline(always)]
fn sin_of<T: Real>(x: f64, angle: Angle) -> T {
    // Keeps -0.
    T::of(if x.abs() < TINY { x } else { turned::<T>(angle, 0) })
}

#[inline(always)]
fn cos_of<T: Real>(_: f64, angle: Angle) -> T {
    T::of(turned::<T>(angle, 1))
}

#[inline(always)]
fn tan_of<T: Real>(x: f64, angle: Angle) -> T {
    T::of(if x.abs() < TINY { x } else { tangent::<T>(angle) })
}

/// sin and tan are the argument.
const TINY: f64 = 1.0 / (1 << 27) as f64;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident, $all:ident, $near:ident, $body:ident, $of:ident;)*) => {$(
        #[inline(always)]
        pub fn $name<T: Real>(x: T) -> T {
            let x = x.to_f64();
            $of(x, if x.abs() < NEAR { near::<T>(x) } else { far(x) })
        }

        #[inline(always)]
        fn $body<T: Real>(input: &[T], output: &mut [T]) {
            for (output, &x) in output.iter_mut().zip(input) {
                *output = $of(x.to_f64(), near::<T>(x.to_f64()));
            }
        }

        for_each_level! {
            fn $near<T: Real>(input: &[T], output: &mut [T]) -> () = $body;
        }

        /// The same of each number of a slice.
        pub fn $all<T: Real>(input: &[T], output: &mut [T]) {
            $near(input, output);
            let is_far = |x: T| x.abs() >= T::of(NEAR);
            if input.iter().fold(false, |any, &x| any | is_far(x)) {
                for (output, &x) in output.iter_mut().zip(input).filter(|(_, x)| is_far(**x)) {
                    *output = $of(x.to_f64(), far(x.to_f64()));
                }
            }
        }
    )*};
}

functions! {
    sin, sin_all, sin_near, sin_body, sin_of;
    cos, cos_all, cos_near, cos_body, cos_of;
    tan, tan_all, tan_near, tan_body, tan_of;
}

for_each_level! {
    /// `e^(-2 pi i at / of)` of each `at`, which is less than `of`, which is at most 2^52: the real and the imaginary part. The
    /// angle is reduced in integers, so that symmetries are exact, and so are the quarters of a turn.
    pub fn turns<>(at: &[u64], of: u64, to: &mut [[f64; 2]]) -> () = turns_body;
}

#[inline(always)]
fn turns_body(at: &[u64], of: u64, to: &mut [[f64; 2]]) {
    let [a, b, _] = PARTS;
    for (to, &at) in to.iter_mut().zip(at) {
        // at / of = (n + rest / of) / 4
        let n = (8 * at + of) / (2 * of);
        let rest = (4 * at).wrapping_sub(n * of).cast_signed() as f64;
        let quotient = rest / of as f64;
        let wrong = quotient.mul_add(-(of as f64), rest) / of as f64;
        let r = quotient * a;
        let low = quotient.mul_add(a, -r) + quotient.mul_add(b, wrong * a);
        let angle = Angle { r, low, n };
        // -sin(x) = sin(x + pi)
        *to = [turned::<f64>(angle, 1), turned::<f64>(angle, 2)];
    }
}

/// 64 zeros, then the bits of 2/pi.
const BITS: [u64; 21] = [
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
];
