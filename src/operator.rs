//! What an operator is: attributes read once at load, and one pure function.

use crate::dtype::{DType, byte_count};
use crate::error::{Error, Kind, Result, quote};
use crate::kernels::{Resources, Stopped};
use crate::limits::{Limits, exceeded};
use crate::schema::Schema;
use crate::tensor::{Memory, Shape, Tensor};
use crate::value::Value;
use smallvec::SmallVec;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::schema::Attribute;

/// One operator of a node, its attributes already read.
///
/// Before [`run`](Operator::run) is called, the engine has checked the number of inputs and outputs and the inputs'
/// element types against the operator's [schema](crate::schema::Schema); after it, the outputs' element types. In
/// errors it adds the node and the operator, so an operator only says what is wrong.
pub trait Operator: fmt::Debug + Send + Sync {
    /// Computes the outputs.
    ///
    /// # Errors
    /// What the operator's text calls an error; see [`Error::input`].
    fn run(&self, call: &Call<'_>) -> Result<Values>;
}

/// What an operator returns: its outputs, in the order of the schema.
pub type Values = SmallVec<[Value; 1]>;

/// What the calls of a run share.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where outputs come from.
    pub(crate) memory: Memory,
    /// How many threads a call may use.
    pub(crate) threads: usize,
    pub(crate) limits: Limits,
    /// Elements produced so far.
    elements: Cell<u64>,
    pub(crate) cancel: Option<Cancel>,
}

impl Context {
    pub(crate) fn new(memory: Memory, threads: usize, limits: Limits) -> Context {
        Context { memory, threads, limits, elements: Cell::new(0), cancel: None }
    }

    /// Before each run.
    pub(crate) fn start(&self) {
        self.elements.set(0);
        self.memory.start();
    }

    /// The caller has not asked to stop.
    pub(crate) fn check_cancel(&self) -> Result<()> {
        match &self.cancel {
            Some(cancel) if cancel.is_cancelled() => Err(cancelled()),
            _ => Ok(()),
        }
    }

    /// The bytes of an output of this shape, which is within the limits.
    fn check_output(&self, dtype: DType, shape: &[usize]) -> Result<usize> {
        let Limits { rank, tensor_bytes, run_elements, .. } = self.limits;
        if shape.len() > rank {
            return Err(exceeded("rank", "the output has", shape.len() as u128, "dimensions", rank as u64));
        }
        let len = byte_count(dtype, shape)?;
        let bytes = len as u64;
        if bytes > tensor_bytes {
            return Err(exceeded("tensor_bytes", "the output takes", bytes.into(), "bytes", tensor_bytes));
        }
        let elements = self.elements.get().saturating_add(bytes / dtype.size() as u64);
        if elements > run_elements {
            return Err(exceeded("run_elements", "the run produces", elements.into(), "elements", run_elements));
        }
        self.elements.set(elements);
        Ok(len)
    }
}

/// Stops runs: see [`Runner::cancel_with`](crate::Runner::cancel_with). Clones stop the same.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// One that has not been called.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Stops runs that go on and those to come.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it has been called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The inputs of one call of an operator.
#[derive(Debug)]
pub struct Call<'a> {
    inputs: &'a [Option<&'a Value>],
    outputs: usize,
    context: &'a Context,
}

impl<'a> Call<'a> {
    pub(crate) fn new(inputs: &'a [Option<&'a Value>], outputs: usize, context: &'a Context) -> Call<'a> {
        Call { inputs, outputs, context }
    }

    /// How many threads the call may use. 1: only its own.
    pub fn threads(&self) -> usize {
        self.context.threads
    }

    /// The caller has not asked to stop: for operators that take long.
    ///
    /// # Errors
    /// It has.
    pub fn check_cancel(&self) -> Result<()> {
        self.context.check_cancel()
    }

    /// What a kernel may use.
    pub(crate) fn resources(&self) -> Resources<'_> {
        Resources { threads: self.context.threads, stop: self.context.cancel.as_ref().map(|cancel| &*cancel.0) }
    }

    /// A tensor of the type of `data` whose elements `fill` copies from there. What `fill` gets is not zero.
    pub(crate) fn output_like(
        &self,
        data: &Tensor,
        shape: Shape,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Tensor> {
        let len = self.context.check_output(data.dtype(), &shape)?;
        data.with_elements(shape, len, &self.context.memory, fill)
    }

    /// All inputs as the node lists them; `None` for an optional one that is left out.
    pub fn inputs(&self) -> &'a [Option<&'a Value>] {
        self.inputs
    }

    /// The number of outputs that the node lists; trailing optional ones may be left out.
    pub fn output_count(&self) -> usize {
        self.outputs
    }

    /// The tensor at an input.
    ///
    /// # Errors
    /// The input is left out, or is no tensor.
    #[inline]
    pub fn tensor(&self, k: usize) -> Result<&'a Tensor> {
        self.optional_tensor(k)?.ok_or_else(|| Error::model(format!("input {k} is left out, and is needed")))
    }

    /// The tensor at an optional input.
    ///
    /// # Errors
    /// The input is no tensor.
    #[inline]
    pub fn optional_tensor(&self, k: usize) -> Result<Option<&'a Tensor>> {
        self.inputs.get(k).copied().flatten().map(Value::tensor).transpose()
    }
}

fn cancelled() -> Error {
    Error::new(Kind::Cancelled, "the run was cancelled by its caller")
}

/// The error for a kernel that stopped. Which index is out of range only the operator can say.
pub(crate) fn stopped(why: Stopped) -> Error {
    match why {
        Stopped::OutOfRange => Error::unsupported("a kernel refused indices that are in range: please report this"),
        Stopped::Cancelled => cancelled(),
        Stopped::Panicked => Error::unsupported("a helper thread panicked: please report this"),
    }
}

/// Departures from the standard's text that other engines allow and that a caller may ask for, by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compatibility {
    /// Gather-1 takes negative indices too, as from version 11 on: -1 is the last entry.
    pub gather_1_negative_indices: bool,
}

/// A node's attributes: those that it gives and, for the others, the defaults. Names and kinds are checked.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    pub(crate) values: Vec<(String, Attribute)>,
    pub(crate) compatibility: Compatibility,
}

impl Attributes {
    /// The value of an attribute; `None` where it is not given and has no default.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.values.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The value of an attribute of kind INT.
    ///
    /// # Errors
    /// The attribute is missing or of another kind.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.get(name) {
            Some(Attribute::Int(value)) => Ok(*value),
            other => Err(wrong(name, "INT", other)),
        }
    }

    /// The value of an attribute of kind FLOAT.
    ///
    /// # Errors
    /// The attribute is missing or of another kind.
    pub fn float(&self, name: &str) -> Result<f32> {
        match self.get(name) {
            Some(Attribute::Float(value)) => Ok(*value),
            other => Err(wrong(name, "FLOAT", other)),
        }
    }

    /// The departures from the standard that the caller asked for.
    pub fn compatibility(&self) -> Compatibility {
        self.compatibility
    }
}

fn wrong(name: &str, kind: &str, found: Option<&Attribute>) -> Error {
    let what = if found.is_some() { "is of another kind" } else { "is not given" };
    Error::model(format!("attribute {} of kind {kind} {what}", quote(name)))
        .at(|place| place.attribute = Some(name.into()))
}

/// Makes an operator from its attributes, once, when a model is loaded.
pub type Load = fn(&Attributes) -> Result<Box<dyn Operator>>;

/// As [`Load`], of a user's operator.
pub(crate) type LoadCustom = Arc<dyn Fn(&Attributes) -> Result<Box<dyn Operator>> + Send + Sync>;

/// An operator version and how to make it.
#[derive(Clone)]
pub(crate) struct Resolved {
    pub(crate) schema: Arc<Schema>,
    pub(crate) load: LoadCustom,
    pub(crate) compatibility: Compatibility,
}

impl Resolved {
    /// The operator with these attributes, which have been checked against the schema.
    pub(crate) fn load(&self, values: Vec<(String, Attribute)>) -> Result<Box<dyn Operator>> {
        (self.load)(&Attributes { values, compatibility: self.compatibility })
    }
}

/// An operator and the versions of it that are implemented, oldest first.
#[derive(Debug)]
pub(crate) struct Implementation {
    pub(crate) domain: &'static str,
    pub(crate) name: &'static str,
    pub(crate) versions: &'static [(i64, Load)],
}

/// What an operator's file needs.
pub(crate) mod prelude {
    pub(crate) use super::{Attributes, Call, Implementation, Operator, Values, stopped};
    pub(crate) use crate::error::{Error, Kind, Result};
    pub(crate) use crate::kernels::index::{
        Axis, Range, first_out_of_range, indices_of, integer, tuple_positions, unequal_batch, widened,
    };
    pub(crate) use crate::kernels::{self, Stopped};
    pub(crate) use crate::tensor::{Tensor, shape_of};
    pub(crate) use smallvec::smallvec;
}
