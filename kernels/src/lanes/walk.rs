//! Brings lanes as slices: as they are, or collected in scratch memory.

use super::reduce::{BETWEEN_LOOKS, TOGETHER, between_looks};
use super::short::{Short, map_short, measure_short};
use super::stored::{Elements, Storage};
use super::{Lanes, Number, Stored};
use crate::cpu::for_each_level;
use crate::lookout;
use crate::parallel::{self, Benches};
use crate::permute::turn;
use crate::positions::{Dim, Offsets};
use crate::{Lookout, Resources, Stop, Stopped};
use bytemuck::Pod;
use std::ops::Range;

/// A function from a lane to a value.
pub trait Measure<T>: Sync {
    type Value: Pod;

    /// The values of at most [`TOGETHER`] lanes of `len` elements, one behind the other.
    fn each(&self, len: usize, lanes: &[T], values: &mut [Self::Value], stop: Option<&Stop>) -> Result<(), Stopped>;

    /// As [`Measure::each`], of any number of lanes side by side, whose next elements are `step` further on; `None` if they
    /// have to be one behind the other.
    fn across(
        &self,
        _step: usize,
        _len: usize,
        _lanes: &[T],
        _values: &mut [Self::Value],
        _stop: Option<&Stop>,
    ) -> Option<Result<(), Stopped>> {
        None
    }
}

/// A function from a lane to one of the same length.
pub trait Map<T>: Sync {
    /// Fills lanes of `len` elements, of which there is one at least, from those of `lanes`; they are one behind the other.
    fn each(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>;

    /// As [`Map::each`], of `abreast` lanes side by side, then as many more; `None` if they have to be one behind the other.
    fn across(
        &self,
        _abreast: usize,
        _len: usize,
        _lanes: &[T],
        _to: &mut [T],
        _stop: Option<&Stop>,
    ) -> Option<Result<(), Stopped>> {
        None
    }
}

/// As [`Map`], for at most [`TOGETHER`] lanes; the loop over them is compiled with it for each processor level.
pub trait MapSome<T>: Sync {
    fn map(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>;
}

/// Maximum number of lanes that are collected at a time, so that memory is read in runs.
pub(super) const GROUP: usize = TOGETHER;

/// Elements of a group, unless a single lane has more.
const GROUP_ELEMENTS: usize = 1 << 18;

impl Lanes {
    /// Maximum number of lanes that are collected at a time.
    pub(super) fn group(&self) -> usize {
        if self.contiguous() { 1 } else { self.abreast().min(GROUP).min(GROUP_ELEMENTS / self.len.max(1)).max(1) }
    }

    /// Elements of scratch memory that each thread needs to collect `sides` groups of lanes.
    pub(super) fn bench(&self, is_direct: bool, sides: usize) -> usize {
        if self.contiguous() && is_direct { 0 } else { self.len.saturating_mul(self.group() * sides) }
    }

    /// Elements of scratch memory that [`measure`] needs.
    pub fn scratch_to_measure<S: Stored<T>, T>(&self, threads: usize) -> usize {
        self.bench(S::DIRECT, 1).saturating_mul(threads.min(self.count))
    }

    /// Elements of scratch memory that [`map`] needs.
    pub fn scratch_to_map<S: Stored<T>, T>(&self, threads: usize) -> usize {
        self.bench(S::DIRECT, 2).saturating_mul(threads.min(self.count))
    }
}

/// Writes the measure of each lane to `out`.
#[inline]
pub fn measure<M: Measure<T>, S: Stored<T>, O: Stored<M::Value>, T: Number>(
    measure: &M,
    data: &[S],
    lanes: &Lanes,
    scratch: &mut [T],
    out: &mut [O],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let out = bytemuck::cast_slice_mut(out);
    measure_by(measure, Elements::of(data), lanes, scratch, Storage::of::<O>(), out, resources)
}

fn measure_by<T: Number, V: Pod>(
    measure: &dyn Measure<T, Value = V>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    scratch: &mut [T],
    to: Storage<V>,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let benches = Benches::new(scratch, lanes.bench(data.is_direct(), 1));
    let unit = lanes.unit(resources.threads);
    parallel::split_by(out, unit * to.size, lanes.len, resources, |first, out| {
        benches.with(|bench| measure_part(measure, data, lanes, first * unit, bench, to, out, resources.stop))
    })
}

/// Fills the lanes of `out` from those of `data`.
#[inline]
pub fn map<M: Map<T>, S: Stored<T>, T: Number>(
    map: &M,
    data: &[S],
    lanes: &Lanes,
    scratch: &mut [T],
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    map_by(map, Elements::of(data), lanes, scratch, Storage::of::<S>(), bytemuck::cast_slice_mut(out), resources)
}

fn map_by<T: Number>(
    map: &dyn Map<T>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    scratch: &mut [T],
    to: Storage<T>,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    let benches = Benches::new(scratch, lanes.bench(to.is_direct, 2));
    // Elements that have all that is in some lanes and nothing else.
    let block = if lanes.contiguous() {
        lanes.len
    } else {
        lanes.along.last().map_or(1, |&Dim { size, steps: [step] }| size * step)
    };
    let kept = lanes.kept.iter().copied().filter(|&Dim { steps: [step], .. }| step < block).collect();
    let inner =
        Lanes { count: block / lanes.len, len: lanes.len, kept, along: lanes.along.clone(), inside: lanes.inside };
    let short = Short::of(lanes).filter(|_| !lanes.contiguous() || !data.is_direct());
    parallel::split(out, to.size * block, resources, |first, out| {
        if let Some(short) = short {
            return map_short(map, data.from(first * block), short, to, out, resources.stop);
        }
        benches.with(|bench| map_part(map, data.from(first * block), &inner, bench, to, out, resources))
    })
}

for_each_level! {
    /// Maps lanes of `len` elements, one behind the other.
    pub(super) fn map_each<M: MapSome<T>, T: Number>(map: &M, len: usize, from: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>
        = map_each_body::<M, T>;
}

/// Elements of lanes that are mapped together, unless a single lane has more.
const SOME_ELEMENTS: usize = 1 << 12;

#[inline(always)]
fn map_each_body<M: MapSome<T>, T: Number>(
    map: &M,
    len: usize,
    from: &[T],
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let some = len * (SOME_ELEMENTS / len).clamp(1, TOGETHER);
    // A closure would not be compiled for the level.
    for (from, to) in from.chunks(some).zip(to.chunks_mut(some)) {
        map.map(len, from, to, stop)?;
    }
    Ok(())
}

#[expect(clippy::too_many_arguments)]
fn measure_part<T: Number, V: Pod>(
    measure: &dyn Measure<T, Value = V>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    first: usize,
    bench: &mut [T],
    to: Storage<V>,
    mut out: &mut [u8],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (len, mut values) = (lanes.len, [V::zeroed(); GROUP]);
    if lanes.contiguous()
        && let Some(data) = data.direct()
    {
        for (k, out) in out.chunks_mut(GROUP * to.size).enumerate() {
            let values = values.get_mut(..out.len() / to.size).unwrap_or(&mut []);
            let start = (first + k * GROUP) * len;
            measure.each(len, data.get(start..start + values.len() * len).unwrap_or(&[]), values, stop)?;
            to.store(values, out);
        }
        return Ok(());
    }
    if let Some(short) = Short::of(lanes) {
        return measure_short(measure, data, short, first, to, out, stop);
    }
    if let Some(outcome) = measure_across(measure, data, lanes, first, to, out, stop) {
        return outcome;
    }
    let mut groups = Groups::new(lanes, first, out.len() / to.size);
    while let Some((start, count)) = groups.next() {
        let from = bench.get_mut(..count * len).ok_or(Stopped::OutOfRange)?;
        collect(data.from(start), lanes, count, from, stop)?;
        let values = values.get_mut(..count).ok_or(Stopped::OutOfRange)?;
        measure.each(len, from, values, stop)?;
        let (now, rest) = out.split_at_mut_checked(count * to.size).ok_or(Stopped::OutOfRange)?;
        to.store(values, now);
        out = rest;
    }
    Ok(())
}

/// As [`measure_part`], if the lanes and their values can stay where they are.
fn measure_across<T: Number, V: Pod>(
    measure: &dyn Measure<T, Value = V>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    first: usize,
    to: Storage<V>,
    out: &mut [u8],
    stop: Option<&Stop>,
) -> Option<Result<(), Stopped>> {
    let ([Dim { steps: [step], .. }], Some(data), abreast) = (&*lanes.along, data.direct(), lanes.abreast()) else {
        return None;
    };
    if abreast < 2 {
        return None;
    }
    let (mut out, mut before) = (to.direct_mut(out)?, first % abreast);
    let mut rows = Offsets::new(lanes.kept.get(1..)?, first / abreast);
    while !out.is_empty() {
        let [start] = rows.next();
        let (now, rest) = out.split_at_mut(out.len().min(abreast - before));
        if let Err(why) = measure.across(*step, lanes.len, data.get(start + before..).unwrap_or(&[]), now, stop)? {
            return Some(Err(why));
        }
        (out, before) = (rest, 0);
    }
    Some(Ok(()))
}

/// `lanes` are those of a block.
fn map_part<T: Number>(
    map: &dyn Map<T>,
    data: Elements<'_, T>,
    lanes: &Lanes,
    bench: &mut [T],
    to: Storage<T>,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (len, block) = (lanes.len, lanes.len * lanes.count);
    if lanes.contiguous()
        && let (Some(data), Some(out)) = (data.direct(), to.direct_mut(out))
        && let Some(data) = data.get(..out.len())
    {
        return map.each(len, data, out, resources.stop);
    }
    if let ([Dim { steps: [abreast], .. }], Some(data)) = (&*lanes.along, data.direct())
        && let Some(out) = to.direct_mut(out)
        && let Some(data) = data.get(..out.len())
        && let Some(outcome) = map.across(*abreast, len, data, out, resources.stop)
    {
        return outcome;
    }
    let mut done = 0;
    for (k, out) in out.chunks_exact_mut(block * to.size).enumerate() {
        let data = data.range(k * block..(k + 1) * block);
        let mut groups = Groups::new(lanes, 0, lanes.count);
        while let Some((start, count)) = groups.next() {
            let elements = count * len;
            let (from, bench) = bench.split_at_mut_checked(elements).ok_or(Stopped::OutOfRange)?;
            let results = bench.get_mut(..elements).ok_or(Stopped::OutOfRange)?;
            collect(data.from(start), lanes, count, from, resources.stop)?;
            map.each(len, from, results, resources.stop)?;
            distribute(results, lanes, count, to, out.get_mut(start * to.size..).unwrap_or(&mut []), resources.stop)?;
            done += elements;
            if done > BETWEEN_LOOKS {
                lookout::look(resources.stop)?;
                done = 0;
            }
        }
    }
    Ok(())
}

/// Iterates over groups of lanes: the start of the first, and how many are side by side there.
pub(super) struct Groups<'a> {
    starts: Offsets<'a, 1>,
    /// Lanes of a row that are side by side, and how many of them were given.
    abreast: usize,
    given: usize,
    row: usize,
    group: usize,
    left: usize,
}

impl<'a> Groups<'a> {
    pub(super) fn new(lanes: &'a Lanes, first: usize, count: usize) -> Groups<'a> {
        let group = lanes.group();
        let (abreast, outer) = if group > 1 { (lanes.abreast(), lanes.kept.get(1..)) } else { (1, lanes.kept.get(..)) };
        let mut starts = Offsets::new(outer.unwrap_or(&[]), first / abreast);
        let [row] = starts.next();
        Groups { starts, abreast, given: first % abreast, row, group, left: count }
    }

    pub(super) fn next(&mut self) -> Option<(usize, usize)> {
        if self.left == 0 {
            return None;
        }
        if self.given == self.abreast {
            ([self.row], self.given) = (self.starts.next(), 0);
        }
        let count = self.group.min(self.abreast - self.given).min(self.left);
        let start = self.row + self.given;
        self.given += count;
        self.left -= count;
        Some((start, count))
    }
}

/// Elements of a tile: rows of those that a group of lanes have at a position.
const TILE: usize = GROUP * GROUP;

/// Collects `count` lanes that start side by side at the first element of `from`.
pub(super) fn collect<T: Number>(
    from: Elements<'_, T>,
    lanes: &Lanes,
    count: usize,
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    if count == 1 {
        let mut runs = Runs::new(lanes);
        return runs.each(lanes.len, stop, |run, at| from.range(run).load(to.get_mut(at).unwrap_or(&mut [])));
    }
    let mut rows = Offsets::new(&lanes.along, 0);
    let (mut tile, mut lookout) = ([T::ZERO; TILE], Lookout::new(stop));
    for first in (0..lanes.len).step_by(GROUP) {
        let some = GROUP.min(lanes.len - first);
        for row in tile.chunks_exact_mut(count).take(some) {
            let [at] = rows.next();
            from.range(at..at + count).load(row);
        }
        turn(&tile, count, to.get_mut(first..).unwrap_or(&mut []), lanes.len, count, some, &mut lookout)?;
    }
    Ok(())
}

/// The opposite of [`collect`].
fn distribute<T: Number>(
    from: &[T],
    lanes: &Lanes,
    count: usize,
    format: Storage<T>,
    to: &mut [u8],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let mut store = |from: &[T], at: usize, count: usize| {
        let (start, end) = (at * format.size, (at + count) * format.size);
        format.store(from, to.get_mut(start..end).unwrap_or(&mut []));
    };
    if count == 1 {
        let mut runs = Runs::new(lanes);
        return runs.each(lanes.len, stop, |run, at| store(from.get(at).unwrap_or(&[]), run.start, run.len()));
    }
    let mut rows = Offsets::new(&lanes.along, 0);
    let (mut tile, mut lookout) = ([T::ZERO; TILE], Lookout::new(stop));
    for first in (0..lanes.len).step_by(GROUP) {
        let some = GROUP.min(lanes.len - first);
        turn(from.get(first..).unwrap_or(&[]), lanes.len, &mut tile, count, some, count, &mut lookout)?;
        for row in tile.chunks_exact(count).take(some) {
            let [at] = rows.next();
            store(row, at, count);
        }
    }
    Ok(())
}

/// The ranges that the elements of a lane are at, from its first one on.
pub(super) struct Runs<'a> {
    starts: Offsets<'a, 1>,
    pub(super) len: usize,
}

impl<'a> Runs<'a> {
    #[inline(always)]
    pub(super) fn new(lanes: &'a Lanes) -> Runs<'a> {
        match lanes.along.split_first() {
            Some((&Dim { size, steps: [1] }, outer)) => Runs { starts: Offsets::new(outer, 0), len: size.max(1) },
            _ => Runs { starts: Offsets::new(&lanes.along, 0), len: 1 },
        }
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Range<usize> {
        let [start] = self.starts.next();
        start..start + self.len
    }

    /// Calls `work` with parts of the runs of a lane of `len` elements, and which elements of the lane these are.
    fn each(
        &mut self,
        len: usize,
        stop: Option<&Stop>,
        mut work: impl FnMut(Range<usize>, Range<usize>),
    ) -> Result<(), Stopped> {
        let mut run = 0..0;
        for at in between_looks(len, stop) {
            let mut at = at?;
            while !at.is_empty() {
                if run.is_empty() {
                    run = self.next();
                }
                let count = run.len().min(at.len());
                work(run.start..run.start + count, at.start..at.start + count);
                (run.start, at.start) = (run.start + count, at.start + count);
            }
        }
        Ok(())
    }
}
