//! `onnxref check`, as a user calls it.

use crate::common::{Bench, Ran, bytes, model, node, number, onnxref};
use onnxref::DType;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const FLOAT: Option<DType> = Some(DType::Float);

fn check(bench: &Bench, arguments: &[&str]) -> Ran {
    onnxref([&["check", &bench.text("model.onnx")], arguments].concat())
}

#[test]
fn a_model_without_faults() {
    let bench = Bench::new(&model(&node("Abs", &["x"], "y"), &[("x", FLOAT)], 14));
    let ran = check(&bench, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out, format!("{}: no findings in 1 node\n", bench.text("model.onnx")));
}

#[test]
fn faults_of_operators_that_can_not_run() {
    // GRU is not implemented; the standard says what its nodes must be.
    let nodes = [
        node("GRU", &["x"], "a"),
        node("GRU", &["x", "i", "x"], "b"),
        node("GRU", &["x", "x", "x"], "c"),
        node("Nope", &["x"], "d"),
        node("Gather", &["x", "c"], "y"),
    ];
    let bench = Bench::new(&model(&nodes.concat(), &[("x", FLOAT), ("i", Some(DType::Int64))], 14));
    let ran = check(&bench, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].ends_with("model.onnx: 4 findings"), "{ran:?}");
    assert_eq!(
        lines[1],
        "  node #0 (GRU-14): 1 input given: the operator has (X, W, R, B?, sequence_lens?, initial_h?)"
    );
    assert_eq!(lines[2], "  node #1 (GRU-14): \"W\" has element type int64: allowed float32, float16, float64");
    assert_eq!(lines[3], "  node #3: Nope is not an ONNX operator");
    // The type of c follows from the table.
    assert_eq!(lines[4], "  node #4 (Gather-13): \"indices\" has element type float32: allowed int32, int64");

    let json: serde_json::Value = serde_json::from_str(&check(&bench, &["--json"]).out).unwrap();
    assert_eq!((&json["valid"], &json["count"]), (&false.into(), &4.into()));
    let place = &json["findings"][1];
    assert_eq!((&place["node_index"], &place["parameter"], &place["version"]), (&1.into(), &"W".into(), &14.into()));
}

#[test]
fn declared_shapes() {
    // x: float [2, 3], y: float with a shape.
    let shape = |dims: &[u64]| dims.iter().flat_map(|dim| bytes(1, &number(1, *dim))).collect::<Vec<u8>>();
    let info = |field, name: &str, dims: &[u64]| {
        let tensor = [number(1, 1), bytes(2, &shape(dims))].concat();
        bytes(field, &[bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat())
    };
    let with = |dims: &[u64]| {
        let graph = [node("Transpose", &["x"], "y"), bytes(2, b"g"), info(11, "x", &[2, 3]), info(12, "y", dims)];
        [number(1, 8), bytes(7, &graph.concat()), bytes(8, &number(2, 14))].concat()
    };
    assert_eq!(check(&Bench::new(&with(&[3, 2])), &[]).code, Some(0));
    let ran = check(&Bench::new(&with(&[2, 3])), &[]);
    assert_eq!(ran.code, Some(1));
    let finding = "node #0 (Transpose-13): output \"y\" has shape [3, 2], but is declared as [2, 3]";
    assert_eq!(ran.last().trim(), finding);
}

#[test]
fn shapes_that_do_not_fit() {
    let info = |name: &str, dims: &[u64]| {
        let shape: Vec<u8> = dims.iter().flat_map(|dim| bytes(1, &number(1, *dim))).collect();
        let tensor = [number(1, 1), bytes(2, &shape)].concat();
        bytes(11, &[bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat())
    };
    for (operator, finding) in [
        ("Add", "(Add-14): the shapes [2, 3], [4, 5] don't broadcast: dimension 0 is 2 and 4"),
        (
            "MatMul",
            "(MatMul-13): dimension 1 of \"A\" of shape [2, 3] is 3, and dimension 0 of \"B\" of shape [4, 5] is 4: they must ",
        ),
    ] {
        let graph = [node(operator, &["a", "b"], "y"), bytes(2, b"g"), info("a", &[2, 3]), info("b", &[4, 5])];
        let graph = [graph.concat(), bytes(12, &bytes(1, b"y"))].concat();
        let ran = check(&Bench::new(&[number(1, 8), bytes(7, &graph), bytes(8, &number(2, 14))].concat()), &[]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.last().contains(finding), "{ran:?}");
    }
}

#[test]
fn what_is_not_in_the_standard_is_not_checked() {
    let foreign = bytes(1, &[bytes(1, b"x"), bytes(2, b"y"), bytes(4, b"Own"), bytes(7, b"com.example")].concat());
    let mut file = model(&foreign, &[("x", FLOAT)], 14);
    file.extend(bytes(8, &[bytes(1, b"com.example"), number(2, 1)].concat()));
    let ran = check(&Bench::new(&file), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let why = "domain \"com.example\" is not in the standard and has no operators here";
    assert_eq!(ran.err, format!("note: not checked: com.example::Own: {why} (1 node)\n"));
}

#[test]
fn what_is_no_model() {
    let bench = Bench::new(b"\xff\xff\xff");
    let ran = check(&bench, &[]);
    assert_eq!(
        (ran.code, ran.out.lines().next().unwrap().ends_with("model.onnx: 1 finding")),
        (Some(1), true),
        "{ran:?}"
    );
    let none = onnxref(["check", "no/such.onnx"]);
    assert_eq!((none.code, none.out.as_str()), (Some(3), ""));
    assert_eq!(onnxref(["check"]).code, Some(2));
    // Several at once: one line of JSON each.
    fs::write(bench.path("good.onnx"), model(&node("Abs", &["x"], "y"), &[("x", FLOAT)], 14)).unwrap();
    let ran = check(&bench, &[&bench.text("good.onnx"), "--json"]);
    let valid = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["valid"].clone();
    assert_eq!((ran.code, ran.out.lines().map(valid).collect::<Vec<_>>()), (Some(1), vec![false.into(), true.into()]));
}

#[test]
fn what_can_not_be_read_does_not_end_the_check() {
    let bench = Bench::new(&model(&node("Abs", &["x"], "y"), &[("x", FLOAT)], 14));
    fs::write(bench.path("bad.onnx"), model(&node("Abs", &[], "y"), &[], 14)).unwrap();
    let several = |more: &[&str]| check(&bench, &[&["no/such.onnx", &bench.text("bad.onnx")], more].concat());
    let ran = several(&[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(ran.err, "error: no/such.onnx: No such file or directory (os error 2)\n");
    let heads: Vec<&str> = ran.out.lines().filter(|line| !line.starts_with(' ')).collect();
    let names = [bench.text("model.onnx") + ": no findings in 1 node", bench.text("bad.onnx") + ": 1 finding"];
    assert_eq!(heads, names);
    let lines: Vec<serde_json::Value> =
        several(&["--json"]).out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let facts = lines.iter().map(|line| (&line["valid"], &line["error"]["kind"]));
    let (yes, no, none) = (true.into(), false.into(), serde_json::Value::Null);
    assert_eq!(facts.collect::<Vec<_>>(), [(&yes, &none), (&none, &"io".into()), (&no, &none)]);
    // Wrong usage is not a file's.
    let ran = several(&["--limit", "no_such=1"]);
    assert!(ran.code == Some(2) && ran.out.is_empty(), "{ran:?}");
}

/// A weight `w`: float32 [4, 5] in a file that is missing; and nodes.
fn without_data(nodes: &[u8]) -> Bench {
    let location = bytes(13, &[bytes(1, b"location"), bytes(2, b"w.data")].concat());
    let dims = [number(1, 4), number(1, 5)].concat();
    let tensor = [dims, number(2, 1), bytes(8, b"w"), location, number(14, 1)].concat();
    Bench::new(&model(&[nodes, &bytes(5, &tensor)].concat(), &[("x", FLOAT)], 14))
}

#[test]
fn a_graph_is_checked_without_its_data() {
    let nodes = [node("Transpose", &["w"], "t"), node("Add", &["t", "w"], "y"), node("Abs", &[], "z")].concat();
    let bench = without_data(&nodes);
    let ran = check(&bench, &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    // The shape of the weight is known.
    let shapes = "  node #1 (Add-14): the shapes [5, 4], [4, 5] don't broadcast: dimension 0 is 5 and 4";
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].ends_with(": 2 findings") && lines.contains(&shapes), "{}", ran.out);
    assert!(ran.out.contains("  node #2 (Abs-13): 0 inputs given"), "{}", ran.out);
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    assert!(ran.err.starts_with("error: ") && ran.err.contains("w.data"), "{ran:?}");
    let json: serde_json::Value = serde_json::from_str(&check(&bench, &["--json"]).out).unwrap();
    assert_eq!((&json["valid"], &json["count"]), (&false.into(), &2.into()));
    assert_eq!((&json["unread"][0]["kind"], &json["unread"][0]["value_name"]), (&"io".into(), &"w".into()));

    let bench = without_data(&node("MatMul", &["x", "w"], "y"));
    let ran = onnxref(["inspect", &bench.text("model.onnx")]);
    let head = "1 initializer with 20 elements, 80 bytes; the data of 1 can't be read\n";
    assert!(ran.code == Some(0) && ran.out.contains(head) && ran.out.contains("\nCan't run: "), "{ran:?}");
    assert!(ran.out.contains("w.data") && ran.out.contains("\nMatMul-13"), "{ran:?}");
    // These flags would do nothing.
    for flag in ["--threads", "--timeout"] {
        for verb in ["check", "inspect"] {
            assert_eq!(onnxref([verb, &bench.text("model.onnx"), flag, "1"]).code, Some(2), "{verb} {flag}");
        }
    }
}

/// Constants of an OpenVINO IR without its .bin file, or beyond a limit.
#[test]
fn what_can_not_be_read_is_not_called_good() {
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/openvino/axis_1d_i64");
    let bench = Bench::new(b"");
    let path = bench.text("model.xml");
    fs::copy(given.join("model.xml"), &path).unwrap();
    let ran = onnxref(["check", &path]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(3), format!("{path}: not fully checked: 1 part can't be read\n").as_str())
    );
    assert!(ran.err.contains("model.bin") && ran.err.lines().count() == 1, "{ran:?}");
    // Nor a weight of another file.
    let bench = without_data(&node("MatMul", &["x", "w"], "y"));
    let (path, ran) = (bench.text("model.onnx"), check(&bench, &[]));
    assert_eq!((ran.code, ran.out), (Some(3), format!("{path}: not fully checked: 1 part can't be read\n")));
}

#[test]
fn standard_input() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_onnxref"));
    let mut child = program.args(["check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&model(&node("Abs", &["x"], "y"), &[("x", FLOAT)], 14)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "standard input: no findings in 1 node\n");
}
