//! float16 and bfloat16: kernels compute in `f32` and round once.

use super::cpu::for_each_level;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// A float of 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    F16,
    Bf16,
}

impl Half {
    /// Widens elements; each has exactly one `f32`.
    pub fn widen(self, from: &[u16], to: &mut [f32]) {
        match self {
            Half::F16 => bytemuck::cast_slice::<u16, f16>(from).convert_to_f32_slice(to),
            Half::Bf16 => widen_bf16(from, to),
        }
    }

    /// Rounds to the nearest, ties to even.
    pub fn narrow(self, from: &[f32], to: &mut [u16]) {
        match self {
            Half::F16 => bytemuck::cast_slice_mut::<u16, f16>(to).convert_from_f32_slice(from),
            Half::Bf16 => narrow_bf16(from, to),
        }
    }
}

/// Rounds to odd: what f32 doesn't hold becomes the neighbour with the last bit set, so that rounding to 16 bits again gives
/// what rounding once would.
#[inline(always)]
pub fn odd(number: f64) -> f32 {
    if number.is_nan() {
        return f32::NAN.copysign(if number.is_sign_negative() { -1.0 } else { 1.0 });
    }
    let nearest = number as f32;
    let back = f64::from(nearest);
    // The order of magnitudes is that of the bits: the one before infinity is the greatest number, which is odd.
    let toward_zero = nearest.to_bits() - u32::from(back.abs() > number.abs());
    f32::from_bits(toward_zero | u32::from(back != number))
}

for_each_level! {
    fn widen_bf16<>(from: &[u16], to: &mut [f32]) -> () = widen_bf16_body;
}

for_each_level! {
    fn narrow_bf16<>(from: &[f32], to: &mut [u16]) -> () = narrow_bf16_body;
}

#[inline(always)]
fn widen_bf16_body(from: &[u16], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = f32::from_bits(u32::from(*from) << 16);
    }
}

#[inline(always)]
fn narrow_bf16_body(from: &[f32], to: &mut [u16]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = bf16::from_f32(*from).to_bits();
    }
}
