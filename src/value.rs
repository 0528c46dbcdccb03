//! What flows on an edge of a graph.

use crate::dtype::Element;
use crate::error::Result;
use crate::tensor::Tensor;
use ndarray::{ArrayBase, Dimension};

/// What flows on an edge of a graph: today a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
}

impl Value {
    /// The tensor that this value is.
    ///
    /// # Errors
    /// It is something else.
    #[inline]
    pub fn tensor(&self) -> Result<&Tensor> {
        let Value::Tensor(tensor) = self;
        Ok(tensor)
    }

    /// The tensor that this value is.
    ///
    /// # Errors
    /// It is something else.
    pub fn into_tensor(self) -> Result<Tensor> {
        let Value::Tensor(tensor) = self;
        Ok(tensor)
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

impl From<&Tensor> for Value {
    fn from(tensor: &Tensor) -> Value {
        Value::Tensor(tensor.clone())
    }
}

impl<T: Element, S: ndarray::Data<Elem = T>, D: Dimension> From<ArrayBase<S, D>> for Value {
    fn from(array: ArrayBase<S, D>) -> Value {
        Value::Tensor(array.into())
    }
}
