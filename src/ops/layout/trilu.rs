//! Trilu: the upper or lower triangle of matrices; the rest is zero.
//! <https://onnx.ai/onnx/operators/onnx__Trilu.html>

use crate::ops::prelude::*;

pub(super) const TRILU: Implementation = Implementation::run("Trilu", &[14], load);

/// `output[b.., i, j] = input[b.., i, j]` where `j - i >= k` (`upper`) or `j - i <= k`, else 0
#[derive(Debug)]
struct Trilu {
    upper: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Trilu { upper: node.is_set("upper")? }))
}

impl Operator for Trilu {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let input = call.tensor(0)?;
        let &[.., rows, columns] = input.shape() else {
            let shape = ShapeText(input.shape());
            let text = format!("\"input\" has shape {shape}: it needs a rank of at least 2");
            return Err(Error::input(text).parameter("input"));
        };
        let size = input.dtype().size();
        let k = if call.input(1).is_some() { call.scalar::<i64>(1)? } else { 0 };
        let mut output = call.output_over(0)?;
        kernels::pieces(
            output.bytes_mut(),
            size,
            columns.saturating_mul(size),
            1,
            call.resources(),
            |at, start, piece| {
                let diagonal = (at % rows) as i128 + i128::from(k);
                let place = |column: i128| {
                    let place = column.clamp(0, columns as i128) as usize * size;
                    place.saturating_sub(start).min(piece.len())
                };
                let zeros = if self.upper { 0..place(diagonal) } else { place(diagonal + 1)..piece.len() };
                piece.get_mut(zeros).into_iter().for_each(|zeros| zeros.fill(0));
                Ok(())
            },
        )?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(0, 2..)?;
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn trilu(upper: i64, k: i64, want: [i8; 6]) {
        let data = tensor(&[2, 3], [1i8, 2, 3, 4, 5, 6]);
        run("Trilu", 14, [int("upper", upper)], [&data, &tensor(&[], [k])]).gives(tensor(&[2, 3], want));
    }

    #[test]
    fn triangles() {
        trilu(1, 0, [1, 2, 3, 0, 5, 6]);
        trilu(1, 1, [0, 2, 3, 0, 0, 6]);
        trilu(1, -1, [1, 2, 3, 4, 5, 6]);
        trilu(0, 0, [1, 0, 0, 4, 5, 0]);
        trilu(0, -1, [0, 0, 0, 4, 0, 0]);
        for far in [i64::MAX, i64::MIN] {
            let (all, none) = ([1, 2, 3, 4, 5, 6], [0; 6]);
            trilu(1, far, if far < 0 { all } else { none });
            trilu(0, far, if far > 0 { all } else { none });
        }
    }

    #[test]
    fn edges() {
        let batches = tensor(&[2, 2, 2], [1f32; 8]);
        run("Trilu", 14, [], [&batches]).gives(tensor(&[2, 2, 2], [1f32, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0]));
        let empty = tensor(&[2, 0], Vec::<bool>::new());
        run("Trilu", 14, [], [&empty]).gives(&empty);
        let text = |strings: [&str; 4]| Value::from(Tensor::from_strings(&[2, 2], strings).unwrap());
        run("Trilu", 14, [], [&text(["a", "b", "c", "d"])]).gives(text(["a", "b", "", "d"]));
    }

    #[test]
    fn refusals() {
        run("Trilu", 14, [], [&tensor(&[2], [1i8, 2])]).fails("\"input\" has shape [2]: it needs a rank of at least 2");
        run("Trilu", 14, [], [&tensor(&[1, 1], [1i8]), &tensor(&[2], [0i64, 1])]).fails("one value is needed");
    }

    #[test]
    fn inferred() {
        infer("Trilu", 14, [], ["float[N, 3]"]).gives("[N, 3]");
        infer("Trilu", 14, [], ["float[N]"]).fails("allowed ranks from 2 on");
    }
}
