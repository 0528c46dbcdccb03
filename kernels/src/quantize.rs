//! Quantized numbers: numbers over a scale, rounded, plus a zero point; and back.

use crate::convert::{BLOCK, Conversion, Direction, Rounding, block};
use crate::cpu::for_each_level;
use crate::format::Format;
use crate::half::Half;
use crate::number::Float;
use crate::{Resources, Stopped, parallel};
use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// Which elements share a scale and a zero point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// All.
    All,
    /// Those of each entry along an axis. Entries have `inner` elements.
    Axis { entries: usize, inner: usize },
    /// Those at one place of `block` successive entries along an axis.
    Blocks { entries: usize, inner: usize, block: usize },
}

/// Elements that follow each other: the scale of the first, their number, and whether they share it. Else they have those
/// that follow.
struct Run {
    scale: usize,
    count: usize,
    shared: bool,
}

impl Spread {
    /// The run that starts at an element.
    fn run(self, at: usize) -> Run {
        match self {
            Spread::All => Run { scale: 0, count: usize::MAX, shared: true },
            Spread::Axis { entries, inner: 1 } => {
                let entry = at % entries;
                Run { scale: entry, count: entries - entry, shared: false }
            }
            Spread::Axis { entries, inner } => {
                Run { scale: at / inner % entries, count: inner - at % inner, shared: true }
            }
            Spread::Blocks { entries, inner, block } => {
                let (row, place) = (at / inner, at % inner);
                let (outer, entry) = (row / entries, row % entries);
                let scale = (outer * entries.div_ceil(block) + entry / block) * inner + place;
                match inner {
                    1 => Run { scale, count: (block - entry % block).min(entries - entry), shared: true },
                    _ => Run { scale, count: inner - place, shared: false },
                }
            }
        }
    }

    /// Writes what belongs to the elements from `at` on: one of `values` each.
    fn spread<T: Copy>(self, mut at: usize, values: &[T], mut to: &mut [T]) -> Result<(), Stopped> {
        while !to.is_empty() {
            let Run { scale, count, shared } = self.run(at);
            let (part, rest) = to.split_at_mut(count.min(to.len()));
            match shared {
                true => part.fill(*values.get(scale).ok_or(Stopped::Misfit)?),
                false => part.copy_from_slice(values.get(scale..scale + part.len()).ok_or(Stopped::Misfit)?),
            }
            (at, to) = (at + part.len(), rest);
        }
        Ok(())
    }
}

/// Scales and zero points, as many of each.
#[derive(Debug, Clone, Copy)]
pub struct Scales<'a, T> {
    pub spread: Spread,
    pub scales: &'a [T],
    pub zeros: Option<&'a [T]>,
}

/// The scales and zero points of a block of elements.
struct Block<T> {
    scales: [T; BLOCK],
    zeros: [T; BLOCK],
    half: Option<Half>,
}

impl<T: Precision> Scales<'_, T> {
    /// Room for those of a block, with scales rounded to a type. Those that all elements share are in it.
    fn room(&self, half: Option<Half>) -> Result<Block<T>, Stopped> {
        let mut room = Block { scales: [T::ZERO; BLOCK], zeros: [T::ZERO; BLOCK], half };
        if self.spread == Spread::All {
            self.write(0, BLOCK, &mut room)?;
        }
        Ok(room)
    }

    /// Those of `count` elements from `at` on.
    fn of<'r>(&self, at: usize, count: usize, room: &'r mut Block<T>) -> Result<[&'r [T]; 2], Stopped> {
        if self.spread != Spread::All {
            self.write(at, count, room)?;
        }
        Ok([&room.scales, &room.zeros].map(|values| values.get(..count).unwrap_or(&[])))
    }

    fn write(&self, at: usize, count: usize, room: &mut Block<T>) -> Result<(), Stopped> {
        let scales = room.scales.get_mut(..count).unwrap_or(&mut []);
        self.spread.spread(at, self.scales, scales)?;
        halve(room.half, scales);
        match self.zeros {
            Some(zeros) => self.spread.spread(at, zeros, room.zeros.get_mut(..count).unwrap_or(&mut [])),
            None => Ok(()),
        }
    }
}

/// A type to compute with: `f32` or `f64`.
pub trait Precision: Float + Pod {
    const FORMAT: Format;
}

impl Precision for f32 {
    const FORMAT: Format = Format::Single;
}

impl Precision for f64 {
    const FORMAT: Format = Format::Double;
}

/// How elements are quantized: `saturate(round(x / scale) + zero point)`, ties to even. NaN becomes the integer 0.
///
/// For a float type it is `round(x / scale + zero point)`.
#[derive(Debug, Clone, Copy)]
pub struct Quantize {
    pub from: Format,
    /// Of at most 16 bits.
    pub to: Format,
    /// `x`, scales, quotients and sums of floats are rounded to this type, if it is given.
    pub half: Option<Half>,
    /// See [`Rounding::saturate`].
    pub saturate: bool,
}

/// Elements that are converted in blocks; the rest concerns no type that isn't said.
fn rounding(saturate: bool) -> Rounding {
    Rounding { saturate, direction: Direction::Up, clamp: false }
}

/// Quantizes elements.
pub fn quantize<T: Precision>(
    work: Quantize,
    scales: Scales<'_, T>,
    elements: &[u8],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    /// Bytes that are written in the time of a division.
    const COST: usize = 4;
    let (from, to) = (work.from.size(), work.to.size());
    parallel::split_by(out, to, COST.max(from.div_ceil(to)), resources, |first, out| {
        let (mut room, mut numbers) = (scales.room(work.half)?, [T::ZERO; BLOCK]);
        let elements = elements.get(first * from..).unwrap_or(&[]);
        for (k, (elements, out)) in elements.chunks(BLOCK * from).zip(out.chunks_mut(BLOCK * to)).enumerate() {
            let count = out.len() / to;
            let numbers = numbers.get_mut(..count).unwrap_or(&mut []);
            let [scales, zeros] = scales.of(first + k * BLOCK, count, &mut room)?;
            let elements = elements.get(..count * from).ok_or(Stopped::Misfit)?;
            block(
                Conversion { from: work.from, to: T::FORMAT, rounding: rounding(false) },
                elements,
                cast_slice_mut(numbers),
            );
            halve(work.half, numbers);
            divide(numbers, scales);
            halve(work.half, numbers);
            match range(work.to) {
                Some([least, most]) => place(numbers, zeros, T::of(least), T::of(most)),
                None => {
                    add(numbers, zeros);
                    halve(work.half, numbers);
                }
            }
            block(
                Conversion { from: T::FORMAT, to: work.to, rounding: rounding(work.saturate) },
                cast_slice(numbers),
                out,
            );
        }
        Ok(())
    })
}

/// The least and the greatest integer of a type.
fn range(format: Format) -> Option<[f64; 2]> {
    match format {
        Format::Signed(bits) => {
            let half = f64::from(1u32 << (bits - 1));
            Some([-half, half - 1.0])
        }
        Format::Unsigned(bits) => Some([0.0, f64::from(1u32 << bits) - 1.0]),
        _ => None,
    }
}

/// Rounds numbers to a type of 16 bits.
fn halve<T: Precision>(half: Option<Half>, numbers: &mut [T]) {
    let Some(half) = half else { return };
    let mut room = [0u16; BLOCK];
    let room = cast_slice_mut(&mut room).get_mut(..2 * numbers.len()).unwrap_or(&mut []);
    let conversion = |from, to| Conversion { from, to, rounding: rounding(false) };
    block(conversion(T::FORMAT, Format::Half(half)), cast_slice(numbers), room);
    block(conversion(Format::Half(half), T::FORMAT), room, cast_slice_mut(numbers));
}

for_each_level! {
    fn divide<T: Float>(numbers: &mut [T], scales: &[T]) -> () = divide_body::<T>;
}

#[inline(always)]
fn divide_body<T: Float>(numbers: &mut [T], scales: &[T]) {
    for (number, scale) in numbers.iter_mut().zip(scales) {
        *number = *number / *scale;
    }
}

for_each_level! {
    fn add<T: Float>(numbers: &mut [T], zeros: &[T]) -> () = add_body::<T>;
}

#[inline(always)]
fn add_body<T: Float>(numbers: &mut [T], zeros: &[T]) {
    for (number, zero) in numbers.iter_mut().zip(zeros) {
        *number = *number + *zero;
    }
}

for_each_level! {
    /// Rounds numbers to integers, adds zero points, and ends at a range. NaN stays.
    fn place<T: Float>(numbers: &mut [T], zeros: &[T], least: T, most: T) -> () = place_body::<T>;
}

#[inline(always)]
fn place_body<T: Float>(numbers: &mut [T], zeros: &[T], least: T, most: T) {
    for (number, zero) in numbers.iter_mut().zip(zeros) {
        let placed = number.round_ties_even() + *zero;
        let placed = if placed < least { least } else { placed };
        *number = if placed > most { most } else { placed };
    }
}

/// Makes floats of quantized elements: `(x - zero point) * scale`, in `f32`, rounded once.
pub fn dequantize(
    [from, to]: [Format; 2],
    scales: Scales<'_, f32>,
    elements: &[u8],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let [(from, size), (to, bytes)] = [from, to].map(|format| (format, format.size()));
    parallel::split_by(out, bytes, size.div_ceil(bytes), resources, |first, out| {
        let (mut room, mut numbers) = (scales.room(None)?, [0f32; BLOCK]);
        let elements = elements.get(first * size..).unwrap_or(&[]);
        for (k, (elements, out)) in elements.chunks(BLOCK * size).zip(out.chunks_mut(BLOCK * bytes)).enumerate() {
            let count = out.len() / bytes;
            let numbers = numbers.get_mut(..count).unwrap_or(&mut []);
            let [scales, zeros] = scales.of(first + k * BLOCK, count, &mut room)?;
            let elements = elements.get(..count * size).ok_or(Stopped::Misfit)?;
            let conversion = |from, to| Conversion { from, to, rounding: rounding(false) };
            block(conversion(from, Format::Single), elements, cast_slice_mut(numbers));
            scale(numbers, scales, zeros);
            block(conversion(Format::Single, to), cast_slice(numbers), out);
        }
        Ok(())
    })
}

for_each_level! {
    fn scale<>(numbers: &mut [f32], scales: &[f32], zeros: &[f32]) -> () = scale_body;
}

#[inline(always)]
fn scale_body(numbers: &mut [f32], scales: &[f32], zeros: &[f32]) {
    for ((number, scale), zero) in numbers.iter_mut().zip(scales).zip(zeros) {
        *number = (*number - *zero) * *scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_each_level, sized};

    /// The scale of each element, one by one.
    fn plainly(spread: Spread, at: usize) -> usize {
        match spread {
            Spread::All => 0,
            Spread::Axis { entries, inner } => at / inner % entries,
            Spread::Blocks { entries, inner, block } => {
                let blocks = entries.div_ceil(block);
                (at / inner / entries * blocks + at / inner % entries / block) * inner + at % inner
            }
        }
    }

    /// Every spread, with rows that are shorter and longer than a block of elements, on each level, by some threads.
    #[test]
    fn spreads() {
        let (count, most) = (sized(33_000, 700), 33_001);
        let elements: Vec<i8> = (0..count).map(|k| (k * 7 % 251) as u8 as i8).collect();
        let scales: Vec<f32> = (0..most).map(|k| (k % 97 + 1) as f32 / 8.0).collect();
        let zeros: Vec<f32> = (0..most).map(|k| (k % 11) as f32 - 5.0).collect();
        let mut spreads = vec![Spread::All];
        for (entries, inner) in [(1, 1), (5, 1), (300, 1), (5, 3), (2, 700), (700, 2)] {
            spreads.push(Spread::Axis { entries, inner });
            spreads.extend([1, 2, 4, usize::MAX].map(|block| Spread::Blocks { entries, inner, block }));
        }
        for spread in spreads {
            let value = |at: usize, scale: usize| (f32::from(elements[at]) - zeros[scale]) * scales[scale];
            let floats: Vec<f32> = (0..count).map(|at| value(at, plainly(spread, at))).collect();
            let given = Scales { spread, scales: &scales, zeros: Some(&zeros) };
            at_each_level(|| {
                for threads in [1, 3] {
                    let resources = Resources { threads, stop: None };
                    let mut out = vec![0f32; count];
                    let formats = [Format::Signed(8), Format::Single];
                    dequantize(formats, given, cast_slice(&elements), cast_slice_mut(&mut out), resources).unwrap();
                    assert_eq!(out, floats, "{spread:?}");
                    let mut back = vec![0i8; count];
                    let work = Quantize { from: Format::Single, to: Format::Signed(8), half: None, saturate: true };
                    quantize(work, given, cast_slice(&floats), cast_slice_mut(&mut back), resources).unwrap();
                    assert_eq!(back, elements, "{spread:?}");
                }
            });
        }
    }

    #[test]
    fn too_few_scales() {
        let given = Scales { spread: Spread::Axis { entries: 2, inner: 1 }, scales: &[1f32], zeros: None };
        let resources = Resources { threads: 1, stop: None };
        let outcome = dequantize([Format::Signed(8), Format::Single], given, &[0; 2], &mut [0; 8], resources);
        assert_eq!(outcome, Err(Stopped::Misfit));
    }
}
