//! The preset for models of strangers: what it is made for is refused at once.

use crate::case::{At, Case, check, report};
use crate::common::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};
use crate::common::{model, node, one_node, value};
use crate::graphs::{array, changed, graph_of};
use crate::nesting::nested;
use onnxref::{DType, Kind, Limits, Model, Tensor};
use std::time::{Duration, Instant};

/// A bomb that the preset refuses by this limit.
fn bomb(name: &str, bytes: Vec<u8>, limit: &'static str) -> Case {
    let text = format!("Limits::{limit}");
    Case::new("untrusted", name, bytes, Kind::Limit, text)
        .at([At::Limit(limit)])
        .limits(|limits| *limits = Limits::untrusted())
}

/// A node whose inputs are all fed.
fn fed(name: &str, op_type: &str, inputs: Vec<(&'static str, Tensor)>, limit: &'static str) -> Case {
    let given: Vec<(&str, &Tensor)> = inputs.iter().map(|(name, tensor)| (*name, tensor)).collect();
    bomb(name, one_node(op_type, 23, vec![], &given, given[0].1.dtype()), limit).fed(inputs)
}

/// Functions that each call the next ten times: 10^6 nodes in the end.
fn calls() -> Vec<u8> {
    let call = |to: usize| NodeProto { domain: Some("f".into()), ..node(&format!("f{to}"), &["x"], &["y"], vec![]) };
    let function = |level: usize| {
        let ten = (0..10).map(|k| NodeProto { output: vec![format!("y{k}")], ..call(level + 1) });
        let last = vec![node("Abs", &["x"], &["y0"], vec![])];
        let mut function = FunctionProto {
            name: Some(format!("f{level}")),
            domain: Some("f".into()),
            input: vec!["x".into()],
            output: vec!["y0".into()],
            node: if level == 6 { last } else { ten.collect() },
            ..FunctionProto::default()
        };
        for domain in ["", "f"] {
            let import = crate::common::proto::OperatorSetIdProto { domain: Some(domain.into()), version: Some(13) };
            function.opset_import.push(import);
        }
        function
    };
    changed(|model| {
        model
            .opset_import
            .push(crate::common::proto::OperatorSetIdProto { domain: Some("f".into()), version: Some(1) });
        model.functions = (0..=6).map(function).collect();
        let graph = graph_of(model);
        graph.node = vec![NodeProto { input: vec!["data".into()], ..call(0) }];
        graph.output.clear();
    })
}

#[test]
fn bombs() {
    let list = |values: &[i64]| array(&[values.len()], |k| values[k]);
    let floats = |shape: &[usize]| array(shape, |_| 0f32);
    let heads = || floats(&[1, 1, 1 << 17, 8]);
    let start = Instant::now();
    check([
        fed("a GiB out of 4 bytes", "Expand", vec![("x", floats(&[1])), ("shape", list(&[1 << 28]))], "tensor_bytes"),
        fed("a long row", "Tile", vec![("x", floats(&[1])), ("repeats", list(&[1 << 40]))], "tensor_bytes"),
        fed(
            "a hundred thousand queries",
            "Attention",
            vec![("q", heads()), ("k", heads()), ("v", heads())],
            "run_work",
        ),
        fed("17 dimensions", "Reshape", vec![("x", floats(&[1])), ("shape", list(&[1; 17]))], "rank"),
        bomb("a name of 5000 bytes", changed(|model| graph_of(model).name = Some("x".repeat(5000))), "name_bytes"),
        bomb("a million nodes of functions", calls(), "nodes"),
        bomb("graphs in graphs", nested(&[7], &[1, 5, 6], 41), "nesting"),
    ]);
    // Each is tried twice, and inspected.
    assert!(start.elapsed() < Duration::from_secs(20), "refusing bombs takes {:?}", start.elapsed());
    report("untrusted");
}

/// Each step doubles what the run holds.
#[test]
fn a_run_that_doubles() {
    let name = |k: usize| format!("x{k}");
    let concat = |k: usize| {
        let axis: AttributeProto = crate::common::int("axis", 0);
        node("Concat", &[&name(k), &name(k)], &[&name(k + 1)], vec![axis])
    };
    let graph = GraphProto {
        node: (0..60).map(concat).collect(),
        input: vec![value("x0", DType::Uint8, None)],
        output: vec![value("x60", DType::Uint8, None)],
        ..GraphProto::default()
    };
    let bytes = model(13, 8, graph);
    let model = Model::options().limits(Limits::untrusted()).from_bytes(bytes).unwrap();
    let error = model.run(onnxref::inputs! { "x0" => Tensor::from(vec![0u8; 1 << 20]) }).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("tensor_bytes")), "{error}");
}
