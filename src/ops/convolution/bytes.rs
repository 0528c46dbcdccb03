//! Conv of integers of 8 bits: what a dequantized convolution becomes.

use crate::ops::prelude::*;

/// A convolution of bytes without a float between them. The bias is that of the bytes, not an input.
#[derive(Debug)]
pub(super) struct ByteConv {
    filters: Filters,
    weights: Weights,
    bytes: ByteProduct,
}

impl ByteConv {
    pub(super) fn new(filters: &Filters, bytes: ByteProduct) -> ByteConv {
        let filters = Filters { bias: None, ..filters.clone() };
        ByteConv { filters, weights: Weights::known(bytes.constant), bytes }
    }

    fn convolution(&self, call: &Call<'_>) -> Result<Convolution> {
        self.filters.of_call(call, |facts| self.filters.convolved(facts))
    }
}

impl Fused for ByteConv {
    fn fits(&self, call: &Call<'_>) -> bool {
        let Ok(convolution) = self.convolution(call) else { return false };
        self.bytes.fits(call, convolution.k, convolution.m * convolution.groups)
    }
}

impl Operator for ByteConv {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (call, ByteProduct { zeros, factors, bias, zero_point, .. }) = (&*call, &self.bytes);
        let convolution = self.convolution(call)?;
        let operands = [call.tensor(0)?, call.tensor(1)?];
        let bias = bias.as_ref().map(Tensor::as_slice::<i32>).transpose()?;
        with_small!(zero_point.dtype(), S => {
            let last = (bias, factors.as_slice::<f32>()?, zero_point.as_slice::<S>()?);
            convolution.requantized::<S>(call, &self.weights, operands, zeros.each_ref(), last)
        })
    }
}
