//! Optional: an optional with a value, or without.
//! <https://onnx.ai/onnx/operators/onnx__Optional.html>

use crate::ops::prelude::*;

pub(super) const OPTIONAL: Implementation = Implementation::run("Optional", &[15, 28], load);

/// `output = some(input)`, or without `input` none of type `element`
#[derive(Debug)]
struct OptionalOf {
    element: Option<ValueType>,
}

/// If the input and the attribute are both given, they must agree.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let element = node.optional("type", Node::value_type)?;
    if let Some(element) = element {
        node.check_output_type("type", element.clone().optional())?;
    } else if node.input(0).is_none() {
        return Err(Error::model("neither \"input\" nor the attribute \"type\" is given").attribute("type"));
    }
    if let (Some(element), Some(input)) = (element, node.input_type(0))
        && element != input
    {
        return Err(Error::model(format!("type is {element}, but \"input\" is {input}")).attribute("type"));
    }
    Ok(Box::new(OptionalOf { element: element.cloned() }))
}

impl Operator for OptionalOf {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let optional = match &self.element {
            Some(element) if call.input(0).is_none() => Optional::none(element.clone()),
            _ => Optional::some(call.taken(0)?),
        };
        Ok(optional.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(element) = self.element.as_ref().or(facts.input_type(0)) {
            facts.give_type(0, element.clone().optional());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::error::Kind;
    use crate::operator::Attribute;
    use crate::ops::testing::{run, tensor};
    use crate::value::{Optional, Sequence, ValueType};

    fn of(value_type: impl Into<ValueType>) -> (&'static str, Attribute) {
        ("type", Attribute::Type(value_type.into()))
    }

    #[test]
    fn some_and_none() {
        let value = tensor(&[2], [1f32, 2.0]);
        let floats = ValueType::Tensor(DType::Float).sequence();
        let sequence = Sequence::new(DType::Float.into(), [value.clone()]).unwrap().into();
        run("Optional", 15, [], [&value]).gives(Optional::some(value.clone()));
        run("Optional", 15, [of(DType::Float)], [&value]).gives(Optional::some(value.clone()));
        run("Optional", 28, [], [&sequence]).gives(Optional::some(sequence.clone()));
        run("Optional", 15, [of(floats.clone())], []).gives(Optional::none(floats.clone()));
        run("Optional", 15, [], []).fails("neither \"input\" nor the attribute \"type\" is given");
        let error = run("Optional", 15, [of(DType::Int8)], [&value]).fails("type is int8, but \"input\" is float");
        assert_eq!(error.kind(), Kind::Model);
        run("Optional", 15, [of(floats.optional())], []).fails("asks for optional(optional(seq(float32)))");
        run("Optional", 15, [of(DType::Bfloat16)], []).fails("asks for optional(bfloat16)");
        run("Optional", 28, [of(DType::Bfloat16)], []).gives(Optional::none(DType::Bfloat16.into()));
    }
}
