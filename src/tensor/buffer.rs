//! Storage of a tensor's bytes: a vector that keeps its original alignment, or bytes shared with someone else.

use super::memory::{Lease, Memory};
use super::pool::Pool;
use crate::error::Result;
use bytemuck::{Pod, allocation::cast_vec, cast_slice, cast_slice_mut};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// An owned allocation.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(super) words: Words,
    pub(super) lease: Lease,
}

/// The variant is the alignment, so that any vector of elements moves in and out of the same memory.
#[derive(Debug, Clone)]
pub(super) enum Words {
    /// A few bytes, at any alignment: scalars and shapes need no allocation.
    Few {
        words: [u64; Words::FEW / 8],
        len: u8,
    },
    Align1(Run<u8>),
    Align2(Run<u16>),
    Align4(Run<u32>),
    Align8(Run<u64>),
}

/// What follows the first few words of a vector. These are left out so that the others begin where a line of the processor's
/// cache does: vectors that cross two of them are read and written slowly.
#[derive(Debug, Clone, Default)]
pub(super) struct Run<W> {
    all: Vec<W>,
    before: u8,
    /// Words of the allocation that are there for that alone.
    spare: u8,
}

impl<W: Pod> Run<W> {
    /// The longest line of a cache that is usual.
    const LINE: usize = 64;

    /// `len` bytes of zeros.
    fn zeroed(len: usize) -> Run<W> {
        let count = len / size_of::<W>();
        let spare = if len < Pool::LARGE { 0 } else { Run::<W>::LINE / size_of::<W>() - 1 };
        let mut all = vec![W::zeroed(); count + spare];
        let before = match spare {
            0 => 0,
            _ => all.as_ptr().addr().wrapping_neg() % Run::<W>::LINE / size_of::<W>(),
        };
        all.truncate(before + count);
        Run { all, before: before as u8, spare: spare as u8 }
    }

    fn bytes(&self) -> &[u8] {
        cast_slice(self.all.get(self.before.into()..).unwrap_or(&[]))
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        cast_slice_mut(self.all.get_mut(self.before.into()..).unwrap_or(&mut []))
    }

    /// Bytes that fit without growing.
    fn capacity(&self) -> usize {
        (self.all.capacity() - usize::from(self.spare)) * size_of::<W>()
    }

    fn resize(&mut self, len: usize) {
        self.all.resize(usize::from(self.before) + len / size_of::<W>(), W::zeroed());
    }

    /// The words, moved to the beginning.
    fn into_vec(mut self) -> Vec<W> {
        self.all.drain(..usize::from(self.before));
        self.all
    }
}

impl<W> From<Vec<W>> for Run<W> {
    fn from(all: Vec<W>) -> Run<W> {
        Run { all, before: 0, spare: 0 }
    }
}

impl Default for Words {
    fn default() -> Words {
        Words::Align1(Run::default())
    }
}

impl Words {
    const FEW: usize = 32;

    /// `len` zero bytes, aligned to `align`.
    pub(super) fn zeroed(len: usize, align: usize) -> Words {
        match align {
            _ if len <= Words::FEW => Words::Few { words: [0; Words::FEW / 8], len: len as u8 },
            1 => Words::Align1(Run::zeroed(len)),
            2 => Words::Align2(Run::zeroed(len)),
            4 => Words::Align4(Run::zeroed(len)),
            _ => Words::Align8(Run::zeroed(len)),
        }
    }

    /// Bytes that fit without growing.
    pub(super) fn capacity(&self) -> usize {
        match self {
            Words::Few { .. } => Words::FEW,
            Words::Align1(words) => words.capacity(),
            Words::Align2(words) => words.capacity(),
            Words::Align4(words) => words.capacity(),
            Words::Align8(words) => words.capacity(),
        }
    }

    /// Sets the length to `len` bytes, which must [suit](Words::suits); their content is unspecified.
    fn resize(&mut self, len: usize) {
        match self {
            Words::Few { len: own, .. } => *own = len as u8,
            Words::Align1(words) => words.resize(len),
            Words::Align2(words) => words.resize(len),
            Words::Align4(words) => words.resize(len),
            Words::Align8(words) => words.resize(len),
        }
    }

    /// Whether `len` bytes fit without wasting much.
    pub(super) fn suits(&self, len: usize, align: usize) -> bool {
        let fits = match self {
            Words::Few { .. } => true,
            Words::Align1(_) => align == 1,
            Words::Align2(_) => align == 2,
            Words::Align4(_) => align == 4,
            Words::Align8(_) => align == 8,
        };
        let capacity = self.capacity();
        fits && capacity >= len && capacity / 2 <= len + 512
    }
}

impl Buffer {
    /// Bytes that a buffer takes beside its elements, with the counters of its holders.
    pub(crate) const BESIDE: usize = size_of::<Buffer>() + 2 * size_of::<usize>();

    fn new(words: Words) -> Buffer {
        Buffer { words, lease: Lease::default() }
    }

    /// A vector's allocation, without a copy.
    pub(super) fn from_vec<W: Pod>(words: Vec<W>) -> Buffer {
        Buffer::new(match align_of::<W>() {
            1 => Words::Align1(cast_vec(words).into()),
            2 => Words::Align2(cast_vec(words).into()),
            4 => Words::Align4(cast_vec(words).into()),
            _ => Words::Align8(cast_vec(words).into()),
        })
    }

    /// The allocation as a vector: the same one if its alignment is that of `W`.
    pub(super) fn into_vec<W: Pod>(mut self) -> Vec<W> {
        use bytemuck::allocation::try_cast_vec;
        let words = std::mem::take(&mut self.words);
        let cast = match words {
            Words::Few { .. } => Err(words),
            Words::Align1(words) => try_cast_vec(words.into_vec()).map_err(|(_, words)| Words::Align1(words.into())),
            Words::Align2(words) => try_cast_vec(words.into_vec()).map_err(|(_, words)| Words::Align2(words.into())),
            Words::Align4(words) => try_cast_vec(words.into_vec()).map_err(|(_, words)| Words::Align4(words.into())),
            Words::Align8(words) => try_cast_vec(words.into_vec()).map_err(|(_, words)| Words::Align8(words.into())),
        };
        cast.unwrap_or_else(|words| bytemuck::allocation::pod_collect_to_vec(Buffer::new(words).bytes()))
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.words {
            Words::Few { words, len } => cast_slice(words).get(..*len as usize).unwrap_or(&[]),
            Words::Align1(words) => words.bytes(),
            Words::Align2(words) => words.bytes(),
            Words::Align4(words) => words.bytes(),
            Words::Align8(words) => words.bytes(),
        }
    }

    /// The bytes, `len` of them, with unspecified content.
    #[inline]
    pub(super) fn resized(&mut self, len: usize) -> &mut [u8] {
        self.words.resize(len);
        self.bytes_mut()
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.words {
            Words::Few { words, len } => cast_slice_mut(words).get_mut(..*len as usize).unwrap_or(&mut []),
            Words::Align1(words) => words.bytes_mut(),
            Words::Align2(words) => words.bytes_mut(),
            Words::Align4(words) => words.bytes_mut(),
            Words::Align8(words) => words.bytes_mut(),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.lease.come_back(&mut self.words);
    }
}

/// A tensor's bytes, shared between its clones.
#[derive(Debug, Clone)]
pub(super) enum Data {
    Own(Arc<Buffer>),
    /// Bytes of a file or a caller, at any address.
    Shared(Arc<Shared>),
}

#[derive(Debug)]
pub(super) struct Shared {
    bytes: Bytes,
    /// The one aligned copy, made by the first typed view if `bytes` are not aligned for it.
    aligned: OnceLock<Buffer>,
    lease: Lease,
}

impl Data {
    pub(super) fn own(buffer: Buffer) -> Data {
        Data::Own(Arc::new(buffer))
    }

    pub(super) fn shared(bytes: Bytes) -> Data {
        Data::Shared(Arc::new(Shared { bytes, aligned: OnceLock::new(), lease: Lease::default() }))
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Data::Own(buffer) => buffer.bytes(),
            Data::Shared(shared) => &shared.bytes,
        }
    }

    /// The bytes, aligned to `align`.
    #[inline]
    pub(super) fn aligned_bytes(&self, align: usize) -> &[u8] {
        match self {
            Data::Own(buffer) => buffer.bytes(),
            Data::Shared(shared) if shared.bytes.as_ptr().addr().is_multiple_of(align) => &shared.bytes,
            Data::Shared(shared) => shared.aligned.get_or_init(|| copied(&shared.bytes, align)).bytes(),
        }
    }

    /// Whether an aligned copy was made.
    #[cfg(test)]
    pub(super) fn is_copied(&self) -> bool {
        matches!(self, Data::Shared(shared) if shared.aligned.get().is_some())
    }

    /// The bytes; others may share them.
    pub(super) fn into_bytes(self) -> Bytes {
        /// Makes a buffer an owner of `Bytes`.
        struct Shown(Arc<Buffer>);
        impl AsRef<[u8]> for Shown {
            fn as_ref(&self) -> &[u8] {
                self.0.bytes()
            }
        }
        match self {
            Data::Own(buffer) => Bytes::from_owner(Shown(buffer)),
            Data::Shared(shared) => shared.bytes.clone(),
        }
    }

    /// Counts memory that didn't come from `memory` and that nobody else holds. Returns whether it did.
    pub(super) fn adopt(&mut self, memory: &Memory) -> Result<bool> {
        let (lease, bytes) = match self {
            Data::Own(buffer) => match Arc::get_mut(buffer) {
                Some(Buffer { words, lease }) => (lease, words.capacity()),
                None => return Ok(false),
            },
            Data::Shared(shared) => match Arc::get_mut(shared) {
                Some(Shared { bytes, lease, .. }) => (lease, bytes.len()),
                None => return Ok(false),
            },
        };
        let new = lease.is_none();
        if new {
            *lease = memory.lease(bytes)?;
        }
        Ok(new)
    }

    /// Stops counting memory that leaves with the outputs of a run.
    #[inline]
    pub(super) fn hand_out(&self, memory: &Memory) {
        match self {
            Data::Own(buffer) => memory.hand_out(&buffer.lease),
            Data::Shared(shared) => memory.hand_out(&shared.lease),
        }
    }

    /// Bytes of memory held.
    pub(super) fn held(&self) -> usize {
        match self {
            Data::Own(buffer) => buffer.words.capacity(),
            Data::Shared(shared) => shared.bytes.len(),
        }
    }

    /// The bytes in owned memory: moved out if this is its only holder, else copied.
    pub(super) fn into_buffer(self, align: usize) -> Buffer {
        match self {
            Data::Own(buffer) => Arc::try_unwrap(buffer).unwrap_or_else(|shared| Buffer::new(shared.words.clone())),
            Data::Shared(shared) => copied(&shared.bytes, align),
        }
    }
}

fn copied(bytes: &[u8], align: usize) -> Buffer {
    let mut buffer = Buffer::new(Words::zeroed(bytes.len(), align));
    buffer.bytes_mut().copy_from_slice(bytes);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Large memory begins where a line of the cache does, at first and with another length; its words move out as they are.
    #[test]
    fn large_memory_begins_with_a_line() {
        for (len, align) in [(4096, 1), (5000, 2), (4096, 4), (1 << 16, 8), (64, 4)] {
            let mut buffer = Buffer::new(Words::zeroed(len, align));
            assert_eq!((buffer.bytes().len(), buffer.words.capacity()), (len, len), "{align}");
            let count = len / 16 * 8;
            let small = buffer.resized(count);
            small.fill(7);
            assert!(len < Pool::LARGE || small.as_ptr().addr().is_multiple_of(64), "{len}, {align}");
            let copy = Buffer::new(buffer.words.clone());
            assert_eq!(copy.bytes(), vec![7; count]);
            match align {
                1 => assert_eq!(buffer.into_vec::<u8>(), vec![7; count]),
                2 => assert_eq!(buffer.into_vec::<u16>(), vec![0x0707; count / 2]),
                4 => assert_eq!(buffer.into_vec::<u32>(), vec![0x0707_0707; count / 4]),
                _ => assert_eq!(buffer.into_vec::<u64>(), vec![0x0707_0707_0707_0707; count / 8]),
            }
        }
    }
}
