//! The attribute `seed`.

use crate::ops::prelude::*;
use kernels::random::Philox;
use std::hash::{BuildHasher, RandomState};

/// Where the numbers of a node start.
///
/// The text leaves the generator open, and wants a seed to be made up if none is given. With a seed all runs draw the same
/// numbers: those of Philox4x32-10 whose key is the bits of the seed, and whose counter is the number of the element. Without
/// one each run draws others, by a key from the randomness of the process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed(Option<f32>);

impl Seed {
    pub(super) fn of(node: &Node<'_>) -> Result<Seed> {
        Ok(Seed(node.optional("seed", Node::float)?))
    }

    #[cfg(test)]
    pub(super) fn unsaid() -> Seed {
        Seed(None)
    }

    pub(super) fn generator(self) -> Philox {
        Philox::new(match self.0 {
            Some(seed) => seed.to_bits().into(),
            None => RandomState::new().hash_one(0),
        })
    }
}
