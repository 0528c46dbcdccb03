//! The operator's errors, with their texts.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::{AttributeProto, GraphProto};
use crate::common::{fix, float, int};
use crate::{DOMAIN, onnx};
use ndarray::{Array, IxDyn};
use onnxref::{DType, Error, Inputs, Kind, Model, Place, Tensor};

/// A Gather of version 8 that is good: data is float [2, 3, 4], indices are int32 [2, 2], the axis is 1.
struct Node {
    opset: i64,
    attributes: Vec<AttributeProto>,
    data: Tensor,
    indices: Tensor,
    axis: Tensor,
    change: fn(&mut GraphProto),
    /// The axis is an initializer.
    fixed: bool,
}

fn good() -> Node {
    Node {
        opset: 8,
        attributes: vec![],
        data: floats(&[2, 3, 4]),
        indices: zeros(&[2, 2]),
        axis: Tensor::scalar(1i64),
        change: |_| {},
        fixed: false,
    }
}

impl Node {
    fn run(&self) -> Result<Tensor, Error> {
        let mut inputs = vec![("data", &self.data), ("indices", &self.indices), ("axis", &self.axis)];
        let bytes = onnx(self.opset, self.attributes.clone(), &inputs, self.data.dtype(), |graph| {
            (self.change)(graph);
            if self.fixed {
                fix(graph, "axis", &self.axis);
            }
        });
        if self.fixed {
            inputs.pop();
        }
        let outputs = Model::from_bytes(bytes)?.run(inputs.into_iter().collect::<Inputs<'_>>())?;
        Ok(outputs["output"].clone())
    }
}

fn floats(shape: &[usize]) -> Tensor {
    Array::<f32, _>::zeros(IxDyn(shape)).into()
}

fn zeros(shape: &[usize]) -> Tensor {
    Array::<i32, _>::zeros(IxDyn(shape)).into()
}

/// The place of the node, which is of this version.
fn at_node(version: i64) -> Place {
    let mut place = Place::default();
    place.node_index = Some(0);
    place.node = Some("node".into());
    place.operator = Some("Gather".into());
    place.domain = Some(DOMAIN.into());
    place.version = Some(version);
    place
}

fn at(version: i64, fill: impl FnOnce(&mut Place)) -> Place {
    let mut place = at_node(version);
    fill(&mut place);
    place
}

/// The node is refused when it runs, whether the axis is fed or not.
fn refused(name: &str, node: Node, kind: Kind, text: &str, place: Place) -> Option<String> {
    let version = place.version.unwrap();
    let text = format!("node \"node\" ({DOMAIN}::Gather-{version}): {text}");
    let fed = difference_at(name, node.run(), kind, &text, &place);
    fed.or_else(|| {
        let node = Node { fixed: true, ..node };
        difference_at(&format!("{name}, axis fixed"), node.run(), kind, &text, &place)
    })
}

#[test]
fn the_good_node_is_good() {
    for opset in [1, 7, 8, 16] {
        assert_eq!(Node { opset, ..good() }.run().unwrap().shape(), [2, 2, 2, 4]);
    }
}

#[test]
fn an_axis_that_the_data_has() {
    let axes: [(Tensor, i128); 9] = [
        (Tensor::scalar(3i64), 3),
        (Tensor::scalar(-4i32), -4),
        (Tensor::scalar(i64::MAX), i64::MAX.into()),
        (Tensor::scalar(i64::MIN), i64::MIN.into()),
        (Tensor::scalar(i32::MIN), i32::MIN.into()),
        (Tensor::scalar(1i64 << 32), 1 << 32),
        (Tensor::scalar(-128i8), -128),
        (Tensor::scalar(255u8), 255),
        (Tensor::scalar(u64::MAX), u64::MAX.into()),
    ];
    let cases = axes.into_iter().flat_map(|(axis, value)| {
        [1, 7, 8].map(|version| {
            let text = format!("axis {value} is out of range for \"data\" of shape [2, 3, 4]: allowed -3..=2");
            let place = at(version, |p| {
                p.parameter = Some("axis".into());
                p.axis = i64::try_from(value).ok();
                p.value = Some(value);
            });
            refused(
                &format!("{value}"),
                Node { opset: version, axis: axis.clone(), ..good() },
                Kind::Input,
                &text,
                place,
            )
        })
    });
    assert_as_expected(cases.collect::<Vec<_>>());
}

#[test]
fn an_axis_of_one_element() {
    let of = |shape: &[usize]| Tensor::from(Array::<i64, _>::ones(IxDyn(shape)));
    let refused = |shape: &[usize], text| {
        let place = at(8, |p| p.parameter = Some("axis".into()));
        refused(text, Node { axis: of(shape), ..good() }, Kind::Input, text, place)
    };
    assert_as_expected([
        refused(&[3], "\"axis\" has shape [3]: one element is needed"),
        refused(&[0], "\"axis\" has shape [0]: one element is needed"),
        refused(&[2, 2], "\"axis\" has shape [2, 2]: one element is needed"),
        refused(&[1, 1], "\"axis\" has rank 2: allowed 0 and 1"),
        refused(&[1, 1, 1], "\"axis\" has rank 3: allowed 0 and 1"),
    ]);
    assert_eq!(Node { axis: of(&[1]), ..good() }.run().unwrap().shape(), [2, 2, 2, 4]);
}

#[test]
fn data_has_dimensions() {
    for axis in [0, 1, -1] {
        let node = Node { data: floats(&[]), axis: Tensor::scalar(axis), ..good() };
        let place = at(8, |p| p.parameter = Some("data".into()));
        let text = "\"data\" is a scalar: it needs a rank of at least 1";
        assert_as_expected([refused("scalar", node, Kind::Input, text, place)]);
    }
}

#[test]
fn batch_dims_that_both_have() {
    let refused = |version, given: i64, data: &[usize], indices: &[usize], text: &str| {
        let node = Node {
            opset: version,
            attributes: vec![int("batch_dims", given)],
            data: floats(data),
            indices: zeros(indices),
            axis: Tensor::scalar(-1i64),
            ..good()
        };
        let place = at(version, |p| {
            p.attribute = Some("batch_dims".into());
            p.value = Some(given.into());
        });
        refused(text, node, Kind::Model, text, place)
    };
    let cases = [7, 8].into_iter().flat_map(|version| {
        [
            refused(version, 3, &[2, 3, 4], &[2, 2], "batch_dims 3 is out of range for ranks 3 and 2: allowed -2..=2"),
            refused(
                version,
                -3,
                &[2, 3, 4],
                &[2, 2],
                "batch_dims -3 is out of range for ranks 3 and 2: allowed -2..=2",
            ),
            refused(version, 2, &[2], &[2, 2, 2], "batch_dims 2 is out of range for ranks 1 and 3: allowed -3..=1"),
            // Two of three, of which the data has one.
            refused(version, -1, &[2], &[2, 2, 2], "batch_dims -1 is out of range for ranks 1 and 3: allowed -3..=1"),
            refused(version, 1, &[2, 3], &[], "batch_dims 1 is out of range for ranks 2 and 0: allowed 0..=0"),
            refused(version, -1, &[2, 3], &[], "batch_dims -1 is out of range for ranks 2 and 0: allowed 0..=0"),
            refused(
                version,
                i64::MAX,
                &[2, 3, 4],
                &[2, 2],
                "batch_dims 9223372036854775807 is out of range for ranks 3 and 2: allowed -2..=2",
            ),
            refused(
                version,
                i64::MIN,
                &[2, 3, 4],
                &[2, 2],
                "batch_dims -9223372036854775808 is out of range for ranks 3 and 2: allowed -2..=2",
            ),
        ]
    });
    assert_as_expected(cases.collect::<Vec<_>>());
}

#[test]
fn batch_dims_before_the_axis() {
    let refused = |given: i64, axis: i64, text: &str| {
        let node = Node {
            attributes: vec![int("batch_dims", given)],
            indices: zeros(&[2, 3]),
            axis: Tensor::scalar(axis),
            ..good()
        };
        let place = at(8, |p| {
            p.attribute = Some("batch_dims".into());
            p.value = Some(given.into());
            p.axis = Some(axis);
        });
        refused(text, node, Kind::Model, text, place)
    };
    assert_as_expected([
        refused(1, 0, "batch_dims 1 is beyond the axis 0: it may not be"),
        refused(2, 1, "batch_dims 2 is beyond the axis 1: it may not be"),
        // Both count from the end: the axis from that of data, of rank 3, the others from that of indices, of rank 2.
        refused(2, -2, "batch_dims 2 is beyond the axis 1: it may not be"),
        refused(-1, 0, "batch_dims -1, which is 1, is beyond the axis 0: it may not be"),
    ]);
}

#[test]
fn batch_dimensions_that_are_equal() {
    let refused = |data: &[usize], indices: &[usize], d: usize| {
        let node = Node {
            attributes: vec![int("batch_dims", 2)],
            data: floats(data),
            indices: zeros(indices),
            axis: Tensor::scalar(2i64),
            ..good()
        };
        let place = at(8, |p| {
            p.parameter = Some("indices".into());
            p.axis = Some(d as i64);
            p.size = Some(data[d]);
            p.value = Some(indices[d] as i128);
        });
        let text = format!(
            "batch dimension {d} is {} in \"data\" and {} in \"indices\": they must be equal",
            data[d], indices[d]
        );
        refused(&text, node, Kind::Input, &text, place)
    };
    assert_as_expected([
        refused(&[2, 3, 4], &[3, 3, 1], 0),
        refused(&[2, 3, 4], &[2, 4, 1], 1),
        refused(&[1, 3, 4], &[2, 3, 1], 0),
        refused(&[2, 3, 4], &[2, 1, 1], 1),
        refused(&[2, 0, 4], &[2, 1], 1),
        refused(&[0, 3, 4], &[2, 3], 0),
    ]);
}

#[test]
fn any_index_on_an_empty_axis() {
    for version in [1, 7] {
        let node = Node { opset: version, data: floats(&[2, 0, 4]), ..good() };
        let place = at(version, |p| {
            (p.parameter, p.axis, p.size) = (Some("indices".into()), Some(1), Some(0));
            (p.value, p.position) = (Some(0), Some(vec![0, 0]));
        });
        let text = "indices[0, 0] = 0 is out of range for axis 1 of \"data\", which has 0 entries: no index is allowed";
        assert_as_expected([refused("empty", node, Kind::Input, text, place)]);
    }
    let output = Node { data: floats(&[2, 0, 4]), ..good() }.run().unwrap();
    assert_eq!(output, floats(&[2, 2, 2, 4]));
}

#[test]
fn wrong_nodes() {
    let refused = |name: &str, node: Node, kind, text: &str, place: Place| {
        let version = place.version.map_or(String::new(), |version| format!("-{version}"));
        let text = format!("node \"node\" ({DOMAIN}::{}{version}): {text}", place.operator.as_deref().unwrap());
        difference_at(name, node.run(), kind, &text, &place)
    };
    assert_as_expected([
        refused(
            "batch_dims under version 1",
            Node { opset: 6, attributes: vec![int("batch_dims", 0)], ..good() },
            Kind::Model,
            "attribute \"batch_dims\" is not one of the operator's: it has none",
            at(1, |p| p.attribute = Some("batch_dims".into())),
        ),
        refused(
            "axis as an attribute",
            Node { attributes: vec![int("axis", 0)], ..good() },
            Kind::Model,
            "attribute \"axis\" is not one of the operator's: it has batch_dims",
            at(8, |p| p.attribute = Some("axis".into())),
        ),
        refused(
            "batch_dims of another kind",
            Node { attributes: vec![float("batch_dims", 1.0)], ..good() },
            Kind::Model,
            "attribute \"batch_dims\": it is of kind FLOAT: INT is needed",
            at(8, |p| p.attribute = Some("batch_dims".into())),
        ),
        refused(
            "float indices",
            Node { indices: floats(&[2]), ..good() },
            Kind::Model,
            "\"indices\" has element type float32: allowed uint8, int8, uint16, int16, int32, int64, uint32, uint64",
            at(8, |p| p.parameter = Some("indices".into())),
        ),
        refused(
            "float axis",
            Node { opset: 1, axis: floats(&[]), ..good() },
            Kind::Model,
            "\"axis\" has element type float32: allowed uint8, int8, uint16, int16, int32, int64, uint32, uint64",
            at(1, |p| p.parameter = Some("axis".into())),
        ),
        refused(
            "int4 indices",
            Node { opset: 7, indices: Tensor::new(DType::Int4, &[1], vec![0]).unwrap(), ..good() },
            Kind::Model,
            "\"indices\" has element type int4: allowed uint8, int8, uint16, int16, int32, int64, uint32, uint64",
            at(7, |p| p.parameter = Some("indices".into())),
        ),
        refused(
            "no axis",
            Node { change: |graph| drop(graph.node[0].input.pop()), ..good() },
            Kind::Model,
            "2 inputs given: the operator has (data, indices, axis)",
            at(8, |p| p.value = Some(2)),
        ),
        refused(
            "no axis, by an empty name",
            Node { change: |graph| graph.node[0].input[2].clear(), ..good() },
            Kind::Model,
            "input 2, \"axis\", is left out, but required",
            at(8, |p| p.parameter = Some("axis".into())),
        ),
        refused(
            "four inputs",
            Node { change: |graph| graph.node[0].input.push("axis".into()), ..good() },
            Kind::Model,
            "4 inputs given: the operator has (data, indices, axis)",
            at(8, |p| p.value = Some(4)),
        ),
        refused(
            "another operator",
            Node { change: |graph| graph.node[0].op_type = Some("GatherElements".into()), ..good() },
            Kind::Unsupported,
            "org.openvinotoolkit::GatherElements is not implemented",
            at(8, |p| (p.operator, p.version) = (Some("GatherElements".into()), None)),
        ),
    ]);
}

#[test]
fn imports_that_are_not_known() {
    let place = |version: i128| {
        let mut place = Place::default();
        (place.domain, place.value) = (Some(DOMAIN.into()), Some(version));
        place
    };
    let import = |version: i64, kind, text| {
        let mut place = place(version.into());
        if version < 1 {
            (place.node_index, place.node, place.operator) = (Some(0), Some("node".into()), Some("Gather".into()));
        }
        difference_at(text, Node { opset: version, ..good() }.run(), kind, text, &place)
    };
    assert_as_expected([
        import(
            17,
            Kind::Unsupported,
            "opset_import has version 17 of domain \"org.openvinotoolkit\": 16 is the newest that is known",
        ),
        import(
            0,
            Kind::Model,
            "node \"node\" (org.openvinotoolkit::Gather): opset_import has version 0 of domain \"org.openvinotoolkit\": versions start at 1",
        ),
        import(
            -1,
            Kind::Model,
            "node \"node\" (org.openvinotoolkit::Gather): opset_import has version -1 of domain \"org.openvinotoolkit\": versions start at 1",
        ),
    ]);
}

#[test]
fn a_version_for_each_import() {
    for opset in 1..=16 {
        let version = [8, 7, 1].into_iter().find(|version| *version <= opset).unwrap();
        let error = Node { opset, axis: Tensor::scalar(9), ..good() }.run().unwrap_err();
        assert_eq!(error.place().version, Some(version), "{opset}");
    }
}
