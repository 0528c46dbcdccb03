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
use super::filters::{QUADS, SOME, Steps};
use super::of_half;
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

/// The margin of all else, for a zero point of the output. Floats round a total and a quotient, which are at most as far from 0
/// as a byte where that matters; here a sum becomes a float, a factor is rounded, an addend is, and what they give.
pub(super) fn slack(addend: f32, zero: u8) -> f32 {
    let most = f32::from(zero.max(255 - zero)) + 1.0;
    (ROUNDING * SLACK) * (5.0 * most + 3.0 * addend.abs())
}

/// A byte of the output that is in doubt, and what it is a sum of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    /// What its place sees: its own channel, if filters see but one.
    pub(super) image: *const u8,
    /// Whether that begins in the middle of a block.
    pub(super) late: bool,
    /// The weights of a group of filters, and the numbers that follow them; and which of the filters it is.
    pub(super) weights: *const u32,
    pub(super) filter: usize,
    pub(super) out: *mut u8,
}

/// What the sums of all bytes that are in doubt have in common.
#[derive(Debug)]
pub(super) struct Common<'a> {
    pub(super) steps: &'a Steps,
    /// Of what begins with a block, and in the middle of one.
    pub(super) offsets: [&'a [u32]; 2],
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

/// What begins with a line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lines<T>(T);

/// Bytes that are settled together, each in a lane.
struct Lanes {
    images: [*const u8; LANES],
    late: [bool; LANES],
    filters: Lines<[u32; LANES]>,
    groups: [Group; LANES],
    count: usize,
}

/// Lanes of a vector that follow each other, whose filters have the same rows of weights.
#[derive(Debug, Clone, Copy)]
struct Group {
    weights: *const u32,
    /// The first one: the lanes up to the next group are of this.
    lane: usize,
}

/// No bits of as many lanes as a vector has at most, and then all of them.
static FROM: [u32; 2 * CHANNELS] = {
    let mut lanes = [0; 2 * CHANNELS];
    let (_, from) = lanes.split_at_mut(CHANNELS);
    from.copy_from_slice(&[u32::MAX; CHANNELS]);
    lanes
};

impl Lanes {
    /// So many lanes, in vectors of a width: the last byte has those that are left.
    #[inline(always)]
    fn of(open: &[Open], last: &Open, all: usize, width: usize) -> Lanes {
        let (mut images, mut filters) = ([last.image; LANES], Lines([last.filter as u32; LANES]));
        let mut late = [last.late; LANES];
        let mut groups = [Group { weights: last.weights, lane: 0 }; LANES];
        let (mut count, mut before) = (0, std::ptr::null());
        let bytes = open.iter().chain(std::iter::repeat(last)).take(all);
        let of_lanes = images.iter_mut().zip(&mut late).zip(&mut filters.0);
        for (lane, (open, ((image, late), filter))) in bytes.zip(of_lanes).enumerate() {
            (*image, *late, *filter) = (open.image, open.late, open.filter as u32);
            if lane % width == 0 || before != open.weights {
                before = open.weights;
                groups.get_mut(count).into_iter().for_each(|to| *to = Group { weights: before, lane });
                count += 1;
            }
        }
        Lanes { images, late, filters, groups, count }
    }

    #[inline(always)]
    fn groups(&self) -> &[Group] {
        self.groups.get(..self.count).unwrap_or(&self.groups)
    }
}

/// Taps that are gathered before they are added, at most, of quads that follow each other.
const TAPS: usize = 64;

/// What each lane sees at some taps of quads that follow each other, and its weights: so do the lanes of a step.
struct Gathered {
    /// The step of the first quad, which shows the part too.
    step: usize,
    taps: Range<usize>,
    seen: Lines<[MaybeUninit<u32>; QUADS * TAPS * LANES]>,
    weights: Lines<[MaybeUninit<u32>; QUADS * TAPS * LANES]>,
}

impl Gathered {
    /// Gathers the taps of quads from one on, as many as fit, unless that one is there.
    ///
    /// # Safety
    /// See [`Settle`]; `lanes` are those of `N` vectors.
    #[inline(always)]
    unsafe fn have<V: Quantize, S: Seen, const N: usize>(
        &mut self,
        of: &Common<'_>,
        lanes: &Lanes,
        (step, quads): (usize, &Range<usize>),
        tap: usize,
    ) {
        if self.step == step && self.taps.contains(&tap) {
            return;
        }
        (self.step, self.taps) = (step, tap..of.steps.taps.min(tap + TAPS));
        let (taps, all, before) = (self.taps.len(), N * V::COUNT, quads.start % S::TOGETHER);
        let [seen, weights] = [self.seen.0.as_mut_ptr(), self.weights.0.as_mut_ptr()].map(|to| to.cast::<u32>());
        // SAFETY: the caller's; there is room for so many steps. Two vectors can be read of each row: numbers follow.
        unsafe {
            for at in 0..taps {
                let offset = |table: &[u32]| *table.get_unchecked(step + tap + at) as usize - SOME * before;
                let (mut places, mut from) = (lanes.images, offset(of.offsets[0]));
                if S::HALVES {
                    for (place, late) in places.iter_mut().zip(lanes.late) {
                        *place = place.add(offset(of_half(of.offsets, late)));
                    }
                    from = 0;
                }
                for vector in 0..N {
                    let to = seen.add(at * all + vector * V::COUNT);
                    let quads = S::quads::<V>(places.as_ptr().add(vector * V::COUNT), from);
                    for (quad, numbers) in quads.iter().enumerate().take(S::TOGETHER) {
                        numbers.store(to.add(quad * taps * all));
                    }
                }
            }
            for quad in 0..quads.len() {
                for at in 0..taps {
                    let row = (step + quad * of.steps.taps + tap + at) * of.apart;
                    let to = weights.add(((before + quad) * taps + at) * all);
                    let mut numbers = V::zero();
                    for Group { weights, lane } in lanes.groups() {
                        let (vector, first) = (lane / V::COUNT * V::COUNT, lane % V::COUNT);
                        let filters = V::load(lanes.filters.0.as_ptr().add(vector));
                        let own = V::load(FROM.as_ptr().add(CHANNELS - first));
                        numbers = numbers.choose(V::pick(weights.add(row), filters), own);
                        numbers.store(to.add(vector));
                    }
                }
            }
        }
    }

    /// Adds the terms of one of the four bytes of a step that was gathered to sums: the image has a scale, and a number that
    /// is added before.
    ///
    /// # Safety
    /// See [`Settle`].
    #[inline(always)]
    unsafe fn add<V: Quantize, const N: usize>(
        &self,
        (number, byte): (usize, usize),
        [scale, outside]: [V::Floats; 2],
        scales: [V::Floats; N],
        sums: &mut [V::Floats; N],
    ) {
        let [seen, weights] = [self.seen.0.as_ptr(), self.weights.0.as_ptr()].map(|of| of.cast::<u32>());
        // SAFETY: the caller's.
        unsafe {
            let none = V::Floats::zero();
            for (at, (sum, scales)) in sums.iter_mut().zip(scales).enumerate() {
                let from = (number * N + at) * V::COUNT;
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
    let lanes = Lanes::of(open, last, N * V::COUNT, V::COUNT);
    let (mut scales, mut sums) = ([0.0; LANES], [0.0; LANES]);
    // SAFETY: the caller's.
    unsafe {
        let number = |open: &Open, row: Row| {
            let row = (of.steps.count + row as usize) * of.apart;
            f32::from_bits(open.weights.add(row + open.filter).read())
        };
        scales.iter_mut().zip(open).for_each(|(scale, open)| *scale = number(open, Row::Scale));
        let scales = std::array::from_fn(|at| V::Floats::load(scales.as_ptr().add(at * V::COUNT)));
        for (at, sum) in floats::<V, S, N>(of, &lanes, scales).into_iter().enumerate() {
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
    lanes: &Lanes,
    scales: [V::Floats; N],
) -> [V::Floats; N] {
    let taps = of.steps.taps;
    let (seen, weights) = (Lines([const { MaybeUninit::uninit() }; _]), Lines([const { MaybeUninit::uninit() }; _]));
    let mut gathered = Gathered { step: 0, taps: 0..0, seen, weights };
    // SAFETY: the caller's.
    unsafe {
        let none = V::Floats::zero();
        let image = [of.scale, -f32::from(of.outside)].map(|number| V::Floats::splat(&number));
        let mut totals = [none; N];
        for part in &of.steps.parts {
            let (mut sums, mut rest) = ([none; N], part.quads(taps));
            while !rest.is_empty() {
                let quads = rest.start..rest.end.min((rest.start / S::TOGETHER + 1) * S::TOGETHER);
                let step = part.step(SOME * quads.start, taps);
                rest.start = quads.end;
                if taps == 1 {
                    // All channels of a quad follow each other: those beyond the last have weights of 0.
                    gathered.have::<V, S, N>(of, lanes, (step, &quads), 0);
                    let first = quads.start % S::TOGETHER;
                    for number in first..first + quads.len() {
                        for byte in 0..SOME {
                            gathered.add::<V, N>((number, byte), image, scales, &mut sums);
                        }
                    }
                    continue;
                }
                for channel in SOME * quads.start..SOME * quads.end {
                    let mut own = part.taps(channel, taps);
                    while !own.is_empty() {
                        gathered.have::<V, S, N>(of, lanes, (step, &quads), own.start);
                        let Range { start, end } = gathered.taps;
                        let first = channel / SOME % S::TOGETHER * (end - start) + own.start - start;
                        let end = own.end.min(end);
                        for number in first..first + end - own.start {
                            gathered.add::<V, N>((number, channel % SOME), image, scales, &mut sums);
                        }
                        own.start = end;
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
