//! A model: load it, query its inputs and outputs, run it.

mod inputs;
mod inspection;
mod options;
mod outputs;
mod runner;

pub use inputs::Inputs;
pub use inspection::Inspection;
pub(crate) use inspection::State;
pub use options::{IntoBytes, LoadOptions};
pub use outputs::Outputs;
pub use runner::Runner;

use crate::error::{Error, Result, quote};
use crate::files::LoadedModel;
use crate::graph::{Graph, NodeInfo, Slots, ValueInfo, Watch, Watching};
use crate::limits::Limits;
use crate::operator::{Cancel, Context, Feeds};
use crate::value::Value;
use smallvec::SmallVec;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A loaded model, cheap to clone. Many threads can run it at once. Everything that doesn't depend on the inputs is
/// decided at load.
///
/// ```
/// use ndarray::array;
/// use onnxref::{Model, inputs};
///
/// let model = Model::load("onnx-test-data/gather/onnx-1.12.0/node/test_gather_elements_0/model.onnx")?;
/// let (data, indices) = (array![[1.0f32, 2.0], [3.0, 4.0]], array![[0i64, 0], [1, 0]]);
/// let mut outputs = model.run(inputs! { "data" => data, "indices" => indices })?;
/// assert_eq!(outputs.take::<f32>("y")?, array![[1.0f32, 1.0], [4.0, 3.0]].into_dyn());
/// # Ok::<(), onnxref::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Model(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    graph: Graph,
    ir_version: i64,
    opsets: Vec<(String, i64)>,
    metadata: Vec<(String, String)>,
    /// How many of these have fields of their own.
    fields: usize,
    /// The name and the description of the graph.
    texts: [String; 2],
    files: Vec<PathBuf>,
    threads: usize,
    keep_packed: bool,
    limits: Limits,
    /// State of finished runs for later ones to reuse, mainly memory.
    #[allow(clippy::vec_box)] // a box is moved faster
    idle: Mutex<Vec<Box<(Slots, Context)>>>,
}

impl Model {
    /// Loads an `.onnx` file, or the `.xml` file of an OpenVINO IR with its `.bin` file beside it.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::Kind::Io): the file can't be read. [`Kind::Model`](crate::Kind::Model) and
    /// [`Kind::Unsupported`](crate::Kind::Unsupported): the model departs from the standard, or needs
    /// something that isn't implemented here; [`Error::causes`] has all faults.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        Model::options().load(path)
    }

    /// Loads a model from the content of its file. External data is an error, unless
    /// [`LoadOptions::external_data`] has it.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn from_bytes(bytes: impl IntoBytes) -> Result<Model> {
        Model::options().from_bytes(bytes)
    }

    /// Options for loading, set to their defaults.
    pub fn options() -> LoadOptions {
        LoadOptions::default()
    }

    fn new(loaded: LoadedModel, graph: Graph, files: Vec<PathBuf>, options: &LoadOptions) -> Model {
        let LoadedModel { ir_version, opsets, metadata, fields, graph: texts, .. } = loaded;
        let (idle, limits) = (Mutex::default(), options.limits.clone());
        let (threads, keep_packed) = (options.threads.unwrap_or(usize::MAX), options.keep_packed);
        Model(Arc::new(Loaded {
            graph,
            ir_version,
            opsets,
            metadata,
            fields,
            texts,
            files,
            threads,
            keep_packed,
            limits,
            idle,
        }))
    }

    /// The inputs, in the order of the model.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = &ValueInfo> {
        self.0.graph.inputs.iter().map(|input| &input.info)
    }

    /// Whether an input may be omitted because it has an initializer.
    pub fn has_default(&self, input: &str) -> bool {
        let graph = &self.0.graph;
        let default = graph.input_place(input).and_then(|place| graph.defaults.get(place));
        default.is_some_and(Option::is_some)
    }

    /// The outputs, in the order of the model.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = &ValueInfo> {
        self.0.graph.outputs.iter().map(|output| &output.info)
    }

    /// The limits that the model was loaded with, and that its runs have.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The version of the format.
    pub fn ir_version(&self) -> i64 {
        self.0.ir_version
    }

    /// The imported opsets: domain (empty for `ai.onnx`) and version.
    pub fn opsets(&self) -> &[(String, i64)] {
        &self.0.opsets
    }

    /// The model's metadata: `producer_name`, `doc_string`, .. as far as they are set, then its
    /// [`metadata_props`](Model::metadata_props).
    pub fn metadata(&self) -> &[(String, String)] {
        &self.0.metadata
    }

    /// The model's `metadata_props`, whose keys may be those of fields too.
    pub fn metadata_props(&self) -> &[(String, String)] {
        self.0.metadata.get(self.0.fields..).unwrap_or_default()
    }

    /// The name of the graph; empty if it has none.
    pub fn graph_name(&self) -> &str {
        let [name, _] = &self.0.texts;
        name
    }

    /// The `doc_string` of the graph; empty if it has none.
    pub fn graph_description(&self) -> &str {
        let [_, description] = &self.0.texts;
        description
    }

    /// The files beside the model file that it was loaded from, relative to its folder: external data, or the `.bin` file
    /// of an OpenVINO IR.
    pub fn external_files(&self) -> &[PathBuf] {
        &self.0.files
    }

    /// The number of nodes in the model, with functions expanded.
    pub fn node_count(&self) -> usize {
        self.0.graph.node_count
    }

    /// The nodes that a run executes, in order. Nodes that are computed at load, and nodes whose outputs are never read,
    /// are not among them: see [`LoadOptions::optimize`].
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeInfo<'_>> {
        self.0.graph.node_infos()
    }

    /// Harmless departures from the standard, and parts of the model that are not used, one line each.
    pub fn report(&self) -> &[String] {
        &self.0.graph.notes
    }

    /// Runs the model. Feeds have names or come in order: see [`inputs!`](crate::inputs).
    ///
    /// # Errors
    /// [`Kind::Input`](crate::Kind::Input): a feed is missing, is not an input of the model, or doesn't have the
    /// declared type and shape; or an operator refuses a value.
    pub fn run(&self, inputs: Inputs<'_>) -> Result<Outputs> {
        self.run_until(inputs, None, None)
    }

    /// As [`Model::run`], until `cancel` is called or its time is up.
    ///
    /// # Errors
    /// As [`Model::run`]; [`Kind::Cancelled`](crate::Kind::Cancelled) if it was stopped.
    ///
    /// ```
    /// use onnxref::{Cancel, Kind, Model, inputs};
    /// use std::time::Duration;
    ///
    /// let model = Model::load("onnx-test-data/gather/onnx-1.12.0/node/test_gather_elements_0/model.onnx")?;
    /// let feeds = inputs![ndarray::array![[1f32, 2.0], [3.0, 4.0]], ndarray::array![[0i64, 0], [1, 0]]];
    /// let error = model.run_with(feeds, &Cancel::after(Duration::ZERO)).unwrap_err();
    /// assert_eq!(error.kind(), Kind::Cancelled);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn run_with(&self, inputs: Inputs<'_>, cancel: &Cancel) -> Result<Outputs> {
        self.run_until(inputs, Some(cancel), None)
    }

    /// As [`Model::run_with`], while `watch` sees each node and its values.
    ///
    /// # Errors
    /// As [`Model::run_with`], and those of the watch.
    ///
    /// ```
    /// use onnxref::{Cancel, Model, NodeInfo, Result, Value, Watch, inputs};
    ///
    /// /// The names of the values that were computed.
    /// struct Names(Vec<String>);
    ///
    /// impl Watch for Names {
    ///     fn ends(&mut self, _: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
    ///         self.0.extend(outputs.iter().map(|(name, _)| name.to_string()));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let model = Model::load("onnx-test-data/gather/onnx-1.12.0/node/test_gather_elements_0/model.onnx")?;
    /// let feeds = inputs![ndarray::array![[1f32, 2.0], [3.0, 4.0]], ndarray::array![[0i64, 0], [1, 0]]];
    /// let mut names = Names(Vec::new());
    /// model.run_watched(feeds, &Cancel::new(), &mut names)?;
    /// assert_eq!(names.0, ["y"]);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn run_watched(&self, inputs: Inputs<'_>, cancel: &Cancel, watch: &mut dyn Watch) -> Result<Outputs> {
        self.run_until(inputs, Some(cancel), Some(watch))
    }

    fn run_until(&self, inputs: Inputs<'_>, cancel: Option<&Cancel>, watch: Watching<'_>) -> Result<Outputs> {
        let graph = &self.0.graph;
        let mut feeds: SmallVec<[Option<&Value>; 4]> = SmallVec::from_elem(None, graph.inputs.len());
        inputs.place(self, &mut feeds)?;
        let feeds = Feeds::Shared(&feeds);
        let symbols = graph.check_feeds(feeds)?;
        graph.check_ranks(feeds, &self.0.limits)?;
        let idle = self.0.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut state = idle.unwrap_or_else(|| self.state());
        let (slots, context) = &mut *state;
        context.cancel = cancel.cloned();
        graph.run(feeds, slots, context, watch)?;
        let mut outputs = Outputs::default();
        for (k, output) in graph.outputs.iter().enumerate() {
            let value = graph.take(k, feeds, slots)?;
            value.hand_out(&context.memory);
            if let Value::Tensor(tensor) = &value {
                outputs.notes.extend(output.note(tensor.shape(), &symbols));
            }
            outputs.list.push((output.name.clone(), value));
        }
        slots.clear(context);
        // What it captures is the caller's, who may want to see it go.
        context.cancel = None;
        if let Ok(mut idle) = self.0.idle.lock() {
            idle.push(state);
        }
        Ok(outputs)
    }

    /// A runner for repeated runs: it keeps its feeds and its memory.
    pub fn runner(&self) -> Runner {
        Runner::new(self.clone())
    }

    /// The state of a run, which the next one reuses.
    fn state(&self) -> Box<(Slots, Context)> {
        let mut context = Context::new(self.0.threads, self.0.limits.clone());
        context.keeps_packed = self.0.keep_packed;
        Box::new((Slots::default(), context))
    }

    /// The steps of work that were charged in the last run that ended well.
    #[cfg(test)]
    pub(crate) fn charged(&self) -> u64 {
        self.0.idle.lock().ok().and_then(|idle| Some(idle.last()?.1.charged())).unwrap_or(0)
    }

    /// The place of an input.
    fn place(&self, name: &str) -> Result<usize> {
        self.0.graph.input_place(name).ok_or_else(|| self.undeclared(name))
    }

    #[cold]
    fn undeclared(&self, name: &str) -> Error {
        let version = self.0.ir_version;
        let why = if self.0.graph.fixed.iter().any(|fixed| fixed == name) {
            format!("has an initializer, which can't be overridden under IR version {version}")
        } else {
            let names: Vec<String> = self.inputs().map(|info| quote(&info.name)).collect();
            let takes = if names.is_empty() { "no inputs".to_string() } else { names.join(", ") };
            format!("is not an input of the model, which takes {takes}")
        };
        Error::input(format!("input {} {why}", quote(name))).about(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = {
        const fn shared<T: Send + Sync>() {}
        const fn sent<T: Send>() {}
        shared::<Model>();
        shared::<LoadOptions>();
        shared::<crate::Tensor>();
        shared::<Value>();
        shared::<Error>();
        sent::<Runner>();
    };

    /// What a caller's function captures goes with the run.
    #[test]
    fn a_finished_run_keeps_nothing_of_its_caller() {
        use crate::tensor::Tensor;
        let path = "onnx-test-data/gather/onnx-1.12.0/node/test_gather_elements_0/model.onnx";
        let model = Model::load(path).unwrap();
        let data = Tensor::from_elements(&[2, 2], vec![1f32, 2.0, 3.0, 4.0]).unwrap();
        for (index, runs) in [(0i64, true), (9, false)] {
            let indices = Tensor::from_elements(&[2, 2], vec![index; 4]).unwrap();
            let captured = Arc::new(());
            let own = Arc::clone(&captured);
            let cancel = Cancel::when(move || Arc::strong_count(&own) == 0);
            let ran = model.run_with(crate::inputs![&data, &indices], &cancel);
            drop(cancel);
            assert_eq!((ran.is_ok(), Arc::strong_count(&captured)), (runs, 1));
        }
    }

    #[test]
    fn what_is_no_model() {
        let error = |bytes: &'static [u8]| Model::from_bytes(bytes).unwrap_err().to_string();
        assert_eq!(error(b""), "the model file is empty");
        assert!(error(b"\xff\xff\xff").starts_with("the file is not an ONNX model, or is cut short"));
        assert_eq!(error(b"\x08\x08"), "opset_import is missing: IR version 8 needs it");
    }
}
