//! LayerNormalization and RMSNormalization: the elements from an axis on, divided by their standard deviation or their
//! root mean square.
//! <https://onnx.ai/onnx/operators/onnx__LayerNormalization.html>,
//! <https://onnx.ai/onnx/operators/onnx__RMSNormalization.html>

use super::scaled::{Precision, Scaled, Spread};
use crate::ops::prelude::*;

pub(super) const LAYER_NORMALIZATION: Implementation = Implementation::run("LayerNormalization", &[17], load_layer);

pub(super) const RMS_NORMALIZATION: Implementation = Implementation::run("RMSNormalization", &[23], load_rms);

/// `Y = (X - mean) / sqrt(variance + epsilon) * Scale + B`, and without a mean
/// `Y = X / sqrt(mean of squares + epsilon) * scale`. The statistics are those of all elements from `axis` on.
#[derive(Debug)]
struct LayerNormalization {
    axis: i64,
    how: lanes::Normalize,
    precision: Precision,
    /// The type of the statistics, which are outputs of LayerNormalization.
    stash: DType,
}

fn load_layer(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    load(node, true, &[DType::Float, DType::Bfloat16])
}

fn load_rms(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    load(node, false, &[DType::Float, DType::Float16, DType::Double, DType::Bfloat16])
}

fn load(node: &Node<'_>, center: bool, stashes: &[DType]) -> Result<Box<dyn Operator>> {
    let how = lanes::Normalize { center, epsilon: node.float("epsilon")? };
    let precision = Precision::stashed(node, stashes)?;
    let stash =
        if node.int("stash_type")? == i64::from(DType::Bfloat16.code()) { DType::Bfloat16 } else { DType::Float };
    Ok(Box::new(LayerNormalization { axis: node.int("axis")?, how, precision, stash }))
}

impl Operator for LayerNormalization {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, x) = (call.axis(0, self.axis)?, call.tensor(0)?);
        let len = kernels::volume(1, x.shape().iter().skip(axis.at));
        let scale = Spread::broadcast(call, 1, x.shape())?;
        let bias = call.input(2).map(|_| Spread::broadcast(call, 2, x.shape())).transpose()?;
        let scaled = Scaled { how: self.how, len, precision: self.precision, scale, bias, x };
        let mut outputs = Values::from(scaled.compute(call)?);
        if call.output_count() > 1 {
            let [mean, inverse] = self.statistics(call, x, len, axis.at)?;
            outputs.extend([mean, inverse].map(|statistic| statistic.unwrap_or_else(|| x.clone()).into()));
            outputs.truncate(call.output_count());
        }
        Ok(outputs)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        (1..=2).for_each(|k| facts.give_type(k, self.stash));
        if let Some(dims) = facts.ranked(0, 1..)? {
            let (mut dims, at) = (dims.to_vec(), facts.place("axis", dims.len())?);
            Spread::check(facts, 1, &dims)?;
            Spread::check(facts, 2, &dims)?;
            dims.iter_mut().skip(at).for_each(|dim| *dim = Dim::Fixed(1));
            facts.give(1, &*dims);
            facts.give(2, dims);
        }
        Ok(())
    }
}

impl LayerNormalization {
    /// The mean of each lane and the inverse of its divisor, those of them that somebody reads.
    fn statistics(&self, call: &Call<'_>, x: &Tensor, len: usize, axis: usize) -> Result<[Option<Tensor>; 2]> {
        let mut shape = shape_of([x.shape()]);
        shape.iter_mut().skip(axis).for_each(|dim| *dim = 1);
        let output = |k: usize| call.wants(k).then(|| call.output_of(self.stash, shape.clone())).transpose();
        let (mut mean, mut inverse) = (output(1)?, output(2)?);
        if mean.is_some() || inverse.is_some() {
            call.charge(x.len() as u64)?;
        }
        by_type!(floats, x.dtype(), S as _T => by_type!(floats, self.stash, O as _U => {
            let outs = [elements_of::<O>(&mut mean)?, elements_of::<O>(&mut inverse)?];
            Ok(lanes::statistics::<S, O, f32>(self.how, x.as_slice::<S>()?, len, outs, call.resources())?)
        }))?;
        Ok([mean, inverse].map(|output| output.map(NewTensor::finish)))
    }
}

/// Of an output that nobody reads there are none.
fn elements_of<O: Element>(output: &mut Option<NewTensor>) -> Result<&mut [O]> {
    output.as_mut().map_or(Ok(&mut []), NewTensor::elements_mut)
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, outputs, run, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    fn float(name: &str, value: f32) -> (&str, crate::operator::Attribute) {
        (name, crate::operator::Attribute::Float(value))
    }

    #[test]
    fn by_mean_and_variance() {
        let x = tensor(&[2, 2], [1f32, 5.0, -2.0, 2.0]);
        let (scale, bias) = (tensor(&[2], [1f32, 10.0]), tensor(&[2], [0f32, 0.5]));
        let y = tensor(&[2, 2], [-1f32, 10.5, -1.0, 10.5]);
        let ran = outputs("LayerNormalization", 17, [float("epsilon", 0.0)], [&x, &scale, &bias]);
        assert_eq!(ran.as_slice(), [y, tensor(&[2, 1], [3f32, 0.0]), tensor(&[2, 1], [0.5f32, 0.5])]);
        let one = tensor(&[1], [2f32]);
        run("LayerNormalization", 17, [int("axis", 0), float("epsilon", 0.0)], [&tensor(&[2], [3f32, 3.5]), &one])
            .gives(tensor(&[2], [-2f32, 2.0]));
    }

    #[test]
    fn shapes_at_load() {
        let x = "float[N, S, 3]";
        infer("LayerNormalization", 17, [], [x, "float[3]"]).gives_all(["[N, S, 3]", "[N, S, 1]", "[N, S, 1]"]);
        infer("LayerNormalization", 17, [int("axis", 1)], [x, "float[3]"]).gives_all([
            "[N, S, 3]",
            "[N, 1, 1]",
            "[N, 1, 1]",
        ]);
        infer("RMSNormalization", 23, [], [x, "float[3]"]).gives("[N, S, 3]");
        infer("LayerNormalization", 17, [], ["float", "float[3]"]).gives_all(["", "", ""]);
        infer("LayerNormalization", 17, [], [x, "float[4]"])
            .fails("\"Scale\" of shape [4] can't be broadcast to the shape [N, S, 3] of \"X\"");
        infer("LayerNormalization", 17, [int("axis", 3)], [x, "float[3]"]).fails("axis 3 is out of range");
    }

    #[test]
    fn by_root_mean_square() {
        let x = tensor(&[2, 2], [3f32, -3.0, 2.0, 2.0]);
        run("RMSNormalization", 23, [float("epsilon", 0.0)], [&x, &tensor(&[2], [1f32, 7.0])])
            .gives(tensor(&[2, 2], [1f32, -7.0, 1.0, 7.0]));
        // The output has the type of the scale.
        let x = tensor(&[2], [3f32, -3.0].map(f16::from_f32));
        run("RMSNormalization", 23, [float("epsilon", 0.0)], [&x, &tensor(&[2], [0.1f64, 0.2])])
            .gives(tensor(&[2], [0.1f64, -0.2]));
    }

    /// `Scale` broadcasts to `X`, also where dimensions are repeated between others.
    #[test]
    fn scales_of_all_shapes() {
        let x = tensor(&[2, 2, 2], [-1f32, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
        let ran = |scale: &Value| run("LayerNormalization", 17, [float("epsilon", 0.0)], [&x, scale]);
        ran(&tensor(&[], [3f32])).gives(tensor(&[2, 2, 2], [-3f32, 3.0, -3.0, 3.0, -3.0, 3.0, -3.0, 3.0]));
        ran(&tensor(&[2, 1], [1f32, 2.0])).gives(tensor(&[2, 2, 2], [-1f32, 1.0, -2.0, 2.0, -1.0, 1.0, -2.0, 2.0]));
        ran(&tensor(&[2, 1, 1], [1f32, 2.0])).gives(tensor(&[2, 2, 2], [-1f32, 1.0, -1.0, 1.0, -2.0, 2.0, -2.0, 2.0]));
        ran(&tensor(&[2, 1, 2], [1f32, 2.0, 3.0, 4.0]))
            .gives(tensor(&[2, 2, 2], [-1f32, 2.0, -1.0, 2.0, -3.0, 4.0, -3.0, 4.0]));
        ran(&tensor(&[3], [1f32; 3]))
            .fails("\"Scale\" of shape [3] can't be broadcast to the shape [2, 2, 2] of \"X\"");
        ran(&tensor(&[1, 1, 1, 2], [1f32; 2])).fails("can't be broadcast");
    }

    /// The normalized 1.2247449 is rounded to 1.2265625, and then 3 times that. Rounded once it were 3.671875.
    #[test]
    fn halves_are_rounded_step_by_step() {
        let x = tensor(&[3], [-1f32, 0.0, 1.0].map(bf16::from_f32));
        let scale = tensor(&[1], [bf16::from_f32(3.0)]);
        let ran = outputs("LayerNormalization", 17, [int("stash_type", 16), float("epsilon", 0.0)], [&x, &scale]);
        assert_eq!(ran[0], tensor(&[3], [-3.6875f32, 0.0, 3.6875].map(bf16::from_f32)));
        assert_eq!(ran[2], tensor(&[1], [bf16::from_f32(1.2265625)]));
        let bias = tensor(&[1], [bf16::from_f32(256.0)]);
        let ran = outputs("LayerNormalization", 17, [float("epsilon", 0.0)], [&x, &scale, &bias]);
        assert_eq!(ran[0], tensor(&[3], [252f32, 256.0, 260.0].map(bf16::from_f32)));
        assert_eq!(ran[2], tensor(&[1], [1.2247449f32]));
    }

    /// Double is computed in float, unless `stash_type` says otherwise.
    #[test]
    fn stash_types() {
        let x = tensor(&[2], [-0.5f64, 0.5]);
        let (scale, two) = (tensor(&[1], [1f64]), tensor(&[2], [-1f64, 1.0]));
        run("LayerNormalization", 17, [float("epsilon", 0.0)], [&x, &scale]).gives(two.clone());
        run("RMSNormalization", 23, [float("epsilon", 0.0), int("stash_type", 11)], [&x, &scale]).gives(two);
    }

    #[test]
    fn nothing_to_normalize() {
        let (x, scale) = (tensor(&[0, 2], Vec::<f32>::new()), tensor(&[2], [1f32, 2.0]));
        run("LayerNormalization", 17, [], [&x, &scale]).gives(x);
    }

    #[test]
    fn refusals() {
        let (x, scale) = (tensor(&[2], [1f32, 2.0]), tensor(&[2], [1f32, 2.0]));
        run("LayerNormalization", 17, [int("stash_type", 7)], [&x, &scale])
            .fails("stash_type 7 is no type to compute with: allowed 1 (float32), 16 (bfloat16)");
        run("RMSNormalization", 23, [int("axis", 1)], [&x, &scale]).fails("axis 1 is out of range");
    }

    #[test]
    fn inferred() {
        infer("LayerNormalization", 17, [], ["float[N, S, 8]", "float[8]"]).gives_all([
            "[N, S, 8]",
            "[N, S, 1]",
            "[N, S, 1]",
        ]);
        infer("LayerNormalization", 17, [int("axis", 1)], ["float[N, S, 8]", "float"]).gives_all([
            "[N, S, 8]",
            "[N, 1, 1]",
            "[N, 1, 1]",
        ]);
        infer("RMSNormalization", 23, [], ["float[N, 8]", "float[8]"]).gives("[N, 8]");
        infer("LayerNormalization", 17, [], ["float[N, 1]", "float[1]", "float[3]"])
            .fails("\"B\" of shape [3] can't be broadcast to the shape [N, 1] of \"X\"");
        infer("LayerNormalization", 17, [int("axis", 2)], ["float[N, 8]", "float"]).fails("axis 2 is out of range");
    }
}
