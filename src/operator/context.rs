//! The state that the calls of a run share: memory, limits and cancellation.

use crate::dtype::{DType, byte_count};
use crate::error::{Error, Kind, Result};
use crate::limits::{Limits, exceeded};
use crate::tensor::{Memory, NewTensor, Shape, Tensor};
use crate::value::{Sequence, ValueType};
use kernels::{Resources, Stop, Stopped};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// The state that the calls of a run share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) memory: Memory,
    /// Maximum number of threads of a call.
    pub(crate) threads: usize,
    /// Whether constant operands are kept in the form that products read fastest.
    pub(crate) keeps_packed: bool,
    limits: Limits,
    /// Elements produced, nodes executed and steps of work done so far.
    elements: Cell<u64>,
    nodes: Cell<u64>,
    work: Cell<u64>,
    pub(crate) cancel: Option<Cancel>,
}

impl Context {
    pub(crate) fn new(threads: usize, limits: Limits) -> Context {
        let (elements, nodes, work) = Default::default();
        let (memory, keeps_packed) = (Memory::new(limits.run_bytes), true);
        Context { memory, threads, keeps_packed, limits, elements, nodes, work, cancel: None }
    }

    /// Resets the counters before a run.
    pub(crate) fn start(&self) {
        self.elements.set(0);
        self.nodes.set(0);
        self.work.set(0);
    }

    /// Number of values that a node may have without work.
    const FEW: usize = 64;

    /// Counts a node before it runs; if it has many inputs and outputs, or its body many slots, these are work. Fails if
    /// that exceeds a limit, or if the run was cancelled.
    #[inline]
    pub(crate) fn next_node(&self, values: usize) -> Result<()> {
        if values > Context::FEW {
            self.charge(values as u64)?;
        }
        let nodes = self.nodes.get() + 1;
        self.nodes.set(nodes);
        if nodes > self.limits.run_nodes {
            return Err(exceeded("run_nodes", "the run executes", nodes.into(), "nodes", self.limits.run_nodes));
        }
        self.check_cancel()
    }

    /// Fails if the run was cancelled.
    #[inline]
    pub(crate) fn check_cancel(&self) -> Result<()> {
        self.cancel.as_ref().map_or(Ok(()), Cancel::check)
    }

    /// Counts steps of work beyond the elements of outputs.
    #[inline]
    pub(crate) fn charge(&self, work: u64) -> Result<()> {
        let work = self.work.get().saturating_add(work);
        if work > self.limits.run_work {
            return Err(exceeded("run_work", "the run takes", work.into(), "steps", self.limits.run_work));
        }
        self.work.set(work);
        Ok(())
    }

    /// The steps of work that were counted in the last run.
    #[cfg(test)]
    pub(crate) fn charged(&self) -> u64 {
        self.work.get()
    }

    /// Counts an output of this shape, and returns its bytes.
    #[inline]
    pub(crate) fn check_output(&self, dtype: DType, shape: &[usize]) -> Result<usize> {
        self.limits.check_rank("the output has", shape.len())?;
        let run_elements = self.limits.run_elements;
        let len = byte_count(dtype, shape)?;
        let bytes = len as u64;
        self.check_bytes(bytes)?;
        let elements = self.elements.get().saturating_add(bytes / dtype.size() as u64);
        if elements > run_elements {
            return Err(exceeded("run_elements", "the run produces", elements.into(), "elements", run_elements));
        }
        self.elements.set(elements);
        Ok(len)
    }

    /// A new tensor for an output, to be written.
    #[inline(always)]
    pub(crate) fn output_of(&self, dtype: DType, shape: Shape) -> Result<NewTensor> {
        let len = self.check_output(dtype, &shape)?;
        NewTensor::new(dtype, shape, len, None, &self.memory)
    }

    /// As [`Context::output_of`], for elements copied from `data`.
    #[inline(always)]
    pub(crate) fn output_like(&self, data: &Tensor, shape: Shape) -> Result<NewTensor> {
        let len = self.check_output(data.dtype(), &shape)?;
        NewTensor::new(data.dtype(), shape, len, data.text(), &self.memory)
    }

    /// Checks the bytes of an output.
    #[inline]
    pub(super) fn check_bytes(&self, bytes: u64) -> Result<()> {
        let most = self.limits.tensor_bytes;
        if bytes > most {
            return Err(exceeded("tensor_bytes", "the output takes", bytes.into(), "bytes", most));
        }
        Ok(())
    }

    /// An empty sequence with room for `count` elements. Its list counts as memory.
    pub(crate) fn sequence(&self, element: Option<ValueType>, count: usize) -> Result<Sequence> {
        Sequence::with_room(element, count, &self.memory)
    }

    /// String tensors as views into one text, so that their elements can go to one output; `None` if the elements can do
    /// so as they are.
    pub(crate) fn joined(&self, tensors: &[&Tensor]) -> Result<Option<Vec<Tensor>>> {
        let mut lookout = self.resources().lookout();
        Tensor::joined(tensors, &self.memory, |bytes| self.charge(bytes), |bytes| Ok(lookout.after(bytes)?))
    }

    /// Checks the rank of an output.
    pub(super) fn check_rank(&self, rank: usize) -> Result<()> {
        self.limits.check_rank("the output has", rank)
    }

    /// Counts a tensor that an operator made by itself as an output.
    pub(crate) fn check_made(&self, tensor: &Tensor) -> Result<()> {
        self.check_output(tensor.dtype(), tensor.shape()).map(drop)
    }

    /// The resources for a kernel.
    #[inline]
    pub(crate) fn resources(&self) -> Resources<'_> {
        Resources { threads: self.threads, stop: self.cancel.as_ref().map(|cancel| &*cancel.0) }
    }
}

/// Error for a kernel that stopped. Only the operator can tell which index is out of range.
impl From<Stopped> for Error {
    #[cold]
    fn from(why: Stopped) -> Error {
        match why {
            Stopped::OutOfRange => Error::bug("a kernel refused indices that are in range"),
            Stopped::Cancelled => Error::new(Kind::Cancelled, "the run was cancelled by its caller"),
            Stopped::Late => Error::new(Kind::Cancelled, "the time of the run is up"),
            Stopped::Misfit => Error::bug("a kernel was given operands and an output that don't fit"),
            Stopped::Panicked => Error::bug("a helper thread panicked"),
        }
    }
}

/// Stops runs when called, after a time, or when asked: see [`Model::run_with`](crate::Model::run_with). Clones stop the
/// same runs.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Stop>);

impl Cancel {
    /// Stops nothing until it is called.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Stops runs once `time` has passed, or when it is called.
    pub fn after(time: Duration) -> Cancel {
        Cancel(Arc::new(Stop::after(time)))
    }

    /// Stops runs once `ask` returns true, or when it is called. Each thread of a run asks at every node, and in an
    /// operator after every few hundred KiB: `ask` should take no longer than looking at a clock.
    ///
    /// ```
    /// use onnxref::Cancel;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// static SHUTDOWN: AtomicBool = AtomicBool::new(false);
    /// let cancel = Cancel::when(|| SHUTDOWN.load(Ordering::Relaxed));
    /// assert!(!cancel.is_cancelled());
    /// SHUTDOWN.store(true, Ordering::Relaxed);
    /// assert!(cancel.is_cancelled());
    /// ```
    pub fn when(ask: impl Fn() -> bool + Send + Sync + 'static) -> Cancel {
        Cancel(Arc::new(Stop::when(ask)))
    }

    /// As [`Cancel::when`], and once `time` has passed.
    pub fn when_or_after(ask: impl Fn() -> bool + Send + Sync + 'static, time: Duration) -> Cancel {
        Cancel(Arc::new(Stop::when_or_after(ask, time)))
    }

    /// Stops current and future runs.
    pub fn cancel(&self) {
        self.0.stop();
    }

    /// Whether it was called or its time is up.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_set()
    }

    /// Fails as a run does then: for work beside it.
    ///
    /// # Errors
    /// [`Kind::Cancelled`]: it was called, or its time is up.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(self.0.reason().into()) } else { Ok(()) }
    }
}
