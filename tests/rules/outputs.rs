//! Declarations of outputs.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::ValueInfoProto;
use crate::common::value;
use crate::{
    With, at_node, at_value, case, check_loads, check_runs, data, declared, good, good_feeds, good_output, graph_of,
    indices, load_and_run,
};
use onnxref::{DType, Dim, Kind, inputs};

#[test]
fn the_element_type_is_as_declared() {
    check_loads([
        case(
            "of a node",
            |m| graph_of(m).output[0] = value("output", DType::Double, None),
            Kind::Model,
            "node \"node\" (Gather-13): output \"output\" has element type float32, but is declared as float64",
            at_node("Gather", 13).named("output"),
        ),
        case(
            "of a node, by value_info",
            |m| {
                graph_of(m).value_info.push(value("output", DType::Int64, None));
                graph_of(m).output[0].r#type = None;
            },
            Kind::Model,
            "node \"node\" (Gather-13): output \"output\" has element type float32, but is declared as int64",
            at_node("Gather", 13).named("output"),
        ),
        case(
            "of an input",
            |m| graph_of(m).output.push(value("indices", DType::Float, None)),
            Kind::Model,
            "the graph's output \"indices\" has element type int64, but is declared as float32",
            at_value("indices"),
        ),
        case(
            "of an initializer",
            |m| {
                graph_of(m).initializer.push(crate::common::initializer("extra", &data()));
                graph_of(m).output.push(value("extra", DType::Float16, None));
            },
            Kind::Model,
            "the graph's output \"extra\" has element type float32, but is declared as float16",
            at_value("extra"),
        ),
    ]);
}

#[test]
fn an_element_type_that_only_a_run_shows_is_as_declared() {
    let mut model = good();
    graph_of(&mut model).input[0].r#type = None;
    assert_eq!(load_and_run(&model, good_feeds()).unwrap()["output"], good_output());
    let feeds = inputs! { "data" => ndarray::Array2::<i8>::zeros((3, 2)), "indices" => indices() };
    let text = "node \"node\" (Gather-13): output 0, \"output\", has element type int8, but is declared as float32";
    let place = at_node("Gather", 13).parameter("output");
    let of_a_node = difference_at("of a node", load_and_run(&model, feeds), Kind::Model, text, &place);

    let mut model = good();
    graph_of(&mut model).input.push(ValueInfoProto { name: Some("extra".into()), ..ValueInfoProto::default() });
    graph_of(&mut model).output.push(value("extra", DType::Int64, None));
    load_and_run(&model, good_feeds().with("extra", ndarray::arr0(1i64))).unwrap();
    let result = load_and_run(&model, good_feeds().with("extra", ndarray::arr0(1f32)));
    let text = "the graph's output \"extra\" has element type float32, but is declared as int64";
    let of_an_input = difference_at("of an input", result, Kind::Model, text, &at_value("extra"));
    assert_as_expected([of_a_node, of_an_input]);
}

#[test]
fn another_shape_than_declared_is_noted() {
    let notes = |dims: &[Dim]| {
        let mut model = good();
        graph_of(&mut model).output[0] = value("output", DType::Float, Some(dims));
        let outputs = load_and_run(&model, good_feeds()).unwrap();
        assert_eq!(outputs["output"], good_output());
        outputs.notes().to_vec()
    };
    let symbol = |name: &str| Dim::Symbol(name.into());
    assert_eq!(notes(&[Dim::Fixed(2), Dim::Fixed(2)]), [""; 0]);
    assert_eq!(notes(&[symbol("N"), Dim::Unknown]), [""; 0]);
    assert_eq!(
        notes(&[Dim::Fixed(3), Dim::Fixed(2)]),
        ["output \"output\" has shape [2, 2], but is declared as [3, 2]"]
    );
    assert_eq!(
        notes(&[symbol("N"), Dim::Unknown, Dim::Fixed(1)]),
        ["output \"output\" has shape [2, 2], but is declared as [N, ?, 1]"]
    );
    assert_eq!(notes(&[]), ["output \"output\" has shape [2, 2], but is declared as []"]);
}

#[test]
fn a_symbol_with_another_extent_than_in_the_inputs_is_noted() {
    let mut model = good();
    let graph = graph_of(&mut model);
    graph.input[0] = value("data", DType::Float, Some(&[Dim::Symbol("N".into()), Dim::Fixed(2)]));
    graph.output[0] = value("output", DType::Float, Some(&[Dim::Symbol("N".into()), Dim::Fixed(2)]));
    let outputs = load_and_run(&model, good_feeds()).unwrap();
    assert_eq!(outputs["output"], good_output());
    assert_eq!(outputs.notes(), ["output \"output\" has shape [2, 2], but is declared as [N, 2]"]);
}

#[test]
fn a_type_or_a_shape_need_not_be_declared() {
    check_runs(&[
        ("no type", |m| graph_of(m).output[0].r#type = None),
        ("no shape", |m| graph_of(m).output[0] = value("output", DType::Float, None)),
        ("no types of inputs", |m| graph_of(m).input.iter_mut().for_each(|input| input.r#type = None)),
        ("also an input", |m| graph_of(m).output.push(declared("data", DType::Float, &[3, 2]))),
    ]);
}

/// An output may be left out by an empty name at the end, or by no name: both are the same.
#[test]
fn outputs_that_are_left_out_at_the_end() {
    use crate::common::{int, ints, node};
    let channels: Vec<&str> = vec!["x", "scale", "bias", "mean", "variance"];
    for (operator, version, inputs, attributes, count) in [
        ("MaxPool", 12, vec!["x"], vec![ints("kernel_shape", &[2])], 2),
        ("Dropout", 10, vec!["x"], vec![], 2),
        ("Dropout", 22, vec!["x"], vec![], 2),
        ("BatchNormalization", 9, channels.clone(), vec![], 5),
        ("BatchNormalization", 15, channels.clone(), vec![], 3),
        ("BatchNormalization", 6, channels, vec![int("is_test", 1)], 5),
    ] {
        let run = |outputs: &[&str]| {
            let mut model = good();
            model.opset_import = vec![crate::import("", version)];
            let graph = graph_of(&mut model);
            graph.node = vec![node(operator, &inputs, outputs, attributes.clone())];
            graph.input = inputs.iter().map(|name| value(name, DType::Float, None)).collect();
            graph.output = vec![ValueInfoProto { name: Some("y".into()), ..Default::default() }];
            let x = ndarray::arr3(&[[[1f32, 2.0, 3.0], [4.0, 5.5, 6.0]]]);
            let feeds = inputs.iter().fold(inputs! {}, |feeds, name| match *name {
                "x" => feeds.with("x", x.clone()),
                name => feeds.with(name, ndarray::arr1(&[0.5f32, 0.25])),
            });
            load_and_run(&model, feeds).map(|outputs| outputs["y"].clone())
        };
        let mut names = vec![""; count];
        names[0] = "y";
        assert_eq!(run(&names).unwrap(), run(&["y"]).unwrap(), "{operator}-{version}");
    }
}
