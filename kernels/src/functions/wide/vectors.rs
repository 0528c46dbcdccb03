//! Vectors by intrinsics.

#![allow(unsafe_code)] // loads, stores and processor features: who calls in vouches for them

use super::{Curve, Wide};

/// Twice as many: while one waits for what it needs next, the other goes on.
#[derive(Clone, Copy)]
struct Two<V>(V, V);

/// Implements functions of [`Two`] by those of both.
macro_rules! both {
    ($($name:ident($($with:ident),*);)*) => {$(
        #[inline(always)]
        fn $name(self $(, $with: Self)*) -> Self {
            Two(self.0.$name($($with.0),*), self.1.$name($($with.1),*))
        }
    )*};
}

impl<V: Wide> Wide for Two<V> {
    both! {
        plus(other);
        minus(other);
        times(other);
        over(divisor);
        mul_add(by, plus);
        negated();
        abs();
        copysign(sign);
        least(bound);
        greatest(bound);
        below(bound, then, or);
        raised(by);
    }

    #[inline(always)]
    fn all(number: f32) -> Self {
        Two(V::all(number), V::all(number))
    }
    #[inline(always)]
    fn within(self, bound: f32) -> bool {
        self.0.within(bound) & self.1.within(bound)
    }
    #[inline(always)]
    fn lookup(self, table: &[f32; 8]) -> Self {
        Two(self.0.lookup(table), self.1.lookup(table))
    }
    #[inline(always)]
    fn without_last(self, bits: u32) -> Self {
        Two(self.0.without_last(bits), self.1.without_last(bits))
    }
}

/// # Safety
/// As [`super::at_each`]; the processor has the features for the vectors, which have `N` numbers.
#[inline(always)]
unsafe fn in_vectors<C: Curve, V: Vector, const N: usize>(curve: C, from: *const f32, to: *mut f32, count: usize) {
    let rest = count % N;
    // SAFETY: the caller's.
    unsafe {
        for at in (0..count - rest).step_by(N) {
            curve.singles(V::load(from.add(at))).store(to.add(at));
        }
        if rest > 0 {
            let (mut filled, at) = ([0.0; N], count - rest);
            from.add(at).copy_to(filled.as_mut_ptr(), rest);
            curve.singles(V::load(filled.as_ptr())).store(filled.as_mut_ptr());
            filled.as_ptr().copy_to(to.add(at), rest);
        }
    }
}

/// A vector that is in memory.
///
/// # Safety
/// Its numbers can be read or written there, and the processor has the features for it.
trait Vector: Wide {
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
}

/// Implements [`Vector`] by intrinsics.
macro_rules! vectors {
    ($($name:ident: $load:ident, $store:ident, $len:literal;)*) => {$(
        // SAFETY, of all blocks: see `Vector`.
        impl Vector for Two<$name> {
            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                unsafe { Two($name($load(from)), $name($load(from.add($len)))) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                unsafe {
                    $store(to, self.0.0);
                    $store(to.add($len), self.1.0);
                }
            }
        }
    )*};
}

/// Implements [`Wide`] by intrinsics.
macro_rules! wide {
    ($name:ident: $all:ident, $plus:ident, $minus:ident, $times:ident, $over:ident, $mul_add:ident, $min:ident, $max:ident,
     $of_bits:ident, $bits:ident, $and:ident, $and_not:ident, $or:ident, $add:ident, $left:ident;
     $right:expr, $below:expr, $within:expr, $lookup:expr) => {
        // SAFETY, of all blocks: there is a vector only where the processor has the features for it.
        impl Wide for $name {
            #[inline(always)]
            fn all(number: f32) -> Self {
                $name(unsafe { $all(number) })
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $name(unsafe { $plus(self.0, other.0) })
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                $name(unsafe { $minus(self.0, other.0) })
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                $name(unsafe { $times(self.0, other.0) })
            }
            #[inline(always)]
            fn over(self, divisor: Self) -> Self {
                $name(unsafe { $over(self.0, divisor.0) })
            }
            #[inline(always)]
            fn mul_add(self, by: Self, plus: Self) -> Self {
                $name(unsafe { $mul_add(self.0, by.0, plus.0) })
            }
            #[inline(always)]
            fn negated(self) -> Self {
                // What compilers make part of the next product.
                $name(unsafe { $minus($all(-0.0), self.0) })
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $name(unsafe { $of_bits($and_not($bits($all(-0.0)), $bits(self.0))) })
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                unsafe {
                    let sign = $and($bits($all(-0.0)), $bits(sign.0));
                    $name($of_bits($or($bits(self.abs().0), sign)))
                }
            }
            #[inline(always)]
            fn least(self, bound: Self) -> Self {
                // The second one, if one is NaN.
                $name(unsafe { $min(bound.0, self.0) })
            }
            #[inline(always)]
            fn greatest(self, bound: Self) -> Self {
                $name(unsafe { $max(bound.0, self.0) })
            }
            #[inline(always)]
            fn below(self, bound: Self, then: Self, or: Self) -> Self {
                $name(unsafe { $below(self.0, bound.0, then.0, or.0) })
            }
            #[inline(always)]
            fn within(self, bound: f32) -> bool {
                unsafe { $within(self.abs().0, $all(bound)) }
            }
            #[inline(always)]
            fn lookup(self, table: &[f32; 8]) -> Self {
                $name(unsafe { $lookup(self.0, table.as_ptr()) })
            }
            #[inline(always)]
            fn without_last(self, bits: u32) -> Self {
                $name(unsafe { $of_bits($right($bits(self.0), bits)) })
            }
            #[inline(always)]
            fn raised(self, by: Self) -> Self {
                $name(unsafe { $of_bits($add($bits(self.0), $left::<20>($bits(by.0)))) })
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::{Curve, Two, Vector, Wide, in_vectors};
    use crate::functions::Exp;
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::super::at_each`]; the processor has these features.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
    #[inline]
    pub(in super::super) unsafe fn v4<C: Curve>(curve: C, from: *const f32, to: *mut f32, count: usize) {
        // SAFETY: the caller's.
        unsafe { in_vectors::<C, Two<F32x16>, 32>(curve, from, to, count) }
    }

    /// # Safety
    /// As for [`v4`].
    #[target_feature(enable = "avx2,bmi2,fma")]
    #[inline]
    pub(in super::super) unsafe fn v3<C: Curve>(curve: C, from: *const f32, to: *mut f32, count: usize) {
        // SAFETY: the caller's.
        unsafe { in_vectors::<C, Two<F32x8>, 16>(curve, from, to, count) }
    }

    vectors! {
        F32x16: _mm512_loadu_ps, _mm512_storeu_ps, 16;
        F32x8: _mm256_loadu_ps, _mm256_storeu_ps, 8;
    }

    /// e^x of 32 numbers.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
    #[inline]
    pub(crate) fn exp_of_32(numbers: [__m512; 2]) -> [__m512; 2] {
        let [low, high] = numbers;
        let Two(F32x16(low), F32x16(high)) = Exp.singles(Two(F32x16(low), F32x16(high)));
        [low, high]
    }

    /// e^x of 16 numbers.
    #[target_feature(enable = "avx2,bmi2,fma")]
    #[inline]
    pub(crate) fn exp_of_16(numbers: [__m256; 2]) -> [__m256; 2] {
        let [low, high] = numbers;
        let Two(F32x8(low), F32x8(high)) = Exp.singles(Two(F32x8(low), F32x8(high)));
        [low, high]
    }

    /// Made by [`v4`] and [`exp_of_32`] alone.
    #[derive(Clone, Copy)]
    struct F32x16(__m512);

    /// Made by [`v3`] and [`exp_of_16`] alone.
    #[derive(Clone, Copy)]
    struct F32x8(__m256);

    wide! {
        F32x16: _mm512_set1_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_div_ps, _mm512_fmadd_ps, _mm512_min_ps, _mm512_max_ps,
        _mm512_castsi512_ps, _mm512_castps_si512, _mm512_and_si512, _mm512_andnot_si512, _mm512_or_si512, _mm512_add_epi32, _mm512_slli_epi32;
        |x, bits: u32| _mm512_srl_epi32(x, _mm_cvtsi32_si128(bits as i32)),
        |x, bound, then, or| _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, bound), or, then),
        |x, bound| _mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, bound) == u16::MAX,
        |at, table| {
            // The fourth bit doesn't matter to what stands there twice.
            let table = _mm512_broadcast_f32x8(_mm256_loadu_ps(table));
            _mm512_permutexvar_ps(_mm512_castps_si512(at), table)
        }
    }

    wide! {
        F32x8: _mm256_set1_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_div_ps, _mm256_fmadd_ps, _mm256_min_ps, _mm256_max_ps,
        _mm256_castsi256_ps, _mm256_castps_si256, _mm256_and_si256, _mm256_andnot_si256, _mm256_or_si256, _mm256_add_epi32, _mm256_slli_epi32;
        |x, bits: u32| _mm256_srl_epi32(x, _mm_cvtsi32_si128(bits as i32)),
        |x, bound, then, or| _mm256_blendv_ps(or, then, _mm256_cmp_ps::<_CMP_LT_OQ>(x, bound)),
        |x, bound| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(x, bound)) == 0xff,
        |at, table| _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), _mm256_castps_si256(at))
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) mod neon {
    use super::{Curve, Two, Vector, Wide, in_vectors};
    use std::arch::aarch64::*;

    /// # Safety
    /// As [`super::super::at_each`].
    pub(in super::super) unsafe fn all<C: Curve>(curve: C, from: *const f32, to: *mut f32, count: usize) {
        // SAFETY: the caller's; each such processor has NEON.
        unsafe { in_vectors::<C, Two<F32x4>, 8>(curve, from, to, count) }
    }

    vectors! {
        F32x4: vld1q_f32, vst1q_f32, 4;
    }

    #[derive(Clone, Copy)]
    struct F32x4(float32x4_t);

    wide! {
        F32x4: vdupq_n_f32, vaddq_f32, vsubq_f32, vmulq_f32, vdivq_f32, mul_add, vminq_f32, vmaxq_f32,
        vreinterpretq_f32_u32, vreinterpretq_u32_f32, vandq_u32, and_not, vorrq_u32, vaddq_u32, vshlq_n_u32;
        |x, bits: u32| vshlq_u32(x, vdupq_n_s32(-(bits as i32))),
        |x, bound, then, or| vbslq_f32(vcltq_f32(x, bound), then, or),
        |x, bound| vminvq_u32(vcleq_f32(x, bound)) != 0,
        |at, table: *const f32| {
            // The four bytes of each entry.
            let place = vandq_u32(vreinterpretq_u32_f32(at), vdupq_n_u32(7));
            let bytes = vaddq_u32(vmulq_n_u32(place, 0x0404_0404), vdupq_n_u32(0x0302_0100));
            let table = vld1q_u8_x2(table.cast());
            vreinterpretq_f32_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(bytes)))
        }
    }

    #[inline(always)]
    unsafe fn mul_add(x: float32x4_t, by: float32x4_t, plus: float32x4_t) -> float32x4_t {
        // SAFETY: each such processor has NEON.
        unsafe { vfmaq_f32(plus, x, by) }
    }

    #[inline(always)]
    unsafe fn and_not(not: uint32x4_t, x: uint32x4_t) -> uint32x4_t {
        // SAFETY: each such processor has NEON.
        unsafe { vbicq_u32(x, not) }
    }
}
