//! Blocks of an image, added up where they overlap: the inverse of what a convolution reads.
//!
//! The columns of a plane are `[taps, positions]`: for each tap of a window, what it adds to the image at each position. A
//! place of the image adds up what its taps say, in their order, in a type that is wider than the elements, and is rounded
//! once.

use super::half::odd;
use super::windows::Axis;
use super::{Lookout, Resources, Stopped, parallel, volume};
use crate::cpu::for_each_level;
use bytemuck::{Pod, cast_slice_mut};
use half::{bf16, f16};
use smallvec::SmallVec;
use std::ops::Range;

/// An element that is added up in another type.
pub trait Summand: Pod + Send + Sync {
    type Sum: Pod;

    const ZERO: Self::Sum;

    /// The sum, rounded or wrapping.
    fn add(self, sum: Self::Sum) -> Self::Sum;
    /// The nearest element.
    fn of(sum: Self::Sum) -> Self;
}

macro_rules! floats {
    ($($type:ty: |$sum:ident| $of:expr;)*) => {$(
        impl Summand for $type {
            type Sum = f64;

            const ZERO: f64 = 0.0;

            #[inline(always)]
            fn add(self, sum: f64) -> f64 {
                sum + f64::from(self)
            }
            #[inline(always)]
            fn of($sum: f64) -> Self {
                $of
            }
        }
    )*};
}

floats! {
    f32: |sum| sum as f32;
    f64: |sum| sum;
    f16: |sum| f16::from_f32(odd(sum));
    bf16: |sum| bf16::from_f32(odd(sum));
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Summand for $type {
            type Sum = $type;

            const ZERO: $type = 0;

            #[inline(always)]
            fn add(self, sum: $type) -> $type {
                sum.wrapping_add(self)
            }
            #[inline(always)]
            fn of(sum: $type) -> $type {
                sum
            }
        }
    )*};
}

// Signed integers have the same bits.
integers!(u8 u16 u32 u64);

/// Complex numbers, and blocks of channels.
impl<T: Summand<Sum = f64>, const N: usize> Summand for [T; N]
where
    [T; N]: Pod,
    [f64; N]: Pod,
{
    type Sum = [f64; N];

    const ZERO: [f64; N] = [0.0; N];

    #[inline(always)]
    fn add(self, mut sum: [f64; N]) -> [f64; N] {
        for (sum, part) in sum.iter_mut().zip(self) {
            *sum = part.add(*sum);
        }
        sum
    }
    #[inline(always)]
    fn of(sum: [f64; N]) -> [T; N] {
        let mut parts = [T::zeroed(); N];
        for (part, sum) in parts.iter_mut().zip(sum) {
            *part = T::of(sum);
        }
        parts
    }
}

/// A byte that is 0 or 1; the sum is `or`.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(transparent)]
pub struct Truth(u8);

impl Summand for Truth {
    type Sum = u8;

    const ZERO: u8 = 0;

    #[inline(always)]
    fn add(self, sum: u8) -> u8 {
        sum | self.0
    }
    #[inline(always)]
    fn of(sum: u8) -> Truth {
        Truth(sum)
    }
}

/// Places of a row whose sums are computed at a time: at most, and by the bytes of these.
const PIECE: usize = 256;
const BYTES: usize = 8 << 10;

/// Steps of [`fold`] for an image of some planes; saturates.
pub fn work(axes: &[Axis], planes: usize) -> usize {
    let Some((inner, outer)) = axes.split_last() else { return planes };
    let taps = volume(1, axes.iter().map(|axis| &axis.kernel));
    let positions = volume(taps, axes.iter().map(|axis| &axis.output));
    // Each piece of a row tries some taps along each axis.
    let tries = |axis: &Axis, len: usize| {
        axis.kernel.min((reach(axis).saturating_add(len) / axis.dilation.max(1)).saturating_add(1))
    };
    let pieces = volume(inner.input.div_ceil(PIECE), outer.iter().map(|axis| &axis.input));
    let tries = outer.iter().fold(tries(inner, PIECE), |all, axis| all.saturating_mul(tries(axis, 1)));
    positions.saturating_add(pieces.saturating_mul(tries)).saturating_mul(planes)
}

/// From the first position to the last, in places.
fn reach(axis: &Axis) -> usize {
    axis.output.saturating_sub(1).saturating_mul(axis.stride)
}

/// The taps that may be at one of `len` places: not before the first position, and not behind the last.
fn tries(axis: &Axis, first: usize, len: usize) -> Range<usize> {
    let (start, dilation) = (first.saturating_add(axis.pad), axis.dilation.max(1));
    let low = start.saturating_sub(reach(axis)).div_ceil(dilation).min(axis.kernel);
    low..start.saturating_add(len).div_ceil(dilation).clamp(low, axis.kernel)
}

/// Adds up the columns of each plane of `out`, an image of which each [`Axis`] says where its windows are: `input` is the
/// size of the image, and `output` the number of positions. A number for each plane is added last, if it is given.
pub fn fold<C: Summand, O: Summand<Sum = C::Sum>>(
    axes: &[Axis],
    columns: &[C],
    last: Option<&[O]>,
    out: &mut [O],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let Some((inner, outer)) = axes.split_last() else { return Err(Stopped::Misfit) };
    let rows = volume(1, outer.iter().map(|axis| &axis.input));
    let planes = out.len().checked_div(rows.saturating_mul(inner.input)).unwrap_or(0);
    let taps = volume(1, axes.iter().map(|axis| &axis.kernel));
    let positions = volume(1, axes.iter().map(|axis| &axis.output));
    let fits = volume(taps, [&positions, &planes]) == columns.len() && last.is_none_or(|last| last.len() == planes);
    if !fits && planes > 0 {
        return Err(Stopped::Misfit);
    }
    if out.is_empty() {
        return Ok(());
    }
    let (width, size, cost) = (inner.input, size_of::<O>(), work(axes, planes) / out.len().max(1) + 1);
    let piece = (BYTES / size_of::<C::Sum>().max(1)).clamp(1, PIECE);
    parallel::split_by(cast_slice_mut(out), size, cost, resources, |first, out| {
        let (out, mut lookout, mut sums) = (cast_slice_mut::<u8, O>(out), resources.lookout(), [C::ZERO; PIECE]);
        let (plane, end) = (rows * width, first + out.len());
        // Of a single plane, the rows that are in this part; of a single row, the pieces.
        let within = |len: usize, unit: usize| match first / len == (end - 1) / len {
            true => first % len / unit..(first % len + out.len()).div_ceil(unit),
            false => 0..len.div_ceil(unit),
        };
        let (own_rows, own_pieces) = (within(plane, width), within(width, piece));
        // Planes have the taps of a row in common.
        let (some, last_plane) = ((piece / width).max(1), end.div_ceil(plane));
        let rows = (first / plane..last_plane).step_by(some).flat_map(|at| own_rows.clone().map(move |row| (at, row)));
        for (next, row) in rows {
            for start in own_pieces.clone().map(|at| at * piece) {
                let count = piece.min(width - start);
                let numbers = next..last_plane.min(next + some);
                // The places of a plane that are in this part.
                let own = |number: usize| {
                    let at = number * plane + row * width + start;
                    (at.max(first)..(at + count).min(end), at)
                };
                if numbers.clone().all(|number| own(number).0.is_empty()) {
                    continue;
                }
                let sums = sums.get_mut(..numbers.len() * count).ok_or(Stopped::Misfit)?;
                sums.fill(C::ZERO);
                let columns = columns.get(numbers.start * taps * positions..).ok_or(Stopped::Misfit)?;
                let mut line = Line::new(outer, row);
                loop {
                    lookout.after(size_of::<C>())?;
                    if let Some((tap, position)) = line.place() {
                        let columns = columns.get(tap * inner.kernel * positions..).unwrap_or(&[]);
                        let columns = Columns { elements: columns, plane: taps * positions, positions };
                        columns.add(inner, position, start..start + count, sums, &mut lookout)?;
                    }
                    if !line.next() {
                        break;
                    }
                }
                for (number, sums) in numbers.zip(sums.chunks_exact(count)) {
                    let (own, at) = own(number);
                    let Some(out) = out.get_mut(own.start - first..own.end.saturating_sub(first)) else { continue };
                    let last = last.and_then(|last| last.get(number));
                    store::<O>(sums.get(own.start - at..).unwrap_or(&[]), last, out);
                }
            }
        }
        Ok(())
    })
}

/// Columns of planes that follow each other, from those of a tap along all axes but the last on.
struct Columns<'a, C> {
    elements: &'a [C],
    /// Elements from a plane to the next, and from a tap to the next.
    plane: usize,
    positions: usize,
}

impl<C: Summand> Columns<'_, C> {
    /// Adds what the taps along the innermost axis say of these places of each plane; `row` is the number of the row of
    /// positions.
    fn add(
        &self,
        axis: &Axis,
        row: usize,
        places: Range<usize>,
        sums: &mut [C::Sum],
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let stride = axis.stride.max(1);
        for tap in tries(axis, places.start, places.len()) {
            lookout.after(size_of::<C>())?;
            // Positions whose place, `position * stride + distance - pad`, is one of these.
            let distance = tap * axis.dilation;
            let from = |place: usize| (place + axis.pad).saturating_sub(distance).div_ceil(stride).min(axis.output);
            let (low, high) = (from(places.start), from(places.end));
            if low < high {
                let at = low * stride + distance - axis.pad - places.start;
                let start = tap * self.positions + row * axis.output;
                for (plane, sums) in sums.chunks_exact_mut(places.len()).enumerate() {
                    lookout.after((high - low) * size_of::<C>())?;
                    let columns =
                        self.elements.get(plane * self.plane + start + low..plane * self.plane + start + high);
                    add::<C>(sums.get_mut(at..).unwrap_or(&mut []), columns.unwrap_or(&[]), stride);
                }
            }
        }
        Ok(())
    }
}

for_each_level! {
    fn add<C: Summand>(sums: &mut [C::Sum], columns: &[C], stride: usize) -> () = add_body::<C>;
}

#[inline(always)]
fn add_body<C: Summand>(sums: &mut [C::Sum], columns: &[C], stride: usize) {
    // Closures wouldn't be compiled for the processor.
    if stride == 1 {
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = column.add(*sum);
        }
    } else {
        for (sums, column) in sums.chunks_mut(stride).zip(columns) {
            if let Some(sum) = sums.first_mut() {
                *sum = column.add(*sum);
            }
        }
    }
}

for_each_level! {
    fn store<O: Summand>(sums: &[O::Sum], last: Option<&O>, out: &mut [O]) -> () = store_body::<O>;
}

#[inline(always)]
fn store_body<O: Summand>(sums: &[O::Sum], last: Option<&O>, out: &mut [O]) {
    match last {
        Some(last) => {
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = O::of(last.add(*sum));
            }
        }
        None => {
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = O::of(*sum);
            }
        }
    }
}

/// The taps along all axes but the last, one after the other, for a row of the image.
struct Line<'a> {
    at: SmallVec<[Along<'a>; 3]>,
}

/// An axis, the place of the row along it, the taps that may be there, and one of them.
struct Along<'a> {
    axis: &'a Axis,
    place: usize,
    taps: Range<usize>,
    tap: usize,
}

impl<'a> Line<'a> {
    fn new(axes: &'a [Axis], mut row: usize) -> Line<'a> {
        let mut at: SmallVec<[_; 3]> = SmallVec::new();
        for axis in axes.iter().rev() {
            let (place, rest) = (row % axis.input.max(1), row / axis.input.max(1));
            let taps = tries(axis, place, 1);
            at.push(Along { axis, place, tap: taps.start, taps });
            row = rest;
        }
        at.reverse();
        Line { at }
    }

    /// The number of the tap, and of the row of positions whose tap is this row of the image, if there is one.
    fn place(&self) -> Option<(usize, usize)> {
        self.at.iter().try_fold((0, 0), |(all, position), Along { axis, place, taps, tap }| {
            let (distance, stride) = ((place + axis.pad).checked_sub(tap * axis.dilation)?, axis.stride.max(1));
            let at = distance / stride;
            let meets = taps.contains(tap) && distance.is_multiple_of(stride) && at < axis.output;
            meets.then_some((all * axis.kernel + tap, position * axis.output + at))
        })
    }

    fn next(&mut self) -> bool {
        self.at.iter_mut().rev().any(|Along { taps, tap, .. }| {
            *tap = if *tap + 1 < taps.end { *tap + 1 } else { taps.start };
            *tap > taps.start
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_each_level, on_threads, sized};

    /// Blocks of channels become what the image of each becomes.
    #[test]
    fn blocks_of_channels() {
        const BLOCK: usize = 16;
        let axis = |input, output, kernel, stride, dilation, pad| Axis { input, output, kernel, stride, dilation, pad };
        for axes in
            [[axis(9, 5, 3, 2, 1, 1), axis(150, 75, 4, 2, 1, 1)], [axis(6, 6, 2, 1, 2, 1), axis(7, 3, 2, 3, 1, 0)]]
        {
            let [places, image]: [usize; 2] = [axes.map(|axis| axis.output * axis.kernel), axes.map(|axis| axis.input)]
                .map(|all| all.iter().product());
            let columns: Vec<[f32; BLOCK]> = (0..2 * places)
                .map(|k| std::array::from_fn(|lane| ((k * 7 + lane * 13) % 101) as f32 / 3.0 - 16.0))
                .collect();
            let last: [[f32; BLOCK]; 2] = std::array::from_fn(|k| std::array::from_fn(|lane| (k + lane) as f32 / 7.0));
            let check = |threads: usize| {
                let resources = Resources { threads, stop: None };
                let mut blocks = vec![[f32::NAN; BLOCK]; 2 * image];
                fold(&axes, &columns, Some(&last[..]), &mut blocks, resources).unwrap();
                for lane in 0..BLOCK {
                    let own = |of: &[[f32; BLOCK]]| of.iter().map(|block| block[lane]).collect::<Vec<f32>>();
                    let mut plane = vec![f32::NAN; 2 * image];
                    fold::<f32, f32>(&axes, &own(&columns), Some(&own(&last)), &mut plane, resources).unwrap();
                    assert_eq!(plane, own(&blocks), "{lane}");
                }
            };
            at_each_level(|| check(1));
            on_threads(3, || check(3));
        }
    }

    /// By the definition: each position adds its taps to the image, tap by tap.
    fn plain(axes: &[Axis], columns: &[f32], planes: usize) -> Vec<f64> {
        let image: usize = axes.iter().map(|axis| axis.input).product();
        let (taps, positions): (usize, usize) =
            (axes.iter().map(|axis| axis.kernel).product(), axes.iter().map(|axis| axis.output).product());
        let mut out = vec![0f64; planes * image];
        for (at, column) in columns.iter().enumerate() {
            let (plane, mut tap, mut position) = (at / (taps * positions), at / positions % taps, at % positions);
            let (mut place, mut unit, mut inside) = (0, 1, true);
            for axis in axes.iter().rev() {
                let own =
                    (position % axis.output * axis.stride + tap % axis.kernel * axis.dilation) as i64 - axis.pad as i64;
                inside &= (0..axis.input as i64).contains(&own);
                (place, unit) = (place + own * unit, unit * axis.input as i64);
                (tap, position) = (tap / axis.kernel, position / axis.output);
            }
            if inside {
                out[plane * image + place as usize] += f64::from(*column);
            }
        }
        out
    }

    /// Parts of planes and of rows, as a run has them that can be stopped.
    #[test]
    fn parts_are_those_of_the_whole() {
        let axis = |input: usize| Axis { input, output: input / 2, kernel: 3, stride: 2, dilation: 1, pad: 1 };
        for (rows, width, planes) in
            [(sized(150, 3), sized(700, 40), 2), (1, sized(90_000, 300), 1), (40, 7, sized(200, 2))]
        {
            let axes = [axis(rows), axis(width)].map(|axis| Axis { output: axis.output.max(1), ..axis });
            let count = axes.iter().map(|axis| axis.kernel * axis.output).product::<usize>() * planes;
            let columns: Vec<f32> = (0..count).map(|at| ((at * 7919) % 1009) as f32).collect();
            let run = |threads, stop| {
                let mut out = vec![f32::NAN; rows * width * planes];
                let resources = Resources { threads, stop };
                on_threads(threads, || fold(&axes, &columns, None, &mut out, resources)).unwrap();
                out
            };
            let (whole, stop) = (run(1, None), crate::Stop::default());
            assert!(run(1, Some(&stop)) == whole && run(3, Some(&stop)) == whole, "{rows} {width} {planes}");
        }
    }

    fn check(axes: &[Axis], planes: usize) {
        let count: usize = axes.iter().map(|axis| axis.kernel * axis.output).product::<usize>() * planes;
        let columns: Vec<f32> = (0..count).map(|at| ((at * 7919) % 1009) as f32 / 7.0 - 70.0).collect();
        let last: Vec<f32> = (0..planes).map(|plane| plane as f32 / 3.0).collect();
        let sums = plain(axes, &columns, planes);
        let image = sums.len() / planes;
        at_each_level(|| {
            for threads in [1, 3] {
                let resources = Resources { threads, stop: None };
                let mut out = vec![f32::NAN; sums.len()];
                fold(axes, &columns, None, &mut out, resources).unwrap();
                assert!(out.iter().zip(&sums).all(|(out, sum)| *out == *sum as f32), "{axes:?}");
                fold(axes, &columns, Some(&last), &mut out, resources).unwrap();
                let want = |at: usize| (sums[at] + f64::from(last[at / image])) as f32;
                assert!(out.iter().enumerate().all(|(at, out)| *out == want(at)), "{axes:?}");
            }
        });
        let bytes: Vec<u8> = (0..count).map(|at| (at * 7919 % 251) as u8).collect();
        let wide: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte)).collect();
        let mut out = vec![1u8; sums.len()];
        fold(axes, &bytes, None, &mut out, Resources { threads: 1, stop: None }).unwrap();
        assert!(out.iter().zip(plain(axes, &wide, planes)).all(|(out, sum)| *out == sum as u64 as u8), "{axes:?}");
    }

    fn axis(input: usize, output: usize, kernel: usize, stride: usize, dilation: usize, pad: usize) -> Axis {
        Axis { input, output, kernel, stride, dilation, pad }
    }

    #[test]
    fn blocks_of_each_rank() {
        on_threads(3, || {
            check(&[axis(7, 5, 3, 1, 1, 0)], 2);
            check(&[axis(9, 4, 3, 2, 2, 1)], 3);
            // Positions beyond the image, and places that no tap meets.
            check(&[axis(4, 5, 2, 3, 1, 4)], 2);
            check(&[axis(5, 3, 3, 1, 1, 1), axis(8, 4, 2, 2, 1, 0)], 2);
            check(&[axis(3, 2, 2, 2, 2, 1), axis(4, 3, 3, 1, 2, 1), axis(5, 2, 2, 3, 1, 0)], 2);
            check(&[axis(3, 0, 2, 1, 1, 0), axis(2, 1, 1, 1, 1, 0)], 1);
            check(&[axis(sized(1500, 300), sized(740, 140), 9, 2, 3, 5)], 2);
            check(&[axis(40, 38, 3, 1, 1, 0), axis(sized(300, 30), sized(300, 30), 5, 1, 1, 2)], sized(4, 1));
        });
    }

    #[test]
    fn other_types() {
        let (axes, one) = ([axis(2, 2, 2, 1, 1, 0)], Resources { threads: 1, stop: None });
        // 2048 + 1.0001 is rounded once: up. In float32 it would be a tie.
        let columns = [1f32, 2048.0, 1.000_1, 0.0];
        let mut out = [f16::ZERO; 2];
        fold(&axes, &columns, None, &mut out, one).unwrap();
        assert_eq!(out, [1.0, 2050.0].map(f16::from_f32));
        let mut out = [[0f32; 2]; 2];
        fold(&axes, &[[1f32, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], None, &mut out, one).unwrap();
        assert_eq!(out, [[1.0, 2.0], [8.0, 10.0]]);
        let mut out = [Truth(0); 2];
        fold(&axes, &[1, 0, 0, 0].map(Truth), None, &mut out, one).unwrap();
        assert_eq!(out.map(|truth| truth.0), [1, 0]);
    }

    #[test]
    fn columns_that_do_not_fit() {
        let (axes, one) = ([axis(2, 2, 2, 1, 1, 0)], Resources { threads: 1, stop: None });
        let mut out = [0f32; 2];
        assert_eq!(fold(&axes, &[0f32; 3], None, &mut out, one), Err(Stopped::Misfit));
        assert_eq!(fold(&axes, &[0f32; 4], Some(&[0f32; 2]), &mut out, one), Err(Stopped::Misfit));
        assert_eq!(fold::<f32, f32>(&[], &[], None, &mut out, one), Err(Stopped::Misfit));
        assert_eq!(fold::<f32, f32>(&axes, &[], None, &mut [], one), Ok(()));
    }
}
