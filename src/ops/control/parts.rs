//! Tensors that trips produce one by one, and that are stacked in the end; entries of tensors along an axis.

use crate::ops::prelude::*;

/// The tensors that trips produced.
#[derive(Debug, Default)]
pub(super) struct Parts {
    list: Vec<Tensor>,
    /// The list's own memory.
    counted: Option<Counted>,
}

impl Parts {
    pub(super) fn push(&mut self, value: Value, context: &Context) -> Result<()> {
        if self.list.len() == self.list.capacity() {
            let capacity = (2 * self.list.len()).max(4);
            self.counted = Some(context.memory.count(capacity * size_of::<Tensor>())?);
            self.list.reserve_exact(capacity - self.list.len());
        }
        let tensor = value.into_tensor()?;
        if let Some(first) = self.list.first()
            && (first.dtype(), first.shape()) != (tensor.dtype(), tensor.shape())
        {
            let describe = |tensor: &Tensor| format!("{} of shape {}", tensor.dtype(), ShapeText(tensor.shape()));
            let (trip, first, next) = (self.list.len(), describe(first), describe(&tensor));
            let text = format!(
                "outputs of all trips are stacked, so they must be alike: trip 0 returns {first}, trip {trip} {next}"
            );
            return Err(Error::input(text));
        }
        self.list.push(tensor);
        Ok(())
    }

    /// Adds tensors of zeros until there are `count`.
    pub(super) fn fill_up(&mut self, count: usize, fact: &Fact, context: &Context) -> Result<()> {
        while self.list.len() < count {
            context.check_cancel()?;
            let (dtype, shape) = match self.list.first() {
                Some(first) => (first.dtype(), Shape::from_slice(first.shape())),
                None => described(fact)?,
            };
            let mut zeros = context.output_of(dtype, shape)?;
            kernels::fill(&[0], zeros.bytes_mut(), context.resources())?;
            self.push(zeros.finish().into(), context)?;
        }
        Ok(())
    }

    /// The tensors along a new axis; in reverse order if `reverse`. `fact` tells what they are if there is none:
    /// dimensions that it doesn't know are 0.
    pub(super) fn stacked(mut self, axis: i64, reverse: bool, fact: &Fact, context: &Context) -> Result<Tensor> {
        let (dtype, shape) = match self.list.first() {
            Some(first) => (first.dtype(), Shape::from_slice(first.shape())),
            None => described(fact)?,
        };
        let Some(at) = Axis::place(axis.into(), shape.len() + 1) else {
            let rank = shape.len() as i64 + 1;
            let text =
                format!("axis {axis} is out of range for an output of rank {rank}: allowed {}..={}", -rank, rank - 1);
            return Err(Error::model(text).value(axis));
        };
        let (outer, inner) = shape.split_at(at);
        let stack = shape_of([outer, &[self.list.len()], inner]);
        if self.list.is_empty() {
            return Ok(context.output_of(dtype, stack)?.finish());
        }
        if reverse {
            self.list.reverse();
        }
        join(context, &self.list.iter().collect::<Vec<_>>(), at, stack)
    }
}

/// The type and shape that a fact tells, with 0 for what it doesn't know.
fn described(fact: &Fact) -> Result<(DType, Shape)> {
    let dtype = fact.value_type().and_then(ValueType::dtype);
    let text = "an output that is stacked has no declared type, which is needed as the subgraph didn't run";
    let size = |dim: &Dim| dim.fixed().unwrap_or(0) as usize;
    Ok((dtype.ok_or_else(|| Error::model(text))?, fact.dims().unwrap_or(&[]).iter().map(size).collect()))
}

/// The entry of a tensor at a place along an axis.
pub(super) fn entry(tensor: &Tensor, axis: usize, at: usize, context: &Context) -> Result<Tensor> {
    let size = tensor.shape().get(axis).copied().ok_or_else(|| Error::bug("a tensor has no such axis"))?;
    let axis = Axis { given: axis as i64, at: axis, size };
    part(context, tensor, &axis, at, 1)?.reshaped(axis.replaced_in(tensor.shape(), &[]))
}
