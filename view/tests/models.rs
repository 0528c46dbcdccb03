//! Models as JSON and as pictures.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../cli/tests/program/common/proto.rs"]
mod proto;

use onnxref::DType;
use onnxref::inspect::Inspection;
use onnxref_view::inspection;
use onnxref_view::picture::{self, Part};
use proto::{bytes, gather, model, node, number};
use serde_json::{Value, json};

fn inspect(model: Vec<u8>) -> Inspection {
    let options = onnxref::Model::options().change_limits(|limits| limits.load_bytes = 1 << 32);
    options.inspect_bytes(model).unwrap()
}

fn document(found: &Inspection) -> Value {
    serde_json::to_value(inspection::Document::new(found, |error| format!("{error:#}"))).unwrap()
}

/// A node with a name.
fn named(name: &str, operator: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let plain = node(operator, inputs, output);
    // Its fields are behind the key and the length.
    let head = if plain[1] < 0x80 { 2 } else { 3 };
    bytes(1, &[&plain[head..], &bytes(3, name.as_bytes())[..]].concat())
}

const X: &[(&str, Option<DType>)] = &[("x", Some(DType::Float))];

#[test]
fn json_of_a_model() {
    let found = document(&inspect(gather(DType::Float)));
    assert_eq!((&found["runs"], &found["error"]), (&json!(true), &Value::Null));
    assert_eq!(found["opsets"], json!([{ "domain": "", "version": 13 }]));
    let graph = &found["graph"];
    assert_eq!(graph["inputs"][1]["name"], "indices");
    assert_eq!((&graph["inputs"][1]["type"], &graph["inputs"][1]["shape"]), (&json!("int64"), &Value::Null));
    let node = &graph["nodes"][0];
    assert_eq!((&node["operator"], &node["version"], &node["fate"]), (&json!("Gather"), &json!(13), &json!("runs")));
    assert_eq!((&node["inputs"], &node["outputs"]), (&json!(["data", "indices"]), &json!(["y"])));
    let read = node["input_values"][1].as_u64().unwrap() as usize;
    assert_eq!(graph["values"][read]["name"], "indices");
    assert_eq!(found["totals"]["operators"][0]["nodes"], 1);
}

#[test]
fn json_of_what_cannot_run() {
    let found = document(&inspect(model(&node("Nonsense", &["x"], "y"), X, 13)));
    assert_eq!(found["runs"], false);
    assert!(found["error"]["message"].as_str().unwrap().contains("Nonsense"), "{found}");
    assert_eq!(found["memory"], Value::Null);
}

#[test]
fn long_tensors_are_not_dumped() {
    let values = |count: usize| {
        let tensor = onnxref::Tensor::from_elements(&[count], vec![1.0f32; count]).unwrap();
        let constant = bytes(5, &[bytes(1, b"value"), bytes(5, &tensor.to_proto_bytes("")), number(20, 4)].concat());
        let nodes = bytes(1, &[bytes(2, b"c"), bytes(4, b"Constant"), constant].concat());
        let found = inspect(model(&[nodes, node("Add", &["x", "c"], "y")].concat(), X, 13));
        document(&found)["graph"].clone()
    };
    let (short, long) = (values(64), values(65));
    assert_eq!(short["constants"][0]["constant"]["values"].as_array().unwrap().len(), 64);
    assert_eq!(long["constants"][0]["constant"], json!({ "dtype": "float32", "shape": [65] }));
    assert_eq!(long["constants"][0]["bytes"], 260);
    assert_eq!(long["nodes"][0]["attributes"]["value"], json!({ "dtype": "float32", "shape": [65] }));
}

/// Checks that a picture is balanced, and returns the number of its boxes, without those of the legend.
#[track_caller]
fn boxes(svg: &str) -> usize {
    assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count(), "{svg}");
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    svg.matches("<g class=\"box ").count() - svg.matches("y=\"38\" width=\"12\"").count()
}

#[test]
fn a_picture_escapes_names() {
    let nodes = named("<script>&\"\u{1}\u{202e}", "Relu", &["x"], "y");
    let found = inspect(model(&nodes, X, 13));
    let svg = picture::svg(&found.graph, "a < b");
    assert_eq!(boxes(&svg), 3);
    assert!(
        svg.contains("<title>a &lt; b</title>") && svg.contains("&lt;script&gt;&amp;&quot;\u{fffd}\u{fffd}"),
        "{svg}"
    );
    assert!(!svg.contains("<script"));
    let dot = picture::dot(&found.graph, "a \"b\"");
    assert!(dot.starts_with("digraph \"a \\\"b\\\"\" {\n") && dot.contains("&lt;script&gt;"), "{dot}");
    assert_eq!(dot.matches(" -> ").count(), 2, "{dot}");
}

#[test]
fn small_and_odd_graphs() {
    for (nodes, count) in [
        (Vec::new(), 2),
        (node("Relu", &["x"], "y"), 3),
        // A cycle, a node that reads itself, a value that nothing produces.
        ([node("Add", &["x", "b"], "a"), node("Add", &["a", "x"], "b"), node("Relu", &["b"], "y")].concat(), 5),
        (node("Add", &["x", "y"], "y"), 3),
        (node("Add", &["x", "nowhere"], "y"), 3),
    ] {
        let found = inspect(model(&nodes, X, 13));
        let svg = picture::svg(&found.graph, "");
        assert_eq!(boxes(&svg), count, "{svg}");
        assert!(picture::dot(&found.graph, "").ends_with("}\n"));
    }
}

/// A chain of blocks `/net/layer.K/` with so many nodes each; without names if there is no scope.
fn chain(layers: usize, each: usize, scope: &str) -> Vec<u8> {
    let (mut nodes, mut last) = (Vec::new(), "x".to_string());
    for k in 0..layers * each {
        let next = if k + 1 == layers * each { "y".to_string() } else { format!("v{k}") };
        let name = if scope.is_empty() { String::new() } else { format!("{scope}.{}/Relu_{k}", k / each) };
        nodes.extend(named(&name, "Relu", &[&last], &next));
        last = next;
    }
    model(&nodes, X, 13)
}

#[test]
fn large_graphs_are_folded() {
    let svg = |model| picture::svg(&inspect(model).graph, "large");
    assert_eq!(boxes(&svg(chain(3, 100, "/net/layer"))), 302);
    let folded = svg(chain(4, 100, "/net/layer"));
    assert_eq!(boxes(&folded), 6);
    assert!(folded.contains(">layer.3<tspan class=\"version\"> (100 nodes)</tspan>"), "{folded}");
    assert!(folded.contains("100 Relu"), "{folded}");
    let nameless = svg(chain(4, 100, ""));
    assert!((50..=112).contains(&boxes(&nameless)), "{}", boxes(&nameless));
    assert!(nameless.contains("as they follow each other"));
    // More scopes than boxes.
    assert!((50..=112).contains(&boxes(&svg(chain(400, 1, "/net/layer")))));
}

#[test]
fn a_part_of_a_graph_is_drawn_with_what_enters_and_leaves() {
    let found = inspect(chain(4, 100, "/net/layer"));
    let groups = picture::groups(&found.graph, Part::default());
    assert_eq!(groups.len(), 4);
    let (number, name, nodes) = &groups[1];
    assert_eq!((*number, name.as_str(), nodes[0], nodes.len()), (1, "layer.1", 100, 100));
    let part = Part { nodes: Some(nodes), ..Part::default() };
    let drawn = picture::draw(&found.graph, part, "7.0.");
    // The value that enters, and the one that leaves.
    assert_eq!(boxes(&drawn.svg), 102);
    assert!(drawn.groups.is_empty() && drawn.caption.is_empty());
    let captured = drawn.svg.split("class=\"box captured\" data-box").nth(1).unwrap();
    assert!(captured.contains(">v99<"), "{captured:.200}");
    assert!(drawn.svg.contains("data-node=\"7.0.100\"") && !drawn.svg.contains("data-node=\"7.0.200\""));
    let enters = found.graph.values.iter().position(|value| value.name == "v99").unwrap();
    assert!(drawn.svg.contains(&format!("data-from=\"7.0.100\" data-to=\"7.0.0\" data-values=\"7.0.{enters}\"")));
}

#[test]
fn computed_nodes_can_be_left_out() {
    let constant = bytes(5, &[bytes(1, b"value_float"), vec![0x15, 0, 0, 0x80, 0x3f], number(20, 1)].concat());
    let nodes = bytes(1, &[bytes(2, b"c"), bytes(4, b"Constant"), constant].concat());
    let nodes = [nodes, node("Neg", &["c"], "d"), node("Add", &["x", "d"], "y")].concat();
    let found = inspect(model(&nodes, X, 13));
    let draw = |without_computed| picture::draw(&found.graph, Part { without_computed, ..Part::default() }, "").svg;
    assert_eq!((boxes(&draw(false)), boxes(&draw(true))), (4, 3));
    assert!(draw(true).contains(">d: -1.0<"), "{}", draw(true));
}

#[test]
fn a_graph_of_100_000_nodes_is_drawn_in_seconds() {
    let found = inspect(chain(1000, 100, "/net/block/layer"));
    let start = std::time::Instant::now();
    assert!((3..=112).contains(&boxes(&picture::svg(&found.graph, "huge"))));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
