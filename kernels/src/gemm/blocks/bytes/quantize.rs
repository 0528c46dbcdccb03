//! Sums that become bytes, and which of these are in doubt.

#![allow(unsafe_code)] // loads and stores through pointers: the callers in `tile.rs` and `settle.rs` vouch for them

use super::super::super::quads::Dot;
use super::super::super::vectors::{Plain, Vector};
use super::super::CHANNELS;
use crate::quantize::{Precision, placed};

/// Numbers of filters, which follow their weights: rows of numbers that are so far apart.
///
/// `sum + bias` is what the sum is without zero points, and `that * factor + addend` becomes an integer. How far that may be
/// from what floats give is `length * slope + path * climb + slack`, where the path is the sum of the magnitudes of partial
/// sums. Floats have scales of weights, and a bias. The last rows, one for each check, are what partial sums are less for
/// their zero points.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) first: *const u32,
    pub(super) apart: usize,
}

/// What a row has: the first one is of integers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Row {
    Bias,
    Factor,
    Addend,
    Slope,
    Climb,
    Slack,
    Scale,
    FloatBias,
}

/// Rows before those of checks.
pub(super) const ROWS: usize = 8;

impl Numbers {
    /// A vector of a row, for filters from a number on.
    ///
    /// # Safety
    /// There must be so many.
    #[inline(always)]
    pub(super) unsafe fn load<V: Vector>(self, row: Row, filter: usize) -> V {
        // SAFETY: the caller's; numbers of all rows are of four bytes.
        unsafe { V::load(self.first.add(row as usize * self.apart + filter).cast()) }
    }

    /// A vector of the row of a check.
    ///
    /// # Safety
    /// As above; there must be the check.
    #[inline(always)]
    pub(super) unsafe fn less<V: Vector<Of = u32>>(self, check: usize, filter: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::load(self.first.add((ROWS + check) * self.apart + filter)) }
    }
}

/// The byte of a scaled number, with the zero point of the output: as [`rounded`](crate::quantize::rounded), which knows
/// NaN too. There is none.
#[inline(always)]
pub(super) fn byte(scaled: f32, zero: f32) -> u8 {
    f32::byte(placed(scaled, zero, 0.0, MOST))
}

/// Whether numbers that are so far from a scaled one may have another byte.
#[inline(always)]
fn doubtful(scaled: f32, margin: f32, zero: f32) -> bool {
    let (apart, at) = ((scaled - scaled.round_ties_even()).abs(), scaled + zero);
    apart + margin >= 0.5 && at + margin >= -0.5 && at - margin <= MOST + 0.5
}

const MOST: f32 = 255.0;

/// Places that are finished together: as many bytes as there are [floats](super::super::band::PLACES). No row is longer.
pub(super) const PLACES: usize = 4 * super::super::band::PLACES;

/// Filters at a place, and those of them, from the first on, whose bytes may be others than those of floats.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Doubt {
    pub(super) place: u16,
    pub(super) first: u16,
    pub(super) lanes: u16,
}

/// The doubts of a part.
#[derive(Debug)]
pub(super) struct Doubts {
    count: usize,
    all: [Doubt; 2 * PLACES],
}

impl Doubts {
    pub(super) fn new() -> Doubts {
        Doubts { count: 0, all: [Doubt::default(); 2 * PLACES] }
    }

    /// Adds one. There is room for those of a part.
    pub(super) fn push(&mut self, doubt: Doubt) {
        if let Some(to) = self.all.get_mut(self.count) {
            *to = doubt;
            self.count += 1;
        }
    }

    /// Those of so many filters from a number on: no more than sums have in a vector.
    pub(super) fn of(&self, filter: usize, count: usize) -> impl Iterator<Item = Doubt> {
        let own = move |doubt: &Doubt| {
            let all = u16::MAX >> (CHANNELS - count);
            let lanes = doubt.lanes.checked_shr(filter.checked_sub(doubt.first.into())? as u32)? & all;
            (lanes != 0).then_some(Doubt { first: filter as u16, lanes, ..*doubt })
        };
        self.all.iter().take(self.count).filter_map(own)
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Sums that become bytes.
///
/// # Safety
/// See [`Dot`].
pub(super) trait Quantize: Dot {
    /// As many numbers.
    type Floats: Vector<Of = f32>;

    /// The integers, which have signs, as floats.
    unsafe fn floats(self) -> Self::Floats;
    /// Bytes of scaled numbers.
    unsafe fn quantize(scaled: Self::Floats, zero: f32, to: *mut u8);
    /// The lanes whose bytes may be others if numbers are as far as the margin from those that are scaled.
    unsafe fn doubtful(scaled: Self::Floats, margin: Self::Floats, zero: f32) -> u16;
    /// The magnitudes of integers with signs.
    unsafe fn sizes(self) -> Self;
    /// One of the four bytes of each number, with its sign.
    unsafe fn byte(self, at: usize) -> Self;
}

// SAFETY, of all blocks: the caller's; arrays have the alignment of their elements.
impl<const N: usize> Quantize for Plain<u32, N> {
    type Floats = Plain<f32, N>;

    #[inline(always)]
    unsafe fn floats(self) -> Plain<f32, N> {
        Plain(self.0.map(|number| number as i32 as f32))
    }
    #[inline(always)]
    unsafe fn quantize(scaled: Plain<f32, N>, zero: f32, to: *mut u8) {
        unsafe { to.cast::<[u8; N]>().write(scaled.0.map(|scaled| byte(scaled, zero))) }
    }
    #[inline(always)]
    unsafe fn doubtful(scaled: Plain<f32, N>, margin: Plain<f32, N>, zero: f32) -> u16 {
        let lanes = scaled.0.into_iter().zip(margin.0).enumerate();
        lanes.fold(0, |all, (lane, (scaled, margin))| all | u16::from(doubtful(scaled, margin, zero)) << lane)
    }
    #[inline(always)]
    unsafe fn sizes(self) -> Self {
        Plain(self.0.map(|number| (number as i32).unsigned_abs()))
    }
    #[inline(always)]
    unsafe fn byte(self, at: usize) -> Self {
        Plain(self.0.map(|quad| ((quad << (24 - 8 * at)) as i32 >> 24) as u32))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::super::super::vectors::x86::{F32x8, F32x16, U32x8, U32x16};
    use super::{MOST, Quantize};
    use std::arch::x86_64::*;

    // SAFETY, of all blocks: the caller's.
    impl Quantize for U32x16 {
        type Floats = F32x16;

        #[inline(always)]
        unsafe fn floats(self) -> F32x16 {
            F32x16(unsafe { _mm512_cvtepi32_ps(self.0) })
        }
        #[inline(always)]
        unsafe fn quantize(scaled: F32x16, zero: f32, to: *mut u8) {
            unsafe {
                let placed = _mm512_add_epi32(nearest(scaled.0), _mm512_set1_epi32(zero as i32));
                let bytes = _mm512_cvtusepi32_epi8(_mm512_max_epi32(placed, _mm512_setzero_si512()));
                _mm_storeu_si128(to.cast(), bytes);
            }
        }
        /// Integers beyond the bytes are those of the least or the greatest, unless the margin is more than half a step.
        #[inline(always)]
        unsafe fn doubtful(scaled: F32x16, margin: F32x16, zero: f32) -> u16 {
            unsafe {
                let nearest = nearest(scaled.0);
                let apart = _mm512_abs_ps(_mm512_sub_ps(scaled.0, _mm512_cvtepi32_ps(nearest)));
                let certain = _mm512_sub_ps(_mm512_set1_ps(0.5), margin.0);
                let placed = _mm512_add_epi32(nearest, _mm512_set1_epi32(zero as i32));
                let within = _mm512_cmple_epu32_mask(placed, _mm512_set1_epi32(MOST as i32));
                let wide = _mm512_movepi32_mask(_mm512_castps_si512(certain));
                (within | wide) & _mm512_cmp_ps_mask::<_CMP_GE_OQ>(apart, certain)
            }
        }
        #[inline(always)]
        unsafe fn sizes(self) -> Self {
            U32x16(unsafe { _mm512_abs_epi32(self.0) })
        }
        #[inline(always)]
        unsafe fn byte(self, at: usize) -> Self {
            let up = 24 - 8 * at as i32;
            U32x16(unsafe { _mm512_srai_epi32::<24>(_mm512_sllv_epi32(self.0, _mm512_set1_epi32(up))) })
        }
    }

    /// The nearest integers, of numbers that are far from the end of what is there.
    ///
    /// # Safety
    /// Needs AVX-512.
    #[inline(always)]
    unsafe fn nearest(of: __m512) -> __m512i {
        // SAFETY: the caller's.
        unsafe { _mm512_cvtps_epi32(_mm512_min_ps(of, _mm512_set1_ps(1e9))) }
    }

    /// As [`nearest`].
    ///
    /// # Safety
    /// Needs AVX2.
    #[inline(always)]
    unsafe fn nearest_of_8(of: __m256) -> __m256i {
        // SAFETY: the caller's.
        unsafe { _mm256_cvtps_epi32(_mm256_min_ps(of, _mm256_set1_ps(1e9))) }
    }

    impl Quantize for U32x8 {
        type Floats = F32x8;

        #[inline(always)]
        unsafe fn floats(self) -> F32x8 {
            F32x8(unsafe { _mm256_cvtepi32_ps(self.0) })
        }
        #[inline(always)]
        unsafe fn quantize(scaled: F32x8, zero: f32, to: *mut u8) {
            unsafe {
                let placed = _mm256_add_epi32(nearest_of_8(scaled.0), _mm256_set1_epi32(zero as i32));
                let words = _mm_packs_epi32(_mm256_castsi256_si128(placed), _mm256_extracti128_si256::<1>(placed));
                _mm_storel_epi64(to.cast(), _mm_packus_epi16(words, words));
            }
        }
        #[inline(always)]
        unsafe fn doubtful(scaled: F32x8, margin: F32x8, zero: f32) -> u16 {
            unsafe {
                let nearest = nearest_of_8(scaled.0);
                let apart = _mm256_sub_ps(scaled.0, _mm256_cvtepi32_ps(nearest));
                let apart = _mm256_andnot_ps(_mm256_set1_ps(-0.0), apart);
                let certain = _mm256_sub_ps(_mm256_set1_ps(0.5), margin.0);
                let placed = _mm256_add_epi32(nearest, _mm256_set1_epi32(zero as i32));
                let within = _mm256_cmpeq_epi32(_mm256_min_epu32(placed, _mm256_set1_epi32(MOST as i32)), placed);
                // A margin of more than half a step has its sign bit set.
                let looked_at = _mm256_or_ps(_mm256_castsi256_ps(within), certain);
                let near = _mm256_cmp_ps::<_CMP_GE_OQ>(apart, certain);
                _mm256_movemask_ps(_mm256_and_ps(looked_at, near)) as u16
            }
        }
        #[inline(always)]
        unsafe fn sizes(self) -> Self {
            U32x8(unsafe { _mm256_abs_epi32(self.0) })
        }
        #[inline(always)]
        unsafe fn byte(self, at: usize) -> Self {
            let up = 24 - 8 * at as i32;
            U32x8(unsafe { _mm256_srai_epi32::<24>(_mm256_sllv_epi32(self.0, _mm256_set1_epi32(up))) })
        }
    }
}
