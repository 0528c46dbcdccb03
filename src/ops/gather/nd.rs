//! GatherND: slices of `data` picked by the index tuples along the last dimension of `indices`.
//! <https://onnx.ai/onnx/operators/onnx__GatherND.html>

use crate::ops::prelude::*;

pub(super) const GATHER_ND: Implementation = Implementation::run("GatherND", &[11, 12, 13], load);

/// `output[b.., i.., s..] = data[b.., indices[b.., i.., 0], indices[b.., i.., 1], .., s..]`, where `b..` are the first
/// `batch_dims` dimensions
#[derive(Debug)]
struct GatherND {
    batch_dims: i64,
}

/// Version 11 has no batch dimensions.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let batch_dims = if node.version() < 12 { 0 } else { node.int("batch_dims")? };
    Ok(Box::new(GatherND { batch_dims }))
}

impl Operator for GatherND {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (data, indices) = (call.ranked(0)?, call.ranked(1)?);
        call.charge(indices.len() as u64)?;
        let Split { batch, tuples, width, slice } = self.split(data.shape(), indices.shape())?;
        let mut memory = call.scratch::<i64>(indices.len() / width)?;
        let rows = memory.elements_mut();
        tuple_positions(call, data.shape(), batch.len(), width, indices, rows)?;
        let work = kernels::gather::Gather {
            data: data.bytes(),
            axis: Range::Signed.bounds(kernels::volume(1, data.shape().iter().take(batch.len() + width))),
            row: kernels::volume(data.dtype().size(), slice),
            indices: kernels::gather::Indices::I64(rows),
        };
        let mut output = call.output_like(data, shape_of([batch, tuples, slice]))?;
        // Each tuple was checked when it became a row.
        kernels::gather::gather(work, output.bytes_mut(), &mut [], call.resources())?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let (Some(data), Some(indices)) = (facts.dims(0), facts.dims(1)) else { return Ok(()) };
        let Some((Dim::Fixed(width), tuples)) = indices.split_last() else { return Ok(()) };
        let batch = self.batch(data.len(), indices.len())?;
        let mut tuples = tuples.to_vec();
        for (d, dim) in tuples.iter_mut().enumerate().take(batch) {
            *dim = facts.same_size((0, d), (1, d))?;
        }
        let rest = data.get(batch..).unwrap_or_default();
        let Some(slice) = rest.get(*width..).filter(|_| *width > 0) else {
            return Err(wrong_width(*width, rest.len(), data.len(), indices.len()));
        };
        facts.give(0, [&*tuples, slice].concat());
        Ok(())
    }
}

/// The dimensions by their part in the equation.
struct Split<'a> {
    /// `b..`: equal in both.
    batch: &'a [usize],
    /// `i..`: the other dimensions of the indices, except the last.
    tuples: &'a [usize],
    /// The length of a tuple: the last dimension of the indices.
    width: usize,
    /// `s..`: the other dimensions of the data.
    slice: &'a [usize],
}

#[cold]
fn wrong_width(width: usize, most: usize, r: usize, q: usize) -> Error {
    let text = format!("the last dimension of \"indices\" is {width}: allowed 1..={most} for \"data\" of rank {r}");
    let text = format!("{text} with {} batch dimensions", r - most);
    Error::input(text).parameter("indices").axis(q as i64 - 1).value(width as i128)
}

impl GatherND {
    /// The number of batch dimensions, of tensors of these ranks.
    fn batch(&self, r: usize, q: usize) -> Result<usize> {
        let (given, least) = (self.batch_dims, r.min(q));
        usize::try_from(given).ok().filter(|batch| *batch < least).ok_or_else(|| {
            let most = least.saturating_sub(1);
            let text = format!("batch_dims {given} is out of range for ranks {r} and {q}: allowed 0..={most}");
            Error::model(text).attribute("batch_dims").value(given)
        })
    }

    fn split<'a>(&self, data: &'a [usize], indices: &'a [usize]) -> Result<Split<'a>> {
        let (r, q) = (data.len(), indices.len());
        let b = self.batch(r, q)?;
        let ((batch, own), (same, rest)) = (indices.split_at(b), data.split_at(b));
        if let Some(d) = batch.iter().zip(same).position(|(i, d)| i != d) {
            return Err(unequal_batch(d, data, indices));
        }
        let (width, tuples) = own.split_last().map_or((0, own), |(width, tuples)| (*width, tuples));
        if width == 0 || width > rest.len() {
            return Err(wrong_width(width, rest.len(), r, q));
        }
        Ok(Split { batch, tuples, width, slice: rest.get(width..).unwrap_or(&[]) })
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};

    #[test]
    fn the_examples_of_the_standard() {
        let data = tensor(&[2, 2], [0i32, 1, 2, 3]);
        run("GatherND", 11, [], [&data, &tensor(&[2, 2], [0i64, 0, 1, 1])]).gives(tensor(&[2], [0i32, 3]));
        run("GatherND", 13, [], [&data, &tensor(&[2, 1], [1i64, 0])]).gives(tensor(&[2, 2], [2i32, 3, 0, 1]));
        let data = tensor(&[2, 2, 2], [0i32, 1, 2, 3, 4, 5, 6, 7]);
        let batches = [int("batch_dims", 1)];
        run("GatherND", 12, batches, [&data, &tensor(&[2, 1], [1i64, 0])]).gives(tensor(&[2, 2], [2i32, 3, 4, 5]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[2, 2], [0i32, 1, 2, 3]);
        run("GatherND", 13, [], [&data, &tensor(&[1, 3], [0i64, 0, 0])]).fails("allowed 1..=2");
        run("GatherND", 13, [], [&data, &tensor(&[1, 2], [0i64, 2])]).fails("indices[0, 1] = 2 is out of range");
        run("GatherND", 13, [int("batch_dims", 2)], [&data, &tensor(&[1, 1], [0i64])]).fails("allowed 0..=1");
    }

    #[test]
    fn inferred() {
        infer("GatherND", 11, [], ["float[A, B, C]", "int64[N, 2]"]).gives("[N, C]");
        infer("GatherND", 12, [int("batch_dims", 1)], ["float[2, B, C]", "int64[N, M, 1]"]).gives("[2, M, C]");
        infer("GatherND", 13, [], ["float[A, B]", "int64[N, ?]"]).gives("");
        infer("GatherND", 12, [int("batch_dims", 1)], ["float[2, B, C]", "int64[3, M, 1]"])
            .fails("dimension 0 of \"data\" of shape [2, B, C] is 2, and dimension 0 of \"indices\"");
        infer("GatherND", 13, [int("batch_dims", 1)], ["float[2, B]", "int64[2, 2]"]).fails(
            "the last dimension of \"indices\" is 2: allowed 1..=1 for \"data\" of rank 2 with 1 batch dimensions",
        );
        infer("GatherND", 13, [int("batch_dims", 2)], ["float[2, B]", "int64[2, 2]"])
            .fails("batch_dims 2 is out of range");
    }
}
