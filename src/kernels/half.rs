//! float16 and bfloat16: kernels compute in `f32` and round once.

use crate::dtype::DType;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// A float of 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    F16,
    Bf16,
}

impl Half {
    pub(crate) fn of(dtype: DType) -> Option<Half> {
        match dtype {
            DType::Float16 => Some(Half::F16),
            DType::Bfloat16 => Some(Half::Bf16),
            _ => None,
        }
    }

    /// Widens elements; each has exactly one `f32`.
    pub(crate) fn widen(self, from: &[u16], to: &mut [f32]) {
        match self {
            Half::F16 => bytemuck::cast_slice::<u16, f16>(from).convert_to_f32_slice(to),
            Half::Bf16 => {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = f32::from_bits(u32::from(*from) << 16);
                }
            }
        }
    }

    /// Rounds to the nearest, ties to even.
    pub(crate) fn narrow(self, from: &[f32], to: &mut [u16]) {
        match self {
            Half::F16 => bytemuck::cast_slice_mut::<u16, f16>(to).convert_from_f32_slice(from),
            Half::Bf16 => {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = bf16::from_f32(*from).to_bits();
                }
            }
        }
    }

    /// Rounds each number to one of 16 bits.
    pub(crate) fn round(self, numbers: &mut [f32]) {
        let mut bits = [0; 64];
        for numbers in numbers.chunks_mut(bits.len()) {
            let bits = bits.get_mut(..numbers.len()).unwrap_or(&mut []);
            self.narrow(numbers, bits);
            self.widen(bits, numbers);
        }
    }
}
