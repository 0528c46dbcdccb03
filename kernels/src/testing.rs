//! What tests ask of kernels: each level of the processor, threads, how often they look whether to stop.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;

thread_local!(static FORCED: Cell<Option<u8>> = const { Cell::new(None) });

/// The level that this thread takes the processor for.
#[cfg(target_arch = "x86_64")]
pub(super) fn forced() -> Option<u8> {
    FORCED.get()
}

/// Runs `work` at each level that this processor has, on this thread.
pub fn at_each_level(mut work: impl FnMut()) {
    #[cfg(target_arch = "x86_64")]
    let levels = {
        // With matrices of bytes, and without them.
        let most = if super::cpu::has_tiles() { 6 } else { super::cpu::level() };
        [0, 3, 4, 5, 6].into_iter().filter(|&level| level <= most).collect::<Vec<_>>()
    };
    #[cfg(not(target_arch = "x86_64"))]
    let levels = [0];
    for level in levels {
        FORCED.set(Some(level));
        work();
    }
    FORCED.set(None);
}

/// A size for tests: `full`, or `small` under an interpreter (miri), where everything takes thousands of times as long.
pub const fn sized<T: Copy>(full: T, small: T) -> T {
    if cfg!(miri) { small } else { full }
}

/// Runs `work` where that many threads can help.
pub fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    #[cfg(feature = "rayon")]
    return rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work);
    #[cfg(not(feature = "rayon"))]
    {
        let _ = threads;
        work()
    }
}

/// As many bytes as a kernel fills for [`assert_asks`].
#[cfg(test)]
pub(super) const ASKED: usize = 6 << 20;

/// That a kernel which fills [`ASKED`] bytes with ones asks every 128 KiB whether to stop.
#[cfg(test)]
pub(super) fn assert_asks(what: &str, out: &mut [u8], run: impl Fn(&mut [u8]) -> Result<(), super::Stopped>) {
    out.fill(0);
    let (outcome, looks) = looks::count(usize::MAX, || run(out));
    assert_eq!(outcome, Ok(()), "{what}");
    assert!(out.iter().all(|&byte| byte == 1), "{what}");
    assert!(looks.len() >= (ASKED >> 17) - 3, "{what}: asked {} times", looks.len());
}

/// How often a thread asks whether to stop.
pub mod looks {
    use std::cell::RefCell;
    use std::time::Instant;

    thread_local! {
        /// The look at which this thread is told to stop, and when it looked; `None` if nobody counts.
        static LOOKS: RefCell<Option<(usize, Vec<Instant>)>> = const { RefCell::new(None) };
    }

    /// Runs `work` on this thread, which is told to stop from its look `last` on. Returns also when it looked.
    pub fn count<R>(last: usize, work: impl FnOnce() -> R) -> (R, Vec<Instant>) {
        LOOKS.set(Some((last, Vec::new())));
        let result = work();
        (result, LOOKS.take().map(|(_, times)| times).unwrap_or_default())
    }

    /// Counts a look. Whether the thread is told to stop.
    pub(in super::super) fn is_last() -> bool {
        LOOKS.with_borrow_mut(|looks| {
            looks.as_mut().is_some_and(|(last, times)| {
                times.push(Instant::now());
                times.len() >= *last
            })
        })
    }
}
