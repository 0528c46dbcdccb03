//! Gather: slices of `data` picked along one axis by `indices`.
//! <https://onnx.ai/onnx/operators/onnx__Gather.html>

use crate::ops::prelude::*;

pub(super) const GATHER: Implementation = Implementation::run("Gather", &[1, 11, 13], load);

/// `output[a.., i.., b..] = data[a.., indices[i..], b..]`, where `a..` are the dimensions before `axis`
#[derive(Debug)]
struct Gather {
    axis: i64,
    range: Range,
}

/// Version 1 has no negative indices: they came with version 11.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let negative = node.version() >= 11 || node.compatibility().gather_1_negative_indices;
    let range = if negative { Range::Signed } else { Range::Unsigned { until: 11 } };
    Ok(Box::new(Gather { axis: node.int("axis")?, range }))
}

impl Operator for Gather {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, data, indices) = (call.axis(0, self.axis)?, call.tensor(0)?, call.tensor(1)?);
        call.charge(indices.len() as u64)?;
        let work = kernels::gather::Gather {
            data: data.bytes(),
            axis: self.range.bounds(axis.size),
            row: kernels::volume(data.dtype().size(), data.shape().iter().skip(axis.at + 1)),
            indices: indices_of(indices)?,
        };
        let mut output = call.output_like(data, axis.replaced_in(data.shape(), indices.shape()))?;
        let outcome = pick(call, work, output.bytes_mut())?;
        outcome.map_err(|why| {
            let error = out_of_range(why, call, &axis, self.range);
            let negative = self.range != Range::Signed && error.place().value.is_some_and(|value| value < 0);
            if negative { error.with_remedy(Remedy::Allow("gather_1_negative_indices")) } else { error }
        })?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let (Some(data), Some(indices)) = (facts.dims(0), facts.dims(1)) else { return Ok(()) };
        let at = facts.place("axis", data.len())?;
        let (before, after) = (data.get(..at).unwrap_or(&[]), data.get(at + 1..).unwrap_or(&[]));
        facts.give(0, [before, indices, after].concat());
        if let (Some(list), Some(picked)) = (facts.list(0), facts.known(1)) {
            // What is out of range is left to the run.
            let pick = |index: &i64| list.get(self.range.bounds(list.len()).entry(*index)?)?.clone();
            facts.give_list_like(0, 0, &picked.iter().map(pick).collect::<List>());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::ops::testing::{infer, int, run, tensor};

    #[test]
    fn the_examples_of_the_standard() {
        let data = tensor(&[3, 2], [1.0f32, 1.2, 2.3, 3.4, 4.5, 5.7]);
        let indices = tensor(&[2, 2], [0i64, 1, 1, 2]);
        let rows = tensor(&[2, 2, 2], [1.0f32, 1.2, 2.3, 3.4, 2.3, 3.4, 4.5, 5.7]);
        run("Gather", 13, [], [&data, &indices]).gives(rows);
        let data = tensor(&[3, 3], [1.0f32, 1.2, 1.9, 2.3, 3.4, 3.9, 4.5, 5.7, 5.9]);
        let columns = tensor(&[3, 1, 2], [1.0f32, 1.9, 2.3, 3.9, 4.5, 5.9]);
        run("Gather", 13, [int("axis", 1)], [&data, &tensor(&[1, 2], [0i32, 2])]).gives(columns);
    }

    /// Sizes are followed at load, where an index out of range isn't.
    #[test]
    fn sizes() {
        let (sizes, index) = (tensor(&[3], [5i64, 6, 7]), |at: i64| tensor(&[1], [at]));
        run("Gather", 13, [], [&sizes, &index(-1)]).gives(tensor(&[1], [7i64]));
        run("Gather", 13, [], [&sizes, &index(3)]).fails("indices[0] = 3 is out of range");
        run("Gather", 1, [], [&sizes, &index(-1)]).fails("indices[0] = -1 is negative");
        infer("Gather", 13, [], ["{N, 3}", "{-2}"]).lists("N");
    }

    #[test]
    fn edges() {
        let data = tensor(&[3], [5i8, 6, 7]);
        run("Gather", 11, [int("axis", -1)], [&data, &tensor(&[], [-1i64])]).gives(tensor(&[], [7i8]));
        run("Gather", 1, [], [&data, &tensor(&[0], Vec::<i32>::new())]).gives(tensor(&[0], Vec::<i8>::new()));
        let empty = tensor(&[0, 2], Vec::<f32>::new());
        run("Gather", 13, [int("axis", 1)], [&empty, &tensor(&[1], [1i64])]).gives(tensor(&[0, 1], Vec::<f32>::new()));
    }

    #[test]
    fn refusals() {
        let (data, scalar) = (tensor(&[3], [5i8, 6, 7]), tensor(&[], [5i8]));
        let index = |value: i64| tensor(&[1], [value]);
        let error = run("Gather", 13, [], [&data, &index(3)]).fails("indices[0] = 3 is out of range for axis 0");
        assert_eq!((error.kind(), error.place().size), (Kind::Input, Some(3)));
        run("Gather", 10, [], [&data, &index(-1)]).fails("allowed from version 11 on only");
        run("Gather", 13, [int("axis", 1)], [&data, &index(0)]).fails("axis 1 is out of range");
        run("Gather", 13, [], [&scalar, &index(0)]).fails("is a scalar");
    }
}
