//! Changes of models whose bodies use a name again: of a value that is computed later, or of a size.

use crate::common::{Bench, Ran, onnxref};
use onnxref::document::{Document, Graph, Size};

fn bench(text: &str) -> Bench {
    Bench::new(&Document::from_text(text).unwrap().to_bytes().unwrap())
}

fn edit(bench: &Bench, verb: &str, arguments: &[&str]) -> Ran {
    let (model, to) = (bench.text("model.onnx"), bench.text("out.onnx"));
    onnxref([&[verb, &model, "-o", &to], arguments].concat())
}

#[track_caller]
fn proved(bench: &Bench, verb: &str, arguments: &[&str]) -> Document {
    let ran = edit(bench, verb, arguments);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("\nproved: "), "{}", ran.out);
    Document::read(bench.path("out.onnx")).unwrap()
}

fn body(document: &Document, node: usize) -> &Graph {
    document.graph.nodes[node].bodies().next().unwrap()
}

/// Values of bodies that have names of values that the graph computes later.
const LATER: &str = r#"<ir_version: 10, opset_import: ["" : 21]>
    g (bool c, float[N, 3] x) => (float[N, 3] z) <float two = {2}> {
        y = If (c) <then_branch = t () => (k) {
            m = Neg (x)
            k = If (c) <then_branch = u () => (p) { p = Exp (m) }, else_branch = v () => (m_2) { m_2 = Abs (m) }>
        }, else_branch = e () => (k) { k = Abs (x) }>
        k = Mul (two, two)
        l = Mul (y, k)
        m = Neg (l)
        z = Add (l, m)
    }"#;

/// What becomes an initializer or an input is seen in all bodies.
#[test]
fn a_body_has_a_name_that_the_graph_uses_later() {
    let bench = bench(LATER);
    for c in ["c=true", "c=false"] {
        let document = proved(&bench, "simplify", &["-i", c]);
        let graph = &document.graph;
        let nodes: Vec<(&str, &str)> =
            graph.nodes.iter().map(|node| (node.op_type.as_str(), node.outputs[0].as_str())).collect();
        assert_eq!(nodes, [("If", "y"), ("Constant", "k"), ("Mul", "l"), ("Neg", "m"), ("Add", "z")]);
        assert_eq!(graph.initializers.len(), 0);
        let document = proved(&bench, "extract", &["--inputs", "c,x,k,m", "-i", c]);
        assert_eq!(body(&document, 0).outputs[0].name, "k_2");
        let nodes: Vec<(&str, &str)> =
            body(&document, 0).nodes.iter().map(|node| (node.op_type.as_str(), node.outputs[0].as_str())).collect();
        assert_eq!(nodes, [("Neg", "m_3"), ("If", "k_2")]);
        assert_eq!(body(&document, 0).nodes[1].bodies().next().unwrap().nodes[0].inputs, ["m_3"]);
    }
}

fn sizes(info: &onnxref::document::ValueInfo) -> Vec<Size> {
    info.dims().unwrap().iter().map(|dim| dim.size.clone()).collect()
}

/// In a body, a symbol of the graph may stand for another size.
#[test]
fn a_body_calls_another_size_like_the_graph() {
    let bench = bench(
        r#"<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (int64 n, bool c, float[N, 3] x, float[W] w) => (float[W] y, float[N, 3] z, float[W] u) {
            y = Loop (n, "", w) <body = b (int64 i, bool go, float[N] s) => (bool on, float[N] t) {
                on = Identity (go)
                t = Neg (s)
            }>
            z = If (c) <then_branch = t () => (float[N, 3] p) <float[N, N] q> {
                q = Neg (x)
                p = Neg (q)
            }, else_branch = e () => (q) { q = Abs (x) }>
            u = own.F (w)
        }
        <domain: "own", opset_import: ["" : 21]>
        F (x) => (y) <float[N] v> {
            v = Neg (x)
            y = Neg (v)
        }"#,
    );
    let [number, name] = [Size::Fixed(4), Size::Symbol("rows".to_string())];
    for (flag, new) in [("N=4", &number), ("N=rows", &name)] {
        let document = proved(&bench, "set", &["--dim", flag, "-i", "n=2"]);
        let ran = onnxref(["run", &bench.text("out.onnx"), "--random", "-q", "--set", "W=3", "-i", "n=2"]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert_eq!(sizes(&document.graph.inputs[2]), [new.clone(), Size::Fixed(3)]);
        let trip = body(&document, 0);
        assert_eq!((sizes(&trip.inputs[2]), sizes(&trip.outputs[1])), (vec![Size::Unknown], vec![Size::Unknown]));
        let branch = body(&document, 1);
        assert_eq!(sizes(&branch.outputs[0]), [new.clone(), Size::Fixed(3)]);
        assert_eq!(sizes(&branch.value_info[0]), [new.clone(), Size::Unknown]);
        assert_eq!(sizes(&document.functions[0].value_info[0]), [Size::Unknown]);
    }
}
