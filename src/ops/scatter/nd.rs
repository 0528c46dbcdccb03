//! ScatterND: `data` with the slices that the index tuples along the last dimension of `indices` name updated.
//! <https://onnx.ai/onnx/operators/onnx__ScatterND.html>

use super::update::{reduction, updated};
use crate::ops::prelude::*;
use kernels::scatter::{Reduction, scatter_rows};

pub(super) const SCATTER_ND: Implementation = Implementation::run("ScatterND", &[11, 13, 16, 18], load);

/// `output = data`, then `output[t, s..] = f(output[t, s..], updates[i.., s..])` in row-major order, where `t` is the tuple
/// `indices[i.., 0], indices[i.., 1], ..`. Without a reduction, `f` is the update.
#[derive(Debug)]
struct ScatterND {
    reduction: Reduction,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(ScatterND { reduction: reduction(node)? }))
}

impl Operator for ScatterND {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (data, indices, updates) = (call.ranked(0)?, call.ranked(1)?, call.tensor(2)?);
        let (width, tuples) = indices.shape().split_last().map_or((0, &[][..]), |(width, tuples)| (*width, tuples));
        let Some(slice) = data.shape().get(width..) else {
            return Err(wrong_width(width, data.rank(), indices.rank()));
        };
        let want = shape_of([tuples, slice]);
        if updates.shape() != &*want {
            let (have, want) = (ShapeText(updates.shape()), ShapeText(&want));
            return Err(Error::input(format!("\"updates\" has shape {have}: needed is {want}")).parameter("updates"));
        }
        let count = kernels::volume(1, tuples);
        call.charge((indices.len() as u64).saturating_add(count as u64))?;
        let (shape, per_row) = (Shape::from_slice(data.shape()), kernels::volume(1, slice));
        updated(call, 2, self.reduction, |call, out, updates, size, combine| {
            let mut memory = call.scratch::<i64>(count)?;
            let rows = memory.elements_mut::<i64>();
            // An empty tuple names all of the data.
            kernels::fill(&[0], cast_slice_mut::<i64, u8>(rows), call.resources())?;
            tuple_positions(call, &shape, 0, width, call.tensor(1)?, rows)?;
            Ok(scatter_rows(out, per_row.saturating_mul(size), rows, updates, combine, call.resources())?)
        })
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        let (Some(data), Some([tuples @ .., Dim::Fixed(width)])) = (facts.dims(0), facts.dims(1)) else {
            return Ok(());
        };
        let Some(slice) = data.get(*width..) else {
            return Err(wrong_width(*width, data.len(), tuples.len() + 1));
        };
        facts.needs(2, &[tuples, slice].concat())
    }
}

#[cold]
fn wrong_width(width: usize, most: usize, rank: usize) -> Error {
    let text = format!("the last dimension of \"indices\" is {width}: allowed 0..={most}");
    Error::input(text).parameter("indices").axis(rank as i64 - 1).value(width as i128)
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use half::f16;
    use num_complex::Complex;

    fn reduction(name: &str) -> (&'static str, Attribute) {
        ("reduction", Attribute::String(name.into()))
    }

    #[test]
    fn the_examples_of_the_standard() {
        let data = tensor(&[8], [1i32, 2, 3, 4, 5, 6, 7, 8]);
        let (indices, updates) = (tensor(&[4, 1], [4i64, 3, 1, 7]), tensor(&[4], [9i32, 10, 11, 12]));
        for opset in [11, 13, 16, 18] {
            run("ScatterND", opset, [], [&data, &indices, &updates])
                .gives(tensor(&[8], [1i32, 11, 3, 10, 9, 6, 7, 12]));
        }
        let data = tensor(&[3, 2], [1u8, 2, 3, 4, 5, 6]);
        run("ScatterND", 18, [], [&data, &tensor(&[2, 1], [0i64, -1]), &tensor(&[2, 2], [7u8; 4])])
            .gives(tensor(&[3, 2], [7u8, 7, 3, 4, 7, 7]));
    }

    #[test]
    fn reductions_and_duplicates() {
        let data = tensor(&[2, 2], [1f32, 2.0, 3.0, 4.0]);
        let (indices, updates) = (tensor(&[3, 1], [1i64, 1, 0]), tensor(&[3, 2], [1f32, 2.0, 3.0, 4.0, -5.0, 6.0]));
        let after = |name: &str, want: [f32; 4]| {
            run("ScatterND", 18, [reduction(name)], [&data, &indices, &updates]).gives(tensor(&[2, 2], want));
        };
        after("none", [-5.0, 6.0, 3.0, 4.0]);
        after("add", [-4.0, 8.0, 7.0, 10.0]);
        after("mul", [-5.0, 12.0, 9.0, 32.0]);
        after("max", [1.0, 6.0, 3.0, 4.0]);
        after("min", [-5.0, 2.0, 1.0, 2.0]);
        // Each step is rounded: 2048 + 1 is 2048 in float16.
        let half = |values: [f32; 2]| tensor(&[2], values.map(f16::from_f32));
        run(
            "ScatterND",
            16,
            [reduction("add")],
            [&half([2048.0, 0.0]), &tensor(&[2, 1], [0i64, 0]), &half([1.0, 1.0])],
        )
        .gives(half([2048.0, 0.0]));
        let complex = |re, im| tensor(&[1], [Complex::new(re, im)]);
        run("ScatterND", 16, [reduction("mul")], [&complex(0.0, 1.0), &tensor(&[1, 1], [0i64]), &complex(0f64, 1.0)])
            .gives(complex(-1.0, 0.0));
    }

    #[test]
    fn edges() {
        let data = tensor(&[2, 2], [1i8, 2, 3, 4]);
        run("ScatterND", 18, [], [&data, &tensor(&[0, 2], Vec::<i64>::new()), &tensor(&[0], Vec::<i8>::new())])
            .gives(&data);
        run("ScatterND", 18, [], [&data, &tensor(&[2], [1i64, -2]), &tensor(&[], [9i8])])
            .gives(tensor(&[2, 2], [1i8, 2, 9, 4]));
        let all = tensor(&[1, 2, 2], [5i8; 4]);
        run("ScatterND", 18, [], [&data, &tensor(&[1, 0], Vec::<i64>::new()), &all]).gives(tensor(&[2, 2], [5i8; 4]));
        let empty = tensor(&[1 << 40, 1 << 40, 0], Vec::<i8>::new());
        let none = tensor(&[1, 0], Vec::<i8>::new());
        run("ScatterND", 18, [], [&empty, &tensor(&[1, 2], [-1i64, -1]), &none]).gives(&empty);
        let text = |strings: &[&str]| Value::from(Tensor::from_strings(&[strings.len()], strings).unwrap());
        run("ScatterND", 13, [], [&text(&["a", "b"]), &tensor(&[1, 1], [0i64]), &text(&["xyz"])])
            .gives(text(&["xyz", "b"]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[2, 2], [1i8, 2, 3, 4]);
        let one = tensor(&[1], [7i8]);
        let error = run("ScatterND", 18, [], [&data, &tensor(&[1, 2], [0i64, 2]), &one])
            .fails("indices[0, 1] = 2 is out of range for axis 1 of \"data\"");
        assert_eq!(error.place().position.as_deref(), Some(&[0, 1][..]));
        run("ScatterND", 18, [], [&data, &tensor(&[1, 3], [0i64; 3]), &one]).fails("is 3: allowed 0..=2");
        run("ScatterND", 18, [], [&data, &tensor(&[1, 1], [0i64]), &one])
            .fails("\"updates\" has shape [1]: needed is [1, 2]");
        let complex = tensor(&[1], [Complex::new(0f32, 1.0)]);
        run("ScatterND", 18, [reduction("max")], [&complex, &tensor(&[1, 1], [0i64]), &complex])
            .fails("reduction max is not defined for complex64");
    }

    #[test]
    fn inferred() {
        infer("ScatterND", 11, [], ["float[N, 3]", "int64[M, 1]", "float[M, 3]"]).gives("[N, 3]");
        infer("ScatterND", 18, [], ["float[N, 3]", "int64[M, 1]", "float[M, 2]"])
            .fails("\"updates\" has shape [M, 2]: [M, 3] is needed");
        infer("ScatterND", 18, [], ["float[N, 3]", "int64[M, 3]", "float"])
            .fails("the last dimension of \"indices\" is 3: allowed 0..=2");
    }
}
