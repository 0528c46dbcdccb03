//! Sizes from scales: what Resize and Upsample share.

use super::coordinates::Resized;
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
    match scales.iter().position(|scale| !(*scale > 0.0 && *scale >= least && scale.is_finite())) {
        None => Ok(()),
        Some(k) => {
            let scale = scales.get(k).copied().unwrap_or_default();
            let needed = match scale {
                f32::INFINITY => "finite".to_string(),
                _ if least > 0.0 => format!("at least {least}"),
                _ => "above 0".to_string(),
            };
            Err(fault(format!("scales[{k}] is {scale}: it must be {needed}")).position(vec![k]))
        }
    }
}

/// A finite scale that isn't negative, exactly: `mantissa * 2^exponent`.
fn exact(scale: f32) -> (u32, i32) {
    let (mantissa, exponent) = (scale.to_bits() & 0x7f_ffff, (scale.to_bits() >> 23) as i32 - 150);
    let (mantissa, exponent) = if exponent == -150 { (mantissa, exponent + 1) } else { (mantissa | 1 << 23, exponent) };
    let zeros = mantissa.trailing_zeros().min(exponent.min(0).unsigned_abs());
    (mantissa.checked_shr(zeros).unwrap_or(0), exponent + zeros as i32)
}

/// `floor(size * scale)`, of the scale's exact value. `None` if nothing has so many entries.
pub(super) fn scaled_size(size: usize, scale: f32) -> Option<usize> {
    let (mantissa, exponent) = exact(scale);
    let product = u128::from(mantissa) * size as u128;
    let places = exponent.unsigned_abs();
    let whole = match exponent {
        ..0 => product.checked_shr(places).unwrap_or(0),
        _ if product.leading_zeros() < places => return None,
        _ => product.checked_shl(places).unwrap_or(0),
    };
    usize::try_from(whole).ok().filter(|size| i64::try_from(*size).is_ok())
}

/// An axis with a checked scale.
pub(super) fn by_scales(axis: usize, input: usize, scale: f32) -> Result<Resized> {
    let output = scaled_size(input, scale).ok_or_else(|| too_large(axis, input, scale))?;
    let scale = f64::from(scale);
    Ok(Resized { axis, input, output, scale: (scale, 1.0), target: input as f64 * scale, part: (0.0, 1.0) })
}

#[cold]
pub(super) fn too_large(axis: usize, input: usize, scale: f32) -> Error {
    let text = format!("axis {axis} of \"X\" has {input} entries: {scale} times as many are too many");
    Error::input(text).parameter("scales").axis(axis as i64)
}

/// As [`scaled_size`], of what is known about a size.
pub(super) fn scaled(size: &Dim, scale: f32) -> Dim {
    if let Dim::Fixed(size) = size {
        return scaled_size(*size, scale).map_or(Dim::Unknown, Dim::Fixed);
    }
    let (mantissa, exponent) = exact(scale);
    let power = |by: i32| 2i64.checked_pow(by.max(0).unsigned_abs());
    let product = || {
        let times = i64::from(mantissa).checked_mul(power(exponent)?)?;
        Formula::of(size)?.times(&times.into())?.floor_over(power(-exponent)?)
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
        is(Dim::Fixed(3), 1e-40, "0");
        is(Dim::Fixed(0), 1e30, "0");
        is(Dim::Fixed(usize::MAX), f32::MAX, "?");
        let n = || Dim::Symbol("N".into());
        is(n(), 1.0, "N");
        is(n(), 2.0, "2*N");
        is(n(), 0.5, "floor((N)/2)");
        is(n(), 1.25, "floor((5*N)/4)");
        is(Dim::Unknown, 1.0, "?");
    }
}
