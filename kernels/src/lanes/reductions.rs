//! The reductions: what an element adds, and what is made of a lane's value at the end.
//!
//! Sums of float32 and smaller floats are added up in f64, those of f64 in pairs of f64, and the result is rounded once.
//! So a result is within 0.5 ulp of the exact one, and what n steps of 2^-53 (2^-104) of the sum of magnitudes make: that
//! is below 0.01 ulp for a million elements of one sign. Logarithms of f64 are within 3 ulp. Sums and products of integers
//! wrap; their means and norms hold all bits, round toward 0 and saturate.

use super::reduce::PartialOf;
use super::sums::{Exact, Factors, Partial, Total};
use super::{Floating, Fold, Number, Reduction, ReductionOfAll};
use crate::functions::pow;
use std::marker::PhantomData;

/// Defines what elements add to a total.
macro_rules! added {
    ($($(#[$doc:meta])* $name:ident: |$total:ident, $element:ident| $add:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<P>(pub(super) PhantomData<P>);

        impl<T: Number, P: Total<T::Precise>> Fold<T> for $name<P> {
            type Partial = P;

            #[inline(always)]
            fn add(&self, $total: P, $element: T) -> P {
                $add
            }
        }
    )*};
}

added! {
    /// Themselves.
    Added: |sum, x| sum.add(x.precise());
    /// Their squares.
    Squared: |sum, x| sum.add_square(x.precise());
    /// Their distances from 0.
    Magnitudes: |sum, x| sum.add(x.magnitude().precise());
}

/// Defines reductions that add up what elements add in a type of [`Number`].
macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident: $fold:ident in $partial:ident, |$sum:ident, $len:pat_param| $end:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name;

        impl<T: Number> Reduction<T> for $name {
            type Fold = $fold<T::$partial>;
            const EMPTY: PartialOf<Self, T> = T::$partial::ZERO;

            #[inline(always)]
            fn fold(&self) -> Self::Fold {
                $fold(PhantomData)
            }
            #[inline(always)]
            fn end(&self, $sum: PartialOf<Self, T>, $len: usize) -> T::Precise {
                $end
            }
        }

        impl ReductionOfAll for $name {}
    )*};
}

sums! {
    /// The sum.
    Sum: Added in Sum, |sum, _| sum.value();
    /// The sum, divided by the number of elements.
    Mean: Added in Exact, |sum, len| sum.over(len);
    /// The sum of squares.
    SumSquare: Squared in Sum, |sum, _| sum.value();
    /// The sum of distances from 0.
    L1: Magnitudes in Sum, |sum, _| sum.value();
    /// The square root of the sum of squares.
    L2: Squared in Exact, |sum, _| sum.root();
    /// The logarithm of the sum.
    LogSum: Added in Exact, |sum, _| sum.logarithm();
}

/// The product. Products of floats keep their exponent apart, so that only the result overflows.
#[derive(Debug, Default)]
pub struct Prod;

impl<T: Number> Fold<T> for Prod {
    type Partial = T::Product;

    #[inline(always)]
    fn add(&self, product: T::Product, element: T) -> T::Product {
        product.times(element.precise())
    }
    #[inline(always)]
    fn add_blocks<'a, const N: usize>(&self, products: &mut [T::Product; N], blocks: impl Iterator<Item = &'a [T; N]>) {
        T::Product::times_blocks(products, blocks);
    }
}

impl<T: Number> Reduction<T> for Prod {
    type Fold = Prod;

    #[inline(always)]
    fn fold(&self) -> Prod {
        Prod
    }
    #[inline(always)]
    fn end(&self, product: T::Product, _: usize) -> T::Precise {
        product.value()
    }
}

impl ReductionOfAll for Prod {}

/// The norm of any order: a root of the sum of powers of distances from 0. L1 and L2 are more precise.
#[derive(Debug)]
pub struct Norm {
    pub order: f64,
}

/// Adds powers of distances from 0.
#[derive(Debug)]
pub struct Powers(f64);

impl<T: Floating> Fold<T> for Powers {
    type Partial = T::Exact;

    #[inline(always)]
    fn add(&self, sum: T::Exact, element: T) -> T::Exact {
        sum.add(pow(element.magnitude().precise(), self.0))
    }
}

impl<T: Floating> Reduction<T> for Norm {
    type Fold = Powers;
    const EMPTY: T::Exact = T::Exact::ZERO;

    #[inline(always)]
    fn fold(&self) -> Powers {
        Powers(self.order)
    }
    #[inline(always)]
    fn end(&self, sum: T::Exact, _: usize) -> f64 {
        pow(sum.value(), 1.0 / self.order)
    }
}

/// The greatest element, or the least; NaN if there is one.
///
/// Among integers flipped bits make the least the greatest, and give those without a sign the order of those with one: so
/// one loop does for all of them.
#[derive(Debug, Clone, Copy)]
pub struct Extreme<T, const LEAST: bool> {
    pub(super) flip: T,
}

impl<T: Number, const LEAST: bool> Extreme<T, LEAST> {
    /// Whether an element comes before another in the order from the extreme on, in which NaN is the greatest.
    #[inline(always)]
    pub(super) fn precedes(&self, a: T, b: T) -> bool {
        let (a, b) = (self.counts(a), self.counts(b));
        if LEAST { a < b || b.is_nan() && !a.is_nan() } else { a > b || a.is_nan() && !b.is_nan() }
    }

    /// The element that an extreme is.
    #[inline(always)]
    pub(crate) fn element(&self, Furthest(extreme): Furthest<T, LEAST>) -> T {
        extreme.flipped(self.flip)
    }
}

/// A reduction to an extreme.
pub trait Order<T: Number>: Reduction<T> {
    /// Whether an element is beyond another; false if one is NaN.
    fn is_ahead(&self, a: T, b: T) -> bool;

    /// Whether an element is beyond another. NaN is beyond all numbers.
    #[inline(always)]
    fn exceeds(&self, a: T, b: T) -> bool {
        self.is_ahead(a, b) | (a.is_nan() & !b.is_nan())
    }
}

impl<T: Number, const LEAST: bool> Order<T> for Extreme<T, LEAST> {
    #[inline(always)]
    fn is_ahead(&self, a: T, b: T) -> bool {
        let (a, b) = (self.counts(a), self.counts(b));
        if LEAST { a < b } else { a > b }
    }
}

/// An extreme, with bits flipped.
#[derive(Debug, Clone, Copy)]
pub struct Furthest<T, const LEAST: bool>(T);

impl<T: Number, const LEAST: bool> Partial for Furthest<T, LEAST> {
    const START: Self = Furthest(if LEAST { T::GREATEST } else { T::LEAST });

    #[inline(always)]
    fn join(self, other: Self) -> Self {
        let (Furthest(a), Furthest(b)) = (self, other);
        let extreme = if if LEAST { a < b } else { a > b } { a } else { b };
        Furthest(if a.is_nan() { a } else { extreme })
    }
}

impl<T: Number, const LEAST: bool> Fold<T> for Extreme<T, LEAST> {
    type Partial = Furthest<T, LEAST>;
    const HAS_ODD: bool = true;

    #[inline(always)]
    fn counts(&self, element: T) -> T {
        element.flipped(self.flip)
    }
    #[inline(always)]
    fn add(&self, extreme: Furthest<T, LEAST>, element: T) -> Furthest<T, LEAST> {
        extreme.join(Furthest(element))
    }
    #[inline(always)]
    fn add_ordinary(&self, extreme: Furthest<T, LEAST>, element: T) -> Furthest<T, LEAST> {
        let (a, b) = (extreme.0, element);
        Furthest(if if LEAST { a < b } else { a > b } { a } else { b })
    }
    /// NaN is.
    #[inline(always)]
    fn is_odd(&self, element: T) -> bool {
        element.is_nan()
    }
    #[inline(always)]
    fn has_odd(&self, extreme: Furthest<T, LEAST>) -> bool {
        extreme.0.is_nan()
    }
}

impl<T: Number, const LEAST: bool> Reduction<T> for Extreme<T, LEAST> {
    type Fold = Self;

    fn fold(&self) -> Self {
        *self
    }
    #[inline(always)]
    fn end(&self, extreme: Furthest<T, LEAST>, _: usize) -> T::Precise {
        self.element(extreme).precise()
    }
}
