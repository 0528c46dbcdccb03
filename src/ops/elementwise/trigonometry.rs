//! Trigonometric and hyperbolic functions and their inverses.
//! <https://onnx.ai/onnx/operators/onnx__Sin.html>, <https://onnx.ai/onnx/operators/onnx__Sinh.html>

use super::floats;
use crate::ops::prelude::*;

pub(super) const SIN: Implementation = Implementation::rowwise("Sin", &[7, 22], |_| floats(Sin));

/// `output = sin(input)`
#[derive(Debug)]
struct Sin;

impl Floats<1> for Sin {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::sin(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::sin_all(x, out);
    }
}

pub(super) const COS: Implementation = Implementation::rowwise("Cos", &[7, 22], |_| floats(Cos));

/// `output = cos(input)`
#[derive(Debug)]
struct Cos;

impl Floats<1> for Cos {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::cos(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::cos_all(x, out);
    }
}

pub(super) const TAN: Implementation = Implementation::rowwise("Tan", &[7, 22], |_| floats(Tan));

/// `output = tan(input)`
#[derive(Debug)]
struct Tan;

impl Floats<1> for Tan {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::tan(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::tan_all(x, out);
    }
}

pub(super) const ASIN: Implementation = Implementation::rowwise("Asin", &[7, 22], |_| floats(Asin));

/// `output = asin(input)`
#[derive(Debug)]
struct Asin;

impl Floats<1> for Asin {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::asin(x)
    }
}

pub(super) const ACOS: Implementation = Implementation::rowwise("Acos", &[7, 22], |_| floats(Acos));

/// `output = acos(input)`
#[derive(Debug)]
struct Acos;

impl Floats<1> for Acos {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::acos(x)
    }
}

pub(super) const ATAN: Implementation = Implementation::rowwise("Atan", &[7, 22], |_| floats(Atan));

/// `output = atan(input)`
#[derive(Debug)]
struct Atan;

impl Floats<1> for Atan {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::atan(x)
    }
}

pub(super) const SINH: Implementation = Implementation::rowwise("Sinh", &[9, 22], |_| floats(Sinh));

/// `output = sinh(input)`
#[derive(Debug)]
struct Sinh;

impl Floats<1> for Sinh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::sinh(x)
    }
}

pub(super) const COSH: Implementation = Implementation::rowwise("Cosh", &[9, 22], |_| floats(Cosh));

/// `output = cosh(input)`
#[derive(Debug)]
struct Cosh;

impl Floats<1> for Cosh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::cosh(x)
    }
}

pub(super) const TANH: Implementation = Implementation::rowwise("Tanh", &[1, 6, 13], |_| floats(Tanh));

/// `output = tanh(input)`
#[derive(Debug)]
struct Tanh;

impl Floats<1> for Tanh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::tanh(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::tanh_all(x, out);
    }
}

pub(super) const ASINH: Implementation = Implementation::rowwise("Asinh", &[9, 22], |_| floats(Asinh));

/// `output = asinh(input)`
#[derive(Debug)]
struct Asinh;

impl Floats<1> for Asinh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::asinh(x)
    }
}

pub(super) const ACOSH: Implementation = Implementation::rowwise("Acosh", &[9, 22], |_| floats(Acosh));

/// `output = acosh(input)`
#[derive(Debug)]
struct Acosh;

impl Floats<1> for Acosh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::acosh(x)
    }
}

pub(super) const ATANH: Implementation = Implementation::rowwise("Atanh", &[9, 22], |_| floats(Atanh));

/// `output = atanh(input)`
#[derive(Debug)]
struct Atanh;

impl Floats<1> for Atanh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::atanh(x)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{outputs, run, tensor};
    use half::{bf16, f16};

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    /// Each function where it is known, in each type.
    #[test]
    fn known_values() {
        for (operator, x, want) in [
            ("Sin", 1.0, 0.841_470_984_807_896_5),
            ("Cos", 1.0, 0.540_302_305_868_139_7),
            ("Tan", 1.0, 1.557_407_724_654_902_2),
            ("Asin", 0.5, std::f64::consts::FRAC_PI_6),
            ("Acos", 0.5, 1.047_197_551_196_597_7),
            ("Atan", 1.0, std::f64::consts::FRAC_PI_4),
            ("Sinh", 1.0, 1.175_201_193_643_801_4),
            ("Cosh", 1.0, 1.543_080_634_815_243_7),
            ("Tanh", 0.5, 0.462_117_157_260_009_76),
            ("Asinh", 1.0, 0.881_373_587_019_543),
            ("Acosh", 2.0, 1.316_957_896_924_816_7),
            ("Atanh", 0.5, 0.549_306_144_334_054_8),
        ] {
            let got = outputs(operator, 22, [], [&[x].into()]);
            let error = got[0].tensor().unwrap().as_slice::<f64>().unwrap()[0] / want - 1.0;
            assert!(error.abs() < 4.0 * f64::EPSILON, "{operator}: {error:e}");
            let got = outputs(operator, 22, [], [&[x as f32].into()]);
            let error = f64::from(got[0].tensor().unwrap().as_slice::<f32>().unwrap()[0]) / want - 1.0;
            assert!(error.abs() < f64::from(f32::EPSILON), "{operator}: {error:e}");
            run(operator, 22, [], [&vec![f16::from_f64(x); 3].into()]).gives(vec![f16::from_f64(want); 3]);
            run(operator, 22, [], [&vec![bf16::from_f64(x)].into()]).gives(vec![bf16::from_f64(want)]);
        }
    }

    #[test]
    fn zeros_and_ends() {
        for operator in ["Sin", "Tan", "Asin", "Atan", "Sinh", "Tanh", "Asinh", "Atanh"] {
            run(operator, 9, [], [&tensor(&[2], [0f32, -0.0])]).gives(tensor(&[2], [0f32, -0.0]));
        }
        run("Tanh", 1, [], [&[INF, -INF, NAN].into()]).gives([1f32, -1.0, NAN]);
        run("Sinh", 9, [], [&[100f32, -100.0].into()]).gives([INF, -INF]);
        run("Atanh", 9, [], [&[1f32, -1.0].into()]).gives([INF, -INF]);
        let got = outputs("Cos", 7, [], [&[INF, NAN, 0.0].into()]);
        let got = got[0].tensor().unwrap().as_slice::<f32>().unwrap().to_vec();
        assert!(got[0].is_nan() && got[1].is_nan() && got[2] == 1.0);
    }
}
