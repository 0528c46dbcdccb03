//! ArgMax and ArgMin: the index of the greatest or least element along an axis.
//! <https://onnx.ai/onnx/operators/onnx__ArgMax.html>, <https://onnx.ai/onnx/operators/onnx__ArgMin.html>

use crate::ops::prelude::*;
use std::marker::PhantomData;

pub(super) const ARG_MAX: Implementation =
    Implementation { domain: "", name: "ArgMax", versions: &[1, 11, 12, 13], make: Make::Run(load::<lanes::Max>) };

pub(super) const ARG_MIN: Implementation =
    Implementation { domain: "", name: "ArgMin", versions: &[1, 11, 12, 13], make: Make::Run(load::<lanes::Min>) };

/// `reduced[a.., b..]` is the least `i` for which `data[a.., i, b..]` is the extreme of all. NaN is.
#[derive(Debug)]
struct IndexOf<R> {
    axis: i64,
    /// The axis stays, with size 1.
    keepdims: bool,
    index: lanes::IndexOf<R>,
}

/// Negative axes came with version 11, and the greatest `i` as an option with version 12.
fn load<R: lanes::ReductionOfAll>(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let axis = node.int("axis")?;
    if axis < 0 && node.version() < 11 {
        let error = Error::model(format!("axis {axis} is negative, which is allowed from version 11 on only"));
        return Err(error.attribute("axis").axis(axis).value(axis));
    }
    let last = node.version() >= 12 && node.int("select_last_index")? != 0;
    let index = lanes::IndexOf { last, reduction: PhantomData };
    Ok(Box::new(IndexOf::<R> { axis, keepdims: node.int("keepdims")? != 0, index }))
}

impl<R: lanes::ReductionOfAll> Operator for IndexOf<R> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, data) = (call.axis(0, self.axis)?, call.tensor(0)?);
        let shape = axis.replaced_in(data.shape(), if self.keepdims { &[1] } else { &[] });
        let lanes = Lanes::new(data.shape(), |at| at == axis.at);
        if axis.size == 0 && lanes.count > 0 {
            let text = format!("axis {} of \"data\" has size 0: no element has an index", axis.given);
            return Err(Error::input(text).parameter("data").axis(axis.given).size(0));
        }
        call.charge(data.len() as u64)?;
        let indices = by_type!(numbers, data.dtype(), S as T => {
            measured::<S, i64, T, _>(call, data, &lanes, &shape, &self.index)
        })?;
        Ok(smallvec![indices.into()])
    }

    fn infer(&self, inputs: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        let Some(dims) = inputs.first().copied().flatten().and_then(Fact::dims) else { return Ok(Vec::new()) };
        let mut dims = dims.to_vec();
        let Some(at) = Axis::place(self.axis.into(), dims.len()) else { return Ok(Vec::new()) };
        dims.splice(at..=at, self.keepdims.then_some(Dim::Fixed(1)));
        Ok(vec![Fact::default().with_dims(dims)])
    }
}
