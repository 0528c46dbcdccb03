//! Kernels of onnxref: loops over plain slices. They don't know tensors or operators.
//!
//! A crate of its own, so that whoever changes an operator doesn't compile them again. Nothing in it is stable.
//!
//! This file is the vocabulary that all kernels share. Each kind has a folder ([`gather`], [`lanes`]). Large work is
//! shared among threads ([`parallel`]). Loops are plain code, compiled for several levels of the processor ([`cpu`]).

#![allow(
    rustdoc::private_intra_doc_links,
    missing_docs,
    reason = "for one crate, which reads the code: most names of fields and methods say it"
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod attention;
pub mod bands;
pub mod bytes;
pub mod channels;
pub mod convert;
pub mod copy;
mod cpu;
pub mod deform;
pub mod determinant;
pub mod distinct;
pub mod elementwise;
#[cfg(test)]
mod exact;
pub mod fold;
mod format;
pub mod fourier;
pub mod functions;
pub mod gather;
pub mod gemm;
pub mod grams;
pub mod half;
pub mod hashed;
pub mod lanes;
mod lookout;
pub mod losses;
pub mod number;
mod parallel;
pub mod permute;
#[cfg(feature = "image")]
pub mod pictures;
pub mod pool;
mod positions;
pub mod quantize;
mod quotients;
pub mod random;
pub mod recurrent;
pub mod regions;
pub mod resample;
pub mod scatter;
pub mod scores;
pub mod steps;
pub mod suppress;
pub mod tapers;
#[cfg(feature = "rayon")]
mod team;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(target_arch = "x86_64")]
mod tiles;
pub mod trees;
pub mod vectors;
pub mod windows;

pub use format::{Format, Small, Specials};
pub use lookout::Lookout;
pub use parallel::{available_threads, copied, each, fill, pieces, with_room};
pub use positions::position_of;

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The caller's request to stop, now or at a time.
#[derive(Default)]
pub struct Stop {
    called: AtomicBool,
    at: Option<Instant>,
    /// Says whether the caller wants to stop.
    ask: Option<Ask>,
}

type Ask = Box<dyn Fn() -> bool + Send + Sync>;

impl Stop {
    /// Stops after a time, counted from now.
    pub fn after(time: Duration) -> Stop {
        // A time too far ahead for `Instant` never comes.
        Stop { at: Instant::now().checked_add(time), ..Stop::default() }
    }

    /// Stops once `ask` says so. It is called often, by every thread that works.
    pub fn when(ask: impl Fn() -> bool + Send + Sync + 'static) -> Stop {
        Stop { ask: Some(Box::new(ask)), ..Stop::default() }
    }

    /// As [`Stop::when`], and after a time.
    pub fn when_or_after(ask: impl Fn() -> bool + Send + Sync + 'static, time: Duration) -> Stop {
        Stop { ask: Some(Box::new(ask)), ..Stop::after(time) }
    }

    pub fn stop(&self) {
        self.called.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        #[cfg(any(test, feature = "testing"))]
        if testing::looks::is_last() {
            return true;
        }
        self.called.load(Ordering::Relaxed)
            || self.at.is_some_and(|at| Instant::now() >= at)
            || self.ask.as_ref().is_some_and(|ask| ask())
    }

    /// Why it is set.
    #[cold]
    pub fn reason(&self) -> Stopped {
        let late = self.at.is_some_and(|at| Instant::now() >= at);
        if late && !self.called.load(Ordering::Relaxed) { Stopped::Late } else { Stopped::Cancelled }
    }
}

impl Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("called", &self.called).field("at", &self.at).finish_non_exhaustive()
    }
}

/// The resources of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Resources<'a> {
    /// Maximum number of threads, the caller's included.
    pub threads: usize,
    /// Set when the caller asks to stop.
    pub stop: Option<&'a Stop>,
}

impl<'a> Resources<'a> {
    /// For work step by step.
    pub fn lookout(self) -> Lookout<'a> {
        Lookout::new(self.stop)
    }
}

/// Why a kernel stopped early. Its output is garbage then.
///
/// If parts of the work stop for different reasons, the first of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stopped {
    /// An index is out of range.
    OutOfRange,
    /// The caller asked to stop.
    Cancelled,
    /// The time that the caller gave is up.
    Late,
    /// Operands and output don't fit: a mistake of the kernel's caller.
    Misfit,
    /// A helper thread panicked.
    Panicked,
}

/// The product of `unit` and `dims`. Saturates: the dimensions beside a 0 may overflow, and no slice is that large.
pub fn volume<'a>(unit: usize, dims: impl IntoIterator<Item = &'a usize>) -> usize {
    dims.into_iter().fold(unit, |volume, &dim| volume.saturating_mul(dim))
}
