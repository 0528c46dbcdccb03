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

#![allow(unsafe_code)] // pointers with offsets: `Open` says what they point to

use super::super::super::vectors::Vector;
use super::super::CHANNELS;
use super::filters::{SOME, Steps};
use super::quantize::{Quantize, Row, byte};
use super::tile::Seen;
use std::mem::MaybeUninit;
use std::ops::Range;

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

/// A byte of the output that is in doubt, and what it is a sum of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    /// What its place sees: its own channel, if filters see but one.
    pub(super) image: *const u8,
    /// The weights of its filter, and the numbers that follow them.
    pub(super) weights: *const u32,
    pub(super) out: *mut u8,
}

/// What the sums of all bytes that are in doubt have in common.
#[derive(Debug)]
pub(super) struct Common<'a> {
    pub(super) steps: &'a Steps,
    pub(super) offsets: &'a [u32],
    /// How far apart the weights of a filter are.
    pub(super) apart: usize,
    /// The zero point of the image, and its scale.
    pub(super) outside: u8,
    pub(super) scale: f32,
    /// The scale of the output, and its zero point.
    pub(super) by: f32,
    pub(super) zero: u8,
}

/// Settles bytes that are in doubt, at most as many as two vectors have lanes.
///
/// # Safety
/// The processor must have what the vectors need. Images are readable at the offsets of all steps, as for
/// [`Tile`](super::tile::Tile); `out` is a byte of this thread.
pub(super) type Settle = unsafe fn(&Common<'_>, &[Open]);

/// Bytes that are settled together, at most: two vectors of them.
pub(super) const LANES: usize = 2 * CHANNELS;

/// Steps that are gathered before they are added, at most: the channels of a quad at each tap. And those of places without
/// others around them.
const GATHERED: usize = 64;
const ALONE: usize = 16;

/// What each lane sees at some steps, and its weights: the lanes of a step follow each other.
struct Gathered {
    steps: Range<usize>,
    quads: [[MaybeUninit<u32>; GATHERED * LANES]; 2],
}

impl Gathered {
    /// Gathers some steps, unless the first one is there: no more than fit.
    ///
    /// # Safety
    /// See [`Settle`].
    #[inline(always)]
    unsafe fn have<S: Seen>(&mut self, of: &Common<'_>, open: &[Open], steps: Range<usize>) {
        if self.steps.contains(&steps.start) {
            return;
        }
        self.steps = steps;
        let ([seen, weights], lanes) = (&mut self.quads, open.len());
        for (at, step) in self.steps.clone().enumerate() {
            let row = step * of.apart;
            // Those of a step follow each other, as stores to lines of their own take twice the time. And processors gather
            // slower than one by one, so that is what they are told.
            for (lane, open) in open.iter().enumerate() {
                let to = at * lanes + lane;
                // SAFETY: the caller's; there is room for so many steps.
                unsafe {
                    let quad = S::quad(open.image.add(*of.offsets.get_unchecked(step) as usize));
                    seen.get_unchecked_mut(to).write(quad);
                    weights.get_unchecked_mut(to).write(open.weights.add(row).read_volatile());
                }
            }
        }
    }

    /// Adds the terms of one of the four bytes of a step, which is there, to sums: the image has a scale, and a number that is
    /// added before.
    ///
    /// # Safety
    /// See [`Settle`].
    #[inline(always)]
    unsafe fn add<V: Quantize, const N: usize>(
        &self,
        (step, byte): (usize, usize),
        [scale, outside]: [V::Floats; 2],
        scales: [V::Floats; N],
        sums: &mut [V::Floats; N],
    ) {
        let [seen, weights] = self.quads.each_ref().map(|of| of.as_ptr().cast::<u32>());
        // SAFETY: the caller's.
        unsafe {
            let none = V::Floats::zero();
            for (at, (sum, scales)) in sums.iter_mut().zip(scales).enumerate() {
                let from = ((step - self.steps.start) * N + at) * V::COUNT;
                let seen = V::load(seen.add(from)).unsigned(byte).floats().add(outside).mul_add(scale, none);
                let weights = V::load(weights.add(from)).byte(byte).floats().mul_add(scales, none);
                *sum = seen.mul_add(weights, *sum);
            }
        }
    }
}

/// # Safety
/// See [`Settle`].
#[inline(always)]
pub(super) unsafe fn settle<V: Quantize, S: Seen>(of: &Common<'_>, open: &[Open]) {
    // SAFETY: the caller's.
    match open.len() <= V::COUNT {
        true => unsafe { some::<V, S, 1>(of, open) },
        false => unsafe { some::<V, S, 2>(of, open) },
    }
}

/// Settles at most `N` vectors of bytes.
///
/// # Safety
/// See [`Settle`].
#[inline(always)]
unsafe fn some<V: Quantize, S: Seen, const N: usize>(of: &Common<'_>, open: &[Open]) {
    let Some(last) = open.last() else { return };
    // The last one again and again, if there are fewer.
    let all: [Open; LANES] = std::array::from_fn(|lane| *open.get(lane).unwrap_or(last));
    let all = all.get(..N * V::COUNT).unwrap_or(&all);
    let (mut scales, mut sums) = ([0.0; LANES], [0.0; LANES]);
    // SAFETY: the caller's.
    unsafe {
        let number =
            |open: &Open, row: Row| f32::from_bits(open.weights.add((of.steps.count + row as usize) * of.apart).read());
        scales.iter_mut().zip(all).for_each(|(scale, open)| *scale = number(open, Row::Scale));
        let scales = std::array::from_fn(|at| V::Floats::load(scales.as_ptr().add(at * V::COUNT)));
        for (at, sum) in floats::<V, S, N>(of, all, scales).into_iter().enumerate() {
            sum.store(sums.as_mut_ptr().add(at * V::COUNT));
        }
        for (open, sum) in open.iter().zip(sums) {
            open.out.write(byte((sum + number(open, Row::FloatBias)) / of.by, of.zero.into()));
        }
    }
}

/// The sums of floats, as a product of them has them.
///
/// # Safety
/// See [`Settle`].
#[inline(always)]
unsafe fn floats<V: Quantize, S: Seen, const N: usize>(
    of: &Common<'_>,
    open: &[Open],
    scales: [V::Floats; N],
) -> [V::Floats; N] {
    let taps = of.steps.taps;
    let mut gathered = Gathered { steps: 0..0, quads: [const { [MaybeUninit::uninit(); GATHERED * LANES] }; 2] };
    // SAFETY: the caller's.
    unsafe {
        let none = V::Floats::zero();
        let image = [of.scale, -f32::from(of.outside)].map(|number| V::Floats::splat(&number));
        let mut totals = [none; N];
        for part in &of.steps.parts {
            let (mut sums, steps) = ([none; N], part.steps(taps));
            if taps == 1 {
                // All channels of a quad follow each other: those beyond the last have weights of 0.
                for step in steps.clone() {
                    gathered.have::<S>(of, open, step..steps.end.min(step + ALONE));
                    for byte in 0..SOME {
                        gathered.add::<V, N>((step, byte), image, scales, &mut sums);
                    }
                }
            } else {
                for (channel, own) in part.channels(taps) {
                    let (first, mut taps) = (part.step(channel, taps), own);
                    while !taps.is_empty() {
                        let start = first + taps.start;
                        let end = (first + of.steps.taps).min(start + GATHERED);
                        gathered.have::<S>(of, open, start..end);
                        let end = taps.end.min(gathered.steps.end - first);
                        for tap in taps.start..end {
                            gathered.add::<V, N>((first + tap, channel % SOME), image, scales, &mut sums);
                        }
                        taps.start = end;
                    }
                }
            }
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total = total.add(sum);
            }
        }
        totals
    }
}
