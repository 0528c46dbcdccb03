//! Scans: coefficients of some components, whole or some bits of them.

use super::super::reader::Reader;
use super::super::{Fault, Result};
use super::huffman::{Bits, Table};
use super::{BLOCK, Component, Jpeg, MOST, ZIGZAG};
use crate::Lookout;

type Block = [i16; BLOCK];

/// What a scan has of each block.
struct Scan<'t> {
    progressive: bool,
    /// The coefficients, in the order of the file.
    from: usize,
    to: usize,
    /// Whether earlier scans have higher bits of them.
    refines: bool,
    /// The lowest bit.
    low: u32,
    /// Blocks that follow without further coefficients.
    empty: u32,
    /// The last first coefficient, and the codes, of each component of the scan.
    last: [i32; MOST],
    tables: [(Option<&'t Table>, Option<&'t Table>); MOST],
}

impl Jpeg<'_> {
    /// Decodes the scan that begins after its header `data`.
    pub(super) fn scan(&mut self, mut data: Reader<'_>, lookout: &mut Lookout<'_>) -> Result<()> {
        let count = usize::from(data.byte()?);
        let mut parts = Vec::new();
        let mut scan = Scan {
            progressive: self.progressive,
            from: 0,
            to: BLOCK - 1,
            refines: false,
            low: 0,
            empty: 0,
            last: [0; MOST],
            tables: [(None, None); MOST],
        };
        if !(1..=self.components.len()).contains(&count) {
            return Err(Fault::Undecodable);
        }
        for tables in scan.tables.iter_mut().take(count) {
            let [id, codes] = data.array()?;
            let at = self.components.iter().position(|component| component.id == id).ok_or(Fault::Undecodable)?;
            if parts.contains(&at) {
                return Err(Fault::Undecodable);
            }
            parts.push(at);
            // Those that aren't used may be missing.
            let [first, others] = [(&self.first, codes >> 4), (&self.others, codes & 15)]
                .map(|(tables, k)| tables.get(usize::from(k)).and_then(Option::as_deref));
            *tables = (first, others);
        }
        let [from, to, bits] = data.array()?;
        if self.progressive {
            (scan.from, scan.to) = (from.into(), to.into());
            (scan.refines, scan.low) = (bits >> 4 > 0, (bits & 15).into());
            let alone = if from == 0 { to == 0 } else { from <= to && to < BLOCK as u8 && count == 1 };
            if !alone || scan.low > 13 || scan.refines && bits >> 4 != (bits & 15) + 1 {
                return Err(Fault::Undecodable);
            }
        }
        let mut all: Vec<_> = self.components.iter_mut().map(Some).collect();
        let mut components: Vec<&mut Component> = Vec::new();
        for at in parts {
            let component = all.get_mut(at).and_then(Option::take).ok_or(Fault::Undecodable)?;
            if component.steps.is_some() && !self.progressive {
                return Err(Fault::Undecodable);
            }
            let steps = self.steps.get(usize::from(component.steps_at)).copied().flatten();
            component.steps = component.steps.or(steps);
            component.steps.ok_or(Fault::Undecodable)?;
            components.push(component);
        }
        let mut bits = Bits::new(self.segments.reader);
        let (units, restart) = (self.units, self.restart);
        let (mut until, mut number) = (restart, 0);
        let mut begin = |scan: &mut Scan<'_>, bits: &mut Bits<'_>| -> Result<()> {
            if restart > 0 && until == 0 {
                bits.restart(number)?;
                (until, number) = (restart, (number + 1) % 8);
                (scan.last, scan.empty) = ([0; MOST], 0);
            }
            until = until.saturating_sub(1);
            Ok(())
        };
        if let [component] = components.as_mut_slice() {
            // Alone, a component has no blocks that only fill units.
            let (across, down) = (component.width.div_ceil(8), component.height.div_ceil(8));
            for row in component.coefficients.chunks_mut(component.row * BLOCK).take(down) {
                for block in row.as_chunks_mut().0.iter_mut().take(across) {
                    begin(&mut scan, &mut bits)?;
                    lookout.after(size_of_val(block))?;
                    scan.block(0, block, &mut bits)?;
                }
            }
        } else {
            for y in 0..units.1 {
                for x in 0..units.0 {
                    begin(&mut scan, &mut bits)?;
                    for (k, component) in components.iter_mut().enumerate() {
                        let blocks = component.coefficients.as_chunks_mut().0;
                        for row in 0..component.down {
                            let at = (y * component.down + row) * component.row + x * component.across;
                            for block in blocks.iter_mut().skip(at).take(component.across) {
                                lookout.after(size_of_val(block))?;
                                scan.block(k, block, &mut bits)?;
                            }
                        }
                    }
                }
            }
        }
        self.segments.reader = bits.reader;
        Ok(())
    }
}

impl Scan<'_> {
    fn block(&mut self, k: usize, block: &mut Block, bits: &mut Bits<'_>) -> Result<()> {
        let (first, others) = self.tables.get(k).copied().ok_or(Fault::Undecodable)?;
        match (self.progressive, self.from, self.refines) {
            (false, ..) => {
                self.first(k, block, first, bits)?;
                self.others(block, 1, others, bits)
            }
            (true, 0, false) => self.first(k, block, first, bits),
            (true, 0, true) => {
                let bit = i16::from(bits.bit()?) << self.low;
                block[0] |= bit;
                Ok(())
            }
            (true, from, false) => self.others(block, from, others, bits),
            (true, _, true) => self.refine(block, others, bits),
        }
    }

    /// The first coefficient: its difference to that of the block before.
    fn first(&mut self, k: usize, block: &mut Block, table: Option<&Table>, bits: &mut Bits<'_>) -> Result<()> {
        let len = bits.value(table.ok_or(Fault::Undecodable)?)?;
        if len > 15 {
            return Err(Fault::Undecodable);
        }
        let last = self.last.get_mut(k).ok_or(Fault::Undecodable)?;
        *last = last.wrapping_add(bits.signed(len.into())?);
        block[0] = (*last << self.low) as i16;
        Ok(())
    }

    /// The coefficients from `at` on: how many are 0, then one that isn't.
    fn others(&mut self, block: &mut Block, mut at: usize, table: Option<&Table>, bits: &mut Bits<'_>) -> Result<()> {
        if self.empty > 0 {
            self.empty -= 1;
            return Ok(());
        }
        let table = table.ok_or(Fault::Undecodable)?;
        while at <= self.to {
            let code = bits.value(table)?;
            let (zeros, len) = (code >> 4, code & 15);
            at += usize::from(zeros);
            match (zeros, len) {
                (15, 0) => {}
                (_, 0) => {
                    self.empty = if self.progressive { self.run(zeros, bits)? - 1 } else { 0 };
                    break;
                }
                _ => {
                    let value = bits.signed(len.into())?;
                    let coefficient = if at <= self.to { coefficient(block, at) } else { None };
                    *coefficient.ok_or(Fault::Undecodable)? = (value << self.low) as i16;
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// The number of blocks, from this one on, without further coefficients.
    fn run(&self, len: u8, bits: &mut Bits<'_>) -> Result<u32> {
        Ok((1 << len) + bits.number(len.into())? as u32)
    }

    /// A lower bit of the coefficients that aren't 0, and new ones between them.
    fn refine(&mut self, block: &mut Block, table: Option<&Table>, bits: &mut Bits<'_>) -> Result<()> {
        let table = table.ok_or(Fault::Undecodable)?;
        let (mut at, bit) = (self.from, 1i16 << self.low);
        while self.empty == 0 && at <= self.to {
            let code = bits.value(table)?;
            let (mut zeros, len) = (code >> 4, code & 15);
            let new = match (zeros, len) {
                (15, 0) => 0,
                (_, 0) => {
                    self.empty = self.run(zeros, bits)?;
                    break;
                }
                (_, 1) if bits.bit()? => bit,
                (_, 1) => -bit,
                _ => return Err(Fault::Undecodable),
            };
            // Skips as many zeros, and refines what is between.
            while at <= self.to {
                let coefficient = coefficient(block, at).ok_or(Fault::Undecodable)?;
                at += 1;
                if *coefficient != 0 {
                    sharpen(coefficient, bit, bits)?;
                } else if zeros > 0 {
                    zeros -= 1;
                } else {
                    *coefficient = new;
                    break;
                }
            }
        }
        if self.empty > 0 {
            self.empty -= 1;
            while at <= self.to {
                let coefficient = coefficient(block, at).ok_or(Fault::Undecodable)?;
                at += 1;
                if *coefficient != 0 {
                    sharpen(coefficient, bit, bits)?;
                }
            }
        }
        Ok(())
    }
}

/// A coefficient by its place in the file.
fn coefficient(block: &mut Block, at: usize) -> Option<&mut i16> {
    block.get_mut(usize::from(*ZIGZAG.get(at)?))
}

/// Reads a lower bit of a coefficient.
fn sharpen(coefficient: &mut i16, bit: i16, bits: &mut Bits<'_>) -> Result<()> {
    if bits.bit()? && *coefficient & bit == 0 {
        *coefficient = coefficient.wrapping_add(if *coefficient < 0 { -bit } else { bit });
    }
    Ok(())
}
