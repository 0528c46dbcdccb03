//! What a model says of itself.

use crate::crossing::{Allocator, Handle, In, Out, Text, entries, releases};
use crate::failure::Failure;
use onnxref::Model;
use ort_sys::OrtModelMetadata;
use std::ffi::c_char;

impl Handle for OrtModelMetadata {
    type Value = Model;
}

releases!(ReleaseModelMetadata: OrtModelMetadata);

/// Fields of the model, which come before its `metadata_props`.
const FIELDS: [&str; 5] = ["producer_name", "producer_version", "domain", "model_version", "doc_string"];

/// A field of the model; empty if it isn't set.
fn field<'a>(model: &'a Model, name: &str) -> &'a str {
    let fields = model.metadata().iter().take(field_count(model));
    fields.into_iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

/// Fields come first, each once and in their order.
fn field_count(model: &Model) -> usize {
    let mut left = FIELDS.iter();
    model.metadata().iter().take_while(|(key, _)| left.any(|field| field == key)).count()
}

/// The model's `metadata_props`.
fn own(model: &Model) -> impl Iterator<Item = &(String, String)> {
    model.metadata().iter().skip(field_count(model))
}

entries! {
    fn ModelMetadataGetProducerName(model: In<OrtModelMetadata>, allocator: Allocator, out: Out<*mut c_char>) {
        out.set(allocator.text(field(&model, "producer_name"))?);
        Ok(())
    }

    fn ModelMetadataGetGraphName(model: In<OrtModelMetadata>, allocator: Allocator, out: Out<*mut c_char>) {
        out.set(allocator.text(model.graph_name())?);
        Ok(())
    }

    fn ModelMetadataGetDomain(model: In<OrtModelMetadata>, allocator: Allocator, out: Out<*mut c_char>) {
        out.set(allocator.text(field(&model, "domain"))?);
        Ok(())
    }

    fn ModelMetadataGetDescription(model: In<OrtModelMetadata>, allocator: Allocator, out: Out<*mut c_char>) {
        out.set(allocator.text(field(&model, "doc_string"))?);
        Ok(())
    }

    fn ModelMetadataGetGraphDescription(model: In<OrtModelMetadata>, allocator: Allocator, out: Out<*mut c_char>) {
        out.set(allocator.text(model.graph_description())?);
        Ok(())
    }

    fn ModelMetadataGetVersion(model: In<OrtModelMetadata>, out: Out<i64>) {
        let version = field(&model, "model_version");
        out.set(if version.is_empty() { 0 } else { version.parse().map_err(|_| Failure::bug("a version is no number"))? });
        Ok(())
    }

    /// Null if there is no such key.
    fn ModelMetadataLookupCustomMetadataMap(
        model: In<OrtModelMetadata>, allocator: Allocator, key: Text, out: Out<*mut c_char>,
    ) {
        let value = own(&model).find(|(name, _)| *name == key);
        out.set(value.map(|(_, value)| allocator.text(value)).transpose()?.unwrap_or(std::ptr::null_mut()));
        Ok(())
    }

    /// Null if there are none.
    fn ModelMetadataGetCustomMetadataMapKeys(
        model: In<OrtModelMetadata>, allocator: Allocator, keys: Out<*mut *mut c_char>, count: Out<i64>,
    ) {
        let names: crate::crossing::Result<Vec<*mut c_char>> = own(&model).map(|(name, _)| allocator.text(name)).collect();
        let names = names?;
        keys.set(if names.is_empty() { std::ptr::null_mut() } else { allocator.copy(&names)? });
        count.set(i64::try_from(names.len()).unwrap_or(i64::MAX));
        Ok(())
    }
}
