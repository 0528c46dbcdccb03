//! The greatest number of windows along two axes: of each line the greatest of windows along it, which are kept, and of these
//! the greatest of the lines that a window sees.

use super::{Pooling, RUN, Reduced, pool};
use crate::cpu::for_each_level;
use crate::lanes::{Extreme, Fold, Number, Partial, Stored};
use crate::lookout::Lookout;
use crate::windows::{Axis, Windows};
use crate::{Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Lines whose results are kept, and elements of the part of a line that is copied with what is around it.
const LINES: usize = 16;
const PART: usize = 512;

/// As [`pool`] with [`Reduced`], of the same windows whether padding counts or not.
pub fn greatest<S: Stored<T> + Stored<T::Precise>, T: Number>(
    extreme: Extreme<T, false>,
    data: &[S],
    windows: &Windows,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let Some([down, across]) = windows.of_image().filter(|axes| fits(*axes)) else {
        let pooling = Pooling { windows, counted: windows, column_major: false };
        return pool::<_, S, T>(&Reduced(extreme), data, pooling, out, &mut [], resources);
    };
    let (rows, columns) = (down.output.max(1), across.output.max(1));
    let unit = columns.saturating_mul(size_of::<S>());
    parallel::split_by(cast_slice_mut(out), unit, windows.taps(), resources, |first, out| {
        let mut lookout = resources.lookout();
        let mut room = Room { lines: [[T::ZERO; RUN]; LINES], part: [T::ZERO; PART], halves: [[T::ZERO; PART / 2]; 2] };
        let (mut line, mut rest) = (first, cast_slice_mut::<u8, S>(out));
        while !rest.is_empty() {
            let (plane, row) = (line / rows, line % rows);
            let own = row..rows.min(row + rest.len() / columns);
            let (out, others) = rest.split_at_mut(own.len() * columns);
            let start = plane * windows.input();
            let plane = data.get(start..start + windows.input()).ok_or(Stopped::Misfit)?;
            for column in (0..columns).step_by(RUN) {
                let places = [own.clone(), column..columns.min(column + RUN)];
                tile::<S, T>(&extreme, [down, across], plane, places, &mut room, out, &mut lookout)?;
            }
            (line, rest) = (line + own.len(), others);
        }
        Ok(())
    })
}

/// Whether windows along an axis after the other take fewer steps, and see little at once.
fn fits([down, across]: [&Axis; 2]) -> bool {
    let span = |axis: &Axis| axis.kernel.checked_sub(1).and_then(|last| last.checked_mul(axis.dilation));
    let wide = span(across).is_some_and(|span| span <= PART - 2 * RUN);
    wide && matches!(across.stride, 1 | 2) && span(down).is_some_and(|span| span.min(down.input) < LINES)
}

/// What is kept, from an address on where a line of the cache begins.
#[repr(align(64))]
struct Room<T> {
    lines: [[T; RUN]; LINES],
    /// A part of a line, and its elements with even and with odd numbers.
    part: [T; PART],
    halves: [[T; PART / 2]; 2],
}

for_each_level! {
    /// Computes some rows and columns of a plane, in rows of `out`.
    fn tile<S: Stored<T>, T: Number>(
        extreme: &Extreme<T, false>, axes: [&Axis; 2], plane: &[S], places: [Range<usize>; 2], room: &mut Room<T>,
        out: &mut [S], lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> = tile_body::<S, T>;
}

#[inline(always)]
fn tile_body<S: Stored<T>, T: Number>(
    extreme: &Extreme<T, false>,
    [down, across]: [&Axis; 2],
    plane: &[S],
    [rows, columns]: [Range<usize>; 2],
    room: &mut Room<T>,
    out: &mut [S],
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    // What windows see of a line, in whole vectors.
    let len = (RUN * across.stride + (across.kernel - 1) * across.dilation).next_multiple_of(RUN).min(PART);
    // Which line is where, and whether one of its elements is odd.
    let mut kept = [(usize::MAX, false); LINES];
    let outs = out.chunks_exact_mut(across.output.max(1)).filter_map(|out| out.get_mut(columns.clone()));
    for (row, out) in rows.zip(outs) {
        let (taps, mut odd) = (down.taps(row), false);
        lookout.after((taps.len() + across.kernel) * RUN * size_of::<S>())?;
        let lines = || taps.clone().map(|tap| down.element(row, tap));
        for line in lines() {
            let to = room.lines.get_mut(line % LINES).zip(kept.get_mut(line % LINES));
            let (to, own) = to.ok_or(Stopped::Misfit)?;
            if own.0 != line {
                let from = plane.get(line * across.input..).and_then(|from| from.get(..across.input));
                let part = room.part.get_mut(..len).unwrap_or_default();
                *own = (line, copied(extreme, across, from.ok_or(Stopped::Misfit)?, columns.start, part));
                let starts = (0..across.kernel).map(|tap| tap * across.dilation);
                if across.stride == 1 {
                    of_all(extreme, own.1, starts.filter_map(|start| part.get(start..)?.first_chunk()), to);
                } else {
                    let [even, odd] = &mut room.halves;
                    for ((even, odd), [a, b]) in even.iter_mut().zip(odd).zip(part.as_chunks().0) {
                        (*even, *odd) = (*a, *b);
                    }
                    let half = |start: usize| room.halves.get(start % 2)?.get(start / 2..)?.first_chunk();
                    of_all(extreme, own.1, starts.filter_map(half), to);
                }
            }
            odd |= own.1;
        }
        let mut values = [T::ZERO; RUN];
        of_all(extreme, odd, lines().filter_map(|line| room.lines.get(line % LINES)), &mut values);
        S::store(values.get(..out.len()).unwrap_or(&[]), out);
    }
    Ok(())
}

/// Copies what windows from a column on see of a line, with padding that is less than anything. Returns whether an element is
/// odd.
#[inline(always)]
fn copied<S: Stored<T>, T: Number>(
    extreme: &Extreme<T, false>,
    across: &Axis,
    line: &[S],
    column: usize,
    to: &mut [T],
) -> bool {
    let (first, pad) = (column * across.stride, across.pad);
    // Where the line begins in it, and with which of its elements.
    let (before, from) = (pad.saturating_sub(first).min(to.len()), first.saturating_sub(pad).min(line.len()));
    let (start, rest) = to.split_at_mut(before);
    let (numbers, end) = rest.split_at_mut(rest.len().min(line.len() - from));
    S::load(line.get(from..from + numbers.len()).unwrap_or(&[]), numbers);
    let mut odd = false;
    for number in &*numbers {
        odd |= extreme.is_odd(*number);
    }
    let least = extreme.element(<Extreme<T, false> as Fold<T>>::Partial::START);
    start.fill(least);
    end.fill(least);
    odd
}

/// Writes the greatest of elements at the same place of some lists, the last of equals.
#[inline(always)]
fn of_all<'a, T: Number>(
    extreme: &Extreme<T, false>,
    odd: bool,
    lists: impl Iterator<Item = &'a [T; RUN]>,
    to: &mut [T; RUN],
) {
    // They stay in registers.
    let mut values = [<Extreme<T, false> as Fold<T>>::Partial::START; RUN];
    if odd {
        for list in lists {
            for (value, number) in values.iter_mut().zip(list) {
                *value = extreme.add(*value, extreme.counts(*number));
            }
        }
    } else {
        for list in lists {
            for (value, number) in values.iter_mut().zip(list) {
                *value = extreme.add_ordinary(*value, extreme.counts(*number));
            }
        }
    }
    for (to, value) in to.iter_mut().zip(values) {
        *to = extreme.element(value);
    }
}
