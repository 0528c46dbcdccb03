//! SequenceConstruct: a sequence of the inputs.
//! <https://onnx.ai/onnx/operators/onnx__SequenceConstruct.html>

use crate::ops::prelude::*;

pub(super) const SEQUENCE_CONSTRUCT: Implementation =
    Implementation::run("SequenceConstruct", &[11], |_| Ok(Box::new(SequenceConstruct)));

/// `output_sequence = [inputs..]`
#[derive(Debug)]
struct SequenceConstruct;

impl Operator for SequenceConstruct {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let element = ValueType::Tensor(call.tensor(0)?.dtype());
        let mut sequence = call.context().sequence(Some(element), call.input_count())?;
        for k in 0..call.input_count() {
            call.check_cancel()?;
            sequence.push(call.taken(k)?, &call.context().memory)?;
        }
        Ok(sequence.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(element) = (0..facts.input_count()).find_map(|k| facts.input_type(k)) {
            facts.give_type(0, element.clone().sequence());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Sequence, Value};

    #[test]
    fn of_any_shapes() {
        let (one, two) = (tensor(&[2], [1i8, 2]), tensor(&[], [3i8]));
        let want = Sequence::new(DType::Int8.into(), [one.clone(), two.clone(), one.clone()]).unwrap();
        run("SequenceConstruct", 11, [], [&one, &two, &one]).gives(want);
        let text = Value::from(Tensor::from_strings(&[1], ["a"]).unwrap());
        run("SequenceConstruct", 11, [], [&text]).gives(Sequence::new(DType::String.into(), [text.clone()]).unwrap());
    }
}
