//! StringConcat: the strings of two tensors, one after the other.
//! <https://onnx.ai/onnx/operators/onnx__StringConcat.html>

use super::Passing;
use crate::ops::prelude::*;
use kernels::copy::Map;

pub(super) const STRING_CONCAT: Implementation =
    Implementation::run("StringConcat", &[20], |_| Ok(Box::new(StringConcat)));

/// `Z = X + Y`, where `X` and `Y` broadcast
#[derive(Debug)]
struct StringConcat;

impl Operator for StringConcat {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (x, y) = (call.tensor(0)?, call.tensor(1)?);
        let dims = call.by_rule(|facts| broadcast(&[0, 1].map(|k| facts.dims(k).unwrap_or_default())))?;
        let shape: Shape = dims.iter().map(|dim| if let Dim::Fixed(size) = dim { *size } else { 0 }).collect();
        let (x, y) = (spread(call, x, &shape)?, spread(call, y, &shape)?);
        let both = x
            .strings()?
            .zip(y.strings()?)
            .map(|(x, y)| Passing::new(call, x.len().saturating_add(y.len()), || [x, y].concat()));
        Ok(call.strings(&shape, both)?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_broadcast(Align::Last)
    }
}

/// The strings at all places of a shape that they broadcast to.
fn spread(call: &Call<'_>, input: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if input.shape() == shape {
        return Ok(input.clone());
    }
    let missing = std::iter::repeat_n(1, shape.len().saturating_sub(input.rank()));
    let own = missing.chain(input.shape().iter().copied());
    let pair = |(own, size): (usize, &usize)| match *size {
        size if size == own => whole(size),
        size => (size, Map::Line { start: 0, step: 0 }),
    };
    by_maps(call.context(), input, &own.zip(shape).map(pair).collect(), &[])
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, run};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn text(shape: &[usize], strings: &[&str]) -> Value {
        Tensor::from_strings(shape, strings).unwrap().into()
    }

    #[test]
    fn strings_are_joined() {
        let concat = |x: &Value, y: &Value| run("StringConcat", 20, [], [x, y]);
        concat(&text(&[2], &["abc", "ü"]), &text(&[2], &["", "€"])).gives(text(&[2], &["abc", "ü€"]));
        concat(&text(&[], &["a"]), &text(&[], &["b"])).gives(text(&[], &["ab"]));
        concat(&text(&[2, 1], &["a", "b"]), &text(&[3], &["x", "y", "z"]))
            .gives(text(&[2, 3], &["ax", "ay", "az", "bx", "by", "bz"]));
        concat(&text(&[1], &["a"]), &text(&[1, 2], &["x", "y"])).gives(text(&[1, 2], &["ax", "ay"]));
        concat(&text(&[0], &[]), &text(&[1], &["x"])).gives(text(&[0], &[]));
        concat(&text(&[2], &["a", "b"]), &text(&[3], &["a"; 3]))
            .fails("the shapes [2], [3] don't broadcast: dimension 0 is 2 and 3");
    }

    #[test]
    fn shapes() {
        infer("StringConcat", 20, [], ["string[N, 1]", "string[3]"]).gives("[N, 3]");
        infer("StringConcat", 20, [], ["string[2]", "string[3]"]).fails("don't broadcast");
    }
}
