//! Sizes from scales: what Resize and Upsample share.

use crate::ops::prelude::*;

/// The scales in the input `k`, if they are the same in every run.
pub(super) fn constant<'a>(facts: &Inference<'a>, k: usize) -> Option<&'a [f32]> {
    facts.constant(k)?.tensor().ok()?.as_slice().ok()
}

/// Fails unless scales are at least `least`, or above 0 if that is 0, and there is one for each of `count` axes.
pub(super) fn check(scales: &[f32], count: usize, least: f32, fault: impl Fn(String) -> Error) -> Result<()> {
    if scales.len() != count {
        return Err(fault(format!("scales has {} numbers: {count} are needed", scales.len())).size(scales.len()));
    }
    match scales.iter().position(|scale| !(*scale > 0.0 && *scale >= least)) {
        None => Ok(()),
        Some(k) => {
            let scale = scales.get(k).copied().unwrap_or_default();
            let needed = if least > 0.0 { format!("at least {least}") } else { "above 0".to_string() };
            Err(fault(format!("scales[{k}] is {scale}: it must be {needed}")).position(vec![k]))
        }
    }
}

/// `floor(size * scale)`, of the scale's exact value.
pub(super) fn scaled(size: &Dim, scale: f32) -> Dim {
    let (mut numerator, mut exponent) =
        (i64::from(scale.to_bits() & 0x7f_ffff), i64::from(scale.to_bits() >> 23) - 150);
    match exponent {
        -150 => exponent += 1,
        _ => numerator += 1 << 23,
    }
    let zeros = i64::from(numerator.trailing_zeros()).min(exponent.saturating_neg().max(0));
    (numerator, exponent) = (numerator >> zeros, exponent + zeros);
    let power = |by: i64| u32::try_from(by).ok().and_then(|by| 2i64.checked_pow(by));
    let product = || {
        let times = numerator.checked_mul(power(exponent.max(0))?)?;
        Formula::of(size)?.times(&times.into())?.floor_over(power(exponent.saturating_neg().max(0))?)
    };
    product().map_or(Dim::Unknown, |product| product.dim())
}

#[cfg(test)]
mod tests {
    use super::scaled;
    use crate::value::Dim;

    #[test]
    fn sizes_are_those_of_the_exact_scale() {
        let is =
            |size: Dim, scale: f32, want: &str| assert_eq!(scaled(&size, scale).to_string(), want, "{size} * {scale}");
        is(Dim::Fixed(5), 1.5, "7");
        is(Dim::Fixed(4), 0.6, "2");
        // As a float32 0.6 is a bit more, and 1.4 a bit less.
        is(Dim::Fixed(5), 0.6, "3");
        is(Dim::Fixed(5), 1.4, "6");
        is(Dim::Fixed(10), 0.7, "6");
        is(Dim::Fixed((1 << 29) + 1), 0.5, "268435456");
        is(Dim::Fixed(3), 1e9, "3000000000");
        is(Dim::Fixed(3), 1e30, "?");
        is(Dim::Fixed(3), 1e-40, "?");
        let n = || Dim::Symbol("N".into());
        is(n(), 1.0, "N");
        is(n(), 2.0, "2*N");
        is(n(), 0.5, "floor((N)/2)");
        is(n(), 1.25, "floor((5*N)/4)");
        is(Dim::Unknown, 1.0, "?");
    }
}
