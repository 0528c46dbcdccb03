//! Identity: the input.
//! <https://onnx.ai/onnx/operators/onnx__Identity.html>

use crate::ops::prelude::*;

pub(super) const IDENTITY: Implementation =
    Implementation::run("Identity", &[1, 13, 14, 16, 19, 21, 23, 24, 25], |_| Ok(Box::new(Identity)));

/// `output = input`, of any type
#[derive(Debug)]
struct Identity;

impl Operator for Identity {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        Ok(call.taken(0)?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(fact) = facts.input(0) {
            facts.give_fact(0, fact.clone());
        }
        Ok(())
    }

    fn forwards(&self) -> Option<usize> {
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{run, tensor};
    use crate::value::{Optional, Value};

    #[test]
    fn any_value() {
        let floats = tensor(&[2], [1.5f32, -0.0]);
        run("Identity", 1, [], [&floats]).gives(&floats);
        let none = Value::from(Optional::none(DType::Float.into()));
        run("Identity", 16, [], [&none]).gives(&none);
    }
}
