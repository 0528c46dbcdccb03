//! OpenVINO's Gather: as ONNX's, with the axis as an input, and batches.
//! <https://docs.openvino.ai/2024/documentation/openvino-ir-format/operation-sets/operation-specs/movement/gather-8.html>

use crate::operator::prelude::*;

pub(super) static GATHER: Implementation = Implementation {
    domain: "org.openvinotoolkit",
    name: "Gather",
    versions: &[(1, load_1), (7, load_7), (8, load_8)],
};

/// `output[b.., a.., i.., c..] = data[b.., a.., indices[b.., i..], c..]`, where `b..` are the first `batch_dims`
/// dimensions and `a..` those between them and `axis`
#[derive(Debug)]
struct Gather {
    batch_dims: i64,
    range: Range,
}

/// Version 1 has no batches. Neither it nor version 7 has negative indices.
fn load_1(_: &Attributes) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Gather { batch_dims: 0, range: Range::Unsigned { until: 8 } }))
}

fn load_7(attributes: &Attributes) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Gather { batch_dims: attributes.int("batch_dims")?, range: Range::Unsigned { until: 8 } }))
}

/// From version 8 on an index out of range gives zeros.
fn load_8(attributes: &Attributes) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Gather { batch_dims: attributes.int("batch_dims")?, range: Range::Signed }))
}

impl Operator for Gather {
    fn run(&self, call: &Call<'_>) -> Result<Values> {
        let (data, indices) = (call.tensor(0)?, call.tensor(1)?);
        let axis = axis_of(call.tensor(2)?, data)?;
        let batch = self.batch(data.shape(), indices.shape(), &axis)?;
        let (same, own) = indices.shape().split_at(batch);
        let values = widened(indices);
        let (n, batches) = (kernels::volume(1, own), kernels::volume(1, same));
        let work = kernels::gather::Gather {
            data: data.bytes(),
            axis: self.range.bounds(axis.size),
            row: kernels::volume(data.dtype().size(), data.shape().iter().skip(axis.at + 1)),
            indices: indices_of(&values)?,
        };
        let refused = |why| match why {
            Stopped::OutOfRange => first_out_of_range(indices, &axis, self.range),
            why => stopped(why),
        };
        let output = call.output_like(data, axis.replaced_in(data.shape(), own), |out| {
            let (from, to) = (data.bytes().len() / batches.max(1), out.len() / batches.max(1));
            if out.is_empty() {
                // Nothing is copied, however many batches there are, but bad indices are an error all the same.
                return match self.range {
                    Range::Signed => Ok(()),
                    _ => kernels::gather::gather(work, out, call.resources()).map_err(refused),
                };
            }
            for k in 0..batches {
                call.check_cancel()?;
                let (Some(data), Some(out)) =
                    (work.data.get(k * from..(k + 1) * from), out.get_mut(k * to..(k + 1) * to))
                else {
                    return Err(Error::unsupported("a batch is outside of the data: please report this"));
                };
                let work = kernels::gather::Gather { data, indices: work.indices.part(k * n, n), ..work };
                match (kernels::gather::gather(work, out, call.resources()), self.range) {
                    (Err(Stopped::OutOfRange), Range::Signed) => {
                        kernels::gather::gather_or_zero(work, out, call.resources()).map_err(stopped)?;
                    }
                    (outcome, _) => outcome.map_err(refused)?,
                }
            }
            Ok(())
        })?;
        Ok(smallvec![output.into()])
    }
}

/// The axis that the input names: a scalar, or one element.
fn axis_of(axis: &Tensor, data: &Tensor) -> Result<Axis> {
    let of_input = |error: Error| {
        error.with_kind(Kind::Input).at(|place| (place.attribute, place.value_name) = (None, Some("axis".into())))
    };
    let mut values = axis.scalars();
    let (Some(value), None) = (values.next(), values.next()) else {
        let shape = axis.shape();
        return Err(of_input(Error::input(format!("\"axis\" has shape {shape:?}: one element is needed"))));
    };
    let value = integer(&value);
    if axis.rank() > 1 {
        return Err(of_input(Error::input(format!("\"axis\" has rank {}: allowed 0 and 1", axis.rank()))));
    }
    if data.rank() == 0 {
        return Axis::new(value, "data", data);
    }
    Axis::new(value, "data", data).map_err(of_input)
}

impl Gather {
    /// How many dimensions are of the batch: they are the same in both. Negative values count from the end of
    /// the indices' rank.
    fn batch(&self, data: &[usize], indices: &[usize], axis: &Axis) -> Result<usize> {
        let (given, q, least) = (self.batch_dims, indices.len() as i64, indices.len().min(data.len()));
        let wrapped = if given < 0 { given.saturating_add(q) } else { given };
        let fault = |text: String, axis: Option<i64>| {
            Err(Error::model(text).at(|place| {
                place.attribute = Some("batch_dims".into());
                place.value = Some(given.into());
                place.axis = axis;
            }))
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
