//! Depthwise convolutions: each filter sees the channel of its own number.

#![allow(unsafe_code)] // tiles through pointers

use super::dense::tiles;
use super::each::Planned;
use super::finish::{Finish, Scale};
use super::tile::{self, Loops, Next, Tile, loops, pointers};
use super::{CHANNELS, Tail, len_of, of_block};
use crate::{Resources, Stopped};

/// Images and a filter for each channel.
#[derive(Clone, Copy)]
pub struct Own<'a> {
    pub each: &'a Planned<'a>,
    /// `[blocks, taps, 16]`, as [`to_blocks`](super::to_blocks) stores them.
    pub weights: &'a [f32],
    /// A number for each filter, which is added last.
    pub bias: Option<&'a [f32]>,
    pub scale: Scale<'a>,
    pub finish: Finish<'a>,
    pub tail: Option<&'a Tail<'a>>,
}

impl Own<'_> {
    /// Writes `[images, blocks, slices, rows, columns, 16]`.
    pub fn run(&self, out: &mut [f32], scratch: &mut [f32], resources: Resources<'_>) -> Result<(), Stopped> {
        let (taps, channels) = (self.each.taps(), self.each.each.channels);
        if self.weights.len() != len_of(channels, taps)
            || self.bias.is_some_and(|bias| bias.len() != channels)
            || !self.scale.fits(channels)
            || !self.finish.fits(out.len())
        {
            return Err(Stopped::Misfit);
        }
        let (Loops { sums, .. }, finish) = (loops::<tile::Own>(false), self.finish);
        self.each.run(0.0, out, scratch, resources, &|seen, out| {
            let first = seen.block * CHANNELS;
            let weights = self.weights.get(first * taps..(first + CHANNELS) * taps).ok_or(Stopped::Misfit)?;
            let (bias, scaled) = (of_block(self.bias, 0.0, seen.block), self.scale.of_block(seen.block));
            for tile in tiles(0..seen.count, sums.len()) {
                let Some(sums) = sums.get(tile.len() - 1) else { continue };
                let len = (seen.count * CHANNELS).max(1);
                for (row, out) in out.chunks_exact_mut(len).enumerate() {
                    // SAFETY: the places see what begins so far from the first one, and the output has them, as what is
                    // beside it.
                    unsafe {
                        let place = seen.place + row * len + tile.start * CHANNELS;
                        sums(&Tile {
                            image: [seen.from.as_ptr().add(row * seen.row + tile.start * CHANNELS); 2],
                            offsets: [seen.offsets.as_ptr(); 2],
                            weights: weights.as_ptr(),
                            steps: taps,
                            next: Next::none(weights.as_ptr()),
                            first: true,
                            bias: if self.bias.is_some() { bias.as_ptr() } else { std::ptr::null() },
                            scaled: pointers(scaled.as_ref().map(|[factors, addends]| [&factors[..], addends])),
                            beside: finish.beside.map_or(std::ptr::null(), |beside| beside.as_ptr().add(place)),
                            activation: finish.activation,
                            out: out.as_mut_ptr().add(tile.start * CHANNELS),
                            out_block: 0,
                        });
                    }
                }
            }
            finish.activation.follow(out);
            self.tail.iter().for_each(|tail| tail(seen.place, out));
            Ok(())
        })
    }
}
