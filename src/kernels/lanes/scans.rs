//! Functions of lanes that read them in order: cumulative sums and products, the place of an extreme.

use super::reduce::{between_looks, value};
use super::{Floating, L1, L2, Map, Max, Measure, Number, Reduction};
use crate::kernels::{Stop, Stopped};

/// What a reduction gives of the elements up to each one, rounded at each.
#[derive(Debug)]
pub(crate) struct Cumulate<R> {
    /// The element itself doesn't count.
    pub(crate) exclusive: bool,
    /// From the end on.
    pub(crate) reverse: bool,
    pub(crate) reduction: R,
}

impl<R: Reduction<T> + Sync, T: Number> Map<T> for Cumulate<R> {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let (len, mut value) = (lane.len(), R::START);
        for at in between_looks(len, stop) {
            let at = at?;
            let at = if self.reverse { len - at.end..len - at.start } else { at };
            let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
            let pairs = lane.iter().zip(to);
            value = if self.reverse { self.cumulate(value, pairs.rev()) } else { self.cumulate(value, pairs) };
        }
        // Nothing is before the first.
        let first = if self.reverse { to.last_mut() } else { to.first_mut() };
        first.filter(|_| self.exclusive).into_iter().for_each(|to| *to = T::nearest(R::end(R::EMPTY, 0)));
        Ok(())
    }
}

impl<R> Cumulate<R> {
    /// Goes on from the value of the elements before. Returns that of all.
    #[inline(always)]
    fn cumulate<'a, T: Number>(
        &self,
        mut value: R::Partial,
        pairs: impl Iterator<Item = (&'a T, &'a mut T)>,
    ) -> R::Partial
    where
        R: Reduction<T>,
    {
        for (&x, to) in pairs {
            let with = self.reduction.add(value, x);
            *to = T::nearest(R::end(if self.exclusive { value } else { with }, 1));
            value = with;
        }
        value
    }
}

/// The place of the element that a reduction ([`Max`] or [`Min`](super::Min)) gives: NaN equals NaN here.
#[derive(Debug)]
pub(crate) struct IndexOf<R> {
    /// The last of equals, not the first.
    pub(crate) last: bool,
    pub(crate) reduction: R,
}

impl<R: Reduction<T> + Sync, T: Number> Measure<T> for IndexOf<R> {
    type Value = i64;

    #[inline(always)]
    fn of(&self, lane: &[T], stop: Option<&Stop>) -> Result<i64, Stopped> {
        let best = T::nearest(value(&self.reduction, lane, stop)?);
        let is_best = |x: &T| *x == best || x.is_nan() && best.is_nan();
        let (len, mut found) = (lane.len(), None);
        for at in between_looks(len, stop) {
            let at = at?;
            let at = if self.last { len - at.end..len - at.start } else { at };
            let part = lane.get(at.clone()).filter(|_| found.is_none()).unwrap_or(&[]);
            let place = if self.last { part.iter().rposition(is_best) } else { part.iter().position(is_best) };
            found = found.or(place.map(|place| at.start + place));
        }
        Ok(found.unwrap_or(0) as i64)
    }
}

/// 1 for the first of the greatest elements, and 0 for all others.
#[derive(Debug)]
pub(crate) struct Hardmax;

impl<T: Number> Map<T> for Hardmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        to.fill(T::ZERO);
        let first = IndexOf { last: false, reduction: Max }.of(lane, stop)?;
        to.iter_mut().skip(first as usize).take(1).for_each(|to| *to = T::ONE);
        Ok(())
    }
}

/// The quotient by the L1 or L2 norm; 0 if the norm is 0.
#[derive(Debug)]
pub(crate) struct LpNormalize {
    /// L1, not L2.
    pub(crate) first: bool,
}

impl<T: Floating> Map<T> for LpNormalize {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let norm = if self.first { value(&L1, lane, stop)? } else { value(&L2, lane, stop)? };
        for at in between_looks(lane.len(), stop) {
            let at = at?;
            let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
            for (to, &x) in to.iter_mut().zip(lane) {
                *to = if norm == 0.0 { <T as Number>::ZERO } else { T::nearest(x.precise() / norm) };
            }
        }
        Ok(())
    }
}
