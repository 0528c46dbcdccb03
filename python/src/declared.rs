//! What documents declare, from and to Python: types, sizes and attributes.

use crate::document::Document;
use crate::{arrays, errors};
use onnxref::bytes::Bytes;
use onnxref::document::{AttributeValue, Initializer, Size, Type, ValueInfo};
use onnxref::{DType, ValueType};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyInt, PyString};

/// A size or a symbol.
#[derive(IntoPyObject)]
pub(crate) enum Dim {
    Fixed(i64),
    Symbol(String),
}

/// The name, type and shape of a value.
pub(crate) type Info = (String, Option<String>, Option<Vec<Option<Dim>>>);

/// A list of names.
pub(crate) fn names(what: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    object.extract().map_err(|_| PyTypeError::new_err(format!("{what}={}: expected a list of names", shown(object))))
}

/// A size: a number, the name of a symbol, or `None` for any size.
pub(crate) fn size_of(object: &Bound<'_, PyAny>) -> PyResult<Size> {
    let py = object.py();
    if object.is_none() {
        return Ok(Size::Unknown);
    }
    if let Ok(name) = object.extract::<String>() {
        return Ok(Size::Symbol(name));
    }
    match object.extract::<i64>() {
        Ok(number) => {
            let size = Size::Fixed(number);
            size.check().map_err(|error| errors::raised(py, &error))?;
            Ok(size)
        }
        Err(_) if object.is_instance_of::<PyInt>() => {
            Err(errors::input(py, format!("size {}: a size is from 0 to {}", shown(object), i64::MAX)))
        }
        Err(_) => {
            let text = format!("size {}: expected a number, the name of a symbol, or None", shown(object));
            Err(PyTypeError::new_err(text))
        }
    }
}

/// An object as Python shows it.
fn shown(object: &Bound<'_, PyAny>) -> String {
    object.repr().map_or_else(|_| "?".to_string(), |text| text.to_string_lossy().into_owned())
}

/// A value, its type and its shape.
pub(crate) fn declared(
    py: Python<'_>,
    name: String,
    dtype: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
) -> PyResult<ValueInfo> {
    let value_type = dtype.map(type_of).transpose()?;
    let dims = match shape {
        // The letters of a text are not meant.
        Some(shape) if shape.is_instance_of::<PyString>() || shape.try_iter().is_err() => {
            let text = format!("shape={}: expected a list of numbers, names of symbols and None", shown(shape));
            return Err(PyTypeError::new_err(text));
        }
        Some(shape) => Some(shape.try_iter()?.map(|size| size_of(&size?)).collect::<PyResult<Vec<Size>>>()?),
        None => None,
    };
    match value_type {
        Some(value_type) if dims.is_none() || value_type.dtype().is_some() => {
            Ok(ValueInfo::new(name, &value_type, dims.as_deref()))
        }
        None if dims.is_none() => Ok(ValueInfo::untyped(name)),
        _ => Err(errors::input(py, format!("{}: only a tensor with a dtype has a shape", onnxref::quote(&name)))),
    }
}

/// A type, by the name that NumPy or ONNX has for it, by one of NumPy's, or as `inputs` lists it.
fn type_of(dtype: &Bound<'_, PyAny>) -> PyResult<ValueType> {
    let py = dtype.py();
    let Ok(text) = dtype.extract::<String>() else {
        let code = py.import(intern!(py, "onnxref._arrays"))?.getattr(intern!(py, "code_of"))?.call1((dtype,))?;
        let known = code.extract::<Option<i32>>()?.and_then(DType::from_code);
        let wrong = || PyTypeError::new_err(format!("dtype={}: not an element type, such as float32", shown(dtype)));
        return known.map(ValueType::from).ok_or_else(wrong);
    };
    let own = match text.as_str() {
        "float32" => "float",
        "float64" => "double",
        other => other,
    };
    let known = DType::from_name(own).map(ValueType::from).or_else(|| parsed(own, MOST_NESTED));
    known.ok_or_else(|| errors::input(py, format!("dtype={text:?}: not an element type, such as float32")))
}

/// How deep types nest that are read from a text.
const MOST_NESTED: usize = 16;

/// A type as [`type_text`] writes it.
fn parsed(text: &str, nested: usize) -> Option<ValueType> {
    let (kind, inner) = text.strip_suffix(')')?.split_once('(')?;
    let element = |text: &str| parsed(text.trim(), nested.checked_sub(1)?);
    match kind {
        "tensor" => DType::from_name(inner).map(ValueType::from),
        "seq" => Some(ValueType::Sequence(Box::new(element(inner)?))),
        "optional" => Some(ValueType::Optional(Box::new(element(inner)?))),
        "map" => {
            let (key, value) = inner.split_once(',')?;
            Some(ValueType::Map(DType::from_name(key)?, Box::new(element(value)?)))
        }
        _ => None,
    }
}

pub(crate) fn listed(info: &ValueInfo) -> Info {
    let dim = |size: &Size| match size {
        Size::Fixed(size) => Some(Dim::Fixed(*size)),
        Size::Symbol(name) => Some(Dim::Symbol(name.clone())),
        Size::Unknown => None,
    };
    let dims = info.dims().map(|dims| dims.iter().map(|one| dim(&one.size)).collect());
    (info.name.clone(), info.value_type.as_ref().and_then(|of| type_text(of)), dims)
}

/// A type as onnxruntime writes it. Types nest no deeper than messages may.
fn type_text(of: &Type) -> Option<String> {
    let name = |code: i32| DType::from_code(code).map(DType::name);
    if let Some(tensor) = &of.tensor {
        return Some(format!("tensor({})", name(tensor.elem_type)?));
    }
    if let Some(tensor) = &of.sparse_tensor {
        return Some(format!("sparse_tensor({})", name(tensor.elem_type)?));
    }
    if let Some(map) = &of.map {
        return Some(format!("map({},{})", name(map.key_type)?, type_text(map.value_type.as_ref()?)?));
    }
    let kinds = [("seq", &of.sequence), ("optional", &of.optional)];
    let (kind, element) = kinds.into_iter().find_map(|(kind, element)| Some((kind, element.as_ref()?)))?;
    Some(format!("{kind}({})", type_text(element.elem_type.as_ref()?)?))
}

/// The value of an attribute: a number, a text, a list of these, an array, or the graph of another document.
pub(crate) fn attribute(name: &str, value: &Bound<'_, PyAny>) -> PyResult<AttributeValue> {
    if let Ok(document) = value.cast::<Document>() {
        return Ok(AttributeValue::Graph(Box::new(document.get().read()?.graph.clone())));
    }
    #[derive(FromPyObject)]
    enum Plain {
        Int(i64),
        Float(f64),
        Text(String),
        Bytes(PyBackedBytes),
        Ints(Vec<i64>),
        Floats(Vec<f64>),
        Texts(Vec<String>),
    }
    // An integer beyond int64 would be taken for a float.
    let rounded = |number: &Bound<'_, PyAny>, float: f64| {
        let kind = if number.is_instance_of::<PyInt>() && number.extract::<i64>().is_err() {
            "int64"
        } else if float.is_finite() && !(float as f32).is_finite() {
            "float32"
        } else {
            return Ok(float as f32);
        };
        Err(errors::input(value.py(), format!("attribute {name}: {number} is out of bounds for {kind}")))
    };
    if value.hasattr("__array_interface__")? {
        return Ok(AttributeValue::Tensor(Box::new(Initializer::new("", &arrays::tensor(value, None)?).into())));
    }
    match value.extract::<Plain>() {
        Ok(Plain::Ints(values)) if values.is_empty() => {
            Err(PyTypeError::new_err(format!("attribute {name}: an empty list has no type: give an array")))
        }
        Ok(Plain::Int(value)) => Ok(value.into()),
        Ok(Plain::Float(float)) => Ok(rounded(value, float)?.into()),
        Ok(Plain::Text(value)) => Ok(value.into()),
        Ok(Plain::Bytes(value)) => Ok(AttributeValue::String(Bytes::from_owner(value))),
        Ok(Plain::Ints(values)) => Ok(values.into()),
        Ok(Plain::Floats(floats)) => {
            let numbers = value.try_iter()?.zip(floats);
            Ok(numbers.map(|(number, float)| rounded(&number?, float)).collect::<PyResult<Vec<f32>>>()?.into())
        }
        Ok(Plain::Texts(values)) => Ok(AttributeValue::Strings(values.into_iter().map(Into::into).collect())),
        Err(_) => Err(PyTypeError::new_err(format!(
            "attribute {name}: a number, a text, a list of these, an array or a Document is needed"
        ))),
    }
}
