//! The memory of runs: a ledger that counts each buffer once, and pools of free buffers.
//!
//! A buffer that a run releases goes to the pool of its `Memory`; one that others drop, on any thread, to the ledger's.
//!
//! A buffer counts until it is freed, however many tensors share it, and also in a pool. A buffer handed out with the
//! outputs of a run stops counting; when its last holder drops it, it returns to the ledger's pool.

use super::buffer::{Buffer, Words};
use crate::error::{Error, Result};
use crate::limits::exceeded;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Allocates the outputs of runs, one run at a time.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The pool of free buffers.
    waiting: RefCell<SmallVec<[Arc<Buffer>; Memory::MOST]>>,
    ledger: Arc<Ledger>,
}

#[derive(Debug)]
struct Ledger {
    /// The pool of buffers that others dropped, and their number.
    returned: Mutex<Vec<Arc<Buffer>>>,
    count: AtomicUsize,
    /// Bytes of all buffers, including pooled ones.
    live: AtomicU64,
    limit: u64,
}

impl Ledger {
    /// Smaller buffers are freed when others drop them: allocating again is as fast.
    const LEAST: usize = 4 << 10;

    fn returned(&self) -> MutexGuard<'_, Vec<Arc<Buffer>>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `bytes` more. Fails if that exceeds the limit.
    fn count(&self, bytes: u64) -> Result<()> {
        let live = self.live.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if live > self.limit {
            self.live.fetch_sub(bytes, Relaxed);
            return Err(exceeded("run_bytes", "the run holds", live.into(), "bytes", self.limit));
        }
        Ok(())
    }
}

/// The entry of a buffer in a ledger; empty for memory of a caller or a file. Dropping it removes the entry.
#[derive(Debug, Default)]
pub(super) struct Lease {
    ledger: Weak<Ledger>,
    counted: AtomicU64,
}

impl Lease {
    /// The buffer is in no ledger.
    pub(super) fn is_none(&self) -> bool {
        self.ledger.strong_count() == 0
    }

    /// Called when the last holder drops the buffer: pools it if it is large enough.
    pub(super) fn come_back(&mut self, words: &mut Words) {
        let bytes = words.capacity();
        if bytes < Ledger::LEAST {
            return;
        }
        let Some(ledger) = self.ledger.upgrade() else { return };
        let mut returned = ledger.returned();
        if returned.len() == Memory::MOST {
            return;
        }
        if self.counted.load(Relaxed) == 0 {
            if ledger.count(bytes as u64).is_err() {
                return;
            }
            self.counted.store(bytes as u64, Relaxed);
        }
        returned.push(Arc::new(Buffer { words: std::mem::take(words), lease: std::mem::take(self) }));
        ledger.count.store(returned.len(), Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let bytes = *self.counted.get_mut();
        if bytes > 0
            && let Some(ledger) = self.ledger.upgrade()
        {
            ledger.live.fetch_sub(bytes, Relaxed);
        }
    }
}

/// Memory that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    lease: Lease,
}

impl Counted {
    /// Stops counting memory that leaves with the outputs of a run.
    pub(crate) fn hand_out(&self, memory: &Memory) {
        memory.hand_out(&self.lease);
    }
}

impl Memory {
    /// Counts memory that is no tensor's: lists.
    pub(crate) fn count(&self, bytes: usize) -> Result<Counted> {
        Ok(Counted { lease: self.lease(bytes)? })
    }

    /// Maximum number of pooled buffers: here, and again in the ledger.
    const MOST: usize = 8;

    /// Holds at most `limit` bytes at one time.
    pub(crate) fn new(limit: u64) -> Memory {
        let (returned, count, live) = Default::default();
        Memory { waiting: RefCell::default(), ledger: Arc::new(Ledger { returned, count, live, limit }) }
    }

    /// A free buffer with room for `len` bytes; its length may differ. Frees pooled buffers if the limit would be
    /// exceeded.
    #[inline]
    pub(super) fn take(&self, len: usize, align: usize) -> Result<Arc<Buffer>> {
        let mut waiting = self.waiting.borrow_mut();
        // Prefer one that wastes nothing; else, while there is room, one that wastes little. The most recent one is the
        // likeliest to be in the caches.
        let room = self.ledger.live.load(Relaxed).saturating_add(len as u64) <= self.ledger.limit;
        let fits = |buffer: &Arc<Buffer>| buffer.words.suits(len, align) && (room || buffer.words.capacity() == len);
        if let Some(place) = waiting.iter().rposition(fits) {
            return Ok(waiting.swap_remove(place));
        }
        if self.ledger.count.load(Relaxed) > 0 {
            let mut returned = self.ledger.returned();
            let found = returned.iter().rposition(fits).map(|place| returned.swap_remove(place));
            let freed = if room { Vec::new() } else { std::mem::take(&mut *returned) };
            self.ledger.count.store(returned.len(), Relaxed);
            drop(returned);
            if let Some(found) = found {
                return Ok(found);
            }
            freed.into_iter().for_each(free);
        }
        if !room {
            waiting.drain(..).for_each(free);
        }
        drop(waiting);
        self.allocate(len, align)
    }

    fn allocate(&self, len: usize, align: usize) -> Result<Arc<Buffer>> {
        let lease = self.lease(len)?;
        // A trial allocation, freed at once: the zeroed one below can't report failure. A large one costs nothing until it
        // is written.
        if len >= 1 << 20 && Vec::<u8>::new().try_reserve_exact(len).is_err() {
            return Err(Error::out_of_memory("the output", len as u64));
        }
        Ok(Arc::new(Buffer { words: Words::zeroed(len, align), lease }))
    }

    /// Counts `bytes`.
    pub(super) fn lease(&self, bytes: usize) -> Result<Lease> {
        self.ledger.count(bytes as u64)?;
        Ok(Lease { ledger: Arc::downgrade(&self.ledger), counted: AtomicU64::new(bytes as u64) })
    }

    #[cfg(test)]
    pub(crate) fn live(&self) -> u64 {
        self.ledger.live.load(Relaxed)
    }

    /// Stops counting a buffer that leaves with the outputs of a run.
    #[inline]
    pub(super) fn hand_out(&self, lease: &Lease) {
        let bytes = lease.counted.load(Relaxed);
        // Only this run changes the count of a buffer that it holds.
        if bytes > 0 && std::ptr::eq(lease.ledger.as_ptr(), Arc::as_ptr(&self.ledger)) {
            lease.counted.store(0, Relaxed);
            self.ledger.live.fetch_sub(bytes, Relaxed);
        }
    }

    /// Keeps a buffer for reuse. If others hold it too, it stops counting instead.
    pub(super) fn give(&self, mut buffer: Arc<Buffer>) {
        let Some(own) = Arc::get_mut(&mut buffer) else { return self.hand_out(&buffer.lease) };
        if own.lease.counted.load(Relaxed) == 0 {
            match self.lease(own.words.capacity()) {
                Ok(lease) => own.lease = lease,
                Err(_) => return free(buffer),
            }
        }
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() < Memory::MOST {
            waiting.push(buffer);
        } else {
            free(buffer);
        }
    }
}

/// Frees a buffer without pooling it, unless others hold it too.
fn free(mut buffer: Arc<Buffer>) {
    if let Some(buffer) = Arc::get_mut(&mut buffer) {
        buffer.lease = Lease::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_buffer_counts_once_until_it_is_freed() {
        let memory = Memory::new(100_000);
        let first = memory.take(40_000, 4).unwrap();
        let shared = first.clone();
        assert_eq!(memory.live(), 40_000);
        drop(first);
        assert_eq!(memory.live(), 40_000);
        // It waits, and counts.
        drop(shared);
        assert_eq!(memory.live(), 40_000);
        let again = memory.take(40_000, 4).unwrap();
        assert_eq!(memory.live(), 40_000);
        // Another alignment can't serve.
        let other = memory.take(40_000, 8).unwrap();
        assert_eq!(memory.live(), 80_000);
        assert_eq!(memory.take(40_000, 8).unwrap_err().place().limit, Some("run_bytes"));
        assert_eq!(memory.live(), 80_000);
        // What waits is freed where it is in the way.
        memory.give(again);
        memory.give(other);
        assert_eq!(memory.live(), 80_000);
        drop(memory.take(90_000, 1).unwrap());
        assert_eq!(memory.live(), 90_000);
    }

    #[test]
    fn what_leaves_counts_no_more_and_comes_back() {
        let memory = Memory::new(10_000);
        let output = memory.take(8000, 1).unwrap();
        memory.hand_out(&output.lease);
        assert_eq!(memory.live(), 0);
        let second = memory.take(8000, 1).unwrap();
        // It may not come back now.
        drop(output);
        assert_eq!(memory.live(), 8000);
        memory.hand_out(&second.lease);
        drop(second);
        assert_eq!(memory.live(), 8000);
        // Held by somebody else too when it is given back: it leaves.
        let third = memory.take(8000, 1).unwrap();
        let caller = third.clone();
        memory.give(third);
        assert_eq!(memory.live(), 0);
        drop(memory);
        drop(caller);
    }

    #[test]
    fn small_buffers_are_freed_when_they_are_dropped() {
        let memory = Memory::new(10_000);
        drop(memory.take(100, 1).unwrap());
        assert_eq!(memory.live(), 0);
        memory.give(memory.take(100, 1).unwrap());
        assert_eq!(memory.live(), 100);
    }
}
