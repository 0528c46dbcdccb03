//! Values: tensors, whose elements a program reads and writes in place, and sequences and maps.

use crate::crossing::Result;
use crate::failure::Failure;
use crate::memory::Memory;
use crate::types::{self, ShapeInfo, TypeInfo};
use num_complex::Complex;
use onnxref::half::{bf16, f16};
use onnxref::{DType, Map, Optional, Sequence, Tensor, Value, ValueType};
use ort_sys::ONNXType;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value that a program holds. Bindings share it.
#[derive(Clone)]
pub(crate) struct Held(Arc<Content>);

pub(crate) enum Content {
    /// A tensor of numbers.
    Numbers { dtype: DType, shape: Vec<i64>, memory: Memory },
    /// A tensor of strings.
    Strings { shape: Vec<i64>, strings: Mutex<Vec<Vec<u8>>> },
    /// A sequence or map.
    Many(Value),
    /// An optional without a value, of the type that it would have.
    Nothing(Option<ValueType>),
}

impl Deref for Held {
    type Target = Content;
    fn deref(&self) -> &Content {
        &self.0
    }
}

impl From<Content> for Held {
    fn from(content: Content) -> Held {
        Held(Arc::new(content))
    }
}

/// A shape that a program gives.
pub(crate) fn sizes(shape: &[i64]) -> Result<Vec<usize>> {
    let size = |size: &i64| usize::try_from(*size).ok();
    let sizes: Option<Vec<usize>> = shape.iter().map(size).collect();
    sizes.ok_or_else(|| Failure::argument(format!("a tensor can't have the shape {shape:?}")))
}

/// Elements of a shape.
fn count(shape: &[usize]) -> Result<usize> {
    let count = shape.iter().try_fold(1, |count: usize, size| count.checked_mul(*size));
    count.ok_or_else(|| Failure::argument(format!("a tensor of shape {shape:?} is too large")))
}

/// Elements in a byte of the API's memory, for those that share bytes.
fn packed(dtype: DType) -> Option<usize> {
    (1..8).contains(&dtype.bits()).then(|| 8 / dtype.bits())
}

/// Bytes of the API's memory for a tensor.
pub(crate) fn byte_count(dtype: DType, shape: &[i64]) -> Result<usize> {
    let count = count(&sizes(shape)?)?;
    match packed(dtype) {
        Some(each) => Ok(count.div_ceil(each)),
        None => count
            .checked_mul(dtype.size())
            .ok_or_else(|| Failure::argument(format!("a tensor of {dtype} of shape {shape:?} is too large"))),
    }
}

impl Content {
    /// A tensor for the program to fill.
    pub(crate) fn empty(dtype: DType, shape: &[i64]) -> Result<Content> {
        let shape = shape.to_vec();
        let bytes = byte_count(dtype, &shape)?;
        if dtype != DType::String {
            return Ok(Content::Numbers { dtype, memory: Memory::zeros(bytes)?, shape });
        }
        let (count, mut strings) = (count(&sizes(&shape)?)?, Vec::new());
        let reserved = strings.try_reserve_exact(count);
        reserved.map_err(|_| Failure::other(format!("there is no memory for {count} strings")))?;
        strings.resize(count, Vec::new());
        Ok(Content::Strings { shape, strings: strings.into() })
    }

    /// What a run gave. Memory that nothing else shares becomes the program's.
    pub(crate) fn of(value: Value) -> Result<Content> {
        match value {
            Value::Tensor(tensor) => Content::of_tensor(tensor),
            Value::Optional(optional) => match optional.get() {
                Some(value) => Content::of(value.clone()),
                None => Ok(Content::Nothing(optional.element_type().cloned())),
            },
            other => Ok(Content::Many(other)),
        }
    }

    fn of_tensor(tensor: Tensor) -> Result<Content> {
        let shape = tensor.shape().iter().map(|size| i64::try_from(*size).unwrap_or(i64::MAX)).collect();
        if let Ok(strings) = tensor.strings() {
            let strings: Vec<Vec<u8>> = strings.map(|string| string.as_bytes().to_vec()).collect();
            return Ok(Content::Strings { shape, strings: strings.into() });
        }
        let dtype = tensor.dtype();
        types::check(dtype)?;
        Ok(Content::Numbers { dtype, shape, memory: owned(tensor)? })
    }

    /// The value to feed: a copy, which the program can't change while a run reads it.
    pub(crate) fn value(&self) -> Result<Value> {
        match self {
            Content::Numbers { dtype, shape, memory } => {
                let shape = sizes(shape)?;
                let bytes = match packed(*dtype) {
                    Some(each) => unpacked(*dtype, &memory.copied(), each, count(&shape)?),
                    None => memory.copied(),
                };
                Ok(Tensor::new(*dtype, &shape, bytes)?.into())
            }
            Content::Strings { shape, .. } => {
                let strings = self.strings()?;
                let texts: std::result::Result<Vec<&str>, _> =
                    strings.iter().map(|text| std::str::from_utf8(text)).collect();
                let texts = texts.map_err(|error| Failure::argument(format!("a string is not UTF-8: {error}")))?;
                Ok(Tensor::from_strings(&sizes(shape)?, texts)?.into())
            }
            Content::Many(value) => Ok(value.clone()),
            Content::Nothing(Some(element)) => Ok(Optional::none(element.clone()).into()),
            Content::Nothing(None) => Err(Failure::argument("an optional without a value, of unknown type")),
        }
    }

    /// Writes a value, which `what` names, over this tensor, which must have its type and shape.
    pub(crate) fn overwrite(&self, what: &str, value: Value) -> Result<()> {
        let given = Content::of(value)?;
        let fits = match (self, &given) {
            (Content::Numbers { dtype, shape, .. }, Content::Numbers { dtype: other, shape: size, .. }) => {
                dtype == other && shape == size
            }
            (Content::Strings { shape, .. }, Content::Strings { shape: size, .. }) => shape == size,
            _ => false,
        };
        match (self, &given) {
            (Content::Numbers { memory, .. }, Content::Numbers { memory: other, .. }) if fits => {
                memory.write(&other.copied())
            }
            (Content::Strings { .. }, Content::Strings { .. }) if fits => *self.strings()? = given.strings()?.clone(),
            _ => {
                let (given, held) = (given.text(), self.text());
                return Err(Failure::argument(format!("{what} is {given}, but the value for it is {held}")));
            }
        }
        Ok(())
    }

    /// Its type and shape, for messages.
    pub(crate) fn text(&self) -> String {
        match self {
            Content::Numbers { dtype, shape, .. } => format!("a tensor of {dtype} of shape {shape:?}"),
            Content::Strings { shape, .. } => format!("a tensor of string of shape {shape:?}"),
            Content::Many(value) => value.value_type().map_or("a value".to_string(), |known| format!("a {known}")),
            Content::Nothing(_) => "an optional without a value".to_string(),
        }
    }

    pub(crate) fn strings(&self) -> Result<MutexGuard<'_, Vec<Vec<u8>>>> {
        match self {
            Content::Strings { strings, .. } => Ok(strings.lock().unwrap_or_else(PoisonError::into_inner)),
            other => Err(Failure::argument(format!("{} has no strings", other.text()))),
        }
    }

    /// The elements of a tensor of numbers.
    pub(crate) fn memory(&self) -> Result<&Memory> {
        match self {
            Content::Numbers { memory, .. } => Ok(memory),
            other => Err(Failure::argument(format!("{} has no elements in memory", other.text()))),
        }
    }

    pub(crate) fn shape_info(&self) -> Result<ShapeInfo> {
        match self {
            Content::Numbers { dtype, shape, .. } => Ok(ShapeInfo::of(*dtype, shape)),
            Content::Strings { shape, .. } => Ok(ShapeInfo::of(DType::String, shape)),
            other => Err(Failure::argument(format!("{} is not a tensor", other.text()))),
        }
    }

    pub(crate) fn type_info(&self) -> TypeInfo {
        match (self, self.shape_info()) {
            (_, Ok(shape)) => TypeInfo::Tensor(shape),
            (Content::Nothing(element), _) => TypeInfo::nothing(element.as_ref()),
            (Content::Many(value), _) => {
                value.value_type().map_or_else(TypeInfo::undefined, |known| TypeInfo::of(&known, None))
            }
            _ => TypeInfo::undefined(),
        }
    }

    pub(crate) fn kind(&self) -> ONNXType {
        self.type_info().kind()
    }

    /// The values of a sequence; keys and values of a map.
    pub(crate) fn parts(&self) -> Result<Vec<Value>> {
        match self {
            Content::Many(Value::Sequence(sequence)) => Ok(sequence.values().to_vec()),
            Content::Many(Value::Map(map)) => Ok(vec![map.keys().clone().into(), joined(map)?.into()]),
            other => Err(Failure::argument(format!("{} is not a sequence or a map", other.text()))),
        }
    }
}

/// A sequence of values.
pub(crate) fn sequence(values: Vec<Value>) -> Result<Value> {
    let element = values.first().and_then(Value::value_type);
    let element = element.ok_or_else(|| Failure::argument("a sequence is made of at least one value"))?;
    Ok(Sequence::new(element, values)?.into())
}

/// A map from a tensor of keys and one of values.
pub(crate) fn map(keys: Value, values: Value) -> Result<Value> {
    let values = values.into_tensor()?;
    let (dtype, element) = (values.dtype(), ValueType::Tensor(values.dtype()));
    let scalars: std::result::Result<Vec<Tensor>, _> = match values.strings() {
        Ok(strings) => strings.map(|string| Tensor::from_strings(&[], [string])).collect(),
        Err(_) => values.bytes().chunks(dtype.size()).map(|bytes| Tensor::new(dtype, &[], bytes.to_vec())).collect(),
    };
    let values = Sequence::new(element, scalars?.into_iter().map(Value::from))?;
    Ok(Map::new(keys.into_tensor()?, values)?.into())
}

/// The values of a map as one tensor.
fn joined(map: &Map) -> Result<Tensor> {
    let tensors: std::result::Result<Vec<&Tensor>, _> = map.values().iter().map(Value::tensor).collect();
    let Some(tensors) = tensors.ok().filter(|tensors| tensors.iter().all(|tensor| tensor.len() == 1)) else {
        return Err(Failure::missing("the values of the map are not scalars: the API has no form for them"));
    };
    let shape = [tensors.len()];
    let dtype = tensors.first().map_or(DType::Float, |first| first.dtype());
    if dtype == DType::String {
        let strings = tensors.iter().filter_map(|tensor| tensor.strings().ok()).flatten();
        return Ok(Tensor::from_strings(&shape, strings.collect::<Vec<_>>())?);
    }
    let bytes: Vec<u8> = tensors.iter().flat_map(|tensor| tensor.bytes().iter().copied()).collect();
    Ok(Tensor::new(dtype, &shape, bytes)?)
}

/// A feed of the type that an input declares: an optional input takes a value as it is.
pub(crate) fn declared(value: Value, declared: Option<&ValueType>) -> Value {
    match (declared, value) {
        (Some(ValueType::Optional(_)), value @ Value::Optional(_)) => value,
        (Some(ValueType::Optional(_)), value) => Optional::some(value).into(),
        (_, value) => value,
    }
}

/// The elements of a tensor: without a copy if nothing else shares them.
fn owned(tensor: Tensor) -> Result<Memory> {
    macro_rules! elements {
        ($($dtype:ident: $type:ty),*) => {
            match tensor.dtype() {
                $(DType::$dtype => Memory::own(tensor.into_elements::<$type>()?),)*
                other => {
                    let bytes = packed(other).map_or_else(|| tensor.bytes().to_vec(), |each| together(other, tensor.bytes(), each));
                    let memory = Memory::zeros(bytes.len())?;
                    memory.write(&bytes);
                    memory
                }
            }
        };
    }
    Ok(elements!(
        Float: f32, Double: f64, Float16: f16, Bfloat16: bf16, Bool: bool, Int8: i8, Int16: i16, Int32: i32, Int64: i64,
        Uint8: u8, Uint16: u16, Uint32: u32, Uint64: u64, Complex64: Complex<f32>, Complex128: Complex<f64>
    ))
}

/// Elements that share bytes, each in a byte of its own; the first is in the lowest bits.
fn unpacked(dtype: DType, bytes: &[u8], each: usize, count: usize) -> Vec<u8> {
    let spare = 8 - dtype.bits();
    let element = |byte: u8, k: usize| {
        let top = byte >> (k * dtype.bits()) << spare;
        if matches!(dtype, DType::Int4 | DType::Int2) {
            (top.cast_signed() >> spare).cast_unsigned()
        } else {
            top >> spare
        }
    };
    bytes.iter().flat_map(|byte| (0..each).map(move |k| element(*byte, k))).take(count).collect()
}

/// The opposite of [`unpacked`].
fn together(dtype: DType, elements: &[u8], each: usize) -> Vec<u8> {
    let spare = 8 - dtype.bits();
    let join =
        |chunk: &[u8]| chunk.iter().rev().fold(0u8, |byte, element| byte << dtype.bits() | (element << spare >> spare));
    elements.chunks(each).map(join).collect()
}
