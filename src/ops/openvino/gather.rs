//! OpenVINO's Gather: like ONNX's, with the axis as an input, and with batches.
//! <https://docs.openvino.ai/2024/documentation/openvino-ir-format/operation-sets/operation-specs/movement/gather-8.html>

use crate::ops::prelude::*;

pub(super) const GATHER: Implementation =
    Implementation { domain: "org.openvinotoolkit", name: "Gather", versions: &[1, 7, 8], make: Make::Run(load) };

/// `output[b.., a.., i.., c..] = data[b.., a.., indices[b.., i..], c..]`, where `b..` are the first `batch_dims`
/// dimensions and `a..` those between them and `axis`
#[derive(Debug)]
struct Gather {
    batch_dims: i64,
    range: Range,
}

/// Version 1 has no batches. From version 8 on, negative indices are allowed, and an index out of range gives zeros.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let batch_dims = if node.version() < 7 { 0 } else { node.int("batch_dims")? };
    let range = if node.version() < 8 { Range::Unsigned { until: 8 } } else { Range::Signed };
    Ok(Box::new(Gather { batch_dims, range }))
}

impl Operator for Gather {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (data, indices) = (call.tensor(0)?, call.tensor(1)?);
        let axis = axis_of(call)?;
        call.charge(indices.len() as u64)?;
        let batch = self.batch(data.shape(), indices.shape(), &axis)?;
        let (same, own) = indices.shape().split_at(batch);
        let mut memory = None;
        let values = widened(call, indices, &mut memory)?;
        let (n, batches) = (kernels::volume(1, own), kernels::volume(1, same));
        let work = kernels::gather::Gather {
            data: data.bytes(),
            axis: self.range.bounds(axis.size),
            row: kernels::volume(data.dtype().size(), data.shape().iter().skip(axis.at + 1)),
            indices: values,
        };
        let mut output = call.output_like(data, axis.replaced_in(data.shape(), own))?;
        let out = output.bytes_mut();
        let refused = |why| out_of_range(why, call, &axis, self.range);
        if out.is_empty() {
            // Nothing is copied, whatever the number of batches, but bad indices are still an error.
            if self.range != Range::Signed {
                pick(call, work, out)?.map_err(refused)?;
            }
            return Ok(output.finish().into());
        }
        let (from, to) = (data.bytes().len() / batches.max(1), out.len() / batches.max(1));
        for k in 0..batches {
            call.check_cancel()?;
            let (Some(data), Some(out)) = (work.data.get(k * from..(k + 1) * from), out.get_mut(k * to..(k + 1) * to))
            else {
                return Err(Error::bug("a batch is outside of the data"));
            };
            let work = kernels::gather::Gather { data, indices: work.indices.part(k * n, n), ..work };
            match (pick(call, work, out)?, self.range) {
                (Err(Stopped::OutOfRange), Range::Signed) => {
                    kernels::gather::gather_or_zero(work, out, call.resources())?;
                }
                (outcome, _) => outcome.map_err(refused)?,
            }
        }
        Ok(output.finish().into())
    }
}

/// The axis that the input names: a scalar, or one element.
fn axis_of(call: &Call<'_>) -> Result<Axis> {
    let axis = call.tensor(2)?;
    let mut values = axis.scalars();
    let (Some(value), None) = (values.next(), values.next()) else {
        let shape = axis.shape();
        return Err(Error::input(format!("\"axis\" has shape {shape:?}: one element is needed")).parameter("axis"));
    };
    if axis.rank() > 1 {
        return Err(Error::input(format!("\"axis\" has rank {}: allowed 0 and 1", axis.rank())).parameter("axis"));
    }
    call.ranked(0)?;
    call.axis(0, integer(&value))
        .map_err(|error| error.with_kind(Kind::Input).parameter("axis").at(|place| place.attribute = None))
}

impl Gather {
    /// The number of batch dimensions, which are equal in both. Negative values count from the end of the indices'
    /// rank.
    fn batch(&self, data: &[usize], indices: &[usize], axis: &Axis) -> Result<usize> {
        let (given, q, least) = (self.batch_dims, indices.len() as i64, indices.len().min(data.len()));
        let wrapped = if given < 0 { given.saturating_add(q) } else { given };
        let fault = |text: String, axis: Option<i64>| {
            Err(Error::model(text).attribute("batch_dims").value(given).at(|place| place.axis = axis))
        };
        let Some(batch) = usize::try_from(wrapped).ok().filter(|batch| *batch <= least) else {
            let (r, first) = (data.len(), -q);
            let text = format!("batch_dims {given} is out of range for ranks {r} and {q}: allowed {first}..={least}");
            return fault(text, None);
        };
        if batch > axis.at {
            let which = if given < 0 { format!(", which is {batch},") } else { String::new() };
            let text = format!("batch_dims {given}{which} is beyond the axis {}: it may not be", axis.at);
            return fault(text, Some(axis.given));
        }
        let differs = data.iter().zip(indices).take(batch).position(|(have, want)| have != want);
        match differs {
            None => Ok(batch),
            Some(d) => Err(unequal_batch(d, data, indices)),
        }
    }
}
