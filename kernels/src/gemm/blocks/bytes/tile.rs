//! The innermost loops on bytes: neighbours in a row of the output stay in registers while the steps run, and become bytes
//! when they are stored.

#![allow(unsafe_code)] // pointers with offsets: `Tile` says what they must point to

use super::super::super::quads::Dot;
use super::super::super::vectors::{Plain, Vector};
use super::super::CHANNELS;
use super::super::tile::loops_of;
use crate::quantize::{Precision, placed};

/// Places of the output that are neighbours in a row.
///
/// # Safety
/// To be computed for `R` places by vectors that hold `L` filters together, `offsets` and `weights` must be readable for
/// all steps (`L` weights each), the image for each place at `image + 16 * place + offset`: 4 bytes, or 16 if each filter
/// sees its own channel. `bias` and `factors` have `L` numbers. `out` is writable by this thread alone: `16 * R` bytes
/// from each multiple of `out_block` on that `L` has blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile {
    pub(super) image: *const u8,
    pub(super) offsets: *const u32,
    pub(super) weights: *const u32,
    pub(super) steps: usize,
    pub(super) bias: *const u32,
    pub(super) factors: *const f32,
    pub(super) zero: f32,
    pub(super) least: f32,
    pub(super) out: *mut u8,
    pub(super) out_block: usize,
}

/// Computes a tile.
///
/// # Safety
/// See [`Tile`]; the processor must have what the vectors need.
pub(super) type Sums = unsafe fn(&Tile);

/// What a place of the image gives to the filters of a vector.
pub(super) trait Seen {
    /// # Safety
    /// See [`Tile`]. `lane` is the first filter of the vector.
    unsafe fn load<V: Dot>(from: *const u8, lane: usize) -> V;
}

/// Four channels for all filters.
pub(super) struct Four;

impl Seen for Four {
    #[inline(always)]
    unsafe fn load<V: Dot>(from: *const u8, _: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::splat(&from.cast::<u32>().read_unaligned()) }
    }
}

/// The channel of each filter.
pub(super) struct Own;

impl Seen for Own {
    #[inline(always)]
    unsafe fn load<V: Dot>(from: *const u8, lane: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::widen(from.add(lane)) }
    }
}

/// The loops for one processor level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loops {
    /// Filters that are computed together, a multiple of the channels of a block.
    pub(super) filters: usize,
    /// For 1, 2, .. places.
    pub(super) sums: &'static [Sums],
}

/// # Safety
/// See [`Tile`] and [`Vector`].
#[inline(always)]
unsafe fn sums<V: Quantize, S: Seen, const W: usize, const R: usize>(tile: &Tile) {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [[V::zero(); W]; R];
        for step in 0..tile.steps {
            let image = tile.image.add(*tile.offsets.add(step) as usize);
            let mut weights = [V::zero(); W];
            for (at, weights) in weights.iter_mut().enumerate() {
                *weights = V::load(tile.weights.add((step * W + at) * V::COUNT));
            }
            for (place, sums) in sums.iter_mut().enumerate() {
                let image = image.add(place * CHANNELS);
                for (at, (sum, weights)) in sums.iter_mut().zip(weights).enumerate() {
                    *sum = S::load::<V>(image, at * V::COUNT).dot(weights, *sum);
                }
            }
        }
        for (place, sums) in sums.into_iter().enumerate() {
            for (at, sum) in sums.into_iter().enumerate() {
                let lane = at * V::COUNT;
                let to = tile.out.add(lane / CHANNELS * tile.out_block + place * CHANNELS + lane % CHANNELS);
                sum.quantize(tile.bias.add(lane), tile.factors.add(lane), [tile.least, tile.zero], to);
            }
        }
    }
}

/// Sums that become bytes.
///
/// # Safety
/// See [`Dot`].
pub(super) trait Quantize: Dot {
    /// Writes `COUNT` bytes: the steps of [`quantized`].
    unsafe fn quantize(self, bias: *const u32, factors: *const f32, limits: [f32; 2], to: *mut u8);
}

impl<const N: usize> Quantize for Plain<u32, N> {
    #[inline(always)]
    unsafe fn quantize(self, bias: *const u32, factors: *const f32, limits: [f32; 2], to: *mut u8) {
        // SAFETY: the caller's; arrays have the alignment of their elements.
        unsafe {
            let (bias, factors) = (bias.cast::<[u32; N]>().read(), factors.cast::<[f32; N]>().read());
            to.cast::<[u8; N]>().write(quantized(self.0, bias, factors, limits));
        }
    }
}

/// As [`rounded`](crate::quantize::rounded), which knows NaN too: there is none.
#[inline(always)]
fn quantized<const N: usize>(sums: [u32; N], bias: [u32; N], factors: [f32; N], [least, zero]: [f32; 2]) -> [u8; N] {
    let mut out = [0; N];
    for (((out, sum), bias), factor) in out.iter_mut().zip(sums).zip(bias).zip(factors) {
        let scaled = sum.wrapping_add(bias) as i32 as f32 * factor;
        *out = f32::byte(placed(scaled, zero, least, 255.0));
    }
    out
}

mod plain {
    use super::super::super::super::vectors::Plain;
    use super::{Seen, Tile, sums};

    pub(super) type Eight = Plain<u32, 8>;

    /// # Safety
    /// See [`Tile`].
    pub(super) unsafe fn of<S: Seen, const W: usize, const R: usize>(tile: &Tile) {
        // SAFETY: the caller's.
        unsafe { sums::<Eight, S, W, R>(tile) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::super::super::vectors::x86::{U32x8, U32x16};
    use super::super::super::super::vectors::{Plain, Vector};
    use super::{Quantize, Seen, Tile, sums};
    use std::arch::x86_64::*;

    impl Quantize for U32x16 {
        #[inline(always)]
        unsafe fn quantize(self, bias: *const u32, factors: *const f32, [least, zero]: [f32; 2], to: *mut u8) {
            const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
            // SAFETY: the caller's.
            unsafe {
                let sum = _mm512_cvtepi32_ps(_mm512_add_epi32(self.0, U32x16::load(bias).0));
                let scaled = _mm512_roundscale_ps::<NEAREST>(_mm512_mul_ps(sum, _mm512_loadu_ps(factors)));
                let placed = _mm512_max_ps(_mm512_add_ps(scaled, _mm512_set1_ps(zero)), _mm512_set1_ps(least));
                let bytes = _mm512_cvtps_epi32(_mm512_min_ps(placed, _mm512_set1_ps(255.0)));
                _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(bytes));
            }
        }
    }

    impl Quantize for U32x8 {
        #[inline(always)]
        unsafe fn quantize(self, bias: *const u32, factors: *const f32, limits: [f32; 2], to: *mut u8) {
            let mut sums = [0; 8];
            // SAFETY: the caller's.
            unsafe {
                self.store(sums.as_mut_ptr());
                Plain(sums).quantize(bias, factors, limits, to);
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
    pub(super) unsafe fn wide<S: Seen, const W: usize, const R: usize>(tile: &Tile) {
        // SAFETY: the caller's; these are the features of the vector.
        unsafe { sums::<U32x16, S, W, R>(tile) }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn narrow<S: Seen, const W: usize, const R: usize>(tile: &Tile) {
        // SAFETY: as above.
        unsafe { sums::<U32x8, S, W, R>(tile) }
    }
}

/// The loops for this processor: of two blocks of filters if there are such loops and `two` is asked for, else of one.
pub(super) fn loops<S: Seen>(two: bool) -> Loops {
    #[cfg(target_arch = "x86_64")]
    match crate::cpu::level() {
        5.. => {
            use super::super::super::vectors::x86::U32x16;
            use x86::wide;
            return match two {
                true => loops_of!(U32x16, wide, S, 2; 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
                false => loops_of!(U32x16, wide, S, 1; 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
            };
        }
        3.. => {
            use super::super::super::vectors::x86::U32x8;
            use x86::narrow;
            return loops_of!(U32x8, narrow, S, 2; 1 2 3 4);
        }
        _ => {}
    }
    use plain::{Eight, of};
    let _ = two;
    loops_of!(Eight, of, S, 2; 1 2)
}
