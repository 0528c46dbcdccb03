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
            self.counted = Some(context.memory.count(capacity * (size_of::<Tensor>() + Tensor::BESIDE))?);
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

    /// The type and shape of each tensor.
    fn each(&self, fact: &Fact) -> Result<(DType, Shape)> {
        if let Some(first) = self.list.first() {
            return Ok((first.dtype(), Shape::from_slice(first.shape())));
        }
        let dtype = fact.value_type().and_then(ValueType::dtype);
        let text = "an output that is stacked has no declared type, which is needed as the subgraph didn't run";
        let size = |dim: &Dim| dim.fixed().unwrap_or(0) as usize;
        Ok((dtype.ok_or_else(|| Error::model(text))?, fact.dims().unwrap_or(&[]).iter().map(size).collect()))
    }

    /// The tensors along a new axis; in reverse order if `reverse`. `fact` tells what they are if there is none:
    /// dimensions that it doesn't know are 0.
    pub(super) fn stacked(mut self, axis: i64, reverse: bool, fact: &Fact, context: &Context) -> Result<Tensor> {
        let (dtype, shape) = self.each(fact)?;
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

    /// The tensors along new axes 0 and 1, of a size each: `lengths` says how many there are for each entry of axis 0, the
    /// others are 0. `fact` as in [`Parts::stacked`].
    pub(super) fn batched(
        self,
        sizes: [usize; 2],
        lengths: impl Iterator<Item = Result<usize>>,
        fact: &Fact,
        context: &Context,
    ) -> Result<Tensor> {
        let (dtype, shape) = self.each(fact)?;
        let stack = shape_of([&sizes, &shape]);
        let joined = context.joined(&self.list.iter().collect::<Vec<_>>())?;
        let mut tensors = joined.as_ref().unwrap_or(&self.list).iter();
        let mut output = match tensors.as_slice().first() {
            Some(first) => context.output_like(first, stack)?,
            None => context.output_of(dtype, stack)?,
        };
        let row = kernels::volume(dtype.size(), &shape);
        let bytes = output.bytes_mut();
        kernels::fill(&[0], bytes, context.resources())?;
        for (entry, length) in bytes.chunks_exact_mut(kernels::volume(row, &sizes[1..]).max(1)).zip(lengths) {
            for (to, from) in entry.chunks_exact_mut(row.max(1)).zip(tensors.by_ref().take(length?)) {
                context.check_cancel()?;
                kernels::copied(from.bytes(), to, context.resources())?;
            }
        }
        Ok(output.finish())
    }
}

/// Adds the last results of a trip to the parts, and leaves the others.
pub(super) fn keep(parts: &mut [Parts], results: &mut Values, context: &Context) -> Result<()> {
    let last = results.take_last(parts.len());
    parts.iter_mut().zip(last).try_for_each(|(parts, value)| parts.push(value, context))
}

/// The entry of a tensor at a place along an axis.
pub(super) fn entry(tensor: &Tensor, axis: usize, at: usize, context: &Context) -> Result<Tensor> {
    let size = tensor.shape().get(axis).copied().ok_or_else(|| Error::bug("a tensor has no such axis"))?;
    let axis = Axis { given: axis as i64, at: axis, size };
    part(context, tensor, &axis, at, 1)?.reshaped(axis.replaced_in(tensor.shape(), &[]))
}
