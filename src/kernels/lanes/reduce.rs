//! Reductions: a lane becomes a value while it is read.
//!
//! The element i of a lane goes to the partial value i mod 32, and these are joined as a tree at the end. So the order
//! depends on the length of the lane alone, and the loops are as wide as the processor.

use super::walk::Runs;
use super::{Lanes, Number, Offsets, Stored};
use crate::kernels::cpu::for_each_level;
use crate::kernels::{Resources, Stopped, parallel};

/// How a lane of `T` becomes a value.
pub(crate) trait Reduction<T: Number> {
    /// The value to start from: joined with another, it gives the other.
    const START: T;
    /// The value of a lane without elements, before [`Reduction::end`].
    const EMPTY: T = Self::START;

    /// An element that doesn't count.
    #[inline(always)]
    fn neutral(&self) -> T {
        Self::START
    }
    /// What an element counts.
    #[inline(always)]
    fn counts(&self, element: T) -> T {
        element
    }
    /// Joins the values of two parts of a lane.
    fn join(a: T, b: T) -> T;
    /// Makes the result of the value of a lane of `len` elements.
    #[inline(always)]
    fn end(value: T, len: usize) -> T {
        let _ = len;
        value
    }
}

/// A reduction of each number type.
pub(crate) trait ReductionOfAll:
    Reduction<f32>
    + Reduction<f64>
    + Reduction<i8>
    + Reduction<i16>
    + Reduction<i32>
    + Reduction<i64>
    + Reduction<u8>
    + Reduction<u16>
    + Reduction<u32>
    + Reduction<u64>
    + Default
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
}

/// Number of partial values.
pub(super) const PARTIALS: usize = 32;

/// Number of elements that are converted or collected at a time.
pub(super) const BLOCK: usize = 16 * PARTIALS;

/// Number of lanes that are reduced side by side.
const ABREAST: usize = 64;

/// Writes the value of each lane to `out`.
pub(crate) fn reduce<R: Reduction<T> + Sync, S: Stored<T>, T: Number>(
    reduction: &R,
    data: &[S],
    lanes: &Lanes,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let out = bytemuck::cast_slice_mut::<S, u8>(out);
    parallel::split_by(out, size_of::<S>(), lanes.len, resources, |first, out| {
        let out = bytemuck::cast_slice_mut::<u8, S>(out);
        if !lanes.contiguous() && lanes.abreast() > 1 && lanes.len > 0 {
            columns::<R, S, T>(reduction, data, lanes, first, out);
        } else {
            rows::<R, S, T>(reduction, data, lanes, first, out);
        }
        Ok(())
    })
}

for_each_level! {
    fn rows<R: Reduction<T>, S: Stored<T>, T: Number>(reduction: &R, data: &[S], lanes: &Lanes, first: usize, out: &mut [S]) -> ()
        = rows_body::<R, S, T>;
}

for_each_level! {
    fn columns<R: Reduction<T>, S: Stored<T>, T: Number>(reduction: &R, data: &[S], lanes: &Lanes, first: usize, out: &mut [S]) -> ()
        = columns_body::<R, S, T>;
}

/// Lanes one by one.
#[inline(always)]
fn rows_body<R: Reduction<T>, S: Stored<T>, T: Number>(
    reduction: &R,
    data: &[S],
    lanes: &Lanes,
    first: usize,
    out: &mut [S],
) {
    let mut starts = Offsets::new(&lanes.kept, first);
    let mut collected = [S::zeroed(); BLOCK];
    for out in out.chunks_exact_mut(1) {
        let lane = data.get(starts.next()..).unwrap_or(&[]);
        let mut runs = Runs::new(lanes);
        let (mut partials, mut run, mut left) = ([R::START; PARTIALS], &[][..], lanes.len);
        while left > 0 {
            // The only run, or a block that is collected from several.
            let part = if runs.len == lanes.len {
                lane.get(runs.next()).unwrap_or(&[])
            } else {
                let part = collected.get_mut(..left.min(BLOCK)).unwrap_or(&mut []);
                let mut to = part.iter_mut();
                while to.len() > 0 {
                    let (now, rest) = run.split_at(run.len().min(to.len()));
                    now.iter().zip(to.by_ref()).for_each(|(from, to)| *to = *from);
                    run = if rest.is_empty() { lane.get(runs.next()).unwrap_or(&[]) } else { rest };
                }
                part
            };
            add(reduction, &mut partials, part);
            left -= part.len().clamp(1, left);
        }
        S::store(&[end::<R, T>(partials, lanes.len)], out);
    }
}

/// The value of a lane that is a slice.
#[inline(always)]
pub(super) fn value<R: Reduction<T>, S: Stored<T>, T: Number>(reduction: &R, lane: &[S]) -> T {
    let mut partials = [R::START; PARTIALS];
    add(reduction, &mut partials, lane);
    end::<R, T>(partials, lane.len())
}

/// Adds elements, the first to the first partial value.
#[inline(always)]
fn add<R: Reduction<T>, S: Stored<T>, T: Number>(reduction: &R, partials: &mut [T; PARTIALS], elements: &[S]) {
    if let Some(elements) = S::direct(elements) {
        return add_numbers(reduction, partials, elements);
    }
    let mut block = [T::ZERO; BLOCK];
    for elements in elements.chunks(BLOCK) {
        S::load(elements, &mut block);
        add_numbers(reduction, partials, block.get(..elements.len()).unwrap_or(&[]));
    }
}

#[inline(always)]
fn add_numbers<R: Reduction<T>, T: Number>(reduction: &R, partials: &mut [T; PARTIALS], elements: &[T]) {
    let (blocks, rest) = elements.as_chunks::<PARTIALS>();
    // A copy stays in registers.
    let (mut values, mut padded) = (*partials, [reduction.neutral(); PARTIALS]);
    padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    for blocks in [blocks, if rest.is_empty() { &[] } else { std::slice::from_ref(&padded) }] {
        for block in blocks {
            for (value, &element) in values.iter_mut().zip(block) {
                *value = R::join(*value, reduction.counts(element));
            }
        }
    }
    *partials = values;
}

#[inline(always)]
fn end<R: Reduction<T>, T: Number>(partials: [T; PARTIALS], len: usize) -> T {
    R::end(if len == 0 { R::EMPTY } else { join::<R, T>(partials) }, len)
}

/// Joins partial values as a tree.
#[inline(always)]
pub(super) fn join<R: Reduction<T>, T: Number>(mut partials: [T; PARTIALS]) -> T {
    let mut width = PARTIALS / 2;
    while width > 0 {
        let (low, high) = partials.split_at_mut(width);
        for (low, high) in low.iter_mut().zip(high) {
            *low = R::join(*low, *high);
        }
        width /= 2;
    }
    let [first, ..] = partials;
    first
}

/// Lanes side by side: their elements at the same position are neighbours.
#[inline(always)]
fn columns_body<R: Reduction<T>, S: Stored<T>, T: Number>(
    reduction: &R,
    data: &[S],
    lanes: &Lanes,
    first: usize,
    mut out: &mut [S],
) {
    let abreast = lanes.abreast();
    let mut groups = Offsets::new(lanes.kept.get(1..).unwrap_or(&[]), first / abreast);
    let mut before = first % abreast;
    while !out.is_empty() {
        let group = data.get(groups.next()..).unwrap_or(&[]);
        let (now, rest) = out.split_at_mut(out.len().min(abreast - before));
        for (k, out) in now.chunks_mut(ABREAST).enumerate() {
            values_abreast(reduction, group.get(before + k * ABREAST..).unwrap_or(&[]), lanes, out);
        }
        (out, before) = (rest, 0);
    }
}

/// The values of at most [`ABREAST`] lanes that start side by side, as [`value`] of each.
#[inline(always)]
fn values_abreast<R: Reduction<T>, S: Stored<T>, T: Number>(reduction: &R, data: &[S], lanes: &Lanes, out: &mut [S]) {
    let mut partials = [[R::START; ABREAST]; PARTIALS];
    let mut rows = Offsets::new(&lanes.along, 0);
    let mut converted = [T::ZERO; ABREAST];
    for k in 0..lanes.len {
        let at = rows.next();
        let (Some(values), Some(row)) = (partials.get_mut(k % PARTIALS), data.get(at..at + out.len())) else { return };
        let row = match S::direct(row) {
            Some(row) => row,
            None => {
                S::load(row, &mut converted);
                converted.get(..out.len()).unwrap_or(&[])
            }
        };
        for (value, &element) in values.iter_mut().zip(row) {
            *value = R::join(*value, reduction.counts(element));
        }
    }
    let mut width = PARTIALS / 2;
    while width > 0 {
        let (low, high) = partials.split_at_mut(width);
        for (low, high) in low.as_flattened_mut().iter_mut().zip(high.as_flattened()) {
            *low = R::join(*low, *high);
        }
        width /= 2;
    }
    let [mut values, ..] = partials;
    for value in &mut values {
        *value = R::end(*value, lanes.len);
    }
    S::store(&values, out);
}
