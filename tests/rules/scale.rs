//! Many nodes, little stack, several threads.

use crate::common::{model, node, value};
use crate::{data, good, good_feeds, good_output, int64, load};
use onnxref::{DType, Model, inputs};
use std::thread;

#[test]
fn a_chain_of_20_000_nodes_on_a_small_stack() {
    const NODES: usize = 20_000;
    let name = |k: usize| format!("x{k}");
    let gather = |k: usize| node("Gather", &[&name(k), "next"], &[&name(k + 1)], vec![]);
    let graph = crate::common::proto::GraphProto {
        name: Some("chain".into()),
        node: (0..NODES).map(gather).collect(),
        input: vec![value("x0", DType::Float, None), value("next", DType::Int64, None)],
        output: vec![value(&name(NODES), DType::Float, None)],
        ..Default::default()
    };
    let bytes = model(13, 8, graph);
    let run = move || {
        let model = Model::from_bytes(bytes).unwrap();
        assert_eq!(model.node_count(), NODES);
        let mut outputs = model.run(inputs! { "x0" => data(), "next" => int64(&[3], &[1, 2, 0]) }).unwrap();
        outputs.take::<f32>(&name(NODES)).unwrap()
    };
    let output = thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
    // Each node turns by 1 row of 3, and 20,000 = 2 mod 3.
    assert_eq!(output, ndarray::array![[4f32, 5.0], [0.0, 1.0], [2.0, 3.0]].into_dyn());
}

#[test]
fn one_model_runs_in_several_threads_at_once() {
    let model = load(&good()).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(model.run(good_feeds()).unwrap()["output"], good_output());
                }
            });
        }
    });
}
