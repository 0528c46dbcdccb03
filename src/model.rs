//! A model: load it, ask what it takes and gives, run it.

use crate::error::{Error, Result, quote};
use crate::graph::{Graph, Slots, ValueInfo};
use crate::limits::{Limits, exceeded};
use crate::onnx;
use crate::openvino;
use crate::operator::{Attributes, Cancel, Compatibility, Context, Operator};
use crate::registry::Registry;
use crate::schema::Schema;
use crate::tensor::{Memory, Pool, Tensor};
use crate::value::Value;
use bytes::Bytes;
use smallvec::SmallVec;
use std::ops::Index;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A loaded model. Everything that can be decided without inputs has been; running it is a loop.
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
#[derive(Debug)]
pub struct Model {
    graph: Graph,
    ir_version: i64,
    opsets: Vec<(String, i64)>,
    metadata: Vec<(String, String)>,
    notes: Vec<String>,
    threads: usize,
    limits: Limits,
    pool: Arc<Pool>,
}

/// How to load a model: [`Model::options`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct LoadOptions {
    registry: Registry,
    mmap: bool,
    roots: Vec<PathBuf>,
    threads: Option<usize>,
    limits: Limits,
}

impl Model {
    /// Loads an `.onnx` file, or the `.xml` file of an OpenVINO IR with its `.bin` file beside it.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::Kind::Io): the file can't be read. [`Kind::Model`](crate::Kind::Model) and
    /// [`Kind::Unsupported`](crate::Kind::Unsupported): the model departs from the standard, or uses what isn't
    /// implemented here; [`Error::causes`] has all faults.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        Model::options().load(path)
    }

    /// Loads a model from the content of an `.onnx` file. External data is an error.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Model> {
        Model::options().from_bytes(bytes)
    }

    /// Options that differ from the defaults.
    pub fn options() -> LoadOptions {
        LoadOptions::default()
    }

    /// What is fed, in the order of the model.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = &ValueInfo> {
        self.graph.inputs.iter().map(|input| &input.info)
    }

    /// Whether an input may be left out, as it has an initializer.
    pub fn has_default(&self, input: &str) -> bool {
        let input = self.graph.input_place(input).and_then(|place| self.graph.inputs.get(place));
        input.is_some_and(|input| input.default.is_some())
    }

    /// What a run gives, in the order of the model.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = &ValueInfo> {
        self.graph.outputs.iter().map(|output| &output.info)
    }

    /// The version of the format.
    pub fn ir_version(&self) -> i64 {
        self.ir_version
    }

    /// The imported opsets: domain (empty for `ai.onnx`) and version.
    pub fn opsets(&self) -> &[(String, i64)] {
        &self.opsets
    }

    /// Who made the model, and what it says about itself: `producer_name`, `doc_string`, .. and its own properties.
    pub fn metadata(&self) -> &[(String, String)] {
        &self.metadata
    }

    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.graph.node_count()
    }

    /// What departs from the standard, or is not used, without being in the way: a line each.
    pub fn report(&self) -> &[String] {
        &self.notes
    }

    /// Runs the model. Feeds are named: see [`inputs!`](crate::inputs).
    ///
    /// # Errors
    /// [`Kind::Input`](crate::Kind::Input): a feed is missing, is not an input of the model or has another type or
    /// shape than the model declares; or an operator refuses a value, and the error says which one where.
    pub fn run(&self, inputs: Inputs<'_>) -> Result<Outputs> {
        let mut feeds: SmallVec<[Option<&Value>; 4]> = SmallVec::from_elem(None, self.graph.inputs.len());
        for (k, (name, value)) in inputs.0.iter().enumerate() {
            // Feeds mostly come in the order of the inputs.
            let place = if self.graph.inputs.get(k).is_some_and(|input| input.info.name == *name) {
                k
            } else {
                self.place(name)?
            };
            match feeds.get_mut(place) {
                Some(feed) if feed.is_none() => *feed = Some(value),
                _ => return Err(fault(name, "is fed twice")),
            }
        }
        let symbols = self.graph.check_feeds(&feeds)?;
        let (mut slots, context) = (Slots::default(), self.context());
        self.graph.run(&feeds, &mut slots, &context)?;
        let mut outputs = Outputs { list: SmallVec::new(), notes: Vec::new() };
        for (k, output) in self.graph.outputs.iter().enumerate() {
            let value = self.graph.take(k, &feeds, &mut slots)?;
            outputs.notes.extend(output.note(value.tensor()?.shape(), &symbols));
            outputs.list.push((output.name.clone(), value));
        }
        Ok(outputs)
    }

    /// Something that runs the model again and again: it keeps its feeds and its memory.
    pub fn runner(&self) -> Runner<'_> {
        let feeds = self.graph.inputs.iter().map(|_| None).collect();
        Runner { model: self, feeds, checked: false, ran: false, slots: Slots::default(), context: self.context() }
    }

    fn context(&self) -> Context {
        Context::new(Memory::new(self.pool.clone(), self.limits.run_bytes), self.threads, self.limits.clone())
    }

    /// The place of an input.
    fn place(&self, name: &str) -> Result<usize> {
        self.graph.input_place(name).ok_or_else(|| self.undeclared(name))
    }

    fn undeclared(&self, name: &str) -> Error {
        if self.graph.fixed.iter().any(|fixed| fixed == name) {
            let version = self.ir_version;
            return fault(name, &format!("has an initializer, which can't be overridden under IR version {version}"));
        }
        let names: Vec<String> = self.inputs().map(|info| quote(&info.name)).collect();
        let takes =
            if names.is_empty() { "takes no inputs".to_string() } else { format!("takes {}", names.join(", ")) };
        fault(name, &format!("is not an input of the model, which {takes}"))
    }
}

fn fault(name: &str, text: &str) -> Error {
    Error::input(format!("input {} {text}", quote(name))).at(|place| place.value_name = Some(name.into()))
}

impl LoadOptions {
    /// Maps the model file and its external data into memory instead of reading them: loading is then a matter of
    /// milliseconds whatever the size, and only what is used takes memory.
    ///
    /// # Safety
    /// No file of the model may be changed by anyone while the model, or a tensor that came from it, is alive.
    #[allow(unsafe_code)] // the caller vouches for what can't be checked
    pub unsafe fn mmap(mut self) -> LoadOptions {
        self.mmap = true;
        self
    }

    /// What loading and running may cost, instead of [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> LoadOptions {
        self.limits = limits;
        self
    }

    /// A folder in which external data may be that is behind a link in the model's folder, as in the caches of model
    /// hubs. Without such a folder links are not followed.
    pub fn external_root(mut self, folder: impl Into<PathBuf>) -> LoadOptions {
        self.roots.push(folder.into());
        self
    }

    /// How many threads a run may use at the most: of the rayon pool that it is in, or of rayon's global one. 1 uses
    /// none but the caller's. Not set, all of them may be used. The results are the same, bit by bit.
    pub fn threads(mut self, threads: usize) -> LoadOptions {
        self.threads = Some(threads);
        self
    }

    /// Departures from the standard that other engines allow.
    pub fn compatibility(mut self, change: impl FnOnce(&mut Compatibility)) -> LoadOptions {
        change(&mut self.registry.compatibility);
        self
    }

    /// Adds an operator version. `schema` is a block in the form of the table of the standard
    /// ([`Schema::parse`]); `load` makes the operator from a node's attributes.
    /// The operator wins over one of the standard of the same domain and name.
    ///
    /// # Errors
    /// `schema` has another form, or the operator version was added before.
    ///
    /// ```
    /// use onnxref::operator::{Attributes, Call, Operator, Values};
    /// use onnxref::{Model, Result, Tensor};
    ///
    /// /// `y = factor x`
    /// #[derive(Debug)]
    /// struct Scale {
    ///     factor: f32,
    /// }
    ///
    /// impl Operator for Scale {
    ///     fn run(&self, call: &Call<'_>) -> Result<Values> {
    ///         let x = call.tensor(0)?.view::<f32>()?;
    ///         Ok([Tensor::from_array(x.mapv(|x| self.factor * x)).into()].into())
    ///     }
    /// }
    ///
    /// let options = Model::options().operator(
    ///     "com.example.Scale 1\n  (x: T) -> (y: T)\n  factor: FLOAT = 2.0\n  T: float",
    ///     |attributes: &Attributes| Ok(Box::new(Scale { factor: attributes.float("factor")? })),
    /// )?;
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn operator(
        mut self,
        schema: &str,
        load: impl Fn(&Attributes) -> Result<Box<dyn Operator>> + Send + Sync + 'static,
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
        let folder = onnx::Folder::of(path, self.roots.clone(), self.mmap, &self.limits);
        let file = folder.model(path)?;
        self.parse(file, Some(path), !self.mmap, &folder)
    }

    /// As [`Model::from_bytes`], with these options.
    ///
    /// # Errors
    /// As [`Model::from_bytes`].
    pub fn from_bytes(&self, bytes: impl Into<Bytes>) -> Result<Model> {
        let bytes = bytes.into();
        if bytes.len() as u64 > self.limits.file_bytes {
            let allowed = self.limits.file_bytes;
            return Err(exceeded("file_bytes", "the model has", bytes.len() as u128, "bytes", allowed));
        }
        self.parse(bytes, None, true, &onnx::Folder::none().with_limits(&self.limits))
    }

    fn parse(&self, file: Bytes, path: Option<&Path>, read: bool, folder: &onnx::Folder) -> Result<Model> {
        let parts = if openvino::is_ir(&file) {
            openvino::load(&file, path, &self.registry, folder)?
        } else {
            onnx::load(file, read, &self.registry, folder)?
        };
        let onnx::Parts { graph, ir_version, opsets, metadata, notes } = parts;
        let threads = self.threads.unwrap_or(usize::MAX);
        let (limits, pool) = (self.limits.clone(), Arc::default());
        Ok(Model { graph, ir_version, opsets, metadata, notes, threads, limits, pool })
    }
}

/// Runs a model again and again: what is fed stays fed, and memory is used again. Made by [`Model::runner`].
///
/// ```
/// use ndarray::array;
/// use onnxref::{Model, Tensor};
///
/// let model = Model::load("onnx-test-data/gather/onnx-1.12.0/node/test_gather_elements_0/model.onnx")?;
/// let mut runner = model.runner();
/// runner.feed("data", array![[1.0f32, 2.0], [3.0, 4.0]])?;
/// for (index, want) in [(0i64, 1.0f32), (1, 2.0)] {
///     runner.feed("indices", array![[index, 0], [0, 0]])?;
///     runner.run()?;
///     assert_eq!(runner.output("y")?, &Tensor::from_array(array![[want, 1.0], [3.0, 3.0]]));
/// }
/// # Ok::<(), onnxref::Error>(())
/// ```
#[derive(Debug)]
pub struct Runner<'m> {
    model: &'m Model,
    feeds: SmallVec<[Option<Value>; 4]>,
    /// The feeds have not changed since they were checked.
    checked: bool,
    /// The slots have the outputs of a run with these feeds.
    ran: bool,
    slots: Slots,
    context: Context,
}

impl Runner<'_> {
    /// Feeds a value to an input, in place of the one before.
    ///
    /// # Errors
    /// The model has no such input.
    pub fn feed(&mut self, name: &str, value: impl Into<Value>) -> Result<()> {
        let place = self.model.place(name)?;
        if let Some(feed) = self.feeds.get_mut(place) {
            (*feed, self.checked, self.ran) = (Some(value.into()), false, false);
        }
        Ok(())
    }

    /// Runs the model. The outputs of the run before are gone, and their memory is used again where nobody else
    /// holds it.
    ///
    /// # Errors
    /// As [`Model::run`].
    pub fn run(&mut self) -> Result<()> {
        self.ran = false;
        if !self.checked {
            self.model.graph.check_feeds(&self.feeds)?;
            self.checked = true;
        }
        self.model.graph.run(&self.feeds, &mut self.slots, &self.context)?;
        self.ran = true;
        Ok(())
    }

    /// An output of the last run.
    ///
    /// # Errors
    /// The model has no such output; the last run failed, or a feed has changed since.
    pub fn output(&self, name: &str) -> Result<&Tensor> {
        if !self.ran {
            return Err(Error::input("there are no outputs: the model was not run with these feeds"));
        }
        let place = self.model.graph.output_place(name);
        let place = place.ok_or_else(|| Error::input(format!("there is no output {}", quote(name))))?;
        self.model.graph.output(place, &self.feeds, &self.slots)?.tensor()
    }

    /// Runs stop soon after `cancel` is called, with an error of kind [`Kind::Cancelled`](crate::Kind::Cancelled).
    pub fn cancel_with(&mut self, cancel: &Cancel) {
        self.context.cancel = Some(cancel.clone());
    }

    /// Gives memory for outputs of later runs: that of `tensor`, whatever is in it. An output that fits is written
    /// there if it has elements of the same alignment.
    pub fn give(&mut self, tensor: Tensor) {
        tensor.recycle(&self.context.memory);
    }
}

/// Named values to feed: made by [`inputs!`](crate::inputs), or collected from pairs.
#[derive(Debug, Default)]
pub struct Inputs<'a>(SmallVec<[(&'a str, Value); 2]>);

impl<'a> Inputs<'a> {
    /// No values.
    pub fn new() -> Inputs<'a> {
        Inputs::default()
    }

    /// The same with one more value: a tensor, a reference to one, or an array.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: impl Into<Value>) -> Inputs<'a> {
        self.0.push((name, value.into()));
        self
    }
}

impl<'a, V: Into<Value>> FromIterator<(&'a str, V)> for Inputs<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, V)>>(pairs: I) -> Inputs<'a> {
        Inputs(pairs.into_iter().map(|(name, value)| (name, value.into())).collect())
    }
}

/// Values to feed to [`Model::run`], by name: tensors, references to them (which share the elements), or arrays.
///
/// ```
/// use ndarray::array;
/// use onnxref::{Tensor, inputs};
///
/// let data = Tensor::from_array(array![1.0f32, 2.0]);
/// let feeds = inputs! { "data" => &data, "indices" => array![1i64, 0] };
/// ```
#[macro_export]
macro_rules! inputs {
    ($($name:expr => $value:expr),* $(,)?) => {
        $crate::Inputs::new()$(.with($name, $value))*
    };
}

/// The values that a run gave, by name and in the order of the model.
#[derive(Debug)]
pub struct Outputs {
    list: SmallVec<[(Arc<str>, Value); 1]>,
    notes: Vec<String>,
}

impl Outputs {
    /// Takes an output out as an array.
    ///
    /// # Errors
    /// There is no output of that name (any more); its element type is not `T`.
    pub fn take<T: crate::Element>(&mut self, name: &str) -> Result<ndarray::ArrayD<T>> {
        let place = self.list.iter().position(|(n, _)| **n == *name);
        let place = place.ok_or_else(|| Error::input(format!("there is no output {}", quote(name))))?;
        self.list.remove(place).1.into_tensor()?.into_array()
    }

    /// The output of a name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.iter().find(|(n, _)| *n == name).map(|(_, tensor)| tensor)
    }

    /// All outputs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.list.iter().filter_map(|(name, value)| Some((&**name, value.tensor().ok()?)))
    }

    /// Outputs whose shape is not the one that the model declares, a line each. This is common in real models, and
    /// the values are right.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Index<&str> for Outputs {
    type Output = Tensor;

    /// The output of a name.
    ///
    /// # Panics
    /// There is none; see [`Outputs::get`].
    #[allow(clippy::panic)] // what an index does
    fn index(&self, name: &str) -> &Tensor {
        self.get(name).unwrap_or_else(|| panic!("there is no output {}", quote(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = {
        const fn shared<T: Send + Sync>() {}
        shared::<Model>();
        shared::<LoadOptions>();
        shared::<Tensor>();
        shared::<Error>();
    };

    #[test]
    fn what_is_no_model() {
        let error = |bytes: &'static [u8]| Model::from_bytes(bytes).unwrap_err().to_string();
        assert_eq!(error(b""), "the model file is empty");
        assert!(error(b"\xff\xff\xff").starts_with("the file is no ONNX model, or is cut short"));
        assert_eq!(error(b"\x08\x08"), "opset_import is missing: IR version 8 needs it");
    }
}
