//! Convolutions: filters that slide over an image.

mod bytes;
mod bytes_in_blocks;
mod col2im;
mod conv;
mod conv_integer;
mod conv_transpose;
mod deform_conv;
mod in_blocks;
mod of_products;
mod qlinear_conv;
mod spread_in_blocks;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    conv::CONV,
    conv_transpose::CONV_TRANSPOSE,
    conv_integer::CONV_INTEGER,
    qlinear_conv::QLINEAR_CONV,
    deform_conv::DEFORM_CONV,
    col2im::COL2IM,
];
