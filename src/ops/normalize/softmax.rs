//! Softmax, LogSoftmax, Hardmax: exponentials divided by their sum, the logarithms of these, and 1 for the greatest.
//! <https://onnx.ai/onnx/operators/onnx__Softmax.html>, <https://onnx.ai/onnx/operators/onnx__LogSoftmax.html>,
//! <https://onnx.ai/onnx/operators/onnx__Hardmax.html>

use crate::ops::prelude::*;

pub(super) const SOFTMAX: Implementation = with_versions("Softmax", |node| {
    Ok(Box::new(Softmax { rounded: Some(lanes::RoundedSoftmax), ..Softmax::of(node, lanes::Softmax)? }))
});
pub(super) const LOG_SOFTMAX: Implementation =
    with_versions("LogSoftmax", |node| Ok(Box::new(Softmax::of(node, lanes::LogSoftmax)?)));
pub(super) const HARDMAX: Implementation =
    with_versions("Hardmax", |node| Ok(Box::new(Softmax::of(node, lanes::Hardmax)?)));

const fn with_versions(name: &'static str, load: Load) -> Implementation {
    Implementation { domain: "", name, versions: &[1, 11, 13], make: Make::Run(load) }
}

/// `output[a.., i, b..] = exp(input[a.., i, b..]) / sum of exp(input[a.., j, b..])` over all `j`; or what `function`
/// makes of such a lane instead.
#[derive(Debug)]
struct Softmax<F> {
    axis: i64,
    /// `i` and `j` run through all dimensions from the axis on.
    to_the_end: bool,
    function: F,
    /// The same for elements of 16 bits: each step of the standard's function body rounds.
    rounded: Option<fn(Half) -> lanes::RoundedSoftmax>,
}

impl<F: FloatMap> Softmax<F> {
    /// Up to version 11 the input counts as a matrix, whose rows are normalized.
    fn of(node: &Node<'_>, function: F) -> Result<Softmax<F>> {
        Ok(Softmax { axis: node.int("axis")?, to_the_end: node.version() < 13, function, rounded: None })
    }
}

impl<F: FloatMap> Operator for Softmax<F> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let axis = call.axis(0, self.axis)?.at;
        let data = call.tensor(0)?;
        let lanes = Lanes::new(data.shape(), |at| at == axis || self.to_the_end && at > axis);
        match (data.dtype(), self.rounded) {
            (DType::Float16, Some(by)) => Ok([mapped::<f16, f32>(call, data, &lanes, &by(Half::F16))?.into()].into()),
            (DType::Bfloat16, Some(by)) => {
                Ok([mapped::<bf16, f32>(call, data, &lanes, &by(Half::Bf16))?.into()].into())
            }
            _ => map_floats(call, &lanes, &self.function),
        }
    }

    fn infer(&self, inputs: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        Ok(same_shape(inputs))
    }
}
