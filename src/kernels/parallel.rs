//! Work shared among threads. Each part of the output is written by one thread, so the bytes are the same for any
//! number of them.

use super::Resources;
#[cfg(feature = "rayon")]
use super::team::TEAM;
use std::sync::atomic::{AtomicBool, Ordering};

/// Output below so many bytes is not worth a helper that is ready.
#[cfg(feature = "rayon")]
const WORTH_SHARING: usize = 64 << 10;

/// Output below so many bytes is not worth a helper that must be woken first.
#[cfg(feature = "rayon")]
const WORTH_WAKING: usize = 128 << 10;

/// Whether a caller asked to stop is looked at after so many bytes.
const BETWEEN_LOOKS: usize = 4 << 20;

/// Calls `work` with parts of `out`, each a multiple of `unit` bytes, and the number of the part's first unit: on this
/// thread and, if the output is large, on others of the thread pool that rayon has for this thread.
/// False as soon as a part gave that, or the caller asked to stop.
#[must_use]
pub(super) fn split(
    out: &mut [u8],
    unit: usize,
    resources: Resources<'_>,
    work: impl Fn(usize, &mut [u8]) -> bool + Sync,
) -> bool {
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
    out.chunks_mut(units * unit).enumerate().all(|(k, out)| !stopped(resources.stop) && work(k * units, out))
}

#[cfg(test)]
thread_local! {
    /// How often this thread looked whether the caller asked to stop.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn stopped(stop: Option<&AtomicBool>) -> bool {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

#[cfg(feature = "rayon")]
fn shared(
    out: &mut [u8],
    unit: usize,
    threads: usize,
    stop: Option<&AtomicBool>,
    work: impl Fn(usize, &mut [u8]) -> bool + Sync,
) -> bool {
    use std::sync::Mutex;

    // Small work is halved; of larger work whoever is free takes the next part.
    let mut parts = if out.len() < 1 << 20 { threads } else { 4 * threads };
    if stop.is_some() {
        parts = parts.max(out.len() / BETWEEN_LOOKS);
    }
    let units = (out.len() / unit.max(1)).div_ceil(parts).max(1);
    let queue = Mutex::new(out.chunks_mut(units * unit).enumerate());
    let good = AtomicBool::new(true);
    let helped = TEAM.run(threads - 1, &|| {
        while good.load(Ordering::Relaxed) {
            let part = queue.lock().ok().and_then(|mut queue| queue.next());
            let Some((k, out)) = part else { break };
            if stopped(stop) || !work(k * units, out) {
                good.store(false, Ordering::Relaxed);
            }
        }
    });
    helped && good.into_inner()
}
