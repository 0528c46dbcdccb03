//! The reductions: what an element adds, how parts are joined, and what is made of them at the end.
//!
//! Sums of float32 and smaller floats are added up in f64, those of f64 in pairs of f64, and the result is rounded once.
//! So a result is within 0.5 ulp of the exact one, and what n steps of 2^-53 (2^-104) of the sum of magnitudes make: that
//! is below 0.01 ulp for a million elements of one sign. Logarithms of f64 are within 3 ulp. Sums and products of integers
//! wrap; their means and norms hold all bits, round toward 0 and saturate.

use super::sums::{Exact, Factors, Total};
use super::{Number, Reduction, ReductionOfAll};

/// Defines reductions that add up the elements in a type of [`Number`].
macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident in $partial:ident: |$total:ident, $element:ident| $add:expr, |$sum:ident, $len:pat_param| $end:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name;

        impl<T: Number> Reduction<T> for $name {
            type Partial = T::$partial;
            const START: Self::Partial = Self::Partial::NOTHING;
            const EMPTY: Self::Partial = Self::Partial::ZERO;

            #[inline(always)]
            fn add(&self, $total: Self::Partial, $element: T) -> Self::Partial {
                $add
            }
            #[inline(always)]
            fn join(a: Self::Partial, b: Self::Partial) -> Self::Partial {
                a.join(b)
            }
            #[inline(always)]
            fn end($sum: Self::Partial, $len: usize) -> T::Precise {
                $end
            }
        }

        impl ReductionOfAll for $name {}
    )*};
}

sums! {
    /// The sum.
    Sum in Sum: |sum, x| sum.add(x.precise()), |sum, _| sum.value();
    /// The sum, divided by the number of elements.
    Mean in Exact: |sum, x| sum.add(x.precise()), |sum, len| sum.over(len);
    /// The sum of squares.
    SumSquare in Sum: |sum, x| sum.add_square(x.precise()), |sum, _| sum.value();
    /// The sum of distances from 0.
    L1 in Sum: |sum, x| sum.add(x.magnitude().precise()), |sum, _| sum.value();
    /// The square root of the sum of squares.
    L2 in Exact: |sum, x| sum.add_square(x.precise()), |sum, _| sum.root();
    /// The logarithm of the sum.
    LogSum in Exact: |sum, x| sum.add(x.precise()), |sum, _| sum.logarithm();
}

/// The product. Products of floats keep their exponent apart, so that only the result overflows.
#[derive(Debug, Default)]
pub(crate) struct Prod;

impl<T: Number> Reduction<T> for Prod {
    type Partial = T::Product;
    const START: Self::Partial = Self::Partial::ONE;

    #[inline(always)]
    fn add(&self, product: Self::Partial, element: T) -> Self::Partial {
        product.times(element.precise())
    }
    #[inline(always)]
    fn join(a: Self::Partial, b: Self::Partial) -> Self::Partial {
        a.join(b)
    }
    #[inline(always)]
    fn end(product: Self::Partial, _: usize) -> T::Precise {
        product.value()
    }
}

impl ReductionOfAll for Prod {}

/// Defines reductions to an element, or NaN if there is one.
macro_rules! extremes {
    ($($(#[$doc:meta])* $name:ident from $start:ident: $compare:tt;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name;

        impl<T: Number> Reduction<T> for $name {
            type Partial = T;
            const START: T = T::$start;

            #[inline(always)]
            fn add(&self, a: T, b: T) -> T {
                <Self as Reduction<T>>::join(a, b)
            }
            #[inline(always)]
            fn join(a: T, b: T) -> T {
                let extreme = if a $compare b { a } else { b };
                if a.is_nan() { a } else { extreme }
            }
            #[inline(always)]
            fn end(value: T, _: usize) -> T::Precise {
                value.precise()
            }
        }

        impl ReductionOfAll for $name {}
    )*};
}

extremes! {
    /// The greatest element; NaN if there is one.
    Max from LEAST: >;
    /// The least element; NaN if there is one.
    Min from GREATEST: <;
}
