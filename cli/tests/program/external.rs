//! Changes of models whose data is in other files, or is moved there.

use crate::common::{Bench, onnxref};
use onnxref::document::{Document, External, Graph, Initializer, Node, ValueInfo};
use onnxref::{DType, Tensor};
use serde_json::{Value, json};
use std::fs;

/// `y = x + w`, where the initializer has its elements at `location`.
fn model(location: &str) -> Bench {
    let mut weights = Initializer::new("w", &Tensor::from(vec![1f32]));
    weights.set_external(&External { location: location.to_string(), offset: 0, length: Some(4) });
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, [1i64]))
        .initializer(weights)
        .node(Node::new("Add", ["x", "w"], ["y"]))
        .output(ValueInfo::untyped("y"));
    let bench = Bench::new(&Document::new(graph, 21).to_bytes().unwrap());
    fs::create_dir(bench.path("folder")).unwrap();
    bench
}

/// What is written needs data that the model doesn't have: the fault is the model's.
#[test]
fn data_that_is_not_there_is_missing_in_the_model() {
    let missing = |bench: &Bench| {
        let folder = bench.path("").display().to_string();
        let folder = folder.trim_end_matches('/');
        format!("external data \"no.bin\" in the folder \"{folder}\": No such file or directory (os error 2)")
    };
    let outside =
        "its external data is at \"../no.bin\": a path relative to the model's folder and inside it is needed";
    for (location, kind, why) in [
        ("no.bin", "io", None),
        ("../no.bin", "model", Some(outside)),
        ("folder", "model", Some("external data \"folder\" is not a regular file")),
    ] {
        let bench = model(location);
        let (model, to) = (bench.text("model.onnx"), bench.text("folder/out.onnx"));
        let why = format!("{model}: tensor \"w\": {}", why.map_or_else(|| missing(&bench), str::to_string));
        for verb in [&["set"][..], &["set", "--embed"], &["extract", "--outputs", "y"]] {
            let ran = onnxref([verb, &[&model, "-o", &to, "--json", "--no-prove"]].concat());
            let error: Value = serde_json::from_str(&ran.out).unwrap();
            let error = &error["error"];
            assert_eq!((ran.code, ran.err), (Some(3), format!("error: {why}\n")), "{verb:?}");
            assert_eq!((&error["kind"], &error["causes"][0]["value_name"]), (&json!(kind), &json!("w")), "{verb:?}");
            assert_eq!(fs::read_dir(bench.path("folder")).unwrap().count(), 0, "{verb:?}");
        }
    }
}

#[test]
fn places_of_data_that_cannot_be_written() {
    let bench = model("w.bin");
    fs::write(bench.path("w.bin"), 2f32.to_le_bytes()).unwrap();
    let (model, to) = (bench.text("model.onnx"), bench.text("out.onnx"));
    for (place, shown) in [("sub/w.bin", bench.text("sub/w.bin")), ("folder", bench.text("folder"))] {
        let ran = onnxref(["set", &model, "--external", place, "-o", &to]);
        let start = format!("error: external data can't be written to {shown}: ");
        assert!(ran.code == Some(2) && ran.err.starts_with(&start) && ran.out.is_empty(), "{ran:?}");
    }
    // That of a model in another folder, whose name is taken.
    fs::create_dir(bench.path("folder/out.onnx.data")).unwrap();
    let ran = onnxref(["set", &model, "-o", &bench.text("folder/out.onnx")]);
    let start = format!("error: external data can't be written to {}: ", bench.text("folder/out.onnx.data"));
    assert!(ran.code == Some(2) && ran.err.starts_with(&start), "{ran:?}");
    assert_eq!(bench.files(), ["folder", "w.bin"]);
}

#[test]
fn without_data_to_move_no_file_is_written() {
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, [1i64]))
        .initializer(Initializer::new("w", &Tensor::from(vec![1f32])))
        .node(Node::new("Add", ["x", "w"], ["y"]))
        .output(ValueInfo::untyped("y"));
    let bench = Bench::new(&Document::new(graph, 21).to_bytes().unwrap());
    let (model, to) = (bench.text("model.onnx"), bench.text("out.onnx"));
    for (threshold, bytes) in [(&[][..], "1,024 bytes"), (&["--external-threshold", "5"], "5 bytes")] {
        let ran = onnxref([&["set", &model, "--external", "w.bin", "-o", &to], threshold].concat());
        let note = format!("note: --external: no initializer of numbers has at least {bytes}: none is moved\n");
        let out = format!("{to}: 1 node\nproved: 1 output is the same, bit by bit\n");
        assert_eq!((ran.code, ran.err, ran.out), (Some(0), note, out));
        assert_eq!(bench.files(), ["out.onnx"]);
    }
    let ran = onnxref(["set", &model, "--external", "w.bin", "--external-threshold", "4", "-o", &to]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(bench.files(), ["out.onnx", "w.bin"]);
}
