//! NumPy's `.npy` files: bool, integers, float16 to double, complex, and strings as `<U`.

use onnxref::bytes::Bytes;
use onnxref::{DType, Tensor};
use std::cmp::Ordering;

/// What files start with.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// NumPy's own limit on a header.
const MAX_HEADER: usize = 10_000;

/// Maximum number of bytes before the elements: the magic, the version, the length of the header, and the header.
pub const MAX_START: usize = MAGIC.len() + 6 + MAX_HEADER;

/// NumPy aligns the elements in a file to this many bytes.
const ALIGN: usize = 64;

/// The tensor in a file. Its elements are not copied where they are in the order of tensors.
///
/// # Errors
/// If it isn't a `.npy` file, no tensor can have its elements, or there is no memory for a copy.
pub fn read(file: impl Into<Bytes>) -> Result<Tensor, String> {
    let file = file.into();
    Array::open(&file)?.tensor(&file)
}

/// What the header of a file says.
pub struct Array {
    descr: String,
    kind: Kind,
    fortran: bool,
    shape: Vec<usize>,
    /// Bytes before the elements.
    start: usize,
    /// Bytes of the elements.
    need: usize,
}

impl Array {
    /// Reads the header; the first [`MAX_START`] bytes of a file are enough.
    ///
    /// # Errors
    /// If it isn't a `.npy` file, or no tensor can have its type or shape.
    pub fn open(file: &[u8]) -> Result<Array, String> {
        let (header, data) = split(file)?;
        let Header { descr, fortran, shape } = Header::read(header)?;
        let kind = Kind::of(descr).ok_or_else(|| unknown(descr))?;
        let shape: Option<Vec<usize>> = shape.into_iter().map(|dim| usize::try_from(dim).ok()).collect();
        let shape = shape.ok_or(TOO_LARGE)?;
        // As other tensors, one without elements takes nothing, whatever its other dimensions.
        let need = match shape.contains(&0) {
            true => 0,
            false => shape.iter().try_fold(kind.size, |n, &dim| n.checked_mul(dim)).ok_or(TOO_LARGE)?,
        };
        Ok(Array { descr: descr.to_string(), kind, fortran, shape, start: file.len() - data.len(), need })
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        (self.start as u64).saturating_add(self.need as u64)
    }

    /// Upper bound on the bytes that the tensor takes.
    pub fn tensor_bytes(&self) -> u64 {
        let need = self.need as u64;
        let strings = if self.kind.dtype == DType::String { need / self.kind.size as u64 } else { 0 };
        need.saturating_add(strings.saturating_mul(DType::String.size() as u64))
    }

    /// Fails unless a file of this many bytes ends with its last element.
    ///
    /// # Errors
    /// If it is too short or too long.
    pub fn fits(&self, got: u64) -> Result<(), String> {
        let (whole, need) = (self.file_bytes(), self.need);
        let what = format!("'{}' of shape {}", self.descr, shown(&self.shape));
        match got.cmp(&whole) {
            Ordering::Equal => Ok(()),
            Ordering::Greater => Err(format!("it has {} bytes after its elements: {what} takes {need}", got - whole)),
            Ordering::Less => Err(format!("it is cut short: it ends after {got} of {whole} bytes ({what})")),
        }
    }

    /// The tensor in the whole file.
    ///
    /// # Errors
    /// If the file has another size, an element is not valid, or there is no memory for a copy.
    pub fn tensor(&self, file: &Bytes) -> Result<Tensor, String> {
        self.fits(file.len() as u64)?;
        let Kind { dtype, size, word, big } = self.kind;
        let data = file.slice(self.start..);
        // Dimensions of 1 order nothing.
        let columns = self.fortran && !data.is_empty() && self.shape.iter().filter(|dim| **dim > 1).count() > 1;
        let mut own = match (columns, big) {
            (true, _) => Some(row_major(&data, &self.shape, size)?),
            (false, true) => Some(copied(&data)?),
            (false, false) => None,
        };
        if let Some(elements) = own.as_mut().filter(|_| big) {
            elements.chunks_exact_mut(word).for_each(<[u8]>::reverse);
        }
        let elements = own.map_or(data, Bytes::from);
        if dtype == DType::String {
            return strings(&self.shape, &elements, size);
        }
        Tensor::new(dtype, &self.shape, elements).map_err(|e| e.to_string())
    }
}

/// The bytes before the elements, whose type string is `kind`.
///
/// # Errors
/// If NumPy has no arrays of such a rank.
pub fn start(kind: &str, shape: &[usize]) -> Result<Vec<u8>, String> {
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}{comma}), }}", dims.join(", "));
    let before = MAGIC.len() + 4;
    let len = (before + header.len() + 1).next_multiple_of(ALIGN) - before;
    let short =
        u16::try_from(len).map_err(|_| format!("NumPy has no arrays of rank {}: write a .pb file", shape.len()))?;
    let padding = " ".repeat(len - header.len() - 1);
    Ok([MAGIC, &[1, 0], &short.to_le_bytes(), header.as_bytes(), padding.as_bytes(), b"\n"].concat())
}

const STRUCTURED: &str = "it holds a structured array, but a tensor has one element type";
const TOO_LARGE: &str = "its shape is too large";

/// Maximum number of dimensions of a shape in an error.
const MAX_DIMS: usize = 16;

/// A shape in an error, cut as the library cuts it.
fn shown(shape: &[usize]) -> String {
    match shape.get(..MAX_DIMS) {
        Some(first) if first.len() < shape.len() => {
            let dims: Vec<String> = first.iter().map(usize::to_string).collect();
            format!("[{}, … {} dimensions]", dims.join(", "), shape.len())
        }
        _ => format!("{shape:?}"),
    }
}

/// The header of a file, and its elements.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    const CUT: &str = "it is cut short: it ends in its header";
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is not a .npy file")?;
    let (version, rest) = rest.split_first_chunk().ok_or(CUT)?;
    let (len, rest) = match version {
        [1, 0] => rest.split_first_chunk().map(|(len, rest)| (u16::from_le_bytes(*len).into(), rest)).ok_or(CUT)?,
        [2 | 3, 0] => rest.split_first_chunk().map(|(len, rest)| (u32::from_le_bytes(*len), rest)).ok_or(CUT)?,
        [major, minor] => return Err(format!("unsupported version: ({major}, {minor})")),
    };
    let len = len as usize;
    if len > MAX_HEADER {
        return Err(format!("its header has {len} bytes: allowed {MAX_HEADER}"));
    }
    Ok(rest.split_at_checked(len).ok_or(CUT)?)
}

/// The content of a header.
struct Header<'a> {
    descr: &'a str,
    fortran: bool,
    shape: Vec<u64>,
}

impl<'a> Header<'a> {
    fn read(text: &'a [u8]) -> Result<Header<'a>, String> {
        let mut literal = Literal { text, rest: text };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        literal.expect("{")?;
        while !literal.skip("}") {
            let key = literal.string()?;
            literal.expect(":")?;
            let again = match key {
                "descr" => descr.replace(literal.descr()?).is_some(),
                "fortran_order" => fortran.replace(literal.truth()?).is_some(),
                "shape" => shape.replace(literal.shape()?).is_some(),
                _ => return Err(format!("its header has the key '{key:.40}', which NumPy doesn't write")),
            };
            if again {
                return Err(format!("its header has the key '{key}' twice"));
            }
            if !literal.skip(",") {
                literal.expect("}")?;
                break;
            }
        }
        literal.end()?;
        let missing = |key| format!("dict is missing key '{key}'");
        Ok(Header {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// Parses a Python literal from left to right, as far as headers need it: no escapes, only decimal numbers.
struct Literal<'a> {
    text: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Literal<'a> {
    fn stuck(&self) -> String {
        format!("its header can't be read from byte {} on", self.text.len() - self.rest.len())
    }

    /// Skips whitespace, and a token if it comes next.
    fn skip(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_ascii_start();
        let rest = self.rest.strip_prefix(token.as_bytes());
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.skip(token) { Ok(()) } else { Err(self.stuck()) }
    }

    fn end(&mut self) -> Result<(), String> {
        self.skip("");
        if self.rest.is_empty() { Ok(()) } else { Err(self.stuck()) }
    }

    /// The bytes up to the first one that doesn't match; at least one.
    fn word(&mut self, belongs: impl Fn(u8) -> bool) -> Result<&'a str, String> {
        let len = self.rest.iter().position(|byte| !belongs(*byte)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(len).filter(|_| len > 0).ok_or_else(|| self.stuck())?;
        let word = std::str::from_utf8(word).map_err(|_| self.stuck())?;
        self.rest = rest;
        Ok(word)
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let double = self.skip("\"");
        let quote = if double { "\"" } else { "'" };
        if !double {
            self.expect(quote)?;
        }
        let word = self.word(|byte| (byte.is_ascii_graphic() || byte == b' ') && !b"'\"\\".contains(&byte))?;
        self.expect(quote)?;
        Ok(word)
    }

    fn descr(&mut self) -> Result<&'a str, String> {
        let is_list = self.skip("[") || self.skip("(");
        if is_list { Err(STRUCTURED.to_string()) } else { self.string() }
    }

    fn truth(&mut self) -> Result<bool, String> {
        if self.skip("True") {
            return Ok(true);
        }
        self.expect("False").map(|()| false)
    }

    fn shape(&mut self) -> Result<Vec<u64>, String> {
        let mut dims = Vec::new();
        self.expect("(")?;
        while !self.skip(")") {
            dims.push(self.dim()?);
            // One number in brackets without a comma is a number.
            if !self.skip(",") {
                self.expect(if dims.len() > 1 { ")" } else { "," })?;
                break;
            }
        }
        Ok(dims)
    }

    fn dim(&mut self) -> Result<u64, String> {
        if self.skip("-") {
            return Err("dimension cannot be negative".to_string());
        }
        let digits = self.word(|byte| byte.is_ascii_digit())?;
        digits.parse().map_err(|_| TOO_LARGE.to_string())
    }
}

/// The meaning of a type string such as `<f4`.
#[derive(Clone, Copy)]
struct Kind {
    dtype: DType,
    /// Bytes of an element.
    size: usize,
    /// Bytes of a unit with a byte order.
    word: usize,
    big: bool,
}

impl Kind {
    fn of(descr: &str) -> Option<Kind> {
        let plain = descr.get(1..)?;
        let (dtype, size, word) = if let Some(digits) = plain.strip_prefix('U') {
            let len = digits.parse::<usize>().ok().filter(|len| *len > 0 && len.to_string() == digits)?;
            (DType::String, len.checked_mul(4)?, 4)
        } else {
            let (dtype, _) = TYPES.iter().find(|(_, text)| text.get(1..) == Some(plain))?;
            let parts = if matches!(dtype, DType::Complex64 | DType::Complex128) { 2 } else { 1 };
            (*dtype, dtype.size(), dtype.size() / parts)
        };
        let big = match descr.as_bytes().first()? {
            b'<' => false,
            b'>' => true,
            b'|' if size == 1 => false,
            _ => return None,
        };
        Some(Kind { dtype, size, word, big })
    }
}

/// Reorders elements from column-major to row-major order, in a step or two for each, whatever the rank.
fn row_major(data: &[u8], shape: &[usize], size: usize) -> Result<Vec<u8>, String> {
    let mut axes = Vec::new();
    let mut stride = size;
    for &dim in shape.iter().filter(|dim| **dim > 1) {
        axes.push(Axis { dim, stride, at: 0 });
        stride *= dim;
    }
    let (mut out, mut from) = (room(data.len())?, 0);
    for _ in 0..data.len() / size {
        out.extend_from_slice(data.get(from..from + size).unwrap_or(&[]));
        for axis in axes.iter_mut().rev() {
            from += axis.stride;
            axis.at += 1;
            if axis.at < axis.dim {
                break;
            }
            from -= axis.dim * axis.stride;
            axis.at = 0;
        }
    }
    Ok(out)
}

/// A dimension of two or more, the bytes between its neighbours, and the position in it.
struct Axis {
    dim: usize,
    stride: usize,
    at: usize,
}

fn copied(data: &[u8]) -> Result<Vec<u8>, String> {
    let mut copy = room(data.len())?;
    copy.extend_from_slice(data);
    Ok(copy)
}

/// Memory for a copy of elements.
fn room(bytes: usize) -> Result<Vec<u8>, String> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes)
        .map_err(|_| format!("its elements: the system has no {bytes} bytes of memory left"))?;
    Ok(room)
}

/// The tensor of strings, each of `size` bytes.
fn strings(shape: &[usize], elements: &[u8], size: usize) -> Result<Tensor, String> {
    let mut need = 0usize;
    for bytes in elements.chunks_exact(size) {
        let mut text = 0usize;
        characters(bytes).try_for_each(|c| c.map(|c| text += c.len_utf8()))?;
        // Its view; its text, and while that grows, the one before.
        need = need.saturating_add(DType::String.size()).saturating_add(text.saturating_mul(4));
    }
    // A trial allocation, freed at once: making strings can't report failure.
    room(need)?;
    let string = |bytes: &[u8]| characters(bytes).map_while(Result::ok).collect::<String>();
    Tensor::from_strings(shape, elements.chunks_exact(size).map(string)).map_err(|e| e.to_string())
}

/// The characters of a string: four little-endian bytes for each, padded with zeros.
fn characters(bytes: &[u8]) -> impl Iterator<Item = Result<char, String>> {
    let code = |word: &[u8]| word.iter().rev().fold(0, |code, byte| code << 8 | u32::from(*byte));
    let len = bytes.chunks_exact(4).rposition(|word| word.iter().any(|byte| *byte != 0)).map_or(0, |last| last + 1);
    let character = |code: u32| char::from_u32(code).ok_or_else(|| format!("{code:#x} is not a Unicode character"));
    bytes.chunks_exact(4).take(len).map(move |word| character(code(word)))
}

fn unknown(descr: &str) -> String {
    let advice = match descr.get(1..2) {
        Some("O") => "save an array of numbers or str",
        Some("S" | "a") => "use .astype(str) in NumPy",
        _ => ALLOWED,
    };
    format!("its elements are '{descr:.40}', which is not a tensor element type: {advice}")
}

/// The element types of files, as NumPy names them.
const ALLOWED: &str = "allowed bool, int8 to int64, uint8 to uint64, float16 to float64, complex64, complex128, str";

/// The element types of files, with their type strings.
pub const TYPES: [(DType, &str); 14] = [
    (DType::Bool, "|b1"),
    (DType::Int8, "|i1"),
    (DType::Int16, "<i2"),
    (DType::Int32, "<i4"),
    (DType::Int64, "<i8"),
    (DType::Uint8, "|u1"),
    (DType::Uint16, "<u2"),
    (DType::Uint32, "<u4"),
    (DType::Uint64, "<u8"),
    (DType::Float16, "<f2"),
    (DType::Float, "<f4"),
    (DType::Double, "<f8"),
    (DType::Complex64, "<c8"),
    (DType::Complex128, "<c16"),
];

/// The type string of an element type; `None` if NumPy has none.
pub fn type_string(dtype: DType) -> Option<&'static str> {
    TYPES.iter().find(|(d, _)| *d == dtype).map(|(_, text)| *text)
}
