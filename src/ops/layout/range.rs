//! Range: numbers from `start` on in steps of `delta`, up to `limit`.
//! <https://onnx.ai/onnx/operators/onnx__Range.html>

use crate::ops::prelude::*;
use kernels::steps::{count, steps};

pub(super) const RANGE: Implementation = Implementation::run("Range", &[11, 27], load);

/// `output[i] = start + i * delta` for `i` below `max(ceil((limit - start) / delta), 0)`
///
/// The text gives these formulas; the function's body subtracts, divides and adds step by step, and rounds each time. Both
/// formulas are computed exactly here. The count is that of the exact quotient: 0, 0.1, 0.2 and 0.3 are before 0.3 in
/// float32, as three times its 0.1 are less than its 0.3. Rounded, such an element may then equal the limit. Elements are
/// rounded once in float64; those of float32 from there, those of float16 and bfloat16 from float32.
#[derive(Debug)]
struct Range;

/// float16, bfloat16 and `stash_type` came with version 27.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let halves = [DType::Float16, DType::Bfloat16];
    let half = node.input_type(0).and_then(ValueType::dtype).is_some_and(|dtype| halves.contains(&dtype));
    if half && node.version() >= 27 && node.int("stash_type")? != i64::from(DType::Float.code()) {
        let text = format!("stash_type is {}: only 1 (float32) is supported", node.int("stash_type")?);
        return Err(Error::unsupported(text).attribute("stash_type"));
    }
    Ok(Box::new(Range))
}

impl Operator for Range {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let output = match call.tensor(0)?.dtype() {
            DType::Float => floats::<f32>(call)?,
            DType::Double => floats::<f64>(call)?,
            DType::Float16 => halves::<half::f16>(call, Half::F16)?,
            DType::Bfloat16 => halves::<half::bf16>(call, Half::Bf16)?,
            DType::Int16 => integers::<i16>(call)?,
            DType::Int32 => integers::<i32>(call)?,
            _ => integers::<i64>(call)?,
        };
        Ok(output.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        (0..3).try_for_each(|k| facts.single(k))?;
        let [start, limit, delta] = [facts.number(0), facts.number(1), facts.number(2)];
        let delta = delta.and_then(|delta| delta.number());
        if delta == Some(0) {
            return Err(no_step());
        }
        let count = start.as_ref().and_then(|start| counted(start, &limit?, delta?));
        let count = count.map_or_else(|| constant(facts).map_or(Dim::Unknown, Dim::Fixed), |count| count.dim());
        facts.give(0, std::slice::from_ref(&count));
        if let Dim::Fixed(count @ ..=Fact::LIST) = count {
            let at = |i: usize| start.as_ref()?.plus(&Formula::from(delta?.checked_mul(i as i64)?));
            facts.give_list_like(0, 0, &(0..count).map(at).collect::<List>());
        }
        Ok(())
    }
}

/// The number of elements, if it is not negative whatever the symbols are.
fn counted(start: &Formula, limit: &Formula, delta: i64) -> Option<Formula> {
    let distance = if delta > 0 { limit.minus(start)? } else { start.minus(limit)? };
    let step = delta.checked_abs()?;
    match distance.number() {
        Some(..=0) => Some(Formula::from(0)),
        _ if distance.is_size() => distance.plus(&Formula::from(step - 1))?.floor_over(step),
        _ => None,
    }
}

/// The number of elements, of constant floats.
fn constant(facts: &Inference<'_>) -> Option<usize> {
    let number = |k: usize| match facts.constant(k)?.tensor().ok()?.scalars().next()? {
        Scalar::Float(number) => Some(f64::from(number)),
        Scalar::Double(number) => Some(number),
        _ => None,
    };
    let count = count(number(0)?, number(1)?, number(2).filter(|delta| *delta != 0.0)?);
    Some(count as usize).filter(|_| !count.is_nan())
}

fn integers<T: Element + Int>(call: &Call<'_>) -> Result<Tensor> {
    let (start, limit, delta) = (call.scalar::<T>(0)?, call.scalar::<T>(1)?, call.scalar::<T>(2)?);
    let (distance, step) = (limit.to_i128() - start.to_i128(), delta.to_i128());
    let Some(whole) = distance.checked_div(step) else { return Err(no_step()) };
    let count = (whole + i128::from(distance % step != 0 && (distance < 0) == (step < 0))).max(0);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    fill::<T>(call, count, |first, out| {
        // What wraps here are the factors alone: each number is before the limit.
        for (i, to) in out.iter_mut().enumerate() {
            *to = start.plus(T::wrapped((first + i) as i128).times(delta));
        }
    })
}

fn floats<T: Element + Float + Into<f64>>(call: &Call<'_>) -> Result<Tensor> {
    let (start, delta, count) = spaced::<T>(call)?;
    fill::<T>(call, count, |first, out| steps(start, delta, first, out))
}

fn halves<T: Element + Pod + Into<f64>>(call: &Call<'_>, half: Half) -> Result<Tensor> {
    let (start, delta, count) = spaced::<T>(call)?;
    fill::<T>(call, count, |first, out| {
        let mut wide = [0f32; BLOCK];
        let wide = wide.get_mut(..out.len()).unwrap_or(&mut []);
        steps(start, delta, first, wide);
        half.narrow(wide, cast_slice_mut(out));
    })
}

/// The start, the distance and the number of elements.
fn spaced<T: Element + Into<f64>>(call: &Call<'_>) -> Result<(f64, f64, usize)> {
    let [start, limit, delta] = [call.scalar::<T>(0)?, call.scalar::<T>(1)?, call.scalar::<T>(2)?].map(Into::into);
    if delta == 0.0 {
        return Err(no_step());
    }
    let count = count(start, limit, delta);
    if count.is_nan() {
        let text = format!("start {start}, limit {limit} and delta {delta} make no number of elements");
        return Err(Error::input(text).parameter("limit"));
    }
    // Numbers that are too large are refused as a shape.
    Ok((start, delta, count as usize))
}

#[cold]
fn no_step() -> Error {
    Error::input("delta is 0: the limit is never reached").parameter("delta").value(0)
}

/// Elements that are computed at a time.
const BLOCK: usize = 1 << 10;

/// Fills the output with `numbers(first, elements)`: those from `first` on.
fn fill<T: Element + Pod>(call: &Call<'_>, count: usize, numbers: impl Fn(usize, &mut [T]) + Sync) -> Result<Tensor> {
    let mut output = call.output::<T>(&[count])?;
    kernels::each(output.bytes_mut(), BLOCK * size_of::<T>(), call.resources(), |block, out| {
        numbers(block * BLOCK, cast_slice_mut(out));
    })?;
    Ok(output.finish())
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::ops::testing::{infer, int, run, tensor};
    use half::{bf16, f16};

    #[test]
    fn integers() {
        let range = |start: i64, limit: i64, delta: i64, want: &[i64]| {
            run("Range", 11, [], [&tensor(&[], [start]), &tensor(&[], [limit]), &tensor(&[1], [delta])])
                .gives(tensor(&[want.len()], want));
        };
        range(3, 9, 3, &[3, 6]);
        range(10, 4, -2, &[10, 8, 6]);
        range(0, 5, 2, &[0, 2, 4]);
        range(0, -5, 2, &[]);
        range(5, 5, -1, &[]);
        range(i64::MIN, i64::MAX, i64::MAX, &[i64::MIN, -1, i64::MAX - 1]);
        range(i64::MAX, i64::MIN, i64::MIN, &[i64::MAX, -1]);
        let i = |value: i16| tensor(&[], [value]);
        run("Range", 11, [], [&i(-30000), &i(30000), &i(20000)]).gives(tensor(&[3], [-30000i16, -10000, 10000]));
        run("Range", 11, [], [&tensor(&[], [0i32]), &tensor(&[], [3000i32]), &tensor(&[], [1i32])])
            .gives(tensor(&[3000], (0..3000i32).collect::<Vec<_>>()));
    }

    #[test]
    fn floats() {
        let f = |value: f32| tensor(&[], [value]);
        run("Range", 11, [], [&f(0.0), &f(1.0), &f(0.1)])
            .gives(tensor(&[10], (0..10).map(|i| i as f32 * 0.1).collect::<Vec<_>>()));
        // The last one is less than the limit before it is rounded.
        run("Range", 11, [], [&f(0.0), &f(0.3), &f(0.1)]).gives(tensor(&[4], [0f32, 0.1, 0.2, 0.3]));
        run("Range", 11, [], [&f(-1.0), &f(1.0), &f(0.1)])
            .gives(tensor(&[20], (0..20).map(|i| (f64::from(i) * f64::from(0.1f32) - 1.0) as f32).collect::<Vec<_>>()));
        run("Range", 27, [], [&f(1.0), &f(f32::NEG_INFINITY), &f(1.0)]).gives(tensor(&[0], Vec::<f32>::new()));
        let d = |value: f64| tensor(&[], [value]);
        run("Range", 11, [], [&d(0.0), &d(0.3), &d(0.1)]).gives(tensor(&[3], [0.0, 0.1, 0.2]));
        run("Range", 11, [], [&d(1.0), &d(-1.0), &d(-0.75)]).gives(tensor(&[3], [1.0, 0.25, -0.5]));
        let h = |value: f32| tensor(&[], [f16::from_f32(value)]);
        // Step by step it would stop at 2048.
        let ends = |from: f32| [0.0, 1.0, 2.0, 3.0].map(|i| f16::from_f32(from + 2.0 * i));
        run("Range", 27, [], [&h(2046.0), &h(2054.0), &h(2.0)]).gives(tensor(&[4], ends(2046.0)));
        let b = |value: f32| tensor(&[], [bf16::from_f32(value)]);
        run("Range", 27, [int("stash_type", 1)], [&b(0.0), &b(1.0), &b(0.5)])
            .gives(tensor(&[2], [0.0, 0.5].map(bf16::from_f32)));
    }

    #[test]
    fn refusals() {
        let i = |value: i64| tensor(&[], [value]);
        let f = |value: f32| tensor(&[], [value]);
        let error = run("Range", 11, [], [&i(0), &i(1), &i(0)]).fails("delta is 0");
        assert_eq!((error.kind(), error.place().value), (Kind::Input, Some(0)));
        run("Range", 11, [], [&f(0.0), &f(1.0), &f(-0.0)]).fails("delta is 0");
        run("Range", 11, [], [&f(0.0), &f(f32::NAN), &f(1.0)]).fails("limit NaN");
        run("Range", 11, [], [&f(0.0), &f(f32::INFINITY), &f(1.0)]).fails("more bytes than can be counted");
        run("Range", 11, [], [&i(0), &i(1 << 62), &i(1)]).fails("more bytes than can be counted");
        run("Range", 11, [], [&i(0), &i(1 << 40), &i(1)]).fails("tensor_bytes");
        let h = tensor(&[], [f16::ONE]);
        let error = run("Range", 27, [int("stash_type", 10)], [&h, &h, &h]).fails("only 1 (float32) is supported");
        assert_eq!(error.kind(), Kind::Unsupported);
    }

    #[test]
    fn inferred() {
        infer("Range", 11, [], ["{0}", "{N}", "{1}"]).gives("[N]");
        infer("Range", 11, [], ["{P}", "{P}", "{1}"]).gives("[0]");
        infer("Range", 11, [], ["{1}", "{10}", "{4}"]).gives("[3]");
        infer("Range", 11, [], ["{10}", "{1}", "{-4}"]).lists("10, 6, 2");
        infer("Range", 11, [], ["{1}", "{10}", "{-4}"]).gives("[0]");
        infer("Range", 11, [], ["{0}", "{N}", "{3}"]).gives("[floor((N + 2)/3)]");
        infer("Range", 11, [], ["{N}", "{0}", "{-1}"]).gives("[N]");
        infer("Range", 11, [], ["{2}", "{N}", "{1}"]).gives("[?]");
        infer("Range", 11, [], ["float[]", "float[]", "float[]"]).gives("[?]");
        infer("Range", 27, [], ["{0}", "{N}", "{0}"]).fails("delta is 0: the limit is never reached");
    }
}
