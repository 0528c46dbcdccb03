//! Negative axes: what the text of each operator version says about them. New operators are covered automatically.

use crate::bodies::{body, open};
use crate::common::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};
use crate::common::{initializer, int, ints, node, value};
use crate::{import, int64, load};
use onnxref::schema::{self, AttributeKind, Schema};
use onnxref::{DType, Error, Kind, Sequence, Tensor, Value};

/// Versions whose text says nothing: negative axes count from the end, and a note says so.
const SILENT: [(&str, &[i64]); 36] = [
    ("Add", &[1, 6]),
    ("And", &[1]),
    ("ArgMax", &[1]),
    ("ArgMin", &[1]),
    ("Compress", &[9]),
    ("Concat", &[1, 4]),
    ("Div", &[1, 6]),
    ("Equal", &[1]),
    ("Greater", &[1]),
    ("Hardmax", &[1]),
    ("Less", &[1]),
    ("LogSoftmax", &[1]),
    ("LpNormalization", &[1, 22]),
    ("MeanVarianceNormalization", &[9, 13]),
    ("Mul", &[1, 6]),
    ("OneHot", &[9]),
    ("Or", &[1]),
    ("Pow", &[1]),
    ("ReduceL1", &[1]),
    ("ReduceL2", &[1]),
    ("ReduceLogSum", &[1]),
    ("ReduceLogSumExp", &[1]),
    ("ReduceMax", &[1]),
    ("ReduceMean", &[1]),
    ("ReduceMin", &[1]),
    ("ReduceProd", &[1]),
    ("ReduceSum", &[1]),
    ("ReduceSumSquare", &[1]),
    ("Scan", &[9]),
    ("Slice", &[1, 10]),
    ("Softmax", &[1]),
    ("Split", &[1, 2]),
    ("Sub", &[1, 6]),
    ("Tile", &[1]),
    ("TopK", &[1, 10]),
    ("Xor", &[1]),
];

/// Versions whose text has no negative axes: "a list of non-negative integers", "in the range [0, R]", "0 or 1".
const UNSIGNED: [(&str, &[i64]); 4] =
    [("Flatten", &[1, 9]), ("ReverseSequence", &[10, 28]), ("Squeeze", &[1]), ("Unsqueeze", &[1])];

/// Of these -1 is the last one, as all versions say.
const LAST: [&str; 3] = ["LpNormalization", "OneHot", "TopK"];

/// The names of axes among attributes and inputs.
const NAMES: [&str; 6] = ["axis", "axes", "batch_axis", "time_axis", "scan_input_axes", "scan_output_axes"];

fn is_in(list: &[(&str, &[i64])], schema: &Schema) -> bool {
    list.iter().any(|(name, versions)| *name == schema.name && versions.contains(&schema.since_version))
}

/// The inputs of a node, or attributes, of which one has an axis.
struct Case {
    inputs: Vec<Option<Value>>,
    attributes: Vec<AttributeProto>,
    outputs: usize,
}

fn zeros(dtype: DType, shape: &[usize]) -> Value {
    let count = shape.iter().product::<usize>() * dtype.size();
    Tensor::new(dtype, shape, vec![0; count]).unwrap().into()
}

/// A node whose axis `name` is `axis` of 3.
fn case(schema: &Schema, name: &str, axis: i64) -> Case {
    let dtype = [DType::Float, DType::Bool, DType::Int32, DType::Int64];
    let takes = |dtype: &DType| {
        schema
            .inputs
            .iter()
            .all(|input| input.variable.as_deref() != Some("T") || input.types.contains(&(*dtype).into()))
    };
    let dtype = dtype.into_iter().find(takes).unwrap_or(DType::Float);
    let (size, at) = ([2, 3, 4][axis.rem_euclid(3) as usize], axis.rem_euclid(3));
    let x = zeros(dtype, &[2, 3, 4]);
    let some = |values: &[i64]| Some(int64(&[values.len()], values).into());
    let (mut inputs, mut attributes, mut outputs) = (vec![Some(x.clone())], vec![], 1);
    match schema.name.as_str() {
        "CenterCropPad" => inputs.push(some(&[5])),
        "Compress" => inputs.push(Some(Tensor::from(vec![true, false]).into())),
        "Concat" => inputs.push(Some(x)),
        "ConcatFromSequence" => inputs = vec![Some(Sequence::new(dtype.into(), [x.clone(), x]).unwrap().into())],
        "DFT" => inputs = vec![Some(zeros(dtype, &[2, 3, 2])), None],
        "Gather" => inputs.push(some(&[0, 1])),
        "GatherElements" => inputs.push(Some(int64(&[1, 1, 1], &[1]).into())),
        "LayerNormalization" | "RMSNormalization" => {
            inputs.push(Some(zeros(dtype, &[[2, 3, 4], [1, 3, 4], [1, 1, 4]][at as usize])))
        }
        "OneHot" => {
            let indices = int64(&[2, 3], &[0; 6]).into();
            inputs = vec![Some(indices), Some(Tensor::scalar(5i64).into()), Some(Tensor::from(vec![0f32, 1.0]).into())];
        }
        "Pad" => inputs.extend([some(&[1, 2]), None]),
        "ReverseSequence" => inputs.push(some(&[1, 1])),
        "QuantizeLinear" | "DequantizeLinear" => {
            let x = zeros(if schema.name == "QuantizeLinear" { DType::Float } else { DType::Int8 }, &[2, 3, 4]);
            inputs = vec![Some(x), Some(Tensor::from(vec![1f32; size as usize]).into())];
        }
        "Resize" => inputs.extend([None, Some(Tensor::from(vec![2f32]).into())]),
        "TensorScatter" => inputs.push(Some(zeros(dtype, &[[2, 3, 4], [2, 1, 4], [2, 3, 1]][at as usize]))),
        "Scan" => {
            let nodes = vec![node("Identity", &["entry"], &["each"], vec![])];
            attributes = vec![body("body", &[open("entry", dtype)], nodes, &["each"]), int("num_scan_inputs", 1)];
        }
        "Scatter" | "ScatterElements" => {
            inputs.extend([Some(int64(&[1, 1, 1], &[1]).into()), Some(zeros(dtype, &[1, 1, 1]))])
        }
        "Slice" if schema.since_version == 1 => attributes = vec![ints("starts", &[1]), ints("ends", &[2])],
        "Slice" => inputs.extend([some(&[1]), some(&[2])]),
        "Split" => {
            attributes = if schema.since_version == 18 { vec![int("num_outputs", size)] } else { vec![] };
            outputs = size as usize;
        }
        "Squeeze" => inputs = vec![Some(zeros(dtype, &[1, 1, 1]))],
        "Tile" => inputs.push(Some(Tensor::from(vec![2f32]).into())),
        "TopK" => {
            outputs = 2;
            match schema.since_version {
                1 => attributes = vec![int("k", 1)],
                _ => inputs.push(some(&[1])),
            }
        }
        "Unsqueeze" => inputs = vec![Some(zeros(dtype, &[2, 3]))],
        _ if schema.attributes.iter().any(|formal| formal.name == "broadcast") => {
            attributes = vec![int("broadcast", 1)];
            let ones = Tensor::from(vec![1i32; size as usize]);
            inputs.push(Some(if dtype == DType::Int32 { ones.into() } else { zeros(dtype, &[size as usize]) }));
        }
        _ => {}
    }
    match schema.attributes.iter().find(|formal| formal.name == name) {
        Some(formal) if formal.kind == AttributeKind::Ints => attributes.push(ints(name, &[axis])),
        Some(_) => attributes.push(int(name, axis)),
        None if schema.name == "Tile" => inputs.push(Some(Tensor::from(vec![axis as f32]).into())),
        None if schema.name.starts_with("Cum") => inputs.push(Some(Tensor::scalar(axis).into())),
        None => inputs.push(some(&[axis])),
    }
    Case { inputs, attributes, outputs }
}

/// The outputs of the node, and the notes of its model. All its inputs but the first are constant.
fn run(schema: &Schema, case: Case) -> Result<(Vec<Value>, Vec<String>), Error> {
    let names: Vec<String> = (0..case.inputs.len()).map(|k| format!("x{k}")).collect();
    let given = case.inputs.iter().zip(&names).map(|(input, name)| input.as_ref().map_or("", |_| name.as_str()));
    let outputs: Vec<String> = (0..case.outputs).map(|k| format!("y{k}")).collect();
    let of = |name: &String| ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() };
    let mut graph = GraphProto {
        node: vec![NodeProto {
            name: Some("node".into()),
            ..node(
                &schema.name,
                &given.collect::<Vec<_>>(),
                &outputs.iter().map(String::as_str).collect::<Vec<_>>(),
                case.attributes,
            )
        }],
        output: outputs.iter().map(of).collect(),
        ..GraphProto::default()
    };
    let mut feeds = Vec::new();
    for (input, name) in case.inputs.iter().zip(&names) {
        match input {
            Some(Value::Tensor(tensor)) if !feeds.is_empty() => graph.initializer.push(initializer(name, tensor)),
            Some(Value::Tensor(tensor)) => {
                graph.input.push(value(name, tensor.dtype(), None));
                feeds.push((name.as_str(), input.clone().unwrap()));
            }
            Some(other) => {
                graph.input.push(crate::common::typed(name, &other.value_type().unwrap()));
                feeds.push((name.as_str(), other.clone()));
            }
            None => {}
        }
    }
    let opset_import = vec![import("", schema.since_version)];
    let model = load(&ModelProto { ir_version: Some(8), graph: Some(graph), opset_import, ..ModelProto::default() })?;
    let outputs = model.run(feeds.into_iter().collect())?;
    Ok((outputs.into_iter().map(|(_, value)| value).collect(), model.report().to_vec()))
}

#[test]
fn what_negative_axes_mean() {
    let (mut tried, mut wrong) = (Vec::new(), Vec::new());
    let implemented: Vec<_> = onnxref::supported().into_iter().filter(|support| support.domain.is_empty()).collect();
    for support in implemented {
        for schema in schema::history("", support.name).unwrap() {
            let version = schema.since_version;
            let axes = schema
                .attributes
                .iter()
                .map(|formal| &formal.name)
                .chain(schema.inputs.iter().map(|input| &input.name));
            for name in axes.filter(|name| NAMES.contains(&name.as_str()) && support.versions.contains(&version)) {
                let label = format!("{}-{version}", schema.name);
                for axis in [-1, -2] {
                    // The last axis has the parts of complex numbers.
                    if schema.name == "DFT" && axis == -1 {
                        continue;
                    }
                    let silent = is_in(&SILENT, &schema) && !(axis == -1 && LAST.contains(&support.name));
                    let unsigned = is_in(&UNSIGNED, &schema);
                    let results = [axis, axis + 3].map(|axis| run(&schema, case(&schema, name, axis)));
                    let want = format!(
                        "node \"node\" ({label}): an axis is negative, of which the text of this version says nothing: it counts from the end"
                    );
                    let good = match &results {
                        [Ok((outputs, notes)), Ok((want_outputs, none))] => {
                            !unsigned
                                && outputs == want_outputs
                                && none.is_empty()
                                && *notes == Vec::from_iter(silent.then_some(want))
                        }
                        [Err(error), _] => {
                            unsigned
                                && error.kind() == Kind::Model
                                && ["allowed 0", "one must be 0"].iter().any(|text| error.to_string().contains(text))
                        }
                        _ => false,
                    };
                    if !good {
                        wrong.push(format!("{label}, {name} = {axis}: {results:?}"));
                    }
                }
                tried.push(label);
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    let listed =
        SILENT.iter().chain(&UNSIGNED).flat_map(|(name, versions)| versions.iter().map(move |v| format!("{name}-{v}")));
    listed.for_each(|label| assert!(tried.contains(&label), "{label} is not implemented, or has no axis"));
    assert!(tried.len() > 130, "only {} were tried", tried.len());
}
