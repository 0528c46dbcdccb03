//! `onnxref bench`, as a user calls it. No test depends on a time.

use crate::common::{Bench, Ran, bytes, check, gather, model, node, number, onnxref};
use onnxref::DType;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

const FEEDS: [&str; 4] = ["-i", "data=[[1, 2, 3], [4, 5, 6]]", "-i", "indices=[1, 0]"];
const SHORT: [&str; 4] = ["--runs", "3", "--warmup", "1"];

fn bench(bench: &Bench, arguments: &[&str]) -> Ran {
    onnxref([&["bench", &bench.text("model.onnx")], arguments].concat())
}

fn document(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn file(bench: &Bench, name: &str) -> Value {
    serde_json::from_slice(&fs::read(bench.path(name)).unwrap()).unwrap()
}

/// The fields of an object, sorted.
fn fields(value: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort();
    fields
}

/// `y = MatMul(Relu(a), b)`.
fn product() -> Bench {
    let nodes = [node("Relu", &["a"], "r"), node("MatMul", &["r", "b"], "y")].concat();
    Bench::new(&model(&nodes, &[("a", Some(DType::Float)), ("b", Some(DType::Float))], 14))
}

const OPERANDS: [&str; 4] = ["-i", "a=[[1, 2, 3], [4, 5, 6]]", "-i", "b=[[1, 2], [3, 4], [5, 6]]"];

/// A loop over two nodes, the second without a name.
fn looped() -> Bench {
    let named = |name: &[u8], dtype: DType| {
        // Nodes whose shapes aren't known run one by one.
        let shape = if dtype == DType::Float { Vec::new() } else { bytes(2, b"") };
        [bytes(1, name), bytes(2, &bytes(1, &[number(1, dtype.code() as u64), shape].concat()))].concat()
    };
    let step = |operator: &[u8], input: &[u8], output: &[u8], name: &[u8]| {
        bytes(1, &[bytes(1, input), bytes(2, output), bytes(3, name), bytes(4, operator)].concat())
    };
    let body = [
        step(b"Neg", b"before", b"negative", b"first"),
        step(b"Abs", b"negative", b"after", b""),
        step(b"Identity", b"go", b"on", b""),
        bytes(2, b"body"),
        bytes(11, &named(b"k", DType::Int64)),
        bytes(11, &named(b"go", DType::Bool)),
        bytes(11, &named(b"before", DType::Float)),
        bytes(12, &named(b"on", DType::Bool)),
        bytes(12, &named(b"after", DType::Float)),
    ];
    let attribute = bytes(5, &[bytes(1, b"body"), bytes(6, &body.concat()), number(20, 5)].concat());
    let inputs = [bytes(1, b"count"), bytes(1, b""), bytes(1, b"x")].concat();
    let around = bytes(1, &[inputs, bytes(2, b"y"), bytes(3, b"outer"), bytes(4, b"Loop"), attribute].concat());
    Bench::new(&model(&around, &[("count", Some(DType::Int64)), ("x", Some(DType::Float))], 13))
}

#[test]
fn text() {
    let bench_ = Bench::new(&gather(DType::Float));
    let ran = bench(&bench_, &[&FEEDS[..], &SHORT, &["--threads", "1"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], format!("model       {}", bench_.text("model.onnx")));
    assert_eq!(lines[1], "threads     1");
    assert!(lines[2].starts_with("load        ") && lines[3].starts_with("first run   "), "{}", ran.out);
    assert!(
        lines[4].starts_with("runs        3, ") && lines[4].ends_with(" a second, after 1 of warm-up"),
        "{}",
        ran.out
    );
    assert_eq!(lines[5].starts_with("peak memory "), cfg!(target_os = "linux"));
    let header = lines.iter().position(|line| line.trim_start().starts_with("min ")).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    assert_eq!(words(lines[header]), ["min", "mean", "p50", "p90", "p99", "max"]);
    // Numbers with units.
    assert_eq!((words(lines[header + 1]).len(), lines.len()), (12, header + 2), "{}", ran.out);
}

#[test]
fn data() {
    let bench_ = Bench::new(&gather(DType::Float));
    let figures = document(&bench(&bench_, &[&FEEDS[..], &SHORT, &["--json", "--threads", "1"]].concat()));
    let mut expected = vec!["first_run_seconds", "load_seconds", "model", "onnxref", "runs", "threads", "warmup_runs"];
    if cfg!(target_os = "linux") {
        expected.insert(4, "peak_memory_bytes");
    }
    assert_eq!(fields(&figures), expected);
    assert_eq!(figures["model"], json!(bench_.text("model.onnx")));
    assert_eq!(figures["onnxref"], json!(env!("CARGO_PKG_VERSION")));
    assert_eq!((&figures["threads"], &figures["warmup_runs"]), (&json!(1), &json!(1)));
    assert_eq!(fields(&figures["runs"]), ["count", "max", "mean", "min", "p50", "p90", "p99"]);
    assert_eq!(figures["runs"]["count"], json!(3));
    let time = |name: &str| figures["runs"][name].as_f64().unwrap();
    for (less, more) in
        [("min", "p50"), ("p50", "p90"), ("p90", "p99"), ("p99", "max"), ("min", "mean"), ("mean", "max")]
    {
        assert!(time(less) <= time(more), "{figures}");
    }
}

#[test]
fn a_single_run() {
    let ran =
        bench(&Bench::new(&gather(DType::Float)), &[&FEEDS[..], &["--runs", "1", "--warmup", "0", "--json"]].concat());
    let figures = document(&ran);
    assert_eq!((&figures["runs"]["count"], &figures["warmup_runs"]), (&json!(1), &json!(0)));
    assert_eq!(figures["runs"]["min"], figures["runs"]["p99"]);
}

#[test]
fn a_time_instead_of_a_count() {
    let arguments = ["--seconds", "0", "--warmup", "0", "--json", "--no-optimize"];
    let figures = document(&bench(&Bench::new(&gather(DType::Float)), &[&FEEDS[..], &arguments].concat()));
    assert_eq!(figures["runs"]["count"], json!(1));
}

#[test]
fn a_profile_counts_calls_macs_and_bytes() {
    let ran = bench(&product(), &[&OPERANDS[..], &SHORT, &["--profile", "--json"]].concat());
    let figures = document(&ran);
    let nodes = figures["nodes"].as_array().unwrap();
    let counts = |node: &Value| ["operator", "index", "calls", "macs", "bytes"].map(|name| node[name].clone());
    assert_eq!(counts(&nodes[0]), [json!("Relu"), json!(0), json!(1), json!(0), json!(2 * 6 * 4)]);
    assert_eq!(counts(&nodes[1]), [json!("MatMul"), json!(1), json!(1), json!(12), json!((6 + 6 + 4) * 4)]);
    let operators = figures["operators"].as_array().unwrap();
    let shares: f64 = operators.iter().map(|operator| operator["share"].as_f64().unwrap()).sum();
    assert!(operators.len() == 2 && (shares - 1.0).abs() < 1e-9, "{figures}");
    assert_eq!(figures["profile"]["runs"], json!(3));
    for limit in ["copy_bytes_per_second", "macs_per_second", "matrix_size"] {
        assert!(figures["machine"][limit].as_f64().unwrap() > 0.0, "{figures}");
    }
}

#[test]
fn a_profile_as_tables() {
    let ran = bench(&product(), &[&OPERANDS[..], &SHORT, &["--profile"]].concat());
    let row = |start: &str| {
        let line =
            ran.out.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {}", ran.out));
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row("operator "), ["operator", "calls", "own time", "share", "MACs", "GMAC/s", "bytes", "GB/s"]);
    assert_eq!(
        (&row("MatMul ")[1], &row("MatMul ")[4], &row("MatMul ")[6]),
        (&"1".into(), &"12.0".into(), &"64.0 B".into())
    );
    assert_eq!(row("(machine) ").len(), 3);
    assert_eq!(row("#1 ")[..3], ["#1", "MatMul", "1"]);
    // Without products of matrices nothing is said of MACs.
    assert_eq!(row("Relu ").len(), 6);
    assert_eq!(row("Profile of ").len(), 1);
}

#[test]
fn nodes_of_subgraphs_are_below_theirs() {
    let bench_ = looped();
    let arguments = ["-i", "count=5", "-i", "x=1", "--profile", "--json"];
    let figures = document(&bench(&bench_, &[&arguments[..], &SHORT].concat()));
    let nodes = figures["nodes"].as_array().unwrap();
    let row = |node: &Value| ["operator", "name", "calls", "parent"].map(|name| node[name].clone());
    let of = |operator: &str| nodes.iter().find(|node| node["operator"] == json!(operator)).unwrap();
    assert_eq!(row(&nodes[0]), [json!("Loop"), json!("outer"), json!(1), Value::Null]);
    assert_eq!(row(of("Neg")), [json!("Neg"), json!("first"), json!(5), json!(0)]);
    assert_eq!(row(of("Abs")), [json!("Abs"), json!(""), json!(5), json!(0)]);
    let time = |node: &Value, name: &str| node[name].as_f64().unwrap();
    let inside: f64 = nodes[1..].iter().map(|node| time(node, "seconds")).sum();
    let (whole, own) = (time(&nodes[0], "seconds"), time(&nodes[0], "own_seconds"));
    assert!((whole - own - inside).abs() < 1e-6 && own > 0.0, "{figures}");
    let text = bench(&bench_, &[&arguments[..5], &SHORT].concat());
    assert!(text.out.contains("\nouter > first ") && text.out.contains("\nouter > #1 "), "{text:?}");
}

#[test]
fn a_trace_nests_the_nodes_of_one_run() {
    let bench_ = looped();
    let trace = bench_.text("trace.json");
    let ran = bench(&bench_, &[&["-i", "count=5", "-i", "x=1", "--trace", &trace, "-q"][..], &SHORT].concat());
    assert_eq!((ran.code, bench_.files()), (Some(0), vec!["trace.json".to_string()]), "{ran:?}");
    let trace = file(&bench_, "trace.json");
    let events = trace["traceEvents"].as_array().unwrap();
    let time = |event: &Value, name: &str| event[name].as_f64().unwrap();
    for event in events {
        assert_eq!((&event["ph"], &event["pid"], &event["tid"]), (&json!("X"), &json!(1), &json!(1)));
        assert!(time(event, "ts") >= 0.0 && time(event, "dur") >= 0.0);
    }
    let of = |category: &str| events.iter().filter(|event| event["cat"] == json!(category)).collect::<Vec<_>>();
    assert_eq!(["run", "Loop", "Neg", "Abs"].map(|category| of(category).len()), [1, 1, 5, 5]);
    assert_eq!((&events[0]["cat"], &of("Abs")[0]["name"]), (&json!("run"), &json!("Abs #1")));
    for (outer, inner) in [("run", "Loop"), ("Loop", "Neg"), ("Loop", "Abs")] {
        let (start, end) = (time(of(outer)[0], "ts"), time(of(outer)[0], "ts") + time(of(outer)[0], "dur"));
        for event in of(inner) {
            assert!(time(event, "ts") >= start && time(event, "ts") + time(event, "dur") <= end + 1e-3, "{trace}");
        }
    }
    let arguments = &of("Neg")[0]["args"];
    assert_eq!(
        (&arguments["inputs"], &arguments["outputs"]),
        (&json!(["float32 []"]), &json!({"negative": "float32 []"}))
    );
    assert_eq!((&arguments["macs"], &arguments["bytes"], &arguments["index"]), (&json!(0), &json!(8), &json!(0)));
}

#[test]
fn figures_are_saved_and_compared() {
    let bench_ = product();
    let (saved, arguments) = (bench_.text("before.json"), [&OPERANDS[..], &SHORT, &["--profile"]].concat());
    let printed = bench(&bench_, &[&arguments[..], &["--save", &saved, "--json"]].concat());
    assert_eq!(document(&printed), file(&bench_, "before.json"));
    let compared = document(&bench(&bench_, &[&arguments[..], &["--against", &saved, "--json"]].concat()));
    let before = file(&bench_, "before.json");
    let pairs = |name: &str| compared["against"][name].as_array().unwrap().clone();
    assert_eq!(
        pairs("runs").iter().map(|pair| pair["name"].as_str().unwrap().to_string()).collect::<Vec<_>>(),
        ["min", "mean", "p50", "p90", "p99", "max"]
    );
    for pair in pairs("runs") {
        let name = pair["name"].as_str().unwrap();
        let (time, old) = (|name: &str| pair[name].as_f64().unwrap(), before["runs"][name].as_f64().unwrap());
        assert_eq!(pair["after"], compared["runs"][name]);
        // What is read may be off by an ulp.
        assert!((time("before") - old).abs() <= 1e-12 * old, "{pair}");
        assert!((time("ratio") - time("after") / old).abs() <= 1e-9 * time("ratio"), "{pair}");
    }
    assert_eq!(pairs("operators").len(), 2);
    let text = bench(&bench_, &[&arguments[..], &["--against", &saved]].concat()).out;
    let header = |start: &str| {
        text.lines().any(|line| line.starts_with(start) && line.contains("before") && line.ends_with("ratio"))
    };
    assert!(header("time of runs ") && header("own time "), "{text}");
    // Without a profile now, operators aren't compared.
    let runs = document(&bench(&bench_, &[&OPERANDS[..], &SHORT, &["--against", &saved, "--json"]].concat()));
    assert_eq!(runs["against"]["operators"], json!([]));
}

#[test]
fn a_slower_p50_fails_on_request_only() {
    let bench_ = Bench::new(&gather(DType::Float));
    let earlier = |p50: f64| {
        let runs = json!({"count": 1, "min": p50, "mean": p50, "p50": p50, "p90": p50, "p99": p50, "max": p50});
        let figures = json!({"model": bench_.text("model.onnx"), "onnxref": env!("CARGO_PKG_VERSION"), "threads": 1, "runs": runs});
        fs::write(bench_.path("earlier.json"), figures.to_string()).unwrap();
    };
    let against = bench_.text("earlier.json");
    let compare = |more: &[&str]| {
        bench(&bench_, &[&FEEDS[..], &SHORT, &["--threads", "1", "--against", &against], more].concat())
    };
    earlier(1e-30);
    let ran = compare(&[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let slower = compare(&["--max-ratio", "1.5", "--json"]);
    assert_eq!(slower.code, Some(1));
    assert!(slower.err.starts_with("error: --max-ratio 1.5: the p50 is "), "{slower:?}");
    assert!(serde_json::from_str::<Value>(&slower.out).unwrap()["against"].is_object());
    earlier(1e30);
    assert_eq!(compare(&["--max-ratio", "1.5"]).code, Some(0));
    // Figures of something else.
    let other =
        bench(&bench_, &[&FEEDS[..], &SHORT, &["--no-optimize", "--threads", "1", "--against", &against]].concat());
    assert_eq!(other.err, "");
    fs::write(&against, fs::read_to_string(&against).unwrap().replace("\"threads\":1", "\"threads\":64")).unwrap();
    assert_eq!(compare(&[]).err, "note: the number of threads differs: 64 before, 1 now\n");
    let why = "the figures of --against are of 64 threads, but this run has 1: --threads 64 is the same";
    check(compare(&["--max-ratio", "9"]), 2, "", &format!("error: --max-ratio: {why}\n"));
    let path = bench_.text("model.onnx");
    fs::write(&against, fs::read_to_string(&against).unwrap().replace(&path, "other.onnx")).unwrap();
    assert!(compare(&[]).err.starts_with("note: the model differs: other.onnx before, "));
    let why = format!("the figures of --against are of another model: other.onnx before, {path} now");
    check(compare(&["--max-ratio", "9"]), 2, "", &format!("error: --max-ratio: {why}\n"));
}

#[test]
fn wrong_usage() {
    let bench_ = Bench::new(&gather(DType::Float));
    fs::write(bench_.path("text.json"), "no").unwrap();
    fs::write(bench_.path("other.json"), "{\"model\": \"m\"}").unwrap();
    let (text, other, none) = (bench_.text("text.json"), bench_.text("other.json"), bench_.text("none.json"));
    let io = fs::read(bench_.path("none.json")).unwrap_err();
    let form = "expected a file of onnxref bench --save:";
    for (flag, path, why) in [
        ("--against", &text, format!("{form} expected ident at line 1 column 2")),
        ("--against", &other, format!("{form} missing field `onnxref` at line 1 column 14")),
        ("--against", &none, io.to_string()),
        ("--save", &bench_.text("no/such.json"), "the file can't be written: ".into()),
        ("--save", &"-".to_string(), "a file is needed: standard output gets the table".into()),
        ("--trace", &"-".to_string(), "a file is needed: standard output gets the table".into()),
        ("--trace", &bench_.text(""), "the file can't be written: ".into()),
    ] {
        let ran = bench(&bench_, &[&FEEDS[..], &SHORT, &[flag, path]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.starts_with(&format!("error: {flag} {path}: {why}")), "{ran:?}");
    }
    let same = bench_.text("./none.json");
    let wrong: [&[&str]; 7] = [
        &["--runs", "0"],
        &["--runs", "1", "--seconds", "1"],
        &["--seconds", "-1"],
        &["--max-ratio", "1.1"],
        &["--against", &text, "--max-ratio", "0"],
        &["--trace", &none, "--save", &none],
        &["--trace", &none, "--save", &same],
    ];
    for arguments in wrong {
        assert_eq!(bench(&bench_, &[&FEEDS[..], arguments].concat()).code, Some(2), "{arguments:?}");
    }
    assert_eq!(bench_.files(), ["other.json", "text.json"]);
    let missing = "error: missing input \"data\" (float32, any shape); missing input \"indices\" (int64, any shape)\
        : -i NAME=VALUE gives a value, --random random ones\n";
    check(bench(&bench_, &SHORT), 2, "", missing);
}

#[test]
fn models_that_fail() {
    let bench_ = Bench::new(b"\x08\x08");
    let path = bench_.text("model.onnx");
    check(bench(&bench_, &SHORT), 3, "", &format!("error: {path}: opset_import is missing: IR version 8 needs it\n"));
    let ran = bench(&bench_, &["--json"]);
    let error: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &error["error"]["kind"]), (Some(3), &json!("model")), "{ran:?}");
    let save = bench_.text("saved.json");
    let bench_ = Bench::new(&gather(DType::Float));
    for more in [&["--save", &save][..], &["--profile"]] {
        let ran = bench(&bench_, &[&["-i", "data=[1]", "-i", "indices=9"][..], &SHORT, more].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "{ran:?}");
        assert!(ran.err.starts_with("error: node #0 (Gather-13): indices"), "{ran:?}");
    }
    assert_eq!(bench(&bench_, &[&FEEDS[..], &["--timeout", "0"]].concat()).code, Some(4));
    assert!(!fs::exists(save).unwrap());
}

#[test]
fn a_model_from_standard_input() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_onnxref"));
    program.args(["bench", "-", "--json"]).args(FEEDS).args(SHORT);
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&gather(DType::Float)).unwrap();
    let output = child.wait_with_output().unwrap();
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &figures["model"]), (Some(0), &json!("standard input")));
}
