//! The error function, and Gelu as exporters write it with Erf.

use super::pieces::ERF;
use super::wide::Wide;
use super::{Curve, least};

#[derive(Clone, Copy)]
pub(super) struct Erf;

impl Curve for Erf {
    #[inline(always)]
    fn singles<V: Wide>(self, x: V) -> V {
        ERF.odd(x)
    }

    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        // x + x * P(x^2), or 1 - Q(|x|)^2: one loop, so that both cost as much as one.
        let size = least(x.abs(), END);
        let near = size < NEAR;
        let v = if near { size * size } else { size - CENTER };
        let coefficients = COEFFICIENTS.iter().rev().copied().map(|(p, q)| if near { p } else { q });
        let sum = coefficients.reduce(|sum, coefficient| sum.mul_add(v, coefficient)).unwrap_or(0.0);
        let (factor, addend) = if near { (size, size) } else { (-sum, 1.0) };
        sum.mul_add(factor, addend).copysign(x)
    }
}

/// Gelu as it is written with Erf, `x * (erf(x / sqrt(2)) + 1) * 0.5`: each step is rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeluOfErf {
    pub scaled: Scaled,
    pub halved: Halved,
}

/// What is done to x before Erf.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaled {
    By(f64),
    Times(f64),
}

/// What 0.5 multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halved {
    X,
    Sum,
    Product,
}

impl Curve for GeluOfErf {
    #[inline(always)]
    fn singles<V: Wide>(self, x: V) -> V {
        let scaled = match self.scaled {
            Scaled::By(divisor) => x.over(V::all(divisor as f32)),
            Scaled::Times(factor) => x.times(V::all(factor as f32)),
        };
        let (sum, half) = (Erf.singles(scaled).plus(V::all(1.0)), V::all(0.5));
        match self.halved {
            Halved::X => x.times(half).times(sum),
            Halved::Sum => sum.times(half).times(x),
            Halved::Product => x.times(sum).times(half),
        }
    }

    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        let sum = 1.0
            + Erf.double(match self.scaled {
                Scaled::By(divisor) => x / divisor,
                Scaled::Times(factor) => x * factor,
            });
        match self.halved {
            Halved::X => x * 0.5 * sum,
            Halved::Sum => sum * 0.5 * x,
            Halved::Product => x * sum * 0.5,
        }
    }
}

/// Where one polynomial for `f64` ends and the other begins.
const NEAR: f64 = 1.2;
/// It is 1 from here on.
const END: f64 = 5.95;
/// A number between them.
const CENTER: f64 = 3.5;
// erf(x) / x - 1 in x^2 up to [`NEAR`], sqrt(erfc(x)) in x - [`CENTER`] above: errors 2^-56.5, 2^-58.0.
const COEFFICIENTS: &[(f64, f64)] = &[
    (0.1283791670955126, 0.000862031537903158),
    (-0.3761263890318405, -0.0031318035013683026),
    (0.1128379167096753, 0.0052723132218081975),
    (-0.026866170647230396, -0.005377884295202959),
    (0.00522397764417275, 0.003616787853307423),
    (-0.0008548328030671754, -0.0015976002290219295),
    (0.00012055368215495597, 0.000393367329141414),
    (-1.492648949503453e-05, 1.0776027250628198e-05),
    (1.6476074194290055e-06, -4.977317209311635e-05),
    (-1.652973815315319e-07, 1.8081205988142368e-05),
    (1.615923190759976e-08, -1.6029317622092184e-06),
    (-1.9956872551390603e-09, -1.052115016928718e-06),
    (3.785172653829694e-10, 4.3340796797792706e-07),
    (-6.865754943656005e-11, -3.881957647955559e-08),
    (6.390092062682996e-12, -2.0102357100518983e-08),
    (0.0, 7.1676818036329305e-09),
    (0.0, -3.498376332187238e-10),
    (0.0, -3.3139542929192293e-10),
    (0.0, 8.416727551046876e-11),
    (0.0, 3.366977860656608e-13),
    (0.0, -4.609752052579383e-12),
    (0.0, 8.60971484046733e-13),
    (0.0, 1.5477181761426026e-13),
    (0.0, -5.725503426857905e-14),
    (0.0, -5.647187425946743e-15),
    (0.0, 1.591807559167928e-15),
    (0.0, 1.9603754462210129e-16),
];
