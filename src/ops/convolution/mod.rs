//! Convolutions: filters that slide over an image.

mod conv;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[conv::CONV];
