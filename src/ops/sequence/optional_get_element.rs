//! OptionalGetElement: the value of an optional.
//! <https://onnx.ai/onnx/operators/onnx__OptionalGetElement.html>

use crate::ops::prelude::*;

pub(super) const OPTIONAL_GET_ELEMENT: Implementation =
    Implementation::run("OptionalGetElement", &[15, 18, 28], |_| Ok(Box::new(OptionalGetElement)));

/// `output` = the value in `input`; from version 18 on `input` may be the value
#[derive(Debug)]
struct OptionalGetElement;

impl Operator for OptionalGetElement {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let value = match call.taken(0)? {
            Value::Optional(optional) => optional.into_value(),
            value => Some(value),
        };
        Ok(value.ok_or_else(|| Error::input("the optional has no value").parameter("input"))?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        match (facts.input_type(0), facts.input(0)) {
            (Some(ValueType::Optional(element)), _) => facts.give_type(0, (**element).clone()),
            (_, Some(fact)) => facts.give_fact(0, fact.clone()),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::error::Kind;
    use crate::ops::testing::{run, tensor};
    use crate::value::{Optional, Sequence, Value};

    #[test]
    fn what_is_there() {
        let value = tensor(&[2], [1f32, 2.0]);
        let sequence: Value = Sequence::new(DType::Float.into(), [value.clone()]).unwrap().into();
        for inner in [&value, &sequence] {
            let optional = Optional::some(inner.clone()).into();
            for opset in [15, 18, 28] {
                run("OptionalGetElement", opset, [], [&optional]).gives(inner);
            }
            run("OptionalGetElement", 18, [], [inner]).gives(inner);
        }
        let none = Optional::none(DType::Float.into()).into();
        let error = run("OptionalGetElement", 15, [], [&none]).fails("the optional has no value");
        assert_eq!(error.kind(), Kind::Input);
    }
}
