//! The archives of `onnx-test-data`, and work on all that is in them.

use anyhow::Result;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The files of a `.tar.xz` whose paths are wanted, in its order.
pub fn unpack(archive: impl AsRef<Path>, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, Vec<u8>)>> {
    let file = std::fs::File::open(archive)?;
    let mut archive = tar::Archive::new(lzma_rust2::XzReader::new(std::io::BufReader::new(file), false));
    let mut files = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        if entry.header().entry_type().is_file() && wanted(&path) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            files.push((path, bytes));
        }
    }
    Ok(files)
}

/// The results in the order of the items.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut results = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(at)
        {
            results.push((at, work(item)));
        }
        results
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
