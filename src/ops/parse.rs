//! Strings as numbers: plain or scientific notation, INF, +INF, -INF and NaN in any case; blanks around them don't count.
//! The standard leaves open what other text stands for: it is no number.

use crate::dtype::{DType, Format};
use crate::ops::prelude::Float;
use std::str::FromStr;

/// A number of f32 or f64, whose parsers round once.
pub(super) fn float<F: Float + FromStr>(text: &str) -> Option<F> {
    let text = text.trim_ascii();
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("INF") || is("+INF") {
        return Some(F::INFINITY);
    }
    if is("-INF") {
        return Some(-F::INFINITY);
    }
    if is("NaN") {
        return Some(F::NAN);
    }
    // Rust knows other words too.
    let number = text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    text.parse().ok().filter(|_| number)
}

/// An integer within the range of a type; a fraction is cut off.
pub(super) fn integer<T: TryFrom<i128>>(text: &str, to: DType) -> Option<T> {
    let number: i128 = text.trim_ascii().parse().ok().or_else(|| {
        let number: f64 = float(text)?;
        number.is_finite().then_some(number as i128)
    })?;
    let values = 1i128 << to.bits();
    let range = if matches!(to.format(), Format::Signed(_)) { -values / 2..values / 2 } else { 0..values };
    T::try_from(number).ok().filter(|_| range.contains(&number))
}
