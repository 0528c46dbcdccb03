//! Graphs, attributes and operators: undefined names, cycles, values out of every range.

use crate::case::{At, Case, check, report};
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    TensorProto, TypeProto, ValueInfoProto, type_proto,
};
use crate::common::{attribute, float, initializer, int, ints, node, string, tensor, value};
use ndarray::{Array, IxDyn};
use onnxref::{DType, Dim, Element, Kind, Tensor};
use prost::Message;

/// Three nodes: "lookup" (Gather), "pick" (GatherElements) and "name" (GatherND).
pub(crate) fn good() -> ModelProto {
    let named = |name: &str, node: NodeProto| NodeProto { name: Some(name.into()), ..node };
    let fixed = |name: &str, dtype, shape: &[usize]| {
        value(name, dtype, Some(&shape.iter().map(|&dim| Dim::Fixed(dim)).collect::<Vec<_>>()))
    };
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(13) }],
        graph: Some(GraphProto {
            name: Some("graph".into()),
            node: vec![
                named("lookup", node("Gather", &["data", "indices"], &["rows"], vec![int("axis", 0)])),
                named("pick", node("GatherElements", &["rows", "picks"], &["picked"], vec![int("axis", 1)])),
                named("name", node("GatherND", &["rows", "tuples"], &["named"], vec![int("batch_dims", 0)])),
            ],
            input: vec![fixed("data", DType::Float, &[6, 4]), fixed("indices", DType::Int64, &[64])],
            initializer: vec![initializer("picks", &picks()), initializer("tuples", &tuples())],
            output: vec![
                fixed("rows", DType::Float, &[64, 4]),
                fixed("picked", DType::Float, &[64, 1]),
                fixed("named", DType::Float, &[2]),
            ],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

fn row_of(k: usize) -> i64 {
    (k as i64 * 5) % 12 - 6
}

fn picks() -> Tensor {
    array(&[64, 1], |k| (k % 8) as i32 - 4)
}

fn tuples() -> Tensor {
    array(&[2, 2], |k| [63i64, -1, -64, 2][k])
}

pub(crate) fn good_feeds() -> Vec<(&'static str, Tensor)> {
    vec![("data", array(&[6, 4], |k| k as f32 * 0.5)), ("indices", array(&[64], row_of))]
}

/// By the equations.
pub(crate) fn good_outputs() -> Vec<Tensor> {
    let row = |k: usize| row_of(k).rem_euclid(6) as usize;
    let rows = |k: usize, column: usize| (row(k) * 4 + column) as f32 * 0.5;
    vec![
        array(&[64, 4], |k| rows(k / 4, k % 4)),
        array(&[64, 1], |k| rows(k, k % 4)),
        array(&[2], |k| [rows(63, 3), rows(0, 2)][k]),
    ]
}

pub(crate) fn good_bytes() -> Vec<u8> {
    good().encode_to_vec()
}

/// A tensor by its elements' places in row-major order.
pub(crate) fn array<T: Element>(shape: &[usize], element: impl Fn(usize) -> T) -> Tensor {
    Array::from_shape_vec(IxDyn(shape), (0..shape.iter().product()).map(element).collect()).unwrap().into()
}

/// The good model with a change.
pub(crate) fn changed(change: impl FnOnce(&mut ModelProto)) -> Vec<u8> {
    let mut model = good();
    change(&mut model);
    model.encode_to_vec()
}

pub(crate) fn graph_of(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().unwrap()
}

pub(crate) fn node_of(model: &mut ModelProto, k: usize) -> &mut NodeProto {
    &mut graph_of(model).node[k]
}

/// A node becomes the last one, and nobody reads what it makes.
fn last(model: &mut ModelProto, k: usize) {
    graph_of(model).node.truncate(k + 1);
    graph_of(model).output.clear();
}

fn operator(name: &str) -> At {
    At::Operator(name.into())
}

fn name(name: &str) -> At {
    At::Name(name.into())
}

#[test]
fn graphs() {
    let mut cases: Vec<Case> = Vec::new();
    let mut case = |name: &str, change: &dyn Fn(&mut ModelProto), text: &str, at: &[At]| {
        cases.push(Case::new("graph", name, changed(change), Kind::Model, text).at(at.to_vec()));
    };
    for (k, op) in ["Gather", "GatherElements", "GatherND"].into_iter().enumerate() {
        for (input, formal) in [(0, "data"), (1, "indices")] {
            let at = |value: &str| [At::Node(k), operator(op), name(value)];
            let own = ["rows", "picked", "named"][k];
            let cycle = |m: &mut ModelProto| node_of(m, k).input[input] = own.into();
            case(&format!("{op} reads its own output as {formal}"), &cycle, "a cycle", &at(own));
            let nothing = |m: &mut ModelProto| node_of(m, k).input[input] = "nowhere".into();
            case(&format!("{op} reads nothing as {formal}"), &nothing, "is produced by nothing", &at("nowhere"));
            let late = |m: &mut ModelProto| {
                node_of(m, k).input[input] = "late".into();
                graph_of(m).node.push(node("Gather", &[own, "indices"], &["late"], vec![]));
            };
            case(
                &format!("{op} and a later node in a circle"),
                &late,
                "2 nodes form a cycle",
                &[At::Node(k), operator(op)],
            );
            let empty = |m: &mut ModelProto| node_of(m, k).input[input].clear();
            case(
                &format!("{op} without {formal}"),
                &empty,
                "is left out, but required",
                &[At::Node(k), operator(op), name(formal)],
            );
        }
        for (other, by) in [("data", "an input of the graph"), ("picks", "an initializer"), ("", "")] {
            let double = |m: &mut ModelProto| {
                last(m, k);
                node_of(m, k).output[0] = other.into();
            };
            let text = if other.is_empty() { "is left out, but required" } else { &format!("is given twice: by {by}") };
            case(&format!("{op} makes {other:?}"), &double, text, &[At::Node(k), operator(op)]);
        }
    }
    case(
        "two nodes make one value",
        &|m| {
            last(m, 2);
            node_of(m, 2).output[0] = "rows".into();
        },
        "by node #0 and by node #2",
        &[At::Node(2), name("rows")],
    );
    case(
        "an input twice",
        &|m| {
            let input = graph_of(m).input[0].clone();
            graph_of(m).input.push(input);
        },
        "given twice",
        &[name("data")],
    );
    case(
        "an initializer twice",
        &|m| {
            let again = graph_of(m).initializer[0].clone();
            graph_of(m).initializer.push(again);
        },
        "two initializers are named",
        &[name("picks")],
    );
    case("an input without a name", &|m| graph_of(m).input[0].name = None, "has no name", &[At::Nowhere]);
    case("an initializer without a name", &|m| graph_of(m).initializer[0].name = None, "has no name", &[At::Nowhere]);
    case(
        "an output that nothing makes",
        &|m| graph_of(m).output[0].name = Some("gone".into()),
        "produced by nothing",
        &[name("gone")],
    );
    case("no graph", &|m| m.graph = None, "the model has no graph", &[At::Nowhere]);
    case(
        "a declared type that is not what a node makes",
        &|m| graph_of(m).output[0] = value("rows", DType::Int8, None),
        "element type float32, but is declared as int8",
        &[At::Node(0), name("rows")],
    );
    case(
        "a value that is declared as two types",
        &|m| graph_of(m).value_info.push(value("rows", DType::Int8, None)),
        "is declared as float32 and as int8",
        &[name("rows")],
    );
    for code in [i32::MIN, -1, 0, 29, 30, 255, i32::MAX] {
        case(
            &format!("a declared element type {code}"),
            &|m| {
                let tensor = type_proto::Tensor { elem_type: Some(code), shape: None };
                let value = Some(type_proto::Value::TensorType(tensor));
                graph_of(m).input[0].r#type = Some(TypeProto { value, denotation: None });
            },
            &format!("elem_type {code} is not an element type"),
            &[name("data"), At::Value(code.into())],
        );
    }
    for version in [i64::MIN, -1, 0] {
        let text = format!("ir_version {version}: allowed 1..=");
        case(&format!("IR version {version}"), &|m| m.ir_version = Some(version), &text, &[At::Value(version.into())]);
        let text = format!("has version {version} of domain \"ai.onnx\": versions start at 1");
        let opset = |m: &mut ModelProto| m.opset_import[0].version = Some(version);
        case(&format!("opset {version}"), &opset, &text, &[At::Value(version.into())]);
    }
    case("no opset", &|m| m.opset_import.clear(), "opset_import is missing", &[At::Nowhere]);
    case("an opset before there were any", &|m| m.ir_version = Some(2), "is not allowed under IR version 2", &[]);
    case(
        "a default of another shape",
        &|m| graph_of(m).input.push(value("picks", DType::Int32, Some(&[Dim::Fixed(64), Dim::Fixed(2)]))),
        "is declared as [64, 2]",
        &[name("picks")],
    );
    case(
        "a default of another type",
        &|m| graph_of(m).input.push(value("picks", DType::Float, None)),
        "has element type int32, but the input",
        &[name("picks")],
    );
    check(cases);
    report("graph");
}

#[test]
fn what_this_runtime_does_not_have() {
    let mut cases: Vec<Case> = Vec::new();
    let mut case_of_type = |what: &str, value: type_proto::Value, kind: Kind, text: &str| {
        let extra = ValueInfoProto {
            name: Some("extra".into()),
            r#type: Some(TypeProto { value: Some(value), denotation: None }),
            ..ValueInfoProto::default()
        };
        let mut case = |name: String, change: &dyn Fn(&mut ModelProto), at: At| {
            cases.push(Case::new("graph", name, changed(change), kind, text).at(vec![at]));
        };
        let add = |m: &mut ModelProto| graph_of(m).input.push(extra.clone());
        case(format!("{what} as an input"), &add, name("extra"));
        // As an output, of a value that there is.
        let as_output = |m: &mut ModelProto| {
            graph_of(m).output[0] = ValueInfoProto { name: Some("rows".into()), ..extra.clone() };
        };
        case(format!("{what} as an output"), &as_output, name("rows"));
    };
    let opaque = type_proto::Value::OpaqueType(type_proto::Opaque::default());
    case_of_type("opaque types", opaque, Kind::Unsupported, "opaque types are not supported");
    let map = type_proto::Value::MapType(Box::default());
    case_of_type("maps without a key", map, Kind::Model, "key_type 0 is not an element type");
    let sparse = type_proto::Value::SparseTensorType(type_proto::SparseTensor::default());
    case_of_type("sparse tensors of nothing", sparse, Kind::Model, "elem_type 0 is not an element type");
    let mut case = |name: String, change: &dyn Fn(&mut ModelProto), text: &str, at: &[At]| {
        cases.push(Case::new("graph", name, changed(change), Kind::Unsupported, text).at(at.to_vec()));
    };
    for version in [15, 16, i64::MAX] {
        let text = format!("ir_version {version}");
        case(format!("IR version {version}"), &|m| m.ir_version = Some(version), &text, &[At::Value(version.into())]);
    }
    for version in [1000, i64::MAX] {
        let opset = |m: &mut ModelProto| m.opset_import[0].version = Some(version);
        case(format!("opset {version}"), &opset, "is the newest that is known", &[At::Value(version.into())]);
    }
    let missing = |m: &mut ModelProto| {
        let node = node_of(m, 0);
        node.op_type = Some("ATen".into());
        node.attribute.clear();
        node.input.truncate(1);
    };
    case("ATen".into(), &missing, "was an experimental operator", &[At::Node(0), operator("ATen")]);
    let own = |m: &mut ModelProto| {
        m.opset_import.push(OperatorSetIdProto { domain: Some("own".into()), version: Some(1) });
        node_of(m, 1).domain = Some("own".into());
    };
    case("a domain of its own".into(), &own, "is not in the standard and has no operators here", &[At::Node(1)]);
    let function = |m: &mut ModelProto| {
        m.functions.push(FunctionProto { name: Some("F".into()), domain: Some("own".into()), ..Default::default() });
        m.opset_import.push(OperatorSetIdProto { domain: Some("own".into()), version: Some(1) });
        (node_of(m, 1).domain, node_of(m, 1).op_type) = (Some("own".into()), Some("F".into()));
    };
    let text = "inputs given: the function has 0";
    let called = Case::new("graph", "a function without inputs", changed(function), Kind::Model, text);
    cases.push(called.at(vec![At::Node(1), operator("F")]));
    let sparse = |m: &mut ModelProto| {
        let values = TensorProto { name: Some("s".into()), ..TensorProto::default() };
        let sparse = SparseTensorProto { values: Some(Box::new(values)), ..SparseTensorProto::default() };
        graph_of(m).sparse_initializer.push(sparse);
    };
    let sparse = Case::new("graph", "a sparse initializer", changed(sparse), Kind::Model, "it has no indices");
    cases.push(sparse.at(vec![name("s")]));
    check(cases);
}

#[test]
fn attributes() {
    let tensor_of = |n| tensor("", &array(&[n], |k| k as f32));
    let mut cases = Vec::new();
    for (k, op, own) in [(0, "Gather", "axis"), (1, "GatherElements", "axis"), (2, "GatherND", "batch_dims")] {
        let mut case = |what: String, attributes: Vec<AttributeProto>, text: &str, attribute: &str| {
            let bytes = changed(|m| node_of(m, k).attribute = attributes);
            let at = [At::Node(k), operator(op), At::Attribute(attribute.into())];
            cases.push(Case::new("attribute", format!("{op}: {what}"), bytes, Kind::Model, text).at(at));
        };
        // Each kind but the right one, with a value of that kind, with none, and with that of another.
        let values: [(AttributeType, AttributeProto); 13] = [
            (AttributeType::Float, float("", 1.0)),
            (AttributeType::String, string("", "0")),
            (AttributeType::Tensor, tensor_of(1)),
            (AttributeType::Graph, AttributeProto { g: Some(Box::default()), ..Default::default() }),
            (AttributeType::Floats, AttributeProto { floats: vec![f32::NAN], ..Default::default() }),
            (AttributeType::Ints, ints("", &[0])),
            (AttributeType::Strings, AttributeProto { strings: vec!["0".into()], ..Default::default() }),
            (AttributeType::Tensors, AttributeProto { tensors: vec![TensorProto::default()], ..Default::default() }),
            (AttributeType::Graphs, AttributeProto { graphs: vec![GraphProto::default()], ..Default::default() }),
            (AttributeType::SparseTensor, AttributeProto { sparse_tensor: Some(Box::default()), ..Default::default() }),
            (
                AttributeType::SparseTensors,
                AttributeProto { sparse_tensors: vec![SparseTensorProto::default()], ..Default::default() },
            ),
            (AttributeType::TypeProto, AttributeProto { tp: Some(Box::default()), ..Default::default() }),
            (
                AttributeType::TypeProtos,
                AttributeProto { type_protos: vec![TypeProto::default()], ..Default::default() },
            ),
        ];
        for (kind, given) in values {
            let label = kind.as_str_name();
            let named = |of: AttributeType, given: &AttributeProto| AttributeProto {
                name: Some(own.into()),
                r#type: Some(of.into()),
                ..given.clone()
            };
            case(format!("{label} for INT"), vec![named(kind, &given)], "INT is needed", own);
            case(format!("{label} without a value"), vec![attribute(own, kind)], "INT is needed", own);
            case(
                format!("INT with a {label} in it"),
                vec![named(AttributeType::Int, &given)],
                "it has a value in",
                own,
            );
            let both = AttributeProto { i: Some(0), ..named(AttributeType::Int, &given) };
            case(format!("INT with a {label} too"), vec![both], "it has a value in the field", own);
        }
        for code in [i32::MIN, -1, 15, 99, i32::MAX] {
            let odd = AttributeProto { r#type: Some(code), ..int(own, 0) };
            case(format!("kind {code}"), vec![odd], &format!("its type {code} is not an attribute type"), own);
        }
        let untyped = |code| vec![AttributeProto { r#type: code, ..int(own, 0) }];
        case("no kind".into(), untyped(None), "it has no type", own);
        case("kind 0".into(), untyped(Some(0)), "it has no type", own);
        case("twice".into(), vec![int(own, 0), int(own, 0)], "is given twice", own);
        let reference = AttributeProto { ref_attr_name: Some("a".into()), ..attribute(own, AttributeType::Int) };
        case("a reference".into(), vec![reference], "it refers to an attribute of a function", own);
        case("an unknown name".into(), vec![int("axes", 0)], "is not one of the operator's", "axes");
        case("no name".into(), vec![int("", 0)], "is not one of the operator's", "");
        for kind in [AttributeType::Float, AttributeType::Floats] {
            let nan = AttributeProto { f: Some(f32::NAN), floats: vec![f32::NAN; 3], ..attribute("nan", kind) };
            case(format!("an unknown {} of NaN", kind.as_str_name()), vec![nan], "is not one of the operator's", "nan");
        }
    }
    check(cases);
    report("attribute");
}

#[test]
fn operators() {
    let mut cases = Vec::new();
    let names = [(0, "Gather", "axis", 2), (1, "GatherElements", "axis", 2), (2, "GatherND", "batch_dims", 2)];
    for (k, op, attribute, rank) in names {
        let values: Vec<i64> = if attribute == "axis" {
            vec![rank, -rank - 1, 64, -65, 1 << 31, -(1 << 31), 1 << 32, (1 << 32) + 1, -(1 << 32), i64::MAX, i64::MIN]
        } else {
            vec![-1, rank, 64, 1 << 31, 1 << 32, -(1 << 32), i64::MAX, i64::MIN]
        };
        for value in values {
            let bytes = changed(|m| node_of(m, k).attribute = vec![int(attribute, value)]);
            let title = format!("{op} with {attribute} {value}");
            let case = Case::new("operator", title, bytes, Kind::Model, format!("{attribute} {value} is out of range"));
            let at = [At::Node(k), operator(op), At::Attribute(attribute.into()), At::Value(value.into())];
            cases.push(case.at(at).fed(good_feeds()));
        }
        let arity = |what: &str, count: usize, names: Vec<String>| {
            let bytes = changed(|m| {
                last(m, k);
                match what {
                    "input" => node_of(m, k).input = names,
                    _ => node_of(m, k).output = names,
                }
            });
            let s = if count == 1 { "" } else { "s" };
            let text = format!("{count} {what}{s} given");
            let case = Case::new("operator", format!("{op} with {count} {what}s"), bytes, Kind::Model, text);
            case.at([At::Node(k), operator(op), At::Value(count as i128)])
        };
        for count in [0, 1, 3, 10, 100_000] {
            cases.push(arity("input", count, vec!["data".to_string(); count]));
        }
        for count in [0, 2, 10, 100_000] {
            cases.push(arity("output", count, (0..count).map(|n| format!("o{n}")).collect()));
        }
        // Element types of indices.
        for dtype in DType::all().filter(|dtype| !matches!(dtype, DType::Int64 | DType::Int32)) {
            let bytes = changed(|m| {
                node_of(m, k).input[1] = "wrong".into();
                graph_of(m).input.push(value("wrong", dtype, None));
            });
            let text = format!("\"indices\" has element type {dtype}: allowed int");
            let case = Case::new("operator", format!("{op} with indices of {dtype}"), bytes, Kind::Model, text);
            cases.push(case.at([At::Node(k), operator(op), name("indices")]));
        }
        for dtype in DType::all().filter(|dtype| *dtype as u8 > DType::Bfloat16 as u8) {
            let bytes = changed(|m| {
                node_of(m, k).input[0] = "wrong".into();
                graph_of(m).input.push(value("wrong", dtype, None));
            });
            let text = format!("\"data\" has element type {dtype}: allowed");
            let case = Case::new("operator", format!("{op} of {dtype}"), bytes, Kind::Model, text);
            cases.push(case.at([At::Node(k), operator(op), name("data")]));
        }
        for (title, domain, op_type, text) in [
            ("no operator", "", "", "the node has no op_type"),
            ("another operator", "", "Gathering", "is not an ONNX operator"),
            ("another case", "", "gather", "is not an ONNX operator"),
            ("a NUL", "", "Gather\0", "is not an ONNX operator"),
            ("an unknown domain", "no.such", "Gather", "doesn't import the domain \"no.such\""),
            ("a domain within a name", "", "ai.onnx::Gather", "is not an ONNX operator"),
            ("a domain that is not imported", "ai.onnx.ml", "Scaler", "doesn't import the domain \"ai.onnx.ml\""),
            ("a version in the name", "", "Gather 13", "is not an ONNX operator"),
            ("a line of the table", "", "Gather 13\n  (data: T, indices: Tind)", "is not an ONNX operator"),
            ("a set of the table", "", "@all", "is not an ONNX operator"),
        ] {
            let bytes = changed(|m| {
                let node = node_of(m, k);
                (node.domain, node.op_type) = (Some(domain.into()), Some(op_type.into()));
            });
            let case = Case::new("operator", format!("node {k}: {title}"), bytes, Kind::Model, text);
            cases.push(case.at([At::Node(k)]));
        }
        let long = changed(|m| node_of(m, k).op_type = Some("G".repeat(64 << 10)));
        cases.push(
            Case::new("operator", format!("node {k}: 64 KiB"), long, Kind::Model, "is not an ONNX operator")
                .at([At::Node(k)]),
        );
    }
    for (opset, op, k) in [(10, "GatherElements", 1), (10, "GatherND", 2), (1, "GatherElements", 1)] {
        let bytes = changed(|m| m.opset_import[0].version = Some(opset));
        let text = format!("{op} is not in opset {opset}: it came with opset 11");
        let alone = changed(|m| {
            m.opset_import[0].version = Some(opset);
            graph_of(m).node.swap(0, k);
        });
        let first = if op == "GatherElements" { "GatherElements is not in opset" } else { "is not in opset" };
        cases.push(Case::new("operator", format!("{op} in opset {opset}"), bytes, Kind::Model, first));
        cases.push(Case::new("operator", format!("{op} first in opset {opset}"), alone, Kind::Model, text));
    }
    let batch_dims = changed(|m| m.opset_import[0].version = Some(11));
    let case = Case::new("operator", "batch_dims before opset 12", batch_dims, Kind::Model, "it has none");
    cases.push(case.at([At::Node(2), At::Attribute("batch_dims".into())]));
    check(cases);
    report("operator");
}

/// Faults of many nodes are one error of bounded size, the first of them first.
#[test]
fn as_many_faults_as_there_are_nodes() {
    let mut cases = Vec::new();
    for nodes in [2, 1000, 1001, 20_000] {
        let chain = |change: fn(usize, &mut NodeProto)| {
            changed(|m| {
                let graph = graph_of(m);
                graph.output.clear();
                graph.node = (0..nodes)
                    .map(|k| {
                        let mut node = node("Gather", &["data", "indices"], &[&format!("v{k}")], vec![]);
                        change(k, &mut node);
                        node
                    })
                    .collect();
            })
        };
        let more = if nodes <= 1000 { format!("(and {} more)", nodes - 1) } else { "more)".to_string() };
        for (name, change) in [
            ("unsorted", (|k, node| node.input[0] = format!("v{}", k + 1)) as fn(usize, &mut NodeProto)),
            ("unknown", |k, node| node.input[0] = format!("x{k}")),
            ("doubled", |_, node| node.output[0] = "data".into()),
            ("of no operator", |k, node| node.op_type = Some(format!("Op{k}"))),
            ("of an unknown domain", |k, node| node.domain = Some(format!("d{k}"))),
            ("of wrong arity", |_, node| node.input.clear()),
            ("with a wrong attribute", |_, node| node.attribute = vec![float("axis", 0.0)]),
        ] {
            let case = Case::new("graph", format!("{nodes} nodes {name}"), chain(change), Kind::Model, &more);
            cases.push(case.at([At::Node(0)]).limits(|limits| limits.load_bytes = 256 << 20));
        }
    }
    check(cases);
}
