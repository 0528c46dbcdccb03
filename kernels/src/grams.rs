//! Counts known n-grams in rows of tokens.

use super::hashed::NumberMap;
use super::{Lookout, Stopped};

/// Known n-grams, as a tree of their tokens, which are numbers from 0 on.
#[derive(Debug)]
pub struct Grams {
    /// From a place in the tree and a token to the place behind it. The root is at 0.
    next: NumberMap<(usize, u32), usize>,
    /// The same for the root, where most walks end: by the token, 0 if no place is behind it.
    firsts: Vec<usize>,
    places: Vec<Place>,
    count: usize,
    longest: usize,
}

/// A place in the tree.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The number of the n-gram that ends here.
    end: Option<usize>,
    /// No other place is behind it.
    is_last: bool,
}

impl Place {
    const NEW: Place = Place { end: None, is_last: true };

    /// Counts the n-gram that ends here.
    #[inline]
    fn count(self, counts: &mut [u64]) {
        if let Some(count) = self.end.and_then(|number| counts.get_mut(number)) {
            *count += 1;
        }
    }
}

impl Grams {
    pub fn new() -> Grams {
        Grams { next: NumberMap::default(), firsts: Vec::new(), places: vec![Place::NEW], count: 0, longest: 0 }
    }

    /// Bytes of memory that a token of an n-gram takes at most, while the tree grows.
    pub const TOKEN: usize = 192;

    /// Adds an n-gram, and returns its number: equal ones have the same.
    pub fn add(&mut self, gram: impl Iterator<Item = u32>) -> usize {
        let (mut place, mut len) = (0, 0);
        for token in gram {
            self.places.get_mut(place).into_iter().for_each(|place| place.is_last = false);
            if place == 0 {
                self.firsts.resize(self.firsts.len().max(token as usize + 1), 0);
            }
            let next = match self.firsts.get_mut(token as usize).filter(|_| place == 0) {
                Some(first) => first,
                None => self.next.entry((place, token)).or_insert(0),
            };
            if *next == 0 {
                *next = self.places.len();
                self.places.push(Place::NEW);
            }
            place = *next;
            len += 1;
        }
        self.longest = self.longest.max(len);
        let count = &mut self.count;
        let number = self.places.get_mut(place).map(|place| {
            *place.end.get_or_insert_with(|| {
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

    #[inline]
    fn place(&self, at: usize) -> Place {
        self.places.get(at).copied().unwrap_or(Place::NEW)
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
            for (start, token) in row.iter().enumerate() {
                lookout.after(size_of::<(usize, u32)>())?;
                let Some(first) = self.firsts.get(*token as usize).filter(|first| **first > 0) else { continue };
                let (mut at, mut place, mut next) = (*first, self.place(*first), start + distance);
                if distance == 1 {
                    place.count(counts);
                }
                while let Some(token) = row.get(next).filter(|_| !place.is_last) {
                    lookout.after(size_of::<(usize, u32)>())?;
                    let Some(behind) = self.next.get(&(at, *token)) else { break };
                    (at, place, next) = (*behind, self.place(*behind), next + distance);
                    place.count(counts);
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
