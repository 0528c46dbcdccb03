//! What the program writes, and what is left on the disk where it can't.

use crate::common::{Bench, Ran, bytes, check, data, gather, model, node, number, onnxref};
use onnxref::{DType, Tensor};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_onnxref");

/// A model whose output is a string of 64 KiB, so many times. In memory they share one text.
fn expanding(count: u64) -> Bench {
    let text = [number(2, 8), bytes(6, &[b'x'; 1 << 16]), bytes(8, b"x")].concat();
    let shape = [number(1, 1), number(2, 7), number(7, count), bytes(8, b"shape")].concat();
    let nodes = [node("Expand", &["x", "shape"], "y"), bytes(5, &text), bytes(5, &shape)].concat();
    Bench::new(&model(&nodes, &[], 13))
}

/// Runs the program in a shell, which limits it or redirects its output: `limits; exec "$0" "$@" redirection`.
#[cfg(unix)]
pub(crate) fn in_shell(limits: &str, redirection: &str, arguments: &[&str]) -> Ran {
    let script = format!("{limits} exec \"$0\" \"$@\" {redirection}");
    ran(Command::new("sh").args(["-c", &script, PROGRAM]).args(arguments).output().unwrap())
}

fn ran(output: Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn index(bench: &Bench, folder: &str) -> Value {
    serde_json::from_slice(&fs::read(bench.path(folder).join("index.json")).unwrap()).unwrap()
}

fn names(bench: &Bench, folder: &str) -> Vec<String> {
    let files = fs::read_dir(bench.path(folder)).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const RAISE: &str = "(--limit output_bytes=N raises it)";

#[test]
fn outputs_that_expand_are_bounded() {
    let bench = expanding(1 << 20);
    let few = ["--limit", "run_bytes=20M", "--limit", "output-bytes=1M"];
    // What is there before stays.
    fs::write(bench.path("y.json"), "old").unwrap();
    let path = bench.text("y.json");
    let ran = bench.run(&[&["-o", &path][..], &few].concat());
    check(ran, 4, "", &format!("error: {path}: more than 1048576 bytes would be written {RAISE}\n"));
    assert_eq!((bench.files(), fs::read(&path).unwrap()), (vec!["y.json".to_string()], b"old".to_vec()));

    let path = bench.text("y.pb");
    let why = "it takes more than 2147483647 bytes, which protobuf can't hold: write a .json file";
    check(bench.run(&["-o", &path]), 2, "", &format!("error: output \"y\" to {path}: {why}\n"));
    let path = bench.text("y.npz");
    let why = "as NumPy's strings, each with room for the longest, it takes more than 1073741824 bytes: write a .pb or .json file";
    check(bench.run(&["-o", &path]), 2, "", &format!("error: the outputs to {path}: \"y\": {why}\n"));
    assert_eq!(bench.files(), ["y.json"]);

    // What is on standard output stays there; the error has a line of its own.
    let ran = bench.run(&[&["--json"][..], &few].concat());
    let (first, error) = ran.out.split_once('\n').unwrap();
    assert!(ran.code == Some(4) && first.len() <= 1 << 20 && first.starts_with("{\"outputs\":{\"y\":"));
    let error: Value = serde_json::from_str(error).unwrap();
    let message = format!("standard output: more than 1048576 bytes would be written {RAISE}");
    assert_eq!((&error["error"]["kind"], &error["error"]["message"]), (&json!("limit"), &json!(message)));
    assert_eq!(error["error"]["causes"][0]["limit"], "output_bytes");
    assert_eq!(ran.err, format!("error: {message}\n"));

    let ran = bench.run(&["--limit", "bytes=1"]);
    assert!(ran.code == Some(2) && ran.err.ends_with("run_work, output_bytes\n"), "{ran:?}");
}

#[test]
fn the_time_of_a_run_is_that_of_writing_too() {
    let bench = expanding(1 << 20);
    let start = Instant::now();
    let path = bench.text("y.json");
    let ran = bench.run(&["-o", &path, "--timeout", "1"]);
    let why = "the time was up while it was written: --timeout gives it more time";
    check(ran, 4, "", &format!("error: {path}: {why}\n"));
    assert!(bench.files().is_empty());
    // What no format of a dump can hold is an error at once.
    let dump = bench.text("dump");
    let ran = bench.run(&["--dump", &dump]);
    let pb = "it takes more than 2147483647 bytes, which protobuf can't hold";
    check(ran, 4, "", &format!("note: 0 values were dumped\nerror: {dump}/00000-y.pb: {pb}\n"));
    let bench = expanding(30_000);
    let dump = bench.text("dump");
    let ran = bench.run(&["--dump", &dump, "--timeout", "0.5"]);
    check(ran, 4, "", &format!("note: 0 values were dumped\nerror: {dump}/00000-y.pb: {why}\n"));
    assert_eq!(names(&bench, "dump"), ["index.json"]);
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// Files of 64 MiB and more, written where the program can't have as much memory beside its own code.
#[test]
#[cfg(target_os = "linux")]
fn writing_takes_no_memory() {
    let bench = expanding(1 << 10);
    let model = bench.text("model.onnx");
    for (file, size) in [("y.pb", 1 << 26), ("y.json", 1 << 26), ("y.npz", 1 << 28)] {
        let path = bench.text(file);
        let limit = "ulimit -v $(($(stat -c %s \"$0\") / 1024 + 16384));";
        let ran = in_shell(limit, "", &["run", &model, "--threads", "1", "-o", &path]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{file}");
        assert!(fs::metadata(&path).unwrap().len() > size, "{file}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn entries_have_harmless_names() {
    let outputs = ["../../evil", "/abs/y", "\u{1b}[31m\0", "plain.1"];
    let nodes: Vec<u8> = outputs.iter().flat_map(|name| node("Neg", &["x"], name)).collect();
    let graph = [nodes, bytes(2, b"g"), bytes(11, &bytes(1, b"x"))].concat();
    let graph = outputs.iter().fold(graph, |graph, name| [graph, bytes(12, &bytes(1, name.as_bytes()))].concat());
    let bench = Bench::new(&[number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat());
    let (npz, dump) = (bench.text("y.npz"), bench.text("dump"));
    let ran = bench.run(&["-q", "-i", "[1.5]", "-o", &npz, "--dump", &dump]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let files = ["%2E.%2F..%2Fevil", "%2Fabs%2Fy", "%1B%5B31m%00", "plain.1"].map(|name| format!("{name}.npy"));
    let archive = fs::read(&npz).unwrap();
    let has = |name: &str| archive.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    assert!(files.iter().all(|file| has(file)) && !has("../") && !has("/abs") && !has("\u{1b}"));
    let dumped: Vec<String> = files.iter().enumerate().map(|(k, file)| format!("{k:05}-{file}")).collect();
    assert_eq!(names(&bench, "dump"), [&dumped[..], &["index.json".to_string()]].concat());
    // They read back under their own names.
    let ran = bench.run(&["-q", "-i", "[1.5]", "--expect", &npz, "--json"]);
    let expected = serde_json::from_str::<Value>(&ran.out).unwrap()["expected"].clone();
    assert_eq!((ran.code, expected.as_object().unwrap().len()), (Some(0), 4), "{}", ran.err);
    for folder in [&dump, &bench.text("files")] {
        let ran = onnxref(["compare", &bench.text("model.onnx"), folder, "-q", "-i", "[1.5]"]);
        assert!(
            ran.code == Some(0) && ran.out.starts_with("4 values with the same name: 4 equal bit by bit"),
            "{ran:?}"
        );
        // The same files without the list, under the names of their values.
        fs::create_dir_all(bench.path("files")).unwrap();
        for file in &files {
            let from = dumped.iter().find(|dumped| dumped.ends_with(file.as_str())).unwrap();
            fs::copy(bench.path("dump").join(from), bench.path("files").join(file)).unwrap();
        }
    }
}

/// `a = Neg(x)`, `y = Gather(a, indices)`.
fn failing() -> Bench {
    let nodes = [node("Neg", &["x"], "a"), node("Gather", &["a", "indices"], "y")].concat();
    Bench::new(&model(&nodes, &[("x", Some(DType::Float)), ("indices", Some(DType::Int64))], 13))
}

#[test]
fn the_dump_of_a_run_that_fails_says_why() {
    let bench = failing();
    let run =
        |folder: &str, more: &[&str]| bench.run(&[&["-i", "x=[1, 2]", "--dump", &bench.text(folder)], more].concat());
    let ran = run("failed", &["-i", "indices=[5]"]);
    let why = "node #1 (Gather-13): indices[0] = 5 is out of range for axis 0 of \"data\" (value \"a\"), which has 2 entries: allowed -2..=1";
    check(ran, 4, "", &format!("note: 1 value was dumped\nerror: {why}\n"));
    assert_eq!(names(&bench, "failed"), ["00000-a.npy", "index.json"]);
    let list = index(&bench, "failed");
    assert_eq!(
        (&list["complete"], &list["ended"], list["values"].as_array().unwrap().len()),
        (&json!(false), &json!(why), 1)
    );
    let ran =
        onnxref(["compare", &bench.text("model.onnx"), &bench.text("failed"), "-i", "x=[1, 2]", "-i", "indices=[1]"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.starts_with(&format!("note: {}: the dump is not complete: node #1", bench.text("failed"))),
        "{ran:?}"
    );

    assert_eq!(run("whole", &["-i", "indices=[1]"]).code, Some(0));
    assert_eq!((index(&bench, "whole")["complete"].as_bool(), index(&bench, "whole").get("ended")), (Some(true), None));
    assert_eq!(run("until", &["-i", "indices=[1]", "--until", "a"]).code, Some(0));
    assert_eq!(
        (&index(&bench, "until")["complete"], &index(&bench, "until")["ended"]),
        (&json!(false), &json!("it was stopped by --until"))
    );
    assert_eq!(names(&bench, "until"), ["00000-a.npy", "index.json"]);
    // The second value is too much, or its place in the list.
    for (limit, place) in [(300, "00001-y.npy"), (450, "index.json")] {
        let folder = format!("limit {limit}");
        let ran = run(&folder, &["-i", "indices=[1]", "--limit", &format!("output_bytes={limit}")]);
        let why = format!("{}/{place}: more than {limit} bytes would be written", bench.text(&folder));
        check(ran, 4, "", &format!("note: 1 value was dumped\nerror: {why} {RAISE}\n"));
        assert_eq!(names(&bench, &folder), ["00000-a.npy", "index.json"]);
        assert_eq!(index(&bench, &folder)["ended"], why);
    }
    let again = run("whole", &["-i", "indices=[1]"]);
    check(again, 2, "", &format!("error: --dump {}: it has a dump already: index.json\n", bench.text("whole")));
}

/// A run that takes minutes, with small values first.
#[cfg(unix)]
fn long() -> Bench {
    let shape: Vec<u8> = [2000u64, 2000].iter().flat_map(|dim| bytes(1, &number(1, *dim))).collect();
    let tensor = [number(1, 1), bytes(2, &shape)].concat();
    let input = bytes(11, &[bytes(1, b"v0"), bytes(2, &bytes(1, &tensor))].concat());
    let names: Vec<String> = (0..200).map(|k| format!("v{k}")).collect();
    let nodes: Vec<u8> = (1..200).flat_map(|k| node("MatMul", &[&names[k - 1], "v0"], &names[k])).collect();
    let graph = [node("Shape", &["v0"], "s"), nodes, bytes(2, b"g"), input, bytes(12, &bytes(1, b"v199"))].concat();
    Bench::new(&[number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat())
}

/// However the program ends, the list in the folder is complete, and so are its files.
#[test]
#[cfg(unix)]
fn the_dump_of_a_run_that_is_ended_is_readable() {
    use std::os::unix::process::ExitStatusExt;
    let bench = long();
    for (signal, ended) in [("INT", 130), ("KILL", 9)] {
        let folder = bench.text(signal);
        let mut program = Command::new(PROGRAM);
        program.args(["run", &bench.text("model.onnx"), "--random", "-q", "--dump", &folder]);
        let mut child = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while !bench.path(signal).join("00000-s.npy").exists() {
            assert!(start.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(200));
        assert!(
            Command::new("kill").args([&format!("-{}", signal), &child.id().to_string()]).status().unwrap().success()
        );
        let status = child.wait().unwrap();
        assert_eq!(status.code().or(status.signal()), Some(ended));
        let list = index(&bench, signal);
        assert_eq!((&list["complete"], &list["ended"]), (&json!(false), &json!("it was interrupted")));
        for value in list["values"].as_array().unwrap() {
            let file = fs::read(bench.path(signal).join(value["file"].as_str().unwrap())).unwrap();
            let elements: usize =
                value["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap() as usize).product();
            assert_eq!(file.len(), 128 + elements * if value["type"] == "int64" { 8 } else { 4 });
        }
        if signal == "INT" {
            assert!(!names(&bench, signal).iter().any(|name| name.starts_with(".onnxref-")));
        }
    }
}

/// An interruption ends the writing of a large file at once, and leaves nothing of it.
#[test]
#[cfg(unix)]
fn an_interruption_while_a_file_is_written() {
    let bench = expanding(1 << 20);
    for signal in ["INT", "TERM"] {
        let mut program = Command::new(PROGRAM);
        program.args(["run", &bench.text("model.onnx"), "-o", &bench.text("y.json")]);
        let mut child = program.stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        let is_large = |name: &String| fs::metadata(bench.path(name)).is_ok_and(|file| file.len() > 1 << 22);
        while !bench.files().iter().any(is_large) {
            assert!(start.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap().success()
        );
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(bench.files(), Vec::<String>::new());
    }
}

/// `ulimit -f` sends a signal that would end the program.
#[test]
#[cfg(unix)]
fn a_file_may_be_too_large_for_the_system() {
    let nodes = [node("Shape", &["x"], "s"), node("Neg", &["x"], "y")].concat();
    let bench = Bench::new(&model(&nodes, &[("x", Some(DType::Float))], 13));
    let (model, x) = (bench.text("model.onnx"), bench.text("x.npy"));
    let tensor = Tensor::from(vec![1f32; 10_000]);
    fs::write(bench.path("x.pb"), tensor.to_proto_bytes("x")).unwrap();
    let x_pb = bench.text("x.pb");
    // In blocks of 512 or 1024 bytes.
    let ran = in_shell("ulimit -f 8;", "", &["run", &model, "-i", &x_pb, "-o", &x]);
    check(ran, 4, "", &format!("error: {x}: File too large (os error 27)\n"));
    assert_eq!(bench.files(), ["x.pb"]);
    let folder = bench.text("dump");
    let ran = in_shell("ulimit -f 8;", "", &["run", &model, "-i", &x_pb, "--dump", &folder]);
    let why = format!("{folder}/00001-y.npy: File too large (os error 27)");
    check(ran, 4, "", &format!("note: 1 value was dumped\nerror: {why}\n"));
    assert_eq!(names(&bench, "dump"), ["00000-s.npy", "index.json"]);
    assert_eq!(index(&bench, "dump")["ended"], why);
    // Not even the list of values.
    let folder = bench.text("none");
    let ran = in_shell("ulimit -f 0;", "", &["run", &model, "-i", &x_pb, "--dump", &folder]);
    check(ran, 4, "", &format!("error: {folder}/index.json: File too large (os error 27)\n"));
    assert_eq!(names(&bench, "none"), [""; 0]);
}

#[test]
#[cfg(target_os = "linux")]
fn standard_output_may_be_full_or_closed() {
    let bench = Bench::new(&gather(DType::Float));
    let model = bench.text("model.onnx");
    let run = ["run", &model, "-i", "data=[1, 2]", "-i", "indices=[0]"];
    let npy = [&run[..], &["-o", "-"]].concat();
    let json = [&run[..], &["--json"]].concat();
    for arguments in
        [&run[..], &npy, &json, &["--version"], &["run", "--help"], &["ops"], &["man"], &["completions", "fish"]]
    {
        for (redirection, why) in [(">&-", "it is closed"), ("> /dev/full", "No space left on device (os error 28)")] {
            let ran = in_shell("", redirection, arguments);
            assert_eq!(ran.code, Some(4), "{arguments:?} {redirection}: {ran:?}");
            assert!(
                ran.err.ends_with(&format!("error: standard output: {why}\n")),
                "{arguments:?} {redirection}: {ran:?}"
            );
        }
        assert_eq!(in_shell("", "> /dev/null", arguments).code, Some(0), "{arguments:?}");
    }
    // Nothing goes there, and files aren't written if not all can be.
    let file = bench.text("y.npy");
    let ran = in_shell("", ">&-", &[&run[..], &["-o", &file]].concat());
    assert_eq!((ran.code, bench.files()), (Some(0), vec!["y.npy".to_string()]));
    fs::remove_file(&file).unwrap();
    let ran = in_shell("", "> /dev/full", &[&npy[..], &["-o", &file]].concat());
    assert_eq!((ran.code, bench.files()), (Some(4), vec![]));
}

/// What nobody reads any more isn't made.
#[test]
#[cfg(unix)]
fn a_reader_that_has_enough_ends_a_large_document() {
    let bench = expanding(1 << 20);
    let start = Instant::now();
    let mut program = Command::new(PROGRAM);
    program.args(["run", &bench.text("model.onnx"), "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut some = [0; 20];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut some).unwrap();
    assert_eq!(&some, b"{\"outputs\":{\"y\":{\"dt");
    drop(child.stdout.take());
    let ran = ran(child.wait_with_output().unwrap());
    check(ran, 0, "", "");
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// A size of stacks that the system has no room for, so that no thread can be created.
#[cfg(target_os = "linux")]
fn without_threads(arguments: &[&str]) -> Ran {
    let size = (usize::MAX / 4 * 3).to_string();
    ran(Command::new(PROGRAM).args(arguments).env("RUST_MIN_STACK", size).output().unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn no_thread_can_be_created() {
    let nodes = [node("Exp", &["x"], "e"), node("MatMul", &["e", "e"], "y")].concat();
    let shape: Vec<u8> = [300u64, 300].iter().flat_map(|dim| bytes(1, &number(1, *dim))).collect();
    let tensor = bytes(2, &bytes(1, &[number(1, 1), bytes(2, &shape)].concat()));
    let graph =
        [nodes, bytes(2, b"g"), bytes(11, &[bytes(1, b"x"), tensor].concat()), bytes(12, &bytes(1, b"y"))].concat();
    let bench = Bench::new(&[number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat());
    let model = bench.text("model.onnx");
    let run = ["run", &model, "--random", "--timeout", "60"];
    let alone = without_threads(&run);
    assert_eq!((alone.code, alone.err.as_str()), (Some(0), ""));
    assert_eq!(alone.out, onnxref(run).out);
    let cases = data("gather/onnx-1.12.0");
    let ran = without_threads(&["test", cases.to_str().unwrap(), "-j", "3"]);
    assert!(ran.code == Some(0) && ran.last().ends_with(" passed (10 bit by bit), 0 failed, 0 unsupported"), "{ran:?}");
    let ran = without_threads(&["bench", &model, "--random", "--runs", "2", "--warmup", "1", "--profile"]);
    assert!(ran.code == Some(0) && ran.err.is_empty() && ran.out.contains("\nthreads     1\n"), "{ran:?}");
    let ran = without_threads(&["compare", &model, "--random"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

/// There is no thread that handles an interruption, which ends the program nevertheless.
#[test]
#[cfg(target_os = "linux")]
fn an_interruption_without_threads() {
    use std::os::unix::process::ExitStatusExt;
    let bench = long();
    let mut program = Command::new(PROGRAM);
    program
        .args(["run", &bench.text("model.onnx"), "--random"])
        .env("RUST_MIN_STACK", (usize::MAX / 4 * 3).to_string());
    let mut child = program.stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "the run is too short to interrupt it");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}
