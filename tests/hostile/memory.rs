//! Counts what a thread allocates: each test measures its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes that this thread has taken and not given back; the most there were; the same with both the old and the new
/// piece counted where one grows, as if it were always copied.
#[derive(Clone, Copy)]
struct Count {
    now: i64,
    peak: i64,
    copying: i64,
}

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(Count { now: 0, peak: 0, copying: 0 }) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A thread that ends has no count any more: what it frees then is not missed.
fn count(change: i64, copied: i64) {
    let _ = COUNT.try_with(|cell| {
        let mut count = cell.get();
        count.copying = count.copying.max(count.now + copied);
        count.now += change;
        count.peak = count.peak.max(count.now);
        count.copying = count.copying.max(count.now);
        cell.set(count);
    });
}

fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

// SAFETY: everything is left to the system's allocator, with what the caller gave; counting allocates nothing.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()), 0);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-signed(layout.size()), 0);
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size) - signed(layout.size()), signed(size));
        unsafe { System.realloc(place, layout, size) }
    }
}

/// What some work took at the most, in bytes beyond what there was before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) bytes: u64,
    /// With the old and the new piece counted where a list grows.
    pub(crate) copying: u64,
    /// What is left when the work is done: its result.
    pub(crate) kept: i64,
}

/// Does some work on this thread, and says what it took.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, Peak) {
    let start = COUNT.with(|cell| {
        let now = cell.get().now;
        cell.set(Count { now, peak: now, copying: now });
        now
    });
    let result = work();
    let count = COUNT.with(Cell::get);
    let beyond = |bytes: i64| u64::try_from(bytes - start).unwrap_or(0);
    (result, Peak { bytes: beyond(count.peak), copying: beyond(count.copying), kept: count.now - start })
}

#[test]
fn what_is_counted() {
    let (list, peak) = peak_of(|| {
        drop(vec![0u8; 1000]);
        vec![0u8; 300]
    });
    assert_eq!((peak.bytes, peak.kept, list.len()), (1000, 300, 300));
    let (_, peak) = peak_of(|| {
        let mut list = Vec::<u8>::with_capacity(100);
        list.reserve_exact(200);
        list
    });
    assert_eq!((peak.bytes, peak.copying, peak.kept), (200, 300, 200));
    let (_, other) = peak_of(|| std::thread::spawn(|| drop(vec![0u8; 100_000])).join().is_ok());
    assert!(other.bytes < 100_000, "{other:?}");
}
