//! The index values and shapes of GatherND.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::{int, run_one};
use crate::{With, at_node, int64, iota};
use onnxref::{Error, Kind, Place, Tensor};

const VERSIONS: [(i64, i64); 4] = [(11, 11), (12, 12), (13, 13), (28, 13)];

fn run(opset: i64, data: &[usize], batch_dims: i64, shape: &[usize], indices: &[i64]) -> Result<Tensor, Error> {
    let attributes = if opset == 11 { vec![] } else { vec![int("batch_dims", batch_dims)] };
    run_one("GatherND", opset, attributes, &[("data", &iota(data)), ("indices", &int64(shape, indices))])
}

/// `data`, `batch_dims`, the shape of `indices` and their values; the error; the place within the node.
type Case = (&'static [usize], i64, &'static [usize], &'static [i64], Kind, &'static str, fn(&mut Place));

fn check(cases: &[Case]) {
    for (opset, version) in VERSIONS {
        // Version 11 has no batch dimensions.
        let cases = cases.iter().filter(|case| version > 11 || case.1 == 0);
        assert_as_expected(cases.map(|(data, batch_dims, shape, indices, kind, text, fill)| {
            let full = format!("node \"node\" (GatherND-{version}): {text}");
            let place = at_node("GatherND", version).with(fill);
            difference_at(text, run(opset, data, *batch_dims, shape, indices), *kind, &full, &place)
        }));
    }
}

fn at(p: &mut Place, axis: i64, size: usize, value: i64, position: &[usize]) {
    p.parameter = Some("indices".into());
    (p.axis, p.size, p.value, p.position) = (Some(axis), Some(size), Some(value.into()), Some(position.to_vec()));
}

#[test]
fn each_coordinate_is_in_range_of_its_axis() {
    check(&[
        (
            &[3, 2],
            0,
            &[2, 2],
            &[2, 1, 0, 2],
            Kind::Input,
            "indices[1, 1] = 2 is out of range for axis 1 of \"data\", which has 2 entries: allowed -2..=1",
            |p| at(p, 1, 2, 2, &[1, 1]),
        ),
        (
            &[3, 2],
            0,
            &[1],
            &[-4],
            Kind::Input,
            "indices[0] = -4 is out of range for axis 0 of \"data\", which has 3 entries: allowed -3..=2",
            |p| at(p, 0, 3, -4, &[0]),
        ),
        (
            &[2, 3, 2],
            1,
            &[2, 1, 2],
            &[0, 1, i64::MIN, 0],
            Kind::Input,
            "indices[1, 0, 0] = -9223372036854775808 is out of range for axis 1 of \"data\", which has 3 entries: \
             allowed -3..=2",
            |p| at(p, 1, 3, i64::MIN, &[1, 0, 0]),
        ),
        (
            &[3, 0],
            0,
            &[1, 2],
            &[0, 0],
            Kind::Input,
            "indices[0, 1] = 0 is out of range for axis 1 of \"data\", which has 0 entries: no index is allowed",
            |p| at(p, 1, 0, 0, &[0, 1]),
        ),
        // The output has no elements.
        (
            &[3, 0],
            0,
            &[1, 1],
            &[3],
            Kind::Input,
            "indices[0, 0] = 3 is out of range for axis 0 of \"data\", which has 3 entries: allowed -3..=2",
            |p| at(p, 0, 3, 3, &[0, 0]),
        ),
    ]);
}

#[test]
fn tuples_have_a_width_within_the_rank() {
    check(&[
        (
            &[3, 2],
            0,
            &[1, 3],
            &[0, 0, 0],
            Kind::Input,
            "the last dimension of \"indices\" is 3: allowed 1..=2 for \"data\" of rank 2 with 0 batch dimensions",
            |p| {
                p.parameter = Some("indices".into());
                (p.axis, p.value) = (Some(1), Some(3));
            },
        ),
        (
            &[3, 2],
            0,
            &[4, 0],
            &[],
            Kind::Input,
            "the last dimension of \"indices\" is 0: allowed 1..=2 for \"data\" of rank 2 with 0 batch dimensions",
            |p| {
                p.parameter = Some("indices".into());
                (p.axis, p.value) = (Some(1), Some(0));
            },
        ),
        (
            &[3, 2],
            1,
            &[3, 2],
            &[0; 6],
            Kind::Input,
            "the last dimension of \"indices\" is 2: allowed 1..=1 for \"data\" of rank 2 with 1 batch dimensions",
            |p| {
                p.parameter = Some("indices".into());
                (p.axis, p.value) = (Some(1), Some(2));
            },
        ),
        (&[3], 0, &[], &[0], Kind::Input, "\"indices\" is a scalar: it needs a rank of at least 1", |p| {
            p.parameter = Some("indices".into())
        }),
    ]);
}

#[test]
fn batch_dimensions_are_there_and_equal() {
    check(&[
        (
            &[3, 2],
            2,
            &[3, 1],
            &[0; 3],
            Kind::Model,
            "batch_dims 2 is out of range for ranks 2 and 2: allowed 0..=1",
            |p| (p.attribute, p.value) = (Some("batch_dims".into()), Some(2)),
        ),
        (
            &[3, 2],
            -1,
            &[3, 1],
            &[0; 3],
            Kind::Model,
            "batch_dims -1 is out of range for ranks 2 and 2: allowed 0..=1",
            |p| (p.attribute, p.value) = (Some("batch_dims".into()), Some(-1)),
        ),
        (
            &[3, 2],
            1 << 32,
            &[1],
            &[0],
            Kind::Model,
            "batch_dims 4294967296 is out of range for ranks 2 and 1: allowed 0..=0",
            |p| (p.attribute, p.value) = (Some("batch_dims".into()), Some(1 << 32)),
        ),
        (
            &[3, 2],
            i64::MIN,
            &[3, 1],
            &[0; 3],
            Kind::Model,
            "batch_dims -9223372036854775808 is out of range for ranks 2 and 2: allowed 0..=1",
            |p| (p.attribute, p.value) = (Some("batch_dims".into()), Some(i64::MIN.into())),
        ),
        (
            &[3, 2],
            1,
            &[2, 1],
            &[0; 2],
            Kind::Input,
            "batch dimension 0 is 3 in \"data\" and 2 in \"indices\": they must be equal",
            |p| {
                p.parameter = Some("indices".into());
                (p.axis, p.size, p.value) = (Some(0), Some(3), Some(2));
            },
        ),
        // One batch is not spread over several.
        (
            &[2, 1, 2],
            2,
            &[2, 3, 1],
            &[0; 6],
            Kind::Input,
            "batch dimension 1 is 1 in \"data\" and 3 in \"indices\": they must be equal",
            |p| {
                p.parameter = Some("indices".into());
                (p.axis, p.size, p.value) = (Some(1), Some(1), Some(3));
            },
        ),
    ]);
}

#[test]
fn empty_indices_and_empty_data_are_legal() {
    for (opset, _) in VERSIONS {
        assert_eq!(run(opset, &[0, 2], 0, &[0, 1], &[]).unwrap().shape(), [0, 2]);
        assert_eq!(run(opset, &[3, 0], 0, &[2, 1], &[2, -3]).unwrap().shape(), [2, 0]);
        assert_eq!(run(opset, &[3, 2], 0, &[2], &[-1, -1]).unwrap(), ndarray::arr0(5f32).into());
    }
    assert_eq!(run(12, &[0, 2], 1, &[0, 1], &[]).unwrap().shape(), [0]);
}
