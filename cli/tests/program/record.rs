//! `onnxref run --record`: runs as test cases.

use crate::common::{Bench, bytes, check, data, feed, node, number, onnxref};
use onnxref::bytes::Bytes;
use onnxref::document::Document;
use onnxref::{DType, LoadOptions, Model};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A graph of nodes, with inputs and outputs of float32.
fn graph(nodes: &[u8], inputs: &[(&str, DType)], outputs: &[&str]) -> Vec<u8> {
    let declared = |name: &str, dtype: DType| {
        bytes(2, &bytes(1, &number(1, dtype.code() as u64)))
            .into_iter()
            .chain(bytes(1, name.as_bytes()))
            .collect::<Vec<_>>()
    };
    let mut graph = [nodes, &bytes(2, b"g")].concat();
    inputs.iter().for_each(|(name, dtype)| graph.extend(bytes(11, &declared(name, *dtype))));
    outputs.iter().for_each(|name| graph.extend(bytes(12, &declared(name, DType::Float))));
    graph
}

/// A node with attributes, a name, a domain.
fn node_with(operator: &str, inputs: &[&str], outputs: &[&str], more: &[Vec<u8>]) -> Vec<u8> {
    let inputs = inputs.iter().flat_map(|name| bytes(1, name.as_bytes()));
    let outputs = outputs.iter().flat_map(|name| bytes(2, name.as_bytes()));
    let rest = bytes(4, operator.as_bytes()).into_iter().chain(more.concat());
    bytes(1, &inputs.chain(outputs).chain(rest).collect::<Vec<u8>>())
}

fn branch(name: &str, graph: &[u8]) -> Vec<u8> {
    bytes(5, &[bytes(1, name.as_bytes()), bytes(6, graph), number(20, 5)].concat())
}

/// `w = 2`, an initializer.
fn initializer() -> Vec<u8> {
    bytes(5, &[number(2, 1), bytes(4, &2f32.to_le_bytes()), bytes(8, b"w")].concat())
}

/// Nodes of all kinds: a branch that reads values from around it, a call of a function, a constant, one that nobody reads,
/// one that gives other values in each run.
fn all_kinds() -> Bench {
    let then = graph(&node("Mul", &["twice", "w"], "t"), &[], &["t"]);
    let other = graph(&node("Neg", &["x"], "e"), &[], &["e"]);
    let constant = bytes(
        5,
        &[bytes(1, b"value_float"), [0x15].into_iter().chain(5f32.to_le_bytes()).collect(), number(20, 1)].concat(),
    );
    let nodes = [
        node("Add", &["x", "x"], "twice"),
        node_with(
            "If",
            &["cond"],
            &["z"],
            &[bytes(3, b"choose"), branch("then_branch", &then), branch("else_branch", &other)],
        ),
        node_with("Constant", &[], &["five"], &[constant]),
        node_with("f", &["z", "five"], &["called"], &[bytes(7, b"own")]),
        node("Shape", &["twice"], "unread"),
        node("RandomUniformLike", &["x"], "noise"),
        node("Sub", &["called", "w"], "y"),
    ];
    let inner = [node_with("Mul", &["a", "b"], &["m"], &[]), node_with("Exp", &["m"], &["c"], &[])].concat();
    // Nodes of a function have the field 7.
    let inner = [bytes(7, &inner_of(&inner, 0)), bytes(7, &inner_of(&inner, 1))].concat();
    let opset = |domain: &[u8], version| [bytes(1, domain), number(2, version)].concat();
    let function = [
        bytes(1, b"f"),
        bytes(4, b"a"),
        bytes(4, b"b"),
        bytes(5, b"c"),
        inner,
        bytes(9, &opset(b"", 13)),
        bytes(10, b"own"),
    ];
    let inputs = [("x", DType::Float), ("cond", DType::Bool)];
    let graph = graph(&[nodes.concat(), initializer()].concat(), &inputs, &["y", "noise"]);
    let model = [
        number(1, 8),
        bytes(7, &graph),
        bytes(8, &opset(b"", 13)),
        bytes(8, &opset(b"own", 1)),
        bytes(25, &function.concat()),
    ];
    Bench::new(&model.concat())
}

/// The content of the k-th of two fields.
fn inner_of(fields: &[u8], k: usize) -> Vec<u8> {
    let len = usize::from(fields[1]);
    let (first, second) = fields.split_at(2 + len);
    [first, second][k][2..].to_vec()
}

fn manifest(folder: &Path) -> Vec<(String, String)> {
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let text = |case: &Value, name: &str| case[name].as_str().unwrap().to_string();
    manifest["cases"].as_array().unwrap().iter().map(|case| (text(case, "name"), text(case, "about"))).collect()
}

fn load(path: &Path) -> (Model, Bytes) {
    let bytes: Bytes = fs::read(path).unwrap().into();
    (LoadOptions::default().from_bytes(bytes.clone()).unwrap(), bytes)
}

#[test]
fn a_run_is_a_case() {
    let bench = Bench::new(&fs::read(data("gather/onnx-1.12.0/node/test_gather_2d_indices/model.onnx")).unwrap());
    let to = bench.text("case");
    let ran = bench.run(&["-i", "data=[[1, 2, 3], [4, 5, 6], [7, 8, 9]]", "-i", "indices=[[0, 2]]", "--record", &to]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(fs::read(bench.path("case/model.onnx")).unwrap(), fs::read(bench.path("model.onnx")).unwrap());
    let files: Vec<_> = ["input_0", "input_1", "output_0"].map(|name| format!("case/test_data_set_0/{name}.pb")).into();
    files.iter().for_each(|file| assert!(bench.path(file).is_file(), "{file}"));
    let ran = onnxref(["test", &to]);
    assert_eq!((ran.code, ran.last()), (Some(0), "1 passed (1 bit by bit), 0 failed, 0 unsupported"));
    // A second run doesn't overwrite it, and one that fails leaves nothing.
    let ran = bench.run(&["--random", "--record", &to]);
    check(ran, 2, "", &format!("error: --record {to}: the folder is not empty\n"));
    let ran = bench.run(&[
        "-i",
        "data=[[1, 2, 3], [4, 5, 6], [7, 8, 9]]",
        "-i",
        "indices=[[0, 7]]",
        "--record",
        &bench.text("none"),
    ]);
    assert_eq!((ran.code, bench.files()), (Some(4), vec!["case".to_string()]));
}

/// Of an OpenVINO IR both files are kept, and the case is read again.
#[test]
fn a_run_of_openvino_ir_is_a_case() {
    let folder = tempfile::TempDir::new().unwrap();
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/openvino/axis_1d_i64");
    let (ir, sets) = (given.join("model.xml"), given.join("test_data_set_0"));
    let to = folder.path().join("case");
    let text = |path: &Path| path.to_str().unwrap().to_string();
    let record = |model: &Path, to: &Path, more: &[&str]| {
        let flags = ["run", &text(model), "--inputs", &text(&sets), "--record", &text(to)];
        onnxref(flags.into_iter().chain(more.iter().copied()))
    };
    let ran = record(&ir, &to, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let model = ["model.xml", "model.bin"].map(str::to_string);
    let data = ["input_0", "input_1", "output_0"].map(|name| format!("test_data_set_0/{name}.pb"));
    for file in model.into_iter().chain(data) {
        assert!(fs::read(to.join(&file)).unwrap() == fs::read(given.join(&file)).unwrap(), "{file}");
    }
    let ran = onnxref(["test", &text(&to)]);
    assert_eq!((ran.code, ran.last()), (Some(0), "1 passed (1 bit by bit), 0 failed, 0 unsupported"));
    // A changed output is seen.
    fs::copy(to.join("test_data_set_0/input_0.pb"), to.join("test_data_set_0/output_0.pb")).unwrap();
    assert_eq!(onnxref(["test", &text(&to)]).code, Some(1));
    // Cases of nodes are models of their own, in .onnx files.
    let ran = record(&ir, &folder.path().join("nodes"), &["--each-node"]);
    let error = "error: --record --each-node needs a model in an .onnx file: this one is in another format\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), error));
    assert!(!folder.path().join("nodes").exists());
}

/// A case has the model in an .onnx file, whatever it was read from.
#[test]
fn a_text_is_recorded_as_a_model() {
    let case = data("gather/onnx-1.12.0/node/test_gather_2d_indices");
    let (bench, inputs) = (Bench::new(b""), case.join("test_data_set_0"));
    let document = Document::read(case.join("model.onnx")).unwrap();
    let text = bench.path("model.onnxtxt");
    fs::write(&text, document.to_text().unwrap()).unwrap();
    for (from, name) in [(text.to_str().unwrap(), "file"), ("-", "standard input")] {
        for more in [&[][..], &["--each-node"]] {
            let to = bench.text(&format!("{name}{}", more.concat()));
            let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_onnxref"));
            program.args(["run", from, "-q", "--record", &to, "--inputs"]).arg(&inputs).args(more);
            let ran = program.stdin(fs::File::open(&text).unwrap()).output().unwrap();
            assert_eq!(ran.status.code(), Some(0), "{ran:?}");
            let ran = onnxref(["test", &to]);
            assert_eq!(
                (ran.code, ran.last()),
                (Some(0), "1 passed (1 bit by bit), 0 failed, 0 unsupported"),
                "{ran:?}"
            );
        }
    }
}

#[test]
fn each_node_is_a_case() {
    let bench = all_kinds();
    for (cond, branch) in [("true", "then"), ("false", "else")] {
        let ran =
            bench.run(&["-i", "x=[1, -2]", "-i", &feed("cond", cond), "--record", &bench.text(branch), "--each-node"]);
        let random = "note: node 5 (RandomUniformLike) has no case: it gives other values in each run\n";
        assert_eq!((ran.code, ran.err), (Some(0), format!("{random}note: 6 nodes recorded\n")));
        let names = [
            ("00000-Add", "node 0 (Add)"),
            ("00001-If", "node 1 (If) \"choose\""),
            ("00002-Constant", "node 2 (Constant)"),
            ("00003-f", "node 3 (f)"),
            ("00004-Shape", "node 4 (Shape)"),
            ("00006-Sub", "node 6 (Sub)"),
        ];
        let names = names.map(|(name, about)| (name.to_string(), about.to_string()));
        assert_eq!(manifest(&bench.path(branch)), names);
        let ran = onnxref(["test", &bench.text(branch)]);
        assert_eq!((ran.code, ran.last()), (Some(0), "6 passed (6 bit by bit), 0 failed, 0 unsupported"));
    }
    // The values that branches read are inputs, without the initializer; both inputs of Add are one.
    let inputs = |case: &str| -> Vec<String> {
        let (model, _) = load(&bench.path("then").join(case).join("model.onnx"));
        model.inputs().map(|info| format!("{} {:?}", info.name, info.shape.as_ref().unwrap())).collect()
    };
    assert_eq!(inputs("00000-Add"), ["x [Fixed(2)]"]);
    assert_eq!(inputs("00001-If"), ["cond []", "twice [Fixed(2)]", "x [Fixed(2)]"]);
    assert_eq!(
        (inputs("00003-f"), inputs("00006-Sub")),
        (vec!["z [Fixed(2)]".into()], vec!["called [Fixed(2)]".into()])
    );
    // Only the call has the function.
    let functions = |case: &str| {
        let (_, bytes) = load(&bench.path("then").join(case).join("model.onnx"));
        LoadOptions::default().inspect_bytes(bytes).unwrap().functions.len()
    };
    assert_eq!((functions("00003-f"), functions("00001-If")), (1, 0));
}

/// Values of initializers and constants stay constant, in the old way too; what shapes give is a value of the run.
#[test]
fn nodes_of_a_network_pass() {
    let bench = Bench::new(b"");
    let to = bench.text("all");
    let archive = data("small-networks.tar.xz");
    let ran = onnxref(["corpus", "export", archive.to_str().unwrap(), "-k", "lstm_tagger.legacy13", "-o", &to]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let case = bench.text("all/small-networks/small-networks/lstm_tagger.legacy13");
    let (model, set) = (format!("{case}/model.onnx"), format!("{case}/test_data_set_0"));
    let nodes = bench.text("nodes");
    let ran = onnxref(["run", &model, "--inputs", &set, "--record", &nodes, "--each-node", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let count = Model::options().optimize(false).load(&model).unwrap().nodes().len();
    assert_eq!(manifest(&bench.path("nodes")).len(), count);
    let ran = onnxref(["test", &nodes]);
    let all = format!("{count} passed ({count} bit by bit), 0 failed, 0 unsupported");
    assert_eq!((ran.code, ran.last()), (Some(0), all.as_str()));
}

/// Tensors of other files are put into the model, wherever they are.
#[test]
fn tensors_of_other_files() {
    let text = r#"<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (bool go, float[2] x) => (y) <float[2] w = {5, 6}> {
            u = If (go) <then_branch = t () => (p) <float[2] k = {1, 2}> { p = Add (x, k) },
                else_branch = e () => (q) { q = Neg (x) }>
            v = Mul (u, w)
            y = own.F (go, v)
        }
        <domain: "own", opset_import: ["" : 21]>
        F (c, x) => (y) {
            y = If (c) <then_branch = t () => (p) <float[2] k = {3, 4}> { p = Add (x, k) },
                else_branch = e () => (q) { q = Neg (x) }>
        }"#;
    let mut document = Document::from_text(text).unwrap();
    let data = document.externalize("w.bin", 1).unwrap();
    let bench = Bench::new(&document.to_bytes().unwrap());
    data.write(fs::File::create(bench.path("w.bin")).unwrap()).unwrap();
    for (more, count) in [(&[][..], 1), (&["--each-node"], 3)] {
        let to = bench.text(&format!("case{}", more.concat()));
        let ran = bench.run(&[&["-i", "go=true", "-i", "x=[1, 2]", "-q", "--record", &to], more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let ran = onnxref(["test", &to]);
        let all = format!("{count} passed ({count} bit by bit), 0 failed, 0 unsupported");
        assert_eq!((ran.code, ran.last()), (Some(0), all.as_str()), "{ran:?}");
    }
}
