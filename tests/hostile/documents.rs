//! Models that are changed: texts and files that would take more memory or time than they may.

use crate::case::{STACK, on_thread, text_faults};
use crate::memory::peak_of;
use onnxref::document::{Attribute, AttributeValue, Document, Entry, Function, Graph, Initializer, Node, ValueInfo};
use onnxref::{DType, Error, Kind, Limits, LoadOptions, Model};

/// Memory that reading may take, whatever the size of the text.
const LOAD_BYTES: u64 = 1 << 20;

fn options() -> LoadOptions {
    let limits = |limits: &mut Limits| (limits.load_bytes, limits.load_bytes_per_byte) = (LOAD_BYTES, 0);
    Model::options().change_limits(limits)
}

fn in_time<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    on_thread(name, STACK, work).unwrap_or_else(|fate| panic!("{name} {fate}"))
}

fn kind_of<T>(result: Result<T, Error>) -> Option<Kind> {
    let error = result.err()?;
    assert_eq!(text_faults(&error), Vec::<String>::new());
    Some(error.kind())
}

/// Texts whose parts take more than their bytes: each ends at the limit, and before its memory is taken.
#[test]
fn texts_take_what_they_may() {
    const N: usize = 1 << 20;
    let graph = |before: &str, what: &str, between: &str, after: &str| {
        format!("<ir_version: 10> g () => () {before}{}{after} {{}}", vec![what; N].join(between))
    };
    let texts = [
        ("elements", graph("<double[1048576] w = {", "1", ",", "}>")),
        ("more elements than the shape has", graph("<double[2] w = {", "1", ",", "}>")),
        ("packed elements", graph("<int4[4194304] w = {", "1", ",", "}>")),
        ("strings", graph("<string[1048576] w = {", "\"\"", ",", "}>")),
        ("dimensions", graph("<float[", "1", ",", "] w>")),
        ("values", graph("<", "a", ",", ">")),
        ("entries", graph("<float[1] w = [", "\"\":\"\"", ",", "]>")),
        ("imports", format!("<opset_import: [{}]> g () => () {{}}", vec!["\"\":1"; N].join(","))),
        ("a long string", format!("<producer_name: \"{}\"> g () => () {{}}", "a".repeat(2 * N))),
        ("long keys", format!("<metadata_props: [\"{}\": \"\"]> g () => () {{}}", "\\a".repeat(2 * N))),
        ("inputs", format!("g () => () {{ y = F ({}) }}", ",".repeat(N))),
        ("integers", format!("g () => () {{ y = F <a = [{}]> () }}", vec!["1"; N].join(","))),
        ("texts", format!("g () => () {{ y = F <a = [{}]> () }}", vec!["\"\""; N].join(","))),
        ("attributes", format!("g () => () {{ y = F <{}> () }}", vec!["a=1"; N].join(","))),
        ("nodes", format!("g () => () {{ {} }}", "y=F()".repeat(N))),
        ("functions", format!("g () => () {{}} {}", "f()=>(){}".repeat(N))),
    ];
    for (name, text) in texts {
        in_time(name, move || {
            let (result, peak) = peak_of(|| Document::from_text_with(&text, &options()));
            assert_eq!(kind_of(result), Some(Kind::Limit));
            assert!(peak.bytes < 2 * LOAD_BYTES + 4096, "{} bytes of memory", peak.bytes);
        });
    }
}

/// Shapes, numbers and names as nobody means them are refused, or cost what they say.
#[test]
fn texts_say_what_is_wrong() {
    let long = "a".repeat(1 << 20);
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    let body = "y = If (c) <then_branch = b () => () { ";
    let refused = [
        ("elements that are missing", "g () => () <float[1000000000] w = {1}> {}".to_string()),
        ("more than there can be", format!("g () => () <float[{0}, {0}, {0}] w = {{1}}> {{}}", i64::MAX)),
        ("a negative size", "g () => () <float[-1] w = {1}> {}".to_string()),
        ("a number of many digits", format!("g () => () {{ y = F <a = {}> () }}", "9".repeat(1 << 20))),
        ("a dimension of many digits", format!("g (float[{}] x) => () {{}}", "9".repeat(1 << 20))),
        ("a long word", format!("g () => () {{ y = F <a = {long}> () }}")),
        ("a long type", format!("g ({long}[1] x) => () {{}}")),
        ("no end of a string", format!("g () => () {{ y = F <a = \"{long}")),
        ("no end of a backslash", format!("g () => () {{ y = F <a = \"{long}\\")),
        ("a long note", format!("g () => () {{\n#: input \"{long}\u{1b}\" doc_string: \"a\"\n}}")),
        ("bodies in bodies", format!("g () => () {{ {}", deep(body, "}>"))),
        ("types in types", format!("g ({}", deep("seq(", ")"))),
        ("maps in maps", format!("g ({}", deep("map(int64, ", ")"))),
        ("lists in lists", format!("g () => () {{ y = F <a = {}> () }}", deep("[", "]"))),
        ("zeros", "\0".repeat(1 << 20)),
        ("zeros in names", "g (\0) => () {}".to_string()),
    ];
    for (name, text) in refused {
        let kind = in_time(name, move || kind_of(Document::from_text(&text)));
        assert_eq!(kind, Some(Kind::Model), "{name}");
    }
    let kept = "g (float[1000000000] \"a\0b\") => (y) { y = \"\0\" (\"a\0b\") }";
    let document = Document::from_text(kept).unwrap();
    assert_eq!((document.graph.inputs[0].name.as_str(), document.graph.nodes[0].op_type.as_str()), ("a\0b", "\0"));
    assert_eq!(Document::from_text(&document.to_text().unwrap()).unwrap().graph, document.graph);
}

/// A text ends at the limit for files.
#[test]
fn no_text_is_larger_than_a_file_may_be() {
    let weights = Initializer::new("w", &onnxref::Tensor::from(vec![0u8; 20_000]));
    let document = Document::new(Graph::new("g").initializer(weights), 22);
    let bytes = document.to_bytes().unwrap();
    let limits = |limits: &mut Limits| limits.file_bytes = 30_000;
    let document = Document::from_bytes_with(bytes, &Model::options().change_limits(limits)).unwrap();
    let (result, peak) = peak_of(|| document.to_text());
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::Limit);
    assert_eq!(format!("{error:#}"), "tensor \"w\": the text of the model has 30002 bytes: the limit is 30000");
    assert!(peak.bytes < 100_000, "{} bytes of memory", peak.bytes);
}

/// Functions that call each other: as many calls as paths, or endlessly.
#[test]
fn calls_are_not_followed_without_end() {
    let call = |name: String, from: &str, to: &str| Node::new(name, [from], [to]).domain("l");
    let function = |name: String, nodes: Vec<Node>| Function {
        name,
        domain: "l".to_string(),
        inputs: vec!["x".to_string()],
        outputs: vec!["y".to_string()],
        nodes: nodes.into_iter().map(Into::into).collect(),
        ..Function::default()
    };
    let graph = move || {
        let node = Node::new("f0", ["x"], ["y"]).domain("l");
        Graph::new("g").input(ValueInfo::tensor("x", DType::Float, ["n"])).node(node).output(ValueInfo::untyped("y"))
    };
    // Thirty levels of two calls, the same thirty with one name for all values, and a function that calls itself.
    let twice = |k: usize, between: &str| {
        vec![call(format!("f{}", k + 1), "x", between), call(format!("f{}", k + 1), between, "y")]
    };
    let mut chain = Document::new(graph(), 22);
    chain.functions = (0..30).map(|k| function(format!("f{k}"), twice(k, "a")).into()).collect();
    let mut same = chain.clone();
    same.functions = (0..30).map(|k| function(format!("f{k}"), twice(k, "y")).into()).collect();
    let mut cycle = Document::new(graph(), 22);
    let calls =
        vec![call("f0".to_string(), "x", "a"), call("f0".to_string(), "a", "b"), call("f0".to_string(), "b", "y")];
    cycle.functions = vec![function("f0".to_string(), calls).into()];
    for (name, document) in [("a chain", chain), ("one name", same), ("a cycle", cycle)] {
        in_time(name, move || {
            // What is known of the graph alone.
            let found = options().inspect_bytes(Document::new(graph(), 22).to_bytes().unwrap()).unwrap();
            assert!(found.error.is_some());
            let mut changed = document.clone();
            changed.declare_shapes(&found).unwrap();
            changed.simplify(&found, 1 << 20).unwrap();
            assert_eq!(changed.functions.len(), document.functions.len());
            document.clone().convert(&found, 24).unwrap();
        });
    }
}

/// Work that grows with the square of a model would take minutes here.
#[test]
fn large_models_are_changed_in_time() {
    const N: usize = 50_000;
    let mut graph = Graph::new("g").input(ValueInfo::tensor("x0", DType::Float, [2]));
    for k in 0..N {
        graph = graph.node(Node::new(format!("f{k}"), [format!("x{k}")], [format!("x{}", k + 1)]).domain("l"));
    }
    let mut document = Document::new(graph.output(ValueInfo::untyped(format!("x{N}"))), 22);
    document.functions = (0..N)
        .map(|k| Function { name: format!("f{k}"), domain: "l".to_string(), ..Function::default() }.into())
        .collect();
    in_time("functions that are called", {
        let mut document = document.clone();
        move || {
            document.keep_used();
            assert_eq!(document.functions.len(), N);
        }
    });
    in_time("values that become inputs and outputs", move || {
        let names: Vec<String> = (1..=N).map(|k| format!("x{k}")).collect();
        document.graph.value_info =
            names.iter().map(|name| ValueInfo::tensor(name, DType::Float, [2]).into()).collect();
        document.extract(Some(&names), Some(&names), &|_| None).unwrap();
        assert_eq!((document.graph.inputs.len(), document.graph.outputs.len()), (N, N));
    });
    // Nodes that give the same name aren't valid: the names of their constants don't get longer and longer.
    let mut graph = Graph::new("g").input(ValueInfo::tensor("x", DType::Float, [1, 2]));
    for _ in 0..N / 10 {
        graph = graph.node(Node::new("Squeeze", ["x"], ["y"]).attribute("axes", vec![0i64]));
    }
    let mut document = Document::new(graph, 11);
    in_time("names that are taken", move || {
        let found = document.inspect(&Model::options()).unwrap();
        let (done, peak) = peak_of(|| document.convert(&found, 13));
        done.unwrap();
        assert_eq!(document.graph.nodes[N / 10 - 1].inputs[1], format!("y_axes_{}", N / 10));
        assert!(peak.bytes < 400 * N as u64, "{} bytes of memory", peak.bytes);
    });
    let mut graph = Graph::new("g");
    for k in 0..N {
        graph = graph.input(ValueInfo::tensor(format!("x{k}"), DType::Float, [format!("n{k}").as_str()]));
    }
    let document = Document::new(graph, 11);
    assert_eq!(in_time("symbols", move || document.symbols().len()), N);
}

/// External data that isn't where a tensor says it is, or takes more than there can be.
#[test]
fn external_data_is_what_tensors_say() {
    let tensor = |dims: Vec<i64>, entries: &[(&str, &str)]| Initializer {
        name: "w".to_string(),
        dims,
        data_type: DType::Uint8.code(),
        data_location: 1,
        external_data: entries.iter().map(|(key, value)| Entry::new(*key, *value).into()).collect(),
        ..Initializer::default()
    };
    let huge = 1i64 << 62;
    let cases = [
        (
            vec![vec![2]],
            ("length", "18446744073709551615"),
            "tensor \"w\": its external data has length 18446744073709551615: its type and shape take 2",
        ),
        (vec![vec![-2]], ("offset", "0"), "tensor \"w\": a dimension is -2: allowed 0 or more"),
        (
            vec![vec![huge], vec![huge + 1], vec![huge + 2], vec![huge + 3]],
            ("offset", "0"),
            "tensor \"w\": its elements and those before take more bytes than a file has",
        ),
    ];
    for (shapes, (key, value), text) in cases {
        let mut graph = Graph::new("g");
        for dims in shapes {
            graph = graph.initializer(tensor(dims, &[("location", "w.bin"), (key, value)]));
        }
        let error = Document::new(graph, 22).externalize("new.bin", 0).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (Kind::Model, text.to_string()));
    }
    // The same place, of tensors of two sizes.
    let place = [("location", "w.bin")];
    let graph = Graph::new("g").initializer(tensor(vec![2], &place)).initializer(tensor(vec![4], &place));
    assert_eq!(Document::new(graph, 22).externalize("new.bin", 0).unwrap().size(), 64 + 4);
    for location in ["../w.bin", "/etc/passwd", "a/../../w.bin", "", "a\0b", "a/"] {
        let mut document = Document::new(Graph::new("g").initializer(tensor(vec![1], &[("location", location)])), 22);
        let folder = tempfile::tempdir().unwrap();
        let read = document.save(folder.path().join("m.onnx"));
        assert!(read.is_ok() && folder.path().join("m.onnx").exists());
        let mut read = Document::read(folder.path().join("m.onnx")).unwrap();
        assert_eq!(kind_of(read.embed()), Some(Kind::Model), "{location:?}");
        let data = read.externalize("new.bin", 0).unwrap();
        assert_eq!(kind_of(data.write(Vec::new())), Some(Kind::Model), "{location:?}");
        assert_eq!(kind_of(document.externalize(location, 0)), Some(Kind::Input), "{location:?}");
    }
}

/// Many parts of one file that overlap would become a file many times as large.
#[test]
fn external_data_does_not_multiply() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.bin"), vec![0u8; 100_000]).unwrap();
    let part = |offset: u64, count: usize| {
        let mut graph = Graph::new("g");
        for k in 0..count {
            let mut tensor =
                Initializer { name: format!("w{k}"), dims: vec![50_000], data_type: 2, ..Initializer::default() };
            let (location, length) = ("w.bin".to_string(), Some(50_000));
            tensor.set_external(&onnxref::document::External { location, offset: offset * k as u64, length });
            graph = graph.initializer(tensor);
        }
        let path = folder.path().join("m.onnx");
        std::fs::write(&path, Document::new(graph, 22).to_bytes().unwrap()).unwrap();
        Document::read(path).unwrap().externalize("new.bin", 0).unwrap()
    };
    // One part is copied once, however many tensors have it.
    let mut written = Vec::new();
    part(0, 100).write(&mut written).unwrap();
    assert_eq!(written.len(), 50_000);
    let error = part(1, 100).write(std::io::sink()).unwrap_err();
    let text = "tensor \"w16\": tensors take of external data \"w.bin\" 850000 bytes: the limit is 800000";
    assert_eq!((error.kind(), format!("{error:#}")), (Kind::Limit, text.to_string()));
}

/// What a program builds is checked as what is read.
#[test]
fn what_is_built_ends_at_limits() {
    let nested = |depth: usize| {
        (0..depth).fold(Graph::new("b"), |body, _| {
            Graph::new("b").node(Node::new("If", ["c"], ["y"]).attribute("then_branch", body))
        })
    };
    let document = in_time("nesting", move || Document::new(nested(40), 22).to_bytes().map(drop));
    assert_eq!(kind_of(document), Some(Kind::Input));
    let text = in_time("nesting of text", move || Document::new(nested(40), 22).to_text().map(drop));
    assert_eq!(kind_of(text), Some(Kind::Unsupported));
    let name = "n".repeat(1 << 17);
    let mut document = Document::new(Graph::new("g").node(Node::new("Neg", ["x"], [name.as_str()])), 22);
    document.graph.nodes[0].attributes = vec![Attribute::new("", AttributeValue::Missing).into(); 2];
    assert_eq!(kind_of(document.load(&Model::options())), Some(Kind::Limit));
}
