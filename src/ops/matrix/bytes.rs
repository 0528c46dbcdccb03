//! MatMul and Gemm of integers of 8 bits: what a dequantized product becomes.

use crate::ops::prelude::*;
use kernels::gemm::blocks::{Bytes, FilterBytes, Kind, Requantize, len_of, rows_from_blocks, rows_to_blocks};
use kernels::gemm::{Quantized, Requantized, ZeroPoints};
use kernels::volume;
use kernels::windows::Axis;

/// A product of bytes without a float between them. The bias is that of the bytes, not an input.
#[derive(Debug)]
pub(super) struct ByteMatMul {
    /// Whether the second operand is one matrix, which is transposed.
    turned: bool,
    weights: Weights,
    bytes: ByteProduct,
}

impl ByteMatMul {
    pub(super) fn new(turned: bool, bytes: ByteProduct) -> ByteMatMul {
        ByteMatMul { turned, weights: Weights::known(bytes.constant), bytes }
    }

    fn sizes(&self, call: &Call<'_>) -> Result<Sizes> {
        let (a, b) = (call.ranked(0)?.shape(), call.ranked(1)?.shape());
        let turned: Shape = b.iter().rev().copied().collect();
        Sizes::of(a, if self.turned { &turned } else { b }, ["A", "B"])
    }

    fn left<'a, A: Multiply<Sum = u32>>(&'a self, call: &'a Call<'_>, k: usize) -> Result<Left<'a, u32>> {
        let zero = ZeroPoints::new(self.bytes.zeros[0].as_slice::<A>()?, Strides::ONE);
        Ok(Left::View(View::rows(call.tensor(0)?.as_slice::<A>()?, k).less(zero)))
    }

    fn right<'a, B: Multiply<Sum = u32>>(&'a self, call: &'a Call<'_>, sizes: &Sizes) -> Result<Right<'a, u32>> {
        let (tensor, zeros, Sizes { k, n, .. }) = (call.tensor(1)?, self.bytes.zeros[1].as_slice::<B>()?, sizes);
        let matrix = Matrix { tensor, columns: if self.turned { *k } else { *n }, transposed: self.turned };
        let count = tensor.len().checked_div(k.saturating_mul(*n)).unwrap_or(0);
        let zeros = ZeroPoints::new(zeros, columns(zeros.len()));
        self.weights.right_less::<B>(call, matrix, Some(zeros), count, (*k, *n))
    }

    /// What makes the second operand int8 without zero points, if the product is one of rows by one matrix in all runs.
    fn flip(&self, call: &Call<'_>) -> Option<u8> {
        let (x, w) = (call.tensor(0).ok()?, call.tensor(1).ok()?);
        let matrix = self.bytes.constant && self.bytes.is_finite() && w.rank() == 2 && w.len() > 0 && x.len() > 0;
        (matrix && self.bytes.is_symmetric()).then(|| self.bytes.flip())
    }

    /// The product as a convolution of places, whose channels are those of a row.
    fn in_blocks(&self, call: &Call<'_>, flip: u8) -> Result<Values> {
        let (Sizes { k, n, output, .. }, x, w) = (self.sizes(call)?, call.tensor(0)?, call.tensor(1)?);
        let (count, resources) = (x.len() / k, call.resources());
        call.charge(volume(w.len(), [&count]) as u64)?;
        let (sizes, scaling) = ([n, k, 1], self.bytes.scaling()?);
        let filters =
            FilterBytes { bytes: w.bytes(), sizes, own: false, groups: 1, turned: !self.turned, flip, scaling };
        let (mut room, pack) = (None, |to: &mut [u32]| Ok(filters.pack(to, resources)?));
        let weights = self.weights.formed_in(call, w, filters.packed(), &mut room, pack)?;
        let mut rows = call.scratch::<u8>(len_of(k, count))?;
        rows_to_blocks(x.bytes(), k, ByteProduct::turn(x.dtype()), rows.elements_mut(), resources)?;
        let (axes, kind) = ([places(1), places(count)], Kind::All(n, Requantize { weights, scaling }));
        let product = Bytes { axes: &axes, images: rows.elements(), channels: k, groups: 1, kind, tail: None };
        let plan = product.plan(1, resources)?;
        let mut scratch = call.scratch::<u32>(plan.scratch())?;
        let mut blocks = call.scratch::<u8>(len_of(n, count))?;
        plan.run(blocks.elements_mut(), scratch.elements_mut(), resources)?;
        let dtype = self.bytes.zero_point.dtype();
        let mut y = call.output_of(dtype, output)?;
        rows_from_blocks(blocks.elements(), n, ByteProduct::turn(dtype), y.bytes_mut(), resources)?;
        Ok(y.finish().into())
    }

    fn requantized<S: Multiply<Sum = u32> + Quantized>(&self, call: &Call<'_>) -> Result<Values> {
        let (sizes, ByteProduct { zeros: [a, b], factors, bias, zero_point, .. }) = (self.sizes(call)?, &self.bytes);
        let a = with_small!(a.dtype(), A => self.left::<A>(call, sizes.k)?);
        let b = with_small!(b.dtype(), B => self.right::<B>(call, &sizes)?);
        let bias = bias.as_ref().map(Tensor::as_slice::<i32>).transpose()?;
        let bias = bias.map(|elements| Broadcast { elements, strides: columns(elements.len()) });
        let first = bias.map(|bias| Scaled { alpha: 1.0, beta: 1.0, c: Some(bias) });
        let factors = factors.as_slice::<f32>()?;
        let factors = Broadcast { elements: factors, strides: columns(factors.len()) };
        let one = Broadcast { elements: &[1.0], strides: Strides::ONE };
        let zero_point = Broadcast { elements: zero_point.as_slice::<S>()?, strides: Strides::ONE };
        let last = Requantized { scales: [factors, one], zero_point };
        let steps: SmallVec<[&dyn kernels::gemm::Step<u32>; 2]> =
            first.iter().map(|first| first as _).chain([&last as _]).collect();
        let Sizes { m, k, n, batch, output } = &sizes;
        let mut output = call.output::<S>(output)?;
        multiply(call, Product::<S> { m: *m, k: *k, n: *n, a, b, batch, epilogue: &steps }, output.elements_mut()?)?;
        Ok(output.finish().into())
    }
}

/// Places that follow each other.
fn places(count: usize) -> Axis {
    Axis { input: count, output: count, kernel: 1, stride: 1, dilation: 1, pad: 0 }
}

/// Of so many numbers: one for each column, or one for all.
fn columns(count: usize) -> Strides<'static> {
    if count == 1 { Strides::ONE } else { Strides::COLUMNS }
}

impl Fused for ByteMatMul {
    fn fits(&self, call: &Call<'_>) -> bool {
        self.sizes(call).is_ok_and(|sizes| {
            self.bytes.fits(call, sizes.k, sizes.n) && (self.bytes.floats.is_none() || self.flip(call).is_some())
        })
    }
}

impl Operator for ByteMatMul {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        if let Some(flip) = self.flip(call) {
            return self.in_blocks(call, flip);
        }
        with_small!(self.bytes.zero_point.dtype(), S => self.requantized::<S>(call))
    }
}
