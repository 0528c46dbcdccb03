//! Bits of a scan, and the Huffman codes in them.

use super::super::reader::Reader;
use super::super::{Fault, Result};

/// Values by codes of up to 16 bits.
pub(super) struct Table {
    /// By the next 8 bits: the length of the code, and its value. The length is 0 if the code is longer.
    quick: [(u8, u8); 256],
    /// For each length up to 16: the first code beyond, with zeros up to 16 bits, and what added to a code gives the place of
    /// its value.
    ends: [(u32, i32); 17],
    values: [u8; 256],
}

impl Table {
    pub(super) fn read(data: &mut Reader<'_>) -> Result<Table> {
        let counts: [u8; 16] = data.array()?;
        let mut table = Table { quick: [(0, 0); 256], ends: [(0, 0); 17], values: [0; 256] };
        let all: usize = counts.iter().map(|count| usize::from(*count)).sum();
        table.values.get_mut(..all).ok_or(Fault::Undecodable)?.copy_from_slice(data.take(all)?);
        let (mut code, mut at) = (0u32, 0usize);
        for (len, &count) in (1u32..).zip(&counts) {
            let end = table.ends.get_mut(len as usize).ok_or(Fault::Undecodable)?;
            end.1 = at as i32 - code as i32;
            for _ in 0..count {
                if code >= 1 << len {
                    return Err(Fault::Undecodable);
                }
                if len <= 8 {
                    let from = (code << (8 - len)) as usize;
                    let value = table.values.get(at).copied().unwrap_or_default();
                    let quick = table.quick.get_mut(from..from + (1 << (8 - len))).ok_or(Fault::Undecodable)?;
                    quick.fill((len as u8, value));
                }
                (code, at) = (code + 1, at + 1);
            }
            end.0 = code << (16 - len);
            code <<= 1;
        }
        Ok(table)
    }
}

/// The bits of a scan, up to a marker.
pub(super) struct Bits<'a> {
    pub(super) reader: Reader<'a>,
    /// The next bits, from the high one on.
    bits: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(reader: Reader<'a>) -> Bits<'a> {
        Bits { reader, bits: 0, count: 0 }
    }

    fn fill(&mut self) {
        while self.count <= 56 {
            let byte = match self.reader.rest {
                // Within a scan this byte is followed by 0; anything else is a marker.
                [0xFF, 0, rest @ ..] => {
                    self.reader.rest = rest;
                    0xFF
                }
                [0xFF, ..] | [] => return,
                [byte, rest @ ..] => {
                    self.reader.rest = rest;
                    *byte
                }
            };
            self.bits |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    fn skip(&mut self, count: u32) -> Result<()> {
        self.count = self.count.checked_sub(count).ok_or(Fault::Undecodable)?;
        self.bits <<= count;
        Ok(())
    }

    /// The next bits as a number: at most 16.
    pub(super) fn number(&mut self, count: u32) -> Result<i32> {
        if count == 0 {
            return Ok(0);
        }
        if self.count < count {
            self.fill();
        }
        let number = (self.bits >> (64 - count)) as i32;
        self.skip(count)?;
        Ok(number)
    }

    pub(super) fn bit(&mut self) -> Result<bool> {
        self.number(1).map(|bit| bit == 1)
    }

    /// The next bits as a signed number: the lower half of the numbers of so many bits are negative.
    pub(super) fn signed(&mut self, count: u32) -> Result<i32> {
        let number = self.number(count)?;
        Ok(if count > 0 && number < 1 << (count - 1) { number - (1 << count) + 1 } else { number })
    }

    /// The value of the next code.
    pub(super) fn value(&mut self, table: &Table) -> Result<u8> {
        if self.count < 16 {
            self.fill();
        }
        let &(len, value) = table.quick.get((self.bits >> 56) as usize).ok_or(Fault::Undecodable)?;
        if len > 0 {
            self.skip(len.into())?;
            return Ok(value);
        }
        let next = (self.bits >> 48) as u32;
        let mut ends = (0..).zip(&table.ends).skip(9);
        let (len, (_, shift)) = ends.find(|(_, (end, _))| next < *end).ok_or(Fault::Undecodable)?;
        self.skip(len)?;
        let at = (next >> (16 - len)) as i32 + shift;
        table.values.get(at as usize).copied().ok_or(Fault::Undecodable)
    }

    /// Goes on behind the marker of a restart: `number` of 8.
    pub(super) fn restart(&mut self, number: u8) -> Result<()> {
        (self.bits, self.count) = (0, 0);
        while let [0xFF, rest @ ..] = self.reader.rest
            && rest.first() == Some(&0xFF)
        {
            self.reader.rest = rest;
        }
        match self.reader.array()? {
            [0xFF, marker] if marker == super::marker::RESTART + number => Ok(()),
            _ => Err(Fault::Undecodable),
        }
    }
}
