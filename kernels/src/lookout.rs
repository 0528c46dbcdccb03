//! Asking whether to stop.

use super::{Stop, Stopped};

/// Bytes that are read or written between two checks of `Resources::stop`. A check takes less than a hundredth of the
/// time.
pub(super) const BETWEEN_LOOKS: usize = 128 << 10;

/// Asks every so often whether to stop, while one thread works step by step.
#[derive(Debug)]
pub struct Lookout<'a> {
    stop: Option<&'a Stop>,
    /// Bytes since it asked.
    done: usize,
}

impl<'a> Lookout<'a> {
    pub fn new(stop: Option<&'a Stop>) -> Lookout<'a> {
        Lookout { stop, done: 0 }
    }

    /// Counts bytes that were read or written. Fails if the caller asked to stop.
    #[inline]
    pub fn after(&mut self, bytes: usize) -> Result<(), Stopped> {
        self.done = self.done.saturating_add(bytes);
        if self.done < BETWEEN_LOOKS {
            return Ok(());
        }
        self.done = 0;
        look(self.stop)
    }

    /// The elements, block by block.
    pub fn blocks<'b, T>(
        &mut self,
        elements: &'b [T],
    ) -> impl Iterator<Item = Result<&'b [T], Stopped>> + use<'_, 'a, 'b, T> {
        /// Bytes of a block.
        const BLOCK: usize = 4 << 10;
        elements.chunks((BLOCK / size_of::<T>().max(1)).max(1)).map(|block| {
            self.after(size_of_val(block))?;
            Ok(block)
        })
    }
}

/// Fails if the caller asked to stop.
pub(super) fn look(stop: Option<&Stop>) -> Result<(), Stopped> {
    match stop {
        Some(stop) if stop.is_set() => Err(stop.reason()),
        _ => Ok(()),
    }
}
