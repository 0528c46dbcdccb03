//! Counts of n-grams: of sequences that are known beforehand, in rows of tokens.

use super::{Lookout, Stopped};
use std::collections::HashMap;

/// Known n-grams, as a tree of their tokens.
#[derive(Debug)]
pub struct Grams {
    /// From a place in the tree and a token to the place behind it. The root is at 0.
    next: HashMap<(usize, u32), usize>,
    /// The number of the n-gram that ends at each place.
    ends: Vec<Option<usize>>,
    count: usize,
    longest: usize,
}

impl Grams {
    pub fn new() -> Grams {
        Grams { next: HashMap::new(), ends: vec![None], count: 0, longest: 0 }
    }

    /// Bytes of memory that a token of an n-gram takes at most, while the tree grows.
    pub const TOKEN: usize = 192;

    /// Adds an n-gram, and returns its number: equal ones have the same.
    pub fn add(&mut self, gram: impl Iterator<Item = u32>) -> usize {
        let (mut place, mut len) = (0, 0);
        for token in gram {
            let new = self.ends.len();
            place = *self.next.entry((place, token)).or_insert(new);
            if place == new {
                self.ends.push(None);
            }
            len += 1;
        }
        self.longest = self.longest.max(len);
        let count = &mut self.count;
        let number = self.ends.get_mut(place).map(|end| {
            *end.get_or_insert_with(|| {
                *count += 1;
                *count - 1
            })
        });
        number.unwrap_or_default()
    }

    /// The number of different n-grams.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// The most distances between tokens that matter in rows of a length.
    fn distances(&self, len: usize, skips: usize) -> usize {
        let most = if self.longest < 2 { 1 } else { len.saturating_sub(1).max(1) };
        skips.saturating_add(1).min(most)
    }

    /// Upper bound on the steps of [`Grams::count`] for a row of a length.
    pub fn steps(&self, len: usize, skips: usize) -> usize {
        len.saturating_mul(self.distances(len, skips)).saturating_mul(self.longest)
    }

    /// Adds to `counts` how often each n-gram is in a row: its tokens one after the other, or all with as many others between
    /// them, up to `skips`. An n-gram of one token has none between, and counts once.
    pub fn count(
        &self,
        row: &[u32],
        skips: usize,
        counts: &mut [u64],
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        for distance in 1..=self.distances(row.len(), skips) {
            for start in 0..row.len() {
                let mut place = 0;
                for (k, token) in row.iter().skip(start).step_by(distance).enumerate() {
                    lookout.after(size_of::<(usize, u32)>())?;
                    match self.next.get(&(place, *token)) {
                        Some(next) => place = *next,
                        None => break,
                    }
                    let end = self.ends.get(place).copied().flatten().filter(|_| k > 0 || distance == 1);
                    if let Some(count) = end.and_then(|number| counts.get_mut(number)) {
                        *count += 1;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Default for Grams {
    fn default() -> Grams {
        Grams::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(grams: &[&[u32]], row: &[u32], skips: usize) -> Vec<u64> {
        let mut tree = Grams::new();
        let numbers: Vec<usize> = grams.iter().map(|gram| tree.add(gram.iter().copied())).collect();
        let mut counts = vec![0; tree.len()];
        tree.count(row, skips, &mut counts, &mut Lookout::new(None)).unwrap();
        numbers.into_iter().map(|number| counts[number]).collect()
    }

    /// Counts each n-gram by itself.
    fn plain(gram: &[u32], row: &[u32], skips: usize) -> u64 {
        let distances = if gram.len() == 1 { 1 } else { skips + 1 };
        let at = |start: usize, distance: usize| (0..gram.len()).map(move |k| row.get(start + k * distance));
        let found = |start, distance| u64::from(at(start, distance).eq(gram.iter().map(Some)));
        (1..=distances).flat_map(|distance| (0..row.len()).map(move |start| found(start, distance))).sum()
    }

    #[test]
    fn all_rows_of_three_tokens() {
        let grams: [&[u32]; 8] = [&[0], &[1], &[0, 1], &[1, 0, 1], &[0, 0], &[2, 2, 2, 2], &[0, 1], &[1, 1, 2]];
        for len in 0..7 {
            for code in 0..3usize.pow(len) {
                let row: Vec<u32> = (0..len).map(|k| (code / 3usize.pow(k) % 3) as u32).collect();
                for skips in [0, 1, 2, 5, usize::MAX] {
                    let want: Vec<u64> = grams.iter().map(|gram| plain(gram, &row, skips.min(9))).collect();
                    assert_eq!(counts(&grams, &row, skips), want, "{row:?} {skips}");
                }
            }
        }
    }
}
