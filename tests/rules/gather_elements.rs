//! The index values and shapes of GatherElements.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::{int, run_one};
use crate::{With, at_node, int64, iota};
use onnxref::{Error, Kind, Place, Tensor};

fn run(opset: i64, data: &[usize], axis: i64, shape: &[usize], indices: &[i64]) -> Result<Tensor, Error> {
    let inputs = [("data", &iota(data)), ("indices", &int64(shape, indices))];
    run_one("GatherElements", opset, vec![int("axis", axis)], &inputs)
}

/// `data`, `axis`, the shape of `indices` and their values; what is said; the place within the node.
type Case = (&'static [usize], i64, &'static [usize], &'static [i64], &'static str, fn(&mut Place));

fn check(cases: &[Case]) {
    for (opset, version) in [(11, 11), (12, 11), (13, 13), (28, 13)] {
        assert_as_expected(cases.iter().map(|(data, axis, shape, indices, text, fill)| {
            let place = at_node("GatherElements", version).parameter("indices").with(fill);
            let full = format!("node \"node\" (GatherElements-{version}): {text}");
            difference_at(text, run(opset, data, *axis, shape, indices), Kind::Input, &full, &place)
        }));
    }
}

#[test]
fn indices_are_in_range() {
    check(&[
        (
            &[3, 2],
            0,
            &[1, 2],
            &[0, 3],
            "indices[0, 1] = 3 is out of range for axis 0 of \"data\", which has 3 entries: allowed -3..=2",
            |p| (p.axis, p.size, p.value, p.position) = (Some(0), Some(3), Some(3), Some(vec![0, 1])),
        ),
        (
            &[3, 2],
            -1,
            &[2, 1],
            &[-2, -3],
            "indices[1, 0] = -3 is out of range for axis -1 of \"data\", which has 2 entries: allowed -2..=1",
            |p| (p.axis, p.size, p.value, p.position) = (Some(-1), Some(2), Some(-3), Some(vec![1, 0])),
        ),
        (
            &[1],
            0,
            &[1],
            &[i64::MIN],
            "indices[0] = -9223372036854775808 is out of range for axis 0 of \"data\", which has 1 entry: \
             allowed -1..=0",
            |p| (p.axis, p.size, p.value, p.position) = (Some(0), Some(1), Some(i64::MIN.into()), Some(vec![0])),
        ),
        (
            &[0, 2],
            0,
            &[1, 2],
            &[0, 0],
            "indices[0, 0] = 0 is out of range for axis 0 of \"data\", which has 0 entries: no index is allowed",
            |p| (p.axis, p.size, p.value, p.position) = (Some(0), Some(0), Some(0), Some(vec![0, 0])),
        ),
    ]);
}

#[test]
fn indices_lie_within_data_off_the_axis() {
    check(&[
        (&[3, 2], 0, &[2], &[0, 0], "\"indices\" has rank 1, \"data\" has rank 2: they must be equal", |_| {}),
        (&[3], 0, &[], &[0], "\"indices\" has rank 0, \"data\" has rank 1: they must be equal", |_| {}),
        (&[3], 0, &[1, 1], &[0], "\"indices\" has rank 2, \"data\" has rank 1: they must be equal", |_| {}),
        (
            &[3, 2],
            0,
            &[1, 3],
            &[0, 0, 0],
            "dimension 1 of \"indices\" is 3, and of \"data\" 2: off the axis 0 it may not be larger",
            |p| (p.axis, p.size, p.value) = (Some(1), Some(2), Some(3)),
        ),
        // One entry of data is not spread over several.
        (
            &[1, 2],
            1,
            &[2, 2],
            &[0, 0, 0, 0],
            "dimension 0 of \"indices\" is 2, and of \"data\" 1: off the axis 1 it may not be larger",
            |p| (p.axis, p.size, p.value) = (Some(0), Some(1), Some(2)),
        ),
        // There are no indices, and so no elements.
        (
            &[3, 2],
            0,
            &[0, 3],
            &[],
            "dimension 1 of \"indices\" is 3, and of \"data\" 2: off the axis 0 it may not be larger",
            |p| (p.axis, p.size, p.value) = (Some(1), Some(2), Some(3)),
        ),
    ]);
}

#[test]
fn smaller_and_empty_indices_are_legal() {
    for opset in [11, 13] {
        assert_eq!(run(opset, &[3, 2], 0, &[1, 1], &[-1]).unwrap(), ndarray::array![[4f32]].into());
        assert_eq!(run(opset, &[1, 2], 0, &[3, 2], &[0; 6]).unwrap().shape(), [3, 2]);
        assert_eq!(run(opset, &[0, 2], 0, &[0, 2], &[]).unwrap().shape(), [0, 2]);
        assert_eq!(run(opset, &[3, 2], 0, &[5, 0], &[]).unwrap().shape(), [5, 0]);
    }
}
