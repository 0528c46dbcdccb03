//! MaxPool in blocks: the greatest number of each window.

use super::CHANNELS;
use super::each::Planned;
use crate::cpu::for_each_level;
use crate::lanes::{Extreme, Fold, Number, Partial};
use crate::{Resources, Stopped};
use std::ops::Range;

/// Writes `[images, blocks, slices, rows, columns, 16]`: the greatest of each window, as the [pool](crate::pool) of planes has it.
/// Padding is less than anything.
pub fn greatest(
    each: &Planned<'_>,
    extreme: &Extreme<f32, false>,
    out: &mut [f32],
    scratch: &mut [f32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    each.run(f32::NEG_INFINITY, out, scratch, resources, &|seen, out| {
        for (row, out) in out.chunks_exact_mut((seen.count * CHANNELS).max(1)).enumerate() {
            let from = seen.from.get(row * seen.row..).ok_or(Stopped::Misfit)?;
            self::row::<f32>(extreme, from, seen.offsets, out);
        }
        Ok(())
    })
}

for_each_level! {
    fn row<T: Number>(extreme: &Extreme<T, false>, from: &[T], offsets: &[u32], out: &mut [T]) -> () = row_body::<T>;
}

/// Taps that are added at once.
const TAPS: usize = 3;

#[inline(always)]
fn row_body<T: Number>(extreme: &Extreme<T, false>, from: &[T], offsets: &[u32], out: &mut [T]) {
    let (start, len) = (<Extreme<T, false> as Fold<T>>::Partial::START, out.len());
    let seen = |offset: &u32| from.get(*offset as usize..).and_then(|from| from.get(..len)).unwrap_or(&[]);
    if has_odd(extreme, from, offsets, len) {
        out.fill(extreme.element(start));
        for offset in offsets {
            for (to, number) in out.iter_mut().zip(seen(offset)) {
                let value = extreme.add(start, extreme.counts(*to));
                *to = extreme.element(extreme.add(value, extreme.counts(*number)));
            }
        }
        return;
    }
    let add = |value, number: &T| extreme.add_ordinary(value, extreme.counts(*number));
    for (at, taps) in offsets.chunks(TAPS).enumerate() {
        let before = |to: &T| if at == 0 { start } else { add(start, to) };
        if let [a, b, c] = taps {
            for (((to, a), b), c) in out.iter_mut().zip(seen(a)).zip(seen(b)).zip(seen(c)) {
                *to = extreme.element(add(add(add(before(to), a), b), c));
            }
            continue;
        }
        for (k, tap) in taps.iter().enumerate() {
            for (to, number) in out.iter_mut().zip(seen(tap)) {
                let value = if k == 0 { before(to) } else { add(start, to) };
                *to = extreme.element(add(value, number));
            }
        }
    }
}

/// Whether some number that taps see is odd, each of them as many as `len` from its offset on; or one between those of taps
/// that aren't far from each other, which are looked at once.
#[inline(always)]
fn has_odd<T: Number>(extreme: &Extreme<T, false>, from: &[T], offsets: &[u32], len: usize) -> bool {
    let is_odd = |seen: &Range<usize>| {
        let mut is_odd = false;
        for number in from.get(seen.clone()).unwrap_or(&[]) {
            is_odd |= extreme.is_odd(*number);
        }
        is_odd
    };
    let mut seen = 0..0;
    for offset in offsets {
        let (start, end) = (*offset as usize, *offset as usize + len);
        if start > seen.end + len || end + len < seen.start {
            if is_odd(&seen) {
                return true;
            }
            seen = start..end;
        }
        seen = seen.start.min(start)..seen.end.max(end);
    }
    is_odd(&seen)
}
