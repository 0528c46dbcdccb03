//! The text of string tensors.

use super::memory::{Lease, Memory};
use super::{NewTensor, Shape, Tensor, byte_count};
use crate::dtype::{DType, VIEW};
use crate::error::{Error, Result};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The text that strings are views into, shared by the tensors with parts of it.
#[derive(Debug)]
pub(crate) struct Text {
    text: Box<str>,
    /// Empty for the text of a caller or a file.
    pub(super) lease: Lease,
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text { text: text.into(), lease: Lease::default() }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Tensor {
    /// The same string tensors as views into one text, so that their elements can be mixed; `None` if they can be mixed
    /// as they are. `charge` counts the bytes of the text before it is made, `step` those that were read or written.
    pub(crate) fn joined(
        tensors: &[&Tensor],
        memory: &Memory,
        charge: impl FnOnce(u64) -> Result<()>,
        mut step: impl FnMut(usize) -> Result<()>,
    ) -> Result<Option<Vec<Tensor>>> {
        let texts = || tensors.iter().map(|tensor| tensor.text.as_ref());
        let first = texts().next().flatten();
        let shared = texts().all(|text| first.zip(text).is_some_and(|(first, text)| Arc::ptr_eq(first, text)));
        if shared || tensors.first().is_none_or(|tensor| tensor.dtype() != DType::String) {
            return Ok(None);
        }
        let mut bytes = 0usize;
        for tensor in tensors {
            for string in tensor.strings()? {
                step(VIEW)?;
                bytes = bytes.saturating_add(string.len());
            }
        }
        charge(bytes as u64)?;
        let lease = memory.lease(bytes)?;
        let mut text = String::new();
        text.try_reserve_exact(bytes).map_err(|_| no_memory(bytes))?;
        for tensor in tensors {
            for string in tensor.strings()? {
                step(VIEW + string.len())?;
                text.push_str(string);
            }
        }
        let text = Arc::new(Text { text: text.into(), lease });
        let mut at = 0;
        let mut views = |tensor: &Tensor| {
            let (shape, len) = (Shape::from_slice(tensor.shape()), tensor.bytes().len());
            let mut new = NewTensor::new(DType::String, shape, len, Some(Arc::clone(&text)), memory)?;
            for (view, string) in views_mut(&mut new).zip(tensor.strings()?) {
                step(VIEW)?;
                let from = at;
                at += string.len();
                set(view, from, at);
            }
            Ok(new.finish())
        };
        tensors.iter().map(|tensor| views(tensor)).collect::<Result<Vec<Tensor>>>().map(Some)
    }

    /// A tensor of new strings. Their text counts while it grows.
    pub(crate) fn of_strings<S: AsRef<str>>(
        shape: &[usize],
        memory: &Memory,
        mut strings: impl Iterator<Item = Result<S>>,
    ) -> Result<Tensor> {
        let len = byte_count(DType::String, shape)?;
        let mut new = NewTensor::new(DType::String, Shape::from_slice(shape), len, None, memory)?;
        let (mut text, mut lease) = (String::new(), Lease::default());
        for view in views_mut(&mut new) {
            let string = strings.next().unwrap_or_else(|| Err(Error::bug("there are too few strings")))?;
            let (from, to) = (text.len(), text.len() + string.as_ref().len());
            if to > text.capacity() {
                let bytes = to.max(2 * text.capacity());
                // The old and the new memory are there at one time.
                let larger = memory.lease(bytes)?;
                text.try_reserve_exact(bytes - from).map_err(|_| no_memory(bytes))?;
                drop(std::mem::replace(&mut lease, larger));
            }
            text.push_str(string.as_ref());
            set(view, from, to);
        }
        if text.len() < text.capacity() {
            drop(std::mem::replace(&mut lease, memory.lease(text.len())?));
        }
        new.text = Some(Arc::new(Text { text: text.into(), lease }));
        Ok(new.finish())
    }
}

/// Writes the view of a part of a string, whose own view is given. An empty part may be that of any string.
pub(crate) fn view_part(string: &[u8], part: Range<usize>, to: &mut [u8]) {
    let start = string.first_chunk().map_or(0, |from| u64::from_le_bytes(*from));
    if let Some(view) = to.as_chunks_mut().0.first_chunk_mut::<2>() {
        set(view, start as usize + part.start, start as usize + part.end);
    }
}

/// The views of new strings into their text.
fn views_mut(new: &mut NewTensor) -> impl Iterator<Item = &mut [[u8; 8]]> {
    new.bytes_mut().as_chunks_mut().0.chunks_exact_mut(2)
}

fn set(view: &mut [[u8; 8]], from: usize, to: usize) {
    for (end, at) in view.iter_mut().zip([from, to]) {
        *end = u64::to_le_bytes(at as u64);
    }
}

fn no_memory(bytes: usize) -> Error {
    Error::out_of_memory("the text of the strings", bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(tensors: &[&Tensor], memory: &Memory) -> Result<Option<Vec<Tensor>>> {
        Tensor::joined(tensors, memory, |_| Ok(()), |_| Ok(()))
    }

    #[test]
    fn strings_keep_their_values() {
        let memory = Memory::new(1000);
        let left = Tensor::from_strings(&[2], ["añ", ""]).unwrap();
        let right = Tensor::from_strings(&[1, 1], ["b"]).unwrap();
        let both = joined(&[&left, &right], &memory).unwrap().unwrap();
        assert_eq!(both, [left.clone(), right]);
        assert!(Arc::ptr_eq(both[0].text.as_ref().unwrap(), both[1].text.as_ref().unwrap()));
        assert_eq!(joined(&[&both[0], &both[1]], &memory).unwrap(), None);
        assert_eq!(joined(&[&Tensor::scalar(1i8)], &memory).unwrap(), None);
    }

    #[test]
    fn the_text_counts_until_it_is_freed_or_handed_out() {
        let memory = Memory::new(1000);
        let long = Tensor::from_strings(&[1], ["x".repeat(300)]).unwrap();
        let other = Tensor::from_strings(&[1], ["y"]).unwrap();
        let first = joined(&[&long, &other], &memory).unwrap().unwrap();
        assert_eq!(memory.live(), 301 + 2 * 16);
        let second = joined(&[&long, &long, &other], &memory).unwrap().unwrap();
        assert_eq!(joined(&[&long, &other], &memory).unwrap_err().place().limit, Some("run_bytes"));
        second.iter().for_each(|tensor| tensor.hand_out(&memory));
        drop(first);
        assert_eq!(memory.live(), 0);
    }
}
