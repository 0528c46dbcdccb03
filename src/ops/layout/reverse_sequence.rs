//! ReverseSequence: the first entries of each sequence of a batch in reverse.
//! <https://onnx.ai/onnx/operators/onnx__ReverseSequence.html>

use crate::ops::prelude::*;

pub(super) const REVERSE_SEQUENCE: Implementation = Implementation::run("ReverseSequence", &[10, 28], load);

/// `Y[t, b, ..] = input[sequence_lens[b] - 1 - t, b, ..]` for `t` below `sequence_lens[b]`, `input[t, b, ..]` for others;
/// the same with `b` first if the batch axis is 0
#[derive(Debug)]
struct ReverseSequence {
    batch_first: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (batch, time) = (node.int("batch_axis")?, node.int("time_axis")?);
    match (batch, time) {
        (0, 1) | (1, 0) => Ok(Box::new(ReverseSequence { batch_first: batch == 0 })),
        _ => {
            let text = format!("batch_axis is {batch} and time_axis {time}: one must be 0, the other 1");
            Err(Error::model(text).attribute("batch_axis").value(batch))
        }
    }
}

impl Operator for ReverseSequence {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (input, lens) = (call.tensor(0)?, call.list(1)?);
        let [first, second, rest @ ..] = input.shape() else {
            let text = format!("\"input\" has shape {}: it needs 2 dimensions", ShapeText(input.shape()));
            return Err(Error::input(text).parameter("input"));
        };
        let (batch, time) = if self.batch_first { (*first, *second) } else { (*second, *first) };
        call.charge(lens.len() as u64)?;
        check_lens(call, lens, batch, time)?;
        if input.len() == 0 {
            return Ok(call.taken(0)?.into());
        }
        // Neither factor is more than the number of elements.
        let count = batch * time;
        call.charge(count as u64)?;
        let mut memory = call.scratch::<i64>(count)?;
        let rows = memory.elements_mut::<i64>();
        let mut lookout = call.lookout();
        for (at, row) in rows.iter_mut().enumerate() {
            lookout.after(size_of_val(row))?;
            let (t, b) = if self.batch_first { (at % time, at / time) } else { (at / batch, at % batch) };
            let (t, len) = (t as i64, lens.get(b).copied().unwrap_or(0));
            let from = if t < len { len - 1 - t } else { t };
            *row = if self.batch_first { b as i64 * time as i64 + from } else { from * batch as i64 + b as i64 };
        }
        let work = kernels::gather::Gather {
            data: input.bytes(),
            axis: Range::Signed.bounds(count),
            row: kernels::volume(input.dtype().size(), rest),
            indices: kernels::gather::Indices::I64(rows),
        };
        let mut output = call.output_like(input, Shape::from_slice(input.shape()))?;
        kernels::gather::gather(work, output.bytes_mut(), &mut [], call.resources())?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some([first, second, ..]) = facts.ranked(0, 2..)? {
            facts.needs(1, std::slice::from_ref(if self.batch_first { first } else { second }))?;
        }
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

fn check_lens(call: &Call<'_>, lens: &[i64], batch: usize, time: usize) -> Result<()> {
    let shape = call.tensor(1)?.shape();
    if shape != [batch] {
        let text = format!("\"sequence_lens\" has shape {}: [{batch}] is needed", ShapeText(shape));
        return Err(Error::input(text).parameter("sequence_lens").size(batch));
    }
    let mut lookout = call.lookout();
    for (b, &len) in lens.iter().enumerate() {
        lookout.after(size_of_val(&len))?;
        if usize::try_from(len).map_or(true, |len| len > time) {
            let error = Error::input(format!("sequence_lens[{b}] = {len} is out of range: allowed 0..={time}"));
            return Err(error.parameter("sequence_lens").position(vec![b]).value(len).size(time));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn lens(values: &[i64]) -> Value {
        tensor(&[values.len()], values)
    }

    #[test]
    fn the_examples_of_the_standard() {
        let columns = [0i32, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
        let reversed = [3i32, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15];
        run("ReverseSequence", 10, [], [&tensor(&[4, 4], columns), &lens(&[4, 3, 2, 1])])
            .gives(tensor(&[4, 4], reversed));
        let rows = tensor(&[4, 4], (0..16).collect::<Vec<i32>>());
        let axes = || [int("time_axis", 1), int("batch_axis", 0)];
        run("ReverseSequence", 28, axes(), [&rows, &lens(&[1, 2, 3, 4])])
            .gives(tensor(&[4, 4], [0i32, 1, 2, 3, 5, 4, 6, 7, 10, 9, 8, 11, 15, 14, 13, 12]));
        let rest = tensor(&[1, 3, 2], [1i8, 2, 3, 4, 5, 6]);
        run("ReverseSequence", 10, axes(), [&rest, &lens(&[2])]).gives(tensor(&[1, 3, 2], [3i8, 4, 1, 2, 5, 6]));
        let strings = |values: &[&str]| Tensor::from_strings(&[2, 1], values).unwrap();
        run("ReverseSequence", 10, [], [&strings(&["a", "b"]).into(), &lens(&[2])]).gives(strings(&["b", "a"]));
        run("ReverseSequence", 10, [], [&rest, &lens(&[0, 1, 0])]).gives(&rest);
        let empty = tensor(&[2, 0], Vec::<i8>::new());
        run("ReverseSequence", 10, [], [&empty, &lens(&[])]).gives(&empty);
    }

    #[test]
    fn refusals() {
        let data = tensor(&[2, 1], [1i8, 2]);
        run("ReverseSequence", 10, [], [&data, &lens(&[3])])
            .fails("sequence_lens[0] = 3 is out of range: allowed 0..=2");
        run("ReverseSequence", 10, [], [&data, &lens(&[i64::MIN])]).fails("allowed 0..=2");
        run("ReverseSequence", 10, [], [&data, &lens(&[1, 1])]).fails("\"sequence_lens\" has shape [2]: [1] is needed");
        run("ReverseSequence", 10, [], [&tensor(&[1], [1i8]), &lens(&[1])]).fails("it needs 2 dimensions");
        run("ReverseSequence", 10, [int("time_axis", 1)], [&data, &lens(&[1])])
            .fails("batch_axis is 1 and time_axis 1: one must be 0, the other 1");
    }

    #[test]
    fn inferred() {
        infer("ReverseSequence", 10, [], ["float[T, 2, 5]", "int64[2]"]).gives("[T, 2, 5]");
        infer("ReverseSequence", 10, [], ["float[T, 2, 5]", "int64[3]"])
            .fails("\"sequence_lens\" has shape [3]: [2] is needed");
        infer("ReverseSequence", 10, [int("batch_axis", 0), int("time_axis", 1)], ["float[4, T]", "int64[3]"])
            .fails("[4] is needed");
        infer("ReverseSequence", 10, [], ["float[T]", "int64[2]"]).fails("allowed ranks from 2 on");
    }
}
