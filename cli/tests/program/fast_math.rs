//! `--fast-math`, as a user gives it.

use crate::common::{Bench, bytes, model, node, number, onnxref};
use onnxref::DType;

fn constant(name: &str, dtype: DType, shape: &[u64], content: &[u8]) -> Vec<u8> {
    let dims: Vec<u8> = shape.iter().flat_map(|size| number(1, *size)).collect();
    let code = number(2, dtype.code() as u64);
    bytes(5, &[dims, code, bytes(8, name.as_bytes()), bytes(9, content)].concat())
}

/// `y = quantize(dequantize(x) * dequantize(w))`, where `x` is 2 x 3.
fn product() -> Bench {
    let scale = |name: &str, scale: f32| constant(name, DType::Float, &[], &scale.to_le_bytes());
    let sizes: Vec<u8> = [2, 3].into_iter().flat_map(|size| bytes(1, &number(1, size))).collect();
    let tensor = [number(1, DType::Uint8.code() as u64), bytes(2, &sizes)].concat();
    let weights = [1i8, -1, 2, 0, 3, 5].map(|weight| weight as u8);
    let parts = [
        node("DequantizeLinear", &["x", "a", "one"], "x_floats"),
        node("DequantizeLinear", &["w", "b"], "w_floats"),
        node("MatMul", &["x_floats", "w_floats"], "product"),
        node("QuantizeLinear", &["product", "c", "ten"], "y"),
        bytes(11, &[bytes(1, b"x"), bytes(2, &bytes(1, &tensor))].concat()),
        constant("w", DType::Int8, &[3, 2], &weights),
        constant("one", DType::Uint8, &[], &[1]),
        constant("ten", DType::Uint8, &[], &[10]),
        scale("a", 0.5),
        scale("b", 0.25),
        scale("c", 0.125),
    ];
    Bench::new(&model(&parts.concat(), &[], 13))
}

#[test]
fn products_of_integers() {
    let bench = product();
    let x = "x=[[1, 2, 3], [4, 5, 6]]";
    let (fast, plain) = (bench.run(&["-i", x, "--fast-math"]), bench.run(&["-i", x]));
    assert_eq!(fast.code, Some(0), "{}", fast.err);
    assert_eq!(fast.out, plain.out);
    for number in ["18", "20", "36", "32"] {
        assert!(fast.out.contains(number), "{}", fast.out);
    }
    // One node in the place of four, on any processor.
    let model = bench.text("model.onnx");
    let nodes = onnxref(["bench", &model, "-i", x, "--runs", "2", "--warmup", "1", "--profile", "--fast-math"]).out;
    assert!(nodes.contains("DequantizeLinear + DequantizeLinear + MatMul + QuantizeLinear"), "{nodes}");
}

#[test]
fn errors_are_the_same() {
    let bench = product();
    for (input, code) in [("x=[1, 2, 3]", 2), ("x=[[1.5, 2, 3], [4, 5, 6]]", 2)] {
        let (fast, plain) = (bench.run(&["-i", input, "--fast-math"]), bench.run(&["-i", input]));
        assert_eq!((fast.code, &fast.err), (plain.code, &plain.err), "{input}");
        assert_eq!(fast.code, Some(code), "{}", fast.err);
    }
}
