//! Attention and what its models compute beside it.

mod causal_conv;
mod dot_product;
mod flex;
mod linear;
mod rotary;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    dot_product::ATTENTION,
    causal_conv::CAUSAL_CONV_WITH_STATE,
    flex::FLEX_ATTENTION,
    linear::LINEAR_ATTENTION,
    rotary::ROTARY_EMBEDDING,
];
