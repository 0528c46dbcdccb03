//! Programs that use the crate `ort`: what its examples and documentation do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../../tests/common/mod.rs"]
mod common;
mod running;
mod telling;
mod values;

use anyhow::Result;
use common::proto::{GraphProto, ModelProto, StringStringEntryProto};
use common::{archive, node, one_node, typed, value};
use onnxref::{DType, Dim, Model, Tensor as Wanted, ValueType};
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session, builder::GraphOptimizationLevel};
use ort::value::{DynMapValueType, DynTensorValueType, Map, Sequence, Tensor, TensorElementType, TensorRef};
use prost::Message;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The one line that a program needs.
fn onnxref() {
    ort::set_api(onnxref_capi::api());
}

fn data(path: &str) -> std::path::PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../onnx-test-data")).join(path)
}

fn session(model: &[u8]) -> ort::Result<Session> {
    onnxref();
    Session::builder()?.commit_from_memory(model)
}

/// The files of a model in an archive.
fn files(archive: &str, model: &str) -> Vec<(String, Vec<u8>)> {
    archive::unpack(data(archive), |path| path.contains(&format!("/{model}/"))).unwrap()
}

fn file<'a>(files: &'a [(String, Vec<u8>)], name: &str) -> &'a [u8] {
    &files.iter().find(|(path, _)| path.ends_with(name)).unwrap_or_else(|| panic!("no {name}")).1
}

/// A message without its last line break.
fn message<T>(result: ort::Result<T>) -> String {
    result.err().expect("an error").message().to_string()
}
