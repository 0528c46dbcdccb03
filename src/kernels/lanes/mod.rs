//! Lanes: the elements along one axis, or along several axes together in row-major order.
//!
//! A lane is the unit of work: it is never divided among threads, and what is computed of it depends on its elements
//! and its length alone, wherever they are in memory.
//!
//! [`reduce`] accumulates a lane to a value ([`Reduction`]) as it reads it. [`measure`] and [`map`] bring each lane as
//! a slice, to functions that read it more than once.

mod elements;
mod normalize;
mod reduce;
mod reductions;
mod scans;
mod softmax;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use elements::{Floating, Number, Stored};
pub(crate) use normalize::{Affine, Normalize, Spread, Statistics, broadcast, normalize, statistics};
pub(crate) use reduce::{Reduction, ReductionOfAll, reduce};
pub(crate) use reductions::{L1, L2, LogSum, Max, Mean, Min, Prod, Sum, SumSquare};
pub(crate) use scans::{Cumulate, Hardmax, IndexOf, LpNormalize};
pub(crate) use softmax::{LogSoftmax, LogSumExp, RoundedSoftmax, Softmax};
pub(crate) use walk::{Map, Measure, map, measure};

use super::volume;
use smallvec::SmallVec;

/// The lanes of a tensor: there is one for each position along the axes that are kept.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// Number of lanes.
    pub(crate) count: usize,
    /// Number of elements of each.
    pub(crate) len: usize,
    kept: Dims,
    along: Dims,
}

/// Dimensions, innermost first. Those of size 1 are left out, and neighbours are merged where the step is even.
type Dims = SmallVec<[Dim; 4]>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dim {
    size: usize,
    /// Elements between neighbours.
    step: usize,
}

impl Lanes {
    /// The lanes along the axes for which `is_along` holds.
    pub(crate) fn new(shape: &[usize], is_along: impl Fn(usize) -> bool) -> Lanes {
        let (mut kept, mut along) = (Dims::new(), Dims::new());
        let mut step = 1usize;
        for (axis, &size) in shape.iter().enumerate().rev() {
            let dims = if is_along(axis) { &mut along } else { &mut kept };
            match dims.last_mut() {
                _ if size == 1 => {}
                Some(inner) if step == inner.size.saturating_mul(inner.step) => {
                    inner.size = inner.size.saturating_mul(size);
                }
                _ => dims.push(Dim { size, step }),
            }
            step = step.saturating_mul(size);
        }
        let volume = |dims: &Dims| volume(1, dims.iter().map(|dim| &dim.size));
        Lanes { count: volume(&kept), len: volume(&along), kept, along }
    }

    /// Whether the elements of a lane are neighbours.
    fn contiguous(&self) -> bool {
        self.len <= 1 || matches!(*self.along, [Dim { step: 1, .. }])
    }

    /// The number of lanes whose elements at the same position are neighbours.
    fn abreast(&self) -> usize {
        match self.kept.first() {
            Some(&Dim { size, step: 1 }) => size,
            _ => 1,
        }
    }
}

/// The offsets of all positions along some dimensions, in row-major order, again and again.
struct Offsets<'a> {
    dims: &'a [Dim],
    position: SmallVec<[usize; 4]>,
    at: usize,
}

impl<'a> Offsets<'a> {
    /// Starts at the position with number `first`.
    #[inline]
    fn new(dims: &'a [Dim], first: usize) -> Offsets<'a> {
        let mut offsets = Offsets { dims, position: SmallVec::from_elem(0, dims.len()), at: 0 };
        let mut rest = first;
        for (position, dim) in offsets.position.iter_mut().zip(dims).filter(|_| first > 0) {
            (*position, rest) = (rest % dim.size, rest / dim.size);
            offsets.at += *position * dim.step;
        }
        offsets
    }

    #[inline]
    fn next(&mut self) -> usize {
        let next = self.at;
        for (position, dim) in self.position.iter_mut().zip(self.dims) {
            *position += 1;
            self.at += dim.step;
            if *position < dim.size {
                break;
            }
            self.at -= dim.size * dim.step;
            *position = 0;
        }
        next
    }
}
