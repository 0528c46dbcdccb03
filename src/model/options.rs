//! How to load a model.

use super::{Inspection, Model};
use crate::error::{Error, Result, quote};
use crate::files::{LoadedModel, ModelFiles, Places, check_format};
use crate::graph::{Graph, Loading};
use crate::limits::{Limits, exceeded};
use crate::onnx;
use crate::openvino;
use crate::operator::{Compatibility, Node, Operator};
use crate::registry::{Own, Registry};
use crate::schema::Schema;
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to load a model: [`Model::options`].
#[derive(Debug, Clone)]
#[must_use]
pub struct LoadOptions {
    registry: Registry,
    places: Places,
    pub(super) threads: Option<usize>,
    pub(super) limits: Limits,
    optimize: bool,
    fast_math: bool,
    pub(super) keep_packed: bool,
    dimensions: Vec<(String, usize)>,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        let (registry, places, threads, limits, dimensions) = Default::default();
        let (optimize, fast_math, keep_packed) = (true, false, true);
        LoadOptions { registry, places, threads, limits, optimize, fast_math, keep_packed, dimensions }
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

    /// Maximum number of threads of a run, from the rayon pool that it is in, or as many as rayon's global one has. 1
    /// uses only the caller's thread. By default a run may use as many as the pool has. The results are the same, bit by bit.
    pub fn threads(mut self, threads: usize) -> LoadOptions {
        self.threads = Some(threads);
        self
    }

    /// Whether constants are computed at load, unread nodes dropped, and nodes computed together where that takes less time;
    /// true by default. The outputs are the same, bit by bit, but a dropped node can't fail.
    pub fn optimize(mut self, optimize: bool) -> LoadOptions {
        self.optimize = optimize;
        self
    }

    /// Whether sums may be computed in another way than the model writes them; false by default. It needs
    /// [`LoadOptions::optimize`]. The outputs then aren't those of the model as it is written, bit by bit, and their
    /// hashes are others; but they still are the same on each processor, with any number of threads.
    ///
    /// A MatMul, Gemm or Conv of dequantized integers of 8 bits, of which a QuantizeLinear makes integers of 8 bits again, is
    /// summed in integers alone. (Without it, a processor with AVX-512 VNNI, or for Conv with AVX2, sums integers where
    /// constant weights have no zero points, and floats where these could give another integer, which takes up to twice as
    /// long.) That is exact, where sums of float32 round. Numbers before they are rounded to integers differ by at most
    /// `(k + 8) * 2^-24 * sum / scale` from the written graph's, and where there is a bias by up to
    /// `x_scale * w_scale / 2 / scale` more: `k` is the number of products in a sum, `sum` that of their magnitudes and of
    /// the bias, and `scale` that of QuantizeLinear. So an integer differs by 1 at most where this is below 1, and only if
    /// the number is about as near to the middle of two integers.
    pub fn fast_math(mut self, fast_math: bool) -> LoadOptions {
        self.fast_math = fast_math;
        self
    }

    /// Whether the first run keeps constant matrices and filters in the form that products read fastest; true by default.
    /// Without it they take no memory beside the model's, those in mapped files leave it after each node, and each run takes
    /// longer. The outputs are the same, bit by bit.
    pub fn keep_packed(mut self, keep_packed: bool) -> LoadOptions {
        self.keep_packed = keep_packed;
        self
    }

    /// Gives a symbol in the shapes of the inputs, such as `batch`, a size: the model then takes only that, and more is
    /// known about its values at load.
    pub fn dimension(mut self, name: impl Into<String>, size: usize) -> LoadOptions {
        self.dimensions.push((name.into(), size));
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

    /// As [`Model::load`], of a file that isn't in the text form.
    pub(crate) fn load_binary(&self, path: &Path) -> Result<Model> {
        let files = self.files(Some(path));
        self.parse(self.read(path, &files)?, Some(path), !self.places.mmap, &files)
    }

    /// As [`LoadOptions::inspect`], of a file that isn't in the text form.
    pub(crate) fn inspect_binary(&self, path: &Path) -> Result<Inspection> {
        let files = self.files(Some(path));
        self.examine(self.read(path, &files)?, Some(path), !self.places.mmap, &files)
    }

    /// Whether files are mapped.
    pub(crate) fn maps(&self) -> bool {
        self.places.mmap
    }

    /// The files of a model at a path.
    pub(crate) fn files(&self, path: Option<&Path>) -> ModelFiles {
        ModelFiles::new(path, self.places.clone(), self.limits.clone())
    }

    /// The content of the model file.
    pub(crate) fn read(&self, path: &Path, files: &ModelFiles) -> Result<Bytes> {
        let check = |head: &[u8], size| {
            check_format(head)?;
            if openvino::is_ir(head) { Ok(()) } else { onnx::check_head(head, size) }
        };
        files.model(path, check)
    }

    /// Checks the size of bytes to load a model from.
    pub(crate) fn check(&self, bytes: Bytes) -> Result<Bytes> {
        let allowed = self.limits.file_bytes;
        if bytes.len() as u64 > allowed {
            return Err(exceeded("file_bytes", "the model has", bytes.len() as u128, "bytes", allowed));
        }
        Ok(bytes)
    }

    /// Reads the model into a draft. `read` says whether the file was read into memory, not mapped.
    /// `details` asks for what only an inspection shows.
    fn draft(
        &self,
        file: Bytes,
        path: Option<&Path>,
        read: bool,
        details: bool,
        files: &ModelFiles,
    ) -> Result<LoadedModel> {
        check_format(&file)?;
        let mut loaded = if openvino::is_ir(&file) {
            openvino::load(&file, path, &self.registry, files)?
        } else {
            onnx::load(file, read, details, &self.registry, files)?
        };
        for (name, size) in &self.dimensions {
            if !loaded.draft.set_dimension(name, *size) {
                let symbols: Vec<String> = loaded.draft.symbols().into_iter().map(quote).collect();
                let has = if symbols.is_empty() { "none".to_string() } else { symbols.join(", ") };
                let text = format!("no input has a dimension {}: the symbols of their shapes are {has}", quote(name));
                return Err(Error::input(text).about(name));
            }
        }
        Ok(loaded)
    }

    fn loading<'a>(&'a self, files: &'a ModelFiles, resolver: &'a Own<'a>) -> Loading<'a> {
        Loading { limits: &self.limits, budget: &files.budget, resolver, fast_math: self.fast_math }
    }

    /// Loads the content of a model file; `read` says whether it was read into memory, not mapped.
    pub(crate) fn parse(&self, file: Bytes, path: Option<&Path>, read: bool, files: &ModelFiles) -> Result<Model> {
        let mut loaded = self.draft(file, path, read, false, files)?;
        let draft = std::mem::take(&mut loaded.draft);
        let graph = Graph::new(draft, self.optimize, &self.loading(files, &Own::new(&files.budget)))?;
        Ok(Model::new(loaded, graph, files.opened(), self))
    }

    /// As [`LoadOptions::parse`], for an inspection.
    pub(crate) fn examine(
        &self,
        file: Bytes,
        path: Option<&Path>,
        read: bool,
        files: &ModelFiles,
    ) -> Result<Inspection> {
        let len = file.len() as u64;
        let mut loaded = self.draft(file, path, read, true, files)?;
        // The details are beside the draft.
        files.budget.allow_for(len);
        let draft = std::mem::take(&mut loaded.draft);
        let details = Graph::details(draft, self.optimize, &self.loading(files, &Own::new(&files.budget)))?;
        Ok(Inspection::new(loaded, details))
    }
}
