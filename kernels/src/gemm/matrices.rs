//! Tiles of [`quads`](super::quads) where a processor multiplies small [matrices](crate::tiles) of bytes.

#![allow(unsafe_code)] // pointers with strides: `Tile` says what they must point to

use super::tile::{Start, Tile};
use crate::cpu::{LINE, fetch};
use crate::tiles::{self, MOST};
use std::ops::Range;

/// Maximum rows of a tile.
pub(super) const ROWS: usize = 2 * MOST;

/// Bytes of a number.
const SIZE: usize = size_of::<u32>();

/// # Safety
/// See [`Tile`], of at most [`ROWS`] by two matrices, whose `a` has its steps one after the other; nothing is added to its sums.
/// The processor must have matrices.
pub(super) unsafe fn tile(tile: &Tile<u32>) {
    let ([rows, columns], whole) = ([halves(tile.rows), halves(tile.columns)], tile.steps / MOST * MOST);
    // SAFETY: the caller's. Sizes are released where they were set.
    unsafe {
        for steps in [0..whole, whole..tile.steps] {
            if steps.is_empty() && tile.steps > 0 {
                continue;
            }
            tiles::set(rows, columns, steps.len().clamp(1, MOST));
            match (tile.rows > MOST, tile.columns > MOST) {
                (true, true) => sums::<2, 2>(tile, rows[0], steps),
                (true, false) => sums::<2, 1>(tile, rows[0], steps),
                (false, true) => sums::<1, 2>(tile, rows[0], steps),
                (false, false) => sums::<1, 1>(tile, rows[0], steps),
            }
        }
        tiles::release();
    }
}

/// So many rows or columns, in one matrix or two.
fn halves(count: usize) -> [usize; 2] {
    let first = count.min(MOST);
    [first, (count - first).max(1)]
}

/// Adds the products of some steps, of `P` matrices by `W`.
///
/// # Safety
/// As above; sizes must be set.
#[inline(always)]
unsafe fn sums<const P: usize, const W: usize>(tile: &Tile<u32>, second: usize, steps: Range<usize>) {
    let Tile { a, a_row, b, b_step, out, out_row, .. } = *tile;
    let out = [out, out.wrapping_add(second * out_row)];
    // SAFETY: the caller's; a prefetch never faults.
    unsafe {
        match tile.start {
            Start::Nothing if steps.start == 0 => tiles::zero(),
            _ => tiles::load::<P, W>(out.map(<*mut u32>::cast_const), SIZE * out_row),
        }
        for step in steps.step_by(MOST) {
            let rows = [0, second].map(|row| a.wrapping_add(row * a_row + step).cast());
            tiles::multiply::<P, W>(rows, SIZE * a_row, b.wrapping_add(step * b_step), SIZE * b_step);
            let next = tile.next.wrapping_add(step * tile.next_step);
            for line in 0..(MOST * SIZE * tile.next_step).div_ceil(LINE) {
                fetch::<true, _>(next.wrapping_byte_add(line * LINE));
            }
        }
        tiles::store::<P, W>(out, SIZE * out_row);
    }
}
