//! What is there stays: behind links, under names that are not text, and where the same command reads or writes.

use crate::common::{Bench, check, data, gather, onnxref};
use crate::edit_files::external;
use crate::writing::in_shell;
use onnxref::{DType, Model};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Loading follows no links to data, so none is written there.
#[test]
fn data_goes_behind_no_link() {
    let bench = external();
    fs::create_dir(bench.path("o")).unwrap();
    fs::create_dir(bench.path("elsewhere")).unwrap();
    fs::write(bench.path("outside.txt"), "mine").unwrap();
    symlink("../outside.txt", bench.path("o/b.onnx.data")).unwrap();
    symlink("../elsewhere", bench.path("o/sub")).unwrap();
    symlink("../nowhere", bench.path("o/dangling")).unwrap();
    let (model, to) = (bench.text("model.onnx"), bench.text("o/b.onnx"));
    let external = |name| ["--external", name, "--external-threshold", "1"];
    for (flags, name) in [
        (&["--metadata", "k=v"][..], "b.onnx.data"),
        (&external("b.onnx.data"), "b.onnx.data"),
        (&external("sub/x.bin"), "sub/x.bin"),
        (&external("./dangling"), "./dangling"),
    ] {
        let ran = onnxref([&["set", &model, "-o", &to, "-q"], flags].concat());
        let place = bench.text("o") + "/" + name;
        let why = "a link is in the way, and links to data are not followed";
        check(ran, 2, "", &format!("error: external data can't be written to \"{place}\": {why}\n"));
    }
    assert_eq!(names(&bench.path("o")), ["b.onnx.data", "dangling", "sub"]);
    assert_eq!(names(&bench.path("elsewhere")), [""; 0]);
    assert_eq!(fs::read_to_string(bench.path("outside.txt")).unwrap(), "mine");
    // The model's own path may have links.
    let linked = bench.text("o/sub/b.onnx");
    assert_eq!(onnxref(["set", &model, "--metadata", "k=v", "-o", &linked]).code, Some(0));
    assert_eq!(names(&bench.path("elsewhere")), ["b.onnx", "b.onnx.data"]);
    assert!(Model::load(linked).is_ok());
}

/// Names of files are bytes, which needn't be text.
#[test]
#[cfg(target_os = "linux")]
fn names_are_not_always_text() {
    let bench = Bench::new(&gather(DType::Int32));
    let model = bench.path("model.onnx").into_os_string();
    let out = bench.path("out");
    let named = |ending: &str| out.join(OsStr::from_bytes(&[b"b\xff.", ending.as_bytes()].concat()));
    let written = |verb: &str, before: &[&OsStr], flags: &[&str], ending: &str| {
        fs::create_dir(&out).unwrap();
        let mut arguments = vec![OsStr::new(verb)];
        arguments.extend(before);
        arguments.extend(flags.iter().map(OsStr::new));
        let to = named(ending);
        let ran = onnxref([&arguments[..], &[to.as_os_str()]].concat());
        assert!(ran.code == Some(0), "{ran:?}");
        assert_eq!(names(&out), [to.file_name().unwrap()], "{verb}");
        fs::remove_dir_all(&out).unwrap();
    };
    let model = [&*model];
    written("set", &model, &["--metadata", "a=b", "--no-prove", "-o"], "onnx");
    written("simplify", &model, &["--no-prove", "-o"], "onnx");
    written("extract", &model, &["--no-prove", "--outputs", "y", "-o"], "onnx");
    written("convert", &model, &["--no-prove", "--opset", "18", "-o"], "onnx");
    written("inspect", &model, &["--svg"], "svg");
    written("inspect", &model, &["--dot"], "dot");
    written("diff", &[model[0], model[0]], &["--svg"], "svg");
    written("test", &[data("gather/onnx-1.12.0").as_os_str()], &["-q", "--junit"], "xml");
}

#[test]
fn a_full_disk_fails_the_run() {
    let bench = Bench::new(&gather(DType::Int32));
    // In blocks of 512 or 1024 bytes: some pages are larger.
    fs::create_dir(bench.path("man")).unwrap();
    let ran = in_shell("ulimit -f 4;", "", &["man", &bench.text("man")]);
    let (start, end) = (format!("error: {}/onnxref", bench.text("man")), ".1: File too large (os error 27)\n");
    assert!(ran.code == Some(4) && ran.err.starts_with(&start) && ran.err.ends_with(end), "{ran:?}");
    assert_eq!(names(&bench.path("man")), [""; 0]);
    // Temporary files, and the list of what was tried.
    let (model, work) = (bench.text("model.onnx"), bench.text("work"));
    let reduce = ["reduce", &model, "-o", &bench.text("y.onnx"), "--work", &work, "-q", "--", "false", "{model}"];
    let ran = in_shell("ulimit -f 0;", "", &reduce);
    assert!(ran.code == Some(4) && ran.err.ends_with(": File too large (os error 27)\n"), "{ran:?}");
    fs::write(bench.path("work/tried.jsonl"), "{}\n".repeat(10_000)).unwrap();
    let ran = in_shell("ulimit -f 8;", "", &reduce);
    check(ran, 4, "", &format!("error: {work}/tried.jsonl: File too large (os error 27)\n"));
}

/// A folder appears where a link leads.
#[test]
fn folders_behind_links() {
    let bench = Bench::new(&gather(DType::Int32));
    fs::create_dir(bench.path("empty")).unwrap();
    symlink("empty", bench.path("link")).unwrap();
    symlink("new", bench.path("dangling")).unwrap();
    let generate = ["-q", "--operator", "Abs", "--opset", "13", "--per-version", "1"];
    for (link, folder) in [("link", "empty"), ("dangling", "new")] {
        let ran = onnxref([&["generate", "-o", &bench.text(link)], &generate[..]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(bench.path(folder).join("manifest.json").is_file(), "{folder}");
        assert_eq!(fs::read_link(bench.path(link)).unwrap(), Path::new(folder));
    }
    assert_eq!(bench.files(), ["dangling", "empty", "link", "new"]);
}

#[test]
fn the_current_folder_stays() {
    let bench = Bench::new(&gather(DType::Int32));
    fs::create_dir(bench.path("in")).unwrap();
    let inside = format!("cd '{}';", bench.text("in"));
    for to in ["../in", "."] {
        let ran = in_shell(&inside, "", &["generate", "--operator", "Abs", "--opset", "13", "-o", to]);
        check(ran, 2, "", &format!("error: -o {to}: it is the current folder: name another one\n"));
    }
    assert_eq!(bench.files(), ["in"]);
}

#[test]
fn each_output_has_its_own_place() {
    let bench = external();
    fs::create_dir(bench.path("empty")).unwrap();
    symlink("x.npz", bench.path("link.npz")).unwrap();
    for (one, other, text) in [
        (["--dump", "d"], ["--record", "d"], "--dump and --record both go to"),
        (["--dump", "d/sub"], ["--record", "d"], "--dump and --record both go to"),
        (["-o", "empty/y.npz"], ["--record", "empty"], "-o and --record both go to"),
        (["-o", "x.npz"], ["--save-inputs", "x.npz"], "-o and --save-inputs both go to"),
        (["-o", "x.npz"], ["--save-inputs", "link.npz"], "-o and --save-inputs both go to"),
    ] {
        let ran = bench.run(&[one[0], &bench.text(one[1]), other[0], &bench.text(other[1]), "--random", "-q"]);
        check(ran, 2, "", &format!("error: {text} {}\n", bench.text(other[1])));
    }
    assert_eq!(bench.files(), ["empty", "link.npz", "w.bin"]);
    let apart = ["--dump", &bench.text("d"), "--record", &bench.text("r"), "-o", &bench.text("d/y.npz")];
    fs::create_dir(bench.path("d")).unwrap();
    assert_eq!(bench.run(&[&apart[..], &["--random", "-q"]].concat()).code, Some(0));
}

#[test]
fn what_is_read_stays() {
    let bench = Bench::new(&gather(DType::Int32));
    let (model, link) = (bench.text("model.onnx"), bench.text("link.onnx"));
    let archive = bench.text("cases.zip");
    fs::copy(&model, bench.path("other.onnx")).unwrap();
    fs::write(&archive, "old").unwrap();
    symlink("model.onnx", &link).unwrap();
    let other = bench.text("other.onnx");
    for (arguments, flag, file) in [
        (&["inspect", &model, "--svg", &model][..], "--svg", &model),
        (&["inspect", &model, "--dot", &link], "--dot", &link),
        (&["inspect", &link, "--svg", &model], "--svg", &model),
        (&["diff", &other, &model, "--svg", &model], "--svg", &model),
        (&["bench", &model, "--random", "--save", &model], "--save", &model),
        (&["bench", &model, "--random", "--save-inputs", &archive, "--trace", &archive], "--trace", &archive),
        (&["test", &archive, "--junit", &archive], "--junit", &archive),
        (&["reduce", &model, "-o", &model, "--", "false", "{model}"], "-o", &model),
    ] {
        let why = "it would replace a file that the command reads or writes: name another one";
        check(onnxref(arguments), 2, "", &format!("error: {flag} {file}: {why}\n"));
    }
    assert_eq!(fs::read(&model).unwrap(), gather(DType::Int32));
    assert_eq!(fs::read_to_string(&archive).unwrap(), "old");
    // A change may take the place of its model.
    assert_eq!(onnxref(["set", &model, "--metadata", "a=b", "--no-prove", "-o", &link]).code, Some(0));
    assert_ne!(fs::read(&model).unwrap(), gather(DType::Int32));
}
