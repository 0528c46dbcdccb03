//! A pool of free buffers, from which the one that fits best is taken.

use super::buffer::Buffer;
use std::sync::Arc;

/// Free buffers, the smallest first; of equal ones the latest.
#[derive(Debug, Default)]
pub(super) struct Pool {
    waiting: Vec<Waiting>,
    bytes: u64,
    /// Number of buffers that came.
    came: u64,
}

#[derive(Debug)]
struct Waiting {
    capacity: usize,
    /// The number of buffers that came before.
    age: u64,
    buffer: Arc<Buffer>,
}

impl Pool {
    /// Maximum number of buffers.
    const MOST: usize = 256;

    /// Maximum number of small ones: allocating again is as fast.
    const MOST_SMALL: usize = 8;

    /// Smaller buffers are small.
    pub(super) const LARGE: usize = 4 << 10;

    /// Bytes of all buffers.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the smallest buffer with room for `len` bytes that wastes little, or nothing if `exactly`.
    #[inline]
    pub(super) fn take(&mut self, len: usize, align: usize, exactly: bool) -> Option<Arc<Buffer>> {
        let first = self.waiting.partition_point(|waiting| waiting.capacity < len);
        let place = self.waiting.iter().skip(first).position(|waiting| {
            let suits = waiting.buffer.words.suits(len, align);
            suits && (!exactly || waiting.capacity == len)
        })?;
        let Waiting { capacity, buffer, .. } = self.waiting.remove(first + place);
        self.bytes -= capacity as u64;
        Some(buffer)
    }

    /// Adds a buffer, and hands the oldest ones to `free` until all have at most `most` bytes.
    #[inline]
    pub(super) fn give(&mut self, buffer: Arc<Buffer>, most: u64, free: impl Fn(Arc<Buffer>)) {
        let capacity = buffer.words.capacity();
        let last_small = self.waiting.get(Pool::MOST_SMALL - 1);
        if capacity < Pool::LARGE && last_small.is_some_and(|last| last.capacity < Pool::LARGE) {
            return free(buffer);
        }
        let place = self.waiting.partition_point(|waiting| waiting.capacity < capacity);
        self.waiting.insert(place, Waiting { capacity, age: self.came, buffer });
        (self.bytes, self.came) = (self.bytes + capacity as u64, self.came + 1);
        while self.bytes > most || self.waiting.len() > Pool::MOST {
            let oldest = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| waiting.age);
            let Some((place, _)) = oldest else { break };
            let Waiting { capacity, buffer, .. } = self.waiting.remove(place);
            self.bytes -= capacity as u64;
            free(buffer);
        }
    }

    /// Takes all buffers.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Arc<Buffer>> + use<> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting).into_iter().map(|waiting| waiting.buffer)
    }
}
