//! Bernoulli: 0 or 1, by the probability of each element.
//! <https://onnx.ai/onnx/operators/onnx__Bernoulli.html>

use crate::ops::prelude::*;

pub(super) const BERNOULLI: Implementation = Implementation::missing("", "Bernoulli", infer);

/// Without `dtype` the numbers have the type of the input.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.give_shape_of(0, 0);
    match facts.attribute("dtype") {
        Some(_) => facts.give_type(0, facts.output_type("dtype")?),
        None => facts.give_type_of(0, 0),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes_and_types() {
        infer("Bernoulli", 15, [], ["double[N, 3]"]).gives("[N, 3]");
        infer("Bernoulli", 15, [], ["double[N, 3]"]).has_type("float64");
        infer("Bernoulli", 22, [int("dtype", 9)], ["float[2]"]).has_type("bool");
        infer("Bernoulli", 22, [int("dtype", 8)], ["float[2]"]).fails("dtype asks for string");
    }
}
