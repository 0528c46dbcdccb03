//! The first elements of a lane in the order of their size, and their indices.

use super::pick::Pick;
use super::places::{IndexOf, SOME};
use super::reduce::between_looks;
use super::reductions::Extreme;
use super::{Fold, Measure, Number};
use crate::{Stop, Stopped, lookout};

/// The elements from the extreme on, as many as there is room for; of equal ones the first come first.
#[derive(Debug)]
pub struct First<T, const LEAST: bool>(pub Extreme<T, LEAST>);

impl<T: Number, const LEAST: bool> Pick<T> for First<T, LEAST> {
    type Value = T;
    type Beside = i64;

    fn of(&self, lane: &[T], values: &mut [T], indices: &mut [i64], stop: Option<&Stop>) -> Result<(), Stopped> {
        if let ([value], [index]) = (&mut *values, &mut *indices)
            && lane.len() >= SOME
        {
            IndexOf { last: false, extreme: self.0 }.each(lane.len(), lane, std::slice::from_mut(index), stop)?;
            *value = lane.get(*index as usize).copied().unwrap_or(T::ZERO);
            // NaN is the greatest, but has the place of the least as well.
            if !LEAST || !value.is_nan() {
                return Ok(());
            }
        }
        self.some(lane, values, indices, stop)
    }
}

impl<T: Number, const LEAST: bool> First<T, LEAST> {
    #[inline(never)] // its loops would become slower
    fn some(&self, lane: &[T], values: &mut [T], indices: &mut [i64], stop: Option<&Stop>) -> Result<(), Stopped> {
        let room = values.len().min(indices.len()).min(lane.len());
        // One is found sooner without keys.
        if room == 1 || T::ONE.rank().is_none() || u32::try_from(lane.len()).is_err() {
            return first(&mut Pairs { order: &self.0, values, indices }, room, lane, stop);
        }
        let mut keys = Keys { order: &self.0, keys: indices };
        first(&mut keys, room, lane, stop)?;
        for (value, index) in values.iter_mut().zip(indices).take(room) {
            *index &= i64::from(u32::MAX);
            *value = lane.get(*index as usize).copied().unwrap_or(T::ZERO);
        }
        Ok(())
    }
}

/// Elements that are put in order between two looks whether to stop.
const BETWEEN_LOOKS: usize = 1 << 10;

/// Elements of a lane with their indices, and the order of these: it is a heap whose last one is at the top.
trait Heap<T> {
    type Entry: Copy;

    fn entry(&self, element: T, index: usize) -> Self::Entry;
    /// An entry, of which there is one.
    fn get(&self, at: usize) -> Self::Entry;
    fn set(&mut self, at: usize, entry: Self::Entry);
    /// Whether an entry comes before another.
    fn precedes(&self, a: Self::Entry, b: Self::Entry) -> bool;
    /// Whether an element does: one that is behind another in the lane.
    fn passes(&self, element: T, other: Self::Entry) -> bool;

    /// Puts an entry at a place among the first `len`, or below it, until those below come before it.
    #[inline(always)]
    fn sink(&mut self, mut at: usize, len: usize, own: Self::Entry) {
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

/// Fills a heap with the first `room` elements of a lane in its order.
#[inline(always)]
fn first<T: Number, H: Heap<T>>(heap: &mut H, room: usize, lane: &[T], stop: Option<&Stop>) -> Result<(), Stopped> {
    let (own, others) = lane.split_at(room);
    for (at, &value) in own.iter().enumerate().rev() {
        heap.sink(at, room, heap.entry(value, at));
        if at.is_multiple_of(BETWEEN_LOOKS) {
            lookout::look(stop)?;
        }
    }
    for at in between_looks(if room > 0 { others.len() } else { 0 }, stop) {
        let at = at?;
        for (&value, index) in others.get(at.clone()).unwrap_or(&[]).iter().zip(room + at.start..) {
            if heap.passes(value, heap.get(0)) {
                heap.sink(0, room, heap.entry(value, index));
            }
        }
    }
    // The last of those that are left goes to the end.
    for end in (1..room).rev() {
        let (last, own) = (heap.get(0), heap.get(end));
        heap.set(end, last);
        heap.sink(0, end, own);
        if end.is_multiple_of(BETWEEN_LOOKS) {
            lookout::look(stop)?;
        }
    }
    Ok(())
}

/// Elements beside their indices.
struct Pairs<'a, T, const LEAST: bool> {
    order: &'a Extreme<T, LEAST>,
    values: &'a mut [T],
    indices: &'a mut [i64],
}

impl<T: Number, const LEAST: bool> Heap<T> for Pairs<'_, T, LEAST> {
    type Entry = (T, i64);

    #[inline(always)]
    fn entry(&self, element: T, index: usize) -> (T, i64) {
        (element, index as i64)
    }
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
    #[inline(always)]
    fn precedes(&self, (x, a): (T, i64), (y, b): (T, i64)) -> bool {
        self.order.precedes(x, y) | (a < b) & !self.order.precedes(y, x)
    }
    #[inline(always)]
    fn passes(&self, element: T, (other, _): (T, i64)) -> bool {
        self.order.precedes(element, other)
    }
}

/// Numbers in the order of elements, each with an index in its low half.
struct Keys<'a, T, const LEAST: bool> {
    order: &'a Extreme<T, LEAST>,
    keys: &'a mut [i64],
}

impl<T: Number, const LEAST: bool> Heap<T> for Keys<'_, T, LEAST> {
    type Entry = i64;

    #[inline(always)]
    fn entry(&self, element: T, index: usize) -> i64 {
        let rank = self.order.counts(element).rank().unwrap_or(0);
        i64::from(if LEAST { rank } else { !rank }) << 32 | index as i64
    }
    #[inline(always)]
    fn get(&self, at: usize) -> i64 {
        self.keys.get(at).copied().unwrap_or(0)
    }
    #[inline(always)]
    fn set(&mut self, at: usize, key: i64) {
        if let Some(to) = self.keys.get_mut(at) {
            *to = key;
        }
    }
    #[inline(always)]
    fn precedes(&self, a: i64, b: i64) -> bool {
        a < b
    }
    #[inline(always)]
    fn passes(&self, element: T, other: i64) -> bool {
        self.entry(element, 0) >> 32 < other >> 32
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
        // One of many is searched for in another way.
        let mut lane = vec![2.0; 150];
        (lane[9], lane[7], lane[140], lane[141]) = (f32::NAN, f32::NAN, -7.0, -7.0);
        assert_eq!(first(<f32 as Ordered<f32>>::extreme::<false>(), &lane, 1), [7]);
        assert_eq!(first(<f32 as Ordered<f32>>::extreme::<true>(), &lane, 1), [140]);
    }

    /// Numbers of four bytes and of eight are put in order in two ways.
    #[test]
    fn all_numbers() {
        let wide: Vec<f64> =
            (0..150).map(|k| [-1.5, f64::NAN, 0.0, -0.0, 7e30, -f64::INFINITY, 3.25][k * k % 7]).collect();
        let floats: Vec<f32> = wide.iter().map(|x| *x as f32).collect();
        let whole: Vec<i64> = wide.iter().map(|x| *x as i64).collect();
        let short: Vec<i16> = floats.iter().map(|x| *x as i16).collect();
        for count in [1, 2, 7, 20, 50] {
            let of_wide = first(<f64 as Ordered<f64>>::extreme::<false>(), &wide, count);
            assert_eq!(first(<f32 as Ordered<f32>>::extreme::<false>(), &floats, count), of_wide);
            let of_wide = first(<f64 as Ordered<f64>>::extreme::<true>(), &wide, count);
            assert_eq!(first(<f32 as Ordered<f32>>::extreme::<true>(), &floats, count), of_wide);
            let of_whole = first(<i64 as Ordered<i64>>::extreme::<false>(), &whole, count);
            assert_eq!(first(<i16 as Ordered<i16>>::extreme::<false>(), &short, count), of_whole);
            let of_whole = first(<i64 as Ordered<i64>>::extreme::<true>(), &whole, count);
            assert_eq!(first(<i16 as Ordered<i16>>::extreme::<true>(), &short, count), of_whole);
        }
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
