//! CumSum and CumProd: the sum or product of the elements up to each one along an axis.
//! <https://onnx.ai/onnx/operators/onnx__CumSum.html>, <https://onnx.ai/onnx/operators/onnx__CumProd.html>

use crate::ops::prelude::*;
use std::marker::PhantomData;

pub(super) const CUM_SUM: Implementation =
    Implementation { domain: "", name: "CumSum", versions: &[11, 14], make: Make::Run(load::<lanes::Sum>) };

pub(super) const CUM_PROD: Implementation =
    Implementation { domain: "", name: "CumProd", versions: &[26], make: Make::Run(load::<lanes::Prod>) };

/// `y[a.., i, b..] = sum of x[a.., j, b..]` over all `j <= i`; `j < i` if exclusive, `j >= i` or `j > i` if reverse
#[derive(Debug)]
struct Cumulative<R>(lanes::Cumulate<R>);

fn load<R: lanes::ReductionOfAll>(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (exclusive, reverse) = (node.int("exclusive")? != 0, node.int("reverse")? != 0);
    Ok(Box::new(Cumulative::<R>(lanes::Cumulate { exclusive, reverse, reduction: PhantomData })))
}

impl<R: lanes::ReductionOfAll> Operator for Cumulative<R> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, x) = (axis_input(call)?, call.tensor(0)?);
        let lanes = Lanes::new(x.shape(), |at| at == axis);
        let y = by_type!(wide, x.dtype(), S as T => mapped::<S, T>(call, x, &lanes, &self.0))?;
        Ok(smallvec![y.into()])
    }

    fn infer(&self, inputs: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        Ok(same_shape(inputs))
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
