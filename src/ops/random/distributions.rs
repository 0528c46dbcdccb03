//! RandomNormal and RandomUniform: random numbers of a distribution, in a shape that is given or that of a tensor.
//! <https://onnx.ai/onnx/operators/onnx__RandomNormal.html>, <https://onnx.ai/onnx/operators/onnx__RandomNormalLike.html>,
//! <https://onnx.ai/onnx/operators/onnx__RandomUniform.html>, <https://onnx.ai/onnx/operators/onnx__RandomUniformLike.html>

use crate::ops::prelude::*;

pub(super) const RANDOM_NORMAL: Implementation = Implementation::missing("", "RandomNormal", infer);
pub(super) const RANDOM_UNIFORM: Implementation = Implementation::missing("", "RandomUniform", infer);
pub(super) const RANDOM_NORMAL_LIKE: Implementation = Implementation::missing("", "RandomNormalLike", infer_like);
pub(super) const RANDOM_UNIFORM_LIKE: Implementation = Implementation::missing("", "RandomUniformLike", infer_like);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.give_type(0, facts.output_type("dtype")?);
    let shape = facts.ints("shape")?;
    if let Some((k, dim)) = shape.iter().enumerate().find(|(_, dim)| **dim < 0) {
        let error = Error::model(format!("shape[{k}] is {dim}: a size is needed"));
        return Err(error.attribute("shape").value(*dim).position(vec![k]));
    }
    facts.give(0, shape.iter().map(|dim| Dim::of(*dim)).collect::<Vec<_>>());
    Ok(())
}

/// Without `dtype` the numbers have the type of the input.
fn infer_like(facts: &mut Inference<'_>) -> Result<()> {
    facts.give_shape_of(0, 0);
    if facts.attribute("dtype").is_some() {
        facts.give_type(0, facts.output_type("dtype")?);
        return Ok(());
    }
    if let (Some(given), Some(output)) = (facts.input_type(0), facts.schema().output(0))
        && !output.types.contains(given)
    {
        let text = format!("dtype is not given, and \"input\" is {given}: allowed {}", output.types);
        return Err(Error::model(text).attribute("dtype"));
    }
    facts.give_type_of(0, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, ints};

    #[test]
    fn shapes_and_types() {
        infer("RandomNormal", 1, [ints("shape", &[2, 0])], []).gives("[2, 0]");
        infer("RandomNormal", 1, [ints("shape", &[])], []).has_type("float32");
        infer("RandomUniform", 22, [ints("shape", &[2]), int("dtype", 16)], []).has_type("bfloat16");
        infer("RandomNormalLike", 1, [int("dtype", 11)], ["int64[N, 3]"]).has_type("float64");
        infer("RandomNormalLike", 1, [int("dtype", 11)], ["int64[N, 3]"]).gives("[N, 3]");
        infer("RandomUniformLike", 22, [], ["float16[N]"]).has_type("float16");
        infer("RandomUniformLike", 22, [], ["float16"]).gives("");
    }

    #[test]
    fn faults() {
        infer("RandomUniform", 1, [ints("shape", &[2, -1])], []).fails("shape[1] is -1: a size is needed");
        infer("RandomUniform", 1, [ints("shape", &[2]), int("dtype", 16)], [])
            .fails("dtype asks for bfloat16: allowed");
        infer("RandomNormalLike", 1, [int("dtype", 7)], ["float[2]"]).fails("dtype asks for int64: allowed float32");
        infer("RandomNormalLike", 22, [], ["int64[2]"]).fails("dtype is not given, and \"input\" is int64: allowed");
    }
}
