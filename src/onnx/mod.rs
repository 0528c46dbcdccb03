//! Everything that knows protobuf: from the messages of an `.onnx` file to tensors, attributes and graphs.

mod attribute;
mod bodies;
mod external;
mod fields;
mod functions;
mod graph;
mod operators;
mod opsets;
mod scan;
mod shallow;
mod sparse;
mod tensor;
mod types;
mod value;
mod write;

/// The messages of the ONNX format, made from `proto/onnx.proto`.
#[cfg(not(feature = "protoc"))]
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
#[rustfmt::skip] // as the generator writes it
pub mod proto;

/// The messages of the ONNX format, made from `proto/onnx.proto`.
#[cfg(feature = "protoc")]
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}

pub use external::External;
pub(crate) use graph::load;
pub(crate) use scan::{check_head, check_model, field_at};
pub(crate) use write::{MAX_MESSAGE, varint};
