//! AveragePool in blocks: the mean of each window.

use super::CHANNELS;
use super::each::Planned;
use crate::cpu::for_each_level;
use crate::half::Half;
use crate::lanes::{Halved, Mean, Stored};
use crate::pool::{Pool, Reduced};
use crate::windows::Axis;
use crate::{Resources, Stopped};
use bytemuck::cast_slice_mut;

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
            let seen = Seen { from, offsets: seen.offsets, around, columns, is_empty, across, first: column };
            match half {
                None => self::row::<f32>(seen, out),
                Some(Half::F16) => self::row::<Halved<false>>(seen, cast_slice_mut(out)),
                Some(Half::Bf16) => self::row::<Halved<true>>(seen, cast_slice_mut(out)),
            }
        }
        Ok(())
    })
}

/// What a row sees.
#[derive(Clone, Copy)]
struct Seen<'a> {
    from: &'a [f32],
    offsets: &'a [u32],
    /// How many entries count along the other axes, and along columns.
    around: usize,
    columns: &'a [usize],
    /// Windows see padding only.
    is_empty: bool,
    across: &'a Axis,
    /// The column of the first place.
    first: usize,
}

for_each_level! {
    fn row<S: Stored<f64>>(seen: Seen<'_>, out: &mut [S]) -> () = row_body::<S>;
}

#[inline(always)]
fn row_body<S: Stored<f64>>(seen: Seen<'_>, out: &mut [S]) {
    let Seen { from, offsets, around, columns, is_empty, across, first } = seen;
    let pool = Reduced(Mean);
    let inside = across.inside(&(first..first + columns.len()));
    for ((place, out), count) in out.as_chunks_mut::<CHANNELS>().0.iter_mut().enumerate().zip(columns) {
        let mut sums: [Partial; CHANNELS] = [<Reduced<Mean> as Pool<f32>>::START; CHANNELS];
        for offset in offsets {
            let start = place * CHANNELS + *offset as usize;
            let Some(seen) = from.get(start..).and_then(|from| from.first_chunk::<CHANNELS>()) else { continue };
            for (sum, number) in sums.iter_mut().zip(seen) {
                *sum = pool.add(*sum, *number, 0);
            }
        }
        let (count, at) = (around.saturating_mul(*count), first + place);
        let is_empty = is_empty || !inside.contains(&at) && across.taps(at).is_empty();
        let means = sums.map(|sum| Pool::<f32>::end(&pool, sum, if is_empty { 0 } else { count }, count).0);
        S::store(&means, out);
    }
}
