//! Picks several values of each lane, with as many of another type: the greatest elements and their indices.

use super::reduce::BETWEEN_LOOKS;
use super::stored::{Elements, Storage};
use super::walk::{GROUP, Groups, collect};
use super::{Lanes, Number, Stored};
use crate::{Resources, Stop, Stopped, lookout, parallel};
use bytemuck::Pod;
use std::sync::Mutex;

/// A function from a lane to some values, and to as many of another type.
pub trait Pick<T>: Sync {
    type Value: Pod + Send;
    /// `()` if there are none.
    type Beside: Pod + Send;

    /// Fills both lists; that of `()` is empty.
    fn of(
        &self,
        lane: &[T],
        values: &mut [Self::Value],
        beside: &mut [Self::Beside],
        stop: Option<&Stop>,
    ) -> Result<(), Stopped>;
}

/// Scratch memory of [`pick`]: elements of lanes, and of results, for all threads.
#[derive(Debug)]
pub struct Scratch<'a, T, V, B> {
    pub lanes: &'a mut [T],
    pub values: &'a mut [V],
    pub beside: &'a mut [B],
}

impl Lanes {
    /// Elements of scratch memory that [`pick`] needs: of lanes, and of each kind of results but `()`.
    pub fn scratch_to_pick<S: Stored<T>, T>(&self, count: usize, threads: usize) -> (usize, usize) {
        let results = count.saturating_mul(self.group()).saturating_mul(threads.min(self.count));
        (self.scratch_to_measure::<S, T>(threads), results)
    }
}

/// What is picked of lanes, and where to.
struct Picking<'a, T, V, B> {
    pick: &'a dyn Pick<T, Value = V, Beside = B>,
    data: Elements<'a, T>,
    lanes: &'a Lanes,
    /// Values of a lane.
    count: usize,
    formats: (Storage<V>, Storage<B>),
    resources: Resources<'a>,
}

/// Writes what is picked of each lane to `outs`: `count` values of each. They are along the outermost axis of the lanes, in
/// place of the elements.
pub fn pick<P: Pick<T>, S: Stored<T>, O: Stored<P::Value>, B: Stored<P::Beside>, T: Number>(
    pick: &P,
    data: &[S],
    lanes: &Lanes,
    count: usize,
    scratch: Scratch<'_, T, P::Value, P::Beside>,
    outs: (&mut [O], &mut [B]),
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let formats = (Storage::of::<O>(), Storage::of::<B>());
    let outs = [bytemuck::cast_slice_mut(outs.0), bytemuck::cast_slice_mut(outs.1)];
    Picking { pick, data: Elements::of(data), lanes, count, formats, resources }.run(scratch, outs)
}

impl<T: Number, V: Pod + Send, B: Pod + Send> Picking<'_, T, V, B> {
    fn run(&self, scratch: Scratch<'_, T, V, B>, outs: [&mut [u8]; 2]) -> Result<(), Stopped> {
        let Picking { lanes, count, formats, .. } = self;
        if outs.iter().all(|out| out.is_empty()) {
            return Ok(());
        }
        let (collected, results) = (lanes.bench(self.data.is_direct(), 1), count * lanes.group());
        let mut parts = (
            scratch.lanes.chunks_mut(collected.max(1)),
            scratch.values.chunks_mut(results.max(1)),
            scratch.beside.chunks_mut(results.max(1)),
        );
        // One for each thread, of which there are no more than results have room for.
        let benches = std::iter::from_fn(|| {
            let values = parts.1.next()?;
            Some((parts.0.next().unwrap_or(&mut []), values, parts.2.next().unwrap_or(&mut [])))
        });
        let benches = Mutex::new(benches.collect::<Vec<_>>());
        // The results of these lanes are side by side.
        let between = if *count == 1 { lanes.unit(self.resources.threads) } else { lanes.inside };
        let units = [formats.0.size, formats.1.size].map(|size| size * count * between);
        let cost = lanes.len / (*count).max(1);
        parallel::split_two(outs, units, cost, self.resources, |first, outs| {
            let bench = benches.lock().ok().and_then(|mut free| free.pop());
            let mut bench = bench.ok_or(Stopped::Misfit)?;
            let outcome = self.part(first * between, between, &mut bench, outs);
            if let Ok(mut free) = benches.lock() {
                free.push(bench);
            }
            outcome
        })
    }

    /// The lanes from the one with the number `first` on.
    fn part(
        &self,
        first: usize,
        between: usize,
        (bench, values, beside): &mut (&mut [T], &mut [V], &mut [B]),
        [out, out_beside]: [&mut [u8]; 2],
    ) -> Result<(), Stopped> {
        let &Picking { lanes, count, formats: (format, format_beside), .. } = self;
        let (len, stop, direct) = (lanes.len, self.resources.stop, self.data.direct().filter(|_| lanes.contiguous()));
        let sizes = [(out.len(), format.size), (out_beside.len(), format_beside.size)];
        let all = sizes.map(|(bytes, size)| bytes / (size * count).max(1)).into_iter().max().unwrap_or(0);
        let mut groups = Groups::new(lanes, first, all);
        let (mut at, mut done) = (0, 0);
        while let Some((start, together)) = groups.next() {
            let collected = match direct {
                Some(numbers) => numbers.get(start..start + len).ok_or(Stopped::Misfit)?,
                None => {
                    let to = bench.get_mut(..together * len).ok_or(Stopped::Misfit)?;
                    collect(self.data.from(start), lanes, together, to, stop)?;
                    &*to
                }
            };
            for k in 0..together {
                let lane = collected.get(k * len..(k + 1) * len).unwrap_or(&[]);
                let own = k * count..(k + 1) * count;
                let values = values.get_mut(own.clone()).ok_or(Stopped::Misfit)?;
                self.pick.of(lane, values, beside.get_mut(own).unwrap_or(&mut []), stop)?;
            }
            let place = at / between * between * count + at % between;
            spread(values, count, together, place, between, format, out);
            spread(beside, count, together, place, between, format_beside, out_beside);
            at += together;
            done += together * len;
            if done > BETWEEN_LOOKS {
                lookout::look(stop)?;
                done = 0;
            }
        }
        Ok(())
    }
}

/// Stores results of lanes that are side by side, the first of them at an element of `out`, and the next of each lane `step`
/// elements on.
fn spread<V: Pod>(
    values: &[V],
    count: usize,
    together: usize,
    place: usize,
    step: usize,
    to: Storage<V>,
    out: &mut [u8],
) {
    if out.is_empty() {
        return;
    }
    if together == 1 && step == 1 {
        return to.store(values.get(..count).unwrap_or(&[]), out.get_mut(place * to.size..).unwrap_or(&mut []));
    }
    let mut row = [V::zeroed(); GROUP];
    for k in 0..count {
        for (to, value) in row.iter_mut().zip(values.iter().skip(k).step_by(count)).take(together) {
            *to = *value;
        }
        let start = (place + k * step) * to.size;
        let now = out.get_mut(start..start + together * to.size).unwrap_or(&mut []);
        to.store(row.get(..together).unwrap_or(&[]), now);
    }
}
