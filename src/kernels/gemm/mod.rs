//! Products of matrices: `out[i, j] = sum over p of a[i, p] * b[p, j]`.
//!
//! The steps of each [`BLOCK`] have a sum of their own, which starts at 0 and runs in the order of `p`, with one
//! [`Number::mul_add`] a step; the sums of blocks are added in order. So the order depends on `k` alone: the result is the
//! same at each processor level, however the work is divided ([`plan`], [`block`]), and however operands are stored
//! ([`pack`]). Tiles of the output stay in registers ([`tile`]).
//!
//! A float32 product is off by at most (384 + k / 384) * 2^-24 of the sum of magnitudes, and by much less in most cases.
//!
//! ```ignore
//! let plan = Product { m, k, n, a, b, batch: &[], epilogue: Epilogue::default() }.plan(resources);
//! let mut scratch = call.scratch(plan.scratch())?;
//! plan.run(out, scratch.elements_mut(), resources)?;
//! ```

mod block;
mod lanes;
mod number;
mod pack;
mod plan;
#[cfg(test)]
mod tests;
mod tile;

pub(crate) use number::{Number, Operand};
pub(crate) use pack::{Packed, pack, packed_len};
pub(crate) use plan::{Plan, scratch_for};

use super::Stopped;

/// Steps of `k` that are summed before they are added to those before.
pub(crate) const BLOCK: usize = 384;

/// `out[i, j] = sum over p of a[i, p] * b[p, j]`, for each matrix of a batch; then what the epilogue says.
///
/// `out` has the matrices of the batch one after the other, each of `m` rows and `n` columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product<'a, S: Operand> {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) a: View<'a, S>,
    pub(crate) b: Right<'a, S>,
    /// The dimensions of the batch, outermost first.
    pub(crate) batch: &'a [Batch],
    pub(crate) epilogue: Epilogue<'a, S>,
}

/// A matrix: elements, and how far rows and columns are apart. A distance of 0 repeats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a, S> {
    pub(crate) elements: &'a [S],
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// The right operand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Right<'a, S: Operand> {
    View(View<'a, S>),
    /// Matrices of a batch are `k * n` elements apart.
    Packed(Packed<'a, S::Sum>),
}

/// A dimension of a batch: its size, and how far its matrices are apart in the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) size: usize,
    pub(crate) a: usize,
    pub(crate) b: usize,
}

/// `alpha * sum + beta * c`, as [`Operand::scale`] says. Rows of `c` count through the whole batch.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue<'a, S: Operand> {
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) c: Option<View<'a, S>>,
    /// Applied last, to parts of rows: a function of each number alone.
    pub(crate) then: Option<Then<'a, S::Sum>>,
}

/// A function of parts of rows.
pub(crate) type Then<'a, T> = &'a (dyn Fn(&mut [T]) + Sync);

impl<S: Operand> Default for Epilogue<'_, S> {
    fn default() -> Self {
        Epilogue { alpha: 1.0, beta: 1.0, c: None, then: None }
    }
}

impl<S: Operand> std::fmt::Debug for Epilogue<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Epilogue").field("alpha", &self.alpha).field("beta", &self.beta).finish_non_exhaustive()
    }
}

impl<'a, S> View<'a, S> {
    /// A matrix whose rows of `columns` elements follow each other.
    pub(crate) fn rows(elements: &'a [S], columns: usize) -> View<'a, S> {
        View { elements, row: columns, column: 1 }
    }

    /// Rows become columns.
    pub(crate) fn transposed(self) -> View<'a, S> {
        View { row: self.column, column: self.row, ..self }
    }

    /// The matrix that starts `at` elements later.
    fn from(self, at: usize) -> Option<View<'a, S>> {
        Some(View { elements: self.elements.get(at..)?, ..self })
    }

    /// Fails unless there are so many rows and columns, which are not 0.
    fn check(&self, rows: usize, columns: usize) -> Result<(), Stopped> {
        let last = |count: usize, stride: usize| (count - 1).checked_mul(stride);
        let end = last(rows, self.row).and_then(|row| row.checked_add(last(columns, self.column)?));
        if end.is_some_and(|end| end < self.elements.len()) { Ok(()) } else { Err(Stopped::Misfit) }
    }
}
