//! ArgMax and ArgMin: the index of the greatest or least element along an axis.
//! <https://onnx.ai/onnx/operators/onnx__ArgMax.html>, <https://onnx.ai/onnx/operators/onnx__ArgMin.html>

use crate::ops::prelude::*;

pub(super) const ARG_MAX: Implementation = Implementation::run("ArgMax", &[1, 11, 12, 13], load::<false>);

pub(super) const ARG_MIN: Implementation = Implementation::run("ArgMin", &[1, 11, 12, 13], load::<true>);

/// `reduced[a.., b..]` is the least `i` for which `data[a.., i, b..]` is the extreme of all. NaN is.
#[derive(Debug)]
struct IndexOf<const LEAST: bool> {
    axis: i64,
    /// The axis stays, with size 1.
    keepdims: bool,
    /// The last of equals, not the first.
    last: bool,
}

/// The greatest `i` came as an option with version 12.
fn load<const LEAST: bool>(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let axis = node.axis("axis", 11)?;
    let last = node.version() >= 12 && node.is_set("select_last_index")?;
    Ok(Box::new(IndexOf::<LEAST> { axis, keepdims: node.is_set("keepdims")?, last }))
}

impl<const LEAST: bool> Operator for IndexOf<LEAST> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, data) = (call.axis(0, self.axis)?, call.tensor(0)?);
        let shape = axis.replaced_in(data.shape(), if self.keepdims { &[1] } else { &[] });
        let lanes = Lanes::new(data.shape(), |at| at == axis.at);
        if axis.size == 0 && lanes.count > 0 {
            let text = format!("axis {} of \"data\" has size 0: no element has an index", axis.given);
            return Err(Error::input(text).parameter("data").axis(axis.given).size(0));
        }
        call.charge(data.len() as u64)?;
        let mut indices = call.output::<i64>(&shape)?;
        by_type!(ordered, data.dtype(), S as T => {
            let index = lanes::IndexOf { last: self.last, extreme: <S as Ordered<T>>::extreme::<LEAST>() };
            measured::<S, i64, T, _>(call, data, &lanes, &index, &mut indices)
        })?;
        Ok(indices.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(mut dims) = facts.dims(0).map(<[Dim]>::to_vec) else { return Ok(()) };
        let at = facts.place("axis", dims.len())?;
        dims.splice(at..=at, self.keepdims.then_some(Dim::Fixed(1)));
        facts.give(0, dims);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{int, run, tensor};
    use half::f16;

    #[test]
    fn indices() {
        let data = tensor(&[2, 3], [2i32, 5, 5, 7, -1, -1]);
        run("ArgMax", 13, [], [&data]).gives(tensor(&[1, 3], [1i64, 0, 0]));
        run("ArgMax", 13, [int("axis", -1), int("keepdims", 0)], [&data]).gives(tensor(&[2], [1i64, 0]));
        run("ArgMin", 1, [int("axis", 1)], [&data]).gives(tensor(&[2, 1], [0i64, 1]));
        run("ArgMax", 12, [int("axis", 1), int("select_last_index", 1)], [&data]).gives(tensor(&[2, 1], [2i64, 0]));
        run("ArgMin", 13, [int("axis", 1), int("select_last_index", 1)], [&data]).gives(tensor(&[2, 1], [0i64, 2]));
    }

    #[test]
    fn every_type() {
        macro_rules! each {
            ($($type:ty),*) => {$(
                run("ArgMax", 13, [], [&tensor(&[3], [1 as $type, 3 as $type, 2 as $type])]).gives(tensor(&[1], [1i64]));
            )*};
        }
        each!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);
        run("ArgMin", 11, [], [&tensor(&[3], [1f32, 0.5, 2.0].map(f16::from_f32))]).gives(tensor(&[1], [1i64]));
        let data = tensor(&[2], [1f32, 2.0].map(half::bf16::from_f32));
        run("ArgMin", 13, [], [&data]).gives(tensor(&[1], [0i64]));
    }

    #[test]
    fn nan_is_the_extreme() {
        let data = tensor(&[4], [1f64, f64::NAN, 9.0, f64::NAN]);
        run("ArgMax", 13, [], [&data]).gives(tensor(&[1], [1i64]));
        run("ArgMin", 13, [int("select_last_index", 1)], [&data]).gives(tensor(&[1], [3i64]));
    }

    #[test]
    fn refusals() {
        let empty = tensor(&[2, 0], Vec::<f32>::new());
        run("ArgMax", 13, [int("axis", 1)], [&empty]).fails("axis 1 of \"data\" has size 0");
        run("ArgMax", 13, [int("axis", 0)], [&empty]).gives(tensor(&[1, 0], Vec::<i64>::new()));
        let data = tensor(&[2], [1f32, 2.0]);
        run("ArgMax", 13, [int("axis", 1)], [&data]).fails("axis 1 is out of range for \"data\" of shape [2]");
        run("ArgMin", 13, [], [&tensor(&[], [1f32])]).fails("is a scalar");
    }
}
