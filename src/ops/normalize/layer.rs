//! LayerNormalization and RMSNormalization: the elements from an axis on, divided by their standard deviation or their
//! root mean square.
//! <https://onnx.ai/onnx/operators/onnx__LayerNormalization.html>,
//! <https://onnx.ai/onnx/operators/onnx__RMSNormalization.html>

use super::scaled::{Precision, Scaled, Spread};
use crate::ops::prelude::*;

pub(super) const LAYER_NORMALIZATION: Implementation =
    Implementation { domain: "", name: "LayerNormalization", versions: &[17], make: Make::Run(load_layer) };

pub(super) const RMS_NORMALIZATION: Implementation =
    Implementation { domain: "", name: "RMSNormalization", versions: &[23], make: Make::Run(load_rms) };

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
    let stash = if node.int("stash_type")? == DType::Bfloat16.code().into() { DType::Bfloat16 } else { DType::Float };
    Ok(Box::new(LayerNormalization { axis: node.int("axis")?, how, precision, stash }))
}

impl Operator for LayerNormalization {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, x) = (call.axis(0, self.axis)?, call.tensor(0)?);
        let len = kernels::volume(1, x.shape().iter().skip(axis.at));
        let scale = Spread::broadcast(call, 1, x.shape())?;
        let bias = call.input(2).map(|_| Spread::broadcast(call, 2, x.shape())).transpose()?;
        let scaled = Scaled { how: self.how, len, precision: self.precision, scale, bias, x };
        let mut outputs: Values = smallvec![scaled.compute(call)?.into()];
        let picks: [fn(_) -> f32; 2] = [|s: lanes::Statistics<f32>| s.mean, |s| 1.0 / s.divisor];
        for (k, pick) in picks.into_iter().enumerate().take_while(|(k, _)| k + 1 < call.output_count()) {
            let mut shape = shape_of([x.shape()]);
            shape.iter_mut().skip(axis.at).for_each(|dim| *dim = 1);
            let wanted = call.wants(k + 1);
            outputs.push(if wanted { self.statistic(call, x, len, pick, shape)? } else { x.clone() }.into());
        }
        Ok(outputs)
    }

    fn infer(&self, inputs: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        Ok(same_shape(inputs))
    }
}

impl LayerNormalization {
    fn statistic(
        &self,
        call: &Call<'_>,
        x: &Tensor,
        len: usize,
        pick: fn(lanes::Statistics<f32>) -> f32,
        shape: Shape,
    ) -> Result<Tensor> {
        call.charge(x.len() as u64)?;
        let mut output = call.output_of(self.stash, shape)?;
        by_type!(floats, x.dtype(), S as _T => by_type!(floats, self.stash, O as _U => {
            let (x, out) = (x.as_slice::<S>()?, output.elements_mut::<O>()?);
            Ok(lanes::statistics::<S, O, f32>(self.how, pick, x, len, out, call.resources())?)
        }))?;
        Ok(output.finish())
    }
}
