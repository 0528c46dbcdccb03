//! Copies what the output sees of a line of an image, with padding around it, so that neighbours read neighbours at any stride.

use super::CHANNELS;
use crate::cpu::for_each_level;
use crate::windows::Axis;
use bytemuck::Pod;
use smallvec::SmallVec;
use std::ops::Range;

/// A part of a line: the columns of each remainder, divided by the stride, follow each other.
#[derive(Debug)]
pub(super) struct Line {
    /// The columns that are seen of each remainder, where they are copied from and to.
    runs: SmallVec<[Run; 2]>,
    stride: usize,
    /// Elements from a column to the next: 1, or the channels of a block.
    distance: usize,
}

/// Columns of the same remainder.
#[derive(Debug)]
struct Run {
    from: usize,
    /// Where they are, and what is around them.
    to: Range<usize>,
    all: Range<usize>,
}

impl Line {
    /// The columns that places see, from the `first` one on: `width` of each remainder.
    pub(super) fn new(columns: &Axis, first: usize, width: usize, distance: usize) -> Line {
        let (stride, first) = (columns.stride, first * columns.stride);
        let seen = rests(columns, stride);
        let is_seen = |rest: &usize| seen.get(*rest) == Some(&true);
        let run = |rest: usize| {
            let at = |place: usize| place.saturating_sub(first + rest).div_ceil(stride).min(width);
            let (low, high) = (at(columns.pad), at(columns.pad + columns.input).max(at(columns.pad)));
            let (start, of) = (rest * width, |place: usize| place * distance);
            Run {
                from: of((first + rest + low * stride).saturating_sub(columns.pad)),
                to: of(start + low)..of(start + high),
                all: of(start)..of(start + width),
            }
        };
        Line { runs: (0..stride).filter(is_seen).map(run).collect(), stride, distance }
    }

    /// Where a whole line of so many elements stands, if it does.
    pub(super) fn whole(&self, len: usize) -> Option<Range<usize>> {
        match &*self.runs {
            [Run { from: 0, to, .. }] if self.stride == 1 && to.len() == len => Some(to.clone()),
            _ => None,
        }
    }

    /// Writes what is around a line.
    pub(super) fn surround<T: Pod>(&self, outside: T, to: &mut [T]) {
        for Run { to: inside, all, .. } in &self.runs {
            to.get_mut(all.start..inside.start).into_iter().for_each(|to| to.fill(outside));
            to.get_mut(inside.end..all.end).into_iter().for_each(|to| to.fill(outside));
        }
    }

    /// Copies it from a whole line; `kept` if what is around it is there already.
    pub(super) fn copy<T: Pod>(&self, from: &[T], outside: T, kept: bool, to: &mut [T]) {
        if !kept {
            self.surround(outside, to);
        }
        for Run { from: start, to: inside, .. } in &self.runs {
            let (Some(from), Some(to)) = (from.get(*start..), to.get_mut(inside.clone())) else { continue };
            match (self.stride, self.distance) {
                (1, _) => from.get(..to.len()).into_iter().for_each(|from| copy_line(from, to)),
                (2, 1) => every_second::<T>(from, to),
                (stride, 1) => to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, from)| *to = *from),
                (stride, _) => every::<T>(from, stride, to),
            }
        }
    }
}

/// Copies elements by parts: libraries copy more at once by an instruction that takes longer to begin.
fn copy_line<T: Pod>(from: &[T], to: &mut [T]) {
    const PART: usize = 2048;
    let count = (PART / size_of::<T>()).max(1);
    for (to, from) in to.chunks_mut(count).zip(from.chunks(count)) {
        to.copy_from_slice(from);
    }
}

for_each_level! {
    /// Copies every second element, from the first on.
    fn every_second<T: Pod>(from: &[T], to: &mut [T]) -> () = every_second_body::<T>;
}

#[inline(always)]
fn every_second_body<T: Pod>(from: &[T], to: &mut [T]) {
    let (pairs, rest) = from.as_chunks::<2>();
    for (to, [first, _]) in to.iter_mut().zip(pairs) {
        *to = *first;
    }
    to.get_mut(pairs.len()..).unwrap_or(&mut []).iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
}

for_each_level! {
    /// Copies every so many blocks of channels.
    fn every<T: Pod>(from: &[T], stride: usize, to: &mut [T]) -> () = every_body::<T>;
}

#[inline(always)]
fn every_body<T: Pod>(from: &[T], stride: usize, to: &mut [T]) {
    let from = from.as_chunks::<CHANNELS>().0.iter().step_by(stride);
    to.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// For each place of so many, or for each remainder divided by the stride if these are fewer, whether a tap may be there.
pub(super) fn rests(axis: &Axis, places: usize) -> SmallVec<[bool; 8]> {
    let mut seen = SmallVec::from_elem(false, axis.stride.min(places));
    for tap in 0..axis.kernel.min(axis.stride) {
        seen.get_mut(tap * axis.dilation % axis.stride).into_iter().for_each(|seen| *seen = true);
    }
    seen
}

/// Elements of the input from the first to the last that so many neighbours in the output see.
pub(super) fn span(axis: &Axis, count: usize) -> usize {
    (count.max(1) - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1
}

/// The columns of each remainder that so many neighbours in the output see.
pub(super) fn width(columns: &Axis, count: usize) -> usize {
    span(columns, count).div_ceil(columns.stride)
}
