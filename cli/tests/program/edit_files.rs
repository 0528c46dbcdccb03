//! Where verbs that change models write, as a user calls them.

use crate::common::{Bench, check, onnxref};
use onnxref::document::{Document, Graph, Initializer, Node, ValueInfo};
use onnxref::{DType, Model, Tensor};
use std::fs;

/// A model whose weights are in `w.bin`.
pub(crate) fn external() -> Bench {
    let info = |name: &str| ValueInfo::tensor(name, DType::Float, [3i64]);
    let graph = Graph::new("g")
        .input(info("x"))
        .initializer(Initializer::new("w", &Tensor::from(vec![1f32, 2.0, 3.0])))
        .node(Node::new("Add", ["x", "w"], ["y"]))
        .output(info("y"));
    let mut document = Document::new(graph, 17);
    let data = document.externalize("w.bin", 1).unwrap();
    let bench = Bench::new(&document.to_bytes().unwrap());
    data.write(fs::File::create(bench.path("w.bin")).unwrap()).unwrap();
    bench
}

#[test]
fn no_model_takes_the_place_of_its_data() {
    let bench = external();
    let (model, to) = (bench.text("model.onnx"), bench.text("w.bin"));
    let weights = fs::read(&to).unwrap();
    let refused = format!("error: -o {to}: it is a file of {model}\n");
    for verb in [&["convert", "--opset", "18"][..], &["simplify"], &["extract", "--outputs", "y"], &["set", "--embed"]]
    {
        check(onnxref([verb, &[&model, "-o", &to]].concat()), 2, "", &refused);
    }
    check(onnxref(["reduce", &model, "-o", &to, "--", "false", "{model}"]), 2, "", &refused);
    assert_eq!(fs::read(&to).unwrap(), weights);
}

/// The model is at fault, whatever form it would get.
#[test]
fn a_broken_tensor_is_one_of_the_model() {
    let info = ValueInfo::tensor("y", DType::Float, [1i64]);
    for (dim, why) in [(-1, "a dimension is -1: allowed 0 or more"), (2, "it has 4 bytes: its type needs 8")] {
        let mut weights = Initializer::new("w", &Tensor::from(vec![1f32]));
        weights.dims = vec![dim];
        let graph = Graph::new("g").initializer(weights).node(Node::new("Neg", ["w"], ["y"])).output(info.clone());
        let bench = Bench::new(&Document::new(graph, 18).to_bytes().unwrap());
        let (model, to) = (bench.text("model.onnx"), bench.text("out.onnxtxt"));
        let ran = onnxref(["set", &model, "--metadata", "k=v", "--no-prove", "-o", &to]);
        check(ran, 3, "", &format!("error: {model}: tensor \"w\": {why}\n"));
        assert_eq!(bench.files(), [""; 0]);
    }
}

/// Data goes beside the model, where a link leads.
#[test]
#[cfg(unix)]
fn data_follows_links_of_the_model() {
    let bench = external();
    for folder in ["links", "other"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, bench.path("links").join(name)).unwrap();
        bench.text("links") + "/" + name
    };
    let names = |folder: &str| {
        let files = fs::read_dir(bench.path(folder)).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let (own, other) = (link("../model.onnx", "own.onnx"), link("../other/new.onnx", "other.onnx"));
    let convert = |to: &str| onnxref(["convert", &bench.text("model.onnx"), "--opset", "18", "-o", to]);
    assert_eq!(convert(&other).code, Some(0));
    assert_eq!(names("other"), ["new.onnx", "new.onnx.data"]);
    assert!(Model::load(bench.path("other").join("new.onnx")).is_ok());
    assert_eq!(convert(&own).code, Some(0));
    assert_eq!(names("links"), ["other.onnx", "own.onnx"]);
    assert_eq!(bench.files(), ["links", "other", "w.bin"]);
    assert_eq!(Model::load(bench.path("model.onnx")).unwrap().opsets(), [(String::new(), 18)]);
}
