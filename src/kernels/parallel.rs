//! Shares work among threads. Each part of the output is written by one thread, so the bytes are the same for any
//! number of threads.

#[cfg(feature = "rayon")]
use super::team;
use super::{Resources, Stop, Stopped};
#[cfg(feature = "rayon")]
use std::sync::Mutex;

/// Minimum size in bytes of an output that is worth using a helper that is ready.
#[cfg(feature = "rayon")]
const WORTH_SHARING: usize = 64 << 10;

/// Minimum size in bytes of an output that is worth waking a helper.
#[cfg(feature = "rayon")]
const WORTH_WAKING: usize = 128 << 10;

/// Bytes that are written between two checks of `Resources::stop`.
const BETWEEN_LOOKS: usize = 4 << 20;

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
    #[cfg(feature = "rayon")]
    if resources.threads > 1 && (out.len() >= WORTH_WAKING || out.len() >= WORTH_SHARING && team::is_ready()) {
        let threads = resources.threads.min(rayon::current_num_threads());
        if threads > 1 {
            return shared(out, unit, threads, resources.stop, work);
        }
    }
    if resources.stop.is_none() || out.len() <= BETWEEN_LOOKS {
        return work(0, out);
    }
    let units = (BETWEEN_LOOKS / unit.max(1)).max(1);
    out.chunks_mut(units * unit).enumerate().try_for_each(|(k, out)| {
        look(resources.stop)?;
        work(k * units, out)
    })
}

#[cfg(test)]
thread_local! {
    /// How often this thread checked `Resources::stop`.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Fails if the caller asked to stop.
pub(super) fn look(stop: Option<&Stop>) -> Result<(), Stopped> {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
    match stop {
        Some(stop) if stop.is_set() => Err(Stopped::Cancelled),
        _ => Ok(()),
    }
}

#[cfg(feature = "rayon")]
fn shared(
    out: &mut [u8],
    unit: usize,
    threads: usize,
    stop: Option<&Stop>,
    work: impl Fn(usize, &mut [u8]) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    // Small work is divided evenly; for larger work, each free thread takes the next part.
    let mut parts = if out.len() < 1 << 20 { threads } else { 4 * threads };
    if stop.is_some() {
        parts = parts.max(out.len() / BETWEEN_LOOKS);
    }
    let units = (out.len() / unit.max(1)).div_ceil(parts).max(1);
    // The remaining parts, and why to stop.
    let queue = Mutex::new((out.chunks_mut(units * unit).enumerate(), Ok(())));
    let next = || match &mut *queue.lock().ok()? {
        (parts, Ok(())) => parts.next(),
        _ => None,
    };
    let stop_for = |why| {
        if let Ok(mut queue) = queue.lock() {
            queue.1 = Err(queue.1.err().map_or(why, |other: Stopped| other.min(why)));
        }
    };
    let helped = team::run(threads - 1, &|| {
        while let Some((k, out)) = next() {
            if let Err(why) = look(stop).and_then(|()| work(k * units, out)) {
                stop_for(why);
            }
        }
    });
    if let Err(why) = helped {
        stop_for(why);
    }
    queue.into_inner().map_or(Err(Stopped::Panicked), |(_, outcome)| outcome)
}

#[cfg(all(test, feature = "rayon"))]
mod tests {
    use super::*;
    use crate::kernels::sized;
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
