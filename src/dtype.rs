//! Element types: one table row each.

use crate::error::{Error, Result, quote};
use half::{bf16, f16};
pub(crate) use kernels::Format;
use kernels::half::Half;
use kernels::{Small, Specials};
use std::fmt::{self, Display};

/// An element type of ONNX IR version 14, named and numbered as in `TensorProto.DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
#[allow(missing_docs)] // the names are the standard's
pub enum DType {
    Float = 1,
    Uint8,
    Int8,
    Uint16,
    Int16,
    Int32,
    Int64,
    String,
    Bool,
    Float16,
    Double,
    Uint32,
    Uint64,
    Complex64,
    Complex128,
    Bfloat16,
    Float8e4m3fn,
    Float8e4m3fnuz,
    Float8e5m2,
    Float8e5m2fnuz,
    Uint4,
    Int4,
    Float4e2m1,
    Float8e8m0,
    Uint2,
    Int2,
    Float6e2m3,
    Float6e3m2,
}

/// The field of a `TensorProto` that holds the elements of a type if they are not raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Float,
    Int32,
    String,
    Int64,
    Double,
    Uint64,
}

struct Row {
    dtype: DType,
    name: &'static str,
    /// Bytes an element takes in memory.
    size: usize,
    /// Bits an element takes in raw data.
    bits: usize,
    field: Field,
    format: Format,
}

const fn row(dtype: DType, name: &'static str, size: usize, bits: usize, field: Field, format: Format) -> Row {
    Row { dtype, name, size, bits, field, format }
}

const fn small(exponent: u8, mantissa: u8, bias: i32, specials: Specials) -> Format {
    Format::Small(Small { exponent, mantissa, bias, specials })
}

/// A string in memory is a view: where it starts in the tensor's text and where it ends, 8 bytes each.
pub(crate) const VIEW: usize = 16;

const TABLE: [Row; 28] = [
    row(DType::Float, "float", 4, 32, Field::Float, Format::Single),
    row(DType::Uint8, "uint8", 1, 8, Field::Int32, Format::Unsigned(8)),
    row(DType::Int8, "int8", 1, 8, Field::Int32, Format::Signed(8)),
    row(DType::Uint16, "uint16", 2, 16, Field::Int32, Format::Unsigned(16)),
    row(DType::Int16, "int16", 2, 16, Field::Int32, Format::Signed(16)),
    row(DType::Int32, "int32", 4, 32, Field::Int32, Format::Signed(32)),
    row(DType::Int64, "int64", 8, 64, Field::Int64, Format::Signed(64)),
    row(DType::String, "string", VIEW, 0, Field::String, Format::View),
    row(DType::Bool, "bool", 1, 8, Field::Int32, Format::Bool),
    row(DType::Float16, "float16", 2, 16, Field::Int32, Format::Half(Half::F16)),
    row(DType::Double, "double", 8, 64, Field::Double, Format::Double),
    row(DType::Uint32, "uint32", 4, 32, Field::Uint64, Format::Unsigned(32)),
    row(DType::Uint64, "uint64", 8, 64, Field::Uint64, Format::Unsigned(64)),
    row(DType::Complex64, "complex64", 8, 64, Field::Float, Format::Complex64),
    row(DType::Complex128, "complex128", 16, 128, Field::Double, Format::Complex128),
    row(DType::Bfloat16, "bfloat16", 2, 16, Field::Int32, Format::Half(Half::Bf16)),
    row(DType::Float8e4m3fn, "float8e4m3fn", 1, 8, Field::Int32, small(4, 3, 7, Specials::TopIsNan)),
    row(DType::Float8e4m3fnuz, "float8e4m3fnuz", 1, 8, Field::Int32, small(4, 3, 8, Specials::NegativeZeroIsNan)),
    row(DType::Float8e5m2, "float8e5m2", 1, 8, Field::Int32, small(5, 2, 15, Specials::Ieee)),
    row(DType::Float8e5m2fnuz, "float8e5m2fnuz", 1, 8, Field::Int32, small(5, 2, 16, Specials::NegativeZeroIsNan)),
    row(DType::Uint4, "uint4", 1, 4, Field::Int32, Format::Unsigned(4)),
    row(DType::Int4, "int4", 1, 4, Field::Int32, Format::Signed(4)),
    row(DType::Float4e2m1, "float4e2m1", 1, 4, Field::Int32, small(2, 1, 1, Specials::None)),
    row(DType::Float8e8m0, "float8e8m0", 1, 8, Field::Int32, small(8, 0, 127, Specials::TopIsNan)),
    row(DType::Uint2, "uint2", 1, 2, Field::Int32, Format::Unsigned(2)),
    row(DType::Int2, "int2", 1, 2, Field::Int32, Format::Signed(2)),
    row(DType::Float6e2m3, "float6e2m3", 1, 6, Field::Int32, small(2, 3, 1, Specials::None)),
    row(DType::Float6e3m2, "float6e3m2", 1, 6, Field::Int32, small(3, 2, 3, Specials::None)),
];

impl DType {
    /// All element types, by their number.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.dtype)
    }

    /// The type with a number of `TensorProto.DataType`.
    pub fn from_code(code: i32) -> Option<DType> {
        TABLE.iter().map(|row| row.dtype).find(|dtype| dtype.code() == code)
    }

    /// The type with a name of the standard, such as `float16`.
    pub fn from_name(name: &str) -> Option<DType> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.dtype)
    }

    /// The number in `TensorProto.DataType`.
    pub fn code(self) -> i32 {
        i32::from(self as u8)
    }

    /// The name as the standard writes it inside `tensor(..)`: `float`, `int64`, `bfloat16`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Bytes an element takes in memory: at least one, 16 for a string (which is a view into shared text).
    #[inline]
    pub fn size(self) -> usize {
        self.row().size
    }

    /// The alignment that typed views need.
    pub(crate) fn align(self) -> usize {
        match self {
            DType::Complex64 => 4,
            _ => self.size().min(8),
        }
    }

    /// Bits an element takes in a file's raw data; 0 for strings, which are never raw.
    pub fn bits(self) -> usize {
        self.row().bits
    }

    pub(crate) fn field(self) -> Field {
        self.row().field
    }

    pub(crate) fn format(self) -> Format {
        self.row().format
    }

    /// The format of a float of 16 bits.
    pub(crate) fn half(self) -> Option<Half> {
        match self.format() {
            Format::Half(half) => Some(half),
            _ => None,
        }
    }

    /// Whether it is an IEEE 754 float or bfloat16.
    pub(crate) fn is_float(self) -> bool {
        matches!(self.format(), Format::Half(_) | Format::Single | Format::Double)
    }

    /// The position of the first of `bytes`, one element each, that is not a valid value of this type:
    /// a bool other than 0 and 1, a 4-bit integer with more bits, ...
    pub(crate) fn first_invalid(self, bytes: &[u8]) -> Option<usize> {
        self.format().first_invalid(bytes)
    }

    #[inline]
    #[allow(clippy::indexing_slicing)] // the table has a row for each variant, in order: tested below
    fn row(self) -> &'static Row {
        &TABLE[self as usize - 1]
    }
}

/// The name that errors and tables use: NumPy's `float32` and `float64`, and the standard's for other types.
impl Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DType::Float => "float32",
            DType::Double => "float64",
            other => other.name(),
        })
    }
}

impl std::str::FromStr for DType {
    type Err = Error;

    /// The type with a name of the standard, as [`DType::from_name`].
    fn from_str(name: &str) -> Result<DType> {
        DType::from_name(name).ok_or_else(|| Error::input(format!("{} is not an element type", quote(name))))
    }
}

/// A set of element types.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct DTypes(u32);

impl DTypes {
    /// Whether a type is in the set.
    #[inline]
    pub fn contains(self, dtype: DType) -> bool {
        self.0 & (1 << dtype as u32) != 0
    }

    /// The types in the set, by their number.
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::all().filter(move |&dtype| self.contains(dtype))
    }

    /// The only type in the set, if it has one.
    pub fn only(self) -> Option<DType> {
        let mut types = self.iter();
        types.next().filter(|_| types.next().is_none())
    }

    /// Whether no type is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<DType> for DTypes {
    fn from_iter<I: IntoIterator<Item = DType>>(types: I) -> Self {
        DTypes(types.into_iter().fold(0, |set, dtype| set | 1 << dtype as u32))
    }
}

impl std::ops::BitOr for DTypes {
    type Output = DTypes;
    fn bitor(self, other: DTypes) -> DTypes {
        DTypes(self.0 | other.0)
    }
}

impl Display for DTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, dtype) in self.iter().enumerate() {
            write!(f, "{}{dtype}", if k == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for DTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// A Rust type whose values are elements of a tensor.
///
/// Sealed: `f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool half::f16 half::bf16`, and with the feature `num-complex`
/// `Complex<f32> Complex<f64>`.
/// Element types without a Rust type (float8, int4, ...) are read through [`Tensor::bytes`](crate::Tensor::bytes),
/// strings through [`Tensor::strings`](crate::Tensor::strings).
pub trait Element:
    bytemuck::NoUninit + bytemuck::CheckedBitPattern + Send + Sync + fmt::Debug + sealed::Sealed
{
    /// The element type.
    const DTYPE: DType;
    /// The type of the element's memory: the type itself, `u8` for `bool`.
    #[doc(hidden)]
    type Word: bytemuck::Pod;
    #[doc(hidden)]
    fn from_words(words: Vec<Self::Word>) -> Vec<Self>;
    /// The memory of elements as elements. Only that of `bool` has to be looked at.
    #[doc(hidden)]
    fn of_words(words: &[Self::Word]) -> std::result::Result<&[Self], bytemuck::checked::CheckedCastError>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            type Word = $type;
            fn from_words(words: Vec<$type>) -> Vec<$type> {
                words
            }
            #[inline]
            fn of_words(words: &[$type]) -> std::result::Result<&[$type], bytemuck::checked::CheckedCastError> {
                Ok(words)
            }
        }
    )*};
}

elements! {
    f32 => Float, f64 => Double, f16 => Float16, bf16 => Bfloat16,
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    u8 => Uint8, u16 => Uint16, u32 => Uint32, u64 => Uint64,
}

#[cfg(feature = "num-complex")]
elements! { num_complex::Complex<f32> => Complex64, num_complex::Complex<f64> => Complex128 }

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    type Word = u8;
    fn from_words(words: Vec<u8>) -> Vec<bool> {
        words.into_iter().map(|b| b != 0).collect()
    }
    fn of_words(words: &[u8]) -> std::result::Result<&[bool], bytemuck::checked::CheckedCastError> {
        bytemuck::checked::try_cast_slice(words)
    }
}

/// The number of bytes that elements of a type and shape take. Fails if it exceeds `isize`, or if a dimension does:
/// the standard counts dimensions in int64. A tensor without elements takes none, whatever its other dimensions.
pub(crate) fn byte_count(dtype: DType, shape: &[usize]) -> Result<usize> {
    if shape.contains(&0) {
        return match shape.iter().position(|dim| isize::try_from(*dim).is_err()) {
            Some(at) => Err(too_long(dtype, shape, at)),
            None => Ok(0),
        };
    }
    let bound = shape.iter().try_fold(dtype.size() as u64, |n, &dim| n.checked_mul(dim as u64));
    match bound.filter(|&n| n <= isize::MAX as u64) {
        Some(n) => usize::try_from(n).map_err(|_| too_large(dtype, shape)),
        None => Err(too_large(dtype, shape)),
    }
}

#[cold]
fn too_long(dtype: DType, shape: &[usize], at: usize) -> Error {
    let shape = ShapeText(shape);
    let text =
        format!("a tensor of {dtype} of shape {shape} has a dimension that is too large: allowed 0..={}", isize::MAX);
    Error::input(text).axis(at as i64)
}

#[cold]
fn too_large(dtype: DType, shape: &[usize]) -> Error {
    Error::input(format!("a tensor of {dtype} of shape {} has more bytes than can be counted", ShapeText(shape)))
}

/// A shape as errors and tables show it: `[2, 3]`, cut after 16 dimensions.
pub(crate) struct ShapeText<'a>(pub(crate) &'a [usize]);

impl Display for ShapeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (k, dim) in self.0.iter().take(16).enumerate() {
            write!(f, "{}{dim}", if k == 0 { "" } else { ", " })?;
        }
        if self.0.len() > 16 {
            write!(f, ", … {} dimensions", self.0.len())?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_at_its_number() {
        for (k, row) in TABLE.iter().enumerate() {
            assert_eq!(row.dtype as usize, k + 1);
            assert_eq!(row.dtype.code(), k as i32 + 1);
            assert_eq!(DType::from_code(row.dtype.code()), Some(row.dtype));
            assert_eq!(DType::from_name(row.name), Some(row.dtype));
            if row.dtype != DType::String {
                assert_eq!(row.size, row.bits.div_ceil(8), "{}", row.name);
            }
        }
        assert_eq!(DType::from_code(0), None);
        assert_eq!(DType::from_code(29), None);
    }

    #[test]
    fn numbers_are_those_of_the_generated_types() {
        use crate::onnx::proto::tensor_proto::DataType;
        for dtype in DType::all() {
            let code = DataType::try_from(dtype.code()).expect("the protobuf enum has every element type");
            assert_eq!(code.as_str_name().to_lowercase(), dtype.name());
        }
    }

    #[test]
    fn values_outside_a_type_are_found() {
        assert_eq!(DType::Bool.first_invalid(&[0, 1, 2]), Some(2));
        assert_eq!(DType::Int4.first_invalid(&[7, 0xf8, 8]), Some(2));
        assert_eq!(DType::Int4.first_invalid(&[0xf7]), Some(0));
        assert_eq!(DType::Uint4.first_invalid(&[15, 16]), Some(1));
        assert_eq!(DType::Int2.first_invalid(&[1, 0xfe, 2]), Some(2));
        assert_eq!(DType::Float6e2m3.first_invalid(&[63, 64]), Some(1));
        assert_eq!(DType::Uint8.first_invalid(&[255]), None);
    }

    #[test]
    fn byte_counts_are_checked() {
        assert_eq!(byte_count(DType::Double, &[2, 3]).ok(), Some(48));
        let most = isize::MAX as usize;
        assert_eq!(byte_count(DType::Double, &[most, 0, most]).ok(), Some(0));
        for too_long in [&[0, most + 1][..], &[usize::MAX, 0]] {
            let text = byte_count(DType::Double, too_long).unwrap_err().to_string();
            assert!(text.ends_with(&format!("has a dimension that is too large: allowed 0..={most}")), "{text}");
        }
        assert_eq!(byte_count(DType::Double, &[usize::MAX >> 5, 0, 2]).ok(), Some(0));
        assert_eq!(byte_count(DType::Uint8, &[isize::MAX as usize]).ok(), Some(isize::MAX as usize));
        for too_many in [&[isize::MAX as usize + 1][..], &[isize::MAX as usize, 2]] {
            assert!(byte_count(DType::Uint8, too_many).is_err(), "{too_many:?}");
        }
    }

    #[test]
    fn sets() {
        let set: DTypes = [DType::Int64, DType::Int32].into_iter().collect();
        assert!(set.contains(DType::Int32) && !set.contains(DType::Uint32));
        assert_eq!(set.to_string(), "int32, int64");
        assert_eq!(set.only(), None);
        assert_eq!(DTypes::from_iter([DType::Bool]).only(), Some(DType::Bool));
    }
}
