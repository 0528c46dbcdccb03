//! Clip: limits elements to an interval.
//! <https://onnx.ai/onnx/operators/onnx__Clip.html>

use super::{computed, no_row, scalar};
use crate::ops::prelude::*;

/// The bounds are inputs from version 11 on, and attributes before.
pub(super) const CLIP: Implementation = Implementation::rowwise("Clip", &[1, 6, 11, 12, 13], |node| {
    let known = node.version() < 11;
    let given = |name| if known { node.optional(name, Node::float) } else { Ok(None) };
    Ok(Arc::new(Clip { min: given("min")?, max: given("max")?, known }))
});

/// `output = min(max, max(input, min))`. Bounds that are not given are the least and the greatest finite number.
#[derive(Debug)]
struct Clip {
    min: Option<f32>,
    max: Option<f32>,
    /// Whether the bounds are not inputs.
    known: bool,
}

impl Rowwise for Clip {
    fn may_chain(&self, dtype: DType) -> bool {
        self.known && dtype == DType::Float
    }

    fn compute(&self, dtype: DType, inputs: &[&[u8]], out: &mut [u8]) {
        if let (Some(row), [input]) = (float_row(dtype.format()), inputs) {
            row(&Within::of(self.min, self.max), [*input], out);
        }
    }

    fn form(&self) -> Option<Form> {
        let Within { min: low, max: high } = Within::of(self.min, self.max);
        let known = self.known && !low.is_nan() && !high.is_nan();
        known.then_some(Form::Activation(Activation::Within { low, high }))
    }

    fn of_constants(&self, _: DType, constant: &Constants<'_>) -> Option<Arc<dyn Rowwise>> {
        let number = |k: usize| match constant(k) {
            Some(tensor) if tensor.len() == 1 && tensor.rank() < 2 => tensor.as_slice::<f32>().ok()?.first().copied(),
            _ => None,
        };
        let given = |k: usize| constant(k).is_some();
        let (min, max) = (number(1), number(2));
        let single = given(1) == min.is_some() && given(2) == max.is_some() && (given(1) || given(2));
        (!self.known && single).then(|| Arc::new(Clip { min, max, known: true }) as _)
    }
}

impl Operator for Clip {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let dtype = call.tensor(0)?.dtype();
        if let (true, Some(row)) = (self.may_chain(dtype), float_row(dtype.format())) {
            let within = Within::of(self.min, self.max);
            return computed(call, Align::Last, dtype, &|inputs: [&[u8]; 1], out| row(&within, inputs, out));
        }
        let row = number_row(dtype.format()).ok_or_else(|| no_row(dtype))?;
        let (least, greatest) = finite(dtype)?;
        let min = bound(call, 1, self.min, least)?;
        let max = bound(call, 2, self.max, greatest)?;
        let held = [Held::Input(0), Held::Own(min), Held::Own(max)];
        let output = call.rowwise(held, Align::Last, dtype, &|inputs, out| row(&Limit, inputs, out))?;
        Ok(output.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.single(1)?;
        facts.single(2)?;
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

/// A bound as a scalar: the attribute, the input, or the default.
fn bound(call: &Call<'_>, k: usize, attribute: Option<f32>, default: Tensor) -> Result<Tensor> {
    if let Some(value) = attribute {
        return scalar(default.dtype(), value);
    }
    match call.optional_tensor(k)? {
        None => Ok(default),
        Some(tensor) if tensor.len() == 1 && tensor.rank() < 2 => tensor.clone().reshaped(Shape::new()),
        Some(tensor) => {
            let (name, shape) = (call.name(k), ShapeText(tensor.shape()));
            Err(Error::input(format!("{} has shape {shape}: a scalar is needed", quote(name))).parameter(name))
        }
    }
}

/// The least and the greatest finite number.
fn finite(dtype: DType) -> Result<(Tensor, Tensor)> {
    macro_rules! of {
        ($($dtype:ident: $type:ty),*) => {
            match dtype {
                $(DType::$dtype => Ok((Tensor::scalar(<$type>::MIN), Tensor::scalar(<$type>::MAX))),)*
                _ => Err(no_row(dtype)),
            }
        };
    }
    of!(Float: f32, Double: f64, Float16: f16, Bfloat16: bf16, Int8: i8, Int16: i16, Int32: i32, Int64: i64,
        Uint8: u8, Uint16: u16, Uint32: u32, Uint64: u64)
}

/// Bounds of float32.
struct Within {
    min: f32,
    max: f32,
}

impl Within {
    fn of(min: Option<f32>, max: Option<f32>) -> Within {
        Within { min: min.unwrap_or(f32::MIN), max: max.unwrap_or(f32::MAX) }
    }
}

impl Floats<1> for Within {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        Limit.float([x, T::of(self.min.into()), T::of(self.max.into())])
    }
}

#[derive(Debug)]
struct Limit;

impl Floats<3> for Limit {
    #[inline(always)]
    fn float<T: Real>(&self, [x, min, max]: [T; 3]) -> T {
        x.larger(min).smaller(max)
    }
}

impl Ints<3> for Limit {
    fn int<T: Int>(&self, [x, min, max]: [T; 3]) -> T {
        x.max(min).min(max)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{float, infer, run, tensor};
    use half::f16;

    const NAN: f32 = f32::NAN;

    #[test]
    fn bounds_of_attributes() {
        let x = [-3f32, 0.5, 3.0, NAN].into();
        run("Clip", 6, [float("min", -1.0), float("max", 1.0)], [&x]).gives([-1f32, 0.5, 1.0, NAN]);
        run("Clip", 1, [float("max", 1.0)], [&x]).gives([-3f32, 0.5, 1.0, NAN]);
        run("Clip", 6, [float("min", 0.5)], [&vec![f16::NEG_INFINITY, f16::INFINITY].into()])
            .gives(vec![f16::from_f32(0.5), f16::INFINITY]);
        run("Clip", 6, [float("min", 0.1)], [&[0f64].into()]).gives([f64::from(0.1f32)]);
    }

    #[test]
    fn bounds_of_inputs() {
        let (x, scalar) = (tensor(&[3, 1], [-3f32, 0.5, 3.0]), |value: f32| tensor(&[], [value]));
        run("Clip", 11, [], [&x, &scalar(-1.0), &scalar(1.0)]).gives(tensor(&[3, 1], [-1f32, 0.5, 1.0]));
        run("Clip", 13, [], [&x, &scalar(-1.0)]).gives(tensor(&[3, 1], [-1f32, 0.5, 3.0]));
        run("Clip", 13, [], [&x, &scalar(2.0), &scalar(1.0)]).gives(tensor(&[3, 1], [1f32, 1.0, 1.0]));
        run("Clip", 13, [], [&x, &scalar(NAN)]).gives(tensor(&[3, 1], [NAN, NAN, NAN]));
        run("Clip", 12, [], [&[-5i8, 100].into(), &[0i8].into(), &[50i8].into()]).gives([0i8, 50]);
        run("Clip", 12, [], [&tensor(&[], [7u64]), &[9u64].into()]).gives(tensor(&[], [9u64]));
        run("Clip", 12, [], [&tensor(&[0], Vec::<u64>::new()), &[9u64].into()]).gives(tensor(&[0], Vec::<u64>::new()));
        let error = run("Clip", 13, [], [&x, &[1f32, 2.0].into()]).fails("\"min\" has shape [2]: a scalar is needed");
        assert_eq!(error.place().parameter.as_deref(), Some("min"));
    }

    #[test]
    fn bounds_are_finite_by_default() {
        run("Clip", 13, [], [&[f32::INFINITY, -f32::INFINITY].into()]).gives([f32::MAX, f32::MIN]);
        run("Clip", 13, [], [&vec![f16::INFINITY].into()]).gives(vec![f16::MAX]);
        run("Clip", 12, [], [&[i64::MIN, i64::MAX].into()]).gives([i64::MIN, i64::MAX]);
    }

    #[test]
    fn inferred() {
        infer("Clip", 13, [], ["float[N, 3]", "float[]", "float"]).gives("[N, 3]");
        infer("Clip", 13, [], ["float[N, 3]", "-", "float[2]"]).fails("\"max\" has shape [2]: one value is needed");
    }
}
