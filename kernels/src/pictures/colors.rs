//! From samples to pixels.

use super::{Pixel, Result};
use crate::Lookout;

/// What the samples of a pixel mean. Samples beyond these are transparency, and ignored.
#[derive(Clone, Copy)]
pub(super) enum Colors<'a> {
    Gray,
    /// 0 is white.
    Inverted,
    Rgb,
    /// Ink: 0 is none.
    Cmyk,
    /// Numbers of colours; those that aren't in the list are black.
    Palette(&'a [Pixel]),
    /// The last sample as a gray.
    Last,
    /// White, but black for these samples.
    AllBut(&'a [u8]),
}

impl Colors<'_> {
    /// The number of samples of a pixel that count.
    pub(super) fn channels(self) -> usize {
        match self {
            Colors::Gray | Colors::Inverted | Colors::Palette(_) | Colors::Last | Colors::AllBut(_) => 1,
            Colors::Rgb => 3,
            Colors::Cmyk => 4,
        }
    }

    /// Writes pixels that have `channels` samples each.
    pub(super) fn paint<'p>(self, samples: &[u8], channels: usize, pixels: impl Iterator<Item = &'p mut Pixel>) {
        for (pixel, samples) in pixels.zip(samples.chunks_exact(channels.max(1))) {
            *pixel = match (self, samples) {
                (Colors::Gray, &[gray, ..]) => [gray; 3],
                (Colors::Inverted, &[gray, ..]) => [!gray; 3],
                (Colors::Rgb, &[red, green, blue, ..]) => [red, green, blue],
                (Colors::Cmyk, &[c, m, y, k, ..]) => [c, m, y].map(|ink| without_ink(ink, k)),
                (Colors::Palette(colors), &[number, ..]) => {
                    colors.get(usize::from(number)).copied().unwrap_or_default()
                }
                (Colors::Last, &[.., last]) => [last; 3],
                (Colors::AllBut(clear), samples) => [if clear == samples { 0 } else { u8::MAX }; 3],
                _ => continue,
            }
        }
    }
}

impl Colors<'_> {
    /// Writes the pixels of a whole picture.
    pub(super) fn paint_all(
        self,
        samples: &[u8],
        channels: usize,
        pixels: &mut [Pixel],
        lookout: &mut Lookout<'_>,
    ) -> Result<()> {
        const BLOCK: usize = 1024;
        for (pixels, samples) in pixels.chunks_mut(BLOCK).zip(samples.chunks(BLOCK * channels)) {
            lookout.after(samples.len() + size_of_val(pixels))?;
            self.paint(samples, channels, pixels.iter_mut());
        }
        Ok(())
    }
}

/// The light that an ink and black leave.
pub(super) fn without_ink(ink: u8, black: u8) -> u8 {
    let light = u32::from(!black);
    let taken = u32::from(ink) * light + 128;
    light.saturating_sub((taken + (taken >> 8)) >> 8) as u8
}

/// How samples are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    /// 1, 2, 4, 8 or 16.
    pub(super) bits: usize,
    /// Whether the low byte of 16 bits comes first.
    pub(super) little: bool,
    /// Whether the greatest number of the bits is 255.
    pub(super) scaled: bool,
}

impl Depth {
    /// The factor of samples of at most 8 bits.
    pub(super) fn scale(self) -> u8 {
        if self.scaled && self.bits < 8 { u8::MAX / ((1 << self.bits) - 1) } else { 1 }
    }

    /// Unpacks the samples of a row to 8 bits. Those of less than 8 bits begin at the high bits of a byte.
    pub(super) fn unpack(self, row: &[u8], samples: &mut [u8]) {
        match self.bits {
            16 => {
                for (sample, pair) in samples.iter_mut().zip(row.as_chunks::<2>().0) {
                    *sample = if self.little { pair[1] } else { pair[0] };
                }
            }
            1 | 2 | 4 => {
                let (most, scale) = ((1u8 << self.bits) - 1, self.scale());
                for (samples, byte) in samples.chunks_mut(8 / self.bits).zip(row) {
                    for (k, sample) in samples.iter_mut().enumerate() {
                        *sample = (byte >> (8 - self.bits * (k + 1)) & most) * scale;
                    }
                }
            }
            _ => samples.iter_mut().zip(row).for_each(|(sample, byte)| *sample = *byte),
        }
    }
}

/// Blue first.
pub fn reverse(pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
    for pixel in pixels {
        lookout.after(2 * size_of_val(pixel))?;
        pixel.reverse();
    }
    Ok(())
}

/// The brightness of pixels, by ITU-R 601-2 in fixed point.
pub fn luma(pixels: &[Pixel], to: &mut [u8], lookout: &mut Lookout<'_>) -> Result<()> {
    for (&[red, green, blue], gray) in pixels.iter().zip(to) {
        lookout.after(size_of::<Pixel>() + size_of_val(gray))?;
        let sum = 19595 * u32::from(red) + 38470 * u32::from(green) + 7471 * u32::from(blue);
        *gray = ((sum + (1 << 15)) >> 16) as u8;
    }
    Ok(())
}
