//! Maps whose keys are a few numbers, for those that are looked up for each element.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map from a few numbers. What hashes them takes a product for each; that of std takes several times as long.
pub type NumberMap<K, V> = HashMap<K, V, Mixing>;

/// Where hashes start, and what they are multiplied by: from the randomness of the process, so that nobody knows beforehand
/// which keys have equal ones.
#[derive(Debug, Clone)]
pub struct Mixing {
    start: u64,
    factor: u64,
}

impl Default for Mixing {
    fn default() -> Mixing {
        let random = RandomState::new();
        Mixing { start: random.hash_one(0), factor: random.hash_one(1) | 1 }
    }
}

impl BuildHasher for Mixing {
    type Hasher = Mixed;

    #[inline]
    fn build_hasher(&self) -> Mixed {
        Mixed { hash: self.start, factor: self.factor }
    }
}

/// The hash of numbers.
#[derive(Debug)]
pub struct Mixed {
    hash: u64,
    factor: u64,
}

impl Hasher for Mixed {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        // Each bit of a number changes bits of either half of the product.
        let product = u128::from(self.hash ^ number) * u128::from(self.factor);
        self.hash = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // By some factors the low bits of products of many numbers are few: higher ones make up for them.
        self.hash ^ (self.hash >> 20) ^ (self.hash >> 40)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Few keys have the low bits of another one's hash, also if they differ in their high bits only, or by halves.
    #[test]
    fn keys_spread() {
        let count = crate::testing::sized(4096, 256);
        let spread = |key: &dyn Fn(u64) -> u64| {
            let mixing = Mixing::default();
            let lows: HashSet<u64> = (0..count as u64).map(|k| mixing.hash_one(key(k)) % (4 * count as u64)).collect();
            // At random 88 % are expected.
            assert!(lows.len() > count * 3 / 5, "{} of {count}", lows.len());
        };
        spread(&|k| k);
        spread(&|k| k << 52);
        spread(&|k| k << 32 | k);
        spread(&|k| (k as f64).to_bits());
    }

    #[test]
    fn numbers_of_several_types() {
        let map: NumberMap<(usize, u32), u32> = (0..100).map(|k| ((k as usize / 7, k % 7), k)).collect();
        assert!((0..100).all(|k| map.get(&(k as usize / 7, k % 7)) == Some(&k)));
        assert_eq!(map.get(&(2, 7)), None);
        let map: NumberMap<&str, u32> = [("ab", 1), ("ba", 2)].into_iter().collect();
        assert_eq!((map.get("ab"), map.get("ba"), map.get("b")), (Some(&1), Some(&2), None));
    }
}
