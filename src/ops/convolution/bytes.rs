//! Conv of integers of 8 bits: what a dequantized convolution becomes.

use super::bytes_in_blocks::BytesInBlocks;
use crate::ops::prelude::*;
use std::sync::OnceLock;

/// A convolution of bytes without a float between them. The bias is that of the bytes, not an input.
#[derive(Debug)]
pub(super) struct ByteConv {
    filters: Filters,
    weights: Weights,
    bytes: Arc<ByteProduct>,
    /// Its form for blocks, if it has one for the first operands.
    in_blocks: OnceLock<Option<BytesInBlocks>>,
}

impl ByteConv {
    pub(super) fn new(filters: &Filters, bytes: ByteProduct) -> ByteConv {
        let filters = Filters { x: 0, w: 1, bias: None, ..filters.clone() };
        let (weights, in_blocks) = (Weights::known(bytes.constant), OnceLock::new());
        ByteConv { filters, weights, bytes: Arc::new(bytes), in_blocks }
    }

    fn in_blocks(&self, call: &Call<'_>) -> Option<&BytesInBlocks> {
        let (x, w) = (call.tensor(0).ok()?.shape(), call.tensor(1).ok()?.shape());
        let make = || BytesInBlocks::of(&self.filters, &self.bytes, *x.get(1)?, w);
        self.in_blocks.get_or_init(make).as_ref()
    }
}

impl Fused for ByteConv {
    fn fits(&self, call: &Call<'_>) -> bool {
        let Ok(convolution) = self.filters.convolution(call) else { return false };
        // In blocks or not: the same convolutions are those of integers.
        self.bytes.fits(call, convolution.k, convolution.m * convolution.groups)
            && match self.in_blocks(call) {
                Some(form) => form.is_ready(call, &Layout::default()),
                None => self.bytes.floats.is_none(),
            }
    }

    fn byte_windows(&self, channels: usize, filters: &[usize]) -> Option<InBlocks> {
        let form = BytesInBlocks::of(&self.filters, &self.bytes, channels, filters)?;
        Some(InBlocks::Windows { channels: form.count, operator: Arc::new(form), ends: Ends::Either })
    }
}

impl Operator for ByteConv {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        if let Some(form) = self.in_blocks(call) {
            return form.run(call, &Layout::default(), None);
        }
        let (call, ByteProduct { zeros, factors, bias, zero_point, .. }) = (&*call, &*self.bytes);
        let convolution = self.filters.convolution(call)?;
        let operands = [call.tensor(0)?, call.tensor(1)?];
        let bias = bias.as_ref().map(Tensor::as_slice::<i32>).transpose()?;
        with_small!(zero_point.dtype(), S => {
            let last = (bias, factors.as_slice::<f32>()?, zero_point.as_slice::<S>()?);
            convolution.requantized::<S>(call, &self.weights, operands, zeros.each_ref(), last)
        })
    }
}
