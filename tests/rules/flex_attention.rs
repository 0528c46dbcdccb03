//! FlexAttention: what its subgraphs change, and what they may return.

use super::bodies::{body, open};
use super::common::float;
use super::common::proto::AttributeProto;
use super::*;

/// Two heads of queries share one of keys: with a scale of 1 the scores are [1, 3] and [2, 6].
fn run(change: Vec<AttributeProto>) -> Result<Outputs, Error> {
    let attributes = [vec![float("scale", 1.0)], change].concat();
    let flex = NodeProto {
        domain: Some("ai.onnx.preview".into()),
        ..node("FlexAttention", &["q", "k", "v"], &["y"], attributes)
    };
    let inputs = ["q", "k", "v", "m"].map(|name| open(name, DType::Float)).to_vec();
    let model = ModelProto {
        ir_version: Some(13),
        opset_import: vec![import("", 26), import("ai.onnx.preview", 1)],
        graph: Some(GraphProto {
            node: vec![flex],
            input: inputs,
            output: vec![value("y", DType::Float, None)],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    };
    let feeds = inputs! {
        "q" => array![[[[1f32]], [[2.0]]]],
        "k" => array![[[[1f32], [3.0]]]],
        "v" => array![[[[10f32], [20.0]]]],
        "m" => array![[[[0f32, f32::NEG_INFINITY]], [[f32::NEG_INFINITY, 0.0]]]],
    };
    load(&model)?.run(feeds)
}

/// A subgraph of one node that gives `z` of `s` and another value.
fn change(name: &str, op_type: &str, with: &str) -> AttributeProto {
    body(name, &[open("s", DType::Float)], vec![node(op_type, &["s", with], &["z"], vec![])], &["z"])
}

#[test]
fn scores_and_probabilities_change() {
    let gives = |change, want: [f32; 2]| {
        assert_eq!(run(change).unwrap()["y"], array![[[[want[0]]], [[want[1]]]]].into());
    };
    // The same score for each key.
    gives(vec![change("score_mod", "Sub", "s")], [15.0, 15.0]);
    gives(vec![change("score_mod", "Sub", "s"), change("prob_mod", "Add", "s")], [30.0, 30.0]);
    // A mask from outside: each head sees one key.
    gives(vec![change("score_mod", "Add", "m")], [10.0, 20.0]);
    gives(vec![change("prob_mod", "Sub", "s")], [0.0, 0.0]);
    let exact = |a: f64, b: f64| ((10.0 * a.exp() + 20.0 * b.exp()) / (a.exp() + b.exp())) as f32;
    for (at, want) in [exact(1.0, 3.0), exact(2.0, 6.0)].into_iter().enumerate() {
        let y = run(vec![]).unwrap()["y"].as_slice::<f32>().unwrap()[at];
        assert!((y - want).abs() < 1e-5, "{y} instead of {want}");
    }
}

#[test]
fn what_subgraphs_may_not_return() {
    let fails = |change, kind: Kind, text: &str| {
        let error = run(vec![change]).unwrap_err();
        assert_eq!((error.kind(), error.place().node_index), (kind, Some(0)), "{error}");
        assert!(error.to_string().ends_with(text), "{error}");
    };
    fails(
        change("score_mod", "MatMul", "k"),
        Kind::Model,
        "score_mod returns float32 of shape [1, 2, 1, 1]: float32 of shape [1, 2, 1, 2] is needed",
    );
    fails(
        change("prob_mod", "Less", "s"),
        Kind::Model,
        "prob_mod returns bool of shape [1, 2, 1, 2]: float32 of shape [1, 2, 1, 2] is needed",
    );
    let two = [open("s", DType::Float), open("t", DType::Float)];
    fails(
        body("score_mod", &two, vec![], &["s"]),
        Kind::Model,
        "the subgraph \"score_mod\" has 2 inputs: this node needs 1",
    );
}
