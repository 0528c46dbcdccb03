//! Loading: `Model::load` compared with reading the file and decoding its messages.

use crate::common::proto::{GraphProto, ModelProto};
use crate::common::{initializer, model, node, value};
use crate::harness::{Bench, Contender};
use onnxref::{DType, Model, Tensor};
use prost::Message;
use std::hint::black_box;
use std::path::Path;

/// Measures all cells of loading.
pub fn measure(bench: &mut Bench) {
    type Make = fn() -> Vec<u8>;
    let cells: [(&str, Make); 3] =
        [("load/40 MB initializer", table), ("load/20,000 nodes", nodes), ("load/50,000 initializers", initializers)];
    for (name, make) in cells {
        if bench.wants(name) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("model.onnx");
            std::fs::write(&path, make()).unwrap();
            cell(bench, name, &path);
        }
    }
}

fn cell(bench: &mut Bench, name: &str, path: &Path) {
    // SAFETY: nobody changes the file, which is in a new folder.
    let mapped = unsafe { Model::options().mmap() };
    let contenders = vec![
        Contender::new("decode", || {
            let bytes = bytes::Bytes::from(std::fs::read(path).unwrap());
            drop(black_box(ModelProto::decode(bytes).unwrap()));
        }),
        Contender::new("read", || drop(black_box(std::fs::read(path).unwrap()))),
        Contender::new("load", || drop(black_box(Model::load(path).unwrap()))),
        Contender::new("load_mmap", || drop(black_box(mapped.load(path).unwrap()))),
    ];
    let bytes = std::fs::metadata(path).unwrap().len();
    bench.measure(name, serde_json::json!({ "bytes": bytes }), contenders);
}

/// An embedding of 40 MB.
fn table() -> Vec<u8> {
    let table = Tensor::new(DType::Float, &[10_000, 1000], vec![1; 40_000_000]).unwrap();
    one_gather(vec![initializer("data", &table)])
}

/// One constant that is used, and many that aren't.
fn initializers() -> Vec<u8> {
    let small = Tensor::new(DType::Float, &[4], vec![0; 16]).unwrap();
    let names = std::iter::once("data".to_string()).chain((1..50_000).map(|k| format!("weight.{k}")));
    one_gather(names.map(|name| initializer(&name, &small)).collect())
}

fn one_gather(initializers: Vec<crate::common::proto::TensorProto>) -> Vec<u8> {
    let graph = GraphProto {
        name: Some("graph".into()),
        node: vec![node("Gather", &["data", "indices"], &["output"], vec![])],
        input: vec![value("indices", DType::Int64, None)],
        output: vec![value("output", DType::Float, None)],
        initializer: initializers,
        ..Default::default()
    };
    model(17, 8, graph)
}

fn nodes() -> Vec<u8> {
    let order = Tensor::from_array(ndarray::Array1::from_iter((0..16i64).rev()));
    model(17, 8, crate::chain(20_000, &order, &order))
}
