//! Trigonometric and hyperbolic functions and their inverses.
//! <https://onnx.ai/onnx/operators/onnx__Sin.html>, <https://onnx.ai/onnx/operators/onnx__Sinh.html>

use super::{entry, floats};
use crate::ops::prelude::*;

pub(super) const SIN: Implementation = entry("Sin", &[7, 22], |_| floats(Sin));

/// `output = sin(input)`
#[derive(Debug)]
struct Sin;

impl Floats<1> for Sin {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::sin(x)
    }
}

pub(super) const COS: Implementation = entry("Cos", &[7, 22], |_| floats(Cos));

/// `output = cos(input)`
#[derive(Debug)]
struct Cos;

impl Floats<1> for Cos {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::cos(x)
    }
}

pub(super) const TAN: Implementation = entry("Tan", &[7, 22], |_| floats(Tan));

/// `output = tan(input)`
#[derive(Debug)]
struct Tan;

impl Floats<1> for Tan {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::tan(x)
    }
}

pub(super) const ASIN: Implementation = entry("Asin", &[7, 22], |_| floats(Asin));

/// `output = asin(input)`
#[derive(Debug)]
struct Asin;

impl Floats<1> for Asin {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::asin(x)
    }
}

pub(super) const ACOS: Implementation = entry("Acos", &[7, 22], |_| floats(Acos));

/// `output = acos(input)`
#[derive(Debug)]
struct Acos;

impl Floats<1> for Acos {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::acos(x)
    }
}

pub(super) const ATAN: Implementation = entry("Atan", &[7, 22], |_| floats(Atan));

/// `output = atan(input)`
#[derive(Debug)]
struct Atan;

impl Floats<1> for Atan {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::atan(x)
    }
}

pub(super) const SINH: Implementation = entry("Sinh", &[9, 22], |_| floats(Sinh));

/// `output = sinh(input)`
#[derive(Debug)]
struct Sinh;

impl Floats<1> for Sinh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::sinh(x)
    }
}

pub(super) const COSH: Implementation = entry("Cosh", &[9, 22], |_| floats(Cosh));

/// `output = cosh(input)`
#[derive(Debug)]
struct Cosh;

impl Floats<1> for Cosh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::cosh(x)
    }
}

pub(super) const TANH: Implementation = entry("Tanh", &[1, 6, 13], |_| floats(Tanh));

/// `output = tanh(input)`
#[derive(Debug)]
struct Tanh;

impl Floats<1> for Tanh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::tanh(x)
    }
}

pub(super) const ASINH: Implementation = entry("Asinh", &[9, 22], |_| floats(Asinh));

/// `output = asinh(input)`
#[derive(Debug)]
struct Asinh;

impl Floats<1> for Asinh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::asinh(x)
    }
}

pub(super) const ACOSH: Implementation = entry("Acosh", &[9, 22], |_| floats(Acosh));

/// `output = acosh(input)`
#[derive(Debug)]
struct Acosh;

impl Floats<1> for Acosh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::acosh(x)
    }
}

pub(super) const ATANH: Implementation = entry("Atanh", &[9, 22], |_| floats(Atanh));

/// `output = atanh(input)`
#[derive(Debug)]
struct Atanh;

impl Floats<1> for Atanh {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        functions::atanh(x)
    }
}
