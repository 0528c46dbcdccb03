//! Activations that curve: Sigmoid, Swish, SwiGLU, Gelu, Mish, Softplus, Elu, Selu, Celu. Each says its greatest error in
//! float32 and in float64, in units of the last place (ulp).
//! <https://onnx.ai/onnx/operators/onnx__Sigmoid.html>, <https://onnx.ai/onnx/operators/onnx__Gelu.html>

use super::{Elementwise, floats};
use crate::ops::prelude::*;

pub(super) const SIGMOID: Implementation = Implementation::rowwise("Sigmoid", &[1, 6, 13], |_| {
    let gated = || {
        let form = Form::Activation(Activation::Gated);
        Elementwise::new(Gated, float_row, Align::Last).of_form(form).shared()
    };
    Ok(Elementwise { gated: Some(gated), ..Elementwise::new(Sigmoid, float_row, Align::Last) }.shared())
});

/// `Y = 1 / (1 + e^-X)`: 0.8 ulp, 1 ulp.
#[derive(Debug)]
struct Sigmoid;

impl Floats<1> for Sigmoid {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::sigmoid(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::sigmoid_all(x, out);
    }
}

/// The product of an element and its Sigmoid, as exporters write it: rounded twice.
#[derive(Debug)]
struct Gated;

impl Floats<1> for Gated {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::gated(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::gated_all(x, out);
    }
}

pub(super) const SWISH: Implementation =
    Implementation::rowwise("Swish", &[24], |node| floats(Swish { alpha: node.float("alpha")? }));

/// `Y = X * sigmoid(alpha * X)`: 0.51 ulp, 2 ulp.
#[derive(Debug)]
struct Swish {
    alpha: f32,
}

impl Floats<1> for Swish {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::swish(x, self.alpha)
    }
}

pub(super) const SWIGLU: Implementation = Implementation::rowwise("SwiGLU", &[28], |node| {
    Ok(Elementwise::new(SwiGlu { alpha: node.float("alpha")? }, float_row, Align::Equal).shared())
});

/// `Y = A * sigmoid(alpha * A) * B`: 0.51 ulp, 3 ulp where the first product is a normal number.
#[derive(Debug)]
struct SwiGlu {
    alpha: f32,
}

impl Floats<2> for SwiGlu {
    #[inline(always)]
    fn float<T: Real>(&self, [a, b]: [T; 2]) -> T {
        functions::swiglu(a, b, self.alpha)
    }
}

pub(super) const GELU: Implementation = Implementation::rowwise("Gelu", &[20], |node| {
    let tanh = node.choice("approximate", &[("none", false), ("tanh", true)])?;
    if tanh { floats(GeluTanh) } else { floats(Gelu) }
});

/// `Y = X / 2 * (1 + erf(X / sqrt(2)))`: 2 ulp, 3 ulp.
#[derive(Debug)]
struct Gelu;

impl Floats<1> for Gelu {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::gelu(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::gelu_all(x, out);
    }
}

/// `Y = X / 2 * (1 + tanh(sqrt(2 / pi) * (X + 0.044715 * X^3)))`: 0.51 ulp, 2 ulp.
#[derive(Debug)]
struct GeluTanh;

impl Floats<1> for GeluTanh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::gelu_tanh(x)
    }
}

pub(super) const MISH: Implementation = Implementation::rowwise("Mish", &[18, 22], |_| floats(Mish));

/// `Y = X * tanh(log(1 + e^X))`: 0.51 ulp, 4 ulp.
#[derive(Debug)]
struct Mish;

impl Floats<1> for Mish {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::mish(x)
    }
}

pub(super) const SOFTPLUS: Implementation = Implementation::rowwise("Softplus", &[1, 22], |_| floats(Softplus));

/// `Y = log(1 + e^X)`: 0.51 ulp, 2 ulp.
#[derive(Debug)]
struct Softplus;

impl Floats<1> for Softplus {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::softplus(x)
    }
}

pub(super) const ELU: Implementation =
    Implementation::rowwise("Elu", &[1, 6, 22], |node| floats(Elu { alpha: node.float("alpha")? }));

/// `Y = alpha * (e^X - 1) if X < 0, else X`: 2 ulp, 2 ulp.
#[derive(Debug)]
struct Elu {
    alpha: f32,
}

impl Floats<1> for Elu {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::elu(x, self.alpha.into())
    }
}

/// The constants have more digits from version 6 on.
pub(super) const SELU: Implementation = Implementation::rowwise("Selu", &[1, 6, 22], |node| {
    let (alpha, gamma) = (f64::from(node.float("alpha")?), f64::from(node.float("gamma")?));
    floats(Selu { gamma, both: gamma * alpha })
});

/// `Y = gamma * X if X > 0, else gamma * alpha * (e^X - 1)`: 2 ulp, 2 ulp.
#[derive(Debug)]
struct Selu {
    gamma: f64,
    /// `gamma * alpha`
    both: f64,
}

impl Floats<1> for Selu {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        // Both, or numbers would be computed one by one.
        let (own, below) = (T::of(self.gamma) * x, functions::elu(x, self.both));
        if x > T::ZERO { own } else { below }
    }
}

pub(super) const CELU: Implementation =
    Implementation::rowwise("Celu", &[12, 28], |node| floats(Celu { alpha: node.float("alpha")? }));

/// `Y = max(0, X) + min(0, alpha * (e^(X / alpha) - 1))`: 0.51 ulp, 3 ulp.
#[derive(Debug)]
struct Celu {
    alpha: f32,
}

impl Floats<1> for Celu {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        T::ZERO.larger(x) + T::ZERO.smaller(functions::scaled_celu(x, self.alpha))
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{float, outputs, run, string, tensor};
    use half::{bf16, f16};

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    /// The greatest error in units of the last place of the result, where that is a normal number.
    fn worst<const A: usize>(
        operator: &str,
        attributes: impl Fn() -> [(&'static str, Attribute); A],
        opset: i64,
        (from, to): (f32, f32),
        want: impl Fn(f64) -> f64,
    ) -> f64 {
        let x: Vec<f32> = (0..20_000).map(|k| from + (to - from) * (k as f32 / 20_000.0)).collect();
        let y = outputs(operator, opset, attributes(), [&x.clone().into()]);
        let y = y[0].tensor().unwrap().as_slice::<f32>().unwrap();
        let error = |(x, y): (&f32, &f32)| {
            let want = want((*x).into());
            let unit = f64::from(f32::from_bits((want as f32).abs().to_bits() + 1)) - (want as f32).abs() as f64;
            if want.abs() < f32::MIN_POSITIVE.into() { 0.0 } else { (f64::from(*y) - want).abs() / unit }
        };
        x.iter().zip(y).map(error).fold(0.0, f64::max)
    }

    fn logistic(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many elements")]
    fn a_few_units_in_the_last_place() {
        let limit = |name, error: f64, limit| assert!(error < limit, "{name}: {error}");
        limit(
            "Swish",
            worst("Swish", || [float("alpha", 1.7)], 24, (-50.0, 50.0), |x| x * logistic(f64::from(1.7f32) * x)),
            0.6,
        );
        limit("Mish", worst("Mish", || [], 18, (-80.0, 50.0), |x| x * x.exp().ln_1p().tanh()), 0.6);
        limit("Softplus", worst("Softplus", || [], 22, (-80.0, 50.0), |x| x.exp().ln_1p()), 2.0);
        limit(
            "Elu",
            worst(
                "Elu",
                || [float("alpha", 0.7)],
                22,
                (-30.0, 1.0),
                |x| if x < 0.0 { f64::from(0.7f32) * x.exp_m1() } else { x },
            ),
            3.0,
        );
        limit(
            "Celu",
            worst(
                "Celu",
                || [float("alpha", 0.7)],
                12,
                (-30.0, 1.0),
                |x| if x < 0.0 { f64::from(0.7f32) * (x / f64::from(0.7f32)).exp_m1() } else { x },
            ),
            3.0,
        );
        limit("Celu", worst("Celu", || [float("alpha", -2.0)], 12, (-1.0, -1e-4), |x| -2.0 * (x / -2.0).exp_m1()), 3.0);
        let gelu_tanh = |x: f64| x * logistic((8.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x));
        limit("Gelu", worst("Gelu", || [string("approximate", "tanh")], 20, (-10.0, 10.0), gelu_tanh), 3.0);
    }

    /// Values of x / 2 * erfc(-x / sqrt(2)) to 20 digits.
    #[test]
    fn gelu() {
        for (x, want) in [
            (-12.0f32, -2.1317785344932148e-32),
            (-8.0, -4.976768459417427e-15),
            (-5.5, -1.0444259356238246e-7),
            (-3.0, -0.0040496940948902836),
            (-1.0, -0.15865525393145705),
            (-0.125, -0.056282721896235888),
            (0.5, 0.34573123063700655),
            (3.0, 2.99595030590511),
        ] {
            let got = outputs("Gelu", 20, [], [&[x].into()]);
            let error = f64::from(got[0].tensor().unwrap().as_slice::<f32>().unwrap()[0]) / want - 1.0;
            assert!(error.abs() < 4.0 * f64::from(f32::EPSILON), "{x}: {error:e}");
            let got = outputs("Gelu", 20, [], [&[f64::from(x)].into()]);
            let error = got[0].tensor().unwrap().as_slice::<f64>().unwrap()[0] / want - 1.0;
            assert!(error.abs() < 6.0 * f64::EPSILON, "{x}: {error:e}");
        }
        run("Gelu", 20, [], [&[0f32, -0.0, INF, NAN].into()]).gives([0f32, -0.0, INF, NAN]);
        run("Gelu", 20, [string("approximate", "erf")], [&[0f32].into()])
            .fails("approximate is \"erf\": allowed none, tanh");
    }

    #[test]
    fn ends() {
        run("Sigmoid", 13, [], [&[0f32, INF, -INF, NAN].into()]).gives([0.5f32, 1.0, 0.0, NAN]);
        run("Sigmoid", 13, [], [&tensor(&[], [-100f64])]).gives(tensor(&[], [3.720_075_976_020_836e-44f64]));
        run("Swish", 24, [], [&[0f32, INF, 1e38, -1e38, NAN].into()]).gives([0f32, INF, 1e38, -0.0, NAN]);
        run("Swish", 24, [float("alpha", 10.0)], [&[1e38f32, -1e38].into()]).gives([1e38f32, -0.0]);
        run("Gelu", 20, [string("approximate", "tanh")], [&[1e38f32, -1e38, NAN].into()]).gives([1e38f32, -0.0, NAN]);
        run("Mish", 18, [], [&[0f32, 1e38, INF, -1e38, NAN].into()]).gives([0f32, 1e38, INF, -0.0, NAN]);
        run("Softplus", 22, [], [&[1000f32, -1000.0, INF].into()]).gives([1000f32, 0.0, INF]);
        run("Elu", 6, [], [&[-INF, 2.0, -0.0, NAN].into()]).gives([-1f32, 2.0, -0.0, NAN]);
        run("Celu", 12, [float("alpha", 2.0)], [&[-INF, 1e38, NAN, -0.0].into()]).gives([-2f32, 1e38, NAN, -0.0]);
        run("Sigmoid", 13, [], [&vec![bf16::ZERO].into()]).gives(vec![bf16::from_f32(0.5)]);
        run("Softplus", 22, [], [&vec![f16::from_f32(20.0)].into()]).gives(vec![f16::from_f32(20.0)]);
    }

    #[test]
    fn selu() {
        run("Selu", 1, [], [&[-INF, 1.0].into()]).gives([-(1.6732f64 as f32) * 1.0507, 1.0507]);
        run("Selu", 6, [float("alpha", 2.0), float("gamma", 3.0)], [&[-INF, 0.0, 1.0].into()]).gives([-6f32, 0.0, 3.0]);
    }

    #[test]
    fn swiglu() {
        run("SwiGLU", 28, [], [&[0f32, 100.0].into(), &[1f32, 0.5].into()]).gives([0f32, 50.0]);
        run("SwiGLU", 28, [], [&[0f32, 100.0].into(), &[1f32].into()])
            .fails("\"B\" has shape [1], \"A\" has shape [2]: without broadcast they must be equal");
    }
}
