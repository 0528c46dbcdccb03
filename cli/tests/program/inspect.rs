//! `onnxref inspect`, as a user calls it.

use crate::common::{Bench, Ran, bytes, data, gather, model, node, number, onnxref};
use onnxref::DType;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use std::{fs, str};

const EMBEDDING: &str = "gather/onnx-1.1.2/pytorch-converted/test_Embedding/model.onnx";

fn inspect(bench: &Bench, arguments: &[&str]) -> Ran {
    onnxref([&["inspect", &bench.text("model.onnx")], arguments].concat())
}

/// The model of `y = Relu(x)`, where x has the shape [batch, 3].
fn symbolic() -> Vec<u8> {
    let dims = [bytes(1, &bytes(2, b"batch")), bytes(1, &number(1, 3))].concat();
    let float = bytes(2, &bytes(1, &[number(1, 1), bytes(2, &dims)].concat()));
    let input = bytes(11, &[bytes(1, b"x"), float].concat());
    let graph = [node("Relu", &["x"], "y"), bytes(2, b"graph"), input, bytes(12, &bytes(1, b"y"))].concat();
    [number(1, 8), bytes(7, &graph), bytes(8, &[bytes(1, b""), number(2, 13)].concat())].concat()
}

#[test]
fn a_screen_of_text() {
    let ran = onnxref(["inspect", data(EMBEDDING).to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for line in [
        "IR version 3, opset ai.onnx 6",
        "producer_name: pytorch",
        "1 initializer with 12 elements, 48 bytes",
        "Gather-1      1         1",
        "Nodes: 1 of 1 run",
        "Memory between nodes: at most 48 bytes at node 0 (Gather-1); 1 value at the same time",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    assert!(ran.out.lines().count() < 40);
}

#[test]
fn lists_of_nodes_and_constants() {
    let path = data(EMBEDDING);
    let ran = onnxref(["inspect", path.to_str().unwrap(), "--nodes", "--constants"]);
    assert!(ran.out.contains("0     Gather-1  runs        1, 0 -> 2 float32[1, 4, 3]"), "{}", ran.out);
    assert!(ran.out.contains("   48  float32  [4, 3]  initializer  1"), "{}", ran.out);
}

#[test]
fn json() {
    let ran = onnxref(["inspect", data(EMBEDDING).to_str().unwrap(), "--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["graph"]["nodes"][0]["version"], 1);
    assert_eq!(found["totals"]["parameter_bytes"], 48);
    assert_eq!(ran.out.lines().count(), 1);
}

#[test]
fn sizes_for_symbols() {
    let bench = Bench::new(&symbolic());
    let open = inspect(&bench, &[]);
    assert!(open.out.contains("[batch, 3]") && open.out.contains("--set batch=1"), "{}", open.out);
    let set = inspect(&bench, &["--set", "batch=5"]);
    assert!(set.out.contains("[5, 3]") && set.out.contains("at most 60 bytes"), "{}", set.out);
    for (wrong, why) in
        [("batch", "NAME=SIZE is needed"), ("batch=x", "NAME=SIZE is needed"), ("seq=1", "their shapes are \"batch\"")]
    {
        let ran = inspect(&bench, &["--set", wrong]);
        assert!(ran.code == Some(2) && ran.err.contains(why), "{ran:?}");
    }
}

#[test]
fn pictures() {
    let bench = Bench::new(&gather(DType::Float));
    let file = bench.text("graph.svg");
    let ran = inspect(&bench, &["--svg", &file]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", ""));
    let svg = fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n") && svg.contains(">Gather<"), "{svg}");
    assert_eq!(bench.files(), ["graph.svg"]);
    assert_eq!(inspect(&bench, &["--svg", "-"]).out, svg);
    let dot = inspect(&bench, &["--dot", "-"]).out;
    assert!(dot.starts_with("digraph \"model.onnx\" {") && dot.contains("n1 -> n0"), "{dot}");
    let (both, other) = (bench.text("both.svg"), bench.text("both.dot"));
    assert_eq!(inspect(&bench, &["--svg", &both, "--dot", &other]).code, Some(0));
    assert_eq!((fs::read_to_string(&both).unwrap(), fs::read_to_string(&other).unwrap()), (svg, dot));
    let same = inspect(&bench, &["--svg", "-", "--dot", "-"]);
    assert!(same.code == Some(2) && same.err == "error: --svg and --dot both go to standard output\n", "{same:?}");
    let same = inspect(&bench, &["--svg", &both, "--dot", &bench.text("./both.svg")]);
    assert_eq!((same.code, same.err), (Some(2), format!("error: --svg and --dot both go to {both}\n")));
    for flag in ["--svg", "--dot"] {
        let ran = inspect(&bench, &[flag, "-", "--json"]);
        let why = format!("{flag} -: a file is needed: with --json standard output gets JSON");
        let json = format!(
            "{{\"error\":{{\"kind\":\"usage\",\"message\":\"{why}\",\"faults\":1,\"causes\":[{{\"kind\":\"usage\",\"message\":\"{why}\"}}]}}}}\n"
        );
        assert_eq!((ran.code, ran.out, ran.err), (Some(2), json, format!("error: {why}\n")));
    }
    let ran = inspect(&bench, &["--svg", &bench.text("no/graph.svg")]);
    assert!(ran.code == Some(2) && ran.err.contains("no/graph.svg: "), "{ran:?}");
}

#[test]
fn what_cannot_run_is_shown() {
    let nodes = [node("Relu", &["x"], "a"), node("Nonsense", &["a"], "y")].concat();
    let bench = Bench::new(&model(&nodes, &[("x", Some(DType::Float))], 13));
    let ran = inspect(&bench, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("Can't run: ") && ran.out.contains("Nonsense"), "{}", ran.out);
    let found: Value = serde_json::from_str(&inspect(&bench, &["--json"]).out).unwrap();
    assert_eq!((&found["runs"], &found["graph"]["nodes"][1]["fate"]), (&Value::Bool(false), &"missing".into()));
    assert!(inspect(&bench, &["--svg", "-"]).out.contains("class=\"box missing\""));
}

#[test]
fn nodes_that_run_as_parts_of_others_are_among_those_that_run() {
    let sizes: Vec<u8> = [2, 3].into_iter().flat_map(|size| bytes(1, &number(1, size))).collect();
    let matrix = bytes(2, &bytes(1, &[number(1, 1), bytes(2, &sizes)].concat()));
    let x = bytes(11, &[bytes(1, b"x"), matrix].concat());
    let nodes = [node("Relu", &["x"], "a"), node("Tanh", &["a"], "y"), x].concat();
    let bench = Bench::new(&model(&nodes, &[], 13));
    let ran = inspect(&bench, &[]);
    assert!(ran.out.contains("\nNodes: 2 of 2 run, 1 of these as parts of others\n"), "{}", ran.out);
}

#[test]
fn what_is_no_model() {
    let bench = Bench::new(b"This is text.");
    let ran = inspect(&bench, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""));
    let ran = inspect(&bench, &["--json", "--quiet"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(ran.code == Some(3) && found["error"]["kind"].is_string(), "{ran:?}");
    assert_eq!(onnxref(["inspect", "no-such-file.onnx"]).code, Some(3));
}

#[test]
fn standard_input_and_a_closed_pipe() {
    let run = |arguments: &[&str], close: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onnxref"));
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.arg("inspect").arg("-").args(arguments).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&gather(DType::Float)).unwrap();
        if close {
            drop(child.stdout.take());
        }
        child.wait_with_output().unwrap()
    };
    let ran = run(&[], false);
    assert!(ran.status.success() && str::from_utf8(&ran.stdout).unwrap().starts_with("standard input: IR version 8"));
    let closed = run(&["--svg", "-"], true);
    assert_eq!((closed.status.code(), closed.stderr.as_slice()), (Some(0), &b""[..]));
}
