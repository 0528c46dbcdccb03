//! Second operands of products that are small integers, packed once.

use super::prelude::*;
use kernels::gemm::Integers;

/// The integers, packed by the first run.
#[derive(Debug)]
pub(super) struct SmallWeights {
    of: Dequantized,
    weights: Weights,
}

impl SmallWeights {
    pub(super) fn new(of: Dequantized) -> SmallWeights {
        SmallWeights { of, weights: Weights::known(true) }
    }

    /// The integers of a tensor, as the floats that they stand for: in the `room` if their packed form isn't kept.
    pub(super) fn right<'a, 'c: 'a, T>(
        &'a self,
        call: &'c Call<'_>,
        x: &Tensor,
        room: &'a mut Option<Scratch<'c>>,
    ) -> Result<Right<'a, T>> {
        let Dequantized { sizes, signed, turned, scales, zeros, apart, dtype } = &self.of;
        let pack = |to: &mut [u32]| {
            let mut room = None;
            let integers = Integers {
                sizes: *sizes,
                signed: *signed,
                bytes: x.bytes(),
                apart: if *turned { [1, sizes.k] } else { [sizes.n, 1] },
                scales: elements_of(call.context(), scales, &mut room)?,
                zeros: zeros.as_ref().map(Tensor::bytes),
                scales_apart: *apart,
            };
            Ok(integers.pack(to, call.resources())?)
        };
        let words = self.weights.formed_in(call, x, sizes.packed_len(), room, pack)?;
        Ok(Right::Dequantized(kernels::gemm::Dequantized::new(*sizes, words, dtype.half())))
    }
}
