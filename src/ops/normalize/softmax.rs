//! Softmax, LogSoftmax, Hardmax: exponentials divided by their sum, the logarithms of these, and 1 for the greatest.
//! <https://onnx.ai/onnx/operators/onnx__Softmax.html>, <https://onnx.ai/onnx/operators/onnx__LogSoftmax.html>,
//! <https://onnx.ai/onnx/operators/onnx__Hardmax.html>

use crate::ops::prelude::*;

pub(super) const SOFTMAX: Implementation =
    Implementation::run("Softmax", &[1, 11, 13], |node| Ok(Box::new(Softmax::of(node, lanes::Softmax)?)));
pub(super) const LOG_SOFTMAX: Implementation =
    Implementation::run("LogSoftmax", &[1, 11, 13], |node| Ok(Box::new(Softmax::of(node, lanes::LogSoftmax)?)));
pub(super) const HARDMAX: Implementation =
    Implementation::run("Hardmax", &[1, 11, 13], |node| Ok(Box::new(Softmax::of(node, lanes::Hardmax)?)));

/// `output[a.., i, b..] = exp(input[a.., i, b..]) / sum of exp(input[a.., j, b..])` over all `j`; or what `function`
/// makes of such a lane instead.
#[derive(Debug)]
struct Softmax<F> {
    axis: i64,
    /// `i` and `j` run through all dimensions from the axis on.
    to_the_end: bool,
    function: F,
}

impl<F: FloatMap> Softmax<F> {
    /// Up to version 11 the input counts as a matrix, whose rows are normalized.
    fn of(node: &Node<'_>, function: F) -> Result<Softmax<F>> {
        Ok(Softmax { axis: node.axis("axis", 11)?, to_the_end: node.version() < 13, function })
    }
}

impl<F: FloatMap> Operator for Softmax<F> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let axis = call.axis(0, self.axis)?.at;
        let lanes = Lanes::new(call.tensor(0)?.shape(), |at| at == axis || self.to_the_end && at > axis);
        map_floats(call, &lanes, &self.function)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(dims) = facts.dims(0) {
            facts.place_of(self.axis, "axis", dims.len())?;
        }
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, outputs, run, tensor};
    use half::{bf16, f16};

    #[test]
    fn values() {
        let x = tensor(&[1, 2], [1000f32, 1000.0]);
        for version in [1, 11, 13] {
            run("Softmax", version, [], [&x]).gives(tensor(&[1, 2], [0.5f32, 0.5]));
            run("LogSoftmax", version, [], [&x]).gives(tensor(&[1, 2], [-std::f32::consts::LN_2; 2]));
            run("Hardmax", version, [], [&x]).gives(tensor(&[1, 2], [1f32, 0.0]));
        }
        let x = tensor(&[2, 2], [0f64, f64::NEG_INFINITY, -1e300, 0.0]);
        run("Softmax", 13, [], [&x]).gives(tensor(&[2, 2], [1f64, 0.0, 0.0, 1.0]));
        run("Softmax", 13, [int("axis", 0)], [&x]).gives(tensor(&[2, 2], [1f64, 0.0, 0.0, 1.0]));
        run("Softmax", 13, [], [&tensor(&[2], [0f32, 0.0].map(f16::from_f32))])
            .gives(tensor(&[2], [0.5f32, 0.5].map(f16::from_f32)));
        run("Softmax", 13, [int("axis", 0)], [&tensor(&[2, 2], [7f32; 4].map(bf16::from_f32))])
            .gives(tensor(&[2, 2], [0.5f32; 4].map(bf16::from_f32)));
    }

    /// Up to version 11 lanes go to the end.
    #[test]
    fn old_versions_have_rows() {
        let x = tensor(&[2, 2, 2], [1f32, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0]);
        run("Softmax", 11, [], [&x]).gives(tensor(&[2, 2, 2], [0.25f32; 8]));
        run("Softmax", 1, [int("axis", 0)], [&tensor(&[2, 2], [3f32; 4])]).gives(tensor(&[2, 2], [0.25f32; 4]));
        run("Softmax", 11, [int("axis", -1)], [&x]).gives(tensor(&[2, 2, 2], [0.5f32; 8]));
        run("Softmax", 13, [int("axis", 1)], [&x]).gives(tensor(&[2, 2, 2], [0.5f32; 8]));
        run("Hardmax", 1, [], [&x]).gives(tensor(&[2, 2, 2], [1f32, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]));
        run("Hardmax", 13, [int("axis", 1)], [&x]).gives(tensor(&[2, 2, 2], [1f32, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]));
    }

    #[test]
    fn without_a_greatest_finite_element() {
        let lowest = tensor(&[2], [f32::NEG_INFINITY; 2]);
        for name in ["Softmax", "LogSoftmax"] {
            let ran = outputs(name, 13, [], [&lowest]);
            assert!(ran[0].tensor().unwrap().as_slice::<f32>().unwrap().iter().all(|y| y.is_nan()));
        }
        run("Hardmax", 13, [], [&lowest]).gives(tensor(&[2], [1f32, 0.0]));
        run("Hardmax", 13, [], [&tensor(&[3], [1f32, f32::NAN, 2.0])]).gives(tensor(&[3], [0f32, 1.0, 0.0]));
        run("Softmax", 13, [], [&tensor(&[2, 0], Vec::<f32>::new())]).gives(tensor(&[2, 0], Vec::<f32>::new()));
    }

    #[test]
    fn refusals() {
        let x = tensor(&[2], [1f32, 2.0]);
        run("Softmax", 13, [int("axis", 1)], [&x])
            .fails("axis 1 is out of range for \"input\" of shape [2]: allowed -1..=0");
        run("Softmax", 13, [], [&tensor(&[], [1f32])]).fails("is a scalar");
    }

    #[test]
    fn inferred() {
        infer("Softmax", 13, [], ["float[N, 3]"]).gives("[N, 3]");
        infer("Hardmax", 1, [int("axis", 2)], ["float[N, 3]"]).fails("axis 2 is out of range: allowed -2..=1");
    }
}
