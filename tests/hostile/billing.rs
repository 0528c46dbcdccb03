//! The memory that loading takes never exceeds the bill that is computed before anything is decoded.

use crate::case::on_thread;
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
    ValueInfoProto,
};
use crate::common::{attribute, initializer, int, ints, model, node, tensor, typed, value};
use crate::graphs::{array, good, graph_of};
use crate::memory::{Peak, peak_of};
use crate::wire::{Format, Holds, field, key, number, varint};
use bytes::Bytes;
use onnxref::{DType, Dim, Error, Kind, Limits, Model, Tensor, ValueType};
use prost::Message;

/// What a model takes beside its bill: tables of operators, the text of an error.
const BESIDE: u64 = 64 << 10;

fn limits(load_bytes: u64, load_bytes_per_byte: u64) -> Limits {
    let mut limits = Limits::default();
    (limits.load_bytes, limits.load_bytes_per_byte) = (load_bytes, load_bytes_per_byte);
    limits
}

fn over_budget(error: &Error) -> bool {
    error.kind() == Kind::Limit && error.place().limit == Some("load_bytes")
}

fn load(file: &Bytes, limits: Limits) -> (Result<Model, Error>, Peak) {
    peak_of(|| Model::options().limits(limits).from_bytes(file.clone()))
}

/// Why so many `load_bytes` are too few, if that is all there is.
pub(crate) fn too_few(load_bytes: u64, file: &Bytes) -> Option<Error> {
    load(file, limits(load_bytes, 0)).0.err().filter(|error| error.causes().iter().any(over_budget))
}

/// The least `load_bytes` with which a model is loaded, or refused for another reason, if that is all there is; within
/// a hundredth.
pub(crate) fn bill(file: &[u8]) -> u64 {
    let file = Bytes::copy_from_slice(file);
    let (mut low, mut high, mut step) = (0, 1 << 36, 1);
    while high - low > high / 128 + 64 {
        // From below: what is refused isn't decoded, which takes longest.
        let middle = (low + low / 128 * step + 64).min(low + (high - low) / 2);
        step = (2 * step).min(1 << 20);
        // The message has what it would take until there.
        match too_few(middle, &file) {
            Some(error) => low = middle.max(error.place().value.unwrap_or(0) as u64),
            None => high = middle,
        }
    }
    high
}

/// The bill, and what the model takes: the bytes of the file included in both.
pub(crate) struct Cost {
    name: String,
    file: u64,
    bill: u64,
    taken: u64,
    copying: u64,
}

fn cost(name: &str, file: Vec<u8>) -> Cost {
    let bill = bill(&file);
    cost_by(name, file, bill)
}

/// What the model takes where it may take what the bill says, and no more.
pub(crate) fn cost_by(name: &str, file: Vec<u8>, bill: u64) -> Cost {
    let file = Bytes::from(file);
    let len = file.len() as u64;
    let (_, peak) = load(&file, limits(bill, 0));
    Cost { name: name.into(), file: len, bill, taken: peak.bytes + len, copying: peak.copying + len }
}

pub(crate) fn check(costs: Vec<Cost>) {
    let mut wrong = Vec::new();
    for Cost { name, file, bill, taken, copying } in costs {
        let line = format!(
            "{name:<44} file {file:>9}  bill {bill:>10}  taken {taken:>10} ({:.2})  if lists were copied {copying:>10} ({:.2})",
            taken as f64 / bill as f64,
            copying as f64 / bill as f64,
        );
        println!("{line}");
        if taken > bill + BESIDE {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "these take more than their bill:\n{}", wrong.join("\n"));
}

/// A file with a body in its graph or elsewhere, and what a model needs.
fn file(format: &Format, message: &str, body: &[u8]) -> Vec<u8> {
    [number(1, 8), field(8, &number(2, 13)), format.within(message, body)].concat()
}

/// Every repeated field of every message, with the least in it: as many as just made a list grow.
#[test]
fn lists_of_every_message() {
    let format = Format::read();
    let mut costs = Vec::new();
    let lists: Vec<_> = format.fields.iter().filter(|field| field.repeated).collect();
    for list in &lists {
        for wire in list.wires() {
            let packed = wire == 2 && !matches!(list.holds, Holds::Message(_) | Holds::Text | Holds::Bytes);
            let size = match list.holds {
                Holds::Fixed32 => 4,
                Holds::Fixed64 => 8,
                _ => 1,
            };
            let many = |count: usize| match packed {
                true => field(list.number, &vec![1; count * size]),
                false if wire == 2 => [key(list.number, 2), vec![0]].concat().repeat(count),
                false => list.as_wire(wire).repeat(count),
            };
            let name = format!("4097 {} as {wire}", list.label());
            costs.push(cost(&name, file(&format, &list.message, &many(4097))));
            // One or five in each of many.
            for parent in lists.iter().filter(|parent| parent.holds == Holds::Message(list.message.clone())) {
                for count in [1, 5] {
                    let body = field(parent.number, &many(count)).repeat(1025);
                    let name = format!("{count} {} as {wire} in each {}", list.label(), parent.label());
                    costs.push(cost(&name, file(&format, &parent.message, &body)));
                }
            }
        }
    }
    // Messages that may be there once, in each of many.
    for single in format.fields.iter().filter(|field| !field.repeated && matches!(field.holds, Holds::Message(_))) {
        for parent in lists.iter().filter(|parent| parent.holds == Holds::Message(single.message.clone())) {
            let body = field(parent.number, &single.least()).repeat(1025);
            let name = format!("{} in each {}", single.label(), parent.label());
            costs.push(cost(&name, file(&format, &parent.message, &body)));
        }
    }
    check(costs);
}

/// Names and texts of every message, long and short, as often as they can stand.
#[test]
fn texts_of_every_message() {
    let format = Format::read();
    let mut costs = Vec::new();
    for text in format.fields.iter().filter(|field| field.holds == Holds::Text) {
        let long = field(text.number, &[b'x'; 60_000]);
        costs.push(cost(&format!("60,000 B of {}", text.label()), file(&format, &text.message, &long)));
        // In as many messages as there may be, each with another name.
        let parents = format.fields.iter().filter(|parent| parent.holds == Holds::Message(text.message.clone()));
        for parent in parents.filter(|parent| parent.repeated) {
            for (count, len) in [(1025, 16), (130, 2000)] {
                let one = |k: usize| {
                    let name = format!("{k:0len$}");
                    field(parent.number, &field(text.number, name.as_bytes()))
                };
                let body: Vec<u8> = (0..count).flat_map(one).collect();
                let name = format!("{count} {} of {len} B in {}", text.label(), parent.label());
                costs.push(cost(&name, file(&format, &parent.message, &body)));
            }
        }
    }
    check(costs);
}

/// Tensors of every type in every field that takes it, as many elements as just made a list grow.
#[test]
fn tensors_of_every_type() {
    let mut costs = Vec::new();
    let mut add = |name: String, tensor: TensorProto| {
        let mut model = good();
        graph_of(&mut model).initializer.push(TensorProto { name: Some("t".into()), ..tensor });
        let file = model.encode_to_vec();
        let bill = bill(&file);
        costs.push(cost_by(&name, file, bill));
    };
    const N: usize = (1 << 13) + 1;
    for dtype in DType::all() {
        let of =
            |dims: usize| TensorProto { data_type: Some(dtype.code()), dims: vec![dims as i64], ..Default::default() };
        if dtype != DType::String {
            let count = 24 * N;
            add(
                format!("{dtype} raw"),
                TensorProto { raw_data: Some(vec![0; count * dtype.bits() / 8].into()), ..of(count) },
            );
        }
        match dtype {
            DType::Float => add(format!("{dtype} typed"), TensorProto { float_data: vec![0.0; N], ..of(N) }),
            DType::Complex64 => add(format!("{dtype} typed"), TensorProto { float_data: vec![0.0; 2 * N], ..of(N) }),
            DType::Double => add(format!("{dtype} typed"), TensorProto { double_data: vec![0.0; N], ..of(N) }),
            DType::Complex128 => add(format!("{dtype} typed"), TensorProto { double_data: vec![0.0; 2 * N], ..of(N) }),
            DType::Int64 => add(format!("{dtype} typed"), TensorProto { int64_data: vec![1; N], ..of(N) }),
            DType::Uint64 | DType::Uint32 => {
                add(format!("{dtype} typed"), TensorProto { uint64_data: vec![1; N], ..of(N) });
            }
            DType::String => {
                for (what, text) in
                    [("empty", ""), ("short", "a"), ("middling", "twenty bytes of text"), ("long", &"x".repeat(1000))]
                {
                    let n = if text.len() < 100 { 8 * (N - 1) + 1 } else { 1025 };
                    add(
                        format!("{n} {what} strings"),
                        TensorProto { string_data: vec![text.to_string().into(); n], ..of(n) },
                    );
                }
            }
            _ => {
                let each = if matches!(dtype.bits(), 2 | 4) { 8 / dtype.bits() } else { 1 };
                add(format!("{dtype} typed"), TensorProto { int32_data: vec![0; N], ..of(N * each) });
            }
        }
    }
    add("dims".into(), TensorProto { data_type: Some(1), dims: vec![1; N], ..Default::default() });
    check(costs);
}

/// Graphs as they are, and as nobody writes them.
#[test]
fn graphs() {
    let mut costs = Vec::new();
    let name = |k: usize, len: usize| format!("{k:0len$}");
    for (count, len) in [(1025, 8), (1025, 60), (65, 1000), (9, 60_000)] {
        let chain = |more: &dyn Fn(&mut GraphProto)| {
            let gather = |k: usize| node("Gather", &[&name(k, len), "ids"], &[&name(k + 1, len)], vec![]);
            let mut graph = GraphProto {
                node: (0..count).map(gather).collect(),
                input: vec![value(&name(0, len), DType::Float, None), value("ids", DType::Int64, None)],
                output: vec![value(&name(count, len), DType::Float, None)],
                ..GraphProto::default()
            };
            more(&mut graph);
            model(13, 8, graph)
        };
        let title = |what: &str| format!("{what}, {count} times, names of {len} B");
        costs.push(cost(&title("nodes in a chain"), chain(&|_| {})));
        costs.push(cost(
            &title("nodes with names and axes"),
            chain(&|graph| {
                for (k, node) in graph.node.iter_mut().enumerate() {
                    node.name = Some(format!("n{}", name(k, len)));
                    node.attribute = vec![int("axis", 0)];
                }
            }),
        ));
        costs.push(cost(
            &title("nodes whose values are declared"),
            chain(&|graph| {
                let dims = [Dim::Symbol("batch".into()), Dim::Fixed(3), Dim::Unknown];
                graph.value_info = (1..count).map(|k| value(&name(k, len), DType::Float, Some(&dims))).collect();
            }),
        ));
        costs.push(cost(
            &title("outputs of the graph"),
            chain(&|graph| {
                graph.output = (1..=count).map(|k| value(&name(k, len), DType::Float, None)).collect();
            }),
        ));
        costs.push(cost(
            &title("nodes without inputs"),
            chain(&|graph| {
                graph.node.iter_mut().for_each(|node| node.input.clear());
            }),
        ));
        costs.push(cost(
            &title("nodes of no operator"),
            chain(&|graph| {
                graph.node.iter_mut().enumerate().for_each(|(k, node)| node.op_type = Some(name(k, len)));
            }),
        ));
        costs.push(cost(
            &title("nodes that read what is not there"),
            chain(&|graph| {
                graph.node.iter_mut().enumerate().for_each(|(k, node)| node.input[1] = format!("x{}", name(k, len)));
            }),
        ));
        costs.push(cost(
            &title("nodes that make one thing"),
            chain(&|graph| {
                graph.node.iter_mut().for_each(|node| node.output[0] = name(0, len));
            }),
        ));
        let filled = |fill: &dyn Fn(&mut GraphProto, usize)| {
            let mut graph = GraphProto::default();
            (0..count).for_each(|k| fill(&mut graph, k));
            model(13, 8, graph)
        };
        let scalar: Tensor = array(&[], |_| 1f32);
        costs.push(cost(
            &title("initializers"),
            filled(&|graph, k| graph.initializer.push(initializer(&name(k, len), &scalar))),
        ));
        costs.push(cost(
            &title("initializers that are wrong"),
            filled(&|graph, k| {
                graph.initializer.push(TensorProto { name: Some(name(k, len)), ..TensorProto::default() });
            }),
        ));
        costs.push(cost(
            &title("inputs"),
            filled(&|graph, k| graph.input.push(value(&name(k, len), DType::Float, None))),
        ));
        let dims = [Dim::Fixed(1), Dim::Fixed(2), Dim::Symbol("n".into())];
        costs.push(cost(
            &title("inputs of rank 3"),
            filled(&|graph, k| {
                graph.input.push(value(&name(k, len), DType::Float, Some(&dims)));
            }),
        ));
        costs.push(cost(
            &title("inputs with symbols"),
            filled(&|graph, k| {
                graph.input.push(value(
                    &name(k, len),
                    DType::Float,
                    Some(&[Dim::Symbol(format!("s{}", name(k, len)))]),
                ));
            }),
        ));
        costs.push(cost(
            &title("inputs with initializers"),
            filled(&|graph, k| {
                graph.input.push(value(&name(k, len), DType::Float, None));
                graph.initializer.push(initializer(&name(k, len), &scalar));
            }),
        ));
    }
    check(costs);
}

/// Subgraphs: many, large, nested, and with captured names.
#[test]
fn bodies() {
    let mut costs = Vec::new();
    let mut add = |name: &str, file: Vec<u8>| {
        Model::from_bytes(file.clone()).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        costs.push(cost(name, file));
    };
    let name = |k: usize, len: usize| format!("{k:0len$}");
    let graph_in = |name: &str, graph: GraphProto| AttributeProto {
        g: Some(Box::new(graph)),
        ..attribute(name, AttributeType::Graph)
    };
    let gives = |nodes: Vec<NodeProto>, output: &str| GraphProto {
        node: nodes,
        output: vec![value(output, DType::Float, None)],
        ..GraphProto::default()
    };
    let either = |graph: GraphProto, y: &str| {
        let branches = vec![graph_in("then_branch", graph.clone()), graph_in("else_branch", graph)];
        node("If", &["c"], &[y], branches)
    };
    let whole = |nodes: Vec<NodeProto>, y: &str| {
        let inputs = vec![value("c", DType::Bool, None), value("x", DType::Float, None)];
        model(13, 8, GraphProto { input: inputs, ..gives(nodes, y) })
    };
    for (count, len) in [(1025, 8), (65, 1000), (9, 60_000)] {
        let title = |what: &str| format!("{what}, {count} times, names of {len} B");
        let negations = |from: &str| -> Vec<NodeProto> {
            let before = |k: usize| if k == 0 { from.to_string() } else { name(k - 1, len) };
            (0..count).map(|k| node("Neg", &[&before(k)], &[&name(k, len)], vec![])).collect()
        };
        let last = name(count - 1, len);
        let small = || gives(vec![node("Neg", &["x"], &["z"], vec![])], "z");
        let branches = (0..count).map(|k| either(small(), &name(k, len))).collect();
        add(&title("branches of one node"), whole(branches, &last));
        add(&title("nodes of branches"), whole(vec![either(gives(negations("x"), &last), "y")], "y"));
        // Each branch captures all names outside.
        let sums = (0..count).map(|k| node("Neg", &[&name(k, len)], &[&format!("z{k}")], vec![])).collect();
        let mut nodes = negations("x");
        nodes.push(either(gives(sums, &format!("z{}", count - 1)), "y"));
        add(&title("names that branches capture"), whole(nodes, "y"));
        let looped = GraphProto {
            input: (0..count + 2).map(|k| value(&format!("i{}", name(k, len)), DType::Float, None)).collect(),
            output: (0..count + 1).map(|k| value(&format!("i{}", name(k + 1, len)), DType::Float, None)).collect(),
            ..GraphProto::default()
        };
        let carried = node(
            "Loop",
            &["", "c"].into_iter().chain(std::iter::repeat_n("x", count)).collect::<Vec<_>>(),
            &(0..count).map(|k| name(k, len)).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>(),
            vec![graph_in("body", looped)],
        );
        add(&title("values that a loop carries"), whole(vec![carried], &last));
    }
    for (depth, len) in [(20, 8), (20, 1000)] {
        let innermost = gives(vec![node("Neg", &["x"], &["z"], vec![])], "z");
        let nested = (0..depth).fold(innermost, |graph, k| {
            let y = name(k, len);
            let then = node(
                "If",
                &["c"],
                &[&y],
                vec![
                    graph_in("then_branch", graph),
                    graph_in("else_branch", gives(vec![node("Neg", &["x"], &["w"], vec![])], "w")),
                ],
            );
            gives(vec![then], &y)
        });
        add(&format!("branches {depth} deep, names of {len} B"), whole(vec![either(nested, "y")], "y"));
    }
    check(costs);
}

/// One node whose name is long, with many faults: each says the name.
#[test]
fn faults_of_a_node_with_a_long_name() {
    let mut costs = Vec::new();
    let long = || "n".repeat(60_000);
    let named = |change: &dyn Fn(&mut NodeProto)| {
        let mut node = NodeProto { name: Some(long()), ..node("Gather", &["data", "indices"], &["y"], vec![]) };
        change(&mut node);
        let mut proto = good();
        graph_of(&mut proto).node.push(node);
        proto
    };
    let attributes = named(&|node| node.attribute = (0..4000).map(|k| int(&format!("a{k}"), 0)).collect());
    costs.push(cost("4000 unknown attributes", attributes.encode_to_vec()));
    let inputs = named(&|node| {
        node.op_type = Some("Nothing".into());
        node.input = (0..4000).map(|k| format!("i{k}")).collect();
    });
    costs.push(cost("4000 unknown inputs", inputs.encode_to_vec()));
    let outputs = named(&|node| node.output = vec!["data".into(); 4000]);
    costs.push(cost("4000 outputs that are inputs", outputs.encode_to_vec()));
    let nodes = named(&|outer| {
        let inner = (0..4000).map(|_| node("Nothing", &[], &[], vec![])).collect();
        let graph = GraphProto { node: inner, ..GraphProto::default() };
        outer.op_type = Some("LSTM".into());
        outer.attribute = vec![AttributeProto {
            name: Some("then_branch".into()),
            g: Some(Box::new(graph)),
            r#type: Some(5),
            ..Default::default()
        }];
    });
    costs.push(cost("4000 nodes in a subgraph", nodes.encode_to_vec()));
    let mut domains = named(&|node| node.domain = Some(long()));
    for _ in 0..300 {
        let again = graph_of(&mut domains).node.last().cloned();
        graph_of(&mut domains).node.extend(again);
    }
    costs.push(cost("nodes of a domain with a long name", domains.encode_to_vec()));
    check(costs);
}

/// As many inputs as just made a list or a table grow, with names that are longer where they are shown; long names.
#[test]
fn inputs_and_outputs() {
    let mut costs = Vec::new();
    for count in [16_385, 28_673] {
        let mut graph = GraphProto::default();
        for k in 0..count {
            let name = format!("{}{k}", "\u{202e}".repeat(70));
            graph.input.push(ValueInfoProto { name: Some(name), ..ValueInfoProto::default() });
        }
        let file = model(13, 8, graph);
        let bill = bill(&file);
        costs.push(cost_by(&format!("{count} inputs without a type"), file, bill));
    }
    let long = |k: usize| format!("{k:060000}");
    let mut graph = GraphProto::default();
    graph.input = (0..100).map(|k| value(&long(k), DType::Float, None)).collect();
    graph.output = graph.input.clone();
    costs.push(cost("100 outputs of 60,000 B", model(13, 8, graph)));
    check(costs);
}

/// The promise as it stands, with the limits as they are and as they are for strangers, where what is decoded is as much as
/// they allow.
#[test]
fn as_much_as_is_allowed() {
    let tensor = |tensor: TensorProto| {
        let mut proto = good();
        graph_of(&mut proto).initializer.push(TensorProto { name: Some("t".into()), ..tensor });
        proto.encode_to_vec()
    };
    let of = |dtype: DType, dims: usize| TensorProto {
        data_type: Some(dtype.code()),
        dims: vec![dims as i64],
        ..Default::default()
    };
    const STRINGS: usize = (1 << 19) + 1;
    const NUMBERS: usize = (1 << 22) + 1;
    let long = "n".repeat(60_000);
    let mut many = NodeProto { name: Some(long), ..node("Gather", &["data", "indices"], &["y"], vec![]) };
    many.attribute = vec![ints("", &[]); 20_000];
    let mut faulty = good();
    graph_of(&mut faulty).node.push(many);
    let cases = [
        ("empty strings", tensor(TensorProto { string_data: vec!["".into(); STRINGS], ..of(DType::String, STRINGS) })),
        (
            "uint64 numbers of a byte",
            tensor(TensorProto { uint64_data: vec![1; NUMBERS], ..of(DType::Uint64, NUMBERS) }),
        ),
        (
            "uint32 numbers of a byte",
            tensor(TensorProto { uint64_data: vec![1; NUMBERS], ..of(DType::Uint32, NUMBERS) }),
        ),
        ("int64 numbers of a byte", tensor(TensorProto { int64_data: vec![1; NUMBERS], ..of(DType::Int64, NUMBERS) })),
        ("faults of one node", faulty.encode_to_vec()),
    ];
    // Of many results, larger than those after them, and kept.
    let folded = |sizes: &[usize]| {
        let mut graph =
            GraphProto { initializer: vec![initializer("x", &array(&[1], |_| 1f32))], ..Default::default() };
        for (k, &size) in sizes.iter().enumerate() {
            let (ids, out) = (format!("ids{}", size), format!("y{k}"));
            if !graph.initializer.iter().any(|i| i.name.as_ref() == Some(&ids)) {
                graph.initializer.push(initializer(&ids, &array(&[size], |_| 0i32)));
            }
            graph.node.push(node("Gather", &["x", &ids], &[&out], vec![]));
            graph.output.push(value(&out, DType::Float, None));
        }
        model(13, 8, graph)
    };
    let cases = cases.into_iter().chain([
        ("constants computed at load", folded(&[1 << 20; 60])),
        ("constants of two sizes", folded(&[[2 << 20, 1 << 20 | 1]; 30].concat())),
    ]);
    let mut wrong = Vec::new();
    for (name, bytes) in cases {
        let (len, bytes) = (bytes.len() as u64, Bytes::from(bytes));
        for limits in [Limits::default(), limits(64 << 20, 4)] {
            let promised = limits.load_bytes + limits.load_bytes_per_byte * len;
            let (result, peak) = load(&bytes, limits);
            let taken = peak.bytes + len;
            let verdict = result.map(drop).map_err(|error| error.kind());
            let line = format!("{name}: file {len}, taken {taken}, promised {promised}: {verdict:?}");
            println!("{line}");
            if taken > promised {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Types of less than a byte take more in memory than in the file; a file that is read counts once.
#[test]
fn packed_elements_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for dtype in [DType::Uint2, DType::Uint4, DType::Float6e2m3] {
        let count = 1 << 20;
        let len = count * dtype.bits() / 8;
        let with = |tensor: TensorProto| {
            let mut proto = good();
            let t = TensorProto {
                name: Some("t".into()),
                data_type: Some(dtype.code()),
                dims: vec![count as i64],
                ..tensor
            };
            graph_of(&mut proto).initializer.push(t);
            proto.encode_to_vec()
        };
        let path = folder.path().join("model.onnx");
        let raw = with(TensorProto { raw_data: Some(vec![0; len].into()), ..Default::default() });
        std::fs::write(folder.path().join("w"), vec![0; len]).unwrap();
        let entry = StringStringEntryProto { key: Some("location".into()), value: Some("w".into()) };
        let external = with(TensorProto { data_location: Some(1), external_data: vec![entry], ..Default::default() });
        for (what, bytes, reads) in [("in the file", &raw, 0), ("external", &external, len as u64)] {
            std::fs::write(&path, bytes).unwrap();
            // A budget that is used up by this alone.
            let limits = limits(64 << 10, 4);
            let promised = (64 << 10) + 4 * (bytes.len() as u64 + reads);
            let (result, peak) = peak_of(|| Model::options().limits(limits).load(&path));
            let line = format!(
                "{dtype} {what}: taken {}, promised {promised}: {:?}",
                peak.bytes,
                result.map(drop).map_err(|error| error.kind())
            );
            println!("{line}");
            if peak.bytes > promised {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parts of a file that is mapped may overlap: what tensors make of them is paid for all the same.
#[test]
#[allow(unsafe_code)]
fn packed_elements_of_maps() {
    const COUNT: usize = 256 << 10;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w"), vec![0; COUNT / 4]).unwrap();
    let mut proto = good();
    for k in 0..50 {
        graph_of(&mut proto).initializer.push(TensorProto {
            name: Some(format!("t{k}")),
            data_type: Some(DType::Uint2.code()),
            dims: vec![COUNT as i64],
            data_location: Some(1),
            external_data: vec![StringStringEntryProto { key: Some("location".into()), value: Some("w".into()) }],
            ..TensorProto::default()
        });
    }
    let (path, bytes) = (folder.path().join("model.onnx"), proto.encode_to_vec());
    std::fs::write(&path, &bytes).unwrap();
    let promised = (1 << 20) + 4 * (bytes.len() + COUNT / 4) as u64;
    // SAFETY: nothing changes the files of this folder but its removal at the end, after the model's.
    let options = unsafe { Model::options().mmap() }.limits(limits(1 << 20, 4));
    let (result, peak) = peak_of(|| options.load(&path).map(drop));
    let verdict = result.map_err(|error| error.kind());
    println!("50 tensors of one map: {} B of {promised}: {verdict:?}", peak.bytes);
    assert!(peak.bytes <= promised, "takes {} bytes, and {promised} are promised", peak.bytes);
}

/// What operators make of their lists: copies, tables, vectors, trees. As many entries as just made a table grow.
#[test]
fn lists_that_operators_keep() {
    let (count, mut costs) = (28_673, Vec::new());
    let texts = |name: &str, len: usize| AttributeProto {
        strings: (0..count).map(|k| format!("{k:0len$}").into()).collect(),
        ..attribute(name, AttributeType::Strings)
    };
    let whole = |name: &str, count: usize| ints(name, &(0..count as i64).collect::<Vec<_>>());
    let floats = |name: &str, count: usize| AttributeProto {
        floats: (0..count).map(|k| k as f32).collect(),
        ..attribute(name, AttributeType::Floats)
    };
    let wide = |name: &str, count: usize| tensor(name, &array(&[count], |k| k as f64));
    let [float, whole_number, text] = [DType::Float, DType::Int64, DType::String].map(ValueType::from);
    let map = ValueType::Map(DType::String, Box::new(DType::Float.into()));
    let nodes = |of: &str| {
        // A chain: each decision leads to a leaf and to the next decision.
        let last = count as i64 - 1;
        let modes = (0..count).map(|k| if k % 2 == 0 && k + 1 < count { "BRANCH_LEQ" } else { "LEAF" }.into());
        let to = |name: &str, by: i64| ints(name, &(0..=last).map(|k| (k + by).min(last)).collect::<Vec<_>>());
        let name = |rest: &str| format!("{of}_{rest}");
        vec![
            ints("nodes_treeids", &vec![0; count]),
            whole("nodes_nodeids", count),
            ints("nodes_featureids", &vec![0; count]),
            floats("nodes_values", count),
            AttributeProto { strings: modes.collect(), ..attribute("nodes_modes", AttributeType::Strings) },
            to("nodes_truenodeids", 1),
            to("nodes_falsenodeids", 2),
            ints(&name("treeids"), &vec![0; count]),
            whole(&name("nodeids"), count),
            ints(&name("ids"), &vec![0; count]),
            floats(&name("weights"), count),
        ]
    };
    // Lists of numbers are packed, as exporters write them.
    let packed = |mut attribute: AttributeProto| {
        let ints: Vec<u8> = attribute.ints.drain(..).flat_map(|int| varint(int as u64)).collect();
        let floats: Vec<u8> = attribute.floats.drain(..).flat_map(f32::to_le_bytes).collect();
        field(5, &[attribute.encode_to_vec(), field(7, &floats), field(8, &ints)].concat())
    };
    let mut ml = |name: &str, version: i64, input: &ValueType, attributes: Vec<AttributeProto>| {
        let outputs: &[&str] = if name.ends_with("Classifier") { &["y", "z"] } else { &["y"] };
        let node = NodeProto { domain: Some("ai.onnx.ml".into()), ..node(name, &["x"], outputs, vec![]) };
        let node = [node.encode_to_vec(), attributes.into_iter().flat_map(packed).collect()].concat();
        let graph = GraphProto { input: vec![typed("x", input)], ..Default::default() };
        let import = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
        let opset_import = vec![import("", 13), import("ai.onnx.ml", version)];
        let model = ModelProto { ir_version: Some(8), opset_import, ..Default::default() };
        let graph = [graph.encode_to_vec(), field(1, &node)].concat();
        let (name, file) = (format!("{name}-{version}"), [model.encode_to_vec(), field(7, &graph)].concat());
        Model::options().from_bytes(file.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        costs.push(cost(&name, file));
    };
    ml("CategoryMapper", 1, &text, vec![whole("cats_int64s", count), texts("cats_strings", 5)]);
    ml("LabelEncoder", 1, &text, vec![texts("classes_strings", 5)]);
    ml("LabelEncoder", 2, &text, vec![texts("keys_strings", 5), texts("values_strings", 50)]);
    ml("OneHotEncoder", 1, &text, vec![texts("cats_strings", 50)]);
    ml("DictVectorizer", 1, &map, vec![texts("string_vocabulary", 5)]);
    ml("ZipMap", 1, &float, vec![texts("classlabels_strings", 5)]);
    ml("LabelEncoder", 2, &whole_number, vec![whole("keys_int64s", count), floats("values_floats", count)]);
    ml("LabelEncoder", 4, &DType::Double.into(), vec![wide("keys_tensor", count), wide("values_tensor", count)]);
    ml("OneHotEncoder", 1, &whole_number, vec![whole("cats_int64s", count)]);
    ml("ZipMap", 1, &float, vec![whole("classlabels_int64s", count)]);
    ml("Imputer", 1, &whole_number, vec![whole("imputed_value_int64s", count)]);
    ml("Scaler", 1, &float, vec![floats("offset", count), floats("scale", count)]);
    ml("LinearRegressor", 1, &float, vec![floats("coefficients", count)]);
    let linear = vec![whole("classlabels_ints", count), floats("coefficients", count), floats("intercepts", count)];
    ml("LinearClassifier", 1, &float, linear);
    let vectors = || vec![floats("support_vectors", 3 * count), floats("coefficients", count)];
    ml("SVMRegressor", 1, &float, [vectors(), vec![int("n_supports", count as i64)]].concat());
    let classes = vec![whole("classlabels_ints", 2), ints("vectors_per_class", &[count as i64 - 1, 1])];
    ml("SVMClassifier", 1, &float, [vectors(), classes, vec![floats("rho", 1)]].concat());
    ml("TreeEnsembleRegressor", 1, &float, nodes("target"));
    ml("TreeEnsembleClassifier", 3, &float, [nodes("class"), vec![whole("classlabels_int64s", 1)]].concat());
    check(costs);
}

/// What is refused or loaded takes a time that grows as the file does: twice as much of it is no reason to wait.
#[test]
fn nothing_takes_forever() {
    let scalar_with = |entries: usize| {
        let entry = |k: usize| field(13, &[field(1, format!("key{k}").as_bytes()), field(2, b"x")].concat());
        let tensor: Vec<u8> = (0..entries).flat_map(entry).collect();
        field(7, &field(5, &[number(2, 1), number(14, 1), tensor].concat()))
    };
    let opsets = |count: usize| {
        (0..count).flat_map(|k| field(8, &[field(1, format!("d{k}").as_bytes()), number(2, 1)].concat())).collect()
    };
    let functions = |count: usize| {
        let function = |k: usize| field(25, &[field(1, format!("F{k}").as_bytes()), field(10, b"own")].concat());
        let node = |k: usize| field(1, &[field(4, format!("N{k}").as_bytes()), field(7, b"own")].concat());
        let nodes: Vec<u8> = (0..count).flat_map(node).collect();
        let functions: Vec<u8> = (0..count).flat_map(function).collect();
        [functions, field(7, &nodes), field(8, &[field(1, b"own"), number(2, 1)].concat())].concat()
    };
    let nodes = |count: usize| -> Vec<u8> {
        let import = |k: usize| field(8, &[field(1, format!("d{k}").as_bytes()), number(2, 1)].concat());
        let node = |k: usize| field(1, &[field(4, b"N"), field(7, format!("d{}", count - k - 1).as_bytes())].concat());
        let nodes: Vec<u8> = (0..count).flat_map(node).collect();
        (0..count).flat_map(import).chain(field(7, &nodes)).collect()
    };
    let located = |len: usize| {
        let entry = field(13, &[field(1, b"location"), field(2, "a/".repeat(len).as_bytes())].concat());
        field(7, &field(5, &[number(2, 1), number(14, 1), entry].concat()))
    };
    let cases: [(&str, Vec<u8>); 5] = [
        ("200,000 entries of external data", scalar_with(200_000)),
        ("200,000 domains", opsets(200_000)),
        ("40,000 functions and nodes", functions(40_000)),
        ("40,000 domains of nodes", nodes(40_000)),
        ("a location of a million folders", located(1_000_000)),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (name, body) in cases {
        let path = folder.path().join("model.onnx");
        let imports =
            if body.starts_with(&[0x42]) || name.contains("functions") { vec![] } else { field(8, &number(2, 13)) };
        std::fs::write(&path, [number(1, 8), body, imports].concat()).unwrap();
        let limits = limits(1 << 31, 4);
        match on_thread(name, 1 << 20, move || {
            Model::options().limits(limits).load(path).map(drop).map_err(|e| e.kind())
        }) {
            Ok(verdict) => println!("{name}: {verdict:?}"),
            Err(fate) => wrong.push(format!("{name}: {fate}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
