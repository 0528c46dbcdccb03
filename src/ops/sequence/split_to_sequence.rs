//! SplitToSequence: parts of a tensor along an axis, as a sequence.
//! <https://onnx.ai/onnx/operators/onnx__SplitToSequence.html>

use crate::ops::prelude::*;

pub(super) const SPLIT_TO_SEQUENCE: Implementation = Implementation::run("SplitToSequence", &[11, 24], load);

/// `output_sequence[p][a.., i, b..] = input[a.., start of p + i, b..]`, where `a..` are the dimensions before `axis`
///
/// `split` is the size of all parts, of which the last may be smaller, or a list with the size of each. Without it the
/// size is 1, and parts lose the axis unless `keepdims`.
#[derive(Debug)]
struct SplitToSequence {
    axis: i64,
    keepdims: bool,
    /// Whether `keepdims` counts for a size of 1 that is given, too.
    given: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (keepdims, given) = (node.is_set("keepdims")?, node.compatibility().split_to_sequence_keepdims);
    let split = node.constant(1).and_then(|split| split.tensor().ok());
    if !keepdims && !given && split.is_some_and(is_one) {
        node.note(Note::Keepdims);
    }
    Ok(Box::new(SplitToSequence { axis: node.int("axis")?, keepdims, given }))
}

/// Whether all parts have the size 1.
fn is_one(split: &Tensor) -> bool {
    split.rank() == 0 && split.scalars().all(|size| integer(&size) == 1)
}

impl Operator for SplitToSequence {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let axis = call.axis(0, self.axis)?;
        let (count, sizes) = sizes(call, &axis)?;
        let (input, memory) = (call.tensor(0)?, &call.context().memory);
        let ignored = call.optional_tensor(1)?.is_some_and(|split| !self.given || !is_one(split));
        let kept = usize::from(self.keepdims || ignored);
        call.charge(count as u64)?;
        let mut sequence = call.context().sequence(Some(input.dtype().into()), count)?;
        let mut start = 0;
        for size in sizes.take(count) {
            call.check_cancel()?;
            let size = size.min(axis.size - start);
            let shape = axis.replaced_in(input.shape(), [size].get(..kept).unwrap_or(&[]));
            sequence.push(part(call.context(), input, &axis, start, size)?.reshaped(shape)?.into(), memory)?;
            start += size;
        }
        Ok(sequence.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(input) = facts.input_type(0) {
            facts.give_type(0, input.clone().sequence());
        }
        if let Some(dims) = facts.dims(0) {
            facts.place("axis", dims.len())?;
        }
        Ok(())
    }
}

/// The number of parts, and their sizes; the last one may be smaller.
fn sizes<'a>(call: &'a Call<'_>, axis: &Axis) -> Result<(usize, Box<dyn Iterator<Item = usize> + 'a>)> {
    let each =
        |size: usize| Ok((axis.size.div_ceil(size), Box::new(std::iter::repeat(size)) as Box<dyn Iterator<Item = _>>));
    let Some(split) = call.optional_tensor(1)? else { return each(1) };
    let wrong = |text: String| Error::input(text).parameter("split").axis(axis.given).size(axis.size);
    if split.rank() > 1 {
        return Err(wrong(format!("\"split\" has shape {}: a scalar or list is needed", ShapeText(split.shape()))));
    }
    call.charge(split.len() as u64)?;
    let (mut sum, mut lookout) = (0i128, call.lookout());
    for (k, value) in split.scalars().enumerate() {
        lookout.after(split.dtype().size())?;
        let given = integer(&value);
        if split.rank() == 0 {
            return match usize::try_from(given) {
                Ok(size @ 1..) => each(size),
                _ => Err(wrong(format!("split = {given} is not positive")).value(given)),
            };
        }
        if given < 0 {
            return Err(wrong(format!("split[{k}] = {given} is negative")).value(given).position(vec![k]));
        }
        sum = sum.saturating_add(given);
    }
    if sum != axis.size as i128 {
        let (given, size) = (axis.given, axis.size);
        let text = format!("the sizes in \"split\" add up to {sum}, but axis {given} of \"input\" has {size} entries");
        return Err(wrong(text).value(sum));
    }
    // They are at most the size of the axis.
    Ok((split.len(), Box::new(split.scalars().map(|size| integer(&size) as usize))))
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Sequence, Value};

    const OP: &str = "SplitToSequence";

    fn data() -> Value {
        tensor(&[2, 3], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0])
    }

    fn sequence(values: &[Value]) -> Sequence {
        Sequence::new(DType::Float.into(), values.to_vec()).unwrap()
    }

    #[test]
    fn of_size_1() {
        let rows = [tensor(&[1, 3], [1f32, 2.0, 3.0]), tensor(&[1, 3], [4f32, 5.0, 6.0])];
        run(OP, 11, [], [&data()]).gives(sequence(&rows));
        let columns = [tensor(&[2], [1f32, 4.0]), tensor(&[2], [2f32, 5.0]), tensor(&[2], [3f32, 6.0])];
        run(OP, 24, [int("axis", -1), int("keepdims", 0)], [&data()]).gives(sequence(&columns));
        let one = tensor(&[1], [7f32]);
        run(OP, 11, [int("keepdims", 0)], [&one]).gives(sequence(&[tensor(&[], [7f32])]));
        run(OP, 11, [], [&tensor(&[0, 2], Vec::<f32>::new())]).gives(sequence(&[]));
        let none = tensor(&[0, 1], Vec::<f32>::new());
        run(OP, 11, [int("axis", 1)], [&tensor(&[0, 2], Vec::<f32>::new())]).gives(sequence(&[none.clone(), none]));
    }

    #[test]
    fn of_a_size() {
        let parts = sequence(&[tensor(&[2, 2], [1f32, 2.0, 4.0, 5.0]), tensor(&[2, 1], [3f32, 6.0])]);
        // keepdims counts only without sizes.
        for keepdims in [0, 1] {
            let attributes = || [int("axis", 1), int("keepdims", keepdims)];
            run(OP, 11, attributes(), [&data(), &Tensor::scalar(2i64).into()]).gives(parts.clone());
            run(OP, 24, attributes(), [&data(), &tensor(&[2], [2i32, 1])]).gives(parts.clone());
        }
        run(OP, 11, [], [&data(), &Tensor::scalar(i64::MAX).into()]).gives(sequence(&[data()]));
        let nothing = tensor(&[0, 3], Vec::<f32>::new());
        run(OP, 11, [], [&data(), &tensor(&[2], [0i64, 2])]).gives(sequence(&[nothing, data()]));
        let strings = |values: &[&str]| Value::from(Tensor::from_strings(&[values.len()], values).unwrap());
        run(OP, 11, [], [&strings(&["a", "b", "c"]), &Tensor::scalar(2i32).into()])
            .gives(Sequence::new(DType::String.into(), [strings(&["a", "b"]), strings(&["c"])]).unwrap());
    }

    #[test]
    fn refusals() {
        let fails = |split: &Value, text: &str| run(OP, 11, [int("axis", 1)], [&data(), split]).fails(text);
        fails(&Tensor::scalar(0i64).into(), "split = 0 is not positive");
        fails(&Tensor::scalar(-1i32).into(), "split = -1 is not positive");
        fails(&tensor(&[2], [4i64, -1]), "split[1] = -1 is negative");
        fails(&tensor(&[1], [2i64]), "the sizes in \"split\" add up to 2, but axis 1 of \"input\" has 3 entries");
        fails(&tensor(&[3], [i64::MAX; 3]), "add up to 27670116110564327421");
        fails(&tensor(&[1, 1], [3i64]), "a scalar or list is needed");
        run(OP, 11, [int("axis", 2)], [&data()]).fails("allowed -2..=1");
        run(OP, 11, [], [&tensor(&[], [1f32])]).fails("is a scalar");
        // As many parts would be beyond every limit, though there is no element.
        let huge = tensor(&[1 << 60, 0], Vec::<f32>::new());
        let error = run(OP, 11, [], [&huge]).fails("");
        assert!(error.place().limit.is_some(), "{error}");
    }

    #[test]
    fn inferred() {
        infer("SplitToSequence", 11, [int("axis", -1)], ["float[4, 6]"]).has_type("seq(float32)");
        infer("SplitToSequence", 24, [int("axis", 2)], ["float[4, 6]"]).fails("axis 2 is out of range: allowed -2..=1");
    }
}
