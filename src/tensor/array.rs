//! Tensors as arrays of the crate ndarray, and back.

use super::{Shape, Tensor};
use crate::dtype::{DType, Element, ShapeText};
use crate::error::{Error, Result};
use ndarray::{ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn};

impl Tensor {
    /// A tensor with the elements of an array. An owned array in standard layout moves without a copy.
    pub fn from_array<T: Element, S, D>(array: ArrayBase<S, D>) -> Tensor
    where
        S: Data<Elem = T>,
        D: Dimension,
    {
        let shape = Shape::from_slice(array.shape());
        let len = array.len();
        let array =
            if array.is_standard_layout() { array.into_owned() } else { array.as_standard_layout().into_owned() };
        let words = match array.into_raw_vec_and_offset() {
            (words, None | Some(0)) if words.len() == len => words,
            (words, offset) => words.into_iter().skip(offset.unwrap_or(0)).take(len).collect(),
        };
        Tensor::of_words(shape, words)
    }

    /// The elements as an array. If the bytes came from a file and are not aligned for `T`, the first call makes an
    /// aligned copy, which the tensor and its clones keep.
    ///
    /// # Errors
    /// If `T` is not the tensor's element type, or `ndarray` doesn't support the shape.
    pub fn view<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        ArrayViewD::from_shape(IxDyn(&self.shape), self.as_slice()?).map_err(|e| no_array(self.dtype, &self.shape, &e))
    }

    /// The elements as an owned array, in the same memory if nothing else shares it.
    ///
    /// # Errors
    /// As [`Tensor::view`].
    pub fn into_array<T: Element>(self) -> Result<ArrayD<T>> {
        let (dtype, shape) = (self.dtype, self.shape.clone());
        ArrayD::from_shape_vec(IxDyn(&shape), self.into_elements()?).map_err(|e| no_array(dtype, &shape, &e))
    }
}

fn no_array(dtype: DType, shape: &[usize], error: &ndarray::ShapeError) -> Error {
    Error::input(format!("a tensor of {dtype} of shape {} can't be an array: {error}", ShapeText(shape)))
}

impl<T: Element, S: Data<Elem = T>, D: Dimension> From<ArrayBase<S, D>> for Tensor {
    fn from(array: ArrayBase<S, D>) -> Tensor {
        Tensor::from_array(array)
    }
}
