//! The bytes of floats, where sums of integers leave them in doubt.
//!
//! Sums of integers are exact, those of floats are rounded at each step. A byte is certain if all numbers that the floats may
//! have given become the same one. How far these are from the exact sum follows from partial sums: with `u = 2^-24`, each of
//! the `n` steps of a [block](super::super::super::BLOCK) changes its sum by at most `u * |s|` more, so it is off by at most
//! `u * (|s_1| + .. + |s_n|)` then. Few of these sums are looked at ([`Check`](super::filters::Check)); each of the others
//! differs from the one that is nearest by no more than the product of the lengths of what is seen and of the weights
//! between. Operands are rounded once each, when they become floats. So are the totals of blocks: a total is no more than
//! the sums of its blocks, each of which counts once for each total then.
//!
//! Where that leaves a doubt, the floats are summed as a product of them is, and there is none.

#![allow(unsafe_code)] // pointers with offsets: `Places` says what they must point to

use super::super::super::vectors::Vector;
use super::super::CHANNELS;
use super::filters::{SOME, Steps};
use super::quantize::{Doubt, Doubts, Numbers, Quantize, Row, byte};
use super::tile::Seen;

/// Half of the distance from 1 to the next float32: what rounding changes at most, of a number.
const ROUNDING: f32 = f32::EPSILON / 2.0;

/// What these margins may be off themselves, as they are floats; and what is left out, the squares of [`ROUNDING`]: less than
/// a part in 10,000 of what counts, in as many steps as a block has.
const SLACK: f32 = 1.001;

/// How often a term counts beside partial sums: for its operands.
pub(super) const OTHERS: usize = 2;

/// What becomes of the margin for each unit that a filter's sum is off.
pub(super) fn rounding(factor: f32) -> f32 {
    factor * (ROUNDING * SLACK)
}

/// The margin of all else: of a sum that becomes a float, of factors, addends and quotients, where these matter.
pub(super) fn slack(addend: f32) -> f32 {
    8.0 * ROUNDING * (300.0 + addend.abs())
}

/// Places of the output that follow each other, and a vector of filters.
///
/// # Safety
/// As for [`Tile`](super::tile::Tile). The image is read at `image + places(place) + offset`; `weights` are those of the
/// vector, and so are the numbers, whose rows are as far apart as steps. The places of `out` are initialised.
pub(super) struct Places<'a> {
    pub(super) image: *const u8,
    pub(super) places: &'a dyn Fn(usize) -> usize,
    pub(super) offsets: *const u32,
    pub(super) weights: *const u32,
    /// The first filter of the vector in its block.
    pub(super) lane: usize,
    pub(super) steps: &'a Steps,
    pub(super) dequantized: Dequantized<'a>,
    pub(super) numbers: Numbers,
    /// The scale of the output, and its zero point.
    pub(super) by: f32,
    pub(super) zero: f32,
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

/// Settles the doubts of the filters of a vector, from a number on.
///
/// # Safety
/// See [`Places`]; the processor must have what the vectors need.
pub(super) type Settle = unsafe fn(&Places<'_>, &Doubts, usize);

/// # Safety
/// See [`Places`].
#[inline(always)]
pub(super) unsafe fn settle<V: Quantize, S: Seen>(places: &Places<'_>, doubts: &Doubts, filter: usize) {
    let mut all = doubts.of(filter, V::COUNT);
    loop {
        let (mut few, mut count) = ([Doubt::default(); 8], 0);
        for (to, doubt) in few.iter_mut().zip(all.by_ref()) {
            (*to, count) = (doubt, count + 1);
        }
        let few = few.get(..count).unwrap_or(&[]);
        // As many sums as fill the time that one of them takes, or half of them.
        // SAFETY: the caller's.
        match count {
            0 => return,
            1..5 => unsafe { some::<V, S, 4>(places, few) },
            _ => unsafe { some::<V, S, 8>(places, few) },
        }
    }
}

/// Settles at most `N` doubts.
///
/// # Safety
/// See [`Places`].
#[inline(always)]
unsafe fn some<V: Quantize, S: Seen, const N: usize>(places: &Places<'_>, doubts: &[Doubt]) {
    // The last one again and again, if there are fewer.
    let all = std::array::from_fn(|at| doubts.get(at).or(doubts.last()).map_or(0, |doubt| doubt.place.into()));
    // SAFETY: the caller's.
    unsafe {
        for (doubt, sums) in doubts.iter().zip(floats::<V, S, N>(places, all)) {
            write::<V>(places, doubt, sums);
        }
    }
}

/// The sums of floats, as a product of them has them.
///
/// # Safety
/// See [`Places`].
#[inline(always)]
unsafe fn floats<V: Quantize, S: Seen, const N: usize>(of: &Places<'_>, places: [usize; N]) -> [V::Floats; N] {
    let (none, taps) = (unsafe { V::Floats::zero() }, of.steps.taps);
    let mut totals = [none; N];
    // SAFETY: the caller's.
    unsafe {
        let mut images = [of.image; N];
        for (image, place) in images.iter_mut().zip(places) {
            *image = image.add((of.places)(place));
        }
        for part in &of.steps.parts {
            let mut sums = [none; N];
            if taps == 1 {
                // All channels of a quad follow each other: those beyond the last have weights of 0.
                for step in part.steps(taps) {
                    for byte in 0..SOME {
                        add::<V, S, N>(of, &images, step, byte, &mut sums);
                    }
                }
            } else {
                for (channel, own) in part.channels(taps) {
                    let first = part.step(channel, taps);
                    for tap in own {
                        add::<V, S, N>(of, &images, first + tap, channel % SOME, &mut sums);
                    }
                }
            }
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total = total.add(sum);
            }
        }
    }
    totals
}

/// Adds the term of a channel of a step to each sum.
///
/// # Safety
/// See [`Places`].
#[inline(always)]
unsafe fn add<V: Quantize, S: Seen, const N: usize>(
    of: &Places<'_>,
    images: &[*const u8; N],
    step: usize,
    byte: usize,
    sums: &mut [V::Floats; N],
) {
    // SAFETY: the caller's.
    unsafe {
        let (scales, none) = (of.numbers.load::<V::Floats>(Row::Scale, 0), V::Floats::zero());
        let weight = V::load(of.weights.add(step * of.numbers.apart)).byte(byte).floats().mul_add(scales, none);
        let offset = *of.offsets.add(step) as usize + byte;
        for (image, sum) in images.iter().zip(sums) {
            *sum = S::float::<V>(image.add(offset), of.lane, &of.dequantized).mul_add(weight, *sum);
        }
    }
}

/// Writes the bytes of sums of floats that were in doubt.
///
/// # Safety
/// See [`Places`].
#[inline(always)]
unsafe fn write<V: Quantize>(of: &Places<'_>, doubt: &Doubt, sums: V::Floats) {
    let mut all = [0.0; CHANNELS];
    // SAFETY: the caller's; vectors have so many lanes.
    unsafe {
        sums.add(of.numbers.load(Row::FloatBias, 0)).store(all.as_mut_ptr());
        for (lane, sum) in all.iter().enumerate().filter(|(lane, _)| doubt.lanes >> lane & 1 == 1) {
            of.out.add(usize::from(doubt.place) * CHANNELS + lane).write(byte(*sum / of.by, of.zero));
        }
    }
}
