//! Tensors that are being written.

use super::buffer::{Buffer, Data};
use super::memory::Memory;
use super::text::Text;
use super::{Shape, Tensor, wrong_type};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use std::sync::Arc;

/// An output that an operator is writing, in memory that its run counts: see [`Call::output`](crate::operator::Call::output).
///
/// Its elements are unspecified until written.
#[derive(Debug)]
pub struct NewTensor {
    dtype: DType,
    shape: Shape,
    buffer: Arc<Buffer>,
    len: usize,
    pub(super) text: Option<Arc<Text>>,
}

impl NewTensor {
    /// `len` is the number of bytes that the shape takes, `text` that which strings are views into.
    #[inline(always)]
    pub(crate) fn new(
        dtype: DType,
        shape: Shape,
        len: usize,
        text: Option<Arc<Text>>,
        memory: &Memory,
    ) -> Result<NewTensor> {
        let buffer = memory.take(len, dtype.align())?;
        Ok(NewTensor { dtype, shape, buffer, len, text })
    }

    /// A tensor to be written over, with its elements; given back if others hold its memory too.
    pub(crate) fn over(tensor: Tensor) -> std::result::Result<NewTensor, Tensor> {
        let Tensor { dtype, shape, mut data, text } = tensor;
        if let Data::Own(buffer) = &mut data
            && Arc::get_mut(buffer).is_none()
        {
            return Err(Tensor { dtype, shape, data, text });
        }
        match data {
            Data::Own(buffer) => {
                let len = buffer.bytes().len();
                Ok(NewTensor { dtype, shape, buffer, len, text })
            }
            data => Err(Tensor { dtype, shape, data, text }),
        }
    }

    /// The bytes of the elements, as [`Tensor::bytes`]; all of them must be written.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match Arc::get_mut(&mut self.buffer) {
            Some(buffer) => buffer.resized(self.len),
            // Nobody else holds it before it is finished.
            None => &mut [],
        }
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// If `T` is not the element type.
    pub fn elements_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        if self.dtype != T::DTYPE {
            return Err(wrong_type(self.dtype, &T::DTYPE.to_string()));
        }
        if self.dtype == DType::Bool {
            // For other types any bits are a value.
            self.bytes_mut().fill(0);
        }
        bytemuck::checked::try_cast_slice_mut(self.bytes_mut())
            .map_err(|e| Error::bug(&format!("new elements can't be viewed: {e}")))
    }

    /// Finishes the tensor.
    #[inline]
    pub fn finish(mut self) -> Tensor {
        // A pooled buffer has its last length until it is written, and one without elements may never be.
        if self.buffer.bytes().len() != self.len {
            self.bytes_mut();
        }
        Tensor { dtype: self.dtype, shape: self.shape, data: Data::Own(self.buffer), text: self.text }
    }
}

impl From<NewTensor> for crate::tensor::Tensor {
    fn from(new: NewTensor) -> Tensor {
        new.finish()
    }
}

/// Scratch memory of an operator, pooled afterwards.
#[derive(Debug)]
pub(crate) struct Scratch<'a> {
    buffer: Option<Arc<Buffer>>,
    memory: &'a Memory,
}

impl<'a> Scratch<'a> {
    pub(crate) fn new(len: usize, align: usize, memory: &'a Memory) -> Result<Scratch<'a>> {
        let mut buffer = memory.take(len, align)?;
        if let Some(own) = Arc::get_mut(&mut buffer) {
            own.resized(len);
        }
        Ok(Scratch { buffer: Some(buffer), memory })
    }

    /// The memory as elements, as they were written.
    pub(crate) fn elements<T: bytemuck::Pod>(&self) -> &[T] {
        let bytes = self.buffer.as_ref().map_or(&[][..], |buffer| buffer.bytes());
        bytemuck::try_cast_slice(bytes).unwrap_or(&[])
    }

    /// The memory as elements, with unspecified values.
    pub(crate) fn elements_mut<T: bytemuck::Pod>(&mut self) -> &mut [T] {
        let buffer = self.buffer.as_mut().and_then(Arc::get_mut);
        let bytes = buffer.map_or(&mut [][..], Buffer::bytes_mut);
        bytemuck::try_cast_slice_mut(bytes).unwrap_or(&mut [])
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.memory.give(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_has_its_length_all_the_same() {
        let memory = Memory::new(1000);
        memory.give(Scratch::new(3, 1, &memory).unwrap().buffer.take().unwrap());
        let new = NewTensor::new(DType::Int64, Shape::from_slice(&[1, 0]), 0, None, &memory).unwrap();
        assert_eq!(new.finish(), Tensor::from_elements::<i64>(&[1, 0], vec![]).unwrap());
    }
}
