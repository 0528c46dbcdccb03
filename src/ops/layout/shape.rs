//! Shape and Size: the dimensions of a tensor, and the number of its elements.
//! <https://onnx.ai/onnx/operators/onnx__Shape.html>, <https://onnx.ai/onnx/operators/onnx__Size.html>

use crate::ops::prelude::*;

pub(super) const SHAPE: Implementation = Implementation::run("Shape", &[1, 13, 15, 19, 21, 23, 24, 25], load);

pub(super) const SIZE: Implementation =
    Implementation::run("Size", &[1, 13, 19, 21, 23, 24, 25], |_| Ok(Box::new(Size)));

/// The dimensions from `start` to `end`, which count from the end if they are negative, and stay within the rank.
#[derive(Debug)]
struct Dimensions {
    start: i64,
    end: i64,
}

/// Version 15 came with a start and an end.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let whole = Dimensions { start: 0, end: i64::MAX };
    if node.version() < 15 {
        return Ok(Box::new(whole));
    }
    let end = node.optional("end", Node::int)?.unwrap_or(whole.end);
    Ok(Box::new(Dimensions { start: node.int("start")?, end }))
}

impl Dimensions {
    fn of<'a, T>(&self, dims: &'a [T]) -> &'a [T] {
        let rank = dims.len() as i64;
        let place = |at: i64| if at < 0 { at.saturating_add(rank) } else { at }.clamp(0, rank) as usize;
        dims.get(place(self.start)..place(self.end)).unwrap_or(&[])
    }
}

impl Operator for Dimensions {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let dims = self.of(call.tensor(0)?.shape());
        let mut shape = call.output::<i64>(&[dims.len()])?;
        for (to, dim) in shape.elements_mut()?.iter_mut().zip(dims) {
            *to = *dim as i64;
        }
        Ok(shape.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else {
            facts.give(0, [Dim::Unknown]);
            return Ok(());
        };
        let dims = self.of(dims);
        facts.give(0, [Dim::Fixed(dims.len())]);
        facts.give_list(0, DType::Int64, &dims.iter().map(Formula::of).collect::<List>());
        Ok(())
    }
}

#[derive(Debug)]
struct Size;

impl Operator for Size {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let count = call.tensor(0)?.len() as i64;
        let mut size = call.output::<i64>(&[])?;
        size.elements_mut()?.iter_mut().for_each(|to| *to = count);
        Ok(size.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give(0, []);
        if let Some(dims) = facts.dims(0) {
            facts.give_list(0, DType::Int64, &[Formula::of(&Dim::product(dims))]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};

    #[test]
    fn dimensions() {
        let data = tensor(&[2, 3, 1], [0i8; 6]);
        run("Shape", 1, [], [&data]).gives(tensor(&[3], [2i64, 3, 1]));
        for (start, end, want) in [(1, 3, &[3, 1][..]), (-1, 9, &[1]), (0, -1, &[2, 3]), (2, 1, &[]), (-9, 1, &[2])] {
            let want = tensor(&[want.len()], want.iter().map(|dim| *dim as i64).collect::<Vec<_>>());
            run("Shape", 15, [int("start", start), int("end", end)], [&data]).gives(want);
        }
        run("Shape", 25, [], [&tensor(&[], [1f32])]).gives(tensor(&[0], Vec::<i64>::new()));
        run("Size", 13, [], [&data]).gives(tensor(&[], [6i64]));
        run("Size", 1, [], [&tensor(&[0, 5], Vec::<i8>::new())]).gives(tensor(&[], [0i64]));
    }

    #[test]
    fn sizes_are_inferred() {
        infer("Shape", 25, [], ["float"]).gives("[?]");
        infer("Shape", 15, [int("start", 1)], ["float[N, 3]"]).gives("[1]");
        infer("Size", 13, [], ["float[N, 3]"]).lists("3*N");
        infer("Size", 1, [], ["float[2, 3]"]).lists("6");
        infer("Size", 13, [], ["float[]"]).lists("1");
        infer("Size", 25, [], ["float[N, ?]"]).gives("[]");
        infer("Size", 25, [], ["float"]).gives("[]");
    }
}
