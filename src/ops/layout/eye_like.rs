//! EyeLike: ones on a diagonal of a matrix, zeros elsewhere.
//! <https://onnx.ai/onnx/operators/onnx__EyeLike.html>

use crate::ops::prelude::*;
use kernels::convert::{Conversion, convert};

pub(super) const EYE_LIKE: Implementation = Implementation::run("EyeLike", &[9, 22], load);

/// `output[i, j] = 1` where `j = i + k`, else 0
#[derive(Debug)]
struct EyeLike {
    /// By default the type of the input.
    dtype: Option<DType>,
    k: i64,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let dtype = node.optional("dtype", Node::output_type)?;
    Ok(Box::new(EyeLike { dtype, k: node.int("k")? }))
}

impl Operator for EyeLike {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let input = call.tensor(0)?;
        let &[_, columns] = input.shape() else {
            let shape = ShapeText(input.shape());
            return Err(Error::input(format!("\"input\" has shape {shape}: it needs rank 2")).parameter("input"));
        };
        let dtype = self.dtype.unwrap_or(input.dtype());
        let size = dtype.size();
        let mut one = [0u64];
        let one = bytemuck::cast_slice_mut(&mut one).get_mut(..size).unwrap_or(&mut []);
        convert(Conversion::plain(Format::Bool, dtype.format()), &[1], one, call.resources())?;
        let mut output = call.output_of(dtype, shape_of([input.shape()]))?;
        kernels::pieces(
            output.bytes_mut(),
            size,
            columns.saturating_mul(size),
            1,
            call.resources(),
            |i, start, piece| {
                piece.fill(0);
                let place = usize::try_from(i as i128 + i128::from(self.k)).ok().filter(|j| *j < columns);
                let place =
                    place.and_then(|j| (j * size).checked_sub(start)).and_then(|at| piece.get_mut(at..at + size));
                place.into_iter().for_each(|place| place.copy_from_slice(one));
                Ok(())
            },
        )?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(0, 2..=2)?;
        facts.give_shape_of(0, 0);
        match self.dtype {
            Some(dtype) => facts.give_type(0, dtype),
            None => facts.give_type_of(0, 0),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{infer, int, run, tensor};
    use half::bf16;

    #[test]
    fn diagonals() {
        let input = tensor(&[2, 3], [7i32; 6]);
        run("EyeLike", 9, [], [&input]).gives(tensor(&[2, 3], [1i32, 0, 0, 0, 1, 0]));
        let double = int("dtype", DType::Double.code().into());
        run("EyeLike", 9, [double, int("k", 1)], [&input]).gives(tensor(&[2, 3], [0f64, 1.0, 0.0, 0.0, 0.0, 1.0]));
        run("EyeLike", 22, [int("k", -1)], [&tensor(&[2, 1], [bf16::ZERO; 2])])
            .gives(tensor(&[2, 1], [bf16::ZERO, bf16::ONE]));
        for far in [i64::MAX, i64::MIN] {
            run("EyeLike", 9, [int("k", far)], [&input]).gives(tensor(&[2, 3], [0i32; 6]));
        }
        let empty = tensor(&[0, 3], Vec::<bool>::new());
        run("EyeLike", 9, [], [&empty]).gives(&empty);
    }

    #[test]
    fn refusals() {
        run("EyeLike", 9, [], [&tensor(&[2], [1f32, 2.0])]).fails("\"input\" has shape [2]: it needs rank 2");
        let strings = int("dtype", DType::String.code().into());
        run("EyeLike", 9, [strings], [&tensor(&[1, 1], [1f32])]).fails("dtype asks for string: allowed");
    }

    #[test]
    fn inferred() {
        infer("EyeLike", 9, [], ["float[N, 3]"]).gives("[N, 3]");
        infer("EyeLike", 9, [], ["float[N]"]).fails("allowed rank 2");
    }
}
