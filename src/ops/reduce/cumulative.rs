//! CumSum and CumProd: the sum or product of the elements up to each one along an axis.
//! <https://onnx.ai/onnx/operators/onnx__CumSum.html>, <https://onnx.ai/onnx/operators/onnx__CumProd.html>

use crate::ops::prelude::*;

pub(super) const CUM_SUM: Implementation = Implementation::run("CumSum", &[11, 14], load::<lanes::Sum>);

pub(super) const CUM_PROD: Implementation = Implementation::run("CumProd", &[26], load::<lanes::Prod>);

/// `y[a.., i, b..] = sum of x[a.., j, b..]` over all `j <= i`; `j < i` if exclusive, `j >= i` or `j > i` if reverse
#[derive(Debug)]
struct Cumulative<R>(lanes::Cumulate<R>);

fn load<R: lanes::ReductionOfAll>(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (exclusive, reverse) = (node.flag("exclusive")?, node.flag("reverse")?);
    Ok(Box::new(Cumulative::<R>(lanes::Cumulate { exclusive, reverse, reduction: R::default() })))
}

impl<R: lanes::ReductionOfAll> Operator for Cumulative<R> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, x) = (axis_input(call)?, call.tensor(0)?);
        let lanes = Lanes::new(x.shape(), |at| at == axis);
        let mut y = call.output_of(x.dtype(), Shape::from_slice(x.shape()))?;
        match x.dtype() {
            // Sums that are rounded to float32 first would be rounded twice.
            DType::Float16 => mapped::<f16, f64>(call, x, &lanes, &self.0, &mut y)?,
            DType::Bfloat16 => mapped::<bf16, f64>(call, x, &lanes, &self.0, &mut y)?,
            other => by_type!(wrapping, other, S as T => mapped::<S, T>(call, x, &lanes, &self.0, &mut y))?,
        }
        Ok(y.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.single(1)?;
        facts.give_shape_of(0, 0);
        if let (Some(dims), Some(axis)) = (facts.dims(0), facts.number(1).and_then(|axis| axis.number())) {
            facts.place_of(axis, "axis", dims.len()).map_err(|error| error.with_kind(Kind::Input))?;
        }
        Ok(())
    }
}

/// The axis of `x` that the input `axis` names. The standard wants a scalar; a list of one is common.
fn axis_input(call: &Call<'_>) -> Result<usize> {
    let (shape, axis) = (call.ranked(0)?.shape(), call.tensor(1)?);
    let value = match (axis.rank(), axis.scalars().next()) {
        (0 | 1, Some(value)) if axis.len() == 1 => integer(&value),
        _ => {
            let text = format!("\"axis\" has shape {}: one value is needed", ShapeText(axis.shape()));
            return Err(Error::input(text).parameter("axis"));
        }
    };
    Axis::place(value, shape.len()).ok_or_else(|| {
        let (rank, shape) = (shape.len(), ShapeText(shape));
        let text = format!("axis {value} is out of range for \"x\" of shape {shape}: allowed -{rank}..={}", rank - 1);
        Error::input(text).parameter("axis").axis(value as i64).value(value)
    })
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};
    use half::{bf16, f16};

    #[test]
    fn the_examples_of_the_standard() {
        let (x, axis) = (tensor(&[3], [1i32, 2, 3]), tensor(&[], [0i32]));
        for (exclusive, reverse, sums, products) in [
            (0, 0, [1, 3, 6], [1, 2, 6]),
            (1, 0, [0, 1, 3], [1, 1, 2]),
            (0, 1, [6, 5, 3], [6, 6, 3]),
            (1, 1, [5, 3, 0], [6, 3, 1]),
        ] {
            let attributes = || [int("exclusive", exclusive), int("reverse", reverse)];
            run("CumSum", 11, attributes(), [&x, &axis]).gives(tensor(&[3], sums));
            run("CumProd", 26, attributes(), [&x, &axis]).gives(tensor(&[3], products));
        }
    }

    #[test]
    fn every_axis_and_type() {
        macro_rules! each {
            ($($type:ty),*) => {$(
                let x = tensor(&[2, 2], [1, 2, 3, 4].map(|x| x as $type));
                run("CumSum", 14, [], [&x, &tensor(&[], [0i64])]).gives(tensor(&[2, 2], [1, 2, 4, 6].map(|x| x as $type)));
                run("CumSum", 14, [], [&x, &tensor(&[1], [-1i32])])
                    .gives(tensor(&[2, 2], [1, 3, 3, 7].map(|x| x as $type)));
            )*};
        }
        each!(f32, f64, i32, i64, u32, u64);
        let x = tensor(&[3], [2048f32, 1.0, 1.0].map(f16::from_f32));
        run("CumSum", 14, [], [&x, &tensor(&[], [0i32])])
            .gives(tensor(&[3], [2048f32, 2048.0, 2050.0].map(f16::from_f32)));
        // Half of a step and a little: rounded to float32 first, it would be half a step.
        let x = tensor(&[3], [1f32, 2f32.powi(-11), 2f32.powi(-24)].map(f16::from_f32));
        run("CumSum", 14, [], [&x, &tensor(&[], [0i32])])
            .gives(tensor(&[3], [1f32, 1.0, 1.0 + 2f32.powi(-10)].map(f16::from_f32)));
        let x = tensor(&[2], [3f32, 5.0].map(bf16::from_f32));
        run("CumProd", 26, [], [&x, &tensor(&[], [0i32])]).gives(tensor(&[2], [3f32, 15.0].map(bf16::from_f32)));
    }

    #[test]
    fn signs_of_zeros_and_nothing() {
        let (x, axis) = (tensor(&[2], [-0.0f32, -0.0]), tensor(&[], [0i32]));
        run("CumSum", 14, [], [&x, &axis]).gives(tensor(&[2], [-0.0f32, -0.0]));
        run("CumSum", 14, [int("exclusive", 1)], [&x, &axis]).gives(tensor(&[2], [0.0f32, -0.0]));
        run("CumSum", 14, [], [&tensor(&[0, 2], Vec::<f32>::new()), &axis]).gives(tensor(&[0, 2], Vec::<f32>::new()));
    }

    #[test]
    fn refusals() {
        let x = tensor(&[2, 2], [0f32; 4]);
        run("CumSum", 14, [], [&x, &tensor(&[], [2i64])])
            .fails("axis 2 is out of range for \"x\" of shape [2, 2]: allowed -2..=1");
        run("CumSum", 14, [], [&x, &tensor(&[2], [0i64, 1])]).fails("\"axis\" has shape [2]: one value is needed");
        run("CumSum", 14, [], [&tensor(&[], [1f32]), &tensor(&[], [0i64])]).fails("is a scalar");
        for name in ["exclusive", "reverse"] {
            run("CumSum", 14, [int(name, 2)], [&x, &tensor(&[], [0i64])]).fails(&format!("{name} is 2: allowed 0, 1"));
        }
    }

    #[test]
    fn inferred() {
        infer("CumSum", 11, [], ["float[N, 3]", "{-2}"]).gives("[N, 3]");
        infer("CumSum", 14, [], ["float[N, 3]", "{2}"]).fails("axis 2 is out of range: allowed -2..=1");
        infer("CumSum", 14, [], ["float[N, 3]", "int64[2]"]).fails("\"axis\" has shape [2]: one value is needed");
    }
}
