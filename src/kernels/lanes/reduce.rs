//! Reductions: a lane becomes a value while it is read.
//!
//! The element i of a lane goes to the partial value i mod 32, and these are joined as a tree at the end. So the order
//! depends on the length of the lane alone, and the loops are as wide as the processor.

use super::walk::Runs;
use super::{Dim, Lanes, Number, Offsets, Stored};
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

/// The loops of a reduction, compiled for each processor level. What walks over lanes calls these, and knows only the
/// types of elements and numbers.
pub(super) trait Loops<T: Number>: Sync {
    /// [`Reduction::START`]
    fn start(&self) -> T;
    /// Fills `out` with the values of lanes of `len` elements, one behind the other.
    fn values(&self, lanes: &[T], len: usize, out: &mut [T]);
    /// Adds elements, the first to the first partial value.
    fn add(&self, partials: &mut [T; PARTIALS], elements: &[T]);
    /// The value of a lane of `len` elements that were added.
    fn end(&self, partials: [T; PARTIALS], len: usize) -> T;
    /// Adds rows, the first to the partial values with the number `first`.
    fn add_rows(&self, partials: &mut Abreast<T>, first: usize, rows: Rows<'_, T>);
    /// The values of lanes of `len` elements that were added as rows.
    fn end_rows(&self, partials: &mut Abreast<T>, len: usize) -> [T; ABREAST];
}

/// Elements of lanes that are side by side: a row has those at one position, and rows start `step` elements apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    elements: &'a [T],
    step: usize,
    count: usize,
    width: usize,
}

/// Partial values of lanes that are side by side.
type Abreast<T> = [[T; ABREAST]; PARTIALS];

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
    reduce_by::<S, T>(reduction, data, lanes, out, resources)
}

fn reduce_by<S: Stored<T>, T: Number>(
    loops: &dyn Loops<T>,
    data: &[S],
    lanes: &Lanes,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let out = bytemuck::cast_slice_mut::<S, u8>(out);
    parallel::split_by(out, size_of::<S>(), lanes.len, resources, |first, out| {
        let out = bytemuck::cast_slice_mut::<u8, S>(out);
        if !lanes.contiguous() && lanes.abreast() > 1 && lanes.len > 0 {
            columns(loops, data, lanes, first, out);
        } else {
            rows(loops, data, lanes, first, out);
        }
        Ok(())
    })
}

/// Lanes one by one.
fn rows<S: Stored<T>, T: Number>(loops: &dyn Loops<T>, data: &[S], lanes: &Lanes, first: usize, out: &mut [S]) {
    if lanes.contiguous()
        && let (Some(data), Some(out)) = (S::direct(data), S::direct_mut(out))
    {
        return loops.values(data.get(first * lanes.len..).unwrap_or(&[]), lanes.len, out);
    }
    let mut starts = Offsets::new(&lanes.kept, first);
    for out in out.chunks_exact_mut(1) {
        let lane = data.get(starts.next()..).unwrap_or(&[]);
        let mut runs = Runs::new(lanes);
        let runs = std::iter::from_fn(|| lane.get(runs.next()));
        S::store(&[value_of_runs(loops, runs, lanes.len)], out);
    }
}

/// The value of a lane whose elements are neighbours.
pub(super) fn value_of<S: Stored<T>, T: Number>(loops: &dyn Loops<T>, lane: &[S]) -> T {
    match S::direct(lane) {
        Some(numbers) => {
            let mut value = [T::ZERO];
            loops.values(numbers, lane.len(), &mut value);
            let [value] = value;
            value
        }
        None => value_of_runs(loops, std::iter::once(lane), lane.len()),
    }
}

/// The value of a lane of `len` elements, which are in runs.
fn value_of_runs<'a, S: Stored<T>, T: Number>(
    loops: &dyn Loops<T>,
    mut runs: impl Iterator<Item = &'a [S]>,
    len: usize,
) -> T {
    let (mut partials, mut block) = ([loops.start(); PARTIALS], [T::ZERO; BLOCK]);
    let (mut run, mut left) = (&[][..], len);
    while left > 0 {
        let part = block.get_mut(..left.min(BLOCK)).unwrap_or(&mut []);
        let mut filled = 0;
        while let Some(to) = part.get_mut(filled..).filter(|to| !to.is_empty()) {
            if run.is_empty() {
                run = runs.next().unwrap_or(&[]);
            }
            if run.is_empty() {
                break;
            }
            let (now, rest) = run.split_at(run.len().min(to.len()));
            S::load(now, to);
            (filled, run) = (filled + now.len(), rest);
        }
        loops.add(&mut partials, part);
        left -= part.len();
    }
    loops.end(partials, len)
}

/// Lanes side by side: their elements at the same position are neighbours.
fn columns<S: Stored<T>, T: Number>(
    loops: &dyn Loops<T>,
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
            values_abreast(loops, group.get(before + k * ABREAST..).unwrap_or(&[]), lanes, out);
        }
        (out, before) = (rest, 0);
    }
}

/// The values of at most [`ABREAST`] lanes that start side by side.
fn values_abreast<S: Stored<T>, T: Number>(loops: &dyn Loops<T>, data: &[S], lanes: &Lanes, out: &mut [S]) {
    let Some((&Dim { size, step }, outer)) = lanes.along.split_first() else { return };
    let (mut partials, mut converted) = ([[loops.start(); ABREAST]; PARTIALS], [[T::ZERO; ABREAST]; PARTIALS]);
    let (mut starts, width) = (Offsets::new(outer, 0), out.len());
    for first in (0..lanes.len).step_by(size) {
        let data = data.get(starts.next()..).unwrap_or(&[]);
        if let Some(elements) = S::direct(data) {
            loops.add_rows(&mut partials, first, Rows { elements, step, count: size, width });
            continue;
        }
        for k in (0..size).step_by(PARTIALS) {
            let count = (size - k).min(PARTIALS);
            for (row, to) in (k..k + count).zip(&mut converted) {
                S::load(data.get(row * step..row * step + width).unwrap_or(&[]), to);
            }
            let elements = converted.as_flattened();
            loops.add_rows(&mut partials, first + k, Rows { elements, step: ABREAST, count, width });
        }
    }
    S::store(&loops.end_rows(&mut partials, lanes.len), out);
}

impl<R: Reduction<T> + Sync, T: Number> Loops<T> for R {
    fn start(&self) -> T {
        R::START
    }
    fn values(&self, lanes: &[T], len: usize, out: &mut [T]) {
        values::<R, T>(self, lanes, len, out);
    }
    fn add(&self, partials: &mut [T; PARTIALS], elements: &[T]) {
        add::<R, T>(self, partials, elements);
    }
    fn end(&self, partials: [T; PARTIALS], len: usize) -> T {
        end::<R, T>(partials, len)
    }
    fn add_rows(&self, partials: &mut Abreast<T>, first: usize, rows: Rows<'_, T>) {
        add_rows::<R, T>(self, partials, first, rows);
    }
    fn end_rows(&self, partials: &mut Abreast<T>, len: usize) -> [T; ABREAST] {
        end_rows::<R, T>(partials, len)
    }
}

for_each_level! {
    fn values<R: Reduction<T>, T: Number>(reduction: &R, lanes: &[T], len: usize, out: &mut [T]) -> () = values_body::<R, T>;
}

for_each_level! {
    fn add<R: Reduction<T>, T: Number>(reduction: &R, partials: &mut [T; PARTIALS], elements: &[T]) -> () = add_body::<R, T>;
}

for_each_level! {
    fn add_rows<R: Reduction<T>, T: Number>(reduction: &R, partials: &mut Abreast<T>, first: usize, rows: Rows<'_, T>) -> ()
        = add_rows_body::<R, T>;
}

#[inline(always)]
fn values_body<R: Reduction<T>, T: Number>(reduction: &R, lanes: &[T], len: usize, out: &mut [T]) {
    for (k, out) in out.iter_mut().enumerate() {
        *out = value(reduction, lanes.get(k * len..(k + 1) * len).unwrap_or(&[]));
    }
}

/// The value of a lane that is a slice.
#[inline(always)]
pub(super) fn value<R: Reduction<T>, T: Number>(reduction: &R, lane: &[T]) -> T {
    let mut partials = [R::START; PARTIALS];
    add_body(reduction, &mut partials, lane);
    end::<R, T>(partials, lane.len())
}

#[inline(always)]
fn add_body<R: Reduction<T>, T: Number>(reduction: &R, partials: &mut [T; PARTIALS], elements: &[T]) {
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

#[inline(always)]
fn add_rows_body<R: Reduction<T>, T: Number>(
    reduction: &R,
    partials: &mut Abreast<T>,
    first: usize,
    Rows { elements, step, count, width }: Rows<'_, T>,
) {
    for k in 0..count {
        let row = elements.get(k * step..k * step + width);
        let (Some(values), Some(row)) = (partials.get_mut((first + k) % PARTIALS), row) else { return };
        for (value, &element) in values.iter_mut().zip(row) {
            *value = R::join(*value, reduction.counts(element));
        }
    }
}

fn end_rows<R: Reduction<T>, T: Number>(partials: &mut Abreast<T>, len: usize) -> [T; ABREAST] {
    let mut width = PARTIALS / 2;
    while width > 0 {
        let (low, high) = partials.split_at_mut(width);
        for (low, high) in low.as_flattened_mut().iter_mut().zip(high.as_flattened()) {
            *low = R::join(*low, *high);
        }
        width /= 2;
    }
    let [mut values, ..] = *partials;
    for value in &mut values {
        *value = R::end(*value, len);
    }
    values
}
