//! JPEG 2000, decoded by hayro-jpeg2000. It can't be stopped in between.
//!
//! It gets a stream whose header was checked here, so that its time and memory are bounded. Not read are palettes, CMYK and
//! other spaces of colours, headers that differ from tile to tile, and more than 32 layers.

use super::colors::Colors;
use super::reader::Reader;
use super::{Decode, Fault, Picture, Pixel, Result, zeros};
use crate::Lookout;
use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};

struct Jpeg2000<'a> {
    image: Image<'a>,
}

/// A stream begins with this marker and that of its size.
const START: [u8; 4] = [0xFF, 0x4F, 0xFF, 0x51];

pub(super) fn open(bytes: &[u8]) -> Result<Picture<'_>> {
    let stream = if bytes.starts_with(&START) { bytes } else { boxed(Reader { rest: bytes })? };
    let header = Header::read(stream)?;
    let image = Image::new(stream, &DecodeSettings::default()).map_err(|_| Fault::Undecodable)?;
    let (width, height) = (image.width() as usize, image.height() as usize);
    let area = width.saturating_mul(height);
    // Coefficients, samples as floats and as bytes; lists of what is in a tile; of each tile what it says of itself.
    let lists = header.lists();
    let memory = (area.saturating_mul(16 * (header.channels + 2)))
        .saturating_add(lists)
        .saturating_add(header.tiles.saturating_mul(1024 * (header.channels + 1)))
        .saturating_add(stream.len().saturating_mul(256))
        .saturating_add(1 << 16);
    let work = area.saturating_mul(32).saturating_add(lists.saturating_mul(header.tiles)).saturating_add(stream.len());
    Picture::new((width, height), memory, work, Jpeg2000 { image })
}

/// The stream in the boxes of a file. Boxes that say more than that it has grays, or red, green and blue, aren't known.
fn boxed(mut boxes: Reader<'_>) -> Result<&[u8]> {
    loop {
        let (len, name) = (boxes.big32()?, boxes.array()?);
        let len = match len {
            0 => boxes.rest.len(),
            1 => (boxes.big32()? << 16 << 16 | boxes.big32()?).checked_sub(16).ok_or(Fault::Undecodable)?,
            _ => len.checked_sub(8).ok_or(Fault::Undecodable)?,
        };
        let content = boxes.take(len)?;
        match &name {
            b"jp2c" if content.starts_with(&START) => return Ok(content),
            b"jp2h" => colors(content)?,
            _ => {}
        }
    }
}

/// Checks the boxes of a header.
fn colors(content: &[u8]) -> Result<()> {
    let mut boxes = Reader { rest: content };
    while !boxes.rest.is_empty() {
        let (len, name) = (boxes.big32()?, boxes.array()?);
        let mut content = Reader { rest: boxes.take(len.checked_sub(8).ok_or(Fault::Undecodable)?)? };
        let known = match &name {
            b"pclr" | b"cmap" => false,
            b"colr" => match content.array()? {
                // Red, green and blue, or grays.
                [1, _, _] => matches!(content.big32()?, 16 | 17),
                _ => true,
            },
            // Channels in their order, then transparency.
            b"cdef" => {
                let count = content.big16()?;
                let channels = (0..count).map(|k| {
                    let [channel, kind, color] = [content.big16()?, content.big16()?, content.big16()?];
                    Result::Ok(channel == k && (kind != 0 || color == k + 1))
                });
                channels.collect::<Result<Vec<_>>>()?.into_iter().all(|known| known)
            }
            _ => true,
        };
        if !known {
            return Err(Fault::Undecodable);
        }
    }
    Ok(())
}

/// What bounds time and memory.
struct Header {
    channels: usize,
    tiles: usize,
    /// The size of a tile.
    tile: [usize; 2],
    layers: usize,
    /// The sizes of blocks and of precincts, from the smallest resolution on, as powers of 2.
    block: [usize; 2],
    precincts: Vec<[usize; 2]>,
}

mod marker {
    pub(super) const CODING: usize = 0xFF52;
    pub(super) const LENGTHS: usize = 0xFF55;
    pub(super) const PACKETS: usize = 0xFF57;
    pub(super) const PACKETS_OF_TILE: usize = 0xFF58;
    pub(super) const STEPS: usize = 0xFF5C;
    pub(super) const STEPS_OF_CHANNEL: usize = 0xFF5D;
    pub(super) const REGISTRATION: usize = 0xFF63;
    pub(super) const COMMENT: usize = 0xFF64;
    pub(super) const TILE: usize = 0xFF90;
    pub(super) const DATA: usize = 0xFF93;
    pub(super) const END: usize = 0xFFD9;
}

impl Header {
    fn read(stream: &[u8]) -> Result<Header> {
        let mut reader = Reader::new(stream, START.len())?;
        let mut size = Reader { rest: segment(&mut reader)? };
        size.take(2)?;
        let mut pair = || -> Result<_> { Ok([size.big32()?, size.big32()?]) };
        let [grid, offset, tile, from] = [pair()?, pair()?, pair()?, pair()?];
        let channels = size.big16()?;
        // What no picture of a sensible size has could overflow.
        let known = |number: usize| number < 1 << 30;
        let fits = [grid, offset, tile, from].as_flattened().iter().all(|number| known(*number));
        if !fits || !(1..=4).contains(&channels) || tile.contains(&0) {
            return Err(Fault::Undecodable);
        }
        for _ in 0..channels {
            let [depth, across, down] = size.array()?;
            if depth & 0x7F > 15 || !(1..=4).contains(&across) || !(1..=4).contains(&down) {
                return Err(Fault::Undecodable);
            }
        }
        let count = |k: fn([usize; 2]) -> usize| k(grid).saturating_sub(k(from)).div_ceil(k(tile));
        let tiles = count(|[x, _]| x).saturating_mul(count(|[_, y]| y));
        if !(1..=65535).contains(&tiles) {
            return Err(Fault::Undecodable);
        }
        let area = |k: fn([usize; 2]) -> usize| k(tile).min(k(grid).saturating_sub(k(offset)));
        let tile = [area(|[x, _]| x), area(|[_, y]| y)];
        let mut header = Header { channels, tiles, tile, layers: 0, block: [0; 2], precincts: Vec::new() };
        loop {
            match reader.big16()? {
                marker::CODING if header.layers == 0 => header.coding(Reader { rest: segment(&mut reader)? })?,
                marker::STEPS
                | marker::STEPS_OF_CHANNEL
                | marker::LENGTHS
                | marker::PACKETS
                | marker::REGISTRATION
                | marker::COMMENT => _ = segment(&mut reader)?,
                marker::TILE if header.layers > 0 => break,
                _ => return Err(Fault::Undecodable),
            }
        }
        tiles_of(reader)?;
        Ok(header)
    }

    fn coding(&mut self, mut data: Reader<'_>) -> Result<()> {
        let (style, _, layers, _) = (data.byte()?, data.byte()?, data.big16()?, data.byte()?);
        let [levels, across, down, _, _] = data.array()?;
        (self.layers, self.block) = (layers, [across, down].map(|power| usize::from(power) + 2));
        for _ in 0..=levels {
            let powers = if style & 1 == 1 { data.byte()? } else { 0xFF };
            self.precincts.push([powers & 15, powers >> 4].map(usize::from));
        }
        let blocks = across <= 8 && down <= 8 && across + down <= 8;
        let halved = self.precincts.iter().skip(1).all(|powers| !powers.contains(&0));
        let known = (1..=32).contains(&layers) && levels <= 32 && blocks && halved;
        if known { Ok(()) } else { Err(Fault::Undecodable) }
    }

    /// Upper bound of the memory for lists of the precincts and blocks of a tile.
    fn lists(&self) -> usize {
        // Lists grow to twice their length, beside the one before.
        const GROWN: usize = 3;
        let each = |size: usize, power: usize| (size >> power).saturating_add(2);
        let (mut precincts, mut blocks) = (0usize, 0usize);
        for (level, powers) in self.precincts.iter().rev().enumerate() {
            let [width, height] = self.tile.map(|size| size >> level.min(31));
            let [across, down] = *powers;
            precincts = precincts.saturating_add(each(width, across).saturating_mul(each(height, down)));
            let [x, y] = [self.block[0].min(across.saturating_sub(1)), self.block[1].min(down.saturating_sub(1))];
            blocks = blocks.saturating_add(each(width, x).saturating_mul(each(height, y)));
        }
        let precincts = precincts.saturating_mul(3 * 160);
        let blocks = blocks.saturating_mul(3 * (192 + 24 * self.layers));
        precincts.saturating_add(blocks).saturating_mul(GROWN * self.channels)
    }
}

/// Checks the parts of tiles, from behind the marker of the first one on.
fn tiles_of(mut reader: Reader<'_>) -> Result<()> {
    loop {
        let part = reader;
        let mut tile = Reader { rest: segment(&mut reader)? };
        tile.take(2)?;
        // It counts from the marker on; 0 is up to the end.
        let len = tile.big32()?;
        loop {
            match reader.big16()? {
                marker::DATA => break,
                marker::STEPS | marker::STEPS_OF_CHANNEL | marker::PACKETS_OF_TILE | marker::COMMENT => {
                    segment(&mut reader)?;
                }
                _ => return Err(Fault::Undecodable),
            }
        }
        let read = part.rest.len() - reader.rest.len() + 2;
        if len == 0 {
            return Ok(());
        }
        reader.take(len.checked_sub(read).ok_or(Fault::Undecodable)?)?;
        match reader.big16()? {
            marker::TILE => {}
            marker::END => return Ok(()),
            _ => return Err(Fault::Undecodable),
        }
    }
}

/// What belongs to a marker.
fn segment<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let len = reader.big16()?.checked_sub(2).ok_or(Fault::Undecodable)?;
    reader.take(len)
}

impl Decode for Jpeg2000<'_> {
    fn decode(self: Box<Self>, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        let count = usize::from(self.image.color_space().num_channels());
        let channels = count + usize::from(self.image.has_alpha());
        let colors = if count == 1 { Colors::Gray } else { Colors::Rgb };
        let mut samples = zeros::<u8>(pixels.len() * channels)?;
        let mut context = DecoderContext::default();
        self.image.decode_into(&mut samples, &mut context).map_err(|_| Fault::Undecodable)?;
        colors.paint_all(&samples, channels, pixels, lookout)
    }
}
