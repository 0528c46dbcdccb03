//! Functions of lanes that read them in order: cumulative sums and products, the place of an extreme.

use super::reduce::value;
use super::{L1, L2, Map, Max, Measure, Number, Reduction};

/// What a reduction gives of the elements up to each one.
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
    fn map(&self, lane: &[T], to: &mut [T]) {
        let pairs = lane.iter().zip(to);
        if self.reverse { self.cumulate(pairs.rev()) } else { self.cumulate(pairs) }
    }
}

impl<R> Cumulate<R> {
    #[inline(always)]
    fn cumulate<'a, T: Number>(&self, mut pairs: impl Iterator<Item = (&'a T, &'a mut T)>)
    where
        R: Reduction<T>,
    {
        let mut value = R::START;
        if self.exclusive
            && let Some((&x, to)) = pairs.next()
        {
            (*to, value) = (R::EMPTY, self.reduction.counts(x));
        }
        for (&x, to) in pairs {
            let with = R::join(value, self.reduction.counts(x));
            *to = if self.exclusive { value } else { with };
            value = with;
        }
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
    fn of(&self, lane: &[T]) -> i64 {
        let best = value(&self.reduction, lane);
        let is_best = |x: &T| *x == best || x.is_nan() && best.is_nan();
        let at = if self.last { lane.iter().rposition(is_best) } else { lane.iter().position(is_best) };
        at.unwrap_or(0) as i64
    }
}

/// 1 for the first of the greatest elements, and 0 for all others.
#[derive(Debug)]
pub(crate) struct Hardmax;

impl<T: Number> Map<T> for Hardmax {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T]) {
        to.fill(T::ZERO);
        let first = IndexOf { last: false, reduction: Max }.of(lane);
        to.iter_mut().skip(first as usize).take(1).for_each(|to| *to = T::ONE);
    }
}

/// The quotient by the L1 or L2 norm; 0 if the norm is 0.
#[derive(Debug)]
pub(crate) struct LpNormalize {
    /// L1, not L2.
    pub(crate) first: bool,
}

impl<T: Number + std::ops::Div<Output = T>> Map<T> for LpNormalize {
    #[inline(always)]
    fn map(&self, lane: &[T], to: &mut [T]) {
        let norm = if self.first { value(&L1, lane) } else { value(&L2, lane) };
        to.iter_mut().zip(lane).for_each(|(to, &x)| *to = x / norm);
        if norm == T::ZERO {
            to.fill(norm);
        }
    }
}
