//! An axis of an input.

use super::Call;
use crate::dtype::ShapeText;
use crate::error::{Error, Result, quote};
use crate::tensor::{Shape, shape_of};

/// An axis of a tensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    /// The axis as it was given.
    pub(crate) given: i64,
    /// Its index among the dimensions.
    pub(crate) at: usize,
    /// Its size.
    pub(crate) size: usize,
}

impl Axis {
    /// The index of an axis of a tensor of rank `rank`: negative values count from the end.
    pub(crate) fn place(given: i128, rank: usize) -> Option<usize> {
        let distance = usize::try_from(given.unsigned_abs()).ok()?;
        let at = if given < 0 { rank.checked_sub(distance)? } else { distance };
        (at < rank).then_some(at)
    }

    /// `shape` with this axis replaced by the dimensions `by`.
    pub(crate) fn replaced_in(&self, shape: &[usize], by: &[usize]) -> Shape {
        shape_of([shape.get(..self.at).unwrap_or(&[]), by, shape.get(self.at + 1..).unwrap_or(&[])])
    }
}

impl Call<'_> {
    /// The axis of the input `k` that the attribute `axis` names: negative values count from the end.
    ///
    /// # Errors
    /// If the input is a scalar, or has no such axis.
    #[inline]
    pub(crate) fn axis(&self, k: usize, given: impl Into<i128>) -> Result<Axis> {
        let (given, shape) = (given.into(), self.ranked(k)?.shape());
        let found = Axis::place(given, shape.len())
            .and_then(|at| Some(Axis { given: i64::try_from(given).ok()?, at, size: *shape.get(at)? }));
        found.ok_or_else(|| self.no_axis(k, given, shape, true))
    }

    /// As [`Call::axis`], for an operator whose old versions have no negative axes.
    pub(crate) fn axis_if(&self, k: usize, given: i64, negative: bool) -> Result<Axis> {
        if given < 0 && !negative {
            return Err(self.no_axis(k, given.into(), self.ranked(k)?.shape(), false));
        }
        self.axis(k, given)
    }

    #[cold]
    fn no_axis(&self, k: usize, given: i128, shape: &[usize], negative: bool) -> Error {
        let (name, rank, shape) = (quote(self.name(k)), shape.len(), ShapeText(shape));
        let least = if negative { format!("-{rank}") } else { "0".to_string() };
        let allowed = format!("allowed {least}..={}", rank.saturating_sub(1));
        Error::model(format!("axis {given} is out of range for {name} of shape {shape}: {allowed}"))
            .attribute("axis")
            .value(given)
            .at(|place| place.axis = i64::try_from(given).ok())
    }
}
