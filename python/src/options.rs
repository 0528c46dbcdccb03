//! How to load a model, as Python says it.

use onnxref::bytes::Bytes;
use onnxref::inspect::Inspection;
use onnxref::{Compatibility, Limits, LoadOptions, Model, Result};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::collections::HashMap;
use std::path::PathBuf;

/// Where a model is. Bytes are shared with Python.
pub(crate) enum Source {
    Bytes(PyBackedBytes),
    Path(PathBuf),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Source {
    type Error = PyErr;

    fn extract(model: Borrowed<'a, 'py, PyAny>) -> PyResult<Source> {
        let py = model.py();
        // It knows what a model may be, and refuses the rest.
        let source = py.import(intern!(py, "onnxref._session"))?.getattr(intern!(py, "source_of"))?.call1((model,))?;
        source.extract().map(Source::Bytes).or_else(|_| source.extract().map(Source::Path))
    }
}

/// The options of `InferenceSession` that the library knows.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    threads: Option<usize>,
    limits: HashMap<String, u64>,
    untrusted: bool,
    allow: Vec<String>,
    external_roots: Vec<PathBuf>,
    external_data: HashMap<String, PyBackedBytes>,
    hard_links: bool,
    fast_math: bool,
    optimize: bool,
    mmap: bool,
    dimensions: HashMap<String, usize>,
}

impl Options {
    pub(crate) fn load(self) -> Result<Loader> {
        let mut limits = if self.untrusted { Limits::untrusted() } else { Limits::default() };
        self.limits.iter().try_for_each(|(name, value)| limits.set(name, *value))?;
        let mut compatibility = Compatibility::default();
        self.allow.iter().try_for_each(|name| compatibility.allow(&name.replace('-', "_")))?;
        let mut options = Model::options()
            .limits(limits)
            .compatibility(|all| *all = compatibility)
            .hard_links(self.hard_links)
            .fast_math(self.fast_math)
            .optimize(self.optimize);
        options = self.threads.into_iter().fold(options, LoadOptions::threads);
        options = self.external_roots.into_iter().fold(options, LoadOptions::external_root);
        options = self.dimensions.into_iter().fold(options, |options, (name, size)| options.dimension(name, size));
        for (location, bytes) in self.external_data {
            options = options.external_data(location, Bytes::from_owner(bytes));
        }
        // SAFETY: the caller asked for it, and was told that nobody may change the files.
        #[allow(unsafe_code)]
        Ok(Loader(if self.mmap { unsafe { options.mmap() } } else { options }))
    }
}

pub(crate) struct Loader(LoadOptions);

impl Loader {
    pub(crate) fn loading(&self, source: Source) -> Result<Model> {
        match source {
            Source::Bytes(bytes) => self.0.from_bytes(Bytes::from_owner(bytes)),
            Source::Path(path) => self.0.load(path),
        }
    }

    pub(crate) fn inspecting(&self, source: Source) -> Result<Inspection> {
        match source {
            Source::Bytes(bytes) => self.0.inspect_bytes(Bytes::from_owner(bytes)),
            Source::Path(path) => self.0.inspect(path),
        }
    }
}
