//! Types and shapes from their messages.

use super::proto::{
    TypeProto, ValueInfoProto,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};
use super::tensor::{dtype_of, size_of_dim};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::ValueInfo;
use crate::limits::{Budget, Limits};
use crate::value::{Dim, ValueType};

/// The declared type, and the shape of a tensor. A sparse tensor is made dense, so its type is that of a tensor.
///
/// Messages nest no deeper than the scan allows.
pub(super) fn read(
    proto: &TypeProto,
    limits: &Limits,
    budget: &Budget,
) -> Result<(Option<ValueType>, Option<Vec<Dim>>)> {
    use type_proto::Value;
    let inner = |proto: Option<&TypeProto>| -> Result<_> {
        match proto {
            Some(proto) => Ok(read(proto, limits, budget)?.0),
            None => Ok(None),
        }
    };
    Ok(match &proto.value {
        None => (None, None),
        Some(Value::TensorType(tensor)) => {
            let dims = tensor.shape.as_ref().map(|shape| dims(&shape.dim, limits, budget));
            (Some(element(tensor.elem_type)?), dims.transpose()?)
        }
        Some(Value::SparseTensorType(tensor)) => {
            let dims = tensor.shape.as_ref().map(|shape| dims(&shape.dim, limits, budget));
            (Some(element(tensor.elem_type)?), dims.transpose()?)
        }
        Some(Value::SequenceType(sequence)) => (inner(sequence.elem_type.as_deref())?.map(ValueType::sequence), None),
        Some(Value::OptionalType(optional)) => (inner(optional.elem_type.as_deref())?.map(ValueType::optional), None),
        Some(Value::MapType(map)) => {
            let key = dtype_of("key_type", map.key_type.unwrap_or(0))?;
            (inner(map.value_type.as_deref())?.map(|value| ValueType::Map(key, Box::new(value))), None)
        }
        Some(Value::OpaqueType(_)) => return Err(Error::unsupported("opaque types are not supported")),
    })
}

fn element(code: Option<i32>) -> Result<ValueType> {
    dtype_of("elem_type", code.unwrap_or(0)).map(ValueType::Tensor)
}

fn dims(dims: &[Dimension], limits: &Limits, budget: &Budget) -> Result<Vec<Dim>> {
    limits.check_rank("a shape has", dims.len())?;
    // The model keeps the declared and the inferred dimensions, and a table of the symbols.
    budget.take(4 * size_of_val(dims) as u64)?;
    dims.iter().enumerate().map(|(axis, proto)| dim(axis, proto, budget)).collect()
}

fn dim(axis: usize, dim: &Dimension, budget: &Budget) -> Result<Dim> {
    Ok(match &dim.value {
        None => Dim::Unknown,
        // Writers mean an unknown size by these, and give them to sizes that differ.
        Some(dimension::Value::DimParam(name)) if matches!(name.as_str(), "" | "?" | "None") => Dim::Unknown,
        Some(dimension::Value::DimParam(name)) => {
            budget.take(256 + 4 * name.len() as u64)?;
            Dim::Symbol(name.clone())
        }
        // Many writers mean an unknown size by a negative number; see `has_negative`.
        Some(dimension::Value::DimValue(..0)) => Dim::Unknown,
        Some(dimension::Value::DimValue(size)) => Dim::Fixed(size_of_dim(axis, *size)?),
    })
}

/// Whether a declared shape has a negative dimension, which is invalid.
pub(super) fn has_negative(info: &ValueInfoProto) -> bool {
    let Some(type_proto::Value::TensorType(tensor)) = info.r#type.as_ref().and_then(|proto| proto.value.as_ref())
    else {
        return false;
    };
    let mut dims = tensor.shape.iter().flat_map(|shape| &shape.dim);
    dims.any(|dim| matches!(dim.value, Some(dimension::Value::DimValue(..0))))
}

/// The declared element type, if there is one.
pub(super) fn declared(info: &ValueInfoProto) -> Option<ValueType> {
    match info.r#type.as_ref()?.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => DType::from_code(tensor.elem_type?).map(ValueType::Tensor),
        _ => None,
    }
}

/// The declared shape of a tensor, if there is one.
pub(super) fn declared_dims(info: &ValueInfoProto, limits: &Limits, budget: &Budget) -> Result<Option<Vec<Dim>>> {
    match info.r#type.as_ref().and_then(|proto| proto.value.as_ref()) {
        Some(type_proto::Value::TensorType(tensor)) => {
            tensor.shape.as_ref().map(|shape| dims(&shape.dim, limits, budget)).transpose()
        }
        _ => Ok(None),
    }
}

/// The declaration of an input or output of the graph.
pub(super) fn value_info(proto: &ValueInfoProto, limits: &Limits, budget: &Budget) -> (ValueInfo, Result<()>) {
    let name = proto.name.clone().unwrap_or_default();
    let mut info = ValueInfo { name, value_type: None, shape: None };
    let taken = budget.take(512 + 4 * info.name.len() as u64);
    let read = taken.and_then(|()| proto.r#type.as_ref().map(|proto| read(proto, limits, budget)).transpose());
    let read = read.map(|read| (info.value_type, info.shape) = read.unwrap_or_default());
    (info, read)
}
