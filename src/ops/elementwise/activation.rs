//! Activations of straight pieces, and Softsign. HardSigmoid is rounded once, HardSwish and Softsign have at most 2 ulp.
//! <https://onnx.ai/onnx/operators/onnx__Relu.html>, <https://onnx.ai/onnx/operators/onnx__PRelu.html>

use super::{Elementwise, floats, numbers};
use crate::ops::prelude::*;

pub(super) const RELU: Implementation = Implementation::rowwise("Relu", &[1, 6, 13, 14], |_| {
    Ok(Elementwise::new(Relu, number_row, Align::Last).of_form(Form::Activation(Activation::Relu)).shared())
});

/// `Y = max(0, X)`
#[derive(Debug)]
struct Relu;

impl Floats<1> for Relu {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::relu(x)
    }
}

impl Ints<1> for Relu {
    fn int<T: Int>(&self, [x]: [T; 1]) -> T {
        x.max(T::ZERO)
    }
}

pub(super) const LEAKY_RELU: Implementation =
    Implementation::rowwise("LeakyRelu", &[1, 6, 16], |node| floats(LeakyRelu { alpha: node.float("alpha")? }));

/// `Y = alpha * X if X < 0, else X`
#[derive(Debug)]
struct LeakyRelu {
    alpha: f32,
}

impl Floats<1> for LeakyRelu {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::leaky(x, T::of(self.alpha.into()))
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::leaky_all(x, T::of(self.alpha.into()), out);
    }
}

/// Before version 7 the slopes are those of the channels, or one for all.
pub(super) const PRELU: Implementation = Implementation::rowwise("PRelu", &[1, 6, 7, 9, 16], |node| {
    let align = if node.version() < 7 { Align::Channels } else { Align::At(None) };
    Ok(Elementwise::new(PRelu, number_row, align).shared())
});

/// `Y = slope * X if X < 0, else X`
#[derive(Debug)]
struct PRelu;

impl Floats<2> for PRelu {
    #[inline(always)]
    fn float<T: Real>(&self, [x, slope]: [T; 2]) -> T {
        if x < T::ZERO { slope * x } else { x }
    }
}

impl Ints<2> for PRelu {
    fn int<T: Int>(&self, [x, slope]: [T; 2]) -> T {
        if x < T::ZERO { slope.times(x) } else { x }
    }
}

/// Version 1 was experimental.
pub(super) const THRESHOLDED_RELU: Implementation = Implementation::rowwise("ThresholdedRelu", &[1, 10, 22], |node| {
    floats(ThresholdedRelu { alpha: node.float("alpha")? })
});

/// `Y = X if X > alpha, else 0`
#[derive(Debug)]
struct ThresholdedRelu {
    alpha: f32,
}

impl Floats<1> for ThresholdedRelu {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        if x > T::of(self.alpha.into()) { x } else { T::ZERO }
    }
}

pub(super) const HARD_SIGMOID: Implementation = Implementation::rowwise("HardSigmoid", &[1, 6, 22], |node| {
    floats(HardSigmoid { alpha: node.float("alpha")?, beta: node.float("beta")? })
});

/// `Y = max(0, min(1, alpha * X + beta))`
#[derive(Debug)]
struct HardSigmoid {
    alpha: f32,
    beta: f32,
}

impl Floats<1> for HardSigmoid {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x.mul_add(T::of(self.alpha.into()), T::of(self.beta.into())).smaller(T::ONE).larger(T::ZERO)
    }
}

pub(super) const HARD_SWISH: Implementation = Implementation::rowwise("HardSwish", &[14, 22], |_| {
    Ok(Elementwise::new(HardSwish, float_row, Align::Last).of_form(Form::Activation(Activation::HardSwish)).shared())
});

/// `Y = X * max(0, min(1, X / 6 + 1/2))`
#[derive(Debug)]
struct HardSwish;

impl Floats<1> for HardSwish {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::hard_swish(x)
    }
}

pub(super) const SOFTSIGN: Implementation = Implementation::rowwise("Softsign", &[1, 22], |_| floats(Softsign));

/// `output = input / (1 + |input|)`
#[derive(Debug)]
struct Softsign;

impl Floats<1> for Softsign {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x / (T::ONE + x.abs())
    }
}

pub(super) const SHRINK: Implementation = Implementation::rowwise("Shrink", &[9], |node| {
    numbers(Shrink { lambd: node.float("lambd")?, bias: node.float("bias")? })
});

/// `output = input + bias if input < -lambd, input - bias if input > lambd, else 0`; integers round toward 0
#[derive(Debug)]
struct Shrink {
    lambd: f32,
    bias: f32,
}

impl Floats<1> for Shrink {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        let (lambd, bias) = (T::of(self.lambd.into()), T::of(self.bias.into()));
        if x < -lambd {
            x + bias
        } else if x > lambd {
            x - bias
        } else {
            T::ZERO
        }
    }
}

impl Ints<1> for Shrink {
    fn int<T: Int>(&self, [x]: [T; 1]) -> T {
        let (x, lambd, bias) = (x.to_i128(), f64::from(self.lambd), f64::from(self.bias));
        // Integers beyond 2^53 are compared as they are; nothing is beyond NaN.
        let bias = if !lambd.is_nan() && x < (-lambd).ceil() as i128 {
            bias
        } else if !lambd.is_nan() && x > lambd.floor() as i128 {
            -bias
        } else {
            return T::ZERO;
        };
        // Exact also where floats skip integers.
        let floor = x.saturating_add(bias.floor() as i128);
        T::wrapped(if floor < 0 && bias != bias.floor() { floor + 1 } else { floor })
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{float, run, tensor};
    use half::{bf16, f16};

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    #[test]
    fn relu() {
        run("Relu", 14, [], [&[-1f32, 0.5, NAN, -INF, INF].into()]).gives([0f32, 0.5, NAN, 0.0, INF]);
        run("Relu", 14, [], [&[i8::MIN, 3].into()]).gives([0i8, 3]);
        run("Relu", 1, [], [&tensor(&[], [-2f64])]).gives(tensor(&[], [0f64]));
        run("LeakyRelu", 16, [float("alpha", 0.5)], [&[-3f32, 2.0, NAN].into()]).gives([-1.5f32, 2.0, NAN]);
        run("LeakyRelu", 6, [], [&[-1f64].into()]).gives([-f64::from(0.01f32)]);
        run("ThresholdedRelu", 9, [], [&[1f32, 1.5, -2.0, NAN].into()]).gives([0f32, 1.5, 0.0, 0.0]);
        run("ThresholdedRelu", 10, [], [&[1f32, 1.5, -2.0, NAN].into()]).gives([0f32, 1.5, 0.0, 0.0]);
        run("ThresholdedRelu", 22, [float("alpha", -1.0)], [&vec![bf16::NEG_ONE, bf16::ONE].into()])
            .gives(vec![bf16::ZERO, bf16::ONE]);
    }

    #[test]
    fn slopes() {
        let x = tensor(&[1, 2, 2], [-1f32, -2.0, 3.0, -4.0]);
        run("PRelu", 16, [], [&x, &tensor(&[2, 1], [0.5f32, 10.0])])
            .gives(tensor(&[1, 2, 2], [-0.5f32, -1.0, 3.0, -40.0]));
        run("PRelu", 9, [], [&[-3i32, 2].into(), &[2i32].into()]).gives([-6i32, 2]);
        run("PRelu", 7, [], [&tensor(&[1], [-3f32]), &tensor(&[1, 2], [2f32, 3.0])])
            .fails("\"slope\" of shape [1, 2] has no place in \"X\" of shape [1]");
        run("PRelu", 7, [], [&x, &tensor(&[3], [2f32, 3.0, 4.0])])
            .fails("dimension 0 of \"slope\" is 3, and dimension 2 of \"X\" is 2");
    }

    #[test]
    fn slopes_before_version_7() {
        let x = tensor(&[1, 2, 2], [-1f32, -2.0, 3.0, -4.0]);
        run("PRelu", 6, [], [&x, &[0.5f32, 10.0].into()]).gives(tensor(&[1, 2, 2], [-0.5f32, -1.0, 3.0, -40.0]));
        run("PRelu", 1, [], [&x, &[2f32].into()]).gives(tensor(&[1, 2, 2], [-2f32, -4.0, 3.0, -8.0]));
        run("PRelu", 1, [], [&[-1f32, 2.0].into(), &tensor(&[], [2f32])]).gives([-2f32, 2.0]);
        run("PRelu", 6, [], [&x, &x]).gives(tensor(&[1, 2, 2], [1f32, 4.0, 3.0, 16.0]));
        run("PRelu", 6, [], [&x, &[1f32, 2.0, 3.0].into()])
            .fails("dimension 0 of \"slope\" is 3, and dimension 1 of \"X\" is 2");
    }

    #[test]
    fn bounded_lines() {
        run("HardSigmoid", 6, [float("alpha", 0.5), float("beta", 0.25)], [&[-1f32, 1.0, 2.0, NAN].into()])
            .gives([0f32, 0.75, 1.0, NAN]);
        run("HardSigmoid", 22, [], [&vec![f16::ZERO].into()]).gives(vec![f16::from_f32(0.5)]);
        run("HardSwish", 14, [], [&[-4f32, 0.0, 1.5, 5.0, -3.0 + 2f32.powi(-20)].into()]).gives([
            -0f32,
            0.0,
            1.125,
            5.0,
            (-3.0 + 2f32.powi(-20)) * (2f32.powi(-20) / 6.0),
        ]);
    }

    #[test]
    fn softsign_and_shrink() {
        run("Softsign", 22, [], [&[-1f32, 0.0, 3.0].into()]).gives([-0.5f32, 0.0, 0.75]);
        let attributes = || [float("lambd", 1.5), float("bias", 1.5)];
        run("Shrink", 9, attributes(), [&[-2f32, -1.0, 0.0, 1.0, 2.0, NAN].into()])
            .gives([-0.5f32, 0.0, 0.0, 0.0, 0.5, 0.0]);
        run("Shrink", 9, attributes(), [&[-5i64, -1, 2, i64::MAX, i64::MIN].into()]).gives([
            -3i64,
            0,
            0,
            i64::MAX - 2,
            i64::MIN + 2,
        ]);
        run("Shrink", 9, [float("bias", -1.0)], [&[0u8, 1, 255].into()]).gives([0u8, 2, 0]);
        // Float64 doesn't have these integers.
        let beyond = (1i64 << 53) + 1;
        run("Shrink", 9, [float("lambd", (1i64 << 53) as f32)], [&[beyond, beyond - 1, -beyond].into()])
            .gives([beyond, 0, -beyond]);
        run("Shrink", 9, [float("lambd", NAN)], [&[5i64, -5].into()]).gives([0i64, 0]);
    }
}
