//! SequenceEmpty: a sequence without elements.
//! <https://onnx.ai/onnx/operators/onnx__SequenceEmpty.html>

use crate::ops::prelude::*;

pub(super) const SEQUENCE_EMPTY: Implementation = Implementation::run("SequenceEmpty", &[11], load);

/// `output = []`, for tensors of an element type
#[derive(Debug)]
struct SequenceEmpty {
    dtype: DType,
}

/// The element type is float by default.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let dtype = node.optional("dtype", Node::element_type)?.unwrap_or(DType::Float);
    node.check_output_type("dtype", ValueType::Tensor(dtype).sequence())?;
    Ok(Box::new(SequenceEmpty { dtype }))
}

impl Operator for SequenceEmpty {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        Ok(call.context().sequence(Some(self.dtype.into()), 0)?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_type(0, ValueType::Tensor(self.dtype).sequence());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{int, run};
    use crate::value::Sequence;

    #[test]
    fn of_a_type() {
        run("SequenceEmpty", 11, [], []).gives(Sequence::new(DType::Float.into(), []).unwrap());
        run("SequenceEmpty", 11, [int("dtype", 7)], []).gives(Sequence::new(DType::Int64.into(), []).unwrap());
        run("SequenceEmpty", 11, [int("dtype", 0)], []).fails("dtype is 0, which is not an element type");
        run("SequenceEmpty", 11, [int("dtype", 17)], []).fails("dtype asks for seq(float8e4m3fn): allowed");
    }
}
