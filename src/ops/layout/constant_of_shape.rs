//! ConstantOfShape: a tensor of a given shape, filled with one value.
//! <https://onnx.ai/onnx/operators/onnx__ConstantOfShape.html>

use crate::ops::prelude::*;

pub(super) const CONSTANT_OF_SHAPE: Implementation =
    Implementation::run("ConstantOfShape", &[9, 20, 21, 23, 24, 25], load);

/// `output[i..] = value`
#[derive(Debug)]
struct ConstantOfShape {
    value: Tensor,
}

/// Without a value it is the float 0.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    if node.attribute("value").is_none() {
        return Ok(Box::new(ConstantOfShape { value: Tensor::scalar(0f32) }));
    }
    let value = node.tensor("value")?.clone();
    node.check_output_type("value", value.dtype())?;
    if value.len() != 1 {
        let text = format!("value has {} elements: one is needed", value.len());
        return Err(Error::model(text).attribute("value"));
    }
    Ok(Box::new(ConstantOfShape { value }))
}

impl Operator for ConstantOfShape {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (given, mut shape) = (call.list(0)?, Shape::new());
        call.check_rank(given.len())?;
        for (k, &dim) in given.iter().enumerate() {
            shape.push(usize::try_from(dim).map_err(|_| negative(k, dim))?);
        }
        let mut output = call.output_of(self.value.dtype(), shape)?;
        kernels::fill(self.value.bytes(), output.bytes_mut(), call.resources())?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_type(0, self.value.dtype());
        facts.ranked(0, 0..=1)?;
        let known = facts.list(0).unwrap_or_default();
        let number = |(k, dim): (usize, &Option<Formula>)| Some((k, dim.as_ref()?.number()?));
        if let Some((k, dim)) = known.iter().enumerate().filter_map(number).find(|(_, dim)| *dim < 0) {
            return Err(negative(k, dim));
        }
        facts.give_known(0, facts.listed(0));
        Ok(())
    }
}

#[cold]
fn negative(k: usize, dim: i64) -> Error {
    let error = Error::input(format!("input[{k}] = {dim} is negative: a dimension is needed"));
    error.parameter("input").position(vec![k]).value(dim)
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn value(value: impl Into<Value>) -> [(&'static str, Attribute); 1] {
        [("value", Attribute::Tensor(value.into().into_tensor().unwrap()))]
    }

    #[test]
    fn values() {
        let shape = tensor(&[2], [2i64, 3]);
        run("ConstantOfShape", 9, [], [&shape]).gives(tensor(&[2, 3], [0f32; 6]));
        run("ConstantOfShape", 25, value(tensor(&[1], [-1i64])), [&shape]).gives(tensor(&[2, 3], [-1i64; 6]));
        run("ConstantOfShape", 9, value(tensor(&[1], [1.5f64])), [&tensor(&[0], Vec::<i64>::new())])
            .gives(tensor(&[], [1.5f64]));
        run("ConstantOfShape", 20, value(tensor(&[], [true])), [&tensor(&[2], [i64::MAX, 0])])
            .gives(tensor(&[usize::MAX >> 1, 0], Vec::<bool>::new()));
        run("ConstantOfShape", 9, value(tensor(&[1], [0x0102u16])), [&tensor(&[1], [5000i64])])
            .gives(tensor(&[5000], [0x0102u16; 5000]));
    }

    #[test]
    fn refusals() {
        let shape = |dims: &[i64]| tensor(&[dims.len()], dims);
        let error = run("ConstantOfShape", 9, [], [&shape(&[2, -1])]).fails("input[1] = -1 is negative");
        assert_eq!((error.place().value, error.place().position.as_deref()), (Some(-1), Some(&[1][..])));
        run("ConstantOfShape", 9, value(tensor(&[2], [1f32, 2.0])), [&shape(&[1])]).fails("value has 2 elements");
        let text = Tensor::from_strings(&[1], ["a"]).unwrap();
        run("ConstantOfShape", 9, value(text), [&shape(&[1])]).fails("value asks for string");
        run("ConstantOfShape", 9, [], [&shape(&[1 << 40, 1 << 40])]).fails("more bytes than can be counted");
        let error = run("ConstantOfShape", 9, [], [&shape(&[1 << 40])]).fails("tensor_bytes");
        assert_eq!(error.kind(), Kind::Limit);
    }

    #[test]
    fn inferred() {
        infer("ConstantOfShape", 9, [], ["{2, N, ?}"]).gives("[2, N, ?]");
        infer("ConstantOfShape", 9, [], ["{N, -1}"]).fails("input[1] = -1 is negative: a dimension is needed");
        infer("ConstantOfShape", 9, [], ["int64[1, 1]"]).fails("allowed ranks 0 to 1");
    }
}
