//! Functions of one number: absolute value, sign, square root, rounding, exponential, logarithm, error function.
//! <https://onnx.ai/onnx/operators/onnx__Abs.html>, <https://onnx.ai/onnx/operators/onnx__Exp.html>

use super::{Elementwise, floats, numbers};
use crate::ops::prelude::*;
use kernels::functions::GeluOfErf;
use std::cmp::Ordering;

pub(super) const ABS: Implementation = Implementation::rowwise("Abs", &[1, 6, 13], |_| numbers(Abs));

/// `Y = |X|; the least signed integer stays`
#[derive(Debug)]
struct Abs;

impl Floats<1> for Abs {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x.abs()
    }
}

impl Ints<1> for Abs {
    fn int<T: Int>(&self, [x]: [T; 1]) -> T {
        x.magnitude()
    }
}

pub(super) const NEG: Implementation = Implementation::rowwise("Neg", &[1, 6, 13], |_| numbers(Neg));

/// `Y = -X; the least signed integer stays`
#[derive(Debug)]
struct Neg;

impl Floats<1> for Neg {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        -x
    }
}

impl Ints<1> for Neg {
    fn int<T: Int>(&self, [x]: [T; 1]) -> T {
        x.negated()
    }
}

pub(super) const SIGN: Implementation = Implementation::rowwise("Sign", &[9, 13], |_| numbers(Sign));

/// `output = 1 if input > 0, -1 if input < 0, 0 if input = 0; NaN stays`
#[derive(Debug)]
struct Sign;

impl Floats<1> for Sign {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        if x > T::ZERO {
            T::ONE
        } else if x < T::ZERO {
            -T::ONE
        } else if x == T::ZERO {
            T::ZERO
        } else {
            x
        }
    }
}

impl Ints<1> for Sign {
    fn int<T: Int>(&self, [x]: [T; 1]) -> T {
        match x.cmp(&T::ZERO) {
            Ordering::Greater => T::ONE,
            Ordering::Less => T::ONE.negated(),
            Ordering::Equal => T::ZERO,
        }
    }
}

pub(super) const RECIPROCAL: Implementation =
    Implementation::rowwise("Reciprocal", &[1, 6, 13], |_| floats(Reciprocal));

/// `Y = 1 / X`
#[derive(Debug)]
struct Reciprocal;

impl Floats<1> for Reciprocal {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        T::ONE / x
    }
}

pub(super) const SQRT: Implementation = Implementation::rowwise("Sqrt", &[1, 6, 13], |_| floats(Sqrt));

/// `Y = sqrt(X)`
#[derive(Debug)]
struct Sqrt;

impl Floats<1> for Sqrt {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x.sqrt()
    }
}

pub(super) const FLOOR: Implementation = Implementation::rowwise("Floor", &[1, 6, 13], |_| floats(Floor));

/// `Y = floor(X)`
#[derive(Debug)]
struct Floor;

impl Floats<1> for Floor {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x.floor()
    }
}

pub(super) const CEIL: Implementation = Implementation::rowwise("Ceil", &[1, 6, 13], |_| floats(Ceil));

/// `Y = ceil(X)`
#[derive(Debug)]
struct Ceil;

impl Floats<1> for Ceil {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x.ceil()
    }
}

pub(super) const ROUND: Implementation = Implementation::rowwise("Round", &[11, 22], |_| floats(Round));

/// `Y = X, rounded to the nearest integer, halves to the even one`
#[derive(Debug)]
struct Round;

impl Floats<1> for Round {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        x.round_ties_even()
    }
}

pub(super) const EXP: Implementation = Implementation::rowwise("Exp", &[1, 6, 13], |_| floats(Exp));

/// `output = e^input`
#[derive(Debug)]
struct Exp;

impl Floats<1> for Exp {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::exp(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::exp_all(x, out);
    }
}

pub(super) const LOG: Implementation = Implementation::rowwise("Log", &[1, 6, 13], |_| floats(Log));

/// `output = log(input)`
#[derive(Debug)]
struct Log;

impl Floats<1> for Log {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::log(x)
    }
}

pub(super) const ERF: Implementation = Implementation::rowwise("Erf", &[9, 13], |_| {
    let gelu = |steps| Elementwise::new(GeluSteps(steps), float_row, Align::Last).shared();
    Ok(Elementwise { gelu: Some(gelu), ..Elementwise::new(Erf, number_row, Align::Last) }.shared())
});

/// `output = erf(input), which integers round toward 0`
#[derive(Debug)]
struct Erf;

impl Floats<1> for Erf {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::erf(x)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::erf_all(x, out);
    }
}

/// Gelu as exporters write it.
#[derive(Debug)]
struct GeluSteps(GeluOfErf);

impl Floats<1> for GeluSteps {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::gelu_of_erf(x, self.0)
    }

    fn row<T: Real>(&self, [x]: [&[T]; 1], out: &mut [T]) {
        functions::gelu_of_erf_all(x, self.0, out);
    }
}

impl Ints<1> for Erf {
    fn int<T: Int>(&self, [x]: [T; 1]) -> T {
        // As doubles: 1 from 6 on.
        T::wrapped(functions::erf(x.to_i128() as f64) as i128)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{run, tensor};
    use half::{bf16, f16};

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    #[test]
    fn sign_and_size() {
        run("Abs", 6, [], [&[-1.5f32, -0.0, -INF].into()]).gives([1.5f32, 0.0, INF]);
        run("Abs", 13, [], [&[i8::MIN, -1, 2].into()]).gives([i8::MIN, 1, 2]);
        run("Abs", 13, [], [&[u64::MAX].into()]).gives([u64::MAX]);
        run("Neg", 1, [], [&tensor(&[], [0f64])]).gives(tensor(&[], [-0f64]));
        run("Neg", 13, [], [&[i64::MIN, 3].into()]).gives([i64::MIN, -3]);
        run("Sign", 9, [], [&[-2f32, -0.0, 0.0, INF, NAN].into()]).gives([-1f32, 0.0, 0.0, 1.0, NAN]);
        run("Sign", 13, [], [&[-7i16, 0, 5].into()]).gives([-1i16, 0, 1]);
        run("Sign", 13, [], [&[0u8, 255].into()]).gives([0u8, 1]);
        run("Sign", 13, [], [&vec![bf16::from_f32(-3.0)].into()]).gives(vec![bf16::NEG_ONE]);
    }

    #[test]
    fn rounding() {
        let x = [-2.5f32, -0.5, -0.2, 0.0, 0.5, 1.5, 2.3, INF];
        run("Round", 11, [], [&x.into()]).gives([-2f32, -0.0, -0.0, 0.0, 0.0, 2.0, 2.0, INF]);
        run("Ceil", 13, [], [&x.into()]).gives([-2f32, -0.0, -0.0, 0.0, 1.0, 2.0, 3.0, INF]);
        run("Floor", 1, [], [&x.into()]).gives([-3f32, -1.0, -1.0, 0.0, 0.0, 1.0, 2.0, INF]);
        run("Round", 22, [], [&vec![f16::from_f32(-4.5)].into()]).gives(vec![f16::from_f32(-4.0)]);
        run("Ceil", 6, [], [&tensor(&[0, 2], Vec::<f64>::new())]).gives(tensor(&[0, 2], Vec::<f64>::new()));
    }

    #[test]
    fn roots_and_functions() {
        run("Sqrt", 13, [], [&[4f32, -0.0, 2.0].into()]).gives([2f32, -0.0, 2f32.sqrt()]);
        run("Reciprocal", 13, [], [&[4f64, -0.0].into()]).gives([0.25f64, f64::NEG_INFINITY]);
        run("Exp", 13, [], [&[0f32, 1.0, -INF].into()]).gives([1f32, std::f32::consts::E, 0.0]);
        run("Log", 13, [], [&[1f32, 0.0, INF].into()]).gives([0f32, -INF, INF]);
        run("Erf", 13, [], [&[0f32, INF, -INF].into()]).gives([0f32, 1.0, -1.0]);
        run("Exp", 13, [], [&vec![f16::from_f32(10.0)].into()]).gives(vec![f16::from_f64(22_026.465_794_806_718)]);
    }

    #[test]
    fn erf_of_integers() {
        run("Erf", 9, [], [&[i64::MIN, -6, -5, 0, 5, 6].into()]).gives([-1i64, -1, 0, 0, 0, 1]);
        run("Erf", 9, [], [&[0u8, 1, 255].into()]).gives([0u8, 0, 1]);
    }
}
