//! NumPy's `.npy` files: bool, integers, float16 to double, complex, and strings as `<U`.

use crate::bounded::{self, Unwritten};
use onnxref::{Cancel, Tensor, quote};
pub(crate) use onnxref_view::npy::{Array, MAGIC, MAX_START, read};
use onnxref_view::npy::{start, type_string};
use std::io::{self, Write};
use std::iter;

/// Maximum size of strings: each takes the space of the longest, which can be far more than its own length.
const MAX_STRINGS: usize = 1 << 30;

/// Bytes of characters that are written at once.
const SOME: usize = 1 << 14;

/// Number of strings that are measured between two looks at the time.
const BETWEEN_LOOKS: usize = 1 << 14;

/// A tensor on its way to a file.
pub(crate) struct Outgoing<'a> {
    /// The bytes before the elements.
    start: Vec<u8>,
    tensor: &'a Tensor,
    /// Characters of the longest string.
    longest: usize,
}

impl<'a> Outgoing<'a> {
    /// Fails if NumPy can't hold the tensor, or the time is up.
    pub(crate) fn new(tensor: &'a Tensor, cancel: &Cancel) -> Result<Outgoing<'a>, Unwritten> {
        let (kind, longest) = match tensor.strings() {
            Ok(strings) => {
                let longest = longest(strings, tensor.len(), cancel)?;
                (format!("<U{longest}"), longest)
            }
            Err(_) => {
                let kind = type_string(tensor.dtype()).ok_or_else(|| {
                    let dtype = tensor.dtype();
                    Unwritten::Unfit(format!("NumPy has no {dtype}, so a .npy file can't hold it: write a .pb file"))
                })?;
                (kind.to_string(), 0)
            }
        };
        let start = start(&kind, tensor.shape()).map_err(Unwritten::Unfit)?;
        Ok(Outgoing { start, tensor, longest })
    }

    /// Writes the file.
    pub(crate) fn write(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(&self.start)?;
        let Ok(strings) = self.tensor.strings() else { return to.write_all(self.tensor.bytes()) };
        let mut some = Vec::with_capacity(SOME);
        for string in strings {
            for c in string.chars().map(u32::from).chain(iter::repeat(0)).take(self.longest) {
                some.extend_from_slice(&c.to_le_bytes());
                if some.len() == SOME {
                    to.write_all(&some)?;
                    some.clear();
                }
            }
        }
        to.write_all(&some)
    }
}

/// Characters of the longest of `count` strings; at least 1, as NumPy has no strings of no characters.
fn longest<'a>(strings: impl Iterator<Item = &'a str>, count: usize, cancel: &Cancel) -> Result<usize, Unwritten> {
    let mut longest = 1;
    let allowed = MAX_STRINGS / 4 / count.max(1);
    for (k, string) in strings.enumerate() {
        if k.is_multiple_of(BETWEEN_LOOKS) {
            bounded::look(cancel)?;
        }
        // A character has 4 bytes at most, so a string that is too long need not be read to its end.
        longest = longest.max(if string.len() / 4 > allowed { usize::MAX } else { string.chars().count() });
        if longest > allowed {
            return Err(Unwritten::Unfit(format!(
                "as NumPy's strings, each with room for the longest, it takes more than {MAX_STRINGS} bytes: write a .pb or .json file"
            )));
        }
        if string.ends_with('\0') {
            let text = quote(string);
            return Err(Unwritten::Unfit(format!("NumPy drops the NUL at the end of {text}: write a .pb file")));
        }
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::DType;
    use onnxref_view::npy::TYPES;

    const ALIGN: usize = 64;
    const TOO_LARGE: &str = "its shape is too large";
    const STRUCTURED: &str = "it holds a structured array, but a tensor has one element type";
    const ALLOWED: &str =
        "allowed bool, int8 to int64, uint8 to uint64, float16 to float64, complex64, complex128, str";

    fn read(file: &[u8]) -> Result<Tensor, String> {
        super::read(file.to_vec())
    }

    fn write(tensor: &Tensor) -> Result<Vec<u8>, String> {
        let mut file = Vec::new();
        match Outgoing::new(tensor, &Cancel::new()) {
            Ok(tensor) => tensor.write(&mut file).unwrap(),
            Err(Unwritten::Unfit(why)) => return Err(why),
            Err(Unwritten::Failed(error)) => panic!("{error}"),
        }
        Ok(file)
    }

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
        assert!(error(&strings).ends_with("it takes more than 1073741824 bytes: write a .pb or .json file"));
    }

    #[test]
    fn byte_orders_and_versions() {
        assert_eq!(shown(&array(">i2", "False", "(2,)", &[1, 2, 3, 4])), "int16[2] [258, 772]");
        assert_eq!(shown(&array(">c8", "False", "()", &[0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0])), "complex64[] 1-2i");
        assert_eq!(shown(&array(">U2", "False", "(1,)", &[0, 0, 0, 65, 0, 0, 0, 0])), r#"string[1] ["A"]"#);
        let columns = [0, 3, 1, 4, 2, 5];
        assert_eq!(shown(&array("|u1", "True", "(2, 3)", &columns)), "uint8[2, 3] [[0, 1, 2], [3, 4, 5]]");
        let order: Vec<u8> = (0..24).map(|at| at % 2 * 12 + at / 2 % 3 * 4 + at / 6).collect();
        let rows = Tensor::new(DType::Uint8, &[2, 1, 3, 4], (0..24).collect::<Vec<u8>>()).unwrap();
        assert_eq!(read(&array("|u1", "True", "(2, 1, 3, 4)", &order)).unwrap(), rows);
        let big: Vec<u8> = order.iter().flat_map(|byte| [0, *byte]).collect();
        let words: Vec<i16> = (0..24).collect();
        let rows = Tensor::from_elements(&[2, 1, 3, 4], words).unwrap();
        assert_eq!(read(&array(">i2", "True", "(2, 1, 3, 4)", &big)).unwrap(), rows);
        let letters = b"a\0\0\0b\0\0\0c\0\0\0d\0\0\0";
        assert_eq!(shown(&array("<U1", "True", "(2, 2)", letters)), r#"string[2, 2] [["a", "c"], ["b", "d"]]"#);
        for version in [1, 2, 3] {
            let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }";
            assert_eq!(shown(&file(version, header, &[7])), "uint8[1] [7]");
        }
    }

    /// A file as NumPy 2.4.6 writes it: the elements begin at byte 128.
    fn numpy(start: &[u8], header: &str, data: &[u8]) -> Vec<u8> {
        let padding = " ".repeat(127 - start.len() - header.len());
        [start, header.as_bytes(), padding.as_bytes(), b"\n", data].concat()
    }

    #[test]
    fn files_of_numpy() {
        let first = b"\x93NUMPY\x01\0v\0";
        let (second, third) = (b"\x93NUMPY\x02\0t\0\0\0", b"\x93NUMPY\x03\0t\0\0\0");
        let floats = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
        let elements = b"\0\0\0\0\0\0\x80?\0\0\0@";
        for start in [&first[..], second, third] {
            assert_eq!(shown(&numpy(start, floats, elements)), "float32[3] [0, 1, 2]");
        }
        // What NumPy writes of little-endian arrays in row-major order is what is written here.
        for (header, data, text) in [
            (floats, &elements[..], "float32[3] [0, 1, 2]"),
            ("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", b"\x01", "bool[] true"),
            ("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4), }", b"", "uint8[0, 4] []"),
            (
                "{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
                b"a\0\0\0\0\0\0\0\xdf\0\0\0\x80\xf9\x01\0",
                r#"string[2] ["a", "ß🦀"]"#,
            ),
        ] {
            let file = numpy(first, header, data);
            assert_eq!(shown(&file), text);
            assert_eq!(write(&read(&file).unwrap()).unwrap(), file);
        }
        let columns = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
        let file = numpy(first, columns, b"\0\0\0\x03\0\x01\0\x04\0\x02\0\x05");
        assert_eq!(shown(&file), "int16[2, 3] [[0, 1, 2], [3, 4, 5]]");
        let complex = "{'descr': '>c16', 'fortran_order': False, 'shape': (1,), }";
        let file = numpy(first, complex, b"?\xf0\0\0\0\0\0\0@\0\0\0\0\0\0\0");
        assert_eq!(shown(&file), "complex128[1] [1+2i]");
        let record = "{'descr': [('é', '<f4')], 'fortran_order': False, 'shape': (1,), }";
        assert_eq!(shown(&numpy(third, record, b"\0\0\x80?")), STRUCTURED);
    }

    #[test]
    fn elements_are_aligned() {
        for rank in 0..64 {
            let file = write(&Tensor::new(DType::Uint8, &vec![1; rank], vec![7]).unwrap()).unwrap();
            assert_eq!((file.len() % ALIGN, file[file.len() - 2], file[file.len() - 1]), (1, b'\n', 7), "rank {rank}");
            assert_eq!(read(&file).unwrap().shape(), vec![1; rank]);
        }
        assert!(start("|u1", &[1; 30_000]).unwrap_err().starts_with("NumPy has no arrays of rank 30000"));
    }

    #[test]
    fn headers() {
        for header in [
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2)}",
            r#"{"shape":(1,2,),"descr":"|u1","fortran_order":False}"#,
            " {\n\t'fortran_order' : True , 'shape' : ( 1 , 2 , ) , \"descr\" : '<u1' , } \n\n",
        ] {
            assert_eq!(shown(&file(1, header, &[7, 8])), "uint8[1, 2] [[7, 8]]", "{header}");
        }
        let rest = "'fortran_order': False, 'shape': (1,)";
        for (header, why) in [
            ("", "its header can't be read from byte 0 on"),
            ("{", "its header can't be read from byte 1 on"),
            ("{}", "dict is missing key 'descr'"),
            ("{,}", "its header can't be read from byte 1 on"),
            ("{descr: '|u1'}", "its header can't be read from byte 1 on"),
            ("{'descr' '|u1'}", "its header can't be read from byte 9 on"),
            ("{'descr\": '|u1'}", "its header can't be read from byte 7 on"),
            ("{'descr': '|u1", "its header can't be read from byte 14 on"),
            ("{'descr': '|u1',, }", "its header can't be read from byte 16 on"),
            ("{'descr': '|u1' 'shape': ()}", "its header can't be read from byte 16 on"),
            ("{'descr': '|u1'} 1", "its header can't be read from byte 17 on"),
            ("{'descr': ''}", "its header can't be read from byte 11 on"),
            (r"{'descr': '\x7cu1'}", "its header can't be read from byte 11 on"),
            ("{'descr': 'é'}", "its header can't be read from byte 11 on"),
            ("{'descr': None}", "its header can't be read from byte 10 on"),
            ("{'descr': ('<u1', (2,))}", STRUCTURED),
            ("{'descr': '|u1', 'descr': '|u1'}", "its header has the key 'descr' twice"),
            ("{'order': 1}", "its header has the key 'order', which NumPy doesn't write"),
            ("{'fortran_order': 0}", "its header can't be read from byte 18 on"),
            ("{'fortran_order': Truest}", "its header can't be read from byte 22 on"),
            ("{'shape': 1}", "its header can't be read from byte 10 on"),
            ("{'shape': (1)}", "its header can't be read from byte 12 on"),
            ("{'shape': (,)}", "its header can't be read from byte 11 on"),
            ("{'shape': (1,,)}", "its header can't be read from byte 13 on"),
            ("{'shape': (1, 2]}", "its header can't be read from byte 15 on"),
            ("{'shape': (1.0,)}", "its header can't be read from byte 12 on"),
            ("{'shape': (0x1,)}", "its header can't be read from byte 12 on"),
            ("{'shape': (True,)}", "its header can't be read from byte 11 on"),
            ("{'shape': ((1,),)}", "its header can't be read from byte 11 on"),
            ("{'shape': (99999999999999999999,)}", TOO_LARGE),
        ] {
            assert_eq!(shown(&file(1, header, &[7])), why, "{header}");
        }
        for kind in ["u1", "=u1", "|u2", "|f4", "<f", "<f04", "<f3", "<i16", "<U", "<U-1", "<U+1", "<U01", "|U1", "<"] {
            let header = format!("{{'descr': '{kind}', {rest}}}");
            let why = format!("its elements are '{kind}', which is not a tensor element type: {ALLOWED}");
            assert_eq!(shown(&file(1, &header, &[0; 4])), why);
        }
        let long = format!("{{'descr': '{}', {rest}}}", "<".repeat(9000));
        assert!(shown(&file(1, &long, &[])).len() < 220);
        let most = format!("<U{}", usize::MAX);
        assert!(shown(&array(&most, "False", "(1,)", &[])).contains(&most));
    }

    /// As in every tensor, whatever the order of the dimensions.
    #[test]
    fn no_elements_take_nothing() {
        for shape in [[0, usize::MAX / 2, usize::MAX / 2], [usize::MAX / 2, usize::MAX / 2, 0]] {
            for (kind, order) in [("<f4", "False"), (">f4", "True"), ("<U3", "True")] {
                let [a, b, c] = shape;
                assert_eq!(read(&array(kind, order, &format!("({a}, {b}, {c})"), &[])).unwrap().shape(), shape);
            }
        }
    }

    #[test]
    fn bad_files() {
        let good = array("<f4", "False", "(2,)", &[0; 8]);
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_err());
        }
        for (file, why) in [
            (good[..11].to_vec(), "it is cut short: it ends in its header"),
            (b"PK\x03\x04".to_vec(), "it is not a .npy file"),
            (file(9, "{}", &[]), "unsupported version: (9, 0)"),
            (file(1, "{'descr': '<f4'}", &[]), "dict is missing key 'fortran_order'"),
            (
                array("<f4", "False", "(3,)", &[0; 8]),
                "it is cut short: it ends after 76 of 80 bytes ('<f4' of shape [3])",
            ),
            (array("<f4", "False", "(1,)", &[0; 8]), "it has 4 bytes after its elements: '<f4' of shape [1] takes 4"),
            (array("|b1", "False", "(2,)", &[1, 2]), "element [1] is the byte 2, which is not a valid bool"),
            (array("<U1", "False", "(1,)", &[0, 0xd8, 0, 0]), "0xd800 is not a Unicode character"),
            (array("|u1", "False", "(-1,)", &[]), "dimension cannot be negative"),
            (
                array("|O", "False", "(1,)", &[0; 8]),
                "its elements are '|O', which is not a tensor element type: save an array of numbers or str",
            ),
            (
                array("|S3", "False", "(1,)", b"abc"),
                "its elements are '|S3', which is not a tensor element type: use .astype(str) in NumPy",
            ),
            (
                array("<M8[ns]", "False", "(1,)", &[0; 8]),
                &format!("its elements are '<M8[ns]', which is not a tensor element type: {ALLOWED}"),
            ),
            (
                array("<f16", "False", "(1,)", &[0; 16]),
                &format!("its elements are '<f16', which is not a tensor element type: {ALLOWED}"),
            ),
            (
                array("<U0", "False", "(99999999999,)", &[]),
                &format!("its elements are '<U0', which is not a tensor element type: {ALLOWED}"),
            ),
            (array("<f8", "False", "(9223372036854775807, 2)", &[]), TOO_LARGE),
            (
                array("<f4", "True", &format!("(0, {})", usize::MAX), &[]),
                &format!(
                    "a tensor of float32 of shape [0, {}] has a dimension that is too large: allowed 0..={}",
                    usize::MAX,
                    isize::MAX
                ),
            ),
            (
                array("<f4", "False", &format!("({})", "1, ".repeat(3000)), &[]),
                &format!(
                    "it is cut short: it ends after 9066 of 9070 bytes ('<f4' of shape [{}… 3000 dimensions])",
                    "1, ".repeat(16)
                ),
            ),
            (file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", &[0; 4]), STRUCTURED),
            (file(2, &" ".repeat(10_001), &[]), "its header has 10001 bytes: allowed 10000"),
            (file(1, &"(".repeat(9000), &[]), "its header can't be read from byte 0 on"),
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
