//! Shares work among threads. Each part of the output is written by one thread, so the bytes are the same for any
//! number of threads.

use super::lookout::{BETWEEN_LOOKS, look};
#[cfg(feature = "rayon")]
use super::team;
use super::{Resources, Stop, Stopped};
#[cfg(feature = "rayon")]
use std::error::Error;
#[cfg(feature = "rayon")]
use std::sync::LazyLock;
use std::sync::Mutex;
#[cfg(feature = "rayon")]
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Minimum size in bytes of an output that is worth using a helper that is ready.
#[cfg(feature = "rayon")]
const WORTH_SHARING: usize = 64 << 10;

/// Minimum size in bytes of an output that is worth waking a helper.
#[cfg(feature = "rayon")]
const WORTH_WAKING: usize = 128 << 10;

/// Calls `work` with parts of `out`, each a multiple of `unit` bytes, and the number of the part's first unit. If the
/// output is large, other threads of the caller's rayon pool help.
///
/// Stops once any part does. If several parts stop, the first reason in the order of [`Stopped`] is returned.
pub(super) fn split(
    out: &mut [u8],
    unit: usize,
    resources: Resources<'_>,
    work: impl Fn(usize, &mut [u8]) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    split_by(out, unit, 1, resources, work)
}

/// As [`split`], where each byte of `out` takes the time of `cost` bytes that are only written.
pub(super) fn split_by(
    out: &mut [u8],
    unit: usize,
    cost: usize,
    resources: Resources<'_>,
    work: impl Fn(usize, &mut [u8]) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    split_two([out, &mut []], [unit, 0], cost, resources, |first, [out, _]| work(first, out))
}

/// As [`split_by`], of two outputs that are divided at the same places: `units` are the bytes of a unit in each. One of them
/// may be empty.
pub(super) fn split_two(
    outs: [&mut [u8]; 2],
    units: [usize; 2],
    cost: usize,
    resources: Resources<'_>,
    work: impl Fn(usize, [&mut [u8]; 2]) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    split_among(outs, units, cost, resources, &work)
}

/// What fills a part of the outputs, given the number of its first unit.
type Work<'a> = dyn Fn(usize, [&mut [u8]; 2]) -> Result<(), Stopped> + Sync + 'a;

/// As [`split_two`], compiled once.
fn split_among(
    outs: [&mut [u8]; 2],
    units: [usize; 2],
    cost: usize,
    resources: Resources<'_>,
    work: &Work<'_>,
) -> Result<(), Stopped> {
    let [first, second] = &outs;
    let [unit, other] = units.map(|unit| unit.max(1));
    if !first.is_empty() && !second.is_empty() && first.len().div_ceil(unit) != second.len().div_ceil(other) {
        return Err(Stopped::Misfit);
    }
    let (units, size) = ([unit, other], (first.len() + second.len()).saturating_mul(cost.max(1)));
    #[cfg(feature = "rayon")]
    if resources.threads > 1 && (size >= WORTH_WAKING || size >= WORTH_SHARING && team::is_ready()) {
        let threads = resources.threads.min(available_threads());
        if threads > 1 {
            return shared(outs, units, size, threads, resources.stop, work);
        }
    }
    if resources.stop.is_none() || size <= BETWEEN_LOOKS {
        return work(0, outs);
    }
    let each = if second.is_empty() { unit } else { unit + other };
    let count = (BETWEEN_LOOKS / each.saturating_mul(cost).max(1)).max(1);
    Parts::new(outs, units, count).try_for_each(|(first, outs)| {
        look(resources.stop)?;
        work(first, outs)
    })
}

/// Parts of outputs, and the number of the first unit of each.
struct Parts<'a> {
    outs: [&'a mut [u8]; 2],
    units: [usize; 2],
    /// Units of a part.
    count: usize,
    next: usize,
}

impl<'a> Parts<'a> {
    /// Parts of `count` units.
    fn new(outs: [&'a mut [u8]; 2], units: [usize; 2], count: usize) -> Parts<'a> {
        Parts { outs, units, count, next: 0 }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = (usize, [&'a mut [u8]; 2]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.outs.iter().all(|out| out.is_empty()) {
            return None;
        }
        let mut part: [&mut [u8]; 2] = Default::default();
        for ((out, part), unit) in self.outs.iter_mut().zip(&mut part).zip(self.units) {
            let rest = std::mem::take(out);
            (*part, *out) = rest.split_at_mut(rest.len().min(self.count * unit));
        }
        let first = self.next;
        self.next += self.count;
        Some((first, part))
    }
}

/// Calls `work` with each `unit` bytes of `out`, the last of which may be fewer, and their number.
pub fn each(
    out: &mut [u8],
    unit: usize,
    resources: Resources<'_>,
    work: impl Fn(usize, &mut [u8]) + Sync,
) -> Result<(), Stopped> {
    let unit = unit.max(1);
    split(out, unit, resources, |first, out| {
        out.chunks_mut(unit).enumerate().for_each(|(k, out)| work(first + k, out));
        Ok(())
    })
}

/// Calls `work` with parts of `out`, each a multiple of `unit` bytes, the number of the part's first unit, and `room` bytes
/// of the scratch memory, which has so many for each thread. Each byte takes the time of `cost` bytes that are only written.
pub fn with_room(
    out: &mut [u8],
    unit: usize,
    cost: usize,
    (scratch, room): (&mut [u8], usize),
    resources: Resources<'_>,
    work: impl Fn(usize, &mut [u8], &mut [u8]) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    let benches = Benches::new(scratch, room);
    split_by(out, unit, cost, resources, |first, out| benches.with(|room| work(first, room, out)))
}

/// The number of threads that a run on this thread can use: those of the rayon pool that it is in, or else as many as
/// rayon's global pool has, which this starts. It is 1 if the system can't create these threads, or without the feature `rayon`.
///
/// ```
/// assert!(onnxref::available_threads() >= 1);
/// ```
pub fn available_threads() -> usize {
    #[cfg(feature = "rayon")]
    if rayon::current_thread_index().is_some() {
        return rayon::current_num_threads();
    }
    #[cfg(feature = "rayon")]
    return *GLOBAL_THREADS;
    #[cfg(not(feature = "rayon"))]
    1
}

/// The size of rayon's global pool. Where its threads can't be created, any later use of it panics, so there is none.
#[cfg(feature = "rayon")]
static GLOBAL_THREADS: LazyLock<usize> = LazyLock::new(|| match rayon::ThreadPoolBuilder::new().build_global() {
    Err(error) if error.source().is_some() => 1,
    // It was started here or by others; or these tried to, and failed.
    _ => std::panic::catch_unwind(rayon::current_num_threads).unwrap_or(1),
});

/// As [`each`], but a unit may come in several pieces, each a multiple of `element` bytes: for units that may be large.
/// `work` is called with the number of the unit, the bytes of it before the piece, and the piece. Each byte takes the
/// time of `cost` bytes that are only written.
pub fn pieces(
    out: &mut [u8],
    element: usize,
    unit: usize,
    cost: usize,
    resources: Resources<'_>,
    work: impl Fn(usize, usize, &mut [u8]) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    pieces_by(out, element, unit, cost, resources, &work)
}

/// What fills a piece, given the number of its unit and the bytes of that before it.
type PieceWork<'a> = dyn Fn(usize, usize, &mut [u8]) -> Result<(), Stopped> + Sync + 'a;

/// As [`pieces`], compiled once.
fn pieces_by(
    out: &mut [u8],
    element: usize,
    unit: usize,
    cost: usize,
    resources: Resources<'_>,
    work: &PieceWork<'_>,
) -> Result<(), Stopped> {
    let (element, unit) = (element.max(1), unit.max(1));
    split_by(out, element, cost, resources, |first, mut out| {
        let (mut at, mut start) = (first * element / unit, first * element % unit);
        while !out.is_empty() {
            let (piece, rest) = out.split_at_mut((unit - start).min(out.len()));
            work(at, start, piece)?;
            (out, at, start) = (rest, at + 1, 0);
        }
        Ok(())
    })
}

/// The number of threads for `work`, of which each should have `ready` at least if helpers are ready, else `waking`.
pub(super) fn threads(work: usize, ready: usize, waking: usize, resources: Resources<'_>) -> usize {
    #[cfg(feature = "rayon")]
    if resources.threads > 1 && work >= 2 * ready {
        let least = if team::is_ready() { ready } else { waking };
        return resources.threads.min(available_threads()).min(work / least).max(1);
    }
    let _ = (work, ready, waking, resources);
    1
}

/// Calls `work` with each number below `count`, on as many threads as there are `rooms`, each with one of these.
///
/// Stops as [`split`] does.
pub(super) fn tasks<R: Send>(
    count: usize,
    mut rooms: Vec<R>,
    stop: Option<&Stop>,
    work: impl Fn(&mut R, usize) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    #[cfg(feature = "rayon")]
    if rooms.len() > 1 && count > 1 {
        return shared_tasks(count, rooms, stop, work);
    }
    let Some(room) = rooms.first_mut() else { return Ok(()) };
    (0..count).try_for_each(|at| look(stop).and_then(|()| work(room, at)))
}

#[cfg(feature = "rayon")]
fn shared_tasks<R: Send>(
    count: usize,
    rooms: Vec<R>,
    stop: Option<&Stop>,
    work: impl Fn(&mut R, usize) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    let threads = rooms.len();
    // Tasks that are taken at once: small ones take less time than taking them.
    let some = (count / (8 * threads)).max(1);
    let share = |at: usize| at * count / threads;
    let shares: Vec<_> = (0..threads).map(|at| (AtomicUsize::new(share(at)), share(at + 1))).collect();
    let rooms = Mutex::new(rooms);
    share_out(threads, |thread, outcome| {
        let Some(mut room) = rooms.lock().ok().and_then(|mut rooms| rooms.pop()) else { return };
        let (before, own) = shares.split_at(thread.min(threads));
        for (next, end) in own.iter().chain(before) {
            while !outcome.has_stopped() {
                let from = next.fetch_add(some, Relaxed);
                if from >= *end {
                    break;
                }
                let mut tasks = from..(*end).min(from + some);
                outcome.add(tasks.try_for_each(|at| look(stop).and_then(|()| work(&mut room, at))));
            }
        }
    })
}

/// Whether all parts of a work came to an end, or else the first reason in the order of [`Stopped`].
#[cfg(feature = "rayon")]
#[derive(Default)]
struct Outcome {
    stopped: AtomicBool,
    why: Mutex<Option<Stopped>>,
}

#[cfg(feature = "rayon")]
impl Outcome {
    fn add(&self, part: Result<(), Stopped>) {
        if let Err(why) = part {
            self.stopped.store(true, Relaxed);
            if let Ok(mut first) = self.why.lock() {
                *first = Some(first.map_or(why, |other| other.min(why)));
            }
        }
    }

    /// Whether a part has stopped: no other one starts then.
    fn has_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }
}

/// Calls `work` on so many threads. Each has a number and begins with the share of that number, so that what works next on
/// the same places finds them in its own caches; one that is done with its own goes on with the others'.
#[cfg(feature = "rayon")]
fn share_out(threads: usize, work: impl Fn(usize, &Outcome) + Sync) -> Result<(), Stopped> {
    let outcome = Outcome::default();
    outcome.add(team::run(threads - 1, &|thread| work(thread, &outcome)));
    outcome.why.into_inner().map_or(Err(Stopped::Panicked), |why| why.map_or(Ok(()), Err))
}

/// Scratch memory, a part for each thread.
pub(super) struct Benches<'a, T>(Mutex<Vec<&'a mut [T]>>);

impl<'a, T> Benches<'a, T> {
    pub(super) fn new(scratch: &'a mut [T], each: usize) -> Self {
        Benches(Mutex::new(if each == 0 { Vec::new() } else { scratch.chunks_exact_mut(each).collect() }))
    }

    /// Calls `work` with a part that no other thread uses meanwhile.
    pub(super) fn with(&self, work: impl FnOnce(&mut [T]) -> Result<(), Stopped>) -> Result<(), Stopped> {
        let bench = self.0.lock().ok().and_then(|mut free| free.pop()).unwrap_or(&mut []);
        let outcome = work(bench);
        if let Ok(mut free) = self.0.lock() {
            free.push(bench);
        }
        outcome
    }
}

/// Copies the bytes of `from`, as many as `out` has.
pub fn copied(from: &[u8], out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    split(out, 1, resources, |first, out| {
        out.copy_from_slice(from.get(first..first + out.len()).ok_or(Stopped::Misfit)?);
        Ok(())
    })
}

/// Fills `out` with copies of an element of at most 16 bytes.
pub fn fill(element: &[u8], out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    /// Bytes, a multiple of the size of each type.
    const BLOCK: usize = 4 << 10;
    let byte = element.first().copied().unwrap_or(0);
    if element.iter().all(|other| *other == byte) {
        return each(out, BLOCK, resources, |_, out| out.fill(byte));
    }
    let block = element.repeat(BLOCK.min(out.len()).div_ceil(element.len()));
    each(out, BLOCK, resources, |_, out| {
        block.get(..out.len()).into_iter().for_each(|block| out.copy_from_slice(block));
    })
}

#[cfg(feature = "rayon")]
fn shared(
    outs: [&mut [u8]; 2],
    units: [usize; 2],
    size: usize,
    threads: usize,
    stop: Option<&Stop>,
    work: &Work<'_>,
) -> Result<(), Stopped> {
    // Small work is divided evenly; larger work in more parts, of which a thread that is free takes another's.
    let mut parts = if size < 1 << 20 { 1 } else { 4 };
    if stop.is_some() {
        parts = parts.max(size / BETWEEN_LOOKS / threads);
    }
    let lens = outs.iter().zip(units).map(|(out, unit)| out.len().div_ceil(unit));
    let share = lens.max().unwrap_or(0).div_ceil(threads).max(1);
    let count = share.div_ceil(parts);
    let shares = Parts::new(outs, units, share).map(|(next, outs)| Mutex::new(Parts { outs, units, count, next }));
    let shares: Vec<_> = shares.collect();
    share_out(threads, |thread, outcome| {
        let (before, own) = shares.split_at(thread.min(shares.len()));
        for share in own.iter().chain(before) {
            while !outcome.has_stopped()
                && let Some((first, outs)) = share.lock().ok().and_then(|mut parts| parts.next())
            {
                outcome.add(look(stop).and_then(|()| work(first, outs)));
            }
        }
    })
}

#[cfg(all(test, feature = "rayon"))]
mod tests {
    use super::*;
    use crate::testing::sized;
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// However parts stop, the first reason in the order of [`Stopped`] is returned.
    #[test]
    fn the_first_reason_counts() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let resources = Resources { threads: 2, stop: None };
        for late in [Stopped::Cancelled, Stopped::OutOfRange] {
            let early = if late == Stopped::OutOfRange { Stopped::Cancelled } else { Stopped::OutOfRange };
            let both = AtomicBool::new(false);
            let outcome = pool.install(|| {
                split(&mut vec![0; WORTH_WAKING], 1, resources, |first, _| {
                    if first > 0 {
                        both.store(true, Ordering::Relaxed);
                        return Err(early);
                    }
                    // Waits until the other half is at work.
                    let start = Instant::now();
                    while !both.load(Ordering::Relaxed) {
                        assert!(start.elapsed() < Duration::from_secs(60), "no helper came");
                        std::thread::yield_now();
                    }
                    std::thread::sleep(Duration::from_millis(5));
                    Err(late)
                })
            });
            assert_eq!(outcome, Err(Stopped::OutOfRange), "{late:?} after {early:?}");
        }
    }

    /// At most as many threads as requested, and as the pool has.
    #[test]
    fn no_more_threads_than_allowed() {
        for &size in sized(&[2, 8][..], &[3]) {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(size).build().unwrap();
            for threads in [8, 2, 3, 1].repeat(sized(50, 1)) {
                let seen = Mutex::new(HashSet::new());
                let outcome = pool.install(|| {
                    split(&mut vec![0; 1 << 20], 1, Resources { threads, stop: None }, |_, _| {
                        seen.lock().map(|mut seen| seen.insert(std::thread::current().id())).unwrap();
                        std::thread::sleep(Duration::from_micros(10));
                        Ok(())
                    })
                });
                assert_eq!(outcome, Ok(()));
                let seen = seen.into_inner().unwrap().len();
                assert!(seen <= threads.min(size), "{seen} threads of {threads}, in a pool of {size}");
            }
        }
    }

    /// Two outputs are divided at the same places, however many bytes a unit of each has; one may be empty.
    #[test]
    fn two_outputs() {
        let sizes = [(1, 8), (12, 1), (4, 0), (0, 4)];
        for ((first, second), threads, count) in sizes.iter().flat_map(|sizes| {
            [1, 2].into_iter().flat_map(move |threads| [0, 1, 70_001].map(move |count| (*sizes, threads, count)))
        }) {
            let stop = Stop::default();
            for stop in [None, Some(&stop)] {
                let (mut a, mut b) = (vec![0u8; first * count], vec![0u8; second * count]);
                let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
                let number = |unit: usize| (unit % 251 + 1) as u8;
                let fill = |from: usize, outs: [&mut [u8]; 2]| {
                    for (out, size) in outs.into_iter().zip([first, second]) {
                        for (k, unit) in out.chunks_mut(size.max(1)).enumerate() {
                            assert_eq!(unit.len(), size);
                            unit.fill(number(from + k));
                        }
                    }
                    Ok(())
                };
                let resources = Resources { threads, stop };
                pool.install(|| split_two([&mut a, &mut b], [first, second], 1, resources, fill)).unwrap();
                for (out, size) in [(&a, first), (&b, second)] {
                    let units = out.chunks(size.max(1)).enumerate();
                    assert!(units.into_iter().all(|(k, unit)| unit.iter().all(|byte| *byte == number(k))));
                }
            }
        }
        let resources = Resources { threads: 1, stop: Some(&Stop::default()) };
        let outs = [&mut vec![0; 1 << 20][..], &mut vec![0; (1 << 20) - 4]];
        assert_eq!(split_two(outs, [4, 4], 1, resources, |_, _| Ok(())), Err(Stopped::Misfit));
    }

    #[test]
    fn no_part_starts_after_one_has_stopped() {
        for stop in [None, Some(&Stop::default())] {
            let sizes = Mutex::new(Vec::new());
            let outcome = split(&mut vec![0; 3 * BETWEEN_LOOKS], 1, Resources { threads: 1, stop }, |_, part| {
                sizes.lock().unwrap().push(part.len());
                Err(Stopped::OutOfRange)
            });
            assert_eq!(outcome, Err(Stopped::OutOfRange));
            assert_eq!(sizes.into_inner().unwrap(), [if stop.is_some() { BETWEEN_LOOKS } else { 3 * BETWEEN_LOOKS }]);
        }
    }
}
