//! The same elements under another shape, shapes as values, constants and diagonals.

mod constant;
mod constant_of_shape;
mod eye_like;
mod flatten;
mod identity;
mod range;
mod reshape;
mod shape;
mod squeeze;
mod trilu;
mod unsqueeze;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    constant::CONSTANT,
    constant_of_shape::CONSTANT_OF_SHAPE,
    range::RANGE,
    eye_like::EYE_LIKE,
    trilu::TRILU,
    identity::IDENTITY,
    reshape::RESHAPE,
    flatten::FLATTEN,
    squeeze::SQUEEZE,
    unsqueeze::UNSQUEEZE,
    shape::SHAPE,
    shape::SIZE,
];
