//! How a product is divided into blocks of the output, and these among threads.

#![allow(unsafe_code)] // blocks of one output are written by several threads, and tiles through pointers

use super::pack::{line_start, panel};
use super::tile::{ABREAST, Kernel, Tile};
use super::{Batch, Number, Operand, Packed, Product, Right, View};
use crate::kernels::cpu::for_each_level;
use crate::kernels::{Resources, Stopped, parallel, volume};
use smallvec::SmallVec;
use std::ops::Range;

/// Steps of `k` that are done at once, so that what they read stays in the caches.
const STEPS: usize = 384;

/// As [`STEPS`], for a single row: nothing is read twice.
const ROW_STEPS: usize = 1 << 16;

/// Maximum number of rows of a block: with [`STEPS`], half of a usual second cache.
const ROWS: usize = 240;

/// Maximum number of columns of a block whose sums are not in the output.
const COLUMNS: usize = 512;

/// Fewer rows don't pay for packing `b`.
const PACK_B_FROM: usize = 16;

/// Fewer columns don't pay for packing `a`.
const PACK_A_FROM: usize = 128;

/// Multiplications between two checks of `Resources::stop`.
const BETWEEN_LOOKS: usize = 4 << 20;

/// Multiplications that are worth waking a thread.
const WORTH_WAKING: usize = 1 << 19;

/// Multiplications that are worth using a thread that is ready.
const WORTH_SHARING: usize = 1 << 17;

/// Elements of scratch memory that is enough for any product of at most `m` by `k` and `k` by `n` elements on one
/// thread, if its elements are stored as sums are.
pub(crate) fn scratch_for(m: usize, k: usize, n: usize) -> usize {
    // A part of `a`, a panel of `b`, and what both are rounded up by.
    let lanes = m.saturating_add(n.min(MOST_WIDE));
    lanes.saturating_mul(k.min(STEPS)).saturating_add(3 * 16 + 64)
}

/// Maximum number of columns of a tile.
pub(super) const MOST_WIDE: usize = 32;

/// A product, divided: see [`Product::plan`].
#[derive(Debug)]
pub(crate) struct Plan<'a, S: Operand> {
    product: Product<'a, S>,
    batch: SmallVec<[Batch; 6]>,
    kernel: Kernel<S::Sum>,
    threads: usize,
    /// Number of matrices, of row blocks and of column blocks.
    counts: [usize; 3],
    /// Rows and columns of a block, and steps of `k` that are done at once.
    rows: usize,
    columns: usize,
    steps: usize,
    /// Columns of a tile.
    width: usize,
    /// Elements of scratch memory of a thread for a part of `a`, a panel of `b`, and sums.
    rooms: [usize; 3],
}

impl<'a, S: Operand> Product<'a, S> {
    /// Multiplications to be done; saturates.
    pub(crate) fn work(&self) -> u64 {
        volume(1, self.batch.iter().map(|batch| &batch.size).chain([&self.m, &self.k, &self.n])) as u64
    }

    /// Decides how to do it.
    pub(crate) fn plan(mut self, resources: Resources<'_>) -> Plan<'a, S> {
        let work = usize::try_from(self.work()).unwrap_or(usize::MAX);
        let mut batch: SmallVec<[Batch; 6]> = self.batch.iter().copied().filter(|batch| batch.size != 1).collect();
        if self.m == 0 || self.n == 0 || batch.iter().any(|batch| batch.size == 0) {
            // Other sizes may be anything beside a 0.
            (self.m, self.k, self.n) = (0, 0, 0);
        }
        self.fold(&mut batch);
        self.swap(&mut batch);
        let Product { m, k, n, a, b, .. } = self;
        let kernel = S::Sum::kernel();
        let in_place = S::IN_PLACE;
        let (pack_b, width) = match b {
            Right::Packed(b) => (false, kernel.width.min(b.width)),
            Right::View(b) => (!in_place || n > 1 && (b.column != 1 || m >= PACK_B_FROM), kernel.width),
        };
        // Rows that are a multiple of a page apart are in the way of each other in the caches.
        let crowded = a.row.is_multiple_of(4096 / size_of::<S>()) && m > 4;
        let pack_a = !in_place || (crowded || a.column != 1 && m > 1) && n >= PACK_A_FROM;
        let most = if m == 1 && !pack_b { ROW_STEPS } else { STEPS };
        let steps = k.div_ceil(k.div_ceil(most).max(1)).max(1);

        let threads = parallel::threads(work, WORTH_SHARING, WORTH_WAKING, resources);
        let parts = match threads {
            1 => 1,
            _ if work < 8 << 20 => threads,
            _ => 4 * threads,
        };
        let (count, panels) = (volume(1, batch.iter().map(|batch| &batch.size)).max(1), n.div_ceil(width));
        let row_blocks = m.div_ceil(ROWS);
        let least = if in_place { 1 } else { n.div_ceil(COLUMNS) };
        let column_blocks = parts.div_ceil(count.saturating_mul(row_blocks).max(1)).clamp(least, panels.max(1));
        let columns = panels.div_ceil(column_blocks.max(1)).max(1) * width;
        let column_blocks = n.div_ceil(columns);
        let row_blocks = parts.div_ceil(count.saturating_mul(column_blocks).max(1)).max(row_blocks);
        let rows = m.div_ceil(row_blocks.max(1)).next_multiple_of(kernel.height).max(1);
        let counts = [count, m.div_ceil(rows), column_blocks];
        let room = |wanted: bool, size: usize| if wanted { size.next_multiple_of(16) } else { 0 };
        let tallest = rows.min(m);
        let rooms = [
            room(pack_a, tallest * steps),
            room(pack_b, width.min(n) * steps),
            room(!in_place, tallest * columns.min(n)),
        ];
        Plan { product: self, batch, kernel, threads, counts, rows, columns, steps, width, rooms }
    }

    /// One product of more rows, where all matrices of the batch share `b`.
    fn fold(&mut self, batch: &mut SmallVec<[Batch; 6]>) {
        while let Some(&Batch { size, a, b: 0 }) = batch.last() {
            if self.m == 1 {
                self.a.row = a;
            } else if self.m.checked_mul(self.a.row) != Some(a) {
                return;
            }
            self.m = self.m.saturating_mul(size);
            batch.pop();
        }
    }

    /// A single row by a transposed matrix is that matrix by a single column: both can be read as they are.
    fn swap(&mut self, batch: &mut SmallVec<[Batch; 6]>) {
        if let Right::View(b) = self.b
            && self.m == 1
            && self.n > 1
            && b.column != 1
        {
            (self.m, self.n) = (self.n, 1);
            self.b = Right::View(self.a.transposed());
            self.a = b.transposed();
            self.epilogue.c = self.epilogue.c.map(View::transposed);
            batch.iter_mut().for_each(|batch| (batch.a, batch.b) = (batch.b, batch.a));
        }
    }
}

/// The output, for all threads.
#[derive(Clone, Copy)]
struct Out<T>(*mut T);

// SAFETY: each block is written by one thread.
unsafe impl<T: Send> Send for Out<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Out<T> {}

/// A block of the output: a part of a matrix whose operands start at `a` and `b`.
struct Block {
    matrix: usize,
    a: usize,
    b: usize,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<S: Operand> Plan<'_, S> {
    /// Elements of scratch memory needed.
    pub(crate) fn scratch(&self) -> usize {
        let room = self.room();
        if room == 0 { 0 } else { room.saturating_mul(self.threads).saturating_add(64 / size_of::<S::Sum>()) }
    }

    fn room(&self) -> usize {
        self.rooms.iter().fold(0, |sum, room| sum.saturating_add(*room))
    }

    /// Computes the product.
    pub(crate) fn run(&self, out: &mut [S], scratch: &mut [S::Sum], resources: Resources<'_>) -> Result<(), Stopped> {
        let [_, row_blocks, column_blocks] = self.counts;
        let count = self.check(out)?;
        let (out, room, start) = (Out(out.as_mut_ptr()), self.room(), line_start(scratch));
        let mut rooms = Vec::new();
        if room > 0 {
            rooms.extend(scratch.get_mut(start..).unwrap_or(&mut []).chunks_exact_mut(room).take(self.threads));
        } else {
            rooms.resize_with(self.threads, Default::default);
        }
        let each = row_blocks * column_blocks;
        parallel::tasks(count, rooms, resources.stop, |room, at| {
            let (matrix, row, column) = (at / each, at % each / column_blocks, at % column_blocks);
            let part = |at: usize, size: usize, end: usize| at * size..end.min((at + 1) * size);
            let (a, b) = self.starts(matrix);
            let rows = part(row, self.rows, self.product.m);
            let block = Block { matrix, a, b, rows, columns: part(column, self.columns, self.product.n) };
            // SAFETY: `check` found that all places exist, and nobody else has this block.
            unsafe { self.block(&block, out, room, resources) }
        })
    }

    /// Checks that each place of the product exists. Returns the number of blocks.
    fn check(&self, out: &[S]) -> Result<usize, Stopped> {
        let Product { m, k, n, a, b, epilogue, .. } = self.product;
        let count = self.counts.iter().product();
        if volume(1, self.batch.iter().map(|batch| &batch.size).chain([&m, &n])) != out.len() {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() || count == 0 {
            return Ok(0);
        }
        let matrices = self.counts.first().copied().unwrap_or(0);
        if let Some(c) = epilogue.c {
            c.check(matrices * m, n)?;
        }
        if k == 0 {
            return Ok(count);
        }
        let last = |start: fn(&Batch) -> usize| {
            let mut ends = self.batch.iter().map(|batch| (batch.size - 1).checked_mul(start(batch)));
            ends.try_fold(0usize, |sum, end| sum.checked_add(end?)).ok_or(Stopped::Misfit)
        };
        let (last_a, last_b) = (last(|batch| batch.a)?, last(|batch| batch.b)?);
        a.from(last_a).ok_or(Stopped::Misfit)?.check(m, k)?;
        match b {
            Right::View(b) => b.from(last_b).ok_or(Stopped::Misfit)?.check(k, n)?,
            Right::Packed(b) => View::rows(b.elements, n).from(last_b).ok_or(Stopped::Misfit)?.check(k, n)?,
        }
        Ok(count)
    }

    /// Where the operands of a matrix of the batch start.
    fn starts(&self, mut matrix: usize) -> (usize, usize) {
        let (mut a, mut b) = (0, 0);
        for batch in self.batch.iter().rev() {
            a += matrix % batch.size * batch.a;
            b += matrix % batch.size * batch.b;
            matrix /= batch.size;
        }
        (a, b)
    }

    /// Computes a block.
    ///
    /// # Safety
    /// `check` must have succeeded for the output, and nobody else may access the block.
    unsafe fn block(
        &self,
        block: &Block,
        out: Out<S>,
        room: &mut [S::Sum],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let Product { m, k, n, a, .. } = self.product;
        let Block { rows, columns, .. } = block;
        let [a_room, b_room, out_room] = self.rooms;
        let (packed_a, rest) = room.split_at_mut(a_room.min(room.len()));
        let (packed_b, own) = rest.split_at_mut(b_room.min(rest.len()));
        // SAFETY: the block is a part of the output.
        let out = unsafe { out.0.add((block.matrix * m + rows.start) * n + columns.start) };
        let (sums, sums_row) = if out_room > 0 { (own.as_mut_ptr(), columns.len()) } else { (out.cast(), n) };
        let mut undone = 0;
        for first in (0..k.max(1)).step_by(self.steps) {
            let steps = first..k.min(first + self.steps);
            let mut tile = Tile {
                rows: 0,
                columns: 0,
                steps: steps.len(),
                a: std::ptr::null(),
                a_row: a.row,
                a_step: a.column,
                b: std::ptr::null(),
                b_step: 0,
                out: sums,
                out_row: sums_row,
                first: first == 0,
                next: std::ptr::null(),
                next_step: 0,
            };
            if a_room > 0 && k > 0 {
                for (from, height) in self.tiles(rows) {
                    let to = packed_a.get_mut(from * steps.len()..(from + height) * steps.len()).unwrap_or(&mut []);
                    let start = block.a + (rows.start + from) * a.row + first * a.column;
                    panel(a.elements, start, (a.column, a.row), height, to);
                }
            }
            let mut column = columns.start;
            while column < columns.end {
                look_after(&mut undone, rows.len() * self.width * steps.len(), resources)?;
                tile.columns = self.width.min(columns.end - column);
                // SAFETY: the block has this column.
                tile.out = unsafe { sums.add(column - columns.start) };
                let (panel_len, is_packed) = self.right(block, &steps, column, packed_b, &mut tile);
                if rows.len() == 1 && b_room == 0 && a_room == 0 {
                    // SAFETY: as for tiles below.
                    unsafe { tile.a = self.a_at(block, rows.start, first) };
                    tile.rows = 1;
                    let abreast = ABREAST * self.width;
                    if self.width == self.kernel.width && columns.end - column >= abreast && k > 0 {
                        let next = [1, 2, 3].map(|at| tile.b.wrapping_add(at * panel_len));
                        // SAFETY: these panels too are a part of the block.
                        unsafe { (self.kernel.row)(&tile, next) };
                        column += abreast;
                        continue;
                    }
                }
                let (b, count) = (tile.b, self.tiles(rows).count());
                for (at, (from, height)) in self.tiles(rows).enumerate() {
                    tile.rows = height;
                    // SAFETY: rows of the block, and steps of `k`; `check` found that they exist.
                    unsafe {
                        tile.out = sums.add(from * sums_row + column - columns.start);
                        if a_room > 0 {
                            (tile.a, tile.a_row, tile.a_step) = (packed_a.as_ptr().add(from * steps.len()), 1, height);
                        } else if k > 0 {
                            tile.a = self.a_at(block, rows.start + from, first);
                        }
                    }
                    if is_packed {
                        // Each tile fetches a part of the next panel.
                        tile.next = b.wrapping_add(panel_len + at * steps.len() / count * tile.columns);
                        tile.next_step = tile.columns / count;
                    }
                    // SAFETY: see `check`.
                    unsafe { (self.kernel.tile)(&tile) };
                }
                column += tile.columns;
            }
        }
        for row in 0..rows.len() {
            // SAFETY: a row of the block, which is initialised now.
            let sums = unsafe { std::slice::from_raw_parts_mut(sums.add(row * sums_row), columns.len()) };
            self.finish(block.matrix * m + rows.start + row, columns.start, sums);
            if out_room > 0 {
                // SAFETY: a row of the block; it is not where the sums are.
                S::narrow(sums, unsafe { std::slice::from_raw_parts_mut(out.add(row * n), columns.len()) });
            }
        }
        Ok(())
    }

    /// The tiles of a column of the block: their first row, counted from that of the block, and their height. They are
    /// as even as can be: 64 rows are 11 + 11 + 11 + 11 + 10 + 10.
    fn tiles(&self, rows: &Range<usize>) -> impl Iterator<Item = (usize, usize)> + use<S> {
        let (mut from, end, most) = (0, rows.len(), self.kernel.height);
        std::iter::from_fn(move || {
            let left = end - from;
            let height = left.div_ceil(left.div_ceil(most).max(1));
            from += height;
            (height > 0).then_some((from - height, height))
        })
    }

    /// Where a row of `a` is.
    ///
    /// # Safety
    /// The row and the step exist, and `a` is not to be packed.
    unsafe fn a_at(&self, block: &Block, row: usize, step: usize) -> *const S::Sum {
        let a = self.product.a;
        // SAFETY: `check` found that the place exists. What isn't packed is stored as sums are.
        unsafe { a.elements.as_ptr().add(block.a + row * a.row + step * a.column).cast() }
    }

    /// Sets where a tile from `column` on finds `b`. Returns how far the next panel is, and whether `b` is packed.
    fn right(
        &self,
        block: &Block,
        steps: &Range<usize>,
        column: usize,
        room: &mut [S::Sum],
        tile: &mut Tile<S::Sum>,
    ) -> (usize, bool) {
        let Product { k, n, b, .. } = self.product;
        match b {
            _ if k == 0 => (0, false),
            Right::Packed(b) => {
                let (start, within) = (column / b.width * b.width, column % b.width);
                let width = b.width.min(n - start);
                tile.b = b.elements.as_ptr().wrapping_add(block.b + start * k + steps.start * width + within);
                tile.b_step = width;
                tile.next_step = 16 * width;
                (width * k, true)
            }
            Right::View(b) if self.rooms[1] == 0 => {
                let start = block.b + steps.start * b.row + column * b.column;
                tile.b = b.elements.as_ptr().wrapping_add(start).cast();
                tile.b_step = b.row;
                tile.next = tile.b;
                tile.next_step = b.row;
                (self.width, false)
            }
            Right::View(b) => {
                let to = room.get_mut(..tile.columns * steps.len()).unwrap_or(&mut []);
                let start = block.b + steps.start * b.row + column * b.column;
                panel(b.elements, start, (b.row, b.column), tile.columns, to);
                (tile.b, tile.b_step, tile.next, tile.next_step) = (to.as_ptr(), tile.columns, to.as_ptr(), 0);
                (0, false)
            }
        }
    }

    /// Applies the epilogue to sums of a row of the batch, from `column` on.
    fn finish(&self, row: usize, column: usize, sums: &mut [S::Sum]) {
        let epilogue = &self.product.epilogue;
        if let Some(c) = epilogue.c {
            let c_at = |column: usize| c.elements.get(row * c.row + column * c.column..).unwrap_or(&[]);
            if c.column < 2 {
                scale::<S>(sums, epilogue.alpha, epilogue.beta, c_at(column), c.column == 0);
            } else {
                for (at, sum) in sums.iter_mut().enumerate() {
                    let sum = std::slice::from_mut(sum);
                    scale::<S>(sum, epilogue.alpha, epilogue.beta, c_at(column + at), true);
                }
            }
        } else if epilogue.alpha != 1.0 {
            sums.iter_mut().for_each(|sum| *sum = S::scale(*sum, epilogue.alpha, None));
        }
        if let Some(then) = epilogue.then {
            then(sums);
        }
    }
}

/// Checks `Resources::stop` now and then: `work` multiplications are to be done now.
fn look_after(undone: &mut usize, work: usize, resources: Resources<'_>) -> Result<(), Stopped> {
    *undone += work;
    if *undone < BETWEEN_LOOKS {
        return Ok(());
    }
    *undone = 0;
    parallel::look(resources.stop)
}

for_each_level! {
    fn scale<S: Operand>(sums: &mut [S::Sum], alpha: f32, beta: f32, c: &[S], same: bool) -> () = scale_body::<S>;
}

/// `alpha * sums + beta * c`, with the first of `c` for all if they have the `same`.
#[inline(always)]
fn scale_body<S: Operand>(sums: &mut [S::Sum], alpha: f32, beta: f32, c: &[S], same: bool) {
    match c {
        [c, ..] if same => sums.iter_mut().for_each(|sum| *sum = S::scale(*sum, alpha, Some((*c, beta)))),
        _ => {
            for (sum, c) in sums.iter_mut().zip(c) {
                *sum = S::scale(*sum, alpha, Some((*c, beta)));
            }
        }
    }
}
