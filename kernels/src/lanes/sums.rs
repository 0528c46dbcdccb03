//! The types in which reductions add up and multiply: wider than the elements, so that a result is rounded once, at its end.

use super::Number;
use crate::functions::log;
use crate::number::Int;

/// The value of a part of a lane.
pub trait Partial: Copy + Send + Sync + 'static {
    /// The value to start from: joined with another, it gives the other, and the sign of its zero.
    const START: Self;

    /// Joins the values of two parts of a lane.
    fn join(self, other: Self) -> Self;
}

/// A sum of numbers `P`.
pub trait Total<P>: Partial {
    /// The sum of no elements.
    const ZERO: Self;

    fn add(self, number: P) -> Self;
    fn add_square(self, number: P) -> Self;
    fn value(self) -> P;
}

/// A sum that holds all bits of what is added, if `P` is an integer.
pub trait Exact<P>: Total<P> {
    /// The quotient by a count; integers round toward 0. By 0 it is NaN, or 0.
    fn over(self, count: usize) -> P;
    /// The square root; integers round toward 0, and saturate.
    fn root(self) -> P;
    /// The natural logarithm; integers round toward 0, and saturate.
    fn logarithm(self) -> P;
}

/// A product of numbers `P`.
pub trait Factors<P>: Partial {
    fn times(self, number: P) -> Self;
    fn value(self) -> P;

    /// Multiplies products by the elements of blocks, each by those at its place.
    #[inline(always)]
    fn times_blocks<'a, T: Number<Precise = P>, const N: usize>(
        products: &mut [Self; N],
        blocks: impl Iterator<Item = &'a [T; N]>,
    ) {
        // A copy stays in registers.
        let mut held = *products;
        for block in blocks {
            for (product, element) in held.iter_mut().zip(block) {
                *product = product.times(element.precise());
            }
        }
        *products = held;
    }
}

impl Partial for f64 {
    const START: f64 = -0.0;

    #[inline(always)]
    fn join(self, other: f64) -> f64 {
        self + other
    }
}

/// Of f32: a step is off by at most 2^-53 of the sum, and squares are exact.
impl Total<f64> for f64 {
    const ZERO: f64 = 0.0;

    #[inline(always)]
    fn add(self, number: f64) -> f64 {
        self + number
    }
    #[inline(always)]
    fn add_square(self, number: f64) -> f64 {
        self + number * number
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self
    }
}

impl Exact<f64> for f64 {
    #[inline(always)]
    fn over(self, count: usize) -> f64 {
        if count == 0 { f64::NAN } else { self / count as f64 }
    }
    #[inline(always)]
    fn root(self) -> f64 {
        self.sqrt()
    }
    #[inline(always)]
    fn logarithm(self) -> f64 {
        log(self)
    }
}

/// The sum of two doubles, of which `low` is what rounding took from `high`. A step is off by at most 2^-104 of the sum.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    high: f64,
    low: f64,
}

impl Pair {
    /// The sum of two numbers, exactly.
    #[inline(always)]
    fn sum(a: f64, b: f64) -> Pair {
        let high = a + b;
        let of_b = high - a;
        Pair { high, low: (a - (high - of_b)) + (b - of_b) }
    }

    /// The product of two numbers, exactly unless the error is subnormal.
    #[inline(always)]
    fn product(a: f64, b: f64) -> Pair {
        let high = a * b;
        Pair { high, low: a.mul_add(b, -high) }
    }

    /// A result for `high`, corrected by what is missing, unless that means nothing.
    #[inline(always)]
    fn corrected(high: f64, missing: f64) -> f64 {
        if missing == 0.0 || !missing.is_finite() { high } else { high + missing }
    }
}

impl Partial for Pair {
    const START: Pair = Pair { high: -0.0, low: 0.0 };

    #[inline(always)]
    fn join(self, other: Pair) -> Pair {
        let Pair { high, low } = Pair::sum(self.high, other.high);
        Pair { high, low: self.low + other.low + low }
    }
}

/// Of f64.
impl Total<f64> for Pair {
    const ZERO: Pair = Pair { high: 0.0, low: 0.0 };

    #[inline(always)]
    fn add(self, number: f64) -> Pair {
        let Pair { high, low } = Pair::sum(self.high, number);
        Pair { high, low: self.low + low }
    }
    #[inline(always)]
    fn add_square(self, number: f64) -> Pair {
        self.join(Pair::product(number, number))
    }
    #[inline(always)]
    fn value(self) -> f64 {
        Pair::corrected(self.high, self.low)
    }
}

impl Exact<f64> for Pair {
    #[inline(always)]
    fn over(self, count: usize) -> f64 {
        let count = count as f64;
        let quotient = self.high / count;
        let rest = (-quotient).mul_add(count, self.high) + self.low;
        Pair::corrected(quotient, rest / count)
    }
    #[inline(always)]
    fn root(self) -> f64 {
        let root = self.high.sqrt();
        let rest = (-root).mul_add(root, self.high) + self.low;
        Pair::corrected(root, rest / (2.0 * root))
    }
    #[inline(always)]
    fn logarithm(self) -> f64 {
        let sum = self.value();
        Pair::corrected(log(sum), ((self.high - sum) + self.low) / sum)
    }
}

/// A product of floats: `(high + low) * 2^exponent`, with `high` from 1 to 2, so that nothing overflows on the way. A step
/// is off by at most 2^-103 of the product.
#[derive(Debug, Clone, Copy)]
pub struct Scaled {
    high: f64,
    low: f64,
    exponent: i64,
}

impl Scaled {
    /// A number; one that has no exponent (0, infinity, NaN) stays as it is.
    #[inline(always)]
    fn of(number: f64) -> Scaled {
        const SUBNORMAL: f64 = (1u64 << 54) as f64;
        let small = number.abs() < f64::MIN_POSITIVE;
        let bits = (if small { number * SUBNORMAL } else { number }).to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i64 - if small { 1023 + 54 } else { 1023 };
        let high = f64::from_bits(bits & !(0x7ff << 52) | 1023 << 52);
        if number == 0.0 || !number.is_finite() {
            return Scaled { high: number, low: 0.0, exponent: 0 };
        }
        Scaled { high, low: 0.0, exponent }
    }
}

/// The product of numbers, rounded once: it may be greater or smaller on the way than any number.
pub fn product(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(Scaled::START, Scaled::times).value()
}

impl Partial for Scaled {
    const START: Scaled = Scaled { high: 1.0, low: 0.0, exponent: 0 };

    #[inline(always)]
    fn join(self, other: Scaled) -> Scaled {
        let Pair { high, low } = Pair::product(self.high, other.high);
        let low = low + (self.high * other.low + self.low * other.high);
        let (half, more) = if high.abs() >= 2.0 { (0.5, 1) } else { (1.0, 0) };
        Scaled { high: high * half, low: low * half, exponent: self.exponent + other.exponent + more }
    }
}

impl Factors<f64> for Scaled {
    #[inline(always)]
    fn times(self, number: f64) -> Scaled {
        self.join(Scaled::of(number))
    }
    #[inline(always)]
    fn value(self) -> f64 {
        let power = |exponent: i64| f64::from_bits(((exponent + 1023) as u64) << 52);
        // Beyond these, twice half the exponent is still 0 or infinity.
        let exponent = self.exponent.clamp(-2000, 2000);
        let rounded = if self.high == 0.0 { self.high } else { Pair::corrected(self.high, self.low) };
        rounded * power(exponent / 2) * power(exponent - exponent / 2)
    }

    /// The parts of products are in arrays of their own, so that several are computed at a time.
    #[inline(always)]
    fn times_blocks<'a, T: Number<Precise = f64>, const N: usize>(
        products: &mut [Scaled; N],
        blocks: impl Iterator<Item = &'a [T; N]>,
    ) {
        let [mut highs, mut lows] = [[0.0; N]; 2];
        let mut exponents = [0; N];
        for (((high, low), exponent), product) in highs.iter_mut().zip(&mut lows).zip(&mut exponents).zip(&*products) {
            Scaled { high: *high, low: *low, exponent: *exponent } = *product;
        }
        for block in blocks {
            for (((high, low), exponent), element) in highs.iter_mut().zip(&mut lows).zip(&mut exponents).zip(block) {
                let product = Scaled { high: *high, low: *low, exponent: *exponent };
                Scaled { high: *high, low: *low, exponent: *exponent } = product.times(element.precise());
            }
        }
        for (((high, low), exponent), product) in highs.into_iter().zip(lows).zip(exponents).zip(products) {
            *product = Scaled { high, low, exponent };
        }
    }
}

/// The sum of integers, and that of their squares, which saturates: its root is beyond any integer then.
#[derive(Debug, Clone, Copy)]
pub struct Whole {
    sum: i128,
    squares: u128,
}

impl Partial for Whole {
    const START: Whole = Whole { sum: 0, squares: 0 };

    #[inline(always)]
    fn join(self, other: Whole) -> Whole {
        let (sum, squares) = (self.sum.wrapping_add(other.sum), self.squares.saturating_add(other.squares));
        Whole { sum, squares }
    }
}

/// A product of integers in their own type.
#[derive(Debug, Clone, Copy)]
pub struct Wrapped<T>(T);

/// In their own type, sums and products wrap.
macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Partial for $type {
            const START: $type = 0;

            #[inline(always)]
            fn join(self, other: $type) -> $type {
                Int::plus(self, other)
            }
        }

        impl Total<$type> for $type {
            const ZERO: $type = 0;

            #[inline(always)]
            fn add(self, number: $type) -> $type {
                Int::plus(self, number)
            }
            #[inline(always)]
            fn add_square(self, number: $type) -> $type {
                Int::plus(self, Int::times(number, number))
            }
            #[inline(always)]
            fn value(self) -> $type {
                self
            }
        }

        impl Total<$type> for Whole {
            const ZERO: Whole = Whole { sum: 0, squares: 0 };

            #[inline(always)]
            fn add(self, number: $type) -> Whole {
                Whole { sum: self.sum.wrapping_add(number.into()), ..self }
            }
            #[inline(always)]
            fn add_square(self, number: $type) -> Whole {
                let magnitude = i128::from(number).unsigned_abs();
                Whole { squares: self.squares.saturating_add(magnitude * magnitude), ..self }
            }
            #[inline(always)]
            fn value(self) -> $type {
                self.sum as $type
            }
        }

        impl Exact<$type> for Whole {
            #[inline(always)]
            fn over(self, count: usize) -> $type {
                self.sum.checked_div(count as i128).unwrap_or(0) as $type
            }
            #[inline(always)]
            fn root(self) -> $type {
                $type::try_from(self.squares.isqrt()).unwrap_or($type::MAX)
            }
            #[inline(always)]
            fn logarithm(self) -> $type {
                log(self.sum as f64) as $type
            }
        }

        impl Partial for Wrapped<$type> {
            const START: Self = Wrapped(1);

            #[inline(always)]
            fn join(self, other: Self) -> Self {
                self.times(other.0)
            }
        }

        impl Factors<$type> for Wrapped<$type> {
            #[inline(always)]
            fn times(self, number: $type) -> Self {
                Wrapped(Int::times(self.0, number))
            }
            #[inline(always)]
            fn value(self) -> $type {
                self.0
            }
        }
    )*};
}

integers!(u8, i16, i32, i64, u32, u64);
