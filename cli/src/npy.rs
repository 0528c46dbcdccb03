//! NumPy's `.npy` files: bool, integers, float16 to double, complex, and strings as `<U`.

use npyz::{Endianness, NpyHeader, Order, TypeChar, TypeStr, WriterBuilder};
use onnxref::{DType, Tensor};

/// NumPy's own limit on a header.
const MAX_HEADER: usize = 10_000;

/// The brackets in the header of a plain array: the dict's, the shape's, a unit of time's.
const MAX_BRACKETS: usize = 3;

/// Strings all take the space of the longest, which can be far more than they have.
const MAX_STRINGS: usize = 1 << 30;

/// The tensor in a file.
pub(crate) fn read(bytes: &[u8]) -> Result<Tensor, String> {
    let mut data = bytes;
    check_header(bytes)?;
    let header = NpyHeader::from_reader(&mut data).map_err(|e| e.to_string())?;
    let npyz::DType::Plain(kind) = header.dtype() else { return Err(STRUCTURED.to_string()) };
    let size = kind.num_bytes().filter(|&size| size > 0).ok_or_else(|| unknown(&kind))?;
    let shape: Option<Vec<usize>> = header.shape().iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let shape = shape.ok_or("its shape is too large")?;
    let need = shape.iter().try_fold(size, |n, &dim| n.checked_mul(dim)).ok_or("its shape is too large")?;
    if data.len() != need {
        let got = data.len();
        return Err(format!("its elements take {got} bytes: '{kind}' of shape {shape:?} takes {need}"));
    }
    let mut elements = if header.order() == Order::Fortran { row_major(data, &shape, size) } else { data.to_vec() };
    if kind.endianness() == Endianness::Big {
        let word = match kind.type_char() {
            TypeChar::Complex => size / 2,
            TypeChar::UnicodeStr => 4,
            _ => size,
        };
        elements.chunks_exact_mut(word).for_each(<[u8]>::reverse);
    }
    if kind.type_char() == TypeChar::UnicodeStr {
        let strings = elements.chunks_exact(size).map(string).collect::<Result<Vec<_>, _>>()?;
        return Tensor::from_strings(&shape, strings).map_err(|e| e.to_string());
    }
    let dtype = dtype(&kind).ok_or_else(|| unknown(&kind))?;
    Tensor::new(dtype, &shape, elements).map_err(|e| e.to_string())
}

/// A file with a tensor.
pub(crate) fn write(tensor: &Tensor) -> Result<Vec<u8>, String> {
    let (kind, elements) = match tensor.strings() {
        Ok(strings) => {
            let strings: Vec<&str> = strings.collect();
            // NumPy has no strings of no characters.
            let longest = strings.iter().map(|s| s.chars().count()).max().unwrap_or(0).max(1);
            (format!("<U{longest}"), unicode(&strings, longest)?)
        }
        Err(_) => {
            let kind = type_string(tensor.dtype()).ok_or_else(|| {
                format!("NumPy has no {}, so a .npy file can't hold it: write a .pb file", tensor.dtype())
            })?;
            (kind.to_string(), tensor.bytes().to_vec())
        }
    };
    let kind: TypeStr = kind.parse().map_err(|e: npyz::ParseTypeStrError| e.to_string())?;
    let shape: Vec<u64> = tensor.shape().iter().map(|&dim| dim as u64).collect();
    let mut file = npyz::WriteOptions::new_header_only()
        .dtype(npyz::DType::Plain(kind))
        .shape(&shape)
        .writer(Vec::new())
        .write_header_only()
        .map_err(|e| e.to_string())?;
    file.extend(elements);
    Ok(file)
}

const STRUCTURED: &str = "it holds a structured array, and a tensor has one element type";

/// Refuses headers that would take npyz unbounded time, stack or numbers: it reads brackets by recursion with
/// backtracking, and multiplies the shape without a check.
fn check_header(bytes: &[u8]) -> Result<(), String> {
    const CUT: &str = "it is no .npy file, or is cut short";
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err("it is no .npy file".to_string());
    }
    let byte = |at: usize| bytes.get(at).copied().map(usize::from).ok_or(CUT);
    let short = byte(8)? | byte(9)? << 8;
    let (start, len) = if byte(6)? == 1 { (10, short) } else { (12, short | byte(10)? << 16 | byte(11)? << 24) };
    if len > MAX_HEADER {
        return Err(format!("its header has {len} bytes: allowed {MAX_HEADER}"));
    }
    let header = bytes.get(start..start + len).ok_or(CUT)?;
    let header = std::str::from_utf8(header).map_err(|e| format!("its header is not UTF-8: {e}"))?;
    if header.matches(['(', '[', '{']).count() > MAX_BRACKETS {
        return Err(STRUCTURED.to_string());
    }
    // A number may follow letters, as in '<f4'.
    let words = header.split(|c: char| !c.is_alphanumeric() && c != '_');
    let numbers = words.map(|word| word.trim_start_matches(|c: char| c.is_alphabetic() || c == '_'));
    let product = numbers
        .filter(|number| !number.is_empty())
        .try_fold(1i64, |product, number| product.checked_mul(number.parse::<i64>().ok()?.max(1)));
    product.map(|_| ()).ok_or_else(|| "its shape is too large, or its header is no header".to_string())
}

/// Elements whose first index runs fastest, in the order where the last one does.
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

/// Four little-endian bytes a character, filled up with zeros.
fn string(bytes: &[u8]) -> Result<String, String> {
    let code = |word: &[u8]| word.iter().rev().fold(0, |code, byte| code << 8 | u32::from(*byte));
    let codes: Vec<u32> = bytes.chunks_exact(4).map(code).collect();
    let len = codes.iter().rposition(|code| *code != 0).map_or(0, |last| last + 1);
    let character = |code: &u32| char::from_u32(*code).ok_or_else(|| format!("{code:#x} is no Unicode character"));
    codes.iter().take(len).map(character).collect()
}

fn unicode(strings: &[&str], longest: usize) -> Result<Vec<u8>, String> {
    let bytes = strings.len().saturating_mul(longest).saturating_mul(4);
    if bytes > MAX_STRINGS {
        return Err(format!(
            "as NumPy's strings, each with room for the longest, it takes {bytes} bytes: write a .pb file"
        ));
    }
    let mut out = vec![0; bytes];
    for (text, to) in strings.iter().zip(out.chunks_exact_mut(longest * 4)) {
        if text.ends_with('\0') {
            return Err(format!("NumPy drops the NUL at the end of {text:?}: write a .pb file"));
        }
        for (c, to) in text.chars().zip(to.chunks_exact_mut(4)) {
            to.copy_from_slice(&u32::from(c).to_le_bytes());
        }
    }
    Ok(out)
}

fn unknown(kind: &TypeStr) -> String {
    let advice = match kind.type_char() {
        TypeChar::Object => ": save an array of numbers or str",
        TypeChar::ByteStr => ": use .astype(str) in NumPy",
        _ => "",
    };
    format!("its elements are '{kind}', which is no element type of a tensor{advice}")
}

const TYPES: [(DType, &str); 14] = [
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

fn type_string(dtype: DType) -> Option<&'static str> {
    TYPES.iter().find(|(d, _)| *d == dtype).map(|(_, text)| *text)
}

/// The element type of a type string, whichever its byte order.
fn dtype(kind: &TypeStr) -> Option<DType> {
    let plain = format!("{}{}", kind.type_char().to_str(), kind.size_field());
    let found = TYPES.iter().find(|(_, text)| text.get(1..) == Some(&plain));
    found.map(|(dtype, _)| *dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of a version, with whatever header.
    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let len = (header.len() as u32).to_le_bytes();
        let len = if version == 1 { &len[..2] } else { &len };
        [b"\x93NUMPY", &[version, 0][..], len, header.as_bytes(), data].concat()
    }

    fn array(kind: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        file(1, &format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n"), data)
    }

    fn shown(file: &[u8]) -> String {
        read(file).map_or_else(|why| why, |tensor| tensor.to_string())
    }

    #[test]
    fn every_type_goes_out_and_in() {
        for (dtype, _) in TYPES {
            let bytes =
                |count: usize| (0..count * dtype.size()).map(|k| if dtype == DType::Bool { k % 2 } else { k } as u8);
            for shape in [&[2, 3][..], &[], &[0, 4], &[1, 1, 1, 2, 1, 1, 2]] {
                let tensor = Tensor::new(dtype, shape, bytes(shape.iter().product()).collect::<Vec<_>>()).unwrap();
                assert_eq!(read(&write(&tensor).unwrap()).unwrap(), tensor);
            }
        }
        for strings in [["", "é\0ß🦀"], ["", ""]] {
            let tensor = Tensor::from_strings(&[2, 1], strings).unwrap();
            assert_eq!(read(&write(&tensor).unwrap()).unwrap(), tensor);
        }
        let none = Tensor::from_strings(&[0], [""; 0]).unwrap();
        assert_eq!(read(&write(&none).unwrap()).unwrap(), none);
    }

    #[test]
    fn what_cannot_go_out() {
        for dtype in DType::all().filter(|d| *d != DType::String && type_string(*d).is_none()) {
            let why = write(&Tensor::new(dtype, &[0], vec![]).unwrap()).unwrap_err();
            assert_eq!(why, format!("NumPy has no {dtype}, so a .npy file can't hold it: write a .pb file"));
        }
        let error = |strings: &[&str]| write(&Tensor::from_strings(&[strings.len()], strings).unwrap()).unwrap_err();
        assert_eq!(error(&["a\0"]), r#"NumPy drops the NUL at the end of "a\0": write a .pb file"#);
        let mut strings = vec![""; 100_000];
        let long = "x".repeat(3000);
        strings.push(&long);
        assert!(error(&strings).ends_with("it takes 1200012000 bytes: write a .pb file"));
    }

    #[test]
    fn byte_orders_and_versions() {
        assert_eq!(shown(&array(">i2", "False", "(2,)", &[1, 2, 3, 4])), "int16[2] [258, 772]");
        assert_eq!(shown(&array(">c8", "False", "()", &[0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0])), "complex64[] 1-2i");
        assert_eq!(shown(&array(">U2", "False", "(1,)", &[0, 0, 0, 65, 0, 0, 0, 0])), r#"string[1] ["A"]"#);
        let columns = [0, 3, 1, 4, 2, 5];
        assert_eq!(shown(&array("|u1", "True", "(2, 3)", &columns)), "uint8[2, 3] [[0, 1, 2], [3, 4, 5]]");
        for version in [1, 2, 3] {
            let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }";
            assert_eq!(shown(&file(version, header, &[7])), "uint8[1] [7]");
        }
    }

    #[test]
    fn bad_files() {
        let good = array("<f4", "False", "(2,)", &[0; 8]);
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_err());
        }
        for (file, why) in [
            (good[..11].to_vec(), "it is no .npy file, or is cut short"),
            (b"PK\x03\x04".to_vec(), "it is no .npy file"),
            (file(9, "{}", &[]), "unsupported version: (9, 0)"),
            (file(1, "{'descr': '<f4'}", &[]), "dict is missing key 'fortran_order'"),
            (array("<f4", "False", "(3,)", &[0; 8]), "its elements take 8 bytes: '<f4' of shape [3] takes 12"),
            (array("|b1", "False", "(2,)", &[1, 2]), "element [1] is the byte 2, which is no bool"),
            (array("<U1", "False", "(1,)", &[0, 0xd8, 0, 0]), "0xd800 is no Unicode character"),
            (array("|u1", "False", "(-1,)", &[]), "dimension cannot be negative"),
            (
                array("|O", "False", "(1,)", &[0; 8]),
                "its elements are '|O', which is no element type of a tensor: save an array of numbers or str",
            ),
            (
                array("|S3", "False", "(1,)", b"abc"),
                "its elements are '|S3', which is no element type of a tensor: use .astype(str) in NumPy",
            ),
            (
                array("<M8[ns]", "False", "(1,)", &[0; 8]),
                "its elements are '<M8[ns]', which is no element type of a tensor",
            ),
            (array("<f16", "False", "(1,)", &[0; 16]), "its elements are '<f16', which is no element type of a tensor"),
            (
                array("<U0", "False", "(99999999999,)", &[]),
                "its elements are '<U0', which is no element type of a tensor",
            ),
            (
                array("<f8", "False", "(9223372036854775807, 2)", &[]),
                "its shape is too large, or its header is no header",
            ),
            (file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", &[0; 4]), STRUCTURED),
            (file(2, &" ".repeat(10_001), &[]), "its header has 10001 bytes: allowed 10000"),
            (file(1, &"(".repeat(9000), &[]), STRUCTURED),
        ] {
            assert_eq!(shown(&file), why);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        const PIECES: &[u8] = b"\0\x01\xff()[]{}'0129<>|,: fUcObLx_-+.e";
        let good = array("<f4", "False", "(2, 3)", &[0; 24]);
        let mut state = 1u32;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as usize % below
        };
        for _ in 0..3000 {
            let mut file = good.clone();
            for _ in 0..1 + random(4) {
                let at = random(file.len());
                file[at] = PIECES[random(PIECES.len())];
            }
            let _ = read(&file);
        }
    }
}
