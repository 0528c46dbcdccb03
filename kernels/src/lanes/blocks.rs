//! Lanes of f32 by AVX-512, and softmax by AVX2 too ([`super::eights`]): what is known of a lane stays in registers. The loops
//! of other processors give the same bits.

#![allow(unsafe_code)] // loads, stores and processor features

use super::eights;
use crate::functions::exp_of_32;
use std::arch::x86_64::*;
use std::ops::Range;

/// The lanes that these functions take: shorter ones are faster together, longer ones have to be stopped.
const LENGTHS: Range<usize> = 32..1 << 12;

/// Numbers that are computed at a time, and places where they are added up: number i at the place i mod 32.
pub(super) const BLOCK: usize = 32;
type Block = [__m512; 2];
type Doubles = [__m512d; 4];

/// A block without gaps, of as many bits.
const ALL: u32 = u32::MAX;

/// The bits of what is left of `len` numbers after their blocks.
fn rest_of(len: usize) -> u32 {
    (1 << (len % BLOCK)) - 1
}

/// Whether the processor is of a level, and lanes are of a length for these functions.
#[inline(always)]
pub(super) fn takes(len: usize, level: u8) -> bool {
    LENGTHS.contains(&len) && crate::cpu::level() >= level
}

/// `e^x / sum of e^lane` of lanes of `len` numbers, or of those in `to`. The length is one that [`takes`] takes, at level 3.
#[inline(always)]
pub(super) fn shares(len: usize, from: Option<&[f32]>, to: &mut [f32]) {
    let count = to.len().min(from.map_or(usize::MAX, <[f32]>::len)) / len;
    let to = to.as_mut_ptr();
    let from = from.map_or(to.cast_const(), <[f32]>::as_ptr);
    // SAFETY: both have as many lanes, or are the same; `takes` asked the processor.
    unsafe {
        match crate::cpu::level() {
            4.. => shares_of(from, to, len, count),
            _ => eights::shares_of(from, to, len, count),
        }
    }
}

/// # Safety
/// `count` lanes of `len` numbers can be read from `from` and written to `to`: the same ones, or others. The processor has
/// these features.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
unsafe fn shares_of(from: *const f32, to: *mut f32, len: usize, count: usize) {
    let (whole, rest) = (len - len % BLOCK, rest_of(len));
    let least = _mm512_set1_ps(f32::NEG_INFINITY);
    // SAFETY: the caller's. What has no bit isn't read or written.
    unsafe {
        for lane in 0..count {
            let (from, to) = (from.add(lane * len), to.add(lane * len));
            let mut peaks = load(from.add(whole), rest, least);
            for at in (0..whole).step_by(BLOCK) {
                peaks = greater(peaks, load(from.add(at), ALL, least));
            }
            let peak = _mm512_set1_ps(_mm512_reduce_max_ps(_mm512_max_ps(peaks[0], peaks[1])));

            let mut sums = none();
            for at in (0..whole).step_by(BLOCK) {
                let block = exp_of_32(less(load(from.add(at), ALL, peak), peak));
                store(to.add(at), ALL, block);
                sums = added(sums, ALL, doubles(block));
            }
            if rest > 0 {
                let block = exp_of_32(less(load(from.add(whole), rest, peak), peak));
                store(to.add(whole), rest, block);
                sums = added(sums, rest, doubles(block));
            }

            let scale = _mm512_set1_ps((1.0 / total(sums)) as f32);
            for at in (0..whole).step_by(BLOCK) {
                store(to.add(at), ALL, times(load(to.add(at), ALL, scale), scale));
            }
            if rest > 0 {
                store(to.add(whole), rest, times(load(to.add(whole), rest, scale), scale));
            }
        }
    }
}

/// The mean of a lane, what rounding took from it, and the variance: the mean of squared differences from both. The mean
/// counts as 0 unless that is to `center`. The length is one that [`takes`] takes, at level 4.
#[inline(always)]
pub(super) fn moments(center: bool, lane: &[f32]) -> (f32, f64, f64) {
    // SAFETY: `takes` asked the processor.
    unsafe { moments_of(center, lane) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
fn moments_of(center: bool, lane: &[f32]) -> (f32, f64, f64) {
    let (len, from) = (lane.len(), lane.as_ptr());
    let (whole, rest) = (len - len % BLOCK, rest_of(len));
    let (mut mean, mut lost) = (0.0, 0.0);
    // SAFETY: what has no bit isn't read.
    unsafe {
        let zero = _mm512_setzero_ps();
        if center {
            let mut sums = none();
            for at in (0..whole).step_by(BLOCK) {
                sums = added(sums, ALL, doubles(load(from.add(at), ALL, zero)));
            }
            if rest > 0 {
                sums = added(sums, rest, doubles(load(from.add(whole), rest, zero)));
            }
            let precise = total(sums) / len as f64;
            mean = precise as f32;
            lost = precise - f64::from(mean);
        }
        let of = [_mm512_set1_pd(mean.into()), _mm512_set1_pd(lost)];
        let mut sums = none();
        for at in (0..whole).step_by(BLOCK) {
            sums = added(sums, ALL, squared_differences(doubles(load(from.add(at), ALL, zero)), of));
        }
        if rest > 0 {
            sums = added(sums, rest, squared_differences(doubles(load(from.add(whole), rest, zero)), of));
        }
        (mean, lost, total(sums) / len as f64)
    }
}

/// The numbers that have a bit, else those of `other`.
///
/// # Safety
/// They can be read.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn load(from: *const f32, bits: u32, other: __m512) -> Block {
    // SAFETY: the caller's.
    unsafe {
        [
            _mm512_mask_loadu_ps(other, bits as u16, from),
            _mm512_mask_loadu_ps(other, (bits >> 16) as u16, from.wrapping_add(16)),
        ]
    }
}

/// The numbers that have a bit.
///
/// # Safety
/// They can be written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn store(to: *mut f32, bits: u32, block: Block) {
    // SAFETY: the caller's.
    unsafe {
        _mm512_mask_storeu_ps(to, bits as u16, block[0]);
        _mm512_mask_storeu_ps(to.wrapping_add(16), (bits >> 16) as u16, block[1]);
    }
}

/// Defines steps that are compiled for some features.
macro_rules! steps {
    ($features:literal; $($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $body:expr;)*) => {$(
        $(#[$doc])*
        #[target_feature(enable = $features)]
        #[inline]
        fn $name($($arg: $type),*) -> $result {
            $body
        }
    )*};
}
pub(super) use steps;

steps! {
    "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma";
    /// The greater ones; those of `peaks` where there is NaN, which shows in the sum.
    fn greater(peaks: Block, block: Block) -> Block =
        [_mm512_max_ps(block[0], peaks[0]), _mm512_max_ps(block[1], peaks[1])];
    fn less(block: Block, by: __m512) -> Block = [_mm512_sub_ps(block[0], by), _mm512_sub_ps(block[1], by)];
    fn times(block: Block, by: __m512) -> Block = [_mm512_mul_ps(block[0], by), _mm512_mul_ps(block[1], by)];
    fn doubles(block: Block) -> Doubles = [
        _mm512_cvtps_pd(_mm512_castps512_ps256(block[0])),
        _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(block[0])),
        _mm512_cvtps_pd(_mm512_castps512_ps256(block[1])),
        _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(block[1])),
    ];
    fn squared_differences(x: Doubles, from: [__m512d; 2]) -> Doubles = [
        squared(_mm512_sub_pd(_mm512_sub_pd(x[0], from[0]), from[1])),
        squared(_mm512_sub_pd(_mm512_sub_pd(x[1], from[0]), from[1])),
        squared(_mm512_sub_pd(_mm512_sub_pd(x[2], from[0]), from[1])),
        squared(_mm512_sub_pd(_mm512_sub_pd(x[3], from[0]), from[1])),
    ];
    fn squared(x: __m512d) -> __m512d = _mm512_mul_pd(x, x);
    /// The sums of nothing: also the sign of a zero is that of what is added.
    fn none() -> Doubles = [_mm512_set1_pd(-0.0); 4];
    /// Sums with the numbers that have a bit.
    fn added(sums: Doubles, bits: u32, x: Doubles) -> Doubles = [
        _mm512_mask_add_pd(sums[0], bits as u8, sums[0], x[0]),
        _mm512_mask_add_pd(sums[1], (bits >> 8) as u8, sums[1], x[1]),
        _mm512_mask_add_pd(sums[2], (bits >> 16) as u8, sums[2], x[2]),
        _mm512_mask_add_pd(sums[3], (bits >> 24) as u8, sums[3], x[3]),
    ];
    /// The sum of all, as a tree: each with that a half further on.
    fn total(sums: Doubles) -> f64 = {
        let eight = _mm512_add_pd(_mm512_add_pd(sums[0], sums[2]), _mm512_add_pd(sums[1], sums[3]));
        let four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd::<1>(eight));
        let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
        _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))
    };
}
