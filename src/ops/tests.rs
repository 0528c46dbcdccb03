//! Every operator can be stopped while it runs.
//!
//! Time depends on the machine, so work is counted: the bytes of the inputs and outputs and the steps that are charged.
//! With one thread a run asks at the same places each time, so that it can be told to stop at any of them.

use crate::dtype::{DType, Element};
use crate::error::{Kind, Result};
use crate::model::{Model, Outputs};
use crate::onnx::proto::attribute_proto::AttributeType;
use crate::onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto, ValueInfoProto,
    type_proto,
};
use crate::operator::Cancel;
use crate::tensor::Tensor;
use crate::value::{Map, Sequence, Value, ValueType};
use half::{bf16, f16};
use kernels::testing::looks;
use num_complex::Complex;
use prost::Message;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The bytes that are read and written between two looks, on average; a few steps count as a byte.
const BOUND: u64 = 3 << 19;

/// The steps that take the time of a byte.
const STEPS: u64 = 4;

/// Between two looks is at most this part of a run.
const PART: u32 = 3;

/// Cases that fail. One that doesn't any more fails the test.
const LATE: &[&str] = &[];

/// Operators whose work doesn't grow with the elements of their inputs.
const SMALL: &[&str] = &[
    // They return what they are given, or share its elements.
    "Identity",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Constant",
    "Optional",
    "OptionalGetElement",
    "SequenceAt",
    "SequenceConstruct",
    // They look at shapes and types.
    "Shape",
    "Size",
    "OptionalHasElement",
    "SequenceEmpty",
    "SequenceLength",
    // They move the list of a sequence, not the elements of its tensors.
    "SequenceInsert",
    "SequenceErase",
    // It runs one of two subgraphs, whose nodes ask.
    "If",
];

/// A node with large inputs.
struct Case {
    /// The operator and what is special.
    name: String,
    operator: &'static str,
    model: Model,
    inputs: Vec<(String, Value)>,
}

fn case(
    what: &str,
    operator: &'static str,
    opset: i64,
    attributes: impl IntoIterator<Item = AttributeProto>,
    inputs: impl IntoIterator<Item = Option<Value>>,
) -> Case {
    case_of(what, operator, opset, 1, attributes, inputs)
}

/// As [`case`], with a number of outputs.
fn case_of(
    what: &str,
    operator: &'static str,
    opset: i64,
    outputs: usize,
    attributes: impl IntoIterator<Item = AttributeProto>,
    inputs: impl IntoIterator<Item = Option<Value>>,
) -> Case {
    let name = format!("{operator}-{opset} {what}");
    let (domain, op_type) = operator.rsplit_once('.').unwrap_or(("", operator));
    let inputs: Vec<Option<Value>> = inputs.into_iter().collect();
    let place = |k: usize| format!("x{k}");
    let given = |k: usize| if inputs[k].is_some() { place(k) } else { String::new() };
    let outputs: Vec<String> = (0..outputs).map(|k| format!("y{k}")).collect();
    let node = NodeProto {
        op_type: Some(op_type.into()),
        domain: Some(domain.into()),
        input: (0..inputs.len()).map(given).collect(),
        output: outputs.clone(),
        attribute: attributes.into_iter().collect(),
        ..Default::default()
    };
    let inputs: Vec<(String, Value)> =
        inputs.into_iter().enumerate().filter_map(|(k, value)| Some((place(k), value?))).collect();
    let graph = GraphProto {
        name: Some("graph".into()),
        node: vec![node],
        input: inputs.iter().map(|(name, value)| info(name, value.value_type().as_ref())).collect(),
        output: outputs.iter().map(|name| info(name, None)).collect(),
        ..Default::default()
    };
    let import = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    let mut opset_import = vec![import(domain, opset)];
    if !domain.is_empty() {
        opset_import.push(import("", 21));
    }
    let model = ModelProto { ir_version: Some(13), opset_import, graph: Some(graph), ..Default::default() };
    let model = Model::options().threads(1).from_bytes(model.encode_to_vec());
    Case { model: model.unwrap_or_else(|error| panic!("{name}: {error}")), name, operator, inputs }
}

fn info(name: &str, value_type: Option<&ValueType>) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), r#type: value_type.map(type_of), ..Default::default() }
}

fn type_of(value_type: &ValueType) -> TypeProto {
    let value = match value_type {
        ValueType::Tensor(dtype) => {
            type_proto::Value::TensorType(type_proto::Tensor { elem_type: Some(dtype.code()), shape: None })
        }
        ValueType::Sequence(element) => type_proto::Value::SequenceType(Box::new(type_proto::Sequence {
            elem_type: Some(Box::new(type_of(element))),
        })),
        ValueType::Map(key, value) => type_proto::Value::MapType(Box::new(type_proto::Map {
            key_type: Some(key.code()),
            value_type: Some(Box::new(type_of(value))),
        })),
        other => panic!("an input of type {other}"),
    };
    TypeProto { value: Some(value), denotation: None }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind.into()), ..Default::default() }
}

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, AttributeType::Int) }
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::Ints) }
}

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, AttributeType::Float) }
}

fn string(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.to_string().into()), ..attribute(name, AttributeType::String) }
}

fn floats(name: &str, values: &[f32]) -> AttributeProto {
    AttributeProto { floats: values.to_vec(), ..attribute(name, AttributeType::Floats) }
}

fn texts(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|value| value.to_string().into()).collect();
    AttributeProto { strings, ..attribute(name, AttributeType::Strings) }
}

/// A subgraph that returns some of its inputs, through Identity.
fn body(name: &str, inputs: &[(&str, Option<DType>)], outputs: &[&str]) -> AttributeProto {
    let node = |(k, from): (usize, &&str)| NodeProto {
        op_type: Some("Identity".into()),
        input: vec![from.to_string()],
        output: vec![format!("y{k}")],
        ..Default::default()
    };
    let graph = GraphProto {
        name: Some("body".into()),
        node: outputs.iter().enumerate().map(node).collect(),
        input: inputs.iter().map(|(name, dtype)| info(name, dtype.map(ValueType::Tensor).as_ref())).collect(),
        output: (0..outputs.len()).map(|k| info(&format!("y{k}"), None)).collect(),
        ..Default::default()
    };
    AttributeProto { g: Some(Box::new(graph)), ..attribute(name, AttributeType::Graph) }
}

/// A tensor of equal elements.
fn of<T: Element + Clone>(shape: &[usize], element: T) -> Option<Value> {
    Some(Tensor::from_elements(shape, vec![element; shape.iter().product()]).unwrap().into())
}

/// A list.
fn list<T: Element>(elements: impl IntoIterator<Item = T>) -> Option<Value> {
    Some(elements.into_iter().collect::<Vec<T>>().into())
}

fn scalar<T: Element>(element: T) -> Option<Value> {
    Some(Tensor::scalar(element).into())
}

fn strings(shape: &[usize], string: &str) -> Option<Value> {
    Some(Tensor::from_strings(shape, (0..shape.iter().product()).map(|_| string)).unwrap().into())
}

/// A tensor of another type, from its bytes.
fn bytes(dtype: DType, shape: &[usize], byte: u8) -> Option<Value> {
    Some(Tensor::new(dtype, shape, vec![byte; shape.iter().product::<usize>() * dtype.size()]).unwrap().into())
}

fn sequence(count: usize, element: Option<Value>) -> Option<Value> {
    let element = element.unwrap();
    let of = element.value_type().unwrap();
    Some(Sequence::new(of, (0..count).map(|_| element.clone())).unwrap().into())
}

/// A map of the integers from 0 on.
fn map(count: usize, element: Option<Value>) -> Option<Value> {
    let keys: Tensor = (0..count as i64).collect::<Vec<i64>>().into();
    let values = sequence(count, element)?.sequence().unwrap().clone();
    Some(Map::new(keys, values).unwrap().into())
}

impl Case {
    /// How it can't be stopped.
    fn fault(&self) -> Option<String> {
        let (ran, gaps) = self.run(usize::MAX);
        let outputs = ran.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let read: u64 = self.inputs.iter().map(|(_, value)| size(value)).sum();
        let written: u64 = outputs.iter().map(|(_, value)| size(value)).sum();
        let (work, looks) = (read + written + self.model.charged() / STEPS, gaps.len() - 1);
        drop(outputs);
        assert!(work >= 2 * BOUND, "{}: {work} bytes are too few to see", self.name);
        // The first look is before the node.
        if (looks as u64 - 1) * BOUND < work {
            return Some(format!("looks {looks} times in {work} bytes"));
        }
        let last = looks / 2;
        match self.run(last) {
            (Err(error), stopped) if error.kind() == Kind::Cancelled && stopped.len() - 1 == last => {
                self.blind_part(gaps)
            }
            (ran, stopped) => {
                Some(format!("told to stop at look {last}, looks {} times: {:?}", stopped.len() - 1, ran.err()))
            }
        }
    }

    /// Runs the node, which is told to stop at a look. Returns also the times between looks.
    fn run(&self, last: usize) -> (Result<Outputs>, Vec<Duration>) {
        let mut times = vec![Instant::now()];
        let feeds = self.inputs.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let (ran, looks) = looks::count(last, || self.model.run_with(feeds, &Cancel::new()));
        times.extend(looks);
        times.push(Instant::now());
        (ran, times.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }

    /// A part of the run that is long and has no look. Whatever else the machine does, it doesn't slow down the same part
    /// of each run.
    fn blind_part(&self, mut gaps: Vec<Duration>) -> Option<String> {
        for _ in 0..20 {
            let sum: Duration = gaps.iter().sum();
            if gaps.iter().all(|gap| *gap * PART <= sum) {
                return None;
            }
            let (_, again) = self.run(usize::MAX);
            gaps.iter_mut().zip(again).for_each(|(gap, again)| *gap = again.min(*gap));
        }
        let (at, gap) = gaps.iter().enumerate().max_by_key(|(_, gap)| **gap)?;
        Some(format!("{gap:?} of {:?} are behind look {at} of {}", gaps.iter().sum::<Duration>(), gaps.len() - 1))
    }
}

fn size(value: &Value) -> u64 {
    match value {
        Value::Tensor(tensor) => {
            let text = tensor.strings().map(|strings| strings.map(str::len).sum()).unwrap_or(0);
            (tensor.bytes().len() + text) as u64
        }
        Value::Sequence(sequence) => sequence.values().iter().map(size).sum(),
        _ => 0,
    }
}

fn check(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for case in cases {
        match (case.fault(), LATE.contains(&case.name.as_str())) {
            (Some(fault), false) => wrong.push(format!("{}: {fault}", case.name)),
            (None, true) => wrong.push(format!("{} is in LATE, and can be stopped", case.name)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Elements of which two tensors take twice the bound.
const N: usize = 3 << 17;

/// Floats that are filled or copied, no more. So much memory the system gives, and it is clear. What is smaller malloc
/// may take from what was freed (a thread's part of it has 64 MiB): it clears that at once, without a look, and this takes
/// as long as a copy.
const HUGE: usize = 17 << 20;

fn functions() -> Vec<Case> {
    let floats = "Reciprocal Sqrt Floor Ceil Round Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh \
        LeakyRelu ThresholdedRelu HardSigmoid HardSwish Softsign Shrink Sigmoid Swish Gelu Mish Softplus Elu Selu Celu \
        Abs Neg Sign Relu Erf";
    let mut cases: Vec<Case> = floats.split(' ').map(|name| case("", name, 28, [], [of(&[N], 0.5f32)])).collect();
    cases.extend([
        case("f16", "Exp", 28, [], [of(&[2 * N], f16::ONE)]),
        case("double to bool", "IsNaN", 28, [], [of(&[N], 0.5f64)]),
        case("", "IsInf", 28, [], [of(&[2 * N], 0.5f32)]),
        case("of matrices", "Abs", 6, [], [of(&[2, N], 1i32)]),
        case("", "Clip", 28, [], [of(&[N], 0.5f32), scalar(0f32), scalar(1f32)]),
        case("attributes", "Clip", 6, [float("min", 0.0)], [of(&[N], 0.5f32)]),
        case("", "Not", 28, [], [of(&[4 * N], true)]),
        case("", "BitwiseNot", 28, [], [of(&[4 * N], 1u8)]),
        case("", "Affine", 9, [], [of(&[N], 0.5f32)]),
        case("", "Scale", 9, [], [of(&[N], 0.5f32)]),
        case("", "ScaledTanh", 9, [float("alpha", 1.0), float("beta", 1.0)], [of(&[N], 0.5f32)]),
        case("", "ParametricSoftplus", 9, [float("alpha", 1.0), float("beta", 1.0)], [of(&[N], 0.5f32)]),
        case_of("trains", "Dropout", 28, 2, [], [of(&[N], 1f32), scalar(0.5f32), scalar(true)]),
        case_of("a mask alone", "Dropout", 10, 2, [], [of(&[4 * HUGE], f16::ONE)]),
    ]);
    cases
}

fn pairs() -> Vec<Case> {
    let (column, row) = (|| of(&[N / 512, 1], 3f32), || of(&[1, 1024], 2f32));
    let mut cases = Vec::new();
    for name in "Add Sub Mul Div Mod Max Min Sum Mean PRelu SwiGLU".split(' ') {
        cases.push(match name {
            "PRelu" => case("a broadcast", name, 28, [], [of(&[N / 512, 1024], -1f32), row()]),
            "SwiGLU" => case("", name, 28, [], [of(&[N], 1f32), of(&[N], 1f32)]),
            "Mod" => case("a broadcast", name, 28, [int("fmod", 1)], [column(), row()]),
            _ => case("a broadcast", name, 28, [], [column(), row()]),
        });
    }
    for name in "Equal Greater GreaterOrEqual Less LessOrEqual".split(' ') {
        cases.push(case("of doubles", name, 28, [], [of(&[N / 2], 1f64), of(&[N / 2], 2f64)]));
    }
    for name in "And Or Xor".split(' ') {
        cases.push(case("", name, 28, [], [of(&[3 * N], true), of(&[3 * N], false)]));
    }
    for name in "BitwiseAnd BitwiseOr BitwiseXor".split(' ') {
        cases.push(case("", name, 28, [], [of(&[3 * N], 1u8), of(&[3 * N], 2u8)]));
    }
    cases.extend([
        case("", "BitShift", 28, [string("direction", "LEFT")], [of(&[N], 1u32), of(&[N], 2u32)]),
        case("along an axis", "Add", 6, [int("broadcast", 1), int("axis", 0)], [of(&[2, N], 1f32), of(&[2], 1f32)]),
        case("many tiny rows", "Add", 28, [], [of(&[N, 2], 1f32), of(&[2], 1f32)]),
        case("halves", "Mean", 28, [], [of(&[N], f16::ONE), of(&[N], f16::ONE), of(&[N], f16::ONE)]),
        case("a divisor to check", "Div", 28, [], [scalar(1i64), of(&[N], 2i64)]),
        case("a 0 to find", "Mod", 28, [], [of(&[2, N], 1i32), of(&[2, N], 2i32)]),
        case("squares", "Pow", 28, [], [of(&[N], 3f32), of(&[N], 2f32)]),
        case("of two types", "Pow", 28, [], [of(&[N / 2], 3f32), of(&[N / 2], 2.5f64)]),
        case("of integers", "Pow", 28, [], [of(&[N / 2], 3i64), of(&[N / 2], 5i64)]),
        case("tiny rows", "Where", 28, [], [of(&[N, 1], true), of(&[N, 2], 1f32), of(&[1, 2], 2f32)]),
        case("strings", "Where", 28, [], [of(&[N / 4], true), strings(&[N / 4], "ab"), strings(&[1], "c")]),
        case("short strings", "Equal", 28, [], [strings(&[N / 2], "ab"), strings(&[1], "ab")]),
        case("long strings", "Equal", 28, [], [strings(&[64], &"a".repeat(N / 8)), strings(&[1], &"a".repeat(N / 8))]),
    ]);
    cases
}

fn casts() -> Vec<Case> {
    let cast = |what: &str, to: DType, from| case(what, "Cast", 28, [int("to", to.code().into())], [from]);
    let bits = |what: &str, to: DType, from| case(what, "BitCast", 28, [int("to", to.code().into())], [from]);
    vec![
        cast("double to bool", DType::Bool, of(&[N], 1f64)),
        cast("bytes to double", DType::Double, of(&[N], 1u8)),
        cast("float to float16", DType::Float16, of(&[2 * N], 1f32)),
        cast("float to float8", DType::Float8e4m3fn, of(&[2 * N], 1f32)),
        cast("float to int4", DType::Int4, of(&[2 * N], 1f32)),
        cast("to strings", DType::String, of(&[N / 2], 1.5f32)),
        cast("float16 to strings", DType::String, of(&[N / 2], f16::from_f32(0.1))),
        cast("from strings", DType::Float, strings(&[N / 2], "1.5")),
        cast("integers from strings", DType::Int64, strings(&[N / 2], "15")),
        case("", "CastLike", 28, [], [of(&[N], 1f64), of(&[1], 1u8)]),
        bits("to bools", DType::Bool, of(&[5 * N], 1u8)),
        bits("of 4 bits", DType::Int4, bytes(DType::Uint4, &[5 * N], 9)),
    ]
}

fn picks() -> Vec<Case> {
    let axis = |axis| [int("axis", axis)];
    let alternating = |count: usize| (0..count).map(|k| k % 2 == 0).collect::<Vec<bool>>();
    vec![
        case("elements", "Gather", 28, axis(0), [of(&[9], 1u8), of(&[3 * N], 8i64)]),
        case("shared indices", "Gather", 28, axis(1), [of(&[2, 9], 1u8), of(&[N], 8i64)]),
        case("tiny rows", "Gather", 28, axis(0), [of(&[9, 3], 1u8), of(&[2 * N], -1i32)]),
        case("one huge row", "Gather", 28, axis(0), [of(&[1, HUGE], 1f32), scalar(0i64)]),
        case("nothing", "Gather", 28, axis(1), [of(&[0, 9], 1u8), of(&[4 * N], 8i64)]),
        case("of version 1", "Gather", 1, axis(0), [of(&[9], 1f32), of(&[N], 8i64)]),
        case("rows", "GatherElements", 28, axis(1), [of(&[2, 9], 1f32), of(&[2, N / 2], 8i64)]),
        case("columns", "GatherElements", 28, axis(0), [of(&[9, N / 2], 1f32), of(&[2, N / 2], 8i64)]),
        case("tiny rows", "GatherElements", 28, axis(1), [of(&[N / 2, 2], 1f32), of(&[N / 2, 2], 1i32)]),
        case("tuples", "GatherND", 28, [], [of(&[3, 3], 1f32), of(&[N / 2, 2], 1i64)]),
        case("one huge slice", "GatherND", 28, [], [of(&[1, HUGE], 1f32), of(&[1, 1], 0i64)]),
        case("nothing", "GatherND", 28, [], [of(&[9, 0], 1f32), of(&[N + N / 8, 1], 1i64)]),
        case("elements", "Compress", 28, [], [of(&[2 * N], 1f32), list(alternating(2 * N))]),
        case("a condition alone", "Compress", 28, [], [of(&[9 * N], 1u8), of(&[9 * N], false)]),
        case("columns", "Compress", 28, axis(1), [of(&[2, N], 1f32), list(alternating(N))]),
        case_of("elements", "Unique", 28, 4, [], [of(&[N / 2], 1f32)]),
        case_of("in their order", "Unique", 28, 4, [int("sorted", 0)], [of(&[N], 1u8)]),
        case_of("rows", "Unique", 28, 4, axis(0), [of(&[N / 4, 8], 1u8)]),
        case_of("huge columns", "Unique", 28, 4, axis(1), [of(&[2 * N, 2], 1f32)]),
        case_of("strings", "Unique", 28, 4, [], [strings(&[N / 4], "ab")]),
        case_of("huge strings", "Unique", 28, 4, [], [strings(&[2], &"ab".repeat(2 * N))]),
        case("all", "NonZero", 28, [], [of(&[N], 1f32)]),
        case("none in a row", "NonZero", 28, [], [of(&[3 * N], 0f32)]),
        case("tiny rows", "NonZero", 28, [], [of(&[N, 2], 0f32)]),
        case("strings", "NonZero", 28, [], [strings(&[N / 2], "")]),
        case("complex", "NonZero", 28, [], [of(&[N], Complex::new(0f32, 0f32))]),
        case("lists", "OneHot", 28, [int("axis", -1)], [of(&[N / 2], 3i64), scalar(4i64), list([0f32, 1.0])]),
        case("indices alone", "OneHot", 28, [int("axis", -1)], [of(&[N], 3i64), scalar(0i64), list([0f32, 1.0])]),
        case("one huge list", "OneHot", 28, [], [of(&[1], 3i64), scalar(HUGE as i64), list([0f32, 1.0])]),
    ]
}

#[cfg(feature = "openvino")]
fn openvino() -> Vec<Case> {
    let gather = |what: &str, batch, inputs: [Option<Value>; 3]| {
        case(what, "org.openvinotoolkit.Gather", 8, [int("batch_dims", batch)], inputs)
    };
    vec![
        gather("indices", 0, [of(&[9], 1f32), of(&[N], 8i32), scalar(0i64)]),
        gather("out of range", 0, [of(&[9], 1f32), of(&[N], 99i32), scalar(0i64)]),
        gather("batches", 1, [of(&[N / 3, 9], 1u8), of(&[N / 3, 4], 8i32), scalar(1i64)]),
    ]
}

fn scatters() -> Vec<Case> {
    let add = || [string("reduction", "add")];
    vec![
        case("tuples", "ScatterND", 28, [], [of(&[3, 3], 1f32), of(&[N / 2, 2], 1i64), of(&[N / 2], 2f32)]),
        case("a huge slice", "ScatterND", 28, add(), [of(&[1, N], 1f32), of(&[1, 1], 0i64), of(&[1, N], 2f32)]),
        case("empty tuples", "ScatterND", 28, [], [of(&[3], 1f32), of(&[N, 0], 0i64), of(&[N, 3], 2f32)]),
        case("nothing", "ScatterND", 28, [], [of(&[3, 0], 1f32), of(&[N + N / 8, 1], 1i64), of(&[N + N / 8, 0], 2f32)]),
        case("strings", "ScatterND", 28, [], [strings(&[N / 4], "ab"), of(&[1, 1], 1i64), strings(&[1], "c")]),
        case("long", "TensorScatter", 28, [], [of(&[2, N / 2, 1], 1f32), of(&[2, N / 2, 1], 2f32)]),
        case("huge entries", "TensorScatter", 28, [], [of(&[1, 2, HUGE / 2], 1f32), of(&[1, 1, HUGE / 2], 2f32)]),
        case("rows", "ScatterElements", 28, add(), [of(&[N], f16::ONE), of(&[N], 1i64), of(&[N], f16::ONE)]),
        case(
            "tiny rows",
            "ScatterElements",
            28,
            [int("axis", 1)],
            [of(&[N, 1], 1f32), of(&[N, 1], 0i64), of(&[N, 1], 1f32)],
        ),
        case("data alone", "ScatterElements", 28, [], [of(&[HUGE], 1f32), of(&[1], 0i64), of(&[1], 1f32)]),
        case("", "Scatter", 9, [], [of(&[N / 2], 1f32), of(&[N / 2], 1i64), of(&[N / 2], 1f32)]),
    ]
}

fn images_of_old_releases() -> Vec<Case> {
    let image = || of(&[1, 2, N / 64, 64], 1f32);
    vec![
        case("", "ImageScaler", 9, [floats("bias", &[1.0, 2.0])], [image()]),
        case("", "Crop", 9, [ints("border", &[1, 1, 1, 1])], [image()]),
        case("", "DynamicSlice", 9, [], [of(&[2, HUGE], 1f32), list([0i64]), list([1i64])]),
    ]
}

fn layouts() -> Vec<Case> {
    let perm = |what: &str, order: &[i64], data| case(what, "Transpose", 28, [ints("perm", order)], [data]);
    let slice = |what: &str, data, lists: [i64; 4]| {
        case(what, "Slice", 28, [], [data].into_iter().chain(lists.map(|value| list([value]))))
    };
    let pad =
        |mode: &str, data, pads: &[i64]| case(mode, "Pad", 28, [string("mode", mode)], [data, list(pads.to_vec())]);
    let blocks = |operator, data| case("", operator, 28, [int("blocksize", 2)], [data]);
    let matrix = |rows, columns| of(&[rows, columns], 1f32);
    let mut cases = vec![
        case("", "ConstantOfShape", 28, [], [list([HUGE as i64])]),
        case("", "Range", 28, [], [scalar(0i64), scalar(N as i64 + 99), scalar(1i64)]),
        case("halves", "Range", 28, [], [scalar(f16::ONE), scalar(f16::MAX), scalar(f16::from_f32(0.0145))]),
        case("", "Concat", 28, [int("axis", 0)], [of(&[HUGE / 2], 1f32), of(&[HUGE / 2], 1f32)]),
        case("short rows", "Concat", 28, [int("axis", 1)], [matrix(N / 2, 2), matrix(N / 2, 1)]),
        case("many inputs", "Concat", 28, [int("axis", 0)], (0..4096).map(|_| of(&[300], 1f32))),
        case("strings", "Concat", 28, [int("axis", 0)], [strings(&[N / 4], "ab"), strings(&[9], "c")]),
        case_of("rows", "Split", 18, 2, [int("num_outputs", 2)], [of(&[2 * HUGE], 1f32)]),
        case_of("columns", "Split", 18, 2, [int("num_outputs", 2), int("axis", 1)], [matrix(N / 2, 2)]),
        case_of("many outputs", "Split", 18, 4096, [int("num_outputs", 4096)], [of(&[N], 1f32)]),
        perm("a matrix", &[1, 0], matrix(1024, 1024)),
        perm("two rows", &[1, 0], of(&[2, 2 * N], 1u8)),
        perm("two columns", &[1, 0], of(&[2 * N, 2], 1u8)),
        perm("rank 5", &[4, 2, 0, 3, 1], of(&[16, 16, 16, 16, 16], 1f32)),
        perm("tiny matrices", &[0, 2, 4, 1, 3], of(&[N / 16, 2, 2, 2, 2], 1f32)),
        perm("the last axis stays", &[1, 0, 2], of(&[1024, 256, 3], 1f32)),
        slice("backward", of(&[N], 1f32), [-1, i64::MIN, 0, -1]),
        slice("steps", of(&[3, N], 1f32), [0, i64::MAX, 1, 2]),
        slice("tiny rows", matrix(N / 2, 3), [0, 2, 1, 1]),
        case("a column", "Expand", 28, [], [matrix(N / 512, 1), list([N as i64 / 512, 1025])]),
        case("an element", "Expand", 28, [], [of(&[1], 1u8), list([9 * N as i64])]),
        case("tiny rows", "Tile", 28, [], [of(&[N / 2, 2], 1u8), list([1i64, 8])]),
        case("one row", "Tile", 28, [], [of(&[HUGE / 8], 1f32), list([8i64])]),
        pad("constant", of(&[HUGE], 1f32), &[9, 9]),
        pad("edge", of(&[3], 1f32), &[N as i64, N as i64]),
        pad("reflect", matrix(N / 4, 3), &[0, 1, 0, 1]),
        pad("wrap", matrix(N / 4, 3), &[0, 2, 0, 2]),
        blocks("DepthToSpace", of(&[1, 8, N / 16, 2], 1f32)),
        blocks("SpaceToDepth", of(&[1, 2, N / 8, 4], 1f32)),
        case("halves", "CenterCropPad", 28, [], [matrix(N / 2, 3), list([N as i64 / 2, 2])]),
        case("around", "CenterCropPad", 28, [], [matrix(N / 4, 2), list([N as i64 / 2, 3])]),
        case("tiny rows", "ReverseSequence", 28, [], [matrix(2, N / 2), of(&[N / 2], 2i64)]),
        case("huge rows", "ReverseSequence", 28, [], [of(&[2, 2, HUGE / 4], 1f32), of(&[2], 2i64)]),
        case(
            "a batch",
            "ReverseSequence",
            28,
            [int("batch_axis", 0), int("time_axis", 1)],
            [matrix(1, N), of(&[1], 2i64)],
        ),
    ];
    for (what, rows, columns) in [("a matrix", 1024, 1025), ("two rows", 2, HUGE / 2), ("two columns", N / 2 + 9, 2)] {
        cases.push(case(what, "EyeLike", 28, [], [matrix(rows, columns)]));
        cases.push(case(what, "Trilu", 28, [], [matrix(rows, columns)]));
    }
    cases
}

fn sequences() -> Vec<Case> {
    let join = |what: &str, new: i64, value| {
        case(what, "ConcatFromSequence", 28, [int("axis", 0), int("new_axis", new)], [value])
    };
    vec![
        join("two", 0, sequence(2, of(&[HUGE / 2], 1f32))),
        join("many", 1, sequence(1 << 15, of(&[33], 1f32))),
        case("many", "SplitToSequence", 28, [], [of(&[1 << 15, 33], 1f32)]),
        case("two", "SplitToSequence", 28, [], [of(&[2 * HUGE], 1f32), list([HUGE as i64; 2])]),
        case("a list", "SplitToSequence", 28, [], [of(&[1 << 15, 33], 1f32), of(&[1 << 15], 1i64)]),
        case(
            "",
            "SequenceMap",
            28,
            [body("body", &[("x", Some(DType::Float))], &["x"])],
            [sequence(1 << 13, of(&[65], 1f32))],
        ),
    ]
}

fn loops() -> Vec<Case> {
    let float = Some(DType::Float);
    let trips =
        || body("body", &[("i", Some(DType::Int64)), ("cond", Some(DType::Bool)), ("v", float)], &["cond", "v", "v"]);
    let outer = |count: i64| [scalar(count), None];
    let scan = |what: &str, attributes: Vec<AttributeProto>, data| {
        let attributes =
            [body("body", &[("x", float)], &["x"]), int("num_scan_inputs", 1)].into_iter().chain(attributes);
        case(what, "Scan", 28, attributes, [data])
    };
    vec![
        case_of("large parts", "Loop", 28, 2, [trips()], outer(4).into_iter().chain([of(&[N / 2], 1f32)])),
        case_of("many trips", "Loop", 28, 2, [trips()], outer(1 << 13).into_iter().chain([of(&[128], 1f32)])),
        scan("large entries", vec![], of(&[2, N / 2], 1f32)),
        scan("tiny entries", vec![], of(&[1 << 13, 65], 1f32)),
        scan("columns", vec![ints("scan_input_axes", &[1]), ints("scan_output_axes", &[1])], of(&[N / 4, 4], 1f32)),
        case(
            "zeros",
            "Scan",
            8,
            [body("body", &[("x", float)], &["x"]), int("num_scan_inputs", 1)],
            [of(&[1], 1i64), of(&[1, 4, N / 4], 1f32)],
        ),
    ]
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    let names = "ReduceSum ReduceMax ReduceLogSumExp ReduceMean ReduceMin ReduceProd ReduceSumSquare ReduceL1 ReduceL2 \
        ReduceLogSum";
    for (k, name) in names.split(' ').enumerate() {
        cases.push(case("one huge lane", name, 28, [], [of(&[2 * N + 99], 1f32)]));
        if k > 2 {
            // They differ in their formula alone.
            continue;
        }
        cases.push(case("tiny lanes", name, 28, [], [of(&[N / 4, 8], 1f32), list([1i64])]));
        cases.push(case("columns", name, 28, [], [of(&[2, N], 1f32), list([0i64])]));
        cases.push(case("one column", name, 28, [], [of(&[N, 2], 1f32), list([0i64])]));
        cases.push(case("halves", name, 28, [], [of(&[4 * N + 99], f16::ONE)]));
    }
    for name in ["ArgMax", "ArgMin"] {
        cases.push(case("one huge lane", name, 28, [], [of(&[2 * N + 99], 1f32)]));
        cases.push(case("tiny lanes", name, 28, [int("axis", 1)], [of(&[N / 4, 8], 1f32)]));
        cases.push(case("columns", name, 28, [], [of(&[2, N / 2], 1f32)]));
        cases.push(case("halves", name, 28, [], [of(&[4 * N + 99], f16::ONE)]));
    }
    let top = |what: &str, shape: &[usize], axis, count: i64| {
        case_of(what, "TopK", 28, 2, [int("axis", axis)], [of(shape, 1f32), list([count])])
    };
    cases.push(top("one huge lane", &[2 * N + 99], 0, 5));
    cases.push(top("many of one lane", &[N], 0, N as i64 / 2));
    cases.push(top("tiny lanes", &[N / 4, 8], 1, 2));
    cases.push(top("columns", &[2, N / 2], 0, 1));
    for name in ["CumSum", "CumProd"] {
        cases.push(case("one huge lane", name, 28, [], [of(&[N], 1f32), scalar(0i64)]));
        cases.push(case("tiny lanes", name, 28, [], [of(&[N / 8, 8], 1f32), scalar(1i64)]));
        cases.push(case("columns", name, 28, [], [of(&[2, N / 2], 1f32), scalar(0i64)]));
        cases.push(case("halves", name, 28, [], [of(&[2 * N], f16::ONE), scalar(0i64)]));
    }
    cases
}

fn normalizations() -> Vec<Case> {
    let mut cases = Vec::new();
    for name in ["Softmax", "LogSoftmax", "Hardmax", "LpNormalization"] {
        cases.push(case("one huge lane", name, 28, [], [of(&[N], 1f32)]));
        cases.push(case("tiny lanes", name, 28, [], [of(&[N / 8, 8], 1f32)]));
        cases.push(case("columns", name, 28, [int("axis", 0)], [of(&[2, N / 2], 1f32)]));
        cases.push(case("one column", name, 28, [int("axis", 0)], [of(&[N / 2, 2], 1f32)]));
        cases.push(case("halves", name, 28, [], [of(&[2 * N], f16::ONE)]));
    }
    cases.push(case("from an axis on", "Softmax", 11, [], [of(&[8, 8, N / 64], 1f32)]));
    for name in ["LayerNormalization", "RMSNormalization"] {
        let both = |shape: &[usize], size| [of(shape, 1f32), of(&[size], 1f32)];
        cases.push(case("one huge lane", name, 28, [], both(&[N], N)));
        cases.push(case("tiny lanes", name, 28, [], both(&[N / 8, 8], 8)));
        cases.push(case("halves", name, 28, [], [of(&[2 * N], bf16::ONE), of(&[2 * N], bf16::ONE)]));
    }
    let channels = |shape: &[usize], c| [of(shape, 1f32), of(&[c], 1f32), of(&[c], 1f32)];
    for (what, shape) in [("huge lanes", [1, 2, N / 2]), ("tiny lanes", [N / 16, 2, 8]), ("one element", [1, N / 2, 2])]
    {
        cases.push(case(what, "InstanceNormalization", 28, [], channels(&shape, shape[1])));
        cases.push(case(what, "GroupNormalization", 28, [int("num_groups", 2)], channels(&shape, shape[1])));
    }
    let batch = |what: &str, shape: &[usize], training| {
        let numbers = || of(&[shape[1]], 1f32);
        let inputs = [of(shape, 1f32), numbers(), numbers(), numbers(), numbers()];
        case_of(
            what,
            "BatchNormalization",
            28,
            if training == 1 { 3 } else { 1 },
            [int("training_mode", training)],
            inputs,
        )
    };
    let (huge, tiny) = (("huge lanes", [1, 2, N / 2]), ("tiny lanes", [N / 16, 2, 8]));
    for (what, shape) in [huge, tiny, ("one element", [1, N / 2, 1])] {
        cases.push(batch(what, &shape, 0));
        cases.push(batch(&format!("{what} in training"), &shape, 1));
    }
    for (what, shape) in [huge, tiny, ("one element", [1, N, 1])] {
        cases.push(case(what, "LRN", 28, [int("size", 3)], [of(&shape, 1f32)]));
    }
    cases.push(case("many channels", "LRN", 28, [int("size", 1 << 20)], [of(&[1, 1 << 11, 4], 1f32)]));
    cases.push(case("images", "MeanVarianceNormalization", 28, [], [of(&[2, 4, N / 64, 8], 1f32)]));
    cases
}

fn losses() -> Vec<Case> {
    let each = || [string("reduction", "none")];
    let likelihood = |what: &str, how, inputs: [Option<Value>; 2]| {
        case(what, "NegativeLogLikelihoodLoss", 22, [string("reduction", how)], inputs)
    };
    vec![
        likelihood("the mean", "mean", [of(&[N, 2], 1f32), of(&[N], 1i64)]),
        likelihood("the sum", "sum", [of(&[N, 2], f16::ONE), of(&[N], 1i64)]),
        likelihood("each of one sample", "none", [of(&[1, 2, N], 1f32), of(&[1, N], 1i32)]),
        case_of("tiny lanes", "SoftmaxCrossEntropyLoss", 13, 2, [], [of(&[N / 8, 8], 1f32), of(&[N / 8], 1i64)]),
        case_of("columns", "SoftmaxCrossEntropyLoss", 13, 2, each(), [of(&[1, 2, N / 2], 1f32), of(&[1, N / 2], 1i64)]),
        case("a huge lane", "SoftmaxCrossEntropyLoss", 13, [], [of(&[1, 2 * N], 1f32), of(&[1], 1i64)]),
    ]
}

fn trainings() -> Vec<Case> {
    let of_one = |operator, states: usize, attributes: Vec<AttributeProto>| {
        let inputs = [scalar(1f32), scalar(1i64)].into_iter().chain((0..states + 2).map(|_| of(&[N / 2], 1f32)));
        case_of("one tensor", operator, 1, states + 1, attributes, inputs)
    };
    let (adam, adagrad) = ("ai.onnx.preview.training.Adam", "ai.onnx.preview.training.Adagrad");
    let momentum = ["alpha", "beta", "norm_coefficient"].map(|name| float(name, 0.5)).into_iter();
    let momentum = momentum.chain([string("mode", "nesterov")]).collect();
    vec![of_one(adagrad, 1, vec![]), of_one(adam, 2, vec![]), of_one("ai.onnx.preview.training.Momentum", 1, momentum)]
}

fn pools() -> Vec<Case> {
    let (mut cases, kernel) = (Vec::new(), |sizes: &[i64]| ints("kernel_shape", sizes));
    for (name, outputs) in [("AveragePool", 1), ("MaxPool", 2), ("LpPool", 1)] {
        let pool = |what: &str, shape: &[usize], sizes: &[i64]| {
            case_of(what, name, 28, outputs, [kernel(sizes)], [of(shape, 1f32)])
        };
        cases.push(pool("one huge row", &[1, 1, N], &[3]));
        cases.push(pool("images", &[2, 2, N / 256, 64], &[2, 2]));
        cases.push(pool("tiny images", &[N / 2, 1, 4], &[2]));
        cases.push(pool("many taps", &[1, 1, 1 << 13], &[1 << 11]));
        cases.push(pool("many lines", &[1, 1, 1 << 12, 4], &[1 << 10, 1]));
        cases.push(case_of("halves", name, 28, outputs, [kernel(&[2])], [of(&[1, 1, 2 * N], bf16::ONE)]));
    }
    cases.push(case("values alone", "MaxPool", 28, [kernel(&[2, 2])], [of(&[2, 2, N / 256, 64], 1f32)]));
    for name in ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"] {
        cases.push(case("one huge image", name, 28, [], [of(&[1, 1, 2 * N + 99], 1f32)]));
        cases.push(case("tiny images", name, 28, [], [of(&[N / 4, 1, 8], 1f32)]));
    }
    cases.push(case("", "MaxUnpool", 28, [kernel(&[1])], [of(&[1, 1, N], 1f32), of(&[1, 1, N], 0i64)]));
    let x = || of(&[1, 1, 64, 64], 1f32);
    let rois = |count, width| of(&[count, width], 0f32);
    cases.push(case("many regions", "RoiAlign", 28, [], [of(&[1, 8, 4, 4], 1f32), rois(N / 4, 4), of(&[N / 4], 0i64)]));
    let samples = [int("sampling_ratio", 1 << 10), string("mode", "max")];
    cases.push(case("many samples", "RoiAlign", 28, samples, [x(), rois(13, 4), of(&[13], 0i64)]));
    let cells = |height, width| [ints("pooled_shape", &[height, width])];
    cases.push(case("many regions", "MaxRoiPool", 28, cells(2, 2), [of(&[1, 8, 4, 4], 1f32), rois(N / 16, 5)]));
    let roi = Some(Tensor::from_elements(&[1, 5], vec![0f32, 0.0, 0.0, 1e9, 1e9]).unwrap().into());
    cases.push(case("a large region", "MaxRoiPool", 28, cells(1, 1), [of(&[1, 1, N / 512, 1024], 1f32), roi]));
    cases
}

#[cfg(feature = "image")]
fn boxes() -> Vec<Case> {
    let suppress = |what: &str, count, most: i64| {
        let inputs = [of(&[1, count, 4], 0f32), of(&[1, 1, count], 1f32), scalar(most)];
        case(what, "NonMaxSuppression", 28, [], inputs)
    };
    let classes = [of(&[1, 1, 4], 0f32), of(&[1, N / 2, 1], 1f32), scalar(1i64)];
    vec![
        suppress("many boxes", N / 2, 10),
        suppress("many that are selected", 5200, 1 << 20),
        case("many classes", "NonMaxSuppression", 28, [], classes),
    ]
}

#[cfg(feature = "image")]
fn pictures() -> Vec<Case> {
    let decode = |what: &str, format: &str, head: &[u8], zeros: usize| {
        let stream = [head, &vec![0; zeros]].concat();
        case(what, "ImageDecoder", 28, [string("pixel_format", format)], [Some(Tensor::from(stream).into())])
    };
    // Blocks of one gray: each is two codes of a bit, and a segment of codes has one of 0.
    let codes = |kind| [&[0xFF, 0xC4, 0, 20, kind, 1][..], &[0; 16]].concat();
    let steps = [&[0xFF, 0xDB, 0, 67, 0][..], &[1; 64]].concat();
    let frame = [0xFF, 0xC0, 0, 11, 8, 8, 0, 8, 0, 1, 1, 0x11, 0, 0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0];
    let blocks = [&[0xFF, 0xD8], &steps[..], &codes(0), &codes(0x10), &frame].concat();
    let mut jpeg = decode("blocks", "RGB", &blocks, 2048 * 2048 / 64 / 4);
    let Value::Tensor(stream) = &jpeg.inputs[0].1 else { panic!("a stream is a tensor") };
    let ended = [stream.as_slice::<u8>().unwrap(), &[0xFF, 0xD9]].concat();
    jpeg.inputs[0].1 = Tensor::from(ended).into();
    // A strip that ends the file.
    let mut tags = b"II\x2A\0\x08\0\0\0\x05\0".to_vec();
    for (tag, value) in [(256u16, 2048u32), (257, 2048), (258, 8), (262, 1), (273, 70)] {
        tags.extend([&tag.to_le_bytes()[..], &[4, 0, 1, 0, 0, 0], &value.to_le_bytes()].concat());
    }
    vec![
        decode("bytes", "RGB", b"P6 2048 1024 255 ", 3 << 21),
        decode("blue first", "BGR", b"P6 2048 1024 255 ", 3 << 21),
        decode("grays", "Grayscale", b"P5 2048 2048 65535 ", 1 << 23),
        decode("bits", "RGB", b"P4 2048 2048 ", 1 << 19),
        decode("no picture", "RGB", b"\xFF\xD8\xFF", 3 << 21),
        decode("a strip", "RGB", &tags, 1 << 22),
        jpeg,
    ]
}

fn products() -> Vec<Case> {
    let of_two = |what: &str, operator, a, b| case(what, operator, 28, [], [a, b]);
    let matrix = |rows, columns| of(&[rows, columns], 1f32);
    vec![
        of_two("squares", "MatMul", matrix(384, 384), matrix(384, 384)),
        of_two("a row", "MatMul", matrix(1, 1024), matrix(1024, 2048)),
        of_two("a column", "MatMul", matrix(2048, 1024), matrix(1024, 1)),
        of_two("a long sum", "MatMul", matrix(1, N), matrix(N, 1)),
        of_two("a large output", "MatMul", matrix(N / 256, 1), matrix(1, 512)),
        of_two("many tiny", "MatMul", of(&[N / 4, 2, 2], 1f32), of(&[N / 4, 2, 2], 1f32)),
        case("a product", "Einsum", 28, [string("equation", "ij,kj->ki")], [matrix(320, 320), matrix(320, 320)]),
        case("a sum of columns", "Einsum", 28, [string("equation", "ij->j")], [matrix(N / 16, 64)]),
        case("elementwise", "Einsum", 28, [string("equation", "i,i->i")], [of(&[2 * N], 1i32), of(&[2 * N], 1i32)]),
        case("a large one", "Det", 28, [], [matrix(384, 384)]),
        case("many tiny", "Det", 28, [], [of(&[N / 2, 2, 2], 1f32)]),
        of_two("integers", "MatMul", of(&[320, 320], 1i32), of(&[320, 320], 1i32)),
        of_two("squares", "Gemm", matrix(384, 384), matrix(384, 384)),
        case(
            "transposed",
            "Gemm",
            28,
            [int("transA", 1), int("transB", 1)],
            [matrix(384, 384), matrix(384, 384), matrix(1, 384)],
        ),
        case(
            "a large addend",
            "Gemm",
            28,
            [float("beta", 2.0)],
            [matrix(1024, 1), matrix(1, 1024), matrix(1024, 1024)],
        ),
    ]
}

fn convolutions() -> Vec<Case> {
    let image = |channels, size| of(&[1, channels, size, size], 1f32);
    let filters = |count, channels, size| of(&[count, channels, size, size], 1f32);
    vec![
        case("images", "Conv", 22, [], [image(16, 64), filters(32, 16, 3)]),
        case("plain products", "Conv", 22, [], [image(256, 32), filters(256, 256, 1)]),
        case("strides", "Conv", 22, [ints("strides", &[2, 2])], [image(16, 128), filters(32, 16, 3)]),
        case("each channel alone", "Conv", 22, [int("group", 32)], [image(32, 128), filters(32, 1, 3)]),
        case("one huge window", "Conv", 22, [], [of(&[1, 1, N], 1f32), of(&[1, 1, N - 1], 1f32)]),
        case("images", "ConvInteger", 10, [], [of(&[1, 64, 64, 64], 1u8), of(&[32, 64, 3, 3], 1i8)]),
        case(
            "each channel alone",
            "ConvInteger",
            10,
            [int("group", 32)],
            [of(&[1, 32, 128, 128], 1u8), of(&[32, 1, 3, 3], 1i8)],
        ),
        case("one huge window", "ConvInteger", 10, [], [of(&[1, 1, 4 * N], 1u8), of(&[1, 1, 4 * N - 1], 1i8)]),
        case(
            "images",
            "QLinearConv",
            10,
            [],
            [
                of(&[1, 16, 64, 64], 1u8),
                scalar(1f32),
                scalar(1u8),
                of(&[32, 16, 3, 3], 1i8),
                scalar(1f32),
                scalar(1i8),
                scalar(1f32),
                scalar(1u8),
            ],
        ),
        case("images", "ConvTranspose", 22, [], [image(12, 64), filters(12, 32, 3)]),
        case("each channel alone", "ConvTranspose", 22, [int("group", 32)], [image(32, 96), filters(32, 1, 3)]),
        case("one huge window", "ConvTranspose", 22, [], [of(&[1, 1, 1], 1f32), of(&[1, 1, N], 1f32)]),
        case(
            "many empty taps",
            "ConvTranspose",
            22,
            [ints("strides", &[4096])],
            [of(&[1, 1, 256], 1f32), of(&[1, 1, 256], 1f32)],
        ),
        case(
            "images",
            "DeformConv",
            22,
            [],
            [image(1, 192), filters(1, 1, 3), of(&[1, 18, 190, 190], 0.5f32), None, of(&[1, 9, 190, 190], 1f32)],
        ),
        case("an image", "Col2Im", 18, [], [of(&[1, 9, 298 * 298], 1f32), list([300i64, 300]), list([3i64, 3])]),
        case("bytes", "Col2Im", 18, [], [of(&[1, 2, 4 * N - 1], 1u8), list([4 * N as i64]), list([2i64])]),
        case("many images", "Conv", 22, [], [of(&[N / 16, 1, 64], 1f32), of(&[1, 1, 2], 1f32)]),
        case("padding alone", "Conv", 22, [ints("pads", &[N as i64, 0])], [of(&[1, 1, 1], 1f32), of(&[4, 1, 1], 1f32)]),
    ]
}

fn quantized() -> Vec<Case> {
    let scales = |shape: &[usize]| of(shape, 2f32);
    let by = |what: &str, operator, x: Option<Value>, shape: &[usize]| {
        case(
            what,
            operator,
            28,
            [int("axis", 1), int("block_size", if shape.len() > 1 { 2 } else { 0 })],
            [x, scales(shape)],
        )
    };
    let mut cases = Vec::new();
    for (what, x, scales) in [
        ("one scale", vec![3 * N], vec![]),
        ("a scale for each channel", vec![3, 8, N / 8], vec![8]),
        ("a scale for each column", vec![3 * N / 8, 8], vec![8]),
        ("blocks", vec![6, N / 64, 32], vec![6, N / 128, 32]),
    ] {
        cases.push(by(what, "QuantizeLinear", of(&x, 1f32), &scales));
        cases.push(by(what, "DequantizeLinear", of(&x, 1i8), &scales));
    }
    let (square, zero, scale) = (|| of(&[384, 384], 1u8), || scalar(1u8), || scalar(1f32));
    let float8 = || bytes(DType::Float8e4m3fn, &[320, 320], 0x38);
    let float = || bytes(DType::Float8e4m3fn, &[], 0x38);
    cases.extend([
        case("zero points to check", "DequantizeLinear", 13, [], [of(&[1, N], 1i32), of(&[N], 1f32), of(&[N], 0i32)]),
        case_of("", "DynamicQuantizeLinear", 28, 3, [], [of(&[2 * N], 1f32)]),
        case("", "MatMulInteger", 28, [], [square(), square(), zero(), zero()]),
        case("a row", "MatMulInteger", 28, [], [of(&[1, 2048], 1i8), of(&[2048, 2048], 1i8)]),
        case("", "QLinearMatMul", 28, [], [square(), scale(), zero(), square(), scale(), zero(), scale(), zero()]),
        case(
            "of float8",
            "QLinearMatMul",
            28,
            [],
            [float8(), scale(), float(), float8(), scale(), float(), scale(), float()],
        ),
    ]);
    cases
}

fn recurrent() -> Vec<Case> {
    let x = |steps, batch, size| of(&[steps, batch, size], 1f32);
    let layer = |what: &str, operator, gates: usize, [steps, batch, size, hidden]: [usize; 4]| {
        let weights = |size| of(&[1, gates * hidden, size], 1f32);
        case_of(what, operator, 22, 2, [], [x(steps, batch, size), weights(size), weights(hidden)])
    };
    let mut cases = Vec::new();
    for (operator, gates, hidden) in [("RNN", 1, 1024), ("GRU", 3, 600), ("LSTM", 4, 512)] {
        cases.push(layer("many steps", operator, gates, [N / 256 / gates, 1, 64, 64]));
        cases.push(layer("a large batch", operator, gates, [2, N / 32, 4, 16]));
        cases.push(layer("large states", operator, gates, [2, 1, 4, hidden]));
    }
    let weights = || of(&[1, 1, 1], 1f32);
    let lens = [x(2, N / 2, 1), weights(), weights(), None, of(&[N / 2], 1i32)];
    cases.push(case_of("lengths", "RNN", 22, 2, [], lens));
    cases
}

fn random() -> Vec<Case> {
    let shape = || [ints("shape", &[3, N as i64])];
    vec![
        case("", "RandomNormal", 22, shape(), []),
        case("", "RandomUniform", 22, shape(), []),
        case("halves", "RandomNormalLike", 22, [], [of(&[4 * N], f16::ONE)]),
        case("halves", "RandomUniformLike", 22, [], [of(&[4 * N], f16::ONE)]),
        case("", "Bernoulli", 22, [], [of(&[N], 1f32)]),
        case("many samples", "Multinomial", 22, [int("sample_size", 3 * N as i64)], [of(&[1, 8], 1f32)]),
        case("many classes", "Multinomial", 22, [], [of(&[1, 3 * N], 1f32)]),
        case("many rows", "Multinomial", 22, [], [of(&[N, 2], 1f32)]),
    ]
}

fn attentions() -> Vec<Case> {
    let heads = |shape: &[usize; 4]| of(shape, 1f32);
    let q = |shape: [usize; 4]| [heads(&shape), heads(&shape), heads(&shape)];
    let turned = |what: &str, x: &[usize; 4], half| {
        case(
            what,
            "RotaryEmbedding",
            28,
            [],
            [heads(x), of(&[1, half], 1f32), of(&[1, half], 1f32), of(&[x[0], x[2]], 0i64)],
        )
    };
    let linear = |what: &str, tokens: usize, size: usize| {
        let attributes = [string("update_rule", "linear"), int("q_num_heads", 1), int("kv_num_heads", 1)];
        let tensor = || of(&[1, tokens, size], 1f32);
        case_of(what, "LinearAttention", 28, 2, attributes, [tensor(), tensor(), tensor()])
    };
    let conv = |what: &str, shape: &[usize; 3], taps: usize| {
        case_of(what, "CausalConvWithState", 28, 2, [], [of(shape, 1f32), of(&[shape[1], 1, taps], 1f32)])
    };
    vec![
        case("", "Attention", 25, [], q([1, 1, 640, 16])),
        case("many heads", "Attention", 25, [], q([1, 2048, 8, 16])),
        case(
            "one query",
            "Attention",
            25,
            [],
            [heads(&[1, 1, 1, 16]), heads(&[1, 1, 1 << 16, 16]), heads(&[1, 1, 1 << 16, 16])],
        ),
        case_of(
            "with a past",
            "Attention",
            25,
            3,
            [],
            [
                heads(&[1, 1, 1, 16]),
                heads(&[1, 1, 1, 16]),
                heads(&[1, 1, 1, 16]),
                None,
                heads(&[1, 1, 1 << 15, 16]),
                heads(&[1, 1, 1 << 15, 16]),
            ],
        ),
        case("a mask", "Attention", 25, [], q([1, 1, 640, 16]).into_iter().chain([of(&[640, 640], true)])),
        case("", "ai.onnx.preview.FlexAttention", 1, [], q([1, 1, 640, 16])),
        case(
            "changed scores",
            "ai.onnx.preview.FlexAttention",
            1,
            [body("score_mod", &[("s", Some(DType::Float))], &["s"])],
            q([1, 1, 640, 16]),
        ),
        linear("", 2048, 64),
        linear("one token", 1, 1024),
        turned("tiny heads", &[1, 1, N / 4, 4], 2),
        turned("a huge head", &[1, 1, 1, N], N / 2),
        conv("rows", &[1, 64, 1 << 14], 3),
        conv("one huge row", &[1, 1, N], 3),
        conv("tiny rows", &[1, N / 4, 2], 3),
        conv("many taps", &[1, 1, 1 << 13], 1 << 11),
    ]
}

#[cfg(feature = "ml")]
fn learned() -> Vec<Case> {
    let ml = |what: &str, operator: &'static str, attributes: Vec<AttributeProto>, inputs: Vec<Option<Value>>| {
        let outputs = if operator.ends_with("Classifier") { 2 } else { 1 };
        case_of(what, operator, 1, outputs, attributes, inputs)
    };
    let (rows, texts_of) =
        (|columns| vec![of(&[2 * N / columns, columns], 1f32)], |count| vec![strings(&[count], "b")]);
    let leaf = |name: &str| ints(name, &[1, 2]);
    let tree = |more: Vec<AttributeProto>| {
        let nodes = [
            ints("nodes_treeids", &[0; 3]),
            ints("nodes_nodeids", &[0, 1, 2]),
            ints("nodes_featureids", &[0; 3]),
            floats("nodes_values", &[0.5; 3]),
            texts("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"]),
            ints("nodes_truenodeids", &[1, 0, 0]),
            ints("nodes_falsenodeids", &[2, 0, 0]),
        ];
        nodes.into_iter().chain(more).collect::<Vec<_>>()
    };
    let votes = |of: &str| {
        let name = |rest: &str| format!("{of}_{rest}");
        vec![
            ints(&name("treeids"), &[0; 2]),
            leaf(&name("nodeids")),
            ints(&name("ids"), &[0; 2]),
            floats(&name("weights"), &[1.0; 2]),
        ]
    };
    let held = |name: &str, dtype: DType, bytes: &[u8]| {
        let (data_type, size) = (Some(dtype.code()), dtype.size());
        let dims = vec![(bytes.len() / size) as i64];
        let tensor = TensorProto { data_type, dims, raw_data: Some(bytes.to_vec().into()), ..Default::default() };
        AttributeProto { t: Some(Box::new(tensor)), ..attribute(name, AttributeType::Tensor) }
    };
    let ensemble = [
        int("n_targets", 1),
        ints("tree_roots", &[0]),
        ints("nodes_featureids", &[0]),
        held("nodes_modes", DType::Uint8, &[0]),
        held("nodes_splits", DType::Float, &[0; 4]),
        ints("nodes_truenodeids", &[0]),
        ints("nodes_trueleafs", &[1]),
        ints("nodes_falsenodeids", &[1]),
        ints("nodes_falseleafs", &[1]),
        ints("leaf_targetids", &[0; 2]),
        held("leaf_weights", DType::Float, &[0; 8]),
    ];
    let labels = || ints("classlabels_int64s", &[5, 6]);
    let kernel = || string("kernel_type", "RBF");
    let vectors = |count: usize| floats("support_vectors", &vec![1.0; count]);
    let two = || ints("classlabels_ints", &[5, 6]);
    vec![
        ml("rows", "ai.onnx.ml.ArrayFeatureExtractor", vec![], vec![of(&[HUGE / 3, 4], 1f32), list([0i64, 2, 3])]),
        ml("", "ai.onnx.ml.Binarizer", vec![], vec![of(&[2 * N], 1f32)]),
        ml("dense", "ai.onnx.ml.CastMap", vec![], vec![map(2 * N, scalar(1f32))]),
        ml("strings", "ai.onnx.ml.CastMap", vec![string("cast_to", "TO_STRING")], vec![map(2 * N, scalar(1f32))]),
        ml(
            "",
            "ai.onnx.ml.CategoryMapper",
            vec![ints("cats_int64s", &[7]), texts("cats_strings", &["b"])],
            texts_of(N),
        ),
        ml(
            "",
            "ai.onnx.ml.DictVectorizer",
            vec![ints("int64_vocabulary", &(0..2 * N as i64).collect::<Vec<_>>())],
            vec![map(2 * N, scalar(1f32))],
        ),
        ml("rows", "ai.onnx.ml.FeatureVectorizer", vec![], vec![of(&[N, 2], 1f32), of(&[N, 1], 1f32)]),
        ml("", "ai.onnx.ml.Imputer", vec![floats("imputed_value_floats", &[1.0])], vec![of(&[2 * N], 1f32)]),
        ml("", "ai.onnx.ml.LabelEncoder", vec![texts("classes_strings", &["b"])], texts_of(N)),
        ml("", "ai.onnx.ml.LinearClassifier", vec![floats("coefficients", &[1.0; 8]), two()], rows(4)),
        ml("", "ai.onnx.ml.LinearRegressor", vec![floats("coefficients", &[1.0; 4])], rows(4)),
        ml("tiny rows", "ai.onnx.ml.Normalizer", vec![], rows(4)),
        ml("huge rows", "ai.onnx.ml.Normalizer", vec![string("norm", "L2")], rows(N)),
        ml("", "ai.onnx.ml.OneHotEncoder", vec![ints("cats_int64s", &[1, 2])], vec![of(&[2 * N], 1i64)]),
        ml("", "ai.onnx.ml.Scaler", vec![], rows(4)),
        ml(
            "",
            "ai.onnx.ml.SVMRegressor",
            vec![int("n_supports", 64), vectors(256), floats("coefficients", &[1.0; 64]), kernel()],
            vec![of(&[3 << 14, 4], 1f32)],
        ),
        ml(
            "",
            "ai.onnx.ml.SVMClassifier",
            vec![
                two(),
                ints("vectors_per_class", &[32, 32]),
                vectors(256),
                floats("coefficients", &[1.0; 64]),
                floats("rho", &[1.0]),
                kernel(),
            ],
            vec![of(&[3 << 14, 4], 1f32)],
        ),
        ml(
            "probabilities",
            "ai.onnx.ml.SVMClassifier",
            vec![
                ints("classlabels_ints", &(0..64).collect::<Vec<_>>()),
                ints("vectors_per_class", &[1; 64]),
                vectors(64),
                floats("coefficients", &[1.0; 64 * 63]),
                floats("rho", &[1.0; 32 * 63]),
                floats("prob_a", &[1.0; 32 * 63]),
                floats("prob_b", &[1.0; 32 * 63]),
            ],
            vec![of(&[64, 1], 1f32)],
        ),
        case("", "ai.onnx.ml.TreeEnsemble", 5, ensemble, [of(&[N, 2], 1f32)]),
        ml("", "ai.onnx.ml.TreeEnsembleClassifier", tree([votes("class"), vec![labels()]].concat()), rows(2)),
        ml("", "ai.onnx.ml.TreeEnsembleRegressor", tree(votes("target")), rows(2)),
        ml("", "ai.onnx.ml.ZipMap", vec![labels()], vec![of(&[N, 2], 1f32)]),
    ]
}

#[cfg(feature = "text")]
fn strings_of() -> Vec<Case> {
    let ngrams = |what: &str, pool: AttributeProto, x: Option<Value>| {
        let numbers = [("min_gram_length", 1), ("max_gram_length", 2), ("max_skip_count", 3)];
        let lists = [ints("ngram_counts", &[0, 1]), ints("ngram_indexes", &[0, 1]), string("mode", "TF"), pool];
        case(what, "TfIdfVectorizer", 9, numbers.map(|(name, k)| int(name, k)).into_iter().chain(lists), [x])
    };
    let normal = |what: &str, attributes: Vec<AttributeProto>, x| case(what, "StringNormalizer", 10, attributes, [x]);
    let regex = |what: &str, pattern, x| case(what, "RegexFullMatch", 20, [string("pattern", pattern)], [x]);
    let split = |what: &str, delimiter, x| case_of(what, "StringSplit", 20, 2, [string("delimiter", delimiter)], [x]);
    let long = |text: &str| strings(&[64], &text.repeat(N / 8));
    vec![
        case("", "StringConcat", 20, [], [strings(&[N / 4], "ab"), strings(&[N / 4], "c")]),
        case("a broadcast", "StringConcat", 20, [], [strings(&[N / 32, 1], "ab"), strings(&[16], "c")]),
        case("long strings", "StringConcat", 20, [], [long("a"), strings(&[1], "c")]),
        split("at whitespace", "", strings(&[N / 4], " ab")),
        split("at a delimiter", "-", strings(&[N / 8], "a-b--")),
        split("long strings", "-", long("ab")),
        split("one of many parts", "-", strings(&[1], &"-".repeat(N / 2))),
        normal("nothing", vec![], strings(&[N / 2], "ab")),
        normal("stop words", vec![texts("stopwords", &["AB"])], strings(&[N / 2], "ab")),
        normal("upper case", vec![string("case_change_action", "UPPER")], strings(&[N / 4], "ab")),
        normal("long strings", vec![string("case_change_action", "LOWER")], long("A")),
        regex("short strings", "[a-c]+", strings(&[N / 2], "ab")),
        regex("long strings", "[^c]*d", long("ab")),
        ngrams("integers", ints("pool_int64s", &[1, 2, 1]), of(&[N], 2i64)),
        ngrams("short rows", ints("pool_int64s", &[1, 2, 1]), of(&[N / 2, 4], 2i32)),
        ngrams("rows without tokens", ints("pool_int64s", &[1, 2, 1]), of(&[2 * N, 0], 2i32)),
        ngrams("strings", texts("pool_strings", &["a", "b", "c"]), strings(&[N / 2], "b")),
        ngrams("long strings", texts("pool_strings", &["a", "b", "c"]), long("b")),
    ]
}

fn images() -> Vec<Case> {
    let resized = |what: &str, mode, x: Option<Value>, scales: &[f32]| {
        case(what, "Resize", 28, [string("mode", mode)], [x, None, list(scales.to_vec())])
    };
    let smaller = [string("mode", "linear"), int("antialias", 1)];
    vec![
        resized("short rows", "nearest", of(&[N, 2], 1f32), &[1.0, 2.0]),
        resized("huge rows", "nearest", of(&[2, 2 * N], 1u8), &[1.5, 2.0]),
        resized("tall", "nearest", of(&[N / 16, 32], 1f32), &[2.0, 1.0]),
        resized("a plane", "linear", of(&[512, 512], 1f32), &[2.0, 2.0]),
        resized("channels last", "linear", of(&[256, 512, 4], 1u8), &[2.0, 2.0, 1.0]),
        resized("short rows", "cubic", of(&[N / 2, 2], 1f32), &[1.0, 2.0]),
        case("huge windows", "Resize", 28, smaller, [of(&[2, N], 1f32), None, list([1f32, 1e-5])]),
        case("places", "GridSample", 28, [], [of(&[1, 2, 64, 64], 1f32), of(&[1, N / 2, 1, 2], 0.1f32)]),
        case(
            "the nearest",
            "GridSample",
            28,
            [string("mode", "nearest")],
            [of(&[1, 1, 9], 1f32), of(&[1, 3 * N, 1], 0.1f32)],
        ),
        case("a plane", "AffineGrid", 28, [], [of(&[1, 2, 3], 1f32), list([1, 1, N as i64, 2])]),
        case("a row", "Upsample", 9, [string("mode", "linear")], [of(&[1, N], 1f32), list([1f32, 2.0])]),
    ]
}

#[cfg(feature = "signal")]
fn signals() -> Vec<Case> {
    let size = || scalar(4 * N as i64);
    let stft = |what: &str, samples, frame| {
        let inputs = [of(&[1, samples, 1], 1f32), scalar(200i64), of(&[frame], 1f32)];
        case(what, "STFT", 28, [], inputs)
    };
    let edges = [scalar(16_000i64), scalar(0f32), scalar(8000f32)];
    vec![
        case("a long lane", "DFT", 28, [], [of(&[1, 1 << 18, 1], 1f32)]),
        case("a long complex lane", "DFT", 28, [int("inverse", 1)], [of(&[1, 1 << 18, 2], 1f32)]),
        case("a large prime", "DFT", 28, [], [of(&[1, 65_521, 2], 1f32)]),
        case("many lanes", "DFT", 28, [int("onesided", 1)], [of(&[1024, 400, 1], 1f32)]),
        case("tiny lanes", "DFT", 28, [], [of(&[N / 8, 4, 1], 1f64)]),
        case("columns", "DFT", 28, [], [of(&[60, 4096, 2], 1f32), None, scalar(0i64)]),
        case("back", "DFT", 28, [int("inverse", 1), int("onesided", 1)], [of(&[1024, 201, 2], 1f32)]),
        stft("many frames", N, 400),
        stft("long frames", 1 << 16, (1 << 16) - 512),
        case("", "HannWindow", 28, [], [size()]),
        case("", "HammingWindow", 28, [int("output_datatype", 11)], [size()]),
        case("", "BlackmanWindow", 28, [int("output_datatype", 5)], [size()]),
        case("", "MelWeightMatrix", 28, [], [scalar(256i64), scalar(32_768i64)].into_iter().chain(edges)),
    ]
}

const FAMILIES: &[fn() -> Vec<Case>] = &[
    functions,
    pairs,
    casts,
    picks,
    #[cfg(feature = "openvino")]
    openvino,
    scatters,
    images_of_old_releases,
    layouts,
    sequences,
    loops,
    reductions,
    normalizations,
    losses,
    trainings,
    pools,
    #[cfg(feature = "image")]
    boxes,
    #[cfg(feature = "image")]
    pictures,
    products,
    convolutions,
    quantized,
    recurrent,
    random,
    attentions,
    #[cfg(feature = "ml")]
    learned,
    #[cfg(feature = "text")]
    strings_of,
    images,
    #[cfg(feature = "signal")]
    signals,
];

/// An operator that is neither in a family nor small fails this.
#[test]
fn no_operator_is_left_out() {
    let names = |family: &fn() -> Vec<Case>| family().into_iter().map(|case| (case.name, case.operator)).collect();
    let cases: Vec<Vec<(String, &str)>> = FAMILIES.iter().map(names).collect();
    let unknown: Vec<_> = LATE.iter().filter(|late| !cases.iter().flatten().any(|(name, _)| name == *late)).collect();
    assert!(unknown.is_empty(), "no such cases: {unknown:?}");
    let cases: BTreeSet<&str> = cases.iter().flatten().map(|(_, operator)| *operator).collect();
    let label = |implementation: &crate::operator::Implementation| match implementation.domain {
        "" => implementation.name.to_string(),
        domain => format!("{domain}.{}", implementation.name),
    };
    for name in super::all().filter(|implementation| implementation.runs()).map(label) {
        let places = usize::from(cases.contains(name.as_str())) + usize::from(SMALL.contains(&name.as_str()));
        assert_eq!(places, 1, "{name}: is in so many of the cases and SMALL");
    }
}

#[test]
fn functions_can_be_stopped() {
    check(functions());
}

#[test]
fn pairs_can_be_stopped() {
    check(pairs());
}

#[test]
fn casts_can_be_stopped() {
    check(casts());
}

#[test]
fn picks_can_be_stopped() {
    check(picks());
}

#[test]
fn losses_can_be_stopped() {
    check(losses());
}

#[test]
fn trainings_can_be_stopped() {
    check(trainings());
}

#[cfg(feature = "openvino")]
#[test]
fn openvino_can_be_stopped() {
    check(openvino());
}

#[test]
fn scatters_can_be_stopped() {
    check(scatters());
}

#[test]
fn images_of_old_releases_can_be_stopped() {
    check(images_of_old_releases());
}

#[test]
fn layouts_can_be_stopped() {
    check(layouts());
}

#[test]
fn sequences_can_be_stopped() {
    check(sequences());
}

#[test]
fn loops_can_be_stopped() {
    check(loops());
}

#[test]
fn reductions_can_be_stopped() {
    check(reductions());
}

#[test]
fn normalizations_can_be_stopped() {
    check(normalizations());
}

#[test]
fn pools_can_be_stopped() {
    check(pools());
}

#[test]
#[cfg(feature = "image")]
fn boxes_can_be_stopped() {
    check(boxes());
}

#[test]
#[cfg(feature = "image")]
fn pictures_can_be_stopped() {
    check(pictures());
}

#[test]
fn convolutions_can_be_stopped() {
    check(convolutions());
}

#[test]
fn products_can_be_stopped() {
    check(products());
}

#[test]
fn attentions_can_be_stopped() {
    check(attentions());
}

#[test]
#[cfg(feature = "ml")]
fn learned_models_can_be_stopped() {
    check(learned());
}

#[cfg(feature = "text")]
#[test]
fn operators_on_strings_can_be_stopped() {
    check(strings_of());
}

#[test]
fn quantizations_can_be_stopped() {
    check(quantized());
}

#[test]
fn recurrent_layers_can_be_stopped() {
    check(recurrent());
}

#[test]
fn random_numbers_can_be_stopped() {
    check(random());
}

#[test]
fn images_can_be_stopped() {
    check(images());
}

#[test]
#[cfg(feature = "signal")]
fn signals_can_be_stopped() {
    check(signals());
}
