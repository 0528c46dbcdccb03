//! Numbers one after the other in a file.

use super::{Fault, Result};

#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from `at` on.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Result<Reader<'a>> {
        Ok(Reader { rest: bytes.get(at..).ok_or(Fault::Undecodable)? })
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Fault::Undecodable)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Fault::Undecodable)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Two bytes, the high one first.
    pub(super) fn big16(&mut self) -> Result<usize> {
        self.array().map(u16::from_be_bytes).map(usize::from)
    }

    pub(super) fn big32(&mut self) -> Result<usize> {
        Ok(u32::from_be_bytes(self.array()?) as usize)
    }

    /// Two bytes, the low one first.
    pub(super) fn little16(&mut self) -> Result<usize> {
        self.array().map(u16::from_le_bytes).map(usize::from)
    }

    pub(super) fn little32(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }
}
