//! Initializers as inputs and as constants, before and from IR version 4 on.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::ModelProto;
use crate::common::{initializer, value};
use crate::{With, at_value, case, check_loads, data, declared, good, good_output, graph_of, indices, int64, load};
use ndarray::array;
use onnxref::{DType, Dim, Kind, inputs};

/// [`good`] with `indices` as an initializer, which stays an input or doesn't.
fn with_default(ir_version: i64, input: bool) -> ModelProto {
    let mut model = good();
    model.ir_version = Some(ir_version);
    let graph = graph_of(&mut model);
    graph.initializer.push(initializer("indices", &indices()));
    graph.output[0] = value("output", DType::Float, None);
    if !input {
        graph.input.pop();
    }
    model
}

#[test]
fn an_initializer_need_not_be_fed() {
    for (ir_version, input) in [(3, true), (4, true), (4, false), (14, true), (14, false)] {
        let model = load(&with_default(ir_version, input)).unwrap();
        assert_eq!(model.run(inputs! { "data" => data() }).unwrap()["output"], good_output(), "{ir_version}");
        assert_eq!(model.has_default("indices"), ir_version >= 4 && input);
    }
}

#[test]
fn until_ir_version_3_an_initializer_is_an_input_too() {
    // One that isn't can only be a constant.
    let mut second = with_default(2, false);
    second.opset_import.clear();
    for (version, model) in [(3, with_default(3, false)), (2, second)] {
        let model = load(&model).unwrap();
        let note =
            format!("initializer \"indices\" is not an input too, as IR version {version} requires: it is constant");
        assert_eq!(model.report(), [note]);
        assert_eq!(model.run(inputs! { "data" => data() }).unwrap()["output"], good_output());
    }
}

#[test]
fn until_ir_version_3_an_initializer_is_not_fed() {
    let model = load(&with_default(3, true)).unwrap();
    let names: Vec<&str> = model.inputs().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["data"]);
    let result = model.run(inputs! { "data" => data(), "indices" => indices() });
    let text = "input \"indices\" has an initializer, which can't be overridden under IR version 3";
    assert_as_expected([difference_at("fed", result, Kind::Input, text, &at_value("indices"))]);
}

#[test]
fn from_ir_version_4_on_an_input_overrides_its_initializer() {
    let model = load(&with_default(4, true)).unwrap();
    let outputs = model.run(inputs! { "data" => data(), "indices" => array![1i64, 1] }).unwrap();
    assert_eq!(outputs["output"], array![[2f32, 3.0], [2.0, 3.0]].into());
    let result = model.run(inputs! { "data" => data(), "indices" => array![1i32, 1] });
    let text = "input \"indices\" has element type int32, but the model expects int64";
    assert_as_expected([difference_at("fed", result, Kind::Input, text, &at_value("indices"))]);
}

#[test]
fn an_initializer_that_is_no_input_is_not_fed() {
    let model = load(&with_default(4, false)).unwrap();
    let result = model.run(inputs! { "data" => data(), "indices" => indices() });
    let text = "input \"indices\" is not an input of the model, which takes \"data\"";
    assert_as_expected([difference_at("fed", result, Kind::Input, text, &at_value("indices"))]);
}

#[test]
fn an_initializer_is_as_its_input_is_declared() {
    check_loads([
        case(
            "element type",
            |m| graph_of(m).initializer.push(initializer("indices", &array![2i32, 0].into())),
            Kind::Model,
            "initializer \"indices\" has element type int32, but the input \"indices\" has int64",
            at_value("indices"),
        ),
        case(
            "element type under IR version 3",
            |m| {
                m.ir_version = Some(3);
                graph_of(m).initializer.push(initializer("data", &ndarray::Array2::<f64>::zeros((3, 2)).into()));
            },
            Kind::Model,
            "initializer \"data\" has element type float64, but the input \"data\" has float32",
            at_value("data"),
        ),
        case(
            "size",
            |m| graph_of(m).initializer.push(initializer("indices", &int64(&[3], &[0, 1, 2]))),
            Kind::Model,
            "initializer \"indices\" has shape [3], but the input \"indices\" is declared as [2]",
            at_value("indices"),
        ),
        case(
            "rank under IR version 3",
            |m| {
                m.ir_version = Some(3);
                graph_of(m).initializer.push(initializer("indices", &int64(&[2, 1], &[0, 1])));
            },
            Kind::Model,
            "initializer \"indices\" has shape [2, 1], but the input \"indices\" is declared as [2]",
            at_value("indices"),
        ),
        case(
            "one symbol with two extents",
            |m| {
                let square = [Dim::Symbol("N".into()), Dim::Symbol("N".into())];
                graph_of(m).input[0] = value("data", DType::Float, Some(&square));
                graph_of(m).initializer.push(initializer("data", &data()));
            },
            Kind::Model,
            "initializer \"data\" has shape [3, 2], but the input \"data\" is declared as [N, N]",
            at_value("data"),
        ),
    ]);
}

#[test]
fn what_is_wrong_with_an_initializer_is_said_once() {
    let mut model = good();
    // The input and the output are declared as float: nodes between them are not at fault.
    graph_of(&mut model).initializer.push(initializer("data", &int64(&[3, 2], &[0; 6])));
    let error = load(&model).unwrap_err();
    assert_eq!(error.fault_count(), 1, "{:?}", error.causes());
    assert_eq!(error.place().value_name.as_deref(), Some("data"));
}

#[test]
fn an_initializer_that_is_not_fed_has_its_part_in_the_symbols() {
    let symbol = [Dim::Symbol("N".into())];
    let mut model = with_default(8, true);
    let graph = graph_of(&mut model);
    graph.input[1] = value("indices", DType::Int64, Some(&symbol));
    graph.input.push(value("extra", DType::Float, Some(&symbol)));
    let model = load(&model).unwrap();
    model.run(inputs! { "data" => data(), "extra" => array![0f32, 0.0] }).unwrap();
    let result = model.run(inputs! { "data" => data(), "extra" => array![0f32] });
    let text = "input \"extra\" has shape [1]: dimension 0 is 1, but \"N\" is 2 in \"indices\"";
    let place = at_value("extra").with(|p| (p.axis, p.size) = (Some(0), Some(1)));
    assert_as_expected([difference_at("extra", result, Kind::Input, text, &place)]);
}

#[test]
fn one_bad_initializer_is_one_fault() {
    check_loads([
        case(
            "that is an input",
            |m| {
                let mut bad = initializer("indices", &indices());
                bad.dims = vec![3];
                graph_of(m).initializer.push(bad);
            },
            Kind::Model,
            "initializer: tensor \"indices\": its raw data has 16 bytes: int64 of shape [3] takes 24",
            at_value("indices").with(|p| (p.value, p.size) = (Some(16), Some(24))),
        ),
        case(
            "that is none",
            |m| {
                let mut bad = initializer("indices", &indices());
                bad.dims = vec![3];
                graph_of(m).input.pop();
                graph_of(m).initializer.push(bad);
            },
            Kind::Model,
            "initializer: tensor \"indices\": its raw data has 16 bytes: int64 of shape [3] takes 24",
            at_value("indices").with(|p| (p.value, p.size) = (Some(16), Some(24))),
        ),
        case(
            "that is an output",
            |m| {
                let mut bad = initializer("extra", &indices());
                bad.dims = vec![3];
                graph_of(m).initializer.push(bad);
                graph_of(m).output.push(declared("extra", DType::Int64, &[3]));
            },
            Kind::Model,
            "initializer: tensor \"extra\": its raw data has 16 bytes: int64 of shape [3] takes 24",
            at_value("extra").with(|p| (p.value, p.size) = (Some(16), Some(24))),
        ),
    ]);
}
