//! The greatest number that each window shows.

use super::CHANNELS;
use super::each::Planned;
use crate::cpu::for_each_level;
use crate::lanes::{Extreme, Fold, Number, Partial};
use crate::{Resources, Stopped};

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

#[inline(always)]
fn row_body<T: Number>(extreme: &Extreme<T, false>, from: &[T], offsets: &[u32], out: &mut [T]) {
    for (place, out) in out.as_chunks_mut::<CHANNELS>().0.iter_mut().enumerate() {
        let mut values = [<<Extreme<T, false> as Fold<T>>::Partial as Partial>::START; CHANNELS];
        for offset in offsets {
            let start = place * CHANNELS + *offset as usize;
            let Some(seen) = from.get(start..).and_then(|from| from.first_chunk::<CHANNELS>()) else { continue };
            for (value, number) in values.iter_mut().zip(seen) {
                *value = extreme.add(*value, extreme.counts(*number));
            }
        }
        for (to, value) in out.iter_mut().zip(values) {
            *to = extreme.element(value);
        }
    }
}
