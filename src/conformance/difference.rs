//! How a value differs from the expected one.

use crate::dtype::DType;
use crate::tensor::{Scalar, Tensor};
use half::{bf16, f16};
use kernels::position_of;
use std::fmt::{self, Display};
use std::num::NonZeroU64;

/// The difference of a value from the expected one: [`Tolerance::compare`](super::Tolerance::compare).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// What differs.
    pub kind: DifferenceKind,
    /// Where in sequences and maps: positions, outermost first. Empty for a tensor.
    pub path: Box<[usize]>,
    /// The first computed element that differs; otherwise the computed type and shape.
    pub got: Box<str>,
    /// As `got`, of the expected value.
    pub want: Box<str>,
    /// The position of the first element that differs.
    pub index: Box<[usize]>,
    /// The number of elements that differ.
    pub differing: usize,
    /// The number of elements of the tensor.
    pub elements: usize,
    /// The greatest error of all elements, if they are numbers of more than 8 bits or integers. Infinite if one of the
    /// two is not finite.
    pub greatest_error: Option<f64>,
    /// The distance of the first element that differs in units in the last place: the number of steps from one float to
    /// the next. For finite floats of 16 bits or more.
    pub ulps: Option<NonZeroU64>,
    /// The greatest distance of all elements, in the same units.
    pub greatest_ulps: Option<NonZeroU64>,
}

/// What differs: [`Difference::kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// The types of values or elements.
    Type,
    /// The shapes of tensors.
    Shape,
    /// The lengths of sequences, or whether an optional has a value.
    Length,
    /// The keys of maps.
    Keys,
    /// Elements of tensors.
    Elements,
}

impl Difference {
    /// A difference of whole values.
    pub(super) fn new(kind: DifferenceKind, got: impl Display, want: impl Display) -> Difference {
        Difference {
            kind,
            path: Box::default(),
            got: got.to_string().into(),
            want: want.to_string().into(),
            index: Box::default(),
            differing: 0,
            elements: 0,
            greatest_error: None,
            ulps: None,
            greatest_ulps: None,
        }
    }

    /// The same difference, in an element of a sequence or map.
    pub(super) fn within(mut self, element: usize) -> Difference {
        self.path = [&[element], &*self.path].concat().into();
        self
    }

    /// A difference of elements, the first one at `at` in row-major order.
    pub(super) fn of_elements(
        tensor: &Tensor,
        (at, got, want): (usize, Scalar<'_>, Scalar<'_>),
        differing: usize,
        greatest_error: Option<f64>,
    ) -> Difference {
        Difference {
            index: position_of(at, tensor.shape()).into(),
            differing,
            elements: tensor.len(),
            greatest_error,
            ulps: ulps(tensor.dtype(), &got, &want).and_then(NonZeroU64::new),
            ..Difference::new(DifferenceKind::Elements, got, want)
        }
    }
}

impl Display for DifferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DifferenceKind::Type => "type",
            DifferenceKind::Shape => "shape",
            DifferenceKind::Length => "length",
            DifferenceKind::Keys => "keys",
            DifferenceKind::Elements => "elements",
        })
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { got, want, index, differing, elements, .. } = self;
        self.path.iter().try_for_each(|element| write!(f, "in element {element} "))?;
        if self.kind != DifferenceKind::Elements {
            return write!(f, "is {got}, expected {want}");
        }
        write!(f, "is {got} at {index:?}, expected {want}; {differing} of {elements} differ")?;
        self.greatest_error.map_or(Ok(()), |error| write!(f, ", by up to {}", rounded(error)))
    }
}

impl std::error::Error for Difference {}

/// Rounds to three digits, unless the number is whole.
fn rounded(error: f64) -> Scalar<'static> {
    let digits = if error.fract() == 0.0 { None } else { format!("{error:.2e}").parse().ok() };
    Scalar::Double(digits.unwrap_or(error))
}

/// The number of steps from one finite float to another.
pub(super) fn ulps(dtype: DType, got: &Scalar<'_>, want: &Scalar<'_>) -> Option<u64> {
    Some(rank(dtype, got)?.abs_diff(rank(dtype, want)?))
}

/// The rank of a finite float among those of its type; 0 for zeros.
fn rank(dtype: DType, value: &Scalar<'_>) -> Option<i64> {
    let (bits, sign) = match (dtype, value) {
        (DType::Float16, Scalar::Float(v)) if v.is_finite() => (f16::from_f32(*v).to_bits().into(), 1 << 15),
        (DType::Bfloat16, Scalar::Float(v)) if v.is_finite() => (bf16::from_f32(*v).to_bits().into(), 1 << 15),
        (DType::Float, Scalar::Float(v)) if v.is_finite() => (v.to_bits().into(), 1 << 31),
        (DType::Double, Scalar::Double(v)) if v.is_finite() => (v.to_bits(), 1 << 63),
        _ => return None,
    };
    let (negative, magnitude): (bool, u64) = (bits & sign != 0, bits & !sign);
    Some(if negative { -magnitude.cast_signed() } else { magnitude.cast_signed() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_in_the_last_place() {
        let float = |a: f32, b: f32| ulps(DType::Float, &Scalar::Float(a), &Scalar::Float(b));
        assert_eq!((float(1.0, 1.0), float(1.0, 1f32.next_up()), float(1.0, 2.0)), (Some(0), Some(1), Some(1 << 23)));
        // Zeros are equal; the least numbers on both sides are two steps apart.
        assert_eq!((float(-0.0, 0.0), float(-f32::from_bits(1), f32::from_bits(1))), (Some(0), Some(2)));
        assert_eq!(float(f32::MIN, f32::MAX), Some(2 * 0x7f7f_ffff));
        assert_eq!((float(f32::NAN, 1.0), float(1.0, f32::INFINITY)), (None, None));
        let double = |a: f64, b: f64| ulps(DType::Double, &Scalar::Double(a), &Scalar::Double(b));
        assert_eq!(
            (double(1.0, 1f64.next_down()), double(f64::MIN, f64::MAX)),
            (Some(1), Some(2 * 0x7fef_ffff_ffff_ffff))
        );
        for (dtype, mantissa) in [(DType::Float16, 10), (DType::Bfloat16, 7)] {
            let steps = ulps(dtype, &Scalar::Float(1.0 + 3.0 * 2f32.powi(-mantissa)), &Scalar::Float(1.0));
            assert_eq!(steps, Some(3), "{dtype}");
        }
        assert_eq!(ulps(DType::Float8e4m3fn, &Scalar::Float(1.0), &Scalar::Float(2.0)), None);
        assert_eq!(ulps(DType::Int32, &Scalar::Int(1), &Scalar::Int(2)), None);
    }
}
