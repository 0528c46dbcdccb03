//! `onnxref hash`, as a user calls it.

use crate::common::{Bench, Ran, data, gather, onnxref};
use onnxref::DType;
use onnxref::document::Document;

const CASE: &str = "gather/onnx-1.12.0/node/test_gather_2d_indices";

/// What `sha256sum` says of the output's file.
const HASH: &str = "c3bc9c106b6bd4b85c6ac098e8257495bb5e0d5f7999d24c88e485ea401e2faf";

fn hash(arguments: &[&str]) -> Ran {
    let folder = data(CASE);
    let (model, set) = (folder.join("model.onnx"), folder.join("test_data_set_0"));
    onnxref([&["hash", model.to_str().unwrap(), "--inputs", set.to_str().unwrap()], arguments].concat())
}

#[test]
fn it_is_that_of_the_files() {
    let ran = hash(&[]);
    assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (Some(0), "", format!("{HASH}\n").as_str()));
    assert_eq!(hash(&["--threads", "1"]).out, ran.out);
    let json = hash(&["--json"]);
    assert_eq!(json.out, format!("{{\"hash\":\"{HASH}\",\"outputs\":{{\"y\":\"{HASH}\"}}}}\n"));
    let rows: Vec<String> = hash(&["-v"]).out.lines().map(str::to_string).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows[1].starts_with(HASH) && rows[1].ends_with("  y") && rows[2].starts_with(HASH), "{rows:?}");
}

#[test]
fn another_one_than_expected() {
    assert_eq!(hash(&["--expect", &HASH.to_uppercase()]).code, Some(0));
    let other = "0".repeat(64);
    let ran = hash(&["--expect", &other]);
    let why = format!("error: the hash is not the expected one: {other}\n");
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), why.as_str()));
    for (more, out) in [
        ("-q", format!("{HASH}\n")),
        ("--json", format!("{{\"hash\":\"{HASH}\",\"expected\":\"{other}\",\"outputs\":{{\"y\":\"{HASH}\"}}}}\n")),
    ] {
        let ran = hash(&["--expect", &other, more]);
        assert_eq!((ran.code, ran.err, ran.out), (Some(1), why.clone(), out));
    }
    let ran = hash(&["--expect", "12"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("expected 64 hexadecimal digits"), "{}", ran.err);
}

/// A NaN is a NaN.
#[test]
fn nan_has_one_hash() {
    let bench = Bench::new(&gather(DType::Float));
    let of = |list: &str| {
        let model = bench.text("model.onnx");
        let ran = onnxref(["hash", &model, "-i", &format!("data={list}"), "-i", "indices=[0, 1]"]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.out
    };
    assert_eq!(of(r#"["NaN", 1]"#), of(r#"["NaN", 1]"#));
    assert_ne!(of("[0, 1]"), of("[-0.0, 1]"));
}

#[test]
fn a_random_model_has_another_hash_each_time() {
    let hash = |seed: &str| {
        let text = format!(
            r#"<ir_version: 10, opset_import: ["" : 22, "own" : 1]> g (bool go, float[8] x) => (a, y) {{
                a = RandomNormalLike <seed = 1.0> (x)
                y = own.F (go, a)
            }}
            <domain: "own", opset_import: ["" : 22]>
            F (c, x) => (y) {{
                y = If (c) <then_branch = t () => (p) {{ p = Bernoulli {seed} (x) }},
                    else_branch = e () => (q) {{ q = Neg (x) }}>
            }}"#
        );
        let bench = Bench::new(&Document::from_text(&text).unwrap().to_bytes().unwrap());
        let model = bench.text("model.onnx");
        ["true", "false"].map(|go| {
            let ran = onnxref(["hash", &model, "-i", &format!("go={go}"), "-i", "x=[0, 0, 0, 0, 0, 0, 0, 0]"]);
            assert_eq!((ran.code, ran.out.len()), (Some(0), 65));
            ran.err
        })
    };
    let place = "node #1 (own::F): in node #0 (If): node #0 (Bernoulli-22)";
    let note = format!("note: {place} draws random numbers without a seed: each run has another hash\n");
    assert_eq!(hash(""), [note.as_str(), ""]);
    assert_eq!(hash("<seed = 2.0>"), ["", ""]);
}
