//! Brings lanes as slices: as they are, or collected in scratch memory.

use super::reduce::{BETWEEN_LOOKS, between_looks};
use super::{Lanes, Number, Stored};
use crate::kernels::cpu::for_each_level;
use crate::kernels::positions::{Dim, Offsets};
use crate::kernels::{Resources, Stop, Stopped, parallel};
use bytemuck::Pod;
use std::ops::Range;
use std::sync::Mutex;

/// A function from a lane to a value.
pub(crate) trait Measure<T>: Sync {
    type Value: Pod;
    fn of(&self, lane: &[T], stop: Option<&Stop>) -> Result<Self::Value, Stopped>;
}

/// A function from a lane to one of the same length, which it fills.
pub(crate) trait Map<T>: Sync {
    fn map(&self, lane: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>;
}

/// Fills a slice from lanes that are one behind the other.
type OfEach<'a, T, V> = dyn Fn(&[T], &mut [V]) -> Result<(), Stopped> + Sync + 'a;

/// Maximum number of lanes that are collected at a time, so that memory is read in runs.
const GROUP: usize = 16;

/// Elements of a group, unless a single lane has more.
const GROUP_ELEMENTS: usize = 1 << 18;

impl Lanes {
    /// Maximum number of lanes that are collected at a time.
    fn group(&self) -> usize {
        if self.contiguous() { 1 } else { self.abreast().min(GROUP).min(GROUP_ELEMENTS / self.len.max(1)).max(1) }
    }

    /// Elements of scratch memory that each thread needs to collect `sides` groups of lanes.
    fn bench<S: Stored<T>, T>(&self, sides: usize) -> usize {
        let as_they_are = self.contiguous() && S::direct(&[]).is_some();
        if as_they_are { 0 } else { self.len.saturating_mul(self.group() * sides) }
    }

    /// Elements of scratch memory that [`measure`] needs.
    pub(crate) fn scratch_to_measure<S: Stored<T>, T>(&self, threads: usize) -> usize {
        self.bench::<S, T>(1).saturating_mul(threads.min(self.count))
    }

    /// Elements of scratch memory that [`map`] needs.
    pub(crate) fn scratch_to_map<S: Stored<T>, T>(&self, threads: usize) -> usize {
        self.bench::<S, T>(2).saturating_mul(threads.min(self.count))
    }
}

/// Writes the measure of each lane to `out`.
pub(crate) fn measure<M: Measure<T>, S: Stored<T>, O: Stored<M::Value>, T: Number>(
    measure: &M,
    data: &[S],
    lanes: &Lanes,
    scratch: &mut [T],
    out: &mut [O],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let of_each =
        |from: &[T], values: &mut [M::Value]| measure_each::<M, T>(measure, lanes.len, from, values, resources.stop);
    measure_by(&of_each, data, lanes, scratch, out, resources)
}

fn measure_by<S: Stored<T>, O: Stored<V>, T: Number, V: Pod>(
    measure: &OfEach<'_, T, V>,
    data: &[S],
    lanes: &Lanes,
    scratch: &mut [T],
    out: &mut [O],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let benches = Benches::new(scratch, lanes.bench::<S, T>(1));
    let out = bytemuck::cast_slice_mut::<O, u8>(out);
    parallel::split_by(out, size_of::<O>(), lanes.len, resources, |first, out| {
        let out = bytemuck::cast_slice_mut::<u8, O>(out);
        benches.with(|bench| measure_part(measure, data, lanes, first, bench, out, resources.stop))
    })
}

/// Fills the lanes of `out` from those of `data`.
pub(crate) fn map<M: Map<T>, S: Stored<T>, T: Number>(
    map: &M,
    data: &[S],
    lanes: &Lanes,
    scratch: &mut [T],
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let of_each = |from: &[T], to: &mut [T]| map_each::<M, T>(map, lanes.len, from, to, resources.stop);
    map_by(&of_each, data, lanes, scratch, out, resources)
}

fn map_by<S: Stored<T>, T: Number>(
    map: &OfEach<'_, T, T>,
    data: &[S],
    lanes: &Lanes,
    scratch: &mut [T],
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    let benches = Benches::new(scratch, lanes.bench::<S, T>(2));
    // Elements that have all that is in some lanes and nothing else.
    let block = if lanes.contiguous() {
        lanes.len
    } else {
        lanes.along.last().map_or(1, |&Dim { size, steps: [step] }| size * step)
    };
    let kept = lanes.kept.iter().copied().filter(|&Dim { steps: [step], .. }| step < block).collect();
    let inner = Lanes { count: block / lanes.len, len: lanes.len, kept, along: lanes.along.clone() };
    let out = bytemuck::cast_slice_mut::<S, u8>(out);
    parallel::split(out, size_of::<S>() * block, resources, |first, out| {
        let out = bytemuck::cast_slice_mut::<u8, S>(out);
        let data = data.get(first * block..).unwrap_or(&[]);
        benches.with(|bench| map_part(map, data, &inner, bench, out, resources))
    })
}

/// Scratch memory, a part for each thread.
struct Benches<'a, T>(Mutex<Vec<&'a mut [T]>>);

impl<'a, T> Benches<'a, T> {
    fn new(scratch: &'a mut [T], each: usize) -> Self {
        Benches(Mutex::new(if each == 0 { Vec::new() } else { scratch.chunks_exact_mut(each).collect() }))
    }

    /// Calls `work` with a part that no other thread uses meanwhile.
    fn with(&self, work: impl FnOnce(&mut [T]) -> Result<(), Stopped>) -> Result<(), Stopped> {
        let bench = self.0.lock().ok().and_then(|mut free| free.pop()).unwrap_or(&mut []);
        let outcome = work(bench);
        if let Ok(mut free) = self.0.lock() {
            free.push(bench);
        }
        outcome
    }
}

for_each_level! {
    /// Measures lanes of `len` elements, one behind the other.
    fn measure_each<M: Measure<T>, T: Number>(measure: &M, len: usize, from: &[T], values: &mut [M::Value], stop: Option<&Stop>) -> Result<(), Stopped>
        = measure_each_body::<M, T>;
}

for_each_level! {
    /// Maps lanes of `len` elements, one behind the other.
    fn map_each<M: Map<T>, T: Number>(map: &M, len: usize, from: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>
        = map_each_body::<M, T>;
}

#[inline(always)]
fn measure_each_body<M: Measure<T>, T: Number>(
    measure: &M,
    len: usize,
    from: &[T],
    values: &mut [M::Value],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    for (k, value) in values.iter_mut().enumerate() {
        *value = measure.of(from.get(k * len..(k + 1) * len).unwrap_or(&[]), stop)?;
    }
    Ok(())
}

#[inline(always)]
fn map_each_body<M: Map<T>, T: Number>(
    map: &M,
    len: usize,
    from: &[T],
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    // A closure would not be compiled for the level.
    for (from, to) in from.chunks_exact(len).zip(to.chunks_exact_mut(len)) {
        map.map(from, to, stop)?;
    }
    Ok(())
}

fn measure_part<S: Stored<T>, O: Stored<V>, T: Number, V: Pod>(
    measure: &OfEach<'_, T, V>,
    data: &[S],
    lanes: &Lanes,
    first: usize,
    bench: &mut [T],
    mut out: &mut [O],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let mut values = [V::zeroed(); GROUP];
    if lanes.contiguous()
        && let Some(data) = S::direct(data)
    {
        for (k, out) in out.chunks_mut(GROUP).enumerate() {
            let values = values.get_mut(..out.len()).ok_or(Stopped::OutOfRange)?;
            measure(data.get((first + k * GROUP) * lanes.len..).unwrap_or(&[]), values)?;
            O::store(values, out);
        }
        return Ok(());
    }
    let mut groups = Groups::new(lanes, first, out.len());
    while let Some((start, count)) = groups.next() {
        let from = bench.get_mut(..count * lanes.len).ok_or(Stopped::OutOfRange)?;
        collect::<S, T>(data.get(start..).unwrap_or(&[]), lanes, count, from, stop)?;
        let values = values.get_mut(..count).ok_or(Stopped::OutOfRange)?;
        measure(from, values)?;
        let (now, rest) = out.split_at_mut_checked(count).ok_or(Stopped::OutOfRange)?;
        O::store(values, now);
        out = rest;
    }
    Ok(())
}

/// `lanes` are those of a block.
fn map_part<S: Stored<T>, T: Number>(
    map: &OfEach<'_, T, T>,
    data: &[S],
    lanes: &Lanes,
    bench: &mut [T],
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if lanes.contiguous()
        && let (Some(data), Some(out)) = (S::direct(data), S::direct_mut(out))
    {
        return map(data, out);
    }
    let block = lanes.len * lanes.count;
    let mut done = 0;
    for (data, out) in data.chunks_exact(block).zip(out.chunks_exact_mut(block)) {
        let mut groups = Groups::new(lanes, 0, lanes.count);
        while let Some((start, count)) = groups.next() {
            let elements = count * lanes.len;
            let (from, bench) = bench.split_at_mut_checked(elements).ok_or(Stopped::OutOfRange)?;
            let to = bench.get_mut(..elements).ok_or(Stopped::OutOfRange)?;
            collect::<S, T>(data.get(start..).unwrap_or(&[]), lanes, count, from, resources.stop)?;
            map(from, to)?;
            distribute::<S, T>(to, lanes, count, out.get_mut(start..).unwrap_or(&mut []), resources.stop)?;
            done += elements;
            if done > BETWEEN_LOOKS {
                parallel::look(resources.stop)?;
                done = 0;
            }
        }
    }
    Ok(())
}

/// Iterates over groups of lanes: the start of the first, and how many are side by side there.
struct Groups<'a> {
    starts: Offsets<'a, 1>,
    /// Lanes of a row that are side by side, and how many of them were given.
    abreast: usize,
    given: usize,
    row: usize,
    group: usize,
    left: usize,
}

impl<'a> Groups<'a> {
    fn new(lanes: &'a Lanes, first: usize, count: usize) -> Groups<'a> {
        let group = lanes.group();
        let (abreast, outer) = if group > 1 { (lanes.abreast(), lanes.kept.get(1..)) } else { (1, lanes.kept.get(..)) };
        let mut starts = Offsets::new(outer.unwrap_or(&[]), first / abreast);
        let [row] = starts.next();
        Groups { starts, abreast, given: first % abreast, row, group, left: count }
    }

    fn next(&mut self) -> Option<(usize, usize)> {
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

/// Rows of a tile: elements at as many positions, of a group of lanes.
type Tile<T> = [[T; GROUP]; GROUP];

/// Collects `count` lanes that start side by side at the first element of `from`.
fn collect<S: Stored<T>, T: Number>(
    from: &[S],
    lanes: &Lanes,
    count: usize,
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    if count == 1 {
        let mut runs = Runs::new(lanes);
        return runs.each(lanes.len, stop, |run, at| {
            S::load(from.get(run).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
        });
    }
    let mut rows = Offsets::new(&lanes.along, 0);
    let mut tile: Tile<T> = [[T::ZERO; GROUP]; GROUP];
    for at in between_looks(lanes.len, stop) {
        for first in at?.step_by(GROUP) {
            for row in tile.iter_mut().take(lanes.len - first) {
                let [at] = rows.next();
                S::load(from.get(at..at + count).unwrap_or(&[]), row);
            }
            for (k, to) in to.chunks_exact_mut(lanes.len).take(GROUP).enumerate() {
                for (to, row) in to.iter_mut().skip(first).zip(&tile) {
                    row.get(k).into_iter().for_each(|element| *to = *element);
                }
            }
        }
    }
    Ok(())
}

/// The opposite of [`collect`].
fn distribute<S: Stored<T>, T: Number>(
    from: &[T],
    lanes: &Lanes,
    count: usize,
    to: &mut [S],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    if count == 1 {
        let mut runs = Runs::new(lanes);
        return runs.each(lanes.len, stop, |run, at| {
            S::store(from.get(at).unwrap_or(&[]), to.get_mut(run).unwrap_or(&mut []));
        });
    }
    let mut rows = Offsets::new(&lanes.along, 0);
    let mut tile: Tile<T> = [[T::ZERO; GROUP]; GROUP];
    for at in between_looks(lanes.len, stop) {
        for first in at?.step_by(GROUP) {
            for (k, from) in from.chunks_exact(lanes.len).take(GROUP).enumerate() {
                for (from, row) in from.iter().skip(first).zip(&mut tile) {
                    row.get_mut(k).into_iter().for_each(|element| *element = *from);
                }
            }
            for row in tile.iter().take(lanes.len - first) {
                let [at] = rows.next();
                S::store(row, to.get_mut(at..at + count).unwrap_or(&mut []));
            }
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
