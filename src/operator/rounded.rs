//! Operators of float16 and bfloat16 that compute in float32, and round each result to the type.

use super::{Align, Call, Constants, Held, Operator, Rowwise, Values};
use crate::dtype::DType;
use crate::error::Result;
use bytemuck::cast_slice_mut;
use kernels::half::Half;
use std::sync::Arc;

/// An operator of float32 whose results are rounded to a type of 16 bits, or that rounding alone.
#[derive(Debug)]
pub(crate) struct Rounded {
    pub(crate) of: Option<Arc<dyn Rowwise>>,
    pub(crate) to: Half,
}

impl Rowwise for Rounded {
    fn may_chain(&self, dtype: DType) -> bool {
        dtype == DType::Float && self.of.as_ref().is_none_or(|of| of.may_chain(dtype))
    }

    fn aligns_last(&self) -> bool {
        self.of.as_ref().is_none_or(|of| of.aligns_last())
    }

    fn compute(&self, dtype: DType, inputs: &[&[u8]], out: &mut [u8]) {
        match (&self.of, inputs) {
            (Some(of), inputs) => of.compute(dtype, inputs, out),
            (None, [input, ..]) => out.copy_from_slice(input),
            (None, []) => {}
        }
        self.to.round(cast_slice_mut(out));
    }

    fn of_constants(&self, dtype: DType, constant: &Constants<'_>) -> Option<Arc<dyn Rowwise>> {
        let of = self.of.as_ref()?.of_constants(dtype, constant)?;
        Some(Arc::new(Rounded { of: Some(of), to: self.to }))
    }
}

impl Operator for Rounded {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let first = match &self.of {
            Some(of) => Held::Own(of.run(call)?.take_first()?.into_tensor()?),
            None => Held::Input(0),
        };
        let round = |[from]: [&[u8]; 1], out: &mut [u8]| {
            out.copy_from_slice(from);
            self.to.round(cast_slice_mut(out));
        };
        Ok(call.rowwise([first], Align::Last, DType::Float, &round)?.into())
    }
}
