//! Real lanes of an even length: their elements in pairs are the real and imaginary parts of a lane of half the length. With
//! `Z` its transform, E and O those of the even and odd elements, and `w = e^(-2 pi i / len)`, for each `k`
//!
//! - `E[k] = (Z[k] + conj Z[half - k]) / 2`, `O[k] = (Z[k] - conj Z[half - k]) / 2i`,
//! - `X[k] = E[k] + w^k O[k]`, `X[half - k] = conj (E[k] - w^k O[k])`.

use super::passes::{BLOCK, Planes, Point};
use crate::cpu::for_avx2;
use crate::number::Float;
use crate::{Lookout, Stopped};
use std::ops::Range;

/// From `Z` in `from` to `X[0..=half]` in `to`.
pub(super) fn part<T: Float>(
    from: &Planes<'_, T>,
    to: &mut Planes<'_, T>,
    turns: &[[T; 2]],
    half: usize,
    width: usize,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    for lane in 0..width {
        let Point { re: [re], im: [im] } = Point::load(from, lane);
        Point { re: [re + im], im: [T::ZERO] }.store(to, lane);
        Point { re: [re - im], im: [T::ZERO] }.store(to, half * width + lane);
    }
    in_blocks(half, width, lookout, |range| rows::<T, Part>(from, to, turns, half, width, range))
}

/// From `X[0..=half]` in `from` to `2 Z` in `to`.
pub(super) fn join<T: Float>(
    from: &Planes<'_, T>,
    to: &mut Planes<'_, T>,
    turns: &[[T; 2]],
    half: usize,
    width: usize,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    for lane in 0..width {
        let (Point { re: [first], .. }, Point { re: [last], .. }) =
            (Point::load(from, lane), Point::load(from, half * width + lane));
        Point { re: [first + last], im: [first - last] }.store(to, lane);
    }
    in_blocks(half, width, lookout, |range| rows::<T, Join>(from, to, turns, half, width, range))
}

/// From `X[0..=len / 2]` to all frequencies of an odd length, in place.
pub(super) fn mirror<T: Float>(
    planes: &mut Planes<'_, T>,
    len: usize,
    width: usize,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    planes.im.get_mut(..width).unwrap_or(&mut []).fill(T::ZERO);
    for row in 1..=len / 2 {
        lookout.after(4 * size_of::<T>() * width)?;
        for lane in 0..width {
            let point = Point::<T, 1>::load(planes, row * width + lane);
            point.conjugate().store(planes, (len - row) * width + lane);
        }
    }
    Ok(())
}

/// Calls `work` for the rows from 1 to the middle one, which is its own counterpart if there is one.
fn in_blocks(
    half: usize,
    width: usize,
    lookout: &mut Lookout<'_>,
    mut work: impl FnMut(Range<usize>),
) -> Result<(), Stopped> {
    let (rows, end) = (BLOCK / width, half / 2 + 1);
    for row in (1..end).step_by(rows) {
        lookout.after(8 * size_of::<f64>() * rows * width)?;
        work(row..end.min(row + rows));
    }
    Ok(())
}

/// A way between `Z` and `X`.
trait Way<T> {
    /// What is added for `row` and taken away for its counterpart: of the two in `Z` or `X`, the second conjugated.
    fn halves<const W: usize>(a: Point<T, W>, b: Point<T, W>, turn: [T; 2]) -> [Point<T, W>; 2];
}

struct Part;

struct Join;

impl<T: Float> Way<T> for Part {
    #[inline(always)]
    fn halves<const W: usize>(a: Point<T, W>, b: Point<T, W>, turn: [T; 2]) -> [Point<T, W>; 2] {
        let by = T::ONE / (T::ONE + T::ONE);
        // -i (a - b)
        [a.plus(b).scaled(by), b.minus(a).turned().scaled(by).times(turn)]
    }
}

impl<T: Float> Way<T> for Join {
    #[inline(always)]
    fn halves<const W: usize>(a: Point<T, W>, b: Point<T, W>, [re, im]: [T; 2]) -> [Point<T, W>; 2] {
        [a.plus(b), a.minus(b).times([re, -im]).turned()]
    }
}

for_avx2! {
    fn rows<T: Float, M: Way<T>>(
        from: &Planes<'_, T>, to: &mut Planes<'_, T>, turns: &[[T; 2]], half: usize, width: usize, rows: Range<usize>,
    ) -> () = rows_body::<T, M>;
}

#[inline(always)]
fn rows_body<T: Float, M: Way<T>>(
    from: &Planes<'_, T>,
    to: &mut Planes<'_, T>,
    turns: &[[T; 2]],
    half: usize,
    width: usize,
    rows: Range<usize>,
) {
    match width {
        8 => points::<T, M, 8>(from, to, turns, half, rows),
        4 => points::<T, M, 4>(from, to, turns, half, rows),
        _ => points::<T, M, 1>(from, to, turns, half, rows),
    }
}

#[inline(always)]
fn points<T: Float, M: Way<T>, const W: usize>(
    from: &Planes<'_, T>,
    to: &mut Planes<'_, T>,
    turns: &[[T; 2]],
    half: usize,
    rows: Range<usize>,
) {
    for row in rows {
        let turn = turns.get(row).copied().unwrap_or([T::ONE, T::ZERO]);
        let (a, b) = (Point::<T, W>::load(from, row * W), Point::load(from, (half - row) * W).conjugate());
        let [even, odd] = M::halves(a, b, turn);
        even.minus(odd).conjugate().store(to, (half - row) * W);
        even.plus(odd).store(to, row * W);
    }
}
