//! The innermost loops on bytes: neighbours in a row of the output stay in registers while the steps run, and become bytes
//! when they are stored.

#![allow(unsafe_code)] // pointers with offsets: `Tile` says what they must point to

use super::super::super::quads::Dot;
use super::super::super::vectors::Vector;
use super::super::CHANNELS;
use super::super::tile::loops_of;
use super::filters::Check;
use super::quantize::{Doubt, Doubts, Limits, Numbers, Quantize};
use super::settle::Dequantized;
use std::ops::Range;

/// Places of the output that are neighbours in a row.
///
/// # Safety
/// To be computed for `R` places by vectors that hold `L` filters together, `offsets` and `weights` must be readable for
/// all steps (`L` weights each), the image for each place at `image + 16 * place + offset`: 4 bytes, or 16 if each filter
/// sees its own channel. `numbers` are those of `L` filters. `out` is writable by this thread alone: `16 * R` bytes
/// from each multiple of `out_block` on that `L` has blocks. `lengths` is null, or there is one for each place, and
/// `doubts` has room for one for each vector at each place. The last check is at the end of the steps; `less` is null, or
/// has `L` numbers for each, `apart` from one to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile<'a> {
    pub(super) image: *const u8,
    pub(super) offsets: *const u32,
    pub(super) weights: *const u32,
    pub(super) steps: usize,
    pub(super) numbers: Numbers,
    pub(super) limits: Limits,
    pub(super) out: *mut u8,
    pub(super) out_block: usize,
    pub(super) checks: &'a [Check],
    /// What is added to a partial sum for its zero points.
    pub(super) less: *const u32,
    pub(super) apart: usize,
    pub(super) lengths: *const f32,
    pub(super) doubts: *mut Doubts,
    /// The number of the first place among those of `doubts`.
    pub(super) first: usize,
}

/// Computes a tile.
///
/// # Safety
/// See [`Tile`]; the processor must have what the vectors need.
pub(super) type Sums = unsafe fn(&Tile<'_>);

/// What a place of the image gives to the filters of a vector.
pub(super) trait Seen {
    /// # Safety
    /// See [`Tile`]. `lane` is the first filter of the vector.
    unsafe fn load<V: Dot>(from: *const u8, lane: usize) -> V;

    /// As floats: what one byte stands for.
    ///
    /// # Safety
    /// As for [`load`](Seen::load), of one byte or of one for each filter of the vector.
    unsafe fn float<V: Quantize>(from: *const u8, lane: usize, of: &Dequantized<'_>) -> V::Floats;
}

/// Four channels for all filters.
pub(super) struct Four;

impl Seen for Four {
    #[inline(always)]
    unsafe fn load<V: Dot>(from: *const u8, _: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::splat(&from.cast::<u32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn float<V: Quantize>(from: *const u8, _: usize, of: &Dequantized<'_>) -> V::Floats {
        // SAFETY: the caller's; each byte has a number.
        unsafe { V::Floats::splat(of.all.as_ptr().add(usize::from(*from))) }
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
    #[inline(always)]
    unsafe fn float<V: Quantize>(from: *const u8, lane: usize, of: &Dequantized<'_>) -> V::Floats {
        // SAFETY: the caller's.
        unsafe {
            let less = V::splat(&u32::from(of.outside).wrapping_neg());
            let number = Self::load::<V>(from, lane).add(less).floats();
            number.mul_add(V::Floats::splat(&of.scale), V::Floats::zero())
        }
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

/// Sums, and the magnitudes of the partial sums that are looked at.
type Checked<V, const W: usize, const R: usize> = [[[V; W]; R]; 2];

/// # Safety
/// See [`Tile`] and [`Vector`].
#[inline(always)]
unsafe fn sums<V: Quantize, S: Seen, const W: usize, const R: usize>(tile: &Tile<'_>) {
    // SAFETY: the caller's.
    unsafe {
        let [sums, paths] = match tile.checks {
            [] => [add::<V, S, W, R>(tile, 0..tile.steps, [[V::zero(); W]; R]), [[V::zero(); W]; R]],
            _ => checked::<V, S, W, R>(tile),
        };
        for (place, (sums, paths)) in sums.into_iter().zip(paths).enumerate() {
            for (at, (sum, path)) in sums.into_iter().zip(paths).enumerate() {
                let lane = at * V::COUNT;
                let to = tile.out.add(lane / CHANNELS * tile.out_block + place * CHANNELS + lane % CHANNELS);
                let numbers = tile.numbers.from(lane);
                let scaled = sum.scaled(&numbers);
                V::quantize(scaled, tile.limits, to);
                if !tile.lengths.is_null() {
                    let length = V::Floats::splat(tile.lengths.add(place));
                    let margin = length.mul_add(V::Floats::load(numbers.slopes), V::Floats::load(numbers.slacks));
                    let margin = path.floats().mul_add(V::Floats::load(numbers.climbs), margin);
                    let lanes = V::doubtful(scaled, margin, tile.limits);
                    let place = (tile.first + place) as u16;
                    (*tile.doubts).push(Doubt { place, first: lane as u16, lanes });
                }
            }
        }
    }
}

/// # Safety
/// See [`Tile`] and [`Vector`].
#[inline(always)]
unsafe fn checked<V: Quantize, S: Seen, const W: usize, const R: usize>(tile: &Tile<'_>) -> Checked<V, W, R> {
    // SAFETY: the caller's.
    unsafe {
        let none = [[V::zero(); W]; R];
        let (mut sums, mut totals, mut paths, mut step) = (none, none, none, 0);
        for (at, check) in tile.checks.iter().enumerate() {
            sums = add::<V, S, W, R>(tile, step..check.end, sums);
            step = check.end;
            let less = if tile.less.is_null() { [V::zero(); W] } else { load(tile.less.add(at * tile.apart)) };
            for place in 0..R {
                for at in 0..W {
                    paths[place][at] = paths[place][at].add(sums[place][at].add(less[at]).sizes());
                }
            }
            if check.last {
                for place in 0..R {
                    for at in 0..W {
                        totals[place][at] = totals[place][at].add(sums[place][at]);
                    }
                }
                sums = none;
            }
        }
        [totals, paths]
    }
}

/// Vectors that follow each other.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
unsafe fn load<V: Vector, const W: usize>(from: *const V::Of) -> [V; W] {
    // SAFETY: the caller's.
    unsafe {
        let mut all = [V::zero(); W];
        for (at, to) in all.iter_mut().enumerate() {
            *to = V::load(from.add(at * V::COUNT));
        }
        all
    }
}

/// Adds the products of some steps.
///
/// # Safety
/// See [`Tile`] and [`Vector`].
#[inline(always)]
unsafe fn add<V: Quantize, S: Seen, const W: usize, const R: usize>(
    tile: &Tile<'_>,
    steps: Range<usize>,
    mut sums: [[V; W]; R],
) -> [[V; W]; R] {
    // SAFETY: the caller's.
    unsafe {
        for step in steps {
            let image = tile.image.add(*tile.offsets.add(step) as usize);
            let weights: [V; W] = load(tile.weights.add(step * W * V::COUNT));
            for (place, sums) in sums.iter_mut().enumerate() {
                let image = image.add(place * CHANNELS);
                for (at, (sum, weights)) in sums.iter_mut().zip(weights).enumerate() {
                    *sum = S::load::<V>(image, at * V::COUNT).dot(weights, *sum);
                }
            }
        }
        sums
    }
}

mod plain {
    use super::super::super::super::vectors::Plain;
    use super::{Seen, Tile, sums};

    pub(super) type Eight = Plain<u32, 8>;

    /// # Safety
    /// See [`Tile`].
    pub(super) unsafe fn of<S: Seen, const W: usize, const R: usize>(tile: &Tile<'_>) {
        // SAFETY: the caller's.
        unsafe { sums::<Eight, S, W, R>(tile) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::super::super::vectors::x86::{U32x8, U32x16};
    use super::{Seen, Tile, sums};

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
    pub(super) unsafe fn wide<S: Seen, const W: usize, const R: usize>(tile: &Tile<'_>) {
        // SAFETY: the caller's; these are the features of the vector.
        unsafe { sums::<U32x16, S, W, R>(tile) }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn narrow<S: Seen, const W: usize, const R: usize>(tile: &Tile<'_>) {
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
