//! How to load a model.

use super::Model;
use crate::error::Result;
use crate::files::{ModelFiles, Places};
use crate::graph::Graph;
use crate::limits::{Limits, exceeded};
use crate::onnx;
use crate::openvino;
use crate::operator::{Compatibility, Node, Operator};
use crate::registry::Registry;
use crate::schema::Schema;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to load a model: [`Model::options`].
#[derive(Debug, Clone)]
#[must_use]
pub struct LoadOptions {
    registry: Registry,
    places: Places,
    threads: Option<usize>,
    limits: Limits,
    optimize: bool,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        let (registry, places, threads, limits) = Default::default();
        LoadOptions { registry, places, threads, limits, optimize: true }
    }
}

/// Bytes to load a model from: [`Bytes`], vectors, and static slices (`include_bytes!`).
pub trait IntoBytes {
    /// The bytes, without a copy.
    fn into_bytes(self) -> Bytes;
}

macro_rules! into_bytes {
    ($($type:ty),*) => {$(
        impl IntoBytes for $type {
            fn into_bytes(self) -> Bytes {
                self.into()
            }
        }
    )*};
}

into_bytes!(Bytes, Vec<u8>, Box<[u8]>, String, &'static [u8], &'static str);

impl<const N: usize> IntoBytes for &'static [u8; N] {
    fn into_bytes(self) -> Bytes {
        Bytes::from_static(self)
    }
}

impl LoadOptions {
    /// Maps the model file and its external data into memory instead of reading them. Large weights then
    /// cost no time at load, and only the parts that are used take memory.
    ///
    /// # Safety
    /// Nobody may change a file of the model while the model, or a tensor that came from it, is alive.
    #[allow(unsafe_code)] // the caller guarantees it
    pub unsafe fn mmap(mut self) -> LoadOptions {
        self.places.mmap = true;
        self
    }

    /// Limits for loading and running, instead of [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> LoadOptions {
        self.limits = limits;
        self
    }

    /// Changes some of the limits.
    ///
    /// ```
    /// let options = onnxref::Model::options().change_limits(|limits| limits.run_bytes = 1 << 30);
    /// ```
    pub fn change_limits(mut self, change: impl FnOnce(&mut Limits)) -> LoadOptions {
        change(&mut self.limits);
        self
    }

    /// Allows links in the model's folder to lead to external data in this folder, such as the cache of a model hub.
    /// Without it, links are not followed.
    pub fn external_root(mut self, folder: impl Into<PathBuf>) -> LoadOptions {
        self.places.roots.push(folder.into());
        self
    }

    /// Whether the model's other files may have more than one hard link; false by default. Package managers and
    /// backups create such links. So may an attacker, to have a file from elsewhere read.
    pub fn hard_links(mut self, accept: bool) -> LoadOptions {
        self.places.hard_links = accept;
        self
    }

    /// The content of a file of the model: external data at a location, or the `.bin` file of an OpenVINO IR. It is
    /// used instead of the file system. A network loaded from bytes has no name: its file is the only one here that ends
    /// in `.bin`.
    pub fn external_data(mut self, location: impl Into<String>, content: impl IntoBytes) -> LoadOptions {
        self.places.memory.insert(location.into(), content.into_bytes());
        self
    }

    /// Maximum number of threads of a run, from the rayon pool that it is in, or rayon's global one. 1 uses only the
    /// caller's thread. By default a run may use the whole pool. The results are the same, bit by bit.
    pub fn threads(mut self, threads: usize) -> LoadOptions {
        self.threads = Some(threads);
        self
    }

    /// Whether constants are computed at load and unread nodes dropped; true by default. The outputs are the same, bit
    /// by bit, but a dropped node can't fail.
    pub fn optimize(mut self, optimize: bool) -> LoadOptions {
        self.optimize = optimize;
        self
    }

    /// Accepts non-standard behaviour of other engines.
    pub fn compatibility(mut self, change: impl FnOnce(&mut Compatibility)) -> LoadOptions {
        change(&mut self.registry.compatibility);
        self
    }

    /// Adds an operator version. `schema` is a block in the format of the table of the standard
    /// ([`Schema::parse`]); `load` makes the operator of a node.
    /// The operator overrides a standard one of the same domain and name.
    ///
    /// # Errors
    /// If `schema` doesn't match the grammar, or the operator version was added before.
    ///
    /// ```
    /// use onnxref::operator::{Call, Node, Operator, Values};
    /// use onnxref::{Model, Result};
    ///
    /// /// `y = factor x`
    /// #[derive(Debug)]
    /// struct Scale {
    ///     factor: f32,
    /// }
    ///
    /// impl Operator for Scale {
    ///     fn run(&self, call: &mut Call<'_>) -> Result<Values> {
    ///         let x = call.tensor(0)?;
    ///         let mut y = call.output::<f32>(x.shape())?;
    ///         for (y, x) in y.elements_mut()?.iter_mut().zip(x.as_slice::<f32>()?) {
    ///             *y = self.factor * x;
    ///         }
    ///         Ok([y.finish().into()].into())
    ///     }
    /// }
    ///
    /// let options = Model::options().operator(
    ///     "com.example.Scale 1\n  (x: T) -> (y: T)\n  factor: FLOAT = 2.0\n  T: float",
    ///     |node: &Node<'_>| Ok(Box::new(Scale { factor: node.float("factor")? })),
    /// )?;
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn operator(
        mut self,
        schema: &str,
        load: impl Fn(&Node<'_>) -> Result<Box<dyn Operator>> + Send + Sync + 'static,
    ) -> Result<LoadOptions> {
        self.registry.add(Schema::parse(schema)?, Arc::new(load))?;
        Ok(self)
    }

    /// As [`Model::load`], with these options.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let (file, files) = self.file(path)?;
        self.parse(file, Some(path), !self.places.mmap, &files)
    }

    /// As [`Model::from_bytes`], with these options.
    ///
    /// # Errors
    /// As [`Model::from_bytes`].
    pub fn from_bytes(&self, bytes: impl IntoBytes) -> Result<Model> {
        let bytes = bytes.into_bytes();
        let files = self.memory(&bytes)?;
        self.parse(bytes, None, true, &files)
    }

    /// Domain and name of each operator that the model in a file names, whether it can run or not.
    pub(crate) fn operators_of(&self, path: &Path) -> Result<BTreeSet<(String, String)>> {
        let (file, files) = self.file(path)?;
        operators(file, &files)
    }

    /// As [`LoadOptions::operators_of`], of the content of a file.
    pub(crate) fn operators_in(&self, bytes: Bytes) -> Result<BTreeSet<(String, String)>> {
        let files = self.memory(&bytes)?;
        operators(bytes, &files)
    }

    fn file(&self, path: &Path) -> Result<(Bytes, ModelFiles)> {
        let files = ModelFiles::new(Some(path), self.places.clone(), self.limits.clone());
        let check = |head: &[u8], size| if openvino::is_ir(head) { Ok(()) } else { onnx::check_head(head, size) };
        Ok((files.model(path, check)?, files))
    }

    /// The files of a model in memory.
    fn memory(&self, bytes: &Bytes) -> Result<ModelFiles> {
        let allowed = self.limits.file_bytes;
        if bytes.len() as u64 > allowed {
            return Err(exceeded("file_bytes", "the model has", bytes.len() as u128, "bytes", allowed));
        }
        Ok(ModelFiles::new(None, self.places.clone(), self.limits.clone()))
    }

    fn parse(&self, file: Bytes, path: Option<&Path>, read: bool, files: &ModelFiles) -> Result<Model> {
        let mut loaded = if openvino::is_ir(&file) {
            openvino::load(&file, path, &self.registry, files)?
        } else {
            onnx::load(file, read, &self.registry, files)?
        };
        let draft = std::mem::take(&mut loaded.draft);
        let graph = Graph::new(draft, self.optimize, &self.limits, &files.budget)?;
        Ok(Model::new(loaded, graph, self.threads.unwrap_or(usize::MAX), self.limits.clone()))
    }
}

fn operators(file: Bytes, files: &ModelFiles) -> Result<BTreeSet<(String, String)>> {
    if openvino::is_ir(&file) { openvino::operators(&file, files) } else { onnx::operators(file, files) }
}
