//! `onnxref ops`, as a user calls it.

use crate::common::{Ran, onnxref};
use serde_json::Value;
use std::process::{Command, Stdio};

/// The first column of a table, without its header.
#[track_caller]
fn names(ran: &Ran) -> Vec<&str> {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect()
}

#[test]
fn the_table_has_every_operator() {
    let ran = onnxref(["ops"]);
    assert_eq!(names(&ran).len(), 228);
    let row = |name: &str| {
        let row = ran.out.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row("Gather"), ["Gather", "1, 11, 13", "all", "16"]);
    assert_eq!(row("org.openvinotoolkit.Gather")[1..3], ["1, 7, 8", "all"]);
    assert!(row("Upsample")[1].ends_with("9 (removed in 10)"), "{:?}", row("Upsample"));
    assert!(ran.err.starts_with("note: 228 operators: "), "{}", ran.err);
    assert_eq!(onnxref(["ops", "--quiet"]).err, "");
    assert_eq!(onnxref(["ops", "--missing"]).err, "note: 1 operator: 0 run here, 1 don't\n");
    assert!(onnxref(["ops", "-v"]).out.contains("Takes entries of `data` along an axis"));
}

#[test]
fn filters() {
    let (run, missing) = (onnxref(["ops", "--implemented"]), onnxref(["ops", "--missing"]));
    assert!(names(&run).contains(&"Gather"));
    assert_eq!(names(&missing), ["ai.onnx.preview.training.Gradient"]);
    assert_eq!(names(&run).len() + 1, names(&onnxref(["ops"])).len());
    assert_eq!(onnxref(["ops", "--missing", "--opset", "28"]).code, Some(2));

    let ml = onnxref(["ops", "--domain", "ai.onnx.ml"]);
    assert!(names(&ml).len() == 19 && names(&ml).iter().all(|name| name.starts_with("ai.onnx.ml.")));
    assert!(names(&onnxref(["ops", "--domain", "ai.onnx"])).iter().all(|name| !name.contains('.')));
    assert_eq!(names(&onnxref(["ops", "gathere"]))[0], "Takes");

    let scatter = onnxref(["ops", "scatter"]);
    assert_eq!(names(&scatter), ["Scatter", "ScatterElements", "ScatterND", "TensorScatter"]);
    let scatter = onnxref(["ops", "scatter", "--opset", "12"]);
    assert_eq!(names(&scatter), ["ScatterElements", "ScatterND"]);
    assert!(scatter.out.lines().next().unwrap().starts_with("operator         version "), "{}", scatter.out);
    assert!(scatter.out.lines().nth(1).unwrap().contains("  11 "), "{}", scatter.out);
}

#[test]
fn one_operator_is_explained() {
    let ran = onnxref(["ops", "Gather"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.lines().count() < 40 && ran.out.lines().all(|line| line.len() <= 200), "{}", ran.out);
    for text in [
        "Takes entries of `data` along an axis, at the places that `indices` give.",
        "https://onnx.ai/onnx/operators/onnx__Gather.html",
        "first version",
        "negative indices count from the end",
        "+bfloat16 for data",
        "Tind: int32/64",
        "attribute  axis  INT   0",
    ] {
        assert!(ran.out.contains(text), "{text} is missing in\n{}", ran.out);
    }
    let old = onnxref(["ops", "Gather", "--opset", "12"]);
    assert!(old.out.contains("\nGather-11\n") && ran.out.contains("\nGather-13\n"));
    assert!(!old.out.contains("T: float16/32/64, bfloat16") && ran.out.contains("T: float16/32/64, bfloat16"));
    assert!(old.out.contains("onnxref test onnx-test-data/onnx-older-node.tar.xz -k '"));
    assert!(!onnxref(["ops", "Abs"]).out.contains("engines differ"));
    let pool = onnxref(["ops", "MaxPool"]).out;
    let row = "\n    reference: skips NaN; fails on NaN alone\n    onnxref: NaN is the maximum\n    \
        models: maxpool_nan, maxpool_nan_indices, maxpool_nan_of_image, maxpool_nan_alone\n";
    assert!(pool.contains("\nWhere engines differ from the text, or") && pool.contains(row), "{pool}");
    assert!(pool.contains("\n  The models are in onnx-test-data/differences.tar.xz.\n"), "{pool}");
    // Names as the table, models and --domain have them.
    let scaler = onnxref(["ops", "ai.onnx.ml.Scaler"]).out;
    assert_eq!(onnxref(["ops", "Scaler", "--domain", "ai.onnx.ml"]).out, scaler);
    assert_eq!(onnxref(["ops", "ai.onnx.Gather"]).out, ran.out);
    assert!(scaler.contains("onnx_aionnxml_Scaler.html"));
    assert!(onnxref(["ops", "Upsample"]).out.contains("removed, replaced by Resize"));
    // No official case is an If-25.
    assert!(onnxref(["ops", "If"]).out.contains("Example of version 16, from the root of the repository:"));
    let openvino = onnxref(["ops", "org.openvinotoolkit.Gather"]).out;
    assert!(openvino.contains("https://docs.openvino.ai/") && openvino.contains("No official case"), "{openvino}");
}

#[cfg(unix)]
#[test]
fn examples_run_as_they_are_printed() {
    for (operator, shown) in [("Gather", "[[[1, 3]"), ("GatherElements", "[[1, 1], [4, 3]]"), ("GatherND", "[0, 3]")] {
        let text = onnxref(["ops", operator]).out;
        let command = text.lines().last().unwrap().trim();
        let arguments = command.strip_prefix("onnxref ").unwrap();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_onnxref"));
        let output = Command::new("sh").args(["-c", &line]).current_dir(root).output().unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success() && out.contains(shown), "{command}\n{out}{err}");
    }
}

#[test]
fn json() {
    let parse = |ran: Ran| -> Value {
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        serde_json::from_str(&ran.out).unwrap()
    };
    let all = parse(onnxref(["ops", "--json"]));
    assert_eq!(all["operators"].as_array().unwrap().len(), 228);
    let one = parse(onnxref(["ops", "--json", "Gather"]));
    let operator = &one["operators"][0];
    assert_eq!(operator["name"], "Gather");
    assert_eq!(operator["domain"], "");
    assert_eq!(operator["url"], "https://onnx.ai/onnx/operators/onnx__Gather.html");
    let version = &operator["versions"][2];
    assert_eq!((&version["version"], &version["runs"], &version["removed"]), (&13.into(), &true.into(), &false.into()));
    assert_eq!(version["change"], "+bfloat16 for data");
    assert_eq!(version["inputs"][1]["types"], serde_json::json!(["int32", "int64"]));
    assert_eq!(version["inputs"][0]["variable"], "T");
    let mish = &parse(onnxref(["ops", "--json", "Mish"]))["operators"][0];
    assert_eq!((&operator["ulp"], &mish["ulp"]), (&Value::Null, &"0.51, 4".into()));
    assert_eq!(mish["differences"], serde_json::json!([]));
    let top = parse(onnxref(["ops", "--json", "TopK"]));
    let row = serde_json::json!({
        "versions": "1 to 24", "text": "nothing on NaN", "onnxruntime": "returns neighbours of NaN",
        "reference": "NaN is the greatest", "onnxref": "NaN is the greatest", "models": ["topk_nan"]
    });
    assert_eq!(top["operators"][0]["differences"][0], row);
    let axis = serde_json::json!({"name": "axis", "kind": "INT", "required": false, "default": 0});
    assert_eq!(version["attributes"][0], axis);
    assert_eq!(operator["versions"][0]["change"], Value::Null);
    let example = |k: usize| operator["versions"][k]["example"].as_str().unwrap();
    assert!(example(0).starts_with("onnxref test ") && example(2).starts_with("onnxref run "), "{}", example(0));
    let old = parse(onnxref(["ops", "--json", "Gather", "--opset", "12"]));
    assert_eq!(old["operators"][0]["versions"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_not_there_is_told() {
    for (arguments, error) in [
        (
            &["ops", "GatherElement_"][..],
            "\"GatherElement_\" is not an operator of the standard, nor part of a name: did you mean \"GatherElements\"",
        ),
        (&["ops", "ConstantFill"], "ConstantFill was an experimental operator, which ONNX dropped in release 1.5\n"),
        (&["ops", "ATen"], "ATen was an experimental operator, which ONNX dropped in release 1.5\n"),
        (&["ops", "012345"], "\"012345\" is not an operator of the standard, nor part of a name\n"),
        (&["ops", "--domain", "com.example"], "--domain com.example: no such domain; known: ai.onnx, ai.onnx.ml, "),
        (&["ops", "--opset", "99"], "--opset 99: the newest opset of ai.onnx is 28"),
        (&["ops", "--opset", "6", "--domain", "ai.onnx.ml"], "--opset 6: the newest opset of ai.onnx.ml is 5"),
        (&["ops", "GatherElements", "--opset", "10"], "GatherElements is not in opset 10: it came with opset 11"),
        (
            &["ops", "Upsample", "--opset", "10"],
            "Upsample is not in opset 10: it was removed in opset 10 and replaced by Resize",
        ),
        (&["ops", "Gather", "--missing"], "no operator matches all of the arguments"),
    ] {
        let ran = onnxref(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.err.starts_with(&format!("error: {error}")), "{}", ran.err);
        let json = onnxref(arguments.iter().chain(&["--json"]));
        assert_eq!(serde_json::from_str::<Value>(&json.out).unwrap()["error"]["kind"], "usage", "{}", json.out);
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_onnxref"))
        .args(["ops", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
