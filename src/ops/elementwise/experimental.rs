//! Affine, Scale, ScaledTanh, ParametricSoftplus: experimental operators that ONNX dropped in release 1.5. At most 2 ulp.
//! <https://github.com/onnx/onnx/blob/v1.4.1/docs/Operators.md>

use super::floats;
use crate::ops::prelude::*;

/// Scale adds nothing: -0 keeps the sign of 0.
pub(super) const AFFINE: Implementation = Implementation::rowwise("Affine", &[1], |node| {
    floats(Affine { alpha: node.float("alpha")?, beta: node.float("beta")? })
});
pub(super) const SCALE: Implementation =
    Implementation::rowwise("Scale", &[1], |node| floats(Affine { alpha: node.float("scale")?, beta: -0.0 }));

/// `Y = alpha * X + beta`
#[derive(Debug)]
struct Affine {
    alpha: f32,
    beta: f32,
}

impl Floats<1> for Affine {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x.mul_add(T::of(self.alpha.into()), T::of(self.beta.into()))
    }
}

/// The coefficients have no defaults.
pub(super) const SCALED_TANH: Implementation = Implementation::rowwise("ScaledTanh", &[1], |node| {
    floats(ScaledTanh { alpha: node.float("alpha")?, beta: node.float("beta")? })
});

/// `output = alpha * tanh(beta * input)`
#[derive(Debug)]
struct ScaledTanh {
    alpha: f32,
    beta: f32,
}

impl Floats<1> for ScaledTanh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        T::of(self.alpha.into()) * functions::tanh(T::of(self.beta.into()) * x)
    }
}

/// The coefficients have no defaults.
pub(super) const PARAMETRIC_SOFTPLUS: Implementation = Implementation::rowwise("ParametricSoftplus", &[1], |node| {
    floats(ParametricSoftplus { alpha: node.float("alpha")?, beta: node.float("beta")? })
});

/// `Y = alpha * log(e^(beta * X) + 1)`
#[derive(Debug)]
struct ParametricSoftplus {
    alpha: f32,
    beta: f32,
}

impl Floats<1> for ParametricSoftplus {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        T::of(self.alpha.into()) * functions::softplus(T::of(self.beta.into()) * x)
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{float, infer, run};
    use half::f16;

    fn both() -> [(&'static str, Attribute); 2] {
        [float("alpha", 3.0), float("beta", 0.5)]
    }

    #[test]
    fn values() {
        let x = [-2f32, 0.0, 4.0].into();
        for opset in [1, 9] {
            run("Affine", opset, both(), [&x]).gives([-5.5f32, 0.5, 12.5]);
            run("Affine", opset, [], [&x]).gives(x.clone());
            run("Scale", opset, [float("scale", -2.0)], [&x]).gives([4f32, -0.0, -8.0]);
            run("Scale", opset, [], [&x]).gives(x.clone());
        }
        let (tanh, softplus) = (1f64.tanh(), 1f64.exp().ln_1p());
        run("ScaledTanh", 6, both(), [&[2f64, 0.0].into()]).gives([3.0 * tanh, 0.0]);
        run("ParametricSoftplus", 6, both(), [&[2f32, 4000.0].into()]).gives([(3.0 * softplus) as f32, 6000.0]);
        let halves = vec![f16::from_f32(60000.0), f16::NEG_ONE];
        run("Affine", 1, [float("alpha", 0.5)], [&halves.into()])
            .gives(vec![f16::from_f32(30000.0), f16::from_f32(-0.5)]);
    }

    #[test]
    fn coefficients_without_a_default() {
        for name in ["ScaledTanh", "ParametricSoftplus"] {
            run(name, 1, [float("alpha", 1.0)], [&[1f32].into()])
                .fails("attribute \"beta\" of kind FLOAT is not given");
            infer(name, 9, both(), ["float[N, 3]"]).gives("[N, 3]");
        }
    }
}
