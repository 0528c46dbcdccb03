//! Values on their way into `onnxref run` and out of it.

use crate::common::{Bench, bytes, gather, node, number, onnxref, png};
use onnxref::DType;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// `y = Identity(x)`, for a type and a shape.
fn same(dtype: u64, dims: &[u64]) -> Vec<u8> {
    let shape: Vec<u8> = dims.iter().flat_map(|dim| bytes(1, &number(1, *dim))).collect();
    let tensor = bytes(2, &bytes(1, &[number(1, dtype), bytes(2, &shape)].concat()));
    let graph =
        [node("Identity", &["x"], "y"), bytes(11, &[bytes(1, b"x"), tensor].concat()), bytes(12, &bytes(1, b"y"))];
    [number(1, 8), bytes(7, &graph.concat()), bytes(8, &number(2, 13))].concat()
}

/// Runs the program with these bytes on standard input.
fn fed(arguments: &[&str], input: &[u8]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_onnxref"));
    let program = program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn inputs_by_position_and_from_archives() {
    let bench = Bench::new(&gather(DType::Float));
    let want = "y       float32  [2]    [30, 10]";
    assert_eq!(bench.run(&["-i", "0=[10, 20, 30]", "-i", "1=[2, 0]"]).last(), want);
    let (npz, json) = (bench.text("in.npz"), bench.text("indices.json"));
    assert_eq!(bench.run(&["-i", "data=[10, 20, 30]", "-i", "indices=[2, 0]", "-o", &npz]).code, Some(0));
    fs::write(&json, r#"{"dtype": "int64", "shape": [2], "values": [2, 0]}"#).unwrap();
    let ran = bench.run(&["-i", "data=[10, 20, 30]", "-i", &format!("indices={json}")]);
    assert_eq!(ran.last(), want, "{ran:?}");
    // The output is called y, and no input is.
    let other = bench.run(&["--inputs", &npz, "-i", "indices=[0]"]);
    assert_eq!(other.code, Some(2));
    assert!(other.err.contains("input \"y\" is not an input of the model"), "{other:?}");
}

#[test]
fn standard_input_and_output() {
    let bench = Bench::new(&same(1, &[2]));
    let path = bench.text("model.onnx");
    let first = onnxref::Tensor::from(vec![1.5f32, -2.0]).to_proto_bytes("x");
    let npy = fed(&["run", &path, "-i", "-", "-o", "-"], &first);
    assert_eq!(npy.status.code(), Some(0), "{npy:?}");
    assert!(npy.stdout.starts_with(b"\x93NUMPY"));
    for input in [&npy.stdout[..], b"[1.5, -2]", br#"{"dtype": "float32", "shape": [2], "values": [1.5, -2]}"#] {
        let ran = fed(&["run", &path, "-i", "x=-"], input);
        let out = String::from_utf8(ran.stdout).unwrap();
        assert!(out.ends_with("y       float32  [2]    [1.5, -2]\n"), "{out}");
    }
    // The model itself.
    let ran = fed(&["run", "-", "-i", "[3, 4]", "--json"], &same(1, &[2]));
    assert_eq!(
        String::from_utf8(ran.stdout).unwrap(),
        "{\"outputs\":{\"y\":{\"dtype\":\"float32\",\"shape\":[2],\"values\":[3.0,4.0]}}}\n"
    );
}

/// JSON that is written of small floats is read again, as an input and as what is expected.
#[test]
fn small_floats_through_json() {
    for dtype in DType::all().filter(|dtype| dtype.name().contains("float8") || dtype.name() == "float4e2m1") {
        let (name, count) = (dtype.name(), 1usize << dtype.bits());
        let text = format!(
            r#"<ir_version: 12, opset_import: ["" : 25]> g ({name}[{count}] x) => ({name}[{count}] y) {{ y = Identity (x) }}"#
        );
        let bench = Bench::new(&onnxref::document::Document::from_text(&text).unwrap().to_bytes().unwrap());
        let codes = (0..count).map(|code| code as u8).collect::<Vec<_>>();
        let tensor = onnxref::Tensor::new(dtype, &[count], codes).unwrap();
        fs::write(bench.path("x.pb"), tensor.to_proto_bytes("x")).unwrap();
        let (pb, json) = (bench.text("x.pb"), bench.text("y.json"));
        let ran = bench.run(&["-i", &pb, "-o", &json]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let ran = bench.run(&["-i", &json, "--expect", &format!("y={json}")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn pictures_become_tensors() {
    // Two pixels beside each other: red and (0, 51, 255).
    let colors = png(2, 3, &[255, 0, 0, 0, 51, 255]);
    let transparent = png(2, 4, &[255, 0, 0, 51, 0, 51, 255, 0]);
    let gray = png(2, 1, &[51, 255]);
    for (picture, dtype, dims, flags, want) in [
        (&colors, 1, [1, 3, 1, 2], &[][..], "[[[[1, 0]], [[0, 0.2]], [[0, 1]]]]"),
        (&colors, 1, [1, 1, 2, 3], &["--layout", "nhwc"], "[[[[1, 0, 0], [0, 0.2, 1]]]]"),
        (&colors, 2, [1, 3, 1, 2], &[], "[[[[255, 0]], [[0, 51]], [[0, 255]]]]"),
        (&colors, 2, [1, 1, 1, 2], &[], "[[[[76, 59]]]]"),
        (&gray, 2, [1, 1, 1, 2], &[], "[[[[51, 255]]]]"),
        (&gray, 2, [1, 4, 1, 2], &[], "[[[[51, 255]], [[51, 255]], [[51, 255]], [[255, 255]]]]"),
        (&transparent, 2, [1, 3, 1, 2], &[], "[[[[255, 0]], [[0, 51]], [[0, 255]]]]"),
        (&transparent, 2, [1, 1, 2, 4], &["--layout", "nhwc"], "[[[[255, 0, 0, 51], [0, 51, 255, 0]]]]"),
        (&transparent, 2, [1, 4, 1, 1], &["--resize", "1x1"], "[[[[128]], [[26]], [[128]], [[26]]]]"),
        (
            &colors,
            1,
            [1, 3, 1, 2],
            &["--mean", "0.5", "--std", "0.5,1,0.25"],
            "[[[[1, -1]], [[-0.5, -0.3]], [[-2, 2]]]]",
        ),
    ] {
        let bench = Bench::new(&same(dtype, &dims));
        fs::write(bench.path("p.png"), picture).unwrap();
        let ran = bench.run(&[&["-i", &bench.text("p.png")], flags].concat());
        assert!(ran.code == Some(0) && ran.last().ends_with(want), "{want}: {ran:?}");
    }
}

#[test]
fn random_values_are_those_of_the_seed() {
    // x: float32 [n, 2]
    let shape = [bytes(1, &bytes(2, b"n")), bytes(1, &number(1, 2))].concat();
    let tensor = bytes(2, &bytes(1, &[number(1, 1), bytes(2, &shape)].concat()));
    let graph =
        [node("Identity", &["x"], "y"), bytes(11, &[bytes(1, b"x"), tensor].concat()), bytes(12, &bytes(1, b"y"))];
    let bench = Bench::new(&[number(1, 8), bytes(7, &graph.concat()), bytes(8, &number(2, 13))].concat());
    let run = |more: &[&str]| bench.run(&[&["--random", "--set", "n=3"], more].concat());
    let first = run(&[]);
    assert_eq!((first.code, first.err.as_str()), (Some(0), ""));
    assert!(first.last().starts_with("y       float32  [3, 2]  [["), "{first:?}");
    assert_eq!(run(&["--seed", "0", "--threads", "1"]).out, first.out);
    assert_ne!(run(&["--seed", "1"]).out, first.out);
    // Without a size it is 1, and that is said.
    let one = bench.run(&["--random"]);
    assert_eq!(one.err, "note: dimension 0 of input \"x\" is 1: --set n=SIZE changes it\n");
    assert!(one.last().starts_with("y       float32  [1, 2]"), "{one:?}");
    assert_eq!(bench.run(&["--seed", "1"]).code, Some(2));
}

/// What a terminal shows: colours, which a pipe and `NO_COLOR` don't get.
#[test]
#[cfg(target_os = "linux")]
fn a_terminal_and_a_pipe() {
    let program = env!("CARGO_BIN_EXE_onnxref");
    let on_terminal = |color: bool| {
        let mut script = Command::new("script");
        script.args(["-qec", &format!("{program} run no/such.onnx"), "/dev/null"]).env_remove("NO_COLOR");
        script.env("TERM", "xterm");
        if !color {
            script.env("NO_COLOR", "1");
        }
        script.stdin(Stdio::null()).output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // Without the program `script` there is no terminal.
    let Ok(colored) = on_terminal(true) else { return };
    assert!(colored.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no/such.onnx"), "{colored:?}");
    assert!(on_terminal(false).unwrap().starts_with("error: no/such.onnx"));
    assert!(onnxref(["run", "no/such.onnx"]).err.starts_with("error: no/such.onnx"));
}

/// An interruption ends a run at once.
#[test]
#[cfg(unix)]
fn an_interruption() {
    let shape = |dims: [u64; 2]| dims.iter().flat_map(|dim| bytes(1, &number(1, *dim))).collect::<Vec<u8>>();
    let input = |name: &[u8]| {
        let tensor = [number(1, 11), bytes(2, &shape([3000, 3000]))].concat();
        bytes(11, &[bytes(1, name), bytes(2, &bytes(1, &tensor))].concat())
    };
    // Many products, one after the other.
    let names: Vec<String> = (0..200).map(|k| format!("v{k}")).collect();
    let nodes: Vec<u8> = (1..200).flat_map(|k| node("MatMul", &[&names[k - 1], "b"], &names[k])).collect();
    let graph = [nodes, node("Identity", &["v199"], "y"), bytes(2, b"g"), input(b"v0"), input(b"b")].concat();
    let graph = [graph, bytes(12, &bytes(1, b"y"))].concat();
    let bench = Bench::new(&[number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat());
    let mut program = Command::new(env!("CARGO_BIN_EXE_onnxref"));
    program.args(["run", &bench.text("model.onnx"), "--random", "-o", &bench.text("y.npy")]);
    let mut child = program.stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(child.try_wait().unwrap().is_none(), "the run is too short to interrupt it");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(bench.files(), Vec::<String>::new());
}

#[test]
fn completions_and_manual_pages() {
    for (shell, word) in [("bash", "_onnxref"), ("zsh", "#compdef onnxref"), ("fish", "complete -c onnxref")] {
        let ran = onnxref(["completions", shell]);
        assert!(ran.code == Some(0) && ran.out.contains(word), "{shell}");
    }
    let bash = onnxref(["completions", "bash"]).out;
    for (flag, word) in [("--allow", "unsorted-nodes "), ("--limit", " run_bytes= "), ("ops", "Gather GatherElements")]
    {
        assert!(bash.contains(flag) && bash.contains(word), "{flag}");
    }
    // They are only offered.
    assert_eq!(onnxref(["ops", "scatter"]).code, Some(0));
    let (one, some) = ("a similar subcommand exists", "some similar subcommands exist");
    for (verb, meant) in [("rn", "run"), ("opss", "corpus', 'ops"), ("rum", "run")] {
        let ran = onnxref([verb]);
        let tip = format!("  tip: {}: '{meant}'\n", if meant.contains(',') { some } else { one });
        assert!(ran.code == Some(2) && ran.err.contains(&tip), "{ran:?}");
    }
    assert!(!onnxref(["xyz"]).err.contains("tip"));
    assert!(onnxref(["man"]).out.contains(".TH onnxref 1"));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(onnxref(["man", folder.path().to_str().unwrap()]).code, Some(0));
    for verb in ["run", "test", "compare", "check", "inspect", "bench", "ops"] {
        assert!(folder.path().join(format!("onnxref-{verb}.1")).is_file(), "{verb}");
    }
    // A new folder is made, unless a file is in its place.
    let new = folder.path().join("new/man1");
    assert_eq!(onnxref(["man", new.to_str().unwrap()]).code, Some(0));
    assert!(new.join("onnxref-run.1").is_file());
    assert_eq!(onnxref(["man", new.join("onnxref-run.1/folder").to_str().unwrap()]).code, Some(2));
}
