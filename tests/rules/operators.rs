//! Rules common to Gather, GatherElements and GatherND that the table doesn't have: ranks and axes. Also the types that
//! each takes, written by hand.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::{int, run_one};
use crate::{With, at_node, int64, iota};
use onnxref::{DType, Kind, Place, Tensor};

/// A version of an operator.
pub(crate) struct Version {
    pub(crate) operator: &'static str,
    pub(crate) version: i64,
    /// The first and the last opset that select it.
    opsets: [i64; 2],
    data_types: &'static str,
    index_types: &'static str,
}

const FIFTEEN: &str = "float, uint8, int8, uint16, int16, int32, int64, string, bool, float16, double, uint32, uint64, \
                       complex64, complex128";
const SIXTEEN: &str = "float, uint8, int8, uint16, int16, int32, int64, string, bool, float16, double, uint32, uint64, \
                       complex64, complex128, bfloat16";

#[rustfmt::skip]
pub(crate) const VERSIONS: [Version; 8] = [
    version("Gather",         1,  [1, 10],  FIFTEEN, "int32, int64"),
    version("Gather",         11, [11, 12], FIFTEEN, "int32, int64"),
    version("Gather",         13, [13, 28], SIXTEEN, "int32, int64"),
    version("GatherElements", 11, [11, 12], FIFTEEN, "int32, int64"),
    version("GatherElements", 13, [13, 28], SIXTEEN, "int32, int64"),
    version("GatherND",       11, [11, 11], FIFTEEN, "int64"),
    version("GatherND",       12, [12, 12], FIFTEEN, "int64"),
    version("GatherND",       13, [13, 28], SIXTEEN, "int64"),
];

const fn version(
    operator: &'static str,
    version: i64,
    opsets: [i64; 2],
    data_types: &'static str,
    index_types: &'static str,
) -> Version {
    Version { operator, version, opsets, data_types, index_types }
}

impl Version {
    pub(crate) fn text(&self, text: &str) -> String {
        format!("node \"node\" ({}-{}): {text}", self.operator, self.version)
    }

    pub(crate) fn place(&self) -> Place {
        at_node(self.operator, self.version)
    }
}

/// One element of a type.
fn element(dtype: DType) -> Tensor {
    match dtype {
        DType::String => Tensor::from_strings(&[1], ["x"]).unwrap(),
        _ => Tensor::new(dtype, &[1], vec![1; dtype.size()]).unwrap(),
    }
}

fn zero(dtype: DType) -> Tensor {
    match dtype {
        DType::String => element(dtype),
        _ => Tensor::new(dtype, &[1], vec![0; dtype.size()]).unwrap(),
    }
}

#[test]
fn data_of_each_type_is_taken_or_refused() {
    let indices = int64(&[1], &[0]);
    for v in &VERSIONS {
        let allowed: Vec<&str> = v.data_types.split(", ").collect();
        for dtype in DType::all() {
            let data = element(dtype);
            for opset in v.opsets {
                match run_one(v.operator, opset, vec![], &[("data", &data), ("indices", &indices)]) {
                    Ok(output) => {
                        assert!(allowed.contains(&dtype.name()), "{} under {opset} takes {dtype}", v.operator);
                        assert_eq!((output.dtype(), output.bytes()), (dtype, data.bytes()), "{}", v.operator);
                    }
                    Err(error) => assert!(!allowed.contains(&dtype.name()), "{dtype}: {error}"),
                }
            }
        }
    }
}

#[test]
fn indices_of_each_type_are_taken_or_refused() {
    let data = iota(&[1]);
    for v in &VERSIONS {
        let allowed: Vec<&str> = v.index_types.split(", ").collect();
        for dtype in DType::all() {
            let indices = zero(dtype);
            for opset in v.opsets {
                let result = run_one(v.operator, opset, vec![], &[("data", &data), ("indices", &indices)]);
                assert_eq!(result.is_ok(), allowed.contains(&dtype.name()), "{} under {opset}: {dtype}", v.operator);
            }
        }
    }
}

#[test]
fn operators_are_not_in_opsets_before_their_first_version() {
    let cases = [
        (
            "GatherElements",
            "node \"node\" (GatherElements): GatherElements is not in opset 10: it came with opset 11 (Compatibility::newer_operators accepts it)",
        ),
        (
            "GatherND",
            "node \"node\" (GatherND): GatherND is not in opset 10: it came with opset 11 (Compatibility::newer_operators accepts it)",
        ),
    ];
    assert_as_expected(cases.map(|(operator, text)| {
        let result = run_one(operator, 10, vec![], &[("data", &iota(&[1])), ("indices", &int64(&[1], &[0]))]);
        difference_at(operator, result, Kind::Model, text, &at_node(operator, None))
    }));
}

#[test]
fn data_is_no_scalar() {
    let (scalar, text) = (iota(&[]), "\"data\" is a scalar: it needs a rank of at least 1");
    for v in &VERSIONS {
        for indices in [int64(&[1], &[0]), int64(&[], &[0]), int64(&[0], &[])] {
            let inputs = [("data", &scalar), ("indices", &indices)];
            let result = run_one(v.operator, v.opsets[0], vec![], &inputs);
            assert_as_expected([difference_at(text, result, Kind::Input, &v.text(text), &v.place().parameter("data"))]);
        }
    }
}

#[test]
fn the_axis_is_one_of_data() {
    let cases = [
        (2, "axis 2 is out of range for \"data\" of shape [3, 2]: allowed -2..=1"),
        (-3, "axis -3 is out of range for \"data\" of shape [3, 2]: allowed -2..=1"),
        (1 << 32, "axis 4294967296 is out of range for \"data\" of shape [3, 2]: allowed -2..=1"),
        ((1 << 32) + 1, "axis 4294967297 is out of range for \"data\" of shape [3, 2]: allowed -2..=1"),
        (-1 << 32, "axis -4294967296 is out of range for \"data\" of shape [3, 2]: allowed -2..=1"),
        (i64::MAX, "axis 9223372036854775807 is out of range for \"data\" of shape [3, 2]: allowed -2..=1"),
        (i64::MIN, "axis -9223372036854775808 is out of range for \"data\" of shape [3, 2]: allowed -2..=1"),
        (i64::MIN + 1, "axis -9223372036854775807 is out of range for \"data\" of shape [3, 2]: allowed -2..=1"),
    ];
    let (data, indices) = (iota(&[3, 2]), int64(&[1, 2], &[0, 0]));
    for v in VERSIONS.iter().filter(|v| v.operator != "GatherND") {
        let run = |axis| {
            let inputs = [("data", &data), ("indices", &indices)];
            run_one(v.operator, v.opsets[0], vec![int("axis", axis)], &inputs)
        };
        for axis in [-2, -1, 0, 1] {
            run(axis).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_as_expected(cases.map(|(axis, text)| {
            let place = v.place().with(|p| {
                p.attribute = Some("axis".into());
                p.axis = Some(axis);
                p.value = Some(axis.into());
            });
            difference_at(text, run(axis), Kind::Model, &v.text(text), &place)
        }));
    }
}
