//! What zlib packed, read in parts of any size.

use super::{Fault, Result, zeros};
use crate::Lookout;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

/// Bytes back to which packed data refer.
const WINDOW: usize = 32 << 10;

/// Packed bytes that are read at once, and the bytes whose copy takes the time of one: tables that unpack nothing may take so
/// few of them.
const PART: usize = 1 << 10;
const STEPS: usize = 64;

/// Bytes that an [`Inflate`] takes.
pub(super) const MEMORY: usize = WINDOW + size_of::<DecompressorOxide>();

pub(super) struct Inflate<'a, Chunks> {
    state: Box<DecompressorOxide>,
    /// The packed bytes that weren't read yet: of a chunk, and the chunks after it.
    packed: &'a [u8],
    chunks: Chunks,
    /// The last bytes, around the end to the beginning.
    window: Vec<u8>,
    /// The unpacked bytes of the window that weren't read yet.
    from: usize,
    to: usize,
}

impl<'a, Chunks: Iterator<Item = &'a [u8]>> Inflate<'a, Chunks> {
    pub(super) fn new(chunks: Chunks) -> Result<Self> {
        Ok(Inflate { state: Box::default(), packed: &[], chunks, window: zeros(WINDOW)?, from: 0, to: 0 })
    }

    /// Fills `bytes`.
    pub(super) fn read(&mut self, mut bytes: &mut [u8], lookout: &mut Lookout<'_>) -> Result<()> {
        while !bytes.is_empty() {
            let ready = self.window.get(self.from..self.to).unwrap_or_default();
            let len = ready.len().min(bytes.len());
            let (now, later) = bytes.split_at_mut_checked(len).ok_or(Fault::Undecodable)?;
            now.copy_from_slice(ready.get(..len).unwrap_or_default());
            (bytes, self.from) = (later, self.from + len);
            lookout.after(2 * len)?;
            if !bytes.is_empty() {
                self.unpack(lookout)?;
            }
        }
        Ok(())
    }

    /// Unpacks at least a byte.
    fn unpack(&mut self, lookout: &mut Lookout<'_>) -> Result<()> {
        let flags = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER | inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
        self.from = self.to % WINDOW;
        loop {
            let part = self.packed.get(..PART).unwrap_or(self.packed);
            let (status, read, written) = decompress(&mut self.state, part, &mut self.window, self.from, flags);
            self.packed = self.packed.get(read..).unwrap_or_default();
            self.to = self.from + written;
            lookout.after(STEPS * (1 + read))?;
            if written > 0 {
                return Ok(());
            }
            if status != TINFLStatus::NeedsMoreInput || read < part.len() {
                return Err(Fault::Undecodable);
            }
            if self.packed.is_empty() {
                self.packed = self.chunks.next().ok_or(Fault::Undecodable)?;
            }
        }
    }
}
