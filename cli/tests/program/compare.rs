//! `onnxref compare`, and what `run` records for it.

use crate::common::{Bench, Ran, bytes, check, graph, model, node, number, onnxref, several};
use onnxref::{DType, Tensor};
use std::fs;

/// `y = name(Neg(x)) + Neg(x)` for a unary operator.
fn chain(name: &str) -> Vec<u8> {
    let nodes = [node("Neg", &["x"], "a"), node(name, &["a"], "b"), node("Add", &["b", "a"], "y")].concat();
    model(&nodes, &[("x", Some(DType::Float))], 14)
}

const FEED: [&str; 2] = ["-i", "x=[1, -2]"];

fn compare(bench: &Bench, arguments: &[&str]) -> Ran {
    onnxref([&["compare", &bench.text("model.onnx")], arguments, &FEED].concat())
}

#[test]
fn the_first_value_that_differs() {
    let bench = Bench::new(&chain("Abs"));
    fs::write(bench.path("b.onnx"), chain("Relu")).unwrap();
    let b = bench.text("b.onnx");
    let same = compare(&bench, &[&bench.text("model.onnx")]);
    let text = "3 values with the same name: 3 equal bit by bit, 0 within the tolerance, 0 different\n";
    assert!(same.out.starts_with(text), "{same:?}");
    assert_eq!((same.code, same.err.as_str(), same.last()), (Some(0), "", "y       is equal bit by bit"));

    let ran = compare(&bench, &[&b]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "3 values with the same name: 1 equal bit by bit, 0 within the tolerance, 2 different");
    // |-1| = 1, Relu(-1) = 0.
    let first = "The first that differs, \"b\", is 0 at [0], expected 1; 1 of 2 differ, by up to 1, the first by ";
    assert!(lines[3].starts_with(first), "{}", ran.out);
    assert!(ran.out.contains("node #1 (Relu-14)  gives \"b\"  differs\n"), "{}", ran.out);
    assert!(ran.out.contains("The last of them reads \"a\"\n"), "{}", ran.out);
    assert!(!ran.out.contains("Neg"), "what is equal leads to nothing: {}", ran.out);

    let json: serde_json::Value = serde_json::from_str(&compare(&bench, &[&b, "--json"]).out).unwrap();
    assert_eq!((&json["compared"], &json["differing"], &json["only_a"]), (&3.into(), &2.into(), &0.into()));
    let first = &json["first"];
    assert_eq!((&first["value"], &first["difference"]["index"]), (&"b".into(), &serde_json::json!([0])));
    assert_eq!((&first["difference"]["got"], &first["difference"]["want"]), (&0.into(), &1.into()));
    assert_eq!(first["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&first["nodes"][0]["operator"], &first["nodes"][0]["inputs"]),
        (&"Relu".into(), &serde_json::json!(["a"]))
    );
    assert_eq!(json["outputs"]["y"]["equal"], false);
    assert_eq!(compare(&bench, &[&b, "--atol", "2"]).code, Some(0));
}

#[test]
fn a_model_and_its_optimised_form() {
    let bench = Bench::new(&chain("Abs"));
    let ran = compare(&bench, &[]);
    assert_eq!((ran.code, ran.last()), (Some(0), "y       is equal bit by bit"), "{ran:?}");
}

/// Nodes that run as one are compared as one, though images between convolutions are stored in blocks of channels.
#[test]
fn images_in_blocks() {
    let repeated = |tag, numbers: &[u64]| -> Vec<u8> { numbers.iter().flat_map(|x| number(tag, *x)).collect() };
    let weights = |name: &str, shape: &[u64]| {
        let count = shape.iter().product::<u64>();
        let content: Vec<u8> = (0..count).flat_map(|k| ((k * 7 % 23) as f32 / 8.0 - 1.3).to_le_bytes()).collect();
        bytes(5, &[repeated(1, shape), number(2, 1), bytes(8, name.as_bytes()), bytes(9, &content)].concat())
    };
    let sizes: Vec<u8> = [2, 16, 8, 8].into_iter().flat_map(|size| bytes(1, &number(1, size))).collect();
    let image = bytes(2, &bytes(1, &[number(1, 1), bytes(2, &sizes)].concat()));
    let parts = [
        node("Conv", &["x", "v"], "a"),
        node("Relu", &["a"], "b"),
        node("Conv", &["b", "w"], "c"),
        node("Relu", &["c"], "y"),
        bytes(11, &[bytes(1, b"x"), image].concat()),
        weights("v", &[20, 16, 3, 3]),
        weights("w", &[4, 20, 1, 1]),
    ];
    let bench = Bench::new(&model(&parts.concat(), &[], 14));
    for arguments in [&["--random"][..], &["--random", "--fast-math"]] {
        let ran = onnxref([&["compare", &bench.text("model.onnx")], arguments].concat());
        let text = "2 values with the same name: 2 equal bit by bit, 0 within the tolerance, 0 different\n";
        assert!(ran.out.starts_with(text), "{ran:?}");
        assert_eq!((ran.code, ran.last()), (Some(0), "y       is equal bit by bit"), "{ran:?}");
    }
}

#[test]
fn places_of_nan() {
    let bench = Bench::new(&chain("Abs"));
    fs::write(bench.path("log.onnx"), chain("Log")).unwrap();
    let run = |a: &str, b: &str, feed: &str| {
        let ran = onnxref(["compare", &bench.text(a), &bench.text(b), "-i", feed]);
        (ran.code, ran.out.lines().nth(2).unwrap().to_string())
    };
    // a = -x, b = Log(a), y = b + a
    let same = run("log.onnx", "log.onnx", "x=[1, -2]");
    assert_eq!(same, (Some(0), "NaN is in 2 values, first in \"b\": at the same places on both sides".into()));
    let other = run("model.onnx", "log.onnx", "x=[\"NaN\", 1, -2]");
    let text = "NaN is in 3 values, first in \"a\": at other places on the other side in 2 values";
    assert_eq!(other, (Some(1), text.into()));
    assert_eq!(run("model.onnx", "model.onnx", "x=[1, -2]"), (Some(0), "".into()));
}

#[test]
fn recorded_values() {
    let bench = Bench::new(&chain("Abs"));
    let folder = bench.text("values");
    let ran = bench.run(&[&["--dump", &folder, "--quiet"][..], &FEED].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let index: serde_json::Value = serde_json::from_slice(&fs::read(bench.path("values/index.json")).unwrap()).unwrap();
    let values = index["values"].as_array().unwrap();
    let names: Vec<&str> = values.iter().map(|value| value["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "y"]);
    let b = &values[1];
    assert_eq!((&b["operator"], &b["type"], &b["shape"]), (&"Abs".into(), &"float32".into(), &serde_json::json!([2])));
    assert_eq!(compare(&bench, &[&folder]).code, Some(0));
    // A value that another engine gave.
    let other = Tensor::from(vec![1f32, 2.5]).to_proto_bytes("b");
    fs::write(bench.path("values/b.pb"), other).unwrap();
    fs::remove_file(bench.path("values/index.json")).unwrap();
    let ran = compare(&bench, &[&folder]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("\"b\", is 2 at [1], expected 2.5; 1 of 2 differ, by up to 0.5"), "{ran:?}");
    // A dump is never mixed with another.
    let again = bench.run(&[&["--dump", &folder][..], &FEED].concat());
    assert_eq!(again.code, Some(0), "{again:?}");
    let twice = bench.run(&[&["--dump", &folder][..], &FEED].concat());
    check(twice, 2, "", &format!("error: --dump {folder}: it has a dump already: index.json\n"));
    let file = bench.text("model.onnx");
    let on_file = bench.run(&[&["--dump", &file][..], &FEED].concat());
    check(on_file, 2, "", &format!("error: --dump {file}: it is not a folder\n"));
    assert_eq!(compare(&bench, &["no/such.onnx"]).code, Some(3));
}

/// `y = Abs(Neg(x)) + Neg(x)`, with names as PyTorch gives them.
fn pytorch() -> Vec<u8> {
    let [a, b] = ["/lm/Neg_output_0", "/lm/Abs_output_0"];
    let nodes = [node("Neg", &["x"], a), node("Abs", &[a], b), node("Add", &[b, a], "y")].concat();
    model(&nodes, &[("x", Some(DType::Float))], 14)
}

#[test]
fn values_that_numpy_wrote() {
    let bench = Bench::new(&pytorch());
    let written = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/numpy");
    for (values, side) in [("values.npz", "the file"), ("values", "the folder")] {
        let path = written.join(values);
        let ran = compare(&bench, &[path.to_str().unwrap()]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let first = "The first that differs, \"/lm/Abs_output_0\", is 2 at [1], expected 2.5; 1 of 2 differ";
        assert!(ran.out.contains(first), "{}", ran.out);
        assert!(ran.out.contains(&format!("\nwithout a partner: 0 of {side}, 1 of A\n")), "{}", ran.out);
        assert_eq!(compare(&bench, &[path.to_str().unwrap(), "--atol", "1"]).code, Some(0));
    }
    // The guide shows the lines that wrote them.
    let script = fs::read_to_string(written.join("write.py")).unwrap();
    let example = script.split("# example\n").nth(1).unwrap().split("# end\n").next().unwrap().trim();
    assert!(
        fs::read_to_string(written.join("../../../docs/guides/checking.md")).unwrap().contains(example),
        "{example}"
    );
}

#[test]
fn recorded_values_that_can_not_be_read() {
    let bench = Bench::new(&pytorch());
    let folder = bench.text("values");
    fs::create_dir(&folder).unwrap();
    let example = r#"each value needs a name and a file: {"values": [{"name": "/lm/Add_output_0", "file": "0.npy"}]}"#;
    let not_here =
        |file: &str| format!("\"x\" is \"{file}\", which is not a .npy or .pb file of the folder; {example}");
    for (index, why) in [
        (r#"[]"#, format!("invalid length 0, expected struct Listing with 2 elements at line 1 column 2; {example}")),
        (r#"{"values": [{"name": "x"}]}"#, format!("missing field `file` at line 1 column 25; {example}")),
        (r#"{"values": [{"name": "x", "file": "../x.npy"}]}"#, not_here("../x.npy")),
        (r#"{"values": [{"name": "x", "file": "x.txt"}]}"#, not_here("x.txt")),
        (
            r#"{"values": [{"name": "x", "file": "0.npy"}, {"name": "x", "file": "1.npy"}]}"#,
            "\"x\" is listed twice: only \"path\" tells values of one name apart".to_string(),
        ),
    ] {
        fs::write(bench.path("values/index.json"), index).unwrap();
        check(compare(&bench, &[&folder]), 2, "", &format!("error: {folder}: index.json: {why}\n"));
    }
    fs::write(bench.path("values.npz"), b"not a zip").unwrap();
    let npz = bench.text("values.npz");
    check(compare(&bench, &[&npz]), 2, "", &format!("error: {npz}: it is not a .npz file, which is a zip archive\n"));
}

#[test]
fn models_with_other_inputs() {
    let bench = Bench::new(&chain("Abs"));
    let renamed = [node("Neg", &["in"], "n"), node("Abs", &["n"], "m"), node("Add", &["m", "n"], "y")].concat();
    fs::write(bench.path("b.onnx"), model(&renamed, &[("in", Some(DType::Float))], 14)).unwrap();
    let ran = compare(&bench, &[&bench.text("b.onnx")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("\nwithout a partner: 2 of A, 2 of B\n"), "{ran:?}");
    let two = model(&node("Add", &["x", "z"], "y"), &[("x", Some(DType::Float)), ("z", Some(DType::Float))], 14);
    fs::write(bench.path("two.onnx"), two).unwrap();
    fs::create_dir(bench.path("empty")).unwrap();
    fs::write(bench.path("empty/output_0.pb"), Tensor::from(vec![0f32]).to_proto_bytes("")).unwrap();
    let nothing = compare(&bench, &[&bench.text("empty")]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(5), ""));
    assert!(nothing.err.starts_with("error: nothing was compared: "), "{nothing:?}");
    let json: serde_json::Value =
        serde_json::from_str(&compare(&bench, &[&bench.text("empty"), "--json"]).out).unwrap();
    assert_eq!(json["error"]["kind"], "nothing");
    check(compare(&bench, &[&bench.text("two.onnx")]), 2, "", "error: A has no input for \"z\" of B\n");
}

/// What a name has is not given once more by position.
#[test]
fn each_input_and_output_has_one_partner() {
    let bench = Bench::new(&[]);
    let write = |name: &str, nodes: &[Vec<u8>], inputs: &[(&str, DType)], outputs: &[&str]| {
        let model = [number(1, 8), bytes(7, &graph(nodes, inputs, outputs)), bytes(8, &number(2, 14))].concat();
        fs::write(bench.path(name), model).unwrap();
        bench.text(name)
    };
    let float = DType::Float;
    let sub = |of: &[&str]| [several("Sub", of, &["o"], &[])];
    let a = write("a.onnx", &sub(&["x", "y"]), &[("x", float), ("y", float)], &["o"]);
    let b = write("b.onnx", &sub(&["z", "y"]), &[("y", float), ("z", float)], &["o"]);
    let ran = onnxref(["compare", &a, &b, "-i", "x=[5]", "-i", "y=[2]"]);
    assert_eq!((ran.code, ran.last()), (Some(0), "o       is equal bit by bit"), "{ran:?}");

    let unary = |operator: &str, output: &str| several(operator, &["x"], &[output], &[]);
    let a = write("a.onnx", &[unary("Neg", "d"), unary("Exp", "e")], &[("x", float)], &["d", "e"]);
    let b = write("b.onnx", &[unary("Neg", "c"), unary("Neg", "d")], &[("x", float)], &["c", "d"]);
    let ran = onnxref(["compare", &a, &b, "-i", "[0]", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let outputs = &json["outputs"];
    assert_eq!((ran.code, &outputs["c"]["equal"], &outputs["d"]["equal"]), (Some(1), &false.into(), &true.into()));
    assert_eq!(outputs["c"]["difference"]["want"], 1);
}

#[test]
fn models_of_other_float_types() {
    let bench = Bench::new(&chain("Abs"));
    let nodes = [node("Neg", &["x"], "a"), node("Abs", &["a"], "b"), node("Add", &["b", "a"], "y")].concat();
    let b = bench.text("half.onnx");
    fs::write(&b, model(&nodes, &[("x", Some(DType::Float16))], 14)).unwrap();
    let why = "input \"x\" of B: it is float32, but the model expects float16: --cast rounds it";
    check(compare(&bench, &[&b]), 2, "", &format!("error: {why}\n"));
    let ran = compare(&bench, &[&b, "--cast"]);
    let note = "note: compared as numbers, as their float types differ: 3 values\n";
    assert_eq!((ran.code, ran.err.as_str(), ran.last()), (Some(0), note, "y       is equal within the tolerance"));
    let counts = "3 values with the same name: 0 equal bit by bit, 3 within the tolerance, 0 different\n";
    assert!(ran.out.starts_with(counts), "{}", ran.out);
    // The other way round, with a number that float16 doesn't have.
    let ran = onnxref(["compare", &b, &bench.text("model.onnx"), "-i", "[0.5]", "--cast"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = onnxref(["compare", &bench.text("model.onnx"), &b, "-i", "[1e6]", "--cast"]);
    check(ran, 2, "", "error: input \"x\" of B: --cast: 1e6 is too large for float16\n");
    let ran = onnxref(["compare", &bench.text("model.onnx"), &b, "-i", "[1.0004]", "--cast", "--rtol", "1e-5"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn an_output_that_is_lost() {
    let bench = Bench::new(&chain("Abs"));
    let nodes = [node("Neg", &["x"], "a"), node("Abs", &["a"], "b"), node("Add", &["b", "a"], "y")].concat();
    let output = |name: &str| bytes(12, &bytes(1, name.as_bytes()));
    let float = bytes(2, &bytes(1, &number(1, DType::Float.code() as u64)));
    let input = bytes(11, &[bytes(1, b"x"), float].concat());
    let graph = [nodes, node("Neg", &["y"], "z"), bytes(2, b"two"), input, output("y"), output("z")].concat();
    let two = [number(1, 8), bytes(7, &graph), bytes(8, &number(2, 14))].concat();
    fs::write(bench.path("two.onnx"), two).unwrap();
    let ran = onnxref([&["compare", &bench.text("two.onnx"), &bench.text("model.onnx")], &FEED[..]].concat());
    assert_eq!((ran.code, ran.last()), (Some(1), "z       has no partner"), "{ran:?}");
}

#[test]
fn a_run_stops_after_a_node() {
    let bench = Bench::new(&chain("Abs"));
    for node in ["b", "#1"] {
        let ran = bench.run(&[&["--until", node][..], &FEED].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        assert_eq!(ran.last(), "b       float32  [2]    [1, 2]");
    }
    let ran = bench.run(&[&["--until", "c"][..], &FEED].concat());
    let why = "no node and no value has this name; nodes have no names: #0 is the first";
    check(ran, 2, "", &format!("error: --until \"c\": {why}\n"));
    // Nodes without a name are not called "".
    let ran = bench.run(&[&["--until", ""][..], &FEED].concat());
    assert!(ran.code == Some(2) && ran.err.contains("a value is required for '--until <NODE>'"), "{ran:?}");
}

#[test]
fn outputs_are_compared_with_expected_ones() {
    let bench = Bench::new(&chain("Abs"));
    let ran = |expect: &str, more: &[&str]| bench.run(&[&["--expect", expect][..], more, &FEED].concat());
    // Abs(Neg(x)) + Neg(x)
    let good = ran("y=[0, 4]", &[]);
    assert_eq!((good.code, good.last()), (Some(0), "y       is equal bit by bit"), "{good:?}");
    let bad = ran("[0, 5]", &[]);
    assert_eq!((bad.code, bad.err.as_str()), (Some(1), ""));
    assert!(bad.last().starts_with("y       is 4 at [1], expected 5; 1 of 2 differ, by up to 1"), "{bad:?}");
    assert_eq!(ran("[0, 5]", &["--rtol", "0.2"]).last(), "y       is equal within the tolerance");
    let json: serde_json::Value = serde_json::from_str(&ran("[0, 5]", &["--json"]).out).unwrap();
    assert_eq!(
        (&json["expected"]["y"]["equal"], &json["outputs"]["y"]["values"][1]),
        (&false.into(), &serde_json::json!(4.0))
    );
    assert_eq!(ran("z=[0]", &[]).err, "error: --expect z=[0]: the model has no output \"z\": its outputs are \"y\"\n");
    // What a run wrote.
    let npz = bench.text("all.npz");
    assert_eq!(bench.run(&[&["-o", &npz][..], &FEED].concat()).code, Some(0));
    assert_eq!(ran(&npz, &[]).code, Some(0));
}

#[test]
fn what_is_random_is_not_compared() {
    use onnxref::document::Document;
    let text = r#"<ir_version: 8, opset_import: ["" : 13]> g (float[n] x) => (float[9] y, float[n] z) {
        r = RandomUniform <shape = [9]> ()
        y = Neg (r)
        z = Abs (x)
    }"#;
    let bytes = |text: &str| Document::from_text(text).unwrap().to_bytes().unwrap();
    let bench = Bench::new(&bytes(text));
    let expected = "1 value with the same name: 1 equal bit by bit, 0 within the tolerance, 0 different
without a partner: 0 of A, 0 of B
random in A, and not compared: 2 values

output
y       is random in A, and not compared
z       is equal bit by bit
";
    check(compare(&bench, &[]), 0, expected, "");
    check(compare(&bench, &[&bench.text("model.onnx")]), 0, expected, "");
    let json: serde_json::Value = serde_json::from_str(&compare(&bench, &["--json"]).out).unwrap();
    assert_eq!(
        (&json["random"], &json["random_outputs"], &json["only_a"]),
        (&2.into(), &serde_json::json!(["y"]), &0.into())
    );
    assert_eq!((&json["outputs"]["z"]["exact"], json["outputs"].get("y")), (&true.into(), None));
    // What differs beside it still does; a node that reads nothing leads to it.
    fs::write(bench.path("b.onnx"), bytes(&text.replace("Abs (x)", "Constant <value_floats = [5.0, 6.0]> ()")))
        .unwrap();
    let ran = compare(&bench, &[&bench.text("b.onnx")]);
    assert!(
        ran.code == Some(1) && ran.out.contains("The first that differs, \"z\", is 5 at [0], expected 1"),
        "{ran:?}"
    );
    assert!(!ran.out.contains("The last of them reads"), "{}", ran.out);
}

/// Why there is nothing to compare, if all of it is random.
#[test]
fn where_all_is_random_that_is_said() {
    use onnxref::document::Document;
    let text = r#"<ir_version: 8, opset_import: ["" : 13]> g (float[n] x) => (float[n] z) {
        r = RandomUniform <shape = [2]> ()
        z = Add (x, r)
    }"#;
    let bench = Bench::new(&Document::from_text(text).unwrap().to_bytes().unwrap());
    let why = "nothing was compared: all values that both have are random: they differ from run to run of A";
    for b in [&[][..], &[&*bench.text("model.onnx")]] {
        check(compare(&bench, b), 5, "", &format!("error: {why}\n"));
    }
}

#[test]
fn an_input_that_one_of_two_models_refuses() {
    use onnxref::document::Document;
    let text = r#"<ir_version: 8, opset_import: ["" : 13]> g (float[n] x) => (float z) { z = Neg (x) }"#;
    let bytes = |text: &str| Document::from_text(text).unwrap().to_bytes().unwrap();
    let bench = Bench::new(&bytes(text));
    fs::write(bench.path("b.onnx"), bytes(&text.replace("float[n] x", "float[n, m] x"))).unwrap();
    let (a, b) = (bench.text("model.onnx"), bench.text("b.onnx"));
    let one = "input \"x\" has shape [1] of rank 1, but the model expects rank 2";
    let two = "input \"x\" has shape [1, 1] of rank 2, but the model expects rank 1";
    check(onnxref(["compare", &a, &b, "-i", "[1]"]), 2, "", &format!("error: B: {one}\n"));
    check(onnxref(["compare", &a, &b, "-i", "[[1]]"]), 2, "", &format!("error: A: {two}\n"));
    check(onnxref(["compare", &a, "-i", "[[1]]"]), 2, "", &format!("error: {two}\n"));
}
