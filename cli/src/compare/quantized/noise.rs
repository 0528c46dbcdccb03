//! What quantizing adds to numbers: the error of integers, or small floats, times their scales.

use onnxref::half::{bf16, f16};
use onnxref::{Cancel, DType, Result, Scalar, Tensor};
use onnxref_view::bounds_of;

/// Number of elements between two looks at the clock.
const PIECE: usize = 1 << 14;

/// The range of all numbers.
pub(super) const ALL: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// A quantized tensor.
pub(super) struct Quantized<'a> {
    codes: &'a Tensor,
    scales: Vec<f64>,
    zeros: Vec<f64>,
    /// The type of the scales, to which a product is rounded.
    dtype: DType,
    layout: Layout,
    /// The least and the greatest code.
    bounds: (f64, f64),
}

/// Which scale an element has.
enum Layout {
    One,
    /// One for each entry of an axis: the size of the axis, and the elements behind it.
    Axis(usize, usize),
    /// One for each block of an axis: also the length of a block, and the number of blocks.
    Blocks {
        size: usize,
        behind: usize,
        block: usize,
        count: usize,
    },
}

impl Layout {
    fn scale(&self, k: usize) -> usize {
        let over = |a: usize, b: usize| a.checked_div(b).unwrap_or(0);
        match *self {
            Layout::One => 0,
            Layout::Axis(size, behind) => over(k, behind).checked_rem(size).unwrap_or(0),
            Layout::Blocks { size, behind, block, count } => {
                let (outer, at) =
                    (over(k, size.saturating_mul(behind)), over(k, behind).checked_rem(size).unwrap_or(0));
                (outer * count + over(at, block)) * behind + k.checked_rem(behind).unwrap_or(0)
            }
        }
    }
}

impl<'a> Quantized<'a> {
    /// Codes with their scales and zero points; `None` if these don't fit, or the codes are not numbers.
    pub(super) fn new(
        codes: &'a Tensor,
        scales: &Tensor,
        zeros: Option<&Tensor>,
        axis: i64,
        block: usize,
    ) -> Option<Quantized<'a>> {
        let shape = codes.shape();
        let at =
            usize::try_from(if axis < 0 { axis.checked_add(i64::try_from(shape.len()).ok()?)? } else { axis }).ok();
        let behind = |at: usize| shape.iter().skip(at + 1).product::<usize>();
        let size = at.and_then(|at| shape.get(at).copied());
        let layout = match (scales.len(), scales.rank(), at, size) {
            (1, ..) => Layout::One,
            (len, 1, Some(at), Some(size)) if len == size => Layout::Axis(size, behind(at)),
            (_, rank, Some(at), Some(size)) if rank == shape.len() => {
                let count = *scales.shape().get(at)?;
                let block = if block > 0 { block } else { size.checked_div(count)? };
                let others =
                    |dims: &[usize]| dims.iter().enumerate().filter(|(k, _)| *k != at).map(|(_, d)| *d).collect();
                let (own, outer): (Vec<usize>, Vec<usize>) = (others(shape), others(scales.shape()));
                (own == outer && size.div_ceil(block.max(1)) == count).then_some(Layout::Blocks {
                    size,
                    behind: behind(at),
                    block,
                    count,
                })?
            }
            _ => return None,
        };
        let zeros = match zeros {
            Some(zeros) if zeros.len() == scales.len() => {
                zeros.scalars().map(|zero| number(&zero)).collect::<Option<_>>()?
            }
            Some(_) => return None,
            None => vec![0.0; scales.len()],
        };
        let dtype = scales.dtype();
        let scales = scales.scalars().map(|scale| number(&scale)).collect::<Option<_>>()?;
        Some(Quantized { codes, scales, zeros, dtype, layout, bounds: bounds(codes.dtype())? })
    }

    pub(super) fn codes(&self) -> &Tensor {
        self.codes
    }
}

/// The error of quantized numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Noise {
    /// The number of elements that were compared, and of others: one of the two is not finite.
    pub(super) elements: u64,
    pub(super) skipped: u64,
    /// Sums of squares: of the numbers, and of the errors.
    signal: f64,
    noise: f64,
    /// The greatest error.
    pub(super) greatest: f64,
    /// The number of elements that the type can't reach with its scale.
    pub(super) clipped: u64,
}

impl Noise {
    /// Adds the errors of `quantized` against what it should be: numbers, cut to a range. Returns false if their shapes
    /// differ.
    pub(super) fn add(
        &mut self,
        quantized: &Quantized<'_>,
        wanted: &Tensor,
        range: (f64, f64),
        cancel: &Cancel,
    ) -> Result<bool> {
        if quantized.codes.shape() != wanted.shape() {
            return Ok(false);
        }
        let (mut signal, mut noise) = (0.0, 0.0);
        let (least, most) = quantized.bounds;
        for (k, (code, want)) in quantized.codes.scalars().zip(wanted.scalars()).enumerate() {
            if k % PIECE == PIECE - 1 {
                self.end_piece(&mut signal, &mut noise, cancel)?;
            }
            let at = quantized.layout.scale(k);
            let (scale, zero) = (quantized.scales.get(at), quantized.zeros.get(at));
            let (Some(scale), Some(zero), Some(code), Some(want)) = (scale, zero, number(&code), number(&want)) else {
                return Ok(false);
            };
            let want = if want.is_nan() { want } else { want.max(range.0).min(range.1) };
            let got = round((code - zero) * scale, quantized.dtype);
            if !got.is_finite() || !want.is_finite() {
                self.skipped += 1;
                continue;
            }
            self.elements += 1;
            signal += want * want;
            noise += (got - want) * (got - want);
            self.greatest = self.greatest.max((got - want).abs());
            let exact = want / scale + zero;
            self.clipped += u64::from(exact < least - 0.5 || exact > most + 0.5);
        }
        self.end_piece(&mut signal, &mut noise, cancel)?;
        Ok(true)
    }

    /// Adds the difference of two floats of any type. Returns false if their shapes differ.
    pub(super) fn add_floats(&mut self, got: &Tensor, wanted: &Tensor, cancel: &Cancel) -> Result<bool> {
        let one = Tensor::scalar(1f64);
        let quantized = Quantized {
            bounds: ALL,
            codes: got,
            scales: vec![1.0],
            zeros: vec![0.0],
            dtype: one.dtype(),
            layout: Layout::One,
        };
        self.add(&quantized, wanted, ALL, cancel)
    }

    fn end_piece(&mut self, signal: &mut f64, noise: &mut f64, cancel: &Cancel) -> Result<()> {
        self.signal += std::mem::take(signal);
        self.noise += std::mem::take(noise);
        cancel.check()
    }

    /// The signal-to-noise ratio in dB: infinite without an error.
    pub(super) fn decibel(&self) -> f64 {
        match (self.noise > 0.0, self.signal > 0.0) {
            (false, _) => f64::INFINITY,
            (true, false) => f64::NEG_INFINITY,
            (true, true) => 10.0 * (self.signal / self.noise).log10(),
        }
    }

    /// The root of the mean squared error, in terms of the numbers.
    pub(super) fn relative(&self) -> f64 {
        if self.noise > 0.0 { (self.noise / self.signal).sqrt() } else { 0.0 }
    }

    /// The share of elements that are clipped.
    pub(super) fn clipped_share(&self) -> f64 {
        if self.elements > 0 { self.clipped as f64 / self.elements as f64 } else { 0.0 }
    }
}

/// A number of a real type.
pub(super) fn number(scalar: &Scalar<'_>) -> Option<f64> {
    match *scalar {
        Scalar::Int(v) => Some(v as f64),
        Scalar::Uint(v) => Some(v as f64),
        Scalar::Float(v) => Some(v.into()),
        Scalar::Double(v) => Some(v),
        _ => None,
    }
}

/// A product rounded to a type, as DequantizeLinear gives it.
fn round(product: f64, dtype: DType) -> f64 {
    match dtype {
        DType::Float => (product as f32).into(),
        DType::Float16 => f16::from_f64(product).to_f64(),
        DType::Bfloat16 => bf16::from_f64(product).to_f64(),
        _ => product,
    }
}

/// The least and the greatest finite number of a type of at most 32 bits.
fn bounds(dtype: DType) -> Option<(f64, f64)> {
    if let Some((least, most)) = bounds_of(dtype) {
        return Some((least as f64, most as f64));
    }
    // Of small floats, all codes.
    let code = |code: u8| Tensor::new(dtype, &[1], vec![code]).ok()?.scalars().next().as_ref().and_then(number);
    let finite = (0..=u8::MAX).filter_map(code).filter(|v| v.is_finite());
    finite.fold(None, |bounds: Option<(f64, f64)>, v| {
        let (least, most) = bounds.unwrap_or((v, v));
        Some((least.min(v), most.max(v)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(codes: &Tensor, scales: Vec<f32>, axis: i64, want: Vec<f32>) -> Noise {
        let want = Tensor::from_elements(codes.shape(), want).unwrap();
        let quantized = Quantized::new(codes, &Tensor::from(scales), None, axis, 0).unwrap();
        let mut noise = Noise::default();
        assert!(noise.add(&quantized, &want, ALL, &Cancel::new()).unwrap());
        noise
    }

    #[test]
    fn errors_and_clipped_elements() {
        let codes = Tensor::from(vec![127i8, -128, 10, 0]);
        let found = noise(&codes, vec![0.5], 0, vec![64.0, -64.25, 5.25, f32::NAN]);
        // 63.5, -64, 5: the first is beyond 63.75.
        assert_eq!((found.elements, found.skipped, found.clipped, found.greatest), (3, 1, 1, 0.5));
        assert_eq!((found.signal, found.noise), (64f64 * 64.0 + 64.25 * 64.25 + 5.25 * 5.25, 0.375));
        assert!((found.decibel() - 43.4251).abs() < 1e-3, "{}", found.decibel());
        assert!((found.relative() - 0.006747).abs() < 1e-5, "{}", found.relative());
        assert_eq!(noise(&codes, vec![1.0], 0, vec![127.0, -128.0, 10.0, 0.0]).decibel(), f64::INFINITY);
        assert_eq!(noise(&codes, vec![1.0], 0, vec![0.0; 4]).decibel(), f64::NEG_INFINITY);
    }

    #[test]
    fn scales_of_axes_and_blocks() {
        let codes = Tensor::from_elements(&[2, 4], vec![1u8, 1, 1, 1, 1, 1, 1, 1]).unwrap();
        assert_eq!(noise(&codes, vec![2.0, 3.0], 0, vec![2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0]).greatest, 0.0);
        assert_eq!(
            noise(&codes, vec![1.0, 2.0, 3.0, 4.0], -1, vec![1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]).greatest,
            0.0
        );
        let want = Tensor::from_elements(&[2, 4], vec![1f32, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 4.0]).unwrap();
        let scales = Tensor::from_elements(&[2, 2], vec![1f32, 2.0, 3.0, 4.0]).unwrap();
        let mut blocked = Noise::default();
        let quantized = Quantized::new(&codes, &scales, None, 1, 3).unwrap();
        assert!(blocked.add(&quantized, &want, ALL, &Cancel::new()).unwrap());
        assert_eq!((blocked.greatest, blocked.elements), (0.0, 8));
        // Scales that don't fit.
        let three = Tensor::from(vec![1f32, 2.0, 3.0]);
        assert!(Quantized::new(&codes, &three, None, 1, 0).is_none());
        assert!(Quantized::new(&codes, &three, None, 7, 0).is_none());
        assert!(Quantized::new(&codes, &scales, None, 1, 1).is_none());
    }

    #[test]
    fn bounds_of_types() {
        let types = [DType::Int4, DType::Uint8, DType::Float8e4m3fn, DType::Float8e5m2, DType::Float4e2m1];
        let expected = [(-8.0, 7.0), (0.0, 255.0), (-448.0, 448.0), (-57344.0, 57344.0), (-6.0, 6.0)];
        assert_eq!(types.map(bounds), expected.map(Some));
    }
}
