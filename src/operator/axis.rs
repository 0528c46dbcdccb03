//! An axis of an input.

use super::{Call, Node, Note};
use crate::dtype::ShapeText;
use crate::error::{Error, Result, quote};
use crate::tensor::{Scalar, Shape, shape_of};

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

impl<'a> Node<'a> {
    /// The axis that an attribute names. Negative axes count from the end, although the texts of the versions before `from`
    /// don't say what they are: a note of the model does.
    pub(crate) fn axis(&self, name: &str, from: i64) -> Result<i64> {
        let axis = self.int(name)?;
        self.note_axes(&[axis], from);
        Ok(axis)
    }

    /// As [`Node::axis`], of a list that may be left out.
    pub(crate) fn axes(&self, name: &str, from: i64) -> Result<Option<&'a [i64]>> {
        let axes = self.optional(name, Node::ints)?;
        self.note_axes(axes.unwrap_or_default(), from);
        Ok(axes)
    }

    /// As [`Node::axis`], of axes in an input, as far as they are known.
    pub(crate) fn note_constant_axes(&self, k: usize, from: i64) {
        let Some(axes) = self.constant(k).and_then(|axes| axes.tensor().ok()) else { return };
        let negative = |axis: Scalar<'_>| match axis {
            Scalar::Int(axis) => axis < 0,
            Scalar::Float(axis) => axis < 0.0,
            Scalar::Double(axis) => axis < 0.0,
            _ => false,
        };
        // A run refuses more axes than a tensor has.
        if axes.scalars().take(64).any(negative) {
            self.note_axes(&[-1], from);
        }
    }

    /// Notes whether an axis is negative.
    fn note_axes(&self, axes: &[i64], from: i64) {
        if self.version() < from && axes.iter().any(|axis| *axis < 0) {
            self.note(Note::NegativeAxis);
        }
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
        found.ok_or_else(|| self.no_axis(k, given, shape))
    }

    #[cold]
    fn no_axis(&self, k: usize, given: i128, shape: &[usize]) -> Error {
        let (name, rank, shape) = (quote(self.name(k)), shape.len(), ShapeText(shape));
        let most = rank.saturating_sub(1);
        Error::model(format!("axis {given} is out of range for {name} of shape {shape}: allowed -{rank}..={most}"))
            .attribute("axis")
            .value(given)
            .at(|place| place.axis = i64::try_from(given).ok())
    }
}
