//! Flatten: the same elements as a matrix.
//! <https://onnx.ai/onnx/operators/onnx__Flatten.html>

use crate::ops::prelude::*;
use std::fmt::Display;

pub(super) const FLATTEN: Implementation = Implementation::run("Flatten", &[1, 9, 11, 13, 21, 23, 24, 25], load);

/// The dimensions before `axis` become the first one, the others the second.
#[derive(Debug)]
struct Flatten {
    axis: i64,
    /// Whether the axis may be negative.
    negative: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Flatten { axis: node.int("axis")?, negative: takes_negative_axes(node) }))
}

impl Flatten {
    /// The number of dimensions before the axis, which may be one behind the last.
    fn place(&self, rank: usize, shape: impl Display) -> Result<usize> {
        let at = if self.axis == rank as i64 { Some(rank) } else { Axis::place(self.axis.into(), rank) };
        at.filter(|_| self.negative || self.axis >= 0).ok_or_else(|| {
            let least = if self.negative && rank > 0 { format!("-{rank}") } else { "0".to_string() };
            let text = format!("axis {} is out of range for \"input\" of shape {shape}", self.axis);
            let error = Error::model(format!("{text}: allowed {least}..={rank}")).attribute("axis");
            let error = error.axis(self.axis).value(self.axis);
            if self.negative { error } else { not_negative(error, rank) }
        })
    }
}

impl Operator for Flatten {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let shape = call.tensor(0)?.shape();
        let rank = shape.len();
        let at = self.place(rank, ShapeText(shape))?;
        let (rows, columns) = (kernels::volume(1, shape.iter().take(at)), kernels::volume(1, shape.iter().skip(at)));
        call.reshaped(0, smallvec![rows, columns])
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else {
            facts.give(0, [Dim::Unknown, Dim::Unknown]);
            return Ok(());
        };
        let at = self.place(dims.len(), DimsText(dims))?;
        facts.give(0, [Dim::product(dims.iter().take(at)), Dim::product(dims.iter().skip(at))]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};

    #[test]
    fn axes() {
        let data = |dims: &[usize]| tensor(dims, [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for (axis, rows, columns) in [(0, 1, 6), (1, 1, 6), (2, 2, 3), (3, 6, 1), (-1, 2, 3), (-3, 1, 6)] {
            run("Flatten", 11, [int("axis", axis)], [&data(&[1, 2, 3])]).gives(data(&[rows, columns]));
        }
        run("Flatten", 1, [], [&data(&[3, 2, 1])]).gives(data(&[3, 2]));
        run("Flatten", 13, [int("axis", 0)], [&tensor(&[], [7f32])]).gives(tensor(&[1, 1], [7f32]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[1, 2], [1f32, 2.0]);
        run("Flatten", 9, [int("axis", -1)], [&data])
            .fails("axis -1 is out of range for \"input\" of shape [1, 2]: allowed 0..=2");
        run("Flatten", 25, [int("axis", 3)], [&data]).fails("allowed -2..=2");
        run("Flatten", 25, [int("axis", 1)], [&tensor(&[], [7f32])]).fails("of shape []: allowed 0..=0");
        // Rows of nothing, but more than a dimension counts.
        let long = 1 << (usize::BITS / 2 + 8);
        let nothing = tensor(&[long, long, 0], Vec::<f32>::new());
        run("Flatten", 13, [int("axis", 1)], [&nothing]).gives(tensor(&[long, 0], Vec::<f32>::new()));
        run("Flatten", 13, [int("axis", 2)], [&nothing]).fails("has a dimension that is too large: allowed 0..=");
    }

    #[test]
    fn inferred() {
        infer("Flatten", 13, [], ["float[N, 3, W]"]).gives("[N, 3*W]");
        infer("Flatten", 9, [int("axis", 3)], ["float[N, 3, W]"]).gives("[3*N*W, 1]");
        infer("Flatten", 13, [], ["float"]).gives("[?, ?]");
        infer("Flatten", 13, [int("axis", 3)], ["float[N, W]"])
            .fails("axis 3 is out of range for \"input\" of shape [N, W]: allowed -2..=2");
    }
}
