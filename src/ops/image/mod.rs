//! Pictures and what is found in them.

mod decoder;
mod non_max_suppression;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[decoder::IMAGE_DECODER, non_max_suppression::NON_MAX_SUPPRESSION];
