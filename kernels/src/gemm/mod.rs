//! Products of matrices: `out[i, j] = sum over p of a[i, p] * b[p, j]`.
//!
//! The steps of each [`BLOCK`] have a sum of their own, which starts at 0 and runs in the order of `p`, with one
//! [`Number::mul_add`] a step; the sums of blocks are added in order. So the order depends on `k` alone: the result is the
//! same at each processor level, however the work is divided ([`plan`], [`block`]), and however operands are stored
//! ([`operand`], [`pack`]). Tiles of the output stay in registers ([`tile`]).
//!
//! A float32 product is off by at most (384 + k / 384) * 2^-24 of the sum of magnitudes, and by much less in most cases.
//!
//! ```ignore
//! let (a, b) = (Left::View(View::rows(a, k)), Right::View(View::rows(b, n)));
//! let plan = Product { m, k, n, a, b, batch: &[], epilogue: &[] }.plan(resources);
//! let mut scratch = call.scratch(plan.scratch())?;
//! plan.run(out, scratch.elements_mut(), resources)?;
//! ```
//!
//! # Convolutions
//!
//! The weights of a group stand on the left, and [`Windows`] of an image on the right. Images `[N, G * C, H, W]` and weights
//! `[G * M, C, KH, KW]` give `[N, G * M, OH, OW]`. A bias for each channel and an activation are steps of the epilogue:
//!
//! ```ignore
//! let axes = [
//!     Axis { input: H, kernel: KH, stride, dilation, pad: top, output: OH },
//!     Axis { input: W, kernel: KW, stride, dilation, pad: left, output: OW },
//! ];
//! let (m, k, n, image) = (M, C * KH * KW, OH * OW, C * H * W);
//! let weights = Matrix { tensor: weights, columns: k, transposed: false };
//! let a = self.weights.left::<S>(call, weights, G, (m, k))?;
//! let b = Right::Windows(Windows::new(x.as_slice::<S>()?, C, &axes, S::zeroed()));
//! let batch = [Batch { size: N, a: 0, b: G * image }, Batch { size: G, a: m * k, b: image }];
//! let channels = Strides { row: 1, column: 0, batch: &[0, m] };
//! let bias = Scaled { alpha: 1.0, beta: 1.0, c: Some(Broadcast { elements: bias, strides: channels }) };
//! let relu = |part: &mut [f32]| part.iter_mut().for_each(|y| *y = y.max(0.0));
//! multiply(call, Product { m, k, n, a, b, batch: &batch, epilogue: &[&bias, &relu] }, out)?;
//! ```
//!
//! Where each channel has filters of its own, [`Alone`] gives the same bits sooner.
//!
//! Windows that show the image as it is, as those of a 1 x 1 convolution, are read like any other matrix.
//!
//! # Quantized products
//!
//! Operands of 8 bits are summed in 32, less their [`ZeroPoints`], and an output of int32 gets the sums; four steps are done
//! at once ([`quads`]). For an output of 8 bits, [`Requantized`] is the last step, after a [`Scaled`] bias of int32. The zero
//! points of a packed operand are in it already. Outside of a quantized image, windows show its zero point.
//!
//! ```ignore
//! let b = Windows::new(x, C, &axes, x_zero_point).less(ZeroPoints::new(&[x_zero_point], Strides::ONE));
//! let last = Requantized { scales: [scales_of_channels, Broadcast { elements: &[1.0], strides: Strides::ONE }], zero_point };
//! let product = Product::<u8> { m, k, n, a, b: Right::Windows(b), batch: &batch, epilogue: &[&bias, &last] };
//! ```

mod alone;
mod block;
pub mod blocks;
mod dequantized;
mod direct;
mod epilogue;
#[cfg(target_arch = "x86_64")]
mod lines;
#[cfg(target_arch = "x86_64")]
mod matrices;
#[cfg(target_arch = "aarch64")]
mod neon;
mod number;
mod operand;
mod pack;
mod panels;
mod place;
mod plan;
mod quads;
mod scales;
#[cfg(test)]
mod tests;
mod tile;
mod tiny;
mod vectors;
mod windows;

pub use alone::Alone;
pub use dequantized::{Bits, Blocked, Dequantized, Integers};
pub use epilogue::{Scaled, Step};
pub use number::{Number, Operand};
pub use operand::{Left, Right, View};
pub use pack::{Packed, Side, pack, packed_len, packed_len_of};
pub use place::{Broadcast, Place, Strides};
pub use plan::{Plan, scratch_for};
pub use {
    operand::ZeroPoints,
    scales::{Factors, OfIntegers, Quantized, Requantized, ToIntegers},
    windows::Windows,
};

/// Steps of `k` that are summed before they are added to those before.
pub const BLOCK: usize = 384;

/// `out[i, j] = sum over p of a[i, p] * b[p, j]`, for each matrix of a batch; then what the epilogue says.
///
/// `out` has the matrices of the batch one after the other, each of `m` rows and `n` columns, of elements of the type `O`.
/// The operands may have elements of any types that are summed as `O` is ([`Operand::Sum`]): int8 by uint8 gives int32.
#[derive(Debug, Clone, Copy)]
pub struct Product<'a, O: Operand> {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    pub a: Left<'a, O::Sum>,
    pub b: Right<'a, O::Sum>,
    /// The dimensions of the batch, outermost first.
    pub batch: &'a [Batch],
    /// What becomes of sums before they are written, step by step.
    pub epilogue: &'a [&'a dyn Step<O::Sum>],
}

/// A dimension of a batch: its size, and how far its matrices are apart in the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub size: usize,
    pub a: usize,
    pub b: usize,
}
