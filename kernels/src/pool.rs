//! Pools: what the windows of an image show, each reduced to a number.
//!
//! What happens to the elements of a window is a [`Reduction`], as for lanes, or finds the place of
//! the greatest ([`Greatest`]). Elements are added in row-major order, for neighbouring windows at once.

mod greatest;

pub use greatest::greatest;

use super::cpu::for_each_level;
use super::lanes::{Extreme, Fold, Number, Partial, Reduction, Stored};
use super::lookout::Lookout;
use super::windows::Axis;
pub use super::windows::Windows;
use super::{Resources, Stopped};
use bytemuck::{Zeroable, cast_slice_mut};
use smallvec::SmallVec;
use std::ops::Range;

/// What happens to a window.
pub trait Pool<T: Number>: Sync {
    /// The value of some elements of a window.
    type Partial: Copy;
    /// The value of none.
    const START: Self::Partial;
    /// There are odd elements and values.
    const HAS_ODD: bool = false;

    /// Adds the element with the number `at` in its plane.
    fn add(&self, value: Self::Partial, element: T, at: usize) -> Self::Partial;
    /// As [`Pool::add`], where neither is odd.
    #[inline(always)]
    fn add_ordinary(&self, value: Self::Partial, element: T, at: usize) -> Self::Partial {
        self.add(value, element, at)
    }
    /// Whether an element is odd, or the value of one: adding others takes fewer steps.
    #[inline(always)]
    fn is_odd(&self, _element: T) -> bool {
        false
    }
    #[inline(always)]
    fn has_odd(&self, _value: Self::Partial) -> bool {
        false
    }
    /// The result of a window, and the number of an element. `elements` are those of the window that are not padding, and
    /// `len` those that count.
    fn end(&self, value: Self::Partial, elements: usize, len: usize) -> (T::Precise, Option<usize>);
}

/// A reduction of the elements.
#[derive(Debug)]
pub struct Reduced<R>(pub R);

impl<R: Reduction<T>, T: Number> Pool<T> for Reduced<R> {
    type Partial = <R::Fold as Fold<T>>::Partial;
    const START: Self::Partial = <Self::Partial as Partial>::START;
    const HAS_ODD: bool = R::Fold::HAS_ODD;

    #[inline(always)]
    fn add(&self, value: Self::Partial, element: T, _: usize) -> Self::Partial {
        let fold = self.0.fold();
        fold.add(value, fold.counts(element))
    }
    #[inline(always)]
    fn add_ordinary(&self, value: Self::Partial, element: T, _: usize) -> Self::Partial {
        let fold = self.0.fold();
        fold.add_ordinary(value, fold.counts(element))
    }
    #[inline(always)]
    fn is_odd(&self, element: T) -> bool {
        self.0.fold().is_odd(element)
    }
    #[inline(always)]
    fn has_odd(&self, value: Self::Partial) -> bool {
        self.0.fold().has_odd(value)
    }
    #[inline(always)]
    fn end(&self, value: Self::Partial, elements: usize, len: usize) -> (T::Precise, Option<usize>) {
        (self.0.end(if elements == 0 { R::EMPTY } else { value }, len), None)
    }
}

/// The greatest element and its number, the first of equals. NaN is.
#[derive(Debug)]
pub struct Greatest<T>(pub Extreme<T, false>);

/// No element.
const NONE: usize = usize::MAX;

impl<T: Number> Pool<T> for Greatest<T> {
    type Partial = (T, usize);
    const START: (T, usize) = (T::LEAST, NONE);

    #[inline(always)]
    fn add(&self, (greatest, place): (T, usize), element: T, at: usize) -> (T, usize) {
        let element = self.0.counts(element);
        // Without branches: which of some elements is the greatest is hard to foresee.
        let more = (element > greatest) | (element.is_nan() & !greatest.is_nan()) | (place == NONE);
        (if more { element } else { greatest }, if more { at } else { place })
    }
    #[inline(always)]
    fn end(&self, (greatest, place): (T, usize), _: usize, _: usize) -> (T::Precise, Option<usize>) {
        // Flipped back.
        (self.0.counts(greatest).precise(), (place != NONE).then_some(place))
    }
}

/// The windows of an image.
#[derive(Debug)]
pub struct Pooling<'a> {
    pub windows: &'a Windows,
    /// The same, where padding that counts is part of the image.
    pub counted: &'a Windows,
    /// Places are numbers in column-major order, not row-major order.
    pub column_major: bool,
}

/// Positions that are computed together.
const RUN: usize = 64;

/// Writes the result of each window of the planes of `data` to `out`, and the number of an element of `data` to `places`
/// unless that is empty; -1 if there is none.
pub fn pool<P: Pool<T>, S: Stored<T> + Stored<T::Precise>, T: Number>(
    pool: &P,
    data: &[S],
    Pooling { windows, counted, column_major }: Pooling<'_>,
    out: &mut [S],
    places: &mut [i64],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (input, sizes) = (windows.input(), [size_of::<S>(), size_of::<i64>()]);
    let outs = [cast_slice_mut(out), cast_slice_mut(places)];
    let inside = [windows, counted].map(|windows| windows.last().inside(&(0..windows.last().output)));
    windows.runs(RUN, outs, sizes, resources, &|run, [out, places]| {
        let (start, mut lookout) = (run.plane * input, resources.lookout());
        if data.len() < start + input {
            return Err(Stopped::Misfit);
        }
        let (mut values, count) = ([P::START; RUN], run.along.len());
        let [seen, counts] = [(windows, &inside[0]), (counted, &inside[1])].map(|(windows, inside)| Seen {
            axis: windows.last(),
            run: &run.along,
            inside,
        });
        let mut add = |lines: &[usize]| {
            add_lines::<P, S, T>(pool, &mut values, seen, Lines { data, plane: start, lines }, &mut lookout)
        };
        let mut lines = SmallVec::<[usize; LINES]>::new();
        run.lines(|line, _| {
            lines.push(start + line);
            if lines.len() == LINES {
                add(&lines)?;
                lines.clear();
            }
            Ok(())
        })?;
        add(&lines)?;
        let around = [windows, counted].map(|windows| run.around(windows));
        end_all::<P, S, T>(pool, &values, [seen, counts], around, cast_slice_mut(out));
        for (value, to) in values.iter().take(count).zip(cast_slice_mut::<_, i64>(places)) {
            let number = |place| start + if column_major { windows.column_major(place) } else { place };
            let (_, place) = pool.end(*value, 1, 1);
            *to = place.map_or(-1, |place| number(place) as i64);
        }
        Ok(())
    })
}

/// A run of windows, along the last axis.
#[derive(Clone, Copy)]
struct Seen<'a> {
    axis: &'a Axis,
    run: &'a Range<usize>,
    /// The windows that see an element at each tap.
    inside: &'a Range<usize>,
}

impl Seen<'_> {
    /// The windows of a run that are computed together, from one on.
    #[inline(always)]
    fn some(&self, at: usize) -> Range<usize> {
        at..self.run.end.min(at + MANY)
    }

    /// Whether each of some windows sees an element at each tap.
    #[inline(always)]
    fn is_whole(&self, some: &Range<usize>) -> bool {
        self.inside.start <= some.start && some.end <= self.inside.end
    }
}

/// Lines that windows see.
#[derive(Clone, Copy)]
struct Lines<'a, S> {
    data: &'a [S],
    /// The number of the first element of the plane, and of lines.
    plane: usize,
    lines: &'a [usize],
}

/// Lines that are added at once, and taps between two looks whether to stop.
const LINES: usize = 16;
const TAPS: usize = 1 << 10;

/// Windows that are computed at once.
const MANY: usize = 16;
const GROUPS: usize = RUN / MANY;

for_each_level! {
    /// Adds the elements of lines to the values of windows; those behind the run become anything.
    fn add_lines<P: Pool<T>, S: Stored<T>, T: Number>(
        pool: &P, values: &mut [P::Partial; RUN], seen: Seen<'_>, lines: Lines<'_, S>, lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> = add_lines_body::<P, S, T>;
}

#[inline(always)]
fn add_lines_body<P: Pool<T>, S: Stored<T>, T: Number>(
    pool: &P,
    values: &mut [P::Partial; RUN],
    seen: Seen<'_>,
    lines: Lines<'_, S>,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    // Neighbours, and every other one, are vectors in the registers.
    match seen.axis.stride {
        1 => add_strided::<P, S, T, 1>(pool, values, seen, lines, lookout),
        2 => add_strided::<P, S, T, 2>(pool, values, seen, lines, lookout),
        _ => add_strided::<P, S, T, 0>(pool, values, seen, lines, lookout),
    }
}

/// Of windows that are `STRIDE` elements apart, or any number if that is 0.
#[inline(always)]
fn add_strided<P: Pool<T>, S: Stored<T>, T: Number, const STRIDE: usize>(
    pool: &P,
    values: &mut [P::Partial; RUN],
    seen: Seen<'_>,
    lines: Lines<'_, S>,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let axis = Axis { stride: if STRIDE == 0 { seen.axis.stride } else { STRIDE }, ..*seen.axis };
    let all = values.as_chunks_mut::<MANY>().0;
    // What is done for a tap is done once for many neighbours.
    if let (1, Some(all)) = (STRIDE, all.first_chunk_mut::<GROUPS>())
        && seen.run.len() > MANY
        && seen.is_whole(seen.run)
    {
        return add_whole::<P, S, T, STRIDE, GROUPS>(pool, all, axis, seen.run.clone(), lines, lookout);
    }
    for (values, at) in all.iter_mut().zip(seen.run.clone().step_by(MANY)) {
        let (some, values) = (seen.some(at), std::array::from_mut(values));
        if seen.is_whole(&some) {
            add_whole::<P, S, T, STRIDE, 1>(pool, values, axis, some, lines, lookout)?;
        } else {
            let [values] = values;
            add_edge::<P, S, T, STRIDE>(pool, values, axis, some, lines, lookout)?;
        }
    }
    Ok(())
}

/// Of windows that see an element at each tap.
#[inline(always)]
fn add_whole<P: Pool<T>, S: Stored<T>, T: Number, const STRIDE: usize, const G: usize>(
    pool: &P,
    values: &mut [[P::Partial; MANY]; G],
    axis: Axis,
    some: Range<usize>,
    lines: Lines<'_, S>,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let first = (some.start * axis.stride).wrapping_sub(axis.pad);
    if P::HAS_ODD {
        let mut ordinary = *values;
        if !add_groups::<P, S, T, STRIDE, G, true>(pool, &mut ordinary, axis, first, lines, lookout)? {
            *values = ordinary;
            return Ok(());
        }
    }
    add_groups::<P, S, T, STRIDE, G, false>(pool, values, axis, first, lines, lookout)?;
    Ok(())
}

/// As [`add_whole`], from the element `first` of lines on; as if nothing were odd if it is `ORDINARY`: returns whether something
/// is.
#[inline(always)]
fn add_groups<P: Pool<T>, S: Stored<T>, T: Number, const STRIDE: usize, const G: usize, const ORDINARY: bool>(
    pool: &P,
    values: &mut [[P::Partial; MANY]; G],
    axis: Axis,
    first: usize,
    Lines { data, plane, lines }: Lines<'_, S>,
    lookout: &mut Lookout<'_>,
) -> Result<bool, Stopped> {
    // A copy stays in registers.
    let (mut odd, mut held) = ([0u32; MANY], *values);
    for values in &held {
        for (odd, value) in odd.iter_mut().zip(values) {
            *odd |= if ORDINARY && pool.has_odd(*value) { !0 } else { 0 };
        }
    }
    for lines in lines.chunks(if axis.kernel > TAPS { 1 } else { LINES }) {
        for part in (0..axis.kernel).step_by(TAPS) {
            let taps = part..axis.kernel.min(part + TAPS);
            lookout.after(lines.len() * taps.len() * G * MANY * size_of::<S>())?;
            for line in lines {
                let mut place = line.wrapping_add(first).wrapping_add(taps.start * axis.dilation);
                for _ in taps.clone() {
                    for (g, held) in held.iter_mut().enumerate() {
                        let place = place.wrapping_add(g * MANY * STRIDE);
                        let numbers = picked::<S, T, STRIDE>(data, place, axis.stride);
                        if ORDINARY {
                            for (odd, number) in odd.iter_mut().zip(&numbers) {
                                *odd |= if pool.is_odd(*number) { !0 } else { 0 };
                            }
                        }
                        for (k, (value, number)) in held.iter_mut().zip(numbers).enumerate() {
                            let at = place.wrapping_add(k.wrapping_mul(axis.stride)).wrapping_sub(plane);
                            let add = if ORDINARY { P::add_ordinary } else { P::add };
                            *value = add(pool, *value, number, at);
                        }
                    }
                    place = place.wrapping_add(axis.dilation);
                }
            }
        }
    }
    *values = held;
    let mut some = 0;
    for odd in &odd {
        some |= odd;
    }
    Ok(some != 0)
}

/// Of windows some of which see no element at some taps.
#[inline(always)]
fn add_edge<P: Pool<T>, S: Stored<T>, T: Number, const STRIDE: usize>(
    pool: &P,
    values: &mut [P::Partial; MANY],
    axis: Axis,
    some: Range<usize>,
    Lines { data, plane, lines }: Lines<'_, S>,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    // What one of them sees: those of the last windows start first.
    let all = axis.taps(some.end - 1).start..axis.taps(some.start).end;
    let mut held = *values;
    for line in lines {
        for part in all.clone().step_by(TAPS) {
            let taps = part..all.end.min(part + TAPS);
            lookout.after(taps.len() * MANY * size_of::<S>())?;
            for tap in taps {
                // Of the first window, which may be before the line.
                let first = (some.start * axis.stride).wrapping_add(tap * axis.dilation).wrapping_sub(axis.pad);
                let (place, positions) = (line.wrapping_add(first), axis.positions(tap, &some));
                let numbers = picked::<S, T, STRIDE>(data, place, axis.stride);
                let (own, count) = ((positions.start - some.start) as u32, positions.len() as u32);
                for (k, (value, number)) in held.iter_mut().zip(numbers).enumerate() {
                    let at = place.wrapping_add(k.wrapping_mul(axis.stride)).wrapping_sub(plane);
                    let added = pool.add(*value, number, at);
                    *value = if (k as u32).wrapping_sub(own) < count { added } else { *value };
                }
            }
        }
    }
    *values = held;
    Ok(())
}

/// The elements at a place, and each `stride` on; those that aren't there are zeros.
#[inline(always)]
fn picked<S: Stored<T>, T: Number, const STRIDE: usize>(data: &[S], place: usize, stride: usize) -> [T; MANY] {
    let elements = data.get(place..).unwrap_or(&[]);
    let picked = match (STRIDE, elements.first_chunk::<MANY>(), elements.as_chunks::<2>().0.first_chunk::<MANY>()) {
        (1, Some(elements), _) => *elements,
        (2, _, Some(pairs)) => pairs.map(|[element, _]| element),
        _ => std::array::from_fn(|k| {
            data.get(place.wrapping_add(k.wrapping_mul(stride))).copied().unwrap_or(S::zeroed())
        }),
    };
    let mut numbers = [T::ZERO; MANY];
    S::load(&picked, &mut numbers);
    numbers
}

for_each_level! {
    /// Writes the results of windows: their elements, and those that count, of so many lines.
    fn end_all<P: Pool<T>, S: Stored<T::Precise>, T: Number>(
        pool: &P, values: &[P::Partial; RUN], seen: [Seen<'_>; 2], around: [usize; 2], out: &mut [S],
    ) -> () = end_all_body::<P, S, T>;
}

#[inline(always)]
fn end_all_body<P: Pool<T>, S: Stored<T::Precise>, T: Number>(
    pool: &P,
    values: &[P::Partial; RUN],
    seen: [Seen<'_>; 2],
    around: [usize; 2],
    out: &mut [S],
) {
    let ([first, second], [a, b]) = (seen, around);
    let counts = |at| [a.saturating_mul(first.axis.taps(at).len()), b.saturating_mul(second.axis.taps(at).len())];
    let inside = first.inside.start.max(second.inside.start)..first.inside.end.min(second.inside.end);
    let all = [a.saturating_mul(first.axis.kernel), b.saturating_mul(second.axis.kernel)];
    let starts = first.run.clone().step_by(MANY);
    for ((values, out), at) in values.as_chunks::<MANY>().0.iter().zip(out.chunks_mut(MANY)).zip(starts) {
        let mut results = [T::Precise::zeroed(); MANY];
        if seen.iter().all(|seen| seen.is_whole(&seen.some(at))) {
            let [elements, len] = all;
            for (value, result) in values.iter().zip(&mut results) {
                (*result, _) = pool.end(*value, elements, len);
            }
        } else {
            for ((value, result), at) in values.iter().zip(&mut results).zip(at..first.run.end) {
                let [elements, len] = if inside.contains(&at) { all } else { counts(at) };
                (*result, _) = pool.end(*value, elements, len);
            }
        }
        match out.first_chunk_mut::<MANY>() {
            // They stay in registers.
            Some(out) => S::store(&results, out),
            None => S::store(results.get(..out.len()).unwrap_or(&[]), out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{L2, Mean, Norm, Ordered};
    use crate::testing::{at_each_level, on_threads};
    use crate::{Stop, position_of};
    use half::bf16;
    use proptest::prelude::*;

    fn axis(input: usize, output: usize, kernel: usize, stride: usize, dilation: usize, pad: usize) -> Axis {
        Axis { input, output, kernel, stride, dilation, pad }
    }

    /// For each window its elements, in order; and the number of its taps up to `end` entries after the image.
    fn plain(axes: &[Axis], end: usize) -> Vec<(Vec<usize>, usize)> {
        let outputs: Vec<usize> = axes.iter().map(|axis| axis.output).collect();
        let kernels: Vec<usize> = axes.iter().map(|axis| axis.kernel).collect();
        let window = |at: Vec<usize>| {
            let (mut elements, mut count) = (Vec::new(), 0);
            for tap in (0..kernels.iter().product()).map(|tap| position_of(tap, &kernels)) {
                let places = || {
                    axes.iter()
                        .zip(&at)
                        .zip(&tap)
                        .map(|((axis, at), tap)| (axis, at * axis.stride + tap * axis.dilation))
                };
                count += usize::from(places().all(|(axis, place)| place < axis.pad + axis.input + end));
                if places().all(|(axis, place)| place >= axis.pad && place < axis.pad + axis.input) {
                    elements.push(places().fold(0, |number, (axis, place)| number * axis.input + place - axis.pad));
                }
            }
            (elements, count)
        };
        (0..outputs.iter().product()).map(|k| window(position_of(k, &outputs))).collect()
    }

    /// The greatest (with its number), the mean and the norms of each window.
    fn check(axes: &[Axis], planes: usize, resources: Resources<'_>) {
        let end = 1;
        let windows = Windows::new(axes.iter().copied());
        let counted =
            Windows::new(axes.iter().map(|axis| Axis { input: axis.pad + axis.input + end, pad: 0, ..*axis }));
        let pooling = |column_major| Pooling { windows: &windows, counted: &counted, column_major };
        let (input, output) = (windows.input(), windows.output());
        let data: Vec<f32> = (0..planes * input).map(|k| ((k * 7919) % 19) as f32 / 7.0 - 1.0).collect();
        let halves: Vec<bf16> = data.iter().map(|x| bf16::from_f32(*x)).collect();
        let bytes: Vec<i8> = data.iter().map(|x| (x * 7.0) as i8).collect();
        let (mut most, mut places) = (vec![0f32; planes * output], vec![0; planes * output]);
        let greatest = Greatest(<f32 as Ordered<f32>>::extreme::<false>());
        pool(&greatest, &data, pooling(false), &mut most, &mut places, resources).unwrap();
        let (mut least, mut columns) = (vec![0i8; planes * output], vec![0; planes * output]);
        let of_bytes = Greatest(<i8 as Ordered<u8>>::extreme::<false>());
        pool(&of_bytes, &bytes, pooling(true), &mut least, &mut columns, resources).unwrap();
        let mut alone = vec![0i8; planes * output];
        super::greatest(<i8 as Ordered<u8>>::extreme::<false>(), &bytes, &windows, &mut alone, resources).unwrap();
        assert_eq!(alone, least);
        check_greatest(&windows, &data, resources);
        let (mut means, mut norms) = (vec![0f32; planes * output], vec![bf16::ZERO; planes * output]);
        pool::<_, f32, f32>(&Reduced(Mean), &data, pooling(false), &mut means, &mut [], resources).unwrap();
        pool::<_, bf16, f32>(&Reduced(L2), &halves, pooling(false), &mut norms, &mut [], resources).unwrap();
        let mut others = vec![0f32; planes * output];
        pool::<_, f32, f32>(&Reduced(Norm { order: 2.0 }), &data, pooling(false), &mut others, &mut [], resources)
            .unwrap();
        let plain = plain(axes, end);
        assert_eq!(plain.len(), output);
        let sizes: Vec<usize> = axes.iter().map(|axis| axis.input).collect();
        for (k, (elements, count)) in (0..planes).flat_map(|_| &plain).enumerate() {
            let (start, what) = (k / output * input, format!("{axes:?} {k}"));
            let (mut best, mut place, mut sum, mut squares, mut exact) = (f32::NEG_INFINITY, -1, -0.0, 0.0, 0.0);
            for at in elements.iter().map(|element| start + element) {
                if place < 0 || data[at] > best {
                    (best, place) = (data[at], at as i64);
                }
                sum += f64::from(data[at]);
                squares += f64::from(halves[at].to_f32()).powi(2);
                exact += f64::from(data[at]).powi(2);
            }
            assert_eq!((most[k], places[k]), (best, place), "{what}");
            let sum = if elements.is_empty() { 0.0 } else { sum };
            let mean = if *count == 0 { f32::NAN } else { (sum / *count as f64) as f32 };
            assert!(means[k].to_bits() == mean.to_bits() || mean.is_nan() && means[k].is_nan(), "{what}");
            assert_eq!(norms[k], bf16::from_f32(squares.sqrt() as f32), "{what}");
            assert!((others[k] - exact.sqrt() as f32).abs() <= 1e-6 * others[k], "{what}");
            let first = elements.iter().rev().max_by_key(|at| bytes[start + **at]);
            let position = first.map(|at| position_of(*at, &sizes));
            let column =
                position.map(|at| at.iter().zip(&sizes).rev().fold(0, |number, (at, size)| number * size + at));
            assert_eq!(
                (least[k], columns[k]),
                match (first, column) {
                    (Some(first), Some(column)) => (bytes[start + first], (start + column) as i64),
                    _ => (i8::MIN, -1),
                },
                "{what}"
            );
        }
    }

    /// Also of zeros of either sign and of NaN, bit by bit, as if each window was looked at alone.
    fn check_greatest(windows: &Windows, data: &[f32], resources: Resources<'_>) {
        for nan in [false, true] {
            let data = data.iter().enumerate().map(|(k, x)| match k % 11 {
                0 => 0.0,
                1 | 2 => -0.0,
                3 if nan => f32::NAN,
                _ => -x.abs(),
            });
            let data: Vec<f32> = data.collect();
            let extreme = <f32 as Ordered<f32>>::extreme::<false>();
            let [mut got, mut want] =
                [0, 1].map(|k| vec![k as f32; data.len() / windows.input().max(1) * windows.output()]);
            let pooling = Pooling { windows, counted: windows, column_major: false };
            pool::<_, f32, f32>(&Reduced(extreme), &data, pooling, &mut want, &mut [], resources).unwrap();
            super::greatest(extreme, &data, windows, &mut got, resources).unwrap();
            let bits = |list: &[f32]| list.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            assert_eq!(bits(&got), bits(&want), "{windows:?}");
        }
    }

    const ALONE: Resources<'_> = Resources { threads: 1, stop: None };

    #[test]
    fn windows_of_all_kinds() {
        let cases: [&[Axis]; 14] = [
            &[],
            &[axis(5, 5, 1, 1, 1, 0)],
            &[axis(7, 3, 3, 2, 1, 0)],
            // More padding before than after.
            &[axis(6, 4, 3, 2, 1, 2)],
            // ceil_mode: the last window starts inside and ends beyond.
            &[axis(6, 3, 3, 2, 1, 0), axis(5, 3, 2, 2, 1, 0)],
            // Windows that see padding only, before and after.
            &[axis(2, 8, 2, 1, 1, 4)],
            &[axis(9, 4, 3, 2, 2, 1), axis(8, 5, 2, 1, 3, 0)],
            &[axis(4, 4, 3, 1, 1, 1), axis(3, 2, 2, 2, 1, 1), axis(5, 3, 3, 1, 2, 1)],
            &[axis(2, 2, 2, 1, 1, 1), axis(2, 1, 2, 1, 1, 0), axis(3, 3, 1, 1, 1, 0), axis(4, 2, 3, 2, 1, 1)],
            // Windows that no number of elements separates.
            &[axis(5, 1, 2, usize::MAX / 2, 1, 0)],
            // Longer than a run.
            &[axis(3, 3, 3, 1, 1, 1), axis(150, 150, 3, 1, 1, 1)],
            &[axis(3, 3, 2, 1, 1, 1), axis(300, 100, 4, 3, 1, 1)],
            &[axis(20, 22, 9, 1, 1, 5), axis(140, 142, 9, 1, 1, 5)],
            &[axis(9, 9, 5, 1, 2, 4), axis(260, 131, 5, 2, 3, 7)],
        ];
        for axes in cases {
            at_each_level(|| check(axes, 3, ALONE));
        }
    }

    #[test]
    fn shared_among_threads() {
        let axes = [axis(40, 20, 3, 2, 1, 1), axis(37, 37, 5, 1, 1, 2)];
        on_threads(3, || check(&axes, 40, Resources { threads: 3, stop: None }));
        on_threads(3, || check(&axes, 40, Resources { threads: 3, stop: Some(&Stop::default()) }));
    }

    proptest! {
        #[test]
        fn windows_of_random_sizes(axes in prop::collection::vec((1usize..7, 1usize..6, 1usize..5, 1usize..4, 1usize..4, 0usize..5), 0..4)) {
            let axes: Vec<Axis> = axes.into_iter().map(|(i, o, k, s, d, p)| axis(i, o, k, s, d, p)).collect();
            check(&axes, 2, ALONE);
        }
    }

    #[test]
    fn nan_is_the_greatest() {
        let windows = Windows::new([axis(5, 4, 2, 1, 1, 0)]);
        let pooling = || Pooling { windows: &windows, counted: &windows, column_major: false };
        let (mut most, mut places) = ([0f32; 4], [0; 4]);
        let data = [1.0, f32::NAN, f32::NAN, 2.0, f32::NEG_INFINITY];
        let extreme = || <f32 as Ordered<f32>>::extreme::<false>();
        pool(&Greatest(extreme()), &data, pooling(), &mut most, &mut places, ALONE).unwrap();
        assert_eq!(places, [1, 1, 2, 3]);
        assert!(most[..3].iter().all(|x| x.is_nan()) && most[3] == 2.0);
        pool::<_, f32, f32>(&Reduced(extreme()), &data, pooling(), &mut most, &mut [], ALONE).unwrap();
        assert!(most[..3].iter().all(|x| x.is_nan()) && most[3] == 2.0);
    }

    /// Few taps of a window are elements, however many it has.
    #[test]
    fn windows_much_larger_than_the_image() {
        let huge = 1 << 40;
        let windows = Windows::new([axis(3, 3, huge, huge / 2, 1, huge - 1)]);
        let pooling = Pooling { windows: &windows, counted: &windows, column_major: false };
        let mut means = [0f32; 3];
        pool::<_, f32, f32>(&Reduced(Mean), &[1.0, 2.0, 6.0], pooling, &mut means, &mut [], ALONE).unwrap();
        assert_eq!(means, [1.0, 3.0, 4.0]);
    }
}
