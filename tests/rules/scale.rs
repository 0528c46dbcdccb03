//! Many nodes, little stack, several threads.

use crate::common::{model, node, run_one, run_one_with, value};
use crate::{data, good, good_feeds, good_output, int64, load};
use onnxref::{DType, Model, Tensor, inputs};
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

/// Where the system can create no thread, a run goes on with its caller's, and gives the same bits.
#[test]
#[cfg(target_os = "linux")]
fn a_run_needs_no_other_thread() {
    const ALONE: &str = "ONNXREF_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // This test again, in a process where no thread can have its stack.
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "scale::a_run_needs_no_other_thread", "--nocapture"]);
        process.env(ALONE, "1").env("RUST_MIN_STACK", (usize::MAX / 4 * 3).to_string());
        let output = process.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
        return assert!(!err.contains("panicked"), "{err}");
    }
    assert!(thread::Builder::new().spawn(|| ()).is_err());
    assert_eq!(onnxref::available_threads(), 1);
    let x = Tensor::from((0..1 << 20).map(|k| k as f32 / 1e6).collect::<Vec<_>>());
    let y = Tensor::from_elements(&[300, 300], vec![0.1f32; 90_000]).unwrap();
    for (operator, operands) in [("Exp", &[("x", &x)][..]), ("MatMul", &[("a", &y), ("b", &y)])] {
        let alone = run_one_with(&Model::options().threads(1), operator, 13, vec![], operands).unwrap();
        assert_eq!(run_one(operator, 13, vec![], operands).unwrap(), alone, "{operator}");
    }
}
