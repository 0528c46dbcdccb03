//! `onnxref test`, as a user calls it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{bytes, data, model, node, number, onnxref};
use onnxref::{DType, Tensor};
use std::fs;
use std::path::Path;
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

/// A case whose operator is not implemented.
fn unsupported(to: &Path) {
    copy(to);
    let rnn = model(&node("RNN", &["x", "x"], "y"), &[("x", Some(DType::Float))], 14);
    fs::write(to.join("model.onnx"), rnn).unwrap();
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
    let tree = onnxref(["test", path(&data(""))]);
    assert_eq!((tree.code, tree.err.as_str()), (Some(1), ""));
    assert_eq!(total(tree.last()), 28 + 1884 + 3689 + 149 + 31, "{}", tree.last());
    // Cases of older releases whose data are wrong: tests/conformance.rs of the library says of each why.
    let failed: Vec<&str> = tree.out.lines().filter(|line| line.starts_with("FAILED ")).collect();
    assert_eq!(failed.len(), 22);
    assert!(failed.iter().all(|line| line.contains("onnx-older-node.tar.xz")), "{failed:?}");
    let archive = data("onnx-1.23.2-node.tar.xz");
    let ran = onnxref(["test", path(&archive)]);
    assert_eq!((ran.code, total(ran.last())), (Some(0), 1884), "{}", ran.last());
}

#[test]
fn plain_and_gzipped_archives() {
    let folder = TempDir::new().unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("./deep/case", data(CASE)).unwrap();
    let tar = tar.into_inner().unwrap();
    fs::write(folder.path().join("a.tar"), &tar).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, &tar).unwrap();
    let gz = gz.finish().unwrap();
    fs::write(folder.path().join("b.tar.gz"), &gz).unwrap();
    let ran = onnxref(["test", path(folder.path()), "--min-cases", "2"]);
    assert_eq!((ran.code, ran.last()), (Some(0), "2 passed (2 bit by bit), 0 failed, 0 unsupported"));

    for (name, bytes) in [("cut.tar", &tar[..1000]), ("cut.tar.gz", &gz[..100]), ("no.tar.xz", &gz[..])] {
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        let ran = onnxref(["test", path(&file)]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{ran:?}");
        assert!(ran.err.starts_with(&format!("error: {}: ", path(&file))) && ran.err.lines().count() == 1, "{ran:?}");
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
    let reasons = "Why cases can't run, and how many:\n     1  RNN-14 is not implemented\n";
    assert_eq!(ran.out, format!("{reasons}1 passed (1 bit by bit), 0 failed, 1 unsupported\n"));

    let strict = onnxref(["test", "--strict", "-v", path(folder.path())]);
    assert_eq!(strict.code, Some(3));
    assert_eq!(strict.err, "error: --strict: 1 case unsupported\n");
    assert!(strict.out.starts_with(&format!("unsupported {}: RNN-14 is not implemented\n", path(&missing))));

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
