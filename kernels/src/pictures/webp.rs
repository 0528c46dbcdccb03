//! WebP, decoded by image-webp. It can't be stopped in between.

use super::colors::Colors;
use super::reader::Reader;
use super::{Decode, Fault, Picture, Pixel, Result, zeros};
use crate::Lookout;
use image_webp::WebPDecoder;
use std::io::Cursor;

/// Bytes before the first chunk: "RIFF", a length, "WEBP".
const HEADER: usize = 12;

/// Bytes before the picture in a chunk of an animation.
const FRAME: usize = 16;

struct Webp {
    decoder: WebPDecoder<Cursor<Vec<u8>>>,
}

/// Transparency is in a chunk of its own, or unused: only the first chunk with colours is decoded, as a file of its own.
pub(super) fn open(bytes: &[u8]) -> Result<Picture<'_>> {
    let mut reader = Reader::new(bytes, HEADER)?;
    let (name, chunk) = loop {
        let (name, len) = (reader.take(4)?, reader.little32()?);
        match name {
            b"VP8 " | b"VP8L" => break (name, reader.take(len)?),
            // Its chunks are of the same form.
            b"ANMF" => _ = reader.take(FRAME)?,
            _ => _ = reader.take(len.saturating_add(len % 2))?,
        }
    };
    let lossless = name == b"VP8L";
    let (width, height) = size(chunk, lossless)?;
    let area = width * height;
    // The file, and planes or samples; the codes of lossless files, of which each takes few bits of the file and up to 4 KiB;
    // the lengths of parts of other files, which are at most 16 MiB.
    let extra = if lossless { chunk.len().saturating_mul(600) } else { (1 << 24) + (1 << 20) };
    let memory =
        area.saturating_mul(12).saturating_add(chunk.len() + 64 * (width + height) + (1 << 17)).saturating_add(extra);
    let mut file = zeros(HEADER + 8 + chunk.len() + chunk.len() % 2)?;
    let len = |len: usize| u32::try_from(len).unwrap_or_default().to_le_bytes();
    let parts: [&[u8]; 6] = [b"RIFF", &len(file.len() - 8), b"WEBP", name, &len(chunk.len()), chunk];
    file.iter_mut().zip(parts.into_iter().flatten()).for_each(|(to, byte)| *to = *byte);
    let decoder = WebPDecoder::new(Cursor::new(file)).map_err(|_| Fault::Undecodable)?;
    if decoder.dimensions() != (width as u32, height as u32) {
        return Err(Fault::Undecodable);
    }
    Picture::new((width, height), memory, area.saturating_mul(4).saturating_add(extra), Webp { decoder })
}

/// The size that the colours say.
fn size(chunk: &[u8], lossless: bool) -> Result<(usize, usize)> {
    if lossless {
        let bits = Reader::new(chunk, 1)?.little32()?;
        return Ok(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1));
    }
    let mut reader = Reader::new(chunk, 6)?;
    Ok((reader.little16()? & 0x3FFF, reader.little16()? & 0x3FFF))
}

impl Decode for Webp {
    fn decode(mut self: Box<Self>, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        let channels = if self.decoder.has_alpha() { 4 } else { 3 };
        let mut samples = zeros::<u8>(pixels.len() * channels)?;
        self.decoder.read_image(&mut samples).map_err(|_| Fault::Undecodable)?;
        Colors::Rgb.paint_all(&samples, channels, pixels, lookout)
    }
}
