//! Models and feeds that must be refused whatever their operators are: each breaks one rule.

use super::negatives::refusal;
use crate::corpus::manifest::Refusal;
use crate::messages::{self, type_of};
use crate::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto};
use crate::record::set;
use onnxref::bytes::Bytes;
use onnxref::{DType, Tensor, Value};
use prost::Message;

/// What is fed, by name.
type Feeds = Vec<(String, Value)>;

/// A rule, a part of the text of its error, and how a model or its feeds break it.
struct Fault(&'static str, &'static str, fn(&mut ModelProto, &mut Feeds) -> Option<()>);

/// The model is `y = (a + b) + w`, with `w` an initializer.
const FAULTS: &[Fault] = &[
    Fault("unknown-operator", "is not an ONNX operator", |model, _| {
        set_operator(first(model)?, "NoSuchOperator");
        Some(())
    }),
    Fault("operator-removed", "was removed", |model, _| {
        set_operator(first(model)?, "Upsample");
        Some(())
    }),
    Fault("opset-not-imported", "opset_import is missing", |model, _| {
        model.opset_import.clear();
        Some(())
    }),
    Fault("opset-version-not-positive", "versions start at 1", |model, _| {
        model.opset_import = vec![opset(0)];
        Some(())
    }),
    Fault("no-graph", "has no graph", |model, _| {
        model.graph = None;
        Some(())
    }),
    Fault("value-given-twice", "is given twice", |model, _| {
        let node = first(model)?.clone();
        graph(model)?.node.insert(0, node);
        Some(())
    }),
    Fault("value-is-an-input-too", "is given twice", |model, _| {
        first(model)?.output = vec!["a".to_string()];
        Some(())
    }),
    Fault("two-inputs-of-one-name", "is given twice", |model, _| {
        let input = graph(model)?.input.first()?.clone();
        graph(model)?.input.push(input);
        Some(())
    }),
    Fault("two-initializers-of-one-name", "two initializers", |model, _| {
        let initializer = graph(model)?.initializer.first()?.clone();
        graph(model)?.initializer.push(initializer);
        Some(())
    }),
    Fault("nodes-not-sorted", "must be sorted", |model, _| {
        graph(model)?.node.reverse();
        Some(())
    }),
    Fault("cycle", "form a cycle", |model, _| {
        first(model)?.input = vec!["y".to_string(), "b".to_string()];
        Some(())
    }),
    Fault("node-reads-itself", "a cycle", |model, _| {
        first(model)?.input = vec!["sum".to_string(), "b".to_string()];
        Some(())
    }),
    Fault("value-from-nowhere", "is produced by nothing", |model, _| {
        first(model)?.input = vec!["nowhere".to_string(), "b".to_string()];
        Some(())
    }),
    Fault("output-from-nowhere", "is produced by nothing", |model, _| {
        graph(model)?.output.push(info("nowhere"));
        Some(())
    }),
    Fault("input-omitted", "is left out, but required", |model, _| {
        first(model)?.input = vec![String::new(), "b".to_string()];
        Some(())
    }),
    Fault("attribute-given-twice", "is given twice", |model, _| {
        let axis = || {
            let (name, i, kind) = (Some("axis".to_string()), Some(0), Some(messages::AttributeType::Int.into()));
            crate::proto::AttributeProto { name, i, r#type: kind, ..Default::default() }
        };
        set_operator(first(model)?, "Concat");
        first(model)?.attribute = vec![axis(), axis()];
        Some(())
    }),
    Fault("initializer-too-short", "its raw data has 7 bytes", |model, _| {
        initializer(model)?.raw_data = Some(vec![0; 7].into());
        Some(())
    }),
    Fault("initializer-of-negative-size", "allowed 0 or more", |model, _| {
        initializer(model)?.dims = vec![-2];
        Some(())
    }),
    Fault("initializer-of-unknown-type", "is not an element type", |model, _| {
        initializer(model)?.data_type = Some(999);
        Some(())
    }),
    Fault("initializer-with-two-kinds-of-data", "only one is allowed", |model, _| {
        initializer(model)?.float_data = vec![1.0, 2.0];
        Some(())
    }),
    Fault("declared-type-is-another", "but is declared as", |model, _| {
        graph(model)?.output.first_mut()?.r#type = Some(type_of(&DType::Int64.into(), None));
        Some(())
    }),
    Fault("feed-missing", "missing input", |_, feeds| {
        feeds.pop();
        Some(())
    }),
    Fault("feed-of-another-type", "has element type", |_, feeds| {
        feeds.last_mut()?.1 = Tensor::from(vec![1i64, 2]).into();
        Some(())
    }),
    Fault("feed-of-another-rank", "of rank 2", |_, feeds| {
        feeds.last_mut()?.1 = Tensor::from_elements(&[1, 2], vec![1f32, 2.0]).ok()?.into();
        Some(())
    }),
    Fault("feed-of-another-size", "dimension 0 is 3", |_, feeds| {
        feeds.last_mut()?.1 = Tensor::from(vec![1f32, 2.0, 3.0]).into();
        Some(())
    }),
];

/// A case of a fault: how it is refused, and its files.
pub(super) type Faulty = (Refusal, Vec<(String, Bytes)>);

/// All faults, in models for an opset.
pub(super) fn all(version: i64) -> Vec<Faulty> {
    FAULTS.iter().filter_map(|fault| faulty(fault, version)).collect()
}

fn faulty(Fault(rule, part, spoil): &Fault, version: i64) -> Option<Faulty> {
    let mut model = sound(version)?;
    let value = |k: u8| Value::from(Tensor::from(vec![f32::from(k), 0.5]));
    let mut feeds = vec![("a".to_string(), value(1)), ("b".to_string(), value(2))];
    spoil(&mut model, &mut feeds)?;
    let bytes: Bytes = model.encode_to_vec().into();
    let refusal = refusal(rule, &bytes, feeds.iter().map(|(name, value)| (name.as_str(), value)).collect())?;
    let mut files = vec![("model.onnx".to_string(), bytes)];
    for (k, (name, value)) in feeds.iter().enumerate() {
        files.push((set("input", k), messages::encoded(name, value).ok()?));
    }
    refusal.text.contains(part).then_some((refusal, files))
}

/// The model without a fault.
fn sound(version: i64) -> Option<ModelProto> {
    let add = |inputs: [&str; 2], output: &str| NodeProto {
        op_type: Some("Add".to_string()),
        input: inputs.map(str::to_string).into(),
        output: vec![output.to_string()],
        ..NodeProto::default()
    };
    let graph = GraphProto {
        name: Some("generated".to_string()),
        node: vec![add(["a", "b"], "sum"), add(["sum", "w"], "y")],
        initializer: vec![messages::tensor("w", &Tensor::from(vec![1f32, 2.0])).ok()?],
        input: vec![info("a"), info("b")],
        output: vec![info("y")],
        ..GraphProto::default()
    };
    let ir_version = Some(super::maker::ir_version("", version));
    Some(ModelProto { ir_version, opset_import: vec![opset(version)], graph: Some(graph), ..ModelProto::default() })
}

/// A value of float32 `[2]`.
fn info(name: &str) -> ValueInfoProto {
    let r#type = Some(type_of(&DType::Float.into(), Some(messages::dims(&[2]))));
    ValueInfoProto { name: Some(name.to_string()), r#type, ..ValueInfoProto::default() }
}

fn opset(version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(String::new()), version: Some(version) }
}

fn graph(model: &mut ModelProto) -> Option<&mut GraphProto> {
    model.graph.as_mut()
}

fn first(model: &mut ModelProto) -> Option<&mut NodeProto> {
    graph(model)?.node.first_mut()
}

fn initializer(model: &mut ModelProto) -> Option<&mut TensorProto> {
    graph(model)?.initializer.first_mut()
}

fn set_operator(node: &mut NodeProto, name: &str) {
    node.op_type = Some(name.to_string());
}
