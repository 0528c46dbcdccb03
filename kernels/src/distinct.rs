//! Finds equal items: the first of them, and a number for each different one.

use super::half::Half;
use super::{Format, Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::cmp::Ordering;

/// Items with an order.
pub trait Items {
    fn compare(&self, a: usize, b: usize, lookout: &mut Lookout<'_>) -> Result<Ordering, Stopped>;

    /// Sorts their places: those of equal items stay in their order. Returns the sorted list, and the other one.
    fn sort<'m>(&self, places: Lists<'m>, lookout: &mut Lookout<'_>) -> Result<Lists<'m>, Stopped> {
        merge_sort(self, places, lookout)
    }
}

/// A list of places, and room for another one.
pub type Lists<'m> = [&'m mut [i64]; 2];

/// Items that are rows of `len` keys, ordered by their first keys that differ.
#[derive(Debug)]
pub struct Rows<'a, K> {
    pub keys: &'a [K],
    pub len: usize,
}

impl<K: Ord + Copy + Into<u64>> Items for Rows<'_, K> {
    #[inline]
    fn compare(&self, a: usize, b: usize, lookout: &mut Lookout<'_>) -> Result<Ordering, Stopped> {
        let row = |k: usize| self.keys.get(k * self.len..(k + 1) * self.len).unwrap_or(&[]);
        compare(row(a), row(b), lookout)
    }

    fn sort<'m>(&self, places: Lists<'m>, lookout: &mut Lookout<'_>) -> Result<Lists<'m>, Stopped> {
        match self.len {
            1 if self.keys.len() > BYTES => sort_by_bytes(self.keys, places, lookout),
            _ => merge_sort(self, places, lookout),
        }
    }
}

/// Compares lists by their first keys that differ; where one begins the other, it is less.
#[inline]
pub fn compare<K: Ord>(a: &[K], b: &[K], lookout: &mut Lookout<'_>) -> Result<Ordering, Stopped> {
    /// Keys between two looks.
    const BLOCK: usize = 4 << 10;
    if let ([a], [b]) = (a, b) {
        return Ok(a.cmp(b));
    }
    for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        lookout.after(size_of_val(a))?;
        match a.get(..b.len()).unwrap_or(a).cmp(b.get(..a.len()).unwrap_or(b)) {
            Ordering::Equal => {}
            different => return Ok(different),
        }
    }
    Ok(a.len().cmp(&b.len()))
}

/// Replaces numbers by unsigned ones of as many bits in the same order. Those of zeros are equal, and those of NaNs are the
/// greatest. Complex numbers are two.
pub fn make_keys(format: Format, numbers: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    /// Bytes that are replaced at a time.
    const BLOCK: usize = 4 << 10;
    /// Replaces the numbers of a block, as unsigned `$bits`.
    macro_rules! replaced {
        ($bits:ident, $key:expr) => {
            parallel::each(numbers, BLOCK, resources, |_, block| {
                let key: &(dyn Fn($bits) -> $bits + Sync) = &$key;
                cast_slice_mut::<u8, $bits>(block).iter_mut().for_each(|number| *number = key(*number));
            })
        };
    }
    /// The key of a float with these bits, given those of infinity.
    macro_rules! float {
        ($bits:ident, $infinity:expr) => {
            replaced!($bits, |bits: $bits| {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                match bits & !SIGN {
                    0 => SIGN,
                    magnitude if magnitude > $infinity => $bits::MAX,
                    _ if bits & SIGN != 0 => !bits,
                    magnitude => magnitude | SIGN,
                }
            })
        };
    }
    match format {
        Format::Signed(8) => replaced!(u8, |bits| bits ^ (1 << 7)),
        Format::Signed(16) => replaced!(u16, |bits| bits ^ (1 << 15)),
        Format::Signed(32) => replaced!(u32, |bits| bits ^ (1 << 31)),
        Format::Signed(64) => replaced!(u64, |bits| bits ^ (1 << 63)),
        Format::Half(Half::F16) => float!(u16, 0x7c00),
        Format::Half(Half::Bf16) => float!(u16, 0x7f80),
        Format::Single | Format::Complex64 => float!(u32, f32::INFINITY.to_bits()),
        Format::Double | Format::Complex128 => float!(u64, f64::INFINITY.to_bits()),
        _ => Ok(()),
    }
}

/// Numbers items, equal ones alike: in their order if `sorted`, else as they first occur. `room` has two lists as long as
/// `numbers`. Returns where each of the different ones first occurs.
pub fn number<'m>(
    items: &impl Items,
    sorted: bool,
    mut room: Lists<'m>,
    numbers: &mut [i64],
    resources: Resources<'_>,
) -> Result<&'m [i64], Stopped> {
    let mut lookout = resources.lookout();
    let [order, _] = &mut room;
    for (at, to) in order.iter_mut().enumerate() {
        lookout.after(size_of::<i64>())?;
        *to = at as i64;
    }
    let [order, firsts] = items.sort(room, &mut lookout)?;
    let (mut count, mut first, mut before) = (0, 0, None);
    for &mut at in order {
        lookout.after(3 * size_of::<i64>())?;
        let is_new = match before {
            Some(before) => items.compare(before, at as usize, &mut lookout)? != Ordering::Equal,
            None => true,
        };
        if is_new {
            // The order is stable: of equal items the first comes first.
            first = at;
            firsts.get_mut(count).into_iter().for_each(|to| *to = at);
            count += 1;
        }
        let number = if sorted { count as i64 - 1 } else { first };
        numbers.get_mut(at as usize).into_iter().for_each(|to| *to = number);
        before = Some(at as usize);
    }
    if !sorted {
        number_as_they_occur(firsts, numbers, &mut lookout)?;
    }
    Ok(firsts.get(..count).unwrap_or(&[]))
}

/// Makes numbers of the places of the first of equal items.
fn number_as_they_occur(firsts: &mut [i64], numbers: &mut [i64], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
    let mut count = 0;
    for at in 0..numbers.len() {
        lookout.after(2 * size_of::<i64>())?;
        let first = numbers.get(at).copied().unwrap_or(0);
        let number = if first == at as i64 {
            firsts.get_mut(count).into_iter().for_each(|to| *to = first);
            count += 1;
            count as i64 - 1
        } else {
            // It was numbered before.
            numbers.get(first as usize).copied().unwrap_or(0)
        };
        numbers.get_mut(at).into_iter().for_each(|to| *to = number);
    }
    Ok(())
}

/// Counts how often each number is there.
pub fn count(numbers: &[i64], counts: &mut [i64], resources: Resources<'_>) -> Result<(), Stopped> {
    counts.fill(0);
    for block in resources.lookout().blocks(numbers) {
        for number in block? {
            counts.get_mut(*number as usize).into_iter().for_each(|count| *count += 1);
        }
    }
    Ok(())
}

/// Runs are merged to runs of twice as many, from one list to the other.
fn merge_sort<'m>(
    items: &(impl Items + ?Sized),
    [mut from, mut to]: Lists<'m>,
    lookout: &mut Lookout<'_>,
) -> Result<Lists<'m>, Stopped> {
    let mut run = 1;
    while run < from.len() {
        for (from, to) in from.chunks(2 * run).zip(to.chunks_mut(2 * run)) {
            merge(items, from.split_at(run.min(from.len())).into(), to, lookout)?;
        }
        std::mem::swap(&mut from, &mut to);
        run *= 2;
    }
    Ok([from, to])
}

/// The values of a byte.
const BYTES: usize = 256;

/// Sorts by each byte of the keys, the lowest one first, from one list to the other. A key has few bytes, and those that all
/// keys have in common, as the high ones of small numbers, take no time.
fn sort_by_bytes<'m, K: Copy + Into<u64>>(
    keys: &[K],
    [mut from, mut to]: Lists<'m>,
    lookout: &mut Lookout<'_>,
) -> Result<Lists<'m>, Stopped> {
    let byte = |key: K, at: usize| (key.into() >> (8 * at)) as usize % BYTES;
    let mut counts = [[0; BYTES]; size_of::<u64>()];
    let counts = counts.get_mut(..size_of::<K>()).unwrap_or(&mut []);
    for block in lookout.blocks(keys) {
        for key in block? {
            for (at, counts) in counts.iter_mut().enumerate() {
                counts.get_mut(byte(*key, at)).into_iter().for_each(|count| *count += 1);
            }
        }
    }
    for (at, counts) in counts.iter_mut().enumerate().filter(|(_, counts)| !counts.contains(&keys.len())) {
        // Where the next key with each byte goes.
        let mut end = 0;
        for count in counts.iter_mut() {
            end += std::mem::replace(count, end);
        }
        for block in lookout.blocks(from) {
            for place in block? {
                let Some(key) = keys.get(*place as usize) else { continue };
                let Some(next) = counts.get_mut(byte(*key, at)) else { continue };
                to.get_mut(*next).into_iter().for_each(|to| *to = *place);
                *next += 1;
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
    Ok([from, to])
}

/// Merges two sorted runs; of equal items those on the left come first.
fn merge(
    items: &(impl Items + ?Sized),
    [mut left, mut right]: [&[i64]; 2],
    to: &mut [i64],
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    for to in to {
        lookout.after(2 * size_of::<i64>())?;
        let is_right = match (left.first(), right.first()) {
            (Some(a), Some(b)) => items.compare(*a as usize, *b as usize, lookout)? == Ordering::Greater,
            (left, _) => left.is_none(),
        };
        let from = if is_right { &mut right } else { &mut left };
        if let Some((first, rest)) = from.split_first() {
            (*to, *from) = (*first, rest);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::{Pod, cast_slice};
    use half::{bf16, f16};
    use proptest::prelude::*;

    const ALONE: Resources<'_> = Resources { threads: 1, stop: None };

    /// Where the different rows first occur, the numbers of all, and how many each has.
    fn numbered<K: Ord + Copy + Into<u64>>(keys: &[K], len: usize, sorted: bool) -> (Vec<i64>, Vec<i64>, Vec<i64>) {
        let rows = keys.len() / len;
        let (mut room, mut numbers) = ([vec![-1; rows], vec![-1; rows]], vec![-1; rows]);
        let room = room.each_mut().map(Vec::as_mut_slice);
        let firsts = number(&Rows { keys, len }, sorted, room, &mut numbers, ALONE).unwrap();
        let mut counts = vec![-1; firsts.len()];
        count(&numbers, &mut counts, ALONE).unwrap();
        (firsts.to_vec(), numbers, counts)
    }

    #[test]
    fn first_places() {
        assert_eq!(
            numbered(&[2u8, 1, 1, 3, 4, 3], 1, false),
            (vec![0, 1, 3, 4], vec![0, 1, 1, 2, 3, 2], vec![1, 2, 2, 1])
        );
        assert_eq!(
            numbered(&[2u8, 1, 1, 3, 4, 3], 1, true),
            (vec![1, 0, 3, 4], vec![1, 0, 0, 2, 3, 2], vec![2, 1, 2, 1])
        );
        assert_eq!(numbered(&[1u8, 9, 1, 2, 1, 9], 2, true), (vec![1, 0], vec![1, 0, 1], vec![1, 2]));
        assert_eq!(numbered::<u8>(&[], 1, true), (vec![], vec![], vec![]));
        let falling: Vec<u16> = (0..300).rev().collect();
        assert_eq!(numbered(&falling, 1, true), ((0..300).rev().collect(), (0..300).rev().collect(), vec![1; 300]));
    }

    /// Sorting by bytes gives what merging does, whatever bytes differ.
    #[test]
    fn sorted_by_bytes() {
        fn check<K: Ord + Copy + Into<u64>>(keys: &[K]) {
            let (mut order, mut room): (Vec<i64>, _) = ((0..keys.len() as i64).collect(), vec![-1; keys.len()]);
            let [got, _] = sort_by_bytes(keys, [&mut order, &mut room], &mut Lookout::new(None)).unwrap();
            let mut want: Vec<i64> = (0..keys.len() as i64).collect();
            want.sort_by_key(|place| keys[*place as usize]);
            assert_eq!(got, want);
        }
        let count = crate::testing::sized(1500, 300) as u64;
        let random = |k: u64| (k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
        let of = |key: &dyn Fn(u64) -> u64| (0..count).map(key).collect::<Vec<u64>>();
        check(&of(&random));
        check(&of(&|k| random(k) % 1000));
        check(&of(&|k| random(k) << 56 | 7));
        check(&of(&|_| u64::MAX));
        check(&of(&|k| random(k) & 0xff00_00ff));
        check(&(0..count).map(|k| random(k) as u32).collect::<Vec<u32>>());
        check(&(0..count).map(|k| random(k) as u16).collect::<Vec<u16>>());
        check(&(0..count).map(|k| random(k) as u8).collect::<Vec<u8>>());
        check::<u64>(&[]);
    }

    #[test]
    fn long_lists_are_compared_block_by_block() {
        let order = |a: &[u8], b: &[u8]| compare(a, b, &mut Lookout::new(None)).unwrap();
        let long = vec![7; 10_000];
        let mut other = long.clone();
        assert_eq!(order(&long, &other), Ordering::Equal);
        other[9_999] = 6;
        assert_eq!(order(&long, &other), Ordering::Greater);
        assert_eq!(order(&long[..9_000], &long), Ordering::Less);
        assert_eq!(order(&other, &other[..9_999]), Ordering::Greater);
        assert_eq!(order(b"ab", b"b"), Ordering::Less);
        assert_eq!(order(b"", b"a"), Ordering::Less);
    }

    /// Checks that the keys of numbers are in the order of the numbers, given from the least to the greatest.
    fn ordered<T: Pod, K: Pod + Ord>(format: Format, numbers: &[T]) {
        let mut keys = numbers.to_vec();
        make_keys(format, cast_slice_mut(&mut keys), ALONE).unwrap();
        assert!(cast_slice::<T, K>(&keys).is_sorted_by(|a, b| a < b), "{format:?}");
    }

    #[test]
    fn keys_are_ordered_as_numbers() {
        ordered::<i8, u8>(Format::Signed(8), &[-128, -1, 0, 127]);
        ordered::<i16, u16>(Format::Signed(16), &[i16::MIN, -1, 0, i16::MAX]);
        ordered::<i32, u32>(Format::Signed(32), &[i32::MIN, -1, 0, i32::MAX]);
        ordered::<i64, u64>(Format::Signed(64), &[i64::MIN, -1, 0, i64::MAX]);
        ordered::<u64, u64>(Format::Unsigned(64), &[0, 1, u64::MAX]);
        let floats = [-f64::INFINITY, -1.0, -1e-5, 0.0, 1e-5, 1.0, f64::INFINITY, f64::NAN];
        ordered::<f64, u64>(Format::Double, &floats);
        ordered::<f32, u32>(Format::Single, &floats.map(|x| x as f32));
        ordered::<f16, u16>(Format::Half(Half::F16), &floats.map(f16::from_f64));
        ordered::<bf16, u16>(Format::Half(Half::Bf16), &floats.map(bf16::from_f64));
    }

    #[test]
    fn zeros_are_equal_and_so_are_nans() {
        let mut keys = [0.0f32, -0.0, f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)];
        make_keys(Format::Single, cast_slice_mut(&mut keys), ALONE).unwrap();
        let keys: &[u32] = cast_slice(&keys);
        assert_eq!((keys[0], keys[2], keys[3]), (keys[1], u32::MAX, keys[4]));
    }

    proptest! {
        #[test]
        fn as_if_searched(keys in prop::collection::vec(0u8..9, 0..200), len in 1usize..4, sorted in any::<bool>()) {
            let keys = &keys[..keys.len() / len * len];
            let rows: Vec<&[u8]> = keys.chunks(len).collect();
            let mut firsts: Vec<usize> =
                (0..rows.len()).filter(|k| !rows[..*k].contains(&rows[*k])).collect();
            if sorted {
                firsts.sort_by_key(|first| rows[*first]);
            }
            let number = |row: &&[u8]| firsts.iter().position(|first| rows[*first] == *row).unwrap() as i64;
            let numbers: Vec<i64> = rows.iter().map(number).collect();
            let counts = (0..firsts.len() as i64).map(|k| numbers.iter().filter(|n| **n == k).count() as i64).collect();
            let firsts = firsts.iter().map(|first| *first as i64).collect();
            prop_assert_eq!(numbered(keys, len, sorted), (firsts, numbers, counts));
        }
    }
}
