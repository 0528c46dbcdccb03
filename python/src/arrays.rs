//! Values of the library from and to those of Python.
//!
//! A tensor is a NumPy array. One that is fed is borrowed while the run lasts, unless it is small or its elements are not in
//! row-major order: then it is copied. An output hands over its memory, unless it shares that with the model or a feed.

use crate::errors;
use onnxref::bytes::Bytes;
use onnxref::{DType, Map, Optional, Scalar, Sequence, Tensor, Value, ValueType};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

/// Maximum bytes of a feed that is copied rather than borrowed: that takes less time. Indices that are checked and then used
/// are mostly small too, and nobody can change a copy in between.
const SMALL: usize = 16 << 10;

/// What is needed of Python's modules, looked up once.
struct Numpy {
    array_type: Py<PyType>,
    asarray: Py<PyAny>,
    /// The number of an element type in `TensorProto.DataType`, by the type of an array.
    codes: Py<PyDict>,
    /// What is fed, as an array of elements in row-major order with the number of their type, or as strings with a shape.
    feed: Py<PyAny>,
    /// An array of strings.
    strings: Py<PyAny>,
    /// An array of integers as one of a type that NumPy doesn't have.
    special: Py<PyAny>,
}

impl Numpy {
    fn get(py: Python<'_>) -> PyResult<&Numpy> {
        static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();
        NUMPY.get_or_try_init(py, || {
            let (numpy, own) = (py.import("numpy")?, py.import("onnxref._arrays")?);
            Ok(Numpy {
                array_type: numpy.getattr("ndarray")?.cast_into()?.unbind(),
                asarray: numpy.getattr("asarray")?.unbind(),
                codes: own.getattr("CODES")?.cast_into()?.unbind(),
                feed: own.getattr("feed")?.unbind(),
                strings: own.getattr("strings")?.unbind(),
                special: own.getattr("special")?.unbind(),
            })
        })
    }
}

/// A value to feed, of the type that the model declares.
pub(crate) fn value(object: &Bound<'_, PyAny>, declared: Option<&ValueType>) -> PyResult<Value> {
    match declared {
        None => Ok(tensor(object, None)?.into()),
        Some(ValueType::Tensor(dtype)) => Ok(tensor(object, Some(*dtype))?.into()),
        Some(ValueType::Optional(element)) if object.is_none() => Ok(Optional::none((**element).clone()).into()),
        Some(ValueType::Optional(element)) => Ok(Optional::some(value(object, Some(element))?).into()),
        Some(ValueType::Sequence(element)) => Ok(sequence(object, element)?.into()),
        Some(ValueType::Map(key, element)) => {
            let entries: &Bound<'_, PyDict> = object.cast()?;
            let keys = tensor(entries.keys().as_any(), Some(*key))?;
            let map = Map::new(keys, sequence(entries.values().as_any(), element)?);
            Ok(map.map_err(|error| errors::raised(object.py(), &error))?.into())
        }
        Some(other) => Err(PyTypeError::new_err(format!("a value of type {other} can't be fed"))),
    }
}

fn sequence(object: &Bound<'_, PyAny>, element: &ValueType) -> PyResult<Sequence> {
    let values: PyResult<Vec<Value>> = object.try_iter()?.map(|each| value(&each?, Some(element))).collect();
    Sequence::new(element.clone(), values?).map_err(|error| errors::raised(object.py(), &error))
}

/// An array, of the declared type if there is one.
pub(crate) fn tensor(object: &Bound<'_, PyAny>, declared: Option<DType>) -> PyResult<Tensor> {
    let py = object.py();
    let numpy = Numpy::get(py)?;
    if object.get_type().is(&numpy.array_type)
        && let Some(dtype) = dtype_of(object, numpy)?
    {
        return borrowed(object, dtype);
    }
    let made = numpy.feed.bind(py).call1((object, declared.map(DType::code)))?;
    let (elements, code, shape): (Bound<'_, PyAny>, i32, Option<Vec<usize>>) = made.extract()?;
    let dtype = DType::from_code(code).ok_or_else(|| PyTypeError::new_err(format!("{code} is not an element type")))?;
    let Some(shape) = shape else { return borrowed(&elements, dtype) };
    let strings: Vec<PyBackedStr> = elements.extract()?;
    Tensor::from_strings(&shape, strings).map_err(|error| errors::raised(py, &error))
}

/// The element type of an array; `None` for one that has to be converted.
fn dtype_of(array: &Bound<'_, PyAny>, numpy: &Numpy) -> PyResult<Option<DType>> {
    let py = array.py();
    let code = numpy.codes.bind(py).get_item(array.getattr(intern!(py, "dtype"))?)?;
    Ok(code.map(|code| code.extract()).transpose()?.and_then(DType::from_code))
}

/// A tensor in the memory of an array.
fn borrowed(array: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Tensor> {
    let py = array.py();
    let interface = array.getattr(intern!(py, "__array_interface__"))?;
    let field = |name| interface.get_item(name);
    if !field(intern!(py, "strides"))?.is_none() {
        return borrowed(&array.call_method0(intern!(py, "copy"))?, dtype);
    }
    let shape: Vec<usize> = field(intern!(py, "shape"))?.extract()?;
    let (address, _): (usize, bool) = field(intern!(py, "data"))?.extract()?;
    let len = array.getattr(intern!(py, "nbytes"))?.extract()?;
    let array = Borrowed { _array: array.clone().unbind(), address, len };
    let bytes = if len <= SMALL { Bytes::copy_from_slice(array.as_ref()) } else { Bytes::from_owner(array) };
    Tensor::new(dtype, &shape, bytes).map_err(|error| errors::raised(py, &error))
}

/// The elements of an array, which is kept.
struct Borrowed {
    _array: Py<PyAny>,
    address: usize,
    len: usize,
}

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the array says that its elements are there, side by side, and lives as long as `self`; NumPy doesn't move
        // them while somebody refers to it. That nobody writes to them meanwhile is asked of the caller, as everywhere
        // in Python.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(self.address), self.len)
        }
    }
}

/// The memory of an output, for the array that shows it.
#[pyclass(frozen, module = "onnxref._onnxref")]
pub(crate) struct Memory {
    tensor: Tensor,
    /// It is not the array's own.
    shared: bool,
}

#[pymethods]
impl Memory {
    /// NumPy's description of the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item(intern!(py, "version"), 3)?;
        fields.set_item(intern!(py, "typestr"), typestr(self.tensor.dtype()))?;
        fields.set_item(intern!(py, "shape"), PyTuple::new(py, self.tensor.shape())?)?;
        fields.set_item(intern!(py, "data"), (self.tensor.bytes().as_ptr().expose_provenance(), self.shared))?;
        Ok(fields)
    }
}

/// NumPy's name of a type; that of integers of the same size for one that NumPy doesn't have.
fn typestr(dtype: DType) -> &'static str {
    match dtype {
        DType::Float => "<f4",
        DType::Double => "<f8",
        DType::Float16 => "<f2",
        DType::Int8 => "|i1",
        DType::Int16 => "<i2",
        DType::Int32 => "<i4",
        DType::Int64 => "<i8",
        DType::Uint16 | DType::Bfloat16 => "<u2",
        DType::Uint32 => "<u4",
        DType::Uint64 => "<u8",
        DType::Bool => "|b1",
        DType::Complex64 => "<c8",
        DType::Complex128 => "<c16",
        _ => "|u1",
    }
}

/// An output as Python's value.
pub(crate) fn object(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Tensor(tensor) => array(py, tensor.into_owned(), false),
        Value::Sequence(sequence) => {
            let values = sequence.values().iter().map(|value| object(py, value.clone()));
            Ok(PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
        }
        Value::Optional(optional) => optional.get().map_or(Ok(py.None()), |value| object(py, value.clone())),
        Value::Map(map) => {
            let entries = PyDict::new(py);
            for (key, value) in map.keys().scalars().zip(map.values()) {
                let value = object(py, value.clone())?;
                // A scalar is a number or a string, as onnxruntime has it.
                let scalar = matches!(map.values().first(), Some(Value::Tensor(tensor)) if tensor.rank() == 0);
                let value = if scalar { value.call_method0(py, intern!(py, "item"))? } else { value };
                match key {
                    Scalar::Int(key) => entries.set_item(key, value)?,
                    Scalar::Uint(key) => entries.set_item(key, value)?,
                    Scalar::String(key) => entries.set_item(key, value)?,
                    other => entries.set_item(other.to_string(), value)?,
                }
            }
            Ok(entries.into_any().unbind())
        }
        other => Err(PyTypeError::new_err(format!("an output of the kind {other} has no form in Python"))),
    }
}

/// A value that a run still holds: its arrays can't be written to.
pub(crate) fn shown(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Tensor(tensor) => array(py, tensor.clone(), true),
        other => object(py, other.clone()),
    }
}

/// An array in the memory of a tensor.
fn array(py: Python<'_>, tensor: Tensor, shared: bool) -> PyResult<Py<PyAny>> {
    let numpy = Numpy::get(py)?;
    let dtype = tensor.dtype();
    if let Ok(strings) = tensor.strings() {
        let list = PyList::new(py, strings)?;
        return numpy.strings.call1(py, (list, PyTuple::new(py, tensor.shape())?));
    }
    let array = numpy.asarray.call1(py, (Memory { tensor, shared },))?;
    match dtype {
        DType::Float | DType::Double | DType::Float16 | DType::Bool | DType::Complex64 | DType::Complex128 => Ok(array),
        DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => Ok(array),
        DType::Uint8 | DType::Uint16 | DType::Uint32 | DType::Uint64 => Ok(array),
        other => numpy.special.call1(py, (array, other.code())),
    }
}
