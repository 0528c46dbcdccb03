//! Compress: the slices along one axis for which `condition` is true.
//! <https://onnx.ai/onnx/operators/onnx__Compress.html>

use crate::ops::prelude::*;
use kernels::gather::{Bounds, Gather, Indices};

pub(super) const COMPRESS: Implementation = Implementation::run("Compress", &[9, 11, 28], load);

/// `output[a.., i, b..] = input[a.., k, b..]`, where `k` is the i-th place of a true in `condition`, and `a..` are the
/// dimensions before `axis`. Without an axis, the input counts as a list. Places beyond the condition are left out.
#[derive(Debug)]
struct Compress {
    axis: Option<i64>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Compress { axis: node.optional("axis", |node, name| node.axis(name, 11))? }))
}

impl Operator for Compress {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (input, condition) = (call.ranked(0)?, call.tensor(1)?);
        if condition.rank() != 1 {
            let shape = ShapeText(condition.shape());
            let text = format!("\"condition\" has shape {shape}: it needs rank 1");
            return Err(Error::input(text).parameter("condition"));
        }
        call.charge(condition.len() as u64)?;
        let truths = condition.bytes();
        let mut count = 0;
        for block in call.lookout().blocks(truths) {
            count += block?.iter().filter(|truth| **truth != 0).count();
        }
        let (size, row, shape) = match self.axis {
            None => (input.len(), input.dtype().size(), shape_of([&[count]])),
            Some(axis) => {
                let axis = call.axis(0, axis)?;
                let row = kernels::volume(input.dtype().size(), input.shape().iter().skip(axis.at + 1));
                (axis.size, row, axis.replaced_in(input.shape(), &[count]))
            }
        };
        let mut memory = call.scratch::<i64>(count)?;
        let places = memory.elements_mut::<i64>();
        let (mut to, mut k) = (places.iter_mut(), 0);
        for block in call.lookout().blocks(truths) {
            for truth in block? {
                if *truth != 0 {
                    to.next().into_iter().for_each(|to| *to = k);
                }
                k += 1;
            }
        }
        if let Some(&last) = places.last().filter(|last| **last >= size as i64) {
            let text = format!("condition[{last}] is true, but only {size} entries of \"input\" can be picked");
            return Err(Error::input(text).parameter("condition").position(vec![last as usize]).size(size));
        }
        let (axis, indices) = (Bounds { size, negative: false }, Indices::I64(places));
        let mut output = call.output_like(input, shape)?;
        pick(call, Gather { data: input.bytes(), axis, row, indices }, output.bytes_mut())??;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(1, 1..=1)?;
        let Some(axis) = self.axis else {
            facts.give(0, [Dim::Unknown]);
            return Ok(());
        };
        if let Some(mut dims) = facts.dims(0).map(<[Dim]>::to_vec) {
            let at = facts.place_of(axis, "axis", dims.len())?;
            dims.get_mut(at).into_iter().for_each(|dim| *dim = Dim::Unknown);
            facts.give(0, dims);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    #[test]
    fn slices() {
        let input = tensor(&[3, 2], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let condition = |truths: &[bool]| tensor(&[truths.len()], truths);
        run("Compress", 9, [int("axis", 0)], [&input, &condition(&[false, true, true])])
            .gives(tensor(&[2, 2], [3f32, 4.0, 5.0, 6.0]));
        run("Compress", 11, [int("axis", -1)], [&input, &condition(&[false, true])])
            .gives(tensor(&[3, 1], [2f32, 4.0, 6.0]));
        run("Compress", 28, [], [&input, &condition(&[false, true, false, false, true])])
            .gives(tensor(&[2], [2f32, 5.0]));
        run("Compress", 28, [], [&input, &condition(&[])]).gives(tensor(&[0], Vec::<f32>::new()));
        run("Compress", 28, [int("axis", 1)], [&input, &condition(&[true, false, false])])
            .gives(tensor(&[3, 1], [1f32, 3.0, 5.0]));
        let text = |strings: &[&str]| Value::from(Tensor::from_strings(&[strings.len()], strings).unwrap());
        run("Compress", 9, [], [&text(&["a", "bc"]), &condition(&[false, true])]).gives(text(&["bc"]));
    }

    #[test]
    fn refusals() {
        let input = tensor(&[2], [1u8, 2]);
        let error = run("Compress", 11, [], [&input, &tensor(&[3], [true, false, true])])
            .fails("condition[2] is true, but only 2 entries of \"input\" can be picked");
        assert_eq!(error.place().position.as_deref(), Some(&[2][..]));
        run("Compress", 11, [], [&input, &tensor(&[], [true])]).fails("\"condition\" has shape []: it needs rank 1");
        run("Compress", 11, [int("axis", 1)], [&input, &tensor(&[1], [true])]).fails("axis 1 is out of range");
        run("Compress", 11, [], [&tensor(&[], [1u8]), &tensor(&[1], [true])]).fails("is a scalar");
    }

    #[test]
    fn inferred() {
        infer("Compress", 9, [], ["float[N, 3]", "bool[2]"]).gives("[?]");
        infer("Compress", 11, [int("axis", -1)], ["float[N, 3]", "bool[2]"]).gives("[N, ?]");
        infer("Compress", 11, [int("axis", 2)], ["float[N, 3]", "bool[2]"]).fails("axis 2 is out of range");
        infer("Compress", 11, [], ["float[N, 3]", "bool[2, 1]"]).fails("allowed rank 1");
    }
}
