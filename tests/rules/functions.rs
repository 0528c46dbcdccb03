//! Functions of a model: a call is replaced by the function's nodes, with names of their own.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{AttributeProto, FunctionProto, ModelProto, NodeProto};
use crate::common::{attribute, float, initializer, int, ints, node, value};
use crate::{With, data, good, graph_of, import, indices, int64, iota, load};
use ndarray::array;
use onnxref::{DType, Error, Kind, Limits, Model, Place, Tensor, inputs};
use prost::Message;
use std::time::{Duration, Instant};

/// A function of the domain "own" under opset 13.
fn function(name: &str, inputs: &[&str], outputs: &[&str], nodes: Vec<NodeProto>) -> FunctionProto {
    FunctionProto {
        name: Some(name.into()),
        domain: Some("own".into()),
        input: inputs.iter().map(|name| name.to_string()).collect(),
        output: outputs.iter().map(|name| name.to_string()).collect(),
        node: nodes,
        opset_import: vec![import("", 13), import("own", 1)],
        ..FunctionProto::default()
    }
}

fn gather(inputs: &[&str], output: &str) -> NodeProto {
    node("Gather", inputs, &[output], vec![])
}

/// A node named "call" that calls a function of the domain "own".
fn call(name: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
    NodeProto { name: Some("call".into()), domain: Some("own".into()), ..node(name, inputs, outputs, attributes) }
}

/// `y = Gather(x, i)`.
fn pick() -> FunctionProto {
    function("Pick", &["x", "i"], &["y"], vec![gather(&["x", "i"], "y")])
}

/// `output` of `nodes`, which have `data` (float) and `indices` (int64).
fn model(functions: Vec<FunctionProto>, nodes: Vec<NodeProto>) -> ModelProto {
    let mut model = good();
    model.functions = functions;
    model.opset_import.push(import("own", 1));
    let graph = graph_of(&mut model);
    graph.node = nodes;
    graph.input = vec![value("data", DType::Float, None), value("indices", DType::Int64, None)];
    graph.output = vec![value("output", DType::Float, None)];
    model
}

fn run(model: &ModelProto, data: Tensor, indices: Tensor) -> Result<Tensor, Error> {
    Ok(load(model)?.run(inputs! { "data" => data, "indices" => indices })?["output"].clone())
}

fn picked() -> Tensor {
    array![[4f32, 5.0], [0.0, 1.0]].into()
}

/// The place of the node "call", the first one, which calls a function.
fn at_call(name: &str) -> Place {
    Place::default().with(|p| {
        (p.node_index, p.node) = (Some(0), Some("call".into()));
        (p.operator, p.domain) = (Some(name.into()), Some("own".into()));
    })
}

/// The place of a nameless node inside of the function that "call" calls.
fn inside(function: &str, index: usize, version: impl Into<Option<i64>>) -> Place {
    Place::default().with(|p| {
        p.function = Some(format!("node \"call\" (own::{function})"));
        (p.node_index, p.node) = (Some(index), None);
        (p.operator, p.domain, p.version) = (Some("Gather".into()), Some(String::new()), version.into());
    })
}

fn refused(name: &str, model: &ModelProto, kind: Kind, text: &str, place: Place) {
    assert_as_expected([difference_at(name, load(model), kind, text, &place)]);
}

#[test]
fn a_call_gives_what_the_functions_nodes_give() {
    let model = model(vec![pick()], vec![call("Pick", &["data", "indices"], &["output"], vec![])]);
    assert_eq!(run(&model, data(), indices()).unwrap(), picked());
    let model = load(&model).unwrap();
    let nodes: Vec<_> = model.nodes().collect();
    assert_eq!((nodes.len(), model.node_count()), (1, 1));
    assert_eq!((nodes[0].index, nodes[0].name, nodes[0].operator, nodes[0].version), (0, "", "Gather", 13));
    assert_eq!(nodes[0].function, Some("node \"call\" (own::Pick)"));
}

#[test]
fn functions_call_functions() {
    let outer = function("Outer", &["x", "i"], &["y"], vec![call("Middle", &["x", "i"], &["y"], vec![])]);
    let nodes = vec![call("Pick", &["x", "i"], &["once"], vec![]), call("Pick", &["once", "i"], &["y"], vec![])];
    let middle = function("Middle", &["x", "i"], &["y"], nodes);
    // A function may stand before those that it calls, and after.
    for functions in [vec![outer.clone(), middle.clone(), pick()], vec![pick(), middle.clone(), outer.clone()]] {
        let model = model(functions, vec![call("Outer", &["data", "indices"], &["output"], vec![])]);
        let loaded = load(&model).unwrap();
        let calls = "node \"call\" (own::Outer): in node \"call\" (own::Middle): in node \"call\" (own::Pick)";
        assert!(loaded.nodes().all(|node| node.function == Some(calls)), "{:?}", loaded.nodes().collect::<Vec<_>>());
        assert_eq!(loaded.node_count(), 2);
        // [2, 0] of [2, 0]: entry 2 of two is out of range.
        let error = run(&model, data(), indices()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "in {calls}: node #0 (Gather-13): indices[0] = 2 is out of range for axis 0 of \"data\" \
                 (value \"once\"), which has 2 entries: allowed -2..=1"
            )
        );
        let twice = run(&model, data(), int64(&[3], &[2, 0, 1])).unwrap();
        assert_eq!(twice, array![[2f32, 3.0], [4.0, 5.0], [0.0, 1.0]].into());
    }
}

#[test]
fn functions_nest_5000_deep_on_a_small_stack() {
    const DEPTH: usize = 5000;
    let name = |k: usize| format!("F{k}");
    let mut functions: Vec<FunctionProto> = (0..DEPTH)
        .map(|k| function(&name(k), &["x", "i"], &["y"], vec![call(&name(k + 1), &["x", "i"], &["y"], vec![])]))
        .collect();
    functions.push(FunctionProto { name: Some(name(DEPTH)), ..pick() });
    let model = model(functions, vec![call("F0", &["data", "indices"], &["output"], vec![])]);
    let work = move || {
        let model = load(&model).unwrap();
        let outputs = model.run(inputs! { "data" => data(), "indices" => indices() }).unwrap();
        assert_eq!(outputs["output"], picked());
        let error = model.run(inputs! { "data" => data(), "indices" => int64(&[1], &[7]) }).unwrap_err();
        // The calls in the middle are left out.
        let calls = error.place().function.clone().unwrap();
        assert!(calls.starts_with("node \"call\" (own::F0): .. in ") && calls.len() < 400, "{calls}");
        assert!(calls.ends_with("in node \"call\" (own::F5000)"), "{calls}");
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn names_in_a_function_are_its_own() {
    // Inside, "data", "indices", "output" and "other" are other values than outside.
    let inner = vec![gather(&["output", "other"], "indices"), gather(&["indices", "other"], "data")];
    let odd = function("Odd", &["output", "other"], &["data"], inner);
    let nodes = vec![
        call("Odd", &["data", "indices"], &["other"], vec![]),
        call("Odd", &["other", "indices"], &["output"], vec![]),
    ];
    let model = model(vec![odd], nodes);
    let reversed = int64(&[3], &[1, 2, 0]);
    // Four times a rotation by one is one rotation.
    assert_eq!(run(&model, data(), reversed).unwrap(), array![[2f32, 3.0], [4.0, 5.0], [0.0, 1.0]].into());
}

#[test]
fn a_name_of_the_graph_means_nothing_in_a_function() {
    let reaching = function("Reach", &["x"], &["y"], vec![gather(&["x", "indices"], "y")]);
    let model = model(vec![reaching], vec![call("Reach", &["data"], &["output"], vec![])]);
    let text = "in node \"call\" (own::Reach): node #0 (Gather-13): input \"indices\" is produced by nothing";
    refused("reach", &model, Kind::Model, text, inside("Reach", 0, 13).named("indices"));
}

/// `y = Gather(x, i)` along the axis that the call says.
fn along(default: Option<AttributeProto>) -> FunctionProto {
    let axis = AttributeProto { ref_attr_name: Some("along".into()), ..attribute("axis", AttributeType::Int) };
    let nodes = vec![node("Gather", &["x", "i"], &["y"], vec![axis])];
    let function = function("Along", &["x", "i"], &["y"], nodes);
    match default {
        Some(default) => FunctionProto { attribute_proto: vec![default], ..function },
        None => FunctionProto { attribute: vec!["along".into()], ..function },
    }
}

fn calls_along(default: Option<AttributeProto>, given: Vec<AttributeProto>) -> ModelProto {
    model(vec![along(default)], vec![call("Along", &["data", "indices"], &["output"], given)])
}

#[test]
fn a_node_refers_to_an_attribute_of_the_call() {
    let columns: Tensor = array![[1f32], [3.0], [5.0]].into();
    let row: Tensor = array![[2f32, 3.0]].into();
    let run = |model: ModelProto| run(&model, data(), int64(&[1], &[1])).unwrap();
    assert_eq!(run(calls_along(None, vec![int("along", 1)])), columns);
    assert_eq!(run(calls_along(None, vec![int("along", 0)])), row);
    // Left out, it is left out inside, where Gather's own default rules.
    assert_eq!(run(calls_along(None, vec![])), row);
    assert_eq!(run(calls_along(Some(int("along", 1)), vec![])), columns);
    assert_eq!(run(calls_along(Some(int("along", 1)), vec![int("along", 0)])), row);
    // Handed on from function to function, under other names.
    let axis = AttributeProto { ref_attr_name: Some("outer".into()), ..attribute("along", AttributeType::Int) };
    let nodes = vec![call("Along", &["x", "i"], &["y"], vec![axis])];
    let outer = FunctionProto { attribute: vec!["outer".into()], ..function("Outer", &["x", "i"], &["y"], nodes) };
    let nodes = |given| vec![call("Outer", &["data", "indices"], &["output"], given)];
    assert_eq!(run(model(vec![outer.clone(), along(None)], nodes(vec![int("outer", 1)]))), columns);
    assert_eq!(run(model(vec![outer, along(Some(int("along", 1)))], nodes(vec![]))), columns);
}

#[test]
fn attributes_of_a_call_are_as_the_function_says() {
    let axis = |place: Place| place.with(|p| p.attribute = Some("axis".into()));
    refused(
        "of another kind",
        &calls_along(None, vec![ints("along", &[1])]),
        Kind::Model,
        "in node \"call\" (own::Along): node #0 (Gather-13): attribute \"axis\": \
         it refers to the attribute \"along\", which is of another kind",
        axis(inside("Along", 0, 13)),
    );
    refused(
        "a default of another kind",
        &calls_along(Some(float("along", 1.0)), vec![]),
        Kind::Model,
        "in node \"call\" (own::Along): node #0 (Gather-13): attribute \"axis\": \
         it refers to the attribute \"along\", which is of another kind",
        axis(inside("Along", 0, 13)),
    );
    refused(
        "unknown",
        &calls_along(None, vec![int("axis", 1)]),
        Kind::Model,
        "node \"call\" (own::Along): attribute \"axis\" is not one of the function's",
        axis(at_call("Along")),
    );
    refused(
        "twice",
        &calls_along(None, vec![int("along", 1), int("along", 1)]),
        Kind::Model,
        "node \"call\" (own::Along): attribute \"along\" is given twice",
        at_call("Along").with(|p| p.attribute = Some("along".into())),
    );
    let reference = AttributeProto { ref_attr_name: Some("a".into()), ..attribute("along", AttributeType::Int) };
    refused(
        "a reference outside of a function",
        &calls_along(None, vec![reference]),
        Kind::Model,
        "in node \"call\" (own::Along): node #0 (Gather-13): attribute \"axis\": \
         it refers to an attribute of a function, but is not in one",
        axis(inside("Along", 0, 13)),
    );
}

/// As [`call`], of an overload.
fn overloaded(overload: &str, output: &str) -> NodeProto {
    NodeProto { overload: Some(overload.into()), ..call("Pick", &["data", "indices"], &[output], vec![]) }
}

#[test]
fn overloads_are_functions_of_their_own() {
    let column = node("Gather", &["x", "i"], &["y"], vec![int("axis", 1)]);
    let columns = FunctionProto { overload: Some("columns".into()), node: vec![column], ..pick() };
    let run = |functions: &[FunctionProto], overload| {
        let model = model(functions.to_vec(), vec![overloaded(overload, "output")]);
        run(&model, data(), int64(&[1], &[1]))
    };
    for functions in [[pick(), columns.clone()], [columns.clone(), pick()]] {
        assert_eq!(run(&functions, "").unwrap(), array![[2f32, 3.0]].into());
        assert_eq!(run(&functions, "columns").unwrap(), array![[1f32], [3.0], [5.0]].into());
    }
    let error = run(&[pick(), columns.clone()], "rows").unwrap_err();
    let text = "node \"call\" (own::Pick): the function has no such overload: those of the model are \"\", \"columns\"";
    assert_eq!((error.kind(), error.place(), error.to_string().as_str()), (Kind::Model, &at_call("Pick"), text));
    let error = run(&[columns], "").unwrap_err().to_string();
    assert!(error.ends_with("no such overload: those of the model are \"columns\""), "{error}");
    let overload = |k: usize| FunctionProto { overload: Some(format!("v{k}")), ..pick() };
    let error = run(&[0, 1, 2, 3, 4].map(overload), "").unwrap_err().to_string();
    assert!(error.ends_with("those of the model are \"v0\", \"v1\", \"v2\", \"v3\", …"), "{error}");
}

#[test]
fn a_function_may_have_the_name_and_an_overload_of_an_operator() {
    let mut own =
        function("Gather", &["x", "i"], &["y"], vec![node("Gather", &["x", "i"], &["y"], vec![int("axis", 1)])]);
    (own.domain, own.overload) = (None, Some("v2".into()));
    let plain = gather(&["data", "indices"], "rows");
    let second = NodeProto { overload: Some("v2".into()), ..gather(&["rows", "indices"], "output") };
    for domain in [None, Some("ai.onnx".to_string())] {
        let called = NodeProto { domain: domain.clone(), ..second.clone() };
        let own = FunctionProto { domain, ..own.clone() };
        // Before and after a plain one.
        let last = gather(&["output", "indices"], "again");
        let mut model = model(vec![own], vec![plain.clone(), called, last]);
        assert_eq!(run(&model, data(), int64(&[1], &[0])).unwrap(), array![[0f32]].into());
        graph_of(&mut model).output[0].name = Some("again".into());
        let loaded = load(&model).unwrap();
        let functions: Vec<_> = loaded.nodes().map(|node| node.function).collect();
        assert_eq!(functions, [None, Some("node #1 (Gather)"), None]);
        let outputs = loaded.run(inputs! { "data" => data(), "indices" => int64(&[1], &[0]) }).unwrap();
        assert_eq!(outputs["again"], array![[0f32]].into());
    }
}

#[test]
fn a_function_has_opsets_of_its_own() {
    let negative = int64(&[1], &[-1]);
    let of = |version| FunctionProto { opset_import: vec![import("", version)], ..pick() };
    let nodes = vec![call("Pick", &["data", "indices"], &["inner"], vec![]), gather(&["inner", "indices"], "output")];
    assert_eq!(run(&model(vec![of(11)], nodes.clone()), data(), negative.clone()).unwrap(), array![[4f32, 5.0]].into());
    let error = run(&model(vec![of(1)], nodes.clone()), data(), negative.clone()).unwrap_err();
    assert_eq!(error.kind(), Kind::Input);
    assert_eq!((error.place().version, error.place().value), (Some(1), Some(-1)));
    // And the other way round: the model has 1.
    let mut old = model(vec![of(13)], nodes);
    old.opset_import[0].version = Some(1);
    let error = run(&old, data(), negative).unwrap_err();
    assert_eq!((error.place().version, error.place().node_index), (Some(1), Some(1)));
    assert_eq!(error.place().function, None);

    let none = FunctionProto { opset_import: vec![], ..pick() };
    refused(
        "no opset",
        &model(vec![none], vec![call("Pick", &["data", "indices"], &["output"], vec![])]),
        Kind::Model,
        "in node \"call\" (own::Pick): node #0 (Gather): the model doesn't import the domain \"ai.onnx\" (Compatibility::undeclared_domains accepts it)",
        inside("Pick", 0, None),
    );
}

#[test]
fn an_error_inside_names_the_call_and_the_node() {
    let model = model(vec![pick()], vec![call("Pick", &["data", "indices"], &["output"], vec![])]);
    let place = inside("Pick", 0, 13).parameter("indices").with(|p| {
        (p.axis, p.size, p.value, p.position) = (Some(0), Some(3), Some(3), Some(vec![1]));
    });
    let text = "in node \"call\" (own::Pick): node #0 (Gather-13): indices[1] = 3 is out of range for axis 0 \
                of \"data\", which has 3 entries: allowed -3..=2";
    let result = run(&model, data(), int64(&[2], &[0, 3]));
    assert_as_expected([difference_at("index", result, Kind::Input, text, &place)]);

    let unknown = function("Odd", &["x"], &["y"], vec![node("Nonsense", &["x"], &["y"], vec![])]);
    let model = self::model(vec![unknown], vec![call("Odd", &["data"], &["output"], vec![])]);
    let text = "in node \"call\" (own::Odd): node #0 (Nonsense): Nonsense is not an ONNX operator";
    let place = inside("Odd", 0, None).with(|p| p.operator = Some("Nonsense".into()));
    refused("operator", &model, Kind::Model, text, place);
}

#[test]
fn inputs_and_outputs_may_be_left_out() {
    // The second output is computed and nobody has it; the third input isn't read.
    let nodes = vec![gather(&["x", "i"], "y"), gather(&["y", "i"], "z")];
    let two = function("Two", &["x", "i", "more"], &["y", "z"], nodes);
    let run = |inputs: &[&str], outputs: &[&str]| {
        let model = model(vec![two.clone()], vec![call("Two", inputs, outputs, vec![])]);
        run(&model, data(), int64(&[1], &[0]))
    };
    let first: Tensor = array![[0f32, 1.0]].into();
    assert_eq!(run(&["data", "indices"], &["output"]).unwrap(), first);
    assert_eq!(run(&["data", "indices", ""], &["output", ""]).unwrap(), first);
    assert_eq!(run(&["data", "indices", "data"], &["", "output"]).unwrap(), first);
    // Where a node needs it, the node says so.
    let error = run(&["data"], &["output"]).unwrap_err();
    assert_eq!((error.kind(), error.causes().len()), (Kind::Model, 2));
    let place = inside("Two", 0, 13).parameter("indices");
    assert_eq!(error.causes()[0].place(), &place, "{error}");
    let text = "in node \"call\" (own::Two): node #0 (Gather-13): input 1, \"indices\", is left out, but required";
    assert_eq!(error.causes()[0].to_string(), text);
}

#[test]
fn a_call_gives_no_more_than_the_function_has() {
    let check = |inputs: &[&str], outputs: &[&str], text: &str| {
        let model = model(vec![pick()], vec![call("Pick", inputs, outputs, vec![])]);
        let place = at_call("Pick").with(|p| p.value = Some(inputs.len().max(outputs.len()) as i128));
        refused(text, &model, Kind::Model, &format!("node \"call\" (own::Pick): {text}"), place);
    };
    check(&["data", "indices", "data"], &["output"], "3 inputs given: the function has 2");
    check(&["data", "indices"], &["output", "a", "b"], "3 outputs given: the function has 1");
    // Nodes that use the outputs are not at fault.
    let nodes = vec![call("Pick", &["data", "indices"], &["a", "b"], vec![]), gather(&["b", "indices"], "output")];
    let error = load(&model(vec![pick()], nodes)).unwrap_err();
    assert_eq!((error.causes().len(), error.place().node_index), (1, Some(0)), "{:?}", error.causes());
}

#[test]
fn formal_names_are_told_apart() {
    let check = |inputs: &[&str], outputs: &[&str], text: &str| {
        let odd = function("Odd", inputs, outputs, vec![gather(&["x", "i"], "y")]);
        let outputs = &["output", "more"][..outputs.len()];
        let model = model(vec![odd], vec![call("Odd", &["data", "indices", "data"][..inputs.len()], outputs, vec![])]);
        refused(text, &model, Kind::Model, &format!("node \"call\" (own::Odd): {text}"), at_call("Odd"));
    };
    check(&["x", "i", "x"], &["y"], "the function has two inputs \"x\"");
    check(&["x", "i"], &["y", "y"], "the function has two outputs \"y\"");
    check(&["x", "i"], &["y", "x"], "\"x\" is an input and an output of the function");
}

#[test]
fn an_output_is_produced_in_the_function() {
    let empty = function("Empty", &["x"], &["y"], vec![]);
    let model = model(vec![empty], vec![call("Empty", &["data"], &["output"], vec![])]);
    let text = "the graph's output \"output\" is produced by nothing";
    refused("empty", &model, Kind::Model, text, Place::default().named("output"));
    // A node may not produce what the caller gives either.
    let over = function("Over", &["x", "i"], &["y"], vec![gather(&["x", "i"], "x"), gather(&["x", "i"], "y")]);
    let model = self::model(vec![over], vec![call("Over", &["data", "indices"], &["output"], vec![])]);
    let error = load(&model).unwrap_err();
    assert_eq!((error.kind(), error.place()), (Kind::Model, &inside("Over", 0, 13).named("data")), "{error}");
}

#[test]
fn functions_are_not_recursive() {
    let to =
        |name: &str, called: &str| function(name, &["x", "i"], &["y"], vec![call(called, &["x", "i"], &["y"], vec![])]);
    let check = |functions: Vec<FunctionProto>, text: &str| {
        // Also where nobody calls them.
        for nodes in
            [vec![gather(&["data", "indices"], "output")], vec![call("A", &["data", "indices"], &["output"], vec![])]]
        {
            refused(text, &model(functions.clone(), nodes), Kind::Model, text, Place::default());
        }
    };
    let end = "which is calling it: functions can't be recursive";
    check(vec![to("A", "A")], &format!("the function own::A calls own::A, {end}"));
    check(vec![to("A", "B"), to("B", "A")], &format!("the function own::B calls own::A, {end}"));
    check(vec![to("A", "B"), to("B", "C"), to("C", "B")], &format!("the function own::C calls own::B, {end}"));
    // An overload of the same name is another function.
    let overload = FunctionProto { overload: Some("v".into()), ..to("A", "A") };
    load(&model(
        vec![overload, FunctionProto { name: Some("A".into()), ..pick() }],
        vec![gather(&["data", "indices"], "output")],
    ))
    .unwrap();
}

#[test]
fn functions_have_names_and_no_two_the_same() {
    let check = |functions: Vec<FunctionProto>, text: &str| {
        let model = model(functions, vec![gather(&["data", "indices"], "output")]);
        refused(text, &model, Kind::Model, text, Place::default());
    };
    check(vec![pick(), FunctionProto { name: None, ..pick() }], "function #1 has no name");
    check(vec![pick(), pick()], "functions #0 and #1 are both called own::Pick");
    let overload = || FunctionProto { overload: Some("v".into()), ..pick() };
    check(vec![overload(), pick(), overload()], "functions #0 and #2 are both called own::Pick[v]");
}

/// `F0` calls `F1` twice, and so on to `F{depth}`, which has one node or none.
fn doubling(depth: usize, last: Vec<NodeProto>) -> Vec<FunctionProto> {
    let name = |k: usize| format!("F{k}");
    let both =
        |k: usize| vec![call(&name(k), &["x", "i"], &["a"], vec![]), call(&name(k), &["a", "i"], &["y"], vec![])];
    let mut functions: Vec<FunctionProto> =
        (0..depth).map(|k| function(&name(k), &["x", "i"], &["y"], both(k + 1))).collect();
    functions.push(function(&name(depth), &["x", "i"], &["y"], last));
    functions
}

#[test]
fn functions_that_double_are_refused_at_once() {
    let (called, not) = (call("F0", &["data", "indices"], &["output"], vec![]), gather(&["data", "indices"], "output"));
    for node in [called, not] {
        for last in [vec![gather(&["x", "i"], "y")], vec![]] {
            let start = Instant::now();
            let error = load(&model(doubling(60, last), vec![node.clone()])).unwrap_err();
            assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("nodes")), "{error}");
            assert!(start.elapsed() < Duration::from_secs(2));
        }
    }
}

#[test]
fn the_limit_of_nodes_counts_what_calls_become() {
    let with = |nodes: usize, model: &ModelProto| {
        let mut limits = Limits::default();
        limits.nodes = nodes;
        Model::options().limits(limits).from_bytes(model.encode_to_vec()).map(|model| model.node_count())
    };
    // Three functions with 2, 2 and 1 nodes; one call becomes 4.
    let once =
        model(doubling(2, vec![gather(&["x", "i"], "y")]), vec![call("F0", &["data", "indices"], &["output"], vec![])]);
    assert_eq!(with(6, &once).unwrap(), 4);
    let chain = |from: &str, to: &str| call("F0", &[from, "indices"], &[to], vec![]);
    let calls = vec![chain("data", "a"), chain("a", "b"), chain("b", "output")];
    let thrice = model(doubling(2, vec![gather(&["x", "i"], "y")]), calls);
    assert_eq!(with(12, &thrice).unwrap(), 12);
    let error = with(11, &thrice).unwrap_err();
    assert_eq!((error.kind(), error.place().limit, error.place().value), (Kind::Limit, Some("nodes"), Some(12)));
    // Nodes that follow the calls count too.
    let nodes =
        vec![chain("data", "a"), chain("a", "b"), gather(&["b", "indices"], "c"), gather(&["c", "indices"], "output")];
    let mixed = model(doubling(2, vec![gather(&["x", "i"], "y")]), nodes);
    assert_eq!(with(10, &mixed).unwrap(), 10);
    let error = with(9, &mixed).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("nodes")), "{error}");
}

#[test]
fn constants_are_computed_through_calls() {
    let mut model = model(
        vec![pick()],
        vec![
            call("Pick", &["table", "rows"], &["picked"], vec![]),
            call("Pick", &["picked", "indices"], &["output"], vec![]),
        ],
    );
    graph_of(&mut model).initializer = vec![initializer("table", &iota(&[3, 2])), initializer("rows", &indices())];
    let outputs = run(&model, data(), int64(&[1], &[1])).unwrap();
    assert_eq!(outputs, array![[0f32, 1.0]].into());
    assert_eq!(load(&model).unwrap().nodes().len(), 1);
}

#[test]
fn opsets_of_a_function_are_checked_as_the_models() {
    let of = |imports| {
        let function = FunctionProto { opset_import: imports, ..pick() };
        model(vec![function], vec![call("Pick", &["data", "indices"], &["output"], vec![])])
    };
    let label = "node \"call\" (own::Pick): the function: opset_import has version";
    let text = format!("{label} 999 of domain \"ai.onnx\": 28 is the newest that is known");
    let place = at_call("Pick").with(|p| p.value = Some(999));
    refused("too new", &of(vec![import("", 999)]), Kind::Unsupported, &text, place);
    let error = load(&of(vec![import("", 0)])).unwrap_err();
    let text = "in node \"call\" (own::Pick): node #0 (Gather): opset_import has version 0 of domain \"ai.onnx\": \
                versions start at 1";
    assert_eq!((error.kind(), error.to_string().as_str(), error.place().value), (Kind::Model, text, Some(0)));
}

/// Faults stand in the order of the model, wherever they are; and a node of a function is no node of the graph.
#[test]
fn faults_in_functions_stand_in_the_order_of_the_model() {
    let bad = function("Bad", &["x", "i"], &["y"], vec![gather(&["x", "later"], "y")]);
    let nodes = vec![
        call("Bad", &["data", "indices"], &["a"], vec![]),
        gather(&["data", "missing"], "b"),
        call("Bad", &["data", "indices"], &["output"], vec![]),
    ];
    let error = load(&model(vec![bad], nodes)).unwrap_err();
    let inner: Vec<bool> = error.causes().iter().map(|cause| cause.place().function.is_some()).collect();
    assert_eq!(inner, [true, false, true], "{:?}", error.causes());

    // Node #1 of the function reads what node #1 of the graph makes, later.
    let nodes = vec![gather(&["x", "i"], "y"), gather(&["late", "i"], "z")];
    let early = function("Early", &["late", "x", "i"], &["z"], nodes);
    let nodes =
        vec![call("Early", &["after", "data", "indices"], &["output"], vec![]), gather(&["data", "indices"], "after")];
    let error = load(&model(vec![early], nodes)).unwrap_err().to_string();
    let text =
        "is produced by node #1, which comes later: nodes must be sorted (Compatibility::unsorted_nodes accepts it)";
    assert!(error.ends_with(text), "{error}");
}
