//! Memory of tensors: a vector that keeps the alignment it was allocated with, or bytes that belong to someone else.

use bytemuck::{Pod, allocation::cast_vec, cast_slice, cast_slice_mut};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// An allocation of our own. The variant is its alignment, so that any vector of elements moves in and out.
#[derive(Debug, Clone)]
pub(super) enum Buffer {
    Align1(Vec<u8>),
    Align2(Vec<u16>),
    Align4(Vec<u32>),
    Align8(Vec<u64>),
}

impl Buffer {
    /// `len` zero bytes at a multiple of `align`.
    pub(super) fn zeroed(len: usize, align: usize) -> Buffer {
        match align {
            1 => Buffer::Align1(vec![0; len]),
            2 => Buffer::Align2(vec![0; len / 2]),
            4 => Buffer::Align4(vec![0; len / 4]),
            _ => Buffer::Align8(vec![0; len / 8]),
        }
    }

    /// A vector's allocation, without a copy.
    pub(super) fn from_vec<W: Pod>(words: Vec<W>) -> Buffer {
        match align_of::<W>() {
            1 => Buffer::Align1(cast_vec(words)),
            2 => Buffer::Align2(cast_vec(words)),
            4 => Buffer::Align4(cast_vec(words)),
            _ => Buffer::Align8(cast_vec(words)),
        }
    }

    /// The allocation as a vector, without a copy where its alignment is that of `W`.
    pub(super) fn into_vec<W: Pod>(self) -> Vec<W> {
        let cast = match self {
            Buffer::Align1(words) => {
                bytemuck::allocation::try_cast_vec(words).map_err(|(_, words)| Buffer::Align1(words))
            }
            Buffer::Align2(words) => {
                bytemuck::allocation::try_cast_vec(words).map_err(|(_, words)| Buffer::Align2(words))
            }
            Buffer::Align4(words) => {
                bytemuck::allocation::try_cast_vec(words).map_err(|(_, words)| Buffer::Align4(words))
            }
            Buffer::Align8(words) => {
                bytemuck::allocation::try_cast_vec(words).map_err(|(_, words)| Buffer::Align8(words))
            }
        };
        cast.unwrap_or_else(|buffer| bytemuck::allocation::pod_collect_to_vec(buffer.bytes()))
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Buffer::Align1(words) => words,
            Buffer::Align2(words) => cast_slice(words),
            Buffer::Align4(words) => cast_slice(words),
            Buffer::Align8(words) => cast_slice(words),
        }
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Buffer::Align1(words) => words,
            Buffer::Align2(words) => cast_slice_mut(words),
            Buffer::Align4(words) => cast_slice_mut(words),
            Buffer::Align8(words) => cast_slice_mut(words),
        }
    }
}

/// A tensor's bytes, shared between its clones.
#[derive(Debug, Clone)]
pub(super) enum Data {
    Own(Arc<Buffer>),
    /// Bytes of a file, at whatever address they have there.
    Shared(Arc<Shared>),
}

#[derive(Debug)]
pub(super) struct Shared {
    bytes: Bytes,
    /// The one aligned copy, made by the first typed view if `bytes` are not aligned for it.
    aligned: OnceLock<Buffer>,
}

impl Data {
    pub(super) fn own(buffer: Buffer) -> Data {
        Data::Own(Arc::new(buffer))
    }

    pub(super) fn shared(bytes: Bytes) -> Data {
        Data::Shared(Arc::new(Shared { bytes, aligned: OnceLock::new() }))
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Data::Own(buffer) => buffer.bytes(),
            Data::Shared(shared) => &shared.bytes,
        }
    }

    /// The bytes at a multiple of `align`.
    pub(super) fn aligned_bytes(&self, align: usize) -> &[u8] {
        match self {
            Data::Own(buffer) => buffer.bytes(),
            Data::Shared(shared) if shared.bytes.as_ptr().addr().is_multiple_of(align) => &shared.bytes,
            Data::Shared(shared) => shared.aligned.get_or_init(|| copied(&shared.bytes, align)).bytes(),
        }
    }

    /// The bytes in memory of our own: moved out where this is the only holder of such, else copied.
    pub(super) fn into_buffer(self, align: usize) -> Buffer {
        match self {
            Data::Own(buffer) => Arc::try_unwrap(buffer).unwrap_or_else(|shared| (*shared).clone()),
            Data::Shared(shared) => copied(&shared.bytes, align),
        }
    }
}

fn copied(bytes: &[u8], align: usize) -> Buffer {
    let mut buffer = Buffer::zeroed(bytes.len(), align);
    buffer.bytes_mut().copy_from_slice(bytes);
    buffer
}
