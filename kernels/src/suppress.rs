//! Selects boxes by their scores (NonMaxSuppression): those that overlap a better one are left out.

use super::Stopped;
use super::cpu::for_each_level;
use super::lookout::Lookout;

/// The lowest and the highest coordinate of a box along either axis.
pub type Bounds = [f64; 4];

/// Which boxes are selected.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// How many at most.
    pub most: usize,
    /// One that overlaps a selected box by more than this share of both is not.
    pub share: f32,
    /// One with a lower score is not.
    pub least: Option<f32>,
}

/// Memory for as many boxes as there are.
#[derive(Debug)]
pub struct Room<'a> {
    pub candidates: &'a mut [usize],
    pub selected: &'a mut [Bounds],
}

/// Writes the numbers of the boxes that are selected, the highest score first; of equal ones the lowest number, and NaN
/// last. Returns how many these are. `charge` is called with the number of comparisons before they are done.
pub fn select<E: From<Stopped>>(
    boxes: &[Bounds],
    scores: &[f32],
    choice: Choice,
    room: Room<'_>,
    numbers: &mut [i64],
    lookout: &mut Lookout<'_>,
    mut charge: impl FnMut(usize) -> Result<(), E>,
) -> Result<usize, E> {
    let mut heap = Heap { scores, candidates: room.candidates, len: 0 };
    heap.fill(choice.least, lookout)?;
    let mut count = 0;
    while count < choice.most.min(numbers.len()) {
        let Some(best) = heap.pop() else { break };
        let Some(own) = boxes.get(best) else { return Err(Stopped::Misfit.into()) };
        charge(count)?;
        let mut is_free = true;
        for others in room.selected.get(..count).unwrap_or(&[]).chunks(BLOCK) {
            lookout.after(size_of_val(others))?;
            is_free = is_free && !overlaps_one(own, others, choice.share);
        }
        lookout.after(size_of::<Bounds>())?;
        if let (true, Some(selected), Some(number)) = (is_free, room.selected.get_mut(count), numbers.get_mut(count)) {
            (*selected, *number) = (*own, best as i64);
            count += 1;
        }
    }
    Ok(count)
}

/// Boxes that are compared between two looks whether to stop.
const BLOCK: usize = 1 << 10;

for_each_level! {
    /// Whether a box overlaps one of others by more than a share.
    fn overlaps_one<>(own: &Bounds, others: &[Bounds], share: f32) -> bool = overlaps_one_body;
}

#[inline(always)]
fn overlaps_one_body(own: &Bounds, others: &[Bounds], share: f32) -> bool {
    let mut overlaps = false;
    for other in others {
        overlaps |= overlap(own, other) > share;
    }
    overlaps
}

/// The share of two boxes that is in both, rounded to float; NaN if neither has an area.
#[inline(always)]
fn overlap(a: &Bounds, b: &Bounds) -> f32 {
    let [a0, a1, a2, a3] = *a;
    let [b0, b1, b2, b3] = *b;
    let both = (a1.min(b1) - a0.max(b0)).max(0.0) * (a3.min(b3) - a2.max(b2)).max(0.0);
    let either = (a1 - a0) * (a3 - a2) + (b1 - b0) * (b3 - b2) - both;
    (both / either) as f32
}

/// The candidates that are left, the best at the top.
struct Heap<'a> {
    scores: &'a [f32],
    candidates: &'a mut [usize],
    len: usize,
}

impl Heap<'_> {
    /// Takes all whose score is not too low.
    fn fill(&mut self, least: Option<f32>, lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        for (number, score) in self.scores.iter().enumerate() {
            lookout.after(size_of::<usize>())?;
            if least.is_none_or(|least| *score >= least)
                && let Some(to) = self.candidates.get_mut(self.len)
            {
                *to = number;
                self.len += 1;
            }
        }
        for at in (0..self.len / 2).rev() {
            lookout.after(4 * size_of::<usize>())?;
            self.sink(at);
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<usize> {
        let best = *self.candidates.get(..self.len)?.first()?;
        self.len -= 1;
        self.candidates.swap(0, self.len);
        self.sink(0);
        Some(best)
    }

    /// Moves a candidate down until it is better than those below it.
    fn sink(&mut self, mut at: usize) {
        let Some(heap) = self.candidates.get_mut(..self.len) else { return };
        let score = |number: usize| self.scores.get(number).copied().unwrap_or(f32::NAN);
        let better = |a: usize, b: usize| match (score(a), score(b)) {
            (x, y) if x > y || y.is_nan() && !x.is_nan() => true,
            (x, y) => (x == y || x.is_nan() && y.is_nan()) && a < b,
        };
        while let (Some(&own), Some(&left)) = (heap.get(at), heap.get(2 * at + 1)) {
            let (mut below, mut best) = (2 * at + 1, left);
            if let Some(&right) = heap.get(2 * at + 2).filter(|right| better(**right, left)) {
                (below, best) = (2 * at + 2, right);
            }
            if !better(best, own) {
                return;
            }
            heap.swap(at, below);
            at = below;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::{at_each_level, looks};
    use proptest::prelude::*;

    fn run(
        boxes: &[Bounds],
        scores: &[f32],
        choice: Choice,
        stop: Option<&Stop>,
    ) -> Result<(Vec<i64>, usize), Stopped> {
        let (mut candidates, mut selected) = (vec![0; boxes.len()], vec![[0.0; 4]; boxes.len()]);
        let (mut numbers, mut work) = (vec![0; boxes.len()], 0);
        let room = Room { candidates: &mut candidates, selected: &mut selected };
        let charge = |count| {
            work += count;
            Ok(())
        };
        let count = select::<Stopped>(boxes, scores, choice, room, &mut numbers, &mut Lookout::new(stop), charge)?;
        numbers.truncate(count);
        Ok((numbers, work))
    }

    const ALL: Choice = Choice { most: usize::MAX, share: 1.0, least: None };

    #[test]
    fn in_the_order_of_scores() {
        let scores = [0.5, f32::NAN, 0.9, 0.5, f32::INFINITY, -1.0, f32::NAN, 0.9];
        let boxes = [[0.0; 4]; 8];
        assert_eq!(run(&boxes, &scores, ALL, None), Ok((vec![4, 2, 7, 0, 3, 5, 1, 6], 28)));
        assert_eq!(run(&boxes, &scores, Choice { most: 3, ..ALL }, None), Ok((vec![4, 2, 7], 3)));
        assert_eq!(run(&boxes, &scores, Choice { least: Some(0.5), ..ALL }, None).unwrap().0, [4, 2, 7, 0, 3]);
    }

    #[test]
    fn boxes_that_overlap() {
        // The second has a third of both with the first, the third 7/10 of the area of the first.
        let boxes = [[0.0, 1.0, 0.0, 1.0], [0.5, 1.5, 0.0, 1.0], [0.0, 0.7, 0.0, 1.0], [5.0, 6.0, 0.0, 1.0]];
        let at = |share| run(&boxes, &[4.0, 3.0, 2.0, 1.0], Choice { share, ..ALL }, None).unwrap().0;
        assert_eq!(at(1.0 / 3.0), [0, 1, 3]);
        assert_eq!(at(0.33), [0, 3]);
        // Exactly as much is not more.
        assert_eq!(at(0.7), [0, 1, 2, 3]);
        assert_eq!(at(0.69), [0, 1, 3]);
        assert_eq!(at(0.0), [0, 3]);
    }

    proptest! {
        #[test]
        fn random_boxes(values in prop::collection::vec((0u8..20, 1u8..9, 0u8..20, 1u8..9, 0u8..9), 0..60), share in 0f32..1.0) {
            let bounds = |v: &(u8, u8, u8, u8, u8)| [v.0, v.0 + v.1, v.2, v.2 + v.3].map(f64::from);
            let boxes: Vec<Bounds> = values.iter().map(bounds).collect();
            let scores: Vec<f32> = values.iter().map(|v| f32::from(v.4)).collect();
            let mut order: Vec<usize> = (0..boxes.len()).collect();
            order.sort_by_key(|k| (std::cmp::Reverse(values[*k].4), *k));
            let mut want: Vec<usize> = Vec::new();
            for k in order {
                if want.iter().all(|other| overlap(&boxes[*other], &boxes[k]) <= share) {
                    want.push(k);
                }
            }
            let want: Vec<i64> = want.into_iter().map(|k| k as i64).collect();
            at_each_level(|| assert_eq!(run(&boxes, &scores, Choice { share, ..ALL }, None).unwrap().0, want));
        }
    }

    #[test]
    fn it_can_be_stopped() {
        let (boxes, scores, stop) = (vec![[0.0; 4]; 1 << 18], vec![1f32; 1 << 18], Stop::default());
        for last in [1, 20, 1000] {
            let (outcome, looks) = looks::count(last, || run(&boxes, &scores, ALL, Some(&stop)));
            assert_eq!((outcome, looks.len()), (Err(Stopped::Cancelled), last));
        }
    }
}
