//! What a program is told: of a model, of its mistakes, of options.

use super::*;

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
    model.metadata_props = vec![entry("producer_version", "another"), entry("author", "somebody")];
    let session = session(&model.encode_to_vec())?;
    let found = session.metadata()?;
    assert_eq!(found.producer().as_deref(), Some("a producer"));
    assert_eq!(found.name().as_deref(), Some("the graph"));
    assert_eq!(found.domain().as_deref(), Some("a.domain"));
    assert_eq!(found.description().as_deref(), Some("what the model does"));
    assert_eq!(found.graph_description().as_deref(), Some("what the graph does"));
    assert_eq!(found.version(), Some(7));
    assert_eq!(found.custom_keys()?, ["producer_version", "author"]);
    assert_eq!(found.custom("author").as_deref(), Some("somebody"));
    assert_eq!(found.custom("producer_version").as_deref(), Some("another"));
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
         of limit.NAME, allow.NAME, external_root, fast_math, hard_links, untrusted"
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
    // The limits for models of strangers: 64 MiB and 16 dimensions. A single limit comes on top.
    let mut graph = common::one_node_graph("Neg", vec![], &[("x", &x)], DType::Float);
    graph.input[0] = value("x", DType::Float, Some(&vec![Dim::Fixed(1); 17]));
    let deep = common::model(21, 10, graph);
    let entry = |key: &str, builder: ort::session::builder::SessionBuilder, number: &str| {
        builder.with_config_entry(key, number).map_err(|error| anyhow::anyhow!("{error}"))
    };
    let mut builder = entry("onnxref.untrusted", Session::builder()?, "1")?;
    let error = builder.commit_from_memory(&deep).unwrap_err();
    assert!(
        error.message().ends_with(" (the session's config entry onnxref.limit.rank raises it)"),
        "{}",
        error.message()
    );
    entry("onnxref.limit.rank", builder, "17")?.commit_from_memory(&deep)?;
    // Sizes that the model leaves open.
    let mut graph = common::one_node_graph("Neg", vec![], &[("x", &x)], DType::Float);
    graph.input[0] = value("x", DType::Float, Some(&[Dim::Symbol("n".into())]));
    let model = common::model(21, 10, graph);
    let builder = Session::builder()?.with_dimension_override("n", 3).map_err(|error| anyhow::anyhow!("{error}"))?;
    let session = builder.clone().commit_from_memory(&model)?;
    assert_eq!(session.inputs()[0].dtype().tensor_shape().map(|shape| shape.to_vec()), Some(vec![3]));
    Ok(())
}

/// An input whose type the model doesn't say.
#[test]
fn types_that_are_missing() -> Result<()> {
    let x = Wanted::from(vec![0f32; 2]);
    let mut graph = common::one_node_graph("Identity", vec![], &[("x", &x)], DType::Float);
    graph.input[0].r#type = None;
    graph.output[0].r#type = None;
    let mut session = session(&common::model(21, 10, graph))?;
    assert_eq!(session.inputs()[0].dtype().tensor_type(), Some(TensorElementType::Undefined));
    let outputs = session.run(ort::inputs![Tensor::from_array(([1usize], vec![7i64]))?])?;
    assert_eq!(outputs[0].try_extract_tensor::<i64>()?.1, [7]);
    Ok(())
}
