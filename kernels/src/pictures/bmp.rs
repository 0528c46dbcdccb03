//! Windows bitmaps: 1, 4 and 8 bits with a palette, also run lengths; 16, 24 and 32 bits.

use super::colors::{Colors, Depth};
use super::reader::Reader;
use super::{Decode, Fault, Picture, Pixel, Result, zeros};
use crate::Lookout;

struct Bmp<'a> {
    width: usize,
    height: usize,
    from_top: bool,
    layout: Layout,
    data: &'a [u8],
}

enum Layout {
    /// Numbers of colours in so many bits; run lengths or not.
    Palette { bits: usize, runs: bool, colors: Vec<Pixel> },
    /// Blue, green, red.
    Bytes,
    /// The bits of red, green and blue in numbers of 2 or 4 bytes.
    Masks { bytes: usize, masks: [usize; 3] },
}

const NO_COMPRESSION: usize = 0;
const RUNS_OF_8: usize = 1;
const RUNS_OF_4: usize = 2;
const BIT_FIELDS: usize = 3;

pub(super) fn open(bytes: &[u8]) -> Result<Picture<'_>> {
    let mut reader = Reader::new(bytes, 10)?;
    let (offset, len) = (reader.little32()?, reader.little32()?);
    let mut header = Reader { rest: reader.take(len.checked_sub(4).ok_or(Fault::Undecodable)?)? };
    let small = len == 12;
    let (width, height) = match small {
        true => (header.little16()?, i64::from(i16::from_le_bytes(header.array()?))),
        false => (header.little32()?, i64::from(i32::from_le_bytes(header.array()?))),
    };
    header.take(2)?;
    let bits = header.little16()?;
    let (mut compression, mut colors) = (NO_COMPRESSION, 0);
    if !small {
        compression = header.little32()?;
        header.take(12)?;
        colors = header.little32()?;
        header.take(4)?;
    }
    // The masks are part of longer headers, and follow shorter ones.
    let mut after = if len == 40 && compression == BIT_FIELDS { reader } else { header };
    let layout = match (bits, compression) {
        (1 | 4 | 8, NO_COMPRESSION) | (8, RUNS_OF_8) | (4, RUNS_OF_4) => {
            let all = 1 << bits;
            let colors = if colors == 0 || colors > all { all } else { colors };
            let entry = |_| match small {
                true => reader.array().map(|[blue, green, red]| [red, green, blue]),
                false => reader.array().map(|[blue, green, red, _]| [red, green, blue]),
            };
            Layout::Palette {
                bits,
                runs: compression != NO_COMPRESSION,
                colors: (0..colors).map(entry).collect::<Result<_>>()?,
            }
        }
        (24, NO_COMPRESSION) => Layout::Bytes,
        (16, NO_COMPRESSION) => Layout::Masks { bytes: 2, masks: [0x7C00, 0x3E0, 0x1F] },
        (32, NO_COMPRESSION) => Layout::Masks { bytes: 4, masks: [0xFF_0000, 0xFF00, 0xFF] },
        (16 | 32, BIT_FIELDS) => {
            let masks = [after.little32()?, after.little32()?, after.little32()?];
            Layout::Masks { bytes: bits / 8, masks }
        }
        _ => return Err(Fault::Undecodable),
    };
    let (data, from_top) = (Reader::new(bytes, offset)?.rest, height < 0);
    let height = usize::try_from(height.unsigned_abs()).map_err(|_| Fault::Undecodable)?;
    let runs = matches!(layout, Layout::Palette { runs: true, .. });
    if !runs && stride(width, bits).saturating_mul(height) > data.len() {
        return Err(Fault::Undecodable);
    }
    let memory = width.saturating_add(size_of::<[Pixel; 256]>() + size_of::<Bmp<'_>>());
    let work = width.saturating_mul(height);
    Picture::new((width, height), memory, work, Bmp { width, height, from_top, layout, data })
}

/// Bytes of a row: whole words.
fn stride(width: usize, bits: usize) -> usize {
    width.saturating_mul(bits).div_ceil(32).saturating_mul(4)
}

impl Decode for Bmp<'_> {
    fn decode(self: Box<Self>, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        match &self.layout {
            Layout::Palette { bits, runs: true, colors } => self.runs(*bits, colors, pixels, lookout)?,
            Layout::Palette { bits, colors, .. } => {
                let (depth, mut numbers) = (Depth { bits: *bits, little: true, scaled: false }, zeros(self.width)?);
                self.rows(*bits, pixels, lookout, |row, pixels| {
                    depth.unpack(row, &mut numbers);
                    Colors::Palette(colors).paint(&numbers, 1, pixels.iter_mut());
                })?;
            }
            Layout::Bytes => self.rows(24, pixels, lookout, |row, pixels| {
                for (pixel, &[blue, green, red]) in pixels.iter_mut().zip(row.as_chunks().0) {
                    *pixel = [red, green, blue];
                }
            })?,
            Layout::Masks { bytes, masks } => self.rows(bytes * 8, pixels, lookout, |row, pixels| {
                for (pixel, bytes) in pixels.iter_mut().zip(row.chunks_exact(*bytes)) {
                    let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
                    *pixel = masks.map(|mask| part(number, mask));
                }
            })?,
        }
        Ok(())
    }
}

/// The bits of a mask, of which all are 255.
fn part(number: usize, mask: usize) -> u8 {
    if mask == 0 {
        return 0;
    }
    let shift = mask.trailing_zeros();
    (((number & mask) >> shift) as u64 * 255 / (mask >> shift) as u64) as u8
}

impl Bmp<'_> {
    fn rows(
        &self,
        bits: usize,
        pixels: &mut [Pixel],
        lookout: &mut Lookout<'_>,
        mut write: impl FnMut(&[u8], &mut [Pixel]),
    ) -> Result<()> {
        for (k, row) in self.data.chunks(stride(self.width, bits)).take(self.height).enumerate() {
            lookout.after(row.len() + 3 * self.width)?;
            write(row, self.row(pixels, k)?);
        }
        Ok(())
    }

    /// The `k`-th row that is stored.
    fn row<'p>(&self, pixels: &'p mut [Pixel], k: usize) -> Result<&'p mut [Pixel]> {
        let row = if self.from_top { Some(k) } else { (self.height - 1).checked_sub(k) };
        row.and_then(|row| pixels.chunks_mut(self.width).nth(row)).ok_or(Fault::Undecodable)
    }

    /// Runs of pixels; what they leave out has the first colour.
    fn runs(&self, bits: usize, colors: &[Pixel], pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        let color = |number: u8| colors.get(usize::from(number)).copied().unwrap_or_default();
        // Two numbers of 4 bits take turns, the high one first.
        let nibble = |byte: u8, k: usize| color(if k.is_multiple_of(2) { byte >> 4 } else { byte & 15 });
        for row in pixels.chunks_mut(self.width) {
            lookout.after(size_of_val(row))?;
            row.fill(color(0));
        }
        let (mut reader, mut x, mut y) = (Reader { rest: self.data }, 0, 0);
        while y < self.height {
            let [count, what] = reader.array()?;
            lookout.after(2 + 3 * usize::from(count.max(what)))?;
            let (len, row) = (usize::from(count), self.row(pixels, y)?);
            let row = row.get_mut(x..).unwrap_or_default();
            match (count, what) {
                (0, 0) => (x, y) = (0, y + 1),
                (0, 1) => break,
                (0, 2) => (x, y) = (x + usize::from(reader.byte()?), y + usize::from(reader.byte()?)),
                (0, len) => {
                    let len = usize::from(len);
                    // As many numbers as these, padded to words of two bytes.
                    let numbers = reader.take((len * bits).div_ceil(16) * 2)?;
                    for (k, pixel) in row.iter_mut().take(len).enumerate() {
                        let byte = *numbers.get(k * bits / 8).unwrap_or(&0);
                        *pixel = if bits == 8 { color(byte) } else { nibble(byte, k) };
                    }
                    x += len;
                }
                _ => {
                    for (k, pixel) in row.iter_mut().take(len).enumerate() {
                        *pixel = if bits == 8 { color(what) } else { nibble(what, k) };
                    }
                    x += len;
                }
            }
        }
        Ok(())
    }
}
