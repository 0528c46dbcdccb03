//! Work shared among threads. Each part of the output is written by one thread, so the bytes are the same for any
//! number of them.

#[cfg(feature = "rayon")]
use super::team::TEAM;
use super::{Resources, Stopped};
#[cfg(feature = "rayon")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Minimum size of an output that is worth a helper that is ready, in bytes.
#[cfg(feature = "rayon")]
const WORTH_SHARING: usize = 64 << 10;

/// Minimum size of an output that is worth waking a helper, in bytes.
#[cfg(feature = "rayon")]
const WORTH_WAKING: usize = 128 << 10;

/// How many bytes are written between two looks at `Resources::stop`.
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
    if resources.threads > 1 && (out.len() >= WORTH_WAKING || out.len() >= WORTH_SHARING && TEAM.ready() > 0) {
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
    /// How often this thread looked at `Resources::stop`.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Fails if the caller asked to stop.
fn look(stop: Option<&AtomicBool>) -> Result<(), Stopped> {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
    match stop {
        Some(stop) if stop.load(Ordering::Relaxed) => Err(Stopped::Cancelled),
        _ => Ok(()),
    }
}

#[cfg(feature = "rayon")]
fn shared(
    out: &mut [u8],
    unit: usize,
    threads: usize,
    stop: Option<&AtomicBool>,
    work: impl Fn(usize, &mut [u8]) -> Result<(), Stopped> + Sync,
) -> Result<(), Stopped> {
    // Small work is divided evenly; of larger work whoever is free takes the next part.
    let mut parts = if out.len() < 1 << 20 { threads } else { 4 * threads };
    if stop.is_some() {
        parts = parts.max(out.len() / BETWEEN_LOOKS);
    }
    let units = (out.len() / unit.max(1)).div_ceil(parts).max(1);
    // The parts left, and why to leave them.
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
    let helped = TEAM.run(threads - 1, &|| {
        while let Some((k, out)) = next() {
            if let Err(why) = look(stop).and_then(|()| work(k * units, out)) {
                stop_for(why);
            }
        }
    });
    if !helped {
        stop_for(Stopped::Panicked);
    }
    queue.into_inner().map_or(Err(Stopped::Panicked), |(_, outcome)| outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_starts_after_one_has_stopped() {
        for stop in [None, Some(&AtomicBool::new(false))] {
            let mut out = vec![0; 3 * BETWEEN_LOOKS];
            let outcome = split(&mut out, 1, Resources { threads: 1, stop }, |_, part| {
                part.fill(1);
                Err(Stopped::OutOfRange)
            });
            assert_eq!(outcome, Err(Stopped::OutOfRange));
            assert_eq!(out.iter().all(|&byte| byte == 1), stop.is_none(), "without looks it is one part");
        }
    }
}
