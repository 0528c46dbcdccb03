//! The greatest number that each window shows.

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
    for (at, taps) in offsets.chunks(TAPS).enumerate() {
        // The last one again and again, if there are fewer: it changes nothing.
        let [a, b, c]: [&[T]; TAPS] = std::array::from_fn(|tap| taps.get(tap).or(taps.last()).map(seen).unwrap_or(&[]));
        let numbers = out.iter_mut().zip(a).zip(b).zip(c);
        for (((to, a), b), c) in numbers {
            let mut value = start;
            if at > 0 {
                value = extreme.add_ordinary(value, extreme.counts(*to));
            }
            for number in [a, b, c] {
                value = extreme.add_ordinary(value, extreme.counts(*number));
            }
            *to = extreme.element(value);
        }
    }
}

/// Whether some number that taps see, each of them as many as `len` from its offset on, is odd. Those of neighbouring taps are
/// looked at once.
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
        if start > seen.end || end < seen.start {
            if is_odd(&seen) {
                return true;
            }
            seen = start..end;
        }
        seen = seen.start.min(start)..seen.end.max(end);
    }
    is_odd(&seen)
}
