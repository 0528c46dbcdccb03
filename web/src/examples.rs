//! The standard's examples of Gather, GatherElements and GatherND.

use crate::print;
use onnxref::Tensor;
use serde_json::{Value as Json, json};

/// An official case.
pub(crate) struct Example {
    operator: &'static str,
    /// The attributes, and what the operator then computes.
    attributes: &'static str,
    formula: &'static str,
    case: &'static str,
    pub(crate) model: &'static [u8],
    data: &'static [u8],
    indices: &'static [u8],
    output: &'static [u8],
    /// The indices with one that is out of range.
    wrong: &'static str,
}

macro_rules! example {
    ($operator:literal, $attributes:literal, $formula:literal, $case:literal, $wrong:literal) => {
        Example {
            operator: $operator,
            attributes: $attributes,
            formula: $formula,
            case: $case,
            model: part!($case, "model.onnx"),
            data: part!($case, "test_data_set_0/input_0.pb"),
            indices: part!($case, "test_data_set_0/input_1.pb"),
            output: part!($case, "test_data_set_0/output_0.pb"),
            wrong: $wrong,
        }
    };
}

macro_rules! part {
    ($case:literal, $file:literal) => {
        include_bytes!(concat!("../../onnx-test-data/gather/onnx-1.12.0/node/", $case, "/", $file))
    };
}

pub(crate) const ALL: &[Example] = &[
    example!("Gather", "axis = 1", "y[i, j, k] = data[i, indices[j, k]]", "test_gather_2d_indices", "[[0, 3]]"),
    example!("Gather", "axis = 0", "y[i] = data[indices[i]]", "test_gather_negative_indices", "[0, -9, -11]"),
    example!("Gather", "axis = 0", "y[i, j, k, l] = data[indices[i], j, k, l]", "test_gather_0", "[0, 1, 5]"),
    example!(
        "GatherElements",
        "axis = 1",
        "y[i, j] = data[i, indices[i, j]]",
        "test_gather_elements_0",
        "[[0, 2],\n [1, 0]]"
    ),
    example!(
        "GatherElements",
        "axis = 0",
        "y[i, j] = data[indices[i, j], j]",
        "test_gather_elements_1",
        "[[1, 2, 0],\n [2, 0, 3]]"
    ),
    example!(
        "GatherElements",
        "axis = 0",
        "y[i, j] = data[indices[i, j], j]",
        "test_gather_elements_negative_indices",
        "[[-1, -2, 0],\n [-2, 0, -4]]"
    ),
    example!(
        "GatherND",
        "batch_dims = 0",
        "output[i] = data[indices[i, 0], indices[i, 1]]",
        "test_gathernd_example_int32",
        "[[0, 0],\n [1, 2]]"
    ),
    example!(
        "GatherND",
        "batch_dims = 0",
        "output[i, j, k] = data[indices[i, j, 0], indices[i, j, 1], k]",
        "test_gathernd_example_float32",
        "[[[0, 1]],\n\n [[1, -3]]]"
    ),
    example!(
        "GatherND",
        "batch_dims = 1",
        "output[i, j] = data[i, indices[i, 0], j]",
        "test_gathernd_example_int32_batch_dim1",
        "[[1],\n [2]]"
    ),
];

/// `{"examples": [{"operator": .., "attributes": .., "formula": .., "case": .., "inputs": [[NAME, LITERAL], ..], "wrong": ..}, ..]}`
pub(crate) fn list() -> Json {
    let literal = |bytes: &'static [u8]| {
        Tensor::from_proto_bytes(bytes.to_vec())
            .map_or_else(|error| error.to_string(), |tensor| print::literal(&tensor))
    };
    let examples: Vec<Json> = ALL
        .iter()
        .map(|example| {
            json!({
                "operator": example.operator,
                "attributes": example.attributes,
                "formula": example.formula,
                "case": example.case,
                "inputs": [["data", literal(example.data)], ["indices", literal(example.indices)]],
                "output": literal(example.output),
                "wrong": example.wrong,
            })
        })
        .collect();
    json!({ "examples": examples })
}
