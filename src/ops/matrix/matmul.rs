//! MatMul: products of matrices, as numpy's `matmul`.
//! <https://onnx.ai/onnx/operators/onnx__MatMul.html>

use super::bytes::ByteMatMul;
use crate::ops::prelude::*;

pub(super) const MATMUL: Implementation = Implementation::product("MatMul", &[1, 9, 13], load);

/// `Y[.., i, j] = sum over p of A[.., i, p] * B[.., p, j]`
///
/// Dimensions before the last two are broadcast. A vector is a row as `A` and a column as `B`, and the output lacks
/// that dimension.
#[derive(Debug)]
struct MatMul {
    weights: Weights,
    small: Option<SmallWeights>,
}

fn load(node: &Node<'_>) -> Result<Arc<dyn MatrixProduct>> {
    Ok(Arc::new(MatMul { weights: Weights::of(node, 1), small: None }))
}

impl MatMul {
    fn multiply<S: Multiply>(&self, call: &Call<'_>, tail: Option<&Tail>) -> Result<Values> {
        let (a, b) = (call.ranked(0)?, call.ranked(1)?);
        let sizes = Sizes::of(a.shape(), b.shape(), ["A", "B"])?;
        let Sizes { m, k, n, batch, .. } = &sizes;
        let mut output = call.output::<S>(&sizes.output)?;
        let count = b.len().checked_div(k.saturating_mul(*n)).unwrap_or(0);
        let mut room = None;
        let b = match &self.small {
            Some(small) => small.right(call, b, &mut room)?,
            None => {
                let b = Matrix { tensor: b, columns: *n, transposed: false };
                self.weights.right::<S>(call, b, count, (*k, *n))?
            }
        };
        let a = Left::View(View::rows(a.as_slice::<S>()?, *k));
        let steps = TailSteps::<S>::of(call, tail, (*m, *n))?;
        let product = Product::<S> { m: *m, k: *k, n: *n, a, b, batch, epilogue: &steps.all() };
        multiply(call, product, output.elements_mut()?)?;
        Ok(output.finish().into())
    }
}

impl MatrixProduct for MatMul {
    fn shape(&self, call: &Call<'_>, dtype: DType) -> Option<Shape> {
        let (a, b) = (call.ranked(0).ok().filter(|a| a.dtype() == dtype)?, call.ranked(1).ok()?);
        Some(Sizes::of(a.shape(), b.shape(), ["A", "B"]).ok()?.output)
    }

    fn run_then(&self, call: &Call<'_>, tail: &Tail) -> Result<Values> {
        with_numbers!(call.tensor(0)?.dtype(), S => self.multiply::<S>(call, Some(tail)))
    }

    fn of_bytes(&self, bytes: ByteProduct) -> Option<Box<dyn Fused>> {
        Some(Box::new(ByteMatMul::new(false, bytes)))
    }

    fn of_integers(&self, integers: Dequantized) -> Option<Arc<dyn MatrixProduct>> {
        Some(Arc::new(MatMul { weights: Weights::known(true), small: Some(SmallWeights::new(integers)) }))
    }

    fn weighing(&self, weighing: Weighing) -> Option<Box<dyn Fused>> {
        Some(Box::new(weighing))
    }
}

impl Operator for MatMul {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        with_numbers!(call.tensor(0)?.dtype(), S => self.multiply::<S>(call, None))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        give_product(facts, 0, 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::Element;
    use crate::ops::testing::{infer, run, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    /// The numbers from 1 on.
    fn iota(shape: &[usize]) -> Value {
        tensor(shape, (1..=shape.iter().product()).map(|k| k as f32).collect::<Vec<_>>())
    }

    #[test]
    fn shapes() {
        let gives = |a: &[usize], b: &[usize], shape: &[usize], want: &[f32]| {
            run("MatMul", 13, [], [&iota(a), &iota(b)]).gives(tensor(shape, want));
        };
        gives(&[2, 3], &[3, 2], &[2, 2], &[22., 28., 49., 64.]);
        gives(&[3], &[3], &[], &[14.]);
        gives(&[2, 3], &[3], &[2], &[14., 32.]);
        gives(&[2], &[2, 3], &[3], &[9., 12., 15.]);
        gives(&[2, 1, 2], &[2, 1], &[2, 1, 1], &[5., 11.]);
        gives(&[2], &[2, 2, 1], &[2, 1], &[5., 11.]);
        gives(&[1, 2], &[2, 2, 1], &[2, 1, 1], &[5., 11.]);
        gives(&[2, 1, 1, 2], &[2, 2, 1], &[2, 2, 1, 1], &[5., 11., 11., 25.]);
        gives(&[2, 2, 1, 1], &[2, 1, 1, 1], &[2, 2, 1, 1], &[1., 2., 6., 8.]);
        gives(&[2, 0], &[0, 2], &[2, 2], &[0.; 4]);
        gives(&[0, 2], &[2, 2], &[0, 2], &[]);
        gives(&[3, 0, 2], &[2, 2], &[3, 0, 2], &[]);
        gives(&[0, 1, 2], &[1, 2, 1], &[0, 1, 1], &[]);
        gives(&[0], &[0], &[], &[0.]);
    }

    #[test]
    fn types() {
        fn product<T: Element>(of: fn(i32) -> T) -> (Value, Value, Value) {
            let values = |values: &[i32]| values.iter().map(|v| of(*v)).collect::<Vec<_>>();
            (tensor(&[1, 2], values(&[3, 4])), tensor(&[2, 1], values(&[5, 6])), tensor(&[1, 1], values(&[39])))
        }
        let cases = [
            product(|v| v as f32),
            product(f64::from),
            product(|v| f16::from_f32(v as f32)),
            product(|v| bf16::from_f32(v as f32)),
            product(|v| v),
            product(i64::from),
            product(|v| v as u32),
            product(|v| v as u64),
        ];
        for (a, b, want) in cases {
            run("MatMul", 13, [], [&a, &b]).gives(want);
        }
        // Integers wrap, and halves round once.
        run("MatMul", 9, [], [&tensor(&[2], [i32::MAX, 1]), &tensor(&[2], [2, 3])]).gives(tensor(&[], [1]));
        let (a, b) = (tensor(&[3], [2048., 1., 1.].map(f16::from_f32)), tensor(&[3], [f16::ONE; 3]));
        run("MatMul", 1, [], [&a, &b]).gives(tensor(&[], [f16::from_f32(2050.)]));
    }

    #[test]
    fn refusals() {
        let error = run("MatMul", 13, [], [&iota(&[2, 3]), &iota(&[4, 5])]).fails(
            "\"A\" of shape [2, 3] and \"B\" of shape [4, 5] can't be multiplied: \
             dimension 1 of \"A\" is 3 and dimension 0 of \"B\" is 4",
        );
        assert_eq!((error.place().axis, error.place().value), (Some(0), Some(4)));
        run("MatMul", 1, [], [&iota(&[3]), &iota(&[2, 2, 3])])
            .fails("dimension 0 of \"A\" is 3 and dimension 1 of \"B\" is 2");
        run("MatMul", 1, [], [&iota(&[1, 3]), &iota(&[2])]).fails("dimension 0 of \"B\" is 2");
        run("MatMul", 1, [], [&iota(&[2, 1, 1]), &iota(&[4, 3, 1, 1])])
            .fails("dimension 0 of \"A\" is 2 and dimension 1 of \"B\" is 3, and neither is 1");
        run("MatMul", 1, [], [&iota(&[]), &iota(&[1])]).fails("\"A\" is a scalar: it needs a rank of at least 1");
    }

    #[test]
    fn dims_at_load() {
        let gives = |a: &str, b: &str, want: &str| infer("MatMul", 13, [], [a, b]).gives(want);
        gives("float[n, 3]", "float[?, 2]", "[n, 2]");
        gives("float[n, 1, 4, ?]", "float[7, ?, ?]", "[n, 7, 4, ?]");
        gives("float[?]", "float[?]", "[]");
        gives("float[n, 2, 3]", "float[3]", "[n, 2]");
        gives("float", "float[3]", "");
        infer("MatMul", 13, [], ["float[2, 3]", "float[4, 5]"])
            .fails("dimension 1 of \"A\" of shape [2, 3] is 3, and dimension 0 of \"B\" of shape [4, 5] is 4");
    }
}
