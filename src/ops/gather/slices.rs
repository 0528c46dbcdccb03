//! Gather: slices of `data` picked along one axis by `indices`.
//! <https://onnx.ai/onnx/operators/onnx__Gather.html>

use crate::ops::prelude::*;

pub(super) const GATHER: Implementation =
    Implementation { domain: "", name: "Gather", versions: &[1, 11, 13], make: Make::Run(load) };

/// `output[a.., i.., b..] = data[a.., indices[i..], b..]`, where `a..` are the dimensions before `axis`
#[derive(Debug)]
struct Gather {
    axis: i64,
    range: Range,
}

/// Version 1 has no negative indices: they came with version 11.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let negative = node.version() >= 11 || node.compatibility().gather_1_negative_indices;
    let range = if negative { Range::Signed } else { Range::Unsigned { until: 11 } };
    Ok(Box::new(Gather { axis: node.int("axis")?, range }))
}

impl Operator for Gather {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, data, indices) = (call.axis(0, self.axis)?, call.tensor(0)?, call.tensor(1)?);
        call.charge(indices.len() as u64)?;
        let work = kernels::gather::Gather {
            data: data.bytes(),
            axis: self.range.bounds(axis.size),
            row: kernels::volume(data.dtype().size(), data.shape().iter().skip(axis.at + 1)),
            indices: indices_of(indices)?,
        };
        let mut output = call.output_like(data, axis.replaced_in(data.shape(), indices.shape()))?;
        let outcome = kernels::gather::gather(work, output.bytes_mut(), call.resources());
        outcome.map_err(|why| out_of_range(why, call, &axis, self.range))?;
        Ok(smallvec![output.finish().into()])
    }

    fn infer(&self, inputs: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        let [Some(data), Some(indices)] = inputs else { return Ok(Vec::new()) };
        let (Some(data), Some(indices)) = (data.dims(), indices.dims()) else { return Ok(Vec::new()) };
        let Some(at) = Axis::place(self.axis.into(), data.len()) else { return Ok(Vec::new()) };
        let (before, after) = (data.get(..at).unwrap_or(&[]), data.get(at + 1..).unwrap_or(&[]));
        Ok(vec![Fact::default().with_dims([before, indices, after].concat())])
    }
}
