//! How far sums of products may be apart, if they are added in another order.
//!
//! Of `n` terms `t`, each made with `m` roundings, all orders give a result that is within `g * sum(|t|)` of the exact one,
//! with `g = k u / (1 - k u)`, `k = n + m`, and `u` half a unit in the last place of 1 (Higham, Accuracy and Stability of
//! Numerical Algorithms, 4.2). So two results are within twice that. The operator itself gives both sums, in float64:
//! `sum(|t|)` of the absolute values of its inputs, and `n` of ones.

use super::lists::List;
use super::maker::Made;
use onnxref::half::{bf16, f16};
use onnxref::schema::Schema;
use onnxref::{DType, Tensor, Value};

/// Operators that add products of their inputs.
const SUMS: &[&str] = &[
    "Col2Im",
    "Conv",
    "ConvTranspose",
    "CumSum",
    "Einsum",
    "Gemm",
    "MatMul",
    "ReduceL1",
    "ReduceSum",
    "ReduceSumSquare",
    "Sum",
];

/// Operators that divide such a sum by the number of its terms.
const MEANS: &[&str] = &["AveragePool", "GlobalAveragePool", "Mean", "ReduceMean"];

/// Roundings of a term beside those of products of inputs: two factors of Gemm, a division or a product with an inverse.
const ROUNDINGS: usize = 3;

/// What the numbers of a type are like: half a unit in the last place of 1, the least and the greatest number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) unit: f64,
    pub(super) least: f64,
    pub(super) greatest: f64,
}

pub(super) fn numbers(dtype: DType) -> Option<Numbers> {
    let (digits, least, greatest) = match dtype {
        DType::Float => (24, f64::from(f32::from_bits(1)), f64::from(f32::MAX)),
        DType::Double => (53, f64::from_bits(1), f64::MAX),
        DType::Float16 => (11, f16::from_bits(1).to_f64(), f16::MAX.to_f64()),
        DType::Bfloat16 => (8, bf16::from_bits(1).to_f64(), bf16::MAX.to_f64()),
        _ => return None,
    };
    Some(Numbers { unit: 0.5f64.powi(digits), least, greatest })
}

/// Operators that multiply elements of a lane, or of the beginning of one.
const PRODUCTS: &[&str] = &["CumProd", "ReduceProd"];

/// Operators whose results are exact for integers, beside those of sums.
const OF_INTEGERS: &[&str] = &["CumProd", "Mod", "PRelu", "Range", "ReduceProd", "ScatterElements", "ScatterND"];

/// Whether results are sums or products of integers.
pub(super) fn is_exact(schema: &Schema, dtype: DType) -> bool {
    let integer = !matches!(dtype, DType::Bool | DType::String | DType::Complex64 | DType::Complex128);
    let name = schema.name.as_str();
    (SUMS.contains(&name) || OF_INTEGERS.contains(&name)) && integer && numbers(dtype).is_none()
}

/// How far each element of the output may be from the expected one, if it is a product of a lane's floats. `None` of an
/// element that can be anything: partial products may overflow, or be subnormal.
pub(super) fn products(schema: &Schema, made: &Made, outputs: &[(String, Value)]) -> Option<Vec<Option<f64>>> {
    let [(_, output)] = outputs else { return None };
    let output = output.tensor().ok()?;
    let Numbers { unit, least, greatest } =
        numbers(output.dtype()).filter(|_| PRODUCTS.contains(&schema.name.as_str()))?;
    let factors = made.inputs.first()?.value.tensor().ok()?.len() as f64;
    let at_most = run(made, |x| if x.is_nan() { x } else { x.abs().max(1.0) }, |x| x)?;
    let at_least = run(made, |x| if x == 0.0 || x.is_nan() { 1.0 } else { x.abs().min(1.0) }, |x| x)?;
    let (expected, wide) = (floats(output)?, run(made, |x| x, |x| x)?);
    let each = expected.iter().zip(wide).zip(at_most.iter().zip(at_least));
    let bound = |((expected, wide), (at_most, at_least)): ((&f64, f64), (&f64, f64))| {
        if at_most.is_nan() || *at_most >= greatest / 2.0 || at_least < 2.0 * least / unit {
            return Some((expected.is_nan() && wide.is_nan()).then_some(0.0));
        }
        let one = factors * unit / (1.0 - factors * unit) * wide.abs();
        ((expected - wide).abs() <= one).then(|| Some(short(2.0 * one)))
    };
    each.map(bound).collect()
}

/// Half a unit in the last place of 1 in float64.
pub(super) fn finest() -> f64 {
    0.5f64.powi(53)
}

/// How far each element of the output may be from the expected one, if it is a sum of floats. `None` of an element that
/// can be anything: partial sums may overflow.
pub(super) fn bounds(schema: &Schema, made: &Made, outputs: &[(String, Value)]) -> Option<Vec<Option<f64>>> {
    let [(_, output)] = outputs else { return None };
    let output = output.tensor().ok()?;
    let mean = MEANS.contains(&schema.name.as_str());
    if !mean && !SUMS.contains(&schema.name.as_str()) {
        return None;
    }
    let Numbers { unit, least, greatest } = numbers(output.dtype())?;
    let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
    let magnitudes = run(made, finite, f32::abs)?;
    let terms = if mean {
        let largest = made.inputs.iter().filter_map(|given| given.value.tensor().ok()).map(Tensor::len).max()?;
        vec![largest.max(made.inputs.len()) as f64; output.len()]
    } else {
        run(made, |_| 1.0, |_| 1.0)?
    };
    let (expected, wide) = (floats(output)?, run(made, |x| x, |x| x)?);
    let made_with = (made.inputs.len() + ROUNDINGS) as f64;
    let each = expected.iter().zip(wide).zip(magnitudes.iter().zip(terms));
    let bound = |((expected, wide), (magnitude, terms)): ((&f64, f64), (&f64, f64))| {
        let k = terms + made_with;
        let one = k * unit / (1.0 - k * unit) * magnitude + k * least;
        if magnitude.is_nan() || *magnitude >= greatest / 2.0 || k * unit > 0.5 {
            return Some(None);
        }
        if !expected.is_finite() {
            return Some(Some(0.0));
        }
        // In float64, sums are as exact as they need to be to know whether the expected output is right.
        ((expected - wide).abs() <= one).then(|| Some(short(2.0 * one)))
    };
    each.map(bound).collect()
}

/// Three digits, rounded up.
pub(super) fn short(x: f64) -> f64 {
    format!("{:.2e}", x * 1.01).parse().unwrap_or(x)
}

/// What the node gives in float64, of changed floats among its inputs and of changed factors among its attributes.
fn run(made: &Made, change: impl Fn(f64) -> f64, factor: impl Fn(f32) -> f32) -> Option<Vec<f64>> {
    let mut made = made.clone();
    for given in &mut made.inputs {
        let Some(list) = given.value.tensor().ok().and_then(floats) else { continue };
        let shape = given.value.tensor().ok()?.shape().to_vec();
        given.value = Tensor::from_elements(&shape, list.into_iter().map(&change).collect::<Vec<f64>>()).ok()?.into();
    }
    for attribute in made.node.attribute.iter_mut().filter(|attribute| matches!(attribute.name(), "alpha" | "beta")) {
        attribute.f = attribute.f.map(&factor);
    }
    floats(made.run().ok()?.first()?.1.tensor().ok()?)
}

/// The elements of a tensor of floats.
fn floats(tensor: &Tensor) -> Option<Vec<f64>> {
    List::floats(tensor).map(|list| list.elements)
}
