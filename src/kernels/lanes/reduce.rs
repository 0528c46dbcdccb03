//! Reductions: a lane becomes a value while it is read.
//!
//! The element i of a lane goes to the partial value i mod 32, and these are joined as a tree at the end. So the order
//! depends on the length of the lane alone, and the loops are as wide as the processor.

use super::walk::Runs;
use super::{Lanes, Number, Stored};
use crate::kernels::cpu::for_each_level;
use crate::kernels::positions::{Dim, Offsets};
use crate::kernels::{Resources, Stop, Stopped, parallel};
use bytemuck::Zeroable;
use std::ops::Range;

/// How a lane of `T` becomes a value.
pub(crate) trait Reduction<T: Number> {
    /// What the elements are joined in.
    type Partial: Copy + Send + Sync;
    /// The value to start from: joined with another, it gives the other.
    const START: Self::Partial;
    /// The value of a lane without elements, before [`Reduction::end`].
    const EMPTY: Self::Partial = Self::START;

    /// What an element counts.
    #[inline(always)]
    fn counts(&self, element: T) -> T {
        element
    }
    /// Adds what an element counts.
    fn add(&self, value: Self::Partial, element: T) -> Self::Partial;
    /// Joins the values of two parts of a lane.
    fn join(a: Self::Partial, b: Self::Partial) -> Self::Partial;
    /// Makes the result of the value of a lane of `len` elements.
    fn end(value: Self::Partial, len: usize) -> T::Precise;
}

/// The loops of a reduction, compiled for each processor level. What walks over lanes calls these, and knows only the
/// types of elements, numbers and partial values.
pub(super) trait Loops<T: Number, P>: Sync {
    /// [`Reduction::START`]
    fn start(&self) -> P;
    /// Adds `len` elements to the partial values of each lane, the first to the first.
    fn add(&self, partials: &mut [[P; PARTIALS]], len: usize, elements: &[T]);
    /// The values of lanes of `len` elements that were added.
    fn end(&self, partials: &[[P; PARTIALS]], len: usize, out: &mut [T::Precise]);
    /// Adds rows, the first to the partial values with the number `first`.
    fn add_rows(&self, partials: &mut Abreast<P>, first: usize, rows: Rows<'_, T>);
    /// The values of lanes of `len` elements that were added as rows.
    fn end_rows(&self, partials: &mut Abreast<P>, len: usize) -> [T::Precise; ABREAST];
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
type Abreast<P> = [[P; ABREAST]; PARTIALS];

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

/// Number of elements that are added at a time where [`PARTIALS`] are too many.
const PART: usize = 8;

/// Number of elements that are converted or collected at a time.
pub(super) const BLOCK: usize = 16 * PARTIALS;

/// Number of lanes that are reduced together when they are one behind the other.
const TOGETHER: usize = 16;

/// Number of lanes that are reduced side by side.
const ABREAST: usize = 64;

/// Elements of a lane between two checks whether to stop: a multiple of all blocks.
pub(super) const BETWEEN_LOOKS: usize = 1 << 13;

/// The ranges of a lane of `len` elements, of which there is one at least; each but the first comes after a check whether
/// to stop. A loop over these is compiled for the level of its function, which a closure would not be.
#[inline(always)]
pub(super) fn between_looks(len: usize, stop: Option<&Stop>) -> Parts<'_> {
    Parts { next: Some(0), len, stop }
}

pub(super) struct Parts<'a> {
    next: Option<usize>,
    len: usize,
    stop: Option<&'a Stop>,
}

impl Iterator for Parts<'_> {
    type Item = Result<Range<usize>, Stopped>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let from = self.next?;
        let end = from + BETWEEN_LOOKS;
        self.next = (end < self.len).then_some(end);
        Some(if from > 0 { parallel::look(self.stop) } else { Ok(()) }.map(|()| from..self.len.min(end)))
    }
}

/// Writes the value of each lane to `out`.
pub(crate) fn reduce<R: Reduction<T> + Sync, S: Stored<T> + Stored<T::Precise>, T: Number>(
    reduction: &R,
    data: &[S],
    lanes: &Lanes,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    reduce_by::<S, T, R::Partial>(reduction, data, lanes, out, resources)
}

fn reduce_by<S: Stored<T> + Stored<T::Precise>, T: Number, P: Copy>(
    loops: &dyn Loops<T, P>,
    data: &[S],
    lanes: &Lanes,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let out = bytemuck::cast_slice_mut::<S, u8>(out);
    parallel::split_by(out, size_of::<S>(), lanes.len, resources, |first, out| {
        let out = bytemuck::cast_slice_mut::<u8, S>(out);
        if !lanes.contiguous() && lanes.abreast() > 1 && lanes.len > 0 {
            columns(loops, data, lanes, first, out, resources.stop)
        } else {
            rows(loops, data, lanes, first, out, resources.stop)
        }
    })
}

/// Lanes one by one.
fn rows<S: Stored<T> + Stored<T::Precise>, T: Number, P: Copy>(
    loops: &dyn Loops<T, P>,
    data: &[S],
    lanes: &Lanes,
    first: usize,
    out: &mut [S],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (len, mut values) = (lanes.len, [T::Precise::zeroed(); TOGETHER]);
    if lanes.contiguous()
        && len <= BETWEEN_LOOKS
        && let Some(data) = <S as Stored<T>>::direct(data)
    {
        for (k, out) in out.chunks_mut(TOGETHER).enumerate() {
            let mut partials = [[loops.start(); PARTIALS]; TOGETHER];
            let partials = partials.get_mut(..out.len()).unwrap_or(&mut []);
            loops.add(partials, len, data.get((first + k * TOGETHER) * len..).unwrap_or(&[]));
            loops.end(partials, len, &mut values);
            S::store(&values, out);
        }
        return Ok(());
    }
    let mut starts = Offsets::new(&lanes.kept, first);
    for out in out.chunks_exact_mut(1) {
        let [start] = starts.next();
        let lane = data.get(start..).unwrap_or(&[]);
        let value = if lanes.contiguous() {
            value_of(loops, lane.get(..len).unwrap_or(&[]), stop)?
        } else {
            let mut runs = Runs::new(lanes);
            value_of_runs(loops, std::iter::from_fn(|| lane.get(runs.next())), len, stop)?
        };
        S::store(&[value], out);
    }
    Ok(())
}

/// The value of a lane whose elements are neighbours.
pub(super) fn value_of<S: Stored<T>, T: Number, P: Copy>(
    loops: &dyn Loops<T, P>,
    lane: &[S],
    stop: Option<&Stop>,
) -> Result<T::Precise, Stopped> {
    let Some(numbers) = S::direct(lane) else {
        return value_of_runs(loops, std::iter::once(lane), lane.len(), stop);
    };
    let (mut partials, mut value) = ([[loops.start(); PARTIALS]], [T::Precise::zeroed()]);
    for at in between_looks(numbers.len(), stop) {
        let part = numbers.get(at?).unwrap_or(&[]);
        loops.add(&mut partials, part.len(), part);
    }
    loops.end(&partials, lane.len(), &mut value);
    let [value] = value;
    Ok(value)
}

/// The value of a lane of `len` elements, which are in runs.
fn value_of_runs<'a, S: Stored<T>, T: Number, P: Copy>(
    loops: &dyn Loops<T, P>,
    mut runs: impl Iterator<Item = &'a [S]>,
    len: usize,
    stop: Option<&Stop>,
) -> Result<T::Precise, Stopped> {
    let (mut partials, mut block, mut run) = ([[loops.start(); PARTIALS]], [T::ZERO; BLOCK], &[][..]);
    for at in between_looks(len, stop) {
        let at = at?;
        for left in at.clone().step_by(BLOCK).map(|from| at.end - from) {
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
            loops.add(&mut partials, part.len(), part);
        }
    }
    let mut value = [T::Precise::zeroed()];
    loops.end(&partials, len, &mut value);
    let [value] = value;
    Ok(value)
}

/// Lanes side by side: their elements at the same position are neighbours.
fn columns<S: Stored<T> + Stored<T::Precise>, T: Number, P: Copy>(
    loops: &dyn Loops<T, P>,
    data: &[S],
    lanes: &Lanes,
    first: usize,
    mut out: &mut [S],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let abreast = lanes.abreast();
    let mut groups = Offsets::new(lanes.kept.get(1..).unwrap_or(&[]), first / abreast);
    let mut before = first % abreast;
    while !out.is_empty() {
        let [start] = groups.next();
        let group = data.get(start..).unwrap_or(&[]);
        let (now, rest) = out.split_at_mut(out.len().min(abreast - before));
        for (k, out) in now.chunks_mut(ABREAST).enumerate() {
            values_abreast(loops, group.get(before + k * ABREAST..).unwrap_or(&[]), lanes, out, stop)?;
        }
        (out, before) = (rest, 0);
    }
    Ok(())
}

/// The values of at most [`ABREAST`] lanes that start side by side.
fn values_abreast<S: Stored<T> + Stored<T::Precise>, T: Number, P: Copy>(
    loops: &dyn Loops<T, P>,
    data: &[S],
    lanes: &Lanes,
    out: &mut [S],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let Some((&Dim { size, steps: [step] }, outer)) = lanes.along.split_first() else { return Ok(()) };
    let (mut partials, mut converted) = ([[loops.start(); ABREAST]; PARTIALS], [[T::ZERO; ABREAST]; PARTIALS]);
    let (mut starts, width) = (Offsets::new(outer, 0), out.len());
    let mut start = 0;
    for at in between_looks(lanes.len, stop) {
        let mut at = at?;
        while !at.is_empty() {
            // The rest of a run of rows.
            let row = at.start % size;
            if row == 0 {
                [start] = starts.next();
            }
            let (first, count) = (at.start, at.len().min(size - row));
            at.start += count;
            let data = data.get(start + row * step..).unwrap_or(&[]);
            if let Some(elements) = <S as Stored<T>>::direct(data) {
                loops.add_rows(&mut partials, first, Rows { elements, step, count, width });
                continue;
            }
            for k in (0..count).step_by(PARTIALS) {
                let count = (count - k).min(PARTIALS);
                for (row, to) in (k..k + count).zip(&mut converted) {
                    S::load(data.get(row * step..row * step + width).unwrap_or(&[]), to);
                }
                let elements = converted.as_flattened();
                loops.add_rows(&mut partials, first + k, Rows { elements, step: ABREAST, count, width });
            }
        }
    }
    S::store(&loops.end_rows(&mut partials, lanes.len), out);
    Ok(())
}

impl<R: Reduction<T> + Sync, T: Number> Loops<T, R::Partial> for R {
    fn start(&self) -> R::Partial {
        R::START
    }
    fn add(&self, partials: &mut [[R::Partial; PARTIALS]], len: usize, elements: &[T]) {
        add::<R, T>(self, partials, len, elements);
    }
    fn end(&self, partials: &[[R::Partial; PARTIALS]], len: usize, out: &mut [T::Precise]) {
        for (partials, out) in partials.iter().zip(out) {
            *out = end::<R, T>(*partials, len);
        }
    }
    fn add_rows(&self, partials: &mut Abreast<R::Partial>, first: usize, rows: Rows<'_, T>) {
        add_rows::<R, T>(self, partials, first, rows);
    }
    fn end_rows(&self, partials: &mut Abreast<R::Partial>, len: usize) -> [T::Precise; ABREAST] {
        end_rows::<R, T>(partials, len)
    }
}

for_each_level! {
    fn add<R: Reduction<T>, T: Number>(reduction: &R, partials: &mut [[R::Partial; PARTIALS]], len: usize, elements: &[T]) -> ()
        = add_body::<R, T>;
}

for_each_level! {
    fn add_rows<R: Reduction<T>, T: Number>(reduction: &R, partials: &mut Abreast<R::Partial>, first: usize, rows: Rows<'_, T>) -> ()
        = add_rows_body::<R, T>;
}

/// The value of a lane that is a slice.
#[inline(always)]
pub(super) fn value<R: Reduction<T>, T: Number>(
    reduction: &R,
    lane: &[T],
    stop: Option<&Stop>,
) -> Result<T::Precise, Stopped> {
    let mut partials = [R::START; PARTIALS];
    for at in between_looks(lane.len(), stop) {
        add_lane(reduction, &mut partials, lane.get(at?).unwrap_or(&[]));
    }
    Ok(end::<R, T>(partials, lane.len()))
}

#[inline(always)]
fn add_body<R: Reduction<T>, T: Number>(
    reduction: &R,
    partials: &mut [[R::Partial; PARTIALS]],
    len: usize,
    elements: &[T],
) {
    for (k, partials) in partials.iter_mut().enumerate() {
        add_lane(reduction, partials, elements.get(k * len..(k + 1) * len).unwrap_or(&[]));
    }
}

#[inline(always)]
fn add_lane<R: Reduction<T>, T: Number>(reduction: &R, partials: &mut [R::Partial; PARTIALS], elements: &[T]) {
    let (blocks, rest) = elements.as_chunks::<PARTIALS>();
    // A copy stays in registers.
    let mut values = *partials;
    for block in blocks {
        add_block(reduction, &mut values, block);
    }
    *partials = values;
    let (partials, last) = partials.split_at_mut(rest.len() / PART * PART);
    let (parts, rest) = rest.as_chunks::<PART>();
    for (partials, part) in partials.as_chunks_mut::<PART>().0.iter_mut().zip(parts) {
        add_block(reduction, partials, part);
    }
    for (value, &element) in last.iter_mut().zip(rest) {
        *value = reduction.add(*value, reduction.counts(element));
    }
}

#[inline(always)]
fn add_block<R: Reduction<T>, T: Number, const N: usize>(reduction: &R, values: &mut [R::Partial; N], block: &[T; N]) {
    // Two loops: one would be as narrow as its widest type.
    let mut counts = *block;
    for count in &mut counts {
        *count = reduction.counts(*count);
    }
    for (value, count) in values.iter_mut().zip(counts) {
        *value = reduction.add(*value, count);
    }
}

#[inline(always)]
fn end<R: Reduction<T>, T: Number>(partials: [R::Partial; PARTIALS], len: usize) -> T::Precise {
    R::end(if len == 0 { R::EMPTY } else { join::<R, T>(partials) }, len)
}

/// Joins partial values as a tree.
#[inline(always)]
pub(super) fn join<R: Reduction<T>, T: Number>(partials: [R::Partial; PARTIALS]) -> R::Partial {
    // Without this the loops before become as narrow as the end of the tree.
    let mut partials = std::hint::black_box(partials);
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
    partials: &mut Abreast<R::Partial>,
    first: usize,
    Rows { elements, step, count, width }: Rows<'_, T>,
) {
    for k in 0..count {
        let row = elements.get(k * step..k * step + width);
        let (Some(values), Some(row)) = (partials.get_mut((first + k) % PARTIALS), row) else { return };
        for (value, &element) in values.iter_mut().zip(row) {
            *value = reduction.add(*value, reduction.counts(element));
        }
    }
}

fn end_rows<R: Reduction<T>, T: Number>(partials: &mut Abreast<R::Partial>, len: usize) -> [T::Precise; ABREAST] {
    let mut width = PARTIALS / 2;
    while width > 0 {
        let (low, high) = partials.split_at_mut(width);
        for (low, high) in low.as_flattened_mut().iter_mut().zip(high.as_flattened()) {
            *low = R::join(*low, *high);
        }
        width /= 2;
    }
    let [values, ..] = *partials;
    values.map(|value| R::end(value, len))
}
