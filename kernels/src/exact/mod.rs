//! Exact numbers, for tests: what a kernel should give, and how far it is from that.
//!
//! An [`Exact`] is an integer of any length times a power of two, as every finite float is. Sums, differences and
//! products of them are exact. Quotients, square roots and [`product`] keep [`DIGITS`] bits, and a last one that says
//! whether more would follow: rounding that to a float is the rounding of the exact result. Logarithms and exponentials
//! aren't here: take those of `f64`, and allow for their error.
//!
//! ```text
//! let mean = sum(lane).over(&Exact::of(lane.len() as f64));
//! assert!(ulps(got, &mean) <= 0.5);           // the distance in units of the last place
//! assert_eq!(got, mean.nearest::<f32>());     // the same, except for the sign of 0
//! ```

mod natural;
mod tests;

use half::{bf16, f16};
use natural::Natural;
use std::cmp::Ordering;

/// Bits that quotients, roots and long products keep: their relative error is below 2^-255.
const DIGITS: u64 = 256;

/// A number: ± `digits` * 2^`exponent`. Zero has no sign.
#[derive(Debug, Clone)]
pub(crate) struct Exact {
    negative: bool,
    digits: Natural,
    exponent: i64,
}

/// A type of floats.
pub(crate) trait Rounded: Copy + Into<f64> {
    /// Bits of its significand, the first included.
    const DIGITS: u64;
    /// Its least positive number is 2^LEAST.
    const LEAST: i64;
    /// Numbers are less than 2^END.
    const END: i64;

    /// A number that the type has, or an infinity.
    fn narrowed(value: f64) -> Self;
}

macro_rules! rounded {
    ($($type:ident, $from:expr;)*) => {$(
        impl Rounded for $type {
            const DIGITS: u64 = $type::MANTISSA_DIGITS as u64;
            const LEAST: i64 = $type::MIN_EXP as i64 - $type::MANTISSA_DIGITS as i64;
            const END: i64 = $type::MAX_EXP as i64;

            fn narrowed(value: f64) -> $type {
                $from(value)
            }
        }
    )*};
}

rounded! {
    f64, |value| value;
    f32, |value| value as f32;
    f16, f16::from_f64;
    bf16, bf16::from_f64;
}

impl Exact {
    /// The number that a finite float stands for.
    pub(crate) fn of<T: Into<f64>>(value: T) -> Exact {
        let value = value.into();
        let (significand, exponent) = parts(value);
        Exact { negative: value < 0.0, digits: Natural::of(significand), exponent }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_zero()
    }

    pub(crate) fn is_positive(&self) -> bool {
        !self.negative && !self.is_zero()
    }

    pub(crate) fn negated(mut self) -> Exact {
        self.negative = !self.negative && !self.is_zero();
        self
    }

    pub(crate) fn plus(&self, other: &Exact) -> Exact {
        let exponent = self.exponent.min(other.exponent);
        let align = |number: &Exact| number.digits.shifted((number.exponent - exponent) as u64);
        let (a, b) = (align(self), align(other));
        let (negative, digits) = match (self.negative == other.negative, a.compare(&b)) {
            (true, _) => (self.negative, a.plus(&b)),
            (false, Ordering::Less) => (other.negative, b.minus(&a)),
            (false, Ordering::Greater) => (self.negative, a.minus(&b)),
            (false, Ordering::Equal) => (false, Natural::of(0)),
        };
        Exact { negative, digits, exponent }
    }

    pub(crate) fn minus(&self, other: &Exact) -> Exact {
        self.plus(&other.clone().negated())
    }

    pub(crate) fn times(&self, other: &Exact) -> Exact {
        let digits = self.digits.times(&other.digits);
        let negative = self.negative != other.negative && !digits.is_zero();
        Exact { negative, digits, exponent: self.exponent + other.exponent }
    }

    /// The quotient. The divisor isn't 0.
    pub(crate) fn over(&self, divisor: &Exact) -> Exact {
        assert!(!divisor.is_zero(), "a division by 0");
        if self.is_zero() {
            return self.clone();
        }
        // Of the same length: the quotient is in (1/2, 2).
        let align = |a: &Natural, b: &Natural| b.bits().saturating_sub(a.bits());
        let (up, down) = (align(&self.digits, &divisor.digits), align(&divisor.digits, &self.digits));
        let (mut rest, divisor_digits) = (self.digits.shifted(up), divisor.digits.shifted(down));
        let mut quotient = Natural::of(0);
        for _ in 0..=DIGITS {
            let fits = rest.compare(&divisor_digits) != Ordering::Less;
            if fits {
                rest = rest.minus(&divisor_digits);
            }
            rest = rest.shifted(1);
            quotient = quotient.followed_by(fits);
        }
        let exponent = self.exponent - up as i64 - divisor.exponent + down as i64 - DIGITS as i64;
        let negative = self.negative != divisor.negative;
        Exact { negative, digits: quotient.followed_by(!rest.is_zero()), exponent: exponent - 1 }
    }

    /// The square root of a number that isn't negative.
    pub(crate) fn sqrt(&self) -> Exact {
        assert!(!self.negative, "the square root of a negative number");
        // The root of the integer part is the integer part of the root.
        let exponent = (self.exponent + self.digits.bits() as i64 - 2 * DIGITS as i64) & !1;
        let (square, more) = self.digits.moved(self.exponent - exponent);
        let root = (0..=DIGITS).rev().fold(Natural::of(0), |root, place| {
            let longer = root.plus(&Natural::of(1).shifted(place));
            if longer.times(&longer).compare(&square) == Ordering::Greater { root } else { longer }
        });
        let more = more || root.times(&root).compare(&square) != Ordering::Equal;
        Exact { negative: false, digits: root.followed_by(more), exponent: exponent / 2 - 1 }
    }

    /// The nearest number of a type, ties to even. Half a unit beyond the greatest one it is infinite.
    pub(crate) fn nearest<T: Rounded>(&self) -> T {
        let exponent = self.last_place::<T>();
        if exponent >= T::END {
            return T::narrowed(self.signed(f64::INFINITY));
        }
        // With one bit for the half, and whether there is more.
        let (twice, more) = self.digits.moved(self.exponent - exponent + 1);
        let twice = twice.low();
        let up = twice & 1 == 1 && (more || twice & 2 == 2);
        T::narrowed(self.signed(scaled((twice >> 1) + u64::from(up), exponent)))
    }

    /// The exponent of the last place in a type.
    fn last_place<T: Rounded>(&self) -> i64 {
        if self.is_zero() {
            return T::LEAST;
        }
        (self.exponent + self.digits.bits() as i64 - T::DIGITS as i64).max(T::LEAST)
    }

    fn signed(&self, magnitude: f64) -> f64 {
        if self.negative { -magnitude } else { magnitude }
    }

    /// At most [`DIGITS`] bits, and one that says whether there were more.
    fn cut(self) -> Exact {
        let Some(excess) = self.digits.bits().checked_sub(DIGITS + 1).filter(|excess| *excess > 0) else { return self };
        let (digits, more) = self.digits.moved(-(excess as i64));
        Exact { digits: digits.followed_by(more), exponent: self.exponent + excess as i64 - 1, ..self }
    }
}

/// The distance from a computed number to the exact one, in units of the last place of the exact one in the number's
/// type: at most 0.5 if it is the nearest. Where the exact number rounds to infinity the distance to that is 0; elsewhere
/// infinity counts as the power of two after the greatest number. That to NaN is infinite. The sign of 0 doesn't matter.
pub(crate) fn ulps<T: Rounded>(got: T, exact: &Exact) -> f64 {
    let value: f64 = got.into();
    if value.is_nan() || value == exact.nearest::<T>().into() && value.is_infinite() {
        return if value.is_nan() { f64::INFINITY } else { 0.0 };
    }
    let got = if value.is_finite() {
        Exact::of(value)
    } else {
        Exact { negative: value < 0.0, digits: Natural::of(1), exponent: T::END }
    };
    let place = exact.last_place::<T>().min(T::END - T::DIGITS as i64);
    let distance = got.minus(exact);
    Exact { negative: false, exponent: distance.exponent - place, ..distance }.nearest()
}

/// The sum of finite numbers.
pub(crate) fn sum<T: Into<f64>>(values: impl IntoIterator<Item = T>) -> Exact {
    dot(values.into_iter().map(|value| (value.into(), 1.0)))
}

/// The sum of the squares of finite numbers.
pub(crate) fn sum_of_squares<T: Into<f64> + Copy>(values: impl IntoIterator<Item = T>) -> Exact {
    dot(values.into_iter().map(|value| (value, value)))
}

/// The sum of the products of pairs of finite numbers.
pub(crate) fn dot<A: Into<f64>, B: Into<f64>>(pairs: impl IntoIterator<Item = (A, B)>) -> Exact {
    // Fixed point: from 2^-2148, the least product, past 2^2048 with room for 2^64 of the greatest.
    const LEAST: i64 = -2 * 1074;
    let mut sums = [[0u64; 67]; 2];
    for (a, b) in pairs {
        let (a, b) = (a.into(), b.into());
        let ((a_digits, a_exponent), (b_digits, b_exponent)) = (parts(a), parts(b));
        let product = u128::from(a_digits) * u128::from(b_digits);
        let place = (a_exponent + b_exponent - LEAST) as usize;
        // Negative ones are added apart: carries stay short.
        let sum = &mut sums[usize::from((a < 0.0) != (b < 0.0))];
        let low = (product & u128::from(u64::MAX)) << (place % 64);
        let high = (product >> 64) << (place % 64);
        add_at(sum, place / 64, low as u64);
        add_at(sum, place / 64 + 1, (low >> 64) as u64);
        add_at(sum, place / 64 + 1, high as u64);
        add_at(sum, place / 64 + 2, (high >> 64) as u64);
    }
    let [positive, negative] =
        sums.map(|sum| Exact { negative: false, digits: Natural::of_limbs(sum.to_vec()), exponent: LEAST });
    positive.minus(&negative)
}

/// The product of finite numbers. Each factor adds a relative error below 2^-255 once there are more than 256 bits.
pub(crate) fn product<T: Into<f64>>(values: impl IntoIterator<Item = T>) -> Exact {
    values.into_iter().fold(Exact::of(1.0), |product, value| product.times(&Exact::of(value)).cut())
}

fn add_at(limbs: &mut [u64], place: usize, value: u64) {
    let mut carry = value;
    for limb in &mut limbs[place..] {
        let (sum, over) = limb.overflowing_add(carry);
        *limb = sum;
        carry = u64::from(over);
        if carry == 0 {
            return;
        }
    }
    assert_eq!(carry, 0, "too many numbers");
}

/// (m, e) of a finite number ± m * 2^e, e >= -1074.
fn parts(value: f64) -> (u64, i64) {
    assert!(value.is_finite(), "{value} is not a finite number");
    let (biased, fraction) = ((value.to_bits() >> 52 & 0x7ff) as i64, value.to_bits() & ((1 << 52) - 1));
    if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) }
}

/// `digits * 2^exponent`, which is a number of `f64`, or infinite.
fn scaled(digits: u64, exponent: i64) -> f64 {
    let power = |exponent: i64| f64::from_bits(((exponent + 1023) as u64) << 52);
    let half = exponent / 2;
    digits as f64 * power(half) * power(exponent - half)
}
