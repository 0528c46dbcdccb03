// Of several definitions of a link the first counts: the README's links to guides lead to modules here.
#![doc = "[embed]: guides::embed"]
#![doc = "[custom_operator]: guides::custom_operator"]
#![doc = "[embedding_tables]: guides::embedding_tables"]
#![doc = "[batch_jobs]: guides::batch_jobs"]
#![doc = "[threads]: guides::threads"]
#![doc = "[errors]: guides::errors"]
#![doc = "[checking]: guides::checking"]
#![doc = "[changing]: guides::changing"]
#![doc = "[test_engine]: guides::test_engine"]
#![doc = ""]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// What only operators and files of a feature use.
#![cfg_attr(
    not(all(feature = "image", feature = "ml", feature = "openvino", feature = "signal", feature = "text")),
    allow(dead_code, unused_imports)
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

#[cfg(target_endian = "big")]
compile_error!("onnxref runs on little-endian machines only: tensors are the bytes of model files");

pub mod conformance;
pub mod document;
mod dtype;
mod error;
mod files;
mod graph;
#[cfg(any(doc, doctest))]
pub mod guides;
mod limits;
mod model;
mod onnx;
mod openvino;
pub mod operator;
mod ops;
mod registry;
pub mod schema;
mod tensor;
mod value;

/// What a model holds, and what was made of it: [`LoadOptions::inspect`].
pub mod inspect {
    pub use crate::files::FunctionInfo;
    pub use crate::graph::{Fate, GraphDetails, MemoryPlan, NodeDetails, Origin, ValueDetails, macs};
    pub use crate::model::Inspection;
}

pub use dtype::{DType, DTypes, Element};
pub use error::{Error, Kind, Missing, Needs, Place, Remedy, Result, quote};
pub use graph::{NodeInfo, Scope, ValueInfo, Watch};
#[doc(inline)]
pub use kernels::available_threads;
pub use limits::Limits;
pub use model::{Inputs, IntoBytes, LoadOptions, Model, Outputs, Runner};
pub use operator::{Cancel, Compatibility};
pub use registry::{Support, supported};
pub use tensor::{Scalar, Tensor};
pub use value::{Dim, Formula, Map, Optional, Sequence, TypeSet, Value, ValueType};

// The crates whose types appear in signatures.
#[cfg(feature = "ndarray")]
pub use ndarray;
#[cfg(feature = "num-complex")]
pub use num_complex;
pub use {bytes, half};
