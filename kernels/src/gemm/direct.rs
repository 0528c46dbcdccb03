//! Windows of a few rows and columns over a plane: rows of the output stay in registers while taps run.
//!
//! A tap adds a fused product to each sum, also in padding, in the order of [`Alone`](super::Alone).

#![allow(unsafe_code)] // pointers into a plane: `check` says that they are there

#[cfg(target_arch = "x86_64")]
use super::vectors::x86::{F32x8, F32x16};
use super::vectors::{Plain, Spread, Vector};
use crate::windows::Axis;
use std::ops::Range;

/// Windows of one plane by one filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Direct<'a> {
    pub(super) rows: &'a Axis,
    pub(super) columns: &'a Axis,
    pub(super) plane: &'a [f32],
    pub(super) filter: &'a [f32],
    pub(super) bias: Option<f32>,
}

/// Computes some rows of the output.
///
/// # Safety
/// See [`Direct::run`], whose checks must have succeeded; the processor must have what the vectors need.
type Sums = unsafe fn(&Direct<'_>, Range<usize>, &mut [f32]);

impl Direct<'_> {
    /// Maximum number of columns of the output, whose rows are computed without a look whether to stop.
    const COLUMNS: usize = 4096;

    /// The loop for the windows of two axes, if there is one.
    pub(super) fn of(axes: &[Axis]) -> Option<Sums> {
        let [rows, columns] = axes else { return None };
        let same = (rows.kernel, rows.stride, rows.dilation) == (columns.kernel, columns.stride, columns.dilation);
        if !same || rows.dilation != 1 || columns.output > Direct::COLUMNS {
            return None;
        }
        match (rows.kernel, rows.stride) {
            (3, 1) => Some(sums::<3, 1>()),
            (3, 2) => Some(sums::<3, 2>()),
            (5, 1) => Some(sums::<5, 1>()),
            (5, 2) => Some(sums::<5, 2>()),
            (7, 1) => Some(sums::<7, 1>()),
            (7, 2) => Some(sums::<7, 2>()),
            _ => None,
        }
    }

    /// Writes the rows `at` of the output. Returns false if the plane, the filter or the output has another size.
    pub(super) fn run(&self, sums: Sums, at: Range<usize>, out: &mut [f32]) -> bool {
        let Direct { rows, columns, plane, filter, .. } = self;
        let fits = plane.len() == rows.input * columns.input
            && filter.len() == rows.kernel * columns.kernel
            && at.start <= at.end
            && at.end <= rows.output
            && out.len() == at.len() * columns.output;
        if fits {
            // SAFETY: the sizes are those of the axes; `sums` chose a loop for this processor.
            unsafe { sums(self, at, out) }
        }
        fits
    }
}

/// The loop for this processor: `K` by `K` taps at a stride.
fn sums<const K: usize, const STRIDE: usize>() -> Sums {
    #[cfg(target_arch = "x86_64")]
    match crate::cpu::level() {
        4.. => {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
            fn of_level<const K: usize, const STRIDE: usize>(x: &Direct<'_>, at: Range<usize>, out: &mut [f32]) {
                // SAFETY: as the caller promises; these are the features of the vector.
                unsafe { all_rows::<F32x16, K, STRIDE>(x, at, out) }
            }
            return of_level::<K, STRIDE>;
        }
        3 => {
            #[target_feature(enable = "avx2,fma")]
            fn of_level<const K: usize, const STRIDE: usize>(x: &Direct<'_>, at: Range<usize>, out: &mut [f32]) {
                // SAFETY: as above.
                unsafe { all_rows::<F32x8, K, STRIDE>(x, at, out) }
            }
            return of_level::<K, STRIDE>;
        }
        _ => {}
    }
    all_rows::<Plain<f32, 4>, K, STRIDE>
}

/// Rows of the output that are computed together: what they see of the plane overlaps.
const ROWS: usize = 4;

/// A line in padding, for the widest vector.
static OUTSIDE: [f32; 2 * 15 + 7] = [0.0; 2 * 15 + 7];

/// # Safety
/// See [`Sums`].
#[inline(always)]
unsafe fn all_rows<V: Vector<Of = f32> + Spread<Element = f32>, const K: usize, const STRIDE: usize>(
    x: &Direct<'_>,
    at: Range<usize>,
    out: &mut [f32],
) {
    let Axis { output, input, pad, .. } = *x.columns;
    for column in (0..output).step_by(V::COUNT) {
        let count = V::COUNT.min(output - column);
        // The lanes whose tap of a column is in the plane.
        // SAFETY: the processor has the vector.
        let mut lanes = unsafe { [V::lanes::<STRIDE>(0, 0); K] };
        for (tap, lanes) in lanes.iter_mut().enumerate() {
            let lane = |place: usize| place.saturating_sub(tap).div_ceil(STRIDE).saturating_sub(column).min(count);
            let (low, high) = (lane(pad), lane(pad + input));
            // SAFETY: the processor has the vector.
            *lanes = unsafe { V::lanes::<STRIDE>(low, high.max(low)) };
        }
        let is_inside = count == V::COUNT && column >= pad && column - pad + V::COUNT + K <= input + 1;
        // SAFETY: the caller's; the lanes are in a line of the plane, all of them if neighbours start and end in it.
        unsafe {
            match STRIDE == 1 && is_inside {
                true => columns::<V, K, STRIDE, true>(x, &at, (column, V::COUNT), lanes, out),
                false => columns::<V, K, STRIDE, false>(x, &at, (column, count), lanes, out),
            }
        }
    }
}

/// Some columns of the rows, as many as a vector has at most. All lanes of each tap are there if they are `INSIDE`.
///
/// # Safety
/// See [`Sums`]; the lanes are in a line of the plane.
#[inline(always)]
unsafe fn columns<
    V: Vector<Of = f32> + Spread<Element = f32>,
    const K: usize,
    const STRIDE: usize,
    const INSIDE: bool,
>(
    x: &Direct<'_>,
    at: &Range<usize>,
    (column, count): (usize, usize),
    lanes: [V::Lanes; K],
    out: &mut [f32],
) {
    let Direct { rows, columns, .. } = *x;
    let start = (column * STRIDE).wrapping_sub(columns.pad);
    for row in at.clone().step_by(ROWS) {
        let count_rows = ROWS.min(at.end - row);
        // SAFETY: the processor has the vector.
        let mut sums = unsafe { [V::zero(); ROWS] };
        // The lines of the plane that the rows see. Rows beyond the last one are computed, but not written.
        macro_rules! lines {
            ($($line:literal)*) => {$(
                if $line < (ROWS - 1) * STRIDE + K {
                    let line = (row * STRIDE + $line).wrapping_sub(rows.pad);
                    let from = match line < rows.input {
                        true => x.plane.as_ptr().wrapping_add(line.wrapping_mul(columns.input).wrapping_add(start)),
                        false => OUTSIDE.as_ptr(),
                    };
                    // Weights are read anew if there are more than registers: they would be spilled as whole vectors.
                    let filter = x.filter.as_ptr();
                    let filter = if K > 3 { std::hint::black_box(filter) } else { filter };
                    for (tap, lanes) in lanes.into_iter().enumerate() {
                        let from = from.wrapping_add(tap);
                        // SAFETY: the lanes are in a line of the plane, or of what is outside.
                        let seen = unsafe {
                            if INSIDE { V::load(from) } else { V::zero().load_lanes::<STRIDE>(from, lanes) }
                        };
                        for (i, sum) in sums.iter_mut().enumerate() {
                            if $line >= i * STRIDE && $line < i * STRIDE + K {
                                // SAFETY: a tap of the filter.
                                let weight = unsafe { V::splat(filter.add(($line - i * STRIDE) * K + tap)) };
                                // SAFETY: the processor has the vector.
                                *sum = unsafe { weight.mul_add(seen, *sum) };
                            }
                        }
                    }
                }
            )*};
        }
        lines!(0 1 2 3 4 5 6 7 8 9 10 11 12);
        for (i, sum) in sums.into_iter().enumerate().take(count_rows) {
            // SAFETY: the row is in the output.
            unsafe {
                let sum = match &x.bias {
                    Some(bias) => sum.add(V::splat(bias)),
                    None => sum,
                };
                sum.write(out.as_mut_ptr().add((row - at.start + i) * columns.output + column), count);
            }
        }
    }
}
