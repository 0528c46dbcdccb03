//! Kernels: loops over plain slices. They know no tensor and no operator.
//!
//! This file is the vocabulary that all kernels share. Each kind has a folder ([`gather`]). Large work is shared among
//! threads ([`parallel`]). Loops are plain code, compiled for several levels of the processor ([`cpu`]).

mod cpu;
pub(crate) mod gather;
pub(crate) mod index;
mod parallel;
#[cfg(feature = "rayon")]
mod team;

use std::sync::atomic::AtomicBool;

/// What a kernel may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resources<'a> {
    /// Maximum number of threads, the caller's included.
    pub(crate) threads: usize,
    /// Set when the caller asks to stop.
    pub(crate) stop: Option<&'a AtomicBool>,
}

/// The product of `unit` and `dims`. Saturates: next to a dimension of 0 the others may overflow, and a volume that
/// large is beyond every slice.
pub(crate) fn volume<'a>(unit: usize, dims: impl IntoIterator<Item = &'a usize>) -> usize {
    dims.into_iter().fold(unit, |volume, &dim| volume.saturating_mul(dim))
}
