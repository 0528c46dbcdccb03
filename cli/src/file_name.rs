//! Names of values as names of files: entries of `.npz` archives, and files of a dump. Names come from models, and may be
//! `../../x`, or hold control characters.

use std::fmt::Write;

/// Names that Windows keeps for devices, with any ending.
const DEVICES: [&str; 22] = [
    "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9", "LPT1", "LPT2",
    "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
];

/// What stands for the empty name.
const EMPTY: &str = "%";

/// The name of a file, without its ending. ASCII letters, digits, `.`, `_` and `-` stay; any other byte becomes `%` and two
/// digits, as in a URL, and so does the first one where the name would hide the file, look like a flag, or name a device.
pub(crate) fn escaped(name: &str) -> String {
    let stem = name.split('.').next().unwrap_or_default();
    let is_device = DEVICES.iter().any(|device| device.eq_ignore_ascii_case(stem));
    let mut file = if name.is_empty() { EMPTY.to_string() } else { String::new() };
    for (k, byte) in name.bytes().enumerate() {
        let stays = byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if stays && !(k == 0 && (is_device || b".-".contains(&byte))) {
            file.push(char::from(byte));
        } else {
            // Writing to a string doesn't fail.
            let _ = write!(file, "%{byte:02X}");
        }
    }
    file
}

/// The name that [`escaped`] made this of; other programs' names are their own.
pub(crate) fn unescaped(file: &str) -> String {
    let name = if file == EMPTY { Some(String::new()) } else { decoded(file) };
    name.filter(|name| escaped(name) == file).unwrap_or_else(|| file.to_string())
}

fn decoded(file: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = file.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless_and_come_back() {
        for (name, file) in [
            ("y", "y"),
            ("decoder.layers-0_w", "decoder.layers-0_w"),
            ("/lm/MatMul_output_0", "%2Flm%2FMatMul_output_0"),
            ("../../evil", "%2E.%2F..%2Fevil"),
            ("..", "%2E."),
            ("C:\\x", "C%3A%5Cx"),
            ("\u{1b}[31m\0", "%1B%5B31m%00"),
            ("100% é", "100%25%20%C3%A9"),
            ("-rf", "%2Drf"),
            ("nul", "%6Eul"),
            ("Con.1", "%43on.1"),
            ("CONV", "CONV"),
            ("", "%"),
            ("%", "%25"),
        ] {
            assert_eq!((escaped(name), unescaped(file)), (file.to_string(), name.to_string()));
        }
    }

    #[test]
    fn other_names_stay_as_they_are() {
        for file in ["x/1", "a b", "100%", "%zz", "%2f", "%41", "%+1", "%FF", "%2", "é", "nul", "é%2F"] {
            assert_eq!(unescaped(file), file);
        }
    }

    #[test]
    fn any_name_comes_back() {
        for code in (0..0x3000).filter_map(char::from_u32) {
            for name in [format!("{code}"), format!("a{code}%"), format!("{code}{code}")] {
                let file = escaped(&name);
                assert!(!file.starts_with(['.', '-']) && file.bytes().all(|b| b.is_ascii_graphic()), "{file}");
                assert!(!file.contains(['/', '\\', ':', '*', '?', '"', '<', '>', '|']), "{file}");
                assert_eq!(unescaped(&file), name);
            }
        }
    }
}
