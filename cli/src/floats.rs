//! Converts floats of 16 to 64 bits to another float type.

use onnxref::half::{bf16, f16};
use onnxref::{DType, Scalar, Tensor, Value};
use onnxref_view::dtype_name;

/// The types, the wider ones later.
const TYPES: [DType; 4] = [DType::Bfloat16, DType::Float16, DType::Float, DType::Double];

/// Whether both are such types, and not the same.
pub(crate) fn differ(one: DType, other: DType) -> bool {
    one != other && TYPES.contains(&one) && TYPES.contains(&other)
}

/// The nearest elements of another of the types, or which one is too large for it.
pub(crate) fn rounded(tensor: &Tensor, to: DType) -> Result<Tensor, String> {
    let number = |scalar: &Scalar<'_>| match scalar {
        Scalar::Float(v) => (*v).into(),
        Scalar::Double(v) => *v,
        _ => 0.0,
    };
    let wide: Vec<f64> = tensor.scalars().map(|scalar| number(&scalar)).collect();
    let shape = tensor.shape();
    let made = match to {
        DType::Float16 => Tensor::from_elements(shape, wide.iter().map(|v| f16::from_f64(*v)).collect()),
        DType::Bfloat16 => Tensor::from_elements(shape, wide.iter().map(|v| bf16::from_f64(*v)).collect()),
        DType::Double => Tensor::from_elements(shape, wide.clone()),
        _ => Tensor::from_elements(shape, wide.iter().map(|v| *v as f32).collect()),
    };
    let made = made.map_err(|e| format!("{e:#}"))?;
    let lost = made.scalars().zip(&wide).find(|(scalar, v)| v.is_finite() && !number(scalar).is_finite());
    lost.map_or(Ok(()), |(_, v)| Err(format!("{v:e} is too large for {}", dtype_name(to))))?;
    Ok(made)
}

/// Both values in a type that holds the numbers of both, if they are floats of two types.
pub(crate) fn widened(one: &Value, other: &Value) -> Option<(Value, Value)> {
    let (one, other) = (one.tensor().ok()?, other.tensor().ok()?);
    if !differ(one.dtype(), other.dtype()) {
        return None;
    }
    let is_double = [one, other].iter().any(|tensor| tensor.dtype() == DType::Double);
    let to = if is_double { DType::Double } else { DType::Float };
    Some((rounded(one, to).ok()?.into(), rounded(other, to).ok()?.into()))
}
