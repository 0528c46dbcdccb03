//! The input `attn_mask` as numbers that are added to scores.

use crate::ops::prelude::*;
use kernels::attention::{Bias, Heads, Layout, Numbers, Sizes};

/// What a mask means.
pub(super) struct Mask {
    /// A last dimension that is shorter than the keys is filled up with -inf.
    pub(super) pads: bool,
    /// The type that numbers are rounded to.
    pub(super) like: DType,
}

impl Mask {
    /// The mask, if there is one, broadcast to the scores.
    pub(super) fn bias<'m, 'c: 'm, T: Numbers + Element>(
        &self,
        call: &'c Call<'_>,
        sizes: &Sizes,
        room: &'m mut Option<Scratch<'c>>,
    ) -> Result<Option<Bias<'m, T>>> {
        let Some(mask) = call.optional_tensor(3)? else { return Ok(None) };
        let heads = sizes.heads.saturating_mul(sizes.group);
        let scores = [sizes.batch, heads, sizes.queries, sizes.keys];
        let padded = self.pads && mask.shape().last().is_some_and(|columns| *columns < sizes.keys);
        let mut strides = [0; 4];
        let mut stride = 1usize;
        let mut given = mask.shape().iter().rev();
        for (at, (to, &size)) in strides.iter_mut().zip(&scores).enumerate().rev() {
            let Some(&dim) = given.next() else { break };
            if dim == size || padded && at == 3 {
                *to = stride;
            } else if dim != 1 {
                return Err(self.misfit(mask, &scores));
            }
            stride = stride.saturating_mul(dim);
        }
        if given.next().is_some() {
            return Err(self.misfit(mask, &scores));
        }
        let [batch, head, row, column] = strides;
        let columns = if padded { mask.shape().last().copied().unwrap_or(0) } else { sizes.keys };
        let layout = Layout { batch, head, row };
        Ok(Some(Bias { rows: Heads { elements: self.numbers(call, mask, room)?, layout }, column, columns }))
    }

    /// The elements of a mask, for bools 0 or -inf.
    fn numbers<'m, 'c: 'm, T: Numbers + Element>(
        &self,
        call: &'c Call<'_>,
        mask: &'c Tensor,
        room: &'m mut Option<Scratch<'c>>,
    ) -> Result<&'m [T]> {
        if mask.dtype() == T::DTYPE && self.like == T::DTYPE {
            return mask.as_slice();
        }
        let numbers = room.insert(call.scratch::<T>(mask.len())?).elements_mut::<T>();
        if mask.dtype() == DType::Bool {
            let out = bytemuck::cast_slice_mut::<T, u8>(numbers);
            let (flags, size) = (mask.bytes(), size_of::<T>());
            kernels::each(out, BLOCK * size, call.resources(), |at, out| {
                let flags = flags.get(at * BLOCK..).unwrap_or(&[]);
                for (to, flag) in bytemuck::cast_slice_mut::<u8, T>(out).iter_mut().zip(flags) {
                    *to = if *flag == 0 { T::LEAST } else { T::of(0.0) };
                }
            })?;
            return Ok(numbers);
        }
        converted(mask, T::DTYPE, bytemuck::cast_slice_mut(numbers), call.context())?;
        let [to_float16, to_bfloat16, to_float] = T::ROUNDED;
        let round = match self.like {
            like if like == mask.dtype() || like == T::DTYPE => return Ok(numbers),
            DType::Float16 => to_float16,
            DType::Bfloat16 => to_bfloat16,
            _ => to_float,
        };
        let out = bytemuck::cast_slice_mut::<T, u8>(numbers);
        kernels::each(out, BLOCK * size_of::<T>(), call.resources(), |_, out| round(bytemuck::cast_slice_mut(out)))?;
        Ok(numbers)
    }

    #[cold]
    fn misfit(&self, mask: &Tensor, scores: &[usize; 4]) -> Error {
        let (shape, scores) = (ShapeText(mask.shape()), ShapeText(scores));
        let last = if self.pads { ", and its last dimension is not a shorter one" } else { "" };
        let text = format!("\"attn_mask\" of shape {shape} can't be broadcast to the scores, {scores}{last}");
        Error::input(text).parameter("attn_mask")
    }
}

/// Numbers that are converted or rounded at a time.
const BLOCK: usize = 1 << 14;
