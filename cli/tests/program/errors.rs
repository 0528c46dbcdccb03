//! The program's errors for models that can't be loaded or run.

use crate::common::{Bench, Ran, bytes, check, gather, model, node, number, onnxref};
use onnxref::DType;
use serde_json::{Value, json};
use std::fs;

const FLOAT: Option<DType> = Some(DType::Float);

fn named(operator: &str, name: &str) -> Vec<u8> {
    bytes(
        1,
        &[bytes(1, b"x"), bytes(2, name.as_bytes()), bytes(3, name.as_bytes()), bytes(4, operator.as_bytes())].concat(),
    )
}

/// Why operators such as ATen don't run.
const DROPPED: &str = "was an experimental operator, which ONNX dropped in release 1.5";

/// What makes a node of one input one of Gradient: the operator, and its attributes.
fn gradient() -> Vec<u8> {
    let xs = bytes(5, &[bytes(1, b"xs"), bytes(9, b"x"), number(20, 8)].concat());
    let y = bytes(5, &[bytes(1, b"y"), bytes(4, b"x"), number(20, 3)].concat());
    [bytes(4, b"Gradient"), bytes(7, b"ai.onnx.preview.training"), xs, y].concat()
}

/// An import of version 1 of a domain.
fn import(domain: &str) -> Vec<u8> {
    bytes(8, &[bytes(1, domain.as_bytes()), number(2, 1)].concat())
}

/// The model's path, then the text.
#[track_caller]
fn refused(model: &[u8], arguments: &[&str], text: &str) {
    let bench = Bench::new(model);
    check(bench.run(arguments), 3, "", &format!("error: {}{text}", bench.text("model.onnx")));
}

#[test]
fn the_model_is_named_first() {
    let none = onnxref(["run", "no/such.onnx"]);
    check(none, 3, "", "error: no/such.onnx: No such file or directory (os error 2)\n");
    check(onnxref(["run", "src"]), 3, "", "error: src is not a regular file\n");
    refused(b"", &[], ": the model file is empty\n");
    refused(&number(1, 8), &[], ": opset_import is missing: IR version 8 needs it\n");
    let wrong = model(&node("Gather", &["x"], "y"), &[("x", FLOAT)], 13);
    let bench = Bench::new(&wrong);
    let ran = bench.run(&[]);
    assert_eq!((ran.code, ran.err.lines().count()), (Some(3), 1), "{ran:?}");
    assert!(ran.err.starts_with(&format!("error: {}: node #0 (Gather-13): ", bench.text("model.onnx"))), "{ran:?}");
}

#[test]
fn all_missing_operators_on_a_line_each() {
    let gradient = bytes(1, &[bytes(1, b"x"), bytes(2, b"y"), gradient()].concat());
    let one = [model(&gradient, &[("x", FLOAT)], 14), import("ai.onnx.preview.training")].concat();
    let why = "onnxref doesn't differentiate graphs: export the gradient as a graph of its own";
    let text =
        " needs 1 operator that is not implemented (of 1; 1 of 1 nodes):\n  1  ai.onnx.preview.training::Gradient-1";
    refused(&one, &[], &format!("{text}  {why}; node #0\n"));

    let names = ["A", "B", "C", "D", "E", "G", "H", "I", "J"];
    let with = |name: &str| {
        let output = format!("the {name}");
        let rest = [bytes(2, output.as_bytes()), bytes(3, output.as_bytes()), bytes(4, name.as_bytes())].concat();
        bytes(1, &[rest, bytes(7, b"com.f")].concat())
    };
    let mut nodes: Vec<u8> = names.into_iter().flat_map(with).collect();
    nodes.extend((0..1233).flat_map(|k| node("ATen", &["x"; 2], &format!("l{k}"))));
    nodes.extend(node("Gather", &["x", "x"], "y"));
    nodes.extend((0..2).flat_map(|k| bytes(1, &[bytes(2, &[b'f', k]), bytes(4, b"F"), bytes(7, b"com.f")].concat())));
    let file = [model(&nodes, &[("x", None)], 17), import("com.f")].concat();
    let ran = Bench::new(&file).run(&[]);
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!((ran.code, lines.len()), (Some(3), 12), "{ran:?}");
    assert!(
        lines[0].ends_with(" needs 11 operators that are not implemented (of 12; 1,244 of 1,245 nodes):"),
        "{ran:?}"
    );
    assert_eq!(lines[1], format!("  1,233  ATen      {DROPPED}; first: node #9"));
    let why = "domain \"com.f\" is not in the standard and has no operators here";
    assert_eq!(lines[2], format!("      2  com.f::F  {why}; first: node #1243"));
    assert_eq!(lines[3], format!("      1  com.f::A  {why}; node \"the A\""));
}

#[test]
fn operators_beyond_those_listed_are_counted() {
    let nodes: Vec<u8> =
        (0..5000).flat_map(|k| bytes(1, &[bytes(4, format!("Op{k}").as_bytes()), bytes(7, b"a")].concat())).collect();
    let mut file = model(&nodes, &[], 14);
    file.extend(bytes(8, &[bytes(1, b"a"), number(2, 1)].concat()));
    let bench = Bench::new(&file);
    let ran = bench.run(&[]);
    let (listed, last) = (ran.err.lines().count() - 3, ran.err.lines().last().unwrap());
    assert!(
        ran.err.contains("has 1 fault and needs 5,000 operators that are not implemented (of 5,000; "),
        "{}",
        &ran.err[..200]
    );
    let more = 5000 - listed;
    assert_eq!(last, format!("  and {},{:03} more operators", more / 1000, more % 1000));
}

#[test]
fn an_operator_that_was_dropped_is_named_once() {
    let file = model(&node("ATen", &["x"], "y"), &[("x", FLOAT)], 7);
    let text =
        format!(" needs 1 operator that is not implemented (of 1; 1 of 1 nodes):\n  1  ATen  {DROPPED}; node #0\n");
    refused(&file, &[], &text);
}

#[test]
fn nodes_in_subgraphs_say_what_they_are_inside_of() {
    let graph = bytes(6, &[named("ATen", "inner"), bytes(2, b"body")].concat());
    let branch = |name: &[u8]| bytes(5, &[bytes(1, name), graph.clone(), number(20, 5)].concat());
    let branches = [branch(b"then_branch"), branch(b"else_branch")].concat();
    let outer = [bytes(1, b"x"), bytes(2, b"y"), bytes(3, b"outer"), bytes(4, b"If"), branches].concat();
    let bench = Bench::new(&model(&bytes(1, &outer), &[("x", Some(DType::Bool))], 13));
    let ran = bench.run(&[]);
    assert!(
        ran.err.contains(&format!("  2  ATen  {DROPPED}; first: node \"inner\", in node \"outer\" (If)")),
        "{ran:?}"
    );
}

#[test]
fn faults_come_before_missing_operators() {
    let nodes = [
        node("Gather", &["x"], "a"),
        node("Gather", &["x"], "b"),
        node("Nope", &["x"], "c"),
        node("ATen", &["x"], "y"),
    ];
    let bench = Bench::new(&model(&nodes.concat(), &[("x", FLOAT)], 14));
    let ran = bench.run(&[]);
    let lines: Vec<&str> = ran.err.lines().collect();
    let head = " has 3 faults and needs 1 operator that is not implemented (of 3; 1 of 4 nodes):";
    assert_eq!((ran.code, lines[0]), (Some(3), &*format!("error: {}{head}", bench.text("model.onnx"))), "{ran:?}");
    assert!(lines[1].starts_with("  node #0 (Gather-13): ") && lines[1].ends_with(" (and 1 more node)"), "{ran:?}");
    assert_eq!(&lines[2..], ["  node #2: Nope is not an ONNX operator", &format!("  1  ATen  {DROPPED}; node #3")]);
}

#[test]
fn the_number_of_faults_is_true() {
    // Each is a fault of its own.
    let nodes: Vec<u8> = (0..1500).flat_map(|k| node("Gather", &["x", &format!("no{k}")], &format!("y{k}"))).collect();
    let bench = Bench::new(&model(&nodes, &[("x", FLOAT)], 14));
    let (ran, json) = (bench.run(&[]), bench.run(&["--json"]));
    let lines: Vec<&str> = ran.err.lines().collect();
    let faults = onnxref::Model::load(bench.path("model.onnx")).unwrap_err().fault_count();
    assert!((1500..2000).contains(&faults), "{faults}");
    let number = format!("{},{:03}", faults / 1000, faults % 1000);
    assert_eq!(lines[0], format!("error: {} has {number} faults:", bench.text("model.onnx")));
    assert_eq!(
        (lines.len(), lines[21]),
        (22, &*format!("  and {},{:03} more", (faults - 20) / 1000, (faults - 20) % 1000))
    );
    assert_eq!(parse(&json)["error"]["faults"], faults);
}

fn parse(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}

#[test]
fn errors_as_json() {
    let sum = [bytes(1, b"x"), bytes(2, b"y"), bytes(3, b"sum"), gradient()].concat();
    let file = [model(&bytes(1, &sum), &[("x", FLOAT)], 14), import("ai.onnx.preview.training")].concat();
    let bench = Bench::new(&file);
    let (plain, ran) = (bench.run(&[]), bench.run(&["--json"]));
    assert_eq!((plain.code, plain.err), (ran.code, ran.err.clone()));
    let path = bench.text("model.onnx");
    let (domain, why) =
        ("ai.onnx.preview.training", "onnxref doesn't differentiate graphs: export the gradient as a graph of its own");
    let cause = json!({
        "kind": "unsupported", "message": format!("node \"sum\" ({domain}::Gradient-1): {why}"),
        "node_index": 0, "node": "sum", "operator": "Gradient", "domain": domain, "version": 1,
    });
    let missing = json!({
        "domain": domain, "operator": "Gradient", "version": 1, "reason": why, "nodes": 1,
        "first": {"node_index": 0, "node": "sum", "operator": "Gradient", "domain": domain, "version": 1},
    });
    assert_eq!(
        parse(&ran),
        json!({"error": {
            "kind": "unsupported", "faults": 1, "causes": [cause],
            "message": format!("{path} needs 1 operator that is not implemented (of 1; 1 of 1 nodes)"),
            "needs": {"operators": 1, "nodes": 1, "missing_operators": 1, "missing_nodes": 1, "missing": [missing]},
        }})
    );

    let bench = Bench::new(&gather(DType::Float));
    let ran = bench.run(&["--json", "-i", "data=[1]", "-i", "indices=[0, 7]"]);
    assert_eq!(ran.code, Some(4));
    let error = &parse(&ran)["error"];
    assert_eq!((&error["kind"], &error["message"]), (&json!("input"), &error["causes"][0]["message"]));
    let cause = &error["causes"][0];
    assert_eq!(
        [&cause["position"], &cause["value"], &cause["size"], &cause["axis"]],
        [&json!([1]), &json!(7), &json!(1), &json!(0)]
    );
    assert_eq!(error.get("needs"), None);

    let ran = bench.run(&["--json"]);
    let message = "missing input \"data\" (float32, any shape); missing input \"indices\" (int64, any shape)\
        : -i NAME=VALUE gives a value, --random random ones";
    assert_eq!((ran.code, &*ran.err), (Some(2), &*format!("error: {message}\n")));
    let cause = json!({"kind": "usage", "message": message});
    assert_eq!(parse(&ran), json!({"error": {"kind": "usage", "message": message, "faults": 1, "causes": [cause]}}));
}

/// With some flags a run fails and says what helps; with the flags that help it succeeds.
#[track_caller]
fn remedied(bench: &Bench, feeds: &[&str], flags: &[&str], code: i32, text: &str, remedy: &[&str]) {
    let ran = bench.run(&[feeds, flags].concat());
    assert!(ran.code == Some(code) && ran.err.ends_with(&format!(" ({text})\n")), "{ran:?}");
    let said = ran.err + &bench.run(&[feeds, flags, &["--json"]].concat()).out;
    assert!(["LoadOptions", "Limits::", "Compatibility::", "Model::"].iter().all(|api| !said.contains(api)), "{said}");
    let ran = bench.run(&[feeds, remedy].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn limits() {
    let bench = Bench::new(&gather(DType::Float));
    let feeds = ["-i", "data=[1, 2]", "-i", "indices=[0, 1]"];
    let raise = |name: &str| format!("--limit {name}=N raises it");
    remedied(&bench, &feeds, &["--limit", "run_bytes=7"], 4, &raise("run_bytes"), &["--limit", "run_bytes=1K"]);
    remedied(&bench, &feeds, &["--limit", "run-nodes=0"], 4, &raise("run_nodes"), &["--limit", "run-nodes=1"]);
    remedied(&bench, &feeds, &["--limit", "file_bytes=9"], 3, &raise("file_bytes"), &["--limit", "file_bytes=1T"]);
    let low = ["--limit", "nodes=0"];
    remedied(&bench, &feeds, &low, 3, &raise("nodes"), &["--limit", "nodes=0", "--limit", "nodes=1"]);
    for (text, why) in [
        ("rank", "NAME=VALUE is needed"),
        ("rank=1.5", "VALUE must be a number below 2^64, such as 500 or 16G"),
        ("ranks=1", "there is no limit \"ranks\": the limits are "),
    ] {
        let ran = bench.run(&["--limit", text]);
        assert!(ran.code == Some(2) && ran.err.starts_with(&format!("error: --limit {text}: {why}")), "{ran:?}");
    }
}

/// The limits of the preset, each of which `--limit` changes, whatever the order.
#[test]
fn untrusted() {
    let bench = Bench::new(&gather(DType::Float));
    let feeds = ["-i", "data=[1, 2]", "-i", "indices=[0, 1]"];
    assert_eq!(bench.run(&[&feeds[..], &["--untrusted"]].concat()).code, Some(0));
    let low = ["--limit", "run_bytes=7", "--untrusted"];
    remedied(&bench, &feeds, &low, 4, "--limit run_bytes=N raises it", &["--untrusted", "--limit", "run_bytes=1K"]);
    let wide = format!("data={}1{}", "[".repeat(17), "]".repeat(17));
    let feeds = ["-i", &wide, "-i", "indices=[0]"];
    remedied(&bench, &feeds, &["--untrusted"], 4, "--limit rank=N raises it", &["--untrusted", "--limit", "rank=17"]);
}

#[test]
fn departures() {
    let feeds = ["-i", "data=[[1]]", "-i", "indices=[[0]]"];
    let inputs = [("data", FLOAT), ("indices", Some(DType::Int64))];
    let nodes = node("GatherElements", &["data", "indices"], "y");
    let bench = Bench::new(&model(&nodes, &inputs, 10));
    remedied(&bench, &feeds, &[], 3, "--allow newer-operators accepts it", &["--allow", "newer-operators"]);
    let text = "node #0: GatherElements is not in opset 10: it came with opset 11 (--allow newer-operators accepts it)";
    check(bench.run(&feeds), 3, "", &format!("error: {}: {text}\n", bench.text("model.onnx")));

    let nodes = [node("Gather", &["data", "k"], "y"), node("Gather", &["indices", "indices"], "k")].concat();
    let bench = Bench::new(&model(&nodes, &inputs, 13));
    remedied(&bench, &feeds, &[], 3, "--allow unsorted-nodes accepts it", &["--allow", "unsorted-nodes"]);

    let content = [
        bytes(1, b"data"),
        bytes(1, b"indices"),
        bytes(1, b"axis"),
        bytes(2, b"y"),
        bytes(4, b"Gather"),
        bytes(7, b"org.openvinotoolkit"),
    ];
    let inputs = [inputs[0], inputs[1], ("axis", Some(DType::Int64))];
    let feeds = [&feeds[..], &["-i", "axis=0"]].concat();
    let bench = Bench::new(&model(&bytes(1, &content.concat()), &inputs, 13));
    let help = "--allow undeclared-domains accepts it";
    remedied(&bench, &feeds, &[], 3, help, &["--allow", "undeclared-domains"]);

    let ran = bench.run(&["--allow", "everything"]);
    let names = "gather-1-negative-indices, unsorted-nodes, undeclared-domains, newer-operators, shadowed-names, \
                 negative-axes, split-to-sequence-keepdims, stft-rank-2";
    check(ran, 2, "", &format!("error: --allow everything: no such departure; known: {names}\n"));
    let help = onnxref(["run", "--help"]).out;
    for (name, accepted) in onnxref::Compatibility::NAMES {
        let sentence = accepted.split(['.', ':']).next().unwrap();
        let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&format!("{}: {sentence}", name.replace('_', "-"))), "{help}");
    }
    assert!(onnxref::Limits::NAMES.iter().all(|name| help.contains(name)), "{help}");
}

/// A model whose data is in `w.data`.
fn external() -> Bench {
    let location = bytes(13, &[bytes(1, b"location"), bytes(2, b"w.data")].concat());
    let tensor = [number(1, 2), number(2, 1), bytes(8, b"w"), location, number(14, 1)].concat();
    let graph = [node("Gather", &["w", "indices"], "y"), bytes(5, &tensor)].concat();
    Bench::new(&model(&graph, &[("indices", Some(DType::Int64))], 13))
}

#[test]
#[cfg(unix)]
fn links() {
    let (bench, elsewhere) = (external(), tempfile::TempDir::new().unwrap());
    let (target, root) = (elsewhere.path().join("blob"), elsewhere.path().to_str().unwrap());
    fs::write(&target, [0; 8]).unwrap();
    std::os::unix::fs::symlink(&target, bench.path("w.data")).unwrap();
    let text = "--external-root DIR allows links into DIR";
    remedied(&bench, &["-i", "0"], &[], 3, text, &["--external-root", root]);
    let other = bench.text("");
    let why = "is behind a link: links are not followed except into the given folders, and it is in none";
    let ran = bench.run(&["-i", "0", "--external-root", &other]);
    assert!(ran.code == Some(3) && ran.err.contains(why), "{ran:?}");
    remedied(
        &bench,
        &["-i", "0"],
        &["--external-root", &other],
        3,
        text,
        &["--external-root", &other, "--external-root", root],
    );

    // The flag is wrong, not the model.
    for (folder, why) in
        [("no/such", "No such file or directory (os error 2)"), (&*bench.text("w.data"), "it is not a folder")]
    {
        let ran = bench.run(&["-i", "0", "--external-root", folder]);
        check(ran, 2, "", &format!("error: --external-root {folder}: {why}\n"));
    }

    let bench = external();
    fs::hard_link(&target, bench.path("w.data")).unwrap();
    remedied(&bench, &["-i", "0"], &[], 3, "--hard-links accepts it", &["--hard-links"]);
}

#[test]
fn threads() {
    let bench = Bench::new(&gather(DType::Float));
    let feeds = ["-i", "data=[1]", "-i", "indices=0", "--threads"];
    assert_eq!(bench.run(&[&feeds[..], &["1"]].concat()).code, Some(0));
    assert_eq!(bench.run(&[&feeds[..], &["0"]].concat()).code, Some(2));
}

#[test]
fn wrong_usage_as_json() {
    let ran = onnxref(["run", "--json", "--nonsense"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &json["error"]["kind"]), (Some(2), &"usage".into()));
    assert_eq!(json["error"]["message"], "unexpected argument '--nonsense' found");
    assert!(ran.err.starts_with("error: unexpected argument '--nonsense' found\n"), "{ran:?}");
}

/// What clap writes in several lines.
#[test]
fn all_of_wrong_usage_as_json() {
    let message = |arguments: &[&str]| {
        let ran = onnxref([arguments, &["--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, &json["error"]["kind"]), (Some(2), &"usage".into()), "{ran:?}");
        json["error"]["message"].as_str().unwrap().to_string()
    };
    assert_eq!(
        message(&["convert", "m.onnx"]),
        "the following required arguments were not provided:\n  --opset <VERSION>\n  -o <FILE>"
    );
    assert_eq!(
        message(&["completions", "dash"]),
        "invalid value 'dash' for '<SHELL>'\n  [possible values: bash, elvish, fish, powershell, zsh]\n  tip: a similar value exists: 'bash'"
    );
    assert_eq!(
        message(&["run", "m.onnx", "--jsn"]),
        "unexpected argument '--jsn' found\n  tip: a similar argument exists: '--json'"
    );
    let missing = "'onnxref corpus' requires a subcommand but one was not provided\n  [subcommands: export, help]";
    assert_eq!(message(&["corpus"]), missing);
    // Here it is the help that clap shows.
    let ran = onnxref(["--json", "corpus"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &json["error"]["message"]), (Some(2), &"arguments are missing: --help lists them".into()));
}
