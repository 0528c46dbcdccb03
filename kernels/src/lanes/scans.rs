//! Functions of lanes that read them in order: cumulative sums and products, the place of an extreme.

use super::fold::{PARTIALS, join_lanes};
use super::reduce::{BETWEEN_LOOKS, PartialOf, TOGETHER, between_looks, values};
use super::sums::Partial;
use super::walk::map_each;
use super::{Floating, Fold, L1, L2, Map, MapSome, Measure, Number, Order, Ordered, Reduction};
use crate::cpu::{for_avx2, for_each_level};
use crate::lookout::look;
use crate::{Stop, Stopped};
use std::array::from_fn;

/// What a reduction gives of the elements up to each one, rounded at each.
#[derive(Debug)]
pub struct Cumulate<R> {
    /// The element itself doesn't count.
    pub exclusive: bool,
    /// From the end on.
    pub reverse: bool,
    pub reduction: R,
}

impl<R: Reduction<T> + Sync, T: Number> Map<T> for Cumulate<R> {
    fn each(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        map_each::<Self, T>(self, len, lanes, to, stop)
    }

    fn across(
        &self,
        abreast: usize,
        len: usize,
        lanes: &[T],
        to: &mut [T],
        stop: Option<&Stop>,
    ) -> Option<Result<(), Stopped>> {
        let mut blocks = lanes.chunks_exact(abreast * len).zip(to.chunks_exact_mut(abreast * len));
        Some(blocks.try_for_each(|(lanes, to)| cumulate_rows(self, abreast, lanes, to, stop)))
    }
}

impl<R: Reduction<T> + Sync, T: Number> MapSome<T> for Cumulate<R> {
    #[inline(always)]
    fn map(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let whole = lanes.len() / (LANES * len) * (LANES * len);
        let ((lanes, last), (to, last_to)) = (lanes.split_at(whole), to.split_at_mut(whole.min(to.len())));
        for (lanes, to) in lanes.chunks_exact(LANES * len).zip(to.chunks_exact_mut(LANES * len)) {
            cumulate_lanes::<R, T, LANES>(self, len, lanes, to, stop)?;
        }
        for (lane, to) in last.chunks_exact(len).zip(last_to.chunks_exact_mut(len)) {
            cumulate_lanes::<R, T, 1>(self, len, lane, to, stop)?;
        }
        Ok(())
    }
}

/// Lanes that take each step together, as each waits for its own result.
const LANES: usize = 4;

/// Cumulates `N` lanes, one behind the other.
#[inline(always)]
fn cumulate_lanes<R: Reduction<T>, T: Number, const N: usize>(
    how: &Cumulate<R>,
    len: usize,
    lanes: &[T],
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (fold, mut values) = (how.reduction.fold(), [PartialOf::<R, T>::START; N]);
    let (mut lanes, mut outs) = (lanes.chunks_exact(len), to.chunks_exact_mut(len));
    let lanes: [&[T]; N] = from_fn(|_| lanes.next().unwrap_or(&[]));
    let mut outs: [&mut [T]; N] = from_fn(|_| outs.next().unwrap_or(&mut []));
    for at in between_looks(len, stop) {
        let at = at?;
        for k in at {
            let k = if how.reverse { len - 1 - k } else { k };
            for ((value, lane), to) in values.iter_mut().zip(&lanes).zip(&mut outs) {
                let (Some(x), Some(to)) = (lane.get(k), to.get_mut(k)) else { return Err(Stopped::Misfit) };
                let with = fold.add(*value, *x);
                *to = T::nearest(how.reduction.end(if how.exclusive { *value } else { with }, 1));
                *value = with;
            }
        }
    }
    // Nothing is before the first.
    for to in outs.iter_mut().filter(|_| how.exclusive) {
        let first = if how.reverse { to.last_mut() } else { to.first_mut() };
        first.into_iter().for_each(|to| *to = T::nearest(how.reduction.end(R::EMPTY, 0)));
    }
    Ok(())
}

for_each_level! {
    /// Cumulates lanes that are side by side.
    fn cumulate_rows<R: Reduction<T>, T: Number>(how: &Cumulate<R>, abreast: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>
        = cumulate_rows_body::<R, T>;
}

/// Lanes that are cumulated side by side: so many that rows are read and written in runs.
const SIDE: usize = 1024;

/// Elements of each that are cumulated at once.
const ROWS: usize = 4;

#[inline(always)]
fn cumulate_rows_body<R: Reduction<T>, T: Number>(
    how: &Cumulate<R>,
    abreast: usize,
    lanes: &[T],
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (fold, count) = (how.reduction.fold(), lanes.len() / abreast);
    // Adds an element to the value of those before.
    let add = |value: &mut PartialOf<R, T>, x: T, to: &mut T| {
        let with = fold.add(*value, x);
        *to = T::nearest(how.reduction.end(if how.exclusive { *value } else { with }, 1));
        *value = with;
    };
    for first in (0..abreast).step_by(SIDE) {
        let mut values = [PartialOf::<R, T>::START; SIDE];
        let columns = first..abreast.min(first + SIDE);
        for k in (0..count).step_by(ROWS) {
            if k % (BETWEEN_LOOKS / SIDE) == 0 {
                look(stop)?;
            }
            let some = ROWS.min(count - k);
            let top = if how.reverse { count - k - some } else { k } * abreast;
            let (lanes, to) = (lanes.get(top..).unwrap_or(&[]), to.get_mut(top..).unwrap_or(&mut []));
            let mut lanes = lanes.chunks_exact(abreast).filter_map(|row| row.get(columns.clone()));
            let mut to = to.chunks_exact_mut(abreast).filter_map(|row| row.get_mut(columns.clone()));
            let mut lanes: [&[T]; ROWS] = from_fn(|_| lanes.next().unwrap_or(&[]));
            let mut to: [&mut [T]; ROWS] = from_fn(|_| to.next().unwrap_or(&mut []));
            let (lanes, to) = (lanes.get_mut(..some).unwrap_or(&mut []), to.get_mut(..some).unwrap_or(&mut []));
            if how.reverse {
                lanes.reverse();
                to.reverse();
            }
            match (&*lanes, &mut *to) {
                // The values stay in registers meanwhile.
                ([a, b, c, d], [to_a, to_b, to_c, to_d]) => {
                    let elements = a.iter().zip(*b).zip(*c).zip(*d);
                    let places = to_a.iter_mut().zip(&mut **to_b).zip(&mut **to_c).zip(&mut **to_d);
                    for ((value, (((a, b), c), d)), (((to_a, to_b), to_c), to_d)) in
                        values.iter_mut().zip(elements).zip(places)
                    {
                        add(value, *a, to_a);
                        add(value, *b, to_b);
                        add(value, *c, to_c);
                        add(value, *d, to_d);
                    }
                }
                _ => {
                    for (lanes, to) in lanes.iter().zip(&mut *to) {
                        for ((value, x), to) in values.iter_mut().zip(*lanes).zip(&mut **to) {
                            add(value, *x, to);
                        }
                    }
                }
            }
            if how.exclusive && k == 0 {
                to.iter_mut().take(1).for_each(|to| to.fill(T::nearest(how.reduction.end(R::EMPTY, 0))));
            }
        }
    }
    Ok(())
}

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
        if len <= TURNED {
            let pieces = lanes.chunks(TOGETHER * len).zip(indices.chunks_mut(TOGETHER));
            pieces.for_each(|(lanes, indices)| index_turned(self, len, lanes, indices));
            return Ok(());
        }
        if len < SOME {
            let pieces = lanes.chunks(ABREAST * len).zip(indices.chunks_mut(ABREAST));
            return pieces.into_iter().try_for_each(|(lanes, indices)| index_few(self, len, lanes, indices, stop));
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

/// Elements of lanes that are turned to be side by side: searching their places one by one takes longer.
const TURNED: usize = 32;

for_avx2! {
    /// The places of the extremes of at most [`TOGETHER`] lanes, one behind the other, of at most [`TURNED`] elements.
    fn index_turned<E: Order<T>, T: Number>(how: &IndexOf<E>, len: usize, lanes: &[T], indices: &mut [i64]) -> ()
        = index_turned_body::<E, T>;
}

#[inline(always)]
fn index_turned_body<E: Order<T>, T: Number>(how: &IndexOf<E>, len: usize, lanes: &[T], indices: &mut [i64]) {
    let mut rows = [[T::ZERO; TOGETHER]; TURNED];
    for (k, lane) in lanes.chunks_exact(len).enumerate() {
        for (row, x) in rows.iter_mut().zip(lane) {
            row.get_mut(k).into_iter().for_each(|to| *to = *x);
        }
    }
    let (mut best, mut places) = ([T::ZERO; TOGETHER], [0u32; TOGETHER]);
    for (place, row) in (0..).zip(rows.iter().take(len)) {
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

/// Rows of [`PARTIALS`] columns, whose extremes are compared with those before.
const ROWS_OF_SOME: usize = 4;
/// Elements of these.
const SOME: usize = ROWS_OF_SOME * PARTIALS;

/// The places of the extremes of at most [`ABREAST`] lanes of less than [`SOME`] elements, one behind the other.
fn index_few<E: Order<T>, T: Number>(
    how: &IndexOf<E>,
    len: usize,
    lanes: &[T],
    indices: &mut [i64],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (mut filled, before) = ([[T::ZERO; SOME]; ABREAST], if how.last { SOME - len } else { 0 });
    for (filled, lane) in filled.iter_mut().zip(lanes.chunks_exact(len)) {
        // An element that comes again where it isn't found.
        if let Some(again) = if how.last { lane.last() } else { lane.first() } {
            filled.fill(*again);
        }
        filled.iter_mut().skip(before).zip(lane).for_each(|(to, x)| *to = *x);
    }
    index_lanes(how, SOME, filled.as_flattened(), indices, stop)?;
    indices.iter_mut().for_each(|index| *index -= before as i64);
    Ok(())
}

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

/// The quotient by the L1 or L2 norm; 0 if the norm is 0.
#[derive(Debug)]
pub struct LpNormalize {
    /// L1, not L2.
    pub first: bool,
}

impl<T: Floating> Map<T> for LpNormalize {
    fn each(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let mut norms = [0.0; TOGETHER];
        for (lanes, to) in lanes.chunks(len * TOGETHER).zip(to.chunks_mut(len * TOGETHER)) {
            let norms = norms.get_mut(..lanes.len() / len).unwrap_or(&mut []);
            match self.first {
                true => values::<L1, T>(&L1, len, lanes, norms, stop)?,
                false => values::<L2, T>(&L2, len, lanes, norms, stop)?,
            }
            divide::<T>(len, lanes, norms, to, stop)?;
        }
        Ok(())
    }
}

for_each_level! {
    /// Divides lanes by their norms.
    fn divide<T: Floating>(len: usize, lanes: &[T], norms: &[f64], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>
        = divide_body::<T>;
}

#[inline(always)]
fn divide_body<T: Floating>(
    len: usize,
    lanes: &[T],
    norms: &[f64],
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    for ((lane, norm), to) in lanes.chunks_exact(len).zip(norms).zip(to.chunks_exact_mut(len)) {
        for at in between_looks(len, stop) {
            let at = at?;
            let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
            for (to, &x) in to.iter_mut().zip(lane) {
                *to = if *norm == 0.0 { <T as Number>::ZERO } else { T::nearest(x.precise() / norm) };
            }
        }
    }
    Ok(())
}
