//! What is written where a link, a pipe or a file is already.

use crate::common::{Bench, Ran, check, gather, onnxref};
use onnxref::{DType, Tensor};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

const FEEDS: [&str; 4] = ["-i", "data=[5, 6]", "-i", "indices=1"];

fn write(bench: &Bench, files: &[&str]) -> Ran {
    let files: Vec<String> = files.iter().map(|file| format!("y={}", bench.text(file))).collect();
    let files = files.iter().flat_map(|file| ["-o", file]);
    bench.run(&files.chain(FEEDS).collect::<Vec<_>>())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn pb() -> Vec<u8> {
    Tensor::scalar(6i32).to_proto_bytes("y")
}

#[test]
fn links_lead_to_what_is_written() {
    let bench = Bench::new(&gather(DType::Int32));
    fs::create_dir(bench.path("folder")).unwrap();
    fs::write(bench.path("folder/y.pb"), "old").unwrap();
    symlink("folder/y.pb", bench.path("y.pb")).unwrap();
    symlink("y.pb", bench.path("second.pb")).unwrap();
    symlink("folder/new.pb", bench.path("new.pb")).unwrap();
    check(write(&bench, &["second.pb"]), 0, "", "");
    check(write(&bench, &["new.pb"]), 0, "", "");
    assert_eq!(fs::read_link(bench.path("second.pb")).unwrap(), Path::new("y.pb"));
    assert_eq!(fs::read_link(bench.path("y.pb")).unwrap(), Path::new("folder/y.pb"));
    assert_eq!(fs::read_link(bench.path("new.pb")).unwrap(), Path::new("folder/new.pb"));
    assert_eq!(["folder/y.pb", "folder/new.pb"].map(|name| fs::read(bench.path(name)).unwrap()), [pb(), pb()]);
    let names: Vec<_> = fs::read_dir(bench.path("folder")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    // One that leads to itself, or to a folder that isn't there.
    symlink("round.pb", bench.path("round.pb")).unwrap();
    symlink("no/y.pb", bench.path("no.pb")).unwrap();
    for name in ["round.pb", "no.pb"] {
        let ran = write(&bench, &[name]);
        let why = format!("error: -o y={}: the file can't be written: ", bench.text(name));
        assert!(ran.code == Some(2) && ran.err.starts_with(&why), "{ran:?}");
    }
}

#[test]
fn the_mode_of_a_file_is_kept() {
    let bench = Bench::new(&gather(DType::Int32));
    let model = bench.text("model.onnx");
    for mode_of in [0o600, 0o666, 0o640] {
        for name in ["y.pb", "out.onnx"] {
            fs::write(bench.path(name), "old").unwrap();
            fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode_of)).unwrap();
        }
        check(write(&bench, &["y.pb"]), 0, "", "");
        let out = bench.text("out.onnx");
        let ran = onnxref(["set", &model, "--metadata", "a=b", "--no-prove", "-o", &out]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(["y.pb", "out.onnx"].map(|name| mode(&bench.path(name))), [mode_of, mode_of]);
        assert_eq!(fs::read(bench.path("y.pb")).unwrap(), pb());
    }
}

#[test]
fn pipes_are_written_to() {
    let bench = Bench::new(&gather(DType::Int32));
    let read = |name: &str| {
        assert!(Command::new("mkfifo").arg(bench.path(name)).status().unwrap().success());
        let path = bench.path(name);
        std::thread::spawn(move || fs::read(path).unwrap())
    };
    let reading = read("y.pb");
    check(write(&bench, &["y.pb"]), 0, "", "");
    assert_eq!(reading.join().unwrap(), pb());
    // An archive whose sizes stand behind its entries.
    let reading = read("y.npz");
    check(bench.run(&[&["-o", &bench.text("y.npz")][..], &FEEDS].concat()), 0, "", "");
    fs::write(bench.path("read.npz"), reading.join().unwrap()).unwrap();
    let ran = bench.run(&[&["-q", "--expect", &bench.text("read.npz")][..], &FEEDS].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let reading = read("out.onnx");
    let ran =
        onnxref(["set", &bench.text("model.onnx"), "--metadata", "a=b", "--no-prove", "-o", &bench.text("out.onnx")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!reading.join().unwrap().is_empty());
    assert_eq!(bench.files(), ["out.onnx", "read.npz", "y.npz", "y.pb"]);
    // Standard output by its name.
    let svg = |to: &str| onnxref(["inspect", &bench.text("model.onnx"), "--svg", to]);
    assert_eq!(svg("/dev/stdout").out, svg("-").out);
}

#[test]
fn two_paths_lead_to_one_file() {
    let bench = Bench::new(&gather(DType::Int32));
    symlink("y.pb", bench.path("link.pb")).unwrap();
    symlink(".", bench.path("folder")).unwrap();
    for other in ["./y.pb", "link.pb", "folder/y.pb"] {
        let ran = write(&bench, &["y.pb", other]);
        check(ran, 2, "", &format!("error: two outputs go to {}\n", bench.text(other)));
    }
    check(write(&bench, &["y.pb", "z.pb"]), 0, "", "");
}
