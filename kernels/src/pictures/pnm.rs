//! Portable maps of bits, grays and colours (PBM, PGM, PPM): as text and as bytes.

use super::colors::{Colors, Depth};
use super::reader::Reader;
use super::{Decode, Fault, Picture, Pixel, Result, zeros};
use crate::Lookout;

struct Pnm<'a> {
    width: usize,
    colors: Colors<'static>,
    /// Whether numbers are digits, or bytes.
    text: bool,
    /// The number that is white; `None` of bits, of which 1 is black.
    most: Option<usize>,
    reader: Reader<'a>,
}

pub(super) fn open<'a>(bytes: &'a [u8], lookout: &mut Lookout<'_>) -> Result<Picture<'a>> {
    let mut reader = Reader::new(bytes, 1)?;
    let kind = reader.byte()?;
    let mut next = || number(&mut reader, lookout);
    let (width, height) = (next()?, next()?);
    let bits = matches!(kind, b'1' | b'4');
    let most = if bits { None } else { Some(next()?) };
    if most.is_some_and(|most| !(1..=65535).contains(&most)) {
        return Err(Fault::Undecodable);
    }
    let text = kind < b'4';
    if !text && reader.rest.first().is_none_or(|byte| !byte.is_ascii_whitespace()) {
        return Err(Fault::Undecodable);
    }
    if !text {
        reader.byte()?;
    }
    let colors = if matches!(kind, b'3' | b'6') { Colors::Rgb } else { Colors::Gray };
    let samples = width.saturating_mul(colors.channels());
    let work = samples.saturating_mul(height);
    // A number in text takes at least a digit, and a space but for bits.
    let least = match most {
        None if text => work,
        None => width.div_ceil(8).saturating_mul(height),
        Some(most) if text || most > 255 => work.saturating_mul(2).saturating_sub(usize::from(text)),
        Some(_) => work,
    };
    if reader.rest.len() < least {
        return Err(Fault::Undecodable);
    }
    Picture::new((width, height), samples.saturating_add(256), work, Pnm { width, colors, text, most, reader })
}

impl Decode for Pnm<'_> {
    fn decode(mut self: Box<Self>, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        let channels = self.colors.channels();
        let mut samples = zeros::<u8>(self.width * channels)?;
        for pixels in pixels.chunks_mut(self.width) {
            lookout.after(2 * samples.len() + size_of_val(pixels))?;
            match (self.text, self.most) {
                (true, most) => {
                    for sample in &mut samples {
                        *sample = match most {
                            None => bit(&mut self.reader, lookout)?,
                            Some(most) => scaled(number(&mut self.reader, lookout)?, most),
                        };
                    }
                }
                (false, None) => {
                    let row = self.reader.take(self.width.div_ceil(8))?;
                    Depth { bits: 1, little: false, scaled: true }.unpack(row, &mut samples);
                    samples.iter_mut().for_each(|sample| *sample = !*sample);
                }
                (false, Some(255)) => {
                    let row = self.reader.take(samples.len())?;
                    samples.copy_from_slice(row);
                }
                (false, Some(most)) => {
                    for sample in &mut samples {
                        let number = if most < 256 { self.reader.byte()?.into() } else { self.reader.big16()? };
                        *sample = scaled(number, most);
                    }
                }
            }
            self.colors.paint(&samples, channels, pixels.iter_mut());
        }
        Ok(())
    }
}

/// Of two equally near numbers the even one.
fn scaled(number: usize, most: usize) -> u8 {
    (number as f64 / most as f64 * 255.0).round_ties_even() as u8
}

/// Skips spaces, and comments to the end of a line.
fn skip(reader: &mut Reader<'_>, lookout: &mut Lookout<'_>) -> Result<()> {
    let mut comment = false;
    while let Some((first, rest)) = reader.rest.split_first() {
        match first {
            b'#' => comment = true,
            b'\n' | b'\r' => comment = false,
            _ if comment || first.is_ascii_whitespace() => {}
            _ => break,
        }
        lookout.after(1)?;
        reader.rest = rest;
    }
    Ok(())
}

fn number(reader: &mut Reader<'_>, lookout: &mut Lookout<'_>) -> Result<usize> {
    skip(reader, lookout)?;
    let mut number = None;
    while let Some((digit @ b'0'..=b'9', rest)) = reader.rest.split_first() {
        lookout.after(1)?;
        let so_far: usize = number.unwrap_or_default();
        number = Some(so_far.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
        reader.rest = rest;
    }
    number.ok_or(Fault::Undecodable)
}

/// A bit in text: 1 is black. Spaces may be left out.
fn bit(reader: &mut Reader<'_>, lookout: &mut Lookout<'_>) -> Result<u8> {
    skip(reader, lookout)?;
    lookout.after(1)?;
    match reader.byte()? {
        b'0' => Ok(255),
        b'1' => Ok(0),
        _ => Err(Fault::Undecodable),
    }
}
