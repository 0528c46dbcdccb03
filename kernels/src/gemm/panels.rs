//! How what a block reads is packed, a part at a time, where operands aren't read as they are.

use super::block::Block;
use super::operand::{Left, Right, View};
use super::pack::Side;
use super::plan::row_of;
use super::quads::{self, Lanes};
use super::{Operand, Plan, Product};
use crate::{Lookout, Stopped};
use bytemuck::{cast_slice, cast_slice_mut};
use std::ops::Range;

impl<O: Operand> Plan<'_, O> {
    /// Packs the block's part of `a`: the rows of each tile, one tile after the other.
    pub(super) fn pack_a(
        &self,
        block: &Block,
        steps: &Range<usize>,
        to: &mut [O::Sum],
        lanes: &mut Lanes<'_, O::Sum>,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let Left::View(a) = &self.product.a else { return Ok(()) };
        if to.is_empty() || steps.is_empty() {
            return Ok(());
        }
        for (row, height) in self.tiles_of(block) {
            lookout.after(height * steps.len() * size_of::<O::Sum>())?;
            let from = row - block.rows.start;
            let apart = row_of(steps.len(), self.by_rows);
            let to = to.get_mut(from * apart..(from + height) * apart).unwrap_or(&mut []);
            let elements = self.elements(steps);
            let start = block.a + row * a.row + elements.start * a.column;
            if self.quads {
                // A row by itself is a panel.
                let (lanes_of, apart) = if self.by_rows { (1, apart) } else { (height, height * apart) };
                for (at, to) in to.chunks_mut(apart).enumerate() {
                    let to = to.get_mut(..lanes_of * steps.len()).unwrap_or(&mut []);
                    let start = start + at * a.row;
                    a.elements.quads(Side::Left, start, (a.column, a.row), (elements.len(), lanes_of), to);
                    if lanes.column_zeros {
                        let sums = lanes.left.sums(from + at, lanes_of);
                        quads::add_sums(Side::Left, cast_slice(to), cast_slice_mut(sums));
                    }
                }
                continue;
            }
            a.elements.panel(start, (a.column, a.row), height, to);
            if let Some(zero) = &a.zero {
                zero.subtract(height, |at| self.place(block.matrix, row + at, 0), to);
            }
        }
        Ok(())
    }

    /// Packs a group of columns of `b`: one panel after the other.
    pub(super) fn pack_b(
        &self,
        block: &Block,
        steps: &Range<usize>,
        group: &Range<usize>,
        to: &mut [O::Sum],
        lanes: &mut Lanes<'_, O::Sum>,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let b = &self.product.b;
        if to.is_empty() || steps.is_empty() {
            return Ok(());
        }
        let panels = to.chunks_mut(self.width * steps.len());
        for (column, to) in group.clone().step_by(self.width).zip(panels) {
            let width = self.width.min(group.end - column);
            lookout.after(width * steps.len() * size_of::<O::Sum>())?;
            let to = to.get_mut(..width * steps.len()).unwrap_or(&mut []);
            if self.quads {
                let elements = self.elements(steps);
                match b {
                    Right::View(View { elements: from, row, column: apart, .. }) => {
                        let start = block.b + elements.start * row + column * apart;
                        from.quads(Side::Right, start, (*row, *apart), (elements.len(), width), to);
                    }
                    Right::Windows(windows) => windows.quads(block.b, &elements, column..column + width, to),
                    Right::Packed(_) | Right::Dequantized(_) => {}
                }
                let sums = lanes.right.sums(column - block.columns.start, width);
                quads::add_sums(Side::Right, cast_slice(to), cast_slice_mut(sums));
                continue;
            }
            match b {
                Right::View(View { elements, row, column: apart, .. }) => {
                    elements.panel(block.b + steps.start * row + column * apart, (*row, *apart), width, to);
                }
                Right::Windows(windows) => windows.panel(block.b, steps, column..column + width, to),
                Right::Dequantized(b) => b.panel(steps, column..column + width, to),
                Right::Packed(_) => {}
            }
            if let Some(zero) = b.zero() {
                zero.subtract(width, |at| self.place(block.matrix, 0, column + at), to);
            }
        }
        Ok(())
    }

    /// What is known of lanes before they are read: their zero points, and the sums of those that are packed.
    pub(super) fn begin(&self, block: &Block, lanes: &mut Lanes<'_, O::Sum>) {
        let Product { m, n, a, b, .. } = &self.product;
        let place = |row: usize, column: usize| self.place(block.matrix, row, column);
        match a {
            Left::Packed(a) => lanes.left.copy(a.after(block.a + self.depth * m).elements, *m, &block.rows),
            Left::View(a) => {
                let row = |at: usize| place(block.rows.start + at, 0);
                quads::zeros(a.zero, (Side::Left, a.elements.bytes() == Some(true)), row, lanes.left.zeros);
            }
        }
        let (zero, bytes) = (b.zero(), b.bytes());
        match b {
            Right::Packed(b) => lanes.right.copy(b.after(block.b + self.depth * n).elements, *n, &block.columns),
            Right::View(_) | Right::Windows(_) | Right::Dequantized(_) => {
                let column = |at: usize| place(0, block.columns.start + at);
                quads::zeros(zero, (Side::Right, bytes == Some(true)), column, lanes.right.zeros);
            }
        }
        lanes.begun();
    }

    /// The elements of `k` that steps take.
    fn elements(&self, steps: &Range<usize>) -> Range<usize> {
        match self.quads {
            true => steps.start * quads::SIZE..self.product.k.min(steps.end * quads::SIZE),
            false => steps.clone(),
        }
    }
}
