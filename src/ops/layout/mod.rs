//! Constants, shapes, the same elements under another shape, and operators that move elements.

mod concat;
mod constant;
mod flatten;
mod identity;
mod mapped;
mod reshape;
mod shape;
mod split;
mod squeeze;
mod transpose;
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
    concat::CONCAT,
    split::SPLIT,
    transpose::TRANSPOSE,
];
