//! Gemm: the product of two matrices, scaled, plus a third one.
//! <https://onnx.ai/onnx/operators/onnx__Gemm.html>

use super::bytes::ByteMatMul;
use crate::ops::prelude::*;
use std::fmt::Display;

pub(super) const GEMM: Implementation = Implementation::product("Gemm", &[1, 6, 7, 9, 11, 13], load);

/// `Y = alpha * A' * B' + beta * C`, where `A'` and `B'` are `A` and `B`, transposed if `transA` and `transB` say so,
/// and `C` is broadcast to the shape of `Y`
///
/// The product is summed first; then come `alpha *`, `beta *` and the sum, each rounded on its own (for float16 and
/// bfloat16 as float32, which is rounded once in the end). Integers wrap if `alpha` and `beta` are integers. Else the
/// value is computed as float64 and cut to an integer.
#[derive(Debug)]
struct Gemm {
    alpha: f32,
    beta: f32,
    transposed: [bool; 2],
    /// Up to version 6 `C` is broadcast only if the attribute `broadcast` says so.
    broadcast: bool,
    weights: Weights,
    small: Option<SmallWeights>,
}

fn load(node: &Node<'_>) -> Result<Arc<dyn MatrixProduct>> {
    Ok(Arc::new(Gemm {
        alpha: node.float("alpha")?,
        beta: node.float("beta")?,
        transposed: [node.is_set("transA")?, node.is_set("transB")?],
        broadcast: node.version() >= 7 || node.is_set("broadcast")?,
        weights: Weights::of(node, 1),
        small: None,
    }))
}

impl Gemm {
    fn multiply<S: Multiply>(&self, call: &Call<'_>, tail: Option<&Tail>) -> Result<Values> {
        let (a, b, c) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let [of_a, of_b] = self.transposed;
        let (left, right) = (matrix(call, 0, a, of_a)?, matrix(call, 1, b, of_b)?);
        let (m, k, n) = (left.rows, left.columns, right.columns);
        if k != right.rows {
            return Err(self.unequal(a.shape(), b.shape(), k, right.rows));
        }
        let c = c.map(|c| self.addend::<S>(c, [m, n])).transpose()?;
        let mut output = call.output::<S>(&[m, n])?;
        let mut room = None;
        let b = match &self.small {
            Some(small) => small.right(call, b, &mut room)?,
            None => self.weights.right::<S>(call, right.matrix, 1, (k, n))?,
        };
        let scaled = Scaled { alpha: self.alpha, beta: self.beta, c };
        let steps = TailSteps::<S>::of(call, tail, (m, n))?;
        let epilogue: SmallVec<[&dyn kernels::gemm::Step<S::Sum>; 3]> =
            [&scaled as _].into_iter().chain(steps.all()).collect();
        let a = Left::View(left.matrix.aligned::<S>()?);
        let product = Product::<S> { m, k, n, a, b, batch: &[], epilogue: &epilogue };
        multiply(call, product, output.elements_mut()?)?;
        Ok(output.finish().into())
    }

    /// The rows and columns of `C`, if it can be broadcast to the output.
    fn addend_sizes(&self, shape: &[usize], output: [usize; 2]) -> Option<[usize; 2]> {
        let [rows, columns] = match *shape {
            [] => [1, 1],
            [columns] => [1, columns],
            [rows, columns] => [rows, columns],
            _ => return None,
        };
        let fits = (rows == output[0] || rows == 1) && (columns == output[1] || columns == 1);
        (fits && (self.broadcast || *shape == output)).then_some([rows, columns])
    }

    /// `C`, broadcast to the output.
    fn addend<'a, S: Multiply>(&self, c: &'a Tensor, output: [usize; 2]) -> Result<Broadcast<'a, S>> {
        let Some([rows, columns]) = self.addend_sizes(c.shape(), output) else {
            return Err(self.unfit(ShapeText(c.shape()), ShapeText(&output)));
        };
        let elements = c.as_slice::<S>()?;
        let strides =
            Strides { row: if rows == 1 { 0 } else { columns }, column: usize::from(columns > 1), batch: &[] };
        Ok(Broadcast { elements, strides })
    }

    #[cold]
    fn unfit(&self, shape: impl Display, output: impl Display) -> Error {
        let text = if self.broadcast {
            format!("\"C\" of shape {shape} can't be broadcast to the shape of the output, {output}")
        } else {
            format!("\"C\" has shape {shape}, and the output {output}: without \"broadcast\" they must be equal")
        };
        Error::input(text).parameter("C")
    }

    #[cold]
    fn unequal(&self, a: &[usize], b: &[usize], size: usize, value: usize) -> Error {
        let (at_a, at_b) = (usize::from(!self.transposed[0]), usize::from(self.transposed[1]));
        let (a, b) = (ShapeText(a), ShapeText(b));
        let (trans_a, trans_b) = (self.transposed[0] as u8, self.transposed[1] as u8);
        let text = format!(
            "\"A\" of shape {a} and \"B\" of shape {b} can't be multiplied with transA = {trans_a} and \
             transB = {trans_b}: dimension {at_a} of \"A\" is {size} and dimension {at_b} of \"B\" is {value}"
        );
        Error::input(text).parameter("B").axis(at_b as i64).size(size).value(value as i128)
    }
}

impl MatrixProduct for Gemm {
    fn shape(&self, call: &Call<'_>, dtype: DType) -> Option<Shape> {
        let matrix = |k: usize, transposed: bool| match *call.tensor(k).ok()?.shape() {
            [rows, columns] => Some(if transposed { [columns, rows] } else { [rows, columns] }),
            _ => None,
        };
        let [of_a, of_b] = self.transposed;
        let ([m, k], [rows, n]) = (matrix(0, of_a)?, matrix(1, of_b)?);
        let c = call.optional_tensor(2).ok()?;
        let fits = call.tensor(0).ok()?.dtype() == dtype
            && k == rows
            && c.is_none_or(|c| self.addend_sizes(c.shape(), [m, n]).is_some());
        fits.then(|| Shape::from_slice(&[m, n]))
    }

    fn run_then(&self, call: &Call<'_>, tail: &Tail) -> Result<Values> {
        with_numbers!(call.tensor(0)?.dtype(), S => self.multiply::<S>(call, Some(tail)))
    }

    fn of_bytes(&self, bytes: ByteProduct) -> Option<Box<dyn Fused>> {
        let [of_a, of_b] = self.transposed;
        let plain = self.alpha == 1.0 && self.beta == 1.0 && !of_a;
        plain.then(|| Box::new(ByteMatMul::new(of_b, bytes)) as _)
    }

    fn of_integers(&self, integers: Dequantized) -> Option<Arc<dyn MatrixProduct>> {
        let (weights, small) = (Weights::known(true), Some(SmallWeights::new(integers)));
        Some(Arc::new(Gemm { weights, small, ..*self }))
    }
}

impl Operator for Gemm {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        with_numbers!(call.tensor(0)?.dtype(), S => self.multiply::<S>(call, None))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let [of_a, of_b] = self.transposed;
        let (a, b) = (facts.sizes::<2>(0)?, facts.sizes::<2>(1)?);
        facts.same_size((0, usize::from(!of_a)), (1, usize::from(of_b)))?;
        let dim = |dims: Option<&[Dim; 2]>, second: bool| match dims {
            Some([rows, columns]) => if second { columns } else { rows }.clone(),
            None => Dim::Unknown,
        };
        let output = [dim(a, of_a), dim(b, !of_b)];
        let fits = if self.broadcast { facts.spreads(2, &output) } else { facts.needs(2, &output).is_ok() };
        if let Some(c) = facts.dims(2).filter(|_| !fits) {
            return Err(self.unfit(DimsText(c), DimsText(&output)));
        }
        facts.give(0, output);
        Ok(())
    }
}

/// An operand after its transposition.
struct Sides<'a> {
    rows: usize,
    columns: usize,
    matrix: Matrix<'a>,
}

fn matrix<'a>(call: &Call<'_>, k: usize, tensor: &'a Tensor, transposed: bool) -> Result<Sides<'a>> {
    let &[rows, columns] = tensor.shape() else {
        let (name, shape) = (call.name(k), ShapeText(tensor.shape()));
        let text = format!("\"{name}\" of shape {shape} has rank {}: it must be a matrix", tensor.rank());
        return Err(Error::input(text).parameter(name));
    };
    let matrix = Matrix { tensor, columns, transposed };
    Ok(match transposed {
        false => Sides { rows, columns, matrix },
        true => Sides { rows: columns, columns: rows, matrix },
    })
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::value::Value;
    use half::f16;

    fn float(name: &str, value: f32) -> (&str, Attribute) {
        (name, Attribute::Float(value))
    }

    fn a() -> Value {
        tensor(&[2, 3], [1f32, 2., 3., 4., 5., 6.])
    }

    fn b() -> Value {
        tensor(&[3, 2], [1f32, 0., 0., 1., 1., 1.])
    }

    #[test]
    fn transposed_operands() {
        let want = || tensor(&[2, 2], [4f32, 5., 10., 11.]);
        run("Gemm", 13, [], [&a(), &b()]).gives(want());
        let turned_a = tensor(&[3, 2], [1f32, 4., 2., 5., 3., 6.]);
        run("Gemm", 11, [int("transA", 1)], [&turned_a, &b()]).gives(want());
        let turned_b = tensor(&[2, 3], [1f32, 0., 1., 0., 1., 1.]);
        run("Gemm", 11, [int("transB", 1)], [&a(), &turned_b]).gives(want());
        run("Gemm", 13, [int("transA", 1), int("transB", 2)], [&turned_a, &turned_b]).gives(want());
    }

    #[test]
    fn factors_and_addends() {
        let gives = |c: Value, want: [f32; 4]| {
            let factors = [float("alpha", 2.), float("beta", 0.5)];
            run("Gemm", 7, factors, [&a(), &b(), &c]).gives(tensor(&[2, 2], want));
        };
        gives(tensor(&[], [2f32]), [9., 11., 21., 23.]);
        gives(tensor(&[1], [2f32]), [9., 11., 21., 23.]);
        gives(tensor(&[2], [2f32, 4.]), [9., 12., 21., 24.]);
        gives(tensor(&[1, 2], [2f32, 4.]), [9., 12., 21., 24.]);
        gives(tensor(&[2, 1], [2f32, 4.]), [9., 11., 22., 24.]);
        gives(tensor(&[2, 2], [2f32, 4., 6., 8.]), [9., 12., 23., 26.]);
        run("Gemm", 11, [float("alpha", 0.5)], [&a(), &b()]).gives(tensor(&[2, 2], [2f32, 2.5, 5., 5.5]));
    }

    #[test]
    fn other_types() {
        let (a, b, c) = (tensor(&[1, 2], [1i64 << 62, 3]), tensor(&[2, 1], [4i64, 5]), tensor(&[], [7i64]));
        run("Gemm", 13, [], [&a, &b, &c]).gives(tensor(&[1, 1], [22i64]));
        run("Gemm", 9, [float("beta", -2.)], [&a, &b, &c]).gives(tensor(&[1, 1], [1i64]));
        run("Gemm", 9, [float("alpha", 0.25)], [&a, &b, &c]).gives(tensor(&[1, 1], [10i64]));
        // Rounded once: 2048 + 1 + 1.
        let half = |value: f32| tensor(&[1, 1], [f16::from_f32(value)]);
        let (a, b) = (tensor(&[1, 2], [2048., 1.].map(f16::from_f32)), tensor(&[2, 1], [f16::ONE; 2]));
        run("Gemm", 7, [], [&a, &b, &half(1.)]).gives(half(2050.));
    }

    #[test]
    fn empty_ones() {
        let none = |shape: &[usize]| tensor(shape, Vec::<f32>::new());
        run("Gemm", 13, [], [&none(&[0, 3]), &b()]).gives(none(&[0, 2]));
        let c = tensor(&[2], [5f32, 6.]);
        run("Gemm", 13, [], [&none(&[2, 0]), &none(&[0, 2]), &c]).gives(tensor(&[2, 2], [5f32, 6., 5., 6.]));
    }

    #[test]
    fn old_versions_broadcast_on_request() {
        let c = tensor(&[2], [1f32, 2.]);
        run("Gemm", 1, [int("broadcast", 1)], [&a(), &b(), &c]).gives(tensor(&[2, 2], [5f32, 7., 11., 13.]));
        run("Gemm", 6, [], [&a(), &b(), &c])
            .fails("\"C\" has shape [2], and the output [2, 2]: without \"broadcast\" they must be equal");
    }

    #[test]
    fn refusals() {
        run("Gemm", 13, [int("transA", 1)], [&a(), &b()]).fails(
            "\"A\" of shape [2, 3] and \"B\" of shape [3, 2] can't be multiplied with transA = 1 and transB = 0: \
             dimension 0 of \"A\" is 2 and dimension 0 of \"B\" is 3",
        );
        run("Gemm", 13, [], [&tensor(&[3], [1f32; 3]), &b()])
            .fails("\"A\" of shape [3] has rank 1: it must be a matrix");
        for shape in [&[3][..], &[3, 1], &[1, 2, 2], &[0]] {
            let c = tensor(shape, vec![0f32; shape.iter().product()]);
            let error =
                run("Gemm", 7, [], [&a(), &b(), &c]).fails("can't be broadcast to the shape of the output, [2, 2]");
            assert_eq!(error.place().parameter.as_deref(), Some("C"));
        }
    }

    #[test]
    fn inferred() {
        infer("Gemm", 11, [int("transB", 1)], ["float[N, 3]", "float[M, 3]", "float[M]"]).gives("[N, M]");
        infer("Gemm", 13, [], ["float[N, 3]", "float[3, 4]", "float[3]"])
            .fails("\"C\" of shape [3] can't be broadcast to the shape of the output, [N, 4]");
        infer("Gemm", 6, [], ["float[2, 3]", "float[3, 4]", "float[4]"])
            .fails("without \"broadcast\" they must be equal");
        infer("Gemm", 13, [], ["float[N, 3]", "float[2, 4]", "float"])
            .fails("dimension 1 of \"A\" of shape [N, 3] is 3");
    }
}
