//! Windows that slide over the spatial axes of a tensor: which elements of the input each position of the output sees.
//!
//! A window has taps, one for each position of its kernel. Along an axis, tap `t` of output position `o` is at
//! `o * stride + t * dilation - pad` of the input. Those in padding, or beyond its end, are left out before the loops over
//! taps start, so that these test no element.

use super::{Resources, Stopped, parallel, volume};
use smallvec::SmallVec;
use std::ops::Range;

/// The windows along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Elements of the input, and positions of the output.
    pub input: usize,
    pub output: usize,
    /// Taps of a window.
    pub kernel: usize,
    pub stride: usize,
    /// Elements from a tap to the next.
    pub dilation: usize,
    /// Positions before the first element. What is after the last one follows from the others.
    pub pad: usize,
}

impl Axis {
    /// That of the rows of a line: one, which windows show.
    pub const ROW: Axis = Axis { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, pad: 0 };

    /// Slices, rows and columns, where there is one slice.
    pub fn of_slice([rows, columns]: [Axis; 2]) -> [Axis; 3] {
        [Axis::ROW, rows, columns]
    }

    /// Whether there is one window, which shows the input as it is.
    pub fn shows_all(&self) -> bool {
        (self.output, self.pad, self.kernel) == (1, 0, self.input) && (self.kernel < 2 || self.dilation == 1)
    }

    /// The taps that are elements of the input, for a position of the output.
    #[inline]
    pub fn taps(&self, at: usize) -> Range<usize> {
        let (start, dilation) = (at.saturating_mul(self.stride), self.dilation.max(1));
        let first = steps(self.pad.saturating_sub(start), dilation).min(self.kernel);
        let end = steps(self.input.saturating_add(self.pad).saturating_sub(start), dilation).min(self.kernel);
        first..end.max(first)
    }

    /// The element of the input at a tap, which must be one of [`Axis::taps`].
    #[inline]
    pub fn element(&self, at: usize, tap: usize) -> usize {
        let place = at.saturating_mul(self.stride).saturating_add(tap.saturating_mul(self.dilation));
        place.saturating_sub(self.pad)
    }

    /// The positions of a range of which a tap is an element of the input.
    #[inline]
    pub fn positions(&self, tap: usize, among: &Range<usize>) -> Range<usize> {
        let (distance, stride) = (tap.saturating_mul(self.dilation), self.stride.max(1));
        let at = |place: usize| steps(place.saturating_sub(distance), stride).clamp(among.start, among.end);
        at(self.pad)..at(self.pad.saturating_add(self.input))
    }

    /// The positions of a range of which all taps are elements of the input, or none if there are no taps.
    #[inline]
    pub fn inside(&self, among: &Range<usize>) -> Range<usize> {
        let Some(last) = self.kernel.checked_sub(1) else { return among.start..among.start };
        let (first, last) = (self.positions(0, among), self.positions(last, among));
        first.start..last.end.max(first.start)
    }
}

/// `distance` over `size`, rounded up. Most steps are of 1, and a division takes longer than all else here.
#[inline]
fn steps(distance: usize, size: usize) -> usize {
    if size == 1 { distance } else { distance.div_ceil(size) }
}

/// The taps of a window that are elements of the input, along an axis: the first, the element there, and how many there are.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    first: usize,
    element: usize,
    count: usize,
}

impl Side {
    fn of((axis, at): (&Axis, &usize)) -> Side {
        let taps = axis.taps(*at);
        Side { first: taps.start, element: axis.element(*at, taps.start), count: taps.len() }
    }
}

/// Positions of the output that are neighbours along the last axis.
#[derive(Debug)]
pub struct Run<'a> {
    /// The number of the plane.
    pub plane: usize,
    /// The positions along the last axis.
    pub along: Range<usize>,
    last: Axis,
    outer: &'a [Axis],
    /// The position along each of the outer axes.
    at: &'a [usize],
}

impl Run<'_> {
    /// Calls `line` with the number of the first element of each line of the plane that the windows see, in order, and with
    /// the number of its tap. A line is along the last axis.
    #[inline]
    pub fn lines(&self, mut line: impl FnMut(usize, usize) -> Result<(), Stopped>) -> Result<(), Stopped> {
        if let ([axis], [at]) = (self.outer, self.at) {
            let Side { first, element, count } = Side::of((axis, at));
            return (0..count).try_for_each(|tap| line((element + tap * axis.dilation) * self.last.input, first + tap));
        }
        let sides: SmallVec<[Side; 3]> = self.outer.iter().zip(self.at).map(Side::of).collect();
        if sides.iter().any(|side| side.count == 0) {
            return Ok(());
        }
        let mut taps: SmallVec<[usize; 3]> = SmallVec::from_elem(0, sides.len());
        loop {
            let place = |start, ((axis, side), tap): ((&Axis, &Side), &usize)| {
                start * axis.input + side.element + tap * axis.dilation
            };
            let sides_and_taps = || self.outer.iter().zip(&sides).zip(&taps);
            let number = |all: usize, ((axis, side), tap): ((&Axis, &Side), &usize)| {
                all.wrapping_mul(axis.kernel).wrapping_add(side.first + tap)
            };
            let number = sides_and_taps().fold(0, number);
            line(sides_and_taps().fold(0, place) * self.last.input, number)?;
            let moved = taps.iter_mut().zip(&sides).rev().any(|(tap, side)| {
                *tap = if *tap + 1 == side.count { 0 } else { *tap + 1 };
                *tap > 0
            });
            if !moved {
                return Ok(());
            }
        }
    }

    /// The number of its first position in the plane of the output.
    pub fn number(&self) -> usize {
        let line = self.outer.iter().zip(self.at).fold(0, |line, (axis, at)| line * axis.output + at);
        line * self.last.output + self.along.start
    }

    /// How many lines the windows see, if they are `windows`, which have the same positions.
    #[inline]
    pub fn around(&self, windows: &Windows) -> usize {
        windows.outer.iter().zip(self.at).map(|(axis, at)| axis.taps(*at).len()).fold(1, usize::saturating_mul)
    }
}

/// What fills two outputs at a run of positions.
pub type RunWork<'a> = dyn Fn(&Run<'_>, [&mut [u8]; 2]) -> Result<(), Stopped> + Sync + 'a;

/// The windows of a tensor: all positions of the output in row-major order, for as many planes as the output has.
#[derive(Debug)]
pub struct Windows {
    outer: SmallVec<[Axis; 3]>,
    last: Axis,
}

impl Windows {
    pub fn new(axes: impl IntoIterator<Item = Axis>) -> Windows {
        let mut outer: SmallVec<[Axis; 3]> = axes.into_iter().collect();
        let last = outer.pop().unwrap_or(Axis::ROW);
        Windows { outer, last }
    }

    /// The last axis.
    pub fn last(&self) -> &Axis {
        &self.last
    }

    /// The rows and columns of an image, if there are two axes.
    pub(super) fn of_image(&self) -> Option<[&Axis; 2]> {
        let [rows] = &*self.outer else { return None };
        Some([rows, &self.last])
    }

    /// Elements of a plane of the input.
    pub fn input(&self) -> usize {
        volume(self.last.input, self.outer.iter().map(|axis| &axis.input))
    }

    /// Positions of a plane of the output.
    pub fn output(&self) -> usize {
        volume(self.last.output, self.outer.iter().map(|axis| &axis.output))
    }

    /// Taps of a window.
    pub fn kernel(&self) -> usize {
        volume(self.last.kernel, self.outer.iter().map(|axis| &axis.kernel))
    }

    /// Maximum number of taps of a window that are elements of the input.
    pub fn taps(&self) -> usize {
        let most = |axis: &Axis| axis.kernel.min(axis.input);
        self.outer.iter().map(most).fold(most(&self.last), usize::saturating_mul)
    }

    /// The number of an element in column-major order, from that in row-major order.
    pub fn column_major(&self, mut element: usize) -> usize {
        let sizes = self.outer.iter().map(|axis| axis.input).chain([self.last.input]);
        let (mut number, mut step) = (0, volume(1, &sizes.clone().collect::<SmallVec<[usize; 4]>>()));
        for size in sizes.rev().map(|size| size.max(1)) {
            step /= size;
            number += element % size * step;
            element /= size;
        }
        number
    }

    /// Calls `work` with runs of at most `most` positions of two outputs, and the elements of each output at these, which have
    /// `sizes` bytes; those of an empty output are none. Large outputs are shared among threads.
    ///
    /// # Errors
    /// If `work` fails, or the caller asks to stop.
    pub fn runs(
        &self,
        most: usize,
        outs: [&mut [u8]; 2],
        sizes: [usize; 2],
        resources: Resources<'_>,
        work: &RunWork<'_>,
    ) -> Result<(), Stopped> {
        let width = self.last.output.max(1);
        // Windows that are far apart may have no taps in common: a run of them would have more than all of theirs.
        let most = if self.last.stride > self.last.input { 1 } else { most.max(1) };
        parallel::split_two(outs, sizes, self.taps(), resources, |first, mut rest| {
            let (mut row, mut start) = (first / width, first % width);
            let mut at: SmallVec<[usize; 3]> = SmallVec::from_elem(0, self.outer.len());
            while rest.iter().any(|out| !out.is_empty()) {
                let mut plane = row;
                for (at, axis) in at.iter_mut().zip(&self.outer).rev() {
                    (*at, plane) = (plane % axis.output.max(1), plane / axis.output.max(1));
                }
                while start < width && rest.iter().any(|out| !out.is_empty()) {
                    let mut count = most.min(width - start);
                    for (rest, size) in rest.iter().zip(sizes).filter(|(rest, _)| !rest.is_empty()) {
                        count = count.min(rest.len() / size.max(1)).max(1);
                    }
                    let mut now: [&mut [u8]; 2] = Default::default();
                    for ((rest, now), size) in rest.iter_mut().zip(&mut now).zip(sizes) {
                        let whole = std::mem::take(rest);
                        (*now, *rest) = whole.split_at_mut((count * size).min(whole.len()));
                    }
                    let along = start..start + count;
                    work(&Run { plane, along, last: self.last, outer: &self.outer, at: &at }, now)?;
                    start += count;
                }
                (row, start) = (row + 1, 0);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::looks;

    fn axis(input: usize, output: usize, kernel: usize, stride: usize, dilation: usize, pad: usize) -> Axis {
        Axis { input, output, kernel, stride, dilation, pad }
    }

    #[test]
    fn taps_and_positions_are_those_inside() {
        for k in 0..4 * 5 * 4 * 3 * 3 * 4 {
            let axis = axis(k % 4, k / 4 % 5, k / 20 % 4, k / 80 % 3 + 1, k / 240 % 3 + 1, k / 720);
            let inside = |at: usize, tap: usize| {
                let place = at * axis.stride + tap * axis.dilation;
                place >= axis.pad && place < axis.pad + axis.input
            };
            for at in 0..axis.output {
                assert!((0..axis.kernel).all(|tap| axis.taps(at).contains(&tap) == inside(at, tap)), "{axis:?} {at}");
            }
            for tap in 0..axis.kernel {
                let positions = axis.positions(tap, &(1..axis.output.max(1)));
                assert!((1..axis.output).all(|at| positions.contains(&at) == inside(at, tap)), "{axis:?} {tap}");
            }
            let all = axis.inside(&(1..axis.output.max(1)));
            let whole = |at: usize| axis.kernel > 0 && (0..axis.kernel).all(|tap| inside(at, tap));
            assert!((1..axis.output).all(|at| all.contains(&at) == whole(at)), "{axis:?}");
        }
    }

    /// Sizes that no memory has: nothing overflows.
    #[test]
    fn taps_of_huge_sizes() {
        let huge = Axis {
            input: usize::MAX,
            output: 1,
            kernel: usize::MAX,
            stride: usize::MAX,
            dilation: usize::MAX,
            pad: usize::MAX,
        };
        assert_eq!(huge.taps(usize::MAX), 0..0);
        assert_eq!((huge.taps(0), huge.element(2, 2)), (1..1, 0));
        assert_eq!((huge.positions(0, &(2..5)), huge.positions(2, &(0..1))), (2..2, 0..0));
        assert_eq!(axis(3, 1, 0, 1, 1, 0).taps(0), 0..0);
        assert_eq!(axis(0, 1, 2, 1, 1, 1).taps(0), 1..1);
    }

    #[test]
    fn they_stop_between_parts() {
        let windows = Windows::new([axis(1 << 16, 1 << 16, 16, 1, 1, 8)]);
        let mut out = vec![0; 4 << 16];
        let stop = Stop::default();
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let (outcome, looks) =
            looks::count(5, || windows.runs(64, [&mut out, &mut []], [4, 0], resources, &|_, _| Ok(())));
        assert_eq!((outcome, looks.len()), (Err(Stopped::Cancelled), 5));
    }
}
