#![doc = include_str!("../README.md")]
#![cfg(not(target_family = "wasm"))]

mod arenas;
mod base;
mod binding;
mod copying;
mod crossing;
mod environment;
mod failure;
mod memory;
mod metadata;
mod options;
mod pairs;
mod session;
mod table;
mod tensor;
mod types;
mod value;

pub use base::{OrtGetApiBase, OrtSessionOptionsAppendExecutionProvider_CPU};

/// The newest version of the API that is here. A program may ask for this or an older one.
pub const VERSION: u32 = ort_sys::ORT_API_VERSION;

/// The functions of the API, for `ort::set_api`.
///
/// ```
/// assert!(ort::set_api(onnxref_capi::api()));
/// assert!(ort::info().starts_with("onnxref "));
/// ```
///
/// The crate `ort` has no element types that came after INT4, so that these don't cross any more, in the whole process.
pub fn api() -> ort_sys::OrtApi {
    types::share_only();
    table::functions()
}
