//! SequenceErase: a sequence without one of its elements.
//! <https://onnx.ai/onnx/operators/onnx__SequenceErase.html>

use super::position::position;
use crate::ops::prelude::*;

pub(super) const SEQUENCE_ERASE: Implementation =
    Implementation::run("SequenceErase", &[11], |_| Ok(Box::new(SequenceErase)));

/// `output_sequence = input_sequence[..position] + input_sequence[position + 1..]`: without `position` its last element
/// goes
#[derive(Debug)]
struct SequenceErase;

impl Operator for SequenceErase {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let len = call.sequence(0)?.values().len();
        let at = match (call.input(1), len.checked_sub(1)) {
            (Some(_), last) => position(call, 1, len, last)?,
            (None, Some(last)) => last,
            (None, None) => {
                return Err(Error::input("an empty sequence has no last element").parameter("input_sequence"));
            }
        };
        let mut sequence = call.taken(0)?.into_sequence()?;
        call.charge(sequence.moved(at) as u64)?;
        sequence.remove(at, &call.context().memory)?;
        Ok(sequence.into())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Sequence, Value};

    fn sequence(values: &[i16]) -> Value {
        Sequence::new(DType::Int16.into(), values.iter().map(|value| tensor(&[], [*value]))).unwrap().into()
    }

    #[test]
    fn one_goes() {
        let three = sequence(&[1, 2, 3]);
        run("SequenceErase", 11, [], [&three]).gives(sequence(&[1, 2]));
        for (at, want) in [(0i64, [2, 3]), (-3, [2, 3]), (1, [1, 3]), (-1, [1, 2])] {
            run("SequenceErase", 11, [], [&three, &Tensor::scalar(at).into()]).gives(sequence(&want));
        }
        run("SequenceErase", 11, [], [&sequence(&[7]), &Tensor::scalar(-1i32).into()]).gives(sequence(&[]));
        for at in [3i64, -4] {
            run("SequenceErase", 11, [], [&three, &Tensor::scalar(at).into()]).fails("allowed -3..=2");
        }
        run("SequenceErase", 11, [], [&sequence(&[])]).fails("an empty sequence has no last element");
    }
}
