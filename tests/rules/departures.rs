//! Departures from the standard that a caller may accept, departures that are only noted, and missing operators.

use crate::bodies::body;
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::tensor_shape_proto::dimension::Value as Dimension;
use crate::common::proto::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, type_proto};
use crate::common::{attribute, initializer, int, ints, node, run_one_with, tensor, value};
use crate::{TRAINING, first_node, good, good_feeds, good_output, gradient, graph_of, import, load, load_with, named};
use onnxref::operator::{Call, Operator, Values};
use onnxref::{Compatibility, DType, Dim, Kind, Limits, LoadOptions, Model, Remedy, Result, Tensor};
use prost::Message;

fn allowing(name: &str) -> LoadOptions {
    Model::options().compatibility(|c| c.allow(name).unwrap())
}

/// The model is refused, and loads where the departure is accepted.
fn refused_unless_allowed(model: &ModelProto, name: &'static str, message: &str) -> Model {
    let error = load(model).unwrap_err();
    assert_eq!((error.kind(), error.remedy()), (Kind::Model, Some(Remedy::Allow(name))), "{error}");
    assert_eq!(format!("{error:#}"), message);
    assert!(error.to_string().contains(&format!(" (Compatibility::{name} accepts it)")), "{error}");
    load_with(allowing(name), model).unwrap()
}

fn gather(name: &str, inputs: [&str; 2], output: &str) -> NodeProto {
    named(name, node("Gather", &inputs, &[output], vec![]))
}

#[test]
fn departures_have_names() {
    assert!(
        Compatibility::NAMES
            .iter()
            .all(|(name, what)| !what.is_empty() && Compatibility::default().allow(name).is_ok())
    );
    let error = Compatibility::default().allow("anything").unwrap_err();
    assert!(error.to_string().starts_with("there is no departure \"anything\": those known are gather_1_"), "{error}");
    let mut limits = Limits::default();
    for name in Limits::NAMES {
        limits.set(name, 1).unwrap();
    }
    assert_eq!((limits.file_bytes, limits.nodes, limits.run_work), (1, 1, 1));
    assert_eq!(limits.set("bytes", 1).unwrap_err().kind(), Kind::Input);
}

#[test]
fn unsorted_nodes() {
    let mut model = good();
    graph_of(&mut model).node = vec![
        gather("last", ["b", "turn"], "output"),
        gather("first", ["data", "turn"], "a"),
        gather("middle", ["a", "turn"], "b"),
    ];
    graph_of(&mut model).initializer.push(initializer("turn", &Tensor::from(vec![2i64, 0, 1])));
    let text = "node \"last\" (Gather-13): input \"b\" is produced by node #2, which comes later: nodes must be sorted";
    let model = refused_unless_allowed(&model, "unsorted_nodes", text);
    // Those that could run come in the order of the file.
    let order: Vec<&str> = model.nodes().map(|node| node.name).collect();
    assert_eq!(order, ["first", "middle", "last"]);
    assert_eq!(model.run(good_feeds()).unwrap()["output"], crate::data());
}

#[test]
fn a_cycle_is_told_by_its_nodes() {
    let mut model = good();
    let nodes = &mut graph_of(&mut model).node;
    nodes.push(gather("behind", ["c", "indices"], "d"));
    nodes.push(gather("one", ["c", "indices"], "a"));
    nodes.push(gather("", ["a", "indices"], "b"));
    nodes.push(gather("three", ["b", "indices"], "c"));
    for options in [Model::options(), allowing("unsorted_nodes")] {
        let error = load_with(options, &model).unwrap_err();
        let text = "node \"one\" (Gather-13): 3 nodes form a cycle: \"one\" -> #3 -> \"three\" -> \"one\"";
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Model, text));
    }
    // A long one is cut.
    let mut model = good();
    for k in 0..1000 {
        let (from, to) = (format!("v{k}"), format!("v{}", (k + 1) % 1000));
        graph_of(&mut model).node.push(gather(&format!("n{k}"), [&from, "indices"], &to));
    }
    let error = load(&model).unwrap_err().to_string();
    assert!(error.starts_with("node \"n0\" (Gather-13): 1000 nodes form a cycle: \"n0\" -> \"n1\" -> "), "{error}");
    assert!(error.ends_with("\"n7\" -> …"), "{error}");
}

#[test]
fn undeclared_domains() {
    let mut model = good();
    model.opset_import = vec![import("ai.onnx.ml", 5)];
    let text = "node \"node\" (Gather): the model doesn't import the domain \"ai.onnx\"";
    let model = refused_unless_allowed(&model, "undeclared_domains", text);
    assert_eq!(model.nodes().next().unwrap().version, 13);
    assert_eq!(model.run(good_feeds()).unwrap()["output"], good_output());
}

#[test]
fn newer_operators() {
    let mut model = good();
    model.opset_import = vec![import("", 10)];
    first_node(&mut model).op_type = Some("GatherElements".into());
    let indices = Tensor::from_array(ndarray::array![[2i64, 0]]);
    graph_of(&mut model).input.pop();
    graph_of(&mut model).initializer.push(initializer("indices", &indices));
    let text = "node \"node\" (GatherElements): GatherElements is not in opset 10: it came with opset 11";
    let model = refused_unless_allowed(&model, "newer_operators", text);
    assert_eq!(model.nodes().next().unwrap().version, 11);
    let outputs = model.run(onnxref::inputs! { "data" => crate::data() }).unwrap();
    assert_eq!(outputs["output"], Tensor::from_array(ndarray::array![[4f32, 1.0]]));
}

#[test]
fn what_is_only_noted() {
    let notes = |change: fn(&mut ModelProto), notes: &[&str]| {
        let mut model = good();
        change(&mut model);
        let model = load(&model).unwrap_or_else(|error| panic!("{notes:?}: {error}"));
        assert_eq!(model.report(), notes);
        assert_eq!(model.run(good_feeds()).unwrap()["output"], good_output());
        model
    };
    let highest = notes(
        |m| m.opset_import = vec![import("", 13), import("ai.onnx", 11), import("", 0)],
        &[
            "opset_import has versions 11 and 13 of domain \"ai.onnx\": 13 counts",
            "opset_import has versions 0 and 13 of domain \"ai.onnx\": 13 counts",
        ],
    );
    assert_eq!(highest.opsets(), [(String::new(), 13)]);
    notes(
        |m| m.opset_import.push(import("com.example", 0)),
        &["opset_import has version 0 of domain \"com.example\": versions start at 1"],
    );
    let unknown = notes(
        |m| {
            let input = value("data", DType::Float, Some(&[Dim::Fixed(3), Dim::Fixed(2)]));
            graph_of(m).input[0] = input;
            let kind = graph_of(m).input[0].r#type.as_mut().unwrap().value.as_mut().unwrap();
            let type_proto::Value::TensorType(tensor) = kind else { unreachable!() };
            tensor.shape.as_mut().unwrap().dim[0].value = Some(Dimension::DimValue(-1));
        },
        &["input \"data\" is declared with a negative dimension: its size is unknown"],
    );
    assert_eq!(unknown.inputs().next().unwrap().shape.as_deref(), Some(&[Dim::Unknown, Dim::Fixed(2)][..]));
}

/// PyTorch's exporter wrote negative axes below opset 11, where the texts have none.
#[test]
fn negative_axes() {
    let data = Tensor::from_elements::<f32>(&[3, 1, 1], vec![1.0, 2.0, 3.0]).unwrap();
    for (operator, opsets, axes, shape) in [
        ("Squeeze", &[1, 10][..], ints("axes", &[-1]), &[3, 1][..]),
        ("Unsqueeze", &[1, 10], ints("axes", &[-4]), &[1, 3, 1, 1]),
        ("Flatten", &[1, 8, 9, 10], int("axis", -3), &[1, 3]),
    ] {
        for opset in opsets {
            let run = |options| run_one_with(&options, operator, *opset, vec![axes.clone()], &[("data", &data)]);
            let error = run(Model::options()).unwrap_err();
            assert_eq!((error.kind(), error.remedy()), (Kind::Model, Some(Remedy::Allow("negative_axes"))), "{error}");
            assert_eq!(run(allowing("negative_axes")).unwrap().shape(), shape, "{operator} {opset}");
        }
    }
    let beyond = |options| run_one_with(&options, "Squeeze", 10, vec![ints("axes", &[-4])], &[("data", &data)]);
    let error = beyond(Model::options()).unwrap_err();
    assert!(
        error.remedy().is_none() && error.to_string().ends_with("axis -4 is out of range: allowed 0..=2"),
        "{error}"
    );
    let error = beyond(allowing("negative_axes")).unwrap_err();
    assert!(error.to_string().ends_with("axis -4 is out of range: allowed -3..=2"), "{error}");
}

/// PyTorch's exporter leaves out the axis of the parts, of which real signals have one.
#[test]
fn stft_rank_2() {
    let signal = |shape: &[usize]| Tensor::from_elements::<f32>(shape, (0..12).map(|k| k as f32).collect()).unwrap();
    let (step, window) = (Tensor::scalar(2i64), Tensor::from(vec![1f32, 2.0, 1.0, 0.5]));
    let run = |options, signal: Tensor| {
        let inputs = [("signal", &signal), ("frame_step", &step), ("window", &window)];
        run_one_with(&options, "STFT", 17, vec![], &inputs)
    };
    let error = run(Model::options(), signal(&[2, 6])).unwrap_err();
    assert_eq!((error.kind(), error.remedy()), (Kind::Input, Some(Remedy::Allow("stft_rank_2"))), "{error}");
    let spectra = run(Model::options(), signal(&[2, 6, 1])).unwrap();
    assert_eq!(run(allowing("stft_rank_2"), signal(&[2, 6])).unwrap(), spectra);
    assert_eq!(run(allowing("stft_rank_2"), signal(&[2, 6, 1])).unwrap(), spectra);
    let error = run(allowing("stft_rank_2"), signal(&[12])).unwrap_err();
    assert!(error.remedy().is_none() && error.to_string().ends_with("rank 1: allowed rank 3"), "{error}");
}

/// The text ignores `keepdims` where `split` is given; PyTorch's exporter gives the default, and means that it counts.
#[test]
fn split_to_sequence_keepdims() {
    let ran = |options: LoadOptions, split: &Tensor, keepdims: i64| {
        let mut model = good();
        let graph = graph_of(&mut model);
        let attributes = vec![int("keepdims", keepdims)];
        graph.node = vec![
            named("split", node("SplitToSequence", &["data", "sizes"], &["parts"], attributes)),
            node("SequenceAt", &["parts", "zero"], &["output"], vec![]),
        ];
        graph.output = vec![value("output", DType::Float, None)];
        graph.initializer = vec![initializer("sizes", split), initializer("zero", &Tensor::scalar(0i64))];
        let model = load_with(options, &model).unwrap();
        let (shape, notes) = (model.run(good_feeds()).unwrap()["output"].shape().to_vec(), model.report().to_vec());
        (shape, notes)
    };
    let name = "split_to_sequence_keepdims";
    let one = Tensor::scalar(1i64);
    let note = "node \"split\" (SplitToSequence-11): keepdims is ignored, as split is given (the departure \
                split_to_sequence_keepdims obeys it)";
    assert_eq!(ran(Model::options(), &one, 0), (vec![1, 2], vec![note.to_string()]));
    assert_eq!(ran(allowing(name), &one, 0), (vec![2], vec![]));
    assert_eq!(ran(allowing(name), &one, 1), (vec![1, 2], vec![]));
    // Other sizes leave nothing to drop.
    for sizes in [Tensor::scalar(2i64), Tensor::from(vec![1i64, 2])] {
        let shape = if sizes.rank() == 0 { vec![2, 2] } else { vec![1, 2] };
        assert_eq!(ran(allowing(name), &sizes, 0), (shape, vec![]));
    }
}

/// A line for each operator, however many nodes it has.
#[test]
fn negative_axes_of_old_versions_are_noted() {
    let mut model = good();
    model.opset_import = vec![import("", 10)];
    let softmax =
        |name, input: &str, output: &str| named(name, node("Softmax", &[input], &[output], vec![int("axis", -1)]));
    let branch = |name| body(name, &[], vec![softmax("inner", "b", "c")], &["c"]);
    let branches = vec![branch("then_branch"), body("else_branch", &[], vec![], &["b"])];
    let concat = node("Concat", &["data", "data"], &["wide"], vec![int("axis", -1)]);
    let graph = graph_of(&mut model);
    graph.node.extend([
        softmax("first", "data", "a"),
        softmax("second", "a", "b"),
        concat,
        node("If", &["true"], &["d"], branches),
        node("Softmax", &["data"], &["e"], vec![int("axis", 1)]),
    ]);
    graph.initializer.push(initializer("true", &Tensor::scalar(true)));
    let notes = [
        "node \"first\" (Softmax-1): an axis is negative, of which the text of this version says nothing: it counts from the \
         end (3 nodes)",
        "node #3 (Concat-4): an axis is negative, of which the text of this version says nothing: it counts from the end",
    ];
    assert_eq!(load(&model).unwrap().report(), notes);
    assert_eq!(load_with(Model::options().optimize(false), &model).unwrap().report(), notes);
    assert_eq!(Model::options().inspect_bytes(model.encode_to_vec()).unwrap().notes, notes);
    // With a fault too.
    graph_of(&mut model).node.push(node("Identity", &["nothing"], &["f"], vec![]));
    assert_eq!(Model::options().inspect_bytes(model.encode_to_vec()).unwrap().notes, notes);
}

/// No input says that Constant-1 gives integers, which its text doesn't list.
#[test]
fn output_types_of_later_versions_are_noted() {
    let mut model = good();
    model.opset_import = vec![import("", 8)];
    let constant = |name, value: Tensor| named(name, node("Constant", &[], &[name], vec![tensor("value", &value)]));
    let values = [Tensor::scalar(1.5f32), Tensor::scalar(7i64), Tensor::scalar(true)];
    graph_of(&mut model).node.extend(["float", "whole", "truth"].iter().zip(values).map(|(name, v)| constant(name, v)));
    let note = "node \"whole\" (Constant-1): an output has a type that the text of this version doesn't list: it is \
                computed as later (2 nodes)";
    assert_eq!(load(&model).unwrap().report(), [note]);
    model.opset_import = vec![import("", 9)];
    assert_eq!(load(&model).unwrap().report(), [""; 0]);
}

#[test]
fn a_tensor_without_elements_may_have_any_shape() {
    let mut model = good();
    let empty = Tensor::from_elements::<f32>(&[1 << 62, 0, 1 << 62], vec![]).unwrap();
    graph_of(&mut model).initializer.push(initializer("empty", &empty));
    graph_of(&mut model).node.push(gather("pick", ["empty", "indices"], "picked"));
    graph_of(&mut model).output.push(value("picked", DType::Float, None));
    let outputs = load(&model).unwrap().run(good_feeds()).unwrap();
    assert_eq!(outputs["picked"].shape(), [2, 0, 1 << 62]);
}

#[test]
fn a_function_is_asked_before_the_standard_whatever_came_earlier() {
    // Gather[v2] of the model gives its input; a plain Gather came before.
    let v2 = FunctionProto {
        name: Some("Gather".into()),
        overload: Some("v2".into()),
        input: vec!["x".into(), "i".into()],
        output: vec!["y".into()],
        node: vec![node("Gather", &["x", "turn"], &["y"], vec![])],
        opset_import: vec![import("", 13)],
        ..FunctionProto::default()
    };
    let mut called = node("Gather", &["a", "indices"], &["output"], vec![]);
    called.overload = Some("v2".into());
    let mut v2 = v2;
    v2.node[0] = node("Gather", &["x", "i"], &["z"], vec![]);
    v2.node.push(node("Gather", &["z", "i"], &["y"], vec![]));
    let mut model = good();
    graph_of(&mut model).node = vec![node("Gather", &["data", "indices"], &["a"], vec![]), called];
    model.functions = vec![v2];
    let model = load(&model).unwrap();
    assert_eq!(model.nodes().filter(|node| node.function.is_some()).count(), 2);
}

/// `n` nodes that need `Gradient`, one that needs `ATen`, two of a domain without a table, of which one has subgraphs with a
/// node each.
fn needy(n: usize) -> ModelProto {
    let branch = |name: &str, nodes: Vec<NodeProto>| AttributeProto {
        g: Some(Box::new(GraphProto { node: nodes, ..GraphProto::default() })),
        ..attribute(name, AttributeType::Graph)
    };
    let mut model = good();
    let nodes = &mut graph_of(&mut model).node;
    nodes.push(named("words", node("ATen", &["output", "indices"], &["p"], vec![])));
    nodes.extend((0..n).map(|k| named(&format!("pool {k}"), gradient("output", &format!("r{k}")))));
    let branches = vec![
        branch("then_branch", vec![named("inner", node("GRUUnit", &["output", "output"], &["m"], vec![]))]),
        branch("else_branch", vec![node("Gather", &["data", "indices"], &["g"], vec![])]),
    ];
    let own = |node: NodeProto| NodeProto { domain: Some("com.example".into()), ..node };
    nodes.push(own(named("either", node("Either", &["c"], &["i"], branches))));
    nodes.push(own(named("own", node("Own", &["output"], &["o"], vec![]))));
    model.opset_import.extend([import("com.example", 1), import(TRAINING, 1)]);
    model
}

#[test]
fn missing_operators_are_all_counted() {
    let error = load(&needy(5000)).unwrap_err();
    // The input of Either is produced by nothing, which is a fault of the model.
    assert_eq!((error.kind(), error.fault_count()), (Kind::Model, 6));
    let mut model = needy(5000);
    graph_of(&mut model).initializer.push(initializer("c", &Tensor::from(vec![true])));
    let error = load(&model).unwrap_err();
    assert_eq!((error.kind(), error.fault_count(), error.causes().len()), (Kind::Unsupported, 5, 5));
    let needs = error.needs().unwrap();
    let text = "needs 5 operators that are not implemented (of 6; 5,004 of 5,006 nodes)";
    assert_eq!(needs.to_string(), text);
    assert_eq!(
        error.to_string(),
        format!(
            "the model {text}: ai.onnx.preview.training::Gradient-1, ATen, com.example::Either, GRUUnit, com.example::Own"
        )
    );
    let listed: Vec<_> =
        needs.missing.iter().map(|m| (m.to_string(), m.nodes, m.first.node.as_deref().unwrap())).collect();
    let expected = [
        ("ai.onnx.preview.training::Gradient-1", 5000, "pool 0"),
        ("ATen", 1, "words"),
        ("com.example::Either", 1, "either"),
        ("GRUUnit", 1, "inner"),
        ("com.example::Own", 1, "own"),
    ];
    assert_eq!(listed, expected.map(|(label, nodes, first)| (label.to_string(), nodes, first)));
    let inner = &needs.missing[3];
    let around = "node \"either\" (com.example::Either)";
    assert_eq!((inner.version, inner.first.function.as_deref()), (None, Some(around)));
    assert_eq!(needs.missing[4].reason, "domain \"com.example\" is not in the standard and has no operators here");
}

#[test]
fn as_many_missing_operators_as_there_are_nodes() {
    let with = |domain: &str| {
        let mut model = good();
        model.opset_import.push(import("com.example", 1));
        graph_of(&mut model).node.extend((0..20_000).map(|k| {
            let own = node(&format!("Own{k}"), &["output"], &[&format!("o{k}")], vec![]);
            NodeProto { domain: Some(domain.into()), ..own }
        }));
        load(&model).unwrap_err()
    };
    let error = with("com.example");
    let needs = error.needs().unwrap();
    assert_eq!((needs.missing_operators, needs.missing_nodes, needs.operators), (20_000, 20_000, 20_001));
    assert_eq!((error.kind(), error.fault_count()), (Kind::Unsupported, 20_000));
    assert!((100..20_000).contains(&needs.missing.len()) && error.causes().len() == needs.missing.len());
    // What the standard doesn't have is not missing here.
    let error = with("");
    assert!(error.kind() == Kind::Model && error.needs().is_none(), "{error}");
    assert_eq!(error.fault_count(), 20_000);
    assert!(error.to_string().ends_with("(and 19999 more)"), "{error}");
}

#[test]
fn functions_in_subgraphs_of_missing_operators_are_looked_into() {
    let function = |name: &str, nodes: Vec<NodeProto>| FunctionProto {
        name: Some(name.into()),
        domain: Some("own".into()),
        node: nodes,
        opset_import: vec![import("own", 1), import(TRAINING, 1)],
        ..FunctionProto::default()
    };
    let call = |name: &str| NodeProto { domain: Some("own".into()), ..named(name, node(name, &[], &[], vec![])) };
    let mut model = needy(0);
    graph_of(&mut model).initializer.push(initializer("c", &Tensor::from(vec![true])));
    model.opset_import.retain(|import| import.domain.as_deref() != Some(TRAINING));
    model.opset_import.push(import("own", 1));
    // Each is looked into once, under its own opsets, however often it is called.
    model.functions = vec![
        function("Outer", vec![call("Inner"), call("Inner")]),
        function("Inner", vec![named("root", gradient("x", "y"))]),
    ];
    let branch = graph_of(&mut model).node.iter_mut().find(|node| !node.attribute.is_empty()).unwrap();
    branch.attribute[0].g.as_mut().unwrap().node.extend([call("Outer"), call("Outer")]);
    let error = load(&model).unwrap_err();
    let missing = &error.needs().unwrap().missing;
    let root = missing.iter().find(|missing| missing.operator == "Gradient").unwrap();
    assert_eq!(
        (root.to_string().as_str(), root.nodes, root.first.node.as_deref()),
        ("ai.onnx.preview.training::Gradient-1", 1, Some("root"))
    );
    let around =
        "node \"either\" (com.example::Either): in node \"Outer\" (own::Outer): in node \"Inner\" (own::Inner)";
    assert_eq!(root.first.function.as_deref(), Some(around));
}

/// `y = x`
#[derive(Debug)]
struct Same;

impl Operator for Same {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        Ok([call.tensor(0)?.clone().into()].into())
    }
}

#[test]
fn an_own_operator_may_be_newer_too() {
    let mut model = good();
    let mut own = node("Own", &["output"], &["o"], vec![]);
    own.domain = Some("com.example".into());
    graph_of(&mut model).node.push(own);
    model.opset_import.push(import("com.example", 1));
    let bytes = model.encode_to_vec();
    let options = |name: Option<&str>| {
        let schema = "com.example.Own 3\n  (x: T) -> (y: T)\n  T: float";
        let options = Model::options().operator(schema, |_| Ok(Box::new(Same))).unwrap();
        options.compatibility(|c| name.into_iter().for_each(|name| c.allow(name).unwrap()))
    };
    let error = options(None).from_bytes(bytes.clone()).unwrap_err();
    assert_eq!(error.remedy(), Some(Remedy::Allow("newer_operators")));
    assert!(options(Some("newer_operators")).from_bytes(bytes).is_ok());
}
