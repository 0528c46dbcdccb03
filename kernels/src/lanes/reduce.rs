//! Reductions: a lane becomes a value while it is read, by a fold ([`super::fold`]).
//!
//! What walks over lanes is compiled for a type of numbers and one of partial values.

use super::fold::{ABREAST, FEW, Fold, Loops, LoopsOfRows, MANY, NARROW, PARTIALS, Rows, join_lanes, join_rows};
use super::short::{ROOM, SHORT, Short};
use super::stored::{Elements, Storage};
use super::sums::Partial;
use super::walk::Runs;
use super::{Lanes, Number, Stored};
use crate::cpu::for_each_level;
use crate::permute::turn;
use crate::positions::{Dim, Offsets, innermost};
use crate::{Lookout, Resources, Stop, Stopped, lookout, parallel};
use bytemuck::Zeroable;
use std::ops::Range;

/// How a lane of `T` becomes a value.
pub trait Reduction<T: Number>: Sync {
    /// Reductions that differ only in the end share this, and its loops.
    type Fold: Fold<T>;
    /// The value of a lane without elements, before [`Reduction::end`].
    const EMPTY: PartialOf<Self, T> = PartialOf::<Self, T>::START;

    fn fold(&self) -> Self::Fold;
    /// Makes the result of the value of a lane of `len` elements.
    fn end(&self, value: PartialOf<Self, T>, len: usize) -> T::Precise;
}

pub(super) type PartialOf<R, T> = <<R as Reduction<T>>::Fold as Fold<T>>::Partial;

/// A reduction for what walks over lanes.
struct Reducer<'a, T: Number, P> {
    loops: &'a dyn Loops<T, P>,
    ends: &'a dyn Ends<T, P>,
}

/// What a reduction does at the end.
trait Ends<T: Number, P>: Sync {
    /// Makes the results of the values of lanes of this many elements.
    fn end(&self, values: &[P], len: usize, out: &mut [T::Precise]);
}

impl<R: Reduction<T>, T: Number> Ends<T, PartialOf<R, T>> for R {
    fn end(&self, values: &[PartialOf<R, T>], len: usize, out: &mut [T::Precise]) {
        end_all::<T, R>(self, values, len, out);
    }
}

for_each_level! {
    /// Pairs of numbers and logarithms have fused steps, which are functions at other levels.
    fn end_all<T: Number, R: Reduction<T>>(reduction: &R, values: &[PartialOf<R, T>], len: usize, out: &mut [T::Precise]) -> () = end_all_body::<T, R>;
}

#[inline(always)]
fn end_all_body<T: Number, R: Reduction<T>>(
    reduction: &R,
    values: &[PartialOf<R, T>],
    len: usize,
    out: &mut [T::Precise],
) {
    for (value, out) in values.iter().zip(out) {
        *out = reduction.end(if len == 0 { R::EMPTY } else { *value }, len);
    }
}

/// A reduction of each number type.
pub trait ReductionOfAll:
    Reduction<f32>
    + Reduction<f64>
    + Reduction<i32>
    + Reduction<i64>
    + Reduction<u32>
    + Reduction<u64>
    + Default
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
}

/// Number of elements that are converted or collected at a time.
pub(super) const BLOCK: usize = 16 * PARTIALS;

/// Number of lanes that are reduced together when they are one behind the other.
pub(super) const TOGETHER: usize = 16;

/// Elements of a lane between two checks whether to stop: a multiple of all blocks.
pub(super) const BETWEEN_LOOKS: usize = 1 << 15;

/// The ranges of a lane of `len` elements, of which there is one at least; each but the first comes after a check whether
/// to stop. A loop over these is compiled for the level of its function, which a closure would not be.
#[inline(always)]
pub(super) fn between_looks(len: usize, stop: Option<&Stop>) -> Parts<'_> {
    looking_every(BETWEEN_LOOKS, len, stop)
}

/// As [`between_looks`], with ranges of `most` elements.
#[inline(always)]
pub(super) fn looking_every(most: usize, len: usize, stop: Option<&Stop>) -> Parts<'_> {
    Parts { next: Some(0), most, len, stop }
}

pub(super) struct Parts<'a> {
    next: Option<usize>,
    most: usize,
    len: usize,
    stop: Option<&'a Stop>,
}

impl Iterator for Parts<'_> {
    type Item = Result<Range<usize>, Stopped>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let from = self.next?;
        let end = from + self.most;
        self.next = (end < self.len).then_some(end);
        Some(if from > 0 { lookout::look(self.stop) } else { Ok(()) }.map(|()| from..self.len.min(end)))
    }
}

/// Writes the value of each lane to `out`.
#[inline]
pub fn reduce<R: Reduction<T>, S: Stored<T> + Stored<T::Precise>, T: Number>(
    reduction: &R,
    data: &[S],
    lanes: &Lanes,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    reduce_to::<R, S, S, T>(reduction, data, lanes, out, resources)
}

/// As [`reduce`], to elements of another type.
#[inline]
pub fn reduce_to<R: Reduction<T>, S: Stored<T>, O: Stored<T::Precise>, T: Number>(
    reduction: &R,
    data: &[S],
    lanes: &Lanes,
    out: &mut [O],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let fold = reduction.fold();
    let (reducer, out) = (Reducer { loops: &fold, ends: reduction }, bytemuck::cast_slice_mut(out));
    reduce_by(&reducer, &fold, Elements::of(data), lanes, Storage::of::<O>(), out, resources)
}

/// The values of at most [`TOGETHER`] lanes of `len` elements, one behind the other.
pub(super) fn values<R: Reduction<T>, T: Number>(
    reduction: &R,
    len: usize,
    lanes: &[T],
    values: &mut [T::Precise],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let fold = reduction.fold();
    if (1..=SHORT).contains(&len) {
        let (mut rows, mut partials) = ([T::ZERO; SHORT * TOGETHER], [PartialOf::<R, T>::START; TOGETHER]);
        turn(lanes, len, &mut rows, TOGETHER, len, values.len(), &mut Lookout::new(stop))?;
        fold.values_of_rows(&mut partials, Rows::dense(&rows, len, TOGETHER));
        end_all::<T, R>(reduction, &partials, len, values);
        return Ok(());
    }
    values_of(&Reducer { loops: &fold, ends: reduction }, len, Elements::of::<T>(lanes), values, stop)
}

/// The value of a lane of `len` elements.
pub(super) fn value<R: Reduction<T>, T: Number>(
    reduction: &R,
    len: usize,
    lane: Elements<'_, T>,
    stop: Option<&Stop>,
) -> Result<T::Precise, Stopped> {
    let (fold, mut value) = (reduction.fold(), [T::Precise::zeroed()]);
    values_of(&Reducer { loops: &fold, ends: reduction }, len, lane, &mut value, stop)?;
    let [value] = value;
    Ok(value)
}

fn reduce_by<T: Number, P: Partial>(
    reducer: &Reducer<'_, T, P>,
    loops: &dyn LoopsOfRows<T, P>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    to: Storage<T::Precise>,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    // Lanes of single elements are side by side as they are.
    if let Some(short) = Short::of(lanes).filter(|short| short.len > 1) {
        let together = short.together();
        return parallel::split_by(out, together * to.size, lanes.len, resources, |first, out| {
            let data = data.from(first * together * lanes.len);
            short_lanes(reducer, loops, data, short, to, out, resources.stop)
        });
    }
    // Large values, and elements that are converted, have room near the processor for fewer lanes; short ones need none.
    let many = lanes.len > FEW && lanes.abreast() > ABREAST && size_of::<P>() <= size_of::<f64>() && data.is_direct();
    let unit = lanes.unit_up_to(if many { MANY } else { ABREAST }, resources.threads);
    parallel::split_by(out, unit * to.size, lanes.len, resources, |first, out| {
        let first = first * unit;
        if lanes.abreast() > 1 && lanes.len > 0 {
            let mut columns =
                |partials: &mut [P]| columns(reducer, loops, data, lanes, first, to, out, partials, resources.stop);
            if many { columns(&mut [P::START; PARTIALS * MANY]) } else { columns(&mut [P::START; PARTIALS * ABREAST]) }
        } else {
            rows(reducer, data, lanes, first, to, out, resources.stop)
        }
    })
}

/// Short lanes, many of them side by side.
fn short_lanes<T: Number, P: Partial>(
    reducer: &Reducer<'_, T, P>,
    loops: &dyn LoopsOfRows<T, P>,
    data: Elements<'_, T>,
    short: Short,
    to: Storage<T::Precise>,
    out: &mut [u8],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (mut few, mut many, mut lookout) = ([T::ZERO; ROOM], [T::ZERO; ROOM], Lookout::new(stop));
    let (mut values, mut results) = ([P::START; ABREAST], [T::Precise::zeroed(); ABREAST]);
    let elements = short.together() * short.len;
    for (k, out) in out.chunks_mut(short.together() * to.size).enumerate() {
        let (first, count) = (k * elements, out.len() / to.size);
        data.range(first..first + count * short.len).load(&mut few);
        short.bring(&mut few, &mut many, count, false, &mut lookout)?;
        let width = Short::width(count);
        let values = values.get_mut(..width).ok_or(Stopped::Misfit)?;
        loops.values_of_rows(values, Rows::dense(&many, short.len, width));
        let results = results.get_mut(..count).ok_or(Stopped::Misfit)?;
        reducer.ends.end(values, short.len, results);
        to.store(results, out);
    }
    Ok(())
}

/// Lanes that are contiguous, or in runs.
fn rows<T: Number, P: Partial>(
    reducer: &Reducer<'_, T, P>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    first: usize,
    to: Storage<T::Precise>,
    out: &mut [u8],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (len, mut values) = (lanes.len, [T::Precise::zeroed(); TOGETHER]);
    if lanes.contiguous() {
        for (k, out) in out.chunks_mut(TOGETHER * to.size).enumerate() {
            let values = values.get_mut(..out.len() / to.size).unwrap_or(&mut []);
            values_of(reducer, len, data.from((first + k * TOGETHER) * len), values, stop)?;
            to.store(values, out);
        }
        return Ok(());
    }
    let mut starts = Offsets::new(&lanes.kept, first);
    let [value, ..] = &mut values;
    for out in out.chunks_exact_mut(to.size) {
        let ([start], mut runs) = (starts.next(), Runs::new(lanes));
        value_of_runs(reducer, data.from(start), || runs.next(), len, value, stop)?;
        to.store(std::slice::from_ref(value), out);
    }
    Ok(())
}

/// The values of at most [`TOGETHER`] lanes of `len` elements, one behind the other.
fn values_of<T: Number, P: Partial>(
    reducer: &Reducer<'_, T, P>,
    len: usize,
    lanes: Elements<'_, T>,
    values: &mut [T::Precise],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let Some(numbers) = lanes.direct() else {
        return values
            .iter_mut()
            .enumerate()
            .try_for_each(|(k, value)| value_of_runs(reducer, lanes.from(k * len), || 0..len, len, value, stop));
    };
    if len <= BETWEEN_LOOKS && values.len() > 1 {
        let mut partials = [P::START; PARTIALS * TOGETHER];
        let partials = partials.as_chunks_mut().0.get_mut(..values.len()).unwrap_or(&mut []);
        reducer.loops.add(partials, len, numbers);
        reducer.end(partials, len, values);
        return Ok(());
    }
    for (k, value) in values.iter_mut().enumerate() {
        let (lane, mut partials) = (numbers.get(k * len..).unwrap_or(&[]), [[P::START; PARTIALS]]);
        for at in between_looks(len, stop) {
            let part = lane.get(at?).unwrap_or(&[]);
            reducer.loops.add(&mut partials, part.len(), part);
        }
        reducer.end(&mut partials, len, std::slice::from_mut(value));
    }
    Ok(())
}

/// The value of a lane of `len` elements, which are in runs.
fn value_of_runs<T: Number, P: Partial>(
    reducer: &Reducer<'_, T, P>,
    lane: Elements<'_, T>,
    mut runs: impl FnMut() -> Range<usize>,
    len: usize,
    value: &mut T::Precise,
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (mut partials, mut block, mut run) = ([[P::START; PARTIALS]], [T::ZERO; BLOCK], 0..0);
    let direct = lane.direct();
    for at in between_looks(len, stop) {
        let mut left = at?.len();
        while left > 0 {
            if run.is_empty() {
                run = runs();
            }
            // A long run is added where it stands.
            let most = run.len().min(left) / PARTIALS * PARTIALS;
            if let (BLOCK.., Some(lane)) = (most, direct) {
                reducer.loops.add(&mut partials, most, lane.get(run.start..run.start + most).unwrap_or(&[]));
                (left, run.start) = (left - most, run.start + most);
                continue;
            }
            let part = block.get_mut(..left.min(BLOCK)).unwrap_or(&mut []);
            let mut filled = 0;
            while let Some(to) = part.get_mut(filled..).filter(|to| !to.is_empty()) {
                if run.is_empty() {
                    run = runs();
                }
                if run.is_empty() {
                    break;
                }
                let now = run.start..run.end.min(run.start + to.len());
                match direct {
                    Some(lane) => to.iter_mut().zip(lane.get(now.clone()).unwrap_or(&[])).for_each(|(to, x)| *to = *x),
                    None => lane.range(now.clone()).load(to),
                }
                (filled, run.start) = (filled + now.len(), now.end);
            }
            reducer.loops.add(&mut partials, part.len(), part);
            left -= part.len();
        }
    }
    reducer.end(&mut partials, len, std::slice::from_mut(value));
    Ok(())
}

/// Lanes side by side: their elements at the same position are neighbours. There is room for partial values of some lanes.
#[expect(clippy::too_many_arguments)]
fn columns<T: Number, P: Partial>(
    reducer: &Reducer<'_, T, P>,
    loops: &dyn LoopsOfRows<T, P>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    first: usize,
    to: Storage<T::Precise>,
    mut out: &mut [u8],
    partials: &mut [P],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (abreast, most) = (lanes.abreast(), partials.len() / PARTIALS);
    let mut groups = Offsets::new(lanes.kept.get(1..).unwrap_or(&[]), first / abreast);
    let mut before = first % abreast;
    let mut values = [T::Precise::zeroed(); MANY];
    while !out.is_empty() {
        let [start] = groups.next();
        let (now, rest) = out.split_at_mut(out.len().min((abreast - before) * to.size));
        for (k, out) in now.chunks_mut(most * to.size).enumerate() {
            let width = out.len() / to.size;
            let values = values.get_mut(..width).unwrap_or(&mut []);
            let partials = partials.get_mut(..PARTIALS * width).unwrap_or(&mut []);
            add_abreast(loops, data.from(start + before + k * most), lanes, partials, stop)?;
            reducer.ends.end(partials, lanes.len, values);
            to.store(values, out);
        }
        (out, before) = (rest, 0);
    }
    Ok(())
}

/// Reduces lanes that start side by side: their values are the first of the partial ones.
fn add_abreast<T: Number, P: Partial>(
    loops: &dyn LoopsOfRows<T, P>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    partials: &mut [P],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (Dim { size, steps: [step] }, outer) = (innermost(&lanes.along), lanes.along.get(1..).unwrap_or(&[]));
    let (mut starts, width) = (Offsets::new(outer, 0), partials.len() / PARTIALS);
    if let (true, Some(elements)) = (size == lanes.len && size <= FEW && width.is_multiple_of(NARROW), data.direct()) {
        let values = partials.get_mut(..width).unwrap_or(&mut []);
        loops.values_of_rows(values, Rows { elements, step, count: size, width });
        return Ok(());
    }
    let rows = lanes.len.min(PARTIALS);
    partials.get_mut(..rows * width).unwrap_or(&mut []).fill(P::START);
    let mut start = 0;
    for at in looking_every(BETWEEN_LOOKS / width.div_ceil(ABREAST), lanes.len, stop) {
        let mut at = at?;
        while !at.is_empty() {
            // The rest of a run of rows.
            let row = at.start % size;
            if row == 0 {
                [start] = starts.next();
            }
            let (first, count) = (at.start, at.len().min(size - row));
            at.start += count;
            let data = data.from(start + row * step);
            if let Some(elements) = data.direct() {
                loops.add_rows(partials, first, Rows { elements, step, count, width });
                continue;
            }
            let mut converted = [T::ZERO; PARTIALS * ABREAST];
            for k in (0..count).step_by(PARTIALS) {
                let count = (count - k).min(PARTIALS);
                for (row, to) in (k..k + count).zip(converted.as_chunks_mut::<ABREAST>().0) {
                    data.range(row * step..row * step + width).load(to);
                }
                let rows = Rows { elements: &converted, step: ABREAST, count, width };
                loops.add_rows(partials, first + k, rows);
            }
        }
    }
    join_rows(partials, lanes.len);
    Ok(())
}

impl<T: Number, P: Partial> Reducer<'_, T, P> {
    /// The results of at most [`TOGETHER`] lanes of `len` elements that were added.
    fn end(&self, partials: &mut [[P; PARTIALS]], len: usize, values: &mut [T::Precise]) {
        let mut joined = [P::START; TOGETHER];
        join_lanes(partials);
        for (joined, [first, ..]) in joined.iter_mut().zip(partials) {
            *joined = *first;
        }
        self.ends.end(&joined, len, values);
    }
}
