//! Bernoulli: 0 or 1, by the probability of each element.
//! <https://onnx.ai/onnx/operators/onnx__Bernoulli.html>

use crate::ops::prelude::*;

pub(super) const BERNOULLI: Implementation =
    Implementation { domain: "", name: "Bernoulli", versions: &[15, 22], make: Make::Expand(expand) };

/// 1 where a uniform number of [0, 1) is less than `input`, else 0
///
/// The standard's function body takes 1 where the number is greater, which gives 1 with the probability `1 - p`: the text
/// wins. Probabilities are not checked: what is not greater than any number, such as NaN, gives 0.
fn expand(node: &Node<'_>, body: &mut Body<'_>) -> Result<()> {
    let dtype = node.optional("dtype", Node::output_type)?;
    let number = |dtype: DType| Attribute::Int(dtype.code().into());
    let input = BodyValue::Input(0);
    let range = [("dtype", number(DType::Double)), ("low", Attribute::Float(0.0)), ("high", Attribute::Float(1.0))];
    let uniform = match node.optional("seed", Node::float)? {
        Some(seed) => {
            let [dtype, low, high] = range;
            body.node("RandomUniformLike", 22, [dtype, low, high, ("seed", Attribute::Float(seed))], [input])?
        }
        None => body.node("RandomUniformLike", 22, range, [input])?,
    };
    let probability = body.node("Cast", 13, [("to", number(DType::Double))], [input])?;
    let less = body.node("Less", 13, [], [uniform, probability])?;
    let output = match dtype {
        Some(dtype) => body.node("Cast", 13, [("to", number(dtype))], [less])?,
        None => body.node("CastLike", 15, [], [less, input])?,
    };
    body.output(output)
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{float, int, outputs, run, tensor};
    use half::f16;

    #[test]
    fn certain_outcomes() {
        let p = tensor(&[2, 2], [0f32, 1.0, 0.0, 1.0]);
        run("Bernoulli", 15, [], [&p]).gives(&p);
        run("Bernoulli", 22, [int("dtype", 9)], [&p]).gives(tensor(&[2, 2], [false, true, false, true]));
        run("Bernoulli", 22, [int("dtype", 7)], [&tensor(&[1], [f16::ONE])]).gives(tensor(&[1], [1i64]));
        run("Bernoulli", 22, [int("dtype", 8)], [&p]).fails("dtype asks for string");
    }

    #[test]
    fn as_often_as_probable() {
        let drawn =
            |seed| outputs("Bernoulli", 22, [float("seed", seed)], [&tensor(&[4096], [0.25f64; 4096])]).remove(0);
        let drawn_at = drawn(1.0);
        let ones = drawn_at.tensor().unwrap().as_slice::<f64>().unwrap().iter().sum::<f64>();
        assert!((ones / 4096.0 - 0.25).abs() < 0.04, "{ones}");
        assert_eq!(drawn(1.0), drawn_at);
        assert_ne!(drawn(2.0), drawn_at);
    }
}
