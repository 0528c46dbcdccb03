//! Activations of sums that are still in registers: each as [`Activation`](super::Activation) says.

#![allow(unsafe_code)] // vectors that the processor must have

use super::tile::Lanes;
use crate::functions::sixth;

/// A function of sums.
///
/// # Safety
/// The processor must have what they need.
pub(super) trait After<V: Lanes> {
    unsafe fn of(&self, sum: V) -> V;
}

pub(super) struct Relu;

impl<V: Lanes> After<V> for Relu {
    #[inline(always)]
    unsafe fn of(&self, sum: V) -> V {
        // SAFETY: the caller's.
        unsafe { sum.relu() }
    }
}

pub(super) struct Within<V> {
    low: V,
    high: V,
}

impl<V: Lanes> Within<V> {
    /// # Safety
    /// See [`After`].
    #[inline(always)]
    pub(super) unsafe fn new(low: f32, high: f32) -> Within<V> {
        // SAFETY: the caller's.
        unsafe { Within { low: V::splat(&low), high: V::splat(&high) } }
    }
}

impl<V: Lanes> After<V> for Within<V> {
    #[inline(always)]
    unsafe fn of(&self, sum: V) -> V {
        // SAFETY: the caller's.
        unsafe { sum.larger(self.low).smaller(self.high) }
    }
}

pub(super) struct HardSwish<V> {
    three: V,
    within: Within<V>,
    sixth: [V; 2],
}

impl<V: Lanes> HardSwish<V> {
    /// # Safety
    /// See [`After`].
    #[inline(always)]
    pub(super) unsafe fn new() -> HardSwish<V> {
        let (high, low) = sixth::<f32>();
        // SAFETY: the caller's.
        unsafe {
            HardSwish { three: V::splat(&3.0), within: Within::new(0.0, 6.0), sixth: [V::splat(&high), V::splat(&low)] }
        }
    }
}

impl<V: Lanes> After<V> for HardSwish<V> {
    #[inline(always)]
    unsafe fn of(&self, x: V) -> V {
        // SAFETY: the caller's.
        unsafe {
            let (sum, [high, low]) = (self.within.of(x.add(self.three)), self.sixth);
            x.mul(sum.mul_add(high, sum.mul(low)))
        }
    }
}
