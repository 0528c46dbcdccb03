//! The outputs of an operator.

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::value::{Optional, Sequence, Value};
use smallvec::SmallVec;

/// The outputs of an operator, in the order of its schema. An output that the node doesn't name may be a hole.
///
/// ```
/// use onnxref::operator::Values;
/// use onnxref::{Tensor, Value};
///
/// let mut outputs = Values::from(Tensor::scalar(1.5f32));
/// outputs.push_hole();
/// outputs.push(vec![1i64, 2]);
/// assert_eq!(outputs.len(), 3);
/// assert_eq!((outputs.get(1), outputs.get(2)), (None, Some(&Value::from(vec![1i64, 2]))));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(SmallVec<[Option<Value>; 1]>);

impl Values {
    /// No output.
    pub fn new() -> Values {
        Values::default()
    }

    /// Adds the next output.
    pub fn push(&mut self, value: impl Into<Value>) {
        self.0.push(Some(value.into()));
    }

    /// Leaves out the next output, which the node doesn't name: see [`Call::wants`](super::Call::wants).
    pub fn push_hole(&mut self) {
        self.0.push(None);
    }

    /// The number of outputs, holes included.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An output, if there is one at this place.
    pub fn get(&self, k: usize) -> Option<&Value> {
        self.0.get(k)?.as_ref()
    }

    /// The outputs; `None` for a hole.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&Value>> {
        self.0.iter().map(Option::as_ref)
    }

    pub(crate) fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Option<Value>> {
        self.0.iter_mut()
    }

    /// Moves out the first value.
    pub(crate) fn take_first(&mut self) -> Result<Value> {
        let first = if self.0.is_empty() { None } else { self.0.remove(0) };
        first.ok_or_else(|| Error::bug("a body has no outputs"))
    }

    /// Moves out the last values.
    pub(crate) fn take_last(&mut self, count: usize) -> impl Iterator<Item = Value> {
        self.0.drain(self.0.len().saturating_sub(count)..).flatten()
    }

    /// Moves all values out, in order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Option<Value>> {
        self.0.drain(..)
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

macro_rules! from_one {
    ($($type:ty)*) => {$(
        impl From<$type> for Values {
            #[inline]
            fn from(value: $type) -> Values {
                Values(SmallVec::from_buf([Some(value.into())]))
            }
        }
    )*};
}

from_one! { Tensor Sequence Optional Value }

impl<const N: usize> From<[Value; N]> for Values {
    #[inline]
    fn from(values: [Value; N]) -> Values {
        values.into_iter().collect()
    }
}

impl FromIterator<Value> for Values {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Values {
        Values(values.into_iter().map(Some).collect())
    }
}

impl Extend<Value> for Values {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, values: I) {
        self.0.extend(values.into_iter().map(Some));
    }
}

/// The outputs in order, without holes.
impl IntoIterator for Values {
    type Item = Value;
    type IntoIter = std::iter::Flatten<smallvec::IntoIter<[Option<Value>; 1]>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}
