//! Repeated runs of a model.

use super::Model;
use crate::error::{Error, Result, quote};
use crate::graph::{Slots, Watch, Watching};
use crate::operator::{Cancel, Context, Feeds};
use crate::tensor::Tensor;
use crate::value::Value;
use smallvec::SmallVec;

/// Runs a model repeatedly: feeds stay, and memory is reused. Made by [`Model::runner`]; it owns its share of the
/// model.
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
pub struct Runner {
    model: Model,
    feeds: SmallVec<[Option<Value>; 4]>,
    /// The feeds have not changed since they were checked.
    checked: bool,
    /// The slots have the outputs of a run with these feeds.
    ran: bool,
    state: Box<(Slots, Context)>,
}

impl Runner {
    pub(super) fn new(model: Model) -> Runner {
        let feeds = model.inputs().map(|_| None).collect();
        let state = model.state();
        Runner { model, feeds, checked: false, ran: false, state }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Feeds a value to an input, replacing the previous one.
    ///
    /// # Errors
    /// If the model has no such input.
    pub fn feed(&mut self, name: &str, value: impl Into<Value>) -> Result<()> {
        let place = self.model.place(name)?;
        self.feed_at(place, value)
    }

    /// As [`Runner::feed`], by the input's position in [`Model::inputs`].
    ///
    /// # Errors
    /// If the model has no such input.
    pub fn feed_at(&mut self, position: usize, value: impl Into<Value>) -> Result<()> {
        let count = self.feeds.len();
        let Some(feed) = self.feeds.get_mut(position) else {
            let text = format!("there is no input {position}: the model has {count}");
            return Err(Error::input(text).value(position as i128).size(count));
        };
        (*feed, self.checked, self.ran) = (Some(value.into()), false, false);
        Ok(())
    }

    /// Runs the model. The previous run's outputs are dropped, and their memory is reused unless someone else holds it.
    ///
    /// # Errors
    /// As [`Model::run`].
    pub fn run(&mut self) -> Result<()> {
        self.run_with(None)
    }

    /// As [`Runner::run`]; `watch` is called before and after each node, as by [`Model::run_watched`].
    ///
    /// # Errors
    /// As [`Model::run_watched`].
    pub fn run_watched(&mut self, watch: &mut dyn Watch) -> Result<()> {
        self.run_with(Some(watch))
    }

    fn run_with(&mut self, watch: Watching<'_>) -> Result<()> {
        self.ran = false;
        let graph = &self.model.0.graph;
        if !self.checked {
            graph.check_feeds(Feeds::Own(&self.feeds))?;
            graph.check_ranks(Feeds::Own(&self.feeds), &self.model.0.limits)?;
            self.checked = true;
        }
        let (slots, context) = &mut *self.state;
        graph.run(Feeds::Own(&self.feeds), slots, context, watch)?;
        self.ran = true;
        Ok(())
    }

    /// A tensor output of the last run.
    ///
    /// # Errors
    /// If the model has no such output, it is not a tensor, the last run failed, or a feed has changed since.
    pub fn output(&self, name: &str) -> Result<&Tensor> {
        self.value(name)?.tensor()
    }

    /// An output of the last run.
    ///
    /// # Errors
    /// If the model has no such output, the last run failed, or a feed has changed since.
    pub fn value(&self, name: &str) -> Result<&Value> {
        if !self.ran {
            return Err(Error::input("there are no outputs: the model was not run with these feeds"));
        }
        let graph = &self.model.0.graph;
        let place = graph.output_place(name);
        let place = place.ok_or_else(|| Error::input(format!("there is no output {}", quote(name))))?;
        graph.output(place, Feeds::Own(&self.feeds), &self.state.0)
    }

    /// Runs stop soon after `cancel` is called or its time is up, with an error of kind
    /// [`Kind::Cancelled`](crate::Kind::Cancelled).
    pub fn cancel_with(&mut self, cancel: &Cancel) {
        self.state.1.cancel = Some(cancel.clone());
    }

    /// Donates a tensor's buffer for reuse: an output of fitting size and alignment is written there.
    pub fn give(&mut self, tensor: Tensor) {
        tensor.recycle(&self.state.1.memory);
    }
}
