//! Tells which values are random: those that differ from run to run of one model.

use onnxref::{Scalar, Value};

/// Maximum number of runs that tell whether a value is random: it may not differ from each to the next.
pub(crate) const REPEATS: usize = 8;

/// Operators that draw random numbers: no two engines agree.
pub(crate) const RANDOM: &[&str] =
    &["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"];

/// Whether values have the same bits; each NaN counts as the same.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    if one == other {
        return true;
    }
    if one.value_type() != other.value_type() {
        return false;
    }
    let all = |one: &[Value], other: &[Value]| {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
    };
    match (one, other) {
        (Value::Tensor(one), Value::Tensor(other)) => {
            one.shape() == other.shape() && one.scalars().zip(other.scalars()).all(|(one, other)| alike(&one, &other))
        }
        (Value::Sequence(one), Value::Sequence(other)) => all(one.values(), other.values()),
        (Value::Map(one), Value::Map(other)) => one.keys() == other.keys() && all(one.values(), other.values()),
        (Value::Optional(one), Value::Optional(other)) => {
            one.get().zip(other.get()).is_some_and(|(one, other)| same(one, other))
        }
        _ => false,
    }
}

fn alike(one: &Scalar<'_>, other: &Scalar<'_>) -> bool {
    let float = |one: f32, other: f32| one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan());
    let double = |one: f64, other: f64| one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan());
    match (one, other) {
        (Scalar::Float(one), Scalar::Float(other)) => float(*one, *other),
        (Scalar::Double(one), Scalar::Double(other)) => double(*one, *other),
        (Scalar::Complex64(a, b), Scalar::Complex64(c, d)) => float(*a, *c) && float(*b, *d),
        (Scalar::Complex128(a, b), Scalar::Complex128(c, d)) => double(*a, *c) && double(*b, *d),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::half::f16;
    use onnxref::num_complex::Complex;
    use onnxref::{Sequence, Tensor};

    #[test]
    fn values_have_the_same_bits_but_for_nan() {
        let value = |number: f32| Value::from(vec![1.0, number]);
        let nans = [f32::NAN, -f32::NAN].map(value);
        assert!(same(&nans[0], &nans[1]) && same(&value(0.0), &value(0.0)));
        assert!(!same(&value(0.0), &value(-0.0)) && !same(&value(f32::NAN), &value(0.0)));
        assert!(!same(&value(1.0), &Value::from(vec![1f64, 1.0])) && !same(&value(1.0), &Value::from(vec![1f32])));
        let half = |bits: u16| Value::from(vec![f16::from_bits(bits)]);
        assert!(same(&half(0x7E00), &half(0xFE01)) && !same(&half(0x8000), &half(0)));
        let complex = |re: f64, im: f64| Value::from(vec![Complex::new(re, im)]);
        assert!(same(&complex(f64::NAN, 1.0), &complex(-f64::NAN, 1.0)));
        assert!(!same(&complex(f64::NAN, 0.0), &complex(f64::NAN, -0.0)));
        let list = |number: f32| {
            let tensors = vec![Value::from(Tensor::from(vec![number]))];
            Value::from(Sequence::new(tensors[0].value_type().unwrap(), tensors).unwrap())
        };
        assert!(same(&list(f32::NAN), &list(-f32::NAN)) && !same(&list(0.0), &list(-0.0)));
    }
}
