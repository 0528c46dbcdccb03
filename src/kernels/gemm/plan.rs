//! How a product is divided into blocks of the output, and these among threads.

use super::block::{Block, Out};
use super::pack::{MOST_WIDE, line_start};
use super::tile::Kernel;
use super::{BLOCK, Batch, Number, Operand, Product, Right, View};
use crate::kernels::{Resources, Stopped, parallel, volume};
use smallvec::SmallVec;

/// Steps of `k` that are done at once, so that what they read stays in the caches.
const STEPS: usize = BLOCK;

/// As [`STEPS`], for a single row: nothing is read twice.
const ROW_STEPS: usize = 21 * BLOCK;

/// As [`STEPS`], for a single row by a matrix with [long rows](LONG_ROW): so many of its rows are read side by side. A
/// divisor of [`BLOCK`].
const SIDE_BY_SIDE: usize = 8;

/// Columns from which rows of `b` are long, and columns of a block then.
const LONG_ROW: usize = 768;
const LONG_BLOCK: usize = 4096;

/// Maximum number of rows of a block: with [`STEPS`], half of a usual second cache.
const ROWS: usize = 240;

/// Maximum number of elements of `b` that are read again and again, by one tile of rows after the other.
const GROUP: usize = 1 << 16;

/// Maximum number of columns of a block whose sums are not in the output.
const COLUMNS: usize = 512;

/// Fewer rows don't pay for packing `b`, or a `b` of this many bytes.
const PACK_B_FROM: usize = 16;
const PACK_LARGE_B_FROM: (usize, usize) = (5, 16 << 20);

/// Fewer columns don't pay for packing `a`.
const PACK_A_FROM: usize = 128;

/// Multiplications that are worth waking a thread.
const WORTH_WAKING: usize = 1 << 19;

/// Multiplications that are worth using a thread that is ready.
const WORTH_SHARING: usize = 1 << 17;

/// Elements of scratch memory that are enough for any product of at most `m` by `k` and `k` by `n` elements on one
/// thread, if elements are stored as sums are.
pub(crate) fn scratch_for(m: usize, k: usize, n: usize) -> usize {
    let steps = k.min(STEPS);
    let of = |lanes: usize| lanes.saturating_mul(steps);
    // A part of `a`, panels of `b`, sums of a long row, and what all are rounded up by. A single column becomes a single
    // row.
    let widest = m.max(n);
    let panels = of(widest).min(GROUP.max(of(MOST_WIDE)));
    of(m).saturating_add(panels).saturating_add(widest.min(LONG_BLOCK + MOST_WIDE)).saturating_add(3 * 16 + 64)
}

/// A product, divided: see [`Product::plan`].
#[derive(Debug)]
pub(crate) struct Plan<'a, S: Operand> {
    pub(super) product: Product<'a, S>,
    batch: SmallVec<[Batch; 6]>,
    pub(super) kernel: Kernel<S::Sum>,
    threads: usize,
    /// Number of matrices, of row blocks and of column blocks.
    counts: [usize; 3],
    /// Rows and columns of a block, and steps of `k` that are done at once.
    rows: usize,
    columns: usize,
    pub(super) steps: usize,
    /// Columns of a tile, and of tiles that are done before the next rows are.
    pub(super) width: usize,
    pub(super) group: usize,
    /// Elements of scratch memory of a thread for a part of `a`, a panel of `b`, and sums.
    pub(super) rooms: [usize; 3],
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
            Right::View(b) => {
                let (rows, bytes) = PACK_LARGE_B_FROM;
                let is_large = k.saturating_mul(n).saturating_mul(size_of::<S>()) >= bytes;
                let pays = m >= PACK_B_FROM || m >= rows && is_large;
                (!in_place || n > 1 && (b.column != 1 || pays), kernel.width)
            }
        };
        let long_rows = m == 1 && n >= LONG_ROW && !pack_b && matches!(b, Right::View(_));
        // Rows that are a multiple of a page apart are in the way of each other in the caches.
        let crowded = a.row.is_multiple_of(4096 / size_of::<S>()) && m > 4;
        let pack_a = !in_place || (crowded || a.column != 1 && m > 1) && n >= PACK_A_FROM;
        let most = match m {
            _ if long_rows => SIDE_BY_SIDE,
            1 if !pack_b => ROW_STEPS,
            _ => STEPS,
        };
        let steps = k.clamp(1, most);
        // The sum of a block goes on over several steps, and is added to the output then.
        let apart = !in_place || long_rows && k > BLOCK;

        let threads = parallel::threads(work, WORTH_SHARING, WORTH_WAKING, resources);
        let parts = match threads {
            1 => 1,
            _ if work < 8 << 20 => threads,
            _ => 4 * threads,
        };
        let (count, panels) = (volume(1, batch.iter().map(|batch| &batch.size)).max(1), n.div_ceil(width));
        let row_blocks = m.div_ceil(ROWS);
        let least = match in_place {
            false => n.div_ceil(COLUMNS),
            true if long_rows => n.div_ceil(LONG_BLOCK),
            true => 1,
        };
        let column_blocks = parts.div_ceil(count.saturating_mul(row_blocks).max(1)).clamp(least, panels.max(1));
        let columns = panels.div_ceil(column_blocks.max(1)).max(1) * width;
        let column_blocks = n.div_ceil(columns);
        let row_blocks = parts.div_ceil(count.saturating_mul(column_blocks).max(1)).max(row_blocks);
        let rows = m.div_ceil(row_blocks.max(1)).next_multiple_of(kernel.height).max(1);
        let counts = [count, m.div_ceil(rows), column_blocks];
        let room = |wanted: bool, size: usize| if wanted { size.next_multiple_of(16) } else { 0 };
        let tallest = rows.min(m);
        let group = if tallest <= kernel.height { width } else { (GROUP / steps / width).max(1) * width };
        let rooms =
            [room(pack_a, tallest * steps), room(pack_b, group.min(n) * steps), room(apart, tallest * columns.min(n))];
        Plan { product: self, batch, kernel, threads, counts, rows, columns, steps, width, group, rooms }
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

    /// A matrix by a single column is a single row by the transposed matrix, whose panels are faster.
    fn swap(&mut self, batch: &mut SmallVec<[Batch; 6]>) {
        if let Right::View(b) = self.b
            && self.n == 1
            && self.m > 1
            // The rows of `c` would count otherwise.
            && (batch.is_empty() || self.epilogue.c.is_none())
        {
            (self.m, self.n) = (1, self.m);
            self.b = Right::View(self.a.transposed());
            self.a = b.transposed();
            self.epilogue.c = self.epilogue.c.map(View::transposed);
            batch.iter_mut().for_each(|batch| (batch.a, batch.b) = (batch.b, batch.a));
        }
    }
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
        let (out, room, start) = (Out::of(out), self.room(), line_start(scratch));
        let mut rooms = Vec::new();
        if room > 0 {
            rooms.extend(scratch.get_mut(start..).unwrap_or(&mut []).chunks_exact_mut(room).take(self.threads));
        } else {
            rooms.resize_with(self.threads, Default::default);
        }
        if rooms.is_empty() {
            return Err(Stopped::Misfit);
        }
        let each = row_blocks * column_blocks;
        parallel::tasks(count, rooms, resources.stop, |room, at| {
            let (matrix, row, column) = (at / each, at % each / column_blocks, at % column_blocks);
            let part = |at: usize, size: usize, end: usize| at * size..end.min((at + 1) * size);
            let (a, b) = self.starts(matrix);
            let rows = part(row, self.rows, self.product.m);
            let block = Block { matrix, a, b, rows, columns: part(column, self.columns, self.product.n) };
            // SAFETY: `check` found that all places exist, `room` is as large as said, and nobody else has this block.
            #[allow(unsafe_code)]
            unsafe {
                self.block(&block, out, room, resources)
            }
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
}
