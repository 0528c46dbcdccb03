//! `onnxref compare` in models whose names occur more than once: in called functions and in subgraphs.

use crate::common::{Bench, Ran, body, bytes, graph, int, number, onnxref, several as node};
use onnxref::DType;
use serde_json::{Value, json};
use std::fs;

fn opset(domain: &str, version: u64) -> Vec<u8> {
    [bytes(1, domain.as_bytes()), number(2, version)].concat()
}

fn function(name: &str, inputs: &[&str], output: &str, nodes: &[Vec<u8>]) -> Vec<u8> {
    let head = [bytes(1, name.as_bytes()), bytes(5, output.as_bytes()), bytes(10, b"f")].concat();
    let inputs = inputs.iter().flat_map(|name| bytes(4, name.as_bytes()));
    let opsets = [bytes(9, &opset("", 18)), bytes(9, &opset("f", 1))].concat();
    head.into_iter().chain(inputs).chain(nodes.iter().flat_map(|node| bytes(7, node))).chain(opsets).collect()
}

fn model(graph: &[u8], functions: &[Vec<u8>]) -> Vec<u8> {
    let opsets = [bytes(8, &opset("", 18)), bytes(8, &opset("f", 1))].concat();
    let functions = functions.iter().flat_map(|function| bytes(25, function)).collect();
    [number(1, 9), bytes(7, graph), opsets, functions].concat()
}

/// `y = Twice(Twice(x))`: the function's names are those of the graph too.
fn twice(last: &str) -> Vec<u8> {
    let once = function("Once", &["x"], "y", &[node("Neg", &["x"], &["a"], &[]), node(last, &["a"], &["y"], &[])]);
    let nodes = [node("f.Once", &["x"], &["a"], &[]), node("f.Once", &["a"], &["y"], &[])];
    let twice = function("Twice", &["x"], "y", &nodes);
    let nodes = [node("f.Twice", &["x"], &["a"], &[]), node("f.Twice", &["a"], &["y"], &[])];
    model(&graph(&nodes, &[("x", DType::Float)], &["y"]), &[once, twice])
}

const FEED: [&str; 2] = ["-i", "x=[1, -2]"];

fn compare(bench: &Bench, a: &str, more: &[&str]) -> Ran {
    onnxref([&["compare", &bench.text(a)], more].concat())
}

#[test]
fn a_function_that_is_called_twice() {
    let bench = Bench::new(&twice("Exp"));
    let b = bench.text("b.onnx");
    fs::write(&b, twice("Exp")).unwrap();
    let all = "8 values with the same name: 8 equal bit by bit, 0 within the tolerance, 0 different\n";
    for second in [None, Some(&*b)] {
        let ran = compare(&bench, "model.onnx", &[&second.into_iter().collect::<Vec<_>>()[..], &FEED].concat());
        assert!(ran.code == Some(0) && ran.out.starts_with(all), "{ran:?}");
    }
    let folder = bench.text("values");
    assert_eq!(bench.run(&[&["--dump", &folder, "-q"], &FEED[..]].concat()).code, Some(0));
    let ran = compare(&bench, "b.onnx", &[&[&*folder], &FEED[..]].concat());
    assert!(ran.code == Some(0) && ran.out.starts_with(all), "{ran:?}");
    assert!(ran.out.ends_with("without a partner: 0 of the folder, 0 of A\n"), "{ran:?}");

    // The outer calls give "a" and "y", the inner ones too, and the first node inside "a".
    let index: Value = serde_json::from_slice(&fs::read(bench.path("values/index.json")).unwrap()).unwrap();
    let paths: Vec<(&Value, &Value)> =
        index["values"].as_array().unwrap().iter().map(|value| (&value["name"], &value["path"])).collect();
    let call = |node: &str| json!({"node": node, "trip": 0});
    let inner = |outer: &str, inner: &str| json!([call(outer), call(inner)]);
    assert_eq!(
        paths[..4],
        [
            (&json!("a"), &inner("a", "a")),
            (&json!("a"), &json!([call("a")])),
            (&json!("a"), &inner("a", "y")),
            (&json!("a"), &Value::Null),
        ]
    );

    // The second inner call of the first outer one.
    fs::write(&b, twice("Abs")).unwrap();
    let ran = compare(&bench, "model.onnx", &[&[&*b], &FEED[..]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("The first that differs, \"a\" in the call that gives \"a\", is 1 at [0]"), "{}", ran.out);
    let reads = "The last of them reads \"a\" in the call that gives \"a\", in the call that gives \"a\"\n";
    assert!(ran.out.contains(reads), "{}", ran.out);
}

/// `y = Loop(3, x)`: each trip adds `x`, or with `If` its negation from trip 1 on.
fn looped(branch: &str) -> Vec<u8> {
    let cond = node("Identity", &["cond"], &["go"], &[]);
    let branches = ["then_branch", "else_branch"].map(|name| {
        let operator = if name == "then_branch" { "Identity" } else { branch };
        body(name, &graph(&[node(operator, &["s"], &["picked"], &[])], &[], &["picked"]))
    });
    let nodes = [
        cond,
        node("Constant", &[], &["one"], &[int("value_int", 1)]),
        node("Less", &["i", "one"], &["first"], &[]),
        node("If", &["first"], &["t"], &branches),
        node("Add", &["t", "x"], &["next"], &[]),
    ];
    let inputs = [("i", DType::Int64), ("cond", DType::Bool), ("s", DType::Float)];
    let inner = graph(&nodes, &inputs, &["go", "next"]);
    let nodes = [
        node("Constant", &[], &["n"], &[int("value_int", 3)]),
        node("Loop", &["n", "", "x"], &["y"], &[body("body", &inner)]),
    ];
    model(&graph(&nodes, &[("x", DType::Float)], &["y"]), &[])
}

#[test]
fn the_first_difference_in_a_subgraph() {
    let bench = Bench::new(&looped("Neg"));
    let b = bench.text("b.onnx");
    fs::write(&b, looped("Abs")).unwrap();
    let same = compare(&bench, "model.onnx", &[&[&*bench.text("model.onnx")], &FEED[..]].concat());
    // In each trip 6 values, one of them in the branch; and 2 around the loop.
    assert!(same.out.starts_with("20 values with the same name: 20 equal bit by bit"), "{same:?}");
    let ran = compare(&bench, "model.onnx", &[&[&*b], &FEED[..]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // After trip 0 "s" is [2, -4]; Abs and Neg differ in both.
    let first =
        "The first that differs, \"picked\" in the else_branch of \"t\", in the body of \"y\", trip 1, is 2 at [0]";
    assert!(ran.out.contains(first), "{}", ran.out);
    let path = json!([{"node": "y", "body": "body", "trip": 1}, {"node": "t", "body": "else_branch", "trip": 0}]);
    let found: Value =
        serde_json::from_str(&compare(&bench, "model.onnx", &[&[&*b, "--json"], &FEED[..]].concat()).out).unwrap();
    assert_eq!((&found["first"]["value"], &found["first"]["path"]), (&json!("picked"), &path));
    assert_eq!(found["first"]["nodes"].as_array().unwrap().len(), 1);
    // Recorded values of subgraphs are compared too.
    let folder = bench.text("values");
    assert_eq!(bench.run(&[&["--dump", &folder, "-q"], &FEED[..]].concat()).code, Some(0));
    let ran = compare(&bench, "b.onnx", &[&[&*folder], &FEED[..]].concat());
    assert!(ran.code == Some(1) && ran.out.contains(first), "{ran:?}");
    // Those of earlier versions have no path, and are left out.
    let index = fs::read_to_string(bench.path("values/index.json")).unwrap();
    let mut index: Value = serde_json::from_str(&index).unwrap();
    for value in index["values"].as_array_mut().unwrap() {
        value.as_object_mut().unwrap().remove("path");
    }
    fs::write(bench.path("values/index.json"), index.to_string()).unwrap();
    let ran = compare(&bench, "model.onnx", &[&[&*folder], &FEED[..]].concat());
    assert!(ran.code == Some(0) && ran.out.starts_with("2 values with the same name: 2 equal bit by bit"), "{ran:?}");
}

#[test]
fn what_leads_to_a_value_in_a_subgraph_may_be_around_it() {
    // "m" has no partner in B, which calls it "n".
    let make = |name: &str, operator: &str| {
        let branches = ["then_branch", "else_branch"]
            .map(|branch| body(branch, &graph(&[node("Abs", &[name], &["p"], &[])], &[], &["p"])));
        let nodes = [node(operator, &["x"], &[name], &[]), node("If", &["c"], &["y"], &branches)];
        model(&graph(&nodes, &[("x", DType::Float), ("c", DType::Bool)], &["y"]), &[])
    };
    let bench = Bench::new(&make("m", "Neg"));
    fs::write(bench.path("b.onnx"), make("n", "Exp")).unwrap();
    let ran = compare(&bench, "model.onnx", &[&[&*bench.text("b.onnx"), "-i", "c=true"], &FEED[..]].concat());
    let lines: Vec<&str> = ran.out.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("Nodes that lead to it")).unwrap();
    assert_eq!(
        lines[at + 2..at + 4]
            .iter()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>(),
        [
            "node #0 (Exp-13) gives \"n\" has no partner",
            "node #0 (Abs-13) gives \"p\" in the then_branch of \"y\" differs"
        ]
    );
}

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % most
    }
}

/// Random nodes that read "x" and "c", with up to `depth` levels of subgraphs. Returns the name of the last value.
/// `functions` can be called; names count from `next` on.
fn nodes(
    numbers: &mut Numbers,
    depth: usize,
    functions: usize,
    outer: &[String],
    next: &mut usize,
) -> (Vec<Vec<u8>>, String) {
    let (mut made, mut known): (Vec<Vec<u8>>, Vec<String>) = (Vec::new(), outer.to_vec());
    for _ in 0..2 + numbers.below(3) {
        let name = format!("v{next}");
        *next += 1;
        let (a, b) = (known[numbers.below(known.len())].clone(), known[numbers.below(known.len())].clone());
        let node = match numbers.below(7) {
            0 | 1 if functions > 0 => node(&format!("f.F{}", numbers.below(functions)), &[&a, "c"], &[&name], &[]),
            2 if depth > 0 => {
                let start = *next;
                let branches = ["then_branch", "else_branch"].map(|branch| {
                    // Both have the same names.
                    *next = start;
                    let (nodes, last) = nodes(numbers, depth - 1, functions, &known, next);
                    body(branch, &graph(&nodes, &[], &[&last]))
                });
                *next += 20;
                node("If", &["c"], &[&name], &branches)
            }
            3 if depth > 0 => {
                let [i, go, s, on, n] = ["i", "go", "s", "on", "n"].map(|what| format!("{what}{next}"));
                let inside = [&known[..], std::slice::from_ref(&s)].concat();
                let (mut inner, last) = nodes(numbers, depth - 1, functions, &inside, next);
                inner.push(node("Identity", &[&go], &[&on], &[]));
                let inputs = [(&*i, DType::Int64), (&*go, DType::Bool), (&*s, DType::Float)];
                made.push(node("Constant", &[], &[&n], &[int("value_int", numbers.below(4) as u64)]));
                node("Loop", &[&n, "", &a], &[&name], &[body("body", &graph(&inner, &inputs, &[&on, &last]))])
            }
            4 => node("Add", &[&a, &b], &[&name], &[]),
            5 => node("Tanh", &[&a], &[&name], &[]),
            _ => node("Neg", &[&a], &[&name], &[]),
        };
        made.push(node);
        known.push(name);
    }
    let last = known.pop().unwrap();
    (made, last)
}

#[test]
fn random_models_equal_themselves() {
    let (mut numbers, mut compared, mut several) = (Numbers(7), 0, 0);
    for _ in 0..60 {
        let functions: Vec<Vec<u8>> = (0..3)
            .map(|k| {
                let (made, last) = nodes(&mut numbers, 1, k, &["x".to_string()], &mut 0);
                function(&format!("F{k}"), &["x", "c"], &last, &made)
            })
            .collect();
        let (made, last) = nodes(&mut numbers, 2, 3, &["x".to_string()], &mut 0);
        let graph = graph(&made, &[("x", DType::Float), ("c", DType::Bool)], &[&last]);
        let bench = Bench::new(&model(&graph, &functions));
        let condition = format!("c={}", numbers.below(2) == 0);
        let feeds = [&FEED[..], &["-i", &condition]].concat();
        for second in [None, Some(bench.text("model.onnx"))] {
            let more = [second.as_deref().into_iter().collect::<Vec<_>>(), feeds.clone(), vec!["--json"]].concat();
            let ran = compare(&bench, "model.onnx", &more);
            let found: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
            assert_eq!((ran.code, &found["differing"]), (Some(0), &json!(0)), "{ran:?}");
            compared += found["compared"].as_u64().unwrap();
            if second.is_some() {
                assert_eq!((&found["only_a"], &found["only_b"]), (&json!(0), &json!(0)), "{ran:?}");
                several += usize::from(found["compared"].as_u64().unwrap() > made.len() as u64);
            }
        }
    }
    assert!(compared > 1000 && several > 40, "{compared} values, {several} models with calls or subgraphs");
}
