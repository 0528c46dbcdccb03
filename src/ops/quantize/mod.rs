//! Small integers for floats, with scales and zero points.

mod dynamic;
mod linear;
mod product;
mod scales;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    linear::QUANTIZE_LINEAR,
    linear::DEQUANTIZE_LINEAR,
    dynamic::DYNAMIC_QUANTIZE_LINEAR,
    product::MATMUL_INTEGER,
    product::QLINEAR_MATMUL,
];
