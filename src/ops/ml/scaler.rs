//! Scaler: features moved by offsets and multiplied by scales.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_Scaler.html>

use super::attributes::{equally_many, numbers, one_or_each};
use super::entry;
use super::numbers::{Each, doubles, floats};
use crate::ops::prelude::*;

pub(super) const SCALER: Implementation = entry("Scaler", &[1], load);

/// `Y = (X - offset) * scale`, in double precision and rounded once. The text doesn't say what stands for a list that isn't
/// given: here 0 and 1.
#[derive(Debug)]
struct Scaler {
    offset: Each,
    scale: Each,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let list = |name: &'static str, default: f64| Each::of(name, numbers(node, name)?, default);
    Ok(Box::new(Scaler { offset: list("offset", 0.0)?, scale: list("scale", 1.0)? }))
}

impl Operator for Scaler {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let held = [doubles(call, 0)?, self.offset.held(call)?, self.scale.held(call)?];
        let row = float_row(Format::Double).ok_or_else(|| Error::bug("no row of doubles"))?;
        let scaled = call.rowwise(held, Align::Last, DType::Double, &|inputs, out| row(&Scale, inputs, out))?;
        floats(call, scaled)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        equally_many(facts, &["offset", "scale"])?;
        one_or_each(facts, "offset")?;
        one_or_each(facts, "scale")?;
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

struct Scale;

impl Floats<3> for Scale {
    #[inline(always)]
    fn float<T: Real>(&self, [x, offset, scale]: [T; 3]) -> T {
        (x - offset) * scale
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, run, tensor};

    #[test]
    fn features_are_scaled() {
        let name = "ai.onnx.ml.Scaler";
        let floats = |name: &'static str, values: &[f32]| (name, Attribute::Floats(values.to_vec()));
        let both = |offset: &[f32], scale: &[f32]| [floats("offset", offset), floats("scale", scale)];
        let x = tensor(&[2, 2], [1i64, 2, 3, 4]);
        run(name, 1, both(&[1.0, 2.0], &[0.5, 4.0]), [&x]).gives(tensor(&[2, 2], [0f32, 0.0, 1.0, 8.0]));
        run(name, 1, both(&[1.0], &[2.0]), [&x]).gives(tensor(&[2, 2], [0f32, 2.0, 4.0, 6.0]));
        run(name, 1, [floats("scale", &[2.0])], [&tensor(&[], [3f64])]).gives(tensor(&[], [6f32]));
        run(name, 1, both(&[1.0; 3], &[2.0; 3]), [&x])
            .fails("offset has 3 entries, but \"X\" has 2 features: allowed 1, 2");
    }

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.Scaler";
        let floats = |name: &'static str, count: usize| (name, Attribute::Floats(vec![1.0; count]));
        infer(name, 1, [floats("offset", 3), floats("scale", 3)], ["int64[N, 3]"]).gives("[N, 3]");
        infer(name, 1, [], ["float[N, 3]"]).gives("[N, 3]");
        infer(name, 1, [floats("offset", 3), floats("scale", 1)], ["float"])
            .fails("scale has 1 entries, and offset has 3: they must be equally many");
        infer(name, 1, [floats("scale", 2)], ["float[N, 3]"]).fails("scale has 2 entries, but \"X\" has 3 features");
    }
}
