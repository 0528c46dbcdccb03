//! Sums at many places at once, where a processor multiplies small [matrices](crate::tiles) of bytes.
//!
//! What each place of a band sees is written to a row of its own then, in the order of the terms of a sum: channels, then
//! taps. So a step is four terms, whatever windows are like, and a matrix has 16 steps of some rows.

#![allow(unsafe_code)] // pointers with offsets: `Rows` says what they point to

use super::super::CHANNELS;
use super::super::band::{Band, Grid};
#[cfg(target_arch = "x86_64")]
use super::filters::SOME;
use super::tile::{Room, Tile};
use crate::cpu::LINE;
use crate::{Lookout, Stopped};
use std::ops::Range;

/// Rows of a matrix, and its steps, at most.
pub(super) const MOST: usize = 16;

/// Filters that are worth it, at least, and channels of each.
const WORTH: usize = 32;

/// Taps that are written at once, at most.
const TAPS: usize = 12;

/// Whether filters that see all of so many channels are multiplied as matrices.
pub(super) fn suits(filters: usize, channels: usize, taps: usize) -> bool {
    filters.min(channels) >= WORTH && (1..=TAPS).contains(&taps) && write().is_some()
}

/// Writes what neighbours see to rows that are so many bytes apart.
///
/// # Safety
/// The processor must have matrices. All taps of all blocks are readable at so many places; rows have room for whole lines.
type Write = unsafe fn(from: *const u8, what: &Order, to: *mut u8, apart: usize, places: usize);

/// What is written for a place: blocks, and the channels of each at all taps.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // nobody writes there
struct Order {
    /// Blocks, and bytes from one to the next.
    blocks: usize,
    block: usize,
    taps: usize,
    offsets: [usize; TAPS],
    /// For each byte, which one it is of the first eight taps, or of the others in three lines.
    which: [[u8; LINE]; LINES],
    /// The bytes of others, by bits.
    others: [u64; LINES],
}

/// Lines of a block of channels.
const LINES: usize = TAPS * CHANNELS / LINE;

impl Order {
    fn of(blocks: usize, block: usize, taps: &[u32]) -> Order {
        let (mut which, mut others, mut offsets) = ([[0; LINE]; LINES], [0u64; LINES], [0; TAPS]);
        let bytes = (0..CHANNELS).flat_map(|channel| (0..taps.len()).map(move |tap| (channel, tap)));
        for ((channel, tap), (at, which)) in bytes.zip(which.as_flattened_mut().iter_mut().enumerate()) {
            *which = (tap % 8 * CHANNELS + channel) as u8;
            others.get_mut(at / LINE).into_iter().for_each(|others| *others |= u64::from(tap >= 8) << (at % LINE));
        }
        offsets.iter_mut().zip(taps).for_each(|(offset, tap)| *offset = *tap as usize);
        Order { blocks, block, taps: taps.len(), offsets, which, others }
    }
}

fn write() -> Option<Write> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::has_tiles() {
        return Some(x86::write);
    }
    None
}

/// The rows of a band.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    /// Begins with a line of the cache.
    pub(super) all: &'a [u8],
    /// Bytes from a row to the next.
    pub(super) apart: usize,
}

impl<'a> Rows<'a> {
    /// Bytes from a row to the next: an odd number of lines, so that those of neighbours stay in the cache together. Blocks are
    /// written in whole lines, those of a single tap together.
    fn apart(channels: usize, taps: usize) -> usize {
        let block = CHANNELS.saturating_mul(taps);
        let beyond = if taps > 1 { block.wrapping_neg() % LINE } else { 0 };
        let len = block.saturating_mul(channels.div_ceil(CHANNELS)).saturating_add(beyond);
        (len.div_ceil(LINE) | 1).saturating_mul(LINE)
    }

    /// Bytes of memory for a band. The last matrix may have rows beyond the last one, which nobody looks at.
    pub(super) fn room(grid: &Grid, channels: usize, taps: usize) -> usize {
        let rows = grid.most().saturating_add(MOST);
        rows.saturating_mul(Rows::apart(channels, taps)).saturating_add(LINE)
    }

    /// Writes what a band sees: blocks of channels that are so far apart, at taps with these offsets.
    pub(super) fn write(
        band: &Band<'_>,
        (seen, block): (&[u8], usize),
        (channels, taps): (usize, &[u32]),
        room: &'a mut [u8],
        lookout: &mut Lookout<'_>,
    ) -> Result<Rows<'a>, Stopped> {
        let (apart, columns, write) =
            (Rows::apart(channels, taps.len()), band.columns.len(), write().ok_or(Stopped::Misfit)?);
        let skip = room.as_ptr().align_offset(LINE);
        let all = room.get_mut(skip..).ok_or(Stopped::Misfit)?;
        let furthest = taps.iter().max().map_or(0, |tap| *tap as usize);
        let order = Order::of(channels.div_ceil(CHANNELS), block, taps);
        let reach = (order.blocks - 1) * block + furthest + columns * CHANNELS;
        for (at, row) in band.rows.clone().enumerate() {
            lookout.after(taps.len() * columns * order.blocks * CHANNELS)?;
            let from = seen.get(band.place(row, band.columns.start)..).unwrap_or(&[]);
            let to = all.get_mut(at * columns * apart..).unwrap_or(&mut []);
            if from.len() < reach || to.len() < columns * apart {
                return Err(Stopped::Misfit);
            }
            // SAFETY: there is so much to read and to write.
            unsafe { write(from.as_ptr(), &order, to.as_mut_ptr(), apart, columns) };
        }
        Ok(Rows { all, apart })
    }

    /// The rows from that of a place of a band on.
    pub(super) fn from(&self, place: usize) -> *const u8 {
        self.all.as_ptr().wrapping_add(place * self.apart)
    }
}

/// Sums what so many places see, from a row on, and stores the bytes.
///
/// # Safety
/// See [`Tile`], whose first place is that of the row; the rows of all places are there, and [`MOST`] more.
pub(super) type Matrices = unsafe fn(&Tile<'_>, &Rows<'_>, Range<usize>, &mut Room);

#[cfg(target_arch = "x86_64")]
pub(super) use x86::matrices;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::filters::Check;
    use super::super::quantize::{Numbers, Quantize};
    use super::super::tile::{Pointers, Room, Tile, store};
    use super::{CHANNELS, LINES, MOST, Order, Range, Rows, SOME};
    use crate::cpu::{LINE, fetch};
    use crate::tiles;
    use std::arch::x86_64::*;

    /// # Safety
    /// See [`Write`](super::Write).
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    pub(super) unsafe fn write(from: *const u8, order: &Order, to: *mut u8, apart: usize, places: usize) {
        let Order { blocks, block, taps, offsets, which, others } = order;
        // SAFETY: the caller's; taps that aren't there are what the first one of a block is.
        unsafe {
            if *taps == 1 {
                return together(from.add(offsets[0]), order, to, apart, places);
            }
            let which = which.map(|which| _mm512_loadu_si512(which.as_ptr().cast()));
            for (place, number) in (0..places).flat_map(|place| (0..*blocks).map(move |number| (place, number))) {
                let from = from.add(place * CHANNELS + number * block);
                let to = to.add(place * apart + number * CHANNELS * taps);
                let tap = |number: usize| _mm_loadu_si128(from.add(*offsets.get_unchecked(number)).cast());
                let mut seen = [_mm512_setzero_si512(); LINES];
                for (number, seen) in seen.iter_mut().enumerate() {
                    let first = 4 * number;
                    *seen = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(tap(first)), tap(first + 1));
                    *seen = _mm512_inserti32x4::<2>(*seen, tap(first + 2));
                    *seen = _mm512_inserti32x4::<3>(*seen, tap(first + 3));
                }
                let [first, second, last] = seen;
                for (number, (which, others)) in
                    which.iter().zip(others).enumerate().take((taps * CHANNELS).div_ceil(LINE))
                {
                    let both = _mm512_permutex2var_epi8(first, *which, second);
                    let all = _mm512_mask_permutexvar_epi8(both, *others, *which, last);
                    _mm512_storeu_si512(to.add(number * LINE).cast(), all);
                }
            }
        }
    }

    /// Writes what places show at a single tap, a line at a time.
    ///
    /// # Safety
    /// As above.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn together(from: *const u8, order: &Order, to: *mut u8, apart: usize, places: usize) {
        const ABREAST: usize = LINE / CHANNELS;
        let Order { blocks, block, .. } = order;
        for first in (0..*blocks).step_by(ABREAST) {
            let [a, b, c, d] = std::array::from_fn(|at| (first + at).min(blocks - 1) * block);
            for place in 0..places {
                // SAFETY: the caller's. A line has the last block several times, which nobody reads.
                unsafe {
                    let own = |block: usize| _mm_loadu_si128(from.add(place * CHANNELS + block).cast());
                    let line = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(own(a)), own(b));
                    let line = _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(line, own(c)), own(d));
                    _mm512_storeu_si512(to.add(place * apart + first * CHANNELS).cast(), line);
                }
            }
        }
    }

    /// # Safety
    /// See [`Matrices`](super::Matrices), and `Vector`.
    #[inline(always)]
    pub(in super::super) unsafe fn matrices<V: Quantize, const W: usize>(
        tile: &Tile<'_>,
        rows: &Rows<'_>,
        places: Range<usize>,
        room: &mut Room,
    ) {
        let len = places.len();
        let each = len.div_ceil(len.div_ceil(MOST).max(1)).max(1);
        // SAFETY: the caller's. Sizes are released where they were set.
        unsafe {
            tiles::set([each; 2], [CHANNELS; 2], tile.steps.min(MOST));
            for (pair, first) in (0..len).step_by(2 * each).enumerate() {
                let own = Tile {
                    first,
                    out: tile.out.add(first * CHANNELS),
                    lengths: if tile.lengths.is_null() { tile.lengths } else { tile.lengths.add(first) },
                    next: tile.next.wrapping_add(pair * tile.steps * tile.pace),
                    ..*tile
                };
                let seen = [0, each].map(|at| rows.from(places.start + first + at));
                let count = (2 * each).min(len - first);
                match count > each {
                    true => sums::<V, 2, W>(&own, rows.apart, (seen, [each, count - each]), room),
                    false => sums::<V, 1, W>(&own, rows.apart, (seen, [count, 0]), room),
                }
                store::<V>(&own, count, room);
            }
            tiles::release();
        }
    }

    /// Bytes of a row of sums, and of weights.
    const fn row<const W: usize>() -> usize {
        size_of::<u32>() * CHANNELS * W
    }

    /// Sums what so many places of `P` matrices see.
    ///
    /// # Safety
    /// As above; sizes must be set.
    #[inline(always)]
    unsafe fn sums<V: Quantize, const P: usize, const W: usize>(
        tile: &Tile<'_>,
        apart: usize,
        (seen, counts): ([*const u8; 2], [usize; 2]),
        room: &mut Room,
    ) {
        let (Pointers { totals, sizes, partial }, at) = (room.pointers(), |pair: usize| pair * MOST * CHANNELS * W);
        // At the only check, the sum is the whole one.
        let checks = if tile.checks.len() < 2 { &[] } else { tile.checks };
        let (mut step, mut first, mut parts) = (0, 0, 0);
        // SAFETY: the caller's.
        unsafe {
            tiles::zero();
            for (number, Check { end, last }) in checks.iter().enumerate() {
                multiply::<P, W>(tile, step..*end, seen, apart);
                step = *end;
                let own = partial.add((number - first) * at(2));
                tiles::store::<P, W>([own, own.add(at(1))], row::<W>());
                if *last {
                    tiles::zero();
                }
                if !last && number + 1 - first < Room::CHECKS {
                    continue;
                }
                let mut before = 0;
                for (matrix, count) in counts.into_iter().enumerate().take(P) {
                    let from = partial.add(at(matrix));
                    let to = [sizes, totals].map(|to| to.add(before * CHANNELS * W));
                    let what = (first, last.then_some(parts));
                    match number + 1 - first {
                        1 => look::<V, W, 1>(tile.numbers, what, (from, at(2)), count, to),
                        2 => look::<V, W, 2>(tile.numbers, what, (from, at(2)), count, to),
                        _ => look::<V, W, { Room::CHECKS }>(tile.numbers, what, (from, at(2)), count, to),
                    }
                    before += count;
                }
                first = number + 1;
                parts += usize::from(*last);
            }
            if checks.is_empty() {
                multiply::<P, W>(tile, 0..tile.steps, seen, apart);
                tiles::store::<P, W>([totals, totals.add(counts[0] * CHANNELS * W)], row::<W>());
            }
        }
    }

    /// Adds the products of some steps to sums.
    ///
    /// # Safety
    /// As above. Where steps end, weights are 0.
    #[inline(always)]
    unsafe fn multiply<const P: usize, const W: usize>(
        tile: &Tile<'_>,
        steps: Range<usize>,
        seen: [*const u8; 2],
        apart: usize,
    ) {
        for step in steps.clone().step_by(MOST) {
            // SAFETY: the caller's; a prefetch never faults.
            unsafe {
                let weights = tile.weights.add(step * CHANNELS * W);
                tiles::multiply::<P, W>(seen.map(|seen| seen.add(step * SOME)), apart, weights, row::<W>());
                let next = tile.next.wrapping_add(step * tile.pace);
                for line in 0..(MOST * tile.pace).div_ceil(LINE) {
                    fetch::<true, _>(next.wrapping_add(line * LINE));
                }
            }
        }
    }

    /// Adds the magnitudes that sums of so many places have at `N` checks from one on to sizes, and the last sums to totals if
    /// they are those of a `part`. Those of the first checks, and of the first part, are written.
    ///
    /// # Safety
    /// As above, for numbers of all filters at all places.
    #[inline(always)]
    unsafe fn look<V: Quantize, const W: usize, const N: usize>(
        numbers: Numbers,
        (first, part): (usize, Option<usize>),
        (from, apart): (*const u32, usize),
        count: usize,
        [sizes, totals]: [*mut u32; 2],
    ) {
        // SAFETY: the caller's.
        unsafe {
            let mut less = [[V::zero(); N]; W];
            for (vector, less) in less.iter_mut().enumerate() {
                for (check, less) in less.iter_mut().enumerate() {
                    *less = numbers.less(first + check, vector * V::COUNT);
                }
            }
            for place in 0..count {
                for (vector, less) in less.iter().enumerate() {
                    let number = (place * W + vector) * V::COUNT;
                    let [size_at, total_at] = [sizes, totals].map(|to| to.add(number));
                    let mut size = if first == 0 { V::zero() } else { V::load(size_at) };
                    let mut sum = V::zero();
                    for (check, less) in less.iter().enumerate() {
                        sum = V::load(from.add(check * apart + number));
                        size = size.add(sum.add(*less).sizes());
                    }
                    size.store(size_at);
                    match part {
                        None => {}
                        Some(0) => sum.store(total_at),
                        Some(_) => V::load(total_at).add(sum).store(total_at),
                    }
                }
            }
        }
    }
}
