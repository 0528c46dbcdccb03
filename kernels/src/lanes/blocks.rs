//! Lanes of f32 by AVX-512, and softmax by AVX2 too ([`super::eights`]): what is known of a lane stays in registers. The loops
//! of other processors give the same bits.

#![allow(unsafe_code)] // loads, stores and processor features

use super::eights;
use super::elements::Moments;
use crate::cpu::fetch;
use crate::functions::{exp_of_32, log};
use std::arch::x86_64::*;
use std::ops::Range;

/// The lanes that these functions take: longer ones have to be stopped, and shorter ones are faster together, but for softmax
/// of those that vectors hold.
const LENGTHS: Range<usize> = BLOCK..1 << 12;

/// Numbers that are computed at a time, and places where they are added up: number i at the place i mod 32.
pub(super) const BLOCK: usize = 32;
type Block = [__m512; 2];
type Doubles = [__m512d; 4];

/// A block without gaps, of as many bits.
const ALL: u32 = u32::MAX;

/// The bits of what is left of `len` numbers after their blocks.
#[inline(always)]
fn rest_of(len: usize) -> u32 {
    (1 << (len % BLOCK)) - 1
}

/// Whether [`shares`] takes lanes of a length.
#[inline(always)]
pub(super) fn takes_shares(len: usize) -> bool {
    match crate::cpu::level() {
        4.. => (1..LENGTHS.end).contains(&len),
        3 => (eights::EIGHT..LENGTHS.end).contains(&len),
        _ => false,
    }
}

/// Whether [`moments`] takes lanes of a length.
#[inline(always)]
pub(super) fn takes_moments(len: usize) -> bool {
    LENGTHS.contains(&len) && crate::cpu::level() >= 4
}

/// `e^x / sum of e^lane` of lanes of `len` numbers, or of those in `to`; or the logarithm of that, never of those in `to`. The
/// length is one that [`takes_shares`] takes.
#[inline(always)]
pub(super) fn shares<const LOG: bool>(len: usize, from: Option<&[f32]>, to: &mut [f32]) {
    let count = to.len().min(from.map_or(usize::MAX, <[f32]>::len)) / len;
    let to = to.as_mut_ptr();
    let from = from.map_or(to.cast_const(), <[f32]>::as_ptr);
    // SAFETY: both have as many lanes, or are the same; `takes_shares` asked the processor.
    unsafe {
        match crate::cpu::level() {
            4.. if len <= BLOCK / 2 => shares_of_few::<LOG, 1>(from, to, len, count),
            4.. if len <= BLOCK => shares_of_few::<LOG, 2>(from, to, len, count),
            4.. => shares_of::<LOG>(from, to, len, count),
            _ if len <= BLOCK / 2 => eights::shares_of_few::<LOG, 2>(from, to, len, count),
            _ if len < BLOCK => eights::shares_of_few::<LOG, 4>(from, to, len, count),
            _ => eights::shares_of::<LOG>(from, to, len, count),
        }
    }
}

/// Lanes of a few vectors, a block at most.
///
/// # Safety
/// As for [`shares_of`], but of as many numbers at most as the vectors have.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
unsafe fn shares_of_few<const LOG: bool, const VECTORS: usize>(
    from: *const f32,
    to: *mut f32,
    len: usize,
    count: usize,
) {
    let (mut peaks, mut ends) = ([0.0; MOST], [0.0; MOST]);
    // What is no bit of the vectors, the compiler leaves out.
    let bits = ALL >> (BLOCK - len) & ALL >> (BLOCK - 16 * VECTORS);
    let (least, nothing) = (_mm512_set1_ps(f32::NEG_INFINITY), _mm512_setzero_ps());
    // Vectors that stay here are read again sooner than parts of them elsewhere.
    let mut shares = [[nothing; VECTORS]; MOST];
    // SAFETY: the caller's. What has no bit isn't read or written.
    unsafe {
        for first in (0..count).step_by(MOST) {
            let (from, to, some) = (from.add(first * len), to.add(first * len), MOST.min(count - first));
            for (lane, (peak, shares)) in peaks.iter_mut().zip(&mut shares).enumerate().take(some) {
                let mut greatest = least;
                for (k, number) in shares.iter_mut().enumerate() {
                    let from = from.wrapping_add(lane * len + 16 * k);
                    *number = _mm512_mask_loadu_ps(least, (bits >> (16 * k)) as u16, from);
                    greatest = _mm512_max_ps(*number, greatest);
                }
                *peak = _mm512_reduce_max_ps(greatest);
                for (k, number) in shares.iter_mut().enumerate() {
                    *number = _mm512_maskz_sub_ps((bits >> (16 * k)) as u16, *number, _mm512_set1_ps(*peak));
                }
            }
            for pair in shares.as_flattened_mut().as_chunks_mut::<2>().0.iter_mut().take((some * VECTORS).div_ceil(2)) {
                *pair = exp_of_32(*pair);
            }
            for (sum, shares) in ends.iter_mut().zip(&shares).take(some) {
                let block = [shares[0], *shares.last().unwrap_or(&nothing)];
                *sum = total(added(none(), bits, doubles(block)));
            }
            make_ends::<LOG>(&mut ends, some);
            for (lane, ((peak, end), shares)) in peaks.iter().zip(&ends).zip(&shares).enumerate().take(some) {
                for (k, share) in shares.iter().enumerate() {
                    let (at, bits) = (lane * len + 16 * k, (bits >> (16 * k)) as u16);
                    let result = if LOG {
                        lowered(_mm512_mask_loadu_ps(nothing, bits, from.wrapping_add(at)), *peak, *end)
                    } else {
                        _mm512_mul_ps(*share, _mm512_set1_ps(*end as f32))
                    };
                    _mm512_mask_storeu_ps(to.wrapping_add(at), bits, result);
                }
            }
        }
    }
}

/// Numbers of lanes that take each step together, so that none waits for its own result, and the most lanes of these. With
/// what is written, and read next, they stay in a cache of 32 KiB.
const TOGETHER: usize = 1 << 11;
pub(super) const MOST: usize = 32;

/// How many lanes of `len` numbers take each step together.
#[inline(always)]
pub(super) fn abreast(len: usize) -> usize {
    (TOGETHER / len).clamp(1, MOST)
}

/// What makes shares from exponentials, or their logarithms from numbers, of the first lanes, whose sums these are.
#[inline(always)]
pub(super) fn make_ends<const LOG: bool>(sums: &mut [f64; MOST], lanes: usize) {
    for sum in sums.get_mut(..lanes).unwrap_or(&mut []) {
        *sum = if LOG { log(*sum) } else { 1.0 / *sum };
    }
}

/// Defines `shares_of` by what is done with a lane.
macro_rules! shares_by_steps {
    ($features:literal) => {
        /// # Safety
        /// `count` lanes of `len` numbers, a block or more, can be read from `from` and written to `to`: the same ones, which
        /// give no logarithms, or others. The processor has these features.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn shares_of<const LOG: bool>(from: *const f32, to: *mut f32, len: usize, count: usize) {
            let (mut peaks, mut ends, most) = ([0.0; MOST], [0.0; MOST], abreast(len));
            // SAFETY: the caller's.
            unsafe {
                for first in (0..count).step_by(most) {
                    let (from, to, some) = (from.add(first * len), to.add(first * len), most.min(count - first));
                    let lanes = || (0..some).map(|lane| lane * len);
                    for (lane, peak) in lanes().zip(&mut peaks) {
                        *peak = peak_of(from.add(lane), len);
                    }
                    for (lane, peak) in lanes().zip(&peaks) {
                        exponentials_of(from.add(lane), to.add(lane), len, *peak);
                    }
                    for (lane, sum) in lanes().zip(&mut ends) {
                        *sum = sum_of(to.add(lane), len);
                    }
                    make_ends::<LOG>(&mut ends, some);
                    for (lane, (peak, end)) in lanes().zip(peaks.iter().zip(&ends)) {
                        if LOG {
                            lower(from.add(lane), to.add(lane), len, *peak, *end);
                        } else {
                            scale_by(to.add(lane), len, *end as f32);
                        }
                    }
                }
            }
        }
    };
}
pub(super) use shares_by_steps;

shares_by_steps!("avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma");

/// # Safety
/// `len` numbers can be read.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn peak_of(from: *const f32, len: usize) -> f32 {
    let (whole, least) = (len - len % BLOCK, _mm512_set1_ps(f32::NEG_INFINITY));
    // SAFETY: the caller's. What has no bit isn't read.
    unsafe {
        let mut peaks = load(from.add(whole), rest_of(len), least);
        for at in (0..whole).step_by(BLOCK) {
            peaks = greater(peaks, load(from.add(at), ALL, least));
        }
        _mm512_reduce_max_ps(_mm512_max_ps(peaks[0], peaks[1]))
    }
}

/// # Safety
/// `len` numbers can be read, and written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn exponentials_of(from: *const f32, to: *mut f32, len: usize, peak: f32) {
    let (whole, rest, peak, ahead) = (len - len % BLOCK, rest_of(len), _mm512_set1_ps(peak), abreast(len) * len);
    // SAFETY: the caller's. What has no bit isn't read or written.
    unsafe {
        for at in (0..whole).step_by(BLOCK) {
            fetch_block(from.wrapping_add(at + ahead));
            store(to.add(at), ALL, exp_of_32(less(load(from.add(at), ALL, peak), peak)));
        }
        if rest > 0 {
            store(to.add(whole), rest, exp_of_32(less(load(from.add(whole), rest, peak), peak)));
        }
    }
}

/// # Safety
/// `len` numbers can be read.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn sum_of(from: *const f32, len: usize) -> f64 {
    let (whole, rest, mut sums) = (len - len % BLOCK, rest_of(len), none());
    // SAFETY: the caller's. What has no bit isn't read.
    unsafe {
        for at in (0..whole).step_by(BLOCK) {
            sums = added(sums, ALL, doubles_at(from.add(at)));
        }
        if rest > 0 {
            sums = added(sums, rest, doubles(load(from.add(whole), rest, _mm512_setzero_ps())));
        }
    }
    total(sums)
}

/// # Safety
/// `len` numbers can be read and written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn scale_by(numbers: *mut f32, len: usize, scale: f32) {
    let (whole, rest, scale) = (len - len % BLOCK, rest_of(len), _mm512_set1_ps(scale));
    // SAFETY: the caller's. What has no bit isn't read or written.
    unsafe {
        for at in (0..whole).step_by(BLOCK) {
            store(numbers.add(at), ALL, times(load(numbers.add(at), ALL, scale), scale));
        }
        if rest > 0 {
            store(numbers.add(whole), rest, times(load(numbers.add(whole), rest, scale), scale));
        }
    }
}

/// Writes x - peak - log, rounded once.
///
/// # Safety
/// `len` numbers can be read, and written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn lower(from: *const f32, to: *mut f32, len: usize, peak: f32, log: f64) {
    let (whole, rest) = (len - len % BLOCK, rest_of(len));
    let lower = |bits, at| {
        // SAFETY: the caller's. What has no bit isn't read or written.
        unsafe {
            let numbers = load(from.add(at), bits, _mm512_setzero_ps());
            store(to.add(at), bits, [lowered(numbers[0], peak, log), lowered(numbers[1], peak, log)]);
        }
    };
    for at in (0..whole).step_by(BLOCK) {
        lower(ALL, at);
    }
    if rest > 0 {
        lower(rest, whole);
    }
}

/// The moments of each lane of `len` numbers. The length is one that [`takes_moments`] takes, at level 4.
#[inline(always)]
pub(super) fn moments(center: bool, len: usize, lanes: &[f32], to: &mut [Moments<f32>]) {
    // SAFETY: `takes_moments` asked the processor.
    unsafe { moments_of(center, len, lanes, to) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
fn moments_of(center: bool, len: usize, lanes: &[f32], to: &mut [Moments<f32>]) {
    // A step for all lanes comes before the next, so that none waits for its own result.
    for (lane, (mean, lost, _)) in lanes.chunks_exact(len).zip(&mut *to) {
        // SAFETY: these are the numbers of the lane.
        let precise = if center { (unsafe { sum_of(lane.as_ptr(), len) }) / len as f64 } else { 0.0 };
        *mean = precise as f32;
        *lost = precise - f64::from(*mean);
    }
    for (lane, (mean, lost, variance)) in lanes.chunks_exact(len).zip(to) {
        // SAFETY: as above.
        *variance = unsafe { squares_of(lane.as_ptr(), len, [(*mean).into(), *lost]) } / len as f64;
    }
}

/// The sum of the squares of differences from both.
///
/// # Safety
/// `len` numbers can be read.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn squares_of(from: *const f32, len: usize, both: [f64; 2]) -> f64 {
    let (whole, rest, mut sums) = (len - len % BLOCK, rest_of(len), none());
    let both = [_mm512_set1_pd(both[0]), _mm512_set1_pd(both[1])];
    // SAFETY: the caller's. What has no bit isn't read.
    unsafe {
        for at in (0..whole).step_by(BLOCK) {
            sums = added(sums, ALL, squared_differences(doubles_at(from.add(at)), both));
        }
        if rest > 0 {
            let last = doubles(load(from.add(whole), rest, _mm512_setzero_ps()));
            sums = added(sums, rest, squared_differences(last, both));
        }
    }
    total(sums)
}

/// A block, whose halves are read by themselves: that takes less time than to part vectors.
///
/// # Safety
/// It can be read.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
#[inline]
unsafe fn doubles_at(from: *const f32) -> Doubles {
    // SAFETY: the caller's.
    unsafe {
        [
            _mm512_cvtps_pd(_mm256_loadu_ps(from)),
            _mm512_cvtps_pd(_mm256_loadu_ps(from.add(8))),
            _mm512_cvtps_pd(_mm256_loadu_ps(from.add(16))),
            _mm512_cvtps_pd(_mm256_loadu_ps(from.add(24))),
        ]
    }
}

/// A block that is read next, of which there may be none, is on its way meanwhile.
#[inline(always)]
fn fetch_block(block: *const f32) {
    fetch::<false, _>(block);
    fetch::<false, _>(block.wrapping_add(BLOCK / 2));
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
    /// x - peak - log, rounded once.
    fn lowered(x: __m512, peak: f32, log: f64) -> __m512 = {
        let (peak, log) = (_mm512_set1_pd(peak.into()), _mm512_set1_pd(log));
        let halves = [_mm512_castps512_ps256(x), _mm512_extractf32x8_ps::<1>(x)];
        let [low, high] =
            halves.map(|x| _mm512_cvtpd_ps(_mm512_sub_pd(_mm512_sub_pd(_mm512_cvtps_pd(x), peak), log)));
        _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
    };
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
