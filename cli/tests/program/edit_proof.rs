//! What verbs that change models prove, and what they say of the rest.

use crate::common::{Bench, Ran, bytes, check, onnxref};
use onnxref::document::{Document, Size};

fn bench(text: &str) -> Bench {
    Bench::new(&Document::from_text(text).unwrap().to_bytes().unwrap())
}

fn edit(bench: &Bench, verb: &str, arguments: &[&str]) -> Ran {
    let (model, to) = (bench.text("model.onnx"), bench.text("out.onnx"));
    onnxref([&[verb, &model, "-o", &to], arguments].concat())
}

fn written(bench: &Bench) -> Document {
    Document::read(bench.path("out.onnx")).unwrap()
}

fn sizes(info: &onnxref::document::ValueInfo) -> Vec<Size> {
    info.dims().unwrap().iter().map(|dim| dim.size.clone()).collect()
}

const LOOP: &str = r#"<ir_version: 6, opset_import: ["" : 11]>
    g (float[?, 3] x, int64 n) => (float[?, ?] y) {
        y = Loop (n, "") <body = b (int64[1] i, bool c) => (bool on, float[3] row, float[?] open) {
            k = Squeeze <axes = [0]> (i)
            row = Gather <axis = 0> (x, k)
            open = Identity (row)
            on = Identity (c)
        }> z
    }"#;

/// A Loop passes a number of the rank that its body declares, and without a trip it gives the sizes that are declared.
#[test]
fn shapes_of_bodies_keep_their_meaning() {
    let bench = bench(
        &LOOP.replace("y = Loop", "y, z = Loop").replace("}> z", "}>").replace("y) {\n", "y, float[?, ?] z) {\n"),
    );
    for trips in ["n=0", "n=2"] {
        let ran = edit(&bench, "set", &["--dim", "x.0=N", "-i", trips]);
        assert!(ran.code == Some(0) && ran.err.is_empty(), "{ran:?}");
        assert!(ran.out.ends_with("proved: 2 outputs are the same, bit by bit\n"), "{ran:?}");
    }
    let document = written(&bench);
    let body = document.graph.nodes[0].bodies().next().unwrap();
    assert_eq!((sizes(&body.inputs[0]), sizes(&body.inputs[1])), (vec![Size::Fixed(1)], vec![]));
    let outputs: Vec<_> = body.outputs.iter().map(|info| sizes(info)).collect();
    assert_eq!(outputs, [vec![], vec![Size::Fixed(3)], vec![Size::Unknown]]);
}

#[test]
fn an_output_keeps_its_rank() {
    let bench = bench(
        r#"<ir_version: 8, opset_import: ["" : 13]>
        g (float[?, 4] x, int64[r] s) => (float[a, b] y) { y = Reshape (x, s) }"#,
    );
    let ran = edit(&bench, "set", &["--dim", "x.0=N", "--no-prove"]);
    assert_eq!((ran.code, sizes(&written(&bench).graph.outputs[0])), (Some(0), vec![Size::Unknown; 2]));
}

#[test]
fn a_size_that_no_input_of_both_has() {
    let bench = bench(
        r#"<ir_version: 8, opset_import: ["" : 13]>
        g (float[1, 4] x, float[4] w) => (float[1, 4] y) { y = Add (x, w) }"#,
    );
    let out = format!("{}: 1 node\n", bench.text("out.onnx"));
    let note = "note: not proved: dimension 0 of \"x\" was 1 and is 8: no input fits both models\n";
    check(edit(&bench, "set", &["--dim", "x.0=8", "-i", "w=[1, 2, 3, 4]"]), 0, &out, note);
    let graph = &written(&bench).graph;
    assert_eq!(
        (sizes(&graph.inputs[0]), sizes(&graph.outputs[0])),
        (vec![Size::Fixed(8), Size::Fixed(4)], vec![Size::Fixed(8), Size::Fixed(4)])
    );
    std::fs::remove_file(bench.path("out.onnx")).unwrap();
    let ran = edit(&bench, "set", &["--dim", "x.1=3"]);
    let err = "note: in the changed model, node #0 (Add-13): the shapes [1, 3], [4] don't broadcast: dimension 1 is 3 and 4\n\
               error: the change is not proved, and nothing is written: dimension 1 of \"x\" was 4 and is 3: no input fits \
               both models, and of the changed one, the model doesn't run on random inputs (-i gives others): node #0 ";
    assert!(ran.code == Some(1) && ran.err.starts_with(err), "{ran:?}");
    let split = self::bench(
        r#"<ir_version: 8, opset_import: ["" : 13]>
        g (float[4] x, int64[1] s) => (float[n] y) { y = Reshape (x, s) }"#,
    );
    let ran = edit(&split, "set", &["--dim", "x.0=3", "-i", "s=[4]"]);
    let err = "error: the change is not proved, and nothing is written: dimension 0 of \"x\" was 4 and is 3: no input fits \
               both models, and of the changed one, the model doesn't run on these inputs: ";
    assert!(
        ran.code == Some(1) && ran.err.starts_with(err) && ran.err.ends_with(" (--no-prove writes it)\n"),
        "{ran:?}"
    );
    assert_eq!(edit(&split, "set", &["--dim", "x.0=3", "--no-prove"]).code, Some(0));
}

#[test]
fn declarations_that_no_longer_agree() {
    let bench = bench(
        r#"<ir_version: 8, opset_import: ["" : 13]>
        g (float[batch, 3, 3] x) => (float[batch, 3] y) <int64 zero = {0}> { y = Gather <axis = 0> (x, zero) }"#,
    );
    let ran = edit(&bench, "set", &["--dim", "batch=2"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        ran.err,
        "note: in the changed model, node #0 (Gather-13): output \"y\" has shape [3, 3], but is declared as [2, 3]\n"
    );
    assert_eq!(edit(&bench, "set", &["--dim", "batch=N"]).err, "");
}

#[test]
fn random_outputs_are_counted() {
    let bench = bench(
        r#"<ir_version: 10, opset_import: ["" : 21]> g (float[9] x) => (float[9] y, float[9] z)
        { y = RandomUniformLike (x) z = Neg (x) }"#,
    );
    let ran = edit(&bench, "set", &["--rename", "x=w"]);
    assert!(ran.out.ends_with("proved: 1 output is the same, bit by bit\n"), "{ran:?}");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), "note: 1 output is random and not compared\n"));
    let ran = edit(&bench, "set", &["--rename", "x=w", "--json"]);
    assert!(ran.out.ends_with("\"proof\":\"equal\",\"detail\":1,\"random\":1}\n"), "{ran:?}");
}

/// A Loop that the output doesn't need would run for days; a node fails.
#[test]
fn only_what_is_needed_runs() {
    let bench = bench(
        r#"<ir_version: 10, opset_import: ["" : 21]>
        g (float[3] x) => (float[3] y, float[3] z) <int64 trips = {1099511627776}, int64[1] two = {2}> {
            y = Loop (trips, "", x) <body = b (int64 i, bool c, float[3] a) => (bool on, float[3] d) {
                on = Identity (c)
                d = Neg (a)
            }>
            failing = Reshape (x, two)
            z = Abs (x)
        }"#,
    );
    let ran = edit(&bench, "extract", &["--outputs", "z", "--timeout", "20"]);
    let out = format!("{}: 1 of 3 nodes\nproved: 1 output is the same, bit by bit\n", bench.text("out.onnx"));
    check(ran, 0, &out, "");
    let ran = edit(&bench, "set", &["--drop-output", "y", "--timeout", "20"]);
    let out = format!("{}: 3 nodes\nproved: 1 output is the same, bit by bit\n", bench.text("out.onnx"));
    check(ran, 0, &out, "");
}

#[test]
fn bodies_have_their_constants_computed() {
    let bench = bench(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        g (bool c, float[2] x, int64 n) => (float[2] y, float[2] z) <float[2] v = {5.0, 6.0}> {
            y = If (c) <
                then_branch = t () => (float[2] t) <float[2] w = {1.0, 2.0}> { a = Neg (w) b = Identity (a) t = Add (x, b) },
                else_branch = e () => (float[2] e) { p = Neg (v) q = Abs (p) e = Mul (x, q) }
            >
            z = Loop (n, "", x) <body = b (int64 i, bool k, float[2] s) => (bool on, float[2] r) {
                on = Identity (k)
                m = Sqrt (v)
                r = Add (s, m)
            }>
        }"#,
    );
    let ran = edit(&bench, "simplify", &[]);
    assert!(ran.code == Some(0) && ran.out.ends_with("proved: 2 outputs are the same, bit by bit\n"), "{ran:?}");
    let document = written(&bench);
    let bodies: Vec<_> = document.graph.nodes.iter().flat_map(|node| node.bodies()).collect();
    let operators: Vec<Vec<&str>> =
        bodies.iter().map(|body| body.nodes.iter().map(|node| node.op_type.as_str()).collect()).collect();
    assert_eq!(operators, [vec!["Add"], vec!["Mul"], vec!["Identity", "Add"]]);
    let constants: Vec<Vec<&str>> =
        bodies.iter().map(|body| body.initializers.iter().map(|tensor| tensor.name.as_str()).collect()).collect();
    assert_eq!(constants, [["b"], ["q"], ["m"]]);
    assert!(document.graph.initializers.is_empty());
}

/// A function of the model may have the name of an operator of the standard.
#[test]
fn a_function_called_identity_stays() {
    let bench = bench(
        r#"<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { z = Identity (x) y = Relu (z) }
        <domain: "", opset_import: ["" : 17]> Identity (a) => (b) { b = Neg (a) }"#,
    );
    let ran = edit(&bench, "simplify", &[]);
    check(ran, 0, &format!("{}: 2 nodes\nproved: 1 output is the same, bit by bit\n", bench.text("out.onnx")), "");
}

#[test]
fn what_tells_of_training_goes_with_what_it_tells_of() {
    let text = r#"<ir_version: 8, opset_import: ["" : 12]>
        g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { v = Identity (w) y = Add (x, v) }"#;
    let model = Document::from_text(text).unwrap().to_bytes().unwrap();
    let bench = Bench::new(&[&model[..], &bytes(20, &bytes(1, &bytes(2, b"start")))].concat());
    let note = "note: what says how to train the model is dropped (training_info): it may tell of what is gone\n";
    let verbs: [(&str, &[&str]); 4] = [
        ("simplify", &[]),
        ("set", &["--rename", "x=u"]),
        ("convert", &["--opset", "13"]),
        ("extract", &["--outputs", "y"]),
    ];
    for (verb, arguments) in verbs {
        let ran = edit(&bench, verb, arguments);
        assert_eq!((ran.code, ran.err.as_str(), written(&bench).has_training()), (Some(0), note, false), "{verb}");
    }
    let ran = edit(&bench, "set", &["--metadata", "k=v"]);
    assert_eq!((ran.code, ran.err.as_str(), written(&bench).has_training()), (Some(0), "", true));
}

/// What is proved is what the text is read as, and that has the bits of NaNs.
#[test]
fn a_text_has_the_bits_that_are_proved() {
    let text = r#"<ir_version: 13, opset_import: ["" : 26]> g () => (int32[3] y) <float[3] w = {
        #: 0xff800001
        -nan,
        #: 0x7fc12345
        nan, -nan}> { y = BitCast <to = 6> (w) }"#;
    let (bench, values) = (bench(text), "[-8388607, 2143363909, -4194304]");
    let (model, to) = (bench.text("model.onnx"), bench.text("out.onnxtxt"));
    let ran = onnxref(["set", &model, "-o", &to]);
    assert!(ran.code == Some(0) && ran.out.ends_with("proved: 1 output is the same, bit by bit\n"), "{ran:?}");
    for path in [&model, &to] {
        let ran = onnxref(["run", path]);
        assert!(ran.out.contains(values), "{path}: {ran:?}");
    }
    // What the text can't express is refused before anything runs.
    let mut document = Document::read(&to).unwrap();
    document.graph.outputs[0].value_type.as_mut().unwrap().denotation = "IMAGE".to_string();
    std::fs::write(&model, document.to_bytes().unwrap()).unwrap();
    for more in [&[][..], &["--no-prove"]] {
        let ran = onnxref([&["set", &model, "-o", &to], more].concat());
        check(ran, 2, "", "error: the text form can't express the denotation of a type: write an .onnx file\n");
    }
}
