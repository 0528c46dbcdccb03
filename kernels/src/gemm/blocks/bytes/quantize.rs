//! Sums that become bytes, and which of these are in doubt.

#![allow(unsafe_code)] // loads and stores through pointers: the callers in `tile.rs` and `settle.rs` vouch for them

use super::super::super::quads::Dot;
use super::super::super::vectors::{Plain, Vector};
use super::super::COLUMNS;
use crate::quantize::{Precision, placed};

/// Numbers of filters: `sum + bias` is what the sum is without zero points, and `that * factor + addend` becomes an integer.
/// How far that may be from what floats give is `length * slope + path * climb + slack`, where the path is the sum of the
/// magnitudes of partial sums.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) biases: *const u32,
    pub(super) factors: *const f32,
    pub(super) addends: *const f32,
    pub(super) slopes: *const f32,
    pub(super) climbs: *const f32,
    pub(super) slacks: *const f32,
}

impl Numbers {
    /// Those of the filters from a number on.
    ///
    /// # Safety
    /// There must be so many.
    #[inline(always)]
    pub(super) unsafe fn from(self, filter: usize) -> Numbers {
        // SAFETY: the caller's.
        unsafe {
            Numbers {
                biases: self.biases.add(filter),
                factors: self.factors.add(filter),
                addends: self.addends.add(filter),
                slopes: self.slopes.add(filter),
                climbs: self.climbs.add(filter),
                slacks: self.slacks.add(filter),
            }
        }
    }
}

/// The zero point of the output, and its least byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) zero: f32,
    pub(super) least: f32,
}

impl Limits {
    const MOST: f32 = 255.0;

    /// The byte of a scaled number. As [`rounded`](crate::quantize::rounded), which knows NaN too: there is none.
    #[inline(always)]
    pub(super) fn byte(self, scaled: f32) -> u8 {
        f32::byte(placed(scaled, self.zero, self.least, Limits::MOST))
    }

    /// Whether numbers that are so far from a scaled one may have another byte.
    #[inline(always)]
    fn doubtful(self, scaled: f32, margin: f32) -> bool {
        let (apart, at) = ((scaled - scaled.round_ties_even()).abs(), scaled + self.zero);
        apart + margin >= 0.5 && at + margin >= self.least - 0.5 && at - margin <= Limits::MOST + 0.5
    }
}

/// Filters whose doubts are settled together: most often, there is one of them.
pub(super) const LANES: usize = 8;

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
    pub(super) count: usize,
    all: [Doubt; 2 * COLUMNS],
}

impl Doubts {
    pub(super) fn new() -> Doubts {
        Doubts { count: 0, all: [Doubt::default(); 2 * COLUMNS] }
    }

    /// Adds some to those, `count`, that there are; none of which no lane is doubtful counts. Returns how many there are then.
    ///
    /// # Safety
    /// Fewer than there is room for were added.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, doubt: Doubt, count: usize) -> usize {
        // SAFETY: the caller's.
        unsafe { *self.all.get_unchecked_mut(count) = doubt };
        count + usize::from(doubt.lanes != 0)
    }

    /// Those of the [`LANES`] filters from a number on.
    pub(super) fn of(&self, filter: usize) -> impl Iterator<Item = Doubt> {
        let own = move |doubt: &Doubt| {
            let lanes = doubt.lanes.checked_shr(filter.checked_sub(doubt.first.into())? as u32)? & ((1 << LANES) - 1);
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
    unsafe fn quantize(scaled: Self::Floats, limits: Limits, to: *mut u8);
    /// The lanes whose bytes may be others if numbers are as far as the margin from those that are scaled.
    unsafe fn doubtful(scaled: Self::Floats, margin: Self::Floats, limits: Limits) -> u16;
    /// The magnitudes of integers with signs.
    unsafe fn sizes(self) -> Self;
    /// One of the four bytes of each number, with its sign.
    unsafe fn byte(self, at: usize) -> Self;

    /// What becomes an integer.
    #[inline(always)]
    unsafe fn scaled(self, numbers: &Numbers) -> Self::Floats {
        // SAFETY: the caller's.
        unsafe {
            let sum = self.add(Self::load(numbers.biases)).floats();
            sum.mul_add(Self::Floats::load(numbers.factors), Self::Floats::load(numbers.addends))
        }
    }
}

// SAFETY, of all blocks: the caller's; arrays have the alignment of their elements.
impl<const N: usize> Quantize for Plain<u32, N> {
    type Floats = Plain<f32, N>;

    #[inline(always)]
    unsafe fn floats(self) -> Plain<f32, N> {
        Plain(self.0.map(|number| number as i32 as f32))
    }
    #[inline(always)]
    unsafe fn quantize(scaled: Plain<f32, N>, limits: Limits, to: *mut u8) {
        unsafe { to.cast::<[u8; N]>().write(scaled.0.map(|scaled| limits.byte(scaled))) }
    }
    #[inline(always)]
    unsafe fn doubtful(scaled: Plain<f32, N>, margin: Plain<f32, N>, limits: Limits) -> u16 {
        let lanes = scaled.0.into_iter().zip(margin.0).enumerate();
        lanes.fold(0, |all, (lane, (scaled, margin))| all | u16::from(limits.doubtful(scaled, margin)) << lane)
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
    use super::super::super::super::vectors::{Plain, Vector};
    use super::{Limits, Quantize};
    use std::arch::x86_64::*;

    // SAFETY, of all blocks: the caller's.
    impl Quantize for U32x16 {
        type Floats = F32x16;

        #[inline(always)]
        unsafe fn floats(self) -> F32x16 {
            F32x16(unsafe { _mm512_cvtepi32_ps(self.0) })
        }
        #[inline(always)]
        unsafe fn quantize(scaled: F32x16, limits: Limits, to: *mut u8) {
            unsafe {
                let zero = _mm512_add_ps(nearest(scaled.0), _mm512_set1_ps(limits.zero));
                let placed = _mm512_max_ps(zero, _mm512_set1_ps(limits.least));
                let bytes = _mm512_cvtps_epi32(_mm512_min_ps(placed, _mm512_set1_ps(Limits::MOST)));
                _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(bytes));
            }
        }
        #[inline(always)]
        unsafe fn doubtful(scaled: F32x16, margin: F32x16, limits: Limits) -> u16 {
            unsafe {
                let apart = _mm512_abs_ps(_mm512_sub_ps(scaled.0, nearest(scaled.0)));
                let at = _mm512_add_ps(scaled.0, _mm512_set1_ps(limits.zero));
                let [half, least, most] = [0.5, limits.least - 0.5, Limits::MOST + 0.5].map(|x| _mm512_set1_ps(x));
                let close = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(_mm512_add_ps(apart, margin.0), half);
                let above = _mm512_mask_cmp_ps_mask::<_CMP_GE_OQ>(close, _mm512_add_ps(at, margin.0), least);
                _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(above, _mm512_sub_ps(at, margin.0), most)
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

    /// The nearest whole numbers.
    ///
    /// # Safety
    /// Needs AVX-512.
    #[inline(always)]
    unsafe fn nearest(of: __m512) -> __m512 {
        // SAFETY: the caller's.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(of) }
    }

    /// # Safety
    /// Needs AVX2.
    #[inline(always)]
    unsafe fn plain(of: F32x8) -> Plain<f32, 8> {
        let mut out = [0.0; 8];
        // SAFETY: the caller's.
        unsafe { of.store(out.as_mut_ptr()) };
        Plain(out)
    }

    impl Quantize for U32x8 {
        type Floats = F32x8;

        #[inline(always)]
        unsafe fn floats(self) -> F32x8 {
            F32x8(unsafe { _mm256_cvtepi32_ps(self.0) })
        }
        #[inline(always)]
        unsafe fn quantize(scaled: F32x8, limits: Limits, to: *mut u8) {
            unsafe { Plain::<u32, 8>::quantize(plain(scaled), limits, to) }
        }
        #[inline(always)]
        unsafe fn doubtful(scaled: F32x8, margin: F32x8, limits: Limits) -> u16 {
            unsafe { Plain::<u32, 8>::doubtful(plain(scaled), plain(margin), limits) }
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
