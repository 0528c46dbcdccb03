//! Filters of bytes, packed, and the steps of their sums.

use super::super::super::BLOCK;
use super::super::super::quads::few;
use super::super::groups::{are_quarters, has_pairs, share_blocks};
use super::super::{CHANNELS, len_of};
use super::matrix;
use super::quantize::ROWS;
use super::settle::{OTHERS, rounding, slack};
use super::tile::{Four, Halves, Loops, Own, Quarters, Thrice, loops};
use crate::{Resources, Stopped};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Channels that are multiplied at once.
pub(super) const SOME: usize = 4;

/// Quads of a place in a block.
pub(super) const QUADS: usize = CHANNELS / SOME;

/// Filters of int8.
#[derive(Clone, Copy)]
pub struct FilterBytes<'a> {
    pub bytes: &'a [u8],
    /// Filters, channels of each (1 if it sees the channel of its own), and taps.
    pub sizes: [usize; 3],
    pub own: bool,
    /// Of filters that see all channels of their group.
    pub groups: usize,
    /// Whether the filters are the last axis, not the first one.
    pub turned: bool,
    /// What each byte is combined with first.
    pub flip: u8,
    pub scaling: Scaling<'a>,
}

/// What becomes of sums.
#[derive(Clone, Copy)]
pub struct Scaling<'a> {
    /// The zero point of the images, which is around them.
    pub outside: u8,
    /// Those of the filters, which are combined with the same as these: one for each, or for all; none if they are 0, as they are
    /// unless filters see the channels of their own numbers, and of floats.
    pub of_filters: &'a [u8],
    pub scales: Scales<'a>,
    /// The zero point of the output.
    pub zero: u8,
}

/// What sums become before a zero point is added. There is a number for each filter, or one for all; all are finite, and so is
/// what becomes of them.
#[derive(Clone, Copy)]
pub enum Scales<'a> {
    /// `round((sum + bias) * factor)`, of integers.
    Integers { factors: &'a [f32], bias: Option<&'a [i32]> },
    /// `round((sum + bias) / out)`, of floats: images and weights become floats first by their scales, and are summed in the
    /// order of a [product](super::super).
    Floats { images: f32, weights: &'a [f32], bias: Option<&'a [f32]>, out: f32 },
}

/// The steps of a sum: each takes the channels of a quad at a tap.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) count: usize,
    pub(super) taps: usize,
    /// Whether sums are those of [matrices](matrix): taps are terms like others then, of single places.
    pub(super) flat: bool,
    pub(super) parts: Vec<Part>,
    pub(super) checks: Vec<Check>,
    /// Terms from a check to the next, at most, and how often the sum counts that is seen there.
    between: usize,
    times: usize,
}

/// The steps of a block of a sum of floats. The quad where it begins or ends may be one of another block, too: each has
/// the channels and taps of its own.
#[derive(Debug)]
pub(super) struct Part {
    /// The terms of the sum, by channels and then taps.
    pub(super) terms: Range<usize>,
    quad: usize,
    step: usize,
}

impl Part {
    pub(super) fn quads(&self, taps: usize) -> Range<usize> {
        self.quad..self.terms.end.div_ceil(SOME.saturating_mul(taps))
    }

    pub(super) fn steps(&self, taps: usize) -> Range<usize> {
        self.step..self.step + self.quads(taps).len() * taps
    }

    /// The step of a channel at the first tap.
    pub(super) fn step(&self, channel: usize, taps: usize) -> usize {
        self.step + (channel / SOME - self.quad) * taps
    }

    /// The taps of a channel, of all that it has.
    pub(super) fn taps(&self, channel: usize, all: usize) -> Range<usize> {
        let (first, Range { start, end }) = (channel * all, &self.terms);
        start.clamp(&first, &(first + all)) - first..end.clamp(&first, &(first + all)) - first
    }
}

/// A step after which it is looked at how large the sum of a part is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check {
    /// The steps before it.
    pub(super) end: usize,
    /// Whether it ends a part.
    pub(super) last: bool,
}

// A matrix ends where a block of a sum does, and a look at partial sums.
const _: () = assert!(BLOCK.is_multiple_of(SOME * matrix::MOST) && Steps::BETWEEN.is_multiple_of(matrix::MOST));

impl Steps {
    /// Steps between checks, about: these are few beside them, and sums don't become much larger between two.
    const BETWEEN: usize = 16;
    /// The magnitude of a term, at most.
    const TERM: usize = 255 * 128;

    /// Those of filters, each of so many channels and taps.
    pub(super) fn of([filters, channels, taps]: [usize; 3], groups: usize, own: bool, as_floats: bool) -> Steps {
        let flat = !own && groups <= 1 && matrix::suits(filters, channels, taps);
        let (terms, taps) = (channels.saturating_mul(taps), if flat { 1 } else { taps.max(1) });
        let quads = ((Steps::BETWEEN + taps / 2) / taps).max(1);
        let (mut parts, mut checks, mut count, mut most) = (Vec::new(), Vec::new(), 0, 0usize);
        let block = if as_floats { BLOCK } else { terms.max(1) };
        for start in (0..terms).step_by(block) {
            let part =
                Part { terms: start..terms.min(start + block), quad: start / SOME.saturating_mul(taps), step: count };
            let own_quads = part.quads(taps).len();
            if as_floats && !own {
                let ends = (1..=own_quads.div_ceil(quads)).map(|at| own_quads.min(at * quads));
                checks.extend(ends.map(|end| {
                    most = most.saturating_add(end * SOME * taps * Steps::TERM);
                    Check { end: count + end * taps, last: end == own_quads }
                }));
            }
            count = own_quads.saturating_mul(taps).saturating_add(count);
            parts.push(part);
        }
        // Magnitudes are added up as integers.
        if most > u32::MAX as usize {
            checks.clear();
        }
        // Sums of parts count once for each that they are added to, beside.
        let times = if checks.is_empty() { 0 } else { quads * SOME * taps + 1 + parts.len() };
        // Matrices beyond the first one are whole.
        let count = if flat && count > matrix::MOST { count.next_multiple_of(matrix::MOST) } else { count };
        Steps { count, taps, flat, parts, checks, between: quads * SOME * taps, times }
    }

    /// Makes the offsets of steps of those of quads at taps.
    pub(super) fn spread(&self, of_quads: &[u32], to: &mut [u32]) {
        for part in &self.parts {
            let from = of_quads.get(part.quad * self.taps..).unwrap_or(&[]);
            let to = to.get_mut(part.steps(self.taps)).unwrap_or(&mut []);
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
    }

    /// Rows of numbers that follow the steps: see [`Numbers`](super::quantize::Numbers). A row has a byte for each of so many
    /// steps at least.
    pub(super) fn rows(&self) -> usize {
        ROWS + self.checks.len() + self.count.div_ceil(CHANNELS * size_of::<u32>())
    }

    /// How often a term of a part counts: once for each partial sum that isn't known better without it.
    fn count(&self, term: usize, part: &Part) -> usize {
        let Range { start, end } = part.terms.clone();
        if self.checks.is_empty() {
            return end - term + self.parts.len() + OTHERS;
        }
        let first = part.quad * SOME * self.taps;
        let from = first + (term - first) / self.between * self.between;
        let middle = start.max(from).midpoint(end.min(from + self.between));
        term.abs_diff(middle) + 1 + OTHERS
    }
}

impl Scaling<'_> {
    pub(super) fn is_of_floats(&self) -> bool {
        matches!(self.scales, Scales::Floats { .. })
    }

    /// The loops of filters that see the channels of their own numbers.
    pub(super) fn own_loops(&self) -> Loops {
        if self.of_filters.is_empty() { loops::<Own>(false) } else { loops::<Thrice>(false) }
    }

    /// Whether there are numbers for so many filters.
    fn fits(&self, filters: usize, own: bool) -> bool {
        let of_filters = self.of_filters.len();
        if of_filters > 0 && (!own || self.is_of_floats() || ![1, filters].contains(&of_filters)) {
            return false;
        }
        let counts = match self.scales {
            Scales::Integers { factors, bias } => [factors.len(), bias.map_or(1, <[i32]>::len)],
            Scales::Floats { weights, bias, .. } => [weights.len(), bias.map_or(1, <[f32]>::len)],
        };
        counts.iter().all(|count| *count == 1 || *count == filters)
    }

    /// The rows of a filter, whose weights have a sum and a length.
    fn numbers(&self, filter: usize, (sum, length): (u32, f32), times: usize) -> [u32; ROWS] {
        fn of<T: Copy + Default>(all: &[T], filter: usize) -> T {
            all.get(filter).or(all.first()).copied().unwrap_or_default()
        }
        let (factor, of_sum, [addend, scale, float_bias]) = match self.scales {
            Scales::Integers { factors, bias } => {
                (of(factors, filter), bias.map_or(0, |bias| of(bias, filter)), [0.0; 3])
            }
            Scales::Floats { images, weights, bias, out } => {
                let (scale, bias, out) =
                    (of(weights, filter), bias.map_or(0.0, |bias| of(bias, filter)), f64::from(out));
                let factor = f64::from(scale) * f64::from(images) / out;
                (factor as f32, 0, [(f64::from(bias) / out) as f32, scale, bias])
            }
        };
        let first = sum.wrapping_mul(self.outside.into()).wrapping_neg().wrapping_add(of_sum as u32);
        let [slope, climb] = [length, times as f32].map(|times| -rounding(factor) * times);
        let floats =
            [factor, addend, slope, climb, 0.5 - slack(addend, self.zero), scale, float_bias].map(f32::to_bits);
        let [factor, addend, slope, climb, certain, scale, float_bias] = floats;
        [first, factor, addend, slope, climb, certain, scale, float_bias]
    }
}

/// The loops of filters that see all channels of their groups: for two blocks of filters, if there are such loops and both
/// see the same, and for one.
pub(super) fn loops_of_groups(channels: usize, filters: usize, groups: usize) -> [Loops; 2] {
    match () {
        _ if are_quarters(channels, filters, groups) => [loops::<Quarters>(false); 2],
        _ if share_blocks(channels, filters, groups) => [loops::<Halves>(false); 2],
        _ => [has_pairs(filters, groups), false].map(loops::<Four>),
    }
}

/// The bytes of int8 that a weight is the sum of: more than the first are 0 only if it has a zero point.
fn in_bytes(weight: i32) -> [u8; SOME] {
    let mut left = weight;
    std::array::from_fn(|_| {
        let byte = left.clamp(-128, 127);
        left -= byte;
        byte as u8
    })
}

impl FilterBytes<'_> {
    fn steps(&self) -> Steps {
        Steps::of(self.sizes, self.groups, self.own, self.scaling.is_of_floats())
    }

    /// Numbers of packed filters.
    pub fn packed(&self) -> usize {
        let ([filters, ..], steps) = (self.sizes, self.steps());
        len_of(filters, steps.count.saturating_add(steps.rows()))
    }

    /// Packs the filters for this processor.
    pub fn pack(&self, out: &mut [u32], resources: Resources<'_>) -> Result<(), Stopped> {
        let FilterBytes { bytes, sizes: [filters, channels, taps], own, groups, scaling, .. } = self;
        let (steps, terms) = (self.steps(), channels * taps);
        if bytes.len() != filters * terms || !scaling.fits(*filters, *own) {
            return Err(Stopped::Misfit);
        }
        let counts = steps.parts.iter().flat_map(|part| part.terms.clone().map(|term| steps.count(term, part) as f64));
        let (counts, mut lookout) = (counts.collect::<Vec<f64>>(), resources.lookout());
        let (mut out, mut first) = (out.get_mut(..self.packed()).ok_or(Stopped::Misfit)?, 0);
        let [two, one] =
            if *own { [scaling.own_loops(); 2] } else { loops_of_groups(channels * groups, *filters, *groups) };
        while !out.is_empty() {
            let Loops { filters: width, lanes, prefers_few, .. } = if filters - first > CHANNELS { two } else { one };
            let (group, rest) = out.split_at_mut((width * (steps.count + steps.rows())).min(out.len()));
            group.fill(0);
            for lane in 0..width.min(filters - first) {
                lookout.after(2 * terms)?;
                self.pack_one(first + lane, &steps, &counts, |row, bits| {
                    group.get_mut(row * width + lane).into_iter().for_each(|to| *to |= bits);
                });
            }
            if prefers_few {
                let (weights, numbers) = group.split_at_mut(steps.count * width);
                let of_steps = numbers.get_mut((ROWS + steps.checks.len()) * width..).unwrap_or(&mut []);
                for (weights, are_few) in weights.chunks_exact(width).zip(cast_slice_mut::<u32, u8>(of_steps)) {
                    for vector in weights.chunks_exact(lanes).rev() {
                        *are_few = *are_few << 1 | u8::from(vector.iter().all(|quad| few(*quad)));
                    }
                }
            }
            (out, first) = (rest, first + width);
        }
        Ok(())
    }

    /// Sets the bits of rows for a filter; `counts` are those of terms.
    fn pack_one(&self, filter: usize, steps: &Steps, counts: &[f64], mut set: impl FnMut(usize, u32)) {
        let FilterBytes { bytes, sizes: [filters, channels, taps], own, turned, flip, scaling, .. } = *self;
        let ([next, apart], taps) = (if turned { [1, filters] } else { [channels * taps, 1] }, steps.taps);
        let row = bytes.get(filter * next..).unwrap_or(&[]);
        let less = u32::from(scaling.outside).wrapping_neg();
        let zero = scaling.of_filters.get(filter).or(scaling.of_filters.first()).map_or(0, |zero| zero ^ flip);
        let (mut total, mut squares, mut sizes, mut checks) = (0u32, 0f64, 0f64, 0);
        for part in &steps.parts {
            let (mut sum, mut ends) = (0u32, steps.checks.iter().skip(checks).peekable());
            let Range { start, end } = part.terms;
            for channel in start / taps..end.div_ceil(taps) {
                let step = part.step(channel, taps);
                while ends.next_if(|check| check.end <= step).is_some() {
                    set(steps.count + ROWS + checks, sum.wrapping_mul(less));
                    checks += 1;
                }
                for tap in part.taps(channel, taps) {
                    let term = channel * taps + tap;
                    let byte = row.get(term * apart).map_or(0, |byte| byte ^ flip);
                    let weight = i32::from(byte as i8) - i32::from(zero as i8);
                    let counted = counts.get(term).copied().unwrap_or(0.0) * f64::from(weight);
                    sum = sum.wrapping_add(weight as u32);
                    (squares, sizes) = (squares + counted * counted, sizes + counted.abs());
                    set(step + tap, u32::from_le_bytes(in_bytes(weight)) << (8 * (channel % SOME)));
                }
            }
            if !steps.checks.is_empty() {
                set(steps.count + ROWS + checks, sum.wrapping_mul(less));
                checks += 1;
            }
            total = total.wrapping_add(sum);
        }
        let length = if own { sizes } else { squares.sqrt() };
        let numbers = scaling.numbers(filter, (total, length as f32), steps.times);
        numbers.into_iter().enumerate().for_each(|(row, number)| set(steps.count + row, number));
    }
}
