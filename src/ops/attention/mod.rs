//! Attention and what its models compute beside it.

mod attention;
mod causal_conv;
mod flex;
mod linear;
mod numbers;
mod rotary;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    attention::ATTENTION,
    causal_conv::CAUSAL_CONV_WITH_STATE,
    flex::FLEX_ATTENTION,
    linear::LINEAR_ATTENTION,
    rotary::ROTARY_EMBEDDING,
];
