//! SequenceInsert: a sequence with a further element.
//! <https://onnx.ai/onnx/operators/onnx__SequenceInsert.html>

use super::position::position;
use crate::ops::prelude::*;

pub(super) const SEQUENCE_INSERT: Implementation =
    Implementation::run("SequenceInsert", &[11], |_| Ok(Box::new(SequenceInsert)));

/// `output_sequence = input_sequence[..position] + [tensor] + input_sequence[position..]`: without `position` it is the
/// last element
#[derive(Debug)]
struct SequenceInsert;

impl Operator for SequenceInsert {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (sequence, dtype) = (call.sequence(0)?, call.tensor(1)?.dtype());
        if let Some(element) = sequence.element_type().filter(|element| **element != dtype.into()) {
            return Err(unlike(&dtype.into(), element));
        }
        let len = sequence.values().len();
        let at = if call.input(2).is_some() { position(call, 2, len, Some(len))? } else { len };
        let (mut sequence, tensor) = (call.taken(0)?.into_sequence()?, call.taken(1)?);
        call.charge(sequence.moved(at) as u64)?;
        sequence.insert(at, tensor, &call.context().memory)?;
        Ok(sequence.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        match (facts.input_type(0), facts.input_type(1)) {
            (Some(ValueType::Sequence(element)), Some(tensor)) if **element != *tensor => Err(unlike(tensor, element)),
            _ => Ok(()),
        }
    }
}

#[cold]
fn unlike(tensor: &ValueType, element: &ValueType) -> Error {
    let text = format!("\"tensor\" has element type {tensor}, but \"input_sequence\" holds {element}");
    Error::input(text).parameter("tensor")
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{infer, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Sequence, Value};

    fn sequence(values: &[i64]) -> Value {
        Sequence::new(DType::Int64.into(), values.iter().map(|value| tensor(&[], [*value]))).unwrap().into()
    }

    #[test]
    fn at_positions() {
        let (two, new) = (sequence(&[1, 2]), tensor(&[], [7i64]));
        run("SequenceInsert", 11, [], [&two, &new]).gives(sequence(&[1, 2, 7]));
        // -1 is before the last.
        for (at, want) in [(0i64, [7, 1, 2]), (-2, [7, 1, 2]), (1, [1, 7, 2]), (-1, [1, 7, 2]), (2, [1, 2, 7])] {
            run("SequenceInsert", 11, [], [&two, &new, &Tensor::scalar(at).into()]).gives(sequence(&want));
        }
        run("SequenceInsert", 11, [], [&two, &new, &tensor(&[1], [0i32])]).gives(sequence(&[7, 1, 2]));
        for at in [3i64, -3] {
            run("SequenceInsert", 11, [], [&two, &new, &Tensor::scalar(at).into()]).fails("allowed -2..=2");
        }
    }

    #[test]
    fn into_an_empty_one() {
        let (none, new) = (sequence(&[]), tensor(&[], [7i64]));
        run("SequenceInsert", 11, [], [&none, &new, &Tensor::scalar(0i64).into()]).gives(sequence(&[7]));
        run("SequenceInsert", 11, [], [&none, &new, &Tensor::scalar(-1i64).into()])
            .fails("a sequence of 0 elements: allowed 0..=0");
        // It takes the type of what comes into it.
        run("SequenceInsert", 11, [], [&Sequence::open().into(), &new]).gives(sequence(&[7]));
        run("SequenceInsert", 11, [], [&none, &tensor(&[], [7i32])])
            .fails("\"tensor\" has element type int32, but \"input_sequence\" holds int64");
    }

    #[test]
    fn inferred_faults() {
        infer("SequenceInsert", 11, [], ["seq(float)", "int64[2]"])
            .fails("\"tensor\" has element type int64, but \"input_sequence\" holds float32");
    }
}
