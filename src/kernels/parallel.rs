//! Work shared among threads. Each part of the output is written by one thread, so the bytes are the same for any
//! number of them.

#[cfg(feature = "rayon")]
use super::team::TEAM;

/// Output below so many bytes is not worth a helper that is ready, and one that must be woken first.
#[cfg(feature = "rayon")]
const WORTH_SHARING: [usize; 2] = [64 << 10, 128 << 10];

/// Calls `work` with parts of `out`, each a multiple of `unit` bytes, and the number of the part's first unit: on this
/// thread and, if the output is large, on up to `threads - 1` of the thread pool that rayon has for this thread.
/// False as soon as a part gave that.
#[must_use]
pub(super) fn split(
    out: &mut [u8],
    unit: usize,
    threads: usize,
    work: impl Fn(usize, &mut [u8]) -> bool + Sync,
) -> bool {
    #[cfg(feature = "rayon")]
    if threads > 1 && out.len() >= WORTH_SHARING[usize::from(TEAM.ready() == 0)] {
        let threads = threads.min(rayon::current_num_threads());
        if threads > 1 {
            return shared(out, unit, threads, work);
        }
    }
    let _ = (unit, threads);
    work(0, out)
}

#[cfg(feature = "rayon")]
fn shared(out: &mut [u8], unit: usize, threads: usize, work: impl Fn(usize, &mut [u8]) -> bool + Sync) -> bool {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    // Small work is halved; of larger work whoever is free takes the next part.
    let parts = if out.len() < 1 << 20 { threads } else { 4 * threads };
    let units = (out.len() / unit.max(1)).div_ceil(parts).max(1);
    let queue = Mutex::new(out.chunks_mut(units * unit).enumerate());
    let good = AtomicBool::new(true);
    let helped = TEAM.run(threads - 1, &|| {
        while good.load(Ordering::Relaxed) {
            let part = queue.lock().ok().and_then(|mut queue| queue.next());
            let Some((k, out)) = part else { break };
            if !work(k * units, out) {
                good.store(false, Ordering::Relaxed);
            }
        }
    });
    helped && good.into_inner()
}
