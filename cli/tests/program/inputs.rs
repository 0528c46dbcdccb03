//! Inputs that are saved, rounded, or wrong.

use crate::common::{Bench, Ran, bytes, check, gather, model, node, number, onnxref, png};
#[cfg(target_os = "linux")]
use crate::writing::in_shell;
use onnxref::DType;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A file that NumPy wrote.
fn numpy(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/numpy").join(name).to_str().unwrap().to_string()
}

/// `y = Abs(x)` of an element type.
fn abs(dtype: DType) -> Bench {
    Bench::new(&model(&node("Abs", &["x"], "y"), &[("x", Some(dtype))], 13))
}

/// `y = Gather(data, indices)`, with declared shapes.
fn shaped() -> Bench {
    let input = |name: &str, dtype: u64, dims: &[u64]| {
        let shape: Vec<u8> = dims.iter().flat_map(|dim| bytes(1, &number(1, *dim))).collect();
        let tensor = bytes(2, &bytes(1, &[number(1, dtype), bytes(2, &shape)].concat()));
        bytes(11, &[bytes(1, name.as_bytes()), tensor].concat())
    };
    let inputs = [input("data", 1, &[2, 3]), input("indices", 7, &[4])].concat();
    let graph = [node("Gather", &["data", "indices"], "y"), inputs, bytes(12, &bytes(1, b"y"))].concat();
    Bench::new(&[number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat())
}

#[test]
fn random_inputs_can_be_fed_again() {
    let bench = shaped();
    for (saved, files) in [("in.npz", vec!["in.npz"]), ("in", vec!["in", "in.npz"])] {
        let saved = bench.text(saved);
        let random = bench.run(&["--random", "--seed", "5", "-i", "indices=[1, 0, 1, 1]", "--save-inputs", &saved]);
        assert_eq!((random.code, random.err.as_str()), (Some(0), ""), "{random:?}");
        assert_eq!(bench.files(), files);
        let again = bench.run(&["--inputs", &saved]);
        assert_eq!((again.code, &again.out, again.err.as_str()), (Some(0), &random.out, ""));
    }
    let mut files: Vec<_> = fs::read_dir(bench.path("in")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["input_0.pb", "input_1.pb"]);
    // What is there is never mixed with other inputs.
    let folder = bench.text("in");
    let twice = bench.run(&["--random", "-q", "--save-inputs", &folder]);
    check(twice, 2, "", &format!("error: --save-inputs {folder}: it has 2 inputs already\n"));
    let nowhere = bench.run(&["--random", "-q", "--save-inputs", "no/such/in.npz"]);
    assert!(nowhere.code == Some(2) && nowhere.err.starts_with("error: --save-inputs no/such/in.npz: "), "{nowhere:?}");
    // NumPy has no bfloat16.
    let bench = abs(DType::Bfloat16);
    let ran = bench.run(&["-i", "[1, -2]", "--save-inputs", &bench.text("x.npz")]);
    assert!(ran.code == Some(2) && ran.err.ends_with(": give a folder\n"), "{ran:?}");
    assert_eq!(bench.run(&["-i", "[1, -2]", "--save-inputs", &bench.text("x")]).code, Some(0));
}

#[test]
fn float64_is_rounded_only_if_that_is_wanted() {
    let last = |ran: &Ran| ran.last().split_whitespace().collect::<Vec<_>>().join(" ");
    for (dtype, name) in [(DType::Float, "float32"), (DType::Float16, "float16"), (DType::Bfloat16, "bfloat16")] {
        let bench = abs(dtype);
        for feeds in [["-i".to_string(), numpy("float64.npy")], ["--inputs".to_string(), numpy("inputs.npz")]] {
            let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
            let why = format!("error: input \"x\": it is float64, but the model expects {name}: --cast rounds it\n");
            check(bench.run(&feeds), 2, "", &why);
            let ran = bench.run(&[&feeds[..], &["--cast"]].concat());
            assert_eq!((ran.code, last(&ran)), (Some(0), format!("y {name} [2] [1, 2]")), "{ran:?}");
        }
    }
    let bench = abs(DType::Float);
    let ran = bench.run(&["-i", &numpy("inexact.npy"), "--cast"]);
    check(ran, 2, "", "error: input \"x\": --cast: 1e300 is too large for float32\n");
    // Nor are floats of other types, and then to any of them.
    let pb = bench.text("x.pb");
    fs::write(&pb, onnxref::Tensor::from(vec![1.5f32, -2.0]).to_proto_bytes("x")).unwrap();
    for (dtype, name) in [(DType::Double, "float64"), (DType::Float16, "float16"), (DType::Bfloat16, "bfloat16")] {
        let why = format!("error: input \"x\": it is float32, but the model expects {name}: --cast rounds it\n");
        check(abs(dtype).run(&["-i", &pb]), 2, "", &why);
        assert_eq!(last(&abs(dtype).run(&["-i", &pb, "--cast"])), format!("y {name} [2] [1.5, 2]"));
    }
    // No other type is changed.
    assert_eq!(last(&abs(DType::Double).run(&["-i", &numpy("float64.npy"), "--cast"])), "y float64 [2] [1, 2]");
    assert_eq!(abs(DType::Int64).run(&["-i", &numpy("float64.npy"), "--cast"]).code, Some(2));
}

#[test]
fn what_does_not_fit_the_model_is_wrong_usage() {
    let bench = shaped();
    let good = "data=[[1, 2, 3], [4, 5, 6]]";
    let run = |data: &str, indices: &str| bench.run(&["-i", data, "-i", indices]).code;
    assert_eq!(run(good, "indices=[0, 1, 1, 0]"), Some(0));
    for (data, indices) in [
        ("data=[1, 2, 3]", "indices=[0, 1, 1, 0]"),
        ("data=[[1, 2], [3, 4]]", "indices=[0, 1, 1, 0]"),
        (good, "indices=[0, 1]"),
        (good, "indices=0"),
        (good, "indices=[0.5, 1, 1, 0]"),
        (good, "indices={\"dtype\": \"int32\", \"shape\": [4], \"values\": [0, 1, 1, 0]}"),
        (good, "other=[0]"),
    ] {
        assert_eq!(run(data, indices), Some(2), "{data} {indices}");
    }
    // The run started.
    assert_eq!(run(good, "indices=[0, 1, 1, 2]"), Some(4));
    let path = bench.text("model.onnx");
    for verb in ["run", "compare", "bench"] {
        let ran = onnxref([verb, &path, "-i", "data=[1]", "-i", "indices=[0]"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    // Nothing tells the type before the run.
    let open = Bench::new(&gather(DType::Float));
    assert_eq!(open.run(&["-i", "data=[1]", "-i", "indices=[0, 5]"]).code, Some(4));
    // A file that can't be written.
    for file in ["no/such/y.npy", "y.txt"] {
        assert_eq!(open.run(&["-i", "data=[1]", "-i", "indices=[0]", "-o", file]).code, Some(2), "{file}");
    }
}

#[test]
fn random_values_count_against_the_limits() {
    let bench = shaped();
    let run = |limit: &str| bench.run(&["--random", "--limit", limit]);
    let each =
        "error: input \"indices\": random values take 32 bytes: the limit is 30 (--limit tensor_bytes=N raises it)\n";
    check(run("tensor_bytes=30"), 2, "", each);
    let all =
        "error: input \"indices\": all random values take 56 bytes: the limit is 50 (--limit run_bytes=N raises it)\n";
    check(run("run_bytes=50"), 2, "", all);
    // Those of a proof too.
    let ran =
        onnxref(["simplify", &bench.text("model.onnx"), "-o", &bench.text("s.onnx"), "--limit", "tensor_bytes=30"]);
    assert!(
        ran.code == Some(0)
            && ran.err.contains("not proved: input \"indices\": random values take 32 bytes: the limit is 30"),
        "{ran:?}"
    );
}

/// So do arrays of an archive, before they are unpacked, and pictures.
#[test]
fn what_is_unpacked_counts_against_the_limits() {
    let bench = shaped();
    let saved = bench.text("in.npz");
    assert_eq!(bench.run(&["--random", "--save-inputs", &saved]).code, Some(0));
    let run = |limit: &str| bench.run(&["--inputs", &saved, "--limit", limit]);
    assert_eq!((run("tensor_bytes=48").code, run("run_bytes=500").code), (Some(0), Some(0)));
    let each = "indices: it takes 32 bytes: the limit is 30 (--limit tensor_bytes=N raises it)";
    check(run("tensor_bytes=30"), 2, "", &format!("error: --inputs {saved}: {each}\n"));
    let all = "indices: with it, all arrays take 56 bytes: the limit is 50 (--limit run_bytes=N raises it)";
    check(run("run_bytes=50"), 2, "", &format!("error: --inputs {saved}: {all}\n"));
    // What is expected, and values to compare with, too.
    let given = ["-i", "data=[[1, 2, 3], [4, 5, 6]]", "-i", "indices=[0, 1, 1, 0]", "--limit", "tensor_bytes=30"];
    let expected = bench.run(&[&["--expect", &saved], &given[..]].concat());
    check(expected, 2, "", &format!("error: --expect {saved}: {each}\n"));
    let compared = onnxref([&["compare", &bench.text("model.onnx"), &saved], &given[..]].concat());
    check(compared, 2, "", &format!("error: {saved}: {each}\n"));

    let bench = abs(DType::Float);
    fs::write(bench.path("p.png"), png(3, 3, &[7; 3 * 3 * 2])).unwrap();
    let (file, run) = (bench.text("p.png"), |limit: &str| bench.run(&["-i", &bench.text("p.png"), "--limit", limit]));
    let each = "as float32 it takes 72 bytes: the limit is 71 (--limit tensor_bytes=N raises it)";
    check(run("tensor_bytes=71"), 2, "", &format!("error: input \"x\": {file}: {each}\n"));
    let all = "decoding the picture of 3x2 takes more than 17 bytes (--limit run_bytes=N raises it)";
    check(run("run_bytes=17"), 2, "", &format!("error: input \"x\": {file}: {all}\n"));
}

/// Elements in columns, of 2,001 dimensions.
#[test]
fn dimensions_of_one_cost_nothing() {
    let bench = abs(DType::Float);
    let header = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': ({}1024, 1024), }}", "1,".repeat(1_999));
    let start = [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat();
    fs::write(bench.path("x.npy"), [start, vec![0; 4 << 20]].concat()).unwrap();
    let begun = Instant::now();
    let ran = bench.run(&["-i", &bench.text("x.npy")]);
    let why = "error: input \"x\" has 2001 dimensions: the limit is 64 (--limit rank=N raises it)\n";
    check(ran, 4, "", why);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Files that take all the memory that there is: of 512 MiB, and a picture of as many bytes.
#[test]
#[cfg(target_os = "linux")]
fn what_does_not_fit_into_memory_is_an_error() {
    let bench = abs(DType::Float);
    let (path, most) = (bench.text("x.npy"), 1 << 29);
    let within = |bytes: usize, file: &str| {
        let limit = format!("ulimit -v $(($(stat -c %s \"$0\") / 1024 + 16384 + {}));", bytes >> 10);
        in_shell(&limit, "", &["run", &bench.text("model.onnx"), "--threads", "1", "-i", file])
    };
    let none = |what: &str| {
        format!("error: input \"x\": {path}: its elements: the system has no {what} bytes of memory left\n")
    };
    for (kind, order) in [(">f4", "False"), ("<f4", "True")] {
        let header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': (4, {}), }}", most / 16);
        let start = [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat();
        let len = (start.len() + most) as u64;
        fs::write(&path, start).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        // Room for the file, and for half of a copy.
        check(within(most / 2 * 3, &path), 2, "", &none(&most.to_string()));
    }
    // A bit for each pixel.
    let (path, size) = (bench.text("x.pbm"), 13_377);
    fs::write(&path, format!("P4 {size} {size}\n")).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(30 << 20).unwrap();
    let pixels = size * size * 3;
    let why = format!("error: input \"x\": {path}: no memory for {pixels} bytes of the picture\n");
    check(within(64 << 20, &path), 2, "", &why);
}

/// What `-o` writes as JSON is read.
#[test]
fn an_output_as_json_is_an_input() {
    let bench = abs(DType::Float16);
    let file = bench.text("y.json");
    assert_eq!(bench.run(&["-i", "[-1.5, 2]", "-o", &file]).code, Some(0));
    let ran = bench.run(&["-i", &file]);
    assert!(ran.code == Some(0) && ran.last().ends_with("[1.5, 2]"), "{ran:?}");
}
