//! Memory of tensors: a vector that keeps the alignment it was allocated with, or bytes that belong to someone else;
//! and memory that is used again.

use crate::error::{Error, Kind, Result};
use crate::limits::exceeded;
use bytemuck::{Pod, allocation::cast_vec, cast_slice, cast_slice_mut};
use bytes::Bytes;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// An allocation of our own.
#[derive(Debug)]
pub(crate) struct Buffer {
    words: Words,
    /// Where the memory goes when nobody holds it any more.
    home: Weak<Pool>,
}

/// The variant is the alignment, so that any vector of elements moves in and out.
#[derive(Debug, Clone)]
enum Words {
    Align1(Vec<u8>),
    Align2(Vec<u16>),
    Align4(Vec<u32>),
    Align8(Vec<u64>),
}

impl Words {
    /// `len` zero bytes at a multiple of `align`.
    fn zeroed(len: usize, align: usize) -> Words {
        match align {
            1 => Words::Align1(vec![0; len]),
            2 => Words::Align2(vec![0; len / 2]),
            4 => Words::Align4(vec![0; len / 4]),
            _ => Words::Align8(vec![0; len / 8]),
        }
    }

    /// As [`Words::zeroed`], or an error where the system doesn't have so much.
    fn try_zeroed(len: usize, align: usize) -> Result<Words> {
        // Asked for and given back at once: zeroed memory can only be had without asking, and a large piece of it
        // costs nothing until it is written.
        if len >= 1 << 20 && Vec::<u8>::new().try_reserve_exact(len).is_err() {
            return Err(Error::new(Kind::Limit, format!("the system has no {len} bytes of memory for an output")));
        }
        Ok(Words::zeroed(len, align))
    }

    fn align(&self) -> usize {
        match self {
            Words::Align1(_) => 1,
            Words::Align2(_) => 2,
            Words::Align4(_) => 4,
            Words::Align8(_) => 8,
        }
    }

    /// How many bytes it can have without growing.
    fn capacity(&self) -> usize {
        match self {
            Words::Align1(words) => words.capacity(),
            Words::Align2(words) => words.capacity() * 2,
            Words::Align4(words) => words.capacity() * 4,
            Words::Align8(words) => words.capacity() * 8,
        }
    }

    /// Makes it `len` bytes long; what is new is zero.
    fn resize(&mut self, len: usize) {
        match self {
            Words::Align1(words) => words.resize(len, 0),
            Words::Align2(words) => words.resize(len / 2, 0),
            Words::Align4(words) => words.resize(len / 4, 0),
            Words::Align8(words) => words.resize(len / 8, 0),
        }
    }

    /// Whether memory for `len` bytes is there without wasting much.
    fn suits(&self, len: usize, align: usize) -> bool {
        let capacity = self.capacity();
        self.align() == align && capacity >= len && capacity / 2 <= len + 512
    }
}

impl Buffer {
    fn new(words: Words) -> Buffer {
        Buffer { words, home: Weak::new() }
    }

    /// A vector's allocation, without a copy.
    pub(super) fn from_vec<W: Pod>(words: Vec<W>) -> Buffer {
        Buffer::new(match align_of::<W>() {
            1 => Words::Align1(cast_vec(words)),
            2 => Words::Align2(cast_vec(words)),
            4 => Words::Align4(cast_vec(words)),
            _ => Words::Align8(cast_vec(words)),
        })
    }

    /// The allocation as a vector, without a copy where its alignment is that of `W`.
    pub(super) fn into_vec<W: Pod>(mut self) -> Vec<W> {
        use bytemuck::allocation::try_cast_vec;
        let words = std::mem::replace(&mut self.words, Words::Align1(Vec::new()));
        let cast = match words {
            Words::Align1(words) => try_cast_vec(words).map_err(|(_, words)| Words::Align1(words)),
            Words::Align2(words) => try_cast_vec(words).map_err(|(_, words)| Words::Align2(words)),
            Words::Align4(words) => try_cast_vec(words).map_err(|(_, words)| Words::Align4(words)),
            Words::Align8(words) => try_cast_vec(words).map_err(|(_, words)| Words::Align8(words)),
        };
        cast.unwrap_or_else(|words| bytemuck::allocation::pod_collect_to_vec(Buffer::new(words).bytes()))
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.words {
            Words::Align1(words) => words,
            Words::Align2(words) => cast_slice(words),
            Words::Align4(words) => cast_slice(words),
            Words::Align8(words) => cast_slice(words),
        }
    }

    /// The bytes, as many as asked for, of any content.
    #[inline]
    pub(super) fn resized(&mut self, len: usize) -> &mut [u8] {
        self.words.resize(len);
        self.bytes_mut()
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.words {
            Words::Align1(words) => words,
            Words::Align2(words) => cast_slice_mut(words),
            Words::Align4(words) => cast_slice_mut(words),
            Words::Align8(words) => cast_slice_mut(words),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // It has none left if it was moved into an array.
        if self.words.capacity() >= Pool::LEAST
            && let Some(pool) = self.home.upgrade()
        {
            pool.give(std::mem::replace(&mut self.words, Words::Align1(Vec::new())));
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
    #[inline]
    pub(super) fn aligned_bytes(&self, align: usize) -> &[u8] {
        match self {
            Data::Own(buffer) => buffer.bytes(),
            Data::Shared(shared) if shared.bytes.as_ptr().addr().is_multiple_of(align) => &shared.bytes,
            Data::Shared(shared) => shared.aligned.get_or_init(|| copied(&shared.bytes, align)).bytes(),
        }
    }

    /// Bytes of memory that are held for it.
    #[inline]
    pub(super) fn held(&self) -> usize {
        match self {
            Data::Own(buffer) => buffer.words.capacity(),
            Data::Shared(shared) => shared.bytes.len(),
        }
    }

    /// The bytes in memory of our own: moved out where this is the only holder of such, else copied.
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

/// Memory of large outputs that were dropped, for the next run: the system takes longer to hand out fresh pages than
/// a kernel takes to fill them.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    kept: Mutex<Vec<Words>>,
    /// The bytes of what is kept.
    size: AtomicU64,
}

impl Pool {
    /// Smaller memory is had as quickly from the allocator.
    const LEAST: usize = 4 << 10;
    /// As many pieces are kept.
    const KEPT: usize = 4;

    fn take(&self, len: usize, align: usize) -> Option<Words> {
        let mut kept = self.kept.lock().ok()?;
        let place = kept.iter().position(|words| words.suits(len, align))?;
        let words = kept.swap_remove(place);
        self.measure(&kept);
        Some(words)
    }

    fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    fn measure(&self, kept: &[Words]) {
        self.size.store(kept.iter().map(|words| words.capacity() as u64).sum(), Ordering::Relaxed);
    }

    fn clear(&self) {
        if let Ok(mut kept) = self.kept.lock() {
            kept.clear();
            self.measure(&kept);
        }
    }

    fn give(&self, words: Words) {
        if let Ok(mut kept) = self.kept.lock() {
            if kept.len() == Self::KEPT {
                kept.remove(0);
            }
            kept.push(words);
            self.measure(&kept);
        }
    }
}

/// Where a run's outputs come from: memory of values that it needs no more, the model's pool, or the allocator.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    spare: RefCell<SmallVec<[Arc<Buffer>; 2]>>,
    pool: Arc<Pool>,
    /// Bytes of the values that the run holds.
    live: Cell<u64>,
    /// So many it may hold.
    limit: u64,
}

impl Memory {
    /// So many pieces wait for a use in this run.
    const SPARE: usize = 8;

    pub(crate) fn new(pool: Arc<Pool>, limit: u64) -> Memory {
        Memory { spare: RefCell::default(), pool, live: Cell::new(0), limit }
    }

    /// A run starts: it holds nothing.
    pub(crate) fn start(&self) {
        self.live.set(0);
    }

    /// A value that takes so many bytes is held.
    pub(crate) fn came(&self, bytes: usize) -> Result<()> {
        self.live.set(self.fits(bytes)?);
        Ok(())
    }

    /// A value that takes so many bytes is not held any more.
    pub(crate) fn gone(&self, bytes: usize) {
        self.live.set(self.live.get().saturating_sub(bytes as u64));
    }

    fn fits(&self, bytes: usize) -> Result<u64> {
        let live = self.live.get().saturating_add(bytes as u64);
        if live > self.limit {
            return Err(exceeded("run_bytes", "the run holds", live.into(), "bytes", self.limit));
        }
        Ok(live)
    }

    /// Memory for `len` bytes that nobody else holds; of another length yet. What waits for a use is given back to
    /// the system where all together would be over the limit.
    pub(super) fn take(&self, len: usize, align: usize) -> Result<Arc<Buffer>> {
        let live = self.fits(len)?;
        let mut spare = self.spare.borrow_mut();
        let waiting: u64 = spare.iter().map(|buffer| buffer.words.capacity() as u64).sum::<u64>() + self.pool.size();
        if live.saturating_add(waiting) > self.limit {
            spare.clear();
            self.pool.clear();
        } else if let Some(place) = spare.iter().position(|buffer| buffer.words.suits(len, align)) {
            return Ok(spare.swap_remove(place));
        }
        drop(spare);
        if len < Pool::LEAST {
            return Ok(Arc::new(Buffer::new(Words::zeroed(len, align))));
        }
        let words = match self.pool.take(len, align) {
            Some(words) => words,
            None => Words::try_zeroed(len, align)?,
        };
        Ok(Arc::new(Buffer { words, home: Arc::downgrade(&self.pool) }))
    }

    /// Memory that may be used again, unless somebody else holds it too.
    pub(super) fn give(&self, mut buffer: Arc<Buffer>) {
        if Arc::get_mut(&mut buffer).is_some() {
            let mut spare = self.spare.borrow_mut();
            if spare.len() < Self::SPARE {
                spare.push(buffer);
            }
        }
    }
}
