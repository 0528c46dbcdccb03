//! ConcatFromSequence: the tensors of a sequence one after the other along an axis, or stacked along a new one.
//! <https://onnx.ai/onnx/operators/onnx__ConcatFromSequence.html>

use super::give_element;
use crate::ops::prelude::*;

pub(super) const CONCAT_FROM_SEQUENCE: Implementation = Implementation::run("ConcatFromSequence", &[11], load);

/// `concat_result[a.., i, b..] = input_sequence[p][a.., i - start of p, b..]`, where `a..` are the dimensions before
/// `axis`; with `new_axis` `concat_result[a.., p, b..] = input_sequence[p][a.., b..]`
#[derive(Debug)]
struct ConcatFromSequence {
    axis: i64,
    new_axis: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let new_axis = node.int("new_axis")?;
    if !matches!(new_axis, 0 | 1) {
        let text = format!("new_axis is {new_axis}: allowed 0 and 1");
        return Err(Error::model(text).attribute("new_axis").value(new_axis));
    }
    Ok(Box::new(ConcatFromSequence { axis: node.int("axis")?, new_axis: new_axis == 1 }))
}

impl Operator for ConcatFromSequence {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let values = call.sequence(0)?.values();
        call.charge(values.len() as u64)?;
        // The list is memory too.
        let _list = call.context().memory.count(values.len().saturating_mul(size_of::<&Tensor>()))?;
        let tensors = values.iter().map(Value::tensor).collect::<Result<Vec<&Tensor>>>()?;
        let Some(first) = tensors.first() else {
            return Err(Error::input("an empty sequence can't be concatenated").parameter("input_sequence"));
        };
        let rank = first.rank() + usize::from(self.new_axis);
        let at = Axis::place(self.axis.into(), rank).ok_or_else(|| {
            let (axis, shape) = (self.axis, ShapeText(first.shape()));
            let allowed = match rank {
                0 => "a scalar has none".to_string(),
                _ => format!("allowed -{rank}..={}", rank - 1),
            };
            Error::model(format!("axis {axis} is out of range for elements of shape {shape}: {allowed}"))
                .attribute("axis")
                .axis(axis)
                .value(axis)
        })?;
        let along = (!self.new_axis).then_some(at);
        let size = joined_size(call.context(), &tensors, along, "element", "input_sequence")?;
        let (outer, inner) = first.shape().split_at(at);
        let inner = inner.get(usize::from(!self.new_axis)..).unwrap_or(&[]);
        Ok(join(call.context(), &tensors, at, shape_of([outer, &[size], inner]))?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        give_element(facts);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Sequence, Value};

    const OP: &str = "ConcatFromSequence";

    fn sequence(values: &[Value]) -> Value {
        Sequence::new(values[0].value_type().unwrap(), values.to_vec()).unwrap().into()
    }

    #[test]
    fn along_an_axis() {
        let both = sequence(&[tensor(&[2, 1], [1i16, 2]), tensor(&[2, 2], [3i16, 4, 5, 6])]);
        let want = tensor(&[2, 3], [1i16, 3, 4, 2, 5, 6]);
        run(OP, 11, [int("axis", 1)], [&both]).gives(&want);
        run(OP, 11, [int("axis", -1)], [&both]).gives(&want);
        let (none, one) = (tensor(&[0], Vec::<i8>::new()), tensor(&[1], [5i8]));
        run(OP, 11, [int("axis", 0)], [&sequence(&[none.clone(), one.clone(), none.clone()])]).gives(&one);
        run(OP, 11, [int("axis", 0)], [&sequence(&[none.clone(), none.clone()])]).gives(&none);
        run(OP, 11, [int("axis", 0)], [&sequence(std::slice::from_ref(&one))]).gives(&one);
    }

    #[test]
    fn along_a_new_axis() {
        let both = sequence(&[tensor(&[3], [1u8, 2, 3]), tensor(&[3], [4u8, 5, 6])]);
        let (rows, columns) = (tensor(&[2, 3], [1u8, 2, 3, 4, 5, 6]), tensor(&[3, 2], [1u8, 4, 2, 5, 3, 6]));
        for (axis, want) in [(0, &rows), (-2, &rows), (1, &columns), (-1, &columns)] {
            run(OP, 11, [int("axis", axis), int("new_axis", 1)], [&both]).gives(want);
        }
        let scalars = sequence(&[tensor(&[], [1f64]), tensor(&[], [2f64])]);
        run(OP, 11, [int("axis", 0), int("new_axis", 1)], [&scalars]).gives(tensor(&[2], [1f64, 2.0]));
        let strings = |dims: &[usize], values: &[&str]| Value::from(Tensor::from_strings(dims, values).unwrap());
        let texts = sequence(&[strings(&[2], &["a", "b"]), strings(&[2], &["", "cd"])]);
        run(OP, 11, [int("axis", 1), int("new_axis", 1)], [&texts]).gives(strings(&[2, 2], &["a", "", "b", "cd"]));
        let empty = tensor(&[0, 2], Vec::<f32>::new());
        run(OP, 11, [int("axis", 1), int("new_axis", 1)], [&sequence(&[empty.clone(), empty])])
            .gives(tensor(&[0, 2, 2], Vec::<f32>::new()));
    }

    #[test]
    fn refusals() {
        let unequal = sequence(&[tensor(&[2, 1], [1i8, 2]), tensor(&[3, 1], [1i8, 2, 3])]);
        run(OP, 11, [int("axis", 1)], [&unequal])
            .fails("dimension 0 of element 1 is 3, and of element 0 2: off the axis 1 they must be equal");
        run(OP, 11, [int("axis", 0), int("new_axis", 1)], [&unequal])
            .fails("dimension 0 of element 1 is 3, and of element 0 2: they must be equal");
        for (axis, new, text) in [(2, 0, "allowed -2..=1"), (-3, 0, "allowed -2..=1"), (3, 1, "allowed -3..=2")] {
            run(OP, 11, [int("axis", axis), int("new_axis", new)], [&unequal]).fails(text);
        }
        run(OP, 11, [int("axis", 0)], [&sequence(&[tensor(&[], [1i8])])]).fails("a scalar has none");
        run(OP, 11, [int("axis", 0)], [&sequence(&[tensor(&[], [1i8]), tensor(&[1], [1i8])])])
            .fails("a scalar has none");
        run(OP, 11, [int("axis", 0)], [&sequence(&[tensor(&[1], [1i8]), tensor(&[], [1i8])])])
            .fails("element 1 has rank 0, and element 0 has rank 1: they must be equal");
        let none = Sequence::new(DType::Float.into(), []).unwrap().into();
        run(OP, 11, [int("axis", 0)], [&none]).fails("an empty sequence can't be concatenated");
        run(OP, 11, [int("axis", 0), int("new_axis", 2)], [&none]).fails("new_axis is 2: allowed 0 and 1");
    }
}
