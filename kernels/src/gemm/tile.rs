//! The innermost loops: a tile of the output stays in registers while `k` runs.
//!
//! All of them sum as [`gemm`](super) says, so each gives the same bits.

#![allow(unsafe_code)] // pointers with strides: `Tile` says what they must point to

use super::BLOCK;
#[cfg(target_arch = "x86_64")]
use super::matrices;
use super::number::Number;
use super::quads::Quads;
use super::tiny;
#[cfg(target_arch = "x86_64")]
use super::vectors::x86::*;
use super::vectors::{Plain, Vector};
use crate::cpu::{LINE, fetch};

/// The loops for one processor level.
#[derive(Debug, Clone, Copy)]
pub struct Kernel<T> {
    /// Maximum size of a tile.
    pub(super) height: usize,
    pub(super) width: usize,
    /// Whether [`Tile::few`] is read.
    pub(super) prefers_few: bool,
    /// Computes a tile.
    pub(super) tile: Compute<T>,
    /// Computes [`ABREAST`] full tiles of one row.
    pub(super) row: unsafe fn(&Tile<T>, next: [*const T; ABREAST - 1]),
    /// Computes full tiles whose left operand has [`tiny`] numbers, if that is faster.
    pub(super) tiny: Option<Compute<T>>,
    /// Computes tiles of up to so many rows that have their steps one after the other, if that is faster.
    pub(super) by_rows: Option<(usize, Compute<T>)>,
}

/// What computes a tile.
///
/// # Safety
/// See [`Tile`].
pub(super) type Compute<T> = unsafe fn(&Tile<T>);

/// Tiles of a single row that are computed at once: a tile alone has too few sums to hide the time of an addition.
pub(super) const ABREAST: usize = 4;

/// `out[i, j] = sum over p of a[i, p] * b[p, j]`, or what `start` says. The steps of each [`BLOCK`] have a sum of their own.
///
/// # Safety
/// To be computed, `a[i, p]` at `a + i * a_row + p * a_step` must be readable for `i < rows`, `p < steps`, `b[p, j]` at
/// `b + p * b_step + j` for `j < columns`, `bias[j]` too unless it is null, and `out[i, j]` at `out + i * out_row + j` writable
/// by this thread alone. Unless it starts from nothing, `out` is initialised. `rows` and `columns` are from 1 to those of the
/// kernel. `few` is null, or there is a byte for each step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile<T> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) steps: usize,
    pub(super) a: *const T,
    pub(super) a_row: usize,
    pub(super) a_step: usize,
    pub(super) b: *const T,
    pub(super) b_step: usize,
    /// Whether what a step takes of `b` are [few](super::quads::few) bytes.
    pub(super) few: *const u8,
    pub(super) out: *mut T,
    pub(super) out_row: usize,
    pub(super) start: Start,
    /// What is added to the sum of each column at the end, or null.
    pub(super) bias: *const T,
    /// What will be read next, to be fetched: anything. How far to go at each step, and whether it is read much later.
    pub(super) next: *const T,
    pub(super) next_step: usize,
    pub(super) later: bool,
}

/// What the first steps of a tile start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// There is nothing in the output yet.
    Nothing,
    /// The sum in the output, which they continue.
    Sum,
    /// A sum of their own, which is added to the output.
    Block,
}

/// How `a` is stored: anyhow, or with the elements of each row, or of each step, one after the other while `b` is packed.
const ANY: usize = 0;
const ROWS: usize = 1;
const PACKED: usize = 2;

/// Steps that are taken together, with few instructions beside their multiplications, as another thread may share the core.
const TOGETHER: usize = 4;

/// Cache lines that steps which are taken together prefetch of what other tiles read next: as many as the steps read of `b`
/// if that is needed much `later`; else half as many, as other tiles fetch the rest. With `a` stored anyhow, those of one step.
const fn together_lines<T>(columns: usize, a: usize, later: bool) -> usize {
    let lines = (columns * size_of::<T>()).div_ceil(LINE);
    match a {
        ANY => lines,
        _ if later => lines * TOGETHER,
        _ => lines * TOGETHER / 2,
    }
}

/// Maximum rows of a tile.
const MOST: usize = 12;

/// # Safety
/// See [`Tile`] and [`Vector`].
#[inline(always)]
unsafe fn tile<V: Vector, const HEIGHT: usize>(tile: &Tile<V::Of>) {
    macro_rules! by_rows {
        ($($rows:literal)*) => {
            match tile.rows {
                // SAFETY: the caller's.
                $($rows if const { $rows <= HEIGHT } => unsafe { by_columns::<V, $rows>(tile) },)*
                _ => {}
            }
        };
    }
    by_rows!(1 2 3 4 5 6 7 8 9 10 11 12);
}

/// # Safety
/// See [`Tile`] and [`Vector`].
#[inline(always)]
unsafe fn by_columns<V: Vector, const M: usize>(tile: &Tile<V::Of>) {
    // SAFETY: the caller's.
    unsafe {
        let a = match (tile.a_row, tile.a_step) {
            _ if tile.b_step != 2 * V::COUNT => ANY,
            (1, step) if step == M => PACKED,
            (_, 1) => ROWS,
            _ => ANY,
        };
        if tile.columns == 1 {
            sums::<V::One, M, 1, true, ANY, false>(tile);
        } else if tile.columns <= V::COUNT {
            sums::<V, M, 1, false, ANY, false>(tile);
        } else if tile.columns < 2 * V::COUNT {
            sums::<V, M, 2, false, ANY, false>(tile);
        } else {
            match (a, tile.later) {
                (PACKED, true) => sums::<V, M, 2, true, PACKED, true>(tile),
                (PACKED, false) => sums::<V, M, 2, true, PACKED, false>(tile),
                (ROWS, true) => sums::<V, M, 2, true, ROWS, true>(tile),
                (ROWS, false) => sums::<V, M, 2, true, ROWS, false>(tile),
                _ => sums::<V, M, 2, true, ANY, false>(tile),
            }
        }
    }
}

/// `M` rows of `W` vectors; all of the last vector's columns are there if `FULL`. `LATER` is that of the tile.
///
/// # Safety
/// See [`Tile`] and [`Vector`].
#[inline(always)]
unsafe fn sums<V: Vector, const M: usize, const W: usize, const FULL: bool, const A: usize, const LATER: bool>(
    tile: &Tile<V::Of>,
) {
    let Tile { steps, out_row, next_step, .. } = *tile;
    let (together, a_row, a_step, b_step) = match A {
        ANY => (1, tile.a_row, tile.a_step, tile.b_step),
        ROWS => (TOGETHER, tile.a_row, 1, W * V::COUNT),
        _ => (TOGETHER, 1, M, W * V::COUNT),
    };
    let last = tile.columns - (W - 1) * V::COUNT;
    // SAFETY: the caller's. Pointers that no step reads may be anywhere. No tile has more than `MOST` rows.
    unsafe {
        let load = |from: *const V::Of, j: usize| {
            let from = from.add(j * V::COUNT);
            if FULL || j + 1 < W { V::load(from) } else { V::load_some(from, last) }
        };
        // Of every fourth row: by way of one alone, each row would wait for the one before.
        let mut a: [_; MOST.div_ceil(4)] = std::array::from_fn(|k| tile.a.wrapping_add(4 * k * a_row));
        let (mut b, mut next) = (tile.b, tile.next);
        let (mut few, says_few) = (tile.few, !tile.few.is_null());
        let (mut left, mut start) = (steps, tile.start);
        loop {
            let mut sums = [[V::zero(); W]; M];
            if start == Start::Sum {
                for (i, sums) in sums.iter_mut().enumerate() {
                    for (j, sum) in sums.iter_mut().enumerate() {
                        *sum = load(tile.out.add(i * out_row), j);
                    }
                }
            }
            let now = left.min(BLOCK);
            macro_rules! step {
                () => {{
                    let mut row = [V::zero(); W];
                    for (j, row) in row.iter_mut().enumerate() {
                        *row = load(b, j);
                    }
                    macro_rules! add {
                        ($mul_add:ident) => {
                            for (i, sums) in sums.iter_mut().enumerate() {
                                let a = V::splat(a.get_unchecked(i / 4).add(i % 4 * a_row));
                                for (sum, b) in sums.iter_mut().zip(row) {
                                    *sum = a.$mul_add(b, *sum);
                                }
                            }
                        };
                    }
                    // Where no step is of few bytes, nothing is compiled.
                    if const { V::SAYS_FEW && W > 1 && FULL } && says_few && few.read() > 0 {
                        add!(mul_add_of_few);
                    } else {
                        add!(mul_add);
                    }
                    few = few.wrapping_add(1);
                    a = a.map(|a| a.wrapping_add(a_step));
                    b = b.wrapping_add(b_step);
                }};
            }
            for _ in 0..now / together {
                for line in 0..const { together_lines::<V::Of>(W * V::COUNT, A, LATER) } {
                    fetch::<LATER, _>(next.wrapping_byte_add(line * LINE));
                }
                for _ in 0..together {
                    step!();
                }
                next = next.wrapping_add(together * next_step);
            }
            for _ in 0..now % together {
                step!();
            }
            let ends = left <= BLOCK && !tile.bias.is_null();
            for (i, sums) in sums.iter_mut().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    let to = tile.out.add(i * out_row);
                    if start == Start::Block {
                        *sum = load(to, j).add(*sum);
                    }
                    if ends {
                        *sum = sum.add(load(tile.bias, j));
                    }
                    let to = to.add(j * V::COUNT);
                    // A whole vector is stored sooner as such.
                    if FULL || j + 1 < W || last == V::COUNT { sum.store(to) } else { sum.store_some(to, last) }
                }
            }
            if left <= BLOCK {
                return;
            }
            (left, start) = (left - BLOCK, Start::Block);
        }
    }
}

/// [`ABREAST`] tiles of one row, of which `tile` is the first and `next` the places of the others in `b`. They follow
/// each other in `out`.
///
/// # Safety
/// See [`Tile`] and [`Vector`]; each is full.
#[inline(always)]
unsafe fn row<V: Vector>(tile: &Tile<V::Of>, next: [*const V::Of; ABREAST - 1]) {
    let Tile { steps, a_step, b_step, .. } = *tile;
    // SAFETY: the caller's. Pointers that no step reads may be anywhere.
    unsafe {
        let [second, third, fourth] = next;
        let (mut a, mut b) = (tile.a, [tile.b, second, third, fourth]);
        let (mut left, mut start) = (steps, tile.start);
        loop {
            let mut sums = [[V::zero(); 2]; ABREAST];
            if start == Start::Sum {
                for (j, sum) in sums.as_flattened_mut().iter_mut().enumerate() {
                    *sum = V::load(tile.out.add(j * V::COUNT));
                }
            }
            for _ in 0..left.min(BLOCK) {
                let x = V::splat(a);
                for (sums, b) in sums.iter_mut().zip(&mut b) {
                    for (j, sum) in sums.iter_mut().enumerate() {
                        *sum = x.mul_add(V::load(b.add(j * V::COUNT)), *sum);
                    }
                    *b = b.wrapping_add(b_step);
                }
                a = a.wrapping_add(a_step);
            }
            for (j, sum) in sums.as_flattened().iter().enumerate() {
                let to = tile.out.add(j * V::COUNT);
                let mut sum = if start == Start::Block { V::load(to).add(*sum) } else { *sum };
                if left <= BLOCK && !tile.bias.is_null() {
                    sum = sum.add(V::load(tile.bias.add(j * V::COUNT)));
                }
                sum.store(to);
            }
            if left <= BLOCK {
                return;
            }
            (left, start) = (left - BLOCK, Start::Block);
        }
    }
}

/// The kernel for this processor: of plain vectors with tiles of a height, or of those of what `$level_of` gives, highest first.
macro_rules! kernel {
    ($level_of:ident, $type:ty, $tiny:expr; $plain:ty, $height:expr; $($level:literal $features:literal $lanes:ty, $most:literal;)*) => {{
        #[cfg(target_arch = "x86_64")]
        match crate::cpu::$level_of() {
            $($level.. => {
                #[target_feature(enable = $features)]
                unsafe fn of_level(x: &Tile<$type>) {
                    // SAFETY: the caller's; these are the features of the vector.
                    unsafe { tile::<$lanes, $most>(x) }
                }
                #[target_feature(enable = $features)]
                unsafe fn row_of_level(x: &Tile<$type>, next: [*const $type; ABREAST - 1]) {
                    // SAFETY: as above.
                    unsafe { row::<$lanes>(x, next) }
                }
                let (width, prefers_few) = (2 * <$lanes as Vector>::COUNT, <$lanes as Vector>::SAYS_FEW);
                return Kernel { height: $most, width, prefers_few, tile: of_level, row: row_of_level, tiny: $tiny, by_rows: None };
            })*
            _ => {}
        }
        let width = 2 * <$plain as Vector>::COUNT;
        let (tile, row) = (tile::<$plain, { $height }>, row::<$plain>);
        Kernel { height: $height, width, prefers_few: false, tile, row, tiny: $tiny, by_rows: None }
    }};
}

/// The kernel for [`quads`](super::quads).
pub(super) fn quads() -> Kernel<u32> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::has_tiles() {
        return Kernel { by_rows: Some((matrices::ROWS, matrices::tile)), ..vectors_of_quads() };
    }
    vectors_of_quads()
}

fn vectors_of_quads() -> Kernel<u32> {
    kernel! { level_of_bytes, u32, None; Quads<Plain<u32, 4>>, 4;
        5 "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni" Quads<U32x16>, 12;
        4 "avx2,avxvnni" Quads<VnniU32x8>, 6;
        3 "avx2" Quads<U32x8>, 4;
    }
}

/// Implements [`Number`], for any processor and for each level of [`cpu`](crate::cpu).
macro_rules! numbers {
    ($($type:ty: $add:expr, $sub:expr, $mul_add:expr, $quads:expr, $tiny:expr, { $($kernel:tt)* })*) => {$(
        impl Number for $type {
            const ZERO: $type = 0 as $type;

            #[inline(always)]
            fn mul_add(self, by: $type, plus: $type) -> $type {
                $mul_add(self, by, plus)
            }

            #[inline(always)]
            fn add(self, other: $type) -> $type {
                $add(self, other)
            }

            #[inline(always)]
            fn sub(self, other: $type) -> $type {
                $sub(self, other)
            }

            fn kernel() -> Kernel<$type> {
                kernel!(level, $type, $tiny; $($kernel)*)
            }

            fn quads() -> Option<Kernel<$type>> {
                $quads
            }
        }
    )*};
}

/// What every processor of an architecture has, and as many rows as its registers hold the sums of.
#[cfg(target_arch = "aarch64")]
mod base {
    pub(super) use super::super::neon::{F32x8 as Base32, F64x4 as Base64};
    pub(super) const BASE_HEIGHT: usize = 6;
}
#[cfg(not(target_arch = "aarch64"))]
mod base {
    use super::Plain;
    pub(super) type Base32 = Plain<f32, 4>;
    pub(super) type Base64 = Plain<f64, 2>;
    pub(super) const BASE_HEIGHT: usize = 4;
}
use base::*;

numbers! {
    f32: std::ops::Add::add, std::ops::Sub::sub, f32::mul_add, None, tiny::kernel(), {
        Base32, BASE_HEIGHT;
        4 "avx512f,avx512bw,avx512dq,avx512vl,fma" F32x16, 12;
        3 "avx2,fma" F32x8, 6;
    }
    f64: std::ops::Add::add, std::ops::Sub::sub, f64::mul_add, None, None, {
        Base64, BASE_HEIGHT;
        4 "avx512f,avx512bw,avx512dq,avx512vl,fma" F64x8, 12;
        3 "avx2,fma" F64x4, 6;
    }
    u32: u32::wrapping_add, u32::wrapping_sub, |a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c), Some(quads()), None, {
        Plain<u32, 4>, 4;
        4 "avx512f,avx512bw,avx512dq,avx512vl,fma" U32x16, 8;
        3 "avx2,fma" U32x8, 4;
    }
    u64: u64::wrapping_add, u64::wrapping_sub, |a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c), None, None, {
        Plain<u64, 2>, 4;
        4 "avx512f,avx512bw,avx512dq,avx512vl,fma" U64x8, 8;
        3 "avx2,fma" Plain<u64, 4>, 4;
    }
}
