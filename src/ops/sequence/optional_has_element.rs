//! OptionalHasElement: whether an optional has a value.
//! <https://onnx.ai/onnx/operators/onnx__OptionalHasElement.html>

use crate::ops::prelude::*;

pub(super) const OPTIONAL_HAS_ELEMENT: Implementation =
    Implementation::run("OptionalHasElement", &[15, 18, 28], |_| Ok(Box::new(OptionalHasElement)));

/// `output` = whether `input` has a value; from version 18 on `input` may be the value, or be left out
#[derive(Debug)]
struct OptionalHasElement;

impl Operator for OptionalHasElement {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let has = match call.input(0) {
            Some(Value::Optional(optional)) => optional.get().is_some(),
            input => input.is_some(),
        };
        let mut output = call.output::<bool>(&[])?;
        output.elements_mut()?.fill(has);
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give(0, []);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Optional, Sequence, Value};

    #[test]
    fn all_kinds() {
        let value = tensor(&[0], Vec::<f32>::new());
        let sequence: Value = Sequence::new(DType::Float.into(), []).unwrap().into();
        let (some, none) = (Optional::some(value.clone()).into(), Optional::none(DType::Float.into()).into());
        for (opset, input, has) in [
            (15, &some, true),
            (15, &none, false),
            (15, &Optional::some(sequence.clone()).into(), true),
            (18, &some, true),
            (28, &none, false),
            (18, &value, true),
            (28, &sequence, true),
        ] {
            run("OptionalHasElement", opset, [], [input]).gives(Tensor::scalar(has));
        }
        run("OptionalHasElement", 18, [], []).gives(Tensor::scalar(false));
    }
}
