//! What follows sums before they are written: a factor and an addend of each filter, a residual sum, an activation.

use super::{CHANNELS, of_block};
use crate::Stopped;
use crate::cpu::for_each_level;
use crate::functions::{gated_in_place, hard_swish, relu};
use crate::number::Float;

/// What sums of each filter are multiplied by, bias and all, and what is added then: each product and sum is rounded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scale<'a> {
    pub factors: Option<&'a [f32]>,
    pub addends: Option<&'a [f32]>,
}

/// Numbers of filters, if they aren't all the same one.
type Numbers<'a> = (Option<&'a [f32]>, f32);

impl Scale<'_> {
    /// The factors and the addends, and what stands for them where there are none: it changes no bit.
    pub(super) fn all(&self) -> Option<[Numbers<'_>; 2]> {
        let all = [(self.factors, 1.0), (self.addends, -0.0)];
        all.iter().any(|(numbers, _)| numbers.is_some()).then_some(all)
    }

    /// Whether there is a number for each of so many filters.
    pub(super) fn fits(&self, filters: usize) -> bool {
        [self.factors, self.addends].into_iter().flatten().all(|numbers| numbers.len() == filters)
    }

    /// Those of a block of filters.
    pub(super) fn of_block(&self, block: usize) -> Option<[[f32; CHANNELS]; 2]> {
        self.all().map(|all| all.map(|(numbers, other)| of_block(numbers, other, block)))
    }
}

/// Scales sums of a block of filters that were written, as [`Tile`](super::tile::Tile)s do in registers.
pub(super) fn scale(sums: &mut [f32], scaled: [&[f32]; 2]) {
    if let [Some((factors, _)), Some((addends, _))] = scaled.map(<[f32]>::split_first_chunk) {
        scale_by(sums, factors, addends);
    }
}

for_each_level! {
    fn scale_by<>(sums: &mut [f32], factors: &[f32; CHANNELS], addends: &[f32; CHANNELS]) -> () = scale_by_body;
}

#[inline(always)]
fn scale_by_body(sums: &mut [f32], factors: &[f32; CHANNELS], addends: &[f32; CHANNELS]) {
    for sums in sums.as_chunks_mut::<CHANNELS>().0 {
        for ((sum, factor), addend) in sums.iter_mut().zip(factors).zip(addends) {
            *sum = *sum * factor + addend;
        }
    }
}

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
