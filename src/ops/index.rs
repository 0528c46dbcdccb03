//! Reads indices from tensors, and reports those out of range. Shared by the families that pick elements.

use crate::dtype::{DType, ShapeText};
use crate::error::{Error, Result, quote};
use crate::operator::{Axis, Call, Inference};
use crate::tensor::{Scalar, Scratch, Tensor};
use crate::value::Dim;
use kernels::gather::{Bounds, Gather, Indices, gather};
use kernels::{Stopped, position_of, volume};

/// Which index values a version of an operator allows along an axis of size s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// -s to s-1: negative values count from the end.
    Signed,
    /// 0 to s-1.
    Unsigned {
        /// The first version that allows negative values; `i64::MAX` if none does.
        until: i64,
    },
}

impl Range {
    /// The axis, for the loops.
    pub(crate) fn bounds(self, size: usize) -> Bounds {
        Bounds { size, negative: self == Range::Signed }
    }
}

/// Picks slices by indices that may be out of range.
pub(crate) fn pick(call: &Call<'_>, work: Gather<'_>, out: &mut [u8]) -> Result<std::result::Result<(), Stopped>> {
    let mut memory = None;
    let scratch = match work.scratch(out.len()) {
        0 => &mut [],
        count => memory.insert(call.scratch::<u32>(count)?).elements_mut(),
    };
    Ok(gather(work, out, scratch, call.resources()))
}

/// The index values of an int32 or int64 tensor.
pub(crate) fn indices_of(indices: &Tensor) -> Result<Indices<'_>> {
    Ok(match indices.dtype() {
        DType::Int32 => Indices::I32(indices.as_slice()?),
        _ => Indices::I64(indices.as_slice()?),
    })
}

/// The index values of an integer tensor of any type: as they are, or as int64 in scratch memory. Values beyond int64
/// saturate, which leaves them out of range.
pub(crate) fn widened<'m, 'c: 'm>(
    call: &'c Call<'_>,
    indices: &'c Tensor,
    memory: &'m mut Option<Scratch<'c>>,
) -> Result<Indices<'m>> {
    if matches!(indices.dtype(), DType::Int32 | DType::Int64) {
        return indices_of(indices);
    }
    let values = memory.insert(call.scratch::<i64>(indices.len())?).elements_mut();
    let mut lookout = call.lookout();
    for (to, value) in values.iter_mut().zip(indices.scalars()) {
        lookout.after(size_of::<i64>())?;
        *to = i64::try_from(integer(&value)).unwrap_or(i64::MAX);
    }
    Ok(Indices::I64(values))
}

pub(crate) fn integer(value: &Scalar<'_>) -> i128 {
    match value {
        Scalar::Int(value) => (*value).into(),
        Scalar::Uint(value) => (*value).into(),
        _ => 0,
    }
}

/// Error for a kernel that stopped. If an index is out of range, the error is about the first such element of the
/// indices (input 1), for an axis of the data (input 0).
#[cold]
pub(crate) fn out_of_range(why: Stopped, call: &Call<'_>, axis: &Axis, range: Range) -> Error {
    let (Stopped::OutOfRange, Ok(indices)) = (why, call.tensor(1)) else { return why.into() };
    let size = axis.size as i128;
    let allowed = if range == Range::Signed { -size..size } else { 0..size };
    let mut lookout = call.lookout();
    for (at, value) in indices.scalars().enumerate() {
        let value = integer(&value);
        if !allowed.contains(&value) {
            return bad_index([call.name(0), call.name(1)], indices, at, value, axis, range);
        }
        if let Err(why) = lookout.after(indices.dtype().size()) {
            return why.into();
        }
    }
    why.into()
}

#[cold]
fn bad_index([data, name]: [&str; 2], indices: &Tensor, at: usize, value: i128, axis: &Axis, range: Range) -> Error {
    let Axis { given, size, .. } = *axis;
    let position = position_of(at, indices.shape());
    let element = if position.is_empty() { String::new() } else { ShapeText(&position).to_string() };
    let allowed = match range {
        _ if size == 0 => "no index is allowed".to_string(),
        Range::Signed => format!("allowed -{size}..={}", size - 1),
        Range::Unsigned { .. } => format!("allowed 0..={}", size - 1),
    };
    let why = match range {
        Range::Unsigned { until } if value < 0 && until < i64::MAX => {
            format!("is negative, which is allowed from version {until} on only, ")
        }
        _ => "is out of range ".to_string(),
    };
    let entries = if size == 1 { "entry" } else { "entries" };
    let data = quote(data);
    Error::input(format!(
        "{name}{element} = {value} {why}for axis {given} of {data}, which has {size} {entries}: {allowed}"
    ))
    .parameter(name)
    .axis(given)
    .size(size)
    .value(value)
    .position(position)
}

/// The error for a batch dimension that `data` and `indices` should share.
pub(crate) fn unequal_batch(d: usize, data: &[usize], indices: &[usize]) -> Error {
    let (have, want) = (data.get(d).copied().unwrap_or(0), indices.get(d).copied().unwrap_or(0));
    Error::input(format!("batch dimension {d} is {have} in \"data\" and {want} in \"indices\": they must be equal"))
        .parameter("indices")
        .axis(d as i64)
        .size(have)
        .value(want as i128)
}

/// Checks the shapes of `data` and of indices that name an element for each of their positions. Off the axis the position
/// is that in `data`, so `indices` may not be larger there.
pub(crate) fn check_grid(data: &[usize], indices: &[usize], axis: usize) -> Result<()> {
    if data.len() != indices.len() {
        return Err(Error::input(format!(
            "\"indices\" has rank {}, \"data\" has rank {}: they must be equal",
            indices.len(),
            data.len()
        ))
        .parameter("indices"));
    }
    for (d, (&have, &want)) in data.iter().zip(indices).enumerate() {
        if d != axis && want > have {
            return Err(Error::input(format!(
                "dimension {d} of \"indices\" is {want}, and of \"data\" {have}: off the axis {axis} it may not be larger"
            ))
            .parameter("indices")
            .axis(d as i64)
            .size(have)
            .value(want as i128));
        }
    }
    Ok(())
}

/// As [`check_grid`], at load, as far as the shapes of the inputs 0 and 1 are known.
pub(crate) fn check_known_grid(facts: &Inference<'_>, axis: i64) -> Result<()> {
    let (Some(data), Some(indices)) = (facts.dims(0), facts.dims(1)) else { return Ok(()) };
    if data.len() != indices.len() {
        return Err(facts.unequal_ranks(0, 1));
    }
    let at = facts.place_of(axis, "axis", data.len())?;
    match (Dim::sizes(data), Dim::sizes(indices)) {
        (Some(data), Some(indices)) => check_grid(&data, &indices, at),
        _ => Ok(()),
    }
}

/// For each tuple along the last dimension of `indices` (`width` int64 values), writes the number of its slice of
/// `data`, in row-major order, to `rows`. The first `batch` dimensions of both are equal and advance together.
pub(crate) fn tuple_positions(
    call: &Call<'_>,
    data: &[usize],
    batch: usize,
    width: usize,
    indices: &Tensor,
    rows: &mut [i64],
) -> Result<()> {
    let values = indices.as_slice::<i64>()?;
    let sizes = data.get(batch..batch + width).unwrap_or(&[]);
    let per_batch = rows.len().checked_div(volume(1, data.iter().take(batch))).unwrap_or(0).max(1);
    let mut lookout = call.lookout();
    for (t, (tuple, to)) in values.chunks_exact(width.max(1)).zip(rows).enumerate() {
        lookout.after(size_of_val(tuple) + size_of_val(to))?;
        let mut row = t / per_batch;
        for (k, (&value, &size)) in tuple.iter().zip(sizes).enumerate() {
            let Some(entry) = Range::Signed.bounds(size).entry(value) else {
                let axis = Axis { given: (batch + k) as i64, at: batch + k, size };
                return Err(bad_index(["data", "indices"], indices, t * width + k, value.into(), &axis, Range::Signed));
            };
            // It overflows only if there are no elements, beside a dimension of 0.
            row = row.wrapping_mul(size).wrapping_add(entry);
        }
        *to = row as i64;
    }
    Ok(())
}
