//! Parts of a document, which know the bytes that they were read from.

use crate::error::Result;
use bytes::Bytes;
use std::ops::{Deref, DerefMut};

/// A part of a document: a message of the file. A part that nobody changes is written as the bytes that it was read from.
/// To change it forgets them, and those of the parts around it, but not those of the parts in it.
///
/// ```
/// use onnxref::document::Document;
///
/// let path = "onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx";
/// let mut document = Document::read(path)?;
/// assert!(document.graph.nodes[0].is_unchanged());
/// document.graph.nodes[0].name = "first".to_string();
/// assert!(!document.graph.is_unchanged() && !document.graph.nodes[0].is_unchanged());
/// assert!(document.graph.inputs[0].is_unchanged());
/// # Ok::<(), onnxref::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Part<T> {
    value: T,
    /// The bytes that it was read from, as long as it is what they say.
    source: Option<Bytes>,
}

impl<T> Part<T> {
    /// A new part.
    pub fn new(value: T) -> Part<T> {
        Part { value, source: None }
    }

    pub(super) fn read(value: T, source: Bytes) -> Part<T> {
        Part { value, source: Some(source) }
    }

    pub(super) fn source(&self) -> Option<&Bytes> {
        self.source.as_ref()
    }

    /// Whether it is written as the bytes that it was read from.
    pub fn is_unchanged(&self) -> bool {
        self.source.is_some()
    }

    /// What the part holds.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Changes what the part holds, if `change` returns true. What it changes while it returns false may not be written.
    pub fn change_if(&mut self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let changed = change(&mut self.value);
        if changed {
            self.source = None;
        }
        changed
    }
}

impl<T> Part<T> {
    /// As [`Part::change_if`], of a change that may fail. What it changes then may not be written.
    pub(super) fn try_change(&mut self, change: impl FnOnce(&mut T) -> Result<bool>) -> Result<bool> {
        let changed = change(&mut self.value)?;
        if changed {
            self.source = None;
        }
        Ok(changed)
    }
}

impl<T> From<T> for Part<T> {
    fn from(value: T) -> Part<T> {
        Part::new(value)
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.source = None;
        &mut self.value
    }
}

/// Compares what the parts hold.
impl<T: PartialEq> PartialEq for Part<T> {
    fn eq(&self, other: &Part<T>) -> bool {
        self.value == other.value
    }
}

/// Fields of a message that have no name here: those of later versions of the format, and those that no program that
/// changes models needs. They are written after the others, as they were read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fields(Vec<(u32, Bytes)>);

impl Fields {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(number, _)| *number)
    }

    /// Removes the fields with a number. Returns whether there were any.
    pub fn remove(&mut self, number: u32) -> bool {
        let before = self.0.len();
        self.0.retain(|(other, _)| *other != number);
        self.0.len() < before
    }

    /// A field with its key.
    pub(super) fn push(&mut self, number: u32, field: Bytes) {
        self.0.push((number, field));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter().map(|(_, field)| field)
    }
}
