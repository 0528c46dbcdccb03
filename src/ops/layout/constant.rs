//! Constant: a value of the model.
//! <https://onnx.ai/onnx/operators/onnx__Constant.html>

use crate::ops::prelude::*;

pub(super) const CONSTANT: Implementation =
    Implementation::run("Constant", &[1, 9, 11, 12, 13, 19, 21, 23, 24, 25], load);

/// `output = value`
#[derive(Debug)]
struct Constant {
    value: Value,
}

/// Exactly one attribute is the value. `sparse_value` came with version 11, the others beside `value` with version 12.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let given: Vec<(&str, &Attribute)> = node.given().collect();
    let &[(name, attribute)] = given.as_slice() else {
        let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
        let names = if names.is_empty() { "none is".to_string() } else { format!("{} are", names.join(", ")) };
        return Err(Error::model(format!("{names} given: exactly one attribute is the value")));
    };
    let value = match attribute {
        Attribute::Tensor(value) | Attribute::SparseTensor(value) => value.clone(),
        Attribute::Int(value) => Tensor::scalar(*value),
        Attribute::Float(value) => Tensor::scalar(*value),
        Attribute::Ints(values) => values.clone().into(),
        Attribute::Floats(values) => values.clone().into(),
        Attribute::String(value) => Tensor::from_strings(&[], [value])?,
        Attribute::Strings(values) => Tensor::from_strings(&[values.len()], values)?,
        _ => return Err(Error::bug(&format!("Constant has the attribute {name}"))),
    };
    Ok(Box::new(Constant { value: value.into() }))
}

impl Operator for Constant {
    fn run(&self, _: &mut Call<'_>) -> Result<Values> {
        Ok(self.value.clone().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_value(0, self.value.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{int, run, tensor};
    use crate::tensor::Tensor;

    #[test]
    fn each_attribute() {
        run("Constant", 12, [int("value_int", 7)], []).gives(tensor(&[], [7i64]));
        run("Constant", 13, [("value_floats", Attribute::Floats(vec![1.5]))], []).gives(tensor(&[1], [1.5f32]));
        let text = Tensor::from_strings(&[2], ["a", "b"]).unwrap();
        let strings = Attribute::Strings(vec!["a".into(), "b".into()]);
        run("Constant", 19, [("value_strings", strings)], []).gives(&text);
        run("Constant", 9, [("value", Attribute::Tensor(text.clone()))], []).gives(&text);
    }

    #[test]
    fn refusals() {
        run("Constant", 13, [], []).fails("none is given: exactly one");
        run("Constant", 13, [int("value_int", 7), ("value_float", Attribute::Float(1.0))], [])
            .fails("value_int, value_float are given: exactly one");
    }
}
