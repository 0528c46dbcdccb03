//! Products of bytes: a step takes four of them from each operand at once.
//!
//! A number of a packed operand holds the bytes of four steps of `k`, the first in its lowest bits; behind the end there are
//! zeros. Those of the left operand are unsigned and those of the right one signed, as processors multiply them. Others are
//! moved by 128, and so are their zero points, which aren't subtracted before sums are there:
//!
//! `sum of (a - z) * (b - y) = sum of a * b - z * sum of b - y * sum of a + k * z * y`
//!
//! All of it wraps, so it is exact modulo 2^32. A packed matrix has the sums of its lanes after its panels, then their zero
//! points, and then, where a processor multiplies [`few`] faster, room to say of which steps the bytes are so.

#![allow(unsafe_code)] // vectors of bytes: the callers in `tile.rs` vouch for them

use super::number::Number;
use super::operand::ZeroPoints;
use super::pack::{Side, turned};
use super::place::Place;
use super::tile::{self, Kernel};
use super::vectors::{Plain, Vector};
use crate::cpu::for_each_level;
use bytemuck::{cast_slice, cast_slice_mut};
use std::ops::Range;

/// Bytes of a number.
pub(super) const SIZE: usize = 4;

/// Numbers that a packed operand has for each lane.
pub(super) fn depth(k: usize) -> usize {
    let steps = k.div_ceil(SIZE);
    steps.saturating_add(2).saturating_add(depth_of_few(steps))
}

/// Those of them for bytes that [`say_few`] writes: a panel as wide as there are has one for each step.
pub(super) fn depth_of_few(steps: usize) -> usize {
    let Kernel { prefers_few, width, .. } = tile::quads();
    if prefers_few { steps.div_ceil(width * size_of::<u32>()) } else { 0 }
}

for_each_level! {
    /// Says of each step of a panel of so many lanes, by a byte that isn't 0, that all its bytes are [`few`].
    pub(super) fn say_few<>(panel: &[u32], lanes: usize, to: &mut [u8]) -> () = say_few_body;
}

#[inline(always)]
fn say_few_body(panel: &[u32], lanes: usize, to: &mut [u8]) {
    for (quads, to) in panel.chunks_exact(lanes).zip(to) {
        *to = quads.iter().fold(true, |all, quad| all & few(*quad)).into();
    }
}

/// Elements of memory for [`Lanes`].
pub(super) fn of_lanes(rows: usize, columns: usize) -> usize {
    2 * rows.saturating_add(columns)
}

/// The bytes of a number, as the left operand has them.
#[inline(always)]
fn unsigned(quad: u32) -> [u32; SIZE] {
    quad.to_le_bytes().map(u32::from)
}

/// As [`unsigned`], of the right operand.
#[inline(always)]
fn signed(quad: u32) -> [u32; SIZE] {
    quad.to_le_bytes().map(|byte| byte as i8 as u32)
}

/// Packs `count` steps of lanes of bytes: `to[p / 4, j]` has `elements[start + p * step + j * lane]`.
///
/// All these places are within `elements`, and `to` has no more steps than are needed.
pub(super) fn panel(elements: &[u8], start: usize, apart: (usize, usize), sizes: (usize, usize), to: &mut [u32]) {
    pack(elements.get(start..).unwrap_or(&[]), apart, sizes, to);
}

for_each_level! {
    fn pack<>(from: &[u8], apart: (usize, usize), sizes: (usize, usize), to: &mut [u32]) -> () = pack_body;
}

#[allow(clippy::indexing_slicing)] // as the caller of `panel` promises
#[inline(always)]
fn pack_body(from: &[u8], (step, lane): (usize, usize), (count, lanes): (usize, usize), to: &mut [u32]) {
    let count = count.min(to.len() / lanes * SIZE);
    let whole = count / SIZE;
    let (full, rest) = to.split_at_mut(whole * lanes);
    if step == 1 {
        match lanes {
            1 => cast_slice_mut(full).copy_from_slice(&from[..whole * SIZE]),
            _ => turned(from, lane, lanes, full),
        }
        full.iter_mut().for_each(|quad| *quad = u32::from_le(*quad));
    } else if lane == 1 {
        for (p, to) in full.chunks_exact_mut(lanes).enumerate() {
            let row = |at: usize| &from[(p * SIZE + at) * step..][..lanes];
            let rows = row(0).iter().zip(row(1)).zip(row(2).iter().zip(row(3)));
            for (to, ((a, b), (c, d))) in to.iter_mut().zip(rows) {
                *to = u32::from_le_bytes([*a, *b, *c, *d]);
            }
        }
    } else {
        for (at, to) in full.iter_mut().enumerate() {
            let start = at / lanes * SIZE * step + at % lanes * lane;
            *to = u32::from_le_bytes(std::array::from_fn(|p| from[start + p * step]));
        }
    }
    for (j, to) in rest.iter_mut().enumerate() {
        let byte = |p: usize| if whole * SIZE + p < count { from[(whole * SIZE + p) * step + j * lane] } else { 0 };
        *to = u32::from_le_bytes(std::array::from_fn(byte));
    }
}

/// Whether bytes are moved: those of the left operand if they are signed, those of the right one if they are not.
fn moves((side, signed): (Side, bool)) -> bool {
    (side == Side::Left) == signed
}

/// Moves the bytes of a panel of `count` steps, unless they stand on the right side already.
pub(super) fn turn(of: (Side, bool), (count, lanes): (usize, usize), panel: &mut [u32]) {
    if moves(of) {
        let (whole, rest) = panel.split_at_mut((count / SIZE * lanes).min(panel.len()));
        flip(whole, 0x8080_8080);
        flip(rest, 0x0080_8080 >> (8 * (SIZE - 1 - count % SIZE)));
    }
}

for_each_level! {
    fn flip<>(panel: &mut [u32], bits: u32) -> () = flip_body;
}

#[inline(always)]
fn flip_body(panel: &mut [u32], bits: u32) {
    panel.iter_mut().for_each(|quad| *quad ^= bits);
}

/// Writes the zero points of lanes, moved as they are.
pub(super) fn zeros<'p, T: Number>(
    zero: Option<ZeroPoints<'_, T>>,
    of: (Side, bool),
    place: impl Fn(usize) -> Place<'p>,
    to: &mut [T],
) {
    to.fill(T::ZERO);
    if let Some(zero) = zero {
        zero.write(place, to);
    }
    if moves(of) {
        let by = if of.0 == Side::Left { 128 } else { -128i32 as u32 };
        cast_slice_mut::<T, u32>(to).iter_mut().for_each(|zero| *zero = zero.wrapping_add(by));
    }
}

/// Adds the bytes of each lane of a panel to its sum.
pub(super) fn add_sums(side: Side, panel: &[u32], sums: &mut [u32]) {
    match side {
        Side::Left => add_left(panel, sums),
        Side::Right => add_right(panel, sums),
    }
}

for_each_level! {
    fn add_left<>(panel: &[u32], sums: &mut [u32]) -> () = add_left_body;
}

for_each_level! {
    fn add_right<>(panel: &[u32], sums: &mut [u32]) -> () = add_right_body;
}

#[inline(always)]
fn add_left_body(panel: &[u32], sums: &mut [u32]) {
    for quads in panel.chunks_exact(sums.len().max(1)) {
        for (sum, quad) in sums.iter_mut().zip(quads) {
            *sum = unsigned(*quad).into_iter().fold(*sum, u32::wrapping_add);
        }
    }
}

#[inline(always)]
fn add_right_body(panel: &[u32], sums: &mut [u32]) {
    for quads in panel.chunks_exact(sums.len().max(1)) {
        for (sum, quad) in sums.iter_mut().zip(quads) {
            *sum = signed(*quad).into_iter().fold(*sum, u32::wrapping_add);
        }
    }
}

/// The sums and zero points of the rows and columns of a block.
#[derive(Debug)]
pub(super) struct Lanes<'a, T> {
    pub(super) left: Line<'a, T>,
    pub(super) right: Line<'a, T>,
    /// Whether a column has a zero point that isn't 0, which few models have: sums of rows count then.
    pub(super) column_zeros: bool,
}

/// Those of one side.
#[derive(Debug)]
pub(super) struct Line<'a, T> {
    sums: &'a mut [T],
    pub(super) zeros: &'a mut [T],
}

impl<'a, T: Number> Lanes<'a, T> {
    /// In a room, for so many rows and columns. Sums are 0.
    pub(super) fn new(room: &'a mut [T], sizes: Option<[usize; 2]>) -> Lanes<'a, T> {
        let [rows, columns] = sizes.unwrap_or_default();
        let (left, rest) = room.split_at_mut(2 * rows);
        let (right, _) = rest.split_at_mut(2 * columns);
        let line = |room: &'a mut [T]| {
            let (sums, zeros) = room.split_at_mut(room.len() / 2);
            sums.fill(T::ZERO);
            Line { sums, zeros }
        };
        Lanes { left: line(left), right: line(right), column_zeros: false }
    }

    /// Says that the zero points are there.
    pub(super) fn begun(&mut self) {
        self.column_zeros = cast_slice::<T, u32>(self.right.zeros).iter().any(|zero| *zero != 0);
    }

    /// Makes sums of `a * b` those of what is less its zero points, of a row of the block.
    pub(super) fn correct(&self, row: usize, k: usize, sums: &mut [T]) {
        let [left, right] = [&self.left, &self.right].map(|line| [&*line.sums, &*line.zeros].map(cast_slice::<T, u32>));
        let ([row_sum, row_zero], [column_sums, column_zeros]) =
            (left.map(|line| line.get(row).copied().unwrap_or(0)), right);
        if row_zero != 0 {
            subtract(cast_slice_mut(sums), row_zero, column_sums);
        }
        if self.column_zeros {
            subtract(cast_slice_mut(sums), row_sum.wrapping_sub(row_zero.wrapping_mul(k as u32)), column_zeros);
        }
    }
}

for_each_level! {
    fn subtract<>(sums: &mut [u32], factor: u32, of_columns: &[u32]) -> () = subtract_body;
}

#[inline(always)]
fn subtract_body(sums: &mut [u32], factor: u32, of_columns: &[u32]) {
    for (sum, number) in sums.iter_mut().zip(of_columns) {
        *sum = sum.wrapping_sub(factor.wrapping_mul(*number));
    }
}

impl<T: Number> Line<'_, T> {
    /// The sums of some lanes.
    pub(super) fn sums(&mut self, first: usize, count: usize) -> &mut [T] {
        self.sums.get_mut(first..first + count).unwrap_or(&mut [])
    }

    /// Takes over those of a packed matrix of `count` lanes.
    pub(super) fn copy(&mut self, from: &[T], count: usize, lanes: &Range<usize>) {
        for (at, to) in [&mut *self.sums, &mut *self.zeros].into_iter().enumerate() {
            if let Some(from) = from.get(at * count + lanes.start..at * count + lanes.end) {
                to.copy_from_slice(from);
            }
        }
    }
}

/// Whether the first two of the bytes, which are signed, and the others are so small that the products of two with any unsigned
/// bytes have a sum of 16 bits: at most 255 * 128.
#[inline(always)]
pub(super) fn few(quad: u32) -> bool {
    let [a, b, c, d] = quad.to_le_bytes().map(|byte| i16::from(byte as i8));
    ((a + b).abs() <= 128) & ((c + d).abs() <= 128)
}

/// A vector of numbers of four bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quads<V>(V);

/// The sums of the products of four bytes.
///
/// # Safety
/// Needs the processor features of its vector, and AVX-512 VNNI if it has 512 bits. Pointers are those of `COUNT` bytes.
pub(super) trait Dot: Vector<Of = u32> {
    /// Whether [`Dot::dot_of_few`] is faster than [`Dot::dot`].
    const PREFERS_FEW: bool = false;

    /// `plus` and the sum of the four products of bytes of `self`, which are unsigned, and of `by`, which are signed
    unsafe fn dot(self, by: Self, plus: Self) -> Self;
    /// As above, by bytes that are [`few`].
    #[inline(always)]
    unsafe fn dot_of_few(self, by: Self, plus: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { self.dot(by, plus) }
    }
    /// As many bytes as numbers.
    unsafe fn widen(from: *const u8) -> Self;
    /// As above, where each is the first three bytes of its number.
    unsafe fn spread(from: *const u8) -> Self;
}

impl<const N: usize> Dot for Plain<u32, N> {
    #[inline(always)]
    unsafe fn dot(self, by: Self, plus: Self) -> Self {
        let mut out = plus.0;
        for ((out, a), b) in out.iter_mut().zip(&self.0).zip(&by.0) {
            for (a, b) in unsigned(*a).iter().zip(&signed(*b)) {
                *out = out.wrapping_add(a.wrapping_mul(*b));
            }
        }
        Plain(out)
    }
    #[inline(always)]
    unsafe fn widen(from: *const u8) -> Self {
        // SAFETY: see `Dot`.
        Plain(unsafe { from.cast::<[u8; N]>().read() }.map(u32::from))
    }
    #[inline(always)]
    unsafe fn spread(from: *const u8) -> Self {
        // SAFETY: see `Dot`.
        Plain(unsafe { from.cast::<[u8; N]>().read() }.map(|byte| u32::from_le_bytes([byte, byte, byte, 0])))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::vectors::x86::{U32x8, U32x16, VnniU32x8};
    use super::Dot;
    use std::arch::x86_64::*;

    impl Dot for U32x16 {
        #[inline(always)]
        unsafe fn dot(self, by: Self, plus: Self) -> Self {
            // SAFETY: see `Dot`.
            U32x16(unsafe { _mm512_dpbusd_epi32(plus.0, self.0, by.0) })
        }
        #[inline(always)]
        unsafe fn widen(from: *const u8) -> Self {
            // SAFETY: see `Dot`.
            U32x16(unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())) })
        }
        #[inline(always)]
        unsafe fn spread(from: *const u8) -> Self {
            // SAFETY: see `Dot`.
            U32x16(unsafe { _mm512_shuffle_epi8(Self::widen(from).0, _mm512_broadcast_i32x4(thrice())) })
        }
    }

    /// For each number of four its first byte thrice, and a zero.
    #[inline(always)]
    unsafe fn thrice() -> __m128i {
        // SAFETY: see `Dot`.
        unsafe { _mm_setr_epi8(0, 0, 0, -1, 4, 4, 4, -1, 8, 8, 8, -1, 12, 12, 12, -1) }
    }

    impl Dot for U32x8 {
        const PREFERS_FEW: bool = true;

        /// Bytes become words first: a sum of two products doesn't fit in 16 bits.
        #[inline(always)]
        unsafe fn dot(self, by: Self, plus: Self) -> Self {
            // SAFETY: see `Dot`.
            unsafe {
                let even = _mm256_and_si256(self.0, _mm256_set1_epi16(0xff));
                let odd = _mm256_srli_epi16::<8>(self.0);
                let by_even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(by.0));
                let by_odd = _mm256_srai_epi16::<8>(by.0);
                let sum = _mm256_add_epi32(plus.0, _mm256_madd_epi16(even, by_even));
                U32x8(_mm256_add_epi32(sum, _mm256_madd_epi16(odd, by_odd)))
            }
        }
        #[inline(always)]
        unsafe fn dot_of_few(self, by: Self, plus: Self) -> Self {
            // SAFETY: see `Dot`.
            unsafe {
                let pairs = _mm256_maddubs_epi16(self.0, by.0);
                U32x8(_mm256_add_epi32(plus.0, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))))
            }
        }
        #[inline(always)]
        unsafe fn widen(from: *const u8) -> Self {
            // SAFETY: see `Dot`.
            U32x8(unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())) })
        }
        #[inline(always)]
        unsafe fn spread(from: *const u8) -> Self {
            // SAFETY: see `Dot`.
            U32x8(unsafe { _mm256_shuffle_epi8(Self::widen(from).0, _mm256_broadcastsi128_si256(thrice())) })
        }
    }

    impl Dot for VnniU32x8 {
        #[inline(always)]
        unsafe fn dot(self, by: Self, plus: Self) -> Self {
            // SAFETY: see `Dot`.
            VnniU32x8(unsafe { _mm256_dpbusd_avx_epi32(plus.0, self.0, by.0) })
        }
        #[inline(always)]
        unsafe fn widen(from: *const u8) -> Self {
            // SAFETY: see `Dot`.
            VnniU32x8(unsafe { U32x8::widen(from).0 })
        }
        #[inline(always)]
        unsafe fn spread(from: *const u8) -> Self {
            // SAFETY: see `Dot`.
            VnniU32x8(unsafe { U32x8::spread(from).0 })
        }
    }
}

impl<V: Dot> Vector for Quads<V> {
    type Of = u32;
    type One = Quads<Plain<u32, 1>>;
    const COUNT: usize = V::COUNT;

    // SAFETY, of all blocks: see `Vector`.
    #[inline(always)]
    unsafe fn zero() -> Self {
        Quads(unsafe { V::zero() })
    }
    #[inline(always)]
    unsafe fn splat(from: *const u32) -> Self {
        Quads(unsafe { V::splat(from) })
    }
    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        Quads(unsafe { V::load(from) })
    }
    #[inline(always)]
    unsafe fn load_some(from: *const u32, count: usize) -> Self {
        Quads(unsafe { V::load_some(from, count) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        unsafe { self.0.store(to) }
    }
    #[inline(always)]
    unsafe fn store_some(self, to: *mut u32, count: usize) {
        unsafe { self.0.store_some(to, count) }
    }
    #[inline(always)]
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
        Quads(unsafe { self.0.dot(by.0, plus.0) })
    }
    const SAYS_FEW: bool = V::PREFERS_FEW;
    #[inline(always)]
    unsafe fn mul_add_of_few(self, by: Self, plus: Self) -> Self {
        Quads(unsafe { self.0.dot_of_few(by.0, plus.0) })
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Quads(unsafe { self.0.add(other.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Left, Packed, Product, Right, Side, View, pack, packed_len_of};
    use crate::Resources;
    use crate::testing::{at_each_level, sized};

    /// Few bytes are multiplied as all others are: as far as 16 bits hold their sums, and beside steps that aren't few.
    #[test]
    fn few_bytes() {
        const QUADS: [[i8; 4]; 6] =
            [[64, 64, -64, -64], [127, 1, -128, 0], [1, 2, -3, 4], [-128, 127, 127, -128], [0; 4], [-127, -1, 3, 125]];
        const MANY: [[i8; 4]; 2] = [[65, 64, 0, 0], [0, 0, -128, -1]];
        let resources = Resources { threads: 2, stop: None };
        for (m, k, n) in sized(&[(9, 1630, 37), (3, 61, 16), (6, 403, 48)][..], &[(2, 9, 17)]) {
            let (m, k, n) = (*m, *k, *n);
            let quad = |step: usize, column: usize| match (step % 5, column % 16) {
                (3, 2 | 9) => MANY[column / 16 % 2],
                _ => QUADS[(step + column) % QUADS.len()],
            };
            let b: Vec<i8> = (0..k * n).map(|at| quad(at / n / 4, at % n)[at / n % 4]).collect();
            let a: Vec<u8> = (0..m * k).map(|at| if at / k % 2 == 0 { 255 } else { (at * 7) as u8 }).collect();
            let term = |i: usize, p: usize, j: usize| i32::from(a[i * k + p]) * i32::from(b[p * n + j]);
            let want: Vec<i32> = (0..m * n).map(|at| (0..k).map(|p| term(at / n, p, at % n)).sum()).collect();
            at_each_level(|| {
                let mut packed = vec![0; packed_len_of::<i8>(Side::Right, 1, (k, n))];
                pack(Side::Right, View::rows(&b, n), (1, k * n), (k, n), &mut packed, resources).unwrap();
                let b = Right::Packed(Packed::of::<i8>(Side::Right, &packed));
                let product =
                    Product::<i32> { m, k, n, a: Left::View(View::rows(&a, k)), b, batch: &[], epilogue: &[] };
                let plan = product.plan(resources);
                let mut out = vec![1; m * n];
                plan.run(&mut out, &mut vec![0; plan.scratch()], resources).unwrap();
                assert_eq!(out.iter().zip(&want).position(|(out, want)| out != want), None, "{m} x {k} x {n}");
            });
        }
    }
}
