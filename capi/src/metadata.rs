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

/// A field of the model; empty if it isn't set.
fn field<'a>(model: &'a Model, name: &str) -> &'a str {
    let fields = model.metadata().iter().take(model.metadata().len() - model.metadata_props().len());
    fields.into_iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
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
        let value = model.metadata_props().iter().find(|(name, _)| *name == key);
        out.set(value.map(|(_, value)| allocator.text(value)).transpose()?.unwrap_or(std::ptr::null_mut()));
        Ok(())
    }

    /// Null if there are none.
    fn ModelMetadataGetCustomMetadataMapKeys(
        model: In<OrtModelMetadata>, allocator: Allocator, keys: Out<*mut *mut c_char>, count: Out<i64>,
    ) {
        let names = model.metadata_props().iter().map(|(name, _)| allocator.text(name));
        let names = names.collect::<crate::crossing::Result<Vec<*mut c_char>>>()?;
        keys.set(if names.is_empty() { std::ptr::null_mut() } else { allocator.copy(&names)? });
        count.set(i64::try_from(names.len()).unwrap_or(i64::MAX));
        Ok(())
    }
}
