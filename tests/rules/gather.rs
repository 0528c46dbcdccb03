//! The index values and shapes of Gather.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::{int, run_one, run_one_with};
use crate::{With, at_node, int64, iota};
use ndarray::arr0;
use onnxref::{Error, Kind, Model, Place, Tensor};

/// An index that is out of range.
struct Case {
    data: &'static [usize],
    axis: i64,
    shape: &'static [usize],
    indices: &'static [i64],
    text: &'static str,
    at: Index,
}

/// The place of an index: its value and position, and the size of its axis.
struct Index(i64, &'static [usize], usize);

fn run(opset: i64, data: &[usize], axis: i64, indices: &Tensor) -> Result<Tensor, Error> {
    run_one("Gather", opset, vec![int("axis", axis)], &[("data", &iota(data)), ("indices", indices)])
}

fn place(version: i64, case: &Case) -> Place {
    at_node("Gather", version).parameter("indices").with(|p| {
        p.axis = Some(case.axis);
        p.size = Some(case.at.2);
        p.value = Some(case.at.0.into());
        p.position = Some(case.at.1.to_vec());
    })
}

fn check(opset: i64, version: i64, cases: &[Case]) {
    assert_as_expected(cases.iter().map(|case| {
        let result = run(opset, case.data, case.axis, &int64(case.shape, case.indices));
        let text = format!("node \"node\" (Gather-{version}): {}", case.text);
        difference_at(case.text, result, Kind::Input, &text, &place(version, case))
    }));
}

#[test]
fn version_1_takes_0_to_s_less_1() {
    for opset in [1, 10] {
        check(
            opset,
            1,
            &[
                Case {
                    data: &[3, 2],
                    axis: 0,
                    shape: &[2],
                    indices: &[0, 3],
                    text: "indices[1] = 3 is out of range for axis 0 of \"data\", which has 3 entries: allowed 0..=2",
                    at: Index(3, &[1], 3),
                },
                Case {
                    data: &[3, 2],
                    axis: -1,
                    shape: &[1, 2],
                    indices: &[1, -1],
                    text: "indices[0, 1] = -1 is negative, which is allowed from version 11 on only, \
                           for axis -1 of \"data\", which has 2 entries: allowed 0..=1 \
                           (Compatibility::gather_1_negative_indices accepts it)",
                    at: Index(-1, &[0, 1], 2),
                },
                Case {
                    data: &[3],
                    axis: 0,
                    shape: &[],
                    indices: &[i64::MIN],
                    text: "indices = -9223372036854775808 is negative, which is allowed from version 11 on only, \
                           for axis 0 of \"data\", which has 3 entries: allowed 0..=2 \
                           (Compatibility::gather_1_negative_indices accepts it)",
                    at: Index(i64::MIN, &[], 3),
                },
                Case {
                    data: &[0, 2],
                    axis: 0,
                    shape: &[1],
                    indices: &[0],
                    text: "indices[0] = 0 is out of range for axis 0 of \"data\", which has 0 entries: \
                           no index is allowed",
                    at: Index(0, &[0], 0),
                },
            ],
        );
    }
}

#[test]
fn versions_11_and_13_take_minus_s_to_s_less_1() {
    for (opset, version) in [(11, 11), (12, 11), (13, 13), (28, 13)] {
        check(
            opset,
            version,
            &[
                Case {
                    data: &[3, 2],
                    axis: 0,
                    shape: &[3],
                    indices: &[2, -3, 3],
                    text: "indices[2] = 3 is out of range for axis 0 of \"data\", which has 3 entries: allowed -3..=2",
                    at: Index(3, &[2], 3),
                },
                Case {
                    data: &[3, 2],
                    axis: -2,
                    shape: &[2, 2],
                    indices: &[0, 0, -4, 9],
                    text: "indices[1, 0] = -4 is out of range for axis -2 of \"data\", which has 3 entries: \
                           allowed -3..=2",
                    at: Index(-4, &[1, 0], 3),
                },
                Case {
                    data: &[1],
                    axis: 0,
                    shape: &[],
                    indices: &[1],
                    text: "indices = 1 is out of range for axis 0 of \"data\", which has 1 entry: allowed -1..=0",
                    at: Index(1, &[], 1),
                },
                Case {
                    data: &[3],
                    axis: 0,
                    shape: &[1],
                    indices: &[i64::MIN],
                    text: "indices[0] = -9223372036854775808 is out of range for axis 0 of \"data\", \
                           which has 3 entries: allowed -3..=2",
                    at: Index(i64::MIN, &[0], 3),
                },
                Case {
                    data: &[3],
                    axis: 0,
                    shape: &[1],
                    indices: &[1 << 32],
                    text: "indices[0] = 4294967296 is out of range for axis 0 of \"data\", \
                           which has 3 entries: allowed -3..=2",
                    at: Index(1 << 32, &[0], 3),
                },
                Case {
                    data: &[2, 0],
                    axis: 1,
                    shape: &[1],
                    indices: &[-1],
                    text: "indices[0] = -1 is out of range for axis 1 of \"data\", which has 0 entries: \
                           no index is allowed",
                    at: Index(-1, &[0], 0),
                },
                // The output has no elements.
                Case {
                    data: &[3, 0],
                    axis: 0,
                    shape: &[2],
                    indices: &[0, 5],
                    text: "indices[1] = 5 is out of range for axis 0 of \"data\", which has 3 entries: allowed -3..=2",
                    at: Index(5, &[1], 3),
                },
                Case {
                    data: &[0, 3],
                    axis: 1,
                    shape: &[1],
                    indices: &[3],
                    text: "indices[0] = 3 is out of range for axis 1 of \"data\", which has 3 entries: allowed -3..=2",
                    at: Index(3, &[0], 3),
                },
            ],
        );
    }
}

#[test]
fn int32_indices_are_checked_too() {
    let error = run(13, &[3], 0, &ndarray::array![0i32, i32::MIN].into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "node \"node\" (Gather-13): indices[1] = -2147483648 is out of range for axis 0 of \"data\", \
         which has 3 entries: allowed -3..=2"
    );
}

#[test]
fn version_1_takes_negative_indices_if_asked_to() {
    let options = onnxref::Model::options().compatibility(|c| c.gather_1_negative_indices = true);
    let run = |opset, index| {
        let inputs = [("data", &iota(&[3])), ("indices", &Tensor::from(arr0(index)))];
        run_one_with(&options, "Gather", opset, vec![], &inputs)
    };
    assert_eq!(run(1, -1i64).unwrap(), arr0(2f32).into());
    assert_eq!(run(10, -3i64).unwrap(), arr0(0f32).into());
    let text = "node \"node\" (Gather-1): indices = -4 is out of range for axis 0 of \"data\", which has 3 entries: \
                allowed -3..=2";
    assert_eq!(run(1, -4i64).unwrap_err().to_string(), text);
    assert!(Model::options().compatibility(|_| {}).from_bytes(vec![]).is_err());
}

#[test]
fn empty_indices_and_empty_data_are_legal() {
    for opset in [1, 11, 13] {
        let run = |data: &[usize], axis, shape: &[usize], indices: &[i64]| {
            run(opset, data, axis, &int64(shape, indices)).unwrap().shape().to_vec()
        };
        assert_eq!(run(&[0, 2], 0, &[0], &[]), [0, 2]);
        assert_eq!(run(&[2, 0], 1, &[3, 0], &[]), [2, 3, 0]);
        assert_eq!(run(&[3, 2], 0, &[0, 4], &[]), [0, 4, 2]);
        assert_eq!(run(&[3, 0], 0, &[2], &[2, 0]), [2, 0]);
        assert_eq!(run(&[3], 0, &[], &[1]), [0usize; 0]);
    }
}
