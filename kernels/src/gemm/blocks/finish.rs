//! What follows sums before they are written: a bias, a residual sum, an activation.

use crate::Stopped;
use crate::cpu::for_each_level;
use crate::functions::{gated_in_place, hard_swish, relu};
use crate::number::Float;

/// What is added to sums, and what is computed of them then.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finish<'a> {
    /// An image like the output.
    pub beside: Option<&'a [f32]>,
    pub activation: Activation,
}

/// A function of each sum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Activation {
    #[default]
    None,
    /// [`relu`]
    Relu,
    /// The [larger](Float::larger) one of it and `low`, and then the [smaller](Float::smaller) one of that and `high`, which
    /// aren't NaN.
    Within { low: f32, high: f32 },
    /// [`hard_swish`]
    HardSwish,
    /// [`gated`](crate::functions::gated)
    Gated,
}

impl Finish<'_> {
    /// Whether there is what it reads for an output of so many elements.
    pub(super) fn fits(&self, len: usize) -> bool {
        self.beside.is_none_or(|beside| beside.len() == len)
    }

    /// Finishes sums that were written, from an element of the output on, as [`Tile`](super::tile::Tile)s do in registers: what
    /// is late is left.
    pub(super) fn apply(&self, first: usize, sums: &mut [f32]) -> Result<(), Stopped> {
        if let Some(beside) = self.beside {
            add(sums, beside.get(first..first + sums.len()).ok_or(Stopped::Misfit)?);
        }
        each(sums, self.activation);
        Ok(())
    }

    /// Finishes sums, from an element of the output on.
    pub fn whole(&self, first: usize, sums: &mut [f32]) -> Result<(), Stopped> {
        self.apply(first, sums)?;
        self.activation.follow(sums);
        Ok(())
    }
}

impl Activation {
    /// Whether it is computed once sums are written.
    pub(super) fn is_late(self) -> bool {
        self == Activation::Gated
    }

    /// Computes it then, if it is late.
    pub(super) fn follow(self, sums: &mut [f32]) {
        if self.is_late() {
            gated_in_place(sums);
        }
    }
}

for_each_level! {
    fn add<>(sums: &mut [f32], beside: &[f32]) -> () = add_body;
}

#[inline(always)]
fn add_body(sums: &mut [f32], beside: &[f32]) {
    for (sum, beside) in sums.iter_mut().zip(beside) {
        *sum += beside;
    }
}

for_each_level! {
    fn each<>(sums: &mut [f32], activation: Activation) -> () = each_body;
}

#[inline(always)]
fn each_body(sums: &mut [f32], activation: Activation) {
    match activation {
        Activation::Relu => map(sums, relu),
        Activation::Within { low, high } => map(sums, |sum| sum.larger(low).smaller(high)),
        Activation::HardSwish => map(sums, hard_swish),
        Activation::None | Activation::Gated => {}
    }
}

#[inline(always)]
fn map(sums: &mut [f32], of: impl Fn(f32) -> f32) {
    for sum in sums {
        *sum = of(*sum);
    }
}
