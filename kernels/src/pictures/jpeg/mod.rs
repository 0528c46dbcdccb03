//! JPEG, sequential and progressive, with Huffman codes and samples of 8 bits. The pixels are those of libjpeg.
//!
//! Not read are arithmetic codes, 12 bits, lossless and hierarchical files. Every coefficient that a progressive file leaves
//! out is 0.

mod huffman;
mod scan;
mod transform;
mod upsample;

use super::colors::{Colors, without_ink};
use super::reader::Reader;
use super::{Decode, Fault, Picture, Pixel, Result, zeros};
use crate::Lookout;
use huffman::Table;

/// A colour of the picture.
#[derive(Default)]
struct Component {
    id: u8,
    /// How many blocks of it are in a unit (an MCU), across and down.
    across: usize,
    down: usize,
    /// The number of its table of steps.
    steps_at: u8,
    /// The steps when its first scan began.
    steps: Option<[u16; BLOCK]>,
    /// Its size in samples.
    width: usize,
    height: usize,
    /// Blocks of a row and rows of blocks, with those that only fill units.
    row: usize,
    rows: usize,
    coefficients: Vec<i16>,
}

/// Coefficients of a block.
const BLOCK: usize = 64;

/// Maximum number of components.
const MOST: usize = 4;

/// Where coefficients are in a block, in the order of the file: from low to high frequencies.
const ZIGZAG: [u8; BLOCK] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, //
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47,
    55, 62, 63,
];

struct Jpeg<'a> {
    width: usize,
    progressive: bool,
    components: Vec<Component>,
    /// The greatest of the components.
    across: usize,
    down: usize,
    /// Units of a row, and rows of them.
    units: (usize, usize),
    /// Units between two restarts; 0 is none.
    restart: usize,
    steps: [Option<[u16; BLOCK]>; 4],
    /// Huffman codes of the first coefficients of blocks, and of the others.
    first: [Option<Box<Table>>; 4],
    others: [Option<Box<Table>>; 4],
    /// Whether there is a segment of JFIF, and what that of Adobe says.
    jfif: bool,
    adobe: Option<u8>,
    /// The segments behind the frame.
    segments: Segments<'a>,
}

/// The segments of a file: a marker, and what belongs to it.
#[derive(Clone, Copy)]
struct Segments<'a> {
    reader: Reader<'a>,
}

mod marker {
    pub(super) const FRAME: u8 = 0xC0;
    pub(super) const PROGRESSIVE: u8 = 0xC2;
    pub(super) const CODES: u8 = 0xC4;
    pub(super) const RESERVED: u8 = 0xC8;
    pub(super) const LAST_FRAME: u8 = 0xCF;
    pub(super) const RESTART: u8 = 0xD0;
    pub(super) const START: u8 = 0xD8;
    pub(super) const END: u8 = 0xD9;
    pub(super) const SCAN: u8 = 0xDA;
    pub(super) const STEPS: u8 = 0xDB;
    pub(super) const INTERVAL: u8 = 0xDD;
    pub(super) const JFIF: u8 = 0xE0;
    pub(super) const ADOBE: u8 = 0xEE;
}

impl<'a> Segments<'a> {
    /// The next segment. Bytes before its marker are skipped.
    fn next(&mut self, lookout: &mut Lookout<'_>) -> Result<(u8, Reader<'a>)> {
        loop {
            while self.reader.byte()? != 0xFF {
                lookout.after(1)?;
            }
            let mut marker = 0xFF;
            while marker == 0xFF {
                lookout.after(1)?;
                marker = self.reader.byte()?;
            }
            match marker {
                0 | 1 | marker::RESTART..=marker::START => {}
                marker::END => return Ok((marker, Reader { rest: &[] })),
                _ => {
                    let len = self.reader.big16()?.checked_sub(2).ok_or(Fault::Undecodable)?;
                    return Ok((marker, Reader { rest: self.reader.take(len)? }));
                }
            }
        }
    }
}

pub(super) fn open<'a>(bytes: &'a [u8], lookout: &mut Lookout<'_>) -> Result<Picture<'a>> {
    let segments = Segments { reader: Reader::new(bytes, 2)? };
    let mut jpeg = Jpeg {
        width: 0,
        progressive: false,
        components: Vec::new(),
        across: 1,
        down: 1,
        units: (0, 0),
        restart: 0,
        steps: [None; 4],
        first: [const { None }; 4],
        others: [const { None }; 4],
        jfif: false,
        adobe: None,
        segments,
    };
    let (width, height) = loop {
        match jpeg.segments.next(lookout)? {
            (marker::CODES, data) => jpeg.codes(data)?,
            (marker @ (marker::FRAME..=marker::PROGRESSIVE), data) => break jpeg.frame(marker, data)?,
            (marker::FRAME..=marker::LAST_FRAME, _) => return Err(Fault::Undecodable),
            (marker, data) => jpeg.table(marker, data)?,
        }
    };
    // Each scan visits blocks of its components; a bit may stand for thousands of them.
    let (mut rest, mut scans) = (jpeg.segments, 0usize);
    loop {
        match rest.next(lookout)? {
            (marker::END, _) => break,
            (marker::SCAN, _) => scans += 1,
            (marker::CODES | marker::RESERVED, _) => {}
            (marker::FRAME..=marker::LAST_FRAME, _) => return Err(Fault::Undecodable),
            _ => {}
        }
    }
    let samples: usize = jpeg.components.iter().map(|component| component.row * component.rows * BLOCK).sum();
    // Coefficients of two bytes, samples of one, a few lines, the tables.
    let lines = (width + 32) * 8 * MOST;
    let memory = samples.saturating_mul(3) + lines + size_of::<Jpeg<'_>>() + 8 * size_of::<Table>() + 4096;
    Picture::new((width, height), memory, samples.saturating_mul(scans), jpeg)
}

impl<'a> Jpeg<'a> {
    /// The size of the picture and its components.
    fn frame(&mut self, marker: u8, mut data: Reader<'_>) -> Result<(usize, usize)> {
        self.progressive = marker == marker::PROGRESSIVE;
        let (bits, height, width, count) = (data.byte()?, data.big16()?, data.big16()?, data.byte()?);
        if bits != 8 || !matches!(count, 1 | 3 | 4) {
            return Err(Fault::Undecodable);
        }
        for _ in 0..count {
            let [id, factors, steps_at] = data.array()?;
            let [across, down] = [factors >> 4, factors & 15].map(usize::from);
            if !(1..=4).contains(&across) || !(1..=4).contains(&down) || steps_at > 3 {
                return Err(Fault::Undecodable);
            }
            self.components.push(Component { id, across, down, steps_at, ..Component::default() });
        }
        self.across = self.components.iter().map(|c| c.across).max().unwrap_or(1);
        self.down = self.components.iter().map(|c| c.down).max().unwrap_or(1);
        self.units = (width.div_ceil(8 * self.across), height.div_ceil(8 * self.down));
        for component in &mut self.components {
            if !self.across.is_multiple_of(component.across) || !self.down.is_multiple_of(component.down) {
                return Err(Fault::Undecodable);
            }
            component.width = (width * component.across).div_ceil(self.across);
            component.height = (height * component.down).div_ceil(self.down);
            (component.row, component.rows) = (self.units.0 * component.across, self.units.1 * component.down);
        }
        self.width = width;
        Ok((width, height))
    }

    /// A segment that may come anywhere.
    fn table(&mut self, marker: u8, mut data: Reader<'_>) -> Result<()> {
        match marker {
            marker::STEPS => {
                while let Ok(kind) = data.byte() {
                    let steps = self.steps.get_mut(usize::from(kind & 15)).ok_or(Fault::Undecodable)?;
                    let mut table = [0; BLOCK];
                    for at in ZIGZAG {
                        let step = if kind >> 4 == 0 { data.byte()?.into() } else { data.big16()? };
                        table.get_mut(usize::from(at)).map(|to| *to = step as u16).ok_or(Fault::Undecodable)?;
                    }
                    *steps = Some(table);
                }
            }
            marker::INTERVAL => self.restart = data.big16()?,
            marker::JFIF => self.jfif |= data.rest.len() >= 12 && data.rest.starts_with(b"JFIF\0"),
            marker::ADOBE if data.rest.starts_with(b"Adobe") => self.adobe = data.rest.get(11).copied().or(self.adobe),
            marker::SCAN | marker::END => return Err(Fault::Undecodable),
            _ => {}
        }
        Ok(())
    }

    fn codes(&mut self, mut data: Reader<'_>) -> Result<()> {
        while let Ok(kind) = data.byte() {
            let tables = if kind >> 4 == 0 { &mut self.first } else { &mut self.others };
            let table = tables.get_mut(usize::from(kind & 15)).filter(|_| kind < 0x20);
            *table.ok_or(Fault::Undecodable)? = Some(Box::new(Table::read(&mut data)?));
        }
        Ok(())
    }

    /// Whether three components are red, green and blue, and four of them ink without a matrix.
    fn plain(&self) -> bool {
        let ids: Vec<u8> = self.components.iter().map(|component| component.id).collect();
        match (self.jfif, self.adobe) {
            (false, Some(transform)) => transform == 0,
            (true, Some(transform)) if ids.len() == MOST => transform == 0,
            (_, None) if ids.len() == MOST => true,
            (true, _) => false,
            (false, None) => ids == *b"RGB",
        }
    }
}

impl Decode for Jpeg<'_> {
    fn decode(mut self: Box<Self>, pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        for component in &mut self.components {
            component.coefficients = zeros(component.row * component.rows * BLOCK)?;
        }
        loop {
            match self.segments.next(lookout)? {
                (marker::CODES, data) => self.codes(data)?,
                (marker::SCAN, data) => self.scan(data, lookout)?,
                (marker::END, _) => break,
                (marker, data) => self.table(marker, data)?,
            }
        }
        let mut planes = Vec::new();
        for component in &mut self.components {
            let steps = component.steps.ok_or(Fault::Undecodable)?;
            let mut plane = zeros::<u8>(component.row * component.rows * BLOCK)?;
            let blocks = component.coefficients.chunks(component.row * BLOCK);
            for (blocks, plane) in blocks.zip(plane.chunks_mut(component.row * BLOCK)) {
                for (k, block) in blocks.as_chunks::<BLOCK>().0.iter().enumerate() {
                    lookout.after(3 * BLOCK)?;
                    let rows = plane.chunks_mut(component.row * 8);
                    transform::inverse(block, &steps, rows.filter_map(|row| row.as_chunks_mut().0.get_mut(k)));
                }
            }
            component.coefficients = Vec::new();
            planes.push(plane);
        }
        self.paint(&planes, pixels, lookout)
    }
}

impl Jpeg<'_> {
    /// Writes the pixels, line by line from lines of each component that are as wide as the picture.
    fn paint(&self, planes: &[Vec<u8>], pixels: &mut [Pixel], lookout: &mut Lookout<'_>) -> Result<()> {
        let (plain, count) = (self.plain(), planes.len());
        // A factor of 2 may give a sample more.
        let len = self.width + 2 * self.across;
        let mut lines = vec![Vec::new(); MOST];
        for line in lines.iter_mut().take(count) {
            *line = zeros::<u8>(len)?;
        }
        let mut sums = zeros::<u16>(len)?;
        for (y, pixels) in pixels.chunks_mut(self.width).enumerate() {
            lookout.after((2 * count + size_of::<Pixel>()) * self.width)?;
            for ((component, plane), line) in self.components.iter().zip(planes).zip(&mut lines) {
                upsample::line(self, component, plane, y, &mut sums, line);
            }
            let [a, b, c, d] = lines.as_slice() else { return Err(Fault::Undecodable) };
            match count {
                1 => Colors::Gray.paint(a, 1, pixels.iter_mut()),
                3 => {
                    for (pixel, ((a, b), c)) in pixels.iter_mut().zip(a.iter().zip(b).zip(c)) {
                        *pixel = if plain { [*a, *b, *c] } else { transform::rgb(*a, *b, *c) };
                    }
                }
                // Programs that write such files store the complement of ink.
                _ => {
                    for (pixel, (((a, b), c), black)) in pixels.iter_mut().zip(a.iter().zip(b).zip(c).zip(d)) {
                        let ink = if plain { [*a, *b, *c].map(|ink| !ink) } else { transform::rgb(*a, *b, *c) };
                        *pixel = ink.map(|ink| without_ink(ink, !black));
                    }
                }
            }
        }
        Ok(())
    }
}
