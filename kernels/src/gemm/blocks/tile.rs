//! The innermost loops: places of the output that are neighbours in a row stay in registers while the steps run.

#![allow(unsafe_code)] // pointers with offsets: `Tile` says what they must point to

use super::super::vectors::Vector;
use super::CHANNELS;
use super::after::{After, HardSwish, Relu, Within};
use super::finish::Activation;
use crate::cpu::fetch;

/// Places of the output that are neighbours in a row.
///
/// # Safety
/// To be computed for `R` places by vectors that hold `L` filters together, `offsets` must be readable for all steps, and
/// `weights` for the number of each (`L` weights each), which is behind its offset or is that of the step ([`Seen::PICKS`]);
/// the image must be for each place at `image + place * distance + offset`, and `out` writable by
/// this thread alone: `16 * R` numbers from each multiple of `out_block` on that `L` has blocks. `bias` is null, or has
/// `L` numbers; so have both of `scaled`, or both are null; `beside` is null, or has a number for each of `out`. Unless it is
/// the first part, `out` is initialised.
/// The image and its offsets are those of filters in the first half of a block, and of those in the second one, which are read
/// if these may differ ([`Seen::HALVES`]).
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile {
    pub(super) image: [*const f32; 2],
    pub(super) offsets: [*const u32; 2],
    pub(super) weights: *const f32,
    pub(super) steps: usize,
    pub(super) next: Next,
    /// Whether nothing is in the output yet.
    pub(super) first: bool,
    pub(super) bias: *const f32,
    /// A factor and what is added to the product.
    pub(super) scaled: [*const f32; 2],
    /// What is added then, and what is computed of these sums.
    pub(super) beside: *const f32,
    pub(super) activation: Activation,
    pub(super) out: *mut f32,
    pub(super) out_block: usize,
}

/// Weights that other tiles read next, at any address: each step whose number has none of the bits of `pause` fetches a line of
/// them to the second cache. Of steps that are taken together the first one fetches for all; those left at the end don't.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    first: *const f32,
    pause: usize,
}

impl Next {
    /// Nothing but what the tile itself reads first.
    pub(super) fn none(weights: *const f32) -> Next {
        Next { first: weights, pause: usize::MAX }
    }

    /// What each of `count` tiles fetches, if they fetch as many weights as they read: one of each filter in a step.
    pub(super) fn among(count: usize, filters: usize, weights: *const f32) -> Next {
        let of_step = filters.div_ceil(count.max(1)).next_power_of_two().min(CHANNELS);
        Next { first: weights, pause: CHANNELS / of_step - 1 }
    }

    /// Lines that so many steps fetch which are taken together, if they fetch any.
    #[inline(always)]
    fn lines(self, together: usize) -> usize {
        (together >> self.pause.count_ones().min(usize::BITS - 1)).max(1)
    }

    /// From a weight on.
    pub(super) fn from(self, weight: usize) -> Next {
        Next { first: self.first.wrapping_add(weight), ..self }
    }
}

/// Where factors and addends of a [`Tile`] are, or null.
pub(super) fn pointers(scaled: Option<[&[f32]; 2]>) -> [*const f32; 2] {
    scaled.map_or([std::ptr::null(); 2], |scaled| scaled.map(<[f32]>::as_ptr))
}

/// Computes a tile.
///
/// # Safety
/// See [`Tile`]; the processor must have what the vectors need.
pub(super) type Sums = unsafe fn(&Tile);

/// Vectors of channels of a block.
pub(super) trait Lanes: Vector<Of = f32> {
    /// Steps that are taken together, a power of 2: where tiles have few places, few instructions are to be beside the
    /// multiplications, as another thread may share the core.
    const TOGETHER: usize;

    /// What the halves of a block see: each a number.
    ///
    /// # Safety
    /// See [`Vector`]. `lane` is the first channel of the vector.
    unsafe fn of_halves(from: [*const f32; 2], lane: usize) -> Self;

    /// What the quarters of a block see: the number at `from` for the channels of the first one, the fourth from there on for
    /// those of the next one, and so on.
    ///
    /// # Safety
    /// See [`Vector`]. `lane` is the first channel of the vector.
    unsafe fn of_quarters(from: *const f32, lane: usize) -> Self;

    /// # Safety
    /// See [`Vector`].
    unsafe fn mul(self, by: Self) -> Self;

    /// See [`relu`](crate::functions::relu).
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn relu(self) -> Self;

    /// As [`Float::larger`](crate::number::Float::larger), of numbers that aren't NaN.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn larger(self, than: Self) -> Self;

    /// As [`Float::smaller`](crate::number::Float::smaller), of numbers that aren't NaN.
    ///
    /// # Safety
    /// See [`Vector`].
    unsafe fn smaller(self, than: Self) -> Self;
}

/// What a place of the image gives to the channels of a vector.
pub(super) trait Seen {
    /// Elements from a place to the next.
    const DISTANCE: usize;
    /// Whether the number of a step is behind its offset. Else it is that of the step.
    const PICKS: bool;
    /// Whether halves of a block see different channels.
    const HALVES: bool;

    /// # Safety
    /// See [`Tile`]. `lane` is the first channel of the vector.
    unsafe fn load<V: Lanes>(from: [*const f32; 2], lane: usize) -> V;
}

/// One channel for all filters, at places that are so far apart.
pub(super) struct One<const DISTANCE: usize, const PICKS: bool = false>;

impl<const DISTANCE: usize, const PICKS: bool> Seen for One<DISTANCE, PICKS> {
    const DISTANCE: usize = DISTANCE;
    const PICKS: bool = PICKS;
    const HALVES: bool = false;

    #[inline(always)]
    unsafe fn load<V: Lanes>([from, _]: [*const f32; 2], _: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::splat(from) }
    }
}

/// The channel of each filter.
pub(super) struct Own;

impl Seen for Own {
    const DISTANCE: usize = CHANNELS;
    const PICKS: bool = false;
    const HALVES: bool = false;

    #[inline(always)]
    unsafe fn load<V: Lanes>([from, _]: [*const f32; 2], lane: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::load(from.add(lane)) }
    }
}

/// One channel for the filters of each half of a block.
pub(super) struct Halves<const PICKS: bool>;

impl<const PICKS: bool> Seen for Halves<PICKS> {
    const DISTANCE: usize = CHANNELS;
    const PICKS: bool = PICKS;
    const HALVES: bool = true;

    #[inline(always)]
    unsafe fn load<V: Lanes>(from: [*const f32; 2], lane: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::of_halves(from, lane) }
    }
}

/// One channel for the filters of each quarter of a block: those of all are side by side.
pub(super) struct Quarters;

impl Seen for Quarters {
    const DISTANCE: usize = CHANNELS;
    const PICKS: bool = false;
    const HALVES: bool = false;

    #[inline(always)]
    unsafe fn load<V: Lanes>([from, _]: [*const f32; 2], lane: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::of_quarters(from, lane) }
    }
}

/// A step that is picked: where it is seen from a place, and the number of its weights.
pub(super) type Step = [u32; 2];

/// The loops for one processor level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loops {
    /// Filters that are computed together, a multiple of the channels of a block.
    pub(super) filters: usize,
    /// For 1, 2, .. places.
    pub(super) sums: &'static [Sums],
}

/// Does something with the sums of each of `R` places, without a loop: if it weren't unrolled, sums would lie in memory. Beyond
/// them nothing is compiled.
macro_rules! each_place {
    ($sums:ident, |$at:ident, $own:ident| $work:expr) => {
        each_place!($sums, |$at, $own| $work; 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    ($sums:ident, |$at:ident, $own:ident| $work:expr; $($place:literal)*) => {
        $(if const { $place < R } && let Some($own) = $sums.get_mut($place) {
            let $at = $place;
            $work
        })*
    };
}
pub(super) use each_place;

/// # Safety
/// See [`Tile`] and [`Vector`].
#[inline(always)]
unsafe fn sums<V: Lanes, S: Seen, const W: usize, const R: usize>(tile: &Tile) {
    const { assert!(R <= 14, "`each_place` has as many") };
    // SAFETY: the caller's.
    unsafe {
        let (mut sums, mut next) = ([[V::zero(); W]; R], tile.next.first);
        macro_rules! step {
            ($step:expr) => {{
                let step = $step;
                let [offsets, others] = tile.offsets;
                let at = if S::PICKS { 2 * step } else { step };
                let number = if S::PICKS { *offsets.add(at + 1) as usize } else { step };
                let first = tile.image[0].add(*offsets.add(at) as usize);
                let second = if S::HALVES { tile.image[1].add(*others.add(at) as usize) } else { first };
                let mut weights = [V::zero(); W];
                for (at, weights) in weights.iter_mut().enumerate() {
                    *weights = V::load(tile.weights.add((number * W + at) * V::COUNT));
                }
                for (place, sums) in sums.iter_mut().enumerate() {
                    let image = [first, second].map(|image| image.add(place * S::DISTANCE));
                    for (at, (sum, weights)) in sums.iter_mut().zip(weights).enumerate() {
                        *sum = weights.mul_add(S::load(image, at * V::COUNT), *sum);
                    }
                }
            }};
        }
        let (lines, rest) = (tile.next.lines(V::TOGETHER), tile.steps % V::TOGETHER);
        for first in (0..tile.steps - rest).step_by(V::TOGETHER) {
            if first & tile.next.pause == 0 {
                for _ in 0..lines {
                    fetch::<true, _>(next);
                    next = next.wrapping_add(CHANNELS);
                }
            }
            for at in 0..V::TOGETHER {
                step!(first + at);
            }
        }
        for step in tile.steps - rest..tile.steps {
            step!(step);
        }
        finish(tile, &mut sums);
    }
}

/// The number of the first element of a vector in the output.
#[inline(always)]
fn element<V: Lanes>(tile: &Tile, place: usize, lane: usize) -> usize {
    let first = lane * V::COUNT;
    first / CHANNELS * tile.out_block + place * CHANNELS + first % CHANNELS
}

/// Makes of the sums of these steps what is written, and writes it.
///
/// # Safety
/// See [`Tile`] and [`Vector`].
// Of code that isn't optimised, each loop would have megabytes.
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn finish<V: Lanes, const W: usize, const R: usize>(tile: &Tile, sums: &mut [[V; W]; R]) {
    // SAFETY: the caller's.
    unsafe {
        if !tile.first {
            each_place!(sums, |at, sums| for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(tile.out.add(element::<V>(tile, at, lane))).add(*sum);
            });
        }
        if !tile.bias.is_null() {
            each_place!(sums, |_at, sums| for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(V::load(tile.bias.add(lane * V::COUNT)));
            });
        }
        if let [factor, addend] = tile.scaled
            && !factor.is_null()
        {
            each_place!(sums, |_at, sums| for (lane, sum) in sums.iter_mut().enumerate() {
                let lane = lane * V::COUNT;
                *sum = sum.mul(V::load(factor.add(lane))).add(V::load(addend.add(lane)));
            });
        }
        if !tile.beside.is_null() {
            each_place!(sums, |at, sums| for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(V::load(tile.beside.add(element::<V>(tile, at, lane))));
            });
        }
        match tile.activation {
            Activation::None | Activation::Gated => {}
            Activation::Relu => activate(sums, Relu),
            Activation::Within { low, high } => activate(sums, Within::new(low, high)),
            Activation::HardSwish => activate(sums, HardSwish::new()),
        }
        each_place!(sums, |at, sums| for (lane, sum) in sums.iter().enumerate() {
            sum.store(tile.out.add(element::<V>(tile, at, lane)));
        });
    }
}

/// # Safety
/// See [`After`].
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn activate<V: Lanes, const W: usize, const R: usize>(sums: &mut [[V; W]; R], after: impl After<V>) {
    each_place!(sums, |_at, sums| for sum in sums {
        // SAFETY: the caller's.
        *sum = unsafe { after.of(*sum) };
    });
}

/// The loops of a function `$of::<S, W, R>`, for `$w` vectors and as many places as there are numbers.
macro_rules! loops_of {
    ($vector:ty, $of:ident, $seen:ty, $w:literal; $($places:literal)*) => {
        Loops { filters: $w * <$vector as Vector>::COUNT, sums: &[$($of::<$seen, $w, $places>),*] }
    };
}

mod plain {
    use super::super::super::vectors::{Plain, Vector};
    use super::{CHANNELS, Lanes, Seen, Tile, sums};
    use crate::functions::relu;
    use crate::number::Float;

    pub(super) type Four = Plain<f32, 4>;

    impl Lanes for Four {
        const TOGETHER: usize = 1;

        #[inline(always)]
        unsafe fn of_halves([first, second]: [*const f32; 2], lane: usize) -> Self {
            // SAFETY: the caller's, here and below.
            unsafe { Four::splat(if lane < CHANNELS / 2 { first } else { second }) }
        }
        #[inline(always)]
        unsafe fn of_quarters(from: *const f32, lane: usize) -> Self {
            unsafe { Four::splat(from.add(lane)) }
        }
        #[inline(always)]
        unsafe fn mul(self, by: Self) -> Self {
            let mut out = self;
            out.0.iter_mut().zip(&by.0).for_each(|(out, by)| *out *= *by);
            out
        }
        #[inline(always)]
        unsafe fn relu(self) -> Self {
            Plain(self.0.map(relu))
        }
        #[inline(always)]
        unsafe fn larger(self, than: Self) -> Self {
            let mut out = self;
            out.0.iter_mut().zip(&than.0).for_each(|(out, than)| *out = out.larger(*than));
            out
        }
        #[inline(always)]
        unsafe fn smaller(self, than: Self) -> Self {
            let mut out = self;
            out.0.iter_mut().zip(&than.0).for_each(|(out, than)| *out = out.smaller(*than));
            out
        }
    }

    /// # Safety
    /// See [`Tile`].
    pub(super) unsafe fn of<S: Seen, const W: usize, const R: usize>(tile: &Tile) {
        // SAFETY: the caller's.
        unsafe { sums::<Four, S, W, R>(tile) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::super::vectors::Vector;
    use super::super::super::vectors::x86::{F32x8, F32x16};
    use super::{CHANNELS, Lanes, Seen, Tile, sums};
    use std::arch::x86_64::*;

    impl Lanes for F32x16 {
        const TOGETHER: usize = 1;

        #[inline(always)]
        unsafe fn of_halves([first, second]: [*const f32; 2], _: usize) -> Self {
            // SAFETY: the caller's, here and below.
            F32x16(unsafe { _mm512_mask_blend_ps(0xff00, _mm512_set1_ps(*first), _mm512_set1_ps(*second)) })
        }
        #[inline(always)]
        unsafe fn of_quarters(from: *const f32, _: usize) -> Self {
            // Only the first number of each quarter is read.
            F32x16(unsafe { _mm512_permute_ps::<0>(_mm512_maskz_loadu_ps(0x1111, from)) })
        }
        #[inline(always)]
        unsafe fn mul(self, by: Self) -> Self {
            F32x16(unsafe { _mm512_mul_ps(self.0, by.0) })
        }
        #[inline(always)]
        unsafe fn relu(self) -> Self {
            // The second one if they are equal, or one is NaN.
            F32x16(unsafe { _mm512_max_ps(_mm512_setzero_ps(), self.0) })
        }
        #[inline(always)]
        unsafe fn larger(self, than: Self) -> Self {
            unsafe {
                let own = _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(self.0, than.0);
                F32x16(_mm512_mask_blend_ps(own, than.0, self.0))
            }
        }
        #[inline(always)]
        unsafe fn smaller(self, than: Self) -> Self {
            unsafe {
                let own = _mm512_cmp_ps_mask::<_CMP_NGE_UQ>(self.0, than.0);
                F32x16(_mm512_mask_blend_ps(own, than.0, self.0))
            }
        }
    }

    impl Lanes for F32x8 {
        const TOGETHER: usize = 4;

        #[inline(always)]
        unsafe fn of_halves([first, second]: [*const f32; 2], lane: usize) -> Self {
            // SAFETY: the caller's, here and below.
            unsafe { F32x8::splat(if lane == 0 { first } else { second }) }
        }
        #[inline(always)]
        unsafe fn of_quarters(from: *const f32, lane: usize) -> Self {
            unsafe {
                let [first, second] = [0, CHANNELS / 4].map(|quarter| F32x8::splat(from.add(lane + quarter)));
                F32x8(_mm256_blend_ps::<0xf0>(first.0, second.0))
            }
        }
        #[inline(always)]
        unsafe fn mul(self, by: Self) -> Self {
            F32x8(unsafe { _mm256_mul_ps(self.0, by.0) })
        }
        #[inline(always)]
        unsafe fn relu(self) -> Self {
            // As above.
            F32x8(unsafe { _mm256_max_ps(_mm256_setzero_ps(), self.0) })
        }
        #[inline(always)]
        unsafe fn larger(self, than: Self) -> Self {
            unsafe {
                let own = _mm256_cmp_ps::<_CMP_NLE_UQ>(self.0, than.0);
                F32x8(_mm256_blendv_ps(than.0, self.0, own))
            }
        }
        #[inline(always)]
        unsafe fn smaller(self, than: Self) -> Self {
            unsafe {
                let own = _mm256_cmp_ps::<_CMP_NGE_UQ>(self.0, than.0);
                F32x8(_mm256_blendv_ps(than.0, self.0, own))
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn wide<S: Seen, const W: usize, const R: usize>(tile: &Tile) {
        // SAFETY: the caller's; these are the features of the vector.
        unsafe { sums::<F32x16, S, W, R>(tile) }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn narrow<S: Seen, const W: usize, const R: usize>(tile: &Tile) {
        // SAFETY: as above.
        unsafe { sums::<F32x8, S, W, R>(tile) }
    }
}

/// The loops for this processor: of two blocks of filters if there are such loops and `two` is asked for, else of one.
pub(super) fn loops<S: Seen>(two: bool) -> Loops {
    #[cfg(target_arch = "x86_64")]
    match crate::cpu::level() {
        4.. => {
            use super::super::vectors::x86::F32x16;
            use x86::wide;
            return match two {
                true => loops_of!(F32x16, wide, S, 2; 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
                false => loops_of!(F32x16, wide, S, 1; 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
            };
        }
        3 => {
            use super::super::vectors::x86::F32x8;
            use x86::narrow;
            return loops_of!(F32x8, narrow, S, 2; 1 2 3 4 5 6);
        }
        _ => {}
    }
    use plain::{Four, of};
    let _ = two;
    loops_of!(Four, of, S, 4; 1 2)
}
