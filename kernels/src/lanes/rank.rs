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
        let (mut heap, room) = (Heap { order: &self.0, lane, indices, len: 0 }, values.len());
        for at in between_looks(lane.len(), stop) {
            for at in at? {
                heap.add(at as i64, room);
            }
        }
        // The last of those that are left goes to the end.
        while heap.len > 1 {
            heap.len -= 1;
            heap.indices.swap(0, heap.len);
            heap.sink();
            if heap.len.is_multiple_of(BETWEEN_LOOKS) {
                lookout::look(stop)?;
            }
        }
        for (value, index) in values.iter_mut().zip(indices) {
            *value = lane.get(*index as usize).copied().unwrap_or(T::ZERO);
        }
        Ok(())
    }
}

/// Elements that are put in order between two looks whether to stop.
const BETWEEN_LOOKS: usize = 1 << 10;

/// Indices of elements of a lane, that of the last one at the top.
struct Heap<'a, T, const LEAST: bool> {
    order: &'a Extreme<T, LEAST>,
    lane: &'a [T],
    indices: &'a mut [i64],
    len: usize,
}

impl<T: Number, const LEAST: bool> Heap<'_, T, LEAST> {
    /// Whether an element comes before another.
    #[inline(always)]
    fn precedes(&self, a: i64, b: i64) -> bool {
        match (self.lane.get(a as usize), self.lane.get(b as usize)) {
            (Some(x), Some(y)) => self.order.precedes(*x, *y) || a < b && !self.order.precedes(*y, *x),
            _ => false,
        }
    }

    /// Adds an element. If there is no room, the last of all is left out.
    #[inline(always)]
    fn add(&mut self, index: i64, room: usize) {
        if self.len < room {
            let mut at = self.len;
            self.len += 1;
            self.indices.get_mut(at).into_iter().for_each(|to| *to = index);
            while let (Some(&own), Some(above)) = (self.indices.get(at), at.checked_sub(1).map(|at| at / 2)) {
                match self.indices.get(above) {
                    Some(other) if self.precedes(*other, own) => self.indices.swap(at, above),
                    _ => return,
                }
                at = above;
            }
        } else if self.indices.first().is_some_and(|last| self.precedes(index, *last)) {
            self.indices.first_mut().into_iter().for_each(|last| *last = index);
            self.sink();
        }
    }

    /// Moves the top down until those below come before it.
    fn sink(&mut self) {
        let mut at = 0;
        while let (Some(&own), Some(&left)) =
            (self.indices.get(at), self.indices.get(..self.len).and_then(|all| all.get(2 * at + 1)))
        {
            let (mut below, mut last) = (2 * at + 1, left);
            if let Some(&right) = self.indices.get(..self.len).and_then(|all| all.get(2 * at + 2))
                && self.precedes(left, right)
            {
                (below, last) = (2 * at + 2, right);
            }
            if !self.precedes(own, last) {
                return;
            }
            self.indices.swap(at, below);
            at = below;
        }
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
