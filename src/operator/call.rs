//! What an operator sees when it runs: its inputs and the run's memory.

use super::{Compatibility, Context, Fact, Inference, Node, Source, Sources, Values};
use crate::dtype::{DType, Element, ShapeText, byte_count};
use crate::error::{Error, Result, quote};
use crate::schema::Schema;
use crate::tensor::{NewTensor, Scratch, Shape, Tensor};
use crate::value::{Sequence, Value};
use kernels::{self, Lookout, Resources};
use smallvec::SmallVec;
use std::cell::Cell;

/// One call of an operator.
///
/// Outputs are allocated here, so that the run counts their memory beforehand.
#[derive(Debug)]
pub struct Call<'a> {
    /// Where the inputs are; `None` for an omitted one.
    pub(crate) inputs: &'a [Option<Source>],
    pub(crate) sources: Sources<'a>,
    pub(crate) schema: &'a Schema,
    /// The number of outputs, and a bit for each of the first 64 that the node names.
    pub(crate) outputs: usize,
    pub(crate) wanted: u64,
    pub(crate) context: &'a Context,
}

/// The element of a tensor that has one, of rank 0 or 1; `name` says which tensor.
pub(crate) fn one_element<T: Element + Copy>(tensor: &Tensor, name: &str) -> Result<T> {
    match tensor.as_slice::<T>()? {
        [value] if tensor.rank() < 2 => Ok(*value),
        _ => Err(not_one(tensor, name)),
    }
}

#[cold]
fn not_one(tensor: &Tensor, name: &str) -> Error {
    Error::input(format!("{name} has shape {}: one value is needed", ShapeText(tensor.shape())))
}

impl Call<'_> {
    /// Maximum number of threads of the call, including its own.
    pub fn threads(&self) -> usize {
        self.context.threads
    }

    /// Fails if the run was cancelled. For operators that take long.
    ///
    /// # Errors
    /// If the run was cancelled.
    pub fn check_cancel(&self) -> Result<()> {
        self.context.check_cancel()
    }

    /// Counts steps of work beyond the elements of the outputs, before they are done.
    ///
    /// # Errors
    /// If they exceed [`Limits::run_work`](crate::Limits::run_work).
    #[inline]
    pub fn charge(&self, work: u64) -> Result<()> {
        self.context.charge(work)
    }

    /// The resources for a kernel.
    #[inline]
    pub(crate) fn resources(&self) -> Resources<'_> {
        self.context.resources()
    }

    /// For a loop of the operator's own: asks every so often whether the run was cancelled.
    #[inline]
    pub(crate) fn lookout(&self) -> Lookout<'_> {
        self.resources().lookout()
    }

    /// The number of inputs that the node lists; trailing optional ones may be omitted.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The value of an input; `None` if it is omitted.
    #[inline]
    pub fn input(&self, k: usize) -> Option<&Value> {
        self.sources.get((*self.inputs.get(k)?)?)
    }

    /// The tensor of an input.
    ///
    /// # Errors
    /// If the input is omitted, or is not a tensor.
    #[inline]
    pub fn tensor(&self, k: usize) -> Result<&Tensor> {
        match self.input(k) {
            Some(value) => value.tensor(),
            None => Err(self.left_out(k)),
        }
    }

    /// The sequence of an input.
    pub(crate) fn sequence(&self, k: usize) -> Result<&Sequence> {
        self.input(k).ok_or_else(|| self.left_out(k))?.sequence()
    }

    /// The tensor of an optional input.
    ///
    /// # Errors
    /// If the input is not a tensor.
    #[inline]
    pub fn optional_tensor(&self, k: usize) -> Result<Option<&Tensor>> {
        self.input(k).map(Value::tensor).transpose()
    }

    /// What a rule finds in the inputs: a run refuses what inference does, in the same words.
    pub(crate) fn by_rule<T>(&self, rule: impl FnOnce(&Inference<'_>) -> Result<T>) -> Result<T> {
        let (mut rule, mut found) = (Some(rule), None);
        self.with_facts(&mut |facts| found = rule.take().map(|rule| rule(facts)));
        found.unwrap_or_else(|| Err(Error::bug("a rule wasn't asked")))
    }

    /// As [`Call::by_rule`], compiled once.
    fn with_facts(&self, rule: &mut dyn FnMut(&Inference<'_>)) {
        let fact = |k: usize| self.input(k).cloned().map(Fact::constant);
        let facts: SmallVec<[Option<Fact>; 3]> = (0..self.inputs.len()).map(fact).collect();
        let (inputs, note): (SmallVec<[_; 3]>, _) = (facts.iter().map(Option::as_ref).collect(), Cell::default());
        let (schema, outputs, compatibility) = (self.schema, self.outputs, Compatibility::default());
        let node = Node {
            schema,
            attributes: &[],
            inputs: &inputs,
            outputs,
            bodies: &[],
            compatibility,
            note: &note,
            budget: None,
        };
        rule(&Inference::new(node));
    }

    /// The tensor of an input that must have at least one dimension.
    #[inline]
    pub(crate) fn ranked(&self, k: usize) -> Result<&Tensor> {
        let tensor = self.tensor(k)?;
        if tensor.rank() > 0 { Ok(tensor) } else { Err(self.no_rank(k)) }
    }

    #[cold]
    fn no_rank(&self, k: usize) -> Error {
        let name = self.name(k);
        Error::input(format!("{} is a scalar: it needs a rank of at least 1", quote(name))).parameter(name)
    }

    /// Takes the value of an input if it isn't needed later, so that its memory can become an output.
    #[inline]
    pub fn take(&mut self, k: usize) -> Option<Value> {
        self.sources.take((*self.inputs.get(k)?)?)
    }

    /// The value at an input: taken out of the call if nobody reads it later.
    pub(crate) fn taken(&mut self, k: usize) -> Result<Value> {
        let taken = self.take(k).or_else(|| self.input(k).cloned());
        taken.ok_or_else(|| self.left_out(k))
    }

    /// The int64 values of an input of rank 0 or 1.
    pub(crate) fn list(&self, k: usize) -> Result<&[i64]> {
        let tensor = self.tensor(k)?;
        if tensor.rank() < 2 {
            return tensor.as_slice();
        }
        let (name, shape) = (self.name(k), ShapeText(tensor.shape()));
        Err(Error::input(format!("{} has shape {shape}: a list is needed", quote(name))).parameter(name))
    }

    /// The value of an input of one element, of rank 0 or 1.
    pub(crate) fn scalar<T: Element + Copy>(&self, k: usize) -> Result<T> {
        one_element(self.tensor(k)?, &quote(self.name(k))).map_err(|error| error.parameter(self.name(k)))
    }

    /// The value of an input of one element, of whatever rank.
    pub(crate) fn only_element<T: Element + Copy>(&self, k: usize) -> Result<T> {
        let tensor = self.tensor(k)?;
        match tensor.as_slice::<T>()? {
            [value] => Ok(*value),
            _ => Err(not_one(tensor, &quote(self.name(k))).parameter(self.name(k))),
        }
    }

    /// The state of the run.
    pub(crate) fn context(&self) -> &Context {
        self.context
    }

    /// An output that starts as the input `k`: in its memory if nobody reads it later, else as a copy.
    pub(crate) fn output_over(&mut self, k: usize) -> Result<NewTensor> {
        let tensor = self.tensor(k)?;
        self.context.check_output(tensor.dtype(), tensor.shape())?;
        let tensor = match NewTensor::over(self.taken(k)?.into_tensor()?) {
            Ok(new) => return Ok(new),
            Err(tensor) => tensor,
        };
        let (shape, len) = (Shape::from_slice(tensor.shape()), tensor.bytes().len());
        let mut new = NewTensor::new(tensor.dtype(), shape, len, tensor.text(), &self.context.memory)?;
        kernels::copied(tensor.bytes(), new.bytes_mut(), self.resources())?;
        Ok(new)
    }

    /// Fails if an output of this rank exceeds the limits.
    pub(crate) fn check_rank(&self, rank: usize) -> Result<()> {
        self.context.check_rank(rank)
    }

    /// The elements of an input under another shape of as many, without a copy: all that an operator returns.
    pub(crate) fn reshaped(&mut self, k: usize, shape: Shape) -> Result<Values> {
        self.check_rank(shape.len())?;
        let tensor = self.taken(k)?.into_tensor()?;
        Ok([tensor.reshaped(shape)?.into()].into())
    }

    #[cold]
    fn left_out(&self, k: usize) -> Error {
        Error::model(format!("input {k}, {}, is left out, but needed", quote(self.name(k)))).parameter(self.name(k))
    }

    /// The formal name of an input.
    pub fn name(&self, k: usize) -> &str {
        self.schema.input(k).map_or("", |parameter| &parameter.name)
    }

    /// The number of outputs that the node lists; trailing optional ones may be omitted.
    pub fn output_count(&self) -> usize {
        self.outputs
    }

    /// Whether the node names an output. An output that it doesn't name may have any value.
    pub fn wants(&self, k: usize) -> bool {
        k < self.outputs && (k >= 64 || self.wanted >> k & 1 == 1)
    }

    /// A new tensor for an output, to be written.
    ///
    /// # Errors
    /// If it exceeds the limits of the run.
    ///
    /// ```
    /// use onnxref::operator::{Call, Operator, Values};
    /// use onnxref::Result;
    ///
    /// /// `y = 2 x`
    /// #[derive(Debug)]
    /// struct Double;
    ///
    /// impl Operator for Double {
    ///     fn run(&self, call: &mut Call<'_>) -> Result<Values> {
    ///         let x = call.tensor(0)?;
    ///         let mut y = call.output::<f32>(x.shape())?;
    ///         for (y, x) in y.elements_mut()?.iter_mut().zip(x.as_slice::<f32>()?) {
    ///             *y = 2.0 * x;
    ///         }
    ///         Ok([y.finish().into()].into())
    ///     }
    /// }
    /// ```
    pub fn output<T: Element>(&self, shape: &[usize]) -> Result<NewTensor> {
        self.output_of(T::DTYPE, Shape::from_slice(shape))
    }

    /// As [`Call::output`], for an element type.
    #[inline(always)]
    pub(crate) fn output_of(&self, dtype: DType, shape: Shape) -> Result<NewTensor> {
        self.context.output_of(dtype, shape)
    }

    /// As [`Call::output`], for elements copied from `data`.
    #[inline(always)]
    pub(crate) fn output_like(&self, data: &Tensor, shape: Shape) -> Result<NewTensor> {
        self.context.output_like(data, shape)
    }

    /// A new tensor of strings. Their text counts as work, and as bytes of the output.
    pub(crate) fn strings<S: AsRef<str>>(
        &self,
        shape: &[usize],
        strings: impl Iterator<Item = Result<S>>,
    ) -> Result<Tensor> {
        let mut bytes = self.context.check_output(DType::String, shape)? as u64;
        let mut lookout = self.lookout();
        let charged = strings.map(|string| {
            let string = string?;
            let text = string.as_ref().len() as u64;
            lookout.after(DType::String.size() + string.as_ref().len())?;
            bytes += text;
            self.context.check_bytes(bytes)?;
            self.charge(text)?;
            Ok(string)
        });
        Tensor::of_strings(shape, &self.context.memory, charged)
    }

    /// As [`Context::joined`].
    pub(crate) fn joined(&self, tensors: &[&Tensor]) -> Result<Option<Vec<Tensor>>> {
        self.context.joined(tensors)
    }

    /// Scratch memory for `count` elements of `T`.
    pub(crate) fn scratch<T: bytemuck::Pod>(&self, count: usize) -> Result<Scratch<'_>> {
        Scratch::new(count.saturating_mul(size_of::<T>()), align_of::<T>(), &self.context.memory)
    }

    /// Memory for a list of elements that the operator keeps between runs. Like scratch memory it counts while it is held.
    pub(crate) fn kept<T: Element>(&self, count: usize) -> Result<NewTensor> {
        self.kept_of(T::DTYPE, count)
    }

    /// As [`Call::kept`], for an element type.
    pub(crate) fn kept_of(&self, dtype: DType, count: usize) -> Result<NewTensor> {
        let len = byte_count(dtype, &[count])?;
        NewTensor::new(dtype, Shape::from_slice(&[count]), len, None, &self.context.memory)
    }
}
