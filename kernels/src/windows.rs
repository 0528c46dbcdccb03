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
    /// The taps that are elements of the input, for a position of the output.
    #[inline]
    pub fn taps(&self, at: usize) -> Range<usize> {
        let (start, dilation) = (at.saturating_mul(self.stride), self.dilation.max(1));
        let first = self.pad.saturating_sub(start).div_ceil(dilation).min(self.kernel);
        let end = self.input.saturating_add(self.pad).saturating_sub(start).div_ceil(dilation).min(self.kernel);
        first..end.max(first)
    }

    /// The element of the input at a tap, which must be one of [`Axis::taps`].
    #[inline]
    pub fn element(&self, at: usize, tap: usize) -> usize {
        let place = at.saturating_mul(self.stride).saturating_add(tap.saturating_mul(self.dilation));
        place.saturating_sub(self.pad)
    }
}

/// The taps of a window that are elements of the input: along each axis the first, the number of the tap and of the element
/// it is, and how many there are.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    tap: usize,
    element: usize,
    count: usize,
}

/// The window of a position of the output.
#[derive(Debug)]
pub struct Window<'a> {
    axes: &'a [Axis],
    sides: SmallVec<[Side; 3]>,
}

impl Window<'_> {
    /// The number of taps that are elements of the input.
    pub fn len(&self) -> usize {
        self.sides.iter().map(|side| side.count).product()
    }

    /// Whether no tap is an element of the input.
    pub fn is_empty(&self) -> bool {
        self.sides.iter().any(|side| side.count == 0)
    }

    /// Calls `row` with each run of taps along the last axis, in order: the number of the first tap in the kernel, that of
    /// its element in the input (both in row-major order), and the number of taps. The elements of neighbouring taps are
    /// the last axis' dilation apart.
    pub fn rows(&self, mut row: impl FnMut(usize, usize, usize)) {
        if self.is_empty() {
            return;
        }
        let count = self.sides.last().map_or(1, |side| side.count);
        let mut at: SmallVec<[usize; 3]> = SmallVec::from_elem(0, self.sides.len().saturating_sub(1));
        loop {
            let (mut tap, mut element) = (0, 0);
            for (k, (axis, side)) in self.axes.iter().zip(&self.sides).enumerate() {
                let own = at.get(k).copied().unwrap_or(0);
                tap = tap * axis.kernel + side.tap + own;
                element = element * axis.input + side.element + own * axis.dilation;
            }
            row(tap, element, count);
            // The next position along all axes but the last.
            let moved = at.iter_mut().zip(&self.sides).rev().any(|(at, side)| {
                *at = (*at + 1) % side.count;
                *at > 0
            });
            if !moved {
                return;
            }
        }
    }
}

/// The windows of a tensor: all positions of the output in row-major order, for as many planes as the output has.
#[derive(Debug)]
pub struct Windows {
    axes: SmallVec<[Axis; 3]>,
}

impl Windows {
    pub fn new(axes: impl IntoIterator<Item = Axis>) -> Windows {
        Windows { axes: axes.into_iter().collect() }
    }

    /// Elements of a plane of the input.
    pub fn input(&self) -> usize {
        volume(1, self.axes.iter().map(|axis| &axis.input))
    }

    /// Positions of a plane of the output.
    pub fn output(&self) -> usize {
        volume(1, self.axes.iter().map(|axis| &axis.output))
    }

    /// Taps of a window.
    pub fn kernel(&self) -> usize {
        volume(1, self.axes.iter().map(|axis| &axis.kernel))
    }

    /// Calls `work` for each position of the planes of two outputs, whose elements have `sizes` bytes: with the number of
    /// the plane, the window, and the element of each output; that of an empty one is empty. Large outputs are shared among
    /// threads.
    ///
    /// # Errors
    /// If `work` fails, or the caller asks to stop.
    pub fn each(
        &self,
        outs: [&mut [u8]; 2],
        sizes: [usize; 2],
        resources: Resources<'_>,
        work: impl Fn(usize, &Window<'_>, [&mut [u8]; 2]) -> Result<(), Stopped> + Sync,
    ) -> Result<(), Stopped> {
        let plane = self.output();
        parallel::split_two(outs, sizes, self.kernel(), resources, |first, outs| {
            let mut positions = Positions::new(&self.axes, first % plane.max(1));
            let (mut at, mut number) = (first % plane.max(1), first / plane.max(1));
            let mut rest = outs;
            while rest.iter().any(|out| !out.is_empty()) {
                let mut now: [&mut [u8]; 2] = Default::default();
                for ((rest, now), size) in rest.iter_mut().zip(&mut now).zip(sizes) {
                    let whole = std::mem::take(rest);
                    (*now, *rest) = whole.split_at_mut(size.min(whole.len()));
                }
                work(number, &positions.window, now)?;
                positions.next();
                at += 1;
                if at == plane {
                    (at, number) = (0, number + 1);
                }
            }
            Ok(())
        })
    }
}

/// Walks through the positions of a plane, again and again.
struct Positions<'a> {
    window: Window<'a>,
    at: SmallVec<[usize; 3]>,
}

impl<'a> Positions<'a> {
    /// Starts at the position with the number `first`.
    fn new(axes: &'a [Axis], first: usize) -> Positions<'a> {
        let (mut at, mut rest) = (SmallVec::from_elem(0, axes.len()), first);
        for (at, axis) in at.iter_mut().zip(axes).rev() {
            (*at, rest) = (rest % axis.output.max(1), rest / axis.output.max(1));
        }
        let sides = axes.iter().zip(&at).map(|(axis, at)| side(axis, *at)).collect();
        Positions { window: Window { axes, sides }, at }
    }

    fn next(&mut self) {
        let Window { axes, sides } = &mut self.window;
        for ((at, axis), own) in self.at.iter_mut().zip(axes.iter()).zip(sides).rev() {
            *at = if *at + 1 < axis.output { *at + 1 } else { 0 };
            *own = side(axis, *at);
            if *at > 0 {
                break;
            }
        }
    }
}

fn side(axis: &Axis, at: usize) -> Side {
    let taps = axis.taps(at);
    Side { tap: taps.start, element: axis.element(at, taps.start), count: taps.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::{looks, on_threads};
    use proptest::prelude::*;

    /// Elements that count in each position, with their taps: by the definition.
    fn plain(axes: &[Axis]) -> Vec<Vec<(usize, usize)>> {
        let mut windows = vec![vec![(0, 0)]];
        for axis in axes {
            let each = windows.iter().flat_map(|window| {
                (0..axis.output).map(move |at| {
                    let inside = |tap: &usize| {
                        let place = at * axis.stride + tap * axis.dilation;
                        (axis.pad..axis.pad + axis.input).contains(&place)
                    };
                    let of_axis = |&(tap, element): &(usize, usize)| {
                        (0..axis.kernel).filter(inside).map(move |own| {
                            let place = at * axis.stride + own * axis.dilation - axis.pad;
                            (tap * axis.kernel + own, element * axis.input + place)
                        })
                    };
                    window.iter().flat_map(of_axis).collect::<Vec<_>>()
                })
            });
            windows = each.collect();
        }
        windows
    }

    fn axis(input: usize, output: usize, kernel: usize, stride: usize, dilation: usize, pad: usize) -> Axis {
        Axis { input, output, kernel, stride, dilation, pad }
    }

    /// Max pool (with the element's number) and average pool over the elements inside.
    fn check(axes: &[Axis], planes: usize, resources: Resources<'_>) {
        let windows = Windows::new(axes.iter().copied());
        let (input, output) = (windows.input(), windows.output());
        let data: Vec<f32> = (0..planes * input).map(|k| ((k * 7919) % 1009) as f32 - 500.0).collect();
        let step = axes.last().map_or(1, |axis| axis.dilation);
        let (mut most, mut places) = (vec![0f32; planes * output], vec![0i64; planes * output]);
        let outs = [bytemuck::cast_slice_mut(&mut most), bytemuck::cast_slice_mut(&mut places)];
        let max = |plane: usize, window: &Window<'_>, [value, place]: [&mut [u8]; 2]| {
            let (mut best, mut at) = (f32::NEG_INFINITY, -1);
            window.rows(|_, element, count| {
                for element in (0..count).map(|k| plane * input + element + k * step) {
                    if data[element] > best {
                        (best, at) = (data[element], element as i64);
                    }
                }
            });
            value.copy_from_slice(&best.to_ne_bytes());
            place.copy_from_slice(&at.to_ne_bytes());
            Ok(())
        };
        windows.each(outs, [4, 8], resources, max).unwrap();
        let mut means = vec![0f32; planes * output];
        let mean = |plane: usize, window: &Window<'_>, [value, none]: [&mut [u8]; 2]| {
            assert!(none.is_empty());
            let mut sum = 0.0;
            window.rows(|tap, element, count| {
                for k in 0..count {
                    sum += data[plane * input + element + k * step] * (tap + k + 1) as f32;
                }
            });
            value.copy_from_slice(&(sum / window.len() as f32).to_ne_bytes());
            Ok(())
        };
        windows.each([bytemuck::cast_slice_mut(&mut means), &mut []], [4, 0], resources, mean).unwrap();
        let plain = plain(axes);
        assert_eq!(plain.len(), output);
        for (k, window) in (0..planes).flat_map(|_| &plain).enumerate() {
            let at = k / output * input;
            let (mut best, mut place, mut sum) = (f32::NEG_INFINITY, -1, 0.0);
            for &(tap, element) in window {
                if data[at + element] > best {
                    (best, place) = (data[at + element], (at + element) as i64);
                }
                sum += data[at + element] * (tap + 1) as f32;
            }
            assert_eq!((most[k], places[k]), (best, place), "{axes:?} {k}");
            assert_eq!(means[k].to_bits(), (sum / window.len() as f32).to_bits(), "{axes:?} {k}");
        }
    }

    const ALONE: Resources<'_> = Resources { threads: 1, stop: None };

    #[test]
    fn windows_of_all_kinds() {
        let cases: [&[Axis]; 9] = [
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
        ];
        for axes in cases {
            check(axes, 3, ALONE);
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
            looks::count(5, || windows.each([&mut out, &mut []], [4, 0], resources, |_, _, _| Ok(())));
        assert_eq!((outcome, looks.len()), (Err(Stopped::Cancelled), 5));
    }
}
