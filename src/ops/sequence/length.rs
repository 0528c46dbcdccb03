//! SequenceLength: the number of elements of a sequence.
//! <https://onnx.ai/onnx/operators/onnx__SequenceLength.html>

use crate::ops::prelude::*;

pub(super) const SEQUENCE_LENGTH: Implementation =
    Implementation::run("SequenceLength", &[11], |_| Ok(Box::new(SequenceLength)));

/// `length` = the number of elements of `input_sequence`
#[derive(Debug)]
struct SequenceLength;

impl Operator for SequenceLength {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let len = call.sequence(0)?.values().len();
        let mut length = call.output::<i64>(&[])?;
        length.elements_mut()?.fill(len as i64);
        Ok(length.finish().into())
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
    use crate::value::{Sequence, Value};

    #[test]
    fn lengths() {
        for count in [0, 1, 5] {
            let values = vec![tensor(&[2], [true, false]); count];
            let sequence: Value = Sequence::new(DType::Bool.into(), values).unwrap().into();
            run("SequenceLength", 11, [], [&sequence]).gives(Tensor::scalar(count as i64));
        }
    }
}
