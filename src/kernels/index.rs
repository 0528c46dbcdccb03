//! Axes and indices: from what a model says to positions that are in range.

use super::gather::{Bounds, Indices};
use super::volume;
use crate::dtype::{DType, ShapeText};
use crate::error::{Error, Place, Result, quote};
use crate::tensor::{Scalar, Shape, Tensor, position_of, shape_of};
use std::borrow::Cow;

/// An axis of a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// The tensor's name in the operator's schema.
    name: &'static str,
    /// The axis as it was given.
    pub(crate) given: i64,
    /// Its place among the dimensions.
    pub(crate) at: usize,
    /// Its size.
    pub(crate) size: usize,
}

impl Axis {
    /// The axis of `tensor` that the attribute `axis` names: negative values count from the end.
    pub(crate) fn new(given: impl Into<i128>, name: &'static str, tensor: &Tensor) -> Result<Axis> {
        let given = given.into();
        let rank = tensor.rank();
        if rank == 0 {
            return Err(Error::input(format!("{} is a scalar: it needs a rank of at least 1", quote(name)))
                .at(|place| place.value_name = Some(name.into())));
        }
        let Some(axis) = Self::find(given, name, tensor.shape()) else {
            let last = rank - 1;
            return Err(Error::model(format!(
                "axis {given} is out of range for {} of shape {}: allowed -{rank}..={last}",
                quote(name),
                ShapeText(tensor.shape())
            ))
            .at(|place| {
                place.attribute = Some("axis".into());
                place.axis = i64::try_from(given).ok();
                place.value = Some(given);
            }));
        };
        Ok(axis)
    }

    fn find(given: i128, name: &'static str, shape: &[usize]) -> Option<Axis> {
        let distance = usize::try_from(given.unsigned_abs()).ok()?;
        let at = if given < 0 { shape.len().checked_sub(distance)? } else { distance };
        Some(Axis { name, given: i64::try_from(given).ok()?, at, size: *shape.get(at)? })
    }

    /// An axis by its place among the dimensions.
    pub(crate) fn at(at: usize, name: &'static str, size: usize) -> Axis {
        Axis { name, given: at as i64, at, size }
    }

    /// `shape` with this axis replaced by the dimensions `by`.
    pub(crate) fn replaced_in(&self, shape: &[usize], by: &[usize]) -> Shape {
        shape_of([shape.get(..self.at).unwrap_or(&[]), by, shape.get(self.at + 1..).unwrap_or(&[])])
    }
}

/// Which index values a version of an operator allows along an axis of size s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// -s to s-1: negative values count from the end.
    Signed,
    /// 0 to s-1.
    Unsigned {
        /// The version from which on negative values are allowed.
        until: i64,
    },
}

impl Range {
    /// The axis as loops see it.
    pub(crate) fn bounds(self, size: usize) -> Bounds {
        Bounds { size, negative: self == Range::Signed }
    }
}

/// The index values of an int32 or int64 tensor.
pub(crate) fn indices_of(indices: &Tensor) -> Result<Indices<'_>> {
    Ok(match indices.dtype() {
        DType::Int32 => Indices::I32(indices.elements()?),
        _ => Indices::I64(indices.elements()?),
    })
}

/// An integer tensor of any type as int32 or int64: what int64 doesn't have becomes its greatest value, which is out
/// of range as well.
pub(crate) fn widened(indices: &Tensor) -> Cow<'_, Tensor> {
    if matches!(indices.dtype(), DType::Int32 | DType::Int64) {
        return Cow::Borrowed(indices);
    }
    let value = |value| i64::try_from(integer(&value)).unwrap_or(i64::MAX);
    Cow::Owned(Tensor::from_words(DType::Int64, indices.shape(), indices.scalars().map(value).collect()))
}

pub(crate) fn integer(value: &Scalar<'_>) -> i128 {
    match value {
        Scalar::Int(value) => (*value).into(),
        Scalar::Uint(value) => (*value).into(),
        _ => 0,
    }
}

/// The error for the first of `indices` that is out of range, once a kernel found that there is one.
pub(crate) fn first_out_of_range(indices: &Tensor, axis: &Axis, range: Range) -> Error {
    let size = axis.size as i128;
    let allowed = if range == Range::Signed { -size..size } else { 0..size };
    let mut values = indices.scalars().map(|value| integer(&value)).enumerate();
    match values.find(|(_, value)| !allowed.contains(value)) {
        Some((at, value)) => out_of_range(indices, at, value, axis, range),
        None => Error::unsupported("a kernel refused indices that are in range: please report this"),
    }
}

fn out_of_range(indices: &Tensor, at: usize, value: i128, axis: &Axis, range: Range) -> Error {
    let Axis { name, given, size, .. } = *axis;
    let position = position_of(at, indices.shape());
    let element = if position.is_empty() { String::new() } else { ShapeText(&position).to_string() };
    let allowed = match range {
        _ if size == 0 => "no index is allowed".to_string(),
        Range::Signed => format!("allowed -{size}..={}", size - 1),
        Range::Unsigned { .. } => format!("allowed 0..={}", size - 1),
    };
    let why = match range {
        Range::Unsigned { until } if value < 0 => {
            format!("is negative, which is allowed from version {until} on only, ")
        }
        _ => "is out of range ".to_string(),
    };
    let entries = if size == 1 { "entry" } else { "entries" };
    Error::input(format!(
        "indices{element} = {value} {why}for axis {given} of {}, which has {size} {entries}: {allowed}",
        quote(name)
    ))
    .at(|place: &mut Place| {
        place.value_name = Some("indices".into());
        place.axis = Some(given);
        place.size = Some(size);
        place.value = Some(value);
        place.position = Some(position);
    })
}

/// The error for a batch dimension that `data` and `indices` should share.
pub(crate) fn unequal_batch(d: usize, data: &[usize], indices: &[usize]) -> Error {
    let (have, want) = (data.get(d).copied().unwrap_or(0), indices.get(d).copied().unwrap_or(0));
    Error::input(format!("batch dimension {d} is {have} in \"data\" and {want} in \"indices\": they must be equal")).at(
        |place| {
            place.value_name = Some("indices".into());
            place.axis = Some(d as i64);
            place.size = Some(have);
            place.value = Some(want as i128);
        },
    )
}

/// For each tuple along the last dimension of `indices` (`width` int64 values) the slice of `data` that it names, as
/// its place among all slices in row-major order. The first `batch` dimensions of both are the same and go along.
pub(crate) fn tuple_positions(data: &[usize], batch: usize, width: usize, indices: &Tensor) -> Result<Vec<i64>> {
    let axes: Vec<Axis> =
        data.iter().enumerate().skip(batch).take(width).map(|(at, &size)| Axis::at(at, "data", size)).collect();
    let values = indices.elements::<i64>()?;
    let batches = volume(1, data.iter().take(batch));
    let tuples = values.len() / width.max(1);
    let per_batch = tuples.checked_div(batches).unwrap_or(0).max(1);
    let mut rows = Vec::with_capacity(tuples);
    for (t, tuple) in values.chunks_exact(width.max(1)).enumerate() {
        let mut row = t / per_batch;
        for (k, (&value, axis)) in tuple.iter().zip(&axes).enumerate() {
            let entry = Range::Signed.bounds(axis.size).entry(value);
            let entry = entry.ok_or_else(|| out_of_range(indices, t * width + k, value.into(), axis, Range::Signed))?;
            row = row * axis.size + entry;
        }
        rows.push(row as i64);
    }
    Ok(rows)
}
