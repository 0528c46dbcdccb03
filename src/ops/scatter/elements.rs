//! ScatterElements and Scatter: `data` with the element at each position of `indices`, its coordinate along one axis
//! replaced by the index, updated.
//! <https://onnx.ai/onnx/operators/onnx__ScatterElements.html>, <https://onnx.ai/onnx/operators/onnx__Scatter.html>

use super::update::{reduction, updated};
use crate::ops::prelude::*;
use kernels::gather::Grid;
use kernels::scatter::{Reduction, scatter_elements};

pub(super) const SCATTER_ELEMENTS: Implementation = Implementation::run("ScatterElements", &[11, 13, 16, 18], load);

/// Version 11 is its removal.
pub(super) const SCATTER: Implementation = Implementation::run("Scatter", &[9], load);

/// `output = data`, then `output[i, indices[i, j, k], k] = f(output[i, indices[i, j, k], k], updates[i, j, k])` for `axis`
/// 1 of three, in row-major order; and so on for other ranks and axes. Without a reduction, `f` is the update.
#[derive(Debug)]
struct ScatterElements {
    axis: i64,
    reduction: Reduction,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(ScatterElements { axis: node.int("axis")?, reduction: reduction(node)? }))
}

impl Operator for ScatterElements {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let axis = call.axis(0, self.axis)?;
        let (data, indices, updates) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
        check_grid(data.shape(), indices.shape(), axis.at)?;
        if indices.shape() != updates.shape() {
            let (have, want) = (ShapeText(updates.shape()), ShapeText(indices.shape()));
            let text = format!("\"updates\" has shape {have}, \"indices\" has shape {want}: they must be equal");
            return Err(Error::input(text).parameter("updates"));
        }
        call.charge(indices.len() as u64)?;
        let shape = Shape::from_slice(data.shape());
        updated(call, 2, self.reduction, |call, out, updates, size, combine| {
            let indices = call.tensor(1)?;
            let grid = Grid { data: &shape, indices: indices.shape(), axis: axis.at };
            let outcome = scatter_elements(out, size, &grid, indices_of(indices)?, updates, combine, call.resources());
            outcome.map_err(|why| out_of_range(why, call, &axis, Range::Signed))
        })
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        check_known_grid(facts, self.axis)?;
        if let Some(indices) = facts.dims(1) {
            facts.needs(2, indices)?;
        }
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn reduction(name: &str) -> (&'static str, Attribute) {
        ("reduction", Attribute::String(name.into()))
    }

    #[test]
    fn the_examples_of_the_standard() {
        let (data, indices) = (tensor(&[3, 3], [0f32; 9]), tensor(&[2, 3], [1i64, 0, 2, 0, 2, 1]));
        let updates = tensor(&[2, 3], [1.0f32, 1.1, 1.2, 2.0, 2.1, 2.2]);
        let want = tensor(&[3, 3], [2.0f32, 1.1, 0.0, 1.0, 0.0, 2.2, 0.0, 2.1, 1.2]);
        for (operator, opset) in [("Scatter", 9), ("ScatterElements", 11), ("ScatterElements", 18)] {
            run(operator, opset, [], [&data, &indices, &updates]).gives(&want);
        }
        let row = tensor(&[1, 5], [1.0f32, 2.0, 3.0, 4.0, 5.0]);
        let (indices, updates) = (tensor(&[1, 2], [1i32, -2]), tensor(&[1, 2], [1.1f32, 2.1]));
        run("ScatterElements", 13, [int("axis", 1)], [&row, &indices, &updates])
            .gives(tensor(&[1, 5], [1.0f32, 1.1, 3.0, 2.1, 5.0]));
    }

    #[test]
    fn reductions() {
        let (data, indices) = (tensor(&[3], [5i8, -1, 100]), tensor(&[3], [2i64, 2, 0]));
        let updates = tensor(&[3], [100i8, 2, 7]);
        let after = |name: &str, want: [i8; 3]| {
            run("ScatterElements", 18, [reduction(name)], [&data, &indices, &updates]).gives(tensor(&[3], want));
        };
        after("none", [7, -1, 2]);
        after("add", [12, -1, 202u8 as i8]);
        after("mul", [35, -1, 10000u32.wrapping_mul(2) as i8]);
        after("max", [7, -1, 100]);
        after("min", [5, -1, 2]);
        let floats = tensor(&[2], [1f32, f32::NAN]);
        let updates = tensor(&[2], [f32::NAN, 2.0]);
        for name in ["max", "min"] {
            run("ScatterElements", 18, [reduction(name)], [&floats, &tensor(&[2], [0i64, 1]), &updates])
                .gives(tensor(&[2], [f32::NAN; 2]));
        }
        let truth = |a, b| tensor(&[2], [a, b]);
        run(
            "ScatterElements",
            16,
            [reduction("mul")],
            [&truth(true, true), &tensor(&[1], [0i64]), &tensor(&[1], [false])],
        )
        .gives(truth(false, true));
    }

    #[test]
    fn edges() {
        let text = |strings: &[&str]| Value::from(Tensor::from_strings(&[strings.len()], strings).unwrap());
        run("ScatterElements", 13, [], [&text(&["a", "b"]), &tensor(&[2], [1i64, 1]), &text(&["x", "yz"])])
            .gives(text(&["a", "yz"]));
        let (none, data) = (tensor(&[0], Vec::<i64>::new()), tensor(&[2], [1i16, 2]));
        run("ScatterElements", 18, [], [&data, &none, &tensor(&[0], Vec::<i16>::new())]).gives(&data);
    }

    #[test]
    fn refusals() {
        let (data, one) = (tensor(&[2, 1], [1i32, 2]), tensor(&[1, 1], [7i32]));
        let index = |value: i64| tensor(&[1, 1], [value]);
        let error = run("ScatterElements", 18, [], [&data, &index(2), &one])
            .fails("indices[0, 0] = 2 is out of range for axis 0 of \"data\", which has 2 entries: allowed -2..=1");
        assert_eq!(error.place().position.as_deref(), Some(&[0, 0][..]));
        run("ScatterElements", 18, [int("axis", 2)], [&data, &index(0), &one]).fails("axis 2 is out of range");
        run("ScatterElements", 18, [], [&data, &tensor(&[1], [0i64]), &one]).fails("they must be equal");
        run("ScatterElements", 18, [], [&data, &tensor(&[1, 2], [0i64; 2]), &one]).fails("it may not be larger");
        run("ScatterElements", 18, [], [&data, &tensor(&[2, 1], [0i64; 2]), &one])
            .fails("\"updates\" has shape [1, 1]");
        run("ScatterElements", 16, [reduction("max")], [&data, &index(0), &one])
            .fails("reduction is \"max\": allowed none, add, mul");
        let text = Value::from(Tensor::from_strings(&[1, 1], ["a"]).unwrap());
        run("ScatterElements", 18, [reduction("add")], [&text, &index(0), &text])
            .fails("reduction add is not defined for string");
    }

    #[test]
    fn inferred() {
        infer("ScatterElements", 11, [], ["float[N, 3]", "int64[M, 2]", "float[M, 2]"]).gives("[N, 3]");
        infer("ScatterElements", 18, [], ["float[N, 3]", "int64[M, 2]", "float[M, 3]"])
            .fails("\"updates\" has shape [M, 3]: [M, 2] is needed");
        infer("ScatterElements", 18, [], ["float[N, 3]", "int64[M]", "float"])
            .fails("\"indices\" has shape [M] of rank 1");
    }
}
