//! Constants, shapes, the same elements under another shape, diagonals, and operators that move elements.

mod blocks;
mod center_crop_pad;
mod concat;
mod constant;
mod constant_of_shape;
mod expand;
mod eye_like;
mod flatten;
mod identity;
mod mapped;
mod pad;
mod range;
mod reshape;
mod reverse_sequence;
mod shape;
mod slice;
mod split;
mod squeeze;
mod tile;
mod transpose;
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
    concat::CONCAT,
    split::SPLIT,
    transpose::TRANSPOSE,
    slice::SLICE,
    expand::EXPAND,
    tile::TILE,
    pad::PAD,
    blocks::DEPTH_TO_SPACE,
    blocks::SPACE_TO_DEPTH,
    reverse_sequence::REVERSE_SEQUENCE,
    center_crop_pad::CENTER_CROP_PAD,
];
