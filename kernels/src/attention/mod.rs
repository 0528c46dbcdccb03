//! Attention: each query makes a mean of values, weighted by how well it fits their keys.
//!
//! Scores are computed for a block of queries at a time, never for all. What a query gets depends on its own numbers
//! alone: blocks and threads change nothing. Which keys it sees is an interval ([`Sight`]) and a bias ([`Bias`]). A key
//! that is out of sight, or whose bias is -inf, doesn't count, whatever it and its value hold.
//!
//! ```ignore
//! let plan = attention.plan(resources);
//! let mut scratch = call.scratch(plan.scratch())?;
//! plan.run(out, None, scratch.elements_mut(), resources)?;
//! ```

mod recurrence;
mod rows;
#[cfg(test)]
mod tests;
mod tokens;

pub use recurrence::{Decay, Recurrence};
pub use tokens::{causal_row, turn};

use super::gemm::{self, Left, Packed, Product, Right, Side, View};
use super::lanes::Floating;
use super::{Resources, Stopped, parallel, volume};
use half::{bf16, f16};
use rows::{Block, rounded};

/// `f32` or `f64`.
pub trait Numbers: Floating + gemm::Number + gemm::Operand<Sum = Self> {
    /// Rounds numbers to float16, bfloat16 and float32.
    const ROUNDED: [fn(&mut [Self]); 3];
}

impl Numbers for f32 {
    const ROUNDED: [fn(&mut [f32]); 3] = [rounded::<f16, f32>, rounded::<bf16, f32>, rounded::<f32, f32>];
}

impl Numbers for f64 {
    const ROUNDED: [fn(&mut [f64]); 3] = [rounded::<f16, f64>, rounded::<bf16, f64>, rounded::<f32, f64>];
}

/// `out = softmax(softcap(scale * q k^T) + bias) v`, for each head.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a, T> {
    pub sizes: Sizes,
    pub q: Heads<'a, T>,
    pub k: Heads<'a, T>,
    pub v: Heads<'a, T>,
    pub scale: T,
    /// Scores become `softcap * tanh(score / softcap)`, unless it is 0.
    pub softcap: T,
    pub sight: Sight<'a>,
    pub bias: Option<Bias<'a, T>>,
    /// Rounds scores before the softmax, and its result.
    pub round: Option<fn(&mut [T])>,
    /// The same steps as nodes compute them one after the other: what doesn't count is no exception.
    pub written: Option<Written<T>>,
    /// Where the output has its rows.
    pub out: Layout,
}

/// `softmax(scale(q k) + bias) v`, each step rounded as by itself: no key is out of sight, and a weight of 0 times infinity
/// is NaN.
#[derive(Debug, Clone, Copy)]
pub struct Written<T> {
    /// What queries and keys are multiplied by, before their product.
    pub factors: [Option<T>; 2],
    /// The keys are rows, and not the columns of their matrix.
    pub key_rows: bool,
    /// What the scores are multiplied or divided by.
    pub scale: Option<Scale<T>>,
    /// What a weight becomes that is NaN.
    pub nan: Option<T>,
}

/// A step of scores.
#[derive(Debug, Clone, Copy)]
pub enum Scale<T> {
    Times(T),
    By(T),
}

#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub batch: usize,
    /// Heads of keys and values.
    pub heads: usize,
    /// Heads of queries for each of these. They follow each other.
    pub group: usize,
    pub queries: usize,
    pub keys: usize,
    /// Numbers of a query or key, and of a value.
    pub size: usize,
    pub value_size: usize,
}

/// How far batches, heads and rows are apart. The numbers of a row are neighbours.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub batch: usize,
    pub head: usize,
    pub row: usize,
}

impl Layout {
    fn at(&self, batch: usize, head: usize, row: usize) -> usize {
        batch * self.batch + head * self.head + row * self.row
    }
}

/// Rows of numbers.
#[derive(Debug, Clone, Copy)]
pub struct Heads<'a, T> {
    pub elements: &'a [T],
    pub layout: Layout,
}

impl<'a, T> Heads<'a, T> {
    /// The elements from a row on.
    fn from(&self, batch: usize, head: usize, row: usize) -> &'a [T] {
        self.elements.get(self.layout.at(batch, head, row)..).unwrap_or(&[])
    }
}

/// The keys that a query sees: those from `left` before its own position to `right` after it, and of these only the
/// valid ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sight<'a> {
    pub left: Option<usize>,
    pub right: Option<usize>,
    /// The position of the first query among the keys.
    pub past: usize,
    /// The number of valid keys of each batch: the last of them has the position of the last query.
    pub valid: Option<&'a [usize]>,
}

impl Sight<'_> {
    fn keys(&self, sizes: &Sizes, batch: usize, query: usize) -> std::ops::Range<usize> {
        let valid = self.valid.map(|valid| valid.get(batch).copied().unwrap_or(0).min(sizes.keys));
        // No position is near the ends of i64: rows of that many queries or keys don't fit in memory.
        let past = valid.map_or(self.past as i64, |valid| valid as i64 - sizes.queries as i64);
        let position = past.saturating_add(query as i64);
        let bound = |key: i64| usize::try_from(key.max(0)).unwrap_or(usize::MAX);
        let distance = |keys: usize| i64::try_from(keys).unwrap_or(i64::MAX);
        let start = self.left.map_or(0, |left| bound(position.saturating_sub(distance(left))));
        let end =
            self.right.map_or(usize::MAX, |right| bound(position.saturating_add(distance(right)).saturating_add(1)));
        start..end.min(valid.unwrap_or(sizes.keys))
    }
}

/// What is added to the scores: `elements[at(batch, head, query) + key * column]`, for heads of queries.
#[derive(Debug, Clone, Copy)]
pub struct Bias<'a, T> {
    pub rows: Heads<'a, T>,
    /// 0 if all keys have the same.
    pub column: usize,
    /// Keys from there on are out of sight.
    pub columns: usize,
}

/// What the scores are after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Scores,
    Capped,
    Biased,
    Weights,
}

/// Scores of a block.
const SCORES: usize = 1 << 17;

/// Maximum number of queries of a block, and as many are taken however many keys there are.
const QUERIES: (usize, usize) = (16, 128);

/// Elements that what is packed for a head is a multiple of.
const LINE: usize = 16;

/// Fewer queries don't pay for packing keys.
const PACK_FROM: usize = 16;

/// Multiplications that are worth waking a thread, and using one that is ready.
const WORTH: (usize, usize) = (1 << 19, 1 << 17);

/// An attention, divided.
#[derive(Debug)]
pub struct Plan<'a, T> {
    attention: Attention<'a, T>,
    threads: usize,
    /// Queries of a block, counted through the heads of a group.
    queries: usize,
    /// Blocks for each head of keys.
    blocks: usize,
    /// Elements of the packed keys and values of a head; 0 if they are read as they are.
    packed: [usize; 2],
    /// Elements that a thread needs for queries, scores, scores by key, outputs and products.
    rooms: [usize; 5],
}

impl<'a, T: Numbers> Attention<'a, T> {
    /// Multiplications and scores to be computed; saturates.
    pub fn work(&self) -> u64 {
        let Sizes { batch, heads, group, queries, keys, size, value_size } = self.sizes;
        let each = size.saturating_add(value_size).saturating_add(1);
        volume(1, [&batch, &heads, &group, &queries, &keys, &each]) as u64
    }

    /// Decides how to compute it.
    pub fn plan(self, resources: Resources<'_>) -> Plan<'a, T> {
        let Sizes { group, queries, keys, size, value_size, .. } = self.sizes;
        let rows = group.saturating_mul(queries);
        let (least, most) = QUERIES;
        let queries = (SCORES / keys.max(1)).clamp(least, most).min(rows).max(1);
        let blocks = rows.div_ceil(queries);
        let packed = |pays: bool, size: usize| match pays {
            true => gemm::packed_len::<T>(keys.saturating_mul(size)).next_multiple_of(LINE),
            false => 0,
        };
        // One block packs the values as it reads them.
        // Keys are multiplied where they are packed.
        let multiplied = self.written.is_some_and(|written| written.factors[1].is_some());
        let packed = [packed(rows >= PACK_FROM || multiplied, size), packed(blocks > 1, value_size)];
        let by_key = if packed[0] == 0 && queries > 1 && self.key_rows() { queries.saturating_mul(keys) } else { 0 };
        let product = gemm::scratch_for(queries, size, keys)
            .max(gemm::scratch_for(keys.min(by_key), size, queries))
            .max(gemm::scratch_for(queries, keys, value_size));
        let times = |count: usize| queries.saturating_mul(count);
        let rooms = [times(size), times(keys), by_key, times(value_size), product];
        let work = usize::try_from(self.work()).unwrap_or(usize::MAX);
        let threads = parallel::threads(work, WORTH.1, WORTH.0, resources);
        Plan { attention: self, threads, queries, blocks, packed, rooms }
    }

    /// Whether the numbers of a key are neighbours, and not those of the same place in all keys.
    fn key_rows(&self) -> bool {
        self.written.is_none_or(|written| written.key_rows)
    }

    /// The keys of a head from one on, as the columns of a matrix.
    fn keys(&self, batch: usize, head: usize, first: usize) -> View<'a, T> {
        let Layout { row, .. } = self.k.layout;
        let elements = self.k.from(batch, head, 0);
        match self.key_rows() {
            true => View::rows(elements.get(first.saturating_mul(row)..).unwrap_or(&[]), row).transposed(),
            false => View::rows(elements.get(first..).unwrap_or(&[]), row),
        }
    }

    /// As [`Attention::keys`], the values as the rows.
    fn values(&self, batch: usize, head: usize, first: usize) -> View<'a, T> {
        let Layout { row, .. } = self.v.layout;
        View::rows(self.v.from(batch, head, 0).get(first.saturating_mul(row)..).unwrap_or(&[]), row)
    }
}

/// The output, for all threads.
#[derive(Debug, Clone, Copy)]
struct Out<T> {
    start: *mut T,
    len: usize,
}

// SAFETY: each row is written by one thread.
#[allow(unsafe_code)]
unsafe impl<T: Send> Send for Out<T> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for Out<T> {}

impl<T> Out<T> {
    fn new(elements: &mut [T]) -> Out<T> {
        Out { start: elements.as_mut_ptr(), len: elements.len() }
    }

    /// The elements of a row.
    ///
    /// # Safety
    /// Nobody else may access them meanwhile.
    #[allow(unsafe_code)]
    unsafe fn row<'r>(self, at: usize, len: usize) -> Result<&'r mut [T], Stopped> {
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(Stopped::Misfit);
        }
        // SAFETY: the row is within the output, and the caller has it alone.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) })
    }
}

impl<T: Numbers> Plan<'_, T> {
    /// Elements of scratch memory needed.
    pub fn scratch(&self) -> usize {
        let Sizes { batch, heads, .. } = self.attention.sizes;
        let [keys, values] = self.packed;
        let packed = volume(keys.saturating_add(values), [&batch, &heads]);
        self.room().saturating_mul(self.threads).saturating_add(packed)
    }

    fn room(&self) -> usize {
        self.rooms.iter().fold(0, |sum, room| sum.saturating_add(*room))
    }

    /// Computes the output, and writes the scores after a stage: heads of queries by queries by keys.
    pub fn run(
        &self,
        out: &mut [T],
        kept: Option<(Stage, &mut [T])>,
        scratch: &mut [T],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let Sizes { batch, heads, group, queries, .. } = self.attention.sizes;
        let pairs = batch.saturating_mul(heads);
        if volume(pairs, [&group, &queries]) == 0 {
            return Ok(());
        }
        let Attention { sizes: Sizes { keys, size, value_size, .. }, .. } = self.attention;
        let [of_keys, of_values] = self.packed;
        let (packed_keys, rest) = scratch.split_at_mut_checked(of_keys * pairs).ok_or(Stopped::Misfit)?;
        let (packed_values, rooms) = rest.split_at_mut_checked(of_values * pairs).ok_or(Stopped::Misfit)?;
        let attention = &self.attention;
        let factor = attention.written.and_then(|written| written.factors[1]);
        let of = |batch, head| attention.keys(batch, head, 0);
        pack(packed_keys, of_keys, (size, keys), heads, (of, factor), resources)?;
        let of = |batch, head| attention.values(batch, head, 0);
        pack(packed_values, of_values, (keys, value_size), heads, (of, None), resources)?;
        let (out, kept) = (Out::new(out), kept.map(|(stage, scores)| (stage, Out::new(scores))));
        let rooms: Vec<&mut [T]> = match self.room() {
            0 => std::iter::repeat_with(Default::default).take(self.threads).collect(),
            room => rooms.chunks_exact_mut(room).take(self.threads).collect(),
        };
        let packed = [(&*packed_keys, of_keys), (&*packed_values, of_values)];
        parallel::tasks(pairs.saturating_mul(self.blocks), rooms, resources.stop, |room, at| {
            let (pair, block) = (at / self.blocks, at % self.blocks);
            let first = block * self.queries;
            let rows = first..(first + self.queries).min(group * queries);
            let packed = packed.map(|(elements, size)| {
                Packed::new(Side::Right, elements.get(pair * size..(pair + 1) * size).unwrap_or(&[]))
            });
            let (batch, head) = (pair / heads, pair % heads);
            let block = Block::new(&self.attention, batch, head, rows, kept.map(|(stage, _)| stage));
            self.block(&block, packed, room, out, kept, resources.stop)
        })
    }

    /// Computes the outputs of a block.
    fn block(
        &self,
        block: &Block,
        [packed_keys, packed_values]: [Packed<'_, T>; 2],
        room: &mut [T],
        out: Out<T>,
        kept: Option<(Stage, Out<T>)>,
        stop: Option<&super::Stop>,
    ) -> Result<(), Stopped> {
        let Attention { sizes: Sizes { size, value_size, .. }, .. } = self.attention;
        let Block { batch, head, columns, .. } = block;
        let (m, n) = (block.rows.len(), columns.len());
        let alone = Resources { threads: 1, stop };
        let mut rest = room;
        let mut take = |room: usize, len: usize| {
            let (own, other) = std::mem::take(&mut rest).split_at_mut_checked(room)?;
            rest = other;
            own.get_mut(..len)
        };
        let [q_room, score_room, by_key_room, out_room, product_room] = self.rooms;
        let mut take = |room: usize, len: usize| take(room, len).ok_or(Stopped::Misfit);
        let q = take(q_room, m * size)?;
        let scores = take(score_room, m * n)?;
        let by_key = take(by_key_room, if by_key_room > 0 { m * n } else { 0 })?;
        let outputs = take(out_room, m * value_size)?;
        let scratch = take(product_room, product_room)?;

        self.attention.scaled_queries(block, q)?;
        let queries = View::rows(&*q, size);
        let product = |m, k, n, a, b| Product::<T> { m, k, n, a: Left::View(a), b, batch: &[], epilogue: &[] };
        let keys = self.attention.keys(*batch, *head, columns.start);
        if by_key_room == 0 {
            let keys = match self.packed[0] {
                0 => Right::View(keys),
                _ => Right::Packed(packed_keys.columns_from(columns.start, size)),
            };
            product(m, size, n, queries, keys).plan(alone).run(scores, scratch, alone)?;
        } else {
            // The keys need no packing as the left operand.
            let queries = Right::View(queries.transposed());
            product(n, size, m, keys.transposed(), queries).plan(alone).run(by_key, scratch, alone)?;
            for (from, row) in scores.chunks_exact_mut(n.max(1)).enumerate() {
                for (to, score) in row.iter_mut().zip(by_key.iter().skip(from).step_by(m)) {
                    *to = *score;
                }
            }
        }
        rows::weigh(&self.attention, block, scores, kept, stop)?;
        let values = match self.packed[1] > 0 && columns.start == 0 && n == self.attention.sizes.keys {
            true => Right::Packed(packed_values),
            false => Right::View(self.attention.values(*batch, *head, columns.start)),
        };
        product(m, n, value_size, View::rows(&*scores, n), values).plan(alone).run(outputs, scratch, alone)?;
        rows::finish(&self.attention, block, scores, outputs, out, stop)
    }
}

/// Packs a right operand of so many rows and columns for each head, times a factor, into `len` elements; nothing for 0.
fn pack<'a, T: Numbers>(
    packed: &mut [T],
    len: usize,
    sizes: (usize, usize),
    heads: usize,
    (matrix, factor): (impl Fn(usize, usize) -> View<'a, T> + Sync, Option<T>),
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if packed.is_empty() {
        return Ok(());
    }
    let alone = Resources { threads: 1, ..resources };
    parallel::split(bytemuck::cast_slice_mut(packed), len * size_of::<T>(), resources, |first, packed| {
        let packed: &mut [T] = bytemuck::cast_slice_mut(packed);
        packed.chunks_exact_mut(len).enumerate().try_for_each(|(at, to)| {
            let (batch, head) = ((first + at) / heads, (first + at) % heads);
            gemm::pack(Side::Right, matrix(batch, head), (1, 0), sizes, to, alone)?;
            factor.into_iter().for_each(|factor| rows::multiply(to, factor));
            Ok(())
        })
    })
}
