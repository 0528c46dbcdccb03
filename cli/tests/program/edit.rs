//! `onnxref extract`, `set`, `simplify` and `convert`, as a user calls them.

use crate::common::{Bench, Ran, onnxref};
use onnxref::document::{Document, Graph, Initializer, Node, Size, ValueInfo};
use onnxref::{DType, Tensor};

/// `y = -(relu(x) + table)`, and `z`, which an If computes from the sum.
fn model() -> Bench {
    let table = Tensor::from_elements(&[3], vec![1f32, 2.0, 3.0]).unwrap();
    let body = |operator: &str, name: &str| {
        Graph::new(name).node(Node::new(operator, ["sum"], [name])).output(ValueInfo::untyped(name))
    };
    let branch = Node::new("If", ["up"], ["z"]);
    let branch = branch.attribute("then_branch", body("Abs", "one")).attribute("else_branch", body("Neg", "other"));
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, ["n", "m"]))
        .input(ValueInfo::tensor("up", DType::Bool, [0i64; 0]))
        .initializer(Initializer::new("table", &table))
        .node(Node::new("Relu", ["x"], ["relu"]))
        .node(Node::new("Add", ["relu", "table"], ["sum"]))
        .node(Node::new("Neg", ["sum"], ["y"]))
        .node(branch)
        .output(ValueInfo::tensor("y", DType::Float, ["n", "m"]))
        .output(ValueInfo::tensor("z", DType::Float, ["n", "m"]));
    Bench::new(&Document::new(graph, 21).to_bytes().unwrap())
}

fn edit(bench: &Bench, verb: &str, arguments: &[&str]) -> Ran {
    let (model, to) = (bench.text("model.onnx"), bench.text("out.onnx"));
    onnxref([&[verb, &model, "-o", &to], arguments].concat())
}

fn written(bench: &Bench) -> Document {
    Document::read(bench.path("out.onnx")).unwrap()
}

fn names(infos: &[onnxref::document::Part<ValueInfo>]) -> Vec<&str> {
    infos.iter().map(|info| info.name.as_str()).collect()
}

#[track_caller]
fn refused(ran: &Ran, bench: &Bench, code: i32, text: &str) {
    assert_eq!((ran.code, ran.err.as_str()), (Some(code), format!("error: {text}\n").as_str()));
    assert_eq!(bench.files(), [""; 0]);
}

#[test]
fn what_a_body_reads_is_extracted_too() {
    let bench = model();
    let ran = edit(&bench, "extract", &["--inputs", "relu,up", "--outputs", "z"]);
    let to = bench.text("out.onnx");
    let out = format!("{to}: 2 of 4 nodes\nproved: 1 output is the same, bit by bit\n");
    assert_eq!((ran.code, ran.err.as_str(), ran.out), (Some(0), "", out));
    let graph = &written(&bench).graph;
    assert_eq!((names(&graph.inputs), names(&graph.outputs)), (vec!["relu", "up"], vec!["z"]));
    assert_eq!(graph.initializers.len(), 1);
    // The type of the new input follows from the model.
    assert_eq!(graph.inputs[0].dims().unwrap()[0].size, Size::Symbol("n".to_string()));
    let ran = edit(&bench, "extract", &["--outputs", "relu", "--json"]);
    let to = to.replace('\\', "\\\\");
    let json = format!("{{\"output\":\"{to}\",\"nodes\":[4,1],\"data\":null,\"proof\":\"equal\",\"detail\":1}}\n");
    assert_eq!((ran.code, ran.out), (Some(0), json));
    assert_eq!(names(&written(&bench).graph.inputs), ["x"]);
}

#[test]
fn what_cannot_be_extracted() {
    let bench = model();
    let refuse = |arguments: &[&str], text: &str| refused(&edit(&bench, "extract", arguments), &bench, 2, text);
    refuse(&[], "--inputs or --outputs is missing: names of values");
    refuse(&["--outputs", "rellu"], "--outputs: the graph has no value \"rellu\": did you mean \"relu\"?");
    let inside = "--outputs: value \"one\" is inside of a body of a node: a value of the graph itself is needed";
    refuse(&["--outputs", "one"], inside);
    refuse(&["--inputs", "relu"], "--inputs: the outputs also need the input \"up\"");
    refuse(&["--outputs", "y,y"], "--outputs: value \"y\" is given twice");
}

#[test]
fn names_change_in_bodies_too() {
    let bench = model();
    let ran =
        edit(&bench, "set", &["--rename", "sum=total", "--rename", "x=image", "--dim", "n=4", "--metadata", "k=v=w"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.ends_with("proved: 2 outputs are the same, bit by bit\n"), "{}", ran.out);
    let document = written(&bench);
    assert_eq!(document.graph.inputs[0].dims().unwrap()[0].size, Size::Fixed(4));
    assert_eq!(document.graph.outputs[1].dims().unwrap()[0].size, Size::Fixed(4));
    assert_eq!(document.graph.nodes[3].bodies().next().unwrap().nodes[0].inputs, ["total"]);
    assert_eq!((document.metadata[0].key.as_str(), document.metadata[0].value.as_str()), ("k", "v=w"));
}

#[test]
fn a_dimension_is_opened_and_shapes_follow() {
    let bench = model();
    let ran = edit(
        &bench,
        "set",
        &["--dim", "x.1=3", "--dim", "x.0=rows", "--drop-output", "z", "--output", "sum", "--shapes"],
    );
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let graph = &written(&bench).graph;
    assert_eq!(names(&graph.outputs), ["y", "sum"]);
    for info in graph.outputs.iter().chain(graph.value_info.iter().filter(|info| info.name == "relu")) {
        let sizes: Vec<&Size> = info.dims().unwrap().iter().map(|dim| &dim.size).collect();
        assert_eq!(sizes, [&Size::Symbol("rows".to_string()), &Size::Fixed(3)], "{}", info.name);
    }
    assert!(names(&graph.value_info).contains(&"relu"));
}

/// The proof has the size that the old model fixes; another one is tried beside it.
#[test]
fn a_dimension_that_stays_fixed_inside_is_told() {
    let text = r#"<ir_version: 10, opset_import: ["" : 21]>
        g (float[1, 2] x, float[1, 2] w) => (y, z) <int64[2] s = {1, 2}> { y = Reshape (x, s) z = Neg (w) }"#;
    let bench = Bench::new(&Document::from_text(text).unwrap().to_bytes().unwrap());
    let ran = edit(&bench, "set", &["--dim", "x.0=n", "--dim", "w.0=?"]);
    let why =
        "node #0 (Reshape-21): \"data\" (value \"x\") of shape [2, 2] has 4 elements, which don't fit the shape [1, 2]";
    let sizes = "size 2 in dimension 0 of \"x\", size 2 in dimension 0 of \"w\"";
    assert_eq!((ran.code, ran.err), (Some(0), format!("note: it doesn't run with {sizes}: {why}\n")));
    assert!(ran.out.ends_with("proved: 2 outputs are the same, bit by bit\n"), "{}", ran.out);
    let ran = edit(&bench, "set", &["--dim", "x.0=n", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["other_sizes"], format!("with size 2 in dimension 0 of \"x\": {why}"));
    // This one follows.
    let ran = edit(&bench, "set", &["--dim", "w.0=n"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn weights_move_out_and_in() {
    let bench = model();
    let ran = edit(&bench, "set", &["--external", "weights.bin", "--external-threshold", "12"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains(": 4 nodes, external data in weights.bin (12 bytes)\n"), "{}", ran.out);
    assert_eq!(std::fs::read(bench.path("weights.bin")).unwrap().len(), 12);
    assert_eq!(bench.files(), ["out.onnx", "weights.bin"]);
    let (from, to) = (bench.text("out.onnx"), bench.text("in.onnx"));
    let ran = onnxref(["set", &from, "--embed", "-o", &to]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let [document, first] = ["in.onnx", "model.onnx"].map(|name| Document::read(bench.path(name)).unwrap());
    assert_eq!(document.graph.initializers[0].raw_data, first.graph.initializers[0].raw_data);
}

#[test]
fn what_cannot_be_loaded_is_changed_without_a_proof() {
    let text = r#"<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[2] x) => (y) { y = own.Thing (x) }"#;
    let bench = Bench::new(&Document::from_text(text).unwrap().to_bytes().unwrap());
    let ran = edit(&bench, "set", &["--rename", "x=first"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.starts_with("note: not proved: the model can't be loaded: "), "{}", ran.err);
    assert_eq!(names(&written(&bench).graph.inputs), ["first"]);
}

/// Weights of mapped files leave memory after each node, and come back for the next one.
#[test]
fn mapped_weights_are_read_again() {
    let weights =
        Tensor::from_elements(&[256, 256], (0..256 * 256).map(|k| (k % 7) as f32).collect::<Vec<f32>>()).unwrap();
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, [1i64, 256]))
        .initializer(Initializer::new("w", &weights))
        .node(Node::new("MatMul", ["x", "w"], ["a"]))
        .node(Node::new("MatMul", ["a", "w"], ["y"]))
        .output(ValueInfo::untyped("y"));
    let bench = Bench::new(&Document::new(graph, 21).to_bytes().unwrap());
    assert_eq!(edit(&bench, "set", &["--external", "w.bin"]).code, Some(0));
    let (from, to) = (bench.text("out.onnx"), bench.text("mapped.onnx"));
    let ran = onnxref(["set", &from, "--mmap", "--rename", "a=b", "-o", &to]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.ends_with("proved: 1 output is the same, bit by bit\n"), "{}", ran.out);
}

/// Nothing is compared, so nothing is proved.
#[test]
fn a_model_without_outputs() {
    let graph = Graph::new("g").input(ValueInfo::tensor("x", DType::Float, [1i64]));
    let graph = graph.node(Node::new("Neg", ["x"], ["y"]));
    let bench = Bench::new(&Document::new(graph, 21).to_bytes().unwrap());
    let ran = edit(&bench, "set", &["--dim", "x.1=2"]);
    refused(&ran, &bench, 2, "--dim x.1=2: input \"x\" has 1 dimension: there is no dimension 1");
    for (verb, more) in [("set", &["--metadata", "a=b"][..]), ("simplify", &[])] {
        let ran = edit(&bench, verb, more);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), "note: not proved: the model has no outputs\n"), "{verb}");
        assert_eq!(ran.out.lines().count(), 1, "{verb}");
    }
}

/// Data isn't written over a file that stays.
#[test]
fn data_is_not_written_over() {
    let bench = model();
    let external = |place: &str| edit(&bench, "set", &["--external", place, "--external-threshold", "12"]);
    let [to, model] = ["out.onnx", "model.onnx"].map(|name| bench.text(name));
    let wrong = |place: &str, why: &str| format!("external data can't be written to {place}: {why}");
    refused(&external("out.onnx"), &bench, 2, &wrong(&to, "the model goes there"));
    refused(&external("model.onnx"), &bench, 2, &wrong(&model, &format!("it is a file of {model}")));
    let outside = "--external: external data at \"../w.bin\": a path inside the model's folder is needed";
    refused(&external("../w.bin"), &bench, 2, outside);
    assert_eq!(external("weights.bin").code, Some(0));
    let (other, data) = (bench.text("other.onnx"), bench.text("weights.bin"));
    let again = |place: &str| onnxref(["set", &to, "--external", "weights.bin", "-o", place]);
    let ran = again(&other);
    assert_eq!((ran.code, ran.err), (Some(2), format!("error: {}\n", wrong(&data, &format!("it is a file of {to}")))));
    // The model that is replaced takes its data along.
    assert_eq!(again(&to).code, Some(0));
    assert_eq!(std::fs::read(&data).unwrap(), [1f32, 2.0, 3.0].map(f32::to_le_bytes).concat());
}

#[test]
fn what_cannot_be_set() {
    let bench = model();
    let refuse = |arguments: &[&str], text: &str| refused(&edit(&bench, "set", arguments), &bench, 2, text);
    refuse(&["--rename", "x=one"], "--rename: there is a value \"one\" already");
    refuse(&["--dim", "k.1=2"], "--dim k.1=2: there is no input \"k\"");
    let digits = "n=99999999999999999999";
    refuse(&["--dim", digits], &format!("--dim {digits}: a size is below 2^63"));
    refuse(&["--rename", "summ=a"], "--rename: the graph has no value \"summ\": did you mean \"sum\"?");
    refuse(&["--rename", "x"], "--rename x: expected OLD=NEW");
    refuse(&["--dim", "k=1"], "--dim k=1: no shape has the symbol \"k\"");
    refuse(&["--dim", "x.2=1"], "--dim x.2=1: input \"x\" has 2 dimensions: there is no dimension 2");
    refuse(&["--dim", "n=-1"], "--dim n=-1: a size is a number, the name of a symbol, or ?");
    refuse(&["--drop-output", "x"], "--drop-output x: it is not an output; the outputs: \"y\", \"z\"");
    refuse(&["--drop-metadata", "x"], "--drop-metadata x: there is no such entry; the keys: none");
}

#[test]
fn what_differs_is_not_written() {
    // A Reshape to 2 rows, so that 4 don't fit.
    let shape = Tensor::from_elements(&[2], vec![2i64, 3]).unwrap();
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, [2i64, 3]))
        .initializer(Initializer::new("shape", &shape))
        .node(Node::new("Reshape", ["x", "shape"], ["y"]))
        .output(ValueInfo::tensor("y", DType::Float, [2i64, 3]));
    let bench = Bench::new(&Document::new(graph, 21).to_bytes().unwrap());
    let ran = edit(&bench, "set", &["--dim", "x.0=4"]);
    assert_ne!(ran.code, Some(0), "{}", ran.out);
    assert_eq!(bench.files(), [""; 0]);
}

#[test]
fn what_need_not_run_goes() {
    let random = Node::new("RandomNormal", [""; 0], ["noise"]).attribute("shape", vec![3i64]).attribute("seed", 1f32);
    let body = |operator: &str, name: &str| {
        let graph = Graph::new(name).node(Node::new("Identity", ["twice"], [format!("{name}_same")]));
        let graph = graph.node(Node::new("Exp", ["twice"], [format!("{name}_unread")]));
        graph.node(Node::new(operator, [format!("{name}_same")], [name])).output(ValueInfo::untyped(name))
    };
    let branch = Node::new("If", ["up"], ["z"]);
    let branch = branch.attribute("then_branch", body("Abs", "one")).attribute("else_branch", body("Neg", "other"));
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, [3i64]))
        .input(ValueInfo::tensor("up", DType::Bool, [0i64; 0]))
        .initializer(Initializer::new("a", &Tensor::from(vec![1f32, 2.0, 3.0])))
        .initializer(Initializer::new("unread", &Tensor::from(vec![1f32])))
        .initializer(Initializer::new("large", &Tensor::from(vec![1000i64])))
        .node(random)
        .node(Node::new("ConstantOfShape", ["large"], ["zeros"]))
        .node(Node::new("ReduceSum", ["zeros"], ["zero"]).attribute("keepdims", 0))
        .node(Node::new("Neg", ["a"], ["b"]))
        .node(Node::new("Identity", ["b"], ["c"]))
        .node(Node::new("Add", ["x", "c"], ["sum"]))
        .node(Node::new("Identity", ["sum"], ["twice"]))
        .node(Node::new("Exp", ["twice"], ["nobody"]))
        .node(branch)
        .node(Node::new("Add", ["twice", "noise"], ["y"]))
        .node(Node::new("Add", ["y", "zero"], ["w"]))
        .output(ValueInfo::tensor("w", DType::Float, [3i64]))
        .output(ValueInfo::tensor("z", DType::Float, [3i64]));
    let bench = Bench::new(&Document::new(graph, 21).to_bytes().unwrap());
    let ran = edit(&bench, "simplify", &["--max-bytes", "100"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let out = ": 5 of 11 nodes\nproved: 2 outputs are the same, bit by bit\n";
    assert!(ran.out.ends_with(out), "{}", ran.out);
    let graph = &written(&bench).graph;
    let operators: Vec<&str> = graph.nodes.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!(operators, ["RandomNormal", "Add", "If", "Add", "Add"]);
    let constants: Vec<&str> = graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(constants, ["zero", "c"]);
    let body = graph.nodes[2].bodies().next().unwrap();
    assert_eq!((body.nodes.len(), body.nodes[0].inputs[0].as_str()), (1, "sum"));
}

/// Two nodes whose axes become inputs, one of them in a body, and a Softmax over `axis`.
fn older(axis: i64) -> Bench {
    let body = |operator: &str, name: &str| {
        let node = Node::new(operator, ["soft"], [name]).attribute("axes", vec![0i64]);
        Graph::new(name).node(node).output(ValueInfo::untyped(name))
    };
    let branch = Node::new("If", ["up"], ["z"]);
    let branch =
        branch.attribute("then_branch", body("ReduceSum", "one")).attribute("else_branch", body("ReduceMax", "other"));
    let mut soft = Node::new("Softmax", ["flat"], ["soft"]).attribute("axis", axis);
    soft.name = "soften".to_string();
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, [1i64, 2, 3]))
        .input(ValueInfo::tensor("up", DType::Bool, [0i64; 0]))
        .node(Node::new("Squeeze", ["x"], ["flat"]).attribute("axes", vec![0i64]))
        .node(soft)
        .node(branch)
        .output(ValueInfo::tensor("soft", DType::Float, [2i64, 3]))
        .output(ValueInfo::untyped("z"));
    let mut document = Document::new(graph, 11);
    document.ir_version = Some(6);
    Bench::new(&document.to_bytes().unwrap())
}

#[test]
fn attributes_become_inputs_in_a_later_opset() {
    let bench = older(1);
    let ran = edit(&bench, "convert", &["--opset", "22"]);
    let out = format!("{}: 3 nodes\nproved: 2 outputs are the same, bit by bit\n", bench.text("out.onnx"));
    assert_eq!((ran.code, ran.err.as_str(), ran.out), (Some(0), "", out));
    let document = written(&bench);
    assert_eq!((document.ir_version, document.opset_imports[0].version), (Some(10), Some(22)));
    let nodes = &document.graph.nodes;
    assert_eq!(nodes[0].inputs, ["x", "flat_axes"]);
    assert_eq!(nodes[1].get("axis"), Some(&1i64.into()));
    let names: Vec<&str> = document.graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["flat_axes"]);
    for body in nodes[2].bodies() {
        let axes = format!("{}_axes", body.name);
        assert_eq!(
            (body.nodes[0].inputs[1].as_str(), body.initializers[0].name.as_str()),
            (axes.as_str(), axes.as_str())
        );
        assert!(body.nodes[0].attributes.is_empty());
    }
}

/// Softmax over several axes becomes that of a matrix.
#[test]
fn several_axes_become_a_matrix() {
    let bench = older(0);
    let ran = edit(&bench, "convert", &["--opset", "22"]);
    let out = format!("{}: 6 of 3 nodes\nproved: 2 outputs are the same, bit by bit\n", bench.text("out.onnx"));
    assert_eq!((ran.code, ran.err.as_str(), ran.out), (Some(0), "", out));
    let document = written(&bench);
    let operators: Vec<&str> = document.graph.nodes.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!(operators, ["Squeeze", "Flatten", "Shape", "Softmax", "Reshape", "If"]);
    assert_eq!(document.graph.nodes[4].get("allowzero"), Some(&1i64.into()));
}

#[test]
fn what_cannot_be_converted() {
    let text = r#"<ir_version: 6, opset_import: ["" : 10]>
        g (int64[2] x) => (float[2, 3] y) <int64 depth = {3}, float[2] values = {0, 1}>
        { [hot] y = OneHot (x, depth, values) }"#;
    let bench = Bench::new(&Document::from_text(text).unwrap().to_bytes().unwrap());
    let refuse = |opset: &str, code: i32, text: &str| {
        refused(&edit(&bench, "convert", &["--opset", opset]), &bench, code, text);
    };
    let node = "node \"hot\" (OneHot-9): negative indices select nothing, and those of OneHot-11 count from the end";
    refuse("22", 3, &format!("the model can't be converted to opset 22, and nothing is written:\n  {node}"));
    refuse("9", 2, "--opset: opset 9: the model has opset 10 already, and models are converted to later ones only");
    refuse("99", 2, "--opset: opset 99: allowed 1..=28");
}

/// `z` is the row of `rows` that `at` says, or its negative; a function that doubles what it gets is called twice.
fn picky() -> Bench {
    let text = r#"<ir_version: 10, opset_import: ["" : 21, "l" : 1]>
        g (float[3, 2] rows, int64 at, bool up) => (z)
        {
            row = Gather (rows, at)
            z = If (up) <
                then_branch: graph = one () => (then_z) { then_d = l.Double (row) then_z = Abs (then_d) },
                else_branch: graph = other () => (else_z) { else_z = Neg (row) }>
            all = l.Double (rows)
        }
        <domain: "l", opset_import: ["" : 21]>
        Double (x) => (y) { same = Identity (x) unread = Neg (x) half = Abs (same) y = Add (half, same) }"#;
    Bench::new(&Document::from_text(text).unwrap().to_bytes().unwrap())
}

#[test]
fn a_proof_has_the_inputs_that_are_given() {
    let bench = picky();
    let ran = edit(&bench, "set", &["--rename", "row=line", "-i", "at=2", "--input", "up=true"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.ends_with("proved: 1 output is the same, bit by bit\n"), "{}", ran.out);
    // There is no such row.
    let ran = edit(&bench, "set", &["--rename", "row=line", "-i", "at=9"]);
    let why =
        "indices = 9 is out of range for axis 0 of \"data\" (value \"rows\"), which has 3 entries: allowed -3..=2";
    let note = format!("note: not proved: the model doesn't run on these inputs: node #0 (Gather-13): {why}\n");
    assert_eq!((ran.code, ran.err), (Some(0), note));
    // A part doesn't need it.
    let ran = edit(&bench, "extract", &["--outputs", "all", "-i", "at=9"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.ends_with("proved: 1 output is the same, bit by bit\n"), "{}", ran.out);
    std::fs::remove_file(bench.path("out.onnx")).unwrap();
    let refuse = |arguments: &[&str], text: &str| refused(&edit(&bench, "simplify", arguments), &bench, 2, text);
    refuse(&["-i", "at=[1]"], "-i: input \"at\" has shape [1] of rank 1, but the model expects rank 0");
    refuse(&["-i", "up=true", "-i", "up=true"], "input \"up\" is given twice");
    let text = "input \"att\" is not an input of the model, which takes \"rows\", \"at\", \"up\"";
    refuse(&["-i", "att=1"], text);
}

#[test]
fn shapes_are_declared_in_bodies_and_functions() {
    let bench = picky();
    let ran = edit(&bench, "set", &["--shapes", "-i", "at=0"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let document = written(&bench);
    let sizes = |info: &ValueInfo| info.dims().map(|dims| dims.iter().map(|dim| dim.size.clone()).collect::<Vec<_>>());
    assert_eq!(sizes(&document.graph.outputs[0]), Some(vec![Size::Fixed(2)]));
    let bodies: Vec<_> = document.graph.nodes[1].bodies().collect();
    assert_eq!(sizes(&bodies[1].outputs[0]), Some(vec![Size::Fixed(2)]));
    assert_eq!(names(&bodies[0].value_info), ["then_d"]);
    // Calls have different ranks.
    assert_eq!(names(&document.functions[0].value_info), [""; 0]);
    let one = Document::from_text(&document.to_text().unwrap().replace("all = l.Double (rows)", "")).unwrap();
    let other = Bench::new(&one.to_bytes().unwrap());
    assert_eq!(edit(&other, "set", &["--shapes", "-i", "at=0"]).code, Some(0));
    let function = &written(&other).functions[0];
    assert_eq!(names(&function.value_info), ["same", "unread", "half"]);
    assert_eq!(sizes(&function.value_info[2]), Some(vec![Size::Fixed(2)]));
}

#[test]
fn what_is_random_is_not_compared() {
    let text = r#"<ir_version: 10, opset_import: ["" : 21]> g (float[9] x) => (float[9] y, float[9] z)
        { y = RandomUniformLike (x) z = Neg (x) }"#;
    let bench = Bench::new(&Document::from_text(text).unwrap().to_bytes().unwrap());
    let ran = edit(&bench, "set", &["--rename", "x=w"]);
    assert!(ran.code == Some(0) && ran.out.ends_with("proved: 1 output is the same, bit by bit\n"), "{ran:?}");
    let ran = edit(&bench, "extract", &["--outputs", "y"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), "note: not proved: the model is random\n"));
}

#[test]
fn functions_are_simplified() {
    let bench = picky();
    let ran = edit(&bench, "simplify", &["-i", "at=1"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let function = &written(&bench).functions[0];
    let operators: Vec<&str> = function.nodes.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!((operators, function.nodes[0].inputs[0].as_str()), (vec!["Abs", "Add"], "x"));
}

#[test]
fn text_is_known_by_its_content() {
    let bench = picky();
    let text = Document::read(bench.path("model.onnx")).unwrap().to_text().unwrap();
    let run = |verb: &[&str], text: &str| {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let mut command = Command::new(env!("CARGO_BIN_EXE_onnxref"));
        command.args(verb).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let rows = "rows=[[1, 2], [3, 4], [5, 6]]";
    let ran = run(&["run", "-", "-i", rows, "-i", "at=1", "-i", "up=false", "-q"], &format!("# a row\n{text}"));
    assert_eq!((ran.0, ran.2.as_str()), (Some(0), ""));
    assert!(ran.1.contains("[-3, -4]"), "{}", ran.1);
    let to = bench.text("out.onnx");
    assert_eq!(run(&["extract", "-", "--outputs", "row", "-i", "at=0", "-o", &to], &text).0, Some(0));
    assert_eq!(written(&bench).graph.nodes.len(), 1);
    let ran = run(&["inspect", "-"], "<ir_version: 10> g () (");
    assert_eq!(ran.2, "error: standard input: line 1, column 23: expected `=>`, found `(`\n");
}
