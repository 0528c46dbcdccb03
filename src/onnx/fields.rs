//! The fields of the ONNX format that the scan needs.

use super::proto as p;

/// A kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Segment,
    SparseTensor,
    ValueInfo,
    Type,
    TensorType,
    SequenceType,
    MapType,
    Shape,
    Dimension,
    Opaque,
    Function,
    Training,
    Opset,
    Entry,
    Annotation,
    Device,
    NodeDevice,
    Sharding,
    DeviceGroup,
    ShardedDim,
    SimpleDim,
    Sequence,
    Map,
    Optional,
}

/// The content of a field.
#[derive(Clone, Copy)]
pub(super) enum Field {
    /// A message; whether it may be repeated.
    Message(Message, bool),
    /// A name or identifier.
    Name(bool),
    /// Other text, or bytes.
    Text(bool),
    /// Bytes that stay a slice of the file.
    Slice(bool),
    /// One number.
    Number,
    /// One number of 32 bits.
    Float,
    /// Numbers, packed or not: their size in memory, and their wire type.
    Numbers(u64, Wire),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Wire {
    Varint,
    Fixed32,
    Fixed64,
}

impl Message {
    pub(super) fn label(self) -> &'static str {
        match self {
            Message::Model => "ModelProto",
            Message::Graph => "GraphProto",
            Message::Node => "NodeProto",
            Message::Attribute => "AttributeProto",
            Message::Tensor => "TensorProto",
            Message::Segment => "TensorProto.Segment",
            Message::SparseTensor => "SparseTensorProto",
            Message::ValueInfo => "ValueInfoProto",
            Message::Type => "TypeProto",
            Message::TensorType => "TypeProto.Tensor",
            Message::SequenceType => "TypeProto.Sequence",
            Message::MapType => "TypeProto.Map",
            Message::Shape => "TensorShapeProto",
            Message::Dimension => "TensorShapeProto.Dimension",
            Message::Opaque => "TypeProto.Opaque",
            Message::Function => "FunctionProto",
            Message::Training => "TrainingInfoProto",
            Message::Opset => "OperatorSetIdProto",
            Message::Entry => "StringStringEntryProto",
            Message::Annotation => "TensorAnnotation",
            Message::Device => "DeviceConfigurationProto",
            Message::NodeDevice => "NodeDeviceConfigurationProto",
            Message::Sharding => "ShardingSpecProto",
            Message::DeviceGroup => "IntIntListEntryProto",
            Message::ShardedDim => "ShardedDimProto",
            Message::SimpleDim => "SimpleShardedDimProto",
            Message::Sequence => "SequenceProto",
            Message::Map => "MapProto",
            Message::Optional => "OptionalProto",
        }
    }

    /// Memory of a decoded message of this kind.
    pub(super) fn size(self) -> u64 {
        (match self {
            Message::Model => size_of::<p::ModelProto>(),
            Message::Graph => size_of::<p::GraphProto>(),
            Message::Node => size_of::<p::NodeProto>(),
            Message::Attribute => size_of::<p::AttributeProto>(),
            Message::Tensor => size_of::<p::TensorProto>(),
            Message::Segment => size_of::<p::tensor_proto::Segment>(),
            Message::SparseTensor => size_of::<p::SparseTensorProto>(),
            Message::ValueInfo => size_of::<p::ValueInfoProto>(),
            Message::Type | Message::TensorType | Message::SequenceType | Message::MapType => size_of::<p::TypeProto>(),
            Message::Shape => size_of::<p::TensorShapeProto>(),
            Message::Dimension => size_of::<p::tensor_shape_proto::Dimension>(),
            Message::Opaque => size_of::<p::type_proto::Opaque>(),
            Message::Function => size_of::<p::FunctionProto>(),
            Message::Training => size_of::<p::TrainingInfoProto>(),
            Message::Opset => size_of::<p::OperatorSetIdProto>(),
            Message::Entry => size_of::<p::StringStringEntryProto>(),
            Message::Annotation => size_of::<p::TensorAnnotation>(),
            Message::Device => size_of::<p::DeviceConfigurationProto>(),
            Message::NodeDevice => size_of::<p::NodeDeviceConfigurationProto>(),
            Message::Sharding => size_of::<p::ShardingSpecProto>(),
            Message::DeviceGroup => size_of::<p::IntIntListEntryProto>(),
            Message::ShardedDim => size_of::<p::ShardedDimProto>(),
            Message::SimpleDim => size_of::<p::SimpleShardedDimProto>(),
            Message::Sequence => size_of::<p::SequenceProto>(),
            Message::Map => size_of::<p::MapProto>(),
            Message::Optional => size_of::<p::OptionalProto>(),
        }) as u64
    }

    /// The content of a field of this message; `None` for an unknown field, which is skipped.
    pub(super) fn field(self, number: u32) -> Option<Field> {
        use Field::{Float, Name, Number, Numbers, Slice, Text};
        use Message::*;
        use Wire::{Fixed32, Fixed64, Varint};
        let one = |message| Some(Field::Message(message, false));
        let many = |message| Some(Field::Message(message, true));
        match (self, number) {
            (Model, 1 | 5) => Some(Number),
            (Model, 2 | 3 | 6) => Some(Text(false)),
            (Model, 4) => Some(Name(false)),
            (Model, 7) => one(Graph),
            (Model, 8) => many(Opset),
            (Model, 14) => many(Entry),
            (Model, 20) => many(Training),
            (Model, 25) => many(Function),
            (Model, 26) => many(Device),
            (Graph, 1) => many(Node),
            (Graph, 2) => Some(Name(false)),
            (Graph, 5) => many(Tensor),
            (Graph, 10) => Some(Text(false)),
            (Graph, 11..=13) => many(ValueInfo),
            (Graph, 14) => many(Annotation),
            (Graph, 15) => many(SparseTensor),
            (Graph, 16) => many(Entry),
            (Node, 1 | 2) => Some(Name(true)),
            (Node, 3 | 4 | 7 | 8) => Some(Name(false)),
            (Node, 5) => many(Attribute),
            (Node, 6) => Some(Text(false)),
            (Node, 9) => many(Entry),
            (Node, 10) => many(NodeDevice),
            (Attribute, 1 | 21) => Some(Name(false)),
            (Attribute, 2) => Some(Float),
            (Attribute, 3 | 20) => Some(Number),
            (Attribute, 4) => Some(Slice(false)),
            (Attribute, 5) => one(Tensor),
            (Attribute, 6) => one(Graph),
            (Attribute, 7) => Some(Numbers(4, Fixed32)),
            (Attribute, 8) => Some(Numbers(8, Varint)),
            (Attribute, 9) => Some(Slice(true)),
            (Attribute, 10) => many(Tensor),
            (Attribute, 11) => many(Graph),
            (Attribute, 13) => Some(Text(false)),
            (Attribute, 14) => one(Type),
            (Attribute, 15) => many(Type),
            (Attribute, 22) => one(SparseTensor),
            (Attribute, 23) => many(SparseTensor),
            // Dimensions are also copied into a shape.
            (Tensor, 1) => Some(Numbers(16, Varint)),
            (Tensor, 2 | 14) => Some(Number),
            (Tensor, 3) => one(Segment),
            (Tensor, 4) => Some(Numbers(4, Fixed32)),
            (Tensor, 5) => Some(Numbers(4, Varint)),
            (Tensor, 6) => Some(Slice(true)),
            (Tensor, 7) => Some(Numbers(8, Varint)),
            (Tensor, 11) => Some(Numbers(8, Varint)),
            (Tensor, 8) => Some(Name(false)),
            (Tensor, 9) => Some(Slice(false)),
            (Tensor, 10) => Some(Numbers(8, Fixed64)),
            (Tensor, 12) => Some(Text(false)),
            (Tensor, 13 | 16) => many(Entry),
            (Segment, 1 | 2) => Some(Number),
            (SparseTensor, 1 | 2) => one(Tensor),
            (SparseTensor, 3) => Some(Numbers(8, Varint)),
            (ValueInfo, 1) => Some(Name(false)),
            (ValueInfo, 2) => one(Type),
            (ValueInfo, 3) => Some(Text(false)),
            (ValueInfo, 4) => many(Entry),
            (Type, 1 | 8) => one(TensorType),
            (Type, 4 | 9) => one(SequenceType),
            (Type, 5) => one(MapType),
            (Type, 6) => Some(Text(false)),
            (Type, 7) => one(Opaque),
            (TensorType | MapType, 1) => Some(Number),
            (TensorType, 2) => one(Shape),
            (SequenceType, 1) | (MapType, 2) => one(Type),
            (Shape, 1) => many(Dimension),
            (Dimension, 1) => Some(Number),
            (Dimension, 2) => Some(Name(false)),
            (Dimension, 3) => Some(Text(false)),
            (Opaque, 1 | 2) => Some(Name(false)),
            (Function, 1 | 10 | 13) => Some(Name(false)),
            (Function, 4..=6) => Some(Name(true)),
            (Function, 7) => many(Node),
            (Function, 8) => Some(Text(false)),
            (Function, 9) => many(Opset),
            (Function, 11) => many(Attribute),
            (Function, 12) => many(ValueInfo),
            (Function, 14) => many(Entry),
            (Training, 1 | 2) => one(Graph),
            (Training, 3 | 4) => many(Entry),
            (Opset, 1) => Some(Name(false)),
            (Opset, 2) => Some(Number),
            (Entry, 1) => Some(Name(false)),
            (Entry, 2) => Some(Text(false)),
            (Annotation, 1) => Some(Name(false)),
            (Annotation, 2) => many(Entry),
            (Device, 1) => Some(Name(false)),
            (Device, 2) => Some(Number),
            (Device, 3) => Some(Name(true)),
            (NodeDevice, 1) => Some(Name(false)),
            (NodeDevice, 2) => many(Sharding),
            (NodeDevice, 3) => Some(Number),
            (Sharding, 1) => Some(Name(false)),
            (Sharding, 2) => Some(Numbers(8, Varint)),
            (Sharding, 3) => many(DeviceGroup),
            (Sharding, 4) => many(ShardedDim),
            (DeviceGroup, 1) => Some(Number),
            (DeviceGroup, 2) => Some(Numbers(8, Varint)),
            (ShardedDim, 1) => Some(Number),
            (ShardedDim, 2) => many(SimpleDim),
            (SimpleDim, 1 | 3) => Some(Number),
            (SimpleDim, 2) => Some(Name(false)),
            (Sequence | Map | Optional, 1) => Some(Name(false)),
            (Sequence | Map | Optional, 2) => Some(Number),
            (Sequence, 3) => many(Tensor),
            (Sequence, 4) => many(SparseTensor),
            (Sequence, 5) => many(Sequence),
            (Sequence, 6) => many(Map),
            (Sequence, 7) => many(Optional),
            (Map, 3) => Some(Numbers(8, Varint)),
            (Map, 4) => Some(Slice(true)),
            (Map, 5) => one(Sequence),
            (Optional, 3) => one(Tensor),
            (Optional, 4) => one(SparseTensor),
            (Optional, 5) => one(Sequence),
            (Optional, 6) => one(Map),
            (Optional, 7) => one(Optional),
            _ => None,
        }
    }

    /// Fields that exclude each other count as one field given twice.
    pub(super) fn once(self, number: u32) -> u32 {
        match (self, number) {
            (Message::Type, 1 | 4 | 5 | 7 | 8 | 9) => 1,
            (Message::Dimension | Message::SimpleDim, 1 | 2) => 1,
            _ => number,
        }
    }
}
