//! SequenceAt: an element of a sequence.
//! <https://onnx.ai/onnx/operators/onnx__SequenceAt.html>

use super::give_element;
use super::position::position;
use crate::ops::prelude::*;

pub(super) const SEQUENCE_AT: Implementation = Implementation::run("SequenceAt", &[11], |_| Ok(Box::new(SequenceAt)));

/// `tensor = input_sequence[position]`
#[derive(Debug)]
struct SequenceAt;

impl Operator for SequenceAt {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let values = call.sequence(0)?.values();
        let at = position(call, 1, values.len(), values.len().checked_sub(1))?;
        let value = values.get(at).ok_or_else(|| Error::bug("a position is out of range"))?;
        Ok(value.clone().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        give_element(facts);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Sequence, Value};

    fn position(at: i64) -> Value {
        Tensor::scalar(at).into()
    }

    #[test]
    fn from_both_ends() {
        let values = [tensor(&[2], [1f32, 2.0]), tensor(&[], [3f32]), tensor(&[0], Vec::<f32>::new())];
        let sequence: Value = Sequence::new(DType::Float.into(), values.clone()).unwrap().into();
        for (at, want) in [(0, 0), (1, 1), (2, 2), (-1, 2), (-3, 0)] {
            run("SequenceAt", 11, [], [&sequence, &position(at)]).gives(&values[want]);
        }
        run("SequenceAt", 11, [], [&sequence, &Tensor::scalar(-2i32).into()]).gives(&values[1]);
        run("SequenceAt", 11, [], [&sequence, &tensor(&[1], [1i64])]).gives(&values[1]);
        for at in [3, -4, i64::MIN, i64::MAX] {
            let error = run("SequenceAt", 11, [], [&sequence, &position(at)])
                .fails(&format!("position = {at} is out of range for a sequence of 3 elements: allowed -3..=2"));
            assert_eq!(error.place().value, Some(at.into()));
        }
        run("SequenceAt", 11, [], [&sequence, &tensor(&[2], [1i64, 1])]).fails("one value is needed");
        let none: Value = Sequence::new(DType::Float.into(), []).unwrap().into();
        run("SequenceAt", 11, [], [&none, &position(0)]).fails("a sequence of 0 elements: no position is allowed");
    }
}
