//! Models that Python reads, changes, builds and writes.

use crate::declared::{Info, attribute, declared, listed, names, size_of};
use crate::options::Source;
use crate::{arrays, errors, interrupt};
use onnxref::bytes::Bytes;
use onnxref::document::{Attribute, Document as Model, Graph, Initializer, Node, Part, Size, ValueInfo};
use onnxref::inspect::Inspection;
use onnxref::{Error, Kind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyType};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// A model as data: read, changed, built and written. What isn't changed is written byte for byte.
#[pyclass(frozen, module = "onnxref._onnxref")]
pub(crate) struct Document(RwLock<Model>);

/// A node of a document.
#[pyclass(frozen, get_all, module = "onnxref._onnxref")]
pub(crate) struct DocumentNode {
    /// Its name; it may be empty.
    name: String,
    /// Its operator.
    op_type: String,
    /// The domain of the operator; empty for ai.onnx.
    domain: String,
    /// The names of the values that it reads; empty for an optional input that is left out.
    inputs: Vec<String>,
    /// The names of the values that it gives.
    outputs: Vec<String>,
}

#[pymethods]
impl DocumentNode {
    fn __repr__(&self) -> String {
        format!("<{} ({}) -> ({})>", self.op_type, self.inputs.join(", "), self.outputs.join(", "))
    }
}

#[pymethods]
impl Document {
    #[new]
    #[pyo3(signature = (name = "graph", opset = 22))]
    fn new(name: &str, opset: i64) -> Document {
        Model::new(Graph::new(name), opset).into()
    }

    /// Reads a file, by its path or its content, .onnx or the text form; or an `onnx.ModelProto`.
    #[staticmethod]
    fn open(py: Python<'_>, model: Source) -> PyResult<Document> {
        let read = interrupt::awaited(py, move || match model {
            Source::Bytes(bytes) => Model::from_bytes(Bytes::from_owner(bytes)),
            Source::Path(path) => Model::read(path),
        })?;
        read.map(Document::from).map_err(|error| errors::raised(py, &error))
    }

    /// Reads the text form.
    #[staticmethod]
    fn parse(py: Python<'_>, text: PyBackedStr) -> PyResult<Document> {
        let read = interrupt::awaited(py, move || Model::from_text(&text))?;
        read.map(Document::from).map_err(|error| errors::raised(py, &error))
    }

    /// The text form: the syntax of onnx.parser, with all elements of tensors.
    fn to_text(&self, py: Python<'_>) -> PyResult<String> {
        let model = &*self.read()?;
        py.detach(|| model.to_text()).map_err(|error| errors::raised(py, &error))
    }

    /// The model file, without its external data.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let model = &*self.read()?;
        let bytes = py.detach(|| model.to_bytes()).map_err(|error| errors::raised(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the model to a file, whole or not at all, and its external data beside it. The text form is written if the name
    /// ends in .onnxtxt.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let model = &*self.read()?;
        let saved = py.detach(|| model.save(&path));
        saved.map_err(|error| errors::unsaved(py, &error, &path))
    }

    /// The version of the format.
    #[getter]
    fn ir_version(&self) -> PyResult<Option<i64>> {
        Ok(self.read()?.ir_version)
    }

    /// The imported opsets: domain, empty for ai.onnx, and version.
    #[getter]
    fn opsets(&self) -> PyResult<HashMap<String, i64>> {
        let model = self.read()?;
        let imports = model.opset_imports.iter();
        Ok(imports.map(|import| (import.domain.clone(), import.version.unwrap_or_default())).collect())
    }

    /// The inputs: name, type and shape. What isn't declared is None.
    #[getter]
    fn inputs(&self) -> PyResult<Vec<Info>> {
        Ok(self.read()?.graph.inputs.iter().map(|info| listed(info)).collect())
    }

    /// The outputs: name, type and shape. What isn't declared is None.
    #[getter]
    fn outputs(&self) -> PyResult<Vec<Info>> {
        Ok(self.read()?.graph.outputs.iter().map(|info| listed(info)).collect())
    }

    /// The nodes of the graph, as they are now: a change of the document doesn't change them.
    #[getter]
    fn nodes(&self) -> PyResult<Vec<DocumentNode>> {
        let node = |node: &Part<Node>| {
            let Node { name, op_type, domain, inputs, outputs, .. } = &**node;
            let (name, op_type, domain) = (name.clone(), op_type.clone(), domain.clone());
            DocumentNode { name, op_type, domain, inputs: inputs.clone(), outputs: outputs.clone() }
        };
        Ok(self.read()?.graph.nodes.iter().map(node).collect())
    }

    /// The names of the initializers.
    #[getter]
    fn initializers(&self) -> PyResult<Vec<String>> {
        Ok(self.read()?.graph.initializers.iter().map(|tensor| tensor.name.clone()).collect())
    }

    /// Adds an input of the graph. `dtype` is the name of an element type, a type of NumPy, or what `inputs` says, such as
    /// "seq(tensor(float))"; a size in `shape` is a number, the name of a symbol, or None.
    #[pyo3(signature = (name, dtype = None, shape = None))]
    fn add_input(
        &self,
        name: String,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<()> {
        let info = declared(py, name, dtype, shape)?.into();
        self.write()?.graph.inputs.push(info);
        Ok(())
    }

    /// Adds an output of the graph, with a type and a shape as `add_input` takes them.
    #[pyo3(signature = (name, dtype = None, shape = None))]
    fn add_output(
        &self,
        name: String,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<()> {
        let info = declared(py, name, dtype, shape)?.into();
        self.write()?.graph.outputs.push(info);
        Ok(())
    }

    /// Adds a constant.
    fn add_initializer(&self, name: String, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let tensor = arrays::tensor(array, None)?;
        self.write()?.graph.initializers.push(Initializer::new(name, &tensor).into());
        Ok(())
    }

    /// Adds a node behind the others. An attribute is a number, a text, a list of these, an array, or another document: a body.
    #[pyo3(signature = (op_type, inputs, outputs, attributes = None, *, name = "", domain = ""))]
    fn add_node(
        &self,
        op_type: String,
        inputs: &Bound<'_, PyAny>,
        outputs: &Bound<'_, PyAny>,
        attributes: Option<&Bound<'_, PyDict>>,
        name: &str,
        domain: &str,
    ) -> PyResult<()> {
        let (name, domain) = (name.to_string(), domain.to_string());
        let (inputs, outputs) = (names("inputs", inputs)?, names("outputs", outputs)?);
        let mut node = Node { op_type, inputs, outputs, name, domain, ..Node::default() };
        for (key, value) in attributes.into_iter().flat_map(|attributes| attributes.iter()) {
            let key: String = key.extract()?;
            let value = attribute(&key, &value)?;
            node.attributes.push(Attribute::new(key, value).into());
        }
        self.write()?.graph.nodes.push(node.into());
        Ok(())
    }

    /// Imports a version of the operators of a domain, in the place of the one that was imported. Nodes stay as they are:
    /// `convert` changes them. The version of the format is raised if the opset needs it.
    fn set_opset(&self, domain: &str, version: i64) -> PyResult<()> {
        self.write()?.set_opset(domain, version);
        Ok(())
    }

    /// Keeps the part that computes `outputs` from `inputs`. Returns the inputs that the outputs don't depend on.
    #[pyo3(signature = (inputs = None, outputs = None))]
    fn extract(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        outputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let inputs = inputs.map(|list| names("inputs", list)).transpose()?;
        let outputs = outputs.map(|list| names("outputs", list)).transpose()?;
        let document = &mut *self.write()?;
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
    fn rename(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.write()?.rename(old, new).map_err(|error| errors::raised(py, &error))
    }

    /// Puts a size in the place of a symbol, in all shapes; in those of bodies and functions where it follows.
    fn set_symbol(&self, py: Python<'_>, symbol: &str, size: &Bound<'_, PyAny>) -> PyResult<()> {
        let size = size_of(size)?;
        self.write()?.set_symbol(symbol, &size).map_err(|error| errors::raised(py, &error))
    }

    /// Declares types and shapes that follow.
    fn declare_shapes(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |document, found| document.declare_shapes(found))
    }

    /// Computes constants, of no more than `max_bytes` each, and drops what needn't run.
    #[pyo3(signature = (max_bytes = 1048576))]
    fn simplify(&self, py: Python<'_>, max_bytes: u64) -> PyResult<()> {
        self.change(py, |document, found| match found.error.take() {
            Some(error) => Err(error),
            None => document.simplify(found, max_bytes),
        })
    }

    /// Makes the model one of a later opset.
    fn convert(&self, py: Python<'_>, opset: i64) -> PyResult<()> {
        self.change(py, |document, found| {
            // What isn't implemented here may be converted.
            let error = found.error.take().filter(|error| error.kind() != Kind::Unsupported);
            error.map_or_else(|| document.convert(found, opset), Err)
        })
    }

    fn __copy__(&self) -> PyResult<Document> {
        Ok(self.read()?.clone().into())
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<Document> {
        self.__copy__()
    }

    /// A pickle has the bytes of the model file, without its external data.
    fn __reduce__<'py>(slf: &Bound<'py, Document>) -> PyResult<(Bound<'py, PyType>, (), Bound<'py, PyBytes>)> {
        Ok((slf.get_type(), (), slf.get().to_bytes(slf.py())?))
    }

    fn __setstate__(&self, py: Python<'_>, state: PyBackedBytes) -> PyResult<()> {
        let read = py.detach(|| Model::from_bytes(Bytes::from_owner(state)));
        *self.write()? = read.map_err(|error| errors::raised(py, &error))?;
        Ok(())
    }

    fn __repr__(&self) -> PyResult<String> {
        let graph = &self.read()?.graph;
        let names =
            |list: &[Part<ValueInfo>]| list.iter().map(|info| info.name.as_str()).collect::<Vec<_>>().join(", ");
        Ok(format!("<Document: {} nodes, {} -> {}>", graph.nodes.len(), names(&graph.inputs), names(&graph.outputs)))
    }
}

impl From<Model> for Document {
    fn from(model: Model) -> Document {
        Document(RwLock::new(model))
    }
}

impl Document {
    /// Nobody waits here: who holds the lock may wait for Python.
    pub(crate) fn read(&self) -> PyResult<RwLockReadGuard<'_, Model>> {
        match self.0.try_read() {
            Ok(model) => Ok(model),
            Err(TryLockError::Poisoned(model)) => Ok(model.into_inner()),
            Err(TryLockError::WouldBlock) => Err(busy()),
        }
    }

    fn write(&self) -> PyResult<RwLockWriteGuard<'_, Model>> {
        match self.0.try_write() {
            Ok(model) => Ok(model),
            Err(TryLockError::Poisoned(model)) => Ok(model.into_inner()),
            Err(TryLockError::WouldBlock) => Err(busy()),
        }
    }

    /// Changes the document by what it holds.
    fn change(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut Model, &mut Inspection) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let document = &mut *self.write()?;
        let done = py.detach(|| {
            let mut found = document.inspect(&Default::default())?;
            change(document, &mut found)
        });
        done.map_err(|error| errors::raised(py, &error))
    }
}

fn busy() -> PyErr {
    PyRuntimeError::new_err("another thread works on the document")
}
