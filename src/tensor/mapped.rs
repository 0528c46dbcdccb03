//! Files that are mapped into memory, whose pages may leave it again.

use memmap2::Mmap;
use std::ops::Range;
use std::sync::Mutex;

/// The addresses of all maps.
static MAPS: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

/// A mapped file.
#[derive(Debug)]
pub(crate) struct Mapped(Mmap);

impl Mapped {
    pub(crate) fn new(map: Mmap) -> Mapped {
        MAPS.lock().into_iter().for_each(|mut maps| maps.push(addresses(&map)));
        Mapped(map)
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let own = addresses(&self.0);
        MAPS.lock().into_iter().for_each(|mut maps| maps.retain(|map| *map != own));
    }
}

fn addresses(bytes: &[u8]) -> Range<usize> {
    let start = bytes.as_ptr().addr();
    start..start + bytes.len()
}

/// Says that bytes won't be read soon. If they are those of a mapped file, they leave memory until they are read again.
pub(crate) fn release(bytes: &[u8]) {
    /// A multiple of the size of a page, on any system.
    const PAGES: usize = 64 << 10;
    let Range { start, end } = addresses(bytes);
    let (first, last) = (start.next_multiple_of(PAGES), end / PAGES * PAGES);
    let is_mapped = || MAPS.lock().is_ok_and(|maps| maps.iter().any(|map| map.start <= start && end <= map.end));
    if first < last && is_mapped() {
        drop_pages(bytes.get(first - start..last - start).unwrap_or(&[]));
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn drop_pages(pages: &[u8]) {
    use rustix::mm::{Advice, madvise};
    let start = pages.as_ptr().cast_mut().cast();
    // SAFETY: these are whole pages of a mapped file, which `pages` keeps mapped. They are only read, so that what a page
    // has after it was dropped is what the file has, which doesn't change: whoever mapped it promised that.
    let _ = unsafe { madvise(start, pages.len(), Advice::LinuxDontNeed) };
}

#[cfg(not(target_os = "linux"))]
fn drop_pages(_: &[u8]) {}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_was_released_is_read_again() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..1 << 20).map(|at: u32| (at / 7) as u8).collect();
        file.write_all(&content).unwrap();
        // SAFETY: nobody else has the file.
        #[allow(unsafe_code)]
        let map = Mapped::new(unsafe { Mmap::map(&file).unwrap() });
        for range in [0..1 << 20, 100..1 << 20, 70_000..80_000, 5..5] {
            let bytes = &map.as_ref()[range.clone()];
            release(bytes);
            assert!(bytes == &content[range]);
        }
        let own = addresses(map.as_ref());
        drop(map);
        assert!(!MAPS.lock().unwrap().contains(&own));
        // What isn't mapped stays.
        release(&content);
        assert_eq!(content[99_999], (99_999 / 7) as u8);
    }
}
