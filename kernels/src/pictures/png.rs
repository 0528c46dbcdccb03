//! PNG: all types of colours and depths, interlaced or not.

use super::colors::{Colors, Depth};
use super::inflate::{self, Inflate};
use super::reader::Reader;
use super::{Decode, Fault, Picture, Pixel, Result, zeros};
use crate::Lookout;

/// The bytes before the first chunk.
const SIGNATURE: usize = 8;

struct Png<'a> {
    width: usize,
    depth: Depth,
    kind: u8,
    interlaced: bool,
    palette: Vec<Pixel>,
    /// Whether pixels are their opacity instead of their colours.
    opacity: bool,
    /// The samples of the transparent colour, if there is one.
    clear: Vec<u8>,
    /// The chunks from the first one with pixels on.
    chunks: Reader<'a>,
}

/// Opens a picture of the colours of the pixels, or of their opacity.
pub(super) fn open<'a>(bytes: &'a [u8], opacity: bool, lookout: &mut Lookout<'_>) -> Result<Picture<'a>> {
    let mut reader = Reader::new(bytes, SIGNATURE)?;
    let (b"IHDR", header) = chunk(&mut reader)? else { return Err(Fault::Undecodable) };
    let mut header = Reader { rest: header };
    let (width, height) = (header.big32()?, header.big32()?);
    let [bits, kind, compression, filter, interlaced] = header.array()?;
    let known = matches!((kind, bits), (0, 1 | 2 | 4 | 8 | 16) | (3, 1 | 2 | 4 | 8) | (2 | 4 | 6, 8 | 16));
    if !known || compression != 0 || filter != 0 || interlaced > 1 {
        return Err(Fault::Undecodable);
    }
    let (mut palette, mut transparency, mut chunks, sums) = (Vec::new(), [].as_slice(), None, sums());
    loop {
        let here = reader;
        let (name, data) = chunk(&mut reader)?;
        // The sums of chunks that may be ignored don't matter.
        if name[0].is_ascii_uppercase() {
            check(here, data.len(), &sums, lookout)?;
        }
        match name {
            b"PLTE" => palette = data.as_chunks().0.iter().copied().take(256).collect(),
            b"tRNS" => transparency = data,
            b"IDAT" => chunks = chunks.or(Some(here)),
            b"IEND" => break,
            _ => {}
        }
    }
    let chunks = chunks.ok_or(Fault::Undecodable)?;
    if kind == 3 && palette.is_empty() {
        return Err(Fault::Undecodable);
    }
    let depth = Depth { bits: bits.into(), little: false, scaled: kind != 3 };
    let mut png = Png { width, depth, kind, interlaced: interlaced == 1, palette, opacity, clear: Vec::new(), chunks };
    match kind {
        3 if opacity => {
            let list = transparency.iter().copied().chain(std::iter::repeat(u8::MAX));
            png.palette = list.map(|opacity| [opacity; 3]).take(256).collect();
        }
        _ => {
            // Each sample has 2 bytes, whatever the depth.
            let sample = |[high, low]: &[u8; 2]| if bits == 16 { *high } else { low.wrapping_mul(depth.scale()) };
            png.clear = transparency.as_chunks().0.iter().map(sample).take(3).collect();
        }
    }
    // Two rows, and their samples.
    let row = width.saturating_mul(png.channels());
    let memory = row.saturating_mul(5).saturating_add(inflate::MEMORY + size_of::<Png<'_>>() + 1024);
    Picture::new((width, height), memory, row.saturating_mul(height).saturating_add(bytes.len()), png)
}

/// The next chunk: its name and its data.
fn chunk<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8; 4], &'a [u8])> {
    let len = reader.big32()?;
    let name = reader.take(4)?.first_chunk().ok_or(Fault::Undecodable)?;
    let data = reader.take(len)?;
    reader.take(4)?;
    Ok((name, data))
}

/// Checks the sum behind a chunk of so many bytes.
fn check(mut reader: Reader<'_>, len: usize, sums: &[u32; 256], lookout: &mut Lookout<'_>) -> Result<()> {
    reader.take(4)?;
    let mut sum = u32::MAX;
    for block in lookout.blocks(reader.take(len.saturating_add(4))?) {
        for byte in block? {
            let at = usize::from(sum as u8 ^ byte);
            sum = sums.get(at).copied().unwrap_or_default() ^ sum >> 8;
        }
    }
    if u32::from_be_bytes(reader.array()?) == !sum { Ok(()) } else { Err(Fault::Undecodable) }
}

/// CRC-32 of each byte.
fn sums() -> [u32; 256] {
    let step = |sum: u32, _| if sum & 1 == 1 { 0xEDB8_8320 ^ sum >> 1 } else { sum >> 1 };
    std::array::from_fn(|byte| (0..8).fold(byte as u32, step))
}

/// A picture of every `dx`-th pixel of every `dy`-th row, from `x` and `y` on.
struct Pass {
    x: usize,
    y: usize,
    dx: usize,
    dy: usize,
}

const PASSES: [Pass; 7] = [
    Pass { x: 0, y: 0, dx: 8, dy: 8 },
    Pass { x: 4, y: 0, dx: 8, dy: 8 },
    Pass { x: 0, y: 4, dx: 4, dy: 8 },
    Pass { x: 2, y: 0, dx: 4, dy: 4 },
    Pass { x: 0, y: 2, dx: 2, dy: 4 },
    Pass { x: 1, y: 0, dx: 2, dy: 2 },
    Pass { x: 0, y: 1, dx: 1, dy: 2 },
];

impl Png<'_> {
    fn channels(&self) -> usize {
        match self.kind {
            4 => 2,
            2 => 3,
            6 => 4,
            _ => 1,
        }
    }

    fn colors(&self) -> Colors<'_> {
        match self.kind {
            0 | 2 if self.opacity => Colors::AllBut(&self.clear),
            4 | 6 if self.opacity => Colors::Last,
            0 | 4 => Colors::Gray,
            3 => Colors::Palette(&self.palette),
            _ => Colors::Rgb,
        }
    }
}

impl Decode for Png<'_> {
    fn decode(self: Box<Self>, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        let mut chunks = self.chunks;
        let data = std::iter::from_fn(move || chunk(&mut chunks).ok().filter(|(name, _)| *name == b"IDAT"));
        let mut packed = Inflate::new(data.map(|(_, data)| data))?;
        let (bits, channels) = (self.depth.bits * self.channels(), self.channels());
        let len = |width: usize| (width * bits).div_ceil(8);
        let (mut row, mut above) = (zeros::<u8>(len(self.width))?, zeros::<u8>(len(self.width))?);
        let mut samples = zeros::<u8>(self.width * channels)?;
        let passes = if self.interlaced { &PASSES } else { [Pass { x: 0, y: 0, dx: 1, dy: 1 }].as_slice() };
        for pass in passes {
            let width = self.width.saturating_sub(pass.x).div_ceil(pass.dx);
            if width == 0 {
                continue;
            }
            above.fill(0);
            for pixels in pixels.chunks_mut(self.width).skip(pass.y).step_by(pass.dy) {
                let [mut filter] = [0];
                packed.read(std::slice::from_mut(&mut filter), lookout)?;
                let row_of_pass = row.get_mut(..len(width)).unwrap_or_default();
                packed.read(row_of_pass, lookout)?;
                unfilter(filter, row_of_pass, &above, bits.div_ceil(8))?;
                self.depth.unpack(row_of_pass, &mut samples);
                lookout.after(width * (channels + size_of::<Pixel>()))?;
                self.colors().paint(&samples, channels, pixels.iter_mut().skip(pass.x).step_by(pass.dx));
                std::mem::swap(&mut row, &mut above);
            }
        }
        Ok(())
    }
}

/// Adds what the filter took away, by the bytes of the pixels to the left, above, and both. A pixel has `step` bytes.
fn unfilter(filter: u8, row: &mut [u8], above: &[u8], step: usize) -> Result<()> {
    let predict: fn(u8, u8, u8) -> u8 = match filter {
        0 => return Ok(()),
        1 => |left, _, _| left,
        2 => |_, above, _| above,
        3 => |left, above, _| ((u16::from(left) + u16::from(above)) / 2) as u8,
        4 => paeth,
        _ => return Err(Fault::Undecodable),
    };
    let (mut left, mut corner) = ([0; 8], [0; 8]);
    for (pixel, above) in row.chunks_mut(step).zip(above.chunks(step)) {
        for (((byte, above), left), corner) in pixel.iter_mut().zip(above).zip(&mut left).zip(&mut corner) {
            *byte = byte.wrapping_add(predict(*left, *above, *corner));
            (*left, *corner) = (*byte, *above);
        }
    }
    Ok(())
}

/// Of the three the nearest to `left + above - corner`.
fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(above) - i16::from(corner);
    let [to_left, to_above, to_corner] = [left, above, corner].map(|byte| guess.abs_diff(byte.into()));
    match () {
        () if to_left <= to_above && to_left <= to_corner => left,
        () if to_above <= to_corner => above,
        () => corner,
    }
}
