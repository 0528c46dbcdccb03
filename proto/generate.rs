//! How `onnx.proto` becomes Rust: shared by `build.rs` and `tests/proto.rs`,
//! so that both make the same types.

use prost_build::Config;

/// The definitions, and the directory they are looked up in.
pub(crate) const PROTO: &str = "proto/onnx.proto";
pub(crate) const INCLUDE: &str = "proto";

/// The file that prost-build writes, called after the package.
pub(crate) const OUTPUT: &str = "onnx.rs";

pub(crate) fn config() -> Config {
    let mut config = Config::new();
    // Weights stay slices of the buffer that the model was read into.
    config.bytes(["."]);
    // Rarely set and large: in place they would swell every attribute or tensor.
    for field in [
        "AttributeProto.t",
        "AttributeProto.g",
        "AttributeProto.tp",
        "AttributeProto.sparse_tensor",
        "TensorProto.segment",
        "SparseTensorProto.values",
        "SparseTensorProto.indices",
        "OptionalProto.tensor_value",
    ] {
        config.boxed(format!(".onnx.{field}"));
    }
    config
}
