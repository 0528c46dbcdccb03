//! A program in C that is linked to the library.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::proto::{GraphProto, ModelProto};
use common::{node, value};
use onnxref::{DType, Dim, Tensor};
use prost::Message;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, as cargo makes it for this test.
fn library() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    folder.join(format!("{}onnxref_capi{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
}

/// Compiles for the system that the test runs on; `None` if the compiler can't.
fn compiled(folder: &Path) -> Option<PathBuf> {
    let width = if cfg!(all(target_pointer_width = "32", target_arch = "x86")) { &["-m32"][..] } else { &[] };
    let empty = folder.join("empty.c");
    std::fs::write(&empty, "#include <stdio.h>\nint main(void) { return 0; }\n").unwrap();
    let can = Command::new("cc").args(width).arg(&empty).arg("-o").arg(folder.join("empty")).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let program = folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/main.c");
    let made = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror"])
        .args(width)
        .arg(source)
        .arg(format!("-L{}", folder.display()))
        .args(["-lonnxruntime", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(program)
}

/// `y = x + 1`, for x of any number of rows.
fn model() -> Vec<u8> {
    let graph = GraphProto {
        name: Some("graph".into()),
        node: vec![node("Add", &["x", "one"], &["y"], vec![])],
        initializer: vec![common::initializer("one", &Tensor::scalar(1f32))],
        input: vec![value("x", DType::Float, Some(&[Dim::Symbol("rows".into()), Dim::Fixed(2)]))],
        output: vec![value("y", DType::Float, None)],
        ..Default::default()
    };
    let mut model = ModelProto::decode(&*common::model(21, 10, graph)).unwrap();
    model.producer_name = Some("a test".into());
    model.encode_to_vec()
}

/// Copies a tensor of each element type that the API has after INT4.
fn later() -> Vec<u8> {
    let types = [(23, DType::Float4e2m1), (24, DType::Uint2), (25, DType::Int2), (26, DType::Float8e8m0)];
    let of = |prefix: &str, (number, dtype)| value(&format!("{prefix}{number}"), dtype, Some(&[Dim::Fixed(3)]));
    let copy = |(number, _)| node("Identity", &[&format!("x{number}")], &[&format!("y{number}")], vec![]);
    let graph = GraphProto {
        name: Some("graph".into()),
        node: types.map(copy).to_vec(),
        input: types.map(|each| of("x", each)).to_vec(),
        output: types.map(|each| of("y", each)).to_vec(),
        ..Default::default()
    };
    common::model(25, 13, graph)
}

#[test]
fn a_program_in_c() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let name = format!("{}onnxruntime{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    std::os::unix::fs::symlink(library(), path.join(name)).unwrap();
    let Some(program) = compiled(path) else {
        println!("not tested: cc doesn't compile for this system");
        return;
    };
    std::fs::write(path.join("model.onnx"), model()).unwrap();
    std::fs::write(path.join("later.onnx"), later()).unwrap();
    let variable = if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    let ran = Command::new(program)
        .args(["model.onnx", &onnxref_capi::VERSION.to_string()])
        .current_dir(path)
        .env(variable, path)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    let wanted = "\
newer: 0
error 3: model \"nowhere.onnx\": No such file or directory (os error 2)
error 7: the file is not an ONNX model, or is cut short: at byte 0: wire type 6, which doesn't exist
error 9: SetOptimizedModelFilePath: onnxref doesn't implement it
error 2: CreateSession: the argument path is null
inputs 1, outputs 1
x to y: type 1, -1 (rows) x 2
error 2: CreateTensorWithDataAsOrtValue: a tensor of float32 of shape [3, 2] takes 24 bytes, not 4
error 9: CreateTensorWithDataAsOrtValue: 99 is not an element type of version 28 of the API
error 2: input \"nothing\" is not an input of the model, which takes \"x\"
error 2: Run: there is no output \"nothing\": the outputs are \"y\"
tensor 1: 2 3 4 5 6 7, then 11
made by a test
no such key: 1
type 23: 21 03
type 24: 1b
type 25: 1b
type 26: 01 7f ff
";
    assert_eq!(String::from_utf8_lossy(&ran.stdout), wanted);
    assert_eq!(ran.status.code(), Some(0));
}
