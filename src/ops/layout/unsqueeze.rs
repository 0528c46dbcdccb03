//! Unsqueeze: the same elements with more dimensions of size 1.
//! <https://onnx.ai/onnx/operators/onnx__Unsqueeze.html>

use crate::ops::prelude::*;

pub(super) const UNSQUEEZE: Implementation = Implementation::run("Unsqueeze", &[1, 11, 13, 21, 23, 24, 25], load);

/// Inserts dimensions of size 1, so that they are at `axes` of the output.
#[derive(Debug)]
struct Unsqueeze {
    axes: Axes,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Unsqueeze { axes: Axes::unsigned_at_first(node, 13)? }))
}

impl Operator for Unsqueeze {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let shape = call.tensor(0)?.shape();
        let rank = shape.len() + self.axes.count(call)?;
        call.check_rank(rank)?;
        let places = self.axes.places(call, rank)?.unwrap_or_default();
        let mut kept = shape.iter();
        let dims = (0..rank).filter_map(|at| if places.contains(&at) { Some(1) } else { kept.next().copied() });
        call.reshaped(0, dims.collect())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        let Some(count) = self.axes.known_count(facts) else { return Ok(()) };
        let Some(Some(places)) = self.axes.known(facts, dims.len() + count)? else { return Ok(()) };
        let mut kept = dims.iter();
        let dim = |at: usize| if places.contains(&at) { Some(Dim::Fixed(1)) } else { kept.next().cloned() };
        facts.give(0, (0..dims.len() + count).filter_map(dim).collect::<Vec<_>>());
        if let Some(list) = facts.list(0) {
            facts.give_list_like(0, 0, &list);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{run, tensor};

    #[test]
    fn axes() {
        let data = |dims: &[usize]| tensor(dims, [1u8, 2]);
        run("Unsqueeze", 1, [("axes", Attribute::Ints(vec![0, 2]))], [&data(&[2])]).gives(data(&[1, 2, 1]));
        run("Unsqueeze", 13, [], [&data(&[2]), &tensor(&[2], [-1i64, 0])]).gives(data(&[1, 2, 1]));
        run("Unsqueeze", 25, [], [&data(&[1, 2]), &tensor(&[1], [1i64])]).gives(data(&[1, 1, 2]));
        run("Unsqueeze", 13, [], [&tensor(&[], [3u8]), &tensor(&[1], [0i64])]).gives(tensor(&[1], [3u8]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[2], [1u8, 2]);
        let axes = |values: &[i64]| tensor(&[values.len()], values);
        run("Unsqueeze", 13, [], [&data, &axes(&[2])]).fails("axis 2 is out of range: allowed -2..=1");
        run("Unsqueeze", 13, [], [&data, &axes(&[0, -3])]).fails("axis -3 is given twice");
        run("Unsqueeze", 13, [], [&data, &axes(&[0; 100])]).fails("has 101 dimensions: the limit is 64");
    }
}
