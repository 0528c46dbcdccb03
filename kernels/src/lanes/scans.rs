//! Cumulative sums and products of lanes.

use super::reduce::{BETWEEN_LOOKS, PartialOf, between_looks};
use super::sums::Partial;
use super::walk::map_each;
use super::{Fold, Map, MapSome, Number, Reduction};
use crate::cpu::for_each_level;
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
        let (mut some, mut outs) = (lanes.chunks_exact(LANES * len), to.chunks_exact_mut(LANES * len));
        for (lanes, to) in some.by_ref().zip(outs.by_ref()) {
            cumulate_lanes::<R, T, LANES>(self, len, lanes, to, stop)?;
        }
        for (lane, to) in some.remainder().chunks_exact(len).zip(outs.into_remainder().chunks_exact_mut(len)) {
            cumulate_lanes::<R, T, 1>(self, len, lane, to, stop)?;
        }
        Ok(())
    }
}

impl<R> Cumulate<R> {
    /// Adds an element to the value of those before.
    #[inline(always)]
    fn add<T: Number>(&self, fold: &R::Fold, value: &mut PartialOf<R, T>, x: T, to: &mut T)
    where
        R: Reduction<T>,
    {
        let with = fold.add(*value, x);
        *to = T::nearest(self.reduction.end(if self.exclusive { *value } else { with }, 1));
        *value = with;
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
                how.add(&fold, value, *x, to);
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
pub(super) const SIDE: usize = 1024;

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
                        how.add(&fold, value, *a, to_a);
                        how.add(&fold, value, *b, to_b);
                        how.add(&fold, value, *c, to_c);
                        how.add(&fold, value, *d, to_d);
                    }
                }
                _ => {
                    for (lanes, to) in lanes.iter().zip(&mut *to) {
                        for ((value, x), to) in values.iter_mut().zip(*lanes).zip(&mut **to) {
                            how.add(&fold, value, *x, to);
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
