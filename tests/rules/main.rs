//! Every rule whose breach is an error: the error's text, kind and place.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;

mod attributes;
mod axes;
mod bodies;
mod custom;
mod departures;
mod external;
mod face;
mod feeds;
mod file;
mod flex_attention;
mod functions;
mod gather;
mod gather_elements;
mod gather_nd;
mod graph;
mod initializers;
mod ledger;
mod limits;
mod operators;
mod opsets;
mod outputs;
mod scale;
mod security;
mod table;
mod tensors;
mod values;

use common::differences::{assert_as_expected, difference_at};
use common::proto::attribute_proto::AttributeType;
use common::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use common::{attribute, node, string, value};
use ndarray::{Array, IxDyn, array};
use onnxref::{DType, Dim, Error, Inputs, Kind, LoadOptions, Model, Outputs, Place, Tensor, inputs};
use prost::Message;

/// `output = Gather(data, indices)` under opset 13 and IR version 8: `data` is float [3, 2], `indices` int64 [2].
fn good() -> ModelProto {
    let gather = node("Gather", &["data", "indices"], &["output"], vec![]);
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![import("", 13)],
        graph: Some(GraphProto {
            name: Some("graph".into()),
            node: vec![NodeProto { name: Some("node".into()), ..gather }],
            input: vec![declared("data", DType::Float, &[3, 2]), declared("indices", DType::Int64, &[2])],
            output: vec![declared("output", DType::Float, &[2, 2])],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

/// The domain of [`gradient`].
const TRAINING: &str = "ai.onnx.preview.training";

/// A node of an operator of the standard that doesn't run.
fn gradient(input: &str, output: &str) -> NodeProto {
    let names = vec![input.as_bytes().to_vec().into()];
    let xs = AttributeProto { strings: names, ..attribute("xs", AttributeType::Strings) };
    let gradient = node("Gradient", &[input], &[output], vec![xs, string("y", input)]);
    NodeProto { domain: Some(TRAINING.into()), ..gradient }
}

/// What [`good`] takes.
fn data() -> Tensor {
    iota(&[3, 2])
}

/// What [`good`] takes.
fn indices() -> Tensor {
    int64(&[2], &[2, 0])
}

fn good_feeds() -> Inputs<'static> {
    inputs! { "data" => data(), "indices" => indices() }
}

/// What [`good`] gives.
fn good_output() -> Tensor {
    array![[4f32, 5.0], [0.0, 1.0]].into()
}

fn load(model: &ModelProto) -> Result<Model, Error> {
    load_with(Model::options(), model)
}

fn load_with(options: LoadOptions, model: &ModelProto) -> Result<Model, Error> {
    options.from_bytes(model.encode_to_vec())
}

fn load_and_run(model: &ModelProto, feeds: Inputs<'_>) -> Result<Outputs, Error> {
    load(model)?.run(feeds)
}

/// Floats that say where each came from: its place in row-major order.
fn iota(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    Array::from_shape_vec(IxDyn(shape), (0..count).map(|k| k as f32).collect()).unwrap().into()
}

fn int64(shape: &[usize], values: &[i64]) -> Tensor {
    Array::from_shape_vec(IxDyn(shape), values.to_vec()).unwrap().into()
}

fn named(name: &str, node: NodeProto) -> NodeProto {
    NodeProto { name: Some(name.into()), ..node }
}

fn import(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

fn declared(name: &str, dtype: DType, shape: &[usize]) -> ValueInfoProto {
    let dims: Vec<Dim> = shape.iter().map(|&dim| Dim::Fixed(dim)).collect();
    value(name, dtype, Some(&dims))
}

fn graph_of(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().unwrap()
}

fn first_node(model: &mut ModelProto) -> &mut NodeProto {
    &mut graph_of(model).node[0]
}

/// A change to [`good`].
type Change = fn(&mut ModelProto);

/// A change to [`good`] that makes it wrong, and the one error that loading it gives.
struct Case {
    name: &'static str,
    change: Change,
    kind: Kind,
    text: &'static str,
    place: Place,
}

fn case(name: &'static str, change: Change, kind: Kind, text: &'static str, place: Place) -> Case {
    Case { name, change, kind, text, place }
}

/// Loading fails as each case says.
fn check_loads(cases: impl IntoIterator<Item = Case>) {
    assert_as_expected(cases.into_iter().map(|case| {
        let mut model = good();
        (case.change)(&mut model);
        difference_at(case.name, load(&model), case.kind, case.text, &case.place)
    }));
}

/// Each change to [`good`] leaves it a model that runs and gives the same.
fn check_runs(cases: &[(&str, Change)]) {
    for (name, change) in cases {
        let mut model = good();
        change(&mut model);
        let outputs = load_and_run(&model, good_feeds()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(outputs["output"], good_output(), "{name}");
    }
}

/// The place of the node "node", which is the first.
fn at_node(operator: &str, version: impl Into<Option<i64>>) -> Place {
    Place::default().with(|p| {
        p.node_index = Some(0);
        p.node = Some("node".into());
        p.operator = Some(operator.into());
        p.domain = Some(String::new());
        p.version = version.into();
    })
}

/// The place of a value: an input, an output, an initializer.
fn at_value(name: &str) -> Place {
    Place::default().named(name)
}

trait With {
    fn with(self, fill: impl FnOnce(&mut Place)) -> Place;
    /// About a value of the graph.
    fn named(self, value_name: &str) -> Place;
    /// About a formal input or output of the operator.
    fn parameter(self, name: &str) -> Place;
}

impl With for Place {
    fn with(mut self, fill: impl FnOnce(&mut Place)) -> Place {
        fill(&mut self);
        self
    }

    fn named(self, value_name: &str) -> Place {
        self.with(|p| p.value_name = Some(value_name.into()))
    }

    fn parameter(self, name: &str) -> Place {
        self.with(|p| p.parameter = Some(name.into()))
    }
}

#[test]
fn the_good_model_is_good() {
    check_runs(&[("as it is", |_| {})]);
}
