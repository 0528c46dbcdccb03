//! `onnxref run`, as a user calls it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{Ran, data, gather, model, node, onnxref};
use onnxref::{DType, Tensor};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const EMBEDDING: &str = "gather/onnx-1.1.2/pytorch-converted/test_Embedding";

/// A folder with `model.onnx`.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(model: &[u8]) -> Bench {
        let bench = Bench { folder: TempDir::new().unwrap() };
        fs::write(bench.path("model.onnx"), model).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        onnxref([&["run", &self.text("model.onnx")], arguments].concat())
    }

    /// The names of the files beside the model.
    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "model.onnx").collect();
        names.sort();
        names
    }
}

fn feed(name: &str, value: impl AsRef<Path>) -> String {
    format!("{name}={}", value.as_ref().to_str().unwrap())
}

#[track_caller]
fn check(ran: Ran, code: i32, out: &str, err: &str) {
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(code), out, err));
}

#[test]
fn a_real_model_with_and_without_a_name() {
    let (model, input) = (data(EMBEDDING).join("model.onnx"), data(EMBEDDING).join("test_data_set_0/input_0.pb"));
    let name = onnxref::Model::load(&model).unwrap().inputs().next().unwrap().name.clone();
    let (model, named) = (model.to_str().unwrap(), feed(&name, &input));
    let ran = onnxref(["run", model, "-i", &named]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("  float  [1, 4, 3]  [[[0.3416"), "{ran:?}");
    assert_eq!(onnxref(["run", model, "-i", input.to_str().unwrap()]).out, ran.out);
    assert_eq!(onnxref(["run", "-i", input.to_str().unwrap(), model]).out, ran.out);
}

#[test]
fn literals_have_the_declared_type() {
    for (dtype, text, shown) in [
        (DType::Float, r#"[[0.1, "NaN"], ["-inf", -0]]"#, "y  float  [2, 2]  [[0.1, NaN], [-inf, -0]]\n"),
        (DType::Int8, "[-128, 127]", "y  int8  [2]  [-128, 127]\n"),
        (DType::Uint64, "[18446744073709551615, 0]", "y  uint64  [2]  [18446744073709551615, 0]\n"),
        (DType::Bool, "[true, false]", "y  bool  [2]  [true, false]\n"),
        (DType::String, r#"["a=b", ""]"#, "y  string  [2]  [\"a=b\", \"\"]\n"),
        (DType::Float16, "[0.1, 65504]", "y  float16  [2]  [0.099975586, 65504]\n"),
        (DType::Bfloat16, "[0.1, 1]", "y  bfloat16  [2]  [0.100097656, 1]\n"),
        (DType::Complex128, "[[1, -2], [0, 1]]", "y  complex128  [2]  [1-2i, 0+1i]\n"),
    ] {
        let bench = Bench::new(&gather(dtype));
        check(bench.run(&["-i", &format!("data={text}"), "-i", "indices=[0, 1]"]), 0, shown, "");
    }
    let nodes = node("Gather", &["data", "indices"], "y");
    let open = Bench::new(&model(&nodes, &[("data", None), ("indices", None)], 13));
    let notes = "note: input \"data\" has no type\nnote: input \"indices\" has no type\n";
    check(open.run(&["-i", "data=[1.5, 2]", "-i", "indices=-1"]), 0, "y  float  []  2\n", notes);
    check(open.run(&["-i", "data=[\"a\"]", "-i", "indices=0"]), 0, "y  string  []  \"a\"\n", notes);
}

#[test]
fn json_reads_back_exactly() {
    for (dtype, text, values) in [
        (
            DType::Float,
            r#"[0.1, 16777216, 1e-45, "NaN", "inf", "-inf", -0]"#,
            r#"[0.1,16777216.0,1e-45,"NaN","inf","-inf",-0.0]"#,
        ),
        (DType::Double, "[0.1, 5e-324]", "[0.1,5e-324]"),
        (DType::Int64, "[9223372036854775807, -9223372036854775808]", "[9223372036854775807,-9223372036854775808]"),
        (DType::Uint64, "[18446744073709551615]", "[18446744073709551615]"),
        (DType::Complex64, r#"[[0.1, "NaN"]]"#, r#"[[0.1,"NaN"]]"#),
        (DType::Bool, "[true]", "[true]"),
        (DType::String, r#"["\"\n", "NaN"]"#, r#"["\"\n","NaN"]"#),
    ] {
        let bench = Bench::new(&gather(dtype));
        let count = values_count(text);
        let indices = format!("indices={:?}", (0..count).collect::<Vec<_>>());
        let ran = bench.run(&["--json", "-i", &format!("data={text}"), "-i", &indices]);
        let json =
            format!("{{\"outputs\":{{\"y\":{{\"dtype\":\"{dtype}\",\"shape\":[{count}],\"values\":{values}}}}}}}\n");
        check(ran, 0, &json, "");
    }
}

fn values_count(text: &str) -> usize {
    serde_json::from_str::<serde_json::Value>(text).unwrap().as_array().unwrap().len()
}

#[test]
fn every_type_through_pb_and_npy() {
    let gathered = DType::all().filter(|dtype| dtype.bits() >= 16 || dtype.bits() == 0 || is_plain_byte(*dtype));
    for dtype in gathered {
        let bench = Bench::new(&gather(dtype));
        let tensor = if dtype == DType::String {
            Tensor::from_strings(&[3], ["", "é\n", "longer"]).unwrap()
        } else {
            Tensor::new(dtype, &[3], (0..3 * dtype.size()).map(|k| (k % 2) as u8).collect::<Vec<_>>()).unwrap()
        };
        fs::write(bench.path("in.pb"), tensor.to_proto_bytes("data")).unwrap();
        let indices = ["-i", "indices=[0, 1, 2]"];
        let input = feed("data", bench.path("in.pb"));
        let to_pb = feed("y", bench.path("out.pb"));
        check(bench.run(&[&["-i", &input, "-o", &to_pb][..], &indices].concat()), 0, "", "");
        assert_eq!(Tensor::from_proto_bytes(fs::read(bench.path("out.pb")).unwrap()).unwrap(), tensor);

        let to_npy = feed("y", bench.path("out.npy"));
        let ran = bench.run(&[&["-i", &input, "-o", &to_npy][..], &indices].concat());
        if dtype == DType::Bfloat16 {
            let why = "NumPy has no bfloat16, so a .npy file can't hold it: write a .pb file";
            check(ran, 2, "", &format!("error: output \"y\" to {}: {why}\n", bench.text("out.npy")));
            assert_eq!(bench.files(), ["in.pb", "out.pb"]);
            continue;
        }
        check(ran, 0, "", "");
        let input = feed("data", bench.path("out.npy"));
        let to_pb = feed("y", bench.path("again.pb"));
        check(bench.run(&[&["-i", &input, "-o", &to_pb][..], &indices].concat()), 0, "", "");
        assert_eq!(Tensor::from_proto_bytes(fs::read(bench.path("again.pb")).unwrap()).unwrap(), tensor);
        assert_eq!(bench.files(), ["again.pb", "in.pb", "out.npy", "out.pb"]);
    }
}

fn is_plain_byte(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::Int8 | DType::Uint8)
}

#[test]
fn files_and_json_together() {
    let bench = Bench::new(&gather(DType::Int32));
    let (file, feeds) = (feed("y", bench.path("y.pb")), ["-i", "data=[5]", "-i", "indices=0"]);
    let ran = bench.run(&[&["--json", "-o", &file][..], &feeds].concat());
    check(ran, 0, "{\"outputs\":{\"y\":{\"dtype\":\"int32\",\"shape\":[],\"values\":[5]}}}\n", "");
    let only = bench.run(&[&["-o", &bench.text("only.NPY")][..], &feeds].concat());
    check(only, 0, "", "");
    assert_eq!(bench.files(), ["only.NPY", "y.pb"]);
    // Nothing is written unless all can be.
    let missing = feed("y", bench.path("no/such/y.npy"));
    let ran = bench.run(&[&["-o", &feed("y", bench.path("z.pb")), "-o", &missing][..], &feeds].concat());
    assert_eq!(ran.code, Some(4));
    assert!(ran.err.starts_with(&format!("error: {}: ", bench.text("no/such/y.npy"))), "{ran:?}");
    assert_eq!(bench.files(), ["only.NPY", "y.pb"]);
}

#[test]
fn wrong_inputs() {
    let bench = Bench::new(&gather(DType::Uint8));
    fs::write(bench.path("bad.pb"), b"\xff\xff").unwrap();
    fs::write(bench.path("bad.npy"), b"PK").unwrap();
    let (bad_pb, bad_npy, none) = (bench.text("bad.pb"), bench.text("bad.npy"), bench.text("none.npy"));
    let io = fs::read(bench.path("none.npy")).unwrap_err();
    let pb = Tensor::from_proto_bytes(b"\xff\xff".as_slice()).unwrap_err();
    for (arguments, code, err) in [
        (
            &["-i", "data=[1, 256]"][..],
            2,
            "input \"data\": 256 at [1] is out of range for uint8: allowed 0 to 255".into(),
        ),
        (
            &["-i", "data=[[1, 2], [3]]"],
            2,
            "input \"data\": the list at [1] is of length 1, and the first one at its depth of length 2".into(),
        ),
        (
            &["-i", "data=1.5"],
            2,
            "input \"data\": 1.5 is no uint8: allowed integers, without a point or an exponent".into(),
        ),
        (
            &["-i", "data=x"],
            2,
            "input \"data\": \"x\" is neither a .pb or .npy file nor a JSON literal: expected value at line 1 column 1"
                .into(),
        ),
        (&["-i", "[1]"], 2, "-i \"[1]\": NAME= is missing; the model's inputs: \"data\", \"indices\"".into()),
        (&["-i", &format!("data={none}")], 2, format!("input \"data\": {none}: {io}")),
        (&["-i", &format!("data={bad_pb}")], 2, format!("input \"data\": {bad_pb}: {pb}")),
        (&["-i", &format!("data={bad_npy}")], 2, format!("input \"data\": {bad_npy}: it is no .npy file")),
        (&["-o", "z=z.pb"], 2, "-o z=z.pb: there is no output of this name; the model's outputs: \"y\"".into()),
        (
            &["-o", "y=y.txt"],
            2,
            "-o y=y.txt: the file's name must end with .pb or .npy; the model's outputs: \"y\"".into(),
        ),
        (&["-o", "y=y.pb", "-o", "y=y.pb"], 2, "two outputs go to y.pb".into()),
        (&["-i", "data=[1]"], 4, "input \"indices\" is not fed".into()),
        (&["-i", "x=[1]"], 4, "input \"x\" is not an input of the model, which takes \"data\", \"indices\"".into()),
        (&["-i", "data=[1]", "-i", "data=[1]"], 4, "input \"data\" is fed twice".into()),
        (
            &["-i", "data=[1]", "-i", "indices=[3]"],
            4,
            "node #0 (Gather-13): indices[0] = 3 is out of range for axis 0 of \"data\"".into(),
        ),
    ] {
        let ran = bench.run(arguments);
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.lines().count()),
            (Some(code), "", 1),
            "{arguments:?}: {ran:?}"
        );
        assert!(ran.err.starts_with(&format!("error: {err}")), "{arguments:?}: {ran:?}");
    }
    assert_eq!(onnxref(["run"]).code, Some(2));
    assert_eq!(onnxref(["run", "a", "--compat", "everything"]).code, Some(2));
    assert_eq!(onnxref(["--version"]).out, format!("onnxref {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn names_with_an_equals_sign() {
    let nodes = node("Gather", &["a", "a=b"], "y");
    let bench = Bench::new(&model(&nodes, &[("a", Some(DType::String)), ("a=b", Some(DType::Int64))], 13));
    check(bench.run(&["-i", r#"a=["x", "y"]"#, "-i", "a=b=1"]), 0, "y  string  []  \"y\"\n", "");
}

#[test]
fn gather_1_takes_negative_indices_on_request() {
    let nodes = node("Gather", &["data", "indices"], "y");
    let bench = Bench::new(&model(&nodes, &[("data", Some(DType::Int32)), ("indices", Some(DType::Int64))], 10));
    let feeds = ["-i", "data=[1, 2]", "-i", "indices=-1"];
    let refused = bench.run(&feeds);
    assert_eq!(refused.code, Some(4));
    assert!(refused.err.starts_with("error: node #0 (Gather-1): indices"), "{refused:?}");
    let ran = bench.run(&[&["--compat", "gather-1-negative-indices"][..], &feeds].concat());
    check(ran, 0, "y  int32  []  2\n", "");
}

#[test]
fn models_that_cannot_be_loaded() {
    let none = onnxref(["run", "no/such.onnx"]);
    assert_eq!(none.code, Some(3));
    assert!(none.err.starts_with("error: model \"no/such.onnx\": "), "{none:?}");
    check(Bench::new(b"").run(&[]), 3, "", "error: the model file is empty\n");

    let add = node("Add", &["x", "x"], "a");
    let nodes = [add.clone(), node("Add", &["a", "a"], "b"), node("Mul", &["b", "b"], "y")].concat();
    let bench = Bench::new(&model(&nodes, &[("x", Some(DType::Float))], 14));
    let faults =
        "\n  Add-14 is not implemented (2 nodes, first: node #0)\n  node #2 (Mul): Mul-14 is not implemented\n";
    check(bench.run(&[]), 3, "", &format!("error: {} has 2 faults:{faults}", bench.text("model.onnx")));

    let operators = ["Abs", "Acos", "Add", "And", "Asin", "Atan", "Ceil", "Cos", "Div", "Elu", "Erf", "Exp", "Floor"];
    let operators = operators.iter().chain(&["Log", "Max", "Mean", "Min", "Mul", "Neg", "Not", "Or", "Pow", "Relu"]);
    let nodes = operators.enumerate().flat_map(|(k, name)| node(name, &["x"], &format!("y{k}")));
    let ran = Bench::new(&model(&nodes.collect::<Vec<_>>(), &[("x", None)], 14)).run(&[]);
    assert_eq!((ran.code, ran.err.lines().count()), (Some(3), 22), "{ran:?}");
    assert!(ran.err.lines().last().unwrap().trim_start().starts_with("and "), "{ran:?}");
}

#[test]
fn a_closed_standard_output_is_no_error() {
    use std::process::{Command, Stdio};
    let bench = Bench::new(&gather(DType::Int64));
    // More than a pipe holds.
    let indices = vec![0; 20_000];
    let mut program = Command::new(env!("CARGO_BIN_EXE_onnxref"));
    program.args(["run", &bench.text("model.onnx"), "--json", "-i", "data=[123456789]"]);
    program.args(["-i", &format!("indices={indices:?}")]);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
