//! The mean of the numbers that each window shows.

use super::CHANNELS;
use super::each::Planned;
use crate::cpu::for_each_level;
use crate::half::Half;
use crate::lanes::Mean;
use crate::pool::{Pool, Reduced};
use crate::windows::Axis;
use crate::{Resources, Stopped};

type Partial = <Reduced<Mean> as Pool<f32>>::Partial;

/// Writes `[images, blocks, slices, rows, columns, 16]`: the mean of each window, as the [pool](crate::pool) of planes has it.
/// `counts` are how many entries count along each axis, for each slice, row and column of the output. Of numbers of a `half`,
/// means are rounded once, to these.
pub fn mean(
    each: &Planned<'_>,
    half: Option<Half>,
    counts: [&[usize]; 3],
    out: &mut [f32],
    scratch: &mut [f32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    // What is added for padding changes no sum.
    each.run(-0.0, out, scratch, resources, &|seen, out| {
        let [slices, rows, columns] = counts;
        for (row, out) in out.chunks_exact_mut((seen.count * CHANNELS).max(1)).enumerate() {
            let from = seen.from.get(row * seen.row..).ok_or(Stopped::Misfit)?;
            let [slice, first, column] = seen.at;
            let around = slices.get(slice).zip(rows.get(first + row)).ok_or(Stopped::Misfit)?;
            let around = around.0.saturating_mul(*around.1);
            let columns = columns.get(column..column + seen.count).ok_or(Stopped::Misfit)?;
            let [deep, down, across] = each.each.axes;
            let is_empty = deep.taps(slice).is_empty() || down.taps(first + row).is_empty();
            self::row(from, seen.offsets, (around, columns), (is_empty, across, column), half, out);
            half.iter().for_each(|half| half.round(out));
        }
        Ok(())
    })
}

for_each_level! {
    fn row<>(
        from: &[f32], offsets: &[u32], counts: (usize, &[usize]), empty: (bool, &Axis, usize), half: Option<Half>,
        out: &mut [f32]
    ) -> () = row_body;
}

#[inline(always)]
fn row_body(
    from: &[f32],
    offsets: &[u32],
    (around, columns): (usize, &[usize]),
    (is_empty, across, first): (bool, &Axis, usize),
    half: Option<Half>,
    out: &mut [f32],
) {
    let pool = Reduced(Mean);
    for ((place, out), count) in out.as_chunks_mut::<CHANNELS>().0.iter_mut().enumerate().zip(columns) {
        let mut sums: [Partial; CHANNELS] = [<Reduced<Mean> as Pool<f32>>::START; CHANNELS];
        for offset in offsets {
            let start = place * CHANNELS + *offset as usize;
            let Some(seen) = from.get(start..).and_then(|from| from.first_chunk::<CHANNELS>()) else { continue };
            for (sum, number) in sums.iter_mut().zip(seen) {
                *sum = pool.add(*sum, *number, 0);
            }
        }
        let count = around.saturating_mul(*count);
        let elements = if is_empty || across.taps(first + place).is_empty() { 0 } else { count };
        for (to, sum) in out.iter_mut().zip(sums) {
            let (mean, _) = Pool::<f32>::end(&pool, sum, elements, count);
            *to = half.map_or(mean as f32, |half| half.odd(mean));
        }
    }
}
