//! ArgMax, ArgMin and Hardmax: the place of an extreme.

use super::fold::{PARTIALS, join_lanes};
use super::reduce::{BETWEEN_LOOKS, PartialOf, TOGETHER, between_looks};
use super::scans::SIDE;
use super::sums::Partial;
use super::{Fold, Map, Measure, Number, Order, Ordered};
use crate::cpu::{for_avx2, for_each_level};
use crate::lookout::look;
use crate::permute::turn;
use crate::{Lookout, Stop, Stopped};

/// The place of the greatest or least element: NaN equals NaN here.
#[derive(Debug)]
pub struct IndexOf<E> {
    /// The last of equals, not the first.
    pub last: bool,
    pub extreme: E,
}

impl<E: Order<T>, T: Number> Measure<T> for IndexOf<E> {
    type Value = i64;

    fn each(&self, len: usize, lanes: &[T], indices: &mut [i64], stop: Option<&Stop>) -> Result<(), Stopped> {
        let len = len.max(1);
        // Clearing many rows takes longer than lanes of a few elements.
        match len {
            ..=32 => return index_turned::<E, T, 32>(self, len, lanes, indices, stop),
            33..=64 => return index_turned::<E, T, 64>(self, len, lanes, indices, stop),
            65..SOME => return index_turned::<E, T, SOME>(self, len, lanes, indices, stop),
            _ => {}
        }
        // So few lanes that they are still near when the place is searched.
        let some = (SEARCHED / len).clamp(1, ABREAST);
        let mut pieces = lanes.chunks(some * len).zip(indices.chunks_mut(some));
        pieces.try_for_each(|(lanes, indices)| index_lanes(self, len, lanes, indices, stop))
    }

    fn across(
        &self,
        step: usize,
        len: usize,
        lanes: &[T],
        indices: &mut [i64],
        stop: Option<&Stop>,
    ) -> Option<Result<(), Stopped>> {
        let len = u32::try_from(len).ok()?;
        Some(indices.chunks_mut(SIDE).enumerate().try_for_each(|(k, indices)| {
            index_rows(self, (step, len), lanes.get(k * SIDE..).unwrap_or(&[]), indices, stop)
        }))
    }
}

for_each_level! {
    /// The places of the extremes of at most [`SIDE`] lanes that are side by side.
    fn index_rows<E: Order<T>, T: Number>(how: &IndexOf<E>, rows: (usize, u32), lanes: &[T], indices: &mut [i64], stop: Option<&Stop>) -> Result<(), Stopped>
        = index_rows_body::<E, T>;
}

#[inline(always)]
fn index_rows_body<E: Order<T>, T: Number>(
    how: &IndexOf<E>,
    (step, len): (usize, u32),
    lanes: &[T],
    indices: &mut [i64],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (mut best, mut places) = ([T::ZERO; SIDE], [0u32; SIDE]);
    best.iter_mut().zip(lanes).for_each(|(best, x)| *best = *x);
    for k in 0..len {
        if (k as usize).is_multiple_of(BETWEEN_LOOKS / SIDE) {
            look(stop)?;
        }
        let row = lanes.get(k as usize * step..).and_then(|row| row.get(..indices.len())).ok_or(Stopped::Misfit)?;
        for ((best, place), x) in best.iter_mut().zip(&mut places).zip(row) {
            let better = if how.last { !how.extreme.exceeds(*best, *x) } else { how.extreme.exceeds(*x, *best) };
            *best = if better { *x } else { *best };
            *place = if better { k } else { *place };
        }
    }
    indices.iter_mut().zip(places).for_each(|(index, place)| *index = place.into());
    Ok(())
}

/// The places of the extremes of at most [`TOGETHER`] lanes, one behind the other, of at most `ROWS` elements: they are turned to
/// be side by side, as searching their places one by one takes longer.
fn index_turned<E: Order<T>, T: Number, const ROWS: usize>(
    how: &IndexOf<E>,
    len: usize,
    lanes: &[T],
    indices: &mut [i64],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let mut rows = [[T::ZERO; TOGETHER]; ROWS];
    turn(lanes, len, rows.as_flattened_mut(), TOGETHER, len, indices.len(), &mut Lookout::new(stop))?;
    index_columns(how, rows.get(..len).ok_or(Stopped::Misfit)?, indices);
    Ok(())
}

for_avx2! {
    /// The places of the extremes of columns.
    fn index_columns<E: Order<T>, T: Number>(how: &IndexOf<E>, rows: &[[T; TOGETHER]], indices: &mut [i64]) -> ()
        = index_columns_body::<E, T>;
}

#[inline(always)]
fn index_columns_body<E: Order<T>, T: Number>(how: &IndexOf<E>, rows: &[[T; TOGETHER]], indices: &mut [i64]) {
    let (mut best, mut places) = ([T::ZERO; TOGETHER], [0u32; TOGETHER]);
    for (place, row) in (0..).zip(rows) {
        if place == 0 {
            best = *row;
        }
        for ((best, at), x) in best.iter_mut().zip(&mut places).zip(row) {
            let better = if how.last { !how.extreme.exceeds(*best, *x) } else { how.extreme.exceeds(*x, *best) };
            *best = if better { *x } else { *best };
            *at = if better { place } else { *at };
        }
    }
    indices.iter_mut().zip(places).for_each(|(index, place)| *index = place.into());
}

/// Elements of lanes whose extremes are searched for together, unless a single lane has more.
const SEARCHED: usize = 1 << 12;

/// Lanes whose extremes are searched for together.
const ABREAST: usize = 4;

/// Elements of a block: rows of [`PARTIALS`] columns, whose extremes are compared with those before.
pub(super) const SOME: usize = 4 * PARTIALS;

for_each_level! {
    /// The places of the extremes of at most [`ABREAST`] lanes, one behind the other, of [`SOME`] elements or more.
    fn index_lanes<E: Order<T>, T: Number>(how: &IndexOf<E>, len: usize, lanes: &[T], indices: &mut [i64], stop: Option<&Stop>) -> Result<(), Stopped>
        = index_lanes_body::<E, T>;
}

#[inline(always)]
fn index_lanes_body<E: Order<T>, T: Number>(
    how: &IndexOf<E>,
    len: usize,
    lanes: &[T],
    indices: &mut [i64],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (mut best, mut blocks) = ([[T::ZERO; PARTIALS]; ABREAST], [[0; PARTIALS]; ABREAST]);
    let (fold, mut peaks) = (how.extreme.fold(), [[PartialOf::<E, T>::START; PARTIALS]; ABREAST]);
    let (lanes, mut has_nan) = (lanes.chunks_exact(len), [false; ABREAST]);
    for ((((lane, best), blocks), peaks), has_nan) in
        lanes.clone().zip(&mut best).zip(&mut blocks).zip(&mut peaks).zip(&mut has_nan)
    {
        *has_nan = compare_columns(how, lane, best, blocks, stop)?;
        for (peak, x) in peaks.iter_mut().zip(&*best) {
            *peak = fold.add_ordinary(PartialOf::<E, T>::START, fold.counts(*x));
        }
    }
    join_lanes(peaks.get_mut(..indices.len()).ok_or(Stopped::Misfit)?);
    for (((((index, lane), best), blocks), [peak, ..]), has_nan) in
        indices.iter_mut().zip(lanes).zip(&best).zip(&blocks).zip(&peaks).zip(has_nan)
    {
        let place = if has_nan {
            place_of_nan(lane, how.last, stop)?
        } else {
            let peak = T::nearest(how.extreme.end(*peak, len));
            let start = start_of(how, len, block_of(best, blocks, peak));
            start + place_in(block_at(lane, start)?, peak, how.last)
        };
        *index = place as i64;
    }
    Ok(())
}

/// Finds the extremes of columns, and the numbers of the first blocks that have them, from where the search begins. NaN, which
/// is beyond all, isn't compared. Returns whether there is some.
#[inline(always)]
fn compare_columns<E: Order<T>, T: Number>(
    how: &IndexOf<E>,
    lane: &[T],
    to: &mut [T; PARTIALS],
    to_blocks: &mut [u32; PARTIALS],
    stop: Option<&Stop>,
) -> Result<bool, Stopped> {
    let (rows, _) = block_at(lane, start_of(how, lane.len(), 0))?.as_chunks();
    let [first, ..] = rows else { return Err(Stopped::Misfit) };
    // Copies stay in registers.
    let (mut best, mut blocks, mut has_nan) = (*first, [0; PARTIALS], false);
    for part in between_looks(lane.len(), stop) {
        for at in part?.step_by(SOME) {
            let number = at / SOME;
            let block = block_at(lane, start_of(how, lane.len(), number))?;
            let mut nan = false;
            for x in block {
                nan |= x.is_nan();
            }
            has_nan |= nan;
            let (rows, _) = block.as_chunks::<PARTIALS>();
            let [first, others @ ..] = rows else { return Err(Stopped::Misfit) };
            let mut peaks = *first;
            for row in others {
                for (peak, x) in peaks.iter_mut().zip(row) {
                    *peak = if how.extreme.is_ahead(*x, *peak) { *x } else { *peak };
                }
            }
            for ((block, x), best) in blocks.iter_mut().zip(&peaks).zip(&best) {
                *block = if how.extreme.is_ahead(*x, *best) { number as u32 } else { *block };
            }
            for (best, x) in best.iter_mut().zip(&peaks) {
                *best = if how.extreme.is_ahead(*x, *best) { *x } else { *best };
            }
        }
    }
    (*to, *to_blocks) = (best, blocks);
    Ok(has_nan)
}

/// The number of the first block that has an element in one of the columns.
#[inline(always)]
fn block_of<T: Number>(best: &[T; PARTIALS], blocks: &[u32; PARTIALS], element: T) -> usize {
    let mut blocks = *blocks;
    for (block, x) in blocks.iter_mut().zip(best) {
        *block |= u32::from(*x != element).wrapping_neg();
    }
    // As a tree: one after another they would be compared without vectors.
    for half in [16, 8, 4, 2, 1] {
        let (low, high) = blocks.split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            *low = (*low).min(*high);
        }
    }
    let [first, ..] = blocks;
    first as usize
}

/// Where the block with a number begins in a lane of `len` elements: numbers count from where the search begins. What is left
/// at the end is in a whole block, too.
#[inline(always)]
fn start_of<E>(how: &IndexOf<E>, len: usize, number: usize) -> usize {
    let start = (number * SOME).min(len - SOME);
    if how.last { len - SOME - start } else { start }
}

#[inline(always)]
fn block_at<T>(lane: &[T], start: usize) -> Result<&[T; SOME], Stopped> {
    lane.get(start..).and_then(|rest| rest.first_chunk()).ok_or(Stopped::Misfit)
}

/// The first or last place of NaN.
#[inline(always)]
fn place_of_nan<T: Number>(lane: &[T], last: bool, stop: Option<&Stop>) -> Result<usize, Stopped> {
    let mut place = 0;
    for part in between_looks(lane.len(), stop) {
        let part = part?;
        let mut elements = lane.get(part.clone()).unwrap_or(&[]).iter();
        let found = if last { elements.rposition(|x| x.is_nan()) } else { elements.position(|x| x.is_nan()) };
        if let Some(k) = found {
            place = part.start + k;
            if !last {
                break;
            }
        }
    }
    Ok(place)
}

/// The first or last place of an element, which is among these.
#[inline(always)]
fn place_in<T: Number>(elements: &[T; SOME], element: T, last: bool) -> usize {
    // How far each is from where the search begins. Two loops: one would not be vectors.
    let (mut away, flip) = ([SOME as u32; SOME], if last { SOME as u32 - 1 } else { 0 });
    for ((away, x), place) in away.iter_mut().zip(elements).zip(0..) {
        *away = if *x == element { place ^ flip } else { SOME as u32 };
    }
    let mut least = SOME as u32;
    for away in &away {
        least = least.min(*away);
    }
    (least ^ flip) as usize
}

/// 1 for the first of the greatest elements, and 0 for all others.
#[derive(Debug)]
pub struct Hardmax;

impl<T: Ordered<T> + Number> Map<T> for Hardmax {
    fn each(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        to.fill(T::ZERO);
        let mut firsts = [0; TOGETHER];
        let index = IndexOf { last: false, extreme: T::extreme::<false>() };
        for (lanes, to) in lanes.chunks(len * TOGETHER).zip(to.chunks_mut(len * TOGETHER)) {
            index.each(len, lanes, firsts.get_mut(..lanes.len() / len).unwrap_or(&mut []), stop)?;
            for (first, to) in firsts.iter().zip(to.chunks_exact_mut(len)) {
                to.iter_mut().skip(*first as usize).take(1).for_each(|to| *to = T::ONE);
            }
        }
        Ok(())
    }
}
