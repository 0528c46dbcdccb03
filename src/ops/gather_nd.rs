//! GatherND: slices of `data` picked by the index tuples along the last dimension of `indices`.
//! <https://onnx.ai/onnx/operators/onnx__GatherND.html>

use crate::operator::prelude::*;

pub(super) static GATHER_ND: Implementation =
    Implementation { domain: "", name: "GatherND", versions: &[(11, load_11), (12, load), (13, load)] };

/// `output[b.., i.., s..] = data[b.., indices[b.., i.., 0], indices[b.., i.., 1], .., s..]`, where `b..` are the first
/// `batch_dims` dimensions
#[derive(Debug)]
struct GatherND {
    batch_dims: i64,
}

/// Version 11 has no batch dimensions.
fn load_11(_: &Attributes) -> Result<Box<dyn Operator>> {
    Ok(Box::new(GatherND { batch_dims: 0 }))
}

fn load(attributes: &Attributes) -> Result<Box<dyn Operator>> {
    Ok(Box::new(GatherND { batch_dims: attributes.int("batch_dims")? }))
}

impl Operator for GatherND {
    fn run(&self, call: &Call<'_>) -> Result<Values> {
        let (data, indices) = (call.tensor(0)?, call.tensor(1)?);
        let Split { batch, tuples, width, slice } = self.split(data.shape(), indices.shape())?;
        let rows = tuple_positions(data.shape(), batch.len(), width, indices)?;
        let shape = shape_of([batch, tuples, slice]);
        let work = kernels::gather::Gather {
            data: data.bytes(),
            axis: Range::Signed.bounds(kernels::volume(1, data.shape().iter().take(batch.len() + width))),
            row: kernels::volume(data.dtype().size(), slice),
            indices: kernels::gather::Indices::I64(&rows),
        };
        let output = call.output_like(data, shape, |out| {
            // Every tuple was checked when it became a row: an index out of range is a fault of ours.
            kernels::gather::gather(work, out, call.resources()).map_err(stopped)
        })?;
        Ok(smallvec![output.into()])
    }
}

/// The dimensions by their part in the equation.
struct Split<'a> {
    /// `b..`: the same in both.
    batch: &'a [usize],
    /// `i..`: the rest of the indices, but the last.
    tuples: &'a [usize],
    /// How many indices are in a tuple: the last dimension of the indices.
    width: usize,
    /// `s..`: the rest of the data.
    slice: &'a [usize],
}

impl GatherND {
    fn split<'a>(&self, data: &'a [usize], indices: &'a [usize]) -> Result<Split<'a>> {
        let (r, q) = (data.len(), indices.len());
        if let Some(name) = [("data", r), ("indices", q)].iter().find_map(|(name, rank)| (*rank == 0).then_some(*name))
        {
            return Err(Error::input(format!("\"{name}\" is a scalar: it needs a rank of at least 1"))
                .at(|place| place.value_name = Some(name.into())));
        }
        let least = r.min(q);
        let Some(b) = usize::try_from(self.batch_dims).ok().filter(|b| *b < least) else {
            let given = self.batch_dims;
            return Err(Error::model(format!(
                "batch_dims {given} is out of range for ranks {r} and {q}: allowed 0..={}",
                least - 1
            ))
            .at(|place| {
                place.attribute = Some("batch_dims".into());
                place.value = Some(given.into());
            }));
        };
        let ((batch, own), (same, rest)) = (indices.split_at(b), data.split_at(b));
        if let Some(d) = batch.iter().zip(same).position(|(i, d)| i != d) {
            return Err(unequal_batch(d, data, indices));
        }
        let (width, tuples) = own.split_last().map_or((0, own), |(width, tuples)| (*width, tuples));
        if width == 0 || width > rest.len() {
            return Err(Error::input(format!(
                "the last dimension of \"indices\" is {width}: allowed 1..={} for \"data\" of rank {r} with {b} batch dimensions",
                rest.len()
            ))
            .at(|place| {
                place.value_name = Some("indices".into());
                place.axis = Some(q as i64 - 1);
                place.value = Some(width as i128);
            }));
        }
        Ok(Split { batch, tuples, width, slice: rest.get(width..).unwrap_or(&[]) })
    }
}
