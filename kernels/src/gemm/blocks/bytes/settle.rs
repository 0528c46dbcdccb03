//! The bytes of floats, where sums of integers leave them in doubt.
//!
//! Sums of integers are exact, those of floats are rounded at each step. A byte is certain if all numbers that the floats may
//! have given become the same one. How far these are from the exact sum follows from the magnitudes of partial sums: first
//! from lengths of vectors ([`slope`]), which is cheap and coarse, then, where that leaves a doubt, from the integers
//! themselves, a few steps at a time ([`margins`]). Where a doubt is left, the floats are summed as a product of them is
//! ([`floats`]), and there is none.
//!
//! With `u = 2^-24`: each of `n` steps of a block rounds the partial sum there, which is off by at most
//! `u * (|s_1| + .. + |s_n|)` then. Operands are rounded once each, when they become floats, and so is each sum of blocks.

#![allow(unsafe_code)] // pointers with offsets: `Places` says what they must point to

use super::super::super::BLOCK;
use super::super::super::vectors::Vector;
use super::super::{CHANNELS, COLUMNS};
use super::SOME;
use super::quantize::{Doubt, Doubts, Limits, Numbers, Quantize};
use super::tile::Seen;

/// Half of the distance from 1 to the next float32: what rounding changes at most, of a number.
const ROUNDING: f32 = f32::EPSILON / 2.0;

/// What sums of these margins, and the square of [`ROUNDING`], may be off.
const SLACK: f32 = 1.01;

/// Roundings beside those of steps: two of operands, and what is left out of second order.
const OTHERS: usize = 3;

/// How often term `k` of a sum of `steps` is rounded.
pub(super) fn roundings(k: usize, steps: usize) -> usize {
    let block = k / BLOCK;
    let end = steps.min((block + 1) * BLOCK);
    OTHERS + end - k + steps.div_ceil(BLOCK) - block
}

/// What the margin of a filter is for each unit of the length of what it sees, if `roundings` is the length of its weights
/// times [`roundings`], or for all that it may see if it is the sum of their magnitudes.
pub(super) fn slope(factor: f32, roundings: f32) -> f32 {
    factor * roundings * (ROUNDING * SLACK)
}

/// The margin of all else: of a sum that becomes a float, of factors, addends and quotients, where these matter.
pub(super) fn slack(addend: f32) -> f32 {
    8.0 * ROUNDING * (300.0 + addend.abs())
}

/// Places of the output that follow each other, and a vector of filters.
///
/// # Safety
/// As for [`Tile`](super::tile::Tile). The image is read at `image + places(place) + offset`; `weights` are those of the
/// vector, `stride` from a step to the next; `scales`, `biases` and `numbers` have one for each filter of it. The places of
/// `out` are initialised.
pub(super) struct Places<'a> {
    pub(super) image: *const u8,
    pub(super) places: &'a dyn Fn(usize) -> usize,
    pub(super) offsets: *const u32,
    pub(super) weights: *const u32,
    pub(super) stride: usize,
    /// The first filter of the vector in its block.
    pub(super) lane: usize,
    pub(super) steps: usize,
    pub(super) taps: usize,
    /// Channels that a filter sees.
    pub(super) channels: usize,
    pub(super) dequantized: Dequantized<'a>,
    pub(super) scales: *const f32,
    pub(super) biases: *const f32,
    /// The scale of the output.
    pub(super) by: f32,
    pub(super) numbers: Numbers,
    pub(super) limits: Limits,
    pub(super) out: *mut u8,
}

/// What bytes of the image are.
#[derive(Clone, Copy)]
pub(super) struct Dequantized<'a> {
    pub(super) outside: u8,
    pub(super) scale: f32,
    /// Of each byte.
    pub(super) all: &'a [f32; 256],
}

/// What settles the doubts of a vector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settler {
    /// Filters of a vector.
    pub(super) lanes: usize,
    /// # Safety
    /// See [`Places`]; the number is that of the vector among those of the doubts.
    pub(super) settle: unsafe fn(&Places<'_>, &Doubts, usize),
}

/// Places that are settled together.
const ABREAST: usize = 4;

/// # Safety
/// See [`Places`].
#[inline(always)]
pub(super) unsafe fn settle<V: Quantize, S: Seen>(places: &Places<'_>, doubts: &Doubts, vector: usize) {
    let (mut own, mut count) = ([Doubt::default(); COLUMNS], 0);
    for (to, doubt) in own.iter_mut().zip(doubts.of(vector)) {
        (*to, count) = (doubt, count + 1);
    }
    let mut own = own.get_mut(..count).unwrap_or(&mut []);
    // SAFETY: the caller's.
    unsafe {
        if !S::ALONE {
            for doubts in own.chunks_mut(ABREAST) {
                let lanes = narrow::<V, S>(places, some(doubts));
                doubts.iter_mut().zip(lanes).for_each(|(doubt, lanes)| doubt.lanes &= lanes);
            }
            let mut left = 0;
            for at in 0..own.len() {
                own.swap(left, at);
                left += usize::from(own.get(left).is_some_and(|doubt| doubt.lanes != 0));
            }
            own = own.get_mut(..left).unwrap_or(&mut []);
        }
        for doubts in own.chunks(ABREAST) {
            let sums = floats::<V, S>(places, some(doubts));
            for (doubt, sums) in doubts.iter().zip(sums) {
                write::<V>(places, doubt, sums);
            }
        }
    }
}

/// The places of doubts; the last one again and again if there are fewer.
#[inline(always)]
fn some(doubts: &[Doubt]) -> [usize; ABREAST] {
    std::array::from_fn(|at| doubts.get(at).or(doubts.last()).map_or(0, |doubt| doubt.place.into()))
}

/// The lanes that are still in doubt.
///
/// # Safety
/// See [`Places`].
#[inline(always)]
unsafe fn narrow<V: Quantize, S: Seen>(of: &Places<'_>, places: [usize; ABREAST]) -> [u16; ABREAST] {
    /// Steps of a product that are seen as one, at least.
    const STEPS: usize = 32;
    let quads = STEPS.div_ceil(SOME * of.taps.max(1));
    let (chunk, terms) = (quads * of.taps.max(1), quads * of.taps.max(1) * SOME);
    let [ones, outside] = [[1; SOME], [of.dequantized.outside; SOME]].map(u32::from_le_bytes);
    let [less, minus] = [u32::from(of.dequantized.outside).wrapping_neg(), u32::MAX];
    let (length, others) = (terms as f32, (of.channels * of.taps).div_ceil(BLOCK) + OTHERS);
    let mut lanes = [0; ABREAST];
    // SAFETY: the caller's.
    unsafe {
        let (ones, outside) = (V::splat(&ones), V::splat(&outside));
        let (less, minus) = (V::splat(&less), V::splat(&minus));
        let (length, others) = (V::Floats::splat(&length), V::Floats::splat(&(others as f32)));
        let images = places.map(|place| of.image.add((of.places)(place)));
        // Sums of products, of weights, and of magnitudes; what was there where the block of floats began.
        let (mut sums, mut weights) = ([V::zero(); ABREAST], V::zero());
        let (mut begun, mut begun_within) = ([V::zero(); ABREAST], [V::Floats::zero(); ABREAST]);
        let (mut margins, mut sizes) = ([V::Floats::zero(); ABREAST], [V::Floats::zero(); ABREAST]);
        for (at, start) in (0..of.steps).step_by(chunk.max(1)).enumerate() {
            let before = weights;
            let (mut within, starts) = ([V::zero(); ABREAST], sums);
            for step in start..of.steps.min(start + chunk) {
                let weight = V::load(of.weights.add(step * of.stride));
                let (size, offset) = (weight.sizes(), *of.offsets.add(step) as usize);
                weights = ones.dot(weight, weights);
                for ((image, sum), within) in images.iter().zip(&mut sums).zip(&mut within) {
                    let seen = S::load::<V>(image.add(offset), 0);
                    *sum = seen.dot(weight, *sum);
                    *within = seen.apart(outside).dot(size, *within);
                }
            }
            let (first, end) = (at * terms, at * terms + terms);
            for place in 0..ABREAST {
                // The sum, less zero points.
                let sum = before.mul_add(less, starts[place]);
                if first % BLOCK == 0 {
                    (begun[place], begun_within[place]) = (sum, V::Floats::zero());
                }
                let within = within[place].floats();
                let apart = V::magnitudes(begun[place].mul_add(minus, sum).floats());
                margins[place] = apart.add(within).add(begun_within[place]).mul_add(length, margins[place]);
                sizes[place] = sizes[place].add(within);
                // A block of floats begins among these terms.
                if first / BLOCK != (end - 1) / BLOCK {
                    (begun[place], begun_within[place]) = (sum, within);
                }
            }
        }
        let rounding = V::Floats::splat(&(ROUNDING * SLACK));
        let slope = V::Floats::load(of.numbers.factors).mul_add(rounding, V::Floats::zero());
        for (place, lanes) in lanes.iter_mut().enumerate() {
            let margin = sizes[place].mul_add(others, margins[place]);
            let margin = margin.mul_add(slope, V::Floats::load(of.numbers.slacks));
            *lanes = V::doubtful(sums[place].scaled(&of.numbers), margin, of.limits);
        }
    }
    lanes
}

/// The sums of floats, as a product of them has them.
///
/// # Safety
/// See [`Places`].
#[inline(always)]
unsafe fn floats<V: Quantize, S: Seen>(of: &Places<'_>, places: [usize; ABREAST]) -> [V::Floats; ABREAST] {
    // SAFETY: the caller's.
    unsafe {
        let images = places.map(|place| of.image.add((of.places)(place)));
        let (scales, none) = (V::Floats::load(of.scales), V::Floats::zero());
        let (mut totals, mut sums, mut terms) = ([none; ABREAST], [none; ABREAST], 0);
        for (channel, tap) in (0..of.channels).flat_map(|channel| (0..of.taps).map(move |tap| (channel, tap))) {
            let (step, byte) = (channel / SOME * of.taps + tap, channel % SOME);
            let weight = V::load(of.weights.add(step * of.stride)).byte(byte).floats().mul_add(scales, none);
            let offset = *of.offsets.add(step) as usize + byte;
            for (image, sum) in images.iter().zip(&mut sums) {
                *sum = S::float::<V>(image.add(offset), of.lane, &of.dequantized).mul_add(weight, *sum);
            }
            terms += 1;
            if terms % BLOCK == 0 {
                for (total, sum) in totals.iter_mut().zip(&mut sums) {
                    (*total, *sum) = (total.add(*sum), none);
                }
            }
        }
        for (total, sum) in totals.iter_mut().zip(sums) {
            *total = total.add(sum);
        }
        totals
    }
}

/// Writes the bytes of sums of floats that were in doubt.
///
/// # Safety
/// See [`Places`].
#[inline(always)]
unsafe fn write<V: Quantize>(of: &Places<'_>, doubt: &Doubt, sums: V::Floats) {
    let mut all = [0.0; CHANNELS];
    // SAFETY: the caller's; no vector has more lanes.
    unsafe {
        sums.add(V::Floats::load(of.biases)).store(all.as_mut_ptr());
        for (lane, sum) in all.iter().enumerate().filter(|(lane, _)| doubt.lanes >> lane & 1 == 1) {
            of.out.add(usize::from(doubt.place) * CHANNELS + lane).write(of.limits.byte(*sum / of.by));
        }
    }
}

mod plain {
    use super::super::super::super::vectors::Plain;
    use super::{Doubts, Places, Seen, settle};

    /// # Safety
    /// See [`Places`].
    pub(super) unsafe fn of<S: Seen>(places: &Places<'_>, doubts: &Doubts, vector: usize) {
        // SAFETY: the caller's.
        unsafe { settle::<Plain<u32, 8>, S>(places, doubts, vector) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::super::super::vectors::x86::{U32x8, U32x16};
    use super::{Doubts, Places, Seen, settle};

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
    pub(super) unsafe fn wide<S: Seen>(places: &Places<'_>, doubts: &Doubts, vector: usize) {
        // SAFETY: the caller's; these are the features of the vector.
        unsafe { settle::<U32x16, S>(places, doubts, vector) }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn narrow<S: Seen>(places: &Places<'_>, doubts: &Doubts, vector: usize) {
        // SAFETY: as above.
        unsafe { settle::<U32x8, S>(places, doubts, vector) }
    }
}

/// The one for the vectors of the [loops](super::tile::loops) of this processor.
pub(super) fn settler<S: Seen>() -> Settler {
    #[cfg(target_arch = "x86_64")]
    match crate::cpu::level() {
        5.. => return Settler { lanes: 16, settle: x86::wide::<S> },
        3.. => return Settler { lanes: 8, settle: x86::narrow::<S> },
        _ => {}
    }
    Settler { lanes: 8, settle: plain::of::<S> }
}
