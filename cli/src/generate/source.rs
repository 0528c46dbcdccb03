//! Choices that follow from a seed, the same on every machine.

use crate::random::{Random, Range};
use onnxref::{DType, Tensor};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

pub(super) struct Source(Pcg64);

impl Source {
    pub(super) fn new(seed: u64) -> Source {
        Source(Pcg64::seed_from_u64(seed))
    }

    /// The choices for a name.
    pub(super) fn named(seed: u64, name: &str) -> Source {
        let hash = Sha256::digest(format!("{seed} {name}"));
        Source::new(hash.iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }

    pub(super) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`; 0 if there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        // The upper bits: a usize may have 32.
        ((self.word() >> 33) % (end.max(1) as u64)) as usize
    }

    /// True once in that many times, on average.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of a list; the default of an empty one.
    pub(super) fn pick<T: Clone + Default>(&mut self, list: &[T]) -> T {
        list.get(self.below(list.len())).cloned().unwrap_or_default()
    }

    /// A tensor of a type and shape, with numbers of a range.
    pub(super) fn tensor(
        &mut self,
        dtype: DType,
        shape: &[usize],
        range: Option<(f64, f64)>,
    ) -> Result<Tensor, String> {
        Random::new(self.word()).tensor(dtype, shape, range.map(Range::from))
    }
}
