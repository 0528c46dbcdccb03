//! HannWindow, HammingWindow and BlackmanWindow: weights for the samples of a frame.
//! <https://onnx.ai/onnx/operators/onnx__HannWindow.html>, <https://onnx.ai/onnx/operators/onnx__HammingWindow.html>,
//! <https://onnx.ai/onnx/operators/onnx__BlackmanWindow.html>

use super::beyond;
use crate::ops::prelude::*;
use kernels::tapers::taper;

pub(super) const HANN_WINDOW: Implementation = Implementation::run("HannWindow", &[17], |node| load(node, HANN));

pub(super) const HAMMING_WINDOW: Implementation =
    Implementation::run("HammingWindow", &[17], |node| load(node, HAMMING));

pub(super) const BLACKMAN_WINDOW: Implementation =
    Implementation::run("BlackmanWindow", &[17], |node| load(node, BLACKMAN));

/// `0.5 - 0.5 cos`, as weights of the powers of `q`.
const HANN: [f64; 3] = [0.0, 1.0, 0.0];
/// `25/46 - 21/46 cos`
const HAMMING: [f64; 3] = [2.0 / 23.0, 21.0 / 23.0, 0.0];
/// `0.42 - 0.5 cos(x) + 0.08 cos(2 x)`
const BLACKMAN: [f64; 3] = [0.0, 0.36, 0.64];

/// `output[k] = a + b q + c q^2` with `q = sin^2(pi k / n) = (1 - cos(2 pi k / n)) / 2`, where `n` is `size`, or `size - 1` if
/// the window isn't periodic. So it is symmetric, and exactly 0 and 1 where the formula is.
///
/// Computed in double and rounded once; to integers toward 0. A symmetric window of 1 is 0 / 0, as in the standard's
/// function.
#[derive(Debug)]
struct Window {
    weights: [f64; 3],
    periodic: bool,
    dtype: DType,
}

fn load(node: &Node<'_>, weights: [f64; 3]) -> Result<Box<dyn Operator>> {
    let (periodic, dtype) = (node.flag("periodic")?, node.output_type("output_datatype")?);
    Ok(Box::new(Window { weights, periodic, dtype }))
}

/// What is known about the number of weights.
fn size(facts: &Inference<'_>) -> Result<Dim> {
    facts.single(0)?;
    match facts.number(0).and_then(|size| size.number()) {
        Some(size @ ..0) => {
            Err(Error::input(format!("size is {size}: it must not be negative")).parameter("size").value(size))
        }
        _ => Ok(facts.size(0)),
    }
}

impl Operator for Window {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let Dim::Fixed(size) = call.by_rule(size)? else { return Err(beyond()) };
        let mut output = Output::<f64>::new(call.context(), self.dtype, shape_of([&[size]]))?;
        let len = if self.periodic { size } else { size.saturating_sub(1) };
        taper(self.weights, len, output.elements_mut()?, call.resources())?;
        Ok(output.finish()?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_type(0, self.dtype);
        facts.give(0, [size(facts)?]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{infer, int, outputs, run, tensor};
    use half::f16;

    #[test]
    fn windows() {
        let size = tensor(&[], [4i32]);
        run("HannWindow", 17, [], [&size]).gives(tensor(&[4], [0f32, 0.5, 1.0, 0.5]));
        let symmetric = || int("periodic", 0);
        run("HannWindow", 17, [symmetric()], [&size]).gives(tensor(&[4], [0f32, 0.75, 0.75, 0.0]));
        run("HammingWindow", 17, [], [&size])
            .gives(tensor(&[4], [2.0 / 23.0, 25.0 / 46.0, 1.0, 25.0 / 46.0].map(|x: f64| x as f32)));
        run("BlackmanWindow", 17, [], [&size]).gives(tensor(&[4], [0f32, 0.34, 1.0, 0.34]));
        run("BlackmanWindow", 17, [symmetric()], [&tensor(&[1], [3i64])]).gives(tensor(&[3], [0f32, 1.0, 0.0]));
    }

    /// To integers toward 0, so that only the peak is left.
    #[test]
    fn types_and_sizes() {
        let of = |dtype: DType| int("output_datatype", dtype.code().into());
        let size = |size: i64| tensor(&[], [size]);
        run("HannWindow", 17, [of(DType::Uint8)], [&size(4)]).gives(tensor(&[4], [0u8, 0, 1, 0]));
        run("HammingWindow", 17, [of(DType::Int64)], [&size(4)]).gives(tensor(&[4], [0i64, 0, 1, 0]));
        run("BlackmanWindow", 17, [of(DType::Int16)], [&size(4)]).gives(tensor(&[4], [0i16, 0, 1, 0]));
        run("HannWindow", 17, [of(DType::Float16)], [&size(2)]).gives(tensor(&[2], [f16::ZERO, f16::ONE]));
        run("HannWindow", 17, [of(DType::Double)], [&size(1)]).gives(tensor(&[1], [0f64]));
        for periodic in [0, 1] {
            run("HannWindow", 17, [int("periodic", periodic)], [&size(0)]).gives(tensor(&[0], Vec::<f32>::new()));
        }
        // 0 / 0
        let one = outputs("HannWindow", 17, [int("periodic", 0)], [&size(1)]);
        assert!(one[0].tensor().unwrap().as_slice::<f32>().unwrap()[0].is_nan());
        run("HannWindow", 17, [], [&size(-1)]).fails("size is -1: it must not be negative");
        run("HannWindow", 17, [], [&size(i64::MAX)]).fails("more bytes than can be counted");
        run("HannWindow", 17, [], [&size(1 << 40)]).fails("tensor_bytes");
    }

    #[test]
    fn shapes_and_types() {
        infer("HannWindow", 17, [], ["{400}"]).gives("[400]");
        infer("HammingWindow", 17, [], ["{N}"]).gives("[N]");
        infer("BlackmanWindow", 17, [], ["int32[]"]).gives("[?]");
        infer("HannWindow", 17, [], ["{400}"]).has_type("float32");
        infer("HannWindow", 17, [int("output_datatype", 11)], ["{400}"]).has_type("float64");
        infer("HannWindow", 17, [int("output_datatype", 9)], ["{4}"]).fails("output_datatype asks for bool: allowed");
        infer("HannWindow", 17, [], ["{4, 5}"]).fails("\"size\" has shape [2]: one value is needed");
        infer("HannWindow", 17, [int("periodic", 2)], ["{4}"]).fails("periodic is 2: allowed 0, 1");
    }
}
