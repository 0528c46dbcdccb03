//! Elementwise operations: one walk that knows bytes and broadcasting, and row kernels that know one function on one
//! type.
//!
//! The walk hands row kernels contiguous operands of equal length. An operand is read where it stands if its elements
//! are neighbours there. Otherwise a tile of it is put together in a small buffer first: elements that repeat, short
//! rows, and operands whose memory the output takes over.

mod rows;

pub use rows::{
    Bytes, Floats, Ints, Row, RowOf, Test, byte_row, float_row, has_bits, int_row, number_row, of_f64, rounded_row,
    select, test_row, to_f64,
};

use super::cpu::{LINE, for_each_level, prefetch};
use super::positions::{self, Dim, Dims, Rows};
use super::{Resources, Stopped, parallel};
use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// An operand, which is broadcast to the shape of the output.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// The elements; `None` if they stand in the output, which then has the same shape and size of elements.
    pub bytes: Option<&'a [u8]>,
    /// Bytes of an element.
    pub size: usize,
    /// The shape, aligned to the last dimension of the output; each dimension is that of the output or 1.
    pub shape: &'a [usize],
}

/// Minimum length of rows that are read where they stand.
const SHORT: usize = 512;

/// Minimum bytes of a part of the output that is copied from memory, not from a cache, before it is written.
const FAR: usize = 1 << 20;

/// Calls `row` with parts of `out` and the operands' elements for it, until `out` is written. An element takes the time of
/// `cost` simple ones.
pub fn walk<const N: usize>(
    shape: &[usize],
    operands: [Operand<'_>; N],
    out: &mut [u8],
    size: usize,
    row: &RowOf<'_, N>,
    cost: usize,
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    let dims = dims(shape, &operands);
    // What is read may be more than what is written.
    let widest = operands.iter().map(|operand| operand.size).max().unwrap_or(1);
    parallel::split_by(out, size, cost.saturating_mul(widest.div_ceil(size)), resources, |first, out| {
        let part = Part { dims: &dims, operands: &operands, first, size, row };
        // Clearing large buffers takes longer than a few elements, and so does copying much from the output at once.
        match out.len() / size {
            ..=32 => part.compute::<64>(out),
            4096.. if operands.iter().all(|operand| operand.bytes.is_some()) => part.compute::<1024>(out),
            _ => part.compute::<512>(out),
        }
        Ok(())
    })
}

/// The dimensions of the output. An operand has a step of 0 where it is broadcast.
fn dims<const N: usize>(shape: &[usize], operands: &[Operand<'_>; N]) -> Dims<N> {
    let mut dims = Dims::new();
    let mut strides = [1; N];
    for (d, &size) in shape.iter().rev().enumerate() {
        let mut steps = [0; N];
        for ((step, stride), operand) in steps.iter_mut().zip(&mut strides).zip(operands) {
            let held = operand.shape.iter().rev().nth(d).copied().unwrap_or(1);
            if held > 1 {
                *step = *stride;
                *stride *= held;
            }
        }
        positions::add(&mut dims, size, steps);
    }
    dims
}

/// A part of the output, from the element `first` on.
struct Part<'a, const N: usize> {
    dims: &'a [Dim<N>],
    operands: &'a [Operand<'a>; N],
    first: usize,
    size: usize,
    row: &'a RowOf<'a, N>,
}

/// How a row reads an operand.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    /// Neighbours in memory, from this element on.
    Direct(usize),
    /// A tile in its buffer.
    Buffer,
}

impl<const N: usize> Part<'_, N> {
    /// Computes the part with buffers of `WORDS` times 8 bytes.
    fn compute<const WORDS: usize>(&self, out: &mut [u8]) {
        let mut buffers = [[0u64; WORDS]; N];
        let widest = self.operands.iter().map(|operand| operand.size).max().unwrap_or(1);
        let tile = WORDS * 8 / widest;
        let buffers = buffers.each_mut().map(|buffer| cast_slice_mut::<u64, u8>(buffer));
        match self.dims {
            [inner, _, ..] if inner.size < SHORT => self.tiles(out, tile, buffers),
            _ => self.rows(out, tile, buffers),
        }
    }

    /// Long rows: only elements that repeat, and those in the output, are put into buffers.
    fn rows(&self, mut out: &mut [u8], tile: usize, mut buffers: [&mut [u8]; N]) {
        // The step of an operand in a row is 0 or 1, because operands are dense.
        let mut walk = Rows::new(self.dims, self.first);
        let is_far = out.len() >= FAR && self.operands.iter().any(|operand| operand.bytes.is_none());
        while !out.is_empty() {
            let (bases, left) = walk.next();
            let (mut segment, rest) = out.split_at_mut((left * self.size).min(out.len()));
            out = rest;
            let count = segment.len() / self.size;
            let mut reads = [Read::Buffer; N];
            for (k, read) in reads.iter_mut().enumerate() {
                let (Some(operand), Some(buffer)) = (self.operands.get(k), buffers.get_mut(k)) else { continue };
                match operand.bytes {
                    Some(_) if walk.steps().get(k) == Some(&1) => {
                        *read = Read::Direct(bases.get(k).copied().unwrap_or(0))
                    }
                    Some(bytes) => {
                        fill(buffer, bytes, bases.get(k).copied().unwrap_or(0), operand.size, count.min(tile))
                    }
                    None => {}
                }
            }
            let most = if reads.contains(&Read::Buffer) { tile } else { count };
            while !segment.is_empty() {
                let (now, rest) = segment.split_at_mut((most * self.size).min(segment.len()));
                // The next tile is on its way while this one is computed.
                if is_far {
                    for line in (0..now.len().min(rest.len())).step_by(LINE) {
                        prefetch(rest, line);
                    }
                }
                self.call(&mut reads, &mut buffers, now);
                segment = rest;
            }
        }
    }

    /// Short rows: tiles are put together from many of them.
    fn tiles(&self, mut out: &mut [u8], tile: usize, mut buffers: [&mut [u8]; N]) {
        let dense: [bool; N] = std::array::from_fn(|k| is_dense(self.dims, k));
        // What repeats is put together once, in tiles that have it some times. The longest is a multiple of the others.
        let periods: [usize; N] = std::array::from_fn(|k| period(self.dims, k));
        let longest = periods.into_iter().filter(|period| *period <= tile).max().unwrap_or(1);
        let tile = tile / longest * longest;
        let mut at = self.first;
        while !out.is_empty() {
            let (now, rest) = out.split_at_mut((tile * self.size).min(out.len()));
            out = rest;
            let count = now.len() / self.size;
            for (k, (operand, buffer)) in self.operands.iter().zip(&mut buffers).enumerate() {
                let repeats = at > self.first && periods.get(k).is_some_and(|period| *period <= tile);
                if let Some(bytes) = operand.bytes.filter(|_| !repeats && dense.get(k) == Some(&false)) {
                    self.put_together(k, bytes, at, buffer.get_mut(..count * operand.size).unwrap_or(&mut []));
                }
            }
            let mut reads = dense.map(|dense| if dense { Read::Direct(at) } else { Read::Buffer });
            for (read, operand) in reads.iter_mut().zip(self.operands) {
                if operand.bytes.is_none() {
                    *read = Read::Buffer;
                }
            }
            self.call(&mut reads, &mut buffers, now);
            at += count;
        }
    }

    /// Fills `to` with what an operand has for the elements from `at` on.
    fn put_together(&self, k: usize, bytes: &[u8], at: usize, mut to: &mut [u8]) {
        let (inner, outer) = (positions::innermost(self.dims), self.dims.get(1..).unwrap_or(&[]));
        let step = |steps: [usize; N]| steps.get(k).copied().unwrap_or(0);
        let size = self.operands.get(k).map_or(1, |operand| operand.size);
        let (mut walk, mut before) = (Rows::new(outer, at / inner.size), at % inner.size);
        while !to.is_empty() {
            let (bases, count) = walk.next();
            let (now, rest) = to.split_at_mut(((count * inner.size - before) * size).min(to.len()));
            let rows = Repeated {
                base: step(bases),
                len: inner.size,
                before,
                repeats: step(inner.steps) == 0,
                stride: step(walk.steps()),
            };
            rows.spread(bytes, size, now);
            (to, before) = (rest, 0);
        }
    }

    /// Calls the row kernel, and moves on.
    fn call(&self, reads: &mut [Read; N], buffers: &mut [&mut [u8]; N], out: &mut [u8]) {
        let count = out.len() / self.size;
        let mut inputs: [&[u8]; N] = [&[]; N];
        for (((input, read), operand), buffer) in inputs.iter_mut().zip(reads).zip(self.operands).zip(buffers) {
            let bytes = count * operand.size;
            *input = match (operand.bytes, *read) {
                (Some(all), Read::Direct(at)) => {
                    *read = Read::Direct(at + count);
                    all.get(at * operand.size..at * operand.size + bytes).unwrap_or(&[])
                }
                (own, _) => {
                    let buffer = buffer.get_mut(..bytes).unwrap_or(&mut []);
                    if own.is_none() {
                        buffer.copy_from_slice(out);
                    }
                    buffer
                }
            };
        }
        (self.row)(inputs, out);
    }
}

/// Whether an operand has each element of the output at the same place.
fn is_dense<const N: usize>(dims: &[Dim<N>], k: usize) -> bool {
    let mut stride = 1;
    dims.iter().all(|dim| {
        let even = dim.steps.get(k) == Some(&stride);
        stride *= dim.size;
        even
    })
}

/// The number of elements after which those of an operand come again.
fn period<const N: usize>(dims: &[Dim<N>], k: usize) -> usize {
    let repeats = |dim: &&Dim<N>| dim.steps.get(k) == Some(&0);
    let outer = dims.iter().rev().take_while(repeats).count();
    dims.iter().take(dims.len() - outer).map(|dim| dim.size).product()
}

/// Rows of `len` elements, `stride` elements from each other, the first of which lacks the elements `before`.
#[derive(Clone, Copy)]
struct Repeated {
    base: usize,
    len: usize,
    before: usize,
    /// A row has one element again and again.
    repeats: bool,
    stride: usize,
}

impl Repeated {
    /// Fills `to` with rows of elements of this size.
    fn spread(self, bytes: &[u8], size: usize, to: &mut [u8]) {
        match size {
            1 => spread::<u8>(self, bytes, to),
            2 => spread::<u16>(self, cast_slice(bytes), cast_slice_mut(to)),
            4 => spread::<u32>(self, cast_slice(bytes), cast_slice_mut(to)),
            // A complex64 has the alignment of its parts.
            8 => spread::<[u32; 2]>(self, cast_slice(bytes), cast_slice_mut(to)),
            _ => spread::<[u64; 2]>(self, cast_slice(bytes), cast_slice_mut(to)),
        }
    }
}

/// Fills `to` with a row of `len` elements of each number.
pub fn rows_of(numbers: &[u8], size: usize, len: usize, to: &mut [u8]) {
    Repeated { base: 0, len, before: 0, repeats: true, stride: 1 }.spread(numbers, size, to);
}

/// Fills `to` with a row again and again.
pub fn row_again(row: &[u8], size: usize, to: &mut [u8]) {
    Repeated { base: 0, len: row.len() / size, before: 0, repeats: false, stride: 0 }.spread(row, size, to);
}

for_each_level! {
    /// Fills `to` with rows.
    fn spread<T: Pod>(rows: Repeated, from: &[T], to: &mut [T]) -> () = spread_body::<T>;
}

#[inline(always)]
fn spread_body<T: Pod>(rows: Repeated, from: &[T], mut to: &mut [T]) {
    let Repeated { mut base, len, mut before, repeats, stride } = rows;
    while !to.is_empty() {
        let (now, rest) = to.split_at_mut((len - before).min(to.len()));
        if repeats {
            from.get(base).into_iter().for_each(|element| now.fill(*element));
        } else {
            now.iter_mut().zip(from.get(base + before..).unwrap_or(&[])).for_each(|(to, from)| *to = *from);
        }
        (base, before, to) = (base + stride, 0, rest);
    }
}

/// Fills the beginning of a buffer with copies of an element.
fn fill(to: &mut [u8], bytes: &[u8], at: usize, size: usize, count: usize) {
    let (Some(to), Some(element)) = (to.get_mut(..count * size), bytes.get(at * size..(at + 1) * size)) else { return };
    rows_of(element, size, count, to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sized;
    use proptest::prelude::*;

    /// An operand's shape: each dimension of `shape` kept or 1, with leading ones left out.
    fn shapes() -> impl Strategy<Value = (Vec<usize>, [Vec<usize>; 2])> {
        let dim = prop_oneof![1usize..4, 1usize..4, Just(1), Just(sized(70, 5)), Just(sized(1100, 6))];
        let dims = prop::collection::vec((dim, any::<[bool; 2]>()), 0..4);
        let small = dims.prop_filter("too large", |dims| dims.iter().map(|(dim, _)| dim).product::<usize>() < 100_000);
        small.prop_map(|dims| {
            let shape: Vec<usize> = dims.iter().map(|(dim, _)| *dim).collect();
            let own = |k: usize| -> Vec<usize> {
                let all = dims.iter().map(|(dim, keep)| if keep[k] { *dim } else { 1 });
                all.skip_while(|dim| *dim == 1).collect()
            };
            let operands = [own(0), own(1)];
            (shape, operands)
        })
    }

    /// The element of an operand at a position of the output, counted slowly.
    fn place(at: usize, shape: &[usize], own: &[usize]) -> usize {
        let (mut at, mut place, mut stride) = (at, 0, 1);
        for (d, dim) in shape.iter().rev().enumerate() {
            let held = own.iter().rev().nth(d).copied().unwrap_or(1);
            place += if held > 1 { at % dim * stride } else { 0 };
            (at, stride) = (at / dim, stride * held);
        }
        place
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(sized(300, 3)))]

        #[test]
        fn each_element_is_computed_from_its_own((shape, own) in shapes(), threads in 1usize..4, inside in any::<bool>()) {
            let count: usize = shape.iter().product();
            let data: [Vec<u32>; 2] = std::array::from_fn(|k| {
                let len: usize = own[k].iter().product();
                (0..len as u32).map(|x| x.wrapping_mul(k as u32 * 70_000 + 3) + 1).collect()
            });
            let want: Vec<u32> = (0..count)
                .map(|at| data[0][place(at, &shape, &own[0])].wrapping_mul(5).wrapping_add(data[1][place(at, &shape, &own[1])]))
                .collect();
            let mut out = vec![0u32; count];
            // The first operand may stand in the output.
            let inside = inside && data[0].len() == count;
            if inside {
                out.copy_from_slice(&data[0]);
            }
            let operands = std::array::from_fn(|k| Operand {
                bytes: (k == 1 || !inside).then_some(cast_slice(&data[k])),
                size: 4,
                shape: &own[k],
            });
            let row = |[a, b]: [&[u8]; 2], out: &mut [u8]| {
                let (a, b) = (cast_slice::<u8, u32>(a), cast_slice::<u8, u32>(b));
                assert!(a.len() == b.len() && a.len() * 4 == out.len());
                for ((a, b), out) in a.iter().zip(b).zip(cast_slice_mut::<u8, u32>(out)) {
                    *out = a.wrapping_mul(5).wrapping_add(*b);
                }
            };
            walk(&shape, operands, cast_slice_mut(&mut out), 4, &row, 1, Resources { threads, stop: None }).unwrap();
            prop_assert_eq!(out, want);
        }
    }
}
