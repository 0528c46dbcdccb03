//! Elements as tensors hold them, and the numbers that kernels compute with.

use super::sums::{Exact, Factors, Pair, Scaled, Total, Whole};
use crate::kernels::functions::Real;
use crate::kernels::half::{Half, odd};
use crate::kernels::number::{Float, Int};
use bytemuck::Pod;
use half::{bf16, f16};
use std::fmt::Debug;

/// What reductions need of a number. Floats round each operation, integers wrap.
pub(crate) trait Number: Stored<Self> + Stored<Self::Precise> + PartialOrd + Debug {
    /// What results are rounded from: f64 for floats, the integer itself.
    type Precise: Pod + Send + Sync;
    /// What sums are added up in: those of integers wrap.
    type Sum: Total<Self::Precise>;
    /// What means and norms are added up in.
    type Exact: Exact<Self::Precise>;
    type Product: Factors<Self::Precise>;

    const ZERO: Self;
    const ONE: Self;
    /// -inf, or the least integer.
    const LEAST: Self;
    /// +inf, or the greatest integer.
    const GREATEST: Self;

    fn precise(self) -> Self::Precise;
    fn nearest(precise: Self::Precise) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn magnitude(self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! floats {
    ($($type:ident by $total:ty),*) => {$(
        impl Number for $type {
            type Precise = f64;
            type Sum = $total;
            type Exact = $total;
            type Product = Scaled;

            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LEAST: Self = -$type::INFINITY;
            const GREATEST: Self = $type::INFINITY;

            #[inline(always)]
            fn precise(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn nearest(precise: f64) -> Self {
                precise as $type
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                Float::abs(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                Float::is_nan(self)
            }
        }
    )*};
}

floats!(f32 by f64, f64 by Pair);

/// `f32` or `f64`.
pub(crate) trait Floating: Number<Precise = f64> + Real {}

impl Floating for f32 {}
impl Floating for f64 {}

macro_rules! ints {
    ($($type:ident),*) => {$(
        impl Number for $type {
            type Precise = Self;
            type Sum = Self;
            type Exact = Whole;
            type Product = Self;

            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LEAST: Self = $type::MIN;
            const GREATEST: Self = $type::MAX;

            #[inline(always)]
            fn precise(self) -> Self {
                self
            }
            #[inline(always)]
            fn nearest(precise: Self) -> Self {
                precise
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                Int::plus(self, other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                Int::times(self, other)
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                Int::magnitude(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
        }
    )*};
}

ints!(i8, i16, i32, i64, u8, u16, u32, u64);

/// An element that is computed with as an `N`.
pub(crate) trait Stored<N>: Pod + Send + Sync {
    /// The elements as they are, if they are such numbers.
    fn direct(from: &[Self]) -> Option<&[N]>;
    fn direct_mut(to: &mut [Self]) -> Option<&mut [N]>;
    /// Converts as many elements as both have.
    fn load(from: &[Self], to: &mut [N]);
    /// As [`Stored::load`], to the nearest elements.
    fn store(from: &[N], to: &mut [Self]);
}

macro_rules! direct {
    ($($type:ident),*) => {$(
        impl Stored<$type> for $type {
            #[inline(always)]
            fn direct(from: &[Self]) -> Option<&[$type]> {
                Some(from)
            }
            #[inline(always)]
            fn direct_mut(to: &mut [Self]) -> Option<&mut [$type]> {
                Some(to)
            }
            #[inline(always)]
            fn load(from: &[Self], to: &mut [$type]) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            #[inline(always)]
            fn store(from: &[$type], to: &mut [Self]) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    )*};
}

direct!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! converted {
    ($($type:ident as $number:ident),*) => {$(
        impl Stored<$number> for $type {
            #[inline(always)]
            fn direct(_: &[Self]) -> Option<&[$number]> {
                None
            }
            #[inline(always)]
            fn direct_mut(_: &mut [Self]) -> Option<&mut [$number]> {
                None
            }
            #[inline(always)]
            fn load(from: &[Self], to: &mut [$number]) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as $number);
            }
            #[inline(always)]
            fn store(from: &[$number], to: &mut [Self]) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as $type);
            }
        }
    )*};
}

converted!(f64 as f32, f32 as f64, i32 as f64, i64 as f64, u32 as f64, u64 as f64);

macro_rules! halves {
    ($($type:ident = $half:expr),*) => {$(
        impl Stored<f32> for $type {
            #[inline(always)]
            fn direct(_: &[Self]) -> Option<&[f32]> {
                None
            }
            #[inline(always)]
            fn direct_mut(_: &mut [Self]) -> Option<&mut [f32]> {
                None
            }
            #[inline(always)]
            fn load(from: &[Self], to: &mut [f32]) {
                let count = from.len().min(to.len());
                if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
                    $half.widen(bytemuck::cast_slice(from), to);
                }
            }
            #[inline(always)]
            fn store(from: &[f32], to: &mut [Self]) {
                let count = from.len().min(to.len());
                if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
                    $half.narrow(from, bytemuck::cast_slice_mut(to));
                }
            }
        }

        impl Stored<f64> for $type {
            #[inline(always)]
            fn direct(_: &[Self]) -> Option<&[f64]> {
                None
            }
            #[inline(always)]
            fn direct_mut(_: &mut [Self]) -> Option<&mut [f64]> {
                None
            }
            #[inline(always)]
            fn load(from: &[Self], to: &mut [f64]) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64());
            }
            #[inline(always)]
            fn store(from: &[f64], to: &mut [Self]) {
                let mut numbers = [0f32; 64];
                for (from, to) in from.chunks(numbers.len()).zip(to.chunks_mut(numbers.len())) {
                    let numbers = numbers.get_mut(..from.len()).unwrap_or(&mut []);
                    numbers.iter_mut().zip(from).for_each(|(number, from)| *number = odd(*from));
                    Self::store(numbers, to);
                }
            }
        }
    )*};
}

halves!(f16 = Half::F16, bf16 = Half::Bf16);
