//! Attributes: their kind, their one value, their names.

use crate::common::proto::AttributeProto;
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::{attribute, int, ints, string};
use crate::{With, at_node, case, check_loads, check_runs, first_node, good_feeds, good_output, load_and_run};
use onnxref::{Kind, Place};

fn at(name: &str) -> Place {
    at_node("Gather", 13).with(|p| p.attribute = Some(name.into()))
}

#[test]
fn wrong_attributes() {
    check_loads([
        case(
            "unknown name",
            |m| first_node(m).attribute = vec![int("axes", 0)],
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axes\" is not one of the operator's: it has axis",
            at("axes"),
        ),
        case(
            "no name",
            |m| first_node(m).attribute = vec![AttributeProto { name: None, ..int("", 0) }],
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"\" is not one of the operator's: it has axis",
            at(""),
        ),
        case(
            "INTS",
            |m| first_node(m).attribute = vec![ints("axis", &[0])],
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axis\": it is of kind INTS: INT is needed",
            at("axis"),
        ),
        case(
            "no kind",
            |m| first_node(m).attribute = vec![AttributeProto { r#type: None, ..int("axis", 0) }],
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axis\": it has no type",
            at("axis"),
        ),
        case(
            "undefined kind",
            |m| first_node(m).attribute = vec![attribute("axis", AttributeType::Undefined)],
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axis\": it has no type",
            at("axis"),
        ),
        case(
            "unknown kind",
            |m| first_node(m).attribute = vec![AttributeProto { r#type: Some(99), ..int("axis", 0) }],
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axis\": its type 99 is not an attribute type",
            at("axis"),
        ),
        case(
            "a value of another kind",
            |m| {
                first_node(m).attribute = vec![AttributeProto { f: Some(1.0), ..attribute("axis", AttributeType::Int) }]
            },
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axis\": its kind is INT, but it has a value in the field f",
            at("axis"),
        ),
        case(
            "two values",
            |m| first_node(m).attribute = vec![AttributeProto { ints: vec![0], ..int("axis", 0) }],
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axis\": its kind is INT, but it has a value in the field ints",
            at("axis"),
        ),
        case(
            "given twice",
            |m| first_node(m).attribute = vec![int("axis", 0), int("axis", 0)],
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axis\" is given twice",
            at("axis"),
        ),
        case(
            "a reference outside of a function",
            |m| {
                let reference =
                    AttributeProto { ref_attr_name: Some("a".into()), ..attribute("axis", AttributeType::Int) };
                first_node(m).attribute = vec![reference];
            },
            Kind::Model,
            "node \"node\" (Gather-13): attribute \"axis\": it refers to an attribute of a function, but is not in one",
            at("axis"),
        ),
    ]);
}

#[test]
fn an_int_without_a_value_is_0() {
    check_runs(&[
        ("given", |m| first_node(m).attribute = vec![int("axis", 0)]),
        ("left out", |m| first_node(m).attribute = vec![attribute("axis", AttributeType::Int)]),
    ]);
}

#[test]
fn ir_version_1_needs_no_kind() {
    let mut model = crate::good();
    (model.ir_version, model.opset_import) = (Some(1), vec![]);
    first_node(&mut model).attribute = vec![AttributeProto { r#type: None, ..int("axis", 0) }];
    let outputs = load_and_run(&model, good_feeds()).unwrap();
    assert_eq!(outputs["output"], good_output());

    first_node(&mut model).attribute = vec![AttributeProto { r#type: None, ..string("axis", "0") }];
    let text = "node \"node\" (Gather-1): attribute \"axis\": it is of kind STRING: INT is needed";
    assert_eq!(crate::load(&model).unwrap_err().to_string(), text);
}
