//! Softmax of f32 by AVX2, with vectors of eight: what is known of a lane stays in registers. The loops of other processors
//! give the same bits.

#![allow(unsafe_code)] // loads, stores and processor features

use super::blocks::{BLOCK, MOST, abreast, make_ends, shares_by_steps, steps};
use crate::functions::exp_of_16;
use std::arch::x86_64::*;

type Block = [__m256; 4];

/// The mask of the first n numbers of a block begins n places before the middle.
static MASKS: [[i32; BLOCK]; 2] = [[-1; BLOCK], [0; BLOCK]];

/// Numbers of a vector.
pub(super) const EIGHT: usize = 8;

/// Lanes of a vector or more, but no more than so many, an even number.
///
/// # Safety
/// As for [`shares_of`], but for the numbers of a lane.
#[target_feature(enable = "avx2,bmi2,fma")]
pub(super) unsafe fn shares_of_few<const LOG: bool, const VECTORS: usize>(
    from: *const f32,
    to: *mut f32,
    len: usize,
    count: usize,
) {
    let (mut peaks, mut ends) = ([0.0; MOST], [0.0; MOST]);
    let (least, none) = (_mm256_set1_ps(f32::NEG_INFINITY), _mm256_set1_ps(-0.0));
    let mut shares = [[none; VECTORS]; MOST];
    // SAFETY: the caller's. What has no mask isn't read, and the last vector that is written ends where the lane does.
    unsafe {
        let masks = MASKS.as_ptr().cast::<i32>().add(BLOCK - len);
        let masks: [__m256i; VECTORS] = std::array::from_fn(|k| _mm256_loadu_si256(masks.add(EIGHT * k).cast()));
        for first in (0..count).step_by(MOST) {
            let (from, to, some) = (from.add(first * len), to.add(first * len), MOST.min(count - first));
            for (lane, (peak, shares)) in peaks.iter_mut().zip(&mut shares).enumerate().take(some) {
                let mut block = [least; 4];
                for (k, ((number, mask), to)) in shares.iter_mut().zip(masks).zip(&mut block).enumerate() {
                    let some = _mm256_maskload_ps(from.wrapping_add(lane * len + EIGHT * k), mask);
                    *number = _mm256_blendv_ps(least, some, _mm256_castsi256_ps(mask));
                    *to = _mm256_max_ps(*number, least);
                }
                *peak = greatest(block);
                for (number, mask) in shares.iter_mut().zip(masks) {
                    *number = _mm256_and_ps(_mm256_sub_ps(*number, _mm256_set1_ps(*peak)), _mm256_castsi256_ps(mask));
                }
            }
            for pair in shares.as_flattened_mut().as_chunks_mut::<2>().0.iter_mut().take(some * VECTORS / 2) {
                *pair = exp_of_16(*pair);
            }
            for (sum, shares) in ends.iter_mut().zip(&shares).take(some) {
                let mut block = [none; 4];
                for ((to, share), mask) in block.iter_mut().zip(shares).zip(masks) {
                    *to = _mm256_blendv_ps(none, *share, _mm256_castsi256_ps(mask));
                }
                *sum = total(added([_mm256_set1_pd(-0.0); 8], block));
            }
            make_ends::<LOG>(&mut ends, some);
            for (lane, ((peak, end), shares)) in peaks.iter().zip(&ends).zip(&shares).enumerate().take(some) {
                for k in 0..VECTORS {
                    let at = (EIGHT * k).min(len - EIGHT);
                    let result = if LOG {
                        lowered(_mm256_loadu_ps(from.add(lane * len + at)), *peak, *end)
                    } else {
                        let share = _mm256_loadu_ps(shares.as_ptr().cast::<f32>().add(at));
                        _mm256_mul_ps(share, _mm256_set1_ps(*end as f32))
                    };
                    _mm256_storeu_ps(to.add(lane * len + at), result);
                }
            }
        }
    }
}

shares_by_steps!("avx2,bmi2,fma");

// The last block of a lane has numbers of the one before. They may be replaced, so it is read before and written after.

/// # Safety
/// `len` numbers can be read.
#[target_feature(enable = "avx2,bmi2,fma")]
#[inline]
unsafe fn peak_of(from: *const f32, len: usize) -> f32 {
    // SAFETY: the caller's.
    unsafe {
        let mut peaks = load(from.add(len - BLOCK));
        for at in (0..len - BLOCK).step_by(BLOCK) {
            peaks = greater(peaks, load(from.add(at)));
        }
        greatest(peaks)
    }
}

/// # Safety
/// `len` numbers can be read, and written.
#[target_feature(enable = "avx2,bmi2,fma")]
#[inline]
unsafe fn exponentials_of(from: *const f32, to: *mut f32, len: usize, peak: f32) {
    let (last, peak) = (len - BLOCK, _mm256_set1_ps(peak));
    // SAFETY: the caller's.
    unsafe {
        let end = load(from.add(last));
        for at in (0..last).step_by(BLOCK) {
            store(to.add(at), exp(less(load(from.add(at)), peak)));
        }
        store(to.add(last), exp(less(end, peak)));
    }
}

/// # Safety
/// `len` numbers can be read.
#[target_feature(enable = "avx2,bmi2,fma")]
#[inline]
unsafe fn sum_of(from: *const f32, len: usize) -> f64 {
    let (whole, rest, mut sums) = (len - len % BLOCK, len % BLOCK, [_mm256_set1_pd(-0.0); 8]);
    // SAFETY: the caller's.
    unsafe {
        for at in (0..whole).step_by(BLOCK) {
            sums = added(sums, load(from.add(at)));
        }
        if rest > 0 {
            sums = added(sums, load_first(from.add(whole), rest));
        }
    }
    total(sums)
}

/// # Safety
/// `len` numbers can be read and written.
#[target_feature(enable = "avx2,bmi2,fma")]
#[inline]
unsafe fn scale_by(numbers: *mut f32, len: usize, scale: f32) {
    let (last, scale) = (len - BLOCK, _mm256_set1_ps(scale));
    // SAFETY: the caller's.
    unsafe {
        let end = load(numbers.add(last));
        for at in (0..last).step_by(BLOCK) {
            store(numbers.add(at), times(load(numbers.add(at)), scale));
        }
        store(numbers.add(last), times(end, scale));
    }
}

/// Writes x - peak - log, rounded once.
///
/// # Safety
/// `len` numbers can be read, and written.
#[target_feature(enable = "avx2,bmi2,fma")]
#[inline]
unsafe fn lower(from: *const f32, to: *mut f32, len: usize, peak: f32, log: f64) {
    // SAFETY: the caller's.
    unsafe {
        for at in 0..len {
            to.add(at).write((f64::from(from.add(at).read()) - f64::from(peak) - log) as f32);
        }
    }
}

/// # Safety
/// A block can be read.
#[target_feature(enable = "avx2,bmi2,fma")]
#[inline]
unsafe fn load(from: *const f32) -> Block {
    // SAFETY: the caller's.
    unsafe {
        [
            _mm256_loadu_ps(from),
            _mm256_loadu_ps(from.add(8)),
            _mm256_loadu_ps(from.add(16)),
            _mm256_loadu_ps(from.add(24)),
        ]
    }
}

/// The first `count` numbers, and -0, which changes no sum.
///
/// # Safety
/// They can be read.
#[target_feature(enable = "avx2,bmi2,fma")]
#[inline]
unsafe fn load_first(from: *const f32, count: usize) -> Block {
    let mut block = [_mm256_set1_ps(-0.0); 4];
    // SAFETY: the caller's; a mask begins in the first half.
    unsafe {
        let masks = MASKS.as_ptr().cast::<i32>().add(BLOCK - count);
        for (k, numbers) in block.iter_mut().enumerate() {
            let mask = _mm256_loadu_si256(masks.add(8 * k).cast());
            let some = _mm256_maskload_ps(from.wrapping_add(8 * k), mask);
            *numbers = _mm256_blendv_ps(*numbers, some, _mm256_castsi256_ps(mask));
        }
    }
    block
}

/// # Safety
/// A block can be written.
#[target_feature(enable = "avx2,bmi2,fma")]
#[inline]
unsafe fn store(to: *mut f32, block: Block) {
    // SAFETY: the caller's.
    unsafe {
        _mm256_storeu_ps(to, block[0]);
        _mm256_storeu_ps(to.add(8), block[1]);
        _mm256_storeu_ps(to.add(16), block[2]);
        _mm256_storeu_ps(to.add(24), block[3]);
    }
}

steps! {
    "avx2,bmi2,fma";
    /// The greater ones; those of `peaks` where there is NaN, which shows in the sum.
    fn greater(peaks: Block, block: Block) -> Block = [
        _mm256_max_ps(block[0], peaks[0]),
        _mm256_max_ps(block[1], peaks[1]),
        _mm256_max_ps(block[2], peaks[2]),
        _mm256_max_ps(block[3], peaks[3]),
    ];
    fn greatest(block: Block) -> f32 = {
        let eight = _mm256_max_ps(_mm256_max_ps(block[0], block[1]), _mm256_max_ps(block[2], block[3]));
        let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
        let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
    };
    fn less(block: Block, by: __m256) -> Block = [
        _mm256_sub_ps(block[0], by),
        _mm256_sub_ps(block[1], by),
        _mm256_sub_ps(block[2], by),
        _mm256_sub_ps(block[3], by),
    ];
    /// x - peak - log, rounded once.
    fn lowered(x: __m256, peak: f32, log: f64) -> __m256 = {
        let (peak, log) = (_mm256_set1_pd(peak.into()), _mm256_set1_pd(log));
        let halves = [_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x)];
        let [low, high] =
            halves.map(|x| _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_sub_pd(_mm256_cvtps_pd(x), peak), log)));
        _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
    };
    fn times(block: Block, by: __m256) -> Block = [
        _mm256_mul_ps(block[0], by),
        _mm256_mul_ps(block[1], by),
        _mm256_mul_ps(block[2], by),
        _mm256_mul_ps(block[3], by),
    ];
    fn exp(block: Block) -> Block = {
        let ([a, b], [c, d]) = (exp_of_16([block[0], block[1]]), exp_of_16([block[2], block[3]]));
        [a, b, c, d]
    };
    /// Each of eight sums has the numbers that are 32 apart.
    fn added(sums: [__m256d; 8], block: Block) -> [__m256d; 8] = {
        let mut sums = sums;
        for ([low, high], x) in sums.as_chunks_mut::<2>().0.iter_mut().zip(&block) {
            *low = _mm256_add_pd(*low, _mm256_cvtps_pd(_mm256_castps256_ps128(*x)));
            *high = _mm256_add_pd(*high, _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(*x)));
        }
        sums
    };
    /// The sum of all, as a tree: each with that a half further on.
    fn total(sums: [__m256d; 8]) -> f64 = {
        let [a, b, c, d, e, f, g, h] = sums;
        let (low, high) = ([_mm256_add_pd(a, e), _mm256_add_pd(b, f)], [_mm256_add_pd(c, g), _mm256_add_pd(d, h)]);
        let four = _mm256_add_pd(_mm256_add_pd(low[0], high[0]), _mm256_add_pd(low[1], high[1]));
        let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
        _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))
    };
}
