//! What becomes of sums before they are written: steps, one after the other, each for a part of a row.

use super::number::Operand;
use super::place::{Broadcast, Extent, Place};
use crate::kernels::cpu::for_each_level;
use std::fmt;

/// Maximum number of elements of a part.
pub(crate) const PART: usize = 256;

/// A step: a function of sums and of the places that they have in the output.
///
/// A closure of the sums alone is one too: it must be a function of each number by itself.
pub(crate) trait Step<T>: Sync {
    /// Whether there is all that it reads for an output that isn't empty.
    fn fits(&self, output: &Extent<'_>) -> bool {
        let _ = output;
        true
    }

    /// Changes the sums of a part of a row, or of the only column, which starts at a place and has at most [`PART`]
    /// elements.
    fn apply(&self, place: &Place<'_>, sums: &mut [T]);
}

impl<T> fmt::Debug for dyn Step<T> + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Step")
    }
}

impl<T, F: Fn(&mut [T]) + Sync> Step<T> for F {
    fn apply(&self, _: &Place<'_>, sums: &mut [T]) {
        self(sums);
    }
}

/// `alpha * sum + beta * c`, as [`Operand::scale`] says: a bias for each row or column, a residual, or less.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaled<'a, S> {
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) c: Option<Broadcast<'a, S>>,
}

impl<S: Operand> Step<S::Sum> for Scaled<'_, S> {
    fn fits(&self, output: &Extent<'_>) -> bool {
        self.c.is_none_or(|c| c.fits(output))
    }

    fn apply(&self, place: &Place<'_>, sums: &mut [S::Sum]) {
        let mut room = [S::zeroed(); PART];
        match &self.c {
            Some(c) => add::<S>(sums, self.alpha, self.beta, c.part(place, sums.len(), &mut room)),
            None if self.alpha == 1.0 => {}
            None => scale::<S>(sums, self.alpha),
        }
    }
}

for_each_level! {
    fn add<S: Operand>(sums: &mut [S::Sum], alpha: f32, beta: f32, c: &[S]) -> () = add_body::<S>;
}

#[inline(always)]
fn add_body<S: Operand>(sums: &mut [S::Sum], alpha: f32, beta: f32, c: &[S]) {
    for (sum, c) in sums.iter_mut().zip(c) {
        *sum = S::scale(*sum, alpha, Some((*c, beta)));
    }
}

for_each_level! {
    fn scale<S: Operand>(sums: &mut [S::Sum], alpha: f32) -> () = scale_body::<S>;
}

#[inline(always)]
fn scale_body<S: Operand>(sums: &mut [S::Sum], alpha: f32) {
    for sum in sums {
        *sum = S::scale(*sum, alpha, None);
    }
}
