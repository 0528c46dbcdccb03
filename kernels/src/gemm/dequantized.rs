//! A right operand of small integers with scales and zero points: what DequantizeLinear makes of a constant becomes floats
//! where a product needs them, and stays small in memory.
//!
//! 16 columns are a group. It has one block of steps after the other, which share scales and zero points: 16 scales, 16 bytes
//! of zero points, and rows of 16 words. The word of a column has its integers of the next steps, the first one lowest.
//! All are unsigned: half of their range is added to those that are not.

use super::BLOCK;
use super::number::Number;
use crate::cpu::for_each_level;
use crate::half::Half;
use crate::{Resources, Stopped, lookout, parallel};
use bytemuck::{cast_slice, cast_slice_mut, try_cast_slice, try_cast_slice_mut};
use std::any::TypeId;
use std::array::from_fn;
use std::ops::Range;

/// Columns of a group.
const LANES: usize = 16;

/// Words of scales and of zero points.
const SCALES: usize = LANES;
const ZEROS: usize = LANES / size_of::<u32>();

/// Rows of words that are packed between two checks whether to stop.
const BETWEEN_LOOKS: usize = 1 << 12;

/// 2^23: a float whose last bits are an integer.
const INTEGER: u32 = 0x4b00_0000;

/// How many bits an integer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bits {
    Four,
    Eight,
}

impl Bits {
    fn count(self) -> usize {
        if self == Bits::Four { 4 } else { 8 }
    }

    /// Integers of a word.
    fn of_word(self) -> usize {
        32 / self.count()
    }
}

/// The sizes of a matrix of small integers: `k` rows and `n` columns, not 0, and how many rows share scales and zero points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    pub bits: Bits,
    pub k: usize,
    pub n: usize,
    pub block: usize,
}

impl Blocked {
    /// Words of a block of so many steps.
    fn words(&self, steps: usize) -> usize {
        SCALES + ZEROS + LANES * steps.div_ceil(self.bits.of_word())
    }

    fn words_of_group(&self) -> usize {
        let (whole, rest) = (self.k / self.block, self.k % self.block);
        let rest = if rest == 0 { 0 } else { self.words(rest) };
        whole.saturating_mul(self.words(self.block)).saturating_add(rest)
    }

    /// Words of the packed form.
    pub fn packed_len(&self) -> usize {
        self.n.div_ceil(LANES).saturating_mul(self.words_of_group())
    }
}

/// A matrix of integers, each in a byte, whose rows and columns are so far `apart`, and their scales and zero points, of which
/// those of blocks and of columns are so far apart.
#[derive(Debug, Clone, Copy)]
pub struct Integers<'a> {
    pub sizes: Blocked,
    pub signed: bool,
    pub bytes: &'a [u8],
    pub apart: [usize; 2],
    pub scales: &'a [f32],
    pub zeros: Option<&'a [u8]>,
    pub scales_apart: [usize; 2],
}

impl Integers<'_> {
    /// Writes the packed form, of [`Blocked::packed_len`] words.
    pub fn pack(&self, to: &mut [u32], resources: Resources<'_>) -> Result<(), Stopped> {
        let Blocked { k, n, block, .. } = self.sizes;
        let last = |[row, column]: [usize; 2], rows: usize| {
            (rows - 1).checked_mul(row)?.checked_add((n - 1).checked_mul(column)?)
        };
        let sizes = [k, n, block, self.apart[0], self.apart[1]];
        if sizes.contains(&0) || to.len() != self.sizes.packed_len() {
            return Err(Stopped::Misfit);
        }
        let scale = last(self.scales_apart, k.div_ceil(block)).ok_or(Stopped::Misfit)?;
        let are_there = last(self.apart, k).is_some_and(|last| last < self.bytes.len())
            && scale < self.scales.len()
            && self.zeros.is_none_or(|zeros| scale < zeros.len());
        if !are_there {
            return Err(Stopped::Misfit);
        }
        let words = self.sizes.words_of_group();
        parallel::split(cast_slice_mut(to), words * size_of::<u32>(), resources, |from, to| {
            for (at, to) in cast_slice_mut::<u8, u32>(to).chunks_exact_mut(words).enumerate() {
                self.pack_group((from + at) * LANES, to, resources)?;
            }
            Ok(())
        })
    }

    /// Packs the group of columns that starts at one.
    fn pack_group(&self, column: usize, to: &mut [u32], resources: Resources<'_>) -> Result<(), Stopped> {
        let Blocked { bits, k, n, block } = self.sizes;
        let (lanes, offset) = (LANES.min(n - column), self.offset());
        for (at, to) in to.chunks_mut(self.sizes.words(block)).enumerate() {
            let (scales, rest) = to.split_at_mut(SCALES);
            let (zeros, rows) = rest.split_at_mut(ZEROS);
            scales.fill(0);
            zeros.fill(0);
            let [of_block, of_column] = self.scales_apart;
            let place = |lane: usize| at * of_block + (column + lane) * of_column;
            for (lane, (scale, zero)) in scales.iter_mut().zip(cast_slice_mut::<u32, u8>(zeros)).take(lanes).enumerate()
            {
                *scale = self.scales.get(place(lane)).ok_or(Stopped::Misfit)?.to_bits();
                let own = self.zeros.map_or(Some(&0), |zeros| zeros.get(place(lane))).ok_or(Stopped::Misfit)?;
                *zero = self.unsigned(*own, offset);
            }
            let steps = at * block..k.min((at + 1) * block);
            for (row, to) in rows.chunks_exact_mut(LANES).enumerate() {
                if row % BETWEEN_LOOKS == 0 {
                    lookout::look(resources.stop)?;
                }
                let first = steps.start + row * bits.of_word();
                to.fill(0);
                self.pack_row(first..steps.end.min(first + bits.of_word()), column, offset, to.get_mut(..lanes));
            }
        }
        Ok(())
    }

    /// Packs some steps of columns, one word of each.
    fn pack_row(&self, steps: Range<usize>, column: usize, offset: u8, to: Option<&mut [u32]>) {
        let ([row, apart], bits) = (self.apart, self.sizes.bits.count());
        let from = |at: usize| self.bytes.get(at..).unwrap_or(&[]);
        let to = to.unwrap_or(&mut []);
        if apart == 1 {
            for (at, step) in steps.enumerate() {
                for (word, byte) in to.iter_mut().zip(from(step * row + column)) {
                    *word |= u32::from(self.unsigned(*byte, offset)) << (at * bits);
                }
            }
            return;
        }
        for (lane, word) in to.iter_mut().enumerate() {
            let line = from(steps.start * row + (column + lane) * apart);
            for (at, byte) in line.iter().step_by(row).take(steps.len()).enumerate() {
                *word |= u32::from(self.unsigned(*byte, offset)) << (at * bits);
            }
        }
    }

    /// What is added to an integer.
    fn offset(&self) -> u8 {
        if self.signed { 1 << (self.sizes.bits.count() - 1) } else { 0 }
    }

    #[inline(always)]
    fn unsigned(&self, byte: u8, offset: u8) -> u8 {
        byte.wrapping_add(offset) & (u8::MAX >> (8 - self.sizes.bits.count()))
    }
}

/// A packed matrix of small integers, as the floats `(x - zero point) * scale`, rounded to float32 and then to `half`, if
/// they are halves.
#[derive(Debug, Clone, Copy)]
pub struct Dequantized<'a> {
    sizes: Blocked,
    words: &'a [u32],
    half: Option<Half>,
}

impl<'a> Dequantized<'a> {
    /// What [`Integers::pack`] wrote for these sizes.
    pub fn new(sizes: Blocked, words: &'a [u32], half: Option<Half>) -> Dequantized<'a> {
        Dequantized { sizes, words, half }
    }

    /// Fails unless it is such a matrix, and its floats are summed in `T`.
    pub(super) fn check<T: Number>(&self, from: usize, k: usize, n: usize) -> Result<(), Stopped> {
        let Blocked { k: own_k, n: own_n, block, .. } = self.sizes;
        let fits = from == 0 && (k, n) == (own_k, own_n) && block > 0 && TypeId::of::<T>() == TypeId::of::<f32>();
        if fits && self.words.len() == self.sizes.packed_len() { Ok(()) } else { Err(Stopped::Misfit) }
    }

    /// `to[p, j]`: the floats of steps and columns.
    pub(super) fn panel<T: Number>(&self, steps: &Range<usize>, columns: Range<usize>, to: &mut [T]) {
        let Ok(to) = try_cast_slice_mut(to) else { return };
        match self.sizes.bits {
            Bits::Four => panel_of_four(self, steps, columns, to),
            Bits::Eight => panel_of_eight(self, steps, columns, to),
        }
        if let Some(half) = self.half {
            let mut room = [0; HALVES];
            for part in to.chunks_mut(HALVES) {
                let room = room.get_mut(..part.len()).unwrap_or(&mut []);
                half.narrow(part, room);
                half.widen(room, part);
            }
        }
    }

    /// Whether [`Dequantized::row`] may be called: floats that are rounded again aren't made in registers.
    pub(super) fn has_rows(&self) -> bool {
        self.half.is_none()
    }

    /// The products of a row of steps, which begin with a [`BLOCK`], and of columns, in the place of `sums` if the steps are
    /// the first ones, else added to these.
    pub(super) fn row<T: Number>(&self, x: &[T], steps: &Range<usize>, columns: Range<usize>, sums: &mut [T]) {
        let (Ok(x), Ok(sums)) = (try_cast_slice(x), try_cast_slice_mut(sums)) else { return };
        match self.sizes.bits {
            Bits::Four => row_of_four(self, x, steps, columns, sums),
            Bits::Eight => row_of_eight(self, x, steps, columns, sums),
        }
    }

    /// A block of a group.
    #[inline(always)]
    fn part<const BITS: usize>(&self, group: usize, block: usize) -> Part<'_, BITS> {
        let start = group * self.sizes.words_of_group() + block * self.sizes.words(self.sizes.block);
        let (scales, rest) = self.words.get(start..).unwrap_or(&[]).split_at_checked(SCALES).unwrap_or_default();
        let (zeros, rows) = rest.split_at_checked(ZEROS).unwrap_or_default();
        Part {
            rows: rows.as_chunks().0,
            zeros: cast_slice(zeros).first_chunk().map_or([0.0; LANES], floats_of),
            scales: cast_slice(scales).first_chunk().copied().unwrap_or([0.0; LANES]),
        }
    }
}

/// Floats that are rounded at once.
const HALVES: usize = 512;

for_each_level! {
    fn panel_of_four<>(of: &Dequantized<'_>, steps: &Range<usize>, columns: Range<usize>, to: &mut [f32]) -> () = panel_body::<4>;
}

for_each_level! {
    fn panel_of_eight<>(of: &Dequantized<'_>, steps: &Range<usize>, columns: Range<usize>, to: &mut [f32]) -> () = panel_body::<8>;
}

#[inline(always)]
fn panel_body<const BITS: usize>(of: &Dequantized<'_>, steps: &Range<usize>, columns: Range<usize>, to: &mut [f32]) {
    let (Blocked { k, block, .. }, width) = (of.sizes, columns.len());
    let mut column = columns.start;
    while column < columns.end {
        let (group, first) = (column / LANES, column % LANES);
        let lanes = first..LANES.min(first + columns.end - column);
        let mut step = steps.start;
        while step < steps.end {
            let start = step / block * block;
            let end = steps.end.min(k).min(start + block);
            let at = (step - steps.start) * width + column - columns.start;
            let to = to.get_mut(at..).unwrap_or(&mut []);
            of.part::<BITS>(group, step / block).write(step - start..end - start, &lanes, width, to);
            step = end;
        }
        column += lanes.len();
    }
}

for_each_level! {
    fn row_of_four<>(of: &Dequantized<'_>, x: &[f32], steps: &Range<usize>, columns: Range<usize>, sums: &mut [f32]) -> () = row_body::<4>;
}

for_each_level! {
    fn row_of_eight<>(of: &Dequantized<'_>, x: &[f32], steps: &Range<usize>, columns: Range<usize>, sums: &mut [f32]) -> () = row_body::<8>;
}

/// Groups whose sums are in registers.
const ABREAST: usize = 4;

#[inline(always)]
fn row_body<const BITS: usize>(
    of: &Dequantized<'_>,
    x: &[f32],
    steps: &Range<usize>,
    columns: Range<usize>,
    sums: &mut [f32],
) {
    let (mut column, mut rest) = (columns.start, sums);
    while column < columns.end {
        let (group, first) = (column / LANES, column % LANES);
        let is_wide = first == 0 && columns.end - column >= ABREAST * LANES;
        let count = if is_wide { ABREAST * LANES } else { (LANES - first).min(columns.end - column) };
        let Some((sums, others)) = std::mem::take(&mut rest).split_at_mut_checked(count) else { return };
        for (at, x) in x.chunks(BLOCK).enumerate() {
            let start = steps.start + at * BLOCK;
            let some = start..start + x.len();
            if is_wide {
                let new = block_sums::<BITS, ABREAST>(of, x, some, group);
                write(start == 0, new.as_flattened(), sums);
            } else {
                let [new] = block_sums::<BITS, 1>(of, x, some, group);
                write(start == 0, new.get(first..).unwrap_or(&[]), sums);
            }
        }
        (rest, column) = (others, column + count);
    }
}

/// Puts sums in the place of those before, or adds them.
#[inline(always)]
fn write(first: bool, new: &[f32], sums: &mut [f32]) {
    for (sum, new) in sums.iter_mut().zip(new) {
        *sum = if first { *new } else { *sum + new };
    }
}

/// The sums of the products of some steps and of the columns of `N` groups.
#[inline(always)]
fn block_sums<const BITS: usize, const N: usize>(
    of: &Dequantized<'_>,
    x: &[f32],
    steps: Range<usize>,
    group: usize,
) -> [[f32; LANES]; N] {
    let (Blocked { k, block, .. }, of_word) = (of.sizes, 32 / BITS);
    let mut sums = [[0f32; LANES]; N];
    let (mut step, mut rest) = (steps.start, x);
    while step < steps.end.min(k) {
        let start = step / block * block;
        let parts: [Part<'_, BITS>; N] = from_fn(|n| of.part(group + n, step / block));
        let end = steps.end.min(k).min(start + block);
        let (own, others) = rest.split_at((end - step).min(rest.len()));
        let (first, row) = ((step - start) % of_word, (step - start) / of_word);
        let (head, whole) = own.split_at(if first == 0 { 0 } else { (of_word - first).min(own.len()) });
        multiply(&parts, row, first, head, &mut sums);
        let next = row + usize::from(first > 0);
        let tail = whole.len() / of_word * of_word;
        for (at, x) in whole.chunks_exact(of_word).enumerate() {
            multiply(&parts, next + at, 0, x, &mut sums);
        }
        multiply(&parts, next + whole.len() / of_word, 0, whole.get(tail..).unwrap_or(&[]), &mut sums);
        (step, rest) = (end, others);
    }
    sums
}

/// Adds the products of the steps of a row of words, from one on.
#[inline(always)]
fn multiply<const BITS: usize, const N: usize>(
    parts: &[Part<'_, BITS>; N],
    row: usize,
    first: usize,
    x: &[f32],
    sums: &mut [[f32; LANES]; N],
) {
    for (at, x) in x.iter().enumerate() {
        for (part, sums) in parts.iter().zip(&mut *sums) {
            let Some(words) = part.rows.get(row) else { return };
            let floats = part.floats(words, first + at);
            for (sum, float) in sums.iter_mut().zip(floats) {
                *sum = Number::mul_add(*x, float, *sum);
            }
        }
    }
}

/// A block of a group: rows of words, zero points as [`floats_of`] gives them, and scales.
struct Part<'a, const BITS: usize> {
    rows: &'a [[u32; LANES]],
    zeros: [f32; LANES],
    scales: [f32; LANES],
}

impl<const BITS: usize> Part<'_, BITS> {
    /// Writes some steps of the block, which are `width` elements apart.
    #[inline(always)]
    fn write(&self, steps: Range<usize>, lanes: &Range<usize>, width: usize, to: &mut [f32]) {
        let of_word = 32 / BITS;
        let (mut step, mut lines) = (steps.start, to.chunks_mut(width));
        while step < steps.end {
            let Some(row) = self.rows.get(step / of_word) else { return };
            let first = step % of_word;
            let count = (of_word - first).min(steps.end - step);
            if first == 0 && count == of_word && lanes.len() == LANES {
                for at in 0..of_word {
                    let floats = self.floats(row, at);
                    if let Some(line) = lines.next().and_then(|line| line.first_chunk_mut()) {
                        *line = floats;
                    }
                }
            } else {
                for at in first..first + count {
                    let floats = self.floats(row, at);
                    let from = floats.get(lanes.clone()).unwrap_or(&[]);
                    if let Some(line) = lines.next().and_then(|line| line.get_mut(..from.len())) {
                        line.copy_from_slice(from);
                    }
                }
            }
            step += count;
        }
    }

    /// The floats of a step: one of those that words have.
    #[inline(always)]
    fn floats(&self, words: &[u32; LANES], at: usize) -> [f32; LANES] {
        let (shift, mask) = (at * BITS, (1u32 << BITS) - 1);
        let mut floats = [0f32; LANES];
        for (((float, word), zero), scale) in floats.iter_mut().zip(words).zip(&self.zeros).zip(&self.scales) {
            *float = (f32::from_bits(INTEGER | (word >> shift) & mask) - zero) * scale;
        }
        floats
    }
}

/// Unsigned integers as floats that are [greater](INTEGER) by 2^23.
#[inline(always)]
fn floats_of(integers: &[u8; LANES]) -> [f32; LANES] {
    let mut floats = [0f32; LANES];
    for (float, integer) in floats.iter_mut().zip(integers) {
        *float = f32::from_bits(INTEGER | u32::from(*integer));
    }
    floats
}

#[cfg(test)]
mod tests {
    use super::super::tests::samples;
    use super::super::{Batch, Left, Product, Right, View};
    use super::*;
    use crate::testing::{at_each_level, on_threads, sized};

    /// A matrix of small integers, as rows or as columns of memory.
    struct Case {
        sizes: Blocked,
        signed: bool,
        turned: bool,
        zeros: bool,
        half: Option<Half>,
    }

    impl Case {
        /// Its product with `m` rows, and the same of floats.
        fn products(&self, m: usize, threads: usize) -> [Vec<f32>; 2] {
            let Blocked { bits, k, n, block } = self.sizes;
            let blocks = k.div_ceil(block);
            let integer = |seed: u8| match (bits, self.signed) {
                (Bits::Four, true) => ((seed << 4) as i8 >> 4) as u8,
                (Bits::Four, false) => seed & 15,
                (Bits::Eight, _) => seed,
            };
            let integers =
                |count: usize, seed: u64| -> Vec<u8> { samples::<u8>(count, seed).into_iter().map(integer).collect() };
            let (bytes, zeros) = (integers(k * n, 1), self.zeros.then(|| integers(blocks * n, 2)));
            let scales: Vec<f32> = samples::<f32>(blocks * n, 3);
            let apart = |width: usize, height: usize| if self.turned { [1, height] } else { [width, 1] };
            let (apart, scales_apart) = (apart(n, k), apart(n, blocks));
            let value = |byte: u8| if self.signed { f32::from(byte as i8) } else { f32::from(byte) };
            let floats: Vec<f32> = (0..k * n)
                .map(|at| {
                    let (p, j) = (at / n, at % n);
                    let scale = p / block * scales_apart[0] + j * scales_apart[1];
                    let zero = zeros.as_ref().map_or(0.0, |zeros| value(zeros[scale]));
                    let float = (value(bytes[p * apart[0] + j * apart[1]]) - zero) * scales[scale];
                    match self.half {
                        Some(Half::F16) => half::f16::from_f32(float).to_f32(),
                        Some(Half::Bf16) => half::bf16::from_f32(float).to_f32(),
                        None => float,
                    }
                })
                .collect();
            let integers = Integers {
                sizes: self.sizes,
                signed: self.signed,
                bytes: &bytes,
                apart,
                scales: &scales,
                zeros: zeros.as_deref(),
                scales_apart,
            };
            let (mut words, x) = (vec![7; self.sizes.packed_len()], samples::<f32>(m * k, 4));
            on_threads(threads, || {
                let resources = Resources { threads, stop: None };
                integers.pack(&mut words, resources).unwrap();
                let small = Right::Dequantized(Dequantized::new(self.sizes, &words, self.half));
                [small, Right::View(View::rows(&floats, n))].map(|b| {
                    let batch = [Batch { size: 1, a: 0, b: 0 }];
                    let product =
                        Product { m, k, n, a: Left::View(View::rows(&x, k)), b, batch: &batch, epilogue: &[] };
                    let plan = product.plan(resources);
                    let (mut out, mut scratch) = (vec![f32::NAN; m * n], vec![f32::NAN; plan.scratch()]);
                    plan.run(&mut out, &mut scratch, resources).unwrap();
                    out
                })
            })
        }
    }

    /// The bits of the product of floats, for blocks and columns that fill their words and groups or don't.
    #[test]
    fn products_of_small_integers() {
        let cases = [
            (1, 1, 1, 1),
            (3, 32, 16, 8),
            (1, 100, 40, 32),
            (17, 90, 40, 90),
            (1, 500, 33, 100),
            (2, 400, 70, 400),
            (250, 40, 33, 16),
        ];
        for (at, (m, k, n, block)) in sized(&cases[..], &cases[1..2]).iter().copied().enumerate() {
            for (other, bits) in [Bits::Four, Bits::Eight].into_iter().enumerate() {
                let sizes = Blocked { bits, k, n, block };
                for (signed, turned) in [(false, false), (true, true), (true, false)] {
                    let half = [None, Some(Half::F16), None, Some(Half::Bf16)][(at + other) % 4];
                    let case = Case { sizes, signed, turned, zeros: (at + other) % 3 != 0, half };
                    let check = |threads: usize| {
                        let [got, want] = case.products(m, threads);
                        assert_eq!(got, want, "{m} rows by {sizes:?}, {signed} {turned} {half:?}, {threads} threads");
                    };
                    at_each_level(|| check(1));
                    check(3);
                }
            }
        }
    }

    /// What isn't there is refused.
    #[test]
    fn misfits() {
        let sizes = Blocked { bits: Bits::Four, k: 64, n: 20, block: 32 };
        let (bytes, scales, mut words) = (vec![0; 64 * 20], vec![1.0; 40], vec![0; sizes.packed_len()]);
        let whole = Integers {
            sizes,
            signed: false,
            bytes: &bytes,
            apart: [20, 1],
            scales: &scales,
            zeros: Some(&bytes[..40]),
            scales_apart: [20, 1],
        };
        let resources = Resources { threads: 1, stop: None };
        assert_eq!(whole.pack(&mut words, resources), Ok(()));
        for lacking in [
            Integers { bytes: &bytes[1..], ..whole },
            Integers { scales: &scales[1..], ..whole },
            Integers { zeros: Some(&bytes[..39]), ..whole },
            Integers { sizes: Blocked { block: 0, ..sizes }, ..whole },
            Integers { sizes: Blocked { k: 0, ..sizes }, ..whole },
            Integers { apart: [0, 1], ..whole },
            Integers { sizes: Blocked { n: 21, ..sizes }, ..whole },
        ] {
            assert_eq!(lacking.pack(&mut words, resources), Err(Stopped::Misfit), "{lacking:?}");
        }
        let b = Dequantized::new(sizes, &words, None);
        assert_eq!(b.check::<f32>(0, 64, 20), Ok(()));
        assert_eq!(b.check::<f32>(0, 64, 21), Err(Stopped::Misfit));
        assert_eq!(b.check::<f32>(1, 64, 20), Err(Stopped::Misfit));
        assert_eq!(b.check::<u32>(0, 64, 20), Err(Stopped::Misfit));
        let short = Dequantized::new(sizes, &words[1..], None);
        assert_eq!(short.check::<f32>(0, 64, 20), Err(Stopped::Misfit));
    }
}
