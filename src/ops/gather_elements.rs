//! GatherElements: for each position of `indices`, the element of `data` at that position with its coordinate along
//! one axis replaced by the index.
//! <https://onnx.ai/onnx/operators/onnx__GatherElements.html>

use crate::operator::prelude::*;

pub(super) static GATHER_ELEMENTS: Implementation =
    Implementation { domain: "", name: "GatherElements", versions: &[(11, load), (13, load)] };

/// `output[i, j, k] = data[i, indices[i, j, k], k]` for `axis` 1 of three; and so on for other ranks and axes
#[derive(Debug)]
struct GatherElements {
    axis: i64,
}

fn load(attributes: &Attributes) -> Result<Box<dyn Operator>> {
    Ok(Box::new(GatherElements { axis: attributes.int("axis")? }))
}

impl Operator for GatherElements {
    fn run(&self, call: &Call<'_>) -> Result<Values> {
        let (data, indices) = (call.tensor(0)?, call.tensor(1)?);
        let axis = Axis::new(self.axis, "data", data)?;
        check_shapes(data.shape(), indices.shape(), axis.at)?;
        let (size, values) = (data.dtype().size(), indices_of(indices)?);
        let grid = kernels::gather::Grid { data: data.shape(), indices: indices.shape(), axis: axis.at };
        let output = call.output_like(data, shape_of([indices.shape()]), |out| {
            let outcome = kernels::gather::gather_elements(data.bytes(), size, &grid, values, out, call.resources());
            outcome.map_err(|why| match why {
                Stopped::OutOfRange => first_out_of_range(indices, &axis, Range::Signed),
                why => stopped(why),
            })
        })?;
        Ok(smallvec![output.into()])
    }
}

/// The equation reads `data` at every position of `indices` off the axis, so `indices` may not reach beyond it there.
fn check_shapes(data: &[usize], indices: &[usize], axis: usize) -> Result<()> {
    if data.len() != indices.len() {
        return Err(Error::input(format!(
            "\"indices\" has rank {}, \"data\" has rank {}: they must be equal",
            indices.len(),
            data.len()
        ))
        .at(|place| place.value_name = Some("indices".into())));
    }
    for (d, (&have, &want)) in data.iter().zip(indices).enumerate() {
        if d != axis && want > have {
            return Err(Error::input(format!(
                "dimension {d} of \"indices\" is {want}, and of \"data\" {have}: off the axis {axis} it may not be larger"
            ))
            .at(|place| {
                place.value_name = Some("indices".into());
                place.axis = Some(d as i64);
                place.size = Some(have);
                place.value = Some(want as i128);
            }));
        }
    }
    Ok(())
}
