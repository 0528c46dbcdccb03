//! GatherElements: for each position of `indices`, the element of `data` at that position with its coordinate along
//! one axis replaced by the index.
//! <https://onnx.ai/onnx/operators/onnx__GatherElements.html>

use crate::ops::prelude::*;

pub(super) const GATHER_ELEMENTS: Implementation = Implementation::run("GatherElements", &[11, 13], load);

/// `output[i, j, k] = data[i, indices[i, j, k], k]` for `axis` 1 of three; and so on for other ranks and axes
#[derive(Debug)]
struct GatherElements {
    axis: i64,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(GatherElements { axis: node.int("axis")? }))
}

impl Operator for GatherElements {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, data, indices) = (call.axis(0, self.axis)?, call.tensor(0)?, call.tensor(1)?);
        check_grid(data.shape(), indices.shape(), axis.at)?;
        let (size, values) = (data.dtype().size(), indices_of(indices)?);
        let grid = kernels::gather::Grid { data: data.shape(), indices: indices.shape(), axis: axis.at };
        let mut output = call.output_like(data, shape_of([indices.shape()]))?;
        let out = output.bytes_mut();
        let outcome = kernels::gather::gather_elements(data.bytes(), size, &grid, values, out, call.resources());
        outcome.map_err(|why| out_of_range(why, call, &axis, Range::Signed))?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        check_known_grid(facts, self.axis)?;
        facts.give_shape_of(0, 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};

    #[test]
    fn the_examples_of_the_standard() {
        let (data, indices) = (tensor(&[2, 2], [1i32, 2, 3, 4]), tensor(&[2, 2], [0i64, 0, 1, 0]));
        run("GatherElements", 13, [int("axis", 1)], [&data, &indices]).gives(tensor(&[2, 2], [1i32, 1, 4, 3]));
        let data = tensor(&[3, 3], [1i32, 2, 3, 4, 5, 6, 7, 8, 9]);
        let indices = tensor(&[2, 3], [1i64, 2, 0, 2, 0, 0]);
        run("GatherElements", 11, [], [&data, &indices]).gives(tensor(&[2, 3], [4i32, 8, 3, 7, 2, 3]));
    }

    #[test]
    fn refusals() {
        let (data, wide) = (tensor(&[2, 1], [1i32, 2]), tensor(&[1, 2], [0i64, 0]));
        run("GatherElements", 13, [], [&data, &wide]).fails("off the axis 0 it may not be larger");
        run("GatherElements", 13, [], [&data, &tensor(&[1], [0i64])]).fails("they must be equal");
        run("GatherElements", 13, [], [&data, &tensor(&[1, 1], [-3i64])]).fails("indices[0, 0] = -3 is out of range");
    }

    #[test]
    fn inferred() {
        infer("GatherElements", 11, [], ["float[N, 3]", "int64[M, 2]"]).gives("[M, 2]");
        infer("GatherElements", 11, [], ["float[2, 3]", "int64[5, 4]"])
            .fails("dimension 1 of \"indices\" is 4, and of \"data\" 3: off the axis 0 it may not be larger");
        infer("GatherElements", 11, [], ["float[2, 3]", "int64[5]"]).fails("\"indices\" has shape [5] of rank 1");
        infer("GatherElements", 11, [int("axis", 2)], ["float[2, 3]", "int64[5, 4]"]).fails("axis 2 is out of range");
    }
}
