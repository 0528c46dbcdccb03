//! TIFF: the first picture, in strips or tiles, of unsigned samples that aren't packed, or packed by LZW, zlib or PackBits.
//!
//! Not read are BigTIFF, fax codes, JPEG within TIFF, and brightness with colour differences.

use super::colors::{Colors, Depth};
use super::inflate::{self, Inflate};
use super::reader::Reader;
use super::{Decode, Fault, Picture, Pixel, Result, zeros};
use crate::Lookout;

/// Tags of the directory.
mod tag {
    pub(super) const WIDTH: usize = 256;
    pub(super) const HEIGHT: usize = 257;
    pub(super) const BITS: usize = 258;
    pub(super) const PACKING: usize = 259;
    pub(super) const COLORS: usize = 262;
    pub(super) const BIT_ORDER: usize = 266;
    pub(super) const STRIP_OFFSETS: usize = 273;
    pub(super) const CHANNELS: usize = 277;
    pub(super) const STRIP_ROWS: usize = 278;
    pub(super) const STRIP_LENGTHS: usize = 279;
    pub(super) const PLANES: usize = 284;
    pub(super) const DIFFERENCES: usize = 317;
    pub(super) const PALETTE: usize = 320;
    pub(super) const TILE_WIDTH: usize = 322;
    pub(super) const TILE_HEIGHT: usize = 323;
    pub(super) const TILE_OFFSETS: usize = 324;
    pub(super) const TILE_LENGTHS: usize = 325;
    pub(super) const NUMBERS: usize = 339;
}

/// The numbers of a tag.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    bytes: &'a [u8],
    /// Bytes of a number: 1, 2 or 4.
    size: usize,
    little: bool,
}

impl Numbers<'_> {
    fn get(self, k: usize) -> Option<usize> {
        let from = k.checked_mul(self.size)?;
        let bytes = self.bytes.get(from..from.checked_add(self.size)?)?;
        let add = |number: usize, byte: &u8| number << 8 | usize::from(*byte);
        Some(if self.little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    }

    fn len(self) -> usize {
        self.bytes.len() / self.size
    }
}

/// The tags of the first picture.
struct Directory<'a> {
    bytes: &'a [u8],
    entries: &'a [u8],
    little: bool,
}

impl<'a> Directory<'a> {
    fn read(bytes: &'a [u8]) -> Result<Directory<'a>> {
        let little = bytes.starts_with(b"II");
        let at = number(bytes, 4, 4, little)?;
        let count = number(bytes, at, 2, little)?;
        let mut reader = Reader::new(bytes, at)?;
        reader.take(2)?;
        Ok(Directory { bytes, entries: reader.take(12 * count)?, little })
    }

    fn all(&self, tag: usize) -> Result<Option<Numbers<'a>>> {
        for entry in self.entries.chunks_exact(12) {
            if number(entry, 0, 2, self.little)? != tag {
                continue;
            }
            let size = match number(entry, 2, 2, self.little)? {
                1 => 1,
                3 => 2,
                4 => 4,
                _ => return Err(Fault::Undecodable),
            };
            let len = number(entry, 4, 4, self.little)?.checked_mul(size).ok_or(Fault::Undecodable)?;
            // As many as fit are in the entry.
            let mut reader = match len {
                0..=4 => Reader::new(entry, 8)?,
                _ => Reader::new(self.bytes, number(entry, 8, 4, self.little)?)?,
            };
            return Ok(Some(Numbers { bytes: reader.take(len)?, size, little: self.little }));
        }
        Ok(None)
    }

    /// The first number of a tag.
    fn one(&self, tag: usize) -> Result<Option<usize>> {
        Ok(self.all(tag)?.and_then(|numbers| numbers.get(0)))
    }

    fn needed(&self, tag: usize) -> Result<Numbers<'a>> {
        self.all(tag)?.ok_or(Fault::Undecodable)
    }
}

/// A number of `size` bytes.
fn number(bytes: &[u8], at: usize, size: usize, little: bool) -> Result<usize> {
    let bytes = Reader::new(bytes, at)?.take(size)?;
    Numbers { bytes, size, little }.get(0).ok_or(Fault::Undecodable)
}

#[derive(Clone, Copy, PartialEq)]
enum Packing {
    None,
    Lzw,
    Zlib,
    PackBits,
}

#[derive(Clone, Copy)]
enum Meaning {
    Inverted,
    Gray,
    Rgb,
    Palette,
    Cmyk,
}

struct Tiff<'a> {
    bytes: &'a [u8],
    width: usize,
    height: usize,
    channels: usize,
    /// Whether each channel is in tiles of its own.
    apart: bool,
    depth: Depth,
    packing: Packing,
    meaning: Meaning,
    palette: Vec<Pixel>,
    /// Whether samples are differences to those on their left.
    differences: bool,
    /// The size of a tile; strips are tiles as wide as the picture.
    tile: (usize, usize),
    strips: bool,
    offsets: Numbers<'a>,
    lengths: Option<Numbers<'a>>,
}

pub(super) fn open(bytes: &[u8]) -> Result<Picture<'_>> {
    let tags = Directory::read(bytes)?;
    let one = |tag: usize, default: usize| tags.one(tag).map(|number| number.unwrap_or(default));
    let (width, height) = (one(tag::WIDTH, 0)?, one(tag::HEIGHT, 0)?);
    let channels = one(tag::CHANNELS, 1)?;
    let bits = one(tag::BITS, 1)?;
    if let Some(all) = tags.all(tag::BITS)?
        && (1..all.len().min(channels)).any(|k| all.get(k) != Some(bits))
    {
        return Err(Fault::Undecodable);
    }
    let packing = match one(tag::PACKING, 1)? {
        1 => Packing::None,
        5 => Packing::Lzw,
        8 | 32946 => Packing::Zlib,
        32773 => Packing::PackBits,
        _ => return Err(Fault::Undecodable),
    };
    let meaning = match one(tag::COLORS, 1)? {
        0 => Meaning::Inverted,
        1 => Meaning::Gray,
        2 => Meaning::Rgb,
        3 => Meaning::Palette,
        5 => Meaning::Cmyk,
        _ => return Err(Fault::Undecodable),
    };
    let mut palette = Vec::new();
    if matches!(meaning, Meaning::Palette) {
        let numbers = tags.needed(tag::PALETTE)?;
        let count = numbers.len() / 3;
        let color = |k: usize| [k, count + k, 2 * count + k].map(|k| (numbers.get(k).unwrap_or(0) >> 8) as u8);
        palette = (0..count.min(256)).map(color).collect();
    }
    let differences = one(tag::DIFFERENCES, 1)?;
    let known = matches!(bits, 1 | 2 | 4 | 8 | 16)
        && matches!((meaning, bits), (Meaning::Palette, ..=8) | (Meaning::Gray | Meaning::Inverted, _) | (_, 8 | 16))
        && (differences == 1 || differences == 2 && bits >= 8)
        && one(tag::BIT_ORDER, 1)? == 1
        && one(tag::NUMBERS, 1)? == 1
        && (1..=16).contains(&channels);
    let strips = tags.all(tag::TILE_OFFSETS)?.is_none();
    let (tile, offsets, lengths) = match strips {
        true => ((width, one(tag::STRIP_ROWS, height)?.min(height)), tag::STRIP_OFFSETS, tag::STRIP_LENGTHS),
        false => ((one(tag::TILE_WIDTH, 0)?, one(tag::TILE_HEIGHT, 0)?), tag::TILE_OFFSETS, tag::TILE_LENGTHS),
    };
    let tiff = Tiff {
        bytes,
        width,
        height,
        channels,
        apart: one(tag::PLANES, 1)? == 2 && channels > 1,
        depth: Depth { bits, little: tags.little, scaled: !matches!(meaning, Meaning::Palette) },
        packing,
        meaning,
        palette,
        differences: differences == 2,
        tile,
        strips,
        offsets: tags.needed(offsets)?,
        lengths: tags.all(lengths)?,
    };
    if !known || tile.0 == 0 || tile.1 == 0 || channels < tiff.colors().channels() {
        return Err(Fault::Undecodable);
    }
    // A tile as it is stored, and its samples.
    let samples = tile.0.saturating_mul(tile.1).saturating_mul(channels);
    let tiles = width.div_ceil(tile.0).saturating_mul(height.div_ceil(tile.1));
    let tables = inflate::MEMORY + LZW_CODES * size_of::<(usize, usize)>() + size_of::<Tiff<'_>>() + 1024;
    let memory = samples.saturating_mul(3).saturating_add(tile.0.saturating_mul(channels)).saturating_add(tables);
    // Tiles may share what is packed.
    let packed = match &tiff.lengths {
        Some(lengths) => (0..tiles).map_while(|k| lengths.get(k)).fold(0, usize::saturating_add),
        None => tiles.saturating_mul(bytes.len()),
    };
    let tables = if tiff.packing == Packing::Zlib { tiles.saturating_mul(inflate::MEMORY) } else { 0 };
    let work = samples.saturating_mul(tiles).saturating_add(packed).saturating_add(tables);
    Picture::new((width, height), memory, work, tiff)
}

impl Tiff<'_> {
    fn colors(&self) -> Colors<'_> {
        match self.meaning {
            Meaning::Inverted => Colors::Inverted,
            Meaning::Gray => Colors::Gray,
            Meaning::Rgb => Colors::Rgb,
            Meaning::Palette => Colors::Palette(&self.palette),
            Meaning::Cmyk => Colors::Cmyk,
        }
    }

    /// Unpacks the `k`-th tile.
    fn unpack(&self, k: usize, to: &mut [u8], lookout: &mut Lookout<'_>) -> Result<()> {
        let mut reader = Reader::new(self.bytes, self.offsets.get(k).ok_or(Fault::Undecodable)?)?;
        let packed = match &self.lengths {
            Some(lengths) => reader.take(lengths.get(k).ok_or(Fault::Undecodable)?)?,
            None => reader.rest,
        };
        match self.packing {
            Packing::None => {
                to.copy_from_slice(packed.get(..to.len()).ok_or(Fault::Undecodable)?);
                Ok(())
            }
            Packing::Lzw => lzw(packed, to, lookout),
            Packing::Zlib => {
                lookout.after(inflate::MEMORY)?;
                Inflate::new(std::iter::once(packed))?.read(to, lookout)
            }
            Packing::PackBits => pack_bits(packed, to, lookout),
        }
    }

    /// Adds up differences in a row of pixels of `step` samples.
    fn add_up(&self, row: &mut [u8], step: usize) {
        let mut left = [0u16; 16];
        if self.depth.bits == 8 {
            for pixel in row.chunks_mut(step) {
                for (sample, left) in pixel.iter_mut().zip(&mut left) {
                    *left = left.wrapping_add((*sample).into());
                    *sample = *left as u8;
                }
            }
            return;
        }
        for pixel in row.as_chunks_mut::<2>().0.chunks_mut(step) {
            for (sample, left) in pixel.iter_mut().zip(&mut left) {
                let little = self.depth.little;
                *left =
                    left.wrapping_add(if little { u16::from_le_bytes(*sample) } else { u16::from_be_bytes(*sample) });
                *sample = if little { left.to_le_bytes() } else { left.to_be_bytes() };
            }
        }
    }
}

impl Decode for Tiff<'_> {
    fn decode(self: Box<Self>, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        let (width, height) = self.tile;
        let (planes, step) = if self.apart { (self.channels, 1) } else { (1, self.channels) };
        let stride = (width * step * self.depth.bits).div_ceil(8);
        let mut stored = zeros::<u8>(stride * height)?;
        let mut line = zeros::<u8>(width * step)?;
        let mut samples = zeros::<u8>(width * height * self.channels)?;
        let (across, down) = (self.width.div_ceil(width), self.height.div_ceil(height));
        for k in 0..across * down {
            let (x, y) = (k % across * width, k / across * height);
            // The last strip ends with the picture; tiles go beyond.
            let rows = if self.strips { height.min(self.height - y) } else { height };
            for plane in 0..planes {
                let stored = stored.get_mut(..stride * rows).unwrap_or_default();
                self.unpack(plane * across * down + k, stored, lookout)?;
                for (row, samples) in stored.chunks_mut(stride).zip(samples.chunks_mut(width * self.channels)) {
                    lookout.after(row.len() + 3 * line.len())?;
                    if self.differences {
                        self.add_up(row, step);
                    }
                    self.depth.unpack(row, &mut line);
                    samples.iter_mut().skip(plane).step_by(planes).zip(&line).for_each(|(to, sample)| *to = *sample);
                }
            }
            for (samples, row) in samples.chunks(width * self.channels).zip(pixels.chunks_mut(self.width).skip(y)) {
                lookout.after(samples.len() + 3 * width)?;
                self.colors().paint(samples, self.channels, row.iter_mut().skip(x));
            }
        }
        Ok(())
    }
}

/// Fills `to` with runs: as many bytes as a number says, or one that many times.
fn pack_bits(packed: &[u8], to: &mut [u8], lookout: &mut Lookout<'_>) -> Result<()> {
    let (mut reader, mut at) = (Reader { rest: packed }, 0);
    while at < to.len() {
        let count = i8::from_ne_bytes([reader.byte()?]);
        let len = usize::from(count.unsigned_abs()) + 1;
        let end = to.len().min(at + len);
        let run = to.get_mut(at..end).unwrap_or_default();
        lookout.after(1 + 2 * len)?;
        match count {
            -128 => continue,
            0.. => run.copy_from_slice(reader.take(len)?.get(..run.len()).unwrap_or_default()),
            _ => run.fill(reader.byte()?),
        }
        at = end;
    }
    Ok(())
}

const LZW_CODES: usize = 1 << 12;

/// Fills `to` with texts by codes of 9 to 12 bits. A text is one that was before with a byte more, so that it is where that
/// was written.
fn lzw(packed: &[u8], to: &mut [u8], lookout: &mut Lookout<'_>) -> Result<()> {
    const CLEAR: usize = 256;
    const END: usize = 257;
    let (mut bits, mut count, mut size, mut bytes) = (0usize, 0, 9, packed.iter());
    // Where the texts of the codes from 258 on begin, and their lengths.
    let mut texts: Vec<(usize, usize)> = Vec::with_capacity(LZW_CODES);
    let mut at = 0;
    let mut last = None;
    while at < to.len() {
        while count < size {
            bits = (bits << 8 | usize::from(*bytes.next().ok_or(Fault::Undecodable)?)) & 0xFF_FFFF;
            count += 8;
        }
        count -= size;
        let code = bits >> count & ((1 << size) - 1);
        match code {
            CLEAR => {
                texts.clear();
                (size, last) = (9, None);
                lookout.after(2)?;
                continue;
            }
            END => return Err(Fault::Undecodable),
            _ => {}
        }
        // The new text is the last one and the byte after it, which this code writes.
        if let Some((from, len)) = last
            && texts.len() + END + 1 < LZW_CODES
        {
            texts.push((from, len + 1));
        }
        let (from, len) = match code {
            0..CLEAR => {
                *to.get_mut(at).ok_or(Fault::Undecodable)? = code as u8;
                (at, 1)
            }
            _ => *texts.get(code - END - 1).ok_or(Fault::Undecodable)?,
        };
        let len = len.min(to.len() - at);
        lookout.after(2 + 2 * len)?;
        if code >= CLEAR {
            // Byte by byte: a text may end in what it writes.
            for k in 0..len {
                let byte = to.get(from + k).copied().ok_or(Fault::Undecodable)?;
                *to.get_mut(at + k).ok_or(Fault::Undecodable)? = byte;
            }
        }
        last = Some((at, len));
        at += len;
        // Codes become longer one code early.
        size = match texts.len() + END + 1 {
            ..511 => 9,
            511..1023 => 10,
            1023..2047 => 11,
            _ => 12,
        };
    }
    Ok(())
}
