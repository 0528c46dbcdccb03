//! Graphs, nodes and functions.

use super::message::message;
use super::{Attribute, AttributeValue, Initializer, Part, SparseInitializer, ValueInfo};

message! {
    /// What a model file holds (`ModelProto`): see [`Document`](super::Document).
    pub struct Content {
        /// The version of the format.
        ir_version: Option<i64> = 1,
        /// The program that wrote the file.
        producer_name: String = 2,
        /// Its version.
        producer_version: String = 3,
        /// The domain of the model's name.
        domain: String = 4,
        /// The version of the model.
        model_version: Option<i64> = 5,
        /// Text for people (`doc_string`).
        doc: String = 6,
        /// The graph.
        graph: Part<Graph> = 7,
        /// The opsets that nodes of the graph use (`opset_import`).
        opset_imports: Vec<Part<OpsetImport>> = 8,
        /// `metadata_props`
        metadata: Vec<Part<Entry>> = 14,
        /// The model's functions.
        functions: Vec<Part<Function>> = 25,
    }
}

message! {
    /// The version of the operators of a domain (`OperatorSetIdProto`).
    pub struct OpsetImport {
        /// The domain; empty for `ai.onnx`.
        domain: String = 1,
        /// The version.
        version: Option<i64> = 2,
    }
}

message! {
    /// A key and a value (`StringStringEntryProto`).
    pub struct Entry {
        /// The key.
        key: String = 1,
        /// The value.
        value: String = 2,
    }
}

message! {
    /// A graph (`GraphProto`): that of the model, or a body of a node.
    pub struct Graph {
        /// The nodes, in the order in which they run.
        nodes: Vec<Part<Node>> = 1,
        /// The name.
        name: String = 2,
        /// Constants, or defaults of inputs.
        initializers: Vec<Part<Initializer>> = 5,
        /// Text for people (`doc_string`).
        doc: String = 10,
        /// The inputs.
        inputs: Vec<Part<ValueInfo>> = 11,
        /// The outputs.
        outputs: Vec<Part<ValueInfo>> = 12,
        /// Types of other values.
        value_info: Vec<Part<ValueInfo>> = 13,
        /// Which tensors have the scale and the zero point of a value (`quantization_annotation`).
        quantization_annotations: Vec<Part<Annotation>> = 14,
        /// Constants that are sparse.
        sparse_initializers: Vec<Part<SparseInitializer>> = 15,
        /// `metadata_props`
        metadata: Vec<Part<Entry>> = 16,
    }
}

message! {
    /// Names of the tensors that tell how a value is quantized (`TensorAnnotation`).
    pub struct Annotation {
        /// The value.
        tensor_name: String = 1,
        /// What each tensor is for, and its name.
        parameters: Vec<Part<Entry>> = 2,
    }
}

message! {
    /// A node (`NodeProto`).
    pub struct Node {
        /// Names of values; an empty one stands for an optional input that is omitted.
        inputs: Vec<String> = 1,
        /// Names of values; an empty one stands for an optional output that is omitted.
        outputs: Vec<String> = 2,
        /// The name.
        name: String = 3,
        /// The operator.
        op_type: String = 4,
        /// The attributes.
        attributes: Vec<Part<Attribute>> = 5,
        /// Text for people (`doc_string`).
        doc: String = 6,
        /// The operator's domain; empty for `ai.onnx`.
        domain: String = 7,
        /// Which of several functions of the same name.
        overload: String = 8,
        /// `metadata_props`
        metadata: Vec<Part<Entry>> = 9,
    }
}

message! {
    /// A function of the model (`FunctionProto`).
    pub struct Function {
        /// The name, which calls have as `op_type`.
        name: String = 1,
        /// Names of the inputs.
        inputs: Vec<String> = 4,
        /// Names of the outputs.
        outputs: Vec<String> = 5,
        /// Names of attributes that each call gives.
        attributes: Vec<String> = 6,
        /// The nodes, in the order in which they run.
        nodes: Vec<Part<Node>> = 7,
        /// Text for people (`doc_string`).
        doc: String = 8,
        /// The opsets that its nodes use.
        opset_imports: Vec<Part<OpsetImport>> = 9,
        /// The domain, which calls have too.
        domain: String = 10,
        /// Attributes that a call may omit, with their defaults (`attribute_proto`).
        defaults: Vec<Part<Attribute>> = 11,
        /// Types of values.
        value_info: Vec<Part<ValueInfo>> = 12,
        /// Which of several functions of the same name.
        overload: String = 13,
        /// `metadata_props`
        metadata: Vec<Part<Entry>> = 14,
    }
}

impl OpsetImport {
    /// The version of a domain, which is empty for `ai.onnx`.
    pub fn new(domain: impl Into<String>, version: i64) -> OpsetImport {
        OpsetImport { domain: domain.into(), version: Some(version), ..OpsetImport::default() }
    }
}

impl Entry {
    /// A key with its value.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Entry {
        Entry { key: key.into(), value: value.into(), ..Entry::default() }
    }
}

impl Node {
    /// A node of an operator of `ai.onnx`.
    pub fn new<I, O>(op_type: impl Into<String>, inputs: I, outputs: O) -> Node
    where
        I: IntoIterator<Item: Into<String>>,
        O: IntoIterator<Item: Into<String>>,
    {
        let inputs = inputs.into_iter().map(Into::into).collect();
        let outputs = outputs.into_iter().map(Into::into).collect();
        Node { op_type: op_type.into(), inputs, outputs, ..Node::default() }
    }

    /// With an attribute.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Node {
        self.attributes.push(Attribute::new(name, value).into());
        self
    }

    /// With the operator's domain.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Node {
        self.domain = domain.into();
        self
    }

    /// The bodies: graphs in attributes.
    pub fn bodies(&self) -> impl Iterator<Item = &Part<Graph>> {
        self.attributes.iter().flat_map(|attribute| attribute.graphs())
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
    }
}

impl Graph {
    /// A graph without nodes.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), ..Graph::default() }
    }

    /// With an input.
    #[must_use]
    pub fn input(mut self, input: ValueInfo) -> Graph {
        self.inputs.push(input.into());
        self
    }

    /// With an output.
    #[must_use]
    pub fn output(mut self, output: ValueInfo) -> Graph {
        self.outputs.push(output.into());
        self
    }

    /// With a node.
    #[must_use]
    pub fn node(mut self, node: Node) -> Graph {
        self.nodes.push(node.into());
        self
    }

    /// With an initializer.
    #[must_use]
    pub fn initializer(mut self, initializer: Initializer) -> Graph {
        self.initializers.push(initializer.into());
        self
    }
}
