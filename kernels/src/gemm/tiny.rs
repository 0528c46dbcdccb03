//! Tiles of weights so small that they have less than all their bits, as what a softmax makes of masked scores: some processors
//! take a hundred times as long for a product of these. Most would change no sum.

#![allow(unsafe_code)] // as in `tile.rs`
// Only processors of x86-64 are slow.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::BLOCK;
use super::tile::{Start, Tile};
use super::vectors::Vector;
use crate::cpu::for_each_level;

/// Rows that are computed together.
const ROWS: usize = 4;

/// Whether a number has less than all its bits, and isn't 0.
#[inline(always)]
fn is_tiny(number: f32) -> bool {
    (number.to_bits() << 1).wrapping_sub(1) < (f32::MIN_POSITIVE.to_bits() << 1) - 1
}

for_each_level! {
    /// Whether there is such a number.
    pub(super) fn has_tiny<>(numbers: &[f32]) -> bool = has_tiny_body;
}

#[inline(always)]
fn has_tiny_body(numbers: &[f32]) -> bool {
    let mut any = false;
    for number in numbers {
        any |= is_tiny(*number);
    }
    any
}

/// Vectors of sums.
///
/// # Safety
/// See [`Vector`], of all functions.
trait Sums: Vector<Of = f32> {
    /// Whether each number is so much larger than another that this, times any number that [`is_tiny`], is less than a quarter
    /// of its last bit: 2^-26 of it at the most. No sum with that changes a bit.
    unsafe fn outweigh(self, others: Self) -> bool;
    /// Whether each number is 0, which isn't negative.
    unsafe fn are_zero(self) -> bool;
    /// The larger magnitudes, where NaN is the largest.
    unsafe fn most(self, others: Self) -> Self;
    /// `self * by`, added to the sum of at most [`BLOCK`] products of numbers that are at most `most` and others that are tiny,
    /// whatever that is; `None` if it matters.
    unsafe fn added_to_tiny(self, by: Self, most: Self) -> Option<Self>;
}

/// What numbers are multiplied by to be compared.
const FACTOR: f32 = (1u128 << 100) as f32;

/// A sum of [`BLOCK`] products of tiny numbers, which are less than 2^-126, is less than the first times the largest of the
/// others, and the second, by which each may be rounded up.
const BOUNDS: [f32; 2] = [1.0 / (1u128 << 116) as f32, f32::MIN_POSITIVE];

/// Steps of a row that begin a sum with products that are tiny: they aren't added up before it matters.
#[derive(Clone, Copy)]
struct Begun<V> {
    first: usize,
    most: [V; 2],
}

/// As the kernels of matrices, of full tiles.
///
/// # Safety
/// See [`Tile`] and [`Vector`]; the tile is full.
#[inline(always)]
unsafe fn tile<V: Sums>(tile: &Tile<f32>) {
    for first in (0..tile.rows).step_by(ROWS) {
        // SAFETY: the caller's.
        unsafe {
            let (a, out) = (tile.a.add(first * tile.a_row), tile.out.add(first * tile.out_row));
            let some = Tile { a, out, ..*tile };
            match tile.rows - first {
                1 => sums::<V, 1>(&some),
                2 => sums::<V, 2>(&some),
                3 => sums::<V, 3>(&some),
                _ => sums::<V, ROWS>(&some),
            }
        }
    }
}

/// # Safety
/// See [`tile`].
#[inline(always)]
unsafe fn sums<V: Sums, const M: usize>(tile: &Tile<f32>) {
    let Tile { a_row, a_step, b_step, out_row, .. } = *tile;
    // SAFETY: the caller's. Pointers that no step reads may be anywhere.
    unsafe {
        let (mut a, mut b, mut left, mut start) = (tile.a, tile.b, tile.steps, tile.start);
        loop {
            let (mut sums, mut begun) = ([[V::zero(); 2]; M], [None::<Begun<V>>; M]);
            if start == Start::Sum {
                for (i, sums) in sums.iter_mut().enumerate() {
                    for (j, sum) in sums.iter_mut().enumerate() {
                        *sum = V::load(tile.out.add(i * out_row + j * V::COUNT));
                    }
                }
            }
            let now = left.min(BLOCK);
            let read = |step: usize| {
                let b = b.add(step * b_step);
                [V::load(b), V::load(b.add(V::COUNT))]
            };
            let add = |sums: &mut [V; 2], i: usize, steps: std::ops::Range<usize>| {
                for step in steps {
                    let a = V::splat(a.add(i * a_row + step * a_step));
                    for (sum, b) in sums.iter_mut().zip(read(step)) {
                        *sum = a.mul_add(b, *sum);
                    }
                }
            };
            for step in 0..now {
                let row = read(step);
                for (i, (sums, begun)) in sums.iter_mut().zip(&mut begun).enumerate() {
                    let from = a.add(i * a_row + step * a_step);
                    match begun {
                        Some(Begun { most, .. }) if is_tiny(*from) || *from == 0.0 => {
                            *most = [most[0].most(row[0]), most[1].most(row[1])];
                            continue;
                        }
                        Some(Begun { first, most }) => {
                            let (a, first) = (V::splat(from), *first);
                            let added = [a.added_to_tiny(row[0], most[0]), a.added_to_tiny(row[1], most[1])];
                            *begun = None;
                            match added {
                                [Some(one), Some(other)] => *sums = [one, other],
                                _ => add(sums, i, first..step + 1),
                            }
                            continue;
                        }
                        None if is_tiny(*from) => {
                            if sums[0].outweigh(row[0]) && sums[1].outweigh(row[1]) {
                                continue;
                            }
                            if sums[0].are_zero() && sums[1].are_zero() {
                                *begun = Some(Begun { first: step, most: row });
                                continue;
                            }
                        }
                        None => {}
                    }
                    let a = V::splat(from);
                    for (sum, b) in sums.iter_mut().zip(row) {
                        *sum = a.mul_add(b, *sum);
                    }
                }
            }
            for (i, (sums, begun)) in sums.iter_mut().zip(begun).enumerate() {
                if let Some(Begun { first, .. }) = begun {
                    add(sums, i, first..now);
                }
                for (j, sum) in sums.iter().enumerate() {
                    let to = tile.out.add(i * out_row + j * V::COUNT);
                    let mut sum = if start == Start::Block { V::load(to).add(*sum) } else { *sum };
                    if left <= BLOCK && !tile.bias.is_null() {
                        sum = sum.add(V::load(tile.bias.add(j * V::COUNT)));
                    }
                    sum.store(to);
                }
            }
            if left <= BLOCK {
                return;
            }
            (a, b) = (a.wrapping_add(now * a_step), b.wrapping_add(now * b_step));
            (left, start) = (left - BLOCK, Start::Block);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::tile::Tile;
    use super::super::vectors::x86::{F32x8, F32x16};
    use super::{BOUNDS, FACTOR, Sums, tile};
    use std::arch::x86_64::*;

    impl Sums for F32x16 {
        #[inline(always)]
        unsafe fn outweigh(self, others: Self) -> bool {
            // SAFETY: the caller's, here and below.
            unsafe {
                let sums = _mm512_mul_ps(_mm512_abs_ps(self.0), _mm512_set1_ps(FACTOR));
                _mm512_cmp_ps_mask::<_CMP_GT_OQ>(sums, _mm512_abs_ps(others.0)) == u16::MAX
            }
        }
        #[inline(always)]
        unsafe fn are_zero(self) -> bool {
            unsafe {
                let bits = _mm512_castps_si512(self.0);
                _mm512_test_epi32_mask(bits, bits) == 0
            }
        }
        #[inline(always)]
        unsafe fn most(self, others: Self) -> Self {
            unsafe {
                let [own, others] = [self, others].map(|all| _mm512_castps_si512(_mm512_abs_ps(all.0)));
                F32x16(_mm512_castsi512_ps(_mm512_max_epi32(own, others)))
            }
        }
        #[inline(always)]
        unsafe fn added_to_tiny(self, by: Self, most: Self) -> Option<Self> {
            unsafe {
                let [first, second] = BOUNDS.map(|bound| _mm512_set1_ps(bound));
                let bound = _mm512_fmadd_ps(_mm512_abs_ps(most.0), first, second);
                let low = _mm512_fmsub_ps(self.0, by.0, bound);
                let high = _mm512_fmadd_ps(self.0, by.0, bound);
                (_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(low, high) == u16::MAX).then_some(F32x16(low))
            }
        }
    }

    impl Sums for F32x8 {
        #[inline(always)]
        unsafe fn outweigh(self, others: Self) -> bool {
            unsafe {
                let sums = _mm256_mul_ps(magnitudes(self.0), _mm256_set1_ps(FACTOR));
                _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(sums, magnitudes(others.0))) == 0xff
            }
        }
        #[inline(always)]
        unsafe fn are_zero(self) -> bool {
            unsafe {
                let bits = _mm256_castps_si256(self.0);
                _mm256_testz_si256(bits, bits) == 1
            }
        }
        #[inline(always)]
        unsafe fn most(self, others: Self) -> Self {
            unsafe {
                let [own, others] = [self, others].map(|all| _mm256_castps_si256(magnitudes(all.0)));
                F32x8(_mm256_castsi256_ps(_mm256_max_epi32(own, others)))
            }
        }
        #[inline(always)]
        unsafe fn added_to_tiny(self, by: Self, most: Self) -> Option<Self> {
            unsafe {
                let [first, second] = BOUNDS.map(|bound| _mm256_set1_ps(bound));
                let bound = _mm256_fmadd_ps(magnitudes(most.0), first, second);
                let low = _mm256_fmsub_ps(self.0, by.0, bound);
                let high = _mm256_fmadd_ps(self.0, by.0, bound);
                let same = _mm256_cmp_ps::<_CMP_EQ_OQ>(low, high);
                (_mm256_movemask_ps(same) == 0xff).then_some(F32x8(low))
            }
        }
    }

    /// # Safety
    /// The processor must have AVX2.
    #[inline(always)]
    unsafe fn magnitudes(numbers: __m256) -> __m256 {
        // SAFETY: the caller's.
        unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), numbers) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn wide(x: &Tile<f32>) {
        // SAFETY: the caller's; these are the features of the vector.
        unsafe { tile::<F32x16>(x) }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn narrow(x: &Tile<f32>) {
        // SAFETY: as above.
        unsafe { tile::<F32x8>(x) }
    }
}

/// What computes full tiles whose left operand has such numbers, on a processor that is slow with them.
pub(super) fn kernel() -> Option<unsafe fn(&Tile<f32>)> {
    #[cfg(target_arch = "x86_64")]
    match crate::cpu::level() {
        4.. => return Some(x86::wide),
        3 => return Some(x86::narrow),
        _ => {}
    }
    None
}
