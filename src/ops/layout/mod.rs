//! Constants, shapes, the same elements under another shape, diagonals, and operators that move elements.

mod blocks;
mod center_crop_pad;
mod concat;
mod constant;
mod constant_of_shape;
mod crop;
mod expand;
mod eye_like;
mod flatten;
mod identity;
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
    slice::DYNAMIC_SLICE,
    expand::EXPAND,
    tile::TILE,
    pad::PAD,
    blocks::DEPTH_TO_SPACE,
    blocks::SPACE_TO_DEPTH,
    reverse_sequence::REVERSE_SEQUENCE,
    center_crop_pad::CENTER_CROP_PAD,
    crop::CROP,
];

#[cfg(test)]
mod tests {
    use crate::ops::testing::{int, run, run_for, tensor};

    #[test]
    fn what_moves_nothing_copies_nothing() {
        // Large enough not to be inside of the tensor.
        let data = tensor(&[1, 100], [7i64; 100]);
        let list = |values: &[i64]| tensor(&[values.len()], values);
        run("Concat", 13, [int("axis", 1)], [&data, &tensor(&[1, 0], Vec::<i64>::new())]).shares(&data);
        run_for(1, "Split", 13, [], [&data]).shares(&data);
        run("Transpose", 13, [], [&data]).shares(&data);
        run("Slice", 13, [], [&data, &list(&[0, -100]), &list(&[1, i64::MAX])]).shares(&data);
        run("Slice", 13, [], [&data, &list(&[0]), &list(&[i64::MIN]), &list(&[0]), &list(&[-1])]).shares(&data);
        run("Expand", 13, [], [&data, &list(&[1, 1, 100])]).shares(&data);
        run("Tile", 13, [], [&data, &list(&[1, 1])]).shares(&data);
        run("Pad", 13, [], [&data, &list(&[0; 4])]).shares(&data);
        run("CenterCropPad", 18, [], [&data, &list(&[1, 100])]).shares(&data);
    }
}
