//! A model whose nodes, initializers and declarations are still encoded. They are decoded one at a time while the draft
//! is made, never all at once. On the wire a message is a bytes field.

use super::proto::{OperatorSetIdProto, StringStringEntryProto, ValueInfoProto};
use bytes::Bytes;

/// The fields of a `ModelProto` that are used.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Model {
    #[prost(int64, optional, tag = "1")]
    pub(super) ir_version: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) producer_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) producer_version: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(super) domain: Option<String>,
    #[prost(int64, optional, tag = "5")]
    pub(super) model_version: Option<i64>,
    #[prost(string, optional, tag = "6")]
    pub(super) doc_string: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSetIdProto>,
    #[prost(message, repeated, tag = "14")]
    pub(super) metadata_props: Vec<StringStringEntryProto>,
    /// `TrainingInfoProto`
    #[prost(bytes = "bytes", repeated, tag = "20")]
    pub(super) training_info: Vec<Bytes>,
    /// `FunctionProto`
    #[prost(bytes = "bytes", repeated, tag = "25")]
    pub(super) functions: Vec<Bytes>,
}

/// The fields of a `GraphProto` that are used.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Graph {
    /// `NodeProto`
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) node: Vec<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) name: Option<Bytes>,
    /// `TensorProto`
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub(super) initializer: Vec<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub(super) doc_string: Option<Bytes>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfoProto>,
    /// `ValueInfoProto`
    #[prost(bytes = "bytes", repeated, tag = "13")]
    pub(super) value_info: Vec<Bytes>,
    /// `SparseTensorProto`
    #[prost(bytes = "bytes", repeated, tag = "15")]
    pub(super) sparse_initializer: Vec<Bytes>,
}
