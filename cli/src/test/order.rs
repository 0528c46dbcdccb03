//! Work on several threads, with results in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Does the work of each item on up to `jobs` threads. `each` takes the results on this thread, in the order of the
/// items and as soon as possible.
///
/// # Errors
/// The first error of `each`; no further work is begun.
pub(crate) fn in_order<T: Sync, R: Send, E>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
    mut each: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let start = || {
            let (sender, next, work) = (sender.clone(), &next, &work);
            thread::Builder::new().spawn_scoped(scope, move || {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                    && sender.send((at, work(item))).is_ok()
                {}
            })
        };
        let started = (0..jobs).take_while(|_| start().is_ok()).count();
        drop(sender);
        if started == 0 {
            // The system can create no thread.
            return items.iter().try_for_each(|item| each(work(item)));
        }
        // Results that wait for earlier ones.
        let (mut waiting, mut at) = (BTreeMap::new(), 0);
        for (place, result) in receiver {
            waiting.insert(place, result);
            while let Some(result) = waiting.remove(&at) {
                each(result)?;
                at += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn results_come_in_order() {
        let items: Vec<u64> = (0..50).collect();
        let work = |item: &u64| {
            thread::sleep(Duration::from_micros(997 * item % 300));
            2 * item
        };
        for jobs in [1, 3, 60] {
            let mut results = Vec::new();
            let each = |result| {
                results.push(result);
                Ok::<(), ()>(())
            };
            in_order(&items, jobs, work, each).unwrap();
            assert_eq!(results, items.iter().map(|item| 2 * item).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let work = |_: &()| {
            begun.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1));
        };
        let mut left = 3;
        let each = |()| {
            left -= 1;
            if left > 0 { Ok(()) } else { Err("full") }
        };
        assert_eq!(in_order(&[(); 1000], 2, work, each), Err("full"));
        assert!(begun.into_inner() < 500);
    }
}
