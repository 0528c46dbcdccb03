//! `onnxref test`, as a user calls it.

use crate::common::{Ran, bytes, data, model, node, number, onnxref};
use onnxref::{DType, Tensor};
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};
use serde_json::{Value, json};
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const CASE: &str = "gather/onnx-1.1.2/node/test_gather_0";

/// Copies an official case.
fn copy(to: &Path) {
    let set = to.join("test_data_set_0");
    fs::create_dir_all(&set).unwrap();
    fs::copy(data(CASE).join("model.onnx"), to.join("model.onnx")).unwrap();
    for name in ["input_0.pb", "input_1.pb", "output_0.pb"] {
        fs::copy(data(CASE).join("test_data_set_0").join(name), set.join(name)).unwrap();
    }
}

/// Turns the first element of a case's output into 1000.
fn spoil(case: &Path) {
    let file = case.join("test_data_set_0/output_0.pb");
    let tensor = Tensor::from_proto_bytes(fs::read(&file).unwrap()).unwrap();
    let mut array = tensor.into_array::<f32>().unwrap();
    *array.iter_mut().next().unwrap() = 1000.0;
    fs::write(&file, Tensor::from_array(array).to_proto_bytes("y")).unwrap();
}

/// Why a case of [`unsupported`] can't run.
const MISSING: &str = "ATen was an experimental operator, which ONNX dropped in release 1.5";

/// A case whose operator is not implemented.
fn unsupported(to: &Path) {
    copy(to);
    let missing = model(&node("ATen", &["x"], "y"), &[("x", Some(DType::Float))], 7);
    fs::write(to.join("model.onnx"), missing).unwrap();
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_official_gather_cases_pass() {
    let ran = onnxref(["test", path(&data("gather")), "--min-cases", "28", "--strict"]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "28 passed (28 bit by bit), 0 failed, 0 unsupported\n", "")
    );
    let one = onnxref(["test", path(&data(CASE))]);
    assert_eq!((one.code, one.last()), (Some(0), "1 passed (1 bit by bit), 0 failed, 0 unsupported"));
}

/// All cases, by the last line.
fn total(line: &str) -> usize {
    line.split(", ").map(|part| part.split(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}

#[test]
fn archives_are_found_in_trees() {
    // Seven networks that are slow without optimisation: tests/conformance.rs of the library runs them.
    let slow = "light_(vgg19|resnet50|densenet121|inception_v[12]|zfnet512|bvlc_alexnet)$";
    let tree = onnxref(["test", path(&data("")), "--exclude", slow]);
    assert_eq!((tree.code, tree.err.as_str()), (Some(1), ""));
    assert_eq!(total(tree.last()), 28 + 1884 + 3689 + 149 - 7 + 31 + 7 + 1 + 2 + 254 + 5468, "{}", tree.last());
    // Cases whose data are wrong or too coarse, or random: tests/conformance.rs of the library says of each why.
    let failed: Vec<&str> = tree.out.lines().filter(|line| line.starts_with("FAILED ")).collect();
    // Models that show where onnxref refuses what engines compute have no outputs.
    let (differ, failed): (Vec<&str>, Vec<&str>) = failed.iter().partition(|line| line.contains("differences.tar.xz"));
    // What is random agrees at times.
    let random = failed.iter().filter(|line| line.contains("test_bernoulli")).count();
    assert_eq!((differ.len(), failed.len() - random), (27, 30));
    let (newest, older): (Vec<&str>, Vec<&str>) = failed.iter().partition(|line| line.contains("onnx-1.23.2-node"));
    assert!(older.iter().all(|line| line.contains("onnx-older-node.tar.xz")), "{failed:?}");
    assert!(
        newest
            .iter()
            .all(|line| line.contains("test_attention_4d_causal_fp16_expanded") || line.contains("test_bernoulli")),
        "{failed:?}"
    );
    let archive = data("onnx-1.23.2-node.tar.xz");
    let ran = onnxref(["test", path(&archive)]);
    assert_eq!((ran.code, total(ran.last())), (Some(1), 1884), "{}", ran.last());
}

#[test]
fn plain_and_gzipped_archives() {
    let folder = TempDir::new().unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("./deep/case", data(CASE)).unwrap();
    let tar = tar.into_inner().unwrap();
    fs::write(folder.path().join("a.tar"), &tar).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&tar).unwrap();
    let gz = gz.finish().unwrap();
    fs::write(folder.path().join("b.tar.gz"), &gz).unwrap();
    let ran = onnxref(["test", path(folder.path()), "--min-cases", "2"]);
    assert_eq!((ran.code, ran.last()), (Some(0), "2 passed (2 bit by bit), 0 failed, 0 unsupported"));

    // The content counts, not the name.
    let renamed = folder.path().join("c.zip");
    fs::rename(folder.path().join("b.tar.gz"), &renamed).unwrap();
    assert_eq!(onnxref(["test", path(&renamed)]).code, Some(0));

    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("model.onnx", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(b"content").unwrap();
    let zip = zip.finish().unwrap().into_inner();
    let xz = fs::read(data("onnx-1.23.2-node.tar.xz")).unwrap();
    let mut text = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    text.write_all(&b"\x1b[31m".repeat(400)).unwrap();
    let (cut, none) = ("the archive is cut short", "it is not a .zip, .tar, .tar.gz or .tar.xz file");
    for (name, bytes, why) in [
        ("cut.tar", &tar[..1000], cut),
        ("cut.tar.gz", &gz[..100], cut),
        ("cut.tar.xz", &xz[..10_000], cut),
        ("cut.zip", &zip[..40], cut),
        ("no.tar.xz", b"no archive", none),
        ("no.tar", &b"\x1b[31m".repeat(400), none),
        ("no.tar.gz", &text.finish().unwrap(), "what is compressed is not a .tar file"),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        let ran = onnxref(["test", path(&file)]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{ran:?}");
        assert_eq!(ran.err, format!("error: {}: {why}\n", path(&file)));
    }
}

#[test]
fn failed_and_unsupported_cases() {
    let folder = TempDir::new().unwrap();
    let (good, bad, missing) = (folder.path().join("good"), folder.path().join("bad"), folder.path().join("missing"));
    unsupported(&missing);
    let none = onnxref(["test", path(folder.path())]);
    assert_eq!((none.code, none.last()), (Some(5), "0 passed (0 bit by bit), 0 failed, 1 unsupported"));
    assert_eq!(none.err, "error: nothing was tested: every case is unsupported\n");

    copy(&good);
    let ran = onnxref(["test", path(folder.path())]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let reasons = format!("Why cases can't run, and how many:\n     1  {MISSING}\n");
    assert_eq!(ran.out, format!("{reasons}1 passed (1 bit by bit), 0 failed, 1 unsupported\n"));

    let strict = onnxref(["test", "--strict", "-v", path(folder.path())]);
    assert_eq!(strict.code, Some(3));
    assert_eq!(strict.err, "error: --strict: 1 case unsupported\n");
    assert!(strict.out.starts_with(&format!("unsupported {}: {MISSING}\n", path(&missing))));

    let few = onnxref(["test", "--min-cases", "2", path(folder.path())]);
    assert_eq!((few.code, few.last()), (Some(5), "1 passed (1 bit by bit), 0 failed, 1 unsupported"));
    assert_eq!(few.err, "error: --min-cases: 1 case ran: 2 are needed\n");

    copy(&bad);
    spoil(&bad);
    let ran = onnxref(["test", "--strict", path(folder.path())]);
    assert_eq!(
        (ran.code, ran.last(), ran.err.as_str()),
        (Some(1), "1 passed (1 bit by bit), 1 failed, 1 unsupported", "")
    );
    let line = ran.out.lines().next().unwrap();
    let start = format!("FAILED {}: test_data_set_0: output \"y\" is ", path(&bad));
    assert!(line.starts_with(&start) && line.contains(" at [0, 0, 0, 0], expected 1000; 1 of "), "{line}");
}

#[test]
fn a_report_needs_a_file() {
    let why = "error: --junit -: a file is needed: standard output gets the results\n";
    let ran = onnxref(["test", path(&data(CASE)), "--junit", "-"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(2), "", why));
}

#[test]
fn passed_within_the_tolerance() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("test_data_set_0/output_0.pb");
    copy(folder.path());
    let mut array = Tensor::from_proto_bytes(fs::read(&file).unwrap()).unwrap().into_array::<f32>().unwrap();
    array.mapv_inplace(|value| value * 1.0005);
    fs::write(&file, Tensor::from_array(array).to_proto_bytes("y")).unwrap();
    let ran = onnxref(["test", path(folder.path()), "--strict"]);
    assert_eq!((ran.code, ran.last()), (Some(0), "1 passed (0 bit by bit), 0 failed, 0 unsupported"));
}

#[test]
fn refused_cases_are_listed() {
    let folder = TempDir::new().unwrap();
    let (good, early) = (folder.path().join("good"), folder.path().join("early"));
    copy(&early);
    let gather = node("GatherElements", &["x", "i"], "y");
    let gather = model(&gather, &[("x", Some(DType::Float)), ("i", Some(DType::Int64))], 9);
    fs::write(early.join("model.onnx"), gather).unwrap();
    let none = onnxref(["test", path(folder.path())]);
    assert_eq!((none.code, none.last()), (Some(5), "0 passed (0 bit by bit), 0 failed, 1 refused, 0 unsupported"));
    assert_eq!(none.err, "error: nothing was tested: every case is unsupported or refused\n");

    copy(&good);
    let ran = onnxref(["test", path(folder.path())]);
    assert_eq!((ran.code, ran.last()), (Some(0), "1 passed (1 bit by bit), 0 failed, 1 refused, 0 unsupported"));
    assert!(ran.out.starts_with(&format!("refused {}: GatherElements is not in opset 9", path(&early))), "{ran:?}");
    let strict = onnxref(["test", path(folder.path()), "--strict"]);
    assert_eq!((strict.code, strict.err.as_str()), (Some(3), "error: --strict: 1 case unsupported or refused\n"));

    let allowed = onnxref(["test", path(&early), "--allow", "newer-operators"]);
    assert!(!allowed.last().contains("refused") && !allowed.out.contains("not in opset"), "{allowed:?}");

    // A file that is not a model at all fails.
    fs::write(early.join("model.onnx"), "").unwrap();
    let ran = onnxref(["test", path(folder.path())]);
    assert_eq!((ran.code, ran.last()), (Some(1), "1 passed (1 bit by bit), 1 failed, 0 unsupported"));
}

#[test]
fn nothing_points_at_the_library() {
    let folder = TempDir::new().unwrap();
    let location = bytes(13, &[bytes(1, b"location"), bytes(2, b"w.data")].concat());
    let tensor = [number(1, 1), number(2, 1), bytes(8, b"w"), location, number(14, 1)].concat();
    let graph = [node("Gather", &["w", "x"], "y"), bytes(5, &tensor)].concat();
    fs::create_dir(folder.path().join("case")).unwrap();
    fs::write(folder.path().join("case/model.onnx"), model(&graph, &[("x", Some(DType::Int64))], 13)).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("./case", folder.path().join("case")).unwrap();
    fs::write(folder.path().join("a.tar"), tar.into_inner().unwrap()).unwrap();
    let ran = onnxref(["test", path(&folder.path().join("a.tar"))]);
    let line = ran.out.lines().next().unwrap();
    assert!(ran.code == Some(1) && line.contains("its data is in the file \"w.data\""), "{ran:?}");
    assert!(!line.contains("LoadOptions") && !line.contains("Model::"), "{ran:?}");
}

#[test]
fn nothing_to_test() {
    let folder = TempDir::new().unwrap();
    let ran = onnxref(["test", path(folder.path())]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(5), "0 passed (0 bit by bit), 0 failed, 0 unsupported\n"));
    assert_eq!(ran.err, "error: nothing was tested: no case was found\n");
    assert_eq!(onnxref(["test", "no/such/folder"]).code, Some(2));
    assert_eq!(onnxref(["test", path(&data("README.md"))]).code, Some(2));
    assert_eq!(onnxref(["test"]).code, Some(2));
}

/// A zip file of an official case in the folder `deep/case`.
fn zipped() -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let files =
        ["model.onnx", "test_data_set_0/input_0.pb", "test_data_set_0/input_1.pb", "test_data_set_0/output_0.pb"];
    for file in files {
        zip.start_file(format!("deep/case/{file}"), zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(&fs::read(data(CASE).join(file)).unwrap()).unwrap();
    }
    zip.start_file("../escaped.txt", zip::write::SimpleFileOptions::default()).unwrap();
    zip.finish().unwrap().into_inner()
}

/// Runs `onnxref test -` with standard input.
fn fed(input: &[u8]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onnxref"));
    command.args(["test", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn zip_files_and_wheels() {
    let folder = TempDir::new().unwrap();
    let zip = zipped();
    fs::write(folder.path().join("a.zip"), &zip).unwrap();
    fs::write(folder.path().join("b-1.0-py3-none-any.whl"), &zip).unwrap();
    let ran = onnxref(["test", path(folder.path()), "--min-cases", "2"]);
    assert_eq!((ran.code, ran.last()), (Some(0), "2 passed (2 bit by bit), 0 failed, 0 unsupported"), "{ran:?}");
    let one = onnxref(["test", path(&folder.path().join("a.zip")), "--list", "passed"]);
    assert_eq!(one.out, format!("{}/a.zip/deep/case\n", path(folder.path())));

    let mut flipped = zip.clone();
    flipped[100] ^= 1;
    for (name, bytes) in
        [("cut.zip", &zip[..zip.len() - 30]), ("flipped.zip", &flipped), ("no.whl", &b"no archive"[..])]
    {
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        let ran = onnxref(["test", path(&file)]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{name} {ran:?}");
        assert!(ran.err.starts_with(&format!("error: {}: ", path(&file))) && ran.err.lines().count() == 1, "{ran:?}");
    }
}

#[test]
fn archives_from_standard_input() {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("./deep/case", data(CASE)).unwrap();
    let tar = tar.into_inner().unwrap();
    for archive in [tar, zipped()] {
        let ran = fed(&archive);
        assert_eq!((ran.code, ran.last()), (Some(0), "1 passed (1 bit by bit), 0 failed, 0 unsupported"), "{ran:?}");
    }
    let ran = fed(b"neither");
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.starts_with("error: standard input: "), "{ran:?}");
    let twice = onnxref(["test", "-", "-"]);
    assert_eq!((twice.code, twice.err.as_str()), (Some(2), "error: standard input can be read only once\n"));
}

#[test]
fn cases_are_selected_by_name() {
    let gather = data("gather");
    let count = |flags: &[&str]| {
        let ran = onnxref([&["test", path(&gather)], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        total(ran.last())
    };
    let (elements, negative) = (count(&["-k", "gather_elements"]), count(&["-k", "negative_indices$"]));
    assert!(0 < elements && elements < 28 && 0 < negative && negative < 28);
    assert_eq!(count(&["--exclude", "gather_elements"]), 28 - elements);
    let both = count(&["-k", "gather_elements", "--exclude", "negative_indices$"]);
    assert_eq!(
        count(&["-k", "gather_elements", "-k", "negative_indices$"]),
        count(&["--exclude", "x{99}"]).min(both + negative)
    );

    let none = onnxref(["test", path(&gather), "-k", "no such case"]);
    assert_eq!((none.code, none.err.as_str()), (Some(5), "error: nothing was tested: no case was selected of 28\n"));
    for flag in ["-k", "--exclude"] {
        let wrong = onnxref(["test", path(&gather), flag, "("]);
        assert!(wrong.code == Some(2) && wrong.err.contains("unclosed group"), "{wrong:?}");
    }
}

#[test]
fn cases_are_selected_by_operator() {
    let folder = TempDir::new().unwrap();
    let (good, missing, other) = (folder.path().join("good"), folder.path().join("conv"), folder.path().join("other"));
    copy(&good);
    unsupported(&missing);
    copy(&other);
    let foreign = [bytes(1, b"x"), bytes(2, b"y"), bytes(4, b"Gelu"), bytes(7, b"com.example")].concat();
    // In a subgraph of an If.
    let graph = bytes(6, &[bytes(1, &foreign), bytes(12, &bytes(1, b"y"))].concat());
    let body = |name: &[u8]| bytes(5, &[bytes(1, name), graph.clone(), number(20, 5)].concat());
    let bodies = [body(b"then_branch"), body(b"else_branch")].concat();
    let branch = bytes(1, &[bytes(1, b"x"), bytes(2, b"y"), bytes(4, b"If"), bodies].concat());
    fs::write(other.join("model.onnx"), model(&branch, &[("x", Some(DType::Bool))], 14)).unwrap();
    let names = |operators: &str| {
        let ran = onnxref(["test", path(folder.path()), "--json", "--containing", operators]);
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        let name = |case: &Value| case["name"].as_str().unwrap().rsplit_once('/').unwrap().1.to_string();
        document["cases"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("Gather"), ["good"]);
    assert_eq!(names("ATen,Gather"), ["conv", "good"]);
    assert_eq!(names("If"), ["other"]);
    assert_eq!((names("com.example.Gelu"), names("com.example::Gelu")), (vec!["other".into()], vec!["other".into()]));
    assert!(names("Gelu").is_empty());
    // What can't be read is not skipped silently.
    fs::write(good.join("model.onnx"), "").unwrap();
    assert_eq!(names("ATen"), ["conv", "good"]);
    assert_eq!(onnxref(["test", path(folder.path()), "--containing", ""]).code, Some(2));
}

#[test]
fn outcomes_are_listed() {
    let folder = TempDir::new().unwrap();
    let (good, bad, missing) = (folder.path().join("good"), folder.path().join("bad"), folder.path().join("missing"));
    copy(&good);
    copy(&bad);
    spoil(&bad);
    unsupported(&missing);
    let list = |outcome| {
        let ran = onnxref(["test", path(folder.path()), "--list", outcome]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(1), "note: 1 passed (1 bit by bit), 1 failed, 1 unsupported\n"));
        ran.out
    };
    assert_eq!(list("passed"), format!("{}\n", path(&good)));
    assert_eq!(list("unsupported"), format!("{}: {MISSING}\n", path(&missing)));
    assert!(list("failed").starts_with(&format!("{}: test_data_set_0: output \"y\" is ", path(&bad))));
    assert_eq!(list("refused"), "");
    let json = onnxref(["test", path(folder.path()), "--list", "unsupported", "--json"]);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    let case = &document["cases"][0];
    assert_eq!((document["cases"].as_array().unwrap().len(), &document["failed"]), (1, &json!(1)));
    assert_eq!((&case["outcome"], &case["needs"]), (&json!("unsupported"), &json!(["ATen"])));
    assert_eq!(document["reasons"], json!([{"reason": MISSING, "cases": 1}]));
    let quiet = onnxref(["test", path(folder.path()), "--list", "passed", "--quiet"]);
    assert_eq!((quiet.out, quiet.err.as_str()), (format!("{}\n", path(&good)), ""));
    assert_eq!(onnxref(["test", path(folder.path()), "--list", "broken"]).code, Some(2));
}

/// A case whose only input is its output; the third value and the fifth differ.
fn different(to: &Path) {
    let set = to.join("test_data_set_0");
    fs::create_dir_all(&set).unwrap();
    fs::write(to.join("model.onnx"), model(&node("Identity", &["x"], "y"), &[("x", Some(DType::Float))], 14)).unwrap();
    let tensor = |values: [f32; 6]| Tensor::from_elements(&[2, 3], values.to_vec()).unwrap().to_proto_bytes("");
    fs::write(set.join("input_0.pb"), tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
    fs::write(set.join("output_0.pb"), tensor([1.0, 2.001, 3.25, 4.0, f32::INFINITY, 6.0])).unwrap();
}

#[test]
fn a_difference_is_described() {
    let folder = TempDir::new().unwrap();
    different(folder.path());
    let ran = onnxref(["test", path(folder.path())]);
    let why = "test_data_set_0: output \"y\" is 3 at [0, 2], expected 3.25; 2 of 6 differ, by up to inf, \
               the first by 1,048,576 ulp";
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.out.lines().next(), Some(&*format!("FAILED {}: {why}", path(folder.path()))));

    let ran = onnxref(["test", path(folder.path()), "--json"]);
    let mut document: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(document["cases"][0]["seconds"].take().as_f64().unwrap() > 0.0);
    let difference = json!({
        "kind": "elements", "path": [], "got": 3, "want": 3.25,
        "index": [0, 2], "differing": 2, "elements": 6, "greatest_error": "inf", "ulps": 1 << 20, "greatest_ulps": 1 << 20,
    });
    let case = json!({
        "name": path(folder.path()), "outcome": "failed", "reason": why, "data_set": "test_data_set_0", "output": "y",
        "difference": difference, "ulps": 1 << 20, "seconds": null,
    });
    let counts =
        json!({"passed": 0, "exact": 0, "failed": 1, "refused": 0, "unsupported": 0, "cases": [case], "reasons": []});
    // Numbers keep the digits they are written with.
    assert_eq!(document.to_string(), serde_json::from_str::<Value>(&counts.to_string()).unwrap().to_string());
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
}

#[test]
fn the_tolerance_can_be_set() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("test_data_set_0/output_0.pb");
    copy(folder.path());
    let mut array = Tensor::from_proto_bytes(fs::read(&file).unwrap()).unwrap().into_array::<f32>().unwrap();
    array.mapv_inplace(|value| value + 0.01);
    fs::write(&file, Tensor::from_array(array).to_proto_bytes("y")).unwrap();
    let code = |flags: &[&str]| onnxref([&["test", path(folder.path())], flags].concat()).code;
    assert_eq!((code(&[]), code(&["--atol", "0.02"]), code(&["--atol", "0.001"])), (Some(1), Some(0), Some(1)));
    assert_eq!(
        (code(&["--rtol", "1e9"]), code(&["--rtol", "-1"]), code(&["--atol", "inf"])),
        (Some(0), Some(2), Some(2))
    );
}

#[test]
fn results_are_the_same_and_in_order_whatever_runs_at_a_time() {
    let gather = data("gather");
    let list = |jobs| onnxref(["test", path(&gather), "--list", "passed", "-j", jobs]).out;
    let one = list("1");
    assert_eq!(one.lines().count(), 28);
    assert!(one.lines().is_sorted());
    assert_eq!((list("5"), list("1000")), (one.clone(), one));
    assert_eq!(onnxref(["test", path(&gather), "-j", "0"]).code, Some(2));
}

#[test]
fn a_junit_report() {
    let folder = TempDir::new().unwrap();
    let (good, bad, missing) = (folder.path().join("good"), folder.path().join("bad"), folder.path().join("missing"));
    copy(&good);
    copy(&bad);
    spoil(&bad);
    unsupported(&missing);
    let file = folder.path().join("report.xml");
    let report = |flags: &[&str]| {
        let ran = onnxref([&["test", path(folder.path()), "--junit", path(&file)], flags].concat());
        assert_eq!((ran.code, ran.last()), (Some(1), "1 passed (1 bit by bit), 1 failed, 1 unsupported"));
        Report::deserialize_from_str(&fs::read_to_string(&file).unwrap()).unwrap()
    };
    let lenient = report(&[]);
    let suite = &lenient.test_suites[0];
    assert_eq!((suite.tests, suite.failures, suite.errors, suite.skipped), (3, 1, 0, 1));
    let [bad, good, missing] = &suite.test_cases[..] else { panic!("{suite:?}") };
    assert_eq!((good.name.as_str(), good.classname.as_ref().unwrap().as_str()), ("good", path(folder.path())));
    assert!(matches!(good.status, TestCaseStatus::Success { .. }) && good.time.is_some());
    let TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, message: Some(why), .. } = &bad.status else {
        panic!("{bad:?}")
    };
    assert!(why.as_str().contains("expected 1000; 1 of "), "{why:?}");
    let TestCaseStatus::Skipped { message: Some(why), .. } = &missing.status else { panic!("{missing:?}") };
    assert_eq!(why.as_str(), MISSING);
    let strict = report(&["--strict"]);
    assert_eq!((strict.test_suites[0].errors, strict.test_suites[0].skipped), (1, 0));

    let nowhere = folder.path().join("none/report.xml");
    let ran = onnxref(["test", path(folder.path()), "--junit", path(&nowhere)]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
}

#[test]
fn a_case_that_takes_too_long_fails() {
    let folder = TempDir::new().unwrap();
    copy(folder.path());
    let ran = onnxref(["test", path(folder.path()), "--timeout", "0"]);
    assert_eq!((ran.code, ran.last()), (Some(1), "0 passed (0 bit by bit), 1 failed, 0 unsupported"));
    assert!(ran.out.contains("test_data_set_0: ") && ran.out.contains("longer than --timeout"), "{ran:?}");
    assert_eq!(onnxref(["test", path(folder.path()), "--timeout", "60"]).code, Some(0));
}

#[test]
fn a_failure_names_the_flag_that_resolves_it() {
    let folder = TempDir::new().unwrap();
    copy(folder.path());
    let ran = onnxref(["test", path(folder.path()), "--limit", "run-bytes=16"]);
    assert!(ran.code == Some(1) && ran.out.contains("(--limit run_bytes=N raises it)"), "{ran:?}");
}
