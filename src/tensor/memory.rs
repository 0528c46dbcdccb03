//! The memory of runs: a ledger that counts each buffer once, and pools of free buffers.
//!
//! A buffer that a run releases goes to the pool of its `Memory`; one that others drop, on any thread, to the ledger's.
//!
//! A buffer counts until it is freed, however many tensors share it, and also in a pool. A buffer handed out with the
//! outputs of a run stops counting; when its last holder drops it, it returns to the ledger's pool.
//!
//! The pools have at most as many bytes as were in use at one time, or a few. So a run finds the buffers of the last one, however many
//! there were, and memory stays below twice what runs need.

use super::buffer::{Buffer, Words};
use super::pool::Pool;
use crate::error::{Error, Result};
use crate::limits::exceeded;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Allocates the outputs of runs, one run at a time.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The pool of free buffers.
    waiting: RefCell<Pool>,
    ledger: Arc<Ledger>,
}

#[derive(Debug)]
struct Ledger {
    /// The pool of buffers that others dropped.
    returned: Mutex<Pool>,
    /// Bytes of the pools: of that, and of the memory's.
    returned_bytes: AtomicU64,
    waiting_bytes: AtomicU64,
    /// Bytes of all buffers, including pooled ones.
    live: AtomicU64,
    /// Most bytes that were in use at one time: those of all buffers but pooled ones.
    peak: AtomicU64,
    limit: u64,
}

impl Ledger {
    /// Bytes that the pools may have in any case.
    const ALWAYS: u64 = 64 << 10;

    /// Bytes that a pool may have, beside those of the other.
    fn most(&self, others: &AtomicU64) -> u64 {
        self.peak.load(Relaxed).max(Ledger::ALWAYS).saturating_sub(others.load(Relaxed))
    }

    fn returned(&self) -> MutexGuard<'_, Pool> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the peak. Called before buffers come to a pool or leave: only then less is in use than before.
    #[inline]
    fn note_peak(&self) {
        let pooled = self.waiting_bytes.load(Relaxed).saturating_add(self.returned_bytes.load(Relaxed));
        let used = self.live.load(Relaxed).saturating_sub(pooled);
        // Threads may overtake each other here: a peak that is missed is met again.
        if used > self.peak.load(Relaxed) {
            self.peak.store(used, Relaxed);
        }
    }

    /// Whether `bytes` more make the peak much higher: pooled buffers are likely too small from then on.
    fn outgrows(&self, bytes: u64) -> bool {
        let pooled = self.waiting_bytes.load(Relaxed).saturating_add(self.returned_bytes.load(Relaxed));
        let used = self.live.load(Relaxed).saturating_sub(pooled).saturating_add(bytes);
        let peak = self.peak.load(Relaxed).max(Ledger::ALWAYS);
        pooled > 0 && used > peak + peak / 8
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
        if bytes < Pool::LARGE {
            return;
        }
        let Some(ledger) = self.ledger.upgrade() else { return };
        ledger.note_peak();
        if self.counted.load(Relaxed) == 0 {
            if ledger.count(bytes as u64).is_err() {
                return;
            }
            self.counted.store(bytes as u64, Relaxed);
        }
        let most = ledger.most(&ledger.waiting_bytes);
        let buffer = Arc::new(Buffer { words: std::mem::take(words), lease: std::mem::take(self) });
        let mut returned = ledger.returned();
        returned.give(buffer, most, free);
        ledger.returned_bytes.store(returned.bytes(), Relaxed);
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

    /// Holds at most `limit` bytes at one time.
    pub(crate) fn new(limit: u64) -> Memory {
        let (returned, returned_bytes, waiting_bytes, live, peak) = Default::default();
        let ledger = Ledger { returned, returned_bytes, waiting_bytes, live, peak, limit };
        Memory { waiting: RefCell::default(), ledger: Arc::new(ledger) }
    }

    /// A free buffer with room for `len` bytes; its length may differ. Frees pooled buffers if the limit would be
    /// exceeded.
    #[inline]
    pub(super) fn take(&self, len: usize, align: usize) -> Result<Arc<Buffer>> {
        let ledger = &*self.ledger;
        let mut waiting = self.waiting.borrow_mut();
        // One that wastes nothing; else, while there is room, one that wastes little.
        let room = ledger.live.load(Relaxed).saturating_add(len as u64) <= ledger.limit;
        if let Some(found) = waiting.take(len, align, !room) {
            ledger.waiting_bytes.store(waiting.bytes(), Relaxed);
            return Ok(found);
        }
        if ledger.returned_bytes.load(Relaxed) > 0 {
            let mut returned = ledger.returned();
            let found = returned.take(len, align, !room);
            let freed = (!room && found.is_none()).then(|| returned.drain());
            ledger.returned_bytes.store(returned.bytes(), Relaxed);
            drop(returned);
            if let Some(found) = found {
                return Ok(found);
            }
            freed.into_iter().flatten().for_each(free);
        }
        if !room {
            waiting.drain().for_each(free);
            ledger.waiting_bytes.store(0, Relaxed);
        }
        if ledger.outgrows(len as u64) {
            waiting.drain().for_each(free);
            ledger.waiting_bytes.store(0, Relaxed);
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
            self.ledger.note_peak();
            lease.counted.store(0, Relaxed);
            self.ledger.live.fetch_sub(bytes, Relaxed);
        }
    }

    /// Keeps a buffer for reuse. If others hold it too, it stops counting instead.
    pub(super) fn give(&self, mut buffer: Arc<Buffer>) {
        // Looked at before it is locked, which takes as long as all the rest.
        if Arc::strong_count(&buffer) > 1 {
            return self.hand_out(&buffer.lease);
        }
        if buffer.lease.counted.load(Relaxed) == 0 {
            match (self.lease(buffer.words.capacity()), Arc::get_mut(&mut buffer)) {
                (Ok(lease), Some(own)) => own.lease = lease,
                _ => return free(buffer),
            }
        }
        let ledger = &*self.ledger;
        ledger.note_peak();
        let most = ledger.most(&ledger.returned_bytes);
        let mut waiting = self.waiting.borrow_mut();
        waiting.give(buffer, most, free);
        ledger.waiting_bytes.store(waiting.bytes(), Relaxed);
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

    /// As many sizes as a run has live at one time are there for the next run.
    #[test]
    fn runs_of_many_sizes_allocate_once() {
        let memory = Memory::new(1 << 30);
        let sizes: Vec<usize> = (1..=60).map(|k| k * k * 4096).collect();
        let run = || sizes.iter().map(|size| memory.take(*size, 4).unwrap()).collect::<Vec<_>>();
        let first = run();
        let places: Vec<_> = first.iter().map(Arc::as_ptr).collect();
        let total = memory.live();
        first.into_iter().for_each(|buffer| memory.give(buffer));
        assert_eq!(memory.live(), total);
        for _ in 0..3 {
            let again = run();
            assert_eq!(again.iter().map(Arc::as_ptr).collect::<Vec<_>>(), places);
            again.into_iter().for_each(|buffer| memory.give(buffer));
        }
    }

    /// Pools keep no more than was in use at one time, and lose the oldest first.
    #[test]
    fn pools_are_bounded_by_the_peak() {
        let memory = Memory::new(1 << 30);
        for k in 1..100 {
            memory.give(memory.take(10_000 * k, 8).unwrap());
            assert!(memory.live() <= 20_000 * k as u64, "{k}: {}", memory.live());
        }
        // The last one is there; the first went long ago.
        let live = memory.live();
        memory.give(memory.take(990_000, 8).unwrap());
        assert_eq!(memory.live(), live);
        memory.give(memory.take(10_000, 8).unwrap());
        assert!(memory.live() <= live.max(990_000), "{}", memory.live());
        // Also what others drop counts.
        let (one, two) = (memory.take(500_000, 2).unwrap(), memory.take(500_000, 2).unwrap());
        memory.hand_out(&one.lease);
        drop((one, two));
        let peak = memory.ledger.peak.load(Relaxed);
        assert!(memory.live() <= peak, "{} {peak}", memory.live());
    }

    /// Of those that are large enough the smallest is taken.
    #[test]
    fn the_best_fit_is_taken() {
        let memory = Memory::new(1 << 30);
        let buffers = [9000, 5000, 7000].map(|len| memory.take(len, 4).unwrap());
        let places = buffers.each_ref().map(Arc::as_ptr);
        buffers.into_iter().for_each(|buffer| memory.give(buffer));
        let taken = [6000, 6000, 4000].map(|len| memory.take(len, 4).unwrap());
        assert_eq!(taken.each_ref().map(Arc::as_ptr), [places[2], places[0], places[1]]);
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
