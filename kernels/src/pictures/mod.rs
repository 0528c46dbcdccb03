//! Pictures in files: their sizes, and their pixels as red, green and blue in 8 bits.
//!
//! Transparency is dropped, unless a caller asks for that of a PNG; samples of 16 bits lose their low byte, and CMYK becomes
//! RGB without a colour profile. A file with several pictures gives the first one.

mod bmp;
mod colors;
mod inflate;
mod jpeg;
mod jpeg2000;
mod png;
mod pnm;
mod reader;
#[cfg(test)]
mod tests;
mod tiff;
mod webp;

pub use colors::{luma, reverse};

use super::{Lookout, Stopped};

/// A pixel: red, green, blue.
pub type Pixel = [u8; 3];

/// Why a picture has no pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The file is damaged, or of a kind that isn't known here.
    Undecodable,
    /// The system gives no memory for so many bytes.
    NoMemory(usize),
    Stopped(Stopped),
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Fault {
        Fault::Stopped(stopped)
    }
}

type Result<T> = std::result::Result<T, Fault>;

/// A picture whose header was read.
pub struct Picture<'a> {
    /// Neither is 0.
    pub width: usize,
    pub height: usize,
    /// Maximum number of bytes that decoding takes, without the pixels.
    pub memory: usize,
    /// Samples that decoding computes.
    pub work: usize,
    decoder: Box<dyn Decode + 'a>,
}

trait Decode {
    /// Writes all pixels, row by row from the top.
    fn decode(self: Box<Self>, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()>;
}

impl<'a> Picture<'a> {
    fn new(
        (width, height): (usize, usize),
        memory: usize,
        work: usize,
        decoder: impl Decode + 'a,
    ) -> Result<Picture<'a>> {
        let empty = width == 0 || height == 0;
        if empty {
            Err(Fault::Undecodable)
        } else {
            Ok(Picture { width, height, memory, work, decoder: Box::new(decoder) })
        }
    }

    /// Writes `width * height` pixels, row by row from the top.
    pub fn decode(self, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        if pixels.len() != self.width.saturating_mul(self.height) {
            return Err(Stopped::Misfit.into());
        }
        self.decoder.decode(pixels, lookout)
    }
}

/// Reads the header of a picture. Its first bytes say the format.
pub fn open<'a>(bytes: &'a [u8], lookout: &mut Lookout<'_>) -> Result<Picture<'a>> {
    match bytes {
        [0xFF, 0xD8, 0xFF, ..] => jpeg::open(bytes, lookout),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => png::open(bytes, false, lookout),
        [b'B', b'M', ..] => bmp::open(bytes),
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => tiff::open(bytes),
        [b'P', b'1'..=b'6', ..] => pnm::open(bytes, lookout),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp::open(bytes),
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xFF, 0x4F, 0xFF, 0x51, ..] => jpeg2000::open(bytes),
        _ => Err(Fault::Undecodable),
    }
}

/// Reads the header of a picture whose pixels are the opacity of those of a PNG, as grays. `None` if the format has no
/// transparency. The transparency of other formats isn't read.
pub fn open_opacity<'a>(bytes: &'a [u8], lookout: &mut Lookout<'_>) -> Result<Option<Picture<'a>>> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => png::open(bytes, true, lookout).map(Some),
        [0xFF, 0xD8, ..] | [b'P', ..] => Ok(None),
        _ => Err(Fault::Undecodable),
    }
}

/// A list of zeros.
fn zeros<T: bytemuck::Zeroable + Clone>(len: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| Fault::NoMemory(len.saturating_mul(size_of::<T>())))?;
    list.resize(len, T::zeroed());
    Ok(list)
}
