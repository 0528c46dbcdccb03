//! The same elements under another shape, shapes as values, and constants. Nothing here copies elements.

mod constant;
mod flatten;
mod identity;
mod reshape;
mod shape;
mod squeeze;
mod unsqueeze;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    constant::CONSTANT,
    identity::IDENTITY,
    reshape::RESHAPE,
    flatten::FLATTEN,
    squeeze::SQUEEZE,
    unsqueeze::UNSQUEEZE,
    shape::SHAPE,
    shape::SIZE,
];
