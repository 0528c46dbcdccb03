//! Gather, GatherElements, GatherND, Compress: elements of one tensor picked by the indices or truth values in another.
//! NonZero and OneHot: indices from values, and values from indices. TopK and Unique: values, and their indices.

mod compress;
mod elements;
mod nd;
mod non_zero;
mod one_hot;
mod slices;
mod top_k;
mod unique;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    slices::GATHER,
    elements::GATHER_ELEMENTS,
    nd::GATHER_ND,
    compress::COMPRESS,
    non_zero::NON_ZERO,
    one_hot::ONE_HOT,
    top_k::TOP_K,
    unique::UNIQUE,
];
