//! Names and the order of nodes.

use crate::common::proto::{NodeProto, SparseTensorProto, TensorProto, TypeProto, ValueInfoProto, type_proto};
use crate::common::{initializer, node, tensor, value};
use crate::{
    With, at_node, at_value, case, check_loads, check_runs, data, declared, first_node, good, good_feeds, graph_of,
    indices, int64, load, load_with,
};
use onnxref::{DType, Dim, Kind, LoadOptions, Model, Place, Tensor};
use prost::Message;

fn named_node(name: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto { name: Some(name.into()), ..node("Gather", inputs, &[output], vec![]) }
}

/// The place of a node that is not the first.
fn at_second() -> Place {
    at_node("Gather", 13).with(|p| (p.node_index, p.node) = (Some(1), Some("second".into())))
}

#[test]
fn a_name_is_given_once() {
    check_loads([
        case(
            "by two inputs",
            |m| graph_of(m).input.push(value("data", DType::Float, None)),
            Kind::Model,
            "the name \"data\" is given twice: by an input of the graph and by an input of the graph",
            at_value("data"),
        ),
        case(
            "by two initializers",
            |m| graph_of(m).initializer = vec![initializer("extra", &data()), initializer("extra", &data())],
            Kind::Model,
            "two initializers are named \"extra\"",
            at_value("extra"),
        ),
        case(
            "by two initializers and an input",
            |m| graph_of(m).initializer = vec![initializer("data", &data()), initializer("data", &data())],
            Kind::Model,
            "two initializers are named \"data\"",
            at_value("data"),
        ),
        case(
            "by two initializers and an input under IR version 3",
            |m| {
                m.ir_version = Some(3);
                graph_of(m).initializer = vec![initializer("data", &data()), initializer("data", &data())];
            },
            Kind::Model,
            "two initializers are named \"data\"",
            at_value("data"),
        ),
        case(
            "by an input and a node",
            |m| graph_of(m).node.push(named_node("second", &["data", "indices"], "data")),
            Kind::Model,
            "node \"second\" (Gather-13): the name \"data\" is given twice: by an input of the graph and by node #1",
            at_second().named("data"),
        ),
        case(
            "by an initializer and a node",
            |m| {
                graph_of(m).initializer.push(initializer("extra", &data()));
                graph_of(m).node.push(named_node("second", &["data", "indices"], "extra"));
            },
            Kind::Model,
            "node \"second\" (Gather-13): the name \"extra\" is given twice: by an initializer and by node #1",
            at_second().named("extra"),
        ),
        case(
            "by two nodes",
            |m| graph_of(m).node.push(named_node("second", &["data", "indices"], "output")),
            Kind::Model,
            "node \"second\" (Gather-13): the name \"output\" is given twice: by node #0 and by node #1",
            at_second().named("output"),
        ),
    ]);
}

#[test]
fn a_name_is_not_empty() {
    check_loads([
        case(
            "input",
            |m| graph_of(m).input.push(value("", DType::Float, None)),
            Kind::Model,
            "an input of the graph has no name",
            Place::default(),
        ),
        case(
            "initializer",
            |m| graph_of(m).initializer.push(initializer("", &data())),
            Kind::Model,
            "an initializer has no name",
            Place::default(),
        ),
        case(
            "output",
            |m| graph_of(m).output.push(value("", DType::Float, None)),
            Kind::Model,
            "the graph's output \"\" is produced by nothing",
            at_value(""),
        ),
    ]);
}

#[test]
fn what_is_used_is_produced_before() {
    check_loads([
        case(
            "never",
            |m| first_node(m).input[1] = "nothing".into(),
            Kind::Model,
            "node \"node\" (Gather-13): input \"nothing\" is produced by nothing",
            at_node("Gather", 13).named("nothing"),
        ),
        case(
            "later",
            |m| {
                first_node(m).input[0] = "late".into();
                graph_of(m).node.push(named_node("second", &["data", "indices"], "late"));
            },
            Kind::Model,
            "node \"node\" (Gather-13): input \"late\" is produced by node #1, which comes later: nodes must be sorted (Compatibility::unsorted_nodes accepts it)",
            at_node("Gather", 13).named("late"),
        ),
        case(
            "by the node itself",
            |m| first_node(m).input[0] = "output".into(),
            Kind::Model,
            "node \"node\" (Gather-13): input \"output\" is produced by the node itself: a cycle",
            at_node("Gather", 13).named("output"),
        ),
        case(
            "by a later node that uses this one's output",
            |m| {
                first_node(m).input[0] = "late".into();
                graph_of(m).node.push(named_node("second", &["output", "indices"], "late"));
            },
            Kind::Model,
            "node \"node\" (Gather-13): 2 nodes form a cycle: \"node\" -> \"second\" -> \"node\"",
            at_node("Gather", 13),
        ),
        case(
            "an output of the graph",
            |m| graph_of(m).output.push(value("nothing", DType::Float, None)),
            Kind::Model,
            "the graph's output \"nothing\" is produced by nothing",
            at_value("nothing"),
        ),
    ]);
}

#[test]
fn each_unknown_name_is_reported() {
    let mut model = good();
    first_node(&mut model).input = vec!["a".into(), "b".into()];
    graph_of(&mut model).output.push(value("c", DType::Float, None));
    let error = load(&model).unwrap_err();
    let texts: Vec<String> = error.causes().iter().map(|cause| cause.to_string()).collect();
    let expected = [
        "node \"node\" (Gather-13): input \"a\" is produced by nothing",
        "node \"node\" (Gather-13): input \"b\" is produced by nothing",
        "the graph's output \"c\" is produced by nothing",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn names_of_nodes_are_free() {
    check_runs(&[
        ("none", |m| first_node(m).name = None),
        ("empty", |m| first_node(m).name = Some(String::new())),
        ("twice", |m| graph_of(m).node.push(named_node("node", &["data", "indices"], "unused"))),
        ("as a value", |m| first_node(m).name = Some("data".into())),
    ]);
    let mut model = good();
    first_node(&mut model).name = None;
    let error = load(&model).unwrap().run(onnxref::inputs! { "data" => data(), "indices" => ndarray::array![0i64, 3] });
    let text = "node #0 (Gather-13): indices[1] = 3 is out of range for axis 0 of \"data\", which has 3 entries: \
                allowed -3..=2";
    assert_eq!(error.unwrap_err().to_string(), text);
}

#[test]
fn what_the_standard_has_and_this_runtime_does_not() {
    fn of_type(value: type_proto::Value) -> ValueInfoProto {
        let r#type = Some(TypeProto { value: Some(value), denotation: None });
        ValueInfoProto { name: Some("extra".into()), r#type, ..ValueInfoProto::default() }
    }
    check_loads([
        case(
            "opaque",
            |m| graph_of(m).input.push(of_type(type_proto::Value::OpaqueType(type_proto::Opaque::default()))),
            Kind::Unsupported,
            "input \"extra\": opaque types are not supported",
            at_value("extra"),
        ),
        case(
            "sparse tensor",
            |m| {
                let values = TensorProto { name: Some("indices".into()), ..TensorProto::default() };
                let graph = graph_of(m);
                graph.input.pop();
                graph
                    .sparse_initializer
                    .push(SparseTensorProto { values: Some(Box::new(values)), ..SparseTensorProto::default() });
            },
            Kind::Model,
            "initializer: sparse tensor \"indices\": it has no indices",
            at_value("indices"),
        ),
    ]);
}

#[test]
fn declared_types_and_dimensions() {
    fn declared(code: i32, dims: &[i64]) -> ValueInfoProto {
        use crate::common::proto::TensorShapeProto;
        use crate::common::proto::tensor_shape_proto::{Dimension, dimension};
        let dim = |&size| Dimension { value: Some(dimension::Value::DimValue(size)), denotation: None };
        let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
        let tensor = type_proto::Tensor { elem_type: Some(code), shape };
        let r#type = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None };
        ValueInfoProto { name: Some("extra".into()), r#type: Some(r#type), ..ValueInfoProto::default() }
    }
    check_loads([
        case(
            "element type",
            |m| graph_of(m).input.push(declared(99, &[])),
            Kind::Model,
            "input \"extra\": elem_type 99 is not an element type",
            at_value("extra").with(|p| p.value = Some(99)),
        ),
        case(
            "two element types",
            |m| {
                graph_of(m).value_info.push(value("output", DType::Double, None));
            },
            Kind::Model,
            "\"output\" is declared as float32 and as float64",
            at_value("output"),
        ),
    ]);
}

#[test]
fn an_input_without_a_type_is_checked_by_the_nodes_that_use_it() {
    let mut model = good();
    graph_of(&mut model).input[1].r#type = None;
    let model: Model = load(&model).unwrap();
    assert_eq!(model.report(), ["input \"indices\" has no type"]);
    model.run(onnxref::inputs! { "data" => data(), "indices" => indices() }).unwrap();
    let error = model.run(onnxref::inputs! { "data" => data(), "indices" => ndarray::array![0f32] }).unwrap_err();
    assert_eq!(error.kind(), Kind::Input);
    assert_eq!(error.place(), &at_node("Gather", 13).parameter("indices"));
    let text = "node \"node\" (Gather-13): \"indices\" has element type float32: allowed int32, int64";
    assert_eq!(error.to_string(), text);
}

#[test]
fn faults_are_the_same_without_optimization() {
    // Nodes of constants that could be computed, each with a fault; the last one reads what they give.
    let faults = |nodes: [NodeProto; 2]| {
        let mut model = good();
        let graph = graph_of(&mut model);
        graph.node = nodes.into();
        let odd = Tensor::new(DType::Float8e5m2, &[3], vec![0; 3]).unwrap();
        for (name, tensor) in [("odd", &odd), ("floats", &data()), ("rows", &indices())] {
            graph.initializer.push(initializer(name, tensor));
        }
        let bytes = model.encode_to_vec();
        [true, false].map(|optimize| {
            let error = Model::options().optimize(optimize).from_bytes(bytes.clone()).unwrap_err();
            error.causes().iter().map(|cause| cause.to_string()).collect::<Vec<_>>()
        })
    };
    let wrong_type =
        faults([named_node("a", &["odd", "rows"], "given"), named_node("b", &["given", "rows"], "output")]);
    assert_eq!(wrong_type[0].len(), 1, "{wrong_type:?}");
    assert_eq!(wrong_type[0], wrong_type[1]);
    let given_twice =
        faults([named_node("a", &["floats", "rows"], "rows"), named_node("b", &["data", "rows"], "output")]);
    assert_eq!(given_twice[0].len(), 1, "{given_twice:?}");
    assert_eq!(given_twice[0], given_twice[1]);
}

#[test]
fn a_model_within_the_limits_is_within_them_without_optimization_too() {
    let mut model = good();
    let graph = graph_of(&mut model);
    let picks = Tensor::from_array(ndarray::Array::<i64, _>::zeros(1000));
    graph.initializer.extend([initializer("floats", &data()), initializer("picks", &picks)]);
    let computed = (0..10).map(|k| named_node("", &["floats", "picks"], &format!("computed {k}")));
    let run = (0..100).map(|k| named_node("", &["data", "indices"], &format!("run {k}")));
    graph.node.extend(computed.chain(run));
    graph.output.extend((0..100).map(|k| value(&format!("run {k}"), DType::Float, None)));
    let bytes = model.encode_to_vec();
    for load_bytes in (10_000..500_000).step_by(10_000) {
        let options = Model::options().change_limits(|limits| limits.load_bytes = load_bytes);
        let [one, other] =
            [true, false].map(|optimize| options.clone().optimize(optimize).from_bytes(bytes.clone()).map(|_| ()));
        assert_eq!(one.map_err(|e| e.to_string()), other.map_err(|e| e.to_string()), "{load_bytes}");
    }
}

/// What follows from declared shapes and constants needs no node: `output = Reshape(data, Shape(Flatten(data)))`.
#[test]
fn shapes_that_are_known_are_computed_at_load() {
    let mut model = good();
    let shape = tensor("value", &int64(&[1], &[-1]));
    graph_of(&mut model).node = vec![
        node("Identity", &["data"], &["same"], vec![]),
        node("Shape", &["same"], &["shape"], vec![]),
        node("Constant", &[], &["all"], vec![shape]),
        node("Reshape", &["same", "all"], &["flat"], vec![]),
        node("Reshape", &["flat", "shape"], &["output"], vec![]),
    ];
    graph_of(&mut model).output[0] = declared("output", DType::Float, &[3, 2]);
    graph_of(&mut model).output.push(declared("shape", DType::Int64, &[2]));
    let optimized = load(&model).unwrap();
    let names: Vec<&str> = optimized.nodes().map(|node| node.operator).collect();
    assert_eq!(names, ["Reshape", "Reshape"]);
    let plain = load_with(LoadOptions::default().optimize(false), &model).unwrap();
    assert_eq!(plain.nodes().len(), 5);
    for model in [optimized, plain] {
        let outputs = model.run(good_feeds()).unwrap();
        assert_eq!((&outputs["output"], &outputs["shape"]), (&data(), &int64(&[2], &[3, 2])));
    }
    // A size that only a run shows is not.
    graph_of(&mut model).input[0] = value("data", DType::Float, Some(&[Dim::Symbol("N".into()), Dim::Fixed(2)]));
    assert_eq!(load(&model).unwrap().nodes().len(), 3);
}
