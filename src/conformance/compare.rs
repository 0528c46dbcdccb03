//! Compares outputs with the expected ones, by the rule of the official runner.

use super::difference::{Difference, DifferenceKind, ulps};
use crate::dtype::DType;
use crate::tensor::{Scalar, Tensor};
use crate::value::Value;
use std::num::NonZeroU64;

/// How far a float may be from the expected one: `|got - want| <= atol + rtol * |want|`.
///
/// The rule is that of ONNX's own test runner, computed in `f64`:
///
/// - The number of outputs, their element types and shapes must be equal.
/// - NaN equals NaN, an infinity only itself, -0.0 equals 0.0.
/// - bfloat16 has an `rtol` of at least 2^-6; float16 has the same as float.
/// - The error of a complex number is the modulus of the difference. If one of its parts is not finite, both parts must
///   be equal.
/// - Floats of at most 8 bits must have the same value.
/// - Integers, truth values and strings must be equal. The official runner applies the float tolerance to
///   integers, which matters above 1,000; here they have none.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Tolerance {
    /// Relative to the expected value. Default: 1e-3.
    pub rtol: f64,
    /// Absolute. Default: 1e-7.
    pub atol: f64,
}

impl Tolerance {
    /// Values must be equal.
    pub const EXACT: Tolerance = Tolerance { rtol: 0.0, atol: 0.0 };
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance { rtol: 1e-3, atol: 1e-7 }
    }
}

/// How a value that is within the tolerance agrees with the expected one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Agreement {
    /// Equal bit by bit.
    pub(super) exact: bool,
    /// The greatest distance of a finite float of 16 bits or more, in units in the last place.
    pub(super) ulps: u64,
}

impl Agreement {
    pub(super) const EXACT: Agreement = Agreement { exact: true, ulps: 0 };

    /// That of two values together.
    pub(super) fn and(self, other: Agreement) -> Agreement {
        Agreement { exact: self.exact && other.exact, ulps: self.ulps.max(other.ulps) }
    }
}

/// How a tensor agrees, or else how it differs.
fn agree_tensors(got: &Tensor, want: &Tensor, tolerance: Tolerance) -> Result<Agreement, Difference> {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        let shape = |tensor: &Tensor| format!("{}{:?}", tensor.dtype(), tensor.shape());
        let kind = if got.dtype() == want.dtype() { DifferenceKind::Shape } else { DifferenceKind::Type };
        return Err(Difference::new(kind, shape(got), shape(want)));
    }
    if got == want {
        return Ok(Agreement::EXACT);
    }
    let dtype = want.dtype();
    let tolerance = tolerance.for_type(dtype);
    let (mut first, mut differ, mut greatest, mut steps) = (None, 0, None::<f64>, None::<u64>);
    for (at, (got, want)) in got.scalars().zip(want.scalars()).enumerate() {
        steps = steps.max(ulps(dtype, &got, &want));
        if let Err(error) = tolerance.check(&got, &want) {
            first.get_or_insert((at, got, want));
            differ += 1;
            if error > greatest {
                greatest = error;
            }
        }
    }
    match first {
        None => Ok(Agreement { exact: false, ulps: steps.unwrap_or(0) }),
        Some(first) => {
            let greatest_ulps = steps.and_then(NonZeroU64::new);
            Err(Difference { greatest_ulps, ..Difference::of_elements(want, first, differ, greatest) })
        }
    }
}

/// What is compared of two values that hold others.
enum Parts<'a> {
    Lists(&'a [Value], &'a [Value]),
    Differ(DifferenceKind),
}

impl Tolerance {
    /// Whether a value is equal bit by bit (true) or within the tolerance (false). Sequences, optionals and maps must
    /// have the same type and length; their elements are compared one by one.
    ///
    /// # Errors
    /// If the value is not within the tolerance.
    ///
    /// ```
    /// use onnxref::{Tensor, Value, conformance::Tolerance};
    /// use std::num::NonZeroU64;
    ///
    /// let value = |values: [f32; 2]| Value::from(Tensor::from_array(ndarray::arr1(&values)));
    /// let tolerance = Tolerance::default();
    /// assert_eq!(tolerance.compare(&value([1.0, 2.0001]), &value([1.0, 2.0])), Ok(false));
    /// let difference = tolerance.compare(&value([1.0, 2.5]), &value([1.0, 2.0])).unwrap_err();
    /// assert_eq!(difference.to_string(), "is 2.5 at [1], expected 2; 1 of 2 differ, by up to 0.5");
    /// assert_eq!((&*difference.index, difference.ulps), (&[1][..], NonZeroU64::new(1 << 21)));
    /// ```
    pub fn compare(&self, got: &Value, want: &Value) -> Result<bool, Difference> {
        self.agree(got, want).map(|agreement| agreement.exact)
    }

    /// As [`Tolerance::compare`], with the distance.
    pub(super) fn agree(&self, got: &Value, want: &Value) -> Result<Agreement, Difference> {
        let parts = match (got, want) {
            (Value::Tensor(got), Value::Tensor(want)) => return agree_tensors(got, want, *self),
            (Value::Sequence(got), Value::Sequence(want)) => Parts::Lists(got.values(), want.values()),
            (Value::Optional(got), Value::Optional(want)) => match (got.get(), want.get()) {
                (None, None) => Parts::Lists(&[], &[]),
                (Some(got), Some(want)) => return self.agree(got, want),
                _ => Parts::Differ(DifferenceKind::Length),
            },
            (Value::Map(got), Value::Map(want)) if got.keys() != want.keys() => Parts::Differ(DifferenceKind::Keys),
            (Value::Map(got), Value::Map(want)) => Parts::Lists(got.values(), want.values()),
            _ => Parts::Differ(DifferenceKind::Type),
        };
        let (gots, wants) = match parts {
            Parts::Lists(gots, wants) if gots.len() == wants.len() => (gots, wants),
            Parts::Lists(..) => return Err(Difference::new(DifferenceKind::Length, got, want)),
            Parts::Differ(kind) => return Err(Difference::new(kind, got, want)),
        };
        let mut all = Agreement { exact: got == want, ulps: 0 };
        for (k, (got, want)) in gots.iter().zip(wants).enumerate() {
            all = all.and(self.agree(got, want).map_err(|difference| difference.within(k))?);
        }
        Ok(all)
    }

    fn for_type(self, dtype: DType) -> Tolerance {
        match dtype {
            DType::Bfloat16 => Tolerance { rtol: self.rtol.max(1.0 / 64.0), ..self },
            _ if dtype.bits() <= 8 => Tolerance::EXACT,
            _ => self,
        }
    }

    /// `Err` for an element beyond the tolerance, with the error if it is a number.
    fn check(self, got: &Scalar, want: &Scalar) -> Result<(), Option<f64>> {
        let pairs = |a: &[f32; 2]| a.map(f64::from);
        let (ok, error) = match (got, want) {
            (Scalar::Float(got), Scalar::Float(want)) => self.real(f64::from(*got), f64::from(*want)),
            (Scalar::Double(got), Scalar::Double(want)) => self.real(*got, *want),
            (Scalar::Complex64(a, b), Scalar::Complex64(c, d)) => self.complex(pairs(&[*a, *b]), pairs(&[*c, *d])),
            (Scalar::Complex128(a, b), Scalar::Complex128(c, d)) => self.complex([*a, *b], [*c, *d]),
            (Scalar::Int(got), Scalar::Int(want)) => (got == want, got.abs_diff(*want) as f64),
            (Scalar::Uint(got), Scalar::Uint(want)) => (got == want, got.abs_diff(*want) as f64),
            _ => return if got == want { Ok(()) } else { Err(None) },
        };
        if ok { Ok(()) } else { Err(Some(error)) }
    }

    fn real(self, got: f64, want: f64) -> (bool, f64) {
        self.close(same(got, want), (got - want).abs(), want.abs())
    }

    fn complex(self, got: [f64; 2], want: [f64; 2]) -> (bool, f64) {
        let ([got_re, got_im], [re, im]) = (got, want);
        let error = modulus(got_re - re, got_im - im);
        self.close(same(got_re, re) && same(got_im, im), error, modulus(re, im))
    }

    /// Whether a number is within the tolerance, and its error: infinite if one of the two is not finite.
    fn close(self, same: bool, error: f64, want: f64) -> (bool, f64) {
        let error = if error.is_nan() { f64::INFINITY } else { error };
        (same || (error.is_finite() && error <= self.atol + self.rtol * want), error)
    }
}

fn same(got: f64, want: f64) -> bool {
    got == want || (got.is_nan() && want.is_nan())
}

/// `sqrt(re^2 + im^2)` without overflow, by operations whose result is specified (that of `hypot` isn't). NaN if a part
/// is NaN, or if both are infinite.
fn modulus(re: f64, im: f64) -> f64 {
    let (greater, less) = if re.abs() < im.abs() { (im.abs(), re.abs()) } else { (re.abs(), im.abs()) };
    let ratio = less / greater;
    if greater == 0.0 { less } else { greater * (1.0 + ratio * ratio).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Element;
    use half::{bf16, f16};
    use ndarray::{ArrayD, array, aview1};
    use num_complex::Complex;

    const OFFICIAL: Tolerance = Tolerance { rtol: 1e-3, atol: 1e-7 };

    fn compare_tensors(got: &Tensor, want: &Tensor, tolerance: Tolerance) -> Result<bool, Difference> {
        agree_tensors(got, want, tolerance).map(|agreement| agreement.exact)
    }

    /// Whether one element passes, and whether it is equal bit by bit.
    fn one<T: Element>(got: T, want: T) -> Option<bool> {
        compare_tensors(&Tensor::scalar(got), &Tensor::scalar(want), OFFICIAL).ok()
    }

    const EXACT: Option<bool> = Some(true);
    const CLOSE: Option<bool> = Some(false);

    #[test]
    fn the_bound_itself_is_within() {
        let tolerance = Tolerance { rtol: 1.0 / 1024.0, atol: 1.0 / 8.0 };
        let compare = |got: f64, want: f64| compare_tensors(&Tensor::scalar(got), &Tensor::scalar(want), tolerance);
        for (want, bound) in [(0.0, 0.125), (1024.0, 1025.125), (-1024.0, -1025.125), (-1024.0, -1022.875)] {
            assert_eq!(compare(bound, want), Ok(false), "{bound} {want}");
            let further = if bound > want { bound.next_up() } else { bound.next_down() };
            assert!(compare(further, want).is_err(), "{further} {want}");
        }
        assert_eq!((one(1e-7f64, 0.0), one(1e-7f64.next_up(), 0.0)), (CLOSE, None));
        // Relative to the expected value, not to the computed one.
        assert_eq!((one(1.0f64, 1.001), one(1.001_001f64, 1.0)), (CLOSE, None));
    }

    #[test]
    fn floats_that_are_not_finite_or_zero() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!((one(nan, nan), one(-nan, nan)), (EXACT, CLOSE));
        assert_eq!((one(nan, 1.0), one(1.0, nan), one(nan, inf), one(inf, nan)), (None, None, None, None));
        assert_eq!((one(inf, inf), one(inf, -inf), one(inf, f32::MAX), one(f32::MAX, inf)), (EXACT, None, None, None));
        assert_eq!((one(f64::MAX, f64::MIN), one(f64::MAX, f64::INFINITY)), (None, None));
        assert_eq!((one(-0f32, 0.0), one(0f64, -0.0)), (CLOSE, CLOSE));
    }

    #[test]
    fn half_floats() {
        let b = bf16::from_f32;
        // An ulp at 1 is 2^-7: two are within, three are not.
        assert_eq!((one(b(1.0), b(1.0)), one(b(1.015_625), b(1.0)), one(b(1.023_437_5), b(1.0))), (EXACT, CLOSE, None));
        let h = f16::from_f32;
        // An ulp at 1 is 2^-10, less than 1e-3.
        assert_eq!((one(h(1.000_976_6), h(1.0)), one(h(1.001_953_1), h(1.0))), (CLOSE, None));
        let wide = Tolerance { rtol: 0.1, ..OFFICIAL };
        assert_eq!(compare_tensors(&Tensor::scalar(b(1.09)), &Tensor::scalar(b(1.0)), wide), Ok(false));
    }

    #[test]
    fn small_floats_have_no_slack() {
        let wide = Tolerance { rtol: 1.0, atol: 1.0 };
        let one = |dtype, got: u8, want: u8| {
            let tensor = |code: u8| Tensor::new(dtype, &[], vec![code]).unwrap();
            compare_tensors(&tensor(got), &tensor(want), wide).ok()
        };
        for dtype in DType::all().filter(|dtype| (1..=8).contains(&dtype.bits()) && *dtype != DType::Bool) {
            assert_eq!((one(dtype, 1, 1), one(dtype, 1, 0)), (EXACT, None), "{dtype}");
        }
        // Negative zero, and two codes of NaN.
        assert_eq!(one(DType::Float8e4m3fn, 0x80, 0), CLOSE);
        assert_eq!(one(DType::Float8e5m2, 0x7d, 0x7e), CLOSE);
        assert_eq!(one(DType::Float8e5m2, 0x7c, 0xfc), None);
    }

    #[test]
    fn complex_numbers_are_off_by_the_modulus() {
        let tolerance = Tolerance { rtol: 0.25, atol: 0.0 };
        let one = |got: [f32; 2], want: [f32; 2]| {
            let [narrow_got, narrow_want] = [got, want].map(|[re, im]| Tensor::scalar(Complex::new(re, im)));
            let wide = |[re, im]: [f32; 2]| Tensor::scalar(Complex::new(f64::from(re), f64::from(im)));
            let narrow = compare_tensors(&narrow_got, &narrow_want, tolerance).ok();
            assert_eq!(compare_tensors(&wide(got), &wide(want), tolerance).ok(), narrow);
            narrow
        };
        // |12 + 16i| = 20 allows 5 = |3 + 4i|, though 4 + 3i would be within neither part's own slack.
        assert_eq!((one([15.0, 20.0], [12.0, 16.0]), one([16.0, 19.0], [12.0, 16.0])), (CLOSE, CLOSE));
        assert_eq!((one([15.0, 20.001], [12.0, 16.0]), one([-0.0, 1.0], [0.0, 1.0])), (None, CLOSE));
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!((one([nan, 1.0], [nan, 1.0]), one([nan, 1.0], [nan, 1.1])), (EXACT, None));
        assert_eq!((one([inf, -inf], [inf, -inf]), one([inf, 1.0], [-inf, 1.0])), (EXACT, None));
        assert_eq!((one([nan, 0.0], [0.0, 0.0]), one([0.0, nan], [0.0, 0.0])), (None, None));
    }

    #[test]
    fn moduli() {
        for scale in [f64::MIN_POSITIVE, 1.0, f64::MAX / 8.0] {
            for (re, im, want) in [(3.0, 4.0, 5.0), (-12.0, 5.0, 13.0), (0.0, -2.0, 2.0), (-0.0, 0.0, 0.0)] {
                let (re, im, want) = (re / 4.0 * scale, im / 4.0 * scale, want / 4.0 * scale);
                assert!((modulus(re, im) - want).abs() <= want * 1e-15, "{re} {im}");
            }
        }
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert_eq!((modulus(inf, 1.0), modulus(1.0, -inf), modulus(inf, 0.0)), (inf, inf, inf));
        assert!([(nan, 0.0), (0.0, nan), (nan, 1.0), (1.0, nan)].iter().all(|(re, im)| modulus(*re, *im).is_nan()));
    }

    #[test]
    fn integers_truth_values_and_strings_are_equal() {
        assert_eq!((one(1_000_000i64, 1_000_001), one(255u8, 254), one(true, false)), (None, None, None));
        assert_eq!((one(i64::MIN, i64::MIN), one(false, false)), (EXACT, EXACT));
        let strings = |text: [&str; 2]| Tensor::from_strings(&[2], text).unwrap();
        let compare = |got| compare_tensors(&strings(got), &strings(["a", "b"]), OFFICIAL);
        assert_eq!(compare(["a", "b"]), Ok(true));
        assert_eq!(compare(["a", "c"]).unwrap_err().to_string(), "is \"c\" at [1], expected \"b\"; 1 of 2 differ");
    }

    #[test]
    fn differences_are_named() {
        let want = Tensor::from_array(array![[1i32, 2], [3, 4]]);
        let integers = |got| compare_tensors(&got, &want, OFFICIAL).unwrap_err().to_string();
        assert_eq!(integers(array![[1i32, 2], [5, 7]].into()), "is 5 at [1, 0], expected 3; 2 of 4 differ, by up to 3");
        assert_eq!(integers(array![1i32].into()), "is int32[1], expected int32[2, 2]");
        assert_eq!(integers(array![[1u32, 2], [3, 4]].into()), "is uint32[2, 2], expected int32[2, 2]");

        let floats = |got: [f32; 3]| {
            let tensor = |values: &[f32; 3]| Tensor::from_array(aview1(values));
            compare_tensors(&tensor(&got), &tensor(&[1.0, 2.0, 3.0]), OFFICIAL)
        };
        assert_eq!(floats([1.0005, 2.0, 2.9999]), Ok(false));
        // What is within the tolerance does not count.
        assert_eq!(
            floats([1.0005, 2.125, 2.96875]).unwrap_err().to_string(),
            "is 2.125 at [1], expected 2; 2 of 3 differ, by up to 0.125"
        );
        let difference = floats([1.0, f32::NAN, 4.0]).unwrap_err();
        assert_eq!(difference.to_string(), "is NaN at [1], expected 2; 2 of 3 differ, by up to inf");
        assert_eq!((difference.differing, difference.elements, difference.ulps), (2, 3, None));
        let one = floats([1.0, 2.125, 3.0]).unwrap_err();
        assert_eq!((one.kind, &*one.index, one.greatest_error), (DifferenceKind::Elements, &[1][..], Some(0.125)));
    }

    #[test]
    fn the_greatest_distance_is_told() {
        let tensor = |values: &[f32; 3]| Value::from(Tensor::from_array(aview1(values)));
        let (want, next) = (tensor(&[1.0, -0.0, f32::NAN]), f32::next_up);
        let close = tensor(&[next(next(1.0)), f32::from_bits(3), f32::NAN]);
        assert_eq!(OFFICIAL.agree(&close, &want), Ok(Agreement { exact: false, ulps: 3 }));
        assert_eq!(OFFICIAL.agree(&want, &want), Ok(Agreement::EXACT));
        let sequence = |value: Value| {
            let of = crate::value::ValueType::Tensor(DType::Float);
            Value::from(crate::value::Sequence::new(of, vec![want.clone(), value]).unwrap())
        };
        let inside = OFFICIAL.agree(&sequence(close), &sequence(want.clone()));
        assert_eq!(inside, Ok(Agreement { exact: false, ulps: 3 }));
        // The first that differs is not the furthest.
        let far = OFFICIAL.agree(&tensor(&[2.0, 4.0, f32::NAN]), &want).unwrap_err();
        assert_eq!([far.ulps, far.greatest_ulps], [1 << 23, 4f32.to_bits().into()].map(NonZeroU64::new));
        let integers = OFFICIAL.agree(&Tensor::scalar(1i32).into(), &Tensor::scalar(2i32).into()).unwrap_err();
        assert_eq!((integers.ulps, integers.greatest_ulps), (None, None));
    }

    #[test]
    fn no_elements() {
        let none = |shape: &[usize]| Tensor::from_array(ArrayD::<f32>::zeros(shape));
        assert_eq!(compare_tensors(&none(&[0, 2]), &none(&[0, 2]), OFFICIAL), Ok(true));
        let kind = compare_tensors(&none(&[0, 2]), &none(&[2, 0]), OFFICIAL).unwrap_err().kind;
        assert_eq!(kind, DifferenceKind::Shape);
    }

    #[test]
    fn values_that_hold_others() {
        use crate::value::{Map, Optional, Sequence, ValueType};
        let float = || ValueType::Tensor(DType::Float);
        let sequence = |values: &[f32]| {
            Value::from(Sequence::new(float(), values.iter().map(|v| Tensor::scalar(*v).into())).unwrap())
        };
        let compare = |got: &Value, want: &Value| OFFICIAL.compare(got, want);
        let (good, close) = (sequence(&[1.0, 2.0]), sequence(&[1.0, 2.000_1]));
        assert_eq!((compare(&good, &good), compare(&close, &good)), (Ok(true), Ok(false)));
        let text = "in element 1 is 3 at [], expected 2; 1 of 1 differ, by up to 1";
        let inside = compare(&sequence(&[1.0, 3.0]), &good).unwrap_err();
        assert_eq!((inside.to_string().as_str(), &*inside.path), (text, &[1][..]));
        let kind = |got: &Value, want: &Value| compare(got, want).unwrap_err().kind;
        assert_eq!(kind(&sequence(&[1.0]), &good), DifferenceKind::Length);
        assert_eq!(kind(&Tensor::scalar(1f32).into(), &good), DifferenceKind::Type);
        let (some, none) = (Value::from(Optional::some(close)), Value::from(Optional::none(float().sequence())));
        assert_eq!(compare(&some, &Optional::some(good.clone()).into()), Ok(false));
        assert_eq!(compare(&none, &none), Ok(true));
        assert_eq!([kind(&none, &some), kind(&some, &none)], [DifferenceKind::Length; 2]);
        let map = |keys: Vec<i64>| Value::from(Map::new(keys.into(), good.sequence().unwrap().clone()).unwrap());
        assert_eq!(compare(&map(vec![1, 2]), &map(vec![1, 2])), Ok(true));
        assert_eq!(kind(&map(vec![1, 2]), &map(vec![1, 3])), DifferenceKind::Keys);
    }
}
