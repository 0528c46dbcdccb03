//! What is the same for all of Gather, GatherElements and GatherND: types, arity, attributes, ranks.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::NodeProto;
use crate::common::{float, int, node, run_one};
use crate::{With, at_node, good, graph_of, int64, iota, load};
use onnxref::{DType, Kind, Place, Tensor};

/// A version of an operator.
pub(crate) struct Version {
    pub(crate) operator: &'static str,
    pub(crate) version: i64,
    /// The first and the last opset that it rules in.
    opsets: [i64; 2],
    data_types: &'static str,
    index_types: &'static str,
    attributes: &'static str,
}

const FIFTEEN: &str = "float, uint8, int8, uint16, int16, int32, int64, string, bool, float16, double, uint32, uint64, \
                       complex64, complex128";
const SIXTEEN: &str = "float, uint8, int8, uint16, int16, int32, int64, string, bool, float16, double, uint32, uint64, \
                       complex64, complex128, bfloat16";

#[rustfmt::skip]
pub(crate) const VERSIONS: [Version; 8] = [
    version("Gather",         1,  [1, 10],  FIFTEEN, "int32, int64", "it has axis"),
    version("Gather",         11, [11, 12], FIFTEEN, "int32, int64", "it has axis"),
    version("Gather",         13, [13, 28], SIXTEEN, "int32, int64", "it has axis"),
    version("GatherElements", 11, [11, 12], FIFTEEN, "int32, int64", "it has axis"),
    version("GatherElements", 13, [13, 28], SIXTEEN, "int32, int64", "it has axis"),
    version("GatherND",       11, [11, 11], FIFTEEN, "int64",        "it has none"),
    version("GatherND",       12, [12, 12], FIFTEEN, "int64",        "it has batch_dims"),
    version("GatherND",       13, [13, 28], SIXTEEN, "int64",        "it has batch_dims"),
];

const fn version(
    operator: &'static str,
    version: i64,
    opsets: [i64; 2],
    data_types: &'static str,
    index_types: &'static str,
    attributes: &'static str,
) -> Version {
    Version { operator, version, opsets, data_types, index_types, attributes }
}

impl Version {
    pub(crate) fn text(&self, text: &str) -> String {
        format!("node \"node\" ({}-{}): {text}", self.operator, self.version)
    }

    pub(crate) fn place(&self) -> Place {
        at_node(self.operator, self.version)
    }

    /// The operator on these under its first and its last opset: an error, and the same one.
    fn difference(&self, data: &Tensor, indices: &Tensor, text: &str, place: Place) -> Vec<Option<String>> {
        let run = |opset| {
            let result = run_one(self.operator, opset, vec![], &[("data", data), ("indices", indices)]);
            let name = format!("{} under opset {opset}", self.operator);
            difference_at(&name, result, Kind::Model, &self.text(text), &place)
        };
        self.opsets.into_iter().map(run).collect()
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
            if allowed.contains(&dtype.name()) {
                for opset in v.opsets {
                    let output = run_one(v.operator, opset, vec![], &[("data", &data), ("indices", &indices)]).unwrap();
                    assert_eq!((output.dtype(), output.bytes()), (dtype, data.bytes()), "{}", v.operator);
                }
            } else {
                let text = format!("\"data\" has element type {dtype}: allowed {}", v.data_types);
                assert_as_expected(v.difference(&data, &indices, &text, v.place().named("data")));
            }
        }
    }
}

#[test]
fn the_types_of_later_versions_are_refused_by_name() {
    let indices = int64(&[1], &[0]);
    let refused = |operator, opset, dtype, text: &str| {
        let error = run_one(operator, opset, vec![], &[("data", &element(dtype)), ("indices", &indices)]).unwrap_err();
        assert_eq!(error.to_string(), text);
    };
    refused(
        "Gather",
        12,
        DType::Bfloat16,
        "node \"node\" (Gather-11): \"data\" has element type bfloat16: allowed float, uint8, int8, uint16, int16, \
         int32, int64, string, bool, float16, double, uint32, uint64, complex64, complex128",
    );
    refused(
        "GatherElements",
        28,
        DType::Int4,
        "node \"node\" (GatherElements-13): \"data\" has element type int4: allowed float, uint8, int8, uint16, int16, \
         int32, int64, string, bool, float16, double, uint32, uint64, complex64, complex128, bfloat16",
    );
}

#[test]
fn indices_of_each_type_are_taken_or_refused() {
    let data = iota(&[1]);
    for v in &VERSIONS {
        let allowed: Vec<&str> = v.index_types.split(", ").collect();
        for dtype in DType::all() {
            let indices = zero(dtype);
            if allowed.contains(&dtype.name()) {
                for opset in v.opsets {
                    run_one(v.operator, opset, vec![], &[("data", &data), ("indices", &indices)]).unwrap();
                }
            } else {
                let text = format!("\"indices\" has element type {dtype}: allowed {}", v.index_types);
                assert_as_expected(v.difference(&data, &indices, &text, v.place().named("indices")));
            }
        }
    }
}

#[test]
fn operators_are_not_in_opsets_before_their_first_version() {
    let cases = [
        ("GatherElements", "node \"node\" (GatherElements): GatherElements is not in opset 10: it came with opset 11"),
        ("GatherND", "node \"node\" (GatherND): GatherND is not in opset 10: it came with opset 11"),
    ];
    assert_as_expected(cases.map(|(operator, text)| {
        let result = run_one(operator, 10, vec![], &[("data", &iota(&[1])), ("indices", &int64(&[1], &[0]))]);
        difference_at(operator, result, Kind::Model, text, &at_node(operator, None))
    }));
}

#[test]
fn two_inputs_and_one_output() {
    // Inputs, outputs, what is said, the number or the name that it is said of.
    type Case = (&'static [&'static str], &'static [&'static str], &'static str, Result<i128, &'static str>);
    const CASES: [Case; 10] = [
        (&[], &["y"], "0 inputs given: the operator has (data, indices)", Ok(0)),
        (&["data"], &["y"], "1 input given: the operator has (data, indices)", Ok(1)),
        (&["data", "indices", "data"], &["y"], "3 inputs given: the operator has (data, indices)", Ok(3)),
        (&["data", "indices", ""], &["y"], "3 inputs given: the operator has (data, indices)", Ok(3)),
        (&["", "indices"], &["y"], "input 0, \"data\", is left out, and is required", Err("data")),
        (&["data", ""], &["y"], "input 1, \"indices\", is left out, and is required", Err("indices")),
        (&["", ""], &["y"], "input 0, \"data\", is left out, and is required", Err("data")),
        (&["data", "indices"], &[], "0 outputs given: the operator has (output)", Ok(0)),
        (&["data", "indices"], &["y", "z"], "2 outputs given: the operator has (output)", Ok(2)),
        (&["data", "indices"], &[""], "output 0, \"output\", is left out, and is required", Err("output")),
    ];
    for v in &VERSIONS {
        assert_as_expected(CASES.map(|(inputs, outputs, text, what)| {
            let mut model = good();
            model.opset_import[0].version = Some(v.opsets[0]);
            let graph = graph_of(&mut model);
            graph.node = vec![NodeProto { name: Some("node".into()), ..node(v.operator, inputs, outputs, vec![]) }];
            // Whether the node's outputs are there is another matter.
            graph.output = vec![graph.input[0].clone()];
            let place = match what {
                Ok(count) => v.place().with(|p| p.value = Some(count)),
                Err(name) => v.place().named(name),
            };
            difference_at(text, load(&model), Kind::Model, &v.text(text), &place)
        }));
    }
}

#[test]
fn attributes_of_the_operator_and_of_its_kind() {
    let (data, indices) = (iota(&[1]), int64(&[1], &[0]));
    for v in &VERSIONS {
        let own = if v.operator == "GatherND" { "batch_dims" } else { "axis" };
        let foreign = if v.operator == "GatherND" { "axis" } else { "batch_dims" };
        let mut cases = vec![
            (
                int(foreign, 0),
                foreign,
                format!("attribute \"{foreign}\" is not one of the operator's: {}", v.attributes),
            ),
            (int("Axis", 0), "Axis", format!("attribute \"Axis\" is not one of the operator's: {}", v.attributes)),
        ];
        if v.attributes != "it has none" {
            let text = format!("attribute \"{own}\": it is of kind FLOAT: INT is needed");
            cases.push((float(own, 0.0), own, text));
        } else {
            let text = "attribute \"batch_dims\" is not one of the operator's: it has none".to_string();
            cases.push((int("batch_dims", 0), "batch_dims", text));
        }
        assert_as_expected(cases.into_iter().map(|(attribute, name, text)| {
            let inputs = [("data", &data), ("indices", &indices)];
            let result = run_one(v.operator, v.opsets[0], vec![attribute], &inputs);
            let place = v.place().with(|p| p.attribute = Some(name.into()));
            difference_at(&text, result, Kind::Model, &v.text(&text), &place)
        }));
    }
}

#[test]
fn data_is_no_scalar() {
    let (scalar, text) = (iota(&[]), "\"data\" is a scalar: it needs a rank of at least 1");
    for v in &VERSIONS {
        for indices in [int64(&[1], &[0]), int64(&[], &[0]), int64(&[0], &[])] {
            let inputs = [("data", &scalar), ("indices", &indices)];
            let result = run_one(v.operator, v.opsets[0], vec![], &inputs);
            assert_as_expected([difference_at(text, result, Kind::Input, &v.text(text), &v.place().named("data"))]);
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
