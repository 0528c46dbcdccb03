//! Constants, shapes, the same elements under another shape, and operators that move elements.

mod blocks;
mod center_crop_pad;
mod concat;
mod constant;
mod expand;
mod flatten;
mod identity;
mod mapped;
mod pad;
mod reshape;
mod reverse_sequence;
mod shape;
mod slice;
mod split;
mod squeeze;
mod tile;
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
    slice::SLICE,
    expand::EXPAND,
    tile::TILE,
    pad::PAD,
    blocks::DEPTH_TO_SPACE,
    blocks::SPACE_TO_DEPTH,
    reverse_sequence::REVERSE_SEQUENCE,
    center_crop_pad::CENTER_CROP_PAD,
];
