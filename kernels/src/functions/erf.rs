use super::{Real, least};

/// 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
#[inline(always)]
pub fn erf<T: Real>(x: T) -> T {
    // x + x * P(x^2), or 1 - Q(|x|)^2: one loop, so that both cost as much as one.
    let size = least(x.abs(), T::ERF_MAX);
    let near = size < T::ERF_NEAR;
    let v = if near { size * size } else { size - T::ERF_CENTER };
    let coefficients = T::ERF.iter().rev().copied().map(|(p, q)| if near { p } else { q });
    let sum = coefficients.reduce(|sum, coefficient| sum.mul_add(v, coefficient)).unwrap_or(T::ZERO);
    let (factor, addend) = if near { (size, size) } else { (-sum, T::ONE) };
    sum.mul_add(factor, addend).copysign(x)
}
