//! The reductions: what an element counts, how counts are joined, and what is made of them at the end.

use super::{Number, Reduction, ReductionOfAll};

/// Defines reductions that add up what each element counts.
macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident = |$element:ident| $counts:expr, |$sum:ident, $len:pat_param| $end:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name;

        impl<T: Number> Reduction<T> for $name {
            const START: T = T::NOTHING;
            const EMPTY: T = T::ZERO;

            #[inline(always)]
            fn counts(&self, $element: T) -> T {
                $counts
            }
            #[inline(always)]
            fn join(a: T, b: T) -> T {
                a.plus(b)
            }
            #[inline(always)]
            fn end($sum: T, $len: usize) -> T {
                $end
            }
        }

        impl ReductionOfAll for $name {}
    )*};
}

sums! {
    /// The sum.
    Sum = |x| x, |sum, _| sum;
    /// The sum, divided by the number of elements.
    Mean = |x| x, |sum, len| sum.over(len);
    /// The sum of squares.
    SumSquare = |x| x.times(x), |sum, _| sum;
    /// The sum of distances from 0.
    L1 = |x| x.magnitude(), |sum, _| sum;
    /// The square root of the sum of squares.
    L2 = |x| x.times(x), |sum, _| sum.root();
    /// The logarithm of the sum.
    LogSum = |x| x, |sum, _| sum.logarithm();
}

/// The product.
#[derive(Debug, Default)]
pub(crate) struct Prod;

impl<T: Number> Reduction<T> for Prod {
    const START: T = T::ONE;

    #[inline(always)]
    fn join(a: T, b: T) -> T {
        a.times(b)
    }
}

impl ReductionOfAll for Prod {}

/// The greatest element; NaN if there is one.
#[derive(Debug, Default)]
pub(crate) struct Max;

impl<T: Number> Reduction<T> for Max {
    const START: T = T::LEAST;

    #[inline(always)]
    fn join(a: T, b: T) -> T {
        let greater = if a > b { a } else { b };
        if a.is_nan() { a } else { greater }
    }
}

impl ReductionOfAll for Max {}

/// The least element; NaN if there is one.
#[derive(Debug, Default)]
pub(crate) struct Min;

impl<T: Number> Reduction<T> for Min {
    const START: T = T::GREATEST;

    #[inline(always)]
    fn join(a: T, b: T) -> T {
        let less = if a < b { a } else { b };
        if a.is_nan() { a } else { less }
    }
}

impl ReductionOfAll for Min {}
