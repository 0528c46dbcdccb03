//! Large valid models: they load under the default limits, within the promised memory.

use crate::billing::too_few;
use crate::common::archive::in_parallel;
use crate::common::proto::{
    AttributeProto, DeviceConfigurationProto, FunctionProto, GraphProto, ModelProto, NodeDeviceConfigurationProto,
    NodeProto, ShardedDimProto, ShardingSpecProto, SimpleShardedDimProto, StringStringEntryProto, TensorProto,
};
use crate::common::{initializer, int, model, node, value};
use crate::graphs::{array, good, good_feeds, good_outputs, graph_of, node_of};
use crate::memory::peak_of;
use bytes::Bytes;
use onnxref::{DType, Dim, Model, Tensor, inputs};
use prost::Message;

/// Names as exporters write them, of about 60 bytes.
fn name(what: &str, k: usize) -> String {
    format!("/model/layers.{}/self_attn/attention_{what}/Gather_{k}_output_0", k / 100)
}

/// A chain of nodes as exporters write them.
fn exported(nodes: usize, change: impl Fn(usize, &mut NodeProto)) -> GraphProto {
    let gather = |k: usize| {
        let mut node = NodeProto {
            name: Some(name("node", k)),
            ..node("Gather", &[&name("value", k), "ids"], &[&name("value", k + 1)], vec![int("axis", 0)])
        };
        change(k, &mut node);
        node
    };
    GraphProto {
        name: Some("main_graph".into()),
        node: (0..nodes).map(gather).collect(),
        input: vec![value(&name("value", 0), DType::Float, None), value("ids", DType::Int64, None)],
        output: vec![value(&name("value", nodes), DType::Float, None)],
        ..GraphProto::default()
    }
}

/// Four inputs for each node: what the two of a Gather leave is in another node that reads the same values.
fn elements(nodes: usize) -> GraphProto {
    let mut graph = exported(nodes, |k, node| node.op_type = Some(["Gather", "GatherElements"][k % 2].into()));
    let dims =
        [Dim::Symbol("batch_size".into()), Dim::Symbol("sequence_length".into()), Dim::Fixed(32), Dim::Fixed(128)];
    graph.value_info = (1..nodes).map(|k| value(&name("value", k), DType::Float, Some(&dims))).collect();
    graph
}

fn constants(count: usize, tensor: &Tensor) -> GraphProto {
    let mut graph = exported(1, |_, _| {});
    graph.initializer = (0..count).map(|k| initializer(&name("weight", k), tensor)).collect();
    graph
}

fn typed(count: usize, fill: impl Fn(TensorProto) -> TensorProto) -> GraphProto {
    let mut graph = exported(1, |_, _| {});
    let tensor = |k: usize| fill(TensorProto { name: Some(name("weight", k)), ..TensorProto::default() });
    graph.initializer = (0..count).map(tensor).collect();
    graph
}

fn of(dtype: DType, len: usize, tensor: TensorProto) -> TensorProto {
    TensorProto { data_type: Some(dtype.code()), dims: vec![len as i64], ..tensor }
}

/// Each loads, takes no more than is promised, and its bill is no less than what it takes.
#[test]
fn large_models_load() {
    let scalar: Tensor = array(&[], |_| 1f32);
    let small: Tensor = array(&[2], |_| 1i64);
    type Make<'a> = Box<dyn Fn() -> GraphProto + Sync + 'a>;
    let models: Vec<(&str, Make<'_>)> = vec![
        ("20,000 nodes", Box::new(|| exported(20_000, |_, _| {}))),
        (
            "20,000 nodes with documentation",
            Box::new(|| {
                exported(20_000, |k, node| {
                    node.doc_string = Some(format!("File \"model.py\", line {k}, in forward\n").repeat(4))
                })
            }),
        ),
        (
            "20,000 nodes with metadata",
            Box::new(|| {
                exported(20_000, |k, node| {
                    let entry =
                        |key: &str| StringStringEntryProto { key: Some(key.into()), value: Some(name("scope", k)) };
                    node.metadata_props = vec![entry("pkg.torch.onnx.name_scopes"), entry("pkg.torch.onnx.fx_node")];
                })
            }),
        ),
        ("20,000 nodes whose values are declared", Box::new(|| elements(20_000))),
        ("50,000 nodes", Box::new(|| exported(50_000, |_, _| {}))),
        (
            "50,000 nodes with short names",
            Box::new(|| {
                let name = |k: usize| format!("v{k}");
                GraphProto {
                    node: (0..50_000).map(|k| node("Gather", &[&name(k), "ids"], &[&name(k + 1)], vec![])).collect(),
                    input: vec![value("v0", DType::Float, None), value("ids", DType::Int64, None)],
                    output: vec![value(&name(50_000), DType::Float, None)],
                    ..GraphProto::default()
                }
            }),
        ),
        ("50,000 scalars", Box::new(|| constants(50_000, &scalar))),
        ("50,000 shapes", Box::new(|| constants(50_000, &small))),
        (
            "200 initializers of 10,000 numbers (int64_data)",
            Box::new(|| {
                typed(200, |t| {
                    let numbers = (0..10_000).map(|k| k * 1_000_003).collect();
                    of(DType::Int64, 10_000, TensorProto { int64_data: numbers, ..t })
                })
            }),
        ),
        (
            "a million small numbers (int64_data)",
            Box::new(|| {
                typed(1, |t| {
                    let numbers = (0..1_000_000).map(|k| k % 100).collect();
                    of(DType::Int64, 1_000_000, TensorProto { int64_data: numbers, ..t })
                })
            }),
        ),
        (
            "a million small numbers (int32_data)",
            Box::new(|| {
                typed(1, |t| {
                    let numbers = (0..1_000_000).map(|k| k % 100).collect();
                    of(DType::Int8, 1_000_000, TensorProto { int32_data: numbers, ..t })
                })
            }),
        ),
        (
            "a million floats (float_data)",
            Box::new(|| {
                typed(1, |t| of(DType::Float, 1_000_000, TensorProto { float_data: vec![1.5; 1_000_000], ..t }))
            }),
        ),
        (
            "a vocabulary of 150,000 words (string_data)",
            Box::new(|| {
                typed(1, |t| {
                    let words = (0..150_000).map(|k| format!("word{k}").into()).collect();
                    of(DType::String, 150_000, TensorProto { string_data: words, ..t })
                })
            }),
        ),
    ];
    let wrong = in_parallel(&models, |(title, make)| {
        let bytes = Bytes::from(model(13, 8, make()));
        let len = bytes.len() as u64;
        let (result, _) = peak_of(|| Model::from_bytes(bytes.clone()).map(drop));
        let mut limits = onnxref::Limits::default();
        limits.load_bytes = 1 << 36;
        let (loaded, peak) = peak_of(|| Model::options().limits(limits).from_bytes(bytes.clone()));
        let (taken, promised) = (peak.bytes + len, (64 << 20) + 4 * len);
        drop(loaded.unwrap());
        let line = format!(
            "{title}: file {len}, taken {taken} ({:.2} of what is promised, {:.2} B for a byte), kept {}",
            taken as f64 / promised as f64,
            taken as f64 / len as f64,
            peak.kept,
        );
        println!("{line}");
        let refused = result.err().map(|error| format!("{line}\n  is refused: {error}"));
        // As long as that is more than what it takes, the bill is no less.
        refused.or_else(|| too_few(taken - 1, &bytes).is_none().then(|| format!("{line}\n  takes more than its bill")))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Much of everything, and it runs as it should.
#[test]
fn large_models_run() {
    let mut graph = exported(20_000, |_, _| {});
    graph.initializer.push(initializer("ids", &array(&[3], |k| [1i64, 2, 0][k])));
    graph.input.pop();
    let model = Model::from_bytes(model(13, 8, graph)).unwrap();
    let first = name("value", 0);
    let data: Tensor = array(&[3], |k| k as f32);
    let outputs = model.run(inputs! { first.as_str() => &data }).unwrap();
    assert_eq!(outputs.iter().next().unwrap().1.tensor().unwrap(), &array(&[3], |k| ((k + 2) % 3) as f32));
}

/// What a model of several devices says about them is no concern of ours, and no fault.
#[test]
fn models_of_several_devices() {
    let runs = |change: fn(&mut ModelProto)| {
        let mut proto = good();
        proto.ir_version = Some(11);
        change(&mut proto);
        let loaded = Model::from_bytes(proto.encode_to_vec()).unwrap();
        let feeds = good_feeds();
        let outputs = loaded.run(feeds.iter().map(|(name, tensor)| (*name, tensor)).collect()).unwrap();
        assert_eq!(
            outputs.into_iter().map(|(_, value)| value.into_tensor().unwrap()).collect::<Vec<_>>(),
            good_outputs()
        );
    };
    runs(|m| {
        m.configuration.push(DeviceConfigurationProto {
            name: Some("two".into()),
            num_devices: Some(2),
            device: vec!["cpu:0".into(), "cpu:1".into()],
        });
    });
    runs(|m| {
        let dim = ShardedDimProto {
            axis: Some(-1),
            simple_sharding: vec![SimpleShardedDimProto { num_shards: Some(2), ..Default::default() }],
        };
        let spec = ShardingSpecProto {
            tensor_name: Some("rows".into()),
            device: vec![0, 1],
            sharded_dim: vec![dim],
            ..Default::default()
        };
        node_of(m, 0).device_configurations.push(NodeDeviceConfigurationProto {
            configuration_id: Some("two".into()),
            sharding_spec: vec![spec],
            pipeline_stage: Some(1),
        });
    });
}

/// What a model may have that no run needs.
#[test]
fn what_is_passed_over() {
    let runs = |change: fn(&mut ModelProto)| {
        let mut proto = good();
        change(&mut proto);
        Model::from_bytes(proto.encode_to_vec()).unwrap();
    };
    let entry = || StringStringEntryProto { key: Some("k".into()), value: Some("\0\n".repeat(100)) };
    runs(|m| m.doc_string = Some("x".repeat(1 << 20)));
    runs(|m| {
        m.metadata_props = vec![StringStringEntryProto { key: Some("k".into()), value: Some("v".repeat(1 << 20)) }; 2]
    });
    runs(|m| graph_of(m).quantization_annotation = vec![Default::default(); 3]);
    runs(|m| m.training_info = vec![Default::default()]);
    runs(|m| m.functions = vec![FunctionProto { name: Some("F".into()), ..Default::default() }]);
    runs(|m| graph_of(m).value_info = vec![Default::default(); 3]);
    runs(|m| node_of(m, 0).doc_string = Some("\u{202e}".repeat(1000)));
    let mut proto = good();
    graph_of(&mut proto).metadata_props = vec![entry()];
    Model::from_bytes(proto.encode_to_vec()).unwrap();
    // A documented attribute is an attribute.
    let mut proto = good();
    node_of(&mut proto, 0).attribute = vec![AttributeProto { doc_string: Some("the axis".into()), ..int("axis", 0) }];
    Model::from_bytes(proto.encode_to_vec()).unwrap();
}
