//! Names that would change how an error reads, in every place whose name an error may show.

use crate::case::{Case, check, report, text_faults};
use crate::common::proto::{
    FunctionProto, ModelProto, OperatorSetIdProto, SparseTensorProto, StringStringEntryProto, TensorProto,
    tensor_shape_proto::dimension, type_proto,
};
use crate::common::{int, node, string, value};
use crate::graphs::{array, changed, good, good_feeds, graph_of, node_of};
use onnxref::{DType, Dim, Inputs, Kind, Model, Tensor, inputs};
use prost::Message;

/// Characters that move the cursor, start a line, turn the direction of what follows, or can't be seen.
pub(crate) fn is_dangerous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

pub(crate) fn dangerous() -> Vec<(&'static str, String)> {
    vec![
        ("lines", "a\nb\nc\r\nd\u{b}e\u{c}f\u{85}g\u{2028}h\u{2029}i".into()),
        ("a false error", "x\"\nerror: all is well\nnode \"y".into()),
        ("a terminal's commands", "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{8}\u{8}\u{8}".into()),
        ("directions", "\u{202e}txet\u{202c}\u{2066}a\u{2069}\u{200f}\u{200e}\u{61c}\u{202a}\u{202b}\u{202d}".into()),
        ("invisible", "a\u{200b}b\u{200c}\u{200d}\u{2060}\u{feff}\u{e0041}\u{e007f}".into()),
        ("nothing but NUL", "\0".repeat(100)),
        ("64 KiB of lines", "\n".repeat(64 << 10)),
        ("64 KiB of directions", "\u{202e}".repeat((64 << 10) / 3)),
        ("64 KiB of quotes", "\"".repeat(64 << 10)),
        ("64 KiB of backslashes", "\\".repeat(64 << 10)),
        ("64 KiB of the widest", "\u{fdfd}\u{10ffff}".repeat((64 << 10) / 7)),
    ]
}

type Change<'a> = Box<dyn Fn(&mut ModelProto) + 'a>;

#[test]
fn wherever_a_name_is_shown() {
    let mut cases = Vec::new();
    for (what, bad) in dangerous() {
        let bad = bad.as_str();
        let external = move |key: &'static str, text: &'static str| -> Change<'_> {
            Box::new(move |m| {
                let entry = |key: &str, value: &str| StringStringEntryProto {
                    key: Some(key.into()),
                    value: Some(value.into()),
                };
                let mut entries = vec![entry(key, bad)];
                if text == "twice" {
                    entries = vec![entry(bad, "1"), entry(bad, "2")];
                } else if key != "location" {
                    entries.push(entry("location", "w"));
                }
                graph_of(m).initializer.push(TensorProto {
                    name: Some("t".into()),
                    data_type: Some(1),
                    dims: vec![1],
                    data_location: Some(1),
                    external_data: entries,
                    ..TensorProto::default()
                });
            })
        };
        let places: Vec<(&str, Kind, Change<'_>)> = vec![
            (
                "a node",
                Kind::Model,
                Box::new(|m| {
                    (node_of(m, 0).name, node_of(m, 0).op_type) = (Some(bad.into()), Some("Nothing".into()));
                }),
            ),
            ("an operator", Kind::Model, Box::new(|m| node_of(m, 0).op_type = Some(bad.into()))),
            ("a domain", Kind::Model, Box::new(|m| node_of(m, 0).domain = Some(bad.into()))),
            (
                "a domain that is imported",
                Kind::Unsupported,
                Box::new(|m| {
                    m.opset_import.push(OperatorSetIdProto { domain: Some(bad.into()), version: Some(1) });
                    node_of(m, 0).domain = Some(bad.into());
                }),
            ),
            (
                "an opset",
                Kind::Model,
                Box::new(|m| {
                    m.opset_import.push(OperatorSetIdProto { domain: Some(bad.into()), version: Some(0) });
                    node_of(m, 0).domain = Some(bad.into());
                }),
            ),
            (
                "a function",
                Kind::Model,
                Box::new(|m| {
                    m.opset_import.push(OperatorSetIdProto { domain: Some(bad.into()), version: Some(1) });
                    let (name, domain) = (Some(bad.to_string()), Some(bad.to_string()));
                    m.functions.push(FunctionProto { name, domain, ..FunctionProto::default() });
                    (node_of(m, 0).domain, node_of(m, 0).op_type) = (Some(bad.into()), Some(bad.into()));
                }),
            ),
            ("an input of a node", Kind::Model, Box::new(|m| node_of(m, 0).input[0] = bad.into())),
            (
                "a cycle",
                Kind::Model,
                Box::new(|m| {
                    (node_of(m, 0).input[0], node_of(m, 0).output[0]) = (bad.into(), bad.into());
                }),
            ),
            (
                "outputs of nodes",
                Kind::Model,
                Box::new(|m| {
                    (node_of(m, 1).output[0], node_of(m, 2).output[0]) = (bad.into(), bad.into());
                }),
            ),
            (
                "an output's type",
                Kind::Model,
                Box::new(|m| {
                    node_of(m, 2).output[0] = bad.into();
                    graph_of(m).value_info.push(value(bad, DType::Int8, None));
                }),
            ),
            (
                "two types",
                Kind::Model,
                Box::new(|m| {
                    graph_of(m).value_info.push(value(bad, DType::Int8, None));
                    graph_of(m).value_info.push(value(bad, DType::Int16, None));
                }),
            ),
            ("an output of the graph", Kind::Model, Box::new(|m| graph_of(m).output[0].name = Some(bad.into()))),
            (
                "inputs of the graph",
                Kind::Model,
                Box::new(|m| {
                    for _ in 0..2 {
                        graph_of(m).input.push(value(bad, DType::Int8, None));
                    }
                }),
            ),
            (
                "an input's type",
                Kind::Model,
                Box::new(|m| {
                    let mut info = value(bad, DType::Int8, None);
                    if let Some(type_proto::Value::TensorType(t)) = info.r#type.as_mut().unwrap().value.as_mut() {
                        t.elem_type = Some(99);
                    }
                    graph_of(m).input.push(info);
                }),
            ),
            ("an initializer", Kind::Model, Box::new(|m| graph_of(m).initializer[0].data_type = Some(99))),
            (
                "an initializer's name",
                Kind::Model,
                Box::new(|m| {
                    let mut odd = graph_of(m).initializer[0].clone();
                    (odd.name, odd.data_type) = (Some(bad.into()), Some(99));
                    graph_of(m).initializer.push(odd);
                }),
            ),
            (
                "initializers",
                Kind::Model,
                Box::new(|m| {
                    for _ in 0..2 {
                        let mut again = graph_of(m).initializer[0].clone();
                        again.name = Some(bad.into());
                        graph_of(m).initializer.push(again);
                    }
                }),
            ),
            (
                "a sparse initializer",
                Kind::Model,
                Box::new(|m| {
                    let values = TensorProto { name: Some(bad.into()), ..TensorProto::default() };
                    let sparse = SparseTensorProto { values: Some(Box::new(values)), ..SparseTensorProto::default() };
                    graph_of(m).sparse_initializer.push(sparse);
                }),
            ),
            (
                "a symbol",
                Kind::Model,
                Box::new(|m| {
                    let symbol = Dim::Symbol(bad.into());
                    graph_of(m).input.push(value("picks", DType::Int32, Some(&[symbol.clone(), symbol])));
                }),
            ),
            ("an attribute", Kind::Model, Box::new(|m| node_of(m, 0).attribute.push(int(bad, 0)))),
            ("attributes", Kind::Model, Box::new(|m| node_of(m, 0).attribute = vec![int(bad, 0), int(bad, 0)])),
            ("a value of an attribute", Kind::Model, Box::new(|m| node_of(m, 0).attribute = vec![string("axis", bad)])),
            ("an offset", Kind::Model, external("offset", "")),
            ("a length", Kind::Model, external("length", "")),
            ("a location", Kind::Input, external("location", "")),
            ("keys", Kind::Model, external("", "twice")),
        ];
        for (place, kind, change) in places {
            let case = Case::new("names", format!("{place}: {what}"), changed(change), kind, "");
            cases.push(case);
        }
    }
    check(cases);
    report("names");
}

#[test]
fn names_in_errors_of_runs() {
    for (what, bad) in dangerous() {
        let bad = bad.as_str();
        let mut proto = good();
        (node_of(&mut proto, 0).name, node_of(&mut proto, 0).input[0]) = (Some(bad.into()), bad.into());
        graph_of(&mut proto).input[0].name = Some(bad.into());
        if let Some(type_proto::Value::TensorType(t)) =
            graph_of(&mut proto).input[0].r#type.as_mut().and_then(|t| t.value.as_mut())
        {
            t.shape.as_mut().unwrap().dim.iter_mut().for_each(|dim| {
                dim.value = Some(dimension::Value::DimParam(bad.into()));
            });
        }
        let model = Model::from_bytes(proto.encode_to_vec()).unwrap();
        let indices = || good_feeds().remove(1).1;
        let far = array(&[64], |_| 1i64 << 40);
        let data = |shape: &[usize]| array(shape, |k| k as f32);
        let runs: Vec<(&str, Inputs<'_>)> = vec![
            ("undeclared", inputs! { "indices" => indices(), "other" => data(&[4, 4]) }),
            ("not fed", inputs! { "indices" => indices() }),
            ("twice", inputs! { bad => data(&[4, 4]), bad => data(&[4, 4]) }),
            ("of two sizes", inputs! { bad => data(&[4, 5]), "indices" => indices() }),
            ("of another rank", inputs! { bad => data(&[4]), "indices" => indices() }),
            ("of another type", inputs! { bad => array(&[4, 4], |_| 0u8), "indices" => indices() }),
            ("out of range", inputs! { bad => data(&[4, 4]), "indices" => far }),
        ];
        for (how, feeds) in runs {
            let error = model.run(feeds).unwrap_err();
            assert_eq!(text_faults(&error), Vec::<String>::new(), "{what}, {how}");
        }
        let mut runner = model.runner();
        let errors = [runner.feed("no such", data(&[1])).unwrap_err(), runner.output(bad).unwrap_err()];
        assert_eq!(errors.each_ref().map(text_faults), [Vec::new(), Vec::<String>::new()], "{what}");
        let outputs = model
            .run(inputs! { bad => data(&[4, 4]), "indices" => indices() })
            .map(|mut outputs| outputs.take::<f32>(bad).map(drop).unwrap_err());
        assert!(outputs.is_err() || text_faults(&outputs.unwrap()).is_empty(), "{what}");
    }
}

/// What a report says of a model that runs is bounded and escaped too.
#[test]
fn names_in_reports() {
    for (what, bad) in dangerous() {
        let mut proto = good();
        let graph = graph_of(&mut proto);
        let mut untyped = value(&bad, DType::Float, None);
        untyped.r#type = None;
        graph.input.push(untyped);
        graph.node.push(node("Gather", &["data", "indices"], &[&format!("{bad}.")], vec![]));
        graph.output.push(value(&format!("{bad}."), DType::Float, Some(&[Dim::Symbol(bad.clone())])));
        let model = Model::options().limits(wide()).from_bytes(proto.encode_to_vec()).unwrap();
        let mut feeds = good_feeds();
        let extra: Tensor = array(&[1], |_| 0f32);
        feeds.push((bad.as_str(), extra));
        let outputs = model.run(feeds.into_iter().collect()).unwrap();
        let lines: Vec<&String> = model.report().iter().chain(outputs.notes()).collect();
        assert_eq!(lines.len(), 2, "{what}: {lines:?}");
        for line in lines {
            assert!(line.len() <= 4096 && !line.chars().any(is_dangerous), "{what}: {line:?}");
        }
    }
}

fn wide() -> onnxref::Limits {
    let mut limits = onnxref::Limits::default();
    limits.name_bytes += 1;
    limits
}
