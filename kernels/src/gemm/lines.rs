//! Panels of windows of images of float32 and of bytes: what stands in a line of an image is loaded at once.

#![allow(unsafe_code)] // pointers into an image: `panel` says that they are there

use super::vectors::Spread;
use super::vectors::x86::{F32x8, F32x16, U8x32};
use super::windows::Line;
use crate::windows::Axis;
use smallvec::SmallVec;
use std::ops::Range;

/// Windows that show a part of an image in each step.
pub(super) struct Panel<'a, T> {
    pub(super) inner: &'a Axis,
    pub(super) outer: &'a [Axis],
    /// From the image on.
    pub(super) elements: &'a [T],
    /// Elements of a channel, and taps of a window.
    pub(super) channel: usize,
    pub(super) taps: usize,
    pub(super) outside: T,
    pub(super) steps: Range<usize>,
    pub(super) columns: Range<usize>,
}

/// Maximum number of parts of lines that a panel is made of, in all taps.
const PARTS: usize = 512;

/// Neighbours in a row of the output, which are lanes of one vector.
#[derive(Clone, Copy)]
struct Neighbours {
    /// The first lane, the first of the columns, and their number.
    lane: usize,
    column: usize,
    count: usize,
}

/// What neighbours show at a tap: some lanes of theirs, and where lane 0 would be in a channel.
#[derive(Clone, Copy)]
struct Part<L> {
    lanes: L,
    at: usize,
}

/// Elements that there are loops for.
pub(super) trait OfLines: Copy {
    /// Fills `to`. Returns false if there is no loop for such windows, or for this processor.
    ///
    /// All places are within the elements, as [`Windows::check`](super::Windows) found.
    fn fill(panel: &Panel<'_, Self>, to: &mut [Self]) -> bool;
}

impl OfLines for f32 {
    fn fill(panel: &Panel<'_, f32>, to: &mut [f32]) -> bool {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
        fn of_16<const STRIDE: usize>(x: &Panel<'_, f32>, to: &mut [f32]) -> bool {
            // SAFETY: as the caller promises; these are the features of the vector.
            unsafe { fill::<F32x16, STRIDE>(x, to) }
        }
        #[target_feature(enable = "avx2,fma")]
        fn of_8<const STRIDE: usize>(x: &Panel<'_, f32>, to: &mut [f32]) -> bool {
            // SAFETY: as above.
            unsafe { fill::<F32x8, STRIDE>(x, to) }
        }
        // SAFETY: the level has the features.
        match (crate::cpu::level(), panel.inner.stride) {
            (4.., 1) => unsafe { of_16::<1>(panel, to) },
            (4.., 2) => unsafe { of_16::<2>(panel, to) },
            (3, 1) => unsafe { of_8::<1>(panel, to) },
            (3, 2) => unsafe { of_8::<2>(panel, to) },
            _ => false,
        }
    }
}

impl OfLines for u8 {
    fn fill(panel: &Panel<'_, u8>, to: &mut [u8]) -> bool {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
        fn of_32<const STRIDE: usize>(x: &Panel<'_, u8>, to: &mut [u8]) -> bool {
            // SAFETY: as the caller promises; these are the features of the vector.
            unsafe { fill::<U8x32, STRIDE>(x, to) }
        }
        // SAFETY: the level has the features.
        match (crate::cpu::level(), panel.inner.stride) {
            (4.., 1) => unsafe { of_32::<1>(panel, to) },
            (4.., 2) => unsafe { of_32::<2>(panel, to) },
            _ => false,
        }
    }
}

/// # Safety
/// See [`OfLines::fill`]; the processor has the vector.
#[inline(always)]
unsafe fn fill<V: Spread, const STRIDE: usize>(x: &Panel<'_, V::Element>, to: &mut [V::Element]) -> bool {
    let Panel { inner, outer, ref steps, ref columns, taps, .. } = *x;
    let width = columns.len();
    let (mut neighbours, mut of_first) = (SmallVec::<[Neighbours; 8]>::new(), 0);
    let mut column = columns.start;
    while column < columns.end {
        let lane = column - columns.start;
        let end = (lane / V::WIDTH + 1) * V::WIDTH;
        let count = (inner.output - column % inner.output).min(end.min(width) - lane);
        neighbours.push(Neighbours { lane: lane % V::WIDTH, column, count });
        of_first += usize::from(lane < V::WIDTH);
        column += count;
    }
    if taps.saturating_mul(neighbours.len()) > PARTS || width > 2 * V::WIDTH {
        return false;
    }
    // SAFETY: the processor has the vector.
    let none = Part { lanes: unsafe { V::lanes::<STRIDE>(0, 0) }, at: 0 };
    let mut parts: SmallVec<[Part<V::Lanes>; 64]> = SmallVec::from_elem(none, taps * neighbours.len());
    for (number, own) in neighbours.iter().enumerate() {
        let first = own.column % inner.output;
        // In a line, for each position.
        let mut along: SmallVec<[Part<V::Lanes>; 8]> = SmallVec::new();
        for position in 0..inner.kernel {
            let reach = position * inner.dilation;
            let column = |place: usize| place.saturating_sub(reach).div_ceil(STRIDE).clamp(first, first + own.count);
            let [low, high] = [inner.pad, inner.pad + inner.input].map(|place| column(place) - first + own.lane);
            let at = (first * STRIDE + reach).wrapping_sub(inner.pad + own.lane * STRIDE);
            // SAFETY: the processor has the vector.
            along.push(Part { lanes: unsafe { V::lanes::<STRIDE>(low, high) }, at: if low < high { at } else { 0 } });
        }
        let mut line = Line::new(outer, 0, own.column / inner.output);
        let mut to = parts.iter_mut().skip(number).step_by(neighbours.len());
        for _ in 0..taps / inner.kernel {
            let start = line.in_image().map(|line| line * inner.input);
            for (along, to) in along.iter().zip(&mut to) {
                if let Some(start) = start {
                    *to = Part { at: start.wrapping_add(along.at), ..*along };
                }
            }
            line.next();
        }
    }
    let mut channel = x.elements.as_ptr().wrapping_add(steps.start / taps * x.channel);
    let mut tap = steps.start % taps;
    for to in to.chunks_exact_mut(width) {
        let seen = parts.get(tap * neighbours.len()..).unwrap_or(&[]).split_at_checked(of_first);
        let (first, others) = seen.unwrap_or((&[], &[]));
        let second = others.get(..neighbours.len() - of_first).unwrap_or(&[]);
        for (parts, to) in [first, second].into_iter().zip(to.chunks_mut(V::WIDTH)) {
            // SAFETY: lanes of parts are in the image; as many numbers are written as there are.
            unsafe {
                let mut sum = V::all(x.outside);
                for part in parts {
                    sum = sum.load_lanes::<STRIDE>(channel.wrapping_add(part.at), part.lanes);
                }
                sum.write(to.as_mut_ptr(), to.len());
            }
        }
        tap += 1;
        if tap == taps {
            (tap, channel) = (0, channel.wrapping_add(x.channel));
        }
    }
    true
}
