//! How a product is divided into blocks of the output, and these among threads.

use super::block::{Block, Out};
use super::operand::{Left, Right};
use super::pack::{MOST_LANES, Side, line_start};
use super::place::{Extent, Place};
use super::quads;
use super::tile::Kernel;
use super::{BLOCK, Batch, Number, Operand, Product};
use crate::cpu::LINE;
use crate::{Resources, Stopped, parallel, volume};
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

/// Rows from which on it pays to multiply them as small matrices.
const BY_ROWS_FROM: usize = 8;

/// Multiplications that are worth waking a thread.
const WORTH_WAKING: usize = 1 << 19;

/// Multiplications that are worth using a thread that is ready.
const WORTH_SHARING: usize = 1 << 17;

/// Elements of scratch memory that are enough for any product of at most `m` by `k` and `k` by `n` elements on one
/// thread, if elements are stored as sums are.
pub fn scratch_for(m: usize, k: usize, n: usize) -> usize {
    let steps = k.min(STEPS);
    let of = |lanes: usize| lanes.saturating_mul(steps);
    // A part of `a`, panels of `b`, sums of a long row, and what all are rounded up by. A single column becomes a single
    // row.
    let widest = m.max(n);
    let panels = of(widest).min(GROUP.max(of(MOST_LANES)));
    of(m).saturating_add(panels).saturating_add(widest.min(LONG_BLOCK + MOST_LANES)).saturating_add(3 * 16 + 64)
}

/// Tiles of rows of a thread from which rows are divided among threads, not columns; and rows, if `b` has so many elements that
/// it takes as long to read it for each thread as to multiply it.
const ROWS_AMONG_FROM: usize = 2;
const ROWS_AMONG_LARGE_B_FROM: (usize, usize) = (48, 1 << 19);

/// Rows, divided into tiles that are as even as can be: 64 rows are 11 + 11 + 11 + 11 + 10 + 10.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    pub(super) count: usize,
    /// Rows of a tile, and the number of those at the start that have one more.
    pub(super) height: usize,
    pub(super) higher: usize,
}

impl Tiles {
    /// `m` rows in tiles of at most so many.
    pub(super) fn new(m: usize, most: usize) -> Tiles {
        Tiles::of(m, m.div_ceil(most))
    }

    /// `m` rows in so many tiles.
    fn of(m: usize, count: usize) -> Tiles {
        let (height, higher) = (m.checked_div(count).unwrap_or(0), m.checked_rem(count).unwrap_or(0));
        Tiles { count, height, higher }
    }

    /// The first row of a tile.
    pub(super) fn start(&self, tile: usize) -> usize {
        tile * self.height + tile.min(self.higher)
    }
}

/// Blocks of an output.
struct Blocks {
    /// Number of matrices, of row blocks and of column blocks.
    counts: [usize; 3],
    /// Tiles of rows: all, and the number of those of a block.
    tiles: Tiles,
    block_tiles: usize,
    /// Columns of a block.
    columns: usize,
}

/// A product, divided: see [`Product::plan`].
#[derive(Debug)]
pub struct Plan<'a, O: Operand> {
    /// As it is computed: matrices of the batch may be folded into one, and operands swapped.
    pub(super) product: Product<'a, O>,
    batch: SmallVec<[Batch; 6]>,
    swapped: bool,
    /// As the caller sees it.
    pub(super) output: Extent<'a>,
    pub(super) kernel: Kernel<O::Sum>,
    /// What tiles add to the sum of each column, before the epilogue.
    pub(super) bias: Option<&'a [O::Sum]>,
    /// Whether operands are bytes of which a step takes four, and steps of the whole product.
    pub(super) quads: bool,
    pub(super) depth: usize,
    /// Whether rows of `a` are packed one after the other.
    pub(super) by_rows: bool,
    threads: usize,
    /// Number of matrices, of row blocks and of column blocks.
    counts: [usize; 3],
    /// Tiles of rows: all, and the number of those of a block.
    pub(super) tiles: Tiles,
    block_tiles: usize,
    /// Columns of a block, and steps of `k` that are done at once.
    columns: usize,
    pub(super) steps: usize,
    /// Columns of a tile, and of tiles that are done before the next rows are.
    pub(super) width: usize,
    pub(super) group: usize,
    /// Elements of scratch memory of a thread for a part of `a`, a panel of `b`, sums, and what belongs to lanes of bytes.
    pub(super) rooms: [usize; 4],
}

impl<'a, O: Operand> Product<'a, O> {
    /// Multiplications to be done; saturates.
    pub fn work(&self) -> u64 {
        volume(1, self.batch.iter().map(|batch| &batch.size).chain([&self.m, &self.k, &self.n])) as u64
    }

    /// Decides how to do it.
    pub fn plan(mut self, resources: Resources<'_>) -> Plan<'a, O> {
        let work = usize::try_from(self.work()).unwrap_or(usize::MAX);
        let output = Extent { m: self.m, n: self.n, batch: self.batch };
        let mut batch: SmallVec<[Batch; 6]> = self.batch.iter().copied().filter(|batch| batch.size != 1).collect();
        if self.m == 0 || self.n == 0 || batch.iter().any(|batch| batch.size == 0) {
            // Other sizes may be anything beside a 0.
            (self.m, self.k, self.n) = (0, 0, 0);
        }
        if let Right::Windows(windows) = self.b
            && let Some(view) = windows.as_view()
        {
            self.b = Right::View(view);
        }
        self.fold(&mut batch);
        let swapped = self.swap(&mut batch);
        let Product { m, k, n, a, b, .. } = self;
        let quads = O::Sum::quads().filter(|_| a.bytes().is_some() && b.bytes().is_some());
        if quads.is_some() {
            // What is packed has quads, sums and zero points.
            let packed = |stride: usize, lanes: usize| {
                let matrices = stride.checked_div(k.saturating_mul(lanes)).unwrap_or(0);
                matrices.saturating_mul(quads::depth(k).saturating_mul(lanes))
            };
            for batch in &mut batch {
                batch.a = if let Left::Packed(_) = a { packed(batch.a, m) } else { batch.a };
                batch.b = if let Right::Packed(_) = b { packed(batch.b, n) } else { batch.b };
            }
        }
        let (work, depth) = if quads.is_some() { (work / quads::SIZE, k.div_ceil(quads::SIZE)) } else { (work, k) };
        let bias = match self.epilogue.split_first().and_then(|(first, rest)| Some((first.row()?, rest))) {
            // The other kernels don't add it, and a row is soon added.
            Some((bias, rest)) if m > 1 && !swapped && quads.is_none() && bias.len() == n => {
                self.epilogue = rest;
                Some(bias)
            }
            _ => None,
        };
        let (mut kernel, quads) = (quads.unwrap_or_else(O::Sum::kernel), quads.is_some());
        let by_rows = kernel.by_rows.filter(|_| m >= BY_ROWS_FROM && matches!(a, Left::View(_)));
        if let Some((height, tile)) = by_rows {
            kernel = Kernel { height, tile, ..kernel };
        }
        let (pack_a, pack_b) = (self.packs_a(), self.packs_b());
        let width = if let Right::Packed(b) = b { kernel.width.min(b.lanes) } else { kernel.width };
        let in_place = O::IN_PLACE;
        let long_rows = m == 1 && n >= LONG_ROW && in_place && !pack_b && matches!(b, Right::View(_));
        let most = match m {
            _ if long_rows => SIDE_BY_SIDE,
            1 if !pack_b => ROW_STEPS,
            _ => STEPS,
        };
        let steps = depth.clamp(1, most);
        // The sum of a block goes on over several steps, and is added to the output then.
        let apart = !in_place || long_rows && depth > BLOCK;

        let threads = parallel::threads(work, WORTH_SHARING, WORTH_WAKING, resources);
        let count = volume(1, batch.iter().map(|batch| &batch.size)).max(1);
        let least = match in_place {
            false => n.div_ceil(COLUMNS),
            true if long_rows => n.div_ceil(LONG_BLOCK),
            true => 1,
        };
        // Who works on some rows before and after the product, works on these rows here.
        let among = count == 1 && !pack_b && matches!(a, Left::View(_));
        let Blocks { counts, tiles, block_tiles, columns } =
            self.blocks(count, [kernel.height, width], least, work, threads, among);
        let room = |wanted: bool, size: usize| if wanted { size.next_multiple_of(16) } else { 0 };
        let tallest = tiles.start(block_tiles.min(tiles.count));
        let group = if tallest <= kernel.height { width } else { (GROUP / steps / width).max(1) * width };
        let rooms = [
            room(pack_a, tallest * row_of(steps, by_rows.is_some())),
            room(pack_b, group.min(n) * steps),
            room(apart, tallest * columns.min(n)),
            room(quads, quads::of_lanes(tallest, columns.min(n))),
        ];
        let product = self;
        Plan {
            product,
            batch,
            swapped,
            output,
            kernel,
            bias,
            quads,
            depth,
            by_rows: by_rows.is_some(),
            threads,
            counts,
            tiles,
            block_tiles,
            columns,
            steps,
            width,
            group,
            rooms,
        }
    }

    /// Whether rows of `a` are packed.
    fn packs_a(&self) -> bool {
        let Left::View(a) = self.a else { return false };
        // Rows that are a multiple of a page apart are in the way of each other in the caches.
        let crowded = a.row.is_multiple_of(4096 / a.elements.size()) && self.m > 4;
        !a.in_place() || (crowded || a.column != 1 && self.m > 1) && self.n >= PACK_A_FROM
    }

    /// Whether columns of `b` are packed.
    fn packs_b(&self) -> bool {
        let Product { m, k, n, a, b, .. } = *self;
        match b {
            Right::Packed(_) => false,
            Right::Windows(_) => true,
            Right::Dequantized(b) => {
                let is_row = m == 1 && matches!(a, Left::View(a) if a.column == 1 || !a.in_place());
                !is_row || !b.has_rows()
            }
            Right::View(b) => {
                let (rows, bytes) = PACK_LARGE_B_FROM;
                let is_large = k.saturating_mul(n).saturating_mul(b.elements.size()) >= bytes;
                let pays = m >= PACK_B_FROM || m >= rows && is_large;
                !b.in_place() || n > 1 && (b.column != 1 || pays)
            }
        }
    }

    /// Blocks of so many matrices, with tiles of at most `height` by `width` and at least so many blocks of columns.
    /// `among` allows to divide rows alone.
    fn blocks(
        &self,
        count: usize,
        [height, width]: [usize; 2],
        least: usize,
        work: usize,
        threads: usize,
        among: bool,
    ) -> Blocks {
        let mut parts = match threads {
            1 => 1,
            _ if work < 8 << 20 => threads,
            _ => 4 * threads,
        };
        let (mut tiles, mut row_blocks) = (Tiles::new(self.m, height), self.m.div_ceil(ROWS));
        let (rows, elements) = ROWS_AMONG_LARGE_B_FROM;
        let are_few = self.m < rows * threads && self.k.saturating_mul(self.n) >= elements;
        if among && threads > 1 && tiles.count >= ROWS_AMONG_FROM * threads && !are_few {
            (row_blocks, parts) = (row_blocks.next_multiple_of(threads), 1);
            tiles = Tiles::of(self.m, tiles.count.next_multiple_of(row_blocks));
        }
        let panels = self.n.div_ceil(width);
        let column_blocks = parts.div_ceil(count.saturating_mul(row_blocks).max(1)).clamp(least, panels.max(1));
        let columns = panels.div_ceil(column_blocks.max(1)).max(1) * width;
        let column_blocks = self.n.div_ceil(columns);
        let row_blocks = parts.div_ceil(count.saturating_mul(column_blocks).max(1)).max(row_blocks);
        let block_tiles = tiles.count.div_ceil(row_blocks.max(1)).max(1);
        Blocks { counts: [count, tiles.count.div_ceil(block_tiles), column_blocks], tiles, block_tiles, columns }
    }

    /// One product of more rows, where all matrices of the batch share `b`.
    fn fold(&mut self, batch: &mut SmallVec<[Batch; 6]>) {
        let Left::View(a) = &mut self.a else { return };
        if self.b.zero().is_some_and(|zero| !zero.strides.batch.is_empty()) {
            return;
        }
        while let Some(&Batch { size, a: stride, b: 0 }) = batch.last() {
            if self.m == 1 {
                a.row = stride;
            } else if self.m.checked_mul(a.row) != Some(stride) {
                return;
            }
            self.m = self.m.saturating_mul(size);
            batch.pop();
        }
    }

    /// A matrix by a single column is a single row by the transposed matrix, whose panels are faster. Returns whether it is
    /// one.
    fn swap(&mut self, batch: &mut SmallVec<[Batch; 6]>) -> bool {
        let (Left::View(a), Right::View(b)) = (self.a, self.b) else { return false };
        if self.n != 1 || self.m < 2 {
            return false;
        }
        (self.m, self.n) = (1, self.m);
        (self.a, self.b) = (Left::View(b.transposed()), Right::View(a.transposed()));
        batch.iter_mut().for_each(|batch| (batch.a, batch.b) = (batch.b, batch.a));
        true
    }
}

/// Elements of a row of `a` that is packed, of so many steps: whole lines of the cache, if rows follow each other.
pub(super) fn row_of(steps: usize, by_rows: bool) -> usize {
    if by_rows { steps.next_multiple_of(LINE / size_of::<u32>()) } else { steps }
}

impl<O: Operand> Plan<'_, O> {
    /// Elements of scratch memory needed.
    pub fn scratch(&self) -> usize {
        let room = self.room();
        if room == 0 { 0 } else { room.saturating_mul(self.threads).saturating_add(64 / size_of::<O::Sum>()) }
    }

    fn room(&self) -> usize {
        self.rooms.iter().fold(0, |sum, room| sum.saturating_add(*room))
    }

    /// Computes the product.
    pub fn run(&self, out: &mut [O], scratch: &mut [O::Sum], resources: Resources<'_>) -> Result<(), Stopped> {
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
            let (tiles, columns) =
                (part(row, self.block_tiles, self.tiles.count), part(column, self.columns, self.product.n));
            let block = Block {
                matrix,
                a,
                b,
                rows: self.tiles.start(tiles.start)..self.tiles.start(tiles.end),
                tiles,
                columns,
            };
            // SAFETY: `check` found that all places exist, `room` is as large as said, and nobody else has this block.
            #[allow(unsafe_code)]
            unsafe {
                self.block(&block, out, room, resources)
            }
        })
    }

    /// A place of a matrix, as the caller sees it.
    pub(super) fn place(&self, matrix: usize, row: usize, column: usize) -> Place<'_> {
        let Extent { m, batch, .. } = self.output;
        let (row, column) = match self.swapped {
            false => (matrix * self.product.m + row, column),
            true => (matrix * self.product.n + column, 0),
        };
        Place { matrix: row / m, row: row % m, column, down: self.swapped, batch }
    }

    /// Checks that each place of the product exists. Returns the number of blocks.
    fn check(&self, out: &[O]) -> Result<usize, Stopped> {
        let Product { m, k, n, a, b, epilogue, .. } = self.product;
        let count = self.counts.iter().product();
        if volume(1, self.batch.iter().map(|batch| &batch.size).chain([&m, &n])) != out.len() {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() || count == 0 {
            return Ok(0);
        }
        let (left, right) = if self.swapped { (b.zero(), a.zero()) } else { (a.zero(), b.zero()) };
        let fits = epilogue.iter().all(|step| step.fits(&self.output))
            && left.is_none_or(|zero| zero.strides.column == 0 && zero.fits(&self.output))
            && right.is_none_or(|zero| zero.strides.row == 0 && zero.fits(&self.output));
        if !fits {
            return Err(Stopped::Misfit);
        }
        if k == 0 && !matches!(b, Right::Dequantized(_)) {
            return Ok(count);
        }
        let depth = if self.quads { quads::depth(k) } else { k };
        let last = |start: fn(&Batch) -> usize| {
            let mut ends = self.batch.iter().map(|batch| (batch.size - 1).checked_mul(start(batch)));
            ends.try_fold(0usize, |sum, end| sum.checked_add(end?)).ok_or(Stopped::Misfit)
        };
        let (last_a, last_b) = (last(|batch| batch.a)?, last(|batch| batch.b)?);
        match a {
            Left::View(a) => a.check(last_a, m, k)?,
            Left::Packed(a) if a.quads == self.quads => a.check(Side::Left, last_a, depth, m)?,
            Left::Packed(_) => return Err(Stopped::Misfit),
        }
        match b {
            Right::View(b) => b.check(last_b, k, n)?,
            Right::Windows(b) => b.check(last_b, k, n)?,
            Right::Packed(b) if b.quads == self.quads => b.check(Side::Right, last_b, depth, n)?,
            Right::Packed(_) => return Err(Stopped::Misfit),
            Right::Dequantized(b) => b.check::<O::Sum>(last_b, k, n)?,
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
