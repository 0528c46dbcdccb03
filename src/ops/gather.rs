//! Gather: slices of `data` picked along one axis by `indices`.
//! <https://onnx.ai/onnx/operators/onnx__Gather.html>

use crate::operator::prelude::*;

pub(super) static GATHER: Implementation =
    Implementation { domain: "", name: "Gather", versions: &[(1, load_1), (11, load), (13, load)] };

/// `output[a.., i.., b..] = data[a.., indices[i..], b..]`, where `a..` are the dimensions before `axis`
#[derive(Debug)]
struct Gather {
    axis: i64,
    range: Range,
}

/// Version 1 has no negative indices: they came with version 11.
fn load_1(attributes: &Attributes) -> Result<Box<dyn Operator>> {
    let negative = attributes.compatibility().gather_1_negative_indices;
    let range = if negative { Range::Signed } else { Range::Unsigned { until: 11 } };
    Ok(Box::new(Gather { axis: attributes.int("axis")?, range }))
}

fn load(attributes: &Attributes) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Gather { axis: attributes.int("axis")?, range: Range::Signed }))
}

impl Operator for Gather {
    fn run(&self, call: &Call<'_>) -> Result<Values> {
        let (data, indices) = (call.tensor(0)?, call.tensor(1)?);
        let axis = Axis::new(self.axis, "data", data)?;
        let work = kernels::gather::Gather {
            data: data.bytes(),
            axis: self.range.bounds(axis.size),
            row: kernels::volume(data.dtype().size(), data.shape().iter().skip(axis.at + 1)),
            indices: indices_of(indices)?,
        };
        let output = call.output_like(data, axis.replaced_in(data.shape(), indices.shape()), |out| {
            kernels::gather::gather(work, out, call.resources()).map_err(|why| match why {
                Stopped::OutOfRange => first_out_of_range(indices, &axis, self.range),
                why => stopped(why),
            })
        })?;
        Ok(smallvec![output.into()])
    }
}
