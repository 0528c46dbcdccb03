//! A loaded model, and its runs.

use crate::interrupt::{End, Interruption};
use crate::options::{Options, Source};
use crate::{arrays, errors, interrupt};
use onnxref::{Dim, Error, Inputs, Kind, Model, NodeInfo, Value, ValueInfo, ValueType, Watch};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// A loaded model.
#[pyclass(frozen, module = "onnxref._onnxref")]
pub(crate) struct Session(Model);

/// The name, type and shape of an input or output.
type Info = (String, Option<String>, Option<Vec<Option<Size>>>);

#[derive(IntoPyObject)]
enum Size {
    Known(usize),
    Named(String),
}

#[pymethods]
impl Session {
    #[new]
    fn new(py: Python<'_>, model: Source, options: Options) -> PyResult<Session> {
        let loaded = interrupt::awaited(py, || options.load()?.loading(model))?;
        loaded.map(Session).map_err(|error| errors::raised(py, &error))
    }

    /// The inputs; whether each may be omitted comes last.
    fn inputs(&self) -> Vec<(Info, bool)> {
        self.0.inputs().map(|input| (info(input), self.0.has_default(&input.name))).collect()
    }

    fn outputs(&self) -> Vec<Info> {
        self.0.outputs().map(info).collect()
    }

    fn ir_version(&self) -> i64 {
        self.0.ir_version()
    }

    /// The name of the graph, and what its author says about it.
    fn graph(&self) -> (String, String) {
        (self.0.graph_name().to_string(), self.0.graph_description().to_string())
    }

    fn opsets(&self) -> HashMap<String, i64> {
        self.0.opsets().iter().cloned().collect()
    }

    /// Fields, and the model's own properties.
    fn metadata(&self) -> [Vec<(String, String)>; 2] {
        let (all, own) = (self.0.metadata(), self.0.metadata_props());
        let fields = all.iter().take(all.len() - own.len());
        [fields.cloned().collect(), own.to_vec()]
    }

    /// The files beside the model file that it was loaded from, relative to its folder.
    fn external_files(&self) -> Vec<PathBuf> {
        self.0.external_files().to_vec()
    }

    fn notes(&self) -> Vec<String> {
        self.0.report().to_vec()
    }

    /// The values of `names`, or all outputs.
    #[pyo3(signature = (names, feeds, watch=None, timeout=None, end=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        names: Option<Vec<String>>,
        feeds: &Bound<'py, PyDict>,
        watch: Option<Py<PyAny>>,
        timeout: Option<f64>,
        end: Option<PyRef<'py, End>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut time = None;
        if let Some(seconds) = timeout {
            let wrong = |why| errors::input(py, format!("timeout={seconds}: {why}"));
            time = Some(Duration::try_from_secs_f64(seconds).map_err(wrong)?);
        }
        let fed = self.feeds(feeds)?;
        let ended = Interruption::default();
        let cancel = ended.cancel(time, end.as_deref());
        let outputs = |name: &String| self.0.outputs().any(|output| output.name == *name);
        let inner = names.iter().flatten().filter(|name| !outputs(name)).map(|name| (name.clone(), None)).collect();
        let mut watcher = Watcher { inner, callback: watch, ended: ended.clone() };
        let ran = errors::caught(|| {
            py.detach(|| {
                let inputs: Inputs<'_> = fed.iter().map(|(name, value)| (&**name, value)).collect();
                if watcher.inner.is_empty() && watcher.callback.is_none() {
                    return self.0.run_with(inputs, &cancel);
                }
                self.0.run_watched(inputs, &cancel, &mut watcher)
            })
        })?;
        // Python may free an array with the last of these.
        drop(fed);
        if let Some(raised) = ended.take() {
            return Err(raised);
        }
        let mut outputs = ran.map_err(|error| errors::raised(py, &error))?;
        let Some(names) = names else {
            let values = outputs.into_iter().map(|(_, value)| arrays::object(py, value));
            return PyList::new(py, values.collect::<PyResult<Vec<_>>>()?);
        };
        let values = names.iter().enumerate().map(|(at, name)| {
            let value = match watcher.inner.get(name) {
                Some(Some(value)) => value.clone(),
                Some(None) => return Err(missing(py, name)),
                // A name may be asked for twice.
                None if names.iter().skip(at + 1).any(|other| other == name) => {
                    outputs.get(name).cloned().ok_or_else(|| missing(py, name))?
                }
                None => outputs.take_value(name).map_err(|error| errors::raised(py, &error))?,
            };
            arrays::object(py, value)
        });
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }
}

impl Session {
    /// What is fed, by name.
    fn feeds(&self, feeds: &Bound<'_, PyDict>) -> PyResult<Vec<(PyBackedStr, Value)>> {
        let mut fed = Vec::with_capacity(feeds.len());
        for (k, (name, object)) in feeds.iter().enumerate() {
            let name: PyBackedStr = name.extract()?;
            // Feeds usually come in the order of the inputs.
            let is_it = |info: &&ValueInfo| info.name == *name;
            let found = self.0.inputs().nth(k).filter(is_it).or_else(|| self.0.inputs().find(is_it));
            let value = arrays::value(&object, found.and_then(|info| info.value_type.as_ref()));
            let value = value.map_err(|why| unfit(feeds.py(), &name, why))?;
            fed.push((name, value));
        }
        Ok(fed)
    }
}

/// Says which input it is that can't be fed.
fn unfit(py: Python<'_>, name: &str, why: PyErr) -> PyErr {
    if !why.is_instance_of::<PyException>(py) {
        return why;
    }
    let error = Error::input(format!("input {}: {}", onnxref::quote(name), why.value(py))).about(name);
    let raised = errors::raised(py, &error);
    raised.set_cause(py, Some(why));
    raised
}

fn missing(py: Python<'_>, name: &str) -> PyErr {
    let text = format!("there is no output {0}, and no node that runs gives a value {0}", onnxref::quote(name));
    errors::raised(py, &Error::input(text).about(name))
}

fn info(value: &ValueInfo) -> Info {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => Some(Size::Known(*size)),
        Dim::Symbol(name) => Some(Size::Named(name.clone())),
        Dim::Formula(formula) => Some(Size::Named(formula.to_string())),
        _ => None,
    };
    let shape = value.shape.as_ref().map(|shape| shape.iter().map(size).collect());
    (value.name.clone(), value.value_type.as_ref().map(type_text), shape)
}

/// A type as onnxruntime writes it.
fn type_text(of: &ValueType) -> String {
    match of {
        ValueType::Tensor(dtype) => format!("tensor({})", dtype.name()),
        ValueType::Sequence(element) => format!("seq({})", type_text(element)),
        ValueType::Optional(element) => format!("optional({})", type_text(element)),
        ValueType::Map(key, value) => format!("map({},{})", key.name(), type_text(value)),
        other => other.to_string(),
    }
}

/// A node of a run that is watched.
#[pyclass(frozen, get_all, module = "onnxref._onnxref")]
pub(crate) struct Node {
    /// Its position in its graph or function, from 0.
    index: usize,
    /// Its name; it may be empty.
    name: String,
    /// Its operator.
    operator: String,
    /// The domain of the operator; empty for ai.onnx.
    domain: String,
    /// The version of the operator that runs.
    version: i64,
    /// The calls of model functions around it.
    function: Option<String>,
}

#[pymethods]
impl Node {
    fn __repr__(&self) -> String {
        format!("Node({}, {:?}, {}-{})", self.index, self.name, self.operator, self.version)
    }
}

impl From<NodeInfo<'_>> for Node {
    fn from(node: NodeInfo<'_>) -> Node {
        Node {
            index: node.index,
            name: node.name.to_string(),
            operator: node.operator.to_string(),
            domain: node.domain.to_string(),
            version: node.version,
            function: node.function.map(str::to_string),
        }
    }
}

/// Keeps values inside the graph that were asked for, and shows all to a function of Python.
struct Watcher {
    inner: HashMap<String, Option<Value>>,
    callback: Option<Py<PyAny>>,
    ended: Interruption,
}

impl Watch for Watcher {
    fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> onnxref::Result<()> {
        for (k, (name, value)) in outputs.iter().enumerate() {
            // Names are unique outside of subgraphs and functions.
            if node.output_scope(k).is_none()
                && let Some(wanted) = self.inner.get_mut(*name)
            {
                *wanted = Some((*value).clone());
            }
        }
        let Some(callback) = &self.callback else { return Ok(()) };
        let called = Python::attach(|py| {
            let named = PyDict::new(py);
            outputs.iter().try_for_each(|(name, value)| named.set_item(*name, arrays::shown(py, value)?))?;
            callback.call1(py, (Node::from(node), named)).map(drop)
        });
        called.map_err(|raised: PyErr| {
            self.ended.set(Some(raised));
            Error::new(Kind::Cancelled, "the function that watches the run raised an exception")
        })
    }
}
