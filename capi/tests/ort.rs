//! Programs that use the crate `ort`: what its examples and documentation do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../tests/common/mod.rs"]
mod common;

use anyhow::Result;
use common::proto::{GraphProto, ModelProto, StringStringEntryProto};
use common::{archive, node, one_node, typed, value};
use onnxref::{DType, Dim, Model, Tensor as Wanted, ValueType};
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session, builder::GraphOptimizationLevel};
use ort::value::{DynMapValueType, DynTensorValueType, Map, Sequence, Tensor, TensorElementType, TensorRef};
use prost::Message;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The one line that a program needs.
fn onnxref() {
    ort::set_api(onnxref_capi::api());
}

fn data(path: &str) -> std::path::PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../onnx-test-data")).join(path)
}

fn session(model: &[u8]) -> ort::Result<Session> {
    onnxref();
    Session::builder()?.commit_from_memory(model)
}

/// The files of a model in an archive.
fn files(archive: &str, model: &str) -> Vec<(String, Vec<u8>)> {
    archive::unpack(data(archive), |path| path.contains(&format!("/{model}/"))).unwrap()
}

fn file<'a>(files: &'a [(String, Vec<u8>)], name: &str) -> &'a [u8] {
    &files.iter().find(|(path, _)| path.ends_with(name)).unwrap_or_else(|| panic!("no {name}")).1
}

/// A message without its last line break.
fn message<T>(result: ort::Result<T>) -> String {
    result.err().expect("an error").message().to_string()
}

const GATHER: &str = "gather/onnx-1.12.0/node/test_gather_0/model.onnx";

#[test]
fn load_and_run() -> Result<()> {
    onnxref();
    let mut session = Session::builder()?
        .with_optimization_level(GraphOptimizationLevel::Level3)
        .map_err(|error| anyhow::anyhow!("{error}"))?
        .with_intra_threads(2)
        .map_err(|error| anyhow::anyhow!("{error}"))?
        .commit_from_file(data(GATHER))?;
    let names: Vec<&str> = session.inputs().iter().map(|input| input.name()).collect();
    assert_eq!(names, ["data", "indices"]);
    assert_eq!(session.outputs()[0].name(), "y");
    assert_eq!(session.inputs()[0].dtype().tensor_shape().map(|shape| shape.to_vec()), Some(vec![5, 4, 3, 2]));
    assert_eq!(session.inputs()[1].dtype().tensor_type(), Some(TensorElementType::Int64));
    let elements: Vec<f32> = (0..120u8).map(f32::from).collect();
    let data = Tensor::from_array(([5usize, 4, 3, 2], elements.clone()))?;
    let outputs =
        session.run(ort::inputs!["data" => data, "indices" => Tensor::from_array(([3usize], vec![0i64, 1, 3]))?])?;
    let (shape, given) = outputs["y"].try_extract_tensor::<f32>()?;
    assert_eq!(shape.to_vec(), [3, 4, 3, 2]);
    assert_eq!(given, [&elements[..48], &elements[72..96]].concat());
    Ok(())
}

#[test]
fn what_a_model_says() -> Result<()> {
    let graph = GraphProto {
        name: Some("the graph".into()),
        doc_string: Some("what the graph does".into()),
        node: vec![node("Add", &["a", "b"], &["sum"], vec![])],
        input: vec![
            value("a", DType::Float, Some(&[Dim::Symbol("batch".into()), Dim::Fixed(2), Dim::Unknown])),
            value("b", DType::Float, None),
        ],
        initializer: vec![common::initializer("b", &Wanted::scalar(1f32))],
        output: vec![value("sum", DType::Float, None)],
        ..Default::default()
    };
    let entry = |key: &str, value: &str| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
    let mut model = ModelProto::decode(&*common::model(21, 10, graph))?;
    model.producer_name = Some("a producer".into());
    model.domain = Some("a.domain".into());
    model.model_version = Some(7);
    model.doc_string = Some("what the model does".into());
    model.metadata_props = vec![entry("author", "somebody"), entry("producer_name", "another")];
    let session = session(&model.encode_to_vec())?;
    let found = session.metadata()?;
    assert_eq!(found.producer().as_deref(), Some("a producer"));
    assert_eq!(found.name().as_deref(), Some("the graph"));
    assert_eq!(found.domain().as_deref(), Some("a.domain"));
    assert_eq!(found.description().as_deref(), Some("what the model does"));
    assert_eq!(found.graph_description().as_deref(), Some("what the graph does"));
    assert_eq!(found.version(), Some(7));
    assert_eq!(found.custom_keys()?, ["author", "producer_name"]);
    assert_eq!(found.custom("author").as_deref(), Some("somebody"));
    assert_eq!(found.custom("producer_name").as_deref(), Some("another"));
    // An input with an initializer needn't be fed.
    assert_eq!(session.inputs().len(), 1);
    assert_eq!(session.inputs()[0].dtype().to_string(), "Tensor<f32>(batch, 2, dyn)");
    let overridable = session.overridable_initializers();
    assert_eq!(overridable.len(), 1);
    assert_eq!((overridable[0].name(), overridable[0].dtype().tensor_type()), ("b", Some(TensorElementType::Float32)));
    Ok(())
}

#[test]
fn initializers_are_overridden() -> Result<()> {
    let mut graph = common::one_node_graph(
        "Add",
        vec![],
        &[("a", &Wanted::scalar(0f32)), ("b", &Wanted::scalar(0f32))],
        DType::Float,
    );
    graph.initializer.push(common::initializer("b", &Wanted::scalar(1f32)));
    let mut session = session(&common::model(21, 10, graph))?;
    let one = || TensorRef::from_array_view(([0usize; 0], &[1f32][..]));
    assert_eq!(session.run(ort::inputs!["a" => one()?])?["output"].try_extract_scalar::<f32>()?, 2.0);
    let other = Tensor::from_array(([0usize; 0], vec![5f32]))?;
    assert_eq!(session.run(ort::inputs!["a" => one()?, "b" => other])?["output"].try_extract_scalar::<f32>()?, 6.0);
    Ok(())
}

/// A network as it is exported: what it gives is what the library gives, bit by bit.
#[test]
fn a_network() -> Result<()> {
    let files = files("small-networks.tar.xz", "bert.legacy17");
    let mut session = session(file(&files, "model.onnx"))?;
    let model = Model::from_bytes(file(&files, "model.onnx").to_vec())?;
    let names: Vec<String> = session.inputs().iter().map(|input| input.name().to_string()).collect();
    let fed: Vec<Wanted> = (0..names.len())
        .map(|k| Wanted::from_proto_bytes(file(&files, &format!("input_{k}.pb")).to_vec()))
        .collect::<onnxref::Result<_>>()?;
    let mut values: Vec<(String, ort::value::DynValue)> = Vec::new();
    for (name, tensor) in names.iter().zip(&fed) {
        let elements = tensor.as_slice::<i64>()?.to_vec();
        values.push((name.clone(), Tensor::from_array((tensor.shape().to_vec(), elements))?.into_dyn()));
    }
    let outputs = session.run(values)?;
    let given = names.iter().zip(&fed).map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let wanted = model.run(given)?;
    let (shape, elements) = outputs[0].try_extract_tensor::<f32>()?;
    let (_, first) = wanted.iter().next().unwrap();
    assert_eq!(shape.iter().map(|size| *size as usize).collect::<Vec<_>>(), first.tensor()?.shape());
    assert_eq!(elements, first.tensor()?.as_slice::<f32>()?);
    Ok(())
}

#[test]
fn strings() -> Result<()> {
    let words = Wanted::from_strings(&[2], ["", ""])?;
    let mut session = session(&one_node("StringConcat", 20, vec![], &[("a", &words), ("b", &words)], DType::String))?;
    let a = Tensor::from_string_array(([2usize], &["left ", "längs"][..]))?;
    let b = Tensor::from_string_array(([2usize], &["right", ""][..]))?;
    let outputs = session.run(ort::inputs!["a" => a, "b" => b])?;
    let (shape, given) = outputs["output"].try_extract_strings()?;
    assert_eq!((shape.to_vec(), given), (vec![2], vec!["left right".to_string(), "längs".to_string()]));
    Ok(())
}

/// The outputs of classifiers of scikit-learn: labels, and a sequence of maps or a tensor.
#[test]
fn classifiers() -> Result<()> {
    let files = files("learned-models.tar.xz", "random_forest_zip_map");
    let mut session = session(file(&files, "model.onnx"))?;
    let fed = Wanted::from_proto_bytes(file(&files, "input_0.pb").to_vec())?;
    let model = Model::from_bytes(file(&files, "model.onnx").to_vec())?;
    let wanted = model.run(onnxref::inputs![&fed])?;
    assert_eq!(session.outputs()[1].dtype().to_string(), "Sequence<Map<i64, f32>>");
    let x = Tensor::from_array((fed.shape().to_vec(), fed.as_slice::<f32>()?.to_vec()))?;
    let outputs = session.run(ort::inputs![x])?;
    let maps = outputs[1].try_extract_sequence::<DynMapValueType>()?;
    let expected = wanted.iter().nth(1).unwrap().1.sequence()?;
    assert_eq!(maps.len(), expected.values().len());
    assert!(maps.len() > 1);
    for (map, expected) in maps.iter().zip(expected.values()) {
        let pairs = map.try_extract_key_values::<i64, f32>()?;
        let (keys, scores): (Vec<i64>, Vec<f32>) = pairs.into_iter().unzip();
        assert_eq!(keys, expected.map()?.keys().as_slice::<i64>()?);
        let known: Vec<f32> = expected
            .map()?
            .values()
            .iter()
            .map(|value| value.tensor().unwrap().as_slice::<f32>().unwrap()[0])
            .collect();
        assert_eq!(scores, known);
    }
    Ok(())
}

#[test]
fn sequences_and_maps_are_fed() -> Result<()> {
    let of_tensors = ValueType::Tensor(DType::Float).sequence();
    let graph = GraphProto {
        name: Some("graph".into()),
        node: vec![node("SequenceAt", &["list", "at"], &["output"], vec![])],
        input: vec![typed("list", &of_tensors), value("at", DType::Int64, None)],
        output: vec![value("output", DType::Float, None)],
        ..Default::default()
    };
    let mut session = session(&common::model(21, 10, graph))?;
    let tensor = |elements: Vec<f32>| Tensor::from_array(([elements.len()], elements));
    let list = Sequence::new([tensor(vec![1.0])?, tensor(vec![2.0, 3.0])?])?;
    let kept = list.extract_sequence();
    assert_eq!(kept[1].extract_tensor().1, [2.0, 3.0]);
    let outputs = session.run(ort::inputs!["list" => list, "at" => Tensor::from_array(([0usize; 0], vec![-1i64]))?])?;
    assert_eq!(outputs["output"].try_extract_tensor::<f32>()?.1, [2.0, 3.0]);

    let map = Map::<String, f32>::new([("one".to_string(), 1.0), ("two".to_string(), 2.0)])?;
    assert_eq!(map.extract_key_values(), [("one".to_string(), 1.0), ("two".to_string(), 2.0)]);
    let vectorizer = GraphProto {
        name: Some("graph".into()),
        node: vec![common::proto::NodeProto {
            domain: Some("ai.onnx.ml".into()),
            ..node(
                "DictVectorizer",
                &["map"],
                &["output"],
                vec![common::proto::AttributeProto {
                    strings: ["two", "three", "one"].map(|word| word.into()).to_vec(),
                    ..common::attribute("string_vocabulary", common::proto::attribute_proto::AttributeType::Strings)
                }],
            )
        }],
        input: vec![typed("map", &ValueType::Map(DType::String, Box::new(ValueType::Tensor(DType::Float))))],
        output: vec![value("output", DType::Float, None)],
        ..Default::default()
    };
    let mut model = ModelProto::decode(&*common::model(21, 10, vectorizer))?;
    let ml = common::proto::OperatorSetIdProto { domain: Some("ai.onnx.ml".into()), version: Some(1) };
    model.opset_import.push(ml);
    let mut session = self::session(&model.encode_to_vec())?;
    let outputs = session.run(ort::inputs!["map" => map])?;
    assert_eq!(outputs["output"].try_extract_tensor::<f32>()?.1, [2.0, 0.0, 1.0]);
    Ok(())
}

#[test]
fn optional_inputs() -> Result<()> {
    let optional = ValueType::Tensor(DType::Float).optional();
    let graph = GraphProto {
        name: Some("graph".into()),
        node: vec![node("OptionalHasElement", &["given"], &["output"], vec![])],
        input: vec![typed("given", &optional)],
        output: vec![value("output", DType::Bool, None)],
        ..Default::default()
    };
    let mut session = session(&common::model(21, 10, graph))?;
    assert_eq!(session.inputs()[0].dtype().to_string(), "Option<Tensor<f32>()>");
    let outputs = session.run(ort::inputs!["given" => Tensor::from_array(([1usize], vec![1f32]))?])?;
    assert!(outputs["output"].try_extract_scalar::<bool>()?);
    Ok(())
}

#[test]
fn bindings() -> Result<()> {
    let x = Wanted::from(vec![0f32; 2]);
    let mut session = session(&one_node("Neg", 21, vec![], &[("x", &x)], DType::Float))?;
    let memory = MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::CPUOutput)?;
    let mut binding = session.create_binding()?;
    let mut fed = Tensor::from_array(([2usize], vec![1f32, 2.0]))?;
    binding.bind_input("x", &fed)?;
    binding.bind_output_to_device("output", &memory)?;
    assert_eq!(session.run_binding(&binding)?["output"].try_extract_tensor::<f32>()?.1, [-1.0, -2.0]);
    // What is bound is the tensor, not what was in it.
    fed.extract_tensor_mut().1[0] = 5.0;
    assert_eq!(session.run_binding(&binding)?["output"].try_extract_tensor::<f32>()?.1, [-5.0, -2.0]);
    // Memory of the program's for the output.
    binding.bind_output("output", Tensor::<f32>::new(&Allocator::default(), [2usize])?)?;
    assert_eq!(session.run_binding(&binding)?["output"].try_extract_tensor::<f32>()?.1, [-5.0, -2.0]);
    binding.bind_output("output", Tensor::<f32>::new(&Allocator::default(), [3usize])?)?;
    assert_eq!(
        message(session.run_binding(&binding)),
        "RunWithBinding: output \"output\" is a tensor of float32 of shape [2], but the value for it is a tensor of \
         float32 of shape [3]"
    );
    assert_eq!(
        message(binding.bind_output_to_device("z", &memory)),
        "BindOutputToDevice: there is no output \"z\": the outputs are \"output\""
    );
    Ok(())
}

#[test]
fn outputs_are_selected_and_given_memory() -> Result<()> {
    let x = Wanted::from(vec![0f32; 3]);
    let mut graph =
        common::one_node_graph("TopK", vec![], &[("x", &x), ("k", &Wanted::from(vec![1i64]))], DType::Float);
    graph.node[0].output.push("places".into());
    graph.output.push(value("places", DType::Int64, None));
    let mut session = session(&common::model(21, 10, graph))?;
    let x = Tensor::from_array(([3usize], vec![1f32, 3.0, 2.0]))?;
    let k = Tensor::from_array(([1usize], vec![2i64]))?;
    let options: RunOptions<HasSelectedOutputs> =
        RunOptions::new()?.with_outputs(OutputSelector::no_default().with("places"));
    let outputs = session.run_with_options(ort::inputs!["x" => x.view(), "k" => k.view()], &options)?;
    assert_eq!(outputs.len(), 1);
    assert_eq!(outputs["places"].try_extract_tensor::<i64>()?.1, [1, 2]);
    drop(outputs);
    let given = Tensor::<f32>::new(&Allocator::default(), [2usize])?;
    let options = RunOptions::new()?.with_outputs(OutputSelector::default().preallocate("output", given));
    let outputs = session.run_with_options(ort::inputs!["x" => x, "k" => k], &options)?;
    assert_eq!(outputs["output"].try_extract_tensor::<f32>()?.1, [3.0, 2.0]);
    Ok(())
}

#[test]
fn tensors_are_copied() -> Result<()> {
    onnxref();
    let tensor = Tensor::from_array(([1usize, 3], vec![1f32, -0.0, f32::EPSILON]))?;
    let copy = tensor.clone();
    assert_eq!(tensor.extract_tensor(), copy.extract_tensor());
    assert_ne!(tensor.data_ptr(), copy.data_ptr());
    let whole = Tensor::from_array(([2usize], vec![7i64, 8]))?;
    assert_eq!(whole.clone().extract_tensor().1, [7, 8]);
    let mut other = Tensor::<i64>::new(&Allocator::default(), [2usize])?;
    whole.copy_into(&mut other)?;
    assert_eq!(other.extract_tensor().1, [7, 8]);
    assert!(whole.copy_into(&mut Tensor::<i64>::new(&Allocator::default(), [3usize])?).is_err());
    Ok(())
}

/// The messages that a program shows.
#[test]
fn errors() -> Result<()> {
    onnxref();
    let wrong = session(b"no model").unwrap_err();
    assert_eq!(wrong.code(), ort::ErrorCode::InvalidProtobuf);
    assert_eq!(wrong.message(), Model::from_bytes(b"no model").unwrap_err().to_string());
    let x = Wanted::from(vec![0f32; 2]);
    let unknown = session(&one_node("Sooth", 21, vec![], &[("x", &x)], DType::Float)).unwrap_err();
    assert_eq!(
        unknown.message(),
        Model::from_bytes(one_node("Sooth", 21, vec![], &[("x", &x)], DType::Float)).unwrap_err().to_string()
    );

    let mut session = session(&one_node("Neg", 21, vec![], &[("x", &x)], DType::Float))?;
    let fed = || Tensor::from_array(([1usize], vec![1f32]));
    assert_eq!(
        message(session.run(ort::inputs!["y" => fed()?])),
        "input \"y\" is not an input of the model, which takes \"x\""
    );
    assert_eq!(message(session.run(ort::inputs!["x" => fed()?, "x" => fed()?])), "input \"x\" is fed twice");
    let whole = Tensor::from_array(([1usize], vec![1i64]))?;
    let error = session.run(ort::inputs!["x" => whole]).err().unwrap();
    assert_eq!(error.code(), ort::ErrorCode::InvalidArgument);
    assert_eq!(error.message(), "input \"x\" has element type int64, but the model expects float32");
    Ok(())
}

#[test]
fn options() -> Result<()> {
    onnxref();
    let refused = |result: Result<_, ort::Error<_>>| {
        let error: ort::Error<ort::session::builder::SessionBuilder> = result.err().unwrap();
        (error.code(), error.message().to_string())
    };
    let (code, text) = refused(Session::builder()?.with_flush_to_zero());
    assert_eq!(code, ort::ErrorCode::InvalidArgument);
    assert_eq!(
        text,
        "AddSessionConfigEntry: the config entry \"session.set_denormal_as_zero\": \"1\" is not implemented: onnxref \
         computes with subnormal numbers"
    );
    let (code, text) = refused(Session::builder()?.with_profiling("profile"));
    assert_eq!((code, &*text), (ort::ErrorCode::NotImplemented, "EnableProfiling: onnxref doesn't implement it"));
    let (_, text) = refused(Session::builder()?.with_config_entry("onnxref.limits", "1"));
    assert_eq!(
        text,
        "AddSessionConfigEntry: the config entry \"onnxref.limits\": \"1\" sets nothing: what follows \"onnxref.\" is one \
         of limit.NAME, allow.NAME, external_root, fast_math, hard_links"
    );
    // A limit, and the way to raise it.
    let x = Wanted::from(vec![0f32; 2]);
    let model = one_node("Neg", 21, vec![], &[("x", &x)], DType::Float);
    let builder = Session::builder()?.with_config_entry("onnxref.limit.run_bytes", "1000");
    let mut session = builder.map_err(|error| anyhow::anyhow!("{error}"))?.commit_from_memory(&model)?;
    let error =
        session.run(ort::inputs!["x" => Tensor::<f32>::new(&Allocator::default(), [1000usize])?]).err().unwrap();
    assert!(
        error.message().ends_with(" (the session's config entry onnxref.limit.run_bytes raises it)"),
        "{}",
        error.message()
    );
    // Sizes that the model leaves open.
    let mut graph = common::one_node_graph("Neg", vec![], &[("x", &x)], DType::Float);
    graph.input[0] = value("x", DType::Float, Some(&[Dim::Symbol("n".into())]));
    let model = common::model(21, 10, graph);
    let builder = Session::builder()?.with_dimension_override("n", 3).map_err(|error| anyhow::anyhow!("{error}"))?;
    let session = builder.clone().commit_from_memory(&model)?;
    assert_eq!(session.inputs()[0].dtype().tensor_shape().map(|shape| shape.to_vec()), Some(vec![3]));
    Ok(())
}

/// A loop without an end in sight.
fn endless() -> Vec<u8> {
    let body = GraphProto {
        name: Some("body".into()),
        node: vec![node("Identity", &["going"], &["on"], vec![]), node("Neg", &["before"], &["after"], vec![])],
        input: vec![
            value("trip", DType::Int64, None),
            value("going", DType::Bool, None),
            value("before", DType::Float, None),
        ],
        output: vec![value("on", DType::Bool, None), value("after", DType::Float, None)],
        ..Default::default()
    };
    let body = common::proto::AttributeProto {
        g: Some(Box::new(body)),
        ..common::attribute("body", common::proto::attribute_proto::AttributeType::Graph)
    };
    let graph = GraphProto {
        name: Some("graph".into()),
        node: vec![node("Loop", &["trips", "", "x"], &["y"], vec![body])],
        input: vec![value("trips", DType::Int64, None), value("x", DType::Float, None)],
        output: vec![value("y", DType::Float, None)],
        ..Default::default()
    };
    common::model(21, 10, graph)
}

#[test]
fn another_thread_terminates() -> Result<()> {
    let mut session = session(&endless())?;
    let options = Arc::new(RunOptions::new()?);
    let trips = || Tensor::from_array(([0usize; 0], vec![i64::from(i32::MAX) / 2]));
    let x = || Tensor::from_array(([0usize; 0], vec![1f32]));
    let other = Arc::clone(&options);
    let ending = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        other.terminate().unwrap();
    });
    let began = Instant::now();
    let error = session.run_with_options(ort::inputs!["trips" => trips()?, "x" => x()?], &*options).err().unwrap();
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(error.message().contains("cancelled"), "{}", error.message());
    ending.join().unwrap();
    options.unterminate()?;
    let few = Tensor::from_array(([0usize; 0], vec![3i64]))?;
    let outputs = session.run_with_options(ort::inputs!["trips" => few, "x" => x()?], &*options)?;
    assert_eq!(outputs["y"].try_extract_scalar::<f32>()?, -1.0);
    Ok(())
}

#[test]
fn sessions_in_threads() -> Result<()> {
    let x = Wanted::from(vec![0f32; 2]);
    let model = one_node("Neg", 21, vec![], &[("x", &x)], DType::Float);
    session(&model)?;
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let model = &model;
            scope.spawn(move || {
                let mut session = session(model).unwrap();
                for k in 0..50u8 {
                    let fed = vec![f32::from(thread), f32::from(k)];
                    let outputs =
                        session.run(ort::inputs![Tensor::from_array(([2usize], fed.clone())).unwrap()]).unwrap();
                    let given = outputs[0].try_extract_tensor::<f32>().unwrap().1;
                    assert_eq!(given, [-fed[0], -fed[1]]);
                }
            });
        }
    });
    Ok(())
}

/// Waits for a future without a library for that.
fn wait<F: Future>(future: F) -> F::Output {
    struct Thread(std::thread::Thread);
    impl std::task::Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Thread(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(given) => return given,
            std::task::Poll::Pending => std::thread::park_timeout(Duration::from_millis(10)),
        }
    }
}

#[test]
fn runs_that_are_awaited() -> Result<()> {
    let x = Wanted::from(vec![0f32; 2]);
    let mut session = session(&one_node("Neg", 21, vec![], &[("x", &x)], DType::Float))?;
    let options = RunOptions::new()?;
    for k in 0..20u8 {
        let fed = Tensor::from_array(([1usize], vec![f32::from(k)]))?;
        let outputs = wait(session.run_async(ort::inputs![fed], &options)?)?;
        assert_eq!(outputs[0].try_extract_tensor::<f32>()?.1, [-f32::from(k)]);
    }
    let wrong = Tensor::from_array(([1usize], vec![1i64]))?;
    let error = wait(session.run_async(ort::inputs![wrong], &options)?).err().unwrap();
    assert_eq!(error.message(), "input \"x\" has element type int64, but the model expects float32");
    Ok(())
}

/// Types of fewer than 8 bits share bytes in the API.
#[test]
#[allow(unsafe_code)]
fn small_integers() -> Result<()> {
    use onnxref::bytes::Bytes;
    onnxref();
    let four = Wanted::new(DType::Int4, &[3], Bytes::from_static(&[0x1, 0xff, 0x7]))?;
    let mut session = session(&one_node("Identity", 21, vec![], &[("x", &four)], DType::Int4))?;
    let mut fed = ort::value::DynTensor::new(&Allocator::default(), TensorElementType::Int4, [3usize])?;
    // 1, -1 and 7.
    unsafe { fed.data_ptr_mut().cast::<[u8; 2]>().write([0xf1, 0x07]) };
    let outputs = session.run(ort::inputs![fed])?;
    let given = outputs[0].downcast_ref::<DynTensorValueType>()?;
    assert_eq!(given.data_type(), &TensorElementType::Int4);
    assert_eq!(unsafe { given.data_ptr().cast::<[u8; 2]>().read() }, [0xf1, 0x07]);
    Ok(())
}
