//! Calls of the table of costs with one thing changed: an attribute or an input that is as odd as it can be.

use super::table::{Call, Input};
use crate::case::{BESIDE, STACK, on_thread, text_faults};
use crate::common::proto::AttributeProto;
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::{attribute, float, int, ints, string};
use onnxref::{DType, Kind, Limits, Sequence, Support, Tensor, Value, ValueType};
use std::collections::HashSet;

/// The attributes of each version of each operator.
const SCHEMAS: [&str; 3] = [
    include_str!("../../../src/schema/standard.txt"),
    include_str!("../../../src/schema/experimental.txt"),
    include_str!("../../../src/schema/openvino.txt"),
];

const NUMBERS: [i64; 9] = [i64::MIN, -(1 << 32) - 1, -2, -1, 0, 3, 1 << 31, 1 << 40, i64::MAX];

/// Little of everything, so that nothing takes long.
fn small() -> Limits {
    let mut limits = Limits::default();
    (limits.tensor_bytes, limits.run_bytes) = (4 << 20, 16 << 20);
    (limits.run_elements, limits.run_work, limits.run_nodes) = (1 << 18, 1 << 20, 2_000);
    limits
}

/// What the standard says of an operator: its inputs and outputs, and then its attributes and types.
fn block(call: &Call) -> &'static str {
    let domain = if call.domain.is_empty() { String::new() } else { format!("{}.", call.domain) };
    let head = format!("\n{domain}{} {}", call.name, call.version);
    // Behind it may stand that the version is deprecated.
    let heads = ['\n', ' '].map(|end| format!("{head}{end}"));
    let of = |schema: &&'static str| heads.iter().find_map(|head| schema.split_once(head.as_str()));
    let block = SCHEMAS.iter().find_map(of);
    block.unwrap_or_else(|| panic!("the standard doesn't have {head}")).1
}

/// The names and kinds of the attributes that an operator has.
fn attributes(call: &Call) -> Vec<(&'static str, &'static str)> {
    let lines = block(call).lines().take_while(|line| !line.is_empty()).filter_map(|line| line.trim().split_once(": "));
    let kinds = ["INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS"];
    lines.map(|(name, kind)| (name, kind.split(' ').next().unwrap())).filter(|(_, kind)| kinds.contains(kind)).collect()
}

fn odd_attributes(name: &str, kind: &str) -> Vec<AttributeProto> {
    match kind {
        "INT" => NUMBERS.iter().map(|value| int(name, *value)).collect(),
        "FLOAT" => {
            [f32::NAN, f32::INFINITY, -f32::INFINITY, -1.0, 0.0, f32::MAX].map(|value| float(name, value)).into()
        }
        "STRING" => ["", "nothing", &"x".repeat(100_000)].map(|text| string(name, text)).into(),
        "INTS" => {
            let lists: [&[i64]; 8] =
                [&[], &[0], &[-1], &[0, 0], &[i64::MIN; 2], &[i64::MAX; 2], &[i64::MAX; 4], &[0; 10_000]];
            lists.map(|list| ints(name, list)).into()
        }
        "FLOATS" => [vec![], vec![f32::NAN; 3]]
            .map(|floats| AttributeProto { floats, ..attribute(name, AttributeType::Floats) })
            .into(),
        _ => [vec![], vec!["x".into(); 3]]
            .map(|strings| AttributeProto { strings, ..attribute(name, AttributeType::Strings) })
            .into(),
    }
}

fn tensor(dtype: DType, shape: &[usize]) -> Tensor {
    let len = if shape.contains(&0) { 0 } else { shape.iter().product() };
    match dtype {
        DType::String => Tensor::from_strings(shape, vec!["x"; len]).unwrap(),
        _ => Tensor::new(dtype, shape, vec![0; len * dtype.size()]).unwrap(),
    }
}

fn odd_values(value: &Value) -> Vec<Value> {
    let Ok(own) = value.tensor() else {
        let Some(ValueType::Sequence(element)) = value.value_type() else { return Vec::new() };
        return vec![Sequence::new(*element, []).unwrap().into()];
    };
    let (dtype, shape) = (own.dtype(), own.shape());
    let longer: Vec<usize> = shape.iter().copied().chain([1]).collect();
    let shapes: [&[usize]; 10] =
        [&[], &[0], &[1], &[3], &[1 << 40, 0], &[0, 1 << 40], &[0, 0, 1 << 62], &[1; 64], &[1; 1000], &longer];
    let mut values: Vec<Value> = shapes.iter().map(|shape| tensor(dtype, shape).into()).collect();
    macro_rules! filled {
        ($type:ty, $list:expr) => {
            values.extend(
                $list.map(|value| Tensor::from_elements(shape, vec![value as $type; own.len()]).unwrap().into()),
            )
        };
    }
    match dtype {
        DType::Int64 => filled!(i64, NUMBERS),
        DType::Int32 => filled!(i32, NUMBERS),
        DType::Float => filled!(f32, [f32::NAN, f32::INFINITY, -f32::INFINITY, f32::MAX, -1e-40]),
        DType::Double => filled!(f64, [f64::NAN, f64::INFINITY, -f64::INFINITY, f64::MAX]),
        _ => {}
    }
    values
}

/// The call with dimensions that are 32 times smaller, so that it is fast.
fn shrunk(mut call: Call) -> Call {
    for input in call.inputs.iter_mut().flatten() {
        let Ok(own) = input.value.tensor().cloned() else { continue };
        let dims: Vec<usize> =
            own.shape().iter().map(|dim| if dim.is_multiple_of(32) { dim / 32 } else { *dim }).collect();
        let len = dims.iter().product();
        input.value = match own.strings() {
            Ok(strings) => Tensor::from_strings(&dims, strings.take(len)).unwrap().into(),
            Err(_) => {
                let bytes = own.bytes()[..len * own.dtype().size()].to_vec();
                Tensor::new(own.dtype(), &dims, bytes).unwrap().into()
            }
        };
    }
    call
}

/// The call with each of its parts changed in turn, and what was changed.
fn changed(call: &Call) -> Vec<(String, Call)> {
    let mut all = vec![("nothing".to_string(), call.clone())];
    for (name, kind) in attributes(call) {
        for (k, odd) in odd_attributes(name, kind).into_iter().enumerate() {
            let mut other = call.clone();
            other.attributes.retain(|own| own.name.as_deref() != Some(name));
            other.attributes.push(odd);
            all.push((format!("{name} number {k}"), other));
        }
    }
    for (k, input) in call.inputs.iter().enumerate() {
        let Some(Input { value, .. }) = input else { continue };
        let odd = odd_values(value).into_iter().map(|value| Some(Input { value, constant: false }));
        for (j, odd) in [None].into_iter().chain(odd).enumerate() {
            let mut other = call.clone();
            other.inputs[k] = odd;
            all.push((format!("input {k} number {j}"), other));
        }
    }
    all
}

/// The call under every other version of its operator, with as many inputs as that has.
fn older(call: &Call) -> Vec<Call> {
    let own = |support: &&Support| (support.domain, support.name) == (&*call.domain, &*call.name);
    let versions = onnxref::supported().iter().find(own).map(|support| support.versions.clone()).unwrap_or_default();
    let of = |version: i64| {
        let mut other = Call { version, ..call.clone() };
        let known: Vec<&str> = attributes(&other).iter().map(|(name, _)| *name).collect();
        other.attributes.retain(|own| own.g.is_some() || known.contains(&own.name()));
        let signature = block(&other).lines().find(|line| line.contains('(')).unwrap_or("");
        let formal = signature.split(')').next().unwrap_or("");
        if !formal.contains("*:") && !formal.contains("+:") {
            other.inputs.truncate(formal.matches(':').count());
        }
        other
    };
    versions.into_iter().filter(|version| *version != call.version).map(of).collect()
}

/// A run ends with outputs or an error that says who must act, and takes no more than it may.
fn harm(call: &Call) -> Vec<String> {
    let limits = small();
    let (result, peak) = call.run(&limits);
    let mut harm = Vec::new();
    if peak > limits.run_bytes + BESIDE {
        harm.push(format!("takes {peak} bytes"));
    }
    if let Err(error) = result {
        if matches!(error.kind(), Kind::Internal | Kind::Io | Kind::Cancelled) {
            harm.push(format!("is of kind {}: {error}", error.kind()));
        }
        harm.extend(text_faults(&error));
    }
    harm
}

#[test]
fn nothing_odd_harms() {
    let (mut wrong, mut count, mut seen) = (Vec::new(), 0, HashSet::new());
    for call in super::calls(super::COSTS).into_iter().map(shrunk) {
        // Of other versions the attributes are odd; the newest has most inputs.
        let first = seen.insert((call.domain.clone(), call.name.clone()));
        let older = if first { older(&call) } else { Vec::new() };
        let older = older.iter().flat_map(changed).filter(|(what, _)| !what.starts_with("input"));
        for (what, odd) in changed(&call).into_iter().chain(older) {
            count += 1;
            let title = format!("{}, {what}", odd.title());
            match on_thread(&title, STACK, move || harm(&odd)) {
                Ok(harm) => wrong.extend(harm.into_iter().map(|harm| format!("{title} {harm}"))),
                Err(fate) => wrong.push(format!("{title} {fate}")),
            }
        }
    }
    println!("{count} odd calls");
    assert!(count > 5000, "only {count} calls");
    assert!(wrong.is_empty(), "{} of {count} odd calls:\n{}", wrong.len(), wrong.join("\n"));
}
