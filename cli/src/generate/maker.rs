//! A node of an operator version for a goal, with values for its inputs, and the case that it becomes.

use super::attributes::TYPES;
use super::goals::{Feature, Goal, type_key};
use super::source::Source;
use crate::messages;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use crate::record::set;
use onnxref::bytes::Bytes;
use onnxref::schema::{Arity, AttributeKind, AttributeSchema, Parameter, Schema};
use onnxref::{DType, Inputs, Limits, LoadOptions, Model, TypeSet, Value, ValueType};
use onnxref_view::type_name;
use prost::Message;

/// Draws a node and its inputs for a goal: one attempt.
pub(super) struct Maker<'a> {
    pub(super) source: &'a mut Source,
    pub(super) schema: &'a Schema,
    pub(super) goal: &'a Goal,
    /// The sizes that dimensions are drawn from: few, so that they often agree.
    pub(super) sizes: [usize; 3],
    /// Shapes and integers are those that the operator needs, where that is known.
    pub(super) fitting: bool,
    /// The shape of the first input.
    pub(super) first: Vec<usize>,
    /// The length of lists among the attributes.
    pub(super) length: usize,
    /// The number of outputs.
    pub(super) outputs: usize,
    /// The types that variables and parameters stand for.
    types: Vec<(String, ValueType)>,
}

/// A node and its inputs, and what its subgraphs read.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) node: NodeProto,
    pub(super) inputs: Vec<Given>,
    /// Declared shapes have symbols.
    pub(super) open: bool,
    pub(super) opset: i64,
    /// Of a case as text: whether its outputs are exact.
    pub(super) exact: Option<bool>,
}

/// An input of a node.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: Value,
    /// It is an initializer.
    pub(super) constant: bool,
}

/// Limits that keep everything small and fast.
pub(super) fn options() -> LoadOptions {
    let mut limits = Limits::default();
    limits.tensor_bytes = 1 << 16;
    limits.run_bytes = 16 << 20;
    limits.run_elements = 1 << 18;
    limits.run_nodes = 1 << 12;
    limits.run_work = 1 << 24;
    Model::options().limits(limits).threads(1)
}

impl<'a> Maker<'a> {
    pub(super) fn new(source: &'a mut Source, schema: &'a Schema, goal: &'a Goal) -> Maker<'a> {
        let sizes = [1 + source.below(3), 1 + source.below(4), 1 + source.below(5)];
        let (length, fitting, outputs) = (1 + source.below(3), !source.once_in(6), outputs(source, schema, goal));
        Maker { source, schema, goal, sizes, fitting, first: Vec::new(), length, outputs, types: Vec::new() }
    }

    pub(super) fn is(&self, feature: Feature) -> bool {
        self.goal.is(feature)
    }

    /// Draws a node.
    pub(super) fn make(mut self, opset: i64) -> Result<Made, String> {
        let (schema, mut names, mut inputs) = (self.schema, Vec::new(), Vec::new());
        for parameter in &schema.inputs {
            let count = match parameter.arity {
                Arity::Optional => {
                    let given = self.is_only_here(parameter) || self.gives(2);
                    usize::from(given && !is_left_out(schema, &parameter.name))
                }
                Arity::Variadic(least) => match schema.name.as_str() {
                    "Adam" => 4,
                    "Adagrad" | "Momentum" => 3,
                    _ => least.max(1 + self.source.below(3)),
                },
                _ => 1,
            };
            for _ in 0..count {
                let value_type = self.type_of(type_key(parameter), parameter.variable.is_some(), &parameter.types);
                let value = self.value(&value_type, &parameter.name, names.len())?;
                let several = matches!(parameter.arity, Arity::Variadic(_));
                let name = if several { format!("{}_{}", parameter.name, names.len()) } else { parameter.name.clone() };
                let constant = self.is(Feature::ConstantInputs) && !names.is_empty() && value.tensor().is_ok();
                inputs.push(Given { name: name.clone(), value, constant });
                names.push(name);
            }
            if count == 0 {
                names.push(String::new());
            }
        }
        while names.last().is_some_and(String::is_empty) {
            names.pop();
        }
        let mut attribute = Vec::new();
        for formal in &schema.attributes {
            let tells_type = TYPES.contains(&formal.name.as_str()) && self.output_type().is_some();
            let given = match self.vocabulary(&formal.name) {
                Some(given) => given,
                None => formal.required || tells_type || is_forced(schema, formal) || self.gives(3),
            };
            if given && !is_left_out(schema, &formal.name) {
                attribute.extend(self.attribute(formal)?);
            }
        }
        let node = NodeProto {
            op_type: Some(schema.name.clone()),
            domain: Some(schema.domain.clone()).filter(|domain| !domain.is_empty()),
            input: names,
            output: (0..self.outputs).map(|k| output_name(schema, k)).collect(),
            attribute,
            ..NodeProto::default()
        };
        Ok(Made { node, inputs, open: self.is(Feature::OpenShapes), opset, exact: None })
    }

    /// Whether the goal is a type that among inputs only optional ones have, such as this one.
    fn is_only_here(&self, parameter: &Parameter) -> bool {
        let Goal::Type(key, _) = self.goal else { return false };
        let mut others = self.schema.inputs.iter().filter(|input| type_key(input) == key);
        type_key(parameter) == key && others.all(|input| input.arity == Arity::Optional)
    }

    /// Whether DictVectorizer has an attribute: its vocabulary is of the type of the keys.
    fn vocabulary(&self, attribute: &str) -> Option<bool> {
        let of_strings = match attribute {
            "string_vocabulary" => true,
            "int64_vocabulary" => false,
            _ => return None,
        };
        let keys_are_strings = matches!(self.known("T1"), Some(ValueType::Map(DType::String, _)));
        Some(of_strings == keys_are_strings)
    }

    /// The type that a variable stands for.
    pub(super) fn known(&self, variable: &str) -> Option<&ValueType> {
        self.types.iter().find(|(name, _)| name == variable).map(|(_, value_type)| value_type)
    }

    /// Whether something optional is given: by the goal, else once in that many times.
    fn gives(&mut self, times: usize) -> bool {
        match self.goal {
            Goal::Feature(Feature::OnlyRequired) => false,
            Goal::Feature(Feature::AllGiven) => true,
            _ => self.source.once_in(times),
        }
    }

    /// The type of a value; that of its variable, once this has one.
    fn type_of(&mut self, key: &str, is_variable: bool, types: &TypeSet) -> ValueType {
        if let Some(known) = self.known(key).filter(|_| is_variable) {
            return known.clone();
        }
        let all: Vec<ValueType> = types.iter().collect();
        let float = ValueType::Tensor(DType::Float);
        let chosen = match &self.goal {
            Goal::Type(name, value_type) if name == key => value_type.clone(),
            _ if types.contains(&float) && !self.source.once_in(4) => float,
            _ => all.get(self.source.below(all.len())).cloned().unwrap_or(float),
        };
        self.types.push((key.to_string(), chosen.clone()));
        chosen
    }
}

/// What gives other values in each run or on each engine, or needs other inputs or outputs: an input or an attribute.
fn is_left_out(schema: &Schema, name: &str) -> bool {
    match schema.name.as_str() {
        "Dropout" | "BatchNormalization" => name == "training_mode",
        "Attention" => matches!(name, "q_num_heads" | "kv_num_heads"),
        _ => false,
    }
}

/// What must be given for the same values in each run.
fn is_forced(schema: &Schema, formal: &AttributeSchema) -> bool {
    matches!(schema.name.as_str(), "Dropout" | "BatchNormalization") && formal.name == "is_test"
        || schema.name == "Constant" && formal.name == "value" && formal.kind == AttributeKind::Tensor
}

/// The number of outputs: those that must be named, and some more.
fn outputs(source: &mut Source, schema: &Schema, goal: &Goal) -> usize {
    let required = schema.outputs.iter().rposition(|output| output.arity == Arity::One).map_or(1, |last| last + 1);
    let variadic = schema.outputs.iter().any(|output| matches!(output.arity, Arity::Variadic(_)));
    match (schema.name.as_str(), goal) {
        // The number follows from that of inputs, or from attributes.
        ("Adam", _) => 3,
        ("Adagrad" | "Momentum", _) => 2,
        ("BatchNormalization", _) => 1,
        _ if variadic => required.max(schema.outputs.len() + source.below(3)),
        (_, Goal::Feature(Feature::AllGiven)) => schema.outputs.len(),
        (_, Goal::Feature(Feature::OnlyRequired)) => required,
        _ => required + source.below(schema.outputs.len() + 1 - required),
    }
}

fn output_name(schema: &Schema, k: usize) -> String {
    let formal = schema.outputs.get(k).or(schema.outputs.last());
    let name = formal.map_or("y", |formal| formal.name.as_str());
    let is_alone = formal.is_some_and(|formal| !matches!(formal.arity, Arity::Variadic(_)));
    // An input may have the same name.
    let taken = schema.inputs.iter().any(|input| input.name == name);
    if is_alone && !taken { name.to_string() } else { format!("{name}_out_{k}") }
}

impl Made {
    /// The model; `outputs` are known once it ran.
    pub(super) fn model(&self, outputs: Option<&[(String, Value)]>) -> Result<ModelProto, String> {
        let mut graph = GraphProto { name: Some("generated".to_string()), ..GraphProto::default() };
        let ir_version = ir_version(self.node.domain(), self.opset);
        for given in &self.inputs {
            let mut declared = messages::declared(&given.name, &given.value);
            if self.open
                && let Ok(tensor) = given.value.tensor()
            {
                let shape = (0..tensor.rank()).map(|axis| symbol(&format!("{}_{axis}", given.name))).collect();
                declared.r#type = given.value.value_type().map(|of| messages::type_of(&of, Some(shape)));
            }
            if let (true, Ok(tensor)) = (given.constant, given.value.tensor()) {
                let tensor = messages::tensor(&given.name, tensor).map_err(|_| "too large".to_string())?;
                graph.initializer.push(tensor);
                if ir_version >= 4 {
                    continue;
                }
            }
            graph.input.push(declared);
        }
        let named = self.node.output.iter().filter(|name| !name.is_empty());
        graph.output = match outputs {
            None => {
                named.map(|name| ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() }).collect()
            }
            Some(outputs) if self.open => outputs.iter().map(|(name, value)| of_any_size(name, value)).collect(),
            Some(outputs) => outputs.iter().map(|(name, value)| messages::declared(name, value)).collect(),
        };
        graph.node = vec![self.node.clone()];
        let import =
            |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_string()), version: Some(version) };
        let mut opset_import = vec![import(self.node.domain(), self.opset)];
        if !self.node.domain().is_empty() {
            opset_import.push(import("", OTHERS));
        }
        Ok(ModelProto { ir_version: Some(ir_version), opset_import, graph: Some(graph), ..ModelProto::default() })
    }

    /// What is fed, by name.
    pub(super) fn feeds(&self) -> Inputs<'_> {
        self.inputs.iter().filter(|given| !given.constant).map(|given| (given.name.as_str(), &given.value)).collect()
    }

    /// Runs the node.
    pub(super) fn run(&self) -> Result<Vec<(String, Value)>, String> {
        let failed = |error: onnxref::Error| error.to_string();
        let bytes = self.model(None)?.encode_to_vec();
        let outputs = options().from_bytes(bytes).and_then(|model| model.run(self.feeds())).map_err(failed)?;
        Ok(outputs.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    /// The files of a case without its outputs.
    pub(super) fn files(&self, outputs: Option<&[(String, Value)]>) -> Result<Vec<(String, Bytes)>, String> {
        let failed = |_| "a value can't be written".to_string();
        let model = self.model(outputs)?;
        let mut files = vec![("model.onnx".to_string(), model.encode_to_vec().into())];
        // Of old, initializers are inputs too.
        let names: Vec<&str> = model.graph.iter().flat_map(|graph| &graph.input).map(ValueInfoProto::name).collect();
        for given in self.inputs.iter().filter(|given| !given.constant) {
            let position = names.iter().position(|name| *name == given.name).unwrap_or(0);
            files.push((set("input", position), messages::encoded(&given.name, &given.value).map_err(failed)?));
        }
        for (k, (name, value)) in outputs.unwrap_or_default().iter().enumerate() {
            let mut bytes = Vec::new();
            value.write_canonical(name, &mut bytes).map_err(|error| error.to_string())?;
            files.push((set("output", k), bytes.into()));
        }
        Ok(files)
    }

    /// The inputs and attributes, in words.
    pub(super) fn text(&self) -> String {
        let input = |given: &Given| {
            let of = given.value.value_type().map_or(String::new(), |of| format!(" {}", type_name(&of)));
            let shape = given.value.tensor().map_or(String::new(), |tensor| format!("{:?}", tensor.shape()));
            format!("{}:{of}{shape}{}", given.name, if given.constant { " constant" } else { "" })
        };
        let inputs: Vec<String> = self.inputs.iter().map(input).collect();
        let attributes: Vec<&str> = self.node.attribute.iter().map(|attribute| attribute.name()).collect();
        let attributes = if attributes.is_empty() { String::new() } else { format!("; {}", attributes.join(", ")) };
        format!("{}{attributes}", inputs.join(", "))
    }
}

fn symbol(name: &str) -> Dimension {
    Dimension { value: Some(dimension::Value::DimParam(name.to_string())), ..Dimension::default() }
}

/// A value of a type and a rank, whose sizes are not declared.
fn of_any_size(name: &str, value: &Value) -> ValueInfoProto {
    let shape = value.tensor().ok().map(|tensor| vec![Dimension::default(); tensor.rank()]);
    let r#type = value.value_type().map(|of| messages::type_of(&of, shape));
    ValueInfoProto { name: Some(name.to_string()), r#type, ..ValueInfoProto::default() }
}

/// The opset of ai.onnx in models of other domains.
pub(super) const OTHERS: i64 = 21;

/// The version of the format in the release of ONNX that brought an opset.
pub(super) fn ir_version(domain: &str, opset: i64) -> i64 {
    const SINCE: [(i64, i64); 12] = [
        (9, 4),
        (10, 5),
        (11, 6),
        (12, 7),
        (15, 8),
        (19, 9),
        (21, 10),
        (23, 11),
        (24, 12),
        (25, 13),
        (28, 14),
        (i64::MAX, 15),
    ];
    let opset = if domain.is_empty() { opset } else { OTHERS };
    SINCE.iter().take_while(|(since, _)| *since <= opset).last().map_or(3, |(_, version)| *version)
}
