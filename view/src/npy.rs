//! NumPy's `.npy` files: bool, integers, float16 to double, complex, and strings as `<U`.

use onnxref::{DType, Tensor};

/// What files start with.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// NumPy's own limit on a header.
const MAX_HEADER: usize = 10_000;

/// NumPy aligns the elements in a file to this many bytes.
const ALIGN: usize = 64;

/// The tensor in a file.
///
/// # Errors
/// If it isn't a `.npy` file, or no tensor can have its elements.
pub fn read(bytes: &[u8]) -> Result<Tensor, String> {
    let (header, data) = split(bytes)?;
    let Header { descr, fortran, shape } = Header::read(header)?;
    let Kind { dtype, size, word, big } = Kind::of(descr).ok_or_else(|| unknown(descr))?;
    let shape: Option<Vec<usize>> = shape.into_iter().map(|dim| usize::try_from(dim).ok()).collect();
    let shape = shape.ok_or(TOO_LARGE)?;
    let need = shape.iter().try_fold(size, |n, &dim| n.checked_mul(dim)).ok_or(TOO_LARGE)?;
    let before = bytes.len() - data.len();
    match data.len().checked_sub(need) {
        Some(0) => {}
        Some(more) => {
            return Err(format!("it has {more} bytes after its elements: '{descr}' of shape {shape:?} takes {need}"));
        }
        None => {
            let whole = before.saturating_add(need);
            let (got, what) = (bytes.len(), format!("'{descr}' of shape {shape:?}"));
            return Err(format!("it is cut short: it ends after {got} of {whole} bytes ({what})"));
        }
    }
    let mut elements = if fortran { row_major(data, &shape, size) } else { data.to_vec() };
    if big {
        elements.chunks_exact_mut(word).for_each(<[u8]>::reverse);
    }
    if dtype == DType::String {
        let strings = elements.chunks_exact(size).map(string).collect::<Result<Vec<_>, _>>()?;
        return Tensor::from_strings(&shape, strings).map_err(|e| e.to_string());
    }
    Tensor::new(dtype, &shape, elements).map_err(|e| e.to_string())
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

/// Reorders elements from column-major to row-major order.
fn row_major(data: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    for k in 0..data.len() / size {
        let (mut rest, mut from, mut stride) = (k, 0, data.len() / size);
        for dim in shape.iter().rev() {
            stride /= dim;
            from += rest % dim * stride;
            rest /= dim;
        }
        out.extend_from_slice(data.get(from * size..(from + 1) * size).unwrap_or(&[]));
    }
    out
}

/// Four little-endian bytes for each character, padded with zeros.
fn string(bytes: &[u8]) -> Result<String, String> {
    let code = |word: &[u8]| word.iter().rev().fold(0, |code, byte| code << 8 | u32::from(*byte));
    let codes: Vec<u32> = bytes.chunks_exact(4).map(code).collect();
    let len = codes.iter().rposition(|code| *code != 0).map_or(0, |last| last + 1);
    let character = |code: &u32| char::from_u32(*code).ok_or_else(|| format!("{code:#x} is not a Unicode character"));
    codes.iter().take(len).map(character).collect()
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
