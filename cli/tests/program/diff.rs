//! `onnxref diff`, as a user calls it.

use crate::common::{Bench, Ran, body, bytes, check, graph, int, link, number, onnxref, several};
use onnxref::document::{AttributeValue, Document, Graph, Initializer, Node, ValueInfo};
use onnxref::{DType, Tensor};
use serde_json::{Value, json};
use std::fs;

fn model(nodes: &[Vec<u8>], constants: &[(&str, &[f32])], opset: u64) -> Vec<u8> {
    let graph = graph(nodes, &[("x", DType::Float)], &["y"]);
    let constants =
        constants.iter().flat_map(|(name, elements)| bytes(5, &Tensor::from(elements.to_vec()).to_proto_bytes(name)));
    let graph: Vec<u8> = graph.into_iter().chain(constants).collect();
    [number(1, 9), bytes(7, &graph), bytes(8, &[bytes(1, b""), number(2, opset)].concat())].concat()
}

/// `y = Neg(Softmax(Abs(x) + w))`
fn plain() -> Vec<u8> {
    let nodes = [
        several("Abs", &["x"], &["a"], &[]),
        several("Add", &["a", "w"], &["b"], &[]),
        several("Softmax", &["b"], &["c"], &[]),
        several("Neg", &["c"], &["y"], &[]),
    ];
    model(&nodes, &[("w", &[1.0, 2.0])], 18)
}

fn diff(a: Vec<u8>, b: Vec<u8>, more: &[&str]) -> Ran {
    let bench = Bench::new(&a);
    fs::write(bench.path("b.onnx"), b).unwrap();
    onnxref([&["diff", &*bench.text("model.onnx"), &bench.text("b.onnx")], more].concat())
}

#[test]
fn names_and_defaults_make_no_difference() {
    check(diff(plain(), plain(), &[]), 0, "the models are the same: 4 nodes, 1 constant\n", "");
    // Other names, the default written out, the weight as a Constant, the nodes in another order.
    let weight = bytes(
        5,
        &[bytes(1, b"value"), bytes(5, &Tensor::from(vec![1f32, 2.0]).to_proto_bytes("")), number(20, 4)].concat(),
    );
    let nodes = [
        several("Constant", &[], &["v"], &[weight]),
        several("Abs", &["x"], &["p"], &[]),
        several("Add", &["p", "v"], &["q"], &[]),
        several(
            "Softmax",
            &["q"],
            &["r"],
            &[bytes(5, &[bytes(1, b"axis"), number(3, u64::MAX), number(20, 2)].concat())],
        ),
        several("Neg", &["r"], &["y"], &[]),
    ];
    check(diff(plain(), model(&nodes, &[], 18), &[]), 0, "the models are the same: 4 nodes, 1 constant\n", "");
}

#[test]
fn everything_that_differs() {
    let nodes = [
        several("Abs", &["x"], &["a"], &[]),
        several("Add", &["a", "w"], &["b"], &[]),
        several("Relu", &["b"], &["b2"], &[]),
        several("Softmax", &["b2"], &["c"], &[int("axis", 0)]),
        several("Exp", &["c"], &["y"], &[]),
    ];
    let ran = diff(plain(), model(&nodes, &[("w", &[1.0, 2.5])], 19), &[]);
    let expected = "\
opset ai.onnx: 18 -> 19

changed: 2
  node #3 (Softmax-13): axis: only in B, 0; input 0: \"b\" (Add-14) -> \"b2\" (Relu-14)
  node #4 (Exp-13): operator: Neg-13 -> Exp-13

only in B: 1
  node #2 (Relu-14): reads \"b\", gives \"b2\"

constants that differ: 1
  \"w\" is 2.5 at [1], expected 2; 1 of 2 differ, by up to 0.5, the first by 2,097,152 ulp

the same in both: 2 nodes, 0 constants
";
    check(ran, 1, expected, "");
    let ran = diff(model(&nodes, &[("w", &[1.0, 2.5])], 19), plain(), &["--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.code, &found["same"], &found["model"]),
        (Some(1), &json!(false), &json!([{"what": "opset ai.onnx", "a": "19", "b": "18"}]))
    );
    let graph = &found["graphs"][0];
    assert_eq!(
        (&graph["same"], &graph["added"], &graph["removed"][0]["operator"]),
        (&json!(2), &json!([]), &json!("Relu-14"))
    );
    assert_eq!(graph["changed"][1]["changes"], json!([{"what": "operator", "a": "Exp-13", "b": "Neg-13"}]));
    assert_eq!(found["weights"]["changed"][0]["difference"]["greatest_error"], 0.5);
}

#[test]
fn a_chain_of_equal_nodes_keeps_its_ends() {
    let chain = |count: usize| {
        let node = |k: usize| several("Abs", &[&link(k, count)], &[&link(k + 1, count)], &[]);
        model(&(0..count).map(node).collect::<Vec<_>>(), &[], 18)
    };
    let ran = diff(chain(5), chain(7), &["--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let graph = &found["graphs"][0];
    let count = |name: &str| graph[name].as_array().unwrap().len();
    assert_eq!((count("added"), count("removed"), ran.code), (2, 0, Some(1)));
    // A long one.
    assert_eq!(diff(chain(3000), chain(3000), &[]).out, "the models are the same: 3,000 nodes, 0 constants\n");
}

#[test]
fn subgraphs_are_compared_where_they_are() {
    let branch = |operator: &str| {
        let branches = ["then_branch", "else_branch"].map(|name| {
            let operator = if name == "then_branch" { "Abs" } else { operator };
            body(name, &graph(&[several(operator, &["x"], &["t"], &[])], &[], &["t"]))
        });
        let go = several(
            "Constant",
            &[],
            &["go"],
            &[bytes(
                5,
                &[
                    bytes(1, b"value"),
                    bytes(5, &Tensor::new(DType::Bool, &[], vec![1]).unwrap().to_proto_bytes("")),
                    number(20, 4),
                ]
                .concat(),
            )],
        );
        model(&[go, several("If", &["go"], &["y"], &branches)], &[], 18)
    };
    check(diff(branch("Neg"), branch("Neg"), &[]), 0, "the models are the same: 3 nodes, 1 constant\n", "");
    let ran = diff(branch("Neg"), branch("Exp"), &[]);
    let inside =
        "in the else_branch of node #1 (If-16):\n\nchanged: 1\n  node #0 (Exp-13): operator: Neg-13 -> Exp-13\n";
    assert!(ran.code == Some(1) && ran.out.contains(inside), "{}", ran.out);
    let picture = diff(branch("Neg"), branch("Exp"), &["--svg", "-"]).out;
    assert!(picture.contains("else_branch ≠") && !picture.contains("then_branch ≠"), "{picture}");
}

#[test]
fn inputs_outputs_and_pictures() {
    let other = |input: &str, dtype: DType| {
        let graph = graph(&[several("Abs", &[input], &["y"], &[])], &[(input, dtype)], &["y"]);
        [number(1, 9), bytes(7, &graph), bytes(8, &[bytes(1, b""), number(2, 18)].concat())].concat()
    };
    let ran = diff(other("x", DType::Float), other("z", DType::Double), &[]);
    assert!(
        ran.out.starts_with(
            "name of input: \"x\" -> \"z\"\ninput \"z\": float32 -> float64\noutput \"y\": float32 -> float64\n"
        ),
        "{}",
        ran.out
    );
    let ran = diff(plain(), model(&[several("Abs", &["x"], &["y"], &[])], &[], 18), &["--svg", "-"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.starts_with("<svg") && ran.out.contains("box removed") && ran.out.contains("box changed")
            || ran.out.contains("box same"),
        "{}",
        ran.out
    );
    // A removed node reads a Constant, whose place is that of another node in B: no edge leads from there.
    let weight =
        bytes(5, &[bytes(1, b"value"), bytes(5, &Tensor::from(vec![2f32]).to_proto_bytes("")), number(20, 4)].concat());
    let nodes = [
        several("Constant", &[], &["v"], &[weight]),
        several("Neg", &["x"], &["y"], &[]),
        several("Sin", &["v"], &["unused"], &[]),
    ];
    let ran = diff(model(&nodes, &[], 18), model(&[several("Neg", &["x"], &["y"], &[])], &[], 18), &["--svg", "-"]);
    let edges = ran.out.matches("<g class=\"edge\"").count();
    assert_eq!((edges, ran.out.contains("box removed")), (2, true), "{}", ran.out);
    let ran = diff(plain(), plain(), &["--svg", "/no/folder/a.svg"]);
    assert!(
        ran.code == Some(2) && ran.err.starts_with("error: --svg /no/folder/a.svg: the file can't be written:"),
        "{ran:?}"
    );
    let ran = diff(plain(), plain(), &["--svg", "-", "--json"]);
    let why = "--svg -: a file is needed: with --json standard output gets JSON";
    assert_eq!((ran.code, ran.err), (Some(2), format!("error: {why}\n")));
    let ran = onnxref(["diff", "no.onnx", "no.onnx"]);
    assert_eq!(ran.code, Some(3));
}

/// An If with branches of two outputs: `p` of Abs and `q` of Neg, which read `x`.
fn branches(order: [&'static str; 2]) -> Document {
    let info = |name: &str| ValueInfo::tensor(name, DType::Float, ["n"]);
    let branch = || {
        let nodes = Graph::new("b").node(Node::new("Abs", ["x"], ["p"])).node(Node::new("Neg", ["x"], ["q"]));
        order.iter().fold(nodes, |graph, name| graph.output(ValueInfo::untyped(*name)))
    };
    let node = Node::new("If", ["go"], ["y", "z"]).attribute("then_branch", branch());
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("go", DType::Bool, [0i64; 0]))
        .input(info("x"))
        .node(node.attribute("else_branch", branch()))
        .output(info("y"))
        .output(info("z"));
    Document::new(graph, 21)
}

fn diff_documents(a: &Document, b: &Document) -> Ran {
    diff(a.to_bytes().unwrap().to_vec(), b.to_bytes().unwrap().to_vec(), &[])
}

#[test]
fn inputs_and_outputs_of_bodies_have_an_order_and_no_names() {
    let expected = "
in the then_branch of node #0 (If-21):
output \"q\" comes from: \"p\" (Abs-13) -> \"q\" (Neg-13)
output \"p\" comes from: \"q\" (Neg-13) -> \"p\" (Abs-13)

in the else_branch of node #0 (If-21):
output \"q\" comes from: \"p\" (Abs-13) -> \"q\" (Neg-13)
output \"p\" comes from: \"q\" (Neg-13) -> \"p\" (Abs-13)

the same in both: 5 nodes, 0 constants
";
    check(diff_documents(&branches(["p", "q"]), &branches(["q", "p"])), 1, expected, "");
    let looped = |[v, w]: [&str; 2]| {
        let info = |name: &str| ValueInfo::tensor(name, DType::Float, [2i64]);
        let body = Graph::new("b")
            .input(ValueInfo::tensor("k", DType::Int64, [0i64; 0]))
            .input(ValueInfo::tensor("go", DType::Bool, [0i64; 0]))
            .input(info(v))
            .input(info(w))
            .node(Node::new("Identity", ["go"], ["on"]))
            .node(Node::new("Sub", ["v", "w"], ["s"]))
            .node(Node::new("Abs", ["w"], ["a"]));
        let body = ["on", "s", "a"].iter().fold(body, |body, name| body.output(ValueInfo::untyped(*name)));
        let graph = Graph::new("g").input(ValueInfo::tensor("trips", DType::Int64, [0i64; 0])).input(info("x"));
        let node = Node::new("Loop", ["trips", "", "x", "x"], ["y", "z"]).attribute("body", body);
        Document::new(graph.node(node).output(info("y")).output(info("z")), 21)
    };
    let expected = "
in the body of node #0 (Loop-21):

changed: 2
  node #1 (Sub-14): input 0: \"v\" (input 2) -> \"v\" (input 3); input 1: \"w\" (input 3) -> \"w\" (input 2)
  node #2 (Abs-13): input 0: \"w\" (input 3) -> \"w\" (input 2)

the same in both: 2 nodes, 0 constants
";
    check(diff_documents(&looped(["v", "w"]), &looped(["w", "v"])), 1, expected, "");
    let mut renamed = looped(["v", "w"]);
    let body = match &mut renamed.graph.nodes[0].attributes[0].value {
        AttributeValue::Graph(body) => body,
        _ => panic!(),
    };
    (body.inputs[3].name, body.nodes[1].inputs[1], body.nodes[2].inputs[0]) = ("u".into(), "u".into(), "u".into());
    let same = "the models are the same: 4 nodes, 0 constants\n";
    check(diff_documents(&looped(["v", "w"]), &renamed), 0, same, "");
}

#[test]
fn another_order_of_inputs_and_outputs() {
    let model = |inputs: [&str; 3], outputs: [&str; 2]| {
        let info = |name: &&str| ValueInfo::tensor(*name, DType::Float, [2i64]);
        let graph = Graph::new("g").node(Node::new("Sub", ["a", "b"], ["y"])).node(Node::new("Abs", ["c"], ["z"]));
        let graph = inputs.iter().fold(graph, |graph, name| graph.input(info(name)));
        Document::new(outputs.iter().fold(graph, |graph, name| graph.output(info(name))), 21)
    };
    let ran = diff_documents(&model(["a", "b", "c"], ["y", "z"]), &model(["b", "a", "c"], ["z", "y"]));
    let expected = "order of inputs: \"a\", \"b\" -> \"b\", \"a\"
order of outputs: \"y\", \"z\" -> \"z\", \"y\"

the same in both: 2 nodes, 0 constants
";
    check(ran, 1, expected, "");
}

#[test]
fn attributes_are_compared_by_their_bits() {
    let model = |alpha: f32| {
        let info = |name: &str| ValueInfo::tensor(name, DType::Float, [2i64]);
        let node = Node::new("LeakyRelu", ["x"], ["y"]).attribute("alpha", alpha);
        Document::new(Graph::new("g").input(info("x")).node(node).output(info("y")), 21)
    };
    let same = "the models are the same: 1 node, 0 constants\n";
    check(diff_documents(&model(f32::NAN), &model(f32::NAN)), 0, same, "");
    let ran = diff_documents(&model(0.0), &model(-0.0));
    assert!(ran.code == Some(1) && ran.out.contains("alpha: 0.0 -> -0.0"), "{ran:?}");
}

/// Of constants that are captured by a body, or are outputs, the elements are compared too.
#[test]
fn constants_that_no_node_reads() {
    let model = |weight: f32, output: f32| {
        let branch = || Graph::new("b").node(Node::new("Add", ["x", "w"], ["r"])).output(ValueInfo::untyped("r"));
        let node = Node::new("If", ["go"], ["y"]).attribute("then_branch", branch());
        let info = |name: &str| ValueInfo::tensor(name, DType::Float, [1i64]);
        let graph = Graph::new("g")
            .input(ValueInfo::tensor("go", DType::Bool, [0i64; 0]))
            .input(info("x"))
            .initializer(Initializer::new("w", &Tensor::from(vec![weight])))
            .initializer(Initializer::new("v", &Tensor::from(vec![output])))
            .node(node.attribute("else_branch", branch()))
            .output(info("y"))
            .output(info("v"));
        Document::new(graph, 21)
    };
    let same = "the models are the same: 3 nodes, 2 constants\n";
    check(diff_documents(&model(1.0, 1.0), &model(1.0, 1.0)), 0, same, "");
    let expected = "
constants that differ: 2
  \"v\" is 3 at [0], expected 1; 1 of 1 differ, by up to 2, the first by 12,582,912 ulp
  \"w\" is 2 at [0], expected 1; 1 of 1 differ, by up to 1, the first by 8,388,608 ulp

the same in both: 3 nodes, 0 constants
";
    check(diff_documents(&model(1.0, 1.0), &model(2.0, 3.0)), 1, expected, "");
}

/// Each input of a function that is called with one value is a value of its own in bodies.
#[test]
fn a_value_that_a_body_reads_twice() {
    let model = |inputs: [&str; 2]| {
        let text = format!(
            r#"<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
            g (bool go, float[2] x) => (y) <float[2] w = {{1, 2}}> {{
                u = own.F (go, x, x)
                v = own.F (go, w, w)
                y = Add (u, v)
            }}
            <domain: "own", opset_import: ["" : 21]>
            F (c, a, b) => (y) {{
                y = If (c) <then_branch = t () => (p) {{ p = Sub ({0}, {1}) }},
                    else_branch = e () => (q) {{ q = Div ({1}, {0}) }}>
            }}"#,
            inputs[0], inputs[1]
        );
        Document::from_text(&text).unwrap()
    };
    let ran = diff_documents(&model(["a", "b"]), &model(["a", "b"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.starts_with("the models are the same: "), "{}", ran.out);
}
