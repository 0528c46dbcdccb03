//! What a model holds, as JSON.
//!
//! Values of a graph are listed once; nodes refer to them by place (`input_values`) and, for people, by name
//! (`inputs`). Names are not unique: those of a called function occur in each of its calls.

use crate::error::{Cause, Fault};
use crate::json::{Described, Element};
use crate::names::{dtype_name, type_name};
use crate::totals::{Totals, bytes, fate, origin};
use onnxref::inspect::{FunctionInfo, GraphDetails, Inspection, MemoryPlan, NodeDetails, ValueDetails};
use onnxref::schema::Attribute;
use onnxref::{Dim, Error, Tensor, Value};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Maximum number of elements of a tensor or a list that are shown; of a longer one, only its size.
const MAX_ELEMENTS: usize = 64;

/// Maximum number of characters of a text that are shown.
const MAX_TEXT: usize = 2000;

/// What a model holds: `{"ir_version": .., "opsets": [..], "totals": {..}, "graph": {..}, "error": .., ..}`.
#[derive(Serialize)]
pub struct Document<'a> {
    ir_version: i64,
    opsets: Vec<Opset<'a>>,
    metadata: Vec<Pair<'a>>,
    functions: Vec<Function<'a>>,
    /// Whether the model can run.
    runs: bool,
    totals: Totals,
    memory: Option<Memory>,
    graph: Graph<'a>,
    notes: &'a [String],
    mismatches: Vec<Cause<'a>>,
    error: Option<Fault<'a>>,
}

impl<'a> Document<'a> {
    /// What `found` holds. `explain` writes the text of an error.
    pub fn new(found: &'a Inspection, explain: impl Fn(&Error) -> String) -> Document<'a> {
        Document {
            ir_version: found.ir_version,
            opsets: found.opsets.iter().map(|(domain, version)| Opset { domain, version: *version }).collect(),
            metadata: found
                .metadata
                .iter()
                .map(|(name, value)| Pair { name: Text(name), value: Text(value) })
                .collect(),
            functions: found.functions.iter().map(Function::new).collect(),
            runs: found.error.is_none(),
            totals: Totals::new(&found.graph),
            memory: found.memory.as_ref().map(Memory::new),
            graph: Graph::new(&found.graph),
            notes: &found.notes,
            mismatches: found.mismatches.iter().map(|error| Cause::new(error, explain(error))).collect(),
            error: found.error.as_ref().map(|error| Fault::new(error, explain(error), &explain)),
        }
    }
}

#[derive(Serialize)]
struct Opset<'a> {
    domain: &'a str,
    version: i64,
}

#[derive(Serialize)]
struct Pair<'a> {
    name: Text<'a>,
    value: Text<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    domain: &'a str,
    name: &'a str,
    overload: &'a str,
    nodes: u64,
}

impl<'a> Function<'a> {
    fn new(info: &'a FunctionInfo) -> Function<'a> {
        Function { domain: &info.domain, name: &info.name, overload: &info.overload, nodes: info.nodes }
    }
}

#[derive(Serialize)]
struct Memory {
    slots: usize,
    peak_bytes: u64,
    peak_node: Option<usize>,
    unknown: usize,
}

impl Memory {
    fn new(plan: &MemoryPlan) -> Memory {
        let MemoryPlan { slots, peak_bytes, peak_node, unknown, .. } = *plan;
        Memory { slots, peak_bytes, peak_node, unknown }
    }
}

/// A graph: its values, and nodes that refer to them.
#[derive(Serialize)]
pub struct Graph<'a> {
    inputs: Vec<Typed<'a>>,
    outputs: Vec<Typed<'a>>,
    constants: Vec<Constant<'a>>,
    nodes: Vec<Node<'a>>,
    values: Vec<Typed<'a>>,
    /// Of a subgraph: its values that are those of the graph around it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    captured: Vec<Captured>,
}

impl<'a> Graph<'a> {
    /// What a graph holds.
    pub fn new(graph: &'a GraphDetails) -> Graph<'a> {
        let typed = |at: &usize| Some(Typed::new(*at, graph.values.get(*at)?));
        let constant =
            |(at, value): (usize, &'a ValueDetails)| Some(Constant::new(at, value, value.constant.as_ref()?));
        Graph {
            inputs: graph.inputs.iter().filter_map(typed).collect(),
            outputs: graph.outputs.iter().filter_map(typed).collect(),
            constants: graph.values.iter().enumerate().filter_map(constant).collect(),
            nodes: graph.nodes.iter().map(|node| Node::new(graph, node)).collect(),
            values: graph.values.iter().enumerate().map(|(at, value)| Typed::new(at, value)).collect(),
            captured: graph.captured.iter().map(|&(value, outer)| Captured { value, outer }).collect(),
        }
    }
}

#[derive(Serialize)]
struct Captured {
    value: usize,
    outer: usize,
}

/// A value with its type. A symbol of a shape is a string, an unknown size null.
#[derive(Serialize)]
struct Typed<'a> {
    value: usize,
    name: Text<'a>,
    #[serde(rename = "type")]
    value_type: Option<String>,
    shape: Option<Vec<Option<Size<'a>>>>,
    bytes: Option<u64>,
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Short<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Size<'a> {
    Fixed(usize),
    Symbol(Text<'a>),
    Formula(String),
}

impl<'a> Typed<'a> {
    fn new(at: usize, value: &'a ValueDetails) -> Typed<'a> {
        let size = |dim: &'a Dim| match dim {
            Dim::Fixed(size) => Some(Size::Fixed(*size)),
            Dim::Symbol(name) => Some(Size::Symbol(Text(name))),
            Dim::Formula(formula) => Some(Size::Formula(formula.to_string())),
            _ => None,
        };
        Typed {
            value: at,
            name: Text(&value.name),
            value_type: value.value_type.as_ref().map(type_name),
            shape: value.shape.as_ref().map(|dims| dims.iter().map(size).collect()),
            bytes: value.bytes(),
            origin: origin(value),
            default: value.default.as_ref().map(Short),
        }
    }
}

#[derive(Serialize)]
struct Constant<'a> {
    value: usize,
    name: Text<'a>,
    bytes: u64,
    origin: &'static str,
    constant: Short<'a>,
}

impl<'a> Constant<'a> {
    fn new(at: usize, value: &'a ValueDetails, constant: &'a Value) -> Constant<'a> {
        let (name, bytes, origin) = (Text(&value.name), bytes(constant), origin(value));
        Constant { value: at, name, bytes, origin, constant: Short(constant) }
    }
}

#[derive(Serialize)]
struct Node<'a> {
    index: usize,
    name: Text<'a>,
    function: Option<Text<'a>>,
    domain: &'a str,
    operator: &'a str,
    version: Option<i64>,
    fate: &'static str,
    inputs: Vec<Option<Text<'a>>>,
    input_values: &'a [Option<usize>],
    outputs: Vec<Option<Text<'a>>>,
    output_values: &'a [Option<usize>],
    attributes: Attributes<'a>,
    macs: Option<u64>,
    /// Of the outputs, if all are known.
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<Body<'a>>,
}

#[derive(Serialize)]
struct Body<'a> {
    attribute: &'a str,
    graph: Graph<'a>,
}

impl<'a> Node<'a> {
    fn new(graph: &'a GraphDetails, node: &'a NodeDetails) -> Node<'a> {
        let names = |places: &[Option<usize>]| -> Vec<Option<Text<'a>>> {
            places.iter().map(|at| Some(Text(&graph.values.get((*at)?)?.name))).collect()
        };
        let outputs = node.outputs.iter().flatten().filter_map(|at| graph.values.get(*at));
        Node {
            index: node.index,
            name: Text(&node.name),
            function: node.function.as_deref().map(Text),
            domain: &node.domain,
            operator: &node.operator,
            version: node.version,
            fate: fate(node.fate),
            inputs: names(&node.inputs),
            input_values: &node.inputs,
            outputs: names(&node.outputs),
            output_values: &node.outputs,
            attributes: Attributes(&node.attributes),
            macs: node.macs,
            bytes: outputs.map(ValueDetails::bytes).try_fold(0u64, |sum, bytes| sum.checked_add(bytes?)),
            bodies: node.bodies.iter().map(|(attribute, body)| Body { attribute, graph: Graph::new(body) }).collect(),
        }
    }
}

/// A text, cut if it is long.
struct Text<'a>(&'a str);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.char_indices().nth(MAX_TEXT) {
            Some((cut, _)) => serializer.collect_str(&format_args!("{}…", self.0.get(..cut).unwrap_or(""))),
            None => serializer.serialize_str(self.0),
        }
    }
}

/// A value; of a long one, type and shape alone.
struct Short<'a>(&'a Value);

impl Serialize for Short<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Tensor(tensor) => ShortTensor(tensor).serialize(serializer),
            value if elements(value) <= MAX_ELEMENTS => Described(value).serialize(serializer),
            value => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", &value.value_type().map(|of| type_name(&of)))?;
                map.end()
            }
        }
    }
}

/// The elements of a value, or more than are shown.
fn elements(value: &Value) -> usize {
    match value {
        Value::Tensor(tensor) if is_short(tensor) => tensor.len(),
        Value::Sequence(sequence) if sequence.values().len() <= MAX_ELEMENTS => {
            sequence.values().iter().fold(0, |sum: usize, value| sum.saturating_add(elements(value)).saturating_add(1))
        }
        Value::Optional(optional) => optional.get().map_or(0, elements),
        _ => usize::MAX,
    }
}

fn is_short(tensor: &Tensor) -> bool {
    let text = || tensor.strings().map_or(0, |strings| strings.map(str::len).sum());
    tensor.len() <= MAX_ELEMENTS && text() <= MAX_TEXT
}

struct ShortTensor<'a>(&'a Tensor);

impl Serialize for ShortTensor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("dtype", dtype_name(self.0.dtype()))?;
        map.serialize_entry("shape", self.0.shape())?;
        if is_short(self.0) {
            map.serialize_entry("values", &self.0.scalars().map(Element).collect::<Vec<_>>())?;
        }
        map.end()
    }
}

struct Attributes<'a>(&'a [(String, Attribute)]);

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, Given(value))))
    }
}

/// An attribute's value: a number, a string, a list, a tensor; `{"length": N}` for a long list.
struct Given<'a>(&'a Attribute);

impl Serialize for Given<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Attribute::Float(value) => float(*value).serialize(serializer),
            Attribute::Int(value) => value.serialize(serializer),
            Attribute::String(text) => Text(text).serialize(serializer),
            Attribute::Tensor(tensor) | Attribute::SparseTensor(tensor) => ShortTensor(tensor).serialize(serializer),
            Attribute::Type(value_type) => type_name(value_type).serialize(serializer),
            Attribute::Floats(list) => short_list(list, |value| float(*value), serializer),
            Attribute::Ints(list) => short_list(list, |value| *value, serializer),
            Attribute::Strings(list) => short_list(list, |text| Text(text), serializer),
            Attribute::Tensors(list) | Attribute::SparseTensors(list) => short_list(list, ShortTensor, serializer),
            Attribute::Types(list) => short_list(list, type_name, serializer),
            _ => serializer.serialize_none(),
        }
    }
}

fn float(value: f32) -> Element<'static> {
    Element(onnxref::Scalar::Float(value))
}

fn short_list<'a, T, U: Serialize, S: Serializer>(
    list: &'a [T],
    show: impl Fn(&'a T) -> U,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if list.len() <= MAX_ELEMENTS {
        return serializer.collect_seq(list.iter().map(show));
    }
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("length", &list.len())?;
    map.end()
}
