//! Reads a table of calls. Its head says how a line is written.

use super::bodies::body;
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use crate::common::{attribute, float, initializer, int, ints, node, string, tensor, typed};
use onnxref::{DType, Limits, Map, Optional, Sequence, Tensor, Value, ValueType};
use prost::Message;

/// The names of inputs.
const NAMES: [&str; 10] = ["i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8", "i9"];

/// A call of an operator, and what comes of it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) line: usize,
    pub(super) domain: String,
    pub(super) name: String,
    pub(super) version: i64,
    pub(super) outputs: usize,
    pub(super) attributes: Vec<AttributeProto>,
    /// `None` for one that is left out.
    pub(super) inputs: Vec<Option<Input>>,
    pub(super) limits: Limits,
    pub(super) outcome: String,
}

#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) value: Value,
    /// An initializer, not a feed.
    pub(super) constant: bool,
}

/// The calls of a table: a line may name several operators.
pub(super) fn calls(table: &str) -> Vec<Call> {
    let lines = table.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(|(at, line)| calls_of(line, at + 1)).collect()
}

fn calls_of(line: &str, number: usize) -> Vec<Call> {
    let (call, outcome) = line.split_once(" -> ").unwrap_or_else(|| panic!("line {number} has no outcome"));
    let (before, rest) = call.split_once('(').unwrap_or_else(|| panic!("line {number} has no inputs"));
    let (inputs, limits) = rest.split_once(')').unwrap_or_else(|| panic!("line {number} has no end of inputs"));
    let (attributes, operators): (Vec<&str>, Vec<&str>) =
        before.split_whitespace().partition(|word| word.contains('='));
    let attributes: Vec<AttributeProto> = attributes.into_iter().map(attribute_of).collect();
    let inputs: Vec<Option<Input>> = inputs.split_whitespace().map(input_of).collect();
    let mut given = Limits::default();
    for limit in limits.split_whitespace() {
        let (name, value) = limit.split_once('=').unwrap();
        given.set(name, number_of(value) as u64).unwrap();
    }
    let call = |operator: &str| {
        let (operator, outputs) = operator.split_once('*').unwrap_or((operator, "1"));
        let (label, version) = operator.rsplit_once('-').unwrap_or_else(|| panic!("line {number}: {operator}"));
        let (domain, name) = label.rsplit_once('.').unwrap_or(("", label));
        Call {
            line: number,
            domain: domain.into(),
            name: name.into(),
            version: version.parse().unwrap(),
            outputs: outputs.parse().unwrap(),
            attributes: attributes.clone(),
            inputs: inputs.clone(),
            limits: given.clone(),
            outcome: outcome.trim().into(),
        }
    };
    operators.into_iter().map(call).collect()
}

/// A whole number, also as `2^40`, `2^63-1` or `-2^63`.
fn number_of(text: &str) -> i128 {
    let Some((base, rest)) = text.split_once('^') else { return text.parse().unwrap_or_else(|_| panic!("{text:?}")) };
    let (power, less) = rest.split_once('-').unwrap_or((rest, "0"));
    let base: i128 = base.parse().unwrap();
    let (sign, base) = (base.signum(), base.abs());
    sign * base.pow(power.parse().unwrap()) - less.parse::<i128>().unwrap()
}

fn integer(text: &str) -> i64 {
    i64::try_from(number_of(text)).unwrap()
}

fn is_float(text: &str) -> bool {
    text.contains('.') || text.contains("nan") || text.contains("inf")
}

fn attribute_of(word: &str) -> AttributeProto {
    let (name, value) = word.split_once('=').unwrap();
    if let Some(list) = value.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        let items = || list.split(',').filter(|item| !item.is_empty());
        return match list {
            _ if list.contains('"') => AttributeProto {
                strings: items().map(|item| item.trim_matches('"').to_string().into()).collect(),
                ..attribute(name, AttributeType::Strings)
            },
            _ if is_float(list) => AttributeProto {
                floats: items().map(|item| item.parse().unwrap()).collect(),
                ..attribute(name, AttributeType::Floats)
            },
            _ => ints(name, &items().map(integer).collect::<Vec<_>>()),
        };
    }
    if let Some(graph) = value.strip_prefix('{').and_then(|graph| graph.strip_suffix('}')) {
        return AttributeProto { g: Some(Box::new(body(graph))), ..attribute(name, AttributeType::Graph) };
    }
    if let Some(text) = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return string(name, text);
    }
    if DType::from_name(value.split(['[', '=']).next().unwrap()).is_some() {
        return tensor(name, &tensor_of(value));
    }
    if is_float(value) { float(name, value.parse().unwrap()) } else { int(name, integer(value)) }
}

fn input_of(word: &str) -> Option<Input> {
    if word == "-" {
        return None;
    }
    let (constant, word) = word.strip_prefix('!').map_or((false, word), |word| (true, word));
    Some(Input { value: value_of(word), constant })
}

fn value_of(word: &str) -> Value {
    if let Some(rest) = word.strip_prefix("seq*") {
        let (count, element) = rest.split_once(':').unwrap();
        let element = value_of(element);
        let values = vec![element.clone(); count.parse().unwrap()];
        return Sequence::new(element.value_type().unwrap(), values).unwrap().into();
    }
    if let Some(rest) = word.strip_prefix("map*") {
        let (count, element) = rest.split_once(':').unwrap();
        let (count, element): (usize, Value) = (count.parse().unwrap(), value_of(element));
        let values = Sequence::new(element.value_type().unwrap(), vec![element; count]).unwrap();
        return Map::new((0..count as i64).collect::<Vec<i64>>().into(), values).unwrap().into();
    }
    match word.strip_prefix("opt:") {
        Some(element) => Optional::some(value_of(element)).into(),
        None => tensor_of(word).into(),
    }
}

fn tensor_of(word: &str) -> Tensor {
    let (head, values) = word.split_once('=').map_or((word, None), |(head, values)| (head, Some(values)));
    let (dtype, dims) = head.split_once('[').unwrap_or((head, "]"));
    let dtype = DType::from_name(dtype).unwrap_or_else(|| panic!("no element type: {word}"));
    let dims = dims.trim_end_matches(']').split(',').filter(|dim| !dim.is_empty());
    let shape: Vec<usize> = dims.map(|dim| usize::try_from(number_of(dim)).unwrap()).collect();
    let len: usize = shape.iter().fold(1usize, |len, dim| len.saturating_mul(*dim));
    let len = if shape.contains(&0) { 0 } else { len };
    let items: Vec<&str> = values.map_or(vec![], |values| values.split(',').collect());
    let item = |at: usize| items.get(at % items.len().max(1)).copied().unwrap_or("0");
    if dtype == DType::String {
        let text = |at: usize| match item(at).split_once('*') {
            Some((text, count)) => text.repeat(count.parse().unwrap()),
            None => item(at).to_string(),
        };
        return Tensor::from_strings(&shape, (0..len).map(text)).unwrap();
    }
    if items.is_empty() {
        return Tensor::new(dtype, &shape, vec![0; len * dtype.size()]).unwrap();
    }
    macro_rules! of {
        ($type:ty, $parse:expr) => {
            Tensor::from_elements(&shape, (0..len).map(|at| $parse(item(at)) as $type).collect()).unwrap()
        };
    }
    let number = |text: &str| text.parse::<f64>().unwrap();
    match dtype {
        DType::Float => of!(f32, number),
        DType::Double => of!(f64, number),
        DType::Int64 => of!(i64, integer),
        DType::Int32 => of!(i32, integer),
        DType::Uint8 => of!(u8, integer),
        DType::Bool => Tensor::from_elements(&shape, (0..len).map(|at| item(at) == "1").collect()).unwrap(),
        other => panic!("no values of {other}: {word}"),
    }
}

impl Call {
    pub(super) fn label(&self) -> String {
        let dot = if self.domain.is_empty() { "" } else { "." };
        format!("{}{dot}{}-{}", self.domain, self.name, self.version)
    }

    pub(super) fn title(&self) -> String {
        format!("line {}: {}", self.line, self.label())
    }

    /// The bytes of a model of this node.
    pub(super) fn model(&self) -> Vec<u8> {
        let given = || self.inputs.iter().zip(NAMES);
        let inputs: Vec<&str> = given().map(|(input, name)| if input.is_some() { name } else { "" }).collect();
        let outputs: Vec<String> = (0..self.outputs).map(|k| format!("o{k}")).collect();
        let names: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let node = node(&self.name, &inputs, &names, self.attributes.clone());
        let each = || given().filter_map(|(input, name)| Some((input.as_ref()?, name)));
        let any = ValueType::Tensor(DType::Float);
        let graph = GraphProto {
            name: Some("graph".into()),
            node: vec![NodeProto { name: Some("node".into()), domain: Some(self.domain.clone()), ..node }],
            input: each()
                .filter(|(input, _)| !input.constant)
                .map(|(input, name)| typed(name, input.value.value_type().as_ref().unwrap_or(&any)))
                .collect(),
            initializer: each()
                .filter(|(input, _)| input.constant)
                .map(|(input, name)| initializer(name, input.value.tensor().unwrap()))
                .collect(),
            output: outputs
                .iter()
                .map(|name| ValueInfoProto { name: Some(name.clone()), ..Default::default() })
                .collect(),
            ..GraphProto::default()
        };
        let import = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
        let own = import(&self.domain, self.version);
        let model = ModelProto {
            ir_version: Some(10),
            graph: Some(graph),
            opset_import: if self.domain.is_empty() { vec![own] } else { vec![own, import("", 25)] },
            ..Default::default()
        };
        model.encode_to_vec()
    }

    /// What is fed.
    pub(super) fn feeds(&self) -> Vec<(&'static str, Value)> {
        let given = self.inputs.iter().zip(NAMES);
        let fed = given.filter_map(|(input, name)| Some((name, input.as_ref().filter(|input| !input.constant)?)));
        fed.map(|(name, input)| (name, input.value.clone())).collect()
    }
}
