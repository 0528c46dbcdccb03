//! The mean of each channel of integers of 8 bits: what a GlobalAveragePool of dequantized ones becomes, quantized again.

use super::global::of_each;
use crate::ops::prelude::*;
use kernels::bytes::{PLACES, Unsigned, add_up};
use kernels::gemm::blocks::CHANNELS;
use kernels::{Lookout, volume};

/// The bytes of the means of floats: sums of these are exact in any order ([`add_up`]).
#[derive(Debug, Clone)]
pub(super) struct ByteMean {
    from: ByteScale,
    to: ByteScale,
}

/// Maximum number of entries of a channel whose sum is exact.
const MOST: usize = 1 << 20;

impl ByteMean {
    pub(super) fn new(from: ByteScale, to: ByteScale) -> ByteMean {
        ByteMean { from, to }
    }

    /// Whether a channel of integers of this type has a mean, and an exact sum.
    fn has_means(&self, x: &Tensor, image: &[usize]) -> bool {
        x.dtype() == self.from.dtype() && (1..=MOST).contains(&volume(1, image))
    }

    /// The integers of means, of at most as many sums as there are places.
    fn write(&self, sums: &[f64], count: usize, out: &mut [u8]) {
        let mut means = [0.0; PLACES];
        means.iter_mut().zip(sums).for_each(|(mean, sum)| *mean = (sum / count as f64) as f32);
        self.to.bytes(means.get(..out.len()).unwrap_or(&[]), out);
    }
}

/// The sums of the places of bytes.
fn sums(bytes: &[u8], of: Unsigned, lookout: &mut Lookout<'_>) -> Result<[f64; PLACES], Stopped> {
    lookout.after(bytes.len())?;
    let mut sums = [0.0; PLACES];
    add_up(bytes, of, &mut sums);
    Ok(sums)
}

impl Fused for ByteMean {
    fn fits(&self, call: &Call<'_>) -> bool {
        call.tensor(0).is_ok_and(|x| x.shape().get(2..).is_some_and(|image| self.has_means(x, image)))
    }

    fn byte_windows(&self, channels: usize, _: &[usize]) -> Option<InBlocks> {
        let operator = Arc::new(ByteMeanInBlocks { mean: self.clone(), channels });
        Some(InBlocks::Windows { operator, channels, ends: Ends::Input })
    }
}

impl Operator for ByteMean {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (x, resources) = (call.tensor(0)?, call.resources());
        let [images, channels, image @ ..] = x.shape() else {
            return Err(Error::bug("what has no channels has no mean"));
        };
        let (len, of, shape) = (volume(1, image), self.from.unsigned(), of_each(*images, *channels, image.len()));
        call.charge(x.len() as u64)?;
        let mut y = call.output_of(self.to.dtype(), shape)?;
        kernels::pieces(y.bytes_mut(), 1, 1, len, resources, |channel, _, out| {
            let entries = x.bytes().get(channel * len..(channel + 1) * len).ok_or(Stopped::Misfit)?;
            let sum = sums(entries, of, &mut resources.lookout())?.iter().sum();
            self.write(&[sum], len, out);
            Ok(())
        })?;
        Ok(y.finish().into())
    }
}

/// Of images in blocks.
#[derive(Debug)]
struct ByteMeanInBlocks {
    mean: ByteMean,
    channels: usize,
}

impl Windowed for ByteMeanInBlocks {
    fn is_ready(&self, call: &Call<'_>, _: &Layout) -> bool {
        let image = |x: &Tensor| matches!(x.shape(), [_, _, image @ .., _] if self.mean.has_means(x, image));
        call.tensor(0).is_ok_and(image)
    }

    fn run(&self, call: &mut Call<'_>, _: &Layout, _: Option<&Tail>) -> Result<Values> {
        let (ByteMeanInBlocks { mean, channels }, x, resources) = (self, call.tensor(0)?, call.resources());
        let ([images, blocks], image) = parts_in_blocks(x.shape())?;
        let (len, of) = (volume(1, image), mean.from.in_blocks().unsigned());
        call.charge(x.len() as u64)?;
        let mut y = call.output_of(mean.to.dtype(), of_each(images, *channels, image.len()))?;
        // The channels of a block together.
        let element = if channels.is_multiple_of(CHANNELS) { CHANNELS } else { *channels };
        kernels::pieces(y.bytes_mut(), element, *channels, len, resources, |image, start, out| {
            for (k, out) in out.chunks_mut(CHANNELS).enumerate() {
                let first = (image * blocks + start / CHANNELS + k) * len * CHANNELS;
                let entries = x.bytes().get(first..first + len * CHANNELS).ok_or(Stopped::Misfit)?;
                mean.write(&sums(entries, of, &mut resources.lookout())?, len, out);
            }
            Ok(())
        })?;
        Ok(y.finish().into())
    }
}
