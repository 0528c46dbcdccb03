//! The operators: one file each. This is their table of contents.

mod gather;
mod gather_elements;
mod gather_nd;
mod openvino_gather;

use crate::operator::Implementation;

/// Every operator that is implemented, by domain and name.
pub(crate) static ALL: &[&Implementation] =
    &[&gather::GATHER, &gather_elements::GATHER_ELEMENTS, &gather_nd::GATHER_ND, &openvino_gather::GATHER];
