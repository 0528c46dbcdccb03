//! `onnxref generate`: cases from the table of the standard.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use common::{Ran, onnxref};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn generate(to: &Path, more: &[&str]) -> Ran {
    onnxref([&["generate", "-o", to.to_str().unwrap()], more].concat())
}

fn cases(folder: &Path) -> Vec<Value> {
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    manifest["cases"].as_array().unwrap().clone()
}

fn names(folder: &Path) -> Vec<String> {
    cases(folder).iter().map(|case| case["name"].as_str().unwrap().to_string()).collect()
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let add = ["--operator", "Add", "--opset", "28"];
    let first = generate(&at("a"), &add);
    assert_eq!((first.code, first.err.as_str()), (Some(0), "note: 17 cases, 67 files\n"));
    let types = ["bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8"];
    let types = types.into_iter().chain(["uint16", "uint32", "uint64", "uint8"]).map(|name| format!("Add-14/T-{name}"));
    let features =
        ["constant-inputs", "edge-values", "empty", "open-shapes", "scalar"].map(|name| format!("Add-14/{name}"));
    assert_eq!(names(&at("a")), types.chain(features).collect::<Vec<_>>());
    // Together with others, an operator has the same cases.
    let both =
        generate(&at("b"), &["--operator", "Add", "--operator", "ai.onnx.ml.Scaler", "--opset", "28", "--seed", "1"]);
    assert_eq!(both.code, Some(0));
    let add: Vec<Value> =
        cases(&at("b")).into_iter().filter(|case| case["name"].as_str().unwrap().starts_with("Add")).collect();
    assert_eq!(add, cases(&at("a")));
    let other = generate(&at("c"), &["--operator", "Add", "--opset", "28", "--seed", "2", "-q"]);
    assert_ne!(other.out, first.out);
    assert_eq!(names(&at("c")), names(&at("a")));
    // All pass.
    let ran = onnxref(["test", at("b").to_str().unwrap()]);
    assert_eq!(ran.code, Some(0));
    let count = names(&at("b")).len();
    assert_eq!(ran.last(), format!("{count} passed ({count} bit by bit), 0 failed, 0 unsupported"));
}

#[test]
fn every_version_has_cases() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("gather");
    let ran = generate(&to, &["--operator", "Gather", "--per-version", "3"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let versions = [1, 11, 13]
        .map(|version| ["T-float32", "constant-inputs", "open-shapes"].map(|goal| format!("Gather-{version}/{goal}")));
    let mut expected = versions.concat();
    expected.sort();
    assert_eq!(names(&to), expected);
}

#[test]
fn bounds_follow_from_the_operator() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("all");
    let operators = ["Exp", "Mul", "Transpose", "MatMul"].map(|name| ["--operator", name]).concat();
    let ran = generate(&to, &[&operators[..], &["--opset", "28"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bounds: Vec<(String, Value)> =
        cases(&to).iter().map(|case| (case["name"].as_str().unwrap().to_string(), case["ulp"].clone())).collect();
    let of = |name: &str| bounds.iter().find(|(case, _)| case == name).map(|(_, ulp)| ulp.as_f64()).unwrap();
    assert_eq!(
        (of("Exp-13/T-float32"), of("Exp-13/T-float64"), of("Exp-13/T-bfloat16")),
        (Some(1.0), Some(2.0), Some(0.51))
    );
    assert_eq!((of("Mul-14/T-float16"), of("Mul-14/T-int8")), (Some(0.5), Some(0.0)));
    assert_eq!((of("Transpose-25/T-float64"), of("MatMul-13/T-float32")), (Some(0.0), None));
}

#[test]
fn wrong_usage() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("x");
    let wrong = |more: &[&str], text: &str| {
        let ran = generate(&to, more);
        assert_eq!((ran.code, ran.err), (Some(2), format!("error: {text}\n")));
        assert!(!to.exists());
    };
    wrong(&["--opset", "29"], "--opset 29: the newest opset is 28");
    wrong(&["--operator", "Nonsense"], "--operator \"Nonsense\": it is not an operator of the standard");
    let ran = generate(&to, &["--operator", "Bernoulli"]);
    assert_eq!((ran.code, ran.err.as_str(), to.exists()), (Some(5), "error: there are no cases\n", false));
}
