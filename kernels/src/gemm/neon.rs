//! Vectors of NEON.

#![allow(unsafe_code)] // loads and stores: the callers in `tile.rs` vouch for them

use super::vectors::{Plain, Vector};
use std::arch::aarch64::*;

/// Implements [`Vector`] by two registers of NEON, which each such processor has.
macro_rules! pairs {
    ($($(#[$doc:meta])* $name:ident($register:ty): $half:literal and $count:literal of $of:ty;
        $dup:ident, $load:ident, $store:ident, $mul_add:ident, $add:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(super) struct $name([$register; 2]);

        // SAFETY, of all blocks: see `Vector`.
        impl Vector for $name {
            type Of = $of;
            type One = Plain<$of, 1>;
            const COUNT: usize = $count;

            #[inline(always)]
            unsafe fn zero() -> Self {
                $name(unsafe { [$dup(0.0); 2] })
            }
            #[inline(always)]
            unsafe fn splat(from: *const $of) -> Self {
                $name(unsafe { [$dup(*from); 2] })
            }
            #[inline(always)]
            unsafe fn load(from: *const $of) -> Self {
                $name(unsafe { [$load(from), $load(from.add($half))] })
            }
            #[inline(always)]
            unsafe fn load_some(from: *const $of, count: usize) -> Self {
                unsafe { Self::load(Plain::<$of, $count>::load_some(from, count).0.as_ptr()) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $of) {
                unsafe {
                    $store(to, self.0[0]);
                    $store(to.add($half), self.0[1]);
                }
            }
            #[inline(always)]
            unsafe fn store_some(self, to: *mut $of, count: usize) {
                unsafe {
                    let mut all = Plain::<$of, $count>::zero();
                    self.store(all.0.as_mut_ptr());
                    all.store_some(to, count);
                }
            }
            #[inline(always)]
            unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
                $name(unsafe { [$mul_add(plus.0[0], self.0[0], by.0[0]), $mul_add(plus.0[1], self.0[1], by.0[1])] })
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                $name(unsafe { [$add(self.0[0], other.0[0]), $add(self.0[1], other.0[1])] })
            }
        }
    )*};
}

pairs! {
    /// 8 f32.
    F32x8(float32x4_t): 4 and 8 of f32; vdupq_n_f32, vld1q_f32, vst1q_f32, vfmaq_f32, vaddq_f32;
    /// 4 f64.
    F64x4(float64x2_t): 2 and 4 of f64; vdupq_n_f64, vld1q_f64, vst1q_f64, vfmaq_f64, vaddq_f64;
}
