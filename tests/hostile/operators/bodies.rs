//! Bodies of If, Loop, Scan, SequenceMap and FlexAttention, by name.

use crate::common::proto::{GraphProto, ValueInfoProto};
use crate::common::{initializer, int, node, value};
use onnxref::{DType, Tensor};

fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), ..Default::default() }
}

fn graph(inputs: Vec<ValueInfoProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: Some("body".into()),
        input: inputs,
        output: outputs.iter().map(|name| untyped(name)).collect(),
        ..GraphProto::default()
    }
}

pub(super) fn body(name: &str) -> GraphProto {
    let loop_inputs = || vec![value("trip", DType::Int64, None), value("cond", DType::Bool, None), untyped("state")];
    let nodes = |graph: GraphProto, node: Vec<_>| GraphProto { node, ..graph };
    match name {
        // Gives what an outer value is.
        "outer" => nodes(graph(vec![], &["x"]), vec![node("Identity", &["i0"], &["x"], vec![])]),
        // A constant.
        "one" => GraphProto { initializer: vec![initializer("x", &Tensor::scalar(1f32))], ..graph(vec![], &["x"]) },
        // Goes on with what it gets.
        "same" => graph(loop_inputs(), &["cond", "state"]),
        // Returns its state, and stacks it.
        "stack" => {
            let copy = node("Identity", &["state"], &["part"], vec![]);
            nodes(graph(loop_inputs(), &["cond", "state", "part"]), vec![copy])
        }
        // The state twice in a row.
        "double" => {
            let twice = node("Concat", &["state", "state"], &["next"], vec![int("axis", 0)]);
            nodes(graph(loop_inputs(), &["cond", "next"]), vec![twice])
        }
        // A sequence of one more tensor of nothing.
        "longer" => {
            let nothing = Tensor::from(Vec::<f32>::new());
            let inserted = node("SequenceInsert", &["state", "nothing"], &["next"], vec![]);
            GraphProto {
                initializer: vec![initializer("nothing", &nothing)],
                ..nodes(graph(loop_inputs(), &["cond", "next"]), vec![inserted])
            }
        }
        // Adds what is scanned to the state, and stacks it.
        "sum" => {
            let inputs = vec![untyped("state"), untyped("part")];
            let added = node("Add", &["state", "part"], &["next"], vec![]);
            let copy = node("Identity", &["part"], &["copy"], vec![]);
            nodes(graph(inputs, &["next", "copy"]), vec![added, copy])
        }
        // One value as it is.
        "through" => {
            let copy = node("Identity", &["x"], &["y"], vec![]);
            nodes(graph(vec![untyped("x")], &["y"]), vec![copy])
        }
        // One value, a thousand times as long.
        "wide" => {
            let many = Tensor::from(vec![1000i64]);
            let tiled = node("Tile", &["x", "many"], &["y"], vec![]);
            GraphProto {
                initializer: vec![initializer("many", &many)],
                ..nodes(graph(vec![untyped("x")], &["y"]), vec![tiled])
            }
        }
        other => panic!("no body is named {other}"),
    }
}
