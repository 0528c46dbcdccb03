//! Lanes: the elements along one axis, or along several axes together in row-major order.
//!
//! A lane is the unit of work: it is never divided among threads, and what is computed of it depends on its elements
//! and its length alone, wherever they are in memory.
//!
//! [`reduce`] accumulates a lane to a value ([`Reduction`]) as it reads it. [`measure`] and [`map`] bring lanes one behind
//! the other, to functions that read them more than once; [`pick`] is for those that give several values.
//!
//! Code is shared: few types of numbers stand for all elements, reductions share their folds, and what walks over lanes
//! knows only the type of numbers.

mod affine;
#[cfg(target_arch = "x86_64")]
mod blocks;
#[cfg(target_arch = "x86_64")]
mod eights;
mod elements;
mod fold;
mod normalize;
mod norms;
pub mod pick;
mod places;
mod rank;
mod reduce;
mod reductions;
mod scans;
mod short;
mod softmax;
mod stored;
mod sums;
#[cfg(test)]
mod tests;
mod walk;

pub use affine::{Affine, Spread};
pub use elements::{Floating, Halved, Number, Ordered, Stored};
pub use fold::Fold;
pub use normalize::{Moment, Normalize, normalize, normalize_scaled, statistics};
pub use norms::{LpNormalize, Standardize};
pub use places::{Hardmax, IndexOf};
pub use rank::First;
pub use reduce::{Reduction, ReductionOfAll, reduce, reduce_to};
pub use reductions::{Extreme, L1, L2, LogSum, Mean, Norm, Order, Prod, Sum, SumSquare};
pub use scans::Cumulate;
pub use softmax::{LogSoftmax, LogSumExp, Softmax};
pub use sums::{Partial, product};
pub use walk::{Map, MapSome, Measure, map, measure};

use super::positions::{self, Dim, Dims};
use super::volume;

/// The lanes of a tensor: there is one for each position along the axes that are kept.
#[derive(Debug)]
pub struct Lanes {
    /// Number of lanes.
    pub count: usize,
    /// Number of elements of each.
    pub len: usize,
    kept: Dims<1>,
    along: Dims<1>,
    /// Number of lanes inside the outermost of their axes.
    inside: usize,
}

impl Lanes {
    /// The lanes along the axes for which `is_along` holds.
    #[inline]
    pub fn new(shape: &[usize], is_along: impl Fn(usize) -> bool) -> Lanes {
        Lanes::of(shape, &is_along)
    }

    fn of(shape: &[usize], is_along: &dyn Fn(usize) -> bool) -> Lanes {
        let (mut kept, mut along) = (Dims::new(), Dims::new());
        let (mut step, mut inner, mut inside) = (1usize, 1usize, 1);
        for (axis, &size) in shape.iter().enumerate().rev() {
            if is_along(axis) {
                positions::add(&mut along, size, [step]);
                inside = inner;
            } else {
                positions::add(&mut kept, size, [step]);
                inner = inner.saturating_mul(size);
            }
            step = step.saturating_mul(size);
        }
        let volume = |dims: &Dims<1>| volume(1, dims.iter().map(|dim| &dim.size));
        Lanes { count: volume(&kept), len: volume(&along), kept, along, inside }
    }

    /// Whether the elements of a lane are neighbours.
    fn contiguous(&self) -> bool {
        self.len <= 1 || matches!(*self.along, [Dim { steps: [1], .. }])
    }

    /// The number of lanes whose elements at the same position are neighbours.
    fn abreast(&self) -> usize {
        match self.kept.first() {
            Some(&Dim { size, steps: [1] }) => size,
            _ => 1,
        }
    }

    /// The number of lanes that work is divided by: of those side by side, rows of vectors, but a share for each thread.
    fn unit(&self, threads: usize) -> usize {
        self.unit_up_to(fold::ABREAST, threads)
    }

    fn unit_up_to(&self, most: usize, threads: usize) -> usize {
        /// Elements of a vector.
        const VECTOR: usize = 16;
        match self.contiguous() {
            true => 1,
            false => {
                let abreast = self.abreast();
                abreast.div_ceil(threads.max(1)).next_multiple_of(VECTOR).min(most).min(abreast)
            }
        }
    }
}
