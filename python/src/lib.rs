//! The module `onnxref._onnxref`: what the Python package takes from the library and the program. The package's own code is
//! in `python/package`.

mod arrays;
mod declared;
mod document;
mod errors;
mod interrupt;
mod options;
mod session;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _onnxref {
    use crate::options::{Options, Source};
    use crate::{errors, interrupt};
    use onnxref_view::picture;
    use pyo3::prelude::*;
    use std::ffi::OsString;

    #[pymodule_export]
    use crate::arrays::Memory;
    #[pymodule_export]
    use crate::document::{Document, DocumentNode};
    #[pymodule_export]
    use crate::interrupt::End;
    #[pymodule_export]
    use crate::session::{Node, Session};

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's name
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Runs the program `onnxref` with these arguments, which begin with its name. Returns its exit status.
    #[pyfunction]
    fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| onnxref_cli::run(&arguments))
    }

    /// The exit status of the program with `--json`, and what it prints.
    #[pyfunction]
    fn answer(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<(u8, String)> {
        interrupt::awaited(py, move || onnxref_cli::answer(&arguments))
    }

    /// A picture of a model's graph, also of one that can't run.
    #[pyfunction]
    fn svg(py: Python<'_>, model: Source, options: Options, name: String) -> PyResult<String> {
        let found = interrupt::awaited(py, move || {
            options.load()?.inspecting(model).map(|found| picture::svg(&found.graph, &name))
        })?;
        found.map_err(|error| errors::raised(py, &error))
    }
}
