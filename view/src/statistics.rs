//! Statistics of values: their range, and counts of elements that are worth a look.

use crate::json::Element;
use onnxref::{Cancel, DType, Result, Scalar, Tensor, Value};
use serde::Serialize;

/// The greatest finite value of float16.
const FLOAT16: f64 = 65504.0;

/// Number of elements between two looks at the clock. Each piece is added up by itself.
const PIECE: usize = 1 << 14;

/// Sums of doubles from here on are kept apart and scaled, so that they don't overflow.
const LARGE: f64 = 1e250;

/// By how much they are scaled: a power of two.
const SCALE: f64 = 1.0 / (1u128 << 100) as f64;

/// Statistics of the numbers in a value. A bool counts as 0 or 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// The number of elements.
    pub elements: u64,
    /// The least of those that are finite; `None` without any, and for complex numbers.
    #[serde(serialize_with = "scalar")]
    pub least: Option<Scalar<'static>>,
    /// The greatest of those that are finite.
    #[serde(serialize_with = "scalar")]
    pub greatest: Option<Scalar<'static>>,
    /// The mean of those that are finite, added up in float64.
    pub mean: Option<f64>,
    /// The number of NaN; `None` for integers. A complex number is NaN if one of its parts is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nan: Option<u64>,
    /// The number of infinities; `None` for integers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infinite: Option<u64>,
    /// The number of zeros.
    pub zeros: u64,
    /// The number of finite elements beyond the range of float16 (`|x| > 65504`); `None` for integers and float16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond_float16: Option<u64>,
}

fn scalar<S: serde::Serializer>(scalar: &Option<Scalar<'static>>, serializer: S) -> Result<S::Ok, S::Error> {
    scalar.clone().map(Element).serialize(serializer)
}

impl Statistics {
    /// Reads all numbers of a value once, those of the tensors in a sequence, an optional or a map too. `None` if it has
    /// no tensor of numbers.
    ///
    /// # Errors
    /// If the time is up.
    pub fn of(value: &Value, cancel: &Cancel) -> Result<Option<Statistics>> {
        let (mut sums, mut dtype, mut open) = (Sums::default(), None, vec![value]);
        while let Some(value) = open.pop() {
            match value {
                Value::Tensor(tensor) if tensor.dtype() == DType::String => {}
                Value::Tensor(tensor) => {
                    dtype = Some(tensor.dtype());
                    sums.add(tensor, cancel)?;
                }
                Value::Sequence(sequence) => open.extend(sequence.values()),
                Value::Optional(optional) => open.extend(optional.get()),
                Value::Map(map) => open.extend(map.values()),
                _ => {}
            }
        }
        Ok(dtype.map(|dtype| sums.finish(dtype)))
    }
}

/// The sums of one pass.
struct Sums {
    elements: u64,
    nan: u64,
    infinite: u64,
    zeros: u64,
    beyond: u64,
    finite: u64,
    least: f64,
    greatest: f64,
    /// Of the piece that is read, of those before, and of large numbers, scaled.
    piece: f64,
    sum: f64,
    large: f64,
    /// The range and the sum of integers, which are exact.
    bounds: Option<(i128, i128)>,
    total: i128,
}

impl Default for Sums {
    fn default() -> Sums {
        let (elements, nan, infinite, zeros, beyond, finite) = Default::default();
        let (least, greatest, piece, sum, large) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0, 0.0);
        let (bounds, total) = (None, 0);
        Sums { elements, nan, infinite, zeros, beyond, finite, least, greatest, piece, sum, large, bounds, total }
    }
}

impl Sums {
    fn add(&mut self, tensor: &Tensor, cancel: &Cancel) -> Result<()> {
        self.elements += tensor.len() as u64;
        if tensor.dtype() == DType::Float {
            // Most tensors by far.
            return tensor.bytes().chunks(4 * PIECE).try_for_each(|piece| {
                for word in piece.chunks_exact(4) {
                    self.float(f32::from_le_bytes(word.try_into().unwrap_or_default()).into());
                }
                self.end_piece(cancel)
            });
        }
        for (k, scalar) in tensor.scalars().enumerate() {
            match scalar {
                Scalar::Float(v) => self.float(v.into()),
                Scalar::Double(v) => self.float(v),
                Scalar::Int(v) => self.integer(v.into()),
                Scalar::Uint(v) => self.integer(v.into()),
                Scalar::Bool(v) => self.integer(v.into()),
                Scalar::Complex64(re, im) => self.complex(re.into(), im.into()),
                Scalar::Complex128(re, im) => self.complex(re, im),
                _ => {}
            }
            if k % PIECE == PIECE - 1 {
                self.end_piece(cancel)?;
            }
        }
        self.end_piece(cancel)
    }

    fn end_piece(&mut self, cancel: &Cancel) -> Result<()> {
        self.sum += std::mem::take(&mut self.piece);
        cancel.check()
    }

    #[inline]
    fn float(&mut self, v: f64) {
        if !v.is_finite() {
            self.nan += u64::from(v.is_nan());
            self.infinite += u64::from(v.is_infinite());
            return;
        }
        self.finite += 1;
        self.zeros += u64::from(v == 0.0);
        self.beyond += u64::from(v.abs() > FLOAT16);
        self.least = if v < self.least { v } else { self.least };
        self.greatest = if v > self.greatest { v } else { self.greatest };
        if v.abs() < LARGE {
            self.piece += v;
        } else {
            self.large += v * SCALE;
        }
    }

    fn integer(&mut self, v: i128) {
        self.zeros += u64::from(v == 0);
        self.total += v;
        let (least, greatest) = self.bounds.unwrap_or((v, v));
        self.bounds = Some((least.min(v), greatest.max(v)));
    }

    fn complex(&mut self, re: f64, im: f64) {
        let nan = re.is_nan() || im.is_nan();
        self.nan += u64::from(nan);
        self.infinite += u64::from(!nan && (re.is_infinite() || im.is_infinite()));
        self.zeros += u64::from(re == 0.0 && im == 0.0);
        self.beyond += u64::from([re, im].iter().any(|v| v.is_finite() && v.abs() > FLOAT16));
    }

    fn finish(self, dtype: DType) -> Statistics {
        use DType::{Complex64, Complex128, Double, Float16};
        let integer = |v: i128| i64::try_from(v).map_or(Scalar::Uint(u64::try_from(v).unwrap_or(0)), Scalar::Int);
        let float = |v: f64| if dtype == Double { Scalar::Double(v) } else { Scalar::Float(v as f32) };
        let count = self.finite as f64;
        let range = match self.bounds {
            Some((least, greatest)) => {
                Some((integer(least), integer(greatest), self.total as f64 / self.elements as f64))
            }
            None if self.finite > 0 => {
                let mean = self.sum / count + self.large / count / SCALE;
                Some((float(self.least), float(self.greatest), mean))
            }
            None => None,
        };
        let floats = is_float(dtype) || matches!(dtype, Complex64 | Complex128);
        let counted = |count: u64| floats.then_some(count);
        Statistics {
            elements: self.elements,
            mean: range.as_ref().map(|(_, _, mean)| *mean),
            least: range.as_ref().map(|(least, ..)| least.clone()),
            greatest: range.map(|(_, greatest, _)| greatest),
            nan: counted(self.nan),
            infinite: counted(self.infinite),
            zeros: self.zeros,
            beyond_float16: counted(self.beyond).filter(|_| dtype != Float16),
        }
    }
}

/// Whether the elements of a type are real floats.
fn is_float(dtype: DType) -> bool {
    Tensor::new(dtype, &[1], vec![0; dtype.size()])
        .is_ok_and(|tensor| tensor.scalars().any(|scalar| matches!(scalar, Scalar::Float(_) | Scalar::Double(_))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::half::{bf16, f16};
    use onnxref::{Kind, Optional, Sequence, ValueType};

    fn of(value: impl Into<Value>) -> Statistics {
        Statistics::of(&value.into(), &Cancel::new()).unwrap().unwrap()
    }

    fn json(value: impl Into<Value>) -> String {
        serde_json::to_string(&of(value)).unwrap()
    }

    #[test]
    fn floats() {
        let x = vec![0.5f32, f32::NAN, -0.0, f32::INFINITY, 65504.0, -65504.04, 0.0, f32::NEG_INFINITY];
        let expected = r#"{"elements":8,"least":-65504.04,"greatest":65504.0,"mean":0.0921875,"nan":1,"infinite":2,"#;
        assert_eq!(json(x), format!("{expected}\"zeros\":2,\"beyond_float16\":1}}"));
        let none = r#"{"elements":1,"least":null,"greatest":null,"mean":null,"nan":1,"infinite":0,"#;
        assert_eq!(json(vec![f64::NAN]), format!("{none}\"zeros\":0,\"beyond_float16\":0}}"));
        let empty = of(Vec::<f32>::new());
        assert_eq!((empty.elements, empty.mean, empty.nan), (0, None, Some(0)));
        // Halves are read exactly; float16 has nothing beyond itself.
        let halves = of(vec![f16::MAX, f16::INFINITY, f16::from_f32(-0.1)]);
        assert_eq!((halves.greatest, halves.beyond_float16), (Some(Scalar::Float(65504.0)), None));
        assert_eq!((halves.least, halves.infinite), (Some(Scalar::Float(-0.099975586)), Some(1)));
        assert_eq!(of(vec![bf16::MAX]).beyond_float16, Some(1));
        let small = Tensor::new(DType::Float8e4m3fn, &[3], vec![0x38, 0x7f, 0xb8]).unwrap();
        let small = of(small);
        let range = (small.least, small.greatest, small.mean, small.nan);
        assert_eq!(range, (Some(Scalar::Float(-1.0)), Some(Scalar::Float(1.0)), Some(0.0), Some(1)));
    }

    #[test]
    fn means_are_added_up_in_double() {
        // In float32 the ones would be lost.
        let mut x = vec![1f32; 1 << 16];
        x[0] = (1u32 << 30) as f32;
        assert_eq!(of(x).mean, Some(((1u32 << 30) as f64 + 65535.0) / 65536.0));
        assert_eq!(of(vec![f64::MAX, f64::MAX]).mean, Some(f64::MAX));
        assert_eq!(of(vec![f64::MAX, -f64::MAX, 3.0]).mean, Some(1.0));
    }

    #[test]
    fn integers_are_exact() {
        let expected = r#"{"elements":2,"least":-9223372036854775808,"greatest":9223372036854775807,"mean":-0.5,"#;
        assert_eq!(json(vec![i64::MAX, i64::MIN]), format!("{expected}\"zeros\":0}}"));
        let unsigned = of(vec![u64::MAX, u64::MAX]);
        let mean = Some(18446744073709551615.0);
        assert_eq!((unsigned.greatest, unsigned.mean, unsigned.nan), (Some(Scalar::Uint(u64::MAX)), mean, None));
        let bools = of(Tensor::new(DType::Bool, &[4], vec![1, 0, 0, 0]).unwrap());
        assert_eq!((bools.mean, bools.zeros, bools.least), (Some(0.25), 3, Some(Scalar::Int(0))));
        let int4 = of(Tensor::new(DType::Int4, &[2], vec![0xf8, 0x7]).unwrap());
        assert_eq!((int4.least, int4.greatest), (Some(Scalar::Int(-8)), Some(Scalar::Int(7))));
    }

    #[test]
    fn other_values() {
        let text = Tensor::from_strings(&[1], ["a"]).unwrap();
        assert_eq!(Statistics::of(&text.into(), &Cancel::new()).unwrap(), None);
        let float = ValueType::from(DType::Float);
        let tensors = [vec![1f32, 2.0], vec![f32::NAN]].map(|elements| Value::from(Tensor::from(elements)));
        let sequence = Sequence::new(float.clone(), tensors).unwrap();
        let all = of(Optional::some(sequence.into()));
        assert_eq!((all.elements, all.mean, all.nan), (3, Some(1.5), Some(1)));
        assert_eq!(Statistics::of(&Optional::none(float).into(), &Cancel::new()).unwrap(), None);
        let parts = [0f32, 0.0, f32::NAN, f32::INFINITY, 1e6, 0.0].iter().flat_map(|v| v.to_le_bytes());
        let complex = of(Tensor::new(DType::Complex64, &[3], parts.collect::<Vec<u8>>()).unwrap());
        assert_eq!((complex.nan, complex.infinite, complex.zeros), (Some(1), Some(0), 1));
        assert_eq!((complex.beyond_float16, complex.least), (Some(1), None));
    }

    #[test]
    fn it_ends_with_the_time() {
        let cancel = Cancel::new();
        cancel.cancel();
        let ended = Statistics::of(&Tensor::from(vec![1i8]).into(), &cancel).unwrap_err();
        assert_eq!((ended.kind(), ended.to_string()), (Kind::Cancelled, "the run was cancelled by its caller".into()));
    }
}
