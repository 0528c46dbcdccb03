//! `onnxref reduce`, as a user calls it.

use crate::common::{Bench, Ran, bytes, check, graph, link, number, onnxref, several};
use onnxref::{DType, Model};
use std::fs;
use std::time::Instant;

/// A chain of nodes with some others in it, by their places.
fn chain(count: usize, planted: &[(usize, &str)]) -> Vec<u8> {
    let node = |k: usize| {
        let operator = planted.iter().find(|(at, _)| *at == k).map_or("Tanh", |(_, operator)| *operator);
        several(operator, &[&link(k, count)], &[&link(k + 1, count)], &[])
    };
    model(&graph(&(0..count).map(node).collect::<Vec<_>>(), &[("x", DType::Float)], &["y"]))
}

fn model(graph: &[u8]) -> Vec<u8> {
    [number(1, 9), bytes(7, graph), bytes(8, &[bytes(1, b""), number(2, 18)].concat())].concat()
}

fn reduce(bench: &Bench, flags: &[&str], command: &[&str]) -> Ran {
    let (model, out) = (bench.text("model.onnx"), bench.text("small.onnx"));
    onnxref([&["reduce", &model, "-o", &out], flags, &["--"], command].concat())
}

/// The operators of the smallest model.
fn operators(bench: &Bench) -> Vec<String> {
    let options = Model::options().optimize(false);
    let model = options.load(bench.path("small.onnx")).unwrap();
    model.nodes().map(|node| node.operator.to_string()).collect()
}

const FEED: [&str; 2] = ["-i", "x=[[1, -2]]"];

/// Fails if the model has a text.
fn has(text: &str) -> [String; 3] {
    ["sh", "-c", &format!("if grep -q {text} {{model}}; then exit 3; fi")].map(str::to_string)
}

#[test]
fn a_fault_in_a_thousand_nodes() {
    let bench = Bench::new(&chain(1000, &[(637, "Erf")]));
    let (command, start) = (has("Erf"), Instant::now());
    let ran = reduce(&bench, &FEED, &command.each_ref().map(String::as_str));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("small.onnx: 1 node of 1,000, found in "), "{}", ran.out);
    assert_eq!(operators(&bench), ["Erf"]);
    assert!(start.elapsed().as_secs() < 120);
    // Its input is declared as the run has it.
    let small = Model::load(bench.path("small.onnx")).unwrap();
    let input = small.inputs().next().unwrap();
    assert_eq!((input.name.as_str(), input.dtype()), ("v637", Some(DType::Float)));
}

#[test]
fn it_is_written_as_its_name_says() {
    let bench = Bench::new(&chain(3, &[(1, "Erf")]));
    let (model, out) = (bench.text("model.onnx"), bench.text("small.onnxtxt"));
    let ran = onnxref(
        [&["reduce", &model, "-o", &out], &FEED[..], &["--"], &has("Erf").each_ref().map(String::as_str)].concat(),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read_to_string(&out).unwrap();
    assert!(text.starts_with('<') && text.contains("Erf (v1)"), "{text}");
    assert_eq!(Model::load(&out).unwrap().nodes().len(), 1);
}

/// A model with smaller dimensions is smaller, though it has as many nodes.
#[test]
fn the_status_says_whether_it_got_smaller() {
    use onnxref::document::{Document, Graph, Node, ValueInfo};
    let command = has("Erf");
    for (sizes, feed, code) in [([1, 2], "x=[[1, -2]]", 0), ([1, 1], "x=[[1]]", 1)] {
        let graph = Graph::new("g").input(ValueInfo::tensor("x", DType::Float, sizes.map(|size| size as i64)));
        let graph = graph.node(Node::new("Erf", ["x"], ["y"])).output(ValueInfo::untyped("y"));
        let bench = Bench::new(&Document::new(graph, 18).to_bytes().unwrap());
        let ran = reduce(&bench, &["-i", feed], &command.each_ref().map(String::as_str));
        assert_eq!((ran.code, ran.err.as_str()), (Some(code), ""), "{feed}");
        assert!(ran.out.contains("small.onnx: 1 node of 1, found in "), "{}", ran.out);
        let small = Model::load(bench.path("small.onnx")).unwrap();
        let shape = small.inputs().next().unwrap().shape.clone();
        assert_eq!(shape, Some(vec![onnxref::Dim::Fixed(1); 2]), "{feed}");
    }
}

#[test]
fn two_nodes_that_fail_together() {
    let bench = Bench::new(&chain(200, &[(20, "Erf"), (150, "Atan")]));
    let command = ["sh", "-c", "grep -q Erf {model} && grep -q Atan {model} && exit 3; exit 0"];
    let ran = reduce(&bench, &[&FEED[..], &["--expect-status", "3", "--json"]].concat(), &command);
    assert_eq!((ran.code, operators(&bench)), (Some(0), vec!["Erf".to_string(), "Atan".to_string()]), "{ran:?}");
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&found["nodes_before"], &found["nodes"]), (&200.into(), &2.into()));
    // Another status is no failure.
    let ran = reduce(&bench, &[&FEED[..], &["--expect-status", "4"]].concat(), &command);
    let why = "the command doesn't fail for the model itself: its exit status is 3, not 4";
    check(ran, 2, "", &format!("error: {why}\n"));
}

#[test]
fn values_between_nodes_are_those_of_the_run() {
    // y = .. Log(Sub(x, x + 1)): NaN begins at the Log, and only with these values.
    let nodes = [
        several("Abs", &["x"], &["a"], &[]),
        several("Neg", &["a"], &["b"], &[]),
        several("Log", &["b"], &["c"], &[]),
        several("Exp", &["c"], &["y"], &[]),
    ];
    let bench = Bench::new(&model(&graph(&nodes, &[("x", DType::Float)], &["y"])));
    let program = env!("CARGO_BIN_EXE_onnxref");
    let command = [program, "run", "{model}", "--inputs", "{inputs}", "--stop-at", "nan", "-q"];
    let saved = bench.text("saved.npz");
    let ran = reduce(&bench, &["-i", "x=[[1, -2]]", "--expect-status", "1", "--save-inputs", &saved], &command);
    assert_eq!((ran.code, operators(&bench)), (Some(0), vec!["Log".to_string()]), "{ran:?}");
    // It fails for others, too.
    let again = onnxref(["run", &bench.text("small.onnx"), "--inputs", &saved, "--stop-at", "nan", "-q"]);
    assert_eq!(again.code, Some(1), "{again:?}");
}

#[test]
fn sizes_and_constants_get_simple() {
    let weight = onnxref::Tensor::from_elements(&[64, 32], vec![1.5f32; 64 * 32]).unwrap();
    let shape = onnxref::Tensor::from(vec![-1i64, 64]);
    let nodes = [
        several("Reshape", &["x", "s"], &["r"], &[]),
        several("Abs", &["r"], &["a"], &[]),
        several("MatMul", &["a", "w"], &["y"], &[]),
    ];
    let constants = [bytes(5, &weight.to_proto_bytes("w")), bytes(5, &shape.to_proto_bytes("s"))].concat();
    let bench = Bench::new(&model(&[graph(&nodes, &[("x", DType::Float)], &["y"]), constants].concat()));
    fs::write(
        bench.path("x.pb"),
        onnxref::Tensor::from_elements(&[4, 64], vec![0.5f32; 256]).unwrap().to_proto_bytes("x"),
    )
    .unwrap();
    let command = ["sh", "-c", "grep -q Reshape {model} && grep -q MatMul {model} && exit 1; exit 0"];
    let ran = reduce(&bench, &["-i", &bench.text("x.pb")], &command);
    assert_eq!((ran.code, operators(&bench)), (Some(0), vec!["Reshape".to_string(), "MatMul".to_string()]), "{ran:?}");
    let found = Model::options().optimize(false).inspect(bench.path("small.onnx")).unwrap();
    let constant = |name: &str| {
        let value = found.graph.values.iter().find(|value| value.name == name).unwrap();
        value.constant.clone().unwrap().into_tensor().unwrap()
    };
    assert_eq!(constant("w"), onnxref::Tensor::from_elements(&[1, 1], vec![0f32]).unwrap());
    assert!(fs::metadata(bench.path("small.onnx")).unwrap().len() < 200);
}

/// A model from its text.
fn text(text: &str) -> Bench {
    let text = format!("<ir_version: 10, opset_import: [\"\" : 21]> {text}");
    Bench::new(&onnxref::document::Document::from_text(&text).unwrap().to_bytes().unwrap())
}

#[test]
fn a_body_becomes_the_model() {
    let bench = text(
        r#"g (float[2] x, int64 trips, bool go) => (y)
        {
            first = Tanh (x)
            y = Loop (trips, go, first) <body: graph = body (int64 i, bool in, v) => (out, w)
                { out = Identity (in) a = Tanh (v) b = Erf (a) c = Tanh (b) w = Add (c, first) }>
        }"#,
    );
    // Its input has the value of the first trip.
    let program = env!("CARGO_BIN_EXE_onnxref");
    let script =
        format!("grep -q Erf {{model}} && {program} run {{model}} --inputs {{inputs}} -q >/dev/null && exit 3; exit 0");
    let feeds = ["-i", "x=[1, 2]", "-i", "trips=3", "-i", "go=true"];
    let ran = reduce(&bench, &[&feeds[..], &["--expect-status", "3"]].concat(), &["sh", "-c", &script]);
    assert_eq!((ran.code, operators(&bench)), (Some(0), vec!["Erf".to_string()]), "{ran:?}");
    assert!(ran.out.contains("small.onnx: 1 node of 7, found in "), "{}", ran.out);
}

#[test]
fn a_branch_takes_the_place_of_its_node() {
    let bench = text(
        r#"g (float[2] x, bool up) => (y)
        {
            a = Sin (x)
            b = If (up) <
                then_branch: graph = one () => (r) { p = Tanh (a) q = Erf (p) r = Tanh (q) },
                else_branch: graph = other () => (r2) { r2 = Tanh (a) }>
            c = Tanh (b)
            y = Cos (c)
        }"#,
    );
    let command = ["sh", "-c", "grep -q Sin {model} && grep -q Erf {model} && grep -q Cos {model} && exit 3; exit 0"];
    let ran = reduce(&bench, &["-i", "x=[1, 2]", "-i", "up=true", "--expect-status", "3"], &command);
    assert_eq!((ran.code, operators(&bench)), (Some(0), ["Sin", "Erf", "Cos"].map(str::to_string).to_vec()), "{ran:?}");
}

#[test]
fn nodes_of_a_body_go() {
    // The fault needs the Loop.
    let bench = text(
        r#"g (float[2] x, int64 trips, bool go) => (y)
        {
            y = Loop (trips, go, x) <body: graph = body (int64 i, bool in, v) => (out, w)
                { out = Identity (in) a = Tanh (v) b = Erf (a) c = Tanh (b) d = Sin (c) w = Tanh (d) }>
        }"#,
    );
    let command = ["sh", "-c", "grep -q Erf {model} && grep -q Loop {model} && exit 3; exit 0"];
    let feeds = ["-i", "x=[1, 2]", "-i", "trips=2", "-i", "go=true", "--expect-status", "3"];
    let ran = reduce(&bench, &feeds, &command);
    assert_eq!((ran.code, operators(&bench)), (Some(0), vec!["Loop".to_string()]), "{ran:?}");
    let small = onnxref::document::Document::read(bench.path("small.onnx")).unwrap();
    let body = small.graph.nodes[0].bodies().next().unwrap();
    let inside: Vec<&str> = body.nodes.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!(inside, ["Identity", "Identity", "Erf"]);
    assert!(small.graph.inputs.iter().any(|info| info.name == "a" && info.dims().is_some()));
}

#[test]
fn a_search_goes_on_where_it_was() {
    let bench = Bench::new(&chain(64, &[(40, "Erf")]));
    let (work, command) = (bench.text("work"), has("Erf"));
    let command = command.each_ref().map(String::as_str);
    let run = || reduce(&bench, &[&FEED[..], &["--work", &work, "--json"]].concat(), &command);
    let runs = |ran: &Ran| serde_json::from_str::<serde_json::Value>(&ran.out).unwrap()["runs"].as_u64().unwrap();
    let first = run();
    let small = fs::read(bench.path("small.onnx")).unwrap();
    // Half of what was tried, and a line that was cut.
    let tried = fs::read_to_string(bench.path("work/tried.jsonl")).unwrap();
    let half: Vec<&str> = tried.lines().take(tried.lines().count() / 2).collect();
    fs::write(bench.path("work/tried.jsonl"), half.join("\n") + "\n{\"model\":\"").unwrap();
    let again = run();
    assert_eq!((first.code, again.code), (Some(0), Some(0)));
    assert_eq!(runs(&again), runs(&first) - half.len() as u64);
    assert_eq!(runs(&run()), 0);
    assert_eq!(fs::read(bench.path("small.onnx")).unwrap(), small);
}

#[test]
fn wrong_uses() {
    let bench = Bench::new(&chain(4, &[]));
    let why = "the command has no {model}: it stands for the file to try";
    check(reduce(&bench, &FEED, &["true"]), 2, "", &format!("error: {why}\n"));
    let why = "the command doesn't fail for the model itself: its exit status is 0";
    check(reduce(&bench, &FEED, &["true", "{model}"]), 2, "", &format!("error: {why}\n"));
    let ran = reduce(&bench, &FEED, &["/no/such/program", "{model}"]);
    assert!(ran.code == Some(2) && ran.err.starts_with("error: \"/no/such/program\" can't be started: "), "{ran:?}");
    let ran = reduce(&bench, &[], &["false", "{model}"]);
    assert!(ran.err.contains("values between nodes have the types that follow: inputs are not given"), "{ran:?}");
    assert_eq!((ran.code, operators(&bench).len()), (Some(0), 1));
    // A command that doesn't end counts as failing with 124.
    let ran = reduce(
        &bench,
        &[&FEED[..], &["--timeout", "0.05", "--expect-status", "124"]].concat(),
        &["sh", "-c", "sleep 9 # {model}"],
    );
    assert_eq!((ran.code, operators(&bench).len()), (Some(0), 1), "{ran:?}");
    assert_eq!(bench.files(), ["small.onnx"]);
    let ran = onnxref(["reduce", &bench.text("model.onnx"), "-o", "-", "--", "false", "{model}"]);
    check(ran, 2, "", "error: -o -: a file is needed\n");
}

/// What no node needs isn't part of any model that is tried.
#[test]
fn what_no_node_needs_may_be_what_fails() {
    use onnxref::document::{Document, Graph, Initializer, Node, ValueInfo};
    let info = |name: &str| ValueInfo::tensor(name, DType::Float, [2i64]);
    let mut graph = Graph::new("g")
        .input(info("x"))
        .input(info("unread"))
        .initializer(Initializer::new("w", &onnxref::Tensor::from(vec![1f32])))
        .node(Node::new("Abs", ["x"], ["a"]))
        .node(Node::new("Neg", ["a"], ["y"]))
        .output(info("y"));
    graph.value_info.push(info("a").into());
    let bench = Bench::new(&Document::new(graph, 18).to_bytes().unwrap());
    let ran = reduce(&bench, &["--random"], &has("unread").each_ref().map(String::as_str));
    let what = "input \"unread\", 1 declared type (value_info), 1 initializer, or outputs, \
         functions, texts or metadata";
    let err = format!("error: the command fails for the model, but not without what no node needs: {what}\n");
    check(ran, 1, "", &err);
    assert_eq!(bench.files(), [""; 0]);
    let ran = reduce(&bench, &["--random"], &has("nothing").each_ref().map(String::as_str));
    check(ran, 2, "", "error: the command doesn't fail for the model itself: its exit status is 0\n");
}
