//! IR versions, opset imports, and their operators.

use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto};
use crate::common::{attribute, float, node, value};
use crate::{
    TRAINING, With, at_node, case, check_loads, check_runs, first_node, good, good_feeds, good_output, gradient,
    graph_of, import, load, load_and_run,
};
use onnxref::{DType, Kind, Place, Tensor, inputs};

fn at_number(value: i128) -> Place {
    Place::default().with(|p| p.value = Some(value))
}

fn at_import(domain: &str, version: i128) -> Place {
    at_number(version).with(|p| p.domain = Some(domain.into()))
}

#[test]
fn ir_versions_are_1_to_14() {
    check_loads([
        case("none", |m| m.ir_version = None, Kind::Model, "ir_version is missing", Place::default()),
        case("0", |m| m.ir_version = Some(0), Kind::Model, "ir_version 0: allowed 1..=14", at_number(0)),
        case("-1", |m| m.ir_version = Some(-1), Kind::Model, "ir_version -1: allowed 1..=14", at_number(-1)),
        case("15", |m| m.ir_version = Some(15), Kind::Unsupported, "ir_version 15: allowed 1..=14", at_number(15)),
        case(
            "least",
            |m| m.ir_version = Some(i64::MIN),
            Kind::Model,
            "ir_version -9223372036854775808: allowed 1..=14",
            at_number(i64::MIN.into()),
        ),
    ]);
    for version in 1..=14 {
        let mut model = good();
        model.ir_version = Some(version);
        if version < 3 {
            model.opset_import.clear();
        }
        let outputs = load_and_run(&model, good_feeds()).unwrap_or_else(|error| panic!("{version}: {error}"));
        assert_eq!(outputs["output"], good_output(), "{version}");
        assert_eq!(load(&model).unwrap().opsets(), [(String::new(), if version < 3 { 1 } else { 13 })]);
    }
}

#[test]
fn opset_import_is_there_from_ir_version_3_on() {
    let with = |ir_version, imports: &[_]| {
        let model = ModelProto { ir_version: Some(ir_version), opset_import: imports.to_vec(), ..good() };
        load(&model).map(|_| ()).map_err(|error| (error.kind(), error.to_string()))
    };
    for ir_version in [1, 2] {
        let text = format!("opset_import is not allowed under IR version {ir_version}: it came with 3");
        assert_eq!(with(ir_version, &[import("", 1)]), Err((Kind::Model, text)));
    }
    for ir_version in [3, 8, 14] {
        let text = format!("opset_import is missing: IR version {ir_version} needs it");
        assert_eq!(with(ir_version, &[]), Err((Kind::Model, text)));
    }
    assert_eq!(with(3, &[import("", 1)]), Ok(()));
}

#[test]
fn wrong_opset_imports() {
    check_loads([
        case(
            "0",
            |m| m.opset_import = vec![import("", 0)],
            Kind::Model,
            "node \"node\" (Gather): opset_import has version 0 of domain \"ai.onnx\": versions start at 1",
            at_node("Gather", 0).with(|p| (p.version, p.value) = (None, Some(0))),
        ),
        case(
            "no version",
            |m| m.opset_import[0].version = None,
            Kind::Model,
            "node \"node\" (Gather): opset_import has version 0 of domain \"ai.onnx\": versions start at 1",
            at_node("Gather", 0).with(|p| (p.version, p.value) = (None, Some(0))),
        ),
        case(
            "too new",
            |m| m.opset_import = vec![import("", 29)],
            Kind::Unsupported,
            "opset_import has version 29 of domain \"ai.onnx\": 28 is the newest that is known",
            at_import("", 29),
        ),
        case(
            "too new, another domain",
            |m| m.opset_import.push(import("ai.onnx.ml", 6)),
            Kind::Unsupported,
            "opset_import has version 6 of domain \"ai.onnx.ml\": 5 is the newest that is known",
            at_import("ai.onnx.ml", 6),
        ),
    ]);
}

#[test]
fn ai_onnx_is_the_empty_domain() {
    check_runs(&[
        ("imported as ai.onnx", |m| m.opset_import = vec![import("ai.onnx", 13)]),
        ("imported without a name", |m| m.opset_import[0].domain = None),
        ("used as ai.onnx", |m| first_node(m).domain = Some("ai.onnx".into())),
        ("used as an empty name", |m| first_node(m).domain = Some(String::new())),
        ("imported twice as one version", |m| m.opset_import.push(import("ai.onnx", 13))),
        ("a domain that no node uses", |m| m.opset_import.push(import("com.example", 1))),
    ]);
    let mut model = good();
    model.opset_import = vec![import("ai.onnx", 13)];
    assert_eq!(load(&model).unwrap().opsets(), [(String::new(), 13)]);
}

#[test]
fn operators_that_are_not_there() {
    check_loads([
        case(
            "unknown",
            |m| first_node(m).op_type = Some("Nonsense".into()),
            Kind::Model,
            "node \"node\" (Nonsense): Nonsense is not an ONNX operator",
            at_node("Nonsense", None),
        ),
        case(
            "a name that another begins with",
            |m| first_node(m).op_type = Some("Gathe".into()),
            Kind::Model,
            "node \"node\" (Gathe): Gathe is not an ONNX operator",
            at_node("Gathe", None),
        ),
        case(
            "without a name",
            |m| first_node(m).op_type = None,
            Kind::Model,
            "node \"node\": the node has no op_type",
            at_node("", None).with(|p| p.operator = None),
        ),
        case(
            "a domain that is not imported",
            |m| {
                first_node(m).domain = Some("ai.onnx.ml".into());
                first_node(m).op_type = Some("ArrayFeatureExtractor".into());
            },
            Kind::Model,
            "node \"node\" (ai.onnx.ml::ArrayFeatureExtractor): the model doesn't import the domain \"ai.onnx.ml\" \
             (Compatibility::undeclared_domains accepts it)",
            at_node("ArrayFeatureExtractor", None).with(|p| p.domain = Some("ai.onnx.ml".into())),
        ),
        case(
            "a domain that is not imported, without the operator",
            |m| first_node(m).domain = Some("com.example".into()),
            Kind::Model,
            "node \"node\" (com.example::Gather): the model doesn't import the domain \"com.example\"",
            at_node("Gather", None).with(|p| p.domain = Some("com.example".into())),
        ),
        case(
            "a domain that is not imported, and dropped the operator",
            |m| {
                m.opset_import = vec![import("ai.onnx.ml", 3)];
                first_node(m).op_type = Some("Upsample".into());
            },
            Kind::Model,
            "node \"node\" (Upsample): the model doesn't import the domain \"ai.onnx\"",
            at_node("Upsample", None),
        ),
        case(
            "the standard's domain is not imported either",
            |m| m.opset_import = vec![import("ai.onnx.ml", 3)],
            Kind::Model,
            "node \"node\" (Gather): the model doesn't import the domain \"ai.onnx\" (Compatibility::undeclared_domains accepts it)",
            at_node("Gather", None),
        ),
        case(
            "an unknown domain",
            |m| {
                m.opset_import.push(import("com.example", 1));
                first_node(m).domain = Some("com.example".into());
            },
            Kind::Unsupported,
            "node \"node\" (com.example::Gather): domain \"com.example\" is not in the standard and has no operators here",
            at_node("Gather", None).with(|p| p.domain = Some("com.example".into())),
        ),
        case(
            "of another domain",
            |m| {
                m.opset_import.push(import("ai.onnx.ml", 3));
                first_node(m).domain = Some("ai.onnx.ml".into());
            },
            Kind::Model,
            "node \"node\" (ai.onnx.ml::Gather): ai.onnx.ml::Gather is not an ONNX operator",
            at_node("Gather", None).with(|p| p.domain = Some("ai.onnx.ml".into())),
        ),
        case(
            "removed",
            |m| {
                m.opset_import = vec![import("", 10)];
                first_node(m).op_type = Some("Upsample".into());
            },
            Kind::Model,
            "node \"node\" (Upsample): Upsample is not in opset 10: it was removed in opset 10 and replaced by Resize",
            at_node("Upsample", None),
        ),
        case(
            "not there yet",
            |m| {
                m.opset_import = vec![import("", 10)];
                first_node(m).op_type = Some("GatherElements".into());
            },
            Kind::Model,
            "node \"node\" (GatherElements): GatherElements is not in opset 10: it came with opset 11 (Compatibility::newer_operators accepts it)",
            at_node("GatherElements", None),
        ),
        case(
            "a function of the model",
            |m| {
                let (name, output) = (Some("Gather".into()), vec!["y".into()]);
                m.functions = vec![FunctionProto { name, output, ..FunctionProto::default() }];
            },
            Kind::Model,
            "node \"node\" (Gather): 2 inputs given: the function has 0",
            at_node("Gather", None).with(|p| p.value = Some(2)),
        ),
    ]);
}

#[test]
fn experimental_operators_run_below_opset_10() {
    let model = |opset| {
        let mut model = good();
        model.opset_import = vec![import("", opset)];
        let graph = graph_of(&mut model);
        let affine = |from: &str, to: &str| node("Affine", &[from], &[to], vec![float("alpha", 2.0)]);
        graph.node = vec![affine("data", "twice"), affine("twice", "output")];
        graph.input.truncate(1);
        graph.output = vec![value("output", DType::Float, None)];
        model
    };
    for opset in [1, 9] {
        let model = load(&model(opset)).unwrap();
        let text =
            "Affine-1 is an experimental operator, which ONNX dropped in release 1.5: later opsets don't have it";
        assert_eq!(model.report().iter().filter(|note| *note == text).count(), 1, "{:?}", model.report());
        let outputs = model.run(inputs!["data" => Tensor::from_elements(&[3, 2], vec![1f32; 6]).unwrap()]).unwrap();
        assert_eq!(outputs["output"].as_slice::<f32>().unwrap(), [4f32; 6]);
    }
    let error = load(&model(10)).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    let text = "Affine was an experimental operator, which ONNX dropped in release 1.5";
    assert!(error.causes()[0].to_string().contains(text), "{error}");
}

#[test]
fn all_nodes_that_are_not_implemented_are_reported() {
    let mut model = good();
    model.opset_import.push(import(TRAINING, 1));
    graph_of(&mut model).node.extend([
        gradient("output", "a"),
        node("Gather", &["a", "indices"], &["b"], vec![]),
        node("ATen", &["b", "indices"], &["c"], vec![]),
        gradient("c", "d"),
    ]);
    let error = load(&model).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    let text = "the model needs 2 operators that are not implemented (of 3; 3 of 5 nodes): ai.onnx.preview.training::Gradient-1, ATen";
    assert_eq!(error.to_string(), text);
    let causes: Vec<_> = error.causes().iter().map(|e| (e.place().node_index, e.to_string())).collect();
    let expected = [
        (
            Some(1),
            "node #1 (ai.onnx.preview.training::Gradient-1): onnxref doesn't differentiate graphs: export the gradient as a \
             graph of its own (2 nodes)"
                .to_string(),
        ),
        (Some(3), "node #3 (ATen): ATen was an experimental operator, which ONNX dropped in release 1.5".to_string()),
    ];
    assert_eq!(causes, expected);
    assert!(error.causes().iter().all(|e| e.kind() == Kind::Unsupported));
}

#[test]
fn what_is_wrong_outweighs_what_is_not_implemented() {
    let mut model = good();
    graph_of(&mut model)
        .node
        .extend([node("ATen", &["output"], &["a"], vec![]), node("Nonsense", &["a"], &["b"], vec![])]);
    let error = load(&model).unwrap_err();
    assert_eq!(error.kind(), Kind::Model);
    assert_eq!(error.to_string(), "node #2 (Nonsense): Nonsense is not an ONNX operator\n(and 1 more)");
    assert_eq!(error.place().node_index, Some(2));
    let kinds: Vec<Kind> = error.causes().iter().map(|cause| cause.kind()).collect();
    assert_eq!(kinds, [Kind::Model, Kind::Unsupported]);
}

#[test]
fn subgraphs_are_looked_into() {
    let branch = |name: &str, op_type: &str, domain: &str| {
        let mut inner = node(op_type, &["x"], &["y"], vec![]);
        inner.domain = Some(domain.into());
        let graph = GraphProto { node: vec![inner], ..GraphProto::default() };
        AttributeProto { g: Some(Box::new(graph)), ..attribute(name, AttributeType::Graph) }
    };
    let mut model = good();
    model.opset_import.push(import("own", 1));
    *first_node(&mut model) = NodeProto {
        op_type: Some("Either".into()),
        domain: Some("own".into()),
        attribute: vec![branch("then_branch", "ATen", ""), branch("else_branch", "Own", "com.example")],
        ..first_node(&mut model).clone()
    };
    let causes: Vec<_> = load(&model)
        .unwrap_err()
        .causes()
        .iter()
        .map(|e| (e.place().domain.clone().unwrap(), e.place().operator.clone().unwrap(), e.to_string()))
        .collect();
    let cause = |domain: &str, operator: &str, text: &str| (domain.into(), operator.into(), text.into());
    let expected: [(String, String, String); 3] = [
        cause(
            "com.example",
            "Own",
            "in node \"node\" (own::Either): node #0 (com.example::Own): the model doesn't import the domain \"com.example\"",
        ),
        cause(
            "own",
            "Either",
            "node \"node\" (own::Either): domain \"own\" is not in the standard and has no operators here",
        ),
        cause(
            "",
            "ATen",
            "in node \"node\" (own::Either): node #0 (ATen): ATen was an experimental operator, which ONNX dropped in release \
             1.5",
        ),
    ];
    assert_eq!(causes, expected);
}
