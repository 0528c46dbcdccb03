//! ScatterND, ScatterElements, Scatter, TensorScatter: a tensor with elements updated at indices.

mod elements;
mod nd;
mod tensor;
mod update;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] =
    &[nd::SCATTER_ND, elements::SCATTER_ELEMENTS, elements::SCATTER, tensor::TENSOR_SCATTER];
