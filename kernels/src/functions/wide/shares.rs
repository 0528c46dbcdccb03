//! Softmax of lanes by AVX-512: what is known of a lane stays in registers.

#![allow(unsafe_code)] // loads, stores and processor features: who calls in vouches for them

use super::Curve;
use super::vectors::Two;
use super::vectors::x86::F32x16;
use crate::functions::Exp;
use std::arch::x86_64::*;

/// Numbers that are computed at a time, and the places where they are added up: number i at the place i mod 32.
const BLOCK: usize = 32;

/// As many numbers.
type Block = [__m512; 2];

/// # Safety
/// `count` lanes of `len` numbers can be read from `from` and written to `to`: the same ones, or others. The processor has
/// these features.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
pub(super) unsafe fn of_lanes(from: *const f32, to: *mut f32, len: usize, count: usize) {
    let whole = len - len % BLOCK;
    // A bit for each number after the last block.
    let rest = (1 << (len % BLOCK)) - 1;
    let least = _mm512_set1_ps(f32::NEG_INFINITY);
    // SAFETY: the caller's. What has no bit isn't read or written.
    unsafe {
        for lane in 0..count {
            let (from, to) = (from.add(lane * len), to.add(lane * len));
            let mut peaks = load_some(rest, from.add(whole), least);
            for at in (0..whole).step_by(BLOCK) {
                peaks = greater(peaks, load(from.add(at)));
            }
            let peak = _mm512_set1_ps(_mm512_reduce_max_ps(_mm512_max_ps(peaks[0], peaks[1])));

            let mut sums = [_mm512_setzero_pd(); 4];
            for at in (0..whole).step_by(BLOCK) {
                let block = exponentials(load(from.add(at)), peak);
                store(to.add(at), block);
                sums = added(sums, block);
            }
            if rest > 0 {
                let block = only(rest, exponentials(load_some(rest, from.add(whole), peak), peak));
                store_some(rest, to.add(whole), block);
                sums = added(sums, block);
            }

            let scale = _mm512_set1_ps((1.0 / total(sums)) as f32);
            for at in (0..whole).step_by(BLOCK) {
                store(to.add(at), times(load(to.add(at)), scale));
            }
            if rest > 0 {
                store_some(rest, to.add(whole), times(load_some(rest, to.add(whole), scale), scale));
            }
        }
    }
}

/// Defines steps that are compiled for the features of [`of_lanes`].
macro_rules! steps {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $body:expr;)*) => {$(
        $(#[$doc])*
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
        #[inline]
        fn $name($($arg: $type),*) -> $result {
            $body
        }
    )*};
}

/// As [`steps`], of memory.
macro_rules! accesses {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The numbers can be read or written.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
        #[inline]
        unsafe fn $name($($arg: $type),*) -> $result {
            // SAFETY: the caller's.
            unsafe { $body }
        }
    )*};
}

accesses! {
    /// A block.
    fn load(from: *const f32) -> Block = [_mm512_loadu_ps(from), _mm512_loadu_ps(from.add(16))];
    /// The numbers that have a bit, else those of `other`.
    fn load_some(bits: u32, from: *const f32, other: __m512) -> Block = [
        _mm512_mask_loadu_ps(other, bits as u16, from),
        _mm512_mask_loadu_ps(other, (bits >> 16) as u16, from.wrapping_add(16)),
    ];
    /// A block.
    fn store(to: *mut f32, block: Block) -> () = {
        _mm512_storeu_ps(to, block[0]);
        _mm512_storeu_ps(to.add(16), block[1]);
    };
    /// The numbers that have a bit.
    fn store_some(bits: u32, to: *mut f32, block: Block) -> () = {
        _mm512_mask_storeu_ps(to, bits as u16, block[0]);
        _mm512_mask_storeu_ps(to.wrapping_add(16), (bits >> 16) as u16, block[1]);
    };
}

steps! {
    /// The numbers that have a bit, else 0.
    fn only(bits: u32, block: Block) -> Block =
        [_mm512_maskz_mov_ps(bits as u16, block[0]), _mm512_maskz_mov_ps((bits >> 16) as u16, block[1])];
    /// The greater ones; those of `peaks` where there is NaN, which shows in the sum.
    fn greater(peaks: Block, block: Block) -> Block =
        [_mm512_max_ps(block[0], peaks[0]), _mm512_max_ps(block[1], peaks[1])];
    fn exponentials(block: Block, peak: __m512) -> Block = {
        let low = F32x16(_mm512_sub_ps(block[0], peak));
        let Two(F32x16(low), F32x16(high)) = Exp.singles(Two(low, F32x16(_mm512_sub_ps(block[1], peak))));
        [low, high]
    };
    fn added(sums: [__m512d; 4], block: Block) -> [__m512d; 4] = [
        _mm512_add_pd(sums[0], _mm512_cvtps_pd(_mm512_castps512_ps256(block[0]))),
        _mm512_add_pd(sums[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(block[0]))),
        _mm512_add_pd(sums[2], _mm512_cvtps_pd(_mm512_castps512_ps256(block[1]))),
        _mm512_add_pd(sums[3], _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(block[1]))),
    ];
    /// The sum of all, as a tree: each with that a half further on.
    fn total(sums: [__m512d; 4]) -> f64 = {
        let eight = _mm512_add_pd(_mm512_add_pd(sums[0], sums[2]), _mm512_add_pd(sums[1], sums[3]));
        let four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd::<1>(eight));
        let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
        _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))
    };
    fn times(block: Block, scale: __m512) -> Block = [_mm512_mul_ps(block[0], scale), _mm512_mul_ps(block[1], scale)];
}
