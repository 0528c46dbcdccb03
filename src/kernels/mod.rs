//! Kernels: loops over plain slices. They don't know tensors or operators.
//!
//! This file is the vocabulary that all kernels share. Each kind has a folder ([`gather`], [`lanes`]). Large work is
//! shared among threads ([`parallel`]). Loops are plain code, compiled for several levels of the processor ([`cpu`]).

pub(crate) mod attention;
pub(crate) mod convert;
pub(crate) mod copy;
mod cpu;
pub(crate) mod elementwise;
#[cfg(test)]
pub(crate) mod exact;
pub(crate) mod functions;
pub(crate) mod gather;
pub(crate) mod gemm;
pub(crate) mod half;
pub(crate) mod lanes;
pub(crate) mod number;
mod parallel;
pub(crate) mod permute;
mod positions;
pub(crate) mod random;
pub(crate) mod scatter;
pub(crate) mod steps;
#[cfg(feature = "rayon")]
mod team;
#[cfg_attr(not(test), expect(dead_code, reason = "pools and convolutions are to come"))]
pub(crate) mod windows;

#[cfg(test)]
pub(crate) use cpu::tests::at_each_level;
pub use parallel::available_threads;
pub(crate) use parallel::{Lookout, copied, each, fill, pieces};

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The caller's request to stop, now or at a time.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    called: AtomicBool,
    at: Option<Instant>,
}

impl Stop {
    /// Stops after a time, counted from now.
    pub(crate) fn after(time: Duration) -> Stop {
        // A time too far ahead for `Instant` never comes.
        Stop { called: AtomicBool::new(false), at: Instant::now().checked_add(time) }
    }

    pub(crate) fn stop(&self) {
        self.called.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        #[cfg(test)]
        if looks::is_last() {
            return true;
        }
        self.called.load(Ordering::Relaxed) || self.at.is_some_and(|at| Instant::now() >= at)
    }
}

/// The resources of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resources<'a> {
    /// Maximum number of threads, the caller's included.
    #[cfg_attr(not(feature = "rayon"), allow(dead_code))]
    pub(crate) threads: usize,
    /// Set when the caller asks to stop.
    pub(crate) stop: Option<&'a Stop>,
}

impl<'a> Resources<'a> {
    /// For work step by step.
    pub(crate) fn lookout(self) -> Lookout<'a> {
        Lookout::new(self.stop)
    }
}

/// Why a kernel stopped early. Its output is garbage then.
///
/// If parts of the work stop for different reasons, the first of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stopped {
    /// An index is out of range.
    OutOfRange,
    /// The caller asked to stop.
    Cancelled,
    /// Operands and output don't fit: a mistake of the kernel's caller.
    Misfit,
    /// A helper thread panicked.
    #[cfg_attr(not(feature = "rayon"), expect(dead_code, reason = "there are no helpers"))]
    Panicked,
}

/// The product of `unit` and `dims`. Saturates: the dimensions beside a 0 may overflow, and no slice is that large.
pub(crate) fn volume<'a>(unit: usize, dims: impl IntoIterator<Item = &'a usize>) -> usize {
    dims.into_iter().fold(unit, |volume, &dim| volume.saturating_mul(dim))
}

/// A size for tests: `full`, or `small` under an interpreter (miri), where everything takes thousands of times as long.
#[cfg(test)]
pub(crate) const fn sized<T: Copy>(full: T, small: T) -> T {
    if cfg!(miri) { small } else { full }
}

/// Runs `work` where that many threads can help.
#[cfg(test)]
pub(crate) fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    #[cfg(feature = "rayon")]
    return rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work);
    #[cfg(not(feature = "rayon"))]
    {
        let _ = threads;
        work()
    }
}

/// That a kernel which fills 24 MiB with ones asks every 128 KiB whether to stop.
#[cfg(test)]
fn assert_asks(what: &str, out: &mut [u8], run: impl Fn(&mut [u8]) -> Result<(), Stopped>) {
    out.fill(0);
    let (outcome, looks) = looks::count(usize::MAX, || run(out));
    assert_eq!(outcome, Ok(()), "{what}");
    assert!(out.iter().all(|&byte| byte == 1), "{what}");
    assert!(looks.len() >= 180, "{what}: asked {} times", looks.len());
}

/// How often a thread asks whether to stop.
#[cfg(test)]
pub(crate) mod looks {
    use std::cell::RefCell;
    use std::time::Instant;

    thread_local! {
        /// The look at which this thread is told to stop, and when it looked; `None` if nobody counts.
        static LOOKS: RefCell<Option<(usize, Vec<Instant>)>> = const { RefCell::new(None) };
    }

    /// Runs `work` on this thread, which is told to stop from its look `last` on. Returns also when it looked.
    pub(crate) fn count<R>(last: usize, work: impl FnOnce() -> R) -> (R, Vec<Instant>) {
        LOOKS.set(Some((last, Vec::new())));
        let result = work();
        (result, LOOKS.take().map(|(_, times)| times).unwrap_or_default())
    }

    /// Counts a look. Whether the thread is told to stop.
    pub(super) fn is_last() -> bool {
        LOOKS.with_borrow_mut(|looks| {
            looks.as_mut().is_some_and(|(last, times)| {
                times.push(Instant::now());
                times.len() >= *last
            })
        })
    }
}
