//! Files of other formats that are given as models.

use crate::error::{Error, Result};

/// The first bytes of a format, and what it is.
const FORMATS: &[(&[u8], &str)] = &[
    (b"version https://git-lfs", "a Git LFS pointer: `git lfs pull` fetches the file itself"),
    (b"\x1f\x8b", "gzip data: unpack it first"),
    (b"PK\x03\x04", "a zip archive, as PyTorch and NumPy write them: unpack it, or export the model to ONNX"),
    (b"\x80\x02", "a Python pickle, as older versions of PyTorch write them: export the model to ONNX"),
    (b"\x89HDF\r\n", "an HDF5 file, as Keras writes them: convert the model to ONNX"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"GGUF", "a GGUF file: convert the model to ONNX"),
    (b"{", "JSON"),
    (b"ir_version:", TEXT),
    (b"producer_name:", TEXT),
    (b"graph {", TEXT),
];

const TEXT: &str = "the text form of one: save it in the binary form";
const NAMED: &str = "the text form of one: give it a name that ends in .onnxtxt";

/// Refuses a file by its first bytes if they are those of another format.
pub(crate) fn check_format(head: &[u8]) -> Result<()> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let found = FORMATS.iter().find(|(first, _)| head.starts_with(first) || text.starts_with(first));
    let tagged = |tag: &str| text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()));
    let inner = text.strip_prefix(b"<").unwrap_or(&[]).trim_ascii_start();
    let what = match found {
        Some((_, what)) => what,
        None if tagged("<!doctype html") || tagged("<html") => "an HTML page: the download may have failed",
        None if inner.starts_with(b"ir_version") || inner.starts_with(b"opset_import") => NAMED,
        None => return Ok(()),
    };
    Err(Error::model(format!("the file is not an ONNX model, but {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        for (head, what) in [
            (
                &b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"[..],
                "a Git LFS pointer: `git lfs pull`",
            ),
            (b"\x1f\x8b\x08\x00", "gzip data"),
            (b"PK\x03\x04\x14", "a zip archive"),
            (b"\x80\x02\x8a\x0al\xfc", "a Python pickle"),
            (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
            (b"\x93NUMPY\x01\x00", "a NumPy array"),
            (b"GGUF\x03\0\0\0", "a GGUF file"),
            (b"\n {\"a\": 1}", "JSON"),
            (b"<!DOCTYPE html>\n<html>", "an HTML page"),
            (b"\r\n<HTML lang=\"en\">", "an HTML page"),
            (b"\xef\xbb\xbf<html>", "an HTML page"),
            (b"<\n  ir_version: 8,\n  opset_import: [\"\" : 13]\n>\nagraph", "the text form of one"),
            (b"<opset_import: [\"\" : 13], ir_version: 8>", "the text form of one"),
            (b"ir_version: 8\ngraph {\n", "the text form of one"),
        ] {
            let error = check_format(head).unwrap_err().to_string();
            let start = format!("the file is not an ONNX model, but {what}");
            assert!(error.starts_with(&start), "{error}");
        }
        for good in
            [&b""[..], b"\x08\x08\x3a\x00", b"<?xml version=\"1.0\"?>\n<net>", b"<net", b"<", b"version", b"\x1f"]
        {
            assert!(check_format(good).is_ok(), "{good:?}");
        }
    }
}
