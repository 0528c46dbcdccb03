//! The first elements of a lane in the order of their size, and their indices.

use super::Number;
use super::pick::Pick;
use super::reduce::between_looks;
use super::reductions::Extreme;
use crate::{Stop, Stopped, lookout};

/// The elements from the extreme on, as many as there is room for; of equal ones the first come first.
#[derive(Debug)]
pub struct First<T, const LEAST: bool>(pub Extreme<T, LEAST>);

impl<T: Number, const LEAST: bool> Pick<T> for First<T, LEAST> {
    type Value = T;
    type Beside = i64;

    fn of(&self, lane: &[T], values: &mut [T], indices: &mut [i64], stop: Option<&Stop>) -> Result<(), Stopped> {
        let room = values.len().min(indices.len()).min(lane.len());
        let mut heap = Heap { order: &self.0, values, indices };
        let (first, others) = lane.split_at(room);
        for (at, &value) in first.iter().enumerate() {
            heap.add(at, (value, at as i64));
            if at.is_multiple_of(BETWEEN_LOOKS) {
                lookout::look(stop)?;
            }
        }
        for at in between_looks(others.len(), stop) {
            let at = at?;
            let numbers = (room + at.start) as i64..;
            for (&value, index) in others.get(at).unwrap_or(&[]).iter().zip(numbers) {
                // Of equal elements those that came before stay.
                if heap.values.first().is_some_and(|last| self.0.precedes(value, *last)) {
                    heap.sink(room, (value, index));
                }
            }
        }
        // The last of those that are left goes to the end.
        for end in (1..room).rev() {
            let (last, own) = (heap.get(0), heap.get(end));
            heap.set(end, last);
            heap.sink(end, own);
            if end.is_multiple_of(BETWEEN_LOOKS) {
                lookout::look(stop)?;
            }
        }
        Ok(())
    }
}

/// Elements that are put in order between two looks whether to stop.
const BETWEEN_LOOKS: usize = 1 << 10;

/// Elements and their indices, the last one at the top.
struct Heap<'a, T, const LEAST: bool> {
    order: &'a Extreme<T, LEAST>,
    values: &'a mut [T],
    indices: &'a mut [i64],
}

impl<T: Number, const LEAST: bool> Heap<'_, T, LEAST> {
    /// Whether an element comes before another.
    #[inline(always)]
    fn precedes(&self, (x, a): (T, i64), (y, b): (T, i64)) -> bool {
        self.order.precedes(x, y) | (a < b) & !self.order.precedes(y, x)
    }

    /// An element, of which there is one.
    #[inline(always)]
    fn get(&self, at: usize) -> (T, i64) {
        let (value, index) = (self.values.get(at), self.indices.get(at));
        (value.copied().unwrap_or(T::ZERO), index.copied().unwrap_or(0))
    }

    #[inline(always)]
    fn set(&mut self, at: usize, (value, index): (T, i64)) {
        if let (Some(to), Some(number)) = (self.values.get_mut(at), self.indices.get_mut(at)) {
            (*to, *number) = (value, index);
        }
    }

    /// Adds an element to `len` others.
    #[inline(always)]
    fn add(&mut self, len: usize, own: (T, i64)) {
        let mut at = len;
        while let Some(above) = at.checked_sub(1).map(|at| at / 2)
            && self.precedes(self.get(above), own)
        {
            self.set(at, self.get(above));
            at = above;
        }
        self.set(at, own);
    }

    /// Puts an element in the place of the top of `len`, and down until those below come before it.
    #[inline(always)]
    fn sink(&mut self, len: usize, own: (T, i64)) {
        let mut at = 0;
        loop {
            let mut below = 2 * at + 1;
            if below >= len {
                break;
            }
            if below + 1 < len {
                below += usize::from(self.precedes(self.get(below), self.get(below + 1)));
            }
            let last = self.get(below);
            if !self.precedes(own, last) {
                break;
            }
            self.set(at, last);
            at = below;
        }
        self.set(at, own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Ordered;
    use proptest::prelude::*;

    fn first<T: Number, const LEAST: bool>(order: Extreme<T, LEAST>, lane: &[T], count: usize) -> Vec<i64> {
        let (mut values, mut indices) = (vec![T::ZERO; count], vec![0; count]);
        First(order).of(lane, &mut values, &mut indices, None).unwrap();
        let at = indices.iter().map(|index| lane[*index as usize]);
        assert!(at.zip(values).all(|(a, b)| a == b || a.is_nan() && b.is_nan()));
        indices
    }

    #[test]
    fn nan_is_the_greatest() {
        let lane = [1.0, f32::NAN, 3.0, f32::NAN, -0.0, 0.0, f32::INFINITY];
        assert_eq!(first(<f32 as Ordered<f32>>::extreme::<false>(), &lane, 7), [1, 3, 6, 2, 0, 4, 5]);
        assert_eq!(first(<f32 as Ordered<f32>>::extreme::<true>(), &lane, 7), [4, 5, 0, 2, 6, 1, 3]);
    }

    proptest! {
        #[test]
        fn as_if_sorted(lane in prop::collection::vec(0u8..20, 0..200), share in 0f64..=1.0) {
            let count = (share * lane.len() as f64) as usize;
            let mut order: Vec<i64> = (0..lane.len() as i64).collect();
            order.sort_by_key(|k| lane[*k as usize]);
            prop_assert_eq!(first(<u8 as Ordered<u8>>::extreme::<true>(), &lane, count), &order[..count]);
            order.sort_by_key(|k| (std::cmp::Reverse(lane[*k as usize]), *k));
            prop_assert_eq!(first(<u8 as Ordered<u8>>::extreme::<false>(), &lane, count), &order[..count]);
            // Signed numbers, as bytes.
            order.sort_by_key(|k| (std::cmp::Reverse((lane[*k as usize] << 4).cast_signed()), *k));
            let signed: Vec<u8> = lane.iter().map(|x| x << 4).collect();
            prop_assert_eq!(first(<i8 as Ordered<u8>>::extreme::<false>(), &signed, count), &order[..count]);
        }
    }
}
