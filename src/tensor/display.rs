//! Tensors as text: `float[2, 2] [[1, 2], [3, 4]]`, cut in the middle.

use super::Tensor;
use crate::dtype::{Format, ShapeText};
use half::{bf16, f16};
use kernels::half::Half;
use std::fmt::{self, Debug, Display};

/// Number of elements shown at each end of a longer axis.
const EDGE: usize = 3;

/// Strings are cut after this many characters.
const MAX_STRING: usize = 60;

/// One element as a number, bool or text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Scalar<'a> {
    /// Signed integers.
    Int(i64),
    /// Unsigned integers.
    Uint(u64),
    /// float, bfloat16 and all smaller floats: exact in this type.
    Float(f32),
    /// double.
    Double(f64),
    /// complex64: real, imaginary.
    Complex64(f32, f32),
    /// complex128: real, imaginary.
    Complex128(f64, f64),
    /// bool.
    Bool(bool),
    /// string.
    String(&'a str),
}

impl Scalar<'_> {
    /// The value of an integer, as i64 bits; 0 for other types.
    pub(crate) fn integer(&self) -> i64 {
        match self {
            Scalar::Int(value) => *value,
            Scalar::Uint(value) => *value as i64,
            _ => 0,
        }
    }
}

impl Tensor {
    /// The elements of any type in row-major order, as plain values: for printing and comparing, not for computing.
    pub fn scalars(&self) -> impl ExactSizeIterator<Item = Scalar<'_>> {
        (0..self.len()).map(|k| self.scalar_at(k))
    }

    fn scalar_at(&self, k: usize) -> Scalar<'_> {
        let size = self.dtype.size();
        let bytes = self.bytes().get(k * size..(k + 1) * size).unwrap_or(&[]);
        let part = |from: usize, n: usize| {
            let mut word = [0; 8];
            word.iter_mut().zip(bytes.iter().skip(from).take(n)).for_each(|(to, byte)| *to = *byte);
            u64::from_le_bytes(word)
        };
        let bits = part(0, size);
        let single = |bits: u64| f32::from_bits(bits as u32);
        match self.dtype.format() {
            Format::View => Scalar::String(self.string(k)),
            Format::Bool => Scalar::Bool(bits != 0),
            Format::Unsigned(_) => Scalar::Uint(bits),
            Format::Signed(_) => {
                let unused = 64 - 8 * size as u32;
                Scalar::Int((bits << unused).cast_signed() >> unused)
            }
            Format::Complex64 => Scalar::Complex64(single(part(0, 4)), single(part(4, 4))),
            Format::Complex128 => Scalar::Complex128(f64::from_bits(part(0, 8)), f64::from_bits(part(8, 8))),
            Format::Half(Half::F16) => Scalar::Float(f16::from_bits(bits as u16).to_f32()),
            Format::Half(Half::Bf16) => Scalar::Float(bf16::from_bits(bits as u16).to_f32()),
            Format::Single => Scalar::Float(single(bits)),
            Format::Double => Scalar::Double(f64::from_bits(bits)),
            Format::Small(small) => Scalar::Float(small.value(bits as u8)),
        }
    }
}

impl Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(v) => write!(f, "{v}"),
            Scalar::Uint(v) => write!(f, "{v}"),
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::Float(v) => float(f, *v, *v == 0.0 || (1e-5..1e16).contains(&v.abs())),
            Scalar::Double(v) => float(f, *v, *v == 0.0 || (1e-5..1e16).contains(&v.abs())),
            Scalar::Complex64(re, im) => write!(f, "{re}{im:+}i"),
            Scalar::Complex128(re, im) => write!(f, "{re}{im:+}i"),
            Scalar::String(v) => match v.char_indices().nth(MAX_STRING) {
                Some((cut, _)) => write!(f, "{:?}…", v.get(..cut).unwrap_or("")),
                None => write!(f, "{v:?}"),
            },
        }
    }
}

/// The shortest text that reads back as the same number, with an exponent if that is shorter.
fn float(f: &mut fmt::Formatter<'_>, value: impl Display + fmt::LowerExp, plain: bool) -> fmt::Result {
    if plain { write!(f, "{value}") } else { write!(f, "{value:e}") }
}

impl Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {}", self.dtype, ShapeText(&self.shape), self.values())
    }
}

impl Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({self})")
    }
}

impl Tensor {
    /// The elements as nested lists on one line, with `…` in the middle of long axes. The length of the text is
    /// bounded.
    pub fn values(&self) -> impl Display + '_ {
        Values(self)
    }
}

struct Values<'a>(&'a Tensor);

impl Display for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Values(tensor) = self;
        let shape = tensor.shape();
        if shape.len() > 6 {
            // Deep nesting is hard to read, and six elements along each of many axes are still too many.
            return flat(f, tensor);
        }
        if tensor.len() == 0 {
            return f.write_str("[]");
        }
        // Walks positions in row-major order like an odometer and leaves out the middle of each axis.
        let mut position = vec![0; shape.len()];
        let mut budget = 200;
        write!(f, "{}", "[".repeat(shape.len()))?;
        loop {
            let k = position.iter().zip(shape).fold(0, |k, (p, dim)| k * dim + p);
            write!(f, "{}", tensor.scalar_at(k))?;
            budget -= 1;
            if budget == 0 {
                return write!(f, ", …{}", "]".repeat(shape.len()));
            }
            let mut axis = shape.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return Ok(()) };
                axis = next;
                let (Some(p), Some(&dim)) = (position.get_mut(axis), shape.get(axis)) else { return Ok(()) };
                *p += 1;
                let cut = dim > 2 * EDGE + 2 && *p >= EDGE && *p < dim - EDGE;
                if cut {
                    *p = dim - EDGE;
                }
                if *p < dim {
                    write!(f, "{}{}", if cut { ", …, " } else { ", " }, "[".repeat(shape.len() - 1 - axis))?;
                    break;
                }
                *p = 0;
                f.write_str("]")?;
            }
        }
    }
}

fn flat(f: &mut fmt::Formatter<'_>, tensor: &Tensor) -> fmt::Result {
    f.write_str("[")?;
    for (k, scalar) in tensor.scalars().take(2 * EDGE).enumerate() {
        write!(f, "{}{scalar}", if k == 0 { "" } else { ", " })?;
    }
    f.write_str(if tensor.len() > 2 * EDGE { ", …]" } else { "]" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use ndarray::{Array, Array1, array};
    use num_complex::Complex;

    fn values(dtype: DType, codes: &[u8]) -> Vec<String> {
        let tensor = Tensor::new(dtype, &[codes.len()], codes.to_vec()).unwrap();
        tensor.scalars().map(|v| v.to_string()).collect()
    }

    #[test]
    fn small_floats() {
        assert_eq!(
            values(DType::Float8e4m3fn, &[0x38, 0x7e, 0x7f, 0x80, 0x01]),
            ["1", "448", "NaN", "-0", "0.001953125"]
        );
        assert_eq!(values(DType::Float8e4m3fnuz, &[0x40, 0x7f, 0x80, 0xff]), ["1", "240", "NaN", "-240"]);
        assert_eq!(values(DType::Float8e5m2, &[0x3c, 0x7b, 0x7c, 0xfc, 0x7d]), ["1", "57344", "inf", "-inf", "NaN"]);
        assert_eq!(values(DType::Float8e5m2fnuz, &[0x40, 0x7f, 0x80]), ["1", "57344", "NaN"]);
        assert_eq!(values(DType::Float8e8m0, &[127, 128, 255, 126]), ["1", "2", "NaN", "0.5"]);
        assert_eq!(values(DType::Float8e8m0, &[0]), ["5.877472e-39"]);
        assert_eq!(values(DType::Float4e2m1, &[0, 1, 2, 7, 15]), ["0", "0.5", "1", "6", "-6"]);
        assert_eq!(values(DType::Float6e2m3, &[8, 31, 63, 1]), ["1", "7.5", "-7.5", "0.125"]);
        assert_eq!(values(DType::Float6e3m2, &[12, 31, 1]), ["1", "28", "0.0625"]);
        assert_eq!(values(DType::Int4, &[7, 0xf8]), ["7", "-8"]);
        assert_eq!(values(DType::Bool, &[0, 1]), ["false", "true"]);
    }

    /// The numbers of a format that are not negative, counted in its least one: they go up by one until the exponent
    /// counts, and then by twice as much after each round of the mantissa.
    fn numbers(mantissa: u32, count: usize) -> Vec<u64> {
        let (round, mut number, mut step) = (1 << mantissa, 0, 1);
        let mut numbers = Vec::new();
        for code in 0..count {
            if code > round && code % round == 0 {
                step *= 2;
            }
            numbers.push(number);
            number += step;
        }
        numbers
    }

    #[test]
    fn every_code_of_the_small_floats() {
        const INF: f64 = f64::INFINITY;
        const NAN: f64 = f64::NAN;
        // Bits of mantissa; how many of the least number are 1; how many codes are numbers; those after them.
        let formats = [
            (DType::Float8e4m3fn, 3, 512u64, 127, &[NAN][..]),
            (DType::Float8e4m3fnuz, 3, 1024, 128, &[]),
            (DType::Float8e5m2, 2, 65_536, 124, &[INF, NAN, NAN, NAN]),
            (DType::Float8e5m2fnuz, 2, 131_072, 128, &[]),
            (DType::Float6e2m3, 3, 8, 32, &[]),
            (DType::Float6e3m2, 2, 16, 32, &[]),
            (DType::Float4e2m1, 1, 2, 8, &[]),
        ];
        for (dtype, mantissa, one, count, specials) in formats {
            let numbers = numbers(mantissa, count).into_iter().map(|number| number as f64 / one as f64);
            let mut want: Vec<f64> = numbers.chain(specials.iter().copied()).collect();
            want.extend(want.clone().iter().map(|number| -number));
            if matches!(dtype, DType::Float8e4m3fnuz | DType::Float8e5m2fnuz) {
                want[128] = NAN;
            }
            assert_codes(dtype, &want);
        }
        // 1 is in the middle, and each number is twice the one before.
        let mut powers = vec![1.0];
        for _ in 0..127 {
            powers.insert(0, powers[0] / 2.0);
            powers.push(powers[powers.len() - 1] * 2.0);
        }
        powers.push(NAN);
        assert_codes(DType::Float8e8m0, &powers);
    }

    /// The codes from 0 on are these numbers, bit by bit, and there are no more.
    fn assert_codes(dtype: DType, want: &[f64]) {
        assert_eq!(want.len(), 1 << dtype.bits());
        let codes: Vec<u8> = (0..want.len()).map(|code| code as u8).collect();
        let tensor = Tensor::new(dtype, &[codes.len()], codes).unwrap();
        for (code, (got, want)) in tensor.scalars().zip(want).enumerate() {
            let Scalar::Float(got) = got else { panic!("{dtype} {code} is {got:?}") };
            let same = f64::from(got).to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "{dtype} {code:#x} is {got}, expected {want}");
        }
    }

    #[test]
    fn tensors() {
        let show = |tensor: Tensor| tensor.to_string();
        assert_eq!(show(array![[1.5f32, -2.0], [1e30, f32::NAN]].into()), "float32[2, 2] [[1.5, -2], [1e30, NaN]]");
        assert_eq!(show(Tensor::scalar(Complex::new(1f32, -2.0))), "complex64[] 1-2i");
        assert_eq!(show(Tensor::scalar(u64::MAX)), format!("uint64[] {}", u64::MAX));
        assert_eq!(show(Array1::<i64>::from_iter(0..100).into()), "int64[100] [0, 1, 2, …, 97, 98, 99]");
        assert_eq!(show(Array::<u8, _>::zeros((2, 0)).into()), "uint8[2, 0] []");
        let strings = Tensor::from_strings(&[2, 1], ["a\n", &"long".repeat(100)]).unwrap();
        assert_eq!(show(strings), format!("string[2, 1] [[\"a\\n\"], [\"{}\"…]]", "long".repeat(15)));
    }

    #[test]
    fn text_is_bounded() {
        for shape in [vec![1000; 2], vec![10; 6], vec![8; 6], vec![2; 20], vec![1, 1000, 1000]] {
            let tensor = Tensor::from_array(Array::<u8, _>::zeros(shape));
            assert!(format!("{tensor:?}").len() < 4000, "{}", format!("{tensor:?}").len());
        }
    }
}
