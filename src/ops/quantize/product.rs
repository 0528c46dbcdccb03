//! MatMulInteger and QLinearMatMul: products of matrices of small integers, in int32 or quantized again.
//! <https://onnx.ai/onnx/operators/onnx__MatMulInteger.html>, <https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html>

use crate::ops::prelude::*;
use kernels::gemm::{Factors, OfIntegers, Operand, Quantized, Requantized, Right, Side, Step, ZeroPoints};
use kernels::quantize::{Quantize, Scales, Spread, quantize};

pub(super) const MATMUL_INTEGER: Implementation = Implementation::product("MatMulInteger", &[10], |node| {
    Ok(Arc::new(MatMulInteger { weights: Weights::of_each(node, &[1, 3]) }))
});

pub(super) const QLINEAR_MATMUL: Implementation = Implementation::run("QLinearMatMul", &[10, 21], |node| {
    Ok(Box::new(QLinearMatMul { weights: Weights::of_each(node, &[3, 5]) }))
});

/// `Y = (A - a_zero_point) (B - b_zero_point)` in int32, which wraps
///
/// Zero points are one number, one for each row of `A` and column of `B`, or such a list for each matrix of a batch:
/// `[D1, D2, M, 1]` and `[D1, D2, 1, N]`. Dimensions of 1 are broadcast.
#[derive(Debug)]
struct MatMulInteger {
    weights: Weights,
}

impl MatMulInteger {
    /// The sizes, and the places of zero points.
    fn sizes(call: &Call<'_>) -> Result<(Sizes, [Lines; 2])> {
        let sizes = Sizes::of(call.ranked(0)?.shape(), call.ranked(1)?.shape(), [call.name(0), call.name(1)])?;
        let lines = [Lines::of(call, 2, Side::Left, &sizes)?, Lines::of(call, 3, Side::Right, &sizes)?];
        Ok((sizes, lines))
    }

    fn multiply(
        &self,
        call: &Call<'_>,
        (sizes, [a_zeros, b_zeros]): &(Sizes, [Lines; 2]),
        epilogue: &[&dyn Step<u32>],
        out: &mut [i32],
    ) -> Result<()> {
        let a = left(call, (0, 2), a_zeros, sizes)?;
        let b = right(call, (1, 3), b_zeros, sizes, &self.weights)?;
        let Sizes { m, k, n, batch, .. } = sizes;
        multiply(call, Product::<i32> { m: *m, k: *k, n: *n, a, b, batch, epilogue }, out)
    }
}

impl MatrixProduct for MatMulInteger {
    fn shape(&self, call: &Call<'_>, dtype: DType) -> Option<Shape> {
        let (sizes, _) = MatMulInteger::sizes(call).ok().filter(|_| dtype == DType::Float)?;
        Some(sizes.output)
    }

    fn run_then(&self, call: &Call<'_>, tail: &Tail) -> Result<Values> {
        let sizes @ (Sizes { m, n, output, .. }, _) = &MatMulInteger::sizes(call)?;
        let mut output = call.output::<f32>(output)?;
        let [Some(scale), _] = tail.scale else { return Err(Error::bug("sums of integers without a scale")) };
        let scale = call.tensor(scale)?;
        let strides = if scale.len() == 1 { Strides::ONE } else { Strides::COLUMNS };
        let steps = TailSteps::<f32>::of(call, Some(tail), (*m, *n))?;
        let floats = OfIntegers { scales: Broadcast { elements: scale.as_slice()?, strides }, then: &steps.all() };
        self.multiply(call, sizes, &[&floats], cast_slice_mut::<f32, i32>(output.elements_mut()?))?;
        Ok(output.finish().into())
    }
}

impl Operator for MatMulInteger {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (call, sizes) = (&*call, &MatMulInteger::sizes(call)?);
        let mut output = call.output::<i32>(&sizes.0.output)?;
        self.multiply(call, sizes, &[], output.elements_mut()?)?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        infer(facts, [0, 1], [&[2], &[3]])
    }
}

/// `y = saturate(round(x / y_scale) + y_zero_point)`, ties to even, where `x` is the product of
/// `(a - a_zero_point) * a_scale` and `(b - b_zero_point) * b_scale`
///
/// Sums of integers are int32 and wrap; they are multiplied by `a_scale / y_scale` and `b_scale` in float64, so that only
/// the last step rounds. With a float8 among the types all is computed in float32, and rounded to `y` once.
#[derive(Debug)]
struct QLinearMatMul {
    weights: Weights,
}

impl QLinearMatMul {
    /// With integers of 8 bits alone.
    fn integers<S: Quantized + Multiply>(&self, call: &Call<'_>, sizes: &Sizes, lines: &[Lines; 4]) -> Result<Values> {
        let mut output = call.output::<S>(&sizes.output)?;
        let [a_scales, a_zeros, b_scales, b_zeros] = lines;
        let (mut y_room, mut b_room) = (None, None);
        let by = *elements_of::<f64>(call.context(), one(call, 6)?, &mut y_room)?.first().unwrap_or(&1.0);
        let a_scale = call.tensor(1)?;
        let mut of_rows = call.scratch::<f64>(a_scale.len())?;
        converted(a_scale, DType::Double, cast_slice_mut(of_rows.elements_mut::<f64>()), call.context())?;
        kernels::each(cast_slice_mut(of_rows.elements_mut::<f64>()), BLOCK, call.resources(), |_, part| {
            cast_slice_mut::<u8, f64>(part).iter_mut().for_each(|scale| *scale /= by);
        })?;
        let last = Requantized {
            scales: [
                Broadcast { elements: &*of_rows.elements_mut::<f64>(), strides: a_scales.strides() },
                Broadcast {
                    elements: elements_of(call.context(), call.tensor(4)?, &mut b_room)?,
                    strides: b_scales.strides(),
                },
            ],
            zero_point: Broadcast { elements: one(call, 7)?.as_slice::<S>()?, strides: Strides::ONE },
        };
        let a = left(call, (0, 2), a_zeros, sizes)?;
        let b = right(call, (3, 5), b_zeros, sizes, &self.weights)?;
        let Sizes { m, k, n, batch, .. } = sizes;
        multiply(call, Product::<S> { m: *m, k: *k, n: *n, a, b, batch, epilogue: &[&last] }, output.elements_mut()?)?;
        Ok(output.finish().into())
    }

    /// With any types.
    fn floats(&self, call: &Call<'_>, sizes: &Sizes, lines: &[Lines; 4]) -> Result<Values> {
        let (context, zero) = (call.context(), one(call, 7)?);
        let mut output = call.output_of(zero.dtype(), sizes.output.clone())?;
        let mut rooms: [Option<Scratch<'_>>; 8] = Default::default();
        let mut numbers: [&[f32]; 8] = Default::default();
        for (k, (numbers, room)) in numbers.iter_mut().zip(&mut rooms).enumerate() {
            *numbers = elements_of(context, call.tensor(k)?, room)?;
        }
        let [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero] = numbers;
        let [a_scales, a_zeros, b_scales, b_zeros] = lines.each_ref().map(Lines::strides);
        one(call, 6)?;
        let Sizes { m, k, n, batch, .. } = sizes;
        let product = Product::<f32> {
            m: *m,
            k: *k,
            n: *n,
            a: Left::View(View::rows(a, *k).less(ZeroPoints::new(a_zero, a_zeros))),
            b: Right::View(View::rows(b, *n).less(ZeroPoints::new(b_zero, b_zeros))),
            batch,
            epilogue: &[
                &Factors(Broadcast { elements: a_scale, strides: a_scales }),
                &Factors(Broadcast { elements: b_scale, strides: b_scales }),
            ],
        };
        let mut products = call.scratch::<f32>(kernels::volume(1, &sizes.output))?;
        let products = products.elements_mut::<f32>();
        multiply(call, product, products)?;
        let (from, to) = (DType::Float.format(), zero.dtype().format());
        let scales = Scales { spread: Spread::All, scales: y_scale, zeros: Some(y_zero) };
        let work = Quantize { from, to, half: None, saturate: true };
        quantize(work, scales, cast_slice(products), output.bytes_mut(), call.resources())?;
        Ok(output.finish().into())
    }
}

/// Bytes of numbers that are worth a part.
const BLOCK: usize = 4 << 10;

impl Operator for QLinearMatMul {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let call = &*call;
        let sizes = Sizes::of(call.ranked(0)?.shape(), call.ranked(3)?.shape(), [call.name(0), call.name(3)])?;
        let of = |k: usize, side: Side| Lines::of(call, k, side, &sizes);
        let lines = [of(1, Side::Left)?, of(2, Side::Left)?, of(4, Side::Right)?, of(5, Side::Right)?];
        let types = [call.tensor(0)?.dtype(), call.tensor(3)?.dtype()];
        let integers = types.iter().all(|dtype| matches!(dtype, DType::Uint8 | DType::Int8));
        match call.tensor(7)?.dtype() {
            DType::Uint8 if integers => self.integers::<u8>(call, &sizes, &lines),
            DType::Int8 if integers => self.integers::<i8>(call, &sizes, &lines),
            _ => self.floats(call, &sizes, &lines),
        }
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        infer(facts, [0, 3], [&[1, 2], &[4, 5]])
    }
}

/// The only element of the input `k`.
fn one<'c>(call: &'c Call<'_>, k: usize) -> Result<&'c Tensor> {
    let tensor = call.tensor(k)?;
    if tensor.len() == 1 { Ok(tensor) } else { Err(misfit(call, k, "a single number")) }
}

/// How scales or zero points belong to the rows of the left operand or the columns of the right one.
#[derive(Debug, Default)]
struct Lines {
    row: usize,
    column: usize,
    /// None if all matrices share them.
    batch: Vec<usize>,
}

impl Lines {
    /// Those of the input `k`, which may be omitted.
    fn of(call: &Call<'_>, k: usize, side: Side, sizes: &Sizes) -> Result<Lines> {
        let own = call.optional_tensor(k)?.map_or(&[][..], Tensor::shape);
        if own.iter().all(|size| *size == 1) {
            return Ok(Lines::default());
        }
        let (is_left, count) = (side == Side::Left, if side == Side::Left { sizes.m } else { sizes.n });
        let (outer, lines) = match own {
            [lines] => (&[][..], *lines),
            [outer @ .., lines, 1] if is_left => (outer, *lines),
            [outer @ .., 1, lines] if !is_left => (outer, *lines),
            _ => return Err(Lines::misfit(call, k, side, count)),
        };
        let dims = sizes.batch.iter().rev().map(|dim| dim.size).chain(std::iter::repeat(1));
        let fits = |own: usize, size: usize| own == size || own == 1;
        if !fits(lines, count) || !outer.iter().rev().zip(dims).all(|(own, size)| fits(*own, size)) {
            return Err(Lines::misfit(call, k, side, count));
        }
        let (mut next, mut batch) = (lines, vec![0; sizes.batch.len()]);
        for (stride, own) in batch.iter_mut().rev().zip(outer.iter().rev()) {
            *stride = if *own == 1 { 0 } else { next };
            next = next.saturating_mul(*own);
        }
        if batch.iter().all(|stride| *stride == 0) {
            batch.clear();
        }
        let stride = usize::from(lines > 1);
        let (row, column) = if is_left { (stride, 0) } else { (0, stride) };
        Ok(Lines { row, column, batch })
    }

    fn strides(&self) -> Strides<'_> {
        Strides { row: self.row, column: self.column, batch: &self.batch }
    }

    #[cold]
    fn misfit(call: &Call<'_>, k: usize, side: Side, count: usize) -> Error {
        let each = if side == Side::Left { format!("[.., {count}, 1]") } else { format!("[.., 1, {count}]") };
        misfit(call, k, &format!("a single number, [{count}] or {each}"))
    }
}

/// The left operand, the input `k`, less its zero points.
fn left<'a>(call: &'a Call<'_>, inputs: (usize, usize), lines: &'a Lines, sizes: &Sizes) -> Result<Left<'a, u32>> {
    fn of<'a, S: Operand<Sum = u32> + Element>(
        call: &'a Call<'_>,
        (k, zero): (usize, usize),
        lines: &'a Lines,
        sizes: &Sizes,
    ) -> Result<Left<'a, u32>> {
        let view = View::rows(call.tensor(k)?.as_slice::<S>()?, sizes.k);
        Ok(Left::View(match zeros::<S>(call, zero, lines)? {
            Some(zeros) => view.less(zeros),
            None => view,
        }))
    }
    match call.tensor(inputs.0)?.dtype() {
        DType::Uint8 => of::<u8>(call, inputs, lines, sizes),
        _ => of::<i8>(call, inputs, lines, sizes),
    }
}

/// The right operand, the input `k`, less its zero points.
fn right<'a>(
    call: &'a Call<'_>,
    inputs: (usize, usize),
    lines: &'a Lines,
    sizes: &Sizes,
    weights: &'a Weights,
) -> Result<Right<'a, u32>> {
    fn of<'a, S: Multiply<Sum = u32>>(
        call: &'a Call<'_>,
        (k, zero): (usize, usize),
        lines: &'a Lines,
        sizes: &Sizes,
        weights: &'a Weights,
    ) -> Result<Right<'a, u32>> {
        let (tensor, zeros) = (call.tensor(k)?, zeros::<S>(call, zero, lines)?);
        let matrix = Matrix { tensor, columns: sizes.n, transposed: false };
        match zeros {
            Some(zeros) if !lines.batch.is_empty() => Ok(Right::View(matrix.aligned::<S>()?.less(zeros))),
            zeros => {
                let count = tensor.len().checked_div(sizes.k.saturating_mul(sizes.n)).unwrap_or(0);
                weights.right_less::<S>(call, matrix, zeros, count, (sizes.k, sizes.n))
            }
        }
    }
    match call.tensor(inputs.0)?.dtype() {
        DType::Uint8 => of::<u8>(call, inputs, lines, sizes, weights),
        _ => of::<i8>(call, inputs, lines, sizes, weights),
    }
}

/// The zero points of the input `k`, if they are not omitted.
fn zeros<'a, S: Operand<Sum = u32> + Element>(
    call: &'a Call<'_>,
    k: usize,
    lines: &'a Lines,
) -> Result<Option<ZeroPoints<'a, u32>>> {
    let of = |zeros: &'a Tensor| Ok(ZeroPoints::new(zeros.as_slice::<S>()?, lines.strides()));
    call.optional_tensor(k)?.map(of).transpose()
}

/// The inputs `of_a` and `of_b` are scales and zero points: one for each row of a matrix `a` and each column of `b`, or one
/// for all.
fn infer(facts: &mut Inference<'_>, [a, b]: [usize; 2], [of_a, of_b]: [&[usize]; 2]) -> Result<()> {
    let rank = |k| facts.dims(k).map(<[Dim]>::len);
    if rank(a) == Some(2) {
        of_a.iter().try_for_each(|k| facts.one_for_each(*k, (a, 0)))?;
    }
    if rank(b) == Some(2) {
        of_b.iter().try_for_each(|k| facts.one_for_each(*k, (b, 1)))?;
    }
    give_product(facts, a, b)
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{infer, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use half::f16;

    #[test]
    fn sums_of_integers() {
        let (a, b) = (tensor(&[2, 3], [11u8, 7, 3, 10, 6, 2]), tensor(&[3, 2], [-1i8, 4, 2, 5, 3, 6]));
        run("MatMulInteger", 10, [], [&a, &b]).gives(tensor(&[2, 2], [12, 97, 8, 82]));
        let want = tensor(&[2, 2], [-36, -83, -40, -98]);
        run("MatMulInteger", 10, [], [&a, &b, &tensor(&[], [12u8]), &tensor(&[1], [0i8])]).gives(want);
        // Each row and column less its own.
        let (of_rows, of_columns) = (tensor(&[2], [10u8, 0]), tensor(&[2], [1i8, 4]));
        let want = tensor(&[2, 2], [-19, -17, -10, 10]);
        run("MatMulInteger", 28, [], [&a, &b, &of_rows, &of_columns]).gives(&want);
        let (of_rows, of_columns) = (tensor(&[2, 1], [10u8, 0]), tensor(&[1, 2], [1i8, 4]));
        run("MatMulInteger", 10, [], [&a, &b, &of_rows, &of_columns]).gives(want);
        // Vectors.
        let (a, b) = (tensor(&[2], [1i8, -128]), tensor(&[2], [255u8, 255]));
        run("MatMulInteger", 10, [], [&a, &b, &tensor(&[], [127i8])]).gives(tensor(&[], [-126 * 255 - 255 * 255]));
        let none = tensor(&[2, 0], Vec::<u8>::new());
        run("MatMulInteger", 10, [], [&none, &tensor(&[0, 1], Vec::<i8>::new())]).gives(tensor(&[2, 1], [0, 0]));
    }

    /// Matrices of a batch, and what is broadcast to them.
    #[test]
    fn batches() {
        let a = tensor(&[2, 1, 1, 2], [1u8, 2, 3, 4]);
        let b = tensor(&[2, 2, 2], [1u8, 2, 3, 4, 5, 6, 7, 8]);
        let want = tensor(&[2, 2, 1, 2], [7, 10, 19, 22, 15, 22, 43, 50]);
        run("MatMulInteger", 10, [], [&a, &b]).gives(&want);
        let (of_a, of_b) = (tensor(&[2, 1, 1, 1], [1u8, 3]), tensor(&[2, 1, 2], [1u8, 2, 7, 0]));
        // [0, 1] and [0, 1], by [[0, 0], [2, 2]] and [[-2, 6], [0, 8]]
        run("MatMulInteger", 10, [], [&a, &b, &of_a, &of_b]).gives(tensor(&[2, 2, 1, 2], [2, 2, 0, 8, 2, 2, 0, 8]));
        let of_b = tensor(&[1, 1, 2], [1u8, 2]);
        run("MatMulInteger", 10, [], [&a, &b, &of_a, &of_b]).gives(tensor(&[2, 2, 1, 2], [2, 2, 6, 6, 2, 2, 6, 6]));
    }

    fn scalar(value: f32) -> Value {
        tensor(&[], [value])
    }

    #[test]
    fn quantized_again() {
        let (a, b) = (tensor(&[2, 2], [3u8, 5, 0, 255]), tensor(&[2, 2], [1i8, -2, 3, 100]));
        // [[1, 3], [-2, 253]] by [[0, -3], [2, 99]]: [[6, 294], [506, 25053]]
        let run_by = |b_scale: &Value, zero: &Value| {
            let (a_zero, b_zero) = (tensor(&[], [2u8]), tensor(&[], [1i8]));
            run("QLinearMatMul", 21, [], [&a, &scalar(0.5), &a_zero, &b, b_scale, &b_zero, &scalar(2.0), zero])
        };
        // 6 / 4 and 294 / 4 are ties, 506 / 4 too: 2, 74 (73.5), 126 (126.5).
        run_by(&scalar(1.0), &tensor(&[], [10u8])).gives(tensor(&[2, 2], [12u8, 84, 136, 255]));
        run_by(&scalar(-1.0), &tensor(&[1], [-1i8])).gives(tensor(&[2, 2], [-3i8, -75, -127, -128]));
        run_by(&tensor(&[2], [1f32, 0.1]), &tensor(&[], [0u8])).gives(tensor(&[2, 2], [2u8, 7, 126, 255]));
    }

    #[test]
    fn scales_of_rows_in_halves() {
        let half = |shape: &[usize], values: &[f32]| {
            tensor(shape, values.iter().copied().map(f16::from_f32).collect::<Vec<_>>())
        };
        let (a, b) = (tensor(&[2, 1, 1], [10i8, 20]), tensor(&[1, 1], [3i8]));
        let inputs = [
            &a,
            &half(&[2, 1, 1], &[1.0, 0.5]),
            &tensor(&[2, 1, 1], [0i8, 10]),
            &b,
            &half(&[], &[2.0]),
            &tensor(&[], [0i8]),
            &half(&[1], &[4.0]),
            &tensor(&[], [1i8]),
        ];
        run("QLinearMatMul", 21, [], inputs).gives(tensor(&[2, 1, 1], [16i8, 9]));
    }

    #[test]
    fn small_floats() {
        let float = |shape: &[usize], codes: &[u8]| -> Value {
            Tensor::new(DType::Float8e4m3fn, shape, codes.to_vec()).unwrap().into()
        };
        // [1.5, 2] by [4, 8]: 22 and, less 1, 0.5 * 4 + 1 * 8 = 10
        let (a, b) = (float(&[1, 2], &[0x3c, 0x40]), float(&[2, 1], &[0x48, 0x50]));
        let with = |a_zero: u8, y_scale: f32, zero: &Value| {
            let (a_zero, b_zero) = (float(&[], &[a_zero]), float(&[], &[0]));
            run(
                "QLinearMatMul",
                21,
                [],
                [&a, &scalar(2.0), &a_zero, &b, &scalar(0.25), &b_zero, &scalar(y_scale), zero],
            )
        };
        with(0, 1.0, &float(&[], &[0])).gives(float(&[1, 1], &[0x53]));
        with(0x38, 1.0, &float(&[], &[0x38])).gives(float(&[1, 1], &[0x4c]));
        with(0x38, 1e-3, &float(&[], &[0])).gives(float(&[1, 1], &[0x7e]));
        with(0x38, 2.0, &tensor(&[], [1u8])).gives(tensor(&[1, 1], [3u8]));
    }

    #[test]
    fn refusals() {
        let (a, b) = (tensor(&[2, 3], [1u8; 6]), tensor(&[3, 2], [1u8; 6]));
        run("MatMulInteger", 10, [], [&a, &a]).fails(
            "\"A\" of shape [2, 3] and \"B\" of shape [2, 3] can't be multiplied: \
             dimension 1 of \"A\" is 3 and dimension 0 of \"B\" is 2",
        );
        run("MatMulInteger", 10, [], [&a, &b, &tensor(&[3], [0u8; 3])])
            .fails("\"a_zero_point\" has shape [3]: a single number, [2] or [.., 2, 1] is needed");
        let error = run("MatMulInteger", 10, [], [&a, &b, &tensor(&[], [0u8]), &tensor(&[2, 1], [0u8; 2])])
            .fails("\"b_zero_point\" has shape [2, 1]: a single number, [2] or [.., 1, 2] is needed");
        assert_eq!(error.place().parameter.as_deref(), Some("b_zero_point"));
        run("MatMulInteger", 10, [], [&a, &b, &tensor(&[2, 2, 1], [0u8; 4])]).fails("[2] or [.., 2, 1] is needed");
        let (scale, zero) = (scalar(1.0), tensor(&[], [0u8]));
        let pair = tensor(&[2], [1f32; 2]);
        run("QLinearMatMul", 10, [], [&a, &scale, &zero, &b, &scale, &zero, &pair, &zero])
            .fails("\"y_scale\" has shape [2]: a single number is needed");
        let two = tensor(&[2], [0u8; 2]);
        run("QLinearMatMul", 21, [], [&a, &scale, &zero, &b, &scale, &zero, &scale, &two])
            .fails("\"y_zero_point\" has shape [2]: a single number is needed");
        run("QLinearMatMul", 21, [], [&a, &scale, &zero, &zero, &scale, &zero, &scale, &zero])
            .fails("\"b\" is a scalar");
    }

    #[test]
    fn shapes() {
        infer("MatMulInteger", 10, [], ["uint8[N, 3]", "int8[3, M]"]).gives("[N, M]");
        infer("MatMulInteger", 10, [], ["uint8[N, 3]", "int8[3, 2]", "uint8[N]", "int8[2]"]).gives("[N, 2]");
        infer("MatMulInteger", 10, [], ["uint8[B, 4, 3]", "int8[3, 2]", "uint8[]", "int8[1]"]).gives("[B, 4, 2]");
        let scale = "float[]";
        infer(
            "QLinearMatMul",
            10,
            [],
            ["uint8[N, 3]", scale, "uint8[]", "int8[3, M]", scale, "int8[]", scale, "uint8[]"],
        )
        .gives("[N, M]");
        infer(
            "QLinearMatMul",
            21,
            [],
            [
                "uint8[B, 2, 3]",
                "float[B, 2, 1]",
                "uint8[B, 2, 1]",
                "int8[3, 4]",
                "float[4]",
                "int8[4]",
                scale,
                "uint8[]",
            ],
        )
        .gives("[B, 2, 4]");
    }

    #[test]
    fn faults() {
        infer("MatMulInteger", 10, [], ["uint8[2, 3]", "int8[4, 5]"])
            .fails("dimension 1 of \"A\" of shape [2, 3] is 3, and dimension 0 of \"B\" of shape [4, 5] is 4");
        infer("MatMulInteger", 10, [], ["uint8[2, 3]", "int8[3, 5]", "uint8[3]"])
            .fails("dimension 0 of \"a_zero_point\" of shape [3] is 3");
        infer("MatMulInteger", 10, [], ["uint8[2, 3]", "int8[3, 5]", "-", "int8[3]"])
            .fails("dimension 1 of \"B\" of shape [3, 5] is 5");
        let (a, b, scale, zero) = ("int8[2, 3]", "int8[3, 5]", "float[]", "int8[]");
        infer("QLinearMatMul", 21, [], [a, scale, zero, b, "float[3]", zero, scale, zero])
            .fails("dimension 0 of \"b_scale\" of shape [3] is 3");
    }
}
