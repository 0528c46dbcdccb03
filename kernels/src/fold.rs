//! Adds up blocks of an image where they overlap, as Col2Im and ConvTranspose do: the inverse of what a convolution reads.
//!
//! The columns of a plane are `[taps, positions]`: for each tap of a window, what it adds to the image at each position. A
//! place of the image adds up what its taps say, in their order, in a type that is wider than the elements, and is rounded
//! once.

use super::half::odd;
use super::windows::Axis;
use super::{Lookout, Resources, Stopped, parallel, volume};
use crate::cpu::for_avx2;
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

/// Places of a row whose sums are computed at a time, at most, and the bytes of sums.
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
    let (most, stride) = ((BYTES / size_of::<C::Sum>().max(1)).clamp(1, PIECE), inner.stride.max(1));
    // Whole strides, if there is room for one.
    let piece = most - if stride < most { most % stride } else { 0 };
    let outer: SmallVec<[Met; 3]> = outer.iter().map(Met::of).collect();
    parallel::split_by(cast_slice_mut(out), size, cost, resources, |first, out| {
        let (out, mut lookout, mut runs) = (cast_slice_mut::<u8, O>(out), resources.lookout(), Runs::default());
        let (plane, end, mut room) = (rows * width, first + out.len(), [0u64; BYTES / size_of::<u64>()]);
        let room: &mut [C::Sum] = cast_slice_mut(&mut room);
        // Of a single plane, the rows that are in this part; of a single row, the pieces.
        let within = |len: usize, unit: usize| match first / len == (end - 1) / len {
            true => first % len / unit..(first % len + out.len()).div_ceil(unit),
            false => 0..len.div_ceil(unit),
        };
        let (own_rows, own_pieces) = (within(plane, width), within(width, piece));
        // Planes have the taps of a row in common.
        let of_row = Phases { stride, each: width.min(piece).div_ceil(stride) }.room(width);
        let (some, last_plane) = (if width > piece { 1 } else { room.len() / of_row }, end.div_ceil(plane));
        let rows = (first / plane..last_plane).step_by(some).flat_map(|at| own_rows.clone().map(move |row| (at, row)));
        for (next, row) in rows {
            for start in own_pieces.clone().map(|at| at * piece) {
                let count = piece.min(width - start);
                let phases = Phases { stride, each: count.div_ceil(stride) };
                let numbers = next..last_plane.min(next + some);
                // The places of a plane that are in this part.
                let own = |number: usize| {
                    let at = number * plane + row * width + start;
                    (at.max(first)..(at + count).min(end), at)
                };
                if numbers.clone().all(|number| own(number).0.is_empty()) {
                    continue;
                }
                let sums = room.get_mut(..numbers.len() * phases.room(count)).ok_or(Stopped::Misfit)?;
                sums.fill(C::ZERO);
                let columns = columns.get(numbers.start * taps * positions..).ok_or(Stopped::Misfit)?;
                let mut line = Line::new(&outer, row, &mut lookout)?;
                while let Some((tap, position)) = line.next() {
                    let mut tries = tries(inner, start, count);
                    while !tries.is_empty() {
                        let runs = runs.of(inner, &mut tries, start..start + count, phases, positions);
                        lookout.after((runs.cost * numbers.len() + 1) * size_of::<C>())?;
                        let from = tap * inner.kernel * positions + position * inner.output;
                        let columns = columns.get(from..).unwrap_or(&[]);
                        add::<C>(runs.runs(), columns, taps * positions, sums, phases.room(count));
                    }
                }
                for (number, sums) in numbers.zip(sums.chunks_exact(phases.room(count))) {
                    let (own, at) = own(number);
                    let Some(out) = out.get_mut(own.start - first..own.end.saturating_sub(first)) else { continue };
                    let last = last.and_then(|last| last.get(number));
                    store::<O>(sums, phases, own.start - at, last, out);
                }
            }
        }
        Ok(())
    })
}

/// The order in which the sums of a row are stored: places that are a stride apart are neighbours.
#[derive(Debug, Clone, Copy)]
struct Phases {
    stride: usize,
    /// Places from one phase to the next.
    each: usize,
}

impl Phases {
    #[inline(always)]
    fn index(self, place: usize) -> usize {
        place % self.stride * self.each + place / self.stride
    }

    /// The sums that so many places need.
    fn room(self, places: usize) -> usize {
        self.stride.min(places) * self.each
    }
}

/// For one tap, the positions along the innermost axis that put it at places of a piece.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// The first column, from that of the first tap on, and the sum that it is added to.
    from: usize,
    to: usize,
    len: usize,
}

/// The runs of some taps at a piece, computed once for all rows.
#[derive(Debug, Default)]
struct Runs {
    taps: Range<usize>,
    places: Range<usize>,
    runs: [Run; 16],
    cost: usize,
}

impl Runs {
    /// The runs of the first ones of these taps, which are taken.
    fn of(
        &mut self,
        axis: &Axis,
        taps: &mut Range<usize>,
        places: Range<usize>,
        phases: Phases,
        positions: usize,
    ) -> &Runs {
        let now = taps.start..taps.end.min(taps.start + self.runs.len());
        taps.start = now.end;
        if (&self.taps, &self.places) == (&now, &places) {
            return self;
        }
        for (run, tap) in self.runs.iter_mut().zip(now.clone()) {
            // Positions whose place, `position * stride + distance - pad`, is one of these.
            let distance = tap * axis.dilation;
            let from =
                |place: usize| (place + axis.pad).saturating_sub(distance).div_ceil(phases.stride).min(axis.output);
            let (low, high) = (from(places.start), from(places.end));
            *run = Run::default();
            if low < high {
                let to = phases.index(low * phases.stride + distance - axis.pad - places.start);
                *run = Run { from: tap * positions + low, to, len: high - low };
            }
        }
        (self.taps, self.places) = (now, places);
        self.cost = self.runs().iter().map(|run| run.len + 1).sum();
        self
    }

    fn runs(&self) -> &[Run] {
        self.runs.get(..self.taps.len()).unwrap_or(&[])
    }
}

for_avx2! {
    /// Adds the runs of each plane; `next` and `room` are from a plane to the next, in columns and in sums.
    fn add<C: Summand>(runs: &[Run], columns: &[C], next: usize, sums: &mut [C::Sum], room: usize) -> () = add_body::<C>;
}

#[inline(always)]
fn add_body<C: Summand>(runs: &[Run], columns: &[C], next: usize, sums: &mut [C::Sum], room: usize) {
    // What was just written isn't read at other places at once: that would wait for the caches.
    for run in runs {
        for (plane, sums) in sums.chunks_exact_mut(room).enumerate() {
            let columns = columns.get(plane * next + run.from..).and_then(|columns| columns.get(..run.len));
            let sums = sums.get_mut(run.to..run.to + run.len).unwrap_or(&mut []);
            for (sum, column) in sums.iter_mut().zip(columns.unwrap_or(&[])) {
                *sum = column.add(*sum);
            }
        }
    }
}

for_avx2! {
    /// Rounds the sums of places from number `first` on.
    fn store<O: Summand>(sums: &[O::Sum], phases: Phases, first: usize, last: Option<&O>, out: &mut [O]) -> () = store_body::<O>;
}

#[inline(always)]
fn store_body<O: Summand>(sums: &[O::Sum], phases: Phases, first: usize, last: Option<&O>, out: &mut [O]) {
    let of = |place: usize| sums.get(phases.index(place)..).unwrap_or(&[]);
    match phases.stride {
        1 => {
            for (out, sum) in out.iter_mut().zip(of(first)) {
                *out = ended(sum, last);
            }
        }
        // Pairs become vectors.
        2 => {
            let (pairs, rest) = out.as_chunks_mut::<2>();
            let mut sums = of(first).iter();
            for ((pair, one), other) in pairs.iter_mut().zip(&mut sums).zip(of(first + 1)) {
                *pair = [ended(one, last), ended(other, last)];
            }
            for (out, sum) in rest.iter_mut().zip(sums) {
                *out = ended(sum, last);
            }
        }
        stride => {
            for phase in 0..stride.min(out.len()) {
                let out = out.get_mut(phase..).unwrap_or(&mut []).iter_mut().step_by(stride);
                for (out, sum) in out.zip(of(first + phase)) {
                    *out = ended(sum, last);
                }
            }
        }
    }
}

/// What a sum becomes when a number was added last.
#[inline(always)]
fn ended<O: Summand>(sum: &O::Sum, last: Option<&O>) -> O {
    O::of(match last {
        Some(last) => last.add(*sum),
        None => *sum,
    })
}

/// An axis, and how taps meet: `taps` further on, a tap of the position that is `positions` before is at the same place.
struct Met<'a> {
    axis: &'a Axis,
    taps: usize,
    positions: usize,
}

impl<'a> Met<'a> {
    fn of(axis: &'a Axis) -> Met<'a> {
        let (stride, dilation) = (axis.stride.max(1), axis.dilation.max(1));
        let (mut common, mut rest) = (stride, dilation);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        Met { axis, taps: stride / common, positions: dilation / common }
    }

    /// The first tap that a position has at a place, the position, and how many there are.
    fn first(&self, place: usize, lookout: &mut Lookout<'_>) -> Result<(usize, usize, usize), Stopped> {
        let (axis, stride) = (self.axis, self.axis.stride.max(1));
        let taps = tries(axis, place, 1);
        for tap in taps.clone().take(if axis.output > 0 { self.taps } else { 0 }) {
            lookout.after(size_of::<usize>())?;
            let distance = place + axis.pad - tap * axis.dilation;
            if distance.is_multiple_of(stride) {
                return Ok((tap, distance / stride, (taps.end - tap).div_ceil(self.taps)));
            }
        }
        Ok((0, 0, 0))
    }
}

/// Iterates over the taps along all axes but the last that are at a row of the image.
struct Line<'a> {
    at: SmallVec<[Along<'a>; 3]>,
    more: bool,
}

/// The taps along an axis that are at a row: the first one with its position, how many there are, and the current one.
struct Along<'a> {
    met: &'a Met<'a>,
    tap: usize,
    position: usize,
    count: usize,
    now: usize,
}

impl<'a> Line<'a> {
    fn new(axes: &'a [Met<'a>], mut row: usize, lookout: &mut Lookout<'_>) -> Result<Line<'a>, Stopped> {
        let mut at: SmallVec<[_; 3]> = SmallVec::new();
        for met in axes.iter().rev() {
            let (place, rest) = (row % met.axis.input.max(1), row / met.axis.input.max(1));
            let (tap, position, count) = met.first(place, lookout)?;
            at.push(Along { met, tap, position, count, now: 0 });
            row = rest;
        }
        at.reverse();
        let more = at.iter().all(|along| along.count > 0);
        Ok(Line { at, more })
    }

    /// The number of the next tap, and of the row of positions.
    fn next(&mut self) -> Option<(usize, usize)> {
        if !self.more {
            return None;
        }
        let place = self.at.iter().fold((0, 0), |(tap, position), along| {
            let (axis, now) = (along.met.axis, along.now);
            let own = (along.tap + now * along.met.taps, along.position - now * along.met.positions);
            (tap * axis.kernel + own.0, position * axis.output + own.1)
        });
        self.more = self.at.iter_mut().rev().any(|along| {
            along.now = if along.now + 1 < along.count { along.now + 1 } else { 0 };
            along.now > 0
        });
        Some(place)
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
            // Strides and dilations with a common divisor, more taps than are listed at once, and a stride beyond a piece.
            check(&[axis(30, 4, 5, 4, 6, 3), axis(40, 3, 5, 6, 4, 2)], 3);
            check(&[axis(3, 2, 2, 1, 1, 0), axis(70, 15, 40, 2, 1, 5)], 2);
            check(&[axis(700, 3, 2, 300, 1, 0)], 2);
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
