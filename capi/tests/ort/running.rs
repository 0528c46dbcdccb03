//! Loading and running: by names, on several threads, awaited, ended, with bindings.

use super::*;

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
