//! Makes sparse tensors dense.

use super::proto::SparseTensorProto;
use super::tensor;
use crate::dtype::{DType, byte_count};
use crate::error::{Error, Kind, Result, quote};
use crate::files::ModelFiles;
use crate::tensor::Tensor;
use crate::value::Value;
use kernels::position_of;

/// The dense tensor that a message stands for: its values at their places, zeros elsewhere.
pub(super) fn read(proto: SparseTensorProto, files: &ModelFiles) -> Result<Value> {
    let name = proto.values.as_ref().and_then(|values| values.name.clone()).unwrap_or_default();
    let missing = |what: &str| Error::model(format!("it has no {what}"));
    let (values, indices) =
        (proto.values.ok_or_else(|| missing("values")), proto.indices.ok_or_else(|| missing("indices")));
    let read = |(values, indices), dims: &[i64]| {
        dense(&tensor::read(values, files)?, &tensor::read(indices, files)?, dims, files)
    };
    let both = values.and_then(|values| Ok((*values, *indices?)));
    let within = |error: Error| error.within(&format!("sparse tensor {}", quote(&name))).about(&name);
    both.and_then(|both| read(both, &proto.dims)).map(Value::Tensor).map_err(within)
}

fn dense(values: &Tensor, indices: &Tensor, dims: &[i64], files: &ModelFiles) -> Result<Tensor> {
    files.limits.check_rank("a shape has", dims.len())?;
    let (dtype, shape) = (values.dtype(), tensor::shape(dims)?);
    let count = values.len();
    if dtype == DType::String {
        return Err(Error::unsupported("sparse tensors of strings are not supported"));
    }
    if values.rank() != 1 || indices.dtype() != DType::Int64 {
        let (rank, indices) = (values.rank(), indices.dtype());
        let text = format!("its values have rank {rank} and its indices type {indices}: 1 and int64 are needed");
        return Err(Error::model(text));
    }
    // For each value, its flat index or its coordinates.
    let width = match indices.shape() {
        [n] if *n == count => None,
        [n, width] if *n == count && *width == shape.len() => Some(*width),
        other => {
            let rank = shape.len();
            return Err(Error::model(format!(
                "its indices have shape {other:?}: [{count}] or [{count}, {rank}] is needed for {count} values"
            )));
        }
    };
    let len = byte_count(dtype, &shape).map_err(|error| error.with_kind(Kind::Model))?;
    files.budget.take(len as u64)?;
    let size = dtype.size();
    let (mut bytes, mut before) = (vec![0; len], None);
    let list = indices.as_slice::<i64>()?;
    for (k, value) in values.bytes().chunks_exact(size).enumerate() {
        let place = match width {
            None => list.get(k).and_then(|&index| usize::try_from(index).ok()),
            Some(width) => {
                let coordinates = list.get(k * width..(k + 1) * width).unwrap_or(&[]);
                coordinates.iter().zip(&shape).try_fold(0usize, |place, (&index, &dim)| {
                    let index = usize::try_from(index).ok().filter(|index| *index < dim)?;
                    place.checked_mul(dim)?.checked_add(index)
                })
            }
        };
        let to =
            place.and_then(|place| bytes.get_mut(place.checked_mul(size)?..place.checked_add(1)?.checked_mul(size)?));
        let Some(to) = to else {
            return Err(Error::model(format!("its index {k} is out of range for shape {shape:?}")).position(vec![k]));
        };
        if place <= before {
            let text = format!("its index {k} is not greater than the one before: indices must ascend");
            return Err(Error::model(text).position(position_of(k, &[count])));
        }
        to.copy_from_slice(value);
        before = place;
    }
    Tensor::new(dtype, &shape, bytes).map_err(|error| error.with_kind(Kind::Model))
}
