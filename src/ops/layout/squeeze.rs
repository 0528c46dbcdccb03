//! Squeeze: the same elements without dimensions of size 1.
//! <https://onnx.ai/onnx/operators/onnx__Squeeze.html>

use crate::ops::prelude::*;

pub(super) const SQUEEZE: Implementation = Implementation::run("Squeeze", &[1, 11, 13, 21, 23, 24, 25], load);

/// Removes `axes`, or without them all dimensions of size 1.
#[derive(Debug)]
struct Squeeze {
    axes: Axes,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Squeeze { axes: Axes::unsigned_at_first(node, 13)? }))
}

impl Operator for Squeeze {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let shape = call.tensor(0)?.shape();
        let removed = match self.axes.places(call, shape.len())? {
            Some(places) => places,
            None => shape.iter().enumerate().filter(|(_, size)| **size == 1).map(|(at, _)| at).collect(),
        };
        if let Some((&at, &size)) =
            removed.iter().filter_map(|at| Some((at, shape.get(*at)?))).find(|(_, size)| **size != 1)
        {
            return Err(not_one(at, size, ShapeText(shape)));
        }
        let left = shape.iter().enumerate().filter(|(at, _)| !removed.contains(at)).map(|(_, size)| *size).collect();
        call.reshaped(0, left)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        let removed = match self.axes.known(facts, dims.len())? {
            Some(Some(places)) => places,
            Some(None) if Dim::sizes(dims).is_some() => {
                dims.iter().enumerate().filter(|(_, dim)| **dim == Dim::Fixed(1)).map(|(at, _)| at).collect()
            }
            _ => return Ok(()),
        };
        let size = |at: &usize| if let Some(Dim::Fixed(size)) = dims.get(*at) { Some((*at, *size)) } else { None };
        if let Some((at, size)) = removed.iter().filter_map(size).find(|(_, size)| *size != 1) {
            return Err(not_one(at, size, DimsText(dims)));
        }
        facts.give(
            0,
            dims.iter()
                .enumerate()
                .filter(|(at, _)| !removed.contains(at))
                .map(|(_, dim)| dim.clone())
                .collect::<Vec<_>>(),
        );
        if let Some(list) = facts.list(0) {
            facts.give_list_like(0, 0, &list);
        }
        Ok(())
    }
}

#[cold]
fn not_one(at: usize, size: usize, shape: impl std::fmt::Display) -> Error {
    let text = format!("axis {at} of \"data\" of shape {shape} has size {size}: only size 1 can be removed");
    Error::input(text).parameter("data").axis(at as i64).size(size)
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{run, tensor};

    #[test]
    fn axes() {
        let data = |dims: &[usize]| tensor(dims, [1i64, 2]);
        run("Squeeze", 1, [("axes", Attribute::Ints(vec![0, 2]))], [&data(&[1, 2, 1])]).gives(data(&[2]));
        run("Squeeze", 13, [], [&data(&[1, 2, 1]), &tensor(&[1], [-1i64])]).gives(data(&[1, 2]));
        run("Squeeze", 25, [], [&data(&[1, 2, 1])]).gives(data(&[2]));
        run("Squeeze", 13, [], [&data(&[1, 2]), &tensor(&[0], Vec::<i64>::new())]).gives(data(&[1, 2]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[1, 2], [1i64, 2]);
        let axes = |values: &[i64]| tensor(&[values.len()], values);
        run("Squeeze", 13, [], [&data, &axes(&[1])]).fails("axis 1 of \"data\" of shape [1, 2] has size 2");
        run("Squeeze", 13, [], [&data, &axes(&[2])]).fails("axis 2 is out of range: allowed -2..=1");
        run("Squeeze", 13, [], [&data, &axes(&[0, -2])]).fails("axis -2 is given twice");
        run("Squeeze", 1, [("axes", Attribute::Ints(vec![-2]))], [&data])
            .fails("axis -2 is out of range: allowed 0..=1");
    }
}
