//! Divides lanes by their norm, or by their deviation.

use super::normalize::Normalize;
use super::reduce::{TOGETHER, between_looks, values};
use super::stored::Elements;
use super::{Floating, L1, L2, Map, Number};
use crate::cpu::for_each_level;
use crate::{Stop, Stopped};

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

/// The quotient of an element less the mean of its lane, and of the standard deviation and 1e-9.
#[derive(Debug)]
pub struct Standardize {
    /// Otherwise only the mean is subtracted.
    pub divide: bool,
}

impl<T: Floating> Map<T> for Standardize {
    fn each(&self, len: usize, lanes: &[T], to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped> {
        let how = Normalize { center: true, epsilon: 0.0 };
        for (lane, to) in lanes.chunks_exact(len).zip(to.chunks_exact_mut(len)) {
            let (mean, rest, variance) = how.moments(len, Elements::of::<T>(lane), stop)?;
            let divisor = if self.divide { variance.sqrt() + 1e-9 } else { 1.0 };
            standardize::<T>(lane, (mean, rest, divisor), to, stop)?;
        }
        Ok(())
    }
}

for_each_level! {
    /// Subtracts a mean from a lane, and what rounding took from it, and divides by a divisor.
    fn standardize<T: Floating>(lane: &[T], by: (T, f64, f64), to: &mut [T], stop: Option<&Stop>) -> Result<(), Stopped>
        = standardize_body::<T>;
}

#[inline(always)]
fn standardize_body<T: Floating>(
    lane: &[T],
    (mean, rest, divisor): (T, f64, f64),
    to: &mut [T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    for at in between_looks(lane.len(), stop) {
        let at = at?;
        let (lane, to) = (lane.get(at.clone()).unwrap_or(&[]), to.get_mut(at).unwrap_or(&mut []));
        for (to, x) in to.iter_mut().zip(lane) {
            *to = T::nearest((x.precise() - mean.precise() - rest) / divisor);
        }
    }
    Ok(())
}
