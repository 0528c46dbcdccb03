//! `onnxref run`, as a user calls it.

use crate::common::{Bench, Ran, bytes, check, data, feed, gather, graph, model, node, number, onnxref, png, several};
use onnxref::{DType, Tensor};
use std::fs;

const EMBEDDING: &str = "gather/onnx-1.1.2/pytorch-converted/test_Embedding";

#[test]
fn a_real_model_with_and_without_a_name() {
    let (model, input) = (data(EMBEDDING).join("model.onnx"), data(EMBEDDING).join("test_data_set_0/input_0.pb"));
    let name = onnxref::Model::load(&model).unwrap().inputs().next().unwrap().name.clone();
    let (model, named) = (model.to_str().unwrap(), feed(&name, &input));
    let ran = onnxref(["run", model, "-i", &named]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("  float32  [1, 4, 3]  [[[0.3416"), "{ran:?}");
    assert_eq!(ran.out.lines().next(), Some("output  type     shape      values"));
    assert_eq!(onnxref(["run", model, "-i", input.to_str().unwrap()]).out, ran.out);
    assert_eq!(onnxref(["run", "-i", input.to_str().unwrap(), model]).out, ran.out);
}

/// The only row of a table, which has two spaces at least between its cells.
#[track_caller]
fn row(ran: Ran, err: &str) -> String {
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), err));
    let rows: Vec<String> = ran
        .out
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect();
            cells.join(" | ")
        })
        .collect();
    let [header, row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!(header, "output | type | shape | values");
    row.clone()
}

#[test]
fn literals_have_the_declared_type() {
    for (dtype, text, shown) in [
        (DType::Float, r#"[[0.1, "NaN"], ["-inf", -0]]"#, "y | float32 | [2, 2] | [[0.1, NaN], [-inf, -0]]"),
        (DType::Double, "[0.1, 16777217]", "y | float64 | [2] | [0.1, 16777217]"),
        (DType::Int8, "[-128, 127]", "y | int8 | [2] | [-128, 127]"),
        (DType::Uint64, "[18446744073709551615, 0]", "y | uint64 | [2] | [18446744073709551615, 0]"),
        (DType::Bool, "[true, false]", "y | bool | [2] | [true, false]"),
        (DType::String, r#"["a=b", ""]"#, r#"y | string | [2] | ["a=b", ""]"#),
        (DType::Float16, "[0.1, 65504]", "y | float16 | [2] | [0.099975586, 65504]"),
        (DType::Bfloat16, "[0.1, 1]", "y | bfloat16 | [2] | [0.100097656, 1]"),
        (DType::Complex128, "[[1, -2], [0, 1]]", "y | complex128 | [2] | [1-2i, 0+1i]"),
    ] {
        let bench = Bench::new(&gather(dtype));
        assert_eq!(row(bench.run(&["-i", &format!("data={text}"), "-i", "indices=[0, 1]"]), ""), shown);
    }
    let nodes = node("Gather", &["data", "indices"], "y");
    let open = Bench::new(&model(&nodes, &[("data", None), ("indices", None)], 13));
    let notes = "note: input \"data\" has no type\nnote: input \"indices\" has no type\n";
    assert_eq!(row(open.run(&["-i", "data=[1.5, 2]", "-i", "indices=-1"]), notes), "y | float32 | [] | 2");
    assert_eq!(row(open.run(&["-i", "data=[\"a\"]", "-i", "indices=0"]), notes), "y | string | [] | \"a\"");
}

#[test]
fn json_reads_back_exactly() {
    for (dtype, name, text, values) in [
        (
            DType::Float,
            "float32",
            r#"[0.1, 16777216, 1e-45, "NaN", "inf", "-inf", -0]"#,
            r#"[0.1,16777216.0,1e-45,"NaN","inf","-inf",-0.0]"#,
        ),
        (DType::Double, "float64", "[0.1, 5e-324]", "[0.1,5e-324]"),
        (
            DType::Int64,
            "int64",
            "[9223372036854775807, -9223372036854775808]",
            "[9223372036854775807,-9223372036854775808]",
        ),
        (DType::Uint64, "uint64", "[18446744073709551615]", "[18446744073709551615]"),
        (DType::Complex64, "complex64", r#"[[0.1, "NaN"]]"#, r#"[[0.1,"NaN"]]"#),
        (DType::Bool, "bool", "[true]", "[true]"),
        (DType::String, "string", r#"["\"\n", "NaN"]"#, r#"["\"\n","NaN"]"#),
    ] {
        let bench = Bench::new(&gather(dtype));
        let count = values_count(text);
        let indices = format!("indices={:?}", (0..count).collect::<Vec<_>>());
        let ran = bench.run(&["--json", "-i", &format!("data={text}"), "-i", &indices]);
        let json =
            format!("{{\"outputs\":{{\"y\":{{\"dtype\":\"{name}\",\"shape\":[{count}],\"values\":{values}}}}}}}\n");
        check(ran, 0, &json, "");
    }
}

fn values_count(text: &str) -> usize {
    serde_json::from_str::<serde_json::Value>(text).unwrap().as_array().unwrap().len()
}

#[test]
fn every_type_through_pb_and_npy() {
    let gathered = DType::all().filter(|dtype| dtype.bits() >= 16 || dtype.bits() == 0 || is_plain_byte(*dtype));
    for dtype in gathered {
        let bench = Bench::new(&gather(dtype));
        let tensor = if dtype == DType::String {
            Tensor::from_strings(&[3], ["", "é\n", "longer"]).unwrap()
        } else {
            Tensor::new(dtype, &[3], (0..3 * dtype.size()).map(|k| (k % 2) as u8).collect::<Vec<_>>()).unwrap()
        };
        fs::write(bench.path("in.pb"), tensor.to_proto_bytes("data")).unwrap();
        let indices = ["-i", "indices=[0, 1, 2]"];
        let input = feed("data", bench.path("in.pb"));
        let to_pb = feed("y", bench.path("out.pb"));
        check(bench.run(&[&["-i", &input, "-o", &to_pb][..], &indices].concat()), 0, "", "");
        assert_eq!(Tensor::from_proto_bytes(fs::read(bench.path("out.pb")).unwrap()).unwrap(), tensor);

        let to_npy = feed("y", bench.path("out.npy"));
        let ran = bench.run(&[&["-i", &input, "-o", &to_npy][..], &indices].concat());
        if dtype == DType::Bfloat16 {
            let why = "NumPy has no bfloat16, so a .npy file can't hold it: write a .pb file";
            check(ran, 2, "", &format!("error: output \"y\" to {}: {why}\n", bench.text("out.npy")));
            assert_eq!(bench.files(), ["in.pb", "out.pb"]);
            continue;
        }
        check(ran, 0, "", "");
        let input = feed("data", bench.path("out.npy"));
        let to_pb = feed("y", bench.path("again.pb"));
        check(bench.run(&[&["-i", &input, "-o", &to_pb][..], &indices].concat()), 0, "", "");
        assert_eq!(Tensor::from_proto_bytes(fs::read(bench.path("again.pb")).unwrap()).unwrap(), tensor);
        assert_eq!(bench.files(), ["again.pb", "in.pb", "out.npy", "out.pb"]);
    }
}

fn is_plain_byte(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::Int8 | DType::Uint8)
}

#[test]
fn files_and_json_together() {
    let bench = Bench::new(&gather(DType::Int32));
    let (file, feeds) = (feed("y", bench.path("y.pb")), ["-i", "data=[5]", "-i", "indices=0"]);
    let ran = bench.run(&[&["--json", "-o", &file][..], &feeds].concat());
    check(ran, 0, "{\"outputs\":{\"y\":{\"dtype\":\"int32\",\"shape\":[],\"values\":[5]}}}\n", "");
    let only = bench.run(&[&["-o", &bench.text("only.NPY")][..], &feeds].concat());
    check(only, 0, "", "");
    let ran = bench.run(&[&["-q", "--json", "-o", "-"][..], &feeds].concat());
    let why = "-o -: a file is needed: with --json standard output gets JSON";
    assert_eq!((ran.code, ran.err), (Some(2), format!("error: {why}\n")));
    assert_eq!(bench.files(), ["only.NPY", "y.pb"]);
    // Nothing is written unless all can be.
    let missing = feed("y", bench.path("no/such/y.npy"));
    let ran = bench.run(&[&["-o", &feed("y", bench.path("z.pb")), "-o", &missing][..], &feeds].concat());
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.starts_with(&format!("error: -o {missing}: the file can't be written: ")), "{ran:?}");
    assert_eq!(bench.files(), ["only.NPY", "y.pb"]);
}

#[test]
fn wrong_inputs() {
    let bench = Bench::new(&gather(DType::Uint8));
    fs::write(bench.path("bad.pb"), b"\xff\xff").unwrap();
    fs::write(bench.path("bad.npy"), b"PK\xff").unwrap();
    let (bad_pb, bad_npy, none) = (bench.text("bad.pb"), bench.text("bad.npy"), bench.text("none.npy"));
    let io = fs::read(bench.path("none.npy")).unwrap_err();
    let pb = Tensor::from_proto_bytes(b"\xff\xff".as_slice()).unwrap_err();
    let missing = "missing input \"data\" (uint8, any shape); missing input \"indices\" (int64, any shape)\
        : -i NAME=VALUE gives a value, --random random ones";
    for (arguments, code, err) in [
        (
            &["-i", "data=[1, 256]"][..],
            2,
            "input \"data\": 256 at [1] is out of range for uint8: allowed 0 to 255".into(),
        ),
        (
            &["-i", "data=[[1, 2], [3]]"],
            2,
            "input \"data\": the list at [1] has length 1, but the first one at this depth has length 2".into(),
        ),
        (
            &["-i", "data=1.5"],
            2,
            "input \"data\": 1.5 is not a valid uint8: allowed integers, without a point or an exponent".into(),
        ),
        (
            &["-i", "data=x"],
            2,
            "input \"data\": \"x\" is neither a file (.pb, .npy, .json, or a picture such as .png) nor JSON: expected value at line 1 column 1".into(),
        ),
        (&["-i", "[1]"], 2, format!("-i \"[1]\": NAME= is missing; {missing}\n")),
        (&["-i", &format!("data={none}")], 2, format!("input \"data\": {none}: {io}")),
        (&["-i", &format!("data={bad_pb}")], 2, format!("input \"data\": {bad_pb}: {pb:#}")),
        (&["-i", &format!("data={bad_npy}")], 2, format!("input \"data\": {bad_npy}: it is not a .npy file")),
        (&["-o", "z=z.pb"], 2, "-o z=z.pb: there is no output of this name; the model's outputs: \"y\"".into()),
        (
            &["-o", "y=y.txt"],
            2,
            "-o y=y.txt: the file's name must end with .pb, .npy, .npz or .json; the model's outputs: \"y\"".into(),
        ),
        (&["-o", "y=y.pb", "-o", "y=y.pb"], 2, "two outputs go to y.pb".into()),
        (&["-o", "y=."], 2, "-o y=.: the file's name must end with .pb, .npy, .npz or .json; the model's outputs: \"y\"".into()),
        (&[], 2, format!("{missing}\n")),
        (&["-i", "data=[1]"], 2, "missing input \"indices\" (int64, any shape): -i NAME=VALUE gives a value, --random random ones\n".into()),
        (
            &["-i", "x=[1]"],
            2,
            format!("input \"x\" is not an input of the model, which takes \"data\", \"indices\"; {missing}\n"),
        ),
        (
            &["-i", "data=[1]", "-i", "data=[1]"],
            2,
            "input \"data\" is given twice; missing input \"indices\" (int64, any shape)\
                : -i NAME=VALUE gives a value, --random random ones\n".into(),
        ),
        (&["-i", "data=[1]", "-i", "indices=[1.5]"], 2, "input \"indices\": 1.5 at [0] is not a valid int64".into()),
        (&["-i", "data=[1]", "-i", "indices=in.npy"], 2, "input \"indices\": in.npy: No such file".into()),
        (
            &["-i", "data=[1]", "-i", "indices=[3]"],
            4,
            "node #0 (Gather-13): indices[0] = 3 is out of range for axis 0 of \"data\"".into(),
        ),
    ] {
        let ran = bench.run(arguments);
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.lines().count()),
            (Some(code), "", 1),
            "{arguments:?}: {ran:?}"
        );
        assert!(ran.err.starts_with(&format!("error: {err}")), "{arguments:?}: {ran:?}");
    }
    assert_eq!(onnxref(["run"]).code, Some(2));
    assert_eq!(onnxref(["run", "a", "--compat", "gather-1-negative-indices"]).code, Some(2));
    assert_eq!(onnxref(["--version"]).out, format!("onnxref {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_data_set_as_input() {
    let case = data(EMBEDDING);
    let (model, set) = (case.join("model.onnx"), case.join("test_data_set_0"));
    let (model, set) = (model.to_str().unwrap(), set.to_str().unwrap());
    let ran = onnxref(["run", model, "--inputs", set]);
    assert_eq!(ran.out, onnxref(["run", model, "-i", &format!("{set}/input_0.pb")]).out);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));

    let bench = Bench::new(&gather(DType::Int8));
    let tensor = Tensor::new(DType::Int8, &[2], vec![5, 6]).unwrap().to_proto_bytes("");
    fs::write(bench.path("input_0.pb"), &tensor).unwrap();
    fs::write(bench.path("output_0.pb"), &tensor).unwrap();
    let folder = bench.text("");
    assert_eq!(row(bench.run(&["--inputs", &folder, "-i", "indices=-1"]), ""), "y | int8 | [] | 6");
    let missing = "error: missing input \"indices\" (int64, any shape)\
        : -i NAME=VALUE gives a value, --random random ones\n";
    check(bench.run(&["--inputs", &folder]), 2, "", missing);
    let twice = bench.run(&["--inputs", &folder, "-i", "indices=0", "-i", "data=[1]"]);
    check(twice, 2, "", "error: input \"data\" is given twice\n");
    fs::write(bench.path("input_7.pb"), &tensor).unwrap();
    let more = bench.run(&["--inputs", &folder, "-i", "indices=0"]);
    check(more, 2, "", &format!("error: {}: the model has 2 inputs\n", bench.text("input_7.pb")));
    let none = bench.run(&["--inputs", data("gather").to_str().unwrap()]);
    check(none, 2, "", &format!("error: --inputs {}: it has no input_0.pb\n", data("gather").to_str().unwrap()));
    assert_eq!(bench.run(&["--inputs", "no/such"]).code, Some(2));
}

#[test]
fn files_that_are_something_else() {
    let bench = Bench::new(&gather(DType::Float));
    let npy = b"\x93NUMPY\x01\0";
    for (name, bytes, why) in [
        (
            "model.pb",
            &gather(DType::Float)[..],
            "expected an encoded TensorProto, but the file seems to be an ONNX model",
        ),
        ("empty.pb", b"", "expected an encoded TensorProto, but the file is empty"),
        ("npy.pb", npy, "expected an encoded TensorProto, but the file seems to be a .npy file"),
        ("text.pb", b"[1, 2]", "expected an encoded TensorProto, but the file seems to be text"),
        ("model.npy", &gather(DType::Float), "expected a .npy file, but the file seems to be an ONNX model"),
        ("cut.npy", npy, "it is cut short: it ends in its header"),
        ("empty.npy", b"", "expected a .npy file, but the file is empty"),
        ("zip.npy", b"PK\x03\x04", "expected a .npy file, but the file seems to be a zip archive, as .npz files are"),
        (
            "model.onnx",
            &gather(DType::Float),
            "the file's name must end with .pb, .npy, .json, or as a picture's, such as .png",
        ),
    ] {
        fs::write(bench.path(name), bytes).unwrap();
        let ran = bench.run(&["-i", &feed("data", bench.path(name)), "-i", "indices=0"]);
        check(ran, 2, "", &format!("error: input \"data\": {}: {why}\n", bench.text(name)));
    }
    // A tensor whose data is elsewhere.
    let external = bytes(13, &[bytes(1, b"location"), bytes(2, b"w.data")].concat());
    let tensor = [number(1, 1), number(2, 1), bytes(8, b"w"), external, number(14, 1)].concat();
    fs::write(bench.path("external.pb"), tensor).unwrap();
    let ran = bench.run(&["-i", &feed("data", bench.path("external.pb")), "-i", "indices=0"]);
    let why = "tensor \"w\": its data is external: only a model can have external data";
    check(ran, 2, "", &format!("error: input \"data\": {}: {why}\n", bench.text("external.pb")));
}

#[test]
fn folders_that_cannot_be_written_are_found_before_the_run() {
    let bench = Bench::new(&gather(DType::Int8));
    fs::create_dir(bench.path("folder.pb")).unwrap();
    // The run would fail.
    let feeds = ["-i", "data=[1]", "-i", "indices=9"];
    for name in ["no/such/y.pb", "folder.pb", "model.onnx/y.pb"] {
        let output = feed("y", bench.path(name));
        let ran = bench.run(&[&["-o", &output][..], &feeds].concat());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(2), "", 1), "{ran:?}");
        assert!(ran.err.starts_with(&format!("error: -o {output}: the file can't be written: ")), "{ran:?}");
        assert_eq!(bench.files(), ["folder.pb"]);
    }
    // Nothing is left of a run that fails.
    let ran = bench.run(&[&["-o", &feed("y", bench.path("y.pb"))][..], &feeds].concat());
    assert_eq!((ran.code, bench.files()), (Some(4), vec!["folder.pb".to_string()]), "{ran:?}");
}

#[test]
fn names_with_an_equals_sign() {
    let nodes = node("Gather", &["a", "a=b"], "y");
    let bench = Bench::new(&model(&nodes, &[("a", Some(DType::String)), ("a=b", Some(DType::Int64))], 13));
    assert_eq!(row(bench.run(&["-i", r#"a=["x", "y"]"#, "-i", "a=b=1"]), ""), "y | string | [] | \"y\"");
}

#[test]
fn gather_1_takes_negative_indices_on_request() {
    let nodes = node("Gather", &["data", "indices"], "y");
    let bench = Bench::new(&model(&nodes, &[("data", Some(DType::Int32)), ("indices", Some(DType::Int64))], 10));
    let feeds = ["-i", "data=[1, 2]", "-i", "indices=-1"];
    let refused = bench.run(&feeds);
    assert_eq!(refused.code, Some(4));
    assert!(refused.err.starts_with("error: node #0 (Gather-1): indices"), "{refused:?}");
    for name in ["gather-1-negative-indices", "gather_1_negative_indices"] {
        let ran = bench.run(&[&["--allow", name][..], &feeds].concat());
        assert_eq!(row(ran, ""), "y | int32 | [] | 2");
    }
}

#[test]
fn a_closed_standard_output_is_no_error() {
    use std::process::{Command, Stdio};
    let bench = Bench::new(&gather(DType::Int64));
    // More than a pipe holds.
    let indices = vec![0; 20_000];
    let mut program = Command::new(env!("CARGO_BIN_EXE_onnxref"));
    program.args(["run", &bench.text("model.onnx"), "--json", "-i", "data=[123456789]"]);
    program.args(["-i", &format!("indices={indices:?}")]);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// A grey picture of 2 rows of 3 pixels, as PNG.
fn grey() -> Vec<u8> {
    png(3, 1, &[0, 51, 102, 153, 204, 255])
}

#[test]
fn flags_of_pictures_that_cannot_be_followed() {
    let dims = |sizes: &[u64]| sizes.iter().map(|size| bytes(1, &number(1, *size))).collect::<Vec<_>>().concat();
    // An input of a shape that gives its elements in another order.
    let bench = |dtype: u64, sizes: &[u64]| {
        let tensor = bytes(2, &bytes(1, &[number(1, dtype), bytes(2, &dims(sizes))].concat()));
        let graph =
            [node("Identity", &["x"], "y"), bytes(11, &[bytes(1, b"x"), tensor].concat()), bytes(12, &bytes(1, b"y"))];
        let bench = Bench::new(&[number(1, 8), bytes(7, &graph.concat()), bytes(8, &number(2, 13))].concat());
        fs::write(bench.path("p.png"), grey()).unwrap();
        bench
    };
    let input = |bench: &Bench| feed("x", bench.path("p.png"));
    let [floats, bytes_, last] = [bench(1, &[1, 1, 2, 3]), bench(2, &[2, 3]), bench(1, &[1, 2, 3, 1])];
    assert_eq!(floats.run(&["-i", &input(&floats)]).code, Some(0));
    for (bench, flags, why) in [
        (&floats, &["--resize", "5x4"][..], "--resize gives 5x4, but the input takes 3x2: --resize 3x2 fits"),
        (
            &bytes_,
            &["--mean", "0.5"],
            "--mean and --std are for inputs of type float32, float64 or float16, but the input is uint8",
        ),
        (&last, &[], "a picture has 1, 3 or 4 channels, but the input has 2: --layout nhwc says where they are"),
    ] {
        let ran = bench.run(&[&["-i", &input(bench)][..], flags].concat());
        check(ran, 2, "", &format!("error: input \"x\": {}: {why}\n", bench.text("p.png")));
    }
    // The height and the width are open.
    let open = [vec![], bytes(1, &bytes(2, b"H")), bytes(1, &bytes(2, b"W")), bytes(1, &number(1, 3))].concat();
    let shape = [bytes(1, &bytes(2, b"N")), open].concat();
    let tensor = bytes(2, &bytes(1, &[number(1, 2), bytes(2, &shape)].concat()));
    let graph =
        [node("Identity", &["x"], "y"), bytes(11, &[bytes(1, b"x"), tensor].concat()), bytes(12, &bytes(1, b"y"))];
    let channels = self::Bench::new(&[number(1, 8), bytes(7, &graph.concat()), bytes(8, &number(2, 13))].concat());
    fs::write(channels.path("p.png"), png(32, 3, &[0; 32 * 24 * 3])).unwrap();
    let why =
        "the picture is 32x24, but in this layout the input takes 3x24: --layout nhwc says where its channels are";
    let ran = channels.run(&["-i", &input(&channels)]);
    check(ran, 2, "", &format!("error: input \"x\": {}: {why}\n", channels.text("p.png")));
    for layout in ["nhwc", "NHWC"] {
        let ran = channels.run(&["-i", &input(&channels), "--layout", layout]);
        assert!(ran.code == Some(0) && ran.out.contains("[1, 24, 32, 3]"), "{ran:?}");
    }
    let small = self::Bench::new(&fs::read(bench(1, &[1, 1, 4, 4]).path("model.onnx")).unwrap());
    fs::write(small.path("p.png"), grey()).unwrap();
    let why = "the picture is 3x2, but the input takes 4x4: --resize 4x4 fits";
    check(small.run(&["-i", &input(&small)]), 2, "", &format!("error: input \"x\": {}: {why}\n", small.text("p.png")));
    // One of another format, a damaged one, and one that would take too much memory.
    let huge = [&grey()[..16], &[0, 1, 0, 0, 0, 1, 0, 0], &grey()[24..]].concat();
    for (file, why) in [
        (&b"P5 6 2 255 abcdefghijkl"[..], None),
        (
            b"P5 6 2 255 a",
            Some("a damaged picture, or one that isn't read: PNG, JPEG, WebP, TIFF, BMP, PNM and JPEG 2000 are"),
        ),
        (&huge, Some("decoding the picture of 65536x65536 takes more than 2147483648 bytes")),
    ] {
        fs::write(floats.path("p.png"), file).unwrap();
        let ran = floats.run(&["-i", &input(&floats), "--resize", "3x2"]);
        let err = why.map(|why| format!("error: input \"x\": {}: {why}\n", floats.text("p.png")));
        assert_eq!((ran.code, ran.err), (Some(if err.is_some() { 2 } else { 0 }), err.unwrap_or_default()));
    }
    // The name only says that it is a picture.
    for ending in ["png", "jpg", "JPEG", "bmp", "webp", "tif", "tiff", "jp2", "j2k", "pbm", "pgm", "ppm", "pnm"] {
        let name = format!("q.{ending}");
        fs::write(floats.path(&name), b"P5 3 2 255 abcdef").unwrap();
        let ran = floats.run(&["-i", &feed("x", floats.path(&name))]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
    }
    for (flag, text, why) in [
        ("--resize", "999999x999999", "a picture may have 67108864 pixels at most"),
        ("--std", "0.5,0", "expected a finite number other than 0"),
        ("--mean", "nan", "expected a finite number"),
    ] {
        let ran = floats.run(&["-i", &input(&floats), flag, text]);
        assert!(ran.code == Some(2) && ran.err.contains(why), "{ran:?}");
    }
    for (flag, text) in [("--mean", "0.5"), ("--std", "0.5"), ("--resize", "3x2")] {
        let ran = floats.run(&["-i", "x=[[[[1, 2, 3], [4, 5, 6]]]]", flag, text]);
        let why = "is for pictures, but no input is one: give a file such as .png or .jpg with -i";
        check(ran, 2, "", &format!("error: {flag} {why}\n"));
    }
}

#[test]
fn flags_of_random_values_that_cannot_be_followed() {
    let dim = |name: &[u8]| bytes(1, &bytes(2, name));
    let shape = bytes(2, &[dim(b"d\x1b[31m"), dim(b"n"), dim(b"n")].concat());
    let tensor = bytes(2, &bytes(1, &[number(1, 7), shape].concat()));
    let input = bytes(11, &[bytes(1, b"x"), tensor].concat());
    let graph = [node("Identity", &["x"], "y"), input, bytes(12, &bytes(1, b"y"))].concat();
    let bench = Bench::new(&[number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat());
    let run = |more: &[&str]| bench.run(&[&["--random"][..], more].concat());
    for (flags, why) in [
        (&["--range", "z=0..1"][..], r#"--range z=0..1: the model has no input "z"; its inputs: "x""#),
        (&["--range", "x=0..1", "--range", "x=0..2"], r#"--range x=0..2: input "x" has a range already"#),
        (&["--range", "0..1", "--range", "0..2"], "--range 0..2: all inputs have a range already"),
        (&["--set", "n=1", "--set", "n=2"], r#"--set n=2: dimension "n" has a size already"#),
        (&["--set", "m=1"], r"--set m=1: no input has this dimension; open dimensions: d\u{1b}[31m, n"),
    ] {
        check(run(flags), 2, "", &format!("error: {why}\n"));
    }
    let none = run(&["-q", "--range", "x=0.2..0.8"]);
    check(none, 2, "", "error: input \"x\": no value of type int64 is in 0.2..0.8\n");
    // Integers that float64 doesn't have.
    for (range, value) in [("9007199254740993..9007199254740993", "9007199254740993"), ("1..9223372036854775807", "")] {
        let exact = run(&["--range", range]);
        assert!(exact.code == Some(0) && exact.last().contains(value), "{exact:?}");
    }
    let most = "1..9223372036854775808 is out of range for int64: -9223372036854775808..9223372036854775807";
    check(run(&["-q", "--range", "1..9223372036854775808"]), 2, "", &format!("error: input \"x\": {most}\n"));
    let notes = run(&["--range", "x=0.5..1.5"]);
    assert_eq!(notes.code, Some(0));
    let note = r#"note: dimension 0 of input "x" is 1: --set d\u{1b}[31m=SIZE changes it"#;
    assert_eq!(notes.err.lines().next(), Some(note));
}

#[test]
fn an_output_that_is_listed_twice() {
    let graph = graph(&[several("Neg", &["x"], &["y"], &[])], &[("x", DType::Float)], &["y", "y"]);
    let bench = Bench::new(&[number(1, 8), bytes(7, &graph), bytes(8, &number(2, 13))].concat());
    let run = |more: &[&str]| bench.run(&[&["-i", "x=[2]"][..], more].concat());
    let json = "{\"outputs\":{\"y\":{\"dtype\":\"float32\",\"shape\":[1],\"values\":[-2.0]}}}\n";
    check(run(&["--json"]), 0, json, "");
    for to in [feed("y", bench.path("y.npy")), bench.text("y.npz")] {
        check(run(&["-o", &to]), 0, "", "");
        assert_eq!(run(&["--expect", &to]).code, Some(0));
    }
}
