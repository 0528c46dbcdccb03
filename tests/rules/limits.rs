//! Requests for memory and time by few bytes: each is refused by a limit before the cost arises.

use crate::common::proto::AttributeProto;
use crate::common::{fix, int, model, node, one_node, one_node_graph, string};
use crate::{int64, iota};
use onnxref::{DType, Error, Inputs, Kind, LoadOptions, Model, Tensor};
use std::time::Instant;

/// The error of a node whose inputs are fed.
fn error(options: &LoadOptions, op_type: &str, attributes: Vec<AttributeProto>, inputs: &[(&str, &Tensor)]) -> Error {
    let output = inputs[0].1.dtype();
    let output = if op_type == "ConstantOfShape" { DType::Float } else { output };
    let bytes = one_node(op_type, 13, attributes, inputs, output);
    let feeds: Inputs<'_> = inputs.iter().copied().collect();
    options.clone().from_bytes(bytes).unwrap().run(feeds).unwrap_err()
}

fn refused(op_type: &str, attributes: Vec<AttributeProto>, inputs: &[(&str, &Tensor)], limits: &[&str]) {
    let start = Instant::now();
    let error = error(&Model::options(), op_type, attributes, inputs);
    // Sizes that can't be counted at all are the input's fault.
    match error.place().limit {
        Some(limit) => assert!(error.kind() == Kind::Limit && limits.contains(&limit), "{op_type}: {error}"),
        None => assert!(error.kind() == Kind::Input && limits.is_empty(), "{op_type}: {error}"),
    }
    // Far below the time that the work would take.
    assert!(start.elapsed().as_secs() < 20, "{op_type}");
}

#[test]
fn outputs_of_a_few_bytes_of_input() {
    let (one, bytes) = (iota(&[1]), &["tensor_bytes"][..]);
    let list = |values: &[i64]| int64(&[values.len()], values);
    let scalar = |value: i64| Tensor::scalar(value);
    refused("Expand", vec![], &[("x", &one), ("shape", &list(&[1 << 40]))], bytes);
    refused("Expand", vec![], &[("x", &one), ("shape", &list(&[1 << 62, 1 << 62]))], &[]);
    refused("Tile", vec![], &[("x", &one), ("repeats", &list(&[1 << 40]))], bytes);
    refused("Tile", vec![], &[("x", &iota(&[4])), ("repeats", &list(&[i64::MAX]))], &[]);
    refused("ConstantOfShape", vec![], &[("shape", &list(&[1 << 40]))], bytes);
    refused("ConstantOfShape", vec![], &[("shape", &list(&[i64::MAX, i64::MAX]))], &[]);
    refused("Range", vec![], &[("start", &scalar(0)), ("limit", &scalar(1 << 40)), ("delta", &scalar(1))], bytes);
    let (least, most) = (scalar(i64::MIN), scalar(i64::MAX));
    refused("Range", vec![], &[("start", &least), ("limit", &most), ("delta", &scalar(1))], &[]);
    for mode in ["constant", "reflect", "edge"] {
        refused("Pad", vec![string("mode", mode)], &[("x", &one), ("pads", &list(&[0, 1 << 40]))], bytes);
    }
    refused("Pad", vec![], &[("x", &one), ("pads", &list(&[i64::MAX, i64::MAX]))], &[]);
    refused("CumSum", vec![], &[("x", &one), ("axis", &scalar(i64::MIN))], &[]);
    let on = Tensor::from(vec![0f32, 1.0]);
    let depth =
        [("indices", &list(&[0])), ("depth", &scalar(1 << 40)), ("values", &on)].map(|(name, t)| (name, t.clone()));
    let depth: Vec<(&str, &Tensor)> = depth.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let bytes = one_node("OneHot", 11, vec![int("axis", 0)], &depth, DType::Float);
    let error = Model::options().from_bytes(bytes).unwrap().run(depth.iter().copied().collect()).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("tensor_bytes")), "{error}");
}

/// The operands of a product are as large as its `k`, so a huge one is refused where they are made. Of operands that
/// are within the limits, the work is counted before it is done.
#[test]
fn products_of_expanded_operands() {
    let refused = |k: i64, run_work: u64| {
        let one = iota(&[1, 1]);
        let mut graph = one_node_graph("Expand", vec![], &[("x", &one)], DType::Float);
        graph.node = vec![
            node("Expand", &["x", "row"], &["a"], vec![]),
            node("Expand", &["x", "column"], &["b"], vec![]),
            node("MatMul", &["a", "b"], &["output"], vec![]),
        ];
        let sizes = [("row", int64(&[2], &[1, k])), ("column", int64(&[2], &[k, 1]))];
        sizes.iter().for_each(|(name, sizes)| fix(&mut graph, name, sizes));
        let options = Model::options().change_limits(|limits| limits.run_work = run_work);
        let start = Instant::now();
        let outputs = options.from_bytes(model(13, 8, graph)).unwrap().run(Inputs::new().with("x", &one));
        assert!(start.elapsed().as_secs() < 20, "k = {k}");
        outputs.err().and_then(|error| error.place().limit)
    };
    assert_eq!(refused(1 << 40, 1), Some("tensor_bytes"));
    assert_eq!(refused(1 << 20, (1 << 20) - 1), Some("run_work"));
    assert_eq!(refused(2, 1), Some("run_work"));
    assert_eq!(refused(2, 2), None);
}
