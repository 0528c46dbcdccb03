//! QLinearConv: a convolution of quantized images, quantized again.
//! <https://onnx.ai/onnx/operators/onnx__QLinearConv.html>

use super::bytes::ByteConv;
use crate::ops::prelude::*;
use kernels::gemm::Quantized;
use std::sync::OnceLock;

pub(super) const QLINEAR_CONV: Implementation = Implementation::blockwise("QLinearConv", &[10], load);

/// `y = round((conv + B) * (x_scale * w_scale / y_scale)) + y_zero_point`, where `conv` is the convolution of
/// `x - x_zero_point` with `w - w_zero_point`, as Conv's
///
/// Sums are int32 and wrap. Padding counts as `x_zero_point`: it adds nothing. The scales, and a sum by their quotient, are
/// computed in float32, from left to right; ties are rounded to even, and the nearest number is taken if it is out of range.
/// `w_scale` and `w_zero_point` may have a number for each filter.
#[derive(Debug)]
struct QLinearConv {
    filters: Filters,
    weights: Weights,
}

fn load(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    Ok(Arc::new(QLinearConv { filters: Filters::of(node, [0, 3], Some(8))?, weights: Weights::of_each(node, &[3, 5]) }))
}

/// What a sum of a filter is multiplied by.
fn factor(x_scale: f32, own: f32, y_scale: f32) -> f32 {
    x_scale * own / y_scale
}

impl QLinearConv {
    fn check(&self, facts: &Inference<'_>) -> Result<Option<(Vec<Dim>, Windows)>> {
        [1, 2, 6, 7].into_iter().try_for_each(|k| facts.single(k))?;
        for k in [4, 5] {
            facts.ranked(k, ..=1)?;
            facts.one_for_each(k, (3, 0))?;
        }
        self.filters.convolved(facts)
    }

    fn convolve<S: Multiply<Sum = u32> + Quantized>(&self, call: &Call<'_>) -> Result<Values> {
        let convolution = self.filters.of_call(call, |facts| self.check(facts))?;
        let bias = call.optional_tensor(8)?.map(Tensor::as_slice::<i32>).transpose()?;
        let (x_scale, y_scale) = (call.scalar::<f32>(1)?, call.scalar::<f32>(6)?);
        let of_filters = call.tensor(4)?.as_slice::<f32>()?;
        let mut scales = call.scratch::<f32>(of_filters.len())?;
        scales
            .elements_mut::<f32>()
            .iter_mut()
            .zip(of_filters)
            .for_each(|(scale, own)| *scale = factor(x_scale, *own, y_scale));
        let (operands, zeros) = ([call.tensor(0)?, call.tensor(3)?], [call.tensor(2)?, call.tensor(5)?]);
        let last = (bias, &*scales.elements_mut(), call.tensor(7)?.as_slice::<S>()?);
        convolution.requantized(call, &self.weights, operands, zeros, last)
    }
}

impl Blockwise for QLinearConv {
    fn of_bytes(&self, constant: &Constants<'_>) -> Option<(Box<dyn Fused>, [usize; 2])> {
        let (w, bias) = (constant(3)?, constant(8));
        let [count, of_each, ..] = *w.shape() else { return None };
        let list = |k: usize| constant(k).filter(|tensor| tensor.rank() < 2);
        let single = |k: usize| list(k).filter(|tensor| tensor.len() == 1);
        let scale = |k: usize| single(k)?.as_slice::<f32>().ok()?.first().copied();
        let (x_scale, y_scale) = (scale(1)?, scale(6)?);
        let of_filters = list(4)?.as_slice::<f32>().ok()?;
        let factors = of_filters.iter().map(|own| factor(x_scale, *own, y_scale)).collect::<Vec<f32>>();
        let bytes = ByteProduct {
            zeros: [single(2)?.clone(), list(5)?.clone()],
            constant: true,
            factors: Tensor::from(factors),
            bias: bias.cloned(),
            most: OnceLock::new(),
            zero_point: single(7)?.clone(),
            floats: None,
        };
        let channels = of_each.checked_mul(usize::try_from(self.filters.groups).ok()?)?;
        let convolution = ByteConv::new(&self.filters, bytes);
        let suits =
            bias.is_none_or(|bias| bias.shape() == [count]) && convolution.byte_windows(channels, w.shape()).is_some();
        suits.then(|| (Box::new(convolution) as _, [0, 3]))
    }
}

impl Operator for QLinearConv {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        with_small!(call.tensor(7)?.dtype(), S => self.convolve::<S>(call))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_known(0, self.check(facts)?.map(|(dims, _)| dims));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::filters::plain::{Case, random};
    use crate::ops::testing::{infer, ints, outputs, run, tensor};
    use crate::value::Value;

    fn one<T: crate::dtype::Element>(value: T) -> Value {
        tensor(&[], [value])
    }

    /// The standard's example.
    #[test]
    fn an_official_case() {
        let x = [
            255u8, 174, 162, 25, 203, 168, 58, 15, 59, 237, 95, 129, 0, 64, 56, 242, 153, 221, 168, 12, 166, 232, 178,
            186, 195, 237, 162, 237, 188, 39, 124, 77, 80, 102, 43, 127, 230, 21, 83, 41, 40, 134, 255, 154, 92, 141,
            42, 148, 247,
        ];
        let want = [
            0u8, 81, 93, 230, 52, 87, 197, 240, 196, 18, 160, 126, 255, 191, 199, 13, 102, 34, 87, 243, 89, 23, 77, 69,
            60, 18, 93, 18, 67, 216, 131, 178, 175, 153, 212, 128, 25, 234, 172, 214, 215, 121, 0, 101, 163, 114, 213,
            107, 8,
        ];
        let scales = [0.003_692_047f32, 0.001_626_812_6].map(one);
        let (x, w) = (tensor(&[1, 1, 7, 7], x), tensor(&[1, 1, 1, 1], [0u8]));
        let (w_scale, w_zero) = (tensor(&[1], [0.001_727_945_8f32]), tensor(&[1], [255u8]));
        let (x_zero, y_zero) = (one(132u8), one(123u8));
        run("QLinearConv", 10, [], [&x, &scales[0], &x_zero, &w, &w_scale, &w_zero, &scales[1], &y_zero])
            .gives(tensor(&[1, 1, 7, 7], want));
    }

    /// Filters with scales and zero points of their own, and a bias, beside the definition.
    #[test]
    fn many_convolutions() {
        let mut random = random(11);
        for case in Case::many(30, 3, 11) {
            let mut bytes =
                |shape: &[usize]| -> Vec<u8> { (0..shape.iter().product()).map(|_| random(256) as u8).collect() };
            let filters = case.w[0];
            let (x, w, x_zero, w_zero) = (bytes(&case.x), bytes(&case.w), bytes(&[])[0], bytes(&[filters]));
            let bias: Vec<i32> = bytes(&[filters]).iter().map(|x| i32::from(*x) * 100 - 12800).collect();
            let w_scale: Vec<f32> = bytes(&[filters]).iter().map(|x| (f32::from(*x) + 1.0) / 3000.0).collect();
            let (x_scale, y_scale, y_zero) = (0.03f32, 1.7f32, -5i8);
            let signed: Vec<i8> = w.iter().map(|w| *w as i8).collect();
            let w_zero: Vec<i8> = w_zero.iter().map(|zero| *zero as i8).collect();
            let taps = case.taps();
            let each = taps.len() / case.output()[..2].iter().product::<usize>().max(1);
            let want = taps.iter().enumerate().map(|(at, taps)| {
                let filter = at / each % filters;
                let term = |(k, at): &(usize, Option<usize>)| {
                    let w = i32::from(signed[*k]) - i32::from(w_zero[filter]);
                    at.map_or(0, |at| w * (i32::from(x[at]) - i32::from(x_zero)))
                };
                let sum = taps.iter().map(term).sum::<i32>() + bias[filter];
                let scaled = (sum as f32 * (x_scale * w_scale[filter] / y_scale)).round_ties_even();
                (scaled + f32::from(y_zero)).clamp(-128.0, 127.0) as i8
            });
            let want = tensor(&case.output(), want.collect::<Vec<_>>());
            let inputs = [
                tensor(&case.x, x.clone()),
                one(x_scale),
                one(x_zero),
                tensor(&case.w, signed.clone()),
                tensor(&[filters], w_scale.clone()),
                tensor(&[filters], w_zero.clone()),
                one(y_scale),
                one(y_zero),
                tensor(&[filters], bias.clone()),
            ];
            assert_eq!(outputs("QLinearConv", 10, case.attributes(), inputs.each_ref())[0], want, "{case:?}");
        }
    }

    #[test]
    fn refusals() {
        let (x, w, scale, zero) = (tensor(&[1, 1, 3], [1u8, 2, 3]), tensor(&[2, 1, 2], [1u8; 4]), one(1f32), one(0u8));
        run("QLinearConv", 10, [], [&x, &tensor(&[2], [1f32; 2]), &zero, &w, &scale, &zero, &scale, &zero])
            .fails("\"x_scale\" has shape [2]: one value is needed");
        run("QLinearConv", 10, [], [&x, &scale, &zero, &w, &tensor(&[3], [1f32; 3]), &zero, &scale, &zero])
            .fails("dimension 0 of \"w_scale\" of shape [3] is 3");
        run("QLinearConv", 10, [], [&x, &scale, &zero, &w, &tensor(&[1, 2], [1f32; 2]), &zero, &scale, &zero])
            .fails("allowed ranks 0 to 1");
    }

    #[test]
    fn shapes() {
        let (x, scale, zero) = ("uint8[N, 3, 7, W]", "float[]", "uint8[]");
        infer(
            "QLinearConv",
            10,
            [],
            [x, scale, zero, "int8[8, 3, 3, 3]", "float[8]", "int8[8]", scale, zero, "int32[8]"],
        )
        .gives("[N, 8, 5, max(W - 2, 0)]");
        infer(
            "QLinearConv",
            10,
            [ints("strides", &[2, 2])],
            [x, scale, zero, "int8[M, 3, 1, 1]", scale, "int8[]", scale, zero],
        )
        .gives("[N, M, 4, floor((W + 1)/2)]");
    }

    #[test]
    fn faults() {
        let (x, w, scale, zero) = ("uint8[N, 3, 7, 7]", "int8[8, 3, 3, 3]", "float[]", "uint8[]");
        infer("QLinearConv", 10, [], [x, scale, zero, w, "float[3]", "int8[3]", scale, zero])
            .fails("dimension 0 of \"w\" of shape [8, 3, 3, 3] is 8, and dimension 0 of \"w_scale\" of shape [3] is 3");
        infer("QLinearConv", 10, [], [x, scale, zero, w, scale, "int8[]", scale, zero, "int32[7]"])
            .fails("dimension 0 of \"B\" of shape [7] is 7");
    }
}
