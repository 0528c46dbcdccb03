//! Reads values from messages: tensors, sequences, optionals and maps.

use super::proto::{MapProto, OptionalProto, SequenceProto, TensorProto, optional_proto, sequence_proto};
use super::scan::{self, Message as Kind};
use super::{sparse, tensor};
use crate::dtype::DType;
use crate::error::{Error, Result, quote};
use crate::files::ModelFiles;
use crate::value::{Map, Optional, Sequence, Value, ValueType};
use bytes::Bytes;
use prost::Message;

impl Value {
    /// The value of type `value_type` in an encoded message, such as the content of a test case's `input_0.pb`. The
    /// type selects the message: `TensorProto`, `SequenceProto`, `OptionalProto` or `MapProto`.
    ///
    /// # Errors
    /// If the bytes are not a valid message, its data is external, or the value is of another type.
    pub fn from_proto_bytes(bytes: impl Into<Bytes>, value_type: &ValueType) -> Result<Value> {
        let (bytes, files) = (bytes.into(), ModelFiles::none());
        let value = match value_type {
            ValueType::Tensor(_) => tensor::read(decode(bytes, Kind::Tensor, &files)?, &files).map(Value::Tensor)?,
            ValueType::Sequence(element) => {
                sequence(decode(bytes, Kind::Sequence, &files)?, Some(element), &files)?.into()
            }
            ValueType::Optional(element) => {
                optional(decode(bytes, Kind::Optional, &files)?, Some(element), &files)?.into()
            }
            ValueType::Map(_, element) => map(decode(bytes, Kind::Map, &files)?, Some(element), &files)?.into(),
        };
        if value.is_of(value_type) {
            return Ok(value);
        }
        Err(Error::input(format!("the value is of type {}, not {value_type}", value.type_text())))
    }
}

fn decode<M: Message + Default>(bytes: Bytes, kind: Kind, files: &ModelFiles) -> Result<M> {
    scan::check_data(kind, &bytes, files)?;
    M::decode(bytes).map_err(|e| Error::model(format!("not a valid {}: {e}", kind.label())))
}

/// The type inside of a type.
fn inside(value_type: Option<&ValueType>) -> Option<&ValueType> {
    match value_type? {
        ValueType::Tensor(_) => None,
        ValueType::Sequence(element) | ValueType::Optional(element) | ValueType::Map(_, element) => Some(element),
    }
}

/// Reads a sequence; `want` is its element type if the message doesn't say it. Messages nest no deeper than the scan
/// allows.
fn sequence(proto: SequenceProto, want: Option<&ValueType>, files: &ModelFiles) -> Result<Sequence> {
    use sequence_proto::DataType;
    let SequenceProto { name, elem_type, tensor_values, sparse_tensor_values, sequence_values, map_values, .. } = proto;
    let lists = [tensor_values.len(), sparse_tensor_values.len(), sequence_values.len(), map_values.len()];
    let given = lists.iter().sum::<usize>() + proto.optional_values.len();
    let name = name.unwrap_or_default();
    let within = |error: Error| error.within(&format!("sequence {}", quote(&name))).about(&name);
    let code = elem_type.unwrap_or(0);
    let kind = DataType::try_from(code).map_err(|_| within(Error::model(format!("elem_type {code} is not known"))))?;
    let values: Result<Vec<Value>> = match kind {
        DataType::Undefined => Ok(Vec::new()),
        DataType::Tensor => tensor_values.into_iter().map(|t| Ok(tensor::read(t, files)?.into())).collect(),
        DataType::SparseTensor => sparse_tensor_values.into_iter().map(|t| sparse::read(t, files)).collect(),
        DataType::Sequence => {
            sequence_values.into_iter().map(|s| Ok(sequence(s, inside(want), files)?.into())).collect()
        }
        DataType::Map => map_values.into_iter().map(|m| Ok(map(m, inside(want), files)?.into())).collect(),
        DataType::Optional => {
            proto.optional_values.into_iter().map(|o| Ok(optional(o, inside(want), files)?.into())).collect()
        }
    };
    let values = values.map_err(within)?;
    if given > values.len() {
        return Err(within(Error::model(format!("elem_type is {code}, and there are values of another kind"))));
    }
    let said = want.filter(|want| values.iter().all(|value| value.is_of(want)));
    match values.iter().find_map(Value::value_type).or(said.cloned()) {
        Some(element) => Sequence::new(element, values).map_err(within),
        None if values.is_empty() => Ok(Sequence::open()),
        None => Err(within(Error::unsupported("its element type is missing"))),
    }
}

fn optional(proto: OptionalProto, want: Option<&ValueType>, files: &ModelFiles) -> Result<Optional> {
    use optional_proto::DataType;
    let name = proto.name.clone().unwrap_or_default();
    let within = |error: Error| error.within(&format!("optional {}", quote(&name))).about(&name);
    let code = proto.elem_type.unwrap_or(0);
    let kind = DataType::try_from(code).map_err(|_| within(Error::model(format!("elem_type {code} is not known"))))?;
    let fields = [proto.tensor_value.is_some(), proto.sparse_tensor_value.is_some(), proto.sequence_value.is_some()];
    let given = fields.contains(&true) || proto.map_value.is_some() || proto.optional_value.is_some();
    let value: Option<Result<Value>> = match kind {
        DataType::Undefined => None,
        DataType::Tensor => proto.tensor_value.map(|t| Ok(tensor::read(*t, files)?.into())),
        DataType::SparseTensor => proto.sparse_tensor_value.map(|t| sparse::read(t, files)),
        DataType::Sequence => proto.sequence_value.map(|s| Ok(sequence(s, inside(want), files)?.into())),
        DataType::Map => proto.map_value.map(|m| Ok(map(m, inside(want), files)?.into())),
        DataType::Optional => proto.optional_value.map(|o| Ok(optional(*o, inside(want), files)?.into())),
    };
    Ok(match value.transpose().map_err(within)? {
        Some(value) => Optional::some(value),
        None if given => {
            return Err(within(Error::model(format!("elem_type is {code}, and there is a value of another kind"))));
        }
        None => want.map_or(Optional::open(), |element| Optional::none(element.clone())),
    })
}

fn map(proto: MapProto, want: Option<&ValueType>, files: &ModelFiles) -> Result<Map> {
    let name = proto.name.clone().unwrap_or_default();
    let within = |error: Error| error.within(&format!("map {}", quote(&name))).about(&name);
    let read = || {
        let dtype = tensor::dtype_of("key_type", proto.key_type.unwrap_or(0))?;
        // As the typed field of a tensor.
        let keys = TensorProto { data_type: Some(dtype.code()), ..TensorProto::default() };
        let keys = match dtype {
            DType::String => {
                TensorProto { dims: vec![proto.string_keys.len() as i64], string_data: proto.string_keys, ..keys }
            }
            DType::Int64 => TensorProto { dims: vec![proto.keys.len() as i64], int64_data: proto.keys, ..keys },
            // Keys beyond i64 are written with the same bits.
            DType::Uint32 | DType::Uint64 => {
                let numbers: Vec<u64> = proto.keys.into_iter().map(i64::cast_unsigned).collect();
                TensorProto { dims: vec![numbers.len() as i64], uint64_data: numbers, ..keys }
            }
            _ => {
                let number = |key: i64| {
                    i32::try_from(key).map_err(|_| Error::model(format!("its key {key} is not a valid {dtype}")))
                };
                let numbers = proto.keys.into_iter().map(number).collect::<Result<Vec<i32>>>()?;
                TensorProto { dims: vec![numbers.len() as i64], int32_data: numbers, ..keys }
            }
        };
        let values = proto.values.ok_or_else(|| Error::model("it has no values"))?;
        Map::new(tensor::read(keys, files)?, sequence(values, want, files)?)
            .map_err(|error| error.with_kind(crate::error::Kind::Model))
    };
    read().map_err(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    fn read_again(value: &Value) -> Result<Value> {
        Value::from_proto_bytes(value.to_proto_bytes("value"), &value.value_type().unwrap())
    }

    #[test]
    fn what_is_empty_keeps_its_type() {
        let float = ValueType::Tensor(DType::Float);
        let nothing = Value::from(Sequence::new(float.clone(), []).unwrap());
        let map = Value::from(Map::new(Vec::<i64>::new().into(), Sequence::new(float.clone(), []).unwrap()).unwrap());
        let nothings = Sequence::new(float.clone().sequence(), [nothing.clone(), nothing.clone()]).unwrap();
        let maps = Sequence::new(map.value_type().unwrap(), [map.clone()]).unwrap();
        let some = Value::from(Optional::some(nothing.clone()));
        let none = Value::from(Optional::none(float.clone().sequence()));
        for value in [&nothing, &map, &nothings.into(), &maps.into(), &some, &none] {
            assert_eq!(&read_again(value).unwrap(), value);
        }
        // A sequence is not a tensor, even if it is empty.
        let error = Value::from_proto_bytes(some.to_proto_bytes(""), &float.optional()).unwrap_err();
        assert_eq!(error.to_string(), "the value is of type empty optional, not optional(float32)");
    }

    #[test]
    fn keys_of_maps() {
        let values = Sequence::new(DType::Int8.into(), [vec![1i8].into(), vec![2i8].into()]).unwrap();
        let keys: [Tensor; 4] =
            [vec![0u64, u64::MAX].into(), vec![0u32, u32::MAX].into(), vec![-1i8, 2].into(), vec![-1i64, 2].into()];
        for keys in keys {
            let map = Value::from(Map::new(keys, values.clone()).unwrap());
            assert_eq!(read_again(&map).unwrap(), map);
        }
        let map = Value::from(Map::new(vec![0u32, 1].into(), values).unwrap());
        let mut proto = MapProto::decode(map.to_proto_bytes("m").as_slice()).unwrap();
        proto.keys = vec![0, -1];
        let map_type = ValueType::Map(DType::Uint32, Box::new(DType::Int8.into()));
        assert!(Value::from_proto_bytes(proto.encode_to_vec(), &map_type).is_err());
        proto.key_type = Some(DType::Float8e4m3fn.code());
        proto.keys = vec![0, 1];
        let map_type = ValueType::Map(DType::Float8e4m3fn, Box::new(DType::Int8.into()));
        assert!(Value::from_proto_bytes(proto.encode_to_vec(), &map_type).is_err());
    }
}
