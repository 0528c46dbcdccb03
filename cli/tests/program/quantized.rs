//! `onnxref compare --quantized`, as a user calls it.

use crate::common::{Bench, Ran, bytes, check, graph, number, onnxref, several};
use onnxref::{DType, Tensor};
use serde_json::{Value, json};
use std::fs;

/// A model `y` of `x` with constants.
fn model(nodes: &[Vec<u8>], constants: &[(&str, Tensor)]) -> Vec<u8> {
    let graph = graph(nodes, &[("x", DType::Float)], &["y"]);
    let constants = constants.iter().flat_map(|(name, tensor)| bytes(5, &tensor.to_proto_bytes(name)));
    let graph: Vec<u8> = graph.into_iter().chain(constants).collect();
    [number(1, 9), bytes(7, &graph), bytes(8, &[bytes(1, b""), number(2, 18)].concat())].concat()
}

fn floats(shape: &[usize], elements: &[f32]) -> Tensor {
    Tensor::from_elements(shape, elements.to_vec()).unwrap()
}

/// `y = Relu(x w)`.
fn float() -> Vec<u8> {
    let nodes = [
        several("MatMul", &["x", "w"], &["m"], &[]),
        several("Relu", &["m"], &["r"], &[]),
        several("Neg", &["r"], &["y"], &[]),
    ];
    model(&nodes, &[("w", floats(&[2, 2], &[1.0, 0.5, -1.0, 2.0]))])
}

/// The same with a Relu in the quantizer of its output; the scale of `x` is too small.
fn qdq() -> Vec<u8> {
    let nodes = [
        several("QuantizeLinear", &["x", "x_scale", "x_zero"], &["x_QuantizeLinear_Output"], &[]),
        several(
            "DequantizeLinear",
            &["x_QuantizeLinear_Output", "x_scale", "x_zero"],
            &["x_DequantizeLinear_Output"],
            &[],
        ),
        several("DequantizeLinear", &["w_quantized", "w_scale"], &["w_DequantizeLinear_Output"], &[]),
        several("MatMul", &["x_DequantizeLinear_Output", "w_DequantizeLinear_Output"], &["r"], &[]),
        several("QuantizeLinear", &["r", "r_scale", "r_zero"], &["r_QuantizeLinear_Output"], &[]),
        several(
            "DequantizeLinear",
            &["r_QuantizeLinear_Output", "r_scale", "r_zero"],
            &["r_DequantizeLinear_Output"],
            &[],
        ),
        several("Neg", &["r_DequantizeLinear_Output"], &["y"], &[]),
    ];
    let constants = [
        ("x_scale", Tensor::scalar(0.0078125f32)),
        ("x_zero", Tensor::scalar(0i8)),
        ("w_quantized", Tensor::from_elements(&[2, 2], vec![100i8, 50, -100, 127]).unwrap()),
        ("w_scale", Tensor::from(vec![0.01f32, 0.01])),
        ("r_scale", Tensor::scalar(0.5f32)),
        ("r_zero", Tensor::scalar(0u8)),
    ];
    model(&nodes, &constants)
}

fn compare(a: Vec<u8>, b: Vec<u8>, more: &[&str]) -> Ran {
    let bench = Bench::new(&a);
    fs::write(bench.path("b.onnx"), b).unwrap();
    onnxref(
        [&["compare", "--quantized", &*bench.text("model.onnx"), &bench.text("b.onnx"), "-i", "x=[[1, 0.5]]"], more]
            .concat(),
    )
}

/// The lines of tables, with single bars between the cells.
fn lines(ran: &Ran) -> Vec<String> {
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect();
        cells.join("|")
    };
    ran.out.lines().map(cells).collect()
}

#[test]
fn the_worst_tensor_comes_first() {
    let ran = compare(float(), qdq(), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let expected = [
        "tensor|type|shape|own dB|greatest|clipped|total dB|greatest",
        // w[1, 1] = 2 became 1.27, beyond the greatest of its scale.
        "w|weights|int8|[2, 2]|10.7|0.73|25.00%|10.7|0.73",
        // 0.5 and 1, of 0.4921875 and 1.131..; the float model has 0.5 and 1.5.
        "r|values|uint8|[1, 2]|19.5|0.131094|0|10.0|0.5",
        // 1 became 127/128, the most that the scale reaches.
        "x|values|int8|[1, 2]|43.1|0.0078125|50.00%|43.1|0.0078125",
        "",
        "output|total dB|greatest",
        "y|10.0|0.5",
    ];
    assert_eq!(lines(&ran), expected);
}

#[test]
fn json_has_all_numbers() {
    let ran = compare(float(), qdq(), &["--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let first = &found["tensors"][0];
    assert_eq!((&first["name"], &first["output"]), (&json!("w"), &json!("w_DequantizeLinear_Output")));
    assert_eq!((&first["node"], &first["scales"]), (&json!("DequantizeLinear-13 #2"), &json!(2)));
    assert_eq!(
        (&first["weights"], &first["own"]["elements"], &first["own"]["clipped"]),
        (&json!(true), &json!(4), &json!(0.25))
    );
    assert_eq!(found["outputs"][0]["name"], "y");
    assert_eq!(first["own"], first["total"]);
    // Nothing is lost where all numbers are.
    let ran = compare(qdq(), qdq(), &["--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let total =
        json!({"decibel": "inf", "relative": 0.0, "greatest": 0.0, "clipped": 0.0, "elements": 2, "skipped": 0});
    assert_eq!(found["outputs"][0]["total"], total);
}

#[test]
fn an_activation_in_the_quantizer_adds_no_error() {
    // r would be negative: its quantizer does what Relu does.
    let ran = compare(float(), qdq(), &["-q"]);
    let negative = |a, b| onnxref(["compare", "--quantized", a, b, "-i", "x=[[-1, 0]]"]);
    let bench = Bench::new(&float());
    fs::write(bench.path("b.onnx"), qdq()).unwrap();
    let found = lines(&negative(&bench.text("model.onnx"), &bench.text("b.onnx")));
    assert!(found.contains(&"r|values|uint8|[1, 2]|exact|0|0|exact|0".to_string()), "{found:?} {ran:?}");
}

#[test]
fn operators_on_integers_and_dynamic_scales() {
    let nodes = [
        several("DynamicQuantizeLinear", &["x"], &["xq", "xs", "xz"], &[]),
        several("QLinearMatMul", &["xq", "xs", "xz", "w_quantized", "ws", "wz", "ms", "mz"], &["m_quantized"], &[]),
        several("DequantizeLinear", &["m_quantized", "ms", "mz"], &["r"], &[]),
        several("Relu", &["r"], &["s"], &[]),
        several("Neg", &["s"], &["y"], &[]),
    ];
    let constants = [
        ("w_quantized", Tensor::from_elements(&[2, 2], vec![50i8, 25, -50, 100]).unwrap()),
        ("ws", Tensor::scalar(0.02f32)),
        ("wz", Tensor::scalar(0i8)),
        ("ms", Tensor::scalar(0.0625f32)),
        ("mz", Tensor::scalar(0u8)),
    ];
    let ran = compare(float(), model(&nodes, &constants), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let found = lines(&ran);
    // x is a multiple of its scale, but for the rounding of the scale; m has no numbers before it is quantized.
    assert_eq!(found[2].split('|').take(4).collect::<Vec<_>>(), ["m", "values", "uint8", "[1, 2]"], "{found:?}");
    assert_eq!(found.iter().filter(|line| line.starts_with("m|values|uint8|[1, 2]|-|-|0|")).count(), 1, "{found:?}");
    assert_eq!(found.iter().filter(|line| line.starts_with("w|weights|int8|[2, 2]|")).count(), 1, "{found:?}");
    assert_eq!(found.iter().filter(|line| line.starts_with("x|values|uint8|[1, 2]|")).count(), 1, "{found:?}");
}

#[test]
fn names_follow_from_the_order_of_nodes() {
    let text = |model: Vec<u8>| -> Vec<u8> {
        // Other names of the same length.
        let mut model = model;
        for (from, to) in
            [(&b"w_DequantizeLinear_Output"[..], &b"weight_of_the_first_layer"[..]), (b"w_quantized", b"weight_code")]
        {
            while let Some(at) = model.windows(from.len()).position(|part| part == from) {
                model[at..at + from.len()].copy_from_slice(to);
            }
        }
        model
    };
    let plain = model(
        &[several("MatMul", &["x", "w"], &["r"], &[]), several("Neg", &["r"], &["y"], &[])],
        &[("w", floats(&[2, 2], &[1.0, 0.5, -1.0, 2.0]))],
    );
    let found = lines(&compare(plain, text(qdq()), &[]));
    assert!(found.contains(&"w|weights|int8|[2, 2]|10.7|0.73|25.00%|10.7|0.73".to_string()), "{found:?}");
}

#[test]
fn wrong_uses() {
    let why = "nothing was compared: no node of B quantizes or dequantizes: give the float model first, then the quantized one";
    check(compare(qdq(), float(), &[]), 5, "", &format!("error: {why}\n"));
    let bench = Bench::new(&float());
    let ran = onnxref(["compare", "--quantized", &bench.text("model.onnx"), bench.text("").as_str(), "--random"]);
    check(ran, 2, "", "error: --quantized takes two models: the float one, then the quantized one\n");
    let ran = onnxref(["compare", "--quantized", &bench.text("model.onnx"), "--random"]);
    assert!(ran.code == Some(2) && ran.err.contains("<B>"), "{ran:?}");
}
