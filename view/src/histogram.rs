//! How the numbers of a tensor are distributed.

use crate::statistics::Statistics;
use onnxref::{Scalar, Tensor};

/// How many finite elements of a tensor are in each of `bins` ranges of the same width, from the least to the greatest.
/// Empty if there are none, or if all are the same.
pub fn histogram(tensor: &Tensor, statistics: &Statistics, bins: usize) -> Vec<u64> {
    let range = statistics.least.as_ref().and_then(number).zip(statistics.greatest.as_ref().and_then(number));
    let Some((least, greatest)) = range.filter(|(least, greatest)| least < greatest && bins > 0) else {
        return Vec::new();
    };
    let mut counts = vec![0u64; bins];
    // Halves, as the difference of the greatest doubles is infinite.
    let width = (greatest / 2.0 - least / 2.0) / bins as f64;
    let finite = tensor.scalars().filter_map(|scalar| number(&scalar)).filter(|v| v.is_finite());
    for v in finite {
        let bin = (((v / 2.0 - least / 2.0) / width) as usize).min(bins - 1);
        counts.get_mut(bin).into_iter().for_each(|count| *count += 1);
    }
    counts
}

fn number(scalar: &Scalar<'_>) -> Option<f64> {
    match *scalar {
        Scalar::Float(v) => Some(v.into()),
        Scalar::Double(v) => Some(v),
        Scalar::Int(v) => Some(v as f64),
        Scalar::Uint(v) => Some(v as f64),
        Scalar::Bool(v) => Some(v.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::{Cancel, Value};

    fn of(tensor: Tensor, bins: usize) -> Vec<u64> {
        let statistics = Statistics::of(&Value::from(tensor.clone()), &Cancel::new()).unwrap().unwrap();
        histogram(&tensor, &statistics, bins)
    }

    #[test]
    fn counts() {
        assert_eq!(of(vec![0f32, 0.9, 1.0, 3.9, 4.0, f32::NAN, f32::INFINITY].into(), 4), [2, 1, 0, 2]);
        assert_eq!(of(vec![i64::MIN, i64::MAX].into(), 2), [1, 1]);
        assert_eq!(of(vec![f64::MIN, f64::MAX, 1.0].into(), 2), [1, 2]);
    }

    #[test]
    fn without_a_range() {
        assert!(of(vec![7i8, 7].into(), 4).is_empty() && of(vec![f32::NAN].into(), 4).is_empty());
        assert!(of(vec![1f32, 2.0].into(), 0).is_empty());
    }
}
