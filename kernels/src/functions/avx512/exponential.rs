//! As [`super::super::exponential`].

use super::some::Some16;
use crate::functions::Real;

/// A number whose integers are all numbers near it: `x + ROUND - ROUND` rounds a small x, and its lowest bits are 0.
pub(super) const ROUND: f32 = 1.5 / f32::EPSILON;

/// The functions are compiled where they are called.
macro_rules! vectors {
    ($($(#[$doc:meta])* $visible:vis fn $name:ident<$k:ident>($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {$(
        $(#[$doc])*
        #[target_feature(enable = "avx512f,avx512dq")]
        #[inline]
        $visible fn $name<const $k: usize>($($arg: $type),*) -> $result $body
    )*};
}
pub(super) use vectors;

vectors! {
    /// As [`super::super::sum`].
    fn sum<K>(a: Some16<K>, b: Some16<K>) -> (Some16<K>, Some16<K>) {
        let sum = a.add(b);
        (sum, b.sub(sum.sub(a)))
    }

    /// e^r - 1 = r + the result, of x = r + low, and low. Other coefficients than those of [`Real::EXP`] scale it.
    pub(super) fn rest<K>(x: Some16<K>, low: Some16<K>, coefficients: [f32; 6]) -> Some16<K> {
        let [a, b, c, d, e, f] = coefficients;
        let [a, b, c] = [Some16::all(a), Some16::all(b), Some16::all(c)];
        let [d, e, f] = [Some16::all(d), Some16::all(e), Some16::all(f)];
        let square = x.mul(x);
        let (high, middle, first) = (f.mul_add(x, e), d.mul_add(x, c), b.mul_add(x, a));
        square.mul_add(high.mul_add(square, middle).mul_add(square, first), low)
    }

    /// Of numbers from -177 to 177.
    pub(super) fn exp<K>(x: Some16<K>) -> Option<Some16<K>> {
        let shifted = x.mul_add(Some16::all(f32::LOG2_E), Some16::all(ROUND + 256.0));
        if !shifted.differs_below(ROUND, 0x1ff) {
            return None;
        }
        let n = shifted.sub(Some16::all(ROUND + 256.0));
        let r = n.neg_mul_add(Some16::all(f32::LN_2), x);
        let low = n.mul(Some16::all(-f32::LN_2_LOW));
        let (high, error) = sum(Some16::all(1.0), r);
        Some(high.add(error.add(rest(r.add(low), low, EXP))).scale(n))
    }

    /// All is half as large as in the plain function until the division, which changes no bit of the result: so |x| isn't
    /// doubled.
    pub(super) fn tanh<K>(x: Some16<K>) -> Option<Some16<K>> {
        let (one, biased) = (Some16::all(1.0), Some16::all(f32::BIASED));
        let size = x.abs().least(Some16::all(0.5 * f32::SATURATED));
        let shifted = size.mul_add(Some16::all(-2.0 * f32::LOG2_E), biased);
        let n = biased.sub(shifted);
        let r = n.neg_mul_add(Some16::all(0.5 * f32::LN_2), size);
        let low = n.mul(Some16::all(-0.5 * f32::LN_2_LOW));
        let rest = rest(r.add(low), low, HALF_EXP);
        let half = Some16::all(0.5);
        let s = shifted.sub(one).power_of_two();
        let (below, above, lost) = (half.sub(s), half.add(s), shifted.pick(&LOST));
        let (dividend, error) = sum(below, r);
        let (dividend, dividend_error) = sum(dividend, error.add(lost).add(rest));
        let (divisor, error) = sum(above, r);
        let (divisor, divisor_error) = sum(divisor, error.add(rest));
        let inverse = one.div(divisor);
        let quotient = dividend.mul(inverse);
        let wrong = quotient.neg_mul_add(divisor, dividend).add(quotient.neg_mul_add(divisor_error, dividend_error));
        Some(wrong.mul_add(inverse, quotient).or_sign(x))
    }
}

pub(super) const EXP: [f32; 6] = {
    let [a, b, c, d, e, f] = f32::EXP else { panic!() };
    [*a, *b, *c, *d, *e, *f]
};

/// Of a half: e^2h - 1 = 2 (h + P(h) h^2), so they are twice as large, times powers of 2.
const HALF_EXP: [f32; 6] = {
    let [a, b, c, d, e, f] = EXP;
    [2.0 * a, 4.0 * b, 8.0 * c, 16.0 * d, 32.0 * e, 64.0 * f]
};

/// Half of what 1 - s and 1 + s lack, s = 2^-n, by 31 - n.
static LOST: [[f32; 16]; 2] = {
    let mut lost = [[0.0; 16]; 2];
    let mut n = 0;
    while n < 32 {
        let s = f32::from_bits((127 - n as u32) << 23);
        let (below, above) = (1.0 - s, 1.0 + s);
        #[allow(clippy::indexing_slicing)]
        {
            lost[(31 - n) / 16][(31 - n) % 16] = 0.5 * ((above - below) - (s + s));
        }
        n += 1;
    }
    lost
};
