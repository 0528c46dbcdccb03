//! What an operator sees when it runs: its inputs and the run's memory.

use super::{Context, Source, Sources};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result, quote};
use crate::kernels::Resources;
use crate::schema::Schema;
use crate::tensor::{NewTensor, Scratch, Shape, Tensor};
use crate::value::Value;

/// One call of an operator.
///
/// Memory of outputs comes from here, so that the run counts it before it is taken.
#[derive(Debug)]
pub struct Call<'a> {
    /// Where the inputs are; `None` for one that is left out.
    pub(crate) inputs: &'a [Option<Source>],
    pub(crate) sources: Sources<'a>,
    pub(crate) schema: &'a Schema,
    /// The number of outputs; for each of the first 64, whether the node names it.
    pub(crate) outputs: usize,
    pub(crate) wanted: u64,
    pub(crate) context: &'a Context,
}

impl Call<'_> {
    /// Maximum number of threads of the call, its own included.
    pub fn threads(&self) -> usize {
        self.context.threads
    }

    /// Fails if the run was cancelled: for operators that take long.
    ///
    /// # Errors
    /// The run was cancelled.
    pub fn check_cancel(&self) -> Result<()> {
        self.context.check_cancel()
    }

    /// Counts steps of work that the size of the outputs doesn't show, before they are done.
    ///
    /// # Errors
    /// They exceed [`Limits::run_work`](crate::Limits::run_work).
    #[inline]
    pub fn charge(&self, work: u64) -> Result<()> {
        self.context.charge(work)
    }

    /// What a kernel may use.
    #[inline]
    pub(crate) fn resources(&self) -> Resources<'_> {
        self.context.resources()
    }

    /// The number of inputs that the node lists; trailing optional ones may be left out.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The value at an input; `None` where it is left out.
    #[inline]
    pub fn input(&self, k: usize) -> Option<&Value> {
        self.sources.get((*self.inputs.get(k)?)?)
    }

    /// The tensor at an input.
    ///
    /// # Errors
    /// The input is left out, or is no tensor.
    #[inline]
    pub fn tensor(&self, k: usize) -> Result<&Tensor> {
        match self.input(k) {
            Some(value) => value.tensor(),
            None => Err(self.left_out(k)),
        }
    }

    /// The tensor at an optional input.
    ///
    /// # Errors
    /// The input is no tensor.
    #[inline]
    pub fn optional_tensor(&self, k: usize) -> Result<Option<&Tensor>> {
        self.input(k).map(Value::tensor).transpose()
    }

    /// The tensor at an input, which has at least one dimension.
    #[inline]
    pub(crate) fn ranked(&self, k: usize) -> Result<&Tensor> {
        let tensor = self.tensor(k)?;
        if tensor.rank() > 0 { Ok(tensor) } else { Err(self.scalar(k)) }
    }

    #[cold]
    fn scalar(&self, k: usize) -> Error {
        let name = self.name(k);
        Error::input(format!("{} is a scalar: it needs a rank of at least 1", quote(name))).about(name)
    }

    /// Takes the value at an input out of the call if nobody reads it later, so that its memory can become an output.
    #[inline]
    pub fn take(&mut self, k: usize) -> Option<Value> {
        self.sources.take((*self.inputs.get(k)?)?)
    }

    #[cold]
    fn left_out(&self, k: usize) -> Error {
        Error::model(format!("input {k}, {}, is left out, but needed", quote(self.name(k)))).about(self.name(k))
    }

    /// The formal name of an input.
    pub fn name(&self, k: usize) -> &str {
        self.schema.input(k).map_or("", |parameter| &parameter.name)
    }

    /// The number of outputs that the node lists; trailing optional ones may be left out.
    pub fn output_count(&self) -> usize {
        self.outputs
    }

    /// Whether the node names an output. For one that it doesn't name, any value may be returned.
    pub fn wants(&self, k: usize) -> bool {
        k < self.outputs && (k >= 64 || self.wanted >> k & 1 == 1)
    }

    /// A new tensor to write an output in.
    ///
    /// # Errors
    /// It exceeds the limits of the run.
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

    /// As [`Call::output`], of an element type.
    #[inline]
    pub(crate) fn output_of(&self, dtype: DType, shape: Shape) -> Result<NewTensor> {
        let len = self.context.check_output(dtype, &shape)?;
        NewTensor::new(dtype, shape, len, &self.context.memory)
    }

    /// As [`Call::output`], for elements of `data`.
    #[inline]
    pub(crate) fn output_like(&self, data: &Tensor, shape: Shape) -> Result<NewTensor> {
        Ok(self.output_of(data.dtype(), shape)?.with_text_of(data))
    }

    /// Memory for `count` elements of `T` that is needed during the call.
    pub(crate) fn scratch<T: bytemuck::Pod>(&self, count: usize) -> Result<Scratch<'_>> {
        Scratch::new(count.saturating_mul(size_of::<T>()), align_of::<T>(), &self.context.memory)
    }
}
