//! Functions of lanes that read them in order: cumulative sums and products, the place of an extreme.

use super::reduce::{BETWEEN_LOOKS, PartialOf, TOGETHER, between_looks, values};
use super::sums::Partial;
use super::walk::map_each;
use super::{Floating, Fold, L1, L2, Map, MapSome, Measure, Number, Order, Ordered, Reduction};
use crate::cpu::{for_avx2, for_each_level};
use crate::lookout::look;
use crate::{Stop, Stopped};
use bytemuck::Zeroable;
use std::array::from_fn;
use std::ops::Range;

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
        for (lane, to) in lanes.chunks_exact(len).zip(to.chunks_exact_mut(len)) {
            let mut value = PartialOf::<R, T>::START;
            for at in between_looks(len, stop) {
                let at = at?;
                let at = if self.reverse { len - at.end..len - at.start } else { at };
                let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
                let pairs = lane.iter().zip(to);
                value = if self.reverse { self.cumulate(value, pairs.rev()) } else { self.cumulate(value, pairs) };
            }
            // Nothing is before the first.
            let first = if self.reverse { to.last_mut() } else { to.first_mut() };
            first
                .filter(|_| self.exclusive)
                .into_iter()
                .for_each(|to| *to = T::nearest(self.reduction.end(R::EMPTY, 0)));
        }
        Ok(())
    }
}

impl<R> Cumulate<R> {
    /// Goes on from the value of the elements before. Returns that of all.
    #[inline(always)]
    fn cumulate<'a, T: Number>(
        &self,
        mut value: PartialOf<R, T>,
        pairs: impl Iterator<Item = (&'a T, &'a mut T)>,
    ) -> PartialOf<R, T>
    where
        R: Reduction<T>,
    {
        let fold = self.reduction.fold();
        for (&x, to) in pairs {
            let with = fold.add(value, x);
            *to = T::nearest(self.reduction.end(if self.exclusive { value } else { with }, 1));
            value = with;
        }
        value
    }
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
        // So few lanes that they are still near when the place is searched.
        let some = (SEARCHED / len).clamp(1, TOGETHER);
        for (lanes, indices) in lanes.chunks(some * len).zip(indices.chunks_mut(some)) {
            let mut best = [T::Precise::zeroed(); TOGETHER];
            let best = best.get_mut(..indices.len()).ok_or(Stopped::Misfit)?;
            values(&self.extreme, len, lanes, best, stop)?;
            for ((best, index), lane) in best.iter().zip(indices).zip(lanes.chunks_exact(len)) {
                *index = find(lane, T::nearest(*best), self.last, stop)? as i64;
            }
        }
        Ok(())
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

for_each_level! {
    /// The first or last place of an element of a lane.
    fn find<T: Number>(lane: &[T], element: T, last: bool, stop: Option<&Stop>) -> Result<usize, Stopped> = find_body::<T>;
}

/// Elements that are compared before it matters whether one is equal.
const SOME: usize = 128;

#[inline(always)]
fn find_body<T: Number>(lane: &[T], element: T, last: bool, stop: Option<&Stop>) -> Result<usize, Stopped> {
    for at in parts(0..lane.len(), BETWEEN_LOOKS, last) {
        look(stop)?;
        for some in parts(at, SOME, last) {
            let elements = lane.get(some.clone()).unwrap_or(&[]);
            let place = match <&[T; SOME]>::try_from(elements).ok() {
                Some(all) if is_in(all, element) => Some(place_in(all, element, last)),
                Some(_) => None,
                None if last => elements.iter().rposition(|x| is_it(*x, element)),
                None => elements.iter().position(|x| is_it(*x, element)),
            };
            if let Some(place) = place {
                return Ok(some.start + place);
            }
        }
    }
    Ok(0)
}

/// Parts of a range of this size, from the first to the last, or from the last to the first: then that is the one that may
/// be shorter.
#[inline(always)]
fn parts(range: Range<usize>, size: usize, last: bool) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(size).map(move |at| match last {
        false => at..range.end.min(at + size),
        true => {
            let end = range.end - (at - range.start);
            range.start.max(end.saturating_sub(size))..end
        }
    })
}

/// Whether an element is among these.
#[inline(always)]
fn is_in<T: Number>(elements: &[T; SOME], element: T) -> bool {
    let mut found = false;
    if element.is_nan() {
        for x in elements {
            found |= x.is_nan();
        }
    } else {
        for x in elements {
            found |= *x == element;
        }
    }
    found
}

/// The first or last place of an element, which is among these.
#[inline(always)]
fn place_in<T: Number>(elements: &[T; SOME], element: T, last: bool) -> usize {
    // How far each is from where the search begins. Two loops: one would not be vectors.
    let (mut away, flip) = ([SOME as u32; SOME], if last { SOME as u32 - 1 } else { 0 });
    for ((away, x), place) in away.iter_mut().zip(elements).zip(0..) {
        *away = if is_it(*x, element) { place ^ flip } else { SOME as u32 };
    }
    let mut least = SOME as u32;
    for away in &away {
        least = least.min(*away);
    }
    (least ^ flip) as usize
}

/// Whether they are equal, or both NaN.
#[inline(always)]
fn is_it<T: Number>(x: T, element: T) -> bool {
    x == element || x.is_nan() & element.is_nan()
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
