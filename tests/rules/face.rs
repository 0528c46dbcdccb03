//! The library's API: feeds, outputs, runners, cancelling, files from memory.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::{GraphProto, ModelProto, StringStringEntryProto, TensorProto};
use crate::common::{initializer, int, node, value};
use crate::custom::{add, one};
use crate::{With, at_value, data, declared, good, good_feeds, good_output, graph_of, indices, int64, iota, load};
use ndarray::array;
use onnxref::conformance::Case;
use onnxref::{Cancel, DType, Error, Inputs, Kind, LoadOptions, Model, Place, Runner, Tensor, Value, inputs};
use prost::Message;
use std::path::Path;
use std::time::Duration;

/// As a Python class or a service has it.
struct Owner {
    runner: Runner,
    model: Model,
}

#[test]
fn a_runner_lives_beside_its_model_and_after_it() {
    let model = load(&good()).unwrap();
    let mut owner = Owner { runner: model.runner(), model: model.clone() };
    drop(model);
    owner.runner.feed("data", data()).unwrap();
    owner.runner.feed_at(1, indices()).unwrap();
    owner.runner.run().unwrap();
    assert_eq!(owner.runner.output("output").unwrap(), &good_output());
    assert_eq!(owner.runner.model().inputs().len(), owner.model.inputs().len());
    let Owner { mut runner, model } = owner;
    drop(model);
    let moved = std::thread::spawn(move || {
        runner.feed("indices", int64(&[2], &[0, 0])).unwrap();
        runner.run().unwrap();
        runner.output("output").unwrap().clone()
    });
    assert_eq!(moved.join().unwrap(), array![[0f32, 1.0], [0.0, 1.0]].into());
}

#[test]
fn a_runner_has_no_outputs_of_other_feeds() {
    let mut runner = load(&good()).unwrap().runner();
    let text = "there are no outputs: the model was not run with these feeds";
    assert_eq!(runner.output("output").unwrap_err().to_string(), text);
    runner.feed("data", data()).unwrap();
    assert_eq!(runner.run().unwrap_err().place(), &at_value("indices"));
    runner.feed("indices", indices()).unwrap();
    runner.run().unwrap();
    assert_eq!(runner.output("data").unwrap_err().to_string(), "there is no output \"data\"");
    runner.feed("indices", int64(&[2], &[0, 9])).unwrap();
    assert_eq!(runner.output("output").unwrap_err().to_string(), text);
    assert_eq!(runner.run().unwrap_err().place().value, Some(9));
    assert_eq!(runner.output("output").unwrap_err().to_string(), text);
    let place = Place::default().with(|p| (p.value, p.size) = (Some(2), Some(2)));
    let result = runner.feed_at(2, data());
    let text = "there is no input 2: the model has 2";
    assert_as_expected([difference_at("position", result, Kind::Input, text, &place)]);
}

#[test]
fn a_run_is_cancelled_by_a_call_or_a_clock() {
    let model = load(&good()).unwrap();
    let cancel = Cancel::new();
    assert_eq!(model.run_with(good_feeds(), &cancel).unwrap()["output"], good_output());
    cancel.clone().cancel();
    assert!(cancel.is_cancelled());
    let error = model.run_with(good_feeds(), &cancel).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Cancelled, "the run was cancelled by its caller"));
    // Other runs go on, as do those with time left.
    assert_eq!(model.run(good_feeds()).unwrap()["output"], good_output());
    assert_eq!(model.run_with(good_feeds(), &Cancel::after(Duration::from_secs(3600))).unwrap().len(), 1);
    let error = model.run_with(good_feeds(), &Cancel::after(Duration::ZERO)).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Cancelled, "the time of the run is up"));
    // Whichever comes first.
    for (asked, time, text) in [
        (true, Duration::from_secs(3600), "the run was cancelled by its caller"),
        (false, Duration::ZERO, "the time of the run is up"),
    ] {
        let error = model.run_with(good_feeds(), &Cancel::when_or_after(move || asked, time)).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Cancelled, text));
    }
}

/// A model of an operator that never ends by itself, but looks whether it should.
fn endless() -> Model {
    let options = add("com.example.Own 1\n  (x: T) -> (y: T)\n  T: float", |call| {
        loop {
            call.check_cancel()?;
            std::thread::yield_now();
        }
    });
    let mut model = good();
    model.opset_import.push(crate::import("com.example", 1));
    let graph = graph_of(&mut model);
    graph.node[0] = node("Own", &["data"], &["output"], vec![]);
    graph.node[0].domain = Some("com.example".into());
    options.from_bytes(model.encode_to_vec()).unwrap()
}

#[test]
fn a_run_is_cancelled_from_another_thread() {
    let (model, cancel) = (endless(), Cancel::new());
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| model.run_with(good_feeds(), &cancel).unwrap_err());
        std::thread::sleep(Duration::from_millis(20));
        cancel.cancel();
        run.join().unwrap()
    });
    assert_eq!((error.kind(), error.place().operator.as_deref()), (Kind::Cancelled, Some("Own")), "{error}");
    let error = model.run_with(good_feeds(), &Cancel::after(Duration::from_millis(20))).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled, "{error}");
    assert!(error.to_string().ends_with(": the time of the run is up"), "{error}");
    let mut runner = model.runner();
    runner.feed_at(0, data()).unwrap();
    runner.feed_at(1, indices()).unwrap();
    runner.cancel_with(&Cancel::after(Duration::from_millis(20)));
    assert_eq!(runner.run().unwrap_err().kind(), Kind::Cancelled);
}

#[test]
fn feeds_come_by_position_too() {
    let model = load(&good()).unwrap();
    let run = |feeds: Inputs<'_>| model.run(feeds).map(|outputs| outputs["output"].clone());
    assert_eq!(run(inputs![data(), indices()]).unwrap(), good_output());
    assert_eq!(run(inputs![&data(), vec![2i64, 0]]).unwrap(), good_output());
    assert_eq!(run(inputs![array![[0f32, 1.0], [2.0, 3.0], [4.0, 5.0]], [2i64, 0]]).unwrap(), good_output());
    assert_eq!(run(inputs![Value::from(data()), &[2i64, 0][..]]).unwrap(), good_output());
    assert_eq!(run(Inputs::new().with("indices", vec![2i64, 0]).next(data())).unwrap(), good_output());
    let pairs: Inputs<'_> = [("indices", indices()), ("data", data())].into_iter().collect();
    assert_eq!(run(pairs).unwrap(), good_output());

    let check = |feeds: Inputs<'_>, text: &str, place: Place| {
        assert_as_expected([difference_at(text, run(feeds), Kind::Input, text, &place)]);
    };
    let many = Place::default().with(|p| (p.value, p.size) = (Some(3), Some(2)));
    check(inputs![data(), indices(), data()], "more than 2 values are fed: the model has 2 inputs", many);
    check(inputs![data()], "missing input \"indices\" (int64, [2])", at_value("indices"));
    check(inputs![], "missing input \"data\" (float32, [3, 2])", at_value("data"));
    check(Inputs::new().with("data", data()).next(data()), "input \"data\" is fed twice", at_value("data"));
    check(Inputs::new().next(data()).with("data", data()), "input \"data\" is fed twice", at_value("data"));
    let text = "input \"data\" has element type int64, but the model expects float32";
    check(inputs![indices(), data()], text, at_value("data"));
}

/// [`good`] with its data as a second output.
fn two_outputs() -> Model {
    let mut model = good();
    graph_of(&mut model).output.push(declared("data", DType::Float, &[3, 2]));
    load(&model).unwrap()
}

#[test]
fn outputs_are_read_and_taken_by_name() {
    let model = two_outputs();
    let outputs = || model.run(good_feeds()).unwrap();
    let list: Vec<(String, Value)> = outputs().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    assert_eq!(list, [("output".to_string(), good_output().into()), ("data".to_string(), data().into())]);
    let mut outputs = outputs();
    assert_eq!((outputs.len(), outputs.iter().map(|(name, _)| name).collect::<Vec<_>>()), (2, vec!["output", "data"]));
    assert_eq!(outputs.tensor("output").unwrap(), &good_output());
    assert_eq!(outputs.get("data"), Some(&data().into()));
    let missing = |error: Error, name: &str| {
        assert_eq!((error.kind(), error.place()), (Kind::Input, &at_value(name)));
        assert_eq!(error.to_string(), format!("there is no output \"{name}\""));
    };
    missing(outputs.tensor("indices").unwrap_err(), "indices");
    missing(outputs.take_value("").unwrap_err(), "");
    // A wrong type takes nothing out.
    assert_eq!(
        outputs.take::<i64>("output").unwrap_err().to_string(),
        "the tensor has element type float32, not int64"
    );
    assert_eq!(outputs.take::<f32>("output").unwrap(), array![[4f32, 5.0], [0.0, 1.0]].into_dyn());
    missing(outputs.take::<f32>("output").unwrap_err(), "output");
    assert_eq!(outputs.take_value("data").unwrap(), data().into());
    missing(outputs.take_value("data").unwrap_err(), "data");
    assert!(outputs.is_empty() && outputs.get("output").is_none());
}

#[test]
fn bytes_of_every_type_but_strings_come_out() {
    for (dtype, bytes) in [(DType::Float8e5m2, [0x3c, 0xff]), (DType::Int4, [0xf8, 0x07]), (DType::Uint2, [0, 3])] {
        let tensor = Tensor::new(dtype, &[2], bytes.to_vec()).unwrap();
        let clone = tensor.clone();
        assert_eq!((tensor.bytes(), &tensor.clone().into_bytes().unwrap()[..]), (&bytes[..], &bytes[..]), "{dtype}");
        assert_eq!(clone.into_bytes().unwrap(), &bytes[..]);
    }
    // A run's output, which nobody else has, is where it was.
    let output = load(&good()).unwrap().run(good_feeds()).unwrap().take_value("output").unwrap().into_tensor().unwrap();
    let at = output.bytes().as_ptr();
    let bytes = output.into_bytes().unwrap();
    assert_eq!((&bytes[..], bytes.as_ptr()), (good_output().bytes(), at));
    let error = Tensor::from_strings(&[1], ["a"]).unwrap().into_bytes().unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (Kind::Input, "the tensor has element type string, not one of numbers")
    );
}

#[test]
fn a_model_may_be_in_the_program() {
    static BYTES: &[u8; 165] = include_bytes!("../../onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx");
    let of_array = Model::from_bytes(BYTES).unwrap();
    let of_slice = Model::from_bytes(&BYTES[..]).unwrap();
    let of_vec = Model::from_bytes(BYTES.to_vec()).unwrap();
    let of_box = Model::from_bytes(BYTES.to_vec().into_boxed_slice()).unwrap();
    for model in [of_array, of_slice, of_vec, of_box] {
        let names: Vec<&str> = model.inputs().map(|info| info.name.as_str()).collect();
        assert_eq!(names, ["data", "indices"]);
    }
    assert_eq!(Model::from_bytes("no model").unwrap_err().kind(), Kind::Model);
}

/// [`good`] with its data at an offset of the location "weights".
fn external(offset: &str) -> ModelProto {
    let mut model = good();
    let graph = graph_of(&mut model);
    graph.input.remove(0);
    let entries = [("location", "weights"), ("offset", offset), ("length", "24")];
    let entry =
        |(key, value): (&str, &str)| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
    let (external_data, dims) = (entries.into_iter().map(entry).collect(), vec![3, 2]);
    let data_type = Some(DType::Float.code());
    let tensor = TensorProto { name: Some("data".into()), data_type, dims, external_data, ..Default::default() };
    graph.initializer.push(TensorProto { data_location: Some(1), ..tensor });
    model
}

#[test]
fn external_data_may_be_in_memory() {
    let weights = [&[7; 8], data().bytes(), &[7; 3]].concat();
    let load = |location: &str, offset: &str| {
        let options = Model::options().external_data(location, weights.clone());
        options.from_bytes(external(offset).encode_to_vec())
    };
    let model = load("weights", "8").unwrap();
    assert_eq!(model.run(inputs! { "indices" => indices() }).unwrap()["output"], good_output());
    let check = |offset: &str, text: &str| {
        let text = format!("initializer: tensor \"data\": {text}");
        let result = load("weights", offset);
        let place = result.as_ref().map(drop).map_err(|error| error.place().clone()).unwrap_err();
        assert_eq!(place.value_name.as_deref(), Some("data"));
        assert_as_expected([difference_at(offset, result, Kind::Model, &text, &place)]);
    };
    check("12", "external data \"weights\" has 35 bytes: 24 bytes from offset 12 reach beyond its end");
    check(
        "18446744073709551615",
        "external data \"weights\" has 35 bytes: 24 bytes from offset 18446744073709551615 reach beyond its end",
    );
    let error = load("other", "0").unwrap_err();
    assert_eq!((error.kind(), error.place()), (Kind::Input, &at_value("data")), "{error}");
    // It is used instead of the file system also where the model is a file.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    std::fs::write(&path, external("8").encode_to_vec()).unwrap();
    std::fs::write(folder.path().join("weights"), [0; 35]).unwrap();
    let model = Model::options().external_data("weights", weights.clone()).load(path).unwrap();
    assert_eq!(model.run(inputs! { "indices" => indices() }).unwrap()["output"], good_output());
}

fn indices_of(name: &str, values: &[i64]) -> TensorProto {
    initializer(name, &int64(&[values.len()], values))
}

/// Constants that lead to a value, what nobody reads, and a node that reads the feed:
/// `output = data[picked]`, where `picked = table[first][second]`.
fn chain() -> ModelProto {
    let named = |name: &str, inputs: &[&str], output: &str| {
        let mut node = node("Gather", inputs, &[output], vec![int("axis", 0)]);
        node.name = Some(name.into());
        node
    };
    let mut model = good();
    *graph_of(&mut model) = GraphProto {
        name: Some("graph".into()),
        initializer: vec![
            indices_of("table", &[5, 2, 1, 0]),
            indices_of("first", &[1, 3, 2]),
            indices_of("second", &[0, 1]),
            indices_of("bad", &[9]),
        ],
        node: vec![
            named("folded 1", &["table", "first"], "a"),
            named("unread, of constants", &["table", "bad"], "b"),
            named("folded 2", &["a", "second"], "picked"),
            named("unread", &["data", "bad"], "c"),
            named("last", &["data", "picked"], "output"),
        ],
        input: vec![value("data", DType::Float, None)],
        output: vec![value("output", DType::Float, None), value("picked", DType::Int64, None)],
        ..GraphProto::default()
    };
    model
}

fn names(model: &Model) -> Vec<&str> {
    model.nodes().map(|node| node.name).collect()
}

#[test]
fn nodes_that_need_not_run_are_not_run() {
    let load = |optimize| Model::options().optimize(optimize).from_bytes(chain().encode_to_vec()).unwrap();
    let (quick, whole) = (load(true), load(false));
    assert_eq!(names(&quick), ["last"]);
    assert_eq!(names(&whole), ["folded 1", "unread, of constants", "folded 2", "unread", "last"]);
    assert_eq!((quick.node_count(), whole.node_count()), (5, 5));
    let node = quick.nodes().next().unwrap();
    assert_eq!((node.index, node.operator, node.domain, node.version, node.function), (4, "Gather", "", 13, None));
    let outputs = quick.run(inputs![iota(&[3, 2])]).unwrap();
    assert_eq!(outputs["output"], good_output());
    assert_eq!(outputs["picked"], int64(&[2], &[2, 0]));
    // What is not run can't fail.
    let error = whole.run(inputs![iota(&[3, 2])]).unwrap_err();
    let place = error.place();
    assert_eq!((place.node.as_deref(), place.value), (Some("unread, of constants"), Some(9)));
    let mut right = chain();
    graph_of(&mut right).initializer[3] = indices_of("bad", &[0]);
    let whole = Model::options().optimize(false).from_bytes(right.encode_to_vec()).unwrap();
    let all = whole.run(inputs![iota(&[3, 2])]).unwrap();
    assert!(all.iter().eq(outputs.iter()));
}

#[test]
fn a_constant_that_is_wrong_is_an_error_of_the_run() {
    // It is read: the model loads all the same, and each run says what is wrong.
    let mut model = chain();
    graph_of(&mut model).initializer[1] = indices_of("first", &[1, 4]);
    let errors = [true, false].map(|optimize| {
        let model = Model::options().optimize(optimize).from_bytes(model.encode_to_vec()).unwrap();
        model.run(inputs![iota(&[3, 2])]).unwrap_err()
    });
    assert_eq!(errors[0].place(), errors[1].place());
    assert_eq!((errors[0].kind(), errors[0].place().node.as_deref()), (Kind::Input, Some("folded 1")));
}

#[test]
fn the_official_models_give_the_same_without_passes() {
    let root = Path::new("onnx-test-data/gather");
    let mut count = 0;
    for case in Case::find(root).unwrap() {
        let folder = root.join(&case.name);
        let load = |optimize| Model::options().optimize(optimize).load(folder.join("model.onnx")).unwrap();
        let (quick, whole) = (load(true), load(false));
        for set in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let feed = |(k, info): (usize, &onnxref::ValueInfo)| {
                let bytes = std::fs::read(set.join(format!("input_{k}.pb"))).unwrap();
                Value::from_proto_bytes(bytes, info.value_type.as_ref().unwrap()).unwrap()
            };
            let feeds = || quick.inputs().enumerate().map(feed).fold(Inputs::new(), Inputs::next);
            assert!(quick.run(feeds()).unwrap().iter().eq(whole.run(feeds()).unwrap().iter()), "{}", case.name);
            count += 1;
        }
    }
    assert!(count >= 20, "{count}");
}

#[test]
fn element_types_have_names() {
    for dtype in DType::all() {
        assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
    }
    let error = "float33".parse::<DType>().unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Input, "\"float33\" is not an element type"));
    assert!("".parse::<DType>().is_err() && "Float".parse::<DType>().is_err());
}

#[test]
fn an_error_has_the_one_that_caused_it() {
    use std::error::Error as _;
    let source = |error: &Error| error.source().map(ToString::to_string);
    let error = Error::input("it can't be read").caused_by(std::io::Error::other("the disk is gone"));
    assert_eq!((error.to_string().as_str(), source(&error).as_deref()), ("it can't be read", Some("the disk is gone")));
    assert_eq!(source(&Error::input("alone")), None);
    // Through an operator, with its place.
    let options = add("com.example.Own 1\n  (x: T) -> (y: T)\n  T: float", |call| {
        if call.tensor(0)?.len() > 1 {
            let parse = "x".parse::<i32>().unwrap_err();
            return Err(Error::new(Kind::Io, "no number").caused_by(parse));
        }
        one(array![1f32])
    });
    let mut model = good();
    model.opset_import.push(crate::import("com.example", 1));
    let graph = graph_of(&mut model);
    graph.node[0] = node("Own", &["data"], &["output"], vec![]);
    graph.node[0].domain = Some("com.example".into());
    let error = LoadOptions::from_bytes(&options, model.encode_to_vec()).unwrap().run(good_feeds()).unwrap_err();
    assert_eq!((error.kind(), error.place().operator.as_deref()), (Kind::Io, Some("Own")));
    assert!(error.source().unwrap().is::<std::num::ParseIntError>());
    // That of a file is the system's.
    let error = Model::load("there/is/no/such/file.onnx").unwrap_err();
    let source = error.source().unwrap().downcast_ref::<std::io::Error>().unwrap();
    assert_eq!((error.kind(), source.kind()), (Kind::Io, std::io::ErrorKind::NotFound));
}
