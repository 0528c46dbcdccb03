//! Convolutions of images that are stored in blocks of channels: `[images, blocks, slices, rows, columns, 16]`.
//!
//! The 16 channels of a block are neighbours, so a vector holds a place of all of them: nothing is packed between a
//! convolution and the next, and windows may have any strides. The last block is filled up; what is in the channels
//! beyond the last one is not read.
//!
//! Sums run in the order of a [product](super) over channels and then taps, in blocks of steps as there: the bits are the
//! same. Taps that see padding alone are left out where that changes no bit.

mod after;
mod band;
mod bytes;
mod dense;
mod each;
mod few;
mod finish;
mod gate;
mod greatest;
mod groups;
mod layout;
mod line;
mod lines;
mod mean;
mod own;
mod picks;
#[cfg(test)]
mod tests;
mod tile;

pub use band::{COLUMNS, Source};
pub use bytes::{ByteTail, Bytes, BytesPlan, FilterBytes, Kind, Requantize, Scales, Scaling};
pub use dense::{Dense, DensePlan, pack, pack_each};
pub use each::{Each, Planned};
pub use few::{Few, FewPlan};
pub use finish::{Activation, Finish, Scale};
pub use gate::gate;
pub use greatest::greatest;
pub use groups::{have_blocks, share_blocks};
pub use layout::{from_blocks, rows_from_blocks, rows_to_blocks, to_blocks};
pub use lines::{Images, LineTail, Products};
pub use mean::mean;
pub use own::Own;

use crate::cpu::for_each_level;

/// Channels of a block.
pub const CHANNELS: usize = 16;

/// Multiplications that take as long as reading a weight: of few places, that is what a thread saves.
const READ: usize = 8;

/// Elements of scratch memory from which on windows are spread too wide: planes need less.
pub const ROOM: usize = 1 << 22;

/// Whether this processor is faster with blocks than without.
pub fn pays() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::cpu::level() >= 3;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether this processor multiplies bytes so much faster than floats that it pays to see that the result is theirs: not with
/// AVX-512 but none of its products of bytes.
pub fn integers_pay() -> bool {
    #[cfg(target_arch = "x86_64")]
    return pays() && crate::cpu::level() != 4;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// What follows the sums: a function of the number of the first element in the output, and of neighbours there.
pub type Tail<'a> = dyn Fn(usize, &mut [f32]) + Sync + 'a;

/// Elements of an image of so many channels in blocks.
pub fn len_of(channels: usize, positions: usize) -> usize {
    channels.div_ceil(CHANNELS).saturating_mul(CHANNELS).saturating_mul(positions)
}

for_each_level! {
    /// Whether there is a -0. Of sums it is the only one that zeros might change: what rounding left of a tiny number, to which
    /// no other was added.
    fn has_minus_zero<>(sums: &[f32]) -> bool = has_minus_zero_body;
}

#[inline(always)]
fn has_minus_zero_body(sums: &[f32]) -> bool {
    let mut any = false;
    for sum in sums {
        any |= sum.to_bits() == (-0f32).to_bits();
    }
    any
}

/// The numbers of a block of filters, with others where there are none.
fn of_block(numbers: Option<&[f32]>, other: f32, block: usize) -> [f32; CHANNELS] {
    let own = numbers.and_then(|numbers| numbers.get(block * CHANNELS..)).unwrap_or(&[]);
    let mut all = [other; CHANNELS];
    all.iter_mut().zip(own).for_each(|(to, from)| *to = *from);
    all
}
