//! What C programs link to.
#![allow(unsafe_code)]

use crate::VERSION;
use crate::crossing::{Change, entries};
use ort_sys::{OrtApi, OrtApiBase, OrtSessionOptions};
use std::ffi::c_char;
use std::sync::OnceLock;

/// onnxruntime's entry point: with it a C program finds all else.
///
/// # Safety
///
/// None of it: any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "system" fn OrtGetApiBase() -> *const OrtApiBase {
    static BASE: OrtApiBase = OrtApiBase { GetApi: get_api, GetVersionString: get_version_string };
    &raw const BASE
}

/// The functions of a version; null for 0, and for one that is newer than what is here. Older versions are the first part of
/// newer ones.
unsafe extern "system" fn get_api(version: u32) -> *const OrtApi {
    static FUNCTIONS: OnceLock<OrtApi> = OnceLock::new();
    if version == 0 || version > VERSION {
        return std::ptr::null();
    }
    std::ptr::from_ref(FUNCTIONS.get_or_init(crate::table::functions))
}

/// The version of onnxruntime whose API this is: programs read the second number. What follows says whose it is.
unsafe extern "system" fn get_version_string() -> *const c_char {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| format!("1.{VERSION}.0+onnxref-{}\0", env!("CARGO_PKG_VERSION"))).as_ptr().cast()
}

entries! {
    /// The other function that programs link to.
    fn AppendCpu(options: Change<OrtSessionOptions>, arena: i32) {
        Ok(())
    }
}

/// Asks for the CPU, which there is anyway.
///
/// # Safety
///
/// `options` is null or was made by `CreateSessionOptions`.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn OrtSessionOptionsAppendExecutionProvider_CPU(
    options: *mut OrtSessionOptions,
    arena: i32,
) -> ort_sys::OrtStatusPtr {
    // SAFETY: the same.
    unsafe { AppendCpu(options, arena) }
}
