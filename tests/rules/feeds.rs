//! Feeds.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::ModelProto;
use crate::common::{node, value};
use crate::{With, at_value, data, good, graph_of, indices, int64, load, load_and_run};
use ndarray::array;
use onnxref::{DType, Dim, Inputs, Kind, Place, inputs};

fn refused(model: &ModelProto, feeds: Inputs<'_>, text: &str, place: Place) {
    assert_as_expected([difference_at(text, load_and_run(model, feeds), Kind::Input, text, &place)]);
}

#[test]
fn each_input_is_fed_once() {
    let check = |feeds, text: &str, name: &str| refused(&good(), feeds, text, at_value(name));
    check(inputs! { "data" => data() }, "missing input \"indices\" (int64, [2])", "indices");
    check(inputs! {}, "missing input \"data\" (float32, [3, 2])", "data");
    check(
        inputs! { "data" => data(), "indices" => indices(), "extra" => data() },
        "input \"extra\" is not an input of the model, which takes \"data\", \"indices\"",
        "extra",
    );
    check(
        inputs! { "data" => data(), "indices" => indices(), "output" => data() },
        "input \"output\" is not an input of the model, which takes \"data\", \"indices\"",
        "output",
    );
    check(
        inputs! { "data" => data(), "data" => data(), "indices" => indices() },
        "input \"data\" is fed twice",
        "data",
    );
    check(inputs! { "" => data() }, "input \"\" is not an input of the model, which takes \"data\", \"indices\"", "");
}

#[test]
fn a_model_without_inputs_takes_none() {
    let mut model = good();
    let graph = graph_of(&mut model);
    graph.initializer =
        vec![crate::common::initializer("data", &data()), crate::common::initializer("indices", &indices())];
    graph.input.clear();
    load_and_run(&model, inputs! {}).unwrap();
    let text = "input \"data\" is not an input of the model, which takes no inputs";
    refused(&model, inputs! { "data" => data() }, text, at_value("data"));
}

#[test]
fn a_feed_is_as_its_input_is_declared() {
    let check = |feeds, text: &str, place| refused(&good(), feeds, text, place);
    check(
        inputs! { "data" => ndarray::Array2::<f64>::zeros((3, 2)), "indices" => indices() },
        "input \"data\" has element type float64, but the model expects float32",
        at_value("data"),
    );
    check(
        inputs! { "data" => data(), "indices" => array![0i32, 1] },
        "input \"indices\" has element type int32, but the model expects int64",
        at_value("indices"),
    );
    check(
        inputs! { "data" => array![0f32, 1.0], "indices" => indices() },
        "input \"data\" has shape [2] of rank 1, but the model expects rank 2",
        at_value("data"),
    );
    check(
        inputs! { "data" => data(), "indices" => ndarray::arr0(0i64) },
        "input \"indices\" has shape [] of rank 0, but the model expects rank 1",
        at_value("indices"),
    );
    check(
        inputs! { "data" => ndarray::Array2::<f32>::zeros((3, 3)), "indices" => indices() },
        "input \"data\" has shape [3, 3]: dimension 1 is 3, but the model expects 2",
        at_value("data").with(|p| (p.axis, p.size) = (Some(1), Some(3))),
    );
    check(
        inputs! { "data" => data(), "indices" => int64(&[0], &[]) },
        "input \"indices\" has shape [0]: dimension 0 is 0, but the model expects 2",
        at_value("indices").with(|p| (p.axis, p.size) = (Some(0), Some(0))),
    );
}

#[test]
fn a_symbol_has_one_extent() {
    let symbol = |name: &str| Dim::Symbol(name.into());
    let mut model = good();
    let graph = graph_of(&mut model);
    graph.input[0] = value("data", DType::Float, Some(&[symbol("N"), symbol("M")]));
    graph.input[1] = value("indices", DType::Int64, Some(&[symbol("N")]));
    graph.output[0] = value("output", DType::Float, None);
    let output = |feeds| load_and_run(&model, feeds).unwrap()["output"].shape().to_vec();
    assert_eq!(output(inputs! { "data" => data(), "indices" => array![0i64, 0, 0] }), [3, 2]);
    assert_eq!(output(inputs! { "data" => array![[0f32]], "indices" => array![0i64] }), [1, 1]);
    refused(
        &model,
        inputs! { "data" => data(), "indices" => indices() },
        "input \"indices\" has shape [2]: dimension 0 is 2, but \"N\" is 3 in \"data\"",
        at_value("indices").with(|p| (p.axis, p.size) = (Some(0), Some(2))),
    );

    graph_of(&mut model).input[0] = value("data", DType::Float, Some(&[symbol("N"), symbol("N")]));
    refused(
        &model,
        inputs! { "data" => data(), "indices" => indices() },
        "input \"data\" has shape [3, 2]: dimension 1 is 2, but \"N\" is 3 in \"data\"",
        at_value("data").with(|p| (p.axis, p.size) = (Some(1), Some(2))),
    );
}

#[test]
fn dimensions_that_are_not_said_are_free() {
    let mut model = good();
    let graph = graph_of(&mut model);
    graph.input[0] = value("data", DType::Float, Some(&[Dim::Unknown, Dim::Symbol(String::new())]));
    graph.input[1] = value("indices", DType::Int64, None);
    graph.output[0] = value("output", DType::Float, None);
    for indices in [int64(&[], &[1]), int64(&[2, 2], &[0; 4]), int64(&[0], &[])] {
        load_and_run(&model, inputs! { "data" => data(), "indices" => indices }).unwrap();
    }

    // onnxmltools gives the names that users write for unknown sizes, which say nothing of each other.
    for name in ["None", "?"] {
        let dims = [(); 2].map(|()| Dim::Symbol(name.into()));
        graph_of(&mut model).input[0] = value("data", DType::Float, Some(&dims));
        let model = load(&model).unwrap();
        model.run(inputs! { "data" => data(), "indices" => indices() }).unwrap();
        assert_eq!(model.inputs().next().unwrap().shape.as_deref(), Some(&[Dim::Unknown, Dim::Unknown][..]));
    }
}

#[test]
fn a_fault_of_a_later_node_names_that_node() {
    let mut model = good();
    let graph = graph_of(&mut model);
    graph.node.push(node("Gather", &["output", "indices"], &["again"], vec![]));
    graph.output[0] = value("again", DType::Float, None);
    let error = load_and_run(&model, inputs! { "data" => data(), "indices" => array![1i64, 2] }).unwrap_err();
    let text = "node #1 (Gather-13): indices[1] = 2 is out of range for axis 0 of \"data\" (value \"output\"), which has 2 entries: \
                allowed -2..=1";
    assert_eq!((error.to_string().as_str(), error.place().node_index), (text, Some(1)));
}
