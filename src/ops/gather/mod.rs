//! Gather, GatherElements, GatherND: elements of one tensor picked by the indices in another.

mod elements;
mod nd;
mod slices;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[slices::GATHER, elements::GATHER_ELEMENTS, nd::GATHER_ND];
