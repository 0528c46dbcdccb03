//! Models as data: what is read is written again, byte for byte or with the same meaning.

#![allow(clippy::indexing_slicing)]

mod common;

use anyhow::{Context, Result, ensure};
use common::archive::{in_parallel, unpack};
use common::proto::ModelProto;
use onnxref::document::{
    Attribute, AttributeValue, Document, Function, Graph, Initializer, Node, Part, Size, ValueInfo,
};
use onnxref::{DType, Model, Tensor, inputs};
use prost::Message;

const ARCHIVES: [(&str, usize); 7] = [
    ("onnx-1.23.2-node", 1884),
    ("onnx-older-node", 3689),
    ("onnx-1.22.0-others", 100),
    ("small-networks", 31),
    ("learned-models", 7),
    ("merged-decoder", 1),
    ("decoders", 2),
];

/// All official models, and the networks.
fn models() -> Result<Vec<(String, Vec<u8>)>> {
    let mut all = Vec::new();
    for (archive, least) in ARCHIVES {
        let found = unpack(format!("onnx-test-data/{archive}.tar.xz"), |path| path.ends_with(".onnx"))?;
        ensure!(found.len() >= least, "{archive} has {} models", found.len());
        all.extend(found);
    }
    Ok(all)
}

#[test]
fn each_model_is_written_as_it_was_read() -> Result<()> {
    let all = models()?;
    let outcomes = in_parallel(&all, |(path, bytes)| check(bytes).with_context(|| path.clone()));
    outcomes.into_iter().collect()
}

fn check(bytes: &[u8]) -> Result<()> {
    let mut document = Document::from_bytes(bytes.to_vec())?;
    let mut written = Vec::new();
    document.write(&mut written)?;
    ensure!(written == bytes, "the bytes of what nobody changed differ");
    // Only what is around the graph is written anew.
    document.producer_name = "another".to_string();
    ensure!(document.graph.is_unchanged() && !document.is_unchanged());
    let changed = Document::from_bytes(document.to_bytes()?)?;
    ensure!(changed.graph == document.graph && changed.producer_name == "another");
    // Each message is written anew.
    let mut document = Document::from_bytes(bytes.to_vec())?;
    document.functions.iter_mut().for_each(touch_function);
    document.opset_imports.iter_mut().for_each(touch);
    document.metadata.iter_mut().for_each(touch);
    touch_graph(&mut document.graph);
    let anew = ModelProto::decode(document.to_bytes()?)?;
    let (anew, read) = (normal(&anew), normal(&ModelProto::decode(bytes)?));
    let differ = || anew.bytes().zip(read.bytes()).position(|(one, other)| one != other).unwrap_or(0);
    let part = |text: &str| text.chars().skip(differ().saturating_sub(100)).take(200).collect::<String>();
    ensure!(anew == read, "it is written anew as .. {} .. instead of .. {} ..", part(&anew), part(&read));
    Ok(())
}

/// A text that doesn't depend on whether empty strings are there.
fn normal(model: &ModelProto) -> String {
    format!("{model:?}").replace("Some(\"\")", "None")
}

/// Makes a part forget the bytes that it was read from.
fn touch<T>(part: &mut Part<T>) {
    part.change_if(|_| true);
}

fn touch_graph(graph: &mut Part<Graph>) {
    graph.nodes.iter_mut().for_each(touch_node);
    graph.initializers.iter_mut().for_each(touch_tensor);
    graph.sparse_initializers.iter_mut().for_each(|sparse| {
        sparse.values.iter_mut().for_each(|tensor| touch_tensor(tensor));
        sparse.indices.iter_mut().for_each(|tensor| touch_tensor(tensor));
    });
    let Graph { inputs, outputs, value_info, .. } = &mut **graph;
    [inputs, outputs, value_info].into_iter().flatten().for_each(touch_info);
    graph.quantization_annotations.iter_mut().for_each(|annotation| annotation.parameters.iter_mut().for_each(touch));
    graph.metadata.iter_mut().for_each(touch);
}

fn touch_function(function: &mut Part<Function>) {
    function.nodes.iter_mut().for_each(touch_node);
    function.defaults.iter_mut().for_each(touch_attribute);
    function.opset_imports.iter_mut().for_each(touch);
    function.value_info.iter_mut().for_each(touch_info);
    function.metadata.iter_mut().for_each(touch);
}

fn touch_node(node: &mut Part<Node>) {
    node.attributes.iter_mut().for_each(touch_attribute);
    node.metadata.iter_mut().for_each(touch);
}

fn touch_attribute(attribute: &mut Part<Attribute>) {
    match &mut attribute.value {
        AttributeValue::Tensor(tensor) => touch_tensor(tensor),
        AttributeValue::SparseTensor(tensor) => touch(tensor),
        AttributeValue::Type(value_type) => touch(value_type),
        _ => attribute.graphs_mut().iter_mut().for_each(touch_graph),
    }
}

fn touch_tensor(tensor: &mut Part<Initializer>) {
    tensor.external_data.iter_mut().for_each(touch);
    tensor.metadata.iter_mut().for_each(touch);
}

fn touch_info(info: &mut Part<ValueInfo>) {
    info.metadata.iter_mut().for_each(touch);
    info.dims_mut().into_iter().flatten().for_each(touch);
    let Some(value_type) = &mut info.value_type else { return };
    touch(value_type);
    value_type.sequence.iter_mut().for_each(|part| part.elem_type.iter_mut().for_each(|part| touch(part)));
    value_type.optional.iter_mut().for_each(|part| part.elem_type.iter_mut().for_each(|part| touch(part)));
    value_type.map.iter_mut().for_each(|part| part.value_type.iter_mut().for_each(|part| touch(part)));
}

#[test]
fn fields_that_are_not_known_are_kept() -> Result<()> {
    // Field 500, a text, in a node and in the model; in both it comes before a known one.
    let unknown = [&[0xa2, 0x1f, 3][..], b"new"].concat();
    let node = [&unknown[..], &[0x22, 4], b"Relu"].concat();
    let graph = [&[0x0a, node.len() as u8][..], &node].concat();
    let file = [&[0x08, 9][..], &unknown, &[0x3a, graph.len() as u8], &graph].concat();
    let mut document = Document::from_bytes(file.clone())?;
    ensure!(document.to_bytes()? == file);
    ensure!(document.graph.nodes[0].other.numbers().eq([500]) && document.other.numbers().eq([500]));
    document.graph.nodes[0].name = "n".to_string();
    let node = [&[0x1a, 1][..], b"n", &[0x22, 4], b"Relu", &unknown].concat();
    let graph = [&[0x0a, node.len() as u8][..], &node].concat();
    let changed = [&[0x08, 9, 0x3a, graph.len() as u8][..], &graph, &unknown].concat();
    ensure!(document.to_bytes()? == changed);
    Ok(())
}

#[test]
fn what_is_built_runs() -> Result<()> {
    let body = |value: f32| {
        Graph::new("body")
            .node(Node::new("Constant", [""; 0], ["c"]).attribute("value_float", value))
            .node(Node::new("Add", ["x", "c"], ["z"]))
            .output(ValueInfo::untyped("z"))
    };
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, ["n"]))
        .input(ValueInfo::tensor("up", DType::Bool, [0i64; 0]))
        .initializer(Initializer::new("names", &Tensor::from_strings(&[2], ["a", "b"])?))
        .node(Node::new("If", ["up"], ["y"]).attribute("then_branch", body(1.0)).attribute("else_branch", body(-1.0)))
        .output(ValueInfo::tensor("y", DType::Float, ["n"]))
        .output(ValueInfo::untyped("names"));
    let model = Document::new(graph, 22).load(&Model::options())?;
    let outputs = model.run(inputs! { "x" => vec![1f32, 2.0], "up" => Tensor::scalar(false) })?;
    ensure!(outputs["y"].as_slice::<f32>()? == [0.0, 1.0]);
    ensure!(outputs["names"].strings()?.eq(["a", "b"]));
    Ok(())
}

#[test]
fn errors_are_those_of_loading() {
    let error = |bytes: &[u8]| Document::from_bytes(bytes.to_vec()).map(|_| ()).map_err(|error| error.to_string());
    let loading = |bytes: &[u8]| Model::from_bytes(bytes.to_vec()).map(|_| ()).map_err(|error| error.to_string());
    for bytes in [&b""[..], b"\x08\x09", b"\x08\x09\x3a\x05", b"<?xml", b"\x08\x09\x3a\x00\x3a\x00"] {
        assert!(error(bytes).is_err(), "{bytes:?}");
        // Loading looks at the opsets first.
        if bytes != b"<?xml" && bytes != b"\x08\x09" {
            assert_eq!(error(bytes), loading(bytes), "{bytes:?}");
        }
    }
    assert_eq!(error(b"\x08\x09"), Err("the model has no graph".to_string()));
}

/// A model of two rows, whose table is in another file.
fn with_external(folder: &std::path::Path) -> Result<std::path::PathBuf> {
    let table = Tensor::from_elements(&[2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("indices", DType::Int64, ["n"]))
        .initializer(Initializer::new("table", &table))
        .node(Node::new("Gather", ["table", "indices"], ["y"]))
        .output(ValueInfo::untyped("y"));
    let mut document = Document::new(graph, 22);
    let data = document.externalize("weights.bin", 24)?;
    ensure!(data.size() == 24 && document.external_files()?.into_iter().eq(["weights.bin".to_string()]));
    let mut bytes = vec![7; 4096];
    data.write(&mut bytes)?;
    std::fs::write(folder.join("weights.bin"), bytes)?;
    let external = onnxref::document::External { location: "weights.bin".into(), offset: 4096, length: None };
    document.graph.initializers[0].set_external(&external);
    let path = folder.join("model.onnx");
    document.save(&path)?;
    Ok(path)
}

fn row(model: &Model) -> Result<Vec<f32>> {
    Ok(model.run(inputs! { "indices" => vec![1i64] })?["y"].as_slice::<f32>()?.to_vec())
}

#[test]
fn external_data_follows_its_model() -> Result<()> {
    let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let path = with_external(one.path())?;
    let mut document = Document::read(&path)?;
    ensure!(document.external_files()?.len() == 1);
    // In the same folder it stays where it is.
    document.save(one.path().join("again.onnx"))?;
    ensure!(std::fs::read(one.path().join("again.onnx"))? == std::fs::read(&path)?);
    // In another, what is used is copied.
    let elsewhere = other.path().join("copy.onnx");
    document.save(&elsewhere)?;
    ensure!(std::fs::metadata(other.path().join("copy.onnx.data"))?.len() == 24);
    ensure!(row(&Model::load(&elsewhere)?)? == [4.0, 5.0, 6.0]);
    ensure!(std::fs::read_dir(other.path())?.count() == 2);
    document.embed()?;
    ensure!(document.external_files()?.is_empty());
    ensure!(row(&Model::from_bytes(document.to_bytes()?)?)? == [4.0, 5.0, 6.0]);
    // What isn't there isn't written at all.
    let broken = Document::read(&path)?;
    std::fs::remove_file(one.path().join("weights.bin"))?;
    let error = broken.save(other.path().join("none.onnx")).map_err(|error| error.to_string());
    let folder = one.path().display();
    let text = format!(
        "tensor \"table\": external data \"weights.bin\" in the folder \"{folder}\": No such file or directory (os error 2)"
    );
    assert_eq!(error, Err(text));
    ensure!(std::fs::read_dir(other.path())?.count() == 2);
    Ok(())
}

/// A link leads to the file that is replaced, which keeps its mode; what is no file is written to.
#[test]
#[cfg(unix)]
fn a_model_is_saved_where_its_path_leads() -> Result<()> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir()?;
    let [link, file, pipe] = ["link.onnx", "file.onnx", "pipe.onnx"].map(|name| folder.path().join(name));
    let document = Document::new(Graph::new("g"), 22);
    symlink("file.onnx", &link)?;
    for mode in [None, Some(0o600), Some(0o666)] {
        if let Some(mode) = mode {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode))?;
        }
        document.save(&link)?;
        ensure!(std::fs::symlink_metadata(&link)?.is_symlink() && std::fs::read(&file)? == document.to_bytes()?);
        ensure!(mode.is_none_or(|mode| std::fs::metadata(&file).is_ok_and(|file| file.permissions().mode() & 0o777 == mode)));
    }
    ensure!(std::process::Command::new("mkfifo").arg(&pipe).status()?.success());
    let reader = pipe.clone();
    let reading = std::thread::spawn(move || std::fs::read(reader));
    document.save(&pipe)?;
    let read = reading.join().ok().context("the reader failed")??;
    ensure!(read == document.to_bytes()?);
    ensure!(std::fs::read_dir(folder.path())?.count() == 3);
    let round = folder.path().join("round.onnx");
    symlink("round.onnx", &round)?;
    ensure!(document.save(&round).is_err_and(|error| error.kind() == onnxref::Kind::Io));
    Ok(())
}

/// Data goes where a link of the model leads, and no model takes the place of its data.
#[test]
#[cfg(unix)]
fn data_is_saved_where_the_model_leads() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [model, data, link] = ["model.onnx", "w.bin", "links/own.onnx"].map(|name| folder.path().join(name));
    let tensor = Initializer::new("w", &Tensor::from(vec![1f32, 2.0]));
    let mut document = Document::new(Graph::new("g").initializer(tensor), 22);
    document.externalize("w.bin", 1)?.write(std::fs::File::create(&data)?)?;
    document.save(&model)?;
    std::fs::create_dir(folder.path().join("links"))?;
    std::os::unix::fs::symlink("../model.onnx", &link)?;
    let document = Document::read(&model)?;
    document.save(&link)?;
    ensure!(std::fs::read_dir(folder.path().join("links"))?.count() == 1);
    ensure!(std::fs::read(&model)? == document.to_bytes()?);
    let error = document.save(&data).map_err(|error| error.to_string());
    let text = format!("file \"{}\": the model can't take the place of its own external data", data.display());
    assert_eq!(error, Err(text));
    ensure!(std::fs::read(&data)?.len() == 8);
    // Data that is beside a link stays there, and data isn't replaced by that of the same name.
    let [store, linked] = ["store", "links/other.onnx"].map(|name| folder.path().join(name));
    std::fs::create_dir(&store)?;
    std::fs::rename(&model, store.join("m.onnx"))?;
    std::fs::rename(&data, link.with_file_name("w.bin"))?;
    std::os::unix::fs::symlink("../store/m.onnx", &linked)?;
    Document::read(&linked)?.save(&linked)?;
    Document::read(&linked)?.load(&Model::options())?;
    std::os::unix::fs::symlink("../links/w.bin", store.join("n.onnx.data"))?;
    let error = Document::read(&linked)?.save(store.join("n.onnx")).map_err(|error| error.to_string());
    ensure!(error.is_err_and(|text| text.ends_with("new external data can't take the place of that of the model")));
    // New data goes behind no link: loading follows none.
    let [outside, new] = ["outside.txt", "store/o.onnx.data"].map(|name| folder.path().join(name));
    std::fs::write(&outside, "mine")?;
    std::os::unix::fs::symlink("../outside.txt", &new)?;
    let error = Document::read(&linked)?.save(store.join("o.onnx")).map_err(|error| error.to_string());
    let why = "a link is in the way, and links to data are not followed";
    assert_eq!(error, Err(format!("external data can't be written to \"{}\": {why}", new.display())));
    ensure!(std::fs::read(&outside)? == b"mine" && !store.join("o.onnx").exists());
    Ok(())
}

#[test]
fn external_data_stays_in_the_folder() -> Result<()> {
    let mut document = Document::new(Graph::new("g"), 22);
    for bad in ["../x", "/x", "", "a/"] {
        let error = document.externalize(bad, 0).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(error, Err(format!("external data at \"{bad}\": a path inside the model's folder is needed")));
    }
    let mut tensor = Initializer::new("w", &Tensor::from(vec![1f32]));
    let external = onnxref::document::External { location: "../secret".into(), offset: 0, length: Some(4) };
    tensor.set_external(&external);
    let mut document = Document::new(Graph::new("g").initializer(tensor), 22);
    assert!(document.embed().is_err());
    let (folder, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let path = folder.path().join("m.onnx");
    document.save(&path)?;
    assert!(Document::read(path)?.save(other.path().join("m.onnx")).is_err());
    ensure!(std::fs::read_dir(other.path())?.count() == 0);
    Ok(())
}

#[test]
fn what_protobuf_cannot_hold_is_refused() -> Result<()> {
    let mut graph = Graph::new("g");
    let large: onnxref::bytes::Bytes = vec![0u8; 1 << 20].into();
    for k in 0..1 << 11 {
        let mut tensor =
            Initializer { name: format!("w{k}"), dims: vec![1 << 20], data_type: 2, ..Initializer::default() };
        tensor.set_raw(large.clone());
        graph = graph.initializer(tensor);
    }
    let mut document = Document::new(graph, 22);
    let mut out = Vec::new();
    let error = document.write(&mut out).map_err(|error| error.to_string());
    let text = "the model takes more than 2147483647 bytes, which protobuf can't hold: store its initializers as external data";
    assert_eq!((error, out.len()), (Err(text.to_string()), 0));
    let data = document.externalize("w.data", 1024)?;
    assert_eq!(data.size(), 1 << 31);
    assert!(document.to_bytes()?.len() < 1 << 20);
    Ok(())
}

/// What is simple still loads, and has the same inputs and outputs.
#[test]
fn each_model_loads_when_it_is_simplified() -> Result<()> {
    let all: Vec<_> = models()?.into_iter().filter(|(path, _)| !path.starts_with("onnx-older/")).collect();
    let outcomes = in_parallel(&all, |(path, bytes)| simplified(bytes).with_context(|| path.clone()));
    let dropped = outcomes.into_iter().sum::<Result<usize>>()?;
    ensure!(dropped > 1000, "{dropped} nodes were dropped");
    Ok(())
}

/// As `onnx.helper.find_min_ir_version_for` says, from the version on that new documents have.
#[test]
fn a_new_document_has_the_version_of_the_format_that_its_opset_needs() {
    for (opset, version) in [(1, 10), (22, 10), (23, 11), (24, 12), (25, 13), (27, 13), (28, 14)] {
        let mut document = Document::new(Graph::new("g"), opset);
        assert_eq!(document.ir_version, Some(version), "{opset}");
        document.set_opset("com.example", 28);
        document.set_opset("ai.onnx", 22);
        assert_eq!(document.ir_version, Some(version), "{opset}: it is never lowered");
        let imports: Vec<_> = document.opset_imports.iter().map(|one| (one.domain.as_str(), one.version)).collect();
        assert_eq!(imports, [("com.example", Some(28)), ("", Some(22))]);
        document.set_opset("", 28);
        assert_eq!(document.ir_version, Some(14));
    }
}

#[test]
fn sizes_and_names_that_are_refused() -> Result<()> {
    let graph = Graph::new("g").input(ValueInfo::tensor("x", DType::Float, ["n"])).output(ValueInfo::untyped("x"));
    let mut document = Document::new(graph, 22);
    let before = document.to_bytes()?;
    let text = "size -4: a size can't be negative";
    ensure!(refusal(document.set_symbol("n", &Size::Fixed(-4))) == text);
    ensure!(refusal(document.set_dimension("x", 0, Size::Fixed(-4))) == text);
    document.rename("x", "x")?;
    ensure!(document.to_bytes()? == before);
    ensure!(refusal(document.rename("y", "y")) == "the graph has no value \"y\"");
    document.set_dimension("x", 0, Size::Fixed(0))?;
    Ok(())
}

/// Another model would be written without an error.
#[test]
fn an_inspection_is_of_the_document_as_it_is() -> Result<()> {
    let graph = Graph::new("g")
        .input(ValueInfo::tensor("x", DType::Float, ["n"]))
        .initializer(Initializer::new("a", &Tensor::from(vec![2f32])))
        .node(Node::new("Neg", ["a"], ["b"]))
        .node(Node::new("Add", ["x", "b"], ["y"]))
        .output(ValueInfo::tensor("y", DType::Float, ["n"]));
    let mut document = Document::new(graph, 22);
    let mut copy = document.clone();
    let found = document.inspect(&Model::options())?;
    document.graph.nodes[0].op_type = "Abs".to_string();
    let text = "the document was changed after its inspection: inspect it again";
    let changed = document.to_bytes()?;
    for done in [document.simplify(&found, 1 << 20), document.convert(&found, 23), document.declare_shapes(&found)] {
        ensure!(refusal(done) == text);
    }
    ensure!(document.to_bytes()? == changed);
    // A copy is the same document, also with what follows from its inspection, until it is changed too. An inspection of a
    // file is taken as it is given.
    copy.declare_shapes(&found)?;
    copy.simplify(&found, 1 << 20)?;
    ensure!(refusal(copy.convert(&found, 23)) == text);
    let found = Model::options().inspect_bytes(document.to_bytes()?)?;
    document.simplify(&found, 1 << 20)?;
    ensure!(
        document.load(&Model::options())?.run(inputs! { "x" => Tensor::from(vec![1f32]) })?["y"].as_slice::<f32>()?
            == [3.0]
    );
    Ok(())
}

/// The text of an error; empty if there is none.
fn refusal(done: onnxref::Result<()>) -> String {
    done.err().map(|error| error.to_string()).unwrap_or_default()
}

/// Returns the number of nodes that were dropped.
fn simplified(bytes: &[u8]) -> Result<usize> {
    let mut document = Document::from_bytes(bytes.to_vec())?;
    let found = document.inspect(&Model::options())?;
    // External data isn't beside the bytes, and some operators don't run.
    if found.error.is_some() {
        return Ok(0);
    }
    let before = document.load(&Model::options())?;
    let nodes = document.graph.nodes.len();
    document.simplify(&found, 1 << 20)?;
    let after = document.load(&Model::options())?;
    ensure!(before.inputs().eq(after.inputs()) && before.outputs().eq(after.outputs()));
    // What is simple stays as it is.
    let once = document.to_bytes()?;
    let found = document.inspect(&Model::options())?;
    document.simplify(&found, 1 << 20)?;
    ensure!(document.to_bytes()? == once, "it is simplified once more");
    Ok(nodes - document.graph.nodes.len())
}

/// The text form of each official model is read as the same model.
#[test]
fn each_model_is_read_from_its_text() -> Result<()> {
    let all = models()?;
    let outcomes = in_parallel(&all, |(path, bytes)| check_text(bytes).with_context(|| path.clone()));
    let expressed = outcomes.into_iter().collect::<Result<Vec<bool>>>()?;
    let others: Vec<&str> =
        all.iter().zip(&expressed).filter(|(_, ok)| !**ok).map(|((path, _), _)| path.as_str()).collect();
    ensure!(others.is_empty(), "the text form can't express {others:?}");
    Ok(())
}

/// Whether the text form has the model.
fn check_text(bytes: &[u8]) -> Result<bool> {
    let document = Document::from_bytes(bytes.to_vec())?;
    let text = match document.to_text() {
        Err(error) if error.to_string().starts_with("the text form can't express") => return Ok(false),
        text => text?,
    };
    let again = Document::from_text(&text)?;
    ensure!(again.to_text()? == text, "the text of what is read is another");
    ensure!(again.graph.nodes.len() == document.graph.nodes.len());
    for (one, other) in again.graph.nodes.iter().zip(&document.graph.nodes) {
        ensure!(one.inputs == other.inputs && one.op_type == other.op_type && one.domain == other.domain);
        ensure!(one.attributes.len() == other.attributes.len() && one.overload == other.overload);
        for (one, other) in one.attributes.iter().zip(&other.attributes) {
            ensure!(one.name == other.name && one.value.kind() == other.value.kind(), "attribute {}", one.name);
            if let (AttributeValue::Tensor(one), AttributeValue::Tensor(other)) = (&one.value, &other.value) {
                ensure!(same_tensor(one, other)?, "attribute {}", other.name);
            }
        }
    }
    ensure!(again.graph.initializers.len() == document.graph.initializers.len());
    for (one, other) in again.graph.initializers.iter().zip(&document.graph.initializers) {
        ensure!(one.name == other.name && same_tensor(one, other)?, "initializer {}", other.name);
    }
    Ok(true)
}

/// Whether tensors have the same elements.
fn same_tensor(one: &Initializer, other: &Initializer) -> Result<bool> {
    if other.data_location == 1 {
        return Ok(one.external()? == other.external()?);
    }
    let (one, other) = (one.tensor()?, other.tensor()?);
    Ok(one.to_proto_bytes("") == other.to_proto_bytes(""))
}

#[test]
fn text_says_what_the_model_is() -> Result<()> {
    let text = r#"# a model
        <ir_version: 10, opset_import: ["" : 23, "l" : 1], producer_name: "a \"b\" \\">
        g (float[N, ?, "a b"] x, seq(map(int64, string)) s, any) => (float[] y)
          <int4[3] one = {1, -2, 3}, int4[3] packed = {225, 3}, float16 half = {15360}, string[2] words = {"a", "b # c"},
           complex64[1] c = {1, -inf}, float[2] far = ["location": "w.bin", "offset": "8"], float[2] h>
        {
          [first] y, "" = l.F:over <a = 1, b: float = 1, c = [1.5, 2], d = [], e: int = @outer> (x, , "any")
        }
        <domain: "l", opset_import: ["" : 23]> F <a, b: int = 3> (x) => (y) { y = Neg (x) }"#;
    let error = Document::from_text(text).err().context("an error")?;
    assert_eq!(
        error.to_string(),
        "line 7, column 78: an empty list needs the kind of its attribute: `name: ints = []`"
    );
    let document = Document::from_text(&text.replace("d = []", "d: ints = []"))?;
    let written = r#"<
   ir_version: 10,
   opset_import: ["" : 23, "l" : 1],
   producer_name: "a \"b\" \\"
>
g (float[N, ?, "a b"] x, seq(map(int64, string)) s, any) => (float[] y)
   <int4[3] one = {225, 3}, int4[3] packed = {225, 3}, float16 half = {15360}, string[2] words = {"a", "b # c"}, complex64[1] c = {1.0, -inf}, float[2] far = ["location": "w.bin", "offset": "8"], float[2] h>
{
   [first] y, "" = l.F:over <a: int = 1, b: float = 1.0, c: floats = [1.5, 2.0], d: ints = [], e: int = @outer> (x, "", any)
}
<
   domain: "l",
   opset_import: ["" : 23]
>
F <a, b: int = 3> (x) => (y)
{
   y = Neg (x)
}
"#;
    assert_eq!(document.to_text()?, written);
    for (text, error) in [
        ("", "line 1, column 1: expected the name of a graph, found the end"),
        ("<foo: 1>", "line 1, column 2: expected a field of the model, found `foo`"),
        ("g (x)\n (y) {}", "line 2, column 2: expected `=>`, found `(`"),
        ("g () => () <float[3] w = {1, 2}> {}", "line 1, column 32: the tensor has 2 elements: its shape needs 3"),
        ("g () => () <uint8 w = {300}> {}", "line 1, column 24: expected an integer below 256, found 300"),
        ("g () => () <uint4[2] w = {17, 1}> {}", "line 1, column 33: an element has more than 4 bits"),
        ("g () => () {y = F <a = \"x> ()}", "line 1, column 24: the string has no closing quote"),
    ] {
        assert_eq!(Document::from_text(text).err().context("an error")?.to_string(), error);
    }
    let deep = format!("g ({}", "seq(".repeat(100_000));
    let error = Document::from_text(&deep).err().context("an error")?.to_string();
    assert_eq!(error, "line 1, column 132: graphs and types nest more than 33 deep");
    Ok(())
}

#[test]
fn text_keeps_what_is_said_of_parts() -> Result<()> {
    let text = r#"<
   ir_version: 10,
   opset_import: ["" : 23]
>
g (float[N] x) => (float[N] y)
   <float[1] w = {2.0}, float[N] a>
{
   #: graph doc_string: "of \"g\"" metadata_props: ["k": "v"]
   #: input x doc_string: "two\nlines"
   #: output y metadata_props: ["a": "\\n", "b": ""]
   #: value a doc_string: "a"
   #: initializer w doc_string: "w"
   #: quantization a ["SCALE_TENSOR": "w"]
   #: node doc_string: "first" metadata_props: ["m": "n"]
   #: attribute axis doc_string: "which"
   a = Softmax <axis: int = 0> (x)
   y = If (x) <then_branch: graph = t () => (y1) {
         #: graph doc_string: "inside"
         #: node doc_string: "of the body"
         y1 = Neg (a)
      }>
}
"#;
    let document = Document::from_text(text)?;
    assert_eq!(document.to_text()?, text);
    let graph = &document.graph;
    assert_eq!((graph.doc.as_str(), graph.metadata[0].value.as_str()), ("of \"g\"", "v"));
    assert_eq!((graph.inputs[0].doc.as_str(), graph.outputs[0].metadata[0].value.as_str()), ("two\nlines", "\\n"));
    assert_eq!((graph.initializers[0].doc.as_str(), graph.nodes[0].attributes[0].doc.as_str()), ("w", "which"));
    assert_eq!(graph.quantization_annotations[0].parameters[0].value, "w");
    let body = graph.nodes[1].bodies().next().context("a body")?;
    assert_eq!((body.doc.as_str(), body.nodes[0].doc.as_str()), ("inside", "of the body"));
    for (note, error) in [
        ("#: input z doc_string: \"a\"", "line 2, column 11: there is no input \"z\""),
        ("#: output", "line 2, column 10: expected a name, found the end"),
        (
            "#: graph doc: \"a\"",
            "line 2, column 10: expected doc_string, metadata_props or the end of the line, found `doc`",
        ),
        ("#: attribute b doc_string: \"a\"", "line 2, column 15: the node has no attribute \"b\""),
        ("#: all", "line 2, column 7: expected a name, found the end"),
    ] {
        let text = format!("g (x) => (y) {{\n{note}\ny = Neg (x) }}");
        assert_eq!(Document::from_text(&text).err().context("an error")?.to_string(), error, "{note}");
    }
    // What can't be said is refused.
    let mut document = document;
    document.graph.inputs[0].value_type.as_mut().context("a type")?.denotation = "IMAGE".to_string();
    let error = document.to_text().err().context("an error")?.to_string();
    assert_eq!(error, "the text form can't express the denotation of a type: write an .onnx file");
    for (field, what) in [
        ([0xa2, 1, 0], "training_info"),
        ([0xd2, 1, 0], "the configurations of devices"),
        ([0xfa, 1, 0], "field 31 of the model"),
    ] {
        let bytes = [&document.to_bytes()?[..], &field].concat();
        let error = Document::from_bytes(bytes)?.to_text().err().context("an error")?.to_string();
        assert_eq!(error, format!("the text form can't express {what}: write an .onnx file"));
    }
    Ok(())
}

/// NaNs keep their signs and payloads, wherever a model has floats.
#[test]
fn text_keeps_the_bits_of_nans() -> Result<()> {
    let singles = [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001, 0xff80_0001, 0x7fc1_2345, 0xffff_ffff, 0x3f80_0000u32];
    let floats = singles.map(f32::from_bits);
    // The same sign and payload, with another bit at the end.
    let double =
        |bits: u32| u64::from(bits >> 31) << 63 | 0x7ff << 52 | u64::from(bits << 9) << 20 | u64::from(bits & 1);
    let tensor = |dtype: DType| {
        let bytes: Vec<u8> = match dtype {
            DType::Double | DType::Complex128 => singles.iter().flat_map(|bits| double(*bits).to_le_bytes()).collect(),
            DType::Float | DType::Complex64 => singles.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
            DType::Float16 | DType::Bfloat16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
            small => (0..=u8::MAX).take(1 << small.bits()).collect(),
        };
        let whole = bytes.len() / dtype.size();
        Tensor::new(dtype, &[whole], bytes[..whole * dtype.size()].to_vec())
    };
    let types = DType::all()
        .filter(|dtype| ["float", "bfloat", "double", "complex"].iter().any(|t| dtype.name().starts_with(t)));
    let mut graph = Graph::new("g").output(ValueInfo::untyped("y"));
    for dtype in types {
        let own = Initializer::new("", &tensor(dtype)?);
        let both = AttributeValue::Tensors(vec![own.clone().into(), own.clone().into()]);
        graph = graph
            .initializer(Initializer { name: format!("w_{}", dtype.name()), ..own.clone() })
            .node(Node::new("Constant", [""; 0], ["c"]).attribute("value", own))
            .node(Node::new("F", [""; 0], ["t"]).domain("l").attribute("both", both));
    }
    for value in floats {
        graph = graph.node(Node::new("Constant", [""; 0], ["f"]).attribute("value_float", value));
        graph = graph.node(Node::new("F", [""; 0], ["t"]).domain("l").attribute("alpha", value).attribute("more", 1));
    }
    graph = graph.node(Node::new("Constant", [""; 0], ["f"]).attribute("value_floats", floats.to_vec()));
    ensure!(graph.initializers.len() == 14, "{} types have floats", graph.initializers.len());
    let mut document = Document::new(graph, 25);
    let defaults = vec![Attribute::new("alpha", floats[4]).into(), Attribute::new("all", floats.to_vec()).into()];
    let function = Function { name: "F".to_string(), domain: "l".to_string(), defaults, ..Function::default() };
    document.functions.push(function.into());
    let text = document.to_text()?;
    let again = Document::from_text(&text)?;
    ensure!(again.graph == document.graph && again.functions == document.functions, "{text}");
    assert_eq!(again.to_text()?, text);

    let text = |number: &str| format!("g () => () {{ c = Constant <value = float[2] {{1.0, {number}}}> () }}");
    let written = "<value: tensor = float[2] {1.0, \n   #: 0xff800001\n   -nan}>";
    ensure!(Document::from_text(&text("#: 0xff800001\n-nan"))?.to_text()?.contains(written));
    for (number, error) in [
        ("#: 0x7fc12345\n-nan", "line 1, column 54: expected the bits of a NaN with the sign of -nan"),
        ("#: 0x7f800000\nnan", "line 1, column 54: expected the bits of a NaN with the sign of nan"),
        ("#: 0x1ffffffff\nnan", "line 1, column 54: expected the bits of a NaN with the sign of nan"),
        ("#: nan\nnan", "line 1, column 54: expected the bits of a NaN with the sign of nan"),
        ("#: 0x7fc12345\n2.0", "line 1, column 54: expected the bits of a NaN with the sign of 2.0"),
    ] {
        assert_eq!(Document::from_text(&text(number)).err().context("an error")?.to_string(), error, "{number}");
    }
    Ok(())
}

/// Notes count as memory, and each finds its part without a search of all.
#[test]
fn notes_are_limited() -> Result<()> {
    let text = |inputs: &str, notes: &str| {
        format!("<ir_version: 10, opset_import: [\"\": 21]>\ng ({inputs}) => (float[1] a0) {{\n{notes}}}")
    };
    let limits = |limits: &mut onnxref::Limits| (limits.load_bytes, limits.load_bytes_per_byte) = (4 << 20, 0);
    let options = Model::options().change_limits(limits);
    let many = text("float[1] a0", &"#:\n".repeat(1 << 20));
    let error = Document::from_text_with(&many, &options).err().context("an error")?;
    ensure!(error.kind() == onnxref::Kind::Limit, "{error}");

    let count = 20_000;
    let inputs: Vec<String> = (0..count).map(|k| format!("float[1] a{k}")).collect();
    let notes: String = (0..count).rev().map(|k| format!("#: input a{k} doc_string: \"{k}\"\n")).collect();
    let document = Document::from_text(&text(&inputs.join(", "), &notes))?;
    ensure!(document.graph.inputs.iter().enumerate().all(|(k, input)| input.doc == k.to_string()));
    Ok(())
}

/// What isn't a number is the same as itself: nodes with it stay as they were read.
#[test]
fn floats_are_compared_by_bits() -> Result<()> {
    let node =
        |value: f32| Node::new("F", ["x"], ["y"]).domain("l").attribute("a", value).attribute("b", vec![value, 1.0]);
    ensure!(node(f32::NAN) == node(f32::NAN) && node(0.0) != node(-0.0));
    let text = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) { y = LeakyRelu <alpha = nan> (x) }"#;
    let mut document = Document::from_text(text)?;
    let found = document.inspect(&Model::options())?;
    document.convert(&found, 22)?;
    ensure!(document.graph.nodes[0].is_unchanged());
    Ok(())
}

/// Broken files and texts end in an error, or are written as they were read.
#[test]
fn what_is_broken_is_an_error_or_kept() -> Result<()> {
    let limits = |limits: &mut onnxref::Limits| (limits.load_bytes, limits.file_bytes) = (4 << 20, 1 << 20);
    let options = Model::options().change_limits(limits);
    let mut random = common::plain::Random(7);
    let all: Vec<Vec<u8>> = models()?.into_iter().map(|(_, bytes)| bytes).filter(|bytes| bytes.len() < 2000).collect();
    let (mut files, mut texts) = (0, 0);
    for round in 0..2000 {
        let mut bytes = all[random.below(all.len())].clone();
        let is_text = round % 2 == 1;
        if is_text {
            bytes = Document::from_bytes(bytes)?.to_text()?.into_bytes();
        }
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = b"\0\x08<>(){}[],:#\"a1\xff"[random.below(17)],
                1 => drop(bytes.drain(at..bytes.len().min(at + random.below(9)))),
                _ => bytes.insert(at, bytes[random.below(bytes.len())]),
            }
            if bytes.is_empty() {
                bytes.push(8);
            }
        }
        if is_text {
            let Ok(document) = Document::from_text_with(&String::from_utf8_lossy(&bytes), &options) else { continue };
            let Ok(text) = document.to_text() else { continue };
            ensure!(Document::from_text(&text)?.to_text()? == text, "{text}");
            texts += 1;
        } else if let Ok(document) = Document::from_bytes_with(bytes.clone(), &options) {
            ensure!(document.to_bytes()? == bytes);
            files += 1;
        }
    }
    ensure!(files > 50 && texts > 50, "{files} files and {texts} texts were read");
    Ok(())
}

/// Before opset 9, Constant gives floats only, and before version 4 of the format initializers are inputs.
#[test]
fn constants_of_old_opsets() -> Result<()> {
    let text = r#"<ir_version: 3, opset_import: ["" : 4]>
        g (float[2, 3] x) => (float[6] y) { y = Reshape <shape = [6]> (x) }"#;
    let mut document = Document::from_text(text)?;
    let found = document.inspect(&Model::options())?;
    document.convert(&found, 6)?;
    let graph = &document.graph;
    assert_eq!((graph.nodes.len(), graph.nodes[0].inputs[1].as_str()), (1, "y_shape"));
    assert_eq!((graph.inputs[1].name.as_str(), graph.initializers[0].name.as_str()), ("y_shape", "y_shape"));
    document.load(&Model::options())?;

    // Scales were empty beside sizes, and may not be there any more.
    let text = r#"<ir_version: 6, opset_import: ["" : 11]> g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y)
        <float[0] none = {}, int64[4] sizes = {1, 1, 4, 4}> { y = Resize (x, none, none, sizes) }"#;
    let mut document = Document::from_text(text)?;
    let found = document.inspect(&Model::options())?;
    document.convert(&found, 24)?;
    assert_eq!(document.graph.nodes[0].inputs, ["x", "none", "", "sizes"]);

    let text = r#"<ir_version: 3, opset_import: ["" : 8]> g (float[2] x) => (int64[1] s, float[2] y)
        { s = Shape (x) c = Constant <value = float[2] {1, 2}> () d = Neg (c) y = Add (x, d) }"#;
    let mut document = Document::from_text(text)?;
    let found = document.inspect(&Model::options())?;
    document.simplify(&found, 1 << 20)?;
    let operators: Vec<&str> = document.graph.nodes.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!(operators, ["Shape", "Constant", "Add"]);
    Ok(())
}

/// Bounds that Clip leaves out are those of float32 up to version 10, and of its type from 11 on; what else changes its meaning.
#[test]
fn defaults_that_went() -> Result<()> {
    let converted = |text: &str, to: i64| -> Result<[Model; 2]> {
        let mut document = Document::from_text(text)?;
        let before = document.load(&Model::options())?;
        let found = document.inspect(&Model::options())?;
        document.convert(&found, to)?;
        Ok([before, document.load(&Model::options())?])
    };
    let ends = [1e300, -1e300, f64::INFINITY, 1.0, f64::NEG_INFINITY];
    for attributes in ["", "<min = -2.0>", "<max = 0.5>", "<min = -2.0, max = 0.5>"] {
        let of = |dtype: &str| {
            let graph = format!("g ({dtype}[5] x) => ({dtype}[5] y) {{ y = Clip {attributes} (x) }}");
            format!("<ir_version: 7, opset_import: [\"\" : 6]> {graph}")
        };
        let halves = ends.map(half::f16::from_f64);
        for (dtype, x) in [
            ("double", Tensor::from(ends.to_vec())),
            ("float", Tensor::from(ends.map(|x| x as f32).to_vec())),
            ("float16", Tensor::from_elements(&[5], halves.to_vec())?),
        ] {
            let [before, after] = converted(&of(dtype), 13)?;
            let run = |model: &Model| model.run(onnxref::inputs! { "x" => x.clone() });
            assert_eq!(run(&before)?["y"], run(&after)?["y"], "{dtype} {attributes}");
        }
    }
    // A mask that nobody reads may go, one that is an output may not.
    let dropout = |outputs: &str| {
        let graph =
            format!("g (float[2] x) => (float[2] y, float[2] {outputs}) {{ y, mask = Dropout (x) z = Neg (x) }}");
        converted(&format!("<ir_version: 7, opset_import: [\"\" : 9]> {graph}"), 22)
    };
    let x = Tensor::from(vec![1f32, 2.0]);
    assert_eq!(dropout("z")?[1].run(onnxref::inputs! { "x" => x.clone() })?["y"], x);
    assert!(dropout("mask").is_err_and(|error| error.to_string().contains("its mask is boolean in Dropout-10")));
    let text =
        "<ir_version: 7, opset_import: [\"\" : 1]> g (float[1, 1, 4] x) => (float[1, 1, 1] y) { y = GlobalLpPool (x) }";
    let [before, after] = converted(text, 22)?;
    let x = Tensor::from_elements(&[1, 1, 4], vec![1f32, 2.0, 3.0, 4.0])?;
    let run = |model: &Model| model.run(onnxref::inputs! { "x" => x.clone() });
    assert_eq!(run(&before)?["y"], run(&after)?["y"]);
    Ok(())
}

/// Imports that calls in functions need stay, and so does a Dropout that draws.
#[test]
fn what_simplify_keeps() -> Result<()> {
    let text = r#"<ir_version: 10, opset_import: ["" : 17, "f" : 1, "g" : 1, "h" : 1]>
        graph (float[2] x) => (float[2] y, float[3] z) <float[3] ones = {1, 1, 1}, float ratio = {0.5}, bool yes = {1}>
        { y = f.outer (x) z = Dropout (ones, ratio, yes) }
        <domain: "g", opset_import: ["" : 17]> inner (x) => (y) { y = Neg (x) }
        <domain: "f", opset_import: ["" : 17, "g" : 1]> outer (x) => (y) { y = g.inner (x) }"#;
    let mut document = Document::from_text(text)?;
    let found = document.inspect(&Model::options())?;
    document.simplify(&found, 1 << 20)?;
    let domains: Vec<&str> = document.opset_imports.iter().map(|import| import.domain.as_str()).collect();
    assert_eq!(domains, ["", "f", "g"]);
    let operators: Vec<&str> = document.graph.nodes.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!(operators, ["outer", "Dropout"]);
    Ok(())
}

/// Nodes may be in any order: what an Identity reads may come from a later one.
#[test]
fn identities_in_any_order_are_dropped() -> Result<()> {
    let simple = |nodes: &str| -> Result<String> {
        let text = format!("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) {{ {nodes} }}");
        let mut document = Document::from_text(&text)?;
        let found = document.inspect(&Model::options())?;
        document.simplify(&found, 1 << 20)?;
        let nodes = document.graph.nodes.iter();
        Ok(nodes.map(|node| format!("{} = {} {};", node.outputs[0], node.op_type, node.inputs[0])).collect())
    };
    assert_eq!(simple("y = Neg (c) c = Identity (b) b = Identity (a) a = Identity (x)")?, "y = Neg x;");
    // What leads around stays.
    let cycle = "y = Neg (a) a = Identity (b) b = Identity (a)";
    assert_eq!(simple(cycle)?, "y = Neg a;a = Identity b;b = Identity a;");
    Ok(())
}

#[test]
fn an_input_keeps_its_default() -> Result<()> {
    let text = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x, float[2] w = {1, 2}, float[2] v = {3, 4}) => (y) { a = Add (x, w) y = Add (a, v) }"#;
    let mut document = Document::from_text(text)?;
    let inputs = ["a", "w", "v"].map(str::to_string);
    assert_eq!(document.extract(Some(&inputs), None, &|_| None)?, ["w"]);
    let defaults: Vec<&str> = document.graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(defaults, ["w", "v"]);
    Ok(())
}

/// The parameters that are annotated of a value stay with it, and go with it.
#[test]
fn annotated_values_keep_their_parameters() -> Result<()> {
    let text = r#"<ir_version: 10, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) <float s = {0.5}, float t = {0.25}, float[2] w = {1, 2}, float[2] v = {3, 4}>
        {
            #: quantization w ["SCALE_TENSOR": "s"]
            #: quantization v ["SCALE_TENSOR": "t"]
            y = Add (x, w)
        }"#;
    let mut simple = Document::from_text(text)?;
    let found = simple.inspect(&Model::options())?;
    let mut part = simple.clone();
    simple.simplify(&found, 1 << 20)?;
    part.extract(None, Some(&["y".to_string()]), &|_| None)?;
    for document in [simple, part] {
        let kept: Vec<&str> = document.graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!(kept, ["s", "w"]);
        let annotated = document.graph.quantization_annotations.iter();
        assert_eq!(annotated.map(|annotation| annotation.tensor_name.as_str()).collect::<Vec<_>>(), ["w"]);
    }
    Ok(())
}
