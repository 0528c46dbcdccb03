//! Elements as numbers to compute with, and back.

use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::operator::Context;
use crate::tensor::{NewTensor, Scratch, Shape, Tensor};
use bytemuck::Pod;
use kernels::convert::{Conversion, convert};
use std::marker::PhantomData;

/// Converts the elements of a tensor.
pub(super) fn converted(tensor: &Tensor, to: DType, out: &mut [u8], context: &Context) -> Result<()> {
    let work = Conversion::plain(tensor.dtype().format(), to.format());
    Ok(convert(work, tensor.aligned_bytes(), out, context.resources())?)
}

/// The elements of a tensor: as they are, or converted in scratch memory, which counts as work.
pub(super) fn elements_of<'m, 'c: 'm, T: Element + Pod>(
    context: &'c Context,
    tensor: &'m Tensor,
    room: &'m mut Option<Scratch<'c>>,
) -> Result<&'m [T]> {
    if tensor.dtype() == T::DTYPE {
        return tensor.as_slice();
    }
    context.charge(tensor.len() as u64)?;
    let numbers = room.insert(scratch::<T>(context, tensor.len())?).elements_mut::<T>();
    converted(tensor, T::DTYPE, bytemuck::cast_slice_mut(numbers), context)?;
    Ok(numbers)
}

/// As [`Call::scratch`].
pub(super) fn scratch<T: Pod>(context: &Context, count: usize) -> Result<Scratch<'_>> {
    Scratch::new(count.saturating_mul(size_of::<T>()), align_of::<T>(), &context.memory)
}

/// An output that is computed as elements of `T`, and rounded if it is to have another type.
pub(super) struct Output<'c, T> {
    tensor: NewTensor,
    dtype: DType,
    room: Option<Scratch<'c>>,
    context: &'c Context,
    number: PhantomData<T>,
}

impl<'c, T: Element + Pod> Output<'c, T> {
    pub(super) fn new(context: &'c Context, dtype: DType, shape: Shape) -> Result<Output<'c, T>> {
        let count = kernels::volume(1, &shape);
        let tensor = context.output_of(dtype, shape)?;
        let room = if dtype == T::DTYPE { None } else { Some(scratch::<T>(context, count)?) };
        Ok(Output { tensor, dtype, room, context, number: PhantomData })
    }

    pub(super) fn elements_mut(&mut self) -> Result<&mut [T]> {
        match &mut self.room {
            Some(room) => Ok(room.elements_mut()),
            None => self.tensor.elements_mut(),
        }
    }

    pub(super) fn finish(mut self) -> Result<Tensor> {
        if let Some(mut room) = self.room {
            let work = Conversion::plain(T::DTYPE.format(), self.dtype.format());
            let numbers = bytemuck::cast_slice::<T, u8>(room.elements_mut());
            convert(work, numbers, self.tensor.bytes_mut(), self.context.resources())?;
        }
        Ok(self.tensor.finish())
    }
}
