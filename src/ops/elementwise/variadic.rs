//! Max, Min, Sum and Mean of any number of tensors.
//! <https://onnx.ai/onnx/operators/onnx__Max.html>, <https://onnx.ai/onnx/operators/onnx__Sum.html>

use super::arithmetic::Add;
use super::{Function, no_row};
use crate::ops::prelude::*;

pub(super) const MAX: Implementation = Implementation::run("Max", &[1, 6, 8, 12, 13], |node| {
    variadic(Max, number_row, Scale::Keep, Some(Formula::larger), node)
});
pub(super) const MIN: Implementation = Implementation::run("Min", &[1, 6, 8, 12, 13], |node| {
    variadic(Min, number_row, Scale::Keep, Some(Formula::smaller), node)
});
pub(super) const SUM: Implementation =
    Implementation::run("Sum", &[1, 6, 8, 13], |node| variadic(Add, float_row, Scale::Sum, None, node));
pub(super) const MEAN: Implementation =
    Implementation::run("Mean", &[1, 6, 8, 13], |node| variadic(Add, float_row, Scale::Mean, None, node));

/// Before version 8 the inputs have the same shape.
fn variadic<F: Function>(
    function: F,
    row: fn(Format) -> Option<Row<F, 2>>,
    scale: Scale,
    count: Option<Count>,
    node: &Node<'_>,
) -> Result<Box<dyn Operator>> {
    let align = if node.version() < 8 { Align::Equal } else { Align::Last };
    Ok(Box::new(Variadic { function, row, align, scale, count }))
}

/// `output = f(.. f(f(data_0, data_1), data_2) ..)`; Mean divides it by the number of inputs.
#[derive(Debug)]
struct Variadic<F> {
    function: F,
    row: fn(Format) -> Option<Row<F, 2>>,
    align: Align,
    scale: Scale,
    /// The same of two sizes that follow from symbols.
    count: Option<Count>,
}

/// What the function does to its inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    /// It returns one of them.
    Keep,
    /// It rounds.
    Sum,
    /// It rounds, and is divided in the end.
    Mean,
}

impl<F: Function> Operator for Variadic<F> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (dtype, count) = (call.tensor(0)?.dtype(), call.input_count());
        if count == 1 {
            return Ok(call.taken(0)?.into());
        }
        // Halves are summed in float, and rounded once.
        let half = dtype.half().filter(|_| self.scale != Scale::Keep);
        let work = if half.is_some() { DType::Float } else { dtype };
        let row = (self.row)(work.format()).ok_or_else(|| no_row(work))?;
        let input = |call: &mut Call<'_>, k| match half {
            None => Ok(Held::Input(k)),
            Some(half) => {
                let widen = |[x]: [&[u8]; 1], out: &mut [u8]| half.widen(cast_slice(x), cast_slice_mut(out));
                call.rowwise([Held::Input(k)], Align::Last, work, &widen).map(|wide| Held::Replaced(k, wide))
            }
        };
        let mut all = input(call, 0)?;
        for k in 1..count {
            call.check_cancel()?;
            let next = input(call, k)?;
            all = Held::Own(call.rowwise([all, next], self.align, work, &|x, out| row(&self.function, x, out))?);
        }
        if self.scale == Scale::Mean {
            let (by, row) = (Divide { by: count as f64 }, float_row(work.format()));
            let row = row.ok_or_else(|| no_row(work))?;
            all = Held::Own(call.rowwise([all], Align::Last, work, &|x, out| row(&by, x, out))?);
        }
        if let Some(half) = half {
            let narrow = |[x]: [&[u8]; 1], out: &mut [u8]| half.narrow(cast_slice(x), cast_slice_mut(out));
            all = Held::Own(call.rowwise([all], Align::Last, dtype, &narrow)?);
        }
        match all {
            Held::Own(output) => Ok(output.into()),
            _ => Err(Error::bug("nothing was computed")),
        }
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_broadcast(self.align)?;
        if let Some(count) = self.count.filter(|_| facts.input_count() == 2) {
            facts.give_counted(count);
        }
        Ok(())
    }
}

/// The greater one; NaN if one is NaN
#[derive(Debug)]
struct Max;

impl Floats<2> for Max {
    #[inline(always)]
    fn float<T: Real>(&self, [a, b]: [T; 2]) -> T {
        a.larger(b)
    }
}

impl Ints<2> for Max {
    fn int<T: Int>(&self, [a, b]: [T; 2]) -> T {
        a.max(b)
    }
}

/// The lesser one; NaN if one is NaN
#[derive(Debug)]
struct Min;

impl Floats<2> for Min {
    #[inline(always)]
    fn float<T: Real>(&self, [a, b]: [T; 2]) -> T {
        a.smaller(b)
    }
}

impl Ints<2> for Min {
    fn int<T: Int>(&self, [a, b]: [T; 2]) -> T {
        a.min(b)
    }
}

struct Divide {
    by: f64,
}

impl Floats<1> for Divide {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x / T::of(self.by)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, run, tensor};
    use half::{bf16, f16};

    const NAN: f32 = f32::NAN;

    #[test]
    fn greatest_and_least() {
        let (a, b, c) = ([3f32, 2.0, NAN].into(), [1f32, 4.0, 4.0].into(), tensor(&[], [2.5f32]));
        run("Max", 13, [], [&a, &b, &c]).gives([3f32, 4.0, NAN]);
        run("Min", 8, [], [&b, &a, &c]).gives([1f32, 2.0, NAN]);
        run("Max", 13, [], [&a]).gives(&a);
        run("Max", 12, [], [&[-1i8, 5].into(), &[0i8].into()]).gives([0i8, 5]);
        run("Min", 12, [], [&[u64::MAX, 5].into(), &tensor(&[1, 1], [6u64])]).gives(tensor(&[1, 2], [6u64, 5]));
        run("Min", 13, [], [&vec![f16::ONE].into(), &vec![f16::NEG_ONE].into()]).gives(vec![f16::NEG_ONE]);
    }

    #[test]
    fn sums() {
        let (a, b, c) = ([3f64, 2.0].into(), tensor(&[2, 1], [1f64, 4.0]), tensor(&[], [2f64]));
        run("Sum", 13, [], [&a, &b, &c]).gives(tensor(&[2, 2], [6f64, 5.0, 9.0, 8.0]));
        run("Mean", 8, [], [&a, &b, &c]).gives(tensor(&[2, 2], [2f64, 5.0 / 3.0, 3.0, 8.0 / 3.0]));
        run("Mean", 8, [], [&a]).gives(&a);
        let error = run("Sum", 8, [], [&a, &[1f64, 2.0, 3.0].into()]).fails(
            "\"data_0[0]\" of shape [2] and \"data_0[1]\" of shape [3] can't be broadcast: dimension 0 is 2 and dimension 0 is 3",
        );
        assert_eq!(error.place().parameter.as_deref(), Some("data_0"));
    }

    #[test]
    fn equal_shapes_before_version_8() {
        let a = [3f32, 2.0].into();
        run("Sum", 6, [], [&a, &a, &a]).gives([9f32, 6.0]);
        run("Sum", 6, [], [&a, &a, &[1f32].into()])
            .fails("\"data_0[2]\" has shape [1], \"data_0[0]\" has shape [2]: without broadcast they must be equal");
    }

    /// Each addition alone would round to the even neighbour, which is `x` itself.
    #[test]
    fn halves_round_once() {
        let (x, half_step) = (vec![bf16::from_f32(256.0)].into(), vec![bf16::from_f32(1.0)].into());
        run("Sum", 13, [], [&x, &half_step, &half_step]).gives(vec![bf16::from_f32(258.0)]);
        run("Mean", 13, [], [&vec![f16::MAX].into(), &vec![f16::MAX].into()]).gives(vec![f16::MAX]);
    }

    #[test]
    fn inferred() {
        infer("Max", 12, [], ["{N, 3, -1}", "{1, 2, N}"]).lists("?, 3, N");
        infer("Min", 13, [], ["{N, 3, -1}", "{N, 2, N}"]).lists("N, 2, -1");
        infer("Sum", 13, [], ["float[N, 1]", "float[3]"]).gives("[N, 3]");
    }
}
