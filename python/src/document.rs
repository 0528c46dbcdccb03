//! Models that Python reads, changes, builds and writes.

use crate::options::Source;
use crate::{arrays, errors, interrupt};
use onnxref::bytes::Bytes;
use onnxref::document::{
    Attribute, AttributeValue, Document as Model, Graph, Initializer, Node, Part, Size, Type, ValueInfo,
};
use onnxref::inspect::Inspection;
use onnxref::{DType, Error, Kind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyInt};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::PathBuf;

/// A model as data.
#[pyclass(module = "onnxref._onnxref")]
pub(crate) struct Document(Model);

/// A node of a document.
#[pyclass(frozen, get_all, module = "onnxref._onnxref")]
pub(crate) struct DocumentNode {
    name: String,
    op_type: String,
    domain: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

#[pymethods]
impl DocumentNode {
    fn __repr__(&self) -> String {
        format!("<{} ({}) -> ({})>", self.op_type, self.inputs.join(", "), self.outputs.join(", "))
    }
}

/// A size, a symbol, or `None` for any size.
#[derive(FromPyObject, IntoPyObject)]
enum Dim {
    Fixed(i64),
    Symbol(String),
}

/// The name, type and shape of a value.
type Info = (String, Option<String>, Option<Vec<Option<Dim>>>);

#[pymethods]
impl Document {
    #[new]
    #[pyo3(signature = (name = "graph", opset = 22))]
    fn new(name: &str, opset: i64) -> Document {
        Document(Model::new(Graph::new(name), opset))
    }

    /// Reads a file, by its path or its content, .onnx or the text form; or an `onnx.ModelProto`.
    #[staticmethod]
    fn open(py: Python<'_>, model: Source) -> PyResult<Document> {
        let read = interrupt::awaited(py, move || match model {
            Source::Bytes(bytes) => Model::from_bytes(Bytes::from_owner(bytes)),
            Source::Path(path) => Model::read(path),
        })?;
        read.map(Document).map_err(|error| errors::raised(py, &error))
    }

    /// Reads the text form.
    #[staticmethod]
    fn parse(py: Python<'_>, text: PyBackedStr) -> PyResult<Document> {
        let read = interrupt::awaited(py, move || Model::from_text(&text))?;
        read.map(Document).map_err(|error| errors::raised(py, &error))
    }

    fn to_text(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.to_text()).map_err(|error| errors::raised(py, &error))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.to_bytes()).map_err(|error| errors::raised(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the model to a file, whole or not at all, and its external data beside it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(path)).map_err(|error| errors::raised(py, &error))
    }

    #[getter]
    fn ir_version(&self) -> Option<i64> {
        self.0.ir_version
    }

    #[getter]
    fn opsets(&self) -> HashMap<String, i64> {
        self.0.opset_imports.iter().map(|import| (import.domain.clone(), import.version.unwrap_or_default())).collect()
    }

    #[getter]
    fn inputs(&self) -> Vec<Info> {
        self.0.graph.inputs.iter().map(|info| listed(info)).collect()
    }

    #[getter]
    fn outputs(&self) -> Vec<Info> {
        self.0.graph.outputs.iter().map(|info| listed(info)).collect()
    }

    #[getter]
    fn nodes(&self) -> Vec<DocumentNode> {
        let node = |node: &Part<Node>| {
            let Node { name, op_type, domain, inputs, outputs, .. } = &**node;
            let (name, op_type, domain) = (name.clone(), op_type.clone(), domain.clone());
            DocumentNode { name, op_type, domain, inputs: inputs.clone(), outputs: outputs.clone() }
        };
        self.0.graph.nodes.iter().map(node).collect()
    }

    #[getter]
    fn initializers(&self) -> Vec<String> {
        self.0.graph.initializers.iter().map(|tensor| tensor.name.clone()).collect()
    }

    #[pyo3(signature = (name, dtype = None, shape = None))]
    fn add_input(
        &mut self,
        py: Python<'_>,
        name: String,
        dtype: Option<&str>,
        shape: Option<Vec<Option<Dim>>>,
    ) -> PyResult<()> {
        self.0.graph.inputs.push(declared(py, name, dtype, shape)?.into());
        Ok(())
    }

    #[pyo3(signature = (name, dtype = None, shape = None))]
    fn add_output(
        &mut self,
        py: Python<'_>,
        name: String,
        dtype: Option<&str>,
        shape: Option<Vec<Option<Dim>>>,
    ) -> PyResult<()> {
        self.0.graph.outputs.push(declared(py, name, dtype, shape)?.into());
        Ok(())
    }

    fn add_initializer(&mut self, name: String, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let tensor = arrays::tensor(array, None)?;
        self.0.graph.initializers.push(Initializer::new(name, &tensor).into());
        Ok(())
    }

    #[pyo3(signature = (op_type, inputs, outputs, attributes = None, *, name = "", domain = ""))]
    fn add_node(
        &mut self,
        op_type: String,
        inputs: Vec<String>,
        outputs: Vec<String>,
        attributes: Option<&Bound<'_, PyDict>>,
        name: &str,
        domain: &str,
    ) -> PyResult<()> {
        let (name, domain) = (name.to_string(), domain.to_string());
        let mut node = Node { op_type, inputs, outputs, name, domain, ..Node::default() };
        for (key, value) in attributes.into_iter().flat_map(|attributes| attributes.iter()) {
            let key: String = key.extract()?;
            let value = attribute(&key, &value)?;
            node.attributes.push(Attribute::new(key, value).into());
        }
        self.0.graph.nodes.push(node.into());
        Ok(())
    }

    /// Imports a version of the operators of a domain.
    fn set_opset(&mut self, domain: &str, version: i64) {
        let imports = &mut self.0.opset_imports;
        imports.retain(|import| import.domain != domain);
        imports.push(onnxref::document::OpsetImport::new(domain, version).into());
    }

    /// Keeps the part that computes `outputs` from `inputs`.
    #[pyo3(signature = (inputs = None, outputs = None))]
    fn extract(
        &mut self,
        py: Python<'_>,
        inputs: Option<Vec<String>>,
        outputs: Option<Vec<String>>,
    ) -> PyResult<Vec<String>> {
        let document = &mut self.0;
        let done = py.detach(|| {
            let (before, known) = (document.clone(), OnceCell::new());
            let types = |name: &str| {
                let found = known.get_or_init(|| before.inspect(&Default::default()).ok());
                let values = &found.as_ref()?.graph.values;
                let value = values.iter().find(|value| value.scope.is_none() && value.name == name)?;
                let dims: Option<Vec<Size>> = value.shape.as_ref().map(|dims| dims.iter().map(Size::from).collect());
                Some(ValueInfo::new(name, value.value_type.as_ref()?, dims.as_deref()))
            };
            document.extract(inputs.as_deref(), outputs.as_deref(), &types)
        });
        done.map_err(|error| errors::raised(py, &error))
    }

    /// Renames a value, wherever it is used.
    fn rename(&mut self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.0.rename(old, new).map_err(|error| errors::raised(py, &error))
    }

    /// Puts a size in the place of a symbol, in all shapes; in those of bodies and functions where it follows.
    fn set_symbol(&mut self, py: Python<'_>, symbol: &str, size: Option<Dim>) -> PyResult<()> {
        self.0.set_symbol(symbol, &size.map_or(Size::Unknown, Size::from)).map_err(|error| errors::raised(py, &error))
    }

    /// Declares types and shapes that follow.
    fn declare_shapes(&mut self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |document, found| {
            document.declare_shapes(found);
            Ok(())
        })
    }

    /// Computes constants, and drops what needn't run.
    #[pyo3(signature = (max_bytes = 1048576))]
    fn simplify(&mut self, py: Python<'_>, max_bytes: u64) -> PyResult<()> {
        self.change(py, |document, found| match found.error.take() {
            Some(error) => Err(error),
            None => document.simplify(found, max_bytes),
        })
    }

    /// Makes the model one of a later opset.
    fn convert(&mut self, py: Python<'_>, opset: i64) -> PyResult<()> {
        self.change(py, |document, found| {
            // What isn't implemented here may be converted.
            let error = found.error.take().filter(|error| error.kind() != Kind::Unsupported);
            error.map_or_else(|| document.convert(found, opset), Err)
        })
    }

    fn __repr__(&self) -> String {
        let graph = &self.0.graph;
        let names =
            |list: &[Part<ValueInfo>]| list.iter().map(|info| info.name.as_str()).collect::<Vec<_>>().join(", ");
        format!("<Document: {} nodes, {} -> {}>", graph.nodes.len(), names(&graph.inputs), names(&graph.outputs))
    }
}

impl Document {
    /// Changes the document by what it holds.
    fn change(
        &mut self,
        py: Python<'_>,
        change: impl FnOnce(&mut Model, &mut Inspection) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let document = &mut self.0;
        let done = py.detach(|| {
            let mut found = document.inspect(&Default::default())?;
            change(document, &mut found)
        });
        done.map_err(|error| errors::raised(py, &error))
    }
}

impl From<Dim> for Size {
    fn from(dim: Dim) -> Size {
        match dim {
            Dim::Fixed(size) => Size::Fixed(size),
            Dim::Symbol(name) => Size::Symbol(name),
        }
    }
}

/// A value and its type, which is known by the name that NumPy or ONNX has for it.
fn declared(py: Python<'_>, name: String, dtype: Option<&str>, shape: Option<Vec<Option<Dim>>>) -> PyResult<ValueInfo> {
    let Some(text) = dtype else { return Ok(ValueInfo::untyped(name)) };
    let own = match text {
        "float32" => "float",
        "float64" => "double",
        other => other,
    };
    let known = DType::from_name(own);
    let dtype =
        known.ok_or_else(|| errors::input(py, format!("dtype={text:?}: not an element type, such as float32")))?;
    let dims = shape.map(|dims| dims.into_iter().map(|dim| dim.map_or(Size::Unknown, Size::from)).collect::<Vec<_>>());
    Ok(ValueInfo::new(name, &dtype.into(), dims.as_deref()))
}

fn listed(info: &ValueInfo) -> Info {
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
fn attribute(name: &str, value: &Bound<'_, PyAny>) -> PyResult<AttributeValue> {
    if let Ok(document) = value.cast::<Document>() {
        let document = document.try_borrow()?;
        return Ok(AttributeValue::Graph(Box::new(document.0.graph.clone())));
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
