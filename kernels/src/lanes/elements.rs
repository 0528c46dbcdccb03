//! Elements as tensors hold them, and the numbers that kernels compute with.

#[cfg(target_arch = "x86_64")]
use super::blocks;
use super::reductions::Extreme;
use super::reductions::Order;
use super::sums::{Exact, Factors, Pair, Scaled, Total, Whole, Wrapped};
use crate::functions::Real;
use crate::half::Half;
use crate::number::{Float, Int};
use bytemuck::Pod;
use half::{bf16, f16};
use std::fmt::Debug;

/// What reductions need of a number. Floats round each operation, integers wrap. Elements of other types are read as one of
/// these ([`Stored`]): the fewer numbers, the less code.
pub trait Number: Stored<Self> + Stored<Self::Precise> + PartialOrd + Debug {
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
    /// The integer with these bits flipped.
    fn flipped(self, bits: Self) -> Self;
    fn is_nan(self) -> bool;
    /// A number that has the order of this one, if there are so few: that of NaN is the greatest, and zeros have one.
    fn rank(self) -> Option<i32>;
}

macro_rules! floats {
    ($($type:ident by $total:ty, $rank:expr;)*) => {$(
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
            fn flipped(self, _: Self) -> Self {
                self
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                Float::is_nan(self)
            }
            #[inline(always)]
            fn rank(self) -> Option<i32> {
                $rank(self)
            }
        }
    )*};
}

floats! {
    f32 by f64, rank_of;
    f64 by Pair, |_| None;
}

#[inline(always)]
fn rank_of(x: f32) -> Option<i32> {
    let bits = (if x == 0.0 { 0.0 } else { x }).to_bits().cast_signed();
    // Those below 0 are in the reverse order.
    let rank = bits ^ (bits >> 31).cast_unsigned().wrapping_shr(1).cast_signed();
    Some(if x.is_nan() { i32::MAX } else { rank })
}

/// `f32` or `f64`.
pub trait Floating: Number<Precise = f64> + Real {
    /// The fast way to softmax of lanes of `len` elements, or its logarithm, where there is one.
    #[inline(always)]
    fn shares<const LOG: bool>(_len: usize) -> Option<Shares<Self>> {
        None
    }
    /// The fast way to the moments of lanes of `len` elements, where there is one.
    #[inline(always)]
    fn moments(_len: usize) -> Option<MomentsOf<Self>> {
        None
    }
}

/// Computes the softmax of lanes of a length, in place if no input is given. The logarithm of softmax is never in place.
type Shares<T> = fn(usize, Option<&[T]>, &mut [T]);

/// The mean of a lane (0 unless it is asked for), the part of it that rounding took, and the variance from both.
pub(super) type Moments<T> = (T, f64, f64);

/// Writes the moments of lanes of a length, with their means if that is asked for.
type MomentsOf<T> = fn(bool, usize, &[T], &mut [Moments<T>]);

impl Floating for f64 {}

impl Floating for f32 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn shares<const LOG: bool>(len: usize) -> Option<Shares<Self>> {
        blocks::takes_shares(len).then_some(blocks::shares::<LOG>)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn moments(len: usize) -> Option<MomentsOf<Self>> {
        blocks::takes_moments(len).then_some(blocks::moments)
    }
}

macro_rules! ints {
    ($($type:ident),*) => {$(
        impl Number for $type {
            type Precise = Self;
            type Sum = Self;
            type Exact = Whole;
            type Product = Wrapped<Self>;

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
            fn flipped(self, bits: Self) -> Self {
                self ^ bits
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn rank(self) -> Option<i32> {
                (size_of::<Self>() <= size_of::<i32>()).then_some(self as i32)
            }
        }
    )*};
}

ints!(u8, i16, i32, i64, u32, u64);

/// An element that is computed with as an `N`.
pub trait Stored<N>: Pod + Send + Sync {
    /// It has the same bits.
    const DIRECT: bool;

    /// Converts as many elements as both have.
    fn load(from: &[Self], to: &mut [N]);
    /// As [`Stored::load`], to the nearest elements.
    fn store(from: &[N], to: &mut [Self]);
}

/// Defines elements that are converted one by one, and back.
macro_rules! stored {
    ($($type:ident as $number:ident, $direct:literal, by $nearest:expr;)*) => {$(
        impl Stored<$number> for $type {
            const DIRECT: bool = $direct;

            #[inline(always)]
            fn load(from: &[Self], to: &mut [$number]) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as $number);
            }
            #[inline(always)]
            fn store(from: &[$number], to: &mut [Self]) {
                let nearest: fn($number) -> $type = $nearest;
                to.iter_mut().zip(from).for_each(|(to, from)| *to = nearest(*from));
            }
        }
    )*};
}

stored! {
    f32 as f32, true, by |x| x;
    f64 as f64, true, by |x| x;
    i32 as i32, true, by |x| x;
    i64 as i64, true, by |x| x;
    u32 as u32, true, by |x| x;
    u64 as u64, true, by |x| x;
    u8 as u8, true, by |x| x;
    i16 as i16, true, by |x| x;
    // The same bits: sums and products wrap, and extremes flip the sign.
    i8 as u8, true, by |x| x as i8;
    u16 as i16, true, by |x| x as u16;
    u32 as i32, true, by |x| x as u32;
    u64 as i64, true, by |x| x as u64;
    f32 as f64, false, by |x| x as f32;
    f64 as f32, false, by |x| x.into();
    i32 as f64, false, by |x| x as i32;
    i64 as f64, false, by |x| x as i64;
    u32 as f64, false, by |x| x as u32;
    u64 as f64, false, by |x| x as u64;
}

/// No list.
impl Stored<()> for () {
    const DIRECT: bool = false;

    fn load(_: &[()], _: &mut [()]) {}
    fn store(_: &[()], _: &mut [()]) {}
}

/// Elements with an order: those of which there is a greatest and a least.
pub trait Ordered<N: Number>: Stored<N> {
    type Extreme<const LEAST: bool>: Order<N>;

    fn extreme<const LEAST: bool>() -> Self::Extreme<LEAST>;
}

/// Integers, with the bits that give them the order of their number.
macro_rules! ordered {
    ($($type:ident as $number:ident by $flip:expr;)*) => {$(
        impl Ordered<$number> for $type {
            type Extreme<const LEAST: bool> = Extreme<$number, false>;

            fn extreme<const LEAST: bool>() -> Extreme<$number, false> {
                Extreme { flip: if LEAST { !$flip } else { $flip } }
            }
        }
    )*};
}

ordered! {
    i8 as u8 by 0x80;
    u8 as u8 by 0;
    i16 as i16 by 0;
    u16 as i16 by i16::MIN;
    i32 as i32 by 0;
    u32 as i32 by i32::MIN;
    i64 as i64 by 0;
    u64 as i64 by i64::MIN;
}

macro_rules! ordered_floats {
    ($($type:ident as $number:ident),*) => {$(
        impl Ordered<$number> for $type {
            type Extreme<const LEAST: bool> = Extreme<$number, LEAST>;

            fn extreme<const LEAST: bool>() -> Extreme<$number, LEAST> {
                Extreme { flip: 0.0 }
            }
        }
    )*};
}

ordered_floats!(f32 as f32, f64 as f64, f16 as f32, bf16 as f32);

macro_rules! halves {
    ($($type:ident = $half:expr),*) => {$(
        impl Stored<f32> for $type {
            const DIRECT: bool = false;

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
            const DIRECT: bool = false;

            #[inline(always)]
            fn load(from: &[Self], to: &mut [f64]) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64());
            }
            #[inline(always)]
            fn store(from: &[f64], to: &mut [Self]) {
                let mut numbers = [0f32; 64];
                for (from, to) in from.chunks(numbers.len()).zip(to.chunks_mut(numbers.len())) {
                    let numbers = numbers.get_mut(..from.len()).unwrap_or(&mut []);
                    numbers.iter_mut().zip(from).for_each(|(number, from)| *number = $half.odd(*from));
                    Self::store(numbers, to);
                }
            }
        }
    )*};
}

halves!(f16 = Half::F16, bf16 = Half::Bf16);

/// A float32 that is a number of bfloat16, if it is `BRAIN`, or of float16: what is stored is rounded to these.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(transparent)]
pub struct Halved<const BRAIN: bool>(f32);

impl<const BRAIN: bool> Halved<BRAIN> {
    const HALF: Half = if BRAIN { Half::Bf16 } else { Half::F16 };
}

impl<const BRAIN: bool> Stored<f32> for Halved<BRAIN> {
    const DIRECT: bool = false;

    #[inline(always)]
    fn load(from: &[Self], to: &mut [f32]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.0);
    }
    #[inline(always)]
    fn store(from: &[f32], to: &mut [Self]) {
        to.iter_mut().zip(from).for_each(|(to, from)| to.0 = *from);
        Self::HALF.round(bytemuck::cast_slice_mut(to));
    }
}

impl<const BRAIN: bool> Stored<f64> for Halved<BRAIN> {
    const DIRECT: bool = false;

    #[inline(always)]
    fn load(from: &[Self], to: &mut [f64]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.0.into());
    }
    #[inline(always)]
    fn store(from: &[f64], to: &mut [Self]) {
        to.iter_mut().zip(from).for_each(|(to, from)| to.0 = Self::HALF.odd(*from));
        Self::HALF.round(bytemuck::cast_slice_mut(to));
    }
}
