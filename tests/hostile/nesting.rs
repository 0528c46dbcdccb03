//! Deeply nested messages.

use crate::case::{At, Case, check, on_thread, report};
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{AttributeProto, GraphProto, NodeProto};
use crate::common::{attribute, initializer, model, node, value};
use crate::graphs::{changed, node_of};
use crate::wire::{field, number, within};
use onnxref::{DType, Kind, Limits, Model, Tensor, inputs};

/// The ways in which a message holds one of its own kind: what leads there, and what goes around.
const CYCLES: [(&str, &[u32], &[u32]); 12] = [
    ("graphs", &[7], &[1, 5, 6]),
    ("graphs among several", &[7], &[1, 5, 11]),
    ("graphs of functions", &[25], &[7, 5, 6, 1, 5, 6]),
    ("graphs of functions' attributes", &[25], &[11, 6, 1, 5, 6]),
    ("graphs of training", &[20], &[2, 1, 5, 6]),
    ("sequences", &[7, 11, 2], &[4, 1]),
    ("optionals", &[7, 12, 2], &[9, 1]),
    ("maps", &[7, 13, 2], &[5, 2]),
    ("maps of sequences of optionals", &[7, 11, 2], &[5, 2, 4, 1, 9, 1]),
    ("types of attributes", &[7, 1, 5, 14], &[4, 1]),
    ("types of types", &[7, 1, 5, 15], &[9, 1]),
    ("types of functions", &[25, 12, 2], &[5, 2]),
];

/// A message in so many others around it: the model is the first.
pub(crate) fn nested(root: &[u32], cycle: &[u32], depth: usize) -> Vec<u8> {
    let path: Vec<u32> = root.iter().chain(cycle.iter().cycle()).copied().take(depth - 1).collect();
    // A graph can't go on inside of a function: the way goes around in its nodes.
    let path = if root == [25] || root == [20] { looped(root, cycle, depth) } else { path };
    [number(1, 8), field(8, &number(2, 13)), within(&path, &[])].concat()
}

/// From a function or training into a graph once, and around there.
fn looped(root: &[u32], cycle: &[u32], depth: usize) -> Vec<u32> {
    let entry = &cycle[..cycle.len() - 3];
    root.iter().chain(entry).chain([1, 5, 6].iter().cycle()).copied().take(depth - 1).collect()
}

#[test]
fn too_deep() {
    let mut cases = Vec::new();
    for (name, root, cycle) in CYCLES {
        for depth in [61, 62, 100, 101, 1000, 100_000] {
            let bytes = nested(root, cycle, depth);
            let case =
                Case::new("nesting", format!("{depth} {name}"), bytes.clone(), Kind::Limit, "messages nest 61 deep");
            let case = case.limits(|limits| limits.nesting = 60);
            cases.push(case.at([At::Limit("nesting"), At::Value(61), At::Size(60)]));
            if depth > 100 {
                let title = format!("{depth} {name} without a limit");
                let case = Case::new("nesting", title, bytes, Kind::Limit, "messages nest 101 deep");
                cases.push(case.at([At::Limit("nesting"), At::Size(100)]).limits(|limits| limits.nesting = usize::MAX));
            }
        }
        let flat =
            Case::new("nesting", format!("flat {name}"), nested(root, cycle, 20), Kind::Limit, "messages nest 3");
        cases.push(flat.at([At::Limit("nesting")]).limits(|limits| limits.nesting = 2));
    }
    check(cases);
    report("nesting");
}

/// What is just not too deep is decoded, looked at and dropped on a small stack: with the limits as they are, and with
/// as much nesting as a decoder takes.
#[test]
fn just_deep_enough() {
    for limit in [60, Limits::default().nesting] {
        for (name, root, cycle) in CYCLES {
            let bytes = nested(root, cycle, limit);
            let limits = limits_with(|limits| limits.nesting = limit);
            let title = format!("{limit} {name}");
            let text = on_thread(&title, 256 << 10, move || {
                let result = Model::options().limits(limits).from_bytes(bytes);
                result.err().map(|error| (error.kind(), error.to_string()))
            });
            let error = text.unwrap_or_else(|fate| panic!("{title} {fate}"));
            assert!(error.as_ref().is_none_or(|(kind, _)| *kind != Kind::Limit), "{title}: {error:?}");
        }
    }
}

/// A node that can't run, with subgraphs of nodes that can't run either.
#[test]
fn subgraphs_of_what_can_not_run() {
    let mut cases = Vec::new();
    for levels in [1, 5, 18] {
        // Innermost first: each node's operator is said, so that each is looked up.
        let mut graph = Vec::new();
        for level in (0..levels).rev() {
            let attribute = [field(1, b"then_branch"), number(20, 5), field(6, &graph)].concat();
            let name = field(3, format!("level {level}").as_bytes());
            let node = [name, field(4, b"Mystery"), field(7, b"com.example"), field(5, &attribute)].concat();
            graph = field(1, &node);
        }
        let domain = field(8, &[field(1, b"com.example"), number(2, 1)].concat());
        let bytes = [number(1, 8), field(8, &number(2, 13)), domain, field(7, &graph)].concat();
        let case = Case::new(
            "nesting",
            format!("{levels} levels of what nobody knows"),
            bytes,
            Kind::Unsupported,
            "is not in the standard",
        );
        cases.push(case.at([At::Node(0), At::Operator("Mystery".into())]));
    }
    // An attribute of a kind that the operator doesn't have is dropped, however deep.
    let deep = within(&[1, 5, 6].repeat(18), &[]);
    let bytes = changed(|m| {
        use prost::Message;
        let graph = GraphProto::decode(deep.as_slice()).unwrap();
        let attribute =
            AttributeProto { name: Some("axis".into()), r#type: Some(5), g: Some(graph.into()), ..Default::default() };
        node_of(m, 0).attribute = vec![attribute];
    });
    cases.push(Case::new("nesting", "graphs for a number", bytes, Kind::Model, "INT is needed").at([At::Node(0)]));
    check(cases);
}

fn named(name: &str, node: NodeProto) -> NodeProto {
    NodeProto { name: Some(name.into()), ..node }
}

fn limits_with(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// A subgraph that gives 0.
fn constant(k: usize) -> GraphProto {
    let name = format!("zero {k}");
    GraphProto {
        initializer: vec![initializer(&name, &Tensor::scalar(0f32))],
        output: vec![value(&name, DType::Float, None)],
        ..GraphProto::default()
    }
}

/// Two faults on each level of subgraphs: one line for the first, and one for the number of the others.
#[test]
fn faults_of_deep_subgraphs() {
    let mut cases = Vec::new();
    for levels in [1, 3, 9, 20, 31] {
        let branch = |name: &str, graph: &GraphProto| AttributeProto {
            g: Some(Box::new(graph.clone())),
            ..attribute(name, AttributeType::Graph)
        };
        let level = |k: usize, inner: Option<&GraphProto>| {
            let [first, second] = [format!("first {k}"), format!("second {k}")];
            let mut graph = GraphProto {
                node: [&first, &second].map(|name| named(name, node("Identity", &[], &[name], vec![]))).into(),
                output: vec![value(&first, DType::Float, None)],
                ..GraphProto::default()
            };
            if let Some(inner) = inner {
                let branches = vec![branch("then_branch", inner), branch("else_branch", &constant(k))];
                graph.node.push(named(&format!("choice {k}"), node("If", &["c"], &[&format!("chosen {k}")], branches)));
            }
            graph
        };
        let mut graph = (1..=levels).rev().fold(level(levels + 1, None), |inner, k| level(k, Some(&inner)));
        graph.input = vec![value("c", DType::Bool, None)];
        let bytes = model(13, 8, graph);
        let text = format!(
            "node \"first 1\" (Identity-13): 0 inputs given: the operator has (input)\n(and {} more)",
            2 * levels + 1
        );
        let error = Model::from_bytes(bytes.clone()).unwrap_err();
        assert_eq!(
            (error.to_string(), error.fault_count(), error.causes().len()),
            (text.clone(), 2 * levels + 2, 2 * levels + 2)
        );
        cases.push(Case::new("nesting", format!("faults on {levels} levels"), bytes, Kind::Model, text));
    }
    check(cases);
}

/// As deep as subgraphs may be, they load, are inspected, run, and are dropped on a small stack.
#[test]
fn subgraphs_that_nest_as_deep_as_they_may() {
    let branch = |name: &str, graph: &GraphProto| AttributeProto {
        g: Some(Box::new(graph.clone())),
        ..attribute(name, AttributeType::Graph)
    };
    let level = |k: usize, inner: Option<&GraphProto>| {
        let output = format!("y{k}");
        let node = match inner {
            None => node("Neg", &["x"], &[&output], vec![]),
            Some(inner) => {
                node("If", &["c"], &[&output], vec![branch("then_branch", inner), branch("else_branch", &constant(k))])
            }
        };
        GraphProto { node: vec![node], output: vec![value(&output, DType::Float, None)], ..GraphProto::default() }
    };
    let mut graph = (0..31).rev().fold(level(31, None), |inner, k| level(k, Some(&inner)));
    graph.input = vec![value("c", DType::Bool, None), value("x", DType::Float, None)];
    let bytes = model(13, 8, graph);
    on_thread("deep subgraphs", 256 << 10, move || {
        for optimize in [true, false] {
            let options = Model::options().optimize(optimize);
            let model = options.from_bytes(bytes.clone()).unwrap();
            let outputs = model.run(inputs! { "c" => Tensor::scalar(true), "x" => Tensor::scalar(3f32) }).unwrap();
            assert_eq!(outputs["y0"], Tensor::scalar(-3f32));
            assert!(options.inspect_bytes(bytes.clone()).unwrap().error.is_none());
        }
    })
    .unwrap();
}
