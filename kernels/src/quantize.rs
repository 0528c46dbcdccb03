//! Quantized numbers: numbers over a scale, rounded, plus a zero point; and back.

use crate::convert::{BLOCK, Conversion, Direction, Rounding, block};
use crate::cpu::for_each_level;
use crate::format::Format;
use crate::half::Half;
use crate::number::Float;
use crate::quotients::{Divided, write};
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

    /// Whether elements that follow each other share a scale.
    fn shares(self) -> bool {
        match self {
            Spread::All => true,
            Spread::Axis { inner, .. } => inner > 1,
            Spread::Blocks { inner, .. } => inner == 1,
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

    /// Calls `work` with the parts of `out` that share a scale and a zero point: where in `out` it starts, both, and the
    /// part. The first element has a number.
    fn runs<U>(&self, first: usize, mut out: &mut [U], work: impl Fn(usize, T, T, &mut [U])) -> Result<(), Stopped> {
        let mut at = 0;
        while !out.is_empty() {
            let Run { scale, count, .. } = self.spread.run(first + at);
            let (part, rest) = out.split_at_mut(count.min(out.len()));
            let zero = match self.zeros {
                Some(zeros) => *zeros.get(scale).ok_or(Stopped::Misfit)?,
                None => T::ZERO,
            };
            work(at, *self.scales.get(scale).ok_or(Stopped::Misfit)?, zero, part);
            (at, out) = (at + part.len(), rest);
        }
        Ok(())
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

    /// The nearest number.
    fn of_integer(integer: i32) -> Self;
    /// The nearest integer, ties to even, modulo 256: of numbers from -512 to 512.
    fn byte(self) -> u8;
}

impl Precision for f32 {
    const FORMAT: Format = Format::Single;

    #[inline(always)]
    fn of_integer(integer: i32) -> f32 {
        integer as f32
    }
    /// Beside 1.5 * 2^23 the bits of a float are those of the integer, which is sooner there than by a conversion.
    #[inline(always)]
    fn byte(self) -> u8 {
        (self + 12_582_912.0).to_bits() as u8
    }
}

impl Precision for f64 {
    const FORMAT: Format = Format::Double;

    #[inline(always)]
    fn of_integer(integer: i32) -> f64 {
        integer.into()
    }
    /// As that of `f32`, beside 1.5 * 2^52.
    #[inline(always)]
    fn byte(self) -> u8 {
        (self + 6_755_399_441_055_744.0).to_bits() as u8
    }
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
        if let (Format::Single, Format::Single, None, Some(limits)) = (work.from, T::FORMAT, work.half, bytes(work.to))
            && scales.spread.shares()
        {
            let end = first + out.len();
            let elements: &[f32] = cast_slice(elements.get(first * from..end * from).ok_or(Stopped::Misfit)?);
            return scales.runs(first, out, |at, scale, zero, out| {
                let numbers = elements.get(at..).unwrap_or(&[]).iter().copied();
                let [scale, zero] = [scale, zero].map(|of| of.to_f64() as f32);
                write(numbers, Divided { scale, zero, limits: limits.map(|limit| limit as f32) }, out);
            });
        }
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

/// As [`range`], of integers of 8 bits alone.
fn bytes(format: Format) -> Option<[f64; 2]> {
    range(format).filter(|_| matches!(format, Format::Signed(8) | Format::Unsigned(8)))
}

/// A number as an integer of 8 bits, with its zero point and within its range; 0 for NaN.
#[inline(always)]
pub(super) fn rounded<T: Precision>(number: T, zero: T, least: T, most: T) -> u8 {
    let number = placed(number, zero, least, most);
    T::byte(if number.is_nan() { T::ZERO } else { number })
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
        *number = placed(*number, *zero, least, most);
    }
}

#[inline(always)]
pub(super) fn placed<T: Float>(number: T, zero: T, least: T, most: T) -> T {
    let placed = number.round_ties_even() + zero;
    let placed = if placed < least { least } else { placed };
    if placed > most { most } else { placed }
}

/// The least and the greatest of some numbers and 0; NaN if one is NaN.
pub fn extremes(numbers: &[f32], resources: Resources<'_>) -> Result<[f32; 2], Stopped> {
    /// Numbers that are read between two checks whether to stop, and of which two such parts are worth waking a thread.
    const PART: usize = 1 << 15;
    let threads = parallel::threads(numbers.len(), 2 * PART, 4 * PART, resources);
    let mut ranges = vec![[0f32; 2]; threads];
    parallel::tasks(numbers.len().div_ceil(PART), ranges.iter_mut().collect(), resources.stop, |range, at| {
        let numbers = numbers.get(at * PART..).unwrap_or(&[]);
        extend(range, numbers.get(..PART).unwrap_or(numbers));
        Ok(())
    })?;
    let [least, most] = ranges
        .into_iter()
        .fold([0f32; 2], |[least, most], [least_of, most_of]| [least.smaller(least_of), most.larger(most_of)]);
    Ok(if most.is_nan() { [most; 2] } else { [least, most] })
}

for_each_level! {
    /// Extends a range to some numbers. NaN becomes its end.
    fn extend<>(range: &mut [f32; 2], numbers: &[f32]) -> () = extend_body;
}

#[inline(always)]
fn extend_body(range: &mut [f32; 2], numbers: &[f32]) {
    /// Numbers that are compared abreast.
    const ABREAST: usize = 64;
    let (mut least, mut most) = ([range[0]; ABREAST], [range[1]; ABREAST]);
    let (blocks, rest) = numbers.as_chunks::<ABREAST>();
    for block in blocks {
        for ((number, least), most) in block.iter().zip(&mut least).zip(&mut most) {
            *least = if *number < *least { *number } else { *least };
            *most = number.larger(*most);
        }
    }
    for (number, (least, most)) in rest.iter().zip(least.iter_mut().zip(&mut most)) {
        *least = if *number < *least { *number } else { *least };
        *most = number.larger(*most);
    }
    *range = [least.into_iter().fold(0.0, f32::smaller), most.into_iter().fold(0.0, f32::larger)];
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
        if let (Some([least, _]), Format::Single, true) = (self::bytes(from), to, scales.spread.shares()) {
            let elements = elements.get(first..first + out.len() / bytes).ok_or(Stopped::Misfit)?;
            return scales.runs(first, cast_slice_mut(out), |at, scale, zero, out| {
                dequantize_bytes(elements.get(at..).unwrap_or(&[]), least < 0.0, scale, zero, out);
            });
        }
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

/// As [`dequantize`], of bytes that share a scale and a zero point.
pub fn dequantize_part(bytes: &[u8], signed: bool, [scale, zero]: [f32; 2], out: &mut [f32]) {
    dequantize_bytes(bytes, signed, scale, zero, out);
}

/// As [`quantize`], to bytes that share a scale and a zero point.
pub fn quantize_part(numbers: &[f32], signed: bool, [scale, zero]: [f32; 2], out: &mut [u8]) {
    let limits = if signed { [-128.0, 127.0] } else { [0.0, 255.0] };
    write(numbers.iter().copied(), Divided { scale, zero, limits }, out);
}

for_each_level! {
    /// As the steps of [`dequantize`], in one pass.
    fn dequantize_bytes<>(bytes: &[u8], signed: bool, scale: f32, zero: f32, out: &mut [f32]) -> () = dequantize_bytes_body;
}

#[inline(always)]
fn dequantize_bytes_body(bytes: &[u8], signed: bool, scale: f32, zero: f32, out: &mut [f32]) {
    if signed {
        for (byte, out) in bytes.iter().zip(out) {
            *out = (f32::from(*byte as i8) - zero) * scale;
        }
    } else {
        for (byte, out) in bytes.iter().zip(out) {
            *out = (f32::from(*byte) - zero) * scale;
        }
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

    /// In one pass: numbers of all kinds give the bits of the steps, each element with a scale of its own.
    #[test]
    fn bytes_in_one_pass() {
        let odd =
            [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -0.0, 1e-45, 0.5, 1.5, 2.5];
        let numbers: Vec<f32> =
            odd.into_iter().chain((0..sized(5000, 90)).map(|k| (k as f32 - 2500.0) * 0.1)).collect();
        let count = numbers.len();
        for (to, zero) in [(Format::Unsigned(8), 131.0), (Format::Signed(8), -7.0), (Format::Unsigned(8), 0.0)] {
            for scale in [0.5f32, 0.37, 0.0, -1.0, f32::NAN, f32::INFINITY, 1e-40] {
                let (scales, zeros) = (vec![scale; count], vec![zero; count]);
                let each = Spread::Axis { entries: count, inner: 1 };
                at_each_level(|| {
                    let quantized = |spread| {
                        let given = Scales { spread, scales: &scales, zeros: Some(&zeros) };
                        let resources = Resources { threads: 1, stop: None };
                        let mut out = vec![1u8; count];
                        let work = Quantize { from: Format::Single, to, half: None, saturate: true };
                        quantize(work, given, cast_slice(&numbers), &mut out, resources).unwrap();
                        let (mut back, formats) = (vec![0f32; count], [to, Format::Single]);
                        dequantize(formats, given, &out, cast_slice_mut(&mut back), resources).unwrap();
                        (out, back.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
                    };
                    assert_eq!(quantized(Spread::All), quantized(each), "{to:?}, {scale}");
                });
            }
        }
    }

    #[test]
    fn extremes_of_numbers() {
        let numbers: Vec<f32> = (0..sized(300_000, 300usize)).map(|k| (k * 7919 % 1000) as f32 - 300.0).collect();
        at_each_level(|| {
            for threads in [1, 3] {
                let of = |numbers: &[f32]| extremes(numbers, Resources { threads, stop: None }).unwrap();
                for count in [0, 1, 2, 63, 64, 65, 200, numbers.len()] {
                    let numbers = &numbers[..count];
                    let least = numbers.iter().copied().fold(0.0, f32::min);
                    assert_eq!(of(numbers), [least, numbers.iter().copied().fold(0.0, f32::max)]);
                }
                assert_eq!(of(&[3.0, 5.0]), [0.0, 5.0]);
                for at in [0, 70, numbers.len() - 1] {
                    let mut numbers = numbers.clone();
                    numbers[at] = f32::NAN;
                    assert!(of(&numbers).iter().all(|x| x.is_nan()), "{at}");
                }
            }
        });
    }

    #[test]
    fn too_few_scales() {
        let given = Scales { spread: Spread::Axis { entries: 2, inner: 1 }, scales: &[1f32], zeros: None };
        let resources = Resources { threads: 1, stop: None };
        let outcome = dequantize([Format::Signed(8), Format::Single], given, &[0; 2], &mut [0; 8], resources);
        assert_eq!(outcome, Err(Stopped::Misfit));
    }
}
