//! How a block of the output is computed, tile by tile.

#![allow(unsafe_code)] // blocks of one output are written by several threads, and tiles through pointers

use super::epilogue::PART;
use super::operand::{Left, Right};
use super::plan::row_of;
use super::quads::{self, Lanes};
use super::tile::{ABREAST, Start, Tile};
use super::tiny::has_tiny;
use super::{BLOCK, Number, Operand, Plan, Product};
use crate::{Lookout, Resources, Stopped};
use bytemuck::cast_slice;
use std::ops::Range;

/// Bytes that take the time of a multiplication.
const MULTIPLICATION: usize = 2;

/// Steps of a row between two checks.
const ROW_PIECE: usize = 7 * BLOCK;

/// Columns of small integers between two checks.
const INTEGERS: usize = 64;

/// The output, for all threads.
#[derive(Clone, Copy)]
pub(super) struct Out<T>(*mut T);

// SAFETY: each block is written by one thread.
unsafe impl<T: Send> Send for Out<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Out<T> {}

impl<T> Out<T> {
    pub(super) fn of(out: &mut [T]) -> Out<T> {
        Out(out.as_mut_ptr())
    }

    /// # Safety
    /// The output must have such a place.
    pub(super) unsafe fn at(self, place: usize) -> *mut T {
        // SAFETY: the caller's.
        unsafe { self.0.add(place) }
    }
}

/// A block of the output: a part of a matrix whose operands start at `a` and `b`.
pub(super) struct Block {
    pub(super) matrix: usize,
    pub(super) a: usize,
    pub(super) b: usize,
    /// Tiles of rows, and their rows.
    pub(super) tiles: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

/// Some steps of a block.
struct Part<'a, T> {
    block: &'a Block,
    steps: Range<usize>,
    /// The block's part of `a` and a group of columns of `b`, where they are packed.
    a: *const T,
    b: *const T,
    /// The sums of the block, and how far rows of them are apart.
    sums: *mut T,
    sums_row: usize,
}

impl<O: Operand> Plan<'_, O> {
    /// Computes a block.
    ///
    /// # Safety
    /// [`Plan::check`] must have succeeded for the output, `room` must be of [`Plan::room`] elements, and nobody else may
    /// access the block.
    pub(super) unsafe fn block(
        &self,
        block: &Block,
        out: Out<O>,
        room: &mut [O::Sum],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let (Product { m, n, .. }, k) = (self.product, self.depth);
        let Block { rows, columns, .. } = block;
        let [a_room, b_room, out_room, _] = self.rooms;
        let (a, rest) = room.split_at_mut(a_room);
        let (b, rest) = rest.split_at_mut(b_room);
        let (own, rest) = rest.split_at_mut(out_room);
        let mut lanes = Lanes::new(rest, self.quads.then_some([rows.len(), columns.len()]));
        if self.quads {
            self.begin(block, &mut lanes);
        }
        // SAFETY: the block is a part of the output.
        let out = unsafe { out.0.add((block.matrix * m + rows.start) * n + columns.start) };
        // What isn't stored as sums are has a room for them. A long row has one for the sums of a block of steps.
        let (sums, sums_row) = if out_room > 0 { (own.as_mut_ptr(), columns.len()) } else { (out.cast(), n) };
        let by_steps = self.steps < k.min(BLOCK);
        let mut lookout = resources.lookout();
        for first in (0..k.max(1)).step_by(self.steps) {
            let steps = first..k.min(first + self.steps);
            self.pack_a(block, &steps, a, &mut lanes, &mut lookout)?;
            let is_row = rows.len() == 1 && b_room == 0;
            let group = if is_row { columns.len() } else { self.group };
            for start in columns.clone().step_by(group) {
                let group = start..columns.end.min(start + group);
                self.pack_b(block, &steps, &group, b, &mut lanes, &mut lookout)?;
                let part = Part { block, steps: steps.clone(), a: a.as_ptr(), b: b.as_ptr(), sums, sums_row };
                // SAFETY: the group is a part of the block, and packed if it is to be.
                unsafe {
                    if is_row { self.row(&part, &mut lookout)? } else { self.tiles(&part, &group, &mut lookout)? }
                }
            }
            if by_steps && out_room > 0 && (steps.end.is_multiple_of(BLOCK) || steps.end == k) {
                // SAFETY: the only row of the block, whose sums are in its room, and which is initialised after the first
                // block of steps.
                unsafe {
                    let sums = std::slice::from_raw_parts(sums, columns.len());
                    self.add_block(out.cast(), sums, steps.end <= BLOCK);
                }
            }
        }
        let (sums, sums_row) = if by_steps { (out.cast(), n) } else { (sums, sums_row) };
        for row in 0..rows.len() {
            lookout.after(columns.len() * MULTIPLICATION)?;
            // SAFETY: a row of the block, which is initialised now.
            let sums = unsafe { std::slice::from_raw_parts_mut(sums.add(row * sums_row), columns.len()) };
            if self.quads {
                lanes.correct(row, self.product.k, sums);
            }
            self.finish(block, rows.start + row, sums);
            if out_room > 0 && !by_steps {
                // SAFETY: a row of the block; it is not where the sums are.
                O::narrow(sums, unsafe { std::slice::from_raw_parts_mut(out.add(row * n), columns.len()) });
            }
        }
        Ok(())
    }

    /// Adds the sums of a block of steps to those `before` it, unless they are the `first`.
    ///
    /// # Safety
    /// As many elements from `before` on must be writable by this thread alone, and initialised unless these are the first.
    unsafe fn add_block(&self, before: *mut O::Sum, sums: &[O::Sum], first: bool) {
        for (at, sum) in sums.iter().enumerate() {
            // SAFETY: the caller's.
            unsafe {
                let before = before.add(at);
                before.write(if first { *sum } else { before.read().add(*sum) });
            }
        }
    }

    /// The first row and the height of each tile of a block.
    pub(super) fn tiles_of(&self, block: &Block) -> impl Iterator<Item = (usize, usize)> + use<'_, O> {
        block.tiles.clone().map(|tile| {
            let row = self.tiles.start(tile);
            (row, self.tiles.start(tile + 1) - row)
        })
    }

    /// All tiles of a group of columns.
    ///
    /// # Safety
    /// The group is a part of the block, and packed if it is to be. Otherwise as [`Plan::block`].
    unsafe fn tiles(
        &self,
        part: &Part<'_, O::Sum>,
        group: &Range<usize>,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let count = part.block.tiles.len();
        // Weights that were computed, as attention has them: each is looked at once.
        let of_values = matches!((&self.product.a, &self.product.b), (Left::View(_), Right::View(_)));
        let is_once = *group == part.block.columns && group.len() >= self.kernel.width;
        let tiny = self.kernel.tiny.filter(|_| of_values && is_once);
        for (at, (row, height)) in self.tiles_of(part.block).enumerate() {
            lookout.after(height * group.len() * part.steps.len() * MULTIPLICATION)?;
            let mut full = self.kernel.tile;
            for column in group.clone().step_by(self.width) {
                let columns = self.width.min(group.end - column);
                // SAFETY: the caller's; the tile is a part of the group.
                unsafe {
                    let mut tile = self.tile(part, (row, height), column, columns, group.start);
                    if let Right::Packed(b) = &self.product.b
                        && let Some((back, ahead)) = self.next_group(part, group, b.lanes)
                    {
                        // Each tile fetches its share.
                        let share = at * part.steps.len() / count * columns;
                        tile.next = tile.b.wrapping_sub(back).wrapping_add(ahead + share);
                        tile.next_step = columns.div_ceil(count);
                        tile.later = count == 1;
                    } else if let Left::Packed(_) = &self.product.a
                        && column == group.start
                        && at + 1 < count
                    {
                        // The rows of the next tile, which may be far from these.
                        tile.next = tile.a.wrapping_add(self.product.k * height);
                        (tile.next_step, tile.later) = (height, true);
                    }
                    if let Some(tiny) = tiny.filter(|_| column == group.start && self.has_tiny(&tile)) {
                        full = tiny;
                    }
                    if columns == self.kernel.width { full(&tile) } else { (self.kernel.tile)(&tile) }
                }
            }
        }
        Ok(())
    }

    /// Whether there are [tiny](super::tiny) numbers in the rows of a tile, if they are stored in order or packed.
    ///
    /// # Safety
    /// See [`Tile`].
    unsafe fn has_tiny(&self, tile: &Tile<O::Sum>) -> bool {
        let (count, len) = match (tile.a_row, tile.a_step) {
            (1, step) if step == tile.rows => (1, tile.rows * tile.steps),
            (_, 1) => (tile.rows, tile.steps),
            _ => return false,
        };
        (0..count).any(|row| {
            // SAFETY: the caller's: so many elements are readable there.
            let row = unsafe { std::slice::from_raw_parts(tile.a.wrapping_add(row * tile.a_row), len) };
            has_tiny(cast_slice(row))
        })
    }

    /// What a block reads after a group of columns of a packed `b`, as elements back and ahead of the same column there: the
    /// next group, or the first one at the next steps.
    fn next_group(&self, part: &Part<'_, O::Sum>, group: &Range<usize>, lanes: usize) -> Option<(usize, usize)> {
        let (k, columns) = (self.depth, &part.block.columns);
        match group.end < columns.end {
            true => Some((0, group.len() * k)),
            false if part.steps.end < k => Some(((group.start - columns.start) * k, part.steps.len() * lanes)),
            false => None,
        }
    }

    /// All tiles of a single row whose `b` is read in place, packed as a whole, or of small integers.
    ///
    /// # Safety
    /// As [`Plan::block`].
    unsafe fn row(&self, part: &Part<'_, O::Sum>, lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let Range { start, end } = part.block.columns;
        if let Right::Dequantized(b) = &self.product.b {
            for column in (start..end).step_by(INTEGERS) {
                let count = INTEGERS.min(end - column);
                lookout.after(count * part.steps.len() * MULTIPLICATION)?;
                // SAFETY: the caller's; the tile is a part of the block, and its row of `a` has a step after the other.
                unsafe {
                    let tile = self.tile(part, (part.block.rows.start, 1), column, count, start);
                    let x = std::slice::from_raw_parts(tile.a, tile.steps);
                    let sums = std::slice::from_raw_parts_mut(tile.out, count);
                    b.row(x, &part.steps, column..column + count, sums);
                }
            }
            return Ok(());
        }
        let abreast = if self.width == self.kernel.width { ABREAST * self.width } else { usize::MAX };
        let mut column = start;
        while column < end {
            let (columns, full) = (self.width.min(end - column), end - column >= abreast);
            let wide = if full { abreast } else { columns };
            // What follows in `b` is read next, so that the steps are done one after the other, and looked at in between.
            for first in (0..part.steps.len().max(1)).step_by(ROW_PIECE) {
                let from = part.steps.start + first;
                let steps = from..part.steps.end.min(from + ROW_PIECE);
                lookout.after(wide * steps.len() * MULTIPLICATION)?;
                let part = Part { steps, a: part.a.wrapping_add(first), ..*part };
                // SAFETY: the caller's; the tiles are a part of the block.
                unsafe {
                    let tile = self.tile(&part, (part.block.rows.start, 1), column, columns, start);
                    if full {
                        let next =
                            if let Right::Packed(_) = self.product.b { self.depth * self.width } else { self.width };
                        (self.kernel.row)(&tile, [1, 2, 3].map(|at| tile.b.wrapping_add(at * next)));
                    } else {
                        (self.kernel.tile)(&tile);
                    }
                }
            }
            column += wide;
        }
        Ok(())
    }

    /// The tile of `height` rows and of `columns` columns from a row and a column on.
    ///
    /// # Safety
    /// It is a part of the block and of the group of columns that starts at `group`. Otherwise as [`Plan::block`].
    unsafe fn tile(
        &self,
        part: &Part<'_, O::Sum>,
        (row, height): (usize, usize),
        column: usize,
        columns: usize,
        group: usize,
    ) -> Tile<O::Sum> {
        let (Product { n, a, b, .. }, k) = (&self.product, self.depth);
        let Part { block, steps, .. } = part;
        let (from, within) = (row - block.rows.start, column - group);
        let [a_room, b_room, ..] = self.rooms;
        // Without steps nothing is read. Else all places exist; what isn't packed is stored as sums are.
        let (a, a_row, a_step) = match a {
            Left::Packed(a) => {
                let at = block.a + row * k + steps.start * height;
                (a.elements.as_ptr().wrapping_add(at), 1, height)
            }
            Left::View(a) if a_room == 0 => {
                let at = block.a + row * a.row + steps.start * a.column;
                (a.elements.start().wrapping_add(at), a.row, a.column)
            }
            Left::View(_) => {
                let own = row_of(steps.len(), self.by_rows);
                let (row, step) = if self.by_rows { (own, 1) } else { (1, height) };
                (part.a.wrapping_add(from * own), row, step)
            }
        };
        let (b, b_step) = match b {
            Right::Packed(b) => {
                let start = column / b.lanes * b.lanes;
                let width = b.lanes.min(n - start);
                let at = block.b + start * k + steps.start * width + column % b.lanes;
                (b.elements.as_ptr().wrapping_add(at), width)
            }
            Right::View(b) if b_room == 0 => {
                let at = block.b + steps.start * b.row + column * b.column;
                (b.elements.start().wrapping_add(at), b.row)
            }
            Right::View(_) | Right::Windows(_) | Right::Dequantized(_) => {
                (part.b.wrapping_add(within * steps.len()), columns)
            }
        };
        // SAFETY: the tile is a part of the block.
        let out = unsafe { part.sums.add(from * part.sums_row + column - block.columns.start) };
        Tile {
            rows: height,
            columns,
            steps: steps.len(),
            a,
            a_row,
            a_step,
            b,
            b_step,
            few: self.few(block, steps, column, columns),
            out,
            out_row: part.sums_row,
            start: match steps.start {
                0 => Start::Nothing,
                _ if self.steps >= BLOCK => Start::Block,
                at if at.is_multiple_of(BLOCK) => Start::Nothing,
                _ => Start::Sum,
            },
            bias: match self.bias.filter(|_| steps.end == k).and_then(|bias| bias.get(column..)) {
                Some(bias) => bias.as_ptr(),
                None => std::ptr::null(),
            },
            next: b,
            next_step: 0,
            later: false,
        }
    }

    /// What says of some steps of a tile whether their bytes are few, or null.
    fn few(&self, block: &Block, steps: &Range<usize>, column: usize, columns: usize) -> *const u8 {
        match &self.product.b {
            Right::Packed(b)
                if self.quads && self.kernel.prefers_few && columns == b.lanes && column.is_multiple_of(columns) =>
            {
                let room = b.lanes * quads::depth_of_few(self.depth);
                let all = b.after(block.b + (self.depth + 2) * self.product.n + column / b.lanes * room);
                all.elements.as_ptr().cast::<u8>().wrapping_add(steps.start)
            }
            _ => std::ptr::null(),
        }
    }

    /// Applies the epilogue to the sums of a row of a block.
    fn finish(&self, block: &Block, row: usize, sums: &mut [O::Sum]) {
        let steps = self.product.epilogue;
        if steps.is_empty() {
            return;
        }
        let mut column = block.columns.start;
        let mut rest = sums;
        while !rest.is_empty() {
            let place = self.place(block.matrix, row, column);
            // A column of several matrices goes on in the next one.
            let most = if place.down { PART.min(self.output.m - place.row) } else { PART };
            let (part, others) = rest.split_at_mut(most.min(rest.len()));
            steps.iter().for_each(|step| step.apply(&place, part));
            (rest, column) = (others, column + part.len());
        }
    }
}
