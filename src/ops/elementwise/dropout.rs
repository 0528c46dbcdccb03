//! Dropout: in training, random elements become 0 and the others grow.
//! <https://onnx.ai/onnx/operators/onnx__Dropout.html>

use super::scalar;
use crate::ops::prelude::*;

/// Versions 1 and 6 train unless `is_test` is set, 7 and 10 never do, and from 12 on an input decides. The mask has the
/// type of the data before version 10.
pub(super) const DROPOUT: Implementation = Implementation::run("Dropout", &[1, 6, 7, 10, 12, 13, 22], |node| {
    let mode = match node.version() {
        ..7 if !node.is_set("is_test")? => Mode::Train(node.float("ratio")?.into()),
        ..12 => Mode::Copy,
        _ => Mode::Inputs,
    };
    let seed = node.optional("seed", Node::int)?.unwrap_or(0);
    Ok(Box::new(Dropout { mode, seed: seed as u32, bools: node.version() >= 10 }))
});

/// `output = data * mask / (1 - ratio)`, where the mask is true for the share 1 - ratio of random elements; or
/// `output = data`
#[derive(Debug)]
struct Dropout {
    mode: Mode,
    seed: u32,
    /// The mask is of bools.
    bools: bool,
}

#[derive(Debug)]
enum Mode {
    Copy,
    /// With a ratio.
    Train(f64),
    /// As inputs 1 and 2 say.
    Inputs,
}

impl Operator for Dropout {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let ratio = match self.mode {
            Mode::Copy => 0.0,
            Mode::Train(ratio) => ratio,
            Mode::Inputs => asked(call)?,
        };
        if !(0.0..1.0).contains(&ratio) {
            return Err(
                Error::input(format!("ratio = {ratio}: at least 0 and less than 1 is allowed")).parameter("ratio")
            );
        }
        let (dtype, shape) = (call.tensor(0)?.dtype(), Shape::from_slice(call.tensor(0)?.shape()));
        let mut outputs = Values::new();
        if ratio == 0.0 && !call.wants(1) {
            outputs.push(call.taken(0)?);
            return Ok(outputs);
        }
        let mut mask = call.output_of(DType::Bool, shape)?;
        if ratio == 0.0 {
            kernels::fill(&[1], mask.bytes_mut(), call.resources())?;
        } else {
            let mut random = kernels::random::Twister::new(self.seed);
            for part in mask.bytes_mut().chunks_mut(1 << 17) {
                call.check_cancel()?;
                part.fill_with(|| u8::from(random.uniform() >= ratio));
            }
        }
        let mask = mask.finish();
        // The mask in the type of the data.
        let numbers = |call: &mut Call<'_>| {
            let held = [Held::Own(mask.clone()), Held::Own(scalar(dtype, 1.0)?), Held::Own(scalar(dtype, 0.0)?)];
            call.rowwise(held, Align::Last, dtype, &|x, out| select(dtype.size(), x, out))
        };
        if ratio == 0.0 {
            outputs.push(call.taken(0)?);
        } else {
            let row = float_row(dtype.format())
                .ok_or_else(|| Error::unsupported(format!("training with tensors of {dtype} is not supported")))?;
            let (held, scaled) = ([Held::Input(0), Held::Own(numbers(call)?)], Scaled { scale: 1.0 / (1.0 - ratio) });
            outputs.push(call.rowwise(held, Align::Equal, dtype, &|x, out| row(&scaled, x, out))?);
        }
        if call.wants(1) {
            outputs.push(if self.bools { mask } else { numbers(call)? });
        }
        Ok(outputs)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        facts.give_shape_of(1, 0);
        Ok(())
    }
}

/// The ratio of a training that inputs ask for; 0 if they don't.
fn asked(call: &Call<'_>) -> Result<f64> {
    let trains = one(call, 2)?.is_some_and(|value| matches!(value, Scalar::Bool(true)));
    Ok(match one(call, 1)? {
        _ if !trains => 0.0,
        Some(Scalar::Float(ratio)) => ratio.into(),
        Some(Scalar::Double(ratio)) => ratio,
        _ => 0.5,
    })
}

/// The value of an optional scalar.
fn one<'a>(call: &'a Call<'_>, k: usize) -> Result<Option<Scalar<'a>>> {
    let Some(tensor) = call.optional_tensor(k)? else { return Ok(None) };
    if tensor.len() == 1 {
        return Ok(tensor.scalars().next());
    }
    let (name, shape) = (call.name(k), ShapeText(tensor.shape()));
    Err(Error::input(format!("{} has shape {shape}: a scalar is needed", quote(name))).parameter(name))
}

#[derive(Debug)]
struct Scaled {
    scale: f64,
}

impl Floats<2> for Scaled {
    #[inline(always)]
    fn float<T: Real>(&self, [x, mask]: [T; 2]) -> T {
        T::of(self.scale) * x * mask
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{float, int, outputs, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use half::{bf16, f16};

    #[test]
    fn without_training() {
        let x = tensor(&[2, 1], [1.5f32, f32::NAN]);
        let (ones, trues) = (tensor(&[2, 1], [1f32, 1.0]), tensor(&[2, 1], [true, true]));
        assert_eq!(outputs("Dropout", 6, [int("is_test", 1)], [&x])[..], [x.clone(), ones.clone()]);
        assert_eq!(outputs("Dropout", 7, [float("ratio", 0.9)], [&x])[..], [x.clone(), ones]);
        assert_eq!(outputs("Dropout", 10, [], [&x])[..], [x.clone(), trues.clone()]);
        assert_eq!(outputs("Dropout", 13, [], [&x])[..], [x.clone(), trues.clone()]);
        let (ratio, yes, no) =
            (Value::from(Tensor::scalar(0.75f64)), Tensor::scalar(true).into(), Tensor::scalar(false).into());
        assert_eq!(outputs("Dropout", 12, [], [&x, &ratio, &no])[..], [x.clone(), trues.clone()]);
        assert_eq!(outputs("Dropout", 12, [], [&x, &Tensor::scalar(0f32).into(), &yes])[..], [x.clone(), trues]);
        let small = Tensor::new(DType::Float8e5m2, &[1], vec![0x3c]).unwrap().into();
        run("Dropout", 22, [], [&small]).gives(&small);
        run("Dropout", 22, [], [&small, &ratio, &yes]).fails("training with tensors of float8e5m2 is not supported");
    }

    /// numpy's first numbers of the seed 0: 0.549, 0.715, 0.603, 0.545, 0.424, 0.646.
    #[test]
    fn training() {
        let x = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0].into();
        let (ratio, yes) = (Value::from(vec![f16::from_f32(0.5)]), Tensor::scalar(true).into());
        let kept = [true, true, true, true, false, true];
        let want = [2f32, 4.0, 6.0, 8.0, 0.0, 12.0];
        assert_eq!(outputs("Dropout", 13, [int("seed", 0)], [&x, &ratio, &yes])[..], [want.into(), kept.into()]);
        let numbers = kept.map(|kept| f32::from(u8::from(kept)));
        assert_eq!(outputs("Dropout", 1, [], [&x])[..], [want.into(), numbers.into()]);
        run("Dropout", 13, [], [&vec![bf16::NEG_ONE; 2].into(), &Tensor::scalar(0.6f32).into(), &yes])
            .gives(vec![bf16::NEG_ZERO, bf16::from_f32(-2.5)]);
        run("Dropout", 13, [], [&x, &Tensor::scalar(1f32).into(), &yes])
            .fails("ratio = 1: at least 0 and less than 1 is allowed");
        run("Dropout", 13, [], [&x, &[0.5f32, 0.5].into(), &yes]).fails("\"ratio\" has shape [2]: a scalar is needed");
    }
}
